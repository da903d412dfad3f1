/* Matchers: Alertmanager's syntax and meaning, and errors with their place and cause. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

#include <alertscaler/model/matcher.h>

static const struct {
    const char *text, *name, *value;
    enum as_matcher_op op;
} good[] = {
    /* the four operators, with and without quotes */
    {"foo=bar", "foo", "bar", AS_MATCHER_EQUAL},
    {"foo=\"bar\"", "foo", "bar", AS_MATCHER_EQUAL},
    {"foo!=bar", "foo", "bar", AS_MATCHER_NOT_EQUAL},
    {"foo=~bar.*", "foo", "bar.*", AS_MATCHER_REGEX},
    {"foo!~\"bar.*\"", "foo", "bar.*", AS_MATCHER_NOT_REGEX},
    {"severity=~\"page|critical\"", "severity", "page|critical", AS_MATCHER_REGEX},
    {"statuscode=~\"5..\"", "statuscode", "5..", AS_MATCHER_REGEX},
    {"a:b_1=x", "a:b_1", "x", AS_MATCHER_EQUAL},
    {"foo=\xF0\x9F\x99\x82", "foo", "\xF0\x9F\x99\x82", AS_MATCHER_EQUAL},
    /* white space around the three tokens, and inside a bare value */
    {" \tfoo\n = \t bar baz ", "foo", "bar baz", AS_MATCHER_EQUAL},
    {"foo != \" bar \" ", "foo", " bar ", AS_MATCHER_NOT_EQUAL},
    {"foo =~ x", "foo", "x", AS_MATCHER_REGEX},
    /* the empty value */
    {"foo=", "foo", "", AS_MATCHER_EQUAL},
    {"foo=\"\"", "foo", "", AS_MATCHER_EQUAL},
    {"foo!=\"\"", "foo", "", AS_MATCHER_NOT_EQUAL},
    /* the classic syntax: three escapes, every other backslash is itself */
    {"quote=\"She said: \\\"Hi, ladies!\\\"\"", "quote", "She said: \"Hi, ladies!\"",
     AS_MATCHER_EQUAL},
    {"c!~\"foo,bar\"", "c", "foo,bar", AS_MATCHER_NOT_REGEX},
    {"p=\"C:\\\\dir\\new\\tab\"", "p", "C:\\dir\new\\tab", AS_MATCHER_EQUAL},
    {"foo=\"\\xf0\"", "foo", "\\xf0", AS_MATCHER_EQUAL},
    {"foo=~\"\\d+\\.\"", "foo", "\\d+\\.", AS_MATCHER_REGEX},
    {"foo=\"a\nb\"", "foo", "a\nb", AS_MATCHER_EQUAL},
    {"foo=bar\\n", "foo", "bar\n", AS_MATCHER_EQUAL},
    {"foo=bar\\", "foo", "bar\\", AS_MATCHER_EQUAL},
    {"tricky=~~~", "tricky", "~~", AS_MATCHER_REGEX},
    {"trickier==\\\\=\\=\\\"", "trickier", "=\\=\\=\"", AS_MATCHER_EQUAL},
    {"foo='bar'", "foo", "'bar'", AS_MATCHER_EQUAL},
    {"foo=\"{bar}\"", "foo", "{bar}", AS_MATCHER_EQUAL},
    {"foo=~\"b{2}\"", "foo", "b{2}", AS_MATCHER_REGEX},
    /* the UTF-8 syntax: names in quotes, or bare with other characters */
    {"\"k8s.io/app\"=\"web\"", "k8s.io/app", "web", AS_MATCHER_EQUAL},
    {"k8s.io/app=web", "k8s.io/app", "web", AS_MATCHER_EQUAL},
    {"invalid-name = \"valid label\"", "invalid-name", "valid label", AS_MATCHER_EQUAL},
    {"\"foo\" =~ \"a|b\"", "foo", "a|b", AS_MATCHER_REGEX},
    {"\"foo\"=a|b", "foo", "a|b", AS_MATCHER_EQUAL},
    {"\"foo\"=\"\"", "foo", "", AS_MATCHER_EQUAL},
    {"\"foo\"=\"bar\\t\\\\\\\"\\n\"", "foo", "bar\t\\\"\n", AS_MATCHER_EQUAL},
    {"\"foo\"=\"\\xf0\\x9f\\x99\\x82\"", "foo", "\xF0\x9F\x99\x82", AS_MATCHER_EQUAL},
    {"\"foo\"=\"\\U0001f642\\u00e9\\101\"", "foo",
     "\xF0\x9F\x99\x82\xC3\xA9"
     "A",
     AS_MATCHER_EQUAL},
    {"\"a\\\"b c\"!=\"x\"", "a\"b c", "x", AS_MATCHER_NOT_EQUAL},
    {"\xC3\xA9t\xC3\xA9=1", "\xC3\xA9t\xC3\xA9", "1", AS_MATCHER_EQUAL},
};

