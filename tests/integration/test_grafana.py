"""Grafana's alerts whose state does not come from their query: the annotation `grafana_state_reason` of its webhook's payload.

The payload has the fields of the example in Grafana's documentation of the webhook contact point. The state reasons are those of its
pages on stale alert instances, on the states No Data and Error, and on changed rules.
"""
import subprocess

import pytest

from harness.daemon import find_binary
from harness.notification import ZERO_TIME, fingerprint, timestamp
from harness.wait import eventually, steadily

LABELS = {"alertname": "High memory usage", "team": "blue", "zone": "us-1"}
REASONS = ["NoData", "Error", "MissingSeries", "Paused", "RuleDeleted", "Updated"]
URL = "https://grafana.example.com/alerting"


def payload(labels, status, starts, reason=None):
    annotations = {"description": "The system has high memory usage", "summary": "This alert was triggered for zone us-1",
                   **({"grafana_state_reason": reason} if reason else {})}
    alert = {"status": status, "labels": labels, "annotations": annotations, "startsAt": starts,
             "endsAt": ZERO_TIME if status == "firing" else timestamp(), "generatorURL": f"{URL}/1afz29v7z/edit",
             "fingerprint": fingerprint(labels), "silenceURL": f"{URL}/silence/new", "dashboardURL": "", "panelURL": "",
             "values": None if reason else {"B": 44.23943737541908, "C": 1}}
    return {"receiver": "My Super Webhook", "status": status, "orgId": 1, "alerts": [alert], "groupLabels": {},
            "commonLabels": labels, "commonAnnotations": annotations, "externalURL": URL, "version": "1",
            "groupKey": "{}:{}", "truncatedAlerts": 0, "title": f"[{status.upper()}:1]", "state": "alerting", "message": "**Firing**"}


@pytest.fixture
def group(node_group):
    return node_group(size=4)


@pytest.fixture
def daemon(make_daemon, group):
    target = {"node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 20, "cooldown": {"up": "0s", "down": "0s"}}
    match = [f'{name}="{value}"' for name, value in LABELS.items() if name != "alertname"]
    rules = [{"name": "busy", "match": ['alertname="High memory usage"', *match], "scale_up": {"by": 2}, "max_steps": 1,
              "on_resolved": {"scale_down": {"by": 2}}},
             {"name": "idle", "match": ['alertname="Idle"', *match], "scale_down": {"by": 1}, "max_steps": 1}]
    return make_daemon({"targets": {"workers": target}, "rules": [{**r, "target": "workers", "guard": "none"} for r in rules]},
                       {"providers": {"mine": {"type": "http"}}})


def end_of(daemon):
    return eventually(lambda: daemon.records("incident", event="closed"))[0]


@pytest.mark.parametrize("reason", REASONS)
def test_an_end_with_a_state_reason_gives_nothing_back(daemon, group, reason):
    starts = timestamp()
    daemon.notify(payload(LABELS, "firing", starts))
    eventually(lambda: group.size == 6)
    daemon.notify(payload(LABELS, "resolved", starts, reason))
    assert end_of(daemon)["state_reason"] == reason
    steadily(lambda: group.size == 6, seconds=2)


def test_an_end_without_one_gives_back(daemon, group):
    starts = timestamp()
    daemon.notify(payload(LABELS, "firing", starts))
    eventually(lambda: group.size == 6)
    daemon.notify(payload(LABELS, "resolved", starts))
    assert "state_reason" not in end_of(daemon)
    eventually(lambda: group.size == 4)


@pytest.mark.parametrize("reason", REASONS[:2])
def test_a_firing_alert_with_a_state_reason_lowers_no_size(daemon, group, reason):
    idle, starts = {**LABELS, "alertname": "Idle"}, timestamp()
    daemon.notify(payload(idle, "firing", starts, reason))
    decision = eventually(lambda: [d for d in daemon.records("decision") if d["output"]["reason"] == "guarded"])[0]
    assert decision["proof"]["state_reason"] == reason
    explained = subprocess.run([find_binary(), "explain", "--target=workers", "--at", decision["time"], str(daemon.log_file)],
                               capture_output=True, text=True, check=True).stdout
    assert f"grafana_state_reason is {reason}." in explained
    steadily(lambda: group.size == 4, seconds=2)
    daemon.notify(payload(idle, "firing", starts))
    eventually(lambda: group.size == 3)
