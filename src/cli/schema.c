/*
 * `alertscaler schema`: JSON Schemas of the files that users write.
 */
#include <jansson.h>
#include <string.h>

#include <alertscaler/rules/json_schema.h>

#include "cli.h"

static int run(const struct as_args *args)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(AS_JSON_SCHEMA_MAX);
    const char *word = args->operands[0];
    size_t kind = 0;
    while (as_json_schema_words[kind] && strcmp(as_json_schema_words[kind], word) != 0)
        kind++;
    if (!as_json_schema_words[kind])
        return as_cli_fail(args, "there is no schema `%s`: name config, rules, tests or web", word);
    as_json_schema_append(kind, &text);
    json_t *json = json_loadb(text.data, text.size, 0, NULL);
    if (!json || json_dumpf(json, stdout, JSON_INDENT(2)) != 0)
        return as_cli_fail(args, "cannot write the schema");
    json_decref(json);
    putchar('\n');
    return AS_EXIT_OK;
}

static const struct as_option options[] = {{0}};

const struct as_command as_command_schema = {
    .name = "schema",
    .operands = "config|rules|tests|web",
    .summary = "Prints the JSON Schema of a kind of files, for editors.",
    .help = "The schema (draft 2020-12) is made from the tables that `check` reads files by:\n"
            "config: alertscaler.yaml; rules: rule files; tests: files of `alertscaler test`;\n"
            "web: the file of --web.config.file. docs/editors.md shows how editors use it.",
    .options = options,
    .operands_min = 1,
    .operands_max = 1,
    .run = run,
};
