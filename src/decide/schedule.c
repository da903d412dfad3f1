/*
 * Schedules in force at a time, and their bounds: see the header.
 */
#include <alertscaler/model/bounds.h>

#include <assert.h>

#include <alertscaler/base/calendar.h>

#define DAYS_BACK  2 /* one that began then may still be in force */
#define DAYS_AHEAD 15
#define YEAR_US    (366 * AS_US_PER_DAY)

static int64_t find_utc_us(const struct as_schedule *schedule, int64_t day, int32_t time_s,
                           enum as_zone_pick pick)
{
    return as_zone_find_utc(schedule->zone, day * AS_S_PER_DAY + time_s, pick) * AS_US_PER_S;
}

/* Extends or begins a stretch by one day's. True: later days do not matter any more. */
static bool take_day(const struct as_schedule *schedule, int64_t day, int64_t now,
                     struct as_schedule_look *look)
{
    const bool is_overnight = schedule->to_s <= schedule->from_s;
    const int64_t begin = find_utc_us(schedule, day, schedule->from_s, AS_ZONE_FIRST);
    const int64_t end = find_utc_us(schedule, day + is_overnight, schedule->to_s, AS_ZONE_LAST);
    if (begin >= end || end <= now)
        return false;
    if (look->is_in_force && begin > look->change.at.us)
        return true;
    if (!look->is_in_force && begin > now) {
        look->change = (as_maybe_time){true, {begin}};
        return true;
    }
    look->is_in_force = true;
    if (!look->change.set || end > look->change.at.us)
        look->change = (as_maybe_time){true, {end}};
    return false;
}

static struct as_schedule_look look_at_moments(const struct as_schedule *schedule, int64_t now)
{
    struct as_schedule_look look = {.is_in_force =
                                        schedule->begin.us <= now && now < schedule->end.us};
    if (now < schedule->begin.us)
        look.change = (as_maybe_time){true, schedule->begin};
    else if (look.is_in_force)
        look.change = (as_maybe_time){true, schedule->end};
    return look;
}

struct as_schedule_look as_schedule_look(const struct as_schedule *schedule, as_wall_time now)
{
    struct as_schedule_look look = {0};
    if (!schedule->zone)
        return look_at_moments(schedule, now.us);
    const int64_t utc = now.us / AS_US_PER_S - (now.us % AS_US_PER_S < 0);
    const int64_t today = as_calendar_find_day(utc + as_zone_get_offset(schedule->zone, utc));
    for (int64_t day = today - DAYS_BACK; day < today + DAYS_AHEAD; day++) {
        if ((schedule->days >> as_calendar_get_weekday(day) & 1) &&
            take_day(schedule, day, now.us, &look))
            return look;
    }
    if (look.is_in_force && look.change.at.us > now.us + (DAYS_AHEAD - 2) * AS_US_PER_DAY)
        look.change.set = false; /* one day follows the other, for ever */
    return look;
}

static void note_change(struct as_schedule_bounds *bounds, as_maybe_time change)
{
    if (change.set && (!bounds->change.set || change.at.us < bounds->change.at.us))
        bounds->change = change;
}

/* With `min` above `max` where they contradict each other. */
static struct as_schedule_bounds combine(const struct as_schedule *schedules, size_t count,
                                         int32_t own_min, int32_t own_max, as_wall_time now)
{
    struct as_schedule_bounds bounds = {.min = own_min, .max = own_max};
    bool has_max = false;
    assert(count <= AS_SCHEDULES_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct as_schedule *schedule = &schedules[i];
        const struct as_schedule_look look = as_schedule_look(schedule, now);
        note_change(&bounds, look.change);
        if (!look.is_in_force)
            continue;
        bounds.in_force |= UINT32_C(1) << i;
        if (schedule->has_min && (!bounds.has_min || schedule->min > bounds.min))
            bounds.min = schedule->min;
        if (schedule->has_max && (!has_max || schedule->max > bounds.max))
            bounds.max = schedule->max;
        bounds.has_min |= schedule->has_min;
        has_max |= schedule->has_max;
    }
    return bounds;
}

struct as_schedule_bounds as_schedules_get_bounds(const struct as_schedule *schedules, size_t count,
                                                  int32_t own_min, int32_t own_max,
                                                  as_wall_time now)
{
    struct as_schedule_bounds bounds = combine(schedules, count, own_min, own_max, now);
    if (bounds.min > bounds.max)
        bounds.min = bounds.max;
    return bounds;
}

/* Which schedule in force a bound is from. */
static size_t find_source(const struct as_schedule *schedules, size_t count, uint32_t in_force,
                          bool is_max, int32_t bound)
{
    for (size_t i = 0; i < count; i++) {
        const struct as_schedule *schedule = &schedules[i];
        const bool names = is_max ? schedule->has_max && schedule->max == bound
                                  : schedule->has_min && schedule->min == bound;
        if ((in_force >> i & 1) && names)
            return i;
    }
    return AS_SCHEDULES_MAX;
}

/* Whether any bound that may be in force is below any `min` that may be. */
static bool may_conflict(const struct as_schedule *schedules, size_t count, int32_t own_min,
                         int32_t own_max)
{
    int32_t highest = own_min, lowest = own_max;
    for (size_t i = 0; i < count; i++) {
        if (schedules[i].has_min && schedules[i].min > highest)
            highest = schedules[i].min;
        if (schedules[i].has_max && schedules[i].max < lowest)
            lowest = schedules[i].max;
    }
    return highest > lowest;
}

static bool find_between(const struct as_schedule *schedules, size_t count, int32_t own_min,
                         int32_t own_max, int64_t from, int64_t to,
                         struct as_schedule_conflict *conflict_out)
{
    for (as_wall_time at = {from}; at.us < to;) {
        const struct as_schedule_bounds bounds = combine(schedules, count, own_min, own_max, at);
        if (bounds.min > bounds.max) {
            *conflict_out = (struct as_schedule_conflict){
                .at = at,
                .min_of = find_source(schedules, count, bounds.in_force, false, bounds.min),
                .max_of = find_source(schedules, count, bounds.in_force, true, bounds.max),
                .min = bounds.min,
                .max = bounds.max,
            };
            return true;
        }
        if (!bounds.change.set)
            return false;
        at = bounds.change.at;
    }
    return false;
}

bool as_schedules_find_conflict(const struct as_schedule *schedules, size_t count, int32_t own_min,
                                int32_t own_max, as_wall_time around,
                                struct as_schedule_conflict *conflict_out)
{
    if (!may_conflict(schedules, count, own_min, own_max))
        return false;
    if (find_between(schedules, count, own_min, own_max, around.us, around.us + YEAR_US,
                     conflict_out))
        return true;
    for (size_t i = 0; i < count; i++) {
        const int64_t begin = schedules[i].begin.us, year = as_time_add(begin, YEAR_US);
        const int64_t end = schedules[i].end.us < year ? schedules[i].end.us : year;
        if (!schedules[i].zone &&
            find_between(schedules, count, own_min, own_max, begin, end, conflict_out))
            return true;
    }
    return false;
}
