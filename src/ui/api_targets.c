/*
 * The overall status, and targets.
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/kube/kube_rivals.h>
#include <alertscaler/model/forbidden.h>
#include <alertscaler/runtime/version.h>

#include "api_private.h"

static void write_libraries(struct as_json_writer *json)
{
    const struct as_library *libraries;
    const size_t count = as_version_get_libraries(&libraries);
    as_json_write_key(json, "libraries");
    as_json_begin_object(json);
    for (size_t i = 0; i < count; i++)
        as_json_write_member(json, libraries[i].name, libraries[i].version);
    as_json_end_object(json);
}

static void write_counts(struct as_json_writer *json, const struct as_view *view)
{
    const struct as_engine_counts counts =
        view->engine ? as_engine_get_counts(view->engine) : (struct as_engine_counts){0};
    const struct as_storage_counts storage =
        view->storage ? as_storage_get_counts(view->storage) : (struct as_storage_counts){0};
    as_json_write_member_i64(json, "targets", (int64_t)counts.targets);
    as_json_write_member_i64(json, "incidents_open", (int64_t)counts.incidents_open);
    as_json_write_member_i64(json, "connections", view->connections);
    as_json_write_key(json, "queues");
    as_json_begin_object(json);
    as_json_write_member_i64(json, "notifications", (int64_t)view->unanswered);
    as_json_write_member_i64(json, "storage", (int64_t)storage.waiting_batches);
    as_json_write_member_i64(json, "targets", (int64_t)counts.targets_busy);
    as_json_end_object(json);
    as_json_write_key(json, "action_log");
    as_json_begin_object(json);
    as_json_write_member_i64(json, "seq", (int64_t)storage.head.seq);
    as_json_write_member(json, "hash", storage.head.hash);
    as_json_end_object(json);
}

static void write_leadership(struct api_request *request)
{
    const struct as_leader_view *leader = &request->view.leader;
    struct as_json_writer *json = &request->json;
    as_json_write_key(json, "leadership");
    as_json_begin_object(json);
    api_write_text(request, "holder", *leader->holder ? leader->holder : NULL);
    as_json_write_member(json, "identity", leader->identity);
    api_write_text(request, "problem", leader->problem);
    api_write_text(request, "paused", leader->paused);
    as_json_end_object(json);
}

void api_answer_status(struct api_request *request)
{
    const struct as_view *view = &request->view;
    struct as_json_writer *json = &request->json;
    api_begin(request);
    as_json_begin_object(json);
    as_json_write_member(json, "version", as_version_get());
    as_json_write_member(json, "revision", as_version_get_revision());
    write_libraries(json);
    as_json_write_member(json, "instance", request->api->instance);
    api_write_time(request, "started", view->started);
    api_write_time(request, "time", view->wall);
    as_json_write_member_bool(json, "ready", !view->not_ready);
    api_write_text(request, "not_ready", view->not_ready);
    as_json_write_member_bool(json, "leader", view->leader.is_leader);
    write_leadership(request);
    as_json_write_member_bool(json, "dry_run", view->dry_run);
    const struct as_pause_view pause =
        view->engine ? as_engine_get_pause(view->engine, view->mono, view->wall)
                     : (struct as_pause_view){.is_set = false};
    api_write_pause(request, &pause);
    as_json_write_member_i64(json, "incident_expiry_seconds",
                             view->incident_expiry_us / AS_US_PER_S);
    as_json_write_member(json, "config_digest", view->config_digest);
    as_json_write_member(json, "rules_digest", view->ruleset->digest);
    as_json_write_member_i64(json, "rules", (int64_t)view->ruleset->rule_count);
    write_counts(json, view);
    as_json_end_object(json);
    api_end(request);
}

static void targets_write_address(struct as_json_writer *json, const struct as_target_ref *ref)
{
    as_json_write_member(json, "kind", ref->kind->word);
    as_json_write_key(json, "address");
    as_json_begin_object(json);
    for (size_t i = 0; i < ref->field_count; i++)
        as_json_write_member(json, ref->fields[i].key, ref->fields[i].value);
    as_json_end_object(json);
}

/* When a schedule that is in force ends; else when it next begins. */
static void write_schedules(struct api_request *request, const struct as_target_config *config)
{
    struct as_json_writer *json = &request->json;
    as_json_write_key(json, "schedules");
    as_json_begin_array(json);
    for (size_t i = 0; config && i < config->schedule_count; i++) {
        const struct as_schedule *schedule = &config->schedules[i];
        const struct as_schedule_state look = as_schedule_state(schedule, request->view.wall);
        char at[AS_RFC3339_SIZE];
        as_wall_time_print(look.change.at, at);
        as_json_begin_object(json);
        as_json_write_member(json, "name", schedule->name);
        as_json_write_member_bool(json, "in_force", look.is_in_force);
        api_write_size(request, "min", schedule->has_min, schedule->min);
        api_write_size(request, "max", schedule->has_max, schedule->max);
        api_write_text(request, "changes", look.change.set ? at : NULL);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

static void write_floor(struct api_request *request, const struct as_floor_view *floor)
{
    struct as_json_writer *json = &request->json;
    as_json_write_key(json, "floor");
    if (floor->size == 0) {
        as_json_write_null(json);
        return;
    }
    as_json_begin_object(json);
    as_json_write_member_i64(json, "replicas", floor->size);
    as_json_write_member(json, "who", api_show_credential(request, floor->who));
    as_json_write_member(json, "reason", floor->reason);
    api_write_moment(request, "since", floor->since);
    api_write_moment(request, "until", floor->until);
    as_json_end_object(json);
}

static void write_block(void *context, const struct as_hold_view *hold)
{
    struct api_request *request = context;
    struct as_json_writer *json = &request->json;
    char until[AS_RFC3339_SIZE];
    as_wall_time_print(hold->until.at, until);
    as_json_begin_object(json);
    as_json_write_member(json, "direction", as_ways_get_word(hold->ways));
    as_json_write_member(json, "by", as_holder_get_word(hold->by));
    as_json_write_member(json, "name", hold->name);
    api_write_text(request, "until", hold->until.set ? until : NULL);
    as_json_end_object(json);
}

static void write_blocks(struct api_request *request, const struct as_target_view *target)
{
    const struct as_view *view = &request->view;
    as_json_write_key(&request->json, "holds");
    as_json_begin_array(&request->json);
    as_engine_visit_holds(view->engine, target->ref, view->mono, view->wall, write_block, request);
    as_json_end_array(&request->json);
}

static void write_last_decision(struct api_request *request, const struct as_target_view *target)
{
    struct as_json_writer *json = &request->json;
    as_json_write_key(json, "last_decision");
    if (!target->last_decision) {
        as_json_write_null(json);
        return;
    }
    as_json_begin_object(json);
    as_json_write_member(json, "id", target->last_decision);
    api_write_time(request, "time", target->last_at);
    as_json_write_member(json, "reason", as_reason_get_word(target->last_reason));
    api_write_text(request, "rule", target->last_rule);
    const struct kept_decision *kept = target->last_reason == AS_REASON_DRY_RUN
                                           ? api_find_decision(request->api, target->last_decision)
                                           : NULL;
    if (kept && kept->has_would)
        as_json_write_member_i64(json, "would", kept->would);
    as_json_end_object(json);
}

static void write_contended(struct api_request *request, const struct as_target_view *target)
{
    struct as_json_writer *json = &request->json;
    as_json_write_key(json, "contended");
    if (!as_moment_is_set(target->contended_until)) {
        as_json_write_null(json);
        return;
    }
    as_json_begin_object(json);
    api_write_moment(request, "until", target->contended_until);
    as_json_write_key(json, "set_backs");
    as_json_begin_array(json);
    for (size_t i = 0; i < target->reverted_change_count; i++) {
        const struct as_reverted_change *each = &target->reverted_changes[i];
        as_json_begin_object(json);
        api_write_moment(request, "at", each->at);
        api_write_size(request, "from", true, each->from);
        api_write_size(request, "to", true, each->to);
        api_write_size(request, "found", true, each->found);
        api_write_text(request, "by", *each->by ? each->by : NULL);
        as_json_end_object(json);
    }
    as_json_end_array(json);
    as_json_end_object(json);
}

static void write_others(struct api_request *request, const struct as_target_view *target)
{
    struct as_json_writer *json = &request->json;
    size_t count;
    const struct as_other *others = as_others_find(request->view.others, target->id, &count);
    as_json_write_key(json, "others");
    as_json_begin_array(json);
    for (size_t i = 0; i < count; i++) {
        as_json_begin_object(json);
        as_json_write_member(json, "kind", others[i].kind);
        as_json_write_member(json, "name", others[i].name);
        api_write_size(request, "min", others[i].min >= 0, others[i].min);
        api_write_size(request, "max", others[i].max >= 0, others[i].max);
        as_json_write_member_bool(json, "paused", others[i].is_paused);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

struct ineffective_list {
    struct api_request *request;
    const struct as_target_ref *ref;
};

static void write_ineffective_rule(void *context, const struct as_ineffective_view *view)
{
    const struct ineffective_list *list = context;
    struct as_json_writer *json = &list->request->json;
    if (view->ref != list->ref)
        return;
    as_json_begin_object(json);
    as_json_write_member(json, "rule", view->rule);
    api_write_moment(list->request, "until", view->until);
    as_json_end_object(json);
}

static void write_ineffective(struct api_request *request, const struct as_target_view *target)
{
    const struct as_view *view = &request->view;
    struct ineffective_list list = {request, target->ref};
    as_json_write_key(&request->json, "ineffective");
    as_json_begin_array(&request->json);
    as_engine_visit_ineffective(view->engine, view->mono, view->wall, write_ineffective_rule,
                                &list);
    as_json_end_array(&request->json);
}

static void targets_write_target(struct api_request *request, const struct as_target_view *target)
{
    struct as_json_writer *json = &request->json;
    const struct as_target_config *config = target->config;
    const bool failed = target->last_failure != AS_REASON_APPLIED;
    as_json_begin_object(json);
    as_json_write_member(json, "id", target->id);
    as_json_write_member(json, "name", target->name);
    as_json_write_member_bool(json, "templated", config && config->is_templated);
    targets_write_address(json, target->ref);
    api_write_size(request, "replicas", target->has_size, target->replicas);
    api_write_size(request, "status_replicas", target->has_size, target->status_replicas);
    api_write_size(request, "desired", target->has_size, target->desired);
    api_write_moment(request, "seen", target->seen);
    api_write_size(request, "min", config != NULL, target->bounds.min);
    api_write_size(request, "max", config != NULL, target->bounds.max);
    if (*as_sized_get_unit(target->ref))
        as_json_write_member(json, "unit", as_sized_get_unit(target->ref));
    write_schedules(request, config);
    write_floor(request, &target->floor);
    write_blocks(request, target);
    as_json_write_key(json, "locked_until");
    as_json_begin_object(json);
    api_write_moment(request, "up", target->up_locked_until);
    api_write_moment(request, "down", target->down_locked_until);
    as_json_end_object(json);
    as_json_write_member_i64(json, "open_incidents", (int64_t)target->open_incidents);
    as_json_write_member_bool(json, "dry_run",
                              request->view.dry_run || (config && config->dry_run));
    api_write_pause(request, &target->pause);
    write_contended(request, target);
    write_others(request, target);
    api_write_size(request, "ordered", target->has_order, target->ordered);
    api_write_text(request, "waits_for", target->waits_for);
    api_write_size(request, "ready", target->ready >= 0, target->ready);
    as_json_write_member_bool(json, "did_not_come", target->did_not_come);
    write_ineffective(request, target);
    as_json_write_member_bool(json, "busy", target->busy);
    write_last_decision(request, target);
    api_write_text(request, "failure", failed ? as_reason_get_word(target->last_failure) : NULL);
    api_write_text(request, "failure_text",
                   failed ? api_find_failure(request->api, target->id) : NULL);
    as_json_end_object(json);
}

static void visit(const struct api_request *request, as_target_visit_fn *each, void *context)
{
    const struct as_view *view = &request->view;
    if (view->engine)
        as_engine_visit_targets(view->engine, view->mono, view->wall, each, context);
}

static void list_target(void *context, const struct as_target_view *target)
{
    struct api_list *list = context;
    if (!api_list_begin_item(list))
        return;
    targets_write_target(list->request, target);
    api_list_end_item(list);
}

void api_answer_targets(struct api_request *request)
{
    struct as_error error = AS_ERROR_INIT;
    struct api_list list;
    size_t limit;
    if (api_parameter_get_limit(request, API_LIMIT_MAX, &limit, &error) != 0) {
        as_reply_error(request->exchange, 400, NULL, "%s", error.text);
        return;
    }
    api_list_begin(&list, request, limit);
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
    AS_CLEANUP(as_free_p) char *key = as_target_key_make(wanted);
    struct target_search search = {.wanted = key, .each = each, .context = context};
    visit(request, visit_if_wanted, &search);
    search.wanted = wanted;
    search.by_name = true;
    if (!search.is_found)
        visit(request, visit_if_wanted, &search);
    return search.is_found;
}

static void answer_with_target(void *context, const struct as_target_view *target)
{
    struct api_request *request = context;
    api_begin(request);
    targets_write_target(request, target);
    api_end(request);
}

static void answer_with_state(void *context, const struct as_target_view *target)
{
    struct api_request *request = context;
    AS_CLEANUP(as_buf_deinit) struct as_buf state = AS_BUF_INIT(API_BODY_MAX);
    if (!as_engine_encode_target(request->view.engine, target->id, &state))
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

/* The wanted target is in the path. */
static void answer_for_target(struct api_request *request, as_target_visit_fn *each)
{
    AS_CLEANUP(as_free_p) char *wanted = api_decode_rest(request);
    if (as_str_is_empty(wanted))
        as_reply_error(request->exchange, 400, NULL, "expected a target's name or id");
    else if (!api_visit_target(request, wanted, each, request))
        as_reply_error(request->exchange, 404, NULL, "no such target: %s", wanted);
}

void api_answer_debug_target(struct api_request *request)
{
    answer_for_target(request, answer_with_state);
}

void api_answer_target(struct api_request *request)
{
    answer_for_target(request, answer_with_target);
}
