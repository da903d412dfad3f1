/*
 * The client file: it is read by a table of keys, as all files of alertscaler. Other files decide
 * which command uses a context.
 */
#include "client_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/schema.h>

#include "cli.h"

/* A path that only a shell would expand. */
static void client_check_path(struct loader *loader, const struct as_yaml_node *node,
                              const char *key)
{
    const struct as_yaml_node *value = as_yaml_find(node, key);
    if (value && value->kind == AS_YAML_SCALAR && value->text[0] == '~')
        loader_report(loader, value,
                      "`~` is not expanded: write an absolute path, or a path relative to this "
                      "file, such as `%s: shop.pem`",
                      key);
}

static void client_finish_context(struct loader *loader, const struct as_yaml_node *node,
                                  const struct as_yaml_node *at, void *object)
{
    client_check_path(loader, node, "token_file");
    client_check_path(loader, node, "ca_file");
}

static const struct schema_field client_context_fields[] = {
    SCHEMA_FIELD("name", NAME, client_context, name, .is_required = true),
    SCHEMA_FIELD("url", URL, client_context, url, .is_required = true),
    SCHEMA_FIELD("token_file", PATH, client_context, token_file),
    SCHEMA_FIELD("ca_file", PATH, client_context, ca_file),
    {0},
};

static const struct schema client_context_schema = {
    .name = "contexts",
    .example = "{name: shop, url: 'https://alertscaler.shop.example'}",
    .size = sizeof(struct client_context),
    .fields = client_context_fields,
    .finish = client_finish_context,
    .refusals =
        (const struct schema_refusal[]){
            {"token", "a token does not stand in this file: use `token_file`", true},
            {0},
        },
};

/* Names must be unique, and the current one must exist. */
static void client_finish_file(struct loader *loader, const struct as_yaml_node *node,
                               const struct as_yaml_node *at, void *object)
{
    const struct client_file *file = object;
    const struct as_yaml_node *list = as_yaml_find(node, "contexts");
    const struct as_yaml_node *current = as_yaml_find(node, "current_context");
    bool is_known = false;
    for (size_t i = 0; i < file->count; i++) {
        const char *name = file->contexts[i].name;
        is_known = is_known || (name && file->current && strcmp(name, file->current) == 0);
        for (size_t k = 0; k < i && name; k++) {
            if (file->contexts[k].name && strcmp(file->contexts[k].name, name) == 0)
                loader_report(loader, list->items[i], "there are two contexts `%s`", name);
        }
    }
    if (file->current && !is_known)
        loader_report(loader, current, "there is no context `%s` under `contexts`", file->current);
}

static const struct schema_field client_file_fields[] = {
    SCHEMA_FIELD("current_context", NAME, client_file, current),
    SCHEMA_FIELD("contexts", MAPS, client_file, contexts, .is_required = true,
                 .count_offset = offsetof(struct client_file, count), .max = CLIENT_CONTEXTS_MAX,
                 .map = &client_context_schema),
    {0},
};

static const struct schema client_file_schema =
    SCHEMA("client file", client_file, client_file_fields, .finish = client_finish_file,
           .example = "{contexts: [{name: shop, url: 'https://alertscaler.shop.example'}]}");

/* For free(); NULL: there is no place for it. */
static char *client_file_make_path(void)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (!as_str_is_empty(config) && config[0] == '/') /* a relative one is invalid, as XDG says */
        return as_xasprintf("%s/alertscaler/config.yaml", config);
    return as_str_is_empty(home) ? NULL : as_xasprintf("%s/.config/alertscaler/config.yaml", home);
}

/* The first error, on one line. */
static void client_report(struct as_diagnostics *diagnostics, struct as_error *error)
{
    as_diagnostics_sort(diagnostics);
    for (size_t i = 0; i < diagnostics->count; i++) {
        const struct as_diagnostic *item = &diagnostics->items[i];
        if (item->severity != AS_SEVERITY_ERROR)
            continue;
        as_error_set(error, "%s:%u:%u: %s%s%s", item->file, (unsigned)item->line,
                     (unsigned)item->column, item->message, item->hint ? "; " : "",
                     item->hint ? item->hint : "");
        return;
    }
}

int client_file_load(struct client_file *file_out, struct as_error *error)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    AS_CLEANUP(as_yaml_free_p) struct as_yaml_tree *tree = NULL;
    struct client_file file = {.path = client_file_make_path(), .arena = AS_ARENA_INIT};
    int status = file.path ? as_yaml_load(file.path, &diagnostics, &tree) : -ENOENT;
    if (status >= 0) {
        AS_CLEANUP(as_free_p)
        char *folder = as_xstrndup(file.path, (size_t)(strrchr(file.path, '/') - file.path));
        struct loader loader = {
            .tree = tree, .diagnostics = &diagnostics, .arena = &file.arena, .folder = folder};
        const struct as_yaml_node *root = as_yaml_get_root(tree);
        schema_parse(&loader, &client_file_schema, root, root, &file);
        status = diagnostics.has_error ? -EINVAL : 0;
    }
    if (status == -ENOENT)
        status = 0;
    else if (status < 0)
        client_report(&diagnostics, error);
    as_diagnostics_deinit(&diagnostics);
    if (status < 0) {
        client_file_deinit(&file);
        return status;
    }
    *file_out = file;
    return 0;
}

void client_file_deinit(struct client_file *file)
{
    free(file->path);
    as_arena_deinit(&file->arena);
}

int client_file_find(const struct client_file *file, const char *name,
                     const struct client_context **context_out, struct as_error *error)
{
    const char *wanted = name ? name : file->current;
    struct as_spelling spelling = as_spelling_begin(wanted ? wanted : "");
    const struct client_context *found = NULL;
    for (size_t i = 0; i < file->count && wanted; i++) {
        as_spelling_offer(&spelling, file->contexts[i].name);
        if (strcmp(file->contexts[i].name, wanted) == 0)
            found = &file->contexts[i];
    }
    AS_CLEANUP(as_free_p) char *hint = as_spelling_end(&spelling);
    if (wanted && !found) {
        as_error_set(error, "there is no context \"%s\" in %s%s", wanted,
                     file->path ? file->path : "$HOME/.config/alertscaler/config.yaml",
                     file->count > 0 ? hint
                                     : ": write `contexts: [{name: shop, url: "
                                       "'https://alertscaler.shop.example'}]`");
        return -ENOENT;
    }
    *context_out = found;
    return 0;
}
