/*
 * The table of commands, the commands that print what the program is (`help`, `completion`,
 * `schema`, `version`), and the entry of the program, which runs a command by argv. The table is
 * the top of this directory: no command calls this module.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/decision.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/log/record.h>
#include <alertscaler/model/reason.h>
#include <alertscaler/rules/json_schema.h>
#include <alertscaler/rules/policy.h>
#include <alertscaler/runtime/version.h>

#include "cli.h"
#include "http_call.h"

/*
 * `alertscaler schema`: JSON Schemas of the files that users write, and of documents.
 */

/* Documents that are no files of users, by their tables of rows. */
static const struct {
    const char *word;
    void (*encode)(struct as_buf *out);
} schema_documents[] = {
    {"decision", as_decision_encode_input_schema},
    {"decision-answer", as_decision_encode_output_schema},
    {"log", as_record_encode_schema},
    {"crd", as_policy_append_crd},
};

/* False: there is no such schema. */
static bool schema_encode(const char *word, struct as_buf *out)
{
    for (size_t kind = 0; as_json_schema_words[kind]; kind++) {
        if (strcmp(as_json_schema_words[kind], word) == 0) {
            as_json_schema_append(kind, out);
            return true;
        }
    }
    for (size_t i = 0; i < AS_ARRAY_SIZE(schema_documents); i++) {
        if (strcmp(schema_documents[i].word, word) == 0) {
            schema_documents[i].encode(out);
            return true;
        }
    }
    return false;
}

static char *schema_suggest(const char *word)
{
    struct as_spelling spelling = as_spelling_begin(word);
    for (size_t kind = 0; as_json_schema_words[kind]; kind++)
        as_spelling_offer(&spelling, as_json_schema_words[kind]);
    for (size_t i = 0; i < AS_ARRAY_SIZE(schema_documents); i++)
        as_spelling_offer(&spelling, schema_documents[i].word);
    return as_spelling_end(&spelling);
}

static int schema_run(const struct as_args *args)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(AS_JSON_SCHEMA_MAX);
    const char *word = args->operands[0];
    if (!schema_encode(word, &text)) {
        AS_CLEANUP(as_free_p) char *hint = schema_suggest(word);
        return as_cli_fail(args,
                           "there is no schema `%s`: name config, rules, tests, web, decision, "
                           "decision-answer, log or crd%s",
                           word, hint);
    }
    json_t *json = json_loadb(text.data, text.size, 0, NULL);
    if (!json || json_dumpf(json, stdout, JSON_INDENT(2)) != 0)
        return as_cli_fail(args, "cannot write the schema");
    json_decref(json);
    putchar('\n');
    return AS_EXIT_OK;
}

static const struct as_option schema_options[] = {{0}};

static const struct as_command command_schema = {
    .name = "schema",
    .operands = "config|rules|tests|web|decision|decision-answer|log|crd",
    .summary = "Prints the JSON Schema of a kind of files or documents.",
    .help =
        "The schema (draft 2020-12) is made from the tables that the program reads and writes\n"
        "by. For editors: config: alertscaler.yaml; rules: rule files; tests: files of\n"
        "`alertscaler test`; web: the file of --web.config.file. docs/editors.md shows how\n"
        "editors use it. For programs: decision, decision-answer: a line that\n"
        "`alertscaler decide` reads and prints (docs/decision.md); log: a record of the action\n"
        "log (docs/action-log.md). For Kubernetes: crd: the CustomResourceDefinition of scaling\n"
        "policies (docs/policies.md).",
    .options = schema_options,
    .operands_min = 1,
    .operands_max = 1,
    .run = schema_run,
};

/*
 * `alertscaler version`
 */

static void version_print_json(void)
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

static void version_print_text(void)
{
    const struct as_library *libraries;
    size_t count = as_version_get_libraries(&libraries);

    printf("alertscaler %s (revision %s)\n", as_version_get(), as_version_get_revision());
    for (size_t i = 0; i < count; i++)
        printf("  %-10s %s\n", libraries[i].name, libraries[i].version);
}

static int version_run(const struct as_args *args)
{
    if (as_args_wants_json(args))
        version_print_json();
    else
        version_print_text();
    return AS_EXIT_OK;
}

static const struct as_option version_options[] = {AS_OPTION_OUTPUT, {0}};

static const struct as_command command_version = {
    .name = "version",
    .operands = "",
    .summary = "Prints the version, the source's revision and the libraries in use.",
    .help = "",
    .options = version_options,
    .run = version_run,
};

/* --- help: the list of commands, and the --help of each command --- */

