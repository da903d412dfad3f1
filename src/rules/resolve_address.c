/*
 * The resolver of addresses: which keys a target has, which of them hold templates, and what
 * templates may select. Values without templates are checked completely.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/url.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/model/field_path.h>

#include "resolve.h"

/*
 * What is known here of Kubernetes' kinds: their version, whether they have a size, and whether
 * they are in a namespace. Of other kinds the cluster says it, when the target is observed.
 */

/* Kinds with a known apiVersion. */
static const struct {
    const char *kind, *api_version;
    bool has_scale;
} known_kinds[] = {
    {"Deployment", "apps/v1", true},
    {"StatefulSet", "apps/v1", true},
    {"ReplicaSet", "apps/v1", true},
    {"ReplicationController", "v1", true},
    {"DaemonSet", "apps/v1", false},
    {"Job", "batch/v1", false},
    {"CronJob", "batch/v1", false},
    {"Pod", "v1", false},
    {"ConfigMap", "v1", false},
    {"PersistentVolumeClaim", "v1", false},
    {"HorizontalPodAutoscaler", "autoscaling/v2", false},
};

/* Kinds of other projects with a scale subresource, and an apiVersion to write. It is an example
 * only, because a cluster may serve another version. */
static const struct {
    const char *kind, *api_version;
} other_kinds[] = {
    {"Rollout", "argoproj.io/v1alpha1"},
    {"MachineDeployment", "cluster.x-k8s.io/v1beta1"},
    {"NodePool", "karpenter.sh/v1"},
    {"CloneSet", "apps.kruise.io/v1alpha1"},
    {"LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1"},
};

/* Users shorten names of kinds: `Deploy`, `sts`. */
static const struct {
    const char *word, *kind;
} short_kinds[] = {
    {"deploy", "Deployment"},
    {"sts", "StatefulSet"},
    {"rs", "ReplicaSet"},
    {"ds", "DaemonSet"},
    {"cj", "CronJob"},
    {"rc", "ReplicationController"},
    {"po", "Pod"},
    {"cm", "ConfigMap"},
    {"pvc", "PersistentVolumeClaim"},
    {"hpa", "HorizontalPodAutoscaler"},
};

/* Whether the kind is known to have a scale subresource. */
static bool kind_has_scale(const char *kind)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(known_kinds); i++) {
        if (strcmp(known_kinds[i].kind, kind) == 0)
            return known_kinds[i].has_scale;
    }
    return false;
}

/* All of them are in a namespace; with another group in the version it is another kind. */
static bool kind_has_namespace(const char *kind, const char *api_version)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(known_kinds); i++) {
        if (strcmp(known_kinds[i].kind, kind) != 0)
            continue;
        const size_t group = strcspn(known_kinds[i].api_version, "/");
        return !api_version || strncmp(known_kinds[i].api_version, api_version, group) == 0;
    }
    return false;
}

/* A kind without an implied version. */
static void report_kind(struct resolver *resolver, const struct as_yaml_node *node,
                        struct suggestion *suggestion)
{
    char hint[SUGGESTION_SIZE];
    for (size_t i = 0; i < AS_ARRAY_SIZE(other_kinds); i++) {
        if (strcasecmp(other_kinds[i].kind, node->text) != 0)
            continue;
        loader_report(&resolver->loader, node,
                      "kind `%s` needs an `apiVersion`: write `kind: %s, apiVersion: %s`, or the "
                      "version that the cluster has",
                      node->text, other_kinds[i].kind, other_kinds[i].api_version);
        return;
    }
    for (size_t i = 0; i < AS_ARRAY_SIZE(short_kinds); i++) {
        if (strcasecmp(short_kinds[i].word, node->text) == 0)
            suggestion->best = short_kinds[i].kind;
    }
    loader_report(&resolver->loader, node, "kind `%s` needs an `apiVersion`%s", node->text,
                  suggestion_print(suggestion, hint));
}

/* The version that the kind implies; NULL: none, which was reported. */
static const char *find_api_version(struct resolver *resolver, const struct as_yaml_node *node,
                                    bool is_scale)
{
    struct suggestion suggestion = suggestion_start(node->text);
    for (size_t i = 0; i < AS_ARRAY_SIZE(known_kinds); i++) {
        if (strcmp(known_kinds[i].kind, node->text) == 0 && (known_kinds[i].has_scale || !is_scale))
            return known_kinds[i].api_version;
        if (strcmp(known_kinds[i].kind, node->text) == 0) {
            loader_report(
                &resolver->loader, node,
                "a %s has no scale subresource, and so no size: `field` names a number in "
                "it",
                node->text);
            return NULL;
        }
        if (known_kinds[i].has_scale || !is_scale)
            suggestion_offer(&suggestion, known_kinds[i].kind);
    }
    report_kind(resolver, node, &suggestion);
    return NULL;
}

/* Kinds without a namespace that have a size. */
static const struct {
    const char *kind, *group;
} cluster_wide[] = {
    {"NodePool", "karpenter.sh"},
};

static bool is_of_group(const char *api_version, const char *group)
{
    const size_t size = strlen(group);
    return strncmp(api_version, group, size) == 0 && api_version[size] == '/';
}

static bool is_cluster_wide(const char *kind, const char *api_version)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(cluster_wide); i++) {
        if (strcmp(cluster_wide[i].kind, kind) == 0 &&
            is_of_group(api_version, cluster_wide[i].group))
            return true;
    }
    return false;
}

/* Reports a namespace that is missing, and warns of one where there is none. False: it is missing.
 * `kind` and `api_version`: NULL if they are not readable. */
static bool check_namespace(struct resolver *resolver, const struct raw_target *raw,
                            const char *kind, const char *api_version)
{
    const struct as_yaml_node *given = as_yaml_find(raw->address, "namespace");
    if (given && kind && api_version && is_cluster_wide(kind, api_version))
        as_yaml_warn(resolver->loader.tree, schema_find_key(raw->address, "namespace"),
                     AS_YAML_SHOW, resolver->loader.diagnostics,
                     "a %s is in no namespace: leave `namespace` out", kind);
    if (given || !kind || !kind_has_namespace(kind, api_version))
        return true;
    loader_report(&resolver->loader, raw->address, "a %s needs `namespace`", kind);
    return false;
}

