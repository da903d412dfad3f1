/*
 * Tables of documents: each type in both directions, omissions, versions, limits, and the place in
 * an error.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/doc/rows.h>

struct item {
    const char *name;
    int32_t size;
};

struct sample {
    bool has_limit, is_big;
    const char *text;
    int32_t small, limit;
    uint32_t count;
    int64_t large;
    uint64_t digest;
    enum { SAMPLE_RED, SAMPLE_GREEN, SAMPLE_COLOURS } colour;
    as_wall_time at;
    const char *const *names;
    size_t name_count;
    const struct item *items;
    size_t item_count;
    const struct item *only;
    bool is_new;
};

static const char *get_colour(unsigned colour)
{
    static const char *const words[] = {"red", "green"};
    return colour < SAMPLE_COLOURS ? words[colour] : NULL;
}

static const struct as_row item_rows[] = {
    {AS_ROW("name", text, item, name, REQUIRED), .size = 8},
    {AS_ROW("size", i32, item, size, DEFAULT), .min = 1, .max = 100},
    {.name = NULL},
};

static const struct as_row sample_rows[] = {
    {AS_ROW("at", wall, sample, at, DEFAULT)},
    {AS_ROW("big", flag, sample, is_big, OPTIONAL)},
    {AS_ROW("colour", word, sample, colour, DEFAULT), .get_word = get_colour},
    {AS_ROW("count", u32, sample, count, OPTIONAL)},
    {AS_ROW("digest", hex, sample, digest, DEFAULT)},
    {AS_ROW_OF("items", list, sample, items, OPTIONAL, item_rows),
     .count_at = offsetof(struct sample, item_count)},
    {AS_ROW("large", i64, sample, large, OPTIONAL), .min = -5, .max = INT64_MAX},
    {AS_ROW("limit", i32, sample, limit, DEFAULT), .has_at = AS_ROW_HAS(sample, has_limit)},
    {AS_ROW("names", texts, sample, names, OPTIONAL),
     .count_at = offsetof(struct sample, name_count)},
    {AS_ROW("new", flag, sample, is_new, OPTIONAL), .since = 2},
    {AS_ROW_OF("only", object, sample, only, OPTIONAL, item_rows)},
    {AS_ROW("small", i32, sample, small, REQUIRED), .min = INT32_MIN},
    {AS_ROW("text", text, sample, text, OPTIONAL), .max = 4},
    {.name = NULL},
};

static const char full[] =
    "{\"at\":-7,\"big\":true,\"colour\":\"green\",\"count\":4294967295,"
    "\"digest\":\"00000000000000ff\",\"items\":[{\"name\":\"a\",\"size\":1},"
    "{\"name\":\"b\",\"size\":100}],\"large\":9223372036854775807,\"limit\":0,"
    "\"names\":[\"x\",\"\"],\"new\":true,\"only\":{\"name\":\"c\",\"size\":3},"
    "\"small\":-2147483648,\"text\":\"text\"}";

struct input {
    struct tree tree;
    struct as_arena arena;
    struct as_reader reader;
    struct sample sample;
    struct as_error error;
    int status;
};

static void input_read(struct input *input, const char *json, int32_t version, bool is_lenient)
{
    *input = (struct input){.tree = TREE_INIT(TREE_NO_LIMIT),
                            .arena = AS_ARENA_INIT,
                            .sample = {.digest = 1, .at = {2}, .colour = SAMPLE_GREEN}};
    cr_assert_eq(tree_load_object(&input->tree, json, strlen(json), &input->error), 0, "%s: %s",
                 json, input->error.text);
    if (is_lenient)
        as_read_lenient(&input->reader, input->tree.root, &input->error);
    else
        as_read_document(&input->reader, input->tree.root, &input->error);
    as_rows_read(&(struct as_rows_input){.arena = &input->arena,
                                         .version = version,
                                         .copies_texts = !is_lenient},
                 &input->reader, sample_rows, &input->sample);
    input->status = as_read_result(&input->reader);
}

static void input_free(struct input *input)
{
    as_arena_deinit(&input->arena);
    tree_deinit(&input->tree);
}

static void expect_written(const struct sample *sample, const char *expected)
{
    struct as_buf text = AS_BUF_INIT(65536);
    struct as_json_writer json;
    as_json_init(&json, &text, 0);
    as_rows_write(&json, sample_rows, sample);
    cr_assert_str_eq(text.data, expected);
    as_buf_deinit(&text);
}

Test(rows, each_type_is_read_and_written_to_the_byte)
{
    for (int is_lenient = 0; is_lenient < 2; is_lenient++) {
        struct input input;
        input_read(&input, full, 2, is_lenient);
        cr_assert_eq(input.status, 0, "%s", input.error.text);
        cr_expect_eq(input.sample.count, UINT32_MAX);
        cr_expect_eq(input.sample.digest, 255);
        cr_expect_eq(input.sample.colour, SAMPLE_GREEN);
        cr_expect_eq(input.sample.at.us, -7);
        cr_expect(input.sample.has_limit);
        cr_expect_eq(input.sample.item_count, 2);
        cr_expect_str_eq(input.sample.items[1].name, "b");
        cr_expect_eq(input.sample.only->size, 3);
        cr_expect_eq(input.sample.name_count, 2);
        expect_written(&input.sample, full);
        input_free(&input);
    }
}

Test(rows, copied_texts_outlive_the_document)
{
    struct input input;
    input_read(&input, full, 2, false);
    cr_assert_eq(input.status, 0);
    tree_deinit(&input.tree);
    input.tree = TREE_INIT(TREE_NO_LIMIT);
    expect_written(&input.sample, full);
    input_free(&input);
}

Test(rows, what_is_unset_is_left_out_and_absent_members_keep_their_values)
{
    static const char least[] =
        "{\"at\":2,\"colour\":\"green\",\"digest\":\"0000000000000001\",\"small\":3}";
    struct input input;
    input_read(&input, "{\"small\":3}", 2, false);
    cr_assert_eq(input.status, 0, "%s", input.error.text);
    cr_expect_not(input.sample.has_limit);
    expect_written(&input.sample, least);
    input_free(&input);
    input_read(&input, "{\"small\":3,\"text\":null,\"items\":null,\"only\":null,\"names\":null}", 2,
               false);
    cr_assert_eq(input.status, 0, "%s", input.error.text);
    cr_expect_null(input.sample.items);
    expect_written(&input.sample, least);
    input_free(&input);
}

Test(rows, an_empty_list_is_written_unless_its_row_must_be_filled)
{
    static const struct item none[1];
    expect_written(&(struct sample){.items = none},
                   "{\"at\":0,\"colour\":\"red\",\"digest\":\"0000000000000000\",\"items\":[],"
                   "\"small\":0}");
}

Test(rows, a_text_that_is_too_long_is_cut_between_characters)
{
    expect_written(&(struct sample){.text = "abc\xC3\xA4"},
                   "{\"at\":0,\"colour\":\"red\",\"digest\":\"0000000000000000\",\"small\":0,"
                   "\"text\":\"abc\"}");
}

Test(rows, errors_name_the_place_and_the_right_form)
{
    static const struct {
        const char *json, *error;
        int32_t version;
    } rows[] = {
        {"{}", "small: missing", 2},
        {"{\"small\":null}", "small: missing", 2},
        {"{\"small\":\"3\"}", "small: expected an integer from -2147483648 to 2147483647", 2},
        {"{\"small\":2147483648}", "small: expected an integer from -2147483648 to 2147483647", 2},
        {"{\"small\":1,\"large\":-6}", "large: expected an integer from -5 to 9223372036854775807",
         2},
        {"{\"small\":1,\"count\":4294967296}", "count: expected an integer from 0 to 4294967295",
         2},
        {"{\"small\":1,\"count\":-1}", "count: expected an integer from 0 to 4294967295", 2},
        {"{\"small\":1,\"at\":9223372036854775807}",
         "at: expected an integer from -2305843009213693951 to 2305843009213693950", 2},
        {"{\"small\":1,\"big\":1}", "big: expected true or false", 2},
        {"{\"small\":1,\"colour\":\"blue\"}", "colour: expected red or green", 2},
        {"{\"small\":1,\"digest\":\"xy\"}", "digest: expected 16 hex digits", 2},
        {"{\"small\":1,\"items\":{}}", "items: expected a list", 2},
        {"{\"small\":1,\"items\":[{\"name\":\"a\"},{\"size\":1}]}", "items[1].name: missing", 2},
        {"{\"small\":1,\"items\":[{\"name\":\"a\",\"size\":0}]}",
         "items[0].size: expected an integer from 1 to 100", 2},
        {"{\"small\":1,\"items\":[{\"name\":\"a\",\"other\":0}]}", "items[0].other: unknown field",
         2},
        {"{\"small\":1,\"names\":[\"a\",1]}", "names: expected a list of strings", 2},
        {"{\"small\":1,\"only\":[]}", "only: expected an object", 2},
        {"{\"small\":1,\"only\":{\"name\":\"12345678\"}}", "only.name: longer than 7 bytes", 2},
        {"{\"small\":1,\"text\":7}", "text: expected a string", 2},
        {"{\"small\":1,\"other\":7}", "other: unknown field", 2},
        {"{\"small\":1,\"new\":true}", "new: unknown field", 1},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct input input;
        input_read(&input, rows[i].json, rows[i].version, false);
        cr_expect_eq(input.status, -EBADMSG, "%s", rows[i].json);
        cr_expect_str_eq(input.error.text, rows[i].error);
        input_free(&input);
    }
}

Test(rows, a_lenient_document_may_have_members_of_later_versions)
{
    struct input input;
    input_read(&input, "{\"small\":1,\"new\":true,\"other\":{}}", 1, true);
    cr_assert_eq(input.status, 0, "%s", input.error.text);
    cr_expect_not(input.sample.is_new);
    input_free(&input);
}

/* Types of numbers, times and parts; members of another struct; passes and checks. */

