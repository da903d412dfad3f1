/*
 * Signatures of requests: one function for each kind, over common canonical forms and keyed
 * digests. Pure: the caller gives the time and the nonce.
 *
 * Not here: where credentials come from (provider_credentials.h).
 */
#include <alertscaler/login/sign.h>

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <alertscaler/base/encode.h>
#include <alertscaler/base/str.h>

/* Canonical forms: see sign.h. */

/* Parameters of a query; ours have few, those of users are checked before. */
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

static char *canonical_copy(struct as_cloud_op *op, const char *text, size_t size)
{
    char *memory = as_arena_alloc_raw(&op->arena, size + 1);
    memcpy(memory, text, size);
    memory[size] = '\0';
    return memory;
}

/* Of the request; memory of the operation. */
static const char *canonical_host(struct as_cloud_op *op)
{
    struct canonical_url parts;
    canonical_split(op->request.url, &parts);
    return canonical_copy(op, parts.host, parts.host_size);
}

/* The query may be a user's. */
static int sign_check_query(const struct as_cloud_op *op, size_t max, struct as_error *error)
{
    struct canonical_url parts;
    size_t count = 1;
    canonical_split(op->request.url, &parts);
    for (size_t i = 0; i < parts.query_size; i++)
        count += parts.query[i] == '&';
    if (count <= max)
        return 0;
    as_error_set(error, "the URL has too many parameters to be signed");
    return -EMSGSIZE;
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

/* name=value pairs in ascending order (bytes), with & between them; the = is always written. */
static void canonical_append_query(struct as_buf *buf, struct as_cloud_op *op,
                                   const struct canonical_url *parts)
{
    struct parameter parameters[PARAMETERS_MAX];
    size_t count = 0;
    char *rest = canonical_copy(op, parts->query, parts->query_size), *item;
    while ((item = strsep(&rest, "&"))) {
        if (!*item)
            continue;
        if (count == PARAMETERS_MAX)
            abort(); /* checked before */
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
static struct canonical_header make_header(struct as_cloud_op *op, const char *line)
{
    const size_t name_size = strcspn(line, ":");
    char *name = canonical_copy(op, line, name_size);
    for (char *at = name; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    const char *given = line + name_size + (line[name_size] == ':');
    char *value = canonical_copy(op, given, strlen(given)), *end = value;
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

size_t canonical_headers(struct as_cloud_op *op,
                         struct canonical_header headers_out[AS_CLOUD_OP_HEADERS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < op->request.header_count; i++) {
        const struct canonical_header header = make_header(op, op->request.headers[i]);
        size_t at = 0;
        while (at < count && strcmp(headers_out[at].name, header.name) < 0)
            at++;
        if (at < count && strcmp(headers_out[at].name, header.name) == 0) {
            headers_out[at].value =
                as_cloud_op_print(op, "%s,%s", headers_out[at].value, header.value);
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

static void canonical_hmac(const void *key, size_t key_size, const void *data, size_t size,
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

/* A token in each request, as a bearer token:
 * https://www.rfc-editor.org/rfc/rfc6750#section-2.1
 * or in a separate header:
 * https://docs.openstack.org/keystone/latest/api_curl_examples.html */

static int add_token(struct as_cloud_op *op, const char *header,
                     const struct as_provider_credentials *credentials, struct as_error *error)
{
    if (as_str_is_empty(credentials->token)) {
        as_error_set(error, "the credentials have no token");
        return -EINVAL;
    }
    if (!as_str_is_visible(credentials->token, strlen(credentials->token))) {
        as_error_set(error, "what is given as token has blanks, ends of lines or other characters "
                            "that no token has");
        return -EINVAL;
    }
    as_cloud_op_header(op, "%s%s", header, credentials->token);
    return 0;
}

int as_sign_bearer(struct as_cloud_op *op, const struct as_provider_credentials *credentials,
                   const struct as_sign_scope *scope, struct as_error *error)
{
    return add_token(op, "Authorization: Bearer ", credentials, error);
}

int as_sign_token(struct as_cloud_op *op, const struct as_provider_credentials *credentials,
                  const struct as_sign_scope *scope, struct as_error *error)
{
    return add_token(op, "X-Auth-Token: ", credentials, error);
}

/* Alibaba Cloud's signature version 3, ACS3-HMAC-SHA256:
 * https://www.alibabacloud.com/help/en/sdk/product-overview/v3-request-structure-and-signature
 *
 * Signed headers: host, content-type and all of its own (x-acs-*). A request gives action and
 * version as headers. */

#define ALGORITHM "ACS3-HMAC-SHA256"

static bool acs_is_signed(const char *name)
{
    return as_str_starts_with(name, "x-acs-") || strcmp(name, "host") == 0 ||
           strcmp(name, "content-type") == 0;
}

/* Writes the canonical request; the names of its headers go into `names`. */
static void acs_write_canonical(struct as_cloud_op *op, const char *payload, struct as_buf *out,
                                struct as_buf *names)
{
    struct canonical_header headers[AS_CLOUD_OP_HEADERS_MAX];
    struct canonical_url parts;
    canonical_split(op->request.url, &parts);
    as_buf_printf(out, "%s\n%.*s%s\n", op->request.method, (int)parts.path_size, parts.path,
                  parts.path_size == 0 ? "/" : "");
    canonical_append_query(out, op, &parts);
    as_buf_append_char(out, '\n');
    const size_t count = canonical_headers(op, headers);
    for (size_t i = 0; i < count; i++) {
        if (!acs_is_signed(headers[i].name))
            continue;
        as_buf_printf(out, "%s:%s\n", headers[i].name, headers[i].value);
        as_buf_printf(names, "%s%s", names->size ? ";" : "", headers[i].name);
    }
    as_buf_printf(out, "\n%s\n%s", names->data, payload);
}

int as_sign_acs(struct as_cloud_op *op, const struct as_provider_credentials *credentials,
                const struct as_sign_scope *scope, struct as_error *error)
{
    AS_CLEANUP(as_buf_wipe) struct as_buf canonical = AS_BUF_INIT(CANONICAL_MAX);
    AS_CLEANUP(as_buf_deinit) struct as_buf names = AS_BUF_INIT(CANONICAL_MAX);
    char payload[CANONICAL_SHA_HEX], digest[CANONICAL_SHA_HEX], signature[CANONICAL_SHA_HEX];
    char now[AS_RFC3339_SIZE];
    if (as_str_is_empty(credentials->key_id) || as_str_is_empty(credentials->secret)) {
        as_error_set(error, "the credentials have no access key");
        return -EINVAL;
    }
    if (sign_check_query(op, PARAMETERS_MAX, error) != 0)
        return -EMSGSIZE;
    as_wall_time_print(scope->now, now); /* to the second: 2015-08-30T12:36:00 */
    canonical_sha256(op->request.body.data, op->request.body.size, payload);
    as_cloud_op_header(op, "Host: %s", canonical_host(op));
    as_cloud_op_header(op, "x-acs-date: %.19sZ", now);
    as_cloud_op_header(op, "x-acs-signature-nonce: %s", scope->nonce);
    as_cloud_op_header(op, "x-acs-content-sha256: %s", payload);
    if (!as_str_is_empty(credentials->token)) {
        as_cloud_op_header(op, "x-acs-accesskey-id: %s", credentials->key_id);
        as_cloud_op_header(op, "x-acs-security-token: %s", credentials->token);
    }
    acs_write_canonical(op, payload, &canonical, &names);
    if (as_buf_check(&canonical) != 0) {
        as_error_set(error, "the request is too large to be signed");
        return -EMSGSIZE;
    }
    canonical_sha256(canonical.data, canonical.size, digest);
    canonical_hmac_hex(credentials->secret, strlen(credentials->secret),
                       as_cloud_op_print(op, ALGORITHM "\n%s", digest), signature);
    as_cloud_op_header(op,
                       "Authorization: " ALGORITHM " Credential=%s,SignedHeaders=%s,Signature=%s",
                       credentials->key_id, names.data, signature);
    return 0;
}

/* AWS Signature Version 4:
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 *
 * Paths are percent-encoded once, as sent; the canonical form encodes them again, as all services
 * but S3 expect, and has no dot segments and no empty segments: a path may begin with a user's. */

#define AWS_ALGORITHM "AWS4-HMAC-SHA256"

struct stamp { /* 20150830T123600Z, and the day */
    char time[17], day[9];
};

static void print_stamp(as_wall_time now, struct stamp *stamp)
{
    char text[AS_RFC3339_SIZE];
    as_wall_time_print(now, text); /* 2015-08-30T12:36:00.000000Z */
    snprintf(stamp->day, sizeof(stamp->day), "%.4s%.2s%.2s", text, text + 5, text + 8);
    snprintf(stamp->time, sizeof(stamp->time), "%sT%.2s%.2s%.2sZ", stamp->day, text + 11, text + 14,
             text + 17);
}

#define AWS_SEGMENTS_MAX 64 /* of a path; it is signed as it is if it has more */

static bool segment_is(const char *segment, size_t size, const char *text)
{
    return size == strlen(text) && strncmp(segment, text, size) == 0;
}

/* As AWS' own clients do: `.` and empty segments are left out, `..` takes one back. */
static void aws_write_path(struct as_buf *out, const char *path, size_t size)
{
    const char *segments[AWS_SEGMENTS_MAX], *end = path + size;
    size_t sizes[AWS_SEGMENTS_MAX], count = 0;
    for (const char *at = path; at < end && count < AWS_SEGMENTS_MAX;) {
        const char *slash = memchr(at, '/', (size_t)(end - at));
        const size_t length = (size_t)((slash ? slash : end) - at);
        if (segment_is(at, length, "..")) {
            count -= count > 0;
        } else if (length > 0 && !segment_is(at, length, ".")) {
            segments[count] = at;
            sizes[count++] = length;
        }
        at += length + (slash != NULL);
    }
    if (count == AWS_SEGMENTS_MAX) {
        as_encode_percent(out, path, size, "/");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        as_buf_append_char(out, '/');
        as_encode_percent(out, segments[i], sizes[i], "");
    }
    if (count == 0 || end[-1] == '/')
        as_buf_append_char(out, '/');
}

/* Writes the canonical request; the names of its headers go into `names`. */
static void aws_write_canonical(struct as_cloud_op *op, struct as_buf *out, struct as_buf *names)
{
    const struct as_cloud_op_request *request = &op->request;
    struct canonical_header headers[AS_CLOUD_OP_HEADERS_MAX];
    char digest[CANONICAL_SHA_HEX];
    struct canonical_url parts;
    canonical_split(request->url, &parts);
    as_buf_printf(out, "%s\n", request->method);
    aws_write_path(out, parts.path, parts.path_size);
    as_buf_append_char(out, '\n');
    canonical_append_query(out, op, &parts);
    as_buf_append_char(out, '\n');
    const size_t count = canonical_headers(op, headers);
    for (size_t i = 0; i < count; i++) {
        as_buf_printf(out, "%s:%s\n", headers[i].name, headers[i].value);
        as_buf_printf(names, "%s%s", i ? ";" : "", headers[i].name);
    }
    canonical_sha256(request->body.data, request->body.size, digest);
    as_buf_printf(out, "\n%s\n%s", names->data, digest);
}

static void aws_sign(const char *secret, const struct stamp *stamp,
                     const struct as_sign_scope *scope, const char *text,
                     char signature_out[CANONICAL_SHA_HEX])
{
    static const char last[] = "aws4_request";
    AS_CLEANUP(as_buf_wipe) struct as_buf start = AS_BUF_INIT(AS_CLOUD_OP_FILE_MAX + 4);
    unsigned char key[32];
    as_buf_printf(&start, "AWS4%s", secret);
    canonical_hmac(start.data, start.size, stamp->day, strlen(stamp->day), key);
    canonical_hmac(key, sizeof(key), scope->region, strlen(scope->region), key);
    canonical_hmac(key, sizeof(key), scope->service, strlen(scope->service), key);
    canonical_hmac(key, sizeof(key), last, strlen(last), key);
    canonical_hmac_hex(key, sizeof(key), text, signature_out);
    explicit_bzero(key, sizeof(key));
}

int as_sign_aws(struct as_cloud_op *op, const struct as_provider_credentials *credentials,
                const struct as_sign_scope *scope, struct as_error *error)
{
    AS_CLEANUP(as_buf_wipe) struct as_buf canonical = AS_BUF_INIT(CANONICAL_MAX);
    AS_CLEANUP(as_buf_deinit) struct as_buf names = AS_BUF_INIT(CANONICAL_MAX);
    char digest[CANONICAL_SHA_HEX], signature[CANONICAL_SHA_HEX];
    struct stamp stamp;
    if (as_str_is_empty(credentials->key_id) || as_str_is_empty(credentials->secret)) {
        as_error_set(error, "the credentials have no access key");
        return -EINVAL;
    }
    if (sign_check_query(op, PARAMETERS_MAX, error) != 0)
        return -EMSGSIZE;
    print_stamp(scope->now, &stamp);
    as_cloud_op_header(op, "Host: %s", canonical_host(op));
    as_cloud_op_header(op, "X-Amz-Date: %s", stamp.time);
    if (!as_str_is_empty(credentials->token))
        as_cloud_op_header(op, "X-Amz-Security-Token: %s", credentials->token);
    aws_write_canonical(op, &canonical, &names);
    if (as_buf_check(&canonical) != 0) {
        as_error_set(error, "the request is too large to be signed");
        return -EMSGSIZE;
    }
    canonical_sha256(canonical.data, canonical.size, digest);
    const char *place =
        as_cloud_op_print(op, "%s/%s/%s/aws4_request", stamp.day, scope->region, scope->service);
    aws_sign(credentials->secret, &stamp, scope,
             as_cloud_op_print(op, AWS_ALGORITHM "\n%s\n%s\n%s", stamp.time, place, digest),
             signature);
    as_cloud_op_header(
        op, "Authorization: " AWS_ALGORITHM " Credential=%s/%s, SignedHeaders=%s, Signature=%s",
        credentials->key_id, place, names.data, signature);
    return 0;
}

/* Baidu AI Cloud's signature, bce-auth-v1:
 * https://cloud.baidu.com/doc/Reference/s/njwvz1yfu
 *
 * Paths and queries are signed as sent, percent-encoded once. Signed headers: host, those of the
 * body, and all of its own (x-bce-*). The signature names them. */

#define EXPIRES_S          1800
#define BCE_PARAMETERS_MAX 64

static bool is_signed(const char *name)
{
    return as_str_starts_with(name, "x-bce-") || strcmp(name, "host") == 0 ||
           strcmp(name, "content-type") == 0;
}

static int bce_compare_items(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "name=value" in ascending order; the comparison includes the equals sign. */
static void bce_append_query(struct as_buf *out, struct as_cloud_op *op,
                             const struct canonical_url *parts)
{
    const char *items[BCE_PARAMETERS_MAX];
    size_t count = 0;
    char *rest =
             (char *)(uintptr_t)as_cloud_op_print(op, "%.*s", (int)parts->query_size, parts->query),
         *item;
    while ((item = strsep(&rest, "&"))) {
        if (!*item)
            continue;
        if (count == BCE_PARAMETERS_MAX)
            abort(); /* checked before */
        items[count++] = strchr(item, '=') ? item : as_cloud_op_print(op, "%s=", item);
    }
    qsort(items, count, sizeof(*items), bce_compare_items);
    for (size_t i = 0; i < count; i++)
        as_buf_printf(out, "%s%s", i ? "&" : "", items[i]);
}

/* Writes the canonical request; the names of its headers go into `names`. */
static void write_canonical(struct as_cloud_op *op, struct as_buf *out, struct as_buf *names)
{
    struct canonical_header headers[AS_CLOUD_OP_HEADERS_MAX];
    struct canonical_url parts;
    canonical_split(op->request.url, &parts);
    as_buf_printf(out, "%s\n%.*s%s\n", op->request.method, (int)parts.path_size, parts.path,
                  parts.path_size == 0 ? "/" : "");
    bce_append_query(out, op, &parts);
    const size_t count = canonical_headers(op, headers);
    for (size_t i = 0; i < count; i++) {
        if (!is_signed(headers[i].name) || !*headers[i].value)
            continue;
        as_buf_printf(out, "\n%s:", headers[i].name);
        as_encode_percent(out, headers[i].value, strlen(headers[i].value), "");
        as_buf_printf(names, "%s%s", names->size ? ";" : "", headers[i].name);
    }
}

int as_sign_bce(struct as_cloud_op *op, const struct as_provider_credentials *credentials,
                const struct as_sign_scope *scope, struct as_error *error)
{
    AS_CLEANUP(as_buf_wipe) struct as_buf canonical = AS_BUF_INIT(CANONICAL_MAX);
    AS_CLEANUP(as_buf_deinit) struct as_buf names = AS_BUF_INIT(CANONICAL_MAX);
    char key[CANONICAL_SHA_HEX], signature[CANONICAL_SHA_HEX], now[AS_RFC3339_SIZE];
    if (as_str_is_empty(credentials->key_id) || as_str_is_empty(credentials->secret)) {
        as_error_set(error, "the credentials have no access key");
        return -EINVAL;
    }
    if (sign_check_query(op, BCE_PARAMETERS_MAX, error) != 0)
        return -EMSGSIZE;
    as_wall_time_print(scope->now, now); /* to the second: 2015-08-30T12:36:00 */
    as_cloud_op_header(op, "Host: %s", canonical_host(op));
    as_cloud_op_header(op, "x-bce-date: %.19sZ", now);
    if (!as_str_is_empty(credentials->token))
        as_cloud_op_header(op, "x-bce-security-token: %s", credentials->token);
    write_canonical(op, &canonical, &names);
    if (as_buf_check(&canonical) != 0) {
        as_error_set(error, "the request is too large to be signed");
        return -EMSGSIZE;
    }
    const char *prefix =
        as_cloud_op_print(op, "bce-auth-v1/%s/%.19sZ/%d", credentials->key_id, now, EXPIRES_S);
    canonical_hmac_hex(credentials->secret, strlen(credentials->secret), prefix, key);
    canonical_hmac_hex(key, strlen(key), canonical.data, signature); /* the key is the hex text */
    explicit_bzero(key, sizeof(key));
    as_cloud_op_header(op, "Authorization: %s/%s/%s", prefix, names.data, signature);
    return 0;
}
