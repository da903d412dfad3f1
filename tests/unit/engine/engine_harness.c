/*
 * See engine_harness.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/engine/state.h>
#include <alertscaler/model/labels.h>

#include "engine_harness.h"

#define DEFAULT_SIZE    4
#define TRANSCRIPT_MAX  ((size_t)1 << 22)
#define STEPS_PER_EVENT 20000

static const char *name_of(const char *id)
{
    const char *slash = strrchr(id, '/');
    return slash ? slash + 1 : id;
}

static void say(struct harness *harness, const char *format, ...) AS_PRINTF(2, 3);
static void say(struct harness *harness, const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    if (harness->transcript.size > 0)
        as_buf_append_str(&harness->transcript, "; ");
    as_buf_append_str(&harness->transcript, text);
}

const char *said(struct harness *harness)
{
    as_buf_clear(&harness->told);
    as_buf_append(&harness->told, "", 0);
    as_buf_append(&harness->told, harness->transcript.data, harness->transcript.size);
    as_buf_clear(&harness->transcript);
    return harness->told.data;
}

bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

unsigned count(const char *text, const char *part)
{
    unsigned found = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
        found++;
    return found;
}

/* Finds by the whole id or by its last part; makes it where it is not there. */
struct virtual_target *harness_target(struct harness *harness, const char *name)
{
    for (size_t i = 0; i < harness->target_count; i++) {
        struct virtual_target *target = &harness->targets[i];
        if (strcmp(name_of(target->id), name_of(name)) == 0)
            return target;
    }
    cr_assert_lt(harness->target_count, HARNESS_TARGETS);
    struct virtual_target *target = &harness->targets[harness->target_count++];
    *target = (struct virtual_target){.size = DEFAULT_SIZE, .min = -1, .max = -1, .version = 1};
    (void)snprintf(target->id, sizeof(target->id), "%s", name);
    return target;
}

void harness_script(struct harness *harness, struct scale_script script)
{
    harness->scripts[harness->script_count++] = script;
}

static void stage(struct harness *harness, enum as_store_kind kind, const void *key,
                  size_t key_size, struct as_buf *value)
{
    struct staged_commit *staged = &harness->staged;
    cr_assert_lt(staged->count, AS_ARRAY_SIZE(staged->changes));
    char *kept_key = as_xmalloc(key_size);
    memcpy(kept_key, key, key_size);
    struct as_store_change *change = &staged->changes[staged->count++];
    *change = (struct as_store_change){.kind = kind, .key = kept_key, .key_size = key_size};
    if (value)
        change->value = as_buf_take(value, &change->value_size);
}

static void staged_deinit(struct staged_commit *staged)
{
    for (size_t i = 0; i < staged->count; i++) {
        free((void *)(uintptr_t)staged->changes[i].key);
        free((void *)(uintptr_t)staged->changes[i].value);
    }
    *staged = (struct staged_commit){0};
}

static void say_decision(struct harness *harness, const struct as_decision_record *record)
{
    const struct as_decision *decision = record->output;
    char would[32] = "", repeats[48] = "", size[32];
    harness->last_notification_total = record->notification_total;
    harness->last_notification_count = record->notification_count;
    harness->last_sample_count = 0;
    harness->last_step =
        record->give_back ? *record->give_back : (struct as_give_back_note){.step = 0};
    harness->last_step.incident = NULL;
    harness->last_has_proof = record->proof != NULL;
    harness->last_reported =
        record->proof ? record->proof->reported : (as_maybe_time){.set = false};
    harness->last_every_us = record->proof ? record->proof->every_us : 0;
    (void)snprintf(harness->last_proof_query, sizeof(harness->last_proof_query), "%s",
                   record->proof && record->proof->query ? record->proof->query : "");
    if (record->input->flags.in_progress_by != AS_IN_PROGRESS_NONE)
        harness->last_in_progress_by = record->input->flags.in_progress_by;
    (void)snprintf(harness->last_holder, sizeof(harness->last_holder), "%s",
                   decision->held_by.name ? decision->held_by.name : "");
    harness->last_error[0] = '\0';
    for (size_t i = record->input->proposal_count; i-- > 0;) {
        const struct as_proposal *proposal = &record->input->proposals[i];
        harness->last_sample_count += proposal->sample_count;
        if (proposal->error)
            (void)snprintf(harness->last_error, sizeof(harness->last_error), "%s", proposal->error);
    }
    if (decision->desired != decision->replicas && record->target_kind == &as_target_kind_pool)
        memcpy(harness->last_pool_decision, record->id, AS_ULID_SIZE);
    if (record->pool_decision)
        memcpy(harness->last_shared, record->pool_decision, AS_ULID_SIZE);
    if (decision->desired != decision->replicas)
        (void)snprintf(harness->last_order, sizeof(harness->last_order), "%s", record->id);
    if (decision->has_would)
        (void)snprintf(would, sizeof(would), " (%d)", decision->would);
    if (record->repeats)
        (void)snprintf(repeats, sizeof(repeats), " after %llu",
                       (unsigned long long)record->repeats);
    if (decision->desired != decision->replicas)
        (void)snprintf(size, sizeof(size), "%d>%d", decision->replicas, decision->desired);
    else
        (void)snprintf(size, sizeof(size), "%d", decision->replicas);
    say(harness, "decided %s %s %s%s%s%s%s%s%s%s%s", name_of(record->target), size,
        as_reason_get_word(decision->reason), would, decision->rule ? " by " : "",
        decision->rule ? decision->rule : "", repeats, record->waits_for ? " waits for " : "",
        record->waits_for ? record->waits_for : "", record->former_uid ? " not " : "",
        record->former_uid ? record->former_uid : "");
}

