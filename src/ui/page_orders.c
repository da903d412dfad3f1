/*
 * The forms of operators' orders, and their results. Each order has a form with a reason of its
 * own; the program that reads them is forms.c.
 */
#include <inttypes.h>
#include <string.h>

#include <alertscaler/base/encode.h>
#include <alertscaler/base/str.h>
#include <alertscaler/rules/external_url.h>

#include "page.h"
#include "page_target_rows.h"
#include <alertscaler/auth/auth.h>

#define RESULT_MAX     ((size_t)600) /* bytes of a result's text */
#define PATH_MAX_BYTES ((size_t)16 * 1024)

bool page_has_orders(const struct api_request *request, const struct as_target_view *target)
{
    const struct as_view *view = &request->view;
    if (!view->engine || api_parameter_find(request, "refresh") ||
        !as_auth_may_order(request->exchange))
        return false;
    return target ? page_may_see_target(request, target->name, target->id)
                  : as_scope_is_whole(view->scopes, view->scope_count, request->who);
}

void page_begin_form(const struct api_request *request, const char *path)
{
    struct as_buf *out = page_get_out(request);
    char seal[AS_FORM_TOKEN_SIZE];
    as_auth_seal(request->exchange, AS_FORM_SEALED, seal);
    as_buf_append_str(out, "<form class=\"order\" method=\"post\" action=\"");
    html_text(out, page_root(request));
    html_text(out, path);
    as_buf_printf(out, "\">\n<input type=\"hidden\" name=\"form\" value=\"%s\">\n", seal);
    explicit_bzero(seal, sizeof(seal));
}

static const char for_field[] =
    "<label>For how long<input name=\"for\" placeholder=\"until resumed\" "
    "autocomplete=\"off\"></label>\n"
    "<label>What<select name=\"direction\"><option value=\"both\">both directions</option>"
    "<option value=\"down\">only scaling down</option>"
    "<option value=\"up\">only scaling up</option></select></label>\n";

void page_print_order(const struct api_request *request, const struct page_order *order)
{
    struct as_buf *out = page_get_out(request);
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(PATH_MAX_BYTES);
    as_buf_printf(&path, "%s/%s", order->place, order->word);
    if (as_buf_check(&path) != 0)
        return;
    as_buf_append_str(out, "<details class=\"order\"><summary>");
    html_text(out, order->title);
    as_buf_append_str(out, "</summary>\n");
    page_begin_form(request, path.data);
    as_buf_append_str(out, order->fields);
    as_buf_printf(out,
                  "<label>Reason<input name=\"reason\"%s maxlength=\"1000\" "
                  "autocomplete=\"off\"></label>\n",
                  order->needs_reason ? " required" : "");
    html_element(out, "button", NULL, order->title);
    as_buf_append_str(out, "</form></details>\n");
}

static void print_form(const struct api_request *request, const char *place, const char *word,
                       const char *title, const char *fields)
{
    page_print_order(request, &(struct page_order){place, word, title, fields, true});
}

/* What its bounds are, and its size now. */
static void print_scale_form(const struct api_request *request, const char *place,
                             const struct as_target_view *target)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf fields = AS_BUF_INIT(1024);
    as_buf_append_str(&fields, "<label>Size<input name=\"replicas\" type=\"number\" min=\"0\" "
                               "max=\"2147483647\" required");
    if (target->has_size)
        as_buf_printf(&fields, " value=\"%" PRId32 "\"", target->desired);
    as_buf_append_str(&fields, "></label>\n<label class=\"check\"><input name=\"force\" "
                               "type=\"checkbox\" value=\"true\"> Ignore its bounds");
    if (target->config) {
        as_buf_append_str(&fields, " (");
        target_print_bounds(&fields, target);
        as_buf_append_char(&fields, ')');
    }
    as_buf_append_str(&fields, "</label>\n");
    print_form(request, place, "scale", "Scale", fields.data);
}

