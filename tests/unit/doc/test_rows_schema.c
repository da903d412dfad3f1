/*
 * JSON Schemas from tables of rows: each type, required members, null, definitions and texts.
 */
#include <signal.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/doc/rows_schema.h>

#define HEAD "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"title\":\"A thing\","

static const char *get_colour(unsigned colour)
{
    static const char *const words[] = {"red", "green", "blue"};
    return colour < AS_ARRAY_SIZE(words) ? words[colour] : NULL;
}

/* The whole schema. */
static char *print(struct as_buf *buf, enum as_rows_schema_use use, const char *about,
                   const struct as_row *rows)
{
    struct as_rows_schema schema;
    as_buf_deinit(buf);
    *buf = (struct as_buf)AS_BUF_INIT(AS_ROWS_SCHEMA_MAX);
    as_rows_schema_begin(&schema, buf, use, "A thing", about);
    as_rows_schema_write_object(&schema, rows);
    as_rows_schema_end(&schema);
    as_buf_append_char(buf, '\0');
    cr_assert_eq(as_buf_check(buf), 0);
    return buf->data;
}

/* The schema of the value of an optional row. */
static void check_value(const struct as_row *row, enum as_rows_schema_use use, const char *expected)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(0), whole = AS_BUF_INIT(4096);
    const struct as_row rows[] = {*row, {.name = NULL}};
    as_buf_printf(&whole,
                  HEAD "\"type\":\"object\",\"properties\":{\"x\":%s},"
                       "\"additionalProperties\":false}",
                  expected);
    cr_expect_str_eq(print(&buf, use, NULL, rows), whole.data);
}

static const struct as_row size_rows[] = {
    {.name = "from", .type = &as_row_i32, .presence = AS_ROW_REQUIRED},
    {.name = NULL},
};
#define SIZE                                                                                       \
    "{\"type\":\"object\",\"properties\":{\"from\":{\"type\":\"integer\",\"minimum\":0,"           \
    "\"maximum\":2147483647}},\"required\":[\"from\"],\"additionalProperties\":false}"
#define TIME                                                                                       \
    "\"pattern\":\"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\\\\.[0-9]+)?"        \
    "([Zz]|[+-][0-9]{2}:[0-9]{2})$\"}"
#define INTEGER(MIN, MAX) "{\"type\":\"integer\",\"minimum\":" MIN ",\"maximum\":" MAX "}"

Test(rows_schema, types)
{
    static const struct {
        struct as_row row;
        const char *schema;
    } cases[] = {
        {{.type = &as_row_text}, "{\"type\":\"string\"}"},
        {{.type = &as_row_text, .size = 8}, "{\"type\":\"string\",\"maxLength\":7}"},
        {{.type = &as_row_chars, .size = 27}, "{\"type\":\"string\",\"maxLength\":26}"},
        {{.type = &as_row_i32, .min = -5}, INTEGER("-5", "2147483647")},
        {{.type = &as_row_i32, .max = 9}, INTEGER("0", "9")},
        {{.type = &as_row_u32}, INTEGER("0", "4294967295")},
        {{.type = &as_row_u32, .max = 7}, INTEGER("0", "7")},
        {{.type = &as_row_i64, .min = -5, .max = 5}, INTEGER("-5", "5")},
        {{.type = &as_row_i64, .max = INT64_MAX}, "{\"type\":\"integer\",\"minimum\":0}"},
        {{.type = &as_row_i64, .min = INT64_MIN, .max = INT64_MAX}, "{\"type\":\"integer\"}"},
        {{.type = &as_row_u64}, "{\"type\":\"integer\",\"minimum\":0}"},
        {{.type = &as_row_u64, .max = 99}, INTEGER("0", "99")},
        {{.type = &as_row_wall}, INTEGER("-2305843009213693951", "2305843009213693950")},
        {{.type = &as_row_flag}, "{\"type\":\"boolean\"}"},
        {{.type = &as_row_hex}, "{\"type\":\"string\",\"pattern\":\"^[0-9a-fA-F]{16}$\"}"},
        {{.type = &as_row_digest}, "{\"type\":\"string\",\"pattern\":\"^[0-9a-f]{64}$\"}"},
        {{.type = &as_row_is_up}, "{\"enum\":[\"down\",\"up\"]}"},
        {{.type = &as_row_exact}, "{\"type\":\"string\"," TIME},
        {{.type = &as_row_number}, "{\"type\":\"number\"}"},
        {{.type = &as_row_positive}, "{\"type\":\"number\",\"minimum\":0}"},
        {{.type = &as_row_seconds}, "{\"type\":\"number\",\"minimum\":0}"},
        {{.type = &as_row_time}, "{\"type\":\"string\"," TIME},
        {{.type = &as_row_word, .get_word = get_colour, .min = 1},
         "{\"enum\":[\"green\",\"blue\"]}"},
        {{.type = &as_row_bits, .get_word = get_colour},
         "{\"type\":\"array\",\"items\":{\"enum\":[\"red\",\"green\",\"blue\"]}}"},
        {{.type = &as_row_texts}, "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"},
        {{.type = &as_row_list, .rows = size_rows}, "{\"type\":\"array\",\"items\":" SIZE "}"},
        {{.type = &as_row_list, .rows = size_rows, .min = 1, .max = 3},
         "{\"type\":\"array\",\"minItems\":1,\"maxItems\":3,\"items\":" SIZE "}"},
        {{.type = &as_row_object, .rows = size_rows}, SIZE},
        {{.type = &as_row_part, .rows = size_rows}, SIZE},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct as_row row = cases[i].row;
        row.name = "x";
        check_value(&row, AS_ROWS_SCHEMA_READ, cases[i].schema);
        check_value(&row, AS_ROWS_SCHEMA_WRITTEN, cases[i].schema);
    }
}

