/*
 * The page of one target: its size over a time range as a chart, what holds it, what leads to it,
 * what was decided and done.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/kube/kube_rivals.h>
#include <alertscaler/log/log_absences.h>
#include <alertscaler/log/log_history.h>
#include <alertscaler/model/scope.h>
#include <alertscaler/monitoring/query_checks.h>
#include <alertscaler/port/clock.h>
#include <alertscaler/ui/chart.h>

#include "api_private.h"
#include "page.h"
#include "page_log.h"

#define DECISIONS_SHOWN 50
#define ACTIONS_SHOWN   10
#define WIDE            1160 /* pixels of a chart */
#define SMALL           360
#define SPAN_MIN_US     AS_US_PER_MIN /* of a chart */
#define VALUES_MAX      500           /* of a chart */
#define RULE_LINKS_MAX  20
#define NEXT_NOTE_MAX   ((size_t)1024)

/* Which are in force and when they end, and when the others begin next. */
static void print_schedules(const struct api_request *request,
                            const struct as_target_config *config)
{
    struct as_buf *out = page_get_out(request);
    for (size_t i = 0; i < config->schedule_count; i++) {
        const struct as_schedule *schedule = &config->schedules[i];
        const struct as_schedule_state look = as_schedule_state(schedule, request->view.wall);
        if (i > 0)
            as_buf_append_str(out, "<br>");
        html_element(out, "code", NULL, schedule->name);
        as_buf_append_str(out, look.is_in_force ? " in force" : " not in force");
        if (!look.change.set)
            continue;
        as_buf_append_str(out, look.is_in_force ? ", ends " : ", begins ");
        page_print_time(request, look.change.at);
    }
}

static void print_floor(const struct api_request *request, const struct as_target_view *target)
{
    const struct as_floor_view *floor = &target->floor;
    struct as_buf *out = page_get_out(request);
    char size[AS_SIZE_TEXT_SIZE];
    as_buf_printf(out, "%s, by ",
                  as_unit_print_size(as_sized_get_unit(target->ref), floor->size, size));
    html_text(out, *floor->who ? api_show_credential(request, floor->who) : "?");
    if (as_moment_is_set(floor->until)) {
        as_buf_append_str(out, ", for another ");
        page_print_distance(request, out, floor->until.wall);
    }
    as_buf_append_str(out, ": ");
    html_text(out, floor->reason);
}

#define VALUES_SHOWN 3

struct rule_values {
    const struct api_request *request;
    const struct as_target_view *target;
    size_t count;
};

/* " The value of slow is 47.1, the goal 40." */
static void print_rule_value(void *context, const struct as_rule_view *view)
{
    struct rule_values *values = context;
    const struct as_target_view *target = values->target;
    struct as_buf *out = page_get_out(values->request);
    const struct as_track *track = &view->rule->action.track;
    if (!view->has_value ||
        !page_may_see_rule(values->request, view->rule->name, target->name, target->id) ||
        values->count++ >= VALUES_SHOWN)
        return;
    as_buf_append_str(out, " The value of ");
    page_link_rule(values->request, out, view->rule->name);
    as_buf_printf(out, " is %.4g", view->value);
    if (view->rule->action.kind == AS_ACTION_TRACK && track->goal != AS_GOAL_UTILIZATION)
        as_buf_printf(out, ", the goal %.4g", track->value);
    as_buf_append_char(out, '.');
}

/* Why the size stays. */
static void print_why_stays(const struct api_request *request, const struct as_target_view *target)
{
    const struct as_view *view = &request->view;
    struct as_buf *out = page_get_out(request);
    const struct as_pause_view pause = as_engine_get_pause(view->engine, view->mono, view->wall);
    if (target->pause.is_set || pause.is_set) {
        page_print_pause(request, target->pause.is_set ? &target->pause : &pause);
    } else if (as_moment_is_set(target->contended_until)) {
        as_buf_append_str(out, "another program sets its size back");
    } else if (target->open_incidents == 0) {
        as_buf_append_str(out, "no alert fires");
    } else if (target->config && target->replicas >= target->bounds.max) {
        as_buf_append_str(out, "at max");
    } else if (as_moment_is_set(target->up_locked_until)) {
        as_buf_append_str(out, "locked against growing for another ");
        page_print_distance(request, out, target->up_locked_until.wall);
    } else if (target->last_decision) {
        html_element(out, "code", NULL, as_reason_get_word(target->last_reason));
    } else {
        as_buf_append_str(out, "nothing was decided yet");
    }
}

/* "Stays at 20: at max. The value of slow is 47.1, the goal 40." */
static void print_now(const struct api_request *request, const struct as_target_view *target)
{
    struct as_buf *out = page_get_out(request);
    const char *unit = as_sized_get_unit(target->ref);
    struct rule_values values = {.request = request, .target = target};
    char size[AS_SIZE_TEXT_SIZE];
    as_buf_append_str(out, "<p class=\"now\">");
    if (!target->has_size) {
        as_buf_append_str(out, "The size is not known");
    } else if (target->has_order) {
        as_buf_printf(out, "Goes to %s: an operator has set it",
                      as_unit_print_size(unit, target->ordered, size));
    } else if (target->desired != target->replicas) {
        as_buf_append_str(out, "Goes ");
        page_print_change(out, unit, target->replicas, target->desired);
    } else {
        as_buf_printf(out, "Stays at %s: ", as_unit_print_size(unit, target->replicas, size));
        print_why_stays(request, target);
    }
    as_buf_append_char(out, '.');
    as_engine_visit_target_rules(request->view.engine, target->id, print_rule_value, &values);
    as_buf_append_str(out, "</p>\n");
}

static void print_facts(const struct api_request *request, const struct as_target_view *target)
{
    struct as_buf *out = page_get_out(request);
    as_buf_append_str(out, "<dl class=\"facts\">");
    page_fact_begin(out, "Size");
    target_print_size(out, target);
    page_fact_end(out);
    if (target->config) {
        page_fact_begin(out, "Bounds");
        target_print_bounds(out, target);
        page_fact_end(out);
    }
    if (target->config && target->config->schedule_count > 0) {
        page_fact_begin(out, "Schedules");
        print_schedules(request, target->config);
        page_fact_end(out);
    }
    if (target->floor.size > 0) {
        page_fact_begin(out, "Floor");
        print_floor(request, target);
        page_fact_end(out);
    }
    if (as_moment_is_set(target->seen)) {
        page_fact_begin(out, "Last observed");
        page_print_ago(request, target->seen.wall);
        page_fact_end(out);
    }
    page_fact_begin(out, "Open incidents");
    as_buf_printf(out, "%zu", target->open_incidents);
    page_fact_end(out);
    as_buf_append_str(out, "</dl>\n<p>");
    target_print_signs(request, target, SIZE_MAX);
    as_buf_append_str(out, "</p>\n");
}

