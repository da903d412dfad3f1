/*
 * Kubernetes resource quantities: digits with an optional point, then a suffix: a power of ten (n u
 * m k M G T P E), a power of two (Ki Mi Gi Ti Pi Ei) or a decimal exponent (e3, E-3). The text is
 * rewritten as a JSON number and read by the one number reader, so that "100m" is exactly the
 * double 0.1.
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

#define LARGEST 0x1p63

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

/* The parts of a number in JSON's form: "007." with exponent 3 is "7.0e3". */
static int read_number(const char *whole, size_t whole_size, const char *part, size_t part_size,
                       const char *exponent, size_t exponent_size, double *out)
{
    char text[AS_QUANTITY_MAX + 16];
    for (; whole_size > 0 && *whole == '0'; whole_size--)
        whole++;
    int size = snprintf(text, sizeof(text), "%.*s.%.*se%.*s", whole_size ? (int)whole_size : 1,
                        whole_size ? whole : "0", part_size ? (int)part_size : 1,
                        part_size ? part : "0", (int)exponent_size, exponent);
    int status = as_number_parse_double(text, (size_t)size, out);
    if (status == -ERANGE)
        *out = LARGEST;
    return status == -ERANGE ? 0 : status;
}

int as_quantity_parse(const char *text, size_t size, double *out)
{
    if (size == 0 || size > AS_QUANTITY_MAX)
        return -EINVAL;
    const char *end = text + size, *whole = text + (*text == '+');
    size_t whole_size = count_digits(whole, (size_t)(end - whole));
    const char *part = whole + whole_size;
    size_t part_size = 0;
    const char *rest = part;
    if (part < end && *part == '.') {
        part++;
        part_size = count_digits(part, (size_t)(end - part));
        rest = part + part_size;
    }
    if (whole_size + part_size == 0)
        return -EINVAL;

    char ten[8];
    const char *exponent = rest + 1;
    size_t exponent_size = (size_t)(end - rest) - 1;
    const struct suffix *suffix = find_suffix(rest, (size_t)(end - rest));
    if (suffix) {
        exponent_size = (size_t)snprintf(ten, sizeof(ten), "%d", suffix->ten);
        exponent = ten;
    } else if (!is_exponent(rest, (size_t)(end - rest))) {
        return -EINVAL;
    }
    double number;
    int status = read_number(whole, whole_size, part, part_size, exponent, exponent_size, &number);
    if (status)
        return status;
    number = ldexp(number, suffix ? suffix->two : 0);
    *out = number > LARGEST ? LARGEST : number;
    return 0;
}
