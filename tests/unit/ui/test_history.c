/*
 * The history: what it remembers of a day, within its bound; and that any log fills it, whatever is
 * in the file.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <event2/event.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/port/clock.h>
#include <alertscaler/ui/history.h>

#define START  INT64_C(1795600000000000) /* 2026-11-25 */
#define MINUTE AS_US_PER_MIN

#define SMALL_BYTES ((size_t)256 * 1024)
#define HARDLY_ANY  ((size_t)300 * 1024) /* half of it for names */

static struct as_history *history;

static void setup(void)
{
    history = as_history_new(AS_HISTORY_BYTES_MAX);
}

static void teardown(void)
{
    history = as_history_free(history);
}

TestSuite(history, .init = setup, .fini = teardown);

/* A record, as in the log; `at` in microseconds. */
AS_PRINTF(2, 3) static void take(int64_t at, const char *format, ...)
{
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    cr_assert_lt(vsnprintf(text, sizeof(text), format, arguments), (int)sizeof(text));
    va_end(arguments);
    json_t *record = json_loads(text, 0, NULL);
    cr_assert(record, "%s", text);
    as_history_add_record(history, record, (as_wall_time){at}, (as_wall_time){at - 1000000});
    json_decref(record);
}

#define DECIDED                                                                                    \
    "{\"kind\":\"decision\",\"target\":\"%s\",\"output\":{\"replicas\":%d},\"input\":{\"target\":" \
    "{\"cooldown\":{\"up\":60,\"down\":300,\"up_after_down\":0}}}}"
#define ACTED                                                                                      \
    "{\"kind\":\"action\",\"target\":\"%s\",\"rule\":\"slow\",\"from\":%d,\"to\":%d,"              \
    "\"outcome\":\"%s\"}"
#define FIRED                                                                                      \
    "{\"kind\":\"incident\",\"event\":\"%s\",\"labels\":{\"alertname\":\"%s\"},"                   \
    "\"targets\":[{\"target\":\"%s\",\"rule\":\"slow\"}]}"

static struct as_history_chart draw(const char *target, int64_t from, int64_t to)
{
    struct as_history_chart chart;
    as_history_draw(history, target, (as_wall_time){from}, (as_wall_time){to}, &chart);
    return chart;
}

/* "0:? 1:4 3:6": minutes and sizes. */
static const char *spell(const struct as_timeline *line)
{
    static char text[4096];
    size_t size = 0;
    text[0] = '\0';
    for (size_t i = 0; i < line->count; i++) {
        const struct as_timeline_point *point = &line->points[i];
        size += (size_t)snprintf(text + size, sizeof(text) - size, "%s%" PRId64 ":", i ? " " : "",
                                 (point->at - START) / MINUTE);
        size += point->size == AS_TIMELINE_UNKNOWN
                    ? (size_t)snprintf(text + size, sizeof(text) - size, "?")
                    : (size_t)snprintf(text + size, sizeof(text) - size, "%" PRId32, point->size);
    }
    return text;
}

static void expect_line(const char *target, const char *line)
{
    struct as_history_chart chart = draw(target, START, START + 100 * MINUTE);
    cr_expect_str_eq(spell(&chart.line), line);
    as_history_chart_deinit(&chart);
}

Test(history, sizes_are_known_from_decisions_and_actions)
{
    take(START + 10 * MINUTE, DECIDED, "a", 4);
    take(START + 20 * MINUTE, DECIDED, "a", 4);
    take(START + 30 * MINUTE, ACTED, "a", 4, 6, "applied");
    take(START + 40 * MINUTE, ACTED, "a", 6, 9, "unreachable");
    expect_line("a", "0:? 10:4 30:6");
    expect_line("b", "0:?");
}

