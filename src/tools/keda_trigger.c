/*
 * KEDA's triggers: prometheus, cpu and memory become rules. Of the others the list says what to do:
 * their numbers must come into Prometheus first.
 */
#include "convert_keda.h"

#include <string.h>

#include <alertscaler/base/str.h>

#include "convert_hpa.h"

/* --- tables --- */

static void keep_metadata(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    if (schema_is_kind(loader, value, AS_YAML_MAP))
        ((struct raw_trigger *)object)->metadata = value;
}

static void hint_credentials(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    (void)object;
    if (!as_yaml_is_null(value))
        convert_hint(convert_of(loader), value,
                     "how Prometheus is asked, and as whom, says `prometheus.http_config` in "
                     "alertscaler.yaml");
}

static void skip(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    (void)loader;
    (void)value;
    (void)object;
}

static void finish_trigger(struct loader *loader, const struct as_yaml_node *node,
                           const struct as_yaml_node *at, void *object)
{
    (void)loader;
    (void)at;
    ((struct raw_trigger *)object)->node = node;
}

static const struct schema_field trigger_fields[] = {
    SCHEMA_FIELD("type", STRING, raw_trigger, type, .is_required = true),
    SCHEMA_FIELD("name", STRING, raw_trigger, name),
    SCHEMA_FIELD("metricType", STRING, raw_trigger, metric_type),
    {.key = "metadata", .type = SCHEMA_CUSTOM, .is_required = true, .parse = keep_metadata},
    {.key = "authenticationRef", .type = SCHEMA_CUSTOM, .parse = hint_credentials},
    {.key = "useCachedMetrics", .type = SCHEMA_CUSTOM, .parse = skip},
    {0},
};
const struct schema keda_trigger = SCHEMA("trigger", raw_trigger, trigger_fields,
                                          .other = convert_lose_key, .finish = finish_trigger);

static const struct schema_field prometheus_fields[] = {
    SCHEMA_FIELD("serverAddress", STRING, raw_trigger_data, server, .is_required = true),
    SCHEMA_FIELD("query", TEXT, raw_trigger_data, query, .is_required = true),
    SCHEMA_FIELD("threshold", QUERY, raw_trigger_data, threshold, .is_required = true),
    SCHEMA_FIELD("activationThreshold", QUERY, raw_trigger_data, activation),
    SCHEMA_FIELD("ignoreNullValues", STRING, raw_trigger_data, ignore_null, .fallback = "true"),
    {.key = "metricName", .type = SCHEMA_CUSTOM, .parse = skip}, /* of KEDA 2.9 and older */
    {.key = "authModes", .type = SCHEMA_CUSTOM, .parse = hint_credentials},
    {.key = "unsafeSsl", .type = SCHEMA_CUSTOM, .parse = hint_credentials},
    {.key = "customHeaders", .type = SCHEMA_CUSTOM, .parse = hint_credentials},
    {.key = "timeout", .type = SCHEMA_CUSTOM, .parse = skip}, /* prometheus.timeout */
    {0},
};
static const struct schema prometheus_table =
    SCHEMA("prometheus", raw_trigger_data, prometheus_fields, .other = convert_lose_key);

static const struct schema_field resource_fields[] = {
    SCHEMA_FIELD("type", STRING, raw_trigger_data, type),
    SCHEMA_FIELD("value", QUERY, raw_trigger_data, value, .is_required = true),
    SCHEMA_FIELD("containerName", STRING, raw_trigger_data, container),
    {.key = "activationValue", .type = SCHEMA_CUSTOM, .parse = skip}, /* the size is never 0 */
    {0},
};
static const struct schema resource_table =
    SCHEMA("cpu", raw_trigger_data, resource_fields, .other = convert_lose_key);

bool keda_trigger_is_resource(const struct raw_trigger *trigger)
{
    return trigger->type &&
           (strcmp(trigger->type, "cpu") == 0 || strcmp(trigger->type, "memory") == 0);
}

