/*
 * A story: five alerts for five targets in a world without trouble. What it comes to (the sizes,
 * and how many changing requests each target got) is the same in every telling of it:
 *
 *   kill     with one kill at any boundary of a commit and a request, whether or not the commit
 *            that was under way has been kept
 *   loop     with a daemon that is killed again and again
 *   lowered, renamed, moved, gone   with other rules from any such boundary on, and the former ones
 *            back 90 seconds later: maximums below the sizes; targets' entries under other names;
 *            entries that lead to other objects; no targets at all, as when a cluster is taken out
 *            of the configuration. What a rule that leads elsewhere should have given back
 *            meanwhile stays.
 *
 * Each target has one rule and each rule one alert, so that the number of steps depends on no
 * time. check.c holds cooldowns by the true time, in every telling.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STORY_US   (40 * MINUTE)
#define RESOLVED   (15 * MINUTE) /* the alert of r4 */
#define GIVEN_BACK (20 * MINUTE) /* and all else is done */
#define DOWN_US    (2 * SECOND)  /* longer than a request is on its way */
#define OTHERS_US  (90 * SECOND) /* other rules */
#define LOOP_US    (15 * MINUTE) /* of kills */
#define FIRING     5
#define TARGETS    5

enum telling {
    TELL_PLAIN,
    TELL_KILL,
    TELL_LOOP,
    TELL_LOWERED,
    TELL_RENAMED,
    TELL_MOVED,
    TELL_GONE
};

#define OTHER_RULES (TELL_GONE - TELL_LOWERED + 1) /* by turns: a story's seed begins elsewhere */

static const char *const telling_names[] = {"plain",   "kill",  "loop", "lowered",
                                            "renamed", "moved", "gone"};
static const char *const names[TARGETS] = {"web", "db", "pool", "cache", "queue"};
static const int32_t first_sizes[TARGETS] = {3, 4, 8, 3, 3};

struct story {
    enum telling telling;
    bool is_kept;            /* of a kill */
    uint64_t at;             /* the boundary at which it happens */
    uint64_t boundaries;     /* so far */
    bool is_due, gives_back; /* not what is left elsewhere */
    int32_t sizes[TARGETS];
    unsigned requests[TARGETS];
};

static const struct spec rules = {
    .targets = {{.name = "web", .min = 1, .max = 9, .up = 60, .down = 60},
                {.name = "db", .min = 1, .max = 12, .up = 30, .down = 30},
                {.name = "pool", .is_group = true, .min = 2, .max = 10, .up = 30, .down = 60},
                {.name = "cache", .min = 1, .max = 10},
                {.name = "queue", .min = 1, .max = 12, .up = 60, .down = 60}},
    .rules = {{.name = "r0", .match = {"alertname=A0"}, .target = "web", .up = 2},
              {.name = "r1",
               .match = {"alertname=A1"},
               .target = "db",
               .up_percent = 50,
               .every = 45,
               .max_steps = 2},
              {.name = "r2", .match = {"alertname=A2"}, .target = "pool", .down = 1},
              {.name = "r3", .match = {"alertname=A3"}, .target = "cache", .has_to = true, .to = 7},
              {.name = "r4",
               .match = {"alertname=A4"},
               .target = "queue",
               .up = 3,
               .guard = "none",
               .on_resolved = {.give_back = true, .after = 60, .step_percent = 50}}},
};

static struct spec make_other_rules(enum telling telling)
{
    static const char *const renamed[TARGETS] = {"renamed-web", "renamed-db", "renamed-pool",
                                                 "renamed-cache", "renamed-queue"};
    static const char *const moved[TARGETS] = {"moved-web", "moved-db", "moved-pool", "moved-cache",
                                               "moved-queue"};
    struct spec spec = rules;
    for (size_t i = 0; i < TARGETS; i++) {
        if (telling == TELL_LOWERED)
            spec.targets[i].max = 2;
        if (telling == TELL_RENAMED) {
            spec.targets[i].name = spec.rules[i].target = renamed[i];
            spec.targets[i].address = names[i];
        }
        if (telling == TELL_MOVED)
            spec.targets[i].address = moved[i];
    }
    return telling == TELL_GONE ? (struct spec){0} : spec;
}

static int find_target(const char *id)
{
    const char *name = strrchr(id, '/') + 1;
    int at = 0;
    while (at < TARGETS && strcmp(names[at], name) != 0)
        at++;
    return at;
}

static void make_target(struct world *world, int at)
{
    char id[128];
    (void)snprintf(id, sizeof(id),
                   rules.targets[at].is_group ? "node_group/mine/%s"
                                              : "kubernetes/default/apps/v1/Deployment/shop/%s",
                   names[at]);
    struct server_target *target = server_find(world, id);
    target->has_no_version = false;
    target->own_min = target->own_max = -1;
    target->size = first_sizes[at];
}

/* Between the settings of the daemon and its start. */
void stories_prepare(struct world *world)
{
    if (!world->story)
        return;
    struct daemon *daemon = &world->daemon;
    daemon->spec = rules;
    daemon->config.limits = (struct as_limits){0};
    daemon->config.resync_us = 0; /* news only by notifications */
    for (int i = 0; i < TARGETS; i++)
        make_target(world, i);
}

