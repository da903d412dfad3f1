"""Today's program starts with the rows of every kind of state that commit 1c874e40 wrote, and keeps each of their members.

No target can be read meanwhile, and nothing is due: so the rows stay as they are, or are written again as they were.
"""
import contextlib
import json
import re
import sqlite3
import time

import pytest

from harness import upgrade
from harness.http import Server
from harness.ports import free_port
from harness.wait import eventually

FOLDER = upgrade.GOLDEN / "1c874e40"
NOW_US = 1_795_737_600_000_000      # 2026-11-27T00:00:00Z: of the rows
SPAN_US = 30 * 86_400 * 1_000_000   # other numbers are further away from it
TABLES = ("meta", "incident", "target", "intent")
OWN = ("action_log_head", "opened")     # of the log


@pytest.fixture
def silent(started):
    """A server that says nothing about sizes, and takes no message."""
    return started(Server(lambda asked: (503, {}, {"error": "later"})))


def shift(text, by_us):
    """The same row, later: all its times by the wall clock."""
    return re.sub(r"\b\d{16}\b", lambda m: str(int(m[0]) + by_us) if abs(int(m[0]) - NOW_US) < SPAN_US else m[0], text)


def read_fixture(port, by_us):
    """{(table, key): value}, as texts; an incident's key begins with its digest in hex."""
    rows = {}
    for line in (FOLDER / "rows.tsv").read_text().splitlines():
        table, key, value = line.replace(f":{upgrade.PORT}/", f":{port}/").split("\t")
        rows[table, key] = shift(value, by_us)
    return rows


def write_state(path, rows):
    """A state file of that commit's format, with these rows and the log's place."""
    path.write_bytes((FOLDER / "state.db").read_bytes())
    with contextlib.closing(sqlite3.connect(path)) as connection, connection as db:
        for table in TABLES:
            db.execute(f"DELETE FROM {table} WHERE key NOT IN (?, ?)", [key.encode() for key in OWN])
        for (table, key), value in rows.items():
            raw = bytes.fromhex(key[:64]) + key[64:].encode() if table == "incident" else key.encode()
            db.execute(f"INSERT INTO {table}(key, value) VALUES(?, ?)", (raw, value.encode()))


def read_state(path):
    rows = {}
    with contextlib.closing(sqlite3.connect(path)) as db:
        for table in TABLES:
            for key, value in db.execute(f"SELECT key, value FROM {table}"):
                name = key[:32].hex() + key[32:].decode() if table == "incident" else key.decode()
                if name not in OWN:
                    rows[table, name] = value.decode()
    return rows


def without_clock(value):
    """Moments are [monotonic, wall]; the former, and the boot that it belongs to, are the machine's."""
    if isinstance(value, dict):
        return {key: without_clock(each) for key, each in value.items() if key != "boot"}
    if isinstance(value, list) and len(value) == 2 and all(isinstance(each, int) for each in value):
        return value[1]
    return [without_clock(each) for each in value] if isinstance(value, list) else value


def make_rules(url):
    """With all that the rows name: else they would be tidied. The requests for approvals have the digests of these rules."""
    def deployment(name, **more):
        return {"kubernetes": {"kind": "Deployment", "namespace": "shop", "name": name, **more}, "max": 20}

    def group(name):
        return {"node_group": {"provider": "mine", "url": f"{url}/groups/{name}"}, "nodes": {"cluster": "default", "select": {"group": name}}, "max": 20}

    def rule(name, target, **more):
        return {"name": name, "match": ['alertname="Slow"'], "target": target, "scale_up": {"by": 1}, **more}

    memory = {"container": "app", "resource": "memory", "unit": "64Mi", "apply": "pods"}
    approvals = {**deployment("approvals"), "approval": {"above": 0, "for": "1h"}}
    trials = {**deployment("trials"), "max": 9}
    return {"targets": {"history": deployment("history"), "approvals": approvals, "trials": trials, "begun": deployment("begun"),
                        "resize": deployment("resize", **memory), "resized": deployment("resized", **memory),
                        "pending": group("pending"), "refused": group("refused"), "doubt": group("doubt"),
                        "all": {"pool": {"groups": ["pending", "refused"]}, "max": 30}},
            "rules": [rule("slow", "trials", ineffective_after=3), rule("idle", "trials", ineffective_after=3),
                      rule("give-back", "history", on_resolved="give_back", guard="none"), rule("give-back-later", "history", on_resolved="give_back", guard="none"),
                      *(rule(name, "approvals") for name in ("waits", "approved", "denied", "expired", "void")),
                      rule("fits", "all", scale_up={"fit": "pending_pods"})]}


@pytest.fixture
def make(make_daemon, silent, tmp_path):
    def make(rows):
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "u", "user": {}}],
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{free_port()}"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
        (tmp_path / "token").write_text("secret")
        config = {
            "clusters": {"default": {"kubeconfig": str(kubeconfig)}}, "providers": {"mine": {"type": "http"}}, "dry_run": True,
            "receiver": {"incident_expiry": "300h", "stale_window": "300h",
                         "tokens": [{"name": "whole", "file": str(tmp_path / "token"), "permissions": ["notify", "read", "admin"]}]},
            "notify": [{"name": "events", "webhook": {"url": f"{silent.url}/events"}, "on": ["scaled"], "max_age": "1w"},
                       {"name": "on-call", "alertmanager": {"urls": [f"{silent.url}/a", f"{silent.url}/b"]}, "on": ["at_max"],
                        "max_age": "1w"}]}
        daemon = make_daemon(make_rules(silent.url), config, start=False, flags=["--web.enable-admin-api"])
        daemon.headers = {"Authorization": "Bearer secret"}
        write_state(daemon.state_file, rows)
        daemon.log_file.write_bytes((FOLDER / "actions.jsonl").read_bytes())
        return daemon

    return make


@pytest.fixture
def rows(silent):
    return read_fixture(silent.url.split(":")[2].split("/")[0], time.time_ns() // 1000 - NOW_US)


def test_a_start_keeps_every_row(make, rows):
    daemon = make(rows)
    daemon.start()
    assert [one["labels"]["alertname"] for one in daemon.get("/api/v1/incidents").json["data"]] == ["Slow"]
    eventually(lambda: "a notice was not taken" in daemon.process.log_text(), what="notices are sent")
    for name in ("begun", "doubt", "pending", "trials"):
        eventually(lambda: re.search(f"target not observed.*/{name} ", daemon.process.log_text()), what=f"{name} is looked for")
    daemon.stop()
    assert read_state(daemon.state_file) == rows


def test_every_member_is_written_again_as_it_was(make, rows):
    """An order makes the engine write a target's whole row."""
    daemon = make(rows)
    daemon.start()
    expected = {row: json.loads(value) for row, value in rows.items() if row[0] == "target"}
    assert len(expected) == 8
    for target in expected.values():
        answer = daemon.post(f"/api/v1/targets/{target['id']}/pause", {"reason": "once more"})
        assert answer.ok, answer.text
    daemon.kill()
    after = read_state(daemon.state_file)
    assert set(after) == set(rows)
    for row, target in expected.items():
        written = json.loads(after[row])
        assert written["boot"] != target["boot"], "it was written again"
        assert written.pop("pause")["reason"] == "once more"
        target.pop("pause", None)
        assert without_clock(written) == without_clock(target), row
    assert {row: after[row] for row in rows if row not in expected} == {row: rows[row] for row in rows if row not in expected}