#define INDENT 32 /* column of explanations; after a longer option they begin on the next line */

/* The column of names. After a longer name the summary begins on the next line. */
#define NAME_WIDTH 12

static void print_command_line(FILE *out, const struct as_command *command)
{
    const char *name = command->name;
    if (strlen(name) > NAME_WIDTH) {
        fprintf(out, "  %s\n", name);
        name = "";
    }
    fprintf(out, "  %-*s  %s\n", NAME_WIDTH, name, command->summary);
}

/* the list of all */
static void help_print_commands(FILE *out)
{
    const struct as_command *const *commands;
    size_t count = as_command_get_all(&commands);

    fputs("alertscaler scales Kubernetes workloads and node groups by Alertmanager's alerts.\n\n"
          "Usage: alertscaler [--context NAME] COMMAND [OPTION...]\n\n"
          "Commands:\n",
          out);
    for (size_t i = 0; i < count; i++)
        print_command_line(out, commands[i]);
    fputs("\n'alertscaler COMMAND --help' explains a command.\n"
          "Exit status: 0 done; 1 the answer is no; 2 wrong usage or unreadable input.\n",
          out);
}

static void command_print_option(const struct as_option *option, FILE *out)
{
    int width = option->letter ? fprintf(out, "  -%c, --%s", option->letter, option->name)
                               : fprintf(out, "      --%s", option->name);

    if (option->value)
        width += fprintf(out, "=%s", option->value);
    if (width >= INDENT)
        width = fprintf(out, "\n") - 1;
    fprintf(out, "%*s%s", INDENT - width, "", option->help);
    if (option->fallback)
        fprintf(out, " (default: %s)", option->fallback);
    fputc('\n', out);
}

static void help_print_command(const struct as_command *command, FILE *out)
{
    static const struct as_option help = {.name = "help", .letter = 'h', .help = "this text"};

    fprintf(out, "Usage: alertscaler %s [OPTION...]%s%s\n\n%s\n", command->name,
            command->operands[0] ? " " : "", command->operands, command->summary);
    if (command->help[0])
        fprintf(out, "\n%s\n", command->help);
    fputs("\nOptions:\n", out);
    for (const struct as_option *option = command->options; option->name; option++)
        command_print_option(option, out);
    command_print_option(&help, out);
}

static char *command_suggest(const char *name)
{
    static const struct {
        const char *name, *ours;
    } others[] = {{"top", "status --watch"}}; /* of other programs */
    const struct as_command *const *commands;
    const size_t count = as_command_get_all(&commands);
    struct as_spelling spelling = as_spelling_begin(name);
    for (size_t i = 0; i < count; i++)
        as_spelling_offer(&spelling, commands[i]->name);
    for (size_t i = 0; i < AS_ARRAY_SIZE(others); i++) {
        if (strcmp(name, others[i].name) != 0)
            continue;
        free(spelling.nearest);
        spelling.nearest = as_xstrdup(others[i].ours);
    }
    return as_spelling_end(&spelling);
}

static json_t *help_make_option(const struct as_option *option)
{
    json_t *json = json_pack("{s:s, s:s?, s:s?, s:b, s:s}", "name", option->name, "value",
                             option->value, "default", option->fallback, "repeats",
                             (int)option->repeats, "help", option->help);
    const char letter[] = {option->letter, '\0'};
    json_t *choices = json_array();
    json_object_set_new(json, "letter", option->letter ? json_string(letter) : json_null());
    for (const char *const *choice = option->choices; choice && *choice; choice++)
        json_array_append_new(choices, json_string(*choice));
    json_object_set_new(json, "choices", choices);
    return json;
}

static json_t *help_make_command(const struct as_command *command)
{
    json_t *options = json_array();
    for (const struct as_option *option = command->options; option->name; option++)
        json_array_append_new(options, help_make_option(option));
    return json_pack("{s:s, s:s, s:s, s:s, s:o}", "name", command->name, "operands",
                     command->operands, "summary", command->summary, "help", command->help,
                     "options", options);
}

/* `command` NULL: all, as a list. */
static void help_print_json(const struct as_command *command)
{
    const struct as_command *const *commands;
    const size_t count = as_command_get_all(&commands);
    json_t *json = command ? help_make_command(command) : json_array();
    for (size_t i = 0; i < count && !command; i++)
        json_array_append_new(json, help_make_command(commands[i]));
    as_cli_print_json(json, JSON_INDENT(2), stdout);
    json_decref(json);
}

