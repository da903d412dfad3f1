/*
 * Scale sets of Azure: every request byte by byte, and the result of each answer.
 */
#include "azure.h"

#define UNIFORM                                                                                    \
    "{\"id\":\"" SET_ID                                                                            \
    "\",\"name\":\"web\",\"etag\":\"\\\"7\\\"\",\"sku\":{\"name\":\"D2\",\"capacity\":%d},"        \
    "\"properties\":{\"provisioningState\":\"%s\",\"orchestrationMode\":\"Uniform\"}}"
#define MACHINES  SET "/virtualMachines?$expand=instanceView&api-version=2024-11-01"
#define AUTOSCALE SCOPE "/providers/Microsoft.Insights/autoscalesettings?api-version=2022-10-01"
#define NONE      "{\"value\":[]}"

static void answer_set(struct as_cloud_op *op, int size, const char *state)
{
    char body[1024];
    snprintf(body, sizeof(body), UNIFORM, size, state);
    driver_answer(op, 200, body);
}

static struct as_cloud_op *begin_reading(struct driver_group *given)
{
    name_set(given);
    driver_begin(given, "azure", AS_GROUP_READ);
    return &given->op.op;
}

/* ---- reading ---- */

Test(azure_vmss, uniform_set_is_read)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_reading(&given);
    expect_question(op, SET_URL);
    answer_set(op, 5, "Succeeded");
    expect_question(op, MACHINES);
    driver_answer(
        op, 200,
        "{\"value\":["
        "{\"instanceId\":\"0\",\"name\":\"web_0\",\"id\":\"" SET_ID "/virtualMachines/0\","
        "\"zones\":[\"1\"],\"properties\":{\"provisioningState\":\"Succeeded\","
        "\"timeCreated\":\"2024-05-01T10:00:00.5+00:00\","
        "\"instanceView\":{\"statuses\":[{\"code\":\"ProvisioningState/succeeded\"},"
        "{\"code\":\"PowerState/running\"}]}}},"
        "{\"instanceId\":\"1\",\"id\":\"" SET_ID "/virtualMachines/1\",\"properties\":"
        "{\"provisioningState\":\"Creating\"}},"
        "{\"instanceId\":\"3\",\"id\":\"" SET_ID "/virtualMachines/3\",\"properties\":"
        "{\"provisioningState\":\"deleting\"}},"
        "{\"instanceId\":\"4\",\"id\":\"" SET_ID "/virtualMachines/4\",\"properties\":"
        "{\"provisioningState\":\"Updating\","
        "\"protectionPolicy\":{\"protectFromScaleIn\":true}}},"
        "{\"instanceId\":\"5\",\"id\":\"" SET_ID "/virtualMachines/5\",\"properties\":"
        "{\"provisioningState\":\"Succeeded\","
        "\"protectionPolicy\":{\"protectFromScaleSetActions\":true},"
        "\"instanceView\":{\"vmHealth\":{\"status\":{\"code\":\"HealthState/unhealthy\"}},"
        "\"statuses\":[{\"code\":\"PowerState/running\"}]}}},"
        "{\"instanceId\":\"6\",\"id\":\"" SET_ID "/virtualMachines/6\",\"properties\":"
        "{\"provisioningState\":\"Succeeded\",\"instanceView\":"
        "{\"statuses\":[{\"code\":\"PowerState/deallocated\"}]}}}"
        "]}");
    expect_question(op, AUTOSCALE);
    driver_answer(op, 200, NONE);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");

    const struct as_group_view *view = &given.op.view;
    cr_expect_eq(view->size, 5);
    cr_expect_eq(view->min, -1);
    cr_expect_eq(view->max, -1);
    cr_expect_not(view->in_progress);
    cr_expect_str_eq(view->version, "\"7\"");
    driver_expect_backing(&given, "azure/subscriptions/sub-1/resourcegroups/rg-1/providers/"
                                  "microsoft.compute/virtualmachinescalesets/web ");
    cr_expect_null(view->controller);
    cr_expect_null(view->shortage);
    cr_assert_eq(view->instance_count, 6);
    driver_expect_instance(&given, 0, "0 " SET_ID "/virtualMachines/0 1 running");
    cr_expect_eq(view->instances[0].created.at.us, INT64_C(1714557600500000));
    driver_expect_instance(&given, 1, "1 " SET_ID "/virtualMachines/1 - pending");
    driver_expect_instance(&given, 2, "3 " SET_ID "/virtualMachines/3 - leaving");
    driver_expect_instance(&given, 3, "4 " SET_ID "/virtualMachines/4 - running protected");
    driver_expect_instance(&given, 4,
                           "5 " SET_ID "/virtualMachines/5 - running unhealthy protected");
    driver_expect_instance(&given, 5, "6 " SET_ID "/virtualMachines/6 - running unhealthy");
    driver_end(&given);
}

