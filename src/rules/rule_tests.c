/*
 * The loader of rule tests: a file of tests, the rules that it names, and the checks over both. As
 * with configurations, one run reports every error of all files.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>
#include <alertscaler/doc/yaml_tree.h>

#include "config_private.h"
#include "rule_tests_private.h"

#define RULE_TEST_AT(of)                                                                           \
    {                                                                                              \
        .key = "at", .type = SCHEMA_DURATION, .is_required = true,                                 \
        .offset = offsetof(struct of, at_us), .max = AS_RULE_TEST_TIME_MAX                         \
    }

/*
 * `cluster` of a test: the pods that are there, and which nodes of a group are Ready. What decides
 * about pools places the pods on the nodes.
 */

#define PODS_MAX 1000000 /* of one row */

static void parse_request(struct loader *loader, const struct as_yaml_node *value,
                          enum as_res resource, void *object)
{
    struct raw_cluster_pods *pods = object;
    char found[AS_YAML_FOUND_SIZE];
    int64_t amount = 0;
    if (value->kind != AS_YAML_SCALAR ||
        as_quantity_parse_scaled(value->text, value->size, resource == AS_RES_CPU ? 3 : 0, true,
                                 &amount) < 0 ||
        amount < 0)
        loader_report(loader, value, "expected a quantity like 250m, 1.5 or 512Mi, found %s",
                      as_yaml_describe(value, found));
    pods->pod_class.requests.amount[resource] = amount;
}

static void tests_parse_cpu(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_request(loader, value, AS_RES_CPU, object);
}

static void tests_parse_memory(struct loader *loader, const struct as_yaml_node *value,
                               void *object)
{
    parse_request(loader, value, AS_RES_MEMORY, object);
}

/* Values that look like numbers are still text. */
static void rule_test_parse_labels(struct loader *loader, const struct as_yaml_node *map,
                                   struct raw_labels *labels)
{
    if (!schema_is_kind(loader, map, AS_YAML_MAP))
        return;
    struct as_label *pairs = as_arena_alloc(loader->arena, map->count, sizeof(*pairs));
    size_t count = 0;
    for (uint32_t i = 0; i < map->count; i++) {
        const struct as_yaml_node *key = map->pairs[i].key, *value = map->pairs[i].value;
        char found[AS_YAML_FOUND_SIZE];
        if (key->size == 0)
            loader_report(loader, key, "a label needs a name");
        if (value->kind != AS_YAML_SCALAR || value->size == 0 || as_yaml_is_null(value)) {
            loader_report(loader, value, "expected the value of a label, found %s",
                          as_yaml_describe(value, found));
            continue;
        }
        pairs[count].name = as_arena_strdup(loader->arena, key->text);
        pairs[count++].value = as_arena_strdup(loader->arena, value->text);
    }
    *labels = (struct raw_labels){pairs, count};
}

static void parse_select(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct raw_cluster_pods *pods = object;
    struct raw_labels raw = {0};
    rule_test_parse_labels(loader, value, &raw);
    if (as_labels_new_in(loader->arena, raw.pairs, raw.count, &pods->pod_class.selector) != 0)
        pods->pod_class.selector = NULL; /* equal keys: the file's reader has reported them */
}

static const struct schema_field rule_test_label_forms[] = {
    SCHEMA_FORM(TABLE, .forms = SCHEMA_FORMS(SCHEMA_FORM(TEXT))), {0}};

static const struct schema_field pods_fields[] = {
    SCHEMA_FIELD("count", INT, raw_cluster_pods, count, .min = 1, .max = PODS_MAX, .fallback = "1"),
    {.key = "cpu",
     .type = SCHEMA_CUSTOM,
     .parse = tests_parse_cpu,
     .forms = SCHEMA_QUANTITY_FORMS,
     .expected = "quantity"},
    {.key = "memory",
     .type = SCHEMA_CUSTOM,
     .parse = tests_parse_memory,
     .forms = SCHEMA_QUANTITY_FORMS,
     .expected = "quantity"},
    {.key = "select",
     .type = SCHEMA_CUSTOM,
     .parse = parse_select,
     .forms = rule_test_label_forms,
     .expected = "map of labels"},
    SCHEMA_FIELD("on", STRING, raw_cluster_pods, on),
    SCHEMA_FIELD("keep", BOOL, raw_cluster_pods, keep, .fallback = "false"),
    {0},
};

static void finish_pods(struct loader *loader, const struct as_yaml_node *node,
                        const struct as_yaml_node *at, void *object)
{
    struct raw_cluster_pods *pods = object;
    pods->node = node;
    pods->pod_class.requests.amount[AS_RES_PODS] = 1;
    pods->pod_class.namespace_ = "default";
    pods->pod_class.eviction = pods->keep ? AS_EVICTION_REFUSED : AS_EVICTION_ALLOWED;
    const int status = as_labels_new_in(loader->arena, NULL, 0, &pods->pod_class.labels);
    (void)status; /* no label comes twice */
}

const struct schema schema_test_cluster_pods =
    SCHEMA("tests.cluster.pods", raw_cluster_pods, pods_fields, .finish = finish_pods);

static const struct schema_field node_fields[] = {
    SCHEMA_FIELD("ready", INT, raw_cluster_nodes, ready, .is_required = true, .min = 0,
                 .max = AS_SIZE_MAX),
    {0},
};

const struct schema schema_test_cluster_nodes =
    SCHEMA("tests.cluster.nodes", raw_cluster_nodes, node_fields);

static void tests_parse_nodes(struct loader *loader, const struct as_yaml_node *map, void *object)
{
    struct raw_cluster *cluster = object;
    if (!schema_is_kind(loader, map, AS_YAML_MAP))
        return;
    cluster->nodes = as_arena_alloc(loader->arena, map->count, sizeof(*cluster->nodes));
    cluster->node_count = map->count;
    for (uint32_t i = 0; i < map->count; i++) {
        cluster->nodes[i].group = map->pairs[i].key;
        schema_parse(loader, &schema_test_cluster_nodes, map->pairs[i].value, map->pairs[i].key,
                     &cluster->nodes[i]);
    }
}

