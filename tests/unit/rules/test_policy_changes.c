/*
 * Changes of a few policies: what the set and the engine make of the changes alone is the same as
 * what they make of all policies. Random changes of policies that claim a few objects, and random
 * alerts between them.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/random.h>
#include <alertscaler/decide/ruleset.h>
#include <alertscaler/engine/engine.h>
#include <alertscaler/model/labels.h>
#include <alertscaler/monitoring/payload.h>
#include <alertscaler/rules/policy_set.h>

#define OBJECT                                                                                     \
    "{\"apiVersion\":\"alertscaler.io/v1alpha1\",\"kind\":\"ScalingPolicy\",\"metadata\":{"        \
    "\"namespace\":\"shop\",\"name\":\"p%02d\",\"uid\":\"uid-%d-%d\",\"generation\":%d,"           \
    "\"creationTimestamp\":\"2026-01-%02dT00:00:00Z\",\"annotations\":{%s}},\"spec\":{\"target\":" \
    "{"                                                                                            \
    "\"kubernetes\":{\"kind\":\"Deployment\",\"name\":\"web-%d\"},\"min\":1,\"max\":%d},"          \
    "\"rules\":[{"                                                                                 \
    "\"name\":\"a\",\"match\":[\"alertname=\\\"A%d\\\"\",\"x=~\\\"%s\\\"\"],\"scaleUp\":{\"by\":"  \
    "1}},{"                                                                                        \
    "\"name\":\"b\",\"always\":true,\"track\":{\"value\":\"5\",\"query\":\"load%d\"}}]},"          \
    "\"status\":{}}"

static const struct as_ruleset no_files = {.digest = "files"};
static const struct as_settings settings = {
    .objects = {.is_enabled = true,
                .max_policies = 8, /* now and then too many */
                .rules_per_policy = 2,
                .enforces_namespace_label = true,
                .namespace_label = "namespace",
                .min_every_us = 15 * AS_US_PER_S,
                .allows_unrestricted_queries = true},
    .prometheus = {.url = "http://prometheus:9090"},
};

static as_mono_time now;

struct random_object {
    int life, day, generation, web, rule; /* generation 0: there is none */
    bool is_paused, is_broken;
};

enum { OBJECTS = 12, WEBS = 4 };
static struct random_object objects[OBJECTS];

static void put_random(struct as_policy_set *set, int i)
{
    const struct random_object *object = &objects[i];
    AS_CLEANUP(as_free_p)
    char *text = as_xasprintf(OBJECT, i, i, object->life, object->generation, object->day,
                              object->is_paused ? "\"alertscaler.io/paused\":\"busy\"" : "",
                              object->web, object->is_broken ? 0 : 9, object->rule,
                              object->rule == 0 ? ".*" : "1|2", object->rule);
    struct as_error error = AS_ERROR_INIT;
    bool is_changed;
    cr_assert_eq(as_policy_set_put(set, text, strlen(text), now, &is_changed, &error), 0);
}

static const struct as_ruleset *join(struct as_policy_set *set, int64_t minutes)
{
    return as_policy_set_join(
        set, &(struct as_policy_join){&settings, &no_files, {minutes * AS_US_PER_MIN}, true});
}

static void change_object(struct as_random *random, struct as_policy_set *set, int i)
{
    struct random_object *object = &objects[i];
    const uint64_t what = as_random_get_below(random, 6);
    if (object->generation == 0)
        *object = (struct random_object){.life = object->life + 1,
                                         .day = 1 + (int)as_random_get_below(random, 5)};
    if (what == 0 && object->generation > 0) {
        char name[16];
        (void)snprintf(name, sizeof(name), "p%02d", i);
        cr_expect(as_policy_set_remove(set, "shop", name));
        object->generation = 0;
        return;
    }
    if (what == 1 && object->generation > 0) {
        object->is_paused = !object->is_paused;
    } else {
        object->generation++;
        object->web = (int)as_random_get_below(random, WEBS);
        object->rule = (int)as_random_get_below(random, 3);
        object->is_broken = as_random_get_below(random, 4) == 0;
    }
    put_random(set, i);
}

