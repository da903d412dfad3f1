#!/usr/bin/python3
"""test_lint.py ALERTSCALER ROOT: the example of docs/lint.md is what the program says, and there is nothing to warn of in
what docs/, README.md and deploy/ tell people to write; and of Debian's own example for Alertmanager only that alertscaler
is not in it."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ALERTSCALER, ROOT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
DEBIAN = pathlib.Path("/usr/share/doc/prometheus-alertmanager/examples/simple.yml")
# A hint, and the line that it is about: every target of this kind has it.
HINT_OF_RIGHTS = r".*: hint: fields and resources need rights .*\n(?: .*\n)*"
OURS = "  - name: alertscaler\n    webhook_configs: [{url: 'http://alertscaler:9096/webhook'}]\n"


def check(*arguments, cwd=None):
    done = subprocess.run([ALERTSCALER, "check", *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr, done.stderr


def yaml_blocks(name):
    return re.findall(r"^```yaml\n(.*?)^```", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


class Lint(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def test_the_example_says_what_the_program_says(self):
        text = (ROOT / "docs/lint.md").read_text(encoding="utf-8").split("## An example")[1].split("\n## ")[0]
        for name, content in re.findall(r"^```yaml\n# (\S+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            (self.path / name).write_text(content, encoding="utf-8")
        self.assertEqual(len(list(self.path.iterdir())), 3)
        command, said = re.search(r"^```console\n\$ alertscaler check (.*?)\n(.*?)^```", text, re.MULTILINE | re.DOTALL).groups()
        self.assertEqual(check(*command.replace("'", "").split(), cwd=self.path)[:2], (0, said))

    def test_what_people_are_told_to_write_needs_no_warning(self):
        for name in ("docs/receiver.md", "README.md"):
            blocks = [block for block in yaml_blocks(name) if block.startswith("route:") and "\nreceivers:" in block]
            self.assertEqual(len(blocks), 1, name)
            (self.path / "alertmanager.yml").write_text(blocks[0], encoding="utf-8")
            for rules in sorted((ROOT / "rules").glob("*.yaml")):
                if rules.name == "demo.yaml":  # with locks of seconds, and an Alertmanager of its own: below
                    continue
                said = check(rules, "--alertmanager", self.path / "alertmanager.yml", "--lint-fatal", "--syntax-only")
                self.assertEqual((said[0], re.sub(HINT_OF_RIGHTS, "", said[2])), (0, ""), f"{name}, {rules.name}")

    def test_the_demo_needs_no_warning(self):
        demo = ROOT / "deploy/demo.d"
        said = check(ROOT / "rules/demo.yaml", "--alertmanager", demo / "alertmanager.yml",
                     "--prometheus-rules", demo / "*.yml", "--lint-fatal")
        self.assertEqual((said[0], said[2]), (0, ""))
        self.assertIn("2 alerting rules in 1 file of Prometheus", said[1])

    @unittest.skipUnless(DEBIAN.exists(), f"{DEBIAN} is not installed")
    def test_debians_example_is_understood(self):
        status, _, said = check(ROOT / "rules/checkout.yaml", "--alertmanager", DEBIAN)
        self.assertEqual((status, said.count("warning:")), (0, 1), said)
        self.assertIn("warning: no receiver has a webhook to alertscaler", said)
        text = DEBIAN.read_text(encoding="utf-8").rstrip() + "\n\n" + OURS
        text = text.replace("  routes:\n", "  routes:\n    - {receiver: alertscaler, continue: true}\n", 1)
        (self.path / "alertmanager.yml").write_text(text, encoding="utf-8")
        for rules in ("checkout.yaml", "memory.yaml"):  # it repeats every 3 hours
            status, _, said = check(ROOT / "rules" / rules, "--alertmanager", self.path / "alertmanager.yml", "--lint-fatal")
            self.assertEqual((status, said.count("warning:"), said.count(", but its alert is repeated every 3h")), (3, 1, 1), said)


unittest.main(argv=sys.argv[:1], verbosity=1)
