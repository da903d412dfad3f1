/*
 * The reader of YAML: a tree of libyaml's events, with places for diagnostics. The tree lives in
 * one arena; children are collected on a stack and copied in one piece when their collection ends.
 * The recursion is as deep as the document, which is bounded.
 *
 * libyaml accepts more than these files may have (anchors, tags, duplicate keys, ...): this is
 * reported here and parsing goes on. If the rest is unreadable, parsing ends.
 *
 * In files of other programs an alias is the anchored node itself: nothing is copied, but the node
 * counts again, so that a walk over the tree is bounded too.
 */
#include <alertscaler/doc/yaml_tree.h>

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/diagnostics.h>

/* The text of a YAML tree: maps places to lines and back, for diagnostics. Line ends are libyaml's:
 * LF, CR, CR LF, NEL, LS and PS. */
struct yaml_source {
    char *file;
    char *text; /* a copy, NUL-terminated */
    size_t size;
    uint32_t *lines; /* offset of each line */
    size_t line_count;
};

/* The anchors of a YAML document: names that aliases refer to. A repeated name replaces the node
 * from there on. */
struct yaml_anchor {
    const struct as_yaml_node *node; /* NULL while its content is being read */
    size_t weight;                   /* nodes in it, aliases expanded */
    unsigned height;                 /* its levels of lists and maps */
};

struct yaml_anchors {
    struct yaml_anchor_entry *table;
};

/*
 * Queries on one node of a YAML tree.
 */

const struct as_yaml_node *as_yaml_find(const struct as_yaml_node *node, const char *key)
{
    for (uint32_t i = 0; node && node->kind == AS_YAML_MAP && i < node->count; i++) {
        if (strcmp(node->pairs[i].key->text, key) == 0)
            return node->pairs[i].value;
    }
    return NULL;
}

bool as_yaml_is_null(const struct as_yaml_node *node)
{
    return node->kind == AS_YAML_SCALAR && node->is_plain &&
           (node->size == 0 || strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0);
}

const char *as_yaml_describe(const struct as_yaml_node *node, char text_out[AS_YAML_FOUND_SIZE])
{
    if (node->kind != AS_YAML_SCALAR)
        return node->kind == AS_YAML_LIST ? "a list" : "a map";
    if (as_yaml_is_null(node))
        return "nothing";
    size_t shown = as_str_cut_utf8(node->text, node->size, 60);
    char quote = node->is_plain ? '`' : '"';
    snprintf(text_out, AS_YAML_FOUND_SIZE, "%c%.*s%s%c", quote, (int)shown, node->text,
             shown < node->size ? "..." : "", quote);
    return text_out;
}

/*
 * libyaml's errors are about its grammar; the most common cause is indentation.
 */

/* Rewrites libyaml's problem as what to look for and what to do; other problems stay as they
 * are. */
static const char *yaml_words_explain(const char *problem)
{
    static const struct {
        const char *problem, *words;
    } table[] = {
        {"did not find expected key",
         "this line is indented otherwise than the keys beside it: keys of one map begin in one "
         "column"},
        {"did not find expected '-' indicator",
         "this line is indented otherwise than the list beside it: its entries begin with `- ` in "
         "one column"},
        {"mapping values are not allowed in this context",
         "no `key: value` can stand here: either the line is indented too far, or a value that "
         "holds `: ` needs quotes"},
        {"block sequence entries are not allowed in this context",
         "no list entry `- ` can stand here: begin the list on the line after its key"},
        {"could not find expected ':'", "expected `key: value`: there is no `: ` behind the key"},
        {"did not find expected <document start>",
         "expected the end of the file: this line is indented less than the first one"},
        {"found character that cannot start any token", "no value begins with this character"},
        {"did not find expected ',' or '}'", "expected `,` or `}`: a `{` is not closed"},
        {"did not find expected ',' or ']'", "expected `,` or `]`: a `[` is not closed"},
        {"found unexpected end of stream", "the file ends here, within a text in quotes"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(table); i++) {
        if (strcmp(problem, table[i].problem) == 0)
            return table[i].words;
    }
    return problem;
}

static char *describe_failure(const char *path, int status)
{
    if (status == -EFBIG)
        return as_xstrdup("the file is larger than 16 MiB");
    if ((status == -ENOENT || status == -ENOTDIR) && strpbrk(path, "*?["))
        return as_xstrdup("no file matches this pattern");
    if (status == -EISDIR)
        return as_xasprintf("this is a folder: name the files in it, as %s%s*.yaml", path,
                            *path && path[strlen(path) - 1] == '/' ? "" : "/");
    return as_xasprintf("cannot read this: %s", as_errno_get_text(status));
}

/* Why a file could not be read, from a negative errno. */
static void yaml_words_report_failure(const char *path, int status,
                                      struct as_diagnostics *diagnostics)
{
    AS_CLEANUP(as_free_p) char *message = describe_failure(path, status);
    as_diagnostics_add(diagnostics, &(struct as_diagnostic){.file = path, .message = message});
}

/*
 * Places and lines of a text. Lines are indexed once. Columns are counted only near the start of a
 * line, so that a thousand errors on one line of 16 MiB cost nothing.
 */

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

static void yaml_source_init(struct yaml_source *source, const char *file, const char *text,
                             size_t size)
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

static void yaml_source_deinit(struct yaml_source *source)
{
    free(source->file);
    free(source->text);
    free(source->lines);
}

/* The longest prefix that is valid UTF-8. */
static size_t yaml_source_measure_utf8(const char *text, size_t size)
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

struct as_yaml_tree {
    struct yaml_source source;
    struct as_arena arena;
    const struct as_yaml_node *root;
    const struct as_yaml_node *file_root; /* before it was rewritten; the same if it was not */
    as_yaml_respell_fn *respell;          /* NULL: it was not */
};

static const struct yaml_source *yaml_get_source(const struct as_yaml_tree *tree)
{
    return &tree->source;
}

static struct as_yaml_place yaml_source_find_place(const struct yaml_source *source, size_t offset)
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

static const char *yaml_find_line(const struct yaml_source *source, uint32_t line)
{
    if (line == 0 || line > source->line_count)
        return NULL;
    return source->text + source->lines[line - 1];
}

/* The text from a place on; NULL: no such place, or too far right. */
static const char *yaml_source_find_text(const struct yaml_source *source,
                                         struct as_yaml_place place)
{
    const char *line = yaml_find_line(source, place.line);
    if (!line || place.column == 0 || place.column > COLUMN_MAX)
        return NULL;
    return skip_characters(line, source->text + source->size, place.column - 1);
}

static uint32_t yaml_count_characters(const char *text, size_t size)
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
    const char *line = yaml_find_line(source, number);
    size_t part_size = strcspn(part, "\n"), size = 0;
    while (line && line[size] && match_break(line + size) == 0)
        size++;
    if (!line || size < part_size || memcmp(line + size - part_size, part, part_size) != 0)
        return false;
    size_t before = size - part_size + (size_t)(scalar->text + offset - part);
    uint32_t column = 1 + yaml_count_characters(line, before),
             end = 1 + yaml_count_characters(line, size);
    *place_out = (struct as_yaml_place){number, column, end > column ? end : column + 1};
    return true;
}

