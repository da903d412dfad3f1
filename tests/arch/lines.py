#!/usr/bin/python3
"""lines.py ROOT: lines of Markdown end at 100 columns; tables, blocks of code, headings and what cannot be broken aside."""
import pathlib
import re

import arch

MAX = 100
FREE = re.compile(r"\s*\||#|\s*(?:[-*]|\d+\.)?\s*\S+$")  # a row, a heading, one long word
WHOLE = re.compile(r"\[[^\]]*\]\([^)]*\)|`[^`]*`")  # stays on one line


def check_file(path, text):
    in_code = False
    for number, line in enumerate(text.split("\n"), 1):
        in_code ^= line.lstrip().startswith("```")
        if len(line) > MAX and not in_code and not FREE.match(WHOLE.sub(lambda m: "x" * len(m[0]), line)):
            yield f"{path}:{number}: {len(line)} columns, at most {MAX}"


def check(root):
    root = pathlib.Path(root)
    files = [path for path in arch.text_files(root) if path.suffix == ".md"]
    complaints = [c for path in files for c in check_file(path, (root / path).read_text(encoding="utf-8"))]
    return complaints if files else [f"{root}: there is no Markdown"]


def self_test():
    long = "word " * 21
    good = {"a.md": f"| {long} |\n# {long}\n```\n{long}\n```\n- [{long}](x)\n" + "word " * 19 + "\n"}
    bad = [({"b.md": long + "\n"}, "b.md:1: 105 columns"), ({"b.md": "```\n```\n- " + long}, "b.md:3: 107 columns")]
    return arch.self_test_on_trees(check, good, bad)


if __name__ == "__main__":
    arch.main(check, self_test)
