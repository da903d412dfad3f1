"""The source `nodes`, as Escalator and the cluster proportional autoscaler use theirs: the built binary reads nodes and pods of
the real API server."""
import datetime
import pathlib
import time

import pytest
import yaml

from harness.auto_scaling import REGION, AutoScaling
from harness.cutting_proxy import CuttingProxy
from harness.deploy import install
from harness.nodes import make_pod
from harness.notification import alert, notification
from harness.wait import eventually, steadily

pytestmark = pytest.mark.since(21, "the API server has policy/v1")

ALWAYS = {"name": "full", "match": ['alertname="Watchdog"'], "every": "1s"}
FULL = {**ALWAYS, "target": "workers", "scale_up": {"value": {"nodes": "utilization"}, "steps": [{"above": 70, "to": 70}]}}
IDLE = {**ALWAYS, "name": "idle", "target": "workers",
        "scale_down": {"value": {"nodes": "utilization"}, "steps": [{"below": 40, "by": 1}, {"below": 30, "by": 2}]}}


@pytest.fixture
def aws(started):
    return started(AutoScaling("workers-a", 2, least=0, most=20))


@pytest.fixture
def cluster(control_plane, namespace, aws, make_nodes):
    """Two nodes of the group, of two cores each; alertscaler may scale workloads, too."""
    install(control_plane, "role.yaml", "role-cluster-wide.yaml")
    return Cluster(control_plane, namespace, aws, make_nodes)


class Cluster:
    def __init__(self, plane, namespace, group, make_nodes):
        self.plane, self.namespace, self.group, self.make_nodes = plane, namespace, group, make_nodes
        self.names, self.pod_count = [], 0
        self.clusters = self.add_nodes(group.instances)

    def add_nodes(self, instances):
        new = {f"{self.namespace}-worker-{len(self.names) + i}": f"aws:///{REGION}a/{instance}"
               for i, instance in enumerate(instances)}
        clusters = self.make_nodes(new)
        for name in new:
            amounts = {"cpu": "2", "memory": "8Gi", "pods": "110"}
            self.plane.admin.patch(f"/api/v1/nodes/{name}/status", {"status": {"allocatable": amounts, "capacity": amounts}})
            self.plane.admin.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {"pool": self.namespace}}})
        self.names += new
        return clusters

    def add_pods(self, node, count):
        """Each asks for half a core."""
        for _ in range(count):
            make_pod(self.plane, self.namespace, node, f"web-{self.pod_count}")
            self.pod_count += 1

    def add_waiting_pod(self, name):
        """One that only these nodes could take, and that nobody places."""
        self.plane.admin.create({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": self.namespace, "name": name},
            "spec": {"schedulerName": "nobody", "nodeSelector": {"pool": self.namespace}, "containers": [
                {"name": "web", "image": "web", "resources": {"requests": {"cpu": "500m"}}}]}})

    def delete_pods(self):
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        for item in self.plane.admin.get(path)["items"]:
            self.plane.admin.request("DELETE", f"{path}/{item['metadata']['name']}?gracePeriodSeconds=0")


@pytest.fixture
def make(cluster, aws, make_daemon):
    def make(rules, **nodes):
        provider = {"type": "aws", "region": REGION, "endpoint": aws.url, "timeout": "5s"}
        targets = {"workers": {"node_group": {"provider": "aws", "name": "workers-a"}, "min": 1, "max": 20,
                               "cooldown": {"up": "1s", "down": "1s"}, "nodes": {"cluster": "default", "drain": False, **nodes}}}
        receiver = {"watchdog": {"match": ['alertname="Watchdog"']}}
        return make_daemon({"targets": targets, "rules": rules}, {"providers": {"aws": provider}, "receiver": receiver,
                                                                  "clusters": cluster.clusters},
                           env={"AWS_ACCESS_KEY_ID": "AKIDTEST", "AWS_SECRET_ACCESS_KEY": "s3cret"})

    return make


def watchdog(daemon, *status):
    return daemon.notify(notification(alert({"alertname": "Watchdog"}, *status)))


def set_ready(plane, names, status, **more):
    for name in names:
        plane.admin.patch(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [{"type": "Ready", "status": status, **more}]}})


def age_readiness(plane, names):
    """They have been Ready for long, so that they are templates."""
    set_ready(plane, names, "True", lastTransitionTime="2020-01-01T00:00:00Z")


