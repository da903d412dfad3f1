/*
 * `alertscaler effects`: whether the actions of each rule helped, from the action log's records of
 * the kind `effect`. Percentiles are of the nearest rank: a time that was really taken.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/decide/record.h>
#include <alertscaler/tools/record_text.h>

#include "cli.h"
#include "http_call.h"
#include "log_reader.h"

#define WENT_BACK_US (10 * AS_US_PER_MIN)
/* An effect may be recorded so long after its action: normally within an hour, after an outage of
 * the daemon later. A daemon sends the actions of this time, too. */
#define EFFECT_DELAY_US (7 * AS_US_PER_DAY)

struct times { /* in seconds */
    double *items;
    size_t count, capacity;
};

struct row { /* of a rule */
    char *rule;
    uint64_t ends[AS_EVALUATION_UNKNOWN + 1], went_back;
    struct times ready, resolved;
};

struct tally {
    as_wall_time since;
    json_t *effects; /* records */
    json_t *last; /* of each target: id, direction and time of the last action that was applied */
    json_t *back; /* ids of actions after which the size went back, as keys */
    struct row *rows; /* ascending by their rules */
    size_t row_count, row_capacity;
};

static bool wants(void *context, const struct log_line *line)
{
    (void)context;
    return log_line_has(line, "\"kind\":\"effect\"") || log_line_has(line, "\"kind\":\"action\"");
}

/* Notes that the action before it went back, if it did. */
static void effects_count_action(struct tally *tally, const json_t *record, as_wall_time time)
{
    const char *target = as_record_get_text(record, "target");
    const json_t *last = json_object_get(tally->last, target);
    int32_t from, to;

    if (strcmp(as_record_get_text(record, "outcome"), "applied") != 0 ||
        !as_record_get_size(record, "from", &from) || !as_record_get_size(record, "to", &to) ||
        from == to)
        return;
    if (last && json_is_true(json_object_get(last, "up")) != (to > from) &&
        time.us - json_integer_value(json_object_get(last, "time")) <= WENT_BACK_US)
        json_object_set_new(tally->back, as_record_get_text(last, "id"), json_true());
    json_object_set_new(tally->last, target,
                        json_pack("{s:s, s:b, s:I}", "id", as_record_get_text(record, "id"), "up",
                                  to > from, "time", (json_int_t)time.us));
}

static int effects_read_record(void *context, const struct log_line *line, json_t *record,
                               struct as_error *error)
{
    struct tally *tally = context;
    as_wall_time time;
    (void)line;

    if (as_record_get_time(record, &time, error) != 0)
        return -1;
    if (strcmp(as_record_get_text(record, "kind"), "action") == 0)
        effects_count_action(tally, record, time);
    else if (time.us >= tally->since.us)
        json_array_append(tally->effects, record);
    return 0;
}

static struct row *get_row(struct tally *tally, const char *rule)
{
    size_t at = 0;
    while (at < tally->row_count && strcmp(tally->rows[at].rule, rule) < 0)
        at++;
    if (at < tally->row_count && strcmp(tally->rows[at].rule, rule) == 0)
        return &tally->rows[at];
    tally->rows =
        as_xgrow(tally->rows, tally->row_count, &tally->row_capacity, sizeof(*tally->rows));
    memmove(&tally->rows[at + 1], &tally->rows[at],
            (tally->row_count++ - at) * sizeof(*tally->rows));
    tally->rows[at] = (struct row){.rule = as_xstrdup(rule)};
    return &tally->rows[at];
}

static void add_time(struct times *times, const json_t *seconds)
{
    if (!json_is_number(seconds))
        return;
    times->items = as_xgrow(times->items, times->count, &times->capacity, sizeof(*times->items));
    times->items[times->count++] = json_number_value(seconds);
}

/* A word of a later version counts as unknown. */
static enum as_effect_end find_end(const char *word)
{
    int end = 0;
    while (end < AS_EVALUATION_UNKNOWN &&
           strcmp(as_effect_end_get_word((enum as_effect_end)end), word) != 0)
        end++;
    return (enum as_effect_end)end;
}