/*
 * `allow` of a target: lists that the target has no key for, URLs that are not in their normal
 * form, and templates that no list limits.
 */

char **copy_strings(const char *const *strings, size_t count)
{
    char **copy = count > 0 ? as_xcalloc(count, sizeof(char *)) : NULL;
    for (size_t i = 0; i < count; i++)
        copy[i] = as_xstrdup(strings[i]);
    return copy;
}

/* The URL as a pattern in its normal form: `*` for each template. */
static char *make_url_pattern(const char *text)
{
    struct as_buf pattern = AS_BUF_INIT(AS_TARGET_ID_MAX);
    AS_CLEANUP(as_buf_deinit) struct as_buf starred = AS_BUF_INIT(AS_TARGET_ID_MAX);
    const char *action;
    for (; (action = strstr(text, "{{")) != NULL && strstr(action, "}}");
         text = strstr(action, "}}") + 2) {
        as_buf_append(&starred, text, (size_t)(action - text));
        as_buf_append_char(&starred, '*');
    }
    as_buf_append_str(&starred, text);
    if (as_buf_check(&starred) < 0 || !as_url_append_normal(starred.data, &pattern) ||
        as_buf_check(&pattern) < 0) {
        as_buf_deinit(&pattern);
        return as_xstrdup("http://host/*");
    }
    return as_buf_take(&pattern, NULL);
}

/* A template without a list that limits it. */
static void report_unlimited(struct resolver *resolver, const struct raw_target *raw,
                             const char *key, enum as_allow limit)
{
    static const char *const examples[AS_ALLOW_COUNT] = {
        [AS_ALLOW_CLUSTERS] = "edge, 'eu-*'",
        [AS_ALLOW_API_VERSIONS] = "apps/v1",
        [AS_ALLOW_KINDS] = "Deployment, StatefulSet",
        [AS_ALLOW_NAMESPACES] = "shop, 'team-*'",
        [AS_ALLOW_NAMES] = "web, 'api-*'",
    };
    const struct as_yaml_node *value = as_yaml_find(raw->address, key);
    if (limit == AS_ALLOW_URLS) {
        AS_CLEANUP(as_free_p) char *pattern = make_url_pattern(value->text);
        loader_report(&resolver->loader, value,
                      "an alert gives more of `url` than its last path segment: say which URLs it "
                      "may give, for example `allow: {urls: ['%s']}`",
                      pattern);
        return;
    }
    loader_report(&resolver->loader, value,
                  "an alert gives `%s`: say which values it may give, for example "
                  "`allow: {%s: [%s]}`%s",
                  key, as_allow_get_word(limit), examples[limit],
                  limit == AS_ALLOW_NAMES ? " (['*']: any)" : "");
}

/* URLs are compared in their normal form. */
static void check_url_patterns(struct resolver *resolver, const struct as_yaml_node *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct as_yaml_node *item = list->items[i];
        AS_CLEANUP(as_free_p) char *normal = as_target_url_normalize(item->text);
        if (strcmp(item->text, "*") == 0)
            continue;
        if (!as_str_starts_with(normal, "http://") && !as_str_starts_with(normal, "https://"))
            loader_report(&resolver->loader, item,
                          "expected a URL like http://host/*/group, with `*` for any text");
        else if (strcmp(normal, item->text) != 0)
            loader_report(&resolver->loader, item,
                          "URLs are compared in their normal form: write `%s`", normal);
    }
}

/* `allow.list`: objects become targets by their namespace and name alone. */
static void allow_check_list(struct resolver *resolver, const struct raw_target *raw,
                             const struct as_target_config *config, const struct as_yaml_node *map)
{
    const struct as_yaml_node *list = map ? schema_find_key(map, "list") : NULL;
    if (!list)
        return;
    if (config->kind != &as_target_kind_kubernetes) {
        loader_report(&resolver->loader, list,
                      "`list` selects objects of a Kubernetes cluster, and the target is %s",
                      config->kind->title);
        return;
    }
    if (!is_template(as_yaml_find(raw->address, "namespace")) &&
        !is_template(as_yaml_find(raw->address, "name")))
        loader_report(&resolver->loader, list,
                      "`list` needs a template in `name` or `namespace`: without one the target is "
                      "one object");
    else if (raw->schedule_count == 0)
        loader_report(&resolver->loader, list,
                      "`list` needs `schedules`: without them nothing changes the listed objects");
    for (size_t i = 0; i < config->address_count; i++) {
        const struct as_address_field *field = &config->address[i];
        if (!as_template_is_plain(field->value) && strcmp(field->key, "namespace") != 0 &&
            strcmp(field->key, "name") != 0)
            loader_report(&resolver->loader, as_yaml_find(raw->address, field->key),
                          "with `allow.list` only `namespace` and `name` may have a template: "
                          "write one target for each `%s`",
                          field->key);
    }
}

void check_allow(struct resolver *resolver, const struct raw_target *raw,
                 const struct as_target_config *config)
{
    const struct as_target_kind *kind = config->kind;
    const struct as_yaml_node *map = as_yaml_find(raw->node, "allow");
    for (enum as_allow i = 0; i < AS_ALLOW_COUNT; i++) {
        const char *word = as_allow_get_word(i);
        if (config->allowed[i].count == 0)
            continue;
        if (!kind->allow[i])
            loader_report(&resolver->loader, schema_find_key(map, word),
                          "no alert may select the %.*s of %s", (int)strlen(word) - 1, word,
                          kind->title);
        else if (i == AS_ALLOW_URLS && !as_yaml_find(raw->address, kind->allow[i]))
            loader_report(&resolver->loader, schema_find_key(map, word),
                          "the `node_group` has no `url`: its `name` is limited by `names`");
        else if (i == AS_ALLOW_URLS)
            check_url_patterns(resolver, as_yaml_find(map, word));
    }
    for (size_t i = 0; i < config->address_count; i++) {
        const struct as_address_field *field = &config->address[i];
        const enum as_allow limit = as_target_find_limit(config, field->key);
        if (!as_template_is_plain(field->value) && limit < AS_ALLOW_COUNT &&
            config->allowed[limit].count == 0)
            report_unlimited(resolver, raw, field->key, limit);
    }
    allow_check_list(resolver, raw, config, map);
}

