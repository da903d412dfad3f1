/*
 * The table of `targets.<name>.schedules[]`: bounds that hold at certain times.
 */
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/calendar.h>
#include <alertscaler/base/error.h>

#include "rule_parts.h"

#define WALL_TIME "([01][0-9]|2[0-3]):[0-5][0-9]"
#define DAYS      "(mon|tue|wed|thu|fri|sat|sun)"

/* "07:30"; as the end of a day "24:00". */
static bool parse_wall_time(const char *text, bool is_end, int32_t *seconds_out)
{
    unsigned hours = 0, minutes = 0;
    if (strlen(text) != 5 || strspn(text, "0123456789") != 2 || text[2] != ':' ||
        strspn(text + 3, "0123456789") != 2)
        return false;
    hours = (unsigned)(text[0] - '0') * 10 + (unsigned)(text[1] - '0');
    minutes = (unsigned)(text[3] - '0') * 10 + (unsigned)(text[4] - '0');
    if (minutes > 59 || (hours > 23 && !(is_end && hours == 24 && minutes == 0)))
        return false;
    *seconds_out = (int32_t)(hours * 3600 + minutes * 60);
    return true;
}

static void parse_end(struct loader *loader, const struct as_yaml_node *value, bool is_end,
                      struct raw_schedule *schedule)
{
    char found[AS_YAML_FOUND_SIZE];
    struct as_schedule *of = &schedule->of;
    enum raw_schedule_time *form = is_end ? &schedule->to : &schedule->from;
    if (value->kind == AS_YAML_SCALAR &&
        as_wall_time_parse(value->text, value->size, is_end ? &of->end : &of->begin) == 0)
        *form = RAW_SCHEDULE_MOMENT;
    else if (value->kind == AS_YAML_SCALAR &&
             parse_wall_time(value->text, is_end, is_end ? &of->to_s : &of->from_s))
        *form = RAW_SCHEDULE_WALL_TIME;
    else
        loader_report(loader, value,
                      "expected a time of the day like '07:30'%s, or a moment with its offset like "
                      "2026-11-27T00:00:00+01:00, found %s",
                      is_end ? " (at most '24:00')" : "", as_yaml_describe(value, found));
}

static void parse_from(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_end(loader, value, false, object);
}

static void parse_to(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_end(loader, value, true, object);
}

/* 0 to 6; 7: no day */
static unsigned find_day(const char *text, size_t size)
{
    static const char days[] = "montuewedthufrisatsun";
    unsigned day = 0;
    while (day < 7 && !(size == 3 && memcmp(days + (size_t)day * 3, text, 3) == 0))
        day++;
    return day;
}

/* "mon", "mon-fri", "sat-mon" */
static bool add_days(const char *text, unsigned *days)
{
    const size_t first = strcspn(text, "-");
    const char *last = text[first] ? text + first + 1 : text;
    unsigned day = find_day(text, first);
    const unsigned end = find_day(last, strlen(last));
    if (day > 6 || end > 6)
        return false;
    *days |= 1U << day;
    for (; day != end; *days |= 1U << day)
        day = (day + 1) % 7;
    return true;
}

static void parse_days(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct raw_schedule *schedule = object;
    char found[AS_YAML_FOUND_SIZE];
    if (!schema_is_kind(loader, value, AS_YAML_LIST))
        return;
    if (value->count == 0)
        loader_report(loader, value, "expected at least one day, found an empty list");
    for (uint32_t i = 0; i < value->count; i++) {
        const struct as_yaml_node *item = value->items[i];
        if (item->kind != AS_YAML_SCALAR || !add_days(item->text, &schedule->of.days))
            loader_report(loader, item,
                          "expected mon, tue, wed, thu, fri, sat, sun, or a range like mon-fri, "
                          "found %s",
                          as_yaml_describe(item, found));
    }
}

static void parse_bound(struct loader *loader, const struct as_yaml_node *value, int64_t least,
                        bool *has_out, int32_t *bound_out)
{
    const struct schema_field field = {.type = SCHEMA_INT, .min = least, .max = AS_SIZE_MAX};
    *has_out = schema_parse_scalar(loader, &field, value, bound_out);
}

static void parse_min(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct as_schedule *of = &((struct raw_schedule *)object)->of;
    parse_bound(loader, value, 0, &of->has_min, &of->min);
}

static void parse_max(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct as_schedule *of = &((struct raw_schedule *)object)->of;
    parse_bound(loader, value, 1, &of->has_max, &of->max);
}

