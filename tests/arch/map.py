#!/usr/bin/python3
"""map.py [ROOT]: prints the map of the tree: each directory of src/, and each of its modules with its number of lines and the first
sentence of its head comment (of its header, if it has one)."""
import pathlib
import re
import sys

import arch

HEAD = re.compile(r"\A/\*(.*?)\*/", re.S)
SENTENCE = re.compile(r".*?[.:](?=\s|\Z)", re.S)


def read_sentence(path):
    head = HEAD.match(path.read_text(encoding="utf-8"))
    words = " ".join(line.strip().lstrip("*").strip() for line in head[1].splitlines()).strip() if head else "?"
    sentence = SENTENCE.match(words)
    return (sentence[0] if sentence else words).rstrip(":.")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    directory = None
    for path in arch.c_files(root, "src"):
        if path.suffix != ".c":
            continue
        if path.parent != directory:
            directory = path.parent
            print(f"\n{directory}/")
        headers = [root / "include/alertscaler" / path.relative_to("src").with_suffix(".h"), root / path.with_suffix(".h")]
        described = next((header for header in headers if header.exists()), root / path)
        lines = (root / path).read_text(encoding="utf-8").count("\n")
        print(f"  {path.name:<28} {lines:>5}  {read_sentence(described)}")


if __name__ == "__main__":
    main()