void stories_note_boundary(struct world *world)
{
    struct story *story = world->story;
    if (story && world->now < GIVEN_BACK && ++story->boundaries == story->at)
        story->is_due = true;
}

void stories_note_request(struct world *world, const struct server_target *target)
{
    const int at = find_target(target->id);
    if (world->story && at < TARGETS)
        world->story->requests[at]++;
}

static void on_resolved(struct world *world, void *subject, uint64_t argument)
{
    struct alert *alert = subject;
    (void)argument;
    alert->firing = false;
    alert->ends_at = true_wall(world);
}

static void on_up(struct world *world, void *subject, uint64_t argument)
{
    (void)subject;
    (void)argument;
    daemon_open_later(world, 1);
}

static void die(struct world *world, bool is_kept)
{
    faults_kill(world, false, is_kept);
    later(world, DOWN_US, on_up, NULL, 0);
}

static void on_loop(struct world *world, void *subject, uint64_t argument)
{
    (void)subject;
    (void)argument;
    if (world->daemon.shell)
        die(world, chance(world, 500));
    if (world->now < LOOP_US)
        later(world, DOWN_US + between(world, 1, 12 * SECOND), on_loop, NULL, 0);
}

static void on_undone(struct world *world, void *subject, uint64_t argument)
{
    (void)subject;
    (void)argument;
    daemon_set_rules(world, &rules);
    daemon_poll(world);
}

static void happen(struct world *world)
{
    struct story *story = world->story;
    story->is_due = false;
    if (story->telling == TELL_KILL) {
        die(world, story->is_kept);
        return;
    }
    story->gives_back =
        story->telling < TELL_MOVED || world->now + OTHERS_US < RESOLVED || world->now > GIVEN_BACK;
    const struct spec spec = make_other_rules(story->telling);
    daemon_set_rules(world, &spec);
    daemon_poll(world);
    later(world, OTHERS_US, on_undone, NULL, 0);
}

static void begin(struct world *world)
{
    world->is_calm = true;
    alertmanager_start(world);
    world->group_interval = 10 * SECOND;
    world->repeat_interval = 2 * MINUTE;
    server_start(world);
    source_start(world);
    for (int i = 0; i < FIRING; i++) {
        world->alerts[i].firing = true;
        world->alerts[i].starts_at = true_wall(world);
    }
    daemon_start(world);
    later(world, RESOLVED, on_resolved, &world->alerts[FIRING - 1], 0);
    if (world->story->telling == TELL_LOOP)
        later(world, SECOND, on_loop, NULL, 0);
}

/* False where a promise did not hold on the way. */
static bool tell(uint64_t seed, struct story *story)
{
    static struct world the_world;
    struct world *world = &the_world;
    *world = (struct world){.seed = seed, .story = story};
    RB_INIT(&world->events);
    as_random_init(&world->random, seed);
    begin(world);
    while (world->now < STORY_US && !world->is_failed) {
        run_take_step(world);
        if (story->is_due)
            happen(world);
    }
    if (!world->daemon.shell || as_store_memory_get_count(world->daemon.state, AS_STORE_INTENT) > 0)
        fail(world, "it has come to no end");
    for (int i = 0; i < TARGETS; i++)
        story->sizes[i] = world->targets[i].size;
    const bool is_good = !world->is_failed;
    if (!is_good)
        printf("FAILED story %llu: %s\n", (unsigned long long)seed, world->failure);
    run_world_deinit(world);
    return is_good;
}

/* Against the first telling. */
static int tell_as(uint64_t seed, const struct story *plain, struct story story)
{
    int failed = !tell(seed, &story);
    for (int i = 0; i < TARGETS; i++) {
        const bool is_back = i < TARGETS - 1 || story.telling <= TELL_LOOP || story.gives_back;
        failed |= is_back
                      ? story.sizes[i] != plain->sizes[i] || story.requests[i] != plain->requests[i]
                      : story.sizes[i] < plain->sizes[i];
    }
    if (!failed)
        return 0;
    printf("FAILED story %llu, told as %s at boundary %llu%s:\n", (unsigned long long)seed,
           telling_names[story.telling], (unsigned long long)story.at,
           story.is_kept ? ", kept" : "");
    for (int i = 0; i < TARGETS; i++)
        printf("  %s: size %d instead of %d, by %u requests instead of %u\n", names[i],
               story.sizes[i], plain->sizes[i], story.requests[i], plain->requests[i]);
    return 1;
}

int stories_run(uint64_t seed)
{
    struct story plain = {.telling = TELL_PLAIN};
    if (!tell(seed, &plain))
        return 1;
    int failed = tell_as(seed, &plain, (struct story){.telling = TELL_LOOP});
    for (uint64_t at = 1; at <= plain.boundaries; at++) {
        for (int is_kept = 0; is_kept < 2; is_kept++)
            failed += tell_as(seed, &plain,
                              (struct story){.telling = TELL_KILL, .is_kept = is_kept, .at = at});
        const enum telling telling = TELL_LOWERED + (enum telling)((at + seed) % OTHER_RULES);
        failed += tell_as(seed, &plain, (struct story){.telling = telling, .at = at});
    }
    printf("story %llu: %llu boundaries, %d tellings with another end\n", (unsigned long long)seed,
           (unsigned long long)plain.boundaries, failed);
    return failed;
}
