/*
 * Reads JSON in one pass: see the header. The copy of the document ends in zeros, which stop every
 * walk over it.
 */
#include <alertscaler/doc/json_tree.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/encode.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>

#include "json_plain.h"

#define DEPTH_MAX    2048
#define ZEROS        8  /* after the document: json_count_plain may read that far */
#define COMPARED_MAX 16 /* members; above it duplicates are found by sorting */

struct reader {
    struct tree *tree;
    char *at;
    const char *begin, *end; /* of the copy */
    const char *json;        /* the original */
    unsigned depth;
    struct as_error *error;
};

/* `at`: the first wrong byte. Columns are counted in characters. */
static int fail(const struct reader *reader, const char *at, const char *format, ...)
    AS_PRINTF(3, 4);

static int fail(const struct reader *reader, const char *at, const char *format, ...)
{
    const char *stop = reader->json + (at - reader->begin);
    const bool is_end = at >= reader->end;
    size_t line = 1, column = 0;
    char what[AS_ERROR_SIZE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    for (const char *c = reader->json; c < stop; c++) {
        line += *c == '\n';
        column = *c == '\n' ? 0 : column + (((unsigned char)*c & 0xC0) != 0x80);
    }
    as_error_set(reader->error, "not JSON: line %zu, column %zu: %s", line, column + !is_end,
                 is_end ? "premature end of input" : what);
    return -EINVAL;
}

static int fail_exhausted(const struct reader *reader)
{
    as_error_set(reader->error, "too many values for a document of this size");
    return -EINVAL;
}

static void skip_space(struct reader *reader)
{
    while (*reader->at == ' ' || *reader->at == '\n' || *reader->at == '\t' || *reader->at == '\r')
        reader->at++;
}

static bool take(struct reader *reader, char c)
{
    skip_space(reader);
    if (*reader->at != c)
        return false;
    reader->at++;
    skip_space(reader);
    return true;
}

static char *skip_plain(char *at)
{
    size_t count;

    do
        at += count = json_count_plain(at);
    while (count == 8);
    return at;
}

static bool read_code(const char *at, uint64_t *code_out)
{
    return at[0] == '\\' && at[1] == 'u' && as_number_parse_u64_hex(at + 2, 4, code_out) == 0;
}

/* An escape is never shorter than its value. */
static int read_escape(struct reader *reader, char **out_io)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *at = reader->at, *letter = at[1] ? strchr(letters, at[1]) : NULL;
    uint64_t code, low;

    if (letter) {
        *(*out_io)++ = meanings[letter - letters];
        reader->at += 2;
        return 0;
    }
    if (!read_code(at, &code))
        return fail(reader, at + 1 < reader->end ? at : at + 1, "invalid escape");
    reader->at += 6;
    if (code >= 0xD800 && code <= 0xDFFF) {
        if (code >= 0xDC00 || !read_code(reader->at, &low) || low < 0xDC00 || low > 0xDFFF)
            return fail(reader, at, "invalid Unicode: half of a surrogate pair");
        reader->at += 6;
        code = 0x10000 + ((code & 0x3FF) << 10) + (low & 0x3FF);
    }
    if (code == 0) {
        reader->tree->has_nuls = true;
        code = 0xFFFF;
    }
    *out_io = as_encode_utf8(*out_io, (uint32_t)code);
    return 0;
}

/* A special character that does not end the text. */
static int read_special(struct reader *reader, char **out_io)
{
    const unsigned char byte = (unsigned char)*reader->at;

    if (byte == '\\')
        return read_escape(reader, out_io);
    if (byte == '\n')
        return fail(reader, reader->at, "unexpected newline in a text");
    if (byte < 0x20)
        return fail(reader, reader->at, "control character 0x%x in a text", byte);
    const size_t size = as_str_measure_utf8(reader->at, (size_t)(reader->end - reader->at));
    if (size == 0)
        return fail(reader, reader->at, "unable to decode byte 0x%x", byte);
    memmove(*out_io, reader->at, size);
    *out_io += size;
    reader->at += size;
    return 0;
}

static int read_text(struct reader *reader, const char **text_out, uint32_t *size_out)
{
    char *text = reader->at + 1, *out = skip_plain(text);

    reader->at = out;
    while (*reader->at != '"') {
        int status = read_special(reader, &out);
        if (status < 0)
            return status;
        char *plain = reader->at;
        reader->at = skip_plain(plain);
        memmove(out, plain, (size_t)(reader->at - plain));
        out += reader->at - plain;
    }
    reader->at++;
    *out = '\0';
    *text_out = text;
    *size_out = (uint32_t)(out - text);
    return 0;
}

static int read_number(struct reader *reader, struct tree_value *value)
{
    const size_t size = strspn(reader->at, "+-.0123456789Ee");
    double real;
    int status = as_number_parse_double(reader->at, size, &real);

    if (status < 0)
        return fail(reader, reader->at,
                    status == -ERANGE ? "real number overflow" : "invalid number");
    value->kind = TREE_INTEGER;
    if (as_number_parse_i64(reader->at, size, &value->integer) < 0) {
        value->kind = TREE_REAL;
        value->real = real;
    }
    reader->at += size;
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    const struct tree_value *x = *(struct tree_value *const *)a,
                            *y = *(struct tree_value *const *)b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : x->name < y->name ? -1 : 1;
}

