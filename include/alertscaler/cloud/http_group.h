/*
 * The documents of the generic HTTP node group: answer of `GET` (only size is required), body of
 * `PUT`. The protocol is in docs/targets.md.
 *
 *   {"size": 4, "min": 1, "max": 10, "in_progress": false, "etag": "v7", "removes_by_name": true}
 *   {"size": 6, "observed": 4}
 *   {"size": 3, "observed": 4, "remove": ["node-a"]}
 */
#ifndef ALERTSCALER_CLOUD_HTTP_GROUP_H
#define ALERTSCALER_CLOUD_HTTP_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/decide/observation.h>

struct as_http_group {
    int32_t size;
    int32_t min, max; /* -1: not given */
    bool in_progress;
    bool removes_by_name;       /* it removes exactly the nodes that a change names */
    char etag[AS_VERSION_SIZE]; /* "": not given */
};

/* 0, or -EBADMSG with an error that names the field. Unknown fields are ignored. */
int as_http_group_decode(const char *json, size_t size, struct as_http_group *group_out,
                         struct as_error *error) AS_MUST_USE;

void as_http_group_encode_change(int32_t size, int32_t observed, struct as_buf *out);

/* The `message` or `error` of an error document, "" where there is none: what to tell a person. */
void as_http_group_decode_message(const char *json, size_t size, char message_out[AS_MESSAGE_SIZE]);

/* Whether it fits into a header line unchanged: printable ASCII, not too long. */
bool as_http_group_etag_is_valid(const char *etag) AS_MUST_USE;

#endif
