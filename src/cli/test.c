/*
 * `alertscaler test`: unit tests of rules (docs/testing.md), and their results and coverage as
 * text, as JUnit's XML, and as JSON. All files are read and checked before the first test runs.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/regex.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>
#include <alertscaler/doc/json_writer.h>

#include "cli.h"
#include "test_run.h"

struct test_file { /* the tests of one file that ran */
    const struct as_rule_tests *tests;
    struct test_result *results;
    double *seconds; /* duration of each test */
    size_t count;
};

/* --- results as text, in the form of `promtool test rules` --- */

/*
 *   Unit Testing: tests/checkout.yaml
 *     FAILED:
 *       slow checkout grows
 *         at 1s, target checkout (tests/checkout.yaml:14)
 *           replicas: expected 7, got 6
 *         what was decided on it up to then:
 *           0s       4 -> 6  scaled by checkout-is-slow
 *         why: 4 plus ceil(50 % of 4) is 6.
 *
 * Texts that come from files are printed without what a terminal would take for a command.
 */

#define RED   "\x1b[31m"
#define GREEN "\x1b[32m"
#define BOLD  "\x1b[1m"
#define RESET "\x1b[0m"

static bool test_file_has_failed(const struct test_file *file)
{
    for (size_t i = 0; i < file->count; i++) {
        if (file->results[i].failure_count > 0)
            return true;
    }
    return false;
}

static void test_put_colored(FILE *out, bool colors, const char *color, const char *text)
{
    if (colors)
        fputs(color, out);
    as_safe_text_put(out, text);
    if (colors)
        fputs(RESET, out);
}

static void test_put_labels(FILE *out, const struct as_labels *labels)
{
    fputc('{', out);
    for (uint32_t i = 0; i < labels->count; i++) {
        fputs(i ? ", " : "", out);
        as_safe_text_put(out, labels->items[i].name);
        fputs("=\"", out);
        as_safe_text_put(out, labels->items[i].value);
        fputc('"', out);
    }
    fputc('}', out);
}

static void put_place(const struct test_file *file, const struct as_rule_test_event *event,
                      FILE *out)
{
    char at[AS_DURATION_SIZE];
    as_duration_print(event->at_us, at);
    fprintf(out, "      at %s, ", at);
    if (event->kind != AS_RULE_TEST_EXPECT_ALERT) {
        fputs("target ", out);
        as_safe_text_put(out, event->target);
    } else {
        fputs("alert ", out);
        test_put_labels(out, event->alert.labels);
    }
    fputs(" (", out);
    as_safe_text_put(out, file->tests->path);
    fprintf(out, ":%u)\n", event->line);
}

static const char *get_history_title(const struct test_failure *failure)
{
    if (failure->event->kind == AS_RULE_TEST_EXPECT_ALERT)
        return "alerts up to then:";
    return failure->why ? "what was decided on it up to then:"
                        : "nothing was decided on it; alerts up to then:";
}

/* The text of one failure, without colors. */
static void test_print_failure(const struct test_file *file, const struct test_failure *failure,
                               bool colors, FILE *out)
{
    put_place(file, failure->event, out);
    for (size_t i = 0; i < failure->difference_count; i++) {
        const struct test_difference *difference = &failure->differences[i];
        fprintf(out, "        %s: expected ", test_aspect_get_word(difference->aspect));
        test_put_colored(out, colors, GREEN, difference->expected);
        fputs(", got ", out);
        test_put_colored(out, colors, RED, difference->got);
        fputc('\n', out);
    }
    fprintf(out, "      %s\n", get_history_title(failure));
    for (size_t i = 0; i < failure->history_count; i++) {
        fputs("        ", out);
        as_safe_text_put(out, failure->history[i]);
        fputc('\n', out);
    }
    if (failure->history_count == 0)
        fputs("        none\n", out);
    if (failure->why)
        fprintf(out, "      why: %s\n", failure->why);
}

/* Puts a query of several lines on one. */
static void put_on_one_line(const char *text, FILE *out)
{
    AS_CLEANUP(as_free_p) char *line = as_xstrdup(text);
    char *to = line;
    for (const char *from = line + strspn(line, " \t\r\n"); *from;) {
        const size_t white = strspn(from, " \t\r\n");
        if (white > 0 && from[white])
            *to++ = ' ';
        from += white;
        if (*from)
            *to++ = *from++;
    }
    *to = '\0';
    as_safe_text_put(out, line);
}

static void print_unanswered(const struct test_result *result, FILE *out)
{
    if (result->unanswered_count == 0)
        return;
    fputs("      asked for, but not among the test's `queries`:\n", out);
    for (size_t i = 0; i < result->unanswered_count; i++) {
        fputs("        ", out);
        put_on_one_line(result->unanswered[i], out);
        fputc('\n', out);
    }
}