static const struct schema_field cluster_fields[] = {
    SCHEMA_FIELD("pods", MAPS, raw_cluster, pods,
                 .count_offset = offsetof(struct raw_cluster, pod_count),
                 .map = &schema_test_cluster_pods),
    {.key = "nodes",
     .type = SCHEMA_CUSTOM,
     .parse = tests_parse_nodes,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(
         TABLE, .forms = SCHEMA_FORMS(SCHEMA_FORM(MAP, .map = &schema_test_cluster_nodes)))),
     .expected = "map of node groups"},
    {0},
};

static void finish_cluster(struct loader *loader, const struct as_yaml_node *node,
                           const struct as_yaml_node *at, void *object)
{
    ((struct raw_cluster *)object)->node = node;
}

const struct schema schema_test_cluster =
    SCHEMA("tests.cluster", raw_cluster, cluster_fields, .finish = finish_cluster);

static void tests_check_group(struct loader *loader, const struct as_yaml_node *at,
                              const char *name, const struct as_ruleset *ruleset)
{
    for (size_t i = 0; i < ruleset->target_count; i++) {
        const struct as_target_config *target = ruleset->targets[i];
        if (strcmp(target->name, name) != 0)
            continue;
        if (!target->kind->has_nodes)
            loader_report(loader, at, "target `%s` is %s, not a node group", name,
                          target->kind->title);
        else if (!target->nodes.template_)
            loader_report(loader, at,
                          "target `%s` needs `nodes.template`: a test has to know what its nodes "
                          "have",
                          name);
        return;
    }
    loader_report(loader, at, "there is no target `%s`", name);
}

static void rule_test_check_cluster(struct loader *loader, const struct raw_cluster *cluster,
                                    const struct as_ruleset *ruleset)
{
    for (size_t i = 0; i < cluster->node_count; i++)
        tests_check_group(loader, cluster->nodes[i].group, cluster->nodes[i].group->text, ruleset);
    for (size_t i = 0; i < cluster->pod_count; i++) {
        if (cluster->pods[i].on)
            tests_check_group(loader, as_yaml_find(cluster->pods[i].node, "on"),
                              cluster->pods[i].on, ruleset);
    }
}

static const struct as_rule_test_cluster *rule_test_make_cluster(struct as_arena *arena,
                                                                 const struct raw_cluster *raw)
{
    struct as_rule_test_cluster *cluster = as_arena_alloc(arena, 1, sizeof(*cluster));
    struct as_rule_test_pods *pods = as_arena_alloc(arena, raw->pod_count, sizeof(*pods));
    struct as_rule_test_ready *ready = as_arena_alloc(arena, raw->node_count, sizeof(*ready));
    for (size_t i = 0; i < raw->pod_count; i++)
        pods[i] = (struct as_rule_test_pods){raw->pods[i].pod_class, (uint32_t)raw->pods[i].count,
                                             raw->pods[i].on};
    for (size_t i = 0; i < raw->node_count; i++)
        ready[i] = (struct as_rule_test_ready){as_arena_strdup(arena, raw->nodes[i].group->text),
                                               raw->nodes[i].ready};
    *cluster = (struct as_rule_test_cluster){pods, raw->pod_count, ready, raw->node_count};
    return cluster;
}

/*
 * The table of what a rule test expects.
 */

/* up to NULL; "queued" first */
static const char *const test_outcomes[] = {
    "queued",    "no_rule",       "duplicate", "stale", "silenced", "target_not_allowed",
    "max_steps", "rule_disabled", "own_alert", NULL,
};

static void parse_reason(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct raw_expect *expect = object;
    char found[AS_YAML_FOUND_SIZE], hint[SUGGESTION_SIZE];
    const bool is_scalar = value->kind == AS_YAML_SCALAR;
    expect->expected.has_reason = true;
    if (is_scalar && as_reason_find(value->text, &expect->expected.reason))
        return;
    struct suggestion suggestion = suggestion_start(is_scalar ? value->text : "");
    for (int i = 0; i < AS_REASON_COUNT; i++)
        suggestion_offer(&suggestion, as_reason_get_word((enum as_reason)i));
    loader_report(loader, value, "expected a reason code, found %s%s",
                  as_yaml_describe(value, found), suggestion_print(&suggestion, hint));
}

/* A size, or `none`: nobody is asked. */
static void parse_asked(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct as_rule_test_expected *expected = &((struct raw_expect *)object)->expected;
    int64_t size = -1;
    expected->has_asked = true;
    expected->asked = -1;
    if (value->kind == AS_YAML_SCALAR && strcmp(value->text, "none") == 0)
        return;
    if (schema_parse_i64(loader, value, 0, AS_SIZE_MAX, &size))
        expected->asked = (int32_t)size;
}

static void parse_alert(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    rule_test_parse_labels(loader, value, &((struct raw_expect *)object)->alert);
}

static const struct schema_field asked_forms[] = {
    SCHEMA_FORM(WORD, .words = (const char *const[]){"none", NULL}),
    SCHEMA_FORM(INT, .min = 0, .max = AS_SIZE_MAX),
    {0},
};

static const struct schema_field expect_fields[] = {
    RULE_TEST_AT(raw_expect),
    SCHEMA_FIELD("target", STRING, raw_expect, target),
    SCHEMA_FIELD("replicas", INT, raw_expect, expected.replicas, .min = 0, .max = AS_SIZE_MAX),
    {.key = "reason",
     .type = SCHEMA_CUSTOM,
     .parse = parse_reason,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(REASON)),
     .expected = "reason code"},
    SCHEMA_FIELD("rule", STRING, raw_expect, expected.rule),
    SCHEMA_FIELD("desired", INT, raw_expect, expected.desired, .min = 0, .max = AS_SIZE_MAX),
    {.key = "asked",
     .type = SCHEMA_CUSTOM,
     .parse = parse_asked,
     .forms = asked_forms,
     .expected = "integer or none"},
    {.key = "alert",
     .type = SCHEMA_CUSTOM,
     .parse = parse_alert,
     .forms = rule_test_label_forms,
     .expected = "map of labels"},
    SCHEMA_FIELD("outcome", WORD, raw_expect, outcome, .words = test_outcomes),
    {0},
};

static void init_expect(struct loader *loader, void *object)
{
    struct raw_expect *expect = object;
    expect->expected.replicas = expect->expected.desired = -1;
}

static const struct schema_choice expect_choices[] = {{SCHEMA_ONE_OF("target", "alert"), false},
                                                      {0}};

/* Reports each of these keys (up to NULL) that is there although it is not allowed beside others.
 */
