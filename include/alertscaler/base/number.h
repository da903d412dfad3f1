/*
 * Strict numbers: the whole text must be one number in the one accepted form. No leading '+', no
 * white space, no hex, no '_', no ".5", no "5.". All return 0, -EINVAL (not a number of that kind)
 * or -ERANGE, and leave *out alone on failure.
 */
#ifndef ALERTSCALER_BASE_NUMBER_H
#define ALERTSCALER_BASE_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>

int as_number_parse_i64(const char *text, size_t size, int64_t *out) AS_MUST_USE;
int as_number_parse_u64_hex(const char *text, size_t size,
                            uint64_t *out) AS_MUST_USE; /* 1-16 digits */
int as_number_parse_double(const char *text, size_t size, double *out) AS_MUST_USE; /* finite */
int as_number_parse_size(const char *text,
                         uint64_t *bytes_out) AS_MUST_USE; /* "512", "16MiB", "1GB" */

/* "50%", "12.5%" (at most three decimals) as thousandths of a percent: 50000, 12500. */
int as_number_parse_percent(const char *text, int64_t *milli_percent_out) AS_MUST_USE;

#define AS_NUMBER_SIZE 40 /* room for a number's text */

/* Returns the size of the text. */
size_t as_number_print_i64(int64_t number, char text_out[AS_NUMBER_SIZE]);

/* The shortest decimal text that reads back as the same double ("0.1", "420", "1e+100"). */
void as_number_print_double(double number, char text_out[AS_NUMBER_SIZE]);

#endif
