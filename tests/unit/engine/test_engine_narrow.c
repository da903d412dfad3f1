/*
 * What a narrowed credential says touches nothing beyond its reach. Two worlds live through the
 * same random hours; in one of them a sender that may trigger `a-*` alone says whatever it likes,
 * of the same alerts too. What is observed, decided and done about the targets beyond it is the
 * same in both, to the word and the second.
 *
 * Limits over all targets, `after` and the memory for incidents are shared by design: there are
 * none here.
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/random.h>

#include "engine_harness.h"

#define SEEDS 300
#define STEPS 80

static const struct spec spec = {
    .targets = {{.name = "a1", .min = 1, .max = 50, .up = 60, .down = 60},
                {.name = "b1", .min = 1, .max = 50, .up = 60, .down = 60},
                {.name = "b2", .min = 1, .max = 50, .up = 30, .down = 45},
                {.name = "b3", .min = 1, .max = 50, .up = 90}},
    .rules = {{.name = "a-slow", .match = {"alertname=Slow"}, .target = "a1", .up = 2},
              {.name = "b-slow",
               .match = {"alertname=Slow"},
               .target = "b1",
               .up = 2,
               .max_steps = 2,
               .guard = "none",
               .on_resolved = {.give_back = true, .step_percent = 50}},
              {.name = "a-idle", .match = {"alertname=Idle"}, .target = "a1", .down = 1},
              {.name = "b-idle", .match = {"alertname=Idle"}, .target = "b2", .down = 1},
              {.name = "b-full", .match = {"alertname=Full"}, .target = "b2", .up = 3, .every = 40},
              {.name = "a-routed",
               .match = {"alertname=Full"},
               .receiver = "other",
               .target = "a1",
               .up = 1},
              {.name = "b-routed",
               .match = {"alertname=Slow"},
               .receiver = "other",
               .target = "b3",
               .up = 1},
              {.name = "b-sized",
               .match = {"alertname=Sized"},
               .target = "b3",
               .pass_through = true,
               .source = {.annotation = "summary"}}},
};

static const char *const a_rules[] = {"a-*"}, *const b_rules[] = {"b-*"};
static const struct as_scope scopes[] = {
    {.credential = "all"},
    {.credential = "a", .rules = a_rules, .rule_count = 1},
    {.credential = "b", .rules = b_rules, .rule_count = 1},
};
static const char *const labels[] = {"Slow", "Slow,shard=1", "Idle", "Full", "Sized", "Other"};
static const char *const receivers[] = {"scaler", "other", "nobody"};

struct run {
    struct harness worlds[2]; /* without the narrowed sender, and with it */
    struct as_buf told[2];    /* of targets beyond it */
    struct as_random random, strange;
    struct test_listed listed[AS_ARRAY_SIZE(labels)];
    bool firing[AS_ARRAY_SIZE(labels)];
    int64_t began[AS_ARRAY_SIZE(labels)];
    uint64_t seed;
};

static int64_t below(struct as_random *random, uint64_t limit)
{
    return (int64_t)as_random_get_below(random, limit);
}

static int64_t now(const struct run *run)
{
    return run->worlds[0].wall.us / AS_US_PER_S;
}

/* Phrases that name a target beyond it: "observe b1", "decided b2 ...", "scale ...", "acted ...".
 */
static void keep_told(struct run *run, int world)
{
    AS_CLEANUP(as_free_p) char *text = as_xstrdup(said(&run->worlds[world]));
    char *rest = text, *phrase;
    while ((phrase = strsep(&rest, ";"))) {
        phrase += *phrase == ' ';
        const char *space = strchr(phrase, ' ');
        if (space && space[1] == 'b' && strchr("123", space[2]))
            as_buf_printf(&run->told[world], "%lld: %s; ", (long long)now(run), phrase);
    }
}

static void compare(struct run *run)
{
    keep_told(run, 0);
    keep_told(run, 1);
    const bool is_same = run->told[0].size == run->told[1].size &&
                         (run->told[0].size == 0 ||
                          memcmp(run->told[0].data, run->told[1].data, run->told[0].size) == 0);
    cr_assert(is_same, "seed %llu: without it: %s\nwith it:    %s", (unsigned long long)run->seed,
              run->told[0].size ? run->told[0].data : "",
              run->told[1].size ? run->told[1].data : "");
    as_buf_clear(&run->told[0]);
    as_buf_clear(&run->told[1]);
}

