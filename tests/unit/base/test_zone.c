/*
 * Promises: names lead nowhere but into tzdata; a file is read as RFC 9636 says, or refused with a
 * reason; wall times that do not exist, or twice, are found as the header says.
 * tests/property/zone_property.py compares all zones with Python's.
 */
#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/zone.h>

#define H 3600

/* A file of version 2 with one type, UTC+1, no changes, and this footer. */
static size_t make_file(const char *footer, char file[256])
{
    static const char header[44] = "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                                   "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4";
    static const char block[] = "\0\0\x0e\x10\0\0CET";
    size_t size = 0;
    for (int i = 0; i < 2; i++) {
        memcpy(file + size, header, sizeof(header));
        memcpy(file + size + sizeof(header), block, sizeof(block));
        size += sizeof(header) + sizeof(block);
    }
    memcpy(file + size, footer, strlen(footer));
    return size + strlen(footer);
}

static struct as_zone *open_zone(const char *name)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_zone *zone = NULL;
    cr_assert_eq(as_zone_open(name, &zone, &error), 0, "%s", error.text);
    return zone;
}

Test(zone, names_lead_only_into_tzdata)
{
    static const char *const good[] = {"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires",
                                       "Etc/GMT+5", "America/Port-au-Prince"};
    static const char *const bad[] = {
        "",
        "/",
        "/etc/passwd",
        "../passwd",
        "Europe/../Berlin",
        "Europe//Berlin",
        "Europe/",
        "Europe/Berlin ",
        "zone.tab",
        "Europe\\Berlin",
        "Europe/B\xc3\xa9rlin",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(good); i++)
        cr_expect(as_zone_is_name(good[i]), "%s", good[i]);
    for (size_t i = 0; i < AS_ARRAY_SIZE(bad); i++) {
        struct as_error error = AS_ERROR_INIT;
        struct as_zone *zone = NULL;
        cr_expect_not(as_zone_is_name(bad[i]), "%s", bad[i]);
        cr_expect_eq(as_zone_open(bad[i], &zone, &error), -EINVAL);
        cr_expect(*error.text);
    }
}

Test(zone, what_is_no_zone_is_refused_with_a_reason)
{
    static const struct {
        const char *name, *reason;
    } rows[] = {
        {"Europe/Berlim", "there is no time zone \"Europe/Berlim\""},
        {"Europe", "there is no time zone \"Europe\""},
        {"leapseconds", "no TZif file"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_error error = AS_ERROR_INIT;
        struct as_zone *zone = NULL;
        cr_expect_lt(as_zone_open(rows[i].name, &zone, &error), 0);
        cr_expect(strstr(error.text, rows[i].reason), "%s: %s", rows[i].name, error.text);
    }
}

Test(zone, footers_are_rules_of_posix_or_refused)
{
    static const char *const good[] = {"\n\n",
                                       "\nCET-1\n",
                                       "\n<+0330>-3:30\n",
                                       "\nCET-1CEST,M3.5.0,M10.5.0/3\n",
                                       "\nEST5EDT4,0/0,J365/25\n",
                                       "\nIST-1GMT0,M10.5.0,M3.5.0/1\n",
                                       "\nAAA12:30:15BBB,J60,300/-167\n"};
    static const char *const bad[] = {"",
                                      "\n",
                                      "CET-1\n",
                                      "\nCET\n",
                                      "\nCE-1\n",
                                      "\nCET-25\n",
                                      "\nCET-1CEST\n",
                                      "\nCET-1CEST,M3.5.0\n",
                                      "\n<+03-3\n",
                                      "\nCET-1CEST,M13.5.0,M10.5.0\n",
                                      "\nCET-1CEST,M3.6.0,M10.5.0\n",
                                      "\nCET-1CEST,M3.5.7,M10.5.0\n",
                                      "\nCET-1CEST,J0,J10\n",
                                      "\nCET-1CEST,366,J10\n",
                                      "\nCET-1CEST,M3.5.0/168,M10.5.0\n",
                                      "\nCET-1CEST,M3.5.0,M10.5.0x\n",
                                      "\nCET-1:60\n"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(good) + AS_ARRAY_SIZE(bad); i++) {
        const bool is_good = i < AS_ARRAY_SIZE(good);
        const char *footer = is_good ? good[i] : bad[i - AS_ARRAY_SIZE(good)];
        struct as_error error = AS_ERROR_INIT;
        struct as_zone *zone = NULL;
        char file[256];
        const size_t size = make_file(footer, file);
        cr_expect_eq(as_zone_parse(file, size, &zone, &error), is_good ? 0 : -EBADMSG, "%s: %s",
                     footer, error.text);
        cr_expect(is_good || *error.text);
        as_zone_free(zone);
    }
}

Test(zone, files_are_checked)
{
    static const struct {
        size_t at;
        char byte;
        const char *reason;
    } rows[] = {
        {0, 'X', "no TZif file"},
        {4, '1', "unknown version"},
        {31, 1, "leap seconds"},
        {54 + 31, 1, "leap seconds"},
        {54 + 38, 1, "too many"},
        {54 + 39, 0, "no type"},
        {54 + 23, 2, "contradict"},
        {54 + 35, 1, "ends too early"},
        {54 + 44, 0x7f, "more than a day"},
        {54 + 39, 99, "ends too early"},
    };
    char file[256];
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_error error = AS_ERROR_INIT;
        struct as_zone *zone = NULL;
        const size_t size = make_file("\n\n", file);
        file[rows[i].at] = rows[i].byte;
        cr_expect_eq(as_zone_parse(file, size, &zone, &error), -EBADMSG, "row %zu", i);
        cr_expect(strstr(error.text, rows[i].reason), "row %zu: %s", i, error.text);
    }
    const size_t size = make_file("\nCET-1\n", file);
    for (size_t cut = 0; cut < size; cut++) {
        struct as_error error = AS_ERROR_INIT;
        struct as_zone *zone = NULL;
        AS_CLEANUP(as_free_p) char *exact = as_xmalloc(cut + 1);
        memcpy(exact, file, cut);
        cr_expect_eq(as_zone_parse(exact, cut, &zone, &error), -EBADMSG, "%zu bytes", cut);
    }
}

