/*
 * The pages for people: what they share. A page is one document and one static script, without
 * resources of others, for light and dark, from 360 pixels on. docs/page.md describes the pages.
 *
 *     page_begin(request, &(struct page_head){.title = "Incidents", .place = PAGE_INCIDENTS});
 *     ... html_text(page_get_out(request), ...);
 *     page_end(request, 200);
 *
 * A page changes nothing. A page with a form that changes something says so (`has_form`): it offers
 * no refreshing, which would take away what is being typed.
 */
#ifndef ALERTSCALER_SRC_UI_PAGE_H
#define ALERTSCALER_SRC_UI_PAGE_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/model/reason.h>

#include "api_private.h"
#include "html.h"

struct as_rule;
struct as_target_config;

/* as in the menu */
enum page_place { PAGE_TARGETS, PAGE_INCIDENTS, PAGE_EVENTS, PAGE_RULES, PAGE_ELSEWHERE };

struct page_head {
    const char *title; /* from anywhere */
    enum page_place place;
    bool has_form;
    bool stays;           /* offers no refreshing */
    const char *document; /* that describes the page, below docs/; NULL: page.md */
    int64_t lasts_us;     /* then it is printed anew, for its charts; 0: 30 s */
    bool is_open;         /* for everybody: nothing of the replica is in it */
    const char *leads_to; /* goes on to this path at once; NULL: stays */
};

/*
 * A page stays current by a script (page.js): it requests the page again, with the version that is
 * shown. Who may read the page, and what is on it, is decided as for any other request.
 */

#define PAGE_SCRIPT_PATH "/page.js"
#define PAGE_SINCE       "since" /* the parameter with the version */
/* True after answering that the reader has the present version of the page. */
bool page_answer_unchanged(struct api_request *request);

/* Up to the page's heading, with the replica's state and the pause of all targets. */
void page_begin(struct api_request *request, const struct page_head *head);
/* Ends the page, and answers with it. */
void page_end(struct api_request *request, int status);
static inline struct as_buf *page_get_out(const struct api_request *request)
{
    return &request->api->body;
}

/* Begins a part of the page, with its heading. Parts need no end. */
void page_part(const struct api_request *request, const char *title);
/* A whole page that says why there is nothing to show; `format` gives one sentence. */
void page_refuse(struct api_request *request, int status, const char *title, const char *format,
                 ...) AS_PRINTF(4, 5);
/* False after answering that another replica has targets, incidents and decisions. */
bool page_has_engine(struct api_request *request) AS_MUST_USE;

/* What the asking credential's `rules` and `targets` leave of what is there. */
bool page_may_see_target(const struct api_request *request, const char *name, const char *id);
bool page_may_see_rule(const struct api_request *request, const char *rule, const char *target_name,
                       const char *target_id);

/* the forms of orders, for who may give them; target NULL: on all targets at once. A
 * page that refreshes has none of them; others have `has_form`. */
bool page_has_orders(const struct api_request *request, const struct as_target_view *target);
void page_print_orders(const struct api_request *request, const struct as_target_view *target);
struct page_order {
    const char *place; /* before the order's word: "", "/targets/...", "/approvals/..." */
    const char *word, *title;
    const char *fields; /* markup, before the reason */
    bool needs_reason;
};
/* A form that opens by a click on its title. Nothing if no request could have its path. */
void page_print_order(const struct api_request *request, const struct page_order *order);
/* contended targets and rules that did not help, of all targets and of one. */
void page_print_blocked(struct api_request *request);
void page_print_blocked_of(const struct api_request *request, const struct as_target_view *target);
/* Begins a form to a path of ours, with the seal that it needs. */
void page_begin_form(const struct api_request *request, const char *path);
/* Appends the query string that lets a page show the result of an order, and shows it. */
#define PAGE_REFUSED "refused" /* the parameter with the reason, if the order was refused */
struct page_refused {          /* all NULL: nothing was refused */
    const char *form, *field;  /* the path of the form; the name of the wrong field, or NULL */
    const char *typed;         /* all its fields, as in a query string; NULL: too long */
};
void page_append_result(const struct as_http_exchange *exchange, bool is_done, const char *text,
                        const struct page_refused *refused, struct as_buf *url);

