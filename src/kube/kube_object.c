/*
 * Objects of the Kubernetes API as JSON: one object of an expected kind, and one page of a list,
 * item by item. No input or output.
 */
#include "kube_object.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_scan.h>

#include "kube_pods.h"

int kube_object_load(struct tree *tree, const char *json, size_t size, const char *kind,
                     struct as_error *error)
{
    const int status = tree_load_object(tree, json, size, error);
    if (status)
        return status;
    if (as_str_equal(tree_find_text(tree->root, "kind"), kind))
        return 0;
    as_error_set(error, "kind: expected %s", kind);
    return -EBADMSG;
}

bool kube_element_is(const struct tree_value *element, const struct as_field_step *step)
{
    char number[AS_NUMBER_SIZE];
    const struct tree_value *member = tree_find(element, step->name);
    if (tree_is(member, TREE_INTEGER)) {
        (void)as_number_print_i64(member->integer, number);
        return strcmp(number, step->value) == 0;
    }
    return as_str_equal(tree_get_text(member), step->value);
}

void kube_object_read_version(struct as_reader *metadata, char *version_out, size_t size)
{
    *version_out = '\0';
    as_read_copy(metadata, "resourceVersion", version_out, size);
    if (!*version_out)
        as_read_fail(metadata, "resourceVersion", "missing");
}

const char *kube_object_read_name(struct as_reader *metadata, const char *key, size_t max,
                                  const char *what)
{
    const struct tree_value *value = as_read_any(metadata, key);
    const char *name = tree_get_text(value);
    if (!as_str_is_empty(name) && value->size <= max && *name != '.' && !strstr(name, TREE_NUL))
        return name;
    as_read_fail(metadata, key, "expected a %s of 1 to %zu bytes", what, max);
    return "";
}

/*
 * One page of a list.
 *
 * A page is some megabytes of JSON, of which we need some numbers; parsed values would take fifteen
 * times that. So one item at a time becomes a tree, which is freed before the next item. These
 * functions only follow the braces, brackets and commas between items.
 */

struct reader {
    const char *begin, *at, *end;
    const char *kind; /* expected kind */
    kube_item_fn *take;
    void *context;
    struct as_error *error;
    const struct member *member; /* last member read */
    size_t item;                 /* of the page */
    bool is_list;
    char *next;
};

typedef int read_fn(struct reader *reader);
typedef int take_fn(struct reader *reader,
                    const struct tree_value *value); /* `value` is valid for the call */

struct member {
    const char *name;
    read_fn *read;
};

static int list_fail(const struct reader *reader, const char *what)
{
    as_error_set(reader->error, "not JSON: byte %zu: %s", (size_t)(reader->at - reader->begin),
                 what);
    return -EBADMSG;
}

static char peek(struct reader *reader)
{
    while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) && *reader->at)
        reader->at++;
    return reader->at < reader->end ? *reader->at : '\0';
}

static bool list_accept(struct reader *reader, char wanted)
{
    if (peek(reader) != wanted)
        return false;
    reader->at++;
    return true;
}

/* Moves behind the next value. */
static int pass_value(struct reader *reader)
{
    struct json_scan scan;
    enum json_token token;
    json_scan_init(&scan, 0);
    json_scan_feed(&scan, reader->at, (size_t)(reader->end - reader->at));
    do
        token = json_scan_next(&scan);
    while (token == JSON_TOKEN_OBJECT || token == JSON_TOKEN_ARRAY);
    reader->at = scan.at;
    json_scan_deinit(&scan);
    if (token == JSON_TOKEN_MORE)
        return list_fail(reader, "premature end of input");
    return token == JSON_TOKEN_ERROR ? list_fail(reader, "invalid token") : 0;
}

/* Texts may contain \u0000: no reason to refuse the whole list. */
static int list_read_value(struct reader *reader, take_fn *take)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(AS_KUBE_ITEM_MEMORY_MAX);
    const char *from = reader->at;
    int status = pass_value(reader);
    if (status)
        return status;
    tree.is_any = true;
    if (tree_parse(&tree, from, (size_t)(reader->at - from), NULL, reader->error) < 0)
        return -EBADMSG;
    return take(reader, tree.root);
}

