/*
 * Sending. A URL gets one message at a time: the oldest entry of the lane whose turn it is, or,
 * every minute, the states that hold. After a failure the URL rests for a second, then for longer,
 * up to a minute; so does the lane, while others have their turn: an entry that its receiver never
 * takes holds up nothing but what else is to be told about the same target.
 */
#include "tell_private.h"

#include <assert.h>
#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>

#define REST_MIN_US AS_US_PER_S
#define REST_MAX_US AS_US_PER_MIN
#define BEAT_US     AS_US_PER_MIN
#define BEAT_STATES 100                  /* in a message */
#define BEAT_BYTES  ((size_t)256 * 1024) /* of their documents, before the last of them */
#define MESSAGE_MAX ((size_t)4 * 1024 * 1024)
#define NOT_LEAD_US AS_US_PER_S

static as_mono_time get_later(as_mono_time a, as_mono_time b)
{
    return a.us > b.us ? a : b;
}

static as_mono_time get_earlier(as_mono_time a, as_mono_time b)
{
    return a.us < b.us ? a : b;
}

static int64_t get_rest(unsigned failures)
{
    const int64_t rest = failures < 8 ? REST_MIN_US << (failures - 1) : REST_MAX_US;
    return rest < REST_MAX_US ? rest : REST_MAX_US;
}

static bool is_ready(const struct lane *lane)
{
    const struct entry *head = TAILQ_FIRST(&lane->entries);
    return head->noted.is_durable && head->phase == ENTRY_WAITING;
}

static bool beats(const struct tell *tell, const struct destination *destination)
{
    return destination->settings && !destination->settings->is_webhook &&
           !TAILQ_EMPTY(&tell->states);
}

static void find_due(const struct tell *tell, struct destination *destination)
{
    const struct lane *lane;
    destination->due = AS_MONO_NEVER;
    if (destination->ticket || !destination->settings)
        return;
    if (beats(tell, destination))
        destination->due = destination->beat_due;
    TAILQ_FOREACH (lane, &destination->lanes, in_turn) {
        if (is_ready(lane))
            destination->due = get_earlier(destination->due, lane->not_before);
        if (destination->due.us <= destination->not_before.us)
            break; /* it cannot be earlier */
    }
    if (destination->due.us != AS_MONO_NEVER.us)
        destination->due = get_later(destination->due, destination->not_before);
}

void send_note_ready(struct lane *lane)
{
    struct destination *destination = lane->destination;
    if (!destination->ticket && destination->settings && is_ready(lane))
        destination->due =
            get_earlier(destination->due, get_later(lane->not_before, destination->not_before));
}

void send_reset(struct tell *tell, struct destination *destination)
{
    struct lane *lane;
    const as_mono_time now = tell_now(tell);
    if (destination->sent)
        destination->sent->phase = ENTRY_WAITING;
    destination->sent = NULL;
    destination->ticket = 0;
    destination->failures = 0;
    destination->not_before = destination->beat_due = now;
    destination->beat_after = 0;
    TAILQ_FOREACH (lane, &destination->lanes, in_turn)
        lane->not_before = now;
    find_due(tell, destination);
}

static void on_done(void *context, uint64_t ticket, const char *error);

static void send_body(struct tell *tell, struct destination *destination, const struct as_buf *body)
{
    struct as_messenger *messenger = tell->config.messenger;
    const struct as_message message = {destination->receiver, destination->url, body->data,
                                       body->size};
    destination->ticket = ++tell->last_ticket;
    destination->due = AS_MONO_NEVER;
    messenger->send(messenger, destination->ticket, &message, on_done, tell);
}

static void decode(const struct noted *noted, struct as_arena *arena, struct as_notice *notice_out)
{
    if (as_notice_decode(noted->text, noted->size, arena, notice_out, NULL) != 0)
        abort(); /* we wrote it, or have read it already */
}

