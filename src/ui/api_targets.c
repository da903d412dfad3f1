/*
 * The overall status, and targets.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/doc/rows.h>
#include <alertscaler/kube/kube_rivals.h>
#include <alertscaler/model/forbidden.h>
#include <alertscaler/monitoring/query_checks.h>
#include <alertscaler/runtime/version.h>

#include "api_private.h"

static void targets_answer_object(struct api_request *request, const struct as_row *rows,
                                  const void *from)
{
    api_begin(request);
    as_rows_write(&request->json, rows, from);
    api_end(request);
}

AS_ROW_WORDS(holder_get_word, enum as_holder, AS_HOLDER_COUNT, as_holder_get_word)
AS_ROW_WORDS(reason_get_word, enum as_reason, AS_REASON_COUNT, as_reason_get_word)
AS_ROW_WORDS(ways_get_word, enum as_ways, AS_WAYS_BOTH + 1, as_ways_get_word)

static const struct as_row pause_rows[] = {
    {AS_ROW("who", credential, as_pause_view, who, REQUIRED)},
    {AS_ROW("reason", text, as_pause_view, reason, REQUIRED)},
    {AS_ROW("direction", word, as_pause_view, ways, REQUIRED), .get_word = ways_get_word},
    {AS_ROW("kill_switch", flag, as_pause_view, is_halt, REQUIRED)},
    {AS_ROW("since", moment, as_pause_view, since, NULLABLE)},
    {AS_ROW("until", moment, as_pause_view, until, NULLABLE)},
    {.name = NULL},
};

/*
 * The status.
 */

struct status_answer {
    const struct as_view *view;
    const struct as_ruleset *ruleset;
    const char *version, *revision, *instance;
    bool is_ready;
    struct as_pause_view pause;
    int64_t incident_expiry_s;
    uint64_t rules, targets, incidents; /* that the reader may see */
    struct as_engine_counts counts;
    struct as_storage_counts storage;
};

static void status_libraries_write(struct as_json_writer *json, const struct as_row *row,
                                   const void *base)
{
    const struct as_library *libraries;
    const size_t count = as_version_get_libraries(&libraries);
    as_json_begin_object(json);
    for (size_t i = 0; i < count; i++)
        as_json_write_member(json, libraries[i].name, libraries[i].version);
    as_json_end_object(json);
}

static const struct as_row leadership_rows[] = {
    {AS_ROW("holder", text, as_leader_view, holder, NULLABLE)},
    {AS_ROW("identity", text, as_leader_view, identity, REQUIRED)},
    {AS_ROW("problem", maybe_text, as_leader_view, problem, NULLABLE)},
    {AS_ROW("paused", maybe_text, as_leader_view, paused, NULLABLE)},
    {.name = NULL},
};

#define STATUS  .via = AS_ROW_VIA(status_answer, view)
#define RULESET .via = AS_ROW_VIA(status_answer, ruleset)

static const struct as_row queues_rows[] = {
    {AS_ROW("notifications", u64, as_view, unanswered, REQUIRED), STATUS},
    {AS_ROW("storage", u64, status_answer, storage.waiting_batches, REQUIRED)},
    {AS_ROW("targets", u64, status_answer, counts.targets_busy, REQUIRED)},
    {.name = NULL},
};

static const struct as_row action_log_rows[] = {
    {AS_ROW("seq", u64, status_answer, storage.head.seq, REQUIRED)},
    {AS_ROW_CHARS("hash", status_answer, storage.head.hash, REQUIRED)},
    {.name = NULL},
};

struct failing_rule_answer {
    const char *rule, *target, *error;
};

static const struct as_row failing_rule_rows[] = {
    {AS_ROW("rule", text, failing_rule_answer, rule, REQUIRED)},
    {AS_ROW("target", text, failing_rule_answer, target, REQUIRED)},
    {AS_ROW("error", text, failing_rule_answer, error, REQUIRED)},
    {.name = NULL},
};

static void write_failing_rule(void *context, const struct as_rule *rule, const char *error)
{
    const struct api_request *request = api_get_request(context);
    if (!api_may_see_rule(request, rule->name, rule->target->name, ""))
        return;
    as_rows_write(context, failing_rule_rows,
                  &(struct failing_rule_answer){rule->name, rule->target->name, error});
}

