/*
 * The decision, as tables: tests/golden/decide/README.md explains the files. A line "= sentence"
 * names the sentence of docs/decision.md that the next rows test; a row is an input and a part of
 * its answer.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/decide/decide.h>
#include <alertscaler/decide/decision.h>

#include "source_root.h"

#define NOW "2026-11-20T10:00:00Z"

/* Short names for the members that rows change most. */
static const struct {
    const char *name, *path;
} aliases[] = {
    {"replicas", "observed.replicas"},
    {"status_replicas", "observed.status_replicas"},
    {"pods", "observed.pods"},
    {"seen", "observed.nodes"},
    {"min", "target.min"},
    {"max", "target.max"},
    {"cooldown", "target.cooldown"},
    {"tolerance", "target.tolerance"},
    {"behavior", "target.behavior"},
    {"enforce_bounds", "target.enforce_bounds"},
    {"dry_run", "target.dry_run"},
    {"last_up", "history.last_up"},
    {"last_down", "history.last_down"},
};

/* "ago 60", "in 60" and "now" become times. */
static json_t *make_value(json_t *value)
{
    if (json_is_string(value)) {
        const char *text = json_string_value(value);
        char time[AS_RFC3339_SIZE];
        as_wall_time at;
        cr_assert_eq(as_wall_time_parse(NOW, strlen(NOW), &at), 0);
        double ago = 0;
        if (strncmp(text, "ago ", 4) == 0)
            ago = strtod(text + 4, NULL);
        else if (strncmp(text, "in ", 3) == 0)
            ago = -strtod(text + 3, NULL);
        else if (strcmp(text, "now") != 0)
            return json_incref(value);
        at.us -= (int64_t)(ago * 1e6 + (ago < 0 ? -0.5 : 0.5));
        as_wall_time_print_short(at, time);
        return json_string(time);
    }
    if (json_is_array(value)) {
        json_t *list = json_array(), *item;
        size_t i;
        json_array_foreach(value, i, item) json_array_append_new(list, make_value(item));
        return list;
    }
    if (json_is_object(value)) {
        json_t *object = json_object(), *member;
        const char *key;
        json_object_foreach(value, key, member)
            json_object_set_new(object, key, make_value(member));
        return object;
    }
    return json_incref(value);
}

static void set_path(json_t *document, const char *path, json_t *value)
{
    const char *dot = strchr(path, '.');
    char name[64];

    if (!dot) {
        json_object_set_new(document, path, value);
        return;
    }
    snprintf(name, sizeof(name), "%.*s", (int)(dot - path), path);
    if (!json_object_get(document, name))
        json_object_set_new(document, name, json_object());
    set_path(json_object_get(document, name), dot + 1, value);
}

/* "want": [5, null]: one proposal for each, of the rules r0, r1, ...; null cannot be known. */
static json_t *make_proposals(json_t *wanted)
{
    json_t *list = json_array(), *size;
    size_t i;

    json_array_foreach(wanted, i, size)
    {
        char rule[32];
        snprintf(rule, sizeof(rule), "r%zu", i);
        json_t *proposal = json_pack("{s:s, s:{s:i}}", "rule", rule, "action", "scale_to",
                                     (int)json_integer_value(size));
        if (json_is_null(size))
            json_object_set_new(proposal, "error", json_string("no data"));
        json_array_append_new(list, proposal);
    }
    return list;
}

/* "events" and "old": [[age, number], ...] */
static json_t *make_history(json_t *pairs, const char *name)
{
    json_t *list = json_array(), *pair;
    size_t i;

    json_array_foreach(pairs, i, pair)
    {
        char text[32];
        snprintf(text, sizeof(text), "ago %.6f", json_number_value(json_array_get(pair, 0)));
        json_t *at = json_string(text);
        json_t *time = make_value(at);
        json_array_append_new(list,
                              json_pack("{s:o, s:O}", "at", time, name, json_array_get(pair, 1)));
        json_decref(at);
    }
    return list;
}

/* The only proposal, for rows about one. */
static json_t *get_proposal(json_t *document)
{
    json_t *list = json_object_get(document, "proposals");

    if (json_array_size(list) == 0)
        json_array_append_new(list, json_pack("{s:s}", "rule", "r0"));
    return json_array_get(list, 0);
}

static void apply_member(json_t *document, const char *key, json_t *value)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(aliases); i++) {
        if (strcmp(aliases[i].name, key) == 0)
            key = aliases[i].path;
    }
    if (strcmp(key, "want") == 0)
        json_object_set_new(document, "proposals", make_proposals(value));
    else if (strcmp(key, "events") == 0)
        set_path(document, "history.scale_events", make_history(value, "change"));
    else if (strcmp(key, "old") == 0)
        set_path(document, "history.recommendations", make_history(value, "replicas"));
    else if (strcmp(key, "action") == 0 || strcmp(key, "value") == 0 ||
             strcmp(key, "samples") == 0 || strcmp(key, "error") == 0 ||
             strcmp(key, "nodes") == 0 || strcmp(key, "approval") == 0)
        json_object_set_new(get_proposal(document), key, make_value(value));
    else
        set_path(document, key, make_value(value));
}

static void apply(json_t *document, const char *text, const char *where)
{
    json_error_t problem;
    json_t *patch = json_loads(text, 0, &problem), *value;
    const char *key;

    cr_assert(patch, "%s: %s: %s", where, problem.text, text);
    json_object_foreach(patch, key, value) apply_member(document, key, value);
    json_decref(patch);
}