/* Its machines are virtual machines of the resource group, and their names are their ids. */
Test(azure_vmss, flexible_set_is_read)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_reading(&given);
    driver_answer(op, 200,
                  "{\"id\":\"" SET_ID "\",\"sku\":{\"capacity\":1},\"properties\":"
                  "{\"provisioningState\":\"Updating\",\"orchestrationMode\":\"flexible\"}}");
    expect_question(
        op, SCOPE
        "/providers/Microsoft.Compute/virtualMachines?$filter=%27virtualMachineScaleSet%2Fid%27%20"
        "eq%20%27%2Fsubscriptions%2Fsub-1%2FresourceGroups%2Frg-1%2Fproviders%2FMicrosoft.Compute%"
        "2FvirtualMachineScaleSets%2Fweb%27&$expand=instanceView&api-version=2024-11-01");
    driver_answer(op, 200,
                  "{\"value\":[{\"name\":\"web_ab12\",\"id\":\"/subscriptions/sub-1/resourceGroups/"
                  "RG-1/providers/Microsoft.Compute/virtualMachines/web_ab12\",\"zones\":[\"2\"],"
                  "\"properties\":{\"provisioningState\":\"Succeeded\"}}]}");
    expect_question(op, AUTOSCALE);
    driver_answer(op, 200, NONE);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_expect(given.op.view.in_progress);
    cr_expect_str_eq(given.op.view.version, "");
    driver_expect_instance(&given, 0,
                           "web_ab12 /subscriptions/sub-1/resourceGroups/RG-1/providers/"
                           "Microsoft.Compute/virtualMachines/web_ab12 2 running");
    driver_end(&given);
}

Test(azure_vmss, etag_may_be_a_header)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_reading(&given);
    driver_respond(
        op, (struct as_http_response){.status = 200,
                                      .etag = "W/\"9\"",
                                      .body = "{\"id\":\"" SET_ID "\",\"sku\":{\"capacity\":0}}"});
    cr_expect_str_eq(given.op.view.version, "W/\"9\"");
    driver_end(&given);
}

Test(azure_vmss, unusable_etag_is_an_error)
{
    char etags[][AS_VERSION_SIZE + 1] = {"a\\r\\nX: y", ""};
    memset(etags[1], 'a', AS_VERSION_SIZE);
    for (size_t i = 0; i < AS_ARRAY_SIZE(etags); i++) {
        char body[1024];
        struct driver_group given = {0};
        struct as_cloud_op *op = begin_reading(&given);
        snprintf(body, sizeof(body),
                 "{\"id\":\"" SET_ID "\",\"etag\":\"%s\",\"sku\":{\"capacity\":0}}", etags[i]);
        driver_answer(op, 200, body);
        driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                          "get_scale_set: the answer's etag cannot be used");
        driver_end(&given);
    }
}

/* Failed for lack of machines, with Azure's words; other failures are no shortage. One that runs
 * although its provisioning failed (an extension) counts as running. */
Test(azure_vmss, failed_machines_tell_of_a_shortage)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_reading(&given);
    answer_set(op, 3, "Failed");
    driver_answer(
        op, 200,
        "{\"value\":[{\"instanceId\":\"1\",\"properties\":{\"provisioningState\":\"Failed\","
        "\"instanceView\":{\"statuses\":[{\"code\":\"ProvisioningState/failed/VMExtension\","
        "\"message\":\"bad\"},{\"code\":\"PowerState/running\"}]}}},"
        "{\"instanceId\":\"2\",\"properties\":{\"provisioningState\":\"Failed\","
        "\"instanceView\":{\"statuses\":[{\"code\":\"ProvisioningState/failed/OSProvisioning\","
        "\"message\":\"slow\"}]}}},"
        "{\"instanceId\":\"3\",\"properties\":{\"provisioningState\":\"Failed\","
        "\"instanceView\":{\"statuses\":[{\"code\":\"ProvisioningState/failed/AllocationFailed\","
        "\"message\":\"no room in this zone\"}]}}}]}");
    driver_answer(op, 200, NONE);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_expect_not(given.op.view.in_progress);
    cr_expect_str_eq(given.op.view.shortage, "AllocationFailed: no room in this zone");
    driver_expect_instance(&given, 0, "1 1 - running unhealthy");
    driver_expect_instance(&given, 1, "2 2 - failed unhealthy");
    driver_expect_instance(&given, 2, "3 3 - failed unhealthy");
    driver_end(&given);
}

