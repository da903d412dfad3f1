#!/usr/bin/python3
"""run.py ALERTSCALER ROOT: the commands of tests/gdb/alertscaler.py on a program that runs a rule test. Exit status 77 (skipped)
where the machine does not let gdb run a program."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

ALERTSCALER, ROOT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
GDB = ["gdb", "-q", "-batch", "-nx", "-iex", "set debuginfod enabled off"]
ENV = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}          # the check for leaks needs what gdb uses

# Until a change of checkout is on its way that is not the first one.
LOOP = """
import gdb, re
for _ in range(200):
    listed = gdb.execute("as-targets", to_string=True)
    if re.search(r"checkout  PHASE_(?!IDLE|OBSERVING|OUTCOME)\\w+  size 6", listed):
        break
    gdb.execute("continue", to_string=True)
print("STOPPED", listed)
"""


def run_gdb(*commands):
    arguments = [argument for command in commands for argument in ("-ex", command)]
    return subprocess.run([*GDB, "-x", ROOT / "tests/gdb/alertscaler.py", *arguments, "--args", ALERTSCALER, "test",
                           ROOT / "rules/tests/checkout.yaml"], env=ENV, capture_output=True, text=True, check=False, timeout=100)


class Commands(unittest.TestCase):
    def test_a_target_while_its_size_is_changed(self):
        loop = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"loop-{os.getpid()}.py"
        loop.write_text(LOOP, encoding="utf-8")
        self.addCleanup(loop.unlink)
        done = run_gdb("break as_engine_step", "run", f"source {loop}", "as-target shop/checkout", "as-engine")
        text = done.stdout[done.stdout.find("STOPPED"):]
        self.assertRegex(text, r"target kubernetes/default/\S+/shop/checkout\n", done.stdout + done.stderr)
        for line in (r"id: kubernetes/default/apps/v1/Deployment/shop/checkout", r"phase: PHASE_(?!IDLE)\w+", r"replicas: 6",
                     r"desired: 9", r"last_up: 60\.000 s ago", r'rule: "checkout-is-slow"', r"from: 6", r"to: 9"):
            self.assertRegex(text, rf"(?m)^ +{line}$")
        self.assertIn("    waits for a commit:\n", text)
        self.assertNotRegex(text, r"last_down|not readable")            # what is not set is not shown
        self.assertRegex(text, r"\(struct as_engine \*\)0x[0-9a-f]+\n")

    def test_what_is_not_there(self):
        errors = run_gdb("as-targets", "break main", "run", "as-targets", "break as_engine_step", "continue", "as-target nothing",
                         "as-targets 1 + 1", "as-target").stderr
        for message in ("no process and no core", "no frame has an engine", "no target has nothing in its key", "1 + 1 is no engine",
                        "as-target KEY [ENGINE]"):
            self.assertIn(message, errors)


def find_obstacle():
    done = subprocess.run([*GDB, "-ex", "starti", "/bin/true"], capture_output=True, text=True, check=False)
    match = re.search(r".*(?:ptrace|not permitted|Couldn't get).*", done.stdout + done.stderr)
    return match[0] if match and "Program stopped" not in done.stdout else None


if __name__ == "__main__":
    if reason := find_obstacle():
        print(f"skipped: gdb cannot run a program here: {reason}")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