/* Who else aims at it. */
static void page_target_print_others(const struct api_request *request,
                                     const struct as_target_view *target)
{
    struct as_buf *out = page_get_out(request);
    size_t count;
    const struct as_other *others = as_others_find(request->view.others, target->id, &count);
    for (size_t i = 0; i < count; i++) {
        as_buf_printf(out, "<p class=\"note warn\">The %s ", others[i].kind);
        html_text(out, others[i].name);
        as_buf_append_str(out, others[i].is_paused
                                   ? " sizes this target too: it is paused now.</p>\n"
                                   : " sizes this target too.</p>\n");
    }
}

struct rule_notes {
    const struct api_request *request;
    const struct as_target_view *target;
};

static void print_failing_rule(void *context, const struct as_rule *rule, const char *error)
{
    const struct rule_notes *notes = context;
    const struct as_target_view *target = notes->target;
    struct as_buf *out = page_get_out(notes->request);
    if (rule->target != target->config ||
        !page_may_see_rule(notes->request, rule->name, target->name, target->id))
        return;
    as_buf_append_str(out, "<p class=\"note bad\">The server refuses a query of the rule ");
    page_link_rule(notes->request, out, rule->name);
    as_buf_append_str(out, ": ");
    html_text(out, error);
    as_buf_append_str(out, "</p>\n");
}

/* "Rule checkout-is-slow: the target stays at 6: the rule has no on_resolved." */
static void print_next_note(void *context, const struct as_next_view *next)
{
    const struct rule_notes *notes = context;
    const struct as_target_view *target = notes->target;
    struct as_buf *out = page_get_out(notes->request);
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(NEXT_NOTE_MAX);
    api_print_next(target, next, &text);
    if (as_buf_check(&text) != 0 ||
        !page_may_see_rule(notes->request, next->rule, target->name, target->id))
        return;
    as_buf_append_str(out, "<p class=\"note\">Rule ");
    page_link_rule(notes->request, out, next->rule);
    as_buf_append_str(out, ": the target ");
    html_text(out, text.data);
    as_buf_append_str(out, ".</p>\n");
}

static void page_print_tries(const struct api_request *request, const struct as_target_view *target)
{
    struct as_buf *out = page_get_out(request);
    if (target->tries == 0)
        return;
    as_buf_printf(out, " %" PRIu32 " %s since ", target->tries,
                  target->tries == 1 ? "try" : "tries");
    page_print_time(request, target->failing_since.wall);
    if (as_moment_is_set(target->next_try)) {
        as_buf_append_str(out, ", the next at ");
        page_print_time(request, target->next_try.wall);
    }
    as_buf_append_char(out, '.');
}

static void print_notes(const struct api_request *request, const struct as_target_view *target)
{
    struct as_buf *out = page_get_out(request);
    const char *failure = api_find_failure(request->api, target->id);
    if (target->pause.is_set) {
        as_buf_append_str(out, "<p class=\"note warn\">This target is ");
        page_print_pause(request, &target->pause);
        as_buf_append_str(out, "</p>\n");
    }
    as_query_checks_visit_failing(request->view.query_checks, request->view.ruleset,
                                  print_failing_rule, &(struct rule_notes){request, target});
    if (target->last_failure != AS_REASON_APPLIED) {
        as_buf_append_str(out, "<p class=\"note bad\">The last attempt to read or set its size "
                               "failed. ");
        page_print_reason(out, target->last_failure);
        if (failure) {
            as_buf_append_char(out, ' ');
            html_text(out, failure);
        }
        page_print_tries(request, target);
        as_buf_append_str(out, "</p>\n");
    }
    struct rule_notes notes = {request, target};
    as_engine_visit_next(request->view.engine, target->ref, request->view.mono, request->view.wall,
                         print_next_note, &notes);
}

/*
 * Which decisions and actions the reader wants, by the parameters `reason` and `rule`.
 */

struct target_filter { /* borrowed from the request */
    const struct page_range *range;
    const char *rule; /* NULL: all */
    bool has_reason;
    enum as_reason reason; /* of a decision, or the outcome of an action */
};

/* False after answering that a parameter is wrong. */
static bool target_filter_read(struct api_request *request, const struct page_range *range,
                               struct target_filter *filter_out)
{
    const char *reason = api_parameter_find(request, "reason");
    *filter_out = (struct target_filter){
        .range = range, .rule = api_parameter_find(request, "rule"), .has_reason = reason != NULL};
    if (!reason || as_reason_find(reason, &filter_out->reason))
        return true;
    page_refuse(request, 400, "Wrong reason",
                "reason: expected a reason code, as in reason=at_max: there is none with the name "
                "%s.",
                reason);
    return false;
}

static bool target_filter_has(const struct target_filter *filter, const char *rule,
                              enum as_reason reason)
{
    return (!filter->rule || as_str_equal(filter->rule, rule)) &&
           (!filter->has_reason || filter->reason == reason);
}

static bool target_filter_wants(const void *context, const struct kept_decision *decision)
{
    const struct target_filter *filter = context;
    return decision->at.us >= filter->range->from.us && decision->at.us <= filter->range->to.us &&
           target_filter_has(filter, decision->rule,
                             page_get_reason(decision->reason, decision->failure));
}

/*
 * What the index of the action log knows of the time before memory: sizes, actions, interruptions,
 * values and decisions. Its thread reads them, while the page waits; then the page is answered
 * again with them. The job has copies of all that it uses. The index finds the newest records
 * first, so what is missing in the end is old.
 *
 * The sizes of a long range come from the index's sums of minutes, and not from each decision. The
 * sums are merged into stretches, two pixels wide, with what a chart can show: the first, smallest,
 * largest and last size. A circle of a value is wider.
 */

#define OLDER_ROWS_MAX    5000  /* decisions and actions that are searched */
#define OLDER_POINTS_MAX  20000 /* steps of the size */
#define OLDER_BREAKS_MAX  1000  /* starts and stops */
#define OLDER_DEADLINE_US (2 * AS_US_PER_S)
#define STRETCHES_MAX     480 /* of a chart */
#define STRETCH_VALUES    3   /* stretches with one value in all */
#define OLDER_VALUES_MAX  (STRETCHES_MAX / STRETCH_VALUES)

