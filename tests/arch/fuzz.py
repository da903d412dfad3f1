#!/usr/bin/python3
"""fuzz.py ROOT: every parser is fuzzed. What tests/fuzz has of each target agrees: fuzz_NAME.c, its row in meson.build, its row
in sources, its corpus; and every source that defines a function as_..._parse or as_..._decode, which takes text from outside,
is among the sources of a target."""
import pathlib
import re

import arch

PARSER = re.compile(r"^[a-z][\w *]*\bas_\w+_(?:parse|decode)\w*\(", re.MULTILINE)
# Words out of a fixed list, given by whoever starts the program; and the command line itself.
NO_PARSERS = {"src/base/log.c", "src/cli/options.c"}


def read_sources(root):
    rows = {}
    for line in (root / "tests/fuzz/sources").read_text(encoding="utf-8").splitlines():
        words = line.partition("#")[0].split()
        if words:
            rows[words[0]] = words[1:]
    return rows


def find_complaints(root):
    folder = root / "tests/fuzz"
    programs = {path.stem[len("fuzz_"):] for path in folder.glob("fuzz_*.c")}
    rows = read_sources(root)
    listed = re.search(r"^fuzz_targets = \[(.*?)\]", (folder / "meson.build").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    corpora = {path.name for path in (folder / "corpus").iterdir() if any(path.iterdir())}
    places = (("meson.build", set(re.findall(r"'(\w+)'", listed[1]))), ("sources", set(rows)), ("corpus", corpora))
    for what, names in places:
        for name in sorted(programs ^ names):
            yield f"tests/fuzz: {name} is {'not in ' if name in programs else 'only in '}{what}"
    fuzzed = {name for names in rows.values() for name in names}
    for name in sorted(fuzzed):
        if not (root / name).exists():
            yield f"tests/fuzz/sources: {name} is not there"
    for path in arch.c_files(root, "src"):
        if path.suffix == ".c" and str(path) not in fuzzed | NO_PARSERS:
            match = PARSER.search(arch.code_only((root / path).read_text(encoding="utf-8")))
            if match:
                yield f"{path}: {match[0].split()[-1].rstrip('(')} is not fuzzed: name the file in tests/fuzz/sources"


def check(root):
    return list(find_complaints(pathlib.Path(root)))


def self_test():
    good = {"tests/fuzz/fuzz_a.c": "", "tests/fuzz/meson.build": "fuzz_targets = [\n  'a',\n]\n", "tests/fuzz/corpus/a/x": "x",
            "tests/fuzz/sources": "# text\na  src/wire/a.c # more\n", "src/wire/a.c": "int as_a_parse(const char *text)\n{\n}\n",
            "src/wire/b.c": "/* int as_b_parse( */\nint as_b_get(void)\n{\n    return as_a_parse(0);\n}\n"}
    return arch.self_test_on_trees(check, good, [
        ({"tests/fuzz/fuzz_b.c": "", "tests/fuzz/corpus/b/x": "x", "tests/fuzz/sources": "a src/wire/a.c\nb\n"}, "b is not in meson.build"),
        ({"tests/fuzz/sources": "a src/wire/a.c\nb src/wire/b.c\n"}, "b is only in sources"),
        ({"tests/fuzz/corpus/b/x": "x"}, "b is only in corpus"),
        ({"tests/fuzz/sources": "a src/wire/a.c src/wire/gone.c\n"}, "src/wire/gone.c is not there"),
        ({"src/wire/b.c": "int as_b_decode_all(const char *text)\n{\n}\n"}, "as_b_decode_all is not fuzzed"),
    ])


if __name__ == "__main__":
    arch.main(check, self_test)
