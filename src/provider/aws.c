/*
 * AWS: EC2 Auto Scaling groups, over the query protocol:
 * https://docs.aws.amazon.com/autoscaling/ec2/APIReference/
 *
 * The size is set upward only; instances leave by name, one call each, with the size.
 */
#include "providers.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/str.h>

#include "answer.h"
#include "credentials_aws.h"

#define API_VERSION "2011-01-01"

struct state {
    const char *base; /* of the endpoint, without the slash at its end */
    const char *name; /* of the group */
    size_t removed;   /* instances of a removal that are done with */
};

static struct state *get_state(struct as_talk *talk)
{
    return ((struct as_group_talk *)talk)->state;
}

/* ---- requests ---- */

static void add_parameter(struct as_talk *talk, const char *name, const char *value)
{
    as_buf_printf(&talk->request.body, "&%s=%s", name, as_talk_escaped(talk, value));
}

static void ask(struct as_talk *talk, const char *action)
{
    as_talk_ask(talk, "POST", "%s/", get_state(talk)->base);
    as_talk_header(talk, "Content-Type: application/x-www-form-urlencoded; charset=utf-8");
    as_buf_printf(&talk->request.body, "Action=%s&Version=" API_VERSION, action);
}

/* ---- errors ---- */

static const struct {
    const char *code; /* a glob */
    enum as_talk_fault fault;
} errors[] = {
    {"Throttling*", AS_TALK_THROTTLED},      {"RequestLimitExceeded", AS_TALK_THROTTLED},
    {"TooManyRequests*", AS_TALK_THROTTLED}, {"ResourceContention", AS_TALK_RETRY},
    {"RequestTimeout*", AS_TALK_RETRY},      {"ScalingActivityInProgress", AS_TALK_BUSY},
    {"ExpiredToken*", AS_TALK_UNAUTHORIZED}, {"InvalidClientTokenId", AS_TALK_UNAUTHORIZED},
    {"AccessDenied*", AS_TALK_PERMISSION},   {"UnauthorizedOperation", AS_TALK_PERMISSION},
    {"LimitExceeded*", AS_TALK_CAPACITY},    {"ValidationError", AS_TALK_CONFIGURATION},
};

/* Whether the answer is good; the talk has failed with the error's own class and words where not.
 */
static bool is_good(struct as_talk *talk)
{
    if (as_talk_is_good(talk))
        return true;
    if (talk->http_status == 0)
        return false;
    const json_t *document = answer_find(answer_peek_xml(talk), "ErrorResponse");
    const char *code = answer_text(document, "Error.Code");
    enum as_talk_fault fault = talk->fault;
    as_talk_take_request_id(talk, answer_text(document, "RequestId"));
    for (size_t i = 0; i < AS_ARRAY_SIZE(errors); i++) {
        if (as_str_glob(errors[i].code, code)) {
            fault = errors[i].fault;
            break;
        }
    }
    if (*code)
        as_talk_fail(talk, fault, "%s: %s: %s", talk->request.operation, code,
                     answer_text(document, "Error.Message"));
    return false;
}

/* The document of an action's response; NULL after failing the talk. */
static const json_t *take_response(struct as_talk *talk, const char *response)
{
    if (!is_good(talk))
        return NULL;
    const json_t *document = answer_xml(talk);
    if (!document)
        return NULL;
    const json_t *root = answer_find(document, response);
    as_talk_take_request_id(talk, answer_text(root, "ResponseMetadata.RequestId"));
    return root ? root : answer_misses(talk, response);
}

/* ---- reading ---- */

static enum as_instance_state judge_state(const char *lifecycle)
{
    if (strcmp(lifecycle, "InService") == 0)
        return AS_INSTANCE_RUNNING;
    return as_str_starts_with(lifecycle, "Pending") ? AS_INSTANCE_PENDING : AS_INSTANCE_LEAVING;
}

