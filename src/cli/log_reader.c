/*
 * Files are ordered by the number of their first record, not by name, so that `actions.jsonl*` may
 * come in any order. A line may have up to LINE_MAX_SIZE (a notification of 100,000 alerts has
 * about 40 MiB).
 */
#include "log_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/rules/config.h>

#include "cli.h"

#define LINE_MAX_SIZE (UINT64_C(1) << 30)
#define CHUNK         (UINT64_C(256) << 10)
#define ROTATED_MAX   10000

int log_reader_open(struct log_reader *reader, const char *path, struct as_error *error)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? dup(STDIN_FILENO) : -1;
    const int code =
        is_stdin ? (fd < 0 ? errno : 0) : -as_file_open(path, AS_FILE_INPUT, O_RDONLY, &fd, NULL);

    if (code) {
        if (code == ENOENT && strpbrk(path, "*?["))
            as_error_set(error, "%s: no file matches this pattern", path);
        else
            as_error_set_errno(error, code, "%s", path);
        return -code;
    }
    *reader =
        (struct log_reader){.path = as_xstrdup(path), .fd = fd, .buf = AS_BUF_INIT(LINE_MAX_SIZE)};
    return 0;
}

void log_reader_close(struct log_reader *reader)
{
    close(reader->fd);
    free(reader->path);
    as_buf_deinit(&reader->buf);
}

/* Reads more. Returns the number of bytes; 0 at the end. */
static ssize_t fill(struct log_reader *reader, struct as_error *error)
{
    struct as_buf *buf = &reader->buf;
    ssize_t n;

    if (reader->at) {
        buf->size -= reader->at;
        memmove(buf->data, buf->data + reader->at, buf->size);
        reader->searched -= reader->at;
        reader->at = 0;
    }
    char *room = as_buf_reserve(buf, CHUNK);
    if (!room) {
        as_error_set(error, "%s:%llu: the line is too long", reader->path,
                     (unsigned long long)reader->line + 1);
        return -EMSGSIZE;
    }
    do
        n = read(reader->fd, room, CHUNK);
    while (n < 0 && errno == EINTR);
    if (n < 0) {
        int code = errno;
        as_error_set_errno(error, code, "%s", reader->path);
        return -code;
    }
    buf->size += (size_t)n;
    return n;
}

int log_reader_next(struct log_reader *reader, const char **line_out, size_t *size_out,
                    struct as_error *error)
{
    for (;;) {
        const char *data = reader->buf.data;
        size_t rest = reader->buf.size - reader->searched;
        const char *newline = rest ? memchr(data + reader->searched, '\n', rest) : NULL;
        if (newline) {
            *line_out = data + reader->at;
            *size_out = (size_t)(newline - *line_out);
            reader->at = reader->searched = (size_t)(newline + 1 - data);
            reader->line++;
            return 1;
        }
        reader->searched = reader->buf.size;
        ssize_t n = fill(reader, error);
        if (n <= 0)
            return (int)n;
    }
}

size_t log_reader_get_rest(const struct log_reader *reader)
{
    return reader->buf.size - reader->at;
}

int log_reader_follow(struct log_reader *reader, struct as_error *error)
{
    struct stat now, open_one;
    struct log_reader next;

    if (stat(reader->path, &now) || fstat(reader->fd, &open_one) ||
        (now.st_ino == open_one.st_ino && now.st_dev == open_one.st_dev))
        return 0; /* also if the file is missing, during a rotation */
    int status = log_reader_open(&next, reader->path, error);
    if (status)
        return status == -ENOENT ? 0 : status;
    log_reader_close(reader);
    *reader = next;
    return 0;
}

/* --- which files --- */

struct numbered {
    char *path;
    int64_t seq; /* of the first record; 0: none */
};

/* Labels cannot be mistaken for it: their values are texts, with escaped quotes. */
int64_t log_line_find_seq(const char *line, size_t size)
{
    static const char key[] = "\"seq\":";
    const char *end = line + size, *at = line;
    int64_t seq;

    while ((at = memmem(at, (size_t)(end - at), key, strlen(key))) != NULL) {
        size_t length = 0;
        at += strlen(key);
        while (at + length < end && at[length] >= '0' && at[length] <= '9')
            length++;
        if (length)
            return as_number_parse_i64(at, length, &seq) ? 0 : seq;
    }
    return 0;
}

bool log_overlap_has(struct log_overlap *overlap, const char *line, size_t size)
{
    int64_t seq = log_line_find_seq(line, size);

    if (overlap->at_beginning && seq > 0 && seq <= overlap->last)
        return true;
    overlap->at_beginning = false;
    if (seq > 0)
        overlap->last = seq;
    return false;
}

