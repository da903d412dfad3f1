/*
 * What the readers of other formats and the writers of rule files share: the plan, which is a list
 * of targets with their rules; and the loader, which also knows the conversion.
 *
 * Long because the plan's structs stand together.
 */
#ifndef ALERTSCALER_SRC_TOOLS_CONVERT_PLAN_H
#define ALERTSCALER_SRC_TOOLS_CONVERT_PLAN_H

#include <alertscaler/base/buf.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/time.h>
#include <alertscaler/doc/schema.h>
#include <alertscaler/model/action.h>
#include <alertscaler/model/bounds.h>
#include <alertscaler/tools/convert.h>

struct adapter; /* prometheus-adapter's configuration, below */

/* --- the plan --- */

/* A `track` rule. */
struct plan_rule {
    const char *name;  /* of the target, a dot, and what is measured */
    const char *about; /* a comment: where it comes from */
    enum as_goal goal;
    int64_t milli; /* the goal in thousandths; of utilization: percent */
    bool is_resource;
    enum as_resource resource; /* of utilization, and with is_resource */
    const char *container;     /* of utilization: against its requests; NULL: whole pods */
    bool is_per_pod;
    bool by_owner;         /* `pods: owned` */
    const char *pod_label; /* NULL: `pod` */
    const char *query;     /* checked by promql_check */
    struct as_fallback fallback;
};

/* Escalator's thresholds; -1: not given. */
struct plan_group {
    const char *group;                                      /* of the cloud */
    int32_t full, slow_below, slow_by, fast_below, fast_by; /* percent, nodes */
    bool starves;
    bool is_default; /* also pods that select no nodes */
    int64_t soft_us, hard_us, cooldown_us;
    int64_t health_us;
    int32_t newest, most;
};

/* --- Cluster Autoscaler: a pool with its node groups --- */

#define PLAN_MEMBERS_MAX 64 /* as many as a pool has */
#define PLAN_TEXTS_MAX   64

struct plan_member {
    const char *name;    /* of its target */
    const char *address; /* the keys of `node_group` behind `provider`, as YAML */
    int32_t min, max;
};

struct plan_texts {
    const char *items[PLAN_TEXTS_MAX];
    size_t count;
};

struct plan_range {
    int64_t min, max;
    bool is_given;
};

struct plan_pool {
    const char *provider;
    struct plan_member members[PLAN_MEMBERS_MAX];
    size_t member_count;
    struct plan_texts choose, ignore_labels, startup_taints;
    struct plan_range cores, memory; /* memory: in GiB */
    bool balances, shrinks, takes_unready;
    bool ignores_daemonsets, ignores_mirror;
    bool keeps_system, keeps_local, keeps_custom;
    int32_t max, empty, drain, expendable;
    int64_t every_us, after_add_us, after_delete_us;
    int64_t unneeded_us, unready_us, ready_us, evict_us;
    int32_t grace_s;
    int64_t below; /* thousandths of a percent */
};

struct plan_schedule {
    const char *timezone;
    unsigned days;     /* bit 0: Monday */
    unsigned from, to; /* minutes of the day */
    int32_t min;
};
#define PLAN_SCHEDULES_MAX 16

#define PLAN_NO_TOLERANCE (-1)

struct plan_target {
    const char *name;  /* also of its files */
    const char *space; /* the object's namespace; NULL: none */
    const char *shown; /* "HorizontalPodAutoscaler shop/web" */
    const struct as_yaml_tree *tree;
    const struct as_yaml_node *node; /* the object's name */
    /* what is scaled; of a node group only `group` counts, of a pool `pool` */
    const char *api_version, *scaled_kind, *scaled; /* api_version NULL: the kind's own */
    struct plan_group *group;
    struct plan_pool *pool;
    int32_t min, max;
    int64_t tolerance_up, tolerance_down; /* thousandths of a percent */
    bool has_behavior, is_old_behavior;   /* old: an HPA without `behavior` */
    struct as_behavior behavior;
    bool is_dry, is_incomplete; /* incomplete: dry until a person has looked */
    struct plan_rule *rules;
    size_t rule_count, rule_capacity;
    struct plan_schedule schedules[PLAN_SCHEDULES_MAX];
    size_t schedule_count;
    struct {
        size_t from, to;
    } items; /* of the conversion: what is said of this object */
};

/* --- the conversion --- */

