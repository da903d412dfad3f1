/*
 * Reading single keys of one entry of a kubeconfig: see the header.
 */
#include "kubeconfig_read.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/http/access_limits.h>
#include <alertscaler/http/secret_file.h>

static const struct as_yaml_node *find(const struct as_kubeconfig_reader *reader, const char *key)
{
    const struct as_yaml_node *node = as_yaml_find(reader->node, key);
    return node && !as_yaml_is_null(node) ? node : NULL;
}

void as_kubeconfig_fail(struct as_kubeconfig_reader *reader, const char *key, const char *what)
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

void as_kubeconfig_refuse(struct as_kubeconfig_reader *reader, const char *key, const char *why)
{
    if (find(reader, key))
        as_kubeconfig_fail(reader, key, why);
}

/* NULL if absent, empty, or not a scalar (which is an error). */
static const char *find_text(struct as_kubeconfig_reader *reader, const char *key)
{
    const struct as_yaml_node *node = find(reader, key);
    if (!node)
        return NULL;
    if (node->kind != AS_YAML_SCALAR) {
        as_kubeconfig_fail(reader, key, "expected text");
        return NULL;
    }
    return node->size > 0 ? node->text : NULL;
}

static void set(char **out, char *text)
{
    free(*out);
    *out = text;
}

void as_kubeconfig_read_text(struct as_kubeconfig_reader *reader, const char *key, char **out)
{
    const char *text = find_text(reader, key);
    if (text)
        set(out, as_xstrdup(text));
}

void as_kubeconfig_read_bool(struct as_kubeconfig_reader *reader, const char *key, bool *out)
{
    const char *text = find_text(reader, key);
    if (!text)
        return;
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        as_kubeconfig_fail(reader, key, "expected true or false");
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

void as_kubeconfig_read_secret(struct as_kubeconfig_reader *reader, const char *key, char **out)
{
    const char *text = find_text(reader, key);
    if (!text)
        return;
    if (strlen(text) > AS_SECRET_FILE_MAX || has_control(text))
        as_kubeconfig_fail(reader, key, "too long, or holds a control character");
    else
        set(out, as_xstrdup(text));
}

static bool is_url(const char *text)
{
    const char *authority = strstr(text, "://");
    return as_str_is_visible(text, strlen(text)) && authority && authority > text && authority[3] &&
           authority[3] != '/' && strlen(text) <= AS_KUBE_SERVER_MAX;
}

void as_kubeconfig_read_url(struct as_kubeconfig_reader *reader, const char *key, char **out)
{
    const char *text = find_text(reader, key);
    if (!text)
        return;
    bool is_http = as_str_starts_with(text, "http://") || as_str_starts_with(text, "https://");
    bool is_server = strcmp(key, "server") == 0;
    if (!is_url(text) || (is_server && (!is_http || strpbrk(text, "?#")))) {
        as_kubeconfig_fail(reader, key, "expected a URL like https://10.0.0.1:6443");
        return;
    }
    size_t size = strlen(text);
    while (text[size - 1] == '/')
        size--;
    set(out, as_xstrndup(text, size));
}

static char *resolve(const struct as_kubeconfig_reader *reader, const char *path)
{
    const char *slash = strrchr(reader->source->path, '/');
    if (path[0] == '/' || !slash)
        return as_xstrdup(path);
    return as_xasprintf("%.*s/%s", (int)(slash - reader->source->path), reader->source->path, path);
}

void as_kubeconfig_read_path(struct as_kubeconfig_reader *reader, const char *key, char **out)
{
    const char *path = find_text(reader, key);
    if (path)
        set(out, resolve(reader, path));
}

void as_kubeconfig_read_command(struct as_kubeconfig_reader *reader, const char *key, char **out)
{
    const char *path = find_text(reader, key);
    if (path)
        set(out, strchr(path, '/') ? resolve(reader, path) : as_xstrdup(path));
}

static bool is_base64_char(char c)
{
    return isalnum((unsigned char)c) || c == '+' || c == '/';
}

/* Decodes the standard alphabet with correct padding; NULL for anything else. OpenSSL does not
 * check the padding, and counts it as bytes. */
static char *decode_base64(const char *text)
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

void as_kubeconfig_read_pem(struct as_kubeconfig_reader *reader, const char *key, char **out)
{
    const char *text = find_text(reader, key);
    if (!text)
        return;
    char *pem = decode_base64(text);
    if (!pem) {
        as_kubeconfig_fail(reader, key, "not valid base64");
    } else if (!strstr(pem, "-----BEGIN ")) {
        free(pem);
        as_kubeconfig_fail(reader, key, "holds no PEM");
    } else {
        set(out, pem);
    }
}

const struct as_yaml_node *as_kubeconfig_find_map(struct as_kubeconfig_reader *reader,
                                                  const char *key)
{
    const struct as_yaml_node *node = find(reader, key);
    if (!node || node->kind == AS_YAML_MAP)
        return node;
    as_kubeconfig_fail(reader, key, "expected a map");
    return NULL;
}

const struct as_yaml_node *as_kubeconfig_find_list(struct as_kubeconfig_reader *reader,
                                                   const char *key, size_t max)
{
    const struct as_yaml_node *node = find(reader, key);
    if (!node || (node->kind == AS_YAML_LIST && node->count <= max))
        return node;
    as_kubeconfig_fail(reader, key,
                       node->kind == AS_YAML_LIST ? "too many entries" : "expected a list");
    return NULL;
}
