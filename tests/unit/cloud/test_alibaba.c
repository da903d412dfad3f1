/*
 * alibaba.c: scaling groups of Auto Scaling (ESS): requests, answers, errors.
 */
#include <stdarg.h>

#include "op_driver.h"

#define ESS   "https://ess.eu-central-1.aliyuncs.com/?"
#define GROUP ESS "RegionId=eu-central-1&ScalingGroupIds.1=asg-1&PageNumber=1&PageSize=50"
#define INSTANCES(page)                                                                            \
    ESS "RegionId=eu-central-1&ScalingGroupId=asg-1&PageNumber=" page "&PageSize=100"
#define ACTIVITIES   ESS "RegionId=eu-central-1&ScalingGroupId=asg-1&PageNumber=1&PageSize=10"
#define ACTIVITY(id) ESS "RegionId=eu-central-1&ScalingActivityIds.1=" id
#define ULID         "01J3ZQ0000000000000000000A"
#define ACTION(name) "x-acs-action: " name "\nx-acs-version: 2022-02-22\n"

#define DESIRED(size)                                                                              \
    "\"EnableDesiredCapacity\":true,\"DesiredCapacity\":" #size ",\"ActiveCapacity\":2"

static struct driver_group given;
static struct as_cloud_op *op;

static void begin_named(const char *name, enum as_group_verb verb)
{
    given.field_count = 0;
    given.account.option_count = 0;
    given.op.view = (struct as_group_view){.min = -1, .max = -1};
    given.op.started = NULL;
    given.op.idempotency = ULID;
    driver_option(&given, "region", "eu-central-1");
    driver_field(&given, "name", name);
    op = &given.op.op;
    driver_begin(&given, "alibaba", verb);
}

static void begin(enum as_group_verb verb)
{
    begin_named("asg-1", verb);
}

static void end(void)
{
    driver_end(&given);
}

TestSuite(alibaba, .fini = end);

static const char *print(const char *format, ...) AS_PRINTF(1, 2);
static const char *print(const char *format, ...)
{
    static char texts[2][16384]; /* one may be a part of the other */
    static unsigned count;
    char *text = texts[count++ % 2];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(texts[0]), format, list);
    va_end(list);
    return text;
}

static void answer_group(const char *rest)
{
    driver_answer(
        op, 200,
        print("{\"RequestId\":\"req-1\",\"TotalCount\":1,\"ScalingGroups\":["
              "{\"ScalingGroupId\":\"asg-1\",\"ScalingGroupName\":\"web\",\"MinSize\":1,"
              "\"MaxSize\":9,\"LifecycleState\":\"Active\",\"SystemSuspended\":false,%s}]}",
              rest));
}

#define INSTANCE(id, state)                                                                        \
    "{\"InstanceId\":\"" id "\",\"LifecycleState\":\"" state                                       \
    "\",\"HealthStatus\":\"Healthy\",\"ZoneId\":\"eu-central-1a\",\"CreationType\":"               \
    "\"AutoCreated\",\"Entrusted\":false,\"CreatedTime\":\"2024-05-17T09:00:00Z\"}"
#define PAIR INSTANCE("i-1", "InService") "," INSTANCE("i-2", "InService")

static void answer_instances(int total, const char *instances)
{
    driver_answer(op, 200,
                  print("{\"RequestId\":\"req-2\",\"TotalCount\":%d,\"ScalingInstances\":[%s]}",
                        total, instances));
}

static void begin_change(enum as_group_verb verb, int32_t from, int32_t to)
{
    given.op.from = from;
    given.op.to = to;
    begin(verb);
}

/* ---- reading ---- */

Test(alibaba, reads_a_group_with_a_desired_capacity)
{
    begin(AS_GROUP_READ);
    driver_expect(op, "POST", GROUP, "");
    driver_expect_headers(op, ACTION("DescribeScalingGroups"));
    cr_assert_not(op->request.is_change);
    answer_group(DESIRED(2) ",\"PendingCapacity\":0,\"RemovingCapacity\":0");
    driver_expect(op, "POST", INSTANCES("1"), "");
    driver_expect_headers(op, ACTION("DescribeScalingInstances"));
    answer_instances(2, PAIR);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    const struct as_group_view *view = &given.op.view;
    cr_assert_eq(view->size, 2);
    cr_assert_eq(view->min, 1);
    cr_assert_eq(view->max, 9);
    cr_assert_eq(view->instance_count, 2);
    driver_expect_backing(&given, "alibaba/asg-1 ");
    driver_expect_instance(&given, 0, "i-1 i-1 eu-central-1a running");
    cr_assert_eq(view->instances[0].created.at.us, INT64_C(1715936400) * AS_US_PER_S);
    cr_assert_not(view->in_progress);
    cr_assert_null(view->no_increase);
    cr_assert_null(view->no_removal);
    cr_assert_str_eq(op->request_id, "req-2");
}

