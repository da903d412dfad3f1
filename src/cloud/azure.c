/*
 * Azure: virtual machine scale sets, and agent pools of AKS if the group names a `cluster`. Both
 * are resources of Azure Resource Manager; their changes are operations that continue after the
 * answer: https://learn.microsoft.com/rest/api/azure/
 *
 * Not here: credentials (credentials_azure.c).
 */
#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/str.h>
#include <alertscaler/cloud/provider_group.h>

#include "provider_answer.h"
#include "providers.h"

struct azure_kind {   /* of a group */
    const char *what; /* in messages: "scale set" */
    void (*read)(struct as_cloud_op *op,
                 as_cloud_op_response_fn *then); /* reads the resource only */
    as_cloud_op_response_fn
        *on_response; /* its answer: fills the view, may ask more, then calls `then` */
    void (*grow)(struct as_cloud_op *op);
    void (*set_size)(struct as_cloud_op *op); /* sets `to`, for the view just read */
    void (*remove)(struct as_cloud_op *op);   /* the op's `instances`; then azure_on_removed */
};

struct azure_state { /* of an op; texts are its memory */
    const struct azure_kind *kind;
    const char *base;     /* of Resource Manager, without a slash at its end */
    const char *scope;    /* URL of the resource group */
    const char *resource; /* URL of the group, without a query */
    const char *version;  /* of the API */
    /* the kinds' own */
    const char *id;                /* as the resource itself says */
    as_cloud_op_response_fn *then; /* called when the view is complete */
    bool is_forced, is_tried_again;
};

/* Errors: {"error": {"code", "message", "details": [...]}}, or, from AKS, the same without the
 * outer member:
 * https://github.com/microsoft/api-guidelines/blob/vNext/azure/Guidelines.md#handling-errors
 *
 * A code in `details` says more than the outer code ("Conflict"). */

#define DETAILS_MAX 16 /* only this many are read */

static const struct {
    const char *code;    /* a glob */
    const char *message; /* a glob, in lower case; NULL: any */
    enum as_cloud_op_fault fault;
} azure_errors[] = {
    {"AllocationFailed", NULL, AS_CLOUD_OP_CAPACITY},
    {"ZonalAllocationFailed", NULL, AS_CLOUD_OP_CAPACITY},
    {"Overconstrained*", NULL, AS_CLOUD_OP_CAPACITY},
    {"SkuNotAvailable", NULL, AS_CLOUD_OP_CAPACITY},
    {"*Quota*", NULL, AS_CLOUD_OP_CAPACITY},
    {"SubnetIsFull", NULL, AS_CLOUD_OP_CAPACITY},
    {"InsufficientSubnetSize", NULL, AS_CLOUD_OP_CAPACITY},
    {"OperationNotAllowed", "*quota*", AS_CLOUD_OP_CAPACITY},
    {"OperationNotAllowed", "*in progress*", AS_CLOUD_OP_BUSY},
    {"OperationNotAllowed", NULL, AS_CLOUD_OP_CONFIGURATION},
    {"OperationPreempted", NULL, AS_CLOUD_OP_BUSY},
    {"*SupersededDueToAnotherOperation", NULL, AS_CLOUD_OP_BUSY},
    {"*InProgress", NULL, AS_CLOUD_OP_BUSY},
    {"RetryableError", NULL, AS_CLOUD_OP_BUSY},
    {"Conflict", NULL, AS_CLOUD_OP_BUSY},
    {"PreconditionFailed", NULL, AS_CLOUD_OP_BUSY},
    {"*ConditionNotMet", NULL, AS_CLOUD_OP_BUSY},
    {"E?agMismatch", NULL, AS_CLOUD_OP_BUSY},
    {"TooManyRequests*", NULL, AS_CLOUD_OP_THROTTLED},
    {"*RequestsThrottled", NULL, AS_CLOUD_OP_THROTTLED},
    {"*AuthenticationToken*", NULL, AS_CLOUD_OP_UNAUTHORIZED},
    {"AuthenticationFailed*", NULL, AS_CLOUD_OP_UNAUTHORIZED},
    {"*AuthorizationFailed", NULL, AS_CLOUD_OP_PERMISSION},
    {"RequestDisallowedByPolicy", NULL, AS_CLOUD_OP_PERMISSION},
    {"ScopeLocked", NULL, AS_CLOUD_OP_PERMISSION},
    {"SubscriptionNotFound", NULL, AS_CLOUD_OP_CONFIGURATION},
    {"ReadOnlyDisabledSubscription", NULL, AS_CLOUD_OP_CONFIGURATION},
    {"MissingSubscriptionRegistration", NULL, AS_CLOUD_OP_CONFIGURATION},
    {"NoRegisteredProviderFound", NULL, AS_CLOUD_OP_CONFIGURATION},
    {"Invalid*", NULL, AS_CLOUD_OP_CONFIGURATION},
    {"*NotFound", NULL, AS_CLOUD_OP_GONE},
    {"Internal*Error", NULL, AS_CLOUD_OP_RETRY},
    {"Server*", NULL, AS_CLOUD_OP_RETRY},
    {"*Timeout", NULL, AS_CLOUD_OP_RETRY},
    {"*TimedOut", NULL, AS_CLOUD_OP_RETRY},
};

