#!/usr/bin/python3
"""first.py ALERTSCALER ROOT: the first five minutes: what `init` writes is right as it is, and a daemon runs with it."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

import yaml

PROGRAM, ROOT = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
sys.path.insert(0, str(ROOT / "tests/integration"))
from harness.ports import free_port  # noqa: E402
SCHEMAS = [f"schema/{kind}.json" for kind in ("config", "rules", "tests", "web")]
FILES = ["alertmanager.yml", "alertscaler.yaml", "practice.py", "rules/checkout.yaml", *SCHEMAS, "tests/checkout.yaml", "token"]


def run(*arguments, **more):
    if "user" in more and "LLVM_PROFILE_FILE" in os.environ:    # where nobody may write
        more["env"] = {**os.environ, "LLVM_PROFILE_FILE": "/dev/null"}
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120, **more)


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
            if name not in ("token", *SCHEMAS):
                self.assertRegex((self.folder / name).read_text(), r"\A(#|#!.*\n\"\"\")", name)
        self.assertEqual(len(yaml.safe_load((self.folder / "rules/checkout.yaml").read_text())["rules"]), 2)

    def test_editors_find_the_schema_of_each_file(self):
        for name, kind in (("alertscaler.yaml", "config"), ("rules/checkout.yaml", "rules"), ("tests/checkout.yaml", "tests")):
            first = (self.folder / name).read_text().splitlines()[0]
            path = (self.folder / name).parent / re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)[1]
            self.assertEqual(json.loads(path.read_text()), json.loads(run("schema", kind).stdout))

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


class Kubernetes(unittest.TestCase):
    """The folder of `init --kubernetes`. tests/integration/test_init_kubernetes.py applies it to an API server."""
    files = ["alertscaler.yaml", "kustomization.yaml", "manifests.yaml", "policy.yaml", "role.yaml", "rules.yaml", *SCHEMAS, "tests/rules.yaml", "token"]

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "cluster"
        self.said = run("init", self.folder, "--kubernetes")
        self.assertEqual((self.said.returncode, self.said.stderr), (0, ""))

    def test_it_writes_these_files_and_no_other(self):
        files = sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())
        self.assertEqual(files, self.files)
        for name in self.files:
            self.assertIn(name.split("/")[0], self.said.stdout)
            if name not in ("token", *SCHEMAS):
                self.assertTrue((self.folder / name).read_text().startswith("#"), name)
        self.assertEqual(stat.S_IMODE((self.folder / "token").stat().st_mode), 0o600)

    def test_check_and_test_accept_it_without_a_warning(self):
        done = run("check", "--lint-fatal", cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.startswith("1 rule file, 1 target, 1 rule: ok\n"), done.stdout)
        done = run("test", *(self.folder / "tests").glob("*.yaml"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_policy_has_the_rule_of_the_rule_file(self):
        self.assertEqual(run("check", "--lint-fatal", self.folder / "policy.yaml").returncode, 0)
        policy, file = (yaml.safe_load((self.folder / name).read_text()) for name in ("policy.yaml", "rules.yaml"))
        rule, = file["rules"]
        track = policy["spec"]["rules"][0]["track"]
        self.assertEqual((policy["metadata"]["namespace"], policy["spec"]["target"]["max"]), ("shop", file["targets"]["web"]["max"]))
        self.assertEqual((track["query"], track["utilization"]), (rule["track"]["query"], rule["track"]["utilization"]))

    def test_another_deployment_takes_two_words(self):
        """`web` and `shop` are nothing but the two names."""
        for file in (*self.folder.glob("*.yaml"), *self.folder.glob("tests/*.yaml")):
            file.write_text(re.sub(r"\bweb\b", "checkout", re.sub(r"\bshop\b", "payments", file.read_text())))
        done = run("check", "--lint-fatal", cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(run("test", *(self.folder / "tests").glob("*.yaml")).returncode, 0)
        role, binding = yaml.safe_load_all((self.folder / "role.yaml").read_text())
        self.assertEqual({role["metadata"]["namespace"], binding["metadata"]["namespace"]}, {"payments"})
        self.assertEqual([rule["resourceNames"] for rule in role["rules"] if "resourceNames" in rule], [["checkout"]] * 2)

    def test_nothing_is_written_over(self):
        before = {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        done = run("init", "--kubernetes", self.folder)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("is not empty: name a new folder, or an empty one", done.stderr)
        self.assertEqual(before, {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()})

    def test_its_manifests_are_those_of_deploy(self):
        """The same objects, but for the one volume that has all files, and the token for commands in the pod."""
        shipped = {}
        for name in ("namespace", "serviceaccount", "storage", "deployment", "service"):
            for item in yaml.safe_load_all((ROOT / f"deploy/kubernetes/{name}.yaml").read_text()):
                shipped[item["kind"]] = item
        written = {item["kind"]: item for item in yaml.safe_load_all((self.folder / "manifests.yaml").read_text())}
        for items in (shipped, written):
            pod = items["Deployment"]["spec"]["template"]["spec"]
            container, = pod["containers"]
            container.pop("env", None)
            container["volumeMounts"] = [mount for mount in container["volumeMounts"] if mount["name"] == "state"]
            pod["volumes"] = [volume for volume in pod["volumes"] if volume["name"] == "state"]
        self.assertEqual(written, shipped)
        rights = yaml.safe_load((ROOT / "deploy/kubernetes/role.yaml").read_text())["rules"]
        allowed = {(group, resource, verb) for rule in rights for group in rule["apiGroups"] for resource in rule["resources"]
                   for verb in rule["verbs"]}
        role = next(yaml.safe_load_all((self.folder / "role.yaml").read_text()))["rules"]
        wanted = {(group, resource, verb) for rule in role for group in rule["apiGroups"] for resource in rule["resources"]
                  for verb in rule["verbs"]}
        self.assertLess(wanted, allowed)


class Daemon(Folder):
    """With practice.py and a daemon, on ports of their own."""
    flags = []

    def setUp(self):
        super().setUp()
        self.processes = []
        ports = [free_port(), free_port()]
        for name in ("practice.py", "rules/checkout.yaml"):
            file = self.folder / name
            file.write_text(file.read_text().replace("9098", str(ports[0])))
        self.sizes = self.start(sys.executable, "practice.py")
        wait_for(lambda: is_open(ports[0]), "practice.py")
        self.log = self.start(PROGRAM, "serve", f"--web.listen-address=127.0.0.1:{ports[1]}", *self.flags)
        self.environment = {**os.environ, "ALERTSCALER_URL": f"http://127.0.0.1:{ports[1]}", "ALERTSCALER_TOKEN_FILE": "token"}
        wait_for(lambda: "ready to receive notifications" in self.log.read_text(), "the daemon")

    def start(self, *command):
        """Its output's file."""
        file = self.parent / f"{len(list(self.parent.iterdir()))}.log"
        with open(file, "wb") as output:
            process = subprocess.Popen(command, cwd=self.folder, stdout=output, stderr=output)
        self.processes.append(process)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        return file

    def ask(self, *arguments):
        return run(*arguments, cwd=self.folder, env=self.environment)

    def test_an_alert_scales_it(self):
        done = self.ask("fire", "alertname=CheckoutLatencyHigh")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("or 1d have passed without a repeat.\n"
                      "To end it: alertscaler fire --resolved alertname=CheckoutLatencyHigh\n", done.stdout)
        wait_for(lambda: "checkout: 4 -> 6\n" in self.sizes.read_text(), "the new size")
        said = [line for line in self.log.read_text().splitlines() if "this build has sanitizers" not in line]
        self.assertEqual([line for line in said if "level=info" not in line], [])

    def test_its_log_says_nothing_empty(self):
        self.ask("fire", "alertname=CheckoutLatencyHigh", "--wait")
        wait_for(lambda: "msg=scaled" in self.log.read_text(), "the line")
        for line in self.log.read_text().splitlines():
            self.assertNotRegex(line, r" \w+=( |$)")

    def test_systemd_is_told(self):
        """Type=notify: ready when notifications are taken, stopping at SIGTERM; also in the sandbox."""
        for name in (str(self.parent / "notify"), f"@alertscaler-{os.getpid()}"):
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd, self.subTest(name):
                systemd.bind(name.replace("@", "\0"))
                systemd.settimeout(60)
                (self.folder / "alertscaler.yaml").write_text("rule_files: []\nstate: {path: other.db}\naction_log: {path: other.jsonl}\n")
                process = subprocess.Popen([PROGRAM, "serve", "--web.listen-address=127.0.0.1:0"], cwd=self.folder,
                                           env={**os.environ, "NOTIFY_SOCKET": name}, stderr=subprocess.DEVNULL)
                self.assertEqual(systemd.recv(100), b"READY=1")
                process.terminate()
                self.assertEqual(systemd.recv(100), b"STOPPING=1")
                self.assertEqual(process.wait(60), 0)

    def test_a_start_without_systemd_goes_on(self):
        for name in ("/does/not/exist", "nonsense"):
            done = run("serve", "--config.file=none.yaml", cwd=self.folder, env={**os.environ, "NOTIFY_SOCKET": name})
            self.assertIn('msg="systemd cannot be told"', done.stderr)

    def test_the_log_has_the_id_of_a_target_once(self):
        self.ask("fire", "alertname=CheckoutLatencyHigh", "--wait")

        def read():
            return self.ask("log", "--target=checkout", "--kind=decision,action").stdout.splitlines()

        wait_for(lambda: len(read()) > 1, "the action's record")     # a moment after it is done
        lines = read()
        self.assertEqual(["(node_group/" in line for line in lines], [True] + [False] * (len(lines) - 1))

    def test_the_command_that_ends_it_can_be_copied(self):
        done = self.ask("fire", "alertname=CheckoutLatencyHigh", "note=it's so; really", "--receiver=a b")
        line = done.stdout.splitlines()[-1]
        ended = subprocess.run(["sh", "-c", line.replace("To end it: alertscaler", PROGRAM)], cwd=self.folder,
                               env=self.environment, capture_output=True, text=True, check=True)
        self.assertIn(" resolved: queued, by rule checkout-is-slow", ended.stdout)
        stays = "checkout: stays at 6: the rule has no on_resolved (rule checkout-is-slow)"
        self.assertEqual(ended.stdout.splitlines()[-1], stays)
        self.assertIn(stays, self.ask("status").stdout.splitlines())
        self.assertEqual(json.loads(self.ask("status", "checkout", "-ojson").stdout)["open_incidents"], 0)

    def test_wait_prints_the_decisions_that_follow_with_their_reasons(self):
        done = self.ask("fire", "alertname=CheckoutLatencyHigh", "--wait")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.splitlines()[3:], [
            "checkout: decided 4 -> 6, by rule checkout-is-slow. Nothing stood against it.", "checkout: its size is 6"])
        done = self.ask("fire", "alertname=CheckoutLatencyHigh", "shard=2", "--wait")
        self.assertEqual(done.stdout.splitlines()[3], "checkout: stays at 6: cooldown, would be 9, by rule checkout-is-slow. "
                         "The target is locked after an earlier change of its size.")
        self.assertRegex(done.stdout.splitlines()[4], r"^checkout: its size is 6; locked against scaling up until "
                         r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z, for (1m|\d+s) more$")

    def test_the_start_is_counted_as_people_count(self):
        self.assertIn(": 2 rules, 1 target, 0 open incidents, 0 unfinished actions", self.ask("log", "--kind=start").stdout)

    def test_practice_on_a_port_in_use_says_so(self):
        done = subprocess.run([sys.executable, "practice.py"], cwd=self.folder, capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"^practice.py: 127.0.0.1:\d+: Address already in use; end what has this port, or give another one "
                         r"here \(ADDRESS\) and in rules/checkout.yaml\n$")

    def test_wait_as_json_is_a_document_a_line(self):
        done = self.ask("fire", "alertname=CheckoutLatencyHigh", "--wait", "--output=json")
        answer, decision, target = map(json.loads, done.stdout.splitlines())
        self.assertEqual((answer["alerts"][0]["outcome"], decision["reason"], target["replicas"]), ("queued", "scaled", 6))

    def test_wait_says_why_a_target_fails(self):
        self.processes[0].terminate()
        self.processes[0].wait()
        done = self.ask("fire", "alertname=CheckoutLatencyHigh", "--wait")
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertRegex(done.stdout.splitlines()[-1], "^checkout: failed: unreachable. The other side could not be reached, or failed. "
                         "Failed to connect to 127.0.0.1")
        self.assertRegex(self.ask("status").stdout, "(?m)^checkout: unreachable: Failed to connect to 127.0.0.1.* tr(y|ies) for [0-9]+s")
        told = self.ask("explain", "--target=checkout")
        self.assertEqual((told.returncode, told.stderr), (1, ""))
        self.assertRegex(told.stdout, "^checkout: no decision, as its size could not be read.\\nThe last observation: unreachable: Failed to "
                         "connect to 127.0.0.1.*\\nThe other side could not be reached, or failed.\\nSince: 20.*. The first retry: 20")

    def test_for_resolves_by_itself(self):
        begin = time.monotonic()
        done = self.ask("fire", "alertname=CheckoutLatencyHigh", "--for=2s", "--wait")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertGreater(time.monotonic() - begin, 2)
        lines = done.stdout.splitlines()
        self.assertIn("checkout: its size is 6", lines)
        self.assertRegex(lines[-1], "resolved: queued, by rule checkout-is-slow$")
        self.assertEqual(json.loads(self.ask("status", "checkout", "-ojson").stdout)["open_incidents"], 0)

    def test_for_resolves_at_an_interrupt_too(self):
        process = subprocess.Popen([PROGRAM, "fire", "alertname=CheckoutLatencyHigh", "--for=1h"], cwd=self.folder,
                                   env=self.environment, stdout=subprocess.PIPE, text=True)
        self.assertIn(" firing: queued", process.stdout.readline())
        process.send_signal(signal.SIGINT)
        self.assertIn(" resolved: queued", process.communicate(timeout=60)[0])
        self.assertEqual(process.returncode, 0)

    def test_what_leads_nowhere_says_so(self):
        done = self.ask("fire", "alertname=CheckoutSlow", "--wait")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.splitlines()[1:], [
            "No rule matches the alert.", "Which rules almost match: alertscaler explain NAME=VALUE..."])

    def test_a_token_that_may_not_read_cannot_wait(self):
        done = run("fire", "alertname=CheckoutLatencyHigh", "--wait", env={**self.environment, "ALERTSCALER_TOKEN_FILE": ""})
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("HTTP 401", done.stderr)
        self.assertIn("--token-file or $ALERTSCALER_TOKEN_FILE", done.stderr)
        self.assertEqual(self.sizes.read_text(), "")


