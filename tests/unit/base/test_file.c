/*
 * file.h: whatever stands in the place of a file, its reader neither waits nor writes elsewhere.
 */
#include <alertscaler/base/file.h>

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/str.h>

static char folder[] = "/tmp/test-file-XXXXXX";
static char path[64], other[64];

static void begin(void)
{
    cr_assert_not_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/file", folder);
    (void)snprintf(other, sizeof(other), "%s/other", folder);
    alarm(30); /* what waits for the other end of a pipe ends here */
}

static void end(void)
{
    AS_CLEANUP(as_free_p) char *command = as_xasprintf("%s/below", folder);
    (void)rmdir(command);
    (void)unlink(path);
    (void)rmdir(path);
    (void)unlink(other);
    cr_expect_eq(rmdir(folder), 0, "nothing is left over");
}

TestSuite(file, .init = begin, .fini = end);

static void put(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    cr_assert_not_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
}

static void expect_text(const char *name, const char *text)
{
    char *data = NULL;
    size_t size = 0;
    cr_assert_eq(as_file_read(name, 1000, &data, &size), 0);
    cr_expect_str_eq(data, text);
    cr_expect_eq(size, strlen(text));
    free(data);
}

static void expect_refusal(int status)
{
    char *data = NULL;
    size_t size = 0;
    cr_expect_eq(as_file_read(path, 1000, &data, &size), status);
    cr_expect_null(data);
}

static void make_socket(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
}

Test(file, is_read_whole)
{
    static const size_t sizes[] = {0, 1, 100, 16 * 1024, 16 * 1024 + 1, 100000};
    for (size_t i = 0; i < AS_ARRAY_SIZE(sizes); i++) {
        AS_CLEANUP(as_free_p) char *text = as_xmalloc(sizes[i] + 1);
        for (size_t k = 0; k < sizes[i]; k++)
            text[k] = (char)('a' + k % 26);
        text[sizes[i]] = '\0';
        put(path, text);
        AS_CLEANUP(as_free_p) char *data = NULL;
        size_t size = 4711;
        cr_expect_eq(as_file_read(path, sizes[i], &data, &size), 0, "size %zu", sizes[i]);
        cr_expect_eq(size, sizes[i]);
        cr_expect_str_eq(data, text);
        char *untouched = path;
        if (sizes[i] > 0)
            cr_expect_eq(as_file_read(path, sizes[i] - 1, &untouched, &size), -EFBIG);
        cr_expect_eq(untouched, path);
    }
}

Test(file, may_be_behind_links)
{
    put(other, "a secret");
    cr_assert_eq(symlink("other", path), 0);
    expect_text(path, "a secret");
    unlink(path);
    cr_assert_eq(symlink("file", path), 0);
    expect_refusal(-ELOOP);
    unlink(path);
    cr_assert_eq(symlink("nowhere", path), 0);
    expect_refusal(-ENOENT);
}

Test(file, that_is_none_is_refused_at_once)
{
    cr_assert_eq(mkfifo(path, 0600), 0);
    expect_refusal(-EMEDIUMTYPE);
    cr_assert_eq(symlink("file", other), 0);
    char *data = NULL;
    size_t size;
    cr_expect_eq(as_file_read(other, 1000, &data, &size), -EMEDIUMTYPE, "nor through a link");
    unlink(path);
    make_socket();
    expect_refusal(-EMEDIUMTYPE);
    unlink(path);
    cr_assert_eq(mkdir(path, 0700), 0);
    expect_refusal(-EISDIR);
    cr_expect_eq(as_file_read("/dev/zero", 1000, &data, &size), -EMEDIUMTYPE);
    cr_expect_eq(as_file_read("no/such/file", 1000, &data, &size), -ENOENT);
}

/* procfs says that its files are empty. */
Test(file, without_a_size_is_read_whole)
{
    char *data = NULL;
    size_t size = 0;
    cr_assert_eq(as_file_read("/proc/self/stat", 4096, &data, &size), 0);
    cr_expect_gt(size, 10);
    free(data);
}

static void *grow(void *context)
{
    const int fd = *(int *)context;
    static char chunk[4096];
    while (write(fd, chunk, sizeof(chunk)) > 0 && lseek(fd, 0, SEEK_CUR) < 64 * 1024 * 1024)
        continue;
    return NULL;
}

/* The reader ends at the limit, or at one of the ends that the file had. */
Test(file, that_grows_while_it_is_read_ends)
{
    pthread_t thread;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    cr_assert_eq(pthread_create(&thread, NULL, grow, &fd), 0);
    for (int i = 0; i < 20; i++) {
        AS_CLEANUP(as_free_p) char *data = NULL;
        size_t size = 0;
        const int status = as_file_read(path, 1024 * 1024, &data, &size);
        cr_assert(status == -EFBIG || (status == 0 && size <= 1024 * 1024), "%d", status);
    }
    (void)pthread_join(thread, NULL);
    close(fd);
}

