/*
 * Makes the ordered events of a test.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/str.h>

#include "rule_tests_private.h"

struct making {
    struct as_arena *arena;
    struct as_rule_test *test;
};

static struct as_rule_test_event *add(struct making *making, const struct as_yaml_node *node,
                                      int64_t at_us, enum as_rule_test_event_kind kind)
{
    struct as_rule_test *test = making->test;
    struct as_rule_test_event *event = &test->events[test->event_count];
    *event = (struct as_rule_test_event){
        .at_us = at_us,
        .kind = kind,
        .order = (uint32_t)test->event_count++,
        .line = node->place.line,
        .replicas = -1,
        .alert = {.starts_us = -1},
    };
    return event;
}

static as_maybe_time before(const struct making *making, int64_t at_us, int64_t age_us)
{
    return (as_maybe_time){true, {as_time_add(making->test->start.us, at_us - age_us)}};
}

static void add_pods(struct making *making, const struct as_yaml_node *node, int64_t at_us,
                     const char *target, const struct raw_state *state)
{
    static const enum as_pod_phase phases[] = {AS_POD_PENDING, AS_POD_RUNNING, AS_POD_SUCCEEDED,
                                               AS_POD_FAILED, AS_POD_UNKNOWN};
    static const enum as_tristate words[] = {AS_FALSE, AS_TRUE, AS_UNKNOWN};
    struct as_rule_test_event *event = add(making, node, at_us, AS_RULE_TEST_PODS);
    struct as_pod_seen *pods = as_arena_alloc(making->arena, state->pod_count, sizeof(*pods));
    for (size_t i = 0; i < state->pod_count; i++) {
        const struct raw_pod *raw = &state->pods[i];
        const int64_t ready_for = raw->ready_for_us < 0 ? raw->age_us : raw->ready_for_us;
        pods[i] = (struct as_pod_seen){
            .name = raw->name,
            .phase = phases[raw->phase],
            .ready = words[raw->ready],
            .deleting = raw->deleting,
            .start_time = before(making, at_us, raw->age_us),
            .ready_since = before(making, at_us, ready_for),
        };
        memcpy(pods[i].requests, raw->requests.of, sizeof(pods[i].requests));
        memcpy(pods[i].limits, raw->limits.of, sizeof(pods[i].limits));
    }
    event->target = target;
    event->pods = pods;
    event->pod_count = state->pod_count;
}

#define AMOUNT_MAX 0x1p62 /* of a sum */

/* In whole millicores and bytes: what is asked for rounded up, what there is rounded down. */
static void scale(const struct raw_resources *raw, double (*round_it)(double),
                  int64_t amounts[AS_RESOURCE_COUNT])
{
    for (enum as_resource i = 0; i < AS_RESOURCE_COUNT; i++) {
        const double amount = i == AS_RESOURCE_CPU ? raw->of[i] * 1000 : raw->of[i];
        amounts[i] = amount > AMOUNT_MAX ? (int64_t)AMOUNT_MAX : (int64_t)round_it(amount);
    }
}

static void add_nodes(struct making *making, const struct as_yaml_node *node, int64_t at_us,
                      const char *target, const struct raw_nodes_seen *raw)
{
    struct as_rule_test_event *event = add(making, node, at_us, AS_RULE_TEST_NODES);
    event->target = target;
    event->nodes = (struct as_nodes_seen){.error = raw->error,
                                          .open = raw->open,
                                          .is_template = raw->is_template,
                                          .waiting = raw->waiting,
                                          .coming = raw->coming};
    if (raw->error)
        return;
    scale(&raw->requests, ceil, event->nodes.requests);
    scale(&raw->allocatable, floor, event->nodes.allocatable);
}

static void add_state(struct making *making, const struct as_yaml_node *node, int64_t at_us,
                      const char *target, const struct raw_state *state)
{
    if (state->replicas >= 0) {
        struct as_rule_test_event *event = add(making, node, at_us, AS_RULE_TEST_SIZE);
        event->target = target;
        event->replicas = state->replicas;
    }
    if (state->has_pods)
        add_pods(making, node, at_us, target, state);
    if (state->has_nodes)
        add_nodes(making, node, at_us, target, &state->nodes);
}