static void status_query_errors_write(struct as_json_writer *json, const struct as_row *row,
                                      const void *base)
{
    const struct as_view *view = &api_get_request(json)->view;
    as_json_begin_array(json);
    as_query_checks_visit_failing(view->query_checks, view->ruleset, write_failing_rule, json);
    as_json_end_array(json);
}

static const struct as_row status_rows[] = {
    {AS_ROW("version", text, status_answer, version, REQUIRED)},
    {AS_ROW("revision", text, status_answer, revision, REQUIRED)},
    {API_HOOK("libraries", status_libraries_write)},
    {AS_ROW("instance", text, status_answer, instance, REQUIRED)},
    {AS_ROW("started", exact, as_view, started, REQUIRED), STATUS},
    {AS_ROW("time", exact, as_view, wall, REQUIRED), STATUS},
    {AS_ROW("ready", flag, status_answer, is_ready, REQUIRED)},
    {AS_ROW("not_ready", maybe_text, as_view, not_ready, NULLABLE), STATUS},
    {AS_ROW("leader", flag, as_view, leader.is_leader, REQUIRED), STATUS},
    {AS_ROW_PART("leadership", as_view, leader, REQUIRED, leadership_rows), STATUS},
    {AS_ROW("dry_run", flag, as_view, dry_run, REQUIRED), STATUS},
    {AS_ROW_PART("paused", status_answer, pause, REQUIRED, pause_rows),
     .has_at = AS_ROW_HAS(status_answer, pause.is_set)},
    {AS_ROW("incident_expiry_seconds", i64, status_answer, incident_expiry_s, REQUIRED)},
    {AS_ROW("config_digest", text, as_view, config_digest, REQUIRED), STATUS},
    {AS_ROW_CHARS("rules_digest", as_ruleset, digest, REQUIRED), RULESET},
    {AS_ROW("rules", u64, status_answer, rules, REQUIRED)},
    {API_HOOK("query_errors", status_query_errors_write)},
    {AS_ROW("targets", u64, status_answer, targets, REQUIRED)},
    {AS_ROW("incidents_open", u64, status_answer, incidents, REQUIRED)},
    {AS_ROW("connections", u32, as_view, connections, REQUIRED), STATUS},
    {AS_ROW_SAME("queues", REQUIRED, queues_rows)},
    {AS_ROW_SAME("action_log", REQUIRED, action_log_rows)},
    {.name = NULL},
};

struct status_counting {
    const struct api_request *request;
    struct status_answer *answer;
};

static void status_count_target(void *context, const struct as_target_view *target)
{
    const struct status_counting *counting = context;
    counting->answer->targets += api_may_see_target(counting->request, target->name, target->id);
}

static void status_count_incident(void *context, const struct as_incident_state *state,
                                  const struct as_incident_target *targets, size_t count)
{
    const struct status_counting *counting = context;
    bool is_seen = false;
    for (size_t i = 0; state->is_open && !is_seen && i < count; i++)
        is_seen =
            api_may_see_rule(counting->request, targets[i].rule,
                             as_engine_find_name(counting->request->view.engine, targets[i].target),
                             targets[i].target);
    counting->answer->incidents += is_seen;
}

static void status_count_seen(const struct api_request *request, struct status_answer *answer)
{
    const struct as_view *view = &request->view;
    struct status_counting counting = {request, answer};
    for (size_t i = 0; i < view->ruleset->rule_count; i++) {
        const struct as_rule *rule = view->ruleset->rules[i];
        answer->rules += api_may_see_rule(request, rule->name, rule->target->name, "");
    }
    if (!view->engine)
        return;
    as_engine_visit_targets(view->engine, view->mono, view->wall, status_count_target, &counting);
    as_engine_visit_incidents(view->engine, status_count_incident, &counting);
}

void api_answer_status(struct api_request *request)
{
    const struct as_view *view = &request->view;
    struct status_answer answer = {
        .view = view,
        .ruleset = view->ruleset,
        .version = as_version_get(),
        .revision = as_version_get_revision(),
        .instance = request->api->instance,
        .is_ready = !view->not_ready,
        .incident_expiry_s = view->incident_expiry_us / AS_US_PER_S,
    };
    if (view->engine) {
        answer.pause = as_engine_get_pause(view->engine, view->mono, view->wall);
        answer.counts = as_engine_get_counts(view->engine);
    }
    answer.rules = view->ruleset->rule_count;
    answer.targets = answer.counts.targets;
    answer.incidents = answer.counts.incidents_open;
    if (!as_scope_is_whole(view->scopes, view->scope_count, request->who)) {
        answer.rules = answer.targets = answer.incidents = 0;
        status_count_seen(request, &answer);
    }
    if (view->storage)
        answer.storage = as_storage_get_counts(view->storage);
    targets_answer_object(request, status_rows, &answer);
}

