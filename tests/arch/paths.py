#!/usr/bin/python3
"""paths.py ROOT: a path of the tree that a Markdown file names in code (`src/base/buf.c`, or `base/buf.c` below src/ or
include/alertscaler/) is there. The changelog is exempt: it names what was there."""
import pathlib
import re

import arch

TOP = "src", "include", "tests", "docs", "deploy", "debian"
FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([a-z_]+/[A-Za-z0-9_./-]+)`")
PLACEHOLDER = re.compile(r"[A-Z]{2}")       # src/cloud/TYPE.c
EXEMPT = {"docs/changelog.md"}


def find_places(root, name):
    """Where the path may be; none if it is no path of the tree."""
    first = name.partition("/")[0]
    if first in TOP:
        return [root / name]
    if name.endswith((".c", ".h")) and (root / "src" / first).is_dir():
        return [root / "src" / name, root / "include/alertscaler" / name]
    return []


def check_file(root, path):
    text = FENCED.sub(lambda m: arch.blank(m[0]), (root / path).read_text(encoding="utf-8"))
    for match in SPAN.finditer(text):
        places = [] if PLACEHOLDER.search(match[1]) else find_places(root, match[1])
        if places and not any(place.exists() for place in places):
            yield f"{path}:{arch.line_of(text, match.start())}: {match[1]} is not there"


def check(root):
    root = pathlib.Path(root)
    files = [path for path in arch.text_files(root) if path.suffix == ".md" and str(path) not in EXEMPT]
    return [c for path in files for c in check_file(root, path)] if files else [f"{root}: there is no Markdown"]


def self_test():
    good = {"a.md": "`src/base/buf.c`, `base/buf.h`, `src/base/`, `src/cloud/TYPE.c`, `other/buf.c`, `text/plain`, `tests/one NAME`\n"
                    "```\n`src/gone.c`\n```\n",
            "docs/changelog.md": "`src/gone.c`\n", "src/base/buf.c": "\n", "include/alertscaler/base/buf.h": "\n"}
    bad = [({"b.md": "\n" + text + "\n"}, f"b.md:2: {text[1:-1]} is not there")
           for text in ("`src/gone.c`", "`base/gone.h`", "`tests/gone/`", "`src/base/buf.h`")]
    return arch.self_test_on_trees(check, good, bad)


if __name__ == "__main__":
    arch.main(check, self_test)
