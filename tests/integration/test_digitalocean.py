"""An alert scales a node pool of DigitalOcean Kubernetes up and down through the built binary."""
import json

import pytest

from harness.digitalocean import CLUSTER, TOKEN, FakeDigitalOcean, Fault
from harness.notification import alert, notification
from harness.wait import eventually, steadily

CHANGE = "^(PUT|DELETE) "


@pytest.fixture
def cloud(started):
    return started(FakeDigitalOcean())


@pytest.fixture
def make(cloud, make_daemon):
    def start(name="web", cluster=CLUSTER, env=None, provider=None, nodes=None, **config):
        rules = {
            "targets": {"web": {"node_group": {"provider": "doks", "cluster": cluster, "name": name}, "max": 20,
                                "nodes": {"cluster": "none", **(nodes or {})}, "cooldown": {"up": "1s", "down": "1s"}}},
            "rules": [
                {"name": "busy", "match": ['alertname="Busy"'], "target": "web", "scale_up": {"by": 2}, "max_steps": 1},
                {"name": "idle", "match": ['alertname="Idle"'], "target": "web", "scale_down": {"by": 1}, "max_steps": 1},
            ],
        }
        options = {"type": "digitalocean", "endpoint": cloud.url, "timeout": "3s", **(provider or {})}
        return make_daemon(rules, {"providers": {"doks": options}, **config},
                           env={"DIGITALOCEAN_ACCESS_TOKEN": TOKEN} if env is None else env)

    return start


def fire(daemon, name, *status):
    return daemon.notify(notification(alert({"alertname": name}, *status)))


def wait_words(daemon, words):
    return eventually(lambda: [r for r in daemon.records() if words in json.dumps(r)], 60, what=words)[0]


def test_up_and_down(make, cloud):
    cloud.add_pool("other", 1)
    pool = cloud.add_pool("web", 2, labels={"a": "b"})
    before = [n.id for n in pool.present()]
    daemon = make()
    fire(daemon, "Busy")
    eventually(lambda: pool.count == 4, 60, what="it has grown")
    assert [n.id for n in pool.present()][:2] == before
    wait_words(daemon, "req-")          # DigitalOcean's own name of the request
    fire(daemon, "Busy", "resolved")
    fire(daemon, "Idle")
    eventually(lambda: len(pool.nodes) == 3, 60, what="one is gone")
    put, delete = cloud.requests(CHANGE)
    root = f"/v2/kubernetes/clusters/{CLUSTER}/node_pools/{pool.id}"
    assert put == (f"PUT {root}", {"name": "web", "count": 4})
    assert delete[0].startswith(f"DELETE {root}/nodes/") and delete[0].endswith("?skip_drain=1")
    assert pool.count == 3 and pool.fields == {"labels": {"a": "b"}}


def test_the_node_that_is_emptied_is_the_one_that_leaves(make, make_nodes, control_plane, cloud):
    pool = cloud.add_pool("web", 3)
    there = {n.id: n.name for n in pool.nodes}
    clusters = make_nodes({n.name: f"digitalocean://{n.droplet}" for n in pool.nodes})
    daemon = make(nodes={"cluster": "default"}, clusters=clusters)
    fire(daemon, "Idle")
    eventually(lambda: len(pool.present()) == 2, 60, what="one is gone")
    (left,) = set(there) - {n.id for n in pool.present()}
    assert [line.split("/nodes/")[1] for line, _ in cloud.requests("^DELETE ")] == [f"{left}?skip_drain=1"]
    assert [name for name in there.values()
            if control_plane.admin.get(f"/api/v1/nodes/{name}")["spec"].get("unschedulable")] == [there[left]]


def test_dry_run_asks_and_changes_nothing(make, cloud):
    pool = cloud.add_pool("web", 2)
    daemon = make(dry_run=True)
    fire(daemon, "Busy")
    eventually(lambda: cloud.requests("^GET ") and daemon.records("decision"), 60, what="a record")
    assert pool.count == 2 and not cloud.requests("^(?!GET)")


def test_pool_by_its_id_and_token_of_a_file_that_is_replaced(make, cloud, tmp_path):
    pool = cloud.add_pool("web", 2)
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    daemon = make(pool.id, env={}, provider={"token_file": str(token)})
    fire(daemon, "Busy")
    eventually(lambda: daemon.records("action", outcome="applied"), 60, what="it has grown")
    cloud.token = "dop_v1_other"
    token.write_text("dop_v1_other\n")
    fire(daemon, "Busy", "resolved")
    fire(daemon, "Idle")
    eventually(lambda: pool.count == 3, 60, what="one is gone")


