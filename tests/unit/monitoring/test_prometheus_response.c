/*
 * Prometheus' answers to instant queries: valid ones are taken unchanged, each invalid one has its
 * own clear error, and outside text is checked before it enters an error.
 */
#include <alertscaler/monitoring/prometheus.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

static struct as_arena arena;

static void setup(void)
{
    arena = AS_ARENA_INIT;
}

static void teardown(void)
{
    as_arena_deinit(&arena);
}

TestSuite(prometheus, .init = setup, .fini = teardown);

static enum as_prometheus_outcome decode(enum as_query_form form, const char *json,
                                         struct as_query_result *result)
{
    const struct as_query query = {.text = "up", .form = form, .pod_label = "pod"};
    /* memory of exactly this size: what reads beyond it is seen */
    size_t size = strlen(json);
    char *copy = as_xmalloc(size);
    memcpy(copy, json, size);
    enum as_prometheus_outcome outcome =
        as_prometheus_decode_query(copy, size, &query, &arena, result);
    free(copy);
    return outcome;
}

#define DATA(type, result)                                                                         \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"" type "\",\"result\":" result "}}"
#define VECTOR(result)        DATA("vector", result)
#define SERIES(labels, value) "{\"metric\":{" labels "},\"value\":[1435781451.781,\"" value "\"]}"
#define POD(name, value)      SERIES("\"pod\":\"" name "\"", value)

Test(prometheus, a_query_as_a_form)
{
    struct as_buf out = AS_BUF_INIT(4096);
    as_prometheus_encode_query("sum(rate(x{a=~\"b|c\"}[5m])) / 2 + \xC3\xA4&\n", 5 * AS_US_PER_S,
                               &out);
    cr_expect_str_eq(out.data, "query=sum%28rate%28x%7Ba%3D~%22b%7Cc%22%7D%5B5m%5D%29%29%20%2F%202%"
                               "20%2B%20%C3%A4%26%0A&timeout=5s");
    as_buf_clear(&out);
    as_prometheus_encode_query("", 250 * AS_US_PER_MS, &out);
    cr_expect_str_eq(out.data, "query=&timeout=250ms");
    as_buf_deinit(&out);
}

Test(prometheus, numbers)
{
    static const struct {
        const char *json;
        double value;
    } rows[] = {
        {VECTOR("[" SERIES("", "1.5") "]"), 1.5},
        {VECTOR("[" SERIES("\"a\":\"b\"", "-0.25") "]"), -0.25},
        {VECTOR("[" SERIES("", "100000000000000000000000") "]"), 1e23},
        {VECTOR("[" SERIES("", "1e+06") "]"), 1e6},
        {DATA("scalar", "[1435781451,\"42\"]"), 42},
        {"{\"status\":\"success\",\"warnings\":[],\"infos\":[\"metric might not be a counter\"],"
         "\"stats\":{},\"data\":{\"resultType\":\"scalar\",\"result\":[1,\"7\"],\"analysis\":{}}}",
         7},
        {"{\"status\":\"success\",\"isPartial\":false,\"data\":{\"resultType\":\"vector\","
         "\"result\":["
         "{\"metric\":{},\"value\":[1435781451,\"9\"]}]},\"stats\":{\"seriesFetched\":\"2\","
         "\"executionTimeMsec\":3}}",
         9},
        {"{\"status\":\"success\",\"warnings\":null,\"data\":{\"resultType\":\"scalar\",\"result\":"
         "[1,\"7\"]}}",
         7},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_query_result result;
        cr_expect_eq(decode(AS_QUERY_NUMBER, rows[i].json, &result), AS_PROMETHEUS_ANSWERED);
        cr_expect_null(result.error, "row %zu: %s", i, result.error);
        cr_expect_eq(result.value, rows[i].value, "row %zu", i);
        cr_expect_eq(result.sample_count, 0);
    }
}

