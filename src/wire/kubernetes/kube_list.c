/*
 * One page of a list: see the header.
 *
 * A page is some megabytes of JSON, of which we need some numbers; parsed values would take fifteen
 * times that. So jansson parses one item at a time, in a pool that is freed before the next item.
 * This file only follows the braces, brackets and commas between items.
 */
#include "kube_list.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/wire/kubernetes_pods.h>

#include "json/json_pool.h"
#include "json/reader.h"

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
typedef int take_fn(struct reader *reader, const json_t *value); /* `value` is valid for the call */

struct member {
    const char *name;
    read_fn *read;
};

static int fail(const struct reader *reader, const char *what)
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

static bool accept(struct reader *reader, char wanted)
{
    if (peek(reader) != wanted)
        return false;
    reader->at++;
    return true;
}

static int take_next_value(struct reader *reader, take_fn *take)
{
    json_error_t problem = {.line = 0};
    /* An annotation may contain \u0000: no reason to refuse the whole list. */
    const json_t *value =
        json_loadb(reader->at, (size_t)(reader->end - reader->at),
                   JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, &problem);
    if (!value && json_pool_is_exhausted())
        return fail(reader, "too many values at once");
    if (problem.position > 0)
        reader->at += problem.position;
    return value ? take(reader, value) : fail(reader, problem.text);
}

static int read_value(struct reader *reader, take_fn *take)
{
    json_pool_enter(AS_KUBE_ITEM_MEMORY_MAX);
    int status = take_next_value(reader, take);
    json_pool_leave();
    return status;
}

static int take_nothing(struct reader *reader, const json_t *value)
{
    return 0;
}

static int read_other(struct reader *reader)
{
    return read_value(reader, take_nothing);
}

static int take_kind(struct reader *reader, const json_t *value)
{
    reader->is_list = as_str_equal(json_string_value(value), reader->kind);
    return 0;
}

static int read_kind(struct reader *reader)
{
    return read_value(reader, take_kind);
}

static int take_metadata(struct reader *reader, const json_t *value)
{
    if (!json_is_object(value) && !json_is_null(value)) {
        as_error_set(reader->error, "metadata: expected an object");
        return -EBADMSG;
    }
    const char *next = as_json_find_text(value, "continue");
    free(reader->next);
    reader->next = as_str_is_empty(next) ? NULL : as_xstrdup(next);
    return 0;
}

static int read_metadata(struct reader *reader)
{
    return read_value(reader, take_metadata);
}

static int take_item(struct reader *reader, const json_t *value)
{
    const size_t item = reader->item++;
    int status = -EBADMSG;
    if (json_is_object(value))
        status = reader->take(reader->context, value, reader->error);
    else
        as_error_set(reader->error, "expected an object");
    if (status == -EBADMSG)
        as_error_wrap(reader->error, "items[%zu]", item);
    return status;
}

static int take_no_items(struct reader *reader, const json_t *value)
{
    if (json_is_null(value))
        return 0;
    as_error_set(reader->error, "items: expected a list");
    return -EBADMSG;
}

static int read_items(struct reader *reader)
{
    if (!accept(reader, '['))
        return read_value(reader, take_no_items);
    if (accept(reader, ']'))
        return 0;
    do {
        int status = read_value(reader, take_item);
        if (status)
            return status;
    } while (accept(reader, ','));
    return accept(reader, ']') ? 0 : fail(reader, "expected ',' or ']'");
}

static int take_name(struct reader *reader, const json_t *value)
{
    static const struct member members[] = {
        {"kind", read_kind}, {"metadata", read_metadata}, {"items", read_items}};
    static const struct member other = {NULL, read_other};
    if (!json_is_string(value))
        return fail(reader, "expected a string");
    reader->member = &other;
    for (size_t i = 0; i < AS_ARRAY_SIZE(members); i++)
        if (strcmp(members[i].name, json_string_value(value)) == 0)
            reader->member = &members[i];
    return 0;
}

static int read_member(struct reader *reader)
{
    int status = read_value(reader, take_name);
    if (status)
        return status;
    if (!accept(reader, ':'))
        return fail(reader, "expected ':'");
    return reader->member->read(reader);
}

static int read_page(struct reader *reader)
{
    const char *nul = memchr(reader->at, '\0', (size_t)(reader->end - reader->at));
    if (nul) { /* jansson skips some NULs without counting them */
        reader->at = nul;
        return fail(reader, "a NUL");
    }
    if (!accept(reader, '{')) {
        as_error_set(reader->error, "expected a JSON object");
        return -EBADMSG;
    }
    if (!accept(reader, '}')) {
        do {
            int status = read_member(reader);
            if (status)
                return status;
        } while (accept(reader, ','));
        if (!accept(reader, '}'))
            return fail(reader, "expected ',' or '}'");
    }
    if (peek(reader) != '\0' || reader->at < reader->end)
        return fail(reader, "expected the end");
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
    int status = read_page(&reader);
    if (status)
        free(reader.next);
    else
        *next_out = reader.next;
    return status;
}
