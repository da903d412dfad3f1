/*
 * Finds two ways that undo each other: one scales down until the value is X, the other scales up
 * from below X, on the same target by the same source.
 */
#include "resolve.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>

/* A rule with steps by a value. */
struct way {
    const struct raw_rule *rule;
    const struct as_rule *resolved;
    const char *source;           /* its text; its kind counts too */
    const struct as_step *lowest; /* a way up: its lowest step; NULL: none */
};

static struct way make_way(const struct raw_rule *raw, const struct as_rule *rule)
{
    const struct as_source *source = &rule->source;
    struct way way = {.rule = raw, .resolved = rule};
    way.source =
        source->kind == AS_SOURCE_QUERY ? as_template_get_text(source->query) : source->name;
    for (size_t i = 0; rule->action.kind == AS_ACTION_SCALE_UP && i < rule->action.step_count;
         i++) {
        const struct as_step *step = &rule->action.steps[i];
        if (step->is_above && (!way.lowest || step->bound < way.lowest->bound))
            way.lowest = step;
    }
    return way;
}

/* By target and source; ways up first, the lowest step first of all. */
static int compare_ways(const void *left, const void *right)
{
    const struct way *a = left, *b = right;
    if (a->resolved->target != b->resolved->target)
        return a->resolved->target < b->resolved->target ? -1 : 1;
    if (a->resolved->source.kind != b->resolved->source.kind)
        return a->resolved->source.kind < b->resolved->source.kind ? -1 : 1;
    const int status = strcmp(a->source, b->source);
    if (status != 0)
        return status;
    if (!a->lowest != !b->lowest)
        return a->lowest ? -1 : 1;
    if (a->lowest && a->lowest->bound != b->lowest->bound)
        return a->lowest->bound < b->lowest->bound ? -1 : 1;
    return (a->resolved > b->resolved) - (a->resolved < b->resolved); /* in file order */
}

static bool shares_value(const struct way *a, const struct way *b)
{
    return a->resolved->target == b->resolved->target &&
           a->resolved->source.kind == b->resolved->source.kind &&
           strcmp(a->source, b->source) == 0;
}

static void check_way(struct resolver *resolver, const struct way *up, const struct way *down)
{
    const struct as_action *action = &down->resolved->action;
    const struct as_yaml_node *body = as_yaml_find(down->rule->node, "scale_down");
    const struct as_yaml_node *steps = as_yaml_find(body, "steps");
    char bound[AS_NUMBER_SIZE];
    as_number_print_double(up->lowest->bound, bound);
    for (size_t i = 0; i < action->step_count; i++) {
        const struct as_yaml_node *to = as_yaml_find(steps->items[i], "to");
        if (!to || !(action->steps[i].to > up->lowest->bound))
            continue;
        resolver->loader.tree = down->rule->tree;
        loader_report(&resolver->loader, to,
                      "the size would swing: rule `%s` at %s:%u scales target `%s` up again above "
                      "%s, by the same value",
                      up->rule->name, as_yaml_get_file(up->rule->tree), up->rule->node->place.line,
                      down->rule->target, bound);
    }
}

void check_swings(struct resolver *resolver)
{
    AS_CLEANUP(as_free_p) struct way *ways = as_xcalloc(resolver->rule_count + 1, sizeof(*ways));
    size_t count = 0;
    for (size_t i = 0; i < resolver->rule_count; i++) {
        const struct raw_rule *raw = resolver->rules[i];
        const struct as_rule *rule = &resolver->ruleset->rules[i];
        const bool has_source = rule->source.name || rule->source.query;
        if (raw->enabled && raw->name && raw->target && find_target(resolver, raw->target) &&
            has_source && rule->action.step_count > 0)
            ways[count++] = make_way(raw, rule);
    }
    qsort(ways, count, sizeof(*ways), compare_ways);
    const struct way *up = NULL; /* the lowest way up by this value */
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || !shares_value(&ways[i - 1], &ways[i]))
            up = ways[i].lowest ? &ways[i] : NULL;
        if (up && ways[i].resolved->action.kind == AS_ACTION_SCALE_DOWN)
            check_way(resolver, up, &ways[i]);
    }
}
