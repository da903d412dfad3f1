/*
 * Notifier: notices to people, kept in the state until their receivers have accepted them. It
 * restores entries and states, decides which records are reported, sends messages and drops old
 * entries.
 *
 * An entry is a notice to one URL. The entries of a destination have one order, and one lane for
 * each target. Only entries that are durable and not being sent are dropped. A state is a
 * condition that lasts, with a row of its own; it begins and ends with a decision, in the commit
 * of that decision.
 *
 * The notifier does not print notices (notice.c) and does not open connections (messenger.c).
 */
#include <alertscaler/notify/notifier.h>

#include <assert.h>
#include <bsd/sys/queue.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/arena.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/shares.h>
#include <alertscaler/base/str.h>
#include <alertscaler/notify/notice.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

/* State of the notifier: all parts below share the structs. */

#define TELL_ENTRY_PREFIX "notice/" /* and the number, 16 hex digits */
/* The kind's word, "/", the target's id. The id of a request, or the name of a rule that did not
 * help, and "/" come before the target's id. */
#define TELL_STATE_PREFIX "notice_state/"

#define TELL_NUMBER_MAX (UINT64_C(1) << 62) /* so that counting on never overflows */

struct noted { /* a document that the state has */
    STAILQ_ENTRY(noted) in_writing;
    uint64_t number;     /* ascending; its place in all orders */
    bool is_durable;     /* so that the hash is known */
    bool is_gone;        /* a state that was over before it was durable */
    struct entry *entry; /* NULL: a state */
    char *text;          /* as in the state, with a NUL */
    size_t size, at_hash;
};

struct entry {
    struct noted noted;
    struct as_share *share; /* of the narrowed credential whose alerts alone caused it */
    enum { ENTRY_WAITING, ENTRY_SENDING, ENTRY_DELETING } phase;
    as_mono_time since;
    struct lane *lane;
    TAILQ_ENTRY(entry) in_lane, in_order;
    STAILQ_ENTRY(entry) in_deleting;
};
TAILQ_HEAD(entries, entry);

struct lane { /* what is to be told to one URL about one target; only its head is sent */
    TAILQ_ENTRY(lane) in_turn;
    UT_hash_handle hh;
    struct destination *destination;
    struct entries entries;
    unsigned failures;
    as_mono_time not_before;
    char target[];
};

struct destination { /* one URL of a receiver */
    char *name;      /* the receiver's */
    size_t url;      /* index: so another address at its place gets what waits */
    size_t receiver; /* index of `settings` */
    const struct as_notify_settings *settings; /* NULL: not configured, only while it is restored */
    TAILQ_HEAD(lanes, lane) lanes;             /* those that were served last come last */
    struct lane *by_target;
    struct entries entries;       /* of all lanes, ascending */
    size_t count, narrowed_count; /* narrowed: with a share */
    bool serves_narrowed;         /* the next entry is one with a share, if any is ready */
    uint64_t ticket;              /* of the message on its way; 0: none */
    struct entry *sent;           /* what it tells; NULL: states, up to `beat_last` */
    unsigned failures;            /* in a row */
    bool is_failing;              /* the log says so */
    as_mono_time not_before, due;
    as_mono_time beat_due;
    uint64_t beat_after, beat_last; /* numbers of states */
};

struct state {
    struct noted noted;
    UT_hash_handle hh;
    TAILQ_ENTRY(state) in_order;
    enum as_notice_kind kind;
    const char *target; /* in `key` */
    char *rule;         /* INEFFECTIVE: that is held; else NULL */
    char key[];
};

struct tell {
    struct as_tell_config config;
    struct tell_callbacks callbacks;
    const struct as_clock *clock;
    struct as_storage *storage;
    struct destination **destinations;
    size_t destination_count, destination_capacity, entry_count;
    struct as_shares shares; /* in entries */
    uint64_t served;         /* entries with a share that were sent */
    struct state *by_key;
    TAILQ_HEAD(, state) states; /* ascending */
    STAILQ_HEAD(, noted) writing;
    STAILQ_HEAD(, entry) deleting;
    uint64_t last_number, last_ticket;
    as_mono_time drop_due, check_due;
    bool is_stopping;
};

static inline as_mono_time tell_now(const struct tell *tell)
{
    return tell->clock->get_mono(tell->clock);
}

static void tell_forget_removed(
    struct tell *tell); /* destinations without settings, as far as possible */

/* A document for the state, written by the batch under the key; the batch's last record is what it
 * tells of. */
static void noted_write(struct tell *tell, struct noted *noted, struct as_storage_batch *batch,
                        const char *key, const struct as_notice *notice);
static void noted_restore(struct tell *tell, struct noted *noted, uint64_t number, const char *text,
                          size_t size);

#define QUEUE_KEY_SIZE (sizeof(TELL_ENTRY_PREFIX) + 16)

/* Entries, in the state and in memory: their limit, and dropping. */

#define DROP_AT_ONCE  100 /* at an overflow, so that not every notice brings a record of a loss */
#define PART_AT_ONCE  50  /* for the same reason: 1/50 of its part, if the credential has no more */
#define DROP_EVERY_US AS_US_PER_MIN

static void queue_print_key(uint64_t number, char key_out[QUEUE_KEY_SIZE])
{
    (void)snprintf(key_out, QUEUE_KEY_SIZE, TELL_ENTRY_PREFIX "%016" PRIx64, number);
}

/* The number that the key of an entry has; 0: it is no such key. */
static uint64_t queue_parse_key(const char *key, size_t size)
{
    const size_t prefix = strlen(TELL_ENTRY_PREFIX);
    char own[QUEUE_KEY_SIZE];
    uint64_t number;
    if (size != QUEUE_KEY_SIZE - 1 ||
        as_number_parse_u64_hex(key + prefix, size - prefix, &number) != 0 ||
        number >= TELL_NUMBER_MAX)
        return 0;
    queue_print_key(number, own);
    return memcmp(key, own, size) == 0 ? number : 0;
}

