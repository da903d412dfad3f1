#!/usr/bin/python3
"""words.py ROOT: the tree does not speak of the machine it was written on: no absolute paths of a person's or a worker's
folders, no hosts that serve packages or images (the machine's own configuration names those), no marks of a merge."""
import pathlib
import re

import arch

# In pieces, so that this file does not speak of them either.
FORBIDDEN = [
    (re.compile(r"(?<![\w.\-${}])/(?:" + "|".join(["wo" "rk", "ro" "ot", "ho" "me/[a-z]", "Us" "ers", "bu" "ilds"]) + r")(?=/|\b[^-\w.])"), "a path of one machine"),
    (re.compile(r"(?<![\w.-])/tmp/(?!\$|[\w.-]*X{6})[\w.-]"), "a fixed path in a folder that everybody shares"),
    (re.compile(r"\b(?:" + "|".join([r"py" r"pi\.", r"np" r"mjs\.", r"crates\." "io", r"proxy\.go" "lang",
                                    r"(?:docker|gh" r"cr|quay|gcr|registry\.k" r"8s)\." "io/[a-z-]+/[a-z]", r"(?:deb|ftp|security|snapshot)\.deb" "ian"]) + r")"), "a host of packages"),
    (re.compile(r"^(?:<{7}|>{7}|={7})(?: |$)", re.MULTILINE), "a mark of a merge"),
]


def check_file(path, text):
    for pattern, what in FORBIDDEN:
        for match in pattern.finditer(text):
            yield f"{path}:{arch.line_of(text, match.start())}: {match[0].strip()!r} is {what}"


def check(root):
    root = pathlib.Path(root)
    files = arch.text_files(root)
    complaints = [c for path in files for c in check_file(path, (root / path).read_text(encoding="utf-8"))]
    return complaints if files else [f"{root}: there are no files"]


def self_test():
    good = {"a.md": "framework/x, /workloads, /rooted, $dir/wo" "rk/, https://github.com/prometheus/alertmanager\n"
                    "apiVersion: autoscaling.k8s.io/v1, k8s.io/kubernetes/cmd, /tmp/x.XXXXXX, ======= is a line\n"}
    bad = [({"b.md": "\n" + text + "\n"}, f"b.md:2: {text!r} is {what}") for text, what in [
        ("/wo" "rk", "a path"), ("/ro" "ot", "a path"), ("/ho" "me/j", "a path"), ("/tmp" "/x", "a fixed path"),
        ("py" "pi.", "a host"), ("gh" "cr." "io/x/y", "a host"), ("registry.k" "8s.io/x/y", "a host"),
        ("deb.deb" "ian", "a host"), ("<" * 7, "a mark")]]
    return arch.self_test_on_trees(check, good, bad)


if __name__ == "__main__":
    arch.main(check, self_test)
