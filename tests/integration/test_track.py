"""`track` on a real cluster, as HPA would: memory over limits per pod, and requests a second, from a real Prometheus.

The pods are the Deployment's own, made by the real controllers and played by kubelets that say they run; what they use is a gauge that the
test sets. Each size is computed by hand from docs/decision.md beside it, and `alertscaler test` has to come to the same ones.
"""
import json
import subprocess

import pytest

from harness import alertmanager as alertmanagers, control_plane as kubernetes, prometheus as prometheuses
from harness.alertmanager import Alertmanager
from harness.daemon import Daemon, dump_yaml, find_binary
from harness.exporter import Exporter
from harness.kube import path_of
from harness.notification import alert, notification
from harness.prometheus import Prometheus
from harness.wait import eventually, steadily
from test_targets import install

pytestmark = pytest.mark.monitoring

NAMESPACE = "track"
MEBI = 1 << 20
MEMORY_QUERY = f'sum by (pod) (memory{{namespace="{NAMESPACE}"}})'
RATE_QUERY = f'sum(rps{{namespace="{NAMESPACE}"}})'
FAST = {"cooldown": {"up": "0s", "down": "0s"}}

RULES = {
    "targets": {
        name: {"kubernetes": {"kind": "Deployment", "namespace": NAMESPACE, "name": name}, "min": 1, "max": 12, **FAST}
        for name in ("memory", "rate", "owned")
    },
    "rules": [
        {"name": "memory", "match": ['alertname="TrackMemory"'], "target": "memory", "every": "1s",
         "track": {"utilization": "50%", "of": "memory_limits", "query": MEMORY_QUERY, "per_pod": True}},
        {"name": "rate", "match": ['alertname="TrackRate"'], "target": "rate", "every": "1s",
         "track": {"average_value": 100, "query": RATE_QUERY}},
        {"name": "owned", "match": ['alertname="TrackOwned"'], "target": "owned", "every": "1s",
         "track": {"utilization": "50%", "of": "memory_limits", "container": "web", "pods": "owned", "query": MEMORY_QUERY,
                   "per_pod": True}},
    ],
}
ALERTS = [{"alert": "TrackMemory", "expr": "vector(1)", "labels": {"scale": "true"}},
          {"alert": "TrackRate", "expr": "vector(1)", "labels": {"scale": "true"}}]


def with_track(name, **more):
    """RULES with another `track` of one rule."""
    return {**RULES, "rules": [{**rule, "track": {**rule["track"], **more}} if rule["name"] == name else rule for rule in RULES["rules"]]}


def deployment(name, replicas):
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": NAMESPACE, "name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                 "template": {"metadata": {"labels": labels},
                              "spec": {"containers": [{"name": "web", "image": "web", "resources": {
                                  "requests": {"memory": "50Mi"}, "limits": {"memory": "100Mi"}}}]}}},
    }


