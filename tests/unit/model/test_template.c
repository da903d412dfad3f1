/* Templates of addresses and queries: the few valid forms; all others are errors. */
#include <criterion/criterion.h>
#include <errno.h>

#include <alertscaler/model/template.h>

static const struct as_label label_pairs[] = {
    {"app.kubernetes.io/name", "web"}, {"empty", ""}, {"namespace", "shop"}, {"say \"x\\\"", "q"}};
static const struct as_label annotation_pairs[] = {{"team", "payments"}, {"x_1", "y"}};

static int expand(const char *text, size_t max, struct as_buf *out, struct as_error *error)
{
    struct as_template *template = NULL;
    struct as_labels *labels, *annotations;

    *out = AS_BUF_INIT(max);
    int r = as_template_new(text, &template, error);
    cr_assert_eq(r, 0, "%s: %s", text, error->text);
    cr_assert_eq(as_labels_new(label_pairs, AS_ARRAY_SIZE(label_pairs), &labels), 0);
    cr_assert_eq(as_labels_new(annotation_pairs, AS_ARRAY_SIZE(annotation_pairs), &annotations), 0);
    r = as_template_expand(template, labels, annotations, out, error);
    as_template_free(template);
    as_labels_free(labels);
    as_labels_free(annotations);
    return r;
}

static const struct {
    const char *text, *result;
    bool is_plain;
} good[] = {
    {"", "", true},
    {"checkout", "checkout", true},
    {"a { b } }} c", "a { b } }} c", true},
    {"{{ .Labels.namespace }}", "shop", false},
    {"{{.Labels.namespace}}", "shop", false},
    {"a-{{\t.Labels.namespace\n}}-b", "a-shop-b", false},
    {"{{ .Annotations.team }}/{{ .Annotations.x_1 }}", "payments/y", false},
    {"{{ index .Labels \"app.kubernetes.io/name\" }}", "web", false},
    {"{{index .Labels \"namespace\"}}{{index .Annotations \"team\"}}", "shoppayments", false},
    {"{{ index .Labels \"say \\\"x\\\\\\\"\" }}", "q", false},
};

Test(template, expands_text_labels_and_annotations)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(good); i++) {
        struct as_template *template = NULL;
        struct as_error error = AS_ERROR_INIT;
        struct as_buf out;
        cr_assert_eq(expand(good[i].text, 1000, &out, &error), 0, "%s: %s", good[i].text,
                     error.text);
        cr_assert_str_eq(out.data ? out.data : "", good[i].result, "%s", good[i].text);
        as_buf_deinit(&out);
        cr_assert_eq(as_template_new(good[i].text, &template, NULL), 0);
        cr_assert_eq(as_template_is_plain(template), good[i].is_plain, "%s", good[i].text);
        cr_assert_str_eq(as_template_get_text(template), good[i].text);
        as_template_free(template);
    }
}

static const struct {
    const char *text, *error;
} bad[] = {
    {"{{", "offset 2: expected .Labels.name"},
    {"{{}}", "offset 2: expected .Labels.name"},
    {"x{{ $labels.namespace }}", "offset 4: expected .Labels.name"},
    {"{{ .labels.namespace }}", "offset 3: expected .Labels.name"},
    {"{{ .CommonLabels.a }}", "offset 3: expected .Labels.name"},
    {"{{ .Labels }}", "offset 3: expected .Labels.name"},
    {"{{ .LabelsX.a }}", "offset 3: expected .Labels.name"},
    {"{{ .Labels. }}", "offset 11: expected a name of letters"},
    {"{{ .Labels.1a }}", "offset 11: expected a name of letters"},
    {"{{ .Labels.a-b }}", "offset 12: expected }}"},
    {"{{ .Labels.a | toLower }}", "offset 13: pipes and functions are not supported"},
    {"{{ .Labels.a }", "offset 13: expected }}"},
    {"{{ .Labels.a", "offset 12: expected }}"},
    {"{{- .Labels.a -}}", "offset 2: expected .Labels.name"},
    {"{{ index .Labels }}", "offset 17: expected a name in double quotes"},
    {"{{ index .Labels a }}", "offset 17: expected a name in double quotes"},
    {"{{ index .Labels \"\" }}", "offset 17: expected a name between the quotes"},
    {"{{ index .Labels \"a }}", "offset 17: the quote opened here is not closed"},
    {"{{ index .Labels \"a\\", "offset 17: the quote opened here is not closed"},
    {"{{ index .Labels \"a\\n\" }}", "offset 19: in a quoted name"},
    {"{{ index .Values \"a\" }}", "offset 9: expected .Labels or .Annotations"},
    {"{{ index .Labels \"a\" \"b\" }}", "offset 21: expected }}"},
    {"{{ toUpper .Labels.a }}", "offset 3: expected .Labels.name"},
    {"{{/* comment */}}", "offset 2: expected .Labels.name"},
};

