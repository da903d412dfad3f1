/*
 * kube/kube_documents.h: documents of old and new API servers are understood, anything but a Scale
 * is refused by name, and our documents are what servers expect.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

#include <jansson.h>

#include <alertscaler/kube/kube_documents.h>

static struct as_error error;

/* Equal as JSON values. */
static void check_json(const struct as_buf *got, const char *want)
{
    json_t *a = json_loadb(got->data, got->size, 0, NULL), *b = json_loads(want, 0, NULL);
    cr_assert(b != NULL, "bad expectation: %s", want);
    cr_assert(json_equal(a, b), "got %s, want %s", got->data, want);
    json_decref(a);
    json_decref(b);
}

Test(kubernetes, scale_is_read_in_every_version)
{
    static const struct {
        const char *json;
        int32_t replicas, status;
        const char *uid, *version;
    } rows[] = {
        {"{\"kind\":\"Scale\",\"apiVersion\":\"autoscaling/v1\",\"metadata\":{\"name\":\"web\","
         "\"namespace\":\"shop\",\"uid\":\"u-1\",\"resourceVersion\":\"123\"},\"spec\":{"
         "\"replicas\":"
         "4},\"status\":{\"replicas\":3,\"selector\":\"app=web\"}}",
         4, 3, "u-1", "123"},
        {"{\"kind\":\"Scale\",\"apiVersion\":\"extensions/v1beta1\",\"metadata\":{"
         "\"resourceVersion\":\"7\"},\"spec\":{\"replicas\":1},\"status\":{\"replicas\":1,"
         "\"selector\":{\"app\":\"web\"},\"targetSelector\":\"app=web\"}}",
         1, 1, "", "7"},
        /* zero is left out by the API */
        {"{\"kind\":\"Scale\",\"metadata\":{\"resourceVersion\":\"7\"},\"spec\":{},\"status\":{"
         "\"replicas\":0}}",
         0, 0, "", "7"},
        {"{\"kind\":\"Scale\",\"metadata\":{\"resourceVersion\":\"7\"},\"spec\":null}", 0, 0, "",
         "7"},
        {"{\"kind\":\"Scale\",\"metadata\":{\"resourceVersion\":\"7\"},\"spec\":{\"replicas\":"
         "2147483647}}",
         2147483647, 0, "", "7"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_kube_scale scale;
        int code = as_kube_scale_decode(rows[i].json, strlen(rows[i].json), &scale, &error);
        cr_assert(code == 0, "%s: %s", rows[i].json, error.text);
        cr_expect_eq(scale.replicas, rows[i].replicas);
        cr_expect_eq(scale.status_replicas, rows[i].status);
        cr_expect_str_eq(scale.uid, rows[i].uid);
        cr_expect_str_eq(scale.resource_version, rows[i].version);
    }
}

Test(kubernetes, what_is_no_scale_is_refused_by_name)
{
    static const struct {
        const char *json, *error;
    } rows[] = {
        {"", "not JSON"},
        {"[]", "expected a JSON object"},
        {"{\"kind\":\"Scale\"} x", "not JSON"},
        {"{\"kind\":\"Deployment\"}", "kind: expected Scale"},
        {"{\"kind\":7}", "kind: expected Scale"},
        {"{\"kind\":\"Scale\"}", "metadata.resourceVersion: missing"},
        {"{\"kind\":\"Scale\",\"metadata\":[]}", "metadata: expected an object"},
        {"{\"kind\":\"Scale\",\"metadata\":{\"resourceVersion\":1}}",
         "metadata.resourceVersion: expected a string"},
        {"{\"kind\":\"Scale\",\"spec\":{\"replicas\":-1}}", "spec.replicas: expected an integer"},
        {"{\"kind\":\"Scale\",\"spec\":{\"replicas\":2147483648}}",
         "spec.replicas: expected an integer"},
        {"{\"kind\":\"Scale\",\"spec\":{\"replicas\":1.5}}", "spec.replicas: expected an integer"},
        {"{\"kind\":\"Scale\",\"spec\":{\"replicas\":\"4\"}}",
         "spec.replicas: expected an integer"},
        {"{\"kind\":\"Scale\",\"status\":{\"replicas\":true}}",
         "status.replicas: expected an integer"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_kube_scale scale;
        int code = as_kube_scale_decode(rows[i].json, strlen(rows[i].json), &scale, &error);
        cr_expect_eq(code, -EBADMSG, "%s", rows[i].json);
        cr_expect(strstr(error.text, rows[i].error) != NULL, "%s: %s", rows[i].json, error.text);
    }
}

Test(kubernetes, a_version_too_long_to_keep_is_an_error)
{
    char json[1024], version[AS_VERSION_SIZE + 1];
    struct as_kube_scale scale;
    memset(version, '1', sizeof(version) - 1);
    version[AS_VERSION_SIZE] = '\0';
    snprintf(json, sizeof(json), "{\"kind\":\"Scale\",\"metadata\":{\"resourceVersion\":\"%s\"}}",
             version);
    cr_expect_eq(as_kube_scale_decode(json, strlen(json), &scale, &error), -EBADMSG);
    version[AS_VERSION_SIZE - 1] = '\0';
    snprintf(json, sizeof(json), "{\"kind\":\"Scale\",\"metadata\":{\"resourceVersion\":\"%s\"}}",
             version);
    cr_expect_eq(as_kube_scale_decode(json, strlen(json), &scale, &error), 0);
    cr_expect_str_eq(scale.resource_version, version);
}

Test(kubernetes, an_update_is_conditional_and_says_zero)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(1024);
    as_kube_scale_encode(&(struct as_kube_scale_update){.api_version = "autoscaling/v1",
                                                        .namespace_ = "shop",
                                                        .name = "web",
                                                        .resource_version = "123",
                                                        .replicas = 0},
                         &buf);
    check_json(&buf, "{\"apiVersion\":\"autoscaling/v1\",\"kind\":\"Scale\",\"metadata\":{\"name\":"
                     "\"web\",\"namespace\":\"shop\",\"resourceVersion\":\"123\"},\"spec\":{"
                     "\"replicas\":0}}");
    as_buf_clear(&buf);
    as_kube_scale_encode(&(struct as_kube_scale_update){.api_version = "autoscaling/v1",
                                                        .namespace_ = "",
                                                        .name = "pool",
                                                        .resource_version = "",
                                                        .replicas = 7},
                         &buf);
    check_json(&buf, "{\"apiVersion\":\"autoscaling/v1\",\"kind\":\"Scale\",\"metadata\":{\"name\":"
                     "\"pool\"},\"spec\":{\"replicas\":7}}");
}

Test(kubernetes, discovery_gives_paths_and_scale_versions)
{
    static const char json[] =
        "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"apps/v1\","
        "\"resources\":["
        "{\"name\":\"deployments/status\",\"kind\":\"Deployment\",\"namespaced\":true},"
        "{\"name\":\"deployments\",\"kind\":\"Deployment\",\"namespaced\":true,\"verbs\":[]},"
        "{\"name\":\"deployments/scale\",\"kind\":\"Scale\",\"group\":\"autoscaling\",\"version\":"
        "\"v1\",\"namespaced\":true},"
        "{\"name\":\"daemonsets\",\"kind\":\"DaemonSet\",\"namespaced\":true},"
        "{\"name\":\"oldsets\",\"kind\":\"OldSet\",\"namespaced\":false},"
        "{\"name\":\"oldsets/scale\",\"kind\":\"Scale\",\"namespaced\":false},"
        "{\"name\":7,\"kind\":\"Bad\"},null,{\"name\":\"\",\"kind\":\"\"}]}";
    AS_CLEANUP(as_kube_resources_free_p) struct as_kube_resources *list = NULL;
    cr_assert_eq(as_kube_resources_decode(json, strlen(json), &list, &error), 0);
    cr_assert_eq(list->count, 3);

    const struct as_kube_resource *deployment = as_kube_resources_find(list, "Deployment");
    cr_assert(deployment != NULL);
    cr_expect_str_eq(deployment->plural, "deployments");
    cr_expect_str_eq(deployment->scale_version, "autoscaling/v1");
    cr_expect(deployment->is_namespaced);

    const struct as_kube_resource *old = as_kube_resources_find(list, "OldSet");
    cr_assert(old != NULL);
    cr_expect_str_eq(old->scale_version, "apps/v1");
    cr_expect_not(old->is_namespaced);

    const struct as_kube_resource *daemon = as_kube_resources_find(list, "DaemonSet");
    cr_assert(daemon != NULL);
    cr_expect(daemon->scale_version == NULL);
    cr_expect(as_kube_resources_find(list, "Nope") == NULL);
}

Test(kubernetes, of_two_resources_of_a_kind_the_scalable_one_is_found)
{
    static const char json[] =
        "{\"groupVersion\":\"x/v1\",\"resources\":["
        "{\"name\":\"aas\",\"kind\":\"A\"},{\"name\":\"bbs\",\"kind\":\"A\"},"
        "{\"name\":\"bbs/scale\",\"kind\":\"Scale\"}]}";
    AS_CLEANUP(as_kube_resources_free_p) struct as_kube_resources *list = NULL;
    cr_assert_eq(as_kube_resources_decode(json, strlen(json), &list, &error), 0);
    cr_expect_str_eq(as_kube_resources_find(list, "A")->plural, "bbs");
}

Test(kubernetes, what_is_no_resource_list_is_refused)
{
    static const char *const rows[] = {"",
                                       "{}",
                                       "[]",
                                       "{\"groupVersion\":\"v1\"}",
                                       "{\"groupVersion\":\"v1\",\"resources\":{}}",
                                       "{\"resources\":[]}"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_kube_resources *list = NULL;
        cr_expect_eq(as_kube_resources_decode(rows[i], strlen(rows[i]), &list, &error), -EBADMSG,
                     "%s", rows[i]);
        cr_expect(list == NULL);
    }
}

Test(kubernetes, status_gives_one_line)
{
    static const char json[] =
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"the "
        "object\\nhas been modified\",\"reason\":\"Conflict\",\"details\":{\"name\":\"web\","
        "\"retryAfterSeconds\":3},\"code\":409}";
    struct as_kube_status status;
    cr_assert_eq(as_kube_status_decode(json, strlen(json), &status, &error), 0);
    cr_expect_str_eq(status.message, "the object has been modified");
    cr_expect(status.names_object);
    cr_expect_eq(status.retry_after_us, 3 * AS_US_PER_S);

    static const char bare[] = "{\"kind\":\"Status\",\"details\":{\"retryAfterSeconds\":-1}}";
    cr_assert_eq(as_kube_status_decode(bare, strlen(bare), &status, &error), 0);
    cr_expect_str_eq(status.message, "");
    cr_expect_not(status.names_object);
    cr_expect_eq(status.retry_after_us, 0);

    cr_expect_eq(as_kube_status_decode("404 page", 8, &status, &error), -EBADMSG);
    cr_expect_eq(as_kube_status_decode("{}", 2, &status, &error), -EBADMSG);
}

Test(kubernetes, event_is_as_kubectl_describe_wants_it)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(4096);
    as_kube_event_encode(
        &(struct as_kube_event){.api_version = "apps/v1",
                                .kind = "Deployment",
                                .namespace_ = "shop",
                                .name = "web",
                                .uid = "u-1",
                                .reason = "SuccessfulRescale",
                                .message = "New size: 6; reason: rule a",
                                .at = {INT64_C(1795255200) * AS_US_PER_S + 250000}},
        &buf);
    check_json(&buf,
               "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"generateName\":\"web.\","
               "\"namespace\":\"shop\"},\"involvedObject\":{\"apiVersion\":\"apps/v1\",\"kind\":"
               "\"Deployment\",\"namespace\":\"shop\",\"name\":\"web\",\"uid\":\"u-1\"},\"reason\":"
               "\"SuccessfulRescale\",\"message\":\"New size: 6; reason: rule a\",\"type\":"
               "\"Normal\",\"source\":{\"component\":\"alertscaler\"},\"reportingComponent\":"
               "\"alertscaler\",\"firstTimestamp\":\"2026-11-21T10:00:00Z\",\"lastTimestamp\":"
               "\"2026-11-21T10:00:00Z\",\"count\":1}");
}

