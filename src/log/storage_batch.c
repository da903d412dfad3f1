/*
 * Filling a batch. Everything is copied into one buffer, which moves as it grows: hence offsets
 * instead of pointers.
 */
#include "storage_batch.h"

#include <assert.h>
#include <stdlib.h>

#include <alertscaler/base/alloc.h>

#define BATCH_MAX (UINT64_C(256) << 20)

struct as_storage_batch *as_storage_batch_new(uint64_t ticket)
{
    struct as_storage_batch *batch = as_xcalloc(1, sizeof(*batch));

    batch->ticket = ticket;
    batch->bytes = AS_BUF_INIT_OPEN(BATCH_MAX);
    as_buf_append(&batch->bytes, "", 0); /* data is never NULL */
    return batch;
}

struct as_storage_batch *as_storage_batch_free(struct as_storage_batch *batch)
{
    if (batch) {
        as_buf_deinit(&batch->bytes);
        as_release(batch->changes);
        as_release(batch->records);
        as_release(batch);
    }
    return NULL;
}

void as_storage_batch_let_lag(struct as_storage_batch *batch)
{
    batch->may_lag = true;
}

static struct batch_change *add_change(struct as_storage_batch *batch, enum as_store_kind kind,
                                       const void *key, size_t key_size)
{
    batch->changes = as_xgrow(batch->changes, batch->change_count, &batch->change_capacity,
                              sizeof(*batch->changes));
    struct batch_change *change = &batch->changes[batch->change_count++];
    *change = (struct batch_change){.kind = kind, .at = batch->bytes.size, .key_size = key_size};
    as_buf_append(&batch->bytes, key, key_size);
    return change;
}

void as_storage_batch_put(struct as_storage_batch *batch, enum as_store_kind kind, const void *key,
                          size_t key_size, const void *value, size_t value_size)
{
    struct batch_change *change = add_change(batch, kind, key, key_size);

    change->value_size = value_size;
    as_buf_append(&batch->bytes, value, value_size);
}

void as_storage_batch_put_hashed(struct as_storage_batch *batch, enum as_store_kind kind,
                                 const void *key, size_t key_size, const void *value,
                                 size_t value_size, size_t at_hash, uint64_t number)
{
    assert(batch->record_count > 0 && at_hash + AS_AUDIT_HASH_SIZE - 1 <= value_size);
    as_storage_batch_put(batch, kind, key, key_size, value, value_size);
    struct batch_change *change = &batch->changes[batch->change_count - 1];
    change->of_record = batch->record_count;
    change->at_hash = at_hash;
    change->number = number;
}

void as_storage_batch_delete(struct as_storage_batch *batch, enum as_store_kind kind,
                             const void *key, size_t key_size)
{
    add_change(batch, kind, key, key_size)->is_delete = true;
}

void as_storage_batch_append(struct as_storage_batch *batch, const struct as_audit_record *record)
{
    batch->records = as_xgrow(batch->records, batch->record_count, &batch->record_capacity,
                              sizeof(*batch->records));
    batch->records[batch->record_count++] = (struct batch_record){.at = batch->bytes.size,
                                                                  .size = record->size,
                                                                  .at_hash = record->at_hash,
                                                                  .at_prev = record->at_prev,
                                                                  .at_seq = record->at_seq};
    as_buf_append(&batch->bytes, record->json, record->size);
}
