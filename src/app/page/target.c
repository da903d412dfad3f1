/*
 * The page of one target.
 */
#include <inttypes.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "page.h"
#include "page_answers.h"

static void print_fact(struct as_buf *out, const char *title)
{
    html_element(out, "dt", NULL, title);
}

static void print_facts(const struct api_request *request, const struct as_target_view *target)
{
    struct as_buf *out = page_get_out(request);
    as_buf_append_str(out, "<dl class=\"facts\"><div>");
    print_fact(out, "Size");
    if (target->has_size)
        as_buf_printf(out, "<dd>%" PRId32 "</dd>", target->replicas);
    else
        as_buf_append_str(out, "<dd>unknown</dd>");
    as_buf_append_str(out, "</div></dl>\n");
}

/* The place of what an operator may order here: forms, if the page has some. */
static void print_actions(const struct api_request *request, const struct as_target_view *target)
{
}

static void print_target(void *context, const struct as_target_view *target)
{
    struct api_request *request = context;
    page_begin(request, &(struct page_head){.title = target->name, .place = PAGE_TARGETS});
    html_element(page_get_out(request), "p", "id", target->id);
    print_facts(request, target);
    print_actions(request, target);
    page_end(request, 200);
}

static void check_target(void *context, const struct as_target_view *target)
{
    struct api_request *request = context;
    if (page_may_see_target(request, target->name, target->id))
        print_target(request, target);
    else
        page_refuse(request, 404, "No such target", "There is no target of this name or id.");
}

void page_answer_target(struct api_request *request)
{
    AS_CLEANUP(as_free_p) char *wanted = api_decode_rest(request);
    if (!page_has_engine(request))
        return;
    if (as_str_is_empty(wanted) || !api_visit_target(request, wanted, check_target, request))
        page_refuse(request, 404, "No such target", "There is no target of this name or id.");
}
