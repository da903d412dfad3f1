/*
 * Names of credentials in answers: see the header. The sources of the kill switch are no
 * credentials.
 */
#include "api_names.h"

#include <string.h>

#include <alertscaler/base/str.h>
#include <alertscaler/model/forbidden.h>
#include <alertscaler/model/scope.h>

#define OTHER       "another credential"
#define KILL_SWITCH "kill switch " /* "file" or "annotation": no credential */

const char *api_show_credential(const struct api_request *request, const char *name)
{
    const struct as_view *view = &request->view;
    const bool is_shown = *name == '\0' || strcmp(name, request->who) == 0 ||
                          as_str_starts_with(name, KILL_SWITCH) ||
                          as_scope_is_whole(view->scopes, view->scope_count, request->who);
    return is_shown ? name : OTHER;
}

static void hide_member(const struct api_request *request, json_t *object, const char *key)
{
    const char *name = json_string_value(json_object_get(object, key));
    const char *shown = name ? api_show_credential(request, name) : NULL;
    if (shown != name)
        json_object_set_new(object, key, json_string(shown));
}

/* "who": of pauses, commands and approvals. A pause of one direction holds by the name of its
 * credential. */
void api_hide_credentials(const struct api_request *request, json_t *record)
{
    const char *key;
    json_t *value;
    size_t i;
    if (as_str_equal(json_string_value(json_object_get(record, "by")),
                     as_holder_get_word(AS_HOLDER_PAUSE)))
        hide_member(request, record, "name");
    hide_member(request, record, "who");
    json_object_foreach(record, key, value) api_hide_credentials(request, value);
    json_array_foreach(record, i, value) api_hide_credentials(request, value);
}
