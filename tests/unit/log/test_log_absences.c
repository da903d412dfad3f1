/* Absences: what gaps in the numbers of records and `leaders` of `start` records say together. */
#include <alertscaler/log/log_absences.h>

#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>

static char directory[40], path[80], rotated[90];
static struct as_log_index *log_index;
static struct as_log_history_view view;

static int remove_entry(const char *entry, const struct stat *info, int type, struct FTW *at)
{
    return remove(entry);
}

static void setup(void)
{
    snprintf(directory, sizeof(directory), "/tmp/as-absences-XXXXXX");
    cr_assert(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/actions.jsonl", directory);
    snprintf(rotated, sizeof(rotated), "%s.1", path);
    as_log_configure(AS_LOG_ERROR, AS_LOG_LOGFMT, open("/dev/null", O_WRONLY | O_CLOEXEC));
}

static void teardown(void)
{
    as_log_index_close(log_index);
    nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(log_absences, .init = setup, .fini = teardown);

/* Of 2026-11-20. */
static as_wall_time moment(const char *clock)
{
    AS_CLEANUP(as_free_p) char *text = as_xasprintf("2026-11-20T%sZ", clock);
    as_wall_time time;
    cr_assert_eq(as_wall_time_parse(text, strlen(text), &time), 0);
    return time;
}

static void append_record(const char *name, int seq, const char *clock, const char *members)
{
    FILE *file = fopen(name, "ae");
    cr_assert(file);
    fprintf(file, "{%s,\"seq\":%d,\"time\":\"2026-11-20T%sZ\"}\n", members, seq, clock);
    cr_assert_eq(fclose(file), 0);
}

#define STOP   "\"instance\":\"one\",\"kind\":\"stop\""
#define REPEAT "\"id\":\"R\",\"kind\":\"repeat\",\"same_as\":\"N\""
#define START(LEADERS)                                                                             \
    "\"instance\":\"one\",\"kind\":\"start\",\"leaders\":[" LEADERS "],\"rules\":1"
#define LEADER(REPLICA, SINCE, UNTIL)                                                              \
    "{\"replica\":\"" REPLICA "\",\"since\":\"2026-11-20T" SINCE                                   \
    "Z\",\"until\":\"2026-11-20T" UNTIL "Z\"}"

static void refresh(void)
{
    const struct as_log_index_config config = {.log_path = path};
    struct as_error error = AS_ERROR_INIT;
    if (!log_index)
        cr_assert_eq(as_log_index_open(&config, &log_index, &error), 0, "%s", error.text);
    view = (struct as_log_history_view){.index = log_index, .problem = ""};
    for (int i = 0; i == 0 || !view.state.is_current; i++)
        cr_assert_eq(as_log_index_step(log_index, i == 0, &view.state, &error), 0, "%s",
                     error.text);
}

static struct as_log_absences find(const char *since, const char *until)
{
    struct as_log_absences absences;
    as_log_absences_find(&view,
                         &(struct as_log_absences_query){
                             .instance = "one",
                             .since = {since != NULL, since ? moment(since) : (as_wall_time){0}},
                             .until = {until != NULL, until ? moment(until) : (as_wall_time){0}},
                             .deadline = AS_MONO_NEVER},
                         &absences);
    return absences;
}

static void expect(const struct as_log_absences *absences, size_t number, const char *text)
{
    struct as_buf out = AS_BUF_INIT(1024);
    cr_assert_lt(number, absences->count);
    as_log_absence_print(&absences->items[number], &out);
    as_buf_append_char(&out, '\0');
    cr_assert_str_eq(out.data, text);
    as_buf_deinit(&out);
}

#define OWN_LOG "; its records are in its own action log"

Test(log_absences, the_replica_and_the_time_are_named)
{
    append_record(rotated, 1, "01:00:00", START(""));
    append_record(rotated, 2, "02:00:00", REPEAT);
    append_record(path, 30, "04:00:01.5", REPEAT);
    append_record(path, 31, "04:00:02",
                  START(LEADER("two", "02:10:00.25", "03:00:00") "," LEADER(
                      "three", "03:00:02", "04:00:00") "," LEADER("one", "01:00:00", "02:00:00")));
    refresh();
    struct as_log_absences absences = find(NULL, NULL);
    cr_assert_eq(absences.count, 2);
    expect(&absences, 0, "three led from 2026-11-20T03:00:02Z to 2026-11-20T04:00:00Z" OWN_LOG);
    expect(&absences, 1, "two led from 2026-11-20T02:10:00Z to 2026-11-20T03:00:00Z" OWN_LOG);
    cr_assert_not(absences.has_more);
    absences = find("02:30:00", "02:30:00");
    cr_assert_eq(absences.count, 1);
    expect(&absences, 0, "two led from 2026-11-20T02:10:00Z to 2026-11-20T03:00:00Z" OWN_LOG);
    cr_assert_eq(find("04:30:00", NULL).count, 0);
    cr_assert_eq(find(NULL, "01:30:00").count, 0);
}

Test(log_absences, without_a_gap_nothing_is_absent)
{
    append_record(rotated, 1, "01:00:00", START(""));
    append_record(rotated, 2, "02:00:00", STOP);
    append_record(path, 3, "04:00:02", START(LEADER("two", "02:10:00", "04:00:00")));
    refresh();
    cr_assert_eq(find(NULL, NULL).count, 0);
}

Test(log_absences, a_gap_without_a_name_has_its_times)
{
    append_record(rotated, 1, "01:00:00", START(""));
    append_record(path, 9, "04:00:02", START(""));
    refresh();
    const struct as_log_absences absences = find(NULL, NULL);
    cr_assert_eq(absences.count, 1);
    expect(&absences, 0,
           "records from 2026-11-20T01:00:00Z to 2026-11-20T04:00:02Z are missing here: another "
           "replica led, or a file of the action log was moved away");
}

Test(log_absences, before_the_oldest_record_only_a_known_replica_is_absent)
{
    append_record(path, 9, "04:00:00", REPEAT);
    append_record(path, 10, "04:00:02", START(""));
    refresh();
    cr_assert_eq(find(NULL, NULL).count, 0, "rotation has deleted the records");
    append_record(path, 11, "05:00:00",
                  START("{\"replica\":\"two\",\"since\":null,\"until\":"
                        "\"2026-11-20T03:59:59Z\"}"));
    refresh();
    const struct as_log_absences absences = find(NULL, NULL);
    cr_assert_eq(absences.count, 1);
    expect(&absences, 0, "two led until 2026-11-20T03:59:59Z" OWN_LOG);
}

Test(log_absences, there_is_a_limit)
{
    for (int i = 0; i < 15; i++) {
        AS_CLEANUP(as_free_p) char *name = as_xasprintf("%s.%d", path, 20 - i);
        AS_CLEANUP(as_free_p) char *clock = as_xasprintf("%02d:00:00", i);
        append_record(name, 10 * i + 1, clock, START(""));
    }
    refresh();
    const struct as_log_absences absences = find(NULL, NULL);
    cr_assert_eq(absences.count, AS_LOG_ABSENCES_MAX);
    cr_assert(absences.has_more);
    cr_assert_eq(absences.items[0].to.us, moment("14:00:00").us, "the newest first");
}

Test(log_absences, names_from_the_log_are_visible_text)
{
    append_record(rotated, 1, "01:00:00", START(""));
    append_record(path, 9, "04:00:02",
                  START(LEADER("a\\r\\nX-Header: \\u001b[1m", "02:00:00",
                               "03:00:00") ",7,{},"
                                           "{\"replica\":\"b\",\"until\":3}"));
    refresh();
    const struct as_log_absences absences = find(NULL, NULL);
    cr_assert_eq(absences.count, 1);
    cr_assert_str_eq(absences.items[0].replica, "a??X-Header:??[1m");
}

Test(log_absences, a_part_of_the_numbers)
{
    struct as_log_absences absences;
    struct as_log_absences_query query = {.instance = "one", .deadline = AS_MONO_NEVER};
    append_record(rotated, 1, "01:00:00", START(""));
    append_record(path, 9, "04:00:02", START(""));
    append_record(path, 10, "04:00:03", STOP);
    refresh();
    query.last = 1;
    as_log_absences_find(&view, &query, &absences);
    cr_assert_eq(absences.count, 0);
    query.last = 9;
    as_log_absences_find(&view, &query, &absences);
    cr_assert_eq(absences.count, 1);
    query.after = 8;
    as_log_absences_find(&view, &query, &absences);
    cr_assert_eq(absences.count, 0);
}
