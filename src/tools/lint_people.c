/*
 * Routes that keep alerts from people. An alert that enters a child route does not go to the
 * receiver of the parent route; `continue: true` only lets it go to the routes that follow.
 */
#include "lint_run.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

/* It notifies alertscaler and nobody else. */
static bool is_only_ours(const struct lint_receiver *receiver)
{
    return receiver && lint_is_ours(receiver) && !receiver->has_others;
}

/* Only the watchdog reaches this route; people need no notification of it. */
static bool is_watchdog(const struct lint_run *run, const struct matcher_list *list)
{
    const struct as_rule *rule = run->watchdog.rule;
    for (size_t i = 0; rule && i < rule->matcher_count; i++) {
        if (!matcher_list_implies(list, &rule->matchers[i]))
            return false;
    }
    return rule != NULL;
}

/* Whether an alert of our route may also reach another receiver. */
static bool may_reach_others(struct lint_run *run, const struct matcher_list *list)
{
    const struct lint_alertmanager *alertmanager = run->lint->alertmanager;
    struct as_matcher *flat = as_xcalloc(list->count + 1, sizeof(*flat));
    bool is_reached = false;
    for (size_t i = 0; i < list->count; i++)
        flat[i] = *list->items[i];
    for (size_t i = 0; i < alertmanager->route_count && !is_reached; i++) {
        const struct lint_route *route = alertmanager->routes[i];
        struct lint_way way;
        if (is_only_ours(route->receiver))
            continue;
        is_reached = !lint_spend(run, LINT_DEAR) ||
                     lint_find_way(route, flat, list->count, &way) == LINT_REACHED;
    }
    free(flat);
    return is_reached;
}

/* The receiver that would get the alerts without our route; NULL: none. */
static const struct lint_receiver *find_people(const struct lint_route *route)
{
    while (route && is_only_ours(route->receiver))
        route = route->parent;
    return route ? route->receiver : NULL;
}

/* An Alertmanager that notifies nobody else. */
static bool is_dedicated(const struct lint_alertmanager *alertmanager)
{
    const struct lint_receiver *receiver = alertmanager->receivers;
    while (receiver && is_only_ours(receiver))
        receiver = receiver->hh.next;
    return !receiver && is_only_ours(alertmanager->routes[0]->receiver);
}

void lint_check_people(struct lint_run *run, const struct lint_route *route)
{
    AS_CLEANUP(matcher_list_deinit) struct matcher_list list = {.items = NULL};
    const struct lint_receiver *people = find_people(route);
    const char *name = people ? people->name : "people";
    /* Around an AlertmanagerConfig there are routes that are not known. */
    if (!is_only_ours(route->receiver) || is_dedicated(run->lint->alertmanager) ||
        run->lint->alertmanager->object_name)
        return;
    for (const struct lint_route *at = route; at; at = at->parent)
        matcher_list_add(&list, at->matchers, at->matcher_count);
    if (is_watchdog(run, &list) || may_reach_others(run, &list))
        return;
    if (route->continues)
        lint_warn_alertmanager(run, route->place,
                               "nobody but alertscaler gets the alerts that come here: `continue: "
                               "true` leads to the routes behind this one, never to the receiver "
                               "of the one above; add a route behind it with `receiver: %s`",
                               name);
    else
        lint_warn_alertmanager(run, route->place,
                               "nobody but alertscaler gets the alerts that come here: add %sa "
                               "route %s with `receiver: %s`",
                               route->parent ? "`continue: true` and " : "",
                               route->parent ? "behind this one" : "below this one", name);
}
