"""A server that is compromised, a log of another machine, a rule file of another person: no command prints their texts raw.

Every text of every answer has an escape sequence, a C1 control, a bidirectional control and an invalid line end.
"""
import json
import os
import pty
import re
import subprocess

import pytest

from harness.daemon import environment, find_binary
from harness.http import Server

EVIL = "\x1b]0;owned\x07\x9b2J\u202egnp.exe\u2066\x7f"
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
TIME = "2026-11-26T10:00:00Z"
TARGET = {
    "id": EVIL, "name": EVIL, "kind": EVIL, "unit": EVIL, "replicas": 3, "desired": 4, "min": 1, "max": 9, "open_incidents": 1,
    "failure": EVIL, "failure_text": EVIL, "dry_run": False, "bounds": {"min": 1, "max": 9, "schedules": [EVIL]},
    "paused": {"who": EVIL, "reason": EVIL, "since": TIME, "until": TIME, "direction": EVIL, "kill_switch": False},
    "locked_until": {"up": TIME, "down": EVIL}, "contended": {"until": TIME, "by": EVIL}, "waits_for": EVIL,
    "floor": {"replicas": 3, "who": EVIL, "reason": EVIL, "since": TIME, "until": TIME},
    "holds": [{"direction": EVIL, "by": EVIL, "name": EVIL, "until": EVIL}],
    "others": [{"kind": EVIL, "name": EVIL, "min": 1, "max": 2, "paused": True}],
    "ineffective": [{"rule": EVIL, "until": TIME, "since": TIME}],
    "last_decision": {"id": EVIL, "time": TIME, "reason": EVIL, "rule": EVIL, "would": 5},
}
ANSWERS = {
    "/api/v1/status": {"time": TIME, "leader": {"is_leader": False, "holder": EVIL}, "dry_run": True, "incident_expiry_seconds": 60,
                       "paused": TARGET["paused"], "version": EVIL, "instance": EVIL},
    "/api/v1/targets": [TARGET],
    "/api/v1/approvals": [{"id": EVIL, "answer": "waiting", "target": EVIL, "target_name": EVIL, "rule": EVIL, "from": 1, "to": 2,
                           "unit": EVIL, "until": TIME, "who": EVIL}],
    "/api/v1/incidents": [{"digest": EVIL, "fingerprint": EVIL, "labels": {EVIL: EVIL},
                           "targets": [{"target": EVIL, "rule": EVIL, "replicas": 1}]}],
    "/api/v1/decisions": [{"id": EVIL, "time": TIME, "target": EVIL, "target_name": EVIL, "rule": EVIL, "reason": EVIL,
                           "direction": EVIL, "replicas": 1, "desired": 2, "would": 3}],
}
ORDER = {"id": EVIL, "target": EVIL, "target_name": EVIL, "until": EVIL, "replicas": 3, "request": EVIL, "outcome": EVIL}
ALERT = {"fingerprint": EVIL, "status": EVIL, "outcome": "queued", "rules": [EVIL], "error": None, "digest": EVIL}


class EvilServer:
    """Answers each path of the API in its form, or with the error `refusal`."""

    def __init__(self):
        self.refusal = None
        self.alert = ALERT
        self.data = ...     # of each answer; else that of its path
        self._server = Server(self._handle)
        self.url = self._server.url

    def _handle(self, asked):
        path = asked.path.partition("?")[0]
        if self.refusal is not None:
            return 403, {}, self.refusal
        if path == "/webhook":
            return 200, {}, {"status": "success", "alerts": [self.alert]}
        data = ORDER if asked.method == "POST" else ANSWERS.get(path, TARGET)
        data = data if self.data is ... else self.data
        # raw, as no program of ours would write it
        return 200, {"Content-Type": "application/json"}, json.dumps(
            {"status": "success", "data": data, "warnings": [EVIL]}, ensure_ascii=False).encode()

    def stop(self):
        self._server.stop()


@pytest.fixture
def server(started):
    return started(EvilServer())


def run_command(*arguments, cwd=None):
    return subprocess.run([find_binary(), *map(str, arguments)], cwd=cwd, capture_output=True, timeout=60, check=False,
                          env=environment())


def assert_safe(done, *, shows=True):
    for name, output in (("stdout", done.stdout), ("stderr", done.stderr)):
        text = output.decode()      # an invalid byte would be a fault, too
        found = UNSAFE.search(text)
        assert not found, f"{done.args[1:]}: {name} has {found.group()!r} in {text[max(0, found.start() - 60):found.end() + 20]!r}"
    if shows:
        everything = (done.stdout + done.stderr).decode()
        assert "gnp.exe" in everything, f"{done.args[1:]}: the text is not shown at all: {everything}"


CLIENTS = {
    "status": ["status"], "status-of-one": ["status", "web"], "status-json": ["status", "-o", "json"],
    "fire": ["fire", "alertname=X"], "fire-json": ["fire", "alertname=X", "-o", "json"],
    "pause": ["pause", "web", "--reason=r"], "resume": ["resume", "web", "--reason=r"], "scale": ["scale", "web", "3", "--reason=r"],
    "unlock": ["unlock", "web", "--reason=r"], "floor": ["floor", "web", "3", "--for=1h", "--reason=r"],
    "approve": ["approve", "01JDCE00000000000000000000"], "deny": ["deny", "01JDCE00000000000000000000", "--reason=r"],
    "pause-json": ["pause", "web", "--reason=r", "-o", "json"], "reload": ["reload"],
}


