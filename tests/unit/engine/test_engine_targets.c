/*
 * One object is one target with one lock, in any spelling; a new object under the same name is a
 * new target.
 */
#include <errno.h>
#include <stdio.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/engine/state.h>

#include "engine_harness.h"

#define APPS       "kubernetes/default/apps/v1/Deployment/shop/web"
#define EXTENSIONS "kubernetes/default/extensions/v1beta1/Deployment/shop/web"

#define WEB_AS(spelling)                                                                           \
    {                                                                                              \
        .targets =                                                                                 \
            {{.name = "web", .version = (spelling), .min = 1, .max = 20, .up = 60, .down = 60}},   \
        .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2}},        \
    }
static const struct spec as_apps = WEB_AS("apps/v1");
static const struct spec as_extensions = WEB_AS("extensions/v1beta1");

static const struct spec by_label = {
    .targets = {{.name = "any",
                 .version = "{{ .Labels.api }}/v1",
                 .address = "{{ .Labels.app }}",
                 .allow = "*",
                 .max = 20,
                 .up = 60}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "any", .up = 2}},
};

static void pause(struct harness *harness, const char *target)
{
    harness_order(
        harness, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_PAUSE, .target = target});
}

/* --- spellings --- */

Test(engine_targets, two_spellings_of_an_object_have_one_lock)
{
    WITH(h, by_label);
    fire(&h, "Slow,api=apps,app=web", 990);
    cr_assert(strstr(said(&h), "acted web 4>6 applied"));
    fire(&h, "Slow,api=extensions,app=web", 990);
    cr_said(&h, "said queued; opened; answered; observe web; decided web 6 cooldown (8) by slow");
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_TARGET), 1);
    fire(&h, "Slow,api=batch,app=web", 990); /* another API group is another object */
    cr_assert(strstr(said(&h), "decided web 6>8 scaled by slow"));
    harness_stop(&h);
}

Test(engine_targets, two_spellings_of_a_url_have_one_lock)
{
    static const struct spec spec = {
        .targets = {{.name = "named", .url = "http://pool:80/groups/web/../web", .up = 60},
                    {.name = "any",
                     .url = "http://POOL/groups/{{ .Labels.app }}",
                     .allow = "*",
                     .up = 60}},
        .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "named", .up = 2},
                  {.name = "any", .match = {"alertname=Any"}, .target = "any", .up = 2}},
    };
    WITH(h, spec);
    fire(&h, "Any,app=web", 990);
    cr_said(&h, "said target_not_allowed; answered");
    fire(&h, "Slow", 990);
    cr_assert(strstr(said(&h), "acted web 4>6 applied"));
    harness_stop(&h);
}

/* The URL says which group it is. */
Test(engine_targets, names_of_a_group_give_it_no_further_locks)
{
    static const struct spec spec = {
        .targets = {{.name = "any",
                     .url = "http://pool/groups/web",
                     .group_name = "{{ .Labels.app }}",
                     .allow = "*",
                     .up = 60}},
        .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "any", .up = 2}},
    };
    WITH(h, spec);
    fire(&h, "Slow,app=a", 990);
    cr_assert(strstr(said(&h), "acted web 4>6 applied"));
    fire(&h, "Slow,app=b", 990);
    cr_said(&h, "said queued; opened; answered; observe web; decided web 6 cooldown (8) by slow");
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_TARGET), 1);
    harness_stop(&h);
}

Test(engine_targets, groups_of_one_name_are_several)
{
    static const struct spec spec = {
        .targets = {{.name = "any",
                     .url = "http://pool/groups/{{ .Labels.app }}",
                     .group_name = "{{ .Labels.team }}",
                     .allow = "*",
                     .up = 60}},
        .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "any", .up = 2}},
    };
    WITH(h, spec);
    fire(&h, "Slow,app=web,team=shop", 990);
    cr_assert(strstr(said(&h), "acted web 4>6 applied"));
    fire(&h, "Slow,app=db,team=shop", 990);
    cr_assert(strstr(said(&h), "acted db 4>6 applied"));
    pause(&h, "node_group/mine/http://POOL:80/groups/db");
    cr_said(&h, "pause db done; answered");
    pause(&h, "node_group/mine/shop"); /* it is the name of both */
    cr_said(&h, "pause ? unknown_target; answered");
    fire(&h, "Slow,app=web,team=other", 990);
    cr_assert(strstr(said(&h), "decided web 6 cooldown (8) by slow"));
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_TARGET), 2);
    harness_stop(&h);
}

