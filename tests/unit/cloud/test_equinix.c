/*
 * Devices of Equinix Metal: every request byte by byte, and the result of each answer; the token.
 */
#include <alertscaler/rules/provider_kind.h>

#include "op_driver.h"

#define DEVICES "https://api.equinix.com/metal/v1/projects/pro-1/devices"
#define PAGE    DEVICES "?page=1&per_page=100"
#define MEMBER  "\"tags\":[\"x\",\"k8s-nodepool-web\",\"k8s-cluster-prod\"]"
#define DEVICE(id, state, more)                                                                    \
    "{\"id\":\"" id "\",\"hostname\":\"h-" id "\",\"state\":\"" state "\"," MEMBER more "}"
#define LIST(devices, next) "{\"devices\":[" devices "],\"meta\":{\"total\":9,\"next\":" next "}}"
#define PAIR                DEVICE("d-1", "active", "") "," DEVICE("d-2", "active", "")
#define BODY(number, rest)                                                                         \
    "{\"hostname\":\"web-01hd-" number "\",\"plan\":\"c3.small.x86\",\"metro\":\"am\","            \
    "\"operating_system\":\"ubuntu_22_04\",\"billing_cycle\":" rest                                \
    "\"tags\":[\"k8s-cluster-prod\",\"k8s-nodepool-web\"]}"

static struct as_cloud_op *begin(struct driver_group *given, enum as_group_verb verb)
{
    driver_option(given, "project", "pro-1");
    driver_field(given, "cluster", "prod");
    driver_field(given, "name", "web");
    driver_field(given, "plan", "c3.small.x86");
    driver_field(given, "metro", "am");
    driver_field(given, "operating_system", "ubuntu_22_04");
    driver_begin(given, "equinix", verb);
    return &given->op.op;
}

static struct as_cloud_op *begin_growing(struct driver_group *given, int32_t from, int32_t to)
{
    given->op.from = from;
    given->op.to = to;
    given->op.idempotency = "01HD";
    return begin(given, AS_GROUP_GROW);
}

static void expect_list(const struct as_cloud_op *op, const char *url)
{
    driver_expect(op, "GET", url, "");
    driver_expect_headers(op, "");
    cr_assert_not(op->request.is_change);
}

/* ---- reading ---- */

Test(equinix, pool_is_what_has_both_tags)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin(&given, AS_GROUP_READ);
    expect_list(op, PAGE);
    driver_answer(op, 200,
                  LIST(DEVICE("d-1", "active",
                              ",\"metro\":{\"code\":\"am\"},\"created_at\":\"2024-05-17T10:00:"
                              "00Z\"") "," DEVICE("d-2", "provisioning",
                                                  ",\"facility\":{\"code\":\"am6\"}") ",{\"id\":"
                                                                                      "\"o-1\","
                                                                                      "\"state\":"
                                                                                      "\"active\","
                                                                                      "\"tags\":["
                                                                                      "\"k8s-"
                                                                                      "cluster-"
                                                                                      "prod\"]},"
                                                                                      "{\"id\":\"o-"
                                                                                      "2\","
                                                                                      "\"state\":"
                                                                                      "\"active\","
                                                                                      "\"tags\":["
                                                                                      "\"k8s-"
                                                                                      "nodepool-"
                                                                                      "web\",7]},"
                                                                                      "{\"id\":\"o-"
                                                                                      "3\","
                                                                                      "\"state\":"
                                                                                      "\"active\"},"
                                                                                      "7",
                       "{\"href\":\"https://elsewhere/metal/v1/devices?page=2\"}"));
    expect_list(op, DEVICES "?page=2&per_page=100");
    driver_answer(op, 200,
                  LIST(DEVICE("d-3", "deprovisioning", "") "," DEVICE(
                           "d-4", "failed", "") "," DEVICE("d-5", "inactive", ",\"locked\":true"),
                       "null"));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    const struct as_group_view *view = &given.op.view;
    driver_expect_backing(&given, "equinix/pro-1/prod/web ");
    cr_expect_eq(view->size, 4); /* all but the one that leaves */
    cr_expect_eq(view->min, -1);
    cr_expect_eq(view->max, -1);
    cr_expect(view->in_progress);
    cr_assert_eq(view->instance_count, 5);
    driver_expect_instance(&given, 0, "d-1 d-1 am running");
    cr_expect(view->instances[0].created.set);
    driver_expect_instance(&given, 1, "d-2 d-2 am6 pending");
    driver_expect_instance(&given, 2, "d-3 d-3 - leaving");
    driver_expect_instance(&given, 3, "d-4 d-4 - failed");
    driver_expect_instance(&given, 4, "d-5 d-5 - running unhealthy protected");
    driver_end(&given);
}

