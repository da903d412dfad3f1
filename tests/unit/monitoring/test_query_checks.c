/*
 * Verdicts about the queries of the rules: which are requested, how often, and when a rule fails.
 * The server is a script of answers to calls.
 */
#include <alertscaler/monitoring/query_checks.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>

#include "files.h"
#include "world.h"

#define CALLS_MAX 64

static struct call { /* as the server gets it */
    uint64_t call_id;
    char *text;
    as_source_parsed_fn *done;
    void *context;
    bool is_answered;
} calls[CALLS_MAX];
static size_t call_count;

static struct world world;
static struct as_query_checks *checks;
static struct as_config config;
static struct as_ruleset ruleset;
static struct as_rule rules[4], *rule_table[] = {&rules[0], &rules[1], &rules[2], &rules[3]};
static struct as_target_config target, *target_table = &target;
static char directory[] = "/tmp/as-query-checks-XXXXXX", rule_file[64], log_file[64];
static const char *rule_files[1];
static int log_fd;

static void keep_call(struct as_source_port *self, uint64_t call_id, const char *text,
                      as_source_parsed_fn *done, void *context)
{
    cr_assert_lt(call_count, (size_t)CALLS_MAX);
    calls[call_count++] = (struct call){call_id, as_xstrdup(text), done, context, false};
}

static struct as_source_port source = {.parse = keep_call}, other_source = {.parse = keep_call};

static void set_rule(size_t i, const char *name, const char *query)
{
    struct as_rule *rule = &rules[i];
    free(rule->name);
    as_template_free(rule->source.query);
    *rule = (struct as_rule){
        .name = as_xstrdup(name), .target = &target, .source = {.kind = AS_SOURCE_QUERY}};
    cr_assert_eq(as_template_new(query, &rule->source.query, NULL), 0);
}

static void setup(void)
{
    world_init(&world);
    cr_assert_not_null(mkdtemp(directory));
    snprintf(rule_file, sizeof(rule_file), "%s/rules.yaml", directory);
    snprintf(log_file, sizeof(log_file), "%s/log", directory);
    rule_files[0] = rule_file;
    write_file(log_file, "");
    FILE *file = fopen(log_file, "w");
    cr_assert_not_null(file);
    log_fd = dup(fileno(file));
    cr_assert_eq(fclose(file), 0);
    as_log_configure(AS_LOG_INFO, AS_LOG_LOGFMT, log_fd);
    ruleset = (struct as_ruleset){.targets = &target_table, .target_count = 1, .rules = rule_table};
    config = (struct as_config){
        .settings = {.prometheus = {.url = "http://prom:9090"}},
        .ruleset = &ruleset,
        .rule_files = rule_files,
        .rule_file_count = 1,
    };
    checks = as_query_checks_new(&world.loop);
}

static void teardown(void)
{
    as_query_checks_free(checks);
    for (size_t i = 0; i < AS_ARRAY_SIZE(rules); i++) {
        free(rules[i].name);
        as_template_free(rules[i].source.query);
        as_template_free(rules[i].guard);
    }
    for (size_t i = 0; i < call_count; i++)
        free(calls[i].text);
    as_log_configure(AS_LOG_INFO, AS_LOG_LOGFMT, 2);
    close(log_fd);
    unlink(rule_file);
    unlink(log_file);
    rmdir(directory);
    world_deinit(&world);
}

TestSuite(query_checks, .init = setup, .fini = teardown);

static void start(size_t rule_count)
{
    ruleset.rule_count = rule_count;
    as_query_checks_start(checks, &config, config.ruleset, &source);
}

/* Answers the oldest call that has no answer. */
static void answer(enum as_query_verdict verdict, const char *error)
{
    for (size_t i = 0; i < call_count; i++) {
        if (calls[i].is_answered)
            continue;
        calls[i].is_answered = true;
        calls[i].done(calls[i].context, calls[i].call_id, verdict, error);
        return;
    }
    cr_assert_fail("no call waits for its answer");
}

static const char *read_log(void)
{
    static char text[4096];
    FILE *file = fopen(log_file, "r");
    cr_assert_not_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    cr_assert_eq(fclose(file), 0);
    return text;
}

static const char *find(size_t i)
{
    const char *error = as_query_checks_find_error(checks, &rules[i]);
    return error ? error : "";
}

