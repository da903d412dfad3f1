/*
 * Cluster API, changing groups. Sizes are set through the scale subresource, on condition of the
 * size that was read. Machines to be removed are first marked with an annotation: their MachineSet
 * deletes marked Machines before all others. If the size was not set, the marks are removed again.
 */
#include "clusterapi.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/str.h>

#include "provider_answer.h"

#define SCALE_TYPE "application/json-patch+json"
#define MARK_TYPE  "application/merge-patch+json"
#define MARK_BODY  "{\"metadata\":{\"annotations\":{\"" CLUSTERAPI_MARK "\":%s}}}"

/* ---- changing: marks, then the size ---- */

static void mark_next(struct as_talk *talk);
static void unmark_next(struct as_talk *talk);

static void ask_mark(struct as_talk *talk, size_t index, const char *value)
{
    const struct clusterapi_state *state = clusterapi_get_state(talk);
    as_talk_ask(talk, "PATCH", "%s/machines/%s", state->base,
                as_talk_escaped(talk, state->names[index]));
    as_talk_header(talk, "Content-Type: " MARK_TYPE);
    as_buf_printf(&talk->request.body, MARK_BODY, value);
}

static void keep_failure(struct as_talk *talk)
{
    struct clusterapi_state *state = clusterapi_get_state(talk);
    state->failure = talk->fault;
    state->failure_text = as_talk_print(talk, "%s", talk->message);
    state->failure_status = talk->http_status;
    state->retry_after_us = talk->retry_after_us;
    state->is_ambiguous = talk->is_ambiguous;
}

/* Reports the failure when the marks are removed. */
static void give_up(struct as_talk *talk)
{
    keep_failure(talk);
    unmark_next(talk);
}

static void hear_unmarked(struct as_talk *talk)
{
    struct clusterapi_state *state = clusterapi_get_state(talk);
    if (!clusterapi_is_good(talk) && talk->fault != AS_TALK_GONE)
        state->failure_text =
            as_talk_print(talk, "%s; Machine %s is still marked: %s", state->failure_text,
                          state->names[state->marked], talk->message);
    unmark_next(talk);
}

static void unmark_next(struct as_talk *talk)
{
    struct clusterapi_state *state = clusterapi_get_state(talk);
    if (state->marked > 0) {
        ask_mark(talk, --state->marked, "null");
        as_talk_send(talk, "unmark_machine", hear_unmarked);
        return;
    }
    as_talk_fail(talk, state->failure, "%s", state->failure_text);
    talk->http_status = state->failure_status;
    talk->retry_after_us = state->retry_after_us;
    talk->is_ambiguous = state->is_ambiguous;
}

/* Reads whether the size was set, if the answer did not tell. Marks stay while this is not known:
 * without them, other Machines might leave. */
static void hear_looked(struct as_talk *talk)
{
    struct clusterapi_state *state = clusterapi_get_state(talk);
    const struct as_group_talk *group = as_group_get(talk);
    const json_t *object = clusterapi_is_good(talk) ? answer_json(talk) : NULL;
    const int32_t size = answer_size(object, "spec.replicas", -1);
    if (size < 0) {
        state->marked = 0;
    } else if (size == group->to && state->is_ambiguous) {
        talk->is_ambiguous = false;
        as_talk_end(talk);
        return;
    } else if (size != group->from) {
        state->failure = AS_TALK_BUSY;
        state->failure_text = as_talk_print(talk, "its size is %d meanwhile", size);
    }
    state->is_ambiguous = state->is_ambiguous && size < 0;
    unmark_next(talk);
}

static void look_again(struct as_talk *talk)
{
    keep_failure(talk);
    as_talk_ask(talk, "GET", "%s", clusterapi_get_state(talk)->object);
    as_talk_send(talk, "get_group", hear_looked);
}

#define UNPROCESSABLE 422 /* the condition failed, or the size is not allowed */

static void hear_scaled(struct as_talk *talk)
{
    const struct as_group_talk *group = as_group_get(talk);
    if (!clusterapi_is_good(talk)) {
        if (talk->is_ambiguous || talk->http_status == UNPROCESSABLE)
            look_again(talk);
        else
            give_up(talk);
        return;
    }
    const json_t *scale = answer_json(talk);
    if (!scale) {
        look_again(talk);
    } else if (answer_size(scale, "spec.replicas", 0) != group->to) { /* a size of 0 is left out */
        as_talk_fail(talk, AS_TALK_CONFIGURATION,
                     "asked for size %d, but the cluster made it %d (an admission webhook?)",
                     group->to, answer_size(scale, "spec.replicas", 0));
        talk->is_ambiguous = true;
        give_up(talk);
    } else {
        as_talk_end(talk);
    }
}

