/*
 * The world of a rehearsal: what callers set, and what the engine observes.
 *
 * A target is found by its id, or by its name in the rule files if its address has no template.
 */
#ifndef ALERTSCALER_SRC_TOOLS_REHEARSAL_WORLD_H
#define ALERTSCALER_SRC_TOOLS_REHEARSAL_WORLD_H

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/decide/observation.h>
#include <alertscaler/decide/ruleset.h>
#include <alertscaler/model/query.h>
#include <alertscaler/rules/rule_tests.h>

struct world_target {
    UT_hash_handle by_key, by_name;
    char *id, *key;                    /* key: decide/target.h */
    const char *name;                  /* from the rule set; else the last part of the id */
    int32_t size;                      /* -1: not found */
    const struct as_pool_config *pool; /* its size is that of its groups; NULL: no pool */
    bool is_told;                      /* its pods were set; else `size` default pods */
    struct as_pod_seen *pods;
    size_t pod_count;
    struct as_nodes_seen nodes; /* its error is owned */
};

struct world_query {
    UT_hash_handle by_text;
    char *text; /* packed */
    struct as_query_result result;
};

struct world {
    const struct as_ruleset *ruleset;
    struct world_target *targets, *named;
    struct world_query *queries;
    char *packed; /* the last text looked up */
    size_t packed_capacity;
    as_wall_time old;                           /* start time of default pods and nodes */
    const struct as_rule_test_cluster *cluster; /* NULL: nothing is said of it */
};

void world_init(struct world *world, const struct as_ruleset *ruleset, as_wall_time start);
void world_deinit(struct world *world);

struct world_target *world_find_target(const struct world *world, const char *name_or_id);
struct world_target *world_get_target(struct world *world, const char *name_or_id); /* creates */
/* Of a pool: of its groups that are found. -1: not found. */
int32_t world_get_size(const struct world *world, const char *name_or_id);
void world_set_pods(struct world_target *target, const struct as_pod_seen *pods, size_t count);
void world_set_nodes(struct world_target *target, const struct as_nodes_seen *nodes);

/* White space in `text` is ignored, except in quotes. */
struct world_query *world_find_query(struct world *world, const char *text);
void world_set_query(struct world *world, const char *text, const struct as_query_result *result);

/* The engine's observation. `target` and `query` may be NULL: not found. Valid until the world is
 * changed or observed again. */
struct as_observation world_observe(const struct world *world, struct world_target *target,
                                    const struct as_observe_request *request);
struct as_query_result world_answer(const struct world_query *query, enum as_query_form form);

#endif
