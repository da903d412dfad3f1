/*
 * The parts of a survey, once it is known which shapes and nodes it has: see survey_cut.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "survey_measure.h"
#include "survey_work.h"

#define NO_ROOM_US (5 * AS_US_PER_MIN) /* so long it matters that a node's pods had no room */

/* Nodes */

static void list_pods(struct as_survey_work *work, const struct survey_node *node,
                      struct as_survey_node *out)
{
    struct as_survey_pods *pods = as_arena_alloc(work->arena, node->load_count, sizeof(*pods));

    for (size_t i = 0; i < node->load_count; i++)
        pods[i] = (struct as_survey_pods){node->load[i].shape->number, node->load[i].count};
    out->pods = pods;
    out->pod_count = node->load_count;
}

static void list_guests(struct as_survey_work *work, const struct survey_node *node,
                        struct as_survey_node *out)
{
    struct as_survey_pods *guests =
        as_arena_alloc(work->arena, node->room.guest_count, sizeof(*guests));

    for (size_t i = 0; i < node->room.guest_count; i++) {
        const struct survey_shape *guest = (const struct survey_shape *)node->room.guests[i];

        if (guest->is_in_conflict)
            guests[out->guest_count++] = (struct as_survey_pods){guest->number, 1};
    }
    out->guests = guests;
}

static void list_node(struct as_survey_work *work, uint32_t index, struct as_survey_node *out)
{
    const struct as_node_fact *fact = &work->cluster->nodes[index];
    const struct survey_node *node = &work->nodes[index];

    *out = (struct as_survey_node){
        .group = node->group,
        .node = node->shape,
        .is_ready = node->is_ready,
        .is_candidate = node->is_candidate,
        .stay = node->is_candidate ? AS_STAY_LEAVING : node->stay,
    };
    out->node.allocatable = (struct as_resources){{0}};
    if (node->is_receiver) {
        out->left = node->room.left;
        out->expendable = node->room.expendable;
        list_guests(work, node, out);
    }
    if (node->is_candidate) {
        out->node.allocatable = fact->allocatable;
        out->utilization = node->utilization;
        list_pods(work, node, out);
    }
    survey_spend(work, 4 + node->load_count + node->room.guest_count);
}

bool survey_list_nodes(struct as_survey_work *work)
{
    const size_t count = work->cluster->node_count;

    if (!work->shown_nodes) {
        work->shown_nodes =
            as_arena_alloc(work->arena, work->shown_count, sizeof(*work->shown_nodes));
        work->survey.nodes = work->shown_nodes;
    }
    for (; work->slice > 0 && work->at < count; work->at++)
        if (work->is_shown[work->at])
            list_node(work, (uint32_t)work->at, &work->shown_nodes[work->survey.node_count++]);
    return work->at == count;
}

/* Shapes and budgets */

static const char *name_budget(struct as_survey_work *work, const struct as_budget_fact *budget)
{
    const size_t size = strlen(budget->namespace_) + strlen(budget->name) + 2;
    char *name = as_arena_alloc_raw(work->arena, size);

    snprintf(name, size, "%s/%s", budget->namespace_, budget->name);
    return name;
}

/* numbers_out: by index of the sorted budgets. */
static void show_budgets(struct as_survey_work *work, uint32_t *numbers_out)
{
    const size_t count = work->cluster->budget_count;
    bool *is_used = as_arena_alloc(work->arena, count, sizeof(*is_used));
    struct as_survey_budget *budgets = as_arena_alloc(work->arena, count, sizeof(*budgets));

    for (uint32_t i = 0; i < work->number_count; i++) {
        const struct as_survey_shape *shape = &work->numbered[i]->shape;

        for (size_t k = 0; k < shape->budget_count; k++)
            is_used[shape->budgets[k]] = true;
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_used[i])
            continue;
        numbers_out[i] = (uint32_t)work->survey.budget_count;
        budgets[work->survey.budget_count++] = (struct as_survey_budget){
            .name = name_budget(work, work->shapes.budgets[i]),
            .allowed = work->shapes.budgets[i]->allowed,
        };
    }
    work->survey.budgets = budgets;
}