/* What was so before the chart begins is so at its beginning. */
Test(history, what_was_before_still_holds)
{
    take(START - 5 * MINUTE, DECIDED, "a", 4);
    take(START - 5 * MINUTE, FIRED, "opened", "Slow", "a");
    struct as_history_chart chart = draw("a", START, START + 10 * MINUTE);
    cr_expect_str_eq(spell(&chart.line), "0:4");
    cr_assert_eq(chart.alert_count, 1);
    cr_expect_eq(chart.alerts[0].intervals[0].from, START);
    cr_expect_eq(chart.alerts[0].intervals[0].to, START + 10 * MINUTE);
    as_history_chart_deinit(&chart);
}

/* A chart of a time in the past ends with that time. */
Test(history, what_comes_after_the_end_is_not_shown)
{
    take(START + 10 * MINUTE, DECIDED, "a", 4);
    take(START + 20 * MINUTE, DECIDED, "a", 5);
    take(START + 30 * MINUTE, FIRED, "opened", "Slow", "a");
    take(START + 30 * MINUTE, ACTED, "a", 5, 7, "applied");
    struct as_history_chart chart = draw("a", START, START + 20 * MINUTE);
    cr_expect_str_eq(spell(&chart.line), "0:? 10:4 20:5");
    cr_expect_eq(chart.alert_count, 0);
    cr_expect_eq(chart.lock_count, 0);
    cr_expect_eq(chart.mark_count, 0);
    as_history_chart_deinit(&chart);
}

/* Another source knows sizes and actions of the time before; memory wins where both do. */
Test(history, a_chart_goes_on_before_what_is_known)
{
    const struct as_history_action actions[] = {
        {"a", "old", {START - MINUTE}, 1, 2, AS_REASON_APPLIED},
        {"a", "old", {START + 5 * MINUTE}, 2, 3, AS_REASON_APPLIED},
        {"a", "", {START + 6 * MINUTE}, 3, 4, AS_REASON_UNREACHABLE},
        {"a", "old", {START + 30 * MINUTE}, 5, 9, AS_REASON_APPLIED},
    };
    struct as_timeline older = {0};
    as_timeline_add(&older, START - MINUTE, 2);
    as_timeline_add(&older, START + 5 * MINUTE, 3);
    as_timeline_add(&older, START + 8 * MINUTE, AS_TIMELINE_UNKNOWN);
    as_timeline_add(&older, START + 30 * MINUTE, 9);
    take(START + 10 * MINUTE, DECIDED, "a", 4);
    take(START + 20 * MINUTE, ACTED, "a", 4, 6, "applied");
    struct as_history_chart chart = draw("a", START, START + 100 * MINUTE);
    as_history_chart_extend(&chart, &older, actions, AS_ARRAY_SIZE(actions));
    cr_expect_str_eq(spell(&chart.line), "0:2 5:3 8:? 10:4 20:6");
    cr_assert_eq(chart.mark_count, 3);
    cr_expect(strstr(chart.marks[0].text, "2 to 3: applied, rule old"));
    cr_expect(strstr(chart.marks[1].text, "3 to 4: unreachable"));
    cr_expect_eq(chart.marks[1].size, 3);
    cr_expect(strstr(chart.marks[2].text, "4 to 6: applied, rule slow"));
    as_history_chart_deinit(&chart);
    chart = draw("b", START, START + 100 * MINUTE); /* memory knows nothing */
    as_history_chart_extend(&chart, &older, actions, AS_ARRAY_SIZE(actions));
    cr_expect_str_eq(spell(&chart.line), "0:2 5:3 8:? 30:9");
    cr_expect_eq(chart.mark_count, 3);
    as_history_chart_deinit(&chart);
    as_timeline_deinit(&older);
}

/* The latest actions of both, up to the limit. */
Test(history, a_long_chart_has_the_latest_actions)
{
    struct as_history_action actions[300];
    struct as_timeline older = {0};
    for (int64_t i = 0; i < 300; i++)
        actions[i] = (struct as_history_action){"a", "old", {START + i * AS_US_PER_S},
                                                1,   2,     AS_REASON_APPLIED};
    for (int64_t i = 0; i < 150; i++)
        take(START + (10 + i) * MINUTE, ACTED, "a", 1, (int)(i % 2) + 1, "applied");
    struct as_history_chart chart = draw("a", START, START + 200 * MINUTE);
    as_history_chart_extend(&chart, &older, actions, AS_ARRAY_SIZE(actions));
    cr_expect_eq(chart.mark_count, (size_t)AS_HISTORY_MARKS_MAX);
    cr_expect_eq(chart.marks[0].at, START + 250 * AS_US_PER_S);
    as_history_chart_deinit(&chart);
}