static void test_print_text(const struct test_file *file, bool colors, FILE *out)
{
    fputs("Unit Testing: ", out);
    as_safe_text_put(out, file->tests->path);
    fputs("\n  ", out);
    if (!test_file_has_failed(file)) {
        test_put_colored(out, colors, GREEN, "SUCCESS");
        fputs("\n\n", out);
        return;
    }
    test_put_colored(out, colors, RED, "FAILED:");
    fputc('\n', out);
    for (size_t i = 0; i < file->count; i++) {
        const struct test_result *result = &file->results[i];
        if (result->failure_count == 0)
            continue;
        fputs("    ", out);
        test_put_colored(out, colors, BOLD, result->test->name);
        fputc('\n', out);
        for (size_t j = 0; j < result->failure_count; j++)
            test_print_failure(file, &result->failures[j], colors, out);
        print_unanswered(result, out);
    }
    fputc('\n', out);
}

/* --- coverage: the rules, gates and reasons that the tests reach --- */

/*
 * A gate or a reason counts if the rules of a test can lead to it: without an approval in the
 * rules, nobody misses a test of `needs_approval`. Reasons that only the world outside gives, such
 * as `unreachable`, count where a test reaches them. A rule counts once, although several test
 * files may read it: it has the same name, and its target the same entry. A rule with `enabled:
 * false` does not count.
 */

enum coverage_feature { /* of a rule set: what leads to gates and reasons */
                        COVERAGE_ALL,
                        COVERAGE_ALERTS, /* a rule with an alert */
                        COVERAGE_UP,     /* a rule that may scale up */
                        COVERAGE_DOWN,   /* a rule that may scale down */
                        COVERAGE_DOWN_BY_ALERT,
                        COVERAGE_VETO, /* such a rule, and another one for the target */
                        COVERAGE_VALUE,
                        COVERAGE_TRACK,
                        COVERAGE_FIT,
                        COVERAGE_TAKE,
                        COVERAGE_HOLD,
                        COVERAGE_GUARD,
                        COVERAGE_BUDGET,
                        COVERAGE_HELD, /* what the gate `holds` reads in a test */
                        COVERAGE_APPROVAL,
                        COVERAGE_DRY_RUN,
                        COVERAGE_BEHAVIOR,
                        COVERAGE_COOLDOWN,
                        COVERAGE_ENFORCED_MIN,
                        COVERAGE_ENFORCED_MAX,
                        COVERAGE_ENFORCED, /* one of both */
                        COVERAGE_SCHEDULE_END,
                        COVERAGE_ROLLOUT,
                        COVERAGE_MIN, /* above 0 */
                        COVERAGE_INEFFECTIVE,
                        COVERAGE_MAX_STEPS,
                        COVERAGE_DISABLED,
                        COVERAGE_TEMPLATE,
                        COVERAGE_FEATURES
};

static const enum coverage_feature coverage_gates[AS_GATE_COUNT] = {
    [AS_GATE_SWITCHED_OFF] = COVERAGE_MIN,  [AS_GATE_OUT_OF_BOUNDS] = COVERAGE_ENFORCED,
    [AS_GATE_COMBINE] = COVERAGE_ALL,       [AS_GATE_STABILIZE] = COVERAGE_BEHAVIOR,
    [AS_GATE_POLICIES] = COVERAGE_BEHAVIOR, [AS_GATE_BOUNDS] = COVERAGE_ALL,
    [AS_GATE_COOLDOWN] = COVERAGE_COOLDOWN, [AS_GATE_HOLDS] = COVERAGE_HELD,
    [AS_GATE_APPROVAL] = COVERAGE_APPROVAL, [AS_GATE_DRY_RUN] = COVERAGE_DRY_RUN,
};

