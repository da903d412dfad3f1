/*
 * Clouds as scripts: a group "web" of two running instances at each provider whose changes begin an
 * operation, and all bad ends of such an operation.
 */
#ifndef ALERTSCALER_TESTS_UNIT_TARGET_CLOUDS_H
#define ALERTSCALER_TESTS_UNIT_TARGET_CLOUDS_H

#include <alertscaler/base/str.h>
#include <alertscaler/cloud/provider_group.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/model/reason.h>

#define CLOUD_ANSWERS 10
#define CLOUD_ENDS    6

struct cloud_answer { /* to a request of this method with `part` in URL, headers or body */
    const char *method, *part;
    const char *body;
    int status;              /* 0: 200 */
    bool is_change;          /* polls are answered by an end from here on */
    const char *retry_after; /* NULL: none */
    const char *fields;
};

struct cloud_end { /* of an operation */
    const char *body;
    const char *words; /* in the action's message */
    enum as_reason outcome;
    bool is_shortage;
};

struct cloud {
    const char *name, *type;
    struct as_provider_option options[5];
    struct as_target_field fields[6];
    struct cloud_answer answers[CLOUD_ANSWERS];
    struct cloud_answer poll; /* method and part of what asks after an operation */
    const char *running;      /* the answer to it while the operation goes on */
    struct cloud_end ends[CLOUD_ENDS];
    bool has_no_growth; /* no operation of an increase is followed */
    bool has_no_names;  /* instances are told by their nodes only */
};

/* ---- Azure ---- */

#define AZURE_SET_ID                                                                               \
    "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/web"
#define AZURE_SET(state)                                                                           \
    "{\"id\":\"" AZURE_SET_ID "\",\"sku\":{\"capacity\":2},\"properties\":{"                       \
    "\"provisioningState\":\"" state "\"}}"
#define AZURE_MACHINE(id)                                                                          \
    "{\"instanceId\":\"" id "\",\"id\":\"" AZURE_SET_ID "/virtualMachines/" id "\","               \
    "\"properties\":{\"provisioningState\":\"Succeeded\"}}"
#define AZURE_OPERATION "https://cloud/operations/op-1"
#define AZURE_ERROR(code, message)                                                                 \
    "{\"status\":\"Failed\",\"error\":{\"code\":\"" code "\",\"message\":\"" message "\"}}"
#define AZURE_READING                                                                              \
    {"GET", "/virtualMachines?",                                                                   \
     .body = "{\"value\":[" AZURE_MACHINE("0") "," AZURE_MACHINE("1") "]}"},                       \
        {"GET", "/autoscalesettings?", .body = "{\"value\":[]}"},                                  \
    {                                                                                              \
        "GET", "/virtualMachineScaleSets/web?", .body = AZURE_SET("Succeeded")                     \
    }
#define AZURE_ENDS                                                                                 \
    {AZURE_ERROR("VMExtensionProvisioningError", "VM has reported a failure"),                     \
     "VMExtensionProvisioningError: VM has reported a failure", AS_REASON_UNREACHABLE, false},     \
        {AZURE_ERROR("OperationPreempted", "by a later one"), "OperationPreempted",                \
         AS_REASON_CONFLICT, false},                                                               \
        {AZURE_ERROR("AllocationFailed", "no machines"), "AllocationFailed", AS_REASON_REJECTED,   \
         true},                                                                                    \
        {AZURE_ERROR("InvalidParameter", "no"), "InvalidParameter", AS_REASON_REJECTED, false},    \
    {                                                                                              \
        "{\"status\":\"Canceled\"}", "Canceled", AS_REASON_CONFLICT, false                         \
    }

/* ---- Google ---- */

#define GOOGLE_PLACE "projects/p/zones/europe-west1-b"
#define GOOGLE_INSTANCE(name)                                                                      \
    "{\"instance\":\"https://www.googleapis.com/compute/v1/" GOOGLE_PLACE "/instances/" name       \
    "\",\"instanceStatus\":\"RUNNING\",\"currentAction\":\"NONE\"}"
