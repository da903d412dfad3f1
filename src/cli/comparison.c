/*
 * A comparison of sizes before with those under other rules, target by target: figures, the first
 * differences, requests for approvals; as a table, as JSON, and as one chart per target. Memory
 * depends only on the number of targets.
 *
 * A difference counts only after some time: an action that took milliseconds in the log is
 * immediate in a simulation, and a query may be answered a moment later.
 */
#include "comparison.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <bsd/sys/tree.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/ui/chart.h>

/*
 * The size so far is weighted when the next one comes.
 */

void size_figures_end(struct size_figures *figures, int64_t at)
{
    if (!figures->is_set || at <= figures->at)
        return;
    figures->replica_us += (double)figures->size * (double)(at - figures->at);
    if (figures->size >= figures->limit)
        figures->at_limit_us += at - figures->at;
    figures->at = at;
}

void size_figures_set(struct size_figures *figures, int64_t at, int32_t size, int32_t limit)
{
    size_figures_end(figures, at);
    if (!figures->is_set) {
        figures->is_set = true;
        figures->min = figures->max = size;
        figures->from = figures->at = at;
    }
    figures->size = size;
    figures->limit = limit;
    figures->min = size < figures->min ? size : figures->min;
    figures->max = size > figures->max ? size : figures->max;
}

double size_figures_get_mean(const struct size_figures *figures)
{
    const int64_t span = figures->at - figures->from;
    return span > 0 ? figures->replica_us / (double)span : figures->size;
}

double size_figures_get_replica_hours(const struct size_figures *figures)
{
    return figures->replica_us / (double)AS_US_PER_H;
}

#define DIFFERENCES_SHOWN 5
#define ASKED_SHOWN       5
#define ROWS_SHOWN        20 /* targets of a list */

struct difference {
    int64_t from, to;
    int32_t sizes[COMPARISON_SIDES];
};

struct asked {
    int64_t at;
    int32_t from, to;
    char *rule, *unit;
};

struct compared {
    RB_ENTRY(compared) by_id;
    char *id, *name;
    const struct as_target_config *config; /* in the tried rules; NULL: none of that name */
    char *unit;                            /* of its sizes (decide/sized.h); NULL: none is known */
    bool shares_name;                      /* with other targets: known at the end */
    struct size_figures sides[COMPARISON_SIDES];
    bool follows_rules[COMPARISON_SIDES]; /* limits: COMPARISON_LIMIT_OF_RULES */
    struct as_timeline lines[COMPARISON_SIDES];
    struct as_timeline_band bands[AS_TIMELINE_BANDS_MAX];
    size_t band_count;
    bool differs, is_counted;
    int64_t differs_since, differed_us;
    struct difference differences[DIFFERENCES_SHOWN];
    uint64_t difference_count;
    struct asked asked[ASKED_SHOWN]; /* under the new rules, the first ones */
    uint64_t asked_count;
};

RB_HEAD(compared_tree, compared);

struct comparison {
    const struct as_ruleset *ruleset;
    struct compared_tree targets;
    size_t count;
    bool with_charts;
    int64_t from, to;
};

/* Its name; its id if other targets have the same name. */
static inline const char *compared_get_label(const struct compared *target)
{
    return target->shares_name ? target->id : target->name;
}

/* --- collecting --- */

static size_t count_listed_requests(const struct compared *target)
{
    return target->asked_count < ASKED_SHOWN ? (size_t)target->asked_count : ASKED_SHOWN;
}

static void compared_free_asked(struct compared *target)
{
    for (size_t i = 0; i < count_listed_requests(target); i++) {
        free(target->asked[i].rule);
        free(target->asked[i].unit);
    }
}

#define LASTS_US (10 * AS_US_PER_S)

static int compared_compare(const struct compared *a, const struct compared *b)
{
    return strcmp(a->id, b->id);
}

RB_GENERATE_INTERNAL(compared_tree, compared, by_id, compared_compare,
                     __attribute__((unused)) static)