static int help_run(const struct as_args *args)
{
    if (args->operand_count == 0 && as_args_wants_json(args)) {
        help_print_json(NULL);
        return AS_EXIT_OK;
    }
    if (args->operand_count == 0) {
        help_print_commands(stdout);
        return AS_EXIT_OK;
    }
    char name[64];
    snprintf(name, sizeof(name), "%s%s%s", args->operands[0], args->operand_count > 1 ? " " : "",
             args->operand_count > 1 ? args->operands[1] : "");
    const struct as_command *command = as_command_find(name);
    if (!command) {
        AS_CLEANUP(as_free_p) char *hint = command_suggest(name);
        return as_cli_fail(args, "there is no command \"%s\"%s", name, hint);
    }
    if (as_args_wants_json(args))
        help_print_json(command);
    else
        help_print_command(command, stdout);
    return AS_EXIT_OK;
}

static const struct as_option help_options[] = {AS_OPTION_OUTPUT, {0}};

static const struct as_command command_help = {
    .name = "help",
    .operands = "[COMMAND]",
    .summary = "Lists the commands, or explains one.",
    .help = "",
    .options = help_options,
    .operands_max = 2,
    .run = help_run,
};

/* --- completion: scripts for bash, zsh and fish, and the names that they offer --- */

/*
 * All complete the first word with commands (also the second, for commands of two words), words
 * that begin with "--" with the command's options, option values with their choices, names of
 * targets and other things with `alertscaler completion KIND`, and everything else with file names.
 *
 * The names come from a daemon. No script lets the shell expand them, and each waits at most
 * NAMES_TIMEOUT_S.
 */

#define NAMES_TIMEOUT_S 2

static bool has_prefix_command(const char *name, size_t size)
{
    const struct as_command *const *commands;
    size_t count = as_command_get_all(&commands);

    for (size_t i = 0; i < count; i++) {
        if (strncmp(commands[i]->name, name, size) == 0 && commands[i]->name[size] == '\0')
            return true;
    }
    return false;
}

/* The first words of all commands, without duplicates. */
static void print_first_words(void)
{
    const struct as_command *const *commands;
    size_t count = as_command_get_all(&commands);

    for (size_t i = 0; i < count; i++) {
        size_t size = strcspn(commands[i]->name, " ");
        if (commands[i]->name[size] == '\0' || !has_prefix_command(commands[i]->name, size))
            printf("%s%s", i == 0 ? "" : " ", commands[i]->name);
    }
}

static void print_choices(const struct as_option *option)
{
    for (const char *const *choice = option->choices; *choice; choice++)
        printf("%s%s", choice == option->choices ? "" : " ", *choice);
}

static void print_bash_command(const struct as_command *command)
{
    printf("    '%s')\n        options='", command->name);
    for (const struct as_option *option = command->options; option->name; option++)
        printf("--%s%s ", option->name, option->value ? "=" : "");
    printf("--help'\n");
    if (command->first_words)
        printf("        first_words='%s'\n", command->first_words);
    if (command->names && command->names[0])
        printf("        operands='%s'\n", command->names);
    else if (command->names)
        fputs("        operands=${COMP_WORDS[at+1]}\n", stdout);
    bool has_choices = false;
    for (const struct as_option *option = command->options; option->name; option++) {
        if (!option->choices && !option->names)
            continue;
        printf(has_choices ? "" : "        case \"$option\" in\n");
        has_choices = true;
        if (option->names) {
            printf("        --%s) names='%s' ;;\n", option->name, option->names);
            continue;
        }
        printf("        --%s) choices='", option->name);
        print_choices(option);
        printf("' ;;\n");
    }
    printf("%s        ;;\n", has_choices ? "        esac\n" : "");
}

/* Names are read line by line, so that bash expands nothing in them. bash splits words at ":". */
static void print_bash_names(void)
{
    fputs("_alertscaler_names()\n{\n"
          "    local line=() daemon=() i name\n"
          "    read -r -a line <<< \"$COMP_LINE\"\n"
          "    for ((i = 1; i < ${#line[@]}; i++)); do\n"
          "        case \"${line[i]}\" in\n",
          stdout);
    fputs(
        "        --context=?*|--url=?*|--token-file=?*|--ca-file=?*) daemon+=(\"${line[i]}\") ;;\n"
        "        --context|--url|--token-file|--ca-file)\n"
        "            [ -z \"${line[i+1]}\" ] || "
        "daemon+=(\"${line[i]}=${line[i+1]/#\\~\\//$HOME/}\") ;;\n"
        "        esac\n"
        "    done\n"
        "    [ \"$1\" != contexts ] || daemon=()\n"
        "    while IFS= read -r name; do\n"
        "        case \"$name\" in *:*) continue ;; esac\n"
        "        [ \"${name#\"$cur\"}\" = \"$name\" ] && [ -n \"$cur\" ] || "
        "COMPREPLY+=(\"$name\")\n"
        "    done < <(alertscaler completion \"$1\" \"${daemon[@]}\" 2>/dev/null)\n"
        "}\n",
        stdout);
}

