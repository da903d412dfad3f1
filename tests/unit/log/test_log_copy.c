/* Copies of other replicas' records: which are missing, and what of an answer is good. */
#include <alertscaler/log/log_copy.h>

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/log/log_chain.h>

#include "../records.h"

#define COUNT 20

static char directory[40], path[80], rotated[90];
static struct as_log_index *log_index;
static struct as_log_history_view view;
static struct as_log_copy_gap gap;
static struct as_log_copy_result result;
static char *lines[COUNT + 1]; /* of the records 1, 2, ...; with '\n' */

static int remove_entry(const char *entry, const struct stat *info, int type, struct FTW *at)
{
    return remove(entry);
}

/* Records of a chain, the first one with this number. */
static void seal(char **lines_out, unsigned first, unsigned count, struct as_audit_head head)
{
    AS_CLEANUP(as_chain_free_p) struct as_chain *chain = as_chain_new();
    for (unsigned i = 0; i < count; i++) {
        struct as_buf line = AS_BUF_INIT(1 << 20);
        struct test_record made;
        as_chain_seal(chain, test_record_make(&made, first + i), &head, &line);
        lines_out[i] = as_buf_take(&line, &(size_t){0});
    }
}

static void setup(void)
{
    snprintf(directory, sizeof(directory), "/tmp/as-copies-XXXXXX");
    cr_assert(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/actions.jsonl", directory);
    snprintf(rotated, sizeof(rotated), "%s.1", path);
    as_log_configure(AS_LOG_ERROR, AS_LOG_LOGFMT, open("/dev/null", O_WRONLY | O_CLOEXEC));
    seal(lines + 1, 1, COUNT, AS_AUDIT_HEAD_INIT);
}

static void teardown(void)
{
    as_log_index_close(log_index);
    for (size_t i = 1; i <= COUNT; i++)
        free(lines[i]);
    nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(log_copy, .init = setup, .fini = teardown);

static void append(const char *name, unsigned first, unsigned last)
{
    FILE *file = fopen(name, "ae");
    cr_assert(file);
    for (unsigned i = first; i <= last; i++)
        fputs(lines[i], file);
    cr_assert_eq(fclose(file), 0);
}

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

static int find(int64_t above, int64_t below)
{
    struct as_error error;
    refresh();
    return as_log_copy_find(
        &view,
        &(struct as_log_copy_search){
            .log_path = path, .instance = "one", .above = above, .below = below},
        &gap, &error);
}

static bool expect_gap(int64_t first, int64_t last)
{
    cr_assert_eq(find(0, INT64_MAX), 1);
    cr_assert_eq(gap.first, first);
    cr_assert_eq(gap.last, last);
    return true;
}

struct limits {
    uint64_t bytes_max, free_min;
};

/* The answer has these records; 0 ends. */
static enum as_log_copy_outcome take_limited(const unsigned *records, int64_t first, bool has_more,
                                             struct limits limits)
{
    struct as_buf answer = AS_BUF_INIT(1 << 20);
    for (; *records; records++)
        as_buf_append_str(&answer, lines[*records]);
    as_log_copy_take(&(struct as_log_copy_answer){.gap = &gap,
                                                  .first = first,
                                                  .log_path = path,
                                                  .replica = "al/er.t_1",
                                                  .lines = answer.size > 0 ? answer.data : "",
                                                  .size = answer.size,
                                                  .has_more = has_more,
                                                  .bytes_max = limits.bytes_max,
                                                  .free_min = limits.free_min},
                     &result);
    as_buf_deinit(&answer);
    return result.outcome;
}

static enum as_log_copy_outcome take(const unsigned *records, int64_t first, bool has_more)
{
    return take_limited(records, first, has_more, (struct limits){1 << 20, 0});
}

static size_t count_copies(void)
{
    DIR *folder = opendir(directory);
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(folder));)
        count += strstr(entry->d_name, "replica-") != NULL;
    closedir(folder);
    return count;
}

