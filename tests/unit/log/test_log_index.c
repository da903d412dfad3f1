/* The index of the action log: what it finds, files that change under it, and a file of its own
 * that is damaged. */
#include <alertscaler/log/log_index.h>

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>

static char directory[40], path[80], database[80];
static struct as_log_index_config config;
static int64_t next_seq;

static int remove_entry(const char *entry, const struct stat *info, int type, struct FTW *at)
{
    return remove(entry);
}

static void setup(void)
{
    snprintf(directory, sizeof(directory), "/tmp/as-index-XXXXXX");
    cr_assert(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/actions.jsonl", directory);
    snprintf(database, sizeof(database), "%s/history-actions.jsonl.db", directory);
    as_log_configure(AS_LOG_ERROR, AS_LOG_LOGFMT, open("/dev/null", O_WRONLY | O_CLOEXEC));
    config = (struct as_log_index_config){.log_path = path};
    next_seq = 1;
}

static void teardown(void)
{
    nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(log_index, .init = setup, .fini = teardown);

/* Seconds after 2026-11-20T10:00:00Z. */
static char *make_time(int64_t seconds)
{
    char text[AS_RFC3339_SIZE];
    as_wall_time_print((as_wall_time){(INT64_C(1795168800) + seconds) * AS_US_PER_S}, text);
    return as_xstrdup(text);
}

static void append_text(const char *name, const char *text)
{
    FILE *file = fopen(name, "ae");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* A decision about the target `t<number>`, a second after the one before. */
static char *make_decision(int number)
{
    const int64_t seq = next_seq++;
    AS_CLEANUP(as_free_p) char *time = make_time(seq);
    return as_xasprintf(
        "{\"hash\":\"h\",\"id\":\"D%lld\",\"input\":{\"observed\":{\"replicas\":99},\"target\":"
        "{\"min\":1}},\"kind\":\"decision\",\"output\":{\"desired\":%d,\"direction\":\"up\","
        "\"reason\":\"scaled\",\"replicas\":4,\"rule\":\"r\\u00e9gle\",\"trail\":[{\"desired\":7,"
        "\"rule\":\"other\"}]},\"pause\":{\"reason\":\"by hand\"},\"prev\":\"p\",\"repeats\":%lld,"
        "\"seq\":%lld,"
        "\"target\":\"kubernetes/c/t%d\",\"target_name\":\"t%d\",\"time\":\"%s\"}\n",
        (long long)seq, number + 5, (long long)seq * 1000, (long long)seq, number, number, time);
}

static void append_decisions(const char *name, int count)
{
    for (int i = 0; i < count; i++) {
        AS_CLEANUP(as_free_p) char *line = make_decision(i % 3);
        append_text(name, line);
    }
}

static struct as_log_index *open_index(void)
{
    struct as_log_index *index = NULL;
    struct as_error error = AS_ERROR_INIT;
    cr_assert_eq(as_log_index_open(&config, &index, &error), 0, "%s", error.text);
    return index;
}

static struct as_log_index_state refresh(struct as_log_index *index)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_log_index_state state = {.is_current = false};
    for (int i = 0; !state.is_current; i++) {
        cr_assert_lt(i, 1000);
        cr_assert_eq(as_log_index_step(index, i == 0, &state, &error), 0, "%s", error.text);
    }
    return state;
}

struct found {
    int64_t seqs[64];
    size_t count, max;
    struct as_log_row last;
    char id[40], rule[40];
};

static bool on_row(void *context, const struct as_log_row *row)
{
    struct found *found = context;
    cr_assert_lt(found->count, 64);
    found->seqs[found->count++] = row->seq;
    found->last = *row;
    snprintf(found->id, sizeof(found->id), "%s", row->id);
    snprintf(found->rule, sizeof(found->rule), "%s", row->rule ? row->rule : "");
    return found->count < found->max;
}

#define DECISIONS (1U << AS_RECORD_DECISION)

static struct found find(struct as_log_index *index, struct as_log_query query)
{
    struct found found = {.max = 64};
    struct as_error error = AS_ERROR_INIT;
    query.kinds = query.kinds ? query.kinds : DECISIONS;
    query.on_row = on_row;
    query.context = &found;
    query.deadline = AS_MONO_NEVER;
    cr_assert_eq(as_log_index_find(index, &query, &error), 0, "%s", error.text);
    return found;
}

static size_t count_all(struct as_log_index *index)
{
    return find(index, (struct as_log_query){.target = NULL}).count;
}

static int read_one(struct as_log_index *index, const char *id, struct as_buf *line)
{
    struct as_error error = AS_ERROR_INIT;
    const struct as_log_query query = {.kinds = DECISIONS, .deadline = AS_MONO_NEVER};
    return as_log_index_read(index, &query, id, line, &error);
}

Test(log_index, members_are_those_of_the_record_not_of_what_is_in_it)
{
    append_decisions(path, 3);
    struct as_log_index *index = open_index();
    refresh(index);
    struct found found = find(index, (struct as_log_query){.target = "t1"});
    cr_assert_eq(found.count, 1);
    cr_assert_eq(found.last.from, 4);
    cr_assert_eq(found.last.to, 6);
    cr_assert_not(found.last.has_would);
    cr_assert_eq(found.last.repeats, 2000);
    cr_assert_str_eq(found.id, "D2");
    cr_assert_str_eq(found.rule, "r\xc3\xa9gle");
    cr_assert_eq(found.last.kind, AS_RECORD_DECISION);
    cr_assert_eq(find(index, (struct as_log_query){.rule = "other"}).count, 0);
    cr_assert_eq(find(index, (struct as_log_query){.reason = "by hand"}).count, 0);
    cr_assert_eq(find(index, (struct as_log_query){.reason = "scaled"}).count, 3);
    cr_assert_eq(find(index, (struct as_log_query){.target = "kubernetes/c/t1"}).count, 1);
    as_log_index_close(index);
}

Test(log_index, records_are_read_as_they_are_in_the_log)
{
    struct as_buf line = AS_BUF_INIT(1 << 16);
    append_decisions(path, 2);
    struct as_log_index *index = open_index();
    refresh(index);
    cr_assert_eq(read_one(index, "D2", &line), 0);
    next_seq = 2;
    AS_CLEANUP(as_free_p) char *wanted = make_decision(1);
    wanted[strlen(wanted) - 1] = '\0';
    cr_assert_str_eq(line.data, wanted);
    cr_assert_eq(read_one(index, "D3", &line), -ENOENT);
    as_buf_deinit(&line);
    as_log_index_close(index);
}

Test(log_index, other_kinds_and_incidents_of_several_targets)
{
    append_text(
        path, "{\"event\":\"opened\",\"kind\":\"incident\",\"labels\":{\"kind\":\"notification\","
              "\"target\":\"x\"},\"seq\":1,\"targets\":[{\"replicas\":1,\"rule\":\"a\",\"target\":"
              "\"kubernetes/c/t0\"},{\"target\":\"kubernetes/c/t1\"}],\"time\":"
              "\"2026-11-20T10:00:00Z\"}\n"
              "{\"kind\":\"notification\",\"seq\":2,\"time\":\"2026-11-20T10:00:00Z\"}\n"
              "{\"from\":4,\"id\":\"A\",\"kind\":\"action\",\"outcome\":\"applied\",\"rule\":\"r\","
              "\"seq\":3,\"target\":\"kubernetes/c/t0\",\"target_name\":\"t0\",\"time\":"
              "\"2026-11-20T10:00:01Z\",\"to\":6}\n"
              "{\"kind\":\"start\",\"seq\":4,\"time\":\"2026-11-20T10:00:02Z\"}\n"
              "{\"kind\":\"of a later version\",\"seq\":5,\"time\":\"2026-11-20T10:00:03Z\"}\n");
    struct as_log_index *index = open_index();
    const struct as_log_index_state state = refresh(index);
    cr_assert_eq(find(index, (struct as_log_query){.kinds = ~0U}).count, 3);
    struct found found =
        find(index, (struct as_log_query){.kinds = ~0U, .target = "kubernetes/c/t1"});
    cr_assert(found.count == 1 && found.seqs[0] == 1);
    found = find(index, (struct as_log_query){.kinds = ~0U, .target = "kubernetes/c/t0"});
    cr_assert(found.count == 2 && found.seqs[0] == 3 && found.seqs[1] == 1);
    found =
        find(index, (struct as_log_query){.kinds = 1U << AS_RECORD_ACTION, .reason = "applied"});
    cr_assert(found.count == 1 && found.last.from == 4 && found.last.to == 6);
    cr_assert_eq(state.unreadable, 0);
    as_log_index_close(index);
}

Test(log_index, times_that_go_back_hide_nothing)
{
    append_decisions(path, 10);
    next_seq = 11;
    AS_CLEANUP(as_free_p) char *line = make_decision(0);
    AS_CLEANUP(as_free_p) char *time = make_time(2);
    memcpy(strstr(line, "\"time\":\"") + 8, time, strlen(time)); /* the clock was set back */
    append_text(path, line);
    append_decisions(path, 5);
    struct as_log_index *index = open_index();
    refresh(index);
    const as_maybe_time at = {true, {(INT64_C(1795168800) + 2) * AS_US_PER_S}};
    struct found found = find(index, (struct as_log_query){.until = at});
    cr_assert(found.count == 3 && found.seqs[0] == 11 && found.seqs[1] == 2);
    found = find(index, (struct as_log_query){.since = at});
    cr_assert_eq(found.count, 15);
    found = find(index, (struct as_log_query){.since = at, .until = at});
    cr_assert_eq(found.count, 2);
    as_log_index_close(index);
}

Test(log_index, a_half_written_record_waits_for_its_end)
{
    append_decisions(path, 2);
    AS_CLEANUP(as_free_p) char *line = make_decision(0);
    const size_t size = strlen(line);
    struct as_log_index *index = open_index();
    for (size_t cut = 1; cut < size; cut += 37) {
        AS_CLEANUP(as_free_p) char *part = as_xstrndup(line + cut - 1, cut + 36 < size ? 37 : size);
        refresh(index);
        cr_assert_eq(count_all(index), 2);
        append_text(path, part);
    }
    refresh(index);
    cr_assert_eq(count_all(index), 3);
    as_log_index_close(index);
    index = open_index(); /* and is there once after a restart */
    refresh(index);
    cr_assert_eq(count_all(index), 3);
    as_log_index_close(index);
}

Test(log_index, lines_that_are_no_records_are_passed_over)
{
    append_decisions(path, 1);
    append_text(path,
                "not JSON\n{\"kind\":\"decision\"}\n[1,2]\n\n{\"id\":\"x\",\"kind\":\"decision\","
                "\"seq\":-1,\"time\":\"2026-11-20T10:00:00Z\"}\n{\"id\":\"x\",\"kind\":"
                "\"decision\",\"seq\":9,\"time\":\"today\"}\n");
    append_decisions(path, 1);
    struct as_log_index *index = open_index();
    const struct as_log_index_state state = refresh(index);
    cr_assert_eq(count_all(index), 2);
    cr_assert_eq(state.unreadable, 6);
    as_log_index_close(index);
}

Test(log_index, a_line_above_the_limit_is_passed_over)
{
    const size_t size = AS_LOG_INDEX_LINE_MAX + 4321;
    AS_CLEANUP(as_free_p) char *line = as_xmalloc(size + 2);
    memset(line, 'x', size);
    memcpy(line + size, "\n", 2);
    append_decisions(path, 1);
    append_text(path, line);
    append_decisions(path, 1);
    struct as_log_index *index = open_index();
    const struct as_log_index_state state = refresh(index);
    cr_assert_eq(count_all(index), 2);
    cr_assert_eq(state.unreadable, 1);
    as_log_index_close(index);
}

Test(log_index, rotation_moves_files_and_deletes_one)
{
    AS_CLEANUP(as_free_p) char *first = as_xasprintf("%s.1", path);
    AS_CLEANUP(as_free_p) char *second = as_xasprintf("%s.2", path);
    struct as_buf line = AS_BUF_INIT(1 << 16);
    struct as_log_index *index = open_index();
    append_decisions(path, 5);
    refresh(index);
    cr_assert_eq(rename(path, first), 0);
    append_decisions(path, 4);
    refresh(index);
    cr_assert_eq(count_all(index), 9);
    cr_assert_eq(read_one(index, "D3", &line), 0);
    cr_assert_eq(rename(first, second), 0);
    cr_assert_eq(rename(path, first), 0);
    append_decisions(path, 3);
    refresh(index);
    cr_assert_eq(count_all(index), 12);
    cr_assert_eq(unlink(second), 0);
    refresh(index);
    cr_assert_eq(count_all(index), 7);
    cr_assert_eq(read_one(index, "D3", &line), -ENOENT);
    as_log_index_close(index);
    cr_assert_eq(unlink(first), 0); /* while it does not run */
    index = open_index();
    refresh(index);
    cr_assert_eq(count_all(index), 3);
    as_buf_deinit(&line);
    as_log_index_close(index);
}

Test(log_index, files_of_other_replicas_are_read_too)
{
    AS_CLEANUP(as_free_p) char *copy = as_xasprintf("%s/replica-two-actions.jsonl", directory);
    AS_CLEANUP(as_free_p) char *older = as_xasprintf("%s.1", copy);
    struct as_log_index *index = open_index();
    append_decisions(path, 5);
    refresh(index);
    next_seq = 4; /* two of them are in both files */
    append_decisions(copy, 6);
    append_decisions(older, 2);
    refresh(index);
    cr_assert_eq(count_all(index), 11);
    cr_assert_eq(find(index, (struct as_log_query){.target = "t0"}).count, 4);
    cr_assert_eq(unlink(path), 0); /* as a rotation: the copy still has its last records */
    refresh(index);
    struct found found = find(index, (struct as_log_query){.target = NULL});
    cr_assert_eq(found.count, 8);
    cr_assert_eq(found.seqs[7], 4);
    struct as_buf line = AS_BUF_INIT(1 << 16);
    cr_assert_eq(read_one(index, "D4", &line), 0);
    cr_assert_eq(unlink(older), 0);
    refresh(index);
    cr_assert_eq(count_all(index), 6);
    as_buf_deinit(&line);
    as_log_index_close(index);
}

Test(log_index, names_of_forgotten_records_are_forgotten)
{
    struct as_log_index *index = open_index();
    append_decisions(path, 9);
    refresh(index);
    cr_assert_eq(truncate(path, 0), 0);
    refresh(index);
    cr_assert_eq(count_all(index), 0);
    as_log_index_close(index);
    size_t size = 0;
    char *bytes = NULL;
    cr_assert_eq(as_file_read(database, 1 << 24, &bytes, &size), 0);
    free(bytes);
    index = open_index();
    refresh(index);
    cr_assert_eq(find(index, (struct as_log_query){.target = "t1"}).count, 0);
    as_log_index_close(index);
}

Test(log_index, a_truncated_or_replaced_log_is_indexed_again)
{
    struct as_log_index *index = open_index();
    append_decisions(path, 8);
    refresh(index);
    struct stat info;
    cr_assert_eq(stat(path, &info), 0);
    cr_assert_eq(truncate(path, info.st_size / 2), 0);
    refresh(index);
    const size_t rest = count_all(index);
    cr_assert(rest == 3 || rest == 4);
    /* The same file with other content, and longer than before. */
    cr_assert_eq(truncate(path, 0), 0);
    next_seq = 100;
    append_decisions(path, 20);
    refresh(index);
    cr_assert_eq(count_all(index), 20);
    /* The same while it does not run: the length tells nothing. */
    as_log_index_close(index);
    cr_assert_eq(truncate(path, 0), 0);
    next_seq = 200;
    append_decisions(path, 20);
    index = open_index();
    refresh(index);
    cr_assert_eq(count_all(index), 20);
    cr_assert_eq(find(index, (struct as_log_query){.target = NULL}).seqs[0], 219);
    as_log_index_close(index);
}

Test(log_index, a_record_that_is_not_where_it_was_is_not_shown)
{
    struct as_buf line = AS_BUF_INIT(1 << 16);
    struct as_log_index *index = open_index();
    append_decisions(path, 2);
    refresh(index);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    cr_assert_eq(pwrite(fd, "XXXX", 4, 0), 4);
    close(fd);
    cr_assert_eq(read_one(index, "D1", &line), -ENOENT);
    cr_assert_eq(line.size, 0);
    as_buf_deinit(&line);
    as_log_index_close(index);
}

static void overwrite(off_t from, off_t to)
{
    const int fd = open(database, O_WRONLY | O_CLOEXEC);
    for (off_t at = from; at < to; at++)
        cr_assert_eq(pwrite(fd, "\x5a", 1, at), 1);
    close(fd);
}

Test(log_index, a_damaged_index_is_built_again_at_each_place)
{
    append_decisions(path, 40);
    struct as_log_index *index = open_index();
    refresh(index);
    as_log_index_close(index);
    struct stat info;
    cr_assert_eq(stat(database, &info), 0);
    for (off_t page = 0; page < info.st_size; page += 4096) {
        overwrite(page, page + 4096);
        index = open_index();
        /* A query may be the first that sees it. */
        struct as_error error = AS_ERROR_INIT;
        const struct as_log_query query = {.kinds = DECISIONS,
                                           .on_row = on_row,
                                           .context = &(struct found){.max = 64},
                                           .deadline = AS_MONO_NEVER};
        const int status = as_log_index_find(index, &query, &error);
        cr_assert(status == 0 || status == -EBADMSG, "%s", error.text);
        refresh(index);
        refresh(index);
        cr_assert_eq(count_all(index), 40, "page %lld", (long long)page / 4096);
        as_log_index_close(index);
        cr_assert_eq(unlink(database), 0);
        index = open_index();
        refresh(index);
        cr_assert_eq(count_all(index), 40);
        as_log_index_close(index);
    }
}

Test(log_index, a_full_disk_keeps_what_is_indexed)
{
    struct rlimit limit;
    struct as_error error = AS_ERROR_INIT;
    struct as_log_index_state state = {.is_current = false};
    append_decisions(path, 30);
    struct as_log_index *index = open_index();
    refresh(index);
    append_decisions(path, 30);
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const struct rlimit full = {.rlim_cur = 1, .rlim_max = limit.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &full), 0); /* each write fails */
    int status = 0;
    for (int i = 0; status == 0 && !state.is_current && i < 10; i++)
        status = as_log_index_step(index, i == 0, &state, &error);
    cr_assert_lt(status, 0);
    cr_assert_eq(count_all(index), 30);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    refresh(index);
    cr_assert_eq(count_all(index), 60);
    as_log_index_close(index);
}

Test(log_index, it_leaves_room_on_the_disk)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_log_index *index = NULL;
    struct as_log_index_state state;
    append_decisions(path, 3);
    config.free_min = UINT64_MAX;
    cr_assert_eq(as_log_index_open(&config, &index, &error), -ENOSPC);
    cr_assert(strstr(error.text, "make room"), "%s", error.text);
    cr_assert_neq(access(database, F_OK), 0);
    config.free_min = 0;
    as_log_index_close(open_index());
    config.free_min = UINT64_MAX;
    index = open_index();
    cr_assert_eq(as_log_index_step(index, true, &state, &error), 0); /* nothing to forget */
    cr_assert_eq(as_log_index_step(index, false, &state, &error), -ENOSPC);
    cr_assert_eq(count_all(index), 0);
    as_log_index_close(index);
}

