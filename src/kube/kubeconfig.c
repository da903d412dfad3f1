/*
 * Kubeconfig files of the user: one context, resolved. The module decides which entries count,
 * and what they mean together.
 */
#include "kubeconfig.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/yaml_tree.h>
#include <alertscaler/http/access_limits.h>
#include <alertscaler/http/secret_file.h>

struct as_kubeconfig_source {
    const char *path;
    struct as_yaml_tree *tree;
};

struct as_kubeconfig_reader {
    const struct as_kubeconfig_source *source;
    const struct as_yaml_node *node; /* NULL: an entry without content */
    const char *section, *name;      /* user "prod" */
    bool has_failed;
    struct as_error *error;
};

/*
 * Reading of single keys of one entry. The reader remembers the first error, so a series of
 * reads needs one check at its end. An error names file, line and key, and never shows a value.
 * A key that is absent or null leaves the output alone.
 */

static const struct as_yaml_node *entry_find(const struct as_kubeconfig_reader *reader,
                                             const char *key)
{
    const struct as_yaml_node *node = as_yaml_find(reader->node, key);
    return node && !as_yaml_is_null(node) ? node : NULL;
}

static void entry_fail(struct as_kubeconfig_reader *reader, const char *key, const char *what)
{
    if (reader->has_failed)
        return;
    reader->has_failed = true;
    const struct as_yaml_node *node = as_yaml_find(reader->node, key);
    if (!node)
        node = reader->node;
    as_error_set(reader->error, "%s \"%s\": %s: %s", reader->section, reader->name, key, what);
    if (node)
        as_error_wrap(reader->error, "%s:%u:%u", reader->source->path, node->place.line,
                      node->place.column);
    else
        as_error_wrap(reader->error, "%s", reader->source->path);
}

/* Fails if the key is present. */
static void entry_refuse(struct as_kubeconfig_reader *reader, const char *key, const char *why)
{
    if (entry_find(reader, key))
        entry_fail(reader, key, why);
}

/* NULL if absent, empty, or not a scalar (which is an error). */
static const char *entry_find_text(struct as_kubeconfig_reader *reader, const char *key)
{
    const struct as_yaml_node *node = entry_find(reader, key);
    if (!node)
        return NULL;
    if (node->kind != AS_YAML_SCALAR) {
        entry_fail(reader, key, "expected text");
        return NULL;
    }
    return node->size > 0 ? node->text : NULL;
}

static void entry_set(char **out, char *text)
{
    free(*out);
    *out = text;
}

static void entry_read_text(struct as_kubeconfig_reader *reader, const char *key, char **out)
{
    const char *text = entry_find_text(reader, key);
    if (text)
        entry_set(out, as_xstrdup(text));
}

static void entry_read_bool(struct as_kubeconfig_reader *reader, const char *key, bool *out)
{
    const char *text = entry_find_text(reader, key);
    if (!text)
        return;
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        entry_fail(reader, key, "expected true or false");
    else
        *out = text[0] == 't';
}

static bool has_control(const char *text)
{
    for (; *text; text++)
        if (iscntrl((unsigned char)*text))
            return true;
    return false;
}

/* A text for a header line: without control characters. */
static void entry_read_secret(struct as_kubeconfig_reader *reader, const char *key, char **out)
{
    const char *text = entry_find_text(reader, key);
    if (!text)
        return;
    if (strlen(text) > AS_SECRET_FILE_MAX || has_control(text))
        entry_fail(reader, key, "too long, or holds a control character");
    else
        entry_set(out, as_xstrdup(text));
}

static bool is_url(const char *text)
{
    const char *authority = strstr(text, "://");
    return as_str_is_visible(text, strlen(text)) && authority && authority > text && authority[3] &&
           authority[3] != '/' && strlen(text) <= AS_KUBE_SERVER_MAX;
}

/* http:// or https://, or another scheme for a proxy. Slashes at the end are removed. */
static void entry_read_url(struct as_kubeconfig_reader *reader, const char *key, char **out)
{
    const char *text = entry_find_text(reader, key);
    if (!text)
        return;
    bool is_http = as_str_starts_with(text, "http://") || as_str_starts_with(text, "https://");
    bool is_server = strcmp(key, "server") == 0;
    if (!is_url(text) || (is_server && (!is_http || strpbrk(text, "?#")))) {
        entry_fail(reader, key, "expected a URL like https://10.0.0.1:6443");
        return;
    }
    size_t size = strlen(text);
    while (text[size - 1] == '/')
        size--;
    entry_set(out, as_xstrndup(text, size));
}

