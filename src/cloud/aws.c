/*
 * AWS: EC2 Auto Scaling groups, over the query protocol, and managed node groups of EKS, which are
 * Auto Scaling groups under another name:
 * https://docs.aws.amazon.com/autoscaling/ec2/APIReference/
 * https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeNodegroup.html
 *
 * The size is only set upward. Instances are removed by name, one call each; each call also lowers
 * the size. The size must still be the one of the decision. Groups whose size does not count
 * instances (weights, CPUs) are refused.
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/str.h>

#include "provider_answer.h"
#include "providers.h"

#define API_VERSION    "2011-01-01"
#define ACTIVITIES_MAX 50 /* names in one request */

struct state {
    const char *base;   /* of the endpoint, without the slash at its end */
    const char *region; /* of both APIs */
    const char *name;   /* of the Auto Scaling group */
    const char *issue;  /* of an EKS node group: its problem; NULL */
    const char *code;   /* of the last error; "": no code */
    size_t removed;     /* instances of a removal that are done */
    char *activities;   /* names of activities not yet asked for, separated by spaces */
    const char *failed; /* how the first of them failed; NULL */
    bool is_deaf;       /* the group ignores alarms, which drive most policies */
};

static struct state *aws_get_state(struct as_cloud_op *op)
{
    return as_group_get(op)->state;
}

/* ---- requests ---- */

static void aws_ask(struct as_cloud_op *op, const char *action)
{
    as_cloud_op_ask(op, "POST", "%s/", aws_get_state(op)->base);
    as_cloud_op_header(op, "Content-Type: application/x-www-form-urlencoded; charset=utf-8");
    as_buf_printf(&op->request.body, "Action=%s&Version=" API_VERSION, action);
}

/* ---- answers ---- */

static bool aws_is_good(struct as_cloud_op *op)
{
    return aws_is_good_xml(op, &aws_get_state(op)->code);
}

/* The document of an action's response; NULL after failing the op. */
static const json_t *take_response(struct as_cloud_op *op, const char *response)
{
    if (!aws_is_good(op))
        return NULL;
    const json_t *document = answer_xml(op);
    if (!document)
        return NULL;
    const json_t *root = answer_find(document, response);
    as_cloud_op_take_request_id(op, answer_text(root, "ResponseMetadata.RequestId"));
    return root ? root : answer_misses(op, response);
}

/* ---- reading ---- */

/* The others, Terminating*, Standby, Detached, ..., are not part of the size. */
static const struct answer_word lifecycles[] = {
    {"InService", AS_INSTANCE_RUNNING},
    {"Pending*", AS_INSTANCE_PENDING},
    {"ReplacingRootVolume*", AS_INSTANCE_PENDING}, /* it comes back */
    {"RootVolumeReplaced", AS_INSTANCE_PENDING},
    {NULL, 0},
};

/* Whether the group's size counts instances; false after failing the op. */
static bool check_unit(struct as_cloud_op *op, const json_t *group)
{
    static const char *const lists[] = {"Instances.member",
                                        "MixedInstancesPolicy.LaunchTemplate.Overrides.member"};
    const char *unit = answer_text(group, "DesiredCapacityType");
    bool is_weighted = false;
    for (size_t i = 0; i < AS_ARRAY_SIZE(lists); i++) {
        const size_t count = answer_count(group, lists[i]);
        for (size_t at = 0; at < count; at++)
            is_weighted = is_weighted ||
                          answer_size(answer_at(group, lists[i], at), "WeightedCapacity", 1) != 1;
    }
    if (!is_weighted && (!*unit || strcmp(unit, "units") == 0))
        return true;
    as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                     "the size of this group does not count instances, but %s: such groups are not "
                     "supported",
                     is_weighted ? "their weights" : unit);
    return false;
}

