/*
 * Keys of labels: see the header.
 */
#include "label_keys.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

void label_keys_deinit(struct label_keys *keys)
{
    for (size_t i = 0; i < keys->count; i++)
        free(keys->keys[i]);
    free(keys->keys);
    as_arena_deinit(&keys->scratch);
    *keys = (struct label_keys){.scratch = AS_ARENA_INIT};
}

size_t label_keys_measure(const struct label_keys *keys)
{
    return keys->bytes + keys->capacity * sizeof(*keys->keys);
}

/* There are few: most budgets select by the same one or two. */
static bool has(const struct label_keys *keys, const char *key)
{
    for (size_t i = 0; i < keys->count; i++) {
        if (strcmp(keys->keys[i], key) == 0)
            return true;
    }
    return false;
}

bool label_keys_add(struct label_keys *keys, const struct as_budget_fact *budget)
{
    const size_t before = keys->count;

    for (size_t i = 0; i < budget->count; i++) {
        const char *key = budget->requirements[i].key;
        if (has(keys, key))
            continue;
        keys->keys = as_xgrow(keys->keys, keys->count, &keys->capacity, sizeof(*keys->keys));
        keys->keys[keys->count++] = as_xstrdup(key);
        keys->bytes += strlen(key) + 1 + AS_ALLOC_EXTRA;
    }
    return keys->count > before;
}

const struct as_labels *label_keys_filter(struct label_keys *keys, const struct as_labels *labels)
{
    const struct as_labels *kept;
    size_t count = 0;

    if (!labels)
        return NULL;
    as_arena_reset(&keys->scratch);
    struct as_label *pairs = as_arena_alloc(&keys->scratch, labels->count, sizeof(*pairs));
    for (uint32_t i = 0; i < labels->count; i++) {
        if (has(keys, labels->items[i].name))
            pairs[count++] = labels->items[i];
    }
    if (as_labels_new_in(&keys->scratch, pairs, count, &kept) < 0)
        abort(); /* part of a set of labels is one */
    return kept;
}
