#!/usr/bin/python3
"""figures.py BUILD [ROOT [PLAIN]]: prints the figures of the tree's structure as a table in Markdown: at the first commit of the
redesign (first_figures), now, and the goal. docs/architecture.md says what a module and a directory are.

BUILD is a build directory with object files, build/asan for example. PLAIN has the daemon without sanitizers and with debug
information, build/valgrind: the path of a notification is measured only with it, as path.py describes. graph.py has the definitions of the figures that it
reads from object files, and lists what they count. Lines are counted in src/ and include/: a code line has more than comments
and spaces, a comment line has a comment, so that a line may be both.
"""
import pathlib
import re
import subprocess
import sys

import arch
import graph
import path

FIRST = pathlib.Path(__file__).parent / "first_figures"
UNIT_TEST = "tests/unit/test_decide_choose"  # a unit test of core, to count build steps of

# Read by hand: the places that name a new stored member of a concern of a target (its struct, its row), and the files that a new
# concern touches, by CONTRIBUTING.md.
BY_HAND = {"stored_places": 2, "concern_files": 6}

# What is measured, the format of its figures, the goal.
ROWS = [
    ("files and directories that one notification passes, socket to PUT on a Deployment's scale (callgrind)",
     "{path_files}, {path_directories}", "at most 70, 14"),
    (".c files; headers", "{sources}; {headers}", "at most 300; at most 220"),
    ("cycles of files, by object files, functions and data", "{cycles} cycles, {files_in_cycles} files", "0"),
    ("pairs of directories that use each other", "{mutual_directories}", "at most 8"),
    ("symbols with one user, in another file of the same directory", "{single_users}", "at most 250"),
    ("static functions with a name that another file uses too", "{ambiguous_statics} of {statics}", "at most 300"),
    ("places that name a stored field of a target; files that a new concern of a target touches",
     "{stored_places}; {concern_files} (by hand)", "2; 4"),
    ("code lines of src and include; comment lines", "{code_lines}; {comment_lines}", "at most 107,000; not fewer"),
    (f"build steps from a configured clone to one unit test of `decide` ({UNIT_TEST})", "{build_steps}", "at most 200"),
]


def count_lines(text):
    """(code lines, comment lines)."""
    code = sum(bool(line.strip()) for line in arch.without_comments(text).split("\n"))
    return code, sum(bool(line.strip()) for line in arch.comments_only(text).split("\n"))


def measure_text(root):
    files = arch.c_files(root, "src", "include")
    lines = [count_lines((root / path).read_text(encoding="utf-8")) for path in files]
    return {
        "sources": sum(path.suffix == ".c" for path in files),
        "headers": sum(path.suffix == ".h" for path in files),
        "statics": graph.count_functions(graph.read_statics(root)),
        "code_lines": sum(code for code, _ in lines),
        "comment_lines": sum(comments for _, comments in lines),
    }


def count_build_steps(build):
    """Commands that ninja runs to make the test in an empty build directory."""
    command = ["ninja", "-C", build, "-t", "commands", UNIT_TEST]
    return len(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())


def measure(build, root):
    return BY_HAND | measure_text(root) | graph.read_figures(graph.Graph(build, root), root) | {"build_steps": count_build_steps(build)}


def show(form, figures):
    if "{path_files}" in form and "path_files" not in figures:
        return "run with PLAIN"
    keys = re.findall(r"\{(\w+)\}", form)
    if missing := [key for key in keys if key not in figures]:
        return f"not measured: {', '.join(missing)}"
    return form.format(**{key: f"{figures[key]:,}" for key in keys})


def table(first, now):
    yield "| measured | at 1c874e40 | now | goal |"
    yield "|---|---|---|---|"
    for text, form, goal in ROWS:
        yield f"| {text} | {show(form, first)} | {show(form, now)} | {goal} |"


def check(build, root=pathlib.Path(__file__).resolve().parents[2], plain=None):
    try:
        now = measure(build, pathlib.Path(root))
        if plain:
            now |= path.measure(plain)[1]
    except graph.Unreadable as why:
        return [str(why)]
    except subprocess.CalledProcessError as why:
        return [f"{why}: {why.stdout.strip() or why.stderr.strip()}"]
    rows = list(table(graph.read_rows(FIRST), now))
    print("\n".join(rows))
    return [f"tests/arch/figures.py: {row}" for row in rows if "not measured" in row]


def self_test():
    wrong = []
    samples = [
        ("", (0, 0)),
        ("int x; /* a\n * b\n\n */\n", (1, 3)),
        ('char *x = "/* no comment";\n\n// "no code\nchar y = \'"\'; // both\n', (2, 2)),
        ("/* a */ int x; /* b */\n \t\n#define X \\\n    1\n", (3, 1)),
    ]
    for text, expected in samples:
        if count_lines(text) != expected:
            wrong.append(f"{text!r}: expected {expected} code and comment lines, got {count_lines(text)}")
    if show("{a} of {b}", {"a": 1234, "b": 2}) != "1,234 of 2" or show("{a}", {}) != "not measured: a":
        wrong.append("a row is not printed as it should be")
    first = graph.read_rows(FIRST)
    if "| 162, 39 | run with PLAIN |" not in "".join(table(first, {})):
        wrong.append("the first figures of a path are not printed beside the present ones")
    if missing := [row for row in table(first, first) if "not measured" in row or "PLAIN" in row]:
        wrong.append(f"first_figures is incomplete: {missing}")
    return wrong


if __name__ == "__main__":
    arch.main(check, self_test)
