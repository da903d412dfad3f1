#!/usr/bin/python3
"""top.py ROOT: at the top of the tree stands what belongs there; what a program left behind when it ran does not."""
import pathlib

import arch

FOLDERS = {".ci", ".github", "debian", "deploy", "docs", "include", "rules", "src", "tests"}


def check(root):
    found = {path.parts[0] for path in arch.text_files(pathlib.Path(root)) if len(path.parts) > 1}
    return [f"{name}/: no folder of the project" for name in sorted(found - FOLDERS) if not name.startswith("build")]


def self_test():
    bad = [({".kube/cache/http/1f0a": "{}\n"}, ".kube/: no folder"), ({"default/log": "x\n"}, "default/: no folder")]
    return arch.self_test_on_trees(check, {"src/main.c": "\n", ".ci/run": "\n", ".github/workflows/ci.yml": "\n", "build/log": "\n", "README.md": "\n"}, bad)


if __name__ == "__main__":
    arch.main(check, self_test)
