/*
 * The members of JSON documents that a test program writes, for public.py. The linker's --wrap
 * leads calls of the JSON writer and of the router to here.
 *
 * For each document of a form that did not occur before, one line is added to the file
 * $PUBLIC_DOCUMENTS: the path of the API, if a route answers; `kind` at the top, if the document
 * has it; then the paths of all members. "[]" is an item of an array. A key that is not a constant
 * of the program, a label's name for example, is "*".
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_writer.h>

#include <alertscaler/ui/route.h>

#define WRITERS_MAX   8 /* open at the same time, of one thread */
#define DOCUMENTS_MAX 4096

struct document {
    const struct as_json_writer *writer; /* NULL: free */
    const char *keys[AS_JSON_DEPTH_MAX]; /* the last key of each open object */
    char kind[32];
    char **paths; /* sorted */
    size_t count;
};

static _Thread_local struct document documents[WRITERS_MAX];
static _Thread_local const char *route;

/* Of this process: hashes of the lines that were written. */
static uint64_t known[DOCUMENTS_MAX];
static size_t known_count;

static struct document *find_document(const struct as_json_writer *writer)
{
    for (size_t i = 0; i < WRITERS_MAX; i++) {
        if (documents[i].writer == writer)
            return &documents[i];
    }
    return NULL;
}

static void document_end(struct document *document)
{
    for (size_t i = 0; i < document->count; i++)
        free(document->paths[i]);
    free(document->paths);
    *document = (struct document){.writer = NULL};
}

static bool is_known(const char *line)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *line; line++)
        hash = (hash ^ (unsigned char)*line) * UINT64_C(1099511628211);
    for (size_t i = 0; i < known_count; i++) {
        if (known[i] == hash)
            return true;
    }
    if (known_count < DOCUMENTS_MAX)
        known[known_count++] = hash;
    return false;
}

static void print_document(const struct document *document)
{
    const char *file = getenv("PUBLIC_DOCUMENTS");
    struct as_buf line = AS_BUF_INIT((size_t)1 << 20);
    as_buf_printf(&line, "%s\t%s\t", route ? route : "", document->kind);
    for (size_t i = 0; i < document->count; i++)
        as_buf_printf(&line, "%s%s", i == 0 ? "" : " ", document->paths[i]);
    as_buf_append_char(&line, '\n');
    if (!file || as_buf_check(&line) != 0)
        abort();
    if (!is_known(line.data)) {
        const int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || write(fd, line.data, line.size) != (ssize_t)line.size)
            abort();
        (void)close(fd);
    }
    as_buf_deinit(&line);
}

/* A constant of the program, not built at run time. */
static bool is_constant(const char *key)
{
    extern const char __executable_start[], edata[];
    return key >= __executable_start && key < edata;
}

static void add_path(struct document *document, const struct as_json_writer *writer)
{
    struct as_buf text = AS_BUF_INIT((size_t)1 << 12);
    for (unsigned i = 0; i < writer->depth; i++) {
        if (!writer->levels[i].is_object)
            as_buf_append_str(&text, "[]");
        else
            as_buf_printf(&text, "%s%s", text.size > 0 ? "." : "", document->keys[i]);
    }
    if (as_buf_check(&text) != 0)
        abort();
    size_t at = 0;
    while (at < document->count && strcmp(document->paths[at], text.data) < 0)
        at++;
    if (at == document->count || strcmp(document->paths[at], text.data) != 0) {
        document->paths =
            realloc(document->paths, (document->count + 1) * sizeof(*document->paths));
        if (!document->paths)
            abort();
        memmove(document->paths + at + 1, document->paths + at,
                (document->count - at) * sizeof(*document->paths));
        document->paths[at] = as_xstrdup(text.data);
        document->count++;
    }
    as_buf_deinit(&text);
}

static void on_begin(const struct as_json_writer *writer)
{
    if (writer->depth > 0)
        return;
    struct document *document = find_document(writer);
    if (document)
        document_end(document); /* the writer was given up, or the stack frame is another one */
    document = find_document(NULL);
    if (!document)
        abort();
    document->writer = writer;
}

static void on_end(const struct as_json_writer *writer)
{
    struct document *document = find_document(writer);
    if (!document || writer->depth > 0)
        return;
    if (document->count > 0)
        print_document(document);
    document_end(document);
}

static void on_key(const struct as_json_writer *writer, const char *key)
{
    struct document *document = find_document(writer);
    if (!document)
        return; /* a writer of a fragment */
    document->keys[writer->depth - 1] = is_constant(key) ? key : "*";
    add_path(document, writer);
}

static void on_text(const struct as_json_writer *writer, const char *text, size_t size)
{
    struct document *document = find_document(writer);
    if (document && writer->depth == 1 && writer->levels[0].is_object &&
        strcmp(document->keys[0], "kind") == 0)
        (void)snprintf(document->kind, sizeof(document->kind), "%.*s", (int)size, text);
}

/* ---- wrapped ---- */

#define WRAPPED(type, name, ...)                                                                   \
    type __real_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

WRAPPED(void, as_json_begin_object, struct as_json_writer *json)
{
    on_begin(json);
    __real_as_json_begin_object(json);
}

WRAPPED(void, as_json_begin_array, struct as_json_writer *json)
{
    on_begin(json);
    __real_as_json_begin_array(json);
}

WRAPPED(void, as_json_end_object, struct as_json_writer *json)
{
    __real_as_json_end_object(json);
    on_end(json);
}

WRAPPED(void, as_json_end_array, struct as_json_writer *json)
{
    __real_as_json_end_array(json);
    on_end(json);
}

WRAPPED(void, as_json_write_key, struct as_json_writer *json, const char *key)
{
    on_key(json, key);
    __real_as_json_write_key(json, key);
}

WRAPPED(void, as_json_write_member, struct as_json_writer *json, const char *key, const char *text)
{
    on_key(json, key);
    on_text(json, text, strlen(text));
    __real_as_json_write_member(json, key, text);
}

WRAPPED(void, as_json_write_member_i64, struct as_json_writer *json, const char *key,
        int64_t number)
{
    on_key(json, key);
    __real_as_json_write_member_i64(json, key, number);
}

WRAPPED(void, as_json_write_member_bool, struct as_json_writer *json, const char *key, bool value)
{
    on_key(json, key);
    __real_as_json_write_member_bool(json, key, value);
}

WRAPPED(void, as_json_write_string, struct as_json_writer *json, const char *text)
{
    on_text(json, text, strlen(text));
    __real_as_json_write_string(json, text);
}

WRAPPED(void, as_json_write_string_size, struct as_json_writer *json, const char *text, size_t size)
{
    on_text(json, text, size);
    __real_as_json_write_string_size(json, text, size);
}

WRAPPED(void, as_route_answer, const struct as_route *row, struct as_routes *routes,
        struct as_http_exchange *exchange, const char *who)
{
    route = row->path;
    __real_as_route_answer(row, routes, exchange, who);
    route = NULL;
}