Test(prometheus, samples_come_ascending_by_pod_with_their_times)
{
    struct as_query_result result;
    cr_assert_eq(
        decode(AS_QUERY_PER_POD,
               VECTOR("[" POD("web-2", "95") "," POD("web-10", "0") "," POD("web-1", "80.5") "]"),
               &result),
        AS_PROMETHEUS_ANSWERED);
    cr_assert_null(result.error);
    cr_assert_eq(result.sample_count, 3);
    static const struct {
        const char *pod;
        double value;
    } rows[] = {{"web-1", 80.5}, {"web-10", 0}, {"web-2", 95}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        cr_expect_str_eq(result.samples[i].pod, rows[i].pod);
        cr_expect_eq(result.samples[i].value, rows[i].value);
        cr_expect(result.samples[i].at.set);
        cr_expect_eq(result.samples[i].at.at.us, INT64_C(1435781451781000));
        cr_expect_eq(result.samples[i].window_us, 0);
    }
}

Test(prometheus, a_guard_asks_only_whether_there_is_a_series)
{
    static const char *const good[] = {
        VECTOR("[" SERIES("", "NaN") "]"),
        VECTOR("[" SERIES("", "1") "," SERIES("\"a\":\"b\"", "0") "]"),
        DATA("scalar", "[1,\"0\"]"),
    };
    struct as_query_result result;
    for (size_t i = 0; i < AS_ARRAY_SIZE(good); i++) {
        cr_expect_eq(decode(AS_QUERY_ANY, good[i], &result), AS_PROMETHEUS_ANSWERED, "row %zu", i);
        cr_expect_null(result.error, "row %zu", i);
    }
    cr_expect_eq(decode(AS_QUERY_ANY, VECTOR("[]"), &result), AS_PROMETHEUS_NO_DATA);
    cr_expect_str_eq(result.error, "query returned no data");
    cr_expect_eq(decode(AS_QUERY_ANY, DATA("matrix", "[]"), &result), AS_PROMETHEUS_UNUSABLE);
}

