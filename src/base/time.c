/*
 * RFC 3339 and Prometheus durations. Not with timegm and gmtime_r, which read the
 * environment (TZ): the core must not.
 */
#include <alertscaler/base/time.h>

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/zone.h>

#define YEAR_1     INT64_C(-62135596800) /* 0001-01-01T00:00:00Z in seconds since 1970 */
#define YEAR_10000 INT64_C(253402300800)

struct cursor {
    const char *at, *end;
};

static bool take_char(struct cursor *in, char wanted)
{
    if (in->at == in->end || *in->at != wanted)
        return false;
    in->at++;
    return true;
}

/* Exactly `count` digits, as a number of low to high. */
static bool take_digits(struct cursor *in, unsigned count, unsigned low, unsigned high,
                        unsigned *out)
{
    unsigned number = 0;
    for (; count > 0; count--, in->at++) {
        if (in->at == in->end || *in->at < '0' || *in->at > '9')
            return false;
        number = number * 10 + (unsigned)(*in->at - '0');
    }
    *out = number;
    return number >= low && number <= high;
}

/* Up to nine digits behind the point; digits after the sixth are dropped. */
static bool take_fraction(struct cursor *in, int64_t *us_out)
{
    int64_t us = 0, unit = 100000;
    unsigned digit, count = 0;
    while (take_digits(in, 1, 0, 9, &digit)) {
        us += (int64_t)digit * unit;
        unit /= 10;
        count++;
    }
    *us_out = us;
    return count >= 1 && count <= 9;
}

static bool take_offset(struct cursor *in, int64_t *seconds_out)
{
    if (take_char(in, 'Z') || take_char(in, 'z')) {
        *seconds_out = 0;
        return true;
    }
    bool west = take_char(in, '-');
    unsigned hours, minutes;
    if ((!west && !take_char(in, '+')) || !take_digits(in, 2, 0, 23, &hours) ||
        !take_char(in, ':') || !take_digits(in, 2, 0, 59, &minutes))
        return false;
    int64_t seconds = (int64_t)hours * 3600 + (int64_t)minutes * 60;
    *seconds_out = west ? -seconds : seconds;
    return true;
}

int as_wall_time_parse(const char *text, size_t size, as_wall_time *time_out)
{
    struct cursor in = {text, text + size};
    unsigned year, month, day, hour, minute, second;
    int64_t us = 0, offset;
    if (!take_digits(&in, 4, 1, 9999, &year) || !take_char(&in, '-') ||
        !take_digits(&in, 2, 1, 12, &month) || !take_char(&in, '-') ||
        !take_digits(&in, 2, 1, as_calendar_get_month_days(year, month), &day) ||
        !(take_char(&in, 'T') || take_char(&in, 't')) || !take_digits(&in, 2, 0, 23, &hour) ||
        !take_char(&in, ':') || !take_digits(&in, 2, 0, 59, &minute) || !take_char(&in, ':') ||
        !take_digits(&in, 2, 0, 60, &second))
        return -EINVAL;
    if (take_char(&in, '.') && !take_fraction(&in, &us))
        return -EINVAL;
    if (!take_offset(&in, &offset) || in.at != in.end)
        return -EINVAL;
    bool leap_second = second == 60;
    if (leap_second) {
        second = 59;
        us = AS_US_PER_S - 1;
    }
    int64_t days = as_calendar_get_days((struct as_date){year, month, day});
    int64_t seconds =
        days * AS_S_PER_DAY + (int64_t)hour * 3600 + (int64_t)minute * 60 + second - offset;
    /* The offset can move a text of year 1 or 9999 out of the printable range. */
    if (seconds < YEAR_1 || seconds >= YEAR_10000)
        return -EINVAL;
    if (leap_second && (seconds - YEAR_1) % AS_S_PER_DAY != AS_S_PER_DAY - 1)
        return -EINVAL;
    time_out->us = seconds * AS_US_PER_S + us;
    return 0;
}

static char *put_digits(char *at, int64_t number, unsigned count, char behind)
{
    for (unsigned i = count; i-- > 0; number /= 10)
        at[i] = (char)('0' + number % 10);
    at[count] = behind;
    return at + count + 1;
}

