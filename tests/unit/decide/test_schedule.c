/*
 * When schedules are in force, what they make of the bounds, and contradictions between them.
 * tests/property/zone_property.py compares begins and ends with Python's zoneinfo.
 */
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/model/bounds.h>

#define H 3600

static as_wall_time at(const char *text)
{
    as_wall_time time;
    cr_assert_eq(as_wall_time_parse(text, strlen(text), &time), 0, "%s", text);
    return time;
}

static struct as_zone *berlin(void)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_zone *zone = NULL;
    cr_assert_eq(as_zone_open("Europe/Berlin", &zone, &error), 0, "%s", error.text);
    return zone;
}

static struct as_schedule make(const struct as_zone *zone, unsigned days, int32_t from, int32_t to)
{
    return (struct as_schedule){.zone = zone, .days = days, .from_s = from, .to_s = to};
}

static void expect(const struct as_schedule *schedule, const char *now, bool is_in_force,
                   const char *change)
{
    const struct as_schedule_state look = as_schedule_state(schedule, at(now));
    char text[AS_RFC3339_SIZE];
    as_wall_time_print_short(look.change.at, text);
    cr_expect_eq(look.is_in_force, is_in_force, "%s", now);
    cr_expect_eq(look.change.set, change != NULL, "%s: %s", now, text);
    if (change)
        cr_expect_str_eq(text, change, "%s", now);
}

Test(schedule, days_of_the_week)
{
    AS_CLEANUP(as_zone_free_p) struct as_zone *zone = berlin();
    const struct as_schedule office = make(zone, 0x1f, 15 * H / 2, 20 * H);
    expect(&office, "2026-11-24T06:29:59.999999Z", false, "2026-11-24T06:30:00Z");
    expect(&office, "2026-11-24T06:30:00Z", true, "2026-11-24T19:00:00Z");
    expect(&office, "2026-11-24T18:59:59.999999Z", true, "2026-11-24T19:00:00Z");
    expect(&office, "2026-11-24T19:00:00Z", false, "2026-11-25T06:30:00Z");
    expect(&office, "2026-11-27T19:00:00Z", false, "2026-11-30T06:30:00Z"); /* a weekend */
    expect(&office, "1969-12-30T12:00:00Z", true, "1969-12-30T19:00:00Z");
}

Test(schedule, overnight_belongs_to_the_day_it_begins)
{
    AS_CLEANUP(as_zone_free_p) struct as_zone *zone = berlin();
    const struct as_schedule friday = make(zone, 1u << 4, 22 * H, 6 * H);
    expect(&friday, "2026-11-28T02:00:00Z", true, "2026-11-28T05:00:00Z");
    expect(&friday, "2026-11-28T05:00:00Z", false, "2026-12-04T21:00:00Z");
    expect(&friday, "2026-11-27T02:00:00Z", false, "2026-11-27T21:00:00Z");
}

Test(schedule, days_that_follow_each_other_are_one_stretch)
{
    AS_CLEANUP(as_zone_free_p) struct as_zone *zone = berlin();
    const struct as_schedule weekend = make(zone, 0x60, 0, 24 * H);
    expect(&weekend, "2026-11-28T10:00:00Z", true, "2026-11-29T23:00:00Z");
    expect(&weekend, "2026-10-24T10:00:00Z", true, "2026-10-25T23:00:00Z"); /* of 25 hours */
    const struct as_schedule always = make(zone, AS_SCHEDULE_ALL_DAYS, 0, 24 * H);
    expect(&always, "2026-11-28T10:00:00Z", true, NULL);
}

Test(schedule, where_clocks_change)
{
    AS_CLEANUP(as_zone_free_p) struct as_zone *zone = berlin();
    const struct as_schedule night = make(zone, AS_SCHEDULE_ALL_DAYS, 5 * H / 2, 4 * H);
    expect(&night, "2026-03-29T00:59:59Z", false, "2026-03-29T01:00:00Z"); /* 03:00 */
    expect(&night, "2026-03-29T01:00:00Z", true, "2026-03-29T02:00:00Z");
    const struct as_schedule gap = make(zone, 1u << 6, 5 * H / 2, 11 * H / 4);
    expect(&gap, "2026-03-29T00:00:00Z", false, "2026-04-05T00:30:00Z"); /* left out */
    const struct as_schedule twice = make(zone, AS_SCHEDULE_ALL_DAYS, 5 * H / 2, 11 * H / 4);
    expect(&twice, "2026-10-25T00:00:00Z", false, "2026-10-25T00:30:00Z");
    expect(&twice, "2026-10-25T01:00:00Z", true, "2026-10-25T01:45:00Z");
    const struct as_schedule until = make(zone, AS_SCHEDULE_ALL_DAYS, 5 * H / 2, 5 * H / 2 - 60);
    expect(&until, "2026-10-25T00:45:00Z", true, "2026-10-26T01:29:00Z"); /* it overlaps itself */
}

Test(schedule, moments)
{
    const struct as_schedule sale = {.begin = at("2026-11-26T23:00:00Z"),
                                     .end = at("2026-11-29T23:00:00Z")};
    expect(&sale, "2026-11-26T22:59:59Z", false, "2026-11-26T23:00:00Z");
    expect(&sale, "2026-11-26T23:00:00Z", true, "2026-11-29T23:00:00Z");
    expect(&sale, "2026-11-29T23:00:00Z", false, NULL);
}

