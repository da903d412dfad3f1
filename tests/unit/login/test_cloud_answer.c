/*
 * cloud_answer.h: foreign JSON and XML, valid and hostile.
 */
#include <alertscaler/login/cloud_answer.h>

#include "op_driver.h"

static struct as_cloud_op op;

static void init(void)
{
    as_cloud_op_init(&op, driver_get_variable);
    as_cloud_op_ask(&op, "GET", "http://h/");
    op.request.operation = "op";
}

static void deinit(void)
{
    as_cloud_op_deinit(&op);
}

TestSuite(answer, .init = init, .fini = deinit);

typedef const json_t *answer_fn(struct as_cloud_op *);

/* The document as JSON in canonical order; NULL where it is not one. Freed by the next call. */
static const char *read_sized(answer_fn *read, const char *body, size_t size)
{
    static char *text;
    const struct as_http_response answer = {.status = 200, .body = body, .body_size = size};
    free(text);
    text = NULL;
    op.message[0] = '\0';
    op.answer = &answer;
    const json_t *document = read(&op);
    op.answer = NULL;
    if (document)
        text = json_dumps(document, JSON_COMPACT | JSON_SORT_KEYS);
    return text;
}

static const char *read_text(answer_fn *read, const char *body)
{
    return read_sized(read, body, strlen(body));
}

static void free_text(void)
{
    (void)read_text(answer_peek_xml, "");
}

