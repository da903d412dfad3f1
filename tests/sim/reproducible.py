#!/usr/bin/python3
"""reproducible.py SIM: a seed reproduces everything, to the last byte of the action log; another seed does
not. And trouble that never comes is an error where it is asked for."""
import subprocess
import sys


def run(*arguments):
    return subprocess.run([sys.argv[1], *arguments], capture_output=True, text=True, timeout=200, check=False)


def log_of(seed):
    result = run("--seed", str(seed), "--steps", "1000")
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.splitlines()[0]


def main():
    first, again, other = log_of(7), log_of(7), log_of(8)
    assert first == again, f"{first}\n{again}"
    assert first.split("log ")[1] != other.split("log ")[1]
    for arguments in (["--seed", "x"], ["--seeds", "1-2"], ["--what"]):
        assert run(*arguments).returncode == 2, arguments
    missing = run("--seed", "7", "--steps", "20", "--trouble")
    assert missing.returncode == 1 and "NEVER HAPPENED: power cut" in missing.stdout, missing.stdout


main()