Test(history, an_interruption_is_a_gap)
{
    take(START + 10 * MINUTE, DECIDED, "a", 4);
    as_history_interrupt(history, (as_wall_time){START + 20 * MINUTE});
    take(START + 50 * MINUTE, DECIDED, "a", 4);
    expect_line("a", "0:? 10:4 20:? 50:4");
}

/* A process that was killed leaves no `stop`: the gap begins with the last record before. */
Test(history, a_start_in_the_log_ends_what_was_known)
{
    take(START + 10 * MINUTE, DECIDED, "a", 4);
    take(START + 30 * MINUTE, "{\"kind\":\"start\"}");
    take(START + 40 * MINUTE, DECIDED, "a", 5);
    struct as_history_chart chart = draw("a", START, START + 100 * MINUTE);
    cr_expect_str_eq(spell(&chart.line), "0:? 10:4 29:? 40:5");
    as_history_chart_deinit(&chart);
}

Test(history, actions_have_their_reason_and_rule)
{
    take(START + 10 * MINUTE, ACTED, "a", 4, 6, "applied");
    take(START + 20 * MINUTE, ACTED, "a", 6, 9, "unreachable");
    struct as_history_chart chart = draw("a", START, START + 30 * MINUTE);
    cr_assert_eq(chart.mark_count, 2);
    cr_expect_not(chart.marks[0].is_failed);
    cr_expect_eq(chart.marks[0].size, 6);
    cr_expect(strstr(chart.marks[0].text, ": 4 to 6: applied, rule slow"));
    cr_expect(chart.marks[1].is_failed);
    cr_expect_eq(chart.marks[1].size, 6, "it stayed");
    as_history_chart_deinit(&chart);
}

/* Up 1 minute and down 5 after an increase; an unlock ends both. */
Test(history, locks_follow_actions_and_end_with_an_unlock)
{
    take(START, DECIDED, "a", 4);
    take(START + 10 * MINUTE, ACTED, "a", 4, 6, "applied");
    take(START + 20 * MINUTE, ACTED, "a", 6, 7, "applied");
    take(START + 22 * MINUTE,
         "{\"kind\":\"command\",\"command\":\"unlock\",\"outcome\":\"done\",\"target\":\"a\"}");
    struct as_history_chart chart = draw("a", START, START + 30 * MINUTE);
    cr_assert_eq(chart.lock_count, 2);
    cr_assert_eq(chart.locks[0].count, 2);
    cr_expect_eq(chart.locks[0].intervals[0].to, START + 11 * MINUTE);
    cr_assert_eq(chart.locks[1].count, 2);
    cr_expect_eq(chart.locks[1].intervals[0].to, START + 15 * MINUTE);
    cr_expect_eq(chart.locks[1].intervals[1].to, START + 22 * MINUTE);
    as_history_chart_deinit(&chart);
}

/* 50 names of alerts on one target: the last band has the rest. */
Test(history, many_alerts_share_the_last_band)
{
    char name[32];
    for (int i = 0; i < 50; i++) {
        (void)snprintf(name, sizeof(name), "Alert%d", i);
        take(START + i * MINUTE, FIRED, "opened", name, "a");
        take(START + (i + 1) * MINUTE, FIRED, "closed", name, "a");
    }
    struct as_history_chart chart = draw("a", START, START + 100 * MINUTE);
    cr_assert_eq(chart.alert_count, AS_TIMELINE_BANDS_MAX);
    cr_expect_str_eq(chart.alerts[AS_TIMELINE_BANDS_MAX - 1].name, "further alerts");
    as_history_chart_deinit(&chart);
}

/* --- the bound --- */

