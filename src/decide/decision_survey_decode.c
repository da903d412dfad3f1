/*
 * Reads surveys from decision documents: the pool's configuration, groups, and what is remembered.
 * decision_survey_parts.c reads nodes and shapes. Strict: what a plan would trip over is an error
 * with its place.
 */
#include "decision_survey.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* target.pool */

static void read_range(struct as_reader *pool, const char *name, double unit,
                       struct as_pool_range *range)
{
    struct as_reader reader;
    double min = 0, max = INFINITY;

    as_read_object(&reader, pool, name);
    as_read_positive(&reader, "min", &min);
    as_read_positive(&reader, "max", &max);
    if (min > max)
        as_read_fail(&reader, "min", "above max");
    if (min * unit > (double)AS_RES_AMOUNT_MAX)
        as_read_fail(&reader, "min", "too large");
    as_read_end(&reader);
    if (as_read_result(&reader) != 0)
        return;
    range->min = llround(min * unit);
    if (max * unit < (double)AS_RES_AMOUNT_MAX)
        range->max = llround(max * unit);
}

static void read_choice(struct as_reader *reader, struct as_arena *arena,
                        struct as_pool_config *pool)
{
    size_t count;
    const char *const *words = decision_read_texts(reader, "choose", arena, &count);
    unsigned seen = 0;

    for (size_t i = 0; i < count; i++) {
        enum as_pool_filter filter = 0;

        while (filter < AS_POOL_FILTER_COUNT &&
               strcmp(as_pool_filter_get_word(filter), words[i]) != 0)
            filter++;
        if (filter == AS_POOL_FILTER_COUNT || (seen & (1U << filter))) {
            as_read_fail(reader, "choose", "\"%s\" is no filter, or is there twice", words[i]);
            return;
        }
        seen |= 1U << filter;
        pool->choose[pool->choose_count++] = filter;
    }
}

static void read_at_once(struct as_reader *reader, struct as_pool_config *pool)
{
    struct as_reader at_once;
    int32_t empty = (int32_t)pool->at_once_empty, drain = (int32_t)pool->at_once_drain;

    as_read_object(&at_once, reader, "at_once");
    as_read_i32(&at_once, "empty", 0, &empty);
    as_read_i32(&at_once, "drain", 0, &drain);
    as_read_end(&at_once);
    pool->at_once_empty = (uint32_t)empty;
    pool->at_once_drain = (uint32_t)drain;
}

void decision_read_pool(struct as_reader *target, struct as_arena *arena,
                        struct as_decide_input *input)
{
    struct as_reader reader, price;
    struct as_pool_config *pool;

    as_read_object(&reader, target, "pool");
    if (!reader.object)
        return;
    pool = as_arena_alloc(arena, 1, sizeof(*pool));
    *pool = (struct as_pool_config){
        .cpu.max = AS_POOL_NO_CAP,
        .memory.max = AS_POOL_NO_CAP,
        .at_once_empty = 10,
        .at_once_drain = 1,
        .expendable_below = -10,
    };
    read_at_once(&reader, pool);
    as_read_bool(&reader, "balance", &pool->balance);
    read_choice(&reader, arena, pool);
    pool->ignore_labels =
        (char **)decision_read_texts(&reader, "ignore_labels", arena, &pool->ignore_label_count);
    read_range(&reader, "cpu", 1000, &pool->cpu);
    read_range(&reader, "memory", 1, &pool->memory);
    as_read_object(&price, &reader, "pod_price");
    as_read_positive(&price, "cpu", &pool->cpu_price);
    as_read_positive(&price, "memory", &pool->memory_price);
    as_read_end(&price);
    as_read_end(&reader);
    input->pool = pool;
}

/* Groups */

static void read_template(struct as_reader *parent, struct survey_reader *survey,
                          struct as_survey_group *group)
{
    struct as_node_template *template_ = &group->template_;
    struct as_reader reader;

