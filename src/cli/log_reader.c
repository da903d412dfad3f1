/*
 * Action log files, line by line or record by record, oldest record first; a reader can follow the
 * growth of the files. The log of a running daemon, page after page from its API, is read as if it
 * were one file.
 *
 * Files are ordered by the number of their first record, not by name, so that `actions.jsonl*` may
 * come in any order. A line may have up to LINE_MAX_SIZE (a notification of 100,000 alerts has
 * about 40 MiB).
 */
#include "log_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <bsd/sys/queue.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/random.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/record.h>
#include <alertscaler/rules/config.h>
#include <alertscaler/tools/record_text.h>

#include "cli.h"
#include "client_file.h"
#include "http_call.h"

/* --- the log of a daemon --- */

/*
 * Pages of /api/v1/log. The cursor is the number of the last record that the daemon has read, so
 * nothing is lost or repeated over pages, rotations and restarts of the daemon.
 */

#define PATH_MAX_SIZE ((size_t)64 << 10)
#define TRIES         10 /* while the daemon has too many requests */
#define TRY_AGAIN_US  AS_US_PER_S

struct log_remote {
    const struct as_args *args;
    struct log_selection selection;
    char id[AS_ULID_SIZE]; /* of this follower */
    int64_t after;
    bool has_answered, is_at_end, is_away;
};

static struct log_remote *log_remote_new(const struct as_args *args,
                                         const struct log_selection *selection)
{
    struct log_remote *remote = as_xcalloc(1, sizeof(*remote));
    remote->args = args;
    remote->selection = *selection;
    if (selection->follows) {
        struct as_random random;
        uint64_t seed = 0;
        (void)!getentropy(&seed, sizeof(seed));
        as_random_init(&random, seed);
        as_ulid_print(moment_get_now(), &random, remote->id);
    }
    return remote;
}

static struct log_remote *log_remote_free(struct log_remote *remote)
{
    free(remote);
    return NULL;
}

/* From now on, records that have been added since the last answer come too. */
static void log_remote_follow(struct log_remote *remote)
{
    remote->is_at_end = false;
}

static void remote_append_text(struct as_buf *path, const char *name, const char *text)
{
    if (!text)
        return;
    as_buf_printf(path, "%c%s=", strchr(path->data, '?') ? '&' : '?', name);
    as_encode_percent(path, text, strlen(text), "");
}

static void remote_append_time(struct as_buf *path, const char *name, as_maybe_time time)
{
    char text[AS_RFC3339_SIZE];
    if (!time.set)
        return;
    as_wall_time_print(time.at, text);
    remote_append_text(path, name, text);
}

static int remote_make_path(const struct log_remote *remote, struct as_buf *path,
                            struct as_error *error)
{
    const struct log_selection *selection = &remote->selection;
    as_buf_printf(path, "/api/v1/log?after=%lld", (long long)remote->after);
    remote_append_text(path, "kind", selection->kinds);
    remote_append_text(path, "target", selection->target);
    remote_append_time(path, "since", selection->since);
    remote_append_time(path, "until", selection->until);
    remote_append_text(path, "follow", selection->follows ? remote->id : NULL);
    if (as_buf_check(path) == 0)
        return 0;
    as_error_set(error, "the options are too long");
    return -EMSGSIZE;
}

/* The value of the answer's header, for free(). NULL: the header is absent. */
static char *remote_copy_header(const struct http_answer *answer, const char *name)
{
    const char *line = answer->headers.data;
    const size_t name_size = strlen(name);
    while (line && *line) {
        const size_t size = strcspn(line, "\r\n");
        if (size > name_size && line[name_size] == ':' && strncasecmp(line, name, name_size) == 0) {
            const char *value = line + name_size + 1 + strspn(line + name_size + 1, " ");
            return as_xstrndup(value, (size_t)(line + size - value));
        }
        line += size;
        line += strspn(line, "\r\n");
    }
    return NULL;
}

static int remote_find_number(const struct http_answer *answer, const char *name,
                              int64_t *number_out)
{
    AS_CLEANUP(as_free_p) char *text = remote_copy_header(answer, name);
    return text ? as_number_parse_i64(text, strlen(text), number_out) : -ENOENT;
}

