/*
 * `alertscaler diff`: the targets and rules of two configurations, folders or rule files, compared
 * key by key as they are written. Both sides are checked as by `check` before they are compared.
 *
 * An entry of a rule file is flattened to keys with paths, `action.scale_up.by`. The keys that a
 * target takes from `defaults` of its configuration belong to the target. Values of other settings
 * are never printed, since they may be secrets: only the names of their keys.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/yaml_tree.h>
#include <alertscaler/rules/config.h>
#include <alertscaler/rules/policy.h>

#include "cli.h"

#define DIFF_VALUE_SHOWN 200 /* bytes of a value in the text */
#define DIFF_VALUE_MAX   (4 * AS_YAML_SIZE_MAX)

enum diff_side { DIFF_OLD, DIFF_NEW, DIFF_SIDES };

static const char *const diff_words[DIFF_SIDES] = {"old", "new"};

struct diff_key {
    char *path, *value;
};

struct diff_entry { /* a target, a rule, or a key of the configuration */
    const char *name, *file;
    uint32_t line;
    struct diff_key *keys; /* by path */
    size_t count, capacity;
};

struct diff_entries {
    struct diff_entry *items; /* by name */
    size_t count, capacity;
};

struct diff_files { /* one side */
    struct as_config *config;
    bool is_rules;                 /* without a configuration of its own */
    struct as_yaml_tree *settings; /* NULL: none is given */
    struct as_yaml_tree **trees;
    size_t tree_count;
    struct diff_entries targets, rules, keys;
};

/* --- one side --- */

static void diff_entries_deinit(struct diff_entries *entries)
{
    for (size_t i = 0; i < entries->count; i++) {
        for (size_t k = 0; k < entries->items[i].count; k++) {
            free(entries->items[i].keys[k].path);
            free(entries->items[i].keys[k].value);
        }
        free(entries->items[i].keys);
    }
    free(entries->items);
}

static void diff_files_deinit(struct diff_files *files)
{
    diff_entries_deinit(&files->targets);
    diff_entries_deinit(&files->rules);
    diff_entries_deinit(&files->keys);
    for (size_t i = 0; i < files->tree_count; i++)
        as_yaml_free(files->trees[i]);
    free(files->trees);
    as_yaml_free(files->settings);
    as_config_free(files->config);
}

/* In YAML's flow style, on one line. */
static void diff_append_value(struct as_buf *out, const struct as_yaml_node *node)
{
    switch (node->kind) {
    case AS_YAML_SCALAR: as_buf_append(out, node->text, node->size); break;
    case AS_YAML_LIST:
        as_buf_append_char(out, '[');
        for (uint32_t i = 0; i < node->count; i++) {
            as_buf_append_str(out, i > 0 ? ", " : "");
            diff_append_value(out, node->items[i]);
        }
        as_buf_append_char(out, ']');
        break;
    case AS_YAML_MAP:
        as_buf_append_char(out, '{');
        for (uint32_t i = 0; i < node->count; i++) {
            as_buf_printf(out, "%s%s: ", i > 0 ? ", " : "", node->pairs[i].key->text);
            diff_append_value(out, node->pairs[i].value);
        }
        as_buf_append_char(out, '}');
        break;
    }
}

static void diff_add_key(struct diff_entry *entry, const char *path,
                         const struct as_yaml_node *node)
{
    struct as_buf text = AS_BUF_INIT(DIFF_VALUE_MAX);
    diff_append_value(&text, node);
    entry->keys = as_xgrow(entry->keys, entry->count, &entry->capacity, sizeof(struct diff_key));
    entry->keys[entry->count++] = (struct diff_key){
        .path = as_xstrdup(path), .value = as_xstrdup(text.size > 0 ? text.data : "")};
    as_buf_deinit(&text);
}

/* A list whose items all have a `name`, such as `schedules`. */
static bool diff_is_named_list(const struct as_yaml_node *node)
{
    for (uint32_t i = 0; i < node->count; i++) {
        const struct as_yaml_node *name = as_yaml_find(node->items[i], "name");
        if (!name || name->kind != AS_YAML_SCALAR)
            return false;
    }
    return node->count > 0;
}

