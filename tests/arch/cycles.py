#!/usr/bin/python3
"""cycles.py ROOT: the files of src/core call each other without cycles: a file uses functions of lower layers only. Prints
the layers, or the cycles with the functions that close them.

Read from the text: a file uses each function of another file whose name stands in its code; of a header only what it
defines is its code. A tree that RB_GENERATE makes counts as a function. Static functions are their file's own; those of
headers are everyone's."""
import contextlib
import io
import pathlib
import re

import arch

FOLDERS = ["src/core", "include/alertscaler/core"]
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
NAME = re.compile(r"(->|\.)?\s*\b([A-Za-z_]\w*)")
HEAD = re.compile(r"(?P<static>\bstatic\b)?[^(=]*?\b(?P<name>[A-Za-z_]\w*)\s*\([^=]*\)$")
GENERATED = re.compile(r"^RB_GENERATE\((\w+).*", re.MULTILINE)


def definitions(code):
    """Yields (name, is_static, code) of each function that the code defines; the code is its body."""
    for match in GENERATED.finditer(code):
        yield match[1], False, ""
    code = GENERATED.sub("", code)
    depth, start, opened = 0, 0, 0
    for match in re.finditer(r"[{};]", code):
        depth += {"{": 1, "}": -1, ";": 0}[match[0]]
        if match[0] == "{" and depth == 1:
            opened = match.start()
        if depth == 0:
            head = HEAD.match(code[start:opened].strip()) if match[0] == "}" else None
            if head:
                yield head["name"], bool(head["static"]), code[opened : match.end()]
            start = opened = match.end()


def read_graph(root):
    """{file: {file that it uses: [names]}}. Of a header only what it defines counts, not what it declares."""
    codes, homes, own = {}, {}, {}
    for path in arch.c_files(root, *FOLDERS):
        file = str(path)
        code = DIRECTIVE.sub(lambda m: arch.blank(m[0]), arch.code_only((root / path).read_text(encoding="utf-8")))
        functions = list(definitions(code))
        codes[file] = "".join(body for _, _, body in functions) if path.suffix == ".h" else code
        own[file] = {name for name, is_static, _ in functions if is_static and path.suffix == ".c"}
        homes |= {name: file for name, _, _ in functions if name not in own[file]}
    graph = {file: {} for file, code in codes.items() if code}
    for file in graph:
        for member, name in NAME.findall(codes[file]):
            home = homes.get(name)
            if home and home != file and not member and name not in own[file]:
                names = graph[file].setdefault(home, [])
                if name not in names:
                    names.append(name)
    return graph


def layers(graph):
    """Lists of files, the lowest first, and what is left: files that are in a cycle or use one that is."""
    left, found = dict(graph), []
    while layer := [file for file, uses in left.items() if not any(other in left for other in uses)]:
        found.append(layer)
        left = {file: uses for file, uses in left.items() if file not in layer}
    return found, left


def find_cycle(graph):
    """A shortest cycle of the graph, in which each file uses the next; its first one is its last."""
    best = None
    for start in graph:
        ways, seen = [[start]], {start}
        while ways:
            way = ways.pop(0)
            if start in graph[way[-1]]:
                if not best or len(way) < len(best) - 1:
                    best = way + [start]
                break
            for other in graph[way[-1]]:
                if other in graph and other not in seen:
                    seen.add(other)
                    ways.append(way + [other])
    return best


def check(root):
    graph = read_graph(pathlib.Path(root))
    if not graph:
        return [f"{root}: there are no files in src/core"]
    found, left = layers(graph)
    complaints = []
    while cycle := find_cycle(left):
        steps = list(zip(cycle, cycle[1:]))
        complaints.append("cycle: " + "; ".join(f"{a} uses {b} ({', '.join(left[a][b])})" for a, b in steps))
        left = {a: {b: names for b, names in uses.items() if (a, b) not in steps} for a, uses in left.items()}
    if not complaints:
        for number, layer in enumerate(found):
            print(f"{number:2}  {' '.join(pathlib.Path(file).name for file in layer)}")
    return complaints


def self_test():
    good = {
        "include/alertscaler/core/low.h": "int low(int x);\nstatic inline int lower(int x) { return x; }\n",
        "src/core/low.c": """/* high(1) */
#define HIGH high(1)
RB_GENERATE(low_tree, low, link, compare)
static int high(int x) { return lower(x); }
static const int table[] = {1};
int low(int x) { log("high(1)"); self->top(x); return high(table[x]); }
""",
        "src/core/room/high.c": "int high(int x) { return low(x); }\nstatic int own(int x) { return high(x); }\n",
        "src/core/room/top.h": "#define TOP 1\nint top(int x);\nint low(int x);\n",
        "src/core/room/top.c": "static int own(int x) { return RB_MIN(low_tree, x); }\nint top(int x) { return own(high(x)); }\n",
        "src/app/any.c": "int any(void) { return top(1); }\n",
    }
    back = "src/core/room/high.c uses src/core/room/top.c (top); src/core/room/top.c uses src/core/room/high.c (high)"
    bad = [
        ({"src/core/room/high.c": "int high(int x) { return top(x); }\n"}, back),
        ({"src/core/room/high.c": "int high(int x) { return 1; }\nfn *const table[] = {top};\n"}, back),
        ({"src/core/low.c": "int low(int x)\n{\n    return high(x);\n}\n"}, "high.c (high); src/core/room/high.c uses src/core/low.c (low)"),
        ({"src/core/low.c": "int low(int x) { return top(x); }\n"}, "src/core/low.c uses src/core/room/top.c (top)"),
        ({"include/alertscaler/core/low.h": "static inline int lower(int x) { return own_low(x); }\n",
          "src/core/low.c": "int own_low(int x) { return lower(x); }\nint low(int x) { return 1; }\n"},
         "include/alertscaler/core/low.h uses src/core/low.c (own_low)"),
        ({"src/core/low.c": "static int used(int x) { return RB_MIN(high_tree, x); }\nint low(int x) { return used(x); }\n",
          "src/core/room/high.c": "RB_GENERATE(high_tree, high, link, compare)\nint high(int x) { return low(x); }\n"},
         "src/core/low.c uses src/core/room/high.c (high_tree)"),
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        return arch.self_test_on_trees(check, good, bad)


if __name__ == "__main__":
    arch.main(check, self_test)