static void expect_same_rules(const struct as_ruleset *one, const struct as_ruleset *all)
{
    cr_assert_eq(one->target_count, all->target_count);
    cr_assert_eq(one->rule_count, all->rule_count);
    cr_expect_str_eq(one->digest, all->digest);
    for (size_t i = 0; i < one->target_count; i++) {
        const struct as_policy_terms *terms = one->targets[i]->policy;
        const struct as_policy_terms *other = all->targets[i]->policy;
        cr_expect_str_eq(one->targets[i]->name, all->targets[i]->name);
        cr_expect_eq(terms->generation, other->generation);
        cr_expect_eq(terms->paused, other->paused);
    }
    for (size_t i = 0; i < one->rule_count; i++) {
        cr_expect_str_eq(one->rules[i]->name, all->rules[i]->name);
        cr_expect_str_eq(one->rules[i]->target->name, all->rules[i]->target->name);
    }
}

/* The index follows the changes; another one is made of all rules. */
static void expect_same_matches(struct as_rule_index *index, const struct as_ruleset *all)
{
    static const char *const values[] = {"0", "1", "3"};
    struct as_rule_index *fresh = as_rule_index_new(all);
    for (size_t i = 0; i < 9; i++) {
        const char name[] = {'A', (char)('0' + i / 3), '\0'};
        const struct as_label pairs[] = {
            {"alertname", name}, {"namespace", "shop"}, {"x", values[i % 3]}};
        AS_CLEANUP(as_labels_free_p) struct as_labels *labels = NULL;
        const struct as_rule *const *some, *const *others;
        cr_assert_eq(as_labels_new(pairs, 3, &labels), 0);
        const size_t count = as_rule_index_match(index, labels, NULL, 0, &some);
        cr_assert_eq(as_rule_index_match(fresh, labels, NULL, 0, &others), count);
        for (size_t k = 0; k < count; k++)
            cr_expect_eq(some[k], others[k]);
    }
    as_rule_index_free(fresh);
}

static void follow(struct as_rule_index **index_io, const struct as_ruleset *next, uint64_t before)
{
    if (next->base == 0 || next->base != before) {
        as_rule_index_free(*index_io);
        *index_io = as_rule_index_new(next);
        return;
    }
    for (size_t i = 0; i < next->removed_count; i++)
        for (size_t k = 0; k < next->removed[i]->rule_count; k++)
            as_rule_index_remove(*index_io, next->removed[i]->rules[k]);
    for (size_t i = 0; i < next->added_count; i++)
        for (size_t k = 0; k < next->added[i]->rule_count; k++)
            as_rule_index_add(*index_io, next->added[i]->rules[k]);
}

/* ---- two engines, of which one is told the changes alone ---- */

static struct as_engine *engines[2];
static int64_t at;

static void step_both(struct as_event event, const struct as_ruleset *const rules[2])
{
    static const struct as_engine_config config = {.incident_expiry_us = AS_US_PER_DAY, .seed = 1};
    at += AS_US_PER_S;
    for (size_t i = 0; i < 2; i++) {
        struct as_effects effects;
        event.mono.us = event.wall.us = at;
        event.config = config;
        event.ruleset = rules ? rules[i] : NULL;
        if (!engines[i])
            engines[i] = as_engine_new(&config, rules[i]);
        as_engine_step(engines[i], &event, &effects);
    }
}

static void notify_both(struct as_random *random)
{
    const char name[] = {'A', (char)('0' + as_random_get_below(random, 3)), '\0'};
    const char value[] = {(char)('0' + as_random_get_below(random, 3)), '\0'};
    const struct as_label pairs[] = {{"alertname", name}, {"namespace", "shop"}, {"x", value}};
    AS_CLEANUP(as_labels_free_p) struct as_labels *labels = NULL;
    AS_CLEANUP(as_labels_free_p) struct as_labels *annotations = NULL;
    cr_assert_eq(as_labels_new(pairs, 3, &labels), 0);
    cr_assert_eq(as_labels_new(NULL, 0, &annotations), 0);
    const bool fires = as_random_get_below(random, 3) > 0;
    struct as_alert alert = {.status = fires ? AS_ALERT_FIRING : AS_ALERT_RESOLVED,
                             .digest = as_labels_get_digest(labels),
                             .fingerprint = as_labels_get_fingerprint(labels),
                             .starts_at = {at},
                             .ends_at = {at},
                             .labels = labels,
                             .annotations = annotations};
    struct as_notification notification = {.receiver = (char[]){"scaler"},
                                           .group_key = (char[]){""},
                                           .reason = (char[]){""},
                                           .alerts = &alert,
                                           .alert_count = 1,
                                           .remote = (char[]){""},
                                           .credential = (char[]){""},
                                           .traceparent = (char[]){""},
                                           .id = "N0000000000000000000000001"};
    step_both((struct as_event){.kind = AS_EVENT_NOTIFICATION,
                                .call_id = 1,
                                .notification = &notification},
              NULL);
}