struct comparison *comparison_new(const struct as_ruleset *ruleset, bool with_charts)
{
    struct comparison *comparison = as_xcalloc(1, sizeof(*comparison));
    comparison->ruleset = ruleset;
    comparison->with_charts = with_charts;
    comparison->from = INT64_MAX;
    RB_INIT(&comparison->targets);
    return comparison;
}

static void free_target(struct compared *target)
{
    for (size_t i = 0; i < COMPARISON_SIDES; i++)
        as_timeline_deinit(&target->lines[i]);
    for (size_t i = 0; i < target->band_count; i++)
        as_timeline_band_deinit(&target->bands[i]);
    compared_free_asked(target);
    free(target->id);
    free(target->name);
    free(target->unit);
    free(target);
}

struct comparison *comparison_free(struct comparison *comparison)
{
    struct compared *target, *next;

    if (!comparison)
        return NULL;
    RB_FOREACH_SAFE (target, compared_tree, &comparison->targets, next) {
        RB_REMOVE(compared_tree, &comparison->targets, target);
        free_target(target);
    }
    free(comparison);
    return NULL;
}

static struct compared *comparison_find_target(struct comparison *comparison, const char *id)
{
    struct compared key = {.id = (char *)(uintptr_t)id};
    return RB_FIND(compared_tree, &comparison->targets, &key);
}

static void set_name(const struct comparison *comparison, struct compared *target, const char *name)
{
    const struct as_ruleset *ruleset = comparison->ruleset;
    target->name = as_xstrdup(name);
    for (size_t i = 0; i < ruleset->target_count && !target->config; i++) {
        if (strcmp(ruleset->targets[i]->name, name) == 0)
            target->config = ruleset->targets[i];
    }
}

/* Created if it is new; `name` may be NULL. */
static struct compared *comparison_get_target(struct comparison *comparison, const char *id,
                                              const char *name)
{
    struct compared *target = comparison_find_target(comparison, id);
    if (target && name && strcmp(target->name, target->id) == 0) { /* its name was unknown */
        free(target->name);
        set_name(comparison, target, name);
    }
    if (target)
        return target;
    target = as_xcalloc(1, sizeof(*target));
    target->id = as_xstrdup(id);
    set_name(comparison, target, name && *name ? name : id);
    RB_INSERT(compared_tree, &comparison->targets, target);
    comparison->count++;
    return target;
}

/* Counts the present difference if it has lasted long enough by `at`. */
static void follow_difference(struct compared *target, int64_t at)
{
    if (!target->differs || at - target->differs_since < LASTS_US)
        return;
    if (!target->is_counted) {
        target->is_counted = true;
        target->difference_count++;
        if (target->difference_count <= DIFFERENCES_SHOWN)
            target->differences[target->difference_count - 1] = (struct difference){
                .from = target->differs_since,
                .sizes = {target->sides[COMPARISON_BEFORE].size,
                          target->sides[COMPARISON_AFTER].size},
            };
    }
    if (target->difference_count <= DIFFERENCES_SHOWN)
        target->differences[target->difference_count - 1].to = at;
}

static void end_difference(struct compared *target, int64_t at)
{
    if (target->is_counted)
        target->differed_us += at - target->differs_since;
    target->differs = target->is_counted = false;
}

static void compare_sizes(struct compared *target, int64_t at)
{
    const struct size_figures *before = &target->sides[COMPARISON_BEFORE];
    const struct size_figures *after = &target->sides[COMPARISON_AFTER];
    const bool differs = before->is_set && after->is_set && before->size != after->size;

    if (!differs && target->differs)
        end_difference(target, at);
    else if (differs && !target->differs)
        target->differs_since = at;
    target->differs = differs;
}

static int32_t comparison_get_limit(const struct compared *target, int64_t at)
{
    return target->config ? as_target_config_get_bounds(target->config, (as_wall_time){at}).max
                          : AS_SIZE_MAX;
}

