/*
 * AlertmanagerConfig, the object of Prometheus' operator, read as what the operator makes of it:
 * receivers are called NAMESPACE/OBJECT/RECEIVER, and its route stands below a root route that is
 * not in the object, with `continue: true` and the matcher namespace="NAMESPACE"
 * (alertmanagerConfigMatcherStrategy: OnNamespace, the operator's default).
 */
#include <ctype.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "lint_alertmanager.h"

#define KEY_MAX 40 /* bytes of our own keys */

/* "group_by": "groupBy" */
static void make_camel(const char *key, char out[KEY_MAX])
{
    size_t size = 0;
    for (; *key && size < KEY_MAX - 1; key++) {
        const bool is_mark = *key == '_' && key[1];
        key += is_mark;
        out[size++] = is_mark ? (char)toupper((unsigned char)*key) : *key;
    }
    out[size] = '\0';
}

const struct as_yaml_node *lint_find(const struct lint_alertmanager *alertmanager,
                                     const struct as_yaml_node *map, const char *key)
{
    char camel[KEY_MAX];
    if (!alertmanager->object_name)
        return as_yaml_find(map, key);
    make_camel(key, camel);
    return as_yaml_find(map, camel);
}

const char *lint_name_receiver(struct lint_alertmanager *alertmanager, const char *name)
{
    if (!alertmanager->object_name)
        return name;
    AS_CLEANUP(as_free_p)
    char *whole =
        as_xasprintf("%s/%s/%s", alertmanager->object_namespace, alertmanager->object_name, name);
    return as_arena_strdup(&alertmanager->arena, whole);
}

static const char *find_name(const struct as_yaml_node *metadata, const char *key)
{
    const struct as_yaml_node *node = as_yaml_find(metadata, key);
    return node && node->kind == AS_YAML_SCALAR && !as_yaml_is_null(node) ? node->text : NULL;
}

const struct as_yaml_node *lint_find_spec(struct lint_alertmanager *alertmanager,
                                          struct as_diagnostics *diagnostics)
{
    const struct as_yaml_node *root = as_yaml_get_root(alertmanager->tree);
    const struct as_yaml_node *metadata = as_yaml_find(root, "metadata");
    if (!as_str_equal(find_name(root, "kind"), "AlertmanagerConfig"))
        return root;
    alertmanager->object_namespace = find_name(metadata, "namespace");
    alertmanager->object_name = find_name(metadata, "name");
    if (!alertmanager->object_namespace || !alertmanager->object_name) {
        as_yaml_report(alertmanager->tree, metadata ? metadata : root, AS_YAML_HIDE, diagnostics,
                       "`metadata` needs `namespace` and `name` here: the operator calls receivers "
                       "NAMESPACE/NAME/RECEIVER, and routes only alerts of this namespace");
        return NULL;
    }
    const struct as_yaml_node *spec = as_yaml_find(root, "spec");
    return spec ? spec : root;
}