static void rule_test_check_companions(struct loader *loader, const struct as_yaml_node *node,
                                       const char *const *keys, bool is_allowed, const char *beside)
{
    for (; *keys && !is_allowed; keys++) {
        const struct as_yaml_node *key = schema_find_key(node, *keys);
        if (key)
            loader_report(loader, key, "`%s` goes only with %s", *keys, beside);
    }
}

static void finish_expect(struct loader *loader, const struct as_yaml_node *node,
                          const struct as_yaml_node *at, void *object)
{
    static const char *const of_targets[] = {"replicas", "reason", "rule",
                                             "desired",  "asked",  NULL};
    static const char *const of_alerts[] = {"outcome", NULL};
    struct raw_expect *expect = object;
    const bool is_target = as_yaml_find(node, "target") != NULL;
    expect->node = node;
    if (!schema_has_one_of(node, expect_choices->keys))
        return;
    rule_test_check_companions(loader, node, of_targets, is_target, "`target`");
    rule_test_check_companions(loader, node, of_alerts, !is_target, "`alert`");
    bool says_something = false;
    for (const char *const *key = is_target ? of_targets : of_alerts; *key; key++)
        says_something = says_something || schema_find_key(node, *key);
    if (!says_something)
        loader_report(loader, at, "%s is needed",
                      is_target ? "one of `replicas`, `reason`, `rule`, `desired` and `asked`"
                                : "`outcome`");
}

const struct schema schema_test_expect =
    SCHEMA("tests.expect", raw_expect, expect_fields, .choices = expect_choices,
           .init = init_expect, .finish = finish_expect);

/*
 * Makes the ordered events of a test.
 */

struct making {
    struct as_arena *arena;
    struct as_rule_test *test;
};

static struct as_rule_test_event *tests_add(struct making *making, const struct as_yaml_node *node,
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

/* As of a pod in a cluster: an amount that the pod does not give is the sum of its containers. */
static void add_amounts(double sums[AS_RESOURCE_COUNT], const struct raw_pod *raw, size_t at)
{
    for (enum as_resource r = 0; r < AS_RESOURCE_COUNT && raw->container_count > 0; r++) {
        if (!isnan(sums[r]))
            continue;
        sums[r] = 0;
        for (size_t i = 0; i < raw->container_count; i++) {
            const struct raw_resources *of = (const void *)((const char *)&raw->containers[i] + at);
            sums[r] += of->of[r];
        }
    }
}

static void tests_add_containers(struct as_arena *arena, const struct raw_pod *raw,
                                 struct as_pod_seen *pod)
{
    struct as_container_seen *containers =
        as_arena_alloc(arena, raw->container_count, sizeof(*containers));
    for (size_t i = 0; i < raw->container_count; i++) {
        containers[i].name = raw->containers[i].name;
        memcpy(containers[i].requests, raw->containers[i].requests.of,
               sizeof(containers[i].requests));
        memcpy(containers[i].limits, raw->containers[i].limits.of, sizeof(containers[i].limits));
    }
    add_amounts(pod->requests, raw, offsetof(struct raw_container, requests));
    add_amounts(pod->limits, raw, offsetof(struct raw_container, limits));
    pod->containers = containers;
    pod->container_count = raw->container_count;
}

static void tests_add_pods(struct making *making, const struct as_yaml_node *node, int64_t at_us,
                           const char *target, const struct raw_state *state)
{
    static const enum as_pod_phase phases[] = {AS_POD_PENDING, AS_POD_RUNNING, AS_POD_SUCCEEDED,
                                               AS_POD_FAILED, AS_POD_UNKNOWN};
    static const enum as_tristate words[] = {AS_FALSE, AS_TRUE, AS_UNKNOWN};
    struct as_rule_test_event *event = tests_add(making, node, at_us, AS_RULE_TEST_PODS);
    struct as_pod_seen *pods = as_arena_alloc(making->arena, state->pod_count, sizeof(*pods));
    for (size_t i = 0; i < state->pod_count; i++) {
        const struct raw_pod *raw = &state->pods[i];
        const int64_t ready_for = raw->ready_for_us < 0 ? raw->age_us : raw->ready_for_us;
        pods[i] = (struct as_pod_seen){
            .name = raw->name,
            .phase = phases[raw->phase],
            .ready = words[raw->ready],
            .deleting = raw->deleting,
            .owner = (enum as_pod_owner)raw->owner,
            .start_time = before(making, at_us, raw->age_us),
            .ready_since = before(making, at_us, ready_for),
        };
        memcpy(pods[i].requests, raw->requests.of, sizeof(pods[i].requests));
        memcpy(pods[i].limits, raw->limits.of, sizeof(pods[i].limits));
        tests_add_containers(making->arena, raw, &pods[i]);
    }
    event->target = target;
    event->pods = pods;
    event->pod_count = state->pod_count;
}

#define AMOUNT_MAX 0x1p62 /* of a sum */

/* In whole millicores and bytes: what is asked for rounded up, what there is rounded down. */
static void tests_scale(const struct raw_resources *raw, double (*round_it)(double),
                        int64_t amounts[AS_RESOURCE_COUNT])
{
    for (enum as_resource i = 0; i < AS_RESOURCE_COUNT; i++) {
        const double amount = i == AS_RESOURCE_CPU ? raw->of[i] * 1000 : raw->of[i];
        amounts[i] = amount > AMOUNT_MAX ? (int64_t)AMOUNT_MAX : (int64_t)round_it(amount);
    }
}

static void tests_add_nodes(struct making *making, const struct as_yaml_node *node, int64_t at_us,
                            const char *target, const struct raw_nodes_seen *raw)
{
    struct as_rule_test_event *event = tests_add(making, node, at_us, AS_RULE_TEST_NODES);
    event->target = target;
    event->nodes = (struct as_nodes_seen){.error = raw->error,
                                          .open = raw->open,
                                          .is_template = raw->is_template,
                                          .waiting = raw->waiting,
                                          .coming = raw->coming};
    if (raw->error)
        return;
    tests_scale(&raw->requests, ceil, event->nodes.requests);
    tests_scale(&raw->allocatable, floor, event->nodes.allocatable);
}

static void add_state(struct making *making, const struct as_yaml_node *node, int64_t at_us,
                      const char *target, const struct raw_state *state)
{
    if (state->replicas >= 0) {
        struct as_rule_test_event *event = tests_add(making, node, at_us, AS_RULE_TEST_SIZE);
        event->target = target;
        event->replicas = state->replicas;
    }
    if (state->has_pods)
        tests_add_pods(making, node, at_us, target, state);
    if (state->has_nodes)
        tests_add_nodes(making, node, at_us, target, &state->nodes);
    if (state->has_rollout) {
        struct as_rule_test_event *event = tests_add(making, node, at_us, AS_RULE_TEST_ROLLOUT);
        event->target = target;
        event->rollout = (enum as_rollout_progress)state->rollout;
    }
}

/* Names are unique: checked before. */
static struct as_labels *tests_make_labels(const struct raw_labels *raw)
{
    struct as_labels *labels = NULL;
    if (as_labels_new(raw->pairs, raw->count, &labels) != 0)
        abort();
    return labels;
}

static void tests_add_alert(struct making *making, const struct raw_input *input, int64_t at_us)
{
    const bool fires = input->fire.pairs != NULL;
    struct as_rule_test_event *event =
        tests_add(making, input->node, at_us, fires ? AS_RULE_TEST_FIRE : AS_RULE_TEST_RESOLVE);
    event->alert = (struct as_rule_test_alert){
        .labels = tests_make_labels(fires ? &input->fire : &input->resolve),
        .annotations = tests_make_labels(&input->annotations),
        .starts_us = input->starts_us,
        .receiver = input->receiver,
    };
}

static void add_cluster(struct making *making, int64_t at_us, const struct raw_cluster *raw)
{
    if (raw->node)
        tests_add(making, raw->node, at_us, AS_RULE_TEST_CLUSTER)->cluster =
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
        tests_add(making, input->node, input->at_us,
                  is_yes ? AS_RULE_TEST_APPROVE : AS_RULE_TEST_DENY)
            ->target = is_yes ? input->approve : input->deny;
        return;
    }
    const size_t repeats = count_repeats(input);
    for (size_t i = 0; i <= repeats; i++)
        tests_add_alert(making, input, input->at_us + (int64_t)i * input->every_us);
}

