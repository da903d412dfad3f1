/*
 * The world of a rehearsal: what it is said to be, and what the engine is told of it.
 *
 * A target is found by its id, or by its name in the rule files where its address has no template.
 */
#ifndef ALERTSCALER_SRC_APP_ENGINE_REHEARSAL_WORLD_H
#define ALERTSCALER_SRC_APP_ENGINE_REHEARSAL_WORLD_H

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/core/observation.h>
#include <alertscaler/core/query.h>
#include <alertscaler/core/ruleset.h>

struct world_target {
    UT_hash_handle by_key, by_name;
    char *id, *key;   /* key: core/target.h */
    const char *name; /* as in the rule files (the rule set's); else the last part of the id */
    int32_t size;     /* -1: it is not there */
    bool is_told;     /* of its pods; else they are as many as `size` */
    struct as_pod_seen *pods;
    size_t pod_count;
    struct as_nodes_seen nodes; /* its error is owned */
};

struct world_query {
    UT_hash_handle by_text;
    char *text; /* as `pack` leaves it */
    struct as_query_result result;
};

struct world {
    struct world_target *targets, *named;
    struct world_query *queries;
    char *packed; /* the text asked for last */
    size_t packed_capacity;
    as_wall_time old; /* since when pods that nobody described have been there */
};

void world_init(struct world *world, const struct as_ruleset *ruleset, as_wall_time start);
void world_deinit(struct world *world);

struct world_target *world_find_target(const struct world *world, const char *name_or_id);
struct world_target *world_get_target(struct world *world, const char *name_or_id); /* made */
void world_set_pods(struct world_target *target, const struct as_pod_seen *pods, size_t count);
void world_set_nodes(struct world_target *target, const struct as_nodes_seen *nodes);

/* White space in `text` does not count, but in quotes. */
struct world_query *world_find_query(struct world *world, const char *text);
void world_set_query(struct world *world, const char *text, const struct as_query_result *result);

/* What the engine is told. `target` and `query` may be NULL: there is no such thing. Good until the
 * world is changed or asked again. */
struct as_observation world_observe(const struct world *world, struct world_target *target,
                                    const struct as_observe_request *request);
struct as_query_result world_answer(const struct world_query *query, enum as_query_form form);

#endif
