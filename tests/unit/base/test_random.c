/*
 * Promises: the sequence is the published one for a seed, everywhere; bounded numbers are fair;
 * ULIDs sort by time.
 */
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/random.h>

/* From the authors' reference code, with state 1, 2, 3, 4. */
Test(random, xoshiro_is_the_published_sequence)
{
    static const uint64_t expected[] = {
        11520,
        0,
        1509978240,
        UINT64_C(1215971899390074240),
        UINT64_C(1216172134540287360),
        UINT64_C(607988272756665600),
        UINT64_C(16172922978634559625),
        UINT64_C(8476171486693032832),
        UINT64_C(10595114339597558777),
        UINT64_C(2904607092377533576),
    };
    struct as_random random = {.state = {1, 2, 3, 4}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(expected); i++)
        cr_expect_eq(as_random_get(&random), expected[i], "number %zu", i);
}

Test(random, the_seed_is_spread_by_splitmix64)
{
    struct as_random random;
    as_random_init(&random, 1234567);
    cr_expect_eq(random.state[0], UINT64_C(6457827717110365317));
    cr_expect_eq(random.state[1], UINT64_C(3203168211198807973));
    cr_expect_eq(random.state[2], UINT64_C(9817491932198370423));
    cr_expect_eq(random.state[3], UINT64_C(4593380528125082431));
}

Test(random, bounded_numbers_are_fair)
{
    struct as_random random;
    unsigned counts[7] = {0};
    as_random_init(&random, 42);
    for (int i = 0; i < 70000; i++)
        counts[as_random_get_below(&random, 7)]++;
    for (size_t i = 0; i < 7; i++)
        cr_expect(counts[i] > 9500 && counts[i] < 10500, "%zu: %u", i, counts[i]);
    cr_expect_eq(as_random_get_below(&random, 1), 0);
    /* Three quarters of 2^64: a plain remainder would put half of the numbers in the first third.
     */
    uint64_t third = UINT64_C(1) << 62;
    unsigned in_first = 0;
    for (int i = 0; i < 30000; i++) {
        uint64_t number = as_random_get_below(&random, 3 * third);
        cr_assert_lt(number, 3 * third);
        in_first += number < third;
    }
    cr_expect(in_first > 9500 && in_first < 10500, "%u", in_first);
}

Test(random, ulid_is_time_then_randomness)
{
    struct as_random random;
    char text[AS_ULID_SIZE], again[AS_ULID_SIZE];
    as_random_init(&random, 1);
    /* the time of the example in the specification */
    as_ulid_print((as_wall_time){INT64_C(1469918176385999)}, &random, text);
    cr_expect_eq(strlen(text), 26);
    cr_expect_eq(memcmp(text, "01ARYZ6S41", 10), 0, "%s", text);
    cr_expect_eq(strspn(text, "0123456789ABCDEFGHJKMNPQRSTVWXYZ"), 26);
    as_ulid_print((as_wall_time){INT64_C(1469918176385000)}, &random, again);
    cr_expect_eq(memcmp(text, again, 10), 0);
    cr_expect_str_neq(text, again);
    as_ulid_print((as_wall_time){INT64_C(1469918176386000)}, &random, again);
    cr_expect_lt(strcmp(text, again), 0);
    as_ulid_print((as_wall_time){-1}, &random, text);
    cr_expect_eq(memcmp(text, "0000000000", 10), 0);
}

/* All 80 bits vary: no digit of the random part is ever constant. */
Test(random, ulid_uses_all_its_randomness)
{
    struct as_random random;
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    unsigned seen[26] = {0};
    as_random_init(&random, 9);
    for (int i = 0; i < 1000; i++) {
        char text[AS_ULID_SIZE];
        as_ulid_print((as_wall_time){0}, &random, text);
        for (size_t j = 0; j < 26; j++)
            seen[j] |= 1u << (strchr(digits, text[j]) - digits);
    }
    for (size_t j = 10; j < 26; j++)
        cr_expect_eq(seen[j], UINT32_MAX, "digit %zu: %08x", j, seen[j]);
}