static void diff_flatten(struct diff_entry *entry, const char *path,
                         const struct as_yaml_node *node)
{
    if (node->kind == AS_YAML_MAP && node->count > 0) {
        for (uint32_t i = 0; i < node->count; i++) {
            AS_CLEANUP(as_free_p)
            char *below = as_xasprintf("%s%s%s", path, *path ? "." : "", node->pairs[i].key->text);
            diff_flatten(entry, below, node->pairs[i].value);
        }
    } else if (node->kind == AS_YAML_LIST && diff_is_named_list(node)) {
        for (uint32_t i = 0; i < node->count; i++) {
            AS_CLEANUP(as_free_p)
            char *below = as_xasprintf("%s[%s]", path, as_yaml_find(node->items[i], "name")->text);
            diff_flatten(entry, below, node->items[i]);
        }
    } else {
        diff_add_key(entry, path, node);
    }
}

/* Whether one of the paths is above the other, or they are equal. */
static bool diff_is_one_path(const char *a, const char *b)
{
    const size_t a_size = strlen(a), b_size = strlen(b);
    const size_t size = a_size < b_size ? a_size : b_size;
    const char *longer = a_size > b_size ? a : b;
    return strncmp(a, b, size) == 0 && (longer[size] == '\0' || longer[size] == '.');
}

/* `cooldown` and `tolerance` of a target complete those of `defaults`; other keys replace them. */
static bool diff_is_replaced(const struct diff_entry *entry, size_t count, const char *path)
{
    const bool is_completed =
        as_str_starts_with(path, "cooldown.") || as_str_starts_with(path, "tolerance.");
    AS_CLEANUP(as_free_p) char *top = as_xstrndup(path, strcspn(path, "."));
    for (size_t i = 0; i < count; i++) {
        if (diff_is_one_path(entry->keys[i].path, is_completed ? path : top))
            return true;
    }
    return false;
}

static void diff_add_defaults(struct diff_entry *entry, const struct as_yaml_node *defaults)
{
    struct diff_entry given = {0};
    const size_t count = entry->count;
    diff_flatten(&given, "", defaults);
    for (size_t i = 0; i < given.count; i++) {
        if (!diff_is_replaced(entry, count, given.keys[i].path)) {
            entry->keys =
                as_xgrow(entry->keys, entry->count, &entry->capacity, sizeof(struct diff_key));
            entry->keys[entry->count++] = given.keys[i];
        } else {
            free(given.keys[i].path);
            free(given.keys[i].value);
        }
    }
    free(given.keys);
}

static int diff_compare_keys(const void *a, const void *b)
{
    return strcmp(((const struct diff_key *)a)->path, ((const struct diff_key *)b)->path);
}

static int diff_compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct diff_entry *)a)->name, ((const struct diff_entry *)b)->name);
}

static struct diff_entry *diff_add_entry(struct diff_entries *entries, const char *name,
                                         const struct as_yaml_tree *tree,
                                         const struct as_yaml_node *at)
{
    entries->items =
        as_xgrow(entries->items, entries->count, &entries->capacity, sizeof(struct diff_entry));
    struct diff_entry *entry = &entries->items[entries->count++];
    *entry =
        (struct diff_entry){.name = name, .file = as_yaml_get_file(tree), .line = at->place.line};
    return entry;
}

static void diff_sort(struct diff_entries *entries)
{
    for (size_t i = 0; i < entries->count; i++) {
        if (entries->items[i].count > 1)
            qsort(entries->items[i].keys, entries->items[i].count, sizeof(struct diff_key),
                  diff_compare_keys);
    }
    if (entries->count > 1)
        qsort(entries->items, entries->count, sizeof(struct diff_entry), diff_compare_entries);
}

