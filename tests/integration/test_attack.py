"""Attacks of every kind beside a real Alertmanager: its notifications are answered all the while, memory stays below the
ceiling that docs/receiver.md states, and afterwards nothing of it is left."""
import base64
import pathlib
import resource
import time

import pytest

from harness import allowed
from harness.attack import KINDS, LEAST, Attack
from harness.certificates import Authority
from harness.daemon import ROOT, dump_yaml
from harness.http import request
from harness.metrics import Metrics
from harness.notification import alert, notification
from harness.protection import BCRYPT, PASSWORD, USER
from harness.wait import eventually

MIB = 1 << 20
CONFIG = {"providers": {"mine": {"type": "http"}},
          "receiver": {"max_body": "4MiB", "max_bodies": "8MiB", "max_connections": 300, "max_incident_memory": "16MiB"}}
SECONDS = 2.5           # that each attack lasts
LATENCY = 10            # seconds within which a notification is answered

# What is answered to whom, besides 503: else an attack may have been another than its name says.
TLS_KINDS = ["handshakes", "half-handshakes", "silent", "flood", "garbage", "idle"]      # the last ones speak no TLS
ANSWERS = {
    "idle": {"200"}, "slow-heads": {"408"}, "slow-bodies": {"408"}, "slow-chunks": {"408"}, "large-heads": {"431"},
    "too-large-bodies": {"413"}, "compressed": {"415"}, "garbage": {"400"},
}


def ceiling(connections, max_body, max_bodies, each=64 * 1024):
    """As docs/receiver.md states it, over what the program takes by itself."""
    return connections * each + max_bodies + 16 * max_body + 64 * MIB + 16 * MIB     # max_incident_memory