/* An upper bound: a state is up to three events. */
static size_t count_events(const struct raw_test *raw)
{
    size_t count =
        4 * (raw->target_count + raw->input_count) + 1 + raw->query_count + raw->expect_count;
    for (size_t i = 0; i < raw->input_count; i++)
        count += count_repeats(&raw->input[i]);
    return count;
}

static void add_query(struct making *making, const struct raw_query *query)
{
    struct as_rule_test_event *event =
        tests_add(making, query->node, query->at_us, AS_RULE_TEST_QUERY);
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
        tests_add(making, expect->node, expect->at_us,
                  expect->target ? AS_RULE_TEST_EXPECT_TARGET : AS_RULE_TEST_EXPECT_ALERT);
    event->target = expect->target;
    event->expected = expect->expected;
    if (expect->target)
        return;
    event->alert.labels = tests_make_labels(&expect->alert);
    event->is_queued = expect->outcome == 0;
    if (!event->is_queued && !as_reason_find(test_outcomes[expect->outcome], &event->outcome))
        abort();
}

/* Order within a moment: states, alerts, answers, expectations. */
static int tests_get_class(const struct as_rule_test_event *event)
{
    switch (event->kind) {
    case AS_RULE_TEST_SIZE:
    case AS_RULE_TEST_PODS:
    case AS_RULE_TEST_NODES:
    case AS_RULE_TEST_ROLLOUT:
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

static int tests_compare_events(const void *left, const void *right)
{
    const struct as_rule_test_event *a = left, *b = right;
    if (a->at_us != b->at_us)
        return a->at_us > b->at_us ? 1 : -1;
    const int difference = tests_get_class(a) - tests_get_class(b);
    return difference ? difference : (a->order > b->order) - (a->order < b->order);
}

/* For a test without errors: its events in order. */
static void rule_test_make_events(struct as_arena *arena, const struct raw_test *raw,
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
    qsort(test->events, test->event_count, sizeof(*test->events), tests_compare_events);
}

/* --- names --- */

static const struct as_target_config *tests_find_target(const struct as_ruleset *ruleset,
                                                        const char *name)
{
    for (size_t i = 0; i < ruleset->target_count; i++) {
        if (strcmp(ruleset->targets[i]->name, name) == 0)
            return ruleset->targets[i];
    }
    return NULL;
}

static void tests_check_target(struct loader *loader, const struct as_yaml_node *node,
                               const struct as_ruleset *ruleset)
{
    if (!node || node->kind != AS_YAML_SCALAR || as_target_kind_find_of_id(node->text))
        return;
    const struct as_target_config *target = tests_find_target(ruleset, node->text);
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
        suggestion_offer(&suggestion, ruleset->targets[i]->name);
    loader_report(loader, node, "there is no target %s%s", as_yaml_describe(node, found),
                  suggestion_print(&suggestion, hint));
}

static void tests_check_rule(struct loader *loader, const struct as_yaml_node *node,
                             const struct as_ruleset *ruleset)
{
    if (!node || node->kind != AS_YAML_SCALAR)
        return;
    char found[AS_YAML_FOUND_SIZE], hint[SUGGESTION_SIZE];
    struct suggestion suggestion = suggestion_start(node->text);
    for (size_t i = 0; i < ruleset->rule_count; i++) {
        if (strcmp(ruleset->rules[i]->name, node->text) == 0)
            return;
        suggestion_offer(&suggestion, ruleset->rules[i]->name);
    }
    loader_report(loader, node, "there is no rule %s%s", as_yaml_describe(node, found),
                  suggestion_print(&suggestion, hint));
}

/* Checks that the names of targets and rules exist. */
static void rule_test_check_names(struct loader *loader, const struct raw_test *raw,
                                  const struct as_ruleset *ruleset)
{
    for (size_t i = 0; i < raw->target_count; i++)
        tests_check_target(loader, raw->targets[i].key, ruleset);
    rule_test_check_cluster(loader, &raw->cluster, ruleset);
    for (size_t i = 0; i < raw->input_count; i++) {
        static const char *const keys[] = {"target", "approve", "deny"};
        for (size_t k = 0; k < AS_ARRAY_SIZE(keys); k++)
            tests_check_target(loader, as_yaml_find(raw->input[i].node, keys[k]), ruleset);
        rule_test_check_cluster(loader, &raw->input[i].cluster, ruleset);
    }
    for (size_t i = 0; i < raw->expect_count; i++) {
        tests_check_target(loader, as_yaml_find(raw->expect[i].node, "target"), ruleset);
        tests_check_rule(loader, as_yaml_find(raw->expect[i].node, "rule"), ruleset);
    }
}

/*
 * The tables of a file of rule tests.
 */

/* --- resources and pods --- */

static void parse_quantity(struct loader *loader, const struct as_yaml_node *value, double *out)
{
    char found[AS_YAML_FOUND_SIZE];
    if (value->kind != AS_YAML_SCALAR || as_quantity_parse(value->text, value->size, out) != 0)
        loader_report(loader, value, "expected a quantity like 250m, 1.5 or 512Mi, found %s",
                      as_yaml_describe(value, found));
}

static void rule_tests_schema_parse_cpu(struct loader *loader, const struct as_yaml_node *value,
                                        void *object)
{
    parse_quantity(loader, value, &((struct raw_resources *)object)->of[AS_RESOURCE_CPU]);
}

static void rule_tests_schema_parse_memory(struct loader *loader, const struct as_yaml_node *value,
                                           void *object)
{
    parse_quantity(loader, value, &((struct raw_resources *)object)->of[AS_RESOURCE_MEMORY]);
}

static void init_resources(struct loader *loader, void *object)
{
    struct raw_resources *resources = object;
    for (size_t i = 0; i < AS_RESOURCE_COUNT; i++)
        resources->of[i] = (double)NAN;
}

static const struct schema_field resource_fields[] = {
    {.key = "cpu",
     .type = SCHEMA_CUSTOM,
     .parse = rule_tests_schema_parse_cpu,
     .forms = SCHEMA_QUANTITY_FORMS,
     .expected = "quantity"},
    {.key = "memory",
     .type = SCHEMA_CUSTOM,
     .parse = rule_tests_schema_parse_memory,
     .forms = SCHEMA_QUANTITY_FORMS,
     .expected = "quantity"},
    {0},
};

const struct schema schema_test_resources =
    SCHEMA("requests", raw_resources, resource_fields, .init = init_resources);

static const struct schema_field container_fields[] = {
    SCHEMA_FIELD("name", STRING, raw_container, name, .is_required = true),
    SCHEMA_FIELD("requests", MAP, raw_container, requests, .map = &schema_test_resources),
    SCHEMA_FIELD("limits", MAP, raw_container, limits, .map = &schema_test_resources),
    {0},
};

const struct schema schema_test_container = SCHEMA("containers", raw_container, container_fields);

static const struct schema_field pod_fields[] = {
    SCHEMA_FIELD("name", STRING, raw_pod, name, .is_required = true),
    SCHEMA_FIELD("phase", WORD, raw_pod, phase,
                 .words = (const char *const[]){"Pending", "Running", "Succeeded", "Failed",
                                                "Unknown", NULL},
                 .fallback = "Running"),
    SCHEMA_FIELD("ready", WORD, raw_pod, ready,
                 .words = (const char *const[]){"false", "true", "unknown", NULL},
                 .fallback = "true"),
    SCHEMA_FIELD("deleting", BOOL, raw_pod, deleting, .fallback = "false"),
    SCHEMA_FIELD("owner", WORD, raw_pod, owner, /* in the order of as_pod_owner */
                 .words = (const char *const[]){"target", "other", "gone", NULL},
                 .fallback = "target"),
    SCHEMA_FIELD("age", DURATION, raw_pod, age_us, .fallback = "1d"),
    SCHEMA_FIELD("ready_for", DURATION, raw_pod, ready_for_us),
    SCHEMA_FIELD("requests", MAP, raw_pod, requests, .map = &schema_test_resources),
    SCHEMA_FIELD("limits", MAP, raw_pod, limits, .map = &schema_test_resources),
    SCHEMA_FIELD("containers", MAPS, raw_pod, containers,
                 .count_offset = offsetof(struct raw_pod, container_count),
                 .map = &schema_test_container),
    {0},
};

static void init_pod(struct loader *loader, void *object)
{
    ((struct raw_pod *)object)->ready_for_us = -1;
}

static void finish_pod(struct loader *loader, const struct as_yaml_node *node,
                       const struct as_yaml_node *at, void *object)
{
    const struct raw_pod *pod = object;
    if (pod->ready_for_us > pod->age_us)
        loader_report(loader, as_yaml_find(node, "ready_for"), "longer than the pod's `age`");
}

const struct schema schema_test_pod =
    SCHEMA("pods", raw_pod, pod_fields, .init = init_pod, .finish = finish_pod);

/* --- the nodes behind a target --- */

#define IN_NODES(member) offsetof(struct raw_nodes_seen, member)

static const struct schema_field nodes_fields[] = {
    {.key = "open",
     .type = SCHEMA_INT,
     .offset = IN_NODES(open),
     .min = 0,
     .max = AS_SIZE_MAX,
     .fallback = "0"},
    {.key = "requests",
     .type = SCHEMA_MAP,
     .offset = IN_NODES(requests),
     .map = &schema_test_resources},
    {.key = "allocatable",
     .type = SCHEMA_MAP,
     .offset = IN_NODES(allocatable),
     .map = &schema_test_resources},
    {.key = "template", .type = SCHEMA_BOOL, .offset = IN_NODES(is_template), .fallback = "false"},
    {.key = "waiting",
     .type = SCHEMA_INT,
     .offset = IN_NODES(waiting),
     .min = 0,
     .max = AS_SIZE_MAX,
     .fallback = "0"},
    {.key = "coming",
     .type = SCHEMA_INT,
     .offset = IN_NODES(coming),
     .min = 0,
     .max = AS_SIZE_MAX,
     .fallback = "0"},
    {.key = "error", .type = SCHEMA_STRING, .offset = IN_NODES(error)},
    {0},
};

static void tests_finish_nodes(struct loader *loader, const struct as_yaml_node *node,
                               const struct as_yaml_node *at, void *object)
{
    struct raw_nodes_seen *nodes = object;
    struct raw_resources *const both[] = {&nodes->requests, &nodes->allocatable};
    for (size_t i = 0; i < AS_ARRAY_SIZE(both); i++)
        for (enum as_resource r = 0; r < AS_RESOURCE_COUNT; r++)
            if (isnan(both[i]->of[r]))
                both[i]->of[r] = 0;
    if (nodes->is_template && nodes->open > 0)
        loader_report(loader, as_yaml_find(node, "template"),
                      "a new node is only counted where none is `open`");
    if (nodes->open > 0 && (nodes->waiting > 0 || nodes->coming > 0))
        loader_report(loader, as_yaml_find(node, nodes->waiting > 0 ? "waiting" : "coming"),
                      "it only counts where no node is `open`");
}

const struct schema schema_test_nodes = {
    .name = "tests.nodes",
    .size = sizeof(struct raw_nodes_seen),
    .fields = nodes_fields,
    .finish = tests_finish_nodes,
};

/* --- the state of a target --- */

#define WORD(enumerator, word) [enumerator] = (word),
static const char *const progresses[] = {AS_ROLLOUT_PROGRESSES(WORD)[AS_PROGRESS_COUNT] = NULL};
#undef WORD

#define STATE_FIELDS(start)                                                                        \
    {.key = "replicas",                                                                            \
     .type = SCHEMA_INT,                                                                           \
     .offset = (start) + offsetof(struct raw_state, replicas),                                     \
     .min = 0,                                                                                     \
     .max = AS_SIZE_MAX},                                                                          \
        {.key = "nodes",                                                                           \
         .type = SCHEMA_MAP,                                                                       \
         .offset = (start) + offsetof(struct raw_state, nodes),                                    \
         .map = &schema_test_nodes},                                                               \
        {.key = "rollout",                                                                         \
         .type = SCHEMA_WORD,                                                                      \
         .offset = (start) + offsetof(struct raw_state, rollout),                                  \
         .words = progresses},                                                                     \
    {                                                                                              \
        .key = "pods", .type = SCHEMA_MAPS, .offset = (start) + offsetof(struct raw_state, pods),  \
        .count_offset = (start) + offsetof(struct raw_state, pod_count), .map = &schema_test_pod,  \
        .max = AS_SAMPLES_MAX                                                                      \
    }

static const struct schema_field state_fields[] = {STATE_FIELDS(0), {0}};

static void init_state(struct loader *loader, void *object)
{
    ((struct raw_state *)object)->replicas = -1;
}

static int tests_compare_names(const void *left, const void *right)
{
    const struct as_yaml_node *a = *(const struct as_yaml_node *const *)left;
    const struct as_yaml_node *b = *(const struct as_yaml_node *const *)right;
    int status = strcmp(a->text, b->text);
    return status ? status : (a->place.line > b->place.line) - (a->place.line < b->place.line);
}

/* Pods have unique names. */
static void check_pod_names(struct loader *loader, const struct as_yaml_node *list)
{
    if (!list || list->kind != AS_YAML_LIST)
        return;
    const struct as_yaml_node **names = as_xcalloc(list->count, sizeof(*names));
    size_t count = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct as_yaml_node *name = as_yaml_find(list->items[i], "name");
        if (name && name->kind == AS_YAML_SCALAR)
            names[count++] = name;
    }
    if (count > 1)
        qsort(names, count, sizeof(*names), tests_compare_names);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(names[i - 1]->text, names[i]->text) == 0)
            loader_report(loader, names[i], "another pod has this name");
    }
    free(names);
}