    as_read_object(&reader, parent, "template");
    if (!reader.object)
        return;
    template_->source = (enum as_node_template_source)as_read_enum(
        &reader, "source", decision_template_sources, AS_NODE_TEMPLATE_NONE);
    as_read_require(&reader, "source");
    decision_read_text(&reader, "node", survey->arena, &template_->node);
    group->template_digest = decision_read_hex(&reader, "digest");
    decision_read_amounts(&reader, "allocatable", survey, &template_->allocatable);
    decision_read_amounts(&reader, "capacity", survey, &template_->capacity);
    decision_read_amounts(&reader, "free", survey, &template_->shape.allocatable);
    template_->shape.labels = decision_read_labels(&reader, "labels", survey->arena);
    template_->shape.taints =
        decision_read_taints(&reader, survey->arena, &template_->shape.taint_count);
    if (survey->has_v3)
        template_->ports = decision_read_ports(&reader, survey->arena, &template_->port_count);
    as_read_end(&reader);
}

static void read_unneeded_config(struct as_reader *parent, struct as_unneeded_config *unneeded)
{
    struct as_reader reader;

    *unneeded = (struct as_unneeded_config){.for_us = 10 * AS_US_PER_MIN,
                                            .unready_for_us = 20 * AS_US_PER_MIN};
    as_read_object(&reader, parent, "unneeded");
    as_read_seconds(&reader, "for", &unneeded->for_us);
    if (tree_is(tree_find(reader.object, "unready_for"), TREE_NULL)) {
        (void)as_read_any(&reader, "unready_for");
        unneeded->unready_for_us = AS_UNREADY_NEVER;
    } else {
        as_read_seconds(&reader, "unready_for", &unneeded->unready_for_us);
    }
    as_read_end(&reader);
}

static void read_group_nodes(struct as_reader *parent, struct as_survey_group *group)
{
    struct as_reader reader;

    as_read_object(&reader, parent, "nodes");
    as_read_i64(&reader, "count", 0, AS_SIZE_MAX, &group->nodes);
    as_read_i64(&reader, "cpu", -AS_RES_AMOUNT_MAX, AS_RES_AMOUNT_MAX, &group->cpu);
    as_read_i64(&reader, "memory", -AS_RES_AMOUNT_MAX, AS_RES_AMOUNT_MAX, &group->memory);
    as_read_end(&reader);
}

static void read_size(struct as_reader *reader, struct as_survey_group *group)
{
    group->size = -1;
    if (as_read_has(reader, "size"))
        as_read_i32(reader, "size", 0, &group->size);
    else
        (void)as_read_any(reader, "size");
    as_read_i32(reader, "min", 0, &group->min);
    as_read_require(reader, "max");
    as_read_i32(reader, "max", 0, &group->max);
    as_read_i32(reader, "coming", 0, &group->coming);
    as_read_i32(reader, "overdue", 0, &group->overdue);
    if (group->overdue > 0 && group->overdue > (int64_t)group->size - group->min)
        as_read_fail(reader, "overdue", "above size - min");
    as_read_i32(reader, "removable", 0, &group->removable);
    if (group->removable > group->overdue)
        as_read_fail(reader, "removable", "above overdue");
    as_read_i32(reader, "last_size", 0, &group->last_size);
}

static void read_closed(struct as_reader *reader, struct as_survey_group *group)
{
    const char *word = NULL;

    group->closed = AS_REASON_SCALED;
    as_read_text(reader, "closed", &word);
    if (word && !as_reason_find(word, &group->closed))
        as_read_fail(reader, "closed", "\"%s\" is no reason code", word);
}

static void read_group(struct as_reader *reader, struct survey_reader *survey,
                       struct as_survey_group *group)
{
    group->is_member = true;
    as_read_require(reader, "name");
    decision_read_text(reader, "name", survey->arena, &group->name);
    as_read_bool(reader, "member", &group->is_member);
    read_size(reader, group);
    if (survey->has_v3) {
        as_read_i32(reader, "in_doubt", 0, &group->in_doubt);
        as_read_i32(reader, "unregistered", 0, &group->unregistered);
        as_read_time(reader, "open_at", &group->open_at);
        as_read_i32(reader, "surplus", 0, &group->surplus);
        as_read_time(reader, "surplus_since", &group->surplus_since);
    }
    read_closed(reader, group);
    decision_read_text(reader, "message", survey->arena, &group->message);
    read_group_nodes(reader, group);
    group->has_price = as_read_has(reader, "price");
    as_read_positive(reader, "price", &group->price);
    group->has_priority = as_read_has(reader, "priority");
    as_read_i32(reader, "priority", INT32_MIN, &group->priority);
    read_template(reader, survey, group);
    read_unneeded_config(reader, &group->unneeded);
    as_read_end(reader);
}

