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

#include <alertscaler/base/attr.h>
#include <alertscaler/engine/engine.h>
#include <alertscaler/log/storage.h>
#include <alertscaler/monitoring/monitoring.h>
#include <alertscaler/port/clock.h>
#include <alertscaler/port/messenger.h>
#include <alertscaler/rules/settings.h>

struct notifier;

#define AS_NOTIFIER_ENTRIES_MAX 10000 /* that wait, for all receivers together */
#define AS_NOTIFIER_UNREAD_US   (30 * AS_US_PER_S)

enum as_notifier_count {
    AS_NOTIFIER_SENT,
    AS_NOTIFIER_FAILED,
    AS_NOTIFIER_DROPPED,
    AS_NOTIFIER_COUNT_COUNT
};

struct as_notifier_config { /* borrowed until the next one, or until the shell is freed */
    const struct as_notify_settings *receivers;
    size_t receiver_count;
    struct as_messenger *messenger; /* NULL: nothing is sent */
    const char *instance, *external_url;
    /* A target that could not be read is reported if it cannot be read for so long: many failures
     * are over before. 0: at once. */
    int64_t unread_us;
    /* For metrics: so many notices more. May be NULL. */
    void (*counted)(void *context, const char *receiver, enum as_notifier_count what,
                    uint64_t count);
    void *context;
};

struct as_notifier_view { /* of a receiver */
    const char *receiver;
    size_t entries;    /* that wait, or are being sent */
    int64_t oldest_us; /* age of the oldest; 0: none */
};
typedef void as_notifier_visit_fn(void *context, const struct as_notifier_view *view);

struct notifier_callbacks { /* of the shell */
    /* Appends the record to the batch. */
    void (*record)(void *context, struct as_storage_batch *batch,
                   const struct as_notify_record *record);
    /* The narrowed credential whose alerts alone cause work for the target; NULL: none. */
    const char *(*find_sender)(void *context, const char *target);
    /* As as_engine_find_observed, and as_engine_visit_clusters. */
    as_mono_time (*find_observed)(void *context, const char *target, const char **cluster_out);
    void (*visit_clusters)(void *context, as_cluster_visit_fn *visit, void *visit_context);
    bool (*may_send)(void *context);
    void (*moved)(void *context); /* the deadline may be another one */
    void *context;
};

/* Batches go to `storage`, with a ticket that has NOTIFIER_TICKET set if their end matters. */
#define NOTIFIER_TICKET (UINT64_C(1) << 62)

/* Borrows clock and storage. First notifier_restore, then notifier_reload. */
struct notifier *notifier_new(const struct notifier_callbacks *callbacks,
                              const struct as_clock *clock, struct as_storage *storage) AS_MUST_USE;
struct notifier *notifier_free(struct notifier *notifier);

/* What waits, and which states hold. Unreadable entries are dropped. 0; or the store's error. */
int notifier_restore(struct notifier *notifier, struct as_store *store,
                     struct as_error *error) AS_MUST_USE;

/* The receivers and their messenger from now on. What was being sent is sent again. */
void notifier_reload(struct notifier *notifier, const struct as_notifier_config *config);

/* After the record of the effect was appended to the batch. */
void notifier_on_effect(struct notifier *notifier, const struct as_engine *engine,
                        const struct as_effect *effect, struct as_storage_batch *batch);
/* After incidents, rules or holds have changed: states whose cause is gone without a decision are
 * over. Targets that could not be read are reported, if they still cannot. */
void notifier_check_states(struct notifier *notifier, const struct as_engine *engine);
/* Some states end with their time. */
bool notifier_must_check_states(const struct notifier *notifier);

void notifier_on_hashed(struct notifier *notifier, uint64_t number,
                        const char *hash);           /* from the storage */
void notifier_on_deleted(struct notifier *notifier); /* a ticket with NOTIFIER_TICKET is durable */

/* Sends what is due, drops what is too old. */
void notifier_work(struct notifier *notifier);
as_mono_time notifier_get_deadline(
    const struct notifier *notifier);          /* of the next call; NEVER: none */
void notifier_stop(struct notifier *notifier); /* nothing more is sent */

void notifier_visit(const struct notifier *notifier, as_notifier_visit_fn *visit, void *context);

/*
 * What alertscaler sends: alerts are posted to Alertmanager's API v2, events to webhooks. An answer
 * 2xx is enough; what else it says is not read.
 */

/* Copies env, borrows the settings and what env points to. End it with the port's close, but not
 * from its own callbacks. */
struct as_messenger *as_receivers_new(const struct as_settings *settings,
                                      const struct as_source_env *env) AS_MUST_USE;

#endif