/* False after failing the op. */
static bool add_instances(struct as_group_op *op, const json_t *group)
{
    const size_t count = answer_count(group, "Instances.member");
    for (size_t i = 0; i < count; i++) {
        const json_t *member = answer_at(group, "Instances.member", i);
        const char *lifecycle = answer_text(member, "LifecycleState");
        if (as_str_starts_with(lifecycle, "Warmed:")) /* in the warm pool: not part of the size */
            continue;
        const struct as_instance instance = {
            .id = answer_text(member, "InstanceId"),
            .zone = answer_text(member, "AvailabilityZone"),
            .state = answer_judge(lifecycles, lifecycle, AS_INSTANCE_LEAVING),
            .is_unhealthy = strcmp(answer_text(member, "HealthStatus"), "Unhealthy") == 0,
            .is_protected = answer_is_true(member, "ProtectedFromScaleIn"),
        };
        if (!as_group_add_instance(op, &instance))
            return false;
    }
    return true;
}

/* Activities come newest first: the newest that failed tells why instances do not come. */
static void on_activities(struct as_cloud_op *op)
{
    static const char path[] = "DescribeScalingActivitiesResult.Activities.member";
    struct as_group_view *view = &as_group_get(op)->view;
    const json_t *root = take_response(op, "DescribeScalingActivitiesResponse");
    if (!root)
        return;
    for (size_t i = 0; i < answer_count(root, path); i++) {
        const json_t *activity = answer_at(root, path, i);
        if (strcmp(answer_text(activity, "StatusCode"), "Failed") == 0) {
            view->shortage = as_arena_strdup(&op->arena, answer_text(activity, "StatusMessage"));
            view->shortage_since = answer_time(activity, "StartTime");
            break;
        }
    }
    as_cloud_op_end(op);
}

/* If instances are missing, asks the group's activities for the reason. */
static void ask_why(struct as_cloud_op *op)
{
    const struct as_group_view *view = &as_group_get(op)->view;
    if (view->size <= as_group_count_coming(view)) {
        as_cloud_op_end(op);
        return;
    }
    aws_ask(op, "DescribeScalingActivities");
    as_cloud_op_add_parameter(op, "AutoScalingGroupName", aws_get_state(op)->name);
    as_cloud_op_add_parameter(op, "MaxRecords", "10");
    as_cloud_op_send_question(op, "describe_scaling_activities", on_activities);
}

/* Whether a policy sets the size by itself. */
static bool is_policy_at_work(const struct state *state, const json_t *policy)
{
    if (strcmp(answer_text(policy, "Enabled"), "false") == 0)
        return false;
    if (strcmp(answer_text(policy, "PolicyType"), "PredictiveScaling") == 0)
        return strcmp(answer_text(policy, "PredictiveScalingConfiguration.Mode"),
                      "ForecastAndScale") == 0;
    return !state->is_deaf;
}

/* One page holds all policies of a group. Without the right to ask, goes on without them. */
static void on_policies(struct as_cloud_op *op)
{
    static const char path[] = "DescribePoliciesResult.ScalingPolicies.member";
    struct as_group_view *view = &as_group_get(op)->view;
    const json_t *root = take_response(op, "DescribePoliciesResponse");
    if (!root && op->fault != AS_CLOUD_OP_PERMISSION)
        return;
    for (size_t i = 0; root && !view->controller && i < answer_count(root, path); i++) {
        const json_t *policy = answer_at(root, path, i);
        if (is_policy_at_work(aws_get_state(op), policy))
            view->controller = as_cloud_op_print(op, "the scaling policy %s (%s)",
                                                 answer_text(policy, "PolicyName"),
                                                 answer_text(policy, "PolicyType"));
    }
    ask_why(op);
}

