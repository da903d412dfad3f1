/*
 * Pages of the action log. A page opens the files that it needs, each once: so a file stays the
 * same file while it is read, whatever its name is by then.
 *
 * Numbers of records have no gaps. If the first new record of a file leaves one, a rotation may
 * have renamed files while they were listed. Then the files are listed again, before the gap counts
 * as missing records.
 *
 * Times may go back by some seconds when the clock is set. So a page by time begins and ends
 * TIME_MARGIN records further out, and checks each time.
 */
#include <alertscaler/log/log_page.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_scan.h>
#include <alertscaler/log/log_file.h>
#include <alertscaler/port/clock.h>

#define READ_SIZE   ((size_t)64 << 10)
#define TEXTS_MAX   ((size_t)64 << 10) /* of one record */
#define FILES_MAX   20000
#define TIME_MARGIN 5000
#define LISTS_MAX   3                          /* in one page */
#define FIRST_MAX   (2 * AS_LOG_PAGE_LINE_MAX) /* bytes in which a file has its first record */

/*
 * The lines of an open file.
 */

struct page_lines {
    int fd;
    uint64_t at;    /* of the next line */
    uint64_t limit; /* the file is read up to here */
    struct as_buf buf;
    size_t used; /* of the buffer */
    uint64_t too_long;
};

static void page_lines_seek(struct page_lines *lines, uint64_t at)
{
    lines->at = at;
    lines->used = 0;
    as_buf_clear(&lines->buf);
}

/* Reads more behind the buffer's content. Returns the number of bytes; 0 at the end. */
static ssize_t page_lines_fill(struct page_lines *lines, struct as_error *error)
{
    struct as_buf *buf = &lines->buf;
    ssize_t n;
    buf->size -= lines->used;
    if (buf->size > 0)
        memmove(buf->data, buf->data + lines->used, buf->size);
    lines->used = 0;
    if (lines->at + buf->size >= lines->limit)
        return 0;
    char *room = as_buf_reserve(buf, READ_SIZE);
    if (!room)
        return -EMSGSIZE;
    do
        n = pread(lines->fd, room, READ_SIZE, (off_t)(lines->at + buf->size));
    while (n < 0 && errno == EINTR);
    if (n < 0) {
        const int code = errno;
        as_error_set_errno(error, code, "read");
        return -code;
    }
    buf->size += (size_t)n;
    return n;
}

/* Goes behind the end of a line that has begun. 1; 0: the line has no end yet. */
static int page_lines_skip(struct page_lines *lines, struct as_error *error)
{
    uint64_t at = lines->at + lines->buf.size - lines->used;
    for (;;) {
        page_lines_seek(lines, at);
        const ssize_t n = page_lines_fill(lines, error);
        if (n <= 0)
            return (int)n;
        const char *newline = memchr(lines->buf.data, '\n', lines->buf.size);
        if (newline) {
            lines->used = (size_t)(newline + 1 - lines->buf.data);
            lines->at += lines->used;
            return 1;
        }
        at += (size_t)n;
    }
}

/* 1 and a line, valid until the next call; 0: there is no further complete line. */
static int page_lines_next(struct page_lines *lines, const char **line_out, size_t *size_out,
                           struct as_error *error)
{
    size_t searched = 0;
    for (;;) {
        const size_t size = lines->buf.size - lines->used;
        const char *line = size ? lines->buf.data + lines->used : NULL;
        const char *newline =
            size > searched ? memchr(line + searched, '\n', size - searched) : NULL;
        if (newline) {
            *line_out = line;
            *size_out = (size_t)(newline - line);
            lines->used += *size_out + 1;
            lines->at += *size_out + 1;
            return 1;
        }
        searched = size;
        const ssize_t n = page_lines_fill(lines, error);
        if (n == -EMSGSIZE) {
            const int status = page_lines_skip(lines, error);
            if (status <= 0)
                return status;
            lines->too_long++;
            searched = 0;
        } else if (n <= 0) {
            return (int)n;
        }
    }
}

/*
 * One record.
 */

struct page_parser {
    struct json_scan scan;
    struct as_buf texts;
};

