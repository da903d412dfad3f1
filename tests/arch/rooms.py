#!/usr/bin/python3
"""rooms.py ROOT: the first line of a room's meson.build says what lives there, and docs/architecture.md says the same."""
import pathlib
import re

import arch

ROW = re.compile(r"^\| `(\w+/\w+)/` \| (.+) \|$", re.MULTILINE)


def check(root):
    root = pathlib.Path(root)
    rows = dict(ROW.findall((root / "docs/architecture.md").read_text(encoding="utf-8")))
    complaints = []
    for build in sorted(root.glob("src/*/*/meson.build")):
        room = str(build.parent.relative_to(root / "src"))
        first, said = build.read_text(encoding="utf-8").split("\n")[0], rows.pop(room, None)
        if not first.startswith("# "):
            complaints.append(f"src/{room}/meson.build:1: no comment says what lives there")
        elif said != first[2:]:
            complaints.append(f"docs/architecture.md: no row says of `{room}/`: {first[2:]}")
    return complaints + [f"docs/architecture.md: there is no room {room}" for room in rows]


def self_test():
    good = {
        "src/app/auth/meson.build": "# Who asks.\nsources += files('a.c')\n",
        "docs/architecture.md": "| room | holds |\n|---|---|\n| `app/auth/` | Who asks. |\n",
    }
    bad = [
        ({"src/app/api/meson.build": "# The API.\n"}, "no row says of `app/api/`: The API."),
        ({"src/app/auth/meson.build": "sources += files('a.c')\n"}, "src/app/auth/meson.build:1: no comment"),
        ({"docs/architecture.md": good["docs/architecture.md"] + "| `net/http/` | HTTP. |\n"}, "there is no room net/http"),
    ]
    return arch.self_test_on_trees(check, good, bad)


if __name__ == "__main__":
    arch.main(check, self_test)
