"""The daemon against Alertmanagers and an HTTP node group that the tests play: what it takes, refuses, remembers and survives."""
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

from harness import allowed
from harness.files import replace
from harness.http import request
from harness.node_group import Fault
from harness.notification import alert, notification, timestamp
from harness.wait import eventually, steadily

QUIET = 1.0         # how long nothing may happen where nothing shall


def make_rules(group, cooldown="1h", **busy):
    """Busy grows it by two, Idle shrinks it by one."""
    up, down = (cooldown, cooldown) if isinstance(cooldown, str) else cooldown
    return {
        "targets": {"workers": {"node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 10,
                                "cooldown": {"up": up, "down": down}}},
        "rules": [
            {"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 2}, **busy},
            {"name": "idle", "match": ['alertname="Idle"'], "target": "workers", "scale_down": {"by": 1}},
        ],
    }


PROVIDERS = {"providers": {"mine": {"type": "http"}}}


@pytest.fixture
def group(node_group):
    return node_group(size=4)


@pytest.fixture
def make(make_daemon):
    """make(rules, config={...}): a daemon with the provider `mine`."""
    return lambda rules, config=None, **more: make_daemon(rules, {**PROVIDERS, **(config or {})}, **more)


@pytest.fixture
def daemon(make, group):
    return make(make_rules(group))


def outcomes(answer):
    return [one["outcome"] for one in answer["alerts"]]


def busy(**more):
    return alert({"alertname": "Busy", **more.pop("labels", {})}, **more)


def verify(daemon):
    """The chain of the action log is whole."""
    done = subprocess.run([daemon.binary, "log", "verify", daemon.log_file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def raw(daemon, data, finish=False, timeout=20):
    """What it answers to bytes on a connection of their own, until it closes or the answer is whole."""
    with socket.create_connection(daemon.address.split(":"), timeout) as peer:
        peer.sendall(data)
        if finish:
            peer.shutdown(socket.SHUT_WR)
        return receive(peer)


def receive(peer):
    got = b""
    while True:
        piece = peer.recv(65536)
        got += piece
        head, separator, body = got.partition(b"\r\n\r\n")
        length = re.search(rb"\r\nContent-Length: (\d+)", head)
        if not piece or (separator and length and len(body) >= int(length[1])):
            return got.decode("utf-8", "replace")


def post_bytes(daemon, body):
    return request("POST", daemon.url + "/webhook", body if isinstance(body, bytes) else body.encode())


# One incident, one answer


def test_repeats_and_duplicates_scale_once(daemon, group):
    one = busy()
    assert outcomes(daemon.notify(notification(one))) == ["queued"]
    eventually(lambda: group.size == 6)
    for copy in (notification(one), {**notification(one), "externalURL": "http://peer:9093"},
                 {**notification(one), "groupKey": "{}/{a=\"b\"}:{}"},
                 notification({**one, "annotations": {"summary": "new"}}),
                 notification({**one, "startsAt": timestamp(-3600)})):      # merged with an older one
        assert outcomes(daemon.notify(copy)) == ["duplicate"]
    assert outcomes(daemon.notify(notification(one, one))) == ["duplicate", "duplicate"]
    steadily(lambda: group.applied == [6], QUIET)
    assert len(daemon.records("incident", event="opened")) == 1


def test_both_peers_at_the_same_moment_scale_once(daemon, group):
    body = notification(busy())
    with_threads = [threading.Thread(target=daemon.notify, args=(body,)) for _ in range(8)]
    for thread in with_threads:
        thread.start()
    for thread in with_threads:
        thread.join()
    eventually(lambda: group.size == 6)
    steadily(lambda: group.applied == [6], QUIET)
    # An answer comes a moment before its record.
    eventually(lambda: sorted(o for r in daemon.notifications() for o in outcomes(r)) == ["duplicate"] * 7 + ["queued"])


def test_an_old_firing_after_its_resolved_is_stale(make, group):
    daemon = make(make_rules(group, cooldown="0s", once=True))
    one = busy()
    daemon.notify(notification(one))
    eventually(lambda: group.size == 6)
    assert outcomes(daemon.notify(notification({**one, "status": "resolved", "endsAt": timestamp()}))) == ["queued"]
    assert outcomes(daemon.notify(notification(one))) == ["stale"]
    assert outcomes(daemon.notify(notification({**one, "status": "resolved", "endsAt": timestamp()}))) == ["duplicate"]
    steadily(lambda: group.applied == [6], QUIET)


def test_a_resolved_before_its_firing_keeps_the_firing_stale(daemon, group):
    one = busy()
    assert outcomes(daemon.notify(notification({**one, "status": "resolved", "endsAt": timestamp()}))) == ["duplicate"]
    assert outcomes(daemon.notify(notification(one))) == ["stale"]
    steadily(lambda: not group.puts, QUIET)


def test_a_later_start_is_a_new_incident(make, group):
    """The resolved between them was lost."""
    daemon = make(make_rules(group, cooldown="0s", once=True))
    daemon.notify(notification(busy(starts_at=timestamp(-60))))
    eventually(lambda: group.size == 6)
    assert outcomes(daemon.notify(notification(busy(starts_at=timestamp())))) == ["queued"]
    eventually(lambda: group.size == 8)
    assert len(daemon.records("incident", event="superseded")) == 1


def test_resolved_alone_never_scales_down(daemon, group):
    one = busy()
    daemon.notify(notification(one))
    eventually(lambda: group.size == 6)
    daemon.notify(notification({**one, "status": "resolved", "endsAt": timestamp()}))
    daemon.wait_record("incident", event="closed")
    steadily(lambda: group.applied == [6], QUIET)


def test_an_alert_without_a_rule_is_recorded(daemon, group):
    assert outcomes(daemon.notify(notification(alert({"alertname": "Other"}), busy()))) == ["no_rule", "queued"]
    record = daemon.wait_record("notification")     # it is durable before the answer, and in the log after it
    assert len(daemon.records("notification")) == 1
    assert [(a["labels"]["alertname"], a["outcome"]) for a in record["alerts"]] == [("Other", "no_rule"), ("Busy", "queued")]


def test_up_and_down_within_bounds_and_locks(make, group):
    daemon = make(make_rules(group, cooldown=("300ms", "300ms")))
    daemon.notify(notification(busy()))
    eventually(lambda: group.size == 10)
    daemon.wait_record("decision", target_name="workers")
    eventually(lambda: [r for r in daemon.records("decision") if r["output"]["reason"] == "at_max"])
    idle = notification(alert({"alertname": "Idle"}))
    daemon.notify(idle)
    eventually(lambda: [r for r in daemon.records("decision") if r["output"]["reason"] in ("at_max", "vetoed")])
    daemon.notify(notification(busy(status="resolved")))
    for size in range(9, 0, -1):
        eventually(lambda size=size: group.size == size)
        eventually(lambda size=size: len(daemon.records("action")) == 3 + 10 - size)
        daemon.notify(idle)  # each further step down needs a repeat
    eventually(lambda: [r for r in daemon.records("decision") if r["output"]["reason"] == "at_min"])
    assert group.applied == [6, 8, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]
    gaps = [b.time - a.time for a, b in zip(group.puts, group.puts[1:])]
    assert min(gaps) >= 0.3, gaps
    verify(daemon)


def said(daemon, event):
    """Fields of the last line of the log with this event; None where there is none."""
    lines = [line for line in daemon.process.log_text().splitlines() if f'msg="{event}' in line]
    return lines and dict(re.findall(r'(\w+)=("[^"]*"|\S+)', lines[-1])) or None


def test_the_end_of_a_dry_run_says_what_acts_now(make, group):
    rules = make_rules(group)
    rules["rules"].append({"name": "held", "match": ['alertname="Other"'], "target": "workers", "scale_up": {"by": 1}, "dry_run": True})
    daemon = make(rules, {"dry_run": True})
    daemon.notify(notification(busy()))
    daemon.notify(notification(alert({"alertname": "Other"})))
    eventually(lambda: daemon.records("decision"))
    daemon.restart()
    fields = said(daemon, "started with open incidents")
    assert [fields[name] for name in ("level", "open_incidents", "act_now", "came_in_dry_run")] == ["info", "2", "0", "0"]
    daemon.stop()
    daemon.write_config({**PROVIDERS, "dry_run": False})
    daemon.start()
    eventually(lambda: group.size == 6)
    fields = said(daemon, "started with open incidents")
    assert [fields[name] for name in ("level", "open_incidents", "act_now", "came_in_dry_run")] == ["warn", "2", "1", "1"]
    daemon.restart()
    assert said(daemon, "started with open incidents")["came_in_dry_run"] == "0"


def test_a_reload_that_ends_a_dry_run_says_so_too(make, group):
    daemon = make(make_rules(group), {"dry_run": True})
    daemon.notify(notification(busy()))
    daemon.write_config({**PROVIDERS, "dry_run": False})
    daemon.reload()
    eventually(lambda: group.size == 6)
    assert said(daemon, "ended the dry run with open incidents")["came_in_dry_run"] == "1"


def test_a_lost_state_is_a_warning_that_says_what_is_gone(daemon, group):
    daemon.notify(notification(busy()))
    eventually(lambda: group.size == 6)
    daemon.stop()
    for file in daemon.directory.glob("state.db*"):
        file.unlink()
    daemon.start()
    fields = said(daemon, "the state is new and the action log is not")
    assert fields["level"] == "warn" and "locks" in fields["msg"]
    verify(daemon)
    daemon.restart()
    assert len(re.findall("the state is new", daemon.process.log_text())) == 1


@pytest.mark.parametrize("path", ["/", "/webhooks", "/api/v1/alerts", "/api/v2/alerts"])
def test_a_notification_to_another_path_is_told_where_to_go(make, group, tmp_path, path):
    (tmp_path / "token").write_text("secret")
    daemon = make(make_rules(group), {"receiver": {"tokens": [
        {"name": "alertmanager", "file": str(tmp_path / "token"), "permissions": ["notify"]}]}})
    daemon.headers = {"Authorization": "Bearer secret"}
    for _ in range(5):
        answer = daemon.post(path, notification(busy()))
        assert (answer.status, answer.text) == (404, f"nothing is taken at {path}: notifications go to /webhook\n")
    assert said(daemon, "notification refused")["error"] == f'"nothing is taken at {path}: notifications go to /webhook"'
    assert daemon.process.log_text().count("notifications go to /webhook") == 1
    daemon.headers = {}
    assert daemon.post(path, notification(busy())).status == 401


def test_dry_run_changes_nothing(make, group):
    daemon = make(make_rules(group), flags=["--dry-run"])
    daemon.notify(notification(busy()))
    record = eventually(lambda: daemon.records("decision"))[0]
    assert (record["output"]["reason"], record["output"]["would"]) == ("dry_run", 6)
    steadily(lambda: not group.puts, QUIET)


# Restart


def test_a_restart_keeps_locks_and_incidents(daemon, group):
    one = busy()
    daemon.notify(notification(one))
    eventually(lambda: group.size == 6)
    daemon.wait_record("action", outcome="applied")
    before, incidents = daemon.target("workers"), daemon.get("/api/v1/incidents").json["data"]
    daemon.restart()
    after = eventually(lambda: (t := daemon.target("workers"))["replicas"] is not None and t, what="it is observed again")
    assert after["locked_until"] == before["locked_until"]
    assert daemon.get("/api/v1/incidents").json["data"] == incidents
    assert outcomes(daemon.notify(notification(one))) == ["duplicate"]
    assert outcomes(daemon.notify(notification(busy(labels={"zone": "b"})))) == ["queued"]
    eventually(lambda: [r for r in daemon.records("decision") if r["output"]["reason"] == "cooldown"])
    assert group.applied == [6]
    assert [r["kind"] for r in daemon.records() if r["kind"] in ("start", "stop")] == ["start", "stop", "start"]
    verify(daemon)


def test_another_spelling_of_the_address_has_the_same_lock(make, group):
    rules, spelled = make_rules(group), make_rules(group)
    spelled["targets"]["workers"]["node_group"]["url"] = group.url.replace("/groups", "/./groups") + "/"
    assert spelled != rules
    daemon = make(rules)
    daemon.notify(notification(busy()))
    eventually(lambda: group.size == 6)
    daemon.wait_record("action", outcome="applied")
    before = daemon.target("workers")["locked_until"]

    daemon.write_rules(spelled)
    daemon.reload()
    daemon.wait_record("reload")
    assert daemon.target("workers")["locked_until"] == before
    daemon.restart()
    assert daemon.target("workers")["locked_until"] == before
    assert daemon.target("workers")["id"].endswith("/")


def test_after_a_kill_an_open_incident_goes_on_when_its_lock_ends(make, group):
    daemon = make(make_rules(group, cooldown="5s", max_steps=2))
    daemon.notify(notification(busy()))
    eventually(lambda: group.size == 6)
    daemon.wait_record("action", outcome="applied")
    daemon.kill()
    daemon.start()
    eventually(lambda: group.size == 8)
    first, second = (put for put in group.puts if put.applied)
    assert second.time - first.time >= 5
    daemon.wait_record("action", outcome="applied", to=8)
    assert outcomes(daemon.notify(notification(busy(starts_at=timestamp(-100))))) == ["max_steps"]
    verify(daemon)


def test_a_kill_between_effect_and_answer_is_not_done_twice(make, group):
    daemon = make(make_rules(group))
    killed = threading.Event()
    group.inject(Fault(apply=True, meanwhile=lambda: killed.wait(60)))
    daemon.notify(notification(busy()))
    eventually(lambda: group.size == 6)
    daemon.kill()
    killed.set()
    daemon.start()
    record = daemon.wait_record("action", outcome="applied")
    assert (record["from"], record["to"], record["late"]) == (4, 6, True)
    steadily(lambda: group.applied == [6], QUIET)
    assert daemon.target("workers")["locked_until"]["up"] is not None


# The other side


def actions(daemon):
    return [(r["outcome"], r["http_status"]) for r in daemon.records("action")]


@pytest.mark.parametrize("fault, outcome", [
    (Fault(status=409), ("conflict", 409)),
    (Fault(status=412), ("conflict", 412)),
    (Fault(status=500), ("unreachable", 500)),
    (Fault(status=503), ("unreachable", 503)),
])
def test_a_failed_change_is_tried_again(daemon, group, fault, outcome):
    group.inject(fault)
    daemon.notify(notification(busy()))
    eventually(lambda: group.size == 6)
    eventually(lambda: len(actions(daemon)) == 2)
    assert actions(daemon) == [outcome, ("applied", 200)]
    steadily(lambda: group.applied == [6], QUIET)


def test_someone_else_changed_the_size_in_between(daemon, group):
    """Decided again on what is there: 412, then two more than the new size."""
    eventually(lambda: daemon.target("workers")["replicas"] == 4)
    group.inject(Fault("GET", meanwhile=lambda: setattr(group, "size", 5)))
    daemon.notify(notification(busy()))
    eventually(lambda: group.size == 7)
    eventually(lambda: actions(daemon) == [("conflict", 412), ("applied", 200)])
    assert [(put.body, put.status) for put in group.puts] == [
        ({"size": 6, "observed": 4}, 412), ({"size": 7, "observed": 5}, 200)]


def test_throttling_is_obeyed(daemon, group):
    group.inject(Fault(status=429, headers={"Retry-After": "3"}))
    daemon.notify(notification(busy()))
    eventually(lambda: group.size == 6)
    refused, done = group.puts
    assert done.time - refused.time >= 3
    eventually(lambda: actions(daemon) == [("throttled", 429), ("applied", 200)])


@pytest.mark.parametrize("fault, outcome", [
    (Fault(hang_up=True, apply=True), "unreachable"),
    (Fault(status=500, apply=True), "unreachable"),
    (Fault(delay=60, apply=True), "timeout"),
])
def test_a_change_whose_answer_is_lost_is_not_done_twice(make, group, fault, outcome):
    # Where the answer does not come at all; the others shall come however slow the machine is.
    daemon = make(make_rules(group), {"providers": {"mine": {"type": "http", "timeout": "5s" if fault.delay else "60s"}}})
    group.inject(fault)
    daemon.notify(notification(busy()))
    eventually(lambda: group.size == 6)
    done = daemon.wait_record("action", outcome="applied")
    assert (done["to"], done["late"]) == (6, True)
    assert [r["outcome"] for r in daemon.records("action")] == [outcome, "applied"]
    steadily(lambda: group.applied == [6], QUIET)


def test_a_target_that_cannot_be_reached_is_said_and_tried_again(make, node_group, started):
    group = node_group(size=4)
    daemon = make(make_rules(group))
    eventually(lambda: daemon.target("workers")["replicas"] == 4, what="the first look has ended")
    group.inject(Fault("GET", hang_up=True), times=1000)
    daemon.notify(notification(busy()))
    failed = daemon.wait_record("action", outcome="unreachable")
    assert (failed["decision"], failed["from"], failed["method"]) == (None, None, "GET") and failed["message"]
    assert daemon.target("workers")["failure"] == "unreachable"
    group.heal()
    eventually(lambda: group.size == 6, timeout=90)
    eventually(lambda: daemon.target("workers")["failure"] is None)


def test_a_wrong_token_is_said(make, node_group, tmp_path):
    group = node_group(size=4, token="sesame")
    (tmp_path / "token").write_text("wrong")
    daemon = make(make_rules(group), {"providers": {"mine": {"type": "http", "http_config": {
        "authorization": {"credentials_file": str(tmp_path / "token")}}}}})
    daemon.notify(notification(busy()))
    assert daemon.wait_record("action")["outcome"] == "forbidden"
    assert "wrong" not in daemon.log_file.read_text().replace("wrong_", "")


# Who may ask, and how


def test_tokens(make, group, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).write_text(f"secret-{name}\n")
    daemon = make(make_rules(group), {"receiver": {"tokens": [
        {"name": "first", "file": str(tmp_path / "one")}, {"name": "second", "file": str(tmp_path / "two")}]}})
    body = notification(busy())
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic c2VjcmV0"}, {"Authorization": "Bearer"}):
        daemon.headers = headers
        answer = daemon.post("/webhook", body)
        assert (answer.status, answer.headers["WWW-Authenticate"].split()[0]) == (401, "Bearer")
        assert "token" in answer.text and len(answer.text.splitlines()) == 1
    # Nothing but health is open: no version, no metric, no list of rules.
    daemon.headers = {}
    for path in ("/", "/metrics", "/api/v1/status", "/api/v1/targets", "/api/v1/rules", "/api/v1/nothing", "/nothing"):
        answer = daemon.get(path)
        assert answer.status == 401 and "WWW-Authenticate" in answer.headers, path
        assert "version" not in answer.text.lower() and "Server" not in answer.headers
    assert [daemon.get(path).text for path in ("/-/healthy", "/-/ready")] == ["healthy\n", "ready\n"]
    # Refused before the body is there.
    said = raw(daemon, b"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
    assert said.startswith("HTTP/1.1 401 ")
    daemon.headers = {"Authorization": "Bearer secret-two"}
    daemon.notify(body)
    record = daemon.wait_record("notification")
    assert record["credential"] == "second"
    replace(tmp_path / "two", "rotated-two\n")
    eventually(lambda: daemon.post("/webhook", body).status == 401, what="the old token has ended")
    daemon.headers = {"Authorization": "Bearer rotated-two"}
    daemon.notify(body)
    denied = daemon.records("denied")
    assert denied and denied[0]["status"] == 401 and denied[0]["handler"] == "webhook"
    text = daemon.log_file.read_text() + daemon.process.log_text()
    assert "secret-" not in text and "rotated-" not in text
    assert daemon.metrics().value("alertscaler_notifications_total", result="denied") >= 6


def test_a_credential_triggers_only_what_it_may(make, group, tmp_path):
    (tmp_path / "web").write_text("secret-web")
    (tmp_path / "all").write_text("secret-all")
    daemon = make(make_rules(group), {"receiver": {"tokens": [
        {"name": "web", "file": str(tmp_path / "web"), "rules": ["web-*"]}, {"name": "all", "file": str(tmp_path / "all")}]}})
    daemon.headers = {"Authorization": "Bearer secret-web"}
    assert outcomes(daemon.notify(notification(busy()))) == ["forbidden"]
    daemon.headers = {"Authorization": "Bearer secret-all"}
    assert outcomes(daemon.notify(notification(busy()))) == ["queued"]
    eventually(lambda: group.size == 6)
    daemon.headers = {"Authorization": "Bearer secret-web"}
    assert outcomes(daemon.notify(notification(busy(status="resolved")))) == ["forbidden"]
    daemon.headers = {"Authorization": "Bearer secret-all"}
    assert daemon.target("workers")["open_incidents"] == 1
    # As before after a restart.
    daemon.kill()
    daemon.start()
    daemon.headers = {"Authorization": "Bearer secret-web"}
    assert outcomes(daemon.notify(notification(busy()))) == ["forbidden"]
    assert group.applied == [6]


def test_other_methods_and_paths(daemon):
    answer = daemon.get("/webhook")
    assert (answer.status, answer.headers["Allow"]) == (405, "POST") and "POST" in answer.text
    assert daemon.post("/webhook/any/where", notification(busy())).status == 200
    assert daemon.post("/webhooks", notification(busy())).status == 404


def test_a_body_over_the_limit(make, group):
    daemon = make(make_rules(group), {"receiver": {"max_body": "64KiB"}})
    said = raw(daemon, b"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: 65537\r\n\r\n")
    assert said.startswith("HTTP/1.1 413 ") and "too large" in said
    head = b"POST /webhook HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    said = raw(daemon, head + b"8000\r\n" + b" " * 0x8000 + b"\r\n8000\r\n" + b" " * 0x8000 + b"\r\n1\r\n ")
    assert said.startswith("HTTP/1.1 413 ")
    one = busy(annotations={"text": "x" * 25000})
    assert outcomes(daemon.notify(notification(one))) == ["queued"]


def text_of(*alerts, **more):
    return json.dumps({**notification(*alerts), **more})


BAD_BODIES = [
    ("empty", b"", "not JSON"),
    ("cut", text_of(busy())[:-40].encode(), "not JSON"),
    ("trailing", text_of(busy()).encode() + b"x", "not JSON"),
    ("not an object", b"[1]", "expected a JSON object"),
    ("custom payload", b'{"text": "hello"}', "custom `payload`"),
    ("wrong type", text_of(alerts={}).encode(), "alerts: expected an array"),
    ("thousands of bad alerts", text_of(alerts=[1] * 1001).encode(), "more than 1000 alerts that cannot be read"),
    ("raw NUL", b'{"version": "4", \0 "alerts": []}', "not JSON"),
    ("invalid UTF-8", text_of(busy(labels={"a": "@"})).replace("@", "\udcff").encode("utf-8", "surrogateescape"), "byte 0xff"),
    ("lone surrogate", text_of(busy(labels={"a": "@"})).replace("@", "\\ud800").encode(), "not JSON"),
    ("duplicate keys", b'{"version": "4", "version": "4", "alerts": []}', "duplicate"),
    ("deep", b'{"version": "4", "alerts": ' + b"[" * 100000 + b"]" * 100000 + b"}", "depth"),
    ("deep and cut", b'{"a":' * 100000, "depth"),
    ("absurd number", text_of(busy(), truncatedAlerts=0).replace('s": 0', 's": 1e999').encode(), "not JSON"),
    ("huge integer", text_of(busy(), truncatedAlerts=0).replace('s": 0', 's": ' + "9" * 400).encode(), "not JSON"),
    ("negative", text_of(busy(), truncatedAlerts=-1).encode(), "truncatedAlerts"),
    ("many empty arrays", b"[" + b"[]," * 300000 + b"[]]", ""),
]


def test_bad_bodies_are_refused_with_what_is_wrong(daemon, group):
    for name, body, says in BAD_BODIES:
        answer = post_bytes(daemon, body)
        assert answer.status == 400, f"{name}: {answer.status} {answer.text}"
        assert says in answer.text, f"{name}: {answer.text}"
        assert len(answer.text.splitlines()) == 1 and len(answer.text) < 1000, f"{name}: {answer.text}"
        assert answer.text.isprintable() or answer.text.rstrip("\n").isprintable(), f"{name}: {answer.text!r}"
    assert daemon.metrics().value("alertscaler_notifications_total", result="invalid") == len(BAD_BODIES)
    assert not daemon.records("notification")
    assert outcomes(daemon.notify(notification(busy()))) == ["queued"]
    eventually(lambda: group.size == 6)


BAD_ALERTS = [
    ({"labels": {}, "startsAt": timestamp()}, "status: missing"),
    ({**busy(), "status": "pending"}, '"firing" or "resolved"'),
    ({**busy(), "labels": {"a": 1}}, "labels.a: expected a string, got a number"),
    ({**busy(), "startsAt": "yesterday"}, "a time like"),
    (busy(labels={"a": "\0"}), "labels.a: a NUL in it"),
    (busy(labels={"a\0": ""}), "a NUL in it"),
    (busy(annotations={"text": "x" * 65537}), "annotations.text: longer than 65536 bytes"),
    (None, "expected an object, got null"),
]


def test_trace_logs_events_states_and_effects_without_values_of_labels(make, group):
    daemon = make(make_rules(group), log_level="trace")
    daemon.notify(notification(busy(labels={"pod": "a-value-of-a-label"})))
    eventually(lambda: group.size == 6)
    daemon.wait_record("action", outcome="applied")
    text = daemon.process.log_text()
    for line in ("msg=event name=notification", "msg=state name=observing", "msg=effect name=scale", "msg=event name=scaled"):
        assert f"level=trace {line}" in text, line
    traced = [line for line in text.splitlines() if "level=trace" in line]
    assert not [line for line in traced if "a-value-of-a-label" in line]


def test_a_bad_alert_refuses_only_itself(daemon, group):
    """Alertmanager drops a notification that is answered 400, with the good alerts in it."""
    bad = [one for one, _ in BAD_ALERTS]
    assert outcomes(daemon.notify({**notification(busy()), "alerts": [*bad, busy()]})) == ["invalid"] * len(bad) + ["queued"]
    eventually(lambda: group.size == 6)
    record = daemon.wait_record("notification")
    for i, (_, says) in enumerate(BAD_ALERTS):
        told = record["alerts"][i]
        assert told["error"].startswith(f"alerts[{i}]") and says in told["error"] and set(told) == {"error", "outcome"}
    assert daemon.metrics().value("alertscaler_alerts_total", status="firing", outcome="invalid") == len(bad)
    assert re.findall(r'msg="alert refused" .*count=(\d+)', daemon.process.log_text()) == ["1"], "the others when the minute is over"
    verify(daemon)


@pytest.mark.parametrize("starts_at, ends_at", [
    ("0001-01-01T00:00:00Z", None), ("9999-12-31T23:59:59.999999999Z", None), ("2106-02-07T06:28:16+14:00", None),
    ("1969-12-31T23:59:59Z", None), (None, "9999-12-31T23:59:59Z"),
])
def test_odd_times_scale_once(daemon, group, starts_at, ends_at):
    one = busy(starts_at=starts_at, ends_at=ends_at)
    assert outcomes(daemon.notify(notification(one))) == ["queued"]
    eventually(lambda: group.size == 6)
    daemon.wait_record("action", outcome="applied")
    assert outcomes(daemon.notify(notification(one))) == ["duplicate"]
    daemon.restart()
    assert outcomes(daemon.notify(notification(one))) == ["duplicate"]
    assert outcomes(daemon.notify(notification({**one, "status": "resolved", "endsAt": timestamp()}))) == ["queued"]
    assert group.applied == [6]
    assert "nan" not in daemon.get("/metrics").text.lower()


def test_odd_but_right_bodies_are_taken(daemon):
    odd = busy(labels={"k8s.io/app": "wëb", "line": "a\nb\t\u2028", "x" * 1000: "y" * 60000})
    del odd["fingerprint"], odd["generatorURL"], odd["annotations"], odd["endsAt"]
    body = {"version": "9", "alerts": [odd], "status": "resolved", "orgId": 1, "receiver": "web\\.hook"}
    assert outcomes(daemon.notify(body)) == ["queued"]
    record = daemon.wait_record("notification")
    assert record["receiver"] == "web.hook" and record["alerts"][0]["labels"]["line"] == "a\nb\t\u2028"
    assert outcomes(daemon.notify({"version": "4", "alerts": []})) == []
    verify(daemon)


def test_what_anybody_sends_does_not_fill_the_log(daemon):
    """The first at once, the others when the minute is over or at the stop; and how many there were is known."""
    for _ in range(50):
        assert post_bytes(daemon, b"{").status == 400
    refused = lambda: [int(count) for count in re.findall(r'msg="notification refused" .*count=(\d+)', daemon.process.log_text())]
    assert refused() == [1]
    daemon.stop()
    assert refused() == [1, 49]


@pytest.mark.parametrize("data, status", [
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "400"),
    (b"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", "400"),
    (b"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "400"),
    (b"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", "400"),
    (b"POST /webhook HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "400"),
    (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: " + b"y" * 100000, "431"),
    (b"GET /" + b"a" * 100000, "4"),
    (b"GET / HTTP/1.1\r\nHost: x\r\nA\0B: c\r\n\r\n", "400"),
    (b"GET / HTTP/3.0\r\nHost: x\r\n\r\n", "505"),
])
def test_malformed_http_gets_an_answer(daemon, data, status):
    assert raw(daemon, data, finish=not data.endswith(b"\r\n\r\n")).startswith(f"HTTP/1.1 {status}")
    assert daemon.get("/-/ready").ok


@pytest.mark.seconds(900)
def test_a_hundred_thousand_alerts_in_one_notification(daemon, group):
    starts_at = timestamp()
    many = [{"status": "firing", "labels": {"alertname": "Busy", "n": str(n)}, "startsAt": starts_at} for n in range(100000)]
    body = json.dumps({"version": "4", "receiver": "r", "status": "firing", "alerts": many}).encode()
    answer = request("POST", daemon.url + "/webhook", body, timeout=400)
    assert answer.status == 200
    assert set(outcomes(answer.json)) == {"queued"} and len(answer.json["alerts"]) == 100000
    eventually(lambda: group.size == 6)
    assert daemon.metrics().value("alertscaler_incidents_open") == 100000
    again = request("POST", daemon.url + "/webhook", body, timeout=400)
    assert set(outcomes(again.json)) == {"duplicate"}
    assert group.applied == [6]
    daemon.stop()
    verify(daemon)


# Reload


def digest(daemon):
    return daemon.get("/api/v1/status").json["data"]["rules_digest"]


def test_reload_is_all_or_nothing(make, group):
    more = {"rules": [{"name": "other", "match": ['alertname="Other"'], "target": "workers", "scale_to": 5}]}
    daemon = make({"a.yaml": make_rules(group)})
    old = digest(daemon)
    started_at = daemon.metrics().value("alertscaler_config_last_reload_success_timestamp_seconds")

    daemon.write_rules({"a.yaml": {**make_rules(group), "rules": more["rules"]}, "b.yaml": "rules:\n  - nam: x\n"})
    daemon.reload()
    record = daemon.wait_record("reload")
    assert "b.yaml:2:" in record["error"] and record["old_rules_digest"] == old
    assert daemon.metrics().value("alertscaler_config_last_reload_successful") == 0
    assert daemon.metrics().value("alertscaler_config_last_reload_success_timestamp_seconds") == started_at
    assert "did you mean" in daemon.process.log_text() and "^" in daemon.process.log_text()
    assert "nothing reloaded" not in daemon.process.log_text(), "one failure is logged once"
    assert digest(daemon) == old
    assert outcomes(daemon.notify(notification(alert({"alertname": "Other"})))) == ["no_rule"]
    assert outcomes(daemon.notify(notification(busy()))) == ["queued"]
    eventually(lambda: group.size == 6)

    daemon.write_rules({"a.yaml": make_rules(group), "b.yaml": more})
    daemon.reload()
    record = eventually(lambda: daemon.records("reload")[1:])[0]
    assert (record["error"], record["old_rules_digest"]) == (None, old) and record["rules_digest"] != old
    assert daemon.metrics().value("alertscaler_config_last_reload_successful") == 1
    assert digest(daemon) == record["rules_digest"]
    assert outcomes(daemon.notify(notification(alert({"alertname": "Other"})))) == ["queued"]
    # The lock that the old rules' action started still holds.
    eventually(lambda: [r for r in daemon.records("decision") if r["rules_digest"] == record["rules_digest"]])
    assert group.applied == [6]


def test_reload_over_http(make, group, tmp_path):
    daemon = make(make_rules(group))
    answer = daemon.post("/-/reload", b"")
    assert answer.status == 403 and "--web.enable-admin-api" in answer.text
    daemon.stop()
    daemon = make(make_rules(group), flags=["--web.enable-admin-api"], name="without")
    answer = daemon.post("/-/reload", b"")
    assert answer.status == 403 and "a credential of its own" in answer.text
    daemon.stop()
    (tmp_path / "admin.token").write_text("secret-admin")
    (tmp_path / "am.token").write_text("secret-am")
    daemon = make(make_rules(group), {"receiver": {"tokens": [
        {"name": "am", "file": str(tmp_path / "am.token")},
        {"name": "operator", "file": str(tmp_path / "admin.token"), "permissions": ["admin", "read"]}]}},
        flags=["--web.enable-admin-api"], name="admin")
    assert daemon.get("/-/reload").status == 405
    assert daemon.post("/-/reload", b"").status == 401
    daemon.headers = {"Authorization": "Bearer secret-am"}
    answer = daemon.post("/-/reload", b"")
    assert answer.status == 403 and "`am` lacks the permission `admin`" in answer.text
    daemon.headers = {"Authorization": "Bearer secret-admin"}
    assert daemon.post("/webhook", notification(busy())).status == 403
    answer = daemon.post("/-/reload", b"")
    assert answer.status == 200 and answer.text.startswith("unchanged")
    daemon.config_file.write_text("rule_files: [rules/*.yaml]\nlimit: 1\n")
    answer = daemon.post("/-/reload", b"")
    assert answer.status == 500 and "alertscaler.yaml:2:1" in answer.text and "nothing is changed" in answer.text
    eventually(lambda: [r["error"] is None for r in daemon.records("reload")] == [False])
    assert [r["credential"] for r in daemon.records("reload")] == ["operator"]


def test_a_rule_that_is_gone_acts_no_more(make, group):
    daemon = make(make_rules(group, cooldown="2s"))
    daemon.notify(notification(busy()))
    eventually(lambda: group.size == 6)
    rules = make_rules(group)
    del rules["rules"][0]
    daemon.write_rules(rules)
    daemon.reload()
    daemon.wait_record("reload")
    # What was decided by the old rules is carried out.
    eventually(lambda: len(daemon.records("action")) == sum(r["output"]["reason"] == "scaled" for r in daemon.records("decision")))
    size = group.size
    steadily(lambda: group.size == size, 3)


# The end


def test_sigterm_ends_what_is_under_way(daemon, group):
    stopping = threading.Event()
    group.inject(Fault(apply=True, meanwhile=lambda: stopping.wait(60)))
    host, port = daemon.address.split(":")
    with socket.create_connection((host, port)) as idle, socket.create_connection((host, port)) as half:
        body = json.dumps(notification(alert({"alertname": "Other"}))).encode()
        half.sendall(b"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:20])
        daemon.notify(notification(busy()))
        eventually(lambda: group.puts or group.size == 6, what="the change is under way")
        daemon.process.signal(signal.SIGTERM)
        eventually(lambda: "stopping" in daemon.process.log_text())
        half.sendall(body[20:])
        said = receive(half)
        # It cannot be kept any more: Alertmanager sends it again.
        assert said.startswith("HTTP/1.1 503 ") and "Connection: close" in said and "stopping" in said
        idle.settimeout(10)
        assert idle.recv(1) == b""
        stopping.set()
    assert daemon.process.popen.wait(30) == 0
    assert [r["outcome"] for r in daemon.records("action")] == ["applied"]
    assert daemon.records()[-1]["kind"] == "stop"
    verify(daemon)
    with pytest.raises(OSError):
        daemon.get("/-/ready", timeout=1)


def test_further_sigterms_do_not_change_the_exit_status(daemon):
    while daemon.process.running:
        daemon.process.signal(signal.SIGTERM)
        time.sleep(0.001)
    assert daemon.process.popen.returncode == 0


def test_what_was_acknowledged_around_sigterm_is_in_the_log(daemon):
    acknowledged, stop = [], threading.Event()

    def send(number):
        count = 0
        while not stop.is_set():
            count += 1
            try:
                answer = daemon.post("/webhook", notification(alert({"alertname": "Other", "n": f"{number}-{count}"})))
            except OSError:
                return      # gone
            if answer.status == 200:
                acknowledged.append(answer.json["notification"])
            else:
                assert answer.status == 503, answer.text

    senders = [threading.Thread(target=send, args=(n,)) for n in range(4)]
    for sender in senders:
        sender.start()
    eventually(lambda: len(acknowledged) > 30)
    daemon.stop()
    stop.set()
    for sender in senders:
        sender.join()
    logged = {r["id"] for r in daemon.notifications()}
    assert set(acknowledged) <= logged
    verify(daemon)


def test_sigusr1_opens_the_log_again(daemon):
    daemon.notify(notification(alert({"alertname": "One"})))
    daemon.wait_record("notification")
    rotated = daemon.log_file.with_name("actions.jsonl.1")
    daemon.log_file.rename(rotated)
    daemon.process.signal(signal.SIGUSR1)
    eventually(daemon.log_file.exists)
    daemon.notify(notification(alert({"alertname": "Two"})))
    daemon.wait_record("notification")
    daemon.stop()
    first, second = [json.loads(line) for line in rotated.read_text().splitlines()], daemon.records()
    assert [r["seq"] for r in first + second] == list(range(1, len(first + second) + 1))
    assert second[0]["prev"] == first[-1]["hash"]
    done = subprocess.run([daemon.binary, "log", "verify", rotated, daemon.log_file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_log_rotates_at_its_size(make, group):
    daemon = make(make_rules(group), {"action_log": {"path": "actions.jsonl", "max_size": "64KiB", "keep": 3}})
    for n in range(60):
        daemon.notify(notification(*[alert({"alertname": "Other", "n": f"{n}-{i}", "text": "x" * 200}) for i in range(10)]))
    daemon.stop()
    files = sorted(daemon.directory.glob("actions.jsonl*"))
    assert [f.name for f in files] == ["actions.jsonl"] + [f"actions.jsonl.{n}" for n in (1, 2, 3)]
    done = subprocess.run([daemon.binary, "log", "verify", *reversed(files)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# What it cannot start with


def refuse(daemon, *words):
    """It ends with status 1 and says these words in its log."""
    daemon.process.start()
    assert eventually(lambda: not daemon.process.running, what="it ends")
    assert daemon.process.popen.returncode == 1, daemon.process.log_text()
    text = daemon.process.log_text()
    for word in words:
        assert word in text, text
    daemon.check_sanitizers()


def test_a_corrupt_state_file(make, group):
    daemon = make(make_rules(group))
    daemon.notify(notification(busy()))
    eventually(lambda: group.size == 6)
    daemon.stop()
    whole = daemon.state_file.read_bytes()
    daemon.state_file.write_bytes(whole[:5000] + os.urandom(len(whole) - 5000))
    refuse(daemon, "state.db", "damaged", "move it")
    daemon.state_file.write_bytes(b"no database at all " * 1000)
    refuse(daemon, "state.db", "not a state file of alertscaler")
    daemon.state_file.write_bytes(whole)
    daemon.start()
    assert group.applied == [6]


def test_a_state_file_of_a_newer_version(make, group):
    daemon = make(make_rules(group))
    daemon.stop()
    whole = bytearray(daemon.state_file.read_bytes())
    whole[60:64] = (99).to_bytes(4, "big")              # SQLite's user_version
    daemon.state_file.write_bytes(whole)
    refuse(daemon, "newer alertscaler", "schema 99", "move the file away")
    assert daemon.state_file.read_bytes() == whole


def test_a_second_one_on_the_same_state_file(daemon, make, group):
    second = make(make_rules(group), {"state": {"store": "sqlite", "path": str(daemon.state_file)}}, name="second", start=False)
    refuse(second, "another alertscaler")
    third = make(make_rules(group), {"action_log": {"path": str(daemon.log_file)}}, name="third", start=False)
    refuse(third, "in use by another alertscaler")
    assert daemon.get("/-/ready").ok


def test_an_address_in_use(daemon, make, group):
    second = make(make_rules(group), name="second", start=False)
    second.process.argv = [a.replace(second.address, daemon.address) for a in second.process.argv]
    refuse(second, f'--web.listen-address: listen on \\"{daemon.address}\\": Address already in use; another process has this port: '
           "stop it, or give another address with this option")


@pytest.mark.parametrize("content, says", [
    (b"", "the file is empty"), (b"\x7fELF\0\1\2\3" * 100, "rules.yaml:1:"), (b"rules: 1\n" * 10000, "given twice"),
    (None, "this is a folder: name the files in it"),
], ids=["empty", "binary", "ten thousand errors", "directory"])
def test_a_rule_file_that_is_none(make, group, content, says):
    daemon = make(make_rules(group), start=False)
    file = daemon.directory / "rules/rules.yaml"
    file.unlink()
    if content is None:
        file.mkdir()
    else:
        file.write_bytes(content)
    refuse(daemon, "cannot start", says)


# A disk with an end


@pytest.fixture
def disk(tmp_path):
    """A file system of 8 MiB."""
    allowed.need(allowed.mounts)
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "alertscaler-test", place], check=True)
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def on_disk(disk):
    return {"state": {"store": "sqlite", "path": str(disk / "state.db")}, "action_log": {"path": str(disk / "actions.jsonl")}}


def fill(disk):
    with open(disk / "filler", "ab", buffering=0) as filler:
        for size in (65536, 4096):
            try:
                while filler.write(b"x" * size) == size:
                    pass
            except OSError:
                pass


def test_a_full_disk(make, group, disk):
    daemon = make(make_rules(group), on_disk(disk))
    daemon.log_file = disk / "actions.jsonl"
    acknowledged = [daemon.notify(notification(alert({"alertname": "Other"})))["notification"]]
    fill(disk)
    for n in range(200):        # what has been allotted already may take some more
        answer = daemon.post("/webhook", notification(alert({"alertname": "Other", "n": str(n), "text": "x" * 4000})))
        if answer.status != 200:
            break
        acknowledged.append(answer.json["notification"])
    assert answer.status == 503 and answer.headers["Retry-After"] and "send it again" in answer.text
    gets = group.gets
    for _ in range(3):
        assert daemon.post("/webhook", notification(busy())).status == 503
    assert daemon.get("/-/ready").status == 503 and daemon.get("/-/healthy").ok
    steadily(lambda: not group.puts, QUIET)
    assert daemon.post("/-/reload", b"").status in (403, 500)

    (disk / "filler").unlink()
    eventually(lambda: daemon.get("/-/ready").ok, what="it has recovered")
    assert outcomes(daemon.notify(notification(busy()))) == ["queued"]
    eventually(lambda: group.size == 6)
    daemon.wait_record("action", outcome="applied")
    daemon.stop()
    assert group.applied == [6] and group.gets > gets
    counted = [r["id"] for r in daemon.notifications()]
    assert sorted(set(counted)) == sorted(counted) and set(acknowledged) <= set(counted)
    verify(daemon)


def test_a_full_disk_while_an_incident_is_open(make, group, disk):
    """What is due while nothing can be recorded is not done, and done once it can."""
    daemon = make(make_rules(group, cooldown="3s", max_steps=2), on_disk(disk))
    daemon.log_file = disk / "actions.jsonl"
    daemon.notify(notification(busy()))
    daemon.wait_record("action", outcome="applied", to=6)
    fill(disk)
    for n in range(200):
        if daemon.post("/webhook", notification(alert({"alertname": "Other", "text": "x" * 4000, "n": str(n)}))).status != 200:
            break
    was_due = time.monotonic() - group.puts[0].time >= 3    # then the second step may have been committed before
    assert daemon.get("/-/ready").status == 503
    if not was_due:
        steadily(lambda: group.size == 6, 4)
    (disk / "filler").unlink()
    eventually(lambda: group.size == 8)
    daemon.wait_record("action", outcome="applied", to=8)
    daemon.stop()
    assert group.applied == [6, 8]
    verify(daemon)


def test_a_read_only_disk(make, group, disk):
    daemon = make(make_rules(group), on_disk(disk))
    daemon.stop()
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    refuse(daemon, "state.db", "Read-only file system")
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    daemon.start()


def test_a_state_directory_that_is_not_there(make, group, tmp_path):
    daemon = make(make_rules(group), {"state": {"store": "sqlite", "path": str(tmp_path / "no/where/state.db")}}, start=False)
    refuse(daemon, "no/where/state.db", "No such file or directory")


@pytest.mark.parametrize("receiver, place", [
    ({"tokens": [{"name": "b", "file": "FOLDER/b"}, {"name": "a", "file": "FOLDER/no"}]}, "receiver.tokens[1].file: token file "),
    ({"hmac": [{"name": "a", "secret_file": "FOLDER/no"}]}, "receiver.hmac[0].secret_file: secret of receiver.hmac `a`: "),
])
def test_a_token_file_that_is_not_there(make, group, tmp_path, receiver, place):
    """The log says where the configuration names it."""
    (tmp_path / "b").write_text("secret")
    settings = json.loads(json.dumps(receiver).replace("FOLDER", str(tmp_path)))
    daemon = make(make_rules(group), {"receiver": settings}, start=False)
    refuse(daemon, f"{place}{tmp_path}/no: No such file or directory")
    path, line = re.search(r'error="(\S+):(\d+): receiver', daemon.process.log_text()).groups()
    with open(path, encoding="utf-8") as file:
        assert f"{tmp_path}/no" in file.read().splitlines()[int(line) - 1]
