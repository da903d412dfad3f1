/*
 * The tables of `targets.<name>` and of `defaults`: both have the keys of a target's policy.
 */
#include <string.h>

#include <alertscaler/base/time.h>

#include "rule_parts.h"
#include "schema_writer.h"

#define IN_TARGET(member) offsetof(struct raw_target, member)

static void parse_down_after_down(struct loader *loader, const struct as_yaml_node *value,
                                  void *object)
{
    const struct schema_field field = {.type = SCHEMA_DURATION};
    struct as_cooldown *cooldown = object;
    cooldown->has_down_after_down =
        schema_parse_scalar(loader, &field, value, &cooldown->down_after_down_us);
}

static const struct schema_field cooldown_fields[] = {
    SCHEMA_FIELD("up", DURATION, as_cooldown, up_us, .fallback = "3m"),
    SCHEMA_FIELD("down", DURATION, as_cooldown, down_us, .fallback = "5m"),
    SCHEMA_FIELD("up_after_down", DURATION, as_cooldown, up_after_down_us, .fallback = "0s"),
    {.key = "down_after_down",
     .type = SCHEMA_CUSTOM,
     .parse = parse_down_after_down,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(DURATION)),
     .expected = "duration"},
    {0},
};

static const struct schema cooldown = SCHEMA("cooldown", as_cooldown, cooldown_fields);

/* HPA's `behavior` */

struct raw_policy {
    unsigned type;
    int32_t value, period_s;
};

struct raw_direction {
    int32_t window_s;
    unsigned select;
    struct raw_policy *policies;
    size_t policy_count;
};

struct raw_behavior {
    struct raw_direction up, down;
};

static const struct schema_field policy_fields[] = {
    SCHEMA_FIELD("type", WORD, raw_policy, type, .is_required = true,
                 .words = (const char *const[]){"Pods", "Percent", NULL}),
    SCHEMA_FIELD("value", INT, raw_policy, value, .is_required = true, .min = 1,
                 .max = AS_SIZE_MAX),
    SCHEMA_FIELD("periodSeconds", INT, raw_policy, period_s, .is_required = true, .min = 1,
                 .max = 1800),
    {0},
};

static const struct schema policies = SCHEMA("behavior.policies", raw_policy, policy_fields);

#define DIRECTION_FIELDS(window)                                                                   \
    {                                                                                              \
        {.key = "stabilizationWindowSeconds",                                                      \
         .type = SCHEMA_INT,                                                                       \
         .offset = offsetof(struct raw_direction, window_s),                                       \
         .min = 0,                                                                                 \
         .max = 3600,                                                                              \
         .fallback = (window)},                                                                    \
            {.key = "selectPolicy",                                                                \
             .type = SCHEMA_WORD,                                                                  \
             .offset = offsetof(struct raw_direction, select),                                     \
             .words = (const char *const[]){"Max", "Min", "Disabled", NULL},                       \
             .fallback = "Max"},                                                                   \
            {.key = "policies",                                                                    \
             .type = SCHEMA_MAPS,                                                                  \
             .offset = offsetof(struct raw_direction, policies),                                   \
             .count_offset = offsetof(struct raw_direction, policy_count),                         \
             .max = AS_POLICIES_MAX,                                                               \
             .when_empty = "expected at least one policy, found an empty list",                    \
             .map = &policies},                                                                    \
            {0},                                                                                   \
    }

static const struct schema_refusal direction_refusals[] = {
    {"tolerance", "the target's own key `tolerance` takes the place of this one", false},
    {0},
};

static const struct schema_field up_fields[] = DIRECTION_FIELDS("0");
static const struct schema_field down_fields[] = DIRECTION_FIELDS("300");

static const struct schema scale_up =
    SCHEMA("behavior.scaleUp", raw_direction, up_fields, .refusals = direction_refusals);

static const struct schema scale_down =
    SCHEMA("behavior.scaleDown", raw_direction, down_fields, .refusals = direction_refusals);

static const struct schema_field behavior_fields[] = {
    SCHEMA_FIELD("scaleUp", MAP, raw_behavior, up, .map = &scale_up),
    SCHEMA_FIELD("scaleDown", MAP, raw_behavior, down, .map = &scale_down),
    {0},
};

