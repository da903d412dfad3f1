/*
 * The loader of a configuration with all its rule files, and their digests and stamps. The files
 * are accepted or refused as a whole. The loader expands `rule_files`, and compares the patterns of
 * credentials with the rule set that it has loaded.
 */
#include <alertscaler/rules/config.h>

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/ruleset.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/doc/schema.h>
#include <alertscaler/doc/yaml_tree.h>
#include <alertscaler/model/scope.h>
#include <alertscaler/rules/policy.h>

#include "config_private.h"
#include "resolve.h"

/*
 * The credentials' patterns (`rules` and `targets`) compared with the existing rules and targets: a
 * pattern that matches nothing is misspelt or out of date. This is only a warning, as the rule may
 * be added later.
 */

#define COMPARED_MAX 2000000 /* name-pattern pairs: about a second */

struct search {
    struct loader *loader;
    const struct as_ruleset *ruleset;
    bool has_policies; /* whose names only patterns with a slash match */
    size_t compared;
};

static bool has_rule(struct search *search, const char *pattern)
{
    const struct as_ruleset *ruleset = search->ruleset;
    for (size_t i = 0; i < ruleset->rule_count; i++) {
        search->compared++;
        if (as_scope_match(pattern, ruleset->rules[i]->name))
            return true;
    }
    return false;
}

static bool has_target(struct search *search, const char *pattern)
{
    const struct as_ruleset *ruleset = search->ruleset;
    for (size_t i = 0; i < ruleset->target_count; i++) {
        search->compared++;
        if (as_scope_match(pattern, ruleset->targets[i]->name) ||
            as_target_may_match_id(ruleset->targets[i], pattern))
            return true;
    }
    return false;
}

static void suggest(const struct as_ruleset *ruleset, const char *pattern, bool is_rule,
                    char text_out[SUGGESTION_SIZE])
{
    struct suggestion suggestion = suggestion_start(pattern);
    const size_t count = is_rule ? ruleset->rule_count : ruleset->target_count;
    for (size_t i = 0; i < count; i++)
        suggestion_offer(&suggestion,
                         is_rule ? ruleset->rules[i]->name : ruleset->targets[i]->name);
    (void)suggestion_print(&suggestion, text_out);
}

/* False if a pattern matches nothing, or the search was given up. */
static bool check_list(struct search *search, const struct as_yaml_node *list, bool is_rule)
{
    bool is_whole = true;
    for (uint32_t i = 0; list && i < list->count; i++) {
        const char *pattern = list->items[i]->text;
        char hint[SUGGESTION_SIZE] = "";
        if (search->compared > COMPARED_MAX)
            return false;
        if (search->has_policies && strchr(pattern, '/'))
            continue; /* policies come and go */
        if (is_rule ? has_rule(search, pattern) : has_target(search, pattern))
            continue;
        if (!strchr(pattern, '*'))
            suggest(search->ruleset, pattern, is_rule, hint);
        as_yaml_warn(search->loader->tree, list->items[i], AS_YAML_SHOW,
                     search->loader->diagnostics, "%s%s",
                     is_rule ? "no rule has a name that this matches"
                             : "no target has a name or an id that this matches",
                     hint);
        is_whole = false;
    }
    return is_whole;
}

static bool matches(const struct as_yaml_node *list, const char *text)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (as_scope_match(list->items[i]->text, text))
            return true;
    }
    return false;
}

static bool matches_target(const struct as_yaml_node *list, const struct as_target_config *target)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (as_target_may_match_id(target, list->items[i]->text))
            return true;
    }
    return matches(list, target->name);
}

/* Each pattern matches something: is there a rule that both lists match? */
static void check_together(struct search *search, const struct as_yaml_node *credential)
{
    const struct as_yaml_node *rules = as_yaml_find(credential, "rules");
    const struct as_yaml_node *targets = as_yaml_find(credential, "targets");
    const struct as_ruleset *ruleset = search->ruleset;
    for (size_t i = 0; i < ruleset->rule_count; i++) {
        search->compared += rules->count;
        if (search->compared > COMPARED_MAX)
            return;
        if (!matches(rules, ruleset->rules[i]->name))
            continue;
        search->compared += targets->count;
        if (matches_target(targets, ruleset->rules[i]->target))
            return;
    }
    as_yaml_warn(search->loader->tree, schema_find_key(credential, "targets"), AS_YAML_SHOW,
                 search->loader->diagnostics,
                 "none of these is the target of one of `rules`: this credential may trigger "
                 "nothing");
}