struct older_stretch {
    bool has_size;
    int64_t first_at, last_at;
    int32_t first, last, least, most;
};

struct older_break {
    int64_t seq, at;
};

struct page_older {
    struct as_log_history_job job; /* the first member */
    struct as_api *api;
    struct as_http_exchange *exchange;
    const char *rest; /* of the exchange's path */
    struct api_reader reader;
    char *target, *target_name;
    char *rule;             /* of the values: of those in memory, or the last one; NULL: none */
    int64_t from, until;    /* `until`: from then on memory knows */
    int64_t width;          /* of a stretch */
    bool has_line;          /* sizes and actions were read; else only decisions */
    bool is_long;           /* the line is made from sums */
    bool is_partial;        /* records may be missing: the index is not complete */
    bool is_broken;         /* the index cannot be read, or not in time */
    uint32_t all, failures; /* actions, and those that failed, also those that are not shown */
    struct older_stretch stretches[STRETCHES_MAX];
    struct as_chart_value values[OLDER_VALUES_MAX]; /* at 0: none */
    const char *instance;
    struct as_log_absences absences;
    struct as_timeline line;
    struct as_history_action actions[AS_HISTORY_MARKS_MAX]; /* in the end in the order of time */
    size_t action_count;

    bool has_decisions; /* of the whole range, the newest first; in the end without those of memory
                         */
    struct page_range range;
    struct target_filter filter; /* its texts belong to this struct */
    char unit[AS_UNIT_SIZE];
    struct kept_decision_list decisions;
    size_t decision_count;
    bool reasons[AS_REASON_COUNT]; /* that were found */
    bool is_cut;                   /* older ones were not searched */

    /* Of the thread, the newest first: */
    size_t row_count;
    enum as_reason failure; /* of the last action after the next decision */
    struct as_timeline_point *points;
    size_t point_count, point_capacity;
    struct older_break breaks[OLDER_BREAKS_MAX];
    size_t break_count, breaks_passed;
};

static void older_free(struct page_older *older)
{
    for (size_t i = 0; i < older->action_count; i++)
        free((char *)(uintptr_t)older->actions[i].rule);
    struct kept_decision *decision;
    while ((decision = TAILQ_FIRST(&older->decisions))) {
        TAILQ_REMOVE(&older->decisions, decision, next);
        api_decision_free(decision);
    }
    free((char *)(uintptr_t)older->filter.rule);
    as_timeline_deinit(&older->line);
    api_reader_deinit(&older->reader);
    free(older->points);
    free(older->target);
    free(older->target_name);
    free(older->rule);
    free(older);
}

static void older_drop(struct as_log_history_job *job)
{
    older_free((struct page_older *)job);
}

static bool older_add_break(struct page_older *older, int64_t seq, int64_t at)
{
    if (older->break_count < OLDER_BREAKS_MAX)
        older->breaks[older->break_count++] = (struct older_break){seq, at};
    return older->break_count < OLDER_BREAKS_MAX && at >= older->from;
}

static bool older_on_break(void *context, const struct as_log_row *row)
{
    return older_add_break(context, row->seq, row->time.us);
}

static bool older_on_gap(void *context, const struct as_log_gap *gap)
{
    struct page_older *older = context;
    if (!gap->from.set)
        return false;
    return gap->from.at.us >= older->until || older_add_break(older, gap->first, gap->from.at.us);
}

static int older_compare_breaks(const void *left, const void *right)
{
    const struct older_break *a = left, *b = right;
    return (a->seq < b->seq) - (a->seq > b->seq);
}

/* An earlier moment with the size; false: there is no room for it. */
static bool older_add_point(struct page_older *older, int64_t at, int32_t size)
{
    at = at < older->from ? older->from : at;
    if (older->point_count > 0 && older->points[older->point_count - 1].size == size) {
        older->points[older->point_count - 1].at = at;
        return true;
    }
    if (older->point_count == OLDER_POINTS_MAX)
        return false;
    older->points =
        as_xgrow(older->points, older->point_count, &older->point_capacity, sizeof(*older->points));
    older->points[older->point_count++] = (struct as_timeline_point){at, size};
    return true;
}

/* No size is known from a start or stop on. */
static bool older_add_breaks(struct page_older *older, int64_t seq)
{
    bool has_room = true;
    while (has_room && older->breaks_passed < older->break_count &&
           older->breaks[older->breaks_passed].seq > seq)
        has_room =
            older_add_point(older, older->breaks[older->breaks_passed++].at, AS_TIMELINE_UNKNOWN);
    return has_room;
}

static void older_add_action(struct page_older *older, const struct as_log_row *row,
                             enum as_reason outcome)
{
    if (older->action_count == AS_HISTORY_MARKS_MAX || row->time.us < older->from)
        return;
    older->actions[older->action_count++] = (struct as_history_action){
        .target = older->target,
        .rule = as_xstrdup(row->rule ? row->rule : ""),
        .at = row->time,
        .from = row->has_from ? row->from : AS_TIMELINE_UNKNOWN,
        .to = row->to,
        .outcome = outcome,
    };
}

/* The last row is one from before the range, which says what the size was at its begin. */
static bool older_on_row(void *context, const struct as_log_row *row)
{
    struct page_older *older = context;
    const bool is_action = row->kind == AS_RECORD_ACTION;
    enum as_reason outcome = AS_REASON_APPLIED;
    if (row->time.us >= older->until || !(is_action ? row->has_to : row->has_from) ||
        (is_action && !as_reason_find(row->reason ? row->reason : "", &outcome)))
        return true;
    if (is_action)
        older_add_action(older, row, outcome);
    if (outcome != AS_REASON_APPLIED)
        return true;
    return older_add_breaks(older, row->seq) &&
           older_add_point(older, row->time.us, is_action ? row->to : row->from) &&
           row->time.us >= older->from;
}

/* Of a long range. */
static bool older_on_action(void *context, const struct as_log_row *row)
{
    struct page_older *older = context;
    enum as_reason outcome;
    if (row->time.us < older->until && row->has_to &&
        as_reason_find(row->reason ? row->reason : "", &outcome))
        older_add_action(older, row, outcome);
    return older->action_count < AS_HISTORY_MARKS_MAX;
}

static size_t older_find_stretch(const struct page_older *older, int64_t at)
{
    const int64_t number = at < older->from ? 0 : (at - older->from) / older->width;
    return (size_t)(number < STRETCHES_MAX ? number : STRETCHES_MAX - 1);
}

