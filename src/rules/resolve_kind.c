/*
 * What is known here of Kubernetes' kinds: their version, whether they have a size, and whether
 * they are in a namespace. Of other kinds the cluster says it, when the target is observed.
 */
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/str.h>

#include "resolve.h"

/* Kinds with a known apiVersion. */
static const struct {
    const char *kind, *api_version;
    bool has_scale;
} kinds[] = {
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

bool kind_has_scale(const char *kind)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(kinds); i++) {
        if (strcmp(kinds[i].kind, kind) == 0)
            return kinds[i].has_scale;
    }
    return false;
}

/* All of them are in a namespace; with another group in the version it is another kind. */
static bool kind_has_namespace(const char *kind, const char *api_version)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(kinds); i++) {
        if (strcmp(kinds[i].kind, kind) != 0)
            continue;
        const size_t group = strcspn(kinds[i].api_version, "/");
        return !api_version || strncmp(kinds[i].api_version, api_version, group) == 0;
    }
    return false;
}

const char *find_api_version(struct resolver *resolver, const struct as_yaml_node *node,
                             bool is_scale)
{
    char hint[SUGGESTION_SIZE];
    struct suggestion suggestion = suggestion_start(node->text);
    for (size_t i = 0; i < AS_ARRAY_SIZE(kinds); i++) {
        if (strcmp(kinds[i].kind, node->text) == 0 && (kinds[i].has_scale || !is_scale))
            return kinds[i].api_version;
        if (strcmp(kinds[i].kind, node->text) == 0) {
            loader_report(
                &resolver->loader, node,
                "a %s has no scale subresource, and so no size: `field` names a number in "
                "it",
                node->text);
            return NULL;
        }
        if (kinds[i].has_scale || !is_scale)
            suggestion_offer(&suggestion, kinds[i].kind);
    }
    loader_report(&resolver->loader, node, "kind `%s` needs an `apiVersion`%s", node->text,
                  suggestion_print(&suggestion, hint));
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

bool check_namespace(struct resolver *resolver, const struct raw_target *raw, const char *kind,
                     const char *api_version)
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
