"""HTTP node groups whose nodes are told by `nodes.select`: the built binary, a service that has a size, and the nodes and pods of
the real API server. The nodes have no spec.providerID, as machines without a cloud have none."""
import pytest

from harness.deploy import install
from harness.nodes import make_pod
from harness.notification import alert, notification
from harness.wait import eventually, steadily

pytestmark = pytest.mark.since(21, "the API server has policy/v1")

ALWAYS = {"match": ['alertname="Watchdog"'], "every": "1s", "target": "workers"}
FULL = {**ALWAYS, "name": "full", "scale_up": {"value": {"nodes": "utilization"}, "steps": [{"above": 70, "to": 70}]}}
IDLE = {**ALWAYS, "name": "idle", "scale_down": {"value": {"nodes": "utilization"}, "steps": [{"below": 40, "by": 1}]}}
TAKE = {**ALWAYS, "name": "unneeded", "scale_down": {"take": "unneeded_nodes"}}
WAITS = {**ALWAYS, "name": "waits", "scale_up": {"fit": "pending_pods"}}


class Cluster:
    def __init__(self, plane, namespace, make_nodes, count):
        self.plane, self.namespace, self.pod_count = plane, namespace, 0
        self.names = [f"{namespace}-{i}" for i in range(count)]
        self.other = f"{namespace}-other"
        self.clusters = make_nodes({name: "" for name in [*self.names, self.other]})
        amounts = {"cpu": "2", "memory": "8Gi", "pods": "110"}
        for name in [*self.names, self.other]:
            status = {"allocatable": amounts, "capacity": amounts, "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}]}
            plane.admin.patch(f"/api/v1/nodes/{name}/status", {"status": status})
            pool = "other" if name == self.other else namespace
            plane.admin.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {"pool": pool, "life": "spot"}}, "spec": {"taints": None}})

    def add_pods(self, node, count):
        """Each asks for half a core."""
        for _ in range(count):
            make_pod(self.plane, self.namespace, node, f"web-{self.pod_count}")
            self.pod_count += 1

    def get(self, name):
        return self.plane.admin.get(f"/api/v1/nodes/{name}")

    def marked(self):
        return [name for name in self.names if "alertscaler.io/drain" in self.get(name)["metadata"].get("annotations", {})]


@pytest.fixture
def make(control_plane, namespace, make_nodes, make_daemon):
    install(control_plane, "role.yaml", "role-cluster-wide.yaml")

    def make(service, rules, least=0, **nodes):
        cluster = Cluster(control_plane, namespace, make_nodes, service.size)
        targets = {"workers": {"node_group": {"provider": "mine", "url": service.url}, "min": least, "max": 20,
                               "cooldown": {"up": "1s", "down": "1s"},
                               "nodes": {"select": {"pool": namespace, "life": "spot"}, **nodes}}}
        receiver = {"watchdog": {"match": ['alertname="Watchdog"']}}
        daemon = make_daemon({"targets": targets, "rules": rules}, {"providers": {"mine": {"type": "http"}}, "receiver": receiver,
                                                                    "clusters": cluster.clusters})
        return daemon, cluster

    return make


def watchdog(daemon):
    return daemon.notify(notification(alert({"alertname": "Watchdog"})))


def test_only_nodes_with_the_labels_count(make, node_group):
    """Two nodes of 2 cores, 3.5 cores asked for: 87.5 %, one more. The node with one of the labels alone is another group's."""
    service = node_group(2)
    daemon, cluster = make(service, [FULL, IDLE])
    cluster.add_pods(cluster.names[0], 4)
    cluster.add_pods(cluster.names[1], 3)
    cluster.add_pods(cluster.other, 1)
    watchdog(daemon)
    action = daemon.wait_record("action", 60, outcome="applied")
    assert (action["from"], action["to"], action["rule"]) == (2, 3, "full")
    assert service.puts[-1].body == {"size": 3, "observed": 2}
    decision = next(d for d in daemon.records("decision") if d["id"] == action["decision"])
    assert decision["input"]["observed"]["nodes"] == {"open": 2, "requests": {"cpu": 3.5, "memory": 0},
                                                      "allocatable": {"cpu": 4, "memory": 16 << 30}}
    assert decision["input"]["observed"]["status_replicas"] == 2


def test_a_service_that_removes_by_name_is_told_the_node(make, node_group):
    """The node is marked and cordoned first, and its pod leaves; the request names exactly this node."""
    service = node_group(3, removes_by_name=True)
    daemon, cluster = make(service, [IDLE], least=2, choose="least_utilized")
    cluster.add_pods(cluster.names[0], 1)
    cluster.add_pods(cluster.names[2], 1)
    watchdog(daemon)
    action = daemon.wait_record("action", 60, outcome="applied")
    assert (action["from"], action["to"], action["rule"]) == (3, 2, "idle")
    eventually(lambda: service.applied, 60, what="the service is asked")
    assert service.puts[0].body == {"size": 2, "observed": 3, "remove": [cluster.names[1]]}
    assert cluster.get(cluster.names[1])["spec"].get("unschedulable") and cluster.marked() == [cluster.names[1]]
    removed = daemon.wait_record("nodes", 60, event="removed")
    assert removed["nodes"] == [cluster.names[1]]


def test_while_a_node_is_left_over_none_leaves(make, node_group):
    """Its instance is gone, nobody knows which: no other node is named."""
    service = node_group(3, removes_by_name=True)
    daemon, cluster = make(service, [IDLE])
    service.size = 2
    watchdog(daemon)
    action = daemon.wait_record("action", 60, outcome="rejected")
    assert "3 nodes have the label" in action["message"] and "2 instances" in action["message"]
    assert not service.applied and not cluster.marked()


def test_a_service_that_chooses_itself_gets_a_size(make, node_group):
    """No node is marked: another one than the marked one could leave."""
    service = node_group(3)
    daemon, cluster = make(service, [IDLE])
    watchdog(daemon)
    action = daemon.wait_record("action", 60, outcome="applied")
    assert (action["from"], action["to"]) == (3, 2)
    assert service.puts[0].body == {"size": 2, "observed": 3, "remove": []} and not cluster.marked()


@pytest.mark.parametrize("by_name", [True, False])
def test_take_needs_a_service_that_removes_by_name(make, node_group, by_name):
    service = node_group(2, **({"removes_by_name": True} if by_name else {}))
    daemon, cluster = make(service, [WAITS, TAKE], unneeded={"for": "1s"})
    cluster.add_pods(cluster.names[0], 3)
    watchdog(daemon)
    if by_name:
        action = daemon.wait_record("action", 90, outcome="applied")
        assert (action["from"], action["to"], action["rule"]) == (2, 1, "unneeded")
        eventually(lambda: service.applied, 60, what="the service is asked")
        assert service.puts[0].body["remove"] == [cluster.names[1]]
        return

    def kept():
        return daemon.records("decision") and daemon.records("decision")[-1]["output"].get("kept", {}).get("no_choice") == 2

    eventually(kept, 60, what="both nodes stay, as the service would choose")
    steadily(lambda: not service.puts and not cluster.marked(), 3, what="nothing is asked")