/*
 * What of a Kubernetes object is sized: the keys `field`, `container` and those beside them of an
 * address, and what rules may want of such a target.
 */

struct sized_keys {
    /* NULL: not given */
    const struct as_yaml_node *field, *unit, *absent, *status_field;
    const struct as_yaml_node *container, *resource, *limits, *apply, *template_;
};

/* NULL: not given, or reported already. */
static const struct as_yaml_node *address_find_key(const struct raw_target *raw, const char *key)
{
    const struct as_address_key *row = as_target_kind_find_key(raw->kind, key);
    return raw->values[row - raw->kind->keys] ? as_yaml_find(raw->address, key) : NULL;
}

static struct sized_keys find_keys(const struct raw_target *raw)
{
    return (struct sized_keys){
        address_find_key(raw, "field"),     address_find_key(raw, "unit"),
        address_find_key(raw, "absent"),    address_find_key(raw, "status_field"),
        address_find_key(raw, "container"), address_find_key(raw, "resource"),
        address_find_key(raw, "limits"),    address_find_key(raw, "apply"),
        address_find_key(raw, "template"),
    };
}

/* Adds a field to the address. `node` is the place of its value; NULL: a default. */
static void add_address_field(struct resolver *resolver, struct as_target_config *config,
                              const char *key, const char *value, const struct as_yaml_node *node,
                              bool *is_good)
{
    struct as_error error = AS_ERROR_INIT;
    char found[AS_YAML_FOUND_SIZE];
    struct as_template *template = NULL;
    if (as_template_new(value, &template, &error) < 0) {
        report_in_text(&resolver->loader, node, error.text);
        *is_good = false;
        return;
    }
    config->address[config->address_count++] =
        (struct as_address_field){.key = as_xstrdup(key), .value = template};
    if (!as_template_is_plain(template)) {
        config->is_templated = true;
        return;
    }
    const char *expected = as_target_check_value(config->kind, key, value);
    if (expected && node) {
        loader_report(&resolver->loader, node, "expected %s, found %s", expected,
                      as_yaml_describe(node, found));
        *is_good = false;
    }
}

/* Adds the key with its path in the one form that equal paths share. */
static bool add_path(struct resolver *resolver, struct as_target_config *config, const char *key,
                     const struct as_yaml_node *node, struct as_field_path *path)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(2 * AS_FIELD_PATH_MAX);
    struct as_error error = AS_ERROR_INIT;
    bool is_good = true;
    if (as_field_path_parse(node->text, path, &error) != 0) {
        report_in_text(&resolver->loader, node, error.text);
        return false;
    }
    as_field_path_print(path, path->count, &text);
    add_address_field(resolver, config, key, text.data, node, &is_good);
    return is_good;
}

/* What of `metadata` may be written by others than the API server. */
static bool is_free_metadata(const struct as_field_path *path)
{
    return path->count == 3 && (strcmp(path->steps[1].name, "annotations") == 0 ||
                                strcmp(path->steps[1].name, "labels") == 0);
}

static bool check_field(struct resolver *resolver, const struct raw_target *raw,
                        const struct as_field_path *path, const char *field)
{
    const struct as_yaml_node *kind = as_yaml_find(raw->address, "kind");
    const struct as_yaml_node *node = as_yaml_find(raw->address, "field");
    const char *first = path->steps[0].name;
    struct loader *loader = &resolver->loader;
    if (strcmp(field, "spec.replicas") == 0 && kind_has_scale(kind->text))
        loader_report(loader, node,
                      "`spec.replicas` of a %s is its size already: without `field` it is set "
                      "through the scale subresource, which needs fewer rights",
                      kind->text);
    else if (path->count == 1 || strcmp(first, "status") == 0)
        loader_report(loader, node, "`%s` cannot be set: expected a path like spec.minReplicas",
                      first);
    else if (strcmp(first, "metadata") == 0 && !is_free_metadata(path))
        loader_report(loader, node,
                      "of `metadata` only an annotation or a label can be set, like "
                      "metadata.annotations['example.com/workers']");
    else
        return true;
    return false;
}

static bool add_field(struct resolver *resolver, const struct raw_target *raw,
                      const struct as_yaml_node *node, struct as_target_config *config)
{
    struct as_field_path path;
    return add_path(resolver, config, "field", node, &path) &&
           check_field(resolver, raw, &path,
                       as_template_get_text(config->address[config->address_count - 1].value));
}

static bool add_unit(struct resolver *resolver, const struct raw_target *raw,
                     const struct as_yaml_node *node, struct as_target_config *config)
{
    const struct as_bounds_config *bounds = &raw->policy.bounds;
    struct as_error error = AS_ERROR_INIT;
    struct as_unit unit;
    bool is_good = true;
    if (as_unit_parse(node->text, &unit, &error) != 0) {
        loader_report(&resolver->loader, node, "%s", error.text);
        return false;
    }
    if (!as_unit_is_countable(&unit, bounds->max)) {
        char amount[AS_AMOUNT_SIZE];
        as_unit_print(&unit, bounds->max, amount);
        loader_report(&resolver->loader, node, "`max` would be %s, more than a quantity can hold",
                      amount);
        return false;
    }
    add_address_field(resolver, config, "unit", node->text, node, &is_good);
    return is_good;
}

static bool check_plain(struct resolver *resolver, const char *key, const struct as_yaml_node *node)
{
    if (!is_template(node))
        return true;
    loader_report(&resolver->loader, node, "`%s` cannot come from a template", key);
    return false;
}