static void say_action(struct harness *harness, const struct as_action_record *record)
{
    (void)snprintf(harness->last_message, sizeof(harness->last_message), "%s", record->message);
    harness->last_tries = record->tries;
    harness->last_next_try = record->next_try;
    (void)snprintf(harness->last_sender, sizeof(harness->last_sender), "%s",
                   record->sender ? record->sender : "");
    if (record->decision && strcmp(record->decision, harness->last_order) != 0)
        harness->misnamed_decisions++;
    if (record->command && strcmp(record->command, harness->last_command) == 0)
        say(harness, "ordered %s %d>%d %s%s", name_of(record->target), record->from, record->to,
            as_reason_get_word(record->outcome), record->is_late ? " late" : "");
    else if (record->command)
        say(harness, "earlier order %s %d>%d %s", name_of(record->target), record->from, record->to,
            as_reason_get_word(record->outcome));
    else if (!record->decision)
        say(harness, "failed %s %s", name_of(record->target), as_reason_get_word(record->outcome));
    else
        say(harness, "acted %s %d>%d %s%s%s", name_of(record->target), record->from, record->to,
            as_reason_get_word(record->outcome), record->is_late ? " late" : "",
            record->approval ? " with approval" : "");
}

static void say_command(struct harness *harness, const struct as_operator_command_record *record)
{
    const struct as_operator_command *order = record->order;
    char size[16] = "";
    memcpy(harness->last_command, record->id, AS_ULID_SIZE);
    (void)snprintf(harness->last_message, sizeof(harness->last_message), "%s", record->message);
    if (order->kind == AS_OPERATOR_COMMAND_SCALE)
        (void)snprintf(size, sizeof(size), " %d", order->replicas);
    say(harness, "%s %s%s %s%s%s", as_operator_command_kind_get_word(order->kind),
        record->target                    ? name_of(record->target)
        : order->target || order->request ? "?"
                                          : "all",
        size, as_operator_command_outcome_get_word(record->outcome), order->who[0] ? " for " : "",
        order->who);
}

/* Seconds, or "-". */
static const char *print_after(int64_t us, char out[24])
{
    (void)snprintf(out, 24, us < 0 ? "-" : "%lld", (long long)(us / AS_US_PER_S));
    return out;
}

static void say_follow(struct harness *harness, const struct as_effect_record *record)
{
    char ready[24], resolved[24];
    cr_assert_eq(strlen(record->action), AS_ULID_SIZE - 1);
    cr_assert_eq(strlen(record->decision), AS_ULID_SIZE - 1);
    say(harness, "effect %s %d>%d by %s ready %s resolved %s %s%s", name_of(record->target),
        record->from, record->to, record->rule, print_after(record->ready_us, ready),
        print_after(record->resolved_us, resolved), as_effect_end_get_word(record->end),
        record->is_held ? " held" : "");
}

static void say_others(struct harness *harness, const struct as_others_record *record)
{
    struct as_buf words = AS_BUF_INIT(TRANSCRIPT_MAX);
    for (size_t i = 0; record->contended && i < record->contended->reverted_change_count; i++) {
        const struct as_reverted_change *each = &record->contended->reverted_changes[i];
        as_buf_printf(&words, " %d>%d>%d by %s", each->from, each->to, each->found,
                      *each->by ? each->by : "?");
    }
    as_buf_printf(&words, "%s%s", record->message ? ": " : "",
                  record->message ? record->message : "");
    say(harness, "%s %s%s", as_others_event_get_word(record->event), name_of(record->target),
        words.data ? words.data : "");
    as_buf_deinit(&words);
}

static void say_notification(struct harness *harness, const struct as_notification_record *record)
{
    struct as_buf words = AS_BUF_INIT(TRANSCRIPT_MAX);
    for (size_t i = 0; i < record->notification->alert_count; i++) {
        const struct as_alert_outcome *outcome = &record->outcomes[i];
        as_buf_printf(&words, "%s%s", i ? "," : "",
                      outcome->is_queued ? "queued" : as_reason_get_word(outcome->reason));
    }
    say(harness, "said %s", words.size ? words.data : "nothing");
    as_buf_deinit(&words);
}

static void print_templates(struct harness *harness, const struct as_observe_request *request)
{
    struct as_buf text = AS_BUF_INIT(sizeof(harness->last_templates) - 1);
    for (size_t i = 0; i < request->template_count; i++)
        as_buf_printf(&text, "%s=%s;", name_of(request->templates[i].group),
                      request->templates[i].text);
    cr_assert_eq(as_buf_check(&text), 0);
    (void)snprintf(harness->last_templates, sizeof(harness->last_templates), "%s",
                   text.size ? text.data : "");
    as_buf_deinit(&text);
}

