/*
 * secret_file.h: a rotated secret is seen within the interval; after its file vanishes the old
 * secret stays; a secret that cannot go into a header is refused.
 */
#include <alertscaler/http/secret_file.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"

static char directory[] = "/tmp/as-secret-XXXXXX", path[64];
static struct as_secret_file file;
static struct as_error error;

static void setup(void)
{
    cr_assert_not_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/token", directory);
    as_secret_file_init(&file, path);
}

static void teardown(void)
{
    as_secret_file_deinit(&file);
    unlink(path);
    rmdir(directory);
}

TestSuite(secret_file, .init = setup, .fini = teardown);

static int get(int64_t at_s, const char **text_out)
{
    return as_secret_file_get(&file, (as_mono_time){at_s * AS_US_PER_S}, 10 * AS_US_PER_S, text_out,
                              &error);
}

Test(secret_file, content_without_white_space_at_its_end)
{
    const char *text;
    write_file(path, "a secret \r\n\n");
    cr_assert_eq(get(0, &text), 0, "%s", error.text);
    cr_expect_str_eq(text, "a secret");
}

Test(secret_file, a_rotation_is_seen_after_the_interval)
{
    const char *text;
    write_file(path, "one");
    cr_assert_eq(get(0, &text), 0);
    write_file(path, "two");
    cr_assert_eq(get(9, &text), 0);
    cr_expect_str_eq(text, "one");
    cr_assert_eq(get(10, &text), 0);
    cr_expect_str_eq(text, "one", "it may be half written");
    cr_assert_eq(get(11, &text), 0);
    cr_expect_str_eq(text, "two");
}

Test(secret_file, half_of_a_secret_is_never_used)
{
    const char *text;
    write_file(path, "one");
    cr_assert_eq(get(0, &text), 0);
    for (int at = 10; at < 15; at++) {
        char half[16];
        snprintf(half, sizeof(half), "half%d", at);
        write_file(path, half);
        cr_assert_eq(get(at, &text), 0);
        cr_expect_str_eq(text, "one");
    }
    write_file(path, "two");
    cr_assert_eq(get(15, &text), 0);
    cr_assert_eq(get(16, &text), 0);
    cr_expect_str_eq(text, "two");
}

/* A file that was changed long ago needs no second look. */
Test(secret_file, an_old_file_is_read_at_the_first_look)
{
    const char *text;
    write_file(path, "one");
    cr_assert_eq(get(0, &text), 0);
    write_file(path, "two");
    usleep(1100 * 1000);
    cr_assert_eq(get(10, &text), 0);
    cr_expect_str_eq(text, "two");
}

Test(secret_file, a_rotation_is_seen_at_once_after_a_refusal)
{
    const char *text;
    write_file(path, "one");
    cr_assert_eq(get(0, &text), 0);
    write_file(path, "two");
    as_secret_file_expire(&file);
    cr_assert_eq(get(1, &text), 0);
    cr_expect_str_eq(text, "two");
}

/* Even where the file looks the same: written in place, with the same size and time. */
Test(secret_file, after_a_refusal_the_file_is_read_whatever_it_looks_like)
{
    const char *text;
    write_file(path, "one");
    cr_assert_eq(get(0, &text), 0);
    struct stat before;
    cr_assert_eq(stat(path, &before), 0);
    FILE *out = fopen(path, "r+");
    fputs("two", out);
    fclose(out);
    struct stat now;
    cr_assert_eq(stat(path, &now), 0);
    file.stamp.modified = now.st_mtim;
    file.stamp.changed = now.st_ctim;
    cr_assert_eq(get(10, &text), 0);
    cr_assert_str_eq(text, "one");
    as_secret_file_expire(&file);
    cr_assert_eq(get(11, &text), 0);
    cr_expect_str_eq(text, "two");
}

Test(secret_file, a_vanished_file_is_lived_without)
{
    const char *text;
    write_file(path, "one");
    cr_assert_eq(get(0, &text), 0);
    unlink(path);
    cr_assert_eq(get(20, &text), 0);
    cr_expect_str_eq(text, "one");
    write_file(path, "");
    cr_assert_eq(get(40, &text), 0);
    cr_expect_str_eq(text, "one");
    write_file(path, "two");
    cr_assert_eq(get(60, &text), 0);
    cr_assert_eq(get(61, &text), 0);
    cr_expect_str_eq(text, "two");
}

Test(secret_file, what_cannot_be_used_is_an_error_that_names_the_file)
{
    static const struct {
        const char *content;
        int code;
    } rows[] = {{"", -EINVAL}, {" \n", -EINVAL}, {"a\nb", -EINVAL}, {"a\x7f", -EINVAL}};
    const char *text;
    cr_expect_eq(get(0, &text), -ENOENT);
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        write_file(path, rows[i].content);
        as_secret_file_expire(&file);
        cr_expect_eq(get(0, &text), rows[i].code, "%s", rows[i].content);
        cr_expect_not_null(strstr(error.text, path));
    }
    char *large = calloc(1, AS_SECRET_FILE_MAX + 2);
    memset(large, 'x', AS_SECRET_FILE_MAX + 1);
    write_file(path, large);
    as_secret_file_expire(&file);
    cr_expect_eq(get(0, &text), -EFBIG);
    free(large);
}

/* A pipe has no end until a writer comes: waiting for it would stop everything. */
Test(secret_file, a_pipe_in_the_place_of_the_file_is_no_secret)
{
    const char *text;
    alarm(30);
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_assert_neq(get(0, &text), 0);
    cr_expect(strstr(error.text, "not a regular file"), "%s", error.text);
    unlink(path);
    write_file(path, "one");
    cr_assert_eq(get(10, &text), 0);
    unlink(path);
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_assert_eq(get(20, &text), 0);
    cr_expect_str_eq(text, "one", "the last content stays");
}