static void older_add_sizes(struct page_older *older, const struct as_log_minute *minute)
{
    struct older_stretch *stretch =
        &older->stretches[older_find_stretch(older, minute->last_at.us)];
    const bool is_new = !stretch->has_size;
    stretch->has_size = true;
    if (is_new || minute->first_at.us < stretch->first_at) {
        stretch->first_at = minute->first_at.us;
        stretch->first = minute->first;
    }
    if (is_new || minute->last_at.us > stretch->last_at) {
        stretch->last_at = minute->last_at.us;
        stretch->last = minute->last;
    }
    stretch->least = is_new || minute->least < stretch->least ? minute->least : stretch->least;
    stretch->most = is_new || minute->most > stretch->most ? minute->most : stretch->most;
}

/* The values are those of one rule, which the reader may see. */
static void older_add_value(struct page_older *older, const struct as_log_minute *minute)
{
    const struct as_view *view = &older->reader.request.view;
    struct as_chart_value *value =
        &older->values[older_find_stretch(older, minute->value_at.us) / STRETCH_VALUES];
    if (minute->value_at.us < older->from || minute->value_at.us >= older->until ||
        minute->value_at.us <= value->at ||
        (older->rule && strcmp(older->rule, minute->rule) != 0) ||
        !as_scope_allows(view->scopes, view->scope_count, older->reader.request.who, minute->rule,
                         older->target_name, older->target))
        return;
    if (!older->rule)
        older->rule = as_xstrdup(minute->rule);
    *value = (struct as_chart_value){minute->value_at.us, minute->value, minute->goal};
}

/* The last minute with a size is one from before the range, as in older_on_row. */
static bool older_on_minute(void *context, const struct as_log_minute *minute)
{
    struct page_older *older = context;
    if (older->is_long && minute->has_size && minute->first_at.us < older->until)
        older_add_sizes(older, minute);
    if (minute->has_value)
        older_add_value(older, minute);
    if (!minute->has_size || minute->last_at.us >= older->from) {
        older->all += minute->actions;
        older->failures += minute->failures;
    }
    return !minute->has_size || minute->last_at.us >= older->from;
}

/* No size is known from a start or stop on, if the next size is later. */
static void older_add_breaks_until(struct page_older *older, int64_t after, int64_t until)
{
    while (older->break_count > 0 && older->breaks[older->break_count - 1].at < until) {
        const int64_t at = older->breaks[--older->break_count].at;
        if (at > after)
            as_timeline_add(&older->line, at < older->from ? older->from : at, AS_TIMELINE_UNKNOWN);
    }
}

static void older_join_stretches(struct page_older *older)
{
    int64_t last_at = INT64_MIN;
    for (size_t i = 0; i < STRETCHES_MAX; i++) {
        const struct older_stretch *stretch = &older->stretches[i];
        if (!stretch->has_size)
            continue;
        const int64_t third = (stretch->last_at - stretch->first_at) / 3;
        const bool rises = stretch->last > stretch->first;
        const int64_t at = stretch->first_at < older->from ? older->from : stretch->first_at;
        older_add_breaks_until(older, last_at, stretch->first_at);
        as_timeline_add(&older->line, at, stretch->first);
        as_timeline_add(&older->line, at + third, rises ? stretch->least : stretch->most);
        as_timeline_add(&older->line, at + 2 * third, rises ? stretch->most : stretch->least);
        last_at = stretch->last_at;
        as_timeline_add(&older->line, last_at < older->from ? older->from : last_at, stretch->last);
    }
    older_add_breaks_until(older, last_at, INT64_MAX);
}

/* The oldest first. */
static void older_turn(struct page_older *older)
{
    for (size_t i = older->point_count; i > 0; i--)
        as_timeline_add(&older->line, older->points[i - 1].at, older->points[i - 1].size);
    for (size_t i = 0, k = older->action_count; i + 1 < k; i++) {
        const struct as_history_action action = older->actions[--k];
        older->actions[k] = older->actions[i];
        older->actions[i] = action;
    }
    if (older->is_long)
        older_join_stretches(older);
}

static struct kept_decision *older_make_decision(const struct page_older *older,
                                                 const struct as_log_row *row,
                                                 enum as_reason reason, enum as_reason failure)
{
    struct kept_decision *decision = as_xcalloc(1, sizeof(*decision));
    as_str_copy_line(row->id, decision->id, sizeof(decision->id));
    as_str_copy_line(older->unit, decision->unit, sizeof(decision->unit));
    decision->at = row->time;
    decision->target = as_xstrdup(row->target);
    decision->target_name = as_xstrdup(row->target_name);
    decision->rule = row->rule ? as_xstrdup(row->rule) : NULL;
    decision->reason = reason;
    decision->replicas = row->from;
    decision->desired = row->to;
    decision->has_would = row->has_would;
    decision->would = row->would;
    decision->failure = failure;
    decision->actions = AS_BUF_INIT(DECISION_ACTIONS_MAX);
    return decision;
}

/* An action belongs to the decision before it. Decisions that are too many only count for the links
 * of reasons. */
static bool older_on_decision(void *context, const struct as_log_row *row)
{
    struct page_older *older = context;
    enum as_reason reason;
    if (++older->row_count > OLDER_ROWS_MAX) {
        older->is_cut = older->decision_count < DECISIONS_SHOWN;
        return false;
    }
    if (!page_log_is_id(row->id) || !as_reason_find(row->reason ? row->reason : "", &reason))
        return true;
    if (row->kind == AS_RECORD_ACTION) {
        if (row->has_to && row->rule && older->failure == AS_REASON_COUNT)
            older->failure = reason;
        older->reasons[reason] = true;
        return true;
    }
    const enum as_reason failure =
        older->failure == AS_REASON_COUNT ? AS_REASON_APPLIED : older->failure;
    older->failure = AS_REASON_COUNT;
    struct kept_decision *decision = older_make_decision(older, row, reason, failure);
    older->reasons[page_get_reason(reason, failure)] = true;
    if (older->decision_count < DECISIONS_SHOWN && target_filter_wants(&older->filter, decision)) {
        TAILQ_INSERT_TAIL(&older->decisions, decision, next);
        older->decision_count++;
    } else {
        api_decision_free(decision);
    }
    return true;
}

