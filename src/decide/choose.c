/*
 * The choice of the instances that are removed. Each removable instance gets a rank once:
 * its class, then the strategy's numbers, then its id. Within a class it repeatedly takes the best
 * instance of the fullest zone, which then counts one less.
 */
#include <alertscaler/decide/choose.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/cluster/node_template.h>

#define KEYS     5
#define WHY_SIZE 768

enum rank_class { /* in order of removal */
                  CLASS_FAILED,
                  CLASS_NEVER_A_NODE,
                  CLASS_COMING,
                  CLASS_NOT_READY,
                  CLASS_SERVING,
                  CLASS_COUNT
};

struct ranked {
    size_t index;
    const struct as_candidate *candidate;
    enum rank_class class;
    size_t zone;
    double keys[KEYS]; /* the smallest is removed first */
};

struct zone {
    const char *name;
    size_t count;    /* instances that count */
    size_t next, to; /* the zone's part of the class, in `order` */
};

struct choosing {
    const struct as_choose_request *request;
    struct as_arena *arena;
    struct ranked *items; /* those that may be removed */
    size_t count;
    struct zone *zones; /* ascending by name */
    size_t zone_count;
};

void as_nodes_config_copy(const struct as_nodes_config *config, struct as_nodes_config *copy_out)
{
    *copy_out = *config;
    if (config->cluster)
        copy_out->cluster = as_xstrdup(config->cluster);
    if (config->select)
        copy_out->select = as_xstrdup(config->select);
    copy_out->template_ = as_node_template_config_copy(config->template_);
    copy_out->startup_taints =
        as_xcalloc(config->startup_taint_count, sizeof(*config->startup_taints));
    for (size_t i = 0; i < config->startup_taint_count; i++)
        copy_out->startup_taints[i] = as_xstrdup(config->startup_taints[i]);
}

void as_nodes_config_deinit(struct as_nodes_config *config)
{
    free(config->cluster);
    free(config->select);
    as_node_template_config_free(config->template_);
    for (size_t i = 0; i < config->startup_taint_count; i++)
        free(config->startup_taints[i]);
    free(config->startup_taints);
    *config = (struct as_nodes_config){.cluster = NULL};
}

/* Zones */

static int compare_zones(const void *a, const void *b)
{
    return strcmp(((const struct zone *)a)->name, ((const struct zone *)b)->name);
}

static struct zone *choose_find_zone(const struct choosing *choosing, const char *name)
{
    const struct zone wanted = {.name = name};
    return bsearch(&wanted, choosing->zones, choosing->zone_count, sizeof(wanted), compare_zones);
}

static bool choose_counts(const struct as_candidate *candidate)
{
    return !candidate->is_leaving && !candidate->is_failed;
}

static void count_zones(struct choosing *choosing)
{
    const struct as_choose_request *request = choosing->request;
    struct zone *zones = as_arena_alloc(choosing->arena, request->count, sizeof(*zones));
    size_t kept = 0;
    for (size_t i = 0; i < request->count; i++)
        zones[i].name = request->candidates[i].zone;
    qsort(zones, request->count, sizeof(*zones), compare_zones);
    for (size_t i = 0; i < request->count; i++)
        if (kept == 0 || strcmp(zones[i].name, zones[kept - 1].name) != 0)
            zones[kept++] = zones[i];
    choosing->zones = zones;
    choosing->zone_count = kept;
    for (size_t i = 0; i < request->count; i++)
        if (choose_counts(&request->candidates[i]))
            choose_find_zone(choosing, request->candidates[i].zone)->count++;
}

/* Ranks */

/* The larger share of allocatable that pods request, of CPU and of memory. */
static double choose_get_utilization(const struct as_candidate_node *node)
{
    double largest = 0;
    for (int i = 0; node && i < AS_RESOURCE_COUNT; i++) {
        const double part = node->requests[i] / node->allocatable[i];
        if (!(node->allocatable[i] > 0) || !(part >= 0))
            return INFINITY; /* unknown: counts as full */
        largest = part > largest ? part : largest;
    }
    return largest;
}

static bool choose_is_late(const struct as_choose_request *request,
                           const struct as_candidate *candidate)
{
    return candidate->created.set &&
           request->now.us - candidate->created.at.us >= request->ready_timeout_us;
}