static bool has_copy(unsigned first)
{
    AS_CLEANUP(as_free_p)
    char *name = as_xasprintf("%s/replica-al-er.t-1-actions.jsonl.from-%u", directory, first);
    return access(name, R_OK) == 0;
}

#define RECORDS(...) ((const unsigned[]){__VA_ARGS__, 0})

static void make_gap(void) /* 6 to 15 */
{
    append(rotated, 1, 5);
    append(path, 16, COUNT);
    expect_gap(6, 15);
}

Test(log_copy, a_gap_is_filled_from_its_end)
{
    make_gap();
    cr_assert_eq(take(RECORDS(12, 13, 14, 15), 12, false), AS_LOG_COPY_DONE, "%s",
                 result.error.text);
    cr_assert_eq(result.first, 12);
    cr_assert_eq(result.count, 4);
    cr_assert(has_copy(12));
    expect_gap(6, 11);
    cr_assert_eq(take(RECORDS(6, 7, 8, 9, 10, 11), 6, false), AS_LOG_COPY_DONE, "%s",
                 result.error.text);
    cr_assert(has_copy(6));
    cr_assert_eq(find(0, INT64_MAX), 0);
    cr_assert_eq(count_copies(), 2);
}

Test(log_copy, the_search_has_bounds)
{
    make_gap();
    cr_assert_eq(find(15, INT64_MAX), 0);
    cr_assert_eq(find(14, INT64_MAX), 1);
    cr_assert_eq(find(0, 15), 0);
    cr_assert_eq(find(0, 16), 1);
}

Test(log_copy, records_behind_a_hole_are_good)
{
    make_gap();
    cr_assert_eq(take(RECORDS(6, 7, 10, 14, 15), 6, false), AS_LOG_COPY_DONE, "%s",
                 result.error.text);
    cr_assert_eq(result.first, 14);
    expect_gap(6, 13);
}

Test(log_copy, records_behind_the_gap_are_left_out)
{
    make_gap();
    cr_assert_eq(take(RECORDS(14, 15, 16, 17), 14, true), AS_LOG_COPY_DONE);
    cr_assert_eq(result.count, 2);
    cr_assert_eq(take(RECORDS(13, 16, 17), 6, true), AS_LOG_COPY_NOTHING);
    cr_assert_eq(count_copies(), 1);
}

Test(log_copy, an_answer_that_ends_early_is_short)
{
    make_gap();
    cr_assert_eq(take(RECORDS(6, 7, 8), 6, true), AS_LOG_COPY_SHORT);
    cr_assert_eq(result.count, 3);
    cr_assert_eq(take(RECORDS(6, 7, 8), 6, false), AS_LOG_COPY_NOTHING);
    cr_assert_eq(take((const unsigned[]){0}, 6, true), AS_LOG_COPY_SHORT);
    cr_assert_eq(take((const unsigned[]){0}, 6, false), AS_LOG_COPY_NOTHING);
    cr_assert_eq(count_copies(), 0);
}

Test(log_copy, what_is_out_of_order_is_wrong)
{
    make_gap();
    cr_assert_eq(take(RECORDS(14, 13, 15), 13, false), AS_LOG_COPY_WRONG);
    cr_assert_eq(take(RECORDS(14, 14, 15), 13, false), AS_LOG_COPY_WRONG);
    cr_assert_eq(take(RECORDS(5, 6, 15), 6, false), AS_LOG_COPY_WRONG, "it was not asked for");
    cr_assert_eq(count_copies(), 0);
}

Test(log_copy, every_changed_byte_is_wrong)
{
    make_gap();
    for (size_t i = 0; lines[15][i + 1]; i++) {
        const char before = lines[15][i];
        lines[15][i] = (char)(before ^ 1);
        const enum as_log_copy_outcome outcome = take(RECORDS(14, 15), 14, false);
        cr_assert_neq(outcome, AS_LOG_COPY_DONE, "byte %zu", i);
        lines[15][i] = before;
    }
    cr_assert_eq(count_copies(), 0);
}

