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

#define NOTIFIER_ENTRY_PREFIX "notice/" /* and the number, 16 hex digits */
/* The kind's word, "/", the target's id. The id of a request, or the name of a rule that did not
 * help, and "/" come before the target's id. */
#define NOTIFIER_STATE_PREFIX "notice_state/"

/* A name of a rule or a target has few KiB. A document that was read is written again with its end:
 * each of its bytes takes six at most. */
#define NOTICE_MAX         ((size_t)64 * 1024)
#define NOTICE_WRITTEN_MAX (8 * NOTICE_MAX)

#define NOTIFIER_NUMBER_MAX (UINT64_C(1) << 62) /* so that counting on never overflows */

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
    bool is_held;       /* a failed observation that may be over soon */
    bool is_unanswered; /* the API server may be away */
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
    uint64_t call_id;             /* of the message on its way; 0: none */
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

#define OUTAGES_MAX 100 /* further clusters are reported target by target */

struct outage { /* of a cluster */
    char *cluster;
    bool is_there;          /* by the present check */
    as_mono_time since;     /* while it is there */
    as_mono_time told;      /* when it was reported; INT64_MIN: never */
    const void *told_there; /* in the present check: the destination that it was last reported to */
};

struct notifier {
    struct as_notifier_config config;
    struct notifier_callbacks callbacks;
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
    uint64_t last_number, last_call_id;
    struct outage outages[OUTAGES_MAX];
    size_t outage_count;
    as_mono_time drop_due, check_due, unread_due;
    bool is_stopping;
};

static inline as_mono_time notifier_now(const struct notifier *notifier)
{
    return notifier->clock->get_mono(notifier->clock);
}

static void notifier_forget_removed(
    struct notifier *notifier); /* destinations without settings, as far as possible */

static void send_note_ready(struct lane *lane);

/* A document for the state, written by the batch under the key; the batch's last record is what it
 * tells of. */
static void noted_write(struct notifier *notifier, struct noted *noted,
                        struct as_storage_batch *batch, const char *key,
                        const struct as_notice *notice);
static void noted_restore(struct notifier *notifier, struct noted *noted, uint64_t number,
                          const char *text, size_t size);

#define QUEUE_KEY_SIZE (sizeof(NOTIFIER_ENTRY_PREFIX) + 16)

/* Entries, in the state and in memory: their limit, and dropping. */

#define DROP_AT_ONCE  100 /* at an overflow, so that not every notice brings a record of a loss */
#define PART_AT_ONCE  50  /* for the same reason: 1/50 of its part, if the credential has no more */
#define DROP_EVERY_US AS_US_PER_MIN

static void queue_print_key(uint64_t number, char key_out[QUEUE_KEY_SIZE])
{
    (void)snprintf(key_out, QUEUE_KEY_SIZE, NOTIFIER_ENTRY_PREFIX "%016" PRIx64, number);
}

