/*
 * Prometheus' alerting rules: what is known of the alerts that they make. Reads rule files of
 * Prometheus, also as PrometheusRule objects of its operator. Known of an alert are its name, the
 * labels that its rule sets without a template, and the names of its annotations. Other labels come
 * from the expression, external_labels or relabelling, and are unknown.
 */
#include "lint_prometheus.h"

#include <errno.h>
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/yaml_tree.h>
#include <alertscaler/tools/lint.h>

#include "lint_matchers.h"

/* --- an expression as a threshold --- */

/*
 * PromQL as far as a threshold needs it: quotes, parentheses, comments, words and operators. Not a
 * parser: only an obvious threshold counts.
 */

static bool lint_is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == ':' || c == '.' || (unsigned char)c >= 0x80;
}

/* The size of a literal in quotes; unclosed: up to the end of the text. */
static size_t get_quoted_size(const char *text)
{
    size_t size = 1;
    while (text[size] && text[size] != text[0]) {
        if (text[size] == '\\' && text[0] != '`' && text[size + 1])
            size++;
        size++;
    }
    return text[size] ? size + 1 : size;
}

/* Without comments; spaces are kept only between two words. */
static char *copy_tight(struct as_arena *arena, const char *text)
{
    char *copy = as_arena_alloc(arena, strlen(text) + 1, 1), *out = copy;
    bool is_apart = false;
    while (*text) {
        if (*text == '#') {
            text += strcspn(text, "\n");
        } else if (strchr(" \t\r\n", *text)) {
            is_apart = true;
            text++;
        } else {
            size_t size = strchr("\"'`", *text) ? get_quoted_size(text) : 1;
            if (is_apart && out > copy && lint_is_word(out[-1]) && lint_is_word(*text))
                *out++ = ' ';
            memcpy(out, text, size);
            out += size;
            text += size;
            is_apart = false;
        }
    }
    *out = '\0';
    return copy;
}

/* `and`, `or`, `unless`, `bool`: then the expression is more than one comparison. */
static bool is_connective(const char *word, size_t size)
{
    static const char *const words[] = {"and", "or", "unless", "bool"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(words); i++) {
        bool is_same = strlen(words[i]) == size;
        for (size_t k = 0; is_same && k < size; k++)
            is_same = (word[k] | 0x20) == words[i][k];
        if (is_same)
            return true;
    }
    return false;
}

static size_t get_operator_size(const char *at)
{
    if (at[0] == '>' || at[0] == '<' || at[0] == '=' || at[0] == '!')
        return at[1] == '=' || at[1] == '~' ? 2 : 1;
    return 0;
}

/* The only comparison outside all brackets. NULL: none, or several. */
static const char *find_comparison(const char *text)
{
    const char *found = NULL;
    int depth = 0;
    for (const char *at = text; *at;) {
        size_t size = 1;
        if (strchr("\"'`", *at)) {
            size = get_quoted_size(at);
        } else if (strchr("([{", *at)) {
            depth++;
        } else if (strchr(")]}", *at)) {
            depth--;
        } else if (lint_is_word(*at)) {
            while (lint_is_word(at[size]))
                size++;
            if (depth == 0 && is_connective(at, size))
                return NULL;
        } else if (depth == 0 && get_operator_size(at) > 0) {
            if (found)
                return NULL;
            found = at;
            size = get_operator_size(at);
        }
        at += size;
    }
    return found;
}

static void set_bounds(struct threshold *threshold, char op, bool has_equal, double number)
{
    threshold->low = op == '<' ? -INFINITY : number;
    threshold->high = op == '>' ? INFINITY : number;
    threshold->is_low_out = op == '>' && !has_equal;
    threshold->is_high_out = op == '<' && !has_equal;
}

struct threshold threshold_parse(struct as_arena *arena, const char *expression)
{
    struct threshold threshold = {.subject = NULL};
    char *text = copy_tight(arena, expression);
    const char *comparison = find_comparison(text);
    if (!comparison || comparison == text)
        return threshold;
    size_t at = (size_t)(comparison - text), size = get_operator_size(comparison);
    char op = text[at];
    bool has_equal = text[at + 1] == '=';
    char *right = text + at + size;
    if (op == '!' || (op == '=' && !has_equal) || text[at + size - 1] == '~')
        return threshold;

    double number = 0;
    text[at] = '\0';
    bool is_number_left = as_number_parse_double(text, at, &number) == 0;
    if (is_number_left && op != '=')
        op = op == '<' ? '>' : '<';
    if (!is_number_left && as_number_parse_double(right, strlen(right), &number) < 0)
        return threshold;
    threshold.subject = is_number_left ? right : text;
    set_bounds(&threshold, op, has_equal, number);
    if (!*threshold.subject)
        threshold.subject = NULL;
    return threshold;
}

bool threshold_overlaps(const struct threshold *a, const struct threshold *b)
{
    if (!a->subject || !b->subject || strcmp(a->subject, b->subject) != 0)
        return false;
    double low = fmax(a->low, b->low), high = fmin(a->high, b->high);
    bool is_low_out = (a->low >= low && a->is_low_out) || (b->low >= low && b->is_low_out);
    bool is_high_out = (a->high <= high && a->is_high_out) || (b->high <= high && b->is_high_out);
    return low < high || (!(low > high) && !is_low_out && !is_high_out);
}

