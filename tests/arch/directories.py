#!/usr/bin/python3
"""directories.py ROOT: the first line of a directory's meson.build says what it is, and docs/architecture.md says the same."""
import pathlib
import re

import arch

ROW = re.compile(r"^\| `(\w+)/` \| (.+?) \|", re.MULTILINE)


def check(root):
    root = pathlib.Path(root)
    rows = dict(ROW.findall((root / "docs/architecture.md").read_text(encoding="utf-8")))
    complaints = []
    for build in sorted(root.glob("src/*/meson.build")):
        name = build.parent.name
        first, said = build.read_text(encoding="utf-8").split("\n")[0], rows.pop(name, None)
        if not first.startswith("# "):
            complaints.append(f"src/{name}/meson.build:1: no comment says what the directory is")
        elif said != first[2:]:
            complaints.append(f"docs/architecture.md: no row says of `{name}/`: {first[2:]}")
    return complaints + [f"docs/architecture.md: there is no directory {name}" for name in rows]


def self_test():
    good = {
        "src/auth/meson.build": "# Credentials.\nsources = files('a.c')\n",
        "docs/architecture.md": "| directory | is |\n|---|---|\n| `auth/` | Credentials. |\n",
    }
    bad = [
        ({"src/ui/meson.build": "# The API.\n"}, "no row says of `ui/`: The API."),
        ({"src/auth/meson.build": "sources = files('a.c')\n"}, "src/auth/meson.build:1: no comment"),
        ({"docs/architecture.md": good["docs/architecture.md"] + "| `net/` | HTTP. |\n"}, "there is no directory net"),
    ]
    return arch.self_test_on_trees(check, good, bad)


if __name__ == "__main__":
    arch.main(check, self_test)
