#!/usr/bin/python3
"""headers.py ROOT CC...: every public header compiles alone, and twice, as strict C17 without a warning; the guard of every
header is its path."""
import concurrent.futures
import os
import pathlib
import re
import subprocess

import arch

FLAGS = "-std=c17 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c -".split()


def check_header(compiler, root, header):
    # The last line is for headers of macros alone: ISO C wants a declaration.
    source = f"#include <{header}>\n" * 2 + "extern int declared;\n"
    result = subprocess.run(
        [*compiler, f"-I{root / 'include'}", *FLAGS], input=source, capture_output=True, text=True, check=False
    )
    return [] if result.returncode == 0 else [f"include/{header} does not compile alone:\n{result.stderr}"]


def check_guard(path, text):
    place = str(path).removeprefix("include/alertscaler/")
    guard = "ALERTSCALER_" + re.sub(r"\W", "_", place).upper()
    return [] if f"\n#ifndef {guard}\n#define {guard}\n" in "\n" + text else [f"{path}: its guard is not {guard}"]


def check(root, *compiler):
    root = pathlib.Path(root)
    headers = [path.relative_to("include") for path in arch.c_files(root, "include")]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda header: check_header(compiler, root, header), headers)
        complaints = [complaint for result in results for complaint in result]
    for path in arch.c_files(root, "include", "src"):
        if path.suffix == ".h":
            complaints += check_guard(path, (root / path).read_text(encoding="utf-8"))
    return complaints if headers else [f"{root}: there are no headers"]


def self_test(*compiler):
    def guarded(text, guard="ALERTSCALER_BASE_X_H"):
        return f"#ifndef {guard}\n#define {guard}\n{text}\n#endif\n"

    good = {
        "include/alertscaler/base/attr.h": guarded("#define X 1", "ALERTSCALER_BASE_ATTR_H"),
        "include/alertscaler/base/a.h": guarded("#include <stddef.h>\nstatic inline size_t f(void) { return 1; }", "ALERTSCALER_BASE_A_H"),
        "src/base/room/b.h": guarded("", "ALERTSCALER_SRC_BASE_ROOM_B_H"),
    }
    bad = [
        ({"include/alertscaler/base/x.h": text}, "include/alertscaler/base/x.h does not compile alone")
        for text in [
            guarded("size_t f(void);"),
            guarded("static inline int f(unsigned a) { return a < -1; }"),
            guarded("struct x { int a[0]; };"),
            guarded("int f(struct unknown *x);"),
            guarded("") + "struct x { int a; };\n",
            guarded("#include <alertscaler/base/missing.h>"),
        ]
    ] + [({"src/base/c.h": guarded("int f(void);")}, "src/base/c.h: its guard is not ALERTSCALER_SRC_BASE_C_H")]
    return arch.self_test_on_trees(lambda root: check(root, *compiler), good, bad)


if __name__ == "__main__":
    arch.main(check, self_test)