/* Says what the answer lacks. */
static void remote_report(const struct log_remote *remote, const struct http_answer *answer)
{
    AS_CLEANUP(as_free_p) char *leader = remote_copy_header(answer, "Alertscaler-Log-Leader");
    if (leader && !remote->has_answered)
        (void)as_cli_fail(remote->args,
                          "this replica does not lead (%s leads): these are the records in its own "
                          "files",
                          leader);
    int64_t missing = 0, skipped = 0;
    AS_CLEANUP(as_free_p) char *absences = remote_copy_header(answer, "Alertscaler-Log-Absences");
    if (remote_find_number(answer, "Alertscaler-Log-Missing", &missing) == 0 && missing > 0)
        (void)as_cli_fail(remote->args, "%lld records are not in the files of this daemon: %s",
                          (long long)missing,
                          absences ? absences
                                   : "a rotation has deleted them, or another replica has them");
    else if (absences)
        (void)as_cli_fail(remote->args, "records are not in the files of this daemon: %s",
                          absences);
    if (remote_find_number(answer, "Alertscaler-Log-Skipped", &skipped) == 0 && skipped > 0)
        (void)as_cli_fail(remote->args,
                          "%lld lines of the log were left out: they are too long for the API, or "
                          "are no records",
                          (long long)skipped);
}

static int remote_read_answer(struct log_remote *remote, const struct http_answer *answer,
                              struct as_buf *lines_io, struct as_error *error)
{
    int64_t next;
    AS_CLEANUP(as_free_p) char *more = remote_copy_header(answer, "Alertscaler-Log-More");
    const bool has_end = answer->body.size == 0 || answer->body.data[answer->body.size - 1] == '\n';
    if (!more || !has_end || remote_find_number(answer, "Alertscaler-Log-Next", &next) != 0 ||
        next < remote->after) {
        as_error_set(error, "the answer is not alertscaler's");
        return -EBADMSG;
    }
    if (answer->body.size > 0)
        as_buf_append(lines_io, answer->body.data, answer->body.size);
    if (as_buf_check(lines_io) != 0) {
        as_error_set(error, "the answer is too long");
        return -EMSGSIZE;
    }
    remote_report(remote, answer);
    remote->after = next;
    remote->is_at_end = strcmp(more, "no") == 0;
    remote->has_answered = true;
    return 0;
}

/* One request. 0; -EAGAIN: the daemon has no time now; or another negative errno. Each failure has
 * an error. */
static int remote_ask(struct log_remote *remote, struct as_buf *lines_io, struct as_error *error)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(PATH_MAX_SIZE);
    AS_CLEANUP(http_answer_deinit) struct http_answer answer = {0};
    int status = remote_make_path(remote, &path, error);
    if (status == 0)
        status = http_call_run(remote->args, path.data, NULL, &answer, error);
    if (status != 0)
        return status;
    if (answer.status == 200)
        return remote_read_answer(remote, &answer, lines_io, error);
    AS_CLEANUP(as_free_p) char *text = http_answer_explain(&answer);
    as_error_set(error, "%s", text);
    return answer.status == 503 ? -EAGAIN : -EACCES;
}

/* Whether a follower goes on after this failure. */
static bool remote_is_away(struct log_remote *remote, int status, const struct as_error *error)
{
    if (!remote->selection.follows || !remote->has_answered || status == -EACCES ||
        status == -EBADMSG)
        return false;
    if (!remote->is_away)
        (void)as_cli_fail(remote->args, "%s; trying again", error->text);
    remote->is_away = true;
    return true;
}

static void remote_wait(void)
{
    (void)nanosleep(&(struct timespec){.tv_sec = TRY_AGAIN_US / AS_US_PER_S}, NULL);
}

/* Appends the next lines. Returns the number of bytes; 0: there are none now; or a negative errno
 * with an error. */
static ssize_t log_remote_fill(struct log_remote *remote, struct as_buf *lines_io,
                               struct as_error *error)
{
    const size_t before = lines_io->size;
    unsigned tries = 0;
    while (!remote->is_at_end && lines_io->size == before) {
        const int status = remote_ask(remote, lines_io, error);
        if (status == 0) {
            remote->is_away = false;
            tries = 0;
        } else if (remote_is_away(remote, status, error)) {
            remote->is_at_end = true; /* for now */
        } else if (status == -EAGAIN && remote->has_answered && ++tries < TRIES) {
            remote_wait();
        } else {
            return status;
        }
    }
    return (ssize_t)(lines_io->size - before);
}

