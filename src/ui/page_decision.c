/*
 * The page of one decision: how it was made, and its document.
 */
#include <alertscaler/base/alloc.h>
#include <alertscaler/decide/decision.h>

#include "page.h"
#include "page_answers.h"
#include "page_told.h"

#define DOCUMENT_MAX ((size_t)256 * 1024) /* a longer one is only linked */

/* What `alertscaler decide` reads. */
static void print_document(const struct api_request *request, const struct as_explanation *told,
                           const char *id)
{
    struct as_buf *out = page_get_out(request);
    struct as_decide_document *document = NULL;
    struct as_error error = AS_ERROR_INIT;
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(DOCUMENT_MAX);
    const int status =
        as_decision_decode_input_value(json_object_get(told->decision, "input"), &document, &error);
    if (status == 0)
        as_decision_encode_input(&document->input, &text);
    as_decide_document_free(document);

    page_part(request, "The document");
    as_buf_append_str(out, "<p>Everything that this decision depends on. <code>alertscaler decide"
                           "</code> computes it again. The whole record is at ");
    page_link(request, page_get_out(request), "/api/v1/decisions/", id, "the API");
    as_buf_append_str(out, ".</p>\n");
    if (status == 0 && as_buf_check(&text) == 0) {
        as_buf_append_str(out, "<textarea readonly rows=\"8\" aria-label=\"The document\">");
        html_text(out, text.data);
        as_buf_append_str(out, "</textarea>\n");
    }
}

static void print_decision(struct api_request *request, const struct kept_decision *decision,
                           const struct as_explanation *told)
{
    const char *name = *decision->target_name ? decision->target_name : decision->target;
    AS_CLEANUP(as_free_p) char *title = as_xasprintf("Decision on %s", name);
    struct as_buf *out = page_get_out(request);
    page_begin(request, &(struct page_head){.title = title, .place = PAGE_ELSEWHERE});
    as_buf_append_str(out, "<p>");
    page_print_time(request, decision->at);
    as_buf_append_str(out, " \u00b7 ");
    page_link_target(request, out, decision->target, decision->target);
    as_buf_append_str(out, "</p>\n");
    told_print(request, told, NULL);
    print_document(request, told, decision->id);
    page_end(request, 200);
}

void page_answer_decision(struct api_request *request)
{
    AS_CLEANUP(as_free_p) char *id = api_decode_rest(request);
    struct as_explanation told;
    if (!page_has_engine(request))
        return;
    const struct kept_decision *decision = id ? api_find_decision(request->api, id) : NULL;
    if (!decision || !page_may_see_target(request, decision->target_name, decision->target)) {
        page_refuse(request, 404, "No such decision",
                    "It is not among the last %d decisions. The action log has them all: "
                    "alertscaler explain --target NAME --at TIME.",
                    DECISIONS_MAX);
        return;
    }
    if (!decision->record || !told_init(request, decision, &told)) {
        page_refuse(request, 404, "The decision is too long",
                    "Its record is too long to be kept in memory. The action log has it: "
                    "alertscaler explain --target NAME --at TIME.");
        return;
    }
    print_decision(request, decision, &told);
    told_deinit(&told);
}