/* as_str_glob on a text in lower case. */
static bool has_words(const char *glob, const char *message)
{
    char line[AS_CLOUD_OP_MESSAGE_SIZE * 2];
    as_str_copy_line(message, line, sizeof(line));
    for (char *c = line; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + ('a' - 'A') : *c);
    return as_str_glob(glob, line);
}

/* The class of an error's code and message; `absent` if unknown. */
static enum as_cloud_op_fault azure_judge(const char *code, const char *message,
                                          enum as_cloud_op_fault absent)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(azure_errors) && *code; i++) {
        if (as_str_glob(azure_errors[i].code, code) &&
            (!azure_errors[i].message || has_words(azure_errors[i].message, message)))
            return azure_errors[i].fault;
    }
    return absent;
}

/* Fails the op with the class and words of an `error`; with `absent` if it says nothing. */
static void azure_fail(struct as_cloud_op *op, const json_t *error, const char *what,
                       enum as_cloud_op_fault absent)
{
    const json_t *said = error;
    const char *code = answer_text(error, "code");
    enum as_cloud_op_fault fault = azure_judge(code, answer_text(error, "message"), absent);
    for (size_t i = 0; i < answer_count(error, "details") && i < DETAILS_MAX; i++) {
        const json_t *detail = answer_at(error, "details", i);
        const char *inner = answer_text(detail, "code");
        const enum as_cloud_op_fault known =
            azure_judge(inner, answer_text(detail, "message"), AS_CLOUD_OP_OK);
        if (known == AS_CLOUD_OP_OK)
            continue;
        fault = known;
        said = detail;
        code = inner;
        break;
    }
    as_cloud_op_fail(op, fault, "%s: %s%s%s", op->request.operation, *code ? code : what,
                     *code ? ": " : "", *code ? answer_text(said, "message") : "");
}

/* The error in an answer; NULL if it is not readable. */
static const json_t *peek_error(struct as_cloud_op *op)
{
    const json_t *document = answer_peek_json(op);
    const json_t *inner = answer_find(document, "error");
    return json_is_object(inner) ? inner : document;
}

/* The code of an error answer; "" if it has no code. Valid until the next answer. */
static const char *azure_peek_code(struct as_cloud_op *op)
{
    return answer_text(peek_error(op), "code");
}

/* The empty token bucket, if the answer names it. */
static const char *find_bucket(struct as_cloud_op *op)
{
    const char *bucket = as_http_response_find(op->answer, "x-ms-ratelimit-remaining-resource");
    return *bucket ? as_cloud_op_print(op, " (%s)", bucket) : "";
}

/* Whether the answer is good; if not, the op has failed with the error's class and words. */
static bool azure_is_good(struct as_cloud_op *op)
{
    if (as_cloud_op_is_good(op))
        return true;
    if (op->http_status == 0)
        return false;
    if (op->fault == AS_CLOUD_OP_THROTTLED) {
        as_cloud_op_fail(op, AS_CLOUD_OP_THROTTLED, "%s: too many requests%s: %s",
                         op->request.operation, find_bucket(op),
                         answer_text(peek_error(op), "message"));
        return false;
    }
    azure_fail(op, peek_error(op), as_cloud_op_print(op, "HTTP %d", op->http_status), op->fault);
    return false;
}

/* The document of a good answer; NULL after failing the op. */
static const json_t *azure_take_json(struct as_cloud_op *op)
{
    return azure_is_good(op) ? answer_json(op) : NULL;
}

/* Keeps an ETag as the view's version. False after failing the op. */
static bool azure_take_version(struct as_cloud_op *op, const char *etag)
{
    char *version = as_group_get(op)->view.version;
    if (strlen(etag) >= AS_VERSION_SIZE || strpbrk(etag, "\r\n")) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s: the answer's etag cannot be used",
                         op->request.operation);
        return false;
    }
    memcpy(version, etag, strlen(etag) + 1);
    return true;
}

/* The oldest versions with all that is needed (ETags; machines): sovereign clouds lag behind. */
#define COMPUTE_VERSION "2024-11-01"
#define AKS_VERSION     "2025-05-01"

static struct azure_state *azure_get_state(struct as_cloud_op *op)
{
    return as_group_get(op)->state;
}

/* ---- requests ---- */

/* Asks for a change with `body`, which is freed; conditional on `version` unless empty. */
static void azure_ask_change(struct as_cloud_op *op, const char *method, const char *url,
                             const char *version, json_t *body)
{
    as_cloud_op_ask(op, method, "%s", url);
    as_cloud_op_write_json(op, body);
    if (*version)
        as_cloud_op_header(op, "If-Match: %s", version);
}

/* {"`member`": ["..."]} with the instances to remove. */
static json_t *azure_make_list(const struct as_group_op *group, const char *member)
{
    json_t *list = json_array(), *document = json_object();
    for (size_t i = 0; i < group->instance_count; i++)
        json_array_append_new(list, json_string(group->instances[i]));
    json_object_set_new(document, member, list);
    return document;
}

/* ---- reading ---- */

/* Adds the first `size` bytes of a resource's id to the view's resources. Azure compares ids
 * without case. False after failing the op. */