struct span {
    int64_t from_us, to_us;
};

struct other {
    const char *owner;
    uint64_t bytes;
};

struct event {
    bool has_ratio, has_limit;
    double share, ratio;
    unsigned colours;
    enum { EVENT_NONE, EVENT_UP, EVENT_DOWN } way;
    as_wall_time at;
    as_maybe_time end, start;
    struct span span;
    const char *note;
    struct other *other;
    size_t checks;
    const struct item *items;
    size_t item_count;
    int32_t last; /* index of an item */
    int32_t limit;
};

static const char *get_way(unsigned way)
{
    static const char *const words[] = {NULL, "up", "down"};
    return way < AS_ARRAY_SIZE(words) ? words[way] : NULL;
}

static const struct as_row span_rows[] = {
    {AS_ROW("from", seconds, span, from_us, OPTIONAL)},
    {AS_ROW("to", seconds, span, to_us, OPTIONAL)},
    {.name = NULL},
};

static void index_read(struct as_rows_input *input, struct as_reader *object,
                       const struct as_row *row, void *base)
{
    (void)input;
    struct event *event = base;
    as_read_i32(object, row->name, 0, &event->last);
    if (event->last >= (int32_t)event->item_count)
        as_read_fail(object, row->name, "no such item");
}

static void index_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    as_json_write_member_i64(json, row->name, ((const struct event *)base)->last);
}