enum page_member {
    MEMBER_KIND,
    MEMBER_SEQ,
    MEMBER_TARGET,
    MEMBER_TARGET_NAME,
    MEMBER_TIME,
    MEMBER_COUNT
};
static const char *const page_members[MEMBER_COUNT] = {"kind", "seq", "target", "target_name",
                                                       "time"};

static enum page_member page_find_member(const struct json_scan *scan)
{
    int member = 0;
    while (member < MEMBER_COUNT &&
           (strlen(page_members[member]) != scan->text_size ||
            memcmp(page_members[member], scan->text, scan->text_size) != 0))
        member++;
    return (enum page_member)member;
}

static size_t page_keep_text(struct page_parser *parser)
{
    const size_t at = parser->texts.size;
    const size_t size = strnlen(parser->scan.text, parser->scan.text_size);
    as_buf_append(&parser->texts, parser->scan.text, size);
    as_buf_append_char(&parser->texts, '\0');
    return at;
}

/* False: the line is no record. */
static bool page_parse(struct page_parser *parser, const char *line, size_t size,
                       struct as_log_page_record *record_out)
{
    struct json_scan *scan = &parser->scan;
    enum page_member member = MEMBER_COUNT;
    const char *name_end = line;
    size_t at[MEMBER_COUNT] = {0};
    bool has[MEMBER_COUNT] = {false};
    int64_t seq = 0;
    enum json_token token;
    json_scan_deinit(scan);
    json_scan_init(scan, 1);
    as_buf_clear(&parser->texts);
    as_buf_append_char(&parser->texts, '\0'); /* of a member that is not there */
    json_scan_feed(scan, line, size);
    while ((token = json_scan_next(scan)) != JSON_TOKEN_MORE && token != JSON_TOKEN_ERROR) {
        const enum page_member known = member;
        member = MEMBER_COUNT;
        if (token == JSON_TOKEN_NAME) {
            name_end = scan->at;
            member = page_find_member(scan);
            scan->wants_text = member != MEMBER_COUNT && member != MEMBER_SEQ;
        } else if (token == JSON_TOKEN_STRING && known != MEMBER_COUNT && known != MEMBER_SEQ) {
            has[known] = true;
            at[known] = page_keep_text(parser);
        } else if (token == JSON_TOKEN_OTHER && known == MEMBER_SEQ) {
            /* canonical: a colon and no white space */
            has[known] =
                as_number_parse_i64(name_end + 1, (size_t)(scan->at - name_end - 1), &seq) == 0;
        }
    }
    if (token != JSON_TOKEN_MORE || json_scan_is_inside(scan) ||
        as_buf_check(&parser->texts) != 0 || !has[MEMBER_SEQ] || seq < 1 || seq == INT64_MAX ||
        !has[MEMBER_TIME])
        return false;
    const char *texts = parser->texts.data, *time = texts + at[MEMBER_TIME];
    *record_out = (struct as_log_page_record){
        .line = line,
        .size = size,
        .seq = seq,
        .kind = texts + at[MEMBER_KIND],
        .target = texts + at[MEMBER_TARGET],
        .target_name = texts + at[MEMBER_TARGET_NAME],
    };
    return as_wall_time_parse(time, strlen(time), &record_out->time) == 0;
}

/*
 * The files of the log.
 */

struct page_part {
    char *path;
    ino_t inode;
    uint64_t size;
    bool is_newest; /* the file that the log is written to */
    int64_t first;  /* number and time of its first record */
    as_wall_time time;
};

struct page_run {
    const struct as_log_page_query *query;
    struct as_log_page page;
    struct page_parser parser;
    struct page_lines lines;
    struct page_part *parts; /* ascending by their first records */
    size_t part_count, part_capacity;
    int64_t last;     /* number of the last record that was read, or that is not wanted */
    bool knows_last;  /* the next number is last + 1; else any higher one */
    unsigned lists;   /* how often the files were listed */
    uint64_t beyond;  /* records in a row after `until` */
    as_mono_time end; /* of the page */
    bool has_read;    /* a record */
    /* When `last` was read: */
    uint64_t skipped, too_long;
};

