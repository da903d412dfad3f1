/*
 * IP addresses of peers, and ranges of them in the notation of CIDR. An IPv4 address is the same as
 * its IPv6 form (::ffff:192.0.2.1).
 */
#ifndef ALERTSCALER_BASE_ADDRESS_H
#define ALERTSCALER_BASE_ADDRESS_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>

struct as_address_range {
    unsigned char bytes[16]; /* network byte order */
    unsigned bits;           /* that an address of the range has in common with `bytes` */
};

/* "192.0.2.0/24", "2001:db8::/32", or one address. False: it is neither, or has bits behind the
 * prefix. */
bool as_address_range_parse(const char *text, struct as_address_range *range_out) AS_MUST_USE;

/* Whether a peer is in the range; `remote` is "ADDRESS:PORT" or "[ADDRESS]:PORT". */
bool as_address_range_has(const struct as_address_range *range, const char *remote) AS_MUST_USE;

/* Whether a peer is this machine: 127.0.0.0/8, ::1. */
bool as_address_is_loopback(const char *remote) AS_MUST_USE;

#endif