static char *entry_resolve(const struct as_kubeconfig_reader *reader, const char *path)
{
    const char *slash = strrchr(reader->source->path, '/');
    if (path[0] == '/' || !slash)
        return as_xstrdup(path);
    return as_xasprintf("%.*s/%s", (int)(slash - reader->source->path), reader->source->path, path);
}

/* Relative to the file's folder. A command is a path only if it contains a slash. */
static void entry_read_path(struct as_kubeconfig_reader *reader, const char *key, char **out)
{
    const char *path = entry_find_text(reader, key);
    if (path)
        entry_set(out, entry_resolve(reader, path));
}

static void entry_read_command(struct as_kubeconfig_reader *reader, const char *key, char **out)
{
    const char *path = entry_find_text(reader, key);
    if (path)
        entry_set(out, strchr(path, '/') ? entry_resolve(reader, path) : as_xstrdup(path));
}

static bool is_base64_char(char c)
{
    return isalnum((unsigned char)c) || c == '+' || c == '/';
}

/* OpenSSL does not check the padding, and counts it as bytes. */
char *kubeconfig_decode_base64(const char *text)
{
    size_t size = strlen(text), digits = size;
    while (digits > 0 && size - digits < 2 && text[digits - 1] == '=')
        digits--;
    for (size_t i = 0; i < digits; i++)
        if (!is_base64_char(text[i]))
            return NULL;
    if (size == 0 || size % 4 != 0 || size > AS_KUBECONFIG_MAX)
        return NULL;
    unsigned char *bytes = as_xmalloc(size / 4 * 3 + 1);
    int count = EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)size);
    if (count < 0 || (size_t)count < size - digits) {
        free(bytes);
        return NULL;
    }
    bytes[(size_t)count - (size - digits)] = '\0';
    return (char *)bytes;
}

/* PEM in base64. */
static void entry_read_pem(struct as_kubeconfig_reader *reader, const char *key, char **out)
{
    const char *text = entry_find_text(reader, key);
    if (!text)
        return;
    char *pem = kubeconfig_decode_base64(text);
    if (!pem) {
        entry_fail(reader, key, "not valid base64");
    } else if (!strstr(pem, "-----BEGIN ")) {
        free(pem);
        entry_fail(reader, key, "holds no PEM");
    } else {
        entry_set(out, pem);
    }
}

static const struct as_yaml_node *entry_find_map(struct as_kubeconfig_reader *reader,
                                                 const char *key)
{
    const struct as_yaml_node *node = entry_find(reader, key);
    if (!node || node->kind == AS_YAML_MAP)
        return node;
    entry_fail(reader, key, "expected a map");
    return NULL;
}

static const struct as_yaml_node *entry_find_list(struct as_kubeconfig_reader *reader,
                                                  const char *key, size_t max)
{
    const struct as_yaml_node *node = entry_find(reader, key);
    if (!node || (node->kind == AS_YAML_LIST && node->count <= max))
        return node;
    entry_fail(reader, key, node->kind == AS_YAML_LIST ? "too many entries" : "expected a list");
    return NULL;
}

/* Entries and contexts. */

#define EXEC_ARGUMENTS_MAX 256

struct files {
    struct as_kubeconfig_source items[AS_KUBECONFIG_FILES_MAX];
    size_t count;
};

static void free_files(struct files *files)
{
    for (size_t i = 0; i < files->count; i++)
        as_yaml_free(files->items[i].tree);
}

/* A tree with an error is not used at all: with a duplicate key, which one would count? */
static int parse_file(const struct as_kubeconfig_file *file, struct files *files,
                      struct as_error *error)
{
    AS_CLEANUP(as_diagnostics_deinit) struct as_diagnostics problems = AS_DIAGNOSTICS_INIT;
    AS_CLEANUP(as_yaml_free_p) struct as_yaml_tree *tree = NULL;
    if (as_yaml_parse(file->path, file->text, file->size, &problems, &tree) != AS_YAML_OK) {
        const struct as_diagnostic *first = &problems.items[0];
        as_error_set(error, "%s:%u:%u: %s", file->path, first->line, first->column, first->message);
        return -EINVAL;
    }
    if (as_yaml_get_root(tree)->kind != AS_YAML_MAP) {
        as_error_set(error, "%s: not a kubeconfig: expected a map", file->path);
        return -EINVAL;
    }
    files->items[files->count++] = (struct as_kubeconfig_source){file->path, tree};
    tree = NULL;
    return 0;
}

