/*
 * Alibaba Cloud: a scaling group of Auto Scaling (ESS), version 2022-02-22:
 * https://www.alibabacloud.com/help/en/auto-scaling/developer-reference/api-ess-2022-02-22-overview
 *
 * A group does one thing at a time: while an activity is running, others are refused. The size is
 * set as a total, and Auto Scaling silently limits it to the group's bounds; so the bounds are read
 * first, with the rest of the group. Instances are removed by name.
 *
 * Protected and standby instances are part of the size, and never chosen for removal. So are
 * instances that somebody else created and attached: removed from the group, they would keep
 * running.
 *
 * Not here: credentials (credentials_alibaba.c).
 */
#include <string.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/login/cloud_op.h>
#include <alertscaler/login/sign.h>

#include "provider_answer.h"
#include "providers.h"

/* Answers, and the meaning of errors:
 * https://www.alibabacloud.com/help/en/auto-scaling/developer-reference/common-error-codes */

/* Codes of answers and of activities, as globs; the first match counts. */
static const struct answer_word codes[] = {
    {"Throttling*", AS_CLOUD_OP_THROTTLED},
    {"ServiceUnavailable*", AS_CLOUD_OP_RETRY},
    {"InternalError*", AS_CLOUD_OP_RETRY},
    {"SignatureNonceUsed", AS_CLOUD_OP_RETRY}, /* the next request has another nonce */
    {"ScalingActivityInProgress*", AS_CLOUD_OP_BUSY},
    {"IncorrectScalingGroupStatus*", AS_CLOUD_OP_BUSY},
    {"*NoStock*", AS_CLOUD_OP_CAPACITY},
    {"*NotOnSale*", AS_CLOUD_OP_CAPACITY},
    {"*OutOfStock*", AS_CLOUD_OP_CAPACITY},
    {"*Quota*", AS_CLOUD_OP_CAPACITY},
    {"*IpNotEnough*", AS_CLOUD_OP_CAPACITY},
    {"*LackResource*", AS_CLOUD_OP_CAPACITY},
    {"*NotEnoughBalance*", AS_CLOUD_OP_CAPACITY},
    {"*InsufficientBalance*", AS_CLOUD_OP_CAPACITY},
    {"InvalidSecurityToken*", AS_CLOUD_OP_UNAUTHORIZED},
    {"InvalidAccessKeyId*", AS_CLOUD_OP_UNAUTHORIZED},
    {"SignatureDoesNotMatch", AS_CLOUD_OP_UNAUTHORIZED},
    {"IncompleteSignature", AS_CLOUD_OP_UNAUTHORIZED},
    {"Forbidden*", AS_CLOUD_OP_PERMISSION},
    {"NoPermission*", AS_CLOUD_OP_PERMISSION},
    {"InvalidScalingGroupId.NotFound", AS_CLOUD_OP_GONE},
    {"IncorrectCapacity*", AS_CLOUD_OP_CONFIGURATION},
    {"Invalid*", AS_CLOUD_OP_CONFIGURATION},
    {"Missing*", AS_CLOUD_OP_CONFIGURATION},
    {NULL, 0},
};

/* The class of an error by its code (of an answer or of an activity); `fallback` for unknown
 * codes. */
static enum as_cloud_op_fault alibaba_judge(const char *code, enum as_cloud_op_fault fallback)
{
    return answer_judge(codes, code, fallback);
}

/* "Limit:10,Remain:0,Window:1000,TimeLeft:320": milliseconds; 0 if absent. */
static int64_t find_time_left(const struct as_cloud_op *op)
{
    static const char name[] = "TimeLeft:";
    const char *field = as_http_response_find(op->answer, "x-ratelimit-user-api");
    const char *at = strstr(field, name);
    int64_t ms = 0;
    if (!at)
        return 0;
    at += strlen(name);
    return as_number_parse_i64(at, strspn(at, "0123456789"), &ms) == 0 && ms < 3600 * 1000
               ? ms * AS_US_PER_MS
               : 0;
}

/* {"RequestId": ..., "Code": "IncorrectCapacity.MaxSize", "Message": ...} */
static bool alibaba_is_good(struct as_cloud_op *op)
{
    if (as_cloud_op_is_good(op))
        return true;
    const json_t *error = op->http_status ? answer_peek_json(op) : NULL;
    const char *code = answer_text(error, "Code");
    as_cloud_op_take_request_id(op, answer_text(error, "RequestId"));
    if (!*code)
        return false;
    as_cloud_op_fail(op, alibaba_judge(code, op->fault), "%s: %s: %s", op->request.operation, code,
                     answer_text(error, "Message"));
    if (op->fault == AS_CLOUD_OP_THROTTLED && op->retry_after_us <= 0)
        op->retry_after_us = find_time_left(op);
    return false;
}