static void queue_call(struct harness *harness, const struct as_effect *effect)
{
    cr_assert_lt(harness->call_count, HARNESS_QUEUE);
    struct queued_call *call = &harness->calls[harness->call_count++];
    *call = (struct queued_call){
        .is_scale = effect->kind == AS_EFFECT_SCALE,
        .is_query = effect->kind == AS_EFFECT_QUERY,
        .at = harness->mono,
        .call_id = effect->call_id,
    };
    if (call->is_query) {
        (void)snprintf(call->query, sizeof(call->query), "%s", effect->query->text);
        say(harness, "query %s", call->query);
        return;
    }
    call->with_pods = !call->is_scale && effect->call.observe->with_pods;
    call->texts = as_xcalloc(1, sizeof(*call->texts));
    if (!call->is_scale && effect->call.observe->pool)
        as_pool_request_copy(effect->call.observe->pool, call->texts, &call->pool);
    const char *id = effect->call.ref->id;
    (void)snprintf(call->id, sizeof(call->id), "%s", id);
    if (call->is_scale) {
        call->request = *effect->call.request;
        const char **taken = as_arena_alloc(call->texts, call->request.take_count, sizeof(*taken));
        char names[128] = "";
        for (size_t i = 0; i < call->request.take_count; i++) {
            taken[i] = as_arena_strdup(call->texts, call->request.take[i]);
            (void)snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
                           i > 0 ? "," : " without ", taken[i]);
        }
        call->request.take = taken;
        say(harness, "%s %s %d>%d%s",
            call->request.is_clean_up    ? "clean up"
            : call->request.is_take_back ? "take back"
                                         : "scale",
            name_of(id), call->request.from, call->request.to, names);
        return;
    }
    call->is_look = effect->call.observe->pool != NULL;
    if (call->is_look && harness->on_ask)
        harness->on_ask(harness, name_of(id), effect->call.observe->pool);
    call->with_nodes = effect->call.observe->with_nodes;
    call->with_rollout = effect->call.observe->with_rollout;
    call->has_own_size = effect->call.observe->has_own_size;
    call->own_size = effect->call.observe->own_size;
    print_templates(harness, effect->call.observe);
    say(harness, "%s %s%s%s%s%s", call->is_look ? "look at" : "observe", name_of(id),
        call->with_pods ? " with pods" : "",
        effect->call.observe->with_owners ? " with owners" : "",
        call->with_nodes ? " with nodes" : "", call->with_rollout ? " with rollout" : "");
}

static void queue_commit(struct harness *harness, uint64_t call_id)
{
    cr_assert_lt(harness->commit_count, HARNESS_QUEUE);
    harness->staged.call_id = call_id;
    harness->commits[harness->commit_count++] = harness->staged;
    harness->staged = (struct staged_commit){0};
}

/* An incident's in the store; returns its size. */
static size_t key_of(const struct as_incident_key *key, char key_out[128])
{
    memcpy(key_out, key->digest.bytes, sizeof(key->digest.bytes));
    return sizeof(key->digest.bytes) +
           (size_t)snprintf(key_out + sizeof(key->digest.bytes), 64, "%s", key->owner);
}

