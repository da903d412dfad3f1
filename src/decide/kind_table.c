/*
 * The table of kinds of targets: one row each. In its own file, so that a test can replace it.
 */
#include <alertscaler/decide/target_kind.h>

#include <assert.h>

const struct as_target_kind *const as_target_kinds[] = {
    &as_target_kind_kubernetes, /* objects with the subresource `scale` */
    &as_target_kind_node_group, /* groups of a provider's instances */
    &as_target_kind_pool,       /* several of these together */
    NULL,
};

static_assert(AS_ARRAY_SIZE(as_target_kinds) <= AS_TARGET_KINDS_MAX + 1, "a kind too many");
