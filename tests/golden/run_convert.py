#!/usr/bin/python3
"""run_convert.py BINARY [--update] [CASE...]: what `alertscaler convert` makes of the files in convert/CASE, as TAP.

A case is a folder with its files and `expected`: standard output and error of the command, its exit status, and each file that
it writes. Without a file `arguments`, all *.yaml of the case are converted. Whatever is written must pass `alertscaler check` and
`alertscaler test` as it is. --update writes what is made now; read the difference.
"""
import pathlib
import shlex
import subprocess
import sys
import tempfile

import run_config

CASES = pathlib.Path(__file__).parent / "convert"


def must_pass(*command, cwd):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)
    return "" if done.returncode == 0 and not done.stderr else f"{' '.join(command[:2])} fails:\n{done.stdout}{done.stderr}"


def read_result(binary, folder):
    """The files of the result, and what is wrong with them."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    text = "".join(f"==> {path.relative_to(folder)}\n{path.read_text(encoding='utf-8')}" for path in files)
    rules, policies, tests = ([str(path.relative_to(folder)) for path in sorted(folder.glob(f"{room}/*"))]
                              for room in ("rules", "policies", "tests"))
    rules += policies
    if not rules:
        return text
    text += must_pass(binary, "check", "--lint-fatal", *rules, cwd=folder)
    return text + must_pass(binary, "test", *tests, cwd=folder)


def run(binary, case):
    arguments = (shlex.split((case / "arguments").read_text(encoding="utf-8")) if (case / "arguments").exists()
                 else sorted(path.name for path in case.glob("*.yaml")))
    with tempfile.TemporaryDirectory() as parent:
        out = pathlib.Path(parent) / "out"
        # behind the first one: flags of another program may end the line
        result = subprocess.run([binary, "convert", *arguments[:1], f"--out={out}", *arguments[1:]], cwd=case, capture_output=True,
                                timeout=120, check=False)
        said = "".join(part.decode("utf-8", "backslashreplace") for part in (result.stdout, result.stderr)).replace(str(out), "out")
        left = sorted(path.name for path in pathlib.Path(parent).iterdir())
        if left != (["out"] if result.returncode < 2 else []):
            said += f"beside it is left: {left}\n"
        return said + f"exit status {result.returncode}\n" + (read_result(binary, out) if out.exists() else "")


if __name__ == "__main__":
    sys.exit(run_config.main(run, CASES))
