/*
 * The man page alertscaler(8) agrees with the table of commands: each command has its section with
 * all its options, and the page has no others. mandoc accepts the page.
 */
#include <criterion/criterion.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "cli/cli.h"
#include "source_root.h"

#define PAGE     TEST_SOURCE_ROOT "/docs/man/alertscaler.8"
#define PAGE_MAX ((size_t)1024 * 1024)
#define COMMON   ".Sh COMMON OPTIONS\n"

extern char **environ;

static char *page;
static char *common; /* the section of that name */

/* What is from `start` up to the next section: a copy. */
static char *cut_section(const char *start)
{
    const char *at = start + 1;
    while (*at && !as_str_starts_with(at, "\n.Ss ") && !as_str_starts_with(at, "\n.Sh "))
        at++;
    return as_xstrndup(start, (size_t)(at - start) + 1);
}

static void setup(void)
{
    size_t size;
    cr_assert_eq(as_file_read(PAGE, PAGE_MAX, &page, &size), 0);
    const char *start = strstr(page, COMMON);
    cr_assert(start);
    common = cut_section(start);
}

static void teardown(void)
{
    free(page);
    free(common);
}

TestSuite(man, .init = setup, .fini = teardown);

/* ".Ss NAME" and, behind it, operands in mdoc's macros: a word that is one ends the name. */
static char *find_section(const struct as_command *command)
{
    static const char *const after[] = {"\n", " Op ", " Oo ", " Ar ", " Cm "};
    for (size_t i = 0; i < AS_ARRAY_SIZE(after); i++) {
        AS_CLEANUP(as_free_p)
        char *heading = as_xasprintf("\n.Ss %s%s", command->name, after[i]);
        const char *start = strstr(page, heading);
        if (start)
            return cut_section(start + 1);
    }
    return NULL;
}

static bool has_option(const char *section, const struct as_option *option)
{
    static const char *const after[] = {"\n", " Ns "};
    for (size_t i = 0; i < AS_ARRAY_SIZE(after); i++) {
        AS_CLEANUP(as_free_p) char *text = NULL;
        if (option->letter)
            text = as_xasprintf(".It Fl %c , Fl -%s%s", option->letter, option->name, after[i]);
        else
            text = as_xasprintf(".It Fl -%s%s", option->name, after[i]);
        if (strstr(section, text))
            return true;
    }
    return false;
}

Test(man, has_every_command_and_option)
{
    const struct as_command *const *commands;
    const size_t count = as_command_get_all(&commands);
    cr_assert_gt(count, 0);
    for (size_t i = 0; i < count; i++) {
        AS_CLEANUP(as_free_p) char *section = find_section(commands[i]);
        cr_expect(section, "no section: .Ss %s", commands[i]->name);
        for (const struct as_option *option = commands[i]->options; section && option->name;
             option++)
            cr_expect(has_option(section, option), "%s: no .It Fl -%s", commands[i]->name,
                      option->name);
    }
}

static const struct as_option *find_option(const struct as_command *command, const char *name,
                                           size_t size)
{
    for (const struct as_option *option = command->options; option->name; option++) {
        if (strlen(option->name) == size && strncmp(option->name, name, size) == 0)
            return option;
    }
    return NULL;
}

/* Every "Fl -NAME" of an item in the section is one of the command's. */
static void expect_known_options(const struct as_command *command, const char *section)
{
    for (const char *at = section; (at = strstr(at, "\n.It Fl ")); at++) {
        const size_t line = strcspn(at + 1, "\n") + 1;
        const char *name = strstr(at, "Fl -");
        cr_assert(name && name < at + line, "an option without a long name: %.*s", (int)line, at);
        name += strlen("Fl -");
        const size_t size = strcspn(name, " \n");
        cr_expect(find_option(command, name, size), "%s has no --%.*s", command->name, (int)size,
                  name);
    }
}

static const struct as_command *find_command(const char *heading)
{
    static const char *const macros[] = {" Op ", " Oo ", " Ar ", " Cm "};
    size_t size = strcspn(heading, "\n");
    for (size_t i = 0; i < AS_ARRAY_SIZE(macros); i++) {
        const char *at = strstr(heading, macros[i]);
        if (at && at < heading + size)
            size = (size_t)(at - heading);
    }
    AS_CLEANUP(as_free_p) char *name = as_xstrndup(heading, size);
    const struct as_command *command = as_command_find(name);
    cr_expect(command, "there is no command %s", name);
    return command;
}

Test(man, has_nothing_that_is_not)
{
    for (const char *at = page; (at = strstr(at, "\n.Ss ")); at++) {
        const struct as_command *command = find_command(at + strlen("\n.Ss "));
        AS_CLEANUP(as_free_p) char *section = cut_section(at + 1);
        if (command)
            expect_known_options(command, section);
    }
    static const struct as_option shared[] = {
        {.name = "help", .letter = 'h'},
        {.name = "context"},
        {.name = "url"},
        {.name = "token-file"},
        {.name = "ca-file"},
        AS_OPTION_OUTPUT,
        {0},
    };
    static const struct as_command all = {.name = "(common)", .options = shared};
    expect_known_options(&all, common);
    for (const struct as_option *option = shared; option->name; option++)
        cr_expect(has_option(common, option), "%s", option->name);
}

Test(man, satisfies_mandoc)
{
    char *const arguments[] = {(char[]){"mandoc"},
                               (char[]){"-T"},
                               (char[]){"lint"},
                               (char[]){"-W"},
                               (char[]){"warning"},
                               (char[]){PAGE},
                               NULL};
    pid_t pid;
    int status;
    const int r = posix_spawnp(&pid, "mandoc", NULL, NULL, arguments, environ);
    cr_assert_eq(r, 0, "mandoc: %s", strerror(r));
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
}
