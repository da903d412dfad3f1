/*
 * A command's input, read and parsed.
 */
#include <alertscaler/doc/yaml_input.h>

#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/file.h>

#include "yaml_words.h"

typedef int parse_fn(const char *file, const char *text, size_t size,
                     struct as_diagnostics *diagnostics, struct as_yaml_tree **tree_out);

static int load(const char *path, parse_fn *parse, struct as_diagnostics *diagnostics,
                struct as_yaml_tree **tree_out)
{
    AS_CLEANUP(as_free_p) char *text = NULL;
    size_t size = 0;
    const int status = as_file_read_input(path, AS_YAML_SIZE_MAX, &text, &size);
    if (status < 0) {
        yaml_words_report_failure(path, status, diagnostics);
        return status;
    }
    return parse(path, text, size, diagnostics, tree_out);
}

int as_yaml_input_load(const char *path, struct as_diagnostics *diagnostics,
                       struct as_yaml_tree **tree_out)
{
    return load(path, as_yaml_parse, diagnostics, tree_out);
}

int as_yaml_input_load_foreign(const char *path, struct as_diagnostics *diagnostics,
                               struct as_yaml_tree **tree_out)
{
    return load(path, as_yaml_parse_foreign, diagnostics, tree_out);
}
