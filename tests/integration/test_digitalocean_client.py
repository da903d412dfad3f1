"""The fake of DigitalOcean is what its own client takes for DigitalOcean: every action of a node pool, its errors too. What that
client sends is what tests/unit/cloud expects of ours."""
import json
import pathlib
import subprocess
import sys

import pytest

from harness.certificates import Authority
from harness.daemon import environment
from harness.digitalocean import CLUSTER, TOKEN, FakeDigitalOcean, Fault
from harness.moto import find_packages

SCRIPT = pathlib.Path(__file__).with_name("digitalocean_client.py")
POOLS = f"/v2/kubernetes/clusters/{CLUSTER}/node_pools"

pytestmark = pytest.mark.skipif(
    find_packages() is None, reason="the official client for DigitalOcean is not installed: run tests/integration/install-python")


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path / "ca")


@pytest.fixture
def cloud(started, authority):
    return started(FakeDigitalOcean(delay=0.1, tls=authority.issue("digitalocean")))    # the client sends no token without


@pytest.fixture
def client(cloud, authority):
    """client(action, ...) -> what each came to."""
    def ask(*actions, **more):
        given = {"url": cloud.url, "token": TOKEN, "actions": actions, **more}
        done = subprocess.run([sys.executable, SCRIPT, json.dumps(given)], capture_output=True, text=True, timeout=120,
                              check=False,
                              env=environment(PYTHONPATH=find_packages(), REQUESTS_CA_BUNDLE=authority.certificate))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return ask


def test_pool(cloud, client):
    pool = cloud.add_pool("web", 2)
    node = pool.nodes[0].id
    answers = client(
        {"do": "list_node_pools", "with": [CLUSTER]}, {"do": "get_node_pool", "with": [CLUSTER, pool.id]},
        {"do": "update_node_pool", "with": [CLUSTER, pool.id, {"name": "web", "count": 4}]},
        {"do": "delete_node", "with": [CLUSTER, pool.id, node], "options": {"skip_drain": 1}},
        {"do": "get_node_pool", "with": [CLUSTER, pool.id]})
    assert [status for status, _ in answers] == [200, 200, 202, 202, 200]
    seen, alone, grown, _, left = [body for _, body in answers]
    assert seen["node_pools"] == [alone["node_pool"]] and seen["meta"] == {"total": 1}
    assert (alone["node_pool"]["count"], alone["node_pool"]["auto_scale"]) == (2, False)
    assert [n["status"]["state"] for n in alone["node_pool"]["nodes"]] == ["running", "running"]
    assert grown["node_pool"]["count"] == 4 and len(grown["node_pool"]["nodes"]) == 4
    assert left["node_pool"]["count"] == 3 and pool.count == 3
    assert cloud.requests("^(PUT|DELETE) ") == [
        (f"PUT {POOLS}/{pool.id}", {"name": "web", "count": 4}),
        (f"DELETE {POOLS}/{pool.id}/nodes/{node}?skip_drain=1&replace=0", None)]


def test_errors(cloud, client):
    cloud.limit = 5
    pool = cloud.add_pool("web", 2)
    cloud.inject(Fault("^GET ", status=500, id="server_error"))
    errors = client(
        {"do": "get_node_pool", "with": [CLUSTER, pool.id]}, {"do": "get_node_pool", "with": [CLUSTER, "other"]},
        {"do": "list_node_pools", "with": ["other"]},
        {"do": "update_node_pool", "with": [CLUSTER, pool.id, {"name": "web", "count": 6}]},
        {"do": "update_node_pool", "with": [CLUSTER, pool.id, {"count": 3}]})
    assert [(status, body["id"]) for status, body in errors] == [
        (500, "server_error"), (404, "not_found"), (404, "not_found"), (422, "unprocessable_entity"),
        (422, "unprocessable_entity")]
    assert all(body["request_id"].startswith("req-") and body["message"] for _, body in errors)


def test_throttled_client_waits(cloud, client):
    cloud.add_pool("web", 2)
    cloud.inject(Fault("^GET ", status=429, id="too_many_requests", headers={"Retry-After": "1"}))
    ((status, seen),) = client({"do": "list_node_pools", "with": [CLUSTER]}, retries=1)
    assert status == 200 and seen["node_pools"][0]["count"] == 2 and len(cloud.requests("^GET ")) == 2


def test_wrong_token(client):
    (answer,) = client({"do": "list_node_pools", "with": [CLUSTER]}, token="other")
    assert answer[0] == 401 and answer[1]["id"] == "Unauthorized"
