/*
 * The promises, checked as things happen: at each request that leaves the daemon, and at each
 * change that the server carries out, by the true time and not by what the daemon believes.
 *
 * A change of ours of which the daemon could not learn (no answer, and somebody else changed the
 * size before it looked again) starts no lock and counts for nobody; see check_others_change.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "sim.h"

/* From the answer of a guard to the intent: a target may take so long to answer. */
#define PROOF_US MINUTE

struct intent_search {
    const char *key, *word; /* that is in it */
    bool found;
};

static int find_intent(void *context, const void *key, size_t key_size, const void *value,
                       size_t value_size)
{
    struct intent_search *search = context;
    if (key_size == strlen(search->key) && memcmp(key, search->key, key_size) == 0)
        search->found = memmem(value, value_size, search->word, strlen(search->word));
    return 0;
}

bool check_has_stored_intent(struct world *world, const struct server_target *target,
                             const char *word)
{
    AS_CLEANUP(as_free_p) char *stored_as = as_target_key_make(target->id);
    struct intent_search search = {.key = stored_as, .word = word};
    struct as_store *peek = world->daemon.peek;
    if (peek->visit(peek, AS_STORE_INTENT, find_intent, &search, NULL) != 0)
        fail(world, "the store cannot be read");
    return search.found;
}

/* Which open incidents a rule is bound to on a target. */
struct key_search {
    const char *target, *rule;
    bool leaves_out_held;
    struct incident_key keys[ALERTS];
    int count;
};

static void visit_incident(void *context, const struct as_incident_state *state,
                           const struct as_incident_target *targets, size_t count)
{
    struct key_search *search = context;
    for (size_t i = 0; i < count && state->is_open; i++) {
        if (search->leaves_out_held && as_moment_is_set(state->silenced))
            continue;
        if (strcmp(targets[i].target, search->target) != 0 ||
            strcmp(targets[i].rule, search->rule) != 0 || search->count == ALERTS)
            continue;
        struct incident_key *key = &search->keys[search->count++];
        *key = (struct incident_key){.fingerprint = state->fingerprint,
                                     .opened = state->opened.wall,
                                     .starts_at = state->starts_at};
        (void)snprintf(key->rule, sizeof(key->rule), "%s", search->rule);
    }
}

static struct key_search find(struct world *world, const char *target, const char *rule,
                              bool leaves_out_held)
{
    struct key_search search = {.target = target, .rule = rule, .leaves_out_held = leaves_out_held};
    if (world->daemon.shell)
        as_engine_visit_incidents(as_shell_get_engine(world->daemon.shell), visit_incident,
                                  &search);
    return search;
}

static struct key_search find_keys(struct world *world, const char *target, const char *rule)
{
    return find(world, target, rule, false);
}

static bool keys_are_equal(const struct incident_key *a, const struct incident_key *b)
{
    return a->fingerprint == b->fingerprint && a->opened.us == b->opened.us &&
           strcmp(a->rule, b->rule) == 0;
}

static struct step_count *get_count(struct world *world, const struct incident_key *key,
                                    const char *target)
{
    for (size_t i = 0; i < world->count_count; i++) {
        struct step_count *count = &world->counts[i];
        if (keys_are_equal(&count->key, key) && strcmp(count->target, target) == 0)
            return count;
    }
    world->counts =
        as_xgrow(world->counts, world->count_count, &world->count_capacity, sizeof(*world->counts));
    struct step_count *count = &world->counts[world->count_count++];
    *count = (struct step_count){.key = *key};
    (void)snprintf(count->target, sizeof(count->target), "%s", target);
    return count;
}

/* What is missing, or not needed, is asked for as often as it is seen. */
static bool is_of_nodes(const struct as_rule *rule)
{
    return rule && (rule->action.is_fit || rule->action.is_take);
}

static bool has_no_lock(const struct as_rule *rule, const struct as_cooldown *cooldown)
{
    return !rule->action.is_to &&
           ((rule->action.kind == AS_ACTION_SCALE_UP && cooldown->up_us == 0) ||
            (rule->action.kind == AS_ACTION_SCALE_DOWN &&
             as_cooldown_get_down_after_down(cooldown) == 0));
}