Test(kubernetes, event_of_a_cluster_wide_object_lies_in_default)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(4096);
    as_kube_event_encode(&(struct as_kube_event){.api_version = "x/v1",
                                                 .kind = "Pool",
                                                 .namespace_ = "",
                                                 .name = "p",
                                                 .uid = "",
                                                 .reason = "FailedRescale",
                                                 .message = "m",
                                                 .is_warning = true},
                         &buf);
    json_t *json = json_loads(buf.data, 0, NULL);
    json_t *metadata = json_object_get(json, "metadata");
    json_t *involved = json_object_get(json, "involvedObject");
    cr_expect_str_eq(json_string_value(json_object_get(metadata, "namespace")), "default");
    cr_expect_str_eq(json_string_value(json_object_get(json, "type")), "Warning");
    cr_expect(json_object_get(involved, "namespace") == NULL);
    cr_expect(json_object_get(involved, "uid") == NULL);
    json_decref(json);
}

#define EXEC_V1 "client.authentication.k8s.io/v1"

Test(kubernetes, exec_info_tells_the_plugin_that_nobody_is_there)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(4096);
    as_kube_exec_info_encode(&(struct as_kube_exec_info){.api_version = EXEC_V1}, &buf);
    check_json(&buf, "{\"apiVersion\":\"" EXEC_V1 "\",\"kind\":\"ExecCredential\",\"spec\":{"
                     "\"interactive\":false}}");
    as_buf_clear(&buf);
    as_kube_exec_info_encode(&(struct as_kube_exec_info){.api_version = EXEC_V1,
                                                         .server = "https://k",
                                                         .ca_base64 = "QUJD",
                                                         .insecure_skip_verify = true},
                             &buf);
    check_json(&buf,
               "{\"apiVersion\":\"" EXEC_V1 "\",\"kind\":\"ExecCredential\",\"spec\":{"
               "\"interactive\":false,\"cluster\":{\"server\":\"https://k\","
               "\"certificate-authority-data\":\"QUJD\",\"insecure-skip-tls-verify\":true}}}");
}