def last_seen(daemon):
    seen = [d["input"]["observed"]["nodes"] for d in daemon.records("decision")]
    return seen and seen[-1]


def count_lists(daemon):
    return daemon.metrics().sum("alertscaler_provider_requests_total", operation="list_nodes")


def test_escalators_delta(cluster, aws, make):
    """Two nodes of 2 cores; 3.5 cores are asked for: 87.5 %. Escalator: ceil(2 x (87.5 - 70) / 70) = 1 more."""
    cluster.add_pods(cluster.names[0], 4)
    cluster.add_pods(cluster.names[1], 3)
    daemon = make([FULL, IDLE])
    watchdog(daemon)
    action = daemon.wait_record("action", 60, outcome="applied")
    assert (action["from"], action["to"], action["rule"]) == (2, 3, "full")
    decision = next(d for d in daemon.records("decision") if d["id"] == action["decision"])
    seen = decision["input"]["observed"]["nodes"]
    assert seen == {"open": 2, "requests": {"cpu": 3.5, "memory": 0}, "allocatable": {"cpu": 4, "memory": 16 << 30}}
    assert {p["rule"]: p.get("value") for p in decision["output"]["proposals"]} == {"full": 87.5, "idle": 87.5}


def test_pods_that_wait_for_these_nodes_count(cluster, aws, make):
    """Which pods these are tells what a new node is like: by the configuration, until a node has been Ready for a minute."""
    cluster.add_pods(cluster.names[0], 2)
    daemon = make([FULL], template={"cpu": 2, "memory": "8Gi", "labels": {"pool": cluster.namespace}})
    watchdog(daemon)
    steadily(lambda: not daemon.records("action"), 4, what="25 % is not above 70")
    for number in range(4):
        cluster.add_waiting_pod(f"waits-{number}")
    action = daemon.wait_record("action", 60, outcome="applied")
    assert (action["from"], action["to"]) == (2, 3), "6 of 8 half cores: 75 %"


def test_idle_nodes_leave_at_the_fast_rate_while_the_watchdog_fires(cluster, aws, make):
    aws.grow(4)
    cluster.add_nodes(aws.instances[2:])
    cluster.add_pods(cluster.names[0], 2)
    daemon = make([FULL, IDLE])
    watchdog(daemon)
    action = daemon.wait_record("action", 60, outcome="applied")
    assert (action["from"], action["to"], action["rule"]) == (4, 2, "idle"), "12.5 % is below 30: two"


def test_a_group_is_observed_by_the_facts(cluster, aws, make, control_plane):
    """Once the nodes are watched, no observation lists them; a node that is no longer ready is noticed."""
    cluster.add_pods(cluster.names[0], 2)
    daemon = make([FULL])
    watchdog(daemon)
    eventually(lambda: daemon.target("workers")["status_replicas"] == 2, 60, what="both nodes are ready")
    eventually(lambda: daemon.metrics().select("alertscaler_cluster_objects"), 60, what="the facts are known")
    control_plane.admin.patch(f"/api/v1/nodes/{cluster.names[1]}/status", {"status": {
        "conditions": [{"type": "Ready", "status": "False"}]}})
    eventually(lambda: daemon.target("workers")["status_replicas"] == 1, 60, what="one is not ready")
    lists = count_lists(daemon)
    steadily(lambda: count_lists(daemon) == lists, 4, what="four observations, and no list")


@pytest.mark.parametrize("stalls", [False, True])
def test_a_change_lists_the_nodes_only_if_their_watch_stalls(cluster, aws, make, control_plane, started, stalls):
    """The node that is not Ready leaves. A watch that stays open and stalls does not say which node this is."""
    proxy = started(CuttingProxy(control_plane.url, control_plane.authority.context()).start())
    kubeconfig = pathlib.Path(cluster.clusters["default"]["kubeconfig"])
    settings = yaml.safe_load(kubeconfig.read_text())
    settings["clusters"][0]["cluster"] = {"server": proxy.url}
    kubeconfig.write_text(yaml.safe_dump(settings))

    def tell(_action):
        """The watch receives this event while the change reads the group."""
        control_plane.admin.patch(f"/api/v1/nodes/{cluster.names[0]}", {"metadata": {"labels": {"at": str(time.monotonic_ns())}}})
        time.sleep(0.5)

    daemon = make([FULL, {"name": "less", "match": ['alertname="Idle"'], "target": "workers", "scale_down": {"by": 1}, "max_steps": 1}])
    watchdog(daemon)
    eventually(lambda: daemon.metrics().select("alertscaler_cluster_objects"), 60, what="the facts are known")
    eventually(lambda: daemon.target("workers")["status_replicas"] == 2, 60, what="both nodes are ready")
    proxy.stalls = stalls
    set_ready(control_plane, cluster.names[1:], "False")
    aws.on_ask = tell
    before = len(proxy.seen)
    daemon.notify(notification(alert({"alertname": "Idle"})))
    action = daemon.wait_record("action", 60, outcome="applied")
    assert (action["from"], action["to"]) == (2, 1)
    lines = proxy.seen[before:]
    mark = next(i for i, line in enumerate(lines) if line.startswith("PATCH /api/v1/nodes/"))
    assert lines[mark].split()[1] == f"/api/v1/nodes/{cluster.names[1]}"
    assert sum(line.startswith("GET /api/v1/nodes?limit=") for line in lines[:mark]) == stalls


