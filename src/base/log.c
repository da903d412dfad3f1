/*
 * The log sink. A line is built on the stack and written with one write(2). The kernel keeps the
 * line whole for pipes (up to PIPE_BUF) and for files opened for append: no lock, no buffer,
 * nothing lost in a crash. A line that does not fit ends between characters, with cut=true. A line
 * that cannot be written is counted; the log never waits.
 *
 * Text from outside cannot forge lines or control the terminal: unsafe characters
 * (base/safe_text.h) are escaped. Quoting of logfmt is that of go-kit
 * (github.com/go-logfmt/logfmt), whose quoted strings are JSON strings.
 */
#include <alertscaler/base/log.h>

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>

#define LINE_MAX 8192
#define TAIL_MAX 32 /* room for closing quote, the cut mark, brace and newline */

/* Each is atomic by itself: a line written during a reconfiguration is still a valid line. */
static struct {
    atomic_int level, format, fd;
    atomic_uint_fast64_t lost;
} sink = {AS_LOG_INFO, AS_LOG_LOGFMT, STDERR_FILENO, 0};

static const char *const level_names[] = {[AS_LOG_TRACE] = "trace",
                                          [AS_LOG_DEBUG] = "debug",
                                          [AS_LOG_INFO] = "info",
                                          [AS_LOG_WARN] = "warn",
                                          [AS_LOG_ERROR] = "error"};
static const char *const format_names[] = {[AS_LOG_LOGFMT] = "logfmt", [AS_LOG_JSON] = "json"};

struct line {
    enum as_log_format format;
    bool cut; /* accepts only the tail from now on */
    size_t size;
    char data[LINE_MAX];
};

/* Appends all of `data`, or cuts the line here: later appends do nothing. */
static bool append(struct line *line, const char *data, size_t size)
{
    if (line->cut || size > LINE_MAX - TAIL_MAX - line->size) {
        line->cut = true;
        return false;
    }
    memcpy(line->data + line->size, data, size);
    line->size += size;
    return true;
}

static void append_tail(struct line *line, const char *text)
{
    size_t size = strlen(text);
    memcpy(line->data + line->size, text, size);
    line->size += size;
}

static bool needs_quotes(const char *text, size_t size)
{
    struct as_safe_char read;
    for (size_t at = 0; at < size; at += read.size) {
        read = as_safe_char_read(text + at, size - at);
        if (read.is_unsafe || strchr(" =\"", text[at]) ||
            strncmp(text + at, "\xef\xbf\xbd", 3) == 0)
            return true;
    }
    return strcmp(text, "null") == 0;
}

static bool append_escaped(struct line *line, const char *text, const struct as_safe_char *read)
{
    char escape[8];
    switch (*text) {
    case '"': return append(line, "\\\"", 2);
    case '\\': return append(line, "\\\\", 2);
    case '\n': return append(line, "\\n", 2);
    case '\r': return append(line, "\\r", 2);
    case '\t': return append(line, "\\t", 2);
    default: break;
    }
    if (!read->is_unsafe)
        return append(line, text, read->size);
    const unsigned code = read->is_valid ? read->code & 0xffff : 0xfffd;
    int size = snprintf(escape, sizeof(escape), "\\u%04x", code);
    return append(line, escape, (size_t)size);
}

static void append_quoted(struct line *line, const char *text, size_t size)
{
    if (!append(line, "\"", 1))
        return;
    bool fits = true;
    struct as_safe_char read;
    for (size_t at = 0; at < size && fits; at += read.size) {
        read = as_safe_char_read(text + at, size - at);
        fits = append_escaped(line, text + at, &read);
    }
    append_tail(line, "\"");
}

static void append_text(struct line *line, const char *text)
{
    size_t size = strlen(text);
    if (line->format == AS_LOG_JSON || needs_quotes(text, size))
        append_quoted(line, text, size);
    else if (!append(line, text, size)) {
        size = as_str_cut_utf8(text, size, LINE_MAX - TAIL_MAX - line->size);
        memcpy(line->data + line->size, text, size);
        line->size += size;
    }
}

/* Keys are our own constants. A character that logfmt does not allow in a key becomes '_'. Appends
 * the whole key with room for the first byte of a value, or nothing. */
