/*
 * `alertscaler completion`: scripts for bash, zsh and fish, made from the tables of commands and
 * options.
 *
 * All complete the first word with commands (also the second, for commands of two words), words
 * that begin with "--" with the command's options, option values with their choices, and everything
 * else with file names.
 */
#include <string.h>

#include "cli.h"

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
    bool has_choices = false;
    for (const struct as_option *option = command->options; option->name; option++) {
        if (!option->choices)
            continue;
        printf(has_choices ? "" : "        case \"$option\" in\n");
        has_choices = true;
        printf("        --%s) choices='", option->name);
        print_choices(option);
        printf("' ;;\n");
    }
    printf("%s        ;;\n", has_choices ? "        esac\n" : "");
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

    fputs("# bash completion for alertscaler: eval \"$(alertscaler completion bash)\"\n"
          "_alertscaler()\n{\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} options= choices= "
          "words= option=\n"
          "    COMPREPLY=()\n"
          "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
          "        COMPREPLY=($(compgen -W '",
          stdout);
    print_first_words();
    fputs("' -- \"$cur\"))\n        return\n    fi\n", stdout);
    /* bash splits words at "=" */
    fputs("    if [ \"$cur\" = = ]; then\n"
          "        option=${COMP_WORDS[COMP_CWORD-1]} cur=\n"
          "    elif [ \"${COMP_WORDS[COMP_CWORD-1]}\" = = ]; then\n"
          "        option=${COMP_WORDS[COMP_CWORD-2]}\n"
          "    else\n"
          "        option=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    fi\n",
          stdout);
    print_second_words();
    fputs("    case \" $words \" in\n"
          "    *\" ${COMP_WORDS[2]} \"*) [ \"$COMP_CWORD\" -gt 2 ] && command=\"$command "
          "${COMP_WORDS[2]}\" ;;\n"
          "    esac\n"
          "    case \"$command\" in\n",
          stdout);
    for (size_t i = 0; i < count; i++)
        print_bash_command(commands[i]);
    fputs("    esac\n"
          "    if [ -n \"$choices\" ]; then\n"
          "        COMPREPLY=($(compgen -W \"$choices\" -- \"$cur\"))\n"
          "    elif [ \"${cur#-}\" != \"$cur\" ]; then\n"
          "        COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
          "        [ \"${COMPREPLY[0]%=}\" = \"${COMPREPLY[0]}\" ] || compopt -o nospace\n"
          "    else\n"
          "        [ \"$COMP_CWORD\" = 2 ] || words=\n"
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
        if (option->value)
            printf(":%s:%s", option->value, option->choices ? "(" : "_files");
        if (option->choices) {
            print_choices(option);
            putchar(')');
        }
        putchar('\'');
    }
    fputs(" \\\n            '--help[this text]'", stdout);
    printf("%s\n        ;;\n", command->operands_max > 0 ? " '*:argument:_files'" : "");
}

static void print_zsh(void)
{
    const struct as_command *const *commands;
    size_t count = as_command_get_all(&commands);

    fputs("#compdef alertscaler\n"
          "# zsh completion for alertscaler: eval \"$(alertscaler completion zsh)\"\n"
          "_alertscaler()\n{\n"
          "    local command=$words[2]\n"
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
    puts("complete -c alertscaler -l help -s h -d 'this text'");
    for (size_t i = 0; i < count; i++)
        print_fish_command(commands[i]);
}

static int run(const struct as_args *args)
{
    if (strcmp(args->operands[0], "bash") == 0)
        print_bash();
    else if (strcmp(args->operands[0], "zsh") == 0)
        print_zsh();
    else if (strcmp(args->operands[0], "fish") == 0)
        print_fish();
    else
        return as_cli_fail(args, "there is no completion for \"%s\": expected bash, zsh or fish",
                           args->operands[0]);
    return AS_EXIT_OK;
}

static const struct as_option options[] = {{0}};

const struct as_command as_command_completion = {
    .name = "completion",
    .operands = "bash|zsh|fish",
    .summary = "Prints a script for shell completion.",
    .help = "For example in ~/.bashrc: eval \"$(alertscaler completion bash)\"",
    .options = options,
    .operands_min = 1,
    .operands_max = 1,
    .run = run,
};
