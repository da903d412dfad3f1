#!/usr/bin/python3
"""graph.py BUILD: what the source files use of each other, read from the object files of a build: functions and data. The
figures of this graph may not rise above those of the file `bounds`. A directory uses no symbol that only a directory outside
its row of `layers` (src/meson.build) defines.

    graph.py BUILD [ROOT] [--cycles] [--pairs] [--single-users] [--lower]

--cycles prints the files of each cycle with the symbols between them; --pairs the pairs of directories that use each other,
with their symbols; --single-users the symbols with one user, a file of the same directory. --lower writes today's figures
down as the bounds, where they are lower.

A file uses another file if its object has an undefined symbol, weak or not, that the object of the other file defines. If a
weak and another definition exist, the file uses both: which one is linked depends on the program.
"""
import collections
import contextlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import arch
import includes

BOUNDS = pathlib.Path(__file__).parent / "bounds"

# The figures that bounds are for, and their texts.
FIGURES = {
    "cycles": "cycles of files",
    "files_in_cycles": "files in cycles",
    "mutual_directories": "pairs of directories that use each other",
    "single_users": "symbols with one user, in another file of the same directory",
    "ambiguous_statics": "static functions with a name that another file uses too",
}
OPTIONS = {
    "cycles": "--cycles", "files_in_cycles": "--cycles", "mutual_directories": "--pairs",
    "single_users": "--single-users", "ambiguous_statics": "--statics",
}
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
STATIC = re.compile(r"^static\s[^=;{}()]*?\b(\w+)\([^;{]*\)\s*\{", re.MULTILINE)
DEFINED = set("TDBRCGSVWui")  # the types of nm: global symbols of text and data, common, weak, unique


class Unreadable(Exception):
    pass


# The graph.


def find_objects(build, root):
    """{source file, relative to the root: its object file} of all files below src/ in the programs and libraries of src/."""
    commands = pathlib.Path(build) / "compile_commands.json"
    if not commands.exists():
        raise Unreadable(f"{build}: no build directory of Meson")
    found = {}
    for entry in json.loads(commands.read_text(encoding="utf-8")):
        source = os.path.relpath(os.path.realpath(os.path.join(entry["directory"], entry["file"])), os.path.realpath(root))
        if source.startswith("src/") and entry["output"].startswith("src/"):
            found[source] = os.path.join(entry["directory"], entry["output"])
    if not found:
        raise Unreadable(f"{build}: builds no file of {root}/src")
    for source, output in found.items():
        if not os.path.exists(output):
            raise Unreadable(f"{build}: {source} is not compiled: run ninja first")
    return found


def read_symbols(objects):
    """Yields (source file, name, type of nm) of each symbol that is global or undefined."""
    sources = {output: source for source, output in objects.items()}
    command = ["nm", "--print-file-name", "--format=posix", *sources]
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        output, _, rest = line.partition(": ")
        name, kind = rest.split()[:2]
        yield sources[output], name, kind


class Graph:
    """edges: {file: {file that it uses: names}}; users: {(defining file, name): files}; files: all."""

    def __init__(self, build, root):
        objects = find_objects(build, root)
        self.files = sorted(objects)
        homes, needs = collections.defaultdict(set), []
        for source, name, kind in read_symbols(objects):
            if kind in DEFINED:
                homes[name].add(source)
            elif kind in "Uwv":
                needs.append((source, name))
        if not homes:
            raise Unreadable(f"{build}: nm finds no symbols: built with -flto?")
        self.edges = {file: {} for file in self.files}
        self.users = collections.defaultdict(set)
        for source, name in needs:
            for home in homes.get(name, ()):
                if home != source:
                    self.edges[source].setdefault(home, set()).add(name)
                    self.users[home, name].add(source)

    def cycles(self):
        """The strongly connected components of more than one file, each sorted."""
        return find_components(self.files, self.edges)

    def mutual_directories(self):
        """[(directory, directory, names used this way, names used the other way)]. A directory is where a file stands: its
        subdirectories are other directories."""
        uses = collections.defaultdict(set)
        for file, others in self.edges.items():
            for other, names in others.items():
                uses[os.path.dirname(file), os.path.dirname(other)] |= {(name, other) for name in names}
        return [(a, b, uses[a, b], uses[b, a]) for a, b in sorted(uses) if a < b and (b, a) in uses]

    def single_users(self):
        """[(name, file that defines it, the only file that uses it)], both in the same directory."""
        found = []
        for (home, name), users in self.users.items():
            user = next(iter(users))
            if len(users) == 1 and os.path.dirname(user) == os.path.dirname(home):
                found.append((name, home, user))
        return sorted(found, key=lambda row: (row[1], row[0]))