static void print_second_words(void)
{
    const struct as_command *const *commands;
    size_t count = as_command_get_all(&commands);

    for (size_t i = 0; i < count; i++) {
        const char *space = strchr(commands[i]->name, ' ');
        if (space)
            printf("    [ \"$command\" = '%.*s' ] && words=\"$words %s\"\n",
                   (int)(space - commands[i]->name), commands[i]->name, space + 1);
    }
}

static void print_bash(void)
{
    const struct as_command *const *commands;
    size_t count = as_command_get_all(&commands);

    fputs("# bash completion for alertscaler: eval \"$(alertscaler completion bash)\"\n", stdout);
    print_bash_names();
    /* bash splits words at "=" */
    fputs(
        "_alertscaler()\n{\n"
        "    local cur=${COMP_WORDS[COMP_CWORD]} options= choices= words= option= names= operands= "
        "first_words=\n"
        "    local at=1\n"
        "    COMPREPLY=()\n"
        "    if [ \"$cur\" = = ]; then\n"
        "        option=${COMP_WORDS[COMP_CWORD-1]} cur=\n"
        "    elif [ \"${COMP_WORDS[COMP_CWORD-1]}\" = = ]; then\n"
        "        option=${COMP_WORDS[COMP_CWORD-2]}\n"
        "    else\n"
        "        option=${COMP_WORDS[COMP_CWORD-1]}\n"
        "    fi\n"
        "    if [ \"${COMP_WORDS[1]}\" = --context ]; then\n"
        "        at=3\n"
        "        [ \"${COMP_WORDS[2]}\" != = ] || at=4\n"
        "        if [ \"$COMP_CWORD\" -gt 1 ] && [ \"$COMP_CWORD\" -lt \"$at\" ]; then\n"
        "            _alertscaler_names contexts\n"
        "            return\n"
        "        fi\n"
        "    fi\n"
        "    local command=${COMP_WORDS[at]}\n"
        "    if [ \"$COMP_CWORD\" -le \"$at\" ]; then\n"
        "        COMPREPLY=($(compgen -W '--context= ",
        stdout);
    print_first_words();
    fputs("' -- \"$cur\"))\n"
          "        [ -n \"$cur\" ] || COMPREPLY=(\"${COMPREPLY[@]:1}\")\n"
          "        [ \"${COMPREPLY[0]%=}\" = \"${COMPREPLY[0]}\" ] || compopt -o nospace\n"
          "        return\n"
          "    fi\n",
          stdout);
    print_second_words();
    fputs("    case \" $words \" in\n"
          "    *\" ${COMP_WORDS[at+1]} \"*) [ \"$COMP_CWORD\" -gt $((at + 1)) ] && "
          "command=\"$command "
          "${COMP_WORDS[at+1]}\" ;;\n"
          "    esac\n"
          "    case \"$command\" in\n",
          stdout);
    for (size_t i = 0; i < count; i++)
        print_bash_command(commands[i]);
    fputs("    esac\n"
          "    if [ -n \"$choices\" ]; then\n"
          "        COMPREPLY=($(compgen -W \"$choices\" -- \"$cur\"))\n"
          "    elif [ -n \"$names\" ]; then\n"
          "        _alertscaler_names \"$names\"\n"
          "    elif [ \"${cur#-}\" != \"$cur\" ]; then\n"
          "        COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
          "        [ \"${COMPREPLY[0]%=}\" = \"${COMPREPLY[0]}\" ] || compopt -o nospace\n"
          "    elif [ -n \"$first_words\" ] && [ \"$COMP_CWORD\" = $((at + 1)) ]; then\n"
          "        COMPREPLY=($(compgen -W \"$first_words\" -- \"$cur\"))\n"
          "    elif [ -n \"$operands\" ]; then\n"
          "        _alertscaler_names \"$operands\"\n"
          "    else\n"
          "        [ \"$COMP_CWORD\" = $((at + 1)) ] || words=\n"
          "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\") $(compgen -f -- \"$cur\"))\n"
          "    fi\n"
          "}\n"
          "complete -o filenames -F _alertscaler alertscaler\n",
          stdout);
}