static struct lane *get_lane(struct destination *destination, const char *target)
{
    const size_t size = strlen(target);
    struct lane *lane;
    HASH_FIND(hh, destination->by_target, target, size, lane);
    if (lane)
        return lane;
    lane = as_xcalloc(1, sizeof(*lane) + size + 1);
    memcpy(lane->target, target, size);
    lane->destination = destination;
    lane->not_before.us = INT64_MIN;
    TAILQ_INIT(&lane->entries);
    TAILQ_INSERT_TAIL(&destination->lanes, lane, in_turn);
    HASH_ADD(hh, destination->by_target, target, size, lane);
    return lane;
}

static struct entry *queue_insert(struct tell *tell, struct destination *destination,
                                  const struct as_notice *notice)
{
    struct entry *entry = as_xcalloc(1, sizeof(*entry));
    entry->noted.entry = entry;
    entry->lane = get_lane(destination, notice->target);
    entry->share = as_shares_take(&tell->shares, notice->credential, 1);
    destination->narrowed_count += entry->share != NULL;
    TAILQ_INSERT_TAIL(&entry->lane->entries, entry, in_lane);
    TAILQ_INSERT_TAIL(&destination->entries, entry, in_order);
    destination->count++;
    tell->entry_count++;
    if (tell->drop_due.us == AS_MONO_NEVER.us)
        tell->drop_due.us = as_time_add(tell_now(tell).us, DROP_EVERY_US);
    return entry;
}

static void queue_remove(struct tell *tell, struct entry *entry)
{
    struct lane *lane = entry->lane;
    struct destination *destination = lane->destination;
    destination->narrowed_count -= entry->share != NULL;
    as_shares_give(&tell->shares, entry->share, 1);
    TAILQ_REMOVE(&lane->entries, entry, in_lane);
    TAILQ_REMOVE(&destination->entries, entry, in_order);
    destination->count--;
    tell->entry_count--;
    free(entry->noted.text);
    free(entry);
    if (TAILQ_EMPTY(&lane->entries)) {
        assert(destination->by_target); /* it is in there */
        HASH_DEL(destination->by_target, lane);
        TAILQ_REMOVE(&destination->lanes, lane, in_turn);
        free(lane);
    }
}

static void queue_deinit(struct tell *tell, struct destination *destination)
{
    struct entry *entry;
    while ((entry = TAILQ_FIRST(&destination->entries)))
        queue_remove(tell, entry);
}

/* With its record. */
static void queue_lose(struct tell *tell, const struct destination *destination, size_t count,
                       enum as_notice_loss cause, struct as_storage_batch *batch)
{
    const struct as_tell_config *config = &tell->config;
    const struct as_notify_record record = {
        .receiver = destination->name, .cause = cause, .count = count};
    tell->callbacks.record(tell->callbacks.context, batch, &record);
    as_storage_submit(tell->storage, batch);
    as_log(AS_LOG_WARN, "notices dropped: their receiver did not get them",
           AS_F("receiver", destination->name), AS_F("cause", as_notice_loss_get_word(cause)),
           AS_FI("count", count));
    if (config->counted)
        config->counted(config->context, destination->name, AS_TELL_DROPPED, count);
}

/* Drops up to `most` of the oldest that are at least so old and not on their way, in a commit of
 * its own, with a record of it. With a share: only its entries. The number of them. */
static size_t queue_drop(struct tell *tell, struct destination *destination,
                         const struct as_share *share, size_t most, int64_t older_us,
                         enum as_notice_loss cause)
{
    struct as_storage_batch *batch = as_storage_batch_new(0);
    struct entry *entry, *next;
    char key[QUEUE_KEY_SIZE];
    size_t count = 0;
    TAILQ_FOREACH_SAFE (entry, &destination->entries, in_order, next) {
        if (count == most || tell_now(tell).us - entry->since.us < older_us)
            break;
        if (!entry->noted.is_durable || entry->phase != ENTRY_WAITING ||
            (share && entry->share != share))
            continue;
        queue_print_key(entry->noted.number, key);
        as_storage_batch_delete(batch, AS_STORE_META, key, strlen(key));
        queue_remove(tell, entry);
        count++;
    }
    if (count > 0)
        queue_lose(tell, destination, count, cause, batch);
    else
        as_storage_batch_free(batch);
    return count;
}

static void queue_drop_old(struct tell *tell)
{
    tell_forget_removed(tell);
    for (size_t i = 0; i < tell->destination_count; i++) {
        const struct as_notify_settings *settings = tell->destinations[i]->settings;
        if (settings)
            (void)queue_drop(tell, tell->destinations[i], NULL, SIZE_MAX, settings->max_age_us,
                             AS_NOTICE_TOO_OLD);
    }
    tell->drop_due = AS_MONO_NEVER;
    if (tell->entry_count > 0)
        tell->drop_due.us = as_time_add(tell_now(tell).us, DROP_EVERY_US);
}

static size_t count_entries(const struct destination *destination, const struct as_share *share)
{
    const struct entry *entry;
    size_t count = 0;
    TAILQ_FOREACH (entry, &destination->entries, in_order)
        count += entry->share == share;
    return count;
}

/* The credential with the most entries pays, down to its equal part of the half or a little below,
 * at the URL where most of its entries wait. */