/* The number that the key of an entry has; 0: it is no such key. */
static uint64_t queue_parse_key(const char *key, size_t size)
{
    const size_t prefix = strlen(NOTIFIER_ENTRY_PREFIX);
    char own[QUEUE_KEY_SIZE];
    uint64_t number;
    if (size != QUEUE_KEY_SIZE - 1 ||
        as_number_parse_u64_hex(key + prefix, size - prefix, &number) != 0 ||
        number >= NOTIFIER_NUMBER_MAX)
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

/* The same reasons as those of an unreachable cluster (engine_view.c). */
static bool is_unanswered_reason(const char *reason)
{
    return reason && (strcmp(reason, as_reason_get_word(AS_REASON_UNREACHABLE)) == 0 ||
                      strcmp(reason, as_reason_get_word(AS_REASON_TIMEOUT)) == 0);
}

static struct entry *queue_insert(struct notifier *notifier, struct destination *destination,
                                  const struct as_notice *notice)
{
    struct entry *entry = as_xcalloc(1, sizeof(*entry));
    entry->noted.entry = entry;
    entry->lane = get_lane(destination, notice->target);
    entry->share = as_shares_take(&notifier->shares, notice->credential, 1);
    entry->is_held = notice->is_held;
    entry->is_unanswered = is_unanswered_reason(notice->reason);
    destination->narrowed_count += entry->share != NULL;
    TAILQ_INSERT_TAIL(&entry->lane->entries, entry, in_lane);
    TAILQ_INSERT_TAIL(&destination->entries, entry, in_order);
    destination->count++;
    notifier->entry_count++;
    if (notifier->drop_due.us == AS_MONO_NEVER.us)
        notifier->drop_due.us = as_time_add(notifier_now(notifier).us, DROP_EVERY_US);
    return entry;
}

static void queue_remove(struct notifier *notifier, struct entry *entry)
{
    struct lane *lane = entry->lane;
    struct destination *destination = lane->destination;
    destination->narrowed_count -= entry->share != NULL;
    as_shares_give(&notifier->shares, entry->share, 1);
    TAILQ_REMOVE(&lane->entries, entry, in_lane);
    TAILQ_REMOVE(&destination->entries, entry, in_order);
    destination->count--;
    notifier->entry_count--;
    free(entry->noted.text);
    free(entry);
    if (TAILQ_EMPTY(&lane->entries)) {
        assert(destination->by_target); /* it is in there */
        HASH_DEL(destination->by_target, lane);
        TAILQ_REMOVE(&destination->lanes, lane, in_turn);
        free(lane);
    }
}

static void queue_deinit(struct notifier *notifier, struct destination *destination)
{
    struct entry *entry;
    while ((entry = TAILQ_FIRST(&destination->entries)))
        queue_remove(notifier, entry);
}

/* With its record. */
static void queue_lose(struct notifier *notifier, const struct destination *destination,
                       size_t count, enum as_notice_loss cause, struct as_storage_batch *batch)
{
    const struct as_notifier_config *config = &notifier->config;
    const struct as_notices_dropped dropped = {destination->name, cause, count};
    notifier->callbacks.record(notifier->callbacks.context, batch,
                               &(struct as_notify_record){.dropped = &dropped});
    as_storage_submit(notifier->storage, batch);
    as_log(AS_LOG_WARN, "notices dropped: their receiver did not get them",
           AS_F("receiver", destination->name), AS_F("cause", as_notice_loss_get_word(cause)),
           AS_FI("count", count));
    if (config->counted)
        config->counted(config->context, destination->name, AS_NOTIFIER_DROPPED, count);
}

/* Drops up to `most` of the oldest that are at least so old and not on their way, in a commit of
 * its own, with a record of it. With a share: only its entries. The number of them. */
static size_t queue_drop(struct notifier *notifier, struct destination *destination,
                         const struct as_share *share, size_t most, int64_t older_us,
                         enum as_notice_loss cause)
{
    struct as_storage_batch *batch = as_storage_batch_new(0);
    struct entry *entry, *next;
    char key[QUEUE_KEY_SIZE];
    size_t count = 0;
    TAILQ_FOREACH_SAFE (entry, &destination->entries, in_order, next) {
        if (count == most || notifier_now(notifier).us - entry->since.us < older_us)
            break;
        if (!entry->noted.is_durable || entry->phase != ENTRY_WAITING ||
            (share && entry->share != share))
            continue;
        queue_print_key(entry->noted.number, key);
        as_storage_batch_delete(batch, AS_STORE_META, key, strlen(key));
        queue_remove(notifier, entry);
        count++;
    }
    if (count > 0)
        queue_lose(notifier, destination, count, cause, batch);
    else
        as_storage_batch_free(batch);
    return count;
}

static void queue_drop_old(struct notifier *notifier)
{
    notifier_forget_removed(notifier);
    for (size_t i = 0; i < notifier->destination_count; i++) {
        const struct as_notify_settings *settings = notifier->destinations[i]->settings;
        if (settings)
            (void)queue_drop(notifier, notifier->destinations[i], NULL, SIZE_MAX,
                             settings->max_age_us, AS_NOTICE_TOO_OLD);
    }
    notifier->drop_due = AS_MONO_NEVER;
    if (notifier->entry_count > 0)
        notifier->drop_due.us = as_time_add(notifier_now(notifier).us, DROP_EVERY_US);
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
static size_t drop_of_narrowed(struct notifier *notifier)
{
    const struct as_share *largest = as_shares_find_largest(&notifier->shares);
    struct destination *fullest = NULL;
    size_t count, most = 0;
    for (size_t i = 0; i < notifier->destination_count; i++) {
        count = count_entries(notifier->destinations[i], largest);
        if (count > most)
            fullest = notifier->destinations[i];
        most = count > most ? count : most;
    }
    const size_t part = AS_NOTIFIER_ENTRIES_MAX / 2 / notifier->shares.count;
    count = largest->held > part ? largest->held - part : part / PART_AT_ONCE + 1;
    count = count < DROP_AT_ONCE ? count : DROP_AT_ONCE;
    return queue_drop(notifier, fullest, largest, count, INT64_MIN, AS_NOTICE_OVERFLOW);
}

/* Narrowed credentials pay if they would have more than half of the places. Else the URL that is
 * furthest behind pays: the other URLs lose nothing. False: there is no room. */
static bool queue_make_room(struct notifier *notifier, const struct as_notice *newest)
{
    struct destination *fullest = NULL;
    const uint64_t narrowed = notifier->shares.held + (newest->credential != NULL);
    if (notifier->entry_count < AS_NOTIFIER_ENTRIES_MAX)
        return true;
    if (narrowed > AS_NOTIFIER_ENTRIES_MAX / 2 && drop_of_narrowed(notifier) > 0)
        return true;
    for (size_t i = 0; i < notifier->destination_count; i++) {
        if (!fullest || notifier->destinations[i]->count > fullest->count)
            fullest = notifier->destinations[i];
    }
    return fullest &&
           queue_drop(notifier, fullest, NULL, DROP_AT_ONCE, INT64_MIN, AS_NOTICE_OVERFLOW) > 0;
}

/* If it is held, it is checked when the target could not be read for long enough. */
static void unread_plan(struct notifier *notifier, const struct entry *entry)
{
    const int64_t due = as_time_add(entry->since.us, notifier->config.unread_us);
    if (entry->is_held && due < notifier->unread_due.us)
        notifier->unread_due.us = due;
}

static void queue_add(struct notifier *notifier, struct destination *destination,
                      struct as_storage_batch *batch, const struct as_notice *notice)
{
    char key[QUEUE_KEY_SIZE];
    struct as_notice addressed = *notice;
    if (!queue_make_room(notifier, notice)) {
        queue_lose(notifier, destination, 1, AS_NOTICE_OVERFLOW, as_storage_batch_new(0));
        return;
    }
    addressed.receiver = destination->name;
    addressed.url = (uint32_t)destination->url;
    addressed.is_held =
        notifier->config.unread_us > 0 && notice->kind == AS_NOTICE_FAILED && !notice->has_to;
    struct entry *entry = queue_insert(notifier, destination, &addressed);
    entry->since = notifier_now(notifier);
    unread_plan(notifier, entry);
    queue_print_key(notifier->last_number + 1, key);
    noted_write(notifier, &entry->noted, batch, key, &addressed);
}

static void queue_restore(struct notifier *notifier, struct destination *destination,
                          uint64_t number, const struct as_notice *notice, const char *text,
                          size_t size)
{
    const as_wall_time since = notice->ended.set ? notice->ended.at : notice->at;
    const int64_t age = notifier->clock->get_wall(notifier->clock).us - since.us;
    struct entry *entry = queue_insert(notifier, destination, notice);
    noted_restore(notifier, &entry->noted, number, text, size);
    entry->since.us = as_time_add(notifier_now(notifier).us, age > 0 ? -age : 0);
}

static void queue_begin_delete(struct notifier *notifier, struct entry *entry)
{
    struct as_storage_batch *batch = as_storage_batch_new(NOTIFIER_TICKET);
    char key[QUEUE_KEY_SIZE];
    queue_print_key(entry->noted.number, key);
    as_storage_batch_delete(batch, AS_STORE_META, key, strlen(key));
    entry->phase = ENTRY_DELETING;
    STAILQ_INSERT_TAIL(&notifier->deleting, entry, in_deleting);
    as_storage_submit(notifier->storage, batch);
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

static void notify_all(struct notifier *notifier, struct as_storage_batch *batch,
                       const struct as_notice *notice)
{
    for (size_t i = 0; i < notifier->destination_count; i++) {
        if (wants_kind(notifier->destinations[i], notice->kind))
            queue_add(notifier, notifier->destinations[i], batch, notice);
    }
}

static const char *state_find_sender(const struct notifier *notifier, const char *target)
{
    return notifier->destination_count == 0
               ? NULL
               : notifier->callbacks.find_sender(notifier->callbacks.context, target);
}

static void notify_action(struct notifier *notifier, struct as_storage_batch *batch,
                          const struct as_action_record *record)
{
    /* The target of a conflict is looked at again at once, and the notice is about the next action.
     * Without pods there is nothing to do. */
    if (record->outcome == AS_REASON_CONFLICT || record->outcome == AS_REASON_SUPERSEDED ||
        record->outcome == AS_REASON_NO_PODS)
        return;
    notify_all(
        notifier, batch,
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
                record->command ? record->sender : state_find_sender(notifier, record->target),
            .message = record->message,
            .has_from = record->from >= 0,
            .has_to = record->to >= 0,
            .from = record->from,
            .to = record->to,
            .unit = as_str_is_empty(record->unit) ? NULL : record->unit,
            .at = notifier->clock->get_wall(notifier->clock),
        });
}

/* States */

/* The key of a state ends with its target's id. */
static struct state *state_new(struct notifier *notifier, const struct as_notice *notice,
                               const char *key)
{
    const size_t size = strlen(key);
    struct state *state = as_xcalloc(1, sizeof(*state) + size + 1);
    memcpy(state->key, key, size);
    state->kind = notice->kind;
    state->target = state->key + size - strlen(notice->target);
    if (notice->kind == AS_NOTICE_INEFFECTIVE)
        state->rule = as_xstrdup(notice->rule);
    TAILQ_INSERT_TAIL(&notifier->states, state, in_order);
    HASH_ADD(hh, notifier->by_key, key, size, state);
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
    return as_xasprintf(NOTIFIER_STATE_PREFIX "%s/%s%s%s",
                        as_notice_kind_get_row(notice->kind)->word, part ? part : "",
                        part ? "/" : "", notice->target);
}

static struct state *find_state(const struct notifier *notifier, const char *key)
{
    struct state *state;
    HASH_FIND(hh, notifier->by_key, key, strlen(key), state);
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
static void plan_check(struct notifier *notifier)
{
    notifier->check_due.us = as_time_add(notifier_now(notifier).us, CHECK_EVERY_US);
}

static void forget_state(struct notifier *notifier, struct state *state)
{
    assert(notifier->by_key); /* it is in there */
    HASH_DEL(notifier->by_key, state);
    TAILQ_REMOVE(&notifier->states, state, in_order);
    if (state->noted.is_durable)
        states_free(&state->noted);
    else
        state->noted.is_gone = true; /* notifier_on_hashed frees it */
}

static void states_deinit(struct notifier *notifier)
{
    struct state *state, *next;
    TAILQ_FOREACH_SAFE (state, &notifier->states, in_order, next) {
        HASH_DEL(notifier->by_key, state);
        states_free(&state->noted);
    }
}

/* False: the row is no state that alertscaler would have written under this key. */
static bool states_restore(struct notifier *notifier, uint64_t number,
                           const struct as_notice *notice, const char *key, size_t key_size,
                           const char *text, size_t size)
{
    AS_CLEANUP(as_free_p) char *own = state_make_key(notice);
    if (!as_notice_kind_get_row(notice->kind)->is_state || notice->phase != AS_NOTICE_BEGIN ||
        key_size != strlen(own) || memcmp(key, own, key_size) != 0)
        return false;
    noted_restore(notifier, &state_new(notifier, notice, own)->noted, number, text, size);
    return true;
}

static void begin_state(struct notifier *notifier, struct as_storage_batch *batch, const char *key,
                        const struct as_notice *notice)
{
    struct state *state = state_new(notifier, notice, key);
    noted_write(notifier, &state->noted, batch, key, notice);
    notify_all(notifier, batch, notice);
}

/* The alert that ends has the labels with which it began. The rest is that of `news`. */
static void end_state(struct notifier *notifier, struct as_storage_batch *batch,
                      struct state *state, const struct as_notice *news)
{
    struct as_arena arena = AS_ARENA_INIT;
    struct as_notice notice;
    if (as_notice_decode(state->noted.text, state->noted.size, &arena, &notice, NULL) != 0)
        abort(); /* we wrote it, or have read it already */
    notice.phase = AS_NOTICE_END;
    notice.ended = (as_maybe_time){true, notifier->clock->get_wall(notifier->clock)};
    notice.hash = NULL;
    notice.decision = news->decision ? news->decision : notice.decision;
    notice.message = news->message ? news->message : notice.message;
    notice.has_from = news->has_from;
    notice.from = news->from;
    notify_all(notifier, batch, &notice);
    as_storage_batch_delete(batch, AS_STORE_META, state->key, strlen(state->key));
    as_arena_deinit(&arena);
    forget_state(notifier, state);
}

static void notify_decision(struct notifier *notifier, const struct as_engine *engine,
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
        .at = notifier->clock->get_wall(notifier->clock),
    };
    AS_CLEANUP(as_free_p) char *key = state_make_key(&notice);
    struct state *state = find_state(notifier, key);
    if (holds && !state) {
        notice.credential = state_find_sender(notifier, record->target);
        begin_state(notifier, batch, key, &notice);
    } else if (!holds && state) {
        end_state(notifier, batch, state, &notice);
    }
}

/* It ends with the hold: see still_holds. If an earlier end is not told yet, the state goes on. */
static void notify_effect(struct notifier *notifier, struct as_storage_batch *batch,
                          const struct as_effect_record *record)
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
        .credential = state_find_sender(notifier, record->target),
        .message = message,
        .has_from = true,
        .has_to = true,
        .from = record->from,
        .to = record->to,
        .at = notifier->clock->get_wall(notifier->clock),
    };
    AS_CLEANUP(as_free_p) char *key = state_make_key(&notice);
    if (!find_state(notifier, key)) {
        begin_state(notifier, batch, key, &notice);
        plan_check(notifier);
    }
}

