/*
 * Locks as they should be shown, and as they are shown: see the header.
 *
 * A replica that takes over does not know which decisions the existing locks come from, because the
 * state does not hold them. So it keeps the texts of an existing Lease of the same lock.
 */
#include "lock_table.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

/* Smaller differences are the same to people: after a jump, corrections of the wall clock move the
 * ends. */
#define SAME_US (2 * AS_US_PER_S)

enum there { ABSENT, PRESENT, UNKNOWN };

struct kept { /* a lock that owns its texts */
    struct as_lock lock;
    char *holder, *version;
};

struct lock_entry {
    RB_ENTRY(lock_entry) by_name;
    TAILQ_ENTRY(lock_entry) in_queue;
    char name[AS_LOCK_LEASE_NAME_SIZE];
    bool is_wanted, is_queued, is_under_way;
    uint64_t shown, listed; /* when last seen */
    struct kept want;       /* without holder and version */
    enum there there;
    struct kept have; /* if PRESENT */
    bool is_written;  /* as wanted: the server's own changes to it are not corrected */
};

static int compare(const struct lock_entry *a, const struct lock_entry *b)
{
    return strcmp(a->name, b->name);
}

RB_GENERATE_INTERNAL(lock_tree, lock_entry, by_name, compare, __attribute__((unused)) static)

static void kept_clear(struct kept *kept)
{
    free((char *)kept->lock.target);
    free((char *)kept->lock.rule);
    free((char *)kept->lock.decision);
    free((char *)kept->lock.command);
    free(kept->holder);
    free(kept->version);
    *kept = (struct kept){0};
}

static char *copy(const char *text)
{
    return text ? as_xstrdup(text) : NULL;
}

static void kept_set(struct kept *kept, const struct as_lock *lock, const char *holder,
                     const char *version)
{
    const struct kept copied = {
        .lock = *lock,
        .holder = copy(holder),
        .version = copy(version),
    };
    struct as_lock texts = {
        .target = copy(lock->target),
        .rule = copy(lock->rule),
        .decision = copy(lock->decision),
        .command = copy(lock->command),
    };
    kept_clear(kept);
    *kept = copied;
    kept->lock.target = texts.target;
    kept->lock.rule = texts.rule;
    kept->lock.decision = texts.decision;
    kept->lock.command = texts.command;
}

static bool is_near(as_wall_time a, as_wall_time b)
{
    return a.us >= b.us ? a.us - b.us <= SAME_US : b.us - a.us <= SAME_US;
}

static bool is_same_end(as_maybe_time a, as_maybe_time b)
{
    return a.set == b.set && (!a.set || is_near(a.at, b.at));
}

/* Whether both are the same lock, whoever wrote it and even if its origin is unknown. */
static bool is_same_lock(const struct as_lock *a, const struct as_lock *b)
{
    return as_str_equal(a->target, b->target) && a->is_in_flight == b->is_in_flight &&
           is_same_end(a->up_until, b->up_until) && is_same_end(a->down_until, b->down_until) &&
           (!a->is_in_flight || is_near(a->since, b->since));
}

static bool has_cause(const struct as_lock *lock)
{
    return lock->decision || lock->command;
}

static bool is_as_wanted(const struct lock_table *table, const struct lock_entry *entry)
{
    const struct as_lock *want = &entry->want.lock, *have = &entry->have.lock;
    return strcmp(entry->have.holder, table->holder) == 0 && is_same_lock(want, have) &&
           (!has_cause(want) ||
            (as_str_equal(want->rule, have->rule) && as_str_equal(want->decision, have->decision) &&
             as_str_equal(want->command, have->command)));
}

static bool is_in_order(const struct lock_table *table, const struct lock_entry *entry)
{
    switch (entry->there) {
    case ABSENT: return !entry->is_wanted;
    case PRESENT: return entry->is_wanted && (entry->is_written || is_as_wanted(table, entry));
    case UNKNOWN: return false;
    }
    abort(); /* there is no other value */
}

static void unqueue(struct lock_table *table, struct lock_entry *entry)
{
    if (entry->is_queued)
        TAILQ_REMOVE(&table->queue, entry, in_queue);
    table->queued -= entry->is_queued;
    entry->is_queued = false;
}

static void entry_free(struct lock_table *table, struct lock_entry *entry)
{
    unqueue(table, entry);
    table->under_way -= entry->is_under_way;
    RB_REMOVE(lock_tree, &table->entries, entry);
    kept_clear(&entry->want);
    kept_clear(&entry->have);
    free(entry);
}

/* After every change of an entry: queues it, unqueues it, or removes it. */
static void settle(struct lock_table *table, struct lock_entry *entry)
{
    if (entry->is_under_way)
        return;
    if (!entry->is_wanted && entry->there == ABSENT) {
        entry_free(table, entry);
    } else if (is_in_order(table, entry)) {
        unqueue(table, entry);
    } else if (!entry->is_queued) {
        TAILQ_INSERT_TAIL(&table->queue, entry, in_queue);
        entry->is_queued = true;
        table->queued++;
    }
}