Test(answer, xml_becomes_the_tree_that_json_is)
{
    static const struct {
        const char *xml, *json;
    } rows[] = {
        {"<a/>", "{\"a\":\"\"}"},
        {"<a>text</a>", "{\"a\":\"text\"}"},
        {"<?xml version='1.0' encoding='UTF-8'?>\n<a><b>1</b><c/></a>\n",
         "{\"a\":{\"b\":\"1\",\"c\":\"\"}}"},
        {"<a><b>1</b><b>2</b><c>x</c><b>3</b></a>",
         "{\"a\":{\"b\":[\"1\",\"2\",\"3\"],\"c\":\"x\"}}"},
        {"<a xmlns='http://x/' q='1'>\n  <x:b xmlns:x='y'>1</x:b>\n</a>", "{\"a\":{\"b\":\"1\"}}"},
        {"<a>&lt;&amp;&#65;<![CDATA[<b>]]></a>", "{\"a\":\"<&A<b>\"}"},
        {"<a>one<!-- no --><?no?> two</a>", "{\"a\":\"one two\"}"},
        {"<a>\xc3\xa4</a>", "{\"a\":\"\xc3\xa4\"}"},
        {"<?xml version='1.0' encoding='ISO-8859-1'?><a>\xe4</a>", "{\"a\":\"\xc3\xa4\"}"},
        {"<a><b><c>1</c></b><b/></a>", "{\"a\":{\"b\":[{\"c\":\"1\"},\"\"]}}"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const char *text = read_text(answer_xml, rows[i].xml);
        cr_expect(as_str_equal(text, rows[i].json), "%s: %s, not %s", rows[i].xml, text,
                  rows[i].json);
    }
    free_text();
}

Test(answer, xml_that_is_none)
{
    static const struct {
        const char *xml, *problem;
    } rows[] = {
        {"", "no element found"},
        {"{}", "not well-formed (invalid token)"},
        {"<a>", "no element found"},
        {"<a><b></a>", "mismatched tag"},
        {"<a/><b/>", "junk after document element"},
        {"<a>\xff</a>", "not well-formed (invalid token)"},
        {"<a>&x;</a>", "undefined entity"},
        {"<a>&#0;</a>", "reference to invalid character number"},
        {"<?xml version='1.0' encoding='utf-77'?><a/>", "unknown encoding"},
        {"<!DOCTYPE a><a/>", "it has a document type"},
        {"<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>", "it has a document type"},
        {"<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>",
         "it has a document type"},
        {"<!DOCTYPE a [<!ENTITY x 'xx'><!ENTITY y '&x;&x;&x;&x;'><!ENTITY z '&y;&y;&y;&y;'>]>"
         "<a>&z;&z;&z;&z;</a>",
         "it has a document type"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char message[256];
        cr_expect_null(read_text(answer_xml, rows[i].xml), "%s", rows[i].xml);
        snprintf(message, sizeof(message), "op: the answer is not XML: %s", rows[i].problem);
        driver_expect_end(&op, AS_CLOUD_OP_RETRY, message);
        cr_expect_null(read_text(answer_peek_xml, rows[i].xml));
        cr_expect_str_eq(op.message, "", "a look at an error fails nothing");
    }
    cr_assert_not(op.is_ambiguous);
}

Test(answer, what_a_change_was_answered_but_cannot_be_read_leaves_it_open)
{
    op.request.is_change = true;
    cr_assert_null(read_text(answer_xml, "<a"));
    cr_assert(op.is_ambiguous);
    op.is_ambiguous = false;
    cr_assert_null(read_text(answer_json, "{"));
    cr_assert(op.is_ambiguous);
    op.is_ambiguous = false;
    (void)answer_misses(&op, "a.b");
    driver_expect_end(&op, AS_CLOUD_OP_RETRY, "op: the answer has no a.b");
    cr_assert(op.is_ambiguous);
}

/* `times` times `text` */
static void repeat(struct as_buf *buf, const char *text, size_t times)
{
    for (size_t i = 0; i < times; i++)
        as_buf_append_str(buf, text);
}

Test(answer, xml_has_limits)
{
    struct as_buf buf = AS_BUF_INIT(64 * 1024 * 1024);
    static const struct {
        size_t depth, texts, elements;
        const char *problem; /* NULL: it is good */
    } rows[] = {
        {ANSWER_DEPTH_MAX, 0, 0, NULL},
        {ANSWER_DEPTH_MAX + 1, 0, 0, "op: the answer is not XML: it has too many elements"},
        {100000, 0, 0, "op: the answer is not XML: it has too many elements"},
        {1, 64 * 1024, 0, NULL},
        {1, 64 * 1024 + 1, 0, "op: the answer is not XML: an element is too long"},
        {3, 3 * 1024 * 1024, 0, "op: the answer is not XML: an element is too long"},
        {1, 0, ANSWER_ELEMENTS_MAX - 1, NULL},
        {1, 0, ANSWER_ELEMENTS_MAX, "op: the answer is not XML: it has too many elements"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        as_buf_clear(&buf);
        repeat(&buf, "<d>", rows[i].depth);
        repeat(&buf, "x", rows[i].texts);
        repeat(&buf, "<e/>", rows[i].elements);
        repeat(&buf, "</d>", rows[i].depth);
        const char *text = read_sized(answer_xml, buf.data, buf.size);
        cr_expect_eq(text == NULL, rows[i].problem != NULL, "%zu", i);
        cr_expect_str_eq(op.message, rows[i].problem ? rows[i].problem : "");
    }
    as_buf_deinit(&buf);
    free_text();
}

/* Each beginning of a document is no document, and leaks nothing. */
Test(answer, truncated)
{
    static const char xml[] = "<a x='1'><b>1</b><b>2</b><c><d>&amp;</d></c></a>";
    static const char json[] = "{\"a\": [1, {\"b\": \"x\\u00e4\"}], \"c\": null}";
    for (size_t i = 0; i < strlen(xml); i++)
        cr_expect_null(read_sized(answer_xml, xml, i), "%zu", i);
    for (size_t i = 0; i < strlen(json); i++)
        cr_expect_null(read_sized(answer_json, json, i), "%zu", i);
    cr_expect_not_null(read_text(answer_xml, xml));
    cr_expect_not_null(read_text(answer_json, json));
    free_text();
}

Test(answer, json_that_is_none)
{
    static const char *const rows[] = {
        "",
        "x",
        "\"text\"",
        "1",
        "{\"a\":1,\"a\":2}",
        "{\"a\":\"\\u0000\"}",
        "{} {}",
        "{\"a\":\"\xff\"}",
        "<a/>",
        "{\"a\":1e999}",
        "{\"a\":99999999999999999999}",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        cr_expect_null(read_text(answer_json, rows[i]), "%s", rows[i]);
        cr_expect_eq(op.fault, AS_CLOUD_OP_RETRY);
        cr_expect(as_str_starts_with(op.message, "op: the answer is not JSON: "), "%s", op.message);
        cr_expect_null(read_text(answer_peek_json, rows[i]));
        cr_expect_str_eq(op.message, "");
    }
}

Test(answer, json_that_is_very_deep)
{
    struct as_buf buf = AS_BUF_INIT(1024 * 1024);
    repeat(&buf, "[", 100000);
    cr_assert_null(read_text(answer_json, buf.data));
    as_buf_deinit(&buf);
}

Test(answer, members)
{
    static const char json[] =
        "{\"a\":{\"b\":\"text\",\"n\":7,\"s\":\"8\",\"t\":true,\"u\":\"true\",\"f\":\"True\","
        "\"z\":null,\"neg\":-1,\"big\":2147483648,\"max\":\"2147483647\",\"x\":\"0x7\",\"r\":1.5,"
        "\"at\":\"2024-05-17T10:20:30Z\",\"bad\":\"17 May\",\"list\":[\"p\",\"q\"],\"e\":\"\","
        "\"none\":[]}}";
    const struct as_http_response answer = {.status = 200, .body = json, .body_size = strlen(json)};
    op.answer = &answer;
    const json_t *document = answer_json(&op);
    cr_assert_not_null(document);
    cr_expect_eq(answer_find(document, ""), document);
    cr_expect_not_null(answer_find(document, "a.b"));
    cr_expect_null(answer_find(document, "a.z"), "null is nothing");
    cr_expect_null(answer_find(document, "a.b.c"));
    cr_expect_null(answer_find(document, "b"));
    cr_expect_null(answer_find(document, "a.list.p"));
    cr_expect_null(answer_find(NULL, "a"));
    cr_expect_str_eq(answer_text(document, "a.b"), "text");
    cr_expect_str_eq(answer_text(document, "a.n"), "");
    cr_expect_str_eq(answer_text(NULL, "a"), "");
    cr_expect(answer_is_true(document, "a.t") && answer_is_true(document, "a.u"));
    cr_expect_not(answer_is_true(document, "a.f") || answer_is_true(document, "a.n") ||
                  answer_is_true(document, "a.none"));
    cr_expect_eq(answer_size(document, "a.n", -1), 7);
    cr_expect_eq(answer_size(document, "a.s", -1), 8);
    cr_expect_eq(answer_size(document, "a.max", -1), INT32_MAX);
    static const char *const no_sizes[] = {"a.neg", "a.big", "a.x", "a.r",
                                           "a.b",   "a.e",   "a.q", "a"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(no_sizes); i++) {
        int32_t size = 5;
        char message[64];
        cr_expect_eq(answer_size(document, no_sizes[i], -7), -7, "%s", no_sizes[i]);
        cr_expect_not(answer_take_size(&op, document, no_sizes[i], &size));
        snprintf(message, sizeof(message), "op: the answer has no %s", no_sizes[i]);
        driver_expect_end(&op, AS_CLOUD_OP_RETRY, message);
    }
    int32_t size;
    cr_expect(answer_take_size(&op, document, "a.s", &size));
    cr_expect_eq(size, 8);
    cr_expect_eq(answer_time(document, "a.at").at.us, DRIVER_NOW.us);
    cr_expect_not(answer_time(document, "a.bad").set || answer_time(document, "a.q").set);
    cr_expect_eq(answer_count(document, "a.list"), 2);
    cr_expect_str_eq(json_string_value(answer_at(document, "a.list", 1)), "q");
    cr_expect_null(answer_at(document, "a.list", 2));
    cr_expect_eq(answer_count(document, "a.b"), 1, "the one thing that stands there");
    cr_expect_str_eq(json_string_value(answer_at(document, "a.b", 0)), "text");
    cr_expect_eq(answer_count(document, "a.e"), 0, "an empty element holds nothing");
    cr_expect_eq(answer_count(document, "a.none"), 0);
    cr_expect_eq(answer_count(document, "a.q"), 0);
}