/* A contention begins and ends with records of its own. */
static void notify_conflict(struct notifier *notifier, struct as_storage_batch *batch,
                            const struct as_others_record *record)
{
    const struct as_contended_note *contended = record->contended;
    const struct as_reverted_change *last =
        contended ? &contended->reverted_changes[contended->reverted_change_count - 1] : NULL;
    const struct as_notice notice = {
        .kind = AS_NOTICE_CONTENDED,
        .phase = AS_NOTICE_BEGIN,
        .target = record->target,
        .target_name = record->target_name,
        .reason = as_reason_get_word(AS_REASON_CONTENDED),
        .credential = state_find_sender(notifier, record->target),
        .message = last && *last->by ? last->by : NULL,
        .has_from = last != NULL,
        .from = last ? last->found : 0,
        .at = notifier->clock->get_wall(notifier->clock),
    };
    AS_CLEANUP(as_free_p) char *key = state_make_key(&notice);
    struct state *state = find_state(notifier, key);
    if (record->event == AS_OTHERS_CONTENDED && !state)
        begin_state(notifier, batch, key, &notice);
    else if (record->event == AS_OTHERS_OVER && state)
        end_state(notifier, batch, state, &notice);
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
static void notify_approval(struct notifier *notifier, struct as_storage_batch *batch,
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
        .credential = state_find_sender(notifier, record->target),
        .approval = request->id,
        .has_from = true,
        .has_to = true,
        .from = request->from,
        .to = request->to,
        .unit = as_str_is_empty(record->unit) ? NULL : record->unit,
        .at = notifier->clock->get_wall(notifier->clock),
    };
    AS_CLEANUP(as_free_p) char *key = state_make_key(&notice);
    struct state *state = find_state(notifier, key);
    if (is_asked && !state)
        begin_state(notifier, batch, key, &notice);
    else if (!is_asked && state)
        end_state(notifier, batch, state, &notice);
}

