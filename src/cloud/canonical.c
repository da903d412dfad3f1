/*
 * Canonical forms: see the header.
 */
#include "canonical.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <alertscaler/base/encode.h>

/* Parameters of a query; ours have few. */
#define PARAMETERS_MAX 256

void canonical_split(const char *url, struct canonical_url *parts_out)
{
    const char *scheme = strstr(url, "://");
    const char *host = scheme ? scheme + 3 : url;
    const size_t host_size = strcspn(host, "/?#");
    const char *path = host + host_size;
    const size_t path_size = strcspn(path, "?#");
    const char *query = path[path_size] == '?' ? path + path_size + 1 : path + path_size;
    *parts_out = (struct canonical_url){
        .host = host,
        .host_size = host_size,
        .path = path,
        .path_size = path_size,
        .query = query,
        .query_size = strcspn(query, "#"),
    };
}

static char *copy(struct as_talk *talk, const char *text, size_t size)
{
    char *memory = as_arena_alloc_raw(&talk->arena, size + 1);
    memcpy(memory, text, size);
    memory[size] = '\0';
    return memory;
}

const char *canonical_host(struct as_talk *talk)
{
    struct canonical_url parts;
    canonical_split(talk->request.url, &parts);
    return copy(talk, parts.host, parts.host_size);
}

struct parameter {
    const char *name, *value;
};

static int compare_parameters(const void *a, const void *b)
{
    const struct parameter *left = a, *right = b;
    const int order = strcmp(left->name, right->name);
    return order ? order : strcmp(left->value, right->value);
}

void canonical_append_query(struct as_buf *buf, struct as_talk *talk,
                            const struct canonical_url *parts)
{
    struct parameter parameters[PARAMETERS_MAX];
    size_t count = 0;
    char *rest = copy(talk, parts->query, parts->query_size), *item;
    while ((item = strsep(&rest, "&"))) {
        if (!*item)
            continue;
        if (count == PARAMETERS_MAX)
            abort();
        char *value = strchr(item, '=');
        if (value)
            *value++ = '\0';
        parameters[count++] = (struct parameter){item, value ? value : ""};
    }
    qsort(parameters, count, sizeof(*parameters), compare_parameters);
    for (size_t i = 0; i < count; i++)
        as_buf_printf(buf, "%s%s=%s", i ? "&" : "", parameters[i].name, parameters[i].value);
}

/* The name in lower case; the value without outer blanks, and with single blanks inside. */
static struct canonical_header make_header(struct as_talk *talk, const char *line)
{
    const size_t name_size = strcspn(line, ":");
    char *name = copy(talk, line, name_size);
    for (char *at = name; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    const char *given = line + name_size + (line[name_size] == ':');
    char *value = copy(talk, given, strlen(given)), *end = value;
    for (const char *at = given; *at; at++) {
        const bool is_blank = strchr(" \t\r\n", *at) != NULL;
        if (!is_blank)
            *end++ = *at;
        else if (end > value && end[-1] != ' ')
            *end++ = ' ';
    }
    while (end > value && end[-1] == ' ')
        end--;
    *end = '\0';
    return (struct canonical_header){name, value};
}

size_t canonical_headers(struct as_talk *talk,
                         struct canonical_header headers_out[AS_TALK_HEADERS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < talk->request.header_count; i++) {
        const struct canonical_header header = make_header(talk, talk->request.headers[i]);
        size_t at = 0;
        while (at < count && strcmp(headers_out[at].name, header.name) < 0)
            at++;
        if (at < count && strcmp(headers_out[at].name, header.name) == 0) {
            headers_out[at].value =
                as_talk_print(talk, "%s,%s", headers_out[at].value, header.value);
            continue;
        }
        memmove(&headers_out[at + 1], &headers_out[at], (count - at) * sizeof(*headers_out));
        headers_out[at] = header;
        count++;
    }
    return count;
}

static void print_hex(const unsigned char digest[32], char hex_out[CANONICAL_SHA_HEX])
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(CANONICAL_SHA_HEX);
    as_encode_hex(&text, digest, 32);
    memcpy(hex_out, text.data, CANONICAL_SHA_HEX);
}

/* Ends the process if SHA-256 is not available. */
void canonical_sha256(const void *data, size_t size, char hex_out[CANONICAL_SHA_HEX])
{
    unsigned char digest[32];
    if (EVP_Digest(size ? data : "", size, digest, NULL, EVP_sha256(), NULL) != 1)
        abort();
    print_hex(digest, hex_out);
}

void canonical_hmac(const void *key, size_t key_size, const void *data, size_t size,
                    unsigned char digest_out[32])
{
    if (key_size > INT_MAX || !HMAC(EVP_sha256(), key, (int)key_size, data, size, digest_out, NULL))
        abort();
}

void canonical_hmac_hex(const void *key, size_t key_size, const char *text,
                        char hex_out[CANONICAL_SHA_HEX])
{
    unsigned char digest[32];
    canonical_hmac(key, key_size, text, strlen(text), digest);
    print_hex(digest, hex_out);
    explicit_bzero(digest, sizeof(digest));
}