static void print_floor_form(const struct api_request *request, const char *place,
                             const struct as_target_view *target)
{
    static const char end[] = "<input type=\"hidden\" name=\"end\" value=\"true\">\n";
    static const char set[] =
        "<label>Not below<input name=\"replicas\" type=\"number\" min=\"1\" "
        "max=\"2147483647\" required></label>\n<label>For how long<input name=\"for\" "
        "placeholder=\"2h\" required autocomplete=\"off\"></label>\n";
    const bool has_floor = target->floor.size > 0;
    print_form(request, place, "floor", has_floor ? "End the floor" : "Floor",
               has_floor ? end : set);
}

static void print_orders_of_all(const struct api_request *request)
{
    const struct as_view *view = &request->view;
    if (as_engine_get_pause(view->engine, view->mono, view->wall).is_set)
        print_form(request, "", "resume", "Resume all targets", "");
    else
        print_form(request, "", "pause", "Pause all targets", for_field);
}

static void print_orders_of(const struct api_request *request, const struct as_target_view *target)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf place = AS_BUF_INIT(PATH_MAX_BYTES);
    as_buf_append_str(&place, "/targets/");
    as_encode_percent(&place, target->id, strlen(target->id), "");
    if (as_buf_check(&place) != 0)
        return; /* no request could have this path */
    if (target->pause.is_set || page_is_held(request, target))
        print_form(request, place.data, "resume", "Resume", "");
    if (!target->pause.is_set)
        print_form(request, place.data, "pause", "Pause", for_field);
    print_scale_form(request, place.data, target);
    print_floor_form(request, place.data, target);
    if (as_moment_is_set(target->up_locked_until) || as_moment_is_set(target->down_locked_until))
        print_form(request, place.data, "unlock", "Unlock", "");
}

void page_print_orders(const struct api_request *request, const struct as_target_view *target)
{
    if (!page_has_orders(request, target))
        return;
    page_part(request, "Orders");
    if (target)
        print_orders_of(request, target);
    else
        print_orders_of_all(request);
}

/* --- results --- */

static const char *const result_names[] = {[false] = "refused", [true] = "done"};

/* The seal covers what it says, and whether it was done. */
static void print_sealed(struct as_buf *out, const char *name, const char *text)
{
    as_buf_printf(out, "%s:%s", name, text);
}

void page_append_result(const struct as_http_exchange *exchange, bool is_done, const char *text,
                        struct as_buf *url)
{
    char line[RESULT_MAX], seal[AS_FORM_TOKEN_SIZE];
    AS_CLEANUP(as_buf_deinit) struct as_buf sealed = AS_BUF_INIT(RESULT_MAX + 16);
    as_str_copy_line(text, line, sizeof(line));
    print_sealed(&sealed, result_names[is_done], line);
    as_auth_seal(exchange, sealed.data, seal);
    as_buf_append_char(url, '?');
    html_query(url, result_names[is_done], line);
    as_buf_printf(url, "seal=%s", seal);
}

void page_print_result(const struct api_request *request)
{
    struct as_buf *out = page_get_out(request);
    for (size_t i = 0; i < AS_ARRAY_SIZE(result_names); i++) {
        const char *text = api_parameter_find(request, result_names[i]);
        AS_CLEANUP(as_buf_deinit) struct as_buf sealed = AS_BUF_INIT(RESULT_MAX + 16);
        if (!text)
            continue;
        print_sealed(&sealed, result_names[i], text);
        if (as_buf_check(&sealed) != 0 || !as_auth_check_seal(request->exchange, sealed.data,
                                                              api_parameter_find(request, "seal")))
            continue; /* somebody else wrote it */
        as_buf_printf(out, "<p class=\"note %s\" role=\"status\">", i ? "good" : "bad");
        html_text(out, text);
        as_buf_append_str(out, "</p>\n");
    }
}