/*
 * Targets.
 */

struct target_answer {
    const struct as_target_view *view;
    const char *kind, *unit;
    bool is_templated, is_dry_run;
    int32_t min, max; /* -1: no rule uses the target any more */
    bool has_floor, is_contended, has_decision;
    const struct kept_decision *dry_run; /* the last decision, if it is a dry run; or NULL */
    const struct as_other *others;
    size_t other_count;
    const char *waits_for, *failure, *failure_text; /* or NULL */
};

static void target_address_write(struct as_json_writer *json, const struct as_row *row,
                                 const void *base)
{
    const struct as_target_ref *ref = ((const struct as_target_view *)base)->ref;
    as_json_begin_object(json);
    for (size_t i = 0; i < ref->field_count; i++)
        as_json_write_member(json, ref->fields[i].key, ref->fields[i].value);
    as_json_end_object(json);
}

struct schedule_answer {
    const struct as_schedule *schedule;
    struct as_schedule_state state;
};

#define SCHEDULE .via = AS_ROW_VIA(schedule_answer, schedule)
AS_ROW_WORDS(get_schedule_end, enum as_schedule_end, AS_SCHEDULE_END_COUNT,
             as_schedule_end_get_word)

static const struct as_row schedule_rows[] = {
    {AS_ROW("name", own_text, as_schedule, name, REQUIRED), SCHEDULE},
    {AS_ROW("in_force", flag, schedule_answer, state.is_in_force, REQUIRED)},
    {AS_ROW("min", i32, as_schedule, min, REQUIRED), SCHEDULE,
     .has_at = AS_ROW_HAS(as_schedule, has_min)},
    {AS_ROW("max", i32, as_schedule, max, REQUIRED), SCHEDULE,
     .has_at = AS_ROW_HAS(as_schedule, has_max)},
    {AS_ROW("end", word, as_schedule, at_end, REQUIRED), SCHEDULE, .get_word = get_schedule_end},
    /* When a schedule that is in force ends; else when it next begins. */
    {AS_ROW("changes", exact, schedule_answer, state.change.at, REQUIRED),
     .has_at = AS_ROW_HAS(schedule_answer, state.change.set)},
    {.name = NULL},
};

static void target_schedules_write(struct as_json_writer *json, const struct as_row *row,
                                   const void *base)
{
    const struct as_target_config *config = ((const struct as_target_view *)base)->config;
    const as_wall_time now = api_get_request(json)->view.wall;
    as_json_begin_array(json);
    for (size_t i = 0; config && i < config->schedule_count; i++) {
        const struct as_schedule *schedule = &config->schedules[i];
        const struct schedule_answer answer = {schedule, as_schedule_state(schedule, now)};
        as_rows_write(json, schedule_rows, &answer);
    }
    as_json_end_array(json);
}

static const struct as_row hold_rows[] = {
    {AS_ROW("direction", word, as_hold_view, ways, REQUIRED), .get_word = ways_get_word},
    {AS_ROW("by", word, as_hold_view, by, REQUIRED), .get_word = holder_get_word},
    {AS_ROW("name", text, as_hold_view, name, REQUIRED)},
    {AS_ROW("until", exact, as_hold_view, until.at, REQUIRED),
     .has_at = AS_ROW_HAS(as_hold_view, until.set)},
    {.name = NULL},
};

struct hold_list {
    struct as_json_writer *json;
    const struct as_target_view *target;
};

static void write_hold(void *context, const struct as_hold_view *hold)
{
    const struct hold_list *list = context;
    if (hold->by != AS_HOLDER_RULE || api_may_see_rule(api_get_request(list->json), hold->name,
                                                       list->target->name, list->target->id))
        as_rows_write(list->json, hold_rows, hold);
}

static void target_holds_write(struct as_json_writer *json, const struct as_row *row,
                               const void *base)
{
    const struct as_view *view = &api_get_request(json)->view;
    struct hold_list list = {json, base};
    as_json_begin_array(json);
    as_engine_visit_holds(view->engine, list.target->ref, view->mono, view->wall, write_hold,
                          &list);
    as_json_end_array(json);
}

