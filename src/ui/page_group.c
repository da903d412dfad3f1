/*
 * The page of a pool, or of a node group that is one of itself: its groups and nodes, and pods that
 * wait, as its last decision saw them.
 */
#include <inttypes.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/cluster/survey.h>
#include <alertscaler/decide/decision.h>

#include "page.h"
#include "page_answers.h"
#include "page_told.h"

#define NODES_SHOWN 200

static void print_groups(const struct api_request *request, const struct as_survey *survey)
{
    static const struct html_column columns[] = {{.title = "Group"},
                                                 {.title = "Size", .is_number = true},
                                                 {.title = "Bounds", .is_number = true},
                                                 {.title = "Nodes", .is_number = true},
                                                 {.title = "On their way", .is_number = true},
                                                 {.title = "Overdue", .is_number = true},
                                                 {.title = "Growth"}};
    struct as_buf *out = page_get_out(request);
    struct html_table table;
    html_table_begin(&table, out, "Node groups", columns, AS_ARRAY_SIZE(columns));
    for (size_t i = 0; i < survey->group_count; i++) {
        const struct as_survey_group *group = &survey->groups[i];
        if (!group->is_member)
            continue;
        html_row_begin(&table);
        html_cell(&table);
        page_link(request, page_get_out(request), "/targets/", group->name, group->name);
        html_cell(&table);
        if (group->size >= 0)
            as_buf_printf(out, "%" PRId32, group->size);
        else
            as_buf_append_str(out, "not known");
        html_cell(&table);
        as_buf_printf(out, "%" PRId32 " to %" PRId32, group->min, group->max);
        html_cell(&table);
        as_buf_printf(out, "%" PRId64, group->nodes);
        html_cell(&table);
        as_buf_printf(out, "%" PRId32, group->coming);
        html_cell(&table);
        as_buf_printf(out, "%" PRId32, group->overdue);
        html_cell(&table);
        if (group->closed == AS_REASON_SCALED)
            as_buf_append_str(out, "open");
        else
            page_print_reason(out, group->closed);
        html_row_end(&table);
    }
    html_table_end(&table);
}

static void print_node(struct html_table *table, const struct as_survey *survey,
                       const struct as_survey_node *node)
{
    struct as_buf *out = table->out;
    html_row_begin(table);
    html_cell(table);
    html_text(out, node->node.name);
    html_cell(table);
    if (node->group < survey->group_count)
        html_text(out, survey->groups[node->group].name);
    html_cell(table);
    page_print_pill(out, node->is_ready ? "good" : "bad", node->is_ready ? "ready" : "not ready");
    html_cell(table);
    if (node->is_candidate)
        as_buf_append_str(out, "may leave, if its pods fit elsewhere");
    else
        html_element(out, "code", NULL, as_stay_get_word(node->stay));
    html_cell(table);
    if (node->is_candidate)
        as_buf_printf(out, "%.0f %%", node->utilization);
    html_row_end(table);
}

static void print_nodes(const struct api_request *request, const struct as_survey *survey)
{
    static const struct html_column columns[] = {{.title = "Node"},
                                                 {.title = "Group"},
                                                 {.title = "State"},
                                                 {.title = "Why it stays"},
                                                 {.title = "Requested", .is_number = true}};
    struct as_buf *out = page_get_out(request);
    struct html_table table;
    const struct page_slice slice = page_slice_get(request, survey->node_count, NODES_SHOWN);
    if (survey->node_count == 0)
        return;
    page_part(request, "Each node");
    html_table_begin(&table, out, "Nodes", columns, AS_ARRAY_SIZE(columns));
    for (size_t i = slice.from; i < slice.to; i++)
        print_node(&table, survey, &survey->nodes[i]);
    html_table_end(&table);
    page_slice_print(request, &slice, as_http_exchange_get_path(request->exchange));
}

static const struct kept_decision *find_last(const struct api_request *request, const char *target)
{
    const struct kept_decision *decision;
    TAILQ_FOREACH (decision, &request->api->decisions, next) {
        if (decision->record && as_target_is_same(target, decision->target))
            return decision;
    }
    return NULL;
}

static void print_seen(struct api_request *request, const struct kept_decision *decision,
                       const struct as_explanation *told)
{
    static const char *const titles[] = {"Pods that wait", "Node groups", "Nodes", NULL};
    struct as_decide_document *document = NULL;
    struct as_error error = AS_ERROR_INIT;
    struct as_buf *out = page_get_out(request);
    as_buf_printf(out, "<p>As the <a href=\"%s/decisions/%s\">decision of ", page_root(request),
                  decision->id);
    page_print_time(request, decision->at);
    as_buf_append_str(out, "</a> saw it.</p>\n");
    const int status =
        as_decision_decode_input_value(json_object_get(told->decision, "input"), &document, &error);
    const struct as_survey *survey = status == 0 ? document->input.survey : NULL;
    if (survey && !survey->error)
        print_groups(request, survey);
    told_print(request, told, titles);
    if (survey && !survey->error)
        print_nodes(request, survey);
    if (!survey)
        html_element(out, "p", "dim",
                     "It asked for no pods and nodes: no rule with fit or take had an open "
                     "incident.");
    as_decide_document_free(document);
}

static void print_group(void *context, const struct as_target_view *target)
{
    struct api_request *request = context;
    struct as_explanation told;
    AS_CLEANUP(as_free_p)
    char *title = as_xasprintf("Nodes of %s", *target->name ? target->name : target->id);
    if (!page_may_see_target(request, target->name, target->id)) {
        page_refuse(request, 404, "No such group", "There is no pool or group of this name or id.");
        return;
    }
    const struct kept_decision *decision = find_last(request, target->id);
    page_begin(request, &(struct page_head){.title = title, .place = PAGE_TARGETS});
    as_buf_append_str(page_get_out(request), "<p>");
    page_link_target(request, page_get_out(request), target->id, target->id);
    as_buf_append_str(page_get_out(request), "</p>\n");
    if (decision && told_init(request, decision, &told)) {
        print_seen(request, decision, &told);
        told_deinit(&told);
    } else {
        html_element(page_get_out(request), "p", "dim",
                     "No decision about it since this replica began to lead.");
    }
    page_end(request, 200);
}

void page_answer_group(struct api_request *request)
{
    AS_CLEANUP(as_free_p) char *wanted = api_decode_rest(request);
    if (!page_has_engine(request))
        return;
    if (as_str_is_empty(wanted) || !api_visit_target(request, wanted, print_group, request))
        page_refuse(request, 404, "No such group", "There is no pool or group of this name or id.");
}