/* Most names differ in their first byte: that spares the call. */
static bool has_name(const struct tree_value *member, const char *name, size_t size)
{
    return member->name_size == size && *member->name == *name &&
           memcmp(member->name, name, size) == 0;
}

static bool is_same_name(const struct tree_value *a, const struct tree_value *b)
{
    return has_name(a, b->name, b->name_size);
}

/* Names of labels come sorted. */
int tree_find_duplicate(const struct tree_value *object, const struct tree_value **second_out,
                        struct as_error *error)
{
    const struct tree_value *member = object->first, **members;
    size_t count = 0;

    *second_out = NULL;
    while (member && member->next && strcmp(member->name, member->next->name) < 0)
        member = member->next;
    if (!member || !member->next)
        return 0;
    if (object->size <= COMPARED_MAX) {
        for (const struct tree_value *a = object->first; a; a = a->next)
            for (const struct tree_value *b = a->next; b; b = b->next)
                if (is_same_name(a, b))
                    *second_out = b;
        return 0;
    }
    members = malloc(object->size * sizeof(struct tree_value *));
    if (!members) {
        as_error_set(error, "out of memory");
        return -ENOMEM;
    }
    for (member = object->first; member; member = member->next)
        members[count++] = member;
    qsort(members, count, sizeof(struct tree_value *), compare_names);
    for (size_t i = 1; i < count; i++)
        if (is_same_name(members[i - 1], members[i]))
            *second_out = members[i];
    free(members);
    return 0;
}

/* Skipping */

static int skip_text(struct reader *reader)
{
    char *at = skip_plain(reader->at + 1);

    while (*at != '"') {
        if (at >= reader->end)
            return fail(reader, at, "end of the text expected");
        at += *at == '\\' && at + 1 < reader->end ? 2 : 1;
        at = skip_plain(at);
    }
    reader->at = at + 1;
    return 0;
}

/* From an opening bracket to the one that closes it. */
static int skip_brackets(struct reader *reader)
{
    size_t depth = 0;

    do {
        int status = 0;
        if (*reader->at == '"')
            status = skip_text(reader);
        else if (reader->at >= reader->end)
            status = fail(reader, reader->at, "a bracket expected");
        else {
            const char c = *reader->at++;
            depth += c == '{' || c == '[';
            depth -= c == '}' || c == ']';
        }
        if (status < 0)
            return status;
    } while (depth > 0);
    return 0;
}

static int skip_value(struct reader *reader)
{
    if (*reader->at == '"')
        return skip_text(reader);
    if (*reader->at == '{' || *reader->at == '[')
        return skip_brackets(reader);
    const size_t size = strspn(reader->at, "+-.0123456789abcdefghijklmnopqrstuvwxyzE");
    reader->at += size;
    return size > 0 ? 0 : fail(reader, reader->at, "a value expected");
}

/* Values */

static const struct tree_part *find_part(const struct tree_part *parts,
                                         const struct tree_value *member)
{
    const struct tree_part *found = NULL;

    for (; parts->name && !found; parts++) {
        if (parts->kind == TREE_PART_INLINE)
            found = find_part(parts->parts, member);
        else if (strcmp(parts->name, member->name) == 0)
            found = parts;
    }
    return found;
}

static int read_value(struct reader *reader, struct tree_value *value,
                      const struct tree_part *parts);

static int append_value(struct reader *reader, const struct tree_value *value,
                        const struct tree_part *parts, struct tree_value ***next_io)
{
    struct tree_value *copy = tree_alloc(reader->tree, sizeof(*copy));

    if (!copy)
        return fail_exhausted(reader);
    *copy = *value;
    **next_io = copy;
    *next_io = &copy->next;
    return read_value(reader, copy, parts);
}

static int read_member(struct reader *reader, struct tree_value *parent,
                       const struct tree_part *parts, struct tree_value ***next_io)
{
    struct tree_value member = {.kind = TREE_NULL};

    if (*reader->at != '"')
        return fail(reader, reader->at, "a name in quotes expected");
    int status = read_text(reader, &member.name, &member.name_size);
    if (status < 0)
        return status;
    if (!take(reader, ':'))
        return fail(reader, reader->at, "':' expected");
    const struct tree_part *part = parts ? find_part(parts, &member) : NULL;
    if (parts && !part)
        return skip_value(reader);
    parent->size++;
    return append_value(reader, &member, part ? part->parts : NULL, next_io);
}

/* The values between the brackets. */
static int read_values(struct reader *reader, struct tree_value *parent,
                       const struct tree_part *parts)
{
    const struct tree_value empty = {.kind = TREE_NULL};
    const bool is_object = parent->kind == TREE_OBJECT;
    struct tree_value **next = &parent->first;

    if (take(reader, is_object ? '}' : ']'))
        return 0;
    do {
        parent->size += !is_object;
        int status = is_object ? read_member(reader, parent, parts, &next)
                               : append_value(reader, &empty, parts, &next);
        if (status < 0)
            return status;
    } while (take(reader, ','));
    return take(reader, is_object ? '}' : ']')
               ? 0
               : fail(reader, reader->at, "',' or '%c' expected", is_object ? '}' : ']');
}

