/*
 * Loads that have made other autoscalers swing: young pods that cost more, a single wrong reading;
 * and alerts that are repeated or reordered.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/random.h>

#include "engine_harness.h"

/* HPA's defaults. */
static const struct as_behavior hpa = {
    .up = {.policy_count = 2,
           .policies = {{AS_POLICY_PODS, 4, 15 * AS_US_PER_S},
                        {AS_POLICY_PERCENT, 100, 15 * AS_US_PER_S}}},
    .down = {.window_us = 300 * AS_US_PER_S,
             .policy_count = 1,
             .policies = {{AS_POLICY_PERCENT, 100, 15 * AS_US_PER_S}}},
};

static void answer(struct harness *harness, double value)
{
    harness->queries[0] = (struct query_script){"load", {.value = value}};
}

/* ---- Constant load on pods that cost 8 while they are young, and then 3. */

#define PODS_MAX 64
#define WARM_US  (300 * AS_US_PER_S)
#define LOAD     10 /* of the target's pods together, in units that cost 8, or 3, each */
#define GOAL     5
#define COLD     16 /* pods: 10 x 8 / 5 */
#define WARM     6  /* 10 x 3 / 5 */
#define MIN      2
#define MAX      40
#define LOOK_S   15

struct crowd {
    as_mono_time born[PODS_MAX]; /* the oldest first, which are the last to go */
    int32_t count;
};

static void evaluation(struct crowd *fleet, const struct harness *harness, int32_t size)
{
    cr_assert_leq(size, PODS_MAX);
    for (; fleet->count < size; fleet->count++)
        fleet->born[fleet->count] = harness->mono;
    fleet->count = size;
}

/* The pods share the load, or cost that much each, whatever the load. */
static double get_cost(const struct crowd *fleet, const struct harness *harness, bool is_shared)
{
    double cost = 0;
    for (int32_t i = 0; i < fleet->count; i++)
        cost += harness->mono.us - fleet->born[i].us < WARM_US ? 8 : 3;
    return is_shared ? LOAD * cost / fleet->count : cost;
}

/* A turn is a step after which it goes the other way: one up and one down for each time that all
 * pods are young. */
static void check_no_swing(const struct spec *spec, int32_t first, bool is_shared, int64_t rollout)
{
    struct harness h = {0};
    struct crowd fleet = {0};
    int turns = 0, direction = 0;
    int32_t size = first;
    harness_start(&h, spec);
    harness_target(&h, "web")->size = first;
    evaluation(&fleet, &h, first);
    answer(&h, get_cost(&fleet, &h, is_shared));
    fire(&h, "Busy", 990);
    for (int64_t at = 0; at < 3 * 3600; at += LOOK_S) {
        tick(&h, LOOK_S);
        const int32_t now = harness_target(&h, "web")->size;
        const int way = (now > size) - (now < size);
        turns += way != 0 && way != direction;
        direction = way ? way : direction;
        size = now;
        cr_assert(!is_shared || (size > MIN && size < MAX), "%d after %d s", size, (int)at);
        if (at == rollout)
            fleet.count = 0;
        evaluation(&fleet, &h, size);
        answer(&h, get_cost(&fleet, &h, is_shared));
    }
    cr_assert_leq(turns, rollout > 0 ? 4 : 2, "%d turns", turns);
    cr_assert_eq(size, is_shared ? WARM : MIN);
    harness_stop(&h);
}

static struct spec make_tracking(const struct as_behavior *behavior, int64_t up, int64_t down)
{
    return (struct spec){
        .targets =
            {{.name = "web", .min = 2, .max = 40, .up = up, .down = down, .behavior = behavior}},
        .rules = {{.name = "load",
                   .match = {"alertname=Busy"},
                   .target = "web",
                   .source = {.query = "load"},
                   .track_average = GOAL,
                   .every = LOOK_S}},
    };
}

