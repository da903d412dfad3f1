/*
 * Which host a URL leads to, and whether a secret may be sent there. Not a full parser: a URL whose
 * host another parser might read differently ("http://127.0.0.1@example.org") is refused.
 */
#ifndef ALERTSCALER_BASE_URL_H
#define ALERTSCALER_BASE_URL_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>

#define AS_URL_HOST_SIZE 256 /* with NUL */

/* The host of an http or https URL in lower case, without port and brackets. False if the URL has
 * another scheme, a user name or password, or an invalid port. */
bool as_url_take_host(const char *url, char host_out[AS_URL_HOST_SIZE]) AS_MUST_USE;

/* Whether nobody can read on the way what is sent there: https, or this machine (localhost,
 * 127.0.0.0/8, ::1). */
bool as_url_is_private(const char *url) AS_MUST_USE;

/* As as_url_is_private, or a link-local address: the metadata services of clouds. */
bool as_url_is_near(const char *url) AS_MUST_USE;

/* Appends the normal form of an http or https URL (RFC 3986, 6.2.2 and 6.2.3): scheme and host in
 * lower case, no dot at the host's end, no default port, no dot segments, `%7e` as `~`, `%2f` as
 * `%2F`, invalid characters as `%..`, `127.1` and `[::ffff:127.0.0.1]` as `127.0.0.1`. Fragments,
 * slashes in a row and at the path's end, and a `?` without a query are dropped, although RFC 3986
 * keeps the last three: most servers do not tell them apart. The normal form of a normal form is
 * itself.
 * False, with nothing appended, for any other text. */
bool as_url_append_normal(const char *url, struct as_buf *out) AS_MUST_USE;

#endif
