/*
 * Two passes over the engine's incidents: one finds the order, one prints the rows of the page,
 * each into a text of its own. The engine gives them in another order, and only for the call.
 */
#include "page_incident_rows.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "page.h"
#include "page_answers.h"

#define ROWS_SHOWN    50 /* below 255: `ranks` */
#define ROW_BYTES_MAX ((size_t)64 * 1024)
#define LABELS_SHOWN  12
#define VALUE_SHOWN   160 /* bytes of a label's value */
#define TARGETS_SHOWN 5

struct place {
    int64_t opened;
    size_t number; /* in the engine's order */
};

struct listing {
    struct api_request *request;
    struct place *places;
    size_t count, capacity;
    size_t number; /* of the present incident, among those that may be seen */
    bool sees_all; /* the asking credential */
    struct page_slice slice;
    struct as_buf *rows; /* one for each place of the slice */
    uint8_t *ranks;      /* by number: which of the rows, from 1; 0: none */
};

static const char *find_name(const struct api_request *request, const char *target)
{
    return as_engine_find_name(request->view.engine, target);
}

static bool may_see(const struct listing *listing, const struct as_incident_target *targets,
                    size_t count)
{
    for (size_t i = 0; i < count && !listing->sees_all; i++) {
        if (page_may_see_rule(listing->request, targets[i].rule,
                              find_name(listing->request, targets[i].target), targets[i].target))
            return true;
    }
    return listing->sees_all;
}

static void find_place(void *context, const struct as_incident_state *state,
                       const struct as_incident_target *targets, size_t count)
{
    struct listing *listing = context;
    if (!state->is_open || !may_see(listing, targets, count))
        return;
    listing->places =
        as_xgrow(listing->places, listing->count, &listing->capacity, sizeof(*listing->places));
    listing->places[listing->count] = (struct place){state->opened.wall.us, listing->count};
    listing->count++;
}

static int compare_places(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    if (a->opened != b->opened)
        return a->opened > b->opened ? -1 : 1;
    return a->number < b->number ? -1 : 1;
}

static void print_cut(struct as_buf *out, const char *text)
{
    const size_t size = strlen(text);
    const size_t shown = as_str_cut_utf8(text, size, VALUE_SHOWN);
    AS_CLEANUP(as_free_p) char *start = as_xstrndup(text, shown);
    html_text(out, start);
    as_buf_append_str(out, shown < size ? "..." : "");
}

static void print_labels(struct as_buf *out, const struct as_labels *labels)
{
    uint32_t shown = 0;
    for (uint32_t i = 0; labels && i < labels->count; i++) {
        if (strcmp(labels->items[i].name, "alertname") == 0)
            continue;
        if (shown++ == LABELS_SHOWN) {
            as_buf_printf(out, " <span class=\"dim\">and %u more</span>",
                          (unsigned)(labels->count - i));
            break;
        }
        as_buf_append_str(out, "<code>");
        html_text(out, labels->items[i].name);
        as_buf_append_str(out, "=");
        print_cut(out, labels->items[i].value);
        as_buf_append_str(out, "</code> ");
    }
}

/* What Prometheus' users write for people, and a link to what is to be done. */
static void print_annotations(struct as_buf *out, const struct as_labels *annotations)
{
    static const char *const texts[] = {"summary", "description"};
    static const char *const links[][2] = {{"runbook_url", "runbook"},
                                           {"dashboard_url", "dashboard"}};
    for (size_t i = 0; annotations && i < AS_ARRAY_SIZE(texts); i++) {
        const char *text = as_labels_find(annotations, texts[i]);
        if (!text)
            continue;
        html_element(out, "p", NULL, text);
        break;
    }
    for (size_t i = 0; annotations && i < AS_ARRAY_SIZE(links); i++) {
        const char *url = as_labels_find(annotations, links[i][0]);
        if (!url)
            continue;
        as_buf_append_str(out, "<p>");
        html_outside_link(out, url, links[i][1]);
        as_buf_append_str(out, "</p>");
    }
}

static void print_targets(const struct api_request *request, struct as_buf *out,
                          const struct as_incident_target *targets, size_t count)
{
    size_t shown = 0;
    for (size_t i = 0; i < count; i++) {
        const char *name = find_name(request, targets[i].target);
        if (!page_may_see_rule(request, targets[i].rule, name, targets[i].target))
            continue;
        if (shown++ == TARGETS_SHOWN) {
            as_buf_printf(out, "<p class=\"dim\">and %zu more</p>", count - i);
            break;
        }
        as_buf_append_str(out, "<p>");
        page_link_target(request, out, targets[i].target, name);
        as_buf_append_str(out, " by ");
        page_link_rule(request, out, targets[i].rule);
        as_buf_append_str(out, "</p>");
    }
}