#define NAMED                                                                                      \
    {                                                                                              \
        .name = "named", .url = "http://pool/groups/web/", .group_name = "workers", .up = 60       \
    }
#define ANY_GROUP                                                                                  \
    {                                                                                              \
        .name = "any", .url = "http://POOL/groups/{{ .Labels.app }}",                              \
        .group_name = "{{ .Labels.team }}", .allow = "*", .up = 60                                 \
    }
#define RULE_OF(entry)                                                                             \
    {                                                                                              \
        .name = (entry), .match = {"alertname=" entry}, .target = (entry), .up = 2                 \
    }

/* Also where its id is its name. */
Test(engine_targets, a_group_without_a_template_wins_by_its_url)
{
    static const struct spec alone = {.targets = {ANY_GROUP}, .rules = {RULE_OF("any")}};
    static const struct spec both = {.targets = {ANY_GROUP, NAMED},
                                     .rules = {RULE_OF("any"), RULE_OF("named")}};
    WITH(h, alone);
    fire(&h, "any,app=web,team=a", 990);
    cr_assert(strstr(said(&h), "acted web 4>6 applied"));
    harness_target(&h, "workers")->size = 6; /* the same group, by its name */
    harness_reload(&h, &both);
    (void)said(&h);
    fire(&h, "any,app=web,team=b", 990);
    cr_said(&h, "said target_not_allowed; answered");
    fire(&h, "named", 990); /* under the lock of before */
    cr_assert(strstr(said(&h), "decided workers 6 cooldown (8) by named"));
    pause(&h, "node_group/mine/http://pool:80/groups/web");
    cr_said(&h, "pause workers done; answered");
    harness_stop(&h);
}

/* Whoever came first. */
Test(engine_targets, the_entry_without_a_template_wins_in_every_spelling)
{
    static const struct spec both = {
        .targets = {{.name = "any",
                     .version = "extensions/v1beta1",
                     .address = "{{ .Labels.app }}",
                     .allow = "*",
                     .up = 60},
                    {.name = "web", .up = 60}},
        .rules = {{.name = "any", .match = {"alertname=Slow"}, .target = "any", .up = 2},
                  {.name = "web", .match = {"alertname=Full"}, .target = "web", .up = 3}},
    };
    static const struct spec alone = {
        .targets = {{.name = "any",
                     .version = "extensions/v1beta1",
                     .address = "{{ .Labels.app }}",
                     .allow = "*",
                     .up = 60}},
        .rules = {{.name = "any", .match = {"alertname=Slow"}, .target = "any", .up = 2}},
    };
    WITH(h, alone);
    fire(&h, "Slow,app=web", 990);
    cr_assert(strstr(said(&h), "acted web 4>6 applied"));
    harness_reload(&h, &both);
    (void)said(&h);
    fire(&h, "Slow,app=web,pod=b", 990);
    cr_said(&h, "said target_not_allowed; answered");
    fire(&h, "Full", 990); /* under the lock of before, as the target is the same */
    cr_said(&h, "said queued; opened; answered; observe web; decided web 6 cooldown (9) by web");
    harness_stop(&h);
}

static char asked[128];
static void note_request(struct harness *harness, const struct queued_call *call, bool is_done)
{
    (void)harness;
    (void)is_done;
    memcpy(asked, call->id, sizeof(asked));
}

