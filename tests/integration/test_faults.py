"""Any one call on a file, on a socket or for memory may fail: nothing acknowledged is lost, nothing is done twice.

One scenario, again and again, each time with another of its calls failing (faults.c): start, notifications, scaling over HTTP,
a reload, a repeat, a log that is opened anew, a stop, and a second life. A small allocation that fails ends the program, by
design; whatever ends it, it is started again, as a supervisor would.
"""
import collections
import concurrent.futures
import json
import math
import os
import re
import signal
import subprocess
import time

import pytest

from harness.daemon import SANITIZER_REPORT, dump_yaml, environment, find_binary
from harness.faults import Faults
from harness.http import request
from harness.many_groups import ManyGroups
from harness.notification import alert, notification
from harness.process import Process

RUNS = int(os.environ.get("FAULT_RUNS", "30"))      # of a class; 0: one for every call there is
WORKERS = int(os.environ.get("FAULT_WORKERS", "6"))
START_SIZE = 3
PATIENCE = 40.0     # s: until what has to happen has happened, failures and pauses after them included


class Scenario:
    """One run, with files of its own. `problems` is what went wrong."""

    def __init__(self, directory, groups, fault_class, number):
        directory.mkdir()
        self.directory, self.groups = directory, groups
        self.name = f"{fault_class}-{number}"
        self.binary = find_binary()
        self.faults = Faults(directory, self.binary)
        self.faults.choose(fault_class, number)
        self.fault_class = fault_class
        self.problems, self.acknowledged, self.ends = [], [], []
        self.process = None
        self.config_file = directory / "alertscaler.yaml"
        self.config_file.write_text(dump_yaml({
            "rule_files": ["rules.yaml"], "providers": {"peer": {"type": "http"}},
            "state": {"store": "sqlite", "path": str(directory / "state.db")},
            "action_log": {"path": str(directory / "actions.jsonl")}}))
        self.write_rules("first")

    def write_rules(self, *alerts):
        (self.directory / "rules.yaml").write_text(dump_yaml({
            "targets": {"group": {
                "node_group": {"provider": "peer", "url": f"{self.groups.url}/{self.name}-" + "{{ .Labels.group }}"},
                "max": 10, "cooldown": {"up": "1h", "down": "1h"}, "allow": {"names": ["*"]}}},
            "rules": [{"name": name, "match": [f'alertname="{name}"'], "target": "group", "once": True, "scale_up": {"by": 1}}
                      for name in alerts]}))

    # The daemon, and its supervisor

    def start(self):
        preload = [f"{name}={value}" for name, value in self.faults.environment().items()]
        env = environment(HOME=self.directory)
        env["ASAN_OPTIONS"] += ":verify_asan_link_order=0:allocator_may_return_null=1"
        if self.fault_class == "allocations":
            env["ASAN_OPTIONS"] += ":detect_leaks=0"    # aborted programs leave all there is
        if self.process is None:
            self.process = Process("alertscaler", [
                "env", *preload, self.binary, "serve", f"--config.file={self.config_file}", "--web.listen-address=127.0.0.1:0",
                "--log.level=info"], self.directory, env)
        self.began = len(self.process.log_text())
        self.process.start()

    def address(self):
        """Of the process that runs, once it listens; started again where it has ended."""
        if not self.process.running:
            self.note_end()
            if len(self.ends) > 6:
                raise AssertionError("it does not stay alive")
            self.start()
        found = re.search(r"msg=listening .*port=(\d+)", self.process.log_text(self.began))
        return f"http://127.0.0.1:{found[1]}" if found else None

    def note_end(self):
        """An end of its own accord: with an error that is told, or by abort where memory was refused."""
        status = self.process.popen.returncode
        said = self.process.log_text(self.began)
        self.ends.append(status)
        if status == -signal.SIGABRT and self.fault_class == "allocations":
            return
        if status != 1 or "level=error" not in said and "error" not in said.lower():
            self.problems.append(f"ended with status {status}, saying:\n{said[-2000:]}")

    def wait(self, probe, what):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                if probe():
                    return
            except (OSError, ValueError):
                pass        # the answer may be what was lost
            time.sleep(0.02)
        raise AssertionError(f"not within {PATIENCE:g} s: {what}")

    def send(self, name, group):
        """As Alertmanager: until it is acknowledged. True where a rule took it."""
        taken = []

        def sent():
            address = self.address()
            if not address:
                return False
            answer = request("POST", address + "/webhook", notification(alert({"alertname": name, "group": group})), timeout=5)
            if answer.status != 200:
                return False
            self.acknowledged.append(answer.json["notification"])
            taken.append(bool(answer.json["alerts"][0].get("rules")))
            return True

        self.wait(sent, f"{name} {group} is acknowledged")
        return taken[-1]

    def grown(self, *groups):
        names = [f"{self.name}-{group}" for group in groups]
        self.wait(lambda: self.address() and all(name in self.groups.applied for name in names), f"{groups} have grown")

    def signal(self, number):
        self.wait(lambda: self.address(), "it listens")
        self.process.signal(number)

    def stop(self):
        """SIGTERM to one that listens; what fails meanwhile is an end like any other."""
        self.signal(signal.SIGTERM)
        try:
            status = self.process.popen.wait(30)
        except subprocess.TimeoutExpired:
            self.problems.append("does not end")
            self.process.kill()
            return
        if status != 0:
            self.note_end()

    def play(self):
        self.start()
        self.send("first", "a")
        self.send("first", "b")
        self.grown("a", "b")
        self.write_rules("first", "second")
        self.signal(signal.SIGHUP)
        for turn in range(20):
            time.sleep(0.05)
            if self.send("second", f"c{turn}"):     # else the reload failed, or comes yet
                break
            self.signal(signal.SIGHUP)
        self.grown(f"c{turn}")
        self.send("first", "a")                     # a repeat
        self.signal(signal.SIGUSR1)
        self.send("first", "d")
        self.stop()
        self.start()
        self.send("second", "e")
        self.grown("d", "e")
        self.wait(lambda: self.address() and self.count_applied() >= 5, "the log says so")
        self.stop()
        self.expected = [f"{self.name}-{group}" for group in ("a", "b", f"c{turn}", "d", "e")]

    # What must hold

    def records(self):
        return [json.loads(line) for line in (self.directory / "actions.jsonl").read_bytes().split(b"\n")[:-1]]

    def count_applied(self):
        return sum(r["kind"] == "action" and r["outcome"] == "applied" for r in self.records())

    def check(self):
        verified = subprocess.run([self.binary, "log", "verify", self.directory / "actions.jsonl",
                                   f"--state={self.directory / 'state.db'}"], capture_output=True, text=True, env=environment())
        if verified.returncode:
            self.problems.append(f"log verify: {verified.stdout}{verified.stderr}")
        notifications = collections.Counter(r["id"] for r in self.records() if r["kind"] == "notification")
        self.problems += [f"{number} was acknowledged, the log has it {notifications[number]} times"
                          for number in self.acknowledged if notifications[number] != 1]
        applied = {name: sizes for name, sizes in dict(self.groups.applied).items() if name.startswith(self.name + "-")}
        if applied != {name: [START_SIZE + 1] for name in self.expected}:
            self.problems.append(f"each by one, once: {applied}")
        if self.count_applied() != len(self.expected):
            self.problems.append(f"{self.count_applied()} actions are applied by the log")

    def run(self):
        try:
            self.play()
            self.check()
        except AssertionError as error:
            self.problems.append(str(error))
        finally:
            self.process.kill()
            Process.everyone.remove(self.process)   # what it said is told here, if it matters
        said = self.process.log_text()
        report = SANITIZER_REPORT.search(said)
        if report:
            self.problems.append(said[report.start():][:3000])
        elif self.problems:
            self.problems.append(said[-3000:])
        self.failed = self.faults.failed
        self.counts = {name: self.faults.count(name) for name in ("allocations", "files", "network")}
        self.faults.close()
        return self


