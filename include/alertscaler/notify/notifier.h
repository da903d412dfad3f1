/*
 * Notices to people, kept in the state until their receivers have accepted them. docs/notify.md has
 * the guarantees.
 *
 * A record that a receiver wants brings an entry for each URL of that receiver, in the record's own
 * commit. Life of an entry: written with its record -> waits -> is sent -> was accepted -> its
 * deletion is durable. Only then is the next entry about the same target sent to that URL. So each
 * entry is delivered at least once, in order for each target, over crashes and changes of the
 * leader. An entry delays only the entries about its target to its URL.
 *
 * A state (at_max) has an entry for its begin and its end. While it holds it is a row of its own,
 * and Alertmanagers receive it again every minute.
 */
#ifndef ALERTSCALER_NOTIFY_NOTIFIER_H
#define ALERTSCALER_NOTIFY_NOTIFIER_H

#include <stddef.h>
#include <stdint.h>

#include <alertscaler/engine/engine.h>
#include <alertscaler/log/storage.h>
#include <alertscaler/port/clock.h>
#include <alertscaler/port/messenger.h>
#include <alertscaler/rules/settings.h>

#define AS_TELL_ENTRIES_MAX 10000 /* that wait, for all receivers together */

enum as_tell_count { AS_TELL_SENT, AS_TELL_FAILED, AS_TELL_DROPPED, AS_TELL_COUNT_COUNT };

struct as_tell_config { /* borrowed until the next one, or until the shell is freed */
    const struct as_notify_settings *receivers;
    size_t receiver_count;
    struct as_messenger *messenger; /* NULL: nothing is sent */
    const char *instance, *external_url;
    /* For metrics: so many notices more. May be NULL. */
    void (*counted)(void *context, const char *receiver, enum as_tell_count what, uint64_t count);
    void *context;
};

struct as_tell_view { /* of a receiver */
    const char *receiver;
    size_t entries;    /* that wait, or are being sent */
    int64_t oldest_us; /* age of the oldest; 0: none */
};
typedef void as_tell_visit_fn(void *context, const struct as_tell_view *view);

struct tell;

struct tell_callbacks { /* of the shell */
    /* Appends the record to the batch. */
    void (*record)(void *context, struct as_storage_batch *batch,
                   const struct as_notify_record *record);
    /* The narrowed credential whose alerts alone cause work for the target; NULL: none. */
    const char *(*find_sender)(void *context, const char *target);
    bool (*may_send)(void *context);
    void (*moved)(void *context); /* the deadline may be another one */
    void *context;
};

/* Batches go to `storage`, with a ticket that has TELL_TICKET set if their end matters. */
#define TELL_TICKET (UINT64_C(1) << 62)

/* Borrows clock and storage. First tell_restore, then tell_reload. */
struct tell *tell_new(const struct tell_callbacks *callbacks, const struct as_clock *clock,
                      struct as_storage *storage) AS_MUST_USE;
struct tell *tell_free(struct tell *tell);

/* What waits, and which states hold. Unreadable entries are dropped. 0; or the store's error. */
int tell_restore(struct tell *tell, struct as_store *store, struct as_error *error) AS_MUST_USE;

/* The receivers and their messenger from now on. What was being sent is sent again. */
void tell_reload(struct tell *tell, const struct as_tell_config *config);

/* After the record of the effect was appended to the batch. */
void tell_on_effect(struct tell *tell, const struct as_engine *engine,
                    const struct as_effect *effect, struct as_storage_batch *batch);
/* After incidents, rules or holds have changed: states whose cause is gone without a decision are
 * over. */
void tell_check_states(struct tell *tell, const struct as_engine *engine);
/* Some states end with their time. */
bool tell_must_check_states(const struct tell *tell);

void tell_on_hashed(struct tell *tell, uint64_t number, const char *hash); /* from the storage */
void tell_on_deleted(struct tell *tell); /* a ticket with TELL_TICKET is durable */

/* Sends what is due, drops what is too old. */
void tell_work(struct tell *tell);
as_mono_time tell_get_deadline(const struct tell *tell); /* of the next call; NEVER: none */
void tell_stop(struct tell *tell);                       /* nothing more is sent */

void tell_visit(const struct tell *tell, as_tell_visit_fn *visit, void *context);

#endif