static const struct as_row_type index_type = {
    .has_own_key = true, .read = index_read, .write = index_write};

static void event_check(struct as_rows_input *input, struct as_reader *object, void *to)
{
    (void)input;
    struct event *event = to;
    event->checks++;
    if (event->span.from_us > event->span.to_us)
        as_read_fail(object, "span", "from is above to");
}

static const struct item item_default = {.size = 7};

static const struct as_row event_rows[] = {
    {AS_ROW("at", time, event, at, REQUIRED)},
    {AS_ROW("bytes", u64, other, bytes, OPTIONAL), .via = AS_ROW_VIA(event, other), .max = 99},
    {AS_ROW("colours", bits, event, colours, OPTIONAL), .get_word = get_colour},
    {AS_ROW("end", maybe_time, event, end, DEFAULT)},
    {.name = "index", .type = &index_type, .pass = 1},
    {AS_ROW_OF("items", list, event, items, FILLED, item_rows),
     .count_at = AS_ROW_COUNT(event, item_count), .min = 1, .max = 2, .defaults = &item_default},
    {AS_ROW("limit", i32, event, limit, REQUIRED), .has_at = AS_ROW_HAS(event, has_limit)},
    {AS_ROW("note", maybe_text, event, note, DEFAULT)},
    {AS_ROW("owner", text, other, owner, DEFAULT), .via = AS_ROW_VIA(event, other)},
    {AS_ROW("ratio", number, event, ratio, OPTIONAL), .has_at = AS_ROW_HAS(event, has_ratio)},
    {AS_ROW("share", positive, event, share, OPTIONAL)},
    {AS_ROW_PART("span", event, span, OPTIONAL, span_rows)},
    {AS_ROW("start", maybe_time, event, start, OPTIONAL)},
    {AS_ROW("way", word, event, way, OPTIONAL), .get_word = get_way, .min = 1},
    {.name = NULL, .check = event_check},
};

