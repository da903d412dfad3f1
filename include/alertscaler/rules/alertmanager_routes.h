/*
 * The routes of the configuration that an Alertmanager shows in its API, by their receivers: how
 * soon Alertmanager notifies a receiver, and whether time intervals mute it. Several routes may
 * lead to one receiver; Alertmanager does not say which of them a group belongs to, so the most
 * cautious values count.
 *
 * The text comes from a peer: it is bounded as as_yaml_parse_foreign bounds it.
 */
#ifndef ALERTSCALER_RULES_ALERTMANAGER_ROUTES_H
#define ALERTSCALER_RULES_ALERTMANAGER_ROUTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/doc/yaml_tree.h>

struct as_receiver_routes {
    const char *receiver;
    int64_t flush_us;   /* group_wait + group_interval: the longest of its routes */
    bool has_intervals; /* a route has mute_time_intervals or active_time_intervals */
};

struct as_alertmanager_routes;

/* 0; -EINVAL with an error of one line. */
int as_alertmanager_routes_parse(const char *text, size_t size,
                                 struct as_alertmanager_routes **routes_out,
                                 struct as_error *error) AS_MUST_USE;
struct as_alertmanager_routes *as_alertmanager_routes_free(struct as_alertmanager_routes *routes);

/* NULL: no route leads to it. */
const struct as_receiver_routes *as_alertmanager_routes_find(
    const struct as_alertmanager_routes *routes, const char *receiver);

/* The list of time intervals that a route has, with its key in alertmanager.yml; NULL: none. A
 * child route does not inherit it. */
const struct as_yaml_node *as_alertmanager_route_find_intervals(const struct as_yaml_node *route);

AS_DEFINE_CLEANUP(struct as_alertmanager_routes *, as_alertmanager_routes_free)

#endif