def test_what_is_watched_is_shown_in_metrics(cluster, aws, make, control_plane):
    """How many objects are known, and for how long nothing was heard; nothing before a rule needs them."""
    cluster.add_pods(cluster.names[0], 3)
    daemon = make([FULL])
    assert not daemon.metrics().select("alertscaler_cluster_objects")
    watchdog(daemon)

    def is_shown():
        metrics, admin = daemon.metrics(), control_plane.admin
        pods = [p for p in admin.get("/api/v1/pods")["items"] if p["status"].get("phase") not in ("Succeeded", "Failed")]
        wanted = {"node": len(admin.get("/api/v1/nodes")["items"]), "pod": len(pods),
                  "budget": len(admin.get("/apis/policy/v1/poddisruptionbudgets")["items"])}
        return {dict(labels)["kind"]: value
                for labels, value in metrics.select("alertscaler_cluster_objects", cluster="default").items()} == wanted

    eventually(is_shown, 60, what="as many as the API server has")
    assert 0 <= daemon.metrics().value("alertscaler_cluster_facts_age_seconds", cluster="default") < 120


def wait_without_a_value(daemon, error):
    """Until a decision has no value for this reason. On a slow machine the first one may say that nothing is known yet, and
    equal decisions are recorded once in ten minutes: then the daemon starts anew."""
    def errors():
        return [d["input"]["observed"]["nodes"]["error"] for d in daemon.records("decision") if d["output"]["reason"] == "metric_unavailable"]

    for attempt in range(1, 4):
        eventually(lambda: len(errors()) >= attempt, 60, what=f"decision {attempt} without a value")
        if error in errors()[-1]:
            return
        daemon.restart()
        watchdog(daemon)
    raise AssertionError(f"expected an error with {error!r}, got {errors()}")


def test_a_cluster_that_cannot_be_read_removes_nothing(cluster, aws, make, control_plane):
    """Without the right to list budgets too little is known: no decrease, and the record says why."""
    role = control_plane.admin.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/alertscaler-nodes")
    keep = [r for r in role["rules"] if "poddisruptionbudgets" not in r["resources"]]
    control_plane.admin.patch("/apis/rbac.authorization.k8s.io/v1/clusterroles/alertscaler-nodes", {"rules": keep})
    try:
        daemon = make([FULL, IDLE])
        watchdog(daemon)
        wait_without_a_value(daemon, "403")
        assert not daemon.records("action") and not aws.removed
    finally:
        control_plane.admin.patch("/apis/rbac.authorization.k8s.io/v1/clusterroles/alertscaler-nodes", {"rules": role["rules"]})


def test_a_group_keeps_its_template_over_a_restart(cluster, aws, make, control_plane):
    """One pod of half a core waits; a node has two. What a node has is known from the last one, which left before the restart."""
    cluster.add_waiting_pod("waits")
    daemon = make([{**FULL, "scale_up": {"value": {"nodes": "utilization"}, "steps": [{"above": 20, "by": 1}]}}], ready_timeout="1m")
    age_readiness(control_plane, cluster.names)
    watchdog(daemon)
    seen = eventually(lambda: last_seen(daemon), 60, what="a decision")
    assert seen["open"] == 2 and "is_template" not in seen and seen["requests"]["cpu"] == 0.5
    aws.size, aws.instances = 0, []
    for name in cluster.names:
        control_plane.admin.request("DELETE", f"/api/v1/nodes/{name}")
    daemon.restart()
    watchdog(daemon)
    decision = eventually(lambda: [d for d in daemon.records("decision") if d["input"]["observed"]["nodes"].get("open") == 0], 60,
                          what="a decision without a node")[0]
    seen = decision["input"]["observed"]["nodes"]
    assert seen["allocatable"] == {"cpu": 2, "memory": 8 << 30} and seen["waiting"] == 1
    assert decision["output"]["proposals"] == [{"desired": 1, "reason": "ok", "rule": "full"}], "one node, whatever the steps say"


