/*
 * The calendar, and zones in memory: the reader of TZif files, and the lookup of offsets and wall
 * times. zone_file.c opens a zone by its name: the users of this file (the core) do not depend on
 * input and output.
 */
#include <alertscaler/base/zone.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "zone_private.h"

/*
 * The calendar. H. Hinnant, "chrono-compatible low-level date algorithms": years begin in March, so
 * that the leap day is the last one; eras of 400 years have 146097 days.
 */

int64_t as_calendar_get_days(struct as_date date)
{
    int64_t year = date.year - (date.month <= 2);
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * ((date.month + 9) % 12) + 2) / 5 + date.day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

struct as_date as_calendar_get_date(int64_t days)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t march_month = (5 * day_of_year + 2) / 153;
    return (struct as_date){
        .year = year_of_era + era * 400 + (march_month >= 10),
        .month = (unsigned)(march_month < 10 ? march_month + 3 : march_month - 9),
        .day = (unsigned)(day_of_year - (153 * march_month + 2) / 5 + 1),
    };
}

unsigned as_calendar_get_month_days(int64_t year, unsigned month)
{
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const int leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (leap && month == 2 ? 1u : 0u);
}

/* 1970-01-01 was a Thursday. */
unsigned as_calendar_get_weekday(int64_t days)
{
    const int64_t day = (days % 7 + 10) % 7;
    return (unsigned)day;
}

int64_t as_calendar_find_day(int64_t seconds)
{
    const int64_t day = seconds / AS_S_PER_DAY;
    return seconds % AS_S_PER_DAY < 0 ? day - 1 : day;
}

/*
 * Zones. A TZif file has a header and a block with times of 32 bits; from version 2 on both again
 * with 64 bits, and a footer with the rule for later times, as in POSIX' TZ.
 */

#define HEADER      44
#define CHANGES_MAX 2000 /* as in tzcode */
#define TYPES_MAX   256
#define TYPE_SIZE   6
#define NAMES_MAX   4096     /* bytes of abbreviations, which nobody reads here */
#define OFFSET_LOW  (-89999) /* RFC 9636 3.2: more than -25 h ... */
#define OFFSET_HIGH 93599    /* ... less than 26 h */
#define RULE_HOURS  167      /* of a change, from midnight of its day */
#define S_PER_H     3600
#define S_PER_MIN   60

struct input {
    const unsigned char *at, *end;
    struct as_error *error;
};

struct counts {
    uint32_t is_ut, is_standard, leaps, changes, types, names;
};

static int zone_fail(const struct input *in, const char *what)
{
    as_error_set(in->error, "%s", what);
    return -EBADMSG;
}

static bool zone_has(const struct input *in, size_t size)
{
    return (size_t)(in->end - in->at) >= size;
}

static int64_t get_signed(const unsigned char *bytes, size_t size)
{
    uint64_t number = bytes[0] & 0x80 ? UINT64_MAX : 0;
    for (size_t i = 0; i < size; i++)
        number = number << 8 | bytes[i];
    return (int64_t)number;
}

static uint32_t get_count(const unsigned char *bytes)
{
    return (uint32_t)get_signed(bytes, 4);
}

static int read_header(struct input *in, unsigned char *version_out, struct counts *counts)
{
    const unsigned char *at = in->at;
    if (!zone_has(in, HEADER) || memcmp(at, "TZif", 4) != 0)
        return zone_fail(in, "no TZif file");
    *version_out = at[4];
    if (*version_out != 0 && *version_out < '2')
        return zone_fail(in, "unknown version of TZif");
    *counts = (struct counts){get_count(at + 20), get_count(at + 24), get_count(at + 28),
                              get_count(at + 32), get_count(at + 36), get_count(at + 40)};
    if (counts->changes > CHANGES_MAX || counts->types > TYPES_MAX || counts->names > NAMES_MAX)
        return zone_fail(in, "too many changes, types or names");
    if (counts->leaps > 0)
        return zone_fail(in,
                         "it counts leap seconds: take the zone of the same name without `right/`");
    if (counts->types == 0)
        return zone_fail(in, "no type of local time");
    if ((counts->is_ut != 0 && counts->is_ut != counts->types) ||
        (counts->is_standard != 0 && counts->is_standard != counts->types))
        return zone_fail(in, "its counts contradict each other");
    in->at += HEADER;
    return 0;
}