static void diff_read_rule_file(struct diff_files *files, const struct as_yaml_tree *tree,
                                const struct as_yaml_node *defaults)
{
    const struct as_yaml_node *root = as_yaml_get_root(tree);
    const struct as_yaml_node *targets = as_yaml_find(root, "targets");
    const struct as_yaml_node *rules = as_yaml_find(root, "rules");
    for (uint32_t i = 0; targets && targets->kind == AS_YAML_MAP && i < targets->count; i++) {
        const struct as_yaml_pair *pair = &targets->pairs[i];
        struct diff_entry *entry =
            diff_add_entry(&files->targets, pair->key->text, tree, pair->key);
        diff_flatten(entry, "", pair->value);
        if (defaults && defaults->kind == AS_YAML_MAP)
            diff_add_defaults(entry, defaults);
    }
    for (uint32_t i = 0; rules && rules->kind == AS_YAML_LIST && i < rules->count; i++) {
        const struct as_yaml_node *name = as_yaml_find(rules->items[i], "name");
        diff_flatten(diff_add_entry(&files->rules, name->text, tree, rules->items[i]), "",
                     rules->items[i]);
    }
}

/* All keys of the configuration but those that are compared otherwise. */
static void diff_read_settings(struct diff_files *files)
{
    const struct as_yaml_node *root = as_yaml_get_root(files->settings);
    for (uint32_t i = 0; root->kind == AS_YAML_MAP && i < root->count; i++) {
        const struct as_yaml_pair *pair = &root->pairs[i];
        if (strcmp(pair->key->text, "rule_files") != 0 && strcmp(pair->key->text, "defaults") != 0)
            diff_add_key(diff_add_entry(&files->keys, pair->key->text, files->settings, pair->key),
                         "", pair->value);
    }
}

/* AS_EXIT_OK, or AS_EXIT_USAGE after printing all problems. */
static int diff_load(const struct as_args *args, const char *path, struct diff_files *files_out)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    const bool is_rules = as_config_find_kind(path) == AS_CONFIG_RULES;
    const char *settings = is_rules ? as_args_get(args, "config.file") : path;
    if (rules_load(args, path, &files_out->config) != AS_EXIT_OK)
        return AS_EXIT_USAGE;
    bool is_read =
        !settings || as_yaml_load(settings, &diagnostics, &files_out->settings) == AS_YAML_OK;
    const struct as_config *config = files_out->config;
    files_out->trees = as_xcalloc(config->rule_file_count + 1, sizeof(struct as_yaml_tree *));
    for (size_t i = 0; i < config->rule_file_count && is_read; i++) {
        struct as_yaml_tree **tree = &files_out->trees[files_out->tree_count];
        is_read = as_rule_file_load(config->rule_files[i], &diagnostics, tree) >= 0;
        files_out->tree_count += is_read;
    }
    as_diagnostics_print(&diagnostics, stderr);
    as_diagnostics_deinit(&diagnostics);
    if (!is_read) /* the files have changed since they were checked */
        return AS_EXIT_USAGE;
    const struct as_yaml_node *defaults =
        settings ? as_yaml_find(as_yaml_get_root(files_out->settings), "defaults") : NULL;
    for (size_t i = 0; i < files_out->tree_count; i++)
        diff_read_rule_file(files_out, files_out->trees[i], defaults);
    files_out->is_rules = is_rules;
    if (!is_rules)
        diff_read_settings(files_out);
    diff_sort(&files_out->targets);
    diff_sort(&files_out->rules);
    diff_sort(&files_out->keys);
    return AS_EXIT_OK;
}

/* --- the comparison --- */

struct diff_change {
    const struct diff_entry *sides[DIFF_SIDES]; /* NULL: the side has no such entry */
};

struct diff_changes {
    struct diff_change *items; /* by name */
    size_t count, capacity;
};

static bool diff_is_equal(const struct diff_entry *a, const struct diff_entry *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        if (strcmp(a->keys[i].path, b->keys[i].path) != 0 ||
            strcmp(a->keys[i].value, b->keys[i].value) != 0)
            return false;
    }
    return true;
}

