"""Pools of node groups on the real control plane of today, with its scheduler and KWOK's nodes: the built binary does what Cluster
Autoscaler does, when alerts say so."""
import json
import subprocess

import pytest
import yaml

from harness import control_plane as kubernetes
from harness import alertmanager as alertmanagers, kwok, prometheus as prometheuses
from harness.alertmanager import Alertmanager
from harness.auto_scaling import REGION, AutoScaling, Fault
from harness.control_plane import ControlPlane
from harness.dashboards import read_queries, wait_for_data
from harness.deploy import install
from harness.fleet import Fleet
from harness.notification import alert, notification
from harness.pod_metrics import PodMetrics
from harness.prometheus import Prometheus
from harness.wait import eventually, steadily

missing = kubernetes.missing() or kwok.missing()
pytestmark = [pytest.mark.kubernetes, pytest.mark.since(21, "the API server has policy/v1"),
              pytest.mark.skipif(bool(missing), reason=str(missing))]

AMOUNTS = {"cpu": "2", "memory": "8Gi", "pods": "110"}
TEMPLATE = {"cpu": 2, "memory": "8Gi", "pods": 110}
PODS_WAIT = {"name": "pods-wait", "match": ['alertname="PodsUnschedulable"'], "target": "workers", "every": "1s",
             "scale_up": {"fit": "pending_pods"}}
# Six pods will wait, and they come one after the other: an alert for the first of them would ask for fewer nodes, and again.
PODS_ALERT = {"alert": "PodsUnschedulable", "expr": "sum(kube_pod_status_unschedulable) >= 6"}
WATCHDOG = {"alert": "Watchdog", "expr": "vector(1)"}
UNNEEDED = {"name": "unneeded", "match": ['alertname="Watchdog"'], "target": "workers", "every": "1s",
            "scale_down": {"take": "unneeded_nodes"}}


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    """A control plane of its own: no nodes but those of the groups."""
    plane = ControlPlane(tmp_path_factory.mktemp("kubernetes"))
    scheduler = plane.prepare_scheduler()
    nodes = kwok.Kwok(plane, plane.directory / "kwok")
    try:
        plane.start()
        scheduler.start()
        nodes.start()
        yield plane
    finally:
        nodes.process.kill()
        scheduler.kill()
        plane.stop()


