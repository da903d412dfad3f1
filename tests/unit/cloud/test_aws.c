/*
 * aws.c: every request byte by byte, every answer, every error.
 */
#include "cloud/providers.h"

#include "op_driver.h"

#define FORM_HEADER  "Content-Type: application/x-www-form-urlencoded; charset=utf-8\n"
#define URL          "https://autoscaling.eu-central-1.amazonaws.com/"
#define ACTION(name) "Action=" name "&Version=2011-01-01"
#define DESCRIBE     ACTION("DescribeAutoScalingGroups") "&AutoScalingGroupNames.member.1=ng-1"
#define ACTIVITIES   ACTION("DescribeScalingActivities")
#define NAMESPACE    " xmlns=\"http://autoscaling.amazonaws.com/doc/2011-01-01/\""
#define ID           "7c6e177f-f082-11e1-ac58-3714bEXAMPLE"
#define METADATA     "<ResponseMetadata><RequestId>" ID "</RequestId></ResponseMetadata>"
#define RESPONSE(name, result)                                                                     \
    "<" name "Response" NAMESPACE "><" name "Result>" result "</" name "Result>" METADATA          \
    "</" name "Response>"
#define GROUP(members)                                                                             \
    RESPONSE("DescribeAutoScalingGroups",                                                          \
             "<AutoScalingGroups><member>" members "</member></AutoScalingGroups>")
#define ARN         "<AutoScalingGroupARN>arn:aws:autoscaling:x:1:g</AutoScalingGroupARN>"
#define NAMED(rest) GROUP("<AutoScalingGroupName>ng-1</AutoScalingGroupName>" ARN rest)
#define SIZES       "<MinSize>1</MinSize><MaxSize>10</MaxSize><DesiredCapacity>2</DesiredCapacity>"
#define INSTANCE(id, state)                                                                        \
    "<member><InstanceId>" id "</InstanceId><LifecycleState>" state "</LifecycleState>"            \
    "<AvailabilityZone>eu-central-1a</AvailabilityZone><HealthStatus>Healthy</HealthStatus>"       \
    "<ProtectedFromScaleIn>false</ProtectedFromScaleIn></member>"
#define ERROR(code, message)                                                                       \
    "<ErrorResponse" NAMESPACE "><Error><Type>Sender</Type><Code>" code "</Code><Message>" message \
    "</Message></Error><RequestId>" ID "</RequestId></ErrorResponse>"
#define ACTIVITY(id, status, rest)                                                                 \
    "<member><ActivityId>" id "</ActivityId><StatusCode>" status "</StatusCode>" rest "</member>"
#define ACTIVITY_LIST(members)                                                                     \
    RESPONSE("DescribeScalingActivities", "<Activities>" members "</Activities>")

#define POLICIES ACTION("DescribePolicies") "&AutoScalingGroupName="
#define POLICY_LIST(members)                                                                       \
    RESPONSE("DescribePolicies", "<ScalingPolicies>" members "</ScalingPolicies>")
#define POLICY(name, type, rest)                                                                   \
    "<member><PolicyName>" name "</PolicyName><PolicyType>" type "</PolicyType>" rest "</member>"

static struct driver_group given;
static struct as_cloud_op *const op = &given.op.op;

static void init(void)
{
    given = (struct driver_group){.credentials = {.region = (char *)"eu-central-1"}};
    given.op.view = (struct as_group_view){.min = -1, .max = -1};
}

static void deinit(void)
{
    driver_end(&given);
}

TestSuite(aws, .init = init, .fini = deinit);

static void begin(enum as_group_verb verb)
{
    if (given.group)
        driver_end(&given);
    if (given.field_count == 0)
        driver_field(&given, "name", "ng-1");
    given.op.view = (struct as_group_view){.min = -1, .max = -1};
    given.op.started = NULL;
    given.op.is_done = false;
    driver_begin(&given, "aws", verb);
}

/* The group has been read: nobody else sets its size. */
static void answer_no_policies(const char *name)
{
    char body[256];
    snprintf(body, sizeof(body), POLICIES "%s", name);
    driver_expect(op, "POST", URL, body);
    cr_assert_not(op->request.is_change);
    cr_assert_str_eq(op->request.operation, "describe_policies");
    driver_answer(op, 200, POLICY_LIST(""));
}

/* ---- reading ---- */

Test(aws, reads_a_group)
{
    begin(AS_GROUP_READ);
    driver_expect(op, "POST", URL, DESCRIBE);
    driver_expect_headers(op, FORM_HEADER);
    cr_assert_not(op->request.is_change);
    cr_assert_str_eq(op->request.operation, "describe_auto_scaling_groups");
    cr_assert_str_eq(given.provider->service, "autoscaling");
    cr_assert_null(op->request.service);
    driver_answer(
        op, 200,
        NAMED("<MinSize>1</MinSize><MaxSize>10</MaxSize><DesiredCapacity>4</DesiredCapacity>"
              "<Status/><Instances>" INSTANCE("i-1", "InService") INSTANCE("i-2", "Pending:Wait")
                  INSTANCE(
                      "i-3",
                      "Terminating:Proceed") "<member><InstanceId>i-4</"
                                             "InstanceId><LifecycleState>InService</LifecycleState>"
                                             "<AvailabilityZone>eu-central-1b</AvailabilityZone>"
                                             "<HealthStatus>Unhealthy</HealthStatus>"
                                             "<ProtectedFromScaleIn>true</ProtectedFromScaleIn>"
                                             "<WeightedCapacity>1</WeightedCapacity></"
                                             "member>" INSTANCE("i-5", "Pending") INSTANCE(
                                                 "i-6",
                                                 "Warmed:Stopped") "</Instances>"
                                                                   "<SuspendedProcesses/"
                                                                   "><DesiredCapacityType>units</"
                                                                   "DesiredCapacityType>"));
    answer_no_policies("ng-1");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    const struct as_group_view *view = &given.op.view;
    cr_assert_eq(view->size, 4);
    cr_assert_eq(view->min, 1);
    cr_assert_eq(view->max, 10);
    driver_expect_backing(&given, "aws/arn:aws:autoscaling:x:1:g ");
    cr_assert_eq(view->instance_count, 5, "the warm pool's are no part of it");
    driver_expect_instance(&given, 0, "i-1 i-1 eu-central-1a running");
    driver_expect_instance(&given, 1, "i-2 i-2 eu-central-1a pending");
    driver_expect_instance(&given, 2, "i-3 i-3 eu-central-1a leaving");
    driver_expect_instance(&given, 3, "i-4 i-4 eu-central-1b running unhealthy protected");
    driver_expect_instance(&given, 4, "i-5 i-5 eu-central-1a pending");
    cr_assert_null(view->shortage);
    cr_assert_null(view->no_increase);
    cr_assert_null(view->no_removal);
    cr_assert_str_eq(op->request_id, ID);
}