static struct as_schedule bound(const char *from, const char *to, int32_t min, int32_t max)
{
    return (struct as_schedule){.begin = at(from),
                                .end = at(to),
                                .has_min = min >= 0,
                                .min = min,
                                .has_max = max >= 0,
                                .max = max};
}

Test(schedule, the_highest_min_and_the_highest_max_count)
{
    const struct as_schedule schedules[] = {
        bound("2026-01-01T00:00:00Z", "2026-01-10T00:00:00Z", 3, -1),
        bound("2026-01-02T00:00:00Z", "2026-01-05T00:00:00Z", 7, 20),
        bound("2026-01-03T00:00:00Z", "2026-01-06T00:00:00Z", 1, 8),
    };
    static const struct {
        const char *now;
        int32_t min, max;
        bool has_min;
        uint32_t in_force;
        const char *change;
    } rows[] = {
        {"2025-12-31T00:00:00Z", 5, 10, false, 0, "2026-01-01T00:00:00Z"},
        {"2026-01-01T00:00:00Z", 3, 10, true, 1, "2026-01-02T00:00:00Z"}, /* lowers it */
        {"2026-01-02T00:00:00Z", 7, 20, true, 3, "2026-01-03T00:00:00Z"},
        {"2026-01-03T00:00:00Z", 7, 20, true, 7, "2026-01-05T00:00:00Z"},
        {"2026-01-05T00:00:00Z", 3, 8, true, 5, "2026-01-06T00:00:00Z"},
        {"2026-01-10T00:00:00Z", 5, 10, false, 0, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct as_schedule_bounds bounds =
            as_schedules_get_bounds(schedules, 3, 5, 10, at(rows[i].now));
        cr_expect_eq(bounds.min, rows[i].min, "%s", rows[i].now);
        cr_expect_eq(bounds.max, rows[i].max, "%s", rows[i].now);
        cr_expect_eq(bounds.has_min, rows[i].has_min, "%s", rows[i].now);
        cr_expect_eq(bounds.in_force, rows[i].in_force, "%s", rows[i].now);
        cr_expect_eq(bounds.change.set, rows[i].change != NULL, "%s", rows[i].now);
        cr_expect(!rows[i].change || bounds.change.at.us == at(rows[i].change).us, "%s",
                  rows[i].now);
    }
}

Test(schedule, a_min_above_a_max_is_lowered)
{
    const struct as_schedule both[] = {
        bound("2026-01-01T00:00:00Z", "2026-01-10T00:00:00Z", 8, -1),
        bound("2026-01-02T00:00:00Z", "2026-01-10T00:00:00Z", -1, 5)};
    const struct as_schedule_bounds bounds =
        as_schedules_get_bounds(both, 2, 1, 10, at("2026-01-03T00:00:00Z"));
    cr_expect_eq(bounds.min, 5);
    cr_expect_eq(bounds.max, 5);
}

Test(schedule, contradictions_are_found_where_schedules_overlap)
{
    AS_CLEANUP(as_zone_free_p) struct as_zone *zone = berlin();
    struct as_schedule_conflict conflict;
    const as_wall_time around = at("2026-01-01T00:00:00Z");
    struct as_schedule both[] = {make(zone, 0x7f, H, 5 * H / 2),
                                 make(zone, 0x1f, 5 * H / 2, 8 * H)};
    both[0].has_min = both[1].has_max = true;
    both[0].min = 8;
    both[1].max = 5;
    /* 02:30 exists twice on a Sunday only */
    cr_expect_not(as_schedules_find_conflict(both, 2, 1, 10, around, &conflict));
    both[1].days = 0x7f;
    cr_assert(as_schedules_find_conflict(both, 2, 1, 10, around, &conflict));
    cr_expect_eq(conflict.at.us, at("2026-10-25T00:30:00Z").us);
    cr_expect_eq(conflict.min_of, 0);
    cr_expect_eq(conflict.max_of, 1);
    /* a third one saves it */
    const struct as_schedule three[] = {
        both[0], both[1], bound("2026-10-01T00:00:00Z", "2026-11-01T00:00:00Z", -1, 9)};
    cr_expect_not(as_schedules_find_conflict(three, 3, 1, 10, around, &conflict));
    /* with the target's own bounds; long after the year around */
    const struct as_schedule low = bound("2031-01-01T00:00:00Z", "2031-02-01T00:00:00Z", -1, 2);
    cr_assert(as_schedules_find_conflict(&low, 1, 3, 10, around, &conflict));
    cr_expect_eq(conflict.min_of, AS_SCHEDULES_MAX);
    cr_expect_eq(conflict.max_of, 0);
    const struct as_schedule high = bound("2031-01-01T00:00:00Z", "2031-02-01T00:00:00Z", 12, -1);
    cr_assert(as_schedules_find_conflict(&high, 1, 3, 10, around, &conflict));
    cr_expect_eq(conflict.min_of, 0);
    cr_expect_eq(conflict.max_of, AS_SCHEDULES_MAX);
}