static bool may_act(const struct world *world, const struct step_count *count,
                    const struct as_rule *rule, const struct as_cooldown *cooldown)
{
    if (count->is_vague)
        return true;
    if (rule->max_steps && count->count >= rule->max_steps)
        return false;
    if (count->count == 0)
        return true;
    if (rule->every_us)
        return world->now - count->last >= rule->every_us;
    return !has_no_lock(rule, cooldown);
}

static bool took_part(const struct as_rule *rule, const struct as_intent_state *intent)
{
    if (rule->dry_run || !rule->enabled)
        return false;
    if (strcmp(rule->name, intent->rule) == 0)
        return true;
    const bool is_fixed = rule->action.kind == AS_ACTION_SCALE_TO || rule->action.is_to;
    return intent->to > intent->from && rule->source.kind == AS_SOURCE_NONE &&
           !rule->approval.is_set && rule->action.kind != AS_ACTION_SCALE_DOWN &&
           (!is_fixed || rule->action.size > intent->from);
}

/* A rule that goes by a value may have wanted up too, which only the engine knows; one that waits
 * for people has been set aside, unless it needed no approval. */
static bool may_have_taken_part(const struct as_rule *rule, const struct as_intent_state *intent)
{
    return !rule->dry_run && rule->enabled && intent->to > intent->from &&
           (rule->source.kind != AS_SOURCE_NONE || rule->approval.is_set);
}

/* From here on, when these may act again cannot be told. */
static void blur_counts(struct world *world, const struct server_target *target,
                        const struct as_rule *rule)
{
    const struct key_search search = find_keys(world, target->id, rule->name);
    for (int i = 0; i < search.count; i++)
        get_count(world, &search.keys[i], target->id)->is_vague = true;
}

/* Notes which incidents take part in an action; how many of them through the winning rule. */
static int capture_keys(struct world *world, const struct server_target *target,
                        const struct as_target_config *config, const struct as_intent_state *intent,
                        struct capture *capture)
{
    int winners = 0;
    for (size_t i = 0; i < world->daemon.ruleset->rule_count; i++) {
        const struct as_rule *rule = world->daemon.ruleset->rules[i];
        if (!took_part(rule, intent)) {
            if (may_have_taken_part(rule, intent))
                blur_counts(world, target, rule);
            continue;
        }
        const struct key_search search = find(world, target->id, rule->name, true);
        for (int j = 0; j < search.count; j++) {
            const struct incident_key *key = &search.keys[j];
            const struct step_count *count = get_count(world, key, target->id);
            const bool is_due = may_act(world, count, rule, &config->bounds.cooldown);
            trace(world, "%s for %016llx: %u of %u steps, after %.6f of %.0f s%s", rule->name,
                  (unsigned long long)key->fingerprint, count->count, rule->max_steps,
                  (double)(world->now - count->last) / (double)SECOND,
                  (double)rule->every_us / (double)SECOND, is_due ? "" : ", not due");
            if (is_due && capture->key_count < CAPTURE_KEYS)
                capture->keys[capture->key_count++] = *key;
            winners += is_due && strcmp(rule->name, intent->rule) == 0;
        }
    }
    return winners;
}

static void check_was_delivered(struct world *world, const struct capture *capture)
{
    for (int i = 0; i < ALERTS; i++) {
        for (int j = 0; j < capture->key_count; j++) {
            if (world->alerts[i].fingerprint == capture->keys[j].fingerprint &&
                !world->alerts[i].was_delivered)
                fail(world, "scaled for an alert that never came firing");
        }
    }
}

static void check_veto(struct world *world, const struct server_target *target,
                       const struct as_intent_state *intent)
{
    for (size_t i = 0; i < world->daemon.ruleset->rule_count; i++) {
        const struct as_rule *other = world->daemon.ruleset->rules[i];
        const bool vetoes = !other->action.is_to || intent->to < other->action.size;
        if (other->enabled && !other->dry_run && !other->action.is_fit &&
            other->action.kind == AS_ACTION_SCALE_UP && other->source.kind == AS_SOURCE_NONE &&
            vetoes && find_keys(world, target->id, other->name).count > 0)
            fail(world, "%s: scaled down by %s against the veto of %s", target->id, intent->rule,
                 other->name);
    }
}

/* Promise 5: what goes down because an alert ended, or under a guard, has had a proof not long
 * ago that monitoring lives. */
