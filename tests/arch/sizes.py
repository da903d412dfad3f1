#!/usr/bin/python3
"""sizes.py ROOT: every file says at its head what it is; a port reads as two pages. Warns of a module with more than 1,500 lines,
of a function with more than 120, and of a directory with more than 30 modules: each has two subjects, or a comment that says
why not.

A module is the source file and the headers of its name, in its directory and in the layer's public headers.
"""
import collections
import contextlib
import io
import pathlib

import arch

PORT_MAX = 120
MODULE_WARN, FUNCTION_WARN, DIRECTORY_WARN = 1500, 120, 30


def check_port(path, text):
    lines = text.count("\n")
    if path.parts[:3] == ("include", "alertscaler", "port") and lines > PORT_MAX:
        yield f"{path}: {lines} lines, at most {PORT_MAX}"


def functions(text):
    """(first line, lines) of each: the code's layout puts the braces of functions, and only these, alone
    at the start of a line."""
    start = None
    for number, line in enumerate(arch.code_only(text).split("\n"), 1):
        if line.rstrip() == "{":
            start = number
        elif line.rstrip() == "}" and start is not None:
            yield start, number - start + 1
            start = None


def check_file(path, text):
    if not text.startswith("/*"):
        yield f"{path}:1: no comment says what this file is"
    yield from check_port(path, text)
    for line, lines in functions(text):
        if lines > FUNCTION_WARN:
            print(f"warning: {path}:{line}: a function of {lines} lines, better at most {FUNCTION_WARN}")


def find_modules(files):
    """{name of a module with its directory: its files}."""
    modules = collections.defaultdict(list)
    for path in files:
        modules[path.with_suffix("")].append(path)
    sources = collections.defaultdict(list)
    for path in files:
        if path.suffix == ".c":
            sources[path.parts[1], path.stem].append(path.with_suffix(""))
    for module in list(modules):
        homes = sources[module.parts[2], module.name] if module.parts[0] == "include" and len(module.parts) == 4 else []
        if len(homes) == 1:
            modules[homes[0]] += modules.pop(module)
    return modules


def warn_of_modules(texts):
    modules = find_modules(texts)
    for module, files in modules.items():
        lines = sum(texts[path].count("\n") for path in files)
        if lines > MODULE_WARN:
            print(f"warning: {module}: a module of {lines} lines, better at most {MODULE_WARN}")
    for directory, count in collections.Counter(module.parent for module in modules).items():
        if count > DIRECTORY_WARN:
            print(f"warning: {directory}: {count} modules, better at most {DIRECTORY_WARN}")


def check(root):
    root = pathlib.Path(root)
    texts = {path: (root / path).read_text(encoding="utf-8") for path in arch.c_files(root, "src", "include")}
    complaints = [c for path, text in texts.items() for c in check_file(path, text)]
    warn_of_modules(texts)
    return complaints if texts else [f"{root}: there are no C files"]


def self_test():
    def lines(count, first="/* x */"):
        return first + "\n" * count

    def function(count):
        return "/* x */\nvoid f(void)\n{\n" + "    x();\n" * (count - 2) + "}\n"

    good = {
        "include/alertscaler/port/a.h": lines(PORT_MAX),
        # A module of 1,500 lines, and one of a line more.
        "include/alertscaler/base/a.h": lines(100),
        "src/base/a.c": lines(MODULE_WARN - 100),
        "include/alertscaler/base/b.h": lines(100),
        "src/base/room/b.h": lines(1),
        "src/base/room/b.c": lines(MODULE_WARN - 100),
        "src/base/c.c": function(FUNCTION_WARN + 1),
        "src/base/d.c": function(FUNCTION_WARN) + function(FUNCTION_WARN),
    }
    good |= {f"src/net/{i}{suffix}": lines(1) for i in range(DIRECTORY_WARN) for suffix in (".c", ".h")}
    good |= {f"src/wire/{i}.c": lines(1) for i in range(DIRECTORY_WARN + 1)}
    bad = [
        ({"include/alertscaler/port/x.h": lines(PORT_MAX + 1)}, "121 lines, at most 120"),
        ({"src/base/x.c": "int x;\n"}, "no comment says"),
    ]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        wrong = arch.self_test_on_trees(check, good, bad)
    warnings = set(printed.getvalue().splitlines())
    expected = {
        "warning: src/base/room/b: a module of 1501 lines, better at most 1500",
        "warning: src/base/c.c:3: a function of 121 lines, better at most 120",
        "warning: src/wire: 31 modules, better at most 30",
    }
    if warnings != expected:
        wrong.append(f"expected {expected}, got {warnings}")
    return wrong


if __name__ == "__main__":
    arch.main(check, self_test)