def find_components(nodes, edges):
    """Tarjan's algorithm, with a stack of its own: the graph may be deep."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []
    for start in nodes:
        if start in index:
            continue
        work = [(start, None)]
        while work:
            node, successors = work.pop()
            if successors is None:
                index[node] = low[node] = len(index)
                stack.append(node)
                on_stack.add(node)
                successors = iter(sorted(edges[node]))
            descended = False
            for other in successors:
                if other not in index:
                    work += [(node, successors), (other, None)]
                    descended = True
                    break
                if other in on_stack:
                    low[node] = min(low[node], index[other])
            if descended:
                continue
            if low[node] == index[node]:
                part = stack[stack.index(node):]
                del stack[-len(part):]
                on_stack -= set(part)
                if len(part) > 1:
                    found.append(sorted(part))
            if work:
                parent = work[-1][0]
                low[parent] = min(low[parent], low[node])
    return sorted(found)


# Static functions: read from the text, as an optimizing compiler leaves out those that it inlines.


def read_statics(root):
    """{name: files of src/ and include/ that define a static function of this name}; in all, and in .c files."""
    found = collections.defaultdict(set)
    for path in arch.c_files(root, "src", "include"):
        code = DIRECTIVE.sub(lambda m: arch.blank(m[0]), arch.code_only((root / path).read_text(encoding="utf-8")))
        for name in STATIC.findall(code):
            found[name].add(str(path))
    return found


def ambiguous_statics(statics):
    """{name: files} of those that more than one file defines."""
    return {name: files for name, files in statics.items() if len(files) > 1}


def count_functions(statics):
    return sum(len(files) for files in statics.values())


def read_figures(graph, root):
    cycles = graph.cycles()
    return {
        "cycles": len(cycles),
        "files_in_cycles": sum(len(part) for part in cycles),
        "mutual_directories": len(graph.mutual_directories()),
        "single_users": len(graph.single_users()),
        "ambiguous_statics": count_functions(ambiguous_statics(read_statics(pathlib.Path(root)))),
    }


# The bounds.


def read_rows(path):
    """{key: integer} of a file with a key and a number a line; # begins a comment."""
    rows = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        words = line.split("#")[0].split()
        if words:
            rows[words[0]] = int(words[1])
    return rows


def compare(figures, bounds):
    for key, figure in figures.items():
        if key not in bounds:
            yield f"tests/arch/bounds: no bound for {key}"
        elif figure > bounds[key]:
            yield (f"{figure} {FIGURES[key]}, at most {bounds[key]} (tests/arch/bounds). To list them, run: "
                   f"tests/arch/graph.py BUILD {OPTIONS[key]}")
        elif figure < bounds[key]:
            print(f"note: {figure} {FIGURES[key]}, the bound is {bounds[key]}. To lower it, run: tests/arch/graph.py BUILD --lower")


def lower(figures, path):
    text = path.read_text(encoding="utf-8")
    for key, bound in read_rows(path).items():
        if figures.get(key, bound) < bound:  # others are path.py's
            text = re.sub(rf"^{key}\s+\d+", lambda m, key=key: re.sub(r"\d+$", str(figures[key]), m[0]), text, flags=re.MULTILINE)
    path.write_text(text, encoding="utf-8")


# The layers. includes.py checks headers: a symbol may be declared in a lower directory, and defined in a higher one.


def get_directory(file):
    return pathlib.PurePath(file).parts[1]


def check_layers(graph, root):
    """Complaints about symbols that only directories outside the row of their user define."""
    allowed = {row[0]: set(row[1]) for row in includes.read_table(pathlib.Path(root), "layers")}
    for user in graph.files:
        directory, homes = get_directory(user), collections.defaultdict(set)
        for home, names in graph.edges[user].items():
            for name in names:
                homes[name].add(home)
        for name, files in sorted(homes.items()):
            if not {get_directory(file) for file in files} & allowed[directory]:
                yield f"{user} uses {name} of {', '.join(sorted(files))}, but `layers` in src/meson.build keeps it from {directory}"


# What is printed on request.


def print_cycles(graph, _):
    for number, part in enumerate(graph.cycles(), 1):
        print(f"\ncycle {number}, {len(part)} files: {' '.join(part)}")
        for file in part:
            for other in part:
                if other in graph.edges[file]:
                    print(f"  {file} uses {other}: {', '.join(sorted(graph.edges[file][other]))}")


def print_pairs(graph, _):
    for one, other, there, back in graph.mutual_directories():
        print(f"\n{one} and {other}")
        for user, names in ((one, there), (other, back)):
            listed = ", ".join(f"{name} ({os.path.basename(home)})" for name, home in sorted(names))
            print(f"  {user} uses {len(names)}: {listed}")


def print_single_users(graph, _):
    for name, home, user in graph.single_users():
        print(f"{home}: {name} is used by {user}")


