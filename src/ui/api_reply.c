/*
 * Answers in the form of Prometheus' API: {"status":"success","data":...,"warnings":[...]}. Errors
 * are in auth/reply.h.
 */
#include "api_names.h"
#include "api_private.h"

#define KEPT_BODY ((size_t)1024 * 1024)
#define TAIL_MAX  ((size_t)4096) /* reserved for the end of the answer after a truncated list */
#define JSON_TYPE "application/json"

void api_reply_body(struct api_request *request, int status, const char *content_type,
                    const char *headers)
{
    struct as_buf *body = &request->api->body;
    if (as_buf_check(body) != 0)
        as_reply_error(request->exchange, 500, NULL, "the answer would be above %zu bytes",
                       API_BODY_MAX);
    else
        as_http_exchange_reply(request->exchange, &(struct as_http_answer){
                                                      .status = status,
                                                      .content_type = content_type,
                                                      .headers = headers,
                                                      .body = body->data,
                                                      .body_size = body->size,
                                                  });
    if (body->capacity > KEPT_BODY)
        as_buf_deinit(body);
    as_buf_clear(body);
    body->max = API_BODY_MAX;
}

void api_begin(struct api_request *request)
{
    struct as_json_writer *json = &request->json;
    as_json_init(json, &request->api->body, AS_JSON_ANY_ORDER);
    as_json_begin_object(json);
    as_json_write_member(json, "status", "success");
    as_json_write_key(json, "data");
}

void api_end(struct api_request *request)
{
    as_json_end_object(&request->json);
    as_buf_append_char(&request->api->body, '\n');
    api_reply_body(request, 200, JSON_TYPE, AS_REPLY_NO_STORE);
}

void api_list_begin(struct api_list *list, struct api_request *request, size_t limit)
{
    *list = (struct api_list){.request = request, .limit = limit};
    api_begin(request);
    as_json_begin_array(&request->json);
}

bool api_list_begin_item(struct api_list *list)
{
    list->is_cut = list->is_cut || list->count == list->limit;
    if (list->is_cut)
        return false;
    list->count++;
    list->before = list->request->json;
    list->size_before = list->request->api->body.size;
    return true;
}

void api_list_end_item(struct api_list *list)
{
    struct as_buf *body = &list->request->api->body;
    if (as_buf_check(body) == 0)
        return;
    list->is_cut = true;
    list->request->json = list->before;
    body->size = list->size_before;
    body->failed = false;
}

void api_list_end(struct api_list *list)
{
    struct as_json_writer *json = &list->request->json;
    list->request->api->body.max = API_BODY_MAX + TAIL_MAX;
    as_json_end_array(json);
    if (list->is_cut) {
        as_json_write_key(json, "warnings");
        as_json_begin_array(json);
        as_json_write_string(json, "results truncated due to limit");
        as_json_end_array(json);
    }
    api_end(list->request);
}

void api_write_time(struct api_request *request, const char *key, as_wall_time time)
{
    char text[AS_RFC3339_SIZE];
    as_wall_time_print(time, text);
    as_json_write_member(&request->json, key, text);
}

void api_write_text(struct api_request *request, const char *key, const char *text)
{
    if (text) {
        as_json_write_member(&request->json, key, text);
        return;
    }
    as_json_write_key(&request->json, key);
    as_json_write_null(&request->json);
}

void api_write_moment(struct api_request *request, const char *key, struct as_moment moment)
{
    if (as_moment_is_set(moment))
        api_write_time(request, key, moment.wall);
    else
        api_write_text(request, key, NULL);
}

void api_write_pause(struct api_request *request, const struct as_pause_view *pause)
{
    struct as_json_writer *json = &request->json;
    as_json_write_key(json, "paused");
    if (!pause->is_set) {
        as_json_write_null(json);
        return;
    }
    as_json_begin_object(json);
    as_json_write_member(json, "who", api_show_credential(request, pause->who));
    as_json_write_member(json, "reason", pause->reason);
    as_json_write_member(json, "direction", as_ways_get_word(pause->ways));
    as_json_write_member_bool(json, "kill_switch", pause->is_halt);
    api_write_moment(request, "since", pause->since);
    api_write_moment(request, "until", pause->until);
    as_json_end_object(json);
}

void api_write_size(struct api_request *request, const char *key, bool has_size, int32_t size)
{
    if (has_size)
        as_json_write_member_i64(&request->json, key, size);
    else
        api_write_text(request, key, NULL);
}