/* As as_yaml_find_inside. */
static bool yaml_source_find_inside(const struct yaml_source *source,
                                    const struct as_yaml_node *scalar, size_t offset,
                                    struct as_yaml_place *place_out)
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
    place.column += quote + yaml_count_characters(scalar->text, offset);
    if (place.column >= place.end_column)
        place.end_column = place.column + 1;
    *place_out = place;
    return true;
}

static char *copy_excerpt(const struct yaml_source *source, struct as_yaml_place place,
                          uint32_t *column_out)
{
    const char *end = source->text + source->size, *line = yaml_find_line(source, place.line);
    if (!line || place.column == 0 || place.column > COLUMN_MAX)
        return NULL;
    uint32_t column = place.column > EXCERPT_MAX ? place.column - EXCERPT_FRONT : 1;
    const char *start = skip_characters(line, end, column - 1);
    *column_out = column;
    return as_xstrndup(start, (size_t)(skip_characters(start, end, EXCERPT_MAX) - start));
}

static void yaml_source_report(const struct yaml_source *source, struct as_yaml_place place,
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

/*
 * Reports about a node of a tree, with its place.
 */

#define MESSAGE_SIZE 1024

void as_yaml_vreport(const struct as_yaml_tree *tree, const struct as_yaml_node *node,
                     enum as_severity severity, enum as_yaml_show show,
                     struct as_diagnostics *diagnostics, const char *format, va_list arguments)
{
    char message[MESSAGE_SIZE];
    vsnprintf(message, sizeof(message), format, arguments);
    if (tree->respell)
        tree->respell(message, sizeof(message));
    yaml_source_report(yaml_get_source(tree), node->place, severity, show, diagnostics, message);
}

void as_yaml_report(const struct as_yaml_tree *tree, const struct as_yaml_node *node,
                    enum as_yaml_show show, struct as_diagnostics *diagnostics, const char *format,
                    ...)
{
    va_list arguments;
    if (node->is_flawed)
        return;
    va_start(arguments, format);
    as_yaml_vreport(tree, node, AS_SEVERITY_ERROR, show, diagnostics, format, arguments);
    va_end(arguments);
}

void as_yaml_warn(const struct as_yaml_tree *tree, const struct as_yaml_node *node,
                  enum as_yaml_show show, struct as_diagnostics *diagnostics, const char *format,
                  ...)
{
    va_list arguments;
    va_start(arguments, format);
    as_yaml_vreport(tree, node, AS_SEVERITY_WARNING, show, diagnostics, format, arguments);
    va_end(arguments);
}

/*
 * Anchors in a hash table, and the pairs that merge keys add to a map. Copies no node: an alias is
 * the same node as its anchor.
 */

struct yaml_anchor_entry {
    char *name;
    struct yaml_anchor anchor;
    UT_hash_handle hh;
};

/* Leaves an empty table. */
static void yaml_anchors_deinit(struct yaml_anchors *anchors)
{
    struct yaml_anchor_entry *entry, *next;
    HASH_ITER (hh, anchors->table, entry, next) {
        HASH_DEL(anchors->table, entry);
        free(entry->name);
        free(entry);
    }
}

static void yaml_anchors_put(struct yaml_anchors *anchors, const char *name,
                             const struct yaml_anchor *anchor)
{
    struct yaml_anchor_entry *entry;
    HASH_FIND_STR(anchors->table, name, entry);
    if (!entry) {
        entry = as_xcalloc(1, sizeof(*entry));
        entry->name = as_xstrdup(name);
        HASH_ADD_KEYPTR(hh, anchors->table, entry->name, strlen(entry->name), entry);
    }
    entry->anchor = *anchor;
}

/* NULL: no such name (yet). */
static const struct yaml_anchor *yaml_anchors_find(const struct yaml_anchors *anchors,
                                                   const char *name)
{
    struct yaml_anchor_entry *entry;
    HASH_FIND_STR(anchors->table, name, entry);
    return entry ? &entry->anchor : NULL;
}

/* Merge keys: their maps' pairs are added to a map, which overrides them; a `<<` is a plain key. */
static bool yaml_is_merge_key(const struct as_yaml_node *key)
{
    return key->kind == AS_YAML_SCALAR && key->is_plain && strcmp(key->text, "<<") == 0;
}

/* SIZE_MAX: not a map or maps */
static size_t yaml_count_merged(const struct as_yaml_node *value)
{
    if (value->kind == AS_YAML_MAP)
        return value->count;
    if (value->kind == AS_YAML_SCALAR)
        return SIZE_MAX;
    size_t count = 0;
    for (uint32_t i = 0; i < value->count; i++) {
        if (value->items[i]->kind != AS_YAML_MAP)
            return SIZE_MAX;
        count += value->items[i]->count;
    }
    return count;
}

static size_t copy_pairs(const struct as_yaml_node *map, struct as_yaml_pair *pairs_out)
{
    if (map->count > 0)
        memcpy(pairs_out, map->pairs, map->count * sizeof(*pairs_out));
    return map->count;
}

static size_t yaml_copy_merged(const struct as_yaml_node *value, struct as_yaml_pair *pairs_out)
{
    if (value->kind == AS_YAML_MAP)
        return copy_pairs(value, pairs_out);
    size_t count = 0;
    for (uint32_t i = 0; i < value->count; i++)
        count += copy_pairs(value->items[i], pairs_out + count);
    return count;
}

#define TOO_DEEP "nested too deeply (more than 32 levels)"
#define TOO_MANY "the file holds more than 1000000 values"

struct builder {
    yaml_parser_t parser;
    struct as_yaml_tree *tree;
    struct as_diagnostics *diagnostics;
    const struct as_yaml_node **stack;
    size_t stack_count, stack_capacity;
    size_t node_count;
    unsigned depth, reach; /* reach: the deepest level so far, in the node being read */
    bool is_flawed;
    bool is_foreign;
    bool is_stream; /* of documents, which become a list */
    struct yaml_anchors anchors;
};

static struct as_yaml_place yaml_make_place(yaml_mark_t start, yaml_mark_t end)
{
    struct as_yaml_place place = {
        .line = (uint32_t)start.line + 1,
        .column = (uint32_t)start.column + 1,
        .end_column = (uint32_t)start.column + 2,
    };
    if (end.line == start.line && end.column > start.column)
        place.end_column = (uint32_t)end.column + 1;
    return place;
}

/* Files of other programs may hold secrets anywhere. */
static void flaw(struct builder *builder, struct as_yaml_place place, const char *message)
{
    yaml_source_report(&builder->tree->source, place, AS_SEVERITY_ERROR,
                       builder->is_foreign ? AS_YAML_HIDE : AS_YAML_SHOW, builder->diagnostics,
                       message);
    builder->is_flawed = true;
}

static int yaml_fail(struct builder *builder, struct as_yaml_place place, const char *message)
{
    flaw(builder, place, message);
    return -EINVAL;
}

/* Spaces before the text of a line. */
static size_t yaml_measure_indent(const struct yaml_source *source, uint32_t line)
{
    return strspn(source->text + source->lines[line - 1], " ");
}

/* The line with content before this one; 0: none. */
static uint32_t yaml_find_line_before(const struct yaml_source *source, uint32_t line)
{
    for (line--; line > 0; line--) {
        const char *text = yaml_find_line(source, line);
        text += strspn(text, " \t");
        if (*text && *text != '#' && match_break(text) == 0)
            return line;
    }
    return 0;
}

/* Whether the place is in the first `key: value` of its line. */
static bool yaml_is_first_key(const struct yaml_source *source, yaml_mark_t mark)
{
    const char *line = yaml_find_line(source, (uint32_t)mark.line + 1);
    const char *colon = line ? strstr(line, ": ") : NULL;
    return colon && (size_t)(colon - line) >= mark.column;
}

/* The indentation of a line and of those beside it, in numbers. NULL: the error is about something
 * else. */
static char *describe_indent(const struct yaml_source *source, const yaml_parser_t *parser)
{
    static const struct {
        const char *problem, *rule;
        bool is_deeper; /* only if it is deeper than the line before, with its first key */
    } table[] = {
        {"did not find expected key",
         "keys of one map, and entries of one list, begin in one column", false},
        {"did not find expected '-' indicator", "entries of one list begin with `- ` in one column",
         false},
        {"mapping values are not allowed in this context",
         "keys of one map begin in one column; a value that holds `: ` needs quotes", true},
    };
    const uint32_t line = (uint32_t)parser->problem_mark.line + 1;
    const uint32_t first = parser->context ? (uint32_t)parser->context_mark.line + 1 : 0;
    const uint32_t before = line <= source->line_count ? yaml_find_line_before(source, line) : 0;
    const char *rule = NULL;
    if (before == 0)
        return NULL;
    const size_t indent = yaml_measure_indent(source, line);
    const size_t other = yaml_measure_indent(source, before);
    for (size_t i = 0; i < AS_ARRAY_SIZE(table); i++) {
        if (strcmp(parser->problem, table[i].problem) == 0 &&
            (table[i].is_deeper ? indent > other && yaml_is_first_key(source, parser->problem_mark)
                                : indent != other))
            rule = table[i].rule;
    }
    if (!rule)
        return NULL;
    AS_CLEANUP(as_free_p)
    char *outer = first > 0 && first < before
                      ? as_xasprintf(", line %u by %zu", first, yaml_measure_indent(source, first))
                      : as_xstrdup("");
    return as_xasprintf("line %u is indented by %zu space%s, line %u by %zu%s: %s", line, indent,
                        indent == 1 ? "" : "s", before, other, outer, rule);
}

/* libyaml's error for a text it cannot read; for the two most common mistakes also the reason. */
static int yaml_fail_syntax(struct builder *builder)
{
    const yaml_parser_t *parser = &builder->parser;
    if (parser->error == YAML_READER_ERROR) {
        struct as_yaml_place place =
            yaml_source_find_place(&builder->tree->source, parser->problem_offset);
        return yaml_fail(builder, place, "a control character; only printable text is allowed");
    }
    if (parser->error == YAML_MEMORY_ERROR)
        return yaml_fail(builder, (struct as_yaml_place){1, 1, 1},
                         "not enough memory to read this");

    struct as_yaml_place place = yaml_make_place(parser->problem_mark, parser->problem_mark);
    const char *rest = yaml_source_find_text(&builder->tree->source, place);
    const char *why = "";
    char context[64] = "";
    if (rest && *rest == '\t')
        why = "; YAML is indented with spaces, not tabs";
    else if (rest && strchr("@`%", *rest) && *rest)
        why = "; text that begins with this character must stand in quotes";
    if (parser->context && parser->context_mark.line != parser->problem_mark.line)
        snprintf(context, sizeof(context), " (in what begins on line %zu)",
                 parser->context_mark.line + 1);
    AS_CLEANUP(as_free_p) char *indent = describe_indent(&builder->tree->source, parser);
    AS_CLEANUP(as_free_p)
    char *message = as_xasprintf("not valid YAML: %s%s%s",
                                 indent ? indent : yaml_words_explain(parser->problem),
                                 indent ? "" : context, why);
    return yaml_fail(builder, place, message);
}

static int next_event(struct builder *builder, yaml_event_t *event_out)
{
    return yaml_parser_parse(&builder->parser, event_out) ? 0 : yaml_fail_syntax(builder);
}

static struct as_yaml_node *yaml_add_node(struct builder *builder, enum as_yaml_kind kind,
                                          const yaml_event_t *event)
{
    struct as_yaml_node *node = as_arena_alloc(&builder->tree->arena, 1, sizeof(*node));
    node->kind = kind;
    node->place = yaml_make_place(event->start_mark, event->end_mark);
    return node;
}

static void push(struct builder *builder, const struct as_yaml_node *node)
{
    builder->stack = as_xgrow(builder->stack, builder->stack_count, &builder->stack_capacity,
                              sizeof(const struct as_yaml_node *));
    builder->stack[builder->stack_count++] = node;
}

static void check_properties(struct builder *builder, struct as_yaml_node *node,
                             const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (builder->is_foreign) {
        node->is_plain = node->is_plain && !(tag && strcmp((const char *)tag, YAML_STR_TAG) == 0);
        return;
    }
    if (anchor)
        flaw(builder, node->place, "anchors (&) are not supported");
    if (tag)
        flaw(builder, node->place, "tags (!) are not supported");
    node->is_flawed = anchor || tag;
}

static int make_scalar(struct builder *builder, const yaml_event_t *event,
                       struct as_yaml_node **node_out)
{
    struct as_yaml_node *node = yaml_add_node(builder, AS_YAML_SCALAR, event);
    const char *value = (const char *)event->data.scalar.value;
    size_t size = event->data.scalar.length;
    char *text = as_arena_alloc(&builder->tree->arena, size + 1, 1);

    memcpy(text, value, size);
    node->text = text;
    node->size = size;
    node->is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    check_properties(builder, node, event->data.scalar.anchor, event->data.scalar.tag);
    if (memchr(text, '\0', size)) {
        flaw(builder, node->place, "text with a NUL character");
        node->is_flawed = true;
    }
    *node_out = node;
    return 0;
}

static int follow_alias(struct builder *builder, const yaml_event_t *event,
                        const struct as_yaml_node **node_out)
{
    const char *name = (const char *)event->data.alias.anchor;
    const struct yaml_anchor *anchor = yaml_anchors_find(&builder->anchors, name);
    struct as_yaml_place place = yaml_make_place(event->start_mark, event->end_mark);
    if (!anchor)
        return yaml_fail(builder, place, "an alias (*) of what is not named above with &");
    if (!anchor->node)
        return yaml_fail(builder, place, "an alias (*) of what it stands in itself");
    if (builder->depth + anchor->height > AS_YAML_DEPTH_MAX)
        return yaml_fail(builder, place, TOO_DEEP);
    builder->node_count += anchor->weight;
    if (builder->node_count > AS_YAML_NODES_MAX)
        return yaml_fail(builder, place, TOO_MANY);
    if (builder->reach < builder->depth + anchor->height)
        builder->reach = builder->depth + anchor->height;
    *node_out = anchor->node;
    return 0;
}

static int make_alias(struct builder *builder, const yaml_event_t *event,
                      const struct as_yaml_node **node_out)
{
    if (builder->is_foreign)
        return follow_alias(builder, event, node_out);
    struct as_yaml_node *node = yaml_add_node(builder, AS_YAML_SCALAR, event);
    node->text = "";
    flaw(builder, node->place,
         "aliases (*) are not supported; text that begins with * must stand "
         "in quotes");
    node->is_flawed = true;
    *node_out = node;
    return 0;
}

static int parse_node(struct builder *builder, const yaml_event_t *event,
                      const struct as_yaml_node **node_out);

static int finish_list(struct builder *builder, struct as_yaml_node *list, size_t base)
{
    size_t count = builder->stack_count - base;
    const struct as_yaml_node **items =
        as_arena_alloc(&builder->tree->arena, count, sizeof(*items));
    if (count > 0)
        memcpy(items, builder->stack + base, count * sizeof(*items));
    list->items = items;
    list->count = (uint32_t)count;
    return 0;
}

static int yaml_compare_keys(const void *left, const void *right)
{
    const struct as_yaml_pair *const *a = left, *const *b = right;
    int status = strcmp((*a)->key->text, (*b)->key->text);
    return status ? status : (*a > *b) - (*a < *b);
}

/* Of pairs with the same key the first is kept. Those from `merged` on are dropped silently. */
static void drop_duplicates(struct builder *builder, struct as_yaml_node *map,
                            struct as_yaml_pair *pairs, size_t merged)
{
    if (map->count < 2)
        return;
    const struct as_yaml_pair **sorted = as_xcalloc(map->count, sizeof(*sorted));
    bool *is_dropped = as_xcalloc(map->count, sizeof(*is_dropped));
    for (uint32_t i = 0; i < map->count; i++)
        sorted[i] = &pairs[i];
    qsort(sorted, map->count, sizeof(*sorted), yaml_compare_keys);
    for (uint32_t i = 1, first = 0; i < map->count; i++) {
        const struct as_yaml_node *key = sorted[i]->key;
        if (strcmp(sorted[first]->key->text, key->text) != 0) {
            first = i;
            continue;
        }
        is_dropped[sorted[i] - pairs] = true;
        if ((size_t)(sorted[i] - pairs) >= merged)
            continue;
        char found[AS_YAML_FOUND_SIZE];
        AS_CLEANUP(as_free_p)
        char *message = as_xasprintf("key %s is given twice, first on line %u",
                                     as_yaml_describe(key, found), sorted[first]->key->place.line);
        flaw(builder, key->place, message);
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < map->count; i++) {
        if (!is_dropped[i])
            pairs[kept++] = pairs[i];
    }
    map->count = kept;
    free(sorted);
    free(is_dropped);
}

/* False: the pair is unusable. */
static bool check_key(struct builder *builder, const struct as_yaml_node *key)
{
    if (key->kind != AS_YAML_SCALAR) {
        const char *text = yaml_source_find_text(&builder->tree->source, key->place);
        flaw(builder, key->place,
             text && *text == '{'
                 ? "a key must be text; a template must stand in quotes: '{{ ... }}'"
                 : "a key must be text");
        return false;
    }
    if (yaml_is_merge_key(key)) {
        flaw(builder, key->place, "merge keys (<<) are not supported");
        return false;
    }
    return !key->is_flawed;
}

/* The pairs that a map's merge keys add, without the merge keys themselves: after its own pairs. */
static size_t count_given(struct builder *builder, size_t base)
{
    size_t count = 0;
    for (size_t i = base; builder->is_foreign && i < builder->stack_count; i += 2) {
        const struct as_yaml_node *value = builder->stack[i + 1];
        size_t given = yaml_is_merge_key(builder->stack[i]) ? yaml_count_merged(value) : 0;
        if (given == SIZE_MAX)
            flaw(builder, value->place, "expected a map, or a list of maps, behind <<");
        else
            count += given;
    }
    return count;
}

static void add_given(struct builder *builder, struct as_yaml_node *map, size_t base,
                      struct as_yaml_pair *pairs)
{
    for (size_t i = base; builder->is_foreign && i < builder->stack_count; i += 2) {
        const struct as_yaml_node *value = builder->stack[i + 1];
        if (yaml_is_merge_key(builder->stack[i]) && yaml_count_merged(value) != SIZE_MAX)
            map->count += (uint32_t)yaml_copy_merged(value, pairs + map->count);
    }
}

static int finish_map(struct builder *builder, struct as_yaml_node *map, size_t base)
{
    size_t count = (builder->stack_count - base) / 2 + count_given(builder, base);
    struct as_yaml_pair *pairs = as_arena_alloc(&builder->tree->arena, count, sizeof(*pairs));
    for (size_t i = base; i < builder->stack_count; i += 2) {
        const struct as_yaml_node *key = builder->stack[i];
        bool is_merge = builder->is_foreign && yaml_is_merge_key(key);
        if (!is_merge && check_key(builder, key))
            pairs[map->count++] = (struct as_yaml_pair){.key = key, .value = builder->stack[i + 1]};
    }
    size_t merged = map->count;
    add_given(builder, map, base, pairs);
    drop_duplicates(builder, map, pairs, merged);
    map->pairs = pairs;
    return 0;
}

/* Reads the children of a list or map, up to the event that ends it. */
static int parse_children(struct builder *builder, struct as_yaml_node *node, yaml_event_type_t end)
{
    size_t base = builder->stack_count;

    if (builder->depth == AS_YAML_DEPTH_MAX)
        return yaml_fail(builder, node->place, TOO_DEEP);
    builder->depth++;
    if (builder->reach < builder->depth)
        builder->reach = builder->depth;
    for (;;) {
        yaml_event_t event;
        const struct as_yaml_node *child = NULL;
        int status = next_event(builder, &event);
        if (status < 0)
            return status;
        bool is_end = event.type == end;
        if (!is_end)
            status = parse_node(builder, &event, &child);
        yaml_event_delete(&event);
        if (status < 0)
            return status;
        if (is_end)
            break;
        push(builder, child);
    }
    builder->depth--;
    int status = node->kind == AS_YAML_LIST ? finish_list(builder, node, base)
                                            : finish_map(builder, node, base);
    builder->stack_count = base;
    return status;
}

static int make_collection(struct builder *builder, const yaml_event_t *event,
                           struct as_yaml_node **node_out)
{
    bool is_list = event->type == YAML_SEQUENCE_START_EVENT;
    struct as_yaml_node *node = yaml_add_node(builder, is_list ? AS_YAML_LIST : AS_YAML_MAP, event);

    if (is_list)
        check_properties(builder, node, event->data.sequence_start.anchor,
                         event->data.sequence_start.tag);
    else
        check_properties(builder, node, event->data.mapping_start.anchor,
                         event->data.mapping_start.tag);
    *node_out = node;
    return parse_children(builder, node,
                          is_list ? YAML_SEQUENCE_END_EVENT : YAML_MAPPING_END_EVENT);
}

static const char *get_anchor(const yaml_event_t *event)
{
    return (const char *)(event->type == YAML_SCALAR_EVENT ? event->data.scalar.anchor
                          : event->type == YAML_SEQUENCE_START_EVENT
                              ? event->data.sequence_start.anchor
                              : event->data.mapping_start.anchor);
}

/* A node that aliases can refer to once it is complete. */
static int make_anchored(struct builder *builder, const yaml_event_t *event, const char *name,
                         struct as_yaml_node **node_out)
{
    struct yaml_anchor anchor = {.node = NULL};
    size_t node_count = builder->node_count - 1;
    unsigned reach = builder->reach;

    yaml_anchors_put(&builder->anchors, name, &anchor);
    builder->reach = builder->depth;
    int status = event->type == YAML_SCALAR_EVENT ? make_scalar(builder, event, node_out)
                                                  : make_collection(builder, event, node_out);
    if (status < 0)
        return status;
    anchor = (struct yaml_anchor){
        .node = *node_out,
        .weight = builder->node_count - node_count,
        .height = builder->reach - builder->depth,
    };
    yaml_anchors_put(&builder->anchors, name, &anchor);
    if (builder->reach < reach)
        builder->reach = reach;
    return 0;
}

static int parse_node(struct builder *builder, const yaml_event_t *event,
                      const struct as_yaml_node **node_out)
{
    if (++builder->node_count > AS_YAML_NODES_MAX)
        return yaml_fail(builder, yaml_make_place(event->start_mark, event->end_mark), TOO_MANY);
    if (event->type == YAML_ALIAS_EVENT)
        return make_alias(builder, event, node_out);
    struct as_yaml_node *node = NULL;
    const char *anchor = builder->is_foreign ? get_anchor(event) : NULL;
    int status = anchor                             ? make_anchored(builder, event, anchor, &node)
                 : event->type == YAML_SCALAR_EVENT ? make_scalar(builder, event, &node)
                                                    : make_collection(builder, event, &node);
    *node_out = node;
    return status;
}

/* Anchors end with their document. */
static void keep_document(struct builder *builder, const struct as_yaml_node *node)
{
    if (!builder->is_stream) {
        builder->tree->root = node;
        return;
    }
    push(builder, node);
    yaml_anchors_deinit(&builder->anchors);
}

/* The tree of a text without a document, or of several. */
static int finish_documents(struct builder *builder, unsigned count)
{
    struct as_yaml_node *root = as_arena_alloc(&builder->tree->arena, 1, sizeof(*root));
    *root = (struct as_yaml_node){.is_plain = true, .place = {1, 1, 2}, .text = ""};
    if (!builder->is_foreign && count == 0)
        return yaml_fail(builder, root->place, "the file is empty");
    if (builder->is_stream || count == 0)
        builder->tree->root = root;
    if (!builder->is_stream)
        return 0;
    root->kind = AS_YAML_LIST;
    return finish_list(builder, root, 0);
}

/* An event that begins or ends something around the document's content. */
static int parse_documents(struct builder *builder)
{
    unsigned documents = 0;
    for (;;) {
        yaml_event_t event;
        const struct as_yaml_node *node = NULL;
        int status = next_event(builder, &event);
        if (status < 0)
            return status;
        yaml_event_type_t type = event.type;
        struct as_yaml_place place = yaml_make_place(event.start_mark, event.end_mark);
        if (type == YAML_DOCUMENT_START_EVENT && documents++ > 0 && !builder->is_stream)
            status = yaml_fail(builder, place, "a second document; a file holds one");
        else if (type != YAML_STREAM_START_EVENT && type != YAML_STREAM_END_EVENT &&
                 type != YAML_DOCUMENT_START_EVENT && type != YAML_DOCUMENT_END_EVENT)
            status = parse_node(builder, &event, &node);
        yaml_event_delete(&event);
        if (status < 0)
            return status;
        if (node)
            keep_document(builder, node);
        if (type == YAML_STREAM_END_EVENT)
            return finish_documents(builder, documents);
    }
}

/* libyaml only gets valid text. */
static int check_bytes(struct builder *builder, const char *text, size_t size)
{
    const char *nul = memchr(text, '\0', size);
    size_t offset = nul ? (size_t)(nul - text) : size;

    if (size > AS_YAML_SIZE_MAX)
        return yaml_fail(builder, (struct as_yaml_place){1, 1, 1},
                         "the file is larger than 16 MiB");
    if (!nul && as_str_is_utf8(text, size))
        return 0;
    const size_t good = yaml_source_measure_utf8(text, offset);
    bool is_nul = nul && good == offset;
    return yaml_fail(builder, yaml_source_find_place(&builder->tree->source, good),
                     is_nul ? "a NUL byte: this is no text file" : "not valid UTF-8");
}

enum form { OWN, FOREIGN, DOCUMENTS };

static int yaml_parse(const char *file, const char *text, size_t size, enum form form,
                      struct as_diagnostics *diagnostics, struct as_yaml_tree **tree_out)
{
    AS_CLEANUP(as_yaml_free_p) struct as_yaml_tree *tree = as_xcalloc(1, sizeof(*tree));
    struct builder builder = {.tree = tree, .diagnostics = diagnostics};
    builder.is_foreign = form != OWN;
    builder.is_stream = form == DOCUMENTS;

    static const char mark[] = "\xEF\xBB\xBF"; /* byte order mark: ignored in UTF-8 */
    if (size >= sizeof(mark) - 1 && memcmp(text, mark, sizeof(mark) - 1) == 0) {
        text += sizeof(mark) - 1;
        size -= sizeof(mark) - 1;
    }
    yaml_source_init(&tree->source, file, text, size);
    int status = check_bytes(&builder, text, size);
    if (status < 0)
        return status;
    if (!yaml_parser_initialize(&builder.parser))
        return yaml_fail(&builder, (struct as_yaml_place){1, 1, 1},
                         "not enough memory to read this");
    yaml_parser_set_encoding(&builder.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&builder.parser, (const unsigned char *)tree->source.text, size);
    status = parse_documents(&builder);
    yaml_parser_delete(&builder.parser);
    yaml_anchors_deinit(&builder.anchors);
    free(builder.stack);
    if (status < 0)
        return status;
    *tree_out = tree;
    tree = NULL;
    return builder.is_flawed ? AS_YAML_FLAWED : AS_YAML_OK;
}

int as_yaml_parse(const char *file, const char *text, size_t size,
                  struct as_diagnostics *diagnostics, struct as_yaml_tree **tree_out)
{
    return yaml_parse(file, text, size, OWN, diagnostics, tree_out);
}

int as_yaml_parse_foreign(const char *file, const char *text, size_t size,
                          struct as_diagnostics *diagnostics, struct as_yaml_tree **tree_out)
{
    return yaml_parse(file, text, size, FOREIGN, diagnostics, tree_out);
}

static int yaml_load(const char *path, enum form form, struct as_diagnostics *diagnostics,
                     struct as_yaml_tree **tree_out)
{
    AS_CLEANUP(as_free_p) char *text = NULL;
    size_t size = 0;
    /* documents are the input of a command, the others are configured */
    int status = form == DOCUMENTS ? as_file_read_input(path, AS_YAML_SIZE_MAX, &text, &size)
                                   : as_file_read(path, AS_YAML_SIZE_MAX, &text, &size);
    if (status < 0) {
        yaml_words_report_failure(path, status, diagnostics);
        return status;
    }
    return yaml_parse(path, text, size, form, diagnostics, tree_out);
}

int as_yaml_load(const char *path, struct as_diagnostics *diagnostics,
                 struct as_yaml_tree **tree_out)
{
    return yaml_load(path, OWN, diagnostics, tree_out);
}

int as_yaml_load_foreign(const char *path, struct as_diagnostics *diagnostics,
                         struct as_yaml_tree **tree_out)
{
    return yaml_load(path, FOREIGN, diagnostics, tree_out);
}

int as_yaml_load_documents(const char *path, struct as_diagnostics *diagnostics,
                           struct as_yaml_tree **tree_out)
{
    return yaml_load(path, DOCUMENTS, diagnostics, tree_out);
}

struct as_yaml_tree *as_yaml_free(struct as_yaml_tree *tree)
{
    if (!tree)
        return NULL;
    yaml_source_deinit(&tree->source);
    as_arena_deinit(&tree->arena);
    free(tree);
    return NULL;
}

struct as_arena *as_yaml_get_arena(struct as_yaml_tree *tree)
{
    return &tree->arena;
}

void as_yaml_rewrite(struct as_yaml_tree *tree, const struct as_yaml_node *root,
                     as_yaml_respell_fn *respell)
{
    tree->file_root = tree->root;
    tree->root = root;
    tree->respell = respell;
}

bool as_yaml_is_rewritten(const struct as_yaml_tree *tree)
{
    return tree->respell;
}

static bool yaml_is_at(const struct as_yaml_node *node, uint32_t line, uint32_t column)
{
    return node->place.line == line && node->place.column == column;
}

/* False: no node of this one begins there; `out` is as before. */
static bool yaml_append_path(const struct as_yaml_node *node, uint32_t line, uint32_t column,
                             struct as_buf *out)
{
    const size_t before = out->size;
    if (node->kind == AS_YAML_SCALAR)
        return yaml_is_at(node, line, column);
    for (uint32_t i = 0; i < node->count; i++) {
        const struct as_yaml_node *value =
            node->kind == AS_YAML_MAP ? node->pairs[i].value : node->items[i];
        if (node->kind == AS_YAML_MAP)
            as_buf_printf(out, "%s%s", before > 0 ? "." : "", node->pairs[i].key->text);
        else
            as_buf_printf(out, "[%" PRIu32 "]", i);
        if ((node->kind == AS_YAML_MAP && yaml_is_at(node->pairs[i].key, line, column)) ||
            yaml_append_path(value, line, column, out))
            return true;
        out->size = before;
    }
    return yaml_is_at(node, line, column);
}

void as_yaml_append_path(const struct as_yaml_tree *tree, uint32_t line, uint32_t column,
                         struct as_buf *out)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(4096);
    const struct as_yaml_node *root = tree->file_root ? tree->file_root : tree->root;
    if (yaml_append_path(root, line, column, &path) && path.size > 0)
        as_buf_append(out, path.data, path.size);
}

