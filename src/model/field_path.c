/*
 * Paths of fields in objects: parsed, and printed in the one form that equal paths share.
 */
#include <alertscaler/model/field_path.h>

#include <errno.h>
#include <string.h>

#include <alertscaler/base/str.h>

/* Names and values that need no quotes; a value ends with the bracket, so that it may be richer. */
static const char plain_name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
static const char plain_value[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@+~";

struct parser {
    const char *start, *at;
    struct as_field_path *path;
    size_t used; /* bytes of path->texts */
    struct as_error *error;
};

static int field_path_fail(const struct parser *parser, const char *expected)
{
    as_error_set(parser->error, "offset %zu: expected %s", (size_t)(parser->at - parser->start),
                 expected);
    return -EINVAL;
}

/* Keeps the next `size` bytes as a text, and moves behind them. */
static const char *field_path_keep(struct parser *parser, size_t size)
{
    char *text = parser->path->texts + parser->used;
    memcpy(text, parser->at, size);
    text[size] = '\0';
    parser->used += size + 1;
    parser->at += size;
    return text;
}

/* A text in single quotes, which holds none. */
static int field_path_parse_quoted(struct parser *parser, const char **text_out)
{
    const char *end = strchr(parser->at + 1, '\'');
    parser->at++;
    if (!end || end == parser->at)
        return field_path_fail(parser, "a name and a closing quote");
    *text_out = field_path_keep(parser, (size_t)(end - parser->at));
    parser->at++;
    return 0;
}

static int parse_word(struct parser *parser, const char *characters, const char *expected,
                      const char **text_out)
{
    const size_t size = strspn(parser->at, characters);
    if (*parser->at == '\'')
        return field_path_parse_quoted(parser, text_out);
    if (size == 0)
        return field_path_fail(parser, expected);
    *text_out = field_path_keep(parser, size);
    return 0;
}

/* Behind the bracket: 'a.b/c'] or name=value] */
static int parse_bracket(struct parser *parser, struct as_field_step *step)
{
    const bool is_quoted = *parser->at == '\'';
    const bool is_number = strspn(parser->at, "0123456789") > 0;
    int status =
        parse_word(parser, plain_name, "a member and its value, like [name=app]", &step->name);
    if (status)
        return status;
    if (is_number && *parser->at == ']')
        return field_path_fail(parser,
                               "`=`: an element is selected by a member, like [name=app], because "
                               "numbers of elements change");
    if (*parser->at == '=') {
        parser->at++;
        status = parse_word(parser, plain_value, "the value of the member", &step->value);
        if (status)
            return status;
    } else if (!is_quoted) {
        return field_path_fail(parser, "`=`");
    }
    if (*parser->at != ']')
        return field_path_fail(parser, "`]`");
    parser->at++;
    return 0;
}

static int parse_step(struct parser *parser, struct as_field_step *step)
{
    const bool is_first = parser->at == parser->start;
    if (*parser->at == '[') {
        parser->at++;
        return parse_bracket(parser, step);
    }
    if (!is_first && *parser->at != '.')
        return field_path_fail(parser, "`.` or `[`");
    parser->at += !is_first;
    if (*parser->at == '\'')
        return field_path_fail(parser,
                               "the name of a member; a name with other characters is written "
                               "['a.b/c']");
    return parse_word(parser, plain_name,
                      "the name of a member; a name with other characters is written ['a.b/c']",
                      &step->name);
}

int as_field_path_parse(const char *text, struct as_field_path *path_out, struct as_error *error)
{
    struct parser parser = {.start = text, .at = text, .path = path_out, .error = error};
    *path_out = (struct as_field_path){.count = 0};
    if (strlen(text) > AS_FIELD_PATH_MAX) {
        as_error_set(error, "expected at most %d characters", AS_FIELD_PATH_MAX);
        return -EINVAL;
    }
    for (const char *c = text; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7F) {
            parser.at = c;
            return field_path_fail(&parser, "no control character");
        }
    }
    if (!as_str_is_utf8(text, strlen(text))) {
        as_error_set(error, "expected UTF-8");
        return -EINVAL;
    }
    do {
        if (path_out->count == AS_FIELD_STEPS_MAX) {
            as_error_set(error, "expected at most %d steps", AS_FIELD_STEPS_MAX);
            return -EINVAL;
        }
        const int status = parse_step(&parser, &path_out->steps[path_out->count++]);
        if (status)
            return status;
    } while (*parser.at);
    if (path_out->steps[path_out->count - 1].value)
        return field_path_fail(&parser, "a member of the selected element, like .value");
    if (path_out->steps[0].value) {
        as_error_set(error, "offset 0: expected a member: an object is no list");
        return -EINVAL;
    }
    return 0;
}

static bool field_path_is_plain(const char *text, const char *characters)
{
    return text[strspn(text, characters)] == '\0';
}

static void field_path_append_quoted(struct as_buf *out, const char *text)
{
    as_buf_append_char(out, '\'');
    as_buf_append_str(out, text);
    as_buf_append_char(out, '\'');
}

static void field_path_append_word(struct as_buf *out, const char *text, const char *characters)
{
    if (field_path_is_plain(text, characters))
        as_buf_append_str(out, text);
    else
        field_path_append_quoted(out, text);
}

void as_field_path_print(const struct as_field_path *path, size_t count, struct as_buf *out)
{
    for (size_t i = 0; i < count; i++) {
        const struct as_field_step *step = &path->steps[i];
        if (!step->value && field_path_is_plain(step->name, plain_name)) {
            as_buf_append_str(out, i > 0 ? "." : "");
            as_buf_append_str(out, step->name);
            continue;
        }
        as_buf_append_char(out, '[');
        if (step->value) {
            field_path_append_word(out, step->name, plain_name);
            as_buf_append_char(out, '=');
            field_path_append_word(out, step->value, plain_value);
        } else {
            field_path_append_quoted(out, step->name);
        }
        as_buf_append_char(out, ']');
    }
}
