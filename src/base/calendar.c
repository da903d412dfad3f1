/*
 * H. Hinnant, "chrono-compatible low-level date algorithms": years begin in March, so that the leap
 * day is the last one; eras of 400 years have 146097 days.
 */
#include <alertscaler/base/calendar.h>

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
