/*
 * Promises: one write per line, at most 8 KiB, from any thread; text from outside cannot forge a
 * line or a field; a line that cannot be written is counted, and nothing waits for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>

#define LINE_MAX 8192

/* A datagram socket: what arrives as one message was written by one write(2). */
static int receiver;

static void open_sink(enum as_log_level level, enum as_log_format format)
{
    int pair[2];
    cr_assert_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair), 0);
    receiver = pair[0];
    as_log_configure(level, format, pair[1]);
}

static const char *next_line(void)
{
    static char line[LINE_MAX * 2];
    ssize_t size = recv(receiver, line, sizeof(line) - 1, 0);
    if (size < 0)
        return NULL;
    line[size] = '\0';
    return line;
}

/* The line behind its time, whose form is checked here. */
static const char *next_line_without_time(void)
{
    const char *line = next_line();
    cr_assert_not_null(line);
    static const char form[] = "ts=dddd-dd-ddTdd:dd:dd.dddZ ";
    for (size_t i = 0; i < sizeof(form) - 1; i++)
        cr_assert(form[i] == 'd' ? line[i] >= '0' && line[i] <= '9' : line[i] == form[i], "%s",
                  line);
    return line + sizeof(form) - 1;
}

Test(log, logfmt)
{
    open_sink(AS_LOG_DEBUG, AS_LOG_LOGFMT);
    as_log(AS_LOG_WARN, "scale failed", AS_F("target", "shop/checkout"), AS_FI("replicas", -3),
           AS_F("nothing", NULL));
    cr_expect_str_eq(next_line_without_time(),
                     "level=warn msg=\"scale failed\" target=shop/checkout replicas=-3 nothing=\n");
    as_log(AS_LOG_ERROR, "bare");
    cr_expect_str_eq(next_line_without_time(), "level=error msg=bare\n");
    cr_expect_null(next_line());
}

/* The cases of go-logfmt's own rules: quotes where there is a space or control, '=', '"' or what is
 * not UTF-8; "null" is quoted to tell it from nothing. */
Test(log, logfmt_quotes_like_go_kit)
{
    static const struct {
        const char *value, *written;
    } table[] = {
        {"", ""},
        {"plain", "plain"},
        {"a-b_c/d:e,f{}[]()'`$", "a-b_c/d:e,f{}[]()'`$"},
        {"back\\slash", "back\\slash"},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {"two words", "\"two words\""},
        {"a=b", "\"a=b\""},
        {"say \"hi\"", "\"say \\\"hi\\\"\""},
        {"a \\ b", "\"a \\\\ b\""},
        {"null", "\"null\""},
        {"nullable", "nullable"},
        {"line\nbreak", "\"line\\nbreak\""},
        {"\r\t", "\"\\r\\t\""},
        {"\x1b[31m", "\"\\u001b[31m\""},
        {"\x7f", "\"\\u007f\""},
        {"\xc2\x9b"
         "31m",
         "\"\\u009b31m\""},
        {"\xff\xfe", "\"\\ufffd\\ufffd\""},
        {"cut \xe2\x82", "\"cut \\ufffd\\ufffd\""},
        {"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},
        {"\xef\xbf\xbd", "\"\xef\xbf\xbd\""},
        {"x\nlevel=error msg=forged", "\"x\\nlevel=error msg=forged\""},
    };
    open_sink(AS_LOG_DEBUG, AS_LOG_LOGFMT);
    for (size_t i = 0; i < AS_ARRAY_SIZE(table); i++) {
        char expected[256];
        as_log(AS_LOG_INFO, "e", AS_F("k", table[i].value));
        snprintf(expected, sizeof(expected), "level=info msg=e k=%s\n", table[i].written);
        cr_expect_str_eq(next_line_without_time(), expected);
    }
}

static json_t *next_object(void)
{
    const char *line = next_line();
    json_error_t error;
    cr_assert_not_null(line);
    size_t size = strlen(line);
    cr_assert(size <= LINE_MAX && line[size - 1] == '\n');
    cr_assert_null(memchr(line, '\n', size - 1));
    json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, &error);
    cr_assert_not_null(object, "%s: %s", line, error.text);
    return object;
}

