#!/usr/bin/env python3
"""embed.py NAME FILE > C: a text file as a string in the program."""
import pathlib
import sys

name, path = sys.argv[1:]
lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
print(f"extern const char {name}[];\nconst char {name}[] =")
print("\n".join('    "' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"' for line in lines) + ";")