Test(alibaba, size_without_a_desired_capacity_is_what_is_there_or_coming)
{
    begin(AS_GROUP_READ);
    answer_group("\"EnableDesiredCapacity\":false,\"DesiredCapacity\":99,\"ActiveCapacity\":2,"
                 "\"PendingCapacity\":1,\"PendingWaitCapacity\":1,\"InitCapacity\":1,"
                 "\"ProtectedCapacity\":1,\"StandbyCapacity\":1,\"StoppedCapacity\":5,"
                 "\"RemovingCapacity\":3,\"TotalCapacity\":15");
    answer_instances(0, "");
    cr_assert_eq(given.op.view.size, 7);
    cr_assert(given.op.view.in_progress);
}

Test(alibaba, a_group_by_its_name)
{
    begin_named("web", AS_GROUP_READ);
    driver_expect(op, "POST",
                  ESS "RegionId=eu-central-1&ScalingGroupNames.1=web&PageNumber=1&PageSize=50", "");
    driver_answer(op, 200,
                  "{\"ScalingGroups\":[{\"ScalingGroupId\":\"asg-2\",\"ScalingGroupName\":"
                  "\"web-2\"},{\"ScalingGroupId\":\"asg-1\",\"ScalingGroupName\":\"web\","
                  "\"ActiveCapacity\":0}]}");
    driver_expect(op, "POST", INSTANCES("1"), "");
    driver_expect_backing(&given, "alibaba/asg-1 "); /* as by its id */
}

Test(alibaba, states_of_instances)
{
    begin(AS_GROUP_READ);
    answer_group(DESIRED(2));
    answer_instances(
        9,
        INSTANCE("a", "InService") "," INSTANCE("b", "Pending") "," INSTANCE("c", "Pending:Wait") "," INSTANCE("d", "Protected") "," INSTANCE(
            "e",
            "Standby") "," INSTANCE("f",
                                    "Stopped") "," INSTANCE("g",
                                                            "Removing") "," INSTANCE("h",
                                                                                     "Removing:"
                                                                                     "Wait") ","
                                                                                             "{\"In"
                                                                                             "stanc"
                                                                                             "eId\""
                                                                                             ":\"i"
                                                                                             "\","
                                                                                             "\"Lif"
                                                                                             "ecycl"
                                                                                             "eStat"
                                                                                             "e\":"
                                                                                             "\"InS"
                                                                                             "ervic"
                                                                                             "e\","
                                                                                             "\"Hea"
                                                                                             "lthSt"
                                                                                             "atus"
                                                                                             "\":"
                                                                                             "\"Unh"
                                                                                             "ealth"
                                                                                             "y\","
                                                                                             "\"Cre"
                                                                                             "ation"
                                                                                             "Type"
                                                                                             "\":"
                                                                                             "\"Att"
                                                                                             "ached"
                                                                                             "\","
                                                                                             "\"Ent"
                                                                                             "ruste"
                                                                                             "d\":"
                                                                                             "false"
                                                                                             "},"
                                                                                             "{\"In"
                                                                                             "stanc"
                                                                                             "eId\""
                                                                                             ":\"j"
                                                                                             "\","
                                                                                             "\"Lif"
                                                                                             "ecycl"
                                                                                             "eStat"
                                                                                             "e\":"
                                                                                             "\"InS"
                                                                                             "ervic"
                                                                                             "e\","
                                                                                             "\"Cre"
                                                                                             "ation"
                                                                                             "Type"
                                                                                             "\":"
                                                                                             "\"Att"
                                                                                             "ached"
                                                                                             "\","
                                                                                             "\"Ent"
                                                                                             "ruste"
                                                                                             "d\":"
                                                                                             "true,"
                                                                                             "\"Wei"
                                                                                             "ghted"
                                                                                             "Capac"
                                                                                             "ity\""
                                                                                             ":1}");
    static const char *const wanted[] = {
        "a a eu-central-1a running",           "b b eu-central-1a pending",
        "c c eu-central-1a pending",           "d d eu-central-1a running protected",
        "e e eu-central-1a running protected", "f f eu-central-1a leaving protected",
        "g g eu-central-1a leaving protected", "h h eu-central-1a leaving protected",
        "i i - running unhealthy protected",   "j j - running",
    };
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    for (size_t i = 0; i < AS_ARRAY_SIZE(wanted); i++)
        driver_expect_instance(&given, i, wanted[i]);
}