Test(log_index, one_process_has_it)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_log_index *second = NULL;
    struct as_log_index *index = open_index();
    cr_assert_eq(as_log_index_open(&config, &second, &error), -EBUSY, "%s", error.text);
    as_log_index_close(index);
}

Test(log_index, a_link_or_a_folder_in_its_place_is_refused)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_log_index *index = NULL;
    cr_assert_eq(symlink("/etc/hostname", database), 0);
    cr_assert_eq(as_log_index_open(&config, &index, &error), -ELOOP);
    cr_assert_eq(unlink(database), 0);
    cr_assert_eq(mkdir(database, 0700), 0);
    cr_assert_eq(as_log_index_open(&config, &index, &error), -EISDIR);
}

static bool may_see_t1(void *context, const char *target_name, const char *target)
{
    return strcmp(target_name, "t1") == 0;
}

Test(log_index, what_may_not_be_seen_is_not_counted)
{
    struct found found = {.max = 2};
    struct as_error error = AS_ERROR_INIT;
    struct as_buf line = AS_BUF_INIT(1 << 16);
    append_decisions(path, 9);
    append_text(path, "{\"kind\":\"start\",\"seq\":10,\"time\":\"2026-11-20T11:00:00Z\"}\n");
    struct as_log_index *index = open_index();
    refresh(index);
    struct as_log_query query = {.kinds = ~0U,
                                 .may_see = may_see_t1,
                                 .on_row = on_row,
                                 .context = &found,
                                 .deadline = AS_MONO_NEVER};
    cr_assert_eq(as_log_index_find(index, &query, &error), 0);
    cr_assert(found.count == 2 && found.seqs[0] == 8 && found.seqs[1] == 5);
    query.target = "t0";
    found = (struct found){.max = 2};
    cr_assert_eq(as_log_index_find(index, &query, &error), 0);
    cr_assert_eq(found.count, 0);
    query.target = NULL;
    query.on_row = NULL;
    cr_assert_eq(as_log_index_read(index, &query, "D1", &line, &error), -ENOENT);
    cr_assert_eq(as_log_index_read(index, &query, "D2", &line, &error), 0);
    as_buf_deinit(&line);
    as_log_index_close(index);
}