@pytest.fixture
def sweep(tmp_path, started):
    groups = started(ManyGroups(START_SIZE))

    def run(fault_class):
        def one(number):
            return Scenario(tmp_path / f"{fault_class}-{number}", groups, fault_class, number).run()

        whole = one(0)
        assert not whole.problems, whole.problems
        total = whole.counts[fault_class]
        every = max(1, math.ceil(total / RUNS)) if RUNS else 1
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            done = list(pool.map(one, range(1, total + 1, every)))
        failed = collections.Counter(run.failed for run in done if run.failed)
        ends = collections.Counter(status for run in done for status in run.ends)
        print(f"{fault_class}: {total} calls in the scenario, {len(done)} runs, one call failed in {sum(failed.values())} of them: "
              f"{dict(failed.most_common())}; ends of the program: {dict(ends)}")
        assert sum(failed.values()) >= 0.8 * len(done), "calls that were never reached"
        bad = [run for run in done if run.problems]
        assert not bad, "\n\n".join([f"{len(bad)} of {len(done)} runs:"] + [
            f"call {run.name} ({run.failed}): " + "\n".join(run.problems) for run in bad[:5]])

    return run


@pytest.mark.seconds(60 + 20 * RUNS if RUNS else 36000)
@pytest.mark.parametrize("fault_class", ["files", "network", "allocations"])
def test_any_one_call_may_fail(sweep, fault_class):
    sweep(fault_class)
