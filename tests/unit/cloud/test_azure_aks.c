/*
 * Agent pools of AKS: every request byte by byte, and the result of each answer.
 */
#include "azure.h"

#define MACHINES POOL "/machines?api-version=2025-05-01"
#define NONE     "{\"value\":[]}"
#define MACHINE                                                                                    \
    "/subscriptions/sub-1/resourceGroups/MC_x/providers/Microsoft.Compute/"                        \
    "virtualMachineScaleSets/aks-workers-1-vmss/virtualMachines/"

static struct as_talk *begin(struct talker_group *given, enum as_group_verb verb)
{
    name_pool(given);
    talker_begin(given, "azure", verb);
    return &given->talk.talk;
}

/* ---- reading ---- */

Test(azure_aks, pool_is_read)
{
    struct talker_group given = {0};
    struct as_talk *talk = begin(&given, AS_GROUP_READ);
    expect_question(talk, POOL_URL);
    talker_answer(talk, 200,
                  "{\"name\":\"workers\",\"properties\":{\"eTag\":\"5e5f\",\"count\":3,"
                  "\"mode\":\"User\",\"type\":\"VirtualMachineScaleSets\","
                  "\"enableAutoScaling\":false,\"minCount\":2,\"maxCount\":9,"
                  "\"provisioningState\":\"Succeeded\"}}");
    expect_question(talk, MACHINES);
    talker_answer(talk, 200,
                  "{\"value\":[{\"name\":\"aks-workers-1-vmss000000\",\"zones\":[\"3\"],"
                  "\"properties\":{\"resourceId\":\"" MACHINE "0\"}},"
                  "{\"name\":\"aks-workers-1-vmss00000a\",\"properties\":{\"resourceId\":"
                  "\"" MACHINE "10\",\"provisioningState\":\"Creating\"}}],"
                  "\"nextLink\":\"" MACHINES "&$skip=2\"}");
    expect_question(talk, MACHINES "&$skip=2");
    talker_answer(talk, 200,
                  "{\"value\":[{\"name\":\"c\",\"properties\":{\"provisioningState\":"
                  "\"Deleting\"}},{\"name\":\"d\",\"properties\":{\"provisioningState\":"
                  "\"Failed\"}}]}");
    talker_expect_end(talk, AS_TALK_OK, "");
    const struct as_group_view *view = &given.talk.view;
    cr_expect_eq(view->size, 3);
    cr_expect_eq(view->min, -1); /* of an autoscaler that is off */
    cr_expect_eq(view->max, -1);
    cr_expect_not(view->in_progress);
    cr_expect_null(view->controller);
    cr_expect_str_eq(view->version, "5e5f");
    talker_expect_backing(&given,
                          "azure/subscriptions/sub-1/resourcegroups/rg-1/providers/microsoft."
                          "containerservice/managedclusters/prod/agentpools/workers "
                          "azure/subscriptions/sub-1/resourcegroups/mc_x/providers/microsoft."
                          "compute/virtualmachinescalesets/aks-workers-1-vmss ");
    cr_assert_eq(view->instance_count, 4);
    talker_expect_instance(&given, 0, "aks-workers-1-vmss000000 " MACHINE "0 3 running");
    talker_expect_instance(&given, 1, "aks-workers-1-vmss00000a " MACHINE "10 - pending");
    talker_expect_instance(&given, 2, "c c - leaving");
    talker_expect_instance(&given, 3, "d d - failed");
    talker_end(&given);
}

Test(azure_aks, a_pool_has_one_resource_in_every_letter_case)
{
    struct talker_group given = {0};
    talker_option(&given, "subscription", "SUB-1");
    talker_field(&given, "resource_group", "RG-1");
    talker_field(&given, "cluster", "Prod");
    talker_field(&given, "name", "Workers");
    talker_begin(&given, "azure", AS_GROUP_READ);
    talker_answer(&given.talk.talk, 200, "{\"properties\":{\"count\":3}}");
    talker_expect_backing(&given,
                          "azure/subscriptions/sub-1/resourcegroups/rg-1/providers/microsoft."
                          "containerservice/managedclusters/prod/agentpools/workers ");
    talker_end(&given);
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
        struct talker_group given = {0};
        struct as_talk *talk = begin(&given, AS_GROUP_READ);
        snprintf(body, sizeof(body), "{\"properties\":{\"count\":3,%s}}", cases[i].properties);
        talker_answer(talk, 200, body);
        talker_answer(talk, 200, NONE);
        talker_expect_end(talk, AS_TALK_OK, "");
        cr_expect_eq(given.talk.view.in_progress, cases[i].in_progress, "%zu", i);
        cr_expect(as_str_equal(given.talk.view.controller, cases[i].controller), "%zu", i);
        cr_expect_eq(given.talk.view.min, cases[i].min);
        cr_expect_eq(given.talk.view.max, cases[i].max);
        talker_end(&given);
    }
}