/* What happens after an incident. */

#define NEXT_TEXT_MAX ((size_t)1024)

#define NEXT_WORD(enumerator, word) [enumerator] = (word),
static const char *const next_effects[AS_NEXT_EFFECT_COUNT] = {AS_NEXT_EFFECTS(NEXT_WORD)};
static const char *const next_waits[AS_NEXT_WAIT_COUNT] = {AS_NEXT_WAITS_FOR(NEXT_WORD)};
#undef NEXT_WORD

/* Not before: the delay of the rule, or the lock. */
static struct as_moment next_get_from(const struct as_target_view *target,
                                      const struct as_next_view *next)
{
    const struct as_moment lock = target->down_locked_until;
    return next->effect == AS_NEXT_GIVES_BACK && lock.mono.us > next->from.mono.us ? lock
                                                                                   : next->from;
}

static void next_print_wait(const struct as_target_view *target, const struct as_next_view *next,
                            struct as_buf *out)
{
    const struct as_moment from = next_get_from(target, next);
    char text[AS_RFC3339_SIZE];
    if (next->wait == AS_NEXT_WATCHDOG)
        as_buf_append_str(out, " after the next report of the watchdog");
    if (next->wait == AS_NEXT_WATCHDOG && as_moment_is_set(next->silent_since)) {
        as_wall_time_print_short(next->silent_since.wall, text);
        as_buf_printf(out, ": no report since %s", text);
    }
    if (next->wait == AS_NEXT_GUARD)
        as_buf_append_str(out, " if the guard of the rule allows it");
    if (as_moment_is_set(from)) {
        as_wall_time_print_short(from.wall, text);
        as_buf_printf(out, ", not before %s", text);
    }
}

void api_print_next(const struct as_target_view *target, const struct as_next_view *next,
                    struct as_buf *out)
{
    const char *unit = as_sized_get_unit(target->ref);
    char size[AS_SIZE_TEXT_SIZE], added[AS_SIZE_TEXT_SIZE];
    switch (next->effect) {
    case AS_NEXT_STAYS:
        as_buf_printf(out, "stays at %s: the rule has no on_resolved",
                      as_unit_print_size(unit, next->size, size));
        return;
    case AS_NEXT_WAITS: as_buf_printf(out, "waits for a new report of %s", next->alert); return;
    case AS_NEXT_GIVES_BACK:
        as_buf_append_str(out, "gives back");
        if (next->amount > 0)
            as_buf_printf(out, " %s", as_unit_print_size(unit, next->amount, size));
        if (next->steps > 1)
            as_buf_printf(out, " of %s, step %" PRIu32 " of %" PRIu32 ",",
                          as_unit_print_size(unit, next->added, added), next->step, next->steps);
        break;
    case AS_NEXT_SCALES:
        if (next->size >= 0)
            as_buf_printf(out, "scales to %s", as_unit_print_size(unit, next->size, size));
        else
            as_buf_append_str(out, "scales down");
        break;
    case AS_NEXT_EFFECT_COUNT: break;
    }
    next_print_wait(target, next, out);
}

struct next_answer {
    const struct as_next_view *view;
    const char *effect, *waits_for, *text;
    struct as_moment from;
};

#define NEXT .via = AS_ROW_VIA(next_answer, view)

static const struct as_row next_rows[] = {
    {AS_ROW("effect", text, next_answer, effect, REQUIRED)},
    {AS_ROW("rule", text, as_next_view, rule, REQUIRED), NEXT},
    {AS_ROW("size", size, as_next_view, size, NULLABLE), NEXT},
    {AS_ROW("amount", i32, as_next_view, amount, REQUIRED), NEXT},
    {AS_ROW("waits_for", maybe_text, next_answer, waits_for, NULLABLE)},
    {AS_ROW("from", moment, next_answer, from, NULLABLE)},
    {AS_ROW("text", text, next_answer, text, REQUIRED)},
    {.name = NULL},
};

struct next_list {
    struct as_json_writer *json;
    const struct as_target_view *target;
};

static void write_next(void *context, const struct as_next_view *view)
{
    const struct next_list *list = context;
    if (!api_may_see_rule(api_get_request(list->json), view->rule, list->target->name,
                          list->target->id))
        return;
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(NEXT_TEXT_MAX);
    api_print_next(list->target, view, &text);
    as_rows_write(list->json, next_rows,
                  &(struct next_answer){.view = view,
                                        .effect = next_effects[view->effect],
                                        .waits_for = next_waits[view->wait],
                                        .text = as_buf_check(&text) == 0 ? text.data : "",
                                        .from = next_get_from(list->target, view)});
}