/* The next record of the file. 1; 0: there is none. */
static int page_next(struct page_run *run, struct as_log_page_record *record_out,
                     struct as_error *error)
{
    const char *line = NULL;
    size_t size = 0;
    int status;
    while ((status = page_lines_next(&run->lines, &line, &size, error)) > 0) {
        if (page_parse(&run->parser, line, size, record_out))
            return 1;
        run->page.skipped++;
    }
    return status;
}

static int page_open(struct page_run *run, const char *path, struct stat *info_out)
{
    int fd = -1;
    const int status = as_file_open(path, AS_FILE_OWN, O_RDONLY, &fd, info_out);
    if (status != 0)
        return status;
    if (run->lines.fd >= 0)
        close(run->lines.fd);
    run->lines.fd = fd;
    page_lines_seek(&run->lines, 0);
    return 0;
}

static void page_forget_parts(struct page_run *run)
{
    for (size_t i = 0; i < run->part_count; i++)
        free(run->parts[i].path);
    run->part_count = 0;
}

/* Names that are no file of the log: it was renamed meanwhile, or is a folder or a link. */
static bool page_is_no_part(int status)
{
    return status == -ENOENT || status == -ELOOP || status == -EISDIR || status == -EMEDIUMTYPE;
}

/* A file without a record is left out: each page looks for its first one, so not for long. */
static int page_add_part(struct page_run *run, const char *path, struct as_error *error)
{
    struct as_log_page_record record = {0};
    struct stat info;
    const uint64_t skipped = run->page.skipped;
    int status = page_open(run, path, &info);
    if (page_is_no_part(status))
        return 0;
    run->lines.limit = FIRST_MAX;
    if (status != 0)
        as_error_set_errno(error, status, "%s", path);
    else
        status = page_next(run, &record, error);
    run->lines.limit = UINT64_MAX;
    run->page.skipped = skipped;
    if (status <= 0)
        return status;
    run->parts = as_xgrow(run->parts, run->part_count, &run->part_capacity, sizeof(*run->parts));
    run->parts[run->part_count++] = (struct page_part){
        .path = as_xstrdup(path),
        .inode = info.st_ino,
        .size = (uint64_t)info.st_size,
        .is_newest = strcmp(path, run->query->log_path) == 0,
        .first = record.seq,
        .time = record.time,
    };
    return 0;
}

static int page_compare_parts(const void *left, const void *right)
{
    const struct page_part *a = left, *b = right;
    if (a->first != b->first)
        return a->first > b->first ? 1 : -1;
    if (a->is_newest != b->is_newest)
        return a->is_newest ? 1 : -1;
    return (a->size > b->size) - (a->size < b->size); /* one is a copy of the other's beginning */
}

static int page_list_all(struct page_run *run, struct as_error *error)
{
    const char *log_path = run->query->log_path, *slash = strrchr(log_path, '/');
    const char *log_name = slash ? slash + 1 : log_path;
    AS_CLEANUP(as_free_p)
    char *directory = slash
                          ? as_xstrndup(log_path, (size_t)(slash - log_path) + (slash == log_path))
                          : as_xstrdup(".");
    int status = 0;
    DIR *entries = opendir(directory);
    if (!entries) {
        const int code = errno;
        as_error_set_errno(error, code, "action log: read the folder %s", directory);
        return -code;
    }
    for (struct dirent *entry;
         status == 0 && run->part_count < FILES_MAX && (entry = readdir(entries));) {
        if (!as_audit_file_is_history(log_name, entry->d_name))
            continue;
        const size_t before = slash ? (size_t)(slash + 1 - log_path) : 0;
        AS_CLEANUP(as_free_p)
        char *path = as_xasprintf("%.*s%s", (int)before, log_path, entry->d_name);
        status = page_add_part(run, path, error);
    }
    closedir(entries);
    if (run->part_count > 0)
        qsort(run->parts, run->part_count, sizeof(*run->parts), page_compare_parts);
    return status;
}