/* In the order of enum as_ways, from DOWN. */
static const char *const ways[] = {"down", "up", "both", NULL};

static void parse_hold(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    const struct schema_field field = {.type = SCHEMA_WORD, .words = ways};
    unsigned index = 0;
    if (schema_parse_scalar(loader, &field, value, &index))
        ((struct raw_schedule *)object)->of.hold = (enum as_ways)(index + 1);
}

static const struct schema_field schedule_fields[] = {
    SCHEMA_FIELD("name", NAME, raw_schedule, name, .is_required = true),
    SCHEMA_FIELD("timezone", STRING, raw_schedule, timezone),
    {.key = "days",
     .type = SCHEMA_CUSTOM,
     .parse = parse_days,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(STRINGS, .pattern = "^" DAYS "(-" DAYS ")?$",
                                       .when_empty = "expected at least one day")),
     .expected = "list of days"},
    {.key = "from",
     .type = SCHEMA_CUSTOM,
     .is_required = true,
     .parse = parse_from,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(SCALAR, .pattern = "^" WALL_TIME "$"), SCHEMA_FORM(TIME)),
     .expected = "time"},
    {.key = "to",
     .type = SCHEMA_CUSTOM,
     .is_required = true,
     .parse = parse_to,
     .forms =
         SCHEMA_FORMS(SCHEMA_FORM(SCALAR, .pattern = "^(" WALL_TIME "|24:00)$"), SCHEMA_FORM(TIME)),
     .expected = "time"},
    {.key = "min",
     .type = SCHEMA_CUSTOM,
     .parse = parse_min,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(INT, .min = 0, .max = AS_SIZE_MAX)),
     .expected = "integer"},
    {.key = "max",
     .type = SCHEMA_CUSTOM,
     .parse = parse_max,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(INT, .min = 1, .max = AS_SIZE_MAX)),
     .expected = "integer"},
    {.key = "hold",
     .type = SCHEMA_CUSTOM,
     .parse = parse_hold,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(WORD, .words = ways)),
     .expected = "down, up or both"},
    {0},
};

static void check_moments(struct loader *loader, const struct as_yaml_node *node,
                          const struct raw_schedule *schedule)
{
    static const char *const keys[] = {"timezone", "days"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(keys); i++) {
        const struct as_yaml_node *key = schema_find_key(node, keys[i]);
        if (key)
            loader_report(loader, key, "`%s` is for times of the day: moments have their offset",
                          keys[i]);
    }
    if (schedule->of.end.us <= schedule->of.begin.us)
        loader_report(loader, as_yaml_find(node, "to"), "`to` is not after `from`");
}

static void check_wall_times(struct loader *loader, const struct as_yaml_node *node,
                             const struct as_yaml_node *at, const struct raw_schedule *schedule)
{
    if (schedule->of.from_s == schedule->of.to_s)
        loader_report(loader, as_yaml_find(node, "to"),
                      "`to` equals `from`; a whole day is from '00:00' to '24:00'");
    if (!as_yaml_find(node, "timezone"))
        loader_report(loader, at, "key `timezone` is missing: times of the day need it");
}

static void finish_schedule(struct loader *loader, const struct as_yaml_node *node,
                            const struct as_yaml_node *at, void *object)
{
    struct raw_schedule *schedule = object;
    const struct as_schedule *of = &schedule->of;
    schedule->node = node;
    if (!as_yaml_find(node, "min") && !as_yaml_find(node, "max") && !as_yaml_find(node, "hold"))
        loader_report(loader, at,
                      "the schedule changes nothing: it has no `min`, no `max` and no `hold`");
    if (of->has_min && of->has_max && of->min > of->max)
        loader_report(loader, as_yaml_find(node, "max"), "`max` %d is below `min` %d", of->max,
                      of->min);
    if (schedule->from == RAW_SCHEDULE_NONE || schedule->to == RAW_SCHEDULE_NONE)
        return;
    if (schedule->from != schedule->to)
        loader_report(loader, as_yaml_find(node, "to"),
                      "`from` and `to` are both times of the day, or both moments");
    else if (schedule->from == RAW_SCHEDULE_MOMENT)
        check_moments(loader, node, schedule);
    else
        check_wall_times(loader, node, at, schedule);
    if (schedule->of.days == 0)
        schedule->of.days = AS_SCHEDULE_ALL_DAYS;
}

const struct schema target_schedules =
    SCHEMA("schedules", raw_schedule, schedule_fields, .finish = finish_schedule);
