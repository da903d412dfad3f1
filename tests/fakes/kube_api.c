/*
 * The ConfigMaps of an API server: see the header.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/kube/kube_access.h>
#include <alertscaler/kube/kube_store.h>

#include "kube_api.h"

#define DATA_MAX (1024 * 1024)     /* Kubernetes': of a ConfigMap */
#define BODY_MAX (3 * 1024 * 1024) /* and of a request */

struct kube_api_object {
    struct kube_api_object *next; /* by name */
    char *name;
    json_t *document;
};

static char *last_body; /* of the answer, good until the next one */

static struct kube_api_object *find(const struct kube_api *api, const char *name)
{
    struct kube_api_object *object = api->objects;
    while (object && strcmp(object->name, name) != 0)
        object = object->next;
    return object;
}

static size_t measure(const json_t *document)
{
    const char *key;
    json_t *value;
    size_t size = 0;
    json_object_foreach(json_object_get(document, "data"), key, value) size +=
        strlen(key) + json_string_length(value);
    return size;
}

static void set_version(struct kube_api *api, json_t *document)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, ++api->version);
    json_object_set_new(json_object_get(document, "metadata"), "resourceVersion",
                        json_string(text));
}

static const char *get_meta(const json_t *document, const char *key)
{
    return json_string_value(json_object_get(json_object_get(document, "metadata"), key));
}

static struct world_answer answer(int status, json_t *document, const char *message)
{
    if (!document)
        document = json_pack("{s:s, s:s}", "kind", "Status", "message", message);
    free(last_body);
    last_body = json_dumps(document, JSON_COMPACT);
    json_decref(document);
    return (struct world_answer){.status = status, .body = last_body};
}

static struct world_answer answer_object(int status, const struct kube_api_object *object)
{
    return answer(status, json_incref(object->document), NULL);
}

static void insert(struct kube_api *api, struct kube_api_object *object)
{
    struct kube_api_object **at = &api->objects;
    while (*at && strcmp((*at)->name, object->name) < 0)
        at = &(*at)->next;
    object->next = *at;
    *at = object;
}

static struct world_answer write_object(struct kube_api *api, const struct world_request *request,
                                        const char *name)
{
    json_t *document = json_loads(request->body, JSON_REJECT_DUPLICATES, NULL);
    cr_assert(document, "not JSON: %.200s", request->body);
    cr_assert_str_eq(json_string_value(json_object_get(document, "kind")), "ConfigMap");
    cr_assert_str_eq(get_meta(document, "namespace"), "alertscaler");
    cr_assert(json_object_get(json_object_get(document, "metadata"), "labels"));
    const bool is_new = strcmp(request->method, "POST") == 0;
    const char *version = get_meta(document, "resourceVersion");
    size_t size = measure(document);
    struct kube_api_object *object = find(api, is_new ? get_meta(document, "name") : name);
    struct world_answer refusal = {0};
    if (strlen(request->body) > BODY_MAX)
        refusal = answer(413, NULL, "request is too large");
    else if (size > DATA_MAX)
        refusal = answer(422, NULL, "Too long: must have at most 1048576 bytes");
    else if (is_new && object)
        refusal = answer(409, NULL, "already exists");
    else if (!is_new && !object)
        refusal = answer(404, NULL, "not found");
    else if (!is_new && strcmp(version, get_meta(object->document, "resourceVersion")) != 0)
        refusal = answer(409, NULL, "the object has been modified");
    if (refusal.status) {
        json_decref(document);
        return refusal;
    }
    cr_assert(is_new == !version, "an unconditional write");
    if (is_new) {
        object = as_xcalloc(1, sizeof(*object));
        object->name = as_xstrdup(get_meta(document, "name"));
        insert(api, object);
    }
    json_decref(object->document);
    object->document = document;
    set_version(api, document);
    api->writes++;
    if (size > api->largest)
        api->largest = size;
    if (!strstr(request->headers, "as=PartialObjectMetadata"))
        return answer_object(is_new ? 201 : 200, object);
    return answer(is_new ? 201 : 200,
                  json_pack("{s:s, s:O}", "kind", "PartialObjectMetadata", "metadata",
                            json_object_get(document, "metadata")),
                  NULL);
}

/* "limit" and "continue" of the URL. */
static struct world_answer list(const struct kube_api *api, const char *url)
{
    const char *limit_text = strstr(url, "limit="), *from = strstr(url, "continue=");
    cr_assert(strstr(url, "labelSelector=app.kubernetes.io"), "%s", url);
    int limit = limit_text ? atoi(limit_text + strlen("limit=")) : 1000;
    const struct kube_api_object *object = api->objects;
    json_t *items = json_array(), *metadata = json_pack("{s:s}", "resourceVersion", "1");
    while (from && object && strcmp(object->name, from + strlen("continue=")) < 0)
        object = object->next;
    for (; object && limit > 0; limit--, object = object->next)
        json_array_append(items, object->document);
    if (object)
        json_object_set_new(metadata, "continue", json_string(object->name));
    return answer(
        200,
        json_pack("{s:s, s:o, s:o}", "kind", "ConfigMapList", "metadata", metadata, "items", items),
        NULL);
}

