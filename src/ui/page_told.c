/*
 * The action log has everything; here is what the process remembers of it: decisions, what followed
 * them, and the incidents that are still open.
 */
#include "page_told.h"

#include <inttypes.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/log/record.h>
#include <alertscaler/tools/record_text.h>

#include "api_names.h"

static json_t *load(const char *text, size_t size)
{
    return text ? json_loadb(text, size, 0, NULL) : NULL;
}

static void add_actions(json_t *list, const struct kept_decision *decision)
{
    const char *at = decision->actions.data;
    const char *end = at ? at + decision->actions.size : NULL;
    while (at && at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (!newline)
            break;
        json_t *action = load(at, (size_t)(newline - at));
        if (action)
            json_array_append_new(list, action);
        at = newline + 1;
    }
}

/* Of a pool: the decisions that carry it out, oldest first, each with what followed. */
static void add_shares(const struct api_request *request, const struct kept_decision *decision,
                       json_t *list)
{
    const struct kept_decision *share;
    TAILQ_FOREACH_REVERSE(share, &request->api->decisions, kept_decision_list, next)
    {
        if (strcmp(share->pool_decision, decision->id) != 0 ||
            !page_may_see_target(request, share->target_name, share->target))
            continue;
        json_t *record = load(share->record, share->record_size);
        if (record)
            json_array_append_new(list, record);
        add_actions(list, share);
    }
}

/* --- open incidents, in the form of their opening records --- */

struct opening {
    const json_t *wanted; /* digests */
    json_t *list;
};

static void add_opening(void *context, const struct as_incident_state *state,
                        const struct as_incident_target *targets, size_t count)
{
    struct opening *opening = context;
    char digest[AS_DIGEST_TEXT_SIZE], starts_at[AS_RFC3339_SIZE];
    const json_t *wanted;
    size_t i;
    as_digest_print(&state->key.digest, digest);
    json_array_foreach(opening->wanted, i, wanted)
    {
        if (!as_str_equal(json_string_value(wanted), digest))
            continue;
        json_t *labels = json_object();
        for (uint32_t k = 0; state->labels && k < state->labels->count; k++)
            json_object_set_new(labels, state->labels->items[k].name,
                                json_string(state->labels->items[k].value));
        as_wall_time_print_short(state->starts_at, starts_at);
        json_array_append_new(opening->list, json_pack("{s:s, s:o, s:s}", "digest", digest,
                                                       "labels", labels, "startsAt", starts_at));
        return;
    }
}

static const struct kept_decision *find_next(const struct kept_decision *decision)
{
    const struct kept_decision *next = decision;
    do
        next = TAILQ_PREV(next, kept_decision_list, next);
    while (next && !as_target_is_same(next->target, decision->target));
    return next;
}

bool told_init(const struct api_request *request, const struct kept_decision *decision,
               struct as_explanation *told_out)
{
    json_t *record = load(decision->record, decision->record_size);
    const struct kept_decision *next = find_next(decision);
    const struct kept_decision *pool = api_find_decision(request->api, decision->pool_decision);
    if (pool && !page_may_see_target(request, pool->target_name, pool->target))
        pool = NULL;
    if (!record)
        return false;
    *told_out = (struct as_explanation){
        .decision = record,
        .actions = json_array(),
        .incidents = json_array(),
        .shares = json_array(),
        .pool = pool ? load(pool->record, pool->record_size) : NULL,
        .until = {.set = next != NULL, .at = next ? next->at : (as_wall_time){0}},
    };
    add_actions(told_out->actions, decision);
    add_shares(request, decision, told_out->shares);
    api_hide_credentials(request, record);
    api_hide_credentials(request, told_out->actions);
    api_hide_credentials(request, told_out->shares);
    api_hide_credentials(request, told_out->pool);
    struct opening opening = {json_object_get(record, "incidents"), told_out->incidents};
    as_engine_visit_incidents(request->view.engine, add_opening, &opening);
    json_t *later = next ? load(next->record, next->record_size) : NULL;
    told_out->repeats = json_integer_value(json_object_get(later, "repeats"));
    json_decref(later);
    return true;
}

void told_deinit(struct as_explanation *told)
{
    json_decref(told->decision);
    json_decref(told->actions);
    json_decref(told->incidents);
    json_decref(told->shares);
    json_decref(told->pool);
}

/* --- parts --- */

struct printing {
    const struct api_request *request;
    const struct as_explanation *told;
    const char *const *titles;
    struct html_table table;
};

static void print_gate(void *context, const char *gate, int32_t size, const char *text)
{
    struct printing *printing = context;
    struct html_table *table = &printing->table;
    html_row_begin(table);
    html_cell(table);
    html_element(table->out, "code", NULL, gate);
    html_cell(table);
    if (size >= 0)
        as_buf_printf(table->out, "%" PRId32, size);
    html_cell(table);
    html_text(table->out, text);
    html_row_end(table);
}

static void print_gates(struct printing *printing)
{
    static const struct html_column columns[] = {{.title = "Gate"},
                                                 {.title = "Size behind it", .is_number = true},
                                                 {.title = "What it did"}};
    html_table_begin(&printing->table, page_get_out(printing->request), "Gates", columns,
                     AS_ARRAY_SIZE(columns));
    as_explain_visit_gates(printing->told, print_gate, printing);
    html_table_end(&printing->table);
}

/* Each line is an item; one that belongs to the line before is set in. */
static void print_lines(struct as_buf *out, const char *text)
{
    as_buf_append_str(out, "<ul class=\"plain\">\n");
    while (*text) {
        const size_t size = strcspn(text, "\n");
        const size_t blanks = strspn(text, " ");
        AS_CLEANUP(as_free_p)
        char *line = as_xstrndup(text + (blanks < size ? blanks : size),
                                 size - (blanks < size ? blanks : size));
        if (*line)
            html_element(out, "li", blanks >= 4 ? "set-in" : NULL, line);
        text += size + (text[size] == '\n');
    }
    as_buf_append_str(out, "</ul>\n");
}

/* Without a list all but the beginning, which the page's head says. */
static bool is_wanted(const char *const *titles, const char *title)
{
    if (!titles)
        return *title != '\0';
    while (*titles && strcmp(*titles, title) != 0)
        titles++;
    return *titles != NULL;
}

static void print_part(void *context, const char *title, const char *text)
{
    struct printing *printing = context;
    if (!is_wanted(printing->titles, title))
        return;
    page_part(printing->request, title);
    if (strcmp(title, AS_EXPLAIN_GATES) == 0)
        print_gates(printing);
    else
        print_lines(page_get_out(printing->request), text);
}

void told_print(const struct api_request *request, const struct as_explanation *told,
                const char *const *titles)
{
    struct printing printing = {.request = request, .told = told, .titles = titles};
    as_explain_visit_parts(told, print_part, &printing);
}
