/*
 * A comparison as a table, as JSON, and as one chart per target.
 */
#include "comparison.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "comparison_private.h"
#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/unit.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/ui/chart.h>

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

static void put_span(FILE *out, int64_t us)
{
    char text[AS_DURATION_SIZE];

    as_duration_print(us < AS_US_PER_S ? us : us / AS_US_PER_S * AS_US_PER_S, text);
    fputs(text, out);
}

static void print_row(const char *label, size_t width, enum comparison_side side,
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
    put_span(out, figures->at_limit_us);
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
    put_span(out, difference->to - difference->from);
    fputc('\n', out);
}

static size_t get_listed(const struct compared *target)
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
        for (size_t i = 0; i < get_listed(target); i++)
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

static void print_text(const struct comparison *comparison, const char *approvals, FILE *out)
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
            print_row(i == 0 ? compared_get_label(target) : "", width, (enum comparison_side)i,
                      &target->sides[i], target->unit, out);
    }
    print_differences(comparison, out);
    comparison_print_asked(get_targets(comparison), approvals, out);
}

/* --- JSON --- */

static json_t *make_time(int64_t us)
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
    json_object_set_new(json, "from", make_time(figures->from));
    json_object_set_new(json, "min", json_integer(figures->min));
    json_object_set_new(json, "max", json_integer(figures->max));
    json_object_set_new(json, "mean", json_real(size_figures_get_mean(figures)));
    json_object_set_new(json, "replica_hours", json_real(size_figures_get_replica_hours(figures)));
    json_object_set_new(json, "at_max_seconds", make_seconds(figures->at_limit_us));
    json_object_set_new(json, "last", json_integer(figures->size));
    return json;
}

static json_t *make_target(struct compared *target)
{
    json_t *json = json_object(), *list = json_array();

    json_object_set_new(json, "id", json_string(target->id));
    json_object_set_new(json, "name", json_string(target->name));
    if (target->unit && *target->unit)
        json_object_set_new(json, "unit", json_string(target->unit));
    for (size_t i = 0; i < COMPARISON_SIDES; i++)
        json_object_set_new(json, side_words[i], make_side(&target->sides[i]));
    for (size_t i = 0; i < get_listed(target); i++) {
        const struct difference *difference = &target->differences[i];
        json_t *item = json_object();
        json_object_set_new(item, "from", make_time(difference->from));
        json_object_set_new(item, "to", make_time(difference->to));
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
        json_array_append_new(list, make_target(target));
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

static int write_file(const char *path, const struct as_buf *text, struct as_error *error)
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
    return write_file(path, &text, error);
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

static void print_json(const struct comparison *comparison, const struct comparison_report *report,
                       const char *from, const char *to)
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
        print_json(comparison, report, from, to);
    } else {
        printf("%s\n\n", subtitle);
        print_text(comparison, report->approvals, stdout);
    }
    return folder ? write_charts(comparison, folder, subtitle, error) : 0;
}