static const struct {
    enum as_reason reason;
    enum coverage_feature feature;
} coverage_reasons[] = {
    {AS_REASON_SCALED, COVERAGE_ALL},
    {AS_REASON_ABOVE_MAX, COVERAGE_ENFORCED_MAX},
    {AS_REASON_BELOW_MIN, COVERAGE_ENFORCED_MIN},
    {AS_REASON_SCHEDULE_ENDED, COVERAGE_SCHEDULE_END},
    {AS_REASON_NO_CHANGE, COVERAGE_VALUE},
    {AS_REASON_AT_MAX, COVERAGE_UP},
    {AS_REASON_AT_MIN, COVERAGE_DOWN},
    {AS_REASON_WITHIN_TOLERANCE, COVERAGE_TRACK},
    {AS_REASON_STABILIZED, COVERAGE_BEHAVIOR},
    {AS_REASON_RATE_LIMITED, COVERAGE_BEHAVIOR},
    {AS_REASON_VETOED, COVERAGE_VETO},
    {AS_REASON_HELD, COVERAGE_HOLD},
    {AS_REASON_INEFFECTIVE, COVERAGE_INEFFECTIVE},
    {AS_REASON_ROLLOUT_UNDER_WAY, COVERAGE_ROLLOUT},
    {AS_REASON_METRIC_UNAVAILABLE, COVERAGE_VALUE},
    {AS_REASON_COOLDOWN, COVERAGE_COOLDOWN},
    {AS_REASON_GUARDED, COVERAGE_GUARD},
    {AS_REASON_UNCONFIRMED, COVERAGE_DOWN_BY_ALERT},
    {AS_REASON_BUDGET, COVERAGE_BUDGET},
    {AS_REASON_NEEDS_APPROVAL, COVERAGE_APPROVAL},
    {AS_REASON_NOT_APPROVED, COVERAGE_APPROVAL},
    {AS_REASON_DRY_RUN, COVERAGE_DRY_RUN},
    {AS_REASON_NO_GROUP, COVERAGE_FIT},
    {AS_REASON_NO_ROOM, COVERAGE_TAKE},
    {AS_REASON_UTILIZED, COVERAGE_TAKE},
    {AS_REASON_DISABLED, COVERAGE_MIN},
    {AS_REASON_NO_RULE, COVERAGE_ALERTS},
    {AS_REASON_DUPLICATE, COVERAGE_ALERTS},
    {AS_REASON_TARGET_NOT_ALLOWED, COVERAGE_TEMPLATE},
    {AS_REASON_MAX_STEPS, COVERAGE_MAX_STEPS},
    {AS_REASON_RULE_DISABLED, COVERAGE_DISABLED},
};

struct covered_rule {
    const struct as_rule *rule;
    bool is_reached;
};

struct coverage {
    struct covered_rule *rules; /* by name */
    size_t rule_count;
    bool features[COVERAGE_FEATURES];
    bool gates[AS_GATE_COUNT], reasons[AS_REASON_COUNT]; /* that are reached */
};

static void coverage_deinit(struct coverage *coverage)
{
    free(coverage->rules);
}

static bool coverage_may_shrink(const struct as_rule *rule)
{
    switch (rule->action.kind) {
    case AS_ACTION_SCALE_DOWN:
    case AS_ACTION_SCALE_TO:
    case AS_ACTION_TRACK:
    case AS_ACTION_PASS_THROUGH: return true;
    case AS_ACTION_SCALE_UP:
    case AS_ACTION_HOLD:
    case AS_ACTION_KIND_COUNT: break;
    }
    return rule->on_resolved.kind != AS_ENDING_NOTHING;
}

static void coverage_add_rule(bool features[COVERAGE_FEATURES], const struct as_rule *rule)
{
    const struct as_action *action = &rule->action;
    const bool is_down = coverage_may_shrink(rule), has_value = rule->source.kind != AS_SOURCE_NONE;
    features[COVERAGE_ALERTS] |= !rule->is_always;
    features[COVERAGE_UP] |= action->kind != AS_ACTION_SCALE_DOWN && action->kind != AS_ACTION_HOLD;
    features[COVERAGE_DOWN] |= is_down;
    features[COVERAGE_DOWN_BY_ALERT] |= action->kind == AS_ACTION_SCALE_DOWN && !rule->is_always &&
                                        !has_value && !action->is_to && !action->is_take;
    features[COVERAGE_VALUE] |= has_value;
    features[COVERAGE_TRACK] |= action->kind == AS_ACTION_TRACK;
    features[COVERAGE_FIT] |= action->is_fit;
    features[COVERAGE_TAKE] |= action->is_take;
    features[COVERAGE_HOLD] |= action->kind == AS_ACTION_HOLD;
    features[COVERAGE_GUARD] |= rule->guard_kind == AS_GUARD_QUERY;
    features[COVERAGE_APPROVAL] |= rule->approval.is_set;
    features[COVERAGE_DRY_RUN] |= rule->dry_run;
    features[COVERAGE_INEFFECTIVE] |= rule->ineffective_after > 0;
    features[COVERAGE_MAX_STEPS] |= rule->max_steps > 0;
}

