"""Any one call on a file, on a socket or for memory may fail: nothing acknowledged is lost, nothing is done twice.

One scenario, again and again, each time with another of its calls failing (faults.c): start, notifications, scaling over HTTP,
a reload, a repeat, a log that is opened anew, a stop, and a second life. A small allocation that fails ends the program, by
design; whatever ends it, it is started again, as a supervisor would.

Of allocations there are many, most of them in a start, and a failure often ends it there and then. So one fails in each life of
the program: one that ends early costs no scenario, and a scenario goes on with the next number in the next life.
"""
import collections
import concurrent.futures
import json
import math
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import threading
import time

import pytest

from harness.daemon import SANITIZER_REPORT, dump_yaml, environment, find_binary, read_notifications
from harness.faults import Faults
from harness.http import request
from harness.many_groups import ManyGroups
from harness.notification import alert, notification
from harness.process import Process

RUNS = int(os.environ.get("FAULT_RUNS", "30"))      # calls of a class that fail; 0: every one there is
WORKERS = int(os.environ.get("FAULT_WORKERS", "6"))
ENDS = 8            # of one scenario by failed allocations; then it may go through
TRIES = 3           # of a number that its life did not come to
START_SIZE = 3
POINTER_BYTES = struct.calcsize("P")
SANITIZER_WITHOUT_MEMORY = "AddressSanitizer: CHECK failed: sanitizer_linux"    # its own thread's start was refused some
PATIENCE = 40.0     # s: until what has to happen has happened, failures and pauses after them included


