/*
 * The Gregorian calendar as arithmetic: days since 1970-01-01 and dates, for any year. Reads no
 * clock and no time zone.
 */
#ifndef ALERTSCALER_BASE_CALENDAR_H
#define ALERTSCALER_BASE_CALENDAR_H

#include <stdint.h>

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

#endif
