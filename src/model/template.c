/*
 * Templates of target addresses: a list of parts, each plain text or the name of a label or an
 * annotation. The syntax is a small part of Go's text/template; the rest of it is an error, never
 * plain text.
 */
#include <alertscaler/model/template.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

struct reader {
    const char *start;
    const char *at;
    struct as_error *error;
};

static int template_fail(const struct reader *reader, const char *at, const char *expected)
{
    as_error_set(reader->error, "offset %zu: %s", (size_t)(at - reader->start), expected);
    return -EINVAL;
}

static bool is_name_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static void template_skip_space(struct reader *reader)
{
    reader->at += strspn(reader->at, " \t\r\n");
}

static bool template_take(struct reader *reader, const char *text)
{
    if (!as_str_starts_with(reader->at, text))
        return false;
    reader->at += strlen(text);
    return true;
}

/* .Labels or .Annotations */
static bool template_take_map(struct reader *reader, enum template_part_kind *kind_out)
{
    const char *at = reader->at;
    bool is_label = template_take(reader, ".Labels");

    if ((is_label || template_take(reader, ".Annotations")) && !is_name_character(*reader->at)) {
        *kind_out = is_label ? TEMPLATE_LABEL : TEMPLATE_ANNOTATION;
        return true;
    }
    reader->at = at;
    return false;
}

/* A name in double quotes, with the escapes \" and \\; `reader` is at the opening quote. */
static int parse_quoted_name(struct reader *reader, char **name_out)
{
    const char *start = reader->at++;
    AS_CLEANUP(as_free_p) char *name = as_xmalloc(strlen(start));
    char *out = name;

    while (*reader->at != '"') {
        if (*reader->at == '\0')
            return template_fail(reader, start, "the quote opened here is not closed");
        if (*reader->at == '\\' && !strchr("\"\\", *++reader->at))
            return template_fail(reader, reader->at - 1,
                                 "in a quoted name only \\\" and \\\\ are escapes");
        if (*reader->at != '\0')
            *out++ = *reader->at++;
    }
    reader->at++;
    *out = '\0';
    if (out == name)
        return template_fail(reader, start, "expected a name between the quotes");
    *name_out = name;
    name = NULL;
    return 0;
}

static int parse_reference(struct reader *reader, struct template_part *part)
{
    static const char expected[] = "expected .Labels.name, .Annotations.name, index .Labels "
                                   "\"name\" or index .Annotations \"name\"";
    const char *start = reader->at;

    if (template_take(reader, "index") && strchr(" \t\r\n", *reader->at)) {
        template_skip_space(reader);
        if (!template_take_map(reader, &part->kind))
            return template_fail(reader, reader->at,
                                 "expected .Labels or .Annotations after index");
        template_skip_space(reader);
        if (*reader->at != '"')
            return template_fail(reader, reader->at, "expected a name in double quotes");
        return parse_quoted_name(reader, &part->text);
    }
    reader->at = start;
    if (!template_take_map(reader, &part->kind) || !template_take(reader, "."))
        return template_fail(reader, start, expected);

    const char *name = reader->at;
    while (is_name_character(*reader->at))
        reader->at++;
    if (reader->at == name || (*name >= '0' && *name <= '9'))
        return template_fail(reader, name,
                             "expected a name of letters, digits and _ (others: use index)");
    part->text = as_xstrndup(name, (size_t)(reader->at - name));
    return 0;
}

/* `reader` is after "{{". */
static int parse_action(struct reader *reader, struct template_part *part)
{
    template_skip_space(reader);
    int status = parse_reference(reader, part);
    if (status < 0)
        return status;
    template_skip_space(reader);
    if (!template_take(reader, "}}"))
        return template_fail(reader, reader->at,
                             *reader->at == '|'
                                 ? "pipes and functions are not supported: expected }}"
                                 : "expected }}");
    return 0;
}

static int template_parse(struct as_template *template, struct reader *reader)
{
    size_t capacity = 0;

    while (*reader->at) {
        template->parts =
            as_xgrow(template->parts, template->part_count, &capacity, sizeof(*template->parts));
        struct template_part *part = &template->parts[template->part_count++];
        *part = (struct template_part){.kind = TEMPLATE_TEXT,
                                       .offset = (size_t)(reader->at - reader->start)};
        if (template_take(reader, "{{")) {
            int status = parse_action(reader, part);
            if (status < 0)
                return status;
        } else {
            const char *action = strstr(reader->at, "{{");
            size_t size = action ? (size_t)(action - reader->at) : strlen(reader->at);
            part->text = as_xstrndup(reader->at, size);
            reader->at += size;
        }
    }
    return 0;
}

int as_template_new(const char *text, struct as_template **template_out, struct as_error *error)
{
    AS_CLEANUP(as_template_free_p) struct as_template *template = as_xcalloc(1, sizeof(*template));
    struct reader reader = {text, text, error};

    template->text = as_xstrdup(text);
    int status = template_parse(template, &reader);
    if (status < 0)
        return status;
    *template_out = template;
    template = NULL;
    return 0;
}

