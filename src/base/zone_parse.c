/*
 * TZif files: a header and a block with times of 32 bits; from version 2 on both again with 64
 * bits, and a footer with the rule for later times, as in POSIX' TZ.
 */
#include "zone_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/calendar.h>

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

static int fail(const struct input *in, const char *what)
{
    as_error_set(in->error, "%s", what);
    return -EBADMSG;
}

static bool has(const struct input *in, size_t size)
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
    if (!has(in, HEADER) || memcmp(at, "TZif", 4) != 0)
        return fail(in, "no TZif file");
    *version_out = at[4];
    if (*version_out != 0 && *version_out < '2')
        return fail(in, "unknown version of TZif");
    *counts = (struct counts){get_count(at + 20), get_count(at + 24), get_count(at + 28),
                              get_count(at + 32), get_count(at + 36), get_count(at + 40)};
    if (counts->changes > CHANGES_MAX || counts->types > TYPES_MAX || counts->names > NAMES_MAX)
        return fail(in, "too many changes, types or names");
    if (counts->leaps > 0)
        return fail(in, "it counts leap seconds: take the zone of the same name without `right/`");
    if (counts->types == 0)
        return fail(in, "no type of local time");
    if ((counts->is_ut != 0 && counts->is_ut != counts->types) ||
        (counts->is_standard != 0 && counts->is_standard != counts->types))
        return fail(in, "its counts contradict each other");
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
        return fail(in, "an offset of more than a day from UTC");
    *offset_out = (int32_t)offset;
    return 0;
}

static int read_block(struct input *in, const struct counts *counts, size_t time_size,
                      struct as_zone *zone)
{
    if (!has(in, get_block_size(counts, time_size)))
        return fail(in, "it ends too early");
    const unsigned char *indices = in->at + counts->changes * time_size;
    const unsigned char *types = indices + counts->changes;
    int status = read_offset(in, types, 0, &zone->first);
    zone->changes = as_xcalloc(counts->changes + 1, sizeof(*zone->changes));
    for (uint32_t i = 0; status == 0 && i < counts->changes; i++) {
        struct zone_change *change = &zone->changes[zone->change_count++];
        change->at = get_signed(in->at + i * time_size, time_size);
        if (i > 0 && change->at <= zone->changes[i - 1].at)
            return fail(in, "its changes do not ascend");
        if (indices[i] >= counts->types)
            return fail(in, "a change to a type that is not there");
        status = read_offset(in, types, indices[i], &change->offset);
    }
    in->at += get_block_size(counts, time_size);
    return status;
}

/* --- the footer --- */

static bool take(struct input *in, char wanted)
{
    if (in->at == in->end || *in->at != (unsigned char)wanted)
        return false;
    in->at++;
    return true;
}

static bool take_number(struct input *in, unsigned max, unsigned *out)
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
static bool take_name(struct input *in)
{
    const unsigned char *start = in->at;
    if (take(in, '<')) {
        while (in->at < in->end && (is_letter(*in->at) || *in->at == '+' || *in->at == '-' ||
                                    (*in->at >= '0' && *in->at <= '9')))
            in->at++;
        return in->at > start + 1 && take(in, '>');
    }
    while (in->at < in->end && is_letter(*in->at))
        in->at++;
    return in->at - start >= 3;
}

/* [+-]h[:mm[:ss]], in seconds */
static bool take_time(struct input *in, unsigned hours_max, int32_t *out)
{
    const bool is_negative = take(in, '-');
    unsigned hours, minutes = 0, seconds = 0;
    if (!is_negative)
        (void)take(in, '+');
    if (!take_number(in, hours_max, &hours) ||
        (take(in, ':') &&
         (!take_number(in, 59, &minutes) || (take(in, ':') && !take_number(in, 59, &seconds)))))
        return false;
    const int32_t time = (int32_t)(hours * S_PER_H + minutes * S_PER_MIN + seconds);
    *out = is_negative ? -time : time;
    return true;
}

/* POSIX counts west of UTC. */
static bool take_offset(struct input *in, int32_t *out)
{
    if (!take_time(in, 24, out))
        return false;
    *out = -*out;
    return true;
}

static bool take_day(struct input *in, struct zone_day *day)
{
    bool is_valid;
    *day = (struct zone_day){.time = 2 * S_PER_H};
    if (take(in, 'M')) {
        day->kind = ZONE_DAY_OF_WEEK;
        is_valid = take_number(in, 12, &day->month) && day->month > 0 && take(in, '.') &&
                   take_number(in, 5, &day->week) && day->week > 0 && take(in, '.') &&
                   take_number(in, 6, &day->weekday);
    } else {
        day->kind = take(in, 'J') ? ZONE_DAY_JULIAN : ZONE_DAY_OF_YEAR;
        is_valid = take_number(in, 365, &day->number) &&
                   (day->kind == ZONE_DAY_OF_YEAR || day->number > 0);
    }
    return is_valid && (!take(in, '/') || take_time(in, RULE_HOURS, &day->time));
}

static bool take_rule(struct input *in, struct zone_rule *rule)
{
    if (!take_name(in) || !take_offset(in, &rule->standard))
        return false;
    if (in->at == in->end)
        return true;
    rule->has_daylight = true;
    rule->daylight = rule->standard + S_PER_H;
    if (!take_name(in))
        return false;
    if (!take(in, ',') && !(take_offset(in, &rule->daylight) && take(in, ',')))
        return false;
    return take_day(in, &rule->begin) && take(in, ',') && take_day(in, &rule->end) &&
           in->at == in->end;
}

static int read_footer(struct input *in, struct as_zone *zone)
{
    const unsigned char *end = NULL;
    if (take(in, '\n'))
        end = memchr(in->at, '\n', (size_t)(in->end - in->at));
    if (!end)
        return fail(in, "its footer is missing");
    in->end = end;
    if (in->at == in->end)
        return 0;
    zone->has_rule = take_rule(in, &zone->rule);
    return zone->has_rule ? 0 : fail(in, "its footer is no rule that POSIX' TZ allows");
}

static int read_file(struct input *in, struct as_zone *zone)
{
    unsigned char version;
    struct counts counts;
    int status = read_header(in, &version, &counts);
    if (status == 0 && version == 0)
        return read_block(in, &counts, 4, zone);
    if (status != 0)
        return status;
    if (!has(in, get_block_size(&counts, 4)))
        return fail(in, "it ends too early");
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
        return fail(&in, "the file is too large");
    const int status = read_file(&in, zone);
    if (status != 0)
        return status;
    *zone_out = zone;
    zone = NULL;
    return 0;
}