Test(kubernetes, exec_credentials)
{
#define HEAD "{\"apiVersion\":\"" EXEC_V1 "\",\"kind\":\"ExecCredential\""
    static const struct {
        const char *json, *error; /* NULL: good */
    } rows[] = {
        {HEAD ",\"status\":{\"token\":\"t\"}}", NULL},
        {HEAD ",\"status\":{\"token\":\"t\",\"expirationTimestamp\":\"2026-11-20T10:00:00Z\"}}",
         NULL},
        {HEAD ",\"status\":{\"clientCertificateData\":\"c\",\"clientKeyData\":\"k\"}}", NULL},
        {HEAD "}", "neither token nor"},
        {HEAD ",\"status\":{\"token\":\"\"}}", "neither token nor"},
        {HEAD ",\"status\":{\"clientCertificateData\":\"c\"}}", "come together"},
        {HEAD ",\"status\":{\"token\":\"t\",\"expirationTimestamp\":\"soon\"}}",
         "expirationTimestamp: expected a time"},
        {"{\"apiVersion\":\"client.authentication.k8s.io/v1beta1\",\"kind\":\"ExecCredential\"}",
         "apiVersion: expected " EXEC_V1},
        {"{\"kind\":\"Status\"}", "kind: expected ExecCredential"},
        {"please log in", "not JSON"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_kube_exec_credential credential = {0};
        int code = as_kube_exec_credential_decode(rows[i].json, strlen(rows[i].json), EXEC_V1,
                                                  &credential, &error);
        cr_expect_eq(code, rows[i].error ? -EBADMSG : 0, "%s: %s", rows[i].json, error.text);
        if (rows[i].error)
            cr_expect(strstr(error.text, rows[i].error) != NULL, "%s: %s", rows[i].json,
                      error.text);
        as_kube_exec_credential_deinit(&credential);
    }
}
