/*
 * What a rule did last is known from the history: of the last day, as far as that is remembered.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/monitoring/query_checks.h>
#include <alertscaler/tools/explain.h>

#include "page.h"

#define ROWS_SHOWN   100
#define ACTION_MAX   ((size_t)64 * 1024)
#define MATCHERS_MAX ((size_t)64 * 1024)

struct deeds { /* of one rule */
    size_t applied, failed;
    bool is_set;
    struct as_history_action last;
    char *target; /* of the last; texts of the history are borrowed for the call */
};

struct listing {
    struct api_request *request;
    const char *text;                      /* part of a name; NULL: any */
    const struct as_target_config *target; /* NULL: any */
    const struct as_rule *rule;            /* NULL: any */
    const struct as_rule **rules;
    struct deeds *deeds; /* the same indices */
    size_t count, capacity;
};

static bool has_text(const struct listing *listing, const struct as_rule *rule,
                     const struct as_target_config *target)
{
    return !listing->text || strcasestr(rule->name, listing->text) ||
           strcasestr(target->name, listing->text);
}

static void page_rules_collect(struct listing *listing)
{
    const struct as_ruleset *ruleset = listing->request->view.ruleset;
    for (size_t i = 0; i < ruleset->rule_count; i++) {
        const struct as_rule *rule = ruleset->rules[i];
        const struct as_target_config *target = rule->target;
        if ((listing->target && target != listing->target) ||
            (listing->rule && rule != listing->rule) || !has_text(listing, rule, target) ||
            !page_may_see_rule(listing->request, rule->name, target->name, ""))
            continue;
        listing->rules =
            as_xgrow(listing->rules, listing->count, &listing->capacity, sizeof(*listing->rules));
        listing->rules[listing->count++] = rule;
    }
}

/* --- what they did --- */

struct search {
    struct listing *listing;
    struct page_slice slice;
};

static void page_rules_note_action(void *context, const struct as_history_action *action)
{
    const struct search *search = context;
    for (size_t i = search->slice.from; i < search->slice.to; i++) {
        struct deeds *deeds = &search->listing->deeds[i];
        if (strcmp(search->listing->rules[i]->name, action->rule) != 0)
            continue;
        *(action->outcome == AS_REASON_APPLIED ? &deeds->applied : &deeds->failed) += 1;
        if (deeds->is_set && deeds->last.at.us > action->at.us)
            return;
        deeds->is_set = true;
        deeds->last = *action;
        as_free_p(&deeds->target);
        deeds->target = as_xstrdup(action->target);
        return;
    }
}

/* --- rows --- */

static const struct html_column columns[] = {
    {.title = "Rule"},   {.title = "Matches"},     {.title = "Does"},
    {.title = "Target"}, {.title = "Last action"}, {.title = "Last day"},
};
static const struct html_column own_columns[] = {
    /* on the target's page */
    {.title = "Rule"},        {.title = "Matches"},  {.title = "Does"},
    {.title = "Last action"}, {.title = "Last day"},
};
static const struct html_column one_columns[] = {
    /* on its own page */
    {.title = "Matches"},
    {.title = "Does"},
    {.title = "Last action"},
    {.title = "Last day"},
};

static void print_matchers(struct as_buf *out, const struct as_rule *rule)
{
    if (rule->is_always)
        html_element(out, "code", NULL, "always");
    for (size_t i = 0; i < rule->matcher_count; i++) {
        AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(MATCHERS_MAX);
        api_print_matcher(&rule->matchers[i], &text);
        html_element(out, "code", NULL, as_buf_check(&text) == 0 ? text.data : "(too long)");
        as_buf_append_char(out, ' ');
    }
    for (size_t i = 0; i < rule->receiver_count; i++) {
        as_buf_append_str(out, i == 0 ? "<small>from receiver " : ", ");
        html_text(out, rule->receivers[i]);
    }
    as_buf_append_str(out, rule->receiver_count > 0 ? "</small>" : "");
}

void rule_print_signs(const struct api_request *request, const struct as_rule *rule)
{
    struct as_buf *out = page_get_out(request);
    if (!rule->enabled)
        page_print_pill(out, "", "off");
    if (rule->dry_run)
        page_print_pill(out, "warn", "dry run");
    if (as_query_checks_find_error(request->view.query_checks, rule))
        page_print_pill(out, "bad", "query error");
}

/* In the words of `explain`. */
static void page_rules_print_action(struct as_buf *out, const struct as_rule *rule)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf json = AS_BUF_INIT(ACTION_MAX);
    struct as_json_writer writer;
    char *text = NULL;
    size_t size;
    as_json_init(&writer, &json, AS_JSON_ANY_ORDER);
    api_write_action(&writer, rule);
    json_t *action = as_buf_check(&json) == 0 ? json_loadb(json.data, json.size, 0, NULL) : NULL;
    FILE *words = open_memstream(&text, &size);
    if (!words)
        abort(); /* only without memory */
    if (action)
        as_explain_print_action(action, words);
    if (fclose(words) != 0)
        abort();
    html_text(out, text);
    free(text);
    json_decref(action);
}