Test(engine_load, pods_that_cost_more_while_they_are_young_do_not_make_it_swing)
{
    const struct spec behaving = make_tracking(&hpa, 0, 0), locked = make_tracking(NULL, 180, 300);
    static const int32_t firsts[] = {3, WARM, COLD, 30};
    for (size_t i = 0; i < AS_ARRAY_SIZE(firsts) * 4; i++) {
        const int32_t first = firsts[i % AS_ARRAY_SIZE(firsts)];
        const bool is_shared = i & 4;
        const int64_t rollout = i & 8 ? 5400 : 0;
        check_no_swing(&behaving, first, is_shared, rollout);
        check_no_swing(&locked, first, is_shared, rollout);
    }
}

/* ---- One reading that reports next to nothing, and so asks for the minimum. */

Test(engine_load, one_single_reading_of_the_minimum_moves_nothing)
{
    const struct spec spec = make_tracking(&hpa, 0, 0);
    for (int64_t at = LOOK_S; at < 900; at += LOOK_S) {
        WITH(h, spec);
        answer(&h, 50);
        harness_target(&h, "web")->size = 10;
        fire(&h, "Busy", 990);
        tick(&h, at);
        answer(&h, 1);
        tick(&h, LOOK_S);
        const char *text = said(&h);
        cr_assert_null(strstr(text, "scale "), "by a reading at %d s: %s", (int)at, text);
        cr_assert_not_null(strstr(text, "stabilized"), "it has not been seen");
        answer(&h, 50);
        if (at % 4 == 0) /* nor does a restart forget what was wanted before */
            harness_crash(&h, 5);
        tick(&h, 900);
        cr_assert_null(strstr(said(&h), "scale "), "after a reading at %d s", (int)at);
        harness_stop(&h);
    }
}

/* ---- Readings that are no load, and one that is more than any size can serve. */

Test(engine_load, a_reading_that_is_no_load_moves_nothing)
{
    static const double readings[] = {NAN, INFINITY, -INFINITY, -1, -214748365};
    struct spec spec = make_tracking(NULL, 0, 0);
    spec.targets[0].min = 0;
    for (size_t i = 0; i < AS_ARRAY_SIZE(readings); i++) {
        for (int32_t size = 0; size < 9; size += 4) {
            WITH(h, spec);
            harness_target(&h, "web")->size = size;
            answer(&h, readings[i]);
            fire(&h, "Busy", 990);
            tick(&h, 3600);
            const char *text = said(&h);
            cr_assert(strstr(text, "metric_unavailable"), "%g: %s", readings[i], text);
            cr_assert_null(strstr(text, "scale "), "%g at %d", readings[i], size);
            harness_stop(&h);
        }
    }
}

Test(engine_load, more_than_any_size_can_serve_ends_at_the_maximum)
{
    struct spec spec = make_tracking(NULL, 0, 0);
    spec.targets[0].min = 0;
    spec.rules[0].track_average = 0.1;
    for (int32_t size = 0; size < 9; size += 4) {
        WITH(h, spec);
        harness_target(&h, "web")->size = size;
        answer(&h, 214748365);
        fire(&h, "Busy", 990);
        tick(&h, 3600);
        cr_assert_eq(harness_target(&h, "web")->size, MAX, "from %d", size);
        harness_stop(&h);
    }
}

/* ---- Notifications twice, and with their alerts in any order. */

#define REQUESTS_MAX 256
#define ALERTS       6

struct heard {
    char texts[REQUESTS_MAX][64];
    size_t count;
};

static void hear(struct harness *harness, const struct queued_call *call, bool is_done)
{
    struct heard *heard = harness->listener;
    cr_assert_lt(heard->count, REQUESTS_MAX);
    (void)snprintf(heard->texts[heard->count++], sizeof(heard->texts[0]), "%8lld %.32s %d>%d %d",
                   (long long)(harness->mono.us / AS_US_PER_S), strrchr(call->id, '/'),
                   call->request.from, call->request.to, is_done);
}