Test(azure_vmss, autoscale_of_the_set_is_another_controller)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_reading(&given);
    answer_set(op, 0, "Succeeded");
    driver_answer(op, 200, NONE);
    driver_answer(op, 200,
                  "{\"value\":[{\"name\":\"other\",\"properties\":{\"enabled\":true,"
                  "\"targetResourceUri\":\"" SET_ID "2\"}},"
                  "{\"name\":\"off\",\"properties\":{\"enabled\":false,\"targetResourceUri\":"
                  "\"" SET_ID "\"}}],\"nextLink\":\"" AUTOSCALE "&$skiptoken=x\"}");
    expect_question(op, AUTOSCALE "&$skiptoken=x");
    driver_answer(op, 200,
                  "{\"value\":[{\"name\":\"night\",\"properties\":{\"enabled\":true,"
                  "\"targetResourceUri\":\"/subscriptions/SUB-1/resourcegroups/RG-1/providers/"
                  "microsoft.compute/virtualmachinescalesets/WEB\"}}]}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_expect_str_eq(given.op.view.controller, "Azure Monitor's autoscale setting night");
    driver_end(&given);
}

/* Where its provider was never registered there are no settings. */
Test(azure_vmss, autoscale_may_never_have_been_used)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_reading(&given);
    answer_set(op, 0, "Succeeded");
    driver_answer(op, 200, NONE);
    driver_answer(op, 409,
                  "{\"error\":{\"code\":\"MissingSubscriptionRegistration\",\"message\":\"m\"}}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_expect_null(given.op.view.controller);
    driver_end(&given);
}

Test(azure_vmss, autoscale_that_may_not_be_read_is_an_error)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_reading(&given);
    answer_set(op, 0, "Succeeded");
    driver_answer(op, 200, NONE);
    driver_answer(op, 403, "{\"error\":{\"code\":\"AuthorizationFailed\",\"message\":\"no\"}}");
    driver_expect_end(op, AS_CLOUD_OP_PERMISSION,
                      "list_autoscale_settings: AuthorizationFailed: no");
    driver_end(&given);
}

/* AKS sets its size, and does not support that others do. */
Test(azure_vmss, set_of_an_agent_pool_is_refused)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_reading(&given);
    driver_answer(op, 200,
                  "{\"id\":\"" SET_ID "\",\"tags\":{\"aks-managed-poolName\":\"np1\"},"
                  "\"sku\":{\"capacity\":0}}");
    driver_answer(op, 200, NONE);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_expect_str_eq(
        given.op.view.controller,
        "AKS, whose agent pool \"np1\" it is (give `cluster`, and the pool as `name`)");
    driver_end(&given);
}

Test(azure_vmss, set_that_goes_is_gone)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_reading(&given);
    answer_set(op, 2, "Deleting");
    driver_expect_end(op, AS_CLOUD_OP_GONE, "the scale set is being deleted");
    driver_end(&given);
}

Test(azure_vmss, pages_are_followed)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_reading(&given);
    answer_set(op, 2, "Succeeded");
    driver_answer(op, 200,
                  "{\"value\":[{\"instanceId\":\"0\"}],"
                  "\"nextLink\":\"https://MANAGEMENT.azure.com:443/next?%24skiptoken=a%20b\"}");
    expect_question(op, "https://MANAGEMENT.azure.com:443/next?%24skiptoken=a%20b");
    driver_answer(op, 200, "{\"value\":[{\"instanceId\":\"1\"}],\"nextLink\":\"\"}");
    expect_question(op, AUTOSCALE);
    cr_expect_eq(given.op.view.instance_count, 2);
    driver_end(&given);
}