static void both_notify(struct run *run, const char *credential, const char *receiver,
                        const struct test_alert *alert)
{
    for (int i = 0; i < 2; i++) {
        run->worlds[i].credential = credential;
        harness_notify(&run->worlds[i], receiver, alert, 1);
    }
}

/* An alert begins, goes on or ends, and somebody who may says so, or does not come to it. */
static void change(struct run *run)
{
    static const char *const sizes[] = {"7", "12", "none"};
    const size_t i = (size_t)below(&run->random, AS_ARRAY_SIZE(labels));
    const bool ends = run->firing[i] && below(&run->random, 3) == 0;
    if (!run->firing[i])
        run->began[i] = now(run) - below(&run->random, 20);
    run->firing[i] = !ends;
    const struct test_alert alert = {.labels = labels[i],
                                     .starts = run->began[i],
                                     .is_resolved = ends,
                                     .annotation = sizes[below(&run->random, 3)]};
    const char *who = below(&run->random, 2) ? "all" : "b";
    if (below(&run->random, 8) > 0)
        both_notify(run, who, receivers[below(&run->random, 2)], &alert);
}

/* Whatever it likes. */
static void interfere(struct run *run)
{
    struct as_random *random = &run->strange;
    struct test_alert alerts[3];
    const size_t count = 1 + (size_t)below(random, AS_ARRAY_SIZE(alerts));
    for (size_t i = 0; i < count; i++) {
        static const int64_t offsets[] = {-100000, -30, -1, 0, 60, 290, 310, 100000, 4000000000};
        alerts[i] = (struct test_alert){
            .labels = labels[below(random, AS_ARRAY_SIZE(labels))],
            .starts = now(run) + offsets[below(random, AS_ARRAY_SIZE(offsets))],
            .is_resolved = below(random, 3) == 0,
            .ends = now(run) + offsets[below(random, AS_ARRAY_SIZE(offsets))],
            .annotation = below(random, 2) ? "50" : "1",
            .fingerprint = (uint64_t)below(random, 3),
        };
    }
    run->worlds[1].credential = "a";
    harness_notify(&run->worlds[1], receivers[below(random, AS_ARRAY_SIZE(receivers))], alerts,
                   count);
}

static void list(struct run *run)
{
    size_t count = 0;
    for (size_t i = 0; i < AS_ARRAY_SIZE(labels); i++) {
        if (!run->firing[i] || below(&run->random, 10) == 0)
            continue;
        run->listed[count++] = (struct test_listed){.labels = labels[i],
                                                    .starts = run->began[i],
                                                    .is_suppressed = below(&run->random, 5) == 0,
                                                    .annotation = "9",
                                                    .receivers = "scaler,other"};
    }
    for (int i = 0; i < 2; i++)
        harness_list(&run->worlds[i], run->listed, count);
}

static void step_both(struct run *run)
{
    const int64_t seconds = below(&run->random, 100);
    switch (below(&run->random, 12)) {
    case 0: list(run); break;
    case 1:
        for (int i = 0; i < 2; i++)
            harness_crash(&run->worlds[i], 1);
        break;
    case 2:
        for (int i = 0; i < 2; i++)
            harness_reload(&run->worlds[i], &spec);
        break;
    default: change(run); break;
    }
    while (below(&run->strange, 2) == 0)
        interfere(run);
    compare(run);
    for (int i = 0; i < 2; i++)
        tick(&run->worlds[i], seconds);
    compare(run);
}

static void play(uint64_t seed)
{
    struct run *run = as_xcalloc(1, sizeof(*run));
    run->seed = seed;
    as_random_init(&run->random, seed);
    as_random_init(&run->strange, ~seed);
    for (int i = 0; i < 2; i++) {
        run->told[i] = AS_BUF_INIT((size_t)1 << 20);
        run->worlds[i].config = (struct as_engine_config){
            .scopes = scopes,
            .scope_count = AS_ARRAY_SIZE(scopes),
            .resync_us = seed % 2 ? 70 * AS_US_PER_S : 0,
        };
        harness_start(&run->worlds[i], &spec);
        run->worlds[i].config.incident_expiry_us = 20 * AS_US_PER_MIN;
        harness_reload(&run->worlds[i], &spec);
    }
    for (int i = 0; i < STEPS; i++)
        step_both(run);
    for (int i = 0; i < 2; i++) {
        harness_stop(&run->worlds[i]);
        as_buf_deinit(&run->told[i]);
    }
    free(run);
}

Test(engine_narrow, what_a_narrowed_credential_says_changes_nothing_beyond_it)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        play(seed);
}