/* False: an error was reported. */
static bool read_data(struct convert *convert, const struct schema *table,
                      const struct raw_trigger *trigger, struct raw_trigger_data *data)
{
    const size_t errors = convert_count_errors(convert);
    schema_fill_defaults(&convert->loader, table, data);
    schema_parse(&convert->loader, table, trigger->metadata, trigger->metadata, data);
    return convert_count_errors(convert) == errors;
}

static const char *const goal_words[] = {
    [AS_GOAL_VALUE] = "Value",
    [AS_GOAL_AVERAGE_VALUE] = "AverageValue",
    [AS_GOAL_UTILIZATION] = "Utilization",
};

static bool read_goal(struct convert *convert, const struct raw_trigger *trigger, const char *word,
                      enum as_goal *goal_out)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(goal_words); i++) {
        if (strcmp(goal_words[i], word) == 0) {
            *goal_out = (enum as_goal)i;
            return true;
        }
    }
    loader_report(&convert->loader, trigger->node,
                  "expected `metricType` Value, AverageValue or Utilization");
    return false;
}

/* --- cpu and memory --- */

static void add_resource(struct convert *convert, struct plan_target *target,
                         const struct raw_trigger *trigger)
{
    struct raw_trigger_data data = {.query = NULL};
    enum as_goal goal;
    int64_t milli = 0;
    if (!read_data(convert, &resource_table, trigger, &data))
        return;
    const char *word = trigger->metric_type ? trigger->metric_type : data.type;
    if (!read_goal(convert, trigger, word ? word : goal_words[AS_GOAL_UTILIZATION], &goal) ||
        !convert_parse_goal(convert, data.value, &milli))
        return;
    if (goal == AS_GOAL_VALUE || (goal == AS_GOAL_UTILIZATION && milli % 1000 != 0))
        loader_report(&convert->loader, data.value,
                      "expected whole percents of `Utilization`, or an `AverageValue`");
    else
        hpa_add_resource(convert, target, trigger->node, trigger->type, data.container, goal,
                         milli);
}

/* --- prometheus --- */

/* alertscaler asks one Prometheus. */
static void check_server(struct convert *convert, const struct raw_trigger *trigger,
                         const char *server)
{
    if (!convert->server) {
        convert->server = server;
        convert_hint(convert, trigger->node,
                     "alertscaler.yaml says where Prometheus is: "
                     "`prometheus: {url: '%.200s'}`",
                     server);
    } else if (strcmp(convert->server, server) != 0) {
        convert_lose(
            convert, trigger->node,
            "the Prometheus at %.200s: alertscaler asks one, and another ScaledObject names "
            "%.200s. Convert them apart, for two alertscalers, or ask one that has both",
            server, convert->server);
    }
}

/* A number as PromQL writes it; false: an error was reported. */
static bool read_activation(struct convert *convert, const struct as_yaml_node *node,
                            int64_t *milli_out)
{
    char found[AS_YAML_FOUND_SIZE];
    if (!node || as_quantity_parse_scaled(node->text, node->size, 3, false, milli_out) == 0)
        return true;
    loader_report(&convert->loader, node, "expected a number, such as 5 or 0.5, found %s",
                  as_yaml_describe(node, found));
    return false;
}

/* As KEDA sees a value: up to the activation it is no work; with `idleReplicaCount` any work is
 * work for the least size. */
static const char *make_query(struct convert *convert, const struct keda_floor *floor,
                              const char *query, int64_t activation, int64_t milli)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT((size_t)1 << 20);
    if (!floor->is_zero || (activation == 0 && floor->min == 0))
        return query;
    if (floor->min > 0) {
        as_buf_printf(&out, "clamp_min(%s, ", query);
        yaml_append_milli(&out, milli * floor->min);
        as_buf_append_char(&out, ')');
    } else {
        as_buf_printf(&out, "(%s)", query);
    }
    as_buf_printf(&out, " * ((%s) > bool ", query);
    yaml_append_milli(&out, activation);
    as_buf_append_char(&out, ')');
    return as_buf_check(&out) < 0 ? NULL : as_arena_strdup(&convert->arena, out.data);
}