static void take_state(struct loader *loader, const struct as_yaml_node *node,
                       struct raw_state *state)
{
    const struct as_yaml_node *pods = as_yaml_find(node, "pods");
    state->has_pods = pods != NULL;
    state->has_nodes = as_yaml_find(node, "nodes") != NULL;
    state->has_rollout = as_yaml_find(node, "rollout") != NULL;
    check_pod_names(loader, pods);
}

static void tests_finish_state(struct loader *loader, const struct as_yaml_node *node,
                               const struct as_yaml_node *at, void *object)
{
    struct raw_state *state = object;
    state->key = at;
    take_state(loader, node, state);
    if (!schema_find_key(node, "replicas") && !state->has_pods)
        loader_report(loader, at, "`replicas` or `pods` is needed");
    if (state->replicas < 0)
        state->replicas = (int32_t)state->pod_count;
}

const struct schema schema_test_state = SCHEMA("tests.targets", raw_state, state_fields,
                                               .init = init_state, .finish = tests_finish_state);

/* --- labels --- */

static void parse_fire(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    rule_test_parse_labels(loader, value, &((struct raw_input *)object)->fire);
}

static void parse_resolve(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    rule_test_parse_labels(loader, value, &((struct raw_input *)object)->resolve);
}

static void parse_annotations(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    rule_test_parse_labels(loader, value, &((struct raw_input *)object)->annotations);
}

