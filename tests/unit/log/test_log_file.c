/* The action log's file: torn ends, rotation, reopening, and what it refuses. */
#include <alertscaler/log/log_file.h>

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/log/log_chain.h>

#include "../records.h"

static char directory[40], path[80];
static struct as_chain *chain;
static struct as_audit_head head; /* of what the tests have sealed */

static int remove_entry(const char *entry, const struct stat *info, int type, struct FTW *at)
{
    return remove(entry);
}

static void setup(void)
{
    snprintf(directory, sizeof(directory), "/tmp/as-audit-XXXXXX");
    cr_assert(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/actions.jsonl", directory);
    chain = as_chain_new();
    head = AS_AUDIT_HEAD_INIT;
    as_log_configure(AS_LOG_ERROR, AS_LOG_LOGFMT, open("/dev/null", O_WRONLY | O_CLOEXEC));
}

static void teardown(void)
{
    nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    as_chain_free(chain);
}

TestSuite(audit_file, .init = setup, .fini = teardown);

static struct as_audit *open_log(uint64_t max_size, unsigned keep)
{
    struct as_audit_file_config config = {.path = path, .max_size = max_size, .keep = keep};
    struct as_error error = AS_ERROR_INIT;
    struct as_audit *audit = NULL;

    cr_assert(!as_audit_file_open(&config, &audit, &error), "%s", error.text);
    return audit;
}

/* Seals and appends `count` records, each in a call of its own. */
static void append(struct as_audit *audit, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct as_buf lines = AS_BUF_INIT(1 << 16);
        struct as_error error = AS_ERROR_INIT;
        struct test_record made;
        as_chain_seal(chain, test_record_make(&made, 100 + head.seq), &head, &lines);
        cr_assert(!audit->append(audit, lines.data, lines.size, &head, &error), "%s", error.text);
        as_buf_deinit(&lines);
    }
}

static char *read_all(const char *name, size_t *size_out)
{
    char *data = NULL;

    cr_assert(!as_file_read(name, 1 << 24, &data, size_out), "%s", name);
    return data;
}

static void write_all(const char *name, const char *data, size_t size)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);

    cr_assert(fd >= 0);
    cr_assert_eq(write(fd, data, size), (ssize_t)size);
    close(fd);
}

/* Goes through a whole file; the numbers of its first and last record. */
static void verify_file(const char *name, struct as_chain_verify *verify)
{
    size_t size;
    AS_CLEANUP(as_free_p) char *data = read_all(name, &size);
    struct as_error error = AS_ERROR_INIT;

    for (const char *at = data, *end = data + size; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        cr_assert(newline, "%s ends in the middle of a line", name);
        cr_assert(!as_chain_verify_line(verify, at, (size_t)(newline - at), &error), "%s: %s", name,
                  error.text);
        at = newline + 1;
    }
}

Test(audit_file, it_is_made_with_its_mode_and_goes_on_where_it_ended)
{
    struct stat info;

    umask(0);
    struct as_audit *audit = open_log(0, 0);
    cr_assert(!stat(path, &info));
    cr_assert_eq(info.st_mode & 0777, 0640);
    cr_assert_eq(audit->get_head(audit).seq, 0);
    append(audit, 3);
    cr_assert(!audit->sync(audit, NULL));
    audit->close(audit);
    audit = open_log(0, 0);
    cr_assert_eq(audit->get_head(audit).seq, 3);
    cr_assert_str_eq(audit->get_head(audit).hash, head.hash);
    append(audit, 2);
    audit->close(audit);
    struct as_chain_verify verify = AS_CHAIN_VERIFY_INIT(chain);
    verify_file(path, &verify);
    cr_assert_eq(verify.head.seq, 5);
}