static void send_entry(struct tell *tell, struct destination *destination, struct entry *entry)
{
    const struct as_notice_sender sender = {tell->config.instance, tell->config.external_url};
    struct as_arena arena = AS_ARENA_INIT;
    struct as_buf body = AS_BUF_INIT_OPEN(MESSAGE_MAX);
    struct as_notice notice;
    decode(&entry->noted, &arena, &notice);
    if (destination->settings->is_webhook)
        as_notice_encode_event(&notice, &sender, &body);
    else
        as_notice_encode_alerts(&notice, 1, &sender, tell->clock->get_wall(tell->clock), &body);
    entry->phase = ENTRY_SENDING;
    destination->sent = entry;
    destination->serves_narrowed = !entry->share;
    if (entry->share)
        entry->share->served = ++tell->served;
    send_body(tell, destination, &body);
    as_buf_deinit(&body);
    as_arena_deinit(&arena);
}

/* States with higher numbers than those of the last message; false: there are no more. */
static bool send_states(struct tell *tell, struct destination *destination)
{
    const struct as_notice_sender sender = {tell->config.instance, tell->config.external_url};
    struct as_arena arena = AS_ARENA_INIT;
    struct as_buf body = AS_BUF_INIT_OPEN(MESSAGE_MAX);
    struct as_notice notices[BEAT_STATES];
    const struct state *state;
    size_t count = 0, bytes = 0;
    TAILQ_FOREACH (state, &tell->states, in_order) {
        const bool is_wanted = destination->settings->on & 1U << state->kind;
        if (count == BEAT_STATES || bytes > BEAT_BYTES)
            break;
        if (!is_wanted || !state->noted.is_durable ||
            state->noted.number <= destination->beat_after)
            continue;
        decode(&state->noted, &arena, &notices[count++]);
        bytes += state->noted.size;
        destination->beat_last = state->noted.number;
    }
    if (count > 0) {
        as_notice_encode_alerts(notices, count, &sender, tell->clock->get_wall(tell->clock), &body);
        destination->sent = NULL;
        send_body(tell, destination, &body);
    }
    as_buf_deinit(&body);
    as_arena_deinit(&arena);
    return count > 0;
}

static void end_beat(struct tell *tell, struct destination *destination)
{
    destination->beat_after = 0;
    destination->beat_due.us = as_time_add(tell_now(tell).us, BEAT_US);
}

static const struct as_share *get_share(const struct lane *lane)
{
    return TAILQ_FIRST(&lane->entries)->share;
}

/* Entries of narrowed credentials and other entries take turns; so do these credentials. */
static bool comes_before(const struct destination *destination, const struct lane *a,
                         const struct lane *b)
{
    const struct as_share *of_a = get_share(a), *of_b = get_share(b);
    if (!of_a != !of_b)
        return (of_a != NULL) == destination->serves_narrowed;
    return of_a && of_a->served < of_b->served;
}

static struct lane *find_lane(const struct destination *destination, as_mono_time now)
{
    struct lane *lane, *found = NULL;
    TAILQ_FOREACH (lane, &destination->lanes, in_turn) {
        if (!is_ready(lane) || lane->not_before.us > now.us)
            continue;
        if (!found || comes_before(destination, lane, found))
            found = lane;
        if (destination->narrowed_count == 0)
            break; /* all are alike: the first comes first */
    }
    return found;
}

static void send_next(struct tell *tell, struct destination *destination, as_mono_time now)
{
    if (beats(tell, destination) && destination->beat_due.us <= now.us) {
        if (send_states(tell, destination))
            return;
        end_beat(tell, destination);
    }
    struct lane *lane = find_lane(destination, now);
    if (lane)
        send_entry(tell, destination, TAILQ_FIRST(&lane->entries));
    else
        find_due(tell, destination);
}

