/*
 * Characters that could control a terminal, forge a line or show a text in another order: no output
 * for people has them raw. One table, over every kind of output.
 */
#include <alertscaler/base/safe_text.h>

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/runtime/metrics.h>
#include <alertscaler/ui/chart.h>

#include "ui/html.h"

/* `terminal`: as a terminal shows it; `escape`: in the log and in JSON; `label`: in metrics. */
static const struct {
    const char *text, *terminal, *escape, *label;
} rows[] = {
    {"\x1b", "\\x1b", "\\u001b", "\\\\u001b"},
    {"\x08", "\\x08", "\\u0008", "\\\\u0008"},
    {"\x7f", "\\x7f", "\\u007f", "\\\\u007f"},
    {"\xc2\x80", "\\x80", "\\u0080", "\\\\u0080"},
    {"\xc2\x9b", "\\x9b", "\\u009b", "\\\\u009b"}, /* CSI */
    {"\xc2\x9f", "\\x9f", "\\u009f", "\\\\u009f"},
    {"\x9b", "\\x9b", "\\ufffd", "\\\\x9b"}, /* CSI of eight-bit terminals; not UTF-8 */
    {"\xd8\x9c", "\\u061c", "\\u061c", "\\\\u061c"},
    {"\xe2\x80\x8e", "\\u200e", "\\u200e", "\\\\u200e"},
    {"\xe2\x80\x8f", "\\u200f", "\\u200f", "\\\\u200f"},
    {"\xe2\x80\xa8", "\\u2028", "\\u2028", "\\\\u2028"},
    {"\xe2\x80\xaa", "\\u202a", "\\u202a", "\\\\u202a"},
    {"\xe2\x80\xae", "\\u202e", "\\u202e", "\\\\u202e"},
    {"\xe2\x81\xa6", "\\u2066", "\\u2066", "\\\\u2066"},
    {"\xe2\x81\xa9", "\\u2069", "\\u2069", "\\\\u2069"},
    {"\xef\xbb\xbf", "\\ufeff", "\\ufeff", "\\\\ufeff"},
    {"\xef\xbf\xbe", "\\ufffe", "\\ufffe", "\\\\ufffe"},
    {"\xef\xbf\xbf", "\\uffff", "\\uffff", "\\\\uffff"},
};

/* Others stay: beside the ranges, letters of right-to-left scripts, and what browsers escape. */
static const char *const safe[] = {
    "\xc2\xa0",     "\xd8\x9b",     "\xd7\x90",     "\xe2\x80\x8d",     "\xe2\x80\xaf",
    "\xe2\x81\xa5", "\xe2\x81\xaa", "\xef\xbf\xbd", "\xf0\x9f\x98\x80", "a",
};

#define REPLACEMENT "\xef\xbf\xbd"

typedef char *write_fn(const char *text);

static char *take(struct as_buf *buf)
{
    char *text = as_xstrdup(buf->data ? buf->data : "");
    as_buf_deinit(buf);
    return text;
}

static char *write_page(const char *text)
{
    struct as_buf out = AS_BUF_INIT(1000);
    html_text(&out, text);
    return take(&out);
}

static char *write_chart(const char *text)
{
    const struct as_timeline line = {0};
    const struct as_chart chart = {
        .title = text, .subtitle = "s", .unit = "u", .to = 1000, .after = &line};
    struct as_buf out = AS_BUF_INIT(100000);
    as_chart_print_svg(&chart, &out);
    return take(&out);
}

static char *write_metrics(const char *text)
{
    struct as_metrics *metrics = as_metrics_new();
    struct as_buf out = AS_BUF_INIT(1000000);
    const struct as_view view = {.config_digest = ""};
    as_metrics_on_source(metrics, text, "ok", 1);
    as_metrics_print(metrics, &view, AS_METRICS_TEXT, &out);
    as_metrics_free(metrics);
    return take(&out);
}

static char *write_log(const char *text)
{
    char line[4096] = "";
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    as_log_configure(AS_LOG_INFO, AS_LOG_LOGFMT, ends[1]);
    as_log(AS_LOG_INFO, "m", AS_F("f", text));
    as_log_configure(AS_LOG_INFO, AS_LOG_JSON, ends[1]);
    as_log(AS_LOG_INFO, "m", AS_F("f", text));
    as_log_configure(AS_LOG_INFO, AS_LOG_LOGFMT, STDERR_FILENO);
    cr_assert_gt(read(ends[0], line, sizeof(line) - 1), 0);
    close(ends[0]);
    close(ends[1]);
    return as_xstrdup(line);
}