Test(engine_targets, a_lock_outlasts_a_new_spelling_and_requests_go_to_the_address_as_written)
{
    WITH(h, as_extensions);
    h.on_request = note_request;
    fire(&h, "Slow", 990);
    cr_assert_str_eq(asked, EXTENSIONS);
    (void)said(&h);
    harness_reload(&h, &as_apps);
    cr_said(&h, "reloaded; observe web; decided web 6 cooldown (8) by slow");
    tick(&h, 60);
    cr_assert_str_eq(asked, APPS);
    cr_assert_eq(harness_target(&h, "web")->size, 8);
    harness_reload(&h, &as_extensions);
    (void)said(&h);
    harness_crash(&h, 1);
    cr_said(&h, "restarted; observe web; decided web 8 cooldown (10) by slow");
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_TARGET), 1);
    harness_stop(&h);
}

Test(engine_targets, steps_outlast_a_new_spelling)
{
    static const struct spec once[] = {
        {.targets = {{.name = "web", .version = "extensions/v1beta1", .max = 20}},
         .rules = {{.name = "slow",
                    .match = {"alertname=Slow"},
                    .target = "web",
                    .up = 2,
                    .max_steps = 1}}},
        {.targets = {{.name = "web", .max = 20}},
         .rules = {{.name = "slow",
                    .match = {"alertname=Slow"},
                    .target = "web",
                    .up = 2,
                    .max_steps = 1}}},
    };
    WITH(h, once[0]);
    fire(&h, "Slow", 990);
    harness_reload(&h, &once[1]);
    harness_crash(&h, 1);
    tick(&h, 600);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    harness_stop(&h);
}

Test(engine_targets, a_step_under_way_outlasts_a_new_spelling)
{
#define ONCE(spelling)                                                                             \
    {                                                                                              \
        .targets = {{.name = "web", .version = (spelling), .max = 20}}, .rules =                   \
        { {.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2, .max_steps = 1}  \
        }                                                                                          \
    }
    static const struct spec once = ONCE("apps/v1"), respelled = ONCE("extensions/v1beta1");
    static const struct spec idle = {
        .targets = {{.name = "web", .version = "extensions/v1beta1", .max = 20}},
        .rules = {{.name = "idle", .match = {"alertname=Idle"}, .target = "web", .up = 2}},
    };
    WITH(h, once);
    h.hold_calls = true;
    fire(&h, "Slow", 990);
    harness_settle_to_request(&h);
    harness_reload(&h, &idle);
    h.hold_calls = false;
    harness_settle(&h);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    harness_reload(&h, &respelled);
    tick(&h, 600);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    harness_stop(&h);
}

Test(engine_targets, an_order_goes_by_any_spelling)
{
    WITH(h, as_apps);
    pause(&h, EXTENSIONS);
    cr_said(&h, "pause web done; answered");
    fire(&h, "Slow", 990);
    cr_assert(strstr(said(&h), "decided web 4 paused (6) by slow"));
    harness_stop(&h);
}

Test(engine_targets, what_a_template_may_give_is_paused_before_it_comes_in_any_spelling)
{
    WITH(h, by_label);
    pause(&h, EXTENSIONS);
    cr_said(&h, "pause web done; answered");
    fire(&h, "Slow,api=apps,app=web", 990);
    cr_assert(strstr(said(&h), "decided web 4 paused (6) by slow"));
    harness_stop(&h);
}

/* --- stored rows --- */

static void plant(struct harness *harness, enum as_store_kind kind, const char *id,
                  struct as_buf *text)
{
    const struct as_store_change change = {kind, id, strlen(id), text->data, text->size};
    struct as_error error = AS_ERROR_INIT;
    cr_assert_eq(harness->store->commit(harness->store, &change, 1, &error), 0);
    as_buf_deinit(text);
}

static struct as_moment ago(const struct harness *harness, int64_t seconds)
{
    return (struct as_moment){{harness->mono.us - seconds * AS_US_PER_S},
                              {harness->wall.us - seconds * AS_US_PER_S}};
}

