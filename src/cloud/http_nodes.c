/*
 * HTTP node groups with nodes: see the header. A verb is one request; a change has no operation to
 * follow but the group's own `in_progress`.
 */
#include "http_nodes.h"

#include <stdio.h>
#include <string.h>

#include <alertscaler/base/str.h>
#include <alertscaler/cloud/http_group_message.h>

/* ---- answers ---- */

static bool is_good(struct as_talk *talk)
{
    char message[AS_MESSAGE_SIZE];
    if (as_talk_is_good(talk))
        return true;
    const bool is_ambiguous = talk->is_ambiguous;
    if (talk->http_status) {
        as_http_group_decode_message(talk->answer->body, talk->answer->body_size, message);
        if (*message)
            as_talk_fail(talk, talk->fault, "%s: HTTP %d: %s", talk->request.operation,
                         talk->http_status, message);
        talk->is_ambiguous = is_ambiguous;
    }
    return false;
}

static void take_group(struct as_talk *talk, const struct as_http_group *group)
{
    struct as_group_view *view = &as_group_get(talk)->view;
    view->size = group->size;
    view->min = group->min;
    view->max = group->max;
    view->in_progress = group->in_progress;
    view->node_label = as_group_get(talk)->select;
    view->knows_nodes = true;
    if (!group->removes_by_name)
        view->chooses = "the service does not say `removes_by_name`: it may remove another node "
                        "than the chosen one";
    memcpy(view->version, group->etag, sizeof(view->version));
}

/* The entity tag of the body, else of the header. */
static void hear_group(struct as_talk *talk)
{
    const struct as_http_response *answer = talk->answer;
    struct as_error error = AS_ERROR_INIT;
    struct as_http_group group;
    if (!is_good(talk))
        return;
    const int status =
        as_http_group_decode_answer(answer->body, answer->body_size, answer->etag, &group, &error);
    if (status) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s", error.text);
        return;
    }
    take_group(talk, &group);
    as_talk_end(talk);
}

static void hear_changed(struct as_talk *talk)
{
    if (is_good(talk))
        as_talk_end(talk);
}

/* ---- requests ---- */

static void read_group(struct as_talk *talk, const char *url)
{
    as_talk_ask(talk, "GET", "%s", url);
    as_talk_header(talk, "Accept: application/json");
    as_talk_send(talk, "get_size", hear_group);
}

static void change_group(struct as_talk *talk, const char *url)
{
    const struct as_group_talk *group = as_group_get(talk);
    as_talk_ask(talk, "PUT", "%s", url);
    as_talk_header(talk, "Accept: application/json");
    as_talk_header(talk, "Content-Type: application/json");
    if (!as_str_is_empty(group->version))
        as_talk_header(talk, "If-Match: %s", group->version);
    if (group->verb == AS_GROUP_GROW)
        as_http_group_encode_change(group->to, group->from, &talk->request.body);
    else
        as_http_group_encode_removal(group->to, group->from, group->instances,
                                     group->verb == AS_GROUP_REMOVE ? group->instance_count : 0,
                                     &talk->request.body);
    as_talk_send(talk, "set_size", hear_changed);
}

static void begin(struct as_group_talk *group)
{
    const char *url = as_target_ref_get(group->group, "url");
    if (group->verb == AS_GROUP_POLL) {
        group->is_done = true;
        as_talk_end(&group->talk);
    } else if (as_str_is_empty(url)) {
        as_talk_fail(&group->talk, AS_TALK_CONFIGURATION, "the target has no url");
    } else if (group->verb == AS_GROUP_READ) {
        read_group(&group->talk, url);
    } else {
        change_group(&group->talk, url);
    }
}

const struct as_group_provider as_http_nodes = {.kind = {.type = "http"}, .begin = begin};
