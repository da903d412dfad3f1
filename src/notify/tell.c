/*
 * Life of what people are told: what is restored, and which URLs there are.
 */
#include "tell_private.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>

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

struct destination *tell_find_destination(const struct tell *tell, const char *name, size_t url)
{
    for (size_t i = 0; i < tell->destination_count; i++) {
        struct destination *destination = tell->destinations[i];
        if (destination->url == url && strcmp(destination->name, name) == 0)
            return destination;
    }
    return NULL;
}

struct destination *tell_add_destination(struct tell *tell, const char *name, size_t url)
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

void noted_write(struct tell *tell, struct noted *noted, struct as_storage_batch *batch,
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

void noted_restore(struct tell *tell, struct noted *noted, uint64_t number, const char *text,
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

static int restore(void *context, const void *key, size_t key_size, const void *value,
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
    const int status = store->visit(store, AS_STORE_META, restore, &restoring, error);
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

void tell_forget_removed(struct tell *tell)
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