static void plant_target(struct harness *harness, const char *id, struct as_target_state state)
{
    struct as_buf text = AS_BUF_INIT(65536);
    AS_CLEANUP(as_free_p) char *key = as_target_key_make(id);
    state.id = id;
    state.stored_as = key;
    state.entry = "";
    state.keep_us = AS_US_PER_DAY;
    state.locks.last_down = state.locks.dry_last_up = state.locks.dry_last_down = state.born =
        AS_MOMENT_NEVER;
    state.locks.last_step_down = state.locks.last_return = AS_MOMENT_NEVER;
    as_state_encode_target(&state, harness->boot, &text);
    plant(harness, AS_STORE_TARGET, key, &text);
}

static void plant_intent(struct harness *harness, const char *id, int32_t to)
{
    static const struct as_target_field fields[] = {{"cluster", "default"},
                                                    {"apiVersion", "apps/v1"},
                                                    {"kind", "Deployment"},
                                                    {"namespace", "shop"},
                                                    {"name", "web"}};
    AS_CLEANUP(as_target_ref_free_p)
    struct as_target_ref *ref =
        as_target_ref_make(&as_target_kind_kubernetes, id, fields, AS_ARRAY_SIZE(fields));
    struct as_buf text = AS_BUF_INIT(65536);
    const struct as_intent_state state = {
        .ref = ref,
        .stored_as = ref->key,
        .action_id = "01J0000000000000000000000A",
        .decision_id = "01J0000000000000000000000B",
        .rule = "slow",
        .from = 4,
        .to = to,
        .version = "0",
        .at = ago(harness, 5),
    };
    as_state_encode_intent(&state, harness->boot, &text);
    plant(harness, AS_STORE_INTENT, ref->key, &text);
}

/* Earlier versions stored two spellings of one object as two targets: such a row is refused, as its
 * key would stay in the store. */
Test(engine_targets, a_row_under_another_spelling_is_refused)
{
    WITH(h, as_apps);
    const struct as_target_state state = {.id = EXTENSIONS, .stored_as = EXTENSIONS};
    cr_assert_eq(as_engine_restore_target(h.engine, &state), -EBADMSG);
    harness_stop(&h);
}

/* --- rows under the names of HTTP groups --- */

static const struct spec any_group = {
    .targets = {ANY_GROUP},
    .rules = {
        {.name = "any", .match = {"alertname=any"}, .target = "any", .up = 2, .max_steps = 1}}};

static void plant_named(struct harness *harness, const char *name, bool has_address,
                        struct as_target_state state)
{
    const struct as_target_field fields[] = {
        {"provider", "mine"}, {"url", "http://POOL/groups/web"}, {"name", name}};
    char id[64];
    (void)snprintf(id, sizeof(id), "node_group/mine/%s", name);
    AS_CLEANUP(as_target_ref_free_p)
    struct as_target_ref *ref =
        as_target_ref_make(&as_target_kind_node_group, id, fields, AS_ARRAY_SIZE(fields));
    state.ref = has_address ? ref : NULL;
    plant_target(harness, id, state);
}

Test(engine_targets, a_pause_under_the_name_of_a_group_holds_its_url)
{
    const struct as_moment never = AS_MOMENT_NEVER;
    for (size_t i = 0; i < 2; i++) {
        WITH(h, any_group);
        const struct as_pause_state pause_of = {.since = ago(&h, 10), .who = "ada", .reason = "x"};
        plant_named(&h, "a", i,
                    (struct as_target_state){.locks.last_up = never, .pause = &pause_of});
        plant_named(&h, "b", i, (struct as_target_state){.locks.last_up = never});
        harness_crash(&h, 0);
        fire(&h, "any,app=web,team=b", 990);
        fire(&h, "any,app=web,team=a", 990);
        (void)said(&h);
        tick(&h, 600);
        cr_assert_eq(harness_target(&h, "web")->size, 6, "the alert with the name b was first");
        harness_crash(&h, 1);
        fire(&h, "any,app=web,team=a,pod=c", 990);
        cr_assert(strstr(said(&h), "paused"), "%zu", i);
        harness_order(
            &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_RESUME,
                                             .target = "node_group/mine/http://pool/groups/web"});
        cr_assert(strstr(said(&h), "resume web done"));
        harness_stop(&h);
    }
}