static bool check_keys(struct resolver *resolver, const struct sized_keys *keys)
{
    const struct {
        const char *key;
        const struct as_yaml_node *node;
        const struct as_yaml_node *owner;
        const char *of;
    } rows[] = {{"unit", keys->unit, keys->field ? keys->field : keys->container,
                 keys->resource ? "container" : "field"},
                {"absent", keys->absent, keys->field, "field"},
                {"status_field", keys->status_field, keys->field, "field"},
                {"field", keys->field, keys->field, ""},
                {"resource", keys->resource, keys->container, "container"},
                {"limits", keys->limits, keys->container, "container"},
                {"apply", keys->apply, keys->container, "container"},
                {"template", keys->template_, keys->container, "container"},
                {"container", keys->container, keys->container, ""}};
    bool is_good = true;
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        if (!rows[i].node)
            continue;
        is_good = check_plain(resolver, rows[i].key, rows[i].node) && is_good;
        if (rows[i].owner)
            continue;
        loader_report(&resolver->loader, rows[i].node,
                      "`%s` is for a target with `%s`, which is missing", rows[i].key, rows[i].of);
        is_good = false;
    }
    return is_good;
}

/* --- a resource of a container --- */

/* Kinds whose pods can be sized, of the group apps. */
static bool check_workload(struct resolver *resolver, const struct raw_target *raw, bool by_pods)
{
    static const struct {
        const char *kind;
        bool rolls;
    } kinds[] = {
        {"Deployment", true}, {"StatefulSet", true}, {"DaemonSet", true}, {"ReplicaSet", false}};
    const struct as_yaml_node *kind = as_yaml_find(raw->address, "kind");
    const struct as_yaml_node *version = as_yaml_find(raw->address, "apiVersion");
    const bool is_apps = !version || strncmp(version->text, "apps/", strlen("apps/")) == 0;
    for (size_t i = 0; is_apps && i < AS_ARRAY_SIZE(kinds); i++) {
        if (strcmp(kinds[i].kind, kind->text) != 0)
            continue;
        if (kinds[i].rolls || by_pods)
            return true;
        loader_report(&resolver->loader, kind,
                      "a change of the template of a %s reaches no pod: use `apply: pods`",
                      kind->text);
        return false;
    }
    loader_report(
        &resolver->loader, kind,
        "`container` is for a Deployment, StatefulSet, DaemonSet or ReplicaSet of apps/v1");
    return false;
}

static bool check_container(struct resolver *resolver, const struct raw_target *raw,
                            const struct sized_keys *keys)
{
    const bool by_pods = keys->apply && strcmp(keys->apply->text, "pods") == 0;
    const bool has_template = keys->template_ && strcmp(keys->template_->text, "true") == 0;
    const struct {
        bool is_wrong;
        const struct as_yaml_node *node;
        const char *text;
    } rows[] = {
        {keys->field, keys->field, "either `field` or `container`, not both"},
        {!keys->resource, keys->container, "`container` needs `resource`: cpu or memory"},
        {!keys->unit, keys->container,
         "`container` needs `unit`: how much a step is, like 64Mi or 100m"},
        {has_template && !by_pods, keys->template_, "`template` is for `apply: pods`"},
        {raw->policy.bounds.min == 0, keys->container,
         "`container` needs a `min` of at least 1: a request of 0 is none"},
    };
    bool is_good = true;
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        if (!rows[i].is_wrong)
            continue;
        loader_report(&resolver->loader, rows[i].node, "%s", rows[i].text);
        is_good = false;
    }
    return check_workload(resolver, raw, by_pods) && is_good;
}

static bool address_add_container(struct resolver *resolver, const struct raw_target *raw,
                                  const struct sized_keys *keys, struct as_target_config *config)
{
    const struct {
        const char *key;
        const struct as_yaml_node *node;
    } rows[] = {{"container", keys->container},
                {"resource", keys->resource},
                {"limits", keys->limits},
                {"apply", keys->apply},
                {"template", keys->template_}};
    bool is_good = check_container(resolver, raw, keys);
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        if (rows[i].node)
            add_address_field(resolver, config, rows[i].key, rows[i].node->text, rows[i].node,
                              &is_good);
    }
    return is_good;
}

/* A PersistentVolumeClaim, which only grows. */
static bool is_claim(const struct raw_target *target)
{
    const struct as_yaml_node *kind = target->kind == &as_target_kind_kubernetes && target->address
                                          ? as_yaml_find(target->address, "kind")
                                          : NULL;
    return kind && as_yaml_find(target->address, "field") &&
           strcmp(kind->text, AS_SIZED_ONLY_UP_KIND) == 0;
}

static void report_shrinking(struct resolver *resolver, const struct as_yaml_node *node,
                             const char *name, const char *remedy)
{
    loader_report(
        &resolver->loader, node,
        "a PersistentVolumeClaim never shrinks, but this could make target `%s` smaller%s", name,
        remedy);
}

/* Such a size is no number of pods. */
static bool check_rollout(struct resolver *resolver, const struct raw_target *raw,
                          const struct sized_keys *keys)
{
    const struct as_yaml_node *rollout = schema_find_key(raw->node, "rollout");
    if (!rollout || (!keys->field && !keys->container))
        return true;
    loader_report(&resolver->loader, rollout, "`rollout` is about the pods of a workload, and %s",
                  keys->field ? "a field has none" : "the size of a resource is no number of pods");
    return false;
}

/* Such a size is no number of pods: nobody waits until so many are ready. */
static bool check_waiting(struct resolver *resolver, const struct raw_target *raw,
                          const struct sized_keys *keys, struct as_target_config *config)
{
    const struct as_yaml_node *timeout = schema_find_key(raw->node, "ready_timeout");
    if (!keys->field && !keys->container)
        return true;
    config->ready_timeout_us = 0; /* also that of `defaults` */
    if (timeout)
        loader_report(&resolver->loader, timeout, "`ready_timeout` waits for pods, and %s",
                      keys->field ? "a field has none"
                                  : "the size of a resource is no number of pods");
    return !timeout;
}

