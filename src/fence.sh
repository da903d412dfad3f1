#!/bin/sh
# fence.sh INCLUDE-DIR FENCE-DIR LAYER...: makes FENCE-DIR/alertscaler with a link to each LAYER's
# public headers and nothing else, so that an include of any other layer does not compile.
set -eu
from=$1 fence=$2
shift 2
rm -rf "$fence"
mkdir -p "$fence/alertscaler"
for layer in "$@"; do
    ln -s "$from/alertscaler/$layer" "$fence/alertscaler/$layer"
done