/* Of the first file that has one. */
static const char *find_current_context(const struct files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        const struct as_yaml_node *node =
            as_yaml_find(as_yaml_get_root(files->items[i].tree), "current-context");
        if (node && node->kind == AS_YAML_SCALAR && node->size > 0)
            return node->text;
    }
    return NULL;
}

/* Finds the first entry called `name` in the lists `list`, as a reader of its map `key`. */
static int kubeconfig_find_entry(const struct files *files, const char *list, const char *key,
                                 const char *name, struct as_kubeconfig_reader *reader_out,
                                 struct as_error *error)
{
    for (size_t i = 0; i < files->count; i++) {
        const struct as_yaml_node *entries =
            as_yaml_find(as_yaml_get_root(files->items[i].tree), list);
        for (uint32_t k = 0; entries && entries->kind == AS_YAML_LIST && k < entries->count; k++) {
            const struct as_yaml_node *found = as_yaml_find(entries->items[k], "name");
            if (!found || found->kind != AS_YAML_SCALAR || strcmp(found->text, name) != 0)
                continue;
            *reader_out = (struct as_kubeconfig_reader){
                .source = &files->items[i],
                .node = as_yaml_find(entries->items[k], key),
                .section = key,
                .name = name,
                .error = error,
            };
            return 0;
        }
    }
    as_error_set(error, "%s: there is no %s \"%s\"%s", files->items[0].path, key, name,
                 files->count > 1 ? " here, nor in the other files" : "");
    return -EINVAL;
}

static int read_cluster(struct as_kubeconfig_reader *cluster, struct as_kubeconfig *config)
{
    entry_read_url(cluster, "server", &config->server);
    entry_read_text(cluster, "tls-server-name", &config->tls_server_name);
    entry_read_url(cluster, "proxy-url", &config->proxy_url);
    entry_read_bool(cluster, "insecure-skip-tls-verify", &config->insecure_skip_verify);
    entry_read_path(cluster, "certificate-authority", &config->ca_file);
    entry_read_text(cluster, "certificate-authority-data", &config->ca_base64);
    entry_read_pem(cluster, "certificate-authority-data", &config->ca_pem);
    if (!cluster->has_failed && !config->server)
        entry_fail(cluster, "server", "missing");
    if (config->insecure_skip_verify && (config->ca_file || config->ca_pem))
        entry_fail(cluster, "insecure-skip-tls-verify",
                   "contradicts the certificate-authority that is also given");
    return cluster->has_failed ? -EINVAL : 0;
}

static char **new_list(const struct as_yaml_node *node, size_t extra)
{
    size_t count = node && node->kind == AS_YAML_LIST ? node->count : 0;
    return as_xcalloc(count + extra + 1, sizeof(char *));
}

static void read_arguments(struct as_kubeconfig_reader *exec, struct as_kubeconfig_exec *out)
{
    const struct as_yaml_node *args = entry_find_list(exec, "args", EXEC_ARGUMENTS_MAX);
    out->argv = new_list(args, 1);
    out->argv[0] = as_xstrdup(out->command ? out->command : "");
    for (uint32_t i = 0; args && i < args->count; i++) {
        if (args->items[i]->kind != AS_YAML_SCALAR) {
            entry_fail(exec, "args", "expected a list of texts");
            return;
        }
        out->argv[1 + i] = as_xstrdup(args->items[i]->text);
    }
}

static void read_env(struct as_kubeconfig_reader *exec, struct as_kubeconfig_exec *out)
{
    const struct as_yaml_node *env = entry_find_list(exec, "env", EXEC_ARGUMENTS_MAX);
    out->env = new_list(env, 0);
    for (uint32_t i = 0; env && i < env->count; i++) {
        const struct as_yaml_node *name = as_yaml_find(env->items[i], "name");
        const struct as_yaml_node *value = as_yaml_find(env->items[i], "value");
        if (!name || name->kind != AS_YAML_SCALAR || name->size == 0 || strchr(name->text, '=') ||
            (value && value->kind != AS_YAML_SCALAR)) {
            entry_fail(exec, "env", "expected a list of name and value");
            return;
        }
        out->env[i] = as_xasprintf("%s=%s", name->text, value ? value->text : "");
    }
}