class Lives:
    """Which allocation fails in which life: the numbers that wait, in no order. A `first` life begins with nothing, a `later` one with
    what is acknowledged. Half are spread evenly over the starts, half over what comes after them, which are fewer."""

    def __init__(self, counts, starts, runs):
        early = [(kind, number) for kind in counts for number in range(1, starts[kind] + 1)]
        late = [(kind, number) for kind, count in counts.items() for number in range(starts[kind] + 1, count + 1)]
        few = min(len(late), runs // 2) if runs else len(late)
        chosen = self.spread(late, few) + self.spread(early, runs - few if runs else len(early))
        random.Random(1).shuffle(chosen)
        self.total, self.chosen = len(early) + len(late), len(chosen)
        self.waiting = {kind: collections.deque(n for k, n in chosen if k == kind) for kind in counts}
        self.tries, self.failed, self.never = collections.Counter(), collections.Counter(), []
        self._lock = threading.Lock()

    @staticmethod
    def spread(numbers, share):
        return numbers[::max(1, math.ceil(len(numbers) / share))]

    def take(self, kind):
        """0: none waits."""
        with self._lock:
            return self.waiting[kind].popleft() if self.waiting[kind] else 0

    def tell(self, kind, number, name):
        """What came of it; name: of the call that failed, or ""."""
        with self._lock:
            self.tries[kind, number] += 1
            if name:
                self.failed[name] += 1
            elif self.tries[kind, number] < TRIES:
                self.waiting[kind].append(number)
            else:
                self.never.append((kind, number))

    def are_waiting(self):
        return any(self.waiting.values())

    def are_mostly_later(self):
        return len(self.waiting["later"]) > len(self.waiting["first"])


class Scenario:
    """One run, with files of its own. `problems` is what went wrong. With `lives` an allocation fails in each life, else the
    number-th call of all."""

    def __init__(self, directory, groups, fault_class, number, lives=None):
        directory.mkdir()
        self.lives, self.life, self.lived = lives, None, []
        self.starts = {}        # kind of life: how many allocations until the first acknowledgement
        self.directory, self.groups = directory, groups
        self.name = f"{fault_class}-{number}"
        self.binary = find_binary()
        self.faults = Faults(directory, self.binary)
        self.faults.choose(fault_class, 0 if lives else number)
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
        if self.fault_class == "allocations":
            self.begin_life()
        self.process.start()

    def begin_life(self):
        self.end_life()
        kind = "later" if self.acknowledged else "first"
        number = self.lives.take(kind) if self.lives and len(self.ends) < ENDS else 0
        self.faults.choose("allocations", number)
        self.life = kind, number

    def end_life(self):
        """The process has ended."""
        if not self.life:
            return
        kind, number = self.life
        self.lived.append((kind, number, self.faults.failed, self.faults.count("allocations")))
        if number:
            self.lives.tell(kind, number, self.faults.failed)
        self.life = None

    def address(self):
        """Of the process that runs, once it listens; started again where it has ended."""
        if not self.process.running:
            self.note_end()
            if len(self.ends) > ENDS + 3:
                raise AssertionError("it does not stay alive")
            self.start()
        found = re.search(r"msg=listening .*port=(\d+)", self.process.log_text(self.began))
        return f"http://127.0.0.1:{found[1]}" if found else None

    def note_end(self):
        """An end of its own accord: with an error that is told, or by abort where memory was refused."""
        status = self.process.popen.returncode
        said = self.process.log_text(self.began)
        self.ends.append(status)
        if self.fault_class == "allocations" and (status == -signal.SIGABRT or SANITIZER_WITHOUT_MEMORY in said):
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
            if self.life:
                self.starts.setdefault(self.life[0], self.faults.count("allocations"))
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
        for turn in range(60):                    # a reload that failed is tried again after a second
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
        expected = ["a", "b", f"c{turn}", "d", "e"]
        while self.lives and self.lives.are_mostly_later() and len(self.ends) < ENDS and len(expected) < 12:
            self.stop()
            self.start()
            expected.append(f"f{len(expected)}")
            self.send("second", expected[-1])
            self.grown(expected[-1])
        self.wait(lambda: self.address() and self.count_applied() >= len(expected), "the log says so")
        self.stop()
        self.expected = [f"{self.name}-{group}" for group in expected]

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
        notifications = collections.Counter(r["id"] for r in read_notifications(self.records()))
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
            self.end_life()
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
        if self.problems:
            (self.directory / "problems").write_text("\n".join([self.tell_fault(), *self.problems]))
        else:
            shutil.rmtree(self.directory)
        return self

    def tell_fault(self):
        return ", ".join(f"{kind} life: allocation {number} of {count} ({name or 'not failed'})"
                         for kind, number, name, count in self.lived if number) or f"call {self.name} ({self.failed})"


def check(done):
    bad = [run for run in done if run.problems]
    assert not bad, "\n\n".join([f"{len(bad)} of {len(done)} runs:"] + [
        f"{run.tell_fault()}: " + "\n".join(run.problems) for run in bad[:5]])


def count_ends(done):
    return dict(collections.Counter(status for run in done for status in run.ends))


@pytest.fixture
def groups(started):
    return started(ManyGroups(START_SIZE))


@pytest.mark.seconds(60 + 20 * RUNS if RUNS else 36000)
@pytest.mark.parametrize("fault_class", ["files", "network"])
def test_any_one_call_may_fail(fault_class, groups, tmp_path):
    def one(number):
        return Scenario(tmp_path / f"{fault_class}-{number}", groups, fault_class, number).run()

    whole = one(0)
    assert not whole.problems, whole.problems
    total = whole.counts[fault_class]
    every = max(1, math.ceil(total / RUNS)) if RUNS else 1
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        done = list(pool.map(one, range(1, total + 1, every)))
    failed = collections.Counter(run.failed for run in done if run.failed)
    print(f"{fault_class}: {total} calls in the scenario, {len(done)} runs, one call failed in {sum(failed.values())} of them: "
          f"{dict(failed.most_common())}; ends of the program: {count_ends(done)}")
    check(done)
    assert sum(failed.values()) >= 0.8 * len(done), "calls that were never reached"


def test_a_connection_without_memory_ends_the_program_in_order(groups, tmp_path):
    """Each of the allocations of one connection, its request and its answer: at most an abort, never a crash."""
    scenario = Scenario(tmp_path / "connection", groups, "allocations", 0)
    ends, seen, failed = [], [], 0

    def connect(number):
        scenario.wait(scenario.address, "it listens")
        scenario.send("none", "of ours")    # it is at work, not at its start
        scenario.faults.choose("allocations", number)
        try:
            request("GET", scenario.address() + "/-/healthy", timeout=5)
        except OSError:
            pass

    scenario.start()
    for _ in range(5):          # how many there are depends on the pieces in which a request comes
        connect(0)
        time.sleep(0.5)         # those of its end come after its answer
        seen.append(scenario.faults.count("allocations"))
    for number in range(1, max(seen) + 1):
        connect(number)
        last = time.monotonic() + 2     # the connection may end a moment after its answer
        while not scenario.faults.failed and time.monotonic() < last:
            time.sleep(0.01)
        failed += bool(scenario.faults.failed)
        ends += scenario.ends
        scenario.ends.clear()
    scenario.stop()
    print(f"a connection: {max(seen)} allocations; ends of the program: {dict(collections.Counter(ends))}")
    assert not scenario.problems, scenario.problems
    assert ends and 6 <= failed >= 0.8 * min(seen), f"{failed} have failed"


def test_a_body_whose_names_find_no_memory_is_asked_for_again(groups, tmp_path):
    """To find doubles, the reader sorts an object's names: it needs a pointer for each of them."""
    scenario = Scenario(tmp_path / "names", groups, "allocations", 0)
    names = 1717
    body = notification(alert({"alertname": "none"})) | {"unknown": {str(number): 0 for number in range(names, 0, -1)}}
    scenario.start()
    scenario.wait(scenario.address, "it listens")
    scenario.send("none", "of ours")
    address = scenario.address()
    scenario.faults.choose("allocations", 0, size=names * POINTER_BYTES)
    answer = request("POST", address + "/webhook", body)
    assert answer.status == 503 and answer.headers["Retry-After"] and "(out of memory): send it again" in answer.text, answer.text
    scenario.faults.choose("allocations", 0)
    assert request("POST", address + "/webhook", body).status == 200
    scenario.stop()
    assert not scenario.problems and not scenario.ends, (scenario.problems, scenario.ends)


@pytest.mark.seconds(60 + 20 * RUNS if RUNS else 36000)
def test_any_allocation_may_fail(groups, tmp_path):
    whole = Scenario(tmp_path / "whole", groups, "allocations", 0).run()
    assert not whole.problems, whole.problems
    lives = Lives({kind: count for kind, _, _, count in whole.lived}, whole.starts, RUNS)

    def work(worker):
        done = []
        while lives.are_waiting() and sum(bool(run.problems) for run in done) < 3:
            done.append(Scenario(tmp_path / f"{worker}-{len(done)}", groups, "allocations", f"{worker}-{len(done)}", lives).run())
        return done

    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        done = sum(pool.map(work, range(WORKERS)), [])
    print(f"allocations: {lives.total} in the scenario, {lives.chosen} of them chosen; {sum(lives.failed.values())} failed, one in a life "
          f"of the program, in {len(done)} runs: {dict(lives.failed.most_common())}; {len(lives.never)} never came; "
          f"ends of the program: {count_ends(done)}")
    check(done)
    assert sum(lives.failed.values()) >= 0.9 * lives.chosen, "allocations that were never reached"