static size_t get_block_size(const struct counts *counts, size_t time_size)
{
    return counts->changes * (time_size + 1) + (size_t)counts->types * TYPE_SIZE + counts->names +
           counts->is_standard + counts->is_ut;
}

static int read_offset(const struct input *in, const unsigned char *types, size_t type,
                       int32_t *offset_out)
{
    const int64_t offset = get_signed(types + type * TYPE_SIZE, 4);
    if (offset < OFFSET_LOW || offset > OFFSET_HIGH)
        return zone_fail(in, "an offset of more than a day from UTC");
    *offset_out = (int32_t)offset;
    return 0;
}

static int read_block(struct input *in, const struct counts *counts, size_t time_size,
                      struct as_zone *zone)
{
    if (!zone_has(in, get_block_size(counts, time_size)))
        return zone_fail(in, "it ends too early");
    const unsigned char *indices = in->at + counts->changes * time_size;
    const unsigned char *types = indices + counts->changes;
    int status = read_offset(in, types, 0, &zone->first);
    zone->changes = as_xcalloc(counts->changes + 1, sizeof(*zone->changes));
    for (uint32_t i = 0; status == 0 && i < counts->changes; i++) {
        struct zone_change *change = &zone->changes[zone->change_count++];
        change->at = get_signed(in->at + i * time_size, time_size);
        if (i > 0 && change->at <= zone->changes[i - 1].at)
            return zone_fail(in, "its changes do not ascend");
        if (indices[i] >= counts->types)
            return zone_fail(in, "a change to a type that is not there");
        status = read_offset(in, types, indices[i], &change->offset);
    }
    in->at += get_block_size(counts, time_size);
    return status;
}

/* --- the footer --- */

static bool zone_take(struct input *in, char wanted)
{
    if (in->at == in->end || *in->at != (unsigned char)wanted)
        return false;
    in->at++;
    return true;
}

static bool zone_take_number(struct input *in, unsigned max, unsigned *out)
{
    const unsigned char *start = in->at;
    unsigned number = 0;
    for (; in->at < in->end && *in->at >= '0' && *in->at <= '9' && number <= max; in->at++)
        number = number * 10 + (unsigned)(*in->at - '0');
    *out = number;
    return in->at > start && number <= max;
}

