/*
 * Words of orders.
 */
#include <alertscaler/decide/order.h>

const char *as_order_kind_get_word(enum as_order_kind kind)
{
    static const char *const words[AS_ORDER_KIND_COUNT] = {
        [AS_ORDER_PAUSE] = "pause", [AS_ORDER_RESUME] = "resume", [AS_ORDER_SCALE] = "scale",
        [AS_ORDER_FLOOR] = "floor", [AS_ORDER_UNLOCK] = "unlock", [AS_ORDER_APPROVE] = "approve",
        [AS_ORDER_DENY] = "deny",
    };
    return words[kind];
}

const char *as_order_outcome_get_word(enum as_order_outcome outcome)
{
    static const char *const words[AS_ORDER_OUTCOME_COUNT] = {
        [AS_ORDER_DONE] = "done",
        [AS_ORDER_UNKNOWN_TARGET] = "unknown_target",
        [AS_ORDER_OUT_OF_BOUNDS] = "out_of_bounds",
        [AS_ORDER_NOTHING_TO_DO] = "nothing_to_do",
        [AS_ORDER_REFUSED] = "refused",
        [AS_ORDER_UNKNOWN_REQUEST] = "unknown_request",
    };
    return words[outcome];
}
