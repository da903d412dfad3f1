/*
 * Alibaba Cloud's signature version 3, ACS3-HMAC-SHA256:
 * https://www.alibabacloud.com/help/en/sdk/product-overview/v3-request-structure-and-signature
 *
 * Signed headers: host, content-type and all of its own (x-acs-*). A request gives action and
 * version as headers.
 */
#include <alertscaler/cloud/sign.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/str.h>

#include "canonical.h"

#define ALGORITHM "ACS3-HMAC-SHA256"

static bool is_signed(const char *name)
{
    return as_str_starts_with(name, "x-acs-") || strcmp(name, "host") == 0 ||
           strcmp(name, "content-type") == 0;
}

/* Writes the canonical request; the names of its headers go into `names`. */
static void write_canonical(struct as_talk *talk, const char *payload, struct as_buf *out,
                            struct as_buf *names)
{
    struct canonical_header headers[AS_TALK_HEADERS_MAX];
    struct canonical_url parts;
    canonical_split(talk->request.url, &parts);
    as_buf_printf(out, "%s\n%.*s%s\n", talk->request.method, (int)parts.path_size, parts.path,
                  parts.path_size == 0 ? "/" : "");
    canonical_append_query(out, talk, &parts);
    as_buf_append_char(out, '\n');
    const size_t count = canonical_headers(talk, headers);
    for (size_t i = 0; i < count; i++) {
        if (!is_signed(headers[i].name))
            continue;
        as_buf_printf(out, "%s:%s\n", headers[i].name, headers[i].value);
        as_buf_printf(names, "%s%s", names->size ? ";" : "", headers[i].name);
    }
    as_buf_printf(out, "\n%s\n%s", names->data, payload);
}

int as_sign_acs(struct as_talk *talk, const struct as_provider_credentials *credentials,
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
    as_wall_time_print(scope->now, now); /* to the second: 2015-08-30T12:36:00 */
    canonical_sha256(talk->request.body.data, talk->request.body.size, payload);
    as_talk_header(talk, "Host: %s", canonical_host(talk));
    as_talk_header(talk, "x-acs-date: %.19sZ", now);
    as_talk_header(talk, "x-acs-signature-nonce: %s", scope->nonce);
    as_talk_header(talk, "x-acs-content-sha256: %s", payload);
    if (!as_str_is_empty(credentials->token)) {
        as_talk_header(talk, "x-acs-accesskey-id: %s", credentials->key_id);
        as_talk_header(talk, "x-acs-security-token: %s", credentials->token);
    }
    write_canonical(talk, payload, &canonical, &names);
    if (as_buf_check(&canonical) != 0) {
        as_error_set(error, "the request is too large to be signed");
        return -EMSGSIZE;
    }
    canonical_sha256(canonical.data, canonical.size, digest);
    canonical_hmac_hex(credentials->secret, strlen(credentials->secret),
                       as_talk_print(talk, ALGORITHM "\n%s", digest), signature);
    as_talk_header(talk, "Authorization: " ALGORITHM " Credential=%s,SignedHeaders=%s,Signature=%s",
                   credentials->key_id, names.data, signature);
    return 0;
}
