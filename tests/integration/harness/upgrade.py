"""The state and the action log of an earlier version: the run that makes them, and a copy that today's program can open.

What leads to this run's servers is written with a port and a namespace of fixed lengths, as journals count bytes: a copy names
those of the test. Locks, incidents and pauses outlast any test: they are decades long.
"""
import re
import sqlite3

from .daemon import ROOT
from .http import HangUp
from .many_groups import ManyGroups
from .notification import alert, notification
from .wait import eventually

GOLDEN = ROOT / "tests" / "golden" / "upgrade"
START_SIZE = 3
NAMESPACE, PORT, UID = "upgrade-ns", "44444", "00000000-0000-4000-8000-000000000000"
TOKENS = {"whole": [], "team-a": ["a-*"], "team-b": ["b-*"]}
LONG = "300000h"
SELECTOR = "app.kubernetes.io/managed-by=alertscaler,app.kubernetes.io/component=state"
STARTS = "2026-01-01T00:00:00Z"


class Groups(ManyGroups):
    """Node groups, of which one never carries out what it is asked for: `on_stuck` is called, and the request hangs up."""

    def __init__(self):
        self.on_stuck, self.gets = None, []
        super().__init__(START_SIZE)

    def _handle(self, asked):
        if asked.method == "GET":
            self.gets.append(asked.path)
        elif asked.path.endswith("/stuck") and self.on_stuck:
            self.on_stuck()
            raise HangUp
        return super()._handle(asked)


def make_rules(groups, namespace, has_aliases):
    """With two entries for two spellings of one group, which is an error since 0.2.0."""
    def group(name):
        return {"node_group": {"provider": "mine", "url": f"{groups.url}/{name}"}, "max": 20, "cooldown": {"up": LONG, "down": LONG}}

    def rule(name, alertname, target, **more):
        return {"name": name, "match": [f'alertname="{alertname}"'], "target": target, "scale_up": {"by": 1}, **more}

    rules = {
        "targets": {
            "a": group("a"), "b": group("b"), "stuck": group("stuck"), "paused": group("paused"),
            "back": group("back"),
            "alias": group("alias"), "alias-again": group("alias/"),
            "each": {**group("{{ .Labels.group }}"), "allow": {"names": ["*"]}},
            "web": {"kubernetes": {"kind": "Deployment", "namespace": namespace, "name": "web"}, "max": 20,
                    "cooldown": {"up": LONG, "down": LONG}},
        },
        "rules": [rule("a-both", "Both", "a", max_steps=2), rule("b-both", "Both", "b"), rule("each-grow", "Grow", "each", once=True),
                  rule("web-slow", "Slow", "web"), rule("alias-full", "Full", "alias"), rule("alias-full-again", "Full", "alias-again"),
                  rule("b-stuck", "Stuck", "stuck"), rule("b-held", "Held", "paused"),
                  rule("a-back", "Back", "back", on_resolved="give_back", guard="none")],
    }
    if not has_aliases:
        del rules["targets"]["alias-again"]
        rules["rules"] = [one for one in rules["rules"] if one["target"] != "alias-again"]
    return rules


def make_config(kubeconfig, directory):
    tokens = []
    for name, rules in TOKENS.items():
        (directory / f"{name}.token").write_text(f"secret-of-{name}")
        access = {"rules": rules} if rules else {"permissions": ["notify", "read", "admin"]}
        tokens.append({"name": name, "file": str(directory / f"{name}.token"), **access})
    return {"clusters": {"default": {"kubeconfig": str(kubeconfig)}}, "providers": {"mine": {"type": "http"}},
            "receiver": {"incident_expiry": LONG, "stale_window": LONG, "tokens": tokens}}


def make_workload(namespace, replicas=START_SIZE):
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web"}]}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": namespace, "name": "web"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}}


def send(daemon, credential, *alerts):
    daemon.headers = {"Authorization": f"Bearer secret-of-{credential}"}
    return daemon.notify(notification(*alerts))


