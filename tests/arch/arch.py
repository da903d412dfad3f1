"""What the tests of the architecture share: reading C without comments and literals, and a main that
runs a check on the tree or, with --self-test, on samples that it must accept and refuse."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

COMMENT_OR_LITERAL = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""",
    re.DOTALL | re.VERBOSE,
)


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def without_comments(text):
    return COMMENT_OR_LITERAL.sub(lambda m: blank(m[0]) if m[0][0] == "/" else m[0], text)


def code_only(text):
    """The text with comments and literals blanked out; every line stays where it was."""
    return COMMENT_OR_LITERAL.sub(lambda m: blank(m[0]), text)


def comments_only(text):
    """The text with everything but the comments blanked out."""
    parts, end = [], 0
    for match in COMMENT_OR_LITERAL.finditer(text):
        parts.append(blank(text[end : match.start()]))
        parts.append(match[0] if match[0][0] == "/" else blank(match[0]))
        end = match.end()
    return "".join(parts) + blank(text[end:])


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def c_files(root, *folders):
    """The C files below the folders of the tree, as paths relative to it."""
    found = [
        path.relative_to(root)
        for folder in folders
        for path in (root / folder).rglob("*.[ch]")
    ]
    return sorted(found)


def text_files(root):
    """The files of the tree that are text, relative to it: what git knows or would add; without git, all."""
    git = ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(git, capture_output=True, check=False) if (root / ".git").exists() else None
    if listed and listed.returncode == 0:
        paths = [pathlib.Path(os.fsdecode(name)) for name in listed.stdout.split(b"\0") if name]
    else:
        paths = [path.relative_to(root) for path in root.rglob("*")]
    return sorted(path for path in paths if (root / path).is_file() and is_text(root / path))


def is_text(path):
    try:
        return "\0" not in path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return False


def write_tree(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def self_test_on_trees(check, good, bad):
    """`good`: files of a tree without complaint. `bad`: list of (files put on top of it, part of the
    complaint that must be the only one)."""
    wrong = []
    for files, expected in [({}, None)] + bad:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            write_tree(root, good | files)
            complaints = check(root)
        if expected is None and complaints:
            wrong.append(f"the good sample is refused: {complaints}")
        if expected is not None and (len(complaints) != 1 or expected not in complaints[0]):
            wrong.append(f"{files}: expected one complaint with {expected!r}, got {complaints}")
    return wrong


def main(check, self_test):
    """`check(*arguments)` and `self_test(*arguments)` return lists of complaints."""
    arguments = sys.argv[1:]
    testing = "--self-test" in arguments
    if testing:
        arguments.remove("--self-test")
    complaints = (self_test if testing else check)(*arguments)
    for complaint in complaints:
        print(complaint)
    sys.exit(1 if complaints else 0)