Test(matcher, reads_what_alertmanager_reads)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(good); i++) {
        struct as_matcher matcher;
        struct as_error error = AS_ERROR_INIT;
        cr_assert_eq(as_matcher_init(&matcher, good[i].text, &error), 0, "%s: %s", good[i].text,
                     error.text);
        cr_assert_str_eq(matcher.name, good[i].name, "%s: %s", good[i].text, matcher.name);
        cr_assert_str_eq(matcher.value, good[i].value, "%s: %s", good[i].text, matcher.value);
        cr_assert_eq(matcher.op, good[i].op, "%s", good[i].text);
        cr_assert_eq(matcher.regex != NULL,
                     matcher.op == AS_MATCHER_REGEX || matcher.op == AS_MATCHER_NOT_REGEX);
        as_matcher_deinit(&matcher);
    }
}

static const struct {
    const char *text, *error;
} bad[] = {
    {"", "offset 0: expected a label name"},
    {"   ", "offset 0: expected a label name"},
    {"=bar", "offset 0: expected a label name"},
    {",", "offset 0: expected a label name"},
    {"foo", "offset 3: expected one of =, !=, =~, !~ after the label name"},
    {"foo bar", "offset 4: expected one of"},
    {"foo~bar", "offset 3: expected one of"},
    {"foo!bar", "offset 3: expected one of"},
    {"foo:\"bar\"", "offset 4: expected one of"},
    {"{foo=bar}", "offset 0: a matcher stands without braces"},
    {"foo=bar}", "offset 7: a value with braces"},
    {"foo={bar", "offset 4: a value with braces"},
    {"foo=bar,baz=qux", "offset 7: a comma"},
    {"foo=\"bar\",baz=\"qux\"", "offset 9: expected the end behind the closing quote"},
    {"foo=\"bar", "offset 4: the quote opened here is not closed"},
    {"foo=\"bar\\\"", "offset 4: the quote opened here is not closed"},
    {"foo=\"", "offset 4: the quote opened here is not closed"},
    {"foo=bar\"", "offset 7: a double quote inside a bare value"},
    {"foo=b\"ar", "offset 5: a double quote inside a bare value"},
    {"foo=\"b\"ar\"", "offset 7: expected the end behind the closing quote"},
    {"\"foo=\\\"bar\\\"\"", "offset 13: expected one of"},
    {"\"foo\"=", "offset 6: expected a value"},
    {"\"foo\"=a b", "offset 7: a value with this character must stand in quotes"},
    {"\"foo\"=a\\n", "offset 7: a value with this character must stand in quotes"},
    {"\"foo\"=\"bar\\w\"", "offset 10: not a valid escape sequence"},
    {"\"foo\"=\"\\xf0\\x9f\"", "offset 6: the quoted text is not valid UTF-8"},
    {"\"foo\"=\"\\ud800\"", "offset 7: not a valid escape sequence"},
    {"\"foo\"=\"\\U00110000\"", "offset 7: not a valid escape sequence"},
    {"\"foo\"=\"\\x00\"", "offset 7: not a valid escape sequence"},
    {"\"foo\"=\"\\u12\"", "offset 7: not a valid escape sequence"},
    {"\"foo\"=\"\\777\"", "offset 7: not a valid escape sequence"},
    {"\"foo\"=\"a\nb\"", "offset 8: a line break in quotes"},
    {"\"foo\"=\"bar\" x", "offset 11: expected the end"},
    {"\"\"=bar", "offset 0: a label name cannot be empty"},
    {"\"foo", "offset 0: the quote opened here is not closed"},
    {"foo=\xC3", "offset 0: not valid UTF-8"},
    {"foo=~\"invalid[regexp\"", "regular expression, offset"},
    {"foo=~\"(?=x)\"", "look-around is not supported"},
};

