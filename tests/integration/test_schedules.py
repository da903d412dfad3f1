"""Schedules through the built binary: workloads of the real API server, with the rights of the shipped role, get the size of a
schedule without an alert, when it begins, and keep it; at its end, as at that of a floor or of a pause of one direction, the
size comes down only as rules say. The sandbox lets a reload read a time zone."""
import datetime
import json
import re
import subprocess
import zoneinfo

import pytest

from harness.deploy import install
from harness.kube import path_of
from harness.notification import alert, notification
from harness.wait import eventually, steadily
from test_targets import make_workload

UTC = datetime.timezone.utc


def moment(seconds):
    """A moment so many seconds from now."""
    return (datetime.datetime.now(UTC) + datetime.timedelta(seconds=seconds)).isoformat(timespec="milliseconds")


def around_now(zone):
    """Two wall times of a zone, hours around now."""
    now = datetime.datetime.now(zoneinfo.ZoneInfo(zone))
    return [(now + datetime.timedelta(hours=hours)).strftime("%H:%M") for hours in (-2, 2)]


@pytest.fixture
def make(control_plane, namespace, make_daemon, tmp_path):
    """A Deployment of 2 replicas, and a daemon whose target it is, with these schedules."""
    install(control_plane, "namespace.yaml", "serviceaccount.yaml", "role.yaml", "role-cluster-wide.yaml")
    control_plane.admin.create(make_workload("Deployment", namespace, "web", 2))
    path = path_of("apps/v1", "Deployment", namespace, "web")
    token = tmp_path / "token"
    token.write_text(control_plane.account_token("alertscaler", "alertscaler"))
    kubeconfig = control_plane.write_kubeconfig("alertscaler", tokenFile=str(token))

    (tmp_path / "admin.token").write_text("secret-of-ada")
    tokens = [{"name": "ada", "file": str(tmp_path / "admin.token"), "permissions": ["notify", "read", "admin"]}]
    config = {"clusters": {"default": {"kubeconfig": str(kubeconfig)}}, "receiver": {"tokens": tokens}}

    def rules(*schedules, **target):
        address = {"kind": "Deployment", "namespace": namespace, "name": "web"}
        step = {"target": "web", "guard": "none", "every": "1s"}
        return {"targets": {"web": {"kubernetes": address, "min": 1, "max": 10, "schedules": list(schedules),
                                    "cooldown": {"up": "0s", "down": "0s"}, **target}},
                "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "web", "scale_up": {"by": 3}, "once": True},
                          {"name": "idle", "match": ['alertname="Idle"'], "scale_down": {"by": 1}, **step}]}

    def start(*schedules, **target):
        daemon = make_daemon(rules(*schedules, **target), config, flags=["--web.enable-admin-api"], start=False)
        daemon.headers = {"Authorization": "Bearer secret-of-ada"}
        return daemon.start(), path, rules

    return start


def size(control_plane, path):
    return control_plane.admin.replicas(path)


def order(daemon, path, **body):
    answer = daemon.post(f"/api/v1/targets/web/{path}", {"reason": "test", **body})
    assert answer.status == 200, answer.text


def fire(daemon, name, status="firing", **labels):
    daemon.notify(notification(alert({"alertname": name, **labels}, status=status)))


def decided(daemon, reason):
    return [record for record in daemon.records("decision") if record["output"]["reason"] == reason]


def end_soon(daemon, rules, bounds, **target):
    """The schedule in force ends in a moment: only now, whatever a slow machine has taken for what it has to outlast."""
    daemon.write_rules(rules({"name": "sale", "from": moment(-60), "to": moment(6), **bounds}, **target))
    daemon.reload()


def test_a_moment_that_comes_raises_the_size(control_plane, make):
    begins = moment(8)
    daemon, path, _ = make({"name": "sale", "from": begins, "to": moment(3600), "min": 4, "max": 20})
    assert daemon.target("web")["schedules"][0]["in_force"] is False or moment(0) >= begins
    eventually(lambda: size(control_plane, path) == 4)
    (decision,) = eventually(lambda: [r for r in daemon.records("decision") if r["output"]["reason"] == "below_min"])
    told = decision["input"]["target"]
    assert (told["schedules"], told["min"], told["max"], told["own_min"]) == (["sale"], 4, 20, 1)
    begin = daemon.target("web")["schedules"][0]
    assert begin["in_force"] is True and begin["name"] == "sale"
    assert (daemon.target("web")["min"], daemon.target("web")["max"]) == (4, 20)
    page = daemon.get("/targets/web").text
    assert "<code>sale</code> in force, ends " in page and "bound steps" in page
    told = subprocess.run([daemon.binary, "explain", "--target=web", daemon.log_file], capture_output=True, text=True, check=True)
    assert "with schedule sale" in told.stdout


