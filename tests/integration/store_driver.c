/*
 * The store in an API server on its own, for tests/integration/test_store_kubernetes.py; driver.h
 * says how it is talked to. Several stores at a time, by name.
 *
 *   {"ticket": 1, "op": "open", "store": "a", "namespace": "state", "holder": "pod-1"}
 *   {"ticket": 2, "op": "commit", "store": "a", "changes": [["target", "key", "value"],
 *    ["outbox", "gone", null]]}
 *   {"ticket": 3, "op": "dump", "store": "a"}: {"records": {"target": {"key": "value"}, ...}}
 *   {"ticket": 4, "op": "tidy", "store": "a"}
 *   {"ticket": 5, "op": "fill", "store": "a", "kind": "target", "count": 10000, "size": 700,
 *    "each": 500}: so many records, so many in a commit
 *   {"ticket": 6, "op": "close", "store": "a"}
 *
 * Each answer has "status" (0 or a negative errno), "error" and "seconds". Option: --kubeconfig
 * FILE.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/error.h>

#include "driver.h"
#include "real_store.h"

#define STORES 4

static const char *const kinds[AS_STORE_KIND_COUNT] = {"meta", "incident", "target", "intent",
                                                       "outbox"};
static const char *kubeconfig;
static struct driver *driver;
static struct {
    char name[16];
    struct as_store *store;
} stores[STORES];

static struct as_store **find(const char *name)
{
    for (size_t i = 0; i < STORES; i++) {
        if (!stores[i].store && !*stores[i].name)
            snprintf(stores[i].name, sizeof(stores[i].name), "%s", name);
        if (strcmp(stores[i].name, name) == 0)
            return &stores[i].store;
    }
    abort();
}

static enum as_store_kind find_kind(const char *word)
{
    for (unsigned i = 0; i < AS_STORE_KIND_COUNT; i++)
        if (strcmp(kinds[i], word) == 0)
            return (enum as_store_kind)i;
    abort();
}

static int commit(struct as_store *store, const json_t *list, struct as_error *error)
{
    size_t count = json_array_size(list), i;
    struct as_store_change *changes = as_xcalloc(count + 1, sizeof(*changes));
    json_t *item;
    json_array_foreach((json_t *)list, i, item)
    {
        const json_t *key = json_array_get(item, 1), *value = json_array_get(item, 2);
        changes[i] = (struct as_store_change){
            .kind = find_kind(json_string_value(json_array_get(item, 0))),
            .key = json_string_value(key),
            .key_size = json_string_length(key),
            .value = json_string_value(value),
            .value_size = json_string_length(value),
        };
    }
    int status = store->commit(store, changes, count, error);
    free(changes);
    return status;
}

static int add_record(void *context, const void *key, size_t key_size, const void *value,
                      size_t value_size)
{
    char *name = as_xstrndup(key, key_size);
    json_object_set_new(context, name, json_stringn(value, value_size));
    free(name);
    return 0;
}

static json_t *dump(struct as_store *store)
{
    json_t *all = json_object();
    for (unsigned i = 0; i < AS_STORE_KIND_COUNT; i++) {
        json_t *records = json_object();
        if (store->visit(store, (enum as_store_kind)i, add_record, records, NULL) != 0)
            abort();
        json_object_set_new(all, kinds[i], records);
    }
    return all;
}

static long get_number(const json_t *command, const char *key)
{
    return (long)json_integer_value(json_object_get(command, key));
}

static int fill(struct as_store *store, const json_t *command, struct as_error *error)
{
    enum as_store_kind kind = find_kind(driver_get_text(command, "kind"));
    long count = get_number(command, "count"), each = get_number(command, "each");
    size_t size = (size_t)get_number(command, "size");
    struct as_store_change *changes = as_xcalloc((size_t)each, sizeof(*changes));
    char(*keys)[64] = as_xcalloc((size_t)each, sizeof(*keys));
    char *value = as_xmalloc(size + 1);
    int status = 0;
    for (size_t i = 0; i < size; i++)
        value[i] = "{\"labels\":{\"alertname\":\"x\"}}, "[i % 30];
    for (long done = 0; status == 0 && done < count; done += each) {
        for (long i = 0; i < each; i++) {
            snprintf(keys[i], sizeof(keys[i]), "%s/default/apps/v1/Deployment/shop/%ld",
                     kinds[kind], done + i);
            changes[i] = (struct as_store_change){kind, keys[i], strlen(keys[i]), value, size};
        }
        status = store->commit(store, changes, (size_t)each, error);
        if (status == 0)
            store->tidy(store);
    }
    free(changes);
    free(keys);
    free(value);
    return status;
}

static void carry_out(const json_t *command)
{
    const char *op = driver_get_text(command, "op");
    struct as_store **store = find(driver_get_text(command, "store"));
    struct as_error error = AS_ERROR_INIT;
    json_t *records = NULL;
    int64_t start = driver->clock.get_mono(&driver->clock).us;
    int status = 0;
    if (strcmp(op, "open") == 0) {
        status = real_store_open(kubeconfig, driver_get_text(command, "namespace"),
                                 driver_get_text(command, "holder"), store, &error);
    } else if (strcmp(op, "commit") == 0) {
        status = commit(*store, json_object_get(command, "changes"), &error);
    } else if (strcmp(op, "tidy") == 0) {
        (*store)->tidy(*store);
    } else if (strcmp(op, "fill") == 0) {
        status = fill(*store, command, &error);
    } else if (strcmp(op, "dump") == 0) {
        records = dump(*store);
    } else {
        (*store)->close(*store);
        *store = NULL;
    }
    double seconds = (double)(driver->clock.get_mono(&driver->clock).us - start) / 1e6;
    json_t *answer = json_pack("{s:O, s:i, s:s, s:f}", "ticket", json_object_get(command, "ticket"),
                               "status", status, "error", error.text, "seconds", seconds);
    if (records)
        json_object_set_new(answer, "records", records);
    driver_answer(answer);
}

int main(int argc, char **argv)
{
    kubeconfig = driver_get_option(argv, "--kubeconfig");
    driver = driver_open();
    driver_run(carry_out);
    for (size_t i = 0; i < STORES; i++)
        if (stores[i].store)
            stores[i].store->close(stores[i].store);
    driver_close();
    return 0;
}
