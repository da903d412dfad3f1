/*
 * Loading a file of rule tests: the file, the rules it names, and the checks over both. As with
 * configurations, one run reports every error of all files.
 */
#include "rule_tests_schema.h"

#include <errno.h>
#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/doc/yaml_tree.h>

#include "rule_files.h"

struct test_loading {
    struct as_yaml_tree *tree;
    char *folder;
    struct rule_files files;
};

static void test_loading_deinit(struct test_loading *loading)
{
    as_yaml_free(loading->tree);
    rule_files_deinit(&loading->files);

    free(loading->folder);
}

/* False: there are no rules to check against. */
static bool load_config(struct test_loading *loading, struct loader *loader,
                        const struct raw_test_file *file, struct as_config **config_out)
{
    const struct as_yaml_node *list = as_yaml_find(as_yaml_get_root(loading->tree), "rule_files");
    for (uint32_t i = 0; list && list->kind == AS_YAML_LIST && i < list->count; i++)
        rule_files_expand(&loading->files, loader, list->items[i]);
    const char *const *names = (const char *const *)loading->files.names;
    int status;
    if (list && loading->files.count == 0) {
        if (!loader->diagnostics->has_error)
            loader_report(loader, list, "no file matches any of these: there are no rules to test");
        return false;
    }
    if (!file->config_file)
        status = as_config_load_rules(names, loading->files.count, config_out, loader->diagnostics);
    else if (list)
        status = as_config_load_with_rules(file->config_file, names, loading->files.count,
                                           config_out, loader->diagnostics);
    else
        status = as_config_load(file->config_file, config_out, loader->diagnostics);
    return status == AS_CONFIG_OK;
}

static void make_tests(struct as_rule_tests *tests, const struct raw_test_file *file)
{
    tests->tests = as_arena_alloc(&tests->arena, file->test_count, sizeof(*tests->tests));
    tests->test_count = file->test_count;
    for (size_t i = 0; i < file->test_count; i++)
        rule_test_make_events(&tests->arena, &file->tests[i], &tests->tests[i]);
}

int as_rule_tests_load(const char *path, struct as_rule_tests **tests_out,
                       struct as_diagnostics *diagnostics)
{
    AS_CLEANUP(test_loading_deinit) struct test_loading loading = {0};
    AS_CLEANUP(as_rule_tests_free_p) struct as_rule_tests *tests = NULL;
    int status = as_yaml_input_load(path, diagnostics, &loading.tree);
    if (status < 0)
        return status == -EINVAL || status == -EFBIG ? AS_CONFIG_INVALID : status;
    tests = as_xcalloc(1, sizeof(*tests));
    tests->path = as_xstrdup(path);
    loading.folder = rule_files_copy_folder(path);
    struct loader loader = {
        .tree = loading.tree,
        .diagnostics = diagnostics,
        .arena = &tests->arena,
        .folder = loading.folder,
    };
    struct raw_test_file file = {0};
    const struct as_yaml_node *root = as_yaml_get_root(loading.tree);
    schema_parse(&loader, &schema_test_file, root, root, &file);
    if (load_config(&loading, &loader, &file, &tests->config)) {
        for (size_t i = 0; i < file.test_count; i++)
            rule_test_check_names(&loader, &file.tests[i], tests->config->ruleset);
    }
    if (diagnostics->has_error)
        return AS_CONFIG_INVALID;
    make_tests(tests, &file);
    *tests_out = tests;
    tests = NULL;
    return AS_CONFIG_OK;
}

struct as_rule_tests *as_rule_tests_free(struct as_rule_tests *tests)
{
    if (!tests)
        return NULL;
    for (size_t i = 0; i < tests->test_count; i++) {
        const struct as_rule_test *test = &tests->tests[i];
        for (size_t j = 0; j < test->event_count; j++) {
            as_labels_free(test->events[j].alert.labels);
            as_labels_free(test->events[j].alert.annotations);
        }
    }
    as_config_free(tests->config);
    as_arena_deinit(&tests->arena);
    free(tests->path);
    free(tests);
    return NULL;
}

const char *as_rule_test_get_outcome_word(bool is_queued, enum as_reason outcome)
{
    return is_queued ? test_outcomes[0] : as_reason_get_word(outcome);
}