Test(equinix, pool_without_devices)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin(&given, AS_GROUP_READ);
    driver_answer(op, 200, LIST("", "null"));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_expect_eq(given.op.view.size, 0);
    cr_expect_not(given.op.view.in_progress);
    driver_end(&given);
}

Test(equinix, pages_that_never_end_do)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin(&given, AS_GROUP_READ);
    while (op->want == AS_CLOUD_OP_SEND)
        driver_answer(op, 200, LIST("", "{\"href\":\"/again\"}"));
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, "given up after 2 pages: it never ends");
    driver_end(&given);
}

Test(equinix, answers_that_are_none)
{
    static const struct {
        const char *body, *message;
    } rows[] = {
        {"{}", "list_devices: the answer has no devices"},
        {"{\"devices\":[{" MEMBER "}]}", "list_devices: the answer has no devices.id"},
        {"{\"dev", "list_devices: the answer is not JSON: premature end of input near '\"dev'"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct driver_group given = {0};
        struct as_cloud_op *op = begin(&given, AS_GROUP_READ);
        driver_answer(op, 200, rows[i].body);
        driver_expect_end(op, AS_CLOUD_OP_RETRY, rows[i].message);
        driver_end(&given);
    }
}

/* ---- growing ---- */

Test(equinix, pool_grows_by_devices_one_by_one)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_growing(&given, 2, 4);
    driver_answer(op, 200, LIST(PAIR, "null"));
    driver_expect(op, "POST", DEVICES, BODY("0", "\"hourly\","));
    driver_expect_headers(op, "Content-Type: application/json\n");
    cr_assert(op->request.is_change);
    driver_answer(op, 201, "{\"id\":\"d-3\",\"state\":\"queued\"}");
    driver_expect(op, "POST", DEVICES, BODY("1", "\"hourly\","));
    driver_answer(op, 201, "{\"id\":\"d-4\"}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_expect_not(op->is_ambiguous);
    cr_expect_null(given.op.started);
    driver_end(&given);
}

Test(equinix, devices_as_they_are_configured)
{
    struct driver_group given = {0};
    driver_option(&given, "userdata_file", "/etc/userdata");
    driver_field(&given, "billing_cycle", "daily");
    driver_field(&given, "hardware_reservation_id", "next-available");
    struct as_cloud_op *op = begin_growing(&given, 0, 1);
    driver_answer(op, 200, LIST("", "null"));
    driver_expect_file(op, "/etc/userdata");
    driver_content(op, "#!/bin/sh\necho \"hi\"\n", 0);
    driver_expect(op, "POST", DEVICES,
                  BODY("0", "\"daily\",\"userdata\":\"#!/bin/sh\\necho \\\"hi\\\"\\n\","
                            "\"hardware_reservation_id\":\"next-available\","));
    driver_end(&given);
}

/* Devices without their user data would be of no use. */
Test(equinix, userdata_that_is_no_text)
{
    static const char *const contents[] = {"\x1f\x8b\x08", "#!/bin/sh\n\xff", "a\0b"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(contents); i++) {
        struct driver_group given = {0};
        driver_option(&given, "userdata_file", "/etc/userdata");
        struct as_cloud_op *op = begin_growing(&given, 0, 1);
        driver_answer(op, 200, LIST("", "null"));
        as_cloud_op_on_content(op, DRIVER_NOW, contents[i], i == 2 ? 3 : strlen(contents[i]), 0);
        driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                          "/etc/userdata (`userdata_file`) is not UTF-8 text, which is all that "
                          "can be sent");
        driver_end(&given);
    }
}