static const char *find_query(struct convert *convert, const struct raw_trigger *trigger,
                              const struct raw_trigger_data *data, const struct keda_floor *floor,
                              enum as_goal goal, int64_t milli)
{
    struct keda_floor taken = *floor;
    const struct as_yaml_node *node = as_yaml_find(trigger->metadata, "query");
    const char *why = NULL;
    int64_t activation = 0;
    if (!read_activation(convert, data->activation, &activation))
        return NULL;
    if (floor->min > 0 && (goal == AS_GOAL_VALUE || milli > AS_QUANTITY_SCALED_MAX / floor->min)) {
        convert_lose(
            convert, trigger->node,
            "`minReplicaCount` above `idleReplicaCount` with `metricType: Value`: the rule "
            "goes down to `idleReplicaCount`. Put a floor into its query");
        taken.min = 0;
    }
    const char *query = promql_protect(convert, data->query, &why);
    query = query ? make_query(convert, &taken, query, activation, milli) : NULL;
    query = query ? promql_protect(convert, query, &why) : NULL;
    if (!query)
        loader_report(&convert->loader, node, "not a query: %s", why ? why : "it is too long");
    return query;
}

static void add_prometheus(struct convert *convert, struct plan_target *target,
                           const struct raw_trigger *trigger, const struct keda_floor *floor)
{
    struct raw_trigger_data data = {.query = NULL};
    enum as_goal goal = AS_GOAL_AVERAGE_VALUE;
    int64_t milli = 0;
    if (!read_data(convert, &prometheus_table, trigger, &data) ||
        (trigger->metric_type && !read_goal(convert, trigger, trigger->metric_type, &goal)) ||
        !convert_parse_goal(convert, data.threshold, &milli))
        return;
    if (goal == AS_GOAL_UTILIZATION) {
        loader_report(&convert->loader, trigger->node,
                      "a trigger of type prometheus has no `metricType: Utilization`");
        return;
    }
    const char *query = find_query(convert, trigger, &data, floor, goal, milli);
    if (!query)
        return;
    check_server(convert, trigger, data.server);
    if (strcmp(data.ignore_null, "false") != 0)
        convert_hint(convert, trigger->node,
                     "no data is 0 to KEDA (`ignoreNullValues`), and here it keeps the size. For 0 "
                     "write `or vector(0)` behind the query");
    struct plan_rule *rule =
        plan_add_rule(convert, target, trigger->name ? trigger->name : "prometheus");
    rule->about =
        convert_text(convert, "prometheus trigger, %s", convert_origin(convert, trigger->node));
    rule->goal = goal;
    rule->milli = milli;
    rule->query = query;
}

/* --- all others --- */

static const struct {
    const char *type, *advice;
} others[] = {
    {"external", "bring its number into Prometheus, and track it with a query"},
    {"external-push", "bring its number into Prometheus, and track it with a query"},
    {"kafka", "track the exporter's number, such as "
              "sum(kafka_consumergroup_lag{consumergroup=\"x\"})"},
    {"rabbitmq", "track the exporter's number, such as sum(rabbitmq_queue_messages_ready"
                 "{queue=\"x\"})"},
    {"kubernetes-workload", "track the number of pods, such as count(kube_pod_info"
                            "{created_by_name=~\"x-.*\"})"},
};

static void lose_trigger(struct convert *convert, const struct raw_trigger *trigger)
{
    const char *advice = "track the number of its exporter, which Prometheus scrapes, with a query";
    for (size_t i = 0; i < AS_ARRAY_SIZE(others); i++) {
        if (strcmp(others[i].type, trigger->type) == 0)
            advice = others[i].advice;
    }
    convert_lose(convert, trigger->node, "the trigger of type `%.60s`: %s", trigger->type, advice);
}

void keda_add_trigger(struct convert *convert, struct plan_target *target,
                      const struct raw_trigger *trigger, const struct keda_floor *floor)
{
    if (keda_trigger_is_resource(trigger))
        add_resource(convert, target, trigger);
    else if (strcmp(trigger->type, "prometheus") == 0)
        add_prometheus(convert, target, trigger, floor);
    else if (strcmp(trigger->type, "cron") == 0)
        keda_add_cron(convert, target, trigger);
    else
        lose_trigger(convert, trigger);
}
