/*
 * Groups of instances at a provider. The provider says which keys an address has, and which of them
 * say where the group is (rules/provider_kind.h).
 */
#include <string.h>

#include <alertscaler/base/url.h>
#include <alertscaler/decide/target_kind.h>

#include "kind_values.h"

/* A URL is normalized (base/url.h). Other names have only one spelling. */
static bool append_key(const char *rest, struct as_buf *out)
{
    const char *slash = strchr(rest, '/');
    if (!slash)
        return false;
    as_buf_append(out, rest, (size_t)(slash + 1 - rest));
    return as_url_append_normal(slash + 1, out);
}

const struct as_target_kind as_target_kind_node_group = {
    .word = "node_group",
    .title = "a node group",
    .unit = "nodes",
    .owner = "provider",
    .keys =
        {
            {.key = "provider",
             .is_required = true,
             .is_valid = is_configured_name,
             .expected = "a provider's name"},
            {.is_valid = is_without_controls, .expected = "text without control characters"},
        },
    .allow = {[AS_ALLOW_NAMES] = "name", [AS_ALLOW_URLS] = "url"},
    .append_key = append_key,
    .has_nodes = true,
};