static enum rank_class get_class(const struct as_choose_request *request,
                                 const struct as_candidate *candidate)
{
    if (candidate->is_failed)
        return CLASS_FAILED;
    if (request->has_nodes && !candidate->node)
        return choose_is_late(request, candidate) ? CLASS_NEVER_A_NODE : CLASS_COMING;
    if (candidate->is_pending)
        return CLASS_COMING;
    return candidate->node && !candidate->node->is_ready ? CLASS_NOT_READY : CLASS_SERVING;
}

/* An unknown age counts as the last. */
static void set_age(double keys[2], const struct as_candidate *candidate, bool newest_first)
{
    const double created = (double)candidate->created.at.us;
    keys[0] = candidate->created.set ? 0 : 1;
    if (candidate->created.set)
        keys[1] = newest_first ? -created : created;
}

static void set_keys(const struct as_choose_request *request, struct ranked *ranked)
{
    const struct as_candidate *candidate = ranked->candidate;
    const double pods = candidate->node ? (double)candidate->node->pod_count : 0;
    switch (request->strategy) {
    case AS_CHOOSE_OLDEST: set_age(ranked->keys, candidate, false); return;
    case AS_CHOOSE_NEWEST: set_age(ranked->keys, candidate, true); return;
    case AS_CHOOSE_EMPTY_FIRST: ranked->keys[0] = pods > 0 ? 1 : 0; break;
    case AS_CHOOSE_LEAST_UTILIZED:
    case AS_CHOOSE_STRATEGY_COUNT: break;
    }
    ranked->keys[1] = choose_get_utilization(candidate->node);
    ranked->keys[2] = pods;
    set_age(&ranked->keys[3], candidate, false);
}

static int choose_compare_keys(const struct ranked *left, const struct ranked *right)
{
    for (int i = 0; i < KEYS; i++)
        if (left->keys[i] != right->keys[i])
            return left->keys[i] < right->keys[i] ? -1 : 1;
    return strcmp(left->candidate->id, right->candidate->id);
}

/* Groups the members of a class by zone, the best first. */
static int choose_compare_ranked(const void *a, const void *b)
{
    const struct ranked *left = a, *right = b;
    if (left->class != right->class)
        return left->class < right->class ? -1 : 1;
    if (left->zone != right->zone)
        return left->zone < right->zone ? -1 : 1;
    return choose_compare_keys(left, right);
}

/* Who may not be removed */

/* Why the instance may not be removed; NULL: it may. */
static const char *choose_explain(const struct as_choose_request *request,
                                  const struct as_candidate *candidate, bool is_twice,
                                  char why[WHY_SIZE])
{
    const struct as_candidate_node *node = candidate->node;
    if (is_twice)
        return "the provider lists it twice";
    if (candidate->is_ambiguous)
        return "it is not clear which node it is: another node or instance says the same";
    if (candidate->is_protected)
        return "it is protected at the provider";
    if (request->spares_serving && get_class(request, candidate) == CLASS_SERVING)
        return "it serves by now";
    if (!node || (!node->keep && !node->blocking_pod))
        return NULL;
    snprintf(why, WHY_SIZE, "node %s: %s%s", node->name, node->keep ? "" : "pod ",
             node->keep ? node->keep : node->blocking_pod);
    return why;
}

static int compare_ids(const void *a, const void *b)
{
    const struct ranked *left = a, *right = b;
    int order = strcmp(left->candidate->id, right->candidate->id);
    return order ? order : (left->index > right->index) - (left->index < right->index);
}

static bool has_id_of(const struct ranked *items, size_t count, size_t i, size_t other)
{
    return other < count && strcmp(items[i].candidate->id, items[other].candidate->id) == 0;
}

