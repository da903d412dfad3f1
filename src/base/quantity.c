/*
 * Kubernetes resource quantities: digits with an optional point, then a suffix: a power of ten (n u
 * m k M G T P E), a power of two (Ki Mi Gi Ti Pi Ei) or a decimal exponent (e3, E-3). For a double
 * the text is rewritten as a JSON number and read by the one number reader, so that "100m" is
 * exactly the double 0.1.
 *
 * Unlike the API server, it does not round up to whole nano-units: a double is exact enough.
 */
#include <alertscaler/base/quantity.h>

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/number.h>

#define LARGEST      0x1p63
#define EXPONENT_MAX 1000

struct suffix {
    const char *text;
    int ten, two; /* exponents */
};

static const struct suffix suffixes[] = {
    {"", 0, 0},   {"m", -3, 0},  {"Mi", 0, 20}, {"Gi", 0, 30}, {"Ki", 0, 10}, {"n", -9, 0},
    {"u", -6, 0}, {"k", 3, 0},   {"M", 6, 0},   {"G", 9, 0},   {"T", 12, 0},  {"P", 15, 0},
    {"E", 18, 0}, {"Ti", 0, 40}, {"Pi", 0, 50}, {"Ei", 0, 60},
};

static size_t count_digits(const char *text, size_t size)
{
    size_t count = 0;
    while (count < size && text[count] >= '0' && text[count] <= '9')
        count++;
    return count;
}

/* "e3", "E+03", "e-12": the text behind the letter. "E" alone is a suffix (exa). */
static bool is_exponent(const char *text, size_t size)
{
    if (size < 2 || (text[0] | 0x20) != 'e')
        return false;
    size_t sign = text[1] == '+' || text[1] == '-';
    size_t digits = count_digits(text + 1 + sign, size - 1 - sign);
    return digits > 0 && 1 + sign + digits == size;
}

static const struct suffix *find_suffix(const char *text, size_t size)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(suffixes); i++)
        if (strlen(suffixes[i].text) == size && memcmp(suffixes[i].text, text, size) == 0)
            return &suffixes[i];
    return NULL;
}

struct parts {                           /* of a text as they stand there */
    const char *whole, *part, *exponent; /* `part`: behind the point */
    size_t whole_size, part_size, exponent_size;
    int ten, two; /* of the suffix, where there is no exponent */
};

static int split(const char *text, size_t size, struct parts *parts_out)
{
    if (size == 0 || size > AS_QUANTITY_MAX)
        return -EINVAL;
    const char *end = text + size, *whole = text + (*text == '+');
    struct parts parts = {.whole = whole, .whole_size = count_digits(whole, (size_t)(end - whole))};
    const char *rest = whole + parts.whole_size;
    if (rest < end && *rest == '.') {
        parts.part = rest + 1;
        parts.part_size = count_digits(parts.part, (size_t)(end - parts.part));
        rest = parts.part + parts.part_size;
    }
    if (parts.whole_size + parts.part_size == 0)
        return -EINVAL;
    const size_t rest_size = (size_t)(end - rest);
    const struct suffix *suffix = find_suffix(rest, rest_size);
    if (suffix) {
        parts.ten = suffix->ten;
        parts.two = suffix->two;
    } else if (is_exponent(rest, rest_size)) {
        parts.exponent = rest + 1;
        parts.exponent_size = rest_size - 1;
    } else {
        return -EINVAL;
    }
    *parts_out = parts;
    return 0;
}

/* In JSON's form: "007." with exponent 3 is "7.0e3". */
static int read_number(const struct parts *parts, double *out)
{
    char text[AS_QUANTITY_MAX + 16], ten[8];
    const char *whole = parts->whole;
    size_t whole_size = parts->whole_size;
    for (; whole_size > 0 && *whole == '0'; whole_size--)
        whole++;
    snprintf(ten, sizeof(ten), "%d", parts->ten);
    int size = snprintf(text, sizeof(text), "%.*s.%.*se%.*s", whole_size ? (int)whole_size : 1,
                        whole_size ? whole : "0", parts->part_size ? (int)parts->part_size : 1,
                        parts->part_size ? parts->part : "0",
                        parts->exponent ? (int)parts->exponent_size : (int)strlen(ten),
                        parts->exponent ? parts->exponent : ten);
    int status = as_number_parse_double(text, (size_t)size, out);
    if (status == -ERANGE)
        *out = LARGEST;
    return status == -ERANGE ? 0 : status;
}

int as_quantity_parse(const char *text, size_t size, double *out)
{
    struct parts parts;
    double number;
    int status = split(text, size, &parts);
    if (status || (status = read_number(&parts, &number)))
        return status;
    number = ldexp(number, parts.two);
    *out = number > LARGEST ? LARGEST : number;
    return 0;
}

/* The power of ten; beyond EXPONENT_MAX it makes no difference. */
static int read_exponent(const struct parts *parts)
{
    const char *text = parts->exponent;
    size_t size = parts->exponent_size;
    int exponent = 0;
    if (!text)
        return parts->ten;
    const bool is_negative = *text == '-', has_sign = is_negative || *text == '+';
    for (size_t i = has_sign; i < size && exponent < EXPONENT_MAX; i++)
        exponent = exponent * 10 + (text[i] - '0');
    return is_negative ? -exponent : exponent;
}

/* a * factor + b, saturating. */
static int64_t multiply_add(int64_t a, int64_t factor, int64_t b)
{
    int64_t sum;
    if (__builtin_mul_overflow(a, factor, &sum) || __builtin_add_overflow(sum, b, &sum) ||
        sum > AS_QUANTITY_SCALED_MAX)
        return AS_QUANTITY_SCALED_MAX;
    return sum;
}

/* As on paper: digits with a point somewhere, whose fraction is multiplied digit by digit. */
int as_quantity_parse_scaled(const char *text, size_t size, int scale, bool round_up, int64_t *out)
{
    struct parts parts;
    int digits[AS_QUANTITY_MAX], count = 0;
    int64_t number = 0;
    int status = split(text, size, &parts);
    if (status)
        return status;
    for (size_t i = 0; i < parts.whole_size; i++)
        digits[count++] = parts.whole[i] - '0';
    for (size_t i = 0; i < parts.part_size; i++)
        digits[count++] = parts.part[i] - '0';
    /* The point stands before digits[point]. Where it stands before the first digit, zeros are
     * missing there; no suffix of a power of two moves it that far. */
    const int point = (int)parts.whole_size + read_exponent(&parts) + scale;
    const int first = point < 0 ? 0 : point < count ? point : count;
    for (int i = 0; i < first; i++)
        number = multiply_add(number, 10, digits[i]);
    for (int i = first; i < point && number > 0 && number < AS_QUANTITY_SCALED_MAX; i++)
        number = multiply_add(number, 10, 0);
    for (int two = parts.two; two > 0; two -= 10) {
        int carry = 0;
        for (int i = count; i-- > first;) {
            carry += digits[i] * 1024;
            digits[i] = carry % 10;
            carry /= 10;
        }
        number = multiply_add(number, 1024, carry);
    }
    for (int i = first; i < count && round_up; i++) {
        if (digits[i] == 0)
            continue;
        number = multiply_add(number, 1, 1);
        break;
    }
    *out = number;
    return 0;
}