static void check_proof(struct world *world, const struct server_target *target,
                        const struct as_rule *rule, bool is_ending)
{
    const int64_t answered = world->metrics[GUARD].answered;
    const bool is_waived = rule->guard_kind != AS_GUARD_QUERY;
    if (is_ending && rule->guard_kind == AS_GUARD_ABSENT)
        fail(world, "%s: %s gives back without any proof", target->id, rule->name);
    if (!is_waived && (answered == INT64_MIN || world->now - answered > PROOF_US))
        fail(world, "%s: %s scales down without its guard", target->id, rule->name);
}

/* Whether the end of an incident may have led to it. */
static bool may_be_ending(const struct as_rule *rule, bool is_up)
{
    return is_up ? rule->on_resolved.kind == AS_ENDING_SCALE
                 : rule->on_resolved.kind != AS_ENDING_NOTHING;
}

/* No more actions are begun in a window than the limit says. Of those that a crash interrupted,
 * only the ones that were done are known afterwards. */
static void check_limit(struct world *world, const struct as_intent_state *intent)
{
    const struct as_limits *limits = &world->daemon.config.limits;
    uint32_t count = 0;
    for (size_t i = 0; i < world->begun_count; i++)
        count += world->now - world->begun[i].at < limits->actions_per_us;
    if (limits->actions_max > 0 && !intent->is_ordered && count >= limits->actions_max)
        fail(world, "%s: action %u (from %d to %d by %s) within the window of %u", intent->ref->id,
             count + 1, intent->from, intent->to, intent->rule ? intent->rule : "nobody",
             limits->actions_max);
    world->begun =
        as_xgrow(world->begun, world->begun_count, &world->begun_capacity, sizeof(*world->begun));
    struct begun *begun = &world->begun[world->begun_count++];
    *begun = (struct begun){.at = world->now};
    memcpy(begun->id, intent->action_id, AS_ULID_SIZE);
}

/* It was done, and a kill took the record: then an API server with older data showed that it was
 * not. What is asked for anew counts instead. */
static void forget_superseded(struct world *world, const struct as_action_record *record)
{
    for (size_t i = 0; i < world->begun_count; i++) {
        if (strcmp(world->begun[i].id, record->id) != 0)
            continue;
        world->begun[i] = world->begun[--world->begun_count];
        return;
    }
}

static void forget_begun(struct world *world)
{
    size_t kept = 0;
    for (size_t i = 0; i < world->begun_count; i++) {
        if (world->begun[i].is_applied)
            world->begun[kept++] = world->begun[i];
    }
    world->begun_count = kept;
}

/* Not by an order: what is begun in a pause, or under the kill switch, is held back anyway. */
static void check_not_paused(struct world *world, const struct server_target *target,
                             const struct as_intent_state *intent)
{
    if (world->daemon.is_halted ||
        check_get_paused(world, target) & as_ways_get(intent->from, intent->to))
        fail(world, "%s: an intent in a pause", target->id);
}

/* Its pool has decided, or the group as a pool of itself. */
static void check_intent_for_nodes(struct world *world, const struct server_target *target,
                                   const struct as_target_config *config,
                                   const struct as_rule *rule, const struct as_intent_state *intent)
{
    const struct as_ruleset *ruleset = world->daemon.ruleset;
    const struct as_target_config *decider = rule->target;
    const bool is_assignment = decider != config;
    char id[AS_ARRAY_SIZE(target->id)];
    (void)snprintf(id, sizeof(id), "pool/%s", decider->name);
    if (is_assignment && ruleset->targets[config->of_pool] != decider)
        fail(world, "%s: an intent by %s, which is not its pool's", target->id, rule->name);
    if (rule->is_always)
        trouble_note(world, TROUBLE_ALWAYS_NODES);
    else if (find_keys(world, is_assignment ? id : target->id, rule->name).count == 0)
        fail(world, "%s: an intent by %s without an incident", target->id, rule->name);
    if (rule->action.is_fit != (intent->to > intent->from))
        fail(world, "%s: %s turned from %d to %d", target->id, rule->name, intent->from,
             intent->to);
    if (intent->to < intent->from)
        check_proof(world, target, rule, false);
}

/* Promise 5 without an alert: the answer to its own query is the proof. */
static void check_always_intent(struct world *world, const struct server_target *target,
                                const struct as_rule *rule, const struct as_intent_state *intent)
{
    const char *query = as_template_get_text(rule->source.query);
    int metric = 0;
    while (strcmp(source_queries[metric], query) != 0)
        metric++;
    const int64_t answered = world->metrics[metric].answered;
    trouble_note(world, intent->to > intent->from ? TROUBLE_ALWAYS_UP : TROUBLE_ALWAYS_DOWN);
    if (answered == INT64_MIN || world->now - answered > PROOF_US)
        fail(world, "%s: %s goes from %d to %d without a value", target->id, rule->name,
             intent->from, intent->to);
    if (intent->to > intent->from)
        return;
    check_proof(world, target, rule, false);
    check_veto(world, target, intent);
}

