/*
 * The digests of targets' entries. What is observed of a target depends on its entry, on the
 * entries of a pool's groups, and on the parts of the configuration that say where targets and
 * metrics are.
 */
#include <alertscaler/cluster/pool.h>

#include "content_hash.h"
#include "resolve.h"

static void add_part(struct content_hash *hash, const struct as_yaml_node *node)
{
    if (node)
        content_hash_add_node(hash, node);
    content_hash_add(hash, "", 1); /* the end of the part */
}

static struct as_digest hash_places(const struct as_yaml_node *root)
{
    static const char *const keys[] = {"clusters", "providers", "prometheus"};
    struct content_hash hash = content_hash_begin();
    for (size_t i = 0; i < AS_ARRAY_SIZE(keys); i++)
        add_part(&hash, root ? as_yaml_find(root, keys[i]) : NULL);
    return content_hash_end_digest(&hash);
}

static struct as_digest hash_entry(const struct resolver *resolver, uint32_t number,
                                   const struct as_digest *places)
{
    const struct as_pool_config *pool = resolver->ruleset->targets[number].pool;
    struct content_hash hash = content_hash_begin();
    content_hash_add(&hash, (const char *)places->bytes, sizeof(places->bytes));
    add_part(&hash, resolver->targets[number]->node);
    for (size_t i = 0; pool && i < pool->group_count; i++)
        add_part(&hash, resolver->targets[pool->groups[i]]->node);
    return content_hash_end_digest(&hash);
}

void resolve_entries(struct resolver *resolver)
{
    const struct as_digest places = hash_places(resolver->settings_root);
    for (uint32_t i = 0; i < resolver->target_count; i++)
        resolver->ruleset->targets[i].digest = hash_entry(resolver, i, &places);
}
