/*
 * Loads the web configuration. An empty file is valid.
 */
#include <alertscaler/rules/web_config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/arena.h>
#include <alertscaler/rules/tables.h>

#include "rule_files.h"

struct as_web_config {
    struct as_web_settings settings;
    struct as_arena arena;
};

static void warn_of_mode(const char *path, const char *what, struct as_diagnostics *diagnostics)
{
    struct stat st;
    if (!path || stat(path, &st) != 0 || !(st.st_mode & S_IROTH))
        return;
    AS_CLEANUP(as_free_p)
    char *message =
        as_xasprintf("everyone on this machine can read it, and it holds %s: chmod o-r", what);
    as_diagnostics_add(
        diagnostics,
        &(struct as_diagnostic){.severity = AS_SEVERITY_WARNING, .file = path, .message = message});
}

static void read_tree(struct as_web_config *config, const char *path,
                      const struct as_yaml_tree *tree, struct as_diagnostics *diagnostics)
{
    AS_CLEANUP(as_free_p) char *folder = rule_files_copy_folder(path);
    struct loader loader = {
        .tree = tree,
        .diagnostics = diagnostics,
        .arena = &config->arena,
        .folder = folder,
    };
    const struct as_yaml_node *root = as_yaml_get_root(tree);
    schema_fill_defaults(&loader, &schema_web, &config->settings);
    if (!as_yaml_is_null(root))
        schema_parse(&loader, &schema_web, root, root, &config->settings);
    if (config->settings.user_count > 0)
        warn_of_mode(path, "hashes of passwords", diagnostics);
    warn_of_mode(config->settings.tls.key_file, "a private key", diagnostics);
}

static void append(struct as_diagnostics *to, const struct as_diagnostics *from)
{
    for (size_t i = 0; i < from->count; i++)
        as_diagnostics_add(to, &from->items[i]);
}

int as_web_config_load(const char *path, struct as_web_config **config_out,
                       struct as_diagnostics *diagnostics)
{
    struct as_diagnostics own = AS_DIAGNOSTICS_INIT; /* `diagnostics` may have errors already */
    AS_CLEANUP(as_yaml_free_p) struct as_yaml_tree *tree = NULL;
    int status = as_yaml_load_foreign(path, &own, &tree);
    AS_CLEANUP(as_web_config_free_p) struct as_web_config *config = NULL;
    if (status >= 0) {
        config = as_xcalloc(1, sizeof(*config));
        read_tree(config, path, tree, &own);
        status = own.has_error ? -EINVAL : 0;
    }
    append(diagnostics, &own);
    as_diagnostics_deinit(&own);
    if (status != 0)
        return status;
    *config_out = config;
    config = NULL;
    return 0;
}

struct as_web_config *as_web_config_free(struct as_web_config *config)
{
    if (!config)
        return NULL;
    for (size_t i = 0; i < config->settings.user_count; i++) {
        char *hash = (char *)(uintptr_t)config->settings.users[i].hash;
        explicit_bzero(hash, strlen(hash));
    }
    as_arena_deinit(&config->arena);
    free(config);
    return NULL;
}

const struct as_web_settings *as_web_config_get(const struct as_web_config *config)
{
    return &config->settings;
}

bool as_web_is_open(const struct as_web_settings *settings,
                    const struct as_receiver_settings *receiver)
{
    const size_t credentials = settings->user_count + receiver->token_count +
                               receiver->certificate_count + receiver->hmac_count +
                               receiver->token_review.allow_count;
    const char *client_auth = as_web_client_auth_words[settings->tls.client_auth];
    return credentials == 0 && strcmp(client_auth, "RequireAndVerifyClientCert") != 0;
}
