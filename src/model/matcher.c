/*
 * Matchers in Alertmanager's two syntaxes, as in its default mode. After a plain name
 * ([a-zA-Z_:][a-zA-Z0-9_:]*) comes a value in the classic syntax: with or without quotes; only \"
 * \\ and \n are escapes, any other backslash is literal. After a name in quotes, or an unquoted
 * name with other characters, comes a value in the UTF-8 syntax: in quotes with Go's escapes, or
 * unquoted without reserved characters.
 *
 * Stricter than Alertmanager in one place: commas in an unquoted value and braces around the
 * matcher are errors. Alertmanager reads those as a list; here each matcher is an entry of its own.
 */
#include <alertscaler/model/matcher.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/str.h>

/*
 * The values of a matcher that allows only a few: an equality, or a regular expression of plain
 * words with `|` between them.
 */

static int compare_values(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void as_matcher_values_deinit(struct as_matcher_values *values)
{
    free(values->text);
    free(values->items);
    *values = (struct as_matcher_values){.text = NULL};
}

/* Unescapes punctuation and cuts at '|'. False: more than an alternation. */
static bool matcher_split(const char *pattern, char *out, size_t *count_out)
{
    *count_out = 1;
    for (const char *at = pattern; *at; at++) {
        if (*at == '|') {
            *out++ = '\0';
            ++*count_out;
        } else if (*at == '\\' && at[1] && strchr(".+*?()|[]{}^$-/\\", at[1])) {
            *out++ = *++at;
        } else if (strchr(".+*?()[]{}^$\\", *at)) {
            return false;
        } else {
            *out++ = *at;
        }
    }
    *out = '\0';
    return true;
}

bool as_matcher_find_values(const struct as_matcher *matcher, struct as_matcher_values *values_out)
{
    if (matcher->op != AS_MATCHER_EQUAL && matcher->op != AS_MATCHER_REGEX)
        return false;

    AS_CLEANUP(as_free_p) char *text = as_xstrdup(matcher->value);
    size_t count = 1;
    if (matcher->op == AS_MATCHER_REGEX && !matcher_split(matcher->value, text, &count))
        return false;
    const char **items = as_xcalloc(count, sizeof(*items));
    const char *at = text;
    for (size_t i = 0; i < count; i++) {
        items[i] = at;
        at += strlen(at) + 1;
    }
    qsort(items, count, sizeof(*items), compare_values);
    size_t kept = 1;
    for (size_t i = 1; i < count; i++) {
        if (strcmp(items[i], items[kept - 1]) != 0)
            items[kept++] = items[i];
    }
    *values_out = (struct as_matcher_values){.text = text, .items = items, .count = kept};
    text = NULL;
    return true;
}

struct reader {
    const char *start;
    const char *at;
    const char *end; /* after the last character that is not white space */
    struct as_error *error;
};

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_reserved(char c)
{
    return c == '\0' || is_space(c) || strchr("{}!=~,\\\"'`", c);
}

static bool matcher_is_plain_name(const char *name, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        char c = name[i];
        bool is_digit = c >= '0' && c <= '9';
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
        if (!is_letter && !(is_digit && i > 0))
            return false;
    }
    return size > 0;
}

static void matcher_skip_space(struct reader *reader)
{
    while (reader->at < reader->end && is_space(*reader->at))
        reader->at++;
}

static int matcher_fail(struct reader *reader, const char *at, const char *expected)
{
    as_error_set(reader->error, "offset %zu: %s", (size_t)(at - reader->start), expected);
    return -EINVAL;
}

static int parse_op(struct reader *reader, enum as_matcher_op *op_out)
{
    static const struct {
        char text[3];
        enum as_matcher_op op;
    } ops[] = {
        {"=~", AS_MATCHER_REGEX},
        {"!~", AS_MATCHER_NOT_REGEX},
        {"!=", AS_MATCHER_NOT_EQUAL},
        {"=", AS_MATCHER_EQUAL},
    };

    matcher_skip_space(reader);
    for (size_t i = 0; i < AS_ARRAY_SIZE(ops); i++) {
        size_t size = strlen(ops[i].text);
        if (strncmp(reader->at, ops[i].text, size) == 0) {
            reader->at += size;
            if (ops[i].op == AS_MATCHER_EQUAL && reader->at[0] == '=' &&
                (reader->at[1] == '"' || reader->at[1] == '\''))
                return matcher_fail(reader, reader->at - 1,
                                    "`==` is no operator of matchers: write `=`");
            *op_out = ops[i].op;
            matcher_skip_space(reader);
            return 0;
        }
    }
    return matcher_fail(reader, reader->at, "expected one of =, !=, =~, !~ after the label name");
}