Test(template, everything_else_is_an_error_with_its_place)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(bad); i++) {
        struct as_template *template = NULL;
        struct as_error error = AS_ERROR_INIT;
        cr_assert_eq(as_template_new(bad[i].text, &template, &error), -EINVAL, "%s", bad[i].text);
        cr_assert(strstr(error.text, bad[i].error), "%s: %s", bad[i].text, error.text);
        cr_assert_null(template);
    }
}

Test(template, a_missing_or_empty_label_or_annotation_is_said_by_name)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_buf out;

    cr_assert_eq(expand("x-{{ .Labels.zone }}", 100, &out, &error), -ENOENT);
    cr_assert_str_eq(error.text, "the alert has no label \"zone\"");
    as_buf_deinit(&out);
    cr_assert_eq(expand("{{ .Labels.empty }}", 100, &out, &error), -ENOENT);
    as_buf_deinit(&out);
    cr_assert_eq(expand("{{ .Annotations.namespace }}", 100, &out, &error), -ENOENT);
    cr_assert_str_eq(error.text, "the alert has no annotation \"namespace\"");
    as_buf_deinit(&out);
}

Test(template, the_buffers_maximum_holds)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_buf out;

    cr_assert_eq(expand("{{ .Labels.namespace }}", 4, &out, &error), 0);
    as_buf_deinit(&out);
    cr_assert_eq(expand("{{ .Labels.namespace }}", 3, &out, &error), -EMSGSIZE);
    cr_assert_str_eq(error.text, "the result is longer than 3 bytes");
    as_buf_deinit(&out);
}

/* PromQL */

static int expand_promql(const char *text, const char *value, struct as_buf *out,
                         struct as_error *error)
{
    const struct as_label pairs[] = {{"empty", ""}, {"k8s.io/x", "y"}, {"v", value}};
    struct as_template *template = NULL;
    struct as_labels *labels;

    *out = AS_BUF_INIT(200);
    cr_assert_eq(as_template_new(text, &template, error), 0, "%s: %s", text, error->text);
    cr_assert_eq(as_template_check_promql(template, error), 0, "%s: %s", text, error->text);
    cr_assert_eq(as_labels_new(pairs, AS_ARRAY_SIZE(pairs), &labels), 0);
    int r = as_template_expand_promql(template, labels, labels, out, error);
    as_template_free(template);
    as_labels_free(labels);
    return r;
}

static const struct {
    const char *text, *value, *result;
} queries[] = {
    {"up", "x", "up"},
    {"up{a=\"{{ .Labels.v }}\"}", "shop", "up{a=\"shop\"}"},
    {"up{a='{{ .Labels.v }}'}", "shop", "up{a='shop'}"},
    {"up{a=\"{{ index .Labels \"k8s.io/x\" }}-{{ .Annotations.v }}\"}", "s", "up{a=\"y-s\"}"},
    /* The quote of the literal and the backslash are escaped; the other quote is no escape. */
    {"{a=\"{{ .Labels.v }}\"}", "\"} or up{b=\"", "{a=\"\\\"} or up{b=\\\"\"}"},
    {"{a=\"{{ .Labels.v }}\"}", "it's", "{a=\"it's\"}"},
    {"{a='{{ .Labels.v }}'}", "it's \"x\"", "{a='it\\'s \"x\"'}"},
    {"{a=\"{{ .Labels.v }}\"}", "\\", "{a=\"\\\\\"}"},
    {"{a=\"{{ .Labels.v }}\"}", "a\nb`{{ .Labels.v }}#", "{a=\"a\\nb`{{ .Labels.v }}#\"}"},
    /* Literals, escapes and comments before it. */
    {"f(`\\`, \"\\\\\", '\\'', \"{{ .Labels.v }}\")", "\"", "f(`\\`, \"\\\\\", '\\'', \"\\\"\")"},
    {"f(`\n'`, \"{{ .Labels.v }}\")", "x", "f(`\n'`, \"x\")"},
    {"up # isn't \"it\n+ a{b=\"{{ .Labels.v }}\"}", "x", "up # isn't \"it\n+ a{b=\"x\"}"},
    {"{a=\"#'{{ .Labels.v }}\"}", "x", "{a=\"#'x\"}"},
    {"{a=\"\\x41{{ .Labels.v }}\\u00e4{{ .Labels.v }}\\101{{ .Labels.v }}\\n{{ .Labels.v }}\"}",
     "1", "{a=\"\\x411\\u00e41\\1011\\n1\"}"},
};