/* Written by hand for speed: every alert of every notification has a time in the action log. */
void as_wall_time_print(as_wall_time time, char text_out[AS_RFC3339_SIZE])
{
    int64_t us = time.us;
    if (us < YEAR_1 * AS_US_PER_S)
        us = YEAR_1 * AS_US_PER_S;
    if (us >= YEAR_10000 * AS_US_PER_S)
        us = YEAR_10000 * AS_US_PER_S - 1;
    us -= YEAR_1 * AS_US_PER_S; /* since year 1: no negative remainders */
    struct as_date date = as_calendar_get_date(us / AS_US_PER_DAY + YEAR_1 / AS_S_PER_DAY);
    int64_t of_day = us % AS_US_PER_DAY;
    char *at = put_digits(text_out, date.year, 4, '-');
    at = put_digits(at, date.month, 2, '-');
    at = put_digits(at, date.day, 2, 'T');
    at = put_digits(at, of_day / AS_US_PER_H, 2, ':');
    at = put_digits(at, of_day / AS_US_PER_MIN % 60, 2, ':');
    at = put_digits(at, of_day / AS_US_PER_S % 60, 2, '.');
    at = put_digits(at, of_day % AS_US_PER_S, 6, 'Z');
    *at = '\0';
}

void as_wall_time_print_short(as_wall_time time, char text_out[AS_RFC3339_SIZE])
{
    as_wall_time_print(time, text_out);
    size_t end = strlen(text_out) - 1; /* at the Z */
    while (text_out[end - 1] == '0')
        end--;
    if (text_out[end - 1] == '.')
        end--;
    text_out[end] = 'Z';
    text_out[end + 1] = '\0';
}

/* Prometheus' units, descending; a year has 365 days. */
static const struct unit {
    const char *name;
    int64_t us;
    bool only_whole; /* printed only without a remainder: "90d", not "12w6d" */
} units[] = {
    {"y", 365 * AS_US_PER_DAY, true}, {"w", 7 * AS_US_PER_DAY, true}, {"d", AS_US_PER_DAY, false},
    {"h", AS_US_PER_H, false},        {"m", AS_US_PER_MIN, false},    {"s", AS_US_PER_S, false},
    {"ms", AS_US_PER_MS, false},
};

#define DURATION_MAX (100 * 365 * AS_US_PER_DAY)

static int duration_invalid(const char *text, struct as_error *error)
{
    as_error_set(error, "\"%s\" is not a duration: expected something like 90s, 5m, 1h30m or 1d",
                 text);
    return -EINVAL;
}

static int duration_too_long(const char *text, struct as_error *error)
{
    as_error_set(error, "\"%s\" is too long a duration: at most 100y", text);
    return -ERANGE;
}

int as_duration_parse(const char *text, int64_t *us_out, struct as_error *error)
{
    int64_t total = 0;
    size_t next_unit = 0;
    if (strcmp(text, "0") == 0) {
        *us_out = 0;
        return 0;
    }
    if (*text == '\0')
        return duration_invalid(text, error);
    bool too_long = false; /* reported only if the text is a duration */
    for (const char *at = text; *at;) {
        int64_t number = 0;
        const char *digits = at;
        for (; *at >= '0' && *at <= '9'; at++) {
            if (number <= DURATION_MAX)
                number = number * 10 + (*at - '0');
        }
        size_t unit_size = strspn(at, "ywdhms");
        if (at == digits || unit_size == 0)
            return duration_invalid(text, error);
        size_t i = next_unit;
        while (i < AS_ARRAY_SIZE(units) &&
               (strlen(units[i].name) != unit_size || memcmp(units[i].name, at, unit_size) != 0))
            i++;
        if (i == AS_ARRAY_SIZE(units))
            return duration_invalid(text, error);
        if (__builtin_mul_overflow(number, units[i].us, &number))
            number = INT64_MAX;
        total = as_time_add(total, number);
        too_long = too_long || total > DURATION_MAX;
        at += unit_size;
        next_unit = i + 1;
    }
    if (too_long)
        return duration_too_long(text, error);
    *us_out = total;
    return 0;
}

/* Rounds down to milliseconds: there is no smaller unit. */
void as_duration_print(int64_t us, char text_out[AS_DURATION_SIZE])
{
    uint64_t rest = us < 0 ? -(uint64_t)us : (uint64_t)us;
    rest -= rest % (uint64_t)AS_US_PER_MS;
    if (rest == 0) {
        memcpy(text_out, "0s", sizeof("0s"));
        return;
    }
    size_t size = 0;
    if (us < 0)
        text_out[size++] = '-';
    for (size_t i = 0; i < AS_ARRAY_SIZE(units) && rest > 0; i++) {
        uint64_t unit = (uint64_t)units[i].us, count = rest / unit;
        if (count == 0 || (units[i].only_whole && rest % unit != 0))
            continue;
        rest %= unit;
        size += (size_t)snprintf(text_out + size, AS_DURATION_SIZE - size, "%" PRIu64 "%s", count,
                                 units[i].name);
    }
}

int64_t as_time_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return a < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}