Test(audit_file, a_line_torn_at_any_byte_is_cut_off)
{
    struct as_audit *audit = open_log(0, 0);
    size_t two, three;

    append(audit, 2);
    free(read_all(path, &two));
    struct as_audit_head second = head;
    append(audit, 1);
    audit->close(audit);
    AS_CLEANUP(as_free_p) char *data = read_all(path, &three);
    for (size_t size = two; size <= three; size++) {
        struct stat info;
        write_all(path, data, size);
        audit = open_log(0, 0);
        bool whole = size == three;
        cr_assert_eq(audit->get_head(audit).seq, whole ? 3 : 2, "%zu", size);
        cr_assert_str_eq(audit->get_head(audit).hash, whole ? head.hash : second.hash);
        audit->close(audit);
        cr_assert(!stat(path, &info));
        cr_assert_eq((size_t)info.st_size, whole ? three : two);
    }
    char aside[96];
    snprintf(aside, sizeof(aside), "%s.damaged", path);
    cr_assert(access(aside, F_OK), "a torn line alone is not worth keeping");
}

Test(audit_file, blocks_that_were_never_written_are_cut_off_with_what_follows)
{
    struct as_audit *audit = open_log(0, 0);
    size_t size, aside_size;
    char aside[96];

    append(audit, 100);
    audit->close(audit);
    AS_CLEANUP(as_free_p) char *data = read_all(path, &size);
    AS_CLEANUP(as_free_p) char *holed = as_xmalloc(size);
    for (size_t at = 4096; at + 4096 < size; at += 4096) {
        memcpy(holed, data, size);
        memset(holed + at, 0, 512);
        write_all(path, holed, size);
        audit = open_log(0, 0);
        uint64_t seq = audit->get_head(audit).seq;
        audit->close(audit);
        size_t left;
        AS_CLEANUP(as_free_p) char *rest = read_all(path, &left);
        cr_assert(left <= at && left > at - 512);
        cr_assert_eq(memcmp(rest, data, left), 0);
        cr_assert(seq > 10 && seq < 100);
    }
    snprintf(aside, sizeof(aside), "%s.damaged", path);
    free(read_all(aside, &aside_size));
    cr_assert(aside_size > size - 4096, "whole lines that were cut off are kept aside");
}

Test(audit_file, a_changed_record_is_left_for_verify_to_find)
{
    struct as_audit *audit = open_log(0, 0);
    size_t size;

    append(audit, 10);
    audit->close(audit);
    AS_CLEANUP(as_free_p) char *data = read_all(path, &size);
    memcpy(strstr(data, "\"kind\":\"test\""), "\"kind\":\"TEST\"", 13);
    write_all(path, data, size);
    audit = open_log(0, 0);
    cr_assert_eq(audit->get_head(audit).seq, 10);
    append(audit, 1);
    audit->close(audit);
    size_t after;
    AS_CLEANUP(as_free_p) char *now = read_all(path, &after);
    cr_assert_eq(memcmp(now, data, size), 0, "nothing was rewritten");
}

Test(audit_file, rotation_keeps_so_many_and_the_chain_goes_on)
{
    struct as_audit *audit = open_log(1000, 3); /* some four records of 220 bytes */
    struct as_chain_verify verify = AS_CHAIN_VERIFY_INIT(chain);
    char name[96];

    for (int i = 0; i < 5; i++) { /* restarts between */
        append(audit, 7);
        audit->close(audit);
        audit = open_log(1000, 3);
        cr_assert_eq(audit->get_head(audit).seq, head.seq);
    }
    audit->close(audit);
    for (int i = 3; i > 0; i--) {
        struct stat info;
        snprintf(name, sizeof(name), "%s.%d", path, i);
        cr_assert(!stat(name, &info));
        cr_assert(info.st_size <= 1000 && info.st_size > 600);
        verify_file(name, &verify);
    }
    verify_file(path, &verify);
    cr_assert_eq(verify.head.seq, 35);
    snprintf(name, sizeof(name), "%s.4", path);
    cr_assert(access(name, F_OK), "the oldest is gone");
}