/* The limit changes with the schedules, also while the size stays. */
static void follow_limit(struct compared *target, enum comparison_side side, int64_t at)
{
    struct size_figures *figures = &target->sides[side];
    while (figures->is_set && target->config && target->follows_rules[side]) {
        const as_maybe_time change =
            as_target_config_get_bounds(target->config, (as_wall_time){figures->at}).change;
        if (!change.set || change.at.us >= at)
            break;
        size_figures_set(figures, change.at.us, figures->size,
                         comparison_get_limit(target, change.at.us));
    }
}

void comparison_set_size(struct comparison *comparison, enum comparison_side side, const char *id,
                         const char *name, as_wall_time at, int32_t size, int32_t limit)
{
    struct compared *target = comparison_get_target(comparison, id, name);

    comparison->from = at.us < comparison->from ? at.us : comparison->from;
    follow_difference(target, at.us);
    follow_limit(target, side, at.us);
    target->follows_rules[side] = limit == COMPARISON_LIMIT_OF_RULES;
    size_figures_set(&target->sides[side], at.us, size,
                     target->follows_rules[side] ? comparison_get_limit(target, at.us) : limit);
    compare_sizes(target, at.us);
    if (comparison->with_charts)
        as_timeline_add(&target->lines[side], at.us, size);
}

void comparison_set_unit(struct comparison *comparison, const char *id, const char *unit)
{
    struct compared *target = comparison_find_target(comparison, id);

    if (!target || as_str_is_empty(unit))
        return;
    free(target->unit);
    target->unit = as_xstrdup(unit);
}

void comparison_count_action(struct comparison *comparison, enum comparison_side side,
                             const char *id, const char *name, bool is_up)
{
    struct compared *target = comparison_get_target(comparison, id, name);

    if (is_up)
        target->sides[side].ups++;
    else
        target->sides[side].downs++;
}

static struct as_timeline_band *comparison_get_band(struct compared *target, const char *alert)
{
    for (size_t i = 0; i < target->band_count; i++) {
        if (strcmp(target->bands[i].name, alert) == 0)
            return &target->bands[i];
    }
    struct as_timeline_band *last = &target->bands[AS_TIMELINE_BANDS_MAX - 1];
    if (target->band_count == AS_TIMELINE_BANDS_MAX) {
        free(last->name);
        last->name = as_xstrdup("and others");
        return last;
    }
    struct as_timeline_band *band = &target->bands[target->band_count++];
    band->name = as_xstrdup(alert);
    return band;
}

void comparison_set_alert(struct comparison *comparison, const char *id, const char *alert,
                          as_wall_time at, bool fires)
{
    struct compared *target =
        comparison->with_charts ? comparison_get_target(comparison, id, NULL) : NULL;

    if (!target)
        return;
    if (fires)
        as_timeline_band_begin(comparison_get_band(target, alert), at.us);
    else
        as_timeline_band_end(comparison_get_band(target, alert), at.us);
}

static int comparison_compare_names(const void *left, const void *right)
{
    const struct compared *const *a = left, *const *b = right;
    return strcmp((*a)->name, (*b)->name);
}

static void find_shared_names(struct comparison *comparison)
{
    struct compared **list = as_xcalloc(comparison->count + 1, sizeof(*list)), *target;
    size_t count = 0;

    RB_FOREACH (target, compared_tree, &comparison->targets)
        list[count++] = target;
    qsort(list, count, sizeof(*list), comparison_compare_names);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(list[i - 1]->name, list[i]->name) == 0)
            list[i - 1]->shares_name = list[i]->shares_name = true;
    }
    free(list);
}