/* Promises 2 and 5: an action goes back to an open incident that may still act, whose firing has
 * come; a scale-down is not wanted while a rule wants up. */
static void check_intent(struct world *world, const struct as_intent_state *intent)
{
    struct server_target *target = server_find(world, intent->ref->id);
    const struct as_target_config *config = rules_find_target(world, target->id);
    const struct as_rule *rule = rules_find_rule(world, intent->rule);
    struct capture *capture = &target->captures[target->next_capture];
    target->next_capture = (target->next_capture + 1) % CAPTURES;
    *capture = (struct capture){.rule_changes = world->rule_changes,
                                .generation = world->daemon.generation,
                                .at = {true_wall(world).us + world->daemon.clock->wall_offset}};
    (void)snprintf(capture->rule, sizeof(capture->rule), "%s", intent->rule);
    memcpy(capture->action_id, intent->action_id, AS_ULID_SIZE);
    memcpy(capture->decision_id, intent->decision_id, AS_ULID_SIZE);
    check_approval_of_intent(world, target, intent, capture);
    if (!intent->is_ordered)
        check_not_paused(world, target, intent);
    if (!config) {
        fail(world, "%s: an intent without a rule that leads to it", target->id);
    } else if (intent->is_ordered) {
        check_ordered_intent(world, target, intent);
    } else if (intent->rule[0] == '\0') {
        const bool is_taken_back = target->group >= 0 && intent->to < intent->from;
        if (!config->bounds.enforce_bounds && config->schedule_count == 0 &&
            target->floor.order == 0 && !is_taken_back && target->scheduled.before_zero == 0)
            fail(world, "%s: an intent without a rule", target->id);
    } else if (!rule || rule->dry_run || !rule->enabled) {
        fail(world, "%s: an intent by %s, which must not act", target->id, intent->rule);
    } else if (is_of_nodes(rule)) {
        check_intent_for_nodes(world, target, config, rule, intent);
    } else if (rule->is_always) {
        (void)capture_keys(world, target, config, intent, capture); /* of others that wanted up */
        check_always_intent(world, target, rule, intent);
    } else if (capture_keys(world, target, config, intent, capture) == 0) {
        if (!may_be_ending(rule, intent->to > intent->from))
            fail(world, "%s: %s acts again for none of its incidents", target->id, intent->rule);
        if (intent->to < intent->from) {
            check_proof(world, target, rule, true);
            check_veto(world, target, intent);
        }
    } else {
        check_was_delivered(world, capture);
        if (intent->to < intent->from) {
            check_proof(world, target, rule, false);
            check_veto(world, target, intent);
        }
    }
    check_limit(world, intent);
}

/* By rules that are not in force any more nobody knows who was due: then all were that the rule had
 * by then, and the incidents of other rules are not counted. */
static void recapture(struct world *world, const struct server_target *target,
                      struct capture *capture)
{
    const struct key_search bound = find(world, target->id, capture->rule, true);
    int kept = 0;
    for (int i = 0; i < capture->key_count; i++) {
        if (strcmp(capture->keys[i].rule, capture->rule) == 0)
            capture->keys[kept++] = capture->keys[i];
    }
    for (int i = 0; i < bound.count && kept < CAPTURE_KEYS; i++) {
        bool is_there = bound.keys[i].opened.us > capture->at.us;
        for (int j = 0; j < kept && !is_there; j++)
            is_there = keys_are_equal(&bound.keys[i], &capture->keys[j]);
        if (!is_there)
            capture->keys[kept++] = bound.keys[i];
    }
    capture->key_count = kept;
}