/* The document of a good answer; NULL after failing the op with the error's class and words. */
static const json_t *alibaba_take_answer(struct as_cloud_op *op)
{
    const json_t *document = alibaba_is_good(op) ? answer_json(op) : NULL;
    as_cloud_op_take_request_id(op, answer_text(document, "RequestId"));
    return document;
}

/* The group */

#define API_VERSION   "2022-02-22"
#define PAGE_SIZE     100 /* instances */
#define REMOVE_MAX    20  /* instances in one request */
#define LOOK_EVERY_US (5 * AS_US_PER_S)

struct state {
    const char *endpoint;
    const char *region, *id; /* as in a URL; the id is found with the group */
    int page;
    size_t seen; /* instances of a list so far */
    size_t left; /* instances of a removal, not yet asked for */
};

static struct state *alibaba_get_state(struct as_cloud_op *op)
{
    return as_group_get(op)->state;
}

/* ---- requests ---- */

static void alibaba_ask(struct as_cloud_op *op, const char *action, const char *query)
{
    as_cloud_op_ask(op, "POST", "%s/?%s", alibaba_get_state(op)->endpoint, query);
    as_cloud_op_header(op, "x-acs-action: %s", action);
    as_cloud_op_header(op, "x-acs-version: " API_VERSION);
}

/* A request id: the same for a retry of one change, so that it is not carried out twice; different
 * if one decision asks for different instances, or from another size. At most 64 characters. */
static void ask_change(struct as_cloud_op *op, const char *action, const char *query)
{
    const struct as_group_op *group = as_group_get(op);
    const char *change =
        as_cloud_op_print(op, "%s %d %d %s", action, group->from, group->to, query);
    char digest[CANONICAL_SHA_HEX];
    canonical_sha256(change, strlen(change), digest);
    const char *token = as_cloud_op_print(op, "%s-%.32s", group->idempotency, digest);
    alibaba_ask(op, action,
                as_cloud_op_print(op, "%s&ClientToken=%s", query, as_cloud_op_escaped(op, token)));
}

/* ---- activities ---- */

/* Auto Scaling gives times to the minute ("2026-01-01T10:20Z"). Takes the end of the minute,
 * because the event may have been at any time in it. */
static as_maybe_time take_minute(struct as_cloud_op *op, const char *text)
{
    as_maybe_time time = {.set = false};
    const char *full = as_cloud_op_print(op, "%.16s:59Z", text);
    time.set = strlen(text) == 17 && as_wall_time_parse(full, strlen(full), &time.at) == 0;
    return time;
}

/* Why an activity failed, in Auto Scaling's words. */
static const char *find_code(const json_t *activity)
{
    const char *code = answer_text(activity, "ErrorCode");
    return *code ? code : answer_text(answer_at(activity, "ErrorMessages", 0), "Code");
}

static const char *find_words(const json_t *activity)
{
    static const char *const paths[] = {"ErrorMessage", "StatusMessage", "Description"};
    const char *words = answer_text(activity, paths[0]);
    if (!*words)
        words = answer_text(answer_at(activity, "ErrorMessages", 0), "Message");
    for (size_t i = 1; i < AS_ARRAY_SIZE(paths) && !*words; i++)
        words = answer_text(activity, paths[i]);
    return words;
}

static bool has_status(const json_t *activity, const char *status)
{
    return strcmp(answer_text(activity, "StatusCode"), status) == 0;
}

/* Completely or in part. */
static bool alibaba_has_failed(const json_t *activity)
{
    return has_status(activity, "Failed") || has_status(activity, "Warning") ||
           has_status(activity, "Rejected");
}

/* The last activity that failed tells why instances do not come. */
static void alibaba_on_activities(struct as_cloud_op *op)
{
    struct as_group_view *view = &as_group_get(op)->view;
    const json_t *document = alibaba_take_answer(op), *last = NULL;
    if (!document)
        return;
    for (size_t i = 0; i < answer_count(document, "ScalingActivities"); i++) {
        const json_t *activity = answer_at(document, "ScalingActivities", i);
        if (alibaba_has_failed(activity) && (!last || strcmp(answer_text(activity, "StartTime"),
                                                             answer_text(last, "StartTime")) > 0))
            last = activity;
    }
    if (last) {
        view->shortage = as_cloud_op_print(op, "%s: %s", find_code(last), find_words(last));
        view->shortage_since = take_minute(op, answer_text(last, "StartTime"));
    }
    as_cloud_op_end(op);
}