Test(engine_targets, a_lock_under_the_name_of_a_group_is_that_of_its_url)
{
    for (size_t i = 0; i < 2; i++) {
        WITH(h, any_group);
        plant_named(&h, "a", i, (struct as_target_state){.locks.last_up = ago(&h, 20)});
        harness_crash(&h, 0);
        fire(&h, "any,app=web,team=a", 990);
        cr_assert(strstr(said(&h), "decided web 4 cooldown (6) by any"));
        tick(&h, 39);
        cr_assert_eq(harness_target(&h, "web")->size, 4);
        tick(&h, 1);
        cr_assert_eq(harness_target(&h, "web")->size, 6);
        harness_stop(&h);
    }
}

/* Operators may know the id that an earlier version printed. */
Test(engine_targets, an_order_by_the_name_of_a_group_reaches_its_url)
{
    WITH(h, any_group);
    pause(&h, "node_group/mine/a"); /* before its first alert */
    fire(&h, "any,app=web,team=a", 990);
    cr_assert(strstr(said(&h), "decided web 4 paused (6) by any"));
    harness_order(&h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_RESUME,
                                                   .target = "node_group/mine/a"});
    cr_assert(strstr(said(&h), "resume web done"));
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    pause(&h, "node_group/mine/a");
    cr_said(&h, "pause web done; answered");
    harness_stop(&h);
}

/* The id of an entry without a template is its name; with one it is the URL. */
Test(engine_targets, steps_locks_and_pauses_outlast_a_new_template)
{
    static const struct spec plain = {
        .targets = {{.name = "any", .url = "http://pool/groups/web", .group_name = "a", .up = 60}},
        .rules = {
            {.name = "any", .match = {"alertname=any"}, .target = "any", .up = 2, .max_steps = 1}}};
    WITH(h, plain);
    fire(&h, "any,app=web,team=a", 990);
    cr_assert(strstr(said(&h), "acted a 4>6 applied"));
    harness_target(&h, "web")->size = 6; /* the same group, by its URL */
    harness_reload(&h, &any_group);
    (void)said(&h);
    fire(&h, "any,app=web,team=a,pod=b", 990);
    cr_assert(strstr(said(&h), "decided web 6 cooldown (8) by any"));
    harness_reload(&h, &plain);
    pause(&h, "node_group/mine/a");
    harness_reload(&h, &any_group);
    tick(&h, 600);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    harness_stop(&h);
}

Test(engine_targets, a_stored_intent_is_looked_for_first)
{
    static const int32_t sizes[] = {6, 4};
    static const char *const expected[] = {
        "restarted; observe web; acted web 4>6 applied late",
        "restarted; observe web; acted web 4>6 superseded late",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(sizes); i++) {
        WITH(h, as_apps);
        plant_intent(&h, APPS, 6);
        harness_target(&h, "web")->size = sizes[i];
        harness_crash(&h, 0);
        cr_said(&h, expected[i]);
        cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_INTENT), 0);
        harness_stop(&h);
    }
}

Test(engine_targets, a_row_that_comes_twice_is_refused)
{
    WITH(h, as_apps);
    const struct as_moment never = AS_MOMENT_NEVER;
    AS_CLEANUP(as_free_p) char *key = as_target_key_make(EXTENSIONS);
    const struct as_target_state state = {.id = EXTENSIONS,
                                          .stored_as = key,
                                          .entry = "",
                                          .uid = "",
                                          .born = never,
                                          .locks.last_up = never,
                                          .locks.last_down = never,
                                          .locks.dry_last_up = never,
                                          .locks.dry_last_down = never,
                                          .locks.last_step_down = never,
                                          .locks.last_return = never};
    cr_assert_eq(as_engine_restore_target(h.engine, &state), 0);
    cr_assert_eq(as_engine_restore_target(h.engine, &state), -EEXIST);
    harness_stop(&h);
}

