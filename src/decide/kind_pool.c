/*
 * Pools: node groups of one cluster that are decided together (docs/pools.md). Its address is its
 * name in the rule files; its groups stand in struct as_pool_config.
 */
#include <alertscaler/decide/target_kind.h>

#include "kind_values.h"

static bool append_key(const char *rest, struct as_buf *out)
{
    as_buf_append_str(out, rest);
    return true;
}

const struct as_target_kind as_target_kind_pool = {
    .word = "pool",
    .title = "a pool",
    .unit = "nodes",
    .owner = "name",
    .keys = {{.key = "name",
              .is_required = true,
              .is_valid = is_configured_name,
              .expected = "the name of the target"}},
    .append_key = append_key,
    .has_groups = true,
};