static int older_read_decisions(struct page_older *older, const struct as_log_history_view *view,
                                const struct as_log_query *line_query, struct as_error *error)
{
    struct as_log_query query = *line_query;
    query.kinds = 1U << AS_RECORD_DECISION | 1U << AS_RECORD_ACTION;
    query.target = older->target;
    query.since = (as_maybe_time){true, older->range.from};
    query.until = (as_maybe_time){true, older->range.to};
    query.on_row = older_on_decision;
    older->failure = AS_REASON_COUNT;
    return as_log_index_find(view->index, &query, error);
}

static int older_read_line(struct page_older *older, const struct as_log_history_view *view,
                           const struct as_log_query *breaks_query, struct as_error *error)
{
    struct as_log_query query = *breaks_query;
    const struct as_log_minutes minutes = {
        .target = older->target,
        .until = {older->until},
        .on_minute = older_on_minute,
        .context = older,
        .deadline = query.deadline,
    };
    int status = as_log_index_find(view->index, &query, error);
    if (status == 0 && view->state.is_current)
        status = as_log_index_find_gaps(view->index, older_on_gap, older, error);
    if (older->break_count > 0)
        qsort(older->breaks, older->break_count, sizeof(*older->breaks), older_compare_breaks);
    query.target = older->target;
    if (older->is_long) {
        query.kinds = 1U << AS_RECORD_ACTION;
        query.since = (as_maybe_time){true, {older->from}};
        query.on_row = older_on_action;
    } else {
        query.kinds = 1U << AS_RECORD_DECISION | 1U << AS_RECORD_ACTION;
        query.on_row = older_on_row;
    }
    if (status == 0)
        status = as_log_index_find(view->index, &query, error);
    if (status == 0)
        status = as_log_index_visit_minutes(view->index, &minutes, error);
    return status;
}

static void older_run(struct as_log_history_job *job, const struct as_log_history_view *view)
{
    struct page_older *older = (struct page_older *)job;
    struct as_error error;
    struct as_log_query query = {
        .kinds = 1U << AS_RECORD_START | 1U << AS_RECORD_STOP,
        .until = {true, {older->until}},
        .on_row = older_on_break,
        .context = older,
        .deadline = {as_time_add(as_system_clock.get_mono(&as_system_clock).us, OLDER_DEADLINE_US)},
    };
    int status = view->index ? 0 : -EIO;
    if (status == 0 && older->has_decisions)
        status = older_read_decisions(older, view, &query, &error);
    if (status == 0 && older->has_line)
        status = older_read_line(older, view, &query, &error);
    older->is_broken = status != 0;
    older->is_partial = !view->state.is_current || *view->problem;
    as_log_absences_find(view,
                         &(struct as_log_absences_query){.instance = older->instance,
                                                         .since = {true, {older->from}},
                                                         .until = {true, {older->until}},
                                                         .deadline = query.deadline},
                         &older->absences);
    older_turn(older);
}

static void older_show(struct as_log_history_job *job)
{
    static const struct as_api_endpoint endpoint = {page_answer_target, false,
                                                    page_answer_unchanged};
    struct page_older *older = (struct page_older *)job;
    struct kept_decision *decision = TAILQ_FIRST(&older->decisions);
    while (decision) {
        struct kept_decision *next = TAILQ_NEXT(decision, next);
        if (api_find_decision(older->api, decision->id)) {
            TAILQ_REMOVE(&older->decisions, decision, next);
            api_decision_free(decision);
        }
        decision = next;
    }
    older->api->older = older;
    as_api_answer(older->api, older->exchange, &endpoint, older->rest, older->reader.request.who,
                  NULL);
    older->api->older = NULL;
    older_free(older);
}

/* The first moment at which the size is known; the range's end: it is not known at all. */
static as_wall_time find_first_known(const struct as_timeline *line, const struct page_range *range)
{
    size_t i = 0;
    while (i < line->count && line->points[i].size == AS_TIMELINE_UNKNOWN)
        i++;
    return i < line->count ? (as_wall_time){line->points[i].at} : range->to;
}

/* The values of one rule: the one that has won last among those that may be seen. */
struct chart_values {
    struct as_chart_value items[VALUES_MAX + OLDER_VALUES_MAX]; /* the latest, ascending by time */
    size_t count;
    const char *rule;
};

static void find_chart_values(const struct api_request *request,
                              const struct as_target_view *target, as_wall_time from,
                              as_wall_time to, struct chart_values *values_out)
{
    struct as_chart_value *items = values_out->items;
    const struct kept_decision *decision;
    size_t count = 0;
    values_out->rule = NULL;
    TAILQ_FOREACH (decision, &request->api->decisions, next) {
        if (count == VALUES_MAX || decision->at.us < from.us)
            break;
        if (!decision->has_value || decision->at.us > to.us ||
            !as_target_is_same(target->id, decision->target) ||
            (values_out->rule && strcmp(values_out->rule, decision->rule) != 0) ||
            !page_may_see_rule(request, decision->rule, target->name, target->id))
            continue;
        values_out->rule = decision->rule;
        items[VALUES_MAX - ++count] =
            (struct as_chart_value){decision->at.us, decision->value, decision->goal};
    }
    memmove(items, items + VALUES_MAX - count, count * sizeof(*items));
    values_out->count = count;
}

/* Puts the values of the time before memory in front, if they are of the same rule. */
static void extend_chart_values(const struct page_older *older, int64_t from,
                                struct chart_values *values)
{
    struct as_chart_value items[OLDER_VALUES_MAX];
    size_t count = 0;
    if (!older->rule || (values->rule && strcmp(values->rule, older->rule) != 0))
        return;
    for (size_t i = 0; i < OLDER_VALUES_MAX; i++) {
        const int64_t at = older->values[i].at;
        if (at != 0 && at >= from && (values->count == 0 || at < values->items[0].at))
            items[count++] = older->values[i];
    }
    memmove(values->items + count, values->items, values->count * sizeof(*items));
    memcpy(values->items, items, count * sizeof(*items));
    values->count += count;
    if (count > 0)
        values->rule = older->rule;
}

