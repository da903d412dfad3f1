/*
 * `alertscaler convert`: objects of other autoscalers as rule files, their tests and the alerts
 * (docs/convert.md).
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/tools/convert.h>

#include "cli.h"
#include "convert_folder.h"

#define LIST_MAX ((size_t)64 * 1024 * 1024)

static void append_item(struct as_buf *out, const struct as_conversion_item *item)
{
    as_buf_printf(out, "%s:%u:%u: %s: %s%s%s\n", item->file, item->line, item->column,
                  item->is_carried ? "hint" : "not carried over", item->object,
                  *item->object ? ": " : "", item->text);
}

static void append_items(struct as_buf *out, const struct as_conversion *conversion,
                         bool is_carried)
{
    for (size_t i = 0; i < conversion->item_count; i++) {
        if (conversion->items[i].is_carried == is_carried)
            append_item(out, &conversion->items[i]);
    }
}

/* The file's name is not ours. */
static void print_items(const struct as_conversion *conversion)
{
    for (size_t i = 0; i < conversion->item_count; i++) {
        AS_CLEANUP(as_buf_deinit) struct as_buf line = AS_BUF_INIT(LIST_MAX);
        append_item(&line, &conversion->items[i]);
        line.data[--line.size] = '\0';
        as_safe_text_put(stdout, line.data);
        putchar('\n');
    }
}

static void print_count(size_t count, const char *what)
{
    printf("%zu %s%s", count, what, count == 1 ? "" : "s");
}

static void print_summary(const struct as_conversion *conversion, const char *folder)
{
    print_items(conversion);
    print_count(conversion->target_count, "target");
    fputs(" and ", stdout);
    print_count(conversion->rule_count, "rule");
    fputs(" in ", stdout);
    as_safe_text_put(stdout, folder);
    fputs(conversion->target_count > 0 ? ": rules/, tests/, alerts.yaml" : "", stdout);
    if (conversion->lost_count > 0) {
        fputs("; ", stdout);
        print_count(conversion->lost_count, "thing");
        fputs(" not carried over: " CONVERT_LIST, stdout);
    }
    putchar('\n');
    if (conversion->skipped_count > 0) {
        print_count(conversion->skipped_count, "object");
        puts(" of other kinds skipped");
    }
}

static int write_result(const struct as_args *args, const struct as_conversion *conversion)
{
    const char *folder = as_args_get(args, "out");
    struct as_error error = AS_ERROR_INIT;
    AS_CLEANUP(as_buf_deinit) struct as_buf list = AS_BUF_INIT(LIST_MAX);
    if (conversion->target_count == 0 && conversion->lost_count == 0)
        return as_cli_fail(args, "there is nothing to convert in these files");
    if (conversion->lost_count > 0)
        append_items(&list, conversion, false);
    if (as_buf_check(&list) < 0)
        return as_cli_fail(args, "the list of what is not carried over is too long");
    if (convert_folder_write(folder, conversion, list.size ? list.data : "", &error) < 0)
        return as_cli_fail(args, "%s", error.text);
    print_summary(conversion, folder);
    return conversion->lost_count > 0 ? AS_EXIT_NO : AS_EXIT_OK;
}

static int run(const struct as_args *args)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    AS_CLEANUP(as_conversion_free_p) struct as_conversion *conversion = NULL;
    const char *space = as_args_get(args, "namespace");
    if (!as_args_has(args, "out"))
        return as_cli_fail(args, "--out is missing: the folder to write to");
    if (!as_convert_is_namespace(space))
        return as_cli_fail(args, "--namespace: not the name of a namespace");
    const int status =
        as_convert(args->operands, args->operand_count, space, &diagnostics, &conversion);
    as_diagnostics_sort(&diagnostics);
    as_diagnostics_print(&diagnostics, stderr);
    as_diagnostics_deinit(&diagnostics);
    if (status != AS_CONVERT_OK)
        return as_cli_fail(args, "nothing was written");
    return write_result(args, conversion);
}

static const struct as_option options[] = {
    {.name = "out", .value = "DIR", .help = "the folder to write: a new one, or an empty one"},
    {.name = "namespace",
     .value = "NAME",
     .fallback = "default",
     .help = "of objects that name no namespace"},
    {0},
};

const struct as_command as_command_convert = {
    .name = "convert",
    .operands = "FILE...",
    .summary = "Writes rules for what other autoscalers did: HPA, KEDA, Escalator.",
    .help = "A FILE has objects of Kubernetes, in one or more documents or a List:\n"
            "HorizontalPodAutoscaler (autoscaling/v1, v2, v2beta2), ScaledObject; or it is\n"
            "prometheus-adapter's configuration, also in its ConfigMap, or Escalator's\n"
            "nodegroups.yaml. DIR gets rules, their tests, and the alerts for Prometheus.\n"
            "What cannot be carried over is listed with its reason. Exit status 0: all is carried\n"
            "over; 1: not all of it; 2: a file is wrong, and nothing is written (docs/convert.md).",
    .options = options,
    .operands_min = 1,
    .operands_max = SIZE_MAX,
    .run = run,
};
