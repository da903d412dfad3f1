/*
 * Azure's operations, which continue after the answer, and its pages. An operation is polled by the
 * URL in the answer to the change, else by the state of the resource itself:
 * https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations
 *
 * An operation to be polled is one of
 *
 *   operation URL    its record (Azure-AsyncOperation)
 *   location URL     202 while it goes on (Location)
 *   resource         the resource's provisioningState
 *
 * A URL is only followed to Resource Manager itself: the bearer token is sent nowhere else.
 */
#include "azure.h"

#include <string.h>
#include <strings.h>

#include <alertscaler/base/str.h>

#include "provider_answer.h"

static const char by_record[] = "operation ", by_location[] = "location ",
                  by_resource[] = "resource";

/* ---- URLs ---- */

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

bool azure_is_own_url(const struct azure_state *state, const char *url)
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

bool azure_ask_next_page(struct as_talk *talk, const json_t *document, const char *operation,
                         as_talk_hear_fn *hear)
{
    const char *next = answer_text(document, "nextLink");
    if (!*next)
        return false;
    if (!azure_is_own_url(azure_get_state(talk), next)) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION,
                     "%s: the next page is said to be at %s, where credentials are not sent",
                     operation, next);
        return true;
    }
    if (as_talk_turn_page(talk, next)) {
        as_talk_ask(talk, "GET", "%s", next);
        as_talk_send_question(talk, operation, hear);
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

bool azure_is_settled(const char *provisioning_state)
{
    return !*provisioning_state || has_state(provisioning_state, "succeeded") ||
           has_state(provisioning_state, "fail") || is_canceled(provisioning_state);
}

void azure_begin_operation(struct as_talk *talk)
{
    struct as_group_talk *group = as_group_get(talk);
    const struct azure_state *state = azure_get_state(talk);
    const char *record = as_http_response_find(talk->answer, "Azure-AsyncOperation");
    const char *location = as_http_response_find(talk->answer, "Location");
    const char *now = answer_text(answer_peek_json(talk), "properties.provisioningState");
    const bool is_accepted = talk->http_status == 202;
    if (*record && azure_is_own_url(state, record))
        group->started = as_talk_print(talk, "%s%s", by_record, record);
    else if (is_accepted && *location && azure_is_own_url(state, location))
        group->started = as_talk_print(talk, "%s%s", by_location, location);
    else if (is_accepted || *record || !azure_is_settled(now))
        group->started = by_resource;
    as_talk_end(talk);
}

/* ---- polling ---- */

static void judge_state(struct as_talk *talk, const char *state, const json_t *error)
{
    const bool has_failed = has_state(state, "fail");
    as_group_get(talk)->is_done = has_failed || is_canceled(state) || has_state(state, "succeeded");
    if (has_failed)
        azure_fail(talk, error, state, AS_TALK_RETRY);
    else if (is_canceled(state))
        azure_fail(talk, error, state, AS_TALK_BUSY);
    else
        as_talk_end(talk);
}

static void hear_resource(struct as_talk *talk)
{
    const json_t *document = azure_take_json(talk);
    if (!document)
        return;
    const char *state = answer_text(document, "properties.provisioningState");
    if (*state)
        judge_state(talk, state, NULL);
    else
        (void)answer_misses(talk, "properties.provisioningState");
}

static void ask_resource(struct as_talk *talk)
{
    azure_get_state(talk)->kind->read(talk, hear_resource);
}

/* False after failing the talk, or after asking for the resource instead: the operation has
 * expired, or our role has rights on the resource only. */
static bool is_known(struct as_talk *talk)
{
    const int status = talk->http_status;
    if (status == 403 || status == 404 || status == 410) {
        ask_resource(talk);
        return false;
    }
    return azure_is_good(talk);
}

static void hear_record(struct as_talk *talk)
{
    if (!is_known(talk))
        return;
    const bool is_empty = talk->answer->body_size == 0;
    const json_t *document = is_empty ? NULL : answer_json(talk);
    if (!document && !is_empty)
        return;
    const char *state = answer_text(document, "status");
    if (!*state)
        state = talk->http_status == 202 ? "Running" : "Succeeded";
    judge_state(talk, state, answer_find(document, "error"));
}

static void hear_location(struct as_talk *talk)
{
    if (is_known(talk))
        judge_state(talk, talk->http_status == 202 ? "Running" : "Succeeded", NULL);
}

void azure_poll(struct as_talk *talk)
{
    const char *operation = as_group_get(talk)->operation;
    const bool is_record = as_str_starts_with(operation, by_record);
    const bool is_location = as_str_starts_with(operation, by_location);
    const char *url = operation + (is_record     ? strlen(by_record)
                                   : is_location ? strlen(by_location)
                                                 : 0);
    if (strcmp(operation, by_resource) == 0) {
        ask_resource(talk);
    } else if ((is_record || is_location) && azure_is_own_url(azure_get_state(talk), url)) {
        as_talk_ask(talk, "GET", "%s", url);
        as_talk_send_question(talk, "get_operation", is_record ? hear_record : hear_location);
    } else {
        as_talk_fail(talk, AS_TALK_CONFIGURATION,
                     "%s is no operation of %s: has the provider's endpoint been changed?",
                     operation, azure_get_state(talk)->base);
    }
}