@pytest.fixture
def daemon(make_daemon, node_group):
    def make(flags=(), **receiver):
        rules = {
            "targets": {"workers": {"node_group": {"provider": "mine", "url": node_group(size=4).url}, "min": 1, "max": 10}},
            "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 1}}],
        }
        config = {**CONFIG, "receiver": {**CONFIG["receiver"], **receiver}}
        # Freed memory must not wait for ASan's own checks, and its stacks of each allocation are not what is measured.
        env = {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:exitcode=99:quarantine_size_mb=1:malloc_context_size=2"}
        return make_daemon(rules, config, env=env, log_level="info", flags=flags, start=False)

    return make


class Sender:
    """A real Alertmanager, and how its notifications fare."""

    def __init__(self, alertmanager):
        self.alertmanager = alertmanager
        self.fired = 0

    def fire(self):
        self.alertmanager.fire(alertname="Attack", number=str(self.fired))
        self.fired += 1

    def metrics(self):
        return Metrics(request("GET", self.alertmanager.url + "/metrics").text)

    def wait_all_sent(self, seconds):
        eventually(lambda: self.metrics().sum("alertmanager_notifications_total", integration="webhook") >= self.fired,
                   seconds, what=f"{self.fired} notifications are sent")

    def check(self):
        metrics = self.metrics()
        assert metrics.sum("alertmanager_notifications_failed_total", integration="webhook") == 0
        name = "alertmanager_notification_latency_seconds"
        assert metrics.sum(f"{name}_count", integration="webhook") >= self.fired
        late = (metrics.sum(f"{name}_count", integration="webhook") -
                metrics.sum(f"{name}_bucket", integration="webhook", le=str(LATENCY)))
        assert late == 0, f"{late} notifications took more than {LATENCY} s"
        return metrics.sum(f"{name}_sum", integration="webhook") / self.fired


@pytest.fixture
def attack():
    running = []

    def make(*arguments):
        running.append(Attack(*arguments))
        return running[-1]

    yield make
    for one in running:
        one.stop()


def port_of(daemon):
    return int(daemon.address.rpartition(":")[2])


def connections(daemon):
    return daemon.metrics().value("alertscaler_http_connections")


def assert_once_a_minute(daemon, words, began):
    minutes = (time.monotonic() - began) / 60
    assert 1 <= daemon.process.log_text().count(words) <= 1 + minutes, "logged once a minute"


def endure(daemon, sender, under_way):
    """Notifications are sent and answered while it lasts; what came of it, and the most memory that was seen."""
    highest = 0
    while under_way.running:
        sender.fire()
        highest = max(highest, daemon.process.resident_bytes())
        time.sleep(0.2)
    came = under_way.wait()
    sender.wait_all_sent(LATENCY)
    print(f"{under_way.kind}: {came}, {highest / MIB:.0f} MiB")
    assert came["opened"] >= LEAST, came
    return came, highest


def check_all_gone(daemon, sender):
    sender.alertmanager.stop()      # it keeps as many as it needed at a time, for 5 minutes
    eventually(lambda: connections(daemon) <= 2, what="all connections but that of the question are gone")


@pytest.mark.seconds(400)
def test_notifications_are_answered_under_every_kind_of_attack(daemon, make_alertmanager, attack):
    began = time.monotonic()
    daemon = daemon().start()
    sender = Sender(make_alertmanager(webhook=daemon.url + "/webhook"))
    sender.fire()
    sender.wait_all_sent(20)
    own = highest = daemon.process.resident_bytes()
    for kind in KINDS:
        if kind in ("half-handshakes", "wrong-passwords"):      # tests of their own
            continue
        came, seen = endure(daemon, sender, attack(kind, port_of(daemon), SECONDS))
        highest = max(highest, seen)
        answers = set(came["answers"]) - {"503"}
        if kind in ANSWERS:
            assert answers <= ANSWERS[kind], came
        if KINDS[kind].is_answered:
            assert answers == ANSWERS[kind], came
    mean = sender.check()
    limit = ceiling(300, 4 * MIB, 8 * MIB)
    print(f"{sender.fired} notifications, {mean * 1000:.1f} ms on average; {own / MIB:.0f} MiB before, "
          f"at most {(highest - own) / MIB:.0f} MiB more, limit {limit / MIB:.0f} MiB")
    assert highest - own < limit
    check_all_gone(daemon, sender)
    dropped = daemon.metrics().sum("alertscaler_http_connections_dropped_total", reason="limit")
    assert dropped > 0
    assert_once_a_minute(daemon, "connections closed to make room", began)


@pytest.mark.seconds(400)
def test_notifications_are_answered_under_attacks_on_tls(daemon, make_alertmanager, attack, tmp_path):
    began = time.monotonic()
    authority = Authority(tmp_path / "certificates")
    certificate, key = authority.issue("server")
    web = tmp_path / "web.yml"
    web.write_text(dump_yaml({"tls_server_config": {"cert_file": str(certificate), "key_file": str(key)}}))
    daemon = daemon(flags=[f"--web.config.file={web}"])
    daemon.url, daemon.tls = daemon.url.replace("http://127.0.0.1", "https://localhost"), authority.context()
    daemon.start()
    sender = Sender(make_alertmanager(webhook=daemon.url + "/webhook",
                                      http_config={"tls_config": {"ca_file": str(authority.certificate)}}))
    sender.fire()
    sender.wait_all_sent(20)
    own = highest = daemon.process.resident_bytes()
    for kind in TLS_KINDS:
        came, seen = endure(daemon, sender, attack(kind, port_of(daemon), SECONDS))
        highest = max(highest, seen)
        assert (came["answers"].get("tls", 0) >= LEAST) == (kind == "handshakes"), came
    mean = sender.check()
    print(f"{sender.fired} notifications, {mean * 1000:.1f} ms on average; at most {(highest - own) / MIB:.0f} MiB more")
    assert highest - own < ceiling(300, 4 * MIB, 8 * MIB, each=128 * 1024)
    check_all_gone(daemon, sender)
    assert daemon.metrics().sum("alertscaler_http_connections_dropped_total", reason="handshake") > 100
    assert_once_a_minute(daemon, "TLS handshakes failed", began)


@pytest.mark.seconds(200)
def test_a_first_password_is_checked_among_many_wrong_ones(daemon, make_alertmanager, attack, tmp_path):
    """From 200 addresses some hundred guesses a second, and an Alertmanager that has shown its password to nobody yet."""
    web = tmp_path / "web.yml"
    web.write_text(dump_yaml({"basic_auth_users": {USER: BCRYPT}}))
    daemon = daemon(flags=[f"--web.config.file={web}"])
    daemon.headers = {"Authorization": "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()}
    daemon.start()
    sender = Sender(make_alertmanager(webhook=daemon.url + "/webhook",
                                      http_config={"basic_auth": {"username": USER, "password": PASSWORD}}))
    own = daemon.process.resident_bytes()
    under_way = attack("wrong-passwords", port_of(daemon), 15)
    time.sleep(2)
    sender.fire()
    sender.wait_all_sent(LATENCY)
    came, highest = endure(daemon, sender, under_way)
    assert {"401"} <= set(came["answers"]) <= {"401", "503"}, came
    assert came["answers"]["401"] >= 100, came
    assert highest - own < ceiling(300, 4 * MIB, 8 * MIB)
    sender.check()
    daemon.stop()
    denied = daemon.records("denied")
    assert 1 <= len(denied) <= 3, denied
    assert sum(record["count"] for record in denied) >= sum(came["answers"].values()), "each is counted, though few are told"


@pytest.mark.seconds(400)
def test_ten_thousand_idle_connections(daemon, make_alertmanager, attack):
    allowed.need(allowed.open_files(3500))
    count = min(10000, resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 500)
    daemon = daemon(max_connections=count + 100).start()
    sender = Sender(make_alertmanager(webhook=daemon.url + "/webhook"))
    sender.fire()
    sender.wait_all_sent(20)
    own = daemon.process.resident_bytes()
    under_way = attack("idle", port_of(daemon), 300, count)     # stopped below
    eventually(lambda: connections(daemon) >= count, 200, interval=0.5, what=f"{count} connections")
    for _ in range(10):
        sender.fire()
        time.sleep(0.1)
    sender.wait_all_sent(LATENCY)
    more = daemon.process.resident_bytes() - own
    print(f"{count} idle connections take {more / MIB:.0f} MiB, {more / count / 1024:.1f} KiB each")
    under_way.stop()
    assert more < ceiling(count, 4 * MIB, 8 * MIB)
    sender.check()
    check_all_gone(daemon, sender)


def test_one_who_may_little_cannot_take_the_memory_of_all(make_daemon, node_group, tmp_path):
    """Whoever holds a credential for one rule sends complete bodies of ever new alerts: memory stays below the ceiling, the others'
    new alerts are taken all the while, and room comes back when alerts end."""
    for name in ("narrow", "whole"):
        (tmp_path / name).write_text(f"the secret of {name}")
    tokens = [{"name": "narrow", "file": str(tmp_path / "narrow"), "rules": ["busy"]},
              {"name": "whole", "file": str(tmp_path / "whole"), "permissions": ["notify", "read"]}]
    rules = {
        "targets": {"workers": {"node_group": {"provider": "mine", "url": node_group(size=4).url}, "min": 1, "max": 10}},
        "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 1}},
                  {"name": "other", "match": ['alertname="Other"'], "target": "workers", "scale_up": {"by": 1}}],
    }
    daemon = make_daemon(rules, {**CONFIG, "receiver": {**CONFIG["receiver"], "tokens": tokens, "stale_window": "1s"}},
                         log_level="info",
                         env={"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:exitcode=99:quarantine_size_mb=1:malloc_context_size=2"})

    def send(who, alerts):
        daemon.headers = {"Authorization": f"Bearer the secret of {who}"}
        return daemon.post("/webhook", notification(*alerts), timeout=60)

    def many(body, **fields):
        return [alert({"alertname": "Busy", "number": f"{body}-{i}", "more": "x" * 200}, **fields) for i in range(5000)]

    own, began = daemon.process.resident_bytes(), time.monotonic()
    answers = []
    for body in range(12):
        answers.append(send("narrow", many(body)).status)
        assert send("whole", [alert({"alertname": "Other", "number": str(body)})]).status == 200, body
    taken = answers.count(200)
    assert 1 <= taken <= 3 and answers == [200] * taken + [503] * (12 - taken), answers
    highest = daemon.process.resident_bytes()
    print(f"{taken * 5000} alerts were taken, {(highest - own) / MIB:.0f} MiB more")
    assert highest - own < ceiling(300, 4 * MIB, 8 * MIB)
    refused = send("narrow", many(11))
    assert refused.status == 503 and "max_incident_memory" in refused.text
    assert_once_a_minute(daemon, "notification not taken", began)
    assert send("narrow", many(0)).status == 200, "what is remembered may be repeated"
    daemon.headers = {"Authorization": "Bearer the secret of whole"}
    used = daemon.metrics().sum("alertscaler_incident_memory_bytes")
    assert 8 * MIB <= used < 16 * MIB
    for body in range(taken):
        assert send("narrow", many(body, status="resolved")).status == 200, "and may end"
    assert send("whole", many(20)).status == 200, "there is room for those who may everything"
    eventually(lambda: send("narrow", many(21)).status == 200, interval=1, what="there is room again")


def test_the_documented_ceiling_is_the_one_tested():
    text = (pathlib.Path(ROOT) / "docs" / "receiver.md").read_text()
    assert "max_connections x 64 KiB (128 KiB with TLS) + max_bodies + max_body x 16 + 64 MiB + max_incident_memory" in text
    assert ceiling(1024, 0, 0) == (128 + 16) * MIB
