/*
 * Whether a Kubernetes object is in a namespace. Of kinds that are not known here the cluster says
 * it, when the target is observed.
 */
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/str.h>

#include "resolve.h"

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