Test(file, of_our_own_is_no_link)
{
    struct stat info;
    int fd;
    put(other, "a secret");
    cr_assert_eq(symlink("other", path), 0);
    cr_expect_eq(as_file_open(path, AS_FILE_OWN, O_RDONLY, &fd, NULL), -ELOOP);
    cr_expect_eq(as_file_open(path, AS_FILE_OWN, O_RDWR | O_TRUNC, &fd, NULL), -ELOOP);
    cr_expect_eq(as_file_create(AT_FDCWD, path, O_WRONLY, 0600, &fd), -EEXIST);
    unlink(path);
    cr_assert_eq(symlink("nowhere", path), 0);
    cr_expect_eq(as_file_create(AT_FDCWD, path, O_WRONLY, 0600, &fd), -EEXIST,
                 "nor a dangling one");
    unlink(path);
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_expect_eq(as_file_open(path, AS_FILE_OWN, O_RDONLY, &fd, NULL), -EMEDIUMTYPE);
    cr_expect_eq(as_file_open(path, AS_FILE_OWN, O_WRONLY, &fd, NULL), -EMEDIUMTYPE);
    cr_expect_eq(as_file_open(path, AS_FILE_OWN, O_RDWR, &fd, NULL), -EMEDIUMTYPE);
    cr_assert_eq(as_file_open(other, AS_FILE_OWN, O_RDONLY, &fd, &info), 0);
    cr_expect_eq(info.st_size, 8);
    cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    close(fd);
    expect_text(other, "a secret");
}

Test(file, in_a_folder_behind_a_link_is_our_own)
{
    AS_CLEANUP(as_free_p) char *below = as_xasprintf("%s/below", folder);
    AS_CLEANUP(as_free_p) char *inside = as_xasprintf("%s/state", path);
    int fd;
    cr_assert_eq(mkdir(below, 0700), 0);
    cr_assert_eq(symlink("below", path), 0);
    cr_assert_eq(as_file_create(AT_FDCWD, inside, O_RDWR, 0600, &fd), 0);
    close(fd);
    cr_assert_eq(as_file_open(inside, AS_FILE_OWN, O_RDWR, &fd, NULL), 0);
    close(fd);
    unlink(inside);
}

struct writer {
    const char *path, *text;
};

static void *write_pipe(void *context)
{
    const struct writer *writer = context;
    put(writer->path, writer->text);
    return NULL;
}

/* `alertscaler test <(...)` */
Test(file, of_a_command_may_be_a_pipe)
{
    pthread_t thread;
    struct writer writer = {path, "through a pipe"};
    char *data = NULL;
    size_t size = 0;
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_assert_eq(pthread_create(&thread, NULL, write_pipe, &writer), 0);
    cr_assert_eq(as_file_read_input(path, 1000, &data, &size), 0);
    (void)pthread_join(thread, NULL);
    cr_expect_str_eq(data, "through a pipe");
    free(data);
    cr_expect_eq(as_file_read_input("/dev/zero", 1000, &data, &size), -EFBIG);
    cr_expect_eq(as_file_read_input(folder, 1000, &data, &size), -EISDIR);
}

/* Whatever has the name is replaced; nothing is written through a link or into a pipe. */
Test(file, takes_the_place_of_a_link)
{
    struct stat info;
    put(other, "a secret");
    cr_assert_eq(as_file_replace(path, 0640, "one", 3), 0);
    expect_text(path, "one");
    unlink(path);
    cr_assert_eq(symlink("other", path), 0);
    cr_assert_eq(as_file_replace(path, 0640, "two", 3), 0);
    expect_text(path, "two");
    cr_assert_eq(lstat(path, &info), 0);
    cr_expect(S_ISREG(info.st_mode));
    unlink(path);
    cr_assert_eq(link(other, path), 0);
    cr_assert_eq(as_file_replace(path, 0640, "three", 5), 0);
    expect_text(path, "three");
    expect_text(other, "a secret");
    unlink(path);
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_assert_eq(as_file_replace(path, 0640, "four", 4), 0);
    expect_text(path, "four");
    unlink(path);
    cr_assert_eq(mkdir(path, 0700), 0);
    cr_expect_eq(as_file_replace(path, 0640, "five", 4), -EISDIR);
}

Test(file, stamps_tell_a_link_from_its_target)
{
    struct as_file_stamp link, target, own;
    put(other, "a secret");
    cr_assert_eq(symlink("other", path), 0);
    cr_assert_eq(as_file_stamp_take(other, &target), 0);
    cr_assert_eq(as_file_stamp_take(path, &link), 0);
    cr_assert_eq(as_file_stamp_take_own(path, &own), 0);
    cr_expect(as_file_stamp_is_same(&link, &target));
    cr_expect(!as_file_stamp_is_same(&own, &target));
    unlink(other);
    cr_expect_eq(as_file_stamp_take(path, &link), -ENOENT);
    cr_expect_eq(as_file_stamp_take_own(path, &own), 0);
}
