/*
 * What the signatures of the clouds have in common: requests in canonical form, and keyed digests.
 */
#ifndef ALERTSCALER_SRC_CLOUD_CANONICAL_H
#define ALERTSCALER_SRC_CLOUD_CANONICAL_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/cloud/talk.h>

#define CANONICAL_MAX     (2 * AS_TALK_BODY_MAX)
#define CANONICAL_SHA_HEX 65 /* SHA-256 in hexadecimal, with NUL */

struct canonical_url { /* parts of a URL; not NUL-terminated */
    const char *host, *path, *query;
    size_t host_size, path_size, query_size; /* the host with its port; the path may be empty */
};

void canonical_split(const char *url, struct canonical_url *parts_out);

struct canonical_header {
    const char *name;  /* in lower case */
    const char *value; /* trimmed, with single spaces */
};
/* The request's headers in ascending order of names; equal names are joined by commas. */
size_t canonical_headers(struct as_talk *talk,
                         struct canonical_header headers_out[AS_TALK_HEADERS_MAX]);

void canonical_sha256(const void *data, size_t size, char hex_out[CANONICAL_SHA_HEX]);
/* HMAC-SHA256; key_size may be 0. */
void canonical_hmac_hex(const void *key, size_t key_size, const char *text,
                        char hex_out[CANONICAL_SHA_HEX]);

#endif