static void target_next_write(struct as_json_writer *json, const struct as_row *row,
                              const void *base)
{
    const struct as_view *view = &api_get_request(json)->view;
    struct next_list list = {json, base};
    as_json_begin_array(json);
    as_engine_visit_next(view->engine, list.target->ref, view->mono, view->wall, write_next, &list);
    as_json_end_array(json);
}

static const struct as_row ineffective_rows[] = {
    {AS_ROW("rule", text, as_ineffective_view, rule, REQUIRED)},
    {AS_ROW("until", moment, as_ineffective_view, until, NULLABLE)},
    {.name = NULL},
};

static void write_ineffective_rule(void *context, const struct as_ineffective_view *rule)
{
    struct as_json_writer *json = context;
    if (api_may_see_rule(api_get_request(json), rule->rule, rule->target_name, rule->ref->id))
        as_rows_write(json, ineffective_rows, rule);
}

static void target_ineffective_write(struct as_json_writer *json, const struct as_row *row,
                                     const void *base)
{
    const struct as_view *view = &api_get_request(json)->view;
    const struct as_target_view *target = base;
    as_json_begin_array(json);
    as_engine_visit_ineffective(view->engine, target->ref, view->mono, view->wall,
                                write_ineffective_rule, json);
    as_json_end_array(json);
}

#define VIEW .via = AS_ROW_VIA(target_answer, view)
#define SIZE VIEW, .has_at = AS_ROW_HAS(as_target_view, has_size)

static const struct as_row floor_rows[] = {
    {AS_ROW("replicas", i32, as_target_view, floor.size, REQUIRED), VIEW},
    {AS_ROW("who", credential, as_target_view, floor.who, REQUIRED), VIEW},
    {AS_ROW("reason", text, as_target_view, floor.reason, REQUIRED), VIEW},
    {AS_ROW("since", moment, as_target_view, floor.since, NULLABLE), VIEW},
    {AS_ROW("until", moment, as_target_view, floor.until, NULLABLE), VIEW},
    {.name = NULL},
};

static const struct as_row locked_until_rows[] = {
    {AS_ROW("up", moment, as_target_view, up_locked_until, NULLABLE)},
    {AS_ROW("down", moment, as_target_view, down_locked_until, NULLABLE)},
    {.name = NULL},
};

static const struct as_row reverted_change_rows[] = {
    {AS_ROW("at", moment, as_reverted_change, at, NULLABLE)},
    {AS_ROW("from", i32, as_reverted_change, from, REQUIRED)},
    {AS_ROW("to", i32, as_reverted_change, to, REQUIRED)},
    {AS_ROW("found", i32, as_reverted_change, found, REQUIRED)},
    {AS_ROW("by", text, as_reverted_change, by, NULLABLE)},
    {.name = NULL},
};

static const struct as_row contended_rows[] = {
    {AS_ROW("until", moment, as_target_view, contended_until, NULLABLE), VIEW},
    {AS_ROW_OF("set_backs", list, as_target_view, reverted_changes, REQUIRED, reverted_change_rows),
     VIEW, .count_at = AS_ROW_COUNT(as_target_view, reverted_change_count)},
    {.name = NULL},
};

static const struct as_row other_rows[] = {
    {AS_ROW("kind", text, as_other, kind, REQUIRED)},
    {AS_ROW("name", text, as_other, name, REQUIRED)},
    {AS_ROW("min", size, as_other, min, NULLABLE)},
    {AS_ROW("max", size, as_other, max, NULLABLE)},
    {AS_ROW("paused", flag, as_other, is_paused, REQUIRED)},
    {.name = NULL},
};

static const struct as_row last_decision_rows[] = {
    {AS_ROW("id", text, as_target_view, last_decision, REQUIRED), VIEW},
    {AS_ROW("time", exact, as_target_view, last_at, REQUIRED), VIEW},
    {AS_ROW("reason", word, as_target_view, last_reason, REQUIRED), VIEW,
     .get_word = reason_get_word},
    {AS_ROW("rule", maybe_text, as_target_view, last_rule, NULLABLE), VIEW},
    {AS_ROW("would", i32, kept_decision, would, DEFAULT), .via = AS_ROW_VIA(target_answer, dry_run),
     .has_at = AS_ROW_HAS(kept_decision, has_would)},
    {.name = NULL},
};