static const struct schema behavior = SCHEMA("behavior", raw_behavior, behavior_fields);

static void convert_direction(const struct raw_direction *raw, struct as_scaling_rules *rules)
{
    rules->window_us = raw->window_s * AS_US_PER_S;
    rules->select = (enum as_select_policy)raw->select;
    if (!raw->policies)
        return; /* keeps the default list */
    rules->policy_count = (uint32_t)raw->policy_count;
    for (size_t i = 0; i < raw->policy_count; i++)
        rules->policies[i] = (struct as_policy){
            .type = (enum as_policy_type)raw->policies[i].type,
            .value = raw->policies[i].value,
            .period_us = raw->policies[i].period_s * AS_US_PER_S,
        };
}

static void parse_behavior(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct as_target_defaults *policy = object;
    struct raw_behavior raw = {0};
    schema_fill_defaults(loader, &behavior, &raw);
    schema_parse(loader, &behavior, value, value, &raw);
    policy->bounds.has_behavior = true;
    policy->bounds.behavior = as_behavior_default;
    convert_direction(&raw.up, &policy->bounds.behavior.up);
    convert_direction(&raw.down, &policy->bounds.behavior.down);
}

/* `tolerance`: a percentage, or one for each direction */

struct raw_tolerance {
    int64_t up, down; /* thousandths of a percent */
};

static const struct schema_field tolerance_fields[] = {
    SCHEMA_FIELD("up", PERCENT, raw_tolerance, up, .max = 100000, .fallback = "10%"),
    SCHEMA_FIELD("down", PERCENT, raw_tolerance, down, .max = 100000, .fallback = "10%"),
    {0},
};

static const struct schema tolerance = SCHEMA("tolerance", raw_tolerance, tolerance_fields);

static void parse_tolerance(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct as_target_defaults *policy = object;
    const double unit = 100000;
    if (value->kind == AS_YAML_MAP) {
        struct raw_tolerance raw = {0};
        schema_parse(loader, &tolerance, value, value, &raw);
        if (as_yaml_find(value, "up"))
            policy->bounds.tolerance_up = (double)raw.up / unit;
        if (as_yaml_find(value, "down"))
            policy->bounds.tolerance_down = (double)raw.down / unit;
        return;
    }
    int64_t milli_percent = 0;
    if (schema_parse_percent(loader, value, 0, 100000, &milli_percent))
        policy->bounds.tolerance_up = policy->bounds.tolerance_down = (double)milli_percent / unit;
}

static const struct schema_field shared_fields[] = {
    SCHEMA_FIELD("min", INT, as_target_defaults, bounds.min, .min = 0, .max = AS_SIZE_MAX,
                 .fallback = "1"),
    SCHEMA_FIELD("cooldown", MAP, as_target_defaults, bounds.cooldown, .map = &cooldown),
    {.key = "behavior",
     .type = SCHEMA_CUSTOM,
     .parse = parse_behavior,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(MAP, .map = &behavior)),
     .expected = "map"},
    SCHEMA_FIELD("enforce_bounds", BOOL, as_target_defaults, bounds.enforce_bounds,
                 .fallback = "false"),
    {.key = "tolerance",
     .type = SCHEMA_CUSTOM,
     .parse = parse_tolerance,
     .forms =
         SCHEMA_FORMS(SCHEMA_FORM(PERCENT, .max = 100000), SCHEMA_FORM(MAP, .map = &tolerance)),
     .expected = "percentage or map",
     .fallback = "10%"},
    SCHEMA_FIELD("cpu_initialization", DURATION, as_target_defaults, bounds.cpu_initialization_us,
                 .fallback = "5m"),
    SCHEMA_FIELD("initial_readiness_delay", DURATION, as_target_defaults,
                 bounds.initial_readiness_delay_us, .fallback = "30s"),
    {.key = "approval",
     .type = SCHEMA_CUSTOM,
     .parse = parse_target_approval,
     .forms = schema_approval_forms,
     .expected = "map or `none`"},
    SCHEMA_FIELD("dry_run", BOOL, as_target_defaults, dry_run, .fallback = "false"),
    SCHEMA_FIELD("ready_timeout", DURATION, as_target_defaults, ready_timeout_us,
                 .min = AS_US_PER_S),
    {0},
};

