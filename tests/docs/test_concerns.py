#!/usr/bin/python3
"""test_concerns.py ROOT: the table of hooks in docs/architecture.md names the rows of engine_concerns that have each hook, in
the order of the table, and each hook of struct concern."""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])


def read_hooks():
    text = (ROOT / "src/engine/engine_concerns.h").read_text(encoding="utf-8")
    body = text[text.index("struct concern {"):text.index("extern const struct concern")]
    return re.findall(r"\(\*(\w+)\)\(", body)


def read_rows():
    """{hook: [concern]} of the code."""
    text = (ROOT / "src/engine/engine_concerns.c").read_text(encoding="utf-8")
    table = text[text.index("const struct concern engine_concerns[]"):]
    rows = {}
    for name, members in re.findall(r'\{\.name = "([^"]+)"([^}]*)\}', table):
        for hook in re.findall(r"\.(\w+) = ", members):
            rows.setdefault(hook, []).append(name)
    return rows


def read_page():
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    table = text[text.index("| hook | when | rows |"):text.index("test_example_concern.c")]
    return {hook: names.split(", ") for hook, names in re.findall(r"\| `(\w+)` \|[^|]*\| ([^|]*) \|", table)}


def main():
    hooks, rows, page = read_hooks(), read_rows(), read_page()
    problems = [f"docs/architecture.md: {hook}: {page.get(hook)}; engine_concerns.c: {rows.get(hook)}"
                for hook in hooks if page.get(hook) != rows.get(hook)]
    problems += [f"docs/architecture.md: struct concern has no hook {hook}" for hook in page if hook not in hooks]
    if len(hooks) < 5 or not rows:
        problems.append("no hooks or no rows were found")
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


main()