Test(alibaba, instances_come_in_pages)
{
    begin(AS_GROUP_READ);
    answer_group(DESIRED(2));
    answer_instances(2, INSTANCE("i-1", "InService"));
    driver_expect(op, "POST", INSTANCES("2"), "");
    answer_instances(2, INSTANCE("i-2", "InService"));
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_eq(given.op.view.instance_count, 2);
}

Test(alibaba, pages_that_never_end_do)
{
    begin(AS_GROUP_READ);
    answer_group(DESIRED(2));
    while (op->want == AS_CLOUD_OP_SEND)
        answer_instances(1000000, INSTANCE("i-1", "InService"));
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION, "given up after 2 pages: it never ends");
    driver_end(&given);
    begin(AS_GROUP_READ);
    answer_group(DESIRED(0));
    answer_instances(9, ""); /* an empty page is the last one */
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

Test(alibaba, the_last_activity_that_failed_tells_what_is_short)
{
    begin(AS_GROUP_READ);
    answer_group(DESIRED(4));
    answer_instances(2, PAIR);
    driver_expect(op, "POST", ACTIVITIES, "");
    driver_expect_headers(op, ACTION("DescribeScalingActivities"));
    driver_answer(op, 200,
                  "{\"ScalingActivities\":["
                  "{\"StatusCode\":\"Successful\",\"StartTime\":\"2024-05-17T10:22Z\"},"
                  "{\"StatusCode\":\"Failed\",\"StartTime\":\"2024-05-17T10:18Z\","
                  "\"ErrorCode\":\"Old\",\"ErrorMessage\":\"x\"},"
                  "{\"StatusCode\":\"Warning\",\"StartTime\":\"2024-05-17T10:20Z\","
                  "\"ErrorCode\":\"OperationDenied.NoStock\",\"ErrorMessage\":\"Sold out.\"}]}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    const struct as_group_view *view = &given.op.view;
    cr_assert_str_eq(view->shortage, "OperationDenied.NoStock: Sold out.");
    cr_assert(view->shortage_since.set);
    cr_assert_eq(view->shortage_since.at.us, INT64_C(1715941259) * AS_US_PER_S,
                 "the end of its minute");
}

Test(alibaba, words_of_an_activity_stand_in_several_places)
{
    static const struct {
        const char *activity, *words;
    } rows[] = {
        {"\"ErrorMessages\":[{\"Code\":\"A\",\"Message\":\"b\"}],\"StatusMessage\":\"c\"", "A: b"},
        {"\"ErrorCode\":\"A\",\"StatusMessage\":\"c\",\"Description\":\"d\"", "A: c"},
        {"\"ErrorCode\":\"A\",\"Description\":\"d\"", "A: d"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin(AS_GROUP_READ);
        answer_group(DESIRED(4));
        answer_instances(2, PAIR);
        driver_answer(op, 200,
                      print("{\"ScalingActivities\":[{\"StatusCode\":\"Failed\",\"StartTime\":"
                            "\"nonsense\",%s}]}",
                            rows[i].activity));
        cr_assert_str_eq(given.op.view.shortage, rows[i].words);
        cr_assert_not(given.op.view.shortage_since.set);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end(&given);
    }
}

Test(alibaba, what_a_group_cannot_do_now)
{
    static const struct {
        const char *rest, *no_increase, *no_removal;
    } rows[] = {
        {"\"LifecycleState\":\"Inactive\"", "the scaling group is disabled (Inactive)",
         "the scaling group is disabled (Inactive)"},
        {"\"SystemSuspended\":true",
         "Auto Scaling has suspended the group, after it failed for days: see to the cause, then "
         "resume it",
         NULL},
        {"\"SuspendedProcesses\":[\"ScaleOut\"]", "the group's process ScaleOut is suspended",
         NULL},
        {"\"SuspendedProcesses\":[\"HealthCheck\",\"ScaleIn\",7]", NULL,
         "the group's process ScaleIn is suspended"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin(AS_GROUP_READ);
        driver_answer(op, 200,
                      print("{\"ScalingGroups\":[{\"ScalingGroupId\":\"asg-1\",\"ActiveCapacity\":"
                            "0,%s}]}",
                            rows[i].rest));
        answer_instances(0, "");
        driver_expect_end(op, AS_CLOUD_OP_OK, "");
        cr_assert(as_str_equal(given.op.view.no_increase, rows[i].no_increase), "%zu", i);
        cr_assert(as_str_equal(given.op.view.no_removal, rows[i].no_removal), "%zu", i);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end(&given);
    }
}

Test(alibaba, groups_that_make_no_sense)
{
    static const struct {
        const char *body, *message;
        enum as_cloud_op_fault fault;
    } rows[] = {
        {"{\"ScalingGroups\":[]}", "there is no such scaling group in the region",
         AS_CLOUD_OP_GONE},
        {"{\"ScalingGroups\":[{\"ScalingGroupId\":\"asg-2\"}]}",
         "there is no such scaling group in the region", AS_CLOUD_OP_GONE},
        {"{\"ScalingGroups\":[{\"ScalingGroupId\":\"asg-1\",\"LifecycleState\":\"Deleting\"}]}",
         "the scaling group is being deleted", AS_CLOUD_OP_GONE},
        {"{}", "describe_scaling_groups: the answer has no ScalingGroups", AS_CLOUD_OP_RETRY},
        {"{\"ScalingGroups\":[{\"ScalingGroupId\":\"asg-1\"}]}",
         "describe_scaling_groups: the answer has no ActiveCapacity", AS_CLOUD_OP_RETRY},
        {"{\"ScalingGroups\":[{\"ScalingGroupId\":\"asg-1\",\"EnableDesiredCapacity\":true}]}",
         "describe_scaling_groups: the answer has no DesiredCapacity", AS_CLOUD_OP_RETRY},
        {"{\"ScalingGr",
         "describe_scaling_groups: the answer is not JSON: premature end of input "
         "near '\"ScalingGr'",
         AS_CLOUD_OP_RETRY},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin(AS_GROUP_READ);
        driver_answer(op, 200, rows[i].body);
        driver_expect_end(op, rows[i].fault, rows[i].message);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end(&given);
    }
}

Test(alibaba, instances_that_make_no_sense)
{
    static const struct {
        const char *body, *message;
        enum as_cloud_op_fault fault;
    } rows[] = {
        {"{\"ScalingInstances\":[]}", "describe_scaling_instances: the answer has no TotalCount",
         AS_CLOUD_OP_RETRY},
        {"{\"TotalCount\":1,\"ScalingInstances\":[{\"InstanceId\":7}]}",
         "describe_scaling_instances: the answer has no ScalingInstances.InstanceId",
         AS_CLOUD_OP_RETRY},
        {"{\"TotalCount\":1,\"ScalingInstances\":[{\"InstanceId\":\"i\",\"WeightedCapacity\":4}]}",
         "the size of this group does not count instances, but their weights: such groups are not "
         "supported",
         AS_CLOUD_OP_CONFIGURATION},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin(AS_GROUP_READ);
        answer_group(DESIRED(2));
        driver_answer(op, 200, rows[i].body);
        driver_expect_end(op, rows[i].fault, rows[i].message);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end(&given);
    }
}

/* ---- where ---- */

Test(alibaba, regions_have_their_addresses)
{
    static const char *const rows[][2] = {
        {"cn-hangzhou", "https://ess.aliyuncs.com/"},
        {"cn-shanghai-finance-1", "https://ess.aliyuncs.com/"},
        {"us-west-1", "https://ess.aliyuncs.com/"},
        {"ap-southeast-1", "https://ess.aliyuncs.com/"},
        {"ap-southeast-5", "https://ess.ap-southeast-5.aliyuncs.com/"},
        {"cn-zhangjiakou", "https://ess.cn-zhangjiakou.aliyuncs.com/"},
        {"me-central-1", "https://ess.me-central-1.aliyuncs.com/"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        given = (struct driver_group){.credentials = {.region = (char *)rows[i][0]}};
        driver_field(&given, "name", "asg-1");
        op = &given.op.op;
        driver_begin(&given, "alibaba", AS_GROUP_READ);
        cr_assert(as_str_starts_with(op->request.url, rows[i][1]), "%s", op->request.url);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end(&given);
    }
}

/* It becomes part of a host's name. */
Test(alibaba, a_region_that_is_none_is_not_asked)
{
    given = (struct driver_group){.credentials = {.region = (char *)"x.example.org/"}};
    driver_field(&given, "name", "asg-1");
    op = &given.op.op;
    driver_begin(&given, "alibaba", AS_GROUP_READ);
    driver_expect_end(
        op, AS_CLOUD_OP_CONFIGURATION,
        "the region \"x.example.org/\" is none: a region is small letters, digits and "
        "hyphens");
}

Test(alibaba, the_address_is_an_option_and_the_region_has_to_be_known)
{
    driver_option(&given, "endpoint", "http://127.0.0.1:5000/");
    driver_field(&given, "name", "asg-1");
    op = &given.op.op;
    driver_begin(&given, "alibaba", AS_GROUP_READ);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "no region is known: set `region` of the provider");
    driver_end(&given);
    driver_set("ALIBABA_CLOUD_REGION_ID", "cn-x");
    driver_begin(&given, "alibaba", AS_GROUP_READ);
    driver_expect(op, "POST",
                  "http://127.0.0.1:5000/?RegionId=cn-x&ScalingGroupIds.1=asg-1&PageNumber=1"
                  "&PageSize=50",
                  "");
}

/* ---- errors ---- */

Test(alibaba, errors_have_classes)
{
    static const struct {
        int status;
        const char *code;
        enum as_cloud_op_fault fault;
    } rows[] = {
        {400, "Throttling", AS_CLOUD_OP_THROTTLED},
        {400, "Throttling.User", AS_CLOUD_OP_THROTTLED},
        {503, "Throttling.Api", AS_CLOUD_OP_THROTTLED},
        {503, "ServiceUnavailable", AS_CLOUD_OP_RETRY},
        {500, "InternalError", AS_CLOUD_OP_RETRY},
        {500, "Unknown", AS_CLOUD_OP_RETRY},
        {400, "SignatureNonceUsed", AS_CLOUD_OP_RETRY},
        {400, "ScalingActivityInProgress", AS_CLOUD_OP_BUSY},
        {400, "IncorrectScalingGroupStatus", AS_CLOUD_OP_BUSY},
        {403, "OperationDenied.NoStock", AS_CLOUD_OP_CAPACITY},
        {400, "QuotaExceeded.Instance", AS_CLOUD_OP_CAPACITY},
        {400, "InvalidVSwitchId.IpNotEnough", AS_CLOUD_OP_CAPACITY},
        {403, "InvalidAccountStatus.NotEnoughBalance", AS_CLOUD_OP_CAPACITY},
        {404, "InvalidAccessKeyId.NotFound", AS_CLOUD_OP_UNAUTHORIZED},
        {400, "SignatureDoesNotMatch", AS_CLOUD_OP_UNAUTHORIZED},
        {400, "InvalidSecurityToken.Expired", AS_CLOUD_OP_UNAUTHORIZED},
        {403, "Forbidden.RAM", AS_CLOUD_OP_PERMISSION},
        {403, "NoPermission", AS_CLOUD_OP_PERMISSION},
        {404, "InvalidScalingGroupId.NotFound", AS_CLOUD_OP_GONE},
        {400, "IncorrectCapacity.MaxSize", AS_CLOUD_OP_CONFIGURATION},
        {400, "IncorrectCapacity.MinSize", AS_CLOUD_OP_CONFIGURATION},
        {404, "InvalidParameter", AS_CLOUD_OP_CONFIGURATION},
        {400, "MissingParameter", AS_CLOUD_OP_CONFIGURATION},
        {400, "InvalidTimeStamp.Expired", AS_CLOUD_OP_CONFIGURATION},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char message[128];
        begin(AS_GROUP_READ);
        driver_answer(op, rows[i].status,
                      print("{\"RequestId\":\"req-9\",\"HostId\":\"ess.aliyuncs.com\",\"Code\":"
                            "\"%s\",\"Message\":\"No.\"}",
                            rows[i].code));
        snprintf(message, sizeof(message), "describe_scaling_groups: %s: No.", rows[i].code);
        driver_expect_end(op, rows[i].fault, message);
        cr_assert_str_eq(op->request_id, "req-9");
        cr_assert_not(op->is_ambiguous);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end(&given);
    }
}

Test(alibaba, errors_without_words)
{
    begin(AS_GROUP_READ);
    driver_answer(op, 502, "<html>");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, "describe_scaling_groups: HTTP 502");
    driver_end(&given);
    begin(AS_GROUP_READ);
    driver_break(op, AS_HTTP_UNREACHABLE, "connection refused");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, "describe_scaling_groups: connection refused");
}

Test(alibaba, throttling_says_how_long)
{
    static const struct {
        const char *fields;
        int64_t us;
    } rows[] = {
        {"x-ratelimit-user-api\0Limit:10,Remain:0,TimeLeft:320\0", 320 * AS_US_PER_MS},
        {"x-ratelimit-user-api\0TimeLeft:99999999999\0", 0},
        {"x-ratelimit-user-api\0TimeLeft:\0", 0},
        {"x\0y\0", 0},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin(AS_GROUP_READ);
        driver_respond(op, (struct as_http_response){.status = 400,
                                                     .fields = rows[i].fields,
                                                     .body = "{\"Code\":\"Throttling.User\"}"});
        cr_assert_eq(op->fault, AS_CLOUD_OP_THROTTLED);
        cr_assert_eq(op->retry_after_us, rows[i].us, "%zu: %lld", i, (long long)op->retry_after_us);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end(&given);
    }
}

/* ---- growing ---- */

#define SCALE(to, token)                                                                           \
    ESS "ScalingGroupId=asg-1&AdjustmentType=TotalCapacity&AdjustmentValue=" to                    \
        "&SyncActivity=true&ClientToken=" ULID "-" token

static void begin_growth(int size)
{
    begin_change(AS_GROUP_GROW, 2, 4);
    answer_group(print("\"EnableDesiredCapacity\":true,\"DesiredCapacity\":%d", size));
    answer_instances(2, PAIR);
}

Test(alibaba, grows_to_an_absolute_total)
{
    begin_growth(2);
    driver_expect(op, "POST", SCALE("4", "ccbb0fc4f3bbe7c93ea7dd904dfedb38"), "");
    driver_expect_headers(op, ACTION("ScaleWithAdjustment"));
    cr_assert(op->request.is_change);
    driver_answer(op, 200, "{\"RequestId\":\"req-3\",\"ScalingActivityId\":\"asa-1\"}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_str_eq(given.op.started, "asa-1");
    cr_assert_str_eq(op->request_id, "req-3");
}

Test(alibaba, a_change_of_the_desired_capacity_alone_has_no_activity)
{
    begin_growth(2);
    driver_answer(op, 200, "{\"ActivityType\":\"CapacityChange\"}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_null(given.op.started);
}

Test(alibaba, a_size_that_somebody_else_changed_is_left_alone)
{
    begin_growth(3);
    driver_expect_end(op, AS_CLOUD_OP_BUSY,
                      "the scaling group has changed since it was looked at: its size is 3");
    driver_end(&given);
    begin_growth(4); /* by a request whose answer was lost */
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

Test(alibaba, a_total_that_would_be_cut_is_refused)
{
    begin_change(AS_GROUP_GROW, 2, 10);
    answer_group(DESIRED(2));
    answer_instances(2, PAIR);
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "10 is above the group's own MaxSize, 9: it would be cut to that");
}

Test(alibaba, a_change_without_an_answer_may_have_been_made)
{
    begin_growth(2);
    driver_break(op, AS_HTTP_TIMEOUT, "no answer within 10 s");
    driver_expect_end(op, AS_CLOUD_OP_TIMEOUT, "scale_with_adjustment: no answer within 10 s");
    cr_assert(op->is_ambiguous);
}

/* ---- operations ---- */

static void poll(const char *activity)
{
    given.op.operation = "asa-1";
    begin(AS_GROUP_POLL);
    driver_expect(op, "POST", ACTIVITY("asa-1"), "");
    driver_expect_headers(op, ACTION("DescribeScalingActivities"));
    driver_answer(op, 200, print("{\"ScalingActivities\":[%s]}", activity));
}

Test(alibaba, activities_are_followed_to_their_end)
{
    static const struct {
        const char *activity;
        enum as_cloud_op_fault fault;
        bool is_done;
        const char *message;
    } rows[] = {
        {"{\"StatusCode\":\"InProgress\"}", AS_CLOUD_OP_OK, false, ""},
        {"{\"StatusCode\":\"Successful\"}", AS_CLOUD_OP_OK, true, ""},
        {"{\"StatusCode\":\"Warning\",\"ErrorCode\":\"OperationDenied.NoStock\",\"ErrorMessage\":"
         "\"Sold out.\"}",
         AS_CLOUD_OP_CAPACITY, true,
         "the scaling activity ended as Warning: OperationDenied.NoStock: Sold out."},
        {"{\"StatusCode\":\"Failed\",\"ErrorMessages\":[{\"Code\":\"QuotaExceed.X\",\"Message\":"
         "\"Full.\"}]}",
         AS_CLOUD_OP_CAPACITY, true, "the scaling activity ended as Failed: QuotaExceed.X: Full."},
        {"{\"StatusCode\":\"Rejected\",\"StatusMessage\":\"Cooldown.\"}", AS_CLOUD_OP_RETRY, true,
         "the scaling activity ended as Rejected: Cooldown."},
        {"", AS_CLOUD_OP_RETRY, false,
         "describe_scaling_activity: the answer has no ScalingActivities.StatusCode"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        poll(rows[i].activity);
        driver_expect_end(op, rows[i].fault, rows[i].message);
        cr_assert_eq(given.op.is_done, rows[i].is_done, "%zu", i);
        given.op.is_done = false;
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end(&given);
    }
}

/* ---- removing ---- */

#define REMOVE(ids, token)                                                                         \
    ESS "RegionId=eu-central-1&ScalingGroupId=asg-1" ids                                           \
        "&DecreaseDesiredCapacity=true&RemovePolicy=release&IgnoreInvalidInstance=true"            \
        "&ClientToken=" ULID "-" token

Test(alibaba, instances_leave_by_name)
{
    static const char *const ids[] = {"i-1", "i-gone", "i-3", "i-2"};
    given.op.instances = ids;
    given.op.instance_count = 4;
    begin_change(AS_GROUP_REMOVE, 3, 1);
    answer_group(DESIRED(3));
    answer_instances(3, PAIR "," INSTANCE("i-3", "Removing"));
    driver_expect(
        op, "POST",
        REMOVE("&InstanceIds.1=i-1&InstanceIds.2=i-2", "2b98db7e9734456ae2cba0bb85c91c50"), "");
    driver_expect_headers(op, ACTION("RemoveInstances"));
    cr_assert(op->request.is_change);
    driver_answer(op, 200, "{\"ScalingActivityId\":\"asa-1\"}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_str_eq(given.op.started, "asa-1");
}

Test(alibaba, instances_that_are_gone_already_are_what_was_wanted)
{
    static const char *const ids[] = {"i-8", "i-9"};
    given.op.instances = ids;
    given.op.instance_count = 2;
    begin_change(AS_GROUP_REMOVE, 4, 2);
    answer_group(DESIRED(2));
    answer_instances(2, PAIR);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

/* The token of the removal of one instance by the same decision, as a new text. */
static char *find_token(const char *id, int32_t from, int32_t to)
{
    given.op.instances = &id;
    given.op.instance_count = 1;
    begin_change(AS_GROUP_REMOVE, from, to);
    answer_group(print("\"EnableDesiredCapacity\":true,\"DesiredCapacity\":%d", from));
    answer_instances(2, PAIR);
    char *token = strdup(strstr(op->request.url, "&ClientToken="));
    driver_end(&given);
    return token;
}

/* Made again by an attempt that chooses others, it is another change. */
Test(alibaba, a_token_is_of_one_change)
{
    char *tokens[] = {find_token("i-1", 3, 2), find_token("i-1", 3, 2), find_token("i-2", 3, 2),
                      find_token("i-1", 2, 1)};
    cr_expect_str_eq(tokens[0], tokens[1]);
    cr_expect_str_neq(tokens[0], tokens[2]);
    cr_expect_str_neq(tokens[0], tokens[3]);
    for (size_t i = 0; i < AS_ARRAY_SIZE(tokens); i++) {
        cr_expect_leq(strlen(tokens[i]), strlen("&ClientToken=") + 64);
        free(tokens[i]);
    }
    begin(AS_GROUP_READ);
}

/* Draining takes its time. */
Test(alibaba, a_size_that_has_changed_lets_nobody_leave)
{
    static const char *const ids[] = {"i-1"};
    for (int from = 1; from <= 3; from += 2) {
        given.op.instances = ids;
        given.op.instance_count = 1;
        begin_change(AS_GROUP_REMOVE, from, from - 1);
        answer_group(DESIRED(2));
        answer_instances(2, PAIR);
        driver_expect_end(op, AS_CLOUD_OP_BUSY,
                          "the group has changed since it was looked at: its size is 2");
        if (from == 1)
            driver_end(&given);
    }
}

/* Of one instance more than fit into a request. */
static void begin_large_removal(void)
{
    static char names[21][8], list[8192];
    static const char *ids[21];
    *list = '\0';
    for (size_t i = 0; i < 21; i++) {
        const size_t size = strlen(list);
        snprintf(names[i], sizeof(names[i]), "i-%zu", i);
        snprintf(list + size, sizeof(list) - size,
                 "%s{\"InstanceId\":\"i-%zu\",\"LifecycleState\":\"InService\"}", i ? "," : "", i);
        ids[i] = names[i];
    }
    given.op.instances = ids;
    given.op.instance_count = 21;
    begin_change(AS_GROUP_REMOVE, 21, 0);
    answer_group(DESIRED(21));
    answer_instances(21, list);
}

/* Twenty in a request, one activity at a time. */
Test(alibaba, many_instances_leave_one_activity_after_the_other)
{
    begin_large_removal();
    cr_assert_not_null(strstr(op->request.url, "&InstanceIds.20=i-19&DecreaseDesired"));
    driver_answer(op, 200, "{\"ScalingActivityId\":\"asa-1\"}");
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(op->want, AS_CLOUD_OP_WAIT);
        cr_assert_eq(op->wait_us, 5 * AS_US_PER_S);
        as_cloud_op_on_time(op, DRIVER_NOW);
        driver_expect(op, "POST", ACTIVITY("asa-1"), "");
        driver_answer(op, 200,
                      i == 0 ? "{\"ScalingActivities\":[{\"StatusCode\":\"InProgress\"}]}"
                             : "{\"ScalingActivities\":[{\"StatusCode\":\"Successful\"}]}");
    }
    driver_expect(op, "POST", REMOVE("&InstanceIds.1=i-20", "2f9c5d424eb2a20b07d15be283f66d93"),
                  "");
    driver_answer(op, 200, "{\"ScalingActivityId\":\"asa-2\"}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
    cr_assert_str_eq(given.op.started, "asa-2");
}

Test(alibaba, retry_after_holds_between_looks_at_a_removal)
{
    begin_large_removal();
    driver_respond(op, (struct as_http_response){.status = 200,
                                                 .retry_after = "60",
                                                 .body = "{\"ScalingActivityId\":\"asa-1\"}"});
    cr_assert_eq(op->want, AS_CLOUD_OP_WAIT);
    cr_assert_eq(op->wait_us, 60 * AS_US_PER_S);
    as_cloud_op_on_time(op, DRIVER_NOW);
    driver_expect(op, "POST", ACTIVITY("asa-1"), "");
    driver_respond(op, (struct as_http_response){
                           .status = 200,
                           .retry_after = "7",
                           .body = "{\"ScalingActivities\":[{\"StatusCode\":\"InProgress\"}]}"});
    cr_assert_eq(op->want, AS_CLOUD_OP_WAIT);
    cr_assert_eq(op->wait_us, 7 * AS_US_PER_S);
}

Test(alibaba, a_removal_that_ends_badly)
{
    static const struct {
        const char *activity;
        enum as_cloud_op_fault fault;
        const char *message;
    } rows[] = {
        {"{\"StatusCode\":\"Warning\"}", AS_CLOUD_OP_OK, NULL}, /* some were gone already */
        {"{\"StatusCode\":\"Failed\",\"ErrorCode\":\"X\",\"ErrorMessage\":\"y\"}",
         AS_CLOUD_OP_RETRY, "the scaling activity ended as Failed: X: y"},
        {"{}", AS_CLOUD_OP_RETRY,
         "describe_scaling_activity: the answer has no ScalingActivities.StatusCode"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        begin_large_removal();
        driver_answer(op, 200, "{\"ScalingActivityId\":\"asa-1\"}");
        as_cloud_op_on_time(op, DRIVER_NOW);
        driver_answer(op, 200, print("{\"ScalingActivities\":[%s]}", rows[i].activity));
        if (rows[i].fault == AS_CLOUD_OP_OK)
            driver_expect(op, "POST",
                          REMOVE("&InstanceIds.1=i-20", "2f9c5d424eb2a20b07d15be283f66d93"), "");
        else
            driver_expect_end(op, rows[i].fault, rows[i].message);
        if (i + 1 < AS_ARRAY_SIZE(rows))
            driver_end(&given);
    }
}

Test(alibaba, a_removal_below_the_groups_minimum_is_refused_by_it)
{
    static const char *const ids[] = {"i-1"};
    given.op.instances = ids;
    given.op.instance_count = 1;
    begin_change(AS_GROUP_REMOVE, 2, 1);
    answer_group(DESIRED(2));
    answer_instances(2, PAIR);
    driver_answer(op, 400, "{\"Code\":\"IncorrectCapacity.MinSize\",\"Message\":\"No.\"}");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "remove_instances: IncorrectCapacity.MinSize: No.");
}

/* ---- taking back ---- */

Test(alibaba, what_never_came_is_taken_back)
{
    begin_change(AS_GROUP_TAKE_BACK, 4, 2);
    answer_group(DESIRED(4));
    answer_instances(2, PAIR);
    driver_expect(op, "POST", SCALE("2", "1d0b2f3acb614d8a2dfca8c4c55bd813"), "");
    driver_answer(op, 200, "{\"ActivityType\":\"CapacityChange\"}");
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}

Test(alibaba, instances_that_came_are_kept)
{
    begin_change(AS_GROUP_TAKE_BACK, 4, 2);
    answer_group(DESIRED(4));
    answer_instances(3, PAIR "," INSTANCE("i-3", "Pending"));
    driver_expect_end(op, AS_CLOUD_OP_BUSY,
                      "the scaling group has 3 instances by now: Auto Scaling would choose which "
                      "leave, for a size of 2");
    driver_end(&given);
    begin_change(AS_GROUP_TAKE_BACK, 4, 2);
    answer_group(DESIRED(2));
    answer_instances(2, PAIR);
    driver_expect_end(op, AS_CLOUD_OP_OK, "");
}