/* True: the page waits for what the index knows of the range before memory. */
static bool page_waits_for_older(struct api_request *request, const struct as_target_view *target,
                                 const struct page_range *range, const struct target_filter *filter)
{
    const struct as_view *view = &request->view;
    struct as_api *api = request->api;
    struct as_timeline line;
    struct chart_values values;
    const bool has_decisions = range->from.us < page_log_get_memory_begin(request).us;
    const bool is_in_memory = range->from.us >= view->wall.us - AS_HISTORY_SPAN_US &&
                              (!api->returned.set || range->from.us >= api->returned.at.us);
    if (!api->history_log || api->older || request->note)
        return false;
    as_history_trace(api->history, target->id, range->from, range->to, &line);
    const as_wall_time known = find_first_known(&line, range);
    as_timeline_deinit(&line);
    const bool has_line = !is_in_memory && known.us != range->from.us;
    if (!has_line && !has_decisions)
        return false;
    struct page_older *older = as_xcalloc(1, sizeof(*older));
    find_chart_values(request, target, known, range->to, &values);
    api_reader_init(&older->reader, request);
    older->job.is_narrowed = !older->reader.is_whole;
    older->job.run = older_run;
    older->job.done = older_show;
    older->job.drop = older_drop;
    older->api = api;
    older->instance = api->instance;
    older->exchange = request->exchange;
    older->rest = request->rest;
    older->target = as_xstrdup(target->id);
    older->target_name = as_xstrdup(target->name);
    older->rule = values.rule ? as_xstrdup(values.rule) : NULL;
    older->from = range->from.us;
    older->until = known.us;
    older->has_line = has_line;
    older->has_decisions = has_decisions;
    older->range = *range;
    older->filter = *filter;
    older->filter.range = &older->range;
    older->filter.rule = filter->rule ? as_xstrdup(filter->rule) : NULL;
    as_str_copy_line(as_sized_get_unit(target->ref), older->unit, sizeof(older->unit));
    TAILQ_INIT(&older->decisions);
    older->width = (range->to.us - range->from.us) / STRETCHES_MAX + 1;
    older->is_long = range->to.us - range->from.us > AS_HISTORY_SPAN_US;
    if (as_log_history_submit(api->history_log, &older->job))
        return true;
    older_free(older);
    return false;
}

/* Where the chart begins: with the first known moment, so that a short history fills it. */
static as_wall_time get_chart_start(as_wall_time known, const struct page_range *range)
{
    const int64_t latest = range->to.us - SPAN_MIN_US;
    const int64_t start = known.us < latest ? known.us : latest;
    return (as_wall_time){known.us == range->to.us || start < range->from.us ? range->from.us
                                                                             : start};
}

/* When another replica led. */
static void print_absences(const struct api_request *request,
                           const struct as_log_absences *absences)
{
    struct as_buf *out = page_get_out(request);
    for (size_t i = 0; i < absences->count; i++) {
        const struct as_log_absence *absence = &absences->items[i];
        const bool is_known = *absence->replica;
        as_buf_append_str(out, "<p class=\"note\">");
        html_text(out, is_known ? absence->replica : "Records");
        as_buf_append_str(out, is_known ? " led " : " ");
        as_buf_append_str(out, absence->from.set ? "from " : "until ");
        if (absence->from.set) {
            page_print_time(request, absence->from.at);
            as_buf_append_str(out, " to ");
        }
        page_print_time(request, absence->to);
        as_buf_append_str(out, is_known ? "; its records are in its own action log.</p>\n"
                                        : " are missing here: another replica led, or a file of "
                                          "the action log was moved away.</p>\n");
    }
    if (absences->has_more)
        as_buf_append_str(out, "<p class=\"note\">Other replicas led at further times: choose a "
                               "shorter time.</p>\n");
}

/* What the chart lacks of the time before memory. */
static void print_older(const struct api_request *request, const struct page_older *older,
                        const struct page_range *range)
{
    struct as_buf *out = page_get_out(request);
    const bool is_whole = older->until >= range->to.us;
    as_buf_append_str(out, "<p class=\"dim\">");
    if (is_whole) {
        as_buf_append_str(out, "The chart is from the action log: it has no alerts and locks.");
    } else {
        as_buf_append_str(out, "The chart before ");
        page_print_time(request, (as_wall_time){older->until});
        as_buf_append_str(out, " is from the action log: it has no alerts and locks.");
    }
    if (older->is_long) {
        as_buf_append_str(out, " It shows the smallest and the largest size of each ");
        page_print_span(out, older->width);
        as_buf_append_char(out, '.');
    }
    if (older->action_count == AS_HISTORY_MARKS_MAX && older->all > AS_HISTORY_MARKS_MAX)
        as_buf_printf(out,
                      " Of %" PRIu32 " actions in this time, %" PRIu32
                      " failed; the chart has the last ones.",
                      older->all, older->failures);
    if (older->is_broken)
        as_buf_append_str(out, " The action log could not be read to the end.");
    else if (older->is_partial)
        as_buf_append_str(out, " The action log is not indexed yet: sizes may be missing.");
    as_buf_append_str(out, "</p>\n");
    print_absences(request, &older->absences);
}

static void print_known(const struct api_request *request, as_wall_time known,
                        const struct page_range *range)
{
    struct as_buf *out = page_get_out(request);
    if (request->api->older && request->api->older->has_line)
        print_older(request, request->api->older, range);
    if (known.us == range->from.us)
        return;
    as_buf_append_str(out, "<p class=\"dim\">");
    if (known.us == range->to.us) {
        as_buf_append_str(out, "No size is known of this time.");
    } else {
        as_buf_append_str(out, "The size is known since ");
        page_print_time(request, known);
        as_buf_append_char(out, '.');
    }
    as_buf_append_str(out, "</p>\n");
}

