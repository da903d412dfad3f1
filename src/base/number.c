/*
 * Strict numbers, in the grammar of JSON (RFC 8259, 6): no leading zeros, which some parsers read
 * as octal. This file checks the text, then the C library converts it. Relies on the locale "C",
 * which the program never changes.
 */
#include <alertscaler/base/number.h>

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOUBLE_TEXT_MAX 800 /* the exact value of any double fits */

static size_t count_digits(const char *text, size_t size)
{
    size_t count = 0;
    while (count < size && text[count] >= '0' && text[count] <= '9')
        count++;
    return count;
}

/* Counts the digits of an integer without superfluous zeros at the start of text, or 0. */
static size_t count_integer(const char *text, size_t size)
{
    size_t count = count_digits(text, size);
    return count > 1 && text[0] == '0' ? 0 : count;
}

/* All `size` bytes must be digits. */
static int parse_digits(const char *text, size_t size, uint64_t *out)
{
    uint64_t number = 0;
    for (size_t i = 0; i < size; i++) {
        if (__builtin_mul_overflow(number, (uint64_t)10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(text[i] - '0'), &number))
            return -ERANGE;
    }
    *out = number;
    return 0;
}

int as_number_parse_i64(const char *text, size_t size, int64_t *out)
{
    bool negative = size > 0 && text[0] == '-';
    text += negative;
    size -= negative;
    if (size == 0 || count_integer(text, size) != size)
        return -EINVAL;
    uint64_t magnitude;
    int status = parse_digits(text, size, &magnitude);
    if (status)
        return status;
    if (magnitude > (uint64_t)INT64_MAX + negative)
        return -ERANGE;
    *out = (int64_t)(negative ? -magnitude : magnitude);
    return 0;
}

int as_number_parse_u64_hex(const char *text, size_t size, uint64_t *out)
{
    uint64_t number = 0;
    if (size == 0)
        return -EINVAL;
    for (size_t i = 0; i < size; i++) {
        char lower = (char)(text[i] | 0x20);
        unsigned digit;
        if (text[i] >= '0' && text[i] <= '9')
            digit = (unsigned)(text[i] - '0');
        else if (lower >= 'a' && lower <= 'f')
            digit = (unsigned)(lower - 'a') + 10;
        else
            return -EINVAL;
        number = number << 4 | digit;
    }
    if (size > 16)
        return -ERANGE;
    *out = number;
    return 0;
}

/* -?int frac? exp? over the whole text */
static bool is_double(const char *text, size_t size)
{
    size_t at = size > 0 && text[0] == '-', digits = count_integer(text + at, size - at);
    if (digits == 0)
        return false;
    at += digits;
    if (at < size && text[at] == '.') {
        digits = count_digits(text + at + 1, size - at - 1);
        if (digits == 0)
            return false;
        at += 1 + digits;
    }
    if (at < size && (text[at] == 'e' || text[at] == 'E')) {
        at++;
        if (at < size && (text[at] == '+' || text[at] == '-'))
            at++;
        digits = count_digits(text + at, size - at);
        if (digits == 0)
            return false;
        at += digits;
    }
    return at == size;
}

/* A number too small for a double is rounded to the nearest double, like all others. */
int as_number_parse_double(const char *text, size_t size, double *out)
{
    char copy[DOUBLE_TEXT_MAX + 1];
    if (!is_double(text, size))
        return -EINVAL;
    if (size > DOUBLE_TEXT_MAX)
        return -ERANGE;
    memcpy(copy, text, size);
    copy[size] = '\0';
    double number = strtod(copy, NULL);
    if (!isfinite(number))
        return -ERANGE;
    *out = number;
    return 0;
}

int as_number_parse_size(const char *text, uint64_t *bytes_out)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } units[] = {
        {"", 1},
        {"B", 1},
        {"kB", UINT64_C(1000)},
        {"KB", UINT64_C(1000)},
        {"MB", UINT64_C(1000000)},
        {"GB", UINT64_C(1000000000)},
        {"TB", UINT64_C(1000000000000)},
        {"KiB", UINT64_C(1) << 10},
        {"MiB", UINT64_C(1) << 20},
        {"GiB", UINT64_C(1) << 30},
        {"TiB", UINT64_C(1) << 40},
    };
    size_t digits = count_integer(text, strlen(text)), i = 0;
    if (digits == 0)
        return -EINVAL;
    while (i < AS_ARRAY_SIZE(units) && strcmp(units[i].name, text + digits) != 0)
        i++;
    if (i == AS_ARRAY_SIZE(units))
        return -EINVAL;
    uint64_t bytes;
    int status = parse_digits(text, digits, &bytes);
    if (status)
        return status;
    if (__builtin_mul_overflow(bytes, units[i].bytes, &bytes))
        return -ERANGE;
    *bytes_out = bytes;
    return 0;
}

int as_number_parse_percent(const char *text, int64_t *milli_percent_out)
{
    size_t size = strlen(text), whole = count_integer(text, size), decimals = 0, end = whole;
    if (whole > 0 && text[whole] == '.') {
        decimals = count_digits(text + whole + 1, size - whole - 1);
        end += 1 + decimals;
        if (decimals == 0 || decimals > 3)
            return -EINVAL;
    }
    if (whole == 0 || strcmp(text + end, "%") != 0)
        return -EINVAL;
    uint64_t number;
    int status = parse_digits(text, whole, &number);
    if (status)
        return status;
    int64_t milli = 0;
    for (size_t i = 1; i <= 3; i++)
        milli = milli * 10 + (i <= decimals ? text[whole + i] - '0' : 0);
    int64_t result;
    if (__builtin_mul_overflow(number, (uint64_t)1000, &result) ||
        __builtin_add_overflow(result, milli, &result))
        return -ERANGE;
    *milli_percent_out = result;
    return 0;
}

size_t as_number_print_i64(int64_t number, char text_out[AS_NUMBER_SIZE])
{
    char digits[AS_NUMBER_SIZE];
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    size_t at = sizeof(digits);
    digits[--at] = '\0';
    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (number < 0)
        digits[--at] = '-';
    memcpy(text_out, digits + at, sizeof(digits) - at);
    return sizeof(digits) - at - 1;
}

/* A whole number of up to DBL_DIG digits; "%.15g" would print exactly its digits. */
static bool is_short_integer(double number)
{
    return fabs(number) < 1e15 && trunc(number) == number && !(number == 0 && signbit(number));
}

/* A decimal text of up to DBL_DIG digits survives the conversion to a normal double and back, so
 * "%.15g" finds every text that short. Only subnormal numbers may have a shorter text. */
void as_number_print_double(double number, char text_out[AS_NUMBER_SIZE])
{
    if (!isfinite(number)) {
        const char *name = isnan(number) ? "NaN" : number < 0 ? "-Inf" : "+Inf";
        memcpy(text_out, name, strlen(name) + 1);
        return;
    }
    if (is_short_integer(number)) {
        (void)as_number_print_i64((int64_t)number, text_out);
        return;
    }
    int digits = fabs(number) < DBL_MIN ? 1 : DBL_DIG;
    do
        snprintf(text_out, AS_NUMBER_SIZE, "%.*g", digits, number);
    while (digits++ < DBL_DECIMAL_DIG && strtod(text_out, NULL) != number);
}