static size_t drop_of_narrowed(struct tell *tell)
{
    const struct as_share *largest = as_shares_find_largest(&tell->shares);
    struct destination *fullest = NULL;
    size_t count, most = 0;
    for (size_t i = 0; i < tell->destination_count; i++) {
        count = count_entries(tell->destinations[i], largest);
        if (count > most)
            fullest = tell->destinations[i];
        most = count > most ? count : most;
    }
    const size_t part = AS_TELL_ENTRIES_MAX / 2 / tell->shares.count;
    count = largest->held > part ? largest->held - part : part / PART_AT_ONCE + 1;
    count = count < DROP_AT_ONCE ? count : DROP_AT_ONCE;
    return queue_drop(tell, fullest, largest, count, INT64_MIN, AS_NOTICE_OVERFLOW);
}

/* Narrowed credentials pay if they would have more than half of the places. Else the URL that is
 * furthest behind pays: the other URLs lose nothing. False: there is no room. */
static bool queue_make_room(struct tell *tell, const struct as_notice *newest)
{
    struct destination *fullest = NULL;
    const uint64_t narrowed = tell->shares.held + (newest->credential != NULL);
    if (tell->entry_count < AS_TELL_ENTRIES_MAX)
        return true;
    if (narrowed > AS_TELL_ENTRIES_MAX / 2 && drop_of_narrowed(tell) > 0)
        return true;
    for (size_t i = 0; i < tell->destination_count; i++) {
        if (!fullest || tell->destinations[i]->count > fullest->count)
            fullest = tell->destinations[i];
    }
    return fullest &&
           queue_drop(tell, fullest, NULL, DROP_AT_ONCE, INT64_MIN, AS_NOTICE_OVERFLOW) > 0;
}

static void queue_add(struct tell *tell, struct destination *destination,
                      struct as_storage_batch *batch, const struct as_notice *notice)
{
    char key[QUEUE_KEY_SIZE];
    struct as_notice addressed = *notice;
    if (!queue_make_room(tell, notice)) {
        queue_lose(tell, destination, 1, AS_NOTICE_OVERFLOW, as_storage_batch_new(0));
        return;
    }
    addressed.receiver = destination->name;
    addressed.url = (uint32_t)destination->url;
    struct entry *entry = queue_insert(tell, destination, notice);
    entry->since = tell_now(tell);
    queue_print_key(tell->last_number + 1, key);
    noted_write(tell, &entry->noted, batch, key, &addressed);
}

static void queue_restore(struct tell *tell, struct destination *destination, uint64_t number,
                          const struct as_notice *notice, const char *text, size_t size)
{
    const as_wall_time since = notice->ended.set ? notice->ended.at : notice->at;
    const int64_t age = tell->clock->get_wall(tell->clock).us - since.us;
    struct entry *entry = queue_insert(tell, destination, notice);
    noted_restore(tell, &entry->noted, number, text, size);
    entry->since.us = as_time_add(tell_now(tell).us, age > 0 ? -age : 0);
}

static void queue_begin_delete(struct tell *tell, struct entry *entry)
{
    struct as_storage_batch *batch = as_storage_batch_new(TELL_TICKET);
    char key[QUEUE_KEY_SIZE];
    queue_print_key(entry->noted.number, key);
    as_storage_batch_delete(batch, AS_STORE_META, key, strlen(key));
    entry->phase = ENTRY_DELETING;
    STAILQ_INSERT_TAIL(&tell->deleting, entry, in_deleting);
    as_storage_submit(tell->storage, batch);
}

/*
 * Records that are reported, and states. If the cause of a state is gone and no decision follows
 * (the alerts ended, the rules changed), a record of its own reports the end.
 */

#define CHECK_EVERY_US AS_US_PER_MIN /* whether states hold that end with their time */

static bool wants_kind(const struct destination *destination, enum as_notice_kind kind)
{
    return destination->settings && (destination->settings->on & 1U << kind);
}

static void notify_all(struct tell *tell, struct as_storage_batch *batch,
                       const struct as_notice *notice)
{
    for (size_t i = 0; i < tell->destination_count; i++) {
        if (wants_kind(tell->destinations[i], notice->kind))
            queue_add(tell, tell->destinations[i], batch, notice);
    }
}

static const char *state_find_sender(const struct tell *tell, const char *target)
{
    return tell->destination_count == 0
               ? NULL
               : tell->callbacks.find_sender(tell->callbacks.context, target);
}

static void notify_action(struct tell *tell, struct as_storage_batch *batch,
                          const struct as_action_record *record)
{
    /* The target of a conflict is looked at again at once, and the notice is about the next action.
     * Without pods there is nothing to do. */
    if (record->outcome == AS_REASON_CONFLICT || record->outcome == AS_REASON_SUPERSEDED ||
        record->outcome == AS_REASON_NO_PODS)
        return;
    notify_all(
        tell, batch,
        &(struct as_notice){
            .kind = record->outcome == AS_REASON_APPLIED ? AS_NOTICE_SCALED : AS_NOTICE_FAILED,
            .phase = AS_NOTICE_EVENT,
            .target = record->target,
            .target_name = record->target_name,
            .rule = record->rule,
            .reason = as_reason_get_word(record->outcome),
            .decision = record->decision,
            .command = record->command,
            .credential =
                record->command ? record->sender : state_find_sender(tell, record->target),
            .message = record->message,
            .has_from = record->has_sizes && record->from >= 0,
            .has_to = record->has_sizes,
            .from = record->from,
            .to = record->to,
            .unit = as_str_is_empty(record->unit) ? NULL : record->unit,
            .at = tell->clock->get_wall(tell->clock),
        });
}

/* States */