class Cluster:
    def __init__(self, plane, started):
        self.plane, self.started = plane, started
        self.groups, self.fleet = {}, None

    def start_fleet(self, *groups):
        """The groups' nodes are made and deleted with their instances."""
        self.groups = {group.name: group for group in groups}
        labels = {group.name: {"pool": group.name} for group in groups}
        self.fleet = self.started(Fleet(self.plane, groups, dict.fromkeys(labels, AMOUNTS), labels))
        eventually(lambda: len(self.ready_nodes()) == sum(len(g.instances) for g in groups), 60, what="the first nodes are Ready")

    def ready_nodes(self):
        return [node["metadata"]["name"] for node in self.plane.admin.get("/api/v1/nodes")["items"]
                if any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", []))
                and not node["spec"].get("taints")]

    def set_ready(self, names, is_ready):
        """A kubelet that is cut off says nothing: KWOK lets go of these nodes, and they are Unknown; or has them again. The node
        lifecycle controller, which does not run, would give them the taint."""
        annotation = next(iter(kwok.ANNOTATION))
        taints = None if is_ready else [{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]
        for name in names:
            self.plane.admin.patch(f"/api/v1/nodes/{name}", {
                "metadata": {"annotations": {annotation: "fake" if is_ready else None}}, "spec": {"taints": taints}})
            self.plane.admin.patch(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [
                {"type": "Ready", "status": "True" if is_ready else "Unknown"}]}})

    def set_ready_since(self, names, when):
        """Templates are made of nodes that have been Ready for a minute."""
        for name in names:
            self.plane.admin.patch(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": when}]}})

    def deploy(self, replicas, **spec):
        """Each pod asks for half a core: four fill a node. `spec` has more keys of the pods' spec."""
        self.plane.admin.create({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "default", "name": "web"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": {
                "metadata": {"labels": {"app": "web"}}, "spec": {"terminationGracePeriodSeconds": 0, "containers": [
                    {"name": "web", "image": "web", "resources": {"requests": {"cpu": "500m"}}}], **spec}}}})
        self.wait_running(replicas)

    def resize(self, replicas):
        self.plane.admin.patch("/apis/apps/v1/namespaces/default/deployments/web", {"spec": {"replicas": replicas}})

    def running(self):
        return sum(pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
                   for pod in self.plane.admin.get("/api/v1/namespaces/default/pods")["items"])

    def waiting(self):
        return sum(any(c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable" for c in pod["status"].get("conditions", []))
                   for pod in self.plane.admin.get("/api/v1/namespaces/default/pods")["items"])

    def pods_on_marked_nodes(self):
        nodes = [node["metadata"] for node in self.plane.admin.get("/api/v1/nodes")["items"]]
        marked = {node["name"] for node in nodes if "alertscaler.io/drain" in node.get("annotations", {})}
        return [pod["metadata"]["name"] for pod in self.plane.admin.get("/api/v1/pods")["items"]
                if pod["spec"].get("nodeName") in marked and "deletionTimestamp" not in pod["metadata"]]

    def wait_running(self, count, patience=60):
        eventually(lambda: self.running() == count and self.waiting() == 0, patience, what=f"{count} pods run")


@pytest.fixture
def cluster(plane, started):
    made = Cluster(plane, started)
    yield made
    if made.fleet:
        made.fleet.stop()       # else it makes the nodes anew
    plane.admin.request("DELETE", "/apis/apps/v1/namespaces/default/deployments/web")
    eventually(lambda: not plane.admin.get("/api/v1/namespaces/default/pods")["items"], 60, what="no pods are left")
    for node in plane.admin.get("/api/v1/nodes")["items"]:
        plane.admin.request("DELETE", f"/api/v1/nodes/{node['metadata']['name']}")


@pytest.fixture
def make(plane, make_daemon, tmp_path):
    install(plane, "namespace.yaml", "serviceaccount.yaml", "role-nodes.yaml")
    token = tmp_path / "node-token"
    token.write_text(plane.account_token("alertscaler", "alertscaler"))
    clusters = {"default": {"kubeconfig": str(plane.write_kubeconfig("alertscaler", tokenFile=str(token)))}}

    def make(groups, rules=(PODS_WAIT, UNNEEDED), pool=None, nodes=None, is_lone=False, **target):
        """`nodes` is {group: keys of its `nodes`}."""
        providers = {g.name: {"type": "aws", "region": REGION, "endpoint": g.url, "timeout": "5s"} for g in groups}
        targets = {g.name: {"node_group": {"provider": g.name, "name": g.name}, "min": g.least, "max": g.most, "nodes": {
            "cluster": "default", "template": {**TEMPLATE, "labels": {"pool": g.name}},
            "unneeded": {"for": "3s"}, **(nodes or {}).get(g.name, {})}} for g in groups}
        cooldown = {"up": "0s", "down": "1s", "down_after_down": "0s"}
        if is_lone:
            targets[groups[0].name]["cooldown"] = cooldown
        else:
            targets["workers"] = {"pool": {"groups": [g.name for g in groups], **(pool or {})}, "max": 20, "cooldown": cooldown, **target}
        return make_daemon({"targets": targets, "rules": list(rules)},
                           {"providers": providers, "clusters": clusters,
                            "receiver": {"watchdog": {"match": ['alertname="Watchdog"']}}},
                           env={"AWS_ACCESS_KEY_ID": "AKIDTEST", "AWS_SECRET_ACCESS_KEY": "s3cret"})

    return make


def fire(daemon, name, *status):
    return daemon.notify(notification(alert({"alertname": name}, *status)))


def actions(daemon, target):
    return [a for a in daemon.records("action") if a["target_name"] == target and a["outcome"] == "applied"]


@pytest.mark.monitoring
@pytest.mark.skipif(bool(alertmanagers.missing() or prometheuses.missing()), reason="needs Prometheus and Alertmanager")
def test_load_comes_and_goes(cluster, started, make, plane, tmp_path):
    """Everything is real but the cloud: the alert of unschedulable pods fires, the pool chooses the cheaper group, which has no
    capacity, the other one comes, and the pods run. Load ends: nodes are unneeded, are emptied, and go, and no pod waits."""
    cheap = started(AutoScaling("cheap", 0, room=0))
    dear = started(AutoScaling("dear", 1))
    cluster.start_fleet(cheap, dear)
    cluster.deploy(2)
    daemon = make([cheap, dear], pool={"choose": ["price"]}, nodes={"cheap": {"price": 1.0}, "dear": {"price": 3.0}})
    pods = started(PodMetrics(plane))
    repeats = {"receiver": "alertscaler", "matchers": ['alertname="Watchdog"'], "repeat_interval": "5s"}
    manager = started(Alertmanager(tmp_path / "alertmanager", daemon.url + "/webhook", route={"routes": [repeats]}).start())
    prometheus = started(Prometheus(tmp_path / "prometheus", [pods.address, daemon.address], [manager.url], [PODS_ALERT, WATCHDOG]).start())
    left_on_nodes = []
    dear.on_ask = lambda action: left_on_nodes.extend(cluster.pods_on_marked_nodes() if action.startswith("Terminate") else [])
    eventually(lambda: daemon.records("incident", event="opened"), 60, what="the Watchdog's alert is here")
    steadily(lambda: not dear.removed, 3, what="the node that is needed stays")
    wait_for_data(prometheus, read_queries("target.json", "dear", rows=lambda row: row.startswith("Nodes")))
    cluster.resize(10)
    cluster.wait_running(10, 120)
    assert cheap.sizes == [2], "the cheaper one was asked, once"
    assert len(dear.instances) == 3
    eventually(lambda: [r for r in daemon.records("incident", event="closed") if r["labels"]["alertname"] == "PodsUnschedulable"], 60,
               what="the alert is resolved")
    cluster.resize(2)
    eventually(lambda: len(dear.instances) == 1, 120, what="unneeded nodes have left")
    cluster.wait_running(2)
    steadily(lambda: len(dear.instances) == 1 and cluster.waiting() == 0, 5, what="the node that is needed stays")
    told = [(r["event"], r["nodes"]) for r in daemon.records("nodes")]
    for name in cluster.fleet.gone:
        events = [event for event, nodes in told if name in nodes]
        assert events[-2:] == ["marked", "removed"], name
    assert len(cluster.fleet.gone) == 2 and not left_on_nodes, "they were empty when they went"
    assert cheap.sizes in ([2], [2, 0]), "it was not asked again; in time, what did not come is taken back"


def test_pods_that_fit_what_is_on_its_way_buy_nothing_more(cluster, started, make):
    """Instances that boot are not ordered again, in their group or in another one."""
    slow = started(AutoScaling("slow", 1, most=20))
    other = started(AutoScaling("other", 0))
    cluster.start_fleet(slow, other)
    cluster.deploy(2)
    slow.room = 1
    slow.shortage = ""
    daemon = make([slow, other], pool={"choose": ["priority"]}, nodes={"slow": {"priority": 20}, "other": {"priority": 10}})
    cluster.resize(10)
    eventually(lambda: cluster.waiting() == 6, 60, what="six pods wait")
    fire(daemon, "PodsUnschedulable")
    eventually(lambda: slow.sizes, 60, what="nodes are ordered")
    steadily(lambda: slow.sizes == [3] and not other.sizes, 8, what="two nodes are on their way, and nobody orders more")
    slow.room = 1000
    slow.grow(3)
    cluster.wait_running(10, 60)


def test_pods_with_a_selector_bring_an_empty_group_back(cluster, started, make):
    """No pod waits while the group has a node: what is remembered of the node has labels that no pod read then."""
    group = started(AutoScaling("again", 1))
    cluster.start_fleet(group)
    cluster.set_ready_since(cluster.ready_nodes(), "2026-01-01T00:00:00Z")
    daemon = make([group])
    fire(daemon, "Watchdog")
    eventually(lambda: group.size == 0 and not cluster.ready_nodes(), 60, what="the node leaves")
    cluster.deploy(0, nodeSelector={"pool": "again"})
    cluster.resize(2)
    eventually(lambda: cluster.waiting() == 2, 60, what="two pods wait")
    fire(daemon, "PodsUnschedulable")
    cluster.wait_running(2, 60)
    assert group.sizes == [1]


def test_the_pools_max_holds(cluster, started, make):
    group = started(AutoScaling("workers-a", 1))
    cluster.start_fleet(group)
    cluster.deploy(2)
    daemon = make([group], max=2)
    cluster.resize(20)
    eventually(lambda: cluster.waiting() == 16, 60, what="sixteen pods wait")
    fire(daemon, "PodsUnschedulable")
    eventually(lambda: len(group.instances) == 2, 60, what="one node comes")
    eventually(lambda: [d for d in daemon.records("decision") if d["output"]["reason"] == "at_max"], 60, what="at_max")
    assert group.sizes == [2]
    metrics = daemon.metrics()
    assert 12 <= metrics.value("alertscaler_pool_pending_pods", target="workers") <= 16, "four have got a place, or get one now"
    assert metrics.value("alertscaler_group_nodes", target="workers-a", state="open") == 2
    assert metrics.value("alertscaler_group_requested_ratio", target="workers-a", resource="cpu") >= 0.5
    told = subprocess.run([daemon.binary, "explain", "--target=workers", str(daemon.log_file)], text=True, capture_output=True, check=True).stdout
    assert "\nPods that wait\n" in told and "    could take them: workers-a\n" in told


def test_without_the_watchdog_nothing_is_removed(cluster, started, make):
    """The rule fires, but the proof that monitoring lives is too old."""
    group = started(AutoScaling("workers-a", 3))
    cluster.start_fleet(group)
    cluster.deploy(2)
    idle = {**UNNEEDED, "match": ['alertname="Idle"']}
    daemon = make([group], rules=[idle])
    fire(daemon, "Idle")
    eventually(lambda: [d for d in daemon.records("decision") if d["output"]["reason"] == "guarded"], 60, what="guarded")
    steadily(lambda: not group.removed, 5, what="all nodes stay")


def test_one_group_is_a_pool_of_itself(cluster, started, make):
    group = started(AutoScaling("lone", 1))
    cluster.start_fleet(group)
    cluster.deploy(2)
    daemon = make([group], rules=[{**PODS_WAIT, "target": "lone"}], is_lone=True)
    cluster.resize(8)
    eventually(lambda: cluster.waiting() == 4, 60, what="four pods wait")
    fire(daemon, "PodsUnschedulable")
    cluster.wait_running(8, 60)
    assert group.sizes == [2]
    assert [(a["from"], a["to"]) for a in actions(daemon, "lone")] == [(1, 2)]


def test_a_lone_group_has_the_value_of_its_nodes(cluster, started, make):
    """Escalator with scale_on_starve: nodes by what is requested of them, and one more for a pod that finds no room."""
    group = started(AutoScaling("lone", 3))
    cluster.start_fleet(group)
    cluster.deploy(2)
    idle = {"name": "idle", "match": ['alertname="Watchdog"'], "target": "lone", "every": "1s", "scale_down": {
        "value": {"nodes": "utilization"}, "steps": [{"below": 40, "by": 1}]}}
    daemon = make([group], rules=[{**PODS_WAIT, "target": "lone"}, idle], is_lone=True)
    fire(daemon, "PodsUnschedulable")
    fire(daemon, "Watchdog")
    action = daemon.wait_record("action", 60, outcome="applied")
    assert (action["from"], action["to"], action["rule"]) == (3, 2, "idle"), "1 of 6 cores: 16.7 %"
    decision = next(d for d in daemon.records("decision") if d["id"] == action["decision"])
    assert decision["input"]["observed"]["nodes"] == {
        "open": 3, "requests": {"cpu": 1, "memory": 0}, "allocatable": {"cpu": 6, "memory": 24 << 30}}


def test_half_the_cluster_behind_a_partition_is_neither_replaced_nor_deleted(cluster, started, make):
    group = started(AutoScaling("parted", 8, most=20))
    cluster.start_fleet(group)
    cluster.deploy(2)
    daemon = make([group], nodes={"parted": {"ready_timeout": "3s", "unneeded": {"for": "3s", "unready_for": "3s"}}})
    names = cluster.fleet.nodes(group)
    cluster.set_ready(names[:4], False)
    cluster.resize(30)
    eventually(lambda: cluster.waiting() > 0, 60, what="pods wait")
    fire(daemon, "Watchdog")
    fire(daemon, "PodsUnschedulable")
    unwell = eventually(lambda: [d for d in daemon.records("decision") if d["output"]["reason"] == "metric_unavailable"], 60,
                        what="it is told why nothing is decided")
    assert "4 of 8 nodes" in str(unwell[0]), unwell[0]
    steadily(lambda: not group.sizes and not group.removed, 8, what="nothing is bought, nothing is deleted")
    fire(daemon, "PodsUnschedulable", "resolved")
    cluster.set_ready(names[:4], True)
    cluster.wait_running(30, 60)
    assert not group.sizes


def test_a_group_that_launches_nothing_is_left_for_the_next_one(cluster, started, make):
    """A broken launch template: the provider takes the size, and no instance comes, ever."""
    broken = started(AutoScaling("broken", 0, room=0))
    broken.shortage = "The specified launch template, with template ID lt-1, does not exist. Launching EC2 instance failed."
    sound = started(AutoScaling("sound", 1))
    cluster.start_fleet(broken, sound)
    cluster.deploy(2)
    daemon = make([broken, sound], pool={"choose": ["priority"]},
                  nodes={"broken": {"priority": 20, "ready_timeout": "5s"}, "sound": {"priority": 10}})
    cluster.resize(8)
    eventually(lambda: cluster.waiting() == 4, 60, what="four pods wait")
    fire(daemon, "PodsUnschedulable")
    cluster.wait_running(8, 90)
    assert len(sound.instances) == 2
    eventually(lambda: broken.size == 0, 60, what="what does not come is taken back")
    cluster.resize(12)
    cluster.wait_running(12, 60)
    assert broken.sizes == [1, 0], "it backs off"


def test_a_group_whose_requests_fail_does_not_hold_up_the_next_one(cluster, started, make):
    """Whether its requests are accepted is not known: it backs off, and another group is asked at once."""
    failing = started(AutoScaling("failing", 0))
    sound = started(AutoScaling("sound", 1))
    cluster.start_fleet(failing, sound)
    cluster.deploy(2)
    failing.inject(Fault("SetDesiredCapacity", 500), times=1000)
    daemon = make([failing, sound], pool={"choose": ["priority"]},
                  nodes={"failing": {"priority": 20}, "sound": {"priority": 10}})
    cluster.resize(8)
    eventually(lambda: cluster.waiting() == 4, 60, what="four pods wait")
    fire(daemon, "PodsUnschedulable")
    cluster.wait_running(8, 25)
    asked = failing.asked.count("SetDesiredCapacity")
    assert sound.sizes == [2] and asked > 0
    steadily(lambda: failing.asked.count("SetDesiredCapacity") == asked, 15, what="it backs off")


def test_a_minimum_has_marked_nodes_back(cluster, started, make):
    """All nodes of a group are to leave, so its size is 0; its new minimum keeps them."""
    group = started(AutoScaling("keeps", 3))
    cluster.start_fleet(group)
    cluster.deploy(10)
    away = {"name": "away", "match": ['alertname="Away"'], "target": "keeps", "scale_to": 0}
    daemon = make([group], rules=[away], nodes={"keeps": {"drain": "wait", "drain_after": "5m"}}, is_lone=True)
    fire(daemon, "Away")
    eventually(lambda: len([n for r in daemon.records("nodes") for n in r["nodes"] if r["event"] == "marked"]) == 3, 60,
               what="all nodes are marked")
    fire(daemon, "Away", "resolved")
    rules = yaml.safe_load((daemon.directory / "rules" / "rules.yaml").read_text())
    rules["targets"]["keeps"].update({"min": 3, "enforce_bounds": True})
    daemon.write_rules(rules)
    daemon.reload()
    eventually(lambda: sorted(n for r in daemon.records("nodes") for n in r["nodes"] if r["event"] == "kept")
               == sorted(cluster.fleet.nodes(group)), 60, what="all nodes are kept")
    assert not group.sizes and not group.removed


def test_a_surge_in_the_middle_of_a_drain_has_its_nodes_back(cluster, started, make):
    group = started(AutoScaling("waits", 2))
    cluster.start_fleet(group)
    cluster.deploy(2)
    daemon = make([group], nodes={"waits": {"drain": "wait", "drain_after": "5m"}})
    fire(daemon, "Watchdog")
    (node,) = daemon.wait_record("nodes", 60, event="marked")["nodes"]
    cluster.resize(8)
    eventually(lambda: cluster.waiting() >= 3, 60, what="the open node is full, and others wait")
    fire(daemon, "PodsUnschedulable")
    cluster.wait_running(8, 60)
    assert daemon.wait_record("nodes", event="kept")["nodes"] == [node]
    assert not group.sizes and not group.removed, "the provider was not asked"


def test_one_strict_budget_does_not_stop_growth(cluster, started, make, plane):
    """It keeps its pods where they are, and nothing else."""
    group = started(AutoScaling("strict", 1))
    cluster.start_fleet(group)
    cluster.deploy(2)
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    plane.admin.post(budgets, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
                               "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}}})
    try:
        daemon = make([group])
        cluster.resize(6)
        eventually(lambda: cluster.waiting() == 2, 60, what="two pods wait")
        fire(daemon, "Watchdog")
        fire(daemon, "PodsUnschedulable")
        cluster.wait_running(6, 60)
        steadily(lambda: len(group.instances) == 2 and not daemon.records("nodes"), 8, what="both nodes stay")
    finally:
        plane.admin.delete(f"{budgets}/web")


def test_whether_it_helped_is_known_of_a_pool(cluster, started, make):
    """Of the groups' actions: when their nodes came, and when the alert that wanted them was resolved."""
    group = started(AutoScaling("helps", 1))
    cluster.start_fleet(group)
    cluster.deploy(2)
    first = list(group.instances)
    cluster.fleet.never = lambda instance: instance not in first
    daemon = make([group])
    cluster.resize(8)
    eventually(lambda: cluster.waiting() == 4, 60, what="four pods wait")
    fire(daemon, "PodsUnschedulable")
    action = daemon.wait_record("action", 60, outcome="applied")
    fire(daemon, "PodsUnschedulable", "resolved")
    steadily(lambda: not daemon.records("effect"), 3, what="its node has not come yet")
    cluster.fleet.never = lambda instance: False
    cluster.wait_running(8, 60)
    effect = daemon.wait_record("effect", 60)
    assert (effect["action"], effect["target_name"], effect["rule"]) == (action["id"], "helps", "pods-wait")
    assert (effect["from"], effect["to"], effect["ended"]) == (1, 2, "resolved")
    assert effect["ready_after"] > effect["resolved_after"] >= 0 and effect["ready_after"] >= 3
    said = subprocess.run([daemon.binary, "effects", "-o", "json", str(daemon.log_file)], text=True, capture_output=True, check=True)
    rule, = json.loads(said.stdout)["rules"]
    assert (rule["rule"], rule["actions"], rule["resolved"], rule["went_back"]) == ("pods-wait", 1, 1, 0)
    assert rule["ready_after"] == {"count": 1, "median": effect["ready_after"], "p90": effect["ready_after"]}
    assert daemon.metrics().value("alertscaler_time_to_ready_seconds_count", rule="pods-wait") == 1
    assert daemon.metrics().value("alertscaler_effects_total", rule="pods-wait", ended="resolved") == 1


def order_by_hand(cluster, group, count):
    """Somebody else raises the size; what comes runs, and never becomes a node. Returns the instances."""
    known = set(group.instances)
    cluster.fleet.never = lambda instance: instance not in known
    group.grow(group.size + count)
    return [instance for instance in group.instances if instance not in known]


def test_instances_of_others_that_never_become_nodes_make_room(cluster, started, make):
    """The group is at its maximum with them. They leave by name, and nodes come that help."""
    group = started(AutoScaling("stuck", 1, most=3))
    cluster.start_fleet(group)
    cluster.deploy(2)
    stuck = order_by_hand(cluster, group, 2)
    daemon = make([group], nodes={"stuck": {"ready_timeout": "5s"}})
    cluster.resize(8)
    eventually(lambda: cluster.waiting() == 4, 60, what="four pods wait")
    fire(daemon, "PodsUnschedulable")
    eventually(lambda: len(group.removed) == 2, 60, what="they leave")
    assert sorted(group.removed) == sorted(stuck), "nobody else"
    removal, = eventually(lambda: [a for a in actions(daemon, "stuck") if a["to"] < a["from"]], what="it is recorded")
    assert (removal["from"], removal["to"]) == (3, 1) and not removal["rule"]
    assert removal["message"] == "2 instances never became nodes: removed"
    decision = next(d for d in daemon.records("decision") if d["id"] == removal["decision"])
    assert decision["output"]["overdue"] == [{"group": "stuck", "count": 2}]
    cluster.fleet.never = lambda instance: False
    cluster.wait_running(8, 90)
    assert len(group.instances) == 2 and not set(stuck) & set(group.instances)


def test_nodes_of_others_that_never_register_are_not_waited_for(cluster, started, make):
    """Another controller has requested three, and the provider makes no instance of two: after ready_timeout another group grows."""
    stale = started(AutoScaling("stale", 1, room=1))
    other = started(AutoScaling("other", 0))
    cluster.start_fleet(stale, other)
    cluster.deploy(2)
    stale.shortage, stale.size = "", 3
    daemon = make([stale, other], pool={"choose": ["priority"]},
                  nodes={"stale": {"priority": 20, "ready_timeout": "8s"}, "other": {"priority": 10}})
    cluster.resize(8)
    eventually(lambda: cluster.waiting() == 4, 60, what="four pods wait")
    fire(daemon, "PodsUnschedulable")
    steadily(lambda: not other.sizes, 4, what="they may still come")
    cluster.wait_running(8, 40)
    assert other.sizes == [1] and not stale.sizes
    grown = next(d for d in daemon.records("decision") if d["target_name"] == "workers" and d["output"]["desired"] > d["output"]["replicas"])
    assert grown["input"]["observed"]["groups"][0]["unregistered"] == 2
    def backs_off():
        observed = [d["input"]["observed"] for d in daemon.records("decision") if d["target_name"] == "workers"]
        return any(each["groups"][0].get("open_at") for each in observed if "groups" in each)    # a failed read has none
    eventually(backs_off, 80, what="the group backs off")


@pytest.fixture
def waiting_pod(cluster):
    path = "/api/v1/namespaces/default/pods"
    cluster.plane.admin.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "default", "name": "waits"}, "spec": {
        "containers": [{"name": "web", "image": "web", "resources": {"requests": {"cpu": "500m"}}}]}})
    eventually(lambda: cluster.waiting() == 1, 60, what="a pod waits")
    yield
    cluster.plane.admin.request("DELETE", f"{path}/waits?gracePeriodSeconds=0")


@pytest.mark.parametrize("size", [0, 2])
def test_with_the_wrong_cluster_nothing_is_removed(cluster, started, make, waiting_pod, size):
    """No instance of the group is a node of the cluster, though all of them serve elsewhere: neither what others ordered nor what
    an increase from 0 brought is removed."""
    group = started(AutoScaling("elsewhere", size))
    cluster.start_fleet()
    daemon = make([group], nodes={"elsewhere": {"ready_timeout": "3s"}})
    fire(daemon, "PodsUnschedulable")
    if size == 0:
        failed = eventually(lambda: [a for a in daemon.records("action") if a["outcome"] == "rejected"], 60, what="it cannot be taken back")
        assert (failed[0]["from"], failed[0]["to"]) == (1, 0)
        assert "none of the 1 instances is a node of cluster default" in failed[0]["message"]
    steadily(lambda: not group.removed, 8, what="all of them stay")
    assert len(group.instances) == max(size, 1)
