/* Reviews of ScalingPolicies: the text of a review in, the text of the answer out. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_tree.h>
#include <alertscaler/rules/settings.h>
#include <alertscaler/tools/admission_review.h>

#define KIND                                                                                       \
    "\"kind\":{\"group\":\"alertscaler.io\",\"version\":\"v1alpha1\",\"kind\":\"ScalingPolicy\"}"
#define HEAD "\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\""
#define REVIEW(request)                                                                            \
    "{" HEAD ",\"request\":{\"uid\":\"u-1\"," KIND ",\"name\":\"checkout\"," request "}}"
#define CREATE(object)   REVIEW("\"operation\":\"CREATE\",\"object\":" object)
#define UPDATE(old, new) REVIEW("\"operation\":\"UPDATE\",\"object\":" new ",\"oldObject\":" old)
#define OBJECT(metadata, spec)                                                                     \
    "{\"apiVersion\":\"alertscaler.io/v1alpha1\",\"kind\":\"ScalingPolicy\",\"metadata\":{"        \
    "\"name\":\"checkout\",\"namespace\":\"shop\"" metadata "},\"spec\":" spec "}"
#define SPEC(max, rule)                                                                            \
    "{\"target\":{\"kubernetes\":{\"kind\":\"Deployment\",\"name\":\"checkout\"},\"min\":2,"       \
    "\"max\":" max "},\"rules\":[" rule "]}"
#define RULE(keys) "{\"name\":\"slow\",\"match\":[\"alertname=\\\"Slow\\\"\"]," keys "}"
#define GOOD                                                                                       \
    SPEC(                                                                                          \
        "20",                                                                                      \
        RULE("\"scaleUp\":{\"by\":2},\"onResolved\":{\"giveBack\":{}},\"guard\":{\"none\":true}"))
#define WRONG SPEC("20", RULE("\"scaleUp\":{\"by\":\"much\"}"))

static const struct as_settings settings = {
    .prometheus.url = "http://prometheus",
    .objects = {.rules_per_policy = 50, .max_size = 40, .allows_unrestricted_queries = true}};

static enum as_admission_outcome review(const char *text, struct as_buf *out,
                                        struct as_error *error)
{
    const enum as_admission_outcome outcome =
        as_admission_review(&settings, text, strlen(text), out, error);
    cr_assert_eq(as_buf_check(out), 0);
    cr_assert_eq(outcome == AS_ADMISSION_INVALID, out->size == 0);
    cr_assert_eq(outcome == AS_ADMISSION_INVALID, *error->text != '\0');
    as_buf_append_char(out, '\0');
    return outcome;
}

/* The review has this outcome, and `expected` is in the answer. */
static void cr_answered(const char *text, enum as_admission_outcome outcome, const char *expected)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(AS_ADMISSION_ANSWER_MAX);
    struct as_error error = AS_ERROR_INIT;
    const enum as_admission_outcome found = review(text, &out, &error);
    cr_assert_eq(found, outcome, "%s: %s%s", as_admission_outcome_get_word(found), out.data,
                 error.text);
    cr_assert(strstr(out.data, expected), "%s", out.data);
    cr_assert(strstr(out.data, "\"response\":{\"uid\":\"u-1\",\"allowed\":"), "%s", out.data);
}

/* The text is no review for us, for this reason. */
static void cr_invalid(const char *text, const char *expected)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(AS_ADMISSION_ANSWER_MAX);
    struct as_error error = AS_ERROR_INIT;
    cr_assert_eq(review(text, &out, &error), AS_ADMISSION_INVALID, "%s", out.data);
    cr_assert(strstr(error.text, expected), "%s", error.text);
}

Test(admission_review, a_good_policy_is_allowed)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(AS_ADMISSION_ANSWER_MAX);
    struct as_error error = AS_ERROR_INIT;
    cr_assert_eq(review(CREATE(OBJECT("", GOOD)), &out, &error), AS_ADMISSION_ALLOWED, "%s",
                 out.data);
    cr_assert_str_eq(out.data,
                     "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\","
                     "\"response\":{\"uid\":\"u-1\",\"allowed\":true}}");
}