static struct diff_changes diff_compare(const struct diff_entries *old,
                                        const struct diff_entries *new)
{
    struct diff_changes changes = {0};
    for (size_t i = 0, k = 0; i < old->count || k < new->count;) {
        const struct diff_entry *a = i < old->count ? &old->items[i] : NULL;
        const struct diff_entry *b = k < new->count ? &new->items[k] : NULL;
        const int order = !a ? 1 : !b ? -1 : strcmp(a->name, b->name);
        i += order <= 0;
        k += order >= 0;
        if (order == 0 && diff_is_equal(a, b))
            continue;
        changes.items =
            as_xgrow(changes.items, changes.count, &changes.capacity, sizeof(struct diff_change));
        changes.items[changes.count++] = (struct diff_change){
            {[DIFF_OLD] = order <= 0 ? a : NULL, [DIFF_NEW] = order >= 0 ? b : NULL}};
    }
    return changes;
}

static const char *diff_get_word(const struct diff_change *change)
{
    return !change->sides[DIFF_OLD] ? "added" : !change->sides[DIFF_NEW] ? "removed" : "changed";
}

static const struct diff_entry *diff_get_entry(const struct diff_change *change)
{
    return change->sides[change->sides[DIFF_NEW] ? DIFF_NEW : DIFF_OLD];
}

/* The next key that differs: NULL where the side has no such key. False: no more. */
static bool diff_find_next_key(const struct diff_change *change, size_t at_io[DIFF_SIDES],
                               const struct diff_key *keys_out[DIFF_SIDES])
{
    const struct diff_entry *old = change->sides[DIFF_OLD], *new = change->sides[DIFF_NEW];
    while (at_io[DIFF_OLD] < old->count || at_io[DIFF_NEW] < new->count) {
        const struct diff_key *a =
            at_io[DIFF_OLD] < old->count ? &old->keys[at_io[DIFF_OLD]] : NULL;
        const struct diff_key *b =
            at_io[DIFF_NEW] < new->count ? &new->keys[at_io[DIFF_NEW]] : NULL;
        const int order = !a ? 1 : !b ? -1 : strcmp(a->path, b->path);
        at_io[DIFF_OLD] += order <= 0;
        at_io[DIFF_NEW] += order >= 0;
        keys_out[DIFF_OLD] = order <= 0 ? a : NULL;
        keys_out[DIFF_NEW] = order >= 0 ? b : NULL;
        if (order != 0 || strcmp(a->value, b->value) != 0)
            return true;
    }
    return false;
}

/* --- text --- */

static void diff_put_value(const struct diff_key *key, FILE *out)
{
    if (!key) {
        fputs("(not set)", out);
        return;
    }
    const size_t size = strlen(key->value);
    const size_t shown = as_str_cut_utf8(key->value, size, DIFF_VALUE_SHOWN);
    AS_CLEANUP(as_free_p) char *text = as_xstrndup(key->value, shown);
    as_safe_text_put(out, text);
    fputs(shown < size ? "..." : "", out);
}

static void diff_print_text(const char *title, const struct diff_changes *changes, bool with_keys,
                            FILE *out)
{
    for (size_t i = 0; i < changes->count; i++) {
        const struct diff_change *change = &changes->items[i];
        const struct diff_entry *entry = diff_get_entry(change);
        const struct diff_key *keys[DIFF_SIDES];
        size_t at[DIFF_SIDES] = {0};
        fprintf(out, "%s ", title);
        as_safe_text_put(out, entry->name);
        fprintf(out, ": %s (", diff_get_word(change));
        as_safe_text_put(out, entry->file);
        fprintf(out, ":%u)\n", (unsigned)entry->line);
        if (!with_keys || !change->sides[DIFF_OLD] || !change->sides[DIFF_NEW])
            continue;
        while (diff_find_next_key(change, at, keys)) {
            fputs("  ", out);
            as_safe_text_put(out, keys[keys[DIFF_NEW] ? DIFF_NEW : DIFF_OLD]->path);
            fputs(": ", out);
            diff_put_value(keys[DIFF_OLD], out);
            fputs(" -> ", out);
            diff_put_value(keys[DIFF_NEW], out);
            fputc('\n', out);
        }
    }
}

/* --- JSON --- */

