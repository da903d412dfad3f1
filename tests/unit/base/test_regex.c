/*
 * Promises: anchored, UTF-8, with RE2's language; text from outside can neither stall nor exhaust
 * the process.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/regex.h>

static struct as_regex *compile(const char *pattern)
{
    struct as_regex *regex = NULL;
    struct as_error error = AS_ERROR_INIT;
    int result = as_regex_new(pattern, &regex, &error);
    cr_assert_eq(result, 0, "%s: %s", pattern, error.text);
    return regex;
}

Test(regex, matches_the_whole_text)
{
    static const struct {
        const char *pattern, *text;
        bool matches;
    } table[] = {
        {"", "", true},
        {"", "x", false},
        {"shop", "shop", true},
        {"shop", "shop2", false},
        {"shop", "a shop", false},
        {"shop", "shop\n", false},
        {"shop$", "shop\n", false},
        {"^shop$", "shop", true},
        {"a|ab", "ab", true},
        {"a|b", "ab", false},
        {"shop-.*|cart", "cart", true},
        {"shop-.*|cart", "shop-", true},
        {".*", "", true},
        {".+", "a\nb", true},
        {"a.c", "a\nc", true},
        {"a.c",
         "a\xe2\x82\xac"
         "c",
         true},
        {"a..c",
         "a\xe2\x82\xac"
         "c",
         false},
        {"[\xc3\xa4\xc3\xb6]", "\xc3\xb6", true},
        {"(?i)CHECKOUT", "checkout", true},
        {"(?i:c)heckout", "Checkout", true},
        {"checkout", "Checkout", false},
        {"(?P<team>a+)-(?<other>b+)", "aa-b", true},
        {"(?:ab){2,3}", "ababab", true},
        {"(?:ab){2,3}", "ab", false},
        {"a{2}", "aa", true},
        {"a{,2}", "a{,2}", true},
        {"x{}+", "x{}}", true},
        {"\\d+\\.\\d", "12.5", true},
        {"\\d", "\xd9\xa1", false}, /* ASCII digits alone, as in RE2 */
        {"\\w", "\xc3\xa4", false},
        {"\\pL+", "\xc3\xa4x", true},
        {"\\p{Greek}", "\xce\xb1", true},
        {"\\x{20AC}", "\xe2\x82\xac", true},
        {"[]a]+", "]a", true},
        {"[^]a]", "b", true},
        {"[[:alpha:]_]+", "a_B", true},
        {"[\\]\\\\]+", "]\\", true},
        {"[(?=*+]+", "(?=*+", true},
        {"\\Qa++(?=\\1\\E", "a++(?=\\1", true},
        {"\\(?=a", "(=a", true},
        {"a\\++", "a++", true},
        {"\\Aa\\z", "a", true},
        {"node-\\b.*", "node-1", true},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(table); i++) {
        AS_CLEANUP(as_regex_free_p) struct as_regex *regex = compile(table[i].pattern);
        cr_expect_eq(as_regex_match(regex, table[i].text), table[i].matches, "%s on \"%s\"",
                     table[i].pattern, table[i].text);
    }
}