/* --- input --- */

#define IN_INPUT(member) offsetof(struct raw_input, member)

static const struct schema_field input_fields[] = {
    RULE_TEST_AT(raw_input),
    {.key = "fire",
     .type = SCHEMA_CUSTOM,
     .parse = parse_fire,
     .forms = rule_test_label_forms,
     .expected = "map of labels"},
    {.key = "resolve",
     .type = SCHEMA_CUSTOM,
     .parse = parse_resolve,
     .forms = rule_test_label_forms,
     .expected = "map of labels"},
    {.key = "annotations",
     .type = SCHEMA_CUSTOM,
     .parse = parse_annotations,
     .forms = rule_test_label_forms,
     .expected = "map of annotations"},
    SCHEMA_FIELD("starts", DURATION, raw_input, starts_us, .max = AS_RULE_TEST_TIME_MAX),
    SCHEMA_FIELD("every", DURATION, raw_input, every_us, .min = AS_US_PER_S),
    SCHEMA_FIELD("until", DURATION, raw_input, until_us, .max = AS_RULE_TEST_TIME_MAX),
    SCHEMA_FIELD("receiver", STRING, raw_input, receiver, .fallback = "alertscaler"),
    SCHEMA_FIELD("target", STRING, raw_input, target),
    STATE_FIELDS(IN_INPUT(state)),
    SCHEMA_FIELD("cluster", MAP, raw_input, cluster, .map = &schema_test_cluster),
    SCHEMA_FIELD("approve", STRING, raw_input, approve),
    SCHEMA_FIELD("deny", STRING, raw_input, deny),
    {0},
};

static void init_input(struct loader *loader, void *object)
{
    struct raw_input *input = object;
    input->starts_us = -1;
    input->state.replicas = -1;
}

