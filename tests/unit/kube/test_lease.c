/*
 * kube/kube_documents.h: client-go's Leases are understood, an update leaves the data of others
 * unchanged, and any other document is refused by name.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>
#include <jansson.h>

#include <alertscaler/kube/kube_documents.h>

static struct as_error error;
static struct as_lease_object object;

static int decode(const char *json)
{
    error = AS_ERROR_INIT;
    return as_lease_decode(json, strlen(json), &object, &error);
}

/* As kube-controller-manager's client-go writes it, shortened. */
#define BY_CLIENT_GO                                                                               \
    "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\",\"metadata\":{\"name\":"        \
    "\"alertscaler\",\"namespace\":\"ops\",\"uid\":\"u-1\",\"resourceVersion\":\"4711\","          \
    "\"annotations\":{\"a\":\"b\"},\"managedFields\":[{\"manager\":\"x\"}]},\"spec\":{"            \
    "\"holderIdentity\":\"pod-1_6c0f\",\"leaseDurationSeconds\":15,"                               \
    "\"acquireTime\":\"2026-11-20T10:00:00.000001Z\","                                             \
    "\"renewTime\":\"2026-11-20T12:00:02.250000+02:00\",\"leaseTransitions\":3,"                   \
    "\"strategy\":\"OldestEmulationVersion\"}}"

Test(lease, what_client_go_writes_is_read)
{
    cr_assert_eq(decode(BY_CLIENT_GO), 0, "%s", error.text);
    cr_expect_str_eq(object.lease.holder, "pod-1_6c0f");
    cr_expect_str_eq(object.resource_version, "4711");
    cr_expect_eq(object.lease.duration_s, 15);
    cr_expect_eq(object.lease.transitions, 3);
    cr_expect(object.lease.acquired.set && object.lease.renewed.set);
    cr_expect_eq(object.lease.renewed.at.us - object.lease.acquired.at.us, 2249999);
    cr_expect_not(object.is_paused);
}

Test(lease, what_is_absent_is_zero)
{
    static const char *const rows[] = {
        "{\"kind\":\"Lease\",\"metadata\":{\"resourceVersion\":\"1\"}}",
        "{\"kind\":\"Lease\",\"metadata\":{\"resourceVersion\":\"1\",\"annotations\":null},"
        "\"spec\":{}}",
        "{\"kind\":\"Lease\",\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{"
        "\"holderIdentity\":null,\"renewTime\":null,\"leaseDurationSeconds\":null}}",
        "{\"kind\":\"Lease\",\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{"
        "\"holderIdentity\":\"\"}}",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        cr_assert_eq(decode(rows[i]), 0, "%s: %s", rows[i], error.text);
        cr_expect_str_eq(object.lease.holder, "");
        cr_expect_eq(object.lease.duration_s, 0);
        cr_expect_not(object.lease.acquired.set || object.lease.renewed.set);
    }
}