static bool azure_add_backing(struct as_cloud_op *op, const char *id, size_t size)
{
    char *lower = as_arena_strdup(&op->arena, as_cloud_op_print(op, "%.*s", (int)size, id));
    for (char *c = lower; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return as_group_add_backing(as_group_get(op), "azure%s", lower);
}

static void read_then(struct as_cloud_op *op, as_cloud_op_response_fn *then)
{
    struct azure_state *state = azure_get_state(op);
    as_group_get(op)->view = (struct as_group_view){.min = -1, .max = -1};
    state->then = then;
    state->kind->read(op, state->kind->on_response);
}

static void azure_read_group(struct as_cloud_op *op)
{
    read_then(op, as_cloud_op_end);
}

/* Operations, which continue after the answer, and pages. An operation is polled by the URL in the
 * answer to the change, else by the state of the resource itself:
 * https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations
 *
 * An operation to be polled is one of
 *
 *   operation URL    its record (Azure-AsyncOperation)
 *   location URL     202 while it goes on (Location)
 *   resource         the resource's provisioningState
 *
 * A URL is only followed to Resource Manager itself: the bearer token is sent nowhere else. */

/* ---- URLs ---- */

static const char by_record[] = "operation ", by_location[] = "location ",
                  by_resource[] = "resource";

struct origin {
    const char *host;
    size_t host_size; /* without the scheme's default port */
    bool is_https;
};

static bool split_origin(const char *url, struct origin *origin_out)
{
    static const char https[] = "https://", http[] = "http://";
    const bool is_https = strncasecmp(url, https, strlen(https)) == 0;
    if (!is_https && strncasecmp(url, http, strlen(http)) != 0)
        return false;
    const char *host = url + (is_https ? strlen(https) : strlen(http));
    const char *port = is_https ? ":443" : ":80";
    size_t size = strcspn(host, "/?#\\@");
    if (size == 0 || strchr("#\\@", host[size] ? host[size] : '/'))
        return false;
    if (size > strlen(port) && memcmp(host + size - strlen(port), port, strlen(port)) == 0)
        size -= strlen(port);
    *origin_out = (struct origin){.host = host, .host_size = size, .is_https = is_https};
    return true;
}

/* Whether credentials may be sent to `url`: it has Resource Manager's scheme, host and port. */
static bool azure_is_own_url(const struct azure_state *state, const char *url)
{
    struct origin ours, theirs;
    for (const unsigned char *c = (const unsigned char *)url; *c; c++) {
        if (*c <= ' ' || *c >= 0x7F || *c == '\\')
            return false;
    }
    return split_origin(state->base, &ours) && split_origin(url, &theirs) &&
           ours.is_https == theirs.is_https && ours.host_size == theirs.host_size &&
           strncasecmp(ours.host, theirs.host, ours.host_size) == 0;
}

/* Asks for the next page, named in `document`. False if there is no next page; true after asking or
 * after failing the op. */
static bool azure_ask_next_page(struct as_cloud_op *op, const json_t *document,
                                const char *operation, as_cloud_op_response_fn *on_response)
{
    const char *next = answer_text(document, "nextLink");
    if (!*next)
        return false;
    if (!azure_is_own_url(azure_get_state(op), next)) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "%s: the next page is said to be at %s, where credentials are not sent",
                         operation, next);
        return true;
    }
    if (as_cloud_op_turn_page(op, next)) {
        as_cloud_op_ask(op, "GET", "%s", next);
        as_cloud_op_send_question(op, operation, on_response);
    }
    return true;
}

/* ---- how it goes ---- */

static bool has_state(const char *text, const char *word)
{
    const size_t size = strlen(word);
    for (; *text; text++) {
        if (strncasecmp(text, word, size) == 0)
            return true;
    }
    return false;
}

static bool is_canceled(const char *state)
{
    return strcasecmp(state, "Canceled") == 0 || strcasecmp(state, "Cancelled") == 0;
}

/* "Succeeded" and similar: no operation is running. */
static bool azure_is_settled(const char *provisioning_state)
{
    return !*provisioning_state || has_state(provisioning_state, "succeeded") ||
           has_state(provisioning_state, "fail") || is_canceled(provisioning_state);
}

/* ---- polling ---- */

/* After a good answer to a change: ends the op with the operation that the change started. */
static void azure_begin_operation(struct as_cloud_op *op)
{
    struct as_group_op *group = as_group_get(op);
    const struct azure_state *state = azure_get_state(op);
    const char *record = as_http_response_find(op->answer, "Azure-AsyncOperation");
    const char *location = as_http_response_find(op->answer, "Location");
    const char *now = answer_text(answer_peek_json(op), "properties.provisioningState");
    const bool is_accepted = op->http_status == 202;
    if (*record && azure_is_own_url(state, record))
        group->started = as_cloud_op_print(op, "%s%s", by_record, record);
    else if (is_accepted && *location && azure_is_own_url(state, location))
        group->started = as_cloud_op_print(op, "%s%s", by_location, location);
    else if (is_accepted || *record || !azure_is_settled(now))
        group->started = by_resource;
    as_cloud_op_end(op);
}

static void operation_judge_state(struct as_cloud_op *op, const char *state, const json_t *error)
{
    const bool has_failed = has_state(state, "fail");
    as_group_get(op)->is_done = has_failed || is_canceled(state) || has_state(state, "succeeded");
    if (has_failed)
        azure_fail(op, error, state, AS_CLOUD_OP_RETRY);
    else if (is_canceled(state))
        azure_fail(op, error, state, AS_CLOUD_OP_BUSY);
    else
        as_cloud_op_end(op);
}

static void operation_on_resource(struct as_cloud_op *op)
{
    const json_t *document = azure_take_json(op);
    if (!document)
        return;
    const char *state = answer_text(document, "properties.provisioningState");
    if (*state)
        operation_judge_state(op, state, NULL);
    else
        (void)answer_misses(op, "properties.provisioningState");
}

