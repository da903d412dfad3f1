/*
 * Documents of the Kubernetes API that scaling needs, and input and output of credential plugins.
 * The codec does no input or output.
 */
#include <alertscaler/kube/kube_documents.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_tree.h>
#include <alertscaler/doc/json_writer.h>

#include "kube_object.h"

/*
 * Credential plugins of kubectl (client.authentication.k8s.io, v1 and v1beta1, which differ in
 * the version only).
 */

static void set_string(json_t *object, const char *name, const char *text)
{
    if (text)
        json_object_set_new(object, name, json_string(text));
}

void as_kube_exec_info_encode(const struct as_kube_exec_info *info, struct as_buf *out)
{
    json_t *spec = json_pack("{s:b}", "interactive", 0);
    if (info->server) {
        json_t *cluster = json_object();
        set_string(cluster, "server", info->server);
        set_string(cluster, "tls-server-name", info->tls_server_name);
        set_string(cluster, "certificate-authority-data", info->ca_base64);
        set_string(cluster, "proxy-url", info->proxy_url);
        if (info->insecure_skip_verify)
            json_object_set_new(cluster, "insecure-skip-tls-verify", json_true());
        json_object_set_new(spec, "cluster", cluster);
    }
    AS_CLEANUP(as_json_free_p)
    json_t *json = json_pack("{s:s, s:s, s:o}", "apiVersion", info->api_version, "kind",
                             "ExecCredential", "spec", spec);
    as_json_dump(json, out);
}

static char *copy_string(const struct tree_value *object, const char *name)
{
    const char *text = tree_find_text(object, name);
    return as_str_is_empty(text) ? NULL : as_xstrdup(text);
}

static int plugin_check_head(const struct tree_value *object, const char *api_version,
                             struct as_error *error)
{
    const char *kind = tree_find_text(object, "kind");
    const char *version = tree_find_text(object, "apiVersion");
    if (!as_str_equal(kind, "ExecCredential")) {
        as_error_set(error, "kind: expected ExecCredential");
        return -EBADMSG;
    }
    if (!as_str_equal(version, api_version)) {
        as_error_set(error, "apiVersion: expected %s, as the kubeconfig says", api_version);
        return -EBADMSG;
    }
    return 0;
}

int as_kube_exec_credential_decode(const char *json, size_t size, const char *api_version,
                                   struct as_kube_exec_credential *credential_out,
                                   struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    int code = tree_load_object(&tree, json, size, error);
    if (code || (code = plugin_check_head(tree.root, api_version, error)))
        return code;
    const struct tree_value *status = tree_find(tree.root, "status");
    const char *expires = tree_find_text(status, "expirationTimestamp");
    as_maybe_time time = {.set = expires != NULL};
    if (expires && as_wall_time_parse(expires, strlen(expires), &time.at) < 0) {
        as_error_set(error, "status.expirationTimestamp: expected a time in RFC 3339");
        return -EBADMSG;
    }
    struct as_kube_exec_credential credential = {
        .token = copy_string(status, "token"),
        .cert_pem = copy_string(status, "clientCertificateData"),
        .key_pem = copy_string(status, "clientKeyData"),
        .expires = time,
    };
    const char *problem = NULL;
    if (!credential.token && !credential.cert_pem)
        problem = "status: neither token nor clientCertificateData";
    else if (!credential.cert_pem != !credential.key_pem)
        problem = "status: clientCertificateData and clientKeyData come together";
    if (problem) {
        as_kube_exec_credential_deinit(&credential);
        as_error_set(error, "%s", problem);
        return -EBADMSG;
    }
    *credential_out = credential;
    return 0;
}

void as_kube_exec_credential_deinit(struct as_kube_exec_credential *credential)
{
    as_wipe_free(credential->token);
    as_wipe_free(credential->cert_pem);
    as_wipe_free(credential->key_pem);
    *credential = (struct as_kube_exec_credential){.token = NULL};
}

/* Objects. */

#define EVENT_MESSAGE_MAX 1024 /* the API's own limit */
#define RESOURCES_MAX     4096 /* in one group version; the largest groups have some hundred */

