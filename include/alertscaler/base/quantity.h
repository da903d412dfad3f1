/*
 * Kubernetes resource quantities.
 */
#ifndef ALERTSCALER_BASE_QUANTITY_H
#define ALERTSCALER_BASE_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>

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

#endif
