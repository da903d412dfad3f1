/*
 * Loading: the configuration, the rule files it names, and checks over all of them. After an error
 * nothing is kept.
 */
#include <alertscaler/rules/config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/doc/yaml_tree.h>

#include "access_patterns.h"
#include "content_hash.h"
#include "resolve.h"
#include "rule_files.h"

struct loading {
    struct as_config *config;
    struct as_diagnostics *diagnostics;
    struct as_yaml_tree *settings_tree; /* NULL: no configuration */
    struct as_yaml_tree **trees;        /* of the rule files */
    size_t tree_count, tree_capacity;
    struct rule_files files;
    char *folder;         /* of the configuration */
    bool has_other_rules; /* different from the files it names */
};

static void loading_deinit(struct loading *loading)
{
    for (size_t i = 0; i < loading->tree_count; i++)
        as_yaml_free(loading->trees[i]);
    free(loading->trees);
    rule_files_deinit(&loading->files);
    free(loading->folder);
    as_yaml_free(loading->settings_tree);
}

static struct loader make_loader(const struct loading *loading, const struct as_yaml_tree *tree)
{
    return (struct loader){
        .tree = tree,
        .diagnostics = loading->diagnostics,
        .arena = &loading->config->arena,
        .folder = loading->folder ? loading->folder : "",
    };
}

static void hash(struct as_yaml_tree *const *trees, size_t count,
                 char text_out[AS_DIGEST_TEXT_SIZE])
{
    struct content_hash hash = content_hash_begin();
    for (size_t i = 0; i < count; i++) {
        size_t size = 0;
        const char *text = as_yaml_get_text(trees[i], &size);
        content_hash_add(&hash, text, size);
    }
    content_hash_end(&hash, text_out);
}

/* Every configuration has a cluster `default`, even if not given. */
static void add_default_cluster(struct as_config *config)
{
    struct as_settings *settings = &config->settings;
    if (as_settings_find_cluster(settings, "default"))
        return;
    struct as_cluster_settings *clusters =
        as_arena_alloc(&config->arena, settings->cluster_count + 1, sizeof(*clusters));
    if (settings->cluster_count > 0)
        memcpy(clusters, settings->clusters, settings->cluster_count * sizeof(*clusters));
    clusters[settings->cluster_count++] = (struct as_cluster_settings){.name = "default"};
    settings->clusters = clusters;
}

static void load_settings(struct loading *loading)
{
    struct as_config *config = loading->config;
    struct loader loader = make_loader(loading, loading->settings_tree);
    schema_fill_defaults(&loader, &schema_settings, &config->settings);
    if (loading->settings_tree) {
        const struct as_yaml_node *root = as_yaml_get_root(loading->settings_tree);
        schema_parse(&loader, &schema_settings, root, root, &config->settings);
        hash(&loading->settings_tree, 1, config->digest);
    }
    add_default_cluster(config);
    const char *cluster = config->settings.receiver.token_review.cluster;
    if (cluster && !as_settings_find_cluster(&config->settings, cluster)) {
        const struct as_yaml_node *root = as_yaml_get_root(loading->settings_tree);
        const struct as_yaml_node *review =
            as_yaml_find(as_yaml_find(root, "receiver"), "token_review");
        loader_report(&loader, as_yaml_find(review, "cluster"), "there is no cluster `%s`",
                      cluster);
    }
}

static void find_rule_files(struct loading *loading)
{
    struct loader loader = make_loader(loading, loading->settings_tree);
    const struct as_yaml_node *root = as_yaml_get_root(loading->settings_tree);
    const struct as_yaml_node *list = as_yaml_find(root, "rule_files");
    for (uint32_t i = 0; list && list->kind == AS_YAML_LIST && i < list->count; i++)
        rule_files_expand(&loading->files, &loader, list->items[i]);
    rule_files_check_endings(&loading->files, &loader, list);
}

