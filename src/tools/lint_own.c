/*
 * Routes that bring alertscaler's own alerts back to it. It answers them `own_alert`, so there is
 * no loop; but each is a notification for nothing.
 */
#include "lint_run.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/decide/notice.h>
#include <alertscaler/model/labels.h>

struct own_alert { /* what is known of its labels */
    struct as_matcher *matchers;
    size_t count, capacity;
};

/* Borrows both texts, which are never changed. */
static void add(struct own_alert *alert, const char *name, enum as_matcher_op op, const char *value)
{
    alert->matchers =
        as_xgrow(alert->matchers, alert->count, &alert->capacity, sizeof(*alert->matchers));
    alert->matchers[alert->count++] = (struct as_matcher){
        .name = (char *)(uintptr_t)name, .value = (char *)(uintptr_t)value, .op = op};
}

static bool may_have(const struct own_alert *alert, const char *name)
{
    static const char *const others[] = {"alertname", "reason", "rule", "target"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(others); i++) {
        if (strcmp(others[i], name) == 0)
            return true;
    }
    for (size_t i = 0; i < alert->count; i++) {
        if (strcmp(alert->matchers[i].name, name) == 0)
            return true; /* it is known */
    }
    return false;
}

/* It has no label but its own ones. */
static void add_absent(struct own_alert *alert, const struct lint_route *route)
{
    for (size_t i = 0; i < route->matcher_count; i++) {
        if (!may_have(alert, route->matchers[i].name))
            add(alert, route->matchers[i].name, AS_MATCHER_EQUAL, "");
    }
}

/* The default is the host's name, which this machine need not have. */
static const char *find_instance(const struct as_settings *settings)
{
    if (settings->instance)
        return settings->instance;
    return settings->state.store == AS_STORE_KUBERNETES ? settings->state.lease.name : NULL;
}

static void add_instance(const struct lint_run *run, struct own_alert *alert)
{
    const char *instance = find_instance(&run->config->settings);
    if (instance)
        add(alert, AS_OWN_ALERT_LABEL, AS_MATCHER_EQUAL, instance);
    else
        add(alert, AS_OWN_ALERT_LABEL, AS_MATCHER_NOT_EQUAL, "");
}

/* Of the alerts that one of our receivers asks for, one that comes here; NULL: none does. */
static const char *find_own_alert(struct lint_run *run, const struct lint_route *route,
                                  unsigned kinds)
{
    const struct lint_alertmanager *alertmanager = run->lint->alertmanager;
    const char *found = NULL;
    for (int kind = 0; kind < AS_NOTICE_TEST && !found; kind++) {
        struct own_alert alert = {.matchers = NULL};
        struct lint_way way;
        if (!(kinds & 1U << kind))
            continue;
        const char *name = as_notice_kind_get_row((enum as_notice_kind)kind)->alertname;
        add(&alert, "alertname", AS_MATCHER_EQUAL, name);
        add_instance(run, &alert);
        for (size_t i = 0; i < alertmanager->route_count; i++)
            add_absent(&alert, alertmanager->routes[i]);
        if (lint_spend(run, LINT_DEAR) &&
            lint_find_way(route, alert.matchers, alert.count, &way) == LINT_REACHED)
            found = name;
        free(alert.matchers);
    }
    return found;
}

void lint_check_own_alerts(struct lint_run *run, const struct lint_route *route)
{
    const struct as_settings *settings = &run->config->settings;
    unsigned kinds = 0;
    for (size_t i = 0; i < settings->notify_count; i++)
        kinds |= settings->notify[i].is_webhook ? 0 : settings->notify[i].on;
    const char *name = kinds ? find_own_alert(run, route, kinds) : NULL;
    if (name)
        lint_warn_alertmanager(run, route->place,
                               "alertscaler's own alerts, like %s, come back to it here, and are "
                               "answered `own_alert`: add the matcher " AS_OWN_ALERT_LABEL
                               "=\"\" to this route",
                               name);
}
