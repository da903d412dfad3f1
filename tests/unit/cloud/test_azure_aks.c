/*
 * Agent pools of AKS: every request byte by byte, and the result of each answer.
 */
#include "azure.h"

#define MACHINES POOL "/machines?api-version=2025-05-01"
#define NONE     "{\"value\":[]}"
#define MACHINE                                                                                    \
    "/subscriptions/sub-1/resourceGroups/MC_x/providers/Microsoft.Compute/"                        \
    "virtualMachineScaleSets/aks-workers-1-vmss/virtualMachines/"

static struct as_cloud_op *begin(struct driver_group *given, enum as_group_verb verb)
{
    name_pool(given);
    driver_begin(given, "azure", verb);
    return &given->op.op;
}

/* ---- reading ---- */

Test(azure_aks, pool_is_read)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin(&given, AS_GROUP_READ);
    expect_question(op, POOL_URL);
    driver_answer(op, 200,
                  "{\"name\":\"workers\",\"properties\":{\"eTag\":\"5e5f\",\"count\":3,"
                  "\"mode\":\"User\",\"type\":\"VirtualMachineScaleSets\","
                  "\"enableAutoScaling\":false,\"minCount\":2,\"maxCount\":9,"
                  "\"provisioningState\":\"Succeeded\"}}");
    expect_question(op, MACHINES);
    driver_answer(op, 200,
                  "{\"value\":[{\"name\":\"aks-workers-1-vmss000000\",\"zones\":[\"3\"],"
                  "\"properties\":{\"resourceId\":\"" MACHINE "0\"}},"
                  "{\"name\":\"aks-workers-1-vmss00000a\",\"properties\":{\"resourceId\":"
                  "\"" MACHINE "10\",\"provisioningState\":\"Creating\"}}],"
                  "\"nextLink\":\"" MACHINES "&$skip=2\"}");
    expect_question(op, MACHINES "&$skip=2");
    driver_answer(op, 200,
                  "{\"value\":[{\"name\":\"c\",\"properties\":{\"provisioningState\":"
                  "\"Deleting\"}},{\"name\":\"d\",\"properties\":{\"provisioningState\":"
                  "\"Failed\"}}]}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    const struct as_group_view *view = &given.op.view;
    cr_expect_eq(view->size, 3);
    cr_expect_eq(view->min, -1); /* of an autoscaler that is off */
    cr_expect_eq(view->max, -1);
    cr_expect_not(view->in_progress);
    cr_expect_null(view->controller);
    cr_expect_str_eq(view->version, "5e5f");
    driver_expect_backing(&given,
                          "azure/subscriptions/sub-1/resourcegroups/rg-1/providers/microsoft."
                          "containerservice/managedclusters/prod/agentpools/workers "
                          "azure/subscriptions/sub-1/resourcegroups/mc_x/providers/microsoft."
                          "compute/virtualmachinescalesets/aks-workers-1-vmss ");
    cr_assert_eq(view->instance_count, 4);
    driver_expect_instance(&given, 0, "aks-workers-1-vmss000000 " MACHINE "0 3 running");
    driver_expect_instance(&given, 1, "aks-workers-1-vmss00000a " MACHINE "10 - pending");
    driver_expect_instance(&given, 2, "c c - leaving");
    driver_expect_instance(&given, 3, "d d - failed");
    driver_end(&given);
}

Test(azure_aks, a_pool_has_one_resource_in_every_letter_case)
{
    struct driver_group given = {0};
    driver_option(&given, "subscription", "SUB-1");
    driver_field(&given, "resource_group", "RG-1");
    driver_field(&given, "cluster", "Prod");
    driver_field(&given, "name", "Workers");
    driver_begin(&given, "azure", AS_GROUP_READ);
    driver_answer(&given.op.op, 200, "{\"properties\":{\"count\":3}}");
    driver_expect_backing(&given,
                          "azure/subscriptions/sub-1/resourcegroups/rg-1/providers/microsoft."
                          "containerservice/managedclusters/prod/agentpools/workers ");
    driver_end(&given);
}