static bool append_key(struct line *line, const char *key)
{
    char text[64];
    size_t size = 0;
    if (line->size > 1)
        text[size++] = line->format == AS_LOG_JSON ? ',' : ' ';
    if (line->format == AS_LOG_JSON)
        text[size++] = '"';
    for (; *key && size < sizeof(text) - 2; key++) {
        bool plain = *key > ' ' && *key < 0x7f && !strchr("=\"\\", *key);
        text[size++] = plain ? *key : '_';
    }
    if (line->format == AS_LOG_JSON)
        text[size++] = '"';
    text[size++] = line->format == AS_LOG_JSON ? ':' : '=';
    return append(line, text, size);
}

static void append_field(struct line *line, const struct as_log_field *field)
{
    char number[24];
    size_t before = line->size;
    if (!append_key(line, field->key))
        return;
    if (field->text) {
        append_text(line, field->text);
        if (line->format == AS_LOG_JSON && line->data[line->size - 1] == ':')
            line->size = before; /* not even the quote fitted */
        return;
    }
    int size = snprintf(number, sizeof(number), "%" PRId64, field->number);
    if (!append(line, number, (size_t)size))
        line->size = before;
}

static void append_time(struct line *line)
{
    struct timespec now;
    char text[AS_RFC3339_SIZE];
    clock_gettime(CLOCK_REALTIME, &now);
    as_wall_time_print((as_wall_time){now.tv_sec * AS_US_PER_S + now.tv_nsec / 1000}, text);
    memcpy(text + sizeof("2026-11-20T10:00:00.000") - 1, "Z", 2);
    append_field(line, &AS_F("ts", text));
}

static void write_out(const struct line *line)
{
    int fd = atomic_load_explicit(&sink.fd, memory_order_relaxed);
    ssize_t written;
    do
        written = write(fd, line->data, line->size);
    while (written < 0 && errno == EINTR);
    if (written != (ssize_t)line->size)
        atomic_fetch_add_explicit(&sink.lost, 1, memory_order_relaxed);
}

static int name_find(const char *const names[], size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++) {
        if (as_str_equal(names[i], text))
            return (int)i;
    }
    return -EINVAL;
}

int as_log_level_parse(const char *text, enum as_log_level *level_out)
{
    int found = name_find(level_names, AS_ARRAY_SIZE(level_names), text);
    if (found < 0)
        return found;
    *level_out = (enum as_log_level)found;
    return 0;
}

int as_log_format_parse(const char *text, enum as_log_format *format_out)
{
    int found = name_find(format_names, AS_ARRAY_SIZE(format_names), text);
    if (found < 0)
        return found;
    *format_out = (enum as_log_format)found;
    return 0;
}

void as_log_configure(enum as_log_level level, enum as_log_format format, int fd)
{
    atomic_store_explicit(&sink.level, (int)level, memory_order_relaxed);
    atomic_store_explicit(&sink.format, (int)format, memory_order_relaxed);
    atomic_store_explicit(&sink.fd, fd, memory_order_relaxed);
}

bool as_log_is_enabled(enum as_log_level level)
{
    return (int)level >= atomic_load_explicit(&sink.level, memory_order_relaxed);
}

void as_log_write(enum as_log_level level, const char *event, const struct as_log_field *fields,
                  unsigned count)
{
    if (!as_log_is_enabled(level))
        return;
    int saved_errno = errno;
    struct line line;
    line.format = (enum as_log_format)atomic_load_explicit(&sink.format, memory_order_relaxed);
    line.cut = false;
    line.size = 0;
    bool json = line.format == AS_LOG_JSON;
    if (json)
        append(&line, "{", 1);
    append_time(&line);
    append_field(&line, &AS_F("level", level_names[level]));
    append_field(&line, &AS_F("msg", event));
    for (unsigned i = 0; i < count && !line.cut; i++) {
        if (fields[i].key)
            append_field(&line, &fields[i]);
    }
    if (line.cut)
        append_tail(&line, json ? ",\"cut\":true" : " cut=true");
    append_tail(&line, json ? "}\n" : "\n");
    write_out(&line);
    errno = saved_errno;
}

uint64_t as_log_take_lost(void)
{
    return atomic_exchange_explicit(&sink.lost, 0, memory_order_relaxed);
}