static void ask_for_activities(struct as_cloud_op *op)
{
    const struct state *state = alibaba_get_state(op);
    alibaba_ask(op, "DescribeScalingActivities",
                as_cloud_op_print(op, "RegionId=%s&ScalingGroupId=%s&PageNumber=1&PageSize=10",
                                  state->region, state->id));
    as_cloud_op_send_question(op, "describe_scaling_activities", alibaba_on_activities);
}

/* The activity that was asked for by name; NULL after failing the op. */
static const json_t *take_activity(struct as_cloud_op *op)
{
    const json_t *document = alibaba_take_answer(op);
    const json_t *activity = answer_at(document, "ScalingActivities", 0);
    if (document && !*answer_text(activity, "StatusCode"))
        return answer_misses(op, "ScalingActivities.StatusCode");
    return activity;
}

static void fail_activity(struct as_cloud_op *op, const json_t *activity)
{
    const char *code = find_code(activity);
    as_cloud_op_fail(
        op, alibaba_judge(code, AS_CLOUD_OP_RETRY), "the scaling activity ended as %s: %s%s%s",
        answer_text(activity, "StatusCode"), code, *code ? ": " : "", find_words(activity));
}

static void ask_for_activity(struct as_cloud_op *op, const char *id,
                             as_cloud_op_response_fn *on_response)
{
    alibaba_ask(op, "DescribeScalingActivities",
                as_cloud_op_print(op, "RegionId=%s&ScalingActivityIds.1=%s",
                                  alibaba_get_state(op)->region, as_cloud_op_escaped(op, id)));
    as_cloud_op_send_question(op, "describe_scaling_activity", on_response);
}

static void alibaba_on_operation(struct as_cloud_op *op)
{
    const json_t *activity = take_activity(op);
    if (!activity)
        return;
    as_group_get(op)->is_done = !has_status(activity, "InProgress");
    if (alibaba_has_failed(activity))
        fail_activity(op, activity);
    else
        as_cloud_op_end(op);
}

/* ---- the size ---- */

/* An activity to poll; a change of the desired capacity alone has no activity. */
static const char *take_started(struct as_cloud_op *op, const json_t *document)
{
    const char *id = answer_text(document, "ScalingActivityId");
    return *id ? as_cloud_op_print(op, "%s", id) : NULL;
}

static void alibaba_on_scaled(struct as_cloud_op *op)
{
    const json_t *document = alibaba_take_answer(op);
    if (!document)
        return;
    as_group_get(op)->started = take_started(op, document);
    as_cloud_op_end(op);
}

static void set_total(struct as_cloud_op *op)
{
    ask_change(op, "ScaleWithAdjustment",
               as_cloud_op_print(op,
                                 "ScalingGroupId=%s&AdjustmentType=TotalCapacity&AdjustmentValue=%d"
                                 "&SyncActivity=true",
                                 alibaba_get_state(op)->id, as_group_get(op)->to));
    as_cloud_op_send(op, "scale_with_adjustment", alibaba_on_scaled);
}

static void alibaba_grow(struct as_cloud_op *op)
{
    const struct as_group_op *group = as_group_get(op);
    const struct as_group_view *view = &group->view;
    if (view->size == group->to) /* perhaps by a request whose answer was lost */
        as_cloud_op_end(op);
    else if (view->size != group->from)
        as_cloud_op_fail(op, AS_CLOUD_OP_BUSY,
                         "the scaling group has changed since it was looked at: its size is %d",
                         view->size);
    else if (view->max >= 0 && group->to > view->max)
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "%d is above the group's own MaxSize, %d: it would be cut to that",
                         group->to, view->max);
    else
        set_total(op);
}

static void alibaba_take_back(struct as_cloud_op *op)
{
    const struct as_group_op *group = as_group_get(op);
    const int32_t coming = as_group_count_coming(&group->view);
    if (group->view.size <= group->to)
        as_cloud_op_end(op);
    else if (coming > group->to)
        as_cloud_op_fail(
            op, AS_CLOUD_OP_BUSY,
            "the scaling group has %d instances by now: Auto Scaling would choose which "
            "leave, for a size of %d",
            coming, group->to);
    else
        set_total(op);
}