struct seen_target {
    char id[64];
    const struct as_target_config *config;
    size_t open;
    bool is_paused;
};

struct seen {
    const struct as_engine *engine;
    struct seen_target targets[2 * WEBS];
    size_t count;
};

static void see(void *context, const struct as_target_view *view)
{
    struct seen *seen = context;
    const size_t open = as_engine_count_open(seen->engine, view->id); /* with `always` rules */
    if (open == 0 && !view->config)
        return; /* one of them may forget it sooner */
    struct seen_target *target = &seen->targets[seen->count++];
    (void)snprintf(target->id, sizeof(target->id), "%s", view->id);
    target->config = view->config;
    target->open = open;
    target->is_paused = view->pause.is_set;
}

/* What is bound to each object, its entry, and its pause. */
static void expect_same_targets(void)
{
    struct seen seen[2] = {{.engine = engines[0]}, {.engine = engines[1]}};
    for (size_t i = 0; i < 2; i++)
        as_engine_visit_targets(engines[i], (as_mono_time){at}, (as_wall_time){at}, see, &seen[i]);
    cr_assert_eq(seen[0].count, seen[1].count);
    for (size_t i = 0; i < seen[0].count; i++) {
        const struct seen_target *one = &seen[0].targets[i], *all = &seen[1].targets[i];
        cr_assert_str_eq(one->id, all->id);
        cr_assert_eq(one->config, all->config, "%s", one->id);
        cr_assert_eq(one->open, all->open, "%s: %zu, %zu", one->id, one->open, all->open);
        cr_assert_eq(one->is_paused, all->is_paused, "%s", one->id);
    }
}

static void run(uint64_t seed, bool with_engines)
{
    struct as_policy_set *set = as_policy_set_new();
    struct as_rule_index *index = NULL;
    struct as_random random;
    struct as_ruleset whole[2];
    uint64_t serial = 0;
    size_t based = 0;
    as_random_init(&random, seed);
    for (int round = 0; round < 400; round++) {
        const struct as_ruleset *one = NULL;
        now.us += AS_US_PER_MIN;
        for (uint64_t changes = as_random_get_below(&random, 4); changes > 0; changes--)
            change_object(&random, set, (int)as_random_get_below(&random, OBJECTS));
        for (int late = 0; late <= 90; late += 90) { /* then former generations are not kept */
            one = join(set, 100 * round + late);
            follow(&index, one, serial);
            serial = one->serial;
            based += one->base != 0;
            whole[late / 90] = *one;
            whole[late / 90].base = 0;
            if (with_engines) {
                step_both(
                    (struct as_event){.kind = round + late == 0 ? AS_EVENT_START : AS_EVENT_RULES},
                    (const struct as_ruleset *const[]){one, &whole[late / 90]});
                expect_same_targets();
                notify_both(&random);
                expect_same_targets();
            }
        }
        struct as_policy_set *fresh = as_policy_set_new();
        for (int i = 0; i < OBJECTS; i++)
            if (objects[i].generation > 0)
                put_random(fresh, i);
        const struct as_ruleset *all = join(fresh, 100 * round);
        for (size_t i = 0; i < all->target_count; i++)
            cr_expect_eq(as_policy_set_find(set, all->targets[i]->name)->reason,
                         as_policy_set_find(fresh, all->targets[i]->name)->reason);
        expect_same_rules(one, all);
        expect_same_matches(index, one);
        as_policy_set_free(fresh);
    }
    cr_expect_gt(based, 500, "%zu", based);
    for (size_t i = 0; i < 2; i++)
        engines[i] = as_engine_free(engines[i]);
    as_rule_index_free(index);
    as_policy_set_free(set);
}

Test(policy_changes, a_join_of_changes_is_that_of_all)
{
    run(7, false);
}

Test(policy_changes, an_engine_that_gets_changes_binds_as_one_that_gets_all)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        memset(objects, 0, sizeof(objects));
        run(seed, true);
    }
}
