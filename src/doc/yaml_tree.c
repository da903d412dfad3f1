/*
 * Builds a tree of libyaml's events. The tree lives in one arena; children are collected on a stack
 * and copied in one piece when their collection ends. The recursion is as deep as the document,
 * which is bounded.
 *
 * libyaml accepts more than these files may have (anchors, tags, duplicate keys, ...): this is
 * reported here and parsing goes on. If the rest is unreadable, parsing ends.
 *
 * In files of other programs an alias is the anchored node itself: nothing is copied, but the node
 * counts again, so that a walk over the tree is bounded too.
 */
#include <alertscaler/doc/yaml_tree.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/str.h>

#include "yaml_anchors.h"
#include "yaml_source.h"
#include "yaml_words.h"

#define TOO_DEEP "nested too deeply (more than 32 levels)"
#define TOO_MANY "the file holds more than 1000000 values"

struct as_yaml_tree {
    struct yaml_source source;
    struct as_arena arena;
    const struct as_yaml_node *root;
};

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

static struct as_yaml_place make_place(yaml_mark_t start, yaml_mark_t end)
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

static int fail(struct builder *builder, struct as_yaml_place place, const char *message)
{
    flaw(builder, place, message);
    return -EINVAL;
}

/* libyaml's error for a text it cannot read; for the two most common mistakes also the reason. */
static int fail_syntax(struct builder *builder)
{
    const yaml_parser_t *parser = &builder->parser;
    if (parser->error == YAML_READER_ERROR) {
        struct as_yaml_place place =
            yaml_source_find_place(&builder->tree->source, parser->problem_offset);
        return fail(builder, place, "a control character; only printable text is allowed");
    }
    if (parser->error == YAML_MEMORY_ERROR)
        return fail(builder, (struct as_yaml_place){1, 1, 1}, "not enough memory to read this");

    struct as_yaml_place place = make_place(parser->problem_mark, parser->problem_mark);
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
    AS_CLEANUP(as_free_p)
    char *message =
        as_xasprintf("not valid YAML: %s%s%s", yaml_words_explain(parser->problem), context, why);
    return fail(builder, place, message);
}

static int next_event(struct builder *builder, yaml_event_t *event_out)
{
    return yaml_parser_parse(&builder->parser, event_out) ? 0 : fail_syntax(builder);
}

static struct as_yaml_node *add_node(struct builder *builder, enum as_yaml_kind kind,
                                     const yaml_event_t *event)
{
    struct as_yaml_node *node = as_arena_alloc(&builder->tree->arena, 1, sizeof(*node));
    node->kind = kind;
    node->place = make_place(event->start_mark, event->end_mark);
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
    struct as_yaml_node *node = add_node(builder, AS_YAML_SCALAR, event);
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
    struct as_yaml_place place = make_place(event->start_mark, event->end_mark);
    if (!anchor)
        return fail(builder, place, "an alias (*) of what is not named above with &");
    if (!anchor->node)
        return fail(builder, place, "an alias (*) of what it stands in itself");
    if (builder->depth + anchor->height > AS_YAML_DEPTH_MAX)
        return fail(builder, place, TOO_DEEP);
    builder->node_count += anchor->weight;
    if (builder->node_count > AS_YAML_NODES_MAX)
        return fail(builder, place, TOO_MANY);
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
    struct as_yaml_node *node = add_node(builder, AS_YAML_SCALAR, event);
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

static int compare_keys(const void *left, const void *right)
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
    qsort(sorted, map->count, sizeof(*sorted), compare_keys);
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
        return fail(builder, node->place, TOO_DEEP);
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
    struct as_yaml_node *node = add_node(builder, is_list ? AS_YAML_LIST : AS_YAML_MAP, event);

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
        return fail(builder, make_place(event->start_mark, event->end_mark), TOO_MANY);
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
        return fail(builder, root->place, "the file is empty");
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
        struct as_yaml_place place = make_place(event.start_mark, event.end_mark);
        if (type == YAML_DOCUMENT_START_EVENT && documents++ > 0 && !builder->is_stream)
            status = fail(builder, place, "a second document; a file holds one");
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
        return fail(builder, (struct as_yaml_place){1, 1, 1}, "the file is larger than 16 MiB");
    if (!nul && as_str_is_utf8(text, size))
        return 0;
    const size_t good = yaml_source_measure_utf8(text, offset);
    bool is_nul = nul && good == offset;
    return fail(builder, yaml_source_find_place(&builder->tree->source, good),
                is_nul ? "a NUL byte: this is no text file" : "not valid UTF-8");
}

enum form { OWN, FOREIGN, DOCUMENTS };

static int parse(const char *file, const char *text, size_t size, enum form form,
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
        return fail(&builder, (struct as_yaml_place){1, 1, 1}, "not enough memory to read this");
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
    return parse(file, text, size, OWN, diagnostics, tree_out);
}

int as_yaml_parse_foreign(const char *file, const char *text, size_t size,
                          struct as_diagnostics *diagnostics, struct as_yaml_tree **tree_out)
{
    return parse(file, text, size, FOREIGN, diagnostics, tree_out);
}

static int load(const char *path, enum form form, struct as_diagnostics *diagnostics,
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
    return parse(path, text, size, form, diagnostics, tree_out);
}

int as_yaml_load(const char *path, struct as_diagnostics *diagnostics,
                 struct as_yaml_tree **tree_out)
{
    return load(path, OWN, diagnostics, tree_out);
}

int as_yaml_load_foreign(const char *path, struct as_diagnostics *diagnostics,
                         struct as_yaml_tree **tree_out)
{
    return load(path, FOREIGN, diagnostics, tree_out);
}

int as_yaml_load_documents(const char *path, struct as_diagnostics *diagnostics,
                           struct as_yaml_tree **tree_out)
{
    return load(path, DOCUMENTS, diagnostics, tree_out);
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

const struct yaml_source *yaml_tree_get_source(const struct as_yaml_tree *tree)
{
    return &tree->source;
}