#define GOOGLE_OPERATION "{\"name\":\"op-1\",\"status\":\"RUNNING\"}"
#define GOOGLE_ERROR(code, message)                                                                \
    "{\"name\":\"op-1\",\"status\":\"DONE\",\"error\":{\"errors\":[{\"code\":\"" code              \
    "\",\"message\":\"" message "\"}]}}"
#define GOOGLE_GROUP                                                                               \
    {"POST", "/listManagedInstances?",                                                             \
     .body = "{\"managedInstances\":[" GOOGLE_INSTANCE("a") "," GOOGLE_INSTANCE("b") "]}"},        \
        {"POST", "/resize?", .body = GOOGLE_OPERATION, .is_change = true},                         \
        {"POST", "/deleteInstances?", .body = GOOGLE_OPERATION, .is_change = true},                \
    {                                                                                              \
        "GET", "/instanceGroupManagers/web", .body = "{\"id\":\"7\",\"targetSize\":2}"             \
    }
#define GOOGLE_ENDS                                                                                \
    {GOOGLE_ERROR("INTERNAL_ERROR", "Internal error."), "INTERNAL_ERROR: Internal error.",         \
     AS_REASON_UNREACHABLE, false},                                                                \
        {GOOGLE_ERROR("QUOTA_EXCEEDED", "no more"), "QUOTA_EXCEEDED", AS_REASON_REJECTED, true},   \
        {GOOGLE_ERROR("RESOURCE_NOT_READY", "x"), "RESOURCE_NOT_READY", AS_REASON_CONFLICT,        \
         false},                                                                                   \
        {GOOGLE_ERROR("RESOURCE_NOT_FOUND", "x"), "RESOURCE_NOT_FOUND",                            \
         AS_REASON_TARGET_NOT_FOUND, false},                                                       \
    {                                                                                              \
        GOOGLE_ERROR("SOMETHING_NEW", "x"), "SOMETHING_NEW", AS_REASON_UNREACHABLE, false          \
    }

/* ---- the others ---- */

#define ALIBABA_INSTANCE(id)                                                                       \
    "{\"InstanceId\":\"" id "\",\"LifecycleState\":\"InService\",\"CreationType\":"                \
    "\"AutoCreated\"}"
#define ALIBABA_ACTIVITY(status, code)                                                             \
    "{\"ScalingActivities\":[{\"StatusCode\":\"" status "\",\"ErrorCode\":\"" code                 \
    "\",\"StatusMessage\":\"why\"}]}"

#define BAIDU_NODE(id)                                                                             \
    "{\"spec\":{\"cceInstanceID\":\"" id "\"},\"status\":{\"instancePhase\":\"running\"}}"
#define BAIDU_TASK(phase, message)                                                                 \
    "{\"task\":{\"phase\":\"" phase "\",\"errMessage\":\"" message "\"}}"

#define MAGNUM_GROUP(count, status, at, reason)                                                    \
    "{\"uuid\":\"u\",\"name\":\"web\",\"role\":\"worker\",\"updated_at\":\"" at                    \
    "\",\"node_count\":" count ",\"status\":\"" status "\",\"status_reason\":\"" reason "\"}"

#define AWS_RESPONSE(name, result)                                                                 \
    "<" name "Response><" name "Result>" result "</" name "Result></" name "Response>"
#define AWS_INSTANCE(id)                                                                           \
    "<member><InstanceId>" id "</InstanceId><LifecycleState>InService</LifecycleState></member>"
#define AWS_ACTIVITY(status)                                                                       \
    AWS_RESPONSE("DescribeScalingActivities",                                                      \
                 "<Activities><member><ActivityId>a-1</ActivityId><StatusCode>" status             \
                 "</StatusCode><StatusMessage>why</StatusMessage></member></Activities>")

#define AWS_READING                                                                                \
    {"POST", "Action=DescribeAutoScalingGroups",                                                   \
     .body = AWS_RESPONSE("DescribeAutoScalingGroups",                                             \
                          "<AutoScalingGroups><member><AutoScalingGroupName>web"                   \
                          "</AutoScalingGroupName><AutoScalingGroupARN>arn:g</"                    \
                          "AutoScalingGroupARN><DesiredCapacity>2</DesiredCapacity>"               \
                          "<Instances>" AWS_INSTANCE("i-1")                                        \
                              AWS_INSTANCE("i-2") "</Instances>"                                   \
                                                  "</member></AutoScalingGroups>")},               \
    {                                                                                              \
        "POST", "Action=DescribePolicies",                                                         \
            .body = AWS_RESPONSE("DescribePolicies", "<ScalingPolicies/>")                         \
    }

