#!/usr/bin/python3
"""purity.py CORE.a... -- BASE.a... -- CC...: the core computes, and does nothing else.

The linker joins the whole core with what it needs of base. What is still undefined then is what the core
asks of the world, and must be listed in pure_symbols; and neither may keep state in variables of its own.
"""
import fnmatch
import pathlib
import re
import subprocess
import tempfile

import arch

# What compilers and sanitizers put in.
INSTRUMENTATION = re.compile(
    r"__odr_asan|__(asan|ubsan|lsan|tsan|msan|sanitizer|sancov|gcov)_|__stack_chk_|__unnamed_\d|_GLOBAL_OFFSET_TABLE_|mcount"
)
STATE_SECTIONS = re.compile(r"\.(data|bss|tdata|tbss)(?!\.rel\.ro)|\*COM\*")


def read_list():
    """Kind ("call" or "state"), then a name or pattern; behind # the reason."""
    listed = {"call": [], "state": []}
    for line in (pathlib.Path(__file__).parent / "pure_symbols").read_text(encoding="utf-8").splitlines():
        words = line.split("#")[0].split()
        if words:
            listed[words[0]] += words[1:]
    return listed


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def is_listed(name, patterns):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def undefined_symbols(joined):
    for line in output("nm", "--undefined-only", "--format=posix", joined).splitlines():
        name = line.split()[0]
        if not INSTRUMENTATION.match(name):
            # _FORTIFY_SOURCE turns snprintf into __snprintf_chk
            yield re.sub(r"^__(\w+)_chk$", r"\1", name)


def state_symbols(joined):
    """What lies in writable sections; where only the loader writes (.data.rel.ro) are constants."""
    for line in output("objdump", "--syms", joined).splitlines():
        match = re.match(r"[0-9a-f]+ (.{7}) (\S+)\s+[0-9a-f]+ (.*)", line)
        if match and "d" not in match[1] and STATE_SECTIONS.match(match[2]):
            name = re.sub(r"\.\d+$", "", match[3].split()[-1])
            if not INSTRUMENTATION.match(name.lstrip(".")):
                yield name


def who_needs(name, *archives):
    """The object files that ask for it, to say where to look."""
    wanted = re.compile(rf"^(.*?):? (?:__)?{re.escape(name)}(?:_chk)? U\b")
    lines = output("nm", "--undefined-only", "--print-file-name", "--format=posix", *archives).splitlines()
    found = {re.sub(r".*[\[/]|\]$", "", match[1]) for match in map(wanted.match, lines) if match}
    return ", ".join(sorted(found))


def check(*arguments):
    cores, _, rest = " ".join(arguments).partition(" -- ")
    bases, _, compiler = rest.partition(" -- ")
    cores, bases, compiler = cores.split(), bases.split(), compiler.split()
    listed = read_list()
    for core in cores:
        if " " not in output("nm", "--defined-only", "--format=posix", core):
            return [f"{core}: there is nothing in it"]
    with tempfile.TemporaryDirectory() as folder:
        joined = f"{folder}/joined.o"
        subprocess.run(
            [*compiler, "-r", "-nostdlib", "-o", joined]
            + ["-Wl,--whole-archive", *cores, "-Wl,--no-whole-archive", "-Wl,--start-group", *bases, "-Wl,--end-group"],
            check=True,
        )
        complaints = [
            f"the core needs {name} ({who_needs(name, *cores, *bases)}), which is not in pure_symbols"
            for name in undefined_symbols(joined)
            if not is_listed(name, listed["call"])
        ]
        complaints += [
            f"the core keeps state in {name}" for name in state_symbols(joined) if not is_listed(name, listed["state"])
        ]
    return complaints


def self_test(*compiler):
    wrong = []
    base = """
        #include <stdlib.h>
        #include <time.h>
        void *as_xmalloc(size_t size) { return malloc(size); }
    """
    impure_base = "#include <time.h>\nlong as_now(void) { return (long)time(0); }\n"
    header = "#include <stdlib.h>\n#include <string.h>\n#include <stdio.h>\n#include <time.h>\n#include <fcntl.h>\n"
    pure = header + """
        void *as_xmalloc(size_t size);
        static const char *const names[] = {"a", "b"};
        const int numbers[] = {1, 2};
        char *as_f(int i) { return memcpy(as_xmalloc(9), names[i], 2); }
        int as_g(char *t, int n) { return snprintf(t, 5, "%d", numbers[n]); }
    """
    cases = [
        (pure, None),
        ("", "nothing in it"),
        (pure + "long as_h(void) { return (long)time(0); }", "needs time (core.o, impure.o)"),
        (pure + "char *as_h(void) { return getenv(\"TZ\"); }", "needs getenv (core.o)"),
        (pure + "int as_h(void) { return open(\"x\", O_RDONLY); }", "needs open (core.o)"),
        (pure + "int as_h(int x) { return printf(\"%d\", x); }", "needs printf (core.o)"),
        (pure + "long as_now(void); long as_h(void) { return as_now(); }", "needs time (impure.o)"),
        (pure + "int as_h(void) { static int calls; return ++calls; }", "calls"),
        (pure + "int as_state = 5;", "keeps state in as_state"),
        (pure + "_Thread_local int as_state;", "keeps state in as_state"),
    ]
    for source, expected in cases:
        with tempfile.TemporaryDirectory() as folder:
            files = {"core": source, "base": base, "impure": impure_base}
            for name, text in files.items():
                command = [*compiler, "-O1", "-fPIC", "-fno-builtin", "-x", "c", "-", "-c", "-o", f"{folder}/{name}.o"]
                subprocess.run(command, input=text, text=True, check=True)
            output("ar", "rcs", f"{folder}/core.a", f"{folder}/core.o")
            output("ar", "rcs", f"{folder}/base.a", f"{folder}/base.o", f"{folder}/impure.o")
            complaints = check(f"{folder}/core.a", "--", f"{folder}/base.a", "--", *compiler)
        if expected is None and complaints:
            wrong.append(f"the pure sample is refused: {complaints}")
        if expected is not None and (len(complaints) != 1 or expected not in complaints[0]):
            wrong.append(f"expected one complaint with {expected!r}, got {complaints}")
    return wrong


if __name__ == "__main__":
    arch.main(check, self_test)