Test(azure_aks, states_of_a_pool)
{
    static const struct {
        const char *properties;
        bool in_progress;
        const char *controller;
        int32_t min, max;
    } cases[] = {
        {"\"provisioningState\":\"Scaling\"", true, NULL, -1, -1},
        {"\"provisioningState\":\"Failed\"", false, NULL, -1, -1},
        {"\"provisioningState\":\"Canceled\"", false, NULL, -1, -1},
        {"\"mode\":\"System\"", false, NULL, 1, -1},
        {"\"enableAutoScaling\":true,\"minCount\":2,\"maxCount\":9", false,
         "the cluster autoscaler of AKS (enableAutoScaling)", 2, 9},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        char body[256];
        struct driver_group given = {0};
        struct as_cloud_op *op = begin(&given, AS_GROUP_READ);
        snprintf(body, sizeof(body), "{\"properties\":{\"count\":3,%s}}", cases[i].properties);
        driver_answer(op, 200, body);
        driver_answer(op, 200, NONE);
        driver_expect_end(op, AS_CLOUD_OP_OK, "");
        cr_expect_eq(given.op.view.in_progress, cases[i].in_progress, "%zu", i);
        cr_expect(as_str_equal(given.op.view.controller, cases[i].controller), "%zu", i);
        cr_expect_eq(given.op.view.min, cases[i].min);
        cr_expect_eq(given.op.view.max, cases[i].max);
        driver_end(&given);
    }
}

Test(azure_aks, pool_of_virtual_machines_has_its_size_elsewhere)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin(&given, AS_GROUP_READ);
    driver_answer(op, 200,
                  "{\"properties\":{\"type\":\"VirtualMachines\",\"virtualMachinesProfile\":"
                  "{\"scale\":{\"manual\":[{\"size\":\"D4\",\"count\":6}]}}}}");
    cr_expect_eq(given.op.view.size, 6);
    driver_end(&given);
}

Test(azure_aks, broken_answers_are_errors)
{
    static const struct {
        const char *body;
        enum as_cloud_op_fault fault;
        const char *message;
    } cases[] = {
        {"{\"properties\":{\"count\":null}}", AS_CLOUD_OP_RETRY,
         "get_agent_pool: the answer has no properties.count"},
        {"{\"properties\":7}", AS_CLOUD_OP_RETRY,
         "get_agent_pool: the answer has no properties.count"},
        {"{\"properties\":{\"count\":3}", AS_CLOUD_OP_RETRY,
         "get_agent_pool: the answer is not JSON: '}' expected near end of file"},
        {"{\"properties\":{\"count\":3,\"provisioningState\":\"Deleting\"}}", AS_CLOUD_OP_GONE,
         "the agent pool is being deleted"},
        {"{\"properties\":{\"type\":\"VirtualMachines\",\"virtualMachinesProfile\":{\"scale\":"
         "{\"manual\":[{\"size\":\"D4\",\"count\":6},{\"size\":\"D8\",\"count\":1}]}}}}",
         AS_CLOUD_OP_CONFIGURATION,
         "the agent pool has virtual machines of several sizes, or scales them itself: only one "
         "manual scale profile can be set"},
        {"{\"properties\":{\"type\":\"VirtualMachines\"}}", AS_CLOUD_OP_CONFIGURATION,
         "the agent pool has virtual machines of several sizes, or scales them itself: only one "
         "manual scale profile can be set"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct driver_group given = {0};
        struct as_cloud_op *op = begin(&given, AS_GROUP_READ);
        driver_answer(op, 200, cases[i].body);
        driver_expect_end(op, cases[i].fault, cases[i].message);
        driver_end(&given);
    }
}

Test(azure_aks, machine_without_a_name_is_an_error)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin(&given, AS_GROUP_READ);
    driver_answer(op, 200, "{\"properties\":{\"count\":3}}");
    driver_answer(op, 200, "{\"value\":[{\"name\":7}]}");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, "list_machines: the answer has no value.name");
    driver_end(&given);
}

/* ---- the size ---- */

static struct as_cloud_op *begin_growing(struct driver_group *given, const char *version)
{
    given->op.from = 3;
    given->op.to = 5;
    given->op.version = version;
    return begin(given, AS_GROUP_GROW);
}

/* All of it goes back, but what only AKS says; numbers as they were. */
Test(azure_aks, pool_goes_back_whole)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_growing(&given, "5e5f");
    expect_question(op, POOL_URL);
    driver_answer(
        op, 200,
        "{\"id\":\"/x\",\"name\":\"workers\",\"type\":\"t\",\"properties\":{"
        "\"eTag\":\"5e5f\",\"count\":3,\"vmSize\":\"D2\",\"spotMaxPrice\":0.98765,"
        "\"provisioningState\":\"Succeeded\",\"currentOrchestratorVersion\":\"1.30.1\","
        "\"orchestratorVersion\":\"1.30\",\"nodeImageVersion\":\"AKSUbuntu-1\","
        "\"nodeLabels\":{\"b\":\"\xC3\xBC\",\"a\":\"\"},\"nodeTaints\":[\"x=y:NoSchedule\"],"
        "\"virtualMachineNodesStatus\":[],\"status\":{},\"tags\":null}}");
    driver_expect(op, "PUT", POOL_URL,
                  "{\"properties\":{\"count\":5,\"vmSize\":\"D2\",\"spotMaxPrice\":0.98765,"
                  "\"orchestratorVersion\":\"1.30\",\"nodeLabels\":{\"b\":\"\xC3\xBC\",\"a\":\"\"},"
                  "\"nodeTaints\":[\"x=y:NoSchedule\"],\"tags\":null}}");
    driver_expect_headers(op, "Content-Type: application/json\nIf-Match: 5e5f\n");
    cr_expect(op->request.is_change);
    answer_fields(op, 200, "Azure-AsyncOperation\0" OPERATION "\0",
                  "{\"properties\":{\"provisioningState\":\"Scaling\"}}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_expect_str_eq(given.op.started, "operation " OPERATION);
    driver_end(&given);
}

