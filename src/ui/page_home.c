/*
 * The first page: how this replica is, all targets, open incidents, the latest decisions.
 */
#include <inttypes.h>
#include <string.h>

#include "page.h"
#include "page_answers.h"
#include "page_incident_rows.h"

#define DECISIONS_SHOWN 20
#define INCIDENTS_SHOWN 10

static void print_leader(const struct api_request *request)
{
    const struct as_leader_view *leader = &request->view.leader;
    struct as_buf *out = page_get_out(request);
    page_fact_begin(out, "Leader");
    html_text(out, leader->is_leader ? "this replica"
                   : *leader->holder ? leader->holder
                                     : "nobody");
    page_fact_end(out);
    if (!leader->problem)
        return;
    page_fact_begin(out, "Lease");
    html_text(out, leader->problem);
    page_fact_end(out);
}

static void print_state(const struct api_request *request)
{
    const struct as_view *view = &request->view;
    struct as_buf *out = page_get_out(request);
    as_buf_append_str(out, "<dl class=\"facts\">");
    page_fact_begin(out, "State");
    page_print_pill(out, view->not_ready ? "bad" : "good", view->not_ready ? "not ready" : "ready");
    page_fact_end(out);
    print_leader(request);
    page_fact_begin(out, "Changes");
    page_print_pill(out, view->dry_run ? "warn" : "good",
                    view->dry_run ? "dry run: none is made" : "are made");
    page_fact_end(out);
    if (*request->who == '\0') {
        page_fact_begin(out, "Access");
        page_print_pill(out, "warn", "no credential is asked for");
        page_fact_end(out);
    }
    /* of all, so not for a credential that sees a part */
    const bool sees_all = as_scope_is_whole(view->scopes, view->scope_count, request->who);
    if (view->engine && sees_all) {
        const struct as_engine_counts counts = as_engine_get_counts(view->engine);
        page_fact_begin(out, "Targets");
        as_buf_printf(out, "%zu", counts.targets);
        page_fact_end(out);
        page_fact_begin(out, "Open incidents");
        as_buf_printf(out, "%zu", counts.incidents_open);
        page_fact_end(out);
    }
    if (sees_all) {
        page_fact_begin(out, "Rules");
        as_buf_printf(out, "%zu", view->ruleset->rule_count);
        page_fact_end(out);
    }
    as_buf_append_str(out, "</dl>\n");
}

void page_answer_home(struct api_request *request)
{
    struct as_buf *out = page_get_out(request);
    page_begin(request, &(struct page_head){.title = "Targets",
                                            .place = PAGE_TARGETS,
                                            .has_form = page_has_orders(request, NULL) ||
                                                        page_has_answers(request)});
    print_state(request);
    if (!request->view.engine) {
        html_element(out, "p", NULL,
                     "Only the leader knows targets, incidents and decisions, while its state is "
                     "open.");
        page_end(request, 200);
        return;
    }
    page_print_approvals(request, NULL);
    target_rows_print(request);
    page_print_held(request);
    page_part(request, "Open incidents");
    if (incident_rows_print(request, INCIDENTS_SHOWN, NULL) > INCIDENTS_SHOWN) {
        as_buf_append_str(page_get_out(request), "<p>");
        page_link(request, page_get_out(request), "/incidents", "", "All open incidents");
        as_buf_append_str(page_get_out(request), "</p>\n");
    }
    page_part(request, "Latest decisions");
    page_print_decisions(request, NULL, DECISIONS_SHOWN);
    page_print_orders(request, NULL);
    page_end(request, 200);
}