void comparison_end(struct comparison *comparison, as_wall_time at)
{
    struct compared *target;

    find_shared_names(comparison);
    comparison->to = at.us;
    if (comparison->from > at.us)
        comparison->from = at.us;
    RB_FOREACH (target, compared_tree, &comparison->targets) {
        follow_difference(target, at.us);
        end_difference(target, at.us);
        for (enum comparison_side i = 0; i < COMPARISON_SIDES; i++) {
            follow_limit(target, i, at.us);
            size_figures_end(&target->sides[i], at.us);
        }
        for (size_t i = 0; i < target->band_count; i++)
            as_timeline_band_close(&target->bands[i], at.us);
    }
}

/* --- requests for approvals under the tried rules --- */

void comparison_note_request(struct comparison *comparison, as_wall_time at,
                             const struct as_approval_record *record)
{
    const struct as_approval_state *request = record->request;
    struct compared *target;

    if (record->event != AS_APPROVAL_ON_ASKED)
        return;
    target = comparison_get_target(comparison, record->target, record->target_name);
    if (target->asked_count++ < ASKED_SHOWN)
        target->asked[target->asked_count - 1] = (struct asked){
            .at = at.us,
            .from = request->from,
            .to = request->to,
            .rule = as_xstrdup(request->rule),
            .unit = as_xstrdup(record->unit),
        };
}

static void print_asked(const struct compared *target, const struct asked *asked, FILE *out)
{
    char at[AS_RFC3339_SIZE], from[AS_SIZE_TEXT_SIZE], to[AS_SIZE_TEXT_SIZE];

    as_wall_time_print_short((as_wall_time){asked->at}, at);
    fputs("  ", out);
    as_safe_text_put(out, compared_get_label(target));
    fprintf(out, " %s: from %s to %s, by ", at, as_unit_print_size(asked->unit, asked->from, from),
            as_unit_print_size(asked->unit, asked->to, to));
    as_safe_text_put(out, asked->rule);
    fputc('\n', out);
}

static void print_title(const char *approvals, FILE *out)
{
    static const struct {
        const char *approvals, *text;
    } rows[] = {{"given", "each counts as approved at once"},
                {"none", "nobody answers"},
                {"logged", "answered as in the log"}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        if (strcmp(rows[i].approvals, approvals) == 0)
            fprintf(out, "\nRequests for approvals (%s)\n", rows[i].text);
    }
}

static void comparison_print_asked(struct compared_tree *targets, const char *approvals, FILE *out)
{
    struct compared *target;
    size_t shown = 0;

    RB_FOREACH (target, compared_tree, targets) {
        if (target->asked_count == 0)
            continue;
        if (shown++ == 0)
            print_title(approvals, out);
        if (shown > ROWS_SHOWN)
            continue;
        for (size_t i = 0; i < count_listed_requests(target); i++)
            print_asked(target, &target->asked[i], out);
        if (target->asked_count > ASKED_SHOWN) {
            fputs("  ", out);
            as_safe_text_put(out, compared_get_label(target));
            fprintf(out, " %" PRIu64 " more\n", target->asked_count - ASKED_SHOWN);
        }
    }
    if (shown > ROWS_SHOWN)
        fprintf(out, "  and %zu more targets\n", shown - ROWS_SHOWN);
}

/* a list */
static json_t *compared_make_asked(const struct compared *target)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count_listed_requests(target); i++) {
        const struct asked *asked = &target->asked[i];
        char at[AS_RFC3339_SIZE];
        as_wall_time_print_short((as_wall_time){asked->at}, at);
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:i, s:i}", "time", at, "rule", asked->rule,
                                        "from", (int)asked->from, "to", (int)asked->to));
    }
    return list;
}

/* --- printing --- */

#define CHART_MAX ((size_t)16 * 1024 * 1024)
#define NAME_SIZE 100 /* bytes of a file's name without its extension */

static const char *const side_words[COMPARISON_SIDES] = {"before", "after"};

static struct compared_tree *get_targets(const struct comparison *comparison)
{
    return (struct compared_tree *)(uintptr_t)&comparison->targets;
}

static void put_padded(FILE *out, const char *text, size_t width)
{
    const size_t size = strlen(text);

    as_safe_text_put(out, text);
    fprintf(out, "%*s", size < width ? (int)(width - size) : 0, "");
}