Test(log_index, many_targets_are_searched_too)
{
    struct found found = {.max = 64};
    struct as_error error = AS_ERROR_INIT;
    for (int i = 0; i < 700; i++) {
        AS_CLEANUP(as_free_p) char *line = make_decision(i);
        append_text(path, line);
    }
    struct as_log_index *index = open_index();
    refresh(index);
    /* Half of them, more than there are streams: none of t1, t10, ... */
    const as_maybe_time since = {true, {(INT64_C(1795168800) + 650) * AS_US_PER_S}};
    const struct as_log_query query = {.kinds = DECISIONS,
                                       .since = since,
                                       .may_see = may_see_t1,
                                       .on_row = on_row,
                                       .context = &found,
                                       .deadline = AS_MONO_NEVER};
    cr_assert_eq(as_log_index_find(index, &query, &error), 0);
    cr_assert_eq(found.count, 0);
    cr_assert_eq(find(index, (struct as_log_query){.since = since}).count, 51);
    as_log_index_close(index);
}

/* The same records by each way to read them: of many targets, of few, by the reason. */
Test(log_index, each_way_to_the_records_finds_the_same)
{
    static const char other[] =
        "{\"id\":\"A\",\"kind\":\"action\",\"outcome\":\"scaled\",\"rule\":"
        "\"r\\u00e9gle\",\"seq\":41,\"target\":\"kubernetes/c/t1\","
        "\"target_name\":\"t1\",\"time\":\"2026-11-20T11:00:00Z\"}\n"
        "{\"kind\":\"start\",\"seq\":42,\"time\":\"2026-11-20T11:00:00Z\"}\n";
    const unsigned action = 1U << AS_RECORD_ACTION, start = 1U << AS_RECORD_START;
    for (int i = 0; i < 40; i++) {
        AS_CLEANUP(as_free_p) char *line = make_decision(i % 20);
        append_text(path, line);
    }
    append_text(path, other);
    struct as_log_index *index = open_index();
    refresh(index);
    static const struct {
        unsigned kinds; /* of actions: 2; of starts: 4; else of decisions */
        const char *target, *rule, *reason;
        bool is_narrowed;
        size_t count;
        int64_t first;
    } rows[] = {
        {1, NULL, NULL, NULL, false, 40, 40},
        {3, NULL, NULL, NULL, false, 41, 41},
        {6, NULL, NULL, NULL, false, 2, 42},
        {4, NULL, NULL, NULL, true, 0, 0},
        {2, "t1", NULL, NULL, false, 1, 41},
        {2, "t2", NULL, NULL, false, 0, 0},
        {1, "t1", NULL, NULL, false, 2, 22},
        {3, "t1", "r\xc3\xa9gle", NULL, false, 3, 41},
        {3, NULL, "r\xc3\xa9gle", NULL, false, 41, 41},
        {1, NULL, "r\xc3\xa9gle", "scaled", true, 2, 22},
        {3, NULL, NULL, "scaled", false, 41, 41},
        {3, NULL, NULL, "scaled", true, 3, 41},
        {1, "t1", NULL, "scaled", false, 2, 22},
        {1, "t1", NULL, "r\xc3\xa9gle", false, 0, 0},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const struct as_log_query query = {.kinds = (rows[i].kinds & 1 ? DECISIONS : 0) |
                                                    (rows[i].kinds & 2 ? action : 0) |
                                                    (rows[i].kinds & 4 ? start : 0),
                                           .target = rows[i].target,
                                           .rule = rows[i].rule,
                                           .reason = rows[i].reason,
                                           .may_see = rows[i].is_narrowed ? may_see_t1 : NULL};
        const struct found found = find(index, query);
        cr_expect_eq(found.count, rows[i].count, "row %zu: %zu", i, found.count);
        cr_expect_eq(found.seqs[0], rows[i].first, "row %zu", i);
    }
    as_log_index_close(index);
}