/* `digits` of base 8 or 16. */
static bool parse_code(struct reader *reader, unsigned digits, unsigned base, uint32_t *code_out)
{
    uint32_t code = 0;

    for (unsigned i = 0; i < digits; i++) {
        char c = reader->at < reader->end ? *reader->at++ : '\0';
        unsigned digit = 99;
        if (c >= '0' && c <= '9')
            digit = (unsigned)(c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            digit = (unsigned)((c | 0x20) - 'a') + 10;
        if (digit >= base)
            return false;
        code = code * base + digit;
    }
    *code_out = code;
    return true;
}

/* One of Go's escapes, after its backslash. Never writes more bytes than it reads. */
static bool parse_escape(struct reader *reader, char **out_io)
{
    static const char letters[] = "abfnrtv\\\"", meanings[] = "\a\b\f\n\r\t\v\\\"";
    char c = reader->at < reader->end ? *reader->at++ : '\0';
    uint32_t code = 0;
    const char *letter = c ? strchr(letters, c) : NULL;

    if (letter) {
        *(*out_io)++ = meanings[letter - letters];
        return true;
    }
    if (c == 'x' || (c >= '0' && c <= '7')) {
        reader->at -= c != 'x';
        if (!parse_code(reader, c == 'x' ? 2 : 3, c == 'x' ? 16 : 8, &code) || code > 0xFF)
            return false;
        *(*out_io)++ = (char)code;
        return code != 0;
    }
    if ((c != 'u' && c != 'U') || !parse_code(reader, c == 'u' ? 4 : 8, 16, &code))
        return false;
    if (code == 0 || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        return false;
    *out_io = as_encode_utf8(*out_io, code);
    return true;
}

/* A text in double quotes as in Go; `reader` is at the opening quote. */
static int matcher_parse_quoted(struct reader *reader, char **text_out)
{
    const char *start = reader->at++;
    AS_CLEANUP(as_free_p) char *text = as_xmalloc((size_t)(reader->end - start));
    char *out = text;

    for (;;) {
        const char *at = reader->at;
        if (at == reader->end)
            return matcher_fail(reader, start, "the quote opened here is not closed");
        char c = *reader->at++;
        if (c == '"')
            break;
        if (c == '\n')
            return matcher_fail(reader, at, "a line break in quotes must be written \\n");
        if (c != '\\')
            *out++ = c;
        else if (!parse_escape(reader, &out))
            return matcher_fail(reader, at, "not a valid escape sequence");
    }
    *out = '\0';
    if (!as_str_is_utf8(text, (size_t)(out - text)))
        return matcher_fail(reader, start, "the quoted text is not valid UTF-8");
    *text_out = text;
    text = NULL;
    return 0;
}

/* Sets *is_plain_out if its value is in the classic syntax. */
static int parse_name(struct reader *reader, char **name_out, bool *is_plain_out)
{
    matcher_skip_space(reader);
    const char *start = reader->at;

    *is_plain_out = false;
    if (start < reader->end && *start == '"') {
        int status = matcher_parse_quoted(reader, name_out);
        if (status == 0 && !**name_out)
            return matcher_fail(reader, start, "a label name cannot be empty");
        return status;
    }
    while (!is_reserved(*reader->at))
        reader->at++;
    size_t size = (size_t)(reader->at - start);
    if (size == 0 && *start == '{')
        return matcher_fail(reader, start, "a matcher stands without braces, one in each entry");
    if (size == 0)
        return matcher_fail(reader, start, "expected a label name");
    *is_plain_out = matcher_is_plain_name(start, size);
    *name_out = as_xstrndup(start, size);
    return 0;
}

static int check_bare_value(struct reader *reader)
{
    for (const char *at = reader->at; at < reader->end; at++) {
        if (*at == ',')
            return matcher_fail(
                reader, at,
                "a comma: each matcher is an entry of its own, and a value with a comma "
                "must stand in double quotes");
    }
    if (reader->at < reader->end && (*reader->at == '{' || reader->end[-1] == '}'))
        return matcher_fail(reader, *reader->at == '{' ? reader->at : reader->end - 1,
                            "a value with braces must stand in double quotes");
    return 0;
}

static int parse_classic_value(struct reader *reader, char **value_out)
{
    const char *start = reader->at;
    bool is_quoted = start < reader->end && *start == '"';
    int status = is_quoted ? 0 : check_bare_value(reader);
    if (status < 0)
        return status;

    AS_CLEANUP(as_free_p) char *value = as_xmalloc((size_t)(reader->end - start) + 1);
    char *out = value;
    const char *at = start + is_quoted;
    while (at < reader->end && *at != '"') {
        if (*at == '\\' && at + 1 < reader->end && strchr("n\"\\", at[1])) {
            *out++ = at[1] == 'n' ? '\n' : at[1];
            at += 2;
        } else {
            *out++ = *at++;
        }
    }
    *out = '\0';
    if (is_quoted && at == reader->end)
        return matcher_fail(reader, start, "the quote opened here is not closed");
    if (!is_quoted && at < reader->end)
        return matcher_fail(reader, at, "a double quote inside a bare value must be written \\\"");
    if (is_quoted && at + 1 < reader->end)
        return matcher_fail(reader, at + 1, "expected the end behind the closing quote");
    *value_out = value;
    value = NULL;
    return 0;
}

static int parse_utf8_value(struct reader *reader, char **value_out)
{
    const char *start = reader->at;

    if (start == reader->end)
        return matcher_fail(reader, start, "expected a value (\"\" for the empty one)");
    if (*start != '"') {
        int status = check_bare_value(reader);
        if (status < 0)
            return status;
        while (!is_reserved(*reader->at))
            reader->at++;
        if (reader->at < reader->end)
            return matcher_fail(reader, reader->at,
                                "a value with this character must stand in quotes");
        *value_out = as_xstrndup(start, (size_t)(reader->end - start));
        return 0;
    }
    int status = matcher_parse_quoted(reader, value_out);
    if (status == 0 && reader->at < reader->end)
        return matcher_fail(reader, reader->at, "expected the end behind the closing quote");
    return status;
}

int as_matcher_init(struct as_matcher *matcher, const char *text, struct as_error *error)
{
    struct reader reader = {text, text, text + strlen(text), error};
    struct as_matcher result = {.op = AS_MATCHER_EQUAL};
    bool is_plain = false;

    while (reader.end > reader.at && is_space(reader.end[-1]))
        reader.end--;
    int status = 0;
    if (!as_str_is_utf8(text, (size_t)(reader.end - text)))
        status = matcher_fail(&reader, text, "not valid UTF-8");
    if (status == 0)
        status = parse_name(&reader, &result.name, &is_plain);
    if (status == 0)
        status = parse_op(&reader, &result.op);
    if (status == 0)
        status = is_plain ? parse_classic_value(&reader, &result.value)
                          : parse_utf8_value(&reader, &result.value);
    if (status == 0 && (result.op == AS_MATCHER_REGEX || result.op == AS_MATCHER_NOT_REGEX))
        status = as_regex_new(result.value, &result.regex, error);
    if (status < 0) {
        as_matcher_deinit(&result);
        return status;
    }
    *matcher = result;
    return 0;
}

void as_matcher_deinit(struct as_matcher *matcher)
{
    free(matcher->name);
    free(matcher->value);
    as_regex_free(matcher->regex);
    *matcher = (struct as_matcher){.op = AS_MATCHER_EQUAL};
}

bool as_matcher_match_value(const struct as_matcher *matcher, const char *value)
{
    switch (matcher->op) {
    case AS_MATCHER_EQUAL: return strcmp(matcher->value, value) == 0;
    case AS_MATCHER_NOT_EQUAL: return strcmp(matcher->value, value) != 0;
    case AS_MATCHER_REGEX: return as_regex_match(matcher->regex, value);
    case AS_MATCHER_NOT_REGEX: return as_regex_try(matcher->regex, value) == AS_REGEX_NO;
    }
    return false;
}

bool as_matcher_match(const struct as_matcher *matcher, const struct as_labels *labels)
{
    return as_matcher_match_value(matcher, as_labels_get(labels, matcher->name));
}