static void comparison_put_span(FILE *out, int64_t us)
{
    char text[AS_DURATION_SIZE];

    as_duration_print(us < AS_US_PER_S ? us : us / AS_US_PER_S * AS_US_PER_S, text);
    fputs(text, out);
}

static void comparison_print_row(const char *label, size_t width, enum comparison_side side,
                                 const struct size_figures *figures, const char *unit, FILE *out)
{
    char min[AS_SIZE_TEXT_SIZE], max[AS_SIZE_TEXT_SIZE];

    put_padded(out, label, width + 2);
    fprintf(out, "%-6s  ", side_words[side]);
    if (!figures->is_set) {
        fputs("  its size is not known\n", out);
        return;
    }
    fprintf(out, "%6" PRIu64 "  %6" PRIu64 "  %6s  %6s  %9.2f  %13.2f  ", figures->ups,
            figures->downs, as_unit_print_size(unit, figures->min, min),
            as_unit_print_size(unit, figures->max, max), size_figures_get_mean(figures),
            size_figures_get_replica_hours(figures));
    comparison_put_span(out, figures->at_limit_us);
    fputc('\n', out);
}

static size_t find_width(const struct comparison *comparison)
{
    struct compared *target;
    size_t width = strlen("TARGET");

    RB_FOREACH (target, compared_tree, get_targets(comparison)) {
        const size_t size = strlen(compared_get_label(target));
        width = size > width ? size : width;
    }
    return width;
}

static void print_difference(const struct compared *target, const struct difference *difference,
                             FILE *out)
{
    char text[AS_RFC3339_SIZE], before[AS_SIZE_TEXT_SIZE], after[AS_SIZE_TEXT_SIZE];

    as_wall_time_print_short((as_wall_time){difference->from}, text);
    fputs("  ", out);
    as_safe_text_put(out, compared_get_label(target));
    fprintf(out, " %s: %s before, %s after, for ", text,
            as_unit_print_size(target->unit, difference->sizes[COMPARISON_BEFORE], before),
            as_unit_print_size(target->unit, difference->sizes[COMPARISON_AFTER], after));
    comparison_put_span(out, difference->to - difference->from);
    fputc('\n', out);
}

static size_t count_listed_differences(const struct compared *target)
{
    return target->difference_count < DIFFERENCES_SHOWN ? (size_t)target->difference_count
                                                        : DIFFERENCES_SHOWN;
}

static void print_differences(const struct comparison *comparison, FILE *out)
{
    struct compared *target;
    size_t shown = 0;

    RB_FOREACH (target, compared_tree, get_targets(comparison)) {
        if (target->difference_count == 0)
            continue;
        if (shown++ == 0)
            fputs("\nFirst differences\n", out);
        if (shown > ROWS_SHOWN)
            continue;
        const char *label = compared_get_label(target);
        for (size_t i = 0; i < count_listed_differences(target); i++)
            print_difference(target, &target->differences[i], out);
        if (target->difference_count > DIFFERENCES_SHOWN) {
            fputs("  ", out);
            as_safe_text_put(out, label);
            fprintf(out, " %" PRIu64 " more\n", target->difference_count - DIFFERENCES_SHOWN);
        }
    }
    if (shown > ROWS_SHOWN)
        fprintf(out, "  and %zu more targets\n", shown - ROWS_SHOWN);
    if (shown == 0)
        fputs("\nNo difference of 10 s or more.\n", out);
}

static void comparison_print_text(const struct comparison *comparison, const char *approvals,
                                  FILE *out)
{
    const size_t width = find_width(comparison);
    struct compared *target;

    if (comparison->count == 0) {
        fputs("no target was decided on\n", out);
        return;
    }
    put_padded(out, "TARGET", width + 2);
    fputs("RULES        UP    DOWN     MIN     MAX       MEAN  REPLICA-HOURS  AT MAX\n", out);
    RB_FOREACH (target, compared_tree, get_targets(comparison)) {
        for (size_t i = 0; i < COMPARISON_SIDES; i++)
            comparison_print_row(i == 0 ? compared_get_label(target) : "", width,
                                 (enum comparison_side)i, &target->sides[i], target->unit, out);
    }
    print_differences(comparison, out);
    comparison_print_asked(get_targets(comparison), approvals, out);
}