static char *write_terminal(const char *text)
{
    return as_safe_text_take(as_xstrdup(text));
}

static char *write_lines(const char *text)
{
    char *out = NULL;
    size_t size;
    FILE *file = open_memstream(&out, &size);
    as_safe_text_put_lines(file, text);
    cr_assert_eq(fclose(file), 0);
    return out;
}

static char *write_json(const char *text)
{
    char *json = as_xasprintf("{\n\t\"a\": \"%s\"}", text), *out = NULL;
    size_t size;
    FILE *file = open_memstream(&out, &size);
    as_safe_json_put(file, json, strlen(json));
    cr_assert_eq(fclose(file), 0);
    free(json);
    return out;
}

enum form { FORM_REPLACED, FORM_TERMINAL, FORM_ESCAPE, FORM_LABEL };

static const struct {
    const char *name;
    write_fn *write;
    enum form form;
} outputs[] = {
    {"page", write_page, FORM_REPLACED},         {"chart", write_chart, FORM_REPLACED},
    {"metrics", write_metrics, FORM_LABEL},      {"log", write_log, FORM_ESCAPE},
    {"terminal", write_terminal, FORM_TERMINAL}, {"lines", write_lines, FORM_TERMINAL},
    {"json", write_json, FORM_ESCAPE},
};

static const char *get_form(enum form form, size_t row)
{
    const char *const forms[] = {[FORM_REPLACED] = REPLACEMENT,
                                 [FORM_TERMINAL] = rows[row].terminal,
                                 [FORM_ESCAPE] = rows[row].escape,
                                 [FORM_LABEL] = rows[row].label};
    return forms[form];
}

Test(unsafe, no_output_has_an_unsafe_character)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(outputs); i++) {
        for (size_t k = 0; k < AS_ARRAY_SIZE(rows); k++) {
            char *text = as_xasprintf("<%s>", rows[k].text);
            char *out = outputs[i].write(text + 1); /* in a chart and a page "<" is escaped */
            const char *wanted = get_form(outputs[i].form, k);
            cr_expect(strstr(out, wanted), "%s: %s is not in %s", outputs[i].name, wanted, out);
            cr_expect_not(strstr(out, rows[k].text), "%s: row %zu is raw", outputs[i].name, k);
            free(out);
            free(text);
        }
    }
}

Test(unsafe, other_characters_stay)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(outputs); i++) {
        for (size_t k = 0; k < AS_ARRAY_SIZE(safe); k++) {
            char *out = outputs[i].write(safe[k]);
            cr_expect(strstr(out, safe[k]), "%s: safe %zu: %s", outputs[i].name, k, out);
            free(out);
        }
    }
}

Test(unsafe, lines_keep_newlines_and_tabs)
{
    char *out = write_lines("a\n\tb\r");
    cr_expect_str_eq(out, "a\n\tb\\x0d");
    free(out);
    out = write_terminal("a\n\tb");
    cr_expect_str_eq(out, "a\\x0a\\x09b");
    free(out);
}

/* A chart and JSON stay well-formed, and JSON the same document. */
Test(unsafe, escaped_json_is_the_same_document)
{
    for (size_t k = 0; k < AS_ARRAY_SIZE(rows); k++) {
        if ((unsigned char)rows[k].text[0] < 0x20 || !strcmp(rows[k].text, "\x9b"))
            continue; /* no JSON */
        char *out = write_json(rows[k].text);
        json_t *json = json_loads(out, 0, NULL);
        cr_assert(json, "%s", out);
        cr_expect_str_eq(json_string_value(json_object_get(json, "a")), rows[k].text);
        json_decref(json);
        free(out);
    }
}

Test(unsafe, a_cut_character_is_read_within_its_text)
{
    static const char *const texts[] = {"\xe2\x80", "\xc2", "\xf0\x9f\x98"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(texts); i++) {
        const size_t size = strlen(texts[i]);
        char *copy = as_xmalloc(size);
        memcpy(copy, texts[i], size);
        const struct as_safe_char read = as_safe_char_read(copy, size);
        cr_expect(read.is_unsafe && !read.is_valid);
        cr_expect_eq(read.size, 1);
        free(copy);
    }
}