def test_times_of_the_day_in_a_zone_wake_it_from_zero_and_a_reload_ends_them(control_plane, make):
    start, end = around_now("Asia/Kolkata")
    office = {"name": "office", "timezone": "Asia/Kolkata", "from": start, "to": end, "min": 3}
    daemon, path, rules = make(min=0)
    control_plane.admin.patch(path, {"spec": {"replicas": 0}})
    daemon.write_rules(rules(office, min=0))
    daemon.reload() # within the sandbox: a zone is read
    eventually(lambda: size(control_plane, path) == 3)
    daemon.write_rules(rules(min=0))
    daemon.reload()
    eventually(lambda: daemon.target("web")["min"] == 0)
    control_plane.admin.patch(path, {"spec": {"replicas": 1}})
    steadily(lambda: size(control_plane, path) == 1, seconds=3)


def test_a_zone_that_is_unknown_changes_nothing(make, control_plane):
    start, end = around_now("UTC")
    daemon, path, rules = make({"name": "office", "timezone": "UTC", "from": start, "to": end, "min": 3})
    eventually(lambda: size(control_plane, path) == 3)
    daemon.write_rules(rules({"name": "office", "timezone": "Mars/Olympus", "from": start, "to": end, "min": 5}))
    daemon.reload()
    eventually(lambda: daemon.metrics().value("alertscaler_config_last_reload_successful") == 0)
    assert re.search(r'rules\.yaml:\d+:\d+: error: there is no time zone "Mars/Olympus" in ', daemon.process.log_text())
    assert daemon.target("web")["min"] == 3
    assert size(control_plane, path) == 3


def test_when_a_min_ends_the_size_comes_down_only_as_rules_say(make, control_plane):
    daemon, path, rules = make({"name": "sale", "from": moment(-60), "to": moment(3600), "min": 4})
    eventually(lambda: size(control_plane, path) == 4)
    fire(daemon, "Idle")
    eventually(lambda: decided(daemon, "at_min"))
    assert size(control_plane, path) == 4
    fire(daemon, "Idle", status="resolved")
    end_soon(daemon, rules, {"min": 4})
    eventually(lambda: daemon.target("web")["min"] == 1)
    assert daemon.target("web")["schedules"][0]["in_force"] is False
    steadily(lambda: size(control_plane, path) == 4, seconds=3)
    fire(daemon, "Idle", again="yes")
    eventually(lambda: size(control_plane, path) == 3)
    down = eventually(lambda: decided(daemon, "scaled"))[-1]["input"]["target"]
    assert down["min"] == 1 and "schedules" not in down


def test_an_alert_that_fires_on_acts_at_the_end_of_a_min(make, control_plane):
    daemon, path, rules = make({"name": "sale", "from": moment(-60), "to": moment(3600), "min": 4})
    eventually(lambda: size(control_plane, path) == 4)
    fire(daemon, "Idle")
    eventually(lambda: decided(daemon, "at_min"))
    end_soon(daemon, rules, {"min": 4})
    eventually(lambda: size(control_plane, path) == 3, what="nobody has sent anything again")
    assert eventually(lambda: decided(daemon, "scaled"))[-1]["input"]["target"]["min"] == 1


def test_when_a_max_ends_the_size_stays_until_a_rule_lowers_it(make, control_plane):
    daemon, path, rules = make({"name": "sale", "from": moment(-60), "to": moment(3600), "max": 6}, max=3)
    fire(daemon, "Busy")
    eventually(lambda: size(control_plane, path) == 5)
    end_soon(daemon, rules, {"max": 6}, max=3)
    eventually(lambda: daemon.target("web")["max"] == 3)
    fire(daemon, "Busy", again="yes")
    eventually(lambda: decided(daemon, "at_max"))
    steadily(lambda: size(control_plane, path) == 5, seconds=3)
    for again in ({}, {"again": "yes"}):
        fire(daemon, "Busy", status="resolved", **again)
    fire(daemon, "Idle")
    eventually(lambda: size(control_plane, path) == 4, what="one step, and not down to 3 at once")


@pytest.mark.deep
@pytest.mark.seconds(240)
def test_a_min_in_force_is_enforced_at_each_look(make, control_plane):
    daemon, path, _ = make({"name": "sale", "from": moment(-60), "to": moment(3600), "min": 4})
    eventually(lambda: size(control_plane, path) == 4)
    for lower in (2, 1):
        control_plane.admin.patch(path, {"spec": {"replicas": lower}})
        eventually(lambda: size(control_plane, path) == 4, timeout=120, what="the look of the next minute")
    assert not daemon.get("/api/v1/incidents").json["data"]


def test_a_target_that_somebody_has_switched_off_is_not_woken(make, control_plane):
    daemon, path, rules = make(min=1)
    control_plane.admin.patch(path, {"spec": {"replicas": 0}})
    daemon.write_rules(rules({"name": "sale", "from": moment(-60), "to": moment(3600), "min": 4}, min=1))
    daemon.reload()
    eventually(lambda: daemon.target("web")["min"] == 4 and daemon.target("web")["replicas"] == 0)
    steadily(lambda: size(control_plane, path) == 0, seconds=3)


