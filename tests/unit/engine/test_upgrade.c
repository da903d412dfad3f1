/*
 * The state that commit 1c874e40 wrote (tests/golden/upgrade/1c874e40/rows.tsv): every row is
 * restored and written again as it was, and the rows have every member of every kind of state.
 */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>
#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/arena.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/engine/engine.h>
#include <alertscaler/engine/state.h>
#include <alertscaler/notify/notice.h>

#include "../../support/rule_spec.h"
#include "engine/engine_state.h"
#include "engine/state.c" /* for its tables */
#include "source_root.h"

#define ROWS     TEST_SOURCE_ROOT "/tests/golden/upgrade/1c874e40/rows.tsv"
#define TEXT_MAX ((size_t)1024 * 1024)
#define ROWS_MAX 100

/* The boot and the moment of the rows. */
#define BOOT "10000000-0000-4000-8000-000000000000"
static const struct as_state_clock rows_clock = {
    BOOT, {INT64_C(500000) * AS_US_PER_S}, {INT64_C(1795737600) * AS_US_PER_S}};

struct stored {
    const char *kind, *key, *value;
    size_t size;
};

static char *file;
static struct stored rows[ROWS_MAX];
static size_t row_count;

static char *cut(char *text, char end)
{
    char *at = strchr(text, end);
    cr_assert_not_null(at);
    *at = '\0';
    return at + 1;
}

static void read_rows(void)
{
    size_t size;
    cr_assert_eq(as_file_read(ROWS, TEXT_MAX, &file, &size), 0);
    for (char *line = file; *line; row_count++) {
        cr_assert_lt(row_count, ROWS_MAX);
        char *key = cut(line, '\t'), *value = cut(key, '\t'), *next = cut(value, '\n');
        rows[row_count] = (struct stored){line, key, value, strlen(value)};
        line = next;
    }
    cr_assert_gt(row_count, 0);
}

static void free_rows(void)
{
    free(file);
}

TestSuite(upgrade, .init = read_rows, .fini = free_rows);

static bool is_of(const struct stored *row, const char *kind, const char *prefix)
{
    return strcmp(row->kind, kind) == 0 && strncmp(row->key, prefix, strlen(prefix)) == 0;
}

static const struct stored *find_row(const char *kind, const char *key)
{
    size_t i = 0;
    while (i < row_count && !(is_of(&rows[i], kind, "") && strcmp(rows[i].key, key) == 0))
        i++;
    cr_assert_lt(i, row_count, "no row %s %s", kind, key);
    return &rows[i];
}

static void compare(const struct stored *row, const struct as_buf *again)
{
    cr_assert_eq(as_buf_check(again), 0);
    cr_expect_str_eq(again->data, row->value, "%s %s:\n  %s\n  %s", row->kind, row->key, row->value,
                     again->data);
}

/* --- the engine --- */

static int restore_incident(void *context, const struct as_incident_state *state)
{
    return as_engine_restore_incident(context, state);
}

static int restore_target(void *context, const struct as_target_state *state)
{
    return as_engine_restore_target(context, state);
}

static int restore_intent(void *context, const struct as_intent_state *state)
{
    return as_engine_restore_intent(context, state);
}

static int restore_pause(void *context, const struct as_pause_state *state)
{
    return as_engine_restore_pause(context, state);
}

static int restore_row(struct as_engine *engine, const struct stored *row, struct as_error *error)
{
    const struct as_state_clock *clock = &rows_clock;
    if (is_of(row, "incident", ""))
        return as_state_decode_incident(row->value, row->size, clock, restore_incident, engine,
                                        error);
    if (is_of(row, "target", ""))
        return as_state_decode_target(row->value, row->size, clock, restore_target, engine, error);
    if (is_of(row, "intent", ""))
        return as_state_decode_intent(row->value, row->size, clock, restore_intent, engine, error);
    if (is_of(row, "meta", "pause"))
        return as_state_decode_pause(row->value, row->size, clock, restore_pause, engine, error);
    return 0;
}

static size_t write_incidents(struct as_engine *engine, struct as_buf *out)
{
    struct incident *incident;
    size_t count = 0;
    RB_FOREACH (incident, incident_tree, &engine->incidents) {
        char key[AS_DIGEST_TEXT_SIZE + 64];
        as_digest_print(&incident->state.key.digest, key);
        strcat(key, incident->state.key.owner);
        as_buf_clear(out);
        as_state_encode_incident(incident_fill_state(engine, incident), BOOT, out);
        compare(find_row("incident", key), out);
        count++;
    }
    return count;
}

/* And the intents. */
static size_t write_targets(struct as_engine *engine, struct as_buf *out)
{
    struct target *target;
    size_t count = 0;
    RB_FOREACH (target, target_tree, &engine->targets) {
        if (target->is_stored) {
            as_buf_clear(out);
            as_state_encode_target(target_fill_state(engine, target), BOOT, out);
            compare(find_row("target", target->ref->key), out);
            count++;
        }
        if (target->in_doubt) {
            as_buf_clear(out);
            as_state_encode_intent(
                intent_fill_state(engine, target, target->in_doubt, !target->in_doubt->restored),
                BOOT, out);
            compare(find_row("intent", target->ref->key), out);
            count++;
        }
    }
    return count;
}

