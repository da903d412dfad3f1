/*
 * The tables that refer to each other over several files, and rule files before their names are
 * resolved.
 *
 * Long because the structs that these tables fill stand together.
 */
#ifndef ALERTSCALER_RULES_TABLES_H
#define ALERTSCALER_RULES_TABLES_H

#include <alertscaler/cluster/node_health.h>
#include <alertscaler/cluster/node_template.h>
#include <alertscaler/decide/ruleset.h>
#include <alertscaler/rules/provider_kind.h>
#include <alertscaler/rules/settings.h>

#include <alertscaler/doc/schema.h>

struct raw_allow {
    const char **lists[AS_ALLOW_COUNT];
    size_t counts[AS_ALLOW_COUNT];
    struct raw_list {
        const char *selector; /* as in as_target_config */
    } list;
};

struct raw_unneeded {
    struct as_unneeded_config of;
    int64_t below; /* thousandths of a percent */
};

struct raw_pod_price {
    double cpu, memory;
};

struct raw_at_once {
    int32_t empty, drain;
};

struct raw_pool {
    struct as_pool_config of; /* without what follows */
    const char **groups, **ignore_labels;
    size_t group_count, ignore_label_count;
    struct raw_pod_price pod_price;
    struct raw_at_once at_once;
};

struct raw_nodes {
    const char *cluster;
    const char *select; /* as in as_nodes_config; NULL: not given */
    unsigned choose;    /* an as_choose_strategy */
    unsigned drain;     /* an as_nodes_drain */
    int64_t drain_after_us, drain_timeout_us, grace_us, ready_timeout_us;
    struct as_node_template_config template_; /* in the loader's arena */
    const char **startup_taints;
    size_t startup_taint_count;
    unsigned pending; /* an as_nodes_pending */
    int32_t priority;
    double price; /* -1: not given */
    struct raw_unneeded unneeded;
    struct as_node_health_config health;
};

enum raw_schedule_time { RAW_SCHEDULE_NONE, RAW_SCHEDULE_WALL_TIME, RAW_SCHEDULE_MOMENT };

struct raw_schedule {
    const char *name, *timezone;
    const struct as_yaml_node *node;
    enum raw_schedule_time from, to;
    struct as_schedule of; /* without name and zone */
};

struct raw_rule;

/* `targets.<name>`, as written; `tree` belongs to its nodes. */
struct raw_target {
    const char *name;
    const struct as_yaml_tree *tree;
    const struct as_yaml_node *key, *node;
    struct as_target_defaults policy;
    const struct as_target_kind *kind;      /* NULL: not given */
    const struct as_yaml_node *address;     /* the map under the kind's word; NULL: unusable */
    const char *values[AS_TARGET_KEYS_MAX]; /* of the kind's own keys; NULL: not given */
    struct raw_nodes nodes;
    struct raw_pool pool;
    struct raw_allow allow;
    const char **after;
    size_t after_count;
    struct raw_schedule *schedules;
    size_t schedule_count;
    const struct raw_rule *measured[AS_RESOURCE_COUNT]; /* first rule to track each */
    bool has_address;                                   /* valid, without templates */
    const struct raw_rule *rule; /* the first rule that names it; NULL: none */
    uint32_t number;             /* its index in the rule set */
};

/* Queries stay nodes: they are compiled once everything is read. */
struct raw_source {
    const char *annotation, *label;
    const struct as_yaml_node *query;
    enum as_nodes_word nodes;
    bool per_pod;
    const char *pod_label;
};

struct raw_rule {
    const struct as_yaml_tree *tree;
    const struct as_yaml_node *node;
    const char *name;
    const struct as_yaml_node *match;
    bool is_always;
    const char **receivers;
    size_t receiver_count;
    const char *target;
    struct as_action action; /* its steps are in the loader's arena */
    struct raw_source source;
    const struct as_yaml_node *resource; /* of `of`; NULL: no utilization */
    enum as_guard_kind guard_kind;
    const struct as_yaml_node *guard; /* a query */
    bool has_ending;                  /* on_resolved is given, and not `nothing` */
    struct as_ending ending;
    int64_t every_us;
    int32_t max_steps;
    int32_t ineffective_after; /* 0: not given */
    unsigned hold;             /* a word: down, up, both */
    struct as_fallback fallback;
    bool once, dry_run, enabled;
    bool has_approval; /* it is given; `none` is not set */
    struct as_approval_config approval;
};