/* The keys of an address that say what is sized (decide/sized.h). False: reported. */
static bool resolve_sized(struct resolver *resolver, const struct raw_target *raw,
                          struct as_target_config *config)
{
    if (!as_target_kind_has_sized(raw->kind))
        return true;
    const struct sized_keys keys = find_keys(raw);
    struct as_field_path path;
    bool is_good = check_keys(resolver, &keys);
    if (!is_good)
        return false;
    if (!check_waiting(resolver, raw, &keys, config))
        is_good = false;
    if (!check_rollout(resolver, raw, &keys))
        is_good = false;
    if (keys.field)
        is_good = add_field(resolver, raw, keys.field, config) && is_good;
    if (keys.unit)
        is_good = add_unit(resolver, raw, keys.unit, config) && is_good;
    if (keys.absent)
        add_address_field(resolver, config, "absent", keys.absent->text, keys.absent, &is_good);
    if (keys.status_field)
        is_good = add_path(resolver, config, "status_field", keys.status_field, &path) && is_good;
    if (keys.container)
        is_good = address_add_container(resolver, raw, &keys, config) && is_good;
    if (is_claim(raw) && raw->policy.bounds.enforce_bounds) {
        const struct as_yaml_node *key = schema_find_key(raw->node, "enforce_bounds");
        report_shrinking(resolver, key ? key : raw->key, raw->name,
                         ": set `enforce_bounds: false`");
        is_good = false;
    }
    return is_good;
}

/* --- what rules may want --- */

const char *find_pods_requirement(const struct raw_target *target)
{
    if (target->kind && !target->kind->has_pods)
        return target->kind->title;
    if (target->address && as_yaml_find(target->address, "container"))
        return "a resource of a container";
    return target->address && as_yaml_find(target->address, "field") ? "a field of an object"
                                                                     : NULL;
}

static bool goes_down(const struct raw_target *target)
{
    const struct as_bounds_config *bounds = &target->policy.bounds;
    return !bounds->has_behavior || bounds->behavior.down.select != AS_SELECT_DISABLED;
}

void check_only_up(struct resolver *resolver, const struct raw_rule *raw,
                   const struct raw_target *target)
{
    static const char remedy[] =
        ": use `scale_up`, or give the target `behavior: {scaleDown: {selectPolicy: Disabled}}`";
    const char *action = as_action_kind_get_word(raw->action.kind);
    if (!raw->enabled || !is_claim(target) || !goes_down(target))
        return;
    if (raw->action.kind != AS_ACTION_SCALE_UP && raw->action.kind != AS_ACTION_HOLD &&
        schema_find_key(raw->node, action))
        report_shrinking(resolver, schema_find_key(raw->node, action), target->name, remedy);
    if (raw->has_ending)
        report_shrinking(resolver, schema_find_key(raw->node, "on_resolved"), target->name, "");
}

#define MACHINES "cluster.x-k8s.io" /* the API group of Cluster API */

bool is_template(const struct as_yaml_node *node)
{
    return node && node->kind == AS_YAML_SCALAR && strstr(node->text, "{{");
}

static void address_check_cluster(struct resolver *resolver, const struct as_yaml_node *node)
{
    char hint[SUGGESTION_SIZE];
    const struct as_settings *settings = resolver->settings;
    struct loader *loader = &resolver->loader;
    if (!settings || !node || node->kind != AS_YAML_SCALAR || is_template(node) ||
        as_settings_find_cluster(settings, node->text))
        return;
    struct suggestion suggestion = suggestion_start(node->text);
    for (size_t i = 0; i < settings->cluster_count && !loader_is_full(loader); i++)
        suggestion_offer(&suggestion, settings->clusters[i].name);
    loader_report(loader, node, "there is no cluster `%s` under `clusters`%s", node->text,
                  suggestion_print(&suggestion, hint));
}

/* Scheme and host are fixed by the author; templates may only follow them. */
static bool check_group_url(struct resolver *resolver, const struct as_yaml_node *url)
{
    char found[AS_YAML_FOUND_SIZE];
    bool is_http =
        as_str_starts_with(url->text, "http://") || as_str_starts_with(url->text, "https://");
    const char *host = is_http ? strstr(url->text, "://") + 3 : "";
    size_t size = strcspn(host, "/?#{");
    if (size == 0 || host[size] == '{' || (!is_template(url) && strpbrk(url->text, " #"))) {
        loader_report(&resolver->loader, url,
                      is_template(url) ? "a template may stand only behind http://host/%s"
                                       : "expected a URL like http://host:8080/group, found %s",
                      is_template(url) ? "" : as_yaml_describe(url, found));
        return false;
    }
    AS_CLEANUP(as_template_free_p) struct as_template *template = NULL;
    const char *fault = as_template_new(url->text, &template, NULL) == 0
                            ? as_target_url_find_fault(template)
                            : NULL;
    if (fault) {
        loader_report(&resolver->loader, url, "%s", fault);
        return false;
    }
    if (memchr(host, '@', size)) {
        as_yaml_report(resolver->loader.tree, url, AS_YAML_HIDE, resolver->loader.diagnostics,
                       "credentials do not stand in a URL: use `basic_auth` in the provider's "
                       "`http_config`");
        return false;
    }
    return true;
}

/* `nodes.select` is for groups whose instances have no names. */
static bool check_select(struct resolver *resolver, const struct raw_target *raw,
                         const struct as_provider_kind *kind)
{
    if (!raw->nodes.select)
        return true;
    const struct as_yaml_node *key = schema_find_key(as_yaml_find(raw->node, "nodes"), "select");
    if (!kind->names_no_instances)
        loader_report(&resolver->loader, key,
                      "a provider of type %s names its instances: their nodes are found by "
                      "spec.providerID, not by labels",
                      kind->type);
    else if (as_yaml_find(raw->address, "node_label"))
        loader_report(&resolver->loader, key,
                      "`node_label` in the `node_group` already says the labels of the nodes");
    else
        return true;
    return false;
}

