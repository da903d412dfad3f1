"""The fake of Equinix Metal is what its own client takes for it: devices listed, made and deleted, errors too. What that client
sends is what tests/unit/cloud expects of ours."""
import json
import pathlib
import subprocess
import sys

import pytest

from harness.daemon import environment
from harness.equinix import PROJECT, TOKEN, FakeEquinix, Fault
from harness.moto import find_packages

SCRIPT = pathlib.Path(__file__).with_name("equinix_client.py")
DEVICES = f"/metal/v1/projects/{PROJECT}/devices"
NEW = {"hostname": "web-01hd-0", "plan": "c3.small.x86", "metro": "am", "operating_system": "ubuntu_22_04",
       "billing_cycle": "hourly", "userdata": "#!/bin/sh\n", "hardware_reservation_id": "next-available",
       "tags": ["k8s-cluster-prod", "k8s-nodepool-web"]}

pytestmark = pytest.mark.skipif(
    find_packages() is None, reason="the official client for Equinix Metal is not installed: run tests/integration/install-python")


@pytest.fixture
def cloud(started):
    return started(FakeEquinix(delay=0.1))


def ask(cloud, *calls, token=TOKEN):
    """[(status, answer)] of what the client did."""
    given = {"url": f"{cloud.url}/metal/v1", "token": token, "calls": calls}
    done = subprocess.run([sys.executable, SCRIPT, json.dumps(given)], capture_output=True, text=True, timeout=120, check=False,
                          env=environment(PYTHONPATH=find_packages()))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_devices(cloud):
    cloud.add(3)
    first = cloud.devices[0].id
    (listed, one), (again, two), (made, new), (deleted, nothing) = ask(
        cloud, {"do": "find_project_devices", "with": [PROJECT], "options": {"page": 1, "per_page": 100}},
        {"do": "find_project_devices", "with": [PROJECT], "options": {"page": 2, "per_page": 100}},
        {"do": "create_device", "with": [PROJECT], "options": {"create_device_request": NEW}},
        {"do": "delete_device", "with": [first]})
    assert (listed, again, made, deleted) == (200, 200, 201, 204) and nothing is None
    assert [d["state"] for d in one["devices"] + two["devices"]] == ["active"] * 3
    assert one["devices"][0]["metro"]["code"] == "am" and one["devices"][0]["locked"] is False
    assert one["meta"]["next"]["href"].endswith(f"{DEVICES}?page=2") and two["meta"].get("next") is None
    assert new["state"] == "queued" and new["tags"] == NEW["tags"]
    assert [line for line, _ in cloud.requests("^(GET|DELETE) ")] == [
        f"GET {DEVICES}?page=1&per_page=100", f"GET {DEVICES}?page=2&per_page=100", f"DELETE /metal/v1/devices/{first}"]


def test_what_the_client_sends_is_what_is_sent_by_ours(cloud):
    """The client sends what it has defaults for besides."""
    ask(cloud, {"do": "create_device", "with": [PROJECT], "options": {"create_device_request": NEW}})
    (sent,) = cloud.made
    assert {key: sent[key] for key in NEW} == NEW
    assert {key for key in sent if key not in NEW} <= {"locked", "no_ssh_keys"}


def test_errors(cloud):
    cloud.room = 0
    cloud.inject(Fault("^GET ", status=429, message="slow"))
    errors = ask(cloud, {"do": "find_project_devices", "with": [PROJECT]}, {"do": "find_project_devices", "with": ["other"]},
                 {"do": "create_device", "with": [PROJECT], "options": {"create_device_request": NEW}},
                 {"do": "delete_device", "with": ["32c5e1a7-0000-4000-8000-000000000099"]})
    assert [status for status, _ in errors] == [429, 404, 422, 404]
    assert all(len(body["errors"]) == 1 for _, body in errors)
    assert ask(cloud, {"do": "find_project_devices", "with": [PROJECT]}, token="wrong") == [
        [401, {"error": "Invalid authentication token"}]]