int as_kube_scale_decode(const char *json, size_t size, struct as_kube_scale *scale_out,
                         struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct as_reader root, metadata, spec, status;
    struct as_kube_scale scale = {.replicas = 0};
    int code = kube_object_load(&tree, json, size, "Scale", error);
    if (code)
        return code;
    as_read_lenient(&root, tree.root, error);
    as_read_object(&metadata, &root, "metadata");
    as_read_object(&spec, &root, "spec");
    as_read_object(&status, &root, "status");
    as_read_i32(&spec, "replicas", 0, &scale.replicas);
    as_read_i32(&status, "replicas", 0, &scale.status_replicas);
    as_read_copy(&metadata, "uid", scale.uid, sizeof(scale.uid));
    kube_object_read_version(&metadata, scale.resource_version, sizeof(scale.resource_version));
    code = as_read_result(&root);
    if (code == 0)
        *scale_out = scale;
    return code;
}

/* Leaves out empty values, as the API does. */
static void kube_documents_set_string(json_t *object, const char *name, const char *text)
{
    if (!as_str_is_empty(text))
        json_object_set_new(object, name, json_string(text));
}

void as_kube_scale_encode(const struct as_kube_scale_update *update, struct as_buf *out)
{
    json_t *metadata = json_object();
    kube_documents_set_string(metadata, "name", update->name);
    kube_documents_set_string(metadata, "namespace", update->namespace_);
    kube_documents_set_string(metadata, "resourceVersion", update->resource_version);
    AS_CLEANUP(as_json_free_p)
    json_t *scale = json_pack("{s:s, s:s, s:o, s:{s:i}}", "apiVersion", update->api_version, "kind",
                              "Scale", "metadata", metadata, "spec", "replicas", update->replicas);
    as_json_dump(scale, out);
}

/* "deployments/scale" -> the length of "deployments"; 0 if it is no scale subresource. */
static size_t get_scale_stem(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash && strcmp(slash, "/scale") == 0 ? (size_t)(slash - name) : 0;
}

/* Servers before 1.8 do not name the version of Scale: it is the list's own version. */
static char *get_scale_version(const struct tree_value *subresource, const char *list_version)
{
    const char *group = tree_find_text(subresource, "group");
    const char *version = tree_find_text(subresource, "version");
    if (as_str_is_empty(version))
        return as_xstrdup(list_version);
    return as_str_is_empty(group) ? as_xstrdup(version) : as_xasprintf("%s/%s", group, version);
}

static void find_scale_version(const struct tree_value *entries, struct as_kube_resource *resource,
                               const char *list_version)
{
    size_t stem, plural_size = strlen(resource->plural);
    for (const struct tree_value *entry = entries->first; entry; entry = entry->next) {
        const char *name = tree_find_text(entry, "name");
        if (!name || !(stem = get_scale_stem(name)))
            continue;
        if (stem == plural_size && memcmp(name, resource->plural, stem) == 0) {
            resource->scale_version = get_scale_version(entry, list_version);
            return;
        }
    }
}

static struct as_kube_resources *decode_entries(const struct tree_value *entries,
                                                const char *list_version)
{
    struct as_kube_resources *list = as_xcalloc(1, sizeof(*list));
    list->items = as_xcalloc(entries->size, sizeof(*list->items));
    for (const struct tree_value *entry = entries->first; entry; entry = entry->next) {
        const char *name = tree_find_text(entry, "name");
        const char *kind = tree_find_text(entry, "kind");
        if (as_str_is_empty(name) || as_str_is_empty(kind) || strchr(name, '/'))
            continue;
        struct as_kube_resource *resource = &list->items[list->count++];
        resource->plural = as_xstrdup(name);
        resource->kind = as_xstrdup(kind);
        resource->is_namespaced = tree_is_true(tree_find(entry, "namespaced"));
        find_scale_version(entries, resource, list_version);
    }
    return list;
}

int as_kube_resources_decode(const char *json, size_t size, struct as_kube_resources **list_out,
                             struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    int status = tree_load_object(&tree, json, size, error);
    if (status)
        return status;
    const char *list_version = tree_find_text(tree.root, "groupVersion");
    const struct tree_value *entries = tree_find(tree.root, "resources");
    if (tree_is(entries, TREE_ARRAY) && entries->size > RESOURCES_MAX) {
        as_error_set(error, "resources: more than %d", RESOURCES_MAX);
        return -EBADMSG;
    }
    if (as_str_is_empty(list_version) || !tree_is(entries, TREE_ARRAY)) {
        as_error_set(error, "not an APIResourceList: %s is missing",
                     as_str_is_empty(list_version) ? "groupVersion" : "resources");
        return -EBADMSG;
    }
    *list_out = decode_entries(entries, list_version);
    return 0;
}