void tell_work(struct tell *tell)
{
    const as_mono_time now = tell_now(tell);
    if (tell->is_stopping)
        return;
    if (tell->drop_due.us <= now.us)
        queue_drop_old(tell);
    for (size_t i = 0; tell->config.messenger && i < tell->destination_count; i++) {
        struct destination *destination = tell->destinations[i];
        if (destination->due.us > now.us)
            continue;
        if (tell->callbacks.may_send(tell->callbacks.context))
            send_next(tell, destination, now);
        else
            destination->due.us = as_time_add(now.us, NOT_LEAD_US);
    }
}

as_mono_time tell_get_deadline(const struct tell *tell)
{
    as_mono_time deadline = get_earlier(tell->drop_due, tell->check_due);
    if (tell->is_stopping)
        return AS_MONO_NEVER;
    for (size_t i = 0; tell->config.messenger && i < tell->destination_count; i++)
        deadline = get_earlier(deadline, tell->destinations[i]->due);
    return deadline;
}

void tell_stop(struct tell *tell)
{
    tell->is_stopping = true;
}

static void count(struct tell *tell, const struct destination *destination, enum as_tell_count what)
{
    const struct as_tell_config *config = &tell->config;
    if (config->counted)
        config->counted(config->context, destination->name, what, 1);
}

static void note_taken(struct tell *tell, struct destination *destination)
{
    if (destination->is_failing)
        as_log(AS_LOG_INFO, "the receiver takes notices again",
               AS_F("receiver", destination->name));
    destination->is_failing = false;
    destination->failures = 0;
    destination->not_before.us = INT64_MIN;
    if (destination->sent) {
        count(tell, destination, AS_TELL_SENT);
        destination->sent->lane->failures = 0;
        queue_begin_delete(tell, destination->sent);
    } else {
        destination->beat_after = destination->beat_last;
    }
}

static void note_refused(struct tell *tell, struct destination *destination, const char *error)
{
    const as_mono_time now = tell_now(tell);
    if (!destination->is_failing)
        as_log(AS_LOG_WARN, "a notice was not taken: trying again", AS_F("error", error));
    destination->is_failing = true;
    destination->failures++;
    destination->not_before.us = as_time_add(now.us, get_rest(destination->failures));
    count(tell, destination, AS_TELL_FAILED);
    if (!destination->sent) {
        end_beat(tell, destination);
        return;
    }
    struct lane *lane = destination->sent->lane;
    destination->sent->phase = ENTRY_WAITING;
    lane->failures++;
    lane->not_before.us = as_time_add(now.us, get_rest(lane->failures));
}

static void on_done(void *context, uint64_t ticket, const char *error)
{
    struct tell *tell = context;
    struct destination *destination = NULL;
    for (size_t i = 0; i < tell->destination_count; i++) {
        if (tell->destinations[i]->ticket == ticket)
            destination = tell->destinations[i];
    }
    if (!destination)
        return; /* of an earlier configuration */
    destination->ticket = 0;
    struct lane *lane = destination->sent ? destination->sent->lane : NULL;
    if (lane) { /* others come first now */
        TAILQ_REMOVE(&destination->lanes, lane, in_turn);
        TAILQ_INSERT_TAIL(&destination->lanes, lane, in_turn);
    }
    if (error)
        note_refused(tell, destination, error);
    else
        note_taken(tell, destination);
    destination->sent = NULL;
    find_due(tell, destination);
    tell_work(tell);
    tell->callbacks.moved(tell->callbacks.context);
}

void tell_on_deleted(struct tell *tell)
{
    struct entry *entry = STAILQ_FIRST(&tell->deleting);
    assert(entry); /* they are deleted in order */
    STAILQ_REMOVE_HEAD(&tell->deleting, in_deleting);
    struct lane *lane = entry->lane;
    const bool is_last = TAILQ_NEXT(entry, in_lane) == NULL;
    queue_remove(tell, entry);
    if (!is_last)
        send_note_ready(lane);
}