static bool may_see_all_but_t1(void *context, const char *target_name, const char *target)
{
    return strcmp(target_name, "t1") != 0;
}

Test(log_index, a_reason_of_many_targets_is_narrowed)
{
    for (int i = 0; i < 40; i++) {
        AS_CLEANUP(as_free_p) char *line = make_decision(i % 20);
        append_text(path, line);
    }
    struct as_log_index *index = open_index();
    refresh(index);
    const struct found found =
        find(index, (struct as_log_query){.reason = "scaled", .may_see = may_see_all_but_t1});
    cr_expect_eq(found.count, 38);
    for (size_t i = 0; i < found.count; i++)
        cr_expect(found.seqs[i] != 2 && found.seqs[i] != 22);
    as_log_index_close(index);
}

static bool note_target(void *context, const struct as_log_row *row)
{
    snprintf(context, 40, "%s", row->target);
    return true;
}

Test(log_index, an_incident_has_a_target_that_may_be_seen)
{
    char target[40] = "";
    struct as_error error = AS_ERROR_INIT;
    append_decisions(path, 3);
    append_text(path,
                "{\"event\":\"opened\",\"kind\":\"incident\",\"seq\":4,\"targets\":[{\"target\":"
                "\"kubernetes/c/t0\"},{\"target\":\"kubernetes/c/t1\"}],\"time\":"
                "\"2026-11-20T11:00:00Z\"}\n");
    struct as_log_index *index = open_index();
    refresh(index);
    const struct as_log_query query = {.kinds = 1U << AS_RECORD_INCIDENT,
                                       .reason = "opened",
                                       .may_see = may_see_t1,
                                       .on_row = note_target,
                                       .context = target,
                                       .deadline = AS_MONO_NEVER};
    cr_assert_eq(as_log_index_find(index, &query, &error), 0, "%s", error.text);
    cr_expect_str_eq(target, "kubernetes/c/t1");
    as_log_index_close(index);
}

