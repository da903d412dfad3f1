/*
 * What of a Kubernetes object is sized: the keys `field`, `container` and those beside them of an
 * address, and what rules may want of such a target.
 */
#include "resolve.h"

#include <string.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/base/unit.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/model/field_path.h>

struct sized_keys {
    /* NULL: not given */
    const struct as_yaml_node *field, *unit, *absent, *status_field;
    const struct as_yaml_node *container, *resource, *limits, *apply, *template_;
};

/* NULL: not given, or reported already. */
static const struct as_yaml_node *find_key(const struct raw_target *raw, const char *key)
{
    const struct as_address_key *row = as_target_kind_find_key(raw->kind, key);
    return raw->values[row - raw->kind->keys] ? as_yaml_find(raw->address, key) : NULL;
}

static struct sized_keys find_keys(const struct raw_target *raw)
{
    return (struct sized_keys){
        find_key(raw, "field"),        find_key(raw, "unit"),      find_key(raw, "absent"),
        find_key(raw, "status_field"), find_key(raw, "container"), find_key(raw, "resource"),
        find_key(raw, "limits"),       find_key(raw, "apply"),     find_key(raw, "template"),
    };
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

static bool add_container(struct resolver *resolver, const struct raw_target *raw,
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

bool resolve_sized(struct resolver *resolver, const struct raw_target *raw,
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
    if (keys.field)
        is_good = add_field(resolver, raw, keys.field, config) && is_good;
    if (keys.unit)
        is_good = add_unit(resolver, raw, keys.unit, config) && is_good;
    if (keys.absent)
        add_address_field(resolver, config, "absent", keys.absent->text, keys.absent, &is_good);
    if (keys.status_field)
        is_good = add_path(resolver, config, "status_field", keys.status_field, &path) && is_good;
    if (keys.container)
        is_good = add_container(resolver, raw, &keys, config) && is_good;
    if (is_claim(raw) && raw->policy.bounds.enforce_bounds) {
        const struct as_yaml_node *key = schema_find_key(raw->node, "enforce_bounds");
        report_shrinking(resolver, key ? key : raw->key, raw->name,
                         ": set `enforce_bounds: false`");
        is_good = false;
    }
    return is_good;
}

/* --- what rules may want --- */

const char *find_lack_of_pods(const struct raw_target *target)
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
