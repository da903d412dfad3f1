/*
 * Results of tests for programs: JUnit's XML, as CI systems read it, and JSON.
 *
 * XML 1.0 cannot represent most control characters: they become '?', as does invalid UTF-8.
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_writer.h>

#include "test_print.h"

#define JSON_MAX ((size_t)64 * 1024 * 1024)

/* --- XML --- */

/* Number of bytes at `at` that XML cannot represent: a control character, invalid UTF-8, or U+FFFE
 * or U+FFFF. 0: the character is allowed. */
static size_t count_unwritable(const unsigned char *at, bool is_utf8)
{
    if (*at < 0x20 || *at == 0x7F || (*at >= 0x80 && !is_utf8))
        return 1;
    return at[0] == 0xEF && at[1] == 0xBF && (at[2] == 0xBE || at[2] == 0xBF) ? 3 : 0;
}

/* Newlines and quotes are literal in a text, but not in an attribute. */
static void put_xml(FILE *out, const char *text, const char *kept)
{
    static const char special[] = "&<>\"\n\t";
    static const char *const written[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#10;", "&#9;"};
    const bool is_utf8 = as_str_is_utf8(text, strlen(text));
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        const char *found = strchr(kept, *at) ? NULL : strchr(special, *at);
        const size_t bad = found || strchr(kept, *at) ? 0 : count_unwritable(at, is_utf8);
        if (found)
            fputs(written[found - special], out);
        else
            fputc(bad ? '?' : *at, out);
        at += bad ? bad - 1 : 0;
    }
}

static void put_attribute(FILE *out, const char *name, const char *value)
{
    fprintf(out, " %s=\"", name);
    put_xml(out, value, "");
    fputc('"', out);
}

static void put_failure(const struct test_file *file, const struct test_failure *failure, FILE *out)
{
    AS_CLEANUP(as_free_p) char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        abort();
    test_print_failure(file, failure, false, memory);
    if (fclose(memory) != 0)
        abort();
    const struct test_difference *first = &failure->differences[0];
    AS_CLEANUP(as_free_p)
    char *message = as_xasprintf("%s: expected %s, got %s", test_aspect_get_word(first->aspect),
                                 first->expected, first->got);
    fputs("      <failure", out);
    put_attribute(out, "message", message);
    fputc('>', out);
    put_xml(out, text, "\"\n");
    fputs("</failure>\n", out);
}

static void put_suite(const struct test_file *file, FILE *out)
{
    size_t failed = 0;
    double seconds = 0;
    for (size_t i = 0; i < file->count; i++) {
        failed += file->results[i].failure_count > 0;
        seconds += file->seconds[i];
    }
    fputs("  <testsuite", out);
    put_attribute(out, "name", file->tests->path);
    fprintf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"0\" time=\"%.6f\">\n", file->count,
            failed, seconds);
    for (size_t i = 0; i < file->count; i++) {
        const struct test_result *result = &file->results[i];
        fputs("    <testcase", out);
        put_attribute(out, "classname", file->tests->path);
        put_attribute(out, "name", result->test->name);
        fprintf(out, " time=\"%.6f\"%s>\n", file->seconds[i], result->failure_count > 0 ? "" : "/");
        for (size_t j = 0; j < result->failure_count; j++)
            put_failure(file, &result->failures[j], out);
        if (result->failure_count > 0)
            fputs("    </testcase>\n", out);
    }
    fputs("  </testsuite>\n", out);
}

void test_print_junit(const struct test_file *files, size_t count, FILE *out)
{
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n", out);
    for (size_t i = 0; i < count; i++)
        put_suite(&files[i], out);
    fputs("</testsuites>\n", out);
}

/* --- JSON --- */

static void write_differences(struct as_json_writer *json, const struct test_failure *failure)
{
    as_json_write_key(json, "differences");
    as_json_begin_object(json);
    for (size_t i = 0; i < failure->difference_count; i++) {
        const struct test_difference *difference = &failure->differences[i];
        as_json_write_key(json, test_aspect_get_word(difference->aspect));
        as_json_begin_object(json);
        as_json_write_member(json, "expected", difference->expected);
        as_json_write_member(json, "got", difference->got);
        as_json_end_object(json);
    }
    as_json_end_object(json);
}

static void write_subject(struct as_json_writer *json, const struct as_rule_test_event *event)
{
    if (event->kind != AS_RULE_TEST_EXPECT_ALERT) {
        as_json_write_member(json, "target", event->target);
        return;
    }
    const struct as_labels *labels = event->alert.labels;
    as_json_write_key(json, "alert");
    as_json_begin_object(json);
    for (uint32_t i = 0; i < labels->count; i++)
        as_json_write_member(json, labels->items[i].name, labels->items[i].value);
    as_json_end_object(json);
}

static void write_failure(struct as_json_writer *json, const struct test_failure *failure)
{
    char at[AS_DURATION_SIZE];
    as_duration_print(failure->event->at_us, at);
    as_json_begin_object(json);
    as_json_write_member_i64(json, "line", failure->event->line);
    as_json_write_member(json, "at", at);
    write_subject(json, failure->event);
    write_differences(json, failure);
    as_json_write_key(json, "history");
    as_json_begin_array(json);
    for (size_t i = 0; i < failure->history_count; i++)
        as_json_write_string(json, failure->history[i]);
    as_json_end_array(json);
    if (failure->why)
        as_json_write_member(json, "why", failure->why);
    as_json_end_object(json);
}

static void write_test(struct as_json_writer *json, const struct test_result *result)
{
    as_json_begin_object(json);
    as_json_write_member(json, "name", result->test->name);
    as_json_write_member_i64(json, "line", result->test->line);
    as_json_write_member_bool(json, "passed", result->failure_count == 0);
    as_json_write_key(json, "failures");
    as_json_begin_array(json);
    for (size_t i = 0; i < result->failure_count; i++)
        write_failure(json, &result->failures[i]);
    as_json_end_array(json);
    as_json_write_key(json, "unanswered");
    as_json_begin_array(json);
    for (size_t i = 0; i < result->unanswered_count; i++)
        as_json_write_string(json, result->unanswered[i]);
    as_json_end_array(json);
    as_json_end_object(json);
}

void test_print_json(const struct test_file *files, size_t count, FILE *out)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(JSON_MAX);
    struct as_json_writer json;
    as_json_init(&json, &text, AS_JSON_ANY_ORDER);
    as_json_begin_array(&json);
    for (size_t i = 0; i < count; i++) {
        as_json_begin_object(&json);
        as_json_write_member(&json, "file", files[i].tests->path);
        as_json_write_member_bool(&json, "passed", !test_file_has_failed(&files[i]));
        as_json_write_key(&json, "tests");
        as_json_begin_array(&json);
        for (size_t j = 0; j < files[i].count; j++)
            write_test(&json, &files[i].results[j]);
        as_json_end_array(&json);
        as_json_end_object(&json);
    }
    as_json_end_array(&json);
    as_buf_append_char(&text, '\n');
    as_safe_json_put(out, text.data, text.size);
}
