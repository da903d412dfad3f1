/*
 * Units that sizes are counted in: see the header. A unit's text is digits with an optional point,
 * then a suffix. Its digits are multiplied, its suffix stays.
 */
#include <alertscaler/base/unit.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/number.h>
#include <alertscaler/base/quantity.h>

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

static size_t count_digits(const char *text)
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
    if (size >= sizeof(unit.text) || count_digits(text) > DIGITS_MAX)
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