Test(prometheus, every_bad_answer_has_a_text_of_its_own)
{
    static const struct {
        enum as_query_form form;
        const char *json;
        enum as_prometheus_outcome outcome;
        const char *error;
    } rows[] = {
        {AS_QUERY_NUMBER, VECTOR("[]"), AS_PROMETHEUS_NO_DATA, "query returned no data"},
        {AS_QUERY_PER_POD, VECTOR("[]"), AS_PROMETHEUS_NO_DATA, "query returned no data"},
        {AS_QUERY_NUMBER,
         VECTOR(
             "[" SERIES("", "1") "," SERIES("\"a\":\"b\"", "2") "," SERIES("\"a\":\"c\"", "3") "]"),
         AS_PROMETHEUS_UNUSABLE,
         "query returned 3 series, expected one: aggregate with sum() or the like"},
        {AS_QUERY_NUMBER, VECTOR("[" SERIES("", "NaN") "]"), AS_PROMETHEUS_UNUSABLE,
         "query returned NaN"},
        {AS_QUERY_NUMBER, VECTOR("[" SERIES("", "+Inf") "]"), AS_PROMETHEUS_UNUSABLE,
         "query returned +Inf"},
        {AS_QUERY_NUMBER, DATA("scalar", "[1,\"-Inf\"]"), AS_PROMETHEUS_UNUSABLE,
         "query returned -Inf"},
        {AS_QUERY_NUMBER, DATA("scalar", "[1,\"Inf\"]"), AS_PROMETHEUS_UNUSABLE,
         "query returned +Inf"},
        {AS_QUERY_PER_POD, VECTOR("[" POD("a", "1") "," POD("b", "NaN") "]"),
         AS_PROMETHEUS_UNUSABLE, "query returned NaN for pod `b`"},
        {AS_QUERY_NUMBER, DATA("matrix", "[]"), AS_PROMETHEUS_UNUSABLE,
         "query returned a range vector, expected an instant vector or a scalar"},
        {AS_QUERY_NUMBER, DATA("string", "[1,\"x\"]"), AS_PROMETHEUS_UNUSABLE,
         "query returned a string, expected an instant vector or a scalar"},
        {AS_QUERY_PER_POD, DATA("scalar", "[1,\"1\"]"), AS_PROMETHEUS_UNUSABLE,
         "query returned a scalar, expected one series a pod"},
        {AS_QUERY_PER_POD, VECTOR("[" SERIES("\"instance\":\"a\"", "1") "]"),
         AS_PROMETHEUS_UNUSABLE,
         "query returned a series without the label `pod`: aggregate by it"},
        {AS_QUERY_PER_POD, VECTOR("[" POD("", "1") "]"), AS_PROMETHEUS_UNUSABLE,
         "query returned a series without the label `pod`: aggregate by it"},
        {AS_QUERY_PER_POD, VECTOR("[" POD("b", "1") "," POD("a", "1") "," POD("b", "2") "]"),
         AS_PROMETHEUS_UNUSABLE, "query returned several series for pod `b`: aggregate by `pod`"},
        {AS_QUERY_PER_POD, VECTOR("[" POD("x\\n\\u0007y", "NaN") "]"), AS_PROMETHEUS_UNUSABLE,
         "query returned NaN for pod `x  y`"},
        {AS_QUERY_NUMBER,
         VECTOR("[{\"metric\":{},\"histogram\":[1,{\"count\":\"10\",\"sum\":\"3\"}]}]"),
         AS_PROMETHEUS_UNUSABLE,
         "query returned a native histogram, expected a number: use histogram_quantile() or the "
         "like"},
        {AS_QUERY_PER_POD, VECTOR("[{\"metric\":{\"pod\":\"a\"},\"histogram\":[1,{}]}]"),
         AS_PROMETHEUS_UNUSABLE,
         "query returned a native histogram for pod `a`, expected a number: use "
         "histogram_quantile() or the like"},
        {AS_QUERY_NUMBER,
         "{\"status\":\"success\",\"warnings\":[\"store a:\\n no reply\"],\"data\":{\"resultType\":"
         "\"vector\",\"result\":[" SERIES("", "1") "]}}",
         AS_PROMETHEUS_UNUSABLE, "query has warnings and may be incomplete: store a:  no reply"},
        {AS_QUERY_ANY,
         "{\"status\":\"success\",\"warnings\":[\"one\",\"two\"],\"data\":{\"resultType\":"
         "\"vector\",\"result\":[]}}",
         AS_PROMETHEUS_UNUSABLE, "query has warnings and may be incomplete: one (and more)"},
        {AS_QUERY_NUMBER,
         "{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"expanding series\"}",
         AS_PROMETHEUS_REFUSED, "Prometheus: execution: expanding series"},
        {AS_QUERY_NUMBER, "{\"status\":\"error\"}", AS_PROMETHEUS_REFUSED,
         "Prometheus: an error without a text"},
        {AS_QUERY_NUMBER, "<html>", AS_PROMETHEUS_INVALID,
         "Prometheus: not JSON: line 1, column 1: "},
        {AS_QUERY_NUMBER, "", AS_PROMETHEUS_INVALID, "Prometheus: not JSON: line 1, column 0: "},
        {AS_QUERY_NUMBER, VECTOR("[]") "x", AS_PROMETHEUS_INVALID, "Prometheus: not JSON: "},
        {AS_QUERY_NUMBER, "[]", AS_PROMETHEUS_INVALID,
         "Prometheus: not an answer to a query: no known status"},
        {AS_QUERY_NUMBER, "{}", AS_PROMETHEUS_INVALID,
         "Prometheus: not an answer to a query: no known status"},
        {AS_QUERY_NUMBER, "{\"status\":\"success\"}", AS_PROMETHEUS_INVALID,
         "Prometheus: not an answer to a query: no known data.resultType with a data.result"},
        {AS_QUERY_NUMBER, DATA("vector", "{}"), AS_PROMETHEUS_INVALID,
         "Prometheus: not an answer to a query: no known data.resultType with a data.result"},
        {AS_QUERY_NUMBER, DATA("tensor", "[]"), AS_PROMETHEUS_INVALID,
         "Prometheus: not an answer to a query: no known data.resultType with a data.result"},
        {AS_QUERY_NUMBER, VECTOR("[7]"), AS_PROMETHEUS_INVALID,
         "Prometheus: a sample without a value"},
        {AS_QUERY_NUMBER, VECTOR("[{\"value\":[1]}]"), AS_PROMETHEUS_INVALID,
         "Prometheus: a sample without a value"},
        {AS_QUERY_NUMBER, VECTOR("[{\"value\":[1,2]}]"), AS_PROMETHEUS_INVALID,
         "Prometheus: a sample without a value"},
        {AS_QUERY_NUMBER, DATA("scalar", "[]"), AS_PROMETHEUS_INVALID,
         "Prometheus: a sample without a value"},
        {AS_QUERY_NUMBER, DATA("scalar", "[1,\"0x10\"]"), AS_PROMETHEUS_INVALID,
         "Prometheus: a sample whose value is not a number"},
        {AS_QUERY_NUMBER, DATA("scalar", "[1,\"1e999\"]"), AS_PROMETHEUS_INVALID,
         "Prometheus: a sample whose value is not a number"},
        {AS_QUERY_PER_POD, VECTOR("[{\"metric\":{\"pod\":\"a\"},\"value\":[\"1\",\"1\"]}]"),
         AS_PROMETHEUS_INVALID, "Prometheus: a sample without a time"},
        {AS_QUERY_PER_POD, VECTOR("[{\"metric\":{\"pod\":\"a\"},\"value\":[1e300,\"1\"]}]"),
         AS_PROMETHEUS_INVALID, "Prometheus: a sample without a time"},
        {AS_QUERY_PER_POD, VECTOR("[{\"metric\":[],\"value\":[1,\"1\"]}]"), AS_PROMETHEUS_UNUSABLE,
         "query returned a series without the label `pod`: aggregate by it"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_query_result result;
        cr_expect_eq(decode(rows[i].form, rows[i].json, &result), rows[i].outcome, "row %zu", i);
        cr_assert_not_null(result.error, "row %zu", i);
        bool is_prefix = rows[i].error[strlen(rows[i].error) - 1] == ' ';
        cr_expect(is_prefix ? as_str_starts_with(result.error, rows[i].error)
                            : strcmp(result.error, rows[i].error) == 0,
                  "row %zu: %s", i, result.error);
        cr_expect_eq(result.sample_count, 0, "row %zu", i);
        cr_expect_null(result.samples, "row %zu", i);
    }
}

#define ANSWER(mark)                                                                               \
    "{\"status\":\"success\"," mark ",\"data\":{\"resultType\":\"vector\",\"result\":["            \
    "{\"metric\":{\"pod\":\"a\"},\"value\":[1435781451,\"280\"]}]},"                               \
    "\"stats\":{\"seriesFetched\":\"1\",\"executionTimeMsec\":2}}"

/* The forms of VictoriaMetrics, and marks of other types. */
Test(prometheus, an_answer_that_may_be_incomplete_is_unusable_in_every_form)
{
    static const char partial[] =
        "query has a partial answer (isPartial): a part of the storage did not answer";
    static const char warned[] = "query has warnings and may be incomplete: (no text)";
    static const struct {
        const char *json, *error;
    } rows[] = {
        {ANSWER("\"isPartial\":true"), partial},
        {ANSWER("\"isPartial\":\"true\""), partial},
        {ANSWER("\"isPartial\":\"false\""), partial},
        {ANSWER("\"isPartial\":0"), partial},
        {ANSWER("\"isPartial\":null"), partial},
        {ANSWER("\"isPartial\":[]"), partial},
        {ANSWER("\"isPartial\":{}"), partial},
        {ANSWER("\"warnings\":[],\"isPartial\":true"), partial},
        {ANSWER("\"warnings\":\"a store is down\""), warned},
        {ANSWER("\"warnings\":{}"), warned},
        {ANSWER("\"warnings\":true"), warned},
        {ANSWER("\"warnings\":[7]"), warned},
    };
    static const enum as_query_form forms[] = {AS_QUERY_NUMBER, AS_QUERY_PER_POD, AS_QUERY_ANY};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        for (size_t k = 0; k < AS_ARRAY_SIZE(forms); k++) {
            struct as_query_result result;
            cr_expect_eq(decode(forms[k], rows[i].json, &result), AS_PROMETHEUS_UNUSABLE, "%s",
                         rows[i].json);
            cr_assert_not_null(result.error, "%s", rows[i].json);
            cr_expect_str_eq(result.error, rows[i].error);
        }
    }
}