/* The action is done: counts it for those who took part and are still there. */
static void count_capture(struct world *world, const struct server_target *target,
                          struct capture *capture)
{
    const struct as_target_config *config = rules_find_target(world, target->id);
    if (capture->rule_changes != world->rule_changes &&
        capture->generation == world->daemon.generation)
        recapture(world, target, capture);
    for (int i = 0; config && i < capture->key_count; i++) {
        struct incident_key *key = &capture->keys[i];
        const struct as_rule *rule = rules_find_rule(world, key->rule);
        if (!rule ||
            !(rule->max_steps || rule->every_us || rule->on_resolved.kind == AS_ENDING_GIVE_BACK ||
              has_no_lock(rule, &config->bounds.cooldown)))
            continue;
        const struct key_search bound = find_keys(world, target->id, key->rule);
        for (int j = 0; j < bound.count; j++) {
            if (!keys_are_equal(key, &bound.keys[j]))
                continue;
            struct step_count *count = get_count(world, key, target->id);
            count->count++;
            count->last_but_one = count->last;
            count->last = world->now;
            key->counted = true;
        }
    }
}

static void note_held_back(struct world *world, const struct as_action_record *record)
{
    if (strstr(record->message, "not sent, as the target has been paused"))
        trouble_note(world, TROUBLE_PAUSE_HELD_BACK);
    if (strstr(record->message, "not sent, as the kill switch has been set"))
        trouble_note(world, TROUBLE_HALT_HELD_BACK);
}

static void check_action(struct world *world, const struct as_action_record *record)
{
    struct server_target *target = server_find(world, record->target);
    note_held_back(world, record);
    if (record->command)
        check_ordered_action(world, target, record);
    /* an order that leads to no request has no attempts */
    const bool was_set = record->decision || (record->command && record->attempts > 0);
    if (record->outcome == AS_REASON_SUPERSEDED && record->is_late)
        forget_superseded(world, record);
    if (was_set && record->outcome != AS_REASON_APPLIED)
        target->rival.is_mistaken = true; /* its own size is in doubt */
    if (!was_set || record->outcome != AS_REASON_APPLIED)
        return;
    if (target->last.set && target->last.to == record->to)
        target->last.recorded = true;
    for (size_t i = 0; i < world->begun_count; i++) {
        if (strcmp(world->begun[i].id, record->id) == 0)
            world->begun[i].is_applied = true;
    }
    for (int i = 0; i < CAPTURES; i++) {
        struct capture *capture = &target->captures[i];
        if (strcmp(capture->action_id, record->id) != 0 || capture->recorded)
            continue;
        capture->recorded = true;
        count_capture(world, target, capture);
        check_free_step(world, target, capture, record);
    }
}

/* Promise 5 again: while a value is missing, nothing is removed. */
static void check_decision(struct world *world, const struct as_decision_record *record)
{
    schedules_check_decision(world, record);
    rivals_check_decision(world, record);
    const struct as_decision *output = record->output;
    check_holds_of_decision(world, record);
    if (world->is_silent && output->reason == AS_REASON_UNCONFIRMED)
        trouble_note(world, TROUBLE_HELD_IN_SILENCE);
    if (output->desired >= output->replicas ||
        (!output->rule && output->reason != AS_REASON_SCHEDULE_ENDED))
        return;
    for (size_t i = 0; i < record->input->proposal_count; i++) {
        if (record->input->proposals[i].error)
            fail(world, "%s: scaled down while %s has no value", record->target,
                 record->input->proposals[i].rule);
    }
}

static void trace_decision(struct world *world, const struct as_decision_record *record)
{
    trace(world, "daemon: decided %s %d>%d %s by %s", record->target, record->output->replicas,
          record->output->has_would ? record->output->would : record->output->desired,
          as_reason_get_word(record->output->reason),
          record->output->rule ? record->output->rule : "nobody");
}

/* What did not become ready in time stops steps up. */
static void note_state(struct world *world, const struct as_target_state *state)
{
    const bool is_stuck = state->scaleup && state->scaleup->is_open && state->scaleup->did_not_come;
    for (size_t i = 0; i < world->target_count; i++) {
        if (strcmp(world->targets[i].id, state->id) == 0)
            world->targets[i].stuck_in = is_stuck ? world->daemon.generation : 0;
    }
}

/* Promise 11: a list neither opens an incident nor ends a hold while time intervals mute. */
static void check_muted(struct world *world, const struct as_incident_record *record)
{
    const bool acts =
        record->event == AS_INCIDENT_OPENED || record->event == AS_INCIDENT_UNSILENCED;
    for (int i = 0; i < ALERTS && acts && !record->notification; i++) {
        if (world->alerts[i].fingerprint == record->fingerprint &&
            alertmanager_mutes(world, world->alerts[i].group))
            fail(world, "incident %016llx: %s by a list, and its group is muted",
                 (unsigned long long)record->fingerprint,
                 as_incident_event_get_word(record->event));
    }
}