static int read_exec(struct as_kubeconfig_reader *user, struct as_kubeconfig_exec *out)
{
    struct as_kubeconfig_reader exec = *user;
    AS_CLEANUP(as_free_p) char *mode = NULL;
    exec.section = "exec of user";
    exec.node = entry_find_map(user, "exec");
    if (!exec.node)
        return user->has_failed ? -EINVAL : 0;
    entry_read_text(&exec, "apiVersion", &out->api_version);
    entry_read_command(&exec, "command", &out->command);
    entry_read_text(&exec, "installHint", &out->install_hint);
    entry_read_text(&exec, "interactiveMode", &mode);
    entry_read_bool(&exec, "provideClusterInfo", &out->provide_cluster_info);
    read_arguments(&exec, out);
    read_env(&exec, out);
    if (!exec.has_failed && !out->command)
        entry_fail(&exec, "command", "missing");
    if (!as_str_equal(out->api_version, "client.authentication.k8s.io/v1") &&
        !as_str_equal(out->api_version, "client.authentication.k8s.io/v1beta1"))
        entry_fail(&exec, "apiVersion", "expected client.authentication.k8s.io/v1 or v1beta1");
    if (as_str_equal(mode, "Always"))
        entry_fail(&exec, "interactiveMode", "Always needs a person at a terminal");
    return exec.has_failed ? -EINVAL : 0;
}

static int read_user(struct as_kubeconfig_reader *user, struct as_kubeconfig *config)
{
    entry_read_path(user, "client-certificate", &config->cert_file);
    entry_read_pem(user, "client-certificate-data", &config->cert_pem);
    entry_read_path(user, "client-key", &config->key_file);
    entry_read_pem(user, "client-key-data", &config->key_pem);
    entry_read_secret(user, "token", &config->token);
    entry_read_path(user, "tokenFile", &config->token_file);
    entry_read_secret(user, "username", &config->username);
    entry_read_secret(user, "password", &config->password);
    if (!(config->cert_file || config->cert_pem) != !(config->key_file || config->key_pem))
        entry_fail(user, "client-certificate", "comes together with a client-key");
    entry_refuse(user, "auth-provider",
                 "was removed from Kubernetes' clients: use a credential plugin (exec)");
    entry_refuse(user, "as", "impersonation is not supported");
    return user->has_failed ? -EINVAL : read_exec(user, &config->exec);
}

/* Data in the file takes precedence over a named file, as in kubectl. */
static void prefer_data(struct as_kubeconfig *config)
{
    char **const files[] = {&config->ca_file, &config->cert_file, &config->key_file};
    char *const data[] = {config->ca_pem, config->cert_pem, config->key_pem};
    for (size_t i = 0; i < AS_ARRAY_SIZE(files); i++) {
        if (data[i]) {
            free(*files[i]);
            *files[i] = NULL;
        }
    }
}

static int kubeconfig_resolve(const struct files *files, const char *context_name,
                              struct as_kubeconfig *config, struct as_error *error)
{
    struct as_kubeconfig_reader context, cluster, user;
    AS_CLEANUP(as_free_p) char *cluster_name = NULL;
    AS_CLEANUP(as_free_p) char *user_name = NULL;
    if (!context_name)
        context_name = find_current_context(files);
    if (!context_name) {
        as_error_set(error, "%s: current-context: missing, and no context is configured",
                     files->items[0].path);
        return -EINVAL;
    }
    int status = kubeconfig_find_entry(files, "contexts", "context", context_name, &context, error);
    if (status)
        return status;
    entry_read_text(&context, "cluster", &cluster_name);
    entry_read_text(&context, "user", &user_name);
    entry_read_text(&context, "namespace", &config->namespace_);
    if (!context.has_failed && !cluster_name)
        entry_fail(&context, "cluster", "missing");
    if (context.has_failed)
        return -EINVAL;
    if ((status =
             kubeconfig_find_entry(files, "clusters", "cluster", cluster_name, &cluster, error)) ||
        (status = read_cluster(&cluster, config)))
        return status;
    if (user_name &&
        ((status = kubeconfig_find_entry(files, "users", "user", user_name, &user, error)) ||
         (status = read_user(&user, config))))
        return status;
    prefer_data(config);
    return 0;
}