Test(azure_aks, pool_of_virtual_machines_has_its_size_elsewhere)
{
    struct talker_group given = {0};
    struct as_talk *talk = begin(&given, AS_GROUP_READ);
    talker_answer(talk, 200,
                  "{\"properties\":{\"type\":\"VirtualMachines\",\"virtualMachinesProfile\":"
                  "{\"scale\":{\"manual\":[{\"size\":\"D4\",\"count\":6}]}}}}");
    cr_expect_eq(given.talk.view.size, 6);
    talker_end(&given);
}

Test(azure_aks, broken_answers_are_errors)
{
    static const struct {
        const char *body;
        enum as_talk_fault fault;
        const char *message;
    } cases[] = {
        {"{\"properties\":{\"count\":null}}", AS_TALK_RETRY,
         "get_agent_pool: the answer has no properties.count"},
        {"{\"properties\":7}", AS_TALK_RETRY, "get_agent_pool: the answer has no properties.count"},
        {"{\"properties\":{\"count\":3}", AS_TALK_RETRY,
         "get_agent_pool: the answer is not JSON: '}' expected near end of file"},
        {"{\"properties\":{\"count\":3,\"provisioningState\":\"Deleting\"}}", AS_TALK_GONE,
         "the agent pool is being deleted"},
        {"{\"properties\":{\"type\":\"VirtualMachines\",\"virtualMachinesProfile\":{\"scale\":"
         "{\"manual\":[{\"size\":\"D4\",\"count\":6},{\"size\":\"D8\",\"count\":1}]}}}}",
         AS_TALK_CONFIGURATION,
         "the agent pool has virtual machines of several sizes, or scales them itself: only one "
         "manual scale profile can be set"},
        {"{\"properties\":{\"type\":\"VirtualMachines\"}}", AS_TALK_CONFIGURATION,
         "the agent pool has virtual machines of several sizes, or scales them itself: only one "
         "manual scale profile can be set"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct talker_group given = {0};
        struct as_talk *talk = begin(&given, AS_GROUP_READ);
        talker_answer(talk, 200, cases[i].body);
        talker_expect_end(talk, cases[i].fault, cases[i].message);
        talker_end(&given);
    }
}

Test(azure_aks, machine_without_a_name_is_an_error)
{
    struct talker_group given = {0};
    struct as_talk *talk = begin(&given, AS_GROUP_READ);
    talker_answer(talk, 200, "{\"properties\":{\"count\":3}}");
    talker_answer(talk, 200, "{\"value\":[{\"name\":7}]}");
    talker_expect_end(talk, AS_TALK_RETRY, "list_machines: the answer has no value.name");
    talker_end(&given);
}

/* ---- the size ---- */

static struct as_talk *begin_growing(struct talker_group *given, const char *version)
{
    given->talk.from = 3;
    given->talk.to = 5;
    given->talk.version = version;
    return begin(given, AS_GROUP_GROW);
}

/* All of it goes back, but what only AKS says; numbers as they were. */
Test(azure_aks, pool_goes_back_whole)
{
    struct talker_group given = {0};
    struct as_talk *talk = begin_growing(&given, "5e5f");
    expect_question(talk, POOL_URL);
    talker_answer(
        talk, 200,
        "{\"id\":\"/x\",\"name\":\"workers\",\"type\":\"t\",\"properties\":{"
        "\"eTag\":\"5e5f\",\"count\":3,\"vmSize\":\"D2\",\"spotMaxPrice\":0.98765,"
        "\"provisioningState\":\"Succeeded\",\"currentOrchestratorVersion\":\"1.30.1\","
        "\"orchestratorVersion\":\"1.30\",\"nodeImageVersion\":\"AKSUbuntu-1\","
        "\"nodeLabels\":{\"b\":\"\xC3\xBC\",\"a\":\"\"},\"nodeTaints\":[\"x=y:NoSchedule\"],"
        "\"virtualMachineNodesStatus\":[],\"status\":{},\"tags\":null}}");
    talker_expect(talk, "PUT", POOL_URL,
                  "{\"properties\":{\"count\":5,\"vmSize\":\"D2\",\"spotMaxPrice\":0.98765,"
                  "\"orchestratorVersion\":\"1.30\",\"nodeLabels\":{\"b\":\"\xC3\xBC\",\"a\":\"\"},"
                  "\"nodeTaints\":[\"x=y:NoSchedule\"],\"tags\":null}}");
    talker_expect_headers(talk, "Content-Type: application/json\nIf-Match: 5e5f\n");
    cr_expect(talk->request.is_change);
    answer_fields(talk, 200, "Azure-AsyncOperation\0" OPERATION "\0",
                  "{\"properties\":{\"provisioningState\":\"Scaling\"}}");
    talker_expect_end(talk, AS_TALK_OK, "");
    cr_expect_str_eq(given.talk.started, "operation " OPERATION);
    talker_end(&given);
}

Test(azure_aks, pool_of_virtual_machines_is_set)
{
    struct talker_group given = {0};
    struct as_talk *talk = begin_growing(&given, "");
    talker_answer(talk, 200,
                  "{\"properties\":{\"eTag\":\"e\",\"type\":\"VirtualMachines\","
                  "\"virtualMachinesProfile\":{\"scale\":{\"manual\":[{\"size\":\"D4\",\"count\":3}"
                  "]}}}}");
    talker_expect(talk, "PUT", POOL_URL,
                  "{\"properties\":{\"type\":\"VirtualMachines\",\"virtualMachinesProfile\":"
                  "{\"scale\":{\"manual\":[{\"size\":\"D4\",\"count\":5}]}}}}");
    talker_expect_headers(talk, "Content-Type: application/json\nIf-Match: e\n");
    talker_end(&given);
}

Test(azure_aks, pool_that_is_not_as_it_was_is_left_alone)
{
    static const struct {
        const char *properties;
        enum as_talk_fault fault;
        const char *message, *started;
    } cases[] = {
        {"\"eTag\":\"other\",\"count\":4", AS_TALK_BUSY,
         "the agent pool has changed since it was looked at: its size is 4", NULL},
        /* perhaps by a request whose answer was lost */
        {"\"eTag\":\"other\",\"count\":5,\"provisioningState\":\"Scaling\"", AS_TALK_OK, "",
         "resource"},
        {"\"eTag\":\"5e5f\",\"count\":3,\"enableAutoScaling\":true", AS_TALK_CONFIGURATION,
         "the cluster autoscaler of AKS sets the agent pool's size: turn one off", NULL},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        char body[256];
        struct talker_group given = {0};
        struct as_talk *talk = begin_growing(&given, "5e5f");
        snprintf(body, sizeof(body), "{\"properties\":{%s}}", cases[i].properties);
        talker_answer(talk, 200, body);
        talker_expect_end(talk, cases[i].fault, cases[i].message);
        cr_expect(as_str_equal(given.talk.started, cases[i].started));
        talker_end(&given);
    }
}

Test(azure_aks, change_in_between_is_seen)
{
    struct talker_group given = {0};
    struct as_talk *talk = begin_growing(&given, "5e5f");
    talker_answer(talk, 200, "{\"properties\":{\"eTag\":\"5e5f\",\"count\":3}}");
    talker_answer(talk, 412, "{\"code\":\"EtagMismatch\",\"message\":\"m\"}");
    talker_expect_end(talk, AS_TALK_BUSY, "set_agent_pool: EtagMismatch: m");
    cr_expect_not(talk->is_ambiguous);
    talker_end(&given);
}

/* ---- removing ---- */

/* The pool is read once more. */
static struct as_talk *begin_removing_of(struct talker_group *given, const char *pool)
{
    static const char *const names[] = {"aks-1", "aks-2"};
    given->talk.instances = names;
    given->talk.instance_count = 2;
    given->talk.from = 3;
    given->talk.to = 1;
    struct as_talk *talk = begin(given, AS_GROUP_REMOVE);
    expect_question(talk, POOL_URL);
    talker_answer(talk, 200, pool);
    talker_answer(talk, 200,
                  "{\"value\":[{\"name\":\"aks-1\"},{\"name\":\"aks-2\"},{\"name\":\"aks-3\"}]}");
    return talk;
}

static struct as_talk *begin_removing(struct talker_group *given)
{
    return begin_removing_of(given, "{\"properties\":{\"count\":3}}");
}

/* Draining takes its time. */
Test(azure_aks, count_that_has_changed_lets_nobody_leave)
{
    struct talker_group given = {0};
    struct as_talk *talk = begin_removing_of(&given, "{\"properties\":{\"count\":4}}");
    talker_expect_end(talk, AS_TALK_BUSY,
                      "the group has changed since it was looked at: its size is 4");
    talker_end(&given);
}

#define DELETE POOL "/deleteMachines?api-version=2025-05-01"

Test(azure_aks, machines_leave_by_name)
{
    struct talker_group given = {0};
    struct as_talk *talk = begin_removing(&given);
    talker_expect(talk, "POST", DELETE, "{\"machineNames\":[\"aks-1\",\"aks-2\"]}");
    talker_expect_headers(talk, "Content-Type: application/json\n");
    answer_fields(talk, 202, "Location\0" OPERATION "\0", "");
    talker_expect_end(talk, AS_TALK_OK, "");
    cr_expect_str_eq(given.talk.started, "location " OPERATION);
    talker_end(&given);
}

Test(azure_aks, machine_already_gone_is_left_out)
{
    struct talker_group given = {0};
    struct as_talk *talk = begin_removing(&given);
    talker_answer(talk, 404, "{\"code\":\"NotFound\",\"message\":\"aks-1\"}");
    talker_answer(talk, 200, "{\"properties\":{\"count\":3}}");
    talker_answer(talk, 200, "{\"value\":[{\"name\":\"aks-2\"}]}");
    talker_expect(talk, "POST", DELETE, "{\"machineNames\":[\"aks-2\"]}");
    talker_answer(talk, 404, "{\"code\":\"NotFound\",\"message\":\"aks-2\"}");
    talker_expect_end(talk, AS_TALK_GONE, "delete_machines: NotFound: aks-2");
    talker_end(&given);
}

Test(azure_aks, machines_all_gone_are_what_was_asked_for)
{
    struct talker_group given = {0};
    struct as_talk *talk = begin_removing(&given);
    talker_answer(talk, 400, "{\"code\":\"InvalidParameter\",\"message\":\"m\"}");
    talker_answer(talk, 200, "{\"properties\":{\"count\":3}}");
    talker_answer(talk, 200, NONE);
    talker_expect_end(talk, AS_TALK_OK, "");
    talker_end(&given);
}

Test(azure_aks, pool_at_work_is_busy)
{
    struct talker_group given = {0};
    struct as_talk *talk = begin_removing(&given);
    talker_answer(talk, 409,
                  "{\"code\":\"OperationNotAllowed\",\"details\":null,\"message\":\"Operation is "
                  "not allowed: Another agentpool operation (workers - Scaling) is in progress, "
                  "please wait for it to finish before starting a new operation.\"}");
    cr_expect_eq(talk->want, AS_TALK_END);
    cr_expect_eq(talk->fault, AS_TALK_BUSY);
    talker_end(&given);
}

/* ---- taking back ---- */

static struct as_talk *begin_taking_back(struct talker_group *given, const char *machines)
{
    given->talk.from = 5;
    given->talk.to = 2;
    struct as_talk *talk = begin(given, AS_GROUP_TAKE_BACK);
    talker_answer(talk, 200, "{\"properties\":{\"eTag\":\"e\",\"count\":5}}");
    talker_answer(talk, 200, machines);
    return talk;
}

Test(azure_aks, capacity_that_never_came_is_taken_back)
{
    struct talker_group given = {0};
    struct as_talk *talk = begin_taking_back(&given, "{\"value\":[{\"name\":\"a\"}]}");
    expect_question(talk, POOL_URL);
    talker_answer(talk, 200, "{\"properties\":{\"eTag\":\"e\",\"count\":5}}");
    talker_expect(talk, "PUT", POOL_URL, "{\"properties\":{\"count\":2}}");
    talker_expect_headers(talk, "Content-Type: application/json\nIf-Match: e\n");
    talker_end(&given);
}

Test(azure_aks, machines_that_came_are_not_taken_back)
{
    struct talker_group given = {0};
    struct as_talk *talk = begin_taking_back(
        &given, "{\"value\":[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"c\"}]}");
    talker_expect_end(
        talk, AS_TALK_BUSY,
        "the agent pool has 3 instances by now: Azure would choose which leave, for a "
        "size of 2");
    talker_end(&given);
}

Test(azure_aks, failed_machines_leave_by_name)
{
    struct talker_group given = {0};
    struct as_talk *talk =
        begin_taking_back(&given, "{\"value\":[{\"name\":\"a\"},{\"name\":\"b\",\"properties\":"
                                  "{\"provisioningState\":\"Failed\"}}]}");
    talker_expect(talk, "POST", DELETE, "{\"machineNames\":[\"b\"]}");
    talker_end(&given);
}

/* ---- which pool ---- */

Test(azure_aks, cluster_stays_in_its_place)
{
    struct talker_group given = {0};
    talker_option(&given, "subscription", "sub-1");
    talker_field(&given, "resource_group", "rg-1");
    talker_field(&given, "cluster", "..");
    talker_field(&given, "name", "workers");
    talker_begin(&given, "azure", AS_GROUP_READ);
    talker_expect_end(&given.talk.talk, AS_TALK_CONFIGURATION,
                      "`cluster` is \"..\", which Azure allows for no name");
    talker_end(&given);
}

Test(azure_aks, version_is_an_option)
{
    struct talker_group given = {0};
    talker_option(&given, "aks_api_version", "2026-04-01");
    expect_question(begin(&given, AS_GROUP_READ), POOL "?api-version=2026-04-01");
    talker_end(&given);
}