/* page_home.c: what waits for a person, with forms to answer it for who may; target NULL:
 * of all. Nothing if nothing waits. */
void page_print_approvals(const struct api_request *request, const struct as_target_view *target);

/* page_decision.c: adds the records of what followed the decision. */
void page_add_actions(json_t *list, const struct kept_decision *decision);

/* page_incident.c: whether the reader may see one of these. */
bool page_may_see_incident(const struct api_request *request,
                           const struct as_incident_target *targets, size_t count);
/* The name of an alert, as a link to the page of its incident. */
void page_link_incident(const struct api_request *request, struct as_buf *out,
                        const struct as_digest *digest, const struct as_labels *labels);
/* The same of one that has ended, of several of the same alert. */
void page_link_ended(const struct api_request *request, struct as_buf *out,
                     const struct ended_incident *ended);
/* An incident as its record in the action log has it, for api_ended_free. NULL: the record is
 * malformed. */
struct ended_incident *page_incident_read(const json_t *record, as_wall_time at);

/* page_home.c: the open incidents of a target, by its id, and those that have ended lately. */
void page_print_incidents(struct api_request *request, const char *target);
/* The same of a rule, by its name. */
void page_print_incidents_of_rule(struct api_request *request, const char *rule);

/* in the words of people */
void page_print_span(struct as_buf *out, int64_t us); /* "12 s", "5 min", "3 h", "2 d" */
/* The same, kept current by the script. */
void page_print_ago(const struct api_request *request, as_wall_time at); /* "12 s ago" */
/* To a later time, or since an earlier one. The page is another when a later time comes. */
void page_print_distance(const struct api_request *request, struct as_buf *out, as_wall_time at);
/* "10 (10Gi) → 12 (12Gi)" */
void page_print_change(struct as_buf *out, const char *unit, int32_t from, int32_t to);
static inline as_wall_time page_get_wall(const struct api_request *request, as_mono_time at)
{
    return (as_wall_time){request->view.wall.us + (at.us - request->view.mono.us)};
}
void page_print_time(const struct api_request *request,
                     as_wall_time at);                             /* "2026-11-20 14:03:12" */
void page_print_reason(struct as_buf *out, enum as_reason reason); /* its word and its meaning */
void page_print_pause(const struct api_request *request, const struct as_pause_view *pause);
/* An action that failed is not shown as `scaled`. `failure`: AS_REASON_APPLIED: none. */
static inline enum as_reason page_get_reason(enum as_reason reason, enum as_reason failure)
{
    return reason == AS_REASON_SCALED && failure != AS_REASON_APPLIED ? failure : reason;
}
/* One of the facts in <dl class="facts">: a title, then what the caller writes. */
void page_fact_begin(struct as_buf *out, const char *title);
void page_fact_end(struct as_buf *out);
void page_print_pill(struct as_buf *out, const char *class, const char *text); /* good, warn, bad */
/* What stands before each path of ours: "", or the path of --web.external-url. */
const char *page_root(const struct api_request *request);
/* html_link to a path of ours. */
void page_link(const struct api_request *request, struct as_buf *out, const char *path,
               const char *rest, const char *text);
/* The name, and the end of the id where it is of a template. */
void page_link_target(const struct api_request *request, struct as_buf *out, const char *id,
                      const char *name);
void page_link_rule(const struct api_request *request, struct as_buf *out, const char *rule);
/* "10 → 12", "stays at 10, would be 12" */
void page_print_outcome(struct as_buf *out, const struct kept_decision *decision);
/* The latest decisions as a table; `target`: of this id; NULL: of all. `older`: from the action
 * log, behind those of memory; NULL: none. `is_wanted`: only those for which it is true; NULL: all.
 */