/* The key of a state ends with its target's id. */
static struct state *state_new(struct tell *tell, const struct as_notice *notice, const char *key)
{
    const size_t size = strlen(key);
    struct state *state = as_xcalloc(1, sizeof(*state) + size + 1);
    memcpy(state->key, key, size);
    state->kind = notice->kind;
    state->target = state->key + size - strlen(notice->target);
    if (notice->kind == AS_NOTICE_INEFFECTIVE)
        state->rule = as_xstrdup(notice->rule);
    TAILQ_INSERT_TAIL(&tell->states, state, in_order);
    HASH_ADD(hh, tell->by_key, key, size, state);
    return state;
}

/* What differs between states of one target and one kind; NULL: there is one state. */
static const char *get_part(const struct as_notice *notice)
{
    return notice->kind == AS_NOTICE_NEEDS_APPROVAL ? notice->approval
           : notice->kind == AS_NOTICE_INEFFECTIVE  ? notice->rule
                                                    : NULL;
}

static char *state_make_key(const struct as_notice *notice)
{
    const char *part = get_part(notice);
    return as_xasprintf(TELL_STATE_PREFIX "%s/%s%s%s", as_notice_kind_get_row(notice->kind)->word,
                        part ? part : "", part ? "/" : "", notice->target);
}

static struct state *find_state(const struct tell *tell, const char *key)
{
    struct state *state;
    HASH_FIND(hh, tell->by_key, key, strlen(key), state);
    return state;
}

static void states_free(struct noted *noted)
{
    struct state *state = (struct state *)noted;
    free(state->noted.text);
    free(state->rule);
    free(state);
}

/* This state ends without a record. */
static void plan_check(struct tell *tell)
{
    tell->check_due.us = as_time_add(tell_now(tell).us, CHECK_EVERY_US);
}

static void forget_state(struct tell *tell, struct state *state)
{
    assert(tell->by_key); /* it is in there */
    HASH_DEL(tell->by_key, state);
    TAILQ_REMOVE(&tell->states, state, in_order);
    if (state->noted.is_durable)
        states_free(&state->noted);
    else
        state->noted.is_gone = true; /* tell_on_hashed frees it */
}

static void states_deinit(struct tell *tell)
{
    struct state *state, *next;
    TAILQ_FOREACH_SAFE (state, &tell->states, in_order, next) {
        HASH_DEL(tell->by_key, state);
        states_free(&state->noted);
    }
}

/* False: the row is no state that alertscaler would have written under this key. */
static bool states_restore(struct tell *tell, uint64_t number, const struct as_notice *notice,
                           const char *key, size_t key_size, const char *text, size_t size)
{
    AS_CLEANUP(as_free_p) char *own = state_make_key(notice);
    if (!as_notice_kind_get_row(notice->kind)->is_state || notice->phase != AS_NOTICE_BEGIN ||
        key_size != strlen(own) || memcmp(key, own, key_size) != 0)
        return false;
    noted_restore(tell, &state_new(tell, notice, own)->noted, number, text, size);
    return true;
}

static void begin_state(struct tell *tell, struct as_storage_batch *batch, const char *key,
                        const struct as_notice *notice)
{
    struct state *state = state_new(tell, notice, key);
    noted_write(tell, &state->noted, batch, key, notice);
    notify_all(tell, batch, notice);
}

/* The alert that ends has the labels with which it began. The rest is that of `news`. */
static void end_state(struct tell *tell, struct as_storage_batch *batch, struct state *state,
                      const struct as_notice *news)
{
    struct as_arena arena = AS_ARENA_INIT;
    struct as_notice notice;
    if (as_notice_decode(state->noted.text, state->noted.size, &arena, &notice, NULL) != 0)
        abort(); /* we wrote it, or have read it already */
    notice.phase = AS_NOTICE_END;
    notice.ended = (as_maybe_time){true, tell->clock->get_wall(tell->clock)};
    notice.hash = NULL;
    notice.decision = news->decision ? news->decision : notice.decision;
    notice.message = news->message ? news->message : notice.message;
    notice.has_from = news->has_from;
    notice.from = news->from;
    notify_all(tell, batch, &notice);
    as_storage_batch_delete(batch, AS_STORE_META, state->key, strlen(state->key));
    as_arena_deinit(&arena);
    forget_state(tell, state);
}

static void notify_decision(struct tell *tell, const struct as_engine *engine,
                            struct as_storage_batch *batch, const struct as_decision_record *record)
{
    const struct as_decision *output = record->output;
    const bool holds =
        output->reason == AS_REASON_AT_MAX && as_engine_count_open(engine, record->target) > 0;
    struct as_notice notice = {
        .kind = AS_NOTICE_AT_MAX,
        .phase = AS_NOTICE_BEGIN,
        .target = record->target,
        .target_name = record->target_name,
        .rule = output->rule,
        .reason = as_reason_get_word(output->reason),
        .decision = record->id,
        .has_from = true,
        .from = output->replicas,
        .unit = as_str_is_empty(record->unit) ? NULL : record->unit,
        .at = tell->clock->get_wall(tell->clock),
    };
    AS_CLEANUP(as_free_p) char *key = state_make_key(&notice);
    struct state *state = find_state(tell, key);
    if (holds && !state) {
        notice.credential = state_find_sender(tell, record->target);
        begin_state(tell, batch, key, &notice);
    } else if (!holds && state) {
        end_state(tell, batch, state, &notice);
    }
}

