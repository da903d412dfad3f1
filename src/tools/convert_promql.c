/*
 * Texts as parts of PromQL. In a rule file `{{` begins a template, so it must not come out of a
 * query or a label that is converted: inside a string it is written as `{\x7b`; between backticks,
 * where there are no escapes, the string is written anew in double quotes.
 */
#include <ctype.h>
#include <string.h>

#include <alertscaler/base/error.h>
#include <alertscaler/model/query.h>
#include <alertscaler/model/template.h>

#include "convert_private.h"

#define SECOND_BRACE "\\x7b"

static void append_in_string(struct as_buf *out, char before, char c)
{
    if (c == '{' && before == '{')
        as_buf_append_str(out, SECOND_BRACE);
    else if (c == '\n')
        as_buf_append_str(out, "\\n");
    else if ((unsigned char)c < 0x20 || c == 0x7F)
        as_buf_printf(out, "\\x%02x", (unsigned)(unsigned char)c);
    else if (c == '"' || c == '\\')
        as_buf_printf(out, "\\%c", c);
    else
        as_buf_append_char(out, c);
}

void promql_append_escaped(struct as_buf *out, const char *value)
{
    for (size_t i = 0; value[i]; i++)
        append_in_string(out, i > 0 ? value[i - 1] : '\0', value[i]);
}

void promql_append_string(struct as_buf *out, const char *value)
{
    as_buf_append_char(out, '"');
    promql_append_escaped(out, value);
    as_buf_append_char(out, '"');
}

void promql_append_literal(struct as_buf *out, const char *value)
{
    for (; *value; value++) {
        if (strchr("\\.+*?()|[]{}^$", *value))
            as_buf_append_char(out, '\\');
        as_buf_append_char(out, *value);
    }
}

static bool is_word(const char *text, bool may_have_colons)
{
    for (const char *at = text; *at; at++) {
        const bool is_letter = isalpha((unsigned char)*at) || *at == '_';
        const bool is_digit = isdigit((unsigned char)*at) && at > text;
        if (!is_letter && !is_digit && !(may_have_colons && *at == ':'))
            return false;
    }
    return *text;
}

bool promql_is_label(const char *text)
{
    return is_word(text, false);
}

bool promql_is_metric(const char *text)
{
    return is_word(text, true);
}

/* Appends a string of the query, from its quote on; returns what is behind it. NULL: it has no end.
 */
static const char *protect_string(struct as_buf *out, const char *at)
{
    const char quote = *at++;
    const bool is_raw = quote == '`';
    as_buf_append_char(out, is_raw ? '"' : quote);
    for (; *at != quote; at++) {
        if (!*at || (*at == '\n' && !is_raw))
            return NULL;
        if (is_raw) {
            append_in_string(out, at[-1] == '{' && at[0] == '{' ? '{' : '\0', *at);
        } else if (*at == '{' && at[-1] == '{') {
            as_buf_append_str(out, SECOND_BRACE);
        } else {
            as_buf_append_char(out, *at);
            if (*at == '\\' && at[1] && at[1] != '\n')
                as_buf_append_char(out, *++at);
        }
    }
    as_buf_append_char(out, is_raw ? '"' : quote);
    return at + 1;
}

/* A comment is left out: it may hold anything. */
static const char *skip_comment(const char *at)
{
    return at + strcspn(at, "\n");
}

static const char *protect(struct as_buf *out, const char *at, const char **why_out)
{
    while (at && *at) {
        if (*at == '"' || *at == '\'' || *at == '`') {
            at = protect_string(out, at);
            *why_out = "a quote in it is not closed";
        } else if (*at == '#') {
            at = skip_comment(at);
        } else if (at[0] == '{' && at[1] == '{') {
            *why_out = "`{{` stands outside a string, which is no PromQL";
            return NULL;
        } else {
            as_buf_append_char(out, *at++);
        }
    }
    return at;
}

const char *promql_protect(struct convert *convert, const char *query, const char **why_out)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf out = AS_BUF_INIT(2 * AS_QUERY_MAX);
    AS_CLEANUP(as_template_free_p) struct as_template *template = NULL;
    struct as_error error = AS_ERROR_INIT;
    if (!protect(&out, query, why_out))
        return NULL;
    while (out.size > 0 && isspace((unsigned char)out.data[out.size - 1]))
        out.data[--out.size] = '\0';
    const char *text = out.size ? out.data + strspn(out.data, " \t\r\n") : "";
    if (as_buf_check(&out) < 0 || strlen(text) > AS_QUERY_MAX) {
        *why_out = convert_text(convert, "a query has at most %d bytes", AS_QUERY_MAX);
        return NULL;
    }
    if (!*text) {
        *why_out = "it is empty";
        return NULL;
    }
    if (as_template_new(text, &template, &error) < 0 ||
        as_template_check_promql(template, &error) < 0) {
        *why_out = convert_text(convert, "%s", error.text);
        return NULL;
    }
    return as_arena_strdup(&convert->arena, text);
}