/*
 * Failed observations. A notice of one is stored with its record, like all notices, but it is held
 * until the target could not be read for `unread_us`. A target that is read before is not reported.
 * If the whole cluster does not answer, one notice for each destination is about the cluster, and
 * the notices of its other targets are withdrawn.
 */

#define UNREAD_CHECK_US AS_US_PER_S /* between two checks, also of notices not durable yet */

static void note_outage(void *context, const struct as_cluster_view *view)
{
    struct notifier *notifier = context;
    struct outage *outage = notifier->outages;
    const struct outage *end = outage + notifier->outage_count;
    if (!as_moment_is_set(view->unreachable_since))
        return;
    while (outage < end && strcmp(outage->cluster, view->cluster) != 0)
        outage++;
    if (outage == end && notifier->outage_count == OUTAGES_MAX)
        return;
    if (outage == end) {
        notifier->outage_count++;
        *outage = (struct outage){.cluster = as_xstrdup(view->cluster), .told = {INT64_MIN}};
    }
    outage->is_there = true;
    outage->since = view->unreachable_since.mono;
}

static void find_outages(struct notifier *notifier)
{
    for (size_t i = 0; i < notifier->outage_count; i++) {
        notifier->outages[i].is_there = false;
        notifier->outages[i].told_there = NULL;
    }
    notifier->callbacks.visit_clusters(notifier->callbacks.context, note_outage, notifier);
}

static struct outage *find_outage(struct notifier *notifier, const char *cluster)
{
    for (size_t i = 0; i < notifier->outage_count; i++) {
        if (notifier->outages[i].is_there && strcmp(notifier->outages[i].cluster, cluster) == 0)
            return &notifier->outages[i];
    }
    return NULL;
}

static void unread_withdraw(struct notifier *notifier, struct entry *entry,
                            struct as_storage_batch *batch)
{
    struct lane *lane = entry->lane;
    const bool lives_on =
        TAILQ_FIRST(&lane->entries) != entry || TAILQ_NEXT(entry, in_lane) != NULL;
    char key[QUEUE_KEY_SIZE];
    queue_print_key(entry->noted.number, key);
    as_storage_batch_delete(batch, AS_STORE_META, key, strlen(key));
    queue_remove(notifier, entry);
    if (lives_on)
        send_note_ready(lane);
}

/* It may be sent; `cluster`: from now on it is about this one. Its id stays that of the record. */
static void unread_release(struct entry *entry, const char *cluster, struct as_storage_batch *batch)
{
    struct as_arena arena = AS_ARENA_INIT;
    struct as_buf text = AS_BUF_INIT_OPEN(NOTICE_WRITTEN_MAX);
    struct as_notice notice;
    char key[QUEUE_KEY_SIZE];
    if (as_notice_decode(entry->noted.text, entry->noted.size, &arena, &notice, NULL) != 0)
        abort(); /* we wrote it, or have read it already */
    notice.is_held = entry->is_held = false;
    if (cluster) {
        notice.kind = AS_NOTICE_CLUSTER_UNREACHABLE;
        notice.cluster = cluster;
    }
    as_notice_encode(&notice, &text, &entry->noted.at_hash);
    free(entry->noted.text);
    entry->noted.text = as_buf_take(&text, &entry->noted.size);
    queue_print_key(entry->noted.number, key);
    as_storage_batch_put(batch, AS_STORE_META, key, strlen(key), entry->noted.text,
                         entry->noted.size);
    as_arena_deinit(&arena);
    send_note_ready(entry->lane);
}

