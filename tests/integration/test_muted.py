"""What Alertmanager's time intervals mute stays muted, also where alertscaler learns of an alert from Alertmanager's list.

Alertmanager is real: Debian's, which does not say what it mutes, or with MONITORING=today one that marks a group when it flushes it.
The root route may have no time intervals, so the alerts take a child route to the same receiver.
"""
import datetime
import time

import pytest

from harness import monitoring
from harness.notification import alert, notification
from harness.wait import eventually, steadily
from test_sources import NOWHERE, counted

pytestmark = pytest.mark.monitoring

ALWAYS = {"name": "always", "time_intervals": [{"times": [{"start_time": "00:00", "end_time": "24:00"}]}]}
NEVER = {"name": "never", "time_intervals": [{"years": ["2001"]}]}


def muted(interval, wait="0s", kind="mute"):
    """Options of an Alertmanager that mutes the alert with this interval; `wait` is the time until the group's first flush."""
    route = {"receiver": "alertscaler", "matchers": ['alertname=~".+"'], f"{kind}_time_intervals": [interval["name"]]}
    return {"time_intervals": [interval], "route": {"group_wait": wait, "routes": [route]}}


def rules_of(group, **rule):
    return {"targets": {"workers": {"node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 100,
                                    "cooldown": {"up": "0s", "down": "0s"}}},
            "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 2}, **rule}]}


def watching(*alertmanagers, **more):
    return {"providers": {"mine": {"type": "http"}},
            "alertmanager": {"urls": [a.url for a in alertmanagers], "resync_interval": "1s", "receivers": ["alertscaler"], **more}}


def wait_lists(daemon, count):
    known = counted(daemon, "alertmanager", "ok")
    eventually(lambda: counted(daemon, "alertmanager", "ok") >= known + count, what=f"{count} more lists")


def opened(daemon):
    return daemon.records("incident", event="opened")


@pytest.mark.parametrize("kind, interval", [("mute", ALWAYS), ("active", NEVER)], ids=["mute", "active"])
def test_a_muted_alert_opens_no_incident(make_alertmanager, make_daemon, node_group, kind, interval):
    group = node_group(size=4)
    alertmanager = make_alertmanager(webhook=NOWHERE, **muted(interval, kind=kind))
    alertmanager.fire(alertname="Busy")
    daemon = make_daemon(rules_of(group), watching(alertmanager))
    wait_lists(daemon, 5)
    assert not opened(daemon) and group.size == 4


def test_nor_does_a_fresh_group_or_one_after_a_restart(make_alertmanager, make_daemon, node_group):
    """Before its first flush a group counts as unmuted; a restarted Alertmanager has forgotten its marks."""
    group = node_group(size=4)
    alertmanager = make_alertmanager(webhook=NOWHERE, **muted(ALWAYS, wait="20s"))
    alertmanager.fire(alertname="Busy")
    daemon = make_daemon(rules_of(group), watching(alertmanager))
    wait_lists(daemon, 5)
    alertmanager.stop()
    alertmanager.start()
    assert not alertmanager.alerts(), "it has forgotten them"
    alertmanager.fire(alertname="Busy")
    wait_lists(daemon, 5)
    daemon.stop()
    daemon.start()
    wait_lists(daemon, 5)
    assert not opened(daemon) and group.size == 4


@pytest.mark.seconds(240)
def test_an_unmuted_alert_opens_an_incident_after_the_wait(make_alertmanager, make_daemon, node_group):
    """group_wait (0 s), group_interval (1 s) and a minute. Debian's Alertmanager does not say what is muted."""
    group = node_group(size=4)
    alertmanager = make_alertmanager(webhook=NOWHERE, **muted(NEVER))
    begin = time.monotonic()
    daemon = make_daemon(rules_of(group, max_steps=1), watching(alertmanager))
    alertmanager.fire(alertname="Busy")
    if monitoring.IS_TODAY:
        eventually(lambda: group.size == 6, 120, what="the alert of the lists is acted on")
        assert time.monotonic() - begin > 61
        assert "lists open fewer incidents" not in daemon.process.log_text()
    else:
        eventually(lambda: "lists open fewer incidents" in daemon.process.log_text())
        assert "is older than 0.28" in daemon.process.log_text()
        steadily(lambda: not opened(daemon), 65)


def get_minute(moment):
    return f"{moment.hour:02}:{moment.minute:02}"


@pytest.mark.seconds(240)
@pytest.mark.skipif(not monitoring.IS_TODAY, reason="Alertmanager before 0.28 does not say what it mutes")
def test_an_interval_that_begins_holds_the_open_incident(make_alertmanager, make_daemon, node_group):
    group = node_group(size=1)
    daemon = make_daemon(rules_of(group, every="1s", scale_up={"by": 1}), start=False)
    now = datetime.datetime.now(datetime.timezone.utc)
    begin = (now + datetime.timedelta(seconds=80)).replace(second=0, microsecond=0)
    times = [{"start_time": get_minute(begin), "end_time": "24:00"}]
    if begin.hour == 23:
        times.append({"start_time": "00:00", "end_time": "01:00"})
    interval = {"name": "soon", "time_intervals": [{"times": times}]}
    alertmanager = make_alertmanager(webhook=daemon.url + "/webhook", **muted(interval))
    daemon.write_config(watching(alertmanager))
    daemon.start()
    alertmanager.fire(alertname="Busy", seconds=600)
    eventually(lambda: len(group.applied) >= 2, what="it grows")
    silenced = eventually(lambda: daemon.records("incident", event="silenced"), 120, what="it is held")[0]
    assert datetime.datetime.fromisoformat(silenced["time"].replace("Z", "+00:00")) >= begin
    wait_lists(daemon, 3)
    held = len(group.applied)
    wait_lists(daemon, 3)
    assert len(group.applied) == held
    assert [record["event"] for record in daemon.records("incident")] == ["opened", "silenced"]


def test_peers_that_disagree(make_alertmanager, make_daemon, node_group):
    """One mutes the alert, and the other has no time intervals; then one of them is down."""
    group = node_group(size=4)
    plain = make_alertmanager(webhook=NOWHERE, name="plain")
    night = make_alertmanager(webhook=NOWHERE, name="night", **muted(ALWAYS))
    for each in (night, plain):
        each.fire(alertname="Busy")
    daemon = make_daemon(rules_of(group), watching(plain, night))
    wait_lists(daemon, 8)
    night.stop()
    eventually(lambda: counted(daemon, "alertmanager", "unreachable") >= 2)
    assert not opened(daemon) and group.size == 4


def test_without_the_key_the_receivers_that_notified_count(make_alertmanager, make_daemon, node_group):
    group = node_group(size=4)
    alertmanager = make_alertmanager(webhook=NOWHERE)
    alertmanager.fire(alertname="Busy")
    config = watching(alertmanager)
    del config["alertmanager"]["receivers"]
    daemon = make_daemon(rules_of(group, max_steps=1), config)
    wait_lists(daemon, 3)
    assert not opened(daemon)
    daemon.notify(notification(alert({"alertname": "Other"}), receiver="alertscaler"))
    eventually(lambda: group.size == 6, what="the alert of the list is acted on")
