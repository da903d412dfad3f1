/*
 * Kubernetes resource quantities, and units that sizes are counted in.
 */
#ifndef ALERTSCALER_BASE_QUANTITY_H
#define ALERTSCALER_BASE_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

#define AS_QUANTITY_MAX 64 /* bytes; the API server writes about twenty */

/*
 * Parses a quantity into base units (cores, bytes): "250m", "1", "1.5", "1Gi", "100k", "1e3", "5n".
 * The grammar is that of k8s.io/apimachinery's resource.Quantity, but negative quantities are
 * errors. Values above 2^63-1 become 2^63-1. 0 or -EINVAL.
 */
int as_quantity_parse(const char *text, size_t size, double *out) AS_MUST_USE;

#define AS_QUANTITY_SCALED_MAX ((int64_t)1 << 62)

/*
 * The same grammar, in whole units of 10^-scale (scale 3: millicores; 0: bytes), exactly: "1.0001"
 * with scale 3 is 1000, or 1001 where `round_up`. `scale` is 0 or more. Values above
 * AS_QUANTITY_SCALED_MAX become it. 0 or -EINVAL.
 */
int as_quantity_parse_scaled(const char *text, size_t size, int scale, bool round_up,
                             int64_t *out) AS_MUST_USE;

/*
 * A unit that sizes are counted in: a Kubernetes quantity above 0 ("1Gi", "100m", "256"). A size is
 * amount / unit, rounded up; an amount is size x unit, in the unit's own notation ("40Gi").
 */

#define AS_UNIT_SIZE   24 /* bytes of a unit's text, with NUL */
#define AS_AMOUNT_SIZE 48 /* room for the text of any amount */

struct as_unit {
    char text[AS_UNIT_SIZE]; /* as written; "": no unit, amounts are integers */
    int64_t amount;          /* in units of 10^-scale; exact */
    int scale;
};

#define AS_UNIT_NONE ((struct as_unit){.amount = 1})

/* 0, or -EINVAL with what is expected: no quantity, zero, finer than 10^-9, too large, too long. */
int as_unit_parse(const char *text, struct as_unit *unit_out, struct as_error *error) AS_MUST_USE;

static inline bool as_unit_is_none(const struct as_unit *unit)
{
    return unit->text[0] == '\0';
}

/* The size of an amount. Without a unit the amount is an integer, else a quantity. 0; -EINVAL: not
 * such an amount; -ERANGE: negative, or more than 2^31-1 units. */
int as_unit_count(const struct as_unit *unit, const char *amount, size_t size,
                  int32_t *count_out) AS_MUST_USE;

/* Whether an amount of so many units is an integer that as_unit_count can read. */
bool as_unit_is_countable(const struct as_unit *unit, int32_t count) AS_MUST_USE;

/* "40Gi"; without a unit "40". `count` is 0 or more. */
void as_unit_print(const struct as_unit *unit, int32_t count, char text_out[AS_AMOUNT_SIZE]);

/* What people read: "40 (40Gi)"; only "40" where the amount is the same number. `unit` is a unit's
 * text as above; "" or NULL, or text that is no unit: no amount. */
#define AS_SIZE_TEXT_SIZE (AS_AMOUNT_SIZE + 24)
const char *as_unit_print_size(const char *unit, int32_t count, char text_out[AS_SIZE_TEXT_SIZE]);

#endif
