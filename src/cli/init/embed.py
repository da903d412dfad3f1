#!/usr/bin/env python3
"""embed.py TABLE FOLDER NAME... > C: the files of a folder that `alertscaler init` writes, as strings in the program."""
import pathlib
import sys


def quote(line):
    return '"' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"'


table, folder, names = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
print(f'#include "cli/init.h"\n\nconst struct init_file {table}[] = {{')
for name in names:
    lines = (folder / name).read_text(encoding="utf-8").splitlines()
    print(f'    {{"{name}",\n     ' + "\n     ".join(map(quote, lines)) + "},")
print("    {0},\n};")
