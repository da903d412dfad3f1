#!/usr/bin/python3
"""first.py ALERTSCALER ROOT: the first five minutes: what `init` writes is right as it is, and a daemon runs with it."""
import os
import pathlib
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

import yaml

PROGRAM, ROOT = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
FILES = ["alertmanager.yml", "alertscaler.yaml", "practice.py", "rules/checkout.yaml", "tests/checkout.yaml", "token"]


def run(*arguments, **more):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120, **more)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_open(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} does not come")
        time.sleep(0.05)


class Folder(unittest.TestCase):
    """A folder that `init` made."""

    def setUp(self):
        self.parent = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.folder = self.parent / "first"
        self.said = run("init", self.folder)
        self.assertEqual((self.said.returncode, self.said.stderr), (0, ""))


class Init(Folder):
    def test_it_writes_these_files_and_no_other(self):
        files = sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())
        self.assertEqual(files, FILES)
        for name in FILES:
            self.assertIn(name.split("/")[0], self.said.stdout)

    def test_the_token_is_random_and_for_its_owner_alone(self):
        token = self.folder / "token"
        self.assertEqual(stat.S_IMODE(token.stat().st_mode), 0o600)
        self.assertRegex(token.read_text(), r"\A[\w-]{43}\n\Z")
        run("init", self.parent / "second")
        self.assertNotEqual(token.read_text(), (self.parent / "second/token").read_text())

    def test_check_and_test_accept_it_without_a_warning(self):
        done = run("check", "--lint-fatal", "--alertmanager=alertmanager.yml", cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = run("test", *(self.folder / "tests").glob("*.yaml"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_deployment_of_the_comment_is_right_too(self):
        rules = self.folder / "rules/checkout.yaml"
        text = rules.read_text()
        changed = re.sub(r"^    node_group: .*\n", "", text, flags=re.MULTILINE).replace("    # kubernetes:", "    kubernetes:")
        self.assertIn("\n    kubernetes: {kind: Deployment", changed)
        rules.write_text(changed)
        done = run("check", "--syntax-only", cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_people_are_still_paged(self):
        routes = [["amtool", "config", "routes", "test", "--config.file=alertmanager.yml", *labels]
                  for labels in (["scale=true"], ["severity=page"])]
        if not shutil.which("amtool"):
            self.skipTest("amtool is not installed")
        said = [subprocess.run(route, cwd=self.folder, capture_output=True, text=True, check=True).stdout.strip() for route in routes]
        self.assertEqual(said, ["alertscaler,people", "people"])

    def test_every_file_is_explained(self):
        for name in FILES:
            if name != "token":
                self.assertRegex((self.folder / name).read_text(), r"\A(#|#!.*\n\"\"\")", name)
        self.assertEqual(len(yaml.safe_load((self.folder / "rules/checkout.yaml").read_text())["rules"]), 2)

    def test_nothing_is_written_over(self):
        before = {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        done = run("init", self.folder)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("is not empty: name a new folder, or an empty one", done.stderr)
        self.assertEqual(before, {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()})

    def test_an_empty_folder_will_do_and_a_file_or_a_missing_parent_will_not(self):
        empty, file = self.parent / "empty", self.parent / "file"
        empty.mkdir()
        file.write_text("")
        self.assertEqual(run("init", empty).returncode, 0)
        for name, why in ((file, "Not a directory"), (self.parent / "none/below", "No such file or directory")):
            done = run("init", name)
            self.assertEqual((done.returncode, done.stderr), (2, f"alertscaler init: {name}: {why}\n"))


class Daemon(Folder):
    """With practice.py and a daemon, on ports of their own."""

    def setUp(self):
        super().setUp()
        ports = [free_port(), free_port()]
        for name in ("practice.py", "rules/checkout.yaml"):
            file = self.folder / name
            file.write_text(file.read_text().replace("9098", str(ports[0])))
        self.sizes = self.start(sys.executable, "practice.py")
        wait_for(lambda: is_open(ports[0]), "practice.py")
        self.log = self.start(PROGRAM, "serve", f"--web.listen-address=127.0.0.1:{ports[1]}")
        self.environment = {**os.environ, "ALERTSCALER_URL": f"http://127.0.0.1:{ports[1]}", "ALERTSCALER_TOKEN_FILE": "token"}
        wait_for(lambda: self.ask("status").returncode == 0, "the daemon")

    def start(self, *command):
        """Its output's file."""
        file = self.parent / f"{len(list(self.parent.iterdir()))}.log"
        with open(file, "wb") as output:
            process = subprocess.Popen(command, cwd=self.folder, stdout=output, stderr=output)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        return file

    def ask(self, *arguments):
        return run(*arguments, cwd=self.folder, env=self.environment)

    def test_an_alert_scales_it(self):
        done = self.ask("fire", "alertname=CheckoutLatencyHigh")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        wait_for(lambda: "checkout: 4 -> 6\n" in self.sizes.read_text(), "the new size")
        said = [line for line in self.log.read_text().splitlines() if "this build has sanitizers" not in line]
        self.assertEqual([line for line in said if "level=info" not in line], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