/* --- rule files --- */

struct file_list {
    char **items;
    size_t count, capacity;
};

static void file_list_deinit(struct file_list *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->items[i]);
    free(files->items);
}

static void report_file(struct as_diagnostics *diagnostics, enum as_severity severity,
                        const char *file, const char *message)
{
    as_diagnostics_add(diagnostics, &(struct as_diagnostic){
                                        .severity = severity,
                                        .file = file,
                                        .message = message,
                                    });
}

static void lint_add_file(struct file_list *files, const char *path)
{
    for (size_t i = 0; i < files->count; i++) {
        if (strcmp(files->items[i], path) == 0)
            return;
    }
    files->items = as_xgrow(files->items, files->count, &files->capacity, sizeof(char *));
    files->items[files->count++] = as_xstrdup(path);
}

static int lint_stop_glob(const char *path, int code)
{
    return code != ENOENT && code != ENOTDIR;
}

static bool is_pattern(const char *text)
{
    struct stat status;
    return strpbrk(text, "*?[") && stat(text, &status) < 0;
}

static int lint_expand(const char *pattern, struct as_diagnostics *diagnostics,
                       struct file_list *files)
{
    glob_t found = {0};
    int status = glob(pattern, 0, lint_stop_glob, &found);
    for (size_t i = 0; status == 0 && i < found.gl_pathc && files->count < AS_LINT_FILES_MAX; i++)
        lint_add_file(files, found.gl_pathv[i]);
    globfree(&found);
    if (status == GLOB_NOMATCH) {
        report_file(diagnostics, AS_SEVERITY_WARNING, pattern, "no file matches this pattern");
    } else if (status != 0) {
        report_file(diagnostics, AS_SEVERITY_ERROR, pattern,
                    "cannot look for files that match this: a folder cannot be read");
        return -EACCES;
    }
    return 0;
}

static const char *lint_get_text(const struct as_yaml_node *node)
{
    return node && node->kind == AS_YAML_SCALAR && !as_yaml_is_null(node) ? node->text : NULL;
}

static void set_label(struct lint_alert *alert, const char *name, const char *value)
{
    for (size_t i = 0; i < alert->label_count; i++) {
        if (strcmp(alert->labels[i].name, name) != 0)
            continue;
        alert->labels[i].value = value;
        return;
    }
    alert->labels[alert->label_count++] = (struct lint_label){name, value};
}

static void lint_read_labels(struct lint_alert *alert, const struct as_yaml_node *map)
{
    for (uint32_t i = 0; map && map->kind == AS_YAML_MAP && i < map->count; i++) {
        const struct as_yaml_node *value = map->pairs[i].value;
        bool is_known = value->kind == AS_YAML_SCALAR && !strstr(value->text, "{{");
        const char *text = as_yaml_is_null(value) ? "" : value->text;
        set_label(alert, map->pairs[i].key->text, is_known ? text : NULL);
    }
}

static size_t count_pairs(const struct as_yaml_node *map)
{
    return map && map->kind == AS_YAML_MAP ? map->count : 0;
}

static void lint_read_alert(struct lint_prometheus *out, const struct as_yaml_tree *tree,
                            const struct as_yaml_node *group, const struct as_yaml_node *rule)
{
    const struct as_yaml_node *name = as_yaml_find(rule, "alert");
    const struct as_yaml_node *shared = as_yaml_find(group, "labels");
    const struct as_yaml_node *labels = as_yaml_find(rule, "labels");
    const struct as_yaml_node *annotations = as_yaml_find(rule, "annotations");
    const char *expression = lint_get_text(as_yaml_find(rule, "expr"));
    if (!lint_get_text(name))
        return; /* a recording rule */
    out->alerts =
        as_xgrow(out->alerts, out->alert_count, &out->alert_capacity, sizeof(*out->alerts));
    struct lint_alert *alert = &out->alerts[out->alert_count++];
    *alert = (struct lint_alert){.name = name->text, .tree = tree, .node = name};
    alert->labels = as_arena_alloc(&out->arena, 1 + count_pairs(shared) + count_pairs(labels),
                                   sizeof(*alert->labels));
    lint_read_labels(alert, shared);
    lint_read_labels(alert, labels);
    set_label(alert, "alertname", name->text);
    if (annotations && annotations->kind == AS_YAML_MAP)
        alert->annotations = annotations;
    alert->expression = expression;
    if (expression)
        alert->threshold = threshold_parse(&out->arena, expression);
}

static void lint_read_groups(struct lint_prometheus *out, const struct as_yaml_tree *tree,
                             const struct as_yaml_node *groups)
{
    for (uint32_t i = 0; groups->kind == AS_YAML_LIST && i < groups->count; i++) {
        const struct as_yaml_node *rules = as_yaml_find(groups->items[i], "rules");
        for (uint32_t k = 0; rules && rules->kind == AS_YAML_LIST && k < rules->count; k++)
            lint_read_alert(out, tree, groups->items[i], rules->items[k]);
    }
}