Test(admission_review, a_wrong_policy_is_denied_as_the_api_server_denies)
{
    const char *text = CREATE(OBJECT("", WRONG));
    cr_answered(text, AS_ADMISSION_DENIED, "\"message\":\"spec.rules[0].scaleUp.by: expected");
    cr_answered(text, AS_ADMISSION_DENIED, "\"reason\":\"Invalid\",\"code\":422");
    cr_answered(text, AS_ADMISSION_DENIED,
                "\"details\":{\"name\":\"checkout\",\"group\":\"alertscaler.io\",\"kind\":"
                "\"ScalingPolicy\",\"causes\":[{\"reason\":\"FieldValueInvalid\",\"message\":"
                "\"expected");
    cr_answered(text, AS_ADMISSION_DENIED, "\"field\":\"spec.rules[0].scaleUp.by\"}]}}");
}

Test(admission_review, a_warning_comes_with_the_path)
{
    cr_answered(CREATE(OBJECT("", SPEC("20", RULE("\"scaleTo\":{\"size\":30}")))),
                AS_ADMISSION_ALLOWED,
                "\"allowed\":true,\"warnings\":[\"spec.rules[0].scaleTo.size: 30 ");
}

/* Valid, and more than the administrator allows. */
Test(admission_review, a_policy_that_may_not_is_denied)
{
    cr_answered(CREATE(OBJECT("", SPEC("50", RULE("\"scaleUp\":{\"by\":2}")))), AS_ADMISSION_DENIED,
                "\"message\":\"spec.target.max: 50 is above 40");
}

/* So many rules with a warning, and a name of this many bytes in it. */
static char *print_rules(size_t count, size_t name_size)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(200 * 1024);
    AS_CLEANUP(as_free_p) char *name = as_xcalloc(name_size + 1, 1);
    memset(name, 'n', name_size);
    for (size_t i = 0; i < count; i++)
        as_buf_printf(&text,
                      "%s{\"name\":\"%s%zu\",\"match\":[\"alertname=\\\"Slow%zu\\\"\"],"
                      "\"scaleTo\":{\"size\":30}}",
                      i > 0 ? "," : "", name, i, i);
    as_buf_append_char(&text, '\0');
    return as_buf_take(&text, NULL);
}

Test(admission_review, warnings_are_few_and_short)
{
    AS_CLEANUP(as_free_p) char *rules = print_rules(30, 20);
    AS_CLEANUP(as_free_p) char *text = as_xasprintf(CREATE(OBJECT("", SPEC("20", "%s"))), rules);
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(AS_ADMISSION_ANSWER_MAX);
    struct as_error error = AS_ERROR_INIT;
    struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    cr_assert_eq(review(text, &out, &error), AS_ADMISSION_ALLOWED, "%s", out.data);
    cr_assert_eq(tree_load_object(&tree, out.data, strlen(out.data), &error), 0, "%s", error.text);
    const struct tree_value *warnings = tree_find(tree_find(tree.root, "response"), "warnings");
    cr_assert_eq(warnings->size, AS_ADMISSION_WARNINGS_MAX);
    for (const struct tree_value *item = warnings->first; item; item = item->next)
        cr_assert_leq(item->size, AS_ADMISSION_WARNING_BYTES);
    tree_deinit(&tree);
}

Test(admission_review, a_long_warning_is_cut)
{
    char name[200 + 1] = "";
    memset(name, 'n', sizeof(name) - 1);
    AS_CLEANUP(as_free_p)
    char *text = as_xasprintf(
        CREATE(
            "{\"apiVersion\":\"alertscaler.io/v1alpha1\",\"kind\":\"ScalingPolicy\",\"metadata\":"
            "{\"name\":\"%s\",\"namespace\":\"shop\"},\"spec\":" SPEC(
                "20", RULE("\"scaleTo\":{\"size\":30}")) "}"),
        name);
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(AS_ADMISSION_ANSWER_MAX);
    struct as_error error = AS_ERROR_INIT;
    cr_assert_eq(review(text, &out, &error), AS_ADMISSION_ALLOWED, "%s%s", out.data, error.text);
    const char *begin = strstr(out.data, "[\"spec.rules[0]");
    cr_assert(begin, "%s", out.data);
    const char *end = strchr(begin + 2, '"');
    cr_assert_eq(end - (begin + 2), AS_ADMISSION_WARNING_BYTES, "%s", begin);
    cr_assert_eq(strncmp(end - 3, "...", 3), 0, "%s", begin);
}

