/*
 * The list of requests that wait for the disk.
 */
#include <alertscaler/runtime/requests.h>

#include <assert.h>
#include <bsd/sys/queue.h>
#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/shares.h>
#include <alertscaler/log/storage.h>

#include <alertscaler/auth/reply.h>

#define BODY_MAX ((size_t)512 * 1024 * 1024)

struct entry {
    TAILQ_ENTRY(entry) next;
    uint64_t request;
    struct as_waiting_kind *kind;
    struct as_http_exchange *exchange;
    struct as_waiting_answer answer;
    struct as_share *share;
    uint64_t amount; /* of the share */
};
TAILQ_HEAD(entry_list, entry);

struct as_waiting {
    uint64_t last; /* request */
    struct entry_list entries;
    struct as_shares shares; /* of the storage's queue */
    unsigned connections;
};

struct as_waiting *as_waiting_new(void)
{
    struct as_waiting *waiting = as_xcalloc(1, sizeof(*waiting));
    TAILQ_INIT(&waiting->entries);
    as_shares_init(&waiting->shares);
    return waiting;
}

struct as_waiting *as_waiting_free(struct as_waiting *waiting)
{
    if (!waiting)
        return NULL;
    assert(TAILQ_EMPTY(&waiting->entries));
    free(waiting);
    return NULL;
}

void as_waiting_set_connections(struct as_waiting *waiting, unsigned connections)
{
    waiting->connections = connections;
}

static uint64_t get_cost(const struct as_waiting *waiting, size_t size)
{
    const struct as_storage_config *queue = &as_storage_config_default;
    const bool is_less = waiting->connections > 0 && waiting->connections < queue->max_batches;
    const uint64_t least = queue->max_bytes / (is_less ? waiting->connections : queue->max_batches);
    return size > least ? size : least;
}

bool as_waiting_fits(const struct as_waiting *waiting, const struct as_engine *engine,
                     const char *credential, size_t size, struct as_waiting_claim *claim_out)
{
    const struct as_waiting_claim claim = {as_engine_find_narrowed(engine, credential),
                                           get_cost(waiting, size)};
    if (claim.name &&
        as_waiting_get_held(waiting, claim.name) + claim.amount >
            as_engine_get_part(engine, claim.name, as_storage_config_default.max_bytes))
        return false;
    *claim_out = claim;
    return true;
}

uint64_t as_waiting_add(struct as_waiting *waiting, struct as_waiting_kind *kind,
                        struct as_http_exchange *exchange, const struct as_waiting_claim *claim)
{
    struct entry *entry = as_xcalloc(1, sizeof(*entry));
    *entry = (struct entry){
        .request = ++waiting->last,
        .kind = kind,
        .exchange = exchange,
        .answer = {.kind = kind, .status = 200, .body = AS_BUF_INIT_OPEN(BODY_MAX)},
        .share = as_shares_take(&waiting->shares, claim->name, claim->amount),
        .amount = claim->amount,
    };
    TAILQ_INSERT_TAIL(&waiting->entries, entry, next);
    kind->count++;
    return entry->request;
}

uint64_t as_waiting_get_held(const struct as_waiting *waiting, const char *name)
{
    return as_shares_get(&waiting->shares, name);
}

/* It is the last: it was added in this step. */
struct as_waiting_answer *as_waiting_find(struct as_waiting *waiting, uint64_t request)
{
    struct entry *last = TAILQ_LAST(&waiting->entries, entry_list);
    return last && last->request == request ? &last->answer : NULL;
}

static void end(struct as_waiting *waiting, struct entry *entry)
{
    TAILQ_REMOVE(&waiting->entries, entry, next);
    entry->kind->count--;
    as_shares_give(&waiting->shares, entry->share, entry->amount);
    as_buf_deinit(&entry->answer.body);
    free(entry);
}

void as_waiting_end(struct as_waiting *waiting, uint64_t request)
{
    struct entry *first = TAILQ_FIRST(&waiting->entries);
    if (!first || first->request != request)
        return;
    const struct as_waiting_answer *answer = &first->answer;
    if (answer->kind->end)
        answer->kind->end(answer->kind->context, first->exchange, answer);
    else if (answer->status == 200)
        as_reply_json(first->exchange, 200, answer->headers, &answer->body);
    else
        as_reply_error(first->exchange, answer->status, NULL, "%.*s", (int)answer->body.size,
                       answer->body.data);
    end(waiting, first);
}

void as_waiting_lose(struct as_waiting *waiting)
{
    struct entry *entry;
    while ((entry = TAILQ_FIRST(&waiting->entries))) {
        entry->kind->lose(entry->kind->context, entry->exchange);
        end(waiting, entry);
    }
}