def wait_until_older(control_plane, names, seconds):
    """By their creation, which Kubernetes tells in whole seconds."""
    def youngest():
        made = [control_plane.admin.get(f"/api/v1/nodes/{name}")["metadata"]["creationTimestamp"] for name in names]
        return datetime.datetime.now(datetime.timezone.utc) - max(datetime.datetime.fromisoformat(at) for at in made)
    eventually(lambda: youngest() > datetime.timedelta(seconds=seconds + 1), 30, what="the nodes are older")


def test_an_unwell_cluster_buys_and_removes_nothing(cluster, aws, make, control_plane):
    """Most nodes are not Ready, longer than ready_timeout: no value, and nothing is changed, though utilization is above the step.
    When they are back, it counts again."""
    others = len(control_plane.admin.get("/api/v1/nodes")["items"]) - len(cluster.names)
    aws.grow(5 + others)
    cluster.add_nodes(aws.instances[2:])
    for name in cluster.names:
        cluster.add_pods(name, 3)
    set_ready(control_plane, cluster.names, "Unknown")
    wait_until_older(control_plane, cluster.names, 1)
    daemon = make([FULL, IDLE], ready_timeout="1s")
    watchdog(daemon)
    wait_without_a_value(daemon, f"{len(cluster.names)} of {len(cluster.names) + others} nodes of the cluster are not Ready: ")
    steadily(lambda: not daemon.records("action"), 4, what="an unwell cluster stays as it is")
    set_ready(control_plane, cluster.names, "True")
    action = daemon.wait_record("action", 60, outcome="applied")
    assert action["to"] > action["from"] == len(cluster.names), "75 % is above 70"


def test_a_group_is_unwell_by_its_own_limit(cluster, aws, make, control_plane):
    """One of two nodes is not Ready: 50 %, and `most` is 40 %."""
    for name in cluster.names:
        cluster.add_pods(name, 3)
    set_ready(control_plane, cluster.names[:1], "False")
    wait_until_older(control_plane, cluster.names, 1)
    daemon = make([FULL, IDLE], health={"grace": "1s", "newest": "100%", "most": "40%"})
    watchdog(daemon)
    wait_without_a_value(daemon, "1 of the newest 2 nodes of the group are not Ready, 50 %: ")
    steadily(lambda: not daemon.records("action"), 4, what="an unwell group stays as it is")
    set_ready(control_plane, cluster.names, "True")
    daemon.wait_record("action", 60, outcome="applied", to=3)


def test_nodes_in_proportion(cluster, make_daemon, control_plane):
    """As the cluster proportional autoscaler: a replica for every so many nodes of the cluster."""
    control_plane.admin.create({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": cluster.namespace, "name": "dns"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "dns"}}, "template": {
            "metadata": {"labels": {"app": "dns"}}, "spec": {"containers": [{"name": "dns", "image": "dns"}]}}}})
    path = f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments/dns"
    count = len(control_plane.admin.get("/api/v1/nodes")["items"])
    targets = {"dns": {"kubernetes": {"kind": "Deployment", "namespace": cluster.namespace, "name": "dns"}, "max": 100,
                       "tolerance": "0%", "cooldown": {"up": "0s", "down": "1s"}}}
    rules = [{**ALWAYS, "target": "dns", "track": {"average_value": 0.5, "nodes": "count"}, "guard": "none"}]
    daemon = make_daemon({"targets": targets, "rules": rules}, {"clusters": cluster.clusters})
    watchdog(daemon)
    action = daemon.wait_record("action", 60, outcome="applied")
    assert action["to"] >= 2 * len(cluster.names)
    assert action["to"] == 2 * count or len(control_plane.admin.get("/api/v1/nodes")["items"]) != count
    assert control_plane.admin.get(path)["spec"]["replicas"] == action["to"]