struct raw_rule_file {
    struct raw_target *targets;
    size_t target_count;
    struct raw_rule *rules;
    size_t rule_count;
};

extern const struct schema schema_settings, schema_http_config, schema_provider, schema_policy,
    schema_target, schema_rule, schema_rule_file, schema_receiver, schema_web, schema_notify,
    schema_objects;

/* Keys of `http_config` that stand beside the URL in Prometheus' files. */
extern const struct schema_refusal schema_http_refusals[];

/* The tables used only by those above; end with NULL. */
extern const struct schema *const schema_http_parts[],
    *const schema_settings_parts[], *const schema_object_parts[],
                                        *const schema_notify_parts[],
                                            *const schema_receiver_parts[],
                                                *const schema_target_parts[],
                                                    *const schema_web_parts[],
                                                        *const schema_rule_parts[];

/* The labels of a map, "k=v,..." ascending; NULL after a report (targets.c). */
const char *parse_label_map(struct loader *loader, const struct as_yaml_node *value);
#define LABEL_MAP_MAX 16
#define LABEL_MAP_FORMS                                                                            \
    SCHEMA_FORMS(SCHEMA_FORM(TABLE, .max = LABEL_MAP_MAX,                                          \
                             .forms = SCHEMA_FORMS(SCHEMA_LABEL_VALUE, SCHEMA_LABEL_KEY)))

/* `parse` of `approval`; `object` is the target's policy, or the rule (approval.c). */
void parse_target_approval(struct loader *loader, const struct as_yaml_node *value, void *object);
void parse_rule_approval(struct loader *loader, const struct as_yaml_node *value, void *object);

/* Tables and forms of values, for keys that several tables have. */
extern const struct schema rule_approval;
extern const struct schema_field schema_matcher_list[], schema_approval_forms[];

/* A list of matchers, not empty; their texts are checked when they are compiled. */
bool check_matcher_list(struct loader *loader, const struct as_yaml_node *value);

/* The error for a node that should be a list of matchers; shows the list. */
void report_no_matcher_list(struct loader *loader, const struct as_yaml_node *node);

/* Compiles a matcher into caller's memory. False: an error was reported at its place inside. */
bool compile_matcher(struct loader *loader, const struct as_yaml_node *node,
                     struct as_matcher *matcher);

/* As loader_report, for an error text that may begin with "offset N: ": this becomes the place. */
void report_in_text(struct loader *loader, const struct as_yaml_node *node, const char *text);

/* The keys of an account of any type, and those of `http_config` that most types refuse; end with
 * NULL. */
extern const char *const provider_usual_keys[], *const provider_login_keys[];

/* The text of a target's unit; NULL: none. */
const struct as_yaml_node *find_unit(const struct as_yaml_node *target);

/* The units of all targets, for the sizes of rules. Memory of the loader's arena. */
void collect_units(struct loader *loader, const struct as_yaml_node *const *roots, size_t count);

/* All provider types that a file may use, in order; a NULL at the end. */
#define PROVIDER_TYPES_MAX 64
void provider_kind_list(const char *words_out[PROVIDER_TYPES_MAX + 1]);

/* The place that a key of a group tells. Without a kind: by the first kind that uses the key as a
 * place. */
enum as_place provider_key_get_place(const struct as_provider_kind *kind, const char *key);

/* Keys of a kind: whether a key exists; the error for an unknown key (`others`: further valid
 * keys); whether all required keys are there (errors go to `at`). */
bool provider_key_find(const struct as_provider_key *keys, const char *key,
                       const struct as_provider_key **key_out);
void provider_key_report(struct loader *loader, const struct as_provider_kind *kind,
                         const struct as_provider_key *keys, const char *const *others,
                         const struct as_yaml_node *key);
bool provider_keys_check(struct loader *loader, const struct as_provider_kind *kind,
                         const struct as_provider_key *keys, const struct as_yaml_node *map,
                         const struct as_yaml_node *at);

#endif