struct as_template *as_template_free(struct as_template *template)
{
    if (!template)
        return NULL;
    for (size_t i = 0; i < template->part_count; i++)
        free(template->parts[i].text);
    free(template->parts);
    free(template->text);
    free(template);
    return NULL;
}

bool as_template_is_plain(const struct as_template *template)
{
    for (size_t i = 0; i < template->part_count; i++) {
        if (template->parts[i].kind != TEMPLATE_TEXT)
            return false;
    }
    return true;
}

const char *as_template_get_text(const struct as_template *template)
{
    return template->text;
}

const char *as_template_find_next(const struct as_template *template, size_t *at_io,
                                  enum as_template_map *map_out)
{
    while (*at_io < template->part_count) {
        const struct template_part *part = &template->parts[(*at_io)++];
        if (part->kind == TEMPLATE_TEXT)
            continue;
        *map_out = part->kind == TEMPLATE_LABEL ? AS_TEMPLATE_LABELS : AS_TEMPLATE_ANNOTATIONS;
        return part->text;
    }
    return NULL;
}

const char *template_part_get(const struct template_part *part, const struct as_labels *labels,
                              const struct as_labels *annotations)
{
    switch (part->kind) {
    case TEMPLATE_TEXT: return part->text;
    case TEMPLATE_LABEL: return as_labels_get(labels, part->text);
    case TEMPLATE_ANNOTATION: return as_labels_get(annotations, part->text);
    }
    return "";
}

/* The errors of as_template_expand for a part without a value, and for a too long result. */
static int template_fail_absent(const struct template_part *part, struct as_error *error)
{
    as_error_set(error, "the alert has no %s \"%s\"",
                 part->kind == TEMPLATE_LABEL ? "label" : "annotation", part->text);
    return -ENOENT;
}

static int template_check_size(const struct as_buf *out, struct as_error *error)
{
    if (as_buf_check(out) == 0)
        return 0;
    as_error_set(error, "the result is longer than %zu bytes", out->max);
    return -EMSGSIZE;
}

int as_template_expand(const struct as_template *template, const struct as_labels *labels,
                       const struct as_labels *annotations, struct as_buf *out,
                       struct as_error *error)
{
    for (size_t i = 0; i < template->part_count; i++) {
        const struct template_part *part = &template->parts[i];
        const char *value = template_part_get(part, labels, annotations);
        if (!*value)
            return template_fail_absent(part, error);
        as_buf_append_str(out, value);
    }
    return template_check_size(out, error);
}

/*
 * Templates of PromQL queries: where in a query a template may stand, and how its value is escaped,
 * so that a label can only be the value of a string. Reads just enough PromQL to know what is
 * inside a string literal (promql/parser/lex.go): the quotes, the escapes and the comments.
 * Prometheus checks all else.
 */

struct lexer {
    char quote;        /* of the present string literal; NUL: none */
    size_t quote_at;   /* where it was opened */
    bool is_comment;   /* up to the end of the line */
    bool is_escape;    /* after a backslash */
    unsigned expected; /* digits of an escape still to come */
};

/* The number of digits after the character that follows a backslash. */
static unsigned template_count_digits(char c)
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
        lexer->expected = template_count_digits(c);
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
static bool template_read_text(struct lexer *lexer, const struct template_part *part)
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

static int promql_fail(size_t offset, const char *text, struct as_error *error)
{
    as_error_set(error, "offset %zu: %s", offset, text);
    return -EINVAL;
}

static int check_place(const struct lexer *lexer, size_t offset, struct as_error *error)
{
    if (!lexer->quote)
        return promql_fail(
            offset,
            "a template stands inside a string of the query, as in "
            "{namespace=\"{{ .Labels.namespace }}\"}: labels are input, not commands",
            error);
    if (lexer->quote == '`')
        return promql_fail(
            offset, "between backticks a template cannot be escaped: use double quotes", error);
    if (lexer->is_escape || lexer->expected > 0)
        return promql_fail(offset, "a template cannot be a part of an escape", error);
    return 0;
}

int as_template_check_promql(const struct as_template *template, struct as_error *error)
{
    struct lexer lexer = {.quote = '\0'};

    for (size_t i = 0; i < template->part_count; i++) {
        const struct template_part *part = &template->parts[i];
        bool is_line = part->kind != TEMPLATE_TEXT || template_read_text(&lexer, part);
        int status = part->kind != TEMPLATE_TEXT ? check_place(&lexer, part->offset, error) : 0;
        if (status < 0)
            return status;
        if (!is_line)
            break;
    }
    if (lexer.quote)
        return promql_fail(lexer.quote_at, "the quote opened here is not closed", error);
    return 0;
}

static void template_append_escaped(struct as_buf *out, const char *value, char quote)
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
            (void)template_read_text(&lexer, part);
            as_buf_append_str(out, value);
            continue;
        }
        assert(lexer.quote && lexer.quote != '`');
        template_append_escaped(out, value, lexer.quote);
    }
    return template_check_size(out, error);
}