struct convert {
    struct loader loader; /* first: the tables' functions get it */
    struct as_conversion *conversion;
    struct as_arena arena; /* becomes the conversion's memory */
    const char *name_space;
    struct as_yaml_tree **trees;
    size_t tree_count, tree_capacity;
    struct adapter *adapter; /* NULL: none among the files */
    struct plan_target **targets;
    size_t target_count, target_capacity;
    size_t object_count;
    const char *server; /* the first Prometheus that a ScaledObject names */
    const char *login;  /* the rows of its `http_config`; "": none */
    const char *shown;  /* the object that is being read, for items */
    size_t item_start;  /* its first item */
    bool has_lost;      /* its sizes may be wrong */
};

static inline struct convert *convert_of(struct loader *loader)
{
    return (struct convert *)(void *)loader;
}

/* To learn whether something that was called reported an error. */
static inline size_t convert_count_errors(const struct convert *convert)
{
    return convert->loader.diagnostics->count + convert->loader.diagnostics->more;
}

const char *convert_text(struct convert *convert, const char *format, ...) AS_PRINTF(2, 3);

/* Names the object that is read from here on, for items: "HorizontalPodAutoscaler shop/web". */
void convert_begin(struct convert *convert, const char *format, ...) AS_PRINTF(2, 3);

/* Adds to the list of what is not carried over. lose: the sizes may be wrong without it, so the
 * target is in dry run until a person has completed its rules; leave: they are right. */
void convert_lose(struct convert *convert, const struct as_yaml_node *node, const char *format, ...)
    AS_PRINTF(3, 4);
void convert_leave(struct convert *convert, const struct as_yaml_node *node, const char *format,
                   ...) AS_PRINTF(3, 4);
/* Adds a hint: it is carried over, and something differs. */
void convert_hint(struct convert *convert, const struct as_yaml_node *node, const char *format, ...)
    AS_PRINTF(3, 4);

/* `schema.other` of objects whose keys are not all known here: a key is not carried over. */
bool convert_lose_key(struct loader *loader, const struct as_yaml_node *node,
                      const struct as_yaml_pair *pair, void *object);
/* The same for keys that say nothing about scaling. */
bool convert_skip_key(struct loader *loader, const struct as_yaml_node *node,
                      const struct as_yaml_pair *pair, void *object);

/* --- objects of Kubernetes --- */

struct raw_meta {
    const struct as_yaml_node *name, *name_space; /* name_space NULL: none */
    const struct as_yaml_node *annotations, *owners;
};

struct raw_object {
    const char *api_version, *kind;
    struct raw_meta meta;
    const struct as_yaml_node *spec; /* NULL: none */
    const struct as_yaml_node *data; /* of a ConfigMap */
};

struct raw_reference {
    const char *api_version, *kind, *name;
    const struct as_yaml_node *node;
};

extern const struct schema convert_reference;

/* A target with the object's names, which are checked; NULL: an error was reported. */
struct plan_target *object_start(struct convert *convert, const struct raw_object *object);
/* Whether what is scaled is named in a way that a rule file can have; errors are reported. */
bool object_refer(struct convert *convert, const struct raw_reference *reference,
                  struct plan_target *target);
/* Adds the target to the plan. */
void object_finish(struct convert *convert, struct plan_target *target);
struct plan_target *plan_target_new(struct convert *convert, const char *name,
                                    const struct as_yaml_node *node);

/* A rule of the target, named after `what`: its odd characters are replaced. */
struct plan_rule *plan_add_rule(struct convert *convert, struct plan_target *target,
                                const char *what);

/* The names of a target's pods as a regular expression; ".+" if they are not known. */
const char *plan_match_pods(struct convert *convert, const struct plan_target *target);

/* A quantity above 0 in thousandths, rounded up as HPA does. False: an error was reported. */
bool convert_parse_goal(struct convert *convert, const struct as_yaml_node *node,
                        int64_t *milli_out);

/* --- readers of formats: each adds a target, or reports --- */

void hpa_convert(struct convert *convert, const struct raw_object *object,
                 const struct as_yaml_node *node);
void keda_convert(struct convert *convert, const struct raw_object *object,
                  const struct as_yaml_node *node);
void escalator_convert(struct convert *convert, const struct as_yaml_node *groups);
/* A Deployment; a list of flags. */
void autoscaler_convert(struct convert *convert, const struct raw_object *object,
                        const struct as_yaml_node *node);
void autoscaler_convert_flags(struct convert *convert, const struct as_yaml_node *flags);