static void carry_out(struct harness *harness, const struct as_effect *effect)
{
    struct as_buf value = AS_BUF_INIT(TRANSCRIPT_MAX);
    char key[128];
    switch (effect->kind) {
    case AS_EFFECT_PUT_INCIDENT:
        as_state_encode_incident(effect->incident, harness->boot, &value);
        stage(harness, AS_STORE_INCIDENT, key, key_of(&effect->incident->key, key), &value);
        break;
    case AS_EFFECT_DELETE_INCIDENT:
        stage(harness, AS_STORE_INCIDENT, key, key_of(&effect->incident_key, key), NULL);
        break;
    case AS_EFFECT_PUT_TARGET:
        harness->target_puts++;
        as_state_encode_target(effect->target, harness->boot, &value);
        stage(harness, AS_STORE_TARGET, effect->target->stored_as,
              strlen(effect->target->stored_as), &value);
        break;
    case AS_EFFECT_DELETE_TARGET:
        stage(harness, AS_STORE_TARGET, effect->stored_as, strlen(effect->stored_as), NULL);
        break;
    case AS_EFFECT_PUT_INTENT:
        as_state_encode_intent(effect->intent, harness->boot, &value);
        stage(harness, AS_STORE_INTENT, effect->intent->stored_as,
              strlen(effect->intent->stored_as), &value);
        break;
    case AS_EFFECT_DELETE_INTENT:
        stage(harness, AS_STORE_INTENT, effect->stored_as, strlen(effect->stored_as), NULL);
        break;
    case AS_EFFECT_PUT_PAUSE:
        as_state_encode_pause(effect->pause, harness->boot, &value);
        stage(harness, AS_STORE_META, "pause", strlen("pause"), &value);
        break;
    case AS_EFFECT_DELETE_PAUSE:
        stage(harness, AS_STORE_META, "pause", strlen("pause"), NULL);
        break;
    case AS_EFFECT_RECORD_COMMAND: say_command(harness, effect->order); break;
    case AS_EFFECT_RECORD_OTHERS: say_others(harness, effect->others); break;
    case AS_EFFECT_RECORD_NOTIFICATION: say_notification(harness, effect->notification); break;
    case AS_EFFECT_RECORD_DECISION: say_decision(harness, effect->decision); break;
    case AS_EFFECT_RECORD_ACTION: say_action(harness, effect->action); break;
    case AS_EFFECT_RECORD_EVALUATION: say_follow(harness, effect->evaluation); break;
    case AS_EFFECT_WARN:
        say(harness, "late %s %d ready %d", name_of(effect->call.ref->id), effect->call.late->to,
            effect->call.late->ready);
        break;
    case AS_EFFECT_RECORD_INCIDENT:
        say(harness, "%s", as_incident_event_get_word(effect->incident_record->event));
        break;
    case AS_EFFECT_RECORD_APPROVAL:
        memcpy(harness->last_request, effect->approval->request->id, AS_ULID_SIZE);
        if (effect->approval->event == AS_APPROVAL_ON_VOID)
            (void)snprintf(harness->last_void, sizeof(harness->last_void), "%s",
                           effect->approval->message);
        say(harness, "%s %s %d>%d by %s", as_approval_event_get_word(effect->approval->event),
            name_of(effect->approval->target), effect->approval->request->from,
            effect->approval->request->to, effect->approval->request->rule);
        break;
    case AS_EFFECT_LIST_ALERTS:
        say(harness, "list");
        cr_assert_eq(harness->list_call_id, 0, "two lists at a time");
        harness->list_call_id = effect->call_id;
        break;
    case AS_EFFECT_LIST_OBJECTS:
        say(harness, "list %s", effect->entry->name);
        harness->objects_call_id = effect->call_id;
        break;
    case AS_EFFECT_COMMIT:
        harness->repeats += effect->is_repeat;
        queue_commit(harness, effect->call_id);
        break;
    case AS_EFFECT_ANSWER: say(harness, "answered"); break;
    case AS_EFFECT_OBSERVE:
    case AS_EFFECT_QUERY:
    case AS_EFFECT_SCALE: queue_call(harness, effect); break;
    }
}

static bool belongs_to_commit(enum as_effect_kind kind)
{
    return kind < AS_EFFECT_COMMIT;
}

static void step(struct harness *harness, struct as_event *event)
{
    struct as_effects effects;
    bool is_pending = false;
    event->mono = harness->mono;
    event->wall = harness->wall;
    as_engine_step(harness->engine, event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        is_pending = effects.items[i].kind != AS_EFFECT_COMMIT &&
                     (is_pending || belongs_to_commit(effects.items[i].kind));
        carry_out(harness, &effects.items[i]);
    }
    cr_assert(!is_pending, "effects without a commit: ...%s", harness->transcript.data);
}

/* Of a node group in the fleet; -1: it is none. */
static int find_group(const struct harness *harness, const char *id)
{
    const struct fleet *fleet = harness->fleet;
    for (size_t i = 0; fleet && i < fleet->group_count; i++) {
        if (strcmp(fleet->groups[i].name, name_of(id)) == 0)
            return (int)i;
    }
    return -1;
}

static void look_at_fleet(struct harness *harness, const char *id, struct virtual_target *target)
{
    const int group = find_group(harness, id);
    if (harness->fleet)
        fleet_tick(harness->fleet, harness->wall);
    if (group < 0)
        return;
    target->size = harness->fleet->groups[group].size;
    target->missing =
        target->size - (int32_t)fleet_count_nodes(harness->fleet, (size_t)group, true);
    target->names_instances = true;
}

static void answer_observe(struct harness *harness, const struct queued_call *call)
{
    struct virtual_target *target = harness_target(harness, call->id);
    struct as_arena arena = AS_ARENA_INIT;
    struct as_snapshot snapshot;
    struct as_pool_plan plan;
    look_at_fleet(harness, call->id, target);
    const struct as_nodes_seen nodes = {.template_ = target->template_};
    struct as_observation observation = {
        .outcome = target->failure ? target->failure : harness->observation,
        .replicas = target->size,
        .status_replicas = target->size - target->missing,
        .min = target->min,
        .max = target->max,
        .in_progress = target->in_progress,
        .names_instances = target->names_instances,
        .is_relative = target->is_relative,
        .retry_after_us = harness->observation_retry_after_us,
        .has_pods = call->with_pods && !target->pods_unknown,
        .pods = harness->pods,
        .pod_count = call->with_pods ? harness->pod_count : 0,
        .nodes = call->with_nodes ? &nodes : NULL,
        .resize = target->resize,
        .rollout = call->with_rollout ? target->rollout : (struct as_rollout_seen){0},
        .backing = target->backing,
    };
    while (target->backing[observation.backing_count])
        observation.backing_count++;
    if (!target->has_no_version)
        (void)snprintf(observation.version, sizeof(observation.version), "%u", target->version);
    if (target->manager && call->has_own_size && call->own_size != target->size)
        (void)snprintf(observation.changed_by, sizeof(observation.changed_by), "%s",
                       target->manager);
    if (target->uid)
        (void)snprintf(observation.uid, sizeof(observation.uid), "%s", target->uid);
    if (call->is_look && harness->on_look) {
        harness->on_look(harness, name_of(call->id), &observation);
    } else if (call->pool.member_count > 0) {
        fleet_snapshot(harness->fleet, &call->pool, &arena, &snapshot, &plan);
        observation.snapshot = &snapshot;
        observation.plan = &plan;
        if (find_group(harness, call->id) < 0)
            observation.replicas = observation.status_replicas = plan.size;
    }
    step(harness, &(struct as_event){.kind = AS_EVENT_OBSERVED,
                                     .call_id = call->call_id,
                                     .observation = &observation});
    as_arena_deinit(&arena);
}

