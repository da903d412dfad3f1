/* Label sets: sorted, immutable, absent is empty, Alertmanager's fingerprint. */
#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/model/labels.h>

static struct as_labels *make(const struct as_label *pairs, size_t count)
{
    struct as_labels *labels = NULL;

    cr_assert_eq(as_labels_new(pairs, count, &labels), 0);
    return labels;
}

#define MAKE(...)                                                                                  \
    make((const struct as_label[]){__VA_ARGS__},                                                   \
         sizeof((const struct as_label[]){__VA_ARGS__}) / sizeof(struct as_label))

Test(labels, pairs_in_any_order_come_out_sorted_by_bytes)
{
    struct as_labels *labels = MAKE({"severity", "page"}, {"Zone", "z"}, {"alertname", "Slow"},
                                    {"\xC3\xA9", "e"}, {"a", ""});
    static const char *const names[] = {"Zone", "a", "alertname", "severity", "\xC3\xA9"};

    cr_assert_eq(labels->count, 5);
    for (uint32_t i = 0; i < labels->count; i++)
        cr_assert_str_eq(labels->items[i].name, names[i]);
    cr_assert_str_eq(as_labels_get(labels, "alertname"), "Slow");
    cr_assert_str_eq(as_labels_get(labels, "\xC3\xA9"), "e");
    as_labels_free(labels);
}

Test(labels, an_absent_label_is_the_empty_string)
{
    struct as_labels *labels = MAKE({"b", "1"}, {"d", "2"}), *none = make(NULL, 0);

    cr_assert_str_eq(as_labels_get(labels, "a"), "");
    cr_assert_str_eq(as_labels_get(labels, "c"), "");
    cr_assert_str_eq(as_labels_get(labels, "e"), "");
    cr_assert_str_eq(as_labels_get(labels, ""), "");
    cr_assert_str_eq(as_labels_get(none, "a"), "");
    as_labels_free(labels);
    as_labels_free(none);
}

Test(labels, a_name_that_comes_twice_is_refused_and_nothing_is_given)
{
    static const struct as_label next_to_each_other[] = {{"a", "1"}, {"a", "1"}};
    static const struct as_label apart[] = {{"a", "1"}, {"c", "2"}, {"b", "3"}, {"a", "4"}};
    struct as_labels *labels = NULL;

    cr_assert_eq(as_labels_new(next_to_each_other, 2, &labels), -EEXIST);
    cr_assert_eq(as_labels_new(apart, 4, &labels), -EEXIST);
    cr_assert_null(labels);
}

Test(labels, more_than_sixteen_mebibytes_are_refused)
{
    const size_t size = (size_t)16 << 20;
    char *value = as_xmalloc(size);
    struct as_labels *labels = NULL;

    memset(value, 'x', size - 1);
    value[size - 1] = '\0';
    cr_assert_eq(as_labels_new(&(struct as_label){"n", value}, 1, &labels), -EMSGSIZE);
    value[size - 4] = '\0'; /* with the name and both NULs exactly 16 MiB */
    value[size - 3] = '\0';
    cr_assert_eq(as_labels_new(&(struct as_label){"n", value}, 1, &labels), 0);
    as_labels_free(labels);
    free(value);
}

Test(labels, a_copy_is_equal_and_stands_on_its_own)
{
    struct as_labels *labels = MAKE({"b", "2"}, {"a", "1"});
    struct as_labels *copy = as_labels_copy(labels);

    cr_assert(as_labels_equal(labels, copy));
    cr_assert_neq(copy->items[0].name, labels->items[0].name);
    as_labels_free(labels);
    cr_assert_str_eq(as_labels_get(copy, "a"), "1");
    cr_assert_str_eq(as_labels_get(copy, "b"), "2");
    as_labels_free(copy);
}

Test(labels, sets_differ_by_a_name_a_value_or_a_count)
{
    struct as_labels *base = MAKE({"ab", "c"}, {"d", "e"});
    struct as_labels *others[] = {MAKE({"a", "bc"}, {"d", "e"}), MAKE({"ab", "c"}, {"d", "f"}),
                                  MAKE({"ab", "c"}), MAKE({"ab", "c"}, {"d", "e"}, {"f", ""})};

    for (size_t i = 0; i < AS_ARRAY_SIZE(others); i++) {
        cr_assert_not(as_labels_equal(base, others[i]), "%zu", i);
        cr_assert_neq(as_labels_get_fingerprint(base), as_labels_get_fingerprint(others[i]));
        as_labels_free(others[i]);
    }
    as_labels_free(base);
}

Test(labels, the_fingerprint_is_alertmanagers)
{
    struct as_labels *none = make(NULL, 0);
    struct as_labels *one = MAKE({"alertname", "TestAlert"});
    struct as_labels *four = MAKE({"severity", "critical"}, {"namespace", "prod"},
                                  {"deployment", "web"}, {"alertname", "HighCPU"});

    cr_assert_eq(as_labels_get_fingerprint(none), UINT64_C(0xcbf29ce484222325));
    cr_assert_eq(as_labels_get_fingerprint(one), UINT64_C(0xdab43189276e5f48));
    cr_assert_eq(as_labels_get_fingerprint(four), UINT64_C(0x7be9cc40aa9853c5));
    as_labels_free(none);
    as_labels_free(one);
    as_labels_free(four);
}

#define W63 "w23456789-123456789-123456789-123456789-123456789-123456789-123"
#define W62 "w23456789-123456789-123456789-123456789-123456789-123456789-12"

Test(labels, kubernetes_keys_and_values)
{
    static const struct {
        const char *text;
        bool is_key, is_value;
    } rows[] = {
        {"", false, true},
        {"a", true, true},
        {"A.b_c-9", true, true},
        {W63, true, true},
        {W63 "4", false, false},
        {"-a", false, false},
        {"a.", false, false},
        {"a b", false, false},
        {"\xc3\xa4", false, false},
        {"example.com/pool", true, false},
        {"e/P_1", true, false},
        {"example.com/", false, false},
        {"/pool", false, false},
        {"Example.com/pool", false, false},
        {"example..com/pool", false, false},
        {".example.com/pool", false, false},
        {"example.com./pool", false, false},
        {"example.-com/pool", false, false},
        {"exa_mple.com/pool", false, false},
        {"a/b/c", false, false},
        {W62 "." W62 "." W62 "." W62 ".x/a", true, false},   /* 253 bytes */
        {W62 "." W62 "." W62 "." W62 ".xy/a", false, false}, /* 254 */
    };

    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        cr_expect_eq(as_label_is_kubernetes_key(rows[i].text), rows[i].is_key, "%s", rows[i].text);
        cr_expect_eq(as_label_is_kubernetes_value(rows[i].text), rows[i].is_value, "%s",
                     rows[i].text);
    }
}