Test(lease, the_kill_switch_is_any_value_of_its_annotation)
{
    static const struct {
        const char *annotation, *reason;
    } rows[] = {
        {"\"deploy\\nin progress\"", "deploy in progress"},
        {"\"\"", ""},
        {"\"false\"", "false"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char json[300];
        snprintf(json, sizeof(json),
                 "{\"kind\":\"Lease\",\"metadata\":{\"resourceVersion\":\"1\",\"annotations\":{"
                 "\"alertscaler.io/paused\":%s}}}",
                 rows[i].annotation);
        cr_assert_eq(decode(json), 0, "%s", error.text);
        cr_expect(object.is_paused);
        cr_expect_str_eq(object.paused, rows[i].reason);
    }
}

Test(lease, what_is_no_lease_is_refused_by_name)
{
    static const struct {
        const char *json, *want;
    } rows[] = {
        {"{\"kind\":\"ConfigMap\",\"metadata\":{\"resourceVersion\":\"1\"}}", "kind"},
        {"{\"kind\":\"Lease\",\"metadata\":{}}", "metadata.resourceVersion"},
        {"{\"kind\":\"Lease\"}", "metadata.resourceVersion"},
        {"{\"kind\":\"Lease\",\"metadata\":7}", "metadata"},
        {"{\"kind\":\"Lease\",\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{"
         "\"leaseDurationSeconds\":-1}}",
         "spec.leaseDurationSeconds"},
        {"{\"kind\":\"Lease\",\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{"
         "\"leaseTransitions\":1.5}}",
         "spec.leaseTransitions"},
        {"{\"kind\":\"Lease\",\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"renewTime\":"
         "\"yesterday\"}}",
         "spec.renewTime"},
        {"{\"kind\":\"Lease\",\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{"
         "\"holderIdentity\":5}}",
         "spec.holderIdentity"},
        {"[]", ""},
        {"", ""},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        cr_assert_eq(decode(rows[i].json), -EBADMSG, "%s", rows[i].json);
        cr_expect(*error.text && strstr(error.text, rows[i].want), "%s: %s", rows[i].json,
                  error.text);
    }
}

static const struct as_lease ours = {
    .holder = "pod-2_77aa",
    .duration_s = 20,
    .transitions = 4,
    .acquired = {true, {INT64_C(1795860000000001)}},
    .renewed = {true, {INT64_C(1795860000250000)}},
};

Test(lease, a_new_one_is_read_back_as_written)
{
    struct as_buf text = AS_BUF_INIT(4096);
    as_lease_encode_new("ops", "alertscaler", &ours, &text);
    cr_assert_eq(as_buf_check(&text), 0);
    json_t *json = json_loadb(text.data, text.size, 0, NULL), *metadata;
    cr_assert_not_null(json);
    metadata = json_object_get(json, "metadata");
    cr_expect_str_eq(json_string_value(json_object_get(metadata, "namespace")), "ops");
    cr_expect_str_eq(json_string_value(json_object_get(metadata, "name")), "alertscaler");
    cr_expect_null(json_object_get(metadata, "resourceVersion"));
    cr_expect_str_eq(
        json_string_value(json_object_get(json_object_get(json, "spec"), "acquireTime")),
        "2026-11-28T10:00:00.000001Z", "a MicroTime: six digits");
    json_object_set_new(metadata, "resourceVersion", json_string("1"));
    char *with_version = json_dumps(json, 0);
    cr_assert_eq(decode(with_version), 0, "%s", error.text);
    cr_expect(as_lease_is_same(&object.lease, &ours));
    free(with_version);
    json_decref(json);
    as_buf_deinit(&text);
}

Test(lease, an_update_keeps_what_others_put_there)
{
    struct as_buf text = AS_BUF_INIT(4096);
    cr_assert_eq(as_lease_encode_update(BY_CLIENT_GO, strlen(BY_CLIENT_GO), &ours, &text, &error),
                 0);
    cr_assert_eq(decode(text.data), 0, "%s", error.text);
    cr_expect(as_lease_is_same(&object.lease, &ours));
    cr_expect_str_eq(object.resource_version, "4711");
    cr_expect(strstr(text.data, "\"a\":\"b\""));
    cr_expect(strstr(text.data, "\"strategy\":\"OldestEmulationVersion\""));
    cr_expect_not(strstr(text.data, "managedFields"));
    as_buf_deinit(&text);
}

Test(lease, giving_back_writes_an_empty_holder)
{
    struct as_buf text = AS_BUF_INIT(4096);
    struct as_lease free_ = ours;
    free_.holder[0] = '\0';
    cr_assert_eq(as_lease_encode_update(BY_CLIENT_GO, strlen(BY_CLIENT_GO), &free_, &text, &error),
                 0);
    cr_expect(strstr(text.data, "\"holderIdentity\":\"\""));
    as_buf_deinit(&text);
}

Test(lease, what_does_not_fit_is_said)
{
    struct as_buf text = AS_BUF_INIT(20);
    as_lease_encode_new("ops", "alertscaler", &ours, &text);
    cr_expect_eq(as_buf_check(&text), -EMSGSIZE);
    as_buf_deinit(&text);
}