/* `every` and `until` together say how often a firing alert is repeated. */
static void check_repeats(struct loader *loader, const struct as_yaml_node *node,
                          const struct raw_input *input)
{
    static const char *const keys[] = {"every", "until", NULL};
    const struct as_yaml_node *every = schema_find_key(node, "every");
    const struct as_yaml_node *until = schema_find_key(node, "until");
    rule_test_check_companions(loader, node, keys, schema_find_key(node, "fire") != NULL, "`fire`");
    if (!every != !until)
        loader_report(loader, every ? every : until, "`every` and `until` go together");
    else if (until && input->until_us < input->at_us)
        loader_report(loader, as_yaml_find(node, "until"), "earlier than `at`");
    else if (input->every_us > 0 &&
             (input->until_us - input->at_us) / input->every_us > REPEATS_MAX)
        loader_report(loader, as_yaml_find(node, "every"), "more than %d repeats", REPEATS_MAX);
}

static const struct schema_choice input_choices[] = {
    {SCHEMA_ONE_OF("fire", "resolve", "target", "cluster", "approve", "deny"), false}, {0}};

static void finish_input(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_node *at, void *object)
{
    static const char *const of_alerts[] = {"annotations", "starts", "receiver", NULL};
    static const char *const of_targets[] = {"replicas", "pods", "nodes", "rollout", NULL};
    struct raw_input *input = object;
    const bool is_target = as_yaml_find(node, "target") != NULL;
    const bool is_alert = schema_find_key(node, "fire") || schema_find_key(node, "resolve");
    input->node = node;
    take_state(loader, node, &input->state);
    if (!schema_has_one_of(node, input_choices->keys))
        return;
    rule_test_check_companions(loader, node, of_alerts, is_alert, "`fire` or `resolve`");
    rule_test_check_companions(loader, node, of_targets, is_target, "`target`");
    check_repeats(loader, node, input);
    if (is_target && !input->state.has_pods && !input->state.has_nodes &&
        !input->state.has_rollout && !schema_find_key(node, "replicas"))
        loader_report(loader, at, "`replicas`, `pods`, `nodes` or `rollout` is needed");
    if (input->starts_us > input->at_us)
        loader_report(loader, as_yaml_find(node, "starts"), "later than `at`");
}

const struct schema schema_test_input =
    SCHEMA("tests.input", raw_input, input_fields, .choices = input_choices, .init = init_input,
           .finish = finish_input);

/* --- queries --- */

static void tests_parse_value(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    (void)schema_parse_number(loader, value, &((struct raw_query *)object)->value);
}

static const struct schema_field sample_forms[] = {
    SCHEMA_FORM(TABLE, .max = AS_SAMPLES_MAX, .when_empty = "expected at least one pod",
                .forms = SCHEMA_FORMS(SCHEMA_FORM(NUMBER))),
    {0}};

static void parse_samples(struct loader *loader, const struct as_yaml_node *map, void *object)
{
    struct raw_query *query = object;
    if (!schema_is_kind(loader, map, AS_YAML_MAP) || !schema_check_count(loader, sample_forms, map))
        return;
    struct as_sample *samples = as_arena_alloc(loader->arena, map->count, sizeof(*samples));
    for (uint32_t i = 0; i < map->count; i++) {
        samples[i].pod = as_arena_strdup(loader->arena, map->pairs[i].key->text);
        (void)schema_parse_number(loader, map->pairs[i].value, &samples[i].value);
    }
    query->samples = samples;
    query->sample_count = map->count;
}

static const struct schema_field query_fields[] = {
    SCHEMA_FIELD("query", TEXT, raw_query, query, .is_required = true),
    SCHEMA_FIELD("at", DURATION, raw_query, at_us, .max = AS_RULE_TEST_TIME_MAX, .fallback = "0s"),
    {.key = "value",
     .type = SCHEMA_CUSTOM,
     .parse = tests_parse_value,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(NUMBER)),
     .expected = "number"},
    {.key = "pods",
     .type = SCHEMA_CUSTOM,
     .parse = parse_samples,
     .forms = sample_forms,
     .expected = "map of numbers"},
    SCHEMA_FIELD("error", STRING, raw_query, error),
    {0},
};

static void finish_query(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_node *at, void *object)
{
    ((struct raw_query *)object)->node = node;
}

static const struct schema_choice query_choices[] = {
    {SCHEMA_ONE_OF("value", "pods", "error"), false}, {0}};

const struct schema schema_test_query = SCHEMA("tests.queries", raw_query, query_fields,
                                               .choices = query_choices, .finish = finish_query);

/* --- tests and their file --- */

#define IN_TEST(member) offsetof(struct raw_test, member)
#define IN_FILE(member) offsetof(struct raw_test_file, member)

static void parse_start(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    char found[AS_YAML_FOUND_SIZE];
    if (value->kind != AS_YAML_SCALAR ||
        as_wall_time_parse(value->text, value->size, &((struct raw_test *)object)->start) != 0)
        loader_report(loader, value, "expected a time like 2020-01-01T00:00:00Z, found %s",
                      as_yaml_describe(value, found));
}

/* Names or ids of targets: ids have characters that names cannot have. */
static void parse_targets(struct loader *loader, const struct as_yaml_node *map, void *object)
{
    struct raw_test *test = object;
    if (!schema_is_kind(loader, map, AS_YAML_MAP))
        return;
    test->targets = as_arena_alloc(loader->arena, map->count, sizeof(*test->targets));
    test->target_count = map->count;
    for (uint32_t i = 0; i < map->count; i++) {
        struct raw_state *state = &test->targets[i];
        schema_fill_defaults(loader, &schema_test_state, state);
        state->key = map->pairs[i].key;
        schema_parse(loader, &schema_test_state, map->pairs[i].value, map->pairs[i].key, state);
    }
}