/* ---- removing ---- */

static void remove_next(struct as_cloud_op *op);

static void alibaba_on_removal(struct as_cloud_op *op);

static int64_t get_pause(const struct as_cloud_op *op)
{
    return op->retry_after_us > LOOK_EVERY_US ? op->retry_after_us : LOOK_EVERY_US;
}

static void alibaba_poll_removal(struct as_cloud_op *op)
{
    ask_for_activity(op, as_group_get(op)->started, alibaba_on_removal);
}

static void alibaba_on_removal(struct as_cloud_op *op)
{
    const json_t *activity = take_activity(op);
    if (!activity)
        return;
    if (has_status(activity, "InProgress"))
        as_cloud_op_wait(op, get_pause(op), alibaba_poll_removal);
    else if (alibaba_has_failed(activity) && !has_status(activity, "Warning"))
        fail_activity(op, activity);
    else
        remove_next(op); /* instances that no longer existed make it a warning */
}

/* Only one activity at a time: asks for the next instances when it has ended. */
static void alibaba_on_removed(struct as_cloud_op *op)
{
    const json_t *document = alibaba_take_answer(op);
    if (!document)
        return;
    as_group_get(op)->started = take_started(op, document);
    as_group_get(op)->has_begun = true;
    if (alibaba_get_state(op)->left == 0 || !as_group_get(op)->started)
        remove_next(op);
    else
        as_cloud_op_wait(op, get_pause(op), alibaba_poll_removal);
}

static void remove_next(struct as_cloud_op *op)
{
    const struct as_group_op *group = as_group_get(op);
    struct state *state = alibaba_get_state(op);
    AS_CLEANUP(as_buf_deinit) struct as_buf query = AS_BUF_INIT(AS_CLOUD_OP_BODY_MAX);
    if (state->left == 0) {
        as_cloud_op_end(op);
        return;
    }
    as_buf_printf(&query, "RegionId=%s&ScalingGroupId=%s", state->region, state->id);
    for (unsigned i = 1; i <= REMOVE_MAX && state->left > 0; i++, state->left--)
        as_buf_printf(
            &query, "&InstanceIds.%u=%s", i,
            as_cloud_op_escaped(op, group->instances[group->instance_count - state->left]));
    as_buf_append_str(
        &query, "&DecreaseDesiredCapacity=true&RemovePolicy=release&IgnoreInvalidInstance=true");
    ask_change(op, "RemoveInstances", query.data);
    as_cloud_op_send(op, "remove_instances", alibaba_on_removed);
}

static void alibaba_remove_instances(struct as_cloud_op *op)
{
    struct as_group_op *group = as_group_get(op);
    if (!as_group_keep_present(group))
        return;
    alibaba_get_state(op)->left = group->instance_count;
    remove_next(op);
}

/* ---- instances ---- */

static const struct {
    const char *lifecycle; /* a glob */
    enum as_instance_state state;
    bool is_protected;
} lifecycles[] = {
    {"InService", AS_INSTANCE_RUNNING, false}, {"Pending*", AS_INSTANCE_PENDING, false},
    {"Protected", AS_INSTANCE_RUNNING, true},  {"Standby", AS_INSTANCE_RUNNING, true},
    {"*", AS_INSTANCE_LEAVING, true}, /* Removing*, Stopped: not part of the size */
};

/* False after failing the op. */
static bool alibaba_add_instance(struct as_cloud_op *op, const json_t *member)
{
    const char *lifecycle = answer_text(member, "LifecycleState");
    const char *made = answer_text(member, "CreationType");
    size_t row = 0;
    while (!as_str_glob(lifecycles[row].lifecycle, lifecycle))
        row++;
    const bool is_foreign =
        *made && strcmp(made, "AutoCreated") != 0 && !answer_is_true(member, "Entrusted");
    const struct as_instance instance = {
        .id = answer_text(member, "InstanceId"),
        .zone = answer_text(member, "ZoneId"),
        .state = lifecycles[row].state,
        .is_unhealthy = strcmp(answer_text(member, "HealthStatus"), "Unhealthy") == 0,
        .is_protected = lifecycles[row].is_protected || is_foreign,
        .created = answer_time(member, "CreatedTime"),
    };
    if (answer_size(member, "WeightedCapacity", 1) > 1) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "the size of this group does not count instances, but their weights: such "
                         "groups are not supported");
        return false;
    }
    return *instance.id ? as_group_add_instance(as_group_get(op), &instance)
                        : answer_misses(op, "ScalingInstances.InstanceId") != NULL;
}