static void ask_resource(struct as_cloud_op *op)
{
    azure_get_state(op)->kind->read(op, operation_on_resource);
}

/* False after failing the op, or after asking for the resource instead: the operation has
 * expired, or our role has rights on the resource only. */
static bool operation_is_known(struct as_cloud_op *op)
{
    const int status = op->http_status;
    if (status == 403 || status == 404 || status == 410) {
        ask_resource(op);
        return false;
    }
    return azure_is_good(op);
}

static void operation_on_record(struct as_cloud_op *op)
{
    if (!operation_is_known(op))
        return;
    const bool is_empty = op->answer->body_size == 0;
    const json_t *document = is_empty ? NULL : answer_json(op);
    if (!document && !is_empty)
        return;
    const char *state = answer_text(document, "status");
    if (!*state)
        state = op->http_status == 202 ? "Running" : "Succeeded";
    operation_judge_state(op, state, answer_find(document, "error"));
}

static void operation_on_location(struct as_cloud_op *op)
{
    if (operation_is_known(op))
        operation_judge_state(op, op->http_status == 202 ? "Running" : "Succeeded", NULL);
}

/* the verb */
static void azure_poll(struct as_cloud_op *op)
{
    const char *operation = as_group_get(op)->operation;
    const bool is_record = as_str_starts_with(operation, by_record);
    const bool is_location = as_str_starts_with(operation, by_location);
    const char *url = operation + (is_record     ? strlen(by_record)
                                   : is_location ? strlen(by_location)
                                                 : 0);
    if (strcmp(operation, by_resource) == 0) {
        ask_resource(op);
    } else if ((is_record || is_location) && azure_is_own_url(azure_get_state(op), url)) {
        as_cloud_op_ask(op, "GET", "%s", url);
        as_cloud_op_send_question(op, "get_operation",
                                  is_record ? operation_on_record : operation_on_location);
    } else {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "%s is no operation of %s: has the provider's endpoint been changed?",
                         operation, azure_get_state(op)->base);
    }
}

/* ---- growing, removing ---- */

static void azure_grow(struct as_cloud_op *op)
{
    azure_get_state(op)->kind->grow(op);
}

static void azure_remove_named(struct as_cloud_op *op)
{
    azure_get_state(op)->kind->remove(op);
}

static void azure_remove_present(struct as_cloud_op *op)
{
    struct as_group_op *group = as_group_get(op);
    if (!as_group_keep_present(group))
        return;
    if (group->instance_count > 0)
        azure_remove_named(op);
    else
        as_cloud_op_end(op);
}

static void azure_remove_chosen(struct as_cloud_op *op)
{
    read_then(op, azure_remove_present);
}

/* Receives the answer to a removal. If instances were already gone, which fails the whole call,
 * reads the group and asks once more without them. If force is not allowed, asks again without
 * force. */
static void azure_on_removed(struct as_cloud_op *op)
{
    struct azure_state *state = azure_get_state(op);
    if (azure_is_good(op)) {
        azure_begin_operation(op);
        return;
    }
    const char *code = azure_peek_code(op);
    const bool may_be_gone = op->http_status == 404 || strcmp(code, "InvalidParameter") == 0;
    if (state->is_forced && strcmp(code, "OperationNotAllowed") == 0) {
        state->is_forced = false;
        azure_remove_named(op);
    } else if (may_be_gone && !state->is_tried_again) {
        state->is_tried_again = true;
        read_then(op, azure_remove_present);
    }
}

/* Virtual machine scale sets, uniform and flexible:
 * https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-sets
 *
 * The size is sku.capacity. Instances are removed by name (an instance id; in a flexible set the
 * name of the virtual machine), and the capacity falls with them. */

#define AUTOSCALE_VERSION "2022-10-01"

static void ask_set(struct as_cloud_op *op, as_cloud_op_response_fn *on_response)
{
    const struct azure_state *state = azure_get_state(op);
    as_cloud_op_ask(op, "GET", "%s?api-version=%s", state->resource, state->version);
    as_cloud_op_send_question(op, "get_scale_set", on_response);
}

/* ---- instances ---- */

/* The word behind `prefix` among the codes of an instance view; "" if absent. */
static const char *vmss_find_code(const json_t *machine, const char *prefix)
{
    static const char path[] = "properties.instanceView.statuses";
    for (size_t i = 0; i < answer_count(machine, path); i++) {
        const char *code = answer_text(answer_at(machine, path, i), "code");
        if (as_str_starts_with(code, prefix))
            return code + strlen(prefix);
    }
    return "";
}

static enum as_instance_state judge_state(const char *provisioning, const char *power)
{
    if (strcasecmp(provisioning, "Creating") == 0)
        return AS_INSTANCE_PENDING;
    if (strcasecmp(provisioning, "Deleting") == 0)
        return AS_INSTANCE_LEAVING;
    if (strcasecmp(provisioning, "Failed") == 0 && strcmp(power, "running") != 0)
        return AS_INSTANCE_FAILED;
    return AS_INSTANCE_RUNNING;
}

static bool vmss_is_unhealthy(const json_t *machine, const char *provisioning, const char *power)
{
    return (*power && strcmp(power, "running") != 0 && strcmp(power, "starting") != 0) ||
           strcasecmp(provisioning, "Failed") == 0 ||
           strcasecmp(answer_text(machine, "properties.instanceView.vmHealth.status.code"),
                      "HealthState/unhealthy") == 0;
}

