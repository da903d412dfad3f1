"""Who lists a cluster's nodes at its start: only a daemon with a group of nodes, or whose state may have marks.

The API server is played: it counts lists, and refuses them in other words each time. Marks without a rule on the real one:
test_node_groups.py.
"""
import contextlib
import itertools
import shutil
import sqlite3
import tempfile

import pytest
import yaml

from harness.auto_scaling import REGION, AutoScaling
from harness.http import Server
from harness.notification import alert, notification
from harness.wait import eventually, steadily

DEPLOYMENT = {"targets": {"web": {"kubernetes": {"kind": "Deployment", "namespace": "shop", "name": "web"}, "max": 10}},
              "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "web", "scale_up": {"by": 1}}]}
GROUP = {"targets": {"workers": {"node_group": {"provider": "mine", "url": "http://127.0.0.1:1/workers"}, "max": 10}},
         "rules": [{"name": "idle", "match": ['alertname="Idle"'], "target": "workers", "scale_down": {"by": 1}}]}
NODES = {**GROUP, "targets": {"workers": {**GROUP["targets"]["workers"], "nodes": {"select": {"pool": "workers"}}}}}
DRAINED = {"targets": {"workers": {"node_group": {"provider": "aws", "name": "workers-a"}, "max": 10,
                                   "nodes": {"drain": "wait", "drain_after": "1h", "drain_timeout": "2h"}}},
           "rules": GROUP["rules"]}
FAILURE = "nodes that were marked to leave cannot be given back yet"


def merge(old, patch):
    """A JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        merged.pop(key, None)
        if value is not None:
            merged[key] = merge(old.get(key) if isinstance(old, dict) else None, value)
    return merged


def make_node(name, instance):
    return {"kind": "Node", "apiVersion": "v1",
            "metadata": {"name": name, "uid": name, "resourceVersion": "1", "labels": {},
                         "creationTimestamp": "2026-11-20T10:00:00Z"},
            "spec": {"providerID": f"aws:///{REGION}a/{instance}"},
            "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"},
                       "conditions": [{"type": "Ready", "status": "True"}]}}


class ApiServer:
    def __init__(self):
        self.lists = 0
        self.is_allowed = False
        self.nodes = {}
        self.on_patch = lambda: None
        self._words = itertools.count()
        self._server = Server(self._handle)
        self.url = self._server.url

    def _handle(self, asked):
        path = asked.path.partition("?")[0]
        if path == "/api/v1/pods":
            return 200, {}, {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}
        if path.startswith("/api/v1/nodes/"):
            name = path.rpartition("/")[2]
            if asked.method == "PATCH":
                self.on_patch()
                self.nodes[name] = merge(self.nodes[name], asked.json)
            return 200, {}, self.nodes[name]
        if path != "/api/v1/nodes" or "watch" in asked.path:
            return 404, {}, {}
        self.lists += 1
        if self.is_allowed:
            return 200, {}, {"kind": "NodeList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"},
                             "items": list(self.nodes.values())}
        return 403, {}, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
                         "message": f"nodes is forbidden: RBAC: clusterrole {next(self._words)} not found"}

    def stop(self):
        self._server.stop()


@pytest.fixture
def api_server(started):
    return started(ApiServer())


@pytest.fixture
def make(make_daemon, api_server):
    def make(rules, providers=None):
        daemon = make_daemon(rules=rules, env={"AWS_ACCESS_KEY_ID": "AKIDTEST", "AWS_SECRET_ACCESS_KEY": "s3cret"}, start=False)
        (daemon.directory / "kubeconfig").write_text(yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": {"server": api_server.url}}], "users": [{"name": "u", "user": {"token": "t"}}]}))
        daemon.write_config({"clusters": {"default": {"kubeconfig": "kubeconfig"}}, "providers": providers or {"mine": {"type": "http"}}})
        return daemon.start()
    return make


def has_row(daemon):
    """In a copy: the daemon has locked its state."""
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("", "-wal"):
            if (path := daemon.state_file.with_name(daemon.state_file.name + suffix)).exists():
                shutil.copy(path, folder)
        with contextlib.closing(sqlite3.connect(f"{folder}/{daemon.state_file.name}")) as state:
            return state.execute("select count(*) from meta where key = ?", (b"marked_nodes",)).fetchone()[0] > 0


def count_failures(daemon):
    return daemon.process.log_text().count(FAILURE)


def write_marks(daemon):
    """As a process stores it before it marks its first node."""
    with contextlib.closing(sqlite3.connect(daemon.state_file)) as state, state:
        state.execute("insert into meta (key, value) values (?, ?)", (b"marked_nodes", b"2026-11-26T10:00:00Z"))


@pytest.mark.parametrize("rules", [DEPLOYMENT, GROUP], ids=["no-group", "group-without-nodes"])
def test_without_groups_of_nodes_no_node_is_listed(make, api_server, rules):
    daemon = make(rules)
    steadily(lambda: api_server.lists == 0, 2, what="no node is listed")
    assert count_failures(daemon) == 0


@pytest.mark.seconds(300)
def test_a_missing_right_is_reported_once_until_it_was_there(make, api_server):
    """A search that failed is repeated each minute."""
    daemon = make(NODES)
    eventually(lambda: count_failures(daemon) == 1, what="the missing right is reported")
    assert 'the right \\"nodes: list\\" is missing' in daemon.process.log_text()
    eventually(lambda: api_server.lists == 2, 90, what="it is tried again")
    daemon.post("/-/reload", b"")
    steadily(lambda: count_failures(daemon) == 1, 2, what="in other words it is the same")
    api_server.is_allowed = True
    eventually(lambda: api_server.lists == 3, 90, what="it is tried again")
    daemon.restart()
    assert count_failures(daemon) == 1


def test_marks_without_their_rule_are_removed_at_the_next_start(make, api_server, started):
    aws = started(AutoScaling("workers-a", 2, most=8))
    api_server.is_allowed = True
    api_server.nodes = {f"n{i}": make_node(f"n{i}", instance) for i, instance in enumerate(aws.instances)}
    daemon = make(DRAINED, {"aws": {"type": "aws", "region": REGION, "endpoint": aws.url, "timeout": "5s"}})
    rows = []
    api_server.on_patch = lambda: rows.append(has_row(daemon))
    assert not has_row(daemon)
    daemon.notify(notification(alert({"alertname": "Idle"})))
    daemon.wait_record("action", outcome="applied")
    assert rows == [True], "the row is durable before the first mark"
    assert any("alertscaler.io/drain" in node["metadata"].get("annotations", {}) for node in api_server.nodes.values())

    daemon.kill()
    daemon.write_rules(DEPLOYMENT)
    daemon.start()
    eventually(lambda: not any(node["spec"].get("unschedulable") for node in api_server.nodes.values()), 90,
               what="the node is in service again")
    eventually(lambda: not has_row(daemon), what="no node has a mark")


def test_marks_of_an_earlier_process_are_looked_for_until_there_are_none(make, api_server):
    daemon = make(DEPLOYMENT)
    daemon.stop()
    write_marks(daemon)
    daemon.start()
    eventually(lambda: count_failures(daemon) == 1, what="without the right marks stay unknown")
    daemon.stop()
    api_server.is_allowed = True
    known = api_server.lists
    daemon.start()
    eventually(lambda: api_server.lists == known + 1, what="the nodes are listed")
    daemon.stop()
    daemon.start()
    steadily(lambda: api_server.lists == known + 1, 2, what="no node has a mark, and the state knows it")
