/*
 * Deleting instances: see the header.
 *
 *   one request -> follow its operation -> look until the instances are gone, ten minutes at most
 *
 * After a failure the group is read: some instances may be gone all the same.
 */
#include "removal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/arena.h>

#define LOOK_EVERY_US (5 * AS_US_PER_S)    /* while waiting for instances to be gone */
#define LOOK_MAX_US   (10 * AS_US_PER_MIN) /* then the provider is left alone with them */

struct as_removal {
    struct as_removal_request request;
    as_removal_done_fn *done;
    void *context;
    struct as_arena arena;
    int32_t from;
    char version[AS_VERSION_SIZE];
    bool has_names; /* instances of the provider have names */
    bool is_sent;
    bool *are_gone;        /* by `ids`: the provider said so in its answer */
    bool *stays;           /* by `ids` */
    const char *operation; /* that deletes them, while it runs; NULL */
    struct as_group_talk talk;
    struct as_account_call *call;
    struct as_timer *timer;
    as_mono_time look_at, look_until;
    struct as_removal_result result;
};

static as_mono_time removal_get_mono(const struct as_removal *removal)
{
    return removal->request.env->clock->get_mono(removal->request.env->clock);
}

void as_removal_cancel(struct as_removal *removal)
{
    if (removal->call)
        as_account_cancel(removal->call);
    removal->request.env->loop->cancel_timer(removal->request.env->loop, removal->timer);
    as_talk_deinit(&removal->talk.talk);
    as_arena_deinit(&removal->arena);
    free(removal);
}

static void removal_finish(struct as_removal *removal, bool is_known)
{
    removal->result.is_known = is_known;
    removal->result.stays = removal->stays;
    removal->result.gone = 0;
    for (size_t i = 0; i < removal->request.count; i++)
        removal->result.gone += !removal->stays[i];
    removal->done(removal->context, &removal->result);
    as_removal_cancel(removal);
}

static void keep_all(struct as_removal *removal, bool is_known)
{
    memset(removal->stays, true, removal->request.count * sizeof(*removal->stays));
    removal_finish(removal, is_known);
}

static void finish_with(struct as_removal *removal, const char *words)
{
    as_outcome_set_message(&removal->result.outcome, words);
    removal_finish(removal, true);
}

static void talk(struct as_removal *removal, enum as_group_verb verb, as_account_done_fn *done)
{
    const struct as_removal_request *request = &removal->request;
    struct as_group_talk *group = &removal->talk;
    as_talk_deinit(&group->talk);
    as_account_init_talk(request->account, group);
    group->verb = verb;
    group->group = request->group;
    group->from = removal->from;
    group->to = removal->from - (int32_t)request->count;
    group->version = removal->version;
    group->idempotency = request->idempotency;
    group->instances = request->ids;
    group->nodes = request->nodes;
    group->instance_count = request->count;
    group->operation = removal->operation;
    removal->call = as_account_start(request->account, group, done, removal);
}

/* Whether the last READ still lists it. If instances have no names, the question is whether the
 * provider is still working. An instance that the provider has declared gone is not waited for: its
 * list is behind. */
static bool is_there(const struct as_removal *removal, size_t i)
{
    const struct as_group_view *view = &removal->talk.view;
    if (!removal->has_names)
        return view->in_progress;
    return !removal->are_gone[i] && as_group_is_present(view, removal->request.ids[i]);
}

static size_t removal_count_left(const struct as_removal *removal)
{
    size_t left = 0;
    for (size_t i = 0; i < removal->request.count; i++)
        left += is_there(removal, i);
    return left;
}

static void removal_look_again(void *context);

/* Waits in short steps, so that a stop is noticed. */
static void wait_to_look(struct as_removal *removal)
{
    struct as_loop *loop = removal->request.env->loop;
    const int64_t left_us = removal->look_at.us - removal_get_mono(removal).us;
    const int64_t step_us = left_us < LOOK_EVERY_US ? left_us : LOOK_EVERY_US;
    removal->timer = loop->start_timer(loop, step_us, removal_look_again, removal);
}

/* False: it has taken too long. */
static bool look_later(struct as_removal *removal, int64_t least_us)
{
    removal->look_at.us =
        as_time_add(removal_get_mono(removal).us, as_fault_get_pause(&removal->talk, least_us));
    if (removal->look_at.us > removal->look_until.us)
        return false;
    wait_to_look(removal);
    return true;
}

static void looked(void *context)
{
    struct as_removal *removal = context;
    char words[AS_MESSAGE_SIZE] = "";
    const size_t left = removal_count_left(removal);
    removal->call = NULL;
    removal->result.attempts += removal->talk.talk.sent;
    const bool is_gone = removal->talk.talk.fault == AS_TALK_GONE ||
                         (removal->talk.talk.fault == AS_TALK_OK && left == 0);
    if (!is_gone && look_later(removal, LOOK_EVERY_US))
        return;
    if (!is_gone)
        snprintf(words, sizeof(words),
                 "the provider took the call, but %zu of %zu instances are not gone yet", left,
                 removal->request.count);
    finish_with(removal, words);
}

