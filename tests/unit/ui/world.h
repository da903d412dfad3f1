/*
 * A real engine in a world without delays, for tests of its views: every commit is durable at once,
 * every target is read and set at once. Two targets: `checkout` (named) and `any-shop` (templated
 * by the label `app`); one rule for each: `slow` and `each`.
 */
#ifndef ALERTSCALER_TESTS_APP_WORLD_H
#define ALERTSCALER_TESTS_APP_WORLD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/engine/engine.h>
#include <alertscaler/model/labels.h>
#include <alertscaler/monitoring/query_checks.h>
#include <alertscaler/runtime/metrics.h>
#include <alertscaler/runtime/shell.h>
#include <alertscaler/ui/api.h>

#define WORLD_START_US INT64_C(1795600000000000) /* 2026-11-25 */

struct world {
    struct as_ruleset *ruleset;
    struct as_engine *engine;
    struct as_metrics *metrics;
    struct as_api *api; /* may be NULL */
    as_mono_time mono;
    int32_t replicas;            /* of every target */
    enum as_reason scale_result; /* AS_REASON_APPLIED unless said otherwise */
    unsigned version;            /* of each observation another one */
    uint64_t requests, steps;
    int64_t skew_us;        /* of the wall clock, when looked at */
    const char *credential; /* through which notifications come; NULL: none is needed */
    const char *generator_url, *external_url; /* of notifications; NULL: not given */
    struct as_query_checks *query_checks;     /* NULL: world_refuse_query was not called */
};

/* Credentials that the engine knows: one may everything, one only the rule `each`. */
static const char *const world_patterns[] = {"each"};
static const char *const world_target_patterns[] = {"any-shop"};
static const struct as_scope world_scopes[] = {
    {.credential = "whole"},
    {.credential = "narrow", .rules = world_patterns, .rule_count = 1},
    {.credential = "shop", .targets = world_target_patterns, .target_count = 1},
};

static inline void world_set_address(struct as_target_config *target,
                                     const char *const (*fields)[2], size_t count)
{
    struct as_error error = AS_ERROR_INIT;
    target->address = as_xcalloc(count, sizeof(*target->address));
    target->address_count = count;
    for (size_t i = 0; i < count; i++) {
        target->address[i].key = as_xstrdup(fields[i][0]);
        cr_assert_eq(as_template_new(fields[i][1], &target->address[i].value, &error), 0, "%s",
                     error.text);
    }
}

static inline void world_make_target(struct as_target_config *target, const char *name,
                                     const char *object)
{
    const char *const fields[][2] = {
        {"cluster", "default"}, {"apiVersion", "apps/v1"}, {"kind", "Deployment"},
        {"namespace", "shop"},  {"name", object},
    };
    target->name = as_xstrdup(name);
    target->kind = &as_target_kind_kubernetes;
    target->is_templated = strchr(object, '{') != NULL;
    target->bounds = (struct as_bounds_config){
        .min = 2,
        .max = 20,
        .cooldown = {.up_us = AS_US_PER_MIN, .down_us = 5 * AS_US_PER_MIN},
        .tolerance_up = 0.1,
        .tolerance_down = 0.1,
    };
    world_set_address(target, fields, AS_ARRAY_SIZE(fields));
    if (target->is_templated) {
        target->allowed[AS_ALLOW_NAMES].items = as_xcalloc(1, sizeof(char *));
        target->allowed[AS_ALLOW_NAMES].items[0] = as_xstrdup("*");
        target->allowed[AS_ALLOW_NAMES].count = 1;
    }
}

static inline void world_make_rule(struct as_rule *rule, const char *name, const char *matcher,
                                   const struct as_target_config *target)
{
    struct as_error error = AS_ERROR_INIT;
    rule->name = as_xstrdup(name);
    rule->matchers = as_xcalloc(1, sizeof(*rule->matchers));
    rule->matcher_count = 1;
    cr_assert_eq(as_matcher_init(&rule->matchers[0], matcher, &error), 0, "%s", error.text);
    rule->target = target;
    rule->action = (struct as_action){.kind = AS_ACTION_SCALE_UP, .amount = {.size = 2}};
    rule->enabled = true;
}

