/*
 * The page of one rule: where it is written and its text as it was loaded, its targets with the
 * values that the rule saw, and what it has done. The text is that of the load, not of the file as
 * it is now.
 */
#include <inttypes.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/monitoring/query_checks.h>

#include "api_private.h"
#include "page.h"

#define TARGETS_SHOWN   50
#define DECISIONS_SHOWN 50

static void print_origin(const struct api_request *request, const struct as_rule *rule)
{
    const struct as_policy_terms *policy = rule->target->policy;
    struct as_buf *out = page_get_out(request);
    page_fact_begin(out, policy ? "ScalingPolicy" : "File");
    if (policy) {
        AS_CLEANUP(as_free_p)
        char *name = as_xasprintf("%s/%s", policy->namespace, policy->name);
        html_text(out, name);
    } else if (rule->file) {
        html_text(out, rule->file);
        as_buf_printf(out, ", line %" PRIu32, rule->line);
    } else {
        as_buf_append_str(out, "not known");
    }
    page_fact_end(out);
}

static void print_approval_terms(struct as_buf *out, const struct as_rule *rule)
{
    char duration[AS_DURATION_SIZE];
    as_duration_print(rule->approval.for_us, duration);
    page_fact_begin(out, "Approval");
    as_buf_printf(out, "for a change by more than %" PRId32 ", within %s", rule->approval.above,
                  duration);
    page_fact_end(out);
}

static void page_rule_print_facts(const struct api_request *request, const struct as_rule *rule)
{
    struct as_buf *out = page_get_out(request);
    as_buf_append_str(out, "<dl class=\"facts\">");
    print_origin(request, rule);
    page_fact_begin(out, "Target in the rules");
    page_link(request, out, "/?q=", rule->target->name, rule->target->name);
    page_fact_end(out);
    if (rule->approval.is_set)
        print_approval_terms(out, rule);
    as_buf_append_str(out, "</dl>\n<p>");
    rule_print_signs(request, rule);
    as_buf_append_str(out, "</p>\n");
}

static void page_rule_print_notes(const struct api_request *request, const struct as_rule *rule)
{
    struct as_buf *out = page_get_out(request);
    const char *error = as_query_checks_find_error(request->view.query_checks, rule);
    if (!rule->enabled)
        as_buf_append_str(out, "<p class=\"note warn\">The rule is off: it has <code>enabled: "
                               "false</code>.</p>\n");
    if (rule->dry_run || rule->target->dry_run)
        as_buf_append_str(out, "<p class=\"note warn\">Dry run: decisions of this rule are not "
                               "carried out.</p>\n");
    if (error) {
        as_buf_append_str(out, "<p class=\"note bad\">The server refuses a query of this rule: ");
        html_text(out, error);
        as_buf_append_str(out, "</p>\n");
    }
}

/*
 * The targets of its entry: one, or with a template many.
 */

struct rule_targets {
    const struct api_request *request;
    const struct as_rule *rule;
    struct html_table table;
    size_t count; /* that the reader may see */
};

static void page_rule_print_goal(struct as_buf *out, const struct as_rule *rule)
{
    const struct as_track *track = &rule->action.track;
    if (rule->action.kind == AS_ACTION_TRACK)
        as_buf_printf(out, track->goal == AS_GOAL_UTILIZATION ? "%.4g %%" : "%.4g", track->value);
}

/* The last cells of the row: value, goal, what the rule wants. */
struct rule_row {
    struct rule_targets *targets;
    const char *unit;
    bool is_printed;
};

static void page_rule_print_value(void *context, const struct as_rule_view *view)
{
    struct rule_row *row = context;
    struct rule_targets *targets = row->targets;
    struct html_table *table = &targets->table;
    struct as_buf *out = table->out;
    char size[AS_SIZE_TEXT_SIZE];
    if (row->is_printed || strcmp(view->rule->name, targets->rule->name) != 0)
        return;
    row->is_printed = true;
    html_cell(table);
    if (as_moment_is_set(view->missing_since)) {
        as_buf_append_str(out, "missing since ");
        page_print_time(targets->request, view->missing_since.wall);
    } else if (view->has_value) {
        as_buf_printf(out, "%.4g", view->value);
    }
    html_cell(table);
    page_rule_print_goal(out, targets->rule);
    html_cell(table);
    if (view->has_desired)
        as_buf_append_str(out, as_unit_print_size(row->unit, view->desired, size));
    else
        html_element(out, "code", NULL, as_reason_get_word(view->reason));
}