Test(zone, the_footer_counts_after_the_last_change)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_zone *zone = NULL;
    char file[256];
    const size_t size = make_file("\nCET-1CEST,M3.5.0,M10.5.0/3\n", file);
    cr_assert_eq(as_zone_parse(file, size, &zone, &error), 0);
    cr_expect_eq(as_zone_get_offset(zone, INT64_C(1774746000) - 1), H); /* 2026-03-29T01:00:00Z */
    cr_expect_eq(as_zone_get_offset(zone, INT64_C(1774746000)), 2 * H);
    cr_expect_eq(as_zone_get_offset(zone, INT64_C(1792890000) - 1), 2 * H); /* 2026-10-25 */
    cr_expect_eq(as_zone_get_offset(zone, INT64_C(1792890000)), H);
    int64_t change;
    cr_assert(as_zone_find_change(zone, 0, &change));
    cr_assert(as_zone_find_change(zone, INT64_C(1774746000), &change));
    cr_expect_eq(change, INT64_C(1792890000));
    cr_expect_not(as_zone_find_change(zone, INT64_MAX, &change));
    cr_expect_not(as_zone_find_change(zone, INT64_MIN / 2, &change));
    as_zone_free(zone);
}

Test(zone, wall_times_that_do_not_exist_or_twice)
{
    AS_CLEANUP(as_zone_free_p) struct as_zone *zone = open_zone("Europe/Berlin");
    const int64_t march = INT64_C(1774746000), october = INT64_C(1792890000);
    /* 02:30 on 2026-03-29 */
    cr_expect_eq(as_zone_find_utc(zone, march + 3 * H / 2, AS_ZONE_FIRST), march);
    cr_expect_eq(as_zone_find_utc(zone, march + 3 * H / 2, AS_ZONE_LAST), march);
    /* 02:30 on 2026-10-25 */
    cr_expect_eq(as_zone_find_utc(zone, october + 3 * H / 2, AS_ZONE_FIRST), october - H / 2);
    cr_expect_eq(as_zone_find_utc(zone, october + 3 * H / 2, AS_ZONE_LAST), october + H / 2);
    cr_expect_str_eq(as_zone_get_name(zone), "Europe/Berlin");
}

Test(zone, a_day_that_does_not_exist)
{
    AS_CLEANUP(as_zone_free_p) struct as_zone *zone = open_zone("Pacific/Apia");
    const int64_t begin = INT64_C(1325239200);         /* 2011-12-30T10:00Z, when the 31st began */
    const int64_t noon = INT64_C(1325203200) + 12 * H; /* the 30th, as local seconds */
    cr_expect_eq(as_zone_find_utc(zone, noon, AS_ZONE_FIRST), begin);
    cr_expect_eq(as_zone_find_utc(zone, noon, AS_ZONE_LAST), begin);
}
