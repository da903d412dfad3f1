/*
 * Azure's operations, pages and errors: which are followed, how far, and the results.
 */
#include "azure.h"

static struct as_cloud_op *begin_change(struct driver_group *given)
{
    given->op.from = 3;
    given->op.to = 5;
    name_set(given);
    driver_begin(given, "azure", AS_GROUP_GROW);
    return &given->op.op;
}

static struct as_cloud_op *begin_polling(struct driver_group *given, const char *operation)
{
    given->op.operation = operation;
    name_set(given);
    driver_begin(given, "azure", AS_GROUP_POLL);
    return &given->op.op;
}

/* ---- what a change starts ---- */

Test(azure_operation, answer_says_how_to_follow)
{
    static const struct {
        int status;
        const char *fields, *body, *started;
    } cases[] = {
        {200, "", "", NULL},
        {204, "", "", NULL},
        {200, "", "{\"properties\":{\"provisioningState\":\"Succeeded\"}}", NULL},
        {200, "", "{\"properties\":{\"provisioningState\":\"Updating\"}}", "resource"},
        {201, "", "{\"properties\":{\"provisioningState\":\"Scaling\"}}", "resource"},
        {202, "", "", "resource"},
        {200, "Azure-AsyncOperation\0" OPERATION "\0", "{}", "operation " OPERATION},
        {201, "Azure-AsyncOperation\0" OPERATION "\0Location\0" BASE "/b\0", "",
         "operation " OPERATION},
        {202, "Location\0" BASE "/b?c=d\0", "", "location " BASE "/b?c=d"},
        {200, "Location\0" BASE "/b\0", "", NULL},
        /* the token goes to Resource Manager alone; the resource's state can be read there */
        {202, "Azure-AsyncOperation\0https://evil.example/op\0", "", "resource"},
        {202, "Azure-AsyncOperation\0https://evil.example/op\0Location\0" BASE "/b\0", "",
         "location " BASE "/b"},
        {202, "Location\0https://evil.example/op\0", "", "resource"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct driver_group given = {0};
        struct as_cloud_op *op = begin_change(&given);
        answer_fields(op, cases[i].status, cases[i].fields, cases[i].body);
        driver_expect_end(op, AS_CLOUD_OP_OK, "");
        cr_expect(as_str_equal(given.op.started, cases[i].started), "%zu: %s", i, given.op.started);
        driver_end(&given);
    }
}

Test(azure_operation, only_resource_manager_is_followed)
{
    static const struct {
        const char *url;
        bool is_own;
    } cases[] = {
        {BASE "/a", true},
        {"HTTPS://Management.Azure.Com/a?b", true},
        {"https://management.azure.com:443/a", true},
        {"https://management.azure.com", true},
        {"http://management.azure.com/a", false},
        {"https://management.azure.com:444/a", false},
        {"https://management.azure.com:80/a", false},
        {"https://management.azure.com.evil.example/a", false},
        {"https://evil.management.azure.com/a", false},
        {"https://management.azure.com@evil.example/a", false},
        {"https://user@management.azure.com/a", false},
        {"https://management.azure.com\\@evil.example/a", false},
        {"https://management.azure.com#@evil.example/a", false},
        {"https://management.azure.com/a b", false},
        {"https://management.azure.com/a\r\nX: y", false},
        {"https://management.azure.com/\xC3\xA9", false},
        {"//management.azure.com/a", false},
        {"/subscriptions/x", false},
        {"ftp://management.azure.com/a", false},
        {"https:///a", false},
        {"", false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        char operation[256], message[512];
        struct driver_group given = {0};
        snprintf(operation, sizeof(operation), "operation %s", cases[i].url);
        struct as_cloud_op *op = begin_polling(&given, operation);
        if (cases[i].is_own) {
            expect_question(op, cases[i].url);
        } else {
            snprintf(message, sizeof(message),
                     "%s is no operation of " BASE ": has the provider's endpoint been changed?",
                     operation);
            cr_expect_eq(op->want, AS_CLOUD_OP_END, "%s", cases[i].url);
            cr_expect_eq(op->fault, AS_CLOUD_OP_CONFIGURATION);
            if (!strpbrk(message, "\r\n"))
                cr_expect_str_eq(op->message, message);
        }
        driver_end(&given);
    }
}

Test(azure_operation, next_page_elsewhere_is_refused)
{
    struct driver_group given = {0};
    name_pool(&given);
    driver_begin(&given, "azure", AS_GROUP_READ);
    struct as_cloud_op *op = &given.op.op;
    driver_answer(op, 200, "{\"properties\":{\"count\":1}}");
    driver_answer(op, 200, "{\"value\":[],\"nextLink\":\"https://evil.example/\"}");
    driver_expect_end(op, AS_CLOUD_OP_CONFIGURATION,
                      "list_machines: the next page is said to be at https://evil.example/, where "
                      "credentials are not sent");
    driver_end(&given);
}

/* ---- polling ---- */

Test(azure_operation, record_says_how_it_goes)
{
    static const struct {
        int status;
        const char *body;
        enum as_cloud_op_fault fault;
        const char *message;
        bool is_done;
    } cases[] = {
        {200, "{\"status\":\"InProgress\"}", AS_CLOUD_OP_OK, "", false},
        {200, "{\"status\":\"Creating\"}", AS_CLOUD_OP_OK, "", false},
        {200, "{\"status\":\"Succeeded\"}", AS_CLOUD_OP_OK, "", true},
        {200, "{\"status\":\"succeeded\"}", AS_CLOUD_OP_OK, "", true},
        {202, "", AS_CLOUD_OP_OK, "", false},
        {202, "{}", AS_CLOUD_OP_OK, "", false},
        {200, "", AS_CLOUD_OP_OK, "", true},
        {204, "", AS_CLOUD_OP_OK, "", true},
        {200, "{\"status\":\"Failed\"}", AS_CLOUD_OP_RETRY, "get_operation: Failed", true},
        {200, "{\"status\":\"Canceled\"}", AS_CLOUD_OP_BUSY, "get_operation: Canceled", true},
        {200, "{\"status\":\"Failed\",\"error\":{\"code\":\"AllocationFailed\",\"message\":\"m\"}}",
         AS_CLOUD_OP_CAPACITY, "get_operation: AllocationFailed: m", true},
        {200,
         "{\"status\":\"Canceled\",\"error\":{\"code\":\"OperationPreempted\",\"message\":\"m\"}}",
         AS_CLOUD_OP_BUSY, "get_operation: OperationPreempted: m", true},
        {200,
         "{\"status\":\"Failed\",\"error\":{\"code\":\"VMExtensionError\",\"message\":\"bad\"}}",
         AS_CLOUD_OP_RETRY, "get_operation: VMExtensionError: bad", true},
        {200, "{\"stat", AS_CLOUD_OP_RETRY,
         "get_operation: the answer is not JSON: premature end of input near '\"stat'", false},
        {500, "", AS_CLOUD_OP_RETRY, "get_operation: HTTP 500", false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct driver_group given = {0};
        struct as_cloud_op *op = begin_polling(&given, "operation " OPERATION);
        expect_question(op, OPERATION);
        driver_respond(op, (struct as_http_response){.status = cases[i].status,
                                                     .retry_after = "17",
                                                     .body = cases[i].body});
        driver_expect_end(op, cases[i].fault, cases[i].message);
        cr_expect_eq(given.op.is_done, cases[i].is_done, "%zu", i);
        cr_expect_not(op->is_ambiguous);
        cr_expect_eq(op->retry_after_us, 17 * AS_US_PER_S);
        driver_end(&given);
    }
}

Test(azure_operation, location_says_how_it_goes)
{
    static const struct {
        int status;
        bool is_done;
    } cases[] = {{202, false}, {200, true}, {204, true}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct driver_group given = {0};
        struct as_cloud_op *op = begin_polling(&given, "location " OPERATION);
        expect_question(op, OPERATION);
        driver_answer(op, cases[i].status, "");
        driver_expect_end(op, AS_CLOUD_OP_OK, "");
        cr_expect_eq(given.op.is_done, cases[i].is_done);
        driver_end(&given);
    }
}

Test(azure_operation, resource_says_how_it_goes)
{
    static const struct {
        const char *body;
        enum as_cloud_op_fault fault;
        const char *message;
        bool is_done;
    } cases[] = {
        {"{\"properties\":{\"provisioningState\":\"Updating\"}}", AS_CLOUD_OP_OK, "", false},
        {"{\"properties\":{\"provisioningState\":\"Succeeded\"}}", AS_CLOUD_OP_OK, "", true},
        {"{\"properties\":{\"provisioningState\":\"Failed\"}}", AS_CLOUD_OP_RETRY,
         "get_scale_set: Failed", true},
        {"{\"properties\":{}}", AS_CLOUD_OP_RETRY,
         "get_scale_set: the answer has no properties.provisioningState", false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct driver_group given = {0};
        struct as_cloud_op *op = begin_polling(&given, "resource");
        expect_question(op, SET_URL);
        driver_answer(op, 200, cases[i].body);
        driver_expect_end(op, cases[i].fault, cases[i].message);
        cr_expect_eq(given.op.is_done, cases[i].is_done, "%zu", i);
        driver_end(&given);
    }
}

/* Records are not kept for ever, and a role for the group alone may not reach them. */
Test(azure_operation, record_out_of_reach_leaves_the_resource)
{
    static const char *const operations[] = {"operation " OPERATION, "location " OPERATION};
    static const int statuses[] = {403, 404, 410};
    for (size_t i = 0; i < AS_ARRAY_SIZE(operations) * AS_ARRAY_SIZE(statuses); i++) {
        struct driver_group given = {0};
        struct as_cloud_op *op = begin_polling(&given, operations[i % 2]);
        driver_answer(op, statuses[i / 2], "{\"error\":{\"code\":\"X\",\"message\":\"m\"}}");
        expect_question(op, SET_URL);
        driver_answer(op, 200, "{\"properties\":{\"provisioningState\":\"Succeeded\"}}");
        driver_expect_end(op, AS_CLOUD_OP_OK, "");
        cr_expect(given.op.is_done);
        driver_end(&given);
    }
}

/* ---- errors ---- */

Test(azure_operation, errors_have_classes)
{
    static const struct {
        int status;
        const char *code, *text;
        enum as_cloud_op_fault fault;
    } cases[] = {
        {409, "AllocationFailed", "m", AS_CLOUD_OP_CAPACITY},
        {409, "ZonalAllocationFailed", "m", AS_CLOUD_OP_CAPACITY},
        {409, "OverconstrainedZonalAllocationRequest", "m", AS_CLOUD_OP_CAPACITY},
        {409, "SkuNotAvailable", "m", AS_CLOUD_OP_CAPACITY},
        {403, "QuotaExceeded", "m", AS_CLOUD_OP_CAPACITY},
        {400, "ErrCode_InsufficientVCPUQuota", "m", AS_CLOUD_OP_CAPACITY},
        {400, "InsufficientSubnetSize", "m", AS_CLOUD_OP_CAPACITY},
        {409, "OperationNotAllowed",
         "Operation could not be completed as it results in exceeding approved Total Regional "
         "Cores Quota.",
         AS_CLOUD_OP_CAPACITY},
        {409, "OperationNotAllowed",
         "Operation is not allowed: Another operation (Updating) is in progress, please wait",
         AS_CLOUD_OP_BUSY},
        {409, "OperationNotAllowed", "The scale set is deallocated", AS_CLOUD_OP_CONFIGURATION},
        {409, "OperationPreempted", "m", AS_CLOUD_OP_BUSY},
        {409, "Conflict", "m", AS_CLOUD_OP_BUSY},
        {409, "AnotherOperationInProgress", "m", AS_CLOUD_OP_BUSY},
        {429, "RetryableError", "m", AS_CLOUD_OP_THROTTLED},
        {409, "RetryableError", "m", AS_CLOUD_OP_BUSY},
        {409, "SomethingNew", "m", AS_CLOUD_OP_BUSY},
        {412, "PreconditionFailed", "m", AS_CLOUD_OP_BUSY},
        {409, "TooManyRequests", "m", AS_CLOUD_OP_THROTTLED},
        {401, "ExpiredAuthenticationToken", "m", AS_CLOUD_OP_UNAUTHORIZED},
        {401, "InvalidAuthenticationTokenTenant", "m", AS_CLOUD_OP_UNAUTHORIZED},
        {403, "AuthorizationFailed", "m", AS_CLOUD_OP_PERMISSION},
        {403, "LinkedAuthorizationFailed", "m", AS_CLOUD_OP_PERMISSION},
        {403, "RequestDisallowedByPolicy", "m", AS_CLOUD_OP_PERMISSION},
        {409, "ScopeLocked", "m", AS_CLOUD_OP_PERMISSION},
        {404, "ResourceNotFound", "m", AS_CLOUD_OP_GONE},
        {404, "ResourceGroupNotFound", "m", AS_CLOUD_OP_GONE},
        {404, "SubscriptionNotFound", "m", AS_CLOUD_OP_CONFIGURATION},
        {400, "InvalidParameter", "m", AS_CLOUD_OP_CONFIGURATION},
        {400, "NoRegisteredProviderFound", "m", AS_CLOUD_OP_CONFIGURATION},
        {400, "BadRequest", "m", AS_CLOUD_OP_CONFIGURATION},
        {500, "InternalExecutionError", "m", AS_CLOUD_OP_RETRY},
        {503, "ServerTimeout", "m", AS_CLOUD_OP_RETRY},
        {504, "GatewayTimeout", "m", AS_CLOUD_OP_RETRY},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        for (int is_bare = 0; is_bare < 2; is_bare++) { /* as AKS says it */
            char body[512];
            struct driver_group given = {0};
            name_set(&given);
            driver_begin(&given, "azure", AS_GROUP_READ);
            snprintf(
                body, sizeof(body), "%s{\"code\":\"%s\",\"message\":\"%s\",\"details\":null}%s",
                is_bare ? "" : "{\"error\":", cases[i].code, cases[i].text, is_bare ? "" : "}");
            driver_answer(&given.op.op, cases[i].status, body);
            cr_expect_eq(given.op.op.want, AS_CLOUD_OP_END);
            cr_expect_eq(given.op.op.fault, cases[i].fault, "%s: %d", cases[i].code,
                         given.op.op.fault);
            cr_expect_not_null(strstr(given.op.op.message, cases[i].text));
            driver_end(&given);
        }
    }
}

Test(azure_operation, details_say_more)
{
    static const struct {
        const char *details;
        enum as_cloud_op_fault fault;
        const char *message;
    } cases[] = {
        {"[{\"code\":\"Whatever\"},{\"code\":\"QuotaExceeded\",\"message\":\"no cores left\"}]",
         AS_CLOUD_OP_CAPACITY, "get_scale_set: QuotaExceeded: no cores left"},
        {"[{\"code\":\"Whatever\",\"message\":\"x\"}]", AS_CLOUD_OP_BUSY,
         "get_scale_set: Conflict: outer"},
        {"[7,null,[]]", AS_CLOUD_OP_BUSY, "get_scale_set: Conflict: outer"},
        {"\"text\"", AS_CLOUD_OP_BUSY, "get_scale_set: Conflict: outer"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        char body[512];
        struct driver_group given = {0};
        name_set(&given);
        driver_begin(&given, "azure", AS_GROUP_READ);
        snprintf(body, sizeof(body),
                 "{\"error\":{\"code\":\"Conflict\",\"message\":\"outer\",\"details\":%s}}",
                 cases[i].details);
        driver_answer(&given.op.op, 409, body);
        driver_expect_end(&given.op.op, cases[i].fault, cases[i].message);
        driver_end(&given);
    }
}

Test(azure_operation, error_without_a_body_has_its_status)
{
    static const char *const bodies[] = {"", "<html>", "{\"error\":\"x\"}", "[]", "7"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(bodies); i++) {
        struct driver_group given = {0};
        struct as_cloud_op *op = begin_change(&given);
        driver_answer(op, 503, bodies[i]);
        driver_expect_end(op, AS_CLOUD_OP_RETRY, "set_capacity: HTTP 503");
        cr_expect(op->is_ambiguous);
        driver_end(&given);
    }
}

/* The bucket is named, and when it has tokens again. */
Test(azure_operation, throttled_until_the_bucket_fills)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_change(&given);
    driver_respond(op, (struct as_http_response){
                           .status = 429,
                           .retry_after = "237",
                           .fields = "x-ms-ratelimit-remaining-resource\0"
                                     "Microsoft.Compute/PutVMScaleSet3Min;0\0"
                                     "x-ms-request-id\0req-9\0",
                           .body = "{\"error\":{\"code\":\"OperationNotAllowed\",\"message\":\"The "
                                   "server rejected the request because too many requests have "
                                   "been received for this subscription.\"}}"});
    driver_expect_end(
        op, AS_CLOUD_OP_THROTTLED,
        "set_capacity: too many requests (Microsoft.Compute/PutVMScaleSet3Min;0): "
        "The server rejected the request because too many requests have been received "
        "for this subscription.");
    cr_expect_eq(op->retry_after_us, 237 * AS_US_PER_S);
    cr_expect_str_eq(op->request_id, "req-9");
    cr_expect_not(op->is_ambiguous);
    driver_end(&given);
}

Test(azure_operation, unreachable_changes_nothing)
{
    struct driver_group given = {0};
    struct as_cloud_op *op = begin_change(&given);
    driver_break(op, AS_HTTP_UNREACHABLE, "connection refused");
    driver_expect_end(op, AS_CLOUD_OP_RETRY, "set_capacity: connection refused");
    cr_expect_not(op->is_ambiguous);
    driver_end(&given);
}

Test(azure_operation, huge_answer_is_an_error)
{
    struct driver_group given = {0};
    name_set(&given);
    driver_begin(&given, "azure", AS_GROUP_READ);
    driver_break(&given.op.op, AS_HTTP_TOO_LARGE, "more than 4194304 bytes");
    driver_expect_end(&given.op.op, AS_CLOUD_OP_CONFIGURATION,
                      "get_scale_set: more than 4194304 bytes");
    driver_end(&given);
}