static void coverage_add_target(bool features[COVERAGE_FEATURES],
                                const struct as_target_config *target)
{
    const struct as_bounds_config *bounds = &target->bounds;
    features[COVERAGE_DRY_RUN] |= target->dry_run;
    features[COVERAGE_BEHAVIOR] |= bounds->has_behavior;
    features[COVERAGE_COOLDOWN] |= bounds->cooldown.up_us > 0 || bounds->cooldown.down_us > 0;
    features[COVERAGE_ENFORCED_MIN] |= bounds->enforce_bounds;
    features[COVERAGE_ENFORCED_MAX] |= bounds->enforce_bounds;
    features[COVERAGE_ROLLOUT] |= bounds->rollout == AS_ROLLOUT_WAIT;
    features[COVERAGE_MIN] |= bounds->min > 0;
    features[COVERAGE_TEMPLATE] |= target->is_templated;
    for (size_t i = 0; i < target->schedule_count; i++) {
        const struct as_schedule *schedule = &target->schedules[i];
        features[COVERAGE_ENFORCED_MIN] |= schedule->has_min;
        features[COVERAGE_ENFORCED_MAX] |= as_schedule_is_zero(schedule);
        features[COVERAGE_HOLD] |= schedule->hold != AS_WAYS_NONE;
        features[COVERAGE_SCHEDULE_END] |= schedule->at_end != AS_SCHEDULE_KEEP;
    }
}

struct coverage_target {
    size_t wishes; /* rules that may want a size */
    bool is_shrunk;
};

static void coverage_add_config(struct coverage *coverage, const struct as_config *config)
{
    const struct as_settings *settings = &config->settings;
    const struct as_ruleset *ruleset = config->ruleset;
    bool *features = coverage->features;
    struct coverage_target *targets =
        as_xcalloc(ruleset->target_count + 1, sizeof(struct coverage_target));
    features[COVERAGE_ALL] = true;
    features[COVERAGE_DRY_RUN] |= settings->dry_run;
    features[COVERAGE_GUARD] |= settings->receiver.watchdog_count > 0;
    features[COVERAGE_BUDGET] |=
        settings->limits.actions_max > 0 || settings->limits.scale_down_milli_percent > 0;
    for (size_t i = 0; i < ruleset->rule_count; i++) {
        const struct as_rule *rule = ruleset->rules[i];
        features[COVERAGE_DISABLED] |= !rule->enabled;
        if (!rule->enabled)
            continue;
        coverage_add_rule(features, rule);
        targets[rule->target->number].wishes += rule->action.kind != AS_ACTION_HOLD;
        targets[rule->target->number].is_shrunk |= coverage_may_shrink(rule);
    }
    for (size_t i = 0; i < ruleset->target_count; i++) {
        coverage_add_target(features, ruleset->targets[i]);
        features[COVERAGE_VETO] |= targets[i].is_shrunk && targets[i].wishes > 1;
    }
    free(targets);
    features[COVERAGE_ENFORCED] |=
        features[COVERAGE_ENFORCED_MIN] || features[COVERAGE_ENFORCED_MAX];
    features[COVERAGE_HELD] |=
        features[COVERAGE_GUARD] || features[COVERAGE_BUDGET] || features[COVERAGE_DOWN_BY_ALERT];
}

static int coverage_compare_rules(const void *a, const void *b)
{
    const struct as_rule *x = ((const struct covered_rule *)a)->rule;
    const struct as_rule *y = ((const struct covered_rule *)b)->rule;
    const int order = strcmp(x->name, y->name);
    return order ? order : as_digest_compare(&x->target->digest, &y->target->digest);
}

/* The same rule of several files becomes one. */
static void coverage_merge_rules(struct coverage *coverage)
{
    size_t count = 0;
    if (coverage->rule_count > 1)
        qsort(coverage->rules, coverage->rule_count, sizeof(struct covered_rule),
              coverage_compare_rules);
    for (size_t i = 0; i < coverage->rule_count; i++) {
        const struct covered_rule *rule = &coverage->rules[i];
        if (count > 0 && coverage_compare_rules(&coverage->rules[count - 1], rule) == 0)
            coverage->rules[count - 1].is_reached |= rule->is_reached;
        else
            coverage->rules[count++] = *rule;
    }
    coverage->rule_count = count;
}

static void coverage_add_file(struct coverage *coverage, const struct test_file *file)
{
    const struct as_ruleset *ruleset = file->tests->config->ruleset;
    coverage_add_config(coverage, file->tests->config);
    for (size_t i = 0; i < ruleset->rule_count; i++) {
        struct covered_rule rule = {.rule = ruleset->rules[i]};
        for (size_t k = 0; k < file->count; k++)
            rule.is_reached |= file->results[k].reached.rules[i];
        if (rule.rule->enabled)
            coverage->rules[coverage->rule_count++] = rule;
    }
    for (size_t k = 0; k < file->count; k++) {
        for (size_t i = 0; i < AS_GATE_COUNT; i++)
            coverage->gates[i] |= file->results[k].reached.gates[i];
        for (size_t i = 0; i < AS_REASON_COUNT; i++)
            coverage->reasons[i] |= file->results[k].reached.reasons[i];
    }
}

