/*
 * Places and lines of a text. Lines are indexed once. Columns are counted only near the start of a
 * line, so that a thousand errors on one line of 16 MiB cost nothing.
 */
#include "yaml_source.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#define COLUMN_MAX    4096 /* no excerpt further right */
#define EXCERPT_MAX   120  /* characters */
#define EXCERPT_FRONT 60   /* characters shown before the place, in a longer line */

/* The size of the line break at `text`, or 0. */
static size_t match_break(const char *text)
{
    if (text[0] == '\n')
        return 1;
    if (text[0] == '\r')
        return text[1] == '\n' ? 2 : 1;
    if (text[0] == '\xC2' && text[1] == '\x85')
        return 2;
    if (text[0] == '\xE2' && text[1] == '\x80' && (text[2] == '\xA8' || text[2] == '\xA9'))
        return 3;
    return 0;
}

static void index_lines(struct yaml_source *source)
{
    size_t capacity = 0;
    const char *end = source->text + source->size;

    for (const char *at = source->text; at <= end;) {
        source->lines = as_xgrow(source->lines, source->line_count, &capacity, sizeof(uint32_t));
        source->lines[source->line_count++] = (uint32_t)(at - source->text);
        size_t size = 0;
        while (at < end && (size = match_break(at)) == 0)
            at++;
        if (at == end)
            break;
        at += size;
    }
}

void yaml_source_init(struct yaml_source *source, const char *file, const char *text, size_t size)
{
    *source = (struct yaml_source){
        .file = as_xstrdup(file),
        .text = as_xmalloc(size + 1),
        .size = size,
    };
    if (size > 0)
        memcpy(source->text, text, size);
    source->text[size] = '\0';
    index_lines(source);
}

void yaml_source_deinit(struct yaml_source *source)
{
    free(source->file);
    free(source->text);
    free(source->lines);
}

size_t yaml_source_measure_utf8(const char *text, size_t size)
{
    size_t good = 0, bad = size;
    while (good < bad) { /* bisects */
        size_t middle = good + (bad - good + 1) / 2;
        size_t cut = as_str_cut_utf8(text, size, middle);
        if (as_str_is_utf8(text, cut))
            good = middle;
        else
            bad = middle - 1;
    }
    return good;
}

static bool is_character_start(char byte)
{
    return ((unsigned char)byte & 0xC0) != 0x80;
}

struct as_yaml_place yaml_source_find_place(const struct yaml_source *source, size_t offset)
{
    size_t low = 0, high = source->line_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (source->lines[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    uint32_t column = 1;
    for (size_t at = source->lines[low]; at < offset; at++)
        column += is_character_start(source->text[at + 1]) || at + 1 == source->size;
    return (struct as_yaml_place){(uint32_t)low + 1, column, column + 1};
}

/* Skips `count` characters, but not the line's end. */
static const char *skip_characters(const char *at, const char *end, size_t count)
{
    while (count > 0 && at < end && match_break(at) == 0) {
        at++;
        count -= is_character_start(*at);
    }
    return at;
}

static const char *find_line(const struct yaml_source *source, uint32_t line)
{
    if (line == 0 || line > source->line_count)
        return NULL;
    return source->text + source->lines[line - 1];
}

const char *yaml_source_find_text(const struct yaml_source *source, struct as_yaml_place place)
{
    const char *line = find_line(source, place.line);
    if (!line || place.column == 0 || place.column > COLUMN_MAX)
        return NULL;
    return skip_characters(line, source->text + source->size, place.column - 1);
}

static uint32_t count_characters(const char *text, size_t size)
{
    uint32_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += is_character_start(text[i]);
    return count;
}

/* After `|` each line of the text is an indented line of the file. */
static bool find_in_block(const struct yaml_source *source, const struct as_yaml_node *scalar,
                          size_t offset, struct as_yaml_place *place_out)
{
    const char *part = scalar->text;
    uint32_t number = scalar->place.line + 1;
    for (const char *at = part; at < scalar->text + offset; at++) {
        if (*at == '\n') {
            number++;
            part = at + 1;
        }
    }
    const char *line = find_line(source, number);
    size_t part_size = strcspn(part, "\n"), size = 0;
    while (line && line[size] && match_break(line + size) == 0)
        size++;
    if (!line || size < part_size || memcmp(line + size - part_size, part, part_size) != 0)
        return false;
    size_t before = size - part_size + (size_t)(scalar->text + offset - part);
    uint32_t column = 1 + count_characters(line, before), end = 1 + count_characters(line, size);
    *place_out = (struct as_yaml_place){number, column, end > column ? end : column + 1};
    return true;
}

bool yaml_source_find_inside(const struct yaml_source *source, const struct as_yaml_node *scalar,
                             size_t offset, struct as_yaml_place *place_out)
{
    const char *start = yaml_source_find_text(source, scalar->place);
    uint32_t quote = scalar->is_plain ? 0 : 1;
    if (!start || offset > scalar->size)
        return false;
    if (*start == '|')
        return find_in_block(source, scalar, offset, place_out);
    if (strncmp(start + quote, scalar->text, scalar->size) != 0)
        return false;
    struct as_yaml_place place = scalar->place;
    place.column += quote + count_characters(scalar->text, offset);
    if (place.column >= place.end_column)
        place.end_column = place.column + 1;
    *place_out = place;
    return true;
}

static char *copy_excerpt(const struct yaml_source *source, struct as_yaml_place place,
                          uint32_t *column_out)
{
    const char *end = source->text + source->size, *line = find_line(source, place.line);
    if (!line || place.column == 0 || place.column > COLUMN_MAX)
        return NULL;
    uint32_t column = place.column > EXCERPT_MAX ? place.column - EXCERPT_FRONT : 1;
    const char *start = skip_characters(line, end, column - 1);
    *column_out = column;
    return as_xstrndup(start, (size_t)(skip_characters(start, end, EXCERPT_MAX) - start));
}

void yaml_source_report(const struct yaml_source *source, struct as_yaml_place place,
                        enum as_severity severity, enum as_yaml_show show,
                        struct as_diagnostics *diagnostics, const char *message)
{
    uint32_t excerpt_column = 1;
    AS_CLEANUP(as_free_p)
    char *excerpt = show == AS_YAML_SHOW && diagnostics->count < AS_DIAGNOSTICS_MAX
                        ? copy_excerpt(source, place, &excerpt_column)
                        : NULL;
    as_diagnostics_add(diagnostics, &(struct as_diagnostic){
                                        .severity = severity,
                                        .file = source->file,
                                        .line = place.line,
                                        .column = place.column,
                                        .end_column = place.end_column,
                                        .message = message,
                                        .excerpt = excerpt,
                                        .excerpt_column = excerpt_column,
                                    });
}