static const struct as_row target_rows[] = {
    {AS_ROW("id", text, as_target_view, id, REQUIRED), VIEW},
    {AS_ROW("name", text, as_target_view, name, REQUIRED), VIEW},
    {AS_ROW("templated", flag, target_answer, is_templated, REQUIRED)},
    {AS_ROW("kind", text, target_answer, kind, REQUIRED)},
    {API_HOOK("address", target_address_write), VIEW},
    {AS_ROW("replicas", i32, as_target_view, replicas, REQUIRED), SIZE},
    {AS_ROW("status_replicas", i32, as_target_view, status_replicas, REQUIRED), SIZE},
    {AS_ROW("desired", i32, as_target_view, desired, REQUIRED), SIZE},
    {AS_ROW("seen", moment, as_target_view, seen, NULLABLE), VIEW},
    {AS_ROW("min", size, target_answer, min, NULLABLE)},
    {AS_ROW("max", size, target_answer, max, NULLABLE)},
    {AS_ROW("unit", text, target_answer, unit, OPTIONAL)},
    {API_HOOK("schedules", target_schedules_write), VIEW},
    {AS_ROW_SAME("floor", REQUIRED, floor_rows), .has_at = AS_ROW_HAS(target_answer, has_floor)},
    {API_HOOK("holds", target_holds_write), VIEW},
    {AS_ROW_SAME("locked_until", REQUIRED, locked_until_rows), VIEW},
    {AS_ROW("open_incidents", u64, as_target_view, open_incidents, REQUIRED), VIEW},
    {AS_ROW("dry_run", flag, target_answer, is_dry_run, REQUIRED)},
    {AS_ROW_PART("paused", as_target_view, pause, REQUIRED, pause_rows), VIEW,
     .has_at = AS_ROW_HAS(as_target_view, pause.is_set)},
    {AS_ROW_SAME("contended", REQUIRED, contended_rows),
     .has_at = AS_ROW_HAS(target_answer, is_contended)},
    {AS_ROW_OF("others", list, target_answer, others, REQUIRED, other_rows),
     .count_at = AS_ROW_COUNT(target_answer, other_count)},
    {AS_ROW("ordered", i32, as_target_view, ordered, REQUIRED), VIEW,
     .has_at = AS_ROW_HAS(as_target_view, has_order)},
    {AS_ROW("waits_for", maybe_text, target_answer, waits_for, NULLABLE)},
    {AS_ROW("ready", size, as_target_view, ready, NULLABLE), VIEW},
    {AS_ROW("did_not_come", flag, as_target_view, did_not_come, REQUIRED), VIEW},
    {API_HOOK("ineffective", target_ineffective_write), VIEW},
    {API_HOOK("next", target_next_write), VIEW},
    {AS_ROW("busy", flag, as_target_view, busy, REQUIRED), VIEW},
    {AS_ROW_SAME("last_decision", REQUIRED, last_decision_rows),
     .has_at = AS_ROW_HAS(target_answer, has_decision)},
    {AS_ROW("failure", maybe_text, target_answer, failure, NULLABLE)},
    {AS_ROW("failure_text", maybe_text, target_answer, failure_text, NULLABLE)},
    {AS_ROW("failing_since", moment, as_target_view, failing_since, NULLABLE), VIEW},
    {AS_ROW("tries", u32, as_target_view, tries, REQUIRED), VIEW},
    {AS_ROW("next_try", moment, as_target_view, next_try, NULLABLE), VIEW},
    {.name = NULL},
};

static struct target_answer target_make_answer(const struct api_request *request,
                                               const struct as_target_view *view)
{
    const struct as_target_config *config = view->config;
    struct target_answer answer = {
        .view = view,
        .kind = view->ref->kind->word,
        .unit = as_sized_get_unit(view->ref),
        .is_templated = config && config->is_templated,
        .is_dry_run = request->view.dry_run || (config && config->dry_run),
        .min = config ? view->bounds.min : -1,
        .max = config ? view->bounds.max : -1,
        .has_floor = view->floor.size != 0,
        .is_contended = as_moment_is_set(view->contended_until),
        .has_decision = view->last_decision != NULL,
        .waits_for = api_show_target(request, view->waits_for),
    };
    answer.others = as_others_find(request->view.others, view->id, &answer.other_count);
    if (answer.has_decision && view->last_reason == AS_REASON_DRY_RUN)
        answer.dry_run = api_find_decision(request->api, view->last_decision);
    if (view->last_failure != AS_REASON_APPLIED) {
        answer.failure = as_reason_get_word(view->last_failure);
        answer.failure_text = api_find_failure(request->api, view->id);
    }
    return answer;
}