static struct coverage coverage_make(const struct test_file *files, size_t count)
{
    struct coverage coverage = {0};
    size_t rule_count = 0;
    for (size_t i = 0; i < count; i++)
        rule_count += files[i].tests->config->ruleset->rule_count;
    coverage.rules = as_xcalloc(rule_count + 1, sizeof(*coverage.rules));
    for (size_t i = 0; i < count; i++)
        coverage_add_file(&coverage, &files[i]);
    coverage_merge_rules(&coverage);
    return coverage;
}

/* The three lists in one form: the names that count, and whether a test reaches them. */
struct coverage_list {
    const char *title;
    size_t count;
    const char *(*get_name)(const struct coverage *coverage, size_t i); /* NULL: does not count */
    bool (*is_reached)(const struct coverage *coverage, size_t i);
};

static const char *coverage_get_rule(const struct coverage *coverage, size_t i)
{
    return coverage->rules[i].rule->name;
}

static bool coverage_has_rule(const struct coverage *coverage, size_t i)
{
    return coverage->rules[i].is_reached;
}

static const char *coverage_get_gate(const struct coverage *coverage, size_t i)
{
    return coverage->gates[i] || coverage->features[coverage_gates[i]]
               ? as_gate_get_word((enum as_gate)i)
               : NULL;
}

static bool coverage_has_gate(const struct coverage *coverage, size_t i)
{
    return coverage->gates[i];
}

static const char *coverage_get_reason(const struct coverage *coverage, size_t i)
{
    bool is_possible = coverage->reasons[i];
    for (size_t k = 0; k < AS_ARRAY_SIZE(coverage_reasons); k++)
        is_possible |= coverage_reasons[k].reason == (enum as_reason)i &&
                       coverage->features[coverage_reasons[k].feature];
    return is_possible ? as_reason_get_word((enum as_reason)i) : NULL;
}

static bool coverage_has_reason(const struct coverage *coverage, size_t i)
{
    return coverage->reasons[i];
}

#define COVERAGE_LISTS 3

static void coverage_make_lists(const struct coverage *coverage,
                                struct coverage_list lists_out[COVERAGE_LISTS])
{
    lists_out[0] =
        (struct coverage_list){"rules", coverage->rule_count, coverage_get_rule, coverage_has_rule};
    lists_out[1] =
        (struct coverage_list){"gates", AS_GATE_COUNT, coverage_get_gate, coverage_has_gate};
    lists_out[2] = (struct coverage_list){"reasons", AS_REASON_COUNT, coverage_get_reason,
                                          coverage_has_reason};
}

static void coverage_print_text(const struct coverage *coverage, FILE *out)
{
    struct coverage_list lists[COVERAGE_LISTS];
    coverage_make_lists(coverage, lists);
    fputs("\nCoverage:\n", out);
    for (size_t k = 0; k < COVERAGE_LISTS; k++) {
        size_t total = 0, reached = 0;
        for (size_t i = 0; i < lists[k].count; i++) {
            total += lists[k].get_name(coverage, i) != NULL;
            reached += lists[k].is_reached(coverage, i);
        }
        fprintf(out, "  %s: the tests reach %zu of %zu\n", lists[k].title, reached, total);
        for (size_t i = 0; i < lists[k].count; i++) {
            const char *name = lists[k].get_name(coverage, i);
            if (!name || lists[k].is_reached(coverage, i))
                continue;
            fputs("    not reached: ", out);
            as_safe_text_put(out, name);
            fputc('\n', out);
        }
    }
}

static void coverage_write(struct as_json_writer *json, const struct coverage *coverage)
{
    struct coverage_list lists[COVERAGE_LISTS];
    coverage_make_lists(coverage, lists);
    as_json_begin_object(json);
    for (size_t k = 0; k < COVERAGE_LISTS; k++) {
        as_json_write_key(json, lists[k].title);
        as_json_begin_object(json);
        for (int is_reached = 1; is_reached >= 0; is_reached--) {
            as_json_write_key(json, is_reached ? "reached" : "not_reached");
            as_json_begin_array(json);
            for (size_t i = 0; i < lists[k].count; i++) {
                const char *name = lists[k].get_name(coverage, i);
                if (name && lists[k].is_reached(coverage, i) == (is_reached == 1))
                    as_json_write_string(json, name);
            }
            as_json_end_array(json);
        }
        as_json_end_object(json);
    }
    as_json_end_object(json);
}

/* --- results for programs: JUnit's XML, as CI systems read it, and JSON --- */

/* XML 1.0 cannot represent most control characters: they become '?', as does invalid UTF-8. */

#define JSON_MAX ((size_t)64 * 1024 * 1024)

/* --- XML --- */

/* Number of bytes at `at` that XML cannot represent: a control character, invalid UTF-8, or U+FFFE
 * or U+FFFF. 0: the character is allowed. */