Test(log_index, a_query_can_be_stopped)
{
    static atomic_bool stop;
    struct found found = {.max = 64};
    struct as_error error = AS_ERROR_INIT;
    config.stop = &stop;
    for (int i = 0; i < 4000; i++) {
        AS_CLEANUP(as_free_p) char *line = make_decision(i % 3);
        append_text(path, line);
    }
    struct as_log_index *index = open_index();
    refresh(index);
    struct as_log_query query = {.kinds = DECISIONS,
                                 .rule = "r\xc3\xa9gle",
                                 .reason = "scaled",
                                 .until = {true, {0}},
                                 .on_row = on_row,
                                 .context = &found,
                                 .deadline = {1}};
    cr_assert_eq(as_log_index_find(index, &query, &error), -ETIMEDOUT, "%s", error.text);
    query.deadline = AS_MONO_NEVER;
    atomic_store(&stop, true);
    cr_assert_eq(as_log_index_find(index, &query, &error), -ECANCELED, "%s", error.text);
    atomic_store(&stop, false);
    cr_assert_eq(as_log_index_find(index, &query, &error), 0, "%s", error.text);
    as_log_index_close(index);
}

/*
 * Sums of minutes.
 */

static void append_size(const char *name, int64_t seconds, int replicas)
{
    AS_CLEANUP(as_free_p) char *time = make_time(seconds);
    AS_CLEANUP(as_free_p)
    char *line = as_xasprintf("{\"kind\":\"decision\",\"output\":{\"replicas\":%d},\"seq\":%lld,"
                              "\"target\":\"t\",\"target_name\":\"\",\"time\":\"%s\"}\n",
                              replicas, (long long)next_seq++, time);
    append_text(name, line);
}

