#!/usr/bin/python3
"""links.py ROOT: every relative link in a Markdown file of the tree leads to a file or folder of the tree, and its #fragment
to a heading there. The sites of others are not asked."""
import pathlib
import re

import arch

FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)[^)\n]*\)|^\[[^\]\n]+\]:\s*(\S+)", re.MULTILINE)
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*\s*$", re.MULTILINE)


def read_prose(path):
    """The text with code blanked out, line for line."""
    return FENCED.sub(lambda m: arch.blank(m[0]), path.read_text(encoding="utf-8"))


def list_anchors(path):
    names = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(read_prose(path))]
    return {name if names[:i].count(name) == 0 else f"{name}-{names[:i].count(name)}" for i, name in enumerate(names)}


def check_file(root, path):
    text = CODE.sub(lambda m: arch.blank(m[0]), read_prose(path))
    for match in LINK.finditer(text):
        target = match[1] or match[2]
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        name, _, fragment = target.partition("#")
        place = (path.parent / name).resolve() if name else path
        where = f"{path.relative_to(root)}:{arch.line_of(text, match.start())}"
        if not place.exists():
            yield f"{where}: {target} is not there"
        elif root not in [place, *place.parents]:
            yield f"{where}: {target} leaves the tree"
        elif fragment and place.suffix == ".md" and fragment not in list_anchors(place):
            yield f"{where}: {target}: no such heading"


def check(root):
    root = pathlib.Path(root).resolve()
    files = [path for path in arch.text_files(root) if path.suffix == ".md"]
    return [c for path in files for c in check_file(root, root / path)] if files else [f"{root}: no Markdown"]


def self_test():
    good = {"README.md": "# One\n## Two: `x`, y\n[a](docs/b.md) [c](#two-x-y) [d](docs/b.md#b) [e](https://x/y) [f](docs/)\n"
                         "```\n[g](gone)\n# no heading\n```\n`[h](gone)`\n",
            "docs/b.md": "# b\n[back](../README.md 'title')\n[ref]: ../README.md#one\n"}
    return arch.self_test_on_trees(check, good, [
        ({"docs/c.md": "\n[x](gone.md)"}, "docs/c.md:2: gone.md is not there"),
        ({"docs/c.md": "[x](b.md#gone)"}, "docs/c.md:1: b.md#gone: no such heading"),
        ({"docs/c.md": "[x](#gone)"}, "#gone: no such heading"),
        ({"docs/c.md": "[x](../README.md#no-heading)"}, "#no-heading: no such heading"),
        ({"docs/c.md": "[x]: gone"}, "gone is not there"),
        ({"docs/c.md": "[x](../..)"}, "leaves the tree"),
    ])


if __name__ == "__main__":
    arch.main(check, self_test)