/* False after failing the talk. */
static bool add_instances(struct as_group_talk *talk, const json_t *group)
{
    const size_t count = answer_count(group, "Instances.member");
    for (size_t i = 0; i < count; i++) {
        const json_t *member = answer_at(group, "Instances.member", i);
        const char *lifecycle = answer_text(member, "LifecycleState");
        if (as_str_starts_with(lifecycle, "Warmed:")) /* of the warm pool: no part of the size */
            continue;
        const struct as_instance instance = {
            .id = answer_text(member, "InstanceId"),
            .zone = answer_text(member, "AvailabilityZone"),
            .state = judge_state(lifecycle),
            .is_unhealthy = strcmp(answer_text(member, "HealthStatus"), "Unhealthy") == 0,
            .is_protected = answer_is_true(member, "ProtectedFromScaleIn"),
        };
        if (!as_group_add_instance(talk, &instance))
            return false;
    }
    return true;
}

/* The newest activity tells whether instances come. */
static void hear_activities(struct as_talk *talk)
{
    struct as_group_talk *group = (struct as_group_talk *)talk;
    const json_t *root = take_response(talk, "DescribeScalingActivitiesResponse");
    if (!root)
        return;
    const json_t *newest = answer_at(root, "DescribeScalingActivitiesResult.Activities.member", 0);
    if (strcmp(answer_text(newest, "StatusCode"), "Failed") == 0)
        group->view.shortage = as_talk_print(talk, "%s", answer_text(newest, "StatusMessage"));
    as_talk_end(talk);
}

static void hear_group(struct as_talk *talk)
{
    struct as_group_talk *group = (struct as_group_talk *)talk;
    struct as_group_view *view = &group->view;
    const json_t *root = take_response(talk, "DescribeAutoScalingGroupsResponse");
    if (!root)
        return;
    const json_t *member =
        answer_at(root, "DescribeAutoScalingGroupsResult.AutoScalingGroups.member", 0);
    if (strcmp(answer_text(member, "AutoScalingGroupName"), get_state(talk)->name) != 0) {
        as_talk_fail(talk, AS_TALK_GONE, "there is no Auto Scaling group %s",
                     get_state(talk)->name);
        return;
    }
    if (*answer_text(member, "Status")) { /* "Delete in progress": there is no other */
        as_talk_fail(talk, AS_TALK_GONE, "the group is being deleted");
        return;
    }
    view->min = answer_size(member, "MinSize", -1);
    view->max = answer_size(member, "MaxSize", -1);
    if (!answer_take_size(talk, member, "DesiredCapacity", &view->size) ||
        !add_instances(group, member))
        return;
    if (view->size <= as_group_count_coming(view)) {
        as_talk_end(talk);
        return;
    }
    ask(talk, "DescribeScalingActivities");
    add_parameter(talk, "AutoScalingGroupName", get_state(talk)->name);
    add_parameter(talk, "MaxRecords", "1");
    as_talk_send_question(talk, "describe_scaling_activities", hear_activities);
}

static void read_group(struct as_talk *talk)
{
    ask(talk, "DescribeAutoScalingGroups");
    add_parameter(talk, "AutoScalingGroupNames.member.1", get_state(talk)->name);
    as_talk_send_question(talk, "describe_auto_scaling_groups", hear_group);
}

/* ---- changing ---- */

static void hear_set(struct as_talk *talk)
{
    if (take_response(talk, "SetDesiredCapacityResponse"))
        as_talk_end(talk);
}

static void set_desired(struct as_talk *talk)
{
    const struct as_group_talk *group = (struct as_group_talk *)talk;
    ask(talk, "SetDesiredCapacity");
    add_parameter(talk, "AutoScalingGroupName", get_state(talk)->name);
    as_buf_printf(&talk->request.body, "&DesiredCapacity=%d&HonorCooldown=false", group->to);
    as_talk_send(talk, "set_desired_capacity", hear_set);
}

static void hear_terminated(struct as_talk *talk);