/* Notes why a machine failed, if it was for lack of machines or quota. */
static void note_shortage(struct as_cloud_op *op, const json_t *machine)
{
    static const char path[] = "properties.instanceView.statuses",
                      failed[] = "ProvisioningState/failed/";
    struct as_group_view *view = &as_group_get(op)->view;
    for (size_t i = 0; i < answer_count(machine, path) && !view->shortage; i++) {
        const json_t *status = answer_at(machine, path, i);
        const char *code = answer_text(status, "code"), *message = answer_text(status, "message");
        if (strncasecmp(code, failed, strlen(failed)) == 0 &&
            azure_judge(code + strlen(failed), message, AS_CLOUD_OP_OK) == AS_CLOUD_OP_CAPACITY)
            view->shortage = as_cloud_op_print(op, "%s: %s", code + strlen(failed), message);
    }
}

/* False after failing the op. */
static bool vmss_add_machine(struct as_cloud_op *op, const json_t *machine)
{
    const char *provisioning = answer_text(machine, "properties.provisioningState");
    const char *power = vmss_find_code(machine, "PowerState/");
    const char *id = answer_text(machine, "instanceId"); /* flexible: absent, or the name */
    const struct as_instance instance = {
        .id = *id ? id : answer_text(machine, "name"),
        .provider_id = answer_text(machine, "id"),
        .zone = json_string_value(answer_at(machine, "zones", 0)),
        .state = judge_state(provisioning, power),
        .is_unhealthy = vmss_is_unhealthy(machine, provisioning, power),
        .is_protected =
            answer_is_true(machine, "properties.protectionPolicy.protectFromScaleIn") ||
            answer_is_true(machine, "properties.protectionPolicy.protectFromScaleSetActions"),
        .created = answer_time(machine, "properties.timeCreated"),
    };
    if (!*instance.id)
        return answer_misses(op, "value.name");
    if (instance.state == AS_INSTANCE_FAILED)
        note_shortage(op, machine);
    return as_group_add_instance(as_group_get(op), &instance);
}

static void ask_autoscale(struct as_cloud_op *op);

static void vmss_on_machines(struct as_cloud_op *op)
{
    const json_t *document = azure_take_json(op);
    if (!document)
        return;
    for (size_t i = 0; i < answer_count(document, "value"); i++) {
        if (!vmss_add_machine(op, answer_at(document, "value", i)))
            return;
    }
    if (!azure_ask_next_page(op, document, "list_instances", vmss_on_machines))
        ask_autoscale(op);
}

static void ask_machines(struct as_cloud_op *op, bool is_flexible)
{
    const struct azure_state *state = azure_get_state(op);
    as_cloud_op_begin_list(op);
    if (is_flexible) {
        const char *filter =
            as_cloud_op_print(op, "'virtualMachineScaleSet/id' eq '%s'", state->id);
        as_cloud_op_ask(op, "GET",
                        "%s/providers/Microsoft.Compute/virtualMachines?$filter=%s&"
                        "$expand=instanceView&api-version=%s",
                        state->scope, as_cloud_op_escaped(op, filter), state->version);
    } else {
        as_cloud_op_ask(op, "GET", "%s/virtualMachines?$expand=instanceView&api-version=%s",
                        state->resource, state->version);
    }
    as_cloud_op_send_question(op, "list_instances", vmss_on_machines);
}

/* ---- who else sets the size ---- */

/* Azure Monitor's autoscale settings in the set's own resource group. */
static void vmss_on_autoscale(struct as_cloud_op *op)
{
    struct as_group_view *view = &as_group_get(op)->view;
    const char *id = azure_get_state(op)->id;
    const json_t *document = azure_take_json(op);
    if (!document) {
        if (op->http_status == 409 &&
            strcmp(azure_peek_code(op), "MissingSubscriptionRegistration") == 0)
            azure_get_state(op)->then(op); /* autoscale was never used there */
        return;
    }
    for (size_t i = 0; i < answer_count(document, "value"); i++) {
        const json_t *setting = answer_at(document, "value", i);
        if (answer_is_true(setting, "properties.enabled") &&
            strcasecmp(answer_text(setting, "properties.targetResourceUri"), id) == 0)
            view->controller = as_cloud_op_print(op, "Azure Monitor's autoscale setting %s",
                                                 answer_text(setting, "name"));
    }
    if (!azure_ask_next_page(op, document, "list_autoscale_settings", vmss_on_autoscale))
        azure_get_state(op)->then(op);
}

static void ask_autoscale(struct as_cloud_op *op)
{
    const struct azure_state *state = azure_get_state(op);
    if (as_group_get(op)->view.controller) {
        state->then(op);
        return;
    }
    as_cloud_op_begin_list(op);
    as_cloud_op_ask(
        op, "GET",
        "%s/providers/Microsoft.Insights/autoscalesettings?api-version=" AUTOSCALE_VERSION,
        state->scope);
    as_cloud_op_send_question(op, "list_autoscale_settings", vmss_on_autoscale);
}

/* ---- reading ---- */

