/*
 * What the files of this room share:
 *
 *   tell.c          life, restoring, reload
 *   tell_queue.c    entries: in the state and in memory, their limit, dropping
 *   tell_notices.c  which records are told of, and states
 *   tell_send.c     sending, again and again
 *
 * Long because the files share all structs.
 */
#ifndef ALERTSCALER_SRC_NOTIFY_TELL_PRIVATE_H
#define ALERTSCALER_SRC_NOTIFY_TELL_PRIVATE_H

#include <bsd/sys/queue.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/shares.h>
#include <alertscaler/notify/notice.h>

#include <alertscaler/notify/tell_queue.h>

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

/* tell.c */
struct destination *tell_find_destination(const struct tell *tell, const char *name, size_t url);
struct destination *tell_add_destination(struct tell *tell, const char *name, size_t url);
void tell_forget_removed(struct tell *tell); /* destinations without settings, as far as possible */

/* A document for the state, written by the batch under the key; the batch's last record is what it
 * tells of. */
void noted_write(struct tell *tell, struct noted *noted, struct as_storage_batch *batch,
                 const char *key, const struct as_notice *notice);
void noted_restore(struct tell *tell, struct noted *noted, uint64_t number, const char *text,
                   size_t size);

/* tell_queue.c */
#define QUEUE_KEY_SIZE (sizeof(TELL_ENTRY_PREFIX) + 16)
void queue_add(struct tell *tell, struct destination *destination, struct as_storage_batch *batch,
               const struct as_notice *notice);
/* The number that the key of an entry has; 0: it is no such key. */
uint64_t queue_parse_key(const char *key, size_t size);
void queue_restore(struct tell *tell, struct destination *destination, uint64_t number,
                   const struct as_notice *notice, const char *text, size_t size);
void queue_begin_delete(struct tell *tell, struct entry *entry);       /* the receiver has it */
void queue_remove(struct tell *tell, struct entry *entry);             /* from memory */
void queue_deinit(struct tell *tell, struct destination *destination); /* from memory, all */

/* Drops up to `most` of the oldest that are at least so old and not on their way, in a commit of
 * its own, with a record of it. With a share: only its entries. The number of them. */
size_t queue_drop(struct tell *tell, struct destination *destination, const struct as_share *share,
                  size_t most, int64_t older_us, enum as_notice_loss cause);
void queue_drop_old(struct tell *tell);

/* tell_notices.c */
/* False: the row is no state that alertscaler would have written under this key. */
bool states_restore(struct tell *tell, uint64_t number, const struct as_notice *notice,
                    const char *key, size_t key_size, const char *text, size_t size) AS_MUST_USE;
void states_free(struct noted *noted);
void states_deinit(struct tell *tell);

/* tell_send.c */
/* Its head may be sent. */
void send_note_ready(struct lane *lane);
void send_reset(struct tell *tell, struct destination *destination); /* nothing is on its way */

#endif