struct as_kube_resources *as_kube_resources_free(struct as_kube_resources *list)
{
    if (!list)
        return NULL;
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].kind);
        free(list->items[i].plural);
        free(list->items[i].scale_version);
    }
    free(list->items);
    free(list);
    return NULL;
}

const struct as_kube_resource *as_kube_resources_find(const struct as_kube_resources *list,
                                                      const char *kind)
{
    const struct as_kube_resource *found = NULL;
    for (size_t i = 0; i < list->count; i++) {
        const struct as_kube_resource *resource = &list->items[i];
        if (strcmp(resource->kind, kind) == 0 && (!found || !found->scale_version))
            found = resource;
    }
    return found;
}

int as_kube_get_group_size(const char *api_version)
{
    const char *slash = strchr(api_version, '/');
    return slash ? (int)(slash - api_version) : 0;
}

void as_kube_role_print(const char *namespace_, const char *name, const char *rules,
                        struct as_buf *out)
{
    const char *scope = *namespace_ ? "" : "Cluster";
    AS_CLEANUP(as_free_p)
    char *metadata = *namespace_ ? as_xasprintf("metadata: {name: \"%s\", namespace: \"%s\"}\n",
                                                name, namespace_)
                                 : as_xasprintf("metadata: {name: \"%s\"}\n", name);
    as_buf_printf(out,
                  "apiVersion: rbac.authorization.k8s.io/v1\nkind: %sRole\n%srules:\n%s"
                  "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: %sRoleBinding\n%s"
                  "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %sRole, name: \"%s\"}\n"
                  "subjects: [{kind: ServiceAccount, namespace: alertscaler, name: alertscaler}]\n",
                  scope, metadata, rules, scope, metadata, scope, name);
}

int as_kube_status_decode(const char *json, size_t size, struct as_kube_status *status_out,
                          struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    int status = kube_object_load(&tree, json, size, "Status", error);
    if (status)
        return status;
    const char *message = tree_find_text(tree.root, "message");
    const char *reason = tree_find_text(tree.root, "reason");
    const struct tree_value *details = tree_find(tree.root, "details");
    int64_t seconds = 0, http_status = 0;
    (void)tree_get_i64(tree_find(details, "retryAfterSeconds"), 0, INT32_MAX, &seconds);
    (void)tree_get_i64(tree_find(tree.root, "code"), 1, 999, &http_status);
    status_out->code = (int)http_status;
    as_str_copy_line(reason ? reason : "", status_out->reason, AS_MESSAGE_SIZE);
    as_str_copy_line(message ? message : "", status_out->message, AS_MESSAGE_SIZE);
    status_out->names_object = !as_str_is_empty(tree_find_text(details, "name"));
    status_out->has_causes = tree_get_first(tree_find(details, "causes")) != NULL;
    status_out->retry_after_us = seconds * AS_US_PER_S;
    return 0;
}

static json_t *make_involved_object(const struct as_kube_event *event)
{
    json_t *object = json_object();
    kube_documents_set_string(object, "apiVersion", event->api_version);
    kube_documents_set_string(object, "kind", event->kind);
    kube_documents_set_string(object, "namespace", event->namespace_);
    kube_documents_set_string(object, "name", event->name);
    kube_documents_set_string(object, "uid", event->uid);
    return object;
}

void as_kube_event_encode(const struct as_kube_event *event, struct as_buf *out)
{
    /* metav1.Time has whole seconds. */
    as_wall_time second = {event->at.us - event->at.us % AS_US_PER_S};
    char at[AS_RFC3339_SIZE];
    as_wall_time_print_short(second, at);
    /* An event's namespace is its object's; events of cluster-wide objects are in `default`. */
    const char *namespace_ = as_str_is_empty(event->namespace_) ? "default" : event->namespace_;
    AS_CLEANUP(as_free_p) char *prefix = as_xasprintf("%s.", event->name);
    size_t message_size =
        as_str_cut_utf8(event->message, strlen(event->message), EVENT_MESSAGE_MAX);
    AS_CLEANUP(as_json_free_p)
    json_t *json = json_pack(
        "{s:s, s:s, s:{s:s, s:s}, s:o, s:s, s:s%, s:s, s:{s:s}, s:s, s:s, s:s, s:i}", "apiVersion",
        "v1", "kind", "Event", "metadata", "generateName", prefix, "namespace", namespace_,
        "involvedObject", make_involved_object(event), "reason", event->reason, "message",
        event->message, message_size, "type", event->is_warning ? "Warning" : "Normal", "source",
        "component", "alertscaler", "reportingComponent", "alertscaler", "firstTimestamp", at,
        "lastTimestamp", at, "count", 1);
    as_json_dump(json, out);
}