/* Separates removable instances from the others. */
static void sift(struct choosing *choosing, struct as_choice *choice)
{
    const struct as_choose_request *request = choosing->request;
    struct ranked *all = as_arena_alloc(choosing->arena, request->count, sizeof(*all));
    char text[WHY_SIZE];
    size_t count = 0;
    for (size_t i = 0; i < request->count; i++)
        if (!request->candidates[i].is_leaving)
            all[count++] = (struct ranked){.index = i, .candidate = &request->candidates[i]};
    qsort(all, count, sizeof(*all), compare_ids);
    choosing->items = as_arena_alloc(choosing->arena, count, sizeof(*all));
    choice->passed = as_arena_alloc(choosing->arena, count, sizeof(*choice->passed));
    for (size_t i = 0; i < count; i++) {
        struct ranked item = all[i];
        bool is_twice = has_id_of(all, count, i, i + 1) || has_id_of(all, count, i, i - 1);
        const char *why = choose_explain(request, item.candidate, is_twice, text);
        if (why) {
            choice->passed[choice->passed_count++] = (struct as_passed_over){
                .candidate = item.index, .why = as_arena_strdup(choosing->arena, why)};
            continue;
        }
        item.class = get_class(request, item.candidate);
        item.zone = (size_t)(choose_find_zone(choosing, item.candidate->zone) - choosing->zones);
        set_keys(request, &item);
        choosing->items[choosing->count++] = item;
    }
    qsort(choosing->items, choosing->count, sizeof(*choosing->items), choose_compare_ranked);
}

/* The choice */

/* The fullest zone that has an instance left; NULL: none. */
static struct zone *find_fullest(const struct choosing *choosing)
{
    struct zone *best = NULL;
    for (size_t i = 0; i < choosing->zone_count; i++) {
        struct zone *zone = &choosing->zones[i];
        if (zone->next == zone->to)
            continue;
        if (!best || zone->count > best->count ||
            (zone->count == best->count &&
             choose_compare_keys(&choosing->items[zone->next], &choosing->items[best->next]) < 0))
            best = zone;
    }
    return best;
}

static void take_class(struct choosing *choosing, enum rank_class class, size_t *at, size_t most,
                       struct as_choice *choice)
{
    struct zone *zone;
    for (size_t i = 0; i < choosing->zone_count; i++) {
        zone = &choosing->zones[i];
        zone->next = *at;
        while (*at < choosing->count && choosing->items[*at].class == class &&
               choosing->items[*at].zone == i)
            ++*at;
        zone->to = *at;
    }
    while (choice->chosen_count < most && (zone = find_fullest(choosing)) != NULL) {
        const struct ranked *item = &choosing->items[zone->next++];
        choice->chosen[choice->chosen_count++] = item->index;
        if (choose_counts(item->candidate))
            zone->count--;
    }
}

static void explain_shortfall(const struct choosing *choosing, size_t most,
                              struct as_choice *choice)
{
    const struct as_choose_request *request = choosing->request;
    char text[WHY_SIZE];
    if (choice->chosen_count >= (size_t)request->wanted)
        return;
    if (choice->chosen_count == most)
        snprintf(text, sizeof(text), "%zu of %d may leave: the group has %d, and its minimum is %d",
                 most, request->wanted, request->size, request->min);
    else if (choice->passed_count > 0)
        snprintf(text, sizeof(text), "%zu of %d can leave; %zu may not: %s: %s",
                 choice->chosen_count, request->wanted, choice->passed_count,
                 request->candidates[choice->passed[0].candidate].id, choice->passed[0].why);
    else
        snprintf(text, sizeof(text), "%zu of %d can leave: there are no more instances",
                 choice->chosen_count, request->wanted);
    choice->shortfall = as_arena_strdup(choosing->arena, text);
}

void as_choose(const struct as_choose_request *request, struct as_arena *arena,
               struct as_choice *choice_out)
{
    struct choosing choosing = {.request = request, .arena = arena};
    struct as_choice choice = {.chosen_count = 0};
    size_t most = request->wanted > 0 ? (size_t)request->wanted : 0, at = 0;
    const int64_t above = (int64_t)request->size - request->min;
    if (above < (int64_t)most)
        most = above > 0 ? (size_t)above : 0;
    count_zones(&choosing);
    sift(&choosing, &choice);
    choice.chosen = as_arena_alloc(arena, choosing.count, sizeof(*choice.chosen));
    for (int class = 0; class < CLASS_COUNT; class ++)
        take_class(&choosing, (enum rank_class) class, &at, most, &choice);
    if (request->wanted > 0)
        explain_shortfall(&choosing, most, &choice);
    *choice_out = choice;
}
