/*
 * A tree by digest, and a list by last use. The lent notification is the list's head,
 * whatever its size: if it is too large to keep, the next call frees it.
 */
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/shares.h>
#include <alertscaler/model/labels.h>
#include <alertscaler/monitoring/payload.h>
#include <alertscaler/runtime/requests.h>
#include <alertscaler/runtime/shell.h>

#define REQUEST_BYTES 512 /* maximum, for texts from the request: the sender */

struct entry {
    RB_ENTRY(entry) by_digest;
    TAILQ_ENTRY(entry) in_order; /* last used first */
    struct as_digest digest;
    struct as_notification *notification;
    struct as_record_base base; /* the notification's */
    size_t bytes;
    struct as_share *share; /* of the narrowed credential that alone sends it; NULL: none */
};
TAILQ_HEAD(entry_list, entry);
RB_HEAD(entry_tree, entry);

struct as_decoded {
    struct entry_tree entries;
    struct entry_list order;
    size_t max;
    struct as_decoded_counts counts;
    struct as_shares shares; /* of bytes */
};

static int compare_entries(const struct entry *a, const struct entry *b)
{
    return as_digest_compare(&a->digest, &b->digest);
}
RB_GENERATE_INTERNAL(entry_tree, entry, by_digest, compare_entries, __attribute__((unused)) static)

struct as_decoded *as_decoded_new(size_t max)
{
    struct as_decoded *decoded = as_xcalloc(1, sizeof(*decoded));
    RB_INIT(&decoded->entries);
    TAILQ_INIT(&decoded->order);
    as_shares_init(&decoded->shares);
    decoded->max = max;
    return decoded;
}

static void forget(struct as_decoded *decoded, struct entry *entry)
{
    RB_REMOVE(entry_tree, &decoded->entries, entry);
    TAILQ_REMOVE(&decoded->order, entry, in_order);
    decoded->counts.bytes -= entry->bytes;
    as_shares_give(&decoded->shares, entry->share, entry->bytes);
    as_notification_free(entry->notification);
    free(entry);
}

static struct entry *find_dispensable(const struct as_decoded *decoded)
{
    const struct as_share *largest = as_shares_find_largest(&decoded->shares);
    struct entry *entry = TAILQ_LAST(&decoded->order, entry_list);
    while (decoded->shares.held > decoded->max / 2 && entry->share != largest)
        entry = TAILQ_PREV(entry, entry_list, in_order);
    return entry;
}

static void shrink(struct as_decoded *decoded)
{
    struct entry *lent = TAILQ_FIRST(&decoded->order);
    if (lent && lent->bytes > decoded->max) /* do not evict the others for it */
        forget(decoded, lent);
    while (decoded->counts.bytes > decoded->max)
        forget(decoded, find_dispensable(decoded));
}

struct as_decoded *as_decoded_free(struct as_decoded *decoded)
{
    if (decoded)
        as_decoded_set_max(decoded, 0);
    free(decoded);
    return NULL;
}

void as_decoded_set_max(struct as_decoded *decoded, size_t max)
{
    decoded->max = max;
    shrink(decoded);
}

static void keep(struct as_decoded *decoded, const struct as_digest *digest, const char *narrowed,
                 struct as_notification *notification_taken)
{
    struct entry *entry = as_xcalloc(1, sizeof(*entry));
    entry->digest = *digest;
    entry->notification = notification_taken;
    entry->notification->base = &entry->base;
    entry->bytes = sizeof(*entry) + AS_ALLOC_EXTRA + REQUEST_BYTES +
                   as_notification_measure(notification_taken);
    RB_INSERT(entry_tree, &decoded->entries, entry);
    TAILQ_INSERT_HEAD(&decoded->order, entry, in_order);
    decoded->counts.bytes += entry->bytes;
    entry->share = as_shares_take(&decoded->shares, narrowed, entry->bytes);
}

int as_decoded_get(struct as_decoded *decoded, const char *body, size_t size, const char *narrowed,
                   struct as_notification **notification_out, struct as_error *error)
{
    struct entry key = {.digest = as_digest_get(body, size)};
    shrink(decoded); /* the last lent one may be too large */
    struct entry *entry = RB_FIND(entry_tree, &decoded->entries, &key);
    if (entry) {
        decoded->counts.hits++;
        TAILQ_REMOVE(&decoded->order, entry, in_order);
        TAILQ_INSERT_HEAD(&decoded->order, entry, in_order);
        if (entry->share && !narrowed) {
            as_shares_give(&decoded->shares, entry->share, entry->bytes);
            entry->share = NULL;
        }
        *notification_out = entry->notification;
        return 0;
    }
    decoded->counts.misses++;
    const int status = as_payload_decode(body, size, notification_out, error);
    if (status < 0)
        return status;
    as_digest_print(&key.digest, (*notification_out)->body_sha256);
    (*notification_out)->body_size = size;
    keep(decoded, &key.digest, narrowed, *notification_out);
    return 0;
}

struct as_decoded_counts as_decoded_get_counts(const struct as_decoded *decoded)
{
    return decoded->counts;
}