def play(daemon, groups, has_aliases):
    """Incidents of several credentials, some of them resolved; locks; a pause; and kill -9 between an intent and its request."""
    def fires(alertname, **labels):
        return alert({"alertname": alertname, **labels}, starts_at=STARTS)

    send(daemon, "team-a", fires("Both", shard="1"))
    daemon.wait_record("action", target_name="a", outcome="applied")
    send(daemon, "whole", fires("Both", shard="1"), fires("Both", shard="2"), fires("Grow", group="each-1"), fires("Slow"), fires("Full"))
    send(daemon, "whole", {**fires("Grow", group="each-1"), "fingerprint": "00000000000000aa"})     # the same alert
    for name in ("b", "each", "web", "alias", *(["alias-again"] if has_aliases else [])):
        daemon.wait_record("action", target_name=name, outcome="applied")
    send(daemon, "team-a", fires("Back"))
    daemon.wait_record("action", target_name="back", outcome="applied")
    send(daemon, "team-a", {**fires("Back"), "status": "resolved", "endsAt": "2026-01-01T00:10:00Z"})   # it cannot give back yet
    ended = alert({"alertname": "Grow", "group": "each-2"}, "resolved", starts_at=STARTS)   # its firing never came: without labels
    closed = {**fires("Both", shard="2"), "status": "resolved", "endsAt": "2026-01-01T00:10:00Z"}
    send(daemon, "whole", ended, closed)
    answer = daemon.post("/api/v1/targets/paused/pause", {"reason": "until it is upgraded"})
    assert answer.ok, answer.text
    send(daemon, "team-b", fires("Held"), {**fires("Held", shard="ahead"), "startsAt": "2131-01-01T00:00:00Z"})
    daemon.wait_record("decision", target_name="paused")
    for _ in range(3):
        send(daemon, "team-b", fires("Held"))   # since 0.2.0 the log has the third as a small record
    groups.on_stuck = daemon.process.kill
    send(daemon, "team-b", fires("Stuck"))
    eventually(lambda: not daemon.process.running, what="it is killed")
    groups.on_stuck = None


def neutral(groups, namespace, uid):
    """What makes a text of this run one of any; `uid`: of the Deployment."""
    port = groups.url.split(":")[2].split("/")[0]
    assert len(port) == len(PORT) and len(namespace) == len(NAMESPACE), "journals count bytes"
    return lambda text: text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{PORT}").replace(namespace, NAMESPACE).replace(uid, UID)


def own(groups, namespace, uid):
    """The other way round."""
    port = groups.url.split(":")[2].split("/")[0]
    assert len(port) == len(PORT) and len(namespace) == len(NAMESPACE), "journals count bytes"
    return lambda text: text.replace(f"127.0.0.1:{PORT}", f"127.0.0.1:{port}").replace(NAMESPACE, namespace).replace(UID, uid)


def copy_state_file(source, target, change):
    """A state file with `change` made to each text in it; records of the log that wait in it have their hashes already."""
    target.write_bytes(source.read_bytes())
    with sqlite3.connect(target) as db:
        for rowid, value in db.execute("SELECT rowid, value FROM incident").fetchall():
            db.execute("UPDATE incident SET value = ? WHERE rowid = ?", (change(value.decode()).encode(), rowid))
        for table in ("target", "intent"):
            for key, value in db.execute(f"SELECT key, value FROM {table}").fetchall():
                db.execute(f"UPDATE {table} SET key = ?, value = ? WHERE key = ?",
                           (change(key.decode()).encode(), change(value.decode()).encode(), key))
    db.close()


def change_config_maps(items, change):
    """Likewise: an item of its own, or part of a journal, is a record that waits."""
    def change_journal(text):
        done, at = "", 0
        for put in re.finditer(r"^put outbox-\d+ \d+ (\d+)\n", text, re.M):
            end = put.end() + int(put[1])       # all of it is ASCII
            done, at = done + change(text[at:put.end()]) + text[put.end():end], end
        return done + change(text[at:])

    return [{**item, "data": {key: text if key.startswith("outbox-") else change_journal(text) for key, text in item["data"].items()}}
            for item in items]


def read_config_maps(admin, namespace):
    items = admin.get(f"/api/v1/namespaces/{namespace}/configmaps?labelSelector={SELECTOR}")["items"]
    return [{"name": item["metadata"]["name"], "labels": item["metadata"]["labels"], "data": item["data"]} for item in items]


def write_config_maps(admin, namespace, items):
    for item in items:
        admin.create({"apiVersion": "v1", "kind": "ConfigMap", "data": item["data"],
                      "metadata": {"namespace": namespace, "name": item["name"], "labels": item["labels"]}})