static void visit(const struct api_request *request, as_target_visit_fn *each, void *context)
{
    const struct as_view *view = &request->view;
    if (view->engine)
        as_engine_visit_targets(view->engine, view->mono, view->wall, each, context);
}

static void list_target(void *context, const struct as_target_view *view)
{
    struct api_list *list = context;
    if (list->is_cut || !api_may_see_target(list->request, view->name, view->id))
        return;
    const struct target_answer answer = target_make_answer(list->request, view);
    api_list_add(list, target_rows, &answer);
}

void api_answer_targets(struct api_request *request)
{
    struct api_list list;
    if (!api_list_begin(&list, request, API_LIMIT_MAX))
        return;
    visit(request, list_target, &list);
    api_list_end(&list);
}

struct target_search {
    const char *wanted; /* name, or the key of an id */
    bool by_name, is_found;
    as_target_visit_fn *each;
    void *context;
};

/* The first match only. */
static void visit_if_wanted(void *context, const struct as_target_view *target)
{
    struct target_search *search = context;
    const bool has_own_name = target->config && !target->config->is_templated;
    const char *own = search->by_name ? (has_own_name ? target->name : "") : target->ref->key;
    if (search->is_found || strcmp(own, search->wanted) != 0)
        return;
    search->is_found = true;
    search->each(search->context, target);
}

bool api_visit_target(const struct api_request *request, const char *wanted,
                      as_target_visit_fn *each, void *context)
{
    const struct as_view *view = &request->view;
    if (view->engine &&
        as_engine_visit_target(view->engine, wanted, view->mono, view->wall, each, context))
        return true;
    AS_CLEANUP(as_free_p) char *key = as_target_key_make(wanted);
    struct target_search search = {.wanted = key, .each = each, .context = context};
    visit(request, visit_if_wanted, &search);
    search.wanted = wanted;
    search.by_name = true;
    if (!search.is_found)
        visit(request, visit_if_wanted, &search);
    return search.is_found;
}

/* The wanted target is in the path. */
static void answer_no_target(const struct api_request *request)
{
    AS_CLEANUP(as_free_p) char *wanted = api_decode_rest(request);
    as_reply_error(request->exchange, 404, NULL, "no such target: %s", wanted ? wanted : "");
}

static void answer_with_target(void *context, const struct as_target_view *view)
{
    struct api_request *request = context;
    if (!api_may_see_target(request, view->name, view->id)) {
        answer_no_target(request);
        return;
    }
    const struct target_answer answer = target_make_answer(request, view);
    targets_answer_object(request, target_rows, &answer);
}

static void answer_with_state(void *context, const struct as_target_view *target)
{
    struct api_request *request = context;
    AS_CLEANUP(as_buf_deinit) struct as_buf state = AS_BUF_INIT(API_BODY_MAX);
    if (!api_may_see_target(request, target->name, target->id))
        answer_no_target(request);
    else if (!as_engine_encode_target(request->view.engine, target->id, &state))
        as_reply_error(request->exchange, 404, NULL, "no such target: %s", target->id);
    else if (as_buf_check(&state) < 0)
        as_reply_error(request->exchange, 500, NULL, "the state is longer than %zu bytes",
                       API_BODY_MAX);
    else {
        api_begin(request);
        if (!api_write_document(request, state.data, state.size))
            as_json_write_null(&request->json);
        api_end(request);
    }
}

static void answer_for_target(struct api_request *request, as_target_visit_fn *each)
{
    AS_CLEANUP(as_free_p) char *wanted = api_decode_rest(request);
    if (as_str_is_empty(wanted))
        as_reply_error(request->exchange, 400, NULL, "expected a target's name or id");
    else if (!api_visit_target(request, wanted, each, request))
        answer_no_target(request);
}

void api_answer_debug_target(struct api_request *request)
{
    answer_for_target(request, answer_with_state);
}

void api_answer_target(struct api_request *request)
{
    answer_for_target(request, answer_with_target);
}