static json_t *diff_make_change(const struct diff_change *change, bool with_keys)
{
    json_t *json = json_object(), *list = json_array();
    json_object_set_new(json, "name", json_string(diff_get_entry(change)->name));
    json_object_set_new(json, "change", json_string(diff_get_word(change)));
    for (size_t side = 0; side < DIFF_SIDES; side++) {
        const struct diff_entry *entry = change->sides[side];
        json_object_set_new(
            json, diff_words[side],
            entry ? json_pack("{s:s, s:I}", "file", entry->file, "line", (json_int_t)entry->line)
                  : json_null());
    }
    if (with_keys && change->sides[DIFF_OLD] && change->sides[DIFF_NEW]) {
        const struct diff_key *keys[DIFF_SIDES];
        size_t at[DIFF_SIDES] = {0};
        while (diff_find_next_key(change, at, keys)) {
            json_t *key = json_object();
            json_object_set_new(key, "key",
                                json_string(keys[keys[DIFF_NEW] ? DIFF_NEW : DIFF_OLD]->path));
            for (size_t side = 0; side < DIFF_SIDES; side++)
                json_object_set_new(key, diff_words[side],
                                    keys[side] ? json_string(keys[side]->value) : json_null());
            json_array_append_new(list, key);
        }
    }
    json_object_set_new(json, "keys", list);
    return json;
}

static json_t *diff_make_changes(const struct diff_changes *changes, bool with_keys)
{
    json_t *list = json_array();
    for (size_t i = 0; i < changes->count; i++)
        json_array_append_new(list, diff_make_change(&changes->items[i], with_keys));
    return list;
}

/* --- the command --- */

static int diff_run(const struct as_args *args)
{
    AS_CLEANUP(diff_files_deinit) struct diff_files old = {0};
    AS_CLEANUP(diff_files_deinit) struct diff_files new = {0};
    const int is_old = diff_load(args, args->operands[0], &old);
    const int is_new = diff_load(args, args->operands[1], &new);
    if (is_old != AS_EXIT_OK || is_new != AS_EXIT_OK)
        return AS_EXIT_USAGE;
    struct diff_changes targets = diff_compare(&old.targets, &new.targets);
    struct diff_changes rules = diff_compare(&old.rules, &new.rules);
    struct diff_changes keys = {0};
    if (!old.is_rules && !new.is_rules)
        keys = diff_compare(&old.keys, &new.keys);
    const bool is_equal = targets.count + rules.count + keys.count == 0;
    if (as_args_wants_json(args)) {
        json_t *json = json_object();
        json_object_set_new(json, "equal", json_boolean(is_equal));
        json_object_set_new(json, "targets", diff_make_changes(&targets, true));
        json_object_set_new(json, "rules", diff_make_changes(&rules, true));
        json_object_set_new(json, "settings", diff_make_changes(&keys, false));
        as_cli_print_json(json, JSON_INDENT(2), stdout);
        json_decref(json);
    } else {
        diff_print_text("target", &targets, true, stdout);
        diff_print_text("rule", &rules, true, stdout);
        diff_print_text("setting", &keys, false, stdout);
    }
    free(targets.items);
    free(rules.items);
    free(keys.items);
    return is_equal ? AS_EXIT_OK : AS_EXIT_NO;
}

static const struct as_option diff_options[] = {
    {.name = "config.file",
     .value = "FILE",
     .help = "Settings for rules without a configuration, on both sides (default: none)"},
    AS_OPTION_OUTPUT,
    {0},
};

const struct as_command as_command_diff = {
    .name = "diff",
    .operands = "OLD NEW",
    .summary = "Compares the targets, bounds and rules of two configurations.",
    .help = "OLD and NEW are configurations, folders of rules, or rule files. Values are compared "
            "as they are\n"
            "written: 60s and 1m differ. Comments, and the order of keys and files, do not count. "
            "Keys\n"
            "that a target takes from `defaults` count. Exit status 0: equal; 1: different; 2: a "
            "side has\n"
            "errors.",
    .options = diff_options,
    .operands_min = 2,
    .operands_max = 2,
    .run = diff_run,
};
