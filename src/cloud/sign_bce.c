/*
 * Baidu AI Cloud's signature, bce-auth-v1:
 * https://cloud.baidu.com/doc/Reference/s/njwvz1yfu
 *
 * Paths and queries are signed as sent, percent-encoded once. Signed headers: host, those of the
 * body, and all of its own (x-bce-*). The signature names them.
 */
#include <alertscaler/cloud/sign.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/encode.h>
#include <alertscaler/base/str.h>

#include "canonical.h"

#define EXPIRES_S      1800
#define PARAMETERS_MAX 64

static bool is_signed(const char *name)
{
    return as_str_starts_with(name, "x-bce-") || strcmp(name, "host") == 0 ||
           strcmp(name, "content-type") == 0;
}

static int compare_items(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "name=value" in ascending order; the comparison includes the equals sign. */
static void append_query(struct as_buf *out, struct as_talk *talk,
                         const struct canonical_url *parts)
{
    const char *items[PARAMETERS_MAX];
    size_t count = 0;
    char *rest =
             (char *)(uintptr_t)as_talk_print(talk, "%.*s", (int)parts->query_size, parts->query),
         *item;
    while ((item = strsep(&rest, "&"))) {
        if (!*item)
            continue;
        if (count == PARAMETERS_MAX)
            abort(); /* our requests have few parameters */
        items[count++] = strchr(item, '=') ? item : as_talk_print(talk, "%s=", item);
    }
    qsort(items, count, sizeof(*items), compare_items);
    for (size_t i = 0; i < count; i++)
        as_buf_printf(out, "%s%s", i ? "&" : "", items[i]);
}

/* Writes the canonical request; the names of its headers go into `names`. */
static void write_canonical(struct as_talk *talk, struct as_buf *out, struct as_buf *names)
{
    struct canonical_header headers[AS_TALK_HEADERS_MAX];
    struct canonical_url parts;
    canonical_split(talk->request.url, &parts);
    as_buf_printf(out, "%s\n%.*s%s\n", talk->request.method, (int)parts.path_size, parts.path,
                  parts.path_size == 0 ? "/" : "");
    append_query(out, talk, &parts);
    const size_t count = canonical_headers(talk, headers);
    for (size_t i = 0; i < count; i++) {
        if (!is_signed(headers[i].name) || !*headers[i].value)
            continue;
        as_buf_printf(out, "\n%s:", headers[i].name);
        as_encode_percent(out, headers[i].value, strlen(headers[i].value), "");
        as_buf_printf(names, "%s%s", names->size ? ";" : "", headers[i].name);
    }
}

int as_sign_bce(struct as_talk *talk, const struct as_provider_credentials *credentials,
                const struct as_sign_scope *scope, struct as_error *error)
{
    AS_CLEANUP(as_buf_wipe) struct as_buf canonical = AS_BUF_INIT(CANONICAL_MAX);
    AS_CLEANUP(as_buf_deinit) struct as_buf names = AS_BUF_INIT(CANONICAL_MAX);
    char key[CANONICAL_SHA_HEX], signature[CANONICAL_SHA_HEX], now[AS_RFC3339_SIZE];
    if (as_str_is_empty(credentials->key_id) || as_str_is_empty(credentials->secret)) {
        as_error_set(error, "the credentials have no access key");
        return -EINVAL;
    }
    as_wall_time_print(scope->now, now); /* to the second: 2015-08-30T12:36:00 */
    as_talk_header(talk, "Host: %s", canonical_host(talk));
    as_talk_header(talk, "x-bce-date: %.19sZ", now);
    if (!as_str_is_empty(credentials->token))
        as_talk_header(talk, "x-bce-security-token: %s", credentials->token);
    write_canonical(talk, &canonical, &names);
    if (as_buf_check(&canonical) != 0) {
        as_error_set(error, "the request is too large to be signed");
        return -EMSGSIZE;
    }
    const char *prefix =
        as_talk_print(talk, "bce-auth-v1/%s/%.19sZ/%d", credentials->key_id, now, EXPIRES_S);
    canonical_hmac_hex(credentials->secret, strlen(credentials->secret), prefix, key);
    canonical_hmac_hex(key, strlen(key), canonical.data, signature); /* the key is the hex text */
    explicit_bzero(key, sizeof(key));
    as_talk_header(talk, "Authorization: %s/%s/%s", prefix, names.data, signature);
    return 0;
}
