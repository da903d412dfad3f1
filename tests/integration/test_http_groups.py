"""HTTP node groups with templates: the URL, however it is spelled, says which group it is; `allow` limits what alerts may give."""
import contextlib
import json
import sqlite3

import pytest

from harness.many_groups import ManyGroups
from harness.notification import alert, notification
from harness.wait import eventually

START = 4
ROOM = {"max": 20, "cooldown": {"up": "1h", "down": "1h"}}


@pytest.fixture
def groups(started):
    return started(ManyGroups(START))


@pytest.fixture
def make(make_daemon, groups, tmp_path):
    """make(node_group, ...): a daemon with one rule, `busy`, and one target, `each`, at this address."""
    (tmp_path / "admin.token").write_text("secret-of-ada\n")
    tokens = [{"name": "ada", "file": str(tmp_path / "admin.token"), "permissions": ["notify", "read", "admin"]}]

    def make(address, allow, targets=None, **target):
        rules = {
            "targets": {"each": {"node_group": {"provider": "mine", **address}, "allow": allow, **ROOM, **target}, **(targets or {})},
            "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "each", "scale_up": {"by": 2}}],
        }
        daemon = make_daemon(rules, {"providers": {"mine": {"type": "http"}}, "receiver": {"tokens": tokens}},
                             flags=["--web.enable-admin-api"], start=False)
        daemon.headers = {"Authorization": "Bearer secret-of-ada"}
        return daemon.start()

    return make


def fire(daemon, alertname="Busy", **labels):
    """The outcome of an alert of its own."""
    before = len(daemon.notifications())
    daemon.notify(notification(alert({"alertname": alertname, **labels})))
    return eventually(lambda: daemon.notifications()[before:], what="it is recorded")[0]["alerts"][0]["outcome"]


def wait_reasons(daemon, *reasons):
    eventually(lambda: [r["output"]["reason"] for r in daemon.records("decision")] == list(reasons), what=f"decisions {reasons}")


def test_names_give_one_url_no_further_step_in_a_cooldown(make, groups):
    daemon = make({"url": f"{groups.url}/{{{{ .Labels.app }}}}", "name": "{{ .Labels.team }}"},
                  {"names": ["*"], "urls": [f"{groups.url}/*"]})
    assert fire(daemon, app="web", team="a") == "queued"
    wait_reasons(daemon, "scaled")
    assert fire(daemon, app="web", team="b") == "queued"
    wait_reasons(daemon, "scaled", "cooldown")
    assert fire(daemon, app="db", team="b") == "queued"     # another group, also by that name
    wait_reasons(daemon, "scaled", "cooldown", "scaled")
    eventually(lambda: groups.applied == {"web": [6], "db": [6]}, what="one step each")
    assert {t["id"] for t in daemon.get("/api/v1/targets").json["data"]} == {
        f"node_group/mine/{groups.url}/{name}" for name in ("web", "db")}


def test_names_give_one_url_no_further_size_above_max(make, groups):
    daemon = make({"url": f"{groups.url}/web", "name": "{{ .Labels.team }}"}, {"names": ["*"]}, max=5,
                  cooldown={"up": "0s", "down": "0s"})
    fire(daemon, team="a")
    wait_reasons(daemon, "scaled")
    fire(daemon, team="b")
    wait_reasons(daemon, "scaled", "at_max")
    assert groups.applied == {"web": [5]}


def test_a_pause_in_any_spelling_holds_the_url_under_any_name(make, groups):
    daemon = make({"url": f"{groups.url}/web/", "name": "{{ .Labels.team }}"}, {"names": ["*"]})
    groups.sizes["web/"] = START
    spelled = groups.url.replace("http://", "HTTP://").replace("/groups", "/x/%2e%2e/gr%6Fups") + "/web"
    assert daemon.post(f"/api/v1/targets/node_group/mine/{spelled}/pause", {"reason": "test"}).status == 200
    assert fire(daemon, team="a") == "queued"
    wait_reasons(daemon, "paused")
    assert fire(daemon, team="b") == "queued"
    target, = [t for t in daemon.get("/api/v1/targets").json["data"] if t["paused"]]
    assert target["open_incidents"] == 2        # both are of one target
    assert groups.applied == {}