/* A target that never rests, beside one with a single event: the quiet one is not forgotten. */
Test(history, a_busy_target_does_not_push_out_a_quiet_one)
{
    as_history_free(history);
    history = as_history_new(SMALL_BYTES);
    take(START + MINUTE, DECIDED, "quiet", 3);
    for (int i = 0; i < 40000; i++)
        take(START + 2 * MINUTE + i * 1000, DECIDED, "busy", i % 50);
    cr_expect_leq(as_history_get_bytes(history), SMALL_BYTES);
    expect_line("quiet", "0:? 1:3");
    struct as_timeline line;
    as_history_trace(history, "busy", (as_wall_time){START}, (as_wall_time){START + 10 * MINUTE},
                     &line);
    cr_expect_gt(line.count, 100);
    as_timeline_deinit(&line);
}

Test(history, any_number_of_targets_fits)
{
    char id[64];
    for (int i = 0; i < 30000; i++) {
        (void)snprintf(id, sizeof(id), "kubernetes/default/apps/v1/Deployment/shop/web-%d", i);
        take(START + i * 1000, DECIDED, id, 4);
        if (i % 1000 == 0)
            cr_assert_leq(as_history_get_bytes(history), AS_HISTORY_BYTES_MAX);
    }
    cr_expect_leq(as_history_get_bytes(history), AS_HISTORY_BYTES_MAX);
    struct as_timeline line;
    as_history_trace(history, id, (as_wall_time){START}, (as_wall_time){START + 10 * MINUTE},
                     &line);
    cr_expect_eq(line.points[line.count - 1].size, 4, "the newest is known");
    as_timeline_deinit(&line);
}

/* With hardly any memory it forgets, and never reads what it freed (ASan). */
Test(history, hardly_any_memory)
{
    as_history_free(history);
    history = as_history_new(HARDLY_ANY);
    char id[64], name[64];
    for (int i = 0; i < 6000; i++) {
        (void)snprintf(id, sizeof(id), "t%d", i % 700);
        (void)snprintf(name, sizeof(name), "Alert%d", i % 3000);
        take(START + i * 1000, FIRED, i % 3 ? "opened" : "closed", name, id);
        take(START + i * 1000, DECIDED, id, i % 7);
        take(START + i * 1000, ACTED, id, i % 7, i % 5, "applied");
        if (i % 500 == 0)
            as_history_interrupt(history, (as_wall_time){START + i * 1000});
    }
    cr_expect_leq(as_history_get_bytes(history), HARDLY_ANY);
}

/* After a day the old is gone, but for what still holds. */
Test(history, a_day_is_remembered)
{
    take(START, FIRED, "opened", "Slow", "a");
    take(START, DECIDED, "a", 3);
    for (int i = 1; i < 4000; i++)
        take(START + i * MINUTE, DECIDED, "a", 4 + i % 2);
    cr_expect_lt(as_history_get_bytes(history), 600000);
    struct as_history_chart chart =
        draw("a", START + 3999 * MINUTE - AS_US_PER_DAY, START + 4000 * MINUTE);
    cr_assert_eq(chart.alert_count, 1, "the alert still fires");
    cr_expect_neq(chart.line.points[0].size, AS_TIMELINE_UNKNOWN);
    as_history_chart_deinit(&chart);
}

/* --- filling from a log --- */

struct log {
    char folder[64], path[128], rotated[128];
};

static struct log make_log(const char *text, const char *rotated)
{
    struct log log = {.folder = "/tmp/history.XXXXXX"};
    cr_assert(mkdtemp(log.folder));
    (void)snprintf(log.path, sizeof(log.path), "%s/actions.jsonl", log.folder);
    (void)snprintf(log.rotated, sizeof(log.rotated), "%s/actions.jsonl.1", log.folder);
    const char *const pairs[][2] = {{log.path, text}, {log.rotated, rotated}};
    for (size_t i = 0; i < 2; i++) {
        if (!pairs[i][1])
            continue;
        FILE *file = fopen(pairs[i][0], "we");
        cr_assert(file);
        cr_assert(fputs(pairs[i][1], file) >= 0);
        cr_assert_eq(fclose(file), 0);
    }
    return log;
}