static const char *get(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

Test(log, json)
{
    open_sink(AS_LOG_DEBUG, AS_LOG_JSON);
    as_log(AS_LOG_DEBUG, "say \"hi\"", AS_F("text", "a\\b\n\x01\x7f\xff\xc3\xa4"),
           AS_FI("number", INT64_MIN), AS_F("nothing", NULL));
    json_t *object = next_object();
    cr_expect_str_eq(get(object, "level"), "debug");
    cr_expect_str_eq(get(object, "msg"), "say \"hi\"");
    cr_expect_str_eq(get(object, "text"), "a\\b\n\x01\x7f\xef\xbf\xbd\xc3\xa4");
    cr_expect_str_eq(get(object, "nothing"), "");
    cr_expect_eq(json_integer_value(json_object_get(object, "number")), INT64_MIN);
    cr_expect_eq(strlen(get(object, "ts")), sizeof("2026-11-20T10:00:00.000Z") - 1);
    cr_expect_eq(json_object_size(object), 6);
    json_decref(object);
}

Test(log, every_byte_makes_a_valid_line)
{
    open_sink(AS_LOG_DEBUG, AS_LOG_JSON);
    for (unsigned byte = 1; byte < 256; byte++) {
        char text[] = {'<', (char)byte, '>', '\0'};
        as_log(AS_LOG_INFO, "e", AS_F("text", text));
        json_t *object = next_object();
        cr_assert_str_eq(get(object, "text"), byte < 0x80 ? text : "<\xef\xbf\xbd>");
        json_decref(object);
    }
}

Test(log, keys_cannot_break_the_line)
{
    open_sink(AS_LOG_DEBUG, AS_LOG_LOGFMT);
    as_log(AS_LOG_INFO, "e", AS_FI("a b=\"c\"\n\\", 1));
    cr_expect_str_eq(next_line_without_time(), "level=info msg=e a_b__c___=1\n");
}

/* Whatever the text and wherever the cut falls, the line is whole JSON and says that it was cut. */
Test(log, long_lines_are_cut_and_marked)
{
    static const char *const fillers[] = {"x",  "\xc3\xa4", "\xe2\x82\xac", "\"",
                                          "\n", "\x01",     "\xff"};
    for (size_t f = 0; f < AS_ARRAY_SIZE(fillers); f++) {
        open_sink(AS_LOG_DEBUG, AS_LOG_JSON);
        bool seen_whole = false, seen_cut = false;
        for (size_t head = 7900; head < 8250; head += 1 + f) {
            static char text[10000];
            memset(text, 'h', head);
            text[head] = '\0';
            for (size_t i = 0, size = head; i < 20; i++)
                size += (size_t)snprintf(text + size, sizeof(text) - size, "%s", fillers[f]);
            as_log(AS_LOG_INFO, "e", AS_F("text", text), AS_FI("number", 123456),
                   AS_F("last", "end"));
            json_t *object = next_object();
            bool cut = json_is_true(json_object_get(object, "cut"));
            bool whole = as_str_equal(get(object, "last"), "end");
            cr_assert_neq(cut, whole, "head %zu", head);
            json_t *number = json_object_get(object, "number");
            cr_assert(!number || json_integer_value(number) == 123456);
            seen_cut |= cut;
            seen_whole |= whole;
            json_decref(object);
        }
        cr_expect(seen_cut && seen_whole, "filler %zu", f);
    }
}

Test(log, long_logfmt_lines_are_cut_and_marked)
{
    open_sink(AS_LOG_DEBUG, AS_LOG_LOGFMT);
    for (size_t head = 8000; head < 8250; head++) {
        static char text[10000];
        memset(text, 'h', head);
        memcpy(text + head, "\xe2\x82\xac\xe2\x82\xac", 7);
        as_log(AS_LOG_INFO, "e", AS_F("text", text), AS_F("last", "end"));
        const char *line = next_line();
        cr_assert_not_null(line);
        size_t size = strlen(line);
        cr_assert_leq(size, LINE_MAX);
        cr_assert(as_str_is_utf8(line, size));
        bool cut = strstr(line, " cut=true\n"), whole = strstr(line, " last=end\n");
        cr_assert_neq(cut, whole, "head %zu", head);
    }
}

Test(log, levels_are_a_threshold)
{
    open_sink(AS_LOG_WARN, AS_LOG_LOGFMT);
    for (enum as_log_level level = AS_LOG_TRACE; level <= AS_LOG_ERROR; level++) {
        as_log(level, "e");
        cr_expect_eq(as_log_is_enabled(level), level >= AS_LOG_WARN);
        cr_expect_eq(next_line() != NULL, level >= AS_LOG_WARN);
    }
}

Test(log, names_of_levels_and_formats)
{
    static const char *const levels[] = {"trace", "debug", "info", "warn", "error"};
    enum as_log_level level;
    enum as_log_format format;
    for (unsigned i = 0; i < AS_ARRAY_SIZE(levels); i++) {
        cr_expect_eq(as_log_level_parse(levels[i], &level), 0);
        cr_expect_eq(level, (enum as_log_level)i);
    }
    cr_expect_eq(as_log_level_parse("WARN", &level), -EINVAL);
    cr_expect_eq(as_log_level_parse("", &level), -EINVAL);
    cr_expect_eq(level, AS_LOG_ERROR, "untouched");
    cr_expect_eq(as_log_format_parse("json", &format), 0);
    cr_expect_eq(format, AS_LOG_JSON);
    cr_expect_eq(as_log_format_parse("logfmt", &format), 0);
    cr_expect_eq(format, AS_LOG_LOGFMT);
    cr_expect_eq(as_log_format_parse("xml", &format), -EINVAL);
}

Test(log, lost_lines_are_counted_and_nobody_waits, .timeout = 20)
{
    open_sink(AS_LOG_DEBUG, AS_LOG_LOGFMT); /* non-blocking: full at some time */
    unsigned sent = 5000, received = 0;
    errno = EDOM;
    for (unsigned i = 0; i < sent; i++)
        as_log(AS_LOG_INFO, "e", AS_FI("i", i));
    cr_expect_eq(errno, EDOM, "logging leaves errno alone");
    while (next_line())
        received++;
    uint64_t lost = as_log_take_lost();
    cr_expect_gt(lost, 0);
    cr_expect_eq(received + lost, sent);
    cr_expect_eq(as_log_take_lost(), 0);
    as_log_configure(AS_LOG_DEBUG, AS_LOG_LOGFMT, -1);
    as_log(AS_LOG_INFO, "e");
    cr_expect_eq(as_log_take_lost(), 1);
}

enum { LINES = 3000, THREADS = 4 };

static void *log_lines(void *name)
{
    for (int i = 0; i < LINES; i++)
        as_log(AS_LOG_INFO, "e", AS_F("thread", name), AS_FI("i", i));
    return NULL;
}

Test(log, lines_of_threads_do_not_mix)
{
    static char names[THREADS][9] = {"aaaaaaaa", "bbbbbbbb", "cccccccc", "dddddddd"};
    int next[THREADS] = {0};
    char path[] = "test_log.XXXXXX", line[256];
    int fd = mkostemp(path, O_APPEND);
    cr_assert_geq(fd, 0);
    as_log_configure(AS_LOG_INFO, AS_LOG_LOGFMT, fd);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, log_lines, names[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file);
    while (fgets(line, sizeof(line), file)) {
        const char *thread = strstr(line, "thread=");
        cr_assert_not_null(thread, "%s", line);
        int i = thread[7] - 'a';
        cr_assert(i >= 0 && i < THREADS);
        char expected[64];
        snprintf(expected, sizeof(expected), "level=info msg=e thread=%s i=%d\n", names[i],
                 next[i]++);
        cr_assert_not_null(strstr(line, expected), "%s", line);
    }
    for (int i = 0; i < THREADS; i++)
        cr_expect_eq(next[i], LINES);
    fclose(file);
    unlink(path);
}
