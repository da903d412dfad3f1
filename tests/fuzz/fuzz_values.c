/*
 * Any text as each of the small values in files, answers and options: times, durations, numbers,
 * sizes, percentages, quantities, external URLs. A value that was read and printed reads back as
 * the same; nothing is accepted that libc or strict rules refuse.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>
#include <alertscaler/rules/external_url.h>

#include "fuzz.h"

static void check_time(const char *text, size_t size)
{
    as_wall_time time, again;
    char printed[AS_RFC3339_SIZE], brief[AS_RFC3339_SIZE];

    if (as_wall_time_parse(text, size, &time) != 0)
        return;
    as_wall_time_print(time, printed);
    as_wall_time_print_short(time, brief);
    FUZZ_CHECK(strlen(printed) == strlen("2026-11-20T10:00:00.000000Z"));
    /* An offset may lead into the years 0 and 10000, which do not print as they are. */
    if (time.us >= INT64_C(-62135596800000000) && time.us < INT64_C(253402300800000000)) {
        FUZZ_CHECK(as_wall_time_parse(printed, strlen(printed), &again) == 0);
        FUZZ_CHECK(again.us == time.us);
        FUZZ_CHECK(as_wall_time_parse(brief, strlen(brief), &again) == 0 && again.us == time.us);
    }
}

static void check_duration(const char *text)
{
    struct as_error error = AS_ERROR_INIT;
    char printed[AS_DURATION_SIZE];
    int64_t us, again;
    const int r = as_duration_parse(text, &us, &error);

    FUZZ_CHECK(r == 0 || ((r == -EINVAL || r == -ERANGE) && *error.text));
    if (r != 0)
        return;
    FUZZ_CHECK(us >= 0 && us <= 100 * 366 * AS_US_PER_DAY);
    as_duration_print(us, printed);
    FUZZ_CHECK(as_duration_parse(printed, &again, &error) == 0 && again == us);
}

static void check_integer(const char *text, size_t size)
{
    char printed[AS_NUMBER_SIZE];
    int64_t number, again;
    uint64_t hex;

    if (as_number_parse_i64(text, size, &number) == 0) {
        const size_t length = as_number_print_i64(number, printed);
        FUZZ_CHECK(as_number_parse_i64(printed, length, &again) == 0 && again == number);
    }
    if (as_number_parse_u64_hex(text, size, &hex) == 0)
        FUZZ_CHECK(size >= 1 && size <= 16 && strtoull(text, NULL, 16) == hex);
}

static void check_double(const char *text, size_t size)
{
    char printed[AS_NUMBER_SIZE];
    double number, again;

    if (as_number_parse_double(text, size, &number) != 0)
        return;
    FUZZ_CHECK(isfinite(number) && strtod(text, NULL) == number);
    as_number_print_double(number, printed);
    FUZZ_CHECK(as_number_parse_double(printed, strlen(printed), &again) == 0);
    FUZZ_CHECK(memcmp(&again, &number, sizeof(number)) == 0 || (number == 0 && again == 0));
}

static void check_units(const char *text, size_t size)
{
    uint64_t bytes;
    int64_t percent;
    double quantity;

    if (as_number_parse_size(text, &bytes) == 0)
        FUZZ_CHECK(*text >= '0' && *text <= '9');
    if (as_number_parse_percent(text, &percent) == 0)
        FUZZ_CHECK(percent >= 0 && text[strlen(text) - 1] == '%');
    if (as_quantity_parse(text, size, &quantity) == 0)
        FUZZ_CHECK(size <= AS_QUANTITY_MAX && quantity >= 0 && quantity <= 0x1p63);
}

static void check_external_url(const char *text)
{
    struct as_external_url url, again;
    struct as_error error = AS_ERROR_INIT;

    if (as_external_url_parse(text, &url, &error) != 0) {
        FUZZ_CHECK(*error.text);
        return;
    }
    FUZZ_CHECK(as_str_starts_with(url.base, url.origin));
    FUZZ_CHECK(as_str_is_visible(url.base, strlen(url.base)) && !strpbrk(url.base, "\"'<>@%?#"));
    FUZZ_CHECK(as_external_url_parse(url.base, &again, &error) == 0);
    FUZZ_CHECK(strcmp(again.base, url.base) == 0 && strcmp(again.origin, url.origin) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AS_CLEANUP(as_free_p) char *text = as_xstrndup((const char *)data, size);
    const size_t length = strlen(text);

    check_time(text, length);
    check_duration(text);
    check_integer(text, length);
    check_double(text, length);
    check_units(text, length);
    check_external_url(text);
    FUZZ_CHECK(as_str_cut_utf8(text, length, 7) <= 7);
    return 0;
}