static void check_credential(struct search *search, const struct as_yaml_node *credential)
{
    const struct as_yaml_node *rules = as_yaml_find(credential, "rules");
    const struct as_yaml_node *targets = as_yaml_find(credential, "targets");
    const bool has_rules = check_list(search, rules, true);
    const bool has_targets = check_list(search, targets, false);
    if (rules && targets && has_rules && has_targets && !search->has_policies)
        check_together(search, credential);
}

static void check_access_patterns(struct loader *loader, const struct as_ruleset *ruleset,
                                  bool has_policies)
{
    const struct as_yaml_node *receiver = as_yaml_find(as_yaml_get_root(loader->tree), "receiver");
    const struct as_yaml_node *lists[] = {
        as_yaml_find(receiver, "tokens"),
        as_yaml_find(receiver, "users"),
        as_yaml_find(receiver, "certificates"),
        as_yaml_find(receiver, "hmac"),
        as_yaml_find(as_yaml_find(receiver, "token_review"), "allow"),
    };
    struct search search = {.loader = loader, .ruleset = ruleset, .has_policies = has_policies};
    for (size_t i = 0; i < AS_ARRAY_SIZE(lists); i++) {
        for (uint32_t k = 0; lists[i] && k < lists[i]->count; k++)
            check_credential(&search, lists[i]->items[k]);
    }
    if (search.compared > COMPARED_MAX)
        as_yaml_warn(loader->tree, receiver, AS_YAML_SHOW, loader->diagnostics,
                     "there are too many patterns of `rules` and `targets` to compare all of them "
                     "with all rules and targets: not every one was checked");
}

/*
 * Expands `rule_files`: see the header. As in Prometheus, a pattern may match nothing, but a named
 * file must exist.
 */

static bool config_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Of a file that cannot be parsed. */
static bool config_names_policy(const char *path)
{
    AS_CLEANUP(as_free_p) char *text = NULL;
    size_t size = 0;
    return as_file_read(path, AS_YAML_SIZE_MAX, &text, &size) == 0 &&
           memmem(text, size, AS_POLICY_KIND, strlen(AS_POLICY_KIND));
}

enum as_config_kind as_config_find_kind(const char *path)
{
    struct as_diagnostics ignored = AS_DIAGNOSTICS_INIT;
    AS_CLEANUP(as_yaml_free_p) struct as_yaml_tree *tree = NULL;
    if (config_is_folder(path))
        return AS_CONFIG_RULES;
    const int status = as_rule_file_load(path, &ignored, &tree);
    as_diagnostics_deinit(&ignored);
    if (status < 0)
        return config_names_policy(path) ? AS_CONFIG_RULES : AS_CONFIG_SETTINGS;
    const struct as_yaml_node *root = as_yaml_get_root(tree);
    bool is_rules = as_yaml_find(root, "rules") || as_yaml_find(root, "targets");
    return is_rules ? AS_CONFIG_RULES : AS_CONFIG_SETTINGS;
}

void rule_files_deinit(struct rule_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->names[i]);
    free(files->names);
    *files = (struct rule_files){0};
}

static void rule_files_add(struct rule_files *files, const char *path)
{
    files->names = as_xgrow(files->names, files->count, &files->capacity, sizeof(char *));
    files->names[files->count++] = as_xstrdup(path);
}

static int config_compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* also removes duplicates */
static void rule_files_sort(struct rule_files *files)
{
    size_t kept = 0;
    if (files->count == 0)
        return;
    qsort(files->names, files->count, sizeof(char *), config_compare_names);
    for (size_t i = 0; i < files->count; i++) {
        if (kept > 0 && strcmp(files->names[kept - 1], files->names[i]) == 0)
            free(files->names[i]);
        else
            files->names[kept++] = files->names[i];
    }
    files->count = kept;
}