static void print_chart(const struct api_request *request, const struct as_target_view *target,
                        const struct page_range *range)
{
    static const struct {
        const char *class;
        int width;
    } sizes[] = {{"wide", WIDE}, {"narrow", SMALL}};
    struct as_buf *out = page_get_out(request);
    const struct page_older *older = request->api->older;
    struct as_history_chart chart;
    struct chart_values values;
    struct as_chart_bounds bounds = {0};
    AS_CLEANUP(as_free_p)
    char *title = range->last ? as_xasprintf("Size over the last %s", range->last)
                              : as_xstrdup("Size over the chosen time");
    char measure[AS_MEASURE_SIZE];
    const bool has_schedules = target->config && target->config->schedule_count > 0;
    as_history_draw(request->api->history, target->id, range->from, range->to, &chart);
    if (older && older->has_line)
        as_history_chart_extend(&chart, &older->line, older->actions, older->action_count);
    const as_wall_time known = find_first_known(&chart.line, range);
    const as_wall_time from = get_chart_start(known, range);
    find_chart_values(request, target, from, range->to, &values);
    const size_t value_count = values.count;
    if (older)
        extend_chart_values(older, from.us, &values);
    if (has_schedules)
        as_chart_bounds_fill(&bounds, target->config, from.us, range->to.us);
    for (size_t i = 0; i < AS_ARRAY_SIZE(sizes); i++) {
        as_buf_printf(out, "<div class=\"%s\">", sizes[i].class);
        as_chart_print_svg(
            &(struct as_chart){.title = title,
                               .unit = as_target_print_measure(
                                   target->id, as_sized_get_unit(target->ref), measure),
                               .width = sizes[i].width,
                               .is_part = true,
                               .from = from.us,
                               .to = range->to.us,
                               .after = &chart.line,
                               .min = target->config ? target->config->bounds.min : 0,
                               .max = target->config ? target->config->bounds.max : 0,
                               .bounds = has_schedules ? &bounds : NULL,
                               .bands = chart.alerts,
                               .band_count = chart.alert_count,
                               .locks = chart.locks,
                               .lock_count = chart.lock_count,
                               .marks = chart.marks,
                               .mark_count = chart.mark_count,
                               .values = values.items,
                               .value_count = values.count},
            out);
        as_buf_append_str(out, "</div>\n");
    }
    if (values.count > 0) {
        as_buf_append_str(out, "<p class=\"dim\">The value is the one of ");
        page_link_rule(request, out, values.rule);
        as_buf_append_str(out, values.count > value_count
                                   ? " at its decisions: before memory, the last one of each "
                                   : " at its decisions, as far as memory has them.</p>\n");
    }
    if (older && values.count > value_count) {
        const int64_t width = STRETCH_VALUES * older->width;
        page_print_span(out, width < AS_US_PER_MIN ? AS_US_PER_MIN : width);
        as_buf_append_str(out, ".</p>\n");
    }
    print_known(request, known, range);
    as_history_chart_deinit(&chart);
    as_chart_bounds_deinit(&bounds);
}

struct deeds { /* the latest actions on the target, a ring */
    const char *target;
    const struct target_filter *filter;
    struct as_history_action items[ACTIONS_SHOWN];
    char *rules[ACTIONS_SHOWN];
    size_t count;
};

static void page_target_note_action(void *context, const struct as_history_action *action)
{
    struct deeds *deeds = context;
    const size_t place = deeds->count % ACTIONS_SHOWN;
    const struct target_filter *filter = deeds->filter;
    if (strcmp(action->target, deeds->target) != 0 || action->at.us < filter->range->from.us ||
        action->at.us > filter->range->to.us ||
        !target_filter_has(filter, action->rule, action->outcome))
        return;
    deeds->items[place] = *action;
    as_free_p(&deeds->rules[place]);
    deeds->rules[place] = as_xstrdup(action->rule);
    deeds->count++;
}

static void print_deeds(const struct api_request *request, const struct as_target_view *target,
                        const struct target_filter *filter)
{
    static const struct html_column columns[] = {
        {.title = "When"}, {.title = "Size"}, {.title = "Outcome"}, {.title = "Rule"}};
    struct as_buf *out = page_get_out(request);
    const struct page_range *range = filter->range;
    struct deeds deeds = {.target = target->id, .filter = filter};
    struct html_table table;
    const struct page_older *older = request->api->older;
    for (size_t i = 0; older && i < older->action_count; i++)
        page_target_note_action(&deeds, &older->actions[i]);
    as_history_visit_actions(request->api->history, page_target_note_action, &deeds);
    if (deeds.count == 0) {
        as_buf_printf(out, "<p class=\"dim\">None in the %s%s, as far as known.</p>\n",
                      range->last ? "last " : "chosen time", range->last ? range->last : "");
        return;
    }
    html_table_begin(&table, out, "Actions", columns, AS_ARRAY_SIZE(columns));
    for (size_t i = deeds.count; i > 0 && deeds.count - i < ACTIONS_SHOWN; i--) {
        const size_t place = (i - 1) % ACTIONS_SHOWN;
        const struct as_history_action *action = &deeds.items[place];
        html_row_begin(&table);
        html_cell(&table);
        page_print_time(request, action->at);
        html_cell(&table);
        page_print_change(out, as_sized_get_unit(target->ref), action->from, action->to);
        html_cell(&table);
        page_print_reason(out, action->outcome);
        html_cell(&table);
        if (*deeds.rules[place])
            page_link_rule(request, page_get_out(request), deeds.rules[place]);
        html_row_end(&table);
    }
    html_table_end(&table);
    for (size_t i = 0; i < ACTIONS_SHOWN; i++)
        as_free_p(&deeds.rules[i]);
}

/*
 * Links that filter decisions and actions: by the reasons that occur in the time range, and by the
 * rules of the target.
 */

/* Appends `name=value` to the present query; value NULL: all. */
static void print_filter_link(const struct api_request *request, const char *name,
                              const char *value)
{
    struct as_buf *out = page_get_out(request);
    AS_CLEANUP(as_buf_deinit) struct as_buf url = AS_BUF_INIT(PAGE_URL_MAX);
    as_buf_append_char(&url, '?');
    page_append_query(request, name, &url);
    if (value)
        html_query(&url, name, value);
    if (as_buf_check(&url) != 0)
        return;
    as_buf_append_str(out, "<a");
    html_attribute(out, "href", url.data);
    if (as_str_equal(api_parameter_find(request, name), value) ||
        (!value && !api_parameter_find(request, name)))
        as_buf_append_str(out, " aria-current=\"true\"");
    as_buf_append_char(out, '>');
    html_text(out, value ? value : "all");
    as_buf_append_str(out, "</a>");
}

static void find_reasons(const struct api_request *request, const struct as_target_view *target,
                         const struct target_filter *filter, bool reasons[AS_REASON_COUNT])
{
    const struct page_older *older = request->api->older;
    const struct target_filter any = {.range = filter->range};
    const struct kept_decision *decision;
    for (int i = 0; i < AS_REASON_COUNT; i++)
        reasons[i] = older && older->reasons[i];
    TAILQ_FOREACH (decision, &request->api->decisions, next) {
        if (as_target_is_same(target->id, decision->target) && target_filter_wants(&any, decision))
            reasons[page_get_reason(decision->reason, decision->failure)] = true;
    }
    if (filter->has_reason)
        reasons[filter->reason] = true;
}

struct rule_links {
    const struct api_request *request;
    const struct as_target_view *target;
    bool has_present; /* the rule of the filter has a link */
};

