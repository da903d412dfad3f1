/*
 * Any text as a template: read or refused; its expansion stays within the buffer's maximum. A query
 * keeps its structure for all label values: only its strings change.
 */
#include <errno.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/model/template.h>

#include "fuzz.h"

#define RESULT_MAX 64

static void check_template(const struct as_template *template, const char *text)
{
    const struct as_label pairs[] = {{"k8s.io/app", "web"}, {"name", "x"}, {"namespace", text}};
    struct as_labels *labels = NULL;
    struct as_buf out = AS_BUF_INIT(RESULT_MAX);
    struct as_error error = AS_ERROR_INIT;

    FUZZ_CHECK(strcmp(as_template_get_text(template), text) == 0);
    FUZZ_CHECK(as_labels_new(pairs, AS_ARRAY_SIZE(pairs), &labels) == 0);
    int r = as_template_expand(template, labels, labels, &out, &error);
    FUZZ_CHECK(r == 0 || r == -ENOENT || r == -EMSGSIZE);
    FUZZ_CHECK(out.size <= RESULT_MAX && (r == 0 || *error.text));
    if (r == 0 && as_template_is_plain(template))
        FUZZ_CHECK(strcmp(out.data ? out.data : "", text) == 0);
    as_buf_deinit(&out);
    as_labels_free(labels);
}

/* What stands outside of the literals and comments of a query; a `"` where a literal was. */
static void append_skeleton(const char *query, struct as_buf *out)
{
    char quote = '\0';
    for (const char *at = query; *at; at++) {
        if (quote) {
            if (*at == '\\' && quote != '`' && at[1])
                at++;
            else if (*at == quote)
                quote = '\0';
            continue;
        }
        if (*at == '#')
            at += strcspn(at, "\n");
        else if (strchr("\"'`", *at))
            quote = *at;
        if (!*at)
            break;
        as_buf_append_char(out, quote ? '"' : *at);
    }
    FUZZ_CHECK(!quote);
}

static void fill(const struct as_template *template, const char *value, struct as_buf *skeleton)
{
    const struct as_label pairs[] = {{"k8s.io/app", value}, {"name", value}, {"namespace", value}};
    struct as_labels *labels = NULL;
    struct as_buf out = AS_BUF_INIT((size_t)1 << 20);
    struct as_error error = AS_ERROR_INIT;

    FUZZ_CHECK(as_labels_new(pairs, AS_ARRAY_SIZE(pairs), &labels) == 0);
    if (as_template_expand_promql(template, labels, labels, &out, &error) == 0 && out.size > 0)
        append_skeleton(out.data, skeleton);
    as_buf_deinit(&out);
    as_labels_free(labels);
}

static void check_query(const struct as_template *template, const char *text)
{
    const char *const values[] = {"\"", "'", "\\", "\n", "\"} or up{a=\"", "`#'\\\"", text};
    struct as_buf harmless = AS_BUF_INIT((size_t)1 << 20);
    struct as_error error = AS_ERROR_INIT;

    if (as_template_check_promql(template, &error) < 0) {
        FUZZ_CHECK(*error.text);
        return;
    }
    fill(template, "x", &harmless);
    for (size_t i = 0; *text && i < AS_ARRAY_SIZE(values); i++) {
        struct as_buf other = AS_BUF_INIT((size_t)1 << 20);
        fill(template, values[i], &other);
        FUZZ_CHECK(as_buf_check(&other) == 0 && other.size == harmless.size);
        FUZZ_CHECK(other.size == 0 || memcmp(other.data, harmless.data, other.size) == 0);
        as_buf_deinit(&other);
    }
    as_buf_deinit(&harmless);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AS_CLEANUP(as_free_p) char *text = as_xstrndup((const char *)data, size);
    struct as_template *template = NULL;
    struct as_error error = AS_ERROR_INIT;
    int r = as_template_new(text, &template, &error);

    if (r < 0) {
        FUZZ_CHECK(r == -EINVAL && *error.text && !template);
        return 0;
    }
    check_template(template, text);
    check_query(template, text);
    as_template_free(template);
    return 0;
}