static void answer_query(struct harness *harness, const struct queued_call *call)
{
    struct as_query_result result = {.error = "query returned no data"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(harness->queries); i++) {
        if (as_str_equal(harness->queries[i].text, call->query))
            result = harness->queries[i].result;
    }
    step(harness,
         &(struct as_event){.kind = AS_EVENT_QUERIED, .call_id = call->call_id, .answer = &result});
}

static void answer_scale(struct harness *harness, const struct queued_call *call)
{
    struct virtual_target *target = harness_target(harness, call->id);
    struct scale_script script = {.outcome = AS_REASON_APPLIED, .is_done = true};
    char version[AS_VERSION_SIZE];
    (void)snprintf(version, sizeof(version), "%u", target->version);
    harness->last_later_than = call->request.later_than;
    if (harness->always.outcome) {
        script = harness->always;
    } else if (harness->script_count > 0) {
        script = harness->scripts[0];
        memmove(harness->scripts, harness->scripts + 1,
                --harness->script_count * sizeof(harness->scripts[0]));
    } else if (call->request.version[0] && strcmp(version, call->request.version) != 0) {
        script = (struct scale_script){.outcome = AS_REASON_CONFLICT};
    }
    if (script.is_done) {
        if (target->has_no_capacity && call->request.to > target->size)
            target->missing += call->request.to - target->size;
        if (call->request.is_take_back)
            target->missing -= target->size - call->request.to;
        target->size = call->request.to;
        target->version++;
        if (call->request.is_clean_up)
            cr_assert_eq(fleet_clean_up(harness->fleet, (size_t)find_group(harness, call->id),
                                        call->request.from - call->request.to),
                         call->request.from - call->request.to, "a serving instance would leave");
        else if (find_group(harness, call->id) >= 0 &&
                 !fleet_set_size(harness->fleet, (size_t)find_group(harness, call->id),
                                 call->request.to, call->request.take, call->request.take_count))
            cr_assert_fail("%s: a node that is not the group's was to leave", call->id);
    }
    if (harness->on_request)
        harness->on_request(harness, call, script.is_done);
    struct as_scale_result result = {
        .outcome = script.outcome,
        .is_ambiguous = script.is_ambiguous,
        .is_shortage = script.is_shortage,
        .is_accepted = script.is_accepted,
        .is_partial = script.is_in_vain,
        .reached = call->request.from,
        .returned = script.returned,
        .retry_after_us = script.retry_after_us,
        .attempts = 1,
    };
    if (target->words)
        (void)snprintf(result.message, sizeof(result.message), "%s", target->words);
    step(harness,
         &(struct as_event){.kind = AS_EVENT_SCALED, .call_id = call->call_id, .result = &result});
}

static struct as_labels *parse_labels(const char *text)
{
    char copy[256];
    struct as_label pairs[16];
    size_t count = 0;
    struct as_labels *labels = NULL;
    (void)snprintf(copy, sizeof(copy), "%s", text);
    char *rest = copy, *pair;
    while ((pair = strsep(&rest, ",")) && *pair) {
        char *value = strchr(pair, '=');
        pairs[count] = (struct as_label){value ? pair : "alertname", value ? value + 1 : pair};
        if (value)
            *value = '\0';
        count++;
    }
    cr_assert_eq(as_labels_new(pairs, count, &labels), 0);
    return labels;
}

/* "value" of the annotation `summary`, or "name=value". */
static struct as_labels *make_annotations(const char *text)
{
    struct as_labels *labels = NULL;
    const char *value = text ? strchr(text, '=') : NULL;
    AS_CLEANUP(as_free_p)
    char *name = value ? as_xstrndup(text, (size_t)(value - text)) : as_xstrdup("summary");
    const struct as_label pair = {name, value ? value + 1 : text};
    cr_assert_eq(as_labels_new(&pair, text ? 1 : 0, &labels), 0);
    return labels;
}

static int compare_listed(const void *a, const void *b)
{
    const struct as_listed_alert *left = a, *right = b;
    return as_digest_compare(&left->digest, &right->digest);
}