Test(matcher, what_is_wrong_is_refused_with_place_and_expectation)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(bad); i++) {
        struct as_matcher matcher = {.name = NULL};
        struct as_error error = AS_ERROR_INIT;
        cr_assert_eq(as_matcher_init(&matcher, bad[i].text, &error), -EINVAL, "%s", bad[i].text);
        cr_assert(strstr(error.text, bad[i].error), "%s: %s", bad[i].text, error.text);
        cr_assert_null(matcher.name, "%s: filled in on failure", bad[i].text);
    }
}

static const struct {
    const char *text, *value;
    bool matches;
} meaning[] = {
    {"a=b", "b", true},          {"a=b", "B", false},
    {"a=b", "", false},          {"a=", "", true},
    {"a=", "x", false},          {"a!=b", "b", false},
    {"a!=b", "", true},          {"a!=\"\"", "", false},
    {"a!=\"\"", "x", true},      {"a=~b|c", "b", true},
    {"a=~b|c", "bc", false},     {"a=~b|c", "xb", false},
    {"a=~b", "bb", false},       {"a=~.*", "", true},
    {"a=~.+", "", false},        {"a=~\".*\"", "x\ny", true},
    {"a=~\"\"", "", true},       {"a=~\"\"", "x", false},
    {"a!~b|c", "b", false},      {"a!~b|c", "bc", true},
    {"a!~.+", "", true},         {"a!~\"|b\"", "", false},
    {"a=~\"(?i)b\"", "B", true}, {"a=~.", "\xC3\xA9", true},
    {"a=~\"b$\"", "b\n", false},
};

Test(matcher, means_what_alertmanager_means)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(meaning); i++) {
        struct as_matcher matcher;
        struct as_labels *labels = NULL;
        const struct as_label pair = {"a", meaning[i].value};
        cr_assert_eq(as_matcher_init(&matcher, meaning[i].text, NULL), 0, "%s", meaning[i].text);
        cr_assert_eq(as_labels_new(&pair, *pair.value ? 1 : 0, &labels), 0);
        cr_assert_eq(as_matcher_match(&matcher, labels), meaning[i].matches, "%s on \"%s\"",
                     meaning[i].text, meaning[i].value);
        cr_assert_eq(as_matcher_match_value(&matcher, meaning[i].value), meaning[i].matches);
        as_labels_free(labels);
        as_matcher_deinit(&matcher);
    }
}

Test(matcher, a_match_that_is_given_up_is_neither_a_match_nor_its_opposite)
{
    static const char *const texts[] = {"a=~\"(x+)+[yz]\"", "a!~\"(x+)+[yz]\""};
    char value[61]; /* takes 2^60 steps without a limit */

    memset(value, 'x', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    for (size_t i = 0; i < AS_ARRAY_SIZE(texts); i++) {
        struct as_matcher matcher;
        cr_assert_eq(as_matcher_init(&matcher, texts[i], NULL), 0);
        cr_assert_not(as_matcher_match_value(&matcher, value), "%s", texts[i]);
        as_matcher_deinit(&matcher);
    }
}

/* An equality has one value, a plain alternation its words, and all else as many as it likes. */
Test(matcher, values)
{
    static const struct {
        const char *text, *expected; /* NULL: any number */
    } rows[] = {
        {"a=b", "b"},         {"a=\"x|y\"", "x|y"},
        {"a=\"\"", ""},       {"a=~\"c|a|b|a\"", "a b c"},
        {"a=~\"b|\"", " b"},  {"a=~\"x\\\\.y\"", "x.y"},
        {"a=~\"x.y\"", NULL}, {"a=~\"(x|y)\"", NULL},
        {"a!=b", NULL},       {"a!~\"b\"", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct as_matcher matcher;
        struct as_matcher_values values;
        char found[64] = "";
        size_t used = 0;
        cr_assert_eq(as_matcher_init(&matcher, rows[i].text, NULL), 0, "%s", rows[i].text);
        bool is_found = as_matcher_find_values(&matcher, &values);
        as_matcher_deinit(&matcher);
        cr_assert_eq(is_found, rows[i].expected != NULL, "%s", rows[i].text);
        for (size_t k = 0; is_found && k < values.count; k++)
            used += (size_t)snprintf(found + used, sizeof(found) - used, "%s%s", k ? " " : "",
                                     values.items[k]);
        if (!is_found)
            continue;
        as_matcher_values_deinit(&values);
        cr_assert_str_eq(found, rows[i].expected, "%s", rows[i].text);
    }
}