static void remove_log(const struct log *log)
{
    (void)unlink(log->path);
    (void)unlink(log->rotated);
    (void)rmdir(log->folder);
}

static void fill(const char *path, uint64_t bytes_max)
{
    struct event_base *base = event_base_new();
    struct as_history_fill *filling = as_history_fill_new(history, base, path, bytes_max);
    while (!as_history_fill_is_done(filling))
        cr_assert_eq(event_base_loop(base, EVLOOP_ONCE), 0);
    as_history_fill_free(filling);
    event_base_free(base);
}

static as_wall_time get_now(void)
{
    return as_system_clock.get_wall(&as_system_clock);
}

/* Lines of decisions, one a minute, the last one `ago` minutes ago. */
static char *make_lines(const char *target, int count, int first_size, int ago)
{
    struct as_buf text = AS_BUF_INIT((size_t)64 * 1024 * 1024);
    char time[AS_RFC3339_SIZE];
    for (int i = 0; i < count; i++) {
        as_wall_time_print((as_wall_time){get_now().us - (ago + count - 1 - i) * MINUTE}, time);
        as_buf_printf(&text,
                      "{\"kind\":\"decision\",\"output\":{\"replicas\":%d},\"target\":\"%s\","
                      "\"time\":\"%s\"}\n",
                      first_size + i, target, time);
    }
    return as_buf_take(&text, NULL);
}

/* How many points, and the size before the last gap. */
static size_t count_points(const char *target, int32_t *last_out, bool *ends_unknown_out)
{
    struct as_timeline line;
    as_history_trace(history, target, (as_wall_time){get_now().us - AS_US_PER_DAY}, get_now(),
                     &line);
    const size_t count = line.count;
    *last_out = AS_TIMELINE_UNKNOWN;
    for (size_t i = 0; i < count; i++)
        *last_out = line.points[i].size >= 0 ? line.points[i].size : *last_out;
    *ends_unknown_out = line.points[count - 1].size == AS_TIMELINE_UNKNOWN;
    as_timeline_deinit(&line);
    return count;
}

Test(history, is_filled_from_a_log_and_the_one_rotated_before)
{
    AS_CLEANUP(as_free_p) char *old = make_lines("a", 20, 1, 40);
    AS_CLEANUP(as_free_p) char *young = make_lines("a", 20, 51, 10);
    const struct log log = make_log(young, old);
    int32_t last;
    bool ends_unknown;
    fill(log.path, AS_HISTORY_FILL_MAX);
    cr_expect_eq(count_points("a", &last, &ends_unknown), 42);
    cr_expect_eq(last, 70);
    cr_expect(ends_unknown, "nobody has looked since");
    remove_log(&log);
}

/* Only the end of a long file, from its next whole line on. */
Test(history, reads_no_more_than_it_may)
{
    AS_CLEANUP(as_free_p) char *lines = make_lines("a", 1000, 1, 1);
    const struct log log = make_log(lines, lines);
    int32_t last;
    bool ends_unknown;
    fill(log.path, 10000);
    const size_t count = count_points("a", &last, &ends_unknown);
    cr_expect_eq(last, 1000);
    cr_expect(count > 80 && count < 120, "%zu", count);
    remove_log(&log);
}

Test(history, a_missing_log_and_a_folder_are_no_log)
{
    fill(NULL, AS_HISTORY_FILL_MAX);
    fill("/there/is/no/such/log", AS_HISTORY_FILL_MAX);
    fill("/", AS_HISTORY_FILL_MAX);
    cr_expect_lt(as_history_get_bytes(history), 20000);
}