Test(template, what_fills_a_query_stays_the_value_of_a_string)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(queries); i++) {
        struct as_error error = AS_ERROR_INIT;
        struct as_buf out;
        cr_assert_eq(expand_promql(queries[i].text, queries[i].value, &out, &error), 0, "%s: %s",
                     queries[i].text, error.text);
        cr_assert_str_eq(out.data, queries[i].result, "%s", queries[i].text);
        as_buf_deinit(&out);
    }
}

static const struct {
    const char *text, *error;
} bad_queries[] = {
    {"{{ .Labels.v }}", "offset 0: a template stands inside a string"},
    {"rate(x[{{ .Labels.v }}])", "offset 7: a template stands inside a string"},
    {"x{a=\"b\"} > {{ .Labels.v }}", "offset 11: a template stands inside a string"},
    {"x{a=\"\\\\\"}{{ .Labels.v }}", "offset 9: a template stands inside a string"},
    {"x # \"{{ .Labels.v }}\"", "offset 5: a template stands inside a string"},
    {"x{a=`{{ .Labels.v }}`}", "offset 5: between backticks"},
    {"x{a=\"\\{{ .Labels.v }}\"}", "offset 6: a template cannot be a part of an escape"},
    {"x{a=\"\\x4{{ .Labels.v }}\"}", "offset 8: a template cannot be a part of an escape"},
    {"x{a=\"\\u004{{ .Labels.v }}\"}", "offset 10: a template cannot be a part of an escape"},
    {"x{a=\"\\U0000004{{ .Labels.v }}\"}", "offset 14: a template cannot be a part of an escape"},
    {"x{a=\"\\12{{ .Labels.v }}\"}", "offset 8: a template cannot be a part of an escape"},
    {"x{a=\"{{ .Labels.v }}", "offset 4: the quote opened here is not closed"},
    {"x{a=\"b}", "offset 4: the quote opened here is not closed"},
    {"x{a=\"b\n\"}", "offset 4: the quote opened here is not closed"},
    {"x{a=\"b\"} + y{a='{{ .Labels.v }}\n'}", "offset 15: the quote opened here is not closed"},
    {"x{a=`b}", "offset 4: the quote opened here is not closed"},
};

Test(template, elsewhere_in_a_query_a_template_is_an_error_with_its_place)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(bad_queries); i++) {
        struct as_template *template = NULL;
        struct as_error error = AS_ERROR_INIT;
        cr_assert_eq(as_template_new(bad_queries[i].text, &template, &error), 0);
        cr_assert_eq(as_template_check_promql(template, &error), -EINVAL, "%s",
                     bad_queries[i].text);
        cr_assert(strstr(error.text, bad_queries[i].error), "%s: %s", bad_queries[i].text,
                  error.text);
        as_template_free(template);
    }
}

Test(template, a_query_without_its_label_or_above_the_maximum_is_none)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_buf out;
    char value[101];

    cr_assert_eq(expand_promql("x{a=\"{{ .Labels.empty }}\"}", "x", &out, &error), -ENOENT);
    cr_assert_str_eq(error.text, "the alert has no label \"empty\"");
    as_buf_deinit(&out);
    memset(value, '"', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    cr_assert_eq(expand_promql("\"{{ .Labels.v }}\"", value, &out, &error), -EMSGSIZE);
    as_buf_deinit(&out);
}

/* The names are given in the order of the text, each as often as it stands there. */
Test(template, names)
{
    static const char text[] = "{{ .Labels.a }}-{{ index .Annotations \"x/y\" }}/{{ .Labels.a }}";
    struct as_template *template = NULL;
    enum as_template_map map = AS_TEMPLATE_ANNOTATIONS;
    size_t at = 0;
    cr_assert_eq(as_template_new(text, &template, NULL), 0);
    cr_assert_str_eq(as_template_find_next(template, &at, &map), "a");
    cr_assert_eq(map, AS_TEMPLATE_LABELS);
    cr_assert_str_eq(as_template_find_next(template, &at, &map), "x/y");
    cr_assert_eq(map, AS_TEMPLATE_ANNOTATIONS);
    cr_assert_str_eq(as_template_find_next(template, &at, &map), "a");
    cr_assert_null(as_template_find_next(template, &at, &map));
    as_template_free(template);
}