static void end_reading(struct as_cloud_op *op)
{
    const struct as_group_view *view = &as_group_get(op)->view;
    if (view->size > as_group_count_coming(view))
        ask_for_activities(op);
    else
        as_cloud_op_end(op);
}

static void ask_for_instances(struct as_cloud_op *op);

static void alibaba_on_instances(struct as_cloud_op *op)
{
    static void (*const verbs[AS_GROUP_VERB_COUNT])(struct as_cloud_op *) = {
        [AS_GROUP_READ] = end_reading,
        [AS_GROUP_GROW] = alibaba_grow,
        [AS_GROUP_REMOVE] = alibaba_remove_instances,
        [AS_GROUP_TAKE_BACK] = alibaba_take_back,
        [AS_GROUP_POLL] = as_cloud_op_end,
    };
    struct state *state = alibaba_get_state(op);
    int32_t total;
    const json_t *document = alibaba_take_answer(op);
    if (!document || !answer_take_size(op, document, "TotalCount", &total))
        return;
    const size_t count = answer_count(document, "ScalingInstances");
    for (size_t i = 0; i < count; i++) {
        if (!alibaba_add_instance(op, answer_at(document, "ScalingInstances", i)))
            return;
    }
    state->seen += count;
    const bool is_last = count == 0 || state->seen >= (size_t)total;
    const json_t *first = answer_at(document, "ScalingInstances", 0);
    if (!is_last && as_cloud_op_turn_page(op, answer_text(first, "InstanceId")))
        ask_for_instances(op);
    else if (is_last)
        verbs[as_group_get(op)->verb](op);
}

static void ask_for_instances(struct as_cloud_op *op)
{
    struct state *state = alibaba_get_state(op);
    alibaba_ask(op, "DescribeScalingInstances",
                as_cloud_op_print(op, "RegionId=%s&ScalingGroupId=%s&PageNumber=%d&PageSize=%d",
                                  state->region, state->id, ++state->page, PAGE_SIZE));
    as_cloud_op_send_question(op, "describe_scaling_instances", alibaba_on_instances);
}

/* ---- the group ---- */

static void alibaba_add_suspended(struct as_group_view *view, const json_t *group)
{
    if (strcmp(answer_text(group, "LifecycleState"), "Inactive") == 0)
        view->no_increase = view->no_removal = "the scaling group is disabled (Inactive)";
    if (answer_is_true(group, "SystemSuspended"))
        view->no_increase =
            "Auto Scaling has suspended the group, after it failed for days: see to "
            "the cause, then resume it";
    for (size_t i = 0; i < answer_count(group, "SuspendedProcesses"); i++) {
        const char *name = json_string_value(answer_at(group, "SuspendedProcesses", i));
        if (as_str_equal(name, "ScaleOut"))
            view->no_increase = "the group's process ScaleOut is suspended";
        else if (as_str_equal(name, "ScaleIn"))
            view->no_removal = "the group's process ScaleIn is suspended";
    }
}

static int32_t add_up(const json_t *group, const char *const *names)
{
    int64_t sum = 0;
    for (; *names; names++)
        sum += answer_size(group, *names, 0);
    return sum > INT32_MAX ? INT32_MAX : (int32_t)sum;
}

/* The desired capacity if the group has one; else the instances that exist or are pending. False
 * after failing the op. */
static bool take_size(struct as_cloud_op *op, const json_t *group)
{
    static const char *const there[] = {"ActiveCapacity", "ProtectedCapacity", "StandbyCapacity",
                                        NULL};
    static const char *const coming[] = {"PendingCapacity", "PendingWaitCapacity", "InitCapacity",
                                         NULL};
    static const char *const leaving[] = {"RemovingCapacity", "RemovingWaitCapacity", NULL};
    struct as_group_view *view = &as_group_get(op)->view;
    int32_t active;
    view->in_progress = add_up(group, coming) > 0 || add_up(group, leaving) > 0;
    if (answer_is_true(group, "EnableDesiredCapacity"))
        return answer_take_size(op, group, "DesiredCapacity", &view->size);
    if (!answer_take_size(op, group, "ActiveCapacity", &active))
        return false;
    view->size = add_up(group, there) + add_up(group, coming);
    return true;
}

