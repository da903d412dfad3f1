/*
 * The kill switch: anything with the file's name sets it by its existence; the content of a regular
 * file with this one name is the reason.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <alertscaler/base/str.h>

#include "daemon/daemon_private.h"

static char folder[] = "/tmp/test-kill-switch-XXXXXX";
static char path[96];
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
    const struct as_halt halt = as_kill_switch_poll(kill_switch);
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
    text[AS_OPERATOR_COMMAND_REASON_MAX - 1] = '\0';
    expect_reason(text);
}

Test(kill_switch, a_folder_a_pipe_and_a_socket_stop_everything_too)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    alarm(30); /* the other end of the pipe never comes */
    cr_assert_eq(mkdir(path, 0700), 0);
    expect_reason("the file's content is not shown: Is a directory");
    (void)rmdir(path);
    cr_assert_eq(mkfifo(path, 0600), 0);
    expect_reason("the file's content is not shown: not a regular file");
    (void)unlink(path);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    expect_reason("the file's content is not shown: not a regular file");
    (void)close(fd);
}

/* Every reader sees the reason: it must not be the content of another file, for example a token. */
Test(kill_switch, a_link_stops_everything_and_shows_nothing)
{
    char token[64];
    (void)snprintf(token, sizeof(token), "%s/token", folder);
    write_file("the secret of the administrator\n");
    cr_assert_eq(rename(path, token), 0);
    cr_assert_eq(symlink("token", path), 0);
    expect_reason("the file's content is not shown: the file is a symbolic link");
    (void)unlink(path);
    expect_reason(NULL);
    cr_assert_eq(link(token, path), 0);
    expect_reason("the file's content is not shown: the file has more than one hard link");
    (void)unlink(token);
    expect_reason("the secret of the administrator"); /* it has only this name now */
    (void)unlink(path);
    cr_assert_eq(symlink("nowhere", path), 0);
    expect_reason("the file's content is not shown: the file is a symbolic link");
}

/* A regular file at one check and a link at the next one. */
Test(kill_switch, a_link_in_the_place_of_the_file_is_found)
{
    write_file("maintenance");
    expect_reason("maintenance");
    (void)unlink(path);
    cr_assert_eq(symlink("/etc/hostname", path), 0);
    expect_reason("the file's content is not shown: the file is a symbolic link");
}

Test(kill_switch, a_file_that_cannot_be_read_stops_everything)
{
    write_file("a reason");
    cr_assert_eq(truncate(path, 100000), 0);
    expect_reason("the file's content is not shown: File too large");
    cr_assert_eq(chmod(path, 0), 0);
    cr_assert_eq(chmod(folder, 0711), 0);
    const bool is_root = geteuid() == 0;
    if (is_root)
        cr_assert_eq(seteuid(65534), 0);
    expect_reason("the file's content is not shown: Permission denied");
    if (is_root)
        cr_assert_eq(seteuid(0), 0);
}

Test(kill_switch, a_missing_folder_is_no_kill_switch)
{
    char deep[128];
    (void)snprintf(deep, sizeof(deep), "%s/not/there", folder);
    as_kill_switch_set_file(kill_switch, deep);
    expect_reason(NULL);
}

/* A folder that is a link to itself cannot be looked into, whoever asks. */
Test(kill_switch, what_cannot_be_looked_at_counts_as_set_until_it_was_seen)
{
    char below[80];
    (void)snprintf(below, sizeof(below), "%s/below", folder);
    (void)snprintf(path, sizeof(path), "%.64s/stop", below);
    as_kill_switch_set_file(kill_switch, path);
    cr_assert_eq(symlink("below", below), 0);
    expect_reason("whether the file is there cannot be looked at: "
                  "Too many levels of symbolic links");
    (void)unlink(below);
    expect_reason(NULL);
    cr_assert_eq(symlink("below", below), 0);
    expect_reason(NULL); /* as it was */
    (void)unlink(below);
    cr_assert_eq(mkdir(below, 0700), 0);
    write_file("here");
    expect_reason("here");
    (void)unlink(path);
    (void)rmdir(below);
    cr_assert_eq(symlink("below", below), 0);
    expect_reason("here");
    as_kill_switch_set_file(kill_switch, NULL);
    as_kill_switch_set_file(kill_switch, path); /* it may be another file system's now */
    cr_expect_not_null(as_kill_switch_poll(kill_switch).reason);
    (void)unlink(below);
}

Test(kill_switch, the_annotation_counts_where_there_is_no_file)
{
    as_kill_switch_set_annotation(kill_switch, "from afar");
    expect_reason("from afar");
    cr_expect_str_eq(as_kill_switch_poll(kill_switch).who, "kill switch annotation");
    write_file("at hand");
    expect_reason("at hand");
    cr_expect_str_eq(as_kill_switch_poll(kill_switch).who, "kill switch file");
    as_kill_switch_set_file(kill_switch, NULL);
    expect_reason("from afar");
    as_kill_switch_set_annotation(kill_switch, "");
    expect_reason("no reason is written there");
    as_kill_switch_set_annotation(kill_switch, NULL);
    expect_reason(NULL);
}
