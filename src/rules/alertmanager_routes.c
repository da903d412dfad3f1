/*
 * Receivers in the configuration of a running Alertmanager: see the header. Alertmanager has
 * checked the configuration, so a value that cannot be read is an error: it may be of a newer form.
 */
#include <alertscaler/rules/alertmanager_routes.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/arena.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>

/* Alertmanager's defaults, of the root route. */
#define GROUP_WAIT_DEFAULT     (30 * AS_US_PER_S)
#define GROUP_INTERVAL_DEFAULT (5 * AS_US_PER_MIN)

struct as_alertmanager_routes {
    struct as_receiver_routes *items; /* ascending by receiver, each once */
    size_t count, capacity;
    struct as_arena arena;
};

struct route { /* what a child route inherits */
    const char *receiver;
    int64_t group_wait_us, group_interval_us;
};

const struct as_yaml_node *as_alertmanager_route_find_intervals(const struct as_yaml_node *route)
{
    static const char *const keys[] = {"mute_time_intervals", "active_time_intervals",
                                       "muteTimeIntervals", "activeTimeIntervals"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(keys); i++) {
        const struct as_yaml_node *list = as_yaml_find(route, keys[i]);
        if (list && !as_yaml_is_null(list) && (list->kind != AS_YAML_LIST || list->count > 0))
            return list;
    }
    return NULL;
}

static int read_duration(const struct as_yaml_node *route, const char *key, int64_t *us_io,
                         struct as_error *error)
{
    const struct as_yaml_node *node = as_yaml_find(route, key);
    if (!node || as_yaml_is_null(node))
        return 0;
    if (node->kind != AS_YAML_SCALAR || as_duration_parse(node->text, us_io, NULL) < 0) {
        as_error_set(error, "line %u: %s: expected a duration like 5m", node->place.line, key);
        return -EINVAL;
    }
    return 0;
}

/* Recursion is as deep as the tree, which is bounded. */
static int read_route(struct as_alertmanager_routes *routes, const struct as_yaml_node *node,
                      struct route route, struct as_error *error)
{
    const struct as_yaml_node *receiver = as_yaml_find(node, "receiver");
    const struct as_yaml_node *list = as_yaml_find(node, "routes");
    if (receiver && receiver->kind == AS_YAML_SCALAR && !as_yaml_is_null(receiver))
        route.receiver = as_arena_strdup(&routes->arena, receiver->text);
    if (node->kind != AS_YAML_MAP || !route.receiver) {
        as_error_set(error, "line %u: expected a route with a receiver", node->place.line);
        return -EINVAL;
    }
    int status = read_duration(node, "group_wait", &route.group_wait_us, error);
    if (status == 0)
        status = read_duration(node, "group_interval", &route.group_interval_us, error);
    if (status < 0)
        return status;
    if (list && list->kind != AS_YAML_LIST && !as_yaml_is_null(list)) {
        as_error_set(error, "line %u: routes: expected a list", list->place.line);
        return -EINVAL;
    }
    routes->items =
        as_xgrow(routes->items, routes->count, &routes->capacity, sizeof(*routes->items));
    routes->items[routes->count++] = (struct as_receiver_routes){
        .receiver = route.receiver,
        .flush_us = as_time_add(route.group_wait_us, route.group_interval_us),
        .has_intervals = as_alertmanager_route_find_intervals(node) != NULL,
    };
    for (uint32_t i = 0; list && list->kind == AS_YAML_LIST && i < list->count; i++) {
        status = read_route(routes, list->items[i], route, error);
        if (status < 0)
            return status;
    }
    return 0;
}

static int compare(const void *a, const void *b)
{
    const struct as_receiver_routes *x = a, *y = b;
    return strcmp(x->receiver, y->receiver);
}

static void unite(struct as_alertmanager_routes *routes)
{
    size_t kept = 0;
    qsort(routes->items, routes->count, sizeof(*routes->items), compare);
    for (size_t i = 0; i < routes->count; i++) {
        const struct as_receiver_routes item = routes->items[i];
        struct as_receiver_routes *last = kept > 0 ? &routes->items[kept - 1] : NULL;
        if (!last || strcmp(last->receiver, item.receiver) != 0) {
            routes->items[kept++] = item;
            continue;
        }
        last->has_intervals = last->has_intervals || item.has_intervals;
        if (item.flush_us > last->flush_us)
            last->flush_us = item.flush_us;
    }
    routes->count = kept;
}

int as_alertmanager_routes_parse(const char *text, size_t size,
                                 struct as_alertmanager_routes **routes_out, struct as_error *error)
{
    AS_CLEANUP(as_diagnostics_deinit)
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    AS_CLEANUP(as_yaml_free_p) struct as_yaml_tree *tree = NULL;
    AS_CLEANUP(as_alertmanager_routes_free_p)
    struct as_alertmanager_routes *routes = as_xcalloc(1, sizeof(*routes));
    routes->arena = AS_ARENA_INIT;
    int status = as_yaml_parse_foreign("configuration", text, size, &diagnostics, &tree);
    if (status != AS_YAML_OK) {
        as_error_set(error, "line %u: %s", diagnostics.items[0].line, diagnostics.items[0].message);
        return -EINVAL;
    }
    const struct as_yaml_node *route = as_yaml_find(as_yaml_get_root(tree), "route");
    if (!route) {
        as_error_set(error, "it has no `route`");
        return -EINVAL;
    }
    status = read_route(routes, route,
                        (struct route){.group_wait_us = GROUP_WAIT_DEFAULT,
                                       .group_interval_us = GROUP_INTERVAL_DEFAULT},
                        error);
    if (status < 0)
        return status;
    unite(routes);
    *routes_out = routes;
    routes = NULL;
    return 0;
}

struct as_alertmanager_routes *as_alertmanager_routes_free(struct as_alertmanager_routes *routes)
{
    if (!routes)
        return NULL;
    free(routes->items);
    as_arena_deinit(&routes->arena);
    free(routes);
    return NULL;
}

const struct as_receiver_routes *as_alertmanager_routes_find(
    const struct as_alertmanager_routes *routes, const char *receiver)
{
    const struct as_receiver_routes key = {.receiver = receiver};
    return bsearch(&key, routes->items, routes->count, sizeof(key), compare);
}