static const struct html_column columns[] = {
    {.title = "Alert"}, {.title = "Open for"}, {.title = "Seen"}, {.title = "Targets"}};

static void print_row(struct listing *listing, struct as_buf *row,
                      const struct as_incident_state *state,
                      const struct as_incident_target *targets, size_t count)
{
    const struct api_request *request = listing->request;
    const as_mono_time now = request->view.mono;
    const char *alert = as_labels_get(state->labels, "alertname");
    struct html_table table = {.out = row, .columns = columns, .count = AS_ARRAY_SIZE(columns)};
    html_row_begin(&table);
    html_cell(&table);
    html_element(row, "b", NULL, *alert ? alert : "an alert without a name");
    as_buf_append_char(row, ' ');
    if (as_moment_is_set(state->silenced))
        page_print_pill(row, "warn", "silenced");
    print_labels(row, state->labels);
    print_annotations(row, state->annotations);
    html_cell(&table);
    page_print_span(row, now.us - state->opened.mono.us);
    html_cell(&table);
    page_print_span(row, now.us - state->seen.mono.us);
    as_buf_append_str(row, "\u00a0ago");
    html_cell(&table);
    print_targets(request, row, targets, count);
    html_row_end(&table);
}

static void print_if_shown(void *context, const struct as_incident_state *state,
                           const struct as_incident_target *targets, size_t count)
{
    struct listing *listing = context;
    if (!state->is_open || !may_see(listing, targets, count))
        return;
    const uint8_t rank = listing->ranks[listing->number++];
    if (rank > 0)
        print_row(listing, &listing->rows[rank - 1], state, targets, count);
}

static void print_rows(struct listing *listing)
{
    struct as_buf *out = page_get_out(listing->request);
    const size_t count = listing->slice.to - listing->slice.from;
    struct html_table table;
    listing->rows = as_xcalloc(count, sizeof(*listing->rows));
    listing->ranks = as_xcalloc(listing->count, sizeof(*listing->ranks));
    for (size_t i = 0; i < count; i++) {
        listing->rows[i] = AS_BUF_INIT_OPEN(ROW_BYTES_MAX);
        listing->ranks[listing->places[listing->slice.from + i].number] = (uint8_t)(i + 1);
    }
    as_engine_visit_incidents(listing->request->view.engine, print_if_shown, listing);
    html_table_begin(&table, out, "Open incidents", columns, AS_ARRAY_SIZE(columns));
    for (size_t i = 0; i < count; i++) {
        if (as_buf_check(&listing->rows[i]) == 0)
            as_buf_append(out, listing->rows[i].data, listing->rows[i].size);
        else
            as_buf_append_str(out, "<tr role=\"row\"><td role=\"cell\">An incident with very long "
                                   "texts: the API has it.</td></tr>");
        as_buf_deinit(&listing->rows[i]);
    }
    html_table_end(&table);
    free(listing->rows);
    free(listing->ranks);
}

size_t incident_rows_print(struct api_request *request, size_t size, const char *path)
{
    const struct as_view *view = &request->view;
    struct listing listing = {
        .request = request,
        .sees_all = as_scope_is_whole(view->scopes, view->scope_count, request->who),
    };
    as_engine_visit_incidents(view->engine, find_place, &listing);
    if (listing.count > 1)
        qsort(listing.places, listing.count, sizeof(*listing.places), compare_places);
    listing.slice = path ? page_slice_get(request, listing.count, size)
                         : (struct page_slice){.to = listing.count < size ? listing.count : size};
    if (listing.count > 0)
        print_rows(&listing);
    else
        html_element(page_get_out(request), "p", "dim", "No alert that a rule matches is firing.");
    if (path)
        page_slice_print(request, &listing.slice, path);
    free(listing.places);
    return listing.count;
}

void page_answer_incidents(struct api_request *request)
{
    if (!page_has_engine(request))
        return;
    page_begin(request, &(struct page_head){.title = "Open incidents", .place = PAGE_INCIDENTS});
    (void)incident_rows_print(request, ROWS_SHOWN, "/incidents");
    page_end(request, 200);
}