/* It ends with the hold: see still_holds. If an earlier end is not told yet, the state goes on. */
static void notify_effect(struct tell *tell, struct as_storage_batch *batch,
                          const struct as_follow_record *record)
{
    char until[AS_RFC3339_SIZE], message[128];
    if (!record->is_held)
        return;
    as_wall_time_print_short(record->until, until);
    (void)snprintf(message, sizeof(message),
                   "the last %" PRIu32 " actions did not help: held until %s, or until resume",
                   record->in_vain, until);
    const struct as_notice notice = {
        .kind = AS_NOTICE_INEFFECTIVE,
        .phase = AS_NOTICE_BEGIN,
        .target = record->target,
        .target_name = record->target_name,
        .rule = record->rule,
        .reason = as_reason_get_word(AS_REASON_INEFFECTIVE),
        .decision = record->decision,
        .credential = state_find_sender(tell, record->target),
        .message = message,
        .has_from = true,
        .has_to = true,
        .from = record->from,
        .to = record->to,
        .at = tell->clock->get_wall(tell->clock),
    };
    AS_CLEANUP(as_free_p) char *key = state_make_key(&notice);
    if (!find_state(tell, key)) {
        begin_state(tell, batch, key, &notice);
        plan_check(tell);
    }
}

/* A contention begins and ends with records of its own. */
static void notify_conflict(struct tell *tell, struct as_storage_batch *batch,
                            const struct as_others_record *record)
{
    const struct as_set_back *last =
        record->set_back_count > 0 ? &record->set_backs[record->set_back_count - 1] : NULL;
    const struct as_notice notice = {
        .kind = AS_NOTICE_CONTENDED,
        .phase = AS_NOTICE_BEGIN,
        .target = record->target,
        .target_name = record->target_name,
        .reason = as_reason_get_word(AS_REASON_CONTENDED),
        .credential = state_find_sender(tell, record->target),
        .message = last && *last->by ? last->by : NULL,
        .has_from = last != NULL,
        .from = last ? last->found : 0,
        .at = tell->clock->get_wall(tell->clock),
    };
    AS_CLEANUP(as_free_p) char *key = state_make_key(&notice);
    struct state *state = find_state(tell, key);
    if (record->event == AS_OTHERS_CONTENDED && !state)
        begin_state(tell, batch, key, &notice);
    else if (record->event == AS_OTHERS_OVER && state)
        end_state(tell, batch, state, &notice);
}

/* "approved by ada: the sale" */
static char *describe_end(const struct as_approval_record *record)
{
    const char *who = record->request->who;
    return as_xasprintf("%s%s%s%s%s", as_approval_event_get_word(record->event), *who ? " by " : "",
                        who, *record->message ? ": " : "", record->message);
}

/* The request waits until any record but `asked` says what has become of it. One that comes back
 * does not wait. */
static void notify_approval(struct tell *tell, struct as_storage_batch *batch,
                            const struct as_approval_record *record)
{
    const struct as_approval_state *request = record->request;
    const bool is_asked = record->event == AS_APPROVAL_ON_ASKED;
    AS_CLEANUP(as_free_p) char *message = is_asked ? NULL : describe_end(record);
    const struct as_notice notice = {
        .kind = AS_NOTICE_NEEDS_APPROVAL,
        .phase = AS_NOTICE_BEGIN,
        .target = record->target,
        .target_name = record->target_name,
        .rule = request->rule,
        .reason = as_reason_get_word(AS_REASON_NEEDS_APPROVAL),
        .message = message,
        .decision = request->decision,
        .credential = state_find_sender(tell, record->target),
        .approval = request->id,
        .has_from = true,
        .has_to = true,
        .from = request->from,
        .to = request->to,
        .unit = as_str_is_empty(record->unit) ? NULL : record->unit,
        .at = tell->clock->get_wall(tell->clock),
    };
    AS_CLEANUP(as_free_p) char *key = state_make_key(&notice);
    struct state *state = find_state(tell, key);
    if (is_asked && !state)
        begin_state(tell, batch, key, &notice);
    else if (!is_asked && state)
        end_state(tell, batch, state, &notice);
}

void tell_on_effect(struct tell *tell, const struct as_engine *engine,
                    const struct as_effect *effect, struct as_storage_batch *batch)
{
    if (effect->kind == AS_EFFECT_RECORD_ACTION)
        notify_action(tell, batch, effect->action);
    else if (effect->kind == AS_EFFECT_RECORD_FOLLOW)
        notify_effect(tell, batch, effect->follow);
    else if (effect->kind == AS_EFFECT_RECORD_DECISION)
        notify_decision(tell, engine, batch, effect->decision);
    else if (effect->kind == AS_EFFECT_RECORD_OTHERS)
        notify_conflict(tell, batch, effect->others);
    else if (effect->kind == AS_EFFECT_RECORD_APPROVAL)
        notify_approval(tell, batch, effect->approval);
}

static bool still_holds(const struct as_engine *engine, const struct state *state)
{
    if (state->kind == AS_NOTICE_CONTENDED)
        return as_engine_is_contended(engine, state->target);
    if (state->kind == AS_NOTICE_INEFFECTIVE)
        return as_engine_is_ineffective(engine, state->target, state->rule);
    if (state->kind == AS_NOTICE_NEEDS_APPROVAL) /* it ends by records of its own */
        return true;
    return as_engine_count_open(engine, state->target) > 0;
}

void tell_check_states(struct tell *tell, const struct as_engine *engine)
{
    struct state *state, *next;
    tell->check_due = AS_MONO_NEVER;
    TAILQ_FOREACH_SAFE (state, &tell->states, in_order, next) {
        if (still_holds(engine, state)) {
            if (state->kind == AS_NOTICE_INEFFECTIVE)
                plan_check(tell);
            continue;
        }
        struct as_storage_batch *batch = as_storage_batch_new(0);
        tell->callbacks.record(tell->callbacks.context, batch,
                               &(struct as_notify_record){
                                   .state = state->kind,
                                   .target = state->target,
                                   .target_name = as_engine_find_name(engine, state->target),
                                   .rule = state->rule,
                               });
        end_state(tell, batch, state, &(struct as_notice){.kind = state->kind});
        as_storage_submit(tell->storage, batch);
    }
}

