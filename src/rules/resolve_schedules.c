/*
 * Schedules: their time zones, and bounds that contradict each other.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/error.h>

#include "resolve.h"

/* Schedules by the week are looked at for a year from then. The result must not depend on when
 * files are read; changes of a zone's offset come every year. */
#define AROUND "2026-01-01T00:00:00Z"

/* NULL: unknown, which is reported. */
static const struct as_zone *get_zone(struct resolver *resolver,
                                      const struct raw_schedule *schedule)
{
    struct as_ruleset *ruleset = resolver->ruleset;
    struct as_error error = AS_ERROR_INIT;
    struct as_zone *zone;
    for (size_t i = 0; i < ruleset->zone_count; i++) {
        if (strcmp(as_zone_get_name(ruleset->zones[i]), schedule->timezone) == 0)
            return ruleset->zones[i];
    }
    if (as_zone_open(schedule->timezone, &zone, &error) != 0) {
        loader_report(&resolver->loader, as_yaml_find(schedule->node, "timezone"), "%s",
                      error.text);
        return NULL;
    }
    ruleset->zones =
        as_xrealloc_array(ruleset->zones, ruleset->zone_count + 1, sizeof(*ruleset->zones));
    return ruleset->zones[ruleset->zone_count++] = zone;
}

static void check_names(struct resolver *resolver, const struct raw_target *raw)
{
    for (size_t i = 1; i < raw->schedule_count; i++) {
        const char *name = raw->schedules[i].name;
        for (size_t k = 0; name && k < i; k++) {
            if (raw->schedules[k].name && strcmp(raw->schedules[k].name, name) == 0) {
                loader_report(&resolver->loader, as_yaml_find(raw->schedules[i].node, "name"),
                              "schedule `%s` is given twice, also at line %u", name,
                              raw->schedules[k].node->place.line);
                break;
            }
        }
    }
}

static void check_bounds(struct resolver *resolver, const struct raw_target *raw,
                         const struct as_target_config *config)
{
    struct as_schedule_conflict conflict;
    char at[AS_RFC3339_SIZE];
    as_wall_time around;
    const struct as_bounds_config *bounds = &config->bounds;
    if (bounds->min > bounds->max || as_wall_time_parse(AROUND, strlen(AROUND), &around) != 0 ||
        !as_schedules_find_conflict(config->schedules, config->schedule_count, bounds->min,
                                    bounds->max, around, &conflict))
        return;
    const struct raw_schedule *low =
        conflict.max_of < AS_SCHEDULES_MAX ? &raw->schedules[conflict.max_of] : NULL;
    const struct raw_schedule *high =
        conflict.min_of < AS_SCHEDULES_MAX ? &raw->schedules[conflict.min_of] : NULL;
    assert(high || low); /* the target's own are no conflict */
    as_wall_time_print_short(conflict.at, at);
    if (high && low)
        loader_report(&resolver->loader, as_yaml_find(high->node, "min"),
                      "`min` %" PRId32 " is above `max` %" PRId32
                      " of schedule `%s` at line %u: both are in force at %s",
                      conflict.min, conflict.max, low->name, low->node->place.line, at);
    else if (high)
        loader_report(&resolver->loader, as_yaml_find(high->node, "min"),
                      "`min` %" PRId32 " is above `max` %" PRId32 " of the target", conflict.min,
                      conflict.max);
    else
        loader_report(&resolver->loader, as_yaml_find(low->node, "max"),
                      "`max` %" PRId32 " is below `min` %" PRId32 " of the target", conflict.max,
                      conflict.min);
}

/* False: something was reported. */
static bool fill(struct resolver *resolver, const struct raw_schedule *raw,
                 struct as_schedule *schedule)
{
    const bool needs_zone = raw->from != RAW_SCHEDULE_MOMENT || raw->to != RAW_SCHEDULE_MOMENT;
    *schedule = raw->of;
    schedule->name = as_xstrdup(raw->name ? raw->name : "");
    schedule->zone = needs_zone && raw->timezone ? get_zone(resolver, raw) : NULL;
    return raw->from != RAW_SCHEDULE_NONE && raw->from == raw->to &&
           !(raw->of.has_min && raw->of.has_max && raw->of.min > raw->of.max) &&
           (schedule->zone || !needs_zone);
}

static void resolve_target(struct resolver *resolver, const struct raw_target *raw,
                           struct as_target_config *config)
{
    bool is_complete = true;
    resolver->loader.tree = raw->tree;
    if (raw->schedule_count > 0 &&
        (as_target_kind_has_groups(config->kind) || config->of_pool != AS_NO_TARGET))
        loader_report(&resolver->loader, schema_find_key(raw->node, "schedules"),
                      "pools and their groups have no schedules");
    check_names(resolver, raw);
    config->schedules = as_xcalloc(raw->schedule_count + 1, sizeof(*config->schedules));
    for (size_t i = 0; i < raw->schedule_count; i++)
        is_complete &= fill(resolver, &raw->schedules[i], &config->schedules[i]);
    config->schedule_count = raw->schedule_count;
    if (is_complete && raw->schedule_count > 0)
        check_bounds(resolver, raw, config);
}

void resolve_schedules(struct resolver *resolver)
{
    for (size_t i = 0; i < resolver->target_count; i++)
        resolve_target(resolver, resolver->targets[i], &resolver->ruleset->targets[i]);
}