Test(azure_vmss, pages_that_never_end_are_an_error)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_reading(&given);
    answer_set(op, 2, "Succeeded");
    while (op->want == AS_CLOUD_OP_SEND)
        driver_answer(op, 200, "{\"value\":[],\"nextLink\":\"" MACHINES "\"}");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, "given up after 2 pages: it never ends");
    driver_end(&given);
}

Test(azure_vmss, too_many_machines_are_an_error)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_reading(&given);
    const size_t size = 64 * (AS_GROUP_INSTANCES_MAX + 10);
    char *body = malloc(size);
    size_t at = (size_t)snprintf(body, size, "{\"value\":[");
    for (int i = 0; i <= AS_GROUP_INSTANCES_MAX; i++)
        at += (size_t)snprintf(body + at, size - at, "%s{\"instanceId\":\"%d\"}", i ? "," : "", i);
    snprintf(body + at, size - at, "]}");
    answer_set(op, 2, "Succeeded");
    driver_answer(op, 200, body);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, "the group has more than 20000 instances");
    free(body);
    driver_end(&given);
}

/* ---- answers that are not as they should be ---- */

Test(azure_vmss, broken_answers_are_errors)
{
    static const struct {
        const char *body, *message;
    } cases[] = {
        {"{\"id\":\"x\",\"sku\":{\"capac",
         "get_scale_set: the answer is not JSON: premature end of input near '\"capac'"},
        {"<html>", "get_scale_set: the answer is not JSON: '[' or '{' expected near '<'"},
        {"[]", "get_scale_set: the answer has no sku.capacity"},
        {"{\"id\":\"" SET_ID "\",\"sku\":{\"capacity\":\"many\"}}",
         "get_scale_set: the answer has no sku.capacity"},
        {"{\"id\":\"" SET_ID "\",\"sku\":{\"capacity\":-1}}",
         "get_scale_set: the answer has no sku.capacity"},
        {"{\"id\":\"" SET_ID "\",\"sku\":{\"capacity\":4294967298}}",
         "get_scale_set: the answer has no sku.capacity"},
        {"{\"sku\":{\"capacity\":1}}", "get_scale_set: the answer has no id"},
        {"{\"id\":7,\"sku\":{\"capacity\":1}}", "get_scale_set: the answer has no id"},
        {"{\"id\":\"a' or 'b\",\"sku\":{\"capacity\":1}}", "get_scale_set: the answer has no id"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct driver_group given = {0};
        struct as_cloud_op *op = begin_reading(&given);
        driver_answer(op, 200, cases[i].body);
        driver_expect_end(op, AS_CLOUD_OP_RETRY, cases[i].message);
        cr_expect_not(op->is_ambiguous);
        driver_end(&given);
    }
}

Test(azure_vmss, broken_lists_are_errors)
{
    static const struct {
        const char *body, *message;
    } cases[] = {
        {"", "list_instances: the answer is not JSON: '[' or '{' expected near end of file"},
        {"{\"value\":[{\"properties\":{}}]}", "list_instances: the answer has no value.name"},
        {"{\"value\":[7]}", "list_instances: the answer has no value.name"},
        {"{\"value\":\"x\"}", "list_instances: the answer has no value.name"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct driver_group given = {0};
        struct as_cloud_op *op = begin_reading(&given);
        answer_set(op, 1, "Succeeded");
        driver_answer(op, 200, cases[i].body);
        driver_expect_end(op, AS_CLOUD_OP_RETRY, cases[i].message);
        driver_end(&given);
    }
}

/* ---- the size ---- */

static struct as_cloud_op *begin_growing(struct driver_group *given, const char *version)
{
    given->op.from = 3;
    given->op.to = 5;
    given->op.version = version;
    name_set(given);
    driver_begin(given, "azure", AS_GROUP_GROW);
    return &given->op.op;
}

Test(azure_vmss, size_is_set_where_nothing_changed)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_growing(&given, "\"7\"");
    driver_expect(op, "PATCH", SET_URL, "{\"sku\":{\"capacity\":5}}");
    driver_expect_headers(op, "Content-Type: application/json\nIf-Match: \"7\"\n");
    cr_expect(op->request.is_change);
    cr_expect_str_eq(op->request.operation, "set_capacity");
    answer_fields(op, 202,
                  "x-ms-request-id\0req-1\0azure-asyncoperation\0" OPERATION "\0Location\0" BASE
                  "/elsewhere\0",
                  "");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_expect_str_eq(given.op.started, "operation " OPERATION);
    cr_expect_str_eq(op->request_id, "req-1");
    driver_end(&given);
}

Test(azure_vmss, without_a_version_there_is_no_condition)
{
    static const char *const versions[] = {"", NULL};
    for (size_t i = 0; i < AS_ARRAY_SIZE(versions); i++) {
        struct driver_group given = {0};
        struct as_cloud_op *op = begin_growing(&given, versions[i]);
        driver_expect_headers(op, "Content-Type: application/json\n");
        driver_end(&given);
    }
}

/* 412, but it has the size already: by a request whose answer was lost. */
Test(azure_vmss, changed_set_may_have_the_size)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_growing(&given, "\"7\"");
    driver_answer(op, 412, "{\"error\":{\"code\":\"PreconditionFailed\",\"message\":\"etag\"}}");
    expect_question(op, SET_URL);
    answer_set(op, 5, "Updating");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_expect_str_eq(given.op.started, "resource");
    driver_end(&given);
}