static size_t count_unwritable(const unsigned char *at, bool is_utf8)
{
    if (*at < 0x20 || *at == 0x7F || (*at >= 0x80 && !is_utf8))
        return 1;
    return at[0] == 0xEF && at[1] == 0xBF && (at[2] == 0xBE || at[2] == 0xBF) ? 3 : 0;
}

/* Newlines and quotes are literal in a text, but not in an attribute. */
static void put_xml(FILE *out, const char *text, const char *kept)
{
    static const char special[] = "&<>\"\n\t";
    static const char *const written[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#10;", "&#9;"};
    const bool is_utf8 = as_str_is_utf8(text, strlen(text));
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        const char *found = strchr(kept, *at) ? NULL : strchr(special, *at);
        const size_t bad = found || strchr(kept, *at) ? 0 : count_unwritable(at, is_utf8);
        if (found)
            fputs(written[found - special], out);
        else
            fputc(bad ? '?' : *at, out);
        at += bad ? bad - 1 : 0;
    }
}

static void put_attribute(FILE *out, const char *name, const char *value)
{
    fprintf(out, " %s=\"", name);
    put_xml(out, value, "");
    fputc('"', out);
}

static void put_failure(const struct test_file *file, const struct test_failure *failure, FILE *out)
{
    AS_CLEANUP(as_free_p) char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        abort();
    test_print_failure(file, failure, false, memory);
    if (fclose(memory) != 0)
        abort();
    const struct test_difference *first = &failure->differences[0];
    AS_CLEANUP(as_free_p)
    char *message = as_xasprintf("%s: expected %s, got %s", test_aspect_get_word(first->aspect),
                                 first->expected, first->got);
    fputs("      <failure", out);
    put_attribute(out, "message", message);
    fputc('>', out);
    put_xml(out, text, "\"\n");
    fputs("</failure>\n", out);
}

static void put_suite(const struct test_file *file, FILE *out)
{
    size_t failed = 0;
    double seconds = 0;
    for (size_t i = 0; i < file->count; i++) {
        failed += file->results[i].failure_count > 0;
        seconds += file->seconds[i];
    }
    fputs("  <testsuite", out);
    put_attribute(out, "name", file->tests->path);
    fprintf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"0\" time=\"%.6f\">\n", file->count,
            failed, seconds);
    for (size_t i = 0; i < file->count; i++) {
        const struct test_result *result = &file->results[i];
        fputs("    <testcase", out);
        put_attribute(out, "classname", file->tests->path);
        put_attribute(out, "name", result->test->name);
        fprintf(out, " time=\"%.6f\"%s>\n", file->seconds[i], result->failure_count > 0 ? "" : "/");
        for (size_t j = 0; j < result->failure_count; j++)
            put_failure(file, &result->failures[j], out);
        if (result->failure_count > 0)
            fputs("    </testcase>\n", out);
    }
    fputs("  </testsuite>\n", out);
}

static void test_print_junit(const struct test_file *files, size_t count, FILE *out)
{
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n", out);
    for (size_t i = 0; i < count; i++)
        put_suite(&files[i], out);
    fputs("</testsuites>\n", out);
}

/* --- JSON --- */

static void write_differences(struct as_json_writer *json, const struct test_failure *failure)
{
    as_json_write_key(json, "differences");
    as_json_begin_object(json);
    for (size_t i = 0; i < failure->difference_count; i++) {
        const struct test_difference *difference = &failure->differences[i];
        as_json_write_key(json, test_aspect_get_word(difference->aspect));
        as_json_begin_object(json);
        as_json_write_member(json, "expected", difference->expected);
        as_json_write_member(json, "got", difference->got);
        as_json_end_object(json);
    }
    as_json_end_object(json);
}

static void write_subject(struct as_json_writer *json, const struct as_rule_test_event *event)
{
    if (event->kind != AS_RULE_TEST_EXPECT_ALERT) {
        as_json_write_member(json, "target", event->target);
        return;
    }
    const struct as_labels *labels = event->alert.labels;
    as_json_write_key(json, "alert");
    as_json_begin_object(json);
    for (uint32_t i = 0; i < labels->count; i++)
        as_json_write_member(json, labels->items[i].name, labels->items[i].value);
    as_json_end_object(json);
}

static void write_failure(struct as_json_writer *json, const struct test_failure *failure)
{
    char at[AS_DURATION_SIZE];
    as_duration_print(failure->event->at_us, at);
    as_json_begin_object(json);
    as_json_write_member_i64(json, "line", failure->event->line);
    as_json_write_member(json, "at", at);
    write_subject(json, failure->event);
    write_differences(json, failure);
    as_json_write_key(json, "history");
    as_json_begin_array(json);
    for (size_t i = 0; i < failure->history_count; i++)
        as_json_write_string(json, failure->history[i]);
    as_json_end_array(json);
    if (failure->why)
        as_json_write_member(json, "why", failure->why);
    as_json_end_object(json);
}