/* Inside '...', where zsh's _arguments gives [ ] and : a meaning. */
static void print_zsh_text(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (strchr("[]:\\", *text))
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

static void print_zsh_command(const struct as_command *command)
{
    printf("    '%s')\n        _arguments -S", command->name);
    for (const struct as_option *option = command->options; option->name; option++) {
        printf(" \\\n            '--%s%s[", option->name, option->value ? "=" : "");
        print_zsh_text(option->help);
        putchar(']');
        if (option->names)
            printf(":%s:_alertscaler_names %s", option->value, option->names);
        else if (option->value)
            printf(":%s:%s", option->value, option->choices ? "(" : "_files");
        if (option->choices) {
            print_choices(option);
            putchar(')');
        }
        putchar('\'');
    }
    fputs(" \\\n            '--help[this text]'", stdout);
    if (command->first_words)
        printf(" '1:kind:(%s)'", command->first_words);
    if (command->names && command->names[0])
        printf(" '*:name:_alertscaler_names %s'", command->names);
    else if (command->names)
        fputs(" '*:name:_alertscaler_names $kind'", stdout);
    printf("%s\n        ;;\n",
           command->operands_max > 0 && !command->names ? " '*:argument:_files'" : "");
}

/* Other functions of zsh call it with options for compadd before the kind. */
static void print_zsh_names(void)
{
    fputs("_alertscaler_names()\n{\n"
          "    local -a daemon found\n"
          "    local i\n"
          "    for ((i = 1; i < ${#_alertscaler_line}; i++)); do\n"
          "        case $_alertscaler_line[i] in\n"
          "        --(context|url|token-file|ca-file)=?*) daemon+=($_alertscaler_line[i]) ;;\n"
          "        --(context|url|token-file|ca-file)) "
          "daemon+=(\"$_alertscaler_line[i]=${_alertscaler_line[i+1]/#\\~\\//$HOME/}\") ;;\n"
          "        esac\n"
          "    done\n"
          "    [[ $argv[-1] != contexts ]] || daemon=()\n"
          "    found=(${(f)\"$(alertscaler completion $argv[-1] $daemon 2>/dev/null)\"})\n"
          "    compadd \"${@[1,-2]}\" -a found\n"
          "}\n",
          stdout);
}

static void print_zsh(void)
{
    const struct as_command *const *commands;
    size_t count = as_command_get_all(&commands);

    fputs("#compdef alertscaler\n"
          "# zsh completion for alertscaler: eval \"$(alertscaler completion zsh)\"\n",
          stdout);
    print_zsh_names();
    fputs("_alertscaler()\n{\n"
          "    local -a _alertscaler_line=($words)\n"
          "    if [[ $words[2] == --context=* ]] && (( CURRENT > 2 )); then\n"
          "        words[2]=()\n"
          "        (( CURRENT-- ))\n"
          "    elif [[ $words[2] == --context ]] && (( CURRENT > 3 )); then\n"
          "        words[2,3]=()\n"
          "        (( CURRENT -= 2 ))\n"
          "    elif [[ $words[2] == --context ]] && (( CURRENT == 3 )); then\n"
          "        _alertscaler_names contexts\n"
          "        return\n"
          "    fi\n"
          "    local command=$words[2] kind=$words[3]\n"
          "    if (( CURRENT == 2 )); then\n"
          "        local -a commands=(\n",
          stdout);
    for (size_t i = 0; i < count; i++) {
        if (strchr(commands[i]->name, ' '))
            continue;
        printf("            '%s:", commands[i]->name);
        print_zsh_text(commands[i]->summary);
        puts("'");
    }
    fputs("        )\n"
          "        _describe command commands\n"
          "        return\n"
          "    fi\n"
          "    shift words\n"
          "    (( CURRENT-- ))\n",
          stdout);
    for (size_t i = 0; i < count; i++) {
        if (strchr(commands[i]->name, ' '))
            printf("    if [[ $words[1] == '%.*s' && $words[2] == '%s' ]] && (( CURRENT > 2 )); "
                   "then command='%s'; shift words; (( CURRENT-- )); fi\n",
                   (int)strcspn(commands[i]->name, " "), commands[i]->name,
                   strchr(commands[i]->name, ' ') + 1, commands[i]->name);
    }
    fputs("    case $command in\n", stdout);
    for (size_t i = 0; i < count; i++)
        print_zsh_command(commands[i]);
    /* zsh: an autoloaded file has the name of the function it defines */
    fputs("    esac\n}\n"
          "if [[ $funcstack[1] == _alertscaler ]]; then\n"
          "    _alertscaler \"$@\"\n"
          "else\n"
          "    compdef _alertscaler alertscaler\n"
          "fi\n",
          stdout);
}

static void print_fish_text(const char *text)
{
    putchar('\'');
    for (; *text; text++) {
        if (strchr("'\\", *text))
            putchar('\\');
        putchar(*text);
    }
    putchar('\'');
}

/* Offers the options of "log" only if it is not "log verify". */
static void print_fish_condition(const struct as_command *command)
{
    const struct as_command *const *commands;
    const size_t count = as_command_get_all(&commands), size = strcspn(command->name, " ");

    printf(" -n '__fish_seen_subcommand_from %.*s", (int)size, command->name);
    for (size_t i = 0; i < count && !command->name[size]; i++) {
        if (strncmp(commands[i]->name, command->name, size) == 0 && commands[i]->name[size] == ' ')
            printf("; and not __fish_seen_subcommand_from %s", commands[i]->name + size + 1);
    }
    if (command->name[size])
        printf("; and __fish_seen_subcommand_from %s", command->name + size + 1);
    putchar('\'');
}

static void print_fish_operands(const struct as_command *command)
{
    if (command->first_words)
        printf("complete -c alertscaler -n '__fish_seen_subcommand_from %s; and not "
               "__fish_seen_subcommand_from %s' -f -a '%s'\n",
               command->name, command->first_words, command->first_words);
    if (command->names)
        printf("complete -c alertscaler -n '__fish_seen_subcommand_from %s%s%s' -f -a "
               "'(__alertscaler_names %s)'\n",
               command->name, command->first_words ? "; and __fish_seen_subcommand_from " : "",
               command->first_words ? command->first_words : "", command->names);
}

/* The kind, or without one the word after `get`. */
static void print_fish_names(void)
{
    fputs("function __alertscaler_names\n"
          "    set -l line (commandline -opc)\n"
          "    set -l kind $argv[1]\n"
          "    set -l daemon\n"
          "    for i in (seq (count $line))\n"
          "        switch $line[$i]\n"
          "            case '--context=?*' '--url=?*' '--token-file=?*' '--ca-file=?*'\n"
          "                set daemon $daemon $line[$i]\n"
          "            case --context --url --token-file --ca-file\n"
          "                set daemon $daemon $line[$i]=(string replace -r '^~/' \"$HOME/\" -- "
          "$line[(math $i + 1)])\n"
          "            case targets rules incidents decisions policies contexts\n"
          "                test -n \"$kind\"; or set kind $line[$i]\n"
          "        end\n"
          "    end\n"
          "    test \"$kind\" = contexts; and set daemon\n"
          "    test -n \"$kind\"; and alertscaler completion $kind $daemon 2>/dev/null\n"
          "end\n",
          stdout);
}

static void print_fish_command(const struct as_command *command)
{
    const char *space = strchr(command->name, ' ');

    if (space)
        printf("complete -c alertscaler -n '__fish_seen_subcommand_from %.*s' -a %s -d ",
               (int)(space - command->name), command->name, space + 1);
    else
        printf("complete -c alertscaler -n __fish_use_subcommand -f -a %s -d ", command->name);
    print_fish_text(command->summary);
    putchar('\n');
    print_fish_operands(command);
    for (const struct as_option *option = command->options; option->name; option++) {
        fputs("complete -c alertscaler", stdout);
        print_fish_condition(command);
        printf(" -l %s", option->name);
        if (option->letter)
            printf(" -s %c", option->letter);
        if (option->choices) {
            fputs(" -x -a '", stdout);
            print_choices(option);
            putchar('\'');
        } else if (option->names) {
            printf(" -x -a '(__alertscaler_names %s)'", option->names);
        } else if (option->value) {
            fputs(" -r", stdout);
        }
        fputs(" -d ", stdout);
        print_fish_text(option->help);
        putchar('\n');
    }
}

static void print_fish(void)
{
    const struct as_command *const *commands;
    const size_t count = as_command_get_all(&commands);

    puts("# fish completion for alertscaler: alertscaler completion fish | source");
    print_fish_names();
    puts("complete -c alertscaler -l help -s h -d 'this text'");
    puts("complete -c alertscaler -n __fish_use_subcommand -l context -x -a "
         "'(__alertscaler_names contexts)' -d 'a context of the client file'");
    for (size_t i = 0; i < count; i++)
        print_fish_command(commands[i]);
}

static const char *const name_kinds[] = {"targets",  "rules",    "incidents", "decisions",
                                         "policies", "contexts", "reasons"};

static int completion_fail(const struct as_args *args)
{
    static const char *const shells[] = {"bash", "zsh", "fish"};
    struct as_spelling spelling = as_spelling_begin(args->operands[0]);
    for (size_t i = 0; i < AS_ARRAY_SIZE(shells); i++)
        as_spelling_offer(&spelling, shells[i]);
    for (size_t i = 0; i < AS_ARRAY_SIZE(name_kinds); i++)
        as_spelling_offer(&spelling, name_kinds[i]);
    AS_CLEANUP(as_free_p) char *hint = as_spelling_end(&spelling);
    return as_cli_fail(args,
                       "there is no completion for \"%s\": expected bash, zsh or fish, or a kind "
                       "of names%s",
                       args->operands[0], hint);
}

static bool completion_has_kind(const char *word)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(name_kinds); i++) {
        if (strcmp(name_kinds[i], word) == 0)
            return true;
    }
    return false;
}

