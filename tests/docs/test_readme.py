#!/usr/bin/python3
"""test_readme.py ALERTSCALER ROOT: the README does what it says, and docs/convert.md.

Its `console` blocks are run, in their order and by one shell, in a fresh folder and a network of its own (so that ports are
as in the README), and what each command prints is compared where the README shows it. What differs from run to run (times,
identifiers, milliseconds) is compared by its form; a line `...` stands for any lines. The blocks `sh`, which install, are not
run: tests/run builds by the same commands.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

ALERTSCALER, ROOT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
VARIABLE = [    # what differs: its form, and what stands for it
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r"\b\d+ ms\b", "N ms"),
    (r"\b\d+s ago", "Ns ago"),
    (r"\b[\d.]+m?s before\b", "SPAN before"),
    (r"\b(\d+m)?\d+s\b", "SPAN"),
    (r"\b\d+\.\d\d\b", "N.NN"),
    (r"[0-9a-f]{64}", "HASH"),
    (r"(?m)^Leader: .*", "Leader: NAME"),
    (r"  +", "  "),
]


def read_commands(text=TEXT):
    """[(command, what it prints or None)]; blocks may stand in a list."""
    found = []
    for indent, block in re.findall(r"^( *)```console\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", re.sub(f"(?m)^{indent}", "", block), flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output if output.strip() else None))
    return found


def normalize(text):
    for pattern, word in VARIABLE:
        text = re.sub(pattern, word, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def make_pattern(shown):
    return "\n".join(r"[\s\S]*" if line == "..." else re.escape(line) for line in normalize(shown).splitlines())


def run_all(commands, files=()):
    """What each of them printed, by one bash in a network of its own, in a folder with these files: (name, text)."""
    mark = "=== end of a command, status "
    script = "ip link set lo up || exit 99\n"
    for command, _ in commands:
        # a busy machine takes longer than a reader
        wait = ""
        if command.startswith("sleep "):
            wait = 'timeout 60 sh -c "until grep -q ready.to.receive serve.log; do sleep 0.1; done"\n'
        elif command.startswith("python3 practice.py"):
            wait = 'timeout 60 bash -c "until true 2>/dev/null </dev/tcp/127.0.0.1/9098; do sleep 0.1; done"\n'
        script += f"{command}\n{wait}echo '{mark}'$?\n"
    with tempfile.TemporaryDirectory() as folder:
        binaries = pathlib.Path(folder) / "bin"
        binaries.mkdir()
        (binaries / "alertscaler").symlink_to(ALERTSCALER)
        fresh = pathlib.Path(folder) / "fresh"
        fresh.mkdir()
        for name, text in files:
            (fresh / name).write_text(text, encoding="utf-8")
        # in a process namespace of its own, so that what it leaves in the background ends with it
        done = subprocess.run(["unshare", "--map-root-user", "--net", "--pid", "--fork", "--mount-proc", "--kill-child", "bash", "-c", script],
                              cwd=fresh, env={**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}"}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100, check=False)
    parts = re.split(re.escape(mark) + r"(\d+)\n", done.stdout)
    return list(zip(parts[0::2], map(int, parts[1::2]))), done.stdout


class Commands(unittest.TestCase):
    maxDiff = None

    def check_commands(self, commands, files=()):
        tried = subprocess.run(["unshare", "--map-root-user", "--net", "ip", "link", "set", "lo", "up"], capture_output=True, text=True,
                               check=False)
        if tried.returncode != 0:
            self.skipTest(f"no network namespace here: {tried.stderr.strip()}")
        results, whole = run_all(commands, files)
        self.assertEqual(len(results), len(commands), whole)
        for (command, shown), (printed, status) in zip(commands, results):
            with self.subTest(command):
                self.assertEqual(status, 0, printed)
                if shown is not None:
                    self.assertRegex(normalize(printed), r"\A" + make_pattern(shown) + r"\Z")


class Readme(Commands):
    def test_its_commands_print_what_it_shows(self):
        commands = read_commands()
        self.assertGreater(len(commands), 12)
        self.check_commands(commands)

    def test_its_rules_are_those_of_init(self):
        shown = [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)]
        self.assertIn(yaml.safe_load((ROOT / "src/cli/init/rules/checkout.yaml").read_text(encoding="utf-8")), shown)

    def test_its_lines_are_short(self):
        """Tables, and what a program prints, aside."""
        inside, long = False, []
        for line in TEXT.splitlines():
            inside = inside != line.startswith("```")
            if len(line) > 100 and not inside and not line.startswith("|"):
                long.append(line)
        self.assertEqual(long, [])

    def test_its_picture_is_the_log_of_the_demo(self):
        """docs/picture draws it: the same log and rules, the same bytes."""
        picture = re.search(r"!\[[^\]]+\]\((\S+\.svg)\)", TEXT)[1]
        with tempfile.TemporaryDirectory() as folder:
            drawn = pathlib.Path(folder) / "demo.svg"
            subprocess.run([ROOT / "docs/picture/draw", ALERTSCALER, drawn], check=True, timeout=100, capture_output=True)
            self.assertEqual(drawn.read_bytes(), (ROOT / picture).read_bytes(), "run docs/picture/draw ALERTSCALER docs/demo.svg")


class Convert(Commands):
    """docs/convert.md: from an HPA to rules that run."""

    def test_its_commands_print_what_it_shows(self):
        text = (ROOT / "docs/convert.md").read_text(encoding="utf-8")
        files = re.findall(r"^```yaml\n# ([\w.-]+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        self.assertEqual([name for name, _ in files], ["hpa.yaml", "adapter.yaml"])
        commands = read_commands(text)
        self.assertGreater(len(commands), 8)
        self.check_commands(commands, files)


class Tutorials(Commands):
    """The tutorials without a cluster, line by line. test_tutorials.py and test_tutorial_spot.py in tests/integration run the others."""

    def check_page(self, name, files):
        text = (ROOT / f"docs/tutorial-{name}.md").read_text(encoding="utf-8")
        found = re.findall(r"^```yaml\n# ([\w.-]+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        self.assertEqual([file for file, _ in found], files)
        commands = read_commands(text)
        self.assertGreater(len(commands), 1)
        # the line that names a file is a line of it
        self.check_commands(commands, [(file, f"# {file}\n{content}") for file, content in found])

    def test_nights_to_zero(self):
        self.check_page("nights", ["nights-rules.yaml", "nights-test.yaml"])

    def test_survive_an_oom(self):
        self.check_page("oom", ["oom-alerts.yaml", "oom-rules.yaml", "oom-test.yaml"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
