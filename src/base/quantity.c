/*
 * Kubernetes resource quantities, and the units that sizes are counted in. Values are exact
 * integers where the header says so, else the nearest double. No number here is negative.
 */
#include <alertscaler/base/quantity.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/number.h>

/*
 * Kubernetes resource quantities: digits with an optional point, then a suffix: a power of ten (n u
 * m k M G T P E), a power of two (Ki Mi Gi Ti Pi Ei) or a decimal exponent (e3, E-3). For a double
 * the text is rewritten as a JSON number and read by the one number reader, so that "100m" is
 * exactly the double 0.1.
 *
 * Unlike the API server, it does not round up to whole nano-units: a double is exact enough.
 */

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

/*
 * Units. A unit's text is digits with an optional point,
 * then a suffix. Its digits are multiplied, its suffix stays.
 */

#define DIGITS      "0123456789"
#define DIGITS_MAX  9 /* with the largest size they fit into an int64_t */
#define SCALE_STEP  3
#define SCALE_FINAL 9 /* Kubernetes' finest: nano-units */

static int refuse(struct as_error *error, const char *why)
{
    as_error_set(error, "%s", why);
    return -EINVAL;
}

/* The coarsest scale that holds the unit exactly. -1: none. */
static int find_scale(const char *text, size_t size, int64_t *amount_out)
{
    for (int scale = 0; scale <= SCALE_FINAL; scale += SCALE_STEP) {
        int64_t above;
        if (as_quantity_parse_scaled(text, size, scale, false, amount_out) == 0 &&
            as_quantity_parse_scaled(text, size, scale, true, &above) == 0 && above == *amount_out)
            return scale;
    }
    return -1;
}

static size_t unit_count_digits(const char *text)
{
    const size_t whole = strspn(text, DIGITS);
    return text[whole] == '.' ? whole + strspn(text + whole + 1, DIGITS) : whole;
}

int as_unit_parse(const char *text, struct as_unit *unit_out, struct as_error *error)
{
    const size_t size = strlen(text);
    struct as_unit unit = {.text = ""};
    int64_t amount;
    if (size == 0 || text[0] == '+' || as_quantity_parse_scaled(text, size, 0, true, &amount) != 0)
        return refuse(error, "expected a quantity like 1Gi, 100m or 256");
    if (amount == 0)
        return refuse(error, "a unit of zero counts nothing: expected a quantity above 0");
    if (amount == AS_QUANTITY_SCALED_MAX)
        return refuse(error, "expected a quantity below 2^62");
    if (size >= sizeof(unit.text) || unit_count_digits(text) > DIGITS_MAX)
        return refuse(error, "expected a quantity of at most 9 digits and 23 characters");
    unit.scale = find_scale(text, size, &unit.amount);
    if (unit.scale < 0)
        return refuse(error, "expected a multiple of 1n, which is Kubernetes' finest quantity");
    memcpy(unit.text, text, size + 1);
    *unit_out = unit;
    return 0;
}

int as_unit_count(const struct as_unit *unit, const char *amount, size_t size, int32_t *count_out)
{
    int64_t number = 0;
    const int status = as_unit_is_none(unit)
                           ? as_number_parse_i64(amount, size, &number)
                           : as_quantity_parse_scaled(amount, size, unit->scale, true, &number);
    if (status)
        return status;
    if (number < 0 || number >= AS_QUANTITY_SCALED_MAX)
        return -ERANGE;
    const int64_t count = number / unit->amount + (number % unit->amount != 0);
    if (count > INT32_MAX)
        return -ERANGE;
    *count_out = (int32_t)count;
    return 0;
}

bool as_unit_is_countable(const struct as_unit *unit, int32_t count)
{
    int64_t amount;
    return !__builtin_mul_overflow(unit->amount, (int64_t)count, &amount) &&
           amount < AS_QUANTITY_SCALED_MAX;
}

/* The fraction without zeros at its end, and without a point that has nothing behind it. */
static void print_number(int64_t digits, size_t decimals, const char *suffix,
                         char text_out[AS_AMOUNT_SIZE])
{
    for (; decimals > 0 && digits % 10 == 0; decimals--)
        digits /= 10;
    int64_t power = 1;
    for (size_t i = 0; i < decimals; i++)
        power *= 10;
    if (decimals > 0)
        snprintf(text_out, AS_AMOUNT_SIZE, "%" PRId64 ".%0*" PRId64 "%s", digits / power,
                 (int)decimals, digits % power, suffix);
    else
        snprintf(text_out, AS_AMOUNT_SIZE, "%" PRId64 "%s", digits, suffix);
}

void as_unit_print(const struct as_unit *unit, int32_t count, char text_out[AS_AMOUNT_SIZE])
{
    const char *at = unit->text;
    int64_t digits = as_unit_is_none(unit) ? 1 : 0;
    size_t decimals = 0;
    bool is_behind_point = false;
    for (; *at == '.' || (*at >= '0' && *at <= '9'); at++) {
        if (*at == '.') {
            is_behind_point = true;
            continue;
        }
        digits = digits * 10 + (*at - '0');
        decimals += is_behind_point;
    }
    print_number(digits * count, decimals, at, text_out);
}

const char *as_unit_print_size(const char *unit, int32_t count, char text_out[AS_SIZE_TEXT_SIZE])
{
    struct as_unit parsed = AS_UNIT_NONE;
    char amount[AS_AMOUNT_SIZE], number[16];
    snprintf(number, sizeof(number), "%" PRId32, count);
    const bool has_unit = unit && *unit && as_unit_parse(unit, &parsed, NULL) == 0 && count >= 0;
    if (has_unit)
        as_unit_print(&parsed, count, amount);
    if (has_unit && strcmp(amount, number) != 0)
        snprintf(text_out, AS_SIZE_TEXT_SIZE, "%s (%s)", number, amount);
    else
        snprintf(text_out, AS_SIZE_TEXT_SIZE, "%s", number);
    return text_out;
}
