/*
 * The Gregorian calendar as arithmetic (days since 1970-01-01 and dates, for any year), and time
 * zones. No function reads a clock.
 */
#ifndef ALERTSCALER_BASE_ZONE_H
#define ALERTSCALER_BASE_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

struct as_zone;

#define AS_S_PER_DAY 86400

struct as_date {
    int64_t year;
    unsigned month, day; /* from 1 */
};

int64_t as_calendar_get_days(struct as_date date);
struct as_date as_calendar_get_date(int64_t days);
unsigned as_calendar_get_month_days(int64_t year, unsigned month); /* 28 to 31 */
unsigned as_calendar_get_weekday(int64_t days);                    /* 0: Monday, 6: Sunday */
int64_t as_calendar_find_day(int64_t seconds); /* of a time since 1970; rounds down */

/*
 * Time zones of the system's tzdata: which offset from UTC holds when, and when a wall time is. A
 * zone is immutable. Nothing here reads TZ or a clock; only as_zone_open reads a file.
 *
 * Times are in seconds: UTC since 1970, and "local" seconds, which count the wall time's days and
 * seconds as if they were UTC.
 */

#define AS_ZONE_FOLDER   "/usr/share/zoneinfo"
#define AS_ZONE_NAME_MAX 64
#define AS_ZONE_FILE_MAX 65536 /* bytes; the largest of tzdata has less than 4 KiB */

/*
 * Reads a zone's TZif file (RFC 9636, versions 1 to 4). 0; -EBADMSG with an error that names the
 * place: not such a file, over a limit, contradictory; or with leap seconds, which the clocks here
 * do not count.
 */
int as_zone_parse(const char *bytes, size_t size, struct as_zone **zone_out,
                  struct as_error *error) AS_MUST_USE;

/* A name as in tzdata: letters, digits, `_`, `+`, `-`, with `/` between the parts. So a name never
 * leads out of the folder. */
bool as_zone_is_name(const char *name);

/* By its name, from AS_ZONE_FOLDER. 0, or a negative errno with an error that says what to do. */
int as_zone_open(const char *name, struct as_zone **zone_out, struct as_error *error) AS_MUST_USE;

const char *as_zone_get_name(const struct as_zone *zone); /* "": not opened by a name */

/* Seconds east of UTC. */
int32_t as_zone_get_offset(const struct as_zone *zone, int64_t utc);

/* The first change of the offset, or of its name, after `utc`. False: none comes. */
bool as_zone_find_change(const struct as_zone *zone, int64_t utc, int64_t *change_out);

enum as_zone_pick { AS_ZONE_FIRST, AS_ZONE_LAST };
/* When the wall time is. One that exists twice: as `pick` says; one that does not exist: when the
 * next one that exists begins. */
int64_t as_zone_find_utc(const struct as_zone *zone, int64_t local, enum as_zone_pick pick);

struct as_zone *as_zone_free(struct as_zone *zone);

AS_DEFINE_CLEANUP(struct as_zone *, as_zone_free)

#endif
