/*
 * Entries, in the state and in memory. A destination's entries are in one order, and in a lane for
 * each target. Only entries that are durable and not on their way are dropped.
 */
#include "tell_private.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/number.h>

#define DROP_AT_ONCE  100 /* at an overflow, so that not every notice brings a record of a loss */
#define PART_AT_ONCE  50  /* for the same reason: 1/50 of its part, if the credential has no more */
#define DROP_EVERY_US AS_US_PER_MIN

static void print_key(uint64_t number, char key_out[QUEUE_KEY_SIZE])
{
    (void)snprintf(key_out, QUEUE_KEY_SIZE, TELL_ENTRY_PREFIX "%016" PRIx64, number);
}

uint64_t queue_parse_key(const char *key, size_t size)
{
    const size_t prefix = strlen(TELL_ENTRY_PREFIX);
    char own[QUEUE_KEY_SIZE];
    uint64_t number;
    if (size != QUEUE_KEY_SIZE - 1 ||
        as_number_parse_u64_hex(key + prefix, size - prefix, &number) != 0 ||
        number >= TELL_NUMBER_MAX)
        return 0;
    print_key(number, own);
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

static struct entry *insert(struct tell *tell, struct destination *destination,
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

void queue_remove(struct tell *tell, struct entry *entry)
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

void queue_deinit(struct tell *tell, struct destination *destination)
{
    struct entry *entry;
    while ((entry = TAILQ_FIRST(&destination->entries)))
        queue_remove(tell, entry);
}

/* With its record. */
static void lose(struct tell *tell, const struct destination *destination, size_t count,
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

size_t queue_drop(struct tell *tell, struct destination *destination, const struct as_share *share,
                  size_t most, int64_t older_us, enum as_notice_loss cause)
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
        print_key(entry->noted.number, key);
        as_storage_batch_delete(batch, AS_STORE_META, key, strlen(key));
        queue_remove(tell, entry);
        count++;
    }
    if (count > 0)
        lose(tell, destination, count, cause, batch);
    else
        as_storage_batch_free(batch);
    return count;
}

void queue_drop_old(struct tell *tell)
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
static bool make_room(struct tell *tell, const struct as_notice *newest)
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

void queue_add(struct tell *tell, struct destination *destination, struct as_storage_batch *batch,
               const struct as_notice *notice)
{
    char key[QUEUE_KEY_SIZE];
    struct as_notice addressed = *notice;
    if (!make_room(tell, notice)) {
        lose(tell, destination, 1, AS_NOTICE_OVERFLOW, as_storage_batch_new(0));
        return;
    }
    addressed.receiver = destination->name;
    addressed.url = (uint32_t)destination->url;
    struct entry *entry = insert(tell, destination, notice);
    entry->since = tell_now(tell);
    print_key(tell->last_number + 1, key);
    noted_write(tell, &entry->noted, batch, key, &addressed);
}

void queue_restore(struct tell *tell, struct destination *destination, uint64_t number,
                   const struct as_notice *notice, const char *text, size_t size)
{
    const as_wall_time since = notice->ended.set ? notice->ended.at : notice->at;
    const int64_t age = tell->clock->get_wall(tell->clock).us - since.us;
    struct entry *entry = insert(tell, destination, notice);
    noted_restore(tell, &entry->noted, number, text, size);
    entry->since.us = as_time_add(tell_now(tell).us, age > 0 ? -age : 0);
}

void queue_begin_delete(struct tell *tell, struct entry *entry)
{
    struct as_storage_batch *batch = as_storage_batch_new(TELL_TICKET);
    char key[QUEUE_KEY_SIZE];
    print_key(entry->noted.number, key);
    as_storage_batch_delete(batch, AS_STORE_META, key, strlen(key));
    entry->phase = ENTRY_DELETING;
    STAILQ_INSERT_TAIL(&tell->deleting, entry, in_deleting);
    as_storage_submit(tell->storage, batch);
}