def test_when_a_floor_ends_the_size_comes_down_only_as_rules_say(make, control_plane):
    daemon, path, _ = make()
    order(daemon, "floor", **{"replicas": 5, "for": "1h"})
    eventually(lambda: size(control_plane, path) == 5)
    order(daemon, "floor", **{"replicas": 5, "for": "3s"})      # only now: the size was to come before its end
    eventually(lambda: daemon.target("web")["floor"] is None)
    ends = eventually(lambda: [record for record in daemon.records("command") if record["command"] == "floor"][2:])
    assert [(record["who"], record["message"] or record["reason"]) for record in ends] == [("", "the time of the floor is over")]
    steadily(lambda: size(control_plane, path) == 5, seconds=3)
    fire(daemon, "Idle")
    eventually(lambda: size(control_plane, path) == 4)


def test_an_alert_that_fires_on_acts_at_the_end_of_a_pause_down(make, control_plane):
    daemon, path, _ = make()
    order(daemon, "pause", **{"direction": "down", "for": "1h"})
    fire(daemon, "Idle")
    (held, *_) = eventually(lambda: decided(daemon, "held"))
    assert held["output"]["held_by"] == {"by": "pause", "name": "ada"}
    fire(daemon, "Busy")
    eventually(lambda: size(control_plane, path) == 5, what="the other way is free")
    fire(daemon, "Busy", status="resolved")
    order(daemon, "pause", **{"direction": "down", "for": "3s"})        # only now: all this was to come before its end
    eventually(lambda: size(control_plane, path) == 4, what="after the pause the alert that fires on acts")
    assert daemon.target("web")["paused"] is None


def crash(daemon):
    daemon.kill()
    daemon.start()


def test_what_a_min_has_added_goes_at_its_end(make, control_plane):
    daemon, path, rules = make({"name": "sale", "from": moment(3), "to": moment(3600), "min": 4, "end": "before"})
    assert daemon.target("web")["schedules"][0]["end"] == "before"
    eventually(lambda: size(control_plane, path) == 4)
    crash(daemon)
    end_soon(daemon, rules, {"min": 4, "end": "before"})
    eventually(lambda: size(control_plane, path) == 2)
    (decision,) = eventually(lambda: decided(daemon, "schedule_ended"))
    (proposal,) = decision["output"]["proposals"]
    assert (proposal["schedule"], proposal["rule"], proposal["desired"]) == ("sale", None, 2)
    told = subprocess.run([daemon.binary, "explain", "--target=web", daemon.log_file], capture_output=True, text=True, check=True)
    assert "The size goes from 4 to 2: schedule_ended." in told.stdout
    assert "The schedule that has ended is sale." in told.stdout
    assert "the end of schedule sale wants 2: " in told.stdout
    steadily(lambda: size(control_plane, path) == 2, seconds=3)


@pytest.mark.parametrize("by", ["rule", "controller"])
def test_a_size_that_something_else_has_set_stays_at_the_end(make, control_plane, by):
    daemon, path, rules = make({"name": "sale", "from": moment(-60), "to": moment(3600), "min": 4, "end": "min"})
    eventually(lambda: size(control_plane, path) == 4)
    if by == "rule":
        fire(daemon, "Busy")
        eventually(lambda: size(control_plane, path) == 7)
        fire(daemon, "Busy", status="resolved")
    else:
        control_plane.admin.patch(path, {"spec": {"replicas": 6}})
    expected = size(control_plane, path)
    end_soon(daemon, rules, {"min": 4, "end": "min"})
    eventually(lambda: daemon.target("web")["min"] == 1)
    steadily(lambda: size(control_plane, path) == expected, seconds=3)
    assert not decided(daemon, "schedule_ended")


def test_a_night_sets_zero_and_the_morning_returns_the_size(make, control_plane):
    daemon, path, rules = make({"name": "night", "from": moment(3), "to": moment(3600), "min": 0, "max": 0})
    eventually(lambda: size(control_plane, path) == 0)
    crash(daemon)
    fire(daemon, "Busy")
    eventually(lambda: decided(daemon, "at_max"), timeout=120)      # a minute, if the kill came before the outcome was stored
    fire(daemon, "Busy", status="resolved")
    steadily(lambda: size(control_plane, path) == 0, seconds=2)
    end_soon(daemon, rules, {"min": 0, "max": 0})
    eventually(lambda: size(control_plane, path) == 2)
    assert [record["output"]["desired"] for record in decided(daemon, "schedule_ended")] == [2]
    for reason in ("above_max", "schedule_ended"):
        (decision,) = decided(daemon, reason)
        again = subprocess.run([daemon.binary, "decide"], input=json.dumps(decision["input"]), capture_output=True, text=True, check=True)
        assert json.loads(again.stdout)["reason"] == reason


def test_a_size_that_a_person_sets_at_night_stays(make, control_plane):
    daemon, path, rules = make({"name": "night", "from": moment(-60), "to": moment(3600), "min": 0, "max": 0})
    eventually(lambda: size(control_plane, path) == 0)
    order(daemon, "scale", replicas=1, force=True)
    eventually(lambda: size(control_plane, path) == 1)
    steadily(lambda: size(control_plane, path) == 1, seconds=3)
    end_soon(daemon, rules, {"min": 0, "max": 0})
    eventually(lambda: daemon.target("web")["max"] == 10)
    steadily(lambda: size(control_plane, path) == 1, seconds=3)
