/*
 * KEDA's cron trigger: a schedule, where its expressions are times of the day on days of the week.
 * Whatever else cron can say is listed, with the reason.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <alertscaler/base/error.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/zone.h>

#include "convert_keda.h"

#define FIELDS    5
#define FIELD_MAX 64
#define ALL_DAYS  0x7fU

struct raw_cron {
    const char *timezone, *start, *end, *desired;
};

static const struct schema_field cron_fields[] = {
    SCHEMA_FIELD("timezone", STRING, raw_cron, timezone, .is_required = true),
    SCHEMA_FIELD("start", STRING, raw_cron, start, .is_required = true),
    SCHEMA_FIELD("end", STRING, raw_cron, end, .is_required = true),
    SCHEMA_FIELD("desiredReplicas", STRING, raw_cron, desired, .is_required = true),
    {0},
};
static const struct schema cron_table =
    SCHEMA("cron", raw_cron, cron_fields, .other = convert_lose_key);

struct moment {      /* of the week */
    unsigned minute; /* of the day */
    unsigned days;   /* bit 0: Monday */
};

static bool read_number(const char *text, size_t size, int64_t max, unsigned *out)
{
    int64_t number;
    if (as_number_parse_i64(text, size, &number) != 0 || number < 0 || number > max)
        return false;
    *out = (unsigned)number;
    return true;
}

/* "1", "mon"; from Sunday */
static bool read_day(const char *text, size_t size, unsigned *day_out)
{
    static const char *const names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
    for (unsigned i = 0; i < AS_ARRAY_SIZE(names); i++) {
        if (size == 3 && strncasecmp(text, names[i], 3) == 0) {
            *day_out = i;
            return true;
        }
    }
    return read_number(text, size, 6, day_out);
}

/* "*", "1-5", "sat,sun" */
static bool read_days(const char *text, unsigned *days_out)
{
    unsigned first, last;
    if (strcmp(text, "*") == 0 || strcmp(text, "?") == 0) {
        *days_out = ALL_DAYS;
        return true;
    }
    for (*days_out = 0;; text++) {
        const size_t size = strcspn(text, ",");
        const char *dash = memchr(text, '-', size);
        const size_t left = dash ? (size_t)(dash - text) : size;
        if (!read_day(text, left, &first) ||
            !read_day(dash ? dash + 1 : text, dash ? size - left - 1 : size, &last) || first > last)
            return false;
        for (; first <= last; first++)
            *days_out |= 1U << (first + 6) % 7;
        text += size;
        if (*text == '\0')
            return true;
    }
}

/* Minute, hour, day of the month, month, day of the week. */
static bool read_moment(const char *text, struct moment *moment_out)
{
    char fields[FIELDS][FIELD_MAX];
    unsigned minute, hour, count = 0;
    for (text += strspn(text, " \t"); *text; text += strspn(text, " \t")) {
        const size_t size = strcspn(text, " \t");
        if (count == FIELDS || size >= FIELD_MAX)
            return false;
        memcpy(fields[count], text, size);
        fields[count++][size] = '\0';
        text += size;
    }
    if (count != FIELDS || !read_number(fields[0], strlen(fields[0]), 59, &minute) ||
        !read_number(fields[1], strlen(fields[1]), 23, &hour) ||
        (strcmp(fields[2], "*") != 0 && strcmp(fields[2], "?") != 0) ||
        strcmp(fields[3], "*") != 0 || !read_days(fields[4], &moment_out->days))
        return false;
    moment_out->minute = hour * 60 + minute;
    return true;
}

/* Those a day later. */
static unsigned shift(unsigned days)
{
    return (days << 1 | days >> 6) & ALL_DAYS;
}

/* NULL: it can be a schedule. */
static const char *find_obstacle(const struct raw_cron *cron, struct moment *start,
                                 struct moment *end)
{
    if (!read_moment(cron->start, start) || !read_moment(cron->end, end))
        return "its `start` and `end` are not both one time of the day on days of the week";
    if (start->minute == end->minute)
        return "its `start` and `end` are the same time of the day";
    if (end->days != (end->minute > start->minute ? start->days : shift(start->days)))
        return "it does not end on the day on which it begins, or in the night after it";
    return NULL;
}

void keda_add_cron(struct convert *convert, struct plan_target *target,
                   const struct raw_trigger *trigger)
{
    struct raw_cron cron = {0};
    struct moment start, end;
    struct as_error error = AS_ERROR_INIT;
    struct as_zone *zone = NULL;
    int64_t desired;
    const size_t errors = convert_count_errors(convert);
    schema_parse(&convert->loader, &cron_table, trigger->metadata, trigger->node, &cron);
    if (convert_count_errors(convert) > errors)
        return;
    const char *obstacle = find_obstacle(&cron, &start, &end);
    if (!obstacle && as_zone_open(cron.timezone, &zone, &error) != 0)
        obstacle = error.text;
    as_zone_free(zone);
    if (!obstacle && (as_number_parse_i64(cron.desired, strlen(cron.desired), &desired) != 0 ||
                      desired < 1 || desired > AS_SIZE_MAX))
        obstacle = "its `desiredReplicas` is no number above 0";
    if (!obstacle && target->schedule_count == PLAN_SCHEDULES_MAX)
        obstacle = "a target has at most 16 schedules";
    if (obstacle) {
        convert_lose(convert, trigger->node,
                     "the trigger of type `cron`: %.200s. Write a schedule (docs/schedules.md), or "
                     "use an alert that fires by the clock",
                     obstacle);
        return;
    }
    if (desired > target->max)
        convert_hint(convert, trigger->node, "`desiredReplicas` %.20s is above the maximum, %d",
                     cron.desired, target->max);
    target->schedules[target->schedule_count++] = (struct plan_schedule){
        .timezone = cron.timezone,
        .days = start.days,
        .from = start.minute,
        .to = end.minute,
        .min = desired < target->max ? (int32_t)desired : target->max,
    };
}