static int take_nothing(struct reader *reader, const struct tree_value *value)
{
    return 0;
}

static int read_other(struct reader *reader)
{
    return list_read_value(reader, take_nothing);
}

static int take_kind(struct reader *reader, const struct tree_value *value)
{
    reader->is_list = as_str_equal(tree_get_text(value), reader->kind);
    return 0;
}

static int read_kind(struct reader *reader)
{
    return list_read_value(reader, take_kind);
}

static int list_take_metadata(struct reader *reader, const struct tree_value *value)
{
    if (value->kind != TREE_OBJECT && value->kind != TREE_NULL) {
        as_error_set(reader->error, "metadata: expected an object");
        return -EBADMSG;
    }
    const char *next = tree_find_text(value, "continue");
    free(reader->next);
    reader->next = as_str_is_empty(next) ? NULL : as_xstrdup(next);
    return 0;
}

static int read_metadata(struct reader *reader)
{
    return list_read_value(reader, list_take_metadata);
}

static int take_item(struct reader *reader, const struct tree_value *value)
{
    const size_t item = reader->item++;
    int status = -EBADMSG;
    if (value->kind == TREE_OBJECT)
        status = reader->take(reader->context, value, reader->error);
    else
        as_error_set(reader->error, "expected an object");
    if (status == -EBADMSG)
        as_error_wrap(reader->error, "items[%zu]", item);
    return status;
}

static int take_no_items(struct reader *reader, const struct tree_value *value)
{
    if (value->kind == TREE_NULL)
        return 0;
    as_error_set(reader->error, "items: expected a list");
    return -EBADMSG;
}

static int read_items(struct reader *reader)
{
    if (!list_accept(reader, '['))
        return list_read_value(reader, take_no_items);
    if (list_accept(reader, ']'))
        return 0;
    do {
        int status = list_read_value(reader, take_item);
        if (status)
            return status;
    } while (list_accept(reader, ','));
    return list_accept(reader, ']') ? 0 : list_fail(reader, "expected ',' or ']'");
}

static int list_take_name(struct reader *reader, const struct tree_value *value)
{
    static const struct member members[] = {
        {"kind", read_kind}, {"metadata", read_metadata}, {"items", read_items}};
    static const struct member other = {NULL, read_other};
    if (value->kind != TREE_TEXT)
        return list_fail(reader, "expected a string");
    reader->member = &other;
    for (size_t i = 0; i < AS_ARRAY_SIZE(members); i++)
        if (strcmp(members[i].name, value->text) == 0)
            reader->member = &members[i];
    return 0;
}

static int list_read_member(struct reader *reader)
{
    int status = list_read_value(reader, list_take_name);
    if (status)
        return status;
    if (!list_accept(reader, ':'))
        return list_fail(reader, "expected ':'");
    return reader->member->read(reader);
}

static int list_read_page(struct reader *reader)
{
    const char *nul = memchr(reader->at, '\0', (size_t)(reader->end - reader->at));
    if (nul) {
        reader->at = nul;
        return list_fail(reader, "a NUL");
    }
    if (!list_accept(reader, '{')) {
        as_error_set(reader->error, "expected a JSON object");
        return -EBADMSG;
    }
    if (!list_accept(reader, '}')) {
        do {
            int status = list_read_member(reader);
            if (status)
                return status;
        } while (list_accept(reader, ','));
        if (!list_accept(reader, '}'))
            return list_fail(reader, "expected ',' or '}'");
    }
    if (peek(reader) != '\0' || reader->at < reader->end)
        return list_fail(reader, "expected the end");
    if (!reader->is_list) {
        as_error_set(reader->error, "kind: expected %s", reader->kind);
        return -EBADMSG;
    }
    return 0;
}

int kube_list_read(const char *json, size_t size, const char *kind, kube_item_fn *take,
                   void *context, char **next_out, struct as_error *error)
{
    struct reader reader = {.begin = json,
                            .at = json,
                            .end = json + size,
                            .kind = kind,
                            .take = take,
                            .context = context,
                            .error = error};
    int status = list_read_page(&reader);
    if (status)
        free(reader.next);
    else
        *next_out = reader.next;
    return status;
}