static bool address_check_group(struct resolver *resolver, const struct raw_target *raw,
                                const struct as_provider_kind *kind)
{
    static const char *const others[] = {"provider", NULL};
    const struct as_provider_key *key;
    bool is_good =
        provider_keys_check(&resolver->loader, kind, kind->group_keys, raw->address, raw->address);
    is_good = check_select(resolver, raw, kind) && is_good;
    for (uint32_t i = 0; i < raw->address->count; i++) {
        const struct as_yaml_node *name = raw->address->pairs[i].key;
        if (strcmp(name->text, "provider") == 0 ||
            provider_key_find(kind->group_keys, name->text, &key))
            continue;
        provider_key_report(&resolver->loader, kind, kind->group_keys, others, name);
        is_good = false;
    }
    return is_good;
}

static bool check_http_group(struct resolver *resolver, const struct raw_target *raw,
                             const struct as_provider_kind *kind)
{
    const struct as_yaml_node *url = as_yaml_find(raw->address, "url");
    const struct as_yaml_node *name = as_yaml_find(raw->address, "name");
    bool is_good = address_check_group(resolver, raw, kind);
    const struct as_yaml_node *nodes = as_yaml_find(raw->node, "nodes");
    if (nodes && !as_yaml_find(nodes, "select")) {
        loader_report(&resolver->loader, schema_find_key(raw->node, "nodes"),
                      "a provider of type http knows no instances: `nodes` needs `select`, the "
                      "labels of the group's nodes");
        is_good = false;
    }
    if (!url)
        loader_report(&resolver->loader, raw->address,
                      "key `url` is missing: a provider of type http needs the group's address");
    if (url && is_template(url) && name && !is_template(name)) {
        loader_report(&resolver->loader, name,
                      "all the groups that `url` may give would go by this one name: put the "
                      "template into the name too, or leave it out");
        is_good = false;
    }
    if (url && !is_template(url) && is_template(name))
        as_yaml_warn(resolver->loader.tree, name, AS_YAML_SHOW, resolver->loader.diagnostics,
                     "all alerts reach the one group of `url`, whatever the name: put a template "
                     "into the `url` for several groups");
    return url && check_group_url(resolver, url) && is_good;
}

static bool is_group_key(const char *key, struct suggestion *suggestion)
{
    static const char *const others[] = {"provider", "url", NULL};
    bool is_known = false;
    for (size_t i = 0; others[i]; i++) {
        suggestion_offer(suggestion, others[i]);
        is_known = is_known || strcmp(others[i], key) == 0;
    }
    for (size_t i = 0; as_provider_kinds[i]; i++) {
        for (const struct as_provider_key *row = as_provider_kinds[i]->group_keys; row->key;
             row++) {
            suggestion_offer(suggestion, row->key);
            is_known = is_known || strcmp(row->key, key) == 0;
        }
    }
    return is_known;
}

/* Without a configuration: the keys of all types are valid. */
static bool check_group_keys(struct resolver *resolver, const struct as_yaml_node *map)
{
    char found[AS_YAML_FOUND_SIZE], hint[SUGGESTION_SIZE];
    bool is_good = true;
    for (uint32_t i = 0; i < map->count; i++) {
        const struct as_yaml_node *key = map->pairs[i].key;
        struct suggestion suggestion = suggestion_start(key->text);
        if (is_group_key(key->text, &suggestion))
            continue;
        loader_report(&resolver->loader, key, "unknown key %s%s", as_yaml_describe(key, found),
                      suggestion_print(&suggestion, hint));
        is_good = false;
    }
    return is_good;
}

/* What the target needs of its provider. */
static bool check_provider(struct resolver *resolver, const struct raw_target *raw)
{
    char hint[SUGGESTION_SIZE];
    const struct as_settings *settings = resolver->settings;
    const struct as_yaml_node *node = as_yaml_find(raw->address, "provider");
    if (is_template(node)) {
        loader_report(&resolver->loader, node, "a provider cannot come from a template");
        return false;
    }
    if (!settings)
        return check_group_keys(resolver, raw->address);
    const struct as_provider_settings *provider = as_settings_find_provider(settings, node->text);
    if (!provider) {
        struct suggestion suggestion = suggestion_start(node->text);
        for (size_t i = 0; i < settings->provider_count && !loader_is_full(&resolver->loader); i++)
            suggestion_offer(&suggestion, settings->providers[i].name);
        loader_report(&resolver->loader, node, "there is no provider `%s` under `providers`%s",
                      node->text, suggestion_print(&suggestion, hint));
        return false;
    }
    if (!provider->type)
        return false;
    const struct as_provider_kind *kind = as_provider_kind_find(provider->type);
    return kind->has_url_groups ? check_http_group(resolver, raw, kind)
                                : address_check_group(resolver, raw, kind);
}

/* Places, kinds and clusters of a group: `allow` has no list for them. */
static bool check_templates(struct resolver *resolver, const struct raw_target *raw)
{
    const struct as_yaml_node *map = raw->address;
    bool is_good = true;
    for (uint32_t i = 0; i < map->count; i++) {
        const struct as_yaml_pair *pair = &map->pairs[i];
        const char *key = pair->key->text;
        if (!is_template(pair->value) || strcmp(key, raw->kind->owner) == 0 ||
            as_target_kind_find_allow(raw->kind, key) < AS_ALLOW_COUNT)
            continue;
        loader_report(&resolver->loader, pair->value,
                      "`%s` cannot come from a template: an alert may select a `name` only", key);
        is_good = false;
    }
    return is_good;
}

/* Whether the cluster or provider exists, and accepts the address. */
static bool address_check_owner(struct resolver *resolver, const struct raw_target *raw)
{
    if (strcmp(raw->kind->owner, "cluster") == 0) {
        address_check_cluster(resolver, as_yaml_find(raw->address, "cluster"));
        return true;
    }
    const bool is_good = check_provider(resolver, raw);
    return check_templates(resolver, raw) && is_good;
}

static_assert(AS_PLACE_COUNT - 1 <= AS_PLACE_RANK_MAX, "every place stands in an id");