static struct spec make_random_rules(struct as_random *random)
{
    static const char *const matches[] = {"alertname=A", "alertname=B", "alertname=~\"A|C\""};
    static const char *const names[] = {"r0", "r1", "r2", "r3"};
    struct spec spec = {
        .targets = {{.name = "web", .min = 1, .max = 30}, {.name = "db", .min = 1, .max = 30}}};
    for (int i = 0; i < 2; i++) {
        spec.targets[i].up = (int64_t)as_random_get_below(random, 3) * 30;
        spec.targets[i].down = (int64_t)as_random_get_below(random, 3) * 30;
    }
    for (int i = 0; i < 4; i++) {
        struct rule_spec *rule = &spec.rules[i];
        rule->name = names[i];
        rule->match[0] = matches[as_random_get_below(random, 3)];
        rule->target = spec.targets[as_random_get_below(random, 2)].name;
        rule->max_steps = (uint32_t)as_random_get_below(random, 4);
        switch (as_random_get_below(random, 4)) {
        case 0: rule->up = 1 + (int64_t)as_random_get_below(random, 3); break;
        case 1: rule->up_percent = 50; break;
        case 2: rule->down = 1; break;
        default: rule->has_to = true; rule->to = 1 + (int64_t)as_random_get_below(random, 20);
        }
    }
    return spec;
}

static void shuffle(struct as_random *random, struct test_alert *alerts, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        const size_t at = (size_t)as_random_get_below(random, i);
        const struct test_alert other = alerts[at];
        alerts[at] = alerts[i - 1];
        alerts[i - 1] = other;
    }
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The story comes from `seed`; with `is_disturbed` each notification comes twice, in other orders.
 */
static void play(uint64_t seed, bool is_disturbed, struct heard *heard)
{
    static const char *const labels[ALERTS] = {"A,app=1", "A,app=2", "B,app=1",
                                               "B,app=2", "C,app=1", "C,app=2"};
    struct as_random story, disturbance;
    struct harness h = {0};
    int64_t since[ALERTS] = {0};
    as_random_init(&story, seed);
    as_random_init(&disturbance, seed + 1);
    const struct spec spec = make_random_rules(&story);
    harness_start(&h, &spec);
    h.on_request = hear;
    h.listener = heard;
    for (int i = 0; i < 40; i++) {
        struct test_alert alerts[ALERTS];
        size_t count = 0;
        tick(&h, 1 + (int64_t)as_random_get_below(&story, 60));
        const int64_t now = h.wall.us / AS_US_PER_S;
        for (int j = 0; j < ALERTS; j++) {
            if (as_random_get_below(&story, 3) > 0)
                continue;
            const bool is_end = since[j] > 0 && as_random_get_below(&story, 2) > 0;
            since[j] = since[j] > 0 ? since[j] : now;
            alerts[count++] = (struct test_alert){
                .labels = labels[j], .starts = since[j], .is_resolved = is_end, .ends = now};
            since[j] = is_end ? 0 : since[j];
        }
        for (int j = 0; j < (is_disturbed ? 2 : 1); j++) {
            if (is_disturbed)
                shuffle(&disturbance, alerts, count);
            harness_notify(&h, "scaler", alerts, count);
        }
    }
    tick(&h, 600);
    harness_stop(&h);
    /* two targets at the same moment have no order */
    qsort(heard->texts, heard->count, sizeof(heard->texts[0]), compare_texts);
}

Test(engine_load, notifications_in_any_order_and_twice_lead_to_the_same_requests)
{
    size_t requests = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        static struct heard once, twice;
        once.count = twice.count = 0;
        play(seed, false, &once);
        play(seed, true, &twice);
        for (size_t i = 0; i < once.count && i < twice.count; i++)
            cr_assert_str_eq(once.texts[i], twice.texts[i], "seed %d", (int)seed);
        cr_assert_eq(once.count, twice.count, "seed %d", (int)seed);
        requests += once.count;
    }
    cr_assert_gt(requests, 1000, "%zu requests", requests);
}