/* Names are unique: checked before. */
static struct as_labels *make_labels(const struct raw_labels *raw)
{
    struct as_labels *labels = NULL;
    if (as_labels_new(raw->pairs, raw->count, &labels) != 0)
        abort();
    return labels;
}

static void add_alert(struct making *making, const struct raw_input *input, int64_t at_us)
{
    const bool fires = input->fire.pairs != NULL;
    struct as_rule_test_event *event =
        add(making, input->node, at_us, fires ? AS_RULE_TEST_FIRE : AS_RULE_TEST_RESOLVE);
    event->alert = (struct as_rule_test_alert){
        .labels = make_labels(fires ? &input->fire : &input->resolve),
        .annotations = make_labels(&input->annotations),
        .starts_us = input->starts_us,
        .receiver = input->receiver,
    };
}

static void add_cluster(struct making *making, int64_t at_us, const struct raw_cluster *raw)
{
    if (raw->node)
        add(making, raw->node, at_us, AS_RULE_TEST_CLUSTER)->cluster =
            rule_test_make_cluster(making->arena, raw);
}

static size_t count_repeats(const struct raw_input *input)
{
    return input->every_us > 0 ? (size_t)((input->until_us - input->at_us) / input->every_us) : 0;
}

static void add_input(struct making *making, const struct raw_input *input)
{
    if (input->target) {
        add_state(making, input->node, input->at_us, input->target, &input->state);
        return;
    }
    if (input->cluster.node) {
        add_cluster(making, input->at_us, &input->cluster);
        return;
    }
    if (input->approve || input->deny) {
        const bool is_yes = input->approve != NULL;
        add(making, input->node, input->at_us, is_yes ? AS_RULE_TEST_APPROVE : AS_RULE_TEST_DENY)
            ->target = is_yes ? input->approve : input->deny;
        return;
    }
    const size_t repeats = count_repeats(input);
    for (size_t i = 0; i <= repeats; i++)
        add_alert(making, input, input->at_us + (int64_t)i * input->every_us);
}

/* An upper bound: a state is up to three events. */
static size_t count_events(const struct raw_test *raw)
{
    size_t count =
        3 * (raw->target_count + raw->input_count) + 1 + raw->query_count + raw->expect_count;
    for (size_t i = 0; i < raw->input_count; i++)
        count += count_repeats(&raw->input[i]);
    return count;
}

static void add_query(struct making *making, const struct raw_query *query)
{
    struct as_rule_test_event *event = add(making, query->node, query->at_us, AS_RULE_TEST_QUERY);
    event->query = query->query;
    event->result = (struct as_query_result){
        .error = query->error,
        .value = query->value,
        .samples = query->samples,
        .sample_count = query->sample_count,
    };
}

static void add_expect(struct making *making, const struct raw_expect *expect)
{
    struct as_rule_test_event *event =
        add(making, expect->node, expect->at_us,
            expect->target ? AS_RULE_TEST_EXPECT_TARGET : AS_RULE_TEST_EXPECT_ALERT);
    event->target = expect->target;
    event->expected = expect->expected;
    if (expect->target)
        return;
    event->alert.labels = make_labels(&expect->alert);
    event->is_queued = expect->outcome == 0;
    if (!event->is_queued && !as_reason_find(test_outcomes[expect->outcome], &event->outcome))
        abort();
}

/* Order within a moment: states, alerts, answers, expectations. */
static int get_class(const struct as_rule_test_event *event)
{
    switch (event->kind) {
    case AS_RULE_TEST_SIZE:
    case AS_RULE_TEST_PODS:
    case AS_RULE_TEST_NODES:
    case AS_RULE_TEST_CLUSTER:
    case AS_RULE_TEST_QUERY: return 0;
    case AS_RULE_TEST_FIRE:
    case AS_RULE_TEST_RESOLVE: return 1;
    case AS_RULE_TEST_APPROVE:
    case AS_RULE_TEST_DENY: return 2;
    case AS_RULE_TEST_EXPECT_TARGET:
    case AS_RULE_TEST_EXPECT_ALERT: return 3;
    }
    return 3;
}

