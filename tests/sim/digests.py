#!/usr/bin/python3
"""digests.py SIM COMPARE LIST: the first seeds have the digests of the list, in any build, whichever seeds ran before. A
changed digest, a missing seed and an unreadable list are errors of COMPARE."""
import pathlib
import subprocess
import sys
import tempfile

SIM, COMPARE, LIST = sys.argv[1:]
SEEDS = 12


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def digests_of(first, last):
    result = run(SIM, "--digests", f"{first}..{last}")
    assert result.returncode == 0, result.stderr
    assert f"{last - first + 1} seeds, 0 failed" in result.stderr, result.stderr
    return result.stdout.splitlines()


def compare(directory, found, expected):
    for name, lines in ("found", found), ("list", expected):
        (directory / name).write_text("".join(f"{line}\n" for line in lines))
    return run(COMPARE, directory / "found", directory / "list")


def change(line, field):
    fields = line.split()
    fields[field] = ("1" if fields[field][0] != "1" else "2") + fields[field][1:]
    return " ".join(fields)


def main():
    expected = pathlib.Path(LIST).read_text().splitlines()
    assert [int(line.split()[0]) for line in expected] == list(range(1, 2001)), "the list is of seeds 1 to 2000"
    found = digests_of(1, SEEDS)
    assert found == expected[:SEEDS], "\n".join(["the first seeds have other digests than the list:", *found])
    assert digests_of(SEEDS, SEEDS) == found[-1:], "other digests without the seeds before"
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        result = compare(directory, found, found)
        assert result.returncode == 0 and f"{SEEDS} seeds, 0 with other digests" in result.stdout, result
        for field, word in (1, "steps"), (2, "log"), (3, "state"):
            changed = [*found[:4], change(found[4], field), *found[5:]]
            result = compare(directory, changed, found)
            value = changed[4].split()[field]
            assert result.returncode == 1, result
            assert f"seed 5: {word} {value} instead of {found[4].split()[field]}\n" in result.stdout, result.stdout
            assert f"{SEEDS} seeds, 1 with other digests" in result.stdout, result.stdout
            assert "--digests 1..12 >tests/sim/digests" in result.stdout, result.stdout
        result = compare(directory, found[:-1], found)
        assert result.returncode == 1 and "seed 12: no digests" in result.stdout, result
        for lines in [], [*found, found[0]], [*found, "13 FAILED"]:
            assert compare(directory, found, lines).returncode == 1, lines
            assert compare(directory, lines, found).returncode == 1, lines


main()