Test(equinix, userdata_that_cannot_be_read)
{
    struct driver_group given = {0};
    driver_option(&given, "userdata_file", "/etc/userdata");
    struct as_cloud_op *op = begin_growing(&given, 0, 1);
    driver_answer(op, 200, LIST("", "null"));
    driver_content(op, NULL, 2);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "cannot read /etc/userdata: No such file or directory");
    driver_end(&given);
}

/* The answer was lost, and the whole change comes again: a device that it has made is not made
 * twice. */
Test(equinix, change_that_is_repeated_makes_no_more)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_growing(&given, 1, 3);
    driver_answer(op, 200,
                  LIST(DEVICE("d-1", "active", "") ",{\"id\":\"d-2\",\"hostname\":\"web-01hd-0\","
                                                   "\"state\":\"queued\"," MEMBER "}",
                       "null"));
    driver_expect(op, "POST", DEVICES, BODY("1", "\"hourly\","));
    driver_answer(op, 201, "{}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    driver_end(&given);
}

Test(equinix, device_whose_making_is_left_open_is_looked_for)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_growing(&given, 1, 3);
    driver_answer(op, 200, LIST(DEVICE("d-1", "active", ""), "null"));
    driver_break(op, AS_HTTP_TIMEOUT, "too slow");
    cr_assert_eq(op->want, AS_CLOUD_OP_WAIT);
    as_cloud_op_on_time(op, DRIVER_NOW);
    expect_list(op, PAGE);
    driver_answer(op, 200,
                  LIST(DEVICE("d-1", "active", "") ",{\"id\":\"d-2\",\"hostname\":\"web-01hd-0\","
                                                   "\"state\":\"queued\"," MEMBER "}",
                       "null"));
    driver_expect(op, "POST", DEVICES, BODY("1", "\"hourly\","));
    driver_answer(op, 201, "{}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_expect_not(op->is_ambiguous);
    driver_end(&given);
}

Test(equinix, device_that_never_comes_about_is_given_up)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_growing(&given, 1, 2);
    driver_answer(op, 200, LIST(DEVICE("d-1", "active", ""), "null"));
    for (int i = 0; i < 3; i++) {
        driver_answer(op, 503, "");
        cr_assert_eq(op->want, AS_CLOUD_OP_WAIT);
        as_cloud_op_on_time(op, DRIVER_NOW);
        driver_answer(op, 200, LIST(DEVICE("d-1", "active", ""), "null"));
    }
    driver_answer(op, 503, "");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, "create_device: HTTP 503");
    cr_expect(op->is_ambiguous);
    driver_end(&given);
}

Test(equinix, pool_that_has_changed_is_left_alone)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_growing(&given, 1, 3);
    driver_answer(op, 200, LIST(PAIR, "null"));
    driver_expect_end(op, AS_CLOUD_OP_BUSY,
                      "the pool has changed since it was looked at: it has 2 devices");
    driver_end(&given);
}

/* ---- errors ---- */