/* --- lines --- */

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
    if (reader->fd >= 0)
        close(reader->fd);
    log_remote_free(reader->remote);
    free(reader->path);
    as_buf_deinit(&reader->buf);
}

/* Reads more. Returns the number of bytes; 0 at the end. */
static ssize_t log_reader_fill(struct log_reader *reader, struct as_error *error)
{
    struct as_buf *buf = &reader->buf;
    ssize_t n;

    if (reader->at) {
        buf->size -= reader->at;
        memmove(buf->data, buf->data + reader->at, buf->size);
        reader->searched -= reader->at;
        reader->at = 0;
    }
    if (reader->remote) {
        n = log_remote_fill(reader->remote, buf, error);
        if (n < 0)
            as_error_wrap(error, "%s", reader->path);
        return n;
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
        ssize_t n = log_reader_fill(reader, error);
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

    if (reader->remote) {
        log_remote_follow(reader->remote);
        return 0;
    }
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

/* The record number in a line, 0 if absent. Does not check the rest of the line. Labels cannot be
 * mistaken for the number: their values are texts, with escaped quotes. */
static int64_t log_line_find_seq(const char *line, size_t size)
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

static int log_reader_compare(const void *left, const void *right)
{
    const struct numbered *a = left, *b = right;

    return (a->seq > b->seq) - (a->seq < b->seq);
}

static void sort_files(struct log_files *files)
{
    struct numbered *list = as_xcalloc(files->count + 1, sizeof(*list));

    for (size_t i = 0; i < files->count; i++)
        list[i] = (struct numbered){files->paths[i], find_first_seq(files->paths[i])};
    qsort(list, files->count, sizeof(*list), log_reader_compare);
    for (size_t i = 0; i < files->count; i++)
        files->paths[i] = list[i].path;
    free(list);
}

static void log_reader_add(struct log_files *files, size_t *capacity, char *path)
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
        log_reader_add(files, &capacity, rotated);
    }
    log_reader_add(files, &capacity, as_xstrdup(path));
    return 0;
}

int log_files_find(const struct as_args *args, struct log_files *files_out, struct as_error *error)
{
    struct log_files files = {0};
    size_t capacity = 0;

    for (size_t i = 0; i < args->operand_count; i++)
        log_reader_add(&files, &capacity, as_xstrdup(args->operands[i]));
    if (!files.count) {
        int status = find_configured(config_option_report(args), &files, error);
        if (status) {
            log_files_deinit(&files);
            return status;
        }
    }
    sort_files(&files);
    *files_out = files;
    return 0;
}

/* Whether the environment or the client file names a daemon. */
static int log_remote_is_named(bool *is_named_out, struct as_error *error)
{
    const struct client_context *context = NULL;
    struct client_file file;
    if (!as_str_is_empty(getenv("ALERTSCALER_URL"))) {
        *is_named_out = true;
        return 0;
    }
    int status = client_file_load(&file, error);
    if (status != 0)
        return status;
    status = client_file_find(&file, NULL, &context, error);
    if (status == 0)
        *is_named_out = context != NULL;
    client_file_deinit(&file);
    return status;
}

static int log_remote_is_wanted(const struct as_args *args, bool *is_wanted_out,
                                struct as_error *error)
{
    const char *option = as_args_has(args, "url")       ? "--url"
                         : as_args_has(args, "context") ? "--context"
                                                        : NULL;
    const char *other = args->operand_count > 0            ? args->operands[0]
                        : as_args_has(args, "config.file") ? "--config.file"
                                                           : NULL;
    if (option && other) {
        as_error_set(error,
                     "either %s, which reads the log of a running daemon, or %s, which reads files",
                     option, other);
        return -EINVAL;
    }
    *is_wanted_out = option != NULL;
    return option || other ? 0 : log_remote_is_named(is_wanted_out, error);
}

int log_files_find_any(const struct as_args *args, struct log_files *files_out,
                       struct as_error *error)
{
    bool is_wanted = false;
    const int status = log_remote_is_wanted(args, &is_wanted, error);

    if (status || !is_wanted)
        return status ? status : log_files_find(args, files_out, error);
    *files_out =
        (struct log_files){.paths = as_xcalloc(1, sizeof(char *)), .count = 1, .daemon = args};
    files_out->paths[0] = as_xstrdup("the daemon");
    return 0;
}