const struct as_yaml_node *as_yaml_get_root(const struct as_yaml_tree *tree)
{
    return tree->root;
}

const char *as_yaml_get_file(const struct as_yaml_tree *tree)
{
    return tree->source.file;
}

const char *as_yaml_get_text(const struct as_yaml_tree *tree, size_t *size_out)
{
    *size_out = tree->source.size;
    return tree->source.text;
}

bool as_yaml_find_inside(const struct as_yaml_tree *tree, const struct as_yaml_node *scalar,
                         size_t offset, struct as_yaml_place *place_out)
{
    return yaml_source_find_inside(&tree->source, scalar, offset, place_out);
}

/*
 * A command's input, read and parsed.
 */

typedef int parse_fn(const char *file, const char *text, size_t size,
                     struct as_diagnostics *diagnostics, struct as_yaml_tree **tree_out);

static int yaml_input_load(const char *path, parse_fn *parse, struct as_diagnostics *diagnostics,
                           struct as_yaml_tree **tree_out)
{
    AS_CLEANUP(as_free_p) char *text = NULL;
    size_t size = 0;
    const int status = as_file_read_input(path, AS_YAML_SIZE_MAX, &text, &size);
    if (status < 0) {
        yaml_words_report_failure(path, status, diagnostics);
        return status;
    }
    return parse(path, text, size, diagnostics, tree_out);
}

int as_yaml_input_load(const char *path, struct as_diagnostics *diagnostics,
                       struct as_yaml_tree **tree_out)
{
    return yaml_input_load(path, as_yaml_parse, diagnostics, tree_out);
}

int as_yaml_input_load_foreign(const char *path, struct as_diagnostics *diagnostics,
                               struct as_yaml_tree **tree_out)
{
    return yaml_input_load(path, as_yaml_parse_foreign, diagnostics, tree_out);
}