static struct lock_entry *get(struct lock_table *table, const char *name)
{
    struct lock_entry key, *entry;
    memcpy(key.name, name, strlen(name) + 1);
    entry = RB_FIND(lock_tree, &table->entries, &key);
    if (entry)
        return entry;
    entry = as_xcalloc(1, sizeof(*entry));
    memcpy(entry->name, key.name, strlen(key.name) + 1);
    RB_INSERT(lock_tree, &table->entries, entry);
    return entry;
}

void lock_table_init(struct lock_table *table, const char *holder)
{
    *table = (struct lock_table){.holder = as_xstrdup(holder)};
    RB_INIT(&table->entries);
    TAILQ_INIT(&table->queue);
}

void lock_table_deinit(struct lock_table *table)
{
    struct lock_entry *entry;
    while ((entry = RB_ROOT(&table->entries)))
        entry_free(table, entry);
    free(table->holder);
}

static void want(struct lock_table *table, const struct as_lock *lock)
{
    char name[AS_LOCK_LEASE_NAME_SIZE];
    as_lock_lease_print_name(lock->target, name);
    struct lock_entry *entry = get(table, name);
    if (entry->shown == table->shown)
        return; /* another target of the same name */
    entry->shown = table->shown;
    if (entry->is_wanted && is_same_lock(&entry->want.lock, lock) &&
        as_str_equal(entry->want.lock.decision, lock->decision) &&
        as_str_equal(entry->want.lock.command, lock->command))
        return;
    entry->is_wanted = true;
    entry->is_written = false;
    kept_set(&entry->want, lock, NULL, NULL);
    settle(table, entry);
}

void lock_table_show(struct lock_table *table, const struct as_lock *locks, size_t count)
{
    struct lock_entry *entry, *next;
    table->shown++;
    for (size_t i = 0; i < count; i++)
        want(table, &locks[i]);
    RB_FOREACH_SAFE (entry, lock_tree, &table->entries, next) {
        if (!entry->is_wanted || entry->shown == table->shown)
            continue;
        entry->is_wanted = entry->is_written = false;
        kept_clear(&entry->want);
        settle(table, entry);
    }
}

static void find(struct lock_entry *entry, const struct as_lock_lease *lease)
{
    entry->there = PRESENT;
    kept_set(&entry->have, &lease->lock, lease->holder, lease->version);
}

static void lose(struct lock_entry *entry, enum there there)
{
    entry->there = there;
    entry->is_written = false;
    kept_clear(&entry->have);
}

void lock_table_list_begin(struct lock_table *table)
{
    table->listed++;
}

/* A Lease with our labels but another name is not ours. */
void lock_table_list_see(struct lock_table *table, const struct as_lock_lease *lease)
{
    if (!as_str_starts_with(lease->name, AS_LOCK_LEASE_PREFIX) ||
        strlen(lease->name) >= AS_LOCK_LEASE_NAME_SIZE)
        return;
    struct lock_entry *entry = get(table, lease->name);
    entry->listed = table->listed;
    entry->is_written = false;
    find(entry, lease);
    settle(table, entry);
}

void lock_table_list_end(struct lock_table *table)
{
    struct lock_entry *entry, *next;
    RB_FOREACH_SAFE (entry, lock_tree, &table->entries, next) {
        if (entry->listed == table->listed)
            continue;
        lose(entry, ABSENT);
        settle(table, entry);
    }
}

static enum lock_order choose(const struct lock_entry *entry)
{
    if (entry->there == UNKNOWN)
        return LOCK_GET;
    if (!entry->is_wanted)
        return LOCK_DELETE;
    return entry->there == ABSENT ? LOCK_CREATE : LOCK_UPDATE;
}

bool lock_table_take(struct lock_table *table, struct lock_write *write_out)
{
    struct lock_entry *entry = TAILQ_FIRST(&table->queue);
    if (!entry)
        return false;
    unqueue(table, entry);
    entry->is_under_way = true;
    table->under_way++;
    entry->is_written = entry->there != UNKNOWN && entry->is_wanted;
    const struct as_lock *have = &entry->have.lock;
    *write_out = (struct lock_write){
        .order = choose(entry),
        .entry = entry,
        .lease = {.name = entry->name,
                  .version = entry->have.version ? entry->have.version : "",
                  .holder = table->holder,
                  .lock = entry->want.lock},
    };
    struct as_lock *lock = &write_out->lease.lock;
    if (write_out->order == LOCK_UPDATE && !has_cause(lock) && is_same_lock(lock, have)) {
        lock->rule = have->rule;
        lock->decision = have->decision;
        lock->command = have->command;
    }
    return true;
}

static void end(struct lock_table *table, struct lock_entry *entry)
{
    entry->is_under_way = false;
    table->under_way--;
    settle(table, entry);
}

void lock_table_on_found(struct lock_table *table, struct lock_entry *entry,
                         const struct as_lock_lease *lease)
{
    find(entry, lease);
    end(table, entry);
}

void lock_table_on_gone(struct lock_table *table, struct lock_entry *entry)
{
    lose(entry, ABSENT);
    end(table, entry);
}

void lock_table_on_failed(struct lock_table *table, struct lock_entry *entry)
{
    lose(entry, UNKNOWN);
    end(table, entry);
}

size_t lock_table_count_behind(const struct lock_table *table)
{
    return table->queued + table->under_way;
}
