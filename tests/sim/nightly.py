#!/usr/bin/python3
"""nightly.py NIGHTLY COMPARE LIST: a run of NIGHTLY that is killed leaves no digests of a former run, so COMPARE fails. A run
to the end writes the digests that the program prints."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

NIGHTLY, COMPARE, LIST = map(pathlib.Path, sys.argv[1:])
KILLS = "#!/bin/sh\nkill -KILL $PPID\n"
PRINTS = """#!/bin/sh
head -n 500 {}
echo '500 seeds, 0 failed; 1 steps, 1 hours, 1 records, 1 actions; 1.0 s, 500 seeds/s' >&2
echo '           1  a disk is full' >&2
"""


def run(*command, **environment):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **environment})


def main():
    with tempfile.TemporaryDirectory() as name:
        program, found, expected = (pathlib.Path(name) / file for file in ("sim", "nightly-digests", "list"))
        lines = LIST.read_text().splitlines(keepends=True)[:500]
        expected.write_text("".join(lines))
        program.write_text(PRINTS.format(LIST))
        program.chmod(0o755)
        result = run(NIGHTLY, "500", SIM=str(program))
        assert result.returncode == 0, result
        assert found.read_text() == expected.read_text()
        result = run(COMPARE, found, expected)
        assert result.returncode == 0 and "500 seeds, 0 with other digests" in result.stdout, result

        program.write_text(KILLS)
        result = run(NIGHTLY, "500", SIM=str(program))
        assert result.returncode == -signal.SIGKILL, result
        result = run(COMPARE, found, expected)
        assert result.returncode == 1 and f"{found}: no such file" in result.stderr, result


main()