Test(equinix, errors)
{
    static const struct {
        int status;
        const char *body;
        enum as_cloud_op_fault fault;
        const char *message;
    } rows[] = {
        {401, "{\"error\":\"Invalid authentication token\"}", AS_CLOUD_OP_UNAUTHORIZED,
         "create_device: HTTP 401: Invalid authentication token"},
        {403, "{\"errors\":[\"You are not authorized to view this page\"]}", AS_CLOUD_OP_PERMISSION,
         "create_device: HTTP 403: You are not authorized to view this page"},
        {404, "{\"errors\":[\"Not found\"]}", AS_CLOUD_OP_GONE,
         "create_device: HTTP 404: Not found"},
        {422,
         "{\"errors\":[\"The facility am6 has no provisionable c3.small.x86 servers matching your "
         "criteria.\"]}",
         AS_CLOUD_OP_CAPACITY,
         "create_device: HTTP 422: The facility am6 has no provisionable c3.small.x86 servers "
         "matching your criteria."},
        {422, "{\"errors\":[\"No hardware reservations are available\"]}", AS_CLOUD_OP_CAPACITY,
         "create_device: HTTP 422: No hardware reservations are available"},
        {422, "{\"errors\":[\"You have reached the maximum number of projects\"]}",
         AS_CLOUD_OP_CAPACITY,
         "create_device: HTTP 422: You have reached the maximum number of projects"},
        {422, "{\"errors\":[\"Plan is invalid\",\"Metro is invalid\"]}", AS_CLOUD_OP_CONFIGURATION,
         "create_device: HTTP 422: Plan is invalid"},
        {422, "{\"errors\":[\"Cannot be deleted while it is provisioning\"]}", AS_CLOUD_OP_BUSY,
         "create_device: HTTP 422: Cannot be deleted while it is provisioning"},
        {429, "", AS_CLOUD_OP_THROTTLED, "create_device: HTTP 429"},
        {400, "<html/>", AS_CLOUD_OP_CONFIGURATION, "create_device: HTTP 400"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct driver_group given = {0};
        struct as_cloud_op *op = begin_growing(&given, 2, 4);
        driver_answer(op, 200, LIST(PAIR, "null"));
        driver_answer(op, 201, "{}");
        driver_answer(op, rows[i].status, rows[i].body);
        driver_expect_end(op, rows[i].fault, rows[i].message);
        cr_expect(op->is_ambiguous); /* one of two was made */
        driver_end(&given);
    }
}

Test(equinix, refusal_of_the_first_changes_nothing)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_growing(&given, 2, 4);
    driver_answer(op, 200, LIST(PAIR, "null"));
    driver_answer(op, 422, "{\"errors\":[\"Plan is invalid\"]}");
    cr_expect_not(op->is_ambiguous);
    driver_end(&given);
}

/* ---- deleting ---- */

Test(equinix, devices_leave_by_name)
{
    struct driver_group given = {
        .op = {.instances = (const char *const[]){"d-1", "d-3", "d-4", "d-2"},
               .instance_count = 4,
               .from = 4,
               .to = 0}};
    struct as_cloud_op *op = begin(&given, AS_GROUP_REMOVE);
    driver_answer(op, 200, LIST(PAIR "," DEVICE("d-3", "deprovisioning", ""), "null"));
    driver_expect(op, "DELETE", "https://api.equinix.com/metal/v1/devices/d-1", "");
    driver_expect_headers(op, "");
    driver_answer(op, 204, "");
    driver_expect(op, "DELETE", "https://api.equinix.com/metal/v1/devices/d-2", "");
    driver_answer(op, 404, "{\"errors\":[\"Not found\"]}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    driver_end(&given);
}

/* Draining takes its time. */
Test(equinix, pool_that_has_changed_loses_nothing)
{
    static const struct {
        int32_t from;
        const char *message;
    } rows[] = {{3, "the group has changed since it was looked at: its size is 2"},
                {1, "the group has changed since it was looked at: its size is 2"}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct driver_group given = {.op = {.instances = (const char *const[]){"d-1"},
                                            .instance_count = 1,
                                            .from = rows[i].from,
                                            .to = rows[i].from - 1}};
        struct as_cloud_op *op = begin(&given, AS_GROUP_REMOVE);
        driver_answer(op, 200, LIST(PAIR, "null"));
        driver_expect_end(op, AS_CLOUD_OP_BUSY, rows[i].message);
        driver_end(&given);
    }
}

Test(equinix, deletion_that_is_refused)
{
    struct driver_group given = {
        .op = {.instances = (const char *const[]){"d-1"}, .instance_count = 1, .from = 2, .to = 1}};
    struct as_cloud_op *op = begin(&given, AS_GROUP_REMOVE);
    driver_answer(op, 200, LIST(PAIR, "null"));
    driver_answer(op, 422, "{\"errors\":[\"Cannot be deleted while it is locked\"]}");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, /* by a person, who alone unlocks it */
                      "delete_device: HTTP 422: Cannot be deleted while it is locked");
    driver_end(&given);
}