Test(prometheus, long_words_of_others_are_cut_between_characters)
{
    struct as_buf json = AS_BUF_INIT(100000);
    struct as_query_result result;
    as_buf_append_str(&json, "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"");
    for (int i = 0; i < 5000; i++)
        as_buf_append_str(&json, "\xE2\x82\xAC");
    as_buf_append_str(&json, "\"}");
    cr_expect_eq(decode(AS_QUERY_NUMBER, json.data, &result), AS_PROMETHEUS_REFUSED);
    cr_expect_lt(strlen(result.error), AS_QUERY_ERROR_MAX);
    cr_expect_gt(strlen(result.error), AS_QUERY_ERROR_MAX - 5);
    cr_expect(as_str_is_utf8(result.error, strlen(result.error)));
    as_buf_deinit(&json);
}

static char *make_pods(size_t count)
{
    struct as_buf json = AS_BUF_INIT(16 << 20);
    size_t size;
    as_buf_append_str(&json,
                      "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[");
    for (size_t i = 0; i < count; i++)
        as_buf_printf(&json, "%s{\"metric\":{\"pod\":\"p-%zu\"},\"value\":[1,\"1\"]}", i ? "," : "",
                      i);
    as_buf_append_str(&json, "]}}");
    cr_assert_eq(as_buf_check(&json), 0);
    return as_buf_take(&json, &size);
}

Test(prometheus, as_many_samples_as_are_allowed)
{
    struct as_query_result result;
    AS_CLEANUP(as_free_p) char *most = make_pods(AS_SAMPLES_MAX);
    cr_expect_eq(decode(AS_QUERY_PER_POD, most, &result), AS_PROMETHEUS_ANSWERED);
    cr_expect_eq(result.sample_count, AS_SAMPLES_MAX);
    AS_CLEANUP(as_free_p) char *more = make_pods(AS_SAMPLES_MAX + 1);
    cr_expect_eq(decode(AS_QUERY_PER_POD, more, &result), AS_PROMETHEUS_UNUSABLE);
    cr_expect_str_eq(result.error, "query returned 20001 series, at most 20000 are taken");
}

Test(prometheus, an_answer_that_would_take_too_much_memory_is_refused)
{
    struct as_buf json = AS_BUF_INIT(8 << 20);
    struct as_query_result result;
    as_buf_append_char(&json, '[');
    for (int i = 0; i < 1000000; i++)
        as_buf_append_str(&json, i ? ",[]" : "[]");
    as_buf_append_char(&json, ']');
    cr_expect_eq(decode(AS_QUERY_NUMBER, json.data, &result), AS_PROMETHEUS_INVALID);
    cr_expect_str_eq(result.error, "Prometheus: too many values for a document of this size");
    as_buf_deinit(&json);
}

Test(prometheus, what_another_status_says)
{
    static const struct {
        const char *json, *text;
    } rows[] = {
        {"{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"1:5: parse\\nerror\"}",
         "bad_data: 1:5: parse error"},
        {"{\"status\":\"error\",\"error\":\"no\"}", "no"},
        {"{\"status\":\"success\"}", ""},
        {"Unauthorized\n", ""},
        {"", ""},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char text[AS_QUERY_ERROR_MAX];
        as_prometheus_decode_error(rows[i].json, strlen(rows[i].json), text);
        cr_expect_str_eq(text, rows[i].text, "row %zu: %s", i, text);
    }
}
