/*
 * `after`: from names to indices. Cycles are errors.
 */
#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>

#include "resolve.h"

#define CYCLE_TEXT_MAX 600

static void resolve_names(struct resolver *resolver, const struct raw_target *raw,
                          struct as_target_config *config)
{
    const struct as_yaml_node *list = raw->node ? as_yaml_find(raw->node, "after") : NULL;
    if (!list || list->kind != AS_YAML_LIST || list->count == 0)
        return;
    config->after = as_xcalloc(list->count, sizeof(*config->after));
    resolver->loader.tree = raw->tree;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct as_yaml_node *item = list->items[i];
        if (item->kind != AS_YAML_SCALAR)
            continue;
        const struct raw_target *other = find_target(resolver, item->text);
        if (other)
            config->after[config->after_count++] = other->number;
        else
            report_unknown_target(resolver, item);
    }
}

/* Kahn's algorithm: counts[i] is the number of targets that wait for i. Targets that nobody waits
 * for are removed one by one. The rest is on a cycle, or waits for one. */
static void reduce(const struct as_ruleset *ruleset, uint32_t *counts)
{
    size_t count = ruleset->target_count, ready_count = 0;
    uint32_t *ready = as_xcalloc(count + 1, sizeof(*ready));
    for (uint32_t i = 0; i < count; i++) {
        if (counts[i] == 0)
            ready[ready_count++] = i;
    }
    while (ready_count > 0) {
        const struct as_target_config *config = &ruleset->targets[ready[--ready_count]];
        for (size_t i = 0; i < config->after_count; i++) {
            if (--counts[config->after[i]] == 0)
                ready[ready_count++] = config->after[i];
        }
    }
    free(ready);
}

/* The first of a target's `after` that is not removed. */
static uint32_t find_next(const struct as_ruleset *ruleset, const uint32_t *counts, uint32_t at)
{
    const struct as_target_config *config = &ruleset->targets[at];
    for (size_t i = 0; i < config->after_count; i++) {
        if (counts[config->after[i]] > 0)
            return config->after[i];
    }
    return UINT32_MAX;
}

static void report_cycle(struct resolver *resolver, uint32_t *counts, uint32_t start)
{
    const struct as_ruleset *ruleset = resolver->ruleset;
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(CYCLE_TEXT_MAX);
    uint32_t at = start;
    do {
        as_buf_printf(&text, "`%s` after ", ruleset->targets[at].name);
        uint32_t next = find_next(ruleset, counts, at);
        counts[at] = 0; /* reported */
        at = next;
    } while (at != start && at != UINT32_MAX);
    const struct raw_target *raw = resolver->targets[start];
    resolver->loader.tree = raw->tree;
    loader_report(&resolver->loader, schema_find_key(raw->node, "after"),
                  "this goes round in a circle: %s`%s`", text.size > 0 ? text.data : "",
                  ruleset->targets[start].name);
}

/* Follows `after` from `start` until a target comes twice: it is on a cycle. */
static void find_cycle(struct resolver *resolver, uint32_t *counts, uint32_t start, uint32_t *seen)
{
    uint32_t at = start;
    while (at != UINT32_MAX && seen[at] == 0) {
        seen[at] = start + 1;
        at = find_next(resolver->ruleset, counts, at);
    }
    if (at != UINT32_MAX && seen[at] == start + 1)
        report_cycle(resolver, counts, at);
}

void resolve_after(struct resolver *resolver)
{
    const struct as_ruleset *ruleset = resolver->ruleset;
    size_t count = ruleset->target_count;
    uint32_t *counts = as_xcalloc(count + 1, sizeof(*counts));
    uint32_t *seen = as_xcalloc(count + 1, sizeof(*seen));
    for (size_t i = 0; i < count; i++)
        resolve_names(resolver, resolver->targets[i], &ruleset->targets[i]);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < ruleset->targets[i].after_count; j++)
            counts[ruleset->targets[i].after[j]]++;
    }
    reduce(ruleset, counts);
    for (uint32_t i = 0; i < count; i++) {
        if (counts[i] > 0 && seen[i] == 0)
            find_cycle(resolver, counts, i, seen);
    }
    free(counts);
    free(seen);
}