static void show_shapes(struct as_survey_work *work)
{
    uint32_t *numbers = as_arena_alloc(work->arena, work->cluster->budget_count, sizeof(*numbers));
    struct as_survey_shape *shapes =
        as_arena_alloc(work->arena, work->number_count, sizeof(*shapes));

    show_budgets(work, numbers);
    for (uint32_t i = 0; i < work->number_count; i++) {
        shapes[i] = work->numbered[i]->shape;
        uint32_t *budgets = as_arena_alloc(work->arena, shapes[i].budget_count, sizeof(*budgets));

        for (size_t k = 0; k < shapes[i].budget_count; k++)
            budgets[k] = numbers[shapes[i].budgets[k]];
        shapes[i].budgets = budgets;
        shapes[i].waiting = work->numbered[i]->waiting;
    }
    work->survey.shapes = shapes;
    work->survey.shape_count = work->number_count;
}

/* Groups */

/* `balance` compares all labels that differ between kinds of groups. */
static const struct as_labels *cut_group_labels(struct as_survey_work *work,
                                                const struct as_labels *labels)
{
    const struct as_pool_config *config = work->request->config;
    const struct as_labels *read = survey_cut_labels(work, labels), *cut = NULL;

    if (!config->balance || !labels)
        return read;
    struct as_label *pairs = as_arena_alloc(work->arena, labels->count, sizeof(*pairs));
    size_t count = 0;
    for (uint32_t i = 0; i < labels->count; i++)
        if (as_labels_find(read, labels->items[i].name) ||
            as_pool_label_counts(labels->items[i].name, (const char *const *)config->ignore_labels,
                                 config->ignore_label_count))
            pairs[count++] = labels->items[i];
    if (as_labels_new_in(work->arena, pairs, count, &cut) != 0)
        abort(); /* a subset of labels has no name twice, and is no larger */
    return cut;
}

/* History */

static bool is_candidate(const struct as_survey_work *work, const char *name)
{
    size_t from = 0, to = work->survey.node_count;

    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        const int order = strcmp(work->shown_nodes[middle].node.name, name);

        if (order == 0)
            return work->shown_nodes[middle].is_candidate;
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return false;
}

static void show_unneeded(struct as_survey_work *work)
{
    const struct as_survey_request *request = work->request;
    struct as_unneeded *unneeded =
        as_arena_alloc(work->arena, request->unneeded_count, sizeof(*unneeded));

    for (size_t i = 0; i < request->unneeded_count; i++) {
        struct as_unneeded known = request->unneeded[i];
        const bool is_late =
            known.no_room.set && request->now.us - known.no_room.at.us >= NO_ROOM_US;

        if (is_late)
            known.no_room.set = false;
        if (!is_candidate(work, known.node)) {
            known.since.set = false;
            const size_t bytes = SURVEY_UNNEEDED_BYTES + survey_measure_text(known.node);
            if (!known.no_room.set || bytes > work->bytes)
                continue;
            work->bytes -= bytes;
        }
        if (known.since.set || known.no_room.set)
            unneeded[work->survey.unneeded_count++] = known;
    }
    work->survey.unneeded = unneeded;
}

bool survey_show_rest(struct as_survey_work *work)
{
    const struct as_survey_request *request = work->request;

    show_shapes(work);
    for (size_t i = 0; i < request->member_count; i++) {
        struct as_node_shape *shape = &work->shown_groups[i].template_.shape;

        work->templates[i] = work->shown_groups[i].template_;
        if (work->shown_groups[i].template_.source != AS_NODE_TEMPLATE_NONE)
            shape->labels = cut_group_labels(work, shape->labels);
    }
    show_unneeded(work);
    work->survey.asked = request->asked;
    work->survey.asked_count =
        request->asked_count < AS_ASKED_MAX ? request->asked_count : AS_ASKED_MAX;
    return true;
}
