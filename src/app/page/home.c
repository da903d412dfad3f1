/*
 * The first page: how this replica is, all targets, open incidents, the latest decisions.
 */
#include <inttypes.h>
#include <string.h>

#include "incident_rows.h"
#include "page.h"
#include "page_answers.h"
#include "target_rows.h"

#define DECISIONS_SHOWN 20
#define INCIDENTS_SHOWN 10

static void begin_fact(struct as_buf *out, const char *title)
{
    as_buf_append_str(out, "<div>");
    html_element(out, "dt", NULL, title);
    as_buf_append_str(out, "<dd>");
}

static void end_fact(struct as_buf *out)
{
    as_buf_append_str(out, "</dd></div>\n");
}

static void print_leader(const struct api_request *request)
{
    const struct as_leader_view *leader = &request->view.leader;
    struct as_buf *out = page_get_out(request);
    begin_fact(out, "Leader");
    html_text(out, leader->is_leader ? "this replica"
                   : *leader->holder ? leader->holder
                                     : "nobody");
    end_fact(out);
    if (!leader->problem)
        return;
    begin_fact(out, "Lease");
    html_text(out, leader->problem);
    end_fact(out);
}

static void print_state(const struct api_request *request)
{
    const struct as_view *view = &request->view;
    struct as_buf *out = page_get_out(request);
    as_buf_append_str(out, "<dl class=\"facts\">");
    begin_fact(out, "State");
    page_print_pill(out, view->not_ready ? "bad" : "good", view->not_ready ? "not ready" : "ready");
    end_fact(out);
    print_leader(request);
    begin_fact(out, "Changes");
    page_print_pill(out, view->dry_run ? "warn" : "good",
                    view->dry_run ? "dry run: none is made" : "are made");
    end_fact(out);
    if (*request->who == '\0') {
        begin_fact(out, "Access");
        page_print_pill(out, "warn", "no credential is asked for");
        end_fact(out);
    }
    if (view->engine) {
        const struct as_engine_counts counts = as_engine_get_counts(view->engine);
        begin_fact(out, "Targets");
        as_buf_printf(out, "%zu", counts.targets);
        end_fact(out);
        begin_fact(out, "Open incidents");
        as_buf_printf(out, "%zu", counts.incidents_open);
        end_fact(out);
    }
    begin_fact(out, "Rules");
    as_buf_printf(out, "%zu", view->ruleset->rule_count);
    end_fact(out);
    as_buf_append_str(out, "</dl>\n");
}

void page_answer_home(struct api_request *request)
{
    struct as_buf *out = page_get_out(request);
    page_begin(request, &(struct page_head){.title = "Targets", .place = PAGE_TARGETS});
    print_state(request);
    if (!request->view.engine) {
        html_element(out, "p", NULL,
                     "Only the leader knows targets, incidents and decisions, while its state is "
                     "open.");
        page_end(request, 200);
        return;
    }
    target_rows_print(request);
    page_part(request, "Open incidents");
    if (incident_rows_print(request, INCIDENTS_SHOWN, NULL) > INCIDENTS_SHOWN)
        as_buf_append_str(out, "<p><a href=\"/incidents\">All open incidents</a></p>\n");
    page_part(request, "Latest decisions");
    page_print_decisions(request, NULL, DECISIONS_SHOWN);
    page_end(request, 200);
}
