/*
 * `alertscaler version`
 */
#include <alertscaler/runtime/version.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/doc/json_writer.h>

#include "cli.h"

static void print_json(void)
{
    const struct as_library *libraries;
    size_t count = as_version_get_libraries(&libraries);
    struct as_buf buf = AS_BUF_INIT(4096);
    struct as_json_writer json;

    as_json_init(&json, &buf, 0);
    as_json_begin_object(&json);
    as_json_write_key(&json, "libraries");
    as_json_begin_object(&json);
    for (size_t i = 0; i < count; i++)
        as_json_write_member(&json, libraries[i].name, libraries[i].version);
    as_json_end_object(&json);
    as_json_write_member(&json, "revision", as_version_get_revision());
    as_json_write_member(&json, "version", as_version_get());
    as_json_end_object(&json);
    puts(buf.data);
    as_buf_deinit(&buf);
}

static void print_text(void)
{
    const struct as_library *libraries;
    size_t count = as_version_get_libraries(&libraries);

    printf("alertscaler %s (revision %s)\n", as_version_get(), as_version_get_revision());
    for (size_t i = 0; i < count; i++)
        printf("  %-10s %s\n", libraries[i].name, libraries[i].version);
}

static int run(const struct as_args *args)
{
    if (as_args_wants_json(args))
        print_json();
    else
        print_text();
    return AS_EXIT_OK;
}

static const struct as_option options[] = {AS_OPTION_OUTPUT, {0}};

const struct as_command as_command_version = {
    .name = "version",
    .operands = "",
    .summary = "Prints the version, the source's revision and the libraries in use.",
    .help = "",
    .options = options,
    .run = run,
};