/* An alert of the list, on the heap like all that it points to. */
static struct as_listed_alert make_listed(const struct harness *harness,
                                          const struct test_listed *listed)
{
    char *names = as_xstrdup(listed->receivers ? listed->receivers : "scaler");
    struct as_listed_route *routes = as_xcalloc(strlen(names) + 1, sizeof(*routes));
    struct as_labels *labels = parse_labels(listed->labels);
    struct as_listed_alert alert = {
        .digest = as_labels_get_digest(labels),
        .fingerprint = as_labels_get_fingerprint(labels),
        .is_suppressed = listed->is_suppressed,
        .is_inhibited = listed->is_inhibited,
        .starts_at = {listed->starts * AS_US_PER_S},
        .updated_at = {listed->updated ? listed->updated * AS_US_PER_S : harness->wall.us},
        .labels = labels,
        .annotations = make_annotations(listed->annotation),
        .generator_url = listed->generator_url,
        .routes = routes,
    };
    char *rest = names, *name;
    while ((name = strsep(&rest, ",")))
        routes[alert.route_count++] = (struct as_listed_route){
            .receiver = as_xstrdup(name),
            .is_muted = listed->muted && strstr(listed->muted, name),
            .wait_us = listed->wait < 0 ? AS_LISTED_NEVER : listed->wait * AS_US_PER_S,
        };
    free(names);
    return alert;
}

static void free_listed(struct as_listed_alert *alert)
{
    for (size_t i = 0; i < alert->route_count; i++)
        free((char *)(uintptr_t)alert->routes[i].receiver);
    free((void *)(uintptr_t)alert->routes);
    as_labels_free((struct as_labels *)(uintptr_t)alert->labels);
    as_labels_free((struct as_labels *)(uintptr_t)alert->annotations);
}

static void answer_list(struct harness *harness)
{
    const size_t count = harness->list_error ? 0 : harness->listed_count;
    struct as_listed_alert *alerts = as_xcalloc(count + 1, sizeof(*alerts));
    for (size_t i = 0; i < count; i++)
        alerts[i] = make_listed(harness, &harness->listed[i]);
    qsort(alerts, count, sizeof(*alerts), compare_listed);
    const struct as_alert_list list = {
        .error = harness->list_error,
        .alerts = alerts,
        .count = count,
        .unread = harness->list_unread,
        .problem = harness->list_unread > 0 ? "alerts[0]: no alert" : NULL,
        .is_anew = harness->list_is_anew,
    };
    const uint64_t call_id = harness->list_call_id;
    harness->list_call_id = 0;
    step(harness, &(struct as_event){.kind = AS_EVENT_LISTED, .call_id = call_id, .list = &list});
    for (size_t i = 0; i < count; i++)
        free_listed(&alerts[i]);
    free(alerts);
}

void harness_answer_objects(struct harness *harness, const struct as_object_list *objects)
{
    const uint64_t call_id = harness->objects_call_id;
    cr_assert_neq(call_id, 0, "no list of objects is asked for");
    harness->objects_call_id = 0;
    step(harness,
         &(struct as_event){.kind = AS_EVENT_OBJECTS, .call_id = call_id, .objects = objects});
}

void harness_list(struct harness *harness, const struct test_listed *alerts, size_t count)
{
    harness->listed = alerts;
    harness->listed_count = count;
}

static void deliver_commit(struct harness *harness)
{
    struct staged_commit commit = harness->commits[0];
    memmove(harness->commits, harness->commits + 1,
            --harness->commit_count * sizeof(harness->commits[0]));
    struct as_error error;
    cr_assert_eq(harness->store->commit(harness->store, commit.changes, commit.count, &error), 0);
    const uint64_t call_id = commit.call_id;
    staged_deinit(&commit);
    if (call_id)
        step(harness, &(struct as_event){.kind = AS_EVENT_COMMITTED, .call_id = call_id});
}

static bool is_hanging(struct harness *harness, const struct queued_call *call)
{
    if (call->is_query)
        return harness->hold_queries;
    if (!call->id[0])
        return false;
    const struct virtual_target *target = harness_target(harness, call->id);
    return target->is_hanging || (call->is_scale && target->is_slow);
}

/* The first call that is answered; `call_count` where there is none. */
static size_t find_call(struct harness *harness)
{
    if (harness->hold_calls)
        return harness->call_count;
    size_t i = 0;
    while (i < harness->call_count && is_hanging(harness, &harness->calls[i]))
        i++;
    return i;
}

static void free_call(const struct queued_call *call)
{
    struct as_pool_request pool = call->pool;
    as_pool_request_deinit(&pool);
    if (call->texts)
        as_arena_deinit(call->texts);
    free(call->texts);
}

static void answer_call(struct harness *harness, size_t i)
{
    const struct queued_call call = harness->calls[i];
    memmove(harness->calls + i, harness->calls + i + 1,
            (--harness->call_count - i) * sizeof(harness->calls[0]));
    if (call.is_query)
        answer_query(harness, &call);
    else if (call.is_scale)
        answer_scale(harness, &call);
    else
        answer_observe(harness, &call);
    free_call(&call);
}

void harness_settle(struct harness *harness)
{
    for (unsigned i = 0; i < STEPS_PER_EVENT; i++) {
        const size_t call = find_call(harness);
        if (harness->commit_count > 0 && !harness->hold_commits)
            deliver_commit(harness);
        else if (call < harness->call_count)
            answer_call(harness, call);
        else if (harness->list_call_id && !harness->hold_lists)
            answer_list(harness);
        else
            return;
    }
    cr_assert_fail("the engine does not come to rest: ...%s",
                   harness->transcript.data + harness->transcript.size / 2);
}