static void vmss_on_set(struct as_cloud_op *op)
{
    struct as_group_view *view = &as_group_get(op)->view;
    struct azure_state *state = azure_get_state(op);
    const json_t *set = azure_take_json(op);
    if (!set || !answer_take_size(op, set, "sku.capacity", &view->size))
        return;
    const char *provisioning = answer_text(set, "properties.provisioningState");
    const char *etag = answer_text(set, "etag"),
               *pool = answer_text(set, "tags.aks-managed-poolName");
    state->id = as_cloud_op_print(op, "%s", answer_text(set, "id"));
    if (!*state->id || strchr(state->id, '\'')) {
        (void)answer_misses(op, "id");
        return;
    }
    if (strcasecmp(provisioning, "Deleting") == 0) {
        as_cloud_op_fail(op, AS_CLOUD_OP_GONE, "the scale set is being deleted");
        return;
    }
    if (!azure_add_backing(op, state->id, strlen(state->id)) ||
        !azure_take_version(op, *etag ? etag : op->answer->etag))
        return;
    view->in_progress = !azure_is_settled(provisioning);
    if (*pool)
        view->controller = as_cloud_op_print(
            op, "AKS, whose agent pool \"%s\" it is (give `cluster`, and the pool as `name`)",
            pool);
    ask_machines(op, strcasecmp(answer_text(set, "properties.orchestrationMode"), "Flexible") == 0);
}

/* ---- the size ---- */

/* The set has changed: perhaps to the wanted size, by a request whose answer was lost. */
static void vmss_on_changed(struct as_cloud_op *op)
{
    struct as_group_op *group = as_group_get(op);
    int32_t size;
    const json_t *set = azure_take_json(op);
    if (!set || !answer_take_size(op, set, "sku.capacity", &size))
        return;
    if (size == group->to)
        azure_begin_operation(op);
    else
        as_cloud_op_fail(op, AS_CLOUD_OP_BUSY,
                         "the scale set has changed since it was looked at: its size is %d", size);
}

static void vmss_on_set_size(struct as_cloud_op *op)
{
    if (azure_is_good(op))
        azure_begin_operation(op);
    else if (op->http_status == 412)
        ask_set(op, vmss_on_changed);
}

static void patch_size(struct as_cloud_op *op, const char *version)
{
    const struct azure_state *state = azure_get_state(op);
    json_t *sku = json_object(), *body = json_object();
    json_object_set_new(sku, "capacity", json_integer(as_group_get(op)->to));
    json_object_set_new(body, "sku", sku);
    azure_ask_change(op, "PATCH",
                     as_cloud_op_print(op, "%s?api-version=%s", state->resource, state->version),
                     version, body);
    as_cloud_op_send(op, "set_capacity", vmss_on_set_size);
}

static void vmss_grow(struct as_cloud_op *op)
{
    const char *version = as_group_get(op)->version;
    patch_size(op, version ? version : "");
}

/* ---- removing ---- */

static void vmss_set_size(struct as_cloud_op *op)
{
    patch_size(op, as_group_get(op)->view.version);
}

static void vmss_remove_named(struct as_cloud_op *op)
{
    const struct azure_state *state = azure_get_state(op);
    azure_ask_change(op, "POST",
                     as_cloud_op_print(op, "%s/delete?api-version=%s%s", state->resource,
                                       state->version,
                                       state->is_forced ? "&forceDeletion=true" : ""),
                     "", azure_make_list(as_group_get(op), "instanceIds"));
    as_cloud_op_send(op, "delete_instances", azure_on_removed);
}

static const struct azure_kind azure_scale_set = {
    .what = "scale set",
    .read = ask_set,
    .on_response = vmss_on_set,
    .grow = vmss_grow,
    .set_size = vmss_set_size,
    .remove = vmss_remove_named,
};

/* Agent pools of AKS, on scale sets or on virtual machines of one size:
 * https://learn.microsoft.com/rest/api/aks/agent-pools
 *
 * The scale sets behind them are not touched: AKS does not support this. A pool is changed by
 * sending all of it back. Machines are removed by name, and the count falls with them. */

static const char manual[] = "properties.virtualMachinesProfile.scale.manual";

static void ask_pool(struct as_cloud_op *op, as_cloud_op_response_fn *on_response)
{
    const struct azure_state *state = azure_get_state(op);
    as_cloud_op_ask(op, "GET", "%s?api-version=%s", state->resource, state->version);
    as_cloud_op_send_question(op, "get_agent_pool", on_response);
}

/* ---- a pool ---- */

static bool has_machines(const json_t *pool)
{
    return strcasecmp(answer_text(pool, "properties.type"), "VirtualMachines") == 0;
}

/* False after failing the op. */
static bool aks_take_size(struct as_cloud_op *op, const json_t *pool, int32_t *size_out)
{
    if (!has_machines(pool))
        return answer_take_size(op, pool, "properties.count", size_out);
    if (answer_count(pool, manual) == 1)
        return answer_take_size(op, answer_at(pool, manual, 0), "count", size_out);
    as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                     "the agent pool has virtual machines of several sizes, or scales them itself: "
                     "only one manual scale profile can be set");
    return false;
}

static bool aks_has_autoscaler(const json_t *pool)
{
    return answer_is_true(pool, "properties.enableAutoScaling");
}

static const char *find_etag(const json_t *pool, const struct as_cloud_op *op)
{
    const char *etag = answer_text(pool, "properties.eTag");
    return *etag ? etag : op->answer->etag;
}

/* ---- reading ---- */