/* A follower needs only the newest file. */
static int page_list(struct page_run *run, struct as_error *error)
{
    page_forget_parts(run);
    if (run->last > 0) {
        const int status = page_add_part(run, run->query->log_path, error);
        if (status != 0 || (run->part_count == 1 && run->parts[0].first <= run->last + 1))
            return status;
        page_forget_parts(run);
    }
    return page_list_all(run, error);
}

/* Opens the part, if its path is still the listed file. -EAGAIN: it is not. */
static int page_open_part(struct page_run *run, const struct page_part *part, uint64_t *size_out,
                          struct as_error *error)
{
    struct stat info;
    const int status = page_open(run, part->path, &info);
    if (status != 0 && status != -ENOENT) {
        as_error_set_errno(error, status, "%s", part->path);
        return status;
    }
    if (status != 0 || info.st_ino != part->inode) {
        as_error_set(error, "%s: rotated just now", part->path);
        return -EAGAIN;
    }
    *size_out = (uint64_t)info.st_size;
    return 0;
}

/* Goes to the first record of the open file that is not before the time; NULL: or before the number
 * `last` + 1. Some records before may come too. */
static int page_seek(struct page_run *run, uint64_t size, const as_wall_time *time,
                     struct as_error *error)
{
    struct page_lines *lines = &run->lines;
    uint64_t low = 0, high = size;
    const uint64_t skipped = run->page.skipped, too_long = lines->too_long;
    int status = 0;
    while (status >= 0 && high - low > READ_SIZE) {
        const uint64_t middle = low + (high - low) / 2;
        struct as_log_page_record record;
        page_lines_seek(lines, middle);
        status = page_lines_skip(lines, error);
        if (status > 0)
            status = page_next(run, &record, error);
        const uint64_t begin = status > 0 ? lines->at - record.size - 1 : high;
        const bool is_before =
            begin < high && (time ? record.time.us < time->us : record.seq <= run->last);
        if (is_before)
            low = begin;
        else
            high = middle;
    }
    run->page.skipped = skipped;
    lines->too_long = too_long;
    page_lines_seek(lines, low);
    return status < 0 ? status : 0;
}

/* The last part that begins before the time; NULL: or with a number up to `last` + 1. */
static size_t page_find_part(const struct page_run *run, const as_wall_time *time)
{
    size_t at = 0;
    while (at + 1 < run->part_count && (time ? run->parts[at + 1].time.us < time->us
                                             : run->parts[at + 1].first <= run->last + 1))
        at++;
    return at;
}

/* Raises `last` to shortly before the time. */
static int page_begin_at(struct page_run *run, as_wall_time time, struct as_error *error)
{
    const struct page_part *part = &run->parts[page_find_part(run, &time)];
    struct as_log_page_record record = {0};
    uint64_t size;
    int status = page_open_part(run, part, &size, error);
    if (status == 0)
        status = page_seek(run, size, &time, error);
    if (status == 0)
        status = page_next(run, &record, error);
    if (status > 0 && record.seq - 1 - TIME_MARGIN > run->last) {
        run->last = record.seq - 1 - TIME_MARGIN;
        run->knows_last = false;
    }
    return status < 0 ? status : 0;
}

/* Passes on a new record. False: the page ends before it. */
static bool page_take(struct page_run *run, const struct as_log_page_record *record)
{
    const struct as_log_page_query *query = run->query;
    const bool is_beyond = query->until.set && record->time.us > query->until.at.us;
    const bool is_wanted =
        !is_beyond && (!query->since.set || record->time.us >= query->since.at.us);
    if (is_wanted && !query->on_record(query->context, record))
        return false;
    run->beyond = is_beyond ? run->beyond + 1 : 0;
    run->last = record->seq;
    run->knows_last = true;
    run->has_read = true;
    run->skipped = run->page.skipped;
    run->too_long = run->lines.too_long;
    return true;
}

/* The numbers between the last record and this one that neither a record nor a skipped line has. */
static uint64_t page_count_missing(const struct page_run *run,
                                   const struct as_log_page_record *record)
{
    const uint64_t gap = (uint64_t)(record->seq - run->last - 1);
    const uint64_t skipped = run->page.skipped - run->skipped + run->lines.too_long - run->too_long;
    return run->knows_last && gap > skipped ? gap - skipped : 0;
}

