/*
 * Where a URL leads, and whether a secret may go there: not a whole parser, but it takes nothing
 * for a host that another parser might see otherwise ("http://127.0.0.1@example.org").
 */
#ifndef ALERTSCALER_BASE_URL_H
#define ALERTSCALER_BASE_URL_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>

#define AS_URL_HOST_SIZE 256 /* with NUL */

/* The host of an http or https URL, without port and brackets, in small letters. False where there
 * is none to be relied on: another scheme, a name or password before it, a port that is none. */
bool as_url_take_host(const char *url, char host_out[AS_URL_HOST_SIZE]) AS_MUST_USE;

/* Whether what is sent there is read by nobody on the way: https, or this machine itself
 * (localhost, 127.0.0.0/8, ::1). */
bool as_url_is_private(const char *url) AS_MUST_USE;

/* The same, or a link-local address: those of the services that clouds give their machines. */
bool as_url_is_near(const char *url) AS_MUST_USE;

/* The one spelling of all http and https URLs that lead to the same place, by RFC 3986 (6.2.2,
 * 6.2.3): scheme and host in small letters, no default port, no dot segments, `%7e` as `~`, `%2f`
 * as
 * `%2F`, what may not stand in a URL as `%..`; and without what no server sees or tells apart: a
 * fragment, and slashes at the path's end. False, and nothing appended, where it is no such URL. */
bool as_url_append_normal(const char *url, struct as_buf *out) AS_MUST_USE;

#endif