static void begin_part(struct as_audit *audit)
{
    append(audit, 1);
    cr_assert(!audit->begin_part(audit, &head, NULL));
}

static bool is_there(unsigned number)
{
    char name[96];
    snprintf(name, sizeof(name), "%s.%u", path, number);
    return !access(name, F_OK);
}

Test(audit_file, small_parts_do_not_use_up_keep)
{
    struct as_chain_verify verify = AS_CHAIN_VERIFY_INIT(chain);
    struct as_audit *audit = open_log(100000, 2);
    char name[96];

    for (int i = 0; i < 40; i++) { /* each a term as the leader, some after a restart */
        begin_part(audit);
        if (i % 4 == 0) {
            audit->close(audit);
            audit = open_log(100000, 2);
        }
    }
    append(audit, 1);
    audit->close(audit);
    for (int i = 40; i > 0; i--) {
        snprintf(name, sizeof(name), "%s.%d", path, i);
        verify_file(name, &verify);
    }
    verify_file(path, &verify);
    cr_assert_eq(verify.first_seq, 1, "no record is lost");
    cr_assert_eq(verify.head.seq, 41);
}

Test(audit_file, small_parts_go_once_they_are_large_together)
{
    struct as_audit *audit = open_log(1000, 2); /* some four records of 220 bytes */

    for (int i = 0; i < 8; i++)
        begin_part(audit);
    cr_assert(is_there(8) && !is_there(9), "8 parts are smaller than 2 full files");
    for (int i = 0; i < 8; i++)
        begin_part(audit);
    cr_assert(is_there(9) && !is_there(10), "more than 2000 bytes");
    append(audit, 16);
    cr_assert(is_there(2) && !is_there(3), "full files count by number");
    audit->close(audit);
}

Test(audit_file, the_number_of_small_parts_is_limited)
{
    struct as_audit *audit = open_log(0, 2);
    char name[96];

    for (int i = 1; i < 1000; i++) {
        snprintf(name, sizeof(name), "%s.%d", path, i);
        write_all(name, "", 0);
    }
    for (int i = 0; i < 3; i++) {
        begin_part(audit);
        cr_assert(is_there(1000) && !is_there(1001));
    }
    audit->close(audit);
}

Test(audit_file, one_append_is_never_spread_over_two_files)
{
    struct as_audit *audit = open_log(500, 2);
    struct as_buf lines = AS_BUF_INIT(1 << 16);
    struct test_record made;
    struct stat info;

    append(audit, 1);
    for (int i = 0; i < 10; i++)
        as_chain_seal(chain, test_record_make(&made, head.seq), &head, &lines);
    cr_assert(!audit->append(audit, lines.data, lines.size, &head, NULL));
    cr_assert(!stat(path, &info));
    cr_assert_eq((size_t)info.st_size, lines.size);
    as_buf_deinit(&lines);
    audit->close(audit);
}

Test(audit_file, what_the_room_holds_is_in_that_file)
{
    struct as_audit *audit = open_log(1000, 2);
    const uint64_t first = audit->get_place(audit).file;

    cr_assert_eq(audit->get_place(audit).room, 1000);
    for (unsigned i = 0; i < 20; i++) {
        const struct as_audit_place before = audit->get_place(audit);
        const uint64_t seq = head.seq;
        struct stat info;
        append(audit, 1);
        const struct as_audit_place after = audit->get_place(audit);
        cr_assert(!stat(path, &info));
        cr_assert_eq(after.room, 1000 - (uint64_t)info.st_size);
        cr_assert_eq(after.file, before.file + (before.room < 250 && after.room > before.room));
        cr_assert_eq(head.seq, seq + 1);
    }
    const uint64_t last = audit->get_place(audit).file;
    cr_assert(last > first + 3);
    cr_assert(!audit->reopen(audit, NULL));
    cr_assert_eq(audit->get_place(audit).file, last + 1);
    audit->close(audit);
}

