"""An alert scales a pool of Equinix Metal's devices up and down through the built binary, which warns that it is gone."""
import json
import subprocess

import pytest

from harness.daemon import find_binary
from harness.equinix import PROJECT, TOKEN, FakeEquinix, Fault
from harness.notification import alert, notification
from harness.wait import eventually, steadily

GONE = "Equinix Metal was shut down on 2026-06-30"


@pytest.fixture
def cloud(started):
    cloud = started(FakeEquinix())
    cloud.add(1, pool="other")
    cloud.add(2)
    cloud.add(1, cluster="test")        # a pool of the same name in another cluster
    return cloud


@pytest.fixture
def make(cloud, make_daemon):
    def start(env=None, provider=None, **config):
        group = {"provider": "metal", "cluster": "prod", "name": "web", "plan": "c3.small.x86", "metro": "am",
                 "operating_system": "ubuntu_22_04"}
        rules = {
            "targets": {"web": {"node_group": group, "max": 20, "nodes": {"cluster": "none"},
                                "cooldown": {"up": "1s", "down": "1s"}}},
            "rules": [
                {"name": "busy", "match": ['alertname="Busy"'], "target": "web", "scale_up": {"by": 2}, "max_steps": 1},
                {"name": "idle", "match": ['alertname="Idle"'], "target": "web", "scale_down": {"by": 1}, "max_steps": 1},
            ],
        }
        options = {"type": "equinix", "project": PROJECT, "endpoint": f"{cloud.url}/metal/v1", "timeout": "3s", **(provider or {})}
        return make_daemon(rules, {"providers": {"metal": options}, **config},
                           env={"METAL_AUTH_TOKEN": TOKEN} if env is None else env)

    return start


def size(cloud):
    return len([d for d in cloud.present() if "k8s-cluster-prod" in d.fields["tags"]])


def fire(daemon, name, *status):
    return daemon.notify(notification(alert({"alertname": name}, *status)))


def wait_words(daemon, words):
    return eventually(lambda: [r for r in daemon.records() if words in json.dumps(r)], 60, what=words)[0]


def test_up_and_down(make, cloud):
    before = {d.id for d in cloud.devices}
    daemon = make()
    fire(daemon, "Busy")
    eventually(lambda: size(cloud) == 4, 60, what="it has grown")
    assert before < {d.id for d in cloud.devices}
    wait_words(daemon, "req-")
    for made in cloud.made:
        assert made.pop("hostname").startswith("web-")
        assert made == {"plan": "c3.small.x86", "metro": "am", "operating_system": "ubuntu_22_04", "billing_cycle": "hourly",
                        "tags": ["k8s-cluster-prod", "k8s-nodepool-web"]}
    fire(daemon, "Busy", "resolved")
    fire(daemon, "Idle")
    eventually(lambda: size(cloud) == 3, 60, what="one is gone")
    assert len(cloud.requests("^DELETE ")) == 1 and len(cloud.made) == 2


def test_end_of_the_service_is_told(make, tmp_path):
    daemon = make()
    assert GONE in daemon.process.log_text()
    assert "level=warn" in next(line for line in daemon.process.log_text().splitlines() if GONE in line)
    checked = subprocess.run([find_binary(), "check", daemon.config_file], capture_output=True, text=True, check=False)
    assert checked.returncode == 0 and f"warning: {GONE}" in checked.stdout + checked.stderr


def test_dry_run_asks_and_changes_nothing(make, cloud):
    daemon = make(dry_run=True)
    fire(daemon, "Busy")
    eventually(lambda: cloud.requests("^GET ") and daemon.records("decision"), 60, what="a record")
    assert size(cloud) == 2 and not cloud.requests("^(?!GET)")


def test_files_that_are_configured(make, cloud, tmp_path):
    (tmp_path / "token").write_text(TOKEN + "\n")
    (tmp_path / "userdata").write_text("#!/bin/sh\n")
    daemon = make(env={}, provider={"token_file": str(tmp_path / "token"), "userdata_file": str(tmp_path / "userdata")})
    fire(daemon, "Busy")
    eventually(lambda: size(cloud) == 4, 60, what="it has grown")
    assert {made["userdata"] for made in cloud.made} == {"#!/bin/sh\n"}


@pytest.mark.parametrize("fault", [
    Fault("^POST ", status=429, headers={"Retry-After": "1"}),
    Fault("^POST ", status=409, message="conflict"),
    Fault("^POST ", status=500),
    Fault("^POST ", status=503, apply=True),
    Fault("^POST ", hang_up=True, apply=True),
    Fault("^GET ", status=200, body=b'{"devices":[{"id'),
    Fault("^GET ", status=200, body=b"<html/>"),
], ids=str)
def test_what_goes_wrong_once_is_done_in_the_end_and_once(make, cloud, fault):
    """Devices are not made twice, although the API knows no such thing as the same request."""
    cloud.inject(fault)
    daemon = make()
    fire(daemon, "Busy")
    eventually(lambda: size(cloud) >= 4, 120, what="it has grown")
    eventually(lambda: daemon.records("action", outcome="applied"), 120, what="it is known")
    assert size(cloud) == 4 and len(cloud.made) == 2


def test_capacity_that_is_not_there_is_told(make, cloud):
    cloud.room = len(cloud.devices)
    daemon = make()
    fire(daemon, "Busy")
    wait_words(daemon, "create_device: HTTP 422: The metro am has no provisionable c3.small.x86 servers")
    assert size(cloud) == 2


def test_devices_that_fail_ask_for_no_more(make, cloud):
    cloud.fails = True
    daemon = make()
    fire(daemon, "Busy")
    eventually(lambda: len(cloud.made) == 2, 60, what="they were asked for")
    steadily(lambda: len(cloud.made) == 2, 3)


@pytest.mark.parametrize("fault, words", [
    (Fault("^POST ", status=403, message="You are not authorized to view this page"), "You are not authorized to view this page"),
    (Fault("^POST ", status=422, message="Plan is invalid"), "create_device: HTTP 422: Plan is invalid"),
])
def test_what_is_refused_is_told(make, cloud, fault, words):
    cloud.inject(fault, times=20)
    daemon = make()
    fire(daemon, "Busy")
    wait_words(daemon, words)
    assert size(cloud) == 2


@pytest.mark.parametrize("options, words", [
    ({"provider": {"project": "other"}}, "list_devices: HTTP 404: Not found"),
    ({"env": {"PACKET_AUTH_TOKEN": "wrong"}}, "HTTP 401: Invalid authentication token"),
    ({"env": {}}, "none are set up in any of the places where they are looked for"),
])
def test_what_is_not_there_is_told(make, options, words):
    daemon = make(**options)
    fire(daemon, "Busy")
    wait_words(daemon, words)