static inline void world_step(struct world *world, struct as_event event);

/* As the shell: with the effect's record. */
static inline void world_tell_api(struct as_api *api, const struct as_effect *effect,
                                  as_wall_time now)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf record = AS_BUF_INIT((size_t)64 << 20);
    const struct as_record_header header = {now, "host-1"};
    as_effect_encode_record(effect, &header, &record, NULL);
    as_api_on_effect(api, effect, &record, now);
}

/* Carries out one effect after another; what they lead to is done before the next. */
static inline void world_carry_out(struct world *world, struct as_event *next, size_t *count,
                                   const struct as_effects *effects)
{
    for (size_t i = 0; i < effects->count; i++) {
        const struct as_effect *effect = &effects->items[i];
        as_metrics_on_effect(world->metrics, effect);
        if (world->api)
            world_tell_api(world->api, effect, (as_wall_time){WORLD_START_US + world->mono.us});
        static struct as_observation observation;
        static struct as_scale_result result;
        observation = (struct as_observation){.outcome = AS_REASON_APPLIED,
                                              .replicas = world->replicas,
                                              .status_replicas = world->replicas,
                                              .min = -1,
                                              .max = -1};
        (void)snprintf(observation.version, sizeof(observation.version), "%u", ++world->version);
        if (effect->kind == AS_EFFECT_COMMIT && effect->call_id != 0) {
            next[(*count)++] =
                (struct as_event){.kind = AS_EVENT_COMMITTED, .call_id = effect->call_id};
        } else if (effect->kind == AS_EFFECT_OBSERVE) {
            next[(*count)++] = (struct as_event){
                .kind = AS_EVENT_OBSERVED, .call_id = effect->call_id, .observation = &observation};
        } else if (effect->kind == AS_EFFECT_SCALE) {
            result = (struct as_scale_result){.outcome = world->scale_result, .attempts = 1};
            if (world->scale_result == AS_REASON_APPLIED)
                world->replicas = effect->call.request->to;
            next[(*count)++] = (struct as_event){
                .kind = AS_EVENT_SCALED, .call_id = effect->call_id, .result = &result};
        }
        cr_assert_lt(*count, 4096);
    }
}

static inline void world_step(struct world *world, struct as_event event)
{
    static struct as_event queue[4096];
    size_t count = 0;
    queue[count++] = event;
    for (size_t i = 0; i < count; i++) {
        struct as_effects effects;
        world->mono.us += 1000;
        world->steps++;
        queue[i].mono = world->mono;
        queue[i].wall = (as_wall_time){WORLD_START_US + world->mono.us};
        as_engine_step(world->engine, &queue[i], &effects);
        world_carry_out(world, queue, &count, &effects);
    }
}

static inline void world_open(struct world *world)
{
    *world = (struct world){.replicas = 4, .scale_result = AS_REASON_APPLIED};
    world->ruleset = as_xcalloc(1, sizeof(*world->ruleset));
    as_ruleset_make_room(world->ruleset, 2, 2);
    memset(world->ruleset->digest, 'd', 64);
    world_make_target(world->ruleset->targets[0], "checkout", "checkout");
    world_make_target(world->ruleset->targets[1], "any-shop", "{{ .Labels.app }}");
    world_make_rule(world->ruleset->rules[0], "slow", "alertname=\"Slow\"",
                    world->ruleset->targets[0]);
    world_make_rule(world->ruleset->rules[1], "each", "alertname=~\"Each|Every\"",
                    world->ruleset->targets[1]);
    const struct as_engine_config config = {.incident_expiry_us = AS_US_PER_DAY,
                                            .stale_window_us = 2 * AS_US_PER_MIN,
                                            .seed = 1,
                                            .scopes = world_scopes,
                                            .scope_count = AS_ARRAY_SIZE(world_scopes)};
    world->engine = as_engine_new(&config, world->ruleset);
    world->metrics = as_metrics_new();
}