static void followed(void *context);

static void removal_look_again(void *context)
{
    struct as_removal *removal = context;
    removal->timer = NULL;
    if (as_access_get_permit(removal->request.env) == AS_PERMIT_FINISH)
        finish_with(removal,
                    "the provider took the call; alertscaler stops before the instances are gone");
    else if (removal_get_mono(removal).us < removal->look_at.us)
        wait_to_look(removal);
    else if (removal->operation)
        talk(removal, AS_GROUP_POLL, followed);
    else
        talk(removal, AS_GROUP_READ, looked);
}

/* Some instances may be gone although the removal failed: then the decision is done in part, and
 * doing it again would remove too many. A change that was accepted counts as a step, even if it
 * removed nothing. */
static void judged(void *context)
{
    struct as_removal *removal = context;
    struct as_outcome *outcome = &removal->result.outcome;
    const size_t wanted = removal->request.count;
    const bool is_known = removal->talk.talk.fault == AS_TALK_OK;
    const size_t left = is_known ? removal_count_left(removal) : wanted;
    removal->call = NULL;
    removal->result.attempts += removal->talk.talk.sent;
    if (left == wanted) {
        keep_all(removal, is_known);
        return;
    }
    for (size_t i = 0; i < wanted; i++)
        removal->stays[i] = is_there(removal, i);
    struct as_error error = AS_ERROR_INIT;
    as_error_set(&error, "%zu of %zu instances are removed: %s", wanted - left, wanted,
                 outcome->message);
    outcome->reason = AS_REASON_APPLIED;
    outcome->is_ambiguous = outcome->is_shortage = false;
    outcome->message[0] = '\0';
    finish_with(removal, left > 0 ? error.text : "");
}

static void removal_judge(struct as_removal *removal)
{
    const bool may_be_done = removal->request.count > 1 || removal->operation; /* at least a part */
    if (may_be_done && removal->has_names)
        talk(removal, AS_GROUP_READ, judged);
    else
        keep_all(removal, false);
}

/* Waits for the operation's end before checking whether the instances are gone. */
static void followed(void *context)
{
    struct as_removal *removal = context;
    removal->call = NULL;
    removal->result.attempts += removal->talk.talk.sent;
    if (as_fault_has_failed(&removal->talk)) {
        as_fault_take_end(&removal->talk, &removal->result.outcome);
        removal_judge(removal);
        return;
    }
    if (as_fault_is_open(&removal->talk) && look_later(removal, LOOK_EVERY_US))
        return;
    removal->operation = NULL;
    removal->look_at = removal_get_mono(removal);
    removal_look_again(removal);
}

static void keep_gone(struct as_removal *removal)
{
    const struct as_group_talk *group = &removal->talk;
    for (size_t i = 0; group->are_gone && i < group->instance_count; i++) {
        for (size_t j = 0; j < removal->request.count && group->are_gone[i]; j++)
            removal->are_gone[j] |= strcmp(removal->request.ids[j], group->instances[i]) == 0;
    }
}

static void removed(void *context)
{
    struct as_removal *removal = context;
    removal->call = NULL;
    removal->is_sent = true;
    removal->result.attempts += removal->talk.talk.sent;
    as_fault_take(&removal->talk, &removal->result.outcome, &removal->result.call);
    keep_gone(removal);
    if (removal->talk.talk.fault != AS_TALK_OK) {
        if (removal->talk.has_begun)
            as_fault_accept_part(&removal->result.outcome);
        removal_judge(removal);
        return;
    }
    if (removal->talk.started)
        removal->operation = as_arena_strdup(&removal->arena, removal->talk.started);
    removal->look_until.us = as_time_add(removal_get_mono(removal).us, LOOK_MAX_US);
    if (!look_later(removal, 0))
        removal_finish(removal, true);
}

bool as_removal_is_sent(const struct as_removal *removal)
{
    return removal->is_sent;
}

struct as_removal *as_removal_start(const struct as_removal_request *request,
                                    as_removal_done_fn *done, void *context)
{
    struct as_removal *removal = as_xcalloc(1, sizeof(*removal));
    removal->request = *request;
    removal->done = done;
    removal->context = context;
    removal->arena = AS_ARENA_INIT;
    removal->from = request->view->size;
    removal->has_names = !request->view->node_label;
    memcpy(removal->version, request->view->version, sizeof(removal->version));
    removal->are_gone = as_arena_alloc(&removal->arena, request->count, sizeof(*removal->are_gone));
    removal->stays = as_arena_alloc(&removal->arena, request->count, sizeof(*removal->stays));
    as_account_init_talk(request->account, &removal->talk);
    talk(removal, AS_GROUP_REMOVE, removed);
    return removal;
}