static void print_last(const struct api_request *request, const struct deeds *deeds, bool is_own)
{
    struct as_buf *out = page_get_out(request);
    if (!deeds->is_set) {
        html_element(out, "span", "dim", "none known");
        return;
    }
    page_print_ago(request, deeds->last.at);
    as_buf_printf(out, ": %" PRId32 " \u2192 %" PRId32 ", ", deeds->last.from, deeds->last.to);
    html_element(out, "code", NULL, as_reason_get_word(deeds->last.outcome));
    const char *name = is_own ? NULL : as_engine_find_name(request->view.engine, deeds->target);
    if (!is_own && page_may_see_target(request, name, deeds->target)) {
        as_buf_append_str(out, " on ");
        page_link_target(request, out, deeds->target, name);
    }
}

static void page_rules_print_name(const struct api_request *request, const struct as_rule *rule)
{
    struct as_buf *out = page_get_out(request);
    as_buf_append_str(out, "<b>");
    page_link_rule(request, out, rule->name);
    as_buf_append_str(out, "</b> ");
    rule_print_signs(request, rule);
}

static void print_row(struct html_table *table, const struct api_request *request,
                      const struct as_rule *rule, const struct deeds *deeds)
{
    const char *target = rule->target->name;
    const bool is_own = table->columns == own_columns;
    struct as_buf *out = table->out;
    html_row_begin(table);
    if (table->columns != one_columns) {
        html_cell(table);
        page_rules_print_name(request, rule);
    }
    html_cell(table);
    print_matchers(out, rule);
    html_cell(table);
    page_rules_print_action(out, rule);
    if (table->columns == columns) {
        html_cell(table);
        page_link(request, out, "/?q=", target, target);
    }
    html_cell(table);
    print_last(request, deeds, is_own);
    html_cell(table);
    as_buf_printf(out, "%zu action%s", deeds->applied, deeds->applied == 1 ? "" : "s");
    if (deeds->failed > 0)
        as_buf_printf(out, ", <b>%zu failed</b>", deeds->failed);
    html_row_end(table);
}

static void print_rows(struct listing *listing, const char *path)
{
    struct as_buf *out = page_get_out(listing->request);
    struct html_table table;
    page_rules_collect(listing);
    listing->deeds = as_xcalloc(listing->count + 1, sizeof(*listing->deeds));
    struct search search = {
        .listing = listing,
        .slice = page_slice_get(listing->request, listing->count, ROWS_SHOWN),
    };
    as_history_visit_actions(listing->request->api->history, page_rules_note_action, &search);
    if (listing->count > 0 && listing->rule)
        html_table_begin(&table, out, "Rules", one_columns, AS_ARRAY_SIZE(one_columns));
    else if (listing->count > 0 && listing->target)
        html_table_begin(&table, out, "Rules", own_columns, AS_ARRAY_SIZE(own_columns));
    else if (listing->count > 0)
        html_table_begin(&table, out, "Rules", columns, AS_ARRAY_SIZE(columns));
    else
        html_element(out, "p", "dim", "There is no such rule.");
    for (size_t i = search.slice.from; i < search.slice.to; i++) {
        print_row(&table, listing->request, listing->rules[i], &listing->deeds[i]);
        free(listing->deeds[i].target);
    }
    if (listing->count > 0)
        html_table_end(&table);
    if (path)
        page_slice_print(listing->request, &search.slice, path);
    free(listing->deeds);
    free(listing->rules);
}

void rule_rows_print_of(struct api_request *request, const struct as_target_config *target)
{
    struct listing listing = {.request = request, .target = target};
    print_rows(&listing, NULL);
}

void rule_rows_print_one(struct api_request *request, const struct as_rule *rule)
{
    struct listing listing = {.request = request, .rule = rule};
    print_rows(&listing, NULL);
}

void page_answer_rules(struct api_request *request)
{
    struct listing listing = {.request = request, .text = api_parameter_find(request, "q")};
    struct as_buf *out = page_get_out(request);
    page_begin(request,
               &(struct page_head){.title = "Rules", .place = PAGE_RULES, .document = "rules.md"});
    as_buf_printf(out,
                  "<form class=\"filter\" method=\"get\" action=\"%s/rules\">"
                  "<label>Name of rule or target<input name=\"q\" type=\"search\"",
                  page_root(request));
    html_attribute(out, "value", listing.text ? listing.text : "");
    as_buf_append_str(out, "></label><button>Show</button></form>\n");
    if (as_scope_is_whole(request->view.scopes, request->view.scope_count, request->who)) {
        as_buf_append_str(out, "<p>");
        page_link(request, out, "/reload", "", "What would a reload change?");
        as_buf_append_str(out, "</p>\n");
    }
    print_rows(&listing, "/rules");
    page_end(request, 200);
}
