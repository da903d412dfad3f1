/*
 * What is held for a time: targets that are left alone because others set their sizes back, and
 * rules that did not help. Each can be ended by resuming the target. And of one target what rules
 * and schedules hold, which end by themselves.
 */
#include <alertscaler/base/attr.h>
#include <alertscaler/base/unit.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/model/forbidden.h>

#include "page.h"

#define ROWS_SHOWN 100

struct listing {
    const struct api_request *request;
    struct html_table table;
    size_t count; /* of what the request's credential may see */
};

static void print_why_contended(struct as_buf *out, const struct as_target_view *target)
{
    const struct as_set_back *last = &target->set_backs[target->set_back_count - 1];
    char size[AS_SIZE_TEXT_SIZE];
    html_text(out, *last->by ? last->by : "Somebody else");
    as_buf_printf(out, " has set its size back to %s",
                  as_unit_print_size(as_sized_get_unit(target->ref), last->found, size));
}

/* Begins a row, and the table before the first. False: there is no room for it. */
static bool begin_row(struct listing *listing, const char *id, const char *name)
{
    static const struct html_column columns[] = {
        {.title = "Target"}, {.title = "Why"}, {.title = "Until"}};
    struct as_buf *out = page_get_out(listing->request);
    if (listing->count == 0) {
        page_part(listing->request, "Held");
        html_table_begin(&listing->table, out, "Held", columns, AS_ARRAY_SIZE(columns));
    }
    if (listing->count++ >= ROWS_SHOWN)
        return false;
    html_row_begin(&listing->table);
    html_cell(&listing->table);
    page_link_target(listing->request, out, id, name);
    html_cell(&listing->table);
    return true;
}

static void end_row(struct listing *listing, as_wall_time until)
{
    html_cell(&listing->table);
    page_print_time(listing->request, until);
    html_row_end(&listing->table);
}

static void list_contended(void *context, const struct as_target_view *target)
{
    struct listing *listing = context;
    if (!as_moment_is_set(target->contended_until) || target->set_back_count == 0 ||
        !page_may_see_target(listing->request, target->name, target->id) ||
        !begin_row(listing, target->id, target->name))
        return;
    print_why_contended(page_get_out(listing->request), target);
    end_row(listing, target->contended_until.wall);
}

static void list_ineffective(void *context, const struct as_ineffective_view *view)
{
    struct listing *listing = context;
    struct as_buf *out = page_get_out(listing->request);
    if (!page_may_see_rule(listing->request, view->rule, view->target_name, view->ref->id) ||
        !begin_row(listing, view->ref->id, view->target_name))
        return;
    as_buf_append_str(out, "rule ");
    page_link_rule(listing->request, out, view->rule);
    as_buf_append_str(out, " did not help");
    end_row(listing, view->until.wall);
}

void page_print_held(struct api_request *request)
{
    const struct as_view *view = &request->view;
    struct listing listing = {.request = request};
    as_engine_visit_targets(view->engine, view->mono, view->wall, list_contended, &listing);
    as_engine_visit_ineffective(view->engine, view->mono, view->wall, list_ineffective, &listing);
    if (listing.count > 0)
        html_table_end(&listing.table);
    if (listing.count > ROWS_SHOWN)
        as_buf_printf(page_get_out(request), "<p class=\"dim\">and %zu more</p>\n",
                      listing.count - ROWS_SHOWN);
}

struct held {
    const struct api_request *request;
    const struct as_target_ref *ref;
    bool prints, is_any;
};

static void note_ineffective(void *context, const struct as_ineffective_view *view)
{
    struct held *held = context;
    struct as_buf *out = page_get_out(held->request);
    if (view->ref != held->ref)
        return;
    held->is_any = true;
    if (!held->prints ||
        !page_may_see_rule(held->request, view->rule, view->target_name, view->ref->id))
        return;
    as_buf_append_str(out, "<p class=\"note warn\">The last actions of the rule ");
    page_link_rule(held->request, out, view->rule);
    as_buf_append_str(out, " did not help: it is held here until ");
    page_print_time(held->request, view->until.wall);
    as_buf_append_str(out, ", or until the target is resumed.</p>\n");
}

static bool visit_ineffective(const struct api_request *request,
                              const struct as_target_view *target, bool prints)
{
    const struct as_view *view = &request->view;
    struct held held = {.request = request, .ref = target->ref, .prints = prints};
    as_engine_visit_ineffective(view->engine, view->mono, view->wall, note_ineffective, &held);
    return held.is_any;
}

struct holding {
    const struct api_request *request;
    const struct as_target_view *target;
};

static bool may_see_holder(const struct holding *holding, const struct as_hold_view *hold)
{
    const struct as_target_view *target = holding->target;
    return hold->by != AS_HOLDER_RULE ||
           page_may_see_rule(holding->request, hold->name, target->name, target->id);
}

/* "Nothing goes down: the rule upstream holds it while its alert fires." */
static void print_hold(void *context, const struct as_hold_view *hold)
{
    const struct holding *holding = context;
    const struct api_request *request = holding->request;
    struct as_buf *out = page_get_out(request);
    if (!may_see_holder(holding, hold))
        return;
    as_buf_printf(out, "<p class=\"note warn\">Nothing goes %s: the %s ",
                  hold->ways == AS_WAYS_BOTH ? "up or down" : as_ways_get_word(hold->ways),
                  as_holder_get_word(hold->by));
    html_element(out, "code", NULL, hold->name);
    as_buf_append_str(out, " holds it");
    if (hold->by == AS_HOLDER_RULE)
        as_buf_append_str(out, " while its alert fires");
    if (hold->until.set) {
        as_buf_append_str(out, " until ");
        page_print_time(request, hold->until.at);
    }
    as_buf_append_str(out, ".</p>\n");
}

void page_print_held_of(const struct api_request *request, const struct as_target_view *target)
{
    const struct as_view *view = &request->view;
    struct as_buf *out = page_get_out(request);
    if (as_moment_is_set(target->contended_until) && target->set_back_count > 0) {
        as_buf_append_str(out, "<p class=\"note warn\">");
        print_why_contended(out, target);
        as_buf_append_str(out, ": it is left alone until ");
        page_print_time(request, target->contended_until.wall);
        as_buf_append_str(out, ", or until it is resumed.</p>\n");
    }
    (void)visit_ineffective(request, target, true);
    struct holding holding = {request, target};
    as_engine_visit_holds(view->engine, target->ref, view->mono, view->wall, print_hold, &holding);
}

bool page_is_held(const struct api_request *request, const struct as_target_view *target)
{
    return as_moment_is_set(target->contended_until) || visit_ineffective(request, target, false);
}