/* Torn lines, altered ones, other versions, other types, nonsense: the rest counts. */
Test(history, whatever_is_in_the_file_the_rest_counts)
{
    AS_CLEANUP(as_free_p) char *good = make_lines("a", 3, 7, 5);
    char *long_line = as_xcalloc(1, 3 * 1024 * 1024 + 1);
    memset(long_line, 'x', 3 * 1024 * 1024);
    char later[AS_RFC3339_SIZE];
    as_wall_time_print((as_wall_time){get_now().us + 50 * MINUTE}, later);
    AS_CLEANUP(as_free_p)
    char *text = as_xasprintf(
        "not json\n\n{}\n[]\nnull\n{\"time\":12}\n%s\n"
        "{\"kind\":\"decision\",\"target\":[],\"output\":4,\"time\":\"2026-11-20T10:00:00Z\"}\n"
        "{\"kind\":\"decision\",\"target\":\"a\",\"output\":{\"replicas\":-5},"
        "\"time\":\"2026-11-20T10:00:00Z\"}\n"
        "{\"kind\":\"decision\",\"target\":\"a\",\"output\":{\"replicas\":99999999999},"
        "\"time\":\"2026-11-20T10:00:00Z\"}\n"
        "{\"kind\":\"action\",\"target\":\"a\",\"to\":4,\"outcome\":\"no such word\","
        "\"time\":\"2026-11-20T10:00:00Z\"}\n"
        "{\"kind\":\"incident\",\"event\":\"opened\",\"labels\":7,\"targets\":{\"a\":1},"
        "\"time\":\"2026-11-20T10:00:00Z\"}\n"
        "{\"kind\":\"decision\",\"target\":\"a\",\"output\":{\"replicas\":500},\"time\":\"%s\"}\n"
        "%s{\"kind\":\"decision\",\"target\":\"a\",\"output\":{\"replicas\":77}",
        long_line, later, good);
    const struct log log = make_log(text, NULL);
    int32_t last;
    bool ends_unknown;
    fill(log.path, AS_HISTORY_FILL_MAX);
    cr_expect_eq(count_points("a", &last, &ends_unknown), 5);
    cr_expect_eq(last, 9, "neither the future nor the torn line");
    free(long_line);
    remove_log(&log);
}

/* A log whose times run backwards costs no more than another one. */
Test(history, times_do_not_go_back)
{
    struct as_buf text = AS_BUF_INIT((size_t)64 * 1024 * 1024);
    char time[AS_RFC3339_SIZE];
    for (int i = 0; i < 20000; i++) {
        as_wall_time_print((as_wall_time){get_now().us - i * AS_US_PER_S / 2}, time);
        as_buf_printf(&text,
                      "{\"kind\":\"decision\",\"output\":{\"replicas\":%d},\"target\":\"a\","
                      "\"time\":\"%s\"}\n",
                      i % 9, time);
    }
    const struct log log = make_log(text.data, NULL);
    int32_t last;
    bool ends_unknown;
    fill(log.path, AS_HISTORY_FILL_MAX);
    cr_expect_leq(count_points("a", &last, &ends_unknown), 5);
    as_buf_deinit(&text);
    remove_log(&log);
}

/* The first look of this life may come before the log is read: the gap is before it all the same.
 */
Test(history, a_look_during_filling_is_after_the_gap)
{
    AS_CLEANUP(as_free_p) char *lines = make_lines("a", 1, 4, 5);
    const struct log log = make_log(lines, NULL);
    struct event_base *base = event_base_new();
    struct as_history_fill *filling =
        as_history_fill_new(history, base, log.path, AS_HISTORY_FILL_MAX);
    take(get_now().us + 1000, DECIDED, "a", 4);
    while (!as_history_fill_is_done(filling))
        cr_assert_eq(event_base_loop(base, EVLOOP_ONCE), 0);
    struct as_timeline line;
    as_history_trace(history, "a", (as_wall_time){get_now().us - 10 * MINUTE},
                     (as_wall_time){get_now().us + MINUTE}, &line);
    cr_assert_eq(line.count, 4);
    cr_expect_eq(line.points[1].size, 4);
    cr_expect_eq(line.points[2].size, AS_TIMELINE_UNKNOWN);
    cr_expect_eq(line.points[3].size, 4);
    as_timeline_deinit(&line);
    as_history_fill_free(filling);
    event_base_free(base);
    remove_log(&log);
}