static void write_test(struct as_json_writer *json, const struct test_result *result)
{
    as_json_begin_object(json);
    as_json_write_member(json, "name", result->test->name);
    as_json_write_member_i64(json, "line", result->test->line);
    as_json_write_member_bool(json, "passed", result->failure_count == 0);
    as_json_write_key(json, "failures");
    as_json_begin_array(json);
    for (size_t i = 0; i < result->failure_count; i++)
        write_failure(json, &result->failures[i]);
    as_json_end_array(json);
    as_json_write_key(json, "unanswered");
    as_json_begin_array(json);
    for (size_t i = 0; i < result->unanswered_count; i++)
        as_json_write_string(json, result->unanswered[i]);
    as_json_end_array(json);
    as_json_end_object(json);
}

/* `coverage` NULL: only the list of files. */
static void test_print_json(const struct test_file *files, size_t count,
                            const struct coverage *coverage, FILE *out)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(JSON_MAX);
    struct as_json_writer json;
    as_json_init(&json, &text, AS_JSON_ANY_ORDER);
    if (coverage) {
        as_json_begin_object(&json);
        as_json_write_key(&json, "coverage");
        coverage_write(&json, coverage);
        as_json_write_key(&json, "files");
    }
    as_json_begin_array(&json);
    for (size_t i = 0; i < count; i++) {
        as_json_begin_object(&json);
        as_json_write_member(&json, "file", files[i].tests->path);
        as_json_write_member_bool(&json, "passed", !test_file_has_failed(&files[i]));
        as_json_write_key(&json, "tests");
        as_json_begin_array(&json);
        for (size_t j = 0; j < files[i].count; j++)
            write_test(&json, &files[i].results[j]);
        as_json_end_array(&json);
        as_json_end_object(&json);
    }
    as_json_end_array(&json);
    if (coverage)
        as_json_end_object(&json);
    as_buf_append_char(&text, '\n');
    as_safe_json_put(out, text.data, text.size);
}

/* --- the command --- */

struct test_files {
    struct as_rule_tests **tests;
    struct test_file *files;
    size_t count;
};

static void test_files_deinit(struct test_files *all)
{
    for (size_t i = 0; i < all->count; i++) {
        for (size_t j = 0; j < all->files[i].count; j++)
            test_result_deinit(&all->files[i].results[j]);
        free(all->files[i].results);
        free(all->files[i].seconds);
        as_rule_tests_free(all->tests[i]);
    }
    free(all->files);
    free(all->tests);
}

/* False after printing all problems, if any file has one. */
static bool test_load(const struct as_args *args, struct test_files *all)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    bool is_read = true;
    all->tests = as_xcalloc(args->operand_count, sizeof(struct as_rule_tests *));
    all->files = as_xcalloc(args->operand_count, sizeof(*all->files));
    for (size_t i = 0; i < args->operand_count; i++) {
        struct as_rule_tests *tests = NULL;
        is_read =
            as_rule_tests_load(args->operands[i], &tests, &diagnostics) == AS_CONFIG_OK && is_read;
        if (!tests)
            continue;
        all->tests[all->count] = tests;
        all->files[all->count++].tests = tests;
    }
    as_diagnostics_sort(&diagnostics);
    as_diagnostics_print(&diagnostics, stderr);
    as_diagnostics_deinit(&diagnostics);
    return is_read;
}

/* `--run` may be given several times, and matches any part of a name, as in promtool. */
static int make_patterns(const struct as_args *args, struct as_regex ***patterns_out,
                         size_t *count_out, struct as_error *error)
{
    struct as_regex **patterns = as_xcalloc(args->given_count, sizeof(struct as_regex *));
    size_t count = 0, at = 0;
    const char *text;
    int status = 0;
    while (status == 0 && (text = as_args_find_next(args, "run", &at))) {
        struct as_regex *alone = NULL;
        AS_CLEANUP(as_free_p) char *anywhere = as_xasprintf(".*(?:%s).*", text);
        status = as_regex_new(text, &alone, error); /* its error quotes the user's text */
        if (status == 0)
            status = as_regex_new(anywhere, &patterns[count], error);
        if (status == 0)
            count++;
        as_regex_free(alone);
    }
    *patterns_out = patterns;
    *count_out = count;
    return status;
}

static bool test_is_wanted(const struct as_rule_test *test, struct as_regex *const *patterns,
                           size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (as_regex_match(patterns[i], test->name))
            return true;
    }
    return count == 0;
}