def print_statics(_, root):
    for name, files in sorted(ambiguous_statics(read_statics(pathlib.Path(root))).items()):
        print(f"{name}: {' '.join(sorted(files))}")


PRINTERS = {"--cycles": print_cycles, "--pairs": print_pairs, "--single-users": print_single_users, "--statics": print_statics}


def check(build, root=pathlib.Path(__file__).resolve().parents[2], *options, bounds=BOUNDS):
    try:
        graph = Graph(build, root)
    except Unreadable as why:
        return [str(why)]
    figures = read_figures(graph, root)
    if "--lower" in options:
        lower(figures, bounds)
    for option in options:
        if option in PRINTERS:
            PRINTERS[option](graph, root)
    return [*check_layers(graph, root), *compare(figures, read_rows(bounds))]


# The self-test compiles small trees.


def compile_tree(folder, files, compiler):
    """Writes the tree, and compiles its .c files as a build does. Returns (build, root)."""
    root, build = folder / "tree", folder / "build"
    arch.write_tree(root, files)
    commands = []
    for path in arch.c_files(root, "src"):
        if path.suffix == ".c":
            output = "src/" + str(path).replace("/", "_") + ".o"
            (build / "src").mkdir(parents=True, exist_ok=True)
            subprocess.run([*compiler, "-w", "-c", "-o", build / output, root / path], check=True)
            commands.append({"directory": str(build), "file": str(root / path), "output": output})
    (build / "compile_commands.json").write_text(json.dumps(commands), encoding="utf-8")
    return build, root


LAYERS = """
pure = ['base']
layers = [
  ['base', pure,                   []],
  ['core', pure + ['core'],        []],
  ['side', pure + ['side'],        []],
  ['net',  pure + ['core', 'net'], []],
]

"""


def self_test_layers(folder, compiler):
    """A symbol of a lower directory is used, one of a higher directory or of a directory beside it is not."""
    good = {
        "src/meson.build": LAYERS,
        "src/base/low.c": "__attribute__((weak)) int replaced(void) { return 0; }\nint low(void) { return 1; }\n",
        "src/base/user.c": "int replaced(void);\nint user(void) { return replaced(); }\n",
        "src/core/high.c": "int low(void);\nint replaced(void) { return low(); }\nint high(void) { return 1; }\n",
        "src/net/end.c": "int high(void);\nint low(void);\nint end(void) { return high() + low(); }\n",
    }
    bad = [
        ({"src/base/up.c": "extern const int table[];\nint up(void) { return table[0]; }\n",
          "src/core/table.c": "const int table[] = {1};\n"}, "src/base/up.c uses table of src/core/table.c, "),
        ({"src/core/up.c": "int end(void);\nint up(void) { return end(); }\n"}, "src/core/up.c uses end of src/net/end.c, "),
        ({"src/side/up.c": "int high(void);\nint up(void) { return high(); }\n"}, "src/side/up.c uses high of src/core/high.c, "),
        ({"src/base/up.c": "__attribute__((weak)) int high(void);\nint up(void) { return high ? high() : 0; }\n"},
         "src/base/up.c uses high of src/core/high.c, "),
    ]
    for number, (files, expected) in enumerate([({}, None)] + bad):
        build, root = compile_tree(folder / f"layers-{number}", good | files, compiler)
        complaints = list(check_layers(Graph(build, root), root))
        if len(complaints) != (expected is not None) or (expected and not complaints[0].startswith(expected)):
            yield f"{files}: expected {expected!r}, got {complaints}"