/* The scale set of a machine ".../virtualMachineScaleSets/NAME/virtualMachines/0". A pool without
 * machines has no name of it; the scale set names its pool (above). False after failing the
 * op. */
static bool add_scale_set(struct as_cloud_op *op, const char *id)
{
    static const char sets[] = "/virtualMachineScaleSets/";
    const char *set = strcasestr(id, sets);
    return !set ||
           azure_add_backing(op, id,
                             (size_t)(set - id) + strlen(sets) + strcspn(set + strlen(sets), "/"));
}

static bool aks_add_machine(struct as_cloud_op *op, const json_t *machine)
{
    const char *provisioning = answer_text(machine, "properties.provisioningState");
    struct as_instance instance = {
        .id = answer_text(machine, "name"),
        .provider_id = answer_text(machine, "properties.resourceId"),
        .zone = json_string_value(answer_at(machine, "zones", 0)),
        .state = AS_INSTANCE_RUNNING, /* most API versions tell no more */
    };
    if (strcasecmp(provisioning, "Creating") == 0)
        instance.state = AS_INSTANCE_PENDING;
    else if (strcasecmp(provisioning, "Deleting") == 0)
        instance.state = AS_INSTANCE_LEAVING;
    else if (strcasecmp(provisioning, "Failed") == 0)
        instance.state = AS_INSTANCE_FAILED;
    if (!*instance.id)
        return answer_misses(op, "value.name");
    return add_scale_set(op, instance.provider_id) &&
           as_group_add_instance(as_group_get(op), &instance);
}

static void aks_on_machines(struct as_cloud_op *op)
{
    const json_t *document = azure_take_json(op);
    if (!document)
        return;
    for (size_t i = 0; i < answer_count(document, "value"); i++) {
        if (!aks_add_machine(op, answer_at(document, "value", i)))
            return;
    }
    if (!azure_ask_next_page(op, document, "list_machines", aks_on_machines))
        azure_get_state(op)->then(op);
}

static void aks_on_pool(struct as_cloud_op *op)
{
    struct as_group_view *view = &as_group_get(op)->view;
    const struct azure_state *state = azure_get_state(op);
    const json_t *pool = azure_take_json(op);
    if (!pool || !aks_take_size(op, pool, &view->size))
        return;
    const char *provisioning = answer_text(pool, "properties.provisioningState");
    if (strcasecmp(provisioning, "Deleting") == 0) {
        as_cloud_op_fail(op, AS_CLOUD_OP_GONE, "the agent pool is being deleted");
        return;
    }
    const char *path = state->resource + strlen(state->base);
    if (!azure_add_backing(op, path, strlen(path)) || !azure_take_version(op, find_etag(pool, op)))
        return;
    view->in_progress = !azure_is_settled(provisioning);
    if (aks_has_autoscaler(pool)) {
        view->controller = "the cluster autoscaler of AKS (enableAutoScaling)";
        view->min = answer_size(pool, "properties.minCount", -1);
        view->max = answer_size(pool, "properties.maxCount", -1);
    } else if (strcasecmp(answer_text(pool, "properties.mode"), "System") == 0) {
        view->min = 1; /* a system pool cannot be empty */
    }
    as_cloud_op_begin_list(op);
    as_cloud_op_ask(op, "GET", "%s/machines?api-version=%s", state->resource, state->version);
    as_cloud_op_send_question(op, "list_machines", aks_on_machines);
}

/* ---- the size ---- */

static void aks_on_set_size(struct as_cloud_op *op)
{
    if (azure_is_good(op))
        azure_begin_operation(op);
}

/* All that a pool says about itself, without the read-only members. */
static json_t *make_pool(const json_t *pool, int32_t size)
{
    static const char *const own[] = {
        "eTag",   "provisioningState",        "currentOrchestratorVersion", "nodeImageVersion",
        "status", "virtualMachineNodesStatus"};
    json_t *properties = json_deep_copy(answer_find(pool, "properties")), *body = json_object();
    for (size_t i = 0; i < AS_ARRAY_SIZE(own); i++)
        json_object_del(properties, own[i]);
    json_object_set_new(body, "properties", properties);
    if (has_machines(pool))
        json_object_set_new((json_t *)answer_at(body, manual, 0), "count", json_integer(size));
    else
        json_object_set_new(properties, "count", json_integer(size));
    return body;
}

static bool aks_is_unchanged(struct as_cloud_op *op, const json_t *pool, int32_t size)
{
    const struct as_group_op *group = as_group_get(op);
    const char *etag = find_etag(pool, op);
    if (aks_has_autoscaler(pool))
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "the cluster autoscaler of AKS sets the agent pool's size: turn one off");
    else if (!as_str_is_empty(group->version) && strcmp(group->version, etag) != 0)
        as_cloud_op_fail(op, AS_CLOUD_OP_BUSY,
                         "the agent pool has changed since it was looked at: its size is %d", size);
    else
        return true;
    return false;
}

static void aks_on_pool_to_set(struct as_cloud_op *op)
{
    struct as_group_op *group = as_group_get(op);
    const struct azure_state *state = azure_get_state(op);
    int32_t size;
    const json_t *pool = azure_take_json(op);
    if (!pool || !aks_take_size(op, pool, &size))
        return;
    if (size == group->to) { /* perhaps by a request whose answer was lost */
        azure_begin_operation(op);
        return;
    }
    if (!aks_is_unchanged(op, pool, size) || !azure_take_version(op, find_etag(pool, op)))
        return;
    azure_ask_change(op, "PUT",
                     as_cloud_op_print(op, "%s?api-version=%s", state->resource, state->version),
                     group->view.version, make_pool(pool, group->to));
    as_cloud_op_send(op, "set_agent_pool", aks_on_set_size);
}