/* A Scale leaves out a size of 0, which cannot be tested for: then the version is the condition. */
static void set_scale(struct as_talk *talk)
{
    const struct clusterapi_state *state = clusterapi_get_state(talk);
    const struct as_group_talk *group = as_group_get(talk);
    as_talk_ask(talk, "PATCH", "%s/scale", state->object);
    if (group->from > 0) {
        as_talk_header(talk, "Content-Type: " SCALE_TYPE);
        as_buf_printf(&talk->request.body,
                      "[{\"op\":\"test\",\"path\":\"/spec/replicas\",\"value\":%d},"
                      "{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":%d}]",
                      group->from, group->to);
    } else {
        as_talk_header(talk, "Content-Type: " MARK_TYPE);
        as_buf_printf(&talk->request.body,
                      "{\"metadata\":{\"resourceVersion\":\"%s\"},\"spec\":{\"replicas\":%d}}",
                      state->resource_version, group->to);
    }
    as_talk_send(talk, "set_scale", hear_scaled);
}

/* A Machine that is gone is being replaced: with a lower size another Machine would leave. */
static void hear_marked(struct as_talk *talk)
{
    struct clusterapi_state *state = clusterapi_get_state(talk);
    const bool is_good = clusterapi_is_good(talk);
    if (!is_good && talk->fault == AS_TALK_GONE)
        as_talk_fail(talk, AS_TALK_BUSY, "Machine %s is gone meanwhile",
                     state->names[state->marked]);
    state->marked += is_good || talk->is_ambiguous;
    if (is_good)
        mark_next(talk);
    else
        give_up(talk);
}

static void mark_next(struct as_talk *talk)
{
    struct clusterapi_state *state = clusterapi_get_state(talk);
    if (state->marked < state->name_count) {
        ask_mark(talk, state->marked, "\"alertscaler\"");
        as_talk_send(talk, "mark_machine", hear_marked);
    } else {
        set_scale(talk);
    }
}

/* ---- what is to be changed, with the group as it is now ---- */

/* False after failing the talk. */
static bool check_size(struct as_talk *talk)
{
    const struct as_group_talk *group = as_group_get(talk);
    if (group->view.size == group->from)
        return true;
    as_talk_fail(talk, AS_TALK_BUSY, "its size is %d meanwhile", group->view.size);
    return false;
}

static const struct as_instance *find_instance(const struct as_group_view *view, const char *id)
{
    for (size_t i = 0; i < view->instance_count; i++) {
        if (strcmp(view->instances[i].id, id) == 0)
            return &view->instances[i];
    }
    return NULL;
}

void clusterapi_remove(struct as_talk *talk)
{
    const struct as_group_talk *group = as_group_get(talk);
    struct clusterapi_state *state = clusterapi_get_state(talk);
    if (!check_size(talk))
        return;
    if (group->view.no_removal) {
        as_talk_fail(talk, AS_TALK_BUSY, "%s", group->view.no_removal);
        return;
    }
    for (size_t i = 0; i < group->instance_count; i++) {
        const struct as_instance *instance = find_instance(&group->view, group->instances[i]);
        if (!instance || instance->state == AS_INSTANCE_LEAVING) {
            as_talk_fail(talk, AS_TALK_BUSY, "Machine %s is leaving already", group->instances[i]);
            return;
        }
    }
    state->names = group->instances;
    state->name_count = group->instance_count;
    mark_next(talk);
}

/* Machines that failed, then pending Machines, the newest first. */
static size_t choose_missing(const struct as_group_view *view, const char **names, size_t wanted)
{
    static const enum as_instance_state order[] = {AS_INSTANCE_FAILED, AS_INSTANCE_PENDING};
    size_t count = 0;
    for (size_t i = 0; i < AS_ARRAY_SIZE(order); i++) {
        for (size_t at = view->instance_count; at-- > 0 && count < wanted;) {
            if (view->instances[at].state == order[i])
                names[count++] = view->instances[at].id;
        }
    }
    return count;
}

/* Replicas without a Machine have no name: for these, only the size is lowered. */
void clusterapi_take_back(struct as_talk *talk)
{
    const struct as_group_talk *group = as_group_get(talk);
    struct clusterapi_state *state = clusterapi_get_state(talk);
    const struct as_group_view *view = &group->view;
    if (!check_size(talk))
        return;
    if (as_group_count_running(view) > group->to) {
        as_talk_fail(talk, AS_TALK_BUSY, "machines have come meanwhile: %d run",
                     as_group_count_running(view));
        return;
    }
    if (view->no_removal && !state->is_nameless) {
        as_talk_fail(talk, AS_TALK_BUSY, "%s", view->no_removal);
        return;
    }
    const int32_t surplus = as_group_count_present(view) - group->to;
    const char **names = as_arena_alloc(&talk->arena, view->instance_count + 1, sizeof(*names));
    state->names = names;
    if (!state->is_nameless && surplus > 0)
        state->name_count = choose_missing(view, names, (size_t)surplus);
    mark_next(talk);
}

void clusterapi_grow(struct as_talk *talk)
{
    if (check_size(talk))
        set_scale(talk);
}
