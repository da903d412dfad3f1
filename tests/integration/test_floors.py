"""Floors by hand, holds and pauses of one direction, on the real daemon and over kill -9."""
import pytest

from harness.node_group import HttpNodeGroup
from harness.notification import alert, notification
from harness.wait import eventually


def make_rules(group):
    return {
        "targets": {"workers": {
            "node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 20,
            "cooldown": {"up": "0s", "down": "0s"}}},
        "rules": [
            {"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 1}, "once": True},
            {"name": "idle", "match": ['alertname="Idle"'], "target": "workers", "scale_down": {"by": 1}, "once": True,
             "guard": "none"},
            {"name": "upstream", "match": ['alertname="Upstream"'], "target": "workers", "hold": "down"},
        ],
    }


@pytest.fixture
def group(started):
    return started(HttpNodeGroup(4))


@pytest.fixture
def daemon(make_daemon, group, tmp_path):
    (tmp_path / "admin.token").write_text("secret-of-ada\n")
    tokens = [{"name": "ada", "file": str(tmp_path / "admin.token"), "permissions": ["notify", "read", "admin"]}]
    daemon = make_daemon(make_rules(group), {"providers": {"mine": {"type": "http"}}, "receiver": {"tokens": tokens},
                                             "kill_switch": {"file": str(tmp_path / "stop")}},
                         flags=["--web.enable-admin-api"], start=False)
    daemon.headers = {"Authorization": "Bearer secret-of-ada"}
    yield daemon.start()
    daemon.stop()


def order(daemon, path, **body):
    return daemon.post(f"/api/v1/targets/workers/{path}", {"reason": "test", **body})


def fire(daemon, name, **labels):
    daemon.notify(notification(alert({"alertname": name, **labels})))


def test_a_floor_is_enforced_without_an_alert_and_over_a_kill(daemon, group):
    answer = order(daemon, "floor", **{"replicas": 9, "for": "2h", "reason": "the sale"})
    daemon.kill()       # right after the answer
    assert answer.status == 200, answer.text
    assert answer.json["data"]["replicas"] == 9 and answer.json["data"]["until"]
    daemon.start()
    eventually(lambda: group.applied == [9], what="the size is raised")
    floor = daemon.target("workers")["floor"]
    assert (floor["replicas"], floor["who"], floor["reason"]) == (9, "ada", "the sale")
    decision = daemon.wait_record("decision", target_name="workers")
    assert decision["output"]["reason"] == "below_min" and decision["input"]["target"]["floor"] == 9
    assert order(daemon, "floor", end=True).status == 200
    assert daemon.target("workers")["floor"] is None
    eventually(lambda: [r["command"] for r in daemon.records("command")] == ["floor", "floor"], what="both are recorded")


def test_what_is_refused_says_why(daemon, group):
    refused = order(daemon, "floor", **{"replicas": 21, "for": "1h"})
    assert refused.status >= 400 and "above max" in refused.text
    assert order(daemon, "floor", end=True).status == 409
    assert order(daemon, "floor", replicas=5).status == 400
    assert order(daemon, "pause", direction="left").status == 400
    assert group.applied == []


def test_nothing_goes_down_while_a_rule_holds(daemon, group):
    fire(daemon, "Upstream")
    fire(daemon, "Idle")
    held = eventually(lambda: [r for r in daemon.records("decision") if r["output"]["reason"] == "held"], what="held")[0]
    assert held["output"]["held_by"] == {"by": "rule", "name": "upstream"}
    fire(daemon, "Busy")
    eventually(lambda: group.applied == [5], what="the other way is free")


def test_a_pause_of_one_direction(daemon, group):
    assert order(daemon, "pause", direction="down").status == 200
    assert daemon.target("workers")["paused"]["direction"] == "down"
    fire(daemon, "Idle")
    held = eventually(lambda: [r for r in daemon.records("decision") if r["output"]["reason"] == "held"], what="held")[0]
    assert held["output"]["held_by"] == {"by": "pause", "name": "ada"}
    assert held["pause"]["direction"] == "down"
    fire(daemon, "Busy")
    eventually(lambda: group.applied == [5], what="the other way is free")


def test_the_kill_switch_refuses_a_floor(daemon, group, tmp_path):
    stop = tmp_path / "stop"
    stop.write_text("incident 4711\n")
    daemon.wait_record("command", command="pause")
    for path, body in (("floor", {"replicas": 7, "for": "2h"}), ("scale", {"replicas": 8}), ("unlock", {})):
        refused = order(daemon, path, **body)
        assert refused.status == 403 and "kill switch" in refused.text, (path, refused.text)
    assert daemon.target("workers")["floor"] is None
    stop.unlink()
    daemon.wait_record("command", command="resume")
    assert order(daemon, "floor", **{"replicas": 9, "for": "2h"}).status == 200
    eventually(lambda: group.applied == [9], what="the floor that is ordered afterwards, and no other size")