bool tell_must_check_states(const struct tell *tell)
{
    return tell->check_due.us <= tell_now(tell).us;
}

/*
 * Sending. A URL gets one message at a time: the oldest entry of the lane whose turn it is, or,
 * every minute, the states that hold. After a failure the URL rests for a second, then for
 * longer, up to a minute; the lane rests too, while other lanes have their turn: an entry that
 * its receiver never accepts delays only the entries about the same target.
 */

#define REST_MIN_US AS_US_PER_S
#define REST_MAX_US AS_US_PER_MIN
#define BEAT_US     AS_US_PER_MIN
#define BEAT_STATES 100                  /* in a message */
#define BEAT_BYTES  ((size_t)256 * 1024) /* of their documents, before the last of them */
#define MESSAGE_MAX ((size_t)4 * 1024 * 1024)
#define NOT_LEAD_US AS_US_PER_S

static as_mono_time send_get_later(as_mono_time a, as_mono_time b)
{
    return a.us > b.us ? a : b;
}

static as_mono_time send_get_earlier(as_mono_time a, as_mono_time b)
{
    return a.us < b.us ? a : b;
}

static int64_t get_rest(unsigned failures)
{
    const int64_t rest = failures < 8 ? REST_MIN_US << (failures - 1) : REST_MAX_US;
    return rest < REST_MAX_US ? rest : REST_MAX_US;
}

static bool send_is_ready(const struct lane *lane)
{
    const struct entry *head = TAILQ_FIRST(&lane->entries);
    return head->noted.is_durable && head->phase == ENTRY_WAITING;
}

static bool send_beats(const struct tell *tell, const struct destination *destination)
{
    return destination->settings && !destination->settings->is_webhook &&
           !TAILQ_EMPTY(&tell->states);
}

static void send_find_due(const struct tell *tell, struct destination *destination)
{
    const struct lane *lane;
    destination->due = AS_MONO_NEVER;
    if (destination->ticket || !destination->settings)
        return;
    if (send_beats(tell, destination))
        destination->due = destination->beat_due;
    TAILQ_FOREACH (lane, &destination->lanes, in_turn) {
        if (send_is_ready(lane))
            destination->due = send_get_earlier(destination->due, lane->not_before);
        if (destination->due.us <= destination->not_before.us)
            break; /* it cannot be earlier */
    }
    if (destination->due.us != AS_MONO_NEVER.us)
        destination->due = send_get_later(destination->due, destination->not_before);
}

/* Its head may be sent. */
static void send_note_ready(struct lane *lane)
{
    struct destination *destination = lane->destination;
    if (!destination->ticket && destination->settings && send_is_ready(lane))
        destination->due = send_get_earlier(
            destination->due, send_get_later(lane->not_before, destination->not_before));
}

static void send_reset(struct tell *tell, struct destination *destination)
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
    send_find_due(tell, destination);
}

static void send_on_done(void *context, uint64_t ticket, const char *error);

static void send_body(struct tell *tell, struct destination *destination, const struct as_buf *body)
{
    struct as_messenger *messenger = tell->config.messenger;
    const struct as_message message = {destination->receiver, destination->url, body->data,
                                       body->size};
    destination->ticket = ++tell->last_ticket;
    destination->due = AS_MONO_NEVER;
    messenger->send(messenger, destination->ticket, &message, send_on_done, tell);
}

static void send_decode(const struct noted *noted, struct as_arena *arena,
                        struct as_notice *notice_out)
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
    send_decode(&entry->noted, &arena, &notice);
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
        send_decode(&state->noted, &arena, &notices[count++]);
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

static const struct as_share *send_get_share(const struct lane *lane)
{
    return TAILQ_FIRST(&lane->entries)->share;
}

/* Entries of narrowed credentials and other entries take turns; so do these credentials. */
static bool comes_before(const struct destination *destination, const struct lane *a,
                         const struct lane *b)
{
    const struct as_share *of_a = send_get_share(a), *of_b = send_get_share(b);
    if (!of_a != !of_b)
        return (of_a != NULL) == destination->serves_narrowed;
    return of_a && of_a->served < of_b->served;
}