Test(azure_vmss, changed_set_is_looked_at_again)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_growing(&given, "\"7\"");
    driver_answer(op, 412, "");
    answer_set(op, 4, "Succeeded");
    driver_expect_end(op, AS_CLOUD_OP_BUSY,
                      "the scale set has changed since it was looked at: its size is 4");
    cr_expect_not(op->is_ambiguous);
    driver_end(&given);
}

Test(azure_vmss, lost_answer_leaves_it_open)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_growing(&given, "\"7\"");
    driver_break(op, AS_HTTP_TIMEOUT, "no answer in 10s");
    driver_expect_end(op, AS_CLOUD_OP_TIMEOUT, "set_capacity: no answer in 10s");
    cr_expect(op->is_ambiguous);
    driver_end(&given);
}

/* ---- removing ---- */

/* The set is read once more. */
static struct as_cloud_op *begin_removing_of(struct driver_group *given, const char *force,
                                             int32_t size)
{
    static const char *const ids[] = {"0", "7"};
    given->op.from = 3;
    given->op.to = 1;
    given->op.instances = ids;
    given->op.instance_count = 2;
    name_set(given);
    if (force)
        driver_field(given, "force_deletion", force);
    driver_begin(given, "azure", AS_GROUP_REMOVE);
    answer_set(&given->op.op, size, "Succeeded");
    driver_answer(
        &given->op.op, 200,
        "{\"value\":[{\"instanceId\":\"0\"},{\"instanceId\":\"1\"},{\"instanceId\":\"7\"}]}");
    driver_answer(&given->op.op, 200, NONE);
    return &given->op.op;
}

static struct as_cloud_op *begin_removing(struct driver_group *given, const char *force)
{
    return begin_removing_of(given, force, 3);
}

/* Draining takes its time. */
Test(azure_vmss, size_that_has_changed_lets_nobody_leave)
{
    static const struct {
        int32_t size;
        const char *message;
    } rows[] = {{2, "the group has changed since it was looked at: its size is 2"},
                {4, "the group has changed since it was looked at: its size is 4"}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct driver_group given = {0};
        struct as_cloud_op *op = begin_removing_of(&given, NULL, rows[i].size);
        driver_expect_end(op, AS_CLOUD_OP_BUSY, rows[i].message);
        driver_end(&given);
    }
}

Test(azure_vmss, instances_leave_by_name)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_removing(&given, NULL);
    driver_expect(op, "POST", SET "/delete?api-version=2024-11-01",
                  "{\"instanceIds\":[\"0\",\"7\"]}");
    driver_expect_headers(op, "Content-Type: application/json\n");
    cr_expect(op->request.is_change);
    answer_fields(op, 202, "Location\0" OPERATION "\0", "");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_expect_str_eq(given.op.started, "location " OPERATION);
    driver_end(&given);
}

