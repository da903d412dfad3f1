"""Schedules through the built binary: workloads of the real API server, with the rights of the shipped role, get the size of a
schedule without an alert, when it begins, and keep it; the sandbox lets a reload read a time zone."""
import datetime
import subprocess
import zoneinfo

import pytest

from harness.deploy import install
from harness.kube import path_of
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

    def rules(*schedules, **target):
        address = {"kind": "Deployment", "namespace": namespace, "name": "web"}
        return {"targets": {"web": {"kubernetes": address, "min": 1, "max": 10, "schedules": list(schedules), **target}},
                "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "web", "scale_up": {"by": 1}}]}

    def start(*schedules, **target):
        daemon = make_daemon(rules(*schedules, **target), {"clusters": {"default": {"kubeconfig": str(kubeconfig)}}})
        return daemon, path, rules

    return start


def size(control_plane, path):
    return control_plane.admin.replicas(path)


def test_a_moment_that_comes_raises_the_size_and_its_end_leaves_it(control_plane, make):
    daemon, path, _ = make({"name": "sale", "from": moment(8), "to": moment(3600), "min": 4, "max": 20})
    assert daemon.target("web")["schedules"][0]["in_force"] is False
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
    assert daemon.target("web")["min"] == 3
    assert size(control_plane, path) == 3