const struct schema schema_policy = {
    .name = "defaults",
    .size = sizeof(struct as_target_defaults),
    .fields = shared_fields,
    .refusals =
        (const struct schema_refusal[]){
            {"max", "every target names its own `max`", false},
            {0},
        },
};

/* What alerts may select of an address */

#define ALLOW_FIELD(word, list)                                                                    \
    SCHEMA_FIELD(word, STRINGS, raw_allow, lists[list],                                            \
                 .count_offset = offsetof(struct raw_allow, counts[list]))

static const struct schema_field allow_fields[] = {
    ALLOW_FIELD("clusters", AS_ALLOW_CLUSTERS),
    ALLOW_FIELD("apiVersions", AS_ALLOW_API_VERSIONS),
    ALLOW_FIELD("kinds", AS_ALLOW_KINDS),
    ALLOW_FIELD("namespaces", AS_ALLOW_NAMESPACES),
    ALLOW_FIELD("names", AS_ALLOW_NAMES),
    ALLOW_FIELD("urls", AS_ALLOW_URLS),
    {0},
};

static const struct schema allow = SCHEMA("allow", raw_allow, allow_fields);

static const struct schema_field target_fields[] = {
    SCHEMA_FIELD("nodes", MAP, raw_target, nodes, .map = &target_nodes),
    SCHEMA_FIELD("pool", MAP, raw_target, pool, .map = &target_pool),
    SCHEMA_FIELD("max", INT, raw_target, policy.bounds.max, .is_required = true, .min = 1,
                 .max = AS_SIZE_MAX),
    SCHEMA_FIELD("allow", MAP, raw_target, allow, .map = &allow),
    SCHEMA_FIELD("after", STRINGS, raw_target, after, .count_offset = IN_TARGET(after_count)),
    SCHEMA_FIELD("schedules", MAPS, raw_target, schedules,
                 .count_offset = IN_TARGET(schedule_count), .max = AS_SCHEDULES_MAX,
                 .map = &target_schedules),
    {0},
};

static void init_target(struct loader *loader, void *object)
{
    struct raw_target *target = object;
    if (loader->defaults)
        target->policy = *loader->defaults;
}

static void finish_target(struct loader *loader, const struct as_yaml_node *node,
                          const struct as_yaml_node *at, void *object)
{
    struct raw_target *target = object;
    const struct as_bounds_config *bounds = &target->policy.bounds;
    target->tree = loader->tree;
    target->key = at;
    target->node = node;
    const char *words[AS_TARGET_KINDS_MAX + 1] = {NULL};
    for (size_t i = 0; as_target_kinds[i]; i++)
        words[i] = as_target_kinds[i]->word;
    (void)schema_check_choice(loader, node, at, &(struct schema_choice){words, false});
    if (!target->kind && as_yaml_find(node, "pool"))
        target->kind = &as_target_kind_pool;
    if (!as_target_kind_has_groups(target->kind) && bounds->max > 0 && bounds->min > bounds->max)
        loader_report(loader, as_yaml_find(node, "max"), "`max` %d is below `min` %d", bounds->max,
                      bounds->min);
    const struct as_yaml_node *timeout = schema_find_key(node, "ready_timeout");
    if (timeout && target->kind && !target->kind->has_pods)
        loader_report(loader, timeout, "`ready_timeout` waits for pods, and %s has none%s",
                      target->kind->title,
                      target->kind->has_nodes ? ": its instances have `nodes.ready_timeout`" : "");
}

/* The address, under the word of its kind */

static void report_unknown_key(struct loader *loader, const struct as_target_kind *kind,
                               const struct as_yaml_node *key)
{
    char found[AS_YAML_FOUND_SIZE], hint[SUGGESTION_SIZE];
    struct suggestion suggestion = suggestion_start(key->text);
    for (const struct as_address_key *row = kind->keys; row->is_valid; row++)
        suggestion_offer(&suggestion, row->key); /* a row for all others knows every key */
    loader_report(loader, key, "unknown key %s%s", as_yaml_describe(key, found),
                  suggestion_print(&suggestion, hint));
}