static void terminate_next(struct as_talk *talk)
{
    const struct as_group_talk *group = (struct as_group_talk *)talk;
    struct state *state = get_state(talk);
    if (state->removed == group->instance_count) {
        as_talk_end(talk);
        return;
    }
    ask(talk, "TerminateInstanceInAutoScalingGroup");
    add_parameter(talk, "InstanceId", group->instances[state->removed]);
    add_parameter(talk, "ShouldDecrementDesiredCapacity", "true");
    as_talk_send(talk, "terminate_instance", hear_terminated);
}

/* An instance that is gone already is what was asked for. */
static void hear_terminated(struct as_talk *talk)
{
    struct as_group_talk *group = (struct as_group_talk *)talk;
    const json_t *root = take_response(talk, "TerminateInstanceInAutoScalingGroupResponse");
    const bool is_gone = !root && talk->http_status == 400 && strstr(talk->message, "not found");
    if (!root && !is_gone)
        return;
    if (root) {
        const char *id =
            answer_text(root, "TerminateInstanceInAutoScalingGroupResult.Activity.ActivityId");
        group->started = group->started ? as_talk_print(talk, "%s %s", group->started, id)
                                        : as_talk_print(talk, "%s", id);
    }
    get_state(talk)->removed++;
    terminate_next(talk);
}

/* ---- operations ---- */

static void hear_operation(struct as_talk *talk)
{
    static const char path[] = "DescribeScalingActivitiesResult.Activities.member";
    struct as_group_talk *group = (struct as_group_talk *)talk;
    const json_t *root = take_response(talk, "DescribeScalingActivitiesResponse");
    if (!root)
        return;
    bool is_done = true;
    for (size_t i = 0; i < answer_count(root, path); i++) {
        const json_t *activity = answer_at(root, path, i);
        const char *status = answer_text(activity, "StatusCode");
        if (strcmp(status, "Failed") == 0 || strcmp(status, "Cancelled") == 0) {
            as_talk_fail(talk, AS_TALK_RETRY, "%s: %s", status,
                         answer_text(activity, "StatusMessage"));
            return;
        }
        is_done = is_done && strcmp(status, "Successful") == 0;
    }
    group->is_done = is_done;
    as_talk_end(talk);
}

static void poll_operation(struct as_talk *talk)
{
    const struct as_group_talk *group = (struct as_group_talk *)talk;
    char *rest = as_arena_strdup(&talk->arena, group->operation), *id;
    unsigned number = 0;
    ask(talk, "DescribeScalingActivities");
    while ((id = strsep(&rest, " "))) {
        if (*id)
            add_parameter(talk, as_talk_print(talk, "ActivityIds.member.%u", ++number), id);
    }
    as_talk_send_question(talk, "describe_scaling_activities", hear_operation);
}

/* ---- which group ---- */

static void go_on(struct as_talk *talk)
{
    static void (*const verbs[AS_GROUP_VERB_COUNT])(struct as_talk *) = {
        [AS_GROUP_READ] = read_group,       [AS_GROUP_GROW] = set_desired,
        [AS_GROUP_REMOVE] = terminate_next, [AS_GROUP_TAKE_BACK] = set_desired,
        [AS_GROUP_POLL] = poll_operation,
    };
    verbs[((struct as_group_talk *)talk)->verb](talk);
}

static void begin(struct as_group_talk *group)
{
    struct as_talk *talk = &group->talk;
    const char *region = aws_find_region(group->account, group->credentials);
    struct state *state = as_arena_alloc(&talk->arena, 1, sizeof(*state));
    group->state = state;
    if (!region) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION,
                     "no region is known: set `region` at the provider");
        return;
    }
    state->base = aws_make_endpoint(talk, group->account, "endpoint", "autoscaling", region);
    state->name = as_target_ref_get(group->group, "name");
    go_on(talk);
}

const struct as_group_provider provider_aws = {
    .kind =
        {
            .type = "aws",
            .account_keys =
                (const struct as_provider_key[]){{.key = "region"}, {.key = "endpoint"}, {0}},
            .group_keys =
                (const struct as_provider_key[]){{.key = "name", .is_required = true}, {0}},
        },
    .service = "autoscaling",
    .credentials = aws_credentials,
    .sign = as_sign_aws,
    .begin = begin,
};