void decision_read_groups(struct as_reader *observed, struct survey_reader *survey)
{
    size_t count;
    const struct tree_value *at = as_read_list(observed, "groups", &count);

    if (count > DECISION_GROUPS_MAX) {
        as_read_fail(observed, "groups", "more than %d", DECISION_GROUPS_MAX);
        return;
    }
    struct as_survey_group *groups = as_arena_alloc(survey->arena, count, sizeof(*groups));
    for (size_t i = 0; i < count; i++, at = at->next) {
        struct as_reader item;

        as_read_item(&item, observed, "groups", at, i);
        read_group(&item, survey, &groups[i]);
    }
    survey->survey->groups = groups;
    survey->survey->group_count = count;
}

/* observed */

static void read_resources(struct as_reader *observed, struct survey_reader *reader)
{
    struct as_res_names *names = &reader->survey->resources;
    size_t count;
    const char *const *texts = decision_read_texts(observed, "resources", reader->arena, &count);

    names->count = AS_RES_NAMED;
    if (count > AS_RES_MAX - AS_RES_NAMED) {
        as_read_fail(observed, "resources", "more than %d", AS_RES_MAX - AS_RES_NAMED);
        return;
    }
    for (size_t i = 0; i < count; i++)
        names->name[names->count++] = texts[i];
}

static void read_count(struct as_reader *reader, const char *name, uint64_t *count_out)
{
    int64_t count = 0;

    as_read_i64(reader, name, 0, AS_RES_AMOUNT_MAX, &count);
    *count_out = (uint64_t)count;
}

static void read_budgets(struct as_reader *observed, struct survey_reader *reader)
{
    size_t count;
    const struct tree_value *at = as_read_list(observed, "budgets", &count);
    struct as_survey_budget *budgets = as_arena_alloc(reader->arena, count, sizeof(*budgets));

    for (size_t i = 0; i < count; i++, at = at->next) {
        struct as_reader item;

        as_read_item(&item, observed, "budgets", at, i);
        as_read_require(&item, "name");
        decision_read_text(&item, "name", reader->arena, &budgets[i].name);
        as_read_i32(&item, "allowed", INT32_MIN, &budgets[i].allowed);
        as_read_end(&item);
    }
    reader->survey->budgets = budgets;
    reader->survey->budget_count = count;
}

static void read_kept(struct as_reader *observed, struct as_survey *survey)
{
    struct as_reader reader;

    as_read_object(&reader, observed, "kept");
    for (enum as_stay i = 0; i < AS_STAY_COUNT; i++)
        read_count(&reader, as_stay_get_word(i), &survey->kept[i]);
    as_read_end(&reader);
}

static void read_leaving(struct as_reader *observed, struct as_survey *survey)
{
    struct as_reader reader;

    as_read_object(&reader, observed, "leaving");
    read_count(&reader, "drained", &survey->leaving_drained);
    read_count(&reader, "empty", &survey->leaving_empty);
    as_read_end(&reader);
}

static void read_plan_terms(struct as_reader *observed, struct as_arena *arena,
                            struct as_decide_input *input)
{
    static const char *const names[] = {"at", "fit", "max", "min", "take"};
    struct as_pool_plan_terms *terms = as_arena_alloc(arena, 1, sizeof(*terms));
    as_maybe_time at = {.set = false};
    struct as_reader reader;

    as_read_object(&reader, observed, "plan");
    if (!reader.object)
        return;
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++)
        as_read_require(&reader, names[i]);
    as_read_time(&reader, "at", &at);
    as_read_bool(&reader, "fit", &terms->with_fit);
    as_read_i32(&reader, "max", 0, &terms->max);
    as_read_i32(&reader, "min", 0, &terms->min);
    as_read_bool(&reader, "take", &terms->with_take);
    as_read_end(&reader);
    terms->now = at.at;
    input->plan_terms = terms;
}