# ---- what goes wrong ----


@pytest.mark.parametrize("fault", [
    Fault("^PUT ", status=429, id="too_many_requests", message="API Rate limit exceeded.", headers={"Retry-After": "1"}),
    Fault("^PUT ", status=409, id="conflict"),
    Fault("^PUT ", status=500, id="server_error"),
    Fault("^PUT ", status=503, id="service_unavailable", apply=True),
    Fault("^PUT ", hang_up=True, apply=True),
    Fault("^GET ", status=200, body=b'{"node_pools":[{"na'),
    Fault("^GET ", status=200, body=b"<html/>"),
], ids=lambda f: f"{f.match[1:4]}-{f.status or 'hangup'}{'-applied' if f.apply else ''}")
def test_what_goes_wrong_once_is_done_in_the_end_and_once(make, cloud, fault):
    pool = cloud.add_pool("web", 2)
    cloud.inject(fault)
    daemon = make()
    fire(daemon, "Busy")
    eventually(lambda: pool.count == 4, 120, what="it has grown")
    eventually(lambda: daemon.records("action", outcome="applied"), 120, what="it is known")
    assert len(pool.present()) == 4


@pytest.mark.parametrize("status, id, message", [
    (403, "Forbidden", "You are not authorized to perform this operation"),
    (422, "unprocessable_entity", "invalid node pool"),
])
def test_what_is_refused_is_told(make, cloud, status, id, message):
    pool = cloud.add_pool("web", 2)
    cloud.inject(Fault("^PUT ", status=status, id=id, message=message), times=20)
    daemon = make()
    fire(daemon, "Busy")
    record = wait_words(daemon, f"update_node_pool: HTTP {status} {id}: {message}")
    assert "req-" in json.dumps(record) and pool.count == 2


def test_limit_of_machines_is_told(make, cloud):
    cloud.limit = 3
    pool = cloud.add_pool("web", 2)
    daemon = make()
    fire(daemon, "Busy")
    wait_words(daemon, "not enough available droplet limit")
    assert pool.count == 2


def test_capacity_that_does_not_come_asks_for_no_more(make, cloud):
    pool = cloud.add_pool("web", 2, room=3)
    daemon = make()
    fire(daemon, "Busy")
    eventually(lambda: pool.count == 4, 60, what="it was asked for")
    steadily(lambda: len(cloud.requests("^PUT ")) == 1, 3)


def test_what_does_not_come_is_taken_back(make, cloud):
    pool = cloud.add_pool("web", 2, room=3)
    daemon = make(nodes={"ready_timeout": "3s"})
    fire(daemon, "Busy")
    wait_words(daemon, "1 requested instance did not come")
    eventually(lambda: len(pool.nodes) == 3, 60, what="the node that never came is gone")
    assert pool.count == 3 and [n.state for n in pool.nodes] == ["running"] * 3
    steadily(lambda: len(cloud.requests(CHANGE)) == 2, 3)


def test_the_pools_own_autoscaler_is_respected(make, cloud):
    cloud.add_pool("web", 2, auto_scale=True, min_nodes=1, max_nodes=5)
    daemon = make()
    fire(daemon, "Busy")
    wait_words(daemon, "the node pool's own autoscaler (auto_scale)")
    assert not cloud.requests(CHANGE)


@pytest.mark.parametrize("where, words", [
    ({"name": "other"}, "the cluster has no node pool other"),
    ({"cluster": "other"}, "HTTP 404 not_found: The resource you requested could not be found."),
    ({"env": {"DIGITALOCEAN_ACCESS_TOKEN": "dop_v1_wrong"}}, "HTTP 401 Unauthorized: Unable to authenticate you"),
    ({"env": {}}, "none are set up in any of the places where they are looked for"),
])
def test_what_is_not_there_is_told(make, cloud, where, words):
    cloud.add_pool("web", 2)
    daemon = make(**where)
    fire(daemon, "Busy")
    wait_words(daemon, words)


def test_pool_on_a_later_page(make, cloud):
    for number in range(200):
        cloud.add_pool(f"pool-{number}", 0)
    pool = cloud.add_pool("web", 2)
    fire(make(), "Busy")
    eventually(lambda: pool.count == 4, 60, what="it has grown")