/* prometheus-adapter's configuration: a map with `rules`, `externalRules` or `resourceRules`. */
bool adapter_is_configuration(const struct as_yaml_node *node);
void adapter_read(struct convert *convert, const struct as_yaml_node *node);

/* HPA's `behavior`, and what it is without one (NULL). */
void behavior_read(struct convert *convert, const struct as_yaml_node *node,
                   const struct as_yaml_node *at, struct plan_target *target);

/* --- PromQL --- */

void promql_append_string(struct as_buf *out, const char *value); /* in quotes, escaped */
void promql_append_escaped(struct as_buf *out, const char *value);
/* A regular expression that matches exactly this text. */
void promql_append_literal(struct as_buf *out, const char *value);
bool promql_is_label(const char *text);
bool promql_is_metric(const char *text);
/* The query with `{{` escaped, so that nothing in it is a template; without white space around it.
 * NULL: it cannot be a query, and *why_out says why. */
const char *promql_protect(struct convert *convert, const char *query, const char **why_out);

/* --- writers --- */

void yaml_append_milli(struct as_buf *out, int64_t milli); /* 1500: "1.5" */

void write_rules(const struct convert *convert, const struct plan_target *target,
                 struct as_buf *out);
/* The same as a scaling policy. */
void write_policy(const struct convert *convert, const struct plan_target *target,
                  struct as_buf *out);
void write_tests(const struct plan_target *target, bool is_policy, struct as_buf *out);

/*
 * HPA's rules that other readers make too.
 */

/* The rule of a utilization of cpu or memory, or of an average of it: also of a ScaledObject.
 * `container` NULL: of whole pods. */
void hpa_add_resource(struct convert *convert, struct plan_target *target,
                      const struct as_yaml_node *node, const char *resource, const char *container,
                      enum as_goal goal, int64_t milli);

/* For comments: "hpa.yaml:12". */
const char *convert_origin(struct convert *convert, const struct as_yaml_node *node);

/*
 * prometheus-adapter: which series a metric of the metrics APIs is made of, and by which query.
 * Sources of the rules: its reference of the configuration, and pkg/naming of its code.
 *
 * The adapter asks Prometheus which series there are. Nothing is asked here, so a metric is traced
 * back: from its name through `name.as` and `name.matches` to the one series that it can come from.
 */

struct raw_filter {
    const char *is, *is_not;
};

struct raw_resources {
    const char *template_;
    const struct as_yaml_node *overrides; /* a map; NULL: none */
    bool is_namespaced;
};

struct raw_naming {
    const char *matches, *as; /* NULL: none */
};

struct adapter_rule {
    const struct as_yaml_tree *tree;
    const struct as_yaml_node *node;
    const char *series_query;
    struct raw_filter *filters;
    size_t filter_count;
    struct raw_resources resources;
    struct raw_naming naming;
    const struct as_yaml_node *query; /* a template; NULL: none */
    bool has_replacements;            /* of label values */
};

struct adapter_resource {
    const struct as_yaml_tree *tree;
    const struct as_yaml_node *query; /* NULL: not given */
    struct raw_resources resources;
    const char *container_label;
};

struct adapter {
    const struct as_yaml_tree *tree;
    const struct as_yaml_node *node; /* the first configuration */
    struct adapter_rule *custom, *external;
    size_t custom_count, external_count;
    struct adapter_resource of[AS_RESOURCE_COUNT];
};

/* What a query is asked for. */
struct adapter_request {
    const char *metric;                  /* of the metrics API */
    const struct as_yaml_node *selector; /* a label selector; NULL: none */
    const char *space;
    const char *group, *resource; /* whose value it is, in the singular; NULL: external */
    const char *object;           /* its name, or with `is_pods` a regular expression of names */
    bool is_pods;
};

struct adapter_answer {
    const char *query; /* protected */
    const char *label; /* of the resource */
    const struct adapter_rule *rule;
    const struct adapter_rule *other; /* that may make the metric too; NULL: none */
};

/* False: *why_out says why there is no query, and what to do. */
bool adapter_find(struct convert *convert, const struct adapter_request *request,
                  struct adapter_answer *answer_out, const char **why_out);

/* The usage of pods, in samples of single pods; `container` NULL: of whole pods. By the adapter's
 * own query if there is one, else by cAdvisor's usual series. */
bool adapter_find_usage(struct convert *convert, const struct plan_target *target,
                        enum as_resource resource, const char *container,
                        struct adapter_answer *answer_out, const char **why_out);

#endif
