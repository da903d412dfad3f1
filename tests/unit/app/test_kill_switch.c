/*
 * The kill switch: any kind of file sets it by its existence; its content is the reason.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <alertscaler/base/str.h>

#include "daemon/kill_switch.h"

static char folder[] = "/tmp/test-kill-switch-XXXXXX";
static char path[64];
static struct as_kill_switch *kill_switch;

static void begin(void)
{
    cr_assert_not_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/stop", folder);
    kill_switch = as_kill_switch_new();
    as_kill_switch_set_file(kill_switch, path);
}

static void end(void)
{
    as_kill_switch_free(kill_switch);
    (void)unlink(path);
    (void)rmdir(path);
    (void)rmdir(folder);
}

TestSuite(kill_switch, .init = begin, .fini = end);

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
}

static void expect_reason(const char *reason)
{
    const struct as_halt halt = as_kill_switch_look(kill_switch);
    if (!reason)
        cr_expect_null(halt.reason);
    else
        cr_expect_str_eq(halt.reason, reason);
}

Test(kill_switch, is_set_as_long_as_the_file_is_there)
{
    expect_reason(NULL);
    write_file("the big move\n");
    expect_reason("the big move");
    write_file("the very big move\n");
    expect_reason("the very big move");
    (void)unlink(path);
    expect_reason(NULL);
}

Test(kill_switch, needs_no_reason)
{
    static const char *const texts[] = {"", " \n", "\xff\xfe"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(texts); i++) {
        write_file(texts[i]);
        expect_reason("no reason is written there");
        (void)unlink(path);
        expect_reason(NULL);
    }
}

Test(kill_switch, a_reason_is_one_line_of_limited_length)
{
    char text[3000];
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    write_file("a\nb\tc\n");
    expect_reason("a b c");
    write_file(text);
    text[AS_ORDER_REASON_MAX - 1] = '\0';
    expect_reason(text);
}

Test(kill_switch, a_folder_and_a_pipe_stop_everything_too)
{
    cr_assert_eq(mkdir(path, 0700), 0);
    expect_reason("no reason is written there");
    (void)rmdir(path);
    cr_assert_eq(mkfifo(path, 0600), 0);
    expect_reason("no reason is written there"); /* and nobody waits for its other end */
}

Test(kill_switch, a_missing_folder_is_no_kill_switch)
{
    char deep[128];
    (void)snprintf(deep, sizeof(deep), "%s/not/there", folder);
    as_kill_switch_set_file(kill_switch, deep);
    expect_reason(NULL);
}

/* A link to itself cannot be looked at, whoever asks. */
Test(kill_switch, what_cannot_be_looked_at_counts_as_set_until_it_was_seen)
{
    cr_assert_eq(symlink("stop", path), 0);
    expect_reason("whether the file is there cannot be looked at: "
                  "Too many levels of symbolic links");
    (void)unlink(path);
    expect_reason(NULL);
    cr_assert_eq(symlink("stop", path), 0);
    expect_reason(NULL); /* as it was */
    (void)unlink(path);
    write_file("here");
    expect_reason("here");
    (void)unlink(path);
    cr_assert_eq(symlink("stop", path), 0);
    expect_reason("here");
    as_kill_switch_set_file(kill_switch, NULL);
    as_kill_switch_set_file(kill_switch, path); /* it may be another file system's now */
    cr_expect_not_null(as_kill_switch_look(kill_switch).reason);
}

Test(kill_switch, the_annotation_counts_where_there_is_no_file)
{
    as_kill_switch_set_annotation(kill_switch, "from afar");
    expect_reason("from afar");
    cr_expect_str_eq(as_kill_switch_look(kill_switch).who, "kill switch annotation");
    write_file("at hand");
    expect_reason("at hand");
    cr_expect_str_eq(as_kill_switch_look(kill_switch).who, "kill switch file");
    as_kill_switch_set_file(kill_switch, NULL);
    expect_reason("from afar");
    as_kill_switch_set_annotation(kill_switch, "");
    expect_reason("no reason is written there");
    as_kill_switch_set_annotation(kill_switch, NULL);
    expect_reason(NULL);
}
