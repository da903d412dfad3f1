/*
 * Watches of an API server on their own, for tests/integration/test_watch.py; driver.h says how it
 * is talked to. A watch keeps the names and versions of the objects that it has been told of.
 *
 *   {"ticket": 1, "op": "start", "path": "/api/v1/pods", "selector": "", "is_binary": true}
 *   {"ticket": 2, "op": "look", "watch": 0}
 *
 * Option: --kubeconfig FILE.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/protobuf.h>

#include "driver.h"
#include "kube/kube_watch.h"

#define WATCHES_MAX 16

static struct watched {
    struct as_kube_watch *watch;
    json_t *objects, *listed; /* name: version */
    json_t *failures;
    unsigned lists, binary_objects, events;
} watches[WATCHES_MAX];
static size_t count;

static struct as_kube_client client;
static struct driver *driver;

static const char *get_variable(const char *name)
{
    return getenv(name);
}

static void list_begin(void *context)
{
    json_object_clear(((struct watched *)context)->listed);
}

/* name = 1 and resourceVersion = 6 of metadata = 1. */
static json_t *read_binary(const char *bytes, size_t size)
{
    struct as_protobuf_reader object, metadata;
    struct as_protobuf_field field;
    json_t *known = json_object();
    as_protobuf_reader_init(&object, bytes, size);
    while (as_protobuf_next(&object, &field)) {
        if (field.number != 1 || !as_protobuf_get_message(&field, &metadata))
            continue;
        while (as_protobuf_next(&metadata, &field))
            if (field.number == 1 || field.number == 6)
                json_object_set_new(known, field.number == 1 ? "name" : "resourceVersion",
                                    json_stringn((const char *)field.data, field.size));
    }
    return known;
}

static json_t *read_text(const char *bytes, size_t size)
{
    json_t *whole = json_loadb(bytes, size, 0, NULL);
    json_t *metadata = json_incref(json_object_get(whole, "metadata"));
    json_decref(whole);
    return metadata;
}

static int object(void *context, enum as_kube_verb verb, enum as_kube_form form, const char *bytes,
                  size_t size, struct as_error *error)
{
    struct watched *watched = context;
    json_t *metadata = form == AS_KUBE_JSON ? read_text(bytes, size) : read_binary(bytes, size);
    json_t *known = verb == AS_KUBE_LISTED ? watched->listed : watched->objects;
    const char *name = json_string_value(json_object_get(metadata, "name"));
    if (!name)
        abort();
    watched->binary_objects += form == AS_KUBE_PROTOBUF;
    watched->events += verb != AS_KUBE_LISTED;
    if (verb == AS_KUBE_DELETED)
        json_object_del(known, name);
    else
        json_object_set(known, name, json_object_get(metadata, "resourceVersion"));
    json_decref(metadata);
    return 0;
}

static void list_end(void *context, const char *resource_version)
{
    struct watched *watched = context;
    json_object_clear(watched->objects);
    json_object_update(watched->objects, watched->listed);
    watched->lists++;
}

static void failed(void *context, const char *message)
{
    json_array_append_new(((struct watched *)context)->failures, json_string(message));
}

static void start(const json_t *command)
{
    static const struct as_kube_watch_listener listener = {list_begin, object, list_end, failed};
    const char *selector = driver_get_text(command, "selector");
    const struct as_kube_watch_spec spec = {
        .path = driver_get_text(command, "path"),
        .field_selector = *selector ? selector : NULL,
        .list_operation = "list",
        .watch_operation = "watch",
        .wants_protobuf = json_is_true(json_object_get(command, "is_binary")),
        .seed = count,
    };
    struct watched *watched = &watches[count];
    if (count == WATCHES_MAX)
        abort();
    watched->objects = json_object();
    watched->listed = json_object();
    watched->failures = json_array();
    watched->watch = as_kube_watch_start(&client, &spec, &listener, watched);
    driver_answer(json_pack("{s:O, s:I}", "ticket", json_object_get(command, "ticket"), "watch",
                            (json_int_t)count++));
}

static void look(const json_t *command)
{
    size_t index = (size_t)json_integer_value(json_object_get(command, "watch"));
    const struct watched *watched = &watches[index < count ? index : 0];
    const int64_t age_us =
        driver->clock.get_mono(&driver->clock).us - as_kube_watch_get_fresh_at(watched->watch).us;
    driver_answer(json_pack(
        "{s:O, s:b, s:I, s:O, s:O, s:I, s:I, s:I}", "ticket", json_object_get(command, "ticket"),
        "synced", as_kube_watch_is_synced(watched->watch), "age_us", (json_int_t)age_us, "objects",
        watched->objects, "failures", watched->failures, "lists", (json_int_t)watched->lists,
        "binary", (json_int_t)watched->binary_objects, "events", (json_int_t)watched->events));
}

static void carry_out(const json_t *command)
{
    if (strcmp(driver_get_text(command, "op"), "start") == 0)
        start(command);
    else
        look(command);
}

int main(int argc, char **argv)
{
    driver = driver_open();
    const struct as_access_env env = {
        .http = driver->http,
        .loop = driver->loop,
        .runner = driver->runner,
        .clock = &driver->clock,
        .get_variable = get_variable,
    };
    const struct as_kube_access_config config = {driver_get_option(argv, "--kubeconfig"), NULL};
    struct as_kube_access *access;
    struct as_error error = AS_ERROR_INIT;
    if (as_kube_access_new(&config, &env, &access, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    as_kube_client_init(&client, &env, access);
    driver_run(carry_out);
    for (size_t i = 0; i < count; i++) {
        as_kube_watch_stop(watches[i].watch);
        json_decref(watches[i].objects);
        json_decref(watches[i].listed);
        json_decref(watches[i].failures);
    }
    as_kube_client_deinit(&client);
    as_kube_access_free(access);
    driver_close();
    return 0;
}