/* --- JSON --- */

static json_t *comparison_make_time(int64_t us)
{
    char text[AS_RFC3339_SIZE];

    as_wall_time_print_short((as_wall_time){us}, text);
    return json_string(text);
}

static json_t *make_seconds(int64_t us)
{
    return json_real((double)us / AS_US_PER_S);
}

static json_t *make_side(const struct size_figures *figures)
{
    json_t *json = json_object();

    json_object_set_new(json, "ups", json_integer((json_int_t)figures->ups));
    json_object_set_new(json, "downs", json_integer((json_int_t)figures->downs));
    if (!figures->is_set)
        return json;
    json_object_set_new(json, "from", comparison_make_time(figures->from));
    json_object_set_new(json, "min", json_integer(figures->min));
    json_object_set_new(json, "max", json_integer(figures->max));
    json_object_set_new(json, "mean", json_real(size_figures_get_mean(figures)));
    json_object_set_new(json, "replica_hours", json_real(size_figures_get_replica_hours(figures)));
    json_object_set_new(json, "at_max_seconds", make_seconds(figures->at_limit_us));
    json_object_set_new(json, "last", json_integer(figures->size));
    return json;
}

static json_t *comparison_make_target(struct compared *target)
{
    json_t *json = json_object(), *list = json_array();

    json_object_set_new(json, "id", json_string(target->id));
    json_object_set_new(json, "name", json_string(target->name));
    if (target->unit && *target->unit)
        json_object_set_new(json, "unit", json_string(target->unit));
    for (size_t i = 0; i < COMPARISON_SIDES; i++)
        json_object_set_new(json, side_words[i], make_side(&target->sides[i]));
    for (size_t i = 0; i < count_listed_differences(target); i++) {
        const struct difference *difference = &target->differences[i];
        json_t *item = json_object();
        json_object_set_new(item, "from", comparison_make_time(difference->from));
        json_object_set_new(item, "to", comparison_make_time(difference->to));
        json_object_set_new(item, "before", json_integer(difference->sizes[COMPARISON_BEFORE]));
        json_object_set_new(item, "after", json_integer(difference->sizes[COMPARISON_AFTER]));
        json_array_append_new(list, item);
    }
    json_object_set_new(json, "differences", list);
    json_object_set_new(json, "difference_count",
                        json_integer((json_int_t)target->difference_count));
    json_object_set_new(json, "approvals", compared_make_asked(target));
    json_object_set_new(json, "approval_count", json_integer((json_int_t)target->asked_count));
    json_object_set_new(json, "differed_seconds", make_seconds(target->differed_us));
    return json;
}

static json_t *make_json(const struct comparison *comparison)
{
    json_t *list = json_array();
    struct compared *target;

    RB_FOREACH (target, compared_tree, get_targets(comparison))
        json_array_append_new(list, comparison_make_target(target));
    return list;
}

/* --- charts --- */

/* A file name from the label; equal names get a number. */
static char *make_path(const char *folder, const char *label, size_t number, bool has_own_name)
{
    char name[NAME_SIZE + 1];
    size_t size = 0;

    for (; label[size] && size < NAME_SIZE; size++) {
        const char byte = label[size];
        const bool is_plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                              (byte >= '0' && byte <= '9') || byte == '-' || byte == '_' ||
                              (byte == '.' && size > 0);
        name[size] = is_plain ? byte : '_';
    }
    name[size] = '\0';
    if (has_own_name)
        return as_xasprintf("%s/%s.svg", folder, name);
    return as_xasprintf("%s/%s-%zu.svg", folder, name, number);
}