Test(regex, what_re2_does_not_have_is_refused_by_name)
{
    static const struct {
        const char *pattern, *offset, *reason;
    } table[] = {
        {"(a)\\1", "3", "back-reference"},
        {"(?P<n>a)\\k<n>", "8", "back-reference"},
        {"(?P<n>a)\\k{n}", "8", "back-reference"},
        {"(a)\\g1", "3", "back-reference"},
        {"(a)\\g{-1}", "3", "back-reference"},
        {"(?P<n>a)(?P=n)", "8", "back-reference"},
        {"x(?=a).", "1", "look-around"},
        {"x(?!a).", "1", "look-around"},
        {"(?<=a)b", "0", "look-around"},
        {"(?<!a)b", "0", "look-around"},
        {"(?>a+)b", "0", "group"},
        {"(?|a|b)", "0", "group"},
        {"(a(?1)?b)", "2", "group"},
        {"(a(?R)?b)", "2", "group"},
        {"(?#comment)", "0", "group"},
        {"(?C1)a", "0", "group"},
        {"(?(1)a|b)", "0", "group"},
        {"(?&n)", "0", "group"},
        {"(?P>n)", "0", "group"},
        {"(?x)a b", "0", "group"},
        {"(?J)a", "0", "group"},
        {"(*UCP)\\w", "0", "verbs"},
        {"a(*ACCEPT)b", "1", "verbs"},
        {"a++", "1", "possessive"},
        {"a*+", "1", "possessive"},
        {"a?+", "1", "possessive"},
        {"a{2,3}+", "1", "possessive"},
        {"(a){2}+", "3", "possessive"},
        {"\\Ka", "0", "escape"},
        {"\\Ga", "0", "escape"},
        {"a\\R", "1", "escape"},
        {"\\X", "0", "escape"},
        {"\\C", "0", "escape"},
        {"\\h", "0", "escape"},
        {"\\Z", "0", "escape"},
        {"[\\b]", "1", "escape"},
        {"[\\1]", "1", "back-reference"},
        {"[a\\h]", "2", "escape"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(table); i++) {
        struct as_regex *regex = NULL;
        struct as_error error = AS_ERROR_INIT;
        char start[64];
        snprintf(start, sizeof(start), "regular expression, offset %s: ", table[i].offset);
        cr_expect_eq(as_regex_new(table[i].pattern, &regex, &error), -EINVAL, "%s",
                     table[i].pattern);
        cr_expect_null(regex);
        cr_expect_eq(strncmp(error.text, start, strlen(start)), 0, "%s: %s", table[i].pattern,
                     error.text);
        cr_expect_not_null(strstr(error.text, table[i].reason), "%s: %s", table[i].pattern,
                           error.text);
        as_regex_free(regex);
    }
}

Test(regex, broken_patterns_name_the_offset)
{
    static const char *const table[] = {
        "(",
        ")",
        "[a",
        "[",
        "[\\",
        "a{2,1}",
        "*a",
        "a**",
        "\\",
        "(?P<n",
        "(?<",
        "(?",
        "\xff",
        "[b-a]",
        "(?P<a>x)(?P<a>y)",
        "\\p{Nonsense}",
        "[[:nonsense:]]",
        "(?i",
        "(?",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(table); i++) {
        struct as_regex *regex = NULL;
        struct as_error error = AS_ERROR_INIT;
        cr_expect_eq(as_regex_new(table[i], &regex, &error), -EINVAL, "%s", table[i]);
        cr_expect_not_null(strstr(error.text, "offset "), "%s: %s", table[i], error.text);
        as_regex_free(regex);
    }
}

Test(regex, pattern_has_a_maximum)
{
    char pattern[AS_REGEX_PATTERN_MAX + 2];
    struct as_regex *regex = NULL;
    memset(pattern, 'a', sizeof(pattern));
    pattern[AS_REGEX_PATTERN_MAX + 1] = '\0';
    cr_expect_eq(as_regex_new(pattern, &regex, NULL), -EINVAL);
    pattern[AS_REGEX_PATTERN_MAX] = '\0';
    cr_expect_eq(as_regex_new(pattern, &regex, NULL), 0);
    cr_expect(as_regex_match(regex, pattern));
    regex = as_regex_free(regex);
    cr_expect_null(regex);
    /* deep nesting and enormous repetition are PCRE2's to refuse, and it does */
    memset(pattern, '(', 2000);
    memset(pattern + 2000, ')', 2000);
    pattern[4000] = '\0';
    cr_expect_eq(as_regex_new(pattern, &regex, NULL), -EINVAL);
    cr_expect_eq(as_regex_new("((((a{900}){900}){900}){900})", &regex, NULL), -EINVAL);
}

Test(regex, text_that_is_not_utf8_never_matches)
{
    static const char *const texts[] = {"\xff", "a\x80", "\xed\xa0\x80", "\xc0\x80", "\xe2\x82"};
    AS_CLEANUP(as_regex_free_p) struct as_regex *regex = compile("(?s).*");
    uint64_t before = as_regex_get_exceeded();
    for (size_t i = 0; i < AS_ARRAY_SIZE(texts); i++)
        cr_expect_not(as_regex_match(regex, texts[i]), "case %zu", i);
    cr_expect_eq(as_regex_get_exceeded(), before, "that is no exceeded limit");
}

/* Each of these takes 2^40 steps or more without a limit: longer than the time-out. */
Test(regex, catastrophic_patterns_end_and_are_counted, .timeout = 20)
{
    static const char *const patterns[] = {
        "(a+)+[bc]", "(a|a)*[bc]", "(a|aa)+[bc]", "(.*)*[bc]", "(a*)*(a*)*[bc]", "(.*a){30}[bc]",
    };
    char text[200];
    memset(text, 'a', sizeof(text));
    memcpy(text + 60, "d", 2);
    for (size_t i = 0; i < AS_ARRAY_SIZE(patterns); i++) {
        AS_CLEANUP(as_regex_free_p) struct as_regex *regex = compile(patterns[i]);
        uint64_t before = as_regex_get_exceeded();
        for (int again = 0; again < 10; again++)
            cr_expect_not(as_regex_match(regex, text), "%s", patterns[i]);
        cr_expect_eq(as_regex_get_exceeded(), before + 10, "%s", patterns[i]);
    }
}

/* More state than JIT's own stack has: the interpreter takes over, the answer stays right. */
Test(regex, long_honest_texts_match)
{
    enum { SIZE = 4000 };
    char text[SIZE + 1];
    for (size_t i = 0; i < SIZE; i++)
        text[i] = "ab"[i % 2];
    text[SIZE] = '\0';
    AS_CLEANUP(as_regex_free_p) struct as_regex *regex = compile("(a|b|(cd))+");
    cr_expect(as_regex_match(regex, text));
    text[SIZE - 1] = 'c';
    cr_expect_not(as_regex_match(regex, text));
}

Test(regex, free_of_nothing)
{
    cr_expect_null(as_regex_free(NULL));
}
