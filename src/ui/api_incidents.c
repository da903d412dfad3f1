/*
 * Open incidents.
 */
#include <stdio.h>
#include <string.h>

#include "api_private.h"

#define INCIDENTS_DEFAULT 1000
#define FINGERPRINT_SIZE  17

static void write_labels(struct as_json_writer *json, const char *key,
                         const struct as_labels *labels)
{
    as_json_write_key(json, key);
    as_json_begin_object(json);
    for (uint32_t i = 0; labels && i < labels->count; i++)
        as_json_write_member(json, labels->items[i].name, labels->items[i].value);
    as_json_end_object(json);
}

static void write_targets(struct api_request *request, const struct as_incident_target *targets,
                          size_t count)
{
    struct as_json_writer *json = &request->json;
    as_json_write_key(json, "targets");
    as_json_begin_array(json);
    for (size_t i = 0; i < count; i++) {
        as_json_begin_object(json);
        as_json_write_member(json, "target", targets[i].target);
        as_json_write_member(json, "rule", targets[i].rule);
        api_write_size(request, "replicas", targets[i].has_replicas, targets[i].replicas);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

/* First who opened it, then who else reported it. */
static void write_credentials(struct api_request *request, const struct as_incident_state *state)
{
    const struct as_view *view = &request->view;
    const bool sees_all = as_scope_is_whole(view->scopes, view->scope_count, request->who);
    as_json_write_key(&request->json, "credentials");
    as_json_begin_array(&request->json);
    for (size_t i = 0; i < state->credential_count; i++) {
        const char *name = state->credentials[i];
        if (sees_all || name[0] == '\0' || strcmp(name, request->who) == 0)
            as_json_write_string(&request->json, name);
    }
    as_json_end_array(&request->json);
}

static void list_incident(void *context, const struct as_incident_state *state,
                          const struct as_incident_target *targets, size_t target_count)
{
    struct api_list *list = context;
    struct api_request *request = list->request;
    struct as_json_writer *json = &request->json;
    char fingerprint[FINGERPRINT_SIZE], digest[AS_DIGEST_TEXT_SIZE];
    if (!state->is_open || !api_list_begin_item(list))
        return;
    (void)snprintf(fingerprint, sizeof(fingerprint), "%016llx",
                   (unsigned long long)state->fingerprint);
    as_json_begin_object(json);
    as_digest_print(&state->key.digest, digest);
    as_json_write_member(json, "digest", digest);
    as_json_write_member(json, "fingerprint", fingerprint);
    api_write_time(request, "startsAt", state->starts_at);
    api_write_moment(request, "opened", state->opened);
    api_write_moment(request, "seen", state->seen);
    as_json_write_key(json, "receivers");
    as_json_begin_array(json);
    for (size_t i = 0; i < state->receiver_count; i++)
        as_json_write_string(json, state->receivers[i]);
    as_json_end_array(json);
    write_credentials(request, state);
    as_json_write_member_bool(json, "silenced", as_moment_is_set(state->silenced));
    write_labels(json, "labels", state->labels);
    write_labels(json, "annotations", state->annotations);
    write_targets(request, targets, target_count);
    as_json_end_object(json);
    api_list_end_item(list);
}

void api_answer_incidents(struct api_request *request)
{
    struct as_error error = AS_ERROR_INIT;
    struct api_list list;
    size_t limit;
    if (api_parameter_get_limit(request, INCIDENTS_DEFAULT, &limit, &error) != 0) {
        as_reply_error(request->exchange, 400, NULL, "%s", error.text);
        return;
    }
    api_list_begin(&list, request, limit);
    if (request->view.engine)
        as_engine_visit_incidents(request->view.engine, list_incident, &list);
    api_list_end(&list);
}
