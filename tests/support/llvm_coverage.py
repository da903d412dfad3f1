"""Which lines and branches of src/ have run: builds with clang's coverage (build/coverage), reads what its programs leave.

What is not counted, and why:
- the conditions of asserts, which cannot fail (the asserts themselves are there, and hold).
- the way past a `switch` that has a case for every value of its enumeration and, on purpose, no `default`: clang counts a
  branch there which no value takes.
- branches inside of macros of the system's headers (uthash, tree.h, queue.h): not ours to test.
Nothing else: a line or branch that only a failing allocation or an impossible value reaches counts as missing.
"""
import collections
import json
import os
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/coverage"
FLAGS = "-fprofile-instr-generate -fcoverage-mapping"
SETUP = ["-Db_sanitize=none", "-Dbuildtype=debug", "-Doptimization=1", "-Dwerror=false", f"-Dc_args={FLAGS}",
         "-Dc_link_args=-fprofile-instr-generate"]

Share = collections.namedtuple("Share", "count covered")


class File:
    """One source file: {line: ran} and {(line, column, end line, end column, way): ran}."""

    def __init__(self):
        self.lines, self.branches = {}, {}

    def get_lines(self):
        return Share(len(self.lines), sum(self.lines.values()))

    def get_branches(self):
        return Share(len(self.branches), sum(self.branches.values()))


def build(targets=()):
    """Brings build/coverage up to date: all of it, or these targets of it."""
    if not (BUILD / "build.ninja").exists():
        # meson runs a program to see whether the compiler works
        environment = {"CC": "clang", **os.environ, "LLVM_PROFILE_FILE": str(BUILD / "setup.profraw")}
        subprocess.run(["meson", "setup", BUILD, *SETUP], check=True, cwd=ROOT, env=environment)
    subprocess.run(["ninja", "-C", BUILD, *targets], check=True)


def get_environment(folder):
    """For programs of the build: each leaves its counts in the folder, added to those of its earlier runs."""
    return {**os.environ, "LLVM_PROFILE_FILE": f"{folder}/%4m.profraw"}


def list_objects(sources=None):
    """The objects of src/, or of these sources: their coverage maps name every line once, whatever program it is linked to."""
    objects = sorted(BUILD.glob("src/*.a.p/*.o"))
    if sources is not None:
        names = {str(pathlib.Path(name).relative_to("src")).replace("/", "_") + ".o" for name in sources}
        objects = [path for path in objects if path.name in names]
    return objects


def run_llvm_cov(profile, objects, *options):
    command = ["llvm-cov", "export", f"-instr-profile={profile}", *options, objects[0]]
    command += [word for path in objects[1:] for word in ("-object", path)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def relative(name):
    path = pathlib.Path(name)
    path = path if path.is_absolute() else BUILD / path
    path = pathlib.Path(os.path.normpath(path))
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT / "src") else None


def read_lines(files, text):
    """From lcov's form."""
    present = None
    for line in text.splitlines():
        if line.startswith("SF:"):
            name = relative(line[3:])
            present = files[name] if name else None
        elif line.startswith("DA:") and present is not None:
            number, count = map(int, line[3:].split(",")[:2])
            present.lines[number] = present.lines.get(number, False) or count > 0


class Text:
    """A source, to tell what stands where clang says that a branch is."""

    def __init__(self, name):
        self.bytes = (ROOT / name).read_bytes()
        self.starts = [0] + [match.end() for match in re.finditer(rb"\n", self.bytes)]
        self.asserts = [(match.end(), self.find_end(match.end())) for match in re.finditer(rb"\bassert\(", self.bytes)]

    def find_end(self, at):
        """Behind the bracket that closes the one before `at`."""
        depth = 1
        while depth:
            depth += {b"(": 1, b")": -1}.get(self.bytes[at:at + 1], 0)
            at += 1
        return at

    def is_left_out(self, line, column):
        """The condition of an assert; or of a switch: the branch there is the one past all of its cases."""
        at = self.starts[line - 1] + column - 1
        return (any(start <= at < end for start, end in self.asserts)
                or re.search(rb"\bswitch\s*\($", self.bytes[self.starts[line - 1]:at]) is not None)


def read_branches(files, text):
    """From the branches of each function: two ways each, and how often each was taken."""
    texts = {}
    for function in json.loads(text)["data"][0]["functions"]:
        names = [relative(name) for name in function["filenames"]]
        for line, column, end_line, end_column, yes, no, file_id, *_ in function["branches"]:
            name = names[file_id]
            if not name:
                continue
            if name not in texts:
                texts[name] = Text(name)
            if texts[name].is_left_out(line, column):
                continue
            branches = files[name].branches
            for way, count in (("true", yes), ("false", no)):
                key = (line, column, end_line, end_column, way)
                branches[key] = branches.get(key, False) or count > 0


def read(folders, sources=None):
    """{"src/decide/decide.c": File} of what the programs that ran left in the folders."""
    with tempfile.NamedTemporaryFile(suffix=".profdata") as profile:
        raw = [path for folder in folders for path in pathlib.Path(folder).glob("*.profraw")]
        subprocess.run(["llvm-profdata", "merge", "-sparse", "-o", profile.name, *raw], check=True)
        objects = list_objects(sources)
        files = collections.defaultdict(File)
        read_lines(files, run_llvm_cov(profile.name, objects, "-format=lcov"))
        read_branches(files, run_llvm_cov(profile.name, objects, "-format=text"))
    return files


def measure_corpora(target, corpora, sources):
    """The share of the sources' lines that a fuzz target covers with its inputs as they are."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([BUILD / "tests/fuzz" / f"replay_{target}", "--mutations=0", *filter(any_file, corpora)], check=True,
                       env=get_environment(folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        files = read([folder], sources)
    shares = [file.get_lines() for name, file in files.items() if name in sources]
    return Share(sum(share.count for share in shares), sum(share.covered for share in shares))


def any_file(folder):
    return any(pathlib.Path(folder).iterdir())