class World:
    def __init__(self, plane, directory):
        self.plane = plane
        self.exporter = Exporter()
        self.kubelets = plane.kubelets
        self.fires = False
        install(plane, "namespace.yaml", "serviceaccount.yaml", "role.yaml", "role-cluster-wide.yaml")
        kubeconfig = plane.write_kubeconfig("track", token=plane.account_token("alertscaler", "alertscaler"))
        self.prometheus = Prometheus(directory / "prometheus", [self.exporter.address]).start()
        self.daemon = Daemon(directory / "alertscaler", RULES, {
            "clusters": {"default": {"kubeconfig": str(kubeconfig)}}, "prometheus": {"url": self.prometheus.url}}).start()
        self.alertmanager = Alertmanager(directory / "alertmanager", self.daemon.url + "/webhook").start()

    def fire(self):
        """From here on the alerts fire: what there is to track has been said before. By the first test that needs it."""
        if self.fires:
            return
        self.fires = True
        self.prometheus.stop()
        self.prometheus.alertmanagers = [self.alertmanager.url.removeprefix("http://")]
        self.prometheus.write_rules(ALERTS)
        self.prometheus._write_config()
        self.prometheus.start()

    def size(self, name):
        return self.plane.admin.replicas(path_of("apps/v1", "Deployment", NAMESPACE, name))

    def steps(self, name):
        return [(r["from"], r["to"]) for r in self.daemon.records("action", outcome="applied") if r["target"].endswith(f"/{name}")]

    def pods(self, name):
        items = self.plane.admin.get(f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=app%3D{name}")["items"]
        return sorted(pod["metadata"]["name"] for pod in items if "deletionTimestamp" not in pod["metadata"])

    def stop(self):
        self.kubelets.ready = lambda pod: True
        for part in (self.alertmanager, self.daemon, self.prometheus, self.exporter):
            part.stop()


@pytest.fixture(scope="module")
def world(session_control_plane, tmp_path_factory):
    for reason in (kubernetes.missing(), alertmanagers.missing(), prometheuses.missing()):
        if reason:
            pytest.skip(reason)
    admin = session_control_plane.admin
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    eventually(lambda: session_control_plane.has_account(NAMESPACE), what="pods can be created")
    world = World(session_control_plane, tmp_path_factory.mktemp("track"))
    admin.create(deployment("memory", 3))
    admin.create(deployment("rate", 2))
    yield world
    world.stop()


def use(world, pods, mebibytes):
    with world.exporter.change():
        for pod, amount in zip(pods, mebibytes):
            if amount is None:
                world.exporter.remove("memory", namespace=NAMESPACE, pod=pod)
            else:
                world.exporter.set("memory", amount * MEBI, namespace=NAMESPACE, pod=pod)


def check_test(tmp_path, name, observed, value, expected):
    """The same rule under `alertscaler test`."""
    (tmp_path / "rules.yaml").write_text(dump_yaml(RULES))
    query = {"query": MEMORY_QUERY, "pods": value} if isinstance(value, dict) else {"query": RATE_QUERY, "value": value}
    alert = "TrackMemory" if name == "memory" else "TrackRate"
    (tmp_path / "test.yaml").write_text(dump_yaml({
        "rule_files": ["rules.yaml"],
        "tests": [{"name": "as on the cluster", "targets": {name: observed}, "queries": [{"at": "0s", **query}],
                   "input": [{"at": "1s", "fire": {"alertname": alert}}],
                   "expect": [{"at": "2s", "target": name, "replicas": expected}]}]}))
    done = subprocess.run([find_binary(), "test", tmp_path / "test.yaml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def pods_of_test(pods, unready=()):
    return [{"name": pod, "ready": pod not in unready, "limits": {"memory": 100 * MEBI}} for pod in pods]


def seen(world, rule):
    """The rule's value and goal, as /metrics shows them."""
    metrics = world.daemon.metrics()
    return tuple(metrics.value(f"alertscaler_rule_{word}", rule=rule) for word in ("value", "goal"))


@pytest.mark.seconds(300)
def test_memory_over_limits_with_missing_and_unready_pods(world, tmp_path):
    ready = lambda count: lambda: len(world.pods("memory")) == count and world.plane.admin.get(
        path_of("apps/v1", "Deployment", NAMESPACE, "memory"))["status"].get("readyReplicas") == count
    eventually(ready(3), what="the pods are ready")
    first = world.pods("memory")
    use(world, first, [80, 80, 65])
    world.exporter.set("rps", 350, namespace=NAMESPACE)
    eventually(lambda: len(world.prometheus.query(MEMORY_QUERY)) == 3)
    # New pods stay unready until they are let go.
    held = {"on": True}
    world.kubelets.ready = lambda pod: not held["on"] or pod["metadata"]["name"] in first or \
        not pod["metadata"]["name"].startswith("memory")
    world.fire()

    # 225 of 300 Mi: 75 % of a goal of 50 %: ceil(1.5 x 3) = 5. Two new pods without samples then count as idle: 225 of 500 is
    # 45 %, which would be fewer than now: the size stays.
    eventually(lambda: world.size("memory") == 5, what="5")
    check_test(tmp_path, "memory", {"replicas": 3, "pods": pods_of_test(first)}, dict(zip(first, [x * MEBI for x in (80, 80, 65)])), 5)
    eventually(lambda: len(world.pods("memory")) == 5)
    steadily(lambda: world.size("memory") == 5, 4, what="missing pods hold it where it is")
    eventually(lambda: seen(world, "memory") == (75, 50), what="the percentage of the pods with samples is shown")

    # All have samples; 80, 80, 65, 60 and 60 of 100: 69 %: ceil(1.38 x 5) = 7. Memory does not care for readiness.
    five = world.pods("memory")
    later = [pod for pod in five if pod not in first]
    use(world, later, [60, 60])
    eventually(lambda: world.size("memory") == 7, what="7")
    values = {**dict(zip(first, [x * MEBI for x in (80, 80, 65)])), **{pod: 60 * MEBI for pod in later}}
    check_test(tmp_path, "memory", {"replicas": 5, "pods": pods_of_test(five, later)}, values, 7)

    held["on"] = False
    world.kubelets.refresh()
    eventually(ready(7), what="seven are ready")

    # 25 of 100 in all of them but one that has no sample, which then counts as if at its whole limit: (6 x 25 + 100) of 700 is
    # 35 %: ceil(0.7 x 7) = 5.
    seven = world.pods("memory")
    values = {pod: 25 * MEBI for pod in seven[:6]}
    check_test(tmp_path, "memory", {"replicas": 7, "pods": pods_of_test(seven)}, values, 5)
    use(world, seven, [25] * 6 + [None])

    # A decision may meet a conflict, as the Deployment's controller writes too; then it is made once more. Once the two pods are
    # gone, the size goes down further: so the third step counts, and the decisions until then.
    scaled = eventually(lambda: len(s := world.steps("memory")) >= 3 and s, what="5 again")
    assert scaled[:3] == [(3, 5), (5, 7), (7, 5)]
    records = [r for r in world.daemon.records() if r["kind"] in ("decision", "action") and r["target"].endswith("/memory")]
    third = [i for i, r in enumerate(records) if r["kind"] == "action" and r["outcome"] == "applied"][2]
    assert all(len(r["input"]["observed"]["pods"]) >= 3 for r in records[:third] if r["kind"] == "decision")


@pytest.mark.seconds(120)
def test_requests_a_second(world, tmp_path):
    world.exporter.set("rps", 350, namespace=NAMESPACE)
    eventually(lambda: world.prometheus.query(RATE_QUERY))
    world.fire()
    # 350 at 100 each: 4.
    eventually(lambda: world.size("rate") == 4, what="4")
    eventually(lambda: seen(world, "rate") == (87.5, 100), what="350 over 4 pods is shown")
    check_test(tmp_path, "rate", {"replicas": 2}, 350, 4)
    world.exporter.set("rps", 1100, namespace=NAMESPACE)
    eventually(lambda: world.size("rate") == 11, what="11")
    check_test(tmp_path, "rate", {"replicas": 4}, 1100, 11)
    # Without data nothing is taken away, and the log says why.
    world.exporter.remove("rps", namespace=NAMESPACE)
    eventually(lambda: any(r["output"]["reason"] == "metric_unavailable" for r in world.daemon.records("decision")
                           if r["target"].endswith("/rate")), what="no data is said")
    assert world.size("rate") == 11
    world.exporter.set("rps", 90, namespace=NAMESPACE)
    eventually(lambda: world.size("rate") == 1, what="1")
    check_test(tmp_path, "rate", {"replicas": 11}, 90, 1)


@pytest.mark.seconds(120)
def test_one_container_of_the_pods_that_it_owns(world, tmp_path):
    """A Job has the same labels. The second container has no limit. The log has what a replay of the rules needs."""
    admin = world.plane.admin
    item = deployment("owned", 2)
    pod = item["spec"]["template"]["spec"]
    pod["containers"].append({"name": "proxy", "image": "proxy"})
    job = {"template": {"metadata": {"labels": {"app": "owned"}}, "spec": {**pod, "restartPolicy": "Never"}}}
    admin.create(item)
    admin.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": NAMESPACE, "name": "load"}, "spec": job})
    eventually(lambda: len(world.pods("owned")) == 3, what="all pods are there")
    own = [pod for pod in world.pods("owned") if not pod.startswith("load")]
    use(world, world.pods("owned"), [1 if pod.startswith("load") else 80 for pod in world.pods("owned")])
    eventually(lambda: len(world.prometheus.query(MEMORY_QUERY)) >= 3, what="Prometheus has the values")
    world.daemon.notify(notification(alert({"alertname": "TrackOwned"})))

    # 80 of 100 Mi in two pods, at a goal of 50 %: 1.6 x 2. With the pod of the Job it would be 53 %, which is tolerated.
    eventually(lambda: world.size("owned") == 4, what="4")
    record = next(r for r in world.daemon.records("decision") if r["target"].endswith("/owned") and r["output"]["reason"] == "scaled")
    seen = {pod["name"]: pod for pod in record["input"]["observed"]["pods"]}
    assert {name for name, pod in seen.items() if pod.get("owner") == "other"} == set(seen) - set(own)
    assert seen[own[0]]["containers"] == [{"name": "web", "resources": {"memory": 100 * MEBI}}]
    (proposal,) = record["input"]["proposals"]
    assert [sample["pod"] for sample in proposal["samples"]] == own

    for rules, size in ((RULES, 4), (with_track("owned", pods="labels"), 2)):
        (tmp_path / "rules.yaml").write_text(dump_yaml(rules))
        done = subprocess.run([find_binary(), "replay", "--rules", tmp_path / "rules.yaml", "-o", "json", world.daemon.log_file],
                              capture_output=True, text=True)
        (target,) = [one for one in json.loads(done.stdout)["targets"] if one["id"].endswith("/owned")]
        assert target["after"]["max"] == size, done.stdout + done.stderr


def test_log_of_the_story_is_whole_and_replays(world):
    for command in (["log", "verify"], ["replay"]):
        done = subprocess.run([find_binary(), *command, world.daemon.log_file], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
