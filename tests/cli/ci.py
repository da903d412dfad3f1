#!/usr/bin/python3
"""ci.py ALERTSCALER ROOT: what runs in others' pipelines: the hooks, by the real pre-commit, and the steps of the GitHub action,
by bash as a runner calls them, on a folder that `init` made."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

ALERTSCALER, ROOT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
ACTION = ROOT / "deploy/ci/action.yml"
WRONG = "    max: 20", "    max: many"


class Project(unittest.TestCase):
    def setUp(self):
        self.parent = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.folder, tools = self.parent / "project", self.parent / "tools"
        tools.mkdir()
        (tools / "alertscaler").symlink_to(ALERTSCALER)
        self.env = {**os.environ, "HOME": str(self.parent), "PATH": f"{tools}:/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1"}
        self.run_("alertscaler", "init", self.folder, cwd=self.parent)

    def run_(self, *command, cwd=None, status=0):
        done = subprocess.run([*map(str, command)], cwd=cwd or self.folder, env=self.env, capture_output=True, text=True, check=False)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def break_rules(self):
        rules = self.folder / "rules/checkout.yaml"
        self.assertIn(WRONG[0], rules.read_text())
        rules.write_text(rules.read_text().replace(*WRONG))

    def break_tests(self):
        tests = self.folder / "tests/checkout.yaml"
        text, count = re.subn(r"replicas: \d+, reason", "replicas: 17, reason", tests.read_text())
        self.assertGreater(count, 0)
        tests.write_text(text)


class Hooks(Project):
    def setUp(self):
        super().setUp()
        git = "git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"
        hooks = self.parent / "hooks"
        (hooks / "deploy/ci").mkdir(parents=True)
        shutil.copy(ROOT / ".pre-commit-hooks.yaml", hooks)
        shutil.copy(ROOT / "deploy/ci/test-rules", hooks / "deploy/ci")
        for folder in (hooks, self.folder):
            self.run_(*git, "init", cwd=folder)
            self.run_("git", "add", ".", cwd=folder)
            self.run_(*git, "commit", "-m", "all", cwd=folder)
        revision = self.run_("git", "rev-parse", "HEAD", cwd=hooks).stdout.strip()
        ids = [hook["id"] for hook in yaml.safe_load((hooks / ".pre-commit-hooks.yaml").read_text())]
        self.assertEqual(ids, ["alertscaler-check", "alertscaler-test"])
        (self.folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump(
            {"repos": [{"repo": str(hooks), "rev": revision, "hooks": [{"id": name} for name in ids]}]}))

    def hook(self, name, status):
        return self.run_("pre-commit", "run", "--all-files", name, status=status).stdout

    def test_good_files_pass_and_wrong_ones_do_not(self):
        for name in ("alertscaler-check", "alertscaler-test"):
            self.assertIn("Passed", self.hook(name, 0))
        self.break_tests()
        self.assertIn("replicas: expected 17, got 6", self.hook("alertscaler-test", 1))
        self.assertIn("Passed", self.hook("alertscaler-check", 0))
        self.break_rules()
        self.assertRegex(self.hook("alertscaler-check", 1), r"rules/checkout\.yaml:\d+:\d+: error: expected an integer")


class Action(Project):
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))

    def steps(self, status=0, **given):
        """Runs the steps as a runner does: inputs reach scripts by their environment only."""
        inputs = {name: str(row["default"]) for name, row in self.action["inputs"].items()}
        self.assertLessEqual(set(given), set(inputs))
        inputs.update(given)
        said = ""
        for step in self.action["runs"]["steps"]:
            self.assertNotIn("${{", step["run"])
            values = {name: re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", value)[1] for name, value in step.get("env", {}).items()}
            env = {**self.env, "GITHUB_ACTION_PATH": str(ACTION.parent), **{name: inputs[key] for name, key in values.items()}}
            done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], cwd=self.folder, env=env,
                                  capture_output=True, text=True, check=False)
            said += done.stdout + done.stderr
            if done.returncode:
                break
        self.assertEqual(done.returncode, status, said)
        return said

    def test_good_files_pass(self):
        said = self.steps()
        self.assertIn("1 rule file, 1 target, 2 rules: ok", said)
        self.assertIn("SUCCESS", said)

    def test_tests_that_fail_fail_the_job(self):
        self.break_tests()
        self.steps(status=1)
        self.steps(tests="")
        self.assertIn("there is no folder none", self.steps(status=2, tests="none"))

    def test_errors_stand_beside_their_lines(self):
        self.break_rules()
        said = self.steps(status=1)
        matcher = re.search(r"^::add-matcher::(.*)$", said, re.MULTILINE)[1]
        pattern = json.loads(pathlib.Path(matcher).read_text())["problemMatcher"][0]["pattern"][0]
        found = [re.match(pattern["regexp"], line) for line in said.splitlines()]
        found = [match for match in found if match]
        self.assertEqual([match[pattern["file"]] for match in found], ["rules/checkout.yaml"])
        self.assertIn("max: many", (self.folder / "rules/checkout.yaml").read_text().splitlines()[int(found[0][pattern["line"]]) - 1])

    def test_other_files_are_compared(self):
        self.assertIn("compared with alertmanager.yml", self.steps(alertmanager="alertmanager.yml", **{"lint-fatal": "true"}))
        text = (self.folder / "alertmanager.yml").read_text()
        (self.folder / "alertmanager.yml").write_text(text.replace("/webhook", "/other"))
        self.steps(alertmanager="alertmanager.yml")
        self.steps(status=3, alertmanager="alertmanager.yml", **{"lint-fatal": "true"})

    def test_values_are_no_commands(self):
        self.steps(status=2, config="$(touch evil)")
        self.steps(status=2, tests="`touch evil`; touch evil")
        self.assertFalse((self.folder / "evil").exists())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