#define EQUINIX_DEVICE(id)                                                                         \
    "{\"id\":\"" id "\",\"hostname\":\"" id                                                        \
    "\",\"state\":\"active\",\"tags\":[\"k8s-cluster-c-1\","                                       \
    "\"k8s-nodepool-web\"]}"

static const struct cloud clouds[] = {
    {
        .name = "scale set, by its operation",
        .type = "azure",
        .options = {{"subscription", "s"}, {"endpoint", "https://cloud"}, {0}},
        .fields = {{"provider", "mine"}, {"resource_group", "rg"}, {"name", "web"}, {0}},
        .answers = {AZURE_READING,
                    {"PATCH", "/web?", .body = AZURE_SET("Updating"), .is_change = true,
                     .fields = "Azure-AsyncOperation\0" AZURE_OPERATION "\0"},
                    {"POST", "/delete?", .body = "", .status = 202, .is_change = true,
                     .fields = "Azure-AsyncOperation\0" AZURE_OPERATION "\0"}},
        .poll = {.method = "GET", .part = "/operations/op-1"},
        .running = "{\"status\":\"InProgress\"}",
        .ends = {AZURE_ENDS},
    },
    {
        .name = "scale set, by its own state",
        .type = "azure",
        .options = {{"subscription", "s"}, {"endpoint", "https://cloud"}, {0}},
        .fields = {{"provider", "mine"}, {"resource_group", "rg"}, {"name", "web"}, {0}},
        .answers = {AZURE_READING,
                    {"PATCH", "/web?", .body = AZURE_SET("Updating"), .is_change = true},
                    {"POST", "/delete?", .body = "", .status = 202, .is_change = true}},
        .poll = {.method = "GET", .part = "/virtualMachineScaleSets/web?"},
        .running = AZURE_SET("Updating"),
        .ends = {{AZURE_SET("Failed"), "Failed", AS_REASON_UNREACHABLE, false},
                 {AZURE_SET("Canceled"), "Canceled", AS_REASON_CONFLICT, false}},
    },
    {
        .name = "agent pool",
        .type = "azure",
        .options = {{"subscription", "s"}, {"endpoint", "https://cloud"}, {0}},
        .fields = {{"provider", "mine"},
                   {"resource_group", "rg"},
                   {"cluster", "prod"},
                   {"name", "web"},
                   {0}},
        .answers = {{"GET", "/machines?",
                     .body = "{\"value\":[{\"name\":\"m-0\"},{\"name\":\"m-1\"}]}"},
                    {"GET", "/agentPools/web?",
                     .body = "{\"properties\":{\"count\":2,\"provisioningState\":\"Succeeded\"}}"},
                    {"PUT", "/web?", .body = "{}", .is_change = true,
                     .fields = "Azure-AsyncOperation\0" AZURE_OPERATION "\0"},
                    {"POST", "/deleteMachines?", .body = "", .status = 202, .is_change = true,
                     .fields = "Azure-AsyncOperation\0" AZURE_OPERATION "\0"}},
        .poll = {.method = "GET", .part = "/operations/op-1"},
        .running = "{\"status\":\"InProgress\"}",
        .ends = {AZURE_ENDS},
    },
    {
        .name = "managed instance group",
        .type = "gce",
        .options = {{"project", "p"}, {"endpoint", "https://cloud"}, {0}},
        .fields = {{"provider", "mine"}, {"zone", "europe-west1-b"}, {"name", "web"}, {0}},
        .answers = {GOOGLE_GROUP},
        .poll = {.method = "GET", .part = "/operations/op-1"},
        .running = GOOGLE_OPERATION,
        .ends = {GOOGLE_ENDS},
    },
    {
        .name = "node pool of GKE",
        .type = "gke",
        .options = {{"project", "p"},
                    {"endpoint", "https://container"},
                    {"compute_endpoint", "https://cloud"},
                    {0}},
        .fields = {{"provider", "mine"},
                   {"cluster", "prod"},
                   {"location", "europe-west1-b"},
                   {"name", "web"},
                   {0}},
        .answers = {GOOGLE_GROUP,
                    {"GET", "/nodePools/web",
                     .body = "{\"status\":\"RUNNING\",\"instanceGroupUrls\":[\"https://"
                             "www.googleapis.com/compute/v1/" GOOGLE_PLACE
                             "/instanceGroupManagers/web\"]}"}},
        .poll = {.method = "GET", .part = "/operations/op-1"},
        .running = GOOGLE_OPERATION,
        .ends = {GOOGLE_ENDS},
    },
    {
        .name = "scaling group of Alibaba",
        .type = "alibaba",
        .options = {{"region", "cn-x"}, {"endpoint", "https://cloud"}, {0}},
        .fields = {{"provider", "mine"}, {"name", "web"}, {0}},
        .answers = {{"POST", "DescribeScalingGroups",
                     .body = "{\"ScalingGroups\":[{\"ScalingGroupId\":\"asg-1\",\"ScalingGroupName"
                             "\":\"web\",\"EnableDesiredCapacity\":true,\"DesiredCapacity\":2}]}"},
                    {"POST", "DescribeScalingInstances",
                     .body = "{\"TotalCount\":2,\"ScalingInstances\":[" ALIBABA_INSTANCE(
                         "i-1") "," ALIBABA_INSTANCE("i-2") "]}"},
                    {"POST", "ScaleWithAdjustment", .body = "{\"ScalingActivityId\":\"asa-1\"}",
                     .is_change = true},
                    {"POST", "RemoveInstances", .body = "{\"ScalingActivityId\":\"asa-1\"}",
                     .is_change = true}},
        .poll = {.method = "POST", .part = "ScalingActivityIds.1=asa-1"},
        .running = ALIBABA_ACTIVITY("InProgress", ""),
        .ends = {{ALIBABA_ACTIVITY("Warning", "Some.NewCode"), "ended as Warning: Some.NewCode",
                  AS_REASON_UNREACHABLE, false},
                 {ALIBABA_ACTIVITY("Failed", "OperationDenied.NoStock"), "NoStock",
                  AS_REASON_REJECTED, true},
                 {ALIBABA_ACTIVITY("Failed", ""), "ended as Failed", AS_REASON_UNREACHABLE, false},
                 {ALIBABA_ACTIVITY("Rejected", "IncorrectCapacity"), "ended as Rejected",
                  AS_REASON_REJECTED, false}},
    },
    {
        .name = "node group of CCE",
        .type = "baidu",
        .options = {{"endpoint", "https://cloud"}, {0}},
        .fields = {{"provider", "mine"}, {"cluster", "prod"}, {"name", "web"}, {0}},
        .answers = {{"GET", "/instances?",
                     .body = "{\"page\":{\"totalCount\":2,\"list\":[" BAIDU_NODE(
                         "n-1") "," BAIDU_NODE("n-2") "]}}"},
                    {"GET", "/instancegroup/web",
                     .body = "{\"instanceGroup\":{\"spec\":{\"replicas\":2}}}"},
                    {"PUT", "/scaleup?", .body = "{\"taskID\":\"t-1\"}", .is_change = true},
                    {"PUT", "/scaledown", .body = "{\"taskID\":\"t-1\"}", .is_change = true}},
        .poll = {.method = "GET", .part = "/task/InstanceGroupReplicas/t-1"},
        .running = BAIDU_TASK("Processing", ""),
        .ends = {{BAIDU_TASK("Aborted", "a hook failed"), "task t-1 was aborted: a hook failed",
                  AS_REASON_REJECTED, false},
                 {BAIDU_TASK("Aborted", "no stock"), "no stock", AS_REASON_REJECTED, true}},
    },
    {
        .name = "node group of Magnum",
        .type = "magnum",
        .options = {{"endpoint", "https://cloud"}, {0}},
        .fields = {{"provider", "mine"}, {"cluster", "prod"}, {"name", "web"}, {0}},
        .answers = {{"GET", "/nodegroups/web",
                     .body = MAGNUM_GROUP("2", "UPDATE_COMPLETE", "10:00", "")},
                    {"POST", "/actions/resize", .body = "{}", .status = 202, .is_change = true},
                    {"GET", "/clusters/prod", .body = "{\"status\":\"UPDATE_COMPLETE\"}"}},
        .poll = {.method = "GET", .part = "/nodegroups/web"},
        .running = MAGNUM_GROUP("2", "UPDATE_IN_PROGRESS", "10:00", ""),
        .ends = {{MAGNUM_GROUP("4", "UPDATE_FAILED", "10:05", "a resource failed"),
                  "UPDATE_FAILED: a resource failed", AS_REASON_REJECTED, false},
                 {MAGNUM_GROUP("4", "UPDATE_FAILED", "10:05", "No valid host was found"),
                  "UPDATE_FAILED: No valid host", AS_REASON_REJECTED, true}},
        .has_no_names = true,
    },
    {
        .name = "Auto Scaling group",
        .type = "aws",
        .options = {{"region", "eu-central-1"}, {"endpoint", "https://cloud"}, {0}},
        .fields = {{"provider", "mine"}, {"name", "web"}, {0}},
        .answers = {AWS_READING,
                    {"POST", "Action=TerminateInstance",
                     .body = AWS_RESPONSE("TerminateInstanceInAutoScalingGroup",
                                          "<Activity><ActivityId>a-1</ActivityId></Activity>"),
                     .is_change = true}},
        .poll = {.method = "POST", .part = "ActivityIds.member.1=a-1"},
        .running = AWS_ACTIVITY("InProgress"),
        .ends = {{AWS_ACTIVITY("Failed"), "Failed: why", AS_REASON_UNREACHABLE, false},
                 {AWS_ACTIVITY("Cancelled"), "Cancelled: why", AS_REASON_UNREACHABLE, false}},
        .has_no_growth = true,
    },
};