/* Suspended processes make a change wait forever. */
static void add_suspended(struct as_cloud_op *op, const json_t *group)
{
    static const char path[] = "SuspendedProcesses.member";
    struct as_group_view *view = &as_group_get(op)->view;
    for (size_t i = 0; i < answer_count(group, path); i++) {
        const char *name = answer_text(answer_at(group, path, i), "ProcessName");
        if (strcmp(name, "Launch") == 0)
            view->no_increase = "the group's process Launch is suspended";
        else if (strcmp(name, "Terminate") == 0)
            view->no_removal = "the group's process Terminate is suspended";
        else if (strcmp(name, "AlarmNotification") == 0)
            aws_get_state(op)->is_deaf = true;
    }
}

/* A node group of EKS has the same ARN as its Auto Scaling group. False after failing the op. */
static bool add_arn(struct as_cloud_op *op, const json_t *group)
{
    static const char key[] = "AutoScalingGroupARN";
    const char *arn = answer_text(group, key);
    return *arn ? as_group_add_backing(as_group_get(op), "aws/%s", arn)
                : answer_misses(op, key) != NULL;
}

static void terminate_next(struct as_cloud_op *op);

static void aws_on_group(struct as_cloud_op *op)
{
    struct as_group_op *group = as_group_get(op);
    struct as_group_view *view = &group->view;
    const json_t *root = take_response(op, "DescribeAutoScalingGroupsResponse");
    if (!root)
        return;
    const json_t *member =
        answer_at(root, "DescribeAutoScalingGroupsResult.AutoScalingGroups.member", 0);
    if (strcmp(answer_text(member, "AutoScalingGroupName"), aws_get_state(op)->name) != 0) {
        as_cloud_op_fail(op, AS_CLOUD_OP_GONE, "there is no Auto Scaling group %s",
                         aws_get_state(op)->name);
        return;
    }
    if (*answer_text(member, "Status")) { /* "Delete in progress": the only status */
        as_cloud_op_fail(op, AS_CLOUD_OP_GONE, "the group is being deleted");
        return;
    }
    view->min = answer_size(member, "MinSize", -1);
    view->max = answer_size(member, "MaxSize", -1);
    if (!answer_take_size(op, member, "DesiredCapacity", &view->size) || !check_unit(op, member) ||
        !add_arn(op, member) || !add_instances(group, member))
        return;
    if (group->verb == AS_GROUP_REMOVE) {
        if (as_group_keep_present(group))
            terminate_next(op);
        return;
    }
    add_suspended(op, member);
    view->shortage = aws_get_state(op)->issue;
    aws_ask(op, "DescribePolicies");
    as_cloud_op_add_parameter(op, "AutoScalingGroupName", aws_get_state(op)->name);
    as_cloud_op_send_question(op, "describe_policies", on_policies);
}

static void aws_read_group(struct as_cloud_op *op)
{
    aws_ask(op, "DescribeAutoScalingGroups");
    as_cloud_op_add_parameter(op, "AutoScalingGroupNames.member.1", aws_get_state(op)->name);
    as_cloud_op_send_question(op, "describe_auto_scaling_groups", aws_on_group);
}

/* ---- changing ---- */

static void on_set(struct as_cloud_op *op)
{
    if (take_response(op, "SetDesiredCapacityResponse"))
        as_cloud_op_end(op);
}

static void set_desired(struct as_cloud_op *op)
{
    const struct as_group_op *group = as_group_get(op);
    aws_ask(op, "SetDesiredCapacity");
    as_cloud_op_add_parameter(op, "AutoScalingGroupName", aws_get_state(op)->name);
    as_buf_printf(&op->request.body, "&DesiredCapacity=%d&HonorCooldown=false", group->to);
    as_cloud_op_send(op, "set_desired_capacity", on_set);
}

static void on_terminated(struct as_cloud_op *op);

static void terminate_next(struct as_cloud_op *op)
{
    const struct as_group_op *group = as_group_get(op);
    struct state *state = aws_get_state(op);
    if (state->removed == group->instance_count) {
        as_cloud_op_end(op);
        return;
    }
    aws_ask(op, "TerminateInstanceInAutoScalingGroup");
    as_cloud_op_add_parameter(op, "InstanceId", group->instances[state->removed]);
    as_cloud_op_add_parameter(op, "ShouldDecrementDesiredCapacity", "true");
    as_cloud_op_send(op, "terminate_instance", on_terminated);
}