/* The first ten, and the number of the others. */
Test(admission_review, errors_are_few)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf rules = AS_BUF_INIT(64 * 1024);
    for (int i = 0; i < 15; i++)
        as_buf_printf(&rules,
                      "%s{\"name\":\"r%d\",\"match\":[\"a=\\\"b\\\"\"],\"scaleUp\":{\"by\":\"x\"}}",
                      i > 0 ? "," : "", i);
    as_buf_append_char(&rules, '\0');
    AS_CLEANUP(as_free_p)
    char *text = as_xasprintf(CREATE(OBJECT("", SPEC("20", "%s"))), rules.data);
    cr_answered(text, AS_ADMISSION_DENIED, "\\nspec.rules[9].scaleUp.by: ");
    cr_answered(text, AS_ADMISSION_DENIED, "\\n... and 5 more errors\"");
}

/* Texts of a message cannot forge a line or turn the text around. */
Test(admission_review, a_message_has_no_control_characters)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(AS_ADMISSION_ANSWER_MAX);
    struct as_error error = AS_ERROR_INIT;
    const char *text =
        CREATE(OBJECT("", SPEC("20", RULE("\"scaleUp\":{\"by\":2},\"a\\nb\xe2\x80\xae\":1"))));
    cr_assert_eq(review(text, &out, &error), AS_ADMISSION_DENIED);
    cr_assert(strstr(out.data, "unknown key `a?b?`"), "%s", out.data);
    cr_assert_null(strstr(out.data, "\xe2\x80\xae"));
}

Test(admission_review, an_update_of_the_spec_is_judged)
{
    cr_answered(UPDATE(OBJECT("", GOOD), OBJECT("", WRONG)), AS_ADMISSION_DENIED, "false");
    cr_answered(UPDATE(OBJECT("", WRONG), OBJECT("", GOOD)), AS_ADMISSION_ALLOWED, "true");
}

/* A policy that is wrong by now can still be labelled and paused. */
Test(admission_review, an_update_that_leaves_the_spec_is_passed)
{
    cr_answered(UPDATE(OBJECT("", WRONG), OBJECT(",\"labels\":{\"a\":\"b\"}", WRONG)),
                AS_ADMISSION_PASSED, "true");
    cr_answered(UPDATE(OBJECT("", "{\"b\":[1,{\"c\":null}],\"a\":2.0}"),
                       OBJECT("", "{ \"a\": 2, \"b\": [1, {\"c\": null}] }")),
                AS_ADMISSION_PASSED, "true");
}