/* A daemon that does not answer must not hold up the shell. */
static void completion_on_alarm(int number)
{
    _exit(AS_EXIT_NO);
}

/* As `alertscaler get KIND -o name`. */
static int completion_print_names(const struct as_args *args)
{
    static const char *const passed[] = {"context", "url", "token-file", "ca-file"};
    const struct sigaction action = {.sa_handler = completion_on_alarm};
    const struct as_command *get = &as_commands_of_readers[AS_READER_GET];
    char *words[2 + AS_ARRAY_SIZE(passed)] = {as_xstrdup(args->operands[0]), as_xstrdup("-oname")};
    struct as_error error = AS_ERROR_INIT;
    struct as_args given;
    int count = 2;
    for (size_t i = 0; i < AS_ARRAY_SIZE(passed); i++) {
        const char *value = as_args_get(args, passed[i]);
        if (value)
            words[count++] = as_xasprintf("--%s=%s", passed[i], value);
    }
    (void)sigaction(SIGALRM, &action, NULL);
    (void)alarm(NAMES_TIMEOUT_S);
    int status = AS_EXIT_USAGE;
    if (as_args_parse(get, count, words, &given, &error) == 0) {
        given.adapters = args->adapters;
        status = get->run(&given);
        as_args_deinit(&given);
    }
    (void)alarm(0);
    for (int i = 0; i < count; i++)
        free(words[i]);
    return status;
}

