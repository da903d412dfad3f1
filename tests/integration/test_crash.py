"""kill -9 at any moment, under load, at start and at a reload too, neither loses nor doubles anything.

Each alert leads to a target of its own, to which it may do one thing once: grow by one. Whoever sends it goes on until it is
acknowledged, as Alertmanager does, and repeats it afterwards. Whatever happens in between, in the end every target has grown by
exactly one, by one change, and the action log tells of each alert once.
"""
import collections
import os
import random
import subprocess
import threading
import time

import pytest
from harness.daemon import read_notifications
from harness.many_groups import ManyGroups
from harness.notification import alert, notification
from harness.wait import eventually

KILLS = int(os.environ.get("CRASH_KILLS", "40"))
SEED = int(os.environ.get("CRASH_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
SENDERS = 4
START_SIZE = 3


def make_rules(groups, others=0):
    """others: rules that nothing matches, so that a reload has something new."""
    return {
        "targets": {"group": {
            "node_group": {"provider": "peer", "url": groups.url + "/{{ .Labels.group }}"},
            "min": 1, "max": 10, "cooldown": {"up": "1h", "down": "1h"}, "allow": {"names": ["*"]},
        }},
        "rules": [{"name": "grow", "match": ['alertname="Grow"'], "target": "group", "once": True, "scale_up": {"by": 1}}]
                 + [{"name": f"other-{i}", "match": ['alertname="Never"'], "target": "group", "scale_up": {"by": 1}}
                    for i in range(others)],
    }


class Sender(threading.Thread):
    """Sends a new alert in each of its turns, until it is acknowledged; now and then an old one again."""

    def __init__(self, daemon, number, count, random_numbers):
        super().__init__(daemon=True)
        self.daemon_under_test = daemon
        self.alerts = [alert({"alertname": "Grow", "group": f"s{number}-{i}"}) for i in range(count)]
        self.random = random_numbers
        self.acknowledged = []      # ids of notifications
        self.turns = threading.Semaphore(0)
        self.stopping = False

    def send(self, *alerts):
        while not self.stopping:
            try:
                answer = self.daemon_under_test.post("/webhook", notification(*alerts), timeout=5)
            except OSError:
                time.sleep(0.01)    # dead, or killed while it answered
                continue
            if answer.status == 200:
                self.acknowledged.append(answer.json["notification"])
                return
            assert answer.status == 503, answer.text
            time.sleep(0.01)

    def run(self):
        for i, one in enumerate(self.alerts):
            self.turns.acquire()
            self.send(one)
            if self.random.random() < 0.3:
                self.send(self.random.choice(self.alerts[:i + 1]))


class Killer:
    """Kills at any moment of a start, at any moment of the work, or at any moment after a reload was asked for."""

    def __init__(self, daemon, groups, senders, random_numbers):
        self.daemon, self.groups, self.senders, self.random = daemon, groups, senders, random_numbers
        self.kills = collections.Counter()
        self.start_seconds = 0.3
        self.before = 0     # how many were acknowledged when it was last killed: the present one's work may be done by the time we look

    def acknowledged(self):
        return sum(len(sender.acknowledged) for sender in self.senders)

    def wait_for_work(self):
        began = time.monotonic()
        eventually(lambda: self.acknowledged() > self.before or not self.daemon.process.running, 60, 0.001, "it works again")
        self.start_seconds = min(max(time.monotonic() - began, 0.02), 0.5)

    def kill(self):
        moment = self.random.choice(("start", "work", "reload"))
        if moment == "start":
            time.sleep(self.random.uniform(0.0, 1.5 * self.start_seconds))
            moment += " before its first answer" if self.acknowledged() == self.before else " after its first answer"
        else:
            self.wait_for_work()
            if moment == "reload":
                self.daemon.write_rules(make_rules(self.groups, self.random.randrange(20)))
                eventually(lambda: self.daemon.get("/-/ready").ok, 60, 0.001, "it is ready for signals")
                self.daemon.reload()
            # A reload takes less than a start, on a slow machine too.
            time.sleep(self.random.uniform(0.0, 0.05 if moment == "work" else max(0.1, self.start_seconds)))
        assert self.daemon.process.running, f"it has ended by itself:\n{self.daemon.process.log_text()[-4000:]}"
        self.daemon.process.kill()
        self.before = self.acknowledged()
        self.kills[moment] += 1


@pytest.mark.seconds(120 + 3 * KILLS)
def test_kill_at_any_moment_loses_nothing_and_doubles_nothing(make_daemon, started, tmp_path):
    random_numbers = random.Random(SEED)
    print(f"CRASH_SEED={SEED} CRASH_KILLS={KILLS}")
    groups = started(ManyGroups(START_SIZE, delay=0.003))
    daemon = make_daemon(make_rules(groups), {
        "providers": {"peer": {"type": "http"}},
        "action_log": {"path": str(tmp_path / "alertscaler/actions.jsonl"), "max_size": "100GiB"}}, log_level="info")
    senders = [Sender(daemon, n, KILLS, random.Random(SEED + n)) for n in range(SENDERS)]
    killer = Killer(daemon, groups, senders, random_numbers)
    for sender in senders:
        sender.start()

    for _ in range(KILLS):
        for sender in senders:
            sender.turns.release()
        killer.kill()
        daemon.process.start()

    eventually(lambda: not any(sender.is_alive() for sender in senders), 300, what="all alerts are acknowledged")
    names = [one["labels"]["group"] for sender in senders for one in sender.alerts]
    eventually(lambda: all(name in groups.applied for name in names), 60, what="every target has grown")
    eventually(lambda: count_applied(daemon.records()).keys() >= set(names), 120, 0.5, "the log says so of every target")
    reloads = len(daemon.records("reload"))
    daemon.stop()

    print(f"{sum(killer.kills.values())} kills: {dict(killer.kills)}; {reloads} reloads recorded")
    assert sum(killer.kills.values()) == KILLS
    if KILLS >= 40:
        assert killer.kills["start before its first answer"] > 0 and killer.kills["work"] > 0 and reloads > 0
    check_log(daemon, senders, names)
    doubled = {name: sizes for name, sizes in groups.applied.items() if sizes != [START_SIZE + 1]}
    print(f"actions: {len(groups.applied)}, lost {len(set(names) - groups.applied.keys())}, doubled {len(doubled)}")
    assert not doubled and groups.applied.keys() == set(names), "each by one, once"


def count_applied(records):
    """Per target, as the log has it."""
    return collections.Counter(r["target"].rsplit("/", 1)[1] for r in records if r["kind"] == "action" and r["outcome"] == "applied")


def check_log(daemon, senders, names):
    verified = subprocess.run([daemon.binary, "log", "verify", daemon.log_file, f"--state={daemon.state_file}"], capture_output=True, text=True, check=False)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    records = daemon.records()
    assert [record["seq"] for record in records] == list(range(1, len(records) + 1))

    notifications = collections.Counter(r["id"] for r in read_notifications(records))
    acknowledged = [number for sender in senders for number in sender.acknowledged]
    lost = [number for number in acknowledged if number not in notifications]
    doubled = [number for number, count in notifications.items() if count > 1]
    print(f"notifications: {len(acknowledged)} acknowledged, lost {len(lost)}, doubled {len(doubled)}; "
          f"{len(records)} records in one chain")
    assert not lost and not doubled
    opened = collections.Counter(r["labels"]["group"] for r in records if r["kind"] == "incident" and r["event"] == "opened")
    assert opened == collections.Counter(names), "each alert has opened one incident"
    assert count_applied(records) == collections.Counter(names), "each target has one applied action"
    late = collections.Counter(r["outcome"] for r in records if r["kind"] == "action" and r["late"])
    print(f"{len(names)} alerts, each one incident and one applied action; actions that a kill left open: {dict(late)}")