Test(admission_review, a_difference_in_the_spec_is_a_change)
{
    static const char *const rows[][2] = {
        {"{\"a\":1}", "{\"a\":2}"},          {"{\"a\":1}", "{\"b\":1}"},
        {"{\"a\":1}", "{\"a\":1,\"b\":1}"},  {"{\"a\":1,\"b\":1}", "{\"a\":1}"},
        {"{\"a\":\"1\"}", "{\"a\":1}"},      {"{\"a\":true}", "{\"a\":false}"},
        {"{\"a\":[1,2]}", "{\"a\":[2,1]}"},  {"{\"a\":[1]}", "{\"a\":[1,2]}"},
        {"{\"a\":null}", "{\"a\":0}"},       {"{\"a\":1.5}", "{\"a\":1.25}"},
        {"{\"a\":\"x\"}", "{\"a\":\"xy\"}"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        AS_CLEANUP(as_free_p)
        char *text =
            as_xasprintf(UPDATE(OBJECT("", "%s"), OBJECT("", "%s")), rows[i][0], rows[i][1]);
        cr_answered(text, AS_ADMISSION_DENIED, "false");
    }
}

Test(admission_review, what_is_deleted_is_passed)
{
    const char *deleted = OBJECT(",\"deletionTimestamp\":\"2026-11-28T10:00:00Z\"", WRONG);
    AS_CLEANUP(as_free_p)
    char *update = as_xasprintf(UPDATE(OBJECT("", GOOD), "%s"), deleted);
    cr_answered(update, AS_ADMISSION_PASSED, "true");
    cr_answered(REVIEW("\"operation\":\"DELETE\",\"object\":null,\"oldObject\":{}"),
                AS_ADMISSION_PASSED, "true");
    cr_answered(REVIEW("\"operation\":\"CONNECT\",\"object\":null"), AS_ADMISSION_PASSED, "true");
}

Test(admission_review, a_subresource_is_passed)
{
    cr_answered(REVIEW("\"operation\":\"UPDATE\",\"subResource\":\"status\",\"object\":{}"),
                AS_ADMISSION_PASSED, "true");
}

Test(admission_review, other_texts_are_refused)
{
    static const char head[] = "{" HEAD ",\"request\":{";
    cr_invalid("", "not JSON");
    cr_invalid("[]", "expected a JSON object");
    cr_invalid("{", "premature end of input");
    cr_invalid("{}", "expected an AdmissionReview of admission.k8s.io/v1, found `` of ``");
    cr_invalid("{\"apiVersion\":\"admission.k8s.io/v1beta1\",\"kind\":\"AdmissionReview\"}",
               "found `AdmissionReview` of `admission.k8s.io/v1beta1`");
    cr_invalid("{" HEAD "}", "the review has no `request`");
    cr_invalid("{" HEAD ",\"request\":[]}", "the review has no `request`");
    cr_invalid("{" HEAD ",\"request\":{" KIND ",\"operation\":\"CREATE\",\"object\":{}}}",
               "`request.uid` is missing");
    cr_invalid("{" HEAD ",\"request\":{\"uid\":7," KIND ",\"operation\":\"CREATE\"}}",
               "`request.uid` is missing");
    cr_invalid("{" HEAD ",\"request\":{\"uid\":\"u-1\"," KIND ",\"object\":{}}}",
               "`request.operation` is missing");
    cr_invalid(REVIEW("\"operation\":\"CREATE\",\"object\":null"), "`request.object` is missing");
    cr_invalid(REVIEW("\"operation\":\"CREATE\",\"object\":7"), "`request.object` is missing");
    cr_invalid(REVIEW("\"operation\":\"CREATE\""), "`request.object` is missing");
    cr_invalid(REVIEW("\"operation\":\"CREATE\",\"operation\":\"DELETE\""), "duplicate object key");
    AS_CLEANUP(as_free_p)
    char *other = as_xasprintf("%s\"uid\":\"u-1\",\"operation\":\"CREATE\",\"kind\":{\"group\":"
                               "\"apps\",\"version\":\"v1\","
                               "\"kind\":\"Deployment\"},\"object\":{}}}",
                               head);
    cr_invalid(
        other,
        "expected a ScalingPolicy of alertscaler.io/v1alpha1, found `Deployment` of `apps/v1`");
    AS_CLEANUP(as_free_p)
    char *newer =
        as_xasprintf("%s\"uid\":\"u-1\",\"operation\":\"CREATE\",\"kind\":{\"group\":"
                     "\"alertscaler.io\",\"version\":\"v2\",\"kind\":\"ScalingPolicy\"}}}",
                     head);
    cr_invalid(newer, "found `ScalingPolicy` of `alertscaler.io/v2`");
}

Test(admission_review, a_long_uid_is_refused)
{
    char uid[257 + 1] = "";
    memset(uid, 'u', sizeof(uid) - 1);
    AS_CLEANUP(as_free_p)
    char *text = as_xasprintf(
        "{" HEAD ",\"request\":{\"uid\":\"%s\"," KIND ",\"operation\":\"DELETE\"}}", uid);
    cr_invalid(text, "has more than 256 bytes");
}

/* The object is read by its bytes: the first member of a name must be its only one. */
Test(admission_review, a_name_that_stands_twice_is_refused)
{
    cr_invalid(REVIEW("\"operation\":\"CREATE\",\"object\":" OBJECT("", GOOD) ",\"object\":{}"),
               "duplicate object key");
    cr_invalid(CREATE("{\"spec\":{\"rules\":[],\"rules\":[]}}"), "duplicate object key");
}

static char *print_nested(size_t depth)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(1024 * 1024);
    for (size_t i = 0; i < depth; i++)
        as_buf_append_char(&text, '[');
    for (size_t i = 0; i < depth; i++)
        as_buf_append_char(&text, ']');
    as_buf_append_char(&text, '\0');
    return as_buf_take(&text, NULL);
}