Test(audit_file, after_a_crash_between_the_steps_of_a_rotation_the_number_is_known)
{
    static const char *const names[] = {".1", "-20261120", ".old"};
    struct as_audit *audit = open_log(0, 0);
    char name[96], other[96];

    append(audit, 5);
    audit->close(audit);
    snprintf(other, sizeof(other), "%s", path);
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++) {
        snprintf(name, sizeof(name), "%s%s", path, names[i]);
        cr_assert(!rename(other, name));
        for (int made = 0; made < 2; made++) { /* the new file: not there yet, empty */
            audit = open_log(0, 0);
            cr_assert_eq(audit->get_head(audit).seq, 5, "%s", name);
            cr_assert_str_eq(audit->get_head(audit).hash, head.hash);
            audit->close(audit);
        }
        memcpy(other, name, sizeof(other));
    }
    snprintf(name, sizeof(name), "%s.1.gz", path);
    cr_assert(!rename(other, name));
    audit = open_log(0, 0);
    cr_assert_eq(audit->get_head(audit).seq, 0, "nothing is known of a compressed file");
    audit->close(audit);
}

Test(audit_file, reopening_follows_logrotate)
{
    struct as_audit *audit = open_log(0, 0);
    struct as_chain_verify verify = AS_CHAIN_VERIFY_INIT(chain);
    char moved[96];

    append(audit, 2);
    snprintf(moved, sizeof(moved), "%s-20261120", path);
    cr_assert(!rename(path, moved));
    append(audit, 2); /* still into the moved one */
    cr_assert(access(path, F_OK));
    cr_assert(!audit->reopen(audit, NULL));
    append(audit, 3);
    cr_assert(!audit->reopen(audit, NULL)); /* nothing was moved: it goes on in the same file */
    append(audit, 1);
    cr_assert_eq(audit->get_head(audit).seq, 8);
    audit->close(audit);
    verify_file(moved, &verify);
    cr_assert_eq(verify.head.seq, 4);
    verify_file(path, &verify);
    cr_assert_eq(verify.head.seq, 8);
}

Test(audit_file, a_line_longer_than_the_window_is_found_too)
{
    struct as_audit *audit = open_log(0, 0);
    struct as_buf json = AS_BUF_INIT(80 << 20), lines = AS_BUF_INIT(80 << 20);

    as_buf_append_str(&json, "{\"id\":\"");
    size_t length = 20 << 20;
    memset(as_buf_reserve(&json, length), 'x', length);
    json.size += length;
    as_buf_append_str(&json, "\",\"time\":1}");
    size_t at = json.size - strlen("\"time\":1}");
    append(audit, 1);
    as_chain_seal(
        chain,
        &(struct as_audit_record){
            .json = json.data, .size = json.size, .at_hash = 1, .at_prev = at, .at_seq = at},
        &head, &lines);
    cr_assert(!as_buf_check(&lines));
    cr_assert(!audit->append(audit, lines.data, lines.size, &head, NULL));
    audit->close(audit);
    audit = open_log(0, 0);
    cr_assert_eq(audit->get_head(audit).seq, 2);
    audit->close(audit);
    cr_assert(!truncate(path, (off_t)lines.size - 100)); /* torn */
    audit = open_log(0, 0);
    cr_assert_eq(audit->get_head(audit).seq, 1);
    audit->close(audit);
    as_buf_deinit(&json);
    as_buf_deinit(&lines);
}

static void expect_refusal(int status, const char *words)
{
    struct as_audit_file_config config = {.path = path};
    struct as_error error = AS_ERROR_INIT;
    struct as_audit *audit = NULL;

    cr_assert_eq(as_audit_file_open(&config, &audit, &error), status, "%s", error.text);
    cr_assert(strstr(error.text, words), "%s", error.text);
    cr_assert(strstr(error.text, path), "%s", error.text);
}

