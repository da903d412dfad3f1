/*
 * Kubernetes resource quantities.
 */
#ifndef ALERTSCALER_BASE_QUANTITY_H
#define ALERTSCALER_BASE_QUANTITY_H

#include <stddef.h>

#include <alertscaler/base/attr.h>

#define AS_QUANTITY_MAX 64 /* bytes; the API server writes about twenty */

/*
 * Parses a quantity into base units (cores, bytes): "250m", "1", "1.5", "1Gi", "100k", "1e3", "5n".
 * The grammar is that of k8s.io/apimachinery's resource.Quantity, but negative quantities are
 * errors. Values above 2^63-1 become 2^63-1. 0 or -EINVAL.
 */
int as_quantity_parse(const char *text, size_t size, double *out) AS_MUST_USE;

#endif