static bool alibaba_is_wanted(struct as_cloud_op *op, const json_t *group)
{
    const char *wanted = as_target_ref_get(as_group_get(op)->group, "name");
    return strcmp(answer_text(group, "ScalingGroupId"), wanted) == 0 ||
           strcmp(answer_text(group, "ScalingGroupName"), wanted) == 0;
}

static void alibaba_on_group(struct as_cloud_op *op)
{
    struct as_group_view *view = &as_group_get(op)->view;
    const json_t *document = alibaba_take_answer(op), *group = NULL;
    if (!document)
        return;
    for (size_t i = 0; i < answer_count(document, "ScalingGroups") && !group; i++) {
        if (alibaba_is_wanted(op, answer_at(document, "ScalingGroups", i)))
            group = answer_at(document, "ScalingGroups", i);
    }
    if (!answer_find(document, "ScalingGroups")) {
        (void)answer_misses(op, "ScalingGroups");
        return;
    }
    if (!group || strcmp(answer_text(group, "LifecycleState"), "Deleting") == 0) {
        as_cloud_op_fail(op, AS_CLOUD_OP_GONE,
                         group ? "the scaling group is being deleted"
                               : "there is no such scaling group in the region");
        return;
    }
    view->min = answer_size(group, "MinSize", -1);
    view->max = answer_size(group, "MaxSize", -1);
    const char *id = answer_text(group, "ScalingGroupId");
    alibaba_get_state(op)->id = as_cloud_op_escaped(op, id);
    if (!*id)
        (void)answer_misses(op, "ScalingGroups.ScalingGroupId");
    if (!*id || !as_group_add_backing(as_group_get(op), "alibaba/%s", id) || !take_size(op, group))
        return;
    alibaba_add_suspended(view, group);
    ask_for_instances(op);
}

static void alibaba_ask_for_group(struct as_cloud_op *op)
{
    const char *name = as_target_ref_get(as_group_get(op)->group, "name");
    const bool is_id = as_str_starts_with(name, "asg-");
    alibaba_ask(op, "DescribeScalingGroups",
                as_cloud_op_print(op, "RegionId=%s&%s=%s&PageNumber=1&PageSize=50",
                                  alibaba_get_state(op)->region,
                                  is_id ? "ScalingGroupIds.1" : "ScalingGroupNames.1",
                                  as_cloud_op_escaped(op, name)));
    as_cloud_op_send_question(op, "describe_scaling_groups", alibaba_on_group);
}

/* Requests for these regions go to the address without a region; all other regions have their own:
 * https://www.alibabacloud.com/help/en/auto-scaling/developer-reference/api-ess-2022-02-22-endpoint
 */
static const char *const central[] = {
    "ap-southeast-1", "cn-beijing",  "cn-beijing-*",     "cn-hangzhou", "cn-hangzhou-*",
    "cn-hongkong",    "cn-nanjing",  "cn-north-2-gov-1", "cn-qingdao",  "cn-shanghai",
    "cn-shanghai-*",  "cn-shenzhen", "cn-shenzhen-*",    "us-east-1",   "us-west-1",
};

static const char *make_endpoint(struct as_cloud_op *op, const char *region)
{
    const char *usual = as_cloud_op_print(op, "https://ess.%s.aliyuncs.com", region);
    for (size_t i = 0; i < AS_ARRAY_SIZE(central); i++) {
        if (as_str_glob(central[i], region))
            usual = "https://ess.aliyuncs.com";
    }
    return as_account_get_endpoint(op, as_group_get(op)->account, "endpoint", usual);
}

static void alibaba_begin(struct as_group_op *group)
{
    struct as_cloud_op *op = &group->op;
    struct state *state = as_arena_alloc(&op->arena, 1, sizeof(*state));
    const char *region = alibaba_find_region(op, group->account, group->credentials);
    group->state = state;
    if (!region) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "no region is known: set `region` of the provider");
        return;
    }
    if (!as_region_check(op, region))
        return;
    state->region = region;
    state->endpoint = make_endpoint(op, state->region);
    if (group->verb == AS_GROUP_POLL)
        ask_for_activity(op, group->operation, alibaba_on_operation);
    else
        alibaba_ask_for_group(op);
}

const struct as_group_provider provider_alibaba = {
    .type = "alibaba",
    .files = (const char *const[]){"$ALIBABA_CLOUD_OIDC_TOKEN_FILE", "~/.aliyun/config.json", NULL},
    .credentials = alibaba_credentials,
    .sign = as_sign_acs,
    .begin = alibaba_begin,
};