Test(audit_file, wrong_places_are_named)
{
    snprintf(path, sizeof(path), "%s/no/actions.jsonl", directory);
    expect_refusal(-ENOENT, "No such file or directory");
    snprintf(path, sizeof(path), "%s", directory);
    expect_refusal(-EISDIR, "Is a directory");
    snprintf(path, sizeof(path), "/dev/full");
    expect_refusal(-EMEDIUMTYPE, "not a regular file");
}

Test(audit_file, two_writers_are_refused)
{
    struct as_audit *audit = open_log(0, 0);

    expect_refusal(-EBUSY, "in use by another alertscaler");
    audit->close(audit);
    audit = open_log(0, 0);
    audit->close(audit);
}

Test(audit_file, a_full_disk_fails_the_append_and_opening_anew_repairs_it)
{
    struct as_audit *audit = open_log(0, 0);
    struct as_error error = AS_ERROR_INIT;
    struct as_buf lines = AS_BUF_INIT(1 << 16);
    struct rlimit before, limit;
    struct test_record made;

    append(audit, 4);
    signal(SIGXFSZ, SIG_IGN);
    cr_assert(!getrlimit(RLIMIT_FSIZE, &before));
    limit = (struct rlimit){.rlim_cur = 1000, .rlim_max = before.rlim_max};
    cr_assert(!setrlimit(RLIMIT_FSIZE, &limit));
    struct as_audit_head good = head;
    as_chain_seal(chain, test_record_make(&made, 5), &head, &lines);
    int status = audit->append(audit, lines.data, lines.size, &head, &error);
    cr_assert_eq(status, -EFBIG);
    cr_assert(strstr(error.text, path));
    cr_assert(!setrlimit(RLIMIT_FSIZE, &before));
    cr_assert_eq(audit->append(audit, lines.data, lines.size, &head, &error), status,
                 "it stays failed until it is opened anew");
    cr_assert_eq(audit->sync(audit, &error), status);
    audit->close(audit);
    audit = open_log(0, 0);
    cr_assert_eq(audit->get_head(audit).seq, 4);
    cr_assert_str_eq(audit->get_head(audit).hash, good.hash);
    cr_assert(!audit->append(audit, lines.data, lines.size, &head, &error), "%s", error.text);
    audit->close(audit);
    struct as_chain_verify verify = AS_CHAIN_VERIFY_INIT(chain);
    verify_file(path, &verify);
    cr_assert_eq(verify.head.seq, 5);
    as_buf_deinit(&lines);
}

/* Another user may have put the link there, to have a file of ours overwritten. */
Test(audit_file, a_link_is_not_followed)
{
    char target[160];
    snprintf(target, sizeof(target), "%s/target", directory);
    snprintf(path, sizeof(path), "%s/actions.jsonl", directory);
    cr_assert_eq(symlink("target", path), 0);
    expect_refusal(-ELOOP, "a symbolic link");
    cr_expect_eq(access(target, F_OK), -1, "nor created through it");
    unlink(path);
    cr_assert_eq(mkfifo(path, 0600), 0);
    expect_refusal(-EMEDIUMTYPE, "not a regular file");
    unlink(path);
}

Test(log_file, names_of_files_of_other_replicas)
{
    static const char *const copies[] = {"replica-a-a.jsonl", "replica-alertscaler-1-a.jsonl",
                                         "replica-a.jsonl-a.jsonl.12",
                                         "replica-b-a.jsonl-20261120"};
    static const char *const others[] = {
        "replica-a.jsonl",  "replica--a.jsonl",   "replica-ba.jsonl", "replica-b-a.jsonl.gz",
        "replica-b-a.json", "replica-b-a.jsonl2", "a.jsonl",          "Replica-b-a.jsonl"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(copies); i++)
        cr_expect(as_audit_file_is_copy("a.jsonl", copies[i]), "%s", copies[i]);
    for (size_t i = 0; i < AS_ARRAY_SIZE(others); i++)
        cr_expect_not(as_audit_file_is_copy("a.jsonl", others[i]), "%s", others[i]);
}