static void append_action(const char *name, int64_t seconds, const char *outcome, int to)
{
    AS_CLEANUP(as_free_p) char *time = make_time(seconds);
    AS_CLEANUP(as_free_p)
    char *line = as_xasprintf("{\"kind\":\"action\",\"outcome\":\"%s\",\"seq\":%lld,\"target\":"
                              "\"t\",\"target_name\":\"\",\"time\":\"%s\",\"to\":%d}\n",
                              outcome, (long long)next_seq++, time, to);
    append_text(name, line);
}

/* A decision with two proposals, of which `rule` won. */
static void append_value(const char *name, int64_t seconds, const char *rule, const char *goals,
                         const char *value)
{
    AS_CLEANUP(as_free_p) char *time = make_time(seconds);
    AS_CLEANUP(as_free_p)
    char *line = as_xasprintf(
        "{\"input\":{\"observed\":{\"pods\":[{\"name\":\"a\"}]},\"proposals\":[{\"action\":{"
        "\"scale_up\":{\"by\":1}},\"rule\":\"steps\"},{\"action\":{\"track\":{%s}},\"rule\":"
        "\"tracks\",\"value\":%s}]},\"kind\":\"decision\",\"output\":{\"proposals\":[{\"rule\":"
        "\"steps\"},{\"rule\":\"tracks\"}],\"replicas\":3,\"rule\":\"%s\"},\"seq\":%lld,\"target\":"
        "\"t\",\"target_name\":\"\",\"time\":\"%s\"}\n",
        goals, value, rule, (long long)next_seq++, time);
    append_text(name, line);
}