Test(azure_aks, pool_of_virtual_machines_is_set)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_growing(&given, "");
    driver_answer(op, 200,
                  "{\"properties\":{\"eTag\":\"e\",\"type\":\"VirtualMachines\","
                  "\"virtualMachinesProfile\":{\"scale\":{\"manual\":[{\"size\":\"D4\",\"count\":3}"
                  "]}}}}");
    driver_expect(op, "PUT", POOL_URL,
                  "{\"properties\":{\"type\":\"VirtualMachines\",\"virtualMachinesProfile\":"
                  "{\"scale\":{\"manual\":[{\"size\":\"D4\",\"count\":5}]}}}}");
    driver_expect_headers(op, "Content-Type: application/json\nIf-Match: e\n");
    driver_end(&given);
}

Test(azure_aks, pool_that_is_not_as_it_was_is_left_alone)
{
    static const struct {
        const char *properties;
        enum as_cloud_op_fault fault;
        const char *message, *started;
    } cases[] = {
        {"\"eTag\":\"other\",\"count\":4", AS_CLOUD_OP_BUSY,
         "the agent pool has changed since it was looked at: its size is 4", NULL},
        /* perhaps by a request whose answer was lost */
        {"\"eTag\":\"other\",\"count\":5,\"provisioningState\":\"Scaling\"", AS_CLOUD_OP_OK, "",
         "resource"},
        {"\"eTag\":\"5e5f\",\"count\":3,\"enableAutoScaling\":true", AS_CLOUD_OP_CONFIGURATION,
         "the cluster autoscaler of AKS sets the agent pool's size: turn one off", NULL},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        char body[256];
        struct driver_group given = {0};
        struct as_cloud_op *op = begin_growing(&given, "5e5f");
        snprintf(body, sizeof(body), "{\"properties\":{%s}}", cases[i].properties);
        driver_answer(op, 200, body);
        driver_expect_end(op, cases[i].fault, cases[i].message);
        cr_expect(as_str_equal(given.op.started, cases[i].started));
        driver_end(&given);
    }
}

Test(azure_aks, change_in_between_is_seen)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_growing(&given, "5e5f");
    driver_answer(op, 200, "{\"properties\":{\"eTag\":\"5e5f\",\"count\":3}}");
    driver_answer(op, 412, "{\"code\":\"EtagMismatch\",\"message\":\"m\"}");
    driver_expect_end(op, AS_CLOUD_OP_BUSY, "set_agent_pool: EtagMismatch: m");
    cr_expect_not(op->is_ambiguous);
    driver_end(&given);
}

/* ---- removing ---- */

/* The pool is read once more. */
static struct as_cloud_op *begin_removing_of(struct driver_group *given, const char *pool)
{
    static const char *const names[] = {"aks-1", "aks-2"};
    given->op.instances = names;
    given->op.instance_count = 2;
    given->op.from = 3;
    given->op.to = 1;
    struct as_cloud_op *op = begin(given, AS_GROUP_REMOVE);
    expect_question(op, POOL_URL);
    driver_answer(op, 200, pool);
    driver_answer(op, 200,
                  "{\"value\":[{\"name\":\"aks-1\"},{\"name\":\"aks-2\"},{\"name\":\"aks-3\"}]}");
    return op;
}

static struct as_cloud_op *begin_removing(struct driver_group *given)
{
    return begin_removing_of(given, "{\"properties\":{\"count\":3}}");
}

/* Draining takes its time. */
Test(azure_aks, count_that_has_changed_lets_nobody_leave)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_removing_of(&given, "{\"properties\":{\"count\":4}}");
    driver_expect_end(op, AS_CLOUD_OP_BUSY,
                      "the group has changed since it was looked at: its size is 4");
    driver_end(&given);
}

#define DELETE POOL "/deleteMachines?api-version=2025-05-01"