static const char full_event[] =
    "{\"at\":\"2026-01-02T03:04:05Z\",\"bytes\":99,\"colours\":[\"red\",\"green\"],"
    "\"end\":\"2026-01-02T03:04:05.5Z\",\"index\":1,"
    "\"items\":[{\"name\":\"a\",\"size\":7},{\"name\":\"b\",\"size\":2}],\"limit\":0,\"note\":\"\","
    "\"owner\":\"o\",\"ratio\":-0.5,\"share\":0,\"span\":{\"from\":1.5,\"to\":3},"
    "\"start\":\"2026-01-01T00:00:00Z\",\"way\":\"down\"}";

static int event_read(const char *json, struct event *event, struct as_arena *arena,
                      struct as_error *error)
{
    struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct as_reader reader;
    cr_assert_eq(tree_load_object(&tree, json, strlen(json), error), 0, "%s", json);
    as_read_document(&reader, tree.root, error);
    as_rows_read(&(struct as_rows_input){.arena = arena, .copies_texts = true}, &reader, event_rows,
                 event);
    tree_deinit(&tree);
    return as_read_result(&reader);
}

static void expect_event(const struct event *event, const char *expected)
{
    struct as_buf text = AS_BUF_INIT(65536);
    struct as_json_writer json;
    as_json_init(&json, &text, 0);
    as_rows_write(&json, event_rows, event);
    cr_expect_str_eq(text.data, expected);
    as_buf_deinit(&text);
}

Test(rows, numbers_times_parts_and_members_elsewhere_are_read_and_written_to_the_byte)
{
    struct as_arena arena = AS_ARENA_INIT;
    struct other other = {.bytes = 0};
    struct event event = {.other = &other};
    struct as_error error;
    cr_assert_eq(event_read(full_event, &event, &arena, &error), 0, "%s", error.text);
    cr_expect_eq(event.checks, 1);
    cr_expect_eq(event.span.from_us, 1500000);
    cr_expect_eq(event.items[0].size, 7);
    cr_expect_eq(event.way, EVENT_DOWN);
    cr_expect_eq(event.colours, 3);
    expect_event(&event, full_event);
    as_arena_deinit(&arena);
}

/* A check may rely on required members. */
Test(rows, an_object_with_an_error_is_not_checked)
{
    struct as_arena arena = AS_ARENA_INIT;
    struct event event = {.checks = 0};
    struct as_error error;
    cr_assert_eq(event_read("{\"at\":\"2026-01-02T03:04:05Z\"}", &event, &arena, &error), -EBADMSG);
    cr_expect_str_eq(error.text, "limit: missing");
    cr_expect_eq(event.checks, 0);
    as_arena_deinit(&arena);
}

Test(rows, numbers_times_and_parts_that_are_unset_are_left_out)
{
    static const struct item none[1];
    const struct event event = {.share = NAN, .ratio = NAN, .has_ratio = true, .items = none};
    expect_event(&event, "{\"at\":\"1970-01-01T00:00:00Z\",\"end\":null,\"index\":0,"
                         "\"limit\":null,\"note\":null}");
}