struct minutes {
    struct as_log_minute items[16];
    char rules[16][16];
    size_t count, max;
};

static bool on_minute(void *context, const struct as_log_minute *minute)
{
    struct minutes *minutes = context;
    cr_assert_lt(minutes->count, AS_ARRAY_SIZE(minutes->items));
    snprintf(minutes->rules[minutes->count], sizeof(minutes->rules[0]), "%s", minute->rule);
    minutes->items[minutes->count++] = *minute;
    return minutes->count < minutes->max;
}

#define ORIGIN INT64_C(1795168800) /* 2026-11-20T10:00:00Z */

static struct minutes sum(struct as_log_index *index, const char *target, int64_t until)
{
    struct minutes minutes = {.max = 16};
    struct as_error error = AS_ERROR_INIT;
    const struct as_log_minutes query = {.target = target,
                                         .until = {(ORIGIN + until) * AS_US_PER_S},
                                         .on_minute = on_minute,
                                         .context = &minutes,
                                         .deadline = AS_MONO_NEVER};
    cr_assert_eq(as_log_index_visit_minutes(index, &query, &error), 0, "%s", error.text);
    return minutes;
}

static int64_t get_second(as_wall_time time)
{
    return time.us / AS_US_PER_S - ORIGIN;
}

Test(log_index, a_minute_has_the_sizes_and_counts_of_its_records)
{
    append_size(path, 5, 4);
    append_size(path, 20, 9);
    append_size(path, 30, 2);
    append_action(path, 40, "applied", 6);
    append_action(path, 50, "unreachable", 70);
    append_action(path, 60, "unreachable", 70);
    append_size(path, 181, 6);
    struct as_log_index *index = open_index();
    refresh(index);
    struct minutes minutes = sum(index, "t", 3600);
    cr_assert_eq(minutes.count, 3);
    const struct as_log_minute *minute = &minutes.items[0];
    cr_expect(minute->has_size && minute->first == 6 && minute->last == 6 && !minute->has_value);
    cr_expect(get_second(minute->first_at) == 181 && get_second(minute->last_at) == 181);
    minute = &minutes.items[1];
    cr_expect(!minute->has_size && minute->actions == 1 && minute->failures == 1);
    minute = &minutes.items[2];
    cr_expect(minute->has_size && minute->first == 4 && minute->last == 6);
    cr_expect(minute->least == 2 && minute->most == 9);
    cr_expect(get_second(minute->first_at) == 5 && get_second(minute->last_at) == 40);
    cr_expect(minute->actions == 2 && minute->failures == 1);
    cr_expect_eq(sum(index, "t", 179).count, 2);
    cr_expect_eq(sum(index, "other", 3600).count, 0);
    as_log_index_close(index);
}