static bool is_never_unset(const void *base)
{
    (void)base;
    return false;
}

/* Null is a value of a type. What is written omits it where the row is optional, unless another
 * function says what is unset. */
Test(rows_schema, null)
{
    struct as_row row = {.name = "x", .type = &as_row_maybe_text};
    check_value(&row, AS_ROWS_SCHEMA_READ, "{\"type\":[\"string\",\"null\"]}");
    check_value(&row, AS_ROWS_SCHEMA_WRITTEN, "{\"type\":\"string\"}");
    row.is_unset = is_never_unset;
    check_value(&row, AS_ROWS_SCHEMA_WRITTEN, "{\"type\":[\"string\",\"null\"]}");
    row = (struct as_row){.name = "x", .type = &as_row_maybe_time, .has_at = 1};
    row.presence = AS_ROW_DEFAULT;
    check_value(&row, AS_ROWS_SCHEMA_WRITTEN, "{\"type\":[\"string\",\"null\"]," TIME);
    row.type = &as_row_flag;
    check_value(&row, AS_ROWS_SCHEMA_WRITTEN, "{\"type\":\"boolean\"}");
}

static const struct as_row_type own_word_type = {.is_nullable = true, .like = &as_row_word};
static const struct as_row_type own_list_type = {.is_nullable = true, .like = &as_row_list};
static const struct as_row_type twice_type = {.like = &own_word_type};

Test(rows_schema, a_type_like_another)
{
    check_value(&(struct as_row){.name = "x", .type = &own_word_type, .get_word = get_colour},
                AS_ROWS_SCHEMA_READ, "{\"enum\":[\"red\",\"green\",\"blue\",null]}");
    check_value(&(struct as_row){.name = "x", .type = &twice_type, .get_word = get_colour},
                AS_ROWS_SCHEMA_READ, "{\"enum\":[\"red\",\"green\",\"blue\"]}");
    check_value(&(struct as_row){.name = "x", .type = &own_list_type, .rows = size_rows},
                AS_ROWS_SCHEMA_READ, "{\"type\":[\"array\",\"null\"],\"items\":" SIZE "}");
}

static const struct as_row_type own_key_type = {.has_own_key = true, .like = &as_row_flag};

static const struct as_row presence_rows[] = {
    {.name = "a", .type = &as_row_flag},
    {.name = "b", .type = &as_row_flag, .presence = AS_ROW_FILLED},
    {.name = "c", .type = &as_row_flag, .presence = AS_ROW_DEFAULT},
    {.name = "d", .type = &as_row_flag, .presence = AS_ROW_REQUIRED},
    {.name = "e", .type = &as_row_flag, .presence = AS_ROW_REQUIRED, .via = 1},
    {.name = "f", .type = &as_row_flag, .presence = AS_ROW_REQUIRED, .has_at = 1},
    {.name = "g",
     .type = &as_row_flag,
     .presence = AS_ROW_REQUIRED,
     .via = 1,
     .is_via_optional = true},
    {.name = "h", .type = &as_row_flag, .presence = AS_ROW_REQUIRED, .since = 2},
    {.name = "i", .type = &own_key_type},
    {.name = "j", .type = &as_row_flag, .presence = AS_ROW_DEFAULT, .has_at = 1},
    {.name = "k", .type = &as_row_flag, .presence = AS_ROW_NULLABLE},
    {.name = NULL},
};

Test(rows_schema, required_members)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(0);
    cr_expect(strstr(print(&buf, AS_ROWS_SCHEMA_READ, NULL, presence_rows),
                     "\"f\":{\"type\":[\"boolean\",\"null\"]}"));
    cr_expect(strstr(print(&buf, AS_ROWS_SCHEMA_READ, NULL, presence_rows),
                     "},\"required\":[\"d\",\"e\",\"f\"],\"additionalProperties\":false}"));
    cr_expect(strstr(print(&buf, AS_ROWS_SCHEMA_WRITTEN, NULL, presence_rows),
                     "\"f\":{\"type\":[\"boolean\",\"null\"]}"));
    cr_expect(
        strstr(print(&buf, AS_ROWS_SCHEMA_WRITTEN, NULL, presence_rows),
               "},\"required\":[\"c\",\"d\",\"e\",\"f\",\"k\"],\"additionalProperties\":false}"));
    cr_expect(strstr(buf.data, "\"k\":{\"type\":[\"boolean\",\"null\"]}"));
}