static int read_brackets(struct reader *reader, struct tree_value *value,
                         const struct tree_part *parts)
{
    const struct tree_value *second = NULL;

    value->kind = *reader->at == '{' ? TREE_OBJECT : TREE_ARRAY;
    if (++reader->depth > DEPTH_MAX)
        return fail(reader, reader->at, "maximum parsing depth reached");
    reader->at++;
    int status = read_values(reader, value, parts);
    if (status == 0 && value->kind == TREE_OBJECT)
        status = tree_find_duplicate(value, &second, reader->error);
    if (second)
        return fail(reader, second->name + second->name_size, "duplicate object key");
    reader->depth--;
    return status;
}

static int read_word(struct reader *reader, const char *word, enum tree_kind kind,
                     struct tree_value *value)
{
    const size_t size = strlen(word);

    if (strncmp(reader->at, word, size) != 0)
        return fail(reader, reader->at, "a value expected");
    value->kind = kind;
    value->boolean = *word == 't';
    reader->at += size;
    return 0;
}

static int read_value(struct reader *reader, struct tree_value *value,
                      const struct tree_part *parts)
{
    switch (*reader->at) {
    case '"': value->kind = TREE_TEXT; return read_text(reader, &value->text, &value->size);
    case '{':
    case '[': return read_brackets(reader, value, parts);
    case 't': return read_word(reader, "true", TREE_BOOLEAN, value);
    case 'f': return read_word(reader, "false", TREE_BOOLEAN, value);
    case '-': return read_number(reader, value);
    }
    return *reader->at >= '0' && *reader->at <= '9' ? read_number(reader, value)
                                                    : read_word(reader, "null", TREE_NULL, value);
}

int tree_parse(struct tree *tree, const char *json, size_t size, const struct tree_part *parts,
               struct as_error *error)
{
    struct tree_value *root = tree_alloc(tree, sizeof(*root));
    char *copy = tree_alloc(tree, size + ZEROS);
    struct reader reader = {.tree = tree, .json = json, .error = error};

    if (!root || !copy)
        return fail_exhausted(&reader);
    if (size > 0)
        memcpy(copy, json, size);
    memset(copy + size, 0, ZEROS);
    reader.at = copy;
    reader.begin = copy;
    reader.end = copy + size;
    *root = (struct tree_value){.kind = TREE_NULL};
    skip_space(&reader);
    if (*reader.at != '{' && *reader.at != '[' && !tree->is_any)
        return fail(&reader, reader.at, "'[' or '{' expected");
    int status = read_value(&reader, root, parts);
    if (status < 0)
        return status;
    skip_space(&reader);
    if (reader.at != reader.end)
        return fail(&reader, reader.at, "end of file expected");
    tree->root = root;
    return 0;
}

int tree_load(struct tree *tree, const char *json, size_t size, struct as_error *error)
{
    if (tree_parse(tree, json, size, NULL, error) < 0)
        return -EBADMSG;
    if (tree->has_nuls)
        as_error_set(error, "not JSON that can be read: a NUL in a text");
    return tree->has_nuls ? -EBADMSG : 0;
}

int tree_load_object(struct tree *tree, const char *json, size_t size, struct as_error *error)
{
    int status = tree_load(tree, json, size, error);

    if (status == 0 && tree->root->kind != TREE_OBJECT) {
        as_error_set(error, "expected a JSON object");
        return -EBADMSG;
    }
    return status;
}

/* Trees */

void tree_deinit(struct tree *tree)
{
    as_arena_deinit(&tree->arena);
    tree->root = NULL;
}

void *tree_alloc(struct tree *tree, size_t size)
{
    if (size > tree->left)
        return NULL;
    tree->left -= size;
    return as_arena_alloc_raw(&tree->arena, size);
}

const struct tree_value *tree_find(const struct tree_value *object, const char *name)
{
    const size_t size = strlen(name);

    if (!object || object->kind != TREE_OBJECT)
        return NULL;
    const struct tree_value *member = object->first;
    while (member && !has_name(member, name, size))
        member = member->next;
    return member;
}

const char *tree_get_text(const struct tree_value *value)
{
    return value && value->kind == TREE_TEXT ? value->text : NULL;
}

const char *tree_find_text(const struct tree_value *object, const char *name)
{
    return tree_get_text(tree_find(object, name));
}

bool tree_get_i64(const struct tree_value *value, int64_t low, int64_t high, int64_t *number_out)
{
    if (!tree_is(value, TREE_INTEGER) || value->integer < low || value->integer > high)
        return false;
    *number_out = value->integer;
    return true;
}

bool tree_get_double(const struct tree_value *value, double *number_out)
{
    if (!tree_is(value, TREE_INTEGER) && !tree_is(value, TREE_REAL))
        return false;
    *number_out = value->kind == TREE_REAL ? value->real : (double)value->integer;
    return true;
}