void harness_settle_to_request(struct harness *harness)
{
    harness->hold_calls = false; /* the observation comes, */
    harness->hold_commits = true;
    harness_settle(harness);
    harness->hold_calls = true; /* and the intent is committed */
    harness->hold_commits = false;
    harness_settle(harness);
    cr_assert(harness->call_count > 0 && harness->calls[0].is_scale);
}

void tick(struct harness *harness, int64_t seconds)
{
    const int64_t end = harness->mono.us + seconds * AS_US_PER_S;
    for (;;) {
        const as_mono_time next = as_engine_get_next_deadline(harness->engine);
        if (next.us > end)
            break;
        if (next.us > harness->mono.us) {
            harness->wall.us += next.us - harness->mono.us;
            harness->mono = next;
        }
        harness->deadlines++;
        step(harness, &(struct as_event){.kind = AS_EVENT_DEADLINE});
        cr_assert_gt(as_engine_get_next_deadline(harness->engine).us, harness->mono.us,
                     "a deadline that does not move on");
        harness_settle(harness);
    }
    harness->wall.us += end - harness->mono.us;
    harness->mono.us = end;
}

void harness_notify(struct harness *harness, const char *receiver, const struct test_alert *alerts,
                    size_t count)
{
    struct as_notification *notification = as_xcalloc(1, sizeof(*notification));
    (void)snprintf(notification->id, sizeof(notification->id), "N%llu",
                   (unsigned long long)++harness->notifications);
    notification->receiver = as_xstrdup(receiver);
    notification->group_key = as_xstrdup("");
    notification->reason = as_xstrdup("");
    notification->remote = as_xstrdup("");
    notification->credential = as_xstrdup(harness->credential ? harness->credential : "");
    notification->traceparent = as_xstrdup("");
    notification->alerts = as_xcalloc(count + 1, sizeof(*notification->alerts));
    notification->alert_count = count;
    if (count > 0 && alerts[0].external_url)
        notification->external_url = as_xstrdup(alerts[0].external_url);
    for (size_t i = 0; i < count; i++) {
        struct as_alert *alert = &notification->alerts[i];
        alert->status = alerts[i].is_resolved ? AS_ALERT_RESOLVED : AS_ALERT_FIRING;
        alert->starts_at.us = alerts[i].starts * AS_US_PER_S + alerts[i].starts_us;
        if (alerts[i].is_resolved)
            alert->ends_at.us = alerts[i].ends ? alerts[i].ends * AS_US_PER_S : harness->wall.us;
        alert->labels = parse_labels(alerts[i].labels);
        alert->annotations = make_annotations(alerts[i].annotation);
        if (alerts[i].generator_url)
            alert->generator_url = as_xstrdup(alerts[i].generator_url);
        alert->digest = as_labels_get_digest(alert->labels);
        alert->fingerprint = alerts[i].fingerprint ? alerts[i].fingerprint
                                                   : as_labels_get_fingerprint(alert->labels);
    }
    if (as_engine_has_room(harness->engine, notification))
        step(harness, &(struct as_event){.kind = AS_EVENT_NOTIFICATION,
                                         .call_id = ++harness->requests,
                                         .notification = notification});
    else
        say(harness, "no room");
    as_notification_free(notification);
    harness_settle(harness);
}

void fire(struct harness *harness, const char *labels, int64_t starts)
{
    harness_notify(harness, "scaler", &(struct test_alert){.labels = labels, .starts = starts}, 1);
}

void resolve(struct harness *harness, const char *labels, int64_t starts)
{
    harness_notify(harness, "scaler",
                   &(struct test_alert){.labels = labels, .starts = starts, .is_resolved = true},
                   1);
}

static const char *const all_receivers[] = {"scaler", "other", "pager", "first", "second"};

void harness_start(struct harness *harness, const struct spec *spec)
{
    harness->transcript = AS_BUF_INIT(TRANSCRIPT_MAX);
    harness->told = AS_BUF_INIT(TRANSCRIPT_MAX);
    harness->observation = AS_REASON_APPLIED;
    harness->boot = "boot-1";
    harness->mono.us = 50 * AS_US_PER_S;
    harness->wall.us = 1000 * AS_US_PER_S;
    if (!harness->learns_receivers) {
        harness->config.receivers = all_receivers;
        harness->config.receiver_count = AS_ARRAY_SIZE(all_receivers);
    }
    harness->config.incident_expiry_us = AS_US_PER_DAY;
    harness->config.stale_window_us = 2 * AS_US_PER_MIN;
    harness->memory = as_store_memory_new();
    harness->store = as_store_memory_attach(harness->memory);
    harness->ruleset = spec_make_ruleset(spec);
    harness->engine = as_engine_new(&harness->config, harness->ruleset);
    step(harness, &(struct as_event){.kind = AS_EVENT_START});
    harness_settle(harness);
    (void)said(harness);
}

