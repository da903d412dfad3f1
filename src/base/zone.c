/*
 * Looking up offsets and wall times: by the changes of the zone's file, after the last of them by
 * its rule.
 */
#include "zone_private.h"

#include <stdlib.h>

#include <alertscaler/base/calendar.h>

/* Every offset is less than this; the file's reader refuses others. */
#define OFFSET_MAX (2 * (int64_t)AS_S_PER_DAY)
/* Beyond this the calendar's arithmetic might overflow. */
#define UTC_MAX (INT64_C(1) << 50)
#define YEARS   3 /* of a rule that are looked at: a change may be 167 h from its day */

/* The day of a rule in a year. */
static int64_t find_day(const struct zone_day *day, int64_t year)
{
    const int64_t january = as_calendar_get_days((struct as_date){year, 1, 1});
    if (day->kind == ZONE_DAY_OF_YEAR)
        return january + day->number;
    if (day->kind == ZONE_DAY_JULIAN) {
        const bool is_leap = as_calendar_get_month_days(year, 2) == 29;
        return january + day->number - 1 + (is_leap && day->number > 59);
    }
    const int64_t first = as_calendar_get_days((struct as_date){year, day->month, 1});
    const unsigned weekday = (day->weekday + 6) % 7; /* from Monday */
    unsigned of_month = (weekday + 7 - as_calendar_get_weekday(first)) % 7 + 7 * (day->week - 1);
    if (of_month >= as_calendar_get_month_days(year, day->month))
        of_month -= 7;
    return first + of_month;
}

/* The rule's changes around `utc`, ascending. Where one ends daylight time at the moment at which
 * the next one begins it, the beginning counts. */
static size_t list_changes(const struct zone_rule *rule, int64_t utc,
                           struct zone_change changes_out[2 * YEARS])
{
    const int64_t year = as_calendar_get_date(as_calendar_find_day(utc)).year;
    size_t count = 0;
    for (int64_t i = year - 1; i < year - 1 + YEARS; i++) {
        const struct zone_change pair[] = {
            {find_day(&rule->end, i) * AS_S_PER_DAY + rule->end.time - rule->daylight,
             rule->standard},
            {find_day(&rule->begin, i) * AS_S_PER_DAY + rule->begin.time - rule->standard,
             rule->daylight}};
        for (size_t k = 0; k < 2; k++) {
            size_t place = count++;
            for (; place > 0 && (changes_out[place - 1].at > pair[k].at ||
                                 (changes_out[place - 1].at == pair[k].at && k == 0));
                 place--)
                changes_out[place] = changes_out[place - 1];
            changes_out[place] = pair[k];
        }
    }
    return count;
}

static int32_t get_offset_by_rule(const struct zone_rule *rule, int64_t utc)
{
    struct zone_change changes[2 * YEARS];
    int32_t offset = rule->standard;
    if (!rule->has_daylight)
        return offset;
    const size_t count = list_changes(rule, utc, changes);
    for (size_t i = 0; i < count && changes[i].at <= utc; i++)
        offset = changes[i].offset;
    return offset;
}

/* The number of changes that are not after `utc`. */
static size_t count_changes(const struct as_zone *zone, int64_t utc)
{
    size_t low = 0, high = zone->change_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (zone->changes[middle].at <= utc)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int32_t as_zone_get_offset(const struct as_zone *zone, int64_t utc)
{
    const size_t count = count_changes(zone, utc);
    if (count == zone->change_count && zone->has_rule && utc < UTC_MAX && utc > -UTC_MAX)
        return get_offset_by_rule(&zone->rule, utc);
    return count == 0 ? zone->first : zone->changes[count - 1].offset;
}

bool as_zone_find_change(const struct as_zone *zone, int64_t utc, int64_t *change_out)
{
    const size_t count = count_changes(zone, utc);
    struct zone_change changes[2 * YEARS];
    if (count < zone->change_count) {
        *change_out = zone->changes[count].at;
        return true;
    }
    if (!zone->has_rule || !zone->rule.has_daylight || utc >= UTC_MAX || utc <= -UTC_MAX)
        return false;
    const size_t listed = list_changes(&zone->rule, utc, changes);
    for (size_t i = 0; i < listed; i++) {
        if (changes[i].at > utc) {
            *change_out = changes[i].at;
            return true;
        }
    }
    return false;
}

int64_t as_zone_find_utc(const struct as_zone *zone, int64_t local, enum as_zone_pick pick)
{
    const int64_t end = local + OFFSET_MAX;
    int64_t from = local - OFFSET_MAX, found = local - as_zone_get_offset(zone, local);
    int64_t to = from;
    bool is_found = false;
    while (from < end) { /* stretches with one offset each */
        const int64_t utc = local - as_zone_get_offset(zone, from);
        if (!as_zone_find_change(zone, from, &to) || to > end)
            to = end;
        if (utc >= from && utc < to) {
            found = utc;
            is_found = true;
        } else if (utc < from && !is_found) { /* the wall clock has jumped over it */
            return from;
        }
        if (is_found && pick == AS_ZONE_FIRST)
            return found;
        from = to;
    }
    return found;
}

const char *as_zone_get_name(const struct as_zone *zone)
{
    return zone->name;
}

struct as_zone *as_zone_free(struct as_zone *zone)
{
    if (zone)
        free(zone->changes);
    free(zone);
    return NULL;
}