static int compare_times(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void effects_count(struct tally *tally)
{
    const json_t *record;
    size_t i;
    json_array_foreach(tally->effects, i, record)
    {
        struct row *row = get_row(tally, as_record_get_text(record, "rule"));
        row->ends[find_end(as_record_get_text(record, "ended"))]++;
        row->went_back +=
            json_object_get(tally->back, as_record_get_text(record, "action")) != NULL;
        add_time(&row->ready, json_object_get(record, "ready_after"));
        add_time(&row->resolved, json_object_get(record, "resolved_after"));
    }
    for (i = 0; i < tally->row_count; i++) {
        struct times *const lists[] = {&tally->rows[i].ready, &tally->rows[i].resolved};
        for (size_t k = 0; k < AS_ARRAY_SIZE(lists); k++) {
            if (lists[k]->count > 0)
                qsort(lists[k]->items, lists[k]->count, sizeof(double), compare_times);
        }
    }
}

/* Negative: there is none. */
static double get_percentile(const struct times *times, unsigned percent)
{
    return times->count > 0 ? times->items[(times->count * percent + 99) / 100 - 1] : -1;
}

static uint64_t count_actions(const struct row *row)
{
    return row->ends[AS_EVALUATION_RESOLVED] + row->ends[AS_EVALUATION_NOT_RESOLVED] +
           row->ends[AS_EVALUATION_UNKNOWN];
}

static json_t *make_times(const struct times *times)
{
    const double median = get_percentile(times, 50), p90 = get_percentile(times, 90);
    return json_pack("{s:I, s:o, s:o}", "count", (json_int_t)times->count, "median",
                     median < 0 ? json_null() : json_real(median), "p90",
                     p90 < 0 ? json_null() : json_real(p90));
}

static void print_json(const struct tally *tally)
{
    json_t *rules = json_array();
    for (size_t i = 0; i < tally->row_count; i++) {
        const struct row *row = &tally->rows[i];
        json_array_append_new(
            rules, json_pack("{s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:I}", "rule", row->rule,
                             "actions", (json_int_t)count_actions(row), "resolved",
                             (json_int_t)row->ends[AS_EVALUATION_RESOLVED], "not_resolved",
                             (json_int_t)row->ends[AS_EVALUATION_NOT_RESOLVED], "unknown",
                             (json_int_t)row->ends[AS_EVALUATION_UNKNOWN], "ready_after",
                             make_times(&row->ready), "resolved_after", make_times(&row->resolved),
                             "went_back", (json_int_t)row->went_back));
    }
    char since[AS_RFC3339_SIZE];
    as_wall_time_print(tally->since, since);
    json_t *all = json_pack("{s:s, s:o}", "since", since, "rules", rules);
    as_cli_print_json(all, JSON_INDENT(2) | JSON_REAL_PRECISION(9), stdout);
    json_decref(all);
}

/* "12s", "1m30s"; below ten seconds with a digit more; "-": none. */
static char *describe_time(double seconds)
{
    char text[AS_DURATION_SIZE];
    if (seconds < 0)
        return as_xstrdup("-");
    if (seconds < 9.95)
        return as_xasprintf("%.1fs", seconds);
    as_duration_print((int64_t)(seconds + 0.5) * AS_US_PER_S, text);
    return as_xstrdup(text);
}

enum { COLUMNS = 9 };
static const char *const titles[COLUMNS] = {"RULE",         "ACTIONS",      "RESOLVED",
                                            "NOT RESOLVED", "READY P50",    "READY P90",
                                            "RESOLVED P50", "RESOLVED P90", "WENT BACK"};

static void make_cells(const struct row *row, char *cells_out[COLUMNS])
{
    char *const cells[COLUMNS] = {
        as_safe_text_take(as_xstrdup(row->rule)),
        as_xasprintf("%" PRIu64, count_actions(row)),
        as_xasprintf("%" PRIu64, row->ends[AS_EVALUATION_RESOLVED]),
        as_xasprintf("%" PRIu64, row->ends[AS_EVALUATION_NOT_RESOLVED]),
        describe_time(get_percentile(&row->ready, 50)),
        describe_time(get_percentile(&row->ready, 90)),
        describe_time(get_percentile(&row->resolved, 50)),
        describe_time(get_percentile(&row->resolved, 90)),
        as_xasprintf("%" PRIu64, row->went_back),
    };
    memcpy(cells_out, cells, sizeof(cells));
}

static void print_cells(const char *const *cells, const size_t *widths)
{
    for (size_t i = 0; i < COLUMNS; i++)
        printf("%-*s", i + 1 < COLUMNS ? (int)widths[i] + 2 : 0, cells[i]);
    putchar('\n');
}

static void print_table(const struct tally *tally)
{
    char *(*rows)[COLUMNS] = as_xcalloc(tally->row_count + 1, sizeof(*rows));
    size_t widths[COLUMNS];
    for (size_t i = 0; i < COLUMNS; i++)
        widths[i] = strlen(titles[i]);
    for (size_t k = 0; k < tally->row_count; k++) {
        make_cells(&tally->rows[k], rows[k]);
        for (size_t i = 0; i < COLUMNS; i++) {
            const size_t width = strlen(rows[k][i]);
            widths[i] = width > widths[i] ? width : widths[i];
        }
    }
    print_cells(titles, widths);
    for (size_t k = 0; k < tally->row_count; k++) {
        print_cells((const char *const *)rows[k], widths);
        for (size_t i = 0; i < COLUMNS; i++)
            free(rows[k][i]);
    }
    free(rows);
}

static void deinit(struct tally *tally)
{
    for (size_t i = 0; i < tally->row_count; i++) {
        free(tally->rows[i].rule);
        free(tally->rows[i].ready.items);
        free(tally->rows[i].resolved.items);
    }
    free(tally->rows);
    json_decref(tally->effects);
    json_decref(tally->last);
    json_decref(tally->back);
}

static int effects_run(const struct as_args *args)
{
    struct as_error error = AS_ERROR_INIT;
    struct log_files files;
    struct tally tally = {0};

    if (moment_parse("since", as_args_get(args, "since"), moment_get_now(), &tally.since, &error) ||
        log_files_find_any(args, &files, &error))
        return as_cli_fail(args, "%s", error.text);
    tally.effects = json_array();
    tally.last = json_object();
    tally.back = json_object();
    const struct log_selection selection = {
        .kinds = "action,effect",
        .since = {true, {as_time_add(tally.since.us, -EFFECT_DELAY_US)}},
    };
    const struct log_visitor visitor = {.wants = wants,
                                        .on_record = effects_read_record,
                                        .context = &tally,
                                        .selection = &selection};
    const int status = log_walk(&files, &visitor, &error);
    log_files_deinit(&files);
    const size_t found = json_array_size(tally.effects);
    if (status == 0) {
        effects_count(&tally);
        if (as_args_wants_json(args))
            print_json(&tally);
        else if (found == 0)
            puts("No action in this time has a known effect. An effect is known when the alert is "
                 "resolved, or after an hour.");
        else
            print_table(&tally);
    }
    deinit(&tally);
    if (status != 0)
        return as_cli_fail(args, "%s", error.text);
    return found > 0 ? AS_EXIT_OK : AS_EXIT_NO;
}

static const struct as_option options[] = {
    {.name = "since",
     .value = "TIME",
     .fallback = "30d",
     .help = "Effects that were recorded from then on: a time, or a duration ago"},
    AS_OPTION_CONFIG_FILE("Names the log if no FILE is given"),
    AS_OPTION_URL,
    AS_OPTION_TOKEN_FILE,
    AS_OPTION_CA_FILE,
    AS_OPTION_OUTPUT,
    {0},
};

const struct as_command as_command_effects = {
    .name = "effects",
    .operands = "[FILE...]",
    .summary = "Prints for each rule whether its actions helped.",
    .help =
        "From the action log: how many actions have a known effect, how many of their alerts were\n"
        "resolved within an hour, how long both took, and after how many the size went back\n"
        "within ten minutes. With --url or --context, from the log of a running daemon. Exit\n"
        "status 1 if there are none.",
    .options = options,
    .operands_max = 100000,
    .run = effects_run,
};