/* A missing folder has no matching files; an unreadable folder might have some. */
static int config_stop_glob(const char *path, int code)
{
    return code != ENOENT && code != ENOTDIR;
}

/* Relative to the folder; glob characters of the folder's name are escaped. */
static char *make_pattern(const char *folder, const char *text)
{
    size_t size = text[0] == '/' ? 0 : strlen(folder), used = 0;
    char *pattern = as_xmalloc(2 * size + strlen(text) + 2);
    for (size_t i = 0; i < size; i++) {
        if (strchr("*?[]\\", folder[i]))
            pattern[used++] = '\\';
        pattern[used++] = folder[i];
    }
    if (size > 0)
        pattern[used++] = '/';
    memcpy(pattern + used, text, strlen(text) + 1);
    return pattern;
}

/* What glob() says. */
static int find_matches(struct rule_files *files, const char *folder, const char *text)
{
    AS_CLEANUP(as_free_p) char *escaped = make_pattern(folder, text);
    glob_t found = {0};
    const int status = glob(escaped, GLOB_NOSORT, config_stop_glob, &found);
    for (size_t i = 0; status == 0 && i < found.gl_pathc; i++)
        rule_files_add(files, found.gl_pathv[i]);
    globfree(&found);
    return status;
}

/* Adds the files that one name or pattern leads to now; none where it leads nowhere. */
static void rule_files_find(struct rule_files *files, const char *folder, const char *text)
{
    (void)find_matches(files, folder, text); /* a load reports what cannot be found */
}

void rule_files_expand(struct rule_files *files, struct loader *loader,
                       const struct as_yaml_node *node)
{
    const struct schema_field field = {.type = SCHEMA_PATH};
    const char *path = NULL;
    if (node->kind != AS_YAML_SCALAR || node->size == 0 ||
        !schema_parse_scalar(loader, &field, node, &path))
        return;
    if (!strpbrk(node->text, "*?[")) {
        if (access(path, R_OK) == 0)
            rule_files_add(files, path);
        else
            loader_report(loader, node, "cannot read %s: %s", path, strerror(errno));
        return;
    }
    const int status = find_matches(files, loader->folder, node->text);
    if (status == GLOB_NOMATCH)
        as_yaml_warn(loader->tree, node, AS_YAML_SHOW, loader->diagnostics,
                     "no file matches this pattern");
    else if (status != 0)
        loader_report(loader, node, "cannot look for files that match this: %s",
                      status == GLOB_NOSPACE ? "not enough memory" : "a folder cannot be read");
}

/* NULL: neither ending. */
static char *swap_ending(const char *pattern)
{
    static const char *const endings[] = {".yaml", ".yml"};
    const size_t size = strlen(pattern);
    for (size_t i = 0; i < AS_ARRAY_SIZE(endings); i++) {
        const size_t ending = strlen(endings[i]);
        if (size > ending && strcmp(pattern + size - ending, endings[i]) == 0)
            return as_xasprintf("%.*s%s", (int)(size - ending), pattern, endings[1 - i]);
    }
    return NULL;
}

static bool config_is_listed(const struct rule_files *files, const char *path)
{
    struct stat one, other;
    for (size_t i = 0; i < files->count; i++) {
        if (strcmp(files->names[i], path) == 0)
            return true;
    }
    for (size_t i = 0; i < files->count && stat(path, &one) == 0; i++) {
        if (stat(files->names[i], &other) == 0 && one.st_dev == other.st_dev &&
            one.st_ino == other.st_ino)
            return true;
    }
    return false;
}

static void check_ending(const struct rule_files *files, struct loader *loader,
                         const struct as_yaml_node *node)
{
    AS_CLEANUP(as_free_p) char *other = swap_ending(node->text);
    if (!other || !strpbrk(node->text, "*?["))
        return;
    AS_CLEANUP(as_free_p) char *escaped = make_pattern(loader->folder, other);
    glob_t found = {0};
    const int status = glob(escaped, 0, config_stop_glob, &found);
    for (size_t i = 0; status == 0 && i < found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i];
        if (config_is_listed(files, path) || as_config_find_kind(path) != AS_CONFIG_RULES)
            continue;
        as_yaml_warn(
            loader->tree, node, AS_YAML_SHOW, loader->diagnostics,
            "%s has rules or targets and is passed over: add '%s' to rule_files, or rename "
            "the file",
            path, other);
        break;
    }
    globfree(&found);
}