Test(upgrade, the_engine_restores_every_row_and_writes_it_as_it_was)
{
    static const struct spec no_rules = {.rules = {{.name = NULL}}};
    const struct as_engine_config config = {.stale_window_us = AS_US_PER_DAY};
    struct as_ruleset *ruleset = spec_make_ruleset(&no_rules);
    struct as_engine *engine = as_engine_new(&config, ruleset);
    struct as_buf out = AS_BUF_INIT(TEXT_MAX);
    size_t expected = 0;
    for (size_t i = 0; i < row_count; i++) {
        struct as_error error = AS_ERROR_INIT;
        cr_assert_eq(restore_row(engine, &rows[i], &error), 0, "%s %s: %s", rows[i].kind,
                     rows[i].key, error.text);
        expected += !is_of(&rows[i], "meta", "") || strcmp(rows[i].key, "pause") == 0;
    }
    size_t count = write_incidents(engine, &out) + write_targets(engine, &out);
    as_buf_clear(&out);
    as_state_encode_pause(pause_fill_state(engine, &engine->pause), BOOT, &out);
    compare(find_row("meta", "pause"), &out);
    cr_assert_eq(count + 1, expected);
    as_buf_deinit(&out);
    as_engine_free(engine);
    as_ruleset_free(ruleset);
}

/* --- notices, and times --- */

static bool is_notice(const struct stored *row)
{
    return is_of(row, "meta", "notice/") || is_of(row, "meta", "notice_state/");
}

Test(upgrade, notices_are_read_and_written_as_they_were)
{
    struct as_arena arena = AS_ARENA_INIT;
    struct as_buf out = AS_BUF_INIT(TEXT_MAX);
    bool seen[AS_NOTICE_KIND_COUNT][AS_NOTICE_PHASE_COUNT] = {{false}};
    for (size_t i = 0; i < row_count; i++) {
        struct as_error error = AS_ERROR_INIT;
        struct as_notice notice;
        size_t at_hash;
        if (!is_notice(&rows[i]))
            continue;
        cr_assert_eq(as_notice_decode(rows[i].value, rows[i].size, &arena, &notice, &error), 0,
                     "%s: %s", rows[i].key, error.text);
        as_buf_clear(&out);
        as_notice_encode(&notice, &out, &at_hash);
        compare(&rows[i], &out);
        seen[notice.kind][notice.phase] = true;
    }
    for (int kind = 0; kind < AS_NOTICE_KIND_COUNT; kind++) {
        const struct as_notice_row *row = as_notice_kind_get_row((enum as_notice_kind)kind);
        if (kind == AS_NOTICE_CLUSTER_UNREACHABLE) /* newer than the program that wrote the rows */
            continue;
        cr_assert_eq(seen[kind][AS_NOTICE_EVENT], !row->is_state, "%s", row->word);
        cr_assert_eq(seen[kind][AS_NOTICE_BEGIN], row->is_state, "%s", row->word);
        cr_assert_eq(seen[kind][AS_NOTICE_END], row->is_state, "%s", row->word);
        if (row->is_state) {
            char prefix[64];
            size_t count = 0;
            snprintf(prefix, sizeof(prefix), "notice_state/%s/", row->word);
            for (size_t i = 0; i < row_count; i++)
                count += is_of(&rows[i], "meta", prefix);
            cr_assert_eq(count, 1, "%s", prefix);
        }
    }
    as_arena_deinit(&arena);
    as_buf_deinit(&out);
}

Test(upgrade, times_are_read_and_written_as_they_were)
{
    static const char *const keys[] = {"dry_run_since", "marked_nodes"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(keys); i++) {
        const struct stored *row = find_row("meta", keys[i]);
        char again[AS_RFC3339_SIZE];
        as_wall_time time;
        cr_assert_eq(as_wall_time_parse(row->value, row->size, &time), 0, "%s", keys[i]);
        as_wall_time_print(time, again);
        cr_assert_str_eq(again, row->value);
    }
}

/* --- every member occurs --- */

static bool says_something(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: return json_object_size(value) > 0;
    case JSON_ARRAY: return json_array_size(value) > 0;
    case JSON_STRING: return json_string_length(value) > 0;
    case JSON_INTEGER: return json_integer_value(value) != 0;
    case JSON_REAL: return true;
    case JSON_TRUE: return true;
    case JSON_FALSE: return false;
    case JSON_NULL: return false;
    }
    return false;
}

/* Adds the object, or those of the list, to `objects`. */
static void add_objects(json_t *objects, json_t *value)
{
    size_t i;
    json_t *item;
    if (json_is_object(value))
        json_array_append(objects, value);
    json_array_foreach(value, i, item) json_array_append(objects, item);
}

static bool has_word(const json_t *objects, const char *name, const char *word)
{
    size_t i;
    json_t *object;
    json_array_foreach(objects, i, object)
    {
        const char *text = json_string_value(json_object_get(object, name));
        if (text && strcmp(text, word) == 0)
            return true;
    }
    return false;
}