void check_effect(struct world *world, const struct as_effect *effect)
{
    if (effect->kind == AS_EFFECT_PUT_TARGET)
        note_state(world, effect->target);
    if (effect->kind == AS_EFFECT_PUT_INTENT)
        check_log_on_intent(world, effect->intent);
    if (effect->kind == AS_EFFECT_PUT_INTENT && !effect->intent->in_doubt)
        check_intent(world, effect->intent);
    else if (effect->kind == AS_EFFECT_RECORD_ACTION)
        check_action(world, effect->action);
    else if (effect->kind == AS_EFFECT_RECORD_DECISION)
        check_decision(world, effect->decision);
    else if (effect->kind == AS_EFFECT_RECORD_COMMAND)
        check_command(world, effect);
    else if (effect->kind == AS_EFFECT_RECORD_APPROVAL)
        check_approval(world, effect->approval);
    else if (effect->kind == AS_EFFECT_RECORD_OTHERS)
        rivals_check_record(world, effect->others);
    else if (effect->kind == AS_EFFECT_RECORD_INCIDENT) {
        check_rest_incident(world);
        check_muted(world, effect->incident_record);
    }
    if (!world->is_verbose)
        return;
    if (effect->kind == AS_EFFECT_RECORD_DECISION)
        trace_decision(world, effect->decision);
    else if (effect->kind == AS_EFFECT_RECORD_ACTION)
        trace(world, "daemon: %s %s %d>%d %s%s by %s (%s)",
              effect->action->to >= 0 ? "acted on" : "failed on", effect->action->target,
              effect->action->from, effect->action->to, as_reason_get_word(effect->action->outcome),
              effect->action->is_late ? " late" : "",
              effect->action->rule ? effect->action->rule : "nobody", effect->action->id);
    else if (effect->kind == AS_EFFECT_RECORD_COMMAND)
        trace(world, "daemon: %s %s (%s) %s %s",
              as_operator_command_kind_get_word(effect->order->order->kind),
              effect->order->target ? effect->order->target : "all", effect->order->order->reason,
              as_operator_command_outcome_get_word(effect->order->outcome), effect->order->message);
    else if (effect->kind == AS_EFFECT_RECORD_APPROVAL)
        trace(world, "daemon: %s %s: %d>%d of %s by %s %s",
              as_approval_event_get_word(effect->approval->event), effect->approval->request->id,
              effect->approval->request->from, effect->approval->request->to,
              effect->approval->target, effect->approval->request->rule, effect->approval->message);
    else if (effect->kind == AS_EFFECT_RECORD_INCIDENT)
        trace(world, "daemon: %016llx %s", (unsigned long long)effect->incident_record->fingerprint,
              as_incident_event_get_word(effect->incident_record->event));
}

/* Promises 3 and 4, and the write-ahead, where a request leaves. */
void check_request(struct world *world, struct server_target *target,
                   const struct as_scale_request *request)
{
    const struct as_target_config *config = rules_find_target(world, target->id);
    const struct as_rule *rule = rules_find_rule(world, request->rule);
    if (!check_has_stored_intent(world, target, request->decision_id))
        fail(world, "%s: a request without a durable intent", target->id);
    if (!config) {
        fail(world, "%s: a request for a target that no rule leads to", target->id);
        return;
    }
    if (config->dry_run || world->daemon.config.dry_run)
        fail(world, "%s: a request in a dry run", target->id);
    if (world->kill_switch.reason)
        fail(world, "%s: a request under the kill switch", target->id);
    if (request->is_ordered) {
        check_ordered_request(world, target, request);
        return;
    }
    if (check_get_paused(world, target) & as_ways_get(request->from, request->to))
        fail(world, "%s: a request in a pause", target->id);
    if (request->to < request->from && !request->is_take_back &&
        request->to < check_get_floor(world, target))
        fail(world, "%s: %d is under its floor of %d", target->id, request->to, target->floor.size);
    check_approval_of_request(world, target, request);
    rivals_check_request(world, target);
    int32_t min, max;
    schedules_get_widest(config, &min, &max);
    if (target->own_max >= 0 && target->own_max < max)
        max = target->own_max;
    const int32_t lowest = schedules_get_lowest_max(config); /* it goes before the own min */
    if (target->own_min > min)
        min = target->own_min < lowest ? target->own_min : lowest;
    if (min > max)
        min = max;
    const bool is_up = request->to > request->from;
    if (is_up && target->stuck_in == world->daemon.generation && target->stuck_in > 0)
        fail(world, "%s: a step up, though the last one did not come", target->id);
    if (request->is_take_back) /* what never came was no node of the minimum either */
        min = target->own_min;
    if (request->to == request->from || (is_up ? request->to > max : request->to < min))
        fail(world, "%s: from %d to %d with bounds of %d and %d", target->id, request->from,
             request->to, min, max);
    if (rule && !may_be_ending(rule, is_up) &&
        ((rule->action.kind == AS_ACTION_SCALE_UP && !is_up) ||
         (rule->action.kind == AS_ACTION_SCALE_DOWN && is_up)))
        fail(world, "%s: %s turned from %d to %d", target->id, rule->name, request->from,
             request->to);
}