/* The target could not be read for long enough. */
static void unread_report(struct notifier *notifier, struct entry *entry, const char *cluster,
                          struct as_storage_batch *batch)
{
    const struct destination *destination = entry->lane->destination;
    const as_mono_time now = notifier_now(notifier);
    struct outage *outage = entry->is_unanswered ? find_outage(notifier, cluster) : NULL;
    if (outage && outage->told.us >= outage->since.us &&
        (outage->told.us < now.us || outage->told_there == destination)) {
        unread_withdraw(notifier, entry, batch);
        return;
    }
    unread_release(entry, outage ? cluster : NULL, batch);
    if (outage) {
        outage->told = now;
        outage->told_there = destination;
    }
}

static void unread_check(struct notifier *notifier, struct entry *entry,
                         struct as_storage_batch *batch)
{
    const as_mono_time now = notifier_now(notifier);
    const char *cluster;
    if (as_time_add(entry->since.us, notifier->config.unread_us) > now.us ||
        !entry->noted.is_durable) {
        unread_plan(notifier, entry);
        return;
    }
    const as_mono_time observed = notifier->callbacks.find_observed(notifier->callbacks.context,
                                                                    entry->lane->target, &cluster);
    if (observed.us > entry->since.us)
        unread_withdraw(notifier, entry, batch);
    else
        unread_report(notifier, entry, cluster, batch);
}

static void unread_check_all(struct notifier *notifier)
{
    const int64_t next_check = as_time_add(notifier_now(notifier).us, UNREAD_CHECK_US);
    struct as_storage_batch *batch = as_storage_batch_new(0);
    struct entry *entry, *next;
    notifier->unread_due = AS_MONO_NEVER;
    find_outages(notifier);
    for (size_t i = 0; i < notifier->destination_count; i++) {
        TAILQ_FOREACH_SAFE (entry, &notifier->destinations[i]->entries, in_order, next) {
            if (entry->is_held)
                unread_check(notifier, entry, batch);
        }
    }
    as_storage_submit(notifier->storage, batch);
    if (notifier->unread_due.us < next_check)
        notifier->unread_due.us = next_check;
}

/* The target was read: what comes next about it does not wait behind these notices. */
static void unread_end(struct notifier *notifier, const char *target,
                       struct as_storage_batch *batch)
{
    for (size_t i = 0; i < notifier->destination_count; i++) {
        struct entry *entry, *next;
        struct lane *lane;
        HASH_FIND(hh, notifier->destinations[i]->by_target, target, strlen(target), lane);
        if (!lane)
            continue;
        TAILQ_FOREACH_SAFE (entry, &lane->entries, in_lane, next) {
            if (entry->is_held && entry->noted.is_durable)
                unread_withdraw(notifier, entry, batch);
        }
    }
}

/* Effects, and states whose cause may be gone. */