Test(equinix, failed_devices_are_taken_back_first)
{
    struct driver_group given = {.op = {.to = 2}};
    struct as_cloud_op *op = begin(&given, AS_GROUP_TAKE_BACK);
    driver_answer(op, 200,
                  LIST(DEVICE("d-1", "active", "") "," DEVICE("d-2", "queued", "") "," DEVICE(
                           "d-3", "failed", "") "," DEVICE("d-4", "active", ""),
                       "null"));
    driver_expect(op, "DELETE", "https://api.equinix.com/metal/v1/devices/d-3", "");
    driver_answer(op, 204, "");
    driver_expect(op, "DELETE", "https://api.equinix.com/metal/v1/devices/d-2", "");
    driver_answer(op, 204, "");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    driver_end(&given);
}

Test(equinix, devices_that_came_are_not_taken_back)
{
    struct driver_group given = {.op = {.to = 1}};
    struct as_cloud_op *op = begin(&given, AS_GROUP_TAKE_BACK);
    driver_answer(op, 200, LIST(PAIR "," DEVICE("d-3", "queued", ""), "null"));
    driver_expect_end(op, AS_CLOUD_OP_BUSY,
                      "only 1 of 2 devices have not come: the others have by now");
    driver_end(&given);
}

Test(equinix, there_is_nothing_to_be_followed)
{
    struct driver_group given = {.op = {.operation = "x"}};
    struct as_cloud_op *op = begin(&given, AS_GROUP_POLL);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_expect(given.op.is_done);
    driver_end(&given);
}

/* ---- where it is, and who ---- */

Test(equinix, endpoint_is_configured)
{
    struct driver_group given = {0};
    driver_option(&given, "endpoint", "http://127.0.0.1:5000/metal/v1/");
    driver_expect(begin(&given, AS_GROUP_READ), "GET",
                  "http://127.0.0.1:5000/metal/v1/projects/pro-1/devices?page=1&per_page=100", "");
    driver_end(&given);
}

Test(equinix, end_of_the_service_is_told)
{
    cr_assert_not_null(strstr(as_provider_kind_find("equinix")->warning, "2026-06-30"));
}

Test(equinix, tokens)
{
    static const struct {
        const char *metal, *packet, *token;
    } rows[] = {{"m", "p", "m"}, {"", "p", "p"}, {NULL, NULL, NULL}};
    const struct as_credentials_source *chain = as_group_provider_find("equinix")->credentials;
    cr_assert_eq(as_group_provider_find("equinix")->sign, as_sign_token);
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct driver_source given = {0};
        driver_set("METAL_AUTH_TOKEN", rows[i].metal);
        driver_set("PACKET_AUTH_TOKEN", rows[i].packet);
        driver_begin_source(&given, chain, "environment");
        cr_expect_eq(given.op.is_not_here, !rows[i].token);
        if (rows[i].token)
            driver_expect_found(&given, NULL, NULL, rows[i].token, NULL);
        driver_end_source(&given);
    }
}

Test(equinix, token_of_a_file)
{
    const struct as_credentials_source *chain = as_group_provider_find("equinix")->credentials;
    struct driver_source given = {0};
    driver_source_option(&given, "token_file", "/etc/token");
    driver_begin_source(&given, chain, "token file");
    driver_expect_file(&given.op.op, "/etc/token");
    driver_content(&given.op.op, "t\n", 0);
    driver_expect_found(&given, NULL, NULL, "t", NULL);
    driver_end_source(&given);

    struct driver_source other = {0};
    driver_begin_source(&other, chain, "token file");
    cr_expect(other.op.is_not_here);
    driver_end_source(&other);
}