/* ---- removing ---- */

static void aks_set_size(struct as_cloud_op *op)
{
    ask_pool(op, aks_on_pool_to_set);
}

static void remove_named(struct as_cloud_op *op)
{
    const struct azure_state *state = azure_get_state(op);
    azure_ask_change(
        op, "POST",
        as_cloud_op_print(op, "%s/deleteMachines?api-version=%s", state->resource, state->version),
        "", azure_make_list(as_group_get(op), "machineNames"));
    as_cloud_op_send(op, "delete_machines", azure_on_removed);
}

static const struct azure_kind azure_agent_pool = {
    .what = "agent pool",
    .read = ask_pool,
    .on_response = aks_on_pool,
    .grow = aks_set_size,
    .set_size = aks_set_size,
    .remove = remove_named,
};

/* ---- taking back ---- */

/* Removes failed instances by name; lowers the size if there are none. */
static void take_back_seen(struct as_cloud_op *op)
{
    struct as_group_op *group = as_group_get(op);
    const struct azure_kind *kind = azure_get_state(op)->kind;
    const int32_t coming = as_group_count_coming(&group->view);
    as_group_choose_missing(group, group->view.size - group->to, false);
    if (group->view.size <= group->to)
        as_cloud_op_end(op);
    else if (coming > group->to)
        as_cloud_op_fail(
            op, AS_CLOUD_OP_BUSY,
            "the %s has %d instances by now: Azure would choose which leave, for a size "
            "of %d",
            kind->what, coming, group->to);
    else if (group->instance_count > 0)
        azure_remove_named(op);
    else
        kind->set_size(op);
}

static void azure_take_back(struct as_cloud_op *op)
{
    read_then(op, take_back_seen);
}

/* ---- which group ---- */

/* A target's key as a part of a URL's path. NULL after failing the op. */
static const char *azure_take_name(struct as_cloud_op *op, const char *key, const char *name)
{
    const bool is_dots = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
    if (*name && !is_dots && !strpbrk(name, "/\\'\"?#%&<>"))
        return as_cloud_op_escaped(op, name);
    as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                     "`%s` is \"%s\", which Azure allows for no name", key, name);
    return NULL;
}

/* False after failing the op. */
static bool azure_locate(struct as_group_op *group, struct azure_state *state)
{
    struct as_cloud_op *op = &group->op;
    const char *given_subscription = as_account_get(group->account, "subscription");
    const char *subscription =
        azure_take_name(op, "subscription", given_subscription ? given_subscription : "");
    const char *resource_group =
        subscription ? azure_take_name(op, "resource_group",
                                       as_target_ref_get(group->group, "resource_group"))
                     : NULL;
    const char *name = resource_group
                           ? azure_take_name(op, "name", as_target_ref_get(group->group, "name"))
                           : NULL;
    if (!name)
        return false;
    state->scope = as_cloud_op_print(op, "%s/subscriptions/%s/resourceGroups/%s", state->base,
                                     subscription, resource_group);
    if (state->kind == &azure_scale_set) {
        state->resource = as_cloud_op_print(
            op, "%s/providers/Microsoft.Compute/virtualMachineScaleSets/%s", state->scope, name);
        return true;
    }
    const char *cluster =
        azure_take_name(op, "cluster", as_target_ref_get(group->group, "cluster"));
    if (cluster)
        state->resource = as_cloud_op_print(
            op, "%s/providers/Microsoft.ContainerService/managedClusters/%s/agentPools/%s",
            state->scope, cluster, name);
    return cluster != NULL;
}

static void azure_begin(struct as_group_op *group)
{
    static void (*const verbs[AS_GROUP_VERB_COUNT])(struct as_cloud_op *) = {
        [AS_GROUP_READ] = azure_read_group,
        [AS_GROUP_GROW] = azure_grow,
        [AS_GROUP_REMOVE] = azure_remove_chosen,
        [AS_GROUP_TAKE_BACK] = azure_take_back,
        [AS_GROUP_POLL] = azure_poll,
    };
    struct as_cloud_op *op = &group->op;
    struct azure_state *state = as_arena_alloc(&op->arena, 1, sizeof(*state));
    const bool is_pool = *as_target_ref_get(group->group, "cluster");
    const char *version =
        as_account_get(group->account, is_pool ? "aks_api_version" : "compute_api_version");
    group->state = state;
    *state = (struct azure_state){
        .kind = is_pool ? &azure_agent_pool : &azure_scale_set,
        .base = azure_make_endpoint(op, group->account),
        .version = as_cloud_op_escaped(op, version   ? version
                                           : is_pool ? AKS_VERSION
                                                     : COMPUTE_VERSION),
        .is_forced =
            !is_pool && strcmp(as_target_ref_get(group->group, "force_deletion"), "true") == 0,
    };
    if (state->base && azure_locate(group, state))
        verbs[group->verb](op);
}

const struct as_group_provider provider_azure = {
    .type = "azure",
    .files = (const char *const[]){"$AZURE_FEDERATED_TOKEN_FILE", NULL},
    .credentials = azure_credentials,
    .sign = as_sign_bearer,
    .begin = azure_begin,
};
