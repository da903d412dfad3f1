/*
 * The table of adapters: see adapters.h. In a file of its own, so that a test may have one of its
 * own.
 */
#include "adapters.h"

#include <alertscaler/target/kubernetes.h>

const struct as_target_adapter as_target_adapters[] = {
    {&as_target_kind_kubernetes, as_kubernetes_new},
    {0},
};