static const struct as_row leaf_rows[] = {
    {.name = "name", .type = &as_row_text, .about = "Of the leaf"},
    {.name = NULL, .definition = "leaf", .about = "A leaf"},
};
static const struct as_row twig_rows[] = {
    {.name = "leaves", .type = &as_row_list, .rows = leaf_rows},
    {.name = NULL, .definition = "twig"},
};
static const struct as_row_type maybe_object_type = {.is_nullable = true, .like = &as_row_object};
static const struct as_row tree_rows[] = {
    {.name = "first", .type = &as_row_object, .rows = twig_rows, .about = "The lowest"},
    {.name = "last", .type = &maybe_object_type, .rows = twig_rows},
    {.name = NULL, .definition = "tree"},
};

/* Each table with a name is written once, also one that only a definition refers to; the root is
 * written in its place. */
Test(rows_schema, definitions)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(0);
    cr_expect_str_eq(
        print(&buf, AS_ROWS_SCHEMA_READ, "More of it", tree_rows), HEAD
        "\"description\":\"More of it\",\"type\":\"object\",\"properties\":{"
        "\"first\":{\"description\":\"The lowest\",\"$ref\":\"#/$defs/twig\"},"
        "\"last\":{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#/$defs/twig\"}]}},"
        "\"additionalProperties\":false,"
        "\"$defs\":{\"twig\":{\"type\":\"object\",\"properties\":{\"leaves\":{\"type\":\"array\","
        "\"items\":{\"$ref\":\"#/$defs/leaf\"}}},\"additionalProperties\":false},"
        "\"leaf\":{\"description\":\"A leaf\",\"type\":\"object\",\"properties\":{\"name\":{"
        "\"description\":\"Of the leaf\",\"type\":\"string\"}},\"additionalProperties\":false}}}");
}

/* Definitions of the caller stand before those of tables. */
Test(rows_schema, definitions_of_the_caller)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(AS_ROWS_SCHEMA_MAX);
    struct as_rows_schema schema;
    as_rows_schema_begin(&schema, &buf, AS_ROWS_SCHEMA_READ, "A thing", NULL);
    as_rows_schema_write_type(&schema, "object");
    as_rows_schema_write_definition(&schema, "one", "The first", size_rows);
    as_rows_schema_write_definition(&schema, "two", NULL, twig_rows);
    as_rows_schema_end(&schema);
    as_buf_append_char(&buf, '\0');
    cr_expect_str_eq(
        buf.data, HEAD
        "\"type\":\"object\",\"$defs\":{"
        "\"one\":{\"description\":\"The first\",\"type\":\"object\",\"properties\":{"
        "\"from\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":2147483647}},"
        "\"required\":[\"from\"],\"additionalProperties\":false},"
        "\"two\":{\"type\":\"object\",\"properties\":{\"leaves\":{\"type\":\"array\","
        "\"items\":{\"$ref\":\"#/$defs/leaf\"}}},\"additionalProperties\":false},"
        "\"leaf\":{\"description\":\"A leaf\",\"type\":\"object\",\"properties\":{\"name\":{"
        "\"description\":\"Of the leaf\",\"type\":\"string\"}},\"additionalProperties\":false}}}");
}

static void forms_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    as_rows_schema_begin_forms(schema);
    as_rows_schema_begin_form(schema);
    as_rows_schema_write_word(schema, "all");
    as_rows_schema_end_form(schema);
    as_rows_schema_begin_form(schema);
    as_rows_schema_begin_values(schema);
    as_rows_schema_write_rows(schema, row->rows);
    as_rows_schema_end_values(schema);
    as_rows_schema_end_form(schema);
    as_rows_schema_end_forms(schema);
}

static const struct as_row_type forms_type = {.is_nullable = true, .describe = forms_describe};

Test(rows_schema, forms)
{
    check_value(&(struct as_row){.name = "x", .type = &forms_type, .rows = size_rows},
                AS_ROWS_SCHEMA_READ,
                "{\"anyOf\":[{\"type\":\"null\"},{\"const\":\"all\"},"
                "{\"type\":\"object\",\"additionalProperties\":" SIZE "}]}");
}

static const struct as_row_type silent_type = {.write = NULL};
static const struct as_row silent_rows[] = {
    {.name = "x", .type = &silent_type},
    {.name = NULL},
};

Test(rows_schema, a_type_without_schema_is_refused, .signal = SIGABRT)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(0);
    print(&buf, AS_ROWS_SCHEMA_READ, NULL, silent_rows);
}

static const struct as_row other_leaf_rows[] = {
    {.name = NULL, .definition = "leaf"},
};
static const struct as_row clash_rows[] = {
    {.name = "a", .type = &as_row_object, .rows = leaf_rows},
    {.name = "b", .type = &as_row_object, .rows = other_leaf_rows},
    {.name = NULL},
};

Test(rows_schema, two_definitions_of_one_name_are_refused, .signal = SIGABRT)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(0);
    print(&buf, AS_ROWS_SCHEMA_READ, NULL, clash_rows);
}
