#!/usr/bin/python3
"""diff.py ALERTSCALER: `alertscaler diff`: what it says of two configurations, folders and rule files, and its exit statuses."""
import json
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
RULES = """\
targets:
  web:
    kubernetes: {kind: Deployment, namespace: shop, name: web}
    min: 1
    max: 20
    schedules:
      - {name: office, timezone: UTC, from: '08:00', to: '18:00', min: 3}
  search:
    kubernetes: {kind: Deployment, namespace: shop, name: search}
    max: 5
    tolerance: {up: 20%}
rules:
  - {name: slow, match: ['alertname="Slow"'], target: web, scale_up: {by: 2}}
  - {name: idle, match: ['alertname="Idle"'], target: web, scale_down: {by: 1}}
"""


class Diff(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")

    def run_diff(self, *arguments):
        done = subprocess.run([PROGRAM, "diff", *arguments], cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr

    def expect(self, status, text, *arguments):
        self.assertEqual(self.run_diff(*arguments), (status, textwrap.dedent(text), ""))

    def test_equal_files_print_nothing(self):
        self.write("old.yaml", RULES)
        self.expect(0, "", "old.yaml", "old.yaml")

    def test_comments_order_and_files_do_not_count(self):
        self.write("old/all.yaml", RULES)
        targets, rules = RULES.split("rules:\n")
        self.write("new/b.yaml", "# moved\n" + targets.replace("    min: 1\n    max: 20\n", "    max: 20 # at most\n    min: 1\n"))
        self.write("new/a.yaml", "rules:\n" + "".join(reversed(rules.splitlines(keepends=True))))
        self.expect(0, "", "old", "new")

    def test_each_key_that_differs(self):
        self.write("old.yaml", RULES)
        self.write("new.yaml", RULES.replace("max: 20", "max: 30").replace("min: 3", "min: 4").replace("by: 2", "by: 50%")
                   .replace("    min: 1\n", "").replace("Idle", "Calm"))
        self.expect(1, """\
            target web: changed (new.yaml:2)
              max: 20 -> 30
              min: 1 -> (not set)
              schedules[office].min: 3 -> 4
            rule idle: changed (new.yaml:13)
              match: [alertname="Idle"] -> [alertname="Calm"]
            rule slow: changed (new.yaml:12)
              scale_up.by: 2 -> 50%
            """, "old.yaml", "new.yaml")

    def test_added_and_removed(self):
        self.write("old.yaml", RULES)
        self.write("new.yaml", RULES.replace("search", "find").replace("name: idle", "name: calm"))
        self.expect(1, """\
            target find: added (new.yaml:8)
            target search: removed (old.yaml:8)
            rule calm: added (new.yaml:14)
            rule idle: removed (old.yaml:14)
            """, "old.yaml", "new.yaml")

    def test_defaults_are_part_of_a_target(self):
        self.write("rules.yaml", RULES)
        self.write("old.yaml", "rule_files: [rules.yaml]\ndefaults: {min: 2, tolerance: {up: 5%, down: 5%}, cooldown: {up: 1m, down: 2m}}\n")
        self.write("new.yaml", "rule_files: [rules.yaml]\ndefaults: {min: 3, tolerance: {up: 6%, down: 6%}, cooldown: {up: 1m, down: 3m}}\n")
        self.expect(1, """\
            target search: changed (rules.yaml:8)
              cooldown.down: 2m -> 3m
              min: 2 -> 3
              tolerance.down: 5% -> 6%
            target web: changed (rules.yaml:2)
              cooldown.down: 2m -> 3m
              tolerance.down: 5% -> 6%
              tolerance.up: 5% -> 6%
            """, "old.yaml", "new.yaml")
        self.expect(1, """\
            target search: changed (rules.yaml:8)
              cooldown.down: (not set) -> 3m
              cooldown.up: (not set) -> 1m
              min: (not set) -> 3
              tolerance.down: (not set) -> 6%
            target web: changed (rules.yaml:2)
              cooldown.down: (not set) -> 3m
              cooldown.up: (not set) -> 1m
              tolerance.down: (not set) -> 6%
              tolerance.up: (not set) -> 6%
            """, "rules.yaml", "new.yaml")
        self.expect(0, "", "--config.file=new.yaml", "rules.yaml", "new.yaml")

    def test_values_of_settings_are_not_printed(self):
        self.write("rules.yaml", RULES)
        self.write("old.yaml", "rule_files: [rules.yaml]\nprometheus: {url: 'http://old-secret:9090'}\n")
        self.write("new.yaml", "rule_files: ['rules.yaml']\nprometheus: {url: 'http://new-secret:9090'}\ndry_run: true\n")
        self.expect(1, """\
            setting dry_run: added (new.yaml:3)
            setting prometheus: changed (new.yaml:2)
            """, "old.yaml", "new.yaml")
        self.assertNotIn("secret", self.run_diff("old.yaml", "new.yaml", "-o", "json")[1])

    def test_policies_are_compared_with_policies(self):
        policy = """\
            apiVersion: alertscaler.io/v1alpha1
            kind: ScalingPolicy
            metadata: {name: web, namespace: shop}
            spec:
              target: {kubernetes: {kind: Deployment, name: web}, max: 9}
              rules:
                - {name: slow, match: ['alertname="Slow"'], scaleUp: {by: 2}}
            """
        self.write("old.yaml", policy)
        self.write("new.yaml", policy.replace("max: 9", "max: 8").replace("by: 2", "by: 3"))
        self.expect(1, """\
            target shop/web: changed (new.yaml:1)
              max: 9 -> 8
            rule shop/web/slow: changed (new.yaml:7)
              scale_up.by: 2 -> 3
            """, "old.yaml", "new.yaml")

    def test_json(self):
        self.write("old.yaml", RULES)
        self.write("new.yaml", RULES.replace("max: 20", "max: 30").replace("name: idle", "name: calm"))
        status, out, _ = self.run_diff("old.yaml", "new.yaml", "-o", "json")
        self.assertEqual((status, json.loads(out)), (1, {
            "equal": False,
            "targets": [{"name": "web", "change": "changed", "old": {"file": "old.yaml", "line": 2}, "new": {"file": "new.yaml", "line": 2},
                         "keys": [{"key": "max", "old": "20", "new": "30"}]}],
            "rules": [{"name": "calm", "change": "added", "old": None, "new": {"file": "new.yaml", "line": 14}, "keys": []},
                      {"name": "idle", "change": "removed", "old": {"file": "old.yaml", "line": 14}, "new": None, "keys": []}],
            "settings": [],
        }))
        status, out, _ = self.run_diff("old.yaml", "old.yaml", "-o", "json")
        self.assertEqual((status, json.loads(out)), (0, {"equal": True, "targets": [], "rules": [], "settings": []}))

    def test_errors_have_status_2_and_their_place(self):
        self.write("old.yaml", RULES)
        self.write("new.yaml", RULES.replace("max: 20", "mx: 20"))
        status, out, err = self.run_diff("old.yaml", "new.yaml")
        self.assertEqual((status, out), (2, ""))
        self.assertIn("new.yaml:5:5: error: unknown key `mx`; did you mean `max`?", err)
        status, _, err = self.run_diff("old.yaml", "absent.yaml")
        self.assertEqual((status, err), (2, "alertscaler diff: absent.yaml: No such file or directory\n"))
        self.assertEqual(self.run_diff("old.yaml")[0], 2)

    def test_characters_that_a_terminal_obeys_are_escaped(self):
        self.write("old.yaml", RULES)
        self.write("new.yaml", RULES.replace("""'alertname="Idle"'""", '''"alertname=\\"Idle\\u001b[31m\\u202e\\""'''))
        status, out, _ = self.run_diff("old.yaml", "new.yaml")
        self.assertEqual(status, 1)
        self.assertIn('[alertname="Idle\\x1b[31m\\u202e"]', out)

    def test_a_long_value_is_cut(self):
        self.write("old.yaml", RULES)
        self.write("new.yaml", RULES.replace("Idle", "I" * 1000))
        out = self.run_diff("old.yaml", "new.yaml")[1]
        self.assertIn("III...\n", out)
        self.assertLess(max(len(line) for line in out.splitlines()), 300)


unittest.main(argv=sys.argv[:1], verbosity=1)
