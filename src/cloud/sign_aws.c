/*
 * AWS Signature Version 4:
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 *
 * Paths are percent-encoded once, as sent; the canonical form encodes them again, as all services
 * but S3 expect. Our paths have no dot segments and no empty segments.
 */
#include <alertscaler/cloud/sign.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/encode.h>
#include <alertscaler/base/str.h>

#include "canonical.h"

#define ALGORITHM "AWS4-HMAC-SHA256"

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

/* Writes the canonical request; the names of its headers go into `names`. */
static void write_canonical(struct as_talk *talk, struct as_buf *out, struct as_buf *names)
{
    const struct as_talk_request *request = &talk->request;
    struct canonical_header headers[AS_TALK_HEADERS_MAX];
    char digest[CANONICAL_SHA_HEX];
    struct canonical_url parts;
    canonical_split(request->url, &parts);
    as_buf_printf(out, "%s\n", request->method);
    if (parts.path_size == 0)
        as_buf_append_char(out, '/');
    as_encode_percent(out, parts.path, parts.path_size, "/");
    as_buf_append_char(out, '\n');
    canonical_append_query(out, talk, &parts);
    as_buf_append_char(out, '\n');
    const size_t count = canonical_headers(talk, headers);
    for (size_t i = 0; i < count; i++) {
        as_buf_printf(out, "%s:%s\n", headers[i].name, headers[i].value);
        as_buf_printf(names, "%s%s", i ? ";" : "", headers[i].name);
    }
    canonical_sha256(request->body.data, request->body.size, digest);
    as_buf_printf(out, "\n%s\n%s", names->data, digest);
}

static void sign(const char *secret, const struct stamp *stamp, const struct as_sign_scope *scope,
                 const char *text, char signature_out[CANONICAL_SHA_HEX])
{
    static const char last[] = "aws4_request";
    AS_CLEANUP(as_buf_wipe) struct as_buf start = AS_BUF_INIT(AS_TALK_FILE_MAX + 4);
    unsigned char key[32];
    as_buf_printf(&start, "AWS4%s", secret);
    canonical_hmac(start.data, start.size, stamp->day, strlen(stamp->day), key);
    canonical_hmac(key, sizeof(key), scope->region, strlen(scope->region), key);
    canonical_hmac(key, sizeof(key), scope->service, strlen(scope->service), key);
    canonical_hmac(key, sizeof(key), last, strlen(last), key);
    canonical_hmac_hex(key, sizeof(key), text, signature_out);
    explicit_bzero(key, sizeof(key));
}

int as_sign_aws(struct as_talk *talk, const struct as_provider_credentials *credentials,
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
    print_stamp(scope->now, &stamp);
    as_talk_header(talk, "Host: %s", canonical_host(talk));
    as_talk_header(talk, "X-Amz-Date: %s", stamp.time);
    if (!as_str_is_empty(credentials->token))
        as_talk_header(talk, "X-Amz-Security-Token: %s", credentials->token);
    write_canonical(talk, &canonical, &names);
    if (as_buf_check(&canonical) != 0) {
        as_error_set(error, "the request is too large to be signed");
        return -EMSGSIZE;
    }
    canonical_sha256(canonical.data, canonical.size, digest);
    const char *place =
        as_talk_print(talk, "%s/%s/%s/aws4_request", stamp.day, scope->region, scope->service);
    sign(credentials->secret, &stamp, scope,
         as_talk_print(talk, ALGORITHM "\n%s\n%s\n%s", stamp.time, place, digest), signature);
    as_talk_header(talk,
                   "Authorization: " ALGORITHM " Credential=%s/%s, SignedHeaders=%s, Signature=%s",
                   credentials->key_id, place, names.data, signature);
    return 0;
}