/* A Lease. As in client-go, absent and null members are zero. */

static void documents_read_time(struct as_reader *spec, const char *name, as_maybe_time *time_out)
{
    char text[64] = ""; /* nine digits and an offset fit */
    as_read_copy(spec, name, text, sizeof(text));
    time_out->set = *text && as_wall_time_parse(text, strlen(text), &time_out->at) == 0;
    if (*text && !time_out->set)
        as_read_fail(spec, name, "expected a time");
}

static void read_spec(struct as_reader *spec, struct as_lease *lease)
{
    as_read_copy(spec, "holderIdentity", lease->holder, sizeof(lease->holder));
    as_read_i32(spec, "leaseDurationSeconds", 0, &lease->duration_s);
    as_read_i32(spec, "leaseTransitions", 0, &lease->transitions);
    documents_read_time(spec, "acquireTime", &lease->acquired);
    documents_read_time(spec, "renewTime", &lease->renewed);
}

int as_lease_decode(const char *json, size_t size, struct as_lease_object *object_out,
                    struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct as_reader root, metadata, spec, annotations;
    struct as_lease_object object = {.is_paused = false};
    int status = kube_object_load(&tree, json, size, "Lease", error);
    if (status)
        return status;
    as_read_lenient(&root, tree.root, error);
    as_read_object(&metadata, &root, "metadata");
    as_read_object(&spec, &root, "spec");
    as_read_object(&annotations, &metadata, "annotations");
    kube_object_read_version(&metadata, object.resource_version, sizeof(object.resource_version));
    read_spec(&spec, &object.lease);
    if ((status = as_read_result(&root)))
        return status;
    const struct tree_value *paused = tree_find(annotations.object, AS_LEASE_PAUSED_ANNOTATION);
    if (paused) {
        const char *reason = tree_get_text(paused);
        object.is_paused = true;
        as_str_copy_line(reason ? reason : "", object.paused, sizeof(object.paused));
    }
    *object_out = object;
    return 0;
}

static bool is_same_time(const as_maybe_time *a, const as_maybe_time *b)
{
    return a->set == b->set && (!a->set || a->at.us == b->at.us);
}

bool as_lease_is_same(const struct as_lease *a, const struct as_lease *b)
{
    return strcmp(a->holder, b->holder) == 0 && a->duration_s == b->duration_s &&
           a->transitions == b->transitions && is_same_time(&a->acquired, &b->acquired) &&
           is_same_time(&a->renewed, &b->renewed);
}

static void set_time(json_t *spec, const char *name, const as_maybe_time *time)
{
    char text[AS_RFC3339_SIZE]; /* six digits: a MicroTime */
    if (!time->set) {
        json_object_del(spec, name);
        return;
    }
    as_wall_time_print(time->at, text);
    json_object_set_new(spec, name, json_string(text));
}

static void set_spec(json_t *spec, const struct as_lease *lease)
{
    json_object_set_new(spec, "holderIdentity", json_string(lease->holder));
    json_object_set_new(spec, "leaseDurationSeconds", json_integer(lease->duration_s));
    json_object_set_new(spec, "leaseTransitions", json_integer(lease->transitions));
    set_time(spec, "acquireTime", &lease->acquired);
    set_time(spec, "renewTime", &lease->renewed);
}

void as_lease_encode_new(const char *namespace_, const char *name, const struct as_lease *lease,
                         struct as_buf *out)
{
    json_t *spec = json_object();
    set_spec(spec, lease);
    AS_CLEANUP(as_json_free_p)
    json_t *document =
        json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s}}, s:o}", "apiVersion", "coordination.k8s.io/v1",
                  "kind", "Lease", "metadata", "namespace", namespace_, "name", name, "labels",
                  "app.kubernetes.io/managed-by", "alertscaler", "spec", spec);
    as_json_dump(document, out);
}