static int comparison_write_file(const char *path, const struct as_buf *text,
                                 struct as_error *error)
{
    const int status = as_file_replace(path, 0666, text->data, text->size);

    if (status)
        as_error_set_errno(error, status, "%s", path);
    return status;
}

static int write_chart(const struct comparison *comparison, struct compared *target, size_t number,
                       const char *folder, const char *subtitle, struct as_error *error)
{
    const struct as_target_config *config = target->config;
    const bool has_schedules = config && config->schedule_count > 0;
    AS_CLEANUP(as_chart_bounds_deinit) struct as_chart_bounds bounds = {0};
    const char *label = compared_get_label(target);
    AS_CLEANUP(as_free_p)
    char *path = make_path(folder, label, number, label == target->name);
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(CHART_MAX);
    char measure[AS_MEASURE_SIZE];
    const struct as_chart chart = {
        .title = label,
        .subtitle = subtitle,
        .unit = as_target_print_measure(target->id, target->unit, measure),
        .from = comparison->from,
        .to = comparison->to,
        .before = &target->lines[COMPARISON_BEFORE],
        .after = &target->lines[COMPARISON_AFTER],
        .min = config ? config->bounds.min : 0,
        .max = config ? config->bounds.max : 0,
        .bounds = has_schedules ? &bounds : NULL,
        .bands = target->bands,
        .band_count = target->band_count,
    };

    if (has_schedules)
        as_chart_bounds_fill(&bounds, config, comparison->from, comparison->to);
    as_chart_print_svg(&chart, &text);
    if (as_buf_check(&text) != 0) {
        as_error_set(error, "%s: the chart is too large", path);
        return -EMSGSIZE;
    }
    return comparison_write_file(path, &text, error);
}

/* One file per target; `subtitle` names the source. */
static int write_charts(const struct comparison *comparison, const char *folder,
                        const char *subtitle, struct as_error *error)
{
    struct compared *target;
    size_t number = 0;

    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        const int code = errno;
        as_error_set_errno(error, code, "%s", folder);
        return -code;
    }
    RB_FOREACH (target, compared_tree, get_targets(comparison)) {
        const int status = write_chart(comparison, target, ++number, folder, subtitle, error);
        if (status)
            return status;
    }
    return 0;
}

static void comparison_print_json(const struct comparison *comparison,
                                  const struct comparison_report *report, const char *from,
                                  const char *to)
{
    json_t *json = json_object();

    json_object_set_new(json, "from", json_string(from));
    json_object_set_new(json, "to", json_string(to));
    json_object_set_new(json, "notifications", json_integer((json_int_t)report->notifications));
    json_object_set_new(json, "targets", make_json(comparison));
    json_object_set(json, "warnings", report->warnings);
    as_cli_print_json(json, JSON_INDENT(2) | JSON_SORT_KEYS, stdout);
    json_decref(json);
}

int comparison_print(const struct comparison *comparison, const struct comparison_report *report,
                     struct as_error *error)
{
    const char *folder = as_args_get(report->args, "svg");
    char from[AS_RFC3339_SIZE], to[AS_RFC3339_SIZE];
    const json_t *item;
    size_t i;

    json_array_foreach(report->warnings, i, item)(void)
        as_cli_fail(report->args, "warning: %s", json_string_value(item));
    as_wall_time_print_short(report->from, from);
    as_wall_time_print_short(report->to, to);
    AS_CLEANUP(as_free_p)
    char *subtitle =
        as_xasprintf("%" PRIu64 " notification%s from %s to %s, under %s", report->notifications,
                     report->notifications == 1 ? "" : "s", from, to, report->rules);
    if (as_args_wants_json(report->args)) {
        comparison_print_json(comparison, report, from, to);
    } else {
        printf("%s\n\n", subtitle);
        comparison_print_text(comparison, report->approvals, stdout);
    }
    return folder ? write_charts(comparison, folder, subtitle, error) : 0;
}