void decision_read_survey(struct as_reader *observed, struct as_arena *arena,
                          struct as_decide_input *input)
{
    if (!as_read_has(observed, "groups") && !as_read_has(observed, "pool_error"))
        return;
    struct as_survey *survey = as_arena_alloc(arena, 1, sizeof(*survey));
    struct survey_reader reader = {.arena = arena, .survey = survey, .has_v3 = input->version >= 3};

    input->survey = survey;
    decision_read_text(observed, "pool_error", arena, &survey->error);
    if (survey->error)
        return;
    read_resources(observed, &reader);
    read_budgets(observed, &reader);
    decision_read_shapes(observed, &reader);
    decision_read_groups(observed, &reader);
    decision_read_nodes(observed, &reader);
    survey->pending = decision_read_pods(observed, "pending", &reader, &survey->pending_count);
    read_count(observed, "pending_pods", &survey->pending_pods);
    read_count(observed, "cluster_nodes", &survey->cluster_nodes);
    read_kept(observed, survey);
    read_leaving(observed, survey);
    if (input->version >= 3)
        read_plan_terms(observed, arena, input);
}

/* history */

static int compare_unneeded(const void *a, const void *b)
{
    return strcmp(((const struct as_unneeded *)a)->node, ((const struct as_unneeded *)b)->node);
}

static void read_unneeded(struct as_reader *history, struct survey_reader *reader)
{
    size_t count;
    const struct tree_value *at = as_read_list(history, "unneeded", &count);
    struct as_unneeded *unneeded = as_arena_alloc(reader->arena, count, sizeof(*unneeded));

    for (size_t i = 0; i < count; i++, at = at->next) {
        struct as_reader item;

        unneeded[i].node = "";
        as_read_item(&item, history, "unneeded", at, i);
        as_read_require(&item, "node");
        decision_read_text(&item, "node", reader->arena, &unneeded[i].node);
        as_read_time(&item, "since", &unneeded[i].since);
        as_read_time(&item, "no_room", &unneeded[i].no_room);
        as_read_time(&item, "seen", &unneeded[i].seen);
        as_read_end(&item);
    }
    if (count > 1)
        qsort(unneeded, count, sizeof(*unneeded), compare_unneeded);
    for (size_t i = 1; i < count; i++)
        if (strcmp(unneeded[i - 1].node, unneeded[i].node) == 0)
            as_read_fail(history, "unneeded", "\"%s\" is there twice", unneeded[i].node);
    reader->survey->unneeded = unneeded;
    reader->survey->unneeded_count = count;
}

static void read_asked(struct as_reader *history, struct survey_reader *reader)
{
    size_t count;
    const struct tree_value *at = as_read_list(history, "asked", &count);

    if (count > AS_ASKED_MAX) {
        as_read_fail(history, "asked", "more than %d", AS_ASKED_MAX);
        return;
    }
    struct as_asked *asked = as_arena_alloc(reader->arena, count, sizeof(*asked));
    for (size_t i = 0; i < count; i++, at = at->next) {
        struct as_reader item;
        as_maybe_time when = {.set = false};

        as_read_item(&item, history, "asked", at, i);
        as_read_require(&item, "at");
        as_read_require(&item, "group");
        as_read_require(&item, "shape");
        as_read_require(&item, "template");
        as_read_time(&item, "at", &when);
        decision_read_text(&item, "group", reader->arena, &asked[i].group);
        as_read_bool(&item, "in_vain", &asked[i].is_in_vain);
        asked[i].shape = decision_read_hex(&item, "shape");
        asked[i].template_ = decision_read_hex(&item, "template");
        asked[i].at = when.at;
        as_read_end(&item);
    }
    reader->survey->asked = asked;
    reader->survey->asked_count = count;
}

void decision_read_memory(struct as_reader *history, struct survey_reader *reader)
{
    read_unneeded(history, reader);
    read_asked(history, reader);
    as_read_time(history, "drain_failed", &reader->survey->drain_failed);
}

void decision_read_seed(struct as_reader *root, struct as_survey *survey)
{
    survey->seed = decision_read_hex(root, "seed");
}