def test_another_entry_reaches_no_group_that_is_in_use_in_another_spelling(make, groups):
    again = groups.url.replace("127.0.0.1", "127.1") + "/{{ .Labels.app }}"
    daemon = make({"url": f"{groups.url}/{{{{ .Labels.app }}}}"}, {"names": ["*"]},
                  {"again": {"node_group": {"provider": "mine", "url": again}, "allow": {"names": ["*"]}, **ROOM}})
    rules = (daemon.directory / "rules" / "rules.yaml").read_text()
    (daemon.directory / "rules" / "rules.yaml").write_text(
        rules + "- {name: again, match: ['alertname=\"Again\"'], target: again, scale_up: {by: 1}}\n")
    daemon.restart()
    assert fire(daemon, app="web") == "queued"
    wait_reasons(daemon, "scaled")
    assert fire(daemon, "Again", app="web") == "target_not_allowed"
    assert groups.applied == {"web": [6]}


@pytest.mark.parametrize("labels", [
    {"zone": "eu", "app": "db"}, {"zone": "us", "app": "web"}, {"zone": "eu", "app": "../us/web"}, {"zone": "..", "app": "web"},
    {"zone": "eu", "app": "web?x"}, {"zone": "eu", "app": "%2e%2e"}, {"zone": "eu", "app": "web#"}, {"zone": "eu@h:1", "app": "web"},
    {"zone": "eu"},
])
def test_alerts_reach_only_allowed_urls(make, groups, labels):
    daemon = make({"url": f"{groups.url}/{{{{ .Labels.zone }}}}/{{{{ .Labels.app }}}}", "name": "{{ .Labels.team }}"},
                  {"names": ["a"], "urls": [f"{groups.url}/eu/w*"]})
    assert fire(daemon, team="a", **labels) == "target_not_allowed"
    assert fire(daemon, team="b", zone="eu", app="web") == "target_not_allowed"
    assert fire(daemon, team="a", zone="eu", app="web") == "queued"
    eventually(lambda: groups.applied == {"eu/web": [6]}, what="the allowed group is scaled")


def resume_and_wait_step(daemon, groups, id_, sizes):
    assert daemon.post(f"/api/v1/targets/{id_}/resume", {"reason": "test"}).status == 200
    eventually(lambda: groups.applied == {"web": sizes}, what="it is scaled")


def test_a_pause_under_the_id_of_an_earlier_version_holds(make, groups):
    """Its id of a group with a template was the name."""
    daemon = make({"url": f"{groups.url}/{{{{ .Labels.app }}}}", "name": "{{ .Labels.team }}"}, {"names": ["*"], "urls": ["*"]},
                  cooldown={"up": "0s", "down": "0s"})
    id_ = f"node_group/mine/{groups.url}/web"
    fire(daemon, app="web", team="a")
    wait_reasons(daemon, "scaled")
    assert daemon.post(f"/api/v1/targets/{id_}/pause", {"reason": "before the upgrade"}).status == 200
    daemon.stop()
    with contextlib.closing(sqlite3.connect(daemon.state_file)) as db, db:
        (value,), = db.execute("SELECT value FROM target WHERE key = ?", [id_.encode()]).fetchall()
        former = {**json.loads(value), "id": "node_group/mine/a", "key": "node_group/mine/a"}
        assert former["pause"] and former["address"]
        db.execute("UPDATE target SET key = ?, value = ? WHERE key = ?",
                   [b"node_group/mine/a", json.dumps(former).encode(), id_.encode()])
        db.execute("DELETE FROM incident")
    daemon.start()
    for team in ("a", "b"):
        assert fire(daemon, app="web", team=team, pod="x") == "queued"
    eventually(lambda: daemon.records("decision")[-1]["output"]["reason"] == "paused", what="paused")
    assert daemon.target(id_)["paused"]["reason"] == "before the upgrade"
    assert groups.applied == {"web": [6]}
    daemon.restart()
    assert daemon.target(id_)["paused"]["reason"] == "before the upgrade"
    resume_and_wait_step(daemon, groups, id_, [6, 8])


def test_a_pause_by_name_before_the_first_alert_holds_the_url(make, groups):
    """Over a restart. An earlier version stored every such pause under the name alone."""
    daemon = make({"url": f"{groups.url}/{{{{ .Labels.app }}}}", "name": "{{ .Labels.team }}"}, {"names": ["*"], "urls": ["*"]})
    assert daemon.post("/api/v1/targets/node_group/mine/a/pause", {"reason": "by name"}).status == 200
    daemon.restart()
    assert fire(daemon, app="web", team="a") == "queued"
    wait_reasons(daemon, "paused")
    daemon.restart()
    id_ = f"node_group/mine/{groups.url}/web"
    assert daemon.target(id_)["paused"]["reason"] == "by name"
    assert groups.applied == {}
    resume_and_wait_step(daemon, groups, id_, [6])