class Patterns(unittest.TestCase):
    """What a shell passes on as it is where no file matches."""

    def test_it_is_said_that_no_file_matches(self):
        with tempfile.TemporaryDirectory() as folder:
            for words in (["test"], ["check"], ["log"], ["log", "verify"], ["replay"], ["explain", "--target=x"]):
                for pattern in ("tests/*.yaml", "[ab].yaml"):
                    done = run(*words, pattern, cwd=folder)
                    self.assertEqual((done.returncode, done.stdout), (2, ""), words)
                    self.assertIn("no file matches this pattern", done.stderr)


class FolderGiven(Folder):
    def test_where_files_are_expected(self):
        done = run("test", "tests/", cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("tests/: error: this is a folder: name the files in it, as tests/*.yaml\n", done.stderr)

    def test_a_folder_stands_for_its_rule_files(self):
        for name in ("rules", "rules/"):
            done = run("check", name, cwd=self.folder)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("1 rule file, 1 target, 2 rules: no error", done.stdout)


class Places(Folder):
    def test_a_missing_folder_is_said_before_anything_is_opened(self):
        configuration = self.folder / "alertscaler.yaml"
        text = configuration.read_text()
        for key, given in (("state", "path: state.db"), ("action_log", "path: actions.jsonl")):
            configuration.write_text(text.replace(given, given.replace("path: ", "path: none/")))
            done = run("serve", "--web.listen-address=127.0.0.1:0", cwd=self.folder)
            self.assertEqual(done.returncode, 1)
            (line,) = [line for line in done.stderr.splitlines() if "level=error" in line]
            self.assertIn("the folder none: No such file or directory; create it, or name another place in the configuration: "
                          f"{key}: {{path: ...}}", line)
            self.assertNotIn("listening", done.stderr)
            self.assertNotIn("leading", done.stderr)

    def not_writable(self):
        """(key, path in the configuration, place in the message): a folder of root's, then a file of root's."""
        for path in (self.folder, *self.folder.parents):   # also that of TMPDIR
            if path.stat().st_uid == os.getuid():
                path.chmod(path.stat().st_mode | 0o055)
        (self.folder / "token").chmod(0o644)
        for key, given in (("state", "state.db"), ("action_log", "actions.jsonl")):
            closed = self.folder / f"closed-{key}"
            closed.mkdir(mode=0o555)
            yield key, f"{closed.name}/{given}", f"the folder {closed.resolve()}"
            file = self.folder / f"{key}.closed"
            file.touch(mode=0o400)
            yield key, file.name, "this file"

    def with_place(self, key, path):
        """The configuration with state and log in a folder that everyone may write, but for one of them."""
        room = self.folder / "room"
        room.mkdir(exist_ok=True)
        room.chmod(0o777)
        places = {"state": "room/state.db", "action_log": "room/actions.jsonl", key: path}
        text = (self.folder / "alertscaler.yaml").read_text()
        file = self.folder / f"{key}-{pathlib.Path(path).parts[0]}.yaml"
        file.write_text(re.sub(r"(?m)^(state|action_log): .*", lambda m: f"{m[1]}: {{path: {places[m[1]]}}}", text))
        return file.name

    @unittest.skipIf(os.getuid() != 0, "only root can be another user too")
    def test_a_place_that_cannot_be_written_is_named_with_the_user_and_what_to_do(self):
        for key, path, place in self.not_writable():
            name = self.with_place(key, path)
            why = f"{path}: {place}: Permission denied for user 65534; give this user the right to write there, or name another place"
            with self.subTest(key=key, path=path, command="serve"):
                done = run("serve", "--web.listen-address=127.0.0.1:0", f"--config.file={name}", cwd=self.folder, user=65534)
                self.assertEqual(done.returncode, 1)
                self.assertIn(f'msg="cannot start" error="{why} in the configuration: {key}: {{path: ...}}"', done.stderr)
            with self.subTest(key=key, path=path, command="check"):
                done = run("check", name, cwd=self.folder, user=65534)
                self.assertEqual((done.returncode, done.stderr.count("warning: ")), (0, 1), done.stderr)
                line = (self.folder / name).read_text().splitlines().index(f"{key}: {{path: {path}}}") + 1
                self.assertTrue(done.stderr.startswith(f"{name}:{line}:{len(key) + 10}: warning: {why}; "
                                                       "alertscaler does not start here\n"), done.stderr)
                self.assertEqual(run("check", "--syntax-only", name, cwd=self.folder, user=65534).stderr, "")
        self.assertEqual(list((self.folder / "room").iterdir()), [], "nothing is made by a check, nor by a start that ends")

    @unittest.skipIf(os.getuid() != 0, "only root has privileges to give up")
    def test_root_is_told_too_that_it_has_no_right_in_the_sandbox(self):
        (self.folder / "other").mkdir(mode=0o755)
        os.chown(self.folder / "other", 65534, 65534)
        for key, path in (("state", "other/state.db"), ("action_log", "other/actions.jsonl")):
            done = run("serve", "--web.listen-address=127.0.0.1:0", f"--config.file={self.with_place(key, path)}", cwd=self.folder)
            self.assertIn(f"{path}: the folder {self.folder.resolve()}/other: Permission denied for user 0 (the sandbox gives up root's "
                          "privileges); give this user the right to write there, or name another place in the configuration: "
                          f"{key}: {{path: ...}}\"", done.stderr)

    def test_check_says_where_a_folder_is_missing_and_makes_none(self):
        name = self.with_place("state", "none/state.db")
        done = run("check", name, cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr.count("warning: ")), (0, 1))
        self.assertIn("none/state.db: the folder none: No such file or directory; create it, or name another place; "
                      "alertscaler does not start here\n", done.stderr)
        self.assertEqual(run("check", "--lint-fatal", name, cwd=self.folder).returncode, 3)
        self.assertEqual(run("check", "--lint-fatal", "--syntax-only", name, cwd=self.folder).returncode, 0)
        self.assertFalse((self.folder / "none").exists())

    def test_who_cannot_open_the_state_does_not_say_that_it_listens(self):
        (self.folder / "state.db").mkdir()
        done = run("serve", "--web.listen-address=127.0.0.1:0", cwd=self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn('msg="cannot start" error="state file state.db: Is a directory', done.stderr)
        self.assertNotRegex(done.stderr, "msg=(listening|leading)")


class DryRun(Daemon):
    """`status` says what would be."""
    flags = ["--dry-run"]

    def test_status_says_what_would_be(self):
        done = self.ask("fire", "alertname=CheckoutLatencyHigh", "--wait")
        self.assertIn("checkout: stays at 4: dry_run, would be 6, by rule checkout-is-slow. "
                      "It would have been done, but for dry_run.\n", done.stdout)
        self.assertRegex(self.ask("status").stdout, r"(?m)^checkout .*  dry_run would be 6 by checkout-is-slow, \d+s ago$")


for name in [name for name in vars(Daemon) if name.startswith("test_")]:
    setattr(DryRun, name, None)


class Explain(Folder):
    def explain(self, *arguments, status):
        done = run("explain", *arguments, cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (status, ""))
        return done.stdout

    def test_rules_that_match_with_target_receivers_and_credentials(self):
        self.assertEqual(self.explain("alertname=CheckoutIdle", "severity=page", status=0), """\
checkout-is-idle matches
    target: checkout (node_group/practice/http://127.0.0.1:9098/checkout)
    receivers: any
    credentials: alertmanager
1 other rule does not match.
""")

    def test_rules_that_almost_match_with_the_matcher_that_fails(self):
        self.assertEqual(self.explain("alertname=CheckoutIdel", status=1), """\
checkout-is-idle almost matches: alertname="CheckoutIdle" does not match: it is "CheckoutIdel"

No rule matches.
1 other rule does not match.
""")

    def test_an_always_rule_matches_no_alert(self):
        rules = [{"name": "follow", "always": True, "target": "web", "track": {"value": 1, "query": "load"}},
                 {"name": "slow", "match": ['alertname="Slow"'], "target": "web", "scale_up": {"by": 1}}]
        self.write({"targets": {"web": {"kubernetes": {"kind": "Deployment", "namespace": "shop", "name": "web"}, "max": 9}}, "rules": rules},
                   prometheus={"url": "http://127.0.0.1:9"})
        self.assertEqual(self.explain("alertname=Other", status=1),
                         "No rule matches.\n1 other rule does not match.\n1 `always` rule needs no alert.\n")
        told = json.loads(self.explain("alertname=Slow", "-o", "json", status=0))
        self.assertEqual(([rule["rule"] for rule in told["matching"]], told["almost"], told["others"], told["always"]), (["slow"], [], 0, 1))

    def test_upper_and_lower_case_are_told(self):
        rule = {"name": "slow", "match": ['alertname="CheckoutLatencyHigh"', 'severity=~"page|critical"'], "target": "web", "scale_up": {"by": 1}}
        self.write({"targets": {"web": {"kubernetes": {"kind": "Deployment", "namespace": "shop", "name": "web"}, "max": 9}}, "rules": [rule]})
        name, severity = ' alertname="CheckoutLatencyHigh" does not match: ', ' severity=~"page|critical" does not match: '
        why = "upper and lower case count"
        for labels, told in (
                (["alertname=CheckoutLatencyHigh", "severity=Page"], [f'{severity}it is "Page": {why}']),
                (["alertname=CheckoutLatencyHigh", "Severity=page"], [f'{severity}there is no such label, but "Severity": {why}']),
                (["alertname=checkoutlatencyhigh", "severity=PAGE"], [f'{name}it is "checkoutlatencyhigh": {why}', f'{severity}it is "PAGE": {why}']),
                (["severity=Page"], [f"{name}there is no such label", f'{severity}it is "Page": {why}']),
                (["alertname=checkoutlatencyhigh"], [f'{name}it is "checkoutlatencyhigh": {why}', f"{severity}there is no such label"])):
            self.assertEqual(self.explain(*labels, status=1), f"slow almost matches:{';'.join(told)}\n\nNo rule matches.\n", labels)
        self.assertEqual(self.explain("alertname=Other", "severity=info", status=1), "No rule matches.\n1 other rule does not match.\n")

    def write(self, rules, **settings):
        (self.folder / "rules/checkout.yaml").write_text(yaml.safe_dump(rules))
        (self.folder / "alertscaler.yaml").write_text(yaml.safe_dump({"rule_files": ["rules/*.yaml"], **settings}))

    def test_matchers_receivers_and_narrow_credentials(self):
        target = {"kubernetes": {"kind": "Deployment", "namespace": "{{ .Labels.namespace }}", "name": "web"},
                  "max": 9, "allow": {"namespaces": ["shop"]}}
        self.write({"targets": {"web": target}, "rules": [
            {"name": "slow", "match": ['alertname="Slow"', 'severity="page"'], "target": "web", "scale_up": {"by": 1},
             "receivers": ["scaling"]},
            {"name": "off", "match": ['alertname="Slow"'], "target": "web", "scale_up": {"by": 2}, "enabled": False},
            {"name": "other", "match": ['alertname="Other"', 'a="b"'], "target": "web", "scale_up": {"by": 1}}]},
            receiver={"tokens": [{"name": "all", "file": "token"}, {"name": "reader", "file": "token", "permissions": ["read"]},
                                 {"name": "shop", "file": "token", "targets": ["kubernetes/*/shop/*"]},
                                 {"name": "else", "file": "token", "rules": ["o*"]}]})
        self.assertEqual(self.explain("alertname=Slow", "severity=page", "namespace=shop", status=0), """\
slow matches
    target: web (kubernetes/default/apps/v1/Deployment/shop/web)
    receivers: scaling
    credentials: all, shop
off almost matches: it has enabled: false
1 other rule does not match.
""")
        told = self.explain("alertname=Slow", "severity=info", "namespace=shop", status=1)
        self.assertIn('slow almost matches: severity="page" does not match: it is "info"\n', told)
        self.assertIn('slow almost matches: severity="page" does not match: there is no such label\n',
                      self.explain("alertname=Slow", status=1))
        told = self.explain("alertname=Slow", "severity=page", "namespace=kube-system", status=0)
        self.assertIn("    target: web is not allowed: ", told)
        told = json.loads(self.explain("alertname=Slow", "severity=page", "-o", "json", status=0))
        self.assertEqual((told["matching"][0]["rule"], told["almost"][0]["rule"], told["others"]), ("slow", "off", 1))

    def test_without_credentials_none_is_asked_for(self):
        (self.folder / "alertscaler.yaml").write_text("rule_files: [rules/*.yaml]\nproviders: {practice: {type: http}}\n")
        self.assertIn("    credentials: none is asked for\n", self.explain("alertname=CheckoutIdle", status=0))

    def test_what_is_no_label(self):
        for words, why in ((["alertname=a", "b"], '"b" is not a label: expected NAME=VALUE'), (["a=1", "a=2"], "a label is given twice"),
                           (["a=1", "--replicas=checkout=2"], "--replicas needs --payload"), (["log.jsonl"], "--target=NAME is needed")):
            done = run("explain", *words, cwd=self.folder)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(why, done.stderr)


class DefaultConfiguration(Folder):
    """Without --config.file: alertscaler.yaml of this folder, else that of /etc/alertscaler."""

    def run_with_etc(self, *words, folder):
        """With an /etc/alertscaler of its own, in a mount namespace of its own."""
        script = 'mount -t tmpfs none /etc && cp -r "$1" /etc/alertscaler && cd "$2" && shift 2 && exec "$@"'
        return subprocess.run(["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", self.folder, folder, PROGRAM, *words],
                              capture_output=True, text=True, check=False, timeout=120)

    def setUp(self):
        super().setUp()
        tried = subprocess.run(["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/etc"],
                               capture_output=True, text=True, check=False)
        if tried.returncode != 0:
            self.skipTest(f"no mount namespace here: {tried.stderr.strip()}")

    def test_that_of_the_machine_and_it_is_said(self):
        for words, status in ((["check"], 0), (["explain", "alertname=CheckoutIdle"], 0), (["log"], 2)):
            done = self.run_with_etc(*words, folder=self.parent)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertTrue(done.stderr.startswith(f"alertscaler {words[0]}: there is no alertscaler.yaml here: "
                                                   "reading /etc/alertscaler/alertscaler.yaml\n"), done.stderr)

    def test_that_of_the_folder_comes_first(self):
        done = self.run_with_etc("check", folder=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_without_any(self):
        done = run("check", cwd=self.parent)
        if pathlib.Path("/etc/alertscaler/alertscaler.yaml").exists():
            self.skipTest("this machine has one")
        self.assertEqual(done.returncode, 2)
        self.assertIn("/etc/alertscaler/alertscaler.yaml: error: cannot read this: No such file or directory", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