/* It goes on from our record before the gap, and is whole in itself. */
Test(log_copy, another_chain_is_wrong)
{
    make_gap();
    struct as_audit_head head = {.seq = 5};
    memcpy(head.hash, gap.before, sizeof(head.hash));
    char *before[COUNT];
    memcpy(before, lines + 6, 10 * sizeof(*before));
    seal(lines + 6, 106, 10, head);
    cr_assert_eq(take(RECORDS(6, 7, 8, 9, 10, 11, 12, 13, 14, 15), 6, false), AS_LOG_COPY_WRONG);
    cr_assert_str_eq(result.error.text, "record 15 is not the one that our next record follows");
    for (size_t i = 0; i < 10; i++) {
        free(lines[6 + i]);
        lines[6 + i] = before[i];
    }
    cr_assert_eq(count_copies(), 0);
}

Test(log_copy, the_chain_reaches_the_record_before_the_gap)
{
    make_gap();
    memset(gap.before, '7', sizeof(gap.before) - 1);
    cr_assert_eq(take(RECORDS(6, 7, 8, 9, 10, 11, 12, 13, 14, 15), 6, false), AS_LOG_COPY_WRONG);
    cr_assert_str_eq(result.error.text, "record 6 does not continue our record before it");
}

Test(log_copy, before_all_records_there_is_a_gap_if_another_replica_led)
{
    append(path, 6, COUNT);
    cr_assert_eq(find(0, INT64_MAX), 0, "rotation has deleted them");
    FILE *file = fopen(path, "ae");
    fputs("{\"instance\":\"one\",\"kind\":\"start\",\"leaders\":[{\"replica\":\"two\",\"since\":"
          "\"2026-11-20T09:00:00Z\",\"until\":\"2026-11-20T10:00:00Z\"}],\"rules\":1,\"seq\":21,"
          "\"time\":\"2026-11-20T10:00:01Z\"}\n",
          file);
    fclose(file);
    expect_gap(1, 5);
    cr_assert_str_empty(gap.before);
    cr_assert_eq(take(RECORDS(1, 2, 3, 4, 5), 1, false), AS_LOG_COPY_DONE, "%s", result.error.text);
    cr_assert_eq(find(0, INT64_MAX), 0);
}

Test(log_copy, the_oldest_copies_make_room)
{
    append(path, 20, 20);
    gap = (struct as_log_copy_gap){.first = 1, .last = 19};
    AS_CLEANUP(as_free_p) char *manual = as_xasprintf("%s/replica-x-actions.jsonl.1", directory);
    append(manual, 1, 9); /* a person's: neither counted nor deleted */
    const size_t size = strlen(lines[15]);
    for (unsigned last = 10; last <= 16; last += 2) {
        gap.last = last;
        memcpy(gap.hash, strstr(lines[last + 1], "\"prev\":\"") + 8, 64);
        cr_assert_eq(
            take_limited(RECORDS(last - 1, last), last - 1, false, (struct limits){4 * size, 0}),
            AS_LOG_COPY_DONE, "%s", result.error.text);
    }
    cr_assert(!has_copy(9) && !has_copy(11) && has_copy(13) && has_copy(15));
    cr_assert_eq(access(manual, R_OK), 0);
    cr_assert_eq(result.above, 12, "what was deleted is not wanted again");

    gap.last = 12;
    memcpy(gap.hash, strstr(lines[13], "\"prev\":\"") + 8, 64);
    cr_assert_eq(take_limited(RECORDS(11, 12), 11, false, (struct limits){4 * size, 0}),
                 AS_LOG_COPY_FULL);
    cr_assert_eq(result.above, 12);
    cr_assert(!has_copy(11) && has_copy(13) && has_copy(15));
}

Test(log_copy, a_full_disk_is_left_alone)
{
    make_gap();
    cr_assert_eq(
        take_limited(RECORDS(14, 15), 14, false, (struct limits){1 << 20, UINT64_C(1) << 62}),
        AS_LOG_COPY_FAILED);
    cr_assert(strstr(result.error.text, "MiB are free"), "%s", result.error.text);
    cr_assert_eq(count_copies(), 0);
}