/* An instance that is already gone is what was asked for. */
static void on_terminated(struct as_cloud_op *op)
{
    struct as_group_op *group = as_group_get(op);
    const json_t *root = take_response(op, "TerminateInstanceInAutoScalingGroupResponse");
    const bool is_gone = !root && op->http_status == 400 &&
                         strcmp(aws_get_state(op)->code, "ValidationError") == 0 &&
                         strstr(op->message, "Instance Id not found");
    if (!root && !is_gone)
        return;
    if (root) {
        const char *id =
            answer_text(root, "TerminateInstanceInAutoScalingGroupResult.Activity.ActivityId");
        if (*id)
            group->started = group->started ? as_cloud_op_print(op, "%s %s", group->started, id)
                                            : as_cloud_op_print(op, "%s", id);
    }
    if (is_gone)
        as_group_note_gone(group, aws_get_state(op)->removed);
    group->has_begun = true;
    aws_get_state(op)->removed++;
    terminate_next(op);
}

/* ---- operations ---- */

static void poll_next(struct as_cloud_op *op);

static void on_operation(struct as_cloud_op *op)
{
    static const char path[] = "DescribeScalingActivitiesResult.Activities.member";
    struct as_group_op *group = as_group_get(op);
    const json_t *root = take_response(op, "DescribeScalingActivitiesResponse");
    if (!root)
        return;
    for (size_t i = 0; i < answer_count(root, path); i++) {
        const json_t *activity = answer_at(root, path, i);
        const char *status = answer_text(activity, "StatusCode");
        const bool has_failed = strcmp(status, "Failed") == 0 || strcmp(status, "Cancelled") == 0;
        if (has_failed && !aws_get_state(op)->failed)
            aws_get_state(op)->failed =
                as_cloud_op_print(op, "%s: %s", status, answer_text(activity, "StatusMessage"));
        group->is_done = group->is_done && (has_failed || strcmp(status, "Successful") == 0);
    }
    poll_next(op);
}

/* Reports a failure only when the other activities have ended too. */
static void end_polling(struct as_cloud_op *op)
{
    const char *failed = aws_get_state(op)->failed;
    if (failed && as_group_get(op)->is_done)
        as_cloud_op_fail(op, AS_CLOUD_OP_RETRY, "%s", failed);
    else
        as_cloud_op_end(op);
}

static void poll_next(struct as_cloud_op *op)
{
    struct state *state = aws_get_state(op);
    unsigned number = 0;
    if (as_str_is_empty(state->activities)) {
        end_polling(op);
        return;
    }
    aws_ask(op, "DescribeScalingActivities");
    while (number < ACTIVITIES_MAX && state->activities) {
        const char *id = strsep(&state->activities, " ");
        as_cloud_op_add_parameter(op, as_cloud_op_print(op, "ActivityIds.member.%u", ++number), id);
    }
    as_cloud_op_send_question(op, "describe_scaling_activities", on_operation);
}

static void poll_operation(struct as_cloud_op *op)
{
    struct as_group_op *group = as_group_get(op);
    group->is_done = true;
    aws_get_state(op)->activities = as_arena_strdup(&op->arena, group->operation);
    poll_next(op);
}

/* ---- which group ---- */

static void aws_go_on(struct as_cloud_op *op)
{
    static void (*const verbs[AS_GROUP_VERB_COUNT])(struct as_cloud_op *) = {
        [AS_GROUP_READ] = aws_read_group,   [AS_GROUP_GROW] = set_desired,
        [AS_GROUP_REMOVE] = aws_read_group, [AS_GROUP_TAKE_BACK] = set_desired,
        [AS_GROUP_POLL] = poll_operation,
    };
    verbs[as_group_get(op)->verb](op);
}