static int compare_events(const void *left, const void *right)
{
    const struct as_rule_test_event *a = left, *b = right;
    if (a->at_us != b->at_us)
        return a->at_us > b->at_us ? 1 : -1;
    const int difference = get_class(a) - get_class(b);
    return difference ? difference : (a->order > b->order) - (a->order < b->order);
}

void rule_test_make_events(struct as_arena *arena, const struct raw_test *raw,
                           struct as_rule_test *test)
{
    struct making making = {arena, test};
    *test = (struct as_rule_test){
        .name = raw->name,
        .line = raw->node->place.line,
        .start = raw->start,
        .events = as_arena_alloc(arena, count_events(raw), sizeof(*test->events)),
    };
    for (size_t i = 0; i < raw->target_count; i++)
        add_state(&making, raw->targets[i].key, 0,
                  as_arena_strdup(arena, raw->targets[i].key->text), &raw->targets[i]);
    add_cluster(&making, 0, &raw->cluster);
    for (size_t i = 0; i < raw->query_count; i++)
        add_query(&making, &raw->queries[i]);
    for (size_t i = 0; i < raw->input_count; i++)
        add_input(&making, &raw->input[i]);
    for (size_t i = 0; i < raw->expect_count; i++)
        add_expect(&making, &raw->expect[i]);
    qsort(test->events, test->event_count, sizeof(*test->events), compare_events);
}

/* --- names --- */

static const struct as_target_config *find_target(const struct as_ruleset *ruleset,
                                                  const char *name)
{
    for (size_t i = 0; i < ruleset->target_count; i++) {
        if (strcmp(ruleset->targets[i].name, name) == 0)
            return &ruleset->targets[i];
    }
    return NULL;
}

static void check_target(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_ruleset *ruleset)
{
    if (!node || node->kind != AS_YAML_SCALAR || as_target_kind_find_of_id(node->text))
        return;
    const struct as_target_config *target = find_target(ruleset, node->text);
    if (target && !target->is_templated)
        return;
    if (target) {
        loader_report(loader, node,
                      "the address of target `%s` has templates: each target that comes of it is "
                      "named by its id, like kubernetes/default/apps/v1/Deployment/shop/checkout",
                      target->name);
        return;
    }
    char found[AS_YAML_FOUND_SIZE], hint[SUGGESTION_SIZE];
    struct suggestion suggestion = suggestion_start(node->text);
    for (size_t i = 0; i < ruleset->target_count && !loader_is_full(loader); i++)
        suggestion_offer(&suggestion, ruleset->targets[i].name);
    loader_report(loader, node, "there is no target %s%s", as_yaml_describe(node, found),
                  suggestion_print(&suggestion, hint));
}

static void check_rule(struct loader *loader, const struct as_yaml_node *node,
                       const struct as_ruleset *ruleset)
{
    if (!node || node->kind != AS_YAML_SCALAR)
        return;
    char found[AS_YAML_FOUND_SIZE], hint[SUGGESTION_SIZE];
    struct suggestion suggestion = suggestion_start(node->text);
    for (size_t i = 0; i < ruleset->rule_count; i++) {
        if (strcmp(ruleset->rules[i].name, node->text) == 0)
            return;
        suggestion_offer(&suggestion, ruleset->rules[i].name);
    }
    loader_report(loader, node, "there is no rule %s%s", as_yaml_describe(node, found),
                  suggestion_print(&suggestion, hint));
}

void rule_test_check_names(struct loader *loader, const struct raw_test *raw,
                           const struct as_ruleset *ruleset)
{
    for (size_t i = 0; i < raw->target_count; i++)
        check_target(loader, raw->targets[i].key, ruleset);
    rule_test_check_cluster(loader, &raw->cluster, ruleset);
    for (size_t i = 0; i < raw->input_count; i++) {
        static const char *const keys[] = {"target", "approve", "deny"};
        for (size_t k = 0; k < AS_ARRAY_SIZE(keys); k++)
            check_target(loader, as_yaml_find(raw->input[i].node, keys[k]), ruleset);
        rule_test_check_cluster(loader, &raw->input[i].cluster, ruleset);
    }
    for (size_t i = 0; i < raw->expect_count; i++) {
        check_target(loader, as_yaml_find(raw->expect[i].node, "target"), ruleset);
        check_rule(loader, as_yaml_find(raw->expect[i].node, "rule"), ruleset);
    }
}
