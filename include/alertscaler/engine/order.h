/*
 * The body of an operator's order to the API: {"reason": "the big move", "for": "1h", "replicas":
 * 5, "force": true}.
 */
#ifndef ALERTSCALER_ENGINE_ORDER_H
#define ALERTSCALER_ENGINE_ORDER_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/decide/order.h>

#define AS_ORDER_BODY_MAX ((size_t)16 * 1024)

struct as_order_document { /* owns its texts */
    struct as_order order;
    char reason[AS_ORDER_REASON_MAX];
};

/*
 * Fills `kind`, `reason`, `for_us`, `replicas` and `force` of the order; the caller fills the rest.
 * Errors: a member that the kind does not allow; a reason that is empty or too long, or missing
 * unless the order approves or denies. 0; -EBADMSG with an error for the client.
 */
int as_order_decode(const char *json, size_t size, enum as_order_kind kind,
                    struct as_order_document *document_out, struct as_error *error) AS_MUST_USE;

#endif