/* --- another object under the same name --- */

/* Deleted and made again, by somebody else. */
static void replace(struct harness *harness, int32_t size)
{
    struct virtual_target *web = harness_target(harness, "web");
    web->uid = "b";
    web->size = size;
    web->version += 100;
}

Test(engine_objects, another_object_has_no_lock_of_the_former)
{
    WITH(h, as_apps);
    harness_target(&h, "web")->uid = "a";
    fire(&h, "Slow", 990);
    tick(&h, 10);
    (void)said(&h);
    replace(&h, 3);
    fire(&h, "Slow,pod=b", 1009);
    cr_said(&h, "said queued; opened; answered; observe web; decided web 3>5 scaled by slow not a; "
                "scale web 3>5; acted web 3>5 applied");
    fire(&h, "Slow,pod=c", 1010); /* and a lock of its own */
    cr_assert(strstr(said(&h), "decided web 5 cooldown (7) by slow"));
    harness_stop(&h);
}

/* Though nothing can be due before the lock ends. */
Test(engine_objects, another_object_is_seen_within_a_minute)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .max = 20, .up = 3600}},
        .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2}},
    };
    WITH(h, spec);
    harness_target(&h, "web")->uid = "a";
    fire(&h, "Slow", 990);
    tick(&h, 70);
    replace(&h, 3);
    tick(&h, 60);
    cr_assert_eq(harness_target(&h, "web")->size, 5);
    harness_stop(&h);
}

/* An API server that serves what was: the former does not come back, and the lock stays. */
Test(engine_objects, a_stale_look_at_the_former_ends_no_lock)
{
    WITH(h, as_apps);
    harness_target(&h, "web")->uid = "a";
    tick(&h, 60);
    replace(&h, 3);
    fire(&h, "Slow", 1050);
    cr_assert_eq(harness_target(&h, "web")->size, 5);
    (void)said(&h);
    harness_target(&h, "web")->uid = "a";
    fire(&h, "Slow,pod=b", 1059);
    cr_assert(strstr(said(&h), "decided web 5 cooldown (7) by slow"));
    harness_target(&h, "web")->uid = "b";
    fire(&h, "Slow,pod=c", 1060);
    cr_assert(strstr(said(&h), "decided web 5 cooldown (7) by slow"));
    harness_stop(&h);
}

Test(engine_objects, a_lock_of_the_former_ends_over_a_restart_too)
{
    WITH(h, as_apps);
    harness_target(&h, "web")->uid = "a";
    fire(&h, "Slow", 990);
    (void)said(&h);
    replace(&h, 3);
    harness_crash(&h, 5);
    cr_assert(strstr(said(&h), "acted web 3>5 applied"));
    harness_crash(&h, 5);
    cr_said(&h, "restarted; observe web; decided web 5 cooldown (7) by slow");
    harness_stop(&h);
}

/* An earlier version did not store it; and an HTTP group, or a cloud's, has none. */
Test(engine_objects, what_was_stored_without_a_uid_is_the_same_object)
{
    WITH(h, as_apps);
    fire(&h, "Slow", 990);
    (void)said(&h);
    harness_target(&h, "web")->uid = "a";
    harness_crash(&h, 5);
    cr_said(&h, "restarted; observe web; decided web 6 cooldown (8) by slow");
    replace(&h, 3); /* but from now on it is known */
    harness_crash(&h, 5);
    cr_assert(strstr(said(&h), "acted web 3>5 applied"));
    harness_target(&h, "web")->uid = NULL;
    harness_crash(&h, 5);
    cr_said(&h, "restarted; observe web; decided web 5 cooldown (7) by slow");
    harness_stop(&h);
}