Test(query_checks, two_requests_at_a_time_and_each_query_once)
{
    set_rule(0, "a", "up");
    set_rule(1, "b", "up");
    set_rule(2, "c", "x{a=\"{{ .Labels.a }}\"}");
    set_rule(3, "d", "y");
    cr_assert_eq(as_template_new("z", &rules[0].guard, NULL), 0);
    start(4);
    cr_assert_eq(call_count, 2);
    cr_expect_str_eq(calls[0].text, "up");
    cr_expect_str_eq(calls[1].text, "z");
    answer(AS_QUERY_ACCEPTED, "");
    cr_assert_eq(call_count, 3);
    cr_expect_str_eq(calls[2].text, "x{a=\"xxxxxxxxxxxxxxx\"}");
    answer(AS_QUERY_REFUSED, "1:1: no");
    answer(AS_QUERY_REFUSED, "1:3: neither");
    answer(AS_QUERY_ACCEPTED, "");
    cr_expect_eq(call_count, 4);
    cr_expect_str_eq(find(0), "1:1: no", "of its guard");
    cr_expect_str_eq(find(1), "");
    cr_expect_str_eq(find(2), "1:3: neither");
    cr_expect_str_eq(find(3), "");
}

Test(query_checks, the_log_has_rule_file_and_place)
{
    write_file(rule_file, "rules:\n- name: a\n  track: {value: 1, query: 'sun(x)'}\n"
                          "- name: b\n  track:\n    query: |\n      1 +\n      sun(x)\n");
    set_rule(0, "a", "sun(x)");
    set_rule(1, "b", "1 +\nsun(x)\n");
    set_rule(2, "c", "not in the file");
    start(3);
    answer(AS_QUERY_REFUSED, "invalid parameter \"query\": 1:1: parse error: sun");
    answer(AS_QUERY_REFUSED, "2:1: parse error: sun");
    answer(AS_QUERY_REFUSED, "1:5: parse error: in");
    cr_expect_str_eq(read_log(), "", "failures of a second are logged together");
    world_advance(&world, AS_QUERY_LOG_US);
    const char *log = read_log();
    char expected[160];
    snprintf(expected, sizeof(expected),
             "rule=a file=%s line=3 column=29 error=\"parse error: sun\"", rule_file);
    cr_expect(strstr(log, expected), "%s", log);
    snprintf(expected, sizeof(expected),
             "rule=b file=%s line=8 column=7 error=\"parse error: sun\"", rule_file);
    cr_expect(strstr(log, expected), "%s", log);
    cr_expect(strstr(log, "rule=c line=0 column=0 error=\"1:5: parse error: in\""), "%s", log);
    cr_expect_eq(strstr(log, "level=error"), strstr(log, "level="));
}

Test(query_checks, a_reload_keeps_verdicts)
{
    set_rule(0, "a", "up");
    set_rule(1, "b", "down");
    start(2);
    answer(AS_QUERY_REFUSED, "no");
    answer(AS_QUERY_ACCEPTED, "");
    set_rule(1, "b", "new");
    start(2);
    cr_assert_eq(call_count, 3);
    cr_expect_str_eq(calls[2].text, "new");
    cr_expect_str_eq(find(0), "no");
    answer(AS_QUERY_ACCEPTED, "");
    start(0);
    cr_expect_str_eq(find(0), "", "forgotten with its rule");
    start(2);
    cr_expect_eq(call_count, 5);
}

/* A change of policies: the others' queries keep their verdicts, and are not sent again. */
Test(query_checks, a_change_of_policies_checks_their_queries_alone)
{
    static const struct as_ruleset old = {.rules = &rule_table[0], .rule_count = 1};
    static const struct as_ruleset new = {.rules = &rule_table[2], .rule_count = 1};
    static const struct as_ruleset *removed[] = {&old}, *added[] = {&new};
    static struct as_ruleset next; /* used until the teardown */
    set_rule(0, "a", "x");
    set_rule(1, "b", "y");
    set_rule(2, "c", "z");
    ruleset.serial = 1;
    start(2); /* x, y */
    cr_assert_eq(call_count, 2);
    next = (struct as_ruleset){.targets = &target_table,
                               .target_count = 1,
                               .rules = &rule_table[1],
                               .rule_count = 2,
                               .serial = 2,
                               .base = 1,
                               .removed = removed,
                               .removed_count = 1,
                               .added = added,
                               .added_count = 1};
    as_query_checks_start(checks, &config, &next, &source);
    cr_assert_eq(call_count, 3);
    cr_expect_str_eq(calls[2].text, "z");
    answer(AS_QUERY_REFUSED, "of a query that is gone");
    answer(AS_QUERY_REFUSED, "bad");
    answer(AS_QUERY_REFUSED, "bad too");
    cr_expect_str_eq(find(0), "");
    cr_expect_str_eq(find(1), "bad");
    cr_expect_str_eq(find(2), "bad too");
}