Test(azure_vmss, force_is_left_out_where_it_is_refused)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_removing(&given, "true");
    driver_expect(op, "POST", SET "/delete?api-version=2024-11-01&forceDeletion=true",
                  "{\"instanceIds\":[\"0\",\"7\"]}");
    driver_answer(op, 409, "{\"error\":{\"code\":\"OperationNotAllowed\",\"message\":\"m\"}}");
    driver_expect(op, "POST", SET "/delete?api-version=2024-11-01",
                  "{\"instanceIds\":[\"0\",\"7\"]}");
    driver_answer(op, 409, "{\"error\":{\"code\":\"OperationNotAllowed\",\"message\":\"m\"}}");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, "delete_instances: OperationNotAllowed: m");
    driver_end(&given);
}

#define NOT_ACTIVE                                                                                 \
    "{\"error\":{\"code\":\"InvalidParameter\",\"message\":\"The provided instanceId 7 is not an " \
    "active Virtual Machine Scale Set VM instanceId.\",\"target\":\"instanceIds\"}}"

/* One that is gone fails the call for all: the others are asked for again. */
Test(azure_vmss, instance_already_gone_is_left_out)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_removing(&given, NULL);
    driver_answer(op, 400, NOT_ACTIVE);
    answer_set(op, 2, "Succeeded");
    driver_answer(op, 200,
                  "{\"value\":[{\"instanceId\":\"0\"},{\"instanceId\":\"1\"},"
                  "{\"instanceId\":\"7\",\"properties\":{\"provisioningState\":\"Deleting\"}}]}");
    driver_answer(op, 200, NONE);
    driver_expect(op, "POST", SET "/delete?api-version=2024-11-01", "{\"instanceIds\":[\"0\"]}");
    driver_answer(op, 200, "");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_expect_null(given.op.started);
    driver_end(&given);
}

Test(azure_vmss, instances_all_gone_are_what_was_asked_for)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_removing(&given, NULL);
    driver_answer(op, 404, "{\"error\":{\"code\":\"ResourceNotFound\",\"message\":\"m\"}}");
    answer_set(op, 1, "Succeeded");
    driver_answer(op, 200, "{\"value\":[{\"instanceId\":\"1\"}]}");
    driver_answer(op, 200, NONE);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_expect_null(given.op.started);
    driver_end(&given);
}

Test(azure_vmss, set_that_vanished_is_gone)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_removing(&given, NULL);
    driver_answer(op, 404, "{\"error\":{\"code\":\"ResourceNotFound\",\"message\":\"m\"}}");
    driver_answer(op, 404, "{\"error\":{\"code\":\"ResourceNotFound\",\"message\":\"m\"}}");
    driver_expect_end(op, AS_CLOUD_OP_GONE, "get_scale_set: ResourceNotFound: m");
    driver_end(&given);
}

/* The parameter is another one: it is not tried for ever. */
Test(azure_vmss, refused_removal_is_tried_again_once)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_removing(&given, NULL);
    driver_answer(op, 400, NOT_ACTIVE);
    answer_set(op, 3, "Succeeded");
    driver_answer(op, 200, "{\"value\":[{\"instanceId\":\"0\"},{\"instanceId\":\"7\"}]}");
    driver_answer(op, 200, NONE);
    driver_answer(op, 400, "{\"error\":{\"code\":\"InvalidParameter\",\"message\":\"m\"}}");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, "delete_instances: InvalidParameter: m");
    driver_end(&given);
}

/* ---- taking back ---- */

static struct as_cloud_op *begin_taking_back(struct driver_group *given, int32_t to)
{
    given->op.from = 5;
    given->op.to = to;
    name_set(given);
    driver_begin(given, "azure", AS_GROUP_TAKE_BACK);
    answer_set(&given->op.op, 5, "Succeeded");
    return &given->op.op;
}

Test(azure_vmss, capacity_that_never_came_is_taken_back)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_taking_back(&given, 3);
    driver_answer(op, 200,
                  "{\"value\":[{\"instanceId\":\"0\"},{\"instanceId\":\"1\"},"
                  "{\"instanceId\":\"2\",\"properties\":{\"provisioningState\":\"Creating\"}}]}");
    driver_answer(op, 200, NONE);
    driver_expect(op, "PATCH", SET_URL, "{\"sku\":{\"capacity\":3}}");
    driver_expect_headers(op, "Content-Type: application/json\nIf-Match: \"7\"\n");
    driver_answer(op, 200, "");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    driver_end(&given);
}