/* Their lists still have instances that they no longer have. */
static const struct cloud behind[] = {
    {
        .name = "node pool of DigitalOcean",
        .type = "digitalocean",
        .options = {{"endpoint", "https://cloud"}, {0}},
        .fields = {{"provider", "mine"}, {"cluster", "c-1"}, {"name", "web"}, {0}},
        .answers = {{"GET", "/node_pools?",
                     .body = "{\"node_pools\":[{\"id\":\"p-1\",\"name\":\"web\",\"count\":2,"
                             "\"nodes\":[{\"id\":\"n-1\",\"status\":{\"state\":\"running\"}},"
                             "{\"id\":\"n-2\",\"status\":{\"state\":\"running\"}}]}]}"},
                    {"DELETE", "/nodes/", .status = 404, .is_change = true,
                     .body = "{\"id\":\"not_found\",\"message\":\"it is not there\"}"}},
    },
    {
        .name = "devices of Equinix",
        .type = "equinix",
        .options = {{"endpoint", "https://cloud"}, {"project", "p"}, {0}},
        .fields = {{"provider", "mine"}, {"cluster", "c-1"}, {"name", "web"}, {0}},
        .answers = {{"GET", "/devices?",
                     .body = "{\"devices\":[" EQUINIX_DEVICE("d-1") "," EQUINIX_DEVICE(
                         "d-2") "],\"meta\":{\"next\":null}}"},
                    {"DELETE", "/devices/", .status = 404, .is_change = true,
                     .body = "{\"errors\":[\"Not found\"]}"}},
    },
    {
        .name = "Auto Scaling group",
        .type = "aws",
        .options = {{"region", "eu-central-1"}, {"endpoint", "https://cloud"}, {0}},
        .fields = {{"provider", "mine"}, {"name", "web"}, {0}},
        .answers = {AWS_READING,
                    {"POST", "Action=TerminateInstance", .status = 400, .is_change = true,
                     .body = "<ErrorResponse><Error><Code>ValidationError</Code><Message>Instance "
                             "Id not found - No managed instance found for instance ID: i-1"
                             "</Message></Error></ErrorResponse>"}},
    },
};

#endif
