/*
 * Finds files by their keys: `..._file` anywhere, `files` of a header, `file` of a token; and the
 * files that a cluster's kubeconfig names.
 */
#include "check_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/errno_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/daemon/writable.h>
#include <alertscaler/doc/yaml_tree.h>
#include <alertscaler/http/secret_file.h>
#include <alertscaler/kube/kube_access.h>

#define FILE_MAX ((size_t)16 * 1024 * 1024)

struct walk {
    const struct as_yaml_tree *tree;
    struct as_diagnostics *diagnostics;
    const char *path;                /* of the configuration */
    const struct as_yaml_node *node; /* the present cluster */
};

static void warn_unreadable(struct walk *walk, const struct as_yaml_node *node, const char *path)
{
    char *text;
    size_t size;
    const int status = as_file_read(path, FILE_MAX, &text, &size);
    if (status == 0)
        as_wipe_free(text);
    else
        as_yaml_warn(walk->tree, node, AS_YAML_SHOW, walk->diagnostics,
                     "%s cannot be read now: %s; what needs it fails until it can", path,
                     as_errno_get_text(status));
}

/* Paths in a configuration are relative to its folder. */
static char *resolve(const struct walk *walk, const char *path)
{
    const char *slash = strrchr(walk->path, '/');
    if (path[0] == '/' || !slash)
        return as_xstrdup(path);
    return as_xasprintf("%.*s/%s", (int)(slash - walk->path), walk->path, path);
}

static void check_file(struct walk *walk, const struct as_yaml_node *node)
{
    AS_CLEANUP(as_free_p) char *path = resolve(walk, node->text);
    warn_unreadable(walk, node, path);
}

static void check_secret(struct walk *walk, const struct as_yaml_node *node)
{
    AS_CLEANUP(as_free_p) char *path = resolve(walk, node->text);
    struct as_secret_file file;
    struct as_error error = AS_ERROR_INIT;
    const char *text;
    as_secret_file_init(&file, path);
    if (as_secret_file_get(&file, (as_mono_time){0}, 0, &text, &error) != 0)
        as_yaml_report(walk->tree, node, AS_YAML_SHOW, walk->diagnostics,
                       "%s; alertscaler does not start without it", error.text);
    as_secret_file_deinit(&file);
}

static bool is_file_key(const char *key)
{
    static const char end[] = "_file";
    const size_t size = strlen(key);
    return size > strlen(end) && strcmp(key + size - strlen(end), end) == 0;
}

static void check_map(struct walk *walk, const struct as_yaml_node *map);

static void check_pair(struct walk *walk, const struct as_yaml_pair *pair)
{
    const struct as_yaml_node *value = pair->value;
    if (value->kind == AS_YAML_MAP)
        check_map(walk, value);
    else if (value->kind == AS_YAML_SCALAR && is_file_key(pair->key->text))
        check_file(walk, value);
    for (uint32_t i = 0; value->kind == AS_YAML_LIST && i < value->count; i++) {
        if (strcmp(pair->key->text, "files") == 0)
            check_file(walk, value->items[i]);
        else if (value->items[i]->kind == AS_YAML_MAP)
            check_map(walk, value->items[i]);
    }
}

static void check_map(struct walk *walk, const struct as_yaml_node *map)
{
    for (uint32_t i = 0; i < map->count; i++)
        check_pair(walk, &map->pairs[i]);
}

/* Checks the key in each map of a list. */
static void check_secrets(struct walk *walk, const struct as_yaml_node *list, const char *key)
{
    for (uint32_t i = 0; list && i < list->count; i++)
        check_secret(walk, as_yaml_find(list->items[i], key));
}

static void check_named(void *context, const char *path, bool is_program)
{
    struct walk *walk = context;
    if (!is_program)
        warn_unreadable(walk, walk->node, path);
}

static const char *get_variable(const char *name)
{
    return getenv(name);
}

static void check_cluster(struct walk *walk, const struct as_cluster_settings *cluster)
{
    const struct as_access_env env = {.get_variable = get_variable};
    const struct as_kube_access_config config = {cluster->kubeconfig, cluster->context};
    const struct as_yaml_node *clusters = as_yaml_find(as_yaml_get_root(walk->tree), "clusters");
    const struct as_yaml_node *map = as_yaml_find(clusters, cluster->name);
    const struct as_yaml_node *context = as_yaml_find(map, "context");
    struct as_kube_access *access;
    struct as_error error = AS_ERROR_INIT;
    if (!cluster->kubeconfig && !cluster->context)
        return; /* depends on where the daemon runs */
    walk->node = cluster->kubeconfig ? as_yaml_find(map, "kubeconfig") : context;
    if (as_kube_access_new(&config, &env, &access, &error) != 0) {
        as_yaml_report(walk->tree, walk->node, AS_YAML_SHOW, walk->diagnostics,
                       "%s; alertscaler does not start without it", error.text);
        return;
    }
    as_kube_access_free(access);
    as_kube_access_visit_files(&config, &env, check_named, walk);
}

/* Only if it is written: the default is for the daemon's machine. */
static void check_place(struct walk *walk, const char *key, const char *path)
{
    const struct as_yaml_node *map = as_yaml_find(as_yaml_get_root(walk->tree), key);
    const struct as_yaml_node *node = as_yaml_find(map, "path");
    struct as_error error = AS_ERROR_INIT;
    if (node && as_writable_check(path, true, &error) != 0)
        as_yaml_warn(walk->tree, node, AS_YAML_SHOW, walk->diagnostics,
                     "%s, or name another place; alertscaler does not start here", error.text);
}

void check_files(const struct as_config *config, struct as_diagnostics *diagnostics)
{
    AS_CLEANUP(as_yaml_free_p) struct as_yaml_tree *tree = NULL;
    const struct as_settings *settings = &config->settings;
    if (as_yaml_load(config->path, diagnostics, &tree) != AS_YAML_OK)
        return; /* reported by the load */
    const struct as_yaml_node *root = as_yaml_get_root(tree);
    const struct as_yaml_node *receiver = as_yaml_find(root, "receiver");
    struct walk walk = {.tree = tree, .diagnostics = diagnostics, .path = config->path};
    check_secrets(&walk, as_yaml_find(receiver, "tokens"), "file");
    check_secrets(&walk, as_yaml_find(receiver, "hmac"), "secret_file");
    for (uint32_t i = 0; root->kind == AS_YAML_MAP && i < root->count; i++) {
        if (root->pairs[i].value != receiver)
            check_pair(&walk, &root->pairs[i]);
    }
    for (size_t i = 0; i < settings->cluster_count; i++)
        check_cluster(&walk, &settings->clusters[i]);
    if (settings->state.store == AS_STORE_SQLITE)
        check_place(&walk, "state", settings->state.path);
    check_place(&walk, "action_log", settings->action_log.path);
}
