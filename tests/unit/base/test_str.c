/*
 * Promises: see str.h. Hostile patterns and texts cost no more than their product.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

Test(str, equality_and_prefix)
{
    cr_expect(as_str_equal("a", "a"));
    cr_expect_not(as_str_equal("a", "ab"));
    cr_expect_not(as_str_equal("a", NULL));
    cr_expect_not(as_str_equal(NULL, ""));
    cr_expect(as_str_equal(NULL, NULL));
    cr_expect(as_str_starts_with("abc", ""));
    cr_expect(as_str_starts_with("abc", "ab"));
    cr_expect_not(as_str_starts_with("ab", "abc"));
    cr_expect(as_str_is_empty(NULL) && as_str_is_empty("") && !as_str_is_empty(" "));
}

static size_t encode(unsigned code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = size; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)((0xf00u >> size) | code);
    return size;
}

Test(str, every_code_point_but_surrogates_is_utf8)
{
    for (unsigned code = 0; code <= 0x10ffff; code++) {
        char text[4];
        bool surrogate = code >= 0xd800 && code <= 0xdfff;
        cr_assert_eq(as_str_is_utf8(text, encode(code, text)), !surrogate, "U+%04X", code);
    }
}

Test(str, what_is_not_utf8)
{
    static const char *const table[] = {
        "\x80",
        "\xbf",
        "\xc0\x80",         /* overlong NUL */
        "\xc1\xbf",         /* overlong DEL */
        "\xe0\x9f\xbf",     /* overlong U+07FF */
        "\xf0\x8f\xbf\xbf", /* overlong U+FFFF */
        "\xed\xa0\x80",     /* surrogate */
        "\xf4\x90\x80\x80", /* above U+10FFFF */
        "\xf5\x80\x80\x80",
        "\xff",
        "\xfe",
        "\xc3",
        "\xe2\x82",
        "\xf0\x9f\x98",
        "\xc3(",
        "\xe2(\xa1",
        "\xe2\x82(",
        "\xf0\x9f\x98(",
        "ok\xffok",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(table); i++)
        cr_expect_not(as_str_is_utf8(table[i], strlen(table[i])), "case %zu", i);
    cr_expect(as_str_is_utf8("", 0));
    cr_expect(as_str_is_utf8("a\0b", 3));
    cr_expect_not(as_str_is_utf8("\xc3\xa4", 1), "the second byte is out of bounds");
}

Test(str, cutting_keeps_characters_whole)
{
    static const char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z"; /* 1 2 3 4 1 bytes */
    static const size_t expected[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11, 11};
    for (size_t max = 0; max < AS_ARRAY_SIZE(expected); max++)
        cr_expect_eq(as_str_cut_utf8(text, strlen(text), max), expected[max], "max %zu", max);
    cr_expect_eq(as_str_cut_utf8("\x80\x80\x80\x80\x80\x80", 6, 5), 5, "not UTF-8: cut anyhow");
}

Test(str, others_words_become_one_line_that_fits)
{
    char line[8];
    as_str_copy_line("a\n\tb\x7f\x1f", line, sizeof(line));
    cr_expect_str_eq(line, "a  b  ");
    as_str_copy_line("123456\xe2\x82\xac", line, sizeof(line));
    cr_expect_str_eq(line, "123456");
    as_str_copy_line("1234\xe2\x82\xac", line, sizeof(line));
    cr_expect_str_eq(line, "1234\xe2\x82\xac");
    as_str_copy_line("a\xe2\x82", line, sizeof(line));
    cr_expect_str_eq(line, "a??");
    as_str_copy_line("\xff\xc0\x80"
                     "b",
                     line, sizeof(line));
    cr_expect_str_eq(line, "???b");
    as_str_copy_line("", line, sizeof(line));
    cr_expect_str_eq(line, "");
}

Test(str, glob)
{
    static const struct {
        const char *pattern, *text;
        bool matches;
    } table[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"**", "abc", true},
        {"?", "", false},
        {"?", "a", true},
        {"?", "\xe2\x82\xac", true},
        {"??", "\xe2\x82\xac", false},
        {"abc", "abc", true},
        {"abc", "abcd", false},
        {"abcd", "abc", false},
        {"a*c", "ac", true},
        {"a*c", "abcbc", true},
        {"a*c", "abcb", false},
        {"*-prod", "shop-prod", true},
        {"*-prod", "shop-prod-2", false},
        {"team-?-*", "team-a-checkout", true},
        {"*a*b*c*", "xxaxxbxxcxx", true},
        {"*a*b*c*", "xxcxxbxxaxx", false},
        {"A", "a", false},
        {"[a]", "a", false},
        {"[a]", "[a]", true},
        {"\\*", "*", false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(table); i++)
        cr_expect_eq(as_str_glob(table[i].pattern, table[i].text), table[i].matches,
                     "\"%s\" on \"%s\"", table[i].pattern, table[i].text);
}

/* With recursion this would outlast the universe. */
Test(str, glob_does_not_blow_up, .timeout = 10)
{
    char pattern[401], text[2001];
    for (size_t i = 0; i < sizeof(pattern) - 1; i++)
        pattern[i] = i % 2 ? '*' : 'a';
    pattern[sizeof(pattern) - 2] = 'b';
    pattern[sizeof(pattern) - 1] = '\0';
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    cr_expect_not(as_str_glob(pattern, text));
}

Test(str, distance)
{
    static const struct {
        const char *a, *b;
        unsigned edits;
    } table[] = {
        {"", "", 0},
        {"", "abc", 3},
        {"cooldown", "cooldown", 0},
        {"cooldwn", "cooldown", 1},
        {"cooldowns", "cooldown", 1},
        {"coolbown", "cooldown", 1},
        {"coodlown", "cooldown", 1},
        {"kitten", "sitting", 3},
        {"ca", "abc", 3},
        {"abc", "xyz", 3},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(table); i++) {
        cr_expect_eq(as_str_distance(table[i].a, table[i].b), table[i].edits, "%s, %s", table[i].a,
                     table[i].b);
        cr_expect_eq(as_str_distance(table[i].b, table[i].a), table[i].edits, "%s, %s", table[i].b,
                     table[i].a);
    }
}

Test(str, distance_of_long_words_is_far)
{
    char word[66];
    memset(word, 'x', sizeof(word));
    word[64] = '\0';
    cr_expect_eq(as_str_distance(word, word), 0);
    word[64] = 'x';
    word[65] = '\0';
    cr_expect_eq(as_str_distance(word, word), UINT_MAX);
    cr_expect_eq(as_str_distance("x", word), UINT_MAX);
}

Test(str, constant_time_equality)
{
    cr_expect(as_str_equal_constant_time("secret", "secret", 6));
    cr_expect(as_str_equal_constant_time("", "", 0));
    for (size_t i = 0; i < 6; i++) {
        for (int bit = 1; bit < 256; bit <<= 1) {
            char other[] = "secret";
            other[i] = (char)(other[i] ^ bit);
            cr_assert_not(as_str_equal_constant_time("secret", other, 6));
        }
    }
}