static void drop_engine(struct harness *harness)
{
    harness->engine = as_engine_free(harness->engine);
    staged_deinit(&harness->staged);
    for (size_t i = 0; i < harness->commit_count; i++)
        staged_deinit(&harness->commits[i]);
    while (harness->call_count > 0)
        free_call(&harness->calls[--harness->call_count]);
    harness->commit_count = 0;
    harness->list_call_id = 0;
}

void harness_stop(struct harness *harness)
{
    drop_engine(harness);
    harness->store->close(harness->store);
    as_store_memory_free(harness->memory);
    as_ruleset_free(harness->ruleset);
    as_buf_deinit(&harness->transcript);
    as_buf_deinit(&harness->told);
}

static int restore_incident(void *context, const struct as_incident_state *state)
{
    struct harness *harness = context;
    return as_engine_restore_incident(harness->engine, state);
}

static int restore_target(void *context, const struct as_target_state *state)
{
    struct harness *harness = context;
    return as_engine_restore_target(harness->engine, state);
}

static int restore_intent(void *context, const struct as_intent_state *state)
{
    struct harness *harness = context;
    return as_engine_restore_intent(harness->engine, state);
}

static int restore_pause(void *context, const struct as_pause_state *state)
{
    struct harness *harness = context;
    return as_engine_restore_pause(harness->engine, state);
}

static int visit_meta(void *context, const void *key, size_t key_size, const void *value,
                      size_t value_size)
{
    struct harness *harness = context;
    const struct as_state_clock clock = {harness->boot, harness->mono, harness->wall};
    struct as_error error = AS_ERROR_INIT;
    const int r = as_state_decode_pause(value, value_size, &clock, restore_pause, harness, &error);
    cr_assert_eq(r, 0, "%s", error.text);
    return r;
}

static int visit_incident(void *context, const void *key, size_t key_size, const void *value,
                          size_t value_size)
{
    struct harness *harness = context;
    const struct as_state_clock clock = {harness->boot, harness->mono, harness->wall};
    struct as_error error = AS_ERROR_INIT;
    const int r =
        as_state_decode_incident(value, value_size, &clock, restore_incident, harness, &error);
    cr_assert_eq(r, 0, "%s", error.text);
    return r;
}

static int visit_target(void *context, const void *key, size_t key_size, const void *value,
                        size_t value_size)
{
    struct harness *harness = context;
    const struct as_state_clock clock = {harness->boot, harness->mono, harness->wall};
    struct as_error error = AS_ERROR_INIT;
    const int r =
        as_state_decode_target(value, value_size, &clock, restore_target, harness, &error);
    cr_assert_eq(r, 0, "%s", error.text);
    return r;
}

static int visit_intent(void *context, const void *key, size_t key_size, const void *value,
                        size_t value_size)
{
    struct harness *harness = context;
    const struct as_state_clock clock = {harness->boot, harness->mono, harness->wall};
    struct as_error error = AS_ERROR_INIT;
    const int r =
        as_state_decode_intent(value, value_size, &clock, restore_intent, harness, &error);
    cr_assert_eq(r, 0, "%s", error.text);
    return r;
}

void harness_crash(struct harness *harness, int64_t gap_seconds)
{
    struct as_store *store = harness->store;
    drop_engine(harness);
    harness->mono.us += gap_seconds * AS_US_PER_S;
    harness->wall.us += gap_seconds * AS_US_PER_S;
    harness->config.seed++;
    harness->engine = as_engine_new(&harness->config, harness->ruleset);
    cr_assert_eq(store->visit(store, AS_STORE_INCIDENT, visit_incident, harness, NULL), 0);
    cr_assert_eq(store->visit(store, AS_STORE_TARGET, visit_target, harness, NULL), 0);
    cr_assert_eq(store->visit(store, AS_STORE_INTENT, visit_intent, harness, NULL), 0);
    cr_assert_eq(store->visit(store, AS_STORE_META, visit_meta, harness, NULL), 0);
    say(harness, "restarted");
    step(harness, &(struct as_event){.kind = AS_EVENT_START});
    harness_settle(harness);
}

void harness_reload(struct harness *harness, const struct spec *spec)
{
    struct as_ruleset *old = harness->ruleset;
    harness->ruleset = spec_make_ruleset(spec);
    say(harness, "reloaded");
    step(harness, &(struct as_event){.kind = AS_EVENT_RULES,
                                     .ruleset = harness->ruleset,
                                     .config = harness->config});
    as_ruleset_free(old); /* nothing may look at it any more */
    harness_settle(harness);
}

void harness_order(struct harness *harness, struct as_operator_command order)
{
    if (!order.who)
        order.who = "";
    order.remote = "";
    if (!order.reason)
        order.reason = "test";
    step(harness, &(struct as_event){
                      .kind = AS_EVENT_ORDER, .call_id = ++harness->requests, .order = &order});
    harness_settle(harness);
}

void harness_halt(struct harness *harness, const char *reason)
{
    const struct as_halt halt = {"switch", reason};
    step(harness, &(struct as_event){.kind = AS_EVENT_HALT, .halt = &halt});
    harness_settle(harness);
}

void harness_send_stop(struct harness *harness)
{
    say(harness, "stopping");
    step(harness, &(struct as_event){.kind = AS_EVENT_STOP});
    harness_settle(harness);
}
