"""kill -9 at any moment, under load, neither loses nor doubles anything.

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
from harness.many_groups import ManyGroups
from harness.notification import alert, notification
from harness.wait import eventually

KILLS = int(os.environ.get("CRASH_KILLS", "300"))
SEED = int(os.environ.get("CRASH_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
SENDERS = 4
START_SIZE = 3


def make_rules(groups):
    return {
        "targets": {"group": {
            "node_group": {"provider": "peer", "url": groups.url + "/{{ .Labels.group }}"},
            "min": 1, "max": 10, "cooldown": {"up": "1h", "down": "1h"}, "allow": {"names": ["*"]},
        }},
        "rules": [{"name": "grow", "match": ['alertname="Grow"'], "target": "group", "once": True, "scale_up": {"by": 1}}],
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


def kill(daemon, senders, random_numbers):
    """At any moment after its start, or at any moment of its work, half and half: neither shall depend on the machine's speed."""
    acknowledged = sum(len(sender.acknowledged) for sender in senders)
    if random_numbers.random() < 0.5:
        time.sleep(random_numbers.uniform(0.0, 0.3))
    else:
        eventually(lambda: sum(len(sender.acknowledged) for sender in senders) > acknowledged or not daemon.process.running,
                   60, 0.001, "it works again")
        time.sleep(random_numbers.uniform(0.0, 0.05))
    assert daemon.process.running, f"it has ended by itself:\n{daemon.process.log_text()[-4000:]}"
    daemon.process.kill()


@pytest.mark.seconds(900)
def test_kill_at_any_moment_loses_nothing_and_doubles_nothing(make_daemon, started):
    random_numbers = random.Random(SEED)
    print(f"CRASH_SEED={SEED} CRASH_KILLS={KILLS}")
    groups = started(ManyGroups(START_SIZE, delay=0.003))
    daemon = make_daemon(make_rules(groups), {"providers": {"peer": {"type": "http"}}}, log_level="info")
    senders = [Sender(daemon, n, KILLS, random.Random(SEED + n)) for n in range(SENDERS)]
    for sender in senders:
        sender.start()

    for _ in range(KILLS):
        for sender in senders:
            sender.turns.release()
        kill(daemon, senders, random_numbers)
        daemon.process.start()

    eventually(lambda: not any(sender.is_alive() for sender in senders), 300, what="all alerts are acknowledged")
    names = [one["labels"]["group"] for sender in senders for one in sender.alerts]
    eventually(lambda: all(name in groups.applied for name in names), 60, what="every target has grown")
    eventually(lambda: count_applied(daemon.records()).keys() >= set(names), 120, 0.5, "the log says so of every target")
    daemon.stop()

    assert groups.applied == {name: [START_SIZE + 1] for name in names}, "each by one, once"
    check_log(daemon, senders, names)


def count_applied(records):
    """Per target, as the log has it."""
    return collections.Counter(r["target"].rsplit("/", 1)[1] for r in records if r["kind"] == "action" and r["outcome"] == "applied")


def check_log(daemon, senders, names):
    verified = subprocess.run([daemon.binary, "log", "verify", daemon.log_file], capture_output=True, text=True, check=False)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    records = daemon.records()
    assert [record["seq"] for record in records] == list(range(1, len(records) + 1))

    notifications = collections.Counter(r["id"] for r in records if r["kind"] == "notification")
    for sender in senders:
        for number in sender.acknowledged:
            assert notifications[number] == 1, f"notification {number} was acknowledged, the log has it {notifications[number]} times"
    opened = collections.Counter(r["labels"]["group"] for r in records if r["kind"] == "incident" and r["event"] == "opened")
    assert opened == collections.Counter(names), "each alert has opened one incident"
    assert count_applied(records) == collections.Counter(names), "each target has one applied action"
    late = collections.Counter(r["outcome"] for r in records if r["kind"] == "action" and r["late"])
    print(f"{len(names)} alerts, {len(records)} records; actions that a kill left open: {dict(late)}")