static void load_trees(struct loading *loading)
{
    for (size_t i = 0; i < loading->files.count; i++) {
        struct as_yaml_tree *tree = NULL;
        if (i == AS_RULE_FILES_MAX) {
            as_diagnostics_add(loading->diagnostics,
                               &(struct as_diagnostic){.file = loading->files.names[i],
                                                       .message = "more than 10000 rule files"});
            return;
        }
        if (as_yaml_load(loading->files.names[i], loading->diagnostics, &tree) < 0)
            continue;
        loading->trees = as_xgrow(loading->trees, loading->tree_count, &loading->tree_capacity,
                                  sizeof(struct as_yaml_tree *));
        loading->trees[loading->tree_count++] = tree;
    }
}

static void *join_pointers(struct as_arena *arena, size_t count)
{
    return as_arena_alloc(arena, count, sizeof(void *));
}

/* Concatenates the targets and rules of all files. */
static void join(struct resolver *resolver, struct raw_rule_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        resolver->target_count += files[i].target_count;
        resolver->rule_count += files[i].rule_count;
    }
    resolver->targets = join_pointers(resolver->loader.arena, resolver->target_count);
    resolver->rules = join_pointers(resolver->loader.arena, resolver->rule_count);
    size_t target = 0, rule = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < files[i].target_count; j++)
            resolver->targets[target++] = &files[i].targets[j];
        for (size_t j = 0; j < files[i].rule_count; j++)
            resolver->rules[rule++] = &files[i].rules[j];
    }
}

static void keep_file_names(struct loading *loading)
{
    struct as_config *config = loading->config;
    config->rule_files =
        as_arena_alloc(&config->arena, loading->tree_count, sizeof(*config->rule_files));
    for (size_t i = 0; i < loading->tree_count; i++)
        config->rule_files[i] =
            as_arena_strdup(&config->arena, as_yaml_get_file(loading->trees[i]));
    config->rule_file_count = loading->tree_count;
}

static void load_rules(struct loading *loading)
{
    struct as_arena arena = AS_ARENA_INIT; /* of what is freed at the end */
    struct raw_rule_file *files = as_arena_alloc(&arena, loading->tree_count, sizeof(*files));
    struct resolver resolver = {
        .loader = make_loader(loading, NULL),
        .settings = loading->settings_tree ? &loading->config->settings : NULL,
        .ruleset = loading->config->ruleset,
        .settings_root = loading->settings_tree ? as_yaml_get_root(loading->settings_tree) : NULL,
    };
    resolver.loader.arena = &arena;
    resolver.loader.defaults = &loading->config->settings.defaults;
    for (size_t i = 0; i < loading->tree_count; i++) {
        const struct as_yaml_node *root = as_yaml_get_root(loading->trees[i]);
        resolver.loader.tree = loading->trees[i];
        schema_parse(&resolver.loader, &schema_rule_file, root, root, &files[i]);
    }
    join(&resolver, files, loading->tree_count);
    if (resolver.target_count > AS_RULES_MAX || resolver.rule_count > AS_RULES_MAX)
        loader_report(&resolver.loader, as_yaml_get_root(resolver.loader.tree),
                      "more than %d rules or targets in all files", AS_RULES_MAX);
    else
        resolve_rules(&resolver);
    hash(loading->trees, loading->tree_count, loading->config->ruleset->digest);
    keep_file_names(loading);
    as_arena_deinit(&arena);
}

static struct as_config *config_new(const char *path)
{
    struct as_config *config = as_xcalloc(1, sizeof(*config));
    config->path = as_xstrdup(path);
    config->ruleset = as_xcalloc(1, sizeof(*config->ruleset));
    return config;
}

static int load(struct loading *loading, struct as_config **config_out)
{
    load_settings(loading);
    rule_files_sort(&loading->files);
    load_trees(loading);
    load_rules(loading);
    if (loading->diagnostics->has_error)
        return AS_CONFIG_INVALID;
    if (loading->settings_tree && !loading->has_other_rules) {
        struct loader loader = make_loader(loading, loading->settings_tree);
        check_access_patterns(&loader, loading->config->ruleset);
    }
    *config_out = loading->config;
    loading->config = NULL;
    return AS_CONFIG_OK;
}