Test(engine_objects, an_intent_for_the_former_is_over_though_the_size_is_the_one_that_was_asked_for)
{
    for (int stored = 0; stored < 2; stored++) {
        WITH(h, as_apps);
        harness_target(&h, "web")->uid = "a";
        harness_script(&h,
                       (struct scale_script){.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true});
        fire(&h, "Slow", 990);
        resolve(&h, "Slow", 990);
        (void)said(&h);
        replace(&h, 6);
        if (stored)
            harness_crash(&h, 2);
        else
            tick(&h, 60);
        cr_assert(strstr(said(&h), "acted web 4>6 superseded late"));
        cr_assert_str_eq(h.last_message, "given up: another object has the name now");
        cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_INTENT), 0);
        fire(&h, "Slow", 1100);
        cr_assert(strstr(said(&h), "decided web 6>8 scaled by slow"));
        harness_stop(&h);
    }
}

/* A reload gave the target another unit: its sizes are other numbers now. */
Test(engine_objects, another_unit_of_the_same_object_keeps_the_lock)
{
    WITH(h, as_apps);
    struct virtual_target *web = harness_target(&h, "web");
    web->uid = "a*1Gi";
    fire(&h, "Slow", 990);
    tick(&h, 10);
    (void)said(&h);
    web->uid = "a*2Gi";
    web->size = 3;
    fire(&h, "Slow,pod=b", 1009);
    const char *text = said(&h);
    cr_assert(strstr(text, "decided web 3 cooldown"), "%s", text);
    cr_assert_not(strstr(text, "not a"), "%s", text);
    web->uid = "a*1Gi"; /* and back: no outdated view */
    web->size = 6;
    fire(&h, "Slow,pod=c", 1010);
    text = said(&h);
    cr_assert(strstr(text, "decided web 6 cooldown"), "%s", text);
    harness_stop(&h);
}

Test(engine_objects, a_lost_answer_in_another_unit_is_given_up)
{
    WITH(h, as_apps);
    struct virtual_target *web = harness_target(&h, "web");
    web->uid = "a*1Gi";
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true});
    fire(&h, "Slow", 990);
    resolve(&h, "Slow", 990);
    (void)said(&h);
    web->uid = "a*2Gi";
    web->size = 6; /* as it was asked for, but of larger ones */
    tick(&h, 60);
    cr_assert(strstr(said(&h), "acted web 4>6 superseded late"));
    cr_assert_str_eq(h.last_message, "given up: sizes are counted in another unit now");
    harness_stop(&h);
}

static const struct spec giving_back = {
    .targets = {{.name = "web", .min = 1, .max = 50, .up = 60, .down = 60}},
    .rules = {{.name = "slow",
               .match = {"alertname=Slow"},
               .target = "web",
               .up = 4,
               .guard = "none",
               .on_resolved = {.give_back = true, .after = 120}}},
};

Test(engine_objects, nothing_of_the_former_is_given_back)
{
    for (int replaced_while_open = 0; replaced_while_open < 2; replaced_while_open++) {
        WITH(h, giving_back);
        harness_target(&h, "web")->uid = "a";
        fire(&h, "Slow", 990);
        cr_assert(strstr(said(&h), "acted web 4>8 applied"));
        if (!replaced_while_open)
            resolve(&h, "Slow", 990);
        replace(&h, 50);
        tick(&h, 60);
        if (replaced_while_open)
            resolve(&h, "Slow", 990);
        tick(&h, 3600);
        cr_assert_eq(harness_target(&h, "web")->size, 50);
        harness_stop(&h);
    }
}

Test(engine_objects, what_the_new_one_was_given_is_given_back)
{
    WITH(h, giving_back);
    harness_target(&h, "web")->uid = "a";
    fire(&h, "Slow", 990);
    replace(&h, 10);
    tick(&h, 60);
    cr_assert_eq(harness_target(&h, "web")->size, 14);
    resolve(&h, "Slow", 990);
    tick(&h, 600);
    cr_assert_eq(harness_target(&h, "web")->size, 10);
    harness_stop(&h);
}