static struct lane *find_lane(const struct destination *destination, as_mono_time now)
{
    struct lane *lane, *found = NULL;
    TAILQ_FOREACH (lane, &destination->lanes, in_turn) {
        if (!send_is_ready(lane) || lane->not_before.us > now.us)
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
    if (send_beats(tell, destination) && destination->beat_due.us <= now.us) {
        if (send_states(tell, destination))
            return;
        end_beat(tell, destination);
    }
    struct lane *lane = find_lane(destination, now);
    if (lane)
        send_entry(tell, destination, TAILQ_FIRST(&lane->entries));
    else
        send_find_due(tell, destination);
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
    as_mono_time deadline = send_get_earlier(tell->drop_due, tell->check_due);
    if (tell->is_stopping)
        return AS_MONO_NEVER;
    for (size_t i = 0; tell->config.messenger && i < tell->destination_count; i++)
        deadline = send_get_earlier(deadline, tell->destinations[i]->due);
    return deadline;
}

void tell_stop(struct tell *tell)
{
    tell->is_stopping = true;
}

static void send_count(struct tell *tell, const struct destination *destination,
                       enum as_tell_count what)
{
    const struct as_tell_config *config = &tell->config;
    if (config->counted)
        config->counted(config->context, destination->name, what, 1);
}

static void send_note_accepted(struct tell *tell, struct destination *destination)
{
    if (destination->is_failing)
        as_log(AS_LOG_INFO, "the receiver takes notices again",
               AS_F("receiver", destination->name));
    destination->is_failing = false;
    destination->failures = 0;
    destination->not_before.us = INT64_MIN;
    if (destination->sent) {
        send_count(tell, destination, AS_TELL_SENT);
        destination->sent->lane->failures = 0;
        queue_begin_delete(tell, destination->sent);
    } else {
        destination->beat_after = destination->beat_last;
    }
}

static void send_note_refused(struct tell *tell, struct destination *destination, const char *error)
{
    const as_mono_time now = tell_now(tell);
    if (!destination->is_failing)
        as_log(AS_LOG_WARN, "a notice was not taken: trying again", AS_F("error", error));
    destination->is_failing = true;
    destination->failures++;
    destination->not_before.us = as_time_add(now.us, get_rest(destination->failures));
    send_count(tell, destination, AS_TELL_FAILED);
    if (!destination->sent) {
        end_beat(tell, destination);
        return;
    }
    struct lane *lane = destination->sent->lane;
    destination->sent->phase = ENTRY_WAITING;
    lane->failures++;
    lane->not_before.us = as_time_add(now.us, get_rest(lane->failures));
}

static void send_on_done(void *context, uint64_t ticket, const char *error)
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
        send_note_refused(tell, destination, error);
    else
        send_note_accepted(tell, destination);
    destination->sent = NULL;
    send_find_due(tell, destination);
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

/* Life: restoring, reloading and stopping. */

/* A name of a rule or a target has few KiB. A document that was read is written again with its end:
 * each of its bytes takes six at most. */
#define NOTICE_MAX         ((size_t)64 * 1024)
#define NOTICE_WRITTEN_MAX (8 * NOTICE_MAX)
#define KEY_SHOWN          256 /* bytes of the key of a row that cannot be read */

struct tell *tell_new(const struct tell_callbacks *callbacks, const struct as_clock *clock,
                      struct as_storage *storage)
{
    struct tell *tell = as_xcalloc(1, sizeof(*tell));
    tell->callbacks = *callbacks;
    tell->clock = clock;
    tell->storage = storage;
    tell->drop_due = tell->check_due = AS_MONO_NEVER;
    TAILQ_INIT(&tell->states);
    as_shares_init(&tell->shares);
    STAILQ_INIT(&tell->writing);
    STAILQ_INIT(&tell->deleting);
    return tell;
}

static void free_destination(struct tell *tell, struct destination *destination)
{
    queue_deinit(tell, destination);
    free(destination->name);
    free(destination);
}

struct tell *tell_free(struct tell *tell)
{
    struct noted *noted, *next;
    if (!tell)
        return NULL;
    STAILQ_FOREACH_SAFE(noted, &tell->writing, in_writing, next)
    {
        if (noted->is_gone)
            states_free(noted);
    }
    for (size_t i = 0; i < tell->destination_count; i++)
        free_destination(tell, tell->destinations[i]);
    free(tell->destinations);
    as_shares_deinit(&tell->shares);
    states_deinit(tell);
    free(tell);
    return NULL;
}

static struct destination *tell_find_destination(const struct tell *tell, const char *name,
                                                 size_t url)
{
    for (size_t i = 0; i < tell->destination_count; i++) {
        struct destination *destination = tell->destinations[i];
        if (destination->url == url && strcmp(destination->name, name) == 0)
            return destination;
    }
    return NULL;
}

static struct destination *tell_add_destination(struct tell *tell, const char *name, size_t url)
{
    struct destination *destination = as_xcalloc(1, sizeof(*destination));
    destination->name = as_xstrdup(name);
    destination->url = url;
    TAILQ_INIT(&destination->lanes);
    TAILQ_INIT(&destination->entries);
    tell->destinations = as_xgrow(tell->destinations, tell->destination_count,
                                  &tell->destination_capacity, sizeof(*tell->destinations));
    tell->destinations[tell->destination_count++] = destination;
    return destination;
}

/* Documents */

static void noted_write(struct tell *tell, struct noted *noted, struct as_storage_batch *batch,
                        const char *key, const struct as_notice *notice)
{
    struct as_buf text = AS_BUF_INIT_OPEN(NOTICE_WRITTEN_MAX);
    as_notice_encode(notice, &text, &noted->at_hash);
    assert(as_buf_check(&text) == 0);
    noted->number = ++tell->last_number;
    noted->text = as_buf_take(&text, &noted->size);
    as_storage_batch_put_hashed(batch, AS_STORE_META, key, strlen(key), noted->text, noted->size,
                                noted->at_hash, noted->number);
    STAILQ_INSERT_TAIL(&tell->writing, noted, in_writing);
}

static void noted_restore(struct tell *tell, struct noted *noted, uint64_t number, const char *text,
                          size_t size)
{
    noted->number = number;
    noted->is_durable = true;
    noted->text = as_xstrndup(text, size);
    noted->size = size;
    if (number > tell->last_number)
        tell->last_number = number;
}

void tell_on_hashed(struct tell *tell, uint64_t number, const char *hash)
{
    struct noted *noted = STAILQ_FIRST(&tell->writing);
    assert(noted && noted->number == number); /* they become durable in order */
    STAILQ_REMOVE_HEAD(&tell->writing, in_writing);
    memcpy(noted->text + noted->at_hash, hash, AS_NOTICE_HASH_SIZE - 1);
    noted->is_durable = true;
    if (noted->is_gone)
        states_free(noted);
    else if (noted->entry)
        send_note_ready(noted->entry->lane);
}

/* Restoring */

struct restoring {
    struct tell *tell;
    struct as_arena arena;
    struct as_storage_batch *unreadable; /* deletes them; NULL: there are none */
    size_t unreadable_count;
};

static bool has_prefix(const char *key, size_t size, const char *prefix)
{
    return size > strlen(prefix) && memcmp(key, prefix, strlen(prefix)) == 0;
}

static void note_unreadable(struct restoring *restoring, const char *key, size_t size,
                            const char *error)
{
    AS_CLEANUP(as_free_p) char *name = as_xstrndup(key, size < KEY_SHOWN ? size : KEY_SHOWN);
    as_log(AS_LOG_WARN, "a notice in the state cannot be read", AS_F("row", name),
           AS_F("error", error));
    if (!restoring->unreadable)
        restoring->unreadable = as_storage_batch_new(0);
    as_storage_batch_delete(restoring->unreadable, AS_STORE_META, key, size);
    restoring->unreadable_count++;
}

static void restore_entry(struct tell *tell, uint64_t number, const struct as_notice *notice,
                          const char *text, size_t size)
{
    const char *receiver = notice->receiver ? notice->receiver : "";
    struct destination *destination = tell_find_destination(tell, receiver, notice->url);
    if (!destination)
        destination = tell_add_destination(tell, receiver, notice->url);
    queue_restore(tell, destination, number, notice, text, size);
}

/* NULL: restored; else what is wrong with the row. */
static const char *restore_row(struct restoring *restoring, const char *key, size_t key_size,
                               const char *text, size_t size, struct as_error *error)
{
    struct tell *tell = restoring->tell;
    const bool is_entry = has_prefix(key, key_size, TELL_ENTRY_PREFIX);
    const uint64_t number = is_entry ? queue_parse_key(key, key_size) : tell->last_number + 1;
    struct as_notice notice;
    as_arena_reset(&restoring->arena);
    if (number == 0)
        return "its key is not a number";
    if (size > NOTICE_MAX)
        return "it is too long";
    if (as_notice_decode(text, size, &restoring->arena, &notice, error) != 0)
        return error->text;
    if (is_entry)
        restore_entry(tell, number, &notice, text, size);
    else if (!states_restore(tell, number, &notice, key, key_size, text, size))
        return "its key is not the one of its content";
    return NULL;
}

static int notifier_restore_pair(void *context, const void *key, size_t key_size, const void *value,
                                 size_t value_size)
{
    struct as_error error = AS_ERROR_INIT;
    if (!has_prefix(key, key_size, TELL_ENTRY_PREFIX) &&
        !has_prefix(key, key_size, TELL_STATE_PREFIX))
        return 0;
    const char *problem = restore_row(context, key, key_size, value, value_size, &error);
    if (problem)
        note_unreadable(context, key, key_size, problem);
    return 0;
}

int tell_restore(struct tell *tell, struct as_store *store, struct as_error *error)
{
    struct restoring restoring = {.tell = tell, .arena = AS_ARENA_INIT};
    const int status = store->visit(store, AS_STORE_META, notifier_restore_pair, &restoring, error);
    as_arena_deinit(&restoring.arena);
    if (restoring.unreadable) {
        tell->callbacks.record(tell->callbacks.context, restoring.unreadable,
                               &(struct as_notify_record){.receiver = "",
                                                          .cause = AS_NOTICE_UNREADABLE,
                                                          .count = restoring.unreadable_count});
        as_storage_submit(tell->storage, restoring.unreadable);
    }
    return status;
}

/* Receivers */

static void use_receiver(struct tell *tell, size_t receiver)
{
    const struct as_notify_settings *settings = &tell->config.receivers[receiver];
    for (int what = 0; tell->config.counted && what < AS_TELL_COUNT_COUNT; what++)
        tell->config.counted(tell->config.context, settings->name, (enum as_tell_count)what, 0);
    for (size_t i = 0; i < settings->url_count; i++) {
        struct destination *destination = tell_find_destination(tell, settings->name, i);
        if (!destination)
            destination = tell_add_destination(tell, settings->name, i);
        destination->settings = settings;
        destination->receiver = receiver;
    }
}

static void tell_forget_removed(struct tell *tell)
{
    size_t kept = 0;
    for (size_t i = 0; i < tell->destination_count; i++) {
        struct destination *destination = tell->destinations[i];
        if (!destination->settings)
            (void)queue_drop(tell, destination, NULL, SIZE_MAX, INT64_MIN, AS_NOTICE_REMOVED);
        if (destination->settings || destination->count > 0)
            tell->destinations[kept++] = destination;
        else
            free_destination(tell, destination);
    }
    tell->destination_count = kept;
}

void tell_reload(struct tell *tell, const struct as_tell_config *config)
{
    tell->config = *config;
    for (size_t i = 0; i < tell->destination_count; i++) {
        tell->destinations[i]->settings = NULL;
        send_reset(tell, tell->destinations[i]);
    }
    for (size_t i = 0; i < config->receiver_count; i++)
        use_receiver(tell, i);
    tell_forget_removed(tell);
    for (size_t i = 0; i < tell->destination_count; i++)
        send_reset(tell, tell->destinations[i]);
}

void tell_visit(const struct tell *tell, as_tell_visit_fn *visit, void *context)
{
    for (size_t i = 0; i < tell->config.receiver_count; i++) {
        struct as_tell_view view = {.receiver = tell->config.receivers[i].name};
        for (size_t k = 0; k < tell->destination_count; k++) {
            const struct destination *destination = tell->destinations[k];
            const struct entry *oldest = TAILQ_FIRST(&destination->entries);
            if (strcmp(destination->name, view.receiver) != 0 || !oldest)
                continue;
            const int64_t age = tell_now(tell).us - oldest->since.us;
            view.entries += destination->count;
            view.oldest_us = age > view.oldest_us ? age : view.oldest_us;
        }
        visit(context, &view);
    }
}
