#!/usr/bin/python3
"""run_ids.py PRINT_IDS [--update]: the ids of every kind of target and provider, in every spelling of their addresses.

Twice: as the configuration has them, and of the rule file alone, where nobody knows what a provider's type is. Ids are
written into state, locks and logs, so they stay as they are. --update writes what is said now; read the difference.
"""
import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).parent / "ids"


def main():
    said = ""
    for name in ("alertscaler.yaml", "rules.yaml"):
        program = pathlib.Path(sys.argv[1]).resolve()
        result = subprocess.run([program, name], cwd=FOLDER, capture_output=True, text=True, timeout=60)
        said += f"--- {name}\n{result.stdout}{result.stderr}"
    if "--update" in sys.argv:
        (FOLDER / "expected").write_text(said, encoding="utf-8")
    if said != (FOLDER / "expected").read_text(encoding="utf-8"):
        sys.exit(f"{FOLDER / 'expected'} says otherwise:\n{said}")


if __name__ == "__main__":
    main()