/* Whether the node group can be scaled in its present state; false after failing the op. */
static bool check_status(struct as_cloud_op *op, const json_t *node_group)
{
    static const struct answer_word statuses[] = {
        {"ACTIVE", AS_CLOUD_OP_OK},     {"DEGRADED", AS_CLOUD_OP_OK},
        {"CREATING", AS_CLOUD_OP_BUSY}, {"UPDATING", AS_CLOUD_OP_BUSY},
        {"DELETING", AS_CLOUD_OP_GONE}, {NULL, 0},
    };
    const char *status = answer_text(node_group, "status");
    if (!*status)
        return answer_misses(op, "nodegroup.status");
    const json_t *issue = answer_at(node_group, "health.issues", 0);
    const char *message = answer_text(issue, "message");
    const enum as_cloud_op_fault fault = answer_judge(statuses, status, AS_CLOUD_OP_CONFIGURATION);
    if (*message)
        aws_get_state(op)->issue =
            as_cloud_op_print(op, "%s: %s", answer_text(issue, "code"), message);
    if (fault != AS_CLOUD_OP_OK)
        as_cloud_op_fail(op, fault, "the node group is %s%s%s", status, *message ? ": " : "",
                         message);
    return fault == AS_CLOUD_OP_OK;
}

static void on_node_group(struct as_cloud_op *op)
{
    static const char path[] = "nodegroup.resources.autoScalingGroups";
    if (!aws_is_good_json(op))
        return;
    const json_t *document = answer_json(op);
    if (!document || !check_status(op, answer_find(document, "nodegroup")))
        return;
    const char *name = answer_text(answer_at(document, path, 0), "name");
    const size_t count = answer_count(document, path);
    if (count > 1) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "the node group has %zu Auto Scaling groups: use these", count);
    } else if (!*name) {
        (void)answer_misses(op, path);
    } else {
        aws_get_state(op)->name = as_arena_strdup(&op->arena, name);
        aws_go_on(op);
    }
}

static void ask_for_node_group(struct as_cloud_op *op, const char *cluster)
{
    const struct as_group_op *group = as_group_get(op);
    const struct state *state = aws_get_state(op);
    const char *base = aws_make_endpoint(op, group->account, "eks_endpoint", "eks", state->region);
    if (!base)
        return;
    as_cloud_op_ask(op, "GET", "%s/clusters/%s/node-groups/%s", base,
                    as_cloud_op_escaped(op, cluster), as_cloud_op_escaped(op, state->name));
    op->request.service = "eks";
    as_cloud_op_send(op, "describe_nodegroup", on_node_group);
}

static void aws_group_begin(struct as_group_op *group)
{
    struct as_cloud_op *op = &group->op;
    const char *cluster = as_target_ref_get(group->group, "cluster");
    struct state *state = as_arena_alloc(&op->arena, 1, sizeof(*state));
    group->state = state;
    state->code = "";
    state->region = aws_find_region(group->account, group->credentials);
    state->name = as_target_ref_get(group->group, "name");
    if (!state->region) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "no region is known: set `region` at the provider");
        return;
    }
    state->base = aws_make_endpoint(op, group->account, "endpoint", "autoscaling", state->region);
    if (!state->base)
        return;
    if (*cluster && group->verb != AS_GROUP_POLL) /* activities have global names */
        ask_for_node_group(op, cluster);
    else
        aws_go_on(op);
}

const struct as_group_provider provider_aws = {
    .type = "aws",
    .files = (const char *const[]){"$AWS_WEB_IDENTITY_TOKEN_FILE",
                                   "$AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "$AWS_CONFIG_FILE",
                                   "$AWS_SHARED_CREDENTIALS_FILE", "~/.aws/config",
                                   "~/.aws/credentials", NULL},
    .read_names = aws_profiles_read_names,
    .service = "autoscaling",
    .credentials = aws_credentials,
    .sign = as_sign_aws,
    .begin = aws_group_begin,
};