/* Also of a time before 1970. */
Test(log_index, a_minute_goes_by_times_not_by_the_order_of_lines)
{
    append_size(path, 40, 4);
    append_size(path, 20, 9); /* the clock was set back */
    append_size(path, -ORIGIN - 1, 5);
    struct as_log_index *index = open_index();
    refresh(index);
    const struct minutes minutes = sum(index, "t", 3600);
    cr_assert_eq(minutes.count, 2);
    cr_expect(minutes.items[0].first == 9 && minutes.items[0].last == 4);
    cr_expect_eq(minutes.items[1].first_at.us, -AS_US_PER_S);
    as_log_index_close(index);
}

Test(log_index, a_minute_has_the_last_value_of_a_winning_rule)
{
    append_value(path, 1, "tracks", "\"value\":40", "47.125");
    append_value(path, 2, "tracks", "\"average_value\":41", "48");
    append_value(path, 3, "steps", "\"value\":40", "49");
    append_value(path, 61, "tracks", "\"resource\":\"cpu\",\"utilization\":\"70%\"", "50");
    append_value(path, 62, "steps", "\"value\":40", "51");
    struct as_log_index *index = open_index();
    refresh(index);
    const struct minutes minutes = sum(index, "t", 3600);
    cr_assert_eq(minutes.count, 2);
    cr_expect_not(minutes.items[0].has_value);
    cr_assert(minutes.items[1].has_value);
    cr_expect(minutes.items[1].value == 48 && minutes.items[1].goal == 41);
    cr_expect_eq(get_second(minutes.items[1].value_at), 2);
    cr_expect_str_eq(minutes.rules[1], "tracks");
    as_log_index_close(index);
}

Test(log_index, minutes_go_with_the_file_of_their_records)
{
    AS_CLEANUP(as_free_p) char *rotated = as_xasprintf("%s.1", path);
    append_size(rotated, 1, 4);
    append_size(rotated, 65, 5);
    append_action(rotated, 70, "applied", 6);
    next_seq--; /* after a change of the leader, the newer file has the record again */
    append_action(path, 70, "applied", 6);
    append_size(path, 80, 7);
    append_size(path, 125, 8);
    struct as_log_index *index = open_index();
    refresh(index);
    struct minutes minutes = sum(index, "t", 3600);
    cr_assert_eq(minutes.count, 4, "the minute of the rotation comes twice");
    cr_expect_eq(minutes.items[1].actions + minutes.items[2].actions, 1);
    cr_assert_eq(unlink(rotated), 0);
    refresh(index);
    minutes = sum(index, "t", 3600);
    cr_assert_eq(minutes.count, 2);
    cr_expect(minutes.items[0].last == 8 && minutes.items[1].last == 7);
    cr_assert_eq(truncate(path, 0), 0);
    refresh(index);
    cr_expect_eq(sum(index, "t", 3600).count, 0);
    as_log_index_close(index);
}

Test(log_index, minutes_of_many_records_of_a_file_are_forgotten)
{
    for (int i = 0; i < 5000; i++)
        append_size(path, i, i % 10);
    struct as_log_index *index = open_index();
    refresh(index);
    struct minutes minutes = {.max = 1};
    struct as_error error = AS_ERROR_INIT;
    struct as_log_minutes query = {.target = "t",
                                   .until = {(ORIGIN + 5000) * AS_US_PER_S},
                                   .on_minute = on_minute,
                                   .context = &minutes,
                                   .deadline = AS_MONO_NEVER};
    cr_assert_eq(as_log_index_visit_minutes(index, &query, &error), 0);
    cr_expect_eq(minutes.count, 1, "false ends it");
    cr_expect(minutes.items[0].least == 0 && minutes.items[0].most == 9);
    cr_assert_eq(truncate(path, 0), 0);
    append_size(path, 100000, 3);
    refresh(index);
    cr_expect_eq(sum(index, "t", 200000).count, 1);
    as_log_index_close(index);
}