int as_kubeconfig_parse(const struct as_kubeconfig_file *files, size_t count, const char *context,
                        struct as_kubeconfig **config_out, struct as_error *error)
{
    AS_CLEANUP(free_files) struct files parsed = {.count = 0};
    AS_CLEANUP(as_kubeconfig_free_p)
    struct as_kubeconfig *config = as_xcalloc(1, sizeof(*config));
    if (count > AS_KUBECONFIG_FILES_MAX) {
        as_error_set(error, "more than %d kubeconfig files", AS_KUBECONFIG_FILES_MAX);
        return -EINVAL;
    }
    for (size_t i = 0; i < count; i++) {
        int status = parse_file(&files[i], &parsed, error);
        if (status)
            return status;
    }
    int status = kubeconfig_resolve(&parsed, context, config, error);
    if (status)
        return status;
    *config_out = config;
    config = NULL;
    return 0;
}

static void kubeconfig_free_list(char **list)
{
    for (size_t i = 0; list && list[i]; i++)
        as_wipe_free(list[i]);
    free(list);
}

struct as_kubeconfig *as_kubeconfig_free(struct as_kubeconfig *config)
{
    if (!config)
        return NULL;
    char *const texts[] = {
        config->server,       config->tls_server_name,  config->proxy_url, config->namespace_,
        config->ca_file,      config->ca_pem,           config->ca_base64, config->cert_file,
        config->cert_pem,     config->key_file,         config->key_pem,   config->token,
        config->token_file,   config->username,         config->password,  config->exec.api_version,
        config->exec.command, config->exec.install_hint};
    for (size_t i = 0; i < AS_ARRAY_SIZE(texts); i++)
        as_wipe_free(texts[i]); /* some are secrets */
    kubeconfig_free_list(config->exec.argv);
    kubeconfig_free_list(config->exec.env);
    free(config);
    return NULL;
}

int as_kubeconfig_load(const char *path, const char *context, struct as_kubeconfig **config_out,
                       struct as_error *error)
{
    char *text;
    size_t size;
    int status = as_file_read(path, AS_KUBECONFIG_MAX, &text, &size);
    if (status) {
        as_error_set_errno(error, status, "%s", path);
        return status;
    }
    struct as_kubeconfig_file file = {path, text, size};
    status = as_kubeconfig_parse(&file, 1, context, config_out, error);
    as_wipe_free(text);
    return status;
}

struct loaded {
    char *paths, *texts[AS_KUBECONFIG_FILES_MAX];
    struct as_kubeconfig_file files[AS_KUBECONFIG_FILES_MAX];
    size_t count;
};

static void free_loaded(struct loaded *loaded)
{
    for (size_t i = 0; i < loaded->count; i++)
        as_wipe_free(loaded->texts[i]);
    free(loaded->paths);
}

static int kubeconfig_load_next(struct loaded *loaded, const char *path, struct as_error *error)
{
    if (loaded->count == AS_KUBECONFIG_FILES_MAX) {
        as_error_set(error, "more than %d kubeconfig files", AS_KUBECONFIG_FILES_MAX);
        return -EINVAL;
    }
    char **text = &loaded->texts[loaded->count];
    struct as_kubeconfig_file *file = &loaded->files[loaded->count];
    int status = as_file_read(path, AS_KUBECONFIG_MAX, text, &file->size);
    if (status == -ENOENT)
        return 0;
    if (status) {
        as_error_set_errno(error, status, "%s", path);
        return status;
    }
    file->path = path;
    file->text = *text;
    loaded->count++;
    return 0;
}

int as_kubeconfig_load_list(const char *paths, const char *context,
                            struct as_kubeconfig **config_out, struct as_error *error)
{
    AS_CLEANUP(free_loaded) struct loaded loaded = {.paths = as_xstrdup(paths)};
    char *rest = loaded.paths, *path;
    while ((path = strsep(&rest, ":")) != NULL) {
        int status = *path ? kubeconfig_load_next(&loaded, path, error) : 0;
        if (status)
            return status;
    }
    if (loaded.count == 0) {
        as_error_set(error, "%s: no such file", paths);
        return -ENOENT;
    }
    return as_kubeconfig_parse(loaded.files, loaded.count, context, config_out, error);
}
