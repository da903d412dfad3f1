#!/usr/bin/env python3
"""embed.py FOLDER NAME... > C: the files that `alertscaler init` writes, as strings in the program."""
import pathlib
import sys


def quote(line):
    return '"' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"'


folder, names = pathlib.Path(sys.argv[1]), sys.argv[2:]
print('#include "cli/init.h"\n\nconst struct init_file init_files[] = {')
for name in names:
    lines = (folder / name).read_text(encoding="utf-8").splitlines()
    print(f'    {{"{name}",\n     ' + "\n     ".join(map(quote, lines)) + "},")
print("    {0},\n};")