static inline struct as_timer *world_start_no_timer(struct as_loop *self, int64_t delay_us,
                                                    as_timer_fn *expired, void *context)
{
    return NULL;
}

static inline void world_cancel_no_timer(struct as_loop *self, struct as_timer *timer)
{
}

/* The rule gets a query that the server refuses. */
static inline void world_refuse_query(struct world *world, size_t rule, const char *query,
                                      const char *error)
{
    static struct as_loop loop = {world_start_no_timer, world_cancel_no_timer};
    static struct as_source_port source;
    const struct as_config config = {.ruleset = world->ruleset};
    struct as_source *own = &world->ruleset->rules[rule]->source;
    own->kind = AS_SOURCE_QUERY;
    cr_assert_eq(as_template_new(query, &own->query, NULL), 0);
    world->query_checks = as_query_checks_new(&loop);
    as_query_checks_start(world->query_checks, &config, config.ruleset, &source);
    for (int i = 0; i < AS_QUERY_REFUSALS; i++)
        as_query_checks_note(world->query_checks, query, AS_QUERY_REFUSED, error);
}

static inline void world_close(struct world *world)
{
    as_api_free(world->api);
    as_query_checks_free(world->query_checks);
    as_metrics_free(world->metrics);
    as_engine_free(world->engine);
    as_ruleset_free(world->ruleset);
}

/* One alert with the labels alertname and, where given, app. */
static inline void world_notify(struct world *world, enum as_alert_status status,
                                const char *alertname, const char *app)
{
    const struct as_label pairs[] = {{"alertname", alertname}, {"app", app ? app : ""}};
    const struct as_label notes[] = {{"summary", "<b>too slow</b>"}};
    struct as_labels *labels, *annotations;
    cr_assert_eq(as_labels_new(pairs, app ? 2 : 1, &labels), 0);
    cr_assert_eq(as_labels_new(notes, 1, &annotations), 0);
    const as_wall_time now = {WORLD_START_US + world->mono.us};
    struct as_alert alert = {
        .status = status,
        .digest = as_labels_get_digest(labels),
        .fingerprint = as_labels_get_fingerprint(labels),
        .starts_at = {WORLD_START_US - 30 * AS_US_PER_S},
        .ends_at = now,
        .labels = labels,
        .annotations = annotations,
        .generator_url = (char *)(uintptr_t)world->generator_url,
    };
    struct as_notification notification = {
        .external_url = (char *)(uintptr_t)world->external_url,
        .receiver = (char[]){"scaler"},
        .group_key = (char[]){""},
        .reason = (char[]){""},
        .truncated = status == AS_ALERT_RESOLVED ? 3 : 0,
        .alerts = &alert,
        .alert_count = 1,
        .remote = (char[]){""},
        .credential = (char *)(uintptr_t)(world->credential ? world->credential : ""),
        .traceparent = (char[]){""},
    };
    (void)snprintf(notification.id, sizeof(notification.id), "N%025llu",
                   (unsigned long long)++world->requests);
    world_step(world, (struct as_event){.kind = AS_EVENT_NOTIFICATION,
                                        .call_id = world->requests,
                                        .notification = &notification});
    as_labels_free(labels);
    as_labels_free(annotations);
}

static inline struct as_view world_look(const struct world *world)
{
    return (struct as_view){
        .mono = world->mono,
        .wall = {WORLD_START_US + world->mono.us + world->skew_us},
        .started = {WORLD_START_US},
        .engine = world->engine,
        .ruleset = world->ruleset,
        .scopes = world_scopes,
        .scope_count = AS_ARRAY_SIZE(world_scopes),
        .config_digest = "c0ffee",
        .query_checks = world->query_checks,
        .leader = {.is_leader = true, .identity = "one", .holder = "one"},
        .connections = 7,
        .unanswered = 5,
    };
}

#endif