static double test_get_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void run_file(struct test_file *file, struct as_regex *const *patterns, size_t count)
{
    const struct as_rule_tests *tests = file->tests;
    file->results = as_xcalloc(tests->test_count, sizeof(*file->results));
    file->seconds = as_xcalloc(tests->test_count, sizeof(*file->seconds));
    for (size_t i = 0; i < tests->test_count; i++) {
        if (!test_is_wanted(&tests->tests[i], patterns, count))
            continue;
        const double start = test_get_seconds();
        test_run(tests, &tests->tests[i], &file->results[file->count]);
        file->seconds[file->count++] = test_get_seconds() - start;
    }
}

static int write_junit(const struct as_args *args, const struct test_files *all)
{
    const char *path = as_args_get(args, "junit");
    if (!path)
        return 0;
    int fd;
    const int status = as_file_open_output(path, &fd);
    if (status)
        return as_cli_fail(args, "%s: %s", path, as_errno_get_text(status));
    FILE *out = fdopen(fd, "w");
    if (!out) {
        close(fd);
        return as_cli_fail(args, "%s: cannot be written", path);
    }
    test_print_junit(all->files, all->count, out);
    const bool is_bad = ferror(out);
    if (fclose(out) != 0 || is_bad)
        return as_cli_fail(args, "%s: cannot be written", path);
    return 0;
}

static bool test_wants_colors(void)
{
    const char *terminal = getenv("TERM"), *no_color = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && !(no_color && *no_color) && terminal &&
           strcmp(terminal, "dumb") != 0;
}

/* "3 tests passed", "1 of 3 tests failed" */
static void test_print_count(const struct test_files *all, FILE *out)
{
    size_t count = 0, failed = 0;
    for (size_t i = 0; i < all->count; i++) {
        count += all->files[i].count;
        for (size_t k = 0; k < all->files[i].count; k++)
            failed += all->files[i].results[k].failure_count > 0;
    }
    const char *plural = count == 1 ? "" : "s";
    if (failed > 0)
        fprintf(out, "%zu of %zu test%s failed\n", failed, count, plural);
    else if (count > 0)
        fprintf(out, "%zu test%s passed\n", count, plural);
}

static int run_all(const struct as_args *args, struct test_files *all,
                   struct as_regex *const *patterns, size_t count)
{
    const bool is_json = as_args_wants_json(args), colors = !is_json && test_wants_colors();
    const bool has_coverage = as_args_has(args, "coverage");
    AS_CLEANUP(coverage_deinit) struct coverage coverage = {0};
    size_t test_run_files = 0;
    bool has_failed = false;
    for (size_t i = 0; i < all->count; i++) {
        run_file(&all->files[i], patterns, count);
        test_run_files += all->files[i].count;
        has_failed = test_file_has_failed(&all->files[i]) || has_failed;
        if (!is_json)
            test_print_text(&all->files[i], colors, stdout);
    }
    if (has_coverage)
        coverage = coverage_make(all->files, all->count);
    if (is_json)
        test_print_json(all->files, all->count, has_coverage ? &coverage : NULL, stdout);
    else
        test_print_count(all, stdout);
    if (has_coverage && !is_json)
        coverage_print_text(&coverage, stdout);
    const int status = write_junit(args, all);
    if (status == 0 && test_run_files == 0) {
        (void)as_cli_fail(args, "no test of these files was run");
        return AS_EXIT_NO;
    }
    return status ? status : has_failed ? AS_EXIT_NO : AS_EXIT_OK;
}

static int test_run_files(const struct as_args *args)
{
    AS_CLEANUP(test_files_deinit) struct test_files all = {0};
    struct as_error error = AS_ERROR_INIT;
    struct as_regex **patterns;
    size_t count;
    int status = AS_EXIT_USAGE;
    if (make_patterns(args, &patterns, &count, &error) != 0)
        (void)as_cli_fail(args, "--run: %s", error.text);
    else if (test_load(args, &all))
        status = run_all(args, &all, patterns, count);
    for (size_t i = 0; i < count; i++)
        as_regex_free(patterns[i]);
    free(patterns);
    return status;
}

static const struct as_option test_options[] = {
    {.name = "run",
     .value = "REGEX",
     .repeats = true,
     .help = "Only the tests whose names match; may be given several times"},
    {.name = "coverage", .help = "Lists the rules, gates and reasons that no test reaches"},
    {.name = "junit", .value = "FILE", .help = "Writes the results as JUnit's XML too"},
    AS_OPTION_OUTPUT,
    {0},
};

const struct as_command as_command_test = {
    .name = "test",
    .operands = "FILE...",
    .summary = "Runs unit tests of rules.",
    .help =
        "A FILE names rule files, the alerts and data over time, and the expected decisions\n"
        "(docs/testing.md). Time is virtual, nothing outside is touched. Exit status 0: all tests\n"
        "passed; 1: a test failed; 2: a file has errors.",
    .options = test_options,
    .operands_min = 1,
    .operands_max = SIZE_MAX,
    .run = test_run_files,
};
