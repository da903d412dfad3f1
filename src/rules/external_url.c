/*
 * The text is normalized, so that it can be compared with what browsers send.
 */
#include <alertscaler/rules/external_url.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>

#define PATH_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/"

/* Of a URL with a host. The normal form does not show a port of 0. */
static bool has_valid_port(const char *text)
{
    int64_t port = 0;
    const char *authority = strchr(text, ':') + strlen("://");
    const size_t size = strcspn(authority, "/");
    const char *colon = memrchr(authority, ':', size);
    if (!colon || memchr(colon, ']', size - (size_t)(colon - authority)))
        return true; /* the usual port */
    const size_t digits = size - (size_t)(colon + 1 - authority);
    return as_number_parse_i64(colon + 1, digits, &port) == 0 && port > 0 && port <= UINT16_MAX;
}

/* The normal form does not show slashes in a row. */
static bool has_empty_segment(const char *text)
{
    const char *slashes = strstr(strchr(text, ':') + strlen("://"), "//");
    return slashes && slashes[strspn(slashes, "/")];
}

static const char *find_problem(const char *text)
{
    char host[AS_URL_HOST_SIZE];
    if (*text == '"' || *text == '\'')
        return "it has quotes: write it without";
    if (!as_url_take_host(text, host))
        return "expected http:// or https://, a host, maybe a port and a path; no user name";
    if (strchr(text, '?') || strchr(text, '#'))
        return "it must not have a query or a fragment";
    if (has_empty_segment(text))
        return "its path has an empty segment (//)";
    if (!has_valid_port(text))
        return "its port is not between 1 and 65535";
    if (strlen(text) >= AS_EXTERNAL_URL_SIZE)
        return "it is longer than 1023 bytes";
    return NULL;
}

/* Of the normal form, which has no dot segments and no "/" at the end. */
static const char *find_path_problem(const char *path)
{
    if (path[strspn(path, PATH_CHARACTERS)] != '\0')
        return "its path may only have letters, digits and -._~/";
    return strstr(path, "//") ? "its path has an empty segment (//)" : NULL;
}

int as_external_url_parse(const char *text, struct as_external_url *url_out, struct as_error *error)
{
    struct as_external_url url = {0};
    AS_CLEANUP(as_buf_deinit) struct as_buf normal = AS_BUF_INIT(AS_EXTERNAL_URL_SIZE - 1);
    const char *problem = find_problem(text);
    if (!problem && (!as_url_append_normal(text, &normal) || as_buf_check(&normal) != 0))
        problem = "it is longer than 1023 bytes";
    if (!problem) {
        memcpy(url.base, normal.data, normal.size + 1);
        const size_t authority = strcspn(url.base, "/") + strlen("//");
        memcpy(url.origin, url.base, authority + strcspn(url.base + authority, "/"));
        url.is_https = url.base[4] == 's';
        problem = find_path_problem(as_external_url_get_path(&url));
    }
    if (problem) {
        as_error_set(error, "\"%s\" cannot be used: %s", text, problem);
        return -EINVAL;
    }
    *url_out = url;
    return 0;
}

int as_route_prefix_parse(const char *text, char prefix_out[AS_EXTERNAL_URL_SIZE],
                          struct as_error *error)
{
    struct as_external_url url;
    char whole[AS_EXTERNAL_URL_SIZE];
    const int size = snprintf(whole, sizeof(whole), "http://a/%s", text + strspn(text, "/"));
    if (size < 0 || (size_t)size >= sizeof(whole) ||
        as_external_url_parse(whole, &url, NULL) != 0) {
        as_error_set(error, "\"%s\" cannot be used: expected a path of letters, digits and -._~/",
                     text);
        return -EINVAL;
    }
    const char *path = as_external_url_get_path(&url);
    memcpy(prefix_out, path, strlen(path) + 1);
    return 0;
}

static bool make(bool is_https, const char *host, size_t size, uint16_t port,
                 struct as_external_url *url_out)
{
    char text[AS_URL_HOST_SIZE + 32];
    (void)snprintf(text, sizeof(text), "http%s://%.*s:%u", is_https ? "s" : "", (int)size, host,
                   port);
    return as_external_url_parse(text, url_out, NULL) == 0;
}

void as_external_url_make_default(const char *listen_address, uint16_t port, bool is_https,
                                  struct as_external_url *url_out)
{
    static const char *const everywhere[] = {":", "0.0.0.0:", "[::]:"};
    bool is_everywhere = false;
    for (size_t i = 0; i < AS_ARRAY_SIZE(everywhere); i++)
        is_everywhere = is_everywhere || as_str_starts_with(listen_address, everywhere[i]);
    const char *colon = strrchr(listen_address, ':');
    if (!is_everywhere && colon &&
        make(is_https, listen_address, (size_t)(colon - listen_address), port, url_out))
        return;
    char name[AS_URL_HOST_SIZE] = "";
    if (gethostname(name, sizeof(name) - 1) == 0 &&
        make(is_https, name, strlen(name), port, url_out))
        return;
    if (!make(is_https, "localhost", strlen("localhost"), port, url_out))
        assert(port == 0); /* never of a server that listens */
}