/* The scale of an object of Cluster API may also be a node group of the provider `clusterapi`. */
static bool is_machine_group(const struct as_target_config *config)
{
    bool is_machine = false;
    if (config->kind->has_nodes)
        return false;
    for (size_t i = 0; i < config->address_count; i++) {
        const struct as_address_field *field = &config->address[i];
        const struct as_address_key *row = as_target_kind_find_key(config->kind, field->key);
        if (row && row->is_sized)
            return false; /* not the scale */
        is_machine =
            is_machine || (strcmp(field->key, "apiVersion") == 0 &&
                           as_str_starts_with(as_template_get_text(field->value), MACHINES "/"));
    }
    return is_machine;
}

/* Without a configuration the provider's type is unknown: the keys of all types count. */
static void set_places(const struct resolver *resolver, const struct raw_target *raw,
                       struct as_target_config *config)
{
    const struct as_settings *settings = resolver->settings;
    const struct as_yaml_node *node = as_yaml_find(raw->address, "provider");
    const struct as_provider_settings *provider =
        settings && node ? as_settings_find_provider(settings, node->text) : NULL;
    const struct as_provider_kind *kind =
        provider && provider->type ? as_provider_kind_find(provider->type) : NULL;
    for (size_t i = 0; i < config->address_count; i++) {
        struct as_address_field *field = &config->address[i];
        if (!as_target_kind_has_key(config->kind, field->key))
            field->place = provider_key_get_place(kind, field->key);
    }
    if (kind && !kind->has_url_groups)
        config->family = kind->family ? kind->family : kind->type;
    else if (is_machine_group(config))
        config->family = "clusterapi";
}

/* The address of a pool is its name. */
static bool resolve_pool_name(struct resolver *resolver, const struct raw_target *raw,
                              struct as_target_config *config)
{
    bool is_good = true;
    config->address = as_xcalloc(AS_TARGET_KEYS_MAX, sizeof(*config->address));
    add_address_field(resolver, config, "name", raw->name, raw->key, &is_good);
    return is_good;
}

static const char **get_value(struct raw_target *raw, const char *key)
{
    return &raw->values[as_target_kind_find_key(raw->kind, key) - raw->kind->keys];
}

/* The apiVersion of a Kubernetes object: its kind may imply it. */
static bool complete_version(struct resolver *resolver, struct raw_target *raw)
{
    const struct as_yaml_node *kind = as_yaml_find(raw->address, "kind");
    const char **version = get_value(raw, "apiVersion");
    if (!*get_value(raw, "kind") || as_yaml_find(raw->address, "apiVersion"))
        return *version;
    if (is_template(kind))
        loader_report(&resolver->loader, kind, "a kind from a template needs an `apiVersion`");
    else
        *version = find_api_version(resolver, kind,
                                    !as_yaml_find(raw->address, "field") &&
                                        !as_yaml_find(raw->address, "container"));
    return *version;
}

static bool resolve_keys(struct resolver *resolver, struct raw_target *raw,
                         struct as_target_config *config)
{
    const struct as_target_kind *kind = raw->kind;
    const struct as_yaml_node *map = raw->address;
    bool is_good = address_check_owner(resolver, raw);
    if (kind == &as_target_kind_kubernetes)
        is_good = complete_version(resolver, raw) && is_good;
    if (kind == &as_target_kind_kubernetes)
        is_good = check_namespace(resolver, raw, *get_value(raw, "kind"),
                                  *get_value(raw, "apiVersion")) &&
                  is_good;
    config->address = as_xcalloc(AS_TARGET_KEYS_MAX + map->count, sizeof(*config->address));
    for (size_t i = 0; kind->keys[i].is_valid; i++) {
        const char *key = kind->keys[i].key;
        is_good = is_good && (raw->values[i] || !kind->keys[i].is_required);
        if (kind->keys[i].is_sized)
            break;
        if (key && raw->values[i])
            add_address_field(resolver, config, key, raw->values[i], as_yaml_find(map, key),
                              &is_good);
    }
    for (uint32_t i = 0; i < map->count; i++) {
        const struct as_yaml_pair *pair = &map->pairs[i];
        const struct as_address_key *row = as_target_kind_find_key(kind, pair->key->text);
        if (row && !row->key)
            add_address_field(resolver, config, pair->key->text, pair->value->text, pair->value,
                              &is_good);
    }
    is_good = resolve_sized(resolver, raw, config) && is_good;
    set_places(resolver, raw, config);
    return is_good;
}

/* Keys of `nodes` that are about nodes say nothing where the instances are none. */
static bool check_no_nodes(struct resolver *resolver, const struct raw_nodes *from,
                           const struct as_yaml_node *map)
{
    static const char *const keys[] = {"select",   "template", "startup_taints",
                                       "pending",  "priority", "price",
                                       "unneeded", "keep",     "health"};
    bool is_good = true;
    for (size_t i = 0; i < AS_ARRAY_SIZE(keys); i++) {
        if (!as_yaml_find(map, keys[i]))
            continue;
        loader_report(&resolver->loader, schema_find_key(map, keys[i]),
                      "`%s` is for nodes, but with `cluster: none` the instances are not nodes",
                      keys[i]);
        is_good = false;
    }
    if (as_yaml_find(map, "drain") && from->drain) {
        loader_report(&resolver->loader, as_yaml_find(map, "drain"),
                      "with `cluster: none` there is nothing to drain");
        is_good = false;
    }
    return is_good;
}

/* `drain_after` is for a node that waits, and no longer than it waits at all. */
static bool check_drain(struct resolver *resolver, const struct raw_nodes *from,
                        const struct as_yaml_node *map)
{
    const struct as_yaml_node *after = as_yaml_find(map, "drain_after");
    if (after && from->drain != AS_NODES_DRAIN_WAIT)
        loader_report(&resolver->loader, schema_find_key(map, "drain_after"),
                      "`drain_after` is for `drain: wait`");
    else if (from->drain == AS_NODES_DRAIN_WAIT && from->drain_after_us >= from->drain_timeout_us)
        loader_report(&resolver->loader, after ? after : as_yaml_find(map, "drain"),
                      "`drain_after` must be shorter than `drain_timeout`");
    else
        return true;
    return false;
}