/* With the size lowered, Azure might take those that run. */
Test(azure_vmss, failed_instances_leave_by_name)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_taking_back(&given, 3);
    driver_answer(
        op, 200,
        "{\"value\":[{\"instanceId\":\"0\"},{\"instanceId\":\"1\"},{\"instanceId\":\"2\"},"
        "{\"instanceId\":\"3\",\"properties\":{\"provisioningState\":\"Failed\"}},"
        "{\"instanceId\":\"4\",\"properties\":{\"provisioningState\":\"Failed\"}},"
        "{\"instanceId\":\"5\",\"properties\":{\"provisioningState\":\"Failed\"}}]}");
    driver_answer(op, 200, NONE);
    driver_expect(op, "POST", SET "/delete?api-version=2024-11-01",
                  "{\"instanceIds\":[\"3\",\"4\"]}");
    driver_end(&given);
}

Test(azure_vmss, instances_that_came_are_not_taken_back)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_taking_back(&given, 1);
    driver_answer(op, 200, "{\"value\":[{\"instanceId\":\"0\"},{\"instanceId\":\"1\"}]}");
    driver_answer(op, 200, NONE);
    driver_expect_end(op, AS_CLOUD_OP_BUSY,
                      "the scale set has 2 instances by now: Azure would choose which leave, for a "
                      "size of 1");
    driver_end(&given);
}

Test(azure_vmss, nothing_is_taken_back_of_a_smaller_set)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_taking_back(&given, 5);
    driver_answer(op, 200, NONE);
    driver_answer(op, 200, NONE);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_expect_null(given.op.started);
    driver_end(&given);
}

/* ---- which set ---- */

Test(azure_vmss, names_stay_in_their_place)
{
    static const char *const names[] = {"..", ".", "", "a/b", "a'b", "a%2Fb", "a?b", "a\"b"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++) {
        char message[128];
        struct driver_group given = {0};
        driver_option(&given, "subscription", "sub-1");
        driver_field(&given, "resource_group", "rg-1");
        driver_field(&given, "name", names[i]);
        driver_begin(&given, "azure", AS_GROUP_READ);
        snprintf(message, sizeof(message), "`name` is \"%s\", which Azure allows for no name",
                 names[i]);
        driver_expect_end(&given.op.op, AS_CLOUD_OP_CONFIGURATION, message);
        driver_end(&given);
    }
}

Test(azure_vmss, endpoint_and_version_are_options)
{
    struct driver_group given = {0};
    driver_option(&given, "endpoint", "http://127.0.0.1:8080/");
    driver_option(&given, "compute_api_version", "2026-03-01");
    driver_option(&given, "subscription", "sub-1");
    driver_field(&given, "resource_group", "r (1)");
    driver_field(&given, "name", "web");
    driver_begin(&given, "azure", AS_GROUP_READ);
    expect_question(&given.op.op,
                    "http://127.0.0.1:8080/subscriptions/sub-1/resourceGroups/r%20%281%29/"
                    "providers/Microsoft.Compute/virtualMachineScaleSets/web?"
                    "api-version=2026-03-01");
    driver_end(&given);
}

Test(azure_vmss, clouds_have_endpoints)
{
    static const struct {
        const char *key, *value, *url, *message;
    } cases[] = {
        {"cloud", "china", "https://management.chinacloudapi.cn/", ""},
        {"cloud", "usgovernment", "https://management.usgovcloudapi.net/", ""},
        {"cloud", "public", "https://management.azure.com/", ""},
        {"cloud", "mars", NULL, "`cloud` is \"mars\": expected public, china or usgovernment"},
        {"endpoint", "http://management.azure.com", NULL,
         "`endpoint` is \"http://management.azure.com\": expected a URL with https:// (http:// "
         "only "
         "to this machine)"},
        {"endpoint", "http://127.0.0.1.evil.example", NULL,
         "`endpoint` is \"http://127.0.0.1.evil.example\": expected a URL with https:// (http:// "
         "only to this machine)"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct driver_group given = {0};
        struct as_cloud_op *op = &given.op.op;
        driver_option(&given, cases[i].key, cases[i].value);
        name_set(&given);
        driver_begin(&given, "azure", AS_GROUP_READ);
        if (cases[i].url)
            cr_expect(as_str_starts_with(op->request.url, cases[i].url), "%s", op->request.url);
        else
            driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, cases[i].message);
        driver_end(&given);
    }
}