Test(admission_review, a_deep_text_ends)
{
    static const size_t depths[] = {20, 40, 70, 1000, 3000, 200000};
    for (size_t i = 0; i < AS_ARRAY_SIZE(depths); i++) {
        AS_CLEANUP(as_free_p) char *deep = print_nested(depths[i]);
        AS_CLEANUP(as_free_p) char *text = as_xasprintf(CREATE(OBJECT("", "{\"rules\":%s}")), deep);
        AS_CLEANUP(as_free_p)
        char *update = as_xasprintf(
            UPDATE(OBJECT("", "{\"rules\":%s}"), OBJECT("", "{\"rules\":%s}")), deep, deep);
        if (depths[i] < 60)
            cr_answered(text, AS_ADMISSION_DENIED, "false");
        else
            cr_invalid(text, depths[i] < 2000 ? "more than 64 levels" : "not JSON");
        if (depths[i] < 2000)
            cr_answered(update, AS_ADMISSION_PASSED, "true");
        else
            cr_invalid(update, "not JSON");
    }
}

/* As large as the listener takes. */
static char *fill(const char *unit)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(AS_ADMISSION_BODY_MAX);
    while (text.size + strlen(unit) + 1 < AS_ADMISSION_BODY_MAX - 1024)
        as_buf_append_str(&text, unit);
    as_buf_append_char(&text, '\0');
    return as_buf_take(&text, NULL);
}

Test(admission_review, a_large_text_ends)
{
    AS_CLEANUP(as_free_p) char *numbers = fill("0,");
    AS_CLEANUP(as_free_p) char *many = as_xasprintf(CREATE("{\"a\":[%s0]}"), numbers);
    cr_invalid(many, "too many values");
    AS_CLEANUP(as_free_p) char *noise = fill("\xff}{\"");
    cr_invalid(noise, "not JSON");
    AS_CLEANUP(as_free_p) char *letters = fill("abcdefgh");
    AS_CLEANUP(as_free_p)
    char *large = as_xasprintf(CREATE(OBJECT(",\"annotations\":{\"a\":\"%s\"}", GOOD)), letters);
    cr_answered(large, AS_ADMISSION_DENIED, "larger than 256 KiB");
    cr_invalid(letters, "not JSON");
}

/* 50,000 members in two orders: sorted, not searched. */
Test(admission_review, an_object_of_many_members_is_compared_in_time, .timeout = 20)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf up = AS_BUF_INIT(AS_ADMISSION_BODY_MAX);
    AS_CLEANUP(as_buf_deinit) struct as_buf down = AS_BUF_INIT(AS_ADMISSION_BODY_MAX);
    enum { COUNT = 50000 };
    for (int i = 0; i < COUNT; i++) {
        as_buf_printf(&up, "%s\"k%05d\":1", i > 0 ? "," : "", i);
        as_buf_printf(&down, "%s\"k%05d\":1", i > 0 ? "," : "", COUNT - 1 - i);
    }
    as_buf_append_char(&up, '\0');
    as_buf_append_char(&down, '\0');
    AS_CLEANUP(as_free_p)
    char *text = as_xasprintf(UPDATE("{\"spec\":{%s}}", "{\"spec\":{%s}}"), down.data, up.data);
    cr_answered(text, AS_ADMISSION_PASSED, "true");
}
