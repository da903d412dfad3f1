#!/usr/bin/python3
"""comments.py ROOT: what a comment names is there: files of the tree (`x.c`, `room/x.h`), names with our prefix, and
functions, which a comment writes as `name()`."""
import pathlib
import re

import arch

FILE = re.compile(r"(?<![\w/.:<*-])[\w./-]*\w\.(?:c|h|md|py)\b")
NAME = re.compile(r"\bas_\w*[a-z0-9]\b(?!\*)|\b[A-Za-z_]\w+(?=\(\))")


def find_missing(path, text, files, words):
    comments = arch.comments_only(text)
    for match in FILE.finditer(comments):
        if not any(("/" + file).endswith("/" + match[0].lstrip("./")) for file in files):
            yield f"{path}:{arch.line_of(text, match.start())}: there is no file {match[0]}"
    for match in NAME.finditer(comments):
        if match[0] not in words:
            yield f"{path}:{arch.line_of(text, match.start())}: nothing is called {match[0]}"


def check(root):
    root = pathlib.Path(root)
    texts = {path: (root / path).read_text(encoding="utf-8") for path in arch.c_files(root, "src", "include", "tests")}
    files = [str(path) for path in arch.text_files(root)]
    words = {word for text in texts.values() for word in re.findall(r"\w+", arch.without_comments(text))}
    complaints = [c for path, text in texts.items() for c in find_missing(path, text, files, words)]
    return complaints if texts else [f"{root}: there are no C files"]


def self_test():
    good = {
        "src/base/a.c": "/* See a.c, base/a.c, docs/x.md, https://example.com/y.md, <linux/z.h>, <type>.c, a_*.c. */\n"
                        "/* as_find, as_find_* and find() are below; clouds.yaml is not ours. */\nint as_find, find;\n",
        "docs/x.md": "",
    }
    bad = [
        ({"src/base/b.c": "/* x */\n/* b.h */\n"}, "src/base/b.c:2: there is no file b.h"),
        ({"include/b.h": "/* other/a.c */\n"}, "there is no file other/a.c"),
        ({"src/base/b.c": "/* as_lost */\n"}, "nothing is called as_lost"),
        ({"tests/b.c": "/* lost() */\n"}, "nothing is called lost"),
    ]
    return arch.self_test_on_trees(check, good, bad)


if __name__ == "__main__":
    arch.main(check, self_test)
