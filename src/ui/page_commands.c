/*
 * What is blocked for a time, and the forms of operator commands. The program that reads the forms
 * is forms.c.
 */
#include <inttypes.h>
#include <string.h>

#include <event2/http.h>

#include <alertscaler/auth/auth.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/decide/target.h>

#include "api_private.h"
#include "page.h"

/*
 * What is held for a time: targets that are left alone because others set their sizes back, and
 * rules that did not help. Each can be ended by resuming the target. And of one target what rules
 * and schedules hold, which end by themselves.
 */

#define ROWS_SHOWN 100

struct listing {
    const struct api_request *request;
    struct html_table table;
    size_t count; /* of what the request's credential may see */
};

static void print_why_contended(struct as_buf *out, const struct as_target_view *target)
{
    const struct as_reverted_change *last =
        &target->reverted_changes[target->reverted_change_count - 1];
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
    if (!as_moment_is_set(target->contended_until) || target->reverted_change_count == 0 ||
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

void page_print_blocked(struct api_request *request)
{
    const struct as_view *view = &request->view;
    struct listing listing = {.request = request};
    if (request->contended > 0)
        as_engine_visit_targets(view->engine, view->mono, view->wall, list_contended, &listing);
    as_engine_visit_ineffective(view->engine, NULL, view->mono, view->wall, list_ineffective,
                                &listing);
    if (listing.count > 0)
        html_table_end(&listing.table);
    if (listing.count > ROWS_SHOWN)
        as_buf_printf(page_get_out(request), "<p class=\"dim\">and %zu more</p>\n",
                      listing.count - ROWS_SHOWN);
}

struct held {
    const struct api_request *request;
    bool prints, is_any;
};

static void note_ineffective(void *context, const struct as_ineffective_view *view)
{
    struct held *held = context;
    struct as_buf *out = page_get_out(held->request);
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
    struct held held = {.request = request, .prints = prints};
    as_engine_visit_ineffective(view->engine, target->ref, view->mono, view->wall, note_ineffective,
                                &held);
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

/* "Nothing goes down: a rollout is under way. This holds until 10:30 at the latest." */
static void print_rollout(const struct api_request *request, const struct as_hold_view *hold)
{
    struct as_buf *out = page_get_out(request);
    as_buf_append_str(out, "<p class=\"note warn\">Nothing goes down: ");
    if (hold->until.set) {
        as_buf_append_str(out, "a rollout is under way. This holds until ");
        page_print_time(request, hold->until.at);
        as_buf_append_str(out, " at the latest.</p>\n");
        return;
    }
    as_buf_append_str(out, "the progress of the rollout is not known: ");
    html_text(out, hold->name);
    as_buf_append_str(out, ".</p>\n");
}

/* "Nothing goes down: the rule upstream holds it while its alert fires." */
static void print_block(void *context, const struct as_hold_view *hold)
{
    const struct holding *holding = context;
    const struct api_request *request = holding->request;
    struct as_buf *out = page_get_out(request);
    if (!may_see_holder(holding, hold))
        return;
    if (hold->by == AS_HOLDER_ROLLOUT) {
        print_rollout(request, hold);
        return;
    }
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

void page_print_blocked_of(const struct api_request *request, const struct as_target_view *target)
{
    const struct as_view *view = &request->view;
    struct as_buf *out = page_get_out(request);
    if (as_moment_is_set(target->contended_until) && target->reverted_change_count > 0) {
        as_buf_append_str(out, "<p class=\"note warn\">");
        print_why_contended(out, target);
        as_buf_append_str(out, ": it is left alone until ");
        page_print_time(request, target->contended_until.wall);
        as_buf_append_str(out, ", or until it is resumed.</p>\n");
    }
    (void)visit_ineffective(request, target, true);
    struct holding holding = {request, target};
    as_engine_visit_holds(view->engine, target->ref, view->mono, view->wall, print_block, &holding);
}

static bool page_is_blocked(const struct api_request *request, const struct as_target_view *target)
{
    return as_moment_is_set(target->contended_until) || visit_ineffective(request, target, false);
}
/*
 * Each command has a form with a reason of its own.
 */

#define PATH_MAX_BYTES ((size_t)16 * 1024)
#define FIELDS_MAX     ((size_t)32 * 1024)

bool page_has_orders(const struct api_request *request, const struct as_target_view *target)
{
    const struct as_view *view = &request->view;
    if (!view->engine || api_parameter_find(request, "refresh") ||
        !as_auth_may_order(request->exchange))
        return false;
    return target ? page_may_see_target(request, target->name, target->id)
                  : as_scope_is_whole(view->scopes, view->scope_count, request->who);
}

void page_begin_form(const struct api_request *request, const char *path)
{
    struct as_buf *out = page_get_out(request);
    char seal[AS_FORM_TOKEN_SIZE];
    as_auth_seal(request->exchange, AS_FORM_SEALED, seal);
    as_buf_append_str(out, "<form class=\"order\" method=\"post\" action=\"");
    html_text(out, page_root(request));
    html_text(out, path);
    as_buf_printf(out, "\">\n<input type=\"hidden\" name=\"form\" value=\"%s\">\n", seal);
    explicit_bzero(seal, sizeof(seal));
}

/* A form's fields keep what was typed, if the order of this path was refused. */
static bool has_typed(const struct api_request *request, const char *place, const char *word)
{
    const char *form = request->refused_form;
    return form && as_str_starts_with(form, place) && form[strlen(place)] == '/' &&
           strcmp(form + strlen(place) + 1, word) == 0;
}

/* `fallback`: the value before anything was typed; NULL: none. */
static void print_typed(const struct api_request *request, const char *name, bool is_kept,
                        const char *fallback, struct as_buf *out)
{
    const char *kept = is_kept ? evhttp_find_header(&request->typed, name) : fallback;
    if (kept)
        html_attribute(out, "value", kept);
    if (is_kept && as_str_equal(request->refused_field, name))
        as_buf_append_str(out, " aria-invalid=\"true\" aria-describedby=\"problem\" autofocus");
}

static void print_pause_fields(const struct api_request *request, const char *place,
                               struct as_buf *out)
{
    static const char *const ways[][2] = {
        {"both", "both directions"}, {"down", "only scaling down"}, {"up", "only scaling up"}};
    const bool is_kept = has_typed(request, place, "pause");
    const char *chosen = is_kept ? evhttp_find_header(&request->typed, "direction") : NULL;
    as_buf_append_str(out, "<label>For how long<input name=\"for\" placeholder=\"until resumed\" "
                           "autocomplete=\"off\"");
    print_typed(request, "for", is_kept, NULL, out);
    as_buf_append_str(out, "></label>\n<label>What<select name=\"direction\">");
    for (size_t i = 0; i < AS_ARRAY_SIZE(ways); i++)
        as_buf_printf(out, "<option value=\"%s\"%s>%s</option>", ways[i][0],
                      as_str_equal(chosen, ways[i][0]) ? " selected" : "", ways[i][1]);
    as_buf_append_str(out, "</select></label>\n");
}

void page_print_order(const struct api_request *request, const struct page_order *order)
{
    struct as_buf *out = page_get_out(request);
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(PATH_MAX_BYTES);
    as_buf_printf(&path, "%s/%s", order->place, order->word);
    if (as_buf_check(&path) != 0)
        return;
    const bool is_kept = has_typed(request, order->place, order->word);
    as_buf_append_str(out, "<details class=\"order\"");
    html_attribute(out, "data-key", path.data);
    as_buf_append_str(out, is_kept ? " open><summary>" : "><summary>");
    html_text(out, order->title);
    as_buf_append_str(out, "</summary>\n");
    if (is_kept) {
        as_buf_append_str(out, "<p id=\"problem\" class=\"note bad\">");
        html_text(out, api_parameter_find(request, PAGE_REFUSED));
        as_buf_append_str(out, "</p>\n");
    }
    page_begin_form(request, path.data);
    as_buf_append_str(out, order->fields);
    as_buf_printf(out,
                  "<label>Reason<input name=\"reason\"%s maxlength=\"1000\" "
                  "autocomplete=\"off\"",
                  order->needs_reason ? " required" : "");
    print_typed(request, "reason", is_kept, NULL, out);
    as_buf_append_str(out, "></label>\n");
    html_element(out, "button", NULL, order->title);
    as_buf_append_str(out, "</form></details>\n");
}

static void page_print_form(const struct api_request *request, const char *place, const char *word,
                            const char *title, const char *fields)
{
    page_print_order(request, &(struct page_order){place, word, title, fields, true});
}

/* What its bounds are, and its size now. */
static void print_scale_form(const struct api_request *request, const char *place,
                             const struct as_target_view *target)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf fields = AS_BUF_INIT(FIELDS_MAX);
    const bool is_kept = has_typed(request, place, "scale");
    char size[16];
    (void)snprintf(size, sizeof(size), "%" PRId32, target->desired);
    as_buf_append_str(&fields, "<label>Size<input name=\"replicas\" type=\"number\" min=\"0\" "
                               "max=\"2147483647\" required");
    print_typed(request, "replicas", is_kept, target->has_size ? size : NULL, &fields);
    as_buf_append_str(&fields, "></label>\n<label class=\"check\"><input name=\"force\" "
                               "type=\"checkbox\" value=\"true\"");
    if (is_kept && evhttp_find_header(&request->typed, "force"))
        as_buf_append_str(&fields, " checked");
    as_buf_append_str(&fields, "> Ignore its bounds");
    if (target->config) {
        as_buf_append_str(&fields, " (");
        target_print_bounds(&fields, target);
        as_buf_append_char(&fields, ')');
    }
    as_buf_append_str(&fields, "</label>\n");
    page_print_form(request, place, "scale", "Scale", fields.data);
}

static void print_floor_form(const struct api_request *request, const char *place,
                             const struct as_target_view *target)
{
    static const char end[] = "<input type=\"hidden\" name=\"end\" value=\"true\">\n";
    AS_CLEANUP(as_buf_deinit) struct as_buf fields = AS_BUF_INIT(FIELDS_MAX);
    const bool is_kept = has_typed(request, place, "floor");
    if (target->floor.size > 0) {
        page_print_form(request, place, "floor", "End the floor", end);
        return;
    }
    as_buf_append_str(&fields, "<label>Not below<input name=\"replicas\" type=\"number\" "
                               "min=\"1\" max=\"2147483647\" required");
    print_typed(request, "replicas", is_kept, NULL, &fields);
    as_buf_append_str(&fields, "></label>\n<label>For how long<input name=\"for\" "
                               "placeholder=\"2h\" required autocomplete=\"off\"");
    print_typed(request, "for", is_kept, NULL, &fields);
    as_buf_append_str(&fields, "></label>\n");
    page_print_form(request, place, "floor", "Floor", fields.data);
}

static void print_pause_form(const struct api_request *request, const char *place,
                             const char *title)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf fields = AS_BUF_INIT(FIELDS_MAX);
    print_pause_fields(request, place, &fields);
    page_print_form(request, place, "pause", title, fields.data);
}

static void print_orders_of_all(const struct api_request *request)
{
    const struct as_view *view = &request->view;
    if (as_engine_get_pause(view->engine, view->mono, view->wall).is_set)
        page_print_form(request, "", "resume", "Resume all targets", "");
    else
        print_pause_form(request, "", "Pause all targets");
}

static void print_orders_of(const struct api_request *request, const struct as_target_view *target)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf place = AS_BUF_INIT(PATH_MAX_BYTES);
    as_buf_append_str(&place, "/targets/");
    as_encode_percent(&place, target->id, strlen(target->id), "");
    if (as_buf_check(&place) != 0)
        return; /* no request could have this path */
    if (target->pause.is_set || page_is_blocked(request, target))
        page_print_form(request, place.data, "resume", "Resume", "");
    if (!target->pause.is_set)
        print_pause_form(request, place.data, "Pause");
    print_scale_form(request, place.data, target);
    print_floor_form(request, place.data, target);
    if (as_moment_is_set(target->up_locked_until) || as_moment_is_set(target->down_locked_until))
        page_print_form(request, place.data, "unlock", "Unlock", "");
}

void page_print_orders(const struct api_request *request, const struct as_target_view *target)
{
    if (!page_has_orders(request, target))
        return;
    page_part(request, "Actions");
    if (target)
        print_orders_of(request, target);
    else
        print_orders_of_all(request);
}