Test(query_checks, an_answer_after_a_reload_counts_no_more)
{
    set_rule(0, "a", "up");
    start(1);
    as_query_checks_start(checks, &config, config.ruleset, &other_source);
    cr_assert_eq(call_count, 2, "the new source is asked");
    answer(AS_QUERY_REFUSED, "late");
    cr_expect_str_eq(find(0), "");
    answer(AS_QUERY_REFUSED, "no");
    cr_expect_str_eq(find(0), "no");
}

Test(query_checks, another_address_decides_anew)
{
    set_rule(0, "a", "up");
    start(1);
    answer(AS_QUERY_REFUSED, "no");
    config.settings.prometheus.url = "http://other:9090";
    start(1);
    cr_expect_str_eq(find(0), "");
    cr_expect_eq(call_count, 2);
    as_query_checks_stop(checks);
    config.settings.prometheus.url = NULL;
    start(1);
    cr_expect_eq(call_count, 2, "there is no server");
}

Test(query_checks, what_is_no_verdict_is_tried_later_and_later)
{
    set_rule(0, "a", "up");
    set_rule(1, "b", "down");
    set_rule(2, "c", "other");
    start(3);
    int64_t delay = AS_QUERY_RETRY_MIN_US;
    for (size_t i = 0; i < 8; i++) {
        answer(AS_QUERY_UNCHECKED, "HTTP 503");
        answer(AS_QUERY_UNCHECKED, "HTTP 503");
        cr_expect_eq(call_count, 2 * (i + 1), "nothing is sent meanwhile");
        world_advance(&world, delay - 1);
        cr_expect_eq(call_count, 2 * (i + 1));
        world_advance(&world, 1);
        cr_expect_eq(call_count, 2 * (i + 2));
        delay = delay * 2 < AS_QUERY_RETRY_MAX_US ? delay * 2 : AS_QUERY_RETRY_MAX_US;
    }
    cr_expect_str_eq(calls[2].text, "other", "queries that were not sent go first");
    cr_expect(strstr(read_log(), "error=\"HTTP 503\" seconds=15"));
    as_query_checks_stop(checks);
    world_advance(&world, AS_QUERY_RETRY_MAX_US);
    cr_expect_eq(call_count, 18);
}

Test(query_checks, three_refusals_in_a_row_at_run_time)
{
    set_rule(0, "a", "x{a=\"{{ .Labels.a }}\"}");
    start(1);
    const char *written = as_template_get_text(rules[0].source.query);
    answer(AS_QUERY_ACCEPTED, "");
    as_query_checks_note(checks, "another query", AS_QUERY_REFUSED, "no");
    for (int i = 0; i < 2; i++)
        as_query_checks_note(checks, written, AS_QUERY_REFUSED, "no");
    as_query_checks_note(checks, written, AS_QUERY_ACCEPTED, "");
    for (int i = 0; i < 2; i++)
        as_query_checks_note(checks, written, AS_QUERY_REFUSED, "no");
    cr_expect_str_eq(find(0), "");
    as_query_checks_note(checks, written, AS_QUERY_REFUSED, "many-to-many");
    cr_expect_str_eq(find(0), "many-to-many");
    world_advance(&world, AS_QUERY_LOG_US);
    cr_expect(strstr(read_log(), "error=many-to-many"), "%s", read_log());
    as_query_checks_note(checks, written, AS_QUERY_ACCEPTED, "");
    cr_expect_str_eq(find(0), "");
}

Test(query_checks, a_query_that_works_fails_no_more)
{
    set_rule(0, "a", "up");
    start(1);
    answer(AS_QUERY_REFUSED, "no");
    as_query_checks_note(checks, "up", AS_QUERY_ACCEPTED, "");
    cr_expect_str_eq(find(0), "");
}

static void count_failing(void *context, const struct as_rule *rule, const char *error)
{
    ++*(size_t *)context;
}

Test(query_checks, rules_that_fail_are_visited)
{
    size_t count = 0;
    as_query_checks_visit_failing(NULL, &ruleset, count_failing, &count);
    set_rule(0, "a", "up");
    set_rule(1, "b", "up");
    set_rule(2, "c", "down");
    start(3);
    as_query_checks_visit_failing(checks, &ruleset, count_failing, &count);
    cr_expect_eq(count, 0);
    answer(AS_QUERY_REFUSED, "no");
    as_query_checks_visit_failing(checks, &ruleset, count_failing, &count);
    cr_expect_eq(count, 2);
}
