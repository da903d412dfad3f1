/*
 * Requests for approvals.
 */
#include "api_names.h"
#include "api_private.h"

#define APPROVALS_DEFAULT 1000

static void list_approval(void *context, const struct as_approval_view *view)
{
    struct api_list *list = context;
    struct api_request *request = list->request;
    struct as_json_writer *json = &request->json;
    const struct as_approval_state *state = &view->state;
    if (!api_list_begin_item(list))
        return;
    as_json_begin_object(json);
    as_json_write_member(json, "id", state->id);
    as_json_write_member(json, "answer", as_approval_answer_get_word(state->answer));
    as_json_write_member(json, "target", view->target);
    as_json_write_member(json, "target_name", view->name);
    as_json_write_member(json, "rule", state->rule);
    as_json_write_member(json, "incident", state->incident);
    as_json_write_member(json, "direction",
                         as_direction_get_word(state->is_up ? AS_DIRECTION_UP : AS_DIRECTION_DOWN));
    as_json_write_member_i64(json, "from", state->from);
    as_json_write_member_i64(json, "to", state->to);
    if (*view->unit)
        as_json_write_member(json, "unit", view->unit);
    as_json_write_member(json, "decision", state->decision);
    api_write_time(request, "asked", state->asked.wall);
    api_write_moment(request, "answered", state->answered);
    api_write_time(request, "until", view->until);
    as_json_write_member(json, "who", api_show_credential(request, state->who));
    as_json_end_object(json);
    api_list_end_item(list);
}

void api_answer_approvals(struct api_request *request)
{
    const struct as_view *view = &request->view;
    struct as_error error = AS_ERROR_INIT;
    struct api_list list;
    size_t limit;
    if (api_parameter_get_limit(request, APPROVALS_DEFAULT, &limit, &error) != 0) {
        as_reply_error(request->exchange, 400, NULL, "%s", error.text);
        return;
    }
    api_list_begin(&list, request, limit);
    if (view->engine)
        as_engine_visit_approvals(view->engine, view->mono, view->wall, list_approval, &list);
    api_list_end(&list);
}