Test(aws, states_of_instances)
{
    static const struct {
        const char *lifecycle, *state;
    } rows[] = {
        {"Pending", "pending"},
        {"Pending:Proceed", "pending"},
        {"InService", "running"},
        {"ReplacingRootVolume", "pending"},
        {"ReplacingRootVolume:Wait", "pending"},
        {"RootVolumeReplaced", "pending"},
        {"Terminating", "leaving"},
        {"Terminating:Retained", "leaving"},
        {"Terminated", "leaving"},
        {"Detaching", "leaving"},
        {"Detached", "leaving"},
        {"EnteringStandby", "leaving"},
        {"Standby", "leaving"},
        {"Quarantined", "leaving"},
        {"SomethingNew", "leaving"}, /* not chosen, not counted */
        {"", "leaving"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char answer[2048], want[64];
        begin(AS_GROUP_READ);
        snprintf(answer, sizeof(answer),
                 NAMED("<DesiredCapacity>0</DesiredCapacity>"
                       "<Instances><member><InstanceId>i-1</InstanceId>"
                       "<LifecycleState>%s</LifecycleState></member></Instances>"),
                 rows[i].lifecycle);
        driver_answer(op, 200, answer);
        answer_no_policies("ng-1");
        driver_expect_end(op, AS_CLOUD_OP_OK, "");
        snprintf(want, sizeof(want), "i-1 i-1 - %s", rows[i].state);
        driver_expect_instance(&given, 0, want);
        cr_assert_eq(given.op.view.min, -1);
    }
}

Test(aws, a_group_that_lacks_instances_is_asked_why)
{
    begin(AS_GROUP_READ);
    driver_answer(op, 200, NAMED(SIZES "<Instances>" INSTANCE("i-1", "InService") "</Instances>"));
    answer_no_policies("ng-1");
    driver_expect(op, "POST", URL, ACTIVITIES "&AutoScalingGroupName=ng-1&MaxRecords=10");
    cr_assert_not(op->request.is_change);
    driver_answer(
        op, 200,
        ACTIVITY_LIST(ACTIVITY("a3", "InProgress", "") ACTIVITY(
            "a2", "Failed",
            "<StatusMessage>We currently do not have sufficient m5.large capacity.</StatusMessage>"
            "<StartTime>2024-05-17T10:20:30Z</StartTime>")
                          ACTIVITY("a1", "Failed", "<StatusMessage>older</StatusMessage>")));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_str_eq(given.op.view.shortage,
                     "We currently do not have sufficient m5.large capacity.");
    cr_assert(given.op.view.shortage_since.set);
    cr_assert_eq(given.op.view.shortage_since.at.us, DRIVER_NOW.us);

    begin(AS_GROUP_READ);
    driver_answer(op, 200, NAMED(SIZES "<Instances/>"));
    answer_no_policies("ng-1");
    driver_answer(op, 200, ACTIVITY_LIST(ACTIVITY("a1", "Successful", "")));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_null(given.op.view.shortage);
}

Test(aws, suspended_processes)
{
    begin(AS_GROUP_READ);
    driver_answer(
        op, 200,
        NAMED("<DesiredCapacity>0</DesiredCapacity><SuspendedProcesses>"
              "<member><ProcessName>AZRebalance</ProcessName></member>"
              "<member><ProcessName>Launch</ProcessName><SuspensionReason>User suspended at 2024"
              "</SuspensionReason></member></SuspendedProcesses>"));
    answer_no_policies("ng-1");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_str_eq(given.op.view.no_increase, "the group's process Launch is suspended");
    cr_assert_null(given.op.view.no_removal);
    begin(AS_GROUP_READ);
    driver_answer(op, 200,
                  NAMED("<DesiredCapacity>0</DesiredCapacity><SuspendedProcesses><member>"
                        "<ProcessName>Terminate</ProcessName></member></SuspendedProcesses>"));
    answer_no_policies("ng-1");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_null(given.op.view.no_increase);
    cr_assert_str_eq(given.op.view.no_removal, "the group's process Terminate is suspended");
}

#define FORECAST(mode)                                                                             \
    "<Enabled>true</Enabled><PredictiveScalingConfiguration><Mode>" mode                           \
    "</Mode></PredictiveScalingConfiguration>"

Test(aws, policies_are_another_controller)
{
    static const struct {
        const char *suspended, *policies, *controller;
    } rows[] = {
        {"", POLICY("cpu", "TargetTrackingScaling", "<Enabled>true</Enabled>"),
         "the scaling policy cpu (TargetTrackingScaling)"},
        {"", POLICY("steps", "StepScaling", "<Enabled>true</Enabled>"),
         "the scaling policy steps (StepScaling)"},
        {"", POLICY("one", "SimpleScaling", ""), "the scaling policy one (SimpleScaling)"},
        {"", POLICY("week", "PredictiveScaling", FORECAST("ForecastAndScale")),
         "the scaling policy week (PredictiveScaling)"},
        {"", POLICY("week", "PredictiveScaling", FORECAST("ForecastOnly")), NULL},
        {"", POLICY("week", "PredictiveScaling", ""), NULL}, /* it only looks ahead then */
        {"", POLICY("cpu", "TargetTrackingScaling", "<Enabled>false</Enabled>"), NULL},
        {"",
         POLICY("off", "StepScaling", "<Enabled>false</Enabled>")
             POLICY("on", "StepScaling", "<Enabled>true</Enabled>")
                 POLICY("more", "StepScaling", "<Enabled>true</Enabled>"),
         "the scaling policy on (StepScaling)"},
        {"AlarmNotification", POLICY("cpu", "TargetTrackingScaling", "<Enabled>true</Enabled>"),
         NULL},
        {"AlarmNotification", POLICY("week", "PredictiveScaling", FORECAST("ForecastAndScale")),
         "the scaling policy week (PredictiveScaling)"},
        {"", "", NULL},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char answer[2048];
        begin(AS_GROUP_READ);
        snprintf(answer, sizeof(answer),
                 NAMED("<DesiredCapacity>0</DesiredCapacity><SuspendedProcesses><member>"
                       "<ProcessName>%s</ProcessName></member></SuspendedProcesses>"),
                 rows[i].suspended);
        driver_answer(op, 200, answer);
        driver_expect(op, "POST", URL, POLICIES "ng-1");
        driver_expect_headers(op, FORM_HEADER);
        snprintf(answer, sizeof(answer), POLICY_LIST("%s"), rows[i].policies);
        driver_answer(op, 200, answer);
        driver_expect_end(op, AS_CLOUD_OP_OK, "");
        cr_expect(as_str_equal(given.op.view.controller, rows[i].controller), "%zu: %s", i,
                  given.op.view.controller);
    }
}

Test(aws, policies_come_in_one_page)
{
    begin(AS_GROUP_READ);
    driver_answer(op, 200, NAMED("<DesiredCapacity>0</DesiredCapacity>"));
    driver_answer(op, 200,
                  RESPONSE("DescribePolicies", "<NextToken>more</NextToken><ScalingPolicies/>"));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_null(given.op.view.controller);
}

Test(aws, who_may_not_ask_for_policies_goes_on_without)
{
    begin(AS_GROUP_READ);
    driver_answer(op, 200, NAMED(SIZES));
    driver_answer(op, 403, ERROR("AccessDenied", "not authorized: autoscaling:DescribePolicies"));
    driver_expect(op, "POST", URL, ACTIVITIES "&AutoScalingGroupName=ng-1&MaxRecords=10");
    driver_answer(op, 200, ACTIVITY_LIST(""));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_null(given.op.view.controller);

    begin(AS_GROUP_READ);
    driver_answer(op, 200, NAMED("<DesiredCapacity>0</DesiredCapacity>"));
    driver_answer(op, 403, ERROR("AccessDenied", "not authorized: autoscaling:DescribePolicies"));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

Test(aws, policies_that_cannot_be_had)
{
    static const struct {
        int status;
        const char *answer;
        enum as_cloud_op_fault fault;
        const char *message;
    } rows[] = {
        {400, ERROR("Throttling", "Rate exceeded"), AS_CLOUD_OP_THROTTLED,
         "describe_policies: Throttling: Rate exceeded"},
        {403, ERROR("ExpiredToken", "x"), AS_CLOUD_OP_UNAUTHORIZED,
         "describe_policies: ExpiredToken: x"},
        {500, ERROR("ResourceContention", "x"), AS_CLOUD_OP_RETRY,
         "describe_policies: ResourceContention: x"},
        {200, "<DescribePoliciesResponse>", AS_CLOUD_OP_RETRY,
         "describe_policies: the answer is not XML: no element found"},
        {200, "<a/>", AS_CLOUD_OP_RETRY,
         "describe_policies: the answer has no DescribePoliciesResponse"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin(AS_GROUP_READ);
        driver_answer(op, 200, NAMED("<DesiredCapacity>0</DesiredCapacity>"));
        driver_answer(op, rows[i].status, rows[i].answer);
        driver_expect_end(op, rows[i].fault, rows[i].message);
        cr_expect_not(op->is_ambiguous, "it was a question");
    }
}

Test(aws, what_cannot_be_scaled)
{
    static const struct {
        const char *answer;
        enum as_cloud_op_fault fault;
        const char *message;
    } rows[] = {
        {RESPONSE("DescribeAutoScalingGroups", "<AutoScalingGroups/>"), AS_CLOUD_OP_GONE,
         "there is no Auto Scaling group ng-1"},
        {GROUP("<AutoScalingGroupName>ng-10</AutoScalingGroupName>" SIZES), AS_CLOUD_OP_GONE,
         "there is no Auto Scaling group ng-1"},
        {NAMED(SIZES "<Status>Delete in progress</Status>"), AS_CLOUD_OP_GONE,
         "the group is being deleted"},
        {NAMED(SIZES "<DesiredCapacityType>vcpu</DesiredCapacityType>"), AS_CLOUD_OP_CONFIGURATION,
         "the size of this group does not count instances, but vcpu: such groups are not "
         "supported"},
        {NAMED(SIZES "<MixedInstancesPolicy><LaunchTemplate><Overrides><member><InstanceType>"
                     "m5.large</InstanceType></member><member><WeightedCapacity>4"
                     "</WeightedCapacity></member></Overrides></LaunchTemplate>"
                     "</MixedInstancesPolicy>"),
         AS_CLOUD_OP_CONFIGURATION,
         "the size of this group does not count instances, but their weights: such groups are not "
         "supported"},
        {NAMED(SIZES "<Instances><member><InstanceId>i-1</InstanceId><WeightedCapacity>2"
                     "</WeightedCapacity></member></Instances>"),
         AS_CLOUD_OP_CONFIGURATION,
         "the size of this group does not count instances, but their weights: such groups are not "
         "supported"},
        {NAMED("<MinSize>1</MinSize>"), AS_CLOUD_OP_RETRY,
         "describe_auto_scaling_groups: the answer has no DesiredCapacity"},
        {GROUP("<AutoScalingGroupName>ng-1</AutoScalingGroupName>" SIZES), AS_CLOUD_OP_RETRY,
         "describe_auto_scaling_groups: the answer has no AutoScalingGroupARN"},
        {NAMED("<DesiredCapacity>-1</DesiredCapacity>"), AS_CLOUD_OP_RETRY,
         "describe_auto_scaling_groups: the answer has no DesiredCapacity"},
        {NAMED("<DesiredCapacity>99999999999</DesiredCapacity>"), AS_CLOUD_OP_RETRY,
         "describe_auto_scaling_groups: the answer has no DesiredCapacity"},
        {"<SomethingElse/>", AS_CLOUD_OP_RETRY,
         "describe_auto_scaling_groups: the answer has no DescribeAutoScalingGroupsResponse"},
        {"{}", AS_CLOUD_OP_RETRY,
         "describe_auto_scaling_groups: the answer is not XML: not well-formed (invalid token)"},
        {"", AS_CLOUD_OP_RETRY,
         "describe_auto_scaling_groups: the answer is not XML: no element found"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin(AS_GROUP_READ);
        driver_answer(op, 200, rows[i].answer);
        driver_expect_end(op, rows[i].fault, rows[i].message);
        cr_assert_not(op->is_ambiguous);
    }
}

Test(aws, a_group_has_a_limit)
{
    struct as_buf buf = AS_BUF_INIT(AS_CLOUD_OP_ANSWER_MAX);
    begin(AS_GROUP_READ);
    as_buf_append_str(&buf, "<DescribeAutoScalingGroupsResponse><DescribeAutoScalingGroupsResult>"
                            "<AutoScalingGroups><member><AutoScalingGroupName>ng-1"
                            "</AutoScalingGroupName>" ARN SIZES "<Instances>");
    for (int i = 0; i <= AS_GROUP_INSTANCES_MAX; i++)
        as_buf_printf(&buf,
                      "<member><InstanceId>i-%d</InstanceId><LifecycleState>InService"
                      "</LifecycleState></member>",
                      i);
    as_buf_append_str(&buf, "</Instances></member></AutoScalingGroups>"
                            "</DescribeAutoScalingGroupsResult>"
                            "</DescribeAutoScalingGroupsResponse>");
    cr_assert_eq(as_buf_check(&buf), 0);
    driver_answer(op, 200, buf.data);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, "the group has more than 20000 instances");
    as_buf_deinit(&buf);
}

/* ---- changing ---- */

Test(aws, grows)
{
    given.op.from = 2;
    given.op.to = 4;
    driver_field(&given, "name", "a b+c/\xc3\xa4");
    begin(AS_GROUP_GROW);
    driver_expect(op, "POST", URL,
                  ACTION("SetDesiredCapacity") "&AutoScalingGroupName=a%20b%2Bc%2F%C3%A4"
                                               "&DesiredCapacity=4&HonorCooldown=false");
    driver_expect_headers(op, FORM_HEADER);
    cr_assert(op->request.is_change);
    cr_assert_str_eq(op->request.operation, "set_desired_capacity");
    driver_answer(op, 200,
                  "<SetDesiredCapacityResponse" NAMESPACE ">" METADATA
                  "</SetDesiredCapacityResponse>");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_null(given.op.started);
    cr_assert_str_eq(op->request_id, ID);
}

Test(aws, takes_back)
{
    given.op.from = 4;
    given.op.to = 3;
    begin(AS_GROUP_TAKE_BACK);
    driver_expect(op, "POST", URL,
                  ACTION("SetDesiredCapacity") "&AutoScalingGroupName=ng-1&DesiredCapacity=3&"
                                               "HonorCooldown=false");
    driver_answer(op, 200, "<SetDesiredCapacityResponse/>");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

#define TERMINATE(id)                                                                              \
    ACTION("TerminateInstanceInAutoScalingGroup")                                                  \
    "&InstanceId=" id "&ShouldDecrementDesiredCapacity=true"
#define TERMINATED(id)                                                                             \
    RESPONSE("TerminateInstanceInAutoScalingGroup",                                                \
             "<Activity><ActivityId>" id "</ActivityId><StatusCode>InProgress"                     \
             "</StatusCode></Activity>")

#define SIZED(size)                                                                                \
    NAMED("<DesiredCapacity>" size "</DesiredCapacity><Instances>" INSTANCE("i-1", "InService")    \
              INSTANCE("i-2", "InService") INSTANCE("i-3", "InService") "</Instances>")

/* Of four: the group is read once more. */
static void begin_removal(size_t count)
{
    static const char *const ids[] = {"i-1", "i-2", "i-3"};
    given.op.instances = ids;
    given.op.instance_count = count;
    given.op.from = 4;
    given.op.to = 4 - (int32_t)count;
    begin(AS_GROUP_REMOVE);
    driver_expect(op, "POST", URL, DESCRIBE);
    cr_assert_not(op->request.is_change);
}

static void remove_instances(size_t count)
{
    begin_removal(count);
    driver_answer(op, 200, SIZED("4"));
}

/* Draining takes its time. */
Test(aws, a_size_that_has_changed_lets_nobody_leave)
{
    begin_removal(2);
    driver_answer(op, 200, SIZED("3"));
    driver_expect_end(op, AS_CLOUD_OP_BUSY,
                      "the group has changed since it was looked at: its size is 3");
    begin_removal(2);
    driver_answer(op, 200, SIZED("5"));
    driver_expect_end(op, AS_CLOUD_OP_BUSY,
                      "the group has changed since it was looked at: its size is 5");
    begin_removal(2); /* one has gone by itself, and with it the size */
    driver_answer(op, 200,
                  NAMED("<DesiredCapacity>3</DesiredCapacity><Instances>" INSTANCE(
                      "i-1", "Terminating") INSTANCE("i-2", "InService") "</Instances>"));
    driver_expect(op, "POST", URL, TERMINATE("i-2"));
    begin_removal(1);
    driver_answer(op, 403, ERROR("AccessDenied", "No."));
    driver_expect_end(op, AS_CLOUD_OP_PERMISSION,
                      "describe_auto_scaling_groups: AccessDenied: No.");
}

Test(aws, removes_instances_by_name_one_after_the_other)
{
    remove_instances(3);
    driver_expect(op, "POST", URL, TERMINATE("i-1"));
    cr_assert(op->request.is_change);
    cr_assert_str_eq(op->request.operation, "terminate_instance");
    driver_answer(op, 200, TERMINATED("a-1"));
    driver_expect(op, "POST", URL, TERMINATE("i-2"));
    driver_expect_headers(op, FORM_HEADER);
    driver_answer(op, 400,
                  ERROR("ValidationError",
                        "Instance Id not found - No managed instance found for instance ID: i-2"));
    driver_expect(op, "POST", URL, TERMINATE("i-3")); /* what was asked for is so */
    driver_answer(op, 200, TERMINATED("a-3"));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_str_eq(given.op.started, "a-1 a-3");
}

Test(aws, a_removal_stops_at_the_first_error)
{
    remove_instances(3);
    driver_answer(op, 200, TERMINATED("a-1"));
    driver_answer(op, 400,
                  ERROR("ValidationError",
                        "Currently, desiredSize equals minSize (1). Terminating instance without "
                        "replacement will violate group's min size constraint."));
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "terminate_instance: ValidationError: Currently, desiredSize equals minSize "
                      "(1). Terminating instance without replacement will violate group's min "
                      "size constraint.");
    cr_assert_str_eq(given.op.started, "a-1");
    cr_assert_not(op->is_ambiguous);
}

Test(aws, only_an_instance_that_is_not_there_is_done)
{
    static const char *const answers[] = {
        ERROR("AccessDenied", "Instance Id not found"),
        ERROR("ValidationError", "Group not found"),
        "Instance Id not found",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(answers); i++) {
        remove_instances(1);
        driver_answer(op, 400, answers[i]);
        cr_expect_eq(op->want, AS_CLOUD_OP_END);
        cr_expect_neq(op->fault, AS_CLOUD_OP_OK, "%zu", i);
    }
    remove_instances(0);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

/* ---- operations ---- */

static void poll(const char *operation)
{
    given.op.operation = operation;
    begin(AS_GROUP_POLL);
}

Test(aws, polls_activities)
{
    static const struct {
        const char *answer;
        enum as_cloud_op_fault fault;
        const char *message;
        bool is_done;
    } rows[] = {
        {ACTIVITY_LIST(ACTIVITY("a-1", "Successful", "") ACTIVITY("a-2", "Successful", "")),
         AS_CLOUD_OP_OK, "", true},
        {ACTIVITY_LIST(ACTIVITY("a-1", "Successful", "") ACTIVITY("a-2", "InProgress", "")),
         AS_CLOUD_OP_OK, "", false},
        {ACTIVITY_LIST(ACTIVITY("a-1", "MidLifecycleAction", "") ACTIVITY("a-2", "Successful", "")),
         AS_CLOUD_OP_OK, "", false},
        {ACTIVITY_LIST(""), AS_CLOUD_OP_OK, "", true}, /* forgotten after six weeks */
        {ACTIVITY_LIST(ACTIVITY("a-1", "Failed", "<StatusMessage>No.</StatusMessage>")),
         AS_CLOUD_OP_RETRY, "Failed: No.", true},
        {ACTIVITY_LIST(ACTIVITY("a-1", "Cancelled", "")), AS_CLOUD_OP_RETRY, "Cancelled: ", true},
        {ACTIVITY_LIST(ACTIVITY("a-1", "Failed", "<StatusMessage>No.</StatusMessage>")
                           ACTIVITY("a-2", "Successful", "")),
         AS_CLOUD_OP_RETRY, "Failed: No.", true},
        {ACTIVITY_LIST(ACTIVITY("a-1", "Failed", "<StatusMessage>No.</StatusMessage>")
                           ACTIVITY("a-2", "InProgress", "")),
         AS_CLOUD_OP_OK, "", false}, /* told when the other has ended, too */
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        poll("a-1 a-2");
        driver_expect(op, "POST", URL,
                      ACTIVITIES "&ActivityIds.member.1=a-1&ActivityIds.member.2=a-2");
        cr_assert_not(op->request.is_change);
        driver_answer(op, 200, rows[i].answer);
        driver_expect_end(op, rows[i].fault, rows[i].message);
        cr_expect_eq(given.op.is_done, rows[i].is_done, "%zu", i);
    }
}

Test(aws, many_activities_are_polled_fifty_at_a_time)
{
    struct as_buf operation = AS_BUF_INIT(4096), first = AS_BUF_INIT(8192);
    as_buf_append_str(&first, ACTIVITIES);
    for (int i = 1; i <= 51; i++) {
        as_buf_printf(&operation, "%sa-%d", i > 1 ? " " : "", i);
        if (i <= 50)
            as_buf_printf(&first, "&ActivityIds.member.%d=a-%d", i, i);
    }
    poll(operation.data);
    driver_expect(op, "POST", URL, first.data);
    driver_answer(op, 200, ACTIVITY_LIST(ACTIVITY("a-1", "InProgress", "")));
    driver_expect(op, "POST", URL, ACTIVITIES "&ActivityIds.member.1=a-51");
    driver_answer(op, 200, ACTIVITY_LIST(ACTIVITY("a-51", "Successful", "")));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_not(given.op.is_done);
    as_buf_deinit(&operation);
    as_buf_deinit(&first);
}

/* ---- errors ---- */

Test(aws, errors)
{
    static const struct {
        int status;
        const char *code, *message;
        enum as_cloud_op_fault fault;
        bool is_ambiguous;
    } rows[] = {
        {400, "Throttling", "Rate exceeded", AS_CLOUD_OP_THROTTLED, false},
        {400, "ThrottlingException", "Rate exceeded", AS_CLOUD_OP_THROTTLED, false},
        {503, "RequestLimitExceeded", "Request limit exceeded.", AS_CLOUD_OP_THROTTLED, false},
        {400, "RequestThrottledException", "", AS_CLOUD_OP_THROTTLED, false},
        {429, "TooManyRequestsException", "x", AS_CLOUD_OP_THROTTLED, false},
        {500, "ResourceContention", "You already have a pending update", AS_CLOUD_OP_RETRY, false},
        {400, "RequestTimeout", "x", AS_CLOUD_OP_RETRY, false},
        {400, "ScalingActivityInProgress", "Scaling activity a is in progress", AS_CLOUD_OP_BUSY,
         false},
        {403, "ExpiredToken", "The security token included is expired", AS_CLOUD_OP_UNAUTHORIZED,
         false},
        {403, "ExpiredTokenException", "x", AS_CLOUD_OP_UNAUTHORIZED, false},
        {403, "InvalidClientTokenId", "x", AS_CLOUD_OP_UNAUTHORIZED, false},
        {403, "SignatureDoesNotMatch", "Signature expired: 1 is now earlier",
         AS_CLOUD_OP_UNAUTHORIZED, false},
        {403, "RequestTimeTooSkewed", "x", AS_CLOUD_OP_UNAUTHORIZED, false},
        {403, "AccessDenied", "User: u is not authorized to perform: autoscaling:X",
         AS_CLOUD_OP_PERMISSION, false},
        {403, "UnauthorizedOperation", "x", AS_CLOUD_OP_PERMISSION, false},
        {403, "OptInRequired", "x", AS_CLOUD_OP_PERMISSION, false},
        {400, "LimitExceeded", "x", AS_CLOUD_OP_CAPACITY, false},
        {400, "ValidationError", "New SetDesiredCapacity value 20 is above max value 10",
         AS_CLOUD_OP_CONFIGURATION, false},
        {400, "ValidationError", "AutoScalingGroup name not found - null", AS_CLOUD_OP_GONE, false},
        {500, "InternalFailure", "x", AS_CLOUD_OP_RETRY, true},
        {503, "ServiceUnavailable", "x", AS_CLOUD_OP_RETRY, true},
        {400, "SomethingNew", "x", AS_CLOUD_OP_CONFIGURATION, false},
        {403, "SomethingNew", "x", AS_CLOUD_OP_PERMISSION, false},
    };
    given.op.to = 4;
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char answer[1024], message[256];
        begin(AS_GROUP_GROW);
        snprintf(answer, sizeof(answer), ERROR("%s", "%s"), rows[i].code, rows[i].message);
        driver_answer(op, rows[i].status, answer);
        snprintf(message, sizeof(message), "set_desired_capacity: %s%s%s", rows[i].code,
                 *rows[i].message ? ": " : "", rows[i].message);
        driver_expect_end(op, rows[i].fault, message);
        cr_expect_eq(op->is_ambiguous, rows[i].is_ambiguous, "%s", rows[i].code);
        cr_expect_str_eq(op->request_id, ID);
        cr_expect_eq(op->http_status, rows[i].status);
    }
}

Test(aws, errors_without_words_of_the_api)
{
    static const struct {
        int status;
        const char *body;
        enum as_cloud_op_fault fault;
        const char *message;
        bool is_ambiguous;
    } rows[] = {
        {502, "<html><body>Bad Gateway</body></html>", AS_CLOUD_OP_RETRY,
         "set_desired_capacity: HTTP 502", true},
        {504, "", AS_CLOUD_OP_RETRY, "set_desired_capacity: HTTP 504", true},
        {400, "<ErrorResponse>", AS_CLOUD_OP_CONFIGURATION, "set_desired_capacity: HTTP 400",
         false},
        {403, "<!DOCTYPE a [<!ENTITY b 'c'>]><ErrorResponse/>", AS_CLOUD_OP_PERMISSION,
         "set_desired_capacity: HTTP 403", false},
        {200, "<SetDesiredCapacityResponse>", AS_CLOUD_OP_RETRY,
         "set_desired_capacity: the answer is not XML: no element found", true},
        {200, "<a/>", AS_CLOUD_OP_RETRY,
         "set_desired_capacity: the answer has no SetDesiredCapacityResponse", true},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin(AS_GROUP_GROW);
        driver_answer(op, rows[i].status, rows[i].body);
        driver_expect_end(op, rows[i].fault, rows[i].message);
        cr_expect_eq(op->is_ambiguous, rows[i].is_ambiguous, "%zu", i);
    }
    begin(AS_GROUP_GROW);
    driver_break(op, AS_HTTP_TIMEOUT, "no answer within 10s");
    driver_expect_end(op, AS_CLOUD_OP_TIMEOUT, "set_desired_capacity: no answer within 10s");
    cr_assert(op->is_ambiguous);
}

/* ---- where ---- */

Test(aws, endpoints)
{
    static const struct {
        const char *region, *endpoint, *url;
    } rows[] = {
        {NULL, NULL, "https://autoscaling.eu-central-1.amazonaws.com/"},
        {"us-gov-west-1", NULL, "https://autoscaling.us-gov-west-1.amazonaws.com/"},
        {"cn-north-1", NULL, "https://autoscaling.cn-north-1.amazonaws.com.cn/"},
        {NULL, "http://127.0.0.1:5000", "http://127.0.0.1:5000/"},
        {NULL, "https://vpce-1.example.org/x//", "https://vpce-1.example.org/x/"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        given.account.option_count = 0;
        if (rows[i].region)
            driver_option(&given, "region", rows[i].region);
        if (rows[i].endpoint)
            driver_option(&given, "endpoint", rows[i].endpoint);
        begin(AS_GROUP_READ);
        driver_expect(op, "POST", rows[i].url, DESCRIBE);
    }
}

Test(aws, without_a_region_nothing_is_asked)
{
    given.credentials.region = NULL;
    begin(AS_GROUP_READ);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "no region is known: set `region` at the provider");
}

/* It becomes part of a host's name. */
Test(aws, a_region_that_is_none_is_not_asked)
{
    static const char *const regions[] = {"", "EU-1", "a.b", "x.example.org/", "a@b", "a\r\nb"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(regions); i++) {
        char message[AS_CLOUD_OP_MESSAGE_SIZE];
        given.credentials.region = (char *)regions[i];
        begin(AS_GROUP_READ);
        snprintf(message, sizeof(message),
                 "the region \"%s\" is none: a region is small letters, digits and hyphens",
                 strcmp(regions[i], "a\r\nb") == 0 ? "a  b" : regions[i]);
        driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, message);
        driver_end(&given);
    }
    given.credentials.region = (char *)"us-gov-west-1";
    begin(AS_GROUP_READ);
    cr_expect_str_eq(op->request.url, "https://autoscaling.us-gov-west-1.amazonaws.com/");
}

/* ---- EKS ---- */

#define EKS_URL "https://eks.eu-central-1.amazonaws.com/clusters/prod/node-groups/ng%201"
#define NODE_GROUP(status, health)                                                                 \
    "{\"nodegroup\":{\"nodegroupName\":\"ng 1\",\"status\":\"" status "\",\"scalingConfig\":"      \
    "{\"minSize\":1,\"maxSize\":5,\"desiredSize\":2},\"resources\":{\"autoScalingGroups\":"        \
    "[{\"name\":\"eks-ng-1\"}]},\"health\":{\"issues\":[" health "]}}}"

static void begin_eks(enum as_group_verb verb)
{
    given.field_count = 0;
    driver_field(&given, "cluster", "prod");
    driver_field(&given, "name", "ng 1");
    begin(verb);
}

Test(aws, a_managed_node_group_is_its_auto_scaling_group)
{
    begin_eks(AS_GROUP_READ);
    driver_expect(op, "GET", EKS_URL, "");
    driver_expect_headers(op, "");
    cr_assert_str_eq(op->request.service, "eks");
    cr_assert_str_eq(op->request.operation, "describe_nodegroup");
    driver_answer(op, 200, NODE_GROUP("ACTIVE", ""));
    driver_expect(op, "POST", URL,
                  ACTION("DescribeAutoScalingGroups") "&AutoScalingGroupNames.member.1=eks-ng-1");
    cr_assert_null(op->request.service);
    driver_answer(op, 200,
                  GROUP("<AutoScalingGroupName>eks-ng-1</AutoScalingGroupName>" ARN SIZES
                        "<Instances>" INSTANCE("i-1", "InService")
                            INSTANCE("i-2", "InService") "</Instances>"));
    answer_no_policies("eks-ng-1");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_eq(given.op.view.size, 2);
    cr_assert_null(given.op.view.shortage);
    driver_expect_backing(&given, "aws/arn:aws:autoscaling:x:1:g "); /* as of the group itself */

    given.op.to = 3;
    begin_eks(AS_GROUP_GROW);
    driver_expect(op, "GET", EKS_URL, "");
    driver_answer(op, 200, NODE_GROUP("ACTIVE", ""));
    driver_expect(op, "POST", URL,
                  ACTION("SetDesiredCapacity") "&AutoScalingGroupName=eks-ng-1&DesiredCapacity=3&"
                                               "HonorCooldown=false");
}

Test(aws, instances_of_a_node_group_leave_it)
{
    static const char *const ids[] = {"i-1"};
    given.op.instances = ids;
    given.op.instance_count = 1;
    given.op.from = 2;
    given.op.to = 1;
    begin_eks(AS_GROUP_REMOVE);
    driver_answer(op, 200, NODE_GROUP("ACTIVE", ""));
    driver_answer(op, 200,
                  GROUP("<AutoScalingGroupName>eks-ng-1</AutoScalingGroupName>" ARN SIZES
                        "<Instances>" INSTANCE("i-1", "InService")
                            INSTANCE("i-2", "InService") "</Instances>"));
    driver_expect(op, "POST", URL, TERMINATE("i-1"));
    given.op.operation = "a-1";
    begin_eks(AS_GROUP_POLL);
    driver_expect(op, "POST", URL, ACTIVITIES "&ActivityIds.member.1=a-1");
}

#define ISSUE                                                                                      \
    "{\"code\":\"InsufficientFreeAddresses\",\"message\":\"no address is left\","                  \
    "\"resourceIds\":[\"subnet-1\"]}"

Test(aws, what_ails_a_node_group_is_why_instances_do_not_come)
{
    begin_eks(AS_GROUP_READ);
    driver_answer(op, 200, NODE_GROUP("DEGRADED", ISSUE));
    driver_answer(op, 200,
                  GROUP("<AutoScalingGroupName>eks-ng-1</AutoScalingGroupName>" ARN SIZES));
    answer_no_policies("eks-ng-1");
    driver_answer(op, 200, ACTIVITY_LIST(""));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_str_eq(given.op.view.shortage, "InsufficientFreeAddresses: no address is left");
    cr_assert_not(given.op.view.shortage_since.set);
}

Test(aws, node_groups_that_cannot_be_scaled)
{
    static const struct {
        const char *answer;
        enum as_cloud_op_fault fault;
        const char *message;
    } rows[] = {
        {NODE_GROUP("CREATING", ""), AS_CLOUD_OP_BUSY, "the node group is CREATING"},
        {NODE_GROUP("UPDATING", ""), AS_CLOUD_OP_BUSY, "the node group is UPDATING"},
        {NODE_GROUP("DELETING", ""), AS_CLOUD_OP_GONE, "the node group is DELETING"},
        {NODE_GROUP("CREATE_FAILED", ISSUE), AS_CLOUD_OP_CONFIGURATION,
         "the node group is CREATE_FAILED: no address is left"},
        {NODE_GROUP("DELETE_FAILED", ""), AS_CLOUD_OP_CONFIGURATION,
         "the node group is DELETE_FAILED"},
        {NODE_GROUP("SOMETHING_NEW", ""), AS_CLOUD_OP_CONFIGURATION,
         "the node group is SOMETHING_NEW"},
        {"{}", AS_CLOUD_OP_RETRY, "describe_nodegroup: the answer has no nodegroup.status"},
        {"{\"nodegroup\":{\"status\":7}}", AS_CLOUD_OP_RETRY,
         "describe_nodegroup: the answer has no nodegroup.status"},
        {"{\"nodegroup\":{\"status\":\"ACTIVE\"}}", AS_CLOUD_OP_RETRY,
         "describe_nodegroup: the answer has no nodegroup.resources.autoScalingGroups"},
        {"{\"nodegroup\":{\"status\":\"ACTIVE\",\"resources\":{\"autoScalingGroups\":[{},{}]}}}",
         AS_CLOUD_OP_CONFIGURATION, "the node group has 2 Auto Scaling groups: use these"},
        {"[", AS_CLOUD_OP_RETRY,
         "describe_nodegroup: the answer is not JSON: ']' expected near end of file"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin_eks(AS_GROUP_GROW);
        driver_answer(op, 200, rows[i].answer);
        driver_expect_end(op, rows[i].fault, rows[i].message);
        cr_expect_not(op->is_ambiguous, "it was a question");
    }
}

Test(aws, errors_of_eks)
{
    static const struct {
        int status;
        const char *fields, *body;
        enum as_cloud_op_fault fault;
        const char *message;
    } rows[] = {
        {404,
         "x-amzn-RequestId\0e-1\0x-amzn-ErrorType\0"
         "ResourceNotFoundException:http://internal.amazon.com/x/\0",
         "{\"message\":\"No node group found for name: ng 1.\"}", AS_CLOUD_OP_GONE,
         "describe_nodegroup: ResourceNotFoundException: No node group found for name: ng 1."},
        {403, NULL,
         "{\"__type\":\"AccessDeniedException\",\"Message\":\"not authorized to perform: "
         "eks:DescribeNodegroup\"}",
         AS_CLOUD_OP_PERMISSION,
         "describe_nodegroup: AccessDeniedException: not authorized to perform: "
         "eks:DescribeNodegroup"},
        {403, "x-amzn-errortype\0UnrecognizedClientException\0", "{\"message\":\"invalid\"}",
         AS_CLOUD_OP_UNAUTHORIZED, "describe_nodegroup: UnrecognizedClientException: invalid"},
        {403, "x-amzn-errortype\0InvalidSignatureException\0", "{}", AS_CLOUD_OP_UNAUTHORIZED,
         "describe_nodegroup: InvalidSignatureException"},
        {429, "x-amzn-errortype\0TooManyRequestsException\0", "{}", AS_CLOUD_OP_THROTTLED,
         "describe_nodegroup: TooManyRequestsException"},
        {500, "x-amzn-errortype\0ServerException\0", "{\"message\":\"x\"}", AS_CLOUD_OP_RETRY,
         "describe_nodegroup: ServerException: x"},
        {400, "x-amzn-errortype\0InvalidParameterException\0", "{\"message\":\"x\"}",
         AS_CLOUD_OP_CONFIGURATION, "describe_nodegroup: InvalidParameterException: x"},
        {503, NULL, "<html/>", AS_CLOUD_OP_RETRY, "describe_nodegroup: HTTP 503"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin_eks(AS_GROUP_READ);
        driver_respond(op, (struct as_http_response){.status = rows[i].status,
                                                     .fields = rows[i].fields,
                                                     .body = rows[i].body});
        driver_expect_end(op, rows[i].fault, rows[i].message);
        cr_expect_str_eq(op->request_id, i == 0 ? "e-1" : "");
    }
}

Test(aws, endpoint_of_eks)
{
    driver_option(&given, "eks_endpoint", "http://127.0.0.1:5000/");
    begin_eks(AS_GROUP_READ);
    driver_expect(op, "GET", "http://127.0.0.1:5000/clusters/prod/node-groups/ng%201", "");
}