/* Without an open incident there is no value. */
static void page_rule_print_no_value(const struct rule_row *row)
{
    struct html_table *table = &row->targets->table;
    html_cell(table);
    html_cell(table);
    page_rule_print_goal(table->out, row->targets->rule);
    html_cell(table);
    html_element(table->out, "span", "dim", "nothing: it has no open incident");
}

static void page_rule_print_target(void *context, const struct as_target_view *target)
{
    static const struct html_column columns[] = {{.title = "Target"},
                                                 {.title = "Size", .is_number = true},
                                                 {.title = "Last value", .is_number = true},
                                                 {.title = "Goal", .is_number = true},
                                                 {.title = "Wants"}};
    struct rule_targets *targets = context;
    const struct api_request *request = targets->request;
    const struct as_rule *rule = targets->rule;
    struct as_buf *out = page_get_out(request);
    struct rule_row row = {.targets = targets, .unit = as_sized_get_unit(target->ref)};
    if (strcmp(target->name, rule->target->name) != 0 ||
        !page_may_see_rule(request, rule->name, target->name, target->id) ||
        targets->count++ >= TARGETS_SHOWN)
        return;
    if (targets->count == 1)
        html_table_begin(&targets->table, out, "Targets", columns, AS_ARRAY_SIZE(columns));
    html_row_begin(&targets->table);
    html_cell(&targets->table);
    page_link_target(request, out, target->id, target->name);
    html_cell(&targets->table);
    target_print_size(out, target);
    as_engine_visit_target_rules(request->view.engine, target->id, page_rule_print_value, &row);
    if (!row.is_printed)
        page_rule_print_no_value(&row);
    html_row_end(&targets->table);
}

static void page_rule_print_targets(const struct api_request *request, const struct as_rule *rule)
{
    const struct as_view *view = &request->view;
    struct as_buf *out = page_get_out(request);
    struct rule_targets targets = {.request = request, .rule = rule};
    page_part(request, "Targets");
    as_engine_visit_targets(view->engine, view->mono, view->wall, page_rule_print_target, &targets);
    if (targets.count > 0)
        html_table_end(&targets.table);
    else
        html_element(out, "p", "dim",
                     "No target yet: one appears with the first alert that this rule matches.");
    if (targets.count > TARGETS_SHOWN)
        as_buf_printf(out, "<p class=\"dim\">and %zu more</p>\n", targets.count - TARGETS_SHOWN);
}

/*
 * The page.
 */

static void page_rule_print_text(const struct api_request *request, const struct as_rule *rule)
{
    struct as_buf *out = page_get_out(request);
    page_part(request, "As loaded");
    if (rule->target->policy)
        html_element(out, "p", "dim", "The policy's rule, in the words of a rule file.");
    if (rule->text)
        html_element(out, "pre", NULL, rule->text);
    else
        html_element(out, "p", "dim", "The rule is too long to be kept in memory: read its file.");
}

static bool rule_has_won(const void *rule, const struct kept_decision *decision)
{
    return as_str_equal(rule, decision->rule);
}

static void page_rule_print(struct api_request *request, const struct as_rule *rule)
{
    page_begin(request, &(struct page_head){.title = rule->name,
                                            .place = PAGE_RULES,
                                            .document = "page.md#a-rule"});
    page_rule_print_facts(request, rule);
    page_rule_print_notes(request, rule);
    rule_rows_print_one(request, rule);
    if (request->view.engine)
        page_rule_print_targets(request, rule);
    page_rule_print_text(request, rule);
    if (request->view.engine) {
        page_print_incidents_of_rule(request, rule->name);
        page_part(request, "Decisions by this rule");
        page_print_decisions(request, NULL, NULL, rule_has_won, rule->name, DECISIONS_SHOWN);
    }
    page_end(request, 200);
}

void page_answer_rule(struct api_request *request)
{
    AS_CLEANUP(as_free_p) char *name = api_decode_rest(request);
    const struct as_rule *rule = name ? as_ruleset_find_rule(request->view.ruleset, name) : NULL;
    if (rule && page_may_see_rule(request, rule->name, rule->target->name, ""))
        page_rule_print(request, rule);
    else
        page_refuse(request, 404, "No such rule",
                    "No rule in force has this name: it may have been removed or renamed.");
}