/* The key `nodes`, for a group whose provider names its instances. */
static bool resolve_nodes(struct resolver *resolver, const struct raw_target *raw,
                          struct as_target_config *config)
{
    const struct as_yaml_node *key = schema_find_key(raw->node, "nodes");
    const struct as_yaml_node *map = as_yaml_find(raw->node, "nodes");
    const struct as_yaml_node *cluster = as_yaml_find(map, "cluster");
    const struct raw_nodes *from = &raw->nodes;
    const bool is_none = strcmp(from->cluster, "none") == 0;
    const bool has_nodes = raw->kind && raw->kind->has_nodes;
    if (key && !has_nodes) {
        loader_report(&resolver->loader, key, "`nodes` is for node groups only");
        return false;
    }
    if (is_template(cluster)) {
        loader_report(&resolver->loader, cluster, "this cluster cannot come from a template");
        return false;
    }
    if (is_none && !check_no_nodes(resolver, from, map))
        return false;
    if (has_nodes && !check_drain(resolver, from, map))
        return false;
    if (!is_none)
        address_check_cluster(resolver, cluster);
    if (!has_nodes)
        return true;
    config->nodes = (struct as_nodes_config){
        .cluster = is_none ? NULL : as_xstrdup(from->cluster),
        .select = from->select ? as_xstrdup(from->select) : NULL,
        .choose = (enum as_choose_strategy)from->choose,
        .drain = is_none ? AS_NODES_DRAIN_FALSE : (enum as_nodes_drain)from->drain,
        .drain_after_us = from->drain_after_us,
        .drain_timeout_us = from->drain_timeout_us,
        .grace_us = from->grace_us,
        .ready_timeout_us = from->ready_timeout_us,
        .template_ =
            as_yaml_find(map, "template") ? as_node_template_config_copy(&from->template_) : NULL,
        .startup_taints = copy_strings(from->startup_taints, from->startup_taint_count),
        .startup_taint_count = from->startup_taint_count,
        .pending = (enum as_nodes_pending)from->pending,
        .has_priority = as_yaml_find(map, "priority") != NULL,
        .priority = from->priority,
        .has_price = from->price >= 0,
        .price = from->price,
        .unneeded = from->unneeded.of,
        .health = from->health,
    };
    config->nodes.unneeded.below = (double)from->unneeded.below / 1000;
    return true;
}

void resolve_address(struct resolver *resolver, struct raw_target *raw,
                     struct as_target_config *config)
{
    config->kind = raw->kind;
    if (as_target_kind_has_groups(raw->kind)) {
        raw->has_address = resolve_pool_name(resolver, raw, config);
        return;
    }
    bool is_good = raw->address && resolve_keys(resolver, raw, config);
    is_good = resolve_nodes(resolver, raw, config) && is_good;
    if (config->address_count > 0)
        check_allow(resolver, raw, config);
    raw->has_address = is_good && !config->is_templated;
}

struct located {
    const struct raw_target *raw;
    struct as_target_ref *ref;
    char *place; /* its URL's target (with or without a name for its id); "": no URL */
};

static char *make_place(const struct as_target_ref *ref)
{
    AS_CLEANUP(as_free_p) char *id = as_target_ref_make_url_id(ref);
    return id ? as_target_key_make(id) : as_xstrdup("");
}

static int compare_raw(const struct located *a, const struct located *b)
{
    return (a->raw->number > b->raw->number) - (a->raw->number < b->raw->number);
}

static int address_compare_keys(const void *left, const void *right)
{
    const struct located *a = left, *b = right;
    const int status = strcmp(a->ref->key, b->ref->key);
    return status ? status : compare_raw(a, b);
}

static int address_compare_places(const void *left, const void *right)
{
    const struct located *a = left, *b = right;
    const int status = strcmp(a->place, b->place);
    return status ? status : compare_raw(a, b);
}

static void report_same(struct resolver *resolver, const struct located *a, const struct located *b)
{
    const struct raw_target *first = a->raw, *second = b->raw;
    resolver->loader.tree = second->tree;
    loader_report(&resolver->loader, second->key, "the same object as target `%s` at %s:%u",
                  first->name, as_yaml_get_file(first->tree), first->key->place.line);
}

static void address_check_pairs(struct resolver *resolver, struct located *items, size_t count)
{
    qsort(items, count, sizeof(*items), address_compare_keys);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(items[i - 1].ref->key, items[i].ref->key) == 0)
            report_same(resolver, &items[i - 1], &items[i]);
    }
    qsort(items, count, sizeof(*items), address_compare_places);
    for (size_t i = 1; i < count; i++) {
        if (*items[i].place && strcmp(items[i - 1].place, items[i].place) == 0 &&
            strcmp(items[i - 1].ref->key, items[i].ref->key) != 0)
            report_same(resolver, &items[i - 1], &items[i]);
    }
}

void check_addresses(struct resolver *resolver)
{
    struct located *items = as_xcalloc(resolver->target_count + 1, sizeof(*items));
    size_t count = 0;
    for (size_t i = 0; i < resolver->target_count; i++) {
        struct as_error error = AS_ERROR_INIT;
        const struct raw_target *raw = resolver->targets[i];
        if (!raw->has_address)
            continue;
        items[count].raw = raw;
        resolver->loader.tree = raw->tree;
        if (as_target_ref_new(resolver->ruleset->targets[i], NULL, NULL, &items[count].ref,
                              &error) != AS_TARGET_OK) {
            loader_report(&resolver->loader, raw->key, "%s", error.text);
            continue;
        }
        items[count].place = make_place(items[count].ref);
        count++;
    }
    address_check_pairs(resolver, items, count);
    for (size_t i = 0; i < count; i++) {
        as_target_ref_free(items[i].ref);
        free(items[i].place);
    }
    free(items);
}