/* Whether `expected` is in `answer`: members that it does not name may be anything. */
static bool includes(const json_t *answer, json_t *expected)
{
    const char *key;
    json_t *value;

    if (!json_is_object(expected) || !json_is_object(answer))
        return json_equal((json_t *)answer, expected);
    json_object_foreach(expected, key, value)
    {
        const json_t *member = json_object_get(answer, key);
        if (!member ? !json_is_null(value) : !includes(member, value))
            return false;
    }
    return true;
}

/* For tests/compare: DECIDE_INPUTS names a file that gets each input, as a line. */
static void keep_input(const char *text)
{
    const char *path = getenv("DECIDE_INPUTS");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        (void)fprintf(file, "%s\n", text);
        (void)fclose(file);
    }
}

static char *answer_document(json_t *document)
{
    AS_CLEANUP(as_decide_document_free_p) struct as_decide_document *decoded = NULL;
    struct as_error error = AS_ERROR_INIT;
    struct as_buf out = AS_BUF_INIT(1 << 20), again = AS_BUF_INIT(1 << 20);
    struct as_decision decision;
    char *text = json_dumps(document, 0);

    keep_input(text);
    int code = as_decision_decode_input(text, strlen(text), &decoded, &error);
    free(text);
    if (code) {
        json_t *answer = json_pack("{s:s}", "error", error.text);
        text = json_dumps(answer, 0);
        json_decref(answer);
        return text;
    }
    as_decide(&decoded->input, decoded->results, &decision);
    as_decision_encode_output(&decoded->input, decoded->results, &decision, &out);

    /* What is written down is the same input, and is written down in the same way again. */
    as_decision_encode_input(&decoded->input, &again);
    cr_assert_eq(as_buf_check(&again), 0);
    AS_CLEANUP(as_decide_document_free_p) struct as_decide_document *copy = NULL;
    code = as_decision_decode_input(again.data, again.size, &copy, &error);
    cr_assert_eq(code, 0, "%s: %s", error.text, again.data);
    struct as_buf third = AS_BUF_INIT(1 << 20), same = AS_BUF_INIT(1 << 20);
    as_decision_encode_input(&copy->input, &third);
    cr_expect_str_eq(again.data, third.data);
    as_decide(&copy->input, copy->results, &decision);
    as_decision_encode_output(&copy->input, copy->results, &decision, &same);
    cr_expect_str_eq(out.data, same.data);
    as_buf_deinit(&again);
    as_buf_deinit(&third);
    as_buf_deinit(&same);
    size_t size;
    return as_buf_take(&out, &size);
}

static void check_row(const char *base, char *row, const char *sentence, const char *where)
{
    char *arrow = strstr(row, " -> ");
    json_error_t problem;

    cr_assert(arrow, "%s: no \" -> \": %s", where, row);
    *arrow = '\0';
    json_t *document =
        json_pack("{s:i, s:s, s:{s:i, s:i}, s:{s:i}, s:[]}", "v", AS_DECIDE_VERSION, "now", NOW,
                  "target", "min", 1, "max", 10, "observed", "replicas", 3, "proposals");
    apply(document, base, where);
    apply(document, row, where);
    char *text = answer_document(document);
    json_t *answer = json_loads(text, 0, &problem), *raw = json_loads(arrow + 4, 0, &problem);
    cr_assert(raw, "%s: %s: %s", where, problem.text, arrow + 4);
    json_t *expected = make_value(raw);
    cr_expect(includes(answer, expected), "%s: %s\n  %s\n  expected %s\n  got      %s", where,
              sentence, row, arrow + 4, text);
    json_decref(raw);
    json_decref(expected);
    json_decref(answer);
    json_decref(document);
    free(text);
}

/* How many rows the file has. */
static unsigned check_file(const char *name)
{
    char path[512], where[600], *line = NULL, base[4096] = "{}", sentence[1024] = "";
    size_t capacity = 0;
    unsigned rows = 0, number = 0;

    snprintf(path, sizeof(path), "%s/tests/golden/decide/%s.txt", TEST_SOURCE_ROOT, name);
    FILE *file = fopen(path, "r");
    cr_assert(file, "%s: %s", path, strerror(errno));
    while (getline(&line, &capacity, file) >= 0) {
        line[strcspn(line, "\n")] = '\0';
        snprintf(where, sizeof(where), "%s.txt:%u", name, ++number);
        if (line[0] == '=') {
            snprintf(sentence, sizeof(sentence), "%s", line + 2);
            snprintf(base, sizeof(base), "{}");
        } else if (strncmp(line, "given ", 6) == 0) {
            snprintf(base, sizeof(base), "%s", line + 6);
        } else if (line[0] == '{') {
            cr_assert(sentence[0], "%s: which sentence does it hold?", where);
            check_row(base, line, sentence, where);
            rows++;
        } else {
            cr_assert(line[0] == '\0' || line[0] == '#', "%s: what is this? %s", where, line);
        }
    }
    free(line);
    fclose(file);
    return rows;
}

#define FILE_TEST(name)                                                                            \
    Test(decide, name)                                                                             \
    {                                                                                              \
        cr_expect_gt(check_file(#name), 0);                                                        \
    }

FILE_TEST(input)
FILE_TEST(steps)
FILE_TEST(nodes)
FILE_TEST(track_number)
FILE_TEST(track_pods)
FILE_TEST(combine)
FILE_TEST(bounds)
FILE_TEST(forbidden)
FILE_TEST(fallback)
FILE_TEST(stabilize)
FILE_TEST(policies)
FILE_TEST(locks)
FILE_TEST(schedules)
FILE_TEST(next_evaluation)
FILE_TEST(versions)
FILE_TEST(approval)
