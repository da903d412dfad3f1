#!/usr/bin/python3
"""run_config.py BINARY [--update] [CASE...]: what `alertscaler check` says of the files in config/CASE, as TAP.

A case is a folder with its files and `expected`: standard output and standard error of the command, and its exit
status. Without a file `arguments`, the command is `check` on alertscaler.yaml if there is one, else on rules.yaml.
Run from the case's folder, so that file names are short. --update writes what is said now; read the difference.
"""
import os
import pathlib
import shlex
import subprocess
import sys

# Its messages are those of its version; tests/integration/test_check_queries.py is about them.
WITHOUT_PROMTOOL = dict(os.environ, PATH="/nonexistent")
CASES = pathlib.Path(__file__).parent / "config"


def arguments_of(case):
    if (case / "arguments").exists():
        return shlex.split((case / "arguments").read_text(encoding="utf-8"))
    return [] if (case / "alertscaler.yaml").exists() else ["rules.yaml"]


def run(binary, case):
    result = subprocess.run([binary, "check", *arguments_of(case)], cwd=case, capture_output=True, timeout=60, env=WITHOUT_PROMTOOL)
    parts = [part.decode("utf-8", "backslashreplace") for part in (result.stdout, result.stderr)]
    return "".join(parts) + f"exit status {result.returncode}\n"


def main(run=run, cases_folder=CASES):
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    update = "--update" in sys.argv
    wanted = [a for a in sys.argv[2:] if not a.startswith("--")]
    cases = [c for c in sorted(cases_folder.iterdir()) if c.is_dir() and (not wanted or c.name in wanted)]
    failed = not cases
    print(f"1..{len(cases)}")
    for number, case in enumerate(cases, 1):
        said = run(binary, case)
        if update:
            (case / "expected").write_text(said, encoding="utf-8")
        expected = (case / "expected").read_text(encoding="utf-8")
        good = said == expected
        failed |= not good
        print(f"{'ok' if good else 'not ok'} {number} {case.name}", flush=True)
        if not good:
            print(f"{case.name}: expected:\n{expected}but it says:\n{said}", file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