static int completion_run(const struct as_args *args)
{
    const char *word = args->operands[0];
    if (strcmp(word, "bash") == 0)
        print_bash();
    else if (strcmp(word, "zsh") == 0)
        print_zsh();
    else if (strcmp(word, "fish") == 0)
        print_fish();
    else if (strcmp(word, "reasons") == 0)
        for (int i = 0; i < AS_REASON_COUNT; i++)
            puts(as_reason_get_word((enum as_reason)i));
    else if (completion_has_kind(word))
        return completion_print_names(args);
    else
        return completion_fail(args);
    return AS_EXIT_OK;
}

static const struct as_option completion_options[] = {
    AS_OPTION_URL, AS_OPTION_TOKEN_FILE, AS_OPTION_CA_FILE, {0}};

static const struct as_command command_completion = {
    .name = "completion",
    .operands = "bash|zsh|fish|targets|rules|incidents|decisions|policies|contexts|reasons",
    .summary = "Prints a script for shell completion, or the names that it offers.",
    .help = "For example in ~/.bashrc: eval \"$(alertscaler completion bash)\"\n"
            "The script asks the daemon for names of targets and rules: with the options on the "
            "line, else\nas the commands find the daemon. It waits at most two seconds.",
    .options = completion_options,
    .operands_min = 1,
    .operands_max = 1,
    .first_words = "bash zsh fish targets rules incidents decisions policies contexts reasons",
    .run = completion_run,
};

/* --- the table, and running a command --- */