typedef bool page_decision_fn(const void *context, const struct kept_decision *decision);
void page_print_decisions(const struct api_request *request, const char *target,
                          const struct kept_decision_list *older, page_decision_fn *is_wanted,
                          const void *context, size_t limit);

/* Of a long list, the rows that the parameter `page` asks for. */
struct page_slice {
    size_t from, to; /* rows, from 0; `to` is behind the last */
    size_t total, size;
};
struct page_slice page_slice_get(const struct api_request *request, size_t total, size_t size);
/* Links to the rows before and behind. */
void page_slice_print(const struct api_request *request, const struct page_slice *slice,
                      const char *path);
#define PAGE_URL_MAX ((size_t)64 * 1024)
/* Appends the present parameters, each with `&` behind it, without `page` and `without`.
 * PAGE_RANGE: without all that set the time range. A place among older records is only kept for
 * "refresh". */
void page_append_query(const struct api_request *request, const char *without, struct as_buf *url);

/*
 * The time range of a page with charts (page_range.c): the parameter `range`, or `from` and `to`.
 */

#define PAGE_RANGE  "range"
#define PAGE_BEFORE "before" /* the parameter of a page of older records (page_log.h) */

struct page_range {
    as_wall_time from, to;
    const char *last; /* "hour", as in "the last hour"; NULL: `from` or `to` is given */
    bool is_fixed;    /* the end is in the past, and does not move */
};

/* `fallback`: the range if the request has none, as "1h". False after answering that a parameter is
 * wrong. */
bool page_range_get(struct api_request *request, const char *fallback,
                    struct page_range *range_out) AS_MUST_USE;
/* How long a chart is current: for page_head.lasts_us. */
int64_t page_range_get_lasts(const struct page_range *range);
/* Links to the ranges, with the other parameters as they are. */
void page_range_print_links(const struct api_request *request, const struct page_range *range);

/*
 * The table of targets (page_rows.c): filtered by the parameters `q` (part of a name or id) and
 * `state`, sorted by `sort` and `order`, in pages of 100.
 */

/* The form and the table; the engine must be there. `range`: of the small lines. */
void target_rows_print(struct api_request *request, const struct page_range *range);

/* For a target's own page too: "6", "6 -> 8, 5 ready". */
void target_print_size(struct as_buf *out, const struct as_target_view *target);
void target_print_bounds(struct as_buf *out,
                         const struct as_target_view *target); /* has an entry */
void target_print_signs(const struct api_request *request, const struct as_target_view *target,
                        size_t limit); /* states in words: so many, and how many more */

/*
 * Rules as rows of a table: what they match, what they do, and what they did last.
 */

/* The rules that lead to this target; nothing where there are none that may be seen. */
void rule_rows_print_of(struct api_request *request, const struct as_target_config *target);
void rule_rows_print_one(struct api_request *request, const struct as_rule *rule);
void rule_print_signs(const struct api_request *request, const struct as_rule *rule); /* "off" */

/*
 * The pages, for the table of routes: one function each.
 */

void page_answer_home(struct api_request *request);
void page_answer_target(struct api_request *request);
void page_answer_decision(struct api_request *request);
bool page_answer_unchanged_decision(struct api_request *request); /* as page_answer_unchanged */
void page_answer_events(struct api_request *request);
void page_answer_incidents(struct api_request *request);
void page_answer_incident(struct api_request *request);
void page_answer_rules(struct api_request *request);
void page_answer_rule(struct api_request *request);
void page_answer_reload(struct api_request *request);
bool page_answer_unchanged_reload(struct api_request *request); /* as page_answer_unchanged */
void page_answer_group(struct api_request *request);
void page_answer_account(struct api_request *request);

/* For everybody, without a credential; but for the first, with request->note: */
void page_answer_login(struct api_request *request);
void page_answer_refused(struct api_request *request);
void page_answer_again(struct api_request *request); /* leads to note->to */

#endif