static void settle_last(struct server_target *target)
{
    if (!target->last.set)
        return;
    *(target->last.is_return ? &target->last_return_at
      : target->last.is_up   ? &target->last_up_at
                             : &target->last_down_at) = target->last.at;
    target->last.set = false;
}

static void check_lock(struct world *world, const struct server_target *target, int64_t since,
                       int64_t lock, int64_t sent_at, const char *which)
{
    if (since != INT64_MIN && sent_at - since < lock)
        fail(world, "%s: inside the cooldown of %s: %.6f s of %.0f s", target->id, which,
             (double)(sent_at - since) / (double)SECOND, (double)lock / (double)SECOND);
}

/* Promise 3, where the size is really set. `returned`: so many of the nodes were to leave. */
void check_applied(struct world *world, struct server_target *target, int64_t sent_at, int32_t to,
                   int32_t returned, bool has_rule, const struct as_cooldown *cooldown)
{
    const bool is_up = to > target->size;
    if (to == target->size)
        return;
    settle_last(target);
    if (has_rule) {
        check_lock(world, target, target->last_up_at, is_up ? cooldown->up_us : cooldown->down_us,
                   sent_at, "a scale-up");
        check_lock(world, target, target->last_down_at,
                   is_up ? cooldown->up_after_down_us : as_cooldown_get_down_after_down(cooldown),
                   sent_at, "a scale-down");
        if (!is_up)
            check_lock(world, target, target->last_return_at, cooldown->down_us, sent_at,
                       "a return of nodes");
    }
    target->last = (struct applied){.set = true,
                                    .is_up = is_up,
                                    .is_return = is_up && to - target->size <= returned,
                                    .at = world->now,
                                    .to = to};
}

/* Somebody else changes the size: of a change of ours that the daemon does not know by now, it
 * never will. */
void check_others_change(struct world *world, struct server_target *target)
{
    if (target->last.set && !target->last.recorded) {
        trace(world, "others: %s before the daemon knows of its last change", target->id);
        target->last.set = false;
        target->silent_steps = 0;
    }
    target->last.overwritten = true;
}

void check_made_anew(struct server_target *target)
{
    target->last = (struct applied){0};
    target->last_up_at = target->last_down_at = target->last_return_at = INT64_MIN;
}

static void uncount(struct world *world, struct server_target *target, struct capture *capture)
{
    capture->recorded = false;
    for (int i = 0; i < capture->key_count; i++) {
        struct step_count *count = get_count(world, &capture->keys[i], target->id);
        if (!capture->keys[i].counted)
            continue;
        capture->keys[i].counted = false;
        count->count--;
        count->last = count->last_but_one;
    }
}

/* The daemon is gone, and with it what it had not made durable: the outcome of an intent that is
 * still in the store. */
void check_crash(struct world *world)
{
    forget_begun(world);
    check_orders_crash(world);
    check_approvals_crash(world);
    rivals_crash(world);
    for (size_t i = 0; i < world->target_count; i++) {
        struct server_target *target = &world->targets[i];
        for (int j = 0; j < CAPTURES; j++) {
            struct capture *capture = &target->captures[j];
            if (!capture->recorded || !check_has_stored_intent(world, target, capture->action_id))
                continue;
            uncount(world, target, capture);
            target->last.recorded = false;
            target->last.set = target->last.set && !target->last.overwritten;
            if (!target->last.set)
                target->silent_steps = 0;
        }
    }
}
