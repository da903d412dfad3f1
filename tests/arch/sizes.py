#!/usr/bin/python3
"""sizes.py ROOT: a header reads as a page, a source file has one subject, a function fits a screen, a folder
is seen at a glance; every file says at its head what it is.

A file above its limit must say why in a comment, "Long because ..."; a port has no excuse. Functions above
the limit are printed, above the second limit they fail.
"""
import collections
import contextlib
import io
import pathlib

import arch

HEADER_MAX, PORT_MAX, SOURCE_MAX = 150, 60, 600
FUNCTION_WARN, FUNCTION_MAX = 70, 100
FOLDER_MAX = 30
EXCUSE = "Long because "


def check_length(path, text):
    lines = text.count("\n")
    port = path.parts[:3] == ("include", "alertscaler", "port")
    limit = PORT_MAX if port else HEADER_MAX if path.suffix == ".h" else SOURCE_MAX
    excused = not port and EXCUSE in arch.comments_only(text)
    if lines > limit and not excused:
        yield f"{path}: {lines} lines, at most {limit}"


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
    yield from check_length(path, text)
    for line, lines in functions(text):
        if lines > FUNCTION_MAX:
            yield f"{path}:{line}: a function of {lines} lines, at most {FUNCTION_MAX}"
        elif lines > FUNCTION_WARN:
            print(f"warning: {path}:{line}: a function of {lines} lines, better at most {FUNCTION_WARN}")


def check_folders(files):
    counts = collections.Counter(path.parent for path in files)
    return [f"{folder}: {count} C files, at most {FOLDER_MAX}" for folder, count in counts.items() if count > FOLDER_MAX]


def check(root):
    root = pathlib.Path(root)
    files = arch.c_files(root, "src", "include")
    complaints = [c for path in files for c in check_file(path, (root / path).read_text(encoding="utf-8"))]
    complaints += check_folders(files)
    return complaints if files else [f"{root}: there are no C files"]


def self_test():
    def lines(count, first="/* x */"):
        return first + "\n" * count

    def function(count):
        return "/* x */\nvoid f(void)\n{\n" + "    x();\n" * (count - 2) + "}\n"

    good = {
        "include/alertscaler/base/a.h": lines(HEADER_MAX),
        "include/alertscaler/port/a.h": lines(PORT_MAX),
        "src/base/a.c": lines(SOURCE_MAX),
        "src/base/b.c": lines(SOURCE_MAX + 1, "/* Long because it is a table. */"),
        "src/base/c.c": function(FUNCTION_MAX),
        "src/base/d.c": function(FUNCTION_WARN) + function(FUNCTION_WARN),
    }
    bad = [
        ({"include/alertscaler/base/x.h": lines(HEADER_MAX + 1)}, "151 lines, at most 150"),
        ({"src/base/x.h": lines(HEADER_MAX + 1)}, "151 lines, at most 150"),
        ({"include/alertscaler/port/x.h": lines(PORT_MAX + 1, "/* Long because so. */")}, "61 lines, at most 60"),
        ({"src/base/x.c": lines(SOURCE_MAX + 1, '/* */ char *x = "Long because ";')}, "601 lines, at most 600"),
        ({"src/base/x.c": function(FUNCTION_MAX + 1)}, "src/base/x.c:3: a function of 101 lines"),
        ({"src/base/x.c": "int x;\n"}, "no comment says"),
        ({f"src/net/{i}.c": lines(1) for i in range(FOLDER_MAX + 1)}, "src/net: 31 C files, at most 30"),
    ]
    with contextlib.redirect_stdout(io.StringIO()) as warnings:
        wrong = arch.self_test_on_trees(check, good, bad)
    if "src/base/c.c:3: a function of 100 lines" not in warnings.getvalue():
        wrong.append("no warning of the long function")
    if "src/base/d.c" in warnings.getvalue():
        wrong.append("a warning of a function that is not long")
    return wrong


if __name__ == "__main__":
    arch.main(check, self_test)