static const struct schema_field test_fields[] = {
    SCHEMA_FIELD("name", STRING, raw_test, name, .is_required = true),
    {.key = "start",
     .type = SCHEMA_CUSTOM,
     .parse = parse_start,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(TIME)),
     .expected = "time",
     .fallback = "2020-01-01T00:00:00Z"},
    {.key = "targets",
     .type = SCHEMA_CUSTOM,
     .is_required = true,
     .parse = parse_targets,
     .forms = SCHEMA_FORMS(
         SCHEMA_FORM(TABLE, .forms = SCHEMA_FORMS(SCHEMA_FORM(MAP, .map = &schema_test_state)))),
     .expected = "map of targets"},
    SCHEMA_FIELD("cluster", MAP, raw_test, cluster, .map = &schema_test_cluster),
    SCHEMA_FIELD("input", MAPS, raw_test, input, .count_offset = IN_TEST(input_count),
                 .map = &schema_test_input),
    SCHEMA_FIELD("queries", MAPS, raw_test, queries, .count_offset = IN_TEST(query_count),
                 .map = &schema_test_query),
    SCHEMA_FIELD("expect", MAPS, raw_test, expect, .is_required = true,
                 .count_offset = IN_TEST(expect_count), .map = &schema_test_expect,
                 .when_empty = "a test that expects nothing cannot fail"),
    {0},
};

static void finish_test(struct loader *loader, const struct as_yaml_node *node,
                        const struct as_yaml_node *at, void *object)
{
    struct raw_test *test = object;
    test->node = at;
}

const struct schema schema_test = SCHEMA("tests", raw_test, test_fields, .finish = finish_test);

static const struct schema_field file_fields[] = {
    SCHEMA_FIELD("rule_files", PATHS, raw_test_file, rule_files,
                 .count_offset = IN_FILE(rule_file_count),
                 .when_empty = "expected at least one file, found an empty list"),
    SCHEMA_FIELD("config_file", PATH, raw_test_file, config_file),
    SCHEMA_FIELD("tests", MAPS, raw_test_file, tests, .is_required = true,
                 .count_offset = IN_FILE(test_count), .map = &schema_test),
    {0},
};

static void finish_file(struct loader *loader, const struct as_yaml_node *node,
                        const struct as_yaml_node *at, void *object)
{
    const struct as_yaml_node *files = as_yaml_find(node, "rule_files");
    if (!files && !as_yaml_find(node, "config_file"))
        loader_report(loader, at, "`rule_files` or `config_file` is needed");
}

const struct schema schema_test_file = {
    .name = "test file",
    .size = sizeof(struct raw_test_file),
    .fields = file_fields,
    .finish = finish_file,
    .refusals =
        (const struct schema_refusal[]){
            {"evaluation_interval", "time goes from one event to the next, not in intervals",
             false},
            {"group_eval_order", "all rules are applied together, in no order", false},
            {"rules", "a file of tests has none: rules stand in the files of `rule_files`", false},
            {"targets", "this looks like a rule file: `alertscaler check` reads those", false},
            {0},
        },
};

struct test_loading {
    struct as_yaml_tree *tree;
    char *folder;
    struct rule_files files;
};

static void test_loading_deinit(struct test_loading *loading)
{
    as_yaml_free(loading->tree);
    rule_files_deinit(&loading->files);

    free(loading->folder);
}

/* False: there are no rules to check against. */
static bool tests_load_config(struct test_loading *loading, struct loader *loader,
                              const struct raw_test_file *file, struct as_config **config_out)
{
    const struct as_yaml_node *list = as_yaml_find(as_yaml_get_root(loading->tree), "rule_files");
    for (uint32_t i = 0; list && list->kind == AS_YAML_LIST && i < list->count; i++)
        rule_files_expand(&loading->files, loader, list->items[i]);
    const char *const *names = (const char *const *)loading->files.names;
    int status;
    if (list && loading->files.count == 0) {
        if (!loader->diagnostics->has_error)
            loader_report(loader, list, "no file matches any of these: there are no rules to test");
        return false;
    }
    if (!file->config_file)
        status = as_config_load_rules(names, loading->files.count, config_out, loader->diagnostics);
    else if (list)
        status = as_config_load_with_rules(file->config_file, names, loading->files.count,
                                           config_out, loader->diagnostics);
    else
        status = as_config_load(file->config_file, config_out, loader->diagnostics);
    return status == AS_CONFIG_OK;
}

static void make_tests(struct as_rule_tests *tests, const struct raw_test_file *file)
{
    tests->tests = as_arena_alloc(&tests->arena, file->test_count, sizeof(*tests->tests));
    tests->test_count = file->test_count;
    for (size_t i = 0; i < file->test_count; i++)
        rule_test_make_events(&tests->arena, &file->tests[i], &tests->tests[i]);
}

int as_rule_tests_load(const char *path, struct as_rule_tests **tests_out,
                       struct as_diagnostics *diagnostics)
{
    AS_CLEANUP(test_loading_deinit) struct test_loading loading = {0};
    AS_CLEANUP(as_rule_tests_free_p) struct as_rule_tests *tests = NULL;
    int status = as_yaml_input_load(path, diagnostics, &loading.tree);
    if (status < 0)
        return status == -EINVAL || status == -EFBIG ? AS_CONFIG_INVALID : status;
    tests = as_xcalloc(1, sizeof(*tests));
    tests->path = as_xstrdup(path);
    loading.folder = rule_files_copy_folder(path);
    struct loader loader = {
        .tree = loading.tree,
        .diagnostics = diagnostics,
        .arena = &tests->arena,
        .folder = loading.folder,
    };
    struct raw_test_file file = {0};
    const struct as_yaml_node *root = as_yaml_get_root(loading.tree);
    schema_parse(&loader, &schema_test_file, root, root, &file);
    if (tests_load_config(&loading, &loader, &file, &tests->config)) {
        for (size_t i = 0; i < file.test_count; i++)
            rule_test_check_names(&loader, &file.tests[i], tests->config->ruleset);
    }
    if (diagnostics->has_error)
        return AS_CONFIG_INVALID;
    make_tests(tests, &file);
    *tests_out = tests;
    tests = NULL;
    return AS_CONFIG_OK;
}

struct as_rule_tests *as_rule_tests_free(struct as_rule_tests *tests)
{
    if (!tests)
        return NULL;
    for (size_t i = 0; i < tests->test_count; i++) {
        const struct as_rule_test *test = &tests->tests[i];
        for (size_t j = 0; j < test->event_count; j++) {
            as_labels_free(test->events[j].alert.labels);
            as_labels_free(test->events[j].alert.annotations);
        }
    }
    as_config_free(tests->config);
    as_arena_deinit(&tests->arena);
    free(tests->path);
    free(tests);
    return NULL;
}

const char *as_rule_test_get_outcome_word(bool is_queued, enum as_reason outcome)
{
    return is_queued ? test_outcomes[0] : as_reason_get_word(outcome);
}