int log_files_open(const struct log_files *files, size_t at, const struct log_selection *selection,
                   struct log_reader *reader, struct as_error *error)
{
    static const struct log_selection all = {.target = NULL};

    if (!files->daemon)
        return log_reader_open(reader, files->paths[at], error);
    *reader =
        (struct log_reader){.path = as_xstrdup(files->paths[at]),
                            .fd = -1,
                            .remote = log_remote_new(files->daemon, selection ? selection : &all),
                            .buf = AS_BUF_INIT(LINE_MAX_SIZE)};
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

/* --- the full records of `repeat` records --- */

/*
 * Stores lines as they are; after a lookup, also parsed. Repeats refer to few records, but any
 * recent record may be one of them.
 */

#define PARSED_MAX (UINT64_C(8) << 20) /* bytes of lines */

struct kept {
    UT_hash_handle hh; /* by id */
    STAILQ_ENTRY(kept) in_order;
    char *id, *line;
    size_t size;
    uint64_t number;
    json_t *record; /* NULL: not parsed */
};
STAILQ_HEAD(kept_list, kept);

struct log_repeats {
    struct kept *by_id;
    struct kept_list order; /* oldest first */
    uint64_t records, bytes, parsed_bytes;
};

struct log_repeats *log_repeats_new(void)
{
    struct log_repeats *repeats = as_xcalloc(1, sizeof(*repeats));
    STAILQ_INIT(&repeats->order);
    return repeats;
}

static void forget_record(struct log_repeats *repeats, struct kept *kept)
{
    if (kept->record)
        repeats->parsed_bytes -= kept->size;
    json_decref(kept->record);
    kept->record = NULL;
}

static void log_reader_forget_oldest(struct log_repeats *repeats)
{
    struct kept *kept = STAILQ_FIRST(&repeats->order);
    STAILQ_REMOVE_HEAD(&repeats->order, in_order);
    HASH_DEL(repeats->by_id, kept);
    repeats->bytes -= kept->size;
    forget_record(repeats, kept);
    free(kept->id);
    free(kept->line);
    free(kept);
}

struct log_repeats *log_repeats_free(struct log_repeats *repeats)
{
    while (repeats && !STAILQ_EMPTY(&repeats->order))
        log_reader_forget_oldest(repeats);
    free(repeats);
    return NULL;
}

static struct kept *log_reader_find(const struct log_repeats *repeats, const char *id)
{
    struct kept *kept;
    HASH_FIND_STR(repeats->by_id, id, kept);
    return kept;
}

static void log_reader_keep(struct log_repeats *repeats, const char *id, const char *line,
                            size_t size)
{
    struct kept *kept = as_xcalloc(1, sizeof(*kept));
    kept->id = as_xstrdup(id);
    kept->line = memcpy(as_xmalloc(size), line, size);
    kept->size = size;
    kept->number = repeats->records;
    repeats->bytes += size;
    HASH_ADD_KEYPTR(hh, repeats->by_id, kept->id, strlen(kept->id), kept);
    STAILQ_INSERT_TAIL(&repeats->order, kept, in_order);
}

void log_repeats_note(struct log_repeats *repeats, const json_t *record, const char *line,
                      size_t size)
{
    const char *id = as_record_get_text(record, "id");
    const struct kept *oldest;
    repeats->records++;
    if (strcmp(as_record_get_text(record, "kind"), "notification") == 0 && *id &&
        !log_reader_find(repeats, id))
        log_reader_keep(repeats, id, line, size);
    while ((oldest = STAILQ_FIRST(&repeats->order)) &&
           (repeats->records - oldest->number > AS_REPEAT_REACH_RECORDS ||
            repeats->bytes > AS_REPEAT_REACH_BYTES))
        log_reader_forget_oldest(repeats);
}

bool log_repeats_is_repeat(const json_t *record)
{
    return strcmp(as_record_get_text(record, "kind"), "repeat") == 0;
}

static const json_t *log_reader_parse(struct log_repeats *repeats, struct kept *kept)
{
    struct kept *other;
    if (kept->record)
        return kept->record;
    if (repeats->parsed_bytes > PARSED_MAX) {
        STAILQ_FOREACH (other, &repeats->order, in_order)
            forget_record(repeats, other);
    }
    kept->record = json_loadb(kept->line, kept->size, JSON_REJECT_DUPLICATES, NULL);
    repeats->parsed_bytes += kept->record ? kept->size : 0;
    return kept->record;
}

json_t *log_repeats_resolve(struct log_repeats *repeats, const json_t *repeat)
{
    struct kept *kept = log_reader_find(repeats, as_record_get_text(repeat, "same_as"));
    const json_t *details = kept ? log_reader_parse(repeats, kept) : NULL;
    const char *key;
    json_t *value;
    if (!details)
        return NULL;
    json_t *whole = json_copy((json_t *)(uintptr_t)details);
    json_object_foreach((json_t *)(uintptr_t)repeat, key, value)
    {
        if (json_object_get(whole, key) && strcmp(key, "kind") != 0)
            json_object_set(whole, key, value);
    }
    return whole;
}

/* --- all records, one at a time --- */

/*
 * Holds one line at a time. A record in two files is passed on once. A daemon may be writing the
 * last line: waits a moment for its end.
 */

#define WAIT_MS 500

struct walk {
    const struct log_visitor *visitor;
    struct log_overlap overlap;
    struct log_repeats *repeats; /* NULL: repeats are not resolved */
};

static int log_reader_take_record(const struct walk *walk, const struct log_line *line,
                                  json_t *record, struct as_error *error)
{
    const struct log_visitor *visitor = walk->visitor;
    if (walk->repeats)
        log_repeats_note(walk->repeats, record, line->text, line->size);
    if (!walk->repeats || !log_repeats_is_repeat(record))
        return visitor->on_record(visitor->context, line, record, error);
    json_t *details = log_repeats_resolve(walk->repeats, record);
    const int status = details ? visitor->on_record(visitor->context, line, details, error) : 0;
    *visitor->unknown_repeats += !details;
    json_decref(details);
    return status;
}

static int log_reader_take_line(const struct walk *walk, const struct log_line *line,
                                struct as_error *error)
{
    const struct log_visitor *visitor = walk->visitor;
    json_error_t problem;