static bool is_letter(unsigned char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* "CET", "<+0330>" */
static bool zone_take_name(struct input *in)
{
    const unsigned char *start = in->at;
    if (zone_take(in, '<')) {
        while (in->at < in->end && (is_letter(*in->at) || *in->at == '+' || *in->at == '-' ||
                                    (*in->at >= '0' && *in->at <= '9')))
            in->at++;
        return in->at > start + 1 && zone_take(in, '>');
    }
    while (in->at < in->end && is_letter(*in->at))
        in->at++;
    return in->at - start >= 3;
}

/* [+-]h[:mm[:ss]], in seconds */
static bool take_time(struct input *in, unsigned hours_max, int32_t *out)
{
    const bool is_negative = zone_take(in, '-');
    unsigned hours, minutes = 0, seconds = 0;
    if (!is_negative)
        (void)zone_take(in, '+');
    if (!zone_take_number(in, hours_max, &hours) ||
        (zone_take(in, ':') && (!zone_take_number(in, 59, &minutes) ||
                                (zone_take(in, ':') && !zone_take_number(in, 59, &seconds)))))
        return false;
    const int32_t time = (int32_t)(hours * S_PER_H + minutes * S_PER_MIN + seconds);
    *out = is_negative ? -time : time;
    return true;
}

/* POSIX counts west of UTC. */
static bool zone_take_offset(struct input *in, int32_t *out)
{
    if (!take_time(in, 24, out))
        return false;
    *out = -*out;
    return true;
}

static bool zone_take_day(struct input *in, struct zone_day *day)
{
    bool is_valid;
    *day = (struct zone_day){.time = 2 * S_PER_H};
    if (zone_take(in, 'M')) {
        day->kind = ZONE_DAY_OF_WEEK;
        is_valid = zone_take_number(in, 12, &day->month) && day->month > 0 && zone_take(in, '.') &&
                   zone_take_number(in, 5, &day->week) && day->week > 0 && zone_take(in, '.') &&
                   zone_take_number(in, 6, &day->weekday);
    } else {
        day->kind = zone_take(in, 'J') ? ZONE_DAY_JULIAN : ZONE_DAY_OF_YEAR;
        is_valid = zone_take_number(in, 365, &day->number) &&
                   (day->kind == ZONE_DAY_OF_YEAR || day->number > 0);
    }
    return is_valid && (!zone_take(in, '/') || take_time(in, RULE_HOURS, &day->time));
}

static bool take_rule(struct input *in, struct zone_rule *rule)
{
    if (!zone_take_name(in) || !zone_take_offset(in, &rule->standard))
        return false;
    if (in->at == in->end)
        return true;
    rule->has_daylight = true;
    rule->daylight = rule->standard + S_PER_H;
    if (!zone_take_name(in))
        return false;
    if (!zone_take(in, ',') && !(zone_take_offset(in, &rule->daylight) && zone_take(in, ',')))
        return false;
    return zone_take_day(in, &rule->begin) && zone_take(in, ',') && zone_take_day(in, &rule->end) &&
           in->at == in->end;
}

static int read_footer(struct input *in, struct as_zone *zone)
{
    const unsigned char *end = NULL;
    if (zone_take(in, '\n'))
        end = memchr(in->at, '\n', (size_t)(in->end - in->at));
    if (!end)
        return zone_fail(in, "its footer is missing");
    in->end = end;
    if (in->at == in->end)
        return 0;
    zone->has_rule = take_rule(in, &zone->rule);
    return zone->has_rule ? 0 : zone_fail(in, "its footer is no rule that POSIX' TZ allows");
}

static int zone_read_file(struct input *in, struct as_zone *zone)
{
    unsigned char version;
    struct counts counts;
    int status = read_header(in, &version, &counts);
    if (status == 0 && version == 0)
        return read_block(in, &counts, 4, zone);
    if (status != 0)
        return status;
    if (!zone_has(in, get_block_size(&counts, 4)))
        return zone_fail(in, "it ends too early");
    in->at += get_block_size(&counts, 4);
    status = read_header(in, &version, &counts);
    if (status == 0)
        status = read_block(in, &counts, 8, zone);
    return status == 0 ? read_footer(in, zone) : status;
}

int as_zone_parse(const char *bytes, size_t size, struct as_zone **zone_out, struct as_error *error)
{
    const unsigned char *start = (const unsigned char *)bytes;
    struct input in = {start, start + size, error};
    AS_CLEANUP(as_zone_free_p) struct as_zone *zone = as_xcalloc(1, sizeof(*zone));
    if (size > AS_ZONE_FILE_MAX)
        return zone_fail(&in, "the file is too large");
    const int status = zone_read_file(&in, zone);
    if (status != 0)
        return status;
    *zone_out = zone;
    zone = NULL;
    return 0;
}

/*
 * Looking up offsets and wall times: by the changes of the zone's file, after the last of them by
 * its rule.
 */

/* Every offset is less than this; the file's reader refuses others. */
#define OFFSET_MAX (2 * (int64_t)AS_S_PER_DAY)
/* Beyond this the calendar's arithmetic might overflow. */
#define UTC_MAX (INT64_C(1) << 50)
#define YEARS   3 /* of a rule that are looked at: a change may be 167 h from its day */

/* The day of a rule in a year. */
static int64_t zone_find_day(const struct zone_day *day, int64_t year)
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
            {zone_find_day(&rule->end, i) * AS_S_PER_DAY + rule->end.time - rule->daylight,
             rule->standard},
            {zone_find_day(&rule->begin, i) * AS_S_PER_DAY + rule->begin.time - rule->standard,
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
