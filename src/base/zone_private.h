/*
 * A zone in memory: the changes of its file, and the rule for the time after the last one.
 */
#ifndef ALERTSCALER_SRC_BASE_ZONE_PRIVATE_H
#define ALERTSCALER_SRC_BASE_ZONE_PRIVATE_H

#include <alertscaler/base/zone.h>

/* A day of the year at which the offset changes, as in POSIX' TZ. */
enum zone_day_kind {
    ZONE_DAY_JULIAN,  /* J1 to J365: February 29 is never counted */
    ZONE_DAY_OF_YEAR, /* 0 to 365 */
    ZONE_DAY_OF_WEEK  /* M month.week.day: week 5 is the last one, day 0 is Sunday */
};

struct zone_day {
    enum zone_day_kind kind;
    unsigned number; /* of the first two kinds */
    unsigned month, week, weekday;
    int32_t time; /* seconds from midnight, -167 h to 167 h */
};

struct zone_rule {
    int32_t standard;
    bool has_daylight;
    int32_t daylight;
    struct zone_day begin, end; /* of daylight time */
};

struct zone_change {
    int64_t at;
    int32_t offset; /* from then on */
};

struct as_zone {
    char name[AS_ZONE_NAME_MAX + 1];
    int32_t first; /* the offset before the first change */
    struct zone_change *changes;
    size_t change_count;
    bool has_rule; /* after the last change; else its offset goes on */
    struct zone_rule rule;
};

#endif
