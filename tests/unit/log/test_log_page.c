/* Pages of the action log: where they begin and end, over files that rotate, that overlap, and that
 * lack records. */
#include <alertscaler/log/log_page.h>

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>

#define SECOND0 INT64_C(1795168800) /* 2026-11-20T10:00:00Z; record n is of n seconds later */

static char directory[40], path[80], rotated[96];

static int remove_entry(const char *entry, const struct stat *info, int type, struct FTW *at)
{
    return remove(entry);
}

static void setup(void)
{
    snprintf(directory, sizeof(directory), "/tmp/as-page-XXXXXX");
    cr_assert(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/actions.jsonl", directory);
    snprintf(rotated, sizeof(rotated), "%s.1", path);
}

static void teardown(void)
{
    nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(log_page, .init = setup, .fini = teardown);

static void append_text(const char *name, const char *text)
{
    FILE *file = fopen(name, "ae");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* Nested members and texts have the names of those that count. */
static void append_records(const char *name, int first, int last)
{
    FILE *file = fopen(name, "ae");
    cr_assert(file);
    for (int seq = first; seq <= last; seq++) {
        char time[AS_RFC3339_SIZE];
        as_wall_time_print((as_wall_time){(SECOND0 + seq) * AS_US_PER_S}, time);
        fprintf(file,
                "{\"input\":{\"seq\":999999,\"time\":\"x\"},\"kind\":\"decision\",\"labels\":{"
                "\"seq\":\"7\"},\"seq\":%d,\"target\":\"a/b\\u002fc\",\"target_name\":\"t\\\"1\","
                "\"text\":\"\\\"seq\\\":5\",\"time\":\"%s\"}\n",
                seq, time);
    }
    cr_assert_eq(fclose(file), 0);
}

struct taken {
    int64_t first, last;
    size_t count, max;
    char target[20], target_name[20], kind[20];
};

static bool take(void *context, const struct as_log_page_record *record)
{
    struct taken *taken = context;
    if (taken->max && taken->count == taken->max)
        return false;
    cr_assert_gt(record->seq, taken->last);
    cr_assert_eq(record->line[0], '{');
    cr_assert_eq(record->line[record->size - 1], '}');
    cr_assert_eq(record->time.us, (SECOND0 + record->seq) * AS_US_PER_S);
    taken->first = taken->count ? taken->first : record->seq;
    taken->last = record->seq;
    taken->count++;
    snprintf(taken->target, sizeof(taken->target), "%s", record->target);
    snprintf(taken->target_name, sizeof(taken->target_name), "%s", record->target_name);
    snprintf(taken->kind, sizeof(taken->kind), "%s", record->kind);
    return true;
}

static struct as_log_page_query make_query(struct taken *taken, int64_t after)
{
    *taken = (struct taken){.max = taken->max};
    return (struct as_log_page_query){.log_path = path,
                                      .after = after,
                                      .duration_us = AS_US_PER_MIN,
                                      .on_record = take,
                                      .context = taken};
}

static struct as_log_page read_page(const struct as_log_page_query *query)
{
    struct as_log_page page = {.next = -1};
    struct as_error error = AS_ERROR_INIT;
    cr_assert_eq(as_log_page_read(query, &page, &error), 0, "%s", error.text);
    return page;
}

static void expect(int64_t after, int64_t first, int64_t last)
{
    struct taken taken = {.max = 0};
    const struct as_log_page_query query = make_query(&taken, after);
    const struct as_log_page page = read_page(&query);
    cr_assert_eq(taken.first, first, "after %lld: the first is %lld, not %lld", (long long)after,
                 (long long)taken.first, (long long)first);
    cr_assert_eq(taken.last, last, "after %lld: the last is %lld, not %lld", (long long)after,
                 (long long)taken.last, (long long)last);
    cr_assert_eq(taken.count, first ? (size_t)(last - first + 1) : 0);
    cr_assert_eq(page.next, last ? last : after);
    cr_assert_not(page.has_more);
    cr_assert_eq(page.missing, 0);
    cr_assert_eq(page.skipped, 0);
}

Test(log_page, a_record)
{
    struct taken taken = {.max = 0};
    append_records(path, 1, 1);
    const struct as_log_page_query query = make_query(&taken, 0);
    (void)read_page(&query);
    cr_assert_str_eq(taken.target, "a/b/c");
    cr_assert_str_eq(taken.target_name, "t\"1");
    cr_assert_str_eq(taken.kind, "decision");
}

Test(log_page, no_log_and_an_empty_log)
{
    expect(0, 0, 0);
    expect(7, 0, 0);
    append_text(path, "");
    expect(0, 0, 0);
}

Test(log_page, begins_after_each_record)
{
    append_records(rotated, 1, 3000); /* several blocks */
    append_records(path, 3001, 3010);
    expect(0, 1, 3010);
    for (int after = 1; after < 3010; after += after < 2990 ? 97 : 1)
        expect(after, after + 1, 3010);
    expect(3010, 0, 0);
    expect(9999, 0, 0);
}

Test(log_page, ends_before_the_record_that_does_not_fit)
{
    struct taken taken = {.max = 100};
    int64_t after = 0;
    append_records(rotated, 1, 250);
    append_records(path, 251, 430);
    for (int i = 0; i < 5; i++) {
        const struct as_log_page_query query = make_query(&taken, after);
        const struct as_log_page page = read_page(&query);
        cr_assert_eq(taken.first, after + 1);
        cr_assert_eq(page.next, i < 4 ? after + 100 : 430);
        cr_assert_eq(page.has_more, i < 4);
        after = page.next;
    }
}

Test(log_page, ends_when_its_time_is_over_but_goes_on)
{
    struct taken taken = {.max = 0};
    append_records(path, 1, 100);
    struct as_log_page_query query = make_query(&taken, 10);
    query.duration_us = 0;
    const struct as_log_page page = read_page(&query);
    cr_assert_eq(taken.count, 1);
    cr_assert_eq(page.next, 11);
    cr_assert(page.has_more);
}

Test(log_page, a_time_range)
{
    append_records(rotated, 1, 9000);
    append_records(path, 9001, 20000);
    static const int bounds[][2] = {{1, 20000},     {500, 600},     {8000, 8000}, {8999, 9002},
                                    {12000, 12500}, {20000, 20000}, {3, 2}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(bounds); i++) {
        struct taken taken = {.max = 0};
        struct as_log_page_query query = make_query(&taken, 0);
        query.since = (as_maybe_time){true, {(SECOND0 + bounds[i][0]) * AS_US_PER_S}};
        query.until = (as_maybe_time){true, {(SECOND0 + bounds[i][1]) * AS_US_PER_S}};
        const struct as_log_page page = read_page(&query);
        const int count = bounds[i][1] - bounds[i][0] + 1;
        cr_assert_eq(taken.count, count, "%zu: %zu records", i, taken.count);
        cr_assert(count == 0 || taken.first == bounds[i][0]);
        cr_assert_not(page.has_more);
        cr_assert_eq(page.missing, 0);
        /* It does not read to the end. */
        cr_assert_leq(page.next, bounds[i][1] + 5001);
    }
}

Test(log_page, nothing_is_lost_over_a_rotation)
{
    char oldest[96];
    snprintf(oldest, sizeof(oldest), "%s.2", path);
    append_records(rotated, 1, 5);
    append_records(path, 6, 10);
    expect(8, 9, 10);
    cr_assert_eq(rename(rotated, oldest), 0);
    cr_assert_eq(rename(path, rotated), 0);
    expect(8, 9, 10); /* the new file is not there yet */
    append_text(path, "");
    expect(8, 9, 10);
    expect(10, 0, 0);
    append_records(path, 11, 12);
    expect(8, 9, 12);
    expect(10, 11, 12);
}

Test(log_page, an_incomplete_line_waits_for_its_end)
{
    append_records(path, 1, 2);
    append_text(path, "{\"kind\":\"start\",\"seq\":3,");
    expect(0, 1, 2);
    expect(2, 0, 0);
    append_text(path, "\"time\":\"2026-11-20T10:00:03Z\"}\n");
    expect(0, 1, 3);
    expect(2, 3, 3);
}

Test(log_page, files_of_replicas_overlap)
{
    append_records(rotated, 1, 100);
    append_records(path, 91, 120);
    expect(0, 1, 120);
    expect(50, 51, 120);
    expect(95, 96, 120);
}

Test(log_page, missing_records_are_counted_once)
{
    struct taken taken = {.max = 0};
    append_records(rotated, 5, 10);
    append_records(path, 21, 30);
    struct as_log_page_query query = make_query(&taken, 2);
    struct as_log_page page = read_page(&query);
    cr_assert_eq(taken.count, 16);
    cr_assert_eq(page.missing, 2 + 10);
    cr_assert_eq(page.next, 30);
    query = make_query(&taken, 0); /* from the oldest on: it does not lack what rotation deleted */
    page = read_page(&query);
    cr_assert_eq(page.missing, 10);
    query = make_query(&taken, 30);
    page = read_page(&query);
    cr_assert_eq(page.missing, 0);
}

Test(log_page, copies_beside_the_log_hide_nothing)
{
    char copy[96], tail[96], folder[96], link_name[96];
    snprintf(copy, sizeof(copy), "%s.bak", path);
    snprintf(tail, sizeof(tail), "%s-tail", path);
    snprintf(folder, sizeof(folder), "%s.d", path);
    snprintf(link_name, sizeof(link_name), "%s.link", path);
    append_records(rotated, 1, 100);
    append_records(path, 101, 150);
    append_records(copy, 101, 120);
    append_records(tail, 80, 90);
    cr_assert_eq(mkdir(folder, 0755), 0);
    cr_assert_eq(symlink("/etc/passwd", link_name), 0);
    for (int after = 0; after < 150; after += 3)
        expect(after, after + 1, 150);
}

Test(log_page, copies_of_other_replicas_fill_gaps)
{
    char before[110], between[110];
    snprintf(before, sizeof(before), "%s/replica-two-actions.jsonl.2", directory);
    snprintf(between, sizeof(between), "%s/replica-two-actions.jsonl.1", directory);
    append_records(before, 1, 22);
    append_records(rotated, 20, 50);
    append_records(between, 49, 80);
    append_records(path, 81, 100);
    for (int after = 0; after < 100; after += 3)
        expect(after, after + 1, 100);
}

Test(log_page, a_newer_copy_hides_nothing)
{
    char copy[110];
    snprintf(copy, sizeof(copy), "%s/replica-two-actions.jsonl", directory);
    append_records(rotated, 1, 50);
    append_records(path, 51, 100);
    append_records(copy, 101, 120); /* while this replica follows */
    for (int after = 0; after < 50; after += 3)
        expect(after, after + 1, 120);
    expect(60, 61, 100); /* the end of its own file is the end of the log */
}

Test(log_page, lines_that_are_no_records_are_counted)
{
    struct taken taken = {.max = 0};
    append_records(path, 1, 2);
    append_text(path,
                "no JSON\n{\"seq\":2}\n{\"kind\":\"start\",\"time\":\"2026-11-20T10:00:03Z\"}\n"
                "{\"seq\":3,\"time\":\"noon\"}\n\n");
    append_records(path, 3, 4);
    const struct as_log_page_query query = make_query(&taken, 0);
    const struct as_log_page page = read_page(&query);
    cr_assert_eq(taken.count, 4);
    cr_assert_eq(page.skipped, 5);
    cr_assert_eq(page.next, 4);
}

Test(log_page, a_skipped_line_counts_once_over_pages)
{
    struct taken taken = {.max = 2};
    append_records(path, 1, 2);
    append_text(path, "no JSON\n");
    append_records(path, 3, 4);
    append_text(path, "no JSON\n");
    struct as_log_page_query query = make_query(&taken, 0);
    cr_assert_eq(read_page(&query).skipped, 0);
    query = make_query(&taken, 2);
    cr_assert_eq(read_page(&query).skipped, 1);
    query = make_query(&taken, 4);
    cr_assert_eq(read_page(&query).skipped, 0);
    append_records(path, 5, 5);
    cr_assert_eq(read_page(&query).skipped, 1);
}

Test(log_page, a_line_that_is_too_long_is_skipped)
{
    struct taken taken = {.max = 0};
    const size_t size = AS_LOG_PAGE_LINE_MAX + ((size_t)1 << 20);
    append_records(path, 1, 3);
    AS_CLEANUP(as_free_p) char *text = as_xmalloc(size + 1);
    memset(text, 'x', size);
    text[size] = '\0';
    append_text(path, "{\"a\":\"");
    append_text(path, text);
    append_text(path, "\",\"kind\":\"start\",\"seq\":4,\"time\":\"2026-11-20T10:00:04Z\"}\n");
    append_records(path, 5, 6);
    struct as_log_page_query query = make_query(&taken, 0);
    struct as_log_page page = read_page(&query);
    cr_assert_eq(taken.count, 5);
    cr_assert_eq(page.skipped, 1);
    query = make_query(&taken, 4);
    page = read_page(&query);
    cr_assert_eq(taken.first, 5);
}