Test(engine_objects, an_ordered_size_is_superseded)
{
    WITH(h, as_apps);
    harness_target(&h, "web")->uid = "a";
    tick(&h, 60);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_UNREACHABLE});
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_SCALE, .target = "web", .replicas = 9});
    cr_assert(strstr(said(&h), "ordered web 4>9 unreachable"));
    replace(&h, 3);
    tick(&h, 60);
    cr_assert(strstr(said(&h), "ordered web 3>9 superseded"));
    cr_assert_eq(harness_target(&h, "web")->size, 3);
    harness_stop(&h);
}

Test(engine_objects, windows_and_policies_begin_anew)
{
    static const struct as_behavior behavior = {
        .up = {.policies = {{AS_POLICY_PODS, 4, 600 * AS_US_PER_S}}, .policy_count = 1},
        .down = {.window_us = 600 * AS_US_PER_S},
    };
    static const struct spec spec = {
        .targets = {{.name = "web", .max = 50, .behavior = &behavior}},
        .rules =
            {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 4, .every = 60}},
    };
    WITH(h, spec);
    harness_target(&h, "web")->uid = "a";
    fire(&h, "Slow", 990);
    tick(&h, 120);
    cr_assert_eq(harness_target(&h, "web")->size, 8);
    replace(&h, 10);
    tick(&h, 120);
    cr_assert_eq(harness_target(&h, "web")->size, 14);
    harness_crash(&h, 1); /* and are forgotten by the state, too */
    tick(&h, 120);
    cr_assert_eq(harness_target(&h, "web")->size, 14);
    harness_stop(&h);
}

Test(engine_objects, pauses_and_steps_are_the_names)
{
    static const struct spec once = {
        .targets = {{.name = "web", .max = 20, .up = 60}},
        .rules = {{.name = "slow",
                   .match = {"alertname=Slow"},
                   .target = "web",
                   .up = 2,
                   .max_steps = 1}},
    };
    WITH(h, once);
    harness_target(&h, "web")->uid = "a";
    fire(&h, "Slow", 990);
    pause(&h, "web");
    replace(&h, 3);
    tick(&h, 120);
    (void)said(&h);
    fire(&h, "Slow,pod=b", 1100);
    cr_assert(strstr(said(&h), "decided web 3 paused (5) by slow"));
    resolve(&h, "Slow,pod=b", 1100);
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_RESUME, .target = "web"});
    tick(&h, 600);
    cr_assert_eq(harness_target(&h, "web")->size, 3);
    harness_stop(&h);
}

/* Losing the monitoring removes nothing of the new one either: the report was used up. */
Test(engine_objects, a_further_step_down_needs_news_for_the_new_one_too)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .max = 20, .up = 60, .down = 60}},
        .rules = {{.name = "idle", .match = {"alertname=Idle"}, .target = "web", .down = 1}},
    };
    WITH(h, spec);
    harness_target(&h, "web")->uid = "a";
    tick(&h, 60);
    fire(&h, "Idle", 990);
    cr_assert(strstr(said(&h), "acted web 4>3 applied"));
    replace(&h, 9);
    tick(&h, 600);
    cr_assert_eq(harness_target(&h, "web")->size, 9);
    fire(&h, "Idle", 990);
    tick(&h, 60);
    cr_assert_eq(harness_target(&h, "web")->size, 8);
    harness_stop(&h);
}

/* Limits over all targets go by what was done, whatever became of it. */
Test(engine_objects, what_was_done_to_the_former_counts_in_the_limits)
{
    struct harness h = {
        .config.limits = {.actions_max = 1, .actions_per_us = 600 * AS_US_PER_S},
    };
    harness_start(&h, &as_apps);
    harness_target(&h, "web")->uid = "a";
    fire(&h, "Slow", 990);
    replace(&h, 3);
    tick(&h, 60);
    (void)said(&h);
    harness_crash(&h, 1);
    cr_assert(strstr(said(&h), "decided web 3 budget (5) by slow"));
    harness_stop(&h);
}
