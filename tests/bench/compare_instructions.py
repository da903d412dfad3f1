#!/usr/bin/python3
"""compare_instructions.py OLD NEW [FIGURE...]: instructions of two release builds (meson setup build/release), counted by callgrind.

    a-repeat  a-new-alert    of the daemon, for one request; the median of three rounds
    a-decision  pool  snapshot    of the whole programs bench_decide, bench_pool and bench_snapshot

Prints instructions of OLD and NEW, and their ratio. Ends with 1 if a ratio is above 1.02. OLD may be a file of figures that
`--write FILE BUILD` has written: its first line names machine and compiler. Figures of another machine or compiler do not compare,
and are refused.
"""
import contextlib
import io
import pathlib
import platform
import re
import subprocess
import sys
import tempfile

from daemon import Daemon
from instructions import Counted, count

BOUND = 1.02
PROGRAMS = {"a-decision": "decide", "pool": "pool", "snapshot": "snapshot"}
OLD_NAMES = {"snapshot": "survey"}     # of programs of 1c874e40
REQUESTS = {"a-repeat": "a repeat", "a-new-alert": "a new alert"}
FIGURES = [*REQUESTS, *PROGRAMS]


def count_program(program):
    """Instructions of a run. How fast it ran, which its exit status says, does not count."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "callgrind"
        done = subprocess.run(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}", program], capture_output=True,
                              text=True, check=False)
        if done.returncode not in (0, 1) or not out.exists():
            raise SystemExit(f"{program} failed ({done.returncode}): {done.stderr}")
        return int(re.search(r"^(?:totals|summary): (\d+)", out.read_text(encoding="utf-8"), re.M)[1])


def count_requests(build, load):
    with Daemon(build / "src/alertscaler", core="0,1") as daemon, contextlib.redirect_stdout(io.StringIO()):
        return round(count(Counted(daemon), load, 1))


def measure(build, figure):
    if figure in REQUESTS:
        return count_requests(build, REQUESTS[figure])
    program = build / f"tests/bench/bench_{PROGRAMS[figure]}"
    return count_program(program if program.exists() else program.with_name(f"bench_{OLD_NAMES.get(figure, figure)}"))


def describe_machine():
    model = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M)
    compiler = subprocess.run(["cc", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    return f"{platform.machine()}, {model[1] if model else 'unknown processor'}, {compiler}"


def read_figures(path):
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    if first != f"# {describe_machine()}":
        raise SystemExit(f"{path} is of another machine or compiler: {first.lstrip('# ')}; here: {describe_machine()}")
    return {name: int(number) for name, number in (line.split() for line in lines if not line.startswith("#"))}


def compare(figure, old, new):
    """One line of the report, and whether the bound is kept."""
    ratio = new / old
    return f"{figure:<12} {old:>16,} {new:>16,} {ratio:8.4f}{'' if ratio <= BOUND else f'  above {BOUND}'}", ratio <= BOUND


def main():
    arguments = sys.argv[1:]
    if len(arguments) < 2:
        raise SystemExit(__doc__)
    if arguments[0] == "--write":
        build = pathlib.Path(arguments[2]).resolve()
        rows = "".join(f"{figure} {measure(build, figure)}\n" for figure in FIGURES)
        pathlib.Path(arguments[1]).write_text(f"# {describe_machine()}\n{rows}", encoding="utf-8")
        return
    old, new = (pathlib.Path(argument).resolve() for argument in arguments[:2])
    known = read_figures(old) if old.is_file() else None
    kept = True
    print(f"{'':<12} {'old':>16} {'new':>16}    ratio")
    for figure in arguments[2:] or FIGURES:
        line, is_kept = compare(figure, known[figure] if known else measure(old, figure), measure(new, figure))
        print(line, flush=True)
        kept = kept and is_kept
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
