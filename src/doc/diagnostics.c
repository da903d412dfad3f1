/*
 * The list of diagnostics, and its form for people. Control characters from files are printed as
 * '?', so that a file cannot manipulate the terminal.
 */
#include <alertscaler/doc/diagnostics.h>

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>

#define CAPACITY_FIRST 8

const char *as_severity_get_word(enum as_severity severity)
{
    static const char *const words[AS_SEVERITY_COUNT] = {
        [AS_SEVERITY_ERROR] = "error",
        [AS_SEVERITY_WARNING] = "warning",
        [AS_SEVERITY_HINT] = "hint",
    };
    assert((size_t)severity < AS_SEVERITY_COUNT);
    return words[severity];
}

void as_diagnostics_deinit(struct as_diagnostics *diagnostics)
{
    free(diagnostics->items);
    as_arena_deinit(&diagnostics->arena);
    *diagnostics = AS_DIAGNOSTICS_INIT;
}

/* Replaces C0, DEL, C1 (in UTF-8: C2 80 to C2 9F) and invalid UTF-8. A tab becomes one space, to
 * keep columns. */
static char *copy_printable(struct as_arena *arena, const char *text)
{
    char *copy = as_arena_strdup(arena, text);
    char *out = copy;
    bool is_utf8 = !text || as_str_is_utf8(text, strlen(text));
    for (const char *at = copy; at && *at; at++) {
        unsigned char byte = (unsigned char)*at, next = (unsigned char)at[1];
        if (byte == 0xC2 && next >= 0x80 && next < 0xA0) {
            *out++ = '?';
            at++;
        } else if (byte == '\t') {
            *out++ = ' ';
        } else {
            bool is_shown = byte >= 0x20 && byte != 0x7F && (is_utf8 || byte < 0x80);
            *out++ = is_shown ? (char)byte : '?';
        }
    }
    if (out)
        *out = '\0';
    return copy;
}

void as_diagnostics_add(struct as_diagnostics *diagnostics, const struct as_diagnostic *diagnostic)
{
    bool is_error = diagnostic->severity == AS_SEVERITY_ERROR;
    diagnostics->has_error = diagnostics->has_error || is_error;
    if (diagnostics->count == AS_DIAGNOSTICS_MAX) {
        diagnostics->more += is_error;
        diagnostics->more_warnings += !is_error;
        return;
    }
    /* Doubles at powers of two. */
    size_t count = diagnostics->count;
    if (count == 0 || (count >= CAPACITY_FIRST && (count & (count - 1)) == 0)) {
        size_t capacity = count ? count * 2 : CAPACITY_FIRST;
        diagnostics->items =
            as_xrealloc_array(diagnostics->items, capacity, sizeof(*diagnostics->items));
    }
    struct as_diagnostic *item = &diagnostics->items[diagnostics->count++];
    *item = *diagnostic;
    item->order = (uint32_t)count;
    item->message = copy_printable(&diagnostics->arena, diagnostic->message);
    item->excerpt = copy_printable(&diagnostics->arena, diagnostic->excerpt);
    bool is_same_file = count > 0 && strcmp(item[-1].file, diagnostic->file) == 0;
    item->file =
        is_same_file ? item[-1].file : copy_printable(&diagnostics->arena, diagnostic->file);
}

static int compare_u32(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static int compare_items(const void *left, const void *right)
{
    const struct as_diagnostic *a = left, *b = right;
    int status = a->file == b->file ? 0 : strcmp(a->file, b->file);
    if (status == 0)
        status = compare_u32(a->line, b->line);
    if (status == 0)
        status = compare_u32(a->column, b->column);
    return status ? status : compare_u32(a->order, b->order);
}

static bool is_same_line(const struct as_diagnostic *a, const struct as_diagnostic *b)
{
    return a->line == b->line && strcmp(a->file, b->file) == 0;
}

/* A line that one entry hides, because it may hold a secret, is hidden in all entries. */
static void hide_lines(struct as_diagnostics *diagnostics)
{
    size_t start = 0, end = 0;
    for (; start < diagnostics->count; start = end) {
        struct as_diagnostic *items = diagnostics->items;
        bool is_hidden = false;
        for (end = start; end < diagnostics->count && is_same_line(&items[start], &items[end]);
             end++)
            is_hidden = is_hidden || !items[end].excerpt;
        for (size_t i = start; is_hidden && i < end; i++)
            items[i].excerpt = NULL;
    }
}

/* The same error may have been found twice. */
static void drop_repeated(struct as_diagnostics *diagnostics)
{
    size_t kept = 0;
    for (size_t i = 0; i < diagnostics->count; i++) {
        const struct as_diagnostic *last = &diagnostics->items[kept ? kept - 1 : 0];
        const struct as_diagnostic *item = &diagnostics->items[i];
        if (kept == 0 || !is_same_line(last, item) || last->column != item->column ||
            strcmp(last->message, item->message) != 0)
            diagnostics->items[kept++] = *item;
    }
    diagnostics->count = kept;
}

void as_diagnostics_sort(struct as_diagnostics *diagnostics)
{
    if (diagnostics->count > 1)
        qsort(diagnostics->items, diagnostics->count, sizeof(*diagnostics->items), compare_items);
    drop_repeated(diagnostics);
    hide_lines(diagnostics);
}

static size_t count_characters(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xC0) != 0x80;
    return count;
}

static void print_repeated(FILE *out, char c, size_t count)
{
    for (; count > 0; count--)
        fputc(c, out);
}

static void print_excerpt(const struct as_diagnostic *item, FILE *out)
{
    size_t shown = count_characters(item->excerpt);
    size_t start = item->column - item->excerpt_column;
    size_t end = item->end_column > item->column ? item->end_column - item->excerpt_column : start;
    if (end > shown)
        end = shown;
    fprintf(out, "%5" PRIu32 " | ", item->line);
    as_safe_text_put_lines(out, item->excerpt);
    fputs("\n      | ", out);
    print_repeated(out, ' ', start);
    fputc('^', out);
    print_repeated(out, '~', end > start + 1 ? end - start - 1 : 0);
    fputc('\n', out);
}

static void print_more(const char *what, size_t count, FILE *out)
{
    if (count > 0)
        fprintf(out, "... and %zu more %s%s\n", count, what, count == 1 ? "" : "s");
}

void as_diagnostics_print(const struct as_diagnostics *diagnostics, FILE *out)
{
    for (size_t i = 0; i < diagnostics->count; i++) {
        const struct as_diagnostic *item = &diagnostics->items[i];
        as_safe_text_put(out, item->file);
        if (item->line > 0)
            fprintf(out, ":%" PRIu32 ":%" PRIu32, item->line, item->column);
        fprintf(out, ": %s: ", as_severity_get_word(item->severity));
        as_safe_text_put_lines(out, item->message);
        fputc('\n', out);
        if (item->excerpt)
            print_excerpt(item, out);
    }
    print_more("error", diagnostics->more, out);
    print_more("warning", diagnostics->more_warnings, out);
}