Test(azure_aks, machines_leave_by_name)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_removing(&given);
    driver_expect(op, "POST", DELETE, "{\"machineNames\":[\"aks-1\",\"aks-2\"]}");
    driver_expect_headers(op, "Content-Type: application/json\n");
    answer_fields(op, 202, "Location\0" OPERATION "\0", "");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_expect_str_eq(given.op.started, "location " OPERATION);
    driver_end(&given);
}

Test(azure_aks, machine_already_gone_is_left_out)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_removing(&given);
    driver_answer(op, 404, "{\"code\":\"NotFound\",\"message\":\"aks-1\"}");
    driver_answer(op, 200, "{\"properties\":{\"count\":3}}");
    driver_answer(op, 200, "{\"value\":[{\"name\":\"aks-2\"}]}");
    driver_expect(op, "POST", DELETE, "{\"machineNames\":[\"aks-2\"]}");
    driver_answer(op, 404, "{\"code\":\"NotFound\",\"message\":\"aks-2\"}");
    driver_expect_end(op, AS_CLOUD_OP_GONE, "delete_machines: NotFound: aks-2");
    driver_end(&given);
}

Test(azure_aks, machines_all_gone_are_what_was_asked_for)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_removing(&given);
    driver_answer(op, 400, "{\"code\":\"InvalidParameter\",\"message\":\"m\"}");
    driver_answer(op, 200, "{\"properties\":{\"count\":3}}");
    driver_answer(op, 200, NONE);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    driver_end(&given);
}

Test(azure_aks, pool_at_work_is_busy)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_removing(&given);
    driver_answer(op, 409,
                  "{\"code\":\"OperationNotAllowed\",\"details\":null,\"message\":\"Operation is "
                  "not allowed: Another agentpool operation (workers - Scaling) is in progress, "
                  "please wait for it to finish before starting a new operation.\"}");
    cr_expect_eq(op->want, AS_CLOUD_OP_END);
    cr_expect_eq(op->fault, AS_CLOUD_OP_BUSY);
    driver_end(&given);
}

/* ---- taking back ---- */

static struct as_cloud_op *begin_taking_back(struct driver_group *given, const char *machines)
{
    given->op.from = 5;
    given->op.to = 2;
    struct as_cloud_op *op = begin(given, AS_GROUP_TAKE_BACK);
    driver_answer(op, 200, "{\"properties\":{\"eTag\":\"e\",\"count\":5}}");
    driver_answer(op, 200, machines);
    return op;
}

Test(azure_aks, capacity_that_never_came_is_taken_back)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_taking_back(&given, "{\"value\":[{\"name\":\"a\"}]}");
    expect_question(op, POOL_URL);
    driver_answer(op, 200, "{\"properties\":{\"eTag\":\"e\",\"count\":5}}");
    driver_expect(op, "PUT", POOL_URL, "{\"properties\":{\"count\":2}}");
    driver_expect_headers(op, "Content-Type: application/json\nIf-Match: e\n");
    driver_end(&given);
}

Test(azure_aks, machines_that_came_are_not_taken_back)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_taking_back(
        &given, "{\"value\":[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"c\"}]}");
    driver_expect_end(
        op, AS_CLOUD_OP_BUSY,
        "the agent pool has 3 instances by now: Azure would choose which leave, for a "
        "size of 2");
    driver_end(&given);
}

Test(azure_aks, failed_machines_leave_by_name)
{
    struct driver_group given = {0};
    struct as_cloud_op *op =
        begin_taking_back(&given, "{\"value\":[{\"name\":\"a\"},{\"name\":\"b\",\"properties\":"
                                  "{\"provisioningState\":\"Failed\"}}]}");
    driver_expect(op, "POST", DELETE, "{\"machineNames\":[\"b\"]}");
    driver_end(&given);
}

/* ---- which pool ---- */

Test(azure_aks, cluster_stays_in_its_place)
{
    struct driver_group given = {0};
    driver_option(&given, "subscription", "sub-1");
    driver_field(&given, "resource_group", "rg-1");
    driver_field(&given, "cluster", "..");
    driver_field(&given, "name", "workers");
    driver_begin(&given, "azure", AS_GROUP_READ);
    driver_expect_end(&given.op.op, AS_CLOUD_OP_CONFIGURATION,
                      "`cluster` is \"..\", which Azure allows for no name");
    driver_end(&given);
}

Test(azure_aks, version_is_an_option)
{
    struct driver_group given = {0};
    driver_option(&given, "aks_api_version", "2026-04-01");
    expect_question(begin(&given, AS_GROUP_READ), POOL "?api-version=2026-04-01");
    driver_end(&given);
}
