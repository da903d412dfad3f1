#!/usr/bin/python3
"""banned.py ROOT: functions that style.md bans do not occur in src/ and include/, nor do marks of
unfinished work. Names in comments and literals do not count, and ordinary words (a parameter called
`random`) only where they are called."""
import pathlib
import re

import arch

BANNED = {
    "strcpy strcat strncpy strncat stpcpy sprintf vsprintf": "snprintf or as_buf",
    "gets": "fgets or as_file_read",
    "strtok": "strcspn, strspn",
    "atoi atol atoll atof sscanf vsscanf": "as_number_parse_...",
    "alloca": "as_buf or as_xmalloc",
    "system popen": "posix_spawn without a shell",
    "tmpnam tempnam mktemp": "mkstemp",
    "rand srand random srandom drand48": "as_random",
    "localtime localtime_r gmtime asctime ctime mktime timegm": "as_wall_time_...",
    "signal": "sigaction",
    "setjmp longjmp sigsetjmp siglongjmp": "outcomes",
}
INSTEAD = {name: instead for names, instead in BANNED.items() for name in names.split()}
BANNED_HEADERS = {"setjmp.h", "alloca.h", "sys/queue.h"}  # bsd/sys/queue.h has the loops that are safe
ORDINARY_WORDS = {"rand", "random", "signal", "system"}

WORD = re.compile(r"(->|\.)?\s*\b([A-Za-z_]\w*)\b(\s*\()?")
HEADER = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<([^>\n]+)>", re.MULTILINE)
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b")


def check_file(path, text):
    code = HEADER.sub(lambda m: arch.blank(m[0]), arch.code_only(text))
    for match in WORD.finditer(code):
        member, word, call = match.groups()
        name = word.removeprefix("__builtin_")
        if name in INSTEAD and not member and (call or name not in ORDINARY_WORDS):
            yield f"{path}:{arch.line_of(text, match.start(2))}: {word} is banned: use {INSTEAD[name]}"
    for match in HEADER.finditer(arch.without_comments(text)):
        if match[1] in BANNED_HEADERS:
            yield f"{path}:{arch.line_of(text, match.start())}: <{match[1]}> is banned"
    for match in UNFINISHED.finditer(arch.comments_only(text)):
        yield f"{path}:{arch.line_of(text, match.start())}: {match[1]}: finish it"


def check(root):
    root = pathlib.Path(root)
    files = arch.c_files(root, "src", "include")
    complaints = [c for path in files for c in check_file(path, (root / path).read_text(encoding="utf-8"))]
    return complaints if files else [f"{root}: there are no C files"]


def self_test():
    good = {
        "src/base/good.c": """/* strcpy(a, b); "system(1)" */
#include <signal.h>
// gets(line)
static const char *text = "sprintf(%s) \\" atoi(x) // no comment", quote = '"';
int my_strcpy(struct as_random *random, int signal);
void run(void) { self->signal(1); table.system(2); random->state = signal; as_system(3); snprintf(0); }
static const char *url = "http://x"; /* TODOs are for lists */
"""
    }
    bad = [
        ({"src/base/b.c": line + "\n"}, complaint)
        for line, complaint in [
            ("\nvoid f(void) { strcpy(a, b); }", "src/base/b.c:2: strcpy is banned"),
            ("copy_fn *copy = strcpy;", "strcpy is banned"),
            ("int x = system (a);", "system is banned"),
            ("signal(1, f);", "signal is banned: use sigaction"),
            ("x = __builtin_alloca(1);", "alloca is banned"),
            ("x = '\"' + atoi(y) + '\"';", "atoi is banned"),
            ('x = "a\\\\" ; sprintf(x, "");', "sprintf is banned"),
            ("/* one */ gets(x); /* two */", "gets is banned"),
            ("#include <setjmp.h>", "<setjmp.h> is banned"),
            ("/* a\n * FIXME: b */", "src/base/b.c:2: FIXME: finish it"),
        ]
    ] + [({"include/alertscaler/base/b.h": "struct tm *f(void) { return gmtime(0); }\n"}, "gmtime is banned")]
    wrong = arch.self_test_on_trees(check, good, bad)
    for name in INSTEAD:
        if not list(check_file("x.c", f"x = {name}(y);\n")):
            wrong.append(f"{name} is not found")
    return wrong


if __name__ == "__main__":
    arch.main(check, self_test)