/* In the order in which `alertscaler help` lists them. */
/* one per line, so that two new commands do not conflict in a merge */
/* clang-format off */
static const struct as_command *const commands[] = {
    &as_command_init,
    &as_command_serve,
    &as_command_check,
    &as_command_test,
    &as_command_diff,
    &as_command_convert,
    &as_command_convert_cluster_autoscaler,
    &command_schema,
    &as_command_decide,
    &as_command_log,
    &as_command_log_verify,
    &as_command_explain,
    &as_command_effects,
    &as_command_replay,
    &as_command_backtest,
    &as_command_status,
    &as_commands_of_readers[AS_READER_GET],
    &as_commands_of_readers[AS_READER_DESCRIBE],
    &as_commands_of_operators[AS_OPERATOR_PAUSE],
    &as_commands_of_operators[AS_OPERATOR_RESUME],
    &as_commands_of_operators[AS_OPERATOR_SCALE],
    &as_commands_of_operators[AS_OPERATOR_FLOOR],
    &as_commands_of_operators[AS_OPERATOR_UNLOCK],
    &as_commands_of_operators[AS_OPERATOR_APPROVE],
    &as_commands_of_operators[AS_OPERATOR_DENY],
    &as_commands_of_operators[AS_OPERATOR_KILL_SWITCH],
    &as_command_fire,
    &as_commands_of_operators[AS_OPERATOR_RELOAD],
    &as_command_notify_test,
    &command_version,
    &command_completion,
    &command_help,
};
/* clang-format on */

size_t as_command_get_all(const struct as_command *const **commands_out)
{
    *commands_out = commands;
    return AS_ARRAY_SIZE(commands);
}

const struct as_command *as_command_find(const char *name)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(commands); i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}

/* "log verify FILE" gives the command "log verify", "log FILE" the command "log". */
static const struct as_command *command_find_in_arguments(int argc, char **argv, int *words_out)
{
    if (argc >= 3) {
        AS_CLEANUP(as_free_p) char *name = as_xasprintf("%s %s", argv[1], argv[2]);
        const struct as_command *command = as_command_find(name);
        if (command) {
            *words_out = 2;
            return command;
        }
    }
    *words_out = 1;
    return as_command_find(argv[1]);
}

static int command_fail_unknown(const char *name)
{
    AS_CLEANUP(as_free_p) char *hint = command_suggest(name);
    fputs("alertscaler: unknown command \"", stderr);
    as_safe_text_put(stderr, name);
    fprintf(stderr, "\"%s\nTry 'alertscaler help'.\n", hint);
    return AS_EXIT_USAGE;
}

static int command_run(const struct as_command *command, int argc, char **argv,
                       const struct as_adapters *adapters)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_args args;

    if (as_args_parse(command, argc, argv, &args, &error) != 0) {
        AS_CLEANUP(as_free_p) char *text = as_safe_text_take(as_xstrdup(error.text));
        fprintf(stderr, "alertscaler %s: %s\nTry 'alertscaler %s --help'.\n", command->name, text,
                command->name);
        return AS_EXIT_USAGE;
    }
    args.adapters = adapters;
    int status = AS_EXIT_OK;
    if (args.wants_help)
        help_print_command(command, stdout);
    else
        status = command->run(&args);
    as_args_deinit(&args);
    return status;
}

#define GLOBAL_MAX 2 /* --context NAME */

/* --context may also stand before the command. Its arguments, which are taken out of `argv`. */
static int command_take_global(int *argc_io, char **argv, char *global_out[GLOBAL_MAX])
{
    int count = 0;
    if (*argc_io > 1 && as_str_starts_with(argv[1], "--context="))
        count = 1;
    else if (*argc_io > 2 && strcmp(argv[1], "--context") == 0)
        count = 2;
    memcpy(global_out, argv + 1, (size_t)count * sizeof(*argv));
    memmove(argv + 1, argv + 1 + count, (size_t)(*argc_io - count) * sizeof(*argv));
    *argc_io -= count;
    return count;
}

int as_cli_main(int argc, char **argv, const struct as_adapters *adapters)
{
    static char help[] = "help", version[] = "version";
    char *global[GLOBAL_MAX];
    const int global_count = command_take_global(&argc, argv, global);
    int words = 1;

    if (argc < 2) {
        help_print_commands(stderr);
        return AS_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        argv[1] = help;
    else if (strcmp(argv[1], "--version") == 0)
        argv[1] = version;
    const struct as_command *command = command_find_in_arguments(argc, argv, &words);
    if (!command)
        return command_fail_unknown(argv[1]);
    /* behind the words of the command there is room for what was taken out */
    memmove(argv + 1 + words + global_count, argv + 1 + words,
            (size_t)(argc - 1 - words) * sizeof(*argv));
    memcpy(argv + 1 + words, global, (size_t)global_count * sizeof(*argv));
    int status = command_run(command, argc - 1 - words + global_count, argv + 1 + words, adapters);
    /* A failed write is a failed command. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "alertscaler %s: cannot write the output\n", command->name);
        return AS_EXIT_USAGE;
    }
    return status;
}