Test(rows, errors_of_the_other_types_name_the_place)
{
    static const char *const rows[][2] = {
        {"\"share\":-1", "share: expected a number that is not negative"},
        {"\"ratio\":\"1\"", "ratio: expected a number"},
        {"\"colours\":[\"red\",\"blue\"]", "colours: [1]: no such word"},
        {"\"way\":\"none\"", "way: expected up or down"},
        {"\"items\":[]", "items: expected 1 to 2 items"},
        {"\"items\":[{\"name\":\"a\"},{\"name\":\"a\"},{\"name\":\"a\"}]",
         "items: expected 1 to 2 items"},
        {"\"items\":[{\"name\":\"a\"}],\"index\":1", "index: no such item"},
        {"\"span\":{\"from\":2,\"to\":1}", "span: from is above to"},
        {"\"span\":{\"from\":\"2\"}", "span.from: expected a number"},
        {"\"span\":[]", "span: expected an object"},
        {"\"owner\":\"o\"", "owner: unknown field"}, /* there is no other struct */
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_arena arena = AS_ARENA_INIT;
        struct event event = {.other = NULL};
        struct as_error error;
        char json[256];
        snprintf(json, sizeof(json), "{\"at\":\"2026-01-02T03:04:05Z\",\"limit\":null,%s}",
                 rows[i][0]);
        cr_expect_eq(event_read(json, &event, &arena, &error), -EBADMSG, "%s", json);
        cr_expect_str_eq(error.text, rows[i][1]);
        as_arena_deinit(&arena);
    }
}

struct answer {
    as_wall_time at;
    bool is_up;
    const char *name;
    int32_t size, wanted;
    uint32_t steps;
};

static const struct as_row answer_rows[] = {
    {AS_ROW("at", exact, answer, at, REQUIRED)},
    {AS_ROW("direction", is_up, answer, is_up, REQUIRED)},
    {AS_ROW("name", text, answer, name, NULLABLE)},
    {AS_ROW("size", size, answer, size, REQUIRED)},
    {AS_ROW("steps", u32, answer, steps, NULLABLE)},
    {AS_ROW("wanted", size, answer, wanted, NULLABLE)},
    {.name = NULL},
};

static void expect_answer(const struct answer *answer, const char *expected)
{
    struct as_buf text = AS_BUF_INIT(65536);
    struct as_json_writer json;
    as_json_init(&json, &text, 0);
    as_rows_write(&json, answer_rows, answer);
    cr_expect_str_eq(text.data, expected);
    as_buf_deinit(&text);
}

static int answer_read(const char *json, struct answer *answer, struct as_arena *arena,
                       struct as_error *error)
{
    struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct as_reader reader;
    cr_assert_eq(tree_load_object(&tree, json, strlen(json), error), 0, "%s", json);
    as_read_document(&reader, tree.root, error);
    as_rows_read(&(struct as_rows_input){.arena = arena, .copies_texts = true}, &reader,
                 answer_rows, answer);
    tree_deinit(&tree);
    return as_read_result(&reader);
}

Test(rows, nullable_members_are_null_where_they_are_unset)
{
    static const char unset[] = "{\"at\":\"1970-01-01T00:00:00.000000Z\",\"direction\":\"down\","
                                "\"name\":null,\"size\":null,\"steps\":null,\"wanted\":null}";
    static const char set[] = "{\"at\":\"1970-01-01T00:00:00.500000Z\",\"direction\":\"up\","
                              "\"name\":\"a\",\"size\":0,\"steps\":2,\"wanted\":3}";
    struct as_arena arena = AS_ARENA_INIT;
    struct answer answer = {.size = -1, .wanted = -1};
    struct as_error error;
    expect_answer(&answer, unset);
    cr_assert_eq(answer_read(set, &answer, &arena, &error), 0, "%s", error.text);
    expect_answer(&answer, set);
    cr_assert_eq(answer_read(unset, &answer, &arena, &error), 0, "%s", error.text);
    cr_expect_str_eq(answer.name, "a", "null leaves the member unchanged");
    cr_expect_eq(answer.steps, 2);
    cr_assert_eq(answer_read("{\"at\":\"2026-01-02T03:04:05Z\",\"direction\":\"up\",\"size\":1}",
                             &answer, &arena, &error),
                 0, "%s", error.text);
    cr_expect_eq(answer.size, 1);
    cr_expect_eq(answer.wanted, 3);
    cr_expect_eq(answer_read("{\"at\":\"2026-01-02T03:04:05Z\",\"direction\":\"left\",\"size\":1}",
                             &answer, &arena, &error),
                 -EBADMSG);
    cr_expect_str_eq(error.text, "direction: expected up or down");
    as_arena_deinit(&arena);
}