@pytest.mark.parametrize("data", [EVIL, 5, 1.5, True, None, [], {}, [EVIL], [[TARGET]]], ids=repr)
def test_no_client_ends_by_a_signal(server, data):
    """The answer has a value of another type in place of each document."""
    server.data, server.alert = data, data
    for name, arguments in CLIENTS.items():
        done = run_command(*arguments, "--url", server.url)
        assert done.returncode >= 0, f"{name}: {done.returncode}, {done.stderr.decode()}"
        assert_safe(done, shows=False)


@pytest.mark.parametrize("name", CLIENTS)
def test_no_client_prints_an_answer_raw(server, name):
    assert_safe(run_command(*CLIENTS[name], "--url", server.url), shows=name not in ("reload", "approve", "deny"))


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("refusal", [{"status": "error", "errorType": "forbidden", "error": EVIL}, EVIL.encode() + b"\x9b\xff"],
                         ids=["json", "bytes"])
def test_no_client_prints_an_error_raw(server, name, refusal):
    server.refusal = refusal
    done = run_command(*CLIENTS[name], "--url", server.url)
    assert_safe(done)
    assert done.returncode != 0


def test_no_outcome_of_an_alert_is_raw(server):
    server.alert = {**ALERT, "outcome": EVIL, "error": EVIL}
    assert_safe(run_command("fire", "alertname=X", "--url", server.url))


def test_what_is_fired_and_awaited_is_not_raw(server):
    assert_safe(run_command("fire", "alertname=X", "--wait", "--url", server.url))


RECORD = {"v": 1, "seq": 1, "time": TIME, "instance": EVIL, "prev": "0" * 64, "hash": "0" * 64}
RECORDS = [
    {"kind": "command", "command": EVIL, "who": EVIL, "reason": EVIL, "target": EVIL, "outcome": EVIL, "message": EVIL},
    {"kind": "action", "target": EVIL, "target_name": EVIL, "rule": EVIL, "outcome": EVIL, "message": EVIL, "from": 1, "to": 2},
    {"kind": EVIL, EVIL: EVIL},
    {"kind": "decision", "target": EVIL, "target_name": EVIL, "id": EVIL, "input": {EVIL: EVIL}, "output": {"reason": EVIL, "rule": EVIL}},
    {"kind": "notify", "receiver": EVIL, "event": EVIL, "error": EVIL},
]
LOGS = {"log": ["log"], "verify": ["log", "verify"], "verify-json": ["log", "verify", "-o", "json"], "effects": ["effects"],
        "replay": ["replay"]}


@pytest.fixture
def log_file(tmp_path):
    path = tmp_path / "actions.jsonl"
    path.write_text("".join(json.dumps({**RECORD, **record, "seq": i + 1}, ensure_ascii=False) + "\n" for i, record in enumerate(RECORDS)))
    return path


@pytest.mark.parametrize("name", LOGS)
def test_no_log_of_another_is_printed_raw(log_file, name):
    assert_safe(run_command(*LOGS[name], log_file), shows=name == "log")


def test_lines_of_a_log_are_raw_for_programs_and_safe_on_a_terminal(log_file):
    """Their hashes are those of the bytes."""
    assert run_command("log", "-o", "json", log_file).stdout == log_file.read_bytes()
    main, other = pty.openpty()
    done = subprocess.Popen([find_binary(), "log", "-o", "json", str(log_file)], stdout=other, stderr=subprocess.DEVNULL, env=environment())
    os.close(other)
    shown = b""
    try:
        while chunk := os.read(main, 65536):
            shown += chunk
    except OSError:     # the end, on Linux
        pass
    os.close(main)
    assert done.wait(60) == 0
    text = shown.decode().replace("\r\n", "\n")
    assert not UNSAFE.search(text), text
    assert [json.loads(line) for line in text.splitlines()] == [json.loads(line) for line in log_file.read_text().split("\n") if line]


@pytest.mark.parametrize("output", ["text", "json"])
def test_no_rule_file_of_another_is_printed_raw(tmp_path, output):
    (tmp_path / "rules.yaml").write_text(f'targets:\n  web: {{nonsense: "\\e[2J\u202e", x{chr(0x2066)}gnp.exe: 1}}\n')
    assert_safe(run_command("check", tmp_path / "rules.yaml", f"--format={output}", cwd=tmp_path))


def test_no_message_of_prometheus_is_printed_raw(started, tmp_path):
    (tmp_path / "rules.yaml").write_text("targets: {web: {kubernetes: {kind: Deployment, namespace: a, name: web}, max: 9}}\n"
                                         "rules: [{name: busy, match: [alertname=Busy], target: web, scale_up: {by: 1}}]\n")
    server = started(EvilServer())
    server.refusal = {"status": "error", "errorType": "execution", "error": EVIL}
    assert_safe(run_command("backtest", "--prometheus", server.url, "--from", "2h", "--rules", tmp_path / "rules.yaml", cwd=tmp_path))
