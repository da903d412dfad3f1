/*
 * Templates of PromQL queries: where in a query a template may stand, and how its value is escaped,
 * so that a label can only be the value of a string. Reads just enough PromQL to know what is
 * inside a string literal (promql/parser/lex.go): the quotes, the escapes and the comments.
 * Prometheus checks all else.
 */
#include <alertscaler/model/template_parts.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

struct lexer {
    char quote;        /* of the present string literal; NUL: none */
    size_t quote_at;   /* where it was opened */
    bool is_comment;   /* up to the end of the line */
    bool is_escape;    /* after a backslash */
    unsigned expected; /* digits of an escape still to come */
};

/* The number of digits after the character that follows a backslash. */
static unsigned count_digits(char c)
{
    switch (c) {
    case 'x': return 2;
    case 'u': return 4;
    case 'U': return 8;
    default: return c >= '0' && c <= '7' ? 2 : 0;
    }
}

static void read_in_literal(struct lexer *lexer, char c)
{
    if (lexer->is_escape) {
        lexer->is_escape = false;
        lexer->expected = count_digits(c);
    } else if (c == lexer->quote) {
        lexer->quote = '\0';
        lexer->expected = 0;
    } else if (c == '\\' && lexer->quote != '`') {
        lexer->is_escape = true;
    } else if (lexer->expected > 0) {
        lexer->expected--;
    }
}

/* False at a line's end inside a literal in quotes: PromQL does not allow it. */
static bool read_text(struct lexer *lexer, const struct template_part *part)
{
    for (const char *at = part->text; *at; at++) {
        if (lexer->quote && lexer->quote != '`' && *at == '\n')
            return false;
        if (lexer->quote) {
            read_in_literal(lexer, *at);
        } else if (lexer->is_comment) {
            lexer->is_comment = *at != '\n';
        } else if (*at == '#') {
            lexer->is_comment = true;
        } else if (*at == '"' || *at == '\'' || *at == '`') {
            lexer->quote = *at;
            lexer->quote_at = part->offset + (size_t)(at - part->text);
        }
    }
    return true;
}

static int fail(size_t offset, const char *text, struct as_error *error)
{
    as_error_set(error, "offset %zu: %s", offset, text);
    return -EINVAL;
}

static int check_place(const struct lexer *lexer, size_t offset, struct as_error *error)
{
    if (!lexer->quote)
        return fail(offset,
                    "a template stands inside a string of the query, as in "
                    "{namespace=\"{{ .Labels.namespace }}\"}: labels are input, not commands",
                    error);
    if (lexer->quote == '`')
        return fail(offset, "between backticks a template cannot be escaped: use double quotes",
                    error);
    if (lexer->is_escape || lexer->expected > 0)
        return fail(offset, "a template cannot be a part of an escape", error);
    return 0;
}

int as_template_check_promql(const struct as_template *template, struct as_error *error)
{
    struct lexer lexer = {.quote = '\0'};

    for (size_t i = 0; i < template->part_count; i++) {
        const struct template_part *part = &template->parts[i];
        bool is_line = part->kind != TEMPLATE_TEXT || read_text(&lexer, part);
        int status = part->kind != TEMPLATE_TEXT ? check_place(&lexer, part->offset, error) : 0;
        if (status < 0)
            return status;
        if (!is_line)
            break;
    }
    if (lexer.quote)
        return fail(lexer.quote_at, "the quote opened here is not closed", error);
    return 0;
}

static void append_escaped(struct as_buf *out, const char *value, char quote)
{
    for (; *value; value++) {
        if (*value == '\n') {
            as_buf_append_str(out, "\\n");
            continue;
        }
        if (*value == quote || *value == '\\')
            as_buf_append_char(out, '\\');
        as_buf_append_char(out, *value);
    }
}

int as_template_expand_promql(const struct as_template *template, const struct as_labels *labels,
                              const struct as_labels *annotations, struct as_buf *out,
                              struct as_error *error)
{
    struct lexer lexer = {.quote = '\0'};

    for (size_t i = 0; i < template->part_count; i++) {
        const struct template_part *part = &template->parts[i];
        const char *value = template_part_get(part, labels, annotations);
        if (!*value)
            return template_fail_absent(part, error);
        if (part->kind == TEMPLATE_TEXT) {
            (void)read_text(&lexer, part);
            as_buf_append_str(out, value);
            continue;
        }
        assert(lexer.quote && lexer.quote != '`');
        append_escaped(out, value, lexer.quote);
    }
    return template_check_size(out, error);
}