/* Members that the program of the fixture did not have. */
static bool is_newer(const char *name)
{
    static const char *const newer[] = {"incident.external_url", "incident.generator_url",
                                        "target.ordered.sender", "target.rollout",
                                        "target.schedule_size"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(newer); i++)
        if (strcmp(newer[i], name) == 0)
            return true;
    return false;
}

/* Appends what no object has a value of. */
static void list_missing(const struct as_row *table, const json_t *objects, const char *path,
                         json_t *missing)
{
    for (const struct as_row *row = table; row->name; row++) {
        json_t *inner = json_array(), *object;
        bool is_there = false;
        char name[256];
        size_t i;
        snprintf(name, sizeof(name), "%s.%s", path, row->name);
        json_array_foreach(objects, i, object)
        {
            json_t *value = json_object_get(object, row->name);
            is_there = is_there || (value && says_something(value));
            if (value && row->rows)
                add_objects(inner, value);
        }
        if (!is_there && !is_newer(name))
            json_array_append_new(missing, json_string(name));
        if (is_there && row->rows)
            list_missing(row->rows, inner, name, missing);
        for (unsigned word = 0; row->get_word && row->get_word(word); word++) {
            if (!has_word(objects, row->name, row->get_word(word)))
                json_array_append_new(missing, json_sprintf("%s: %s", name, row->get_word(word)));
        }
        json_decref(inner);
    }
}

static json_t *read_documents(const char *kind, const char *prefix)
{
    json_t *documents = json_array();
    for (size_t i = 0; i < row_count; i++) {
        if (!is_of(&rows[i], kind, prefix))
            continue;
        json_t *document = json_loadb(rows[i].value, rows[i].size, 0, NULL);
        cr_assert_not_null(document, "%s", rows[i].value);
        json_array_append_new(documents, document);
    }
    return documents;
}

static const struct {
    const char *kind, *key;
    const struct as_row *table;
} tables[] = {
    {"incident", "", incident_rows},
    {"target", "", target_rows},
    {"intent", "", intent_rows},
    {"meta", "pause", pause_document_rows},
};

Test(upgrade, the_rows_have_every_member_of_the_tables)
{
    json_t *missing = json_array();
    for (size_t i = 0; i < AS_ARRAY_SIZE(tables); i++) {
        json_t *documents = read_documents(tables[i].kind, tables[i].key);
        list_missing(tables[i].table, documents, tables[i].kind, missing);
        json_decref(documents);
    }
    char *text = json_dumps(missing, JSON_INDENT(1));
    cr_assert_eq(json_array_size(missing), 0, "not in the fixture: %s", text);
    free(text);
    json_decref(missing);
}

/* The test above fails, whatever member the rows lack. */
Test(upgrade, a_member_that_no_row_has_is_noticed)
{
    static const struct {
        const char *list, *member, *missing;
    } lacking[] = {
        {"trials", NULL, "target.trials"},
        {"approvals", "who", "target.approvals.who"},
        {"set_backs", "by", "target.set_backs.by"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(lacking); i++) {
        json_t *documents = read_documents("target", ""), *missing = json_array(), *document;
        size_t k, m;
        json_array_foreach(documents, k, document)
        {
            json_t *list = json_object_get(document, lacking[i].list), *item;
            if (lacking[i].member)
                json_array_foreach(list, m, item) json_object_del(item, lacking[i].member);
            else
                json_object_del(document, lacking[i].list);
        }
        list_missing(target_rows, documents, "target", missing);
        cr_assert_eq(json_array_size(missing), 1);
        cr_assert_str_eq(json_string_value(json_array_get(missing, 0)), lacking[i].missing);
        json_decref(missing);
        json_decref(documents);
    }
}

/* Notices have no table yet: a notice of everything has all members. */
Test(upgrade, the_rows_have_every_member_of_a_notice)
{
    static const struct as_notice everything = {.target = "t",
                                                .target_name = "n",
                                                .rule = "r",
                                                .reason = "c",
                                                .decision = "d",
                                                .command = "o",
                                                .message = "m",
                                                .approval = "a",
                                                .has_from = true,
                                                .has_to = true,
                                                .from = 1,
                                                .to = 2,
                                                .unit = "u",
                                                .at = {1},
                                                .ended = {.set = true, .at = {2}},
                                                .hash = "h",
                                                .credential = "k",
                                                .receiver = "e",
                                                .url = 1};
    struct as_buf out = AS_BUF_INIT(TEXT_MAX);
    size_t at_hash, i;
    as_notice_encode(&everything, &out, &at_hash);
    json_t *all = json_loadb(out.data, out.size, 0, NULL);
    json_t *documents = read_documents("meta", "notice"), *document, *value;
    const char *name;
    cr_assert_eq(json_object_size(all), 19);
    json_object_foreach(all, name, value)
    {
        bool is_there = false;
        json_array_foreach(documents, i, document)
        {
            const json_t *found = json_object_get(document, name);
            is_there = is_there || (found && says_something(found));
        }
        cr_assert(is_there, "no notice has \"%s\"", name);
    }
    json_decref(documents);
    json_decref(all);
    as_buf_deinit(&out);
}
