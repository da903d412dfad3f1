#!/usr/bin/python3
"""test_concerns.py ROOT: the table of hooks in docs/architecture.md names the rows of engine_concerns that have each hook, in
the order of the table, and each hook of struct concern."""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])


def read_hooks():
    text = (ROOT / "src/engine/engine_concerns.h").read_text(encoding="utf-8")
    body = text[text.index("struct concern {"):text.index("/* The table, in the order")]
    return re.findall(r"\(\*(\w+)\)\(", body)


def read_rows():
    """{hook: [concern]} of the code: the order is that of the table, a row is in the concern's module."""
    header = (ROOT / "src/engine/engine_concerns.h").read_text(encoding="utf-8")
    table = header[header.index("#define ENGINE_CONCERNS"):header.index("#define CONCERN_ID")]
    modules = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "src/engine").glob("engine_*.c")))
    rows = {}
    for ident in re.findall(r"ROW\([A-Z_]+, (\w+)\)", table):
        row = re.search(r'const struct concern concern_%s = \{\s*\.name = "([^"]+)",([^}]*)\}' % ident, modules)
        for hook in re.findall(r"\.(\w+) = ", row.group(2)):
            rows.setdefault(hook, []).append(row.group(1))
    return rows


def read_page():
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    table = text[text.index("| hook | when | rows |"):text.index("test_example_concern.c")]
    return {hook: names.split(", ") for hook, names in re.findall(r"\| `(\w+)` \|[^|]*\| ([^|]*) \|", table)}


def main():
    hooks, rows, page = read_hooks(), read_rows(), read_page()
    problems = [f"docs/architecture.md: {hook}: {page.get(hook)}; code: {rows.get(hook)}"
                for hook in hooks if page.get(hook) != rows.get(hook)]
    problems += [f"docs/architecture.md: struct concern has no hook {hook}" for hook in page if hook not in hooks]
    if len(hooks) < 5 or not rows:
        problems.append("no hooks or no rows were found")
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


main()