static int64_t find_first_seq(const char *path)
{
    struct log_reader reader;
    const char *line;
    size_t size;
    int64_t seq = 0;

    if (strcmp(path, "-") == 0 || log_reader_open(&reader, path, NULL))
        return 0;
    if (log_reader_next(&reader, &line, &size, NULL) == 1)
        seq = log_line_find_seq(line, size);
    log_reader_close(&reader);
    return seq;
}

static int compare(const void *left, const void *right)
{
    const struct numbered *a = left, *b = right;

    return (a->seq > b->seq) - (a->seq < b->seq);
}

static void sort_files(struct log_files *files)
{
    struct numbered *list = as_xcalloc(files->count + 1, sizeof(*list));

    for (size_t i = 0; i < files->count; i++)
        list[i] = (struct numbered){files->paths[i], find_first_seq(files->paths[i])};
    qsort(list, files->count, sizeof(*list), compare);
    for (size_t i = 0; i < files->count; i++)
        files->paths[i] = list[i].path;
    free(list);
}

static void add(struct log_files *files, size_t *capacity, char *path)
{
    files->paths = as_xgrow(files->paths, files->count, capacity, sizeof(*files->paths));
    files->paths[files->count++] = path;
}

/* The configured file, and its rotated files. */
static int find_configured(const char *config_file, struct log_files *files, struct as_error *error)
{
    AS_CLEANUP(as_config_free_p) struct as_config *config = NULL;
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    const char *const no_rules[] = {NULL};
    size_t capacity = 0;

    int status = as_config_load_with_rules(config_file, no_rules, 0, &config, &diagnostics);
    as_diagnostics_deinit(&diagnostics);
    if (status < 0)
        as_error_set_errno(error, status, "%s", config_file);
    else if (status)
        as_error_set(error, "%s has errors: see `alertscaler check %s`, or name the log file",
                     config_file, config_file);
    if (status)
        return status < 0 ? status : -EINVAL;
    const char *path = config->settings.action_log.path;
    for (unsigned i = 1; i < ROTATED_MAX; i++) {
        char *rotated = as_xasprintf("%s.%u", path, i);
        if (access(rotated, F_OK)) {
            free(rotated);
            break;
        }
        add(files, &capacity, rotated);
    }
    add(files, &capacity, as_xstrdup(path));
    return 0;
}

int log_files_find(const struct as_args *args, struct log_files *files_out, struct as_error *error)
{
    struct log_files files = {0};
    size_t capacity = 0;

    for (size_t i = 0; i < args->operand_count; i++)
        add(&files, &capacity, as_xstrdup(args->operands[i]));
    if (!files.count) {
        int status = find_configured(config_option_tell(args), &files, error);
        if (status) {
            log_files_deinit(&files);
            return status;
        }
    }
    sort_files(&files);
    *files_out = files;
    return 0;
}

void log_files_deinit(struct log_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->paths[i]);
    free(files->paths);
}

/* Copies all of standard input to `copy`. */
static int copy_input(FILE *copy)
{
    AS_CLEANUP(as_free_p) char *chunk = as_xmalloc(CHUNK);

    for (;;) {
        const ssize_t n = read(STDIN_FILENO, chunk, CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || fwrite(chunk, 1, (size_t)n, copy) != (size_t)n)
            return -errno;
        if (n == 0)
            return fflush(copy) == 0 ? 0 : -errno;
    }
}

/* Copies it to an unnamed temporary file, which ends with the process. 0 and its path. */
static int keep_input(char **path_out, struct as_error *error)
{
    FILE *copy = tmpfile();
    int status = copy ? copy_input(copy) : -errno;
    const int fd = status ? -1 : dup(fileno(copy)); /* stays open until the process ends */

    if (!status && fd < 0)
        status = -errno;
    if (copy)
        fclose(copy);
    if (status)
        as_error_set_errno(error, status, "a copy of standard input");
    else
        *path_out = as_xasprintf("/dev/fd/%d", fd);
    return status;
}

int log_files_keep(struct log_files *files, struct as_error *error)
{
    for (size_t i = 0; i < files->count; i++) {
        char *path = NULL;
        if (strcmp(files->paths[i], "-") != 0)
            continue;
        const int status = keep_input(&path, error);
        if (status)
            return status;
        free(files->paths[i]);
        files->paths[i] = path;
    }
    return 0;
}