void notifier_on_effect(struct notifier *notifier, const struct as_engine *engine,
                        const struct as_effect *effect, struct as_storage_batch *batch)
{
    if (effect->kind == AS_EFFECT_RECORD_DECISION)
        unread_end(notifier, effect->decision->target, batch);
    else if (effect->kind == AS_EFFECT_RECORD_ACTION && effect->action->to >= 0)
        unread_end(notifier, effect->action->target, batch);
    if (effect->kind == AS_EFFECT_RECORD_ACTION)
        notify_action(notifier, batch, effect->action);
    else if (effect->kind == AS_EFFECT_RECORD_EVALUATION)
        notify_effect(notifier, batch, effect->evaluation);
    else if (effect->kind == AS_EFFECT_RECORD_DECISION)
        notify_decision(notifier, engine, batch, effect->decision);
    else if (effect->kind == AS_EFFECT_RECORD_OTHERS)
        notify_conflict(notifier, batch, effect->others);
    else if (effect->kind == AS_EFFECT_RECORD_APPROVAL)
        notify_approval(notifier, batch, effect->approval);
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

void notifier_check_states(struct notifier *notifier, const struct as_engine *engine)
{
    struct state *state, *next;
    notifier->check_due = AS_MONO_NEVER;
    if (notifier->unread_due.us <= notifier_now(notifier).us)
        unread_check_all(notifier);
    TAILQ_FOREACH_SAFE (state, &notifier->states, in_order, next) {
        if (still_holds(engine, state)) {
            if (state->kind == AS_NOTICE_INEFFECTIVE)
                plan_check(notifier);
            continue;
        }
        struct as_storage_batch *batch = as_storage_batch_new(0);
        const struct as_notice_ended ended = {
            .state = state->kind,
            .target = state->target,
            .target_name = as_engine_find_name(engine, state->target),
            .rule = state->rule,
        };
        notifier->callbacks.record(notifier->callbacks.context, batch,
                                   &(struct as_notify_record){.ended = &ended});
        end_state(notifier, batch, state, &(struct as_notice){.kind = state->kind});
        as_storage_submit(notifier->storage, batch);
    }
}

bool notifier_must_check_states(const struct notifier *notifier)
{
    return notifier->check_due.us <= notifier_now(notifier).us ||
           notifier->unread_due.us <= notifier_now(notifier).us;
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
    return head->noted.is_durable && !head->is_held && head->phase == ENTRY_WAITING;
}

static bool send_beats(const struct notifier *notifier, const struct destination *destination)
{
    return destination->settings && !destination->settings->is_webhook &&
           !TAILQ_EMPTY(&notifier->states);
}

static void send_find_due(const struct notifier *notifier, struct destination *destination)
{
    const struct lane *lane;
    destination->due = AS_MONO_NEVER;
    if (destination->call_id || !destination->settings)
        return;
    if (send_beats(notifier, destination))
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
    if (!destination->call_id && destination->settings && send_is_ready(lane))
        destination->due = send_get_earlier(
            destination->due, send_get_later(lane->not_before, destination->not_before));
}

static void send_reset(struct notifier *notifier, struct destination *destination)
{
    struct lane *lane;
    const as_mono_time now = notifier_now(notifier);
    if (destination->sent)
        destination->sent->phase = ENTRY_WAITING;
    destination->sent = NULL;
    destination->call_id = 0;
    destination->failures = 0;
    destination->not_before = destination->beat_due = now;
    destination->beat_after = 0;
    TAILQ_FOREACH (lane, &destination->lanes, in_turn)
        lane->not_before = now;
    send_find_due(notifier, destination);
}

static void send_on_done(void *context, uint64_t call_id, const char *error);

static void send_body(struct notifier *notifier, struct destination *destination,
                      const struct as_buf *body)
{
    struct as_messenger *messenger = notifier->config.messenger;
    const struct as_message message = {destination->receiver, destination->url, body->data,
                                       body->size};
    destination->call_id = ++notifier->last_call_id;
    destination->due = AS_MONO_NEVER;
    messenger->send(messenger, destination->call_id, &message, send_on_done, notifier);
}

static void send_decode(const struct noted *noted, struct as_arena *arena,
                        struct as_notice *notice_out)
{
    if (as_notice_decode(noted->text, noted->size, arena, notice_out, NULL) != 0)
        abort(); /* we wrote it, or have read it already */
}

static void send_entry(struct notifier *notifier, struct destination *destination,
                       struct entry *entry)
{
    const struct as_notice_sender sender = {notifier->config.instance,
                                            notifier->config.external_url};
    struct as_arena arena = AS_ARENA_INIT;
    struct as_buf body = AS_BUF_INIT_OPEN(MESSAGE_MAX);
    struct as_notice notice;
    send_decode(&entry->noted, &arena, &notice);
    if (destination->settings->is_webhook)
        as_notice_encode_event(&notice, &sender, &body);
    else
        as_notice_encode_alerts(&notice, 1, &sender, notifier->clock->get_wall(notifier->clock),
                                &body);
    entry->phase = ENTRY_SENDING;
    destination->sent = entry;
    destination->serves_narrowed = !entry->share;
    if (entry->share)
        entry->share->served = ++notifier->served;
    send_body(notifier, destination, &body);
    as_buf_deinit(&body);
    as_arena_deinit(&arena);
}

/* States with higher numbers than those of the last message; false: there are no more. */
static bool send_states(struct notifier *notifier, struct destination *destination)
{
    const struct as_notice_sender sender = {notifier->config.instance,
                                            notifier->config.external_url};
    struct as_arena arena = AS_ARENA_INIT;
    struct as_buf body = AS_BUF_INIT_OPEN(MESSAGE_MAX);
    struct as_notice notices[BEAT_STATES];
    const struct state *state;
    size_t count = 0, bytes = 0;
    TAILQ_FOREACH (state, &notifier->states, in_order) {
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
        as_notice_encode_alerts(notices, count, &sender, notifier->clock->get_wall(notifier->clock),
                                &body);
        destination->sent = NULL;
        send_body(notifier, destination, &body);
    }
    as_buf_deinit(&body);
    as_arena_deinit(&arena);
    return count > 0;
}

static void end_beat(struct notifier *notifier, struct destination *destination)
{
    destination->beat_after = 0;
    destination->beat_due.us = as_time_add(notifier_now(notifier).us, BEAT_US);
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

static void send_next(struct notifier *notifier, struct destination *destination, as_mono_time now)
{
    if (send_beats(notifier, destination) && destination->beat_due.us <= now.us) {
        if (send_states(notifier, destination))
            return;
        end_beat(notifier, destination);
    }
    struct lane *lane = find_lane(destination, now);
    if (lane)
        send_entry(notifier, destination, TAILQ_FIRST(&lane->entries));
    else
        send_find_due(notifier, destination);
}

void notifier_work(struct notifier *notifier)
{
    const as_mono_time now = notifier_now(notifier);
    if (notifier->is_stopping)
        return;
    if (notifier->drop_due.us <= now.us)
        queue_drop_old(notifier);
    for (size_t i = 0; notifier->config.messenger && i < notifier->destination_count; i++) {
        struct destination *destination = notifier->destinations[i];
        if (destination->due.us > now.us)
            continue;
        if (notifier->callbacks.may_send(notifier->callbacks.context))
            send_next(notifier, destination, now);
        else
            destination->due.us = as_time_add(now.us, NOT_LEAD_US);
    }
}

as_mono_time notifier_get_deadline(const struct notifier *notifier)
{
    as_mono_time deadline = send_get_earlier(
        notifier->drop_due, send_get_earlier(notifier->check_due, notifier->unread_due));
    if (notifier->is_stopping)
        return AS_MONO_NEVER;
    for (size_t i = 0; notifier->config.messenger && i < notifier->destination_count; i++)
        deadline = send_get_earlier(deadline, notifier->destinations[i]->due);
    return deadline;
}

void notifier_stop(struct notifier *notifier)
{
    notifier->is_stopping = true;
}

static void send_count(struct notifier *notifier, const struct destination *destination,
                       enum as_notifier_count what)
{
    const struct as_notifier_config *config = &notifier->config;
    if (config->counted)
        config->counted(config->context, destination->name, what, 1);
}

static void send_note_accepted(struct notifier *notifier, struct destination *destination)
{
    if (destination->is_failing)
        as_log(AS_LOG_INFO, "the receiver takes notices again",
               AS_F("receiver", destination->name));
    destination->is_failing = false;
    destination->failures = 0;
    destination->not_before.us = INT64_MIN;
    if (destination->sent) {
        send_count(notifier, destination, AS_NOTIFIER_SENT);
        destination->sent->lane->failures = 0;
        queue_begin_delete(notifier, destination->sent);
    } else {
        destination->beat_after = destination->beat_last;
    }
}

static void send_note_refused(struct notifier *notifier, struct destination *destination,
                              const char *error)
{
    const as_mono_time now = notifier_now(notifier);
    if (!destination->is_failing)
        as_log(AS_LOG_WARN, "a notice was not taken: trying again", AS_F("error", error));
    destination->is_failing = true;
    destination->failures++;
    destination->not_before.us = as_time_add(now.us, get_rest(destination->failures));
    send_count(notifier, destination, AS_NOTIFIER_FAILED);
    if (!destination->sent) {
        end_beat(notifier, destination);
        return;
    }
    struct lane *lane = destination->sent->lane;
    destination->sent->phase = ENTRY_WAITING;
    lane->failures++;
    lane->not_before.us = as_time_add(now.us, get_rest(lane->failures));
}

static void send_on_done(void *context, uint64_t call_id, const char *error)
{
    struct notifier *notifier = context;
    struct destination *destination = NULL;
    for (size_t i = 0; i < notifier->destination_count; i++) {
        if (notifier->destinations[i]->call_id == call_id)
            destination = notifier->destinations[i];
    }
    if (!destination)
        return; /* of an earlier configuration */
    destination->call_id = 0;
    struct lane *lane = destination->sent ? destination->sent->lane : NULL;
    if (lane) { /* others come first now */
        TAILQ_REMOVE(&destination->lanes, lane, in_turn);
        TAILQ_INSERT_TAIL(&destination->lanes, lane, in_turn);
    }
    if (error)
        send_note_refused(notifier, destination, error);
    else
        send_note_accepted(notifier, destination);
    destination->sent = NULL;
    send_find_due(notifier, destination);
    notifier_work(notifier);
    notifier->callbacks.moved(notifier->callbacks.context);
}

void notifier_on_deleted(struct notifier *notifier)
{
    struct entry *entry = STAILQ_FIRST(&notifier->deleting);
    assert(entry); /* they are deleted in order */
    STAILQ_REMOVE_HEAD(&notifier->deleting, in_deleting);
    struct lane *lane = entry->lane;
    const bool is_last = TAILQ_NEXT(entry, in_lane) == NULL;
    queue_remove(notifier, entry);
    if (!is_last)
        send_note_ready(lane);
}

/* Life: restoring, reloading and stopping. */

#define KEY_SHOWN 256 /* bytes of the key of a row that cannot be read */

struct notifier *notifier_new(const struct notifier_callbacks *callbacks,
                              const struct as_clock *clock, struct as_storage *storage)
{
    struct notifier *notifier = as_xcalloc(1, sizeof(*notifier));
    notifier->callbacks = *callbacks;
    notifier->clock = clock;
    notifier->storage = storage;
    notifier->drop_due = notifier->check_due = notifier->unread_due = AS_MONO_NEVER;
    TAILQ_INIT(&notifier->states);
    as_shares_init(&notifier->shares);
    STAILQ_INIT(&notifier->writing);
    STAILQ_INIT(&notifier->deleting);
    return notifier;
}

static void free_destination(struct notifier *notifier, struct destination *destination)
{
    queue_deinit(notifier, destination);
    free(destination->name);
    free(destination);
}

struct notifier *notifier_free(struct notifier *notifier)
{
    struct noted *noted, *next;
    if (!notifier)
        return NULL;
    STAILQ_FOREACH_SAFE(noted, &notifier->writing, in_writing, next)
    {
        if (noted->is_gone)
            states_free(noted);
    }
    for (size_t i = 0; i < notifier->destination_count; i++)
        free_destination(notifier, notifier->destinations[i]);
    free(notifier->destinations);
    as_shares_deinit(&notifier->shares);
    states_deinit(notifier);
    for (size_t i = 0; i < notifier->outage_count; i++)
        free(notifier->outages[i].cluster);
    free(notifier);
    return NULL;
}

static struct destination *notifier_find_destination(const struct notifier *notifier,
                                                     const char *name, size_t url)
{
    for (size_t i = 0; i < notifier->destination_count; i++) {
        struct destination *destination = notifier->destinations[i];
        if (destination->url == url && strcmp(destination->name, name) == 0)
            return destination;
    }
    return NULL;
}

static struct destination *notifier_add_destination(struct notifier *notifier, const char *name,
                                                    size_t url)
{
    struct destination *destination = as_xcalloc(1, sizeof(*destination));
    destination->name = as_xstrdup(name);
    destination->url = url;
    TAILQ_INIT(&destination->lanes);
    TAILQ_INIT(&destination->entries);
    notifier->destinations =
        as_xgrow(notifier->destinations, notifier->destination_count,
                 &notifier->destination_capacity, sizeof(*notifier->destinations));
    notifier->destinations[notifier->destination_count++] = destination;
    return destination;
}

/* Documents */

static void noted_write(struct notifier *notifier, struct noted *noted,
                        struct as_storage_batch *batch, const char *key,
                        const struct as_notice *notice)
{
    struct as_buf text = AS_BUF_INIT_OPEN(NOTICE_WRITTEN_MAX);
    as_notice_encode(notice, &text, &noted->at_hash);
    assert(as_buf_check(&text) == 0);
    noted->number = ++notifier->last_number;
    noted->text = as_buf_take(&text, &noted->size);
    as_storage_batch_put_hashed(batch, AS_STORE_META, key, strlen(key), noted->text, noted->size,
                                noted->at_hash, noted->number);
    STAILQ_INSERT_TAIL(&notifier->writing, noted, in_writing);
}

static void noted_restore(struct notifier *notifier, struct noted *noted, uint64_t number,
                          const char *text, size_t size)
{
    noted->number = number;
    noted->is_durable = true;
    noted->text = as_xstrndup(text, size);
    noted->size = size;
    if (number > notifier->last_number)
        notifier->last_number = number;
}

void notifier_on_hashed(struct notifier *notifier, uint64_t number, const char *hash)
{
    struct noted *noted = STAILQ_FIRST(&notifier->writing);
    assert(noted && noted->number == number); /* they become durable in order */
    STAILQ_REMOVE_HEAD(&notifier->writing, in_writing);
    memcpy(noted->text + noted->at_hash, hash, AS_NOTICE_HASH_SIZE - 1);
    noted->is_durable = true;
    if (noted->is_gone)
        states_free(noted);
    else if (noted->entry)
        send_note_ready(noted->entry->lane);
}

/* Restoring */

struct restoring {
    struct notifier *notifier;
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

static void restore_entry(struct notifier *notifier, uint64_t number,
                          const struct as_notice *notice, const char *text, size_t size)
{
    const char *receiver = notice->receiver ? notice->receiver : "";
    struct destination *destination = notifier_find_destination(notifier, receiver, notice->url);
    if (!destination)
        destination = notifier_add_destination(notifier, receiver, notice->url);
    queue_restore(notifier, destination, number, notice, text, size);
}

/* NULL: restored; else what is wrong with the row. */
static const char *restore_row(struct restoring *restoring, const char *key, size_t key_size,
                               const char *text, size_t size, struct as_error *error)
{
    struct notifier *notifier = restoring->notifier;
    const bool is_entry = has_prefix(key, key_size, NOTIFIER_ENTRY_PREFIX);
    const uint64_t number = is_entry ? queue_parse_key(key, key_size) : notifier->last_number + 1;
    struct as_notice notice;
    as_arena_reset(&restoring->arena);
    if (number == 0)
        return "its key is not a number";
    if (size > NOTICE_MAX)
        return "it is too long";
    if (as_notice_decode(text, size, &restoring->arena, &notice, error) != 0)
        return error->text;
    if (is_entry)
        restore_entry(notifier, number, &notice, text, size);
    else if (!states_restore(notifier, number, &notice, key, key_size, text, size))
        return "its key is not the one of its content";
    return NULL;
}

static int notifier_restore_pair(void *context, const void *key, size_t key_size, const void *value,
                                 size_t value_size)
{
    struct as_error error = AS_ERROR_INIT;
    if (!has_prefix(key, key_size, NOTIFIER_ENTRY_PREFIX) &&
        !has_prefix(key, key_size, NOTIFIER_STATE_PREFIX))
        return 0;
    const char *problem = restore_row(context, key, key_size, value, value_size, &error);
    if (problem)
        note_unreadable(context, key, key_size, problem);
    return 0;
}

int notifier_restore(struct notifier *notifier, struct as_store *store, struct as_error *error)
{
    struct restoring restoring = {.notifier = notifier, .arena = AS_ARENA_INIT};
    const int status = store->visit(store, AS_STORE_META, notifier_restore_pair, &restoring, error);
    as_arena_deinit(&restoring.arena);
    if (restoring.unreadable) {
        const struct as_notices_dropped dropped = {"", AS_NOTICE_UNREADABLE,
                                                   restoring.unreadable_count};
        notifier->callbacks.record(notifier->callbacks.context, restoring.unreadable,
                                   &(struct as_notify_record){.dropped = &dropped});
        as_storage_submit(notifier->storage, restoring.unreadable);
    }
    return status;
}

/* Receivers */

static void use_receiver(struct notifier *notifier, size_t receiver)
{
    const struct as_notify_settings *settings = &notifier->config.receivers[receiver];
    for (int what = 0; notifier->config.counted && what < AS_NOTIFIER_COUNT_COUNT; what++)
        notifier->config.counted(notifier->config.context, settings->name,
                                 (enum as_notifier_count)what, 0);
    for (size_t i = 0; i < settings->url_count; i++) {
        struct destination *destination = notifier_find_destination(notifier, settings->name, i);
        if (!destination)
            destination = notifier_add_destination(notifier, settings->name, i);
        destination->settings = settings;
        destination->receiver = receiver;
    }
}

static void notifier_forget_removed(struct notifier *notifier)
{
    size_t kept = 0;
    for (size_t i = 0; i < notifier->destination_count; i++) {
        struct destination *destination = notifier->destinations[i];
        if (!destination->settings)
            (void)queue_drop(notifier, destination, NULL, SIZE_MAX, INT64_MIN, AS_NOTICE_REMOVED);
        if (destination->settings || destination->count > 0)
            notifier->destinations[kept++] = destination;
        else
            free_destination(notifier, destination);
    }
    notifier->destination_count = kept;
}

void notifier_reload(struct notifier *notifier, const struct as_notifier_config *config)
{
    notifier->config = *config;
    for (size_t i = 0; i < notifier->destination_count; i++) {
        notifier->destinations[i]->settings = NULL;
        send_reset(notifier, notifier->destinations[i]);
    }
    for (size_t i = 0; i < config->receiver_count; i++)
        use_receiver(notifier, i);
    notifier_forget_removed(notifier);
    for (size_t i = 0; i < notifier->destination_count; i++) {
        const struct entry *entry;
        send_reset(notifier, notifier->destinations[i]);
        TAILQ_FOREACH (entry, &notifier->destinations[i]->entries, in_order)
            unread_plan(notifier, entry);
    }
}

void notifier_visit(const struct notifier *notifier, as_notifier_visit_fn *visit, void *context)
{
    for (size_t i = 0; i < notifier->config.receiver_count; i++) {
        struct as_notifier_view view = {.receiver = notifier->config.receivers[i].name};
        for (size_t k = 0; k < notifier->destination_count; k++) {
            const struct destination *destination = notifier->destinations[k];
            const struct entry *oldest = TAILQ_FIRST(&destination->entries);
            if (strcmp(destination->name, view.receiver) != 0 || !oldest)
                continue;
            const int64_t age = notifier_now(notifier).us - oldest->since.us;
            view.entries += destination->count;
            view.oldest_us = age > view.oldest_us ? age : view.oldest_us;
        }
        visit(context, &view);
    }
}
