/*
 * Changes that wait for a person, and the forms that answer them. Who may see the rule and the
 * target sees what it asks; who may order the target has the forms.
 */
#include <inttypes.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/unit.h>

#include "api_names.h"
#include "page.h"

#define ROWS_SHOWN 50
#define TITLE_MAX  ((size_t)1024)
#define BACK_MAX   ((size_t)4096)

struct rows {
    const struct api_request *request;
    const char *target; /* id; NULL: of all */
    size_t count;       /* that the reader may see */
    bool has_form;
};

static bool is_shown(const struct rows *rows, const struct as_approval_view *view)
{
    const enum as_approval_answer answer = view->state.answer;
    return (answer == AS_APPROVAL_WAITING || answer == AS_APPROVAL_APPROVED) &&
           (!rows->target || strcmp(rows->target, view->target) == 0) &&
           page_may_see_rule(rows->request, view->state.rule, view->name, view->target);
}

static bool has_form(const struct rows *rows, const struct as_approval_view *view)
{
    return page_has_orders(rows->request,
                           &(struct as_target_view){.id = view->target, .name = view->name});
}

static void print_sentence(const struct api_request *request, const struct as_approval_view *view)
{
    struct as_buf *out = page_get_out(request);
    const struct as_approval_state *state = &view->state;
    as_buf_append_str(out, "<p>");
    page_link_target(request, out, view->target, view->name);
    as_buf_append_str(out, ": ");
    page_link_rule(request, out, state->rule);
    as_buf_append_str(out, " wants ");
    page_print_change(out, view->unit, state->from, state->to);
    as_buf_append_str(out, ". Asked ");
    page_print_ago(request, state->asked.wall);
    if (state->answer == AS_APPROVAL_APPROVED) {
        as_buf_append_str(out, ", approved");
        if (*state->who) {
            as_buf_append_str(out, " by ");
            html_text(out, api_show_credential(request, state->who));
        }
        as_buf_append_str(out, ". It can be used for another ");
    } else {
        as_buf_append_str(out, ". It waits for another ");
    }
    page_print_span(out, view->until.us - request->view.wall.us);
    as_buf_append_str(out, ". ");
    page_link(request, out, "/decisions/", state->decision, "Why");
    as_buf_append_str(out, "</p>\n");
}

/* The title says what is answered: a page may have several. Its answer leads back to this page. */
static void print_form(const struct rows *rows, const struct as_approval_view *view,
                       const char *word, const char *verb)
{
    const struct api_request *request = rows->request;
    const struct as_approval_state *state = &view->state;
    AS_CLEANUP(as_buf_deinit) struct as_buf back = AS_BUF_INIT(BACK_MAX);
    char from[AS_SIZE_TEXT_SIZE], to[AS_SIZE_TEXT_SIZE];
    AS_CLEANUP(as_free_p) char *place = as_xasprintf("/approvals/%s", state->id);
    AS_CLEANUP(as_buf_deinit) struct as_buf title = AS_BUF_INIT(TITLE_MAX);
    as_buf_printf(&title, "%s %.200s: %s \u2192 %s", verb, *view->name ? view->name : view->target,
                  as_unit_print_size(view->unit, state->from, from),
                  as_unit_print_size(view->unit, state->to, to));
    if (rows->target) {
        as_buf_append_str(&back, "<input type=\"hidden\" name=\"to\" value=\"/targets/");
        as_encode_percent(&back, rows->target, strlen(rows->target), "");
        as_buf_append_str(&back, "\">\n");
    }
    page_print_order(
        request,
        &(struct page_order){.place = place,
                             .word = word,
                             .title = as_buf_check(&title) == 0 ? title.data : verb,
                             .fields = back.size > 0 && as_buf_check(&back) == 0 ? back.data : ""});
}

static void count_row(void *context, const struct as_approval_view *view)
{
    struct rows *rows = context;
    if (!is_shown(rows, view))
        return;
    rows->count++;
    rows->has_form = rows->has_form || has_form(rows, view);
}

static void print_row(void *context, const struct as_approval_view *view)
{
    struct rows *rows = context;
    struct as_buf *out = page_get_out(rows->request);
    const bool is_waiting = view->state.answer == AS_APPROVAL_WAITING;
    if (!is_shown(rows, view) || rows->count++ >= ROWS_SHOWN)
        return;
    as_buf_append_str(out, "<div class=\"note warn\">\n");
    print_sentence(rows->request, view);
    if (has_form(rows, view)) {
        if (is_waiting)
            print_form(rows, view, "approve", "Approve");
        print_form(rows, view, "deny", is_waiting ? "Deny" : "Take back");
    }
    as_buf_append_str(out, "</div>\n");
}

static struct rows look(const struct api_request *request, const char *target)
{
    const struct as_view *view = &request->view;
    struct rows rows = {.request = request, .target = target};
    if (view->engine)
        as_engine_visit_approvals(view->engine, view->mono, view->wall, count_row, &rows);
    return rows;
}

bool page_has_answers(const struct api_request *request)
{
    return look(request, NULL).has_form;
}

void page_print_approvals(const struct api_request *request, const struct as_target_view *target)
{
    const struct as_view *view = &request->view;
    struct as_buf *out = page_get_out(request);
    const char *id = target ? target->id : NULL;
    struct rows rows = {.request = request, .target = id};
    const size_t count = look(request, id).count;
    if (count == 0)
        return;
    page_part(request, "Waiting for a person");
    as_engine_visit_approvals(view->engine, view->mono, view->wall, print_row, &rows);
    if (count > ROWS_SHOWN)
        as_buf_printf(out, "<p>And %zu more: each is on the page of its target.</p>\n",
                      count - ROWS_SHOWN);
}