/* Warns of rule files that the list misses because they end in the other one of `.yaml` and `.yml`.
 * Call it after all elements were expanded. */
static void rule_files_check_endings(const struct rule_files *files, struct loader *loader,
                                     const struct as_yaml_node *list)
{
    for (uint32_t i = 0; list && list->kind == AS_YAML_LIST && i < list->count; i++) {
        if (list->items[i]->kind == AS_YAML_SCALAR)
            check_ending(files, loader, list->items[i]);
    }
}

char *rule_files_copy_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return as_xstrdup("");
    return as_xstrndup(path, slash == path ? 1 : (size_t)(slash - path));
}

struct stamping {
    struct content_hash hash;
    struct timespec latest;
    const char *newest;
};

static bool is_later(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/* A missing file has a stamp too: an editor may be about to rename another one to its name. */
static void config_add(struct stamping *stamping, const char *path)
{
    struct as_file_stamp stamp;
    const bool is_there = as_file_stamp_take(path, &stamp) == 0;
    if (!is_there)
        stamp = (struct as_file_stamp){.size = -1};
    const int64_t numbers[] = {
        (int64_t)stamp.device,  (int64_t)stamp.inode, (int64_t)stamp.size,   stamp.modified.tv_sec,
        stamp.modified.tv_nsec, stamp.changed.tv_sec, stamp.changed.tv_nsec,
    };
    content_hash_add(&stamping->hash, path, strlen(path) + 1);
    content_hash_add(&stamping->hash, (const char *)numbers, sizeof(numbers));
    if (is_there && is_later(stamp.changed, stamping->latest)) {
        stamping->latest = stamp.changed;
        stamping->newest = path;
    }
}

void as_config_stamp_files(const struct as_config *config, struct as_config_stamps *stamps_out)
{
    AS_CLEANUP(rule_files_deinit) struct rule_files files = {0};
    AS_CLEANUP(as_free_p) char *folder = rule_files_copy_folder(config->path);
    const struct as_settings *settings = &config->settings;
    struct stamping stamping = {.hash = content_hash_begin(), .newest = config->path};
    for (size_t i = 0; i < settings->rule_file_count; i++)
        rule_files_find(&files, folder, settings->rule_files[i]);
    rule_files_sort(&files);
    config_add(&stamping, config->path);
    for (size_t i = 0; i < files.count; i++)
        config_add(&stamping, files.names[i]);
    content_hash_end(&stamping.hash, stamps_out->text);
    (void)snprintf(stamps_out->newest, sizeof(stamps_out->newest), "%s", stamping.newest);
}

/*
 * The files of a configuration, read again without being parsed: what their digests are now.
 */

static bool config_add_file(struct content_hash *hash, const char *path)
{
    char *text = NULL;
    size_t size = 0;
    if (as_file_read(path, AS_YAML_SIZE_MAX, &text, &size) != 0)
        return false;
    content_hash_add(hash, text, size);
    free(text);
    return true;
}

static void hash_files(const char *const *paths, size_t count, char text_out[AS_DIGEST_TEXT_SIZE])
{
    struct content_hash hash = content_hash_begin();
    bool is_whole = true;
    for (size_t i = 0; i < count && is_whole; i++)
        is_whole = config_add_file(&hash, paths[i]);
    content_hash_end(&hash, text_out);
    if (!is_whole)
        text_out[0] = '\0';
}

void as_config_hash_files(const struct as_config *config, struct as_config_digests *digests_out)
{
    AS_CLEANUP(rule_files_deinit) struct rule_files files = {0};
    AS_CLEANUP(as_free_p) char *folder = rule_files_copy_folder(config->path);
    const struct as_settings *settings = &config->settings;
    for (size_t i = 0; i < settings->rule_file_count; i++)
        rule_files_find(&files, folder, settings->rule_files[i]);
    rule_files_sort(&files);
    hash_files((const char *const *)&config->path, 1, digests_out->config);
    hash_files((const char *const *)files.names, files.count, digests_out->rules);
}

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

static void config_hash(struct as_yaml_tree *const *trees, size_t count,
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

static void load_settings(struct loading *loading)
{
    struct as_config *config = loading->config;
    struct loader loader = make_loader(loading, loading->settings_tree);
    schema_fill_defaults(&loader, &schema_settings, &config->settings);
    if (loading->settings_tree) {
        const struct as_yaml_node *root = as_yaml_get_root(loading->settings_tree);
        schema_parse(&loader, &schema_settings, root, root, &config->settings);
        config_hash(&loading->settings_tree, 1, config->digest);
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

/* An empty folder in place of the rules is usually a mistake: a wrong path, a volume that is not
 * mounted. A reload would drop all rules. Names of files that are missing were reported. */
static void config_check_rule_files(struct loading *loading)
{
    const struct as_settings *settings = &loading->config->settings;
    const struct as_yaml_node *key =
        loading->settings_tree
            ? schema_find_key(as_yaml_get_root(loading->settings_tree), "rule_files")
            : NULL;
    if (!key || loading->has_other_rules || loading->files.count > 0 ||
        settings->rule_file_count == 0 || settings->allow_empty_rules)
        return;
    for (size_t i = 0; i < settings->rule_file_count; i++) {
        if (!strpbrk(settings->rule_files[i], "*?["))
            return;
    }
    struct loader loader = make_loader(loading, loading->settings_tree);
    loader_report(&loader, key,
                  "no rule file is found: add a file, or set `allow_empty_rules: true` to run "
                  "without rules");
}

static void config_load_trees(struct loading *loading)
{
    for (size_t i = 0; i < loading->files.count; i++) {
        struct as_yaml_tree *tree = NULL;
        if (i == AS_RULE_FILES_MAX) {
            as_diagnostics_add(loading->diagnostics,
                               &(struct as_diagnostic){.file = loading->files.names[i],
                                                       .message = "more than 10000 rule files"});
            return;
        }
        if (as_rule_file_load(loading->files.names[i], loading->diagnostics, &tree) < 0)
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
static void config_join(struct resolver *resolver, struct raw_rule_file *files, size_t count)
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

/*
 * The stamps of all files of a configuration, as one text.
 */

/* `settings`: NULL, not known. */
static void load_rules(struct loading *loading, const struct as_settings *settings)
{
    struct as_arena arena = AS_ARENA_INIT; /* of what is freed at the end */
    struct raw_rule_file *files = as_arena_alloc(&arena, loading->tree_count, sizeof(*files));
    struct resolver resolver = {
        .loader = make_loader(loading, NULL),
        .settings = settings,
        .ruleset = loading->config->ruleset,
        .settings_root = loading->settings_tree ? as_yaml_get_root(loading->settings_tree) : NULL,
    };
    resolver.loader.arena = &arena;
    resolver.loader.defaults = settings ? &settings->defaults : &loading->config->settings.defaults;
    const struct as_yaml_node **roots = as_arena_alloc(&arena, loading->tree_count, sizeof(*roots));
    for (size_t i = 0; i < loading->tree_count; i++)
        roots[i] = as_yaml_get_root(loading->trees[i]);
    collect_units(&resolver.loader, roots, loading->tree_count);
    for (size_t i = 0; i < loading->tree_count; i++) {
        const struct as_yaml_node *root = roots[i];
        resolver.loader.tree = loading->trees[i];
        schema_parse(&resolver.loader, &schema_rule_file, root, root, &files[i]);
    }
    config_join(&resolver, files, loading->tree_count);
    if (resolver.target_count > AS_RULES_MAX || resolver.rule_count > AS_RULES_MAX)
        loader_report(&resolver.loader, as_yaml_get_root(resolver.loader.tree),
                      "more than %d rules or targets in all files", AS_RULES_MAX);
    else
        resolve_rules(&resolver);
    config_hash(loading->trees, loading->tree_count, loading->config->ruleset->digest);
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

static int config_load(struct loading *loading, struct as_config **config_out)
{
    load_settings(loading);
    config_check_rule_files(loading);
    rule_files_sort(&loading->files);
    config_load_trees(loading);
    load_rules(loading, loading->settings_tree ? &loading->config->settings : NULL);
    if (loading->diagnostics->has_error)
        return AS_CONFIG_INVALID;
    if (loading->settings_tree && !loading->has_other_rules) {
        struct loader loader = make_loader(loading, loading->settings_tree);
        check_access_patterns(&loader, loading->config->ruleset,
                              loading->config->settings.objects.is_enabled);
    }
    *config_out = loading->config;
    loading->config = NULL;
    return AS_CONFIG_OK;
}

static int config_is_yaml(const struct dirent *entry)
{
    return fnmatch("*.yaml", entry->d_name, FNM_PERIOD) == 0 ||
           fnmatch("*.yml", entry->d_name, FNM_PERIOD) == 0;
}

/* The rule files and policies of a folder, in the order of their names. Manifests of other objects
 * are passed over. */
static void config_add_folder(struct loading *loading, const char *folder)
{
    struct dirent **entries = NULL;
    const size_t before = loading->files.count;
    const int count = scandir(folder, &entries, config_is_yaml, alphasort);
    AS_CLEANUP(as_free_p)
    char *message = count < 0 ? as_xasprintf("cannot read the folder: %s", strerror(errno))
                    : count == 0
                        ? as_xstrdup("no *.yaml or *.yml in this folder")
                        : as_xstrdup("no rule file, and no " AS_POLICY_KIND ", in this folder");
    for (int i = 0; i < count; i++) {
        AS_CLEANUP(as_free_p) char *path = as_xasprintf("%s/%s", folder, entries[i]->d_name);
        if (!as_rule_file_is_other(path))
            rule_files_add(&loading->files, path);
        free(entries[i]);
    }
    free(entries);
    if (loading->files.count == before)
        as_diagnostics_add(loading->diagnostics,
                           &(struct as_diagnostic){.file = folder, .message = message});
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
    for (size_t i = 0; rules && i < count; i++) {
        if (config_is_folder(rules[i]))
            config_add_folder(&loading, rules[i]);
        else
            rule_files_add(&loading.files, rules[i]);
    }
    if (path && !rules)
        find_rule_files(&loading);
    status = config_load(&loading, config_out);
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

void as_policy_add_with_paths(const struct as_diagnostics *found, const struct as_yaml_tree *tree,
                              struct as_diagnostics *diagnostics)
{
    for (size_t i = 0; i < found->count; i++) {
        AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(4096);
        struct as_diagnostic item = found->items[i];
        if (tree)
            as_yaml_append_path(tree, item.line, item.column, &path);
        item.file = path.size > 0 ? path.data : "";
        item.line = item.column = item.end_column = 0;
        item.excerpt = NULL;
        as_diagnostics_add(diagnostics, &item);
    }
}

int as_policy_compile(const struct as_settings *settings, const char *text, size_t size,
                      struct as_ruleset **ruleset_out, struct as_diagnostics *diagnostics)
{
    struct as_diagnostics found = AS_DIAGNOSTICS_INIT;
    struct as_yaml_tree *tree = NULL;
    AS_CLEANUP(as_config_free_p) struct as_config *config = config_new("");
    AS_CLEANUP(loading_deinit)
    struct loading loading = {.diagnostics = &found, .config = config};
    if (as_policy_parse(text, size, &found, &tree) >= 0) {
        loading.trees = as_xcalloc(1, sizeof(struct as_yaml_tree *));
        loading.trees[loading.tree_count++] = tree;
        load_rules(&loading, settings);
    }
    as_policy_add_with_paths(&found, tree, diagnostics);
    const bool is_good = !found.has_error;
    as_diagnostics_deinit(&found);
    if (!is_good)
        return -EINVAL;
    *ruleset_out = config->ruleset;
    config->ruleset = NULL;
    return 0;
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