/* `is_found`: by a glob, which may also match other files. */
static int lint_read_file(const char *path, bool is_found, struct as_diagnostics *diagnostics,
                          struct lint_prometheus *out)
{
    AS_CLEANUP(as_yaml_free_p) struct as_yaml_tree *tree = NULL;
    int status = as_yaml_input_load_foreign(path, diagnostics, &tree);
    if (status != AS_YAML_OK)
        return status < 0 ? status : -EINVAL;
    const struct as_yaml_node *root = as_yaml_get_root(tree);
    const char *kind = lint_get_text(as_yaml_find(root, "kind"));
    const struct as_yaml_node *groups = as_yaml_find(root, "groups");
    if (as_str_equal(kind, "PrometheusRule"))
        groups = as_yaml_find(as_yaml_find(root, "spec"), "groups");
    bool is_empty = as_yaml_is_null(root);
    if (!groups && !is_empty && is_found)
        return 0;
    if (!groups && !is_empty) {
        as_yaml_report(tree, root, AS_YAML_HIDE, diagnostics,
                       "this is no file of Prometheus' rules: it has no `groups`");
        return -EINVAL;
    }
    out->trees = as_xgrow(out->trees, out->tree_count, &out->tree_capacity, sizeof(tree));
    out->trees[out->tree_count++] = tree;
    if (groups)
        lint_read_groups(out, tree, groups);
    tree = NULL;
    return 0;
}

/* Keeps the first error, but read errors before content errors. */
static void keep_worst(int status, int *worst_io)
{
    bool is_content = *worst_io == -EINVAL || *worst_io == -EFBIG;
    if (status < 0 && (*worst_io == 0 || (is_content && status != -EINVAL && status != -EFBIG)))
        *worst_io = status;
}

int lint_prometheus_load(const char *const *patterns, size_t count,
                         struct as_diagnostics *diagnostics, struct lint_prometheus *out)
{
    AS_CLEANUP(file_list_deinit) struct file_list named = {.items = NULL}, found = {.items = NULL};
    int worst = 0;
    *out = (struct lint_prometheus){.trees = NULL};
    for (size_t i = 0; i < count; i++) {
        if (is_pattern(patterns[i]))
            keep_worst(lint_expand(patterns[i], diagnostics, &found), &worst);
        else
            lint_add_file(&named, patterns[i]);
    }
    for (size_t i = 0; i < named.count; i++)
        keep_worst(lint_read_file(named.items[i], false, diagnostics, out), &worst);
    for (size_t i = 0; i < found.count; i++) {
        bool is_read = false;
        for (size_t k = 0; k < named.count && !is_read; k++)
            is_read = strcmp(named.items[k], found.items[i]) == 0;
        if (!is_read)
            keep_worst(lint_read_file(found.items[i], true, diagnostics, out), &worst);
    }
    if (worst == 0 && out->tree_count > 0 && out->alert_count == 0)
        report_file(diagnostics, AS_SEVERITY_WARNING, as_yaml_get_file(out->trees[0]),
                    "there is no alerting rule in this file, nor in others of --prometheus-rules");
    return worst;
}

void lint_prometheus_deinit(struct lint_prometheus *prometheus)
{
    for (size_t i = 0; i < prometheus->tree_count; i++)
        as_yaml_free(prometheus->trees[i]);
    free(prometheus->trees);
    free(prometheus->alerts);
    as_arena_deinit(&prometheus->arena);
    *prometheus = (struct lint_prometheus){.trees = NULL};
}

const char *lint_alert_find(const struct lint_alert *alert, const char *label)
{
    for (size_t i = 0; i < alert->label_count; i++) {
        if (strcmp(alert->labels[i].name, label) == 0)
            return alert->labels[i].value;
    }
    return NULL;
}

static bool is_word_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool lint_has_word(const char *text, const char *word)
{
    const size_t size = strlen(word);
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) {
        if ((at == text || !is_word_character(at[-1])) && !is_word_character(at[size]))
            return true;
    }
    return false;
}

bool lint_alert_mentions(const struct lint_alert *alert, const char *label)
{
    for (size_t i = 0; i < alert->label_count; i++) {
        if (strcmp(alert->labels[i].name, label) == 0)
            return true;
    }
    return !alert->expression || lint_has_word(alert->expression, label);
}

bool lint_alert_refuses(const struct lint_alert *alert, const struct as_matcher *matcher)
{
    const char *value = lint_alert_find(alert, matcher->name);
    return value && !matcher_may_match(matcher, value);
}

enum lint_fit lint_alert_fit(const struct lint_alert *alert, const struct as_matcher *matchers,
                             size_t count)
{
    enum lint_fit fit = LINT_FIT_UNKNOWN;
    for (size_t i = 0; i < count; i++) {
        const char *value = lint_alert_find(alert, matchers[i].name);
        if (value && !matcher_may_match(&matchers[i], value))
            return LINT_FIT_NO;
        if (value && *value)
            fit = LINT_FIT_YES;
    }
    return fit;
}