/* Loads the configuration at `path`, or an empty one, with its own rule files or `rules`. */
static int load_all(const char *path, const char *const *rules, size_t count,
                    struct as_config **config_out, struct as_diagnostics *diagnostics)
{
    AS_CLEANUP(loading_deinit) struct loading loading = {.diagnostics = diagnostics};
    int status = 0;
    if (path && rules) /* for a command: the daemon loads its own rules */
        status = as_yaml_input_load(path, diagnostics, &loading.settings_tree);
    else if (path)
        status = as_yaml_load(path, diagnostics, &loading.settings_tree);
    if (status < 0)
        return status == -EINVAL || status == -EFBIG ? AS_CONFIG_INVALID : status;
    AS_CLEANUP(as_config_free_p) struct as_config *config = config_new(path ? path : "");
    loading.config = config;
    loading.has_other_rules = rules != NULL;
    if (path)
        loading.folder = rule_files_copy_folder(path);
    for (size_t i = 0; rules && i < count; i++)
        rule_files_add(&loading.files, rules[i]);
    if (path && !rules)
        find_rule_files(&loading);
    status = load(&loading, config_out);
    config = loading.config;
    return status;
}

int as_config_load(const char *path, struct as_config **config_out,
                   struct as_diagnostics *diagnostics)
{
    return load_all(path, NULL, 0, config_out, diagnostics);
}

int as_config_load_rules(const char *const *paths, size_t count, struct as_config **config_out,
                         struct as_diagnostics *diagnostics)
{
    return load_all(NULL, paths, count, config_out, diagnostics);
}

int as_config_load_with_rules(const char *path, const char *const *rules, size_t count,
                              struct as_config **config_out, struct as_diagnostics *diagnostics)
{
    return load_all(path, rules, count, config_out, diagnostics);
}

int as_config_load_http(const char *path, struct as_config **config_out,
                        struct as_diagnostics *diagnostics)
{
    AS_CLEANUP(loading_deinit) struct loading loading = {.diagnostics = diagnostics};
    struct as_yaml_tree *tree = NULL;
    int status = as_yaml_input_load(path, diagnostics, &tree);
    if (status < 0)
        return status == -EINVAL || status == -EFBIG ? AS_CONFIG_INVALID : status;
    AS_CLEANUP(as_config_free_p) struct as_config *config = config_new(path);
    loading.folder = rule_files_copy_folder(path);
    loading.config = config;
    load_settings(&loading);
    struct loader loader = make_loader(&loading, tree);
    const struct as_yaml_node *root = as_yaml_get_root(tree);
    schema_parse(&loader, &schema_http_config, root, root, &config->settings.prometheus.http);
    as_yaml_free(tree);
    if (diagnostics->has_error)
        return AS_CONFIG_INVALID;
    *config_out = config;
    config = NULL;
    return AS_CONFIG_OK;
}

struct as_config *as_config_free(struct as_config *config)
{
    if (!config)
        return NULL;
    for (size_t i = 0; i < config->settings.receiver.watchdog_count; i++)
        as_matcher_deinit(&config->settings.receiver.watchdog[i]);
    as_ruleset_free(config->ruleset);
    as_arena_deinit(&config->arena);
    free(config->path);
    free(config);
    return NULL;
}

enum as_config_kind as_config_find_kind(const char *path)
{
    struct as_diagnostics ignored = AS_DIAGNOSTICS_INIT;
    AS_CLEANUP(as_yaml_free_p) struct as_yaml_tree *tree = NULL;
    int status = as_yaml_load(path, &ignored, &tree);
    as_diagnostics_deinit(&ignored);
    const struct as_yaml_node *root = status >= 0 ? as_yaml_get_root(tree) : NULL;
    bool is_rules = as_yaml_find(root, "rules") || as_yaml_find(root, "targets");
    return is_rules ? AS_CONFIG_RULES : AS_CONFIG_SETTINGS;
}