static void print_rule_link(struct rule_links *links, const char *rule)
{
    const struct as_target_view *target = links->target;
    if (!page_may_see_rule(links->request, rule, target->name, target->id))
        return;
    links->has_present =
        links->has_present || as_str_equal(api_parameter_find(links->request, "rule"), rule);
    print_filter_link(links->request, "rule", rule);
}

static void print_filter_links(const struct api_request *request,
                               const struct as_target_view *target,
                               const struct target_filter *filter)
{
    const struct as_ruleset *ruleset = request->view.ruleset;
    struct as_buf *out = page_get_out(request);
    struct rule_links links = {.request = request, .target = target};
    bool reasons[AS_REASON_COUNT];
    find_reasons(request, target, filter, reasons);
    as_buf_append_str(out, "<nav class=\"states\" aria-label=\"Reasons\"><span class=\"dim\">"
                           "Reason</span>");
    print_filter_link(request, "reason", NULL);
    for (int i = 0; i < AS_REASON_COUNT; i++) {
        if (reasons[i])
            print_filter_link(request, "reason", as_reason_get_word((enum as_reason)i));
    }
    as_buf_append_str(
        out, "</nav>\n<nav class=\"states\" aria-label=\"Rules\"><span class=\"dim\">Rule</span>");
    print_filter_link(request, "rule", NULL);
    for (size_t i = 0, count = 0; i < ruleset->rule_count && count < RULE_LINKS_MAX; i++) {
        if (!target->config || ruleset->rules[i]->target != target->config)
            continue;
        print_rule_link(&links, ruleset->rules[i]->name);
        count++;
    }
    if (filter->rule && !links.has_present)
        print_rule_link(&links, filter->rule);
    as_buf_append_str(out, "</nav>\n");
}

/* More than this page has. */
static void print_events_link(const struct api_request *request,
                              const struct as_target_view *target)
{
    struct as_buf *out = page_get_out(request);
    AS_CLEANUP(as_buf_deinit) struct as_buf url = AS_BUF_INIT(PAGE_URL_MAX);
    as_buf_printf(&url, "%s/events?", page_root(request));
    html_query(&url, "target", target->id);
    page_append_query(request, "target", &url);
    if (as_buf_check(&url) != 0)
        return;
    as_buf_append_str(out, "<p>");
    html_link(out, url.data, "", "All events of the target");
    as_buf_append_str(out, "</p>\n");
}

static void print_history(const struct api_request *request, const struct as_target_view *target,
                          const struct target_filter *filter)
{
    struct as_buf *out = page_get_out(request);
    const struct page_older *older = request->api->older;
    page_part(request, "Decisions and actions");
    print_filter_links(request, target, filter);
    as_buf_append_str(out, "<h3>Latest actions</h3>\n");
    print_deeds(request, target, filter);
    as_buf_append_str(out, "<h3>Decisions</h3>\n");
    if (older && older->has_decisions && (older->is_broken || older->is_partial))
        html_element(out, "p", "dim",
                     "The action log could not be read to the end: decisions may be missing.");
    if (!older && filter->range->from.us < page_log_get_memory_begin(request).us)
        page_log_print_absence(request);
    if (older && older->is_cut)
        as_buf_printf(out,
                      "<p class=\"dim\">The search ended after %d decisions and actions. The page "
                      "of events has the older ones.</p>\n",
                      OLDER_ROWS_MAX);
    page_print_decisions(request, target->id, older ? &older->decisions : NULL, target_filter_wants,
                         filter, DECISIONS_SHOWN);
    print_events_link(request, target);
}

static void print_group_link(const struct api_request *request, const struct as_target_view *target)
{
    struct as_buf *out = page_get_out(request);
    const bool has_nodes =
        as_str_starts_with(target->id, "pool/") || as_str_starts_with(target->id, "node_group/");
    if (!has_nodes)
        return;
    as_buf_append_str(out, "<p>");
    page_link(request, page_get_out(request), "/groups/", target->id,
              "Its nodes, and pods that wait");
    as_buf_append_str(out, "</p>\n");
}

/* A line may break behind a slash. */
static void print_id(struct as_buf *out, const char *id)
{
    as_buf_append_str(out, "<p class=\"id\">");
    while (*id) {
        const size_t size = strcspn(id, "/") + (strchr(id, '/') != NULL);
        AS_CLEANUP(as_free_p) char *part = as_xstrndup(id, size);
        html_text(out, part);
        as_buf_append_str(out, "<wbr>");
        id += size;
    }
    as_buf_append_str(out, "</p>\n");
}

static void print_target(void *context, const struct as_target_view *target)
{
    struct api_request *request = context;
    struct as_buf *out = page_get_out(request);
    const char *title = *target->name ? target->name : target->id;
    struct page_range range;
    struct target_filter filter;
    if (!page_may_see_target(request, target->name, target->id)) {
        page_refuse(request, 404, "No such target", "There is no target of this name or id.");
        return;
    }
    if (!page_range_get(request, "1d", &range) || !target_filter_read(request, &range, &filter) ||
        page_waits_for_older(request, target, &range, &filter))
        return;
    const struct page_older *older = request->api->older;
    const bool is_late = older && (older->is_partial || older->is_broken);
    page_begin(request, &(struct page_head){.title = title,
                                            .place = PAGE_TARGETS,
                                            .document = "page.md#charts-and-time-ranges",
                                            .lasts_us = is_late ? 0 : page_range_get_lasts(&range),
                                            .has_form = page_has_orders(request, target)});
    print_id(out, target->id);
    print_now(request, target);
    print_notes(request, target);
    page_print_blocked_of(request, target);
    page_target_print_others(request, target);
    print_facts(request, target);
    print_group_link(request, target);
    page_print_approvals(request, target);
    page_print_orders(request, target);
    page_print_incidents(request, target->id);
    AS_CLEANUP(as_free_p)
    char *when = range.last ? as_xasprintf("The last %s", range.last) : as_xstrdup("Chosen time");
    page_part(request, when);
    page_range_print_links(request, &range);
    print_chart(request, target, &range);
    print_history(request, target, &filter);
    if (target->config) {
        page_part(request, "Rules that lead here");
        rule_rows_print_of(request, target->config);
    }
    page_end(request, 200);
}

void page_answer_target(struct api_request *request)
{
    AS_CLEANUP(as_free_p) char *wanted = api_decode_rest(request);
    if (!page_has_engine(request))
        return;
    if (as_str_is_empty(wanted) || !api_visit_target(request, wanted, print_target, request))
        page_refuse(request, 404, "No such target", "There is no target of this name or id.");
}