    if (visitor->wants && !visitor->wants(visitor->context, line))
        return 0;
    json_t *record = json_loadb(line->text, line->size, JSON_REJECT_DUPLICATES, &problem);
    int status = -EBADMSG;
    if (json_is_object(record))
        status = log_reader_take_record(walk, line, record, error);
    else
        as_error_set(error, "not a record: %s", record ? "not an object" : problem.text);
    json_decref(record);
    if (status < 0)
        as_error_wrap(error, "%s:%llu", line->path, line->number);
    return status;
}

static int log_reader_take_lines(struct log_reader *reader, struct walk *walk,
                                 struct as_error *error)
{
    struct log_line line = {.path = reader->path};
    int status;

    while ((status = log_reader_next(reader, &line.text, &line.size, error)) > 0) {
        line.number = reader->line;
        if (log_overlap_has(&walk->overlap, line.text, line.size))
            continue;
        status = log_reader_take_line(walk, &line, error);
        if (status)
            return status;
    }
    return status;
}

static int log_reader_take_file(const struct log_files *files, size_t at, struct walk *walk,
                                struct as_error *error)
{
    struct log_reader reader;
    int status = log_files_open(files, at, walk->visitor->selection, &reader, error);

    if (status)
        return status;
    status = log_reader_take_lines(&reader, walk, error);
    if (!status && walk->visitor->must_be_whole && log_reader_get_rest(&reader)) {
        nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
        status = log_reader_take_lines(&reader, walk, error);
        if (!status && log_reader_get_rest(&reader)) {
            as_error_set(error, "%s:%llu: the file ends in the middle of a line", reader.path,
                         (unsigned long long)reader.line + 1);
            status = -EBADMSG;
        }
    }
    log_reader_close(&reader);
    return status;
}

int log_walk(const struct log_files *files, const struct log_visitor *visitor,
             struct as_error *error)
{
    AS_CLEANUP(log_repeats_free_p)
    struct log_repeats *repeats = visitor->unknown_repeats ? log_repeats_new() : NULL;
    struct walk walk = {.visitor = visitor, .repeats = repeats};
    int status = 0;

    for (size_t i = 0; !status && i < files->count; i++) {
        walk.overlap.at_beginning = true;
        status = log_reader_take_file(files, i, &walk, error);
    }
    return status;
}

bool log_line_has(const struct log_line *line, const char *text)
{
    return memmem(line->text, line->size, text, strlen(text)) != NULL;
}