/* Lines that were skipped since the last record are in another page, or are read again. */
static void page_unskip(struct page_run *run)
{
    run->page.skipped = run->skipped;
    run->lines.too_long = run->too_long;
}

enum page_outcome { PAGE_END_OF_FILE, PAGE_FULL, PAGE_GAP, PAGE_BEHIND_UNTIL };

/* Reads on in the open file. An outcome, or a negative errno. */
static int page_read_file(struct page_run *run, struct as_error *error)
{
    struct as_log_page_record record = {0};
    int status;
    while ((status = page_next(run, &record, error)) > 0) {
        if (record.seq <= run->last) {
            page_unskip(run);
            continue;
        }
        const uint64_t missing = page_count_missing(run, &record);
        if (missing > 0 && run->lists < LISTS_MAX) {
            page_unskip(run);
            return PAGE_GAP;
        }
        run->page.missing += missing;
        if (!page_take(run, &record))
            return PAGE_FULL;
        if (run->beyond > TIME_MARGIN)
            return PAGE_BEHIND_UNTIL;
        if (as_system_clock.get_mono(&as_system_clock).us >= run->end.us)
            return PAGE_FULL;
    }
    return status < 0 ? status : PAGE_END_OF_FILE;
}

/* Lists the files and reads on after `last`. An outcome, or a negative errno; -EAGAIN: a file was
 * rotated meanwhile. */
static int page_read_files(struct page_run *run, struct as_error *error)
{
    int status = page_list(run, error);
    run->lists++;
    if (status == 0 && run->query->since.set && run->part_count > 0 && !run->has_read)
        status = page_begin_at(run, run->query->since.at, error);
    if (status != 0 || run->part_count == 0)
        return status;
    int outcome = PAGE_END_OF_FILE;
    const bool is_again = run->lists > 1; /* a copy of a part of the log may hide the rest */
    size_t i = is_again ? 0 : page_find_part(run, NULL);
    for (; outcome == PAGE_END_OF_FILE && i < run->part_count; i++) {
        uint64_t size;
        status = page_open_part(run, &run->parts[i], &size, error);
        if (status == 0 && (is_again || run->parts[i].first <= run->last))
            status = page_seek(run, size, NULL, error);
        if (status != 0)
            return status;
        outcome = page_read_file(run, error);
        if (outcome < 0)
            as_error_wrap(error, "%s", run->parts[i].path);
    }
    return outcome;
}

static void page_run_deinit(struct page_run *run)
{
    page_forget_parts(run);
    free(run->parts);
    if (run->lines.fd >= 0)
        close(run->lines.fd);
    as_buf_deinit(&run->lines.buf);
    as_buf_deinit(&run->parser.texts);
    json_scan_deinit(&run->parser.scan);
}

int as_log_page_read(const struct as_log_page_query *query, struct as_log_page *page_out,
                     struct as_error *error)
{
    AS_CLEANUP(page_run_deinit)
    struct page_run run = {
        .query = query,
        .lines = {.fd = -1,
                  .limit = UINT64_MAX,
                  .buf = AS_BUF_INIT_OPEN(AS_LOG_PAGE_LINE_MAX + READ_SIZE)},
        .parser.texts = AS_BUF_INIT_OPEN(TEXTS_MAX),
        .last = query->after,
        .knows_last = query->after > 0,
        .end.us = as_time_add(as_system_clock.get_mono(&as_system_clock).us, query->duration_us),
    };
    json_scan_init(&run.parser.scan, 1);
    int outcome;
    do
        outcome = page_read_files(&run, error);
    while ((outcome == PAGE_GAP || outcome == -EAGAIN) && run.lists < LISTS_MAX);
    if (outcome < 0 && outcome != -EAGAIN)
        return outcome;
    run.page.skipped = run.skipped + run.too_long; /* those behind are read again */
    run.page.next = run.last;
    run.page.has_more = outcome == PAGE_FULL || outcome == PAGE_GAP || outcome == -EAGAIN;
    *page_out = run.page;
    return 0;
}