static bool parse_value(struct loader *loader, const struct as_address_key *row,
                        const struct as_yaml_node *value, const char **text_out)
{
    int64_t number;
    return (!row->is_number || schema_parse_i64(loader, value, 0, AS_SIZE_MAX, &number)) &&
           schema_parse_string(loader, value, text_out);
}

/* Texts only: their values are checked once the configuration is known. Keys without a row are read
 * from the map then, so the map is unusable if a value is no text. */
static void parse_address(struct loader *loader, const struct as_target_kind *kind,
                          const struct as_yaml_node *map, struct raw_target *target)
{
    bool is_readable = true;
    target->kind = kind;
    if (!schema_is_kind(loader, map, AS_YAML_MAP))
        return;
    for (size_t i = 0; kind->keys[i].is_valid; i++)
        target->values[i] = kind->keys[i].fallback;
    for (uint32_t i = 0; i < map->count; i++) {
        const struct as_yaml_pair *pair = &map->pairs[i];
        const struct as_address_key *row = as_target_kind_find_key(kind, pair->key->text);
        if (!row)
            report_unknown_key(loader, kind, pair->key);
        else if (!parse_value(loader, row, pair->value, &target->values[row - kind->keys]))
            is_readable = is_readable && row->key;
    }
    for (const struct as_address_key *row = kind->keys; row->is_valid; row++) {
        if (row->is_required && !as_yaml_find(map, row->key))
            loader_report(loader, map, "key `%s` is missing", row->key);
    }
    const struct as_address_key *owner = as_target_kind_find_key(kind, kind->owner);
    if (is_readable && target->values[owner - kind->keys])
        target->address = map;
}

/* The first of two addresses counts; two are an error. */
static bool take_address(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_pair *pair, void *object)
{
    struct raw_target *target = object, other = {0};
    const struct as_target_kind *kind = as_target_kind_find(pair->key->text);
    if (kind)
        parse_address(loader, kind, pair->value, target->kind ? &other : target);
    return kind;
}

static void offer_kinds(struct suggestion *suggestion)
{
    for (size_t i = 0; as_target_kinds[i]; i++)
        suggestion_offer(suggestion, as_target_kinds[i]->word);
}

/* Other programs' names for these keys. */
static const struct schema_refusal target_refusals[] = {
    {"coolDown", "it is called `cooldown` here: `cooldown: {up: 3m, down: 5m}`", false},
    {"cooldownPeriod", "it is called `cooldown` here: `cooldown: {up: 3m, down: 5m}`", false},
    {"maxReplicas", "it is called `max` here", false},
    {"maxReplicaCount", "it is called `max` here", false},
    {"max_size", "it is called `max` here", false},
    {"maxSize", "it is called `max` here", false},
    {"minReplicas", "it is called `min` here", false},
    {"minReplicaCount", "it is called `min` here", false},
    {"min_size", "it is called `min` here", false},
    {"minSize", "it is called `min` here", false},
    {"scaleTargetRef",
     "it is called `kubernetes` here: `kubernetes: {kind: Deployment, namespace: shop, name: web}`",
     false},
    {0},
};

const struct schema schema_target =
    SCHEMA("target", raw_target, target_fields, .base = &schema_policy,
           .base_offset = IN_TARGET(policy), .refusals = target_refusals, .other = take_address,
           .describe_keys = json_schema_describe_addresses,
           .describe_map = json_schema_describe_address_choice, .offer_other = offer_kinds,
           .init = init_target, .finish = finish_target);

const struct schema *const schema_target_parts[] = {
    &cooldown,     &behavior,     &scale_up,         &scale_down,     &policies,
    &tolerance,    &target_nodes, &nodes_template,   &nodes_taints,   &nodes_unneeded,
    &target_pool,  &pool_cpu,     &pool_memory,      &pool_pod_price, &pool_at_once,
    &nodes_health, &allow,        &target_schedules, &rule_approval,  NULL,
};