def self_test(*compiler):
    good = {
        "src/meson.build": LAYERS,
        "src/base/low.c": "static int own(void) { return 1; }\nint low(void) { return own(); }\n"
                          "__attribute__((weak)) int replaced(void) { return 0; }\n",
        "src/core/high.c": "int low(void);\nint replaced(void);\nint high(void) { return low() + replaced(); }\n",
        "src/core/table.c": "int low(void);\nint (*const table[])(void) = {low};\n",
        "src/core/rows/row.c": "int high(void);\nextern int (*const table[])(void);\nint row(void) { return table[0]() + high(); }\n",
        "src/core/end.c": "int low(void);\nint high(void);\nextern int (*const table[])(void);\n"
                          "int main(void) { return high() + table[0](); }\n",
    }
    free = {"cycles": 0, "files_in_cycles": 0, "mutual_directories": 0, "single_users": 0, "ambiguous_statics": 0}
    bad = [
        # A function, data and a table of functions each close a cycle, in one layer and across layers; a weak one does too.
        ({"src/core/table.c": "int row(void);\nint (*const table[])(void) = {row};\n"},
         {"cycles": 1, "files_in_cycles": 2, "mutual_directories": 1}),
        ({"src/base/low.c": "int high(void);\nint low(void) { return high(); }\nint replaced(void) { return 0; }\n"},
         {"cycles": 1, "files_in_cycles": 2, "mutual_directories": 1}),
        ({"src/core/high.c": "extern int word;\nint low(void);\nint high(void) { return low() + word; }\n",
          "src/core/word.c": "int high(void);\nint word = 1;\nint spell(void) { return high(); }\n"},
         {"cycles": 1, "files_in_cycles": 2, "single_users": 1}),
        ({"src/core/replace.c": "int high(void);\nint replaced(void) { return high(); }\n"},
         {"cycles": 1, "files_in_cycles": 2, "single_users": 1}),
        ({"src/core/high.c": "__attribute__((weak)) int own(void);\nint low(void);\nint high(void) { return own ? own() : low(); }\n",
          "src/core/own.c": "int high(void);\nint own(void) { return high(); }\n"},
         {"cycles": 1, "files_in_cycles": 2, "single_users": 1}),
        # One user in another directory is no single user, two users are none.
        ({"src/core/one.c": "int one(void) { return 1; }\nint two(void) { return 2; }\n",
          "src/core/two.c": "int one(void);\nint two(void);\nint three(void) { return one() + two(); }\n",
          "src/net/two.c": "int two(void);\nint four(void) { return two(); }\n"},
         {"single_users": 1}),
        ({"src/core/own.c": "#define X static int own(void) {\nstatic int own(\n    void)\n{\n    return 1;\n}\n"
                            'static const char *text = "\\\nstatic int lost(void) {";\nint used(void) { return own(); }\n',
          "src/core/lost.c": "/*\nstatic int lost(void) {}\n*/\nstatic int lost(void);\nstatic int lost(void) { return 1; }\n"
                             "int call(void) { return lost(); }\n"},
         {"ambiguous_statics": 2}),
    ]
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        for number, (files, expected) in enumerate([({}, {})] + bad):
            folder = pathlib.Path(name) / str(number)
            build, root = compile_tree(folder, good | files, compiler)
            figures = read_figures(Graph(build, root), root)
            if figures != free | expected:
                wrong.append(f"{files}: expected {free | expected}, got {figures}")
            if number in (0, 3):  # nothing to count; a cycle and a symbol with one user
                wrong += check_bounds(folder, build, root, figures)
        (folder / "build/src").rename(folder / "build/lost")
        for place, text in (("build", "is not compiled"), ("tree", "no build directory")):
            complaints = check(folder / place, folder / "tree", bounds=folder / "bounds")
            if len(complaints) != 1 or text not in complaints[0]:
                wrong.append(f"expected one complaint with {text!r}, got {complaints}")
        wrong += self_test_layers(pathlib.Path(name), compiler)
    return wrong


def check_bounds(folder, build, root, figures):
    """The check accepts its own figures as bounds, refuses each that is above its bound, and lowers those that are below."""
    path = folder / "bounds"

    def run(rows, *options):
        path.write_text("# bounds\npath_files 3\n" + "".join(f"{key} {bound}  # why\n" for key, bound in rows.items()), encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            return check(build, root, *options, bounds=path), printed.getvalue()

    if run(figures) != ([], ""):
        yield f"refused with bounds of its own: {run(figures)}"
    for key, figure in figures.items():
        complaints, _ = run(figures | {key: figure - 1})
        if len(complaints) != 1 or not complaints[0].startswith(f"{figure} {FIGURES[key]}, at most {figure - 1} "):
            yield f"{key} above its bound: {complaints}"
    above = {key: figure + 1 for key, figure in figures.items()}
    complaints, printed = run(above)
    if complaints or printed.count("the bound is") != len(figures):
        yield f"figures below their bounds: {complaints}, {printed}"
    if run(above, "--lower") != ([], "") or read_rows(path) != figures | {"path_files": 3} or "# why" not in path.read_text(encoding="utf-8"):
        yield f"bounds were not lowered: {path.read_text(encoding='utf-8')}"
    complaints, printed = run(figures, *PRINTERS)
    if bool(figures["cycles"]) != ("cycle 1" in printed) or bool(figures["single_users"]) != ("is used by" in printed):
        yield f"the lists do not fit the figures {figures}: {printed}"


if __name__ == "__main__":
    # Options come last, after the root.
    given = [word for word in sys.argv[1:] if not word.startswith("--") or word == "--self-test"]
    chosen = [word for word in sys.argv[1:] if word in {*PRINTERS, "--lower"}]
    if unknown := [word for word in sys.argv[1:] if word.startswith("--") and word not in {*chosen, "--self-test"}]:
        sys.exit(f"graph.py: unknown option {unknown[0]}")
    if chosen and len(given) == 1:
        given.append(str(pathlib.Path(__file__).resolve().parents[2]))
    sys.argv[1:] = given + chosen
    arch.main(check, self_test)