int as_lease_encode_update(const char *json, size_t size, const struct as_lease *lease,
                           struct as_buf *out, struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct as_reader root, reader;
    int status = tree_load_object(&tree, json, size, error);
    if (status)
        return status;
    as_read_lenient(&root, tree.root, error);
    as_read_object(&reader, &root, "metadata");
    as_read_object(&reader, &root, "spec");
    if ((status = as_read_result(&root)))
        return status;
    AS_CLEANUP(as_json_free_p) json_t *document = json_loadb(json, size, 0, NULL);
    json_t *spec = json_object_get(document, "spec");
    if (!json_is_object(spec)) {
        spec = json_object();
        json_object_set_new(document, "spec", spec);
    }
    json_object_del(json_object_get(document, "metadata"),
                    "managedFields"); /* long, and only for the server */
    set_spec(spec, lease);
    as_json_dump(document, out);
    return 0;
}

/* TokenReview. Any deviation from the API is an error: this decides who gets access. */

void as_token_review_encode(const char *token, const char *const *audiences, size_t audience_count,
                            struct as_buf *out)
{
    json_t *spec = json_pack("{s:s}", "token", token);
    if (audience_count > 0) {
        json_t *list = json_array();
        for (size_t i = 0; i < audience_count; i++)
            json_array_append_new(list, json_string(audiences[i]));
        json_object_set_new(spec, "audiences", list);
    }
    AS_CLEANUP(as_json_free_p)
    json_t *json = json_pack("{s:s, s:s, s:o}", "apiVersion", "authentication.k8s.io/v1", "kind",
                             "TokenReview", "spec", spec);
    as_json_dump(json, out);
}

static bool names_one(const struct tree_value *list, const char *const *audiences, size_t count)
{
    for (const struct tree_value *item = tree_get_first(list); item; item = item->next) {
        for (size_t i = 0; i < count; i++) {
            if (as_str_equal(tree_get_text(item), audiences[i]))
                return true;
        }
    }
    return count == 0;
}

static int documents_read_groups(const struct tree_value *list, const char **groups,
                                 size_t *count_out)
{
    size_t count = 0;
    for (const struct tree_value *item = tree_get_first(list); item; item = item->next) {
        if (item->kind != TREE_TEXT)
            return -EBADMSG;
        groups[count++] = item->text;
    }
    *count_out = count;
    return 0;
}

static int use_status(const struct tree_value *status, as_reviewed_fn *use, void *context,
                      struct as_error *error)
{
    const struct tree_value *user = tree_find(status, "user");
    const struct tree_value *list = tree_find(user, "groups");
    struct as_reviewed reviewed = {.authenticated = true, .user = tree_find_text(user, "username")};
    if (as_str_is_empty(reviewed.user)) {
        as_error_set(error, "status.user.username: expected a name");
        return -EBADMSG;
    }
    if (list && (list->kind != TREE_ARRAY || list->size > AS_REVIEW_GROUPS_MAX)) {
        as_error_set(error, "status.user.groups: expected a list of at most %d",
                     AS_REVIEW_GROUPS_MAX);
        return -EBADMSG;
    }
    AS_CLEANUP(as_free_p)
    const char **groups = as_xcalloc(list ? list->size + 1 : 1, sizeof(*groups));
    if (documents_read_groups(list, groups, &reviewed.group_count) != 0) {
        as_error_set(error, "status.user.groups: expected texts");
        return -EBADMSG;
    }
    reviewed.groups = groups;
    use(context, &reviewed);
    return 0;
}

int as_token_review_decode(const char *json, size_t size, const char *const *audiences,
                           size_t audience_count, as_reviewed_fn *use, void *context,
                           struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    const int code = kube_object_load(&tree, json, size, "TokenReview", error);
    if (code != 0)
        return code;
    const struct tree_value *status = tree_find(tree.root, "status");
    const struct tree_value *authenticated = tree_find(status, "authenticated");
    if (!tree_is(status, TREE_OBJECT) || (authenticated && authenticated->kind != TREE_BOOLEAN)) {
        as_error_set(error, "status.authenticated: expected true or false");
        return -EBADMSG;
    }
    if (!tree_is_true(authenticated)) { /* false is omitted */
        use(context, &(struct as_reviewed){.authenticated = false});
        return 0;
    }
    if (!names_one(tree_find(status, "audiences"), audiences, audience_count)) {
        as_error_set(error, "status.audiences: none of those that were asked for");
        return -EBADMSG;
    }
    return use_status(status, use, context, error);
}