static struct world_answer carry_out(struct kube_api *api, const struct world_request *request,
                                     const char *name)
{
    if (strcmp(request->method, "GET") == 0 && !name)
        return list(api, request->url);
    if (strcmp(request->method, "GET") == 0)
        return find(api, name) ? answer_object(200, find(api, name)) : answer(404, NULL, "gone");
    if (api->has_no_namespace)
        return answer(404, NULL, "namespaces \"alertscaler\" not found");
    return write_object(api, request, name);
}

static struct world_answer serve(void *context, const struct world_request *asked)
{
    const struct world_request kept = *asked, *request = &kept; /* a fault may make others */
    static const char path[] = "https://k/api/v1/namespaces/alertscaler/configmaps";
    struct kube_api *api = context;
    cr_assert(strncmp(request->url, path, sizeof(path) - 1) == 0, "%s", request->url);
    const char *rest = request->url + sizeof(path) - 1;
    const char *name = *rest == '/' ? rest + 1 : NULL;
    enum kube_api_fault fault =
        api->fault ? api->fault(api->fault_context, api->requests, request->method, name)
                   : KUBE_API_NONE;
    api->requests++;
    struct world_answer lost = {.outcome = AS_HTTP_TIMEOUT, .error = "no answer in 5 s"};
    switch (fault) {
    case KUBE_API_LOST_BEFORE: return lost;
    case KUBE_API_LOST_AFTER: (void)carry_out(api, request, name); return lost;
    case KUBE_API_CUT_AFTER:
        (void)carry_out(api, request, name);
        return (struct world_answer){.outcome = AS_HTTP_BROKEN, .error = "connection reset"};
    case KUBE_API_UNREACHABLE:
        return (struct world_answer){.outcome = AS_HTTP_UNREACHABLE, .error = "refused"};
    case KUBE_API_ERROR: return answer(500, NULL, "etcdserver: leader changed");
    case KUBE_API_THROTTLED: {
        struct world_answer throttled = answer(429, NULL, "too many requests");
        throttled.retry_after = "1";
        return throttled;
    }
    case KUBE_API_FORBIDDEN: return answer(403, NULL, "configmaps is forbidden");
    case KUBE_API_NONE:
    case KUBE_API_FAULTS: break;
    }
    return carry_out(api, request, name);
}

static const char *no_variable(const char *name)
{
    (void)name;
    return NULL;
}

void kube_api_init(struct kube_api *api)
{
    *api = (struct kube_api){.version = 1000};
    world_init(&api->world);
    api->world.serve = serve;
    api->world.serve_context = api;
    api->env = (struct as_access_env){
        .http = &api->world.http,
        .loop = &api->world.loop,
        .runner = &api->world.runner,
        .clock = &api->world.clock,
        .get_variable = no_variable,
    };
    snprintf(api->kubeconfig, sizeof(api->kubeconfig), "/tmp/as-kube-api-XXXXXX");
    int fd = mkstemp(api->kubeconfig);
    cr_assert(fd >= 0);
    dprintf(fd, "current-context: c\nclusters: [{name: c, cluster: {server: 'https://k'}}]\n"
                "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
                "users: [{name: u, user: {token: t}}]\n");
    close(fd);
}

void kube_api_deinit(struct kube_api *api)
{
    while (api->objects)
        kube_api_delete(api, api->objects->name);
    free(last_body);
    last_body = NULL;
    unlink(api->kubeconfig);
    world_deinit(&api->world);
}

static void turn(void *context)
{
    struct kube_api *api = context;
    world_advance(&api->world, AS_US_PER_S / 20);
}

int kube_api_open(struct kube_api *api, const char *holder, struct as_store **store_out,
                  struct as_error *error)
{
    static uint64_t seed;
    const struct as_kube_access_config where = {api->kubeconfig, NULL};
    struct as_store_kubernetes_config config = {
        .namespace_ = "alertscaler",
        .holder = holder,
        .env = &api->env,
        .turn = turn,
        .context = api,
        .deadline = api->deadline,
        .seed = ++seed,
    };
    cr_assert_eq(as_kube_access_new(&where, &api->env, &config.access, error), 0, "%s",
                 error->text);
    return as_store_kubernetes_open(&config, store_out, error);
}

void kube_api_touch(struct kube_api *api, const char *name)
{
    set_version(api, find(api, name)->document);
}

void kube_api_delete(struct kube_api *api, const char *name)
{
    struct kube_api_object **at = &api->objects;
    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    struct kube_api_object *object = *at;
    cr_assert(object);
    *at = object->next;
    json_decref(object->document);
    free(object->name);
    free(object);
}

void kube_api_set(struct kube_api *api, const char *name, const char *key, const char *text)
{
    struct kube_api_object *object = find(api, name);
    json_t *data = json_object_get(object->document, "data");
    if (*text)
        json_object_set_new(data, key, json_string(text));
    else
        json_object_del(data, key);
    set_version(api, object->document);
}

size_t kube_api_count(const struct kube_api *api)
{
    size_t count = 0;
    for (const struct kube_api_object *object = api->objects; object; object = object->next)
        count++;
    return count;
}

size_t kube_api_get_size(const struct kube_api *api)
{
    size_t size = 0;
    for (const struct kube_api_object *object = api->objects; object; object = object->next)
        size += measure(object->document);
    return size;
}

const char *kube_api_get(const struct kube_api *api, const char *name, const char *key)
{
    const struct kube_api_object *object = find(api, name);
    return object
               ? json_string_value(json_object_get(json_object_get(object->document, "data"), key))
               : NULL;
}
