"""`rollout` of a target on the real API server and controllers, beside the real HPA: a rollout makes HPA's size grow without any
load, and ours with `by_spec` does not. With `wait` nothing is removed while a rollout is under way, whatever becomes of it."""
import subprocess
import threading
import time

import pytest

from harness.custom_metrics import MetricsApis, Table
from harness.deploy import install
from harness.wait import eventually, steadily

pytestmark = pytest.mark.kubernetes

HPA_FLAGS = ["--horizontal-pod-autoscaler-sync-period=1s", "--concurrent-horizontal-pod-autoscaler-syncs=10"]
ANY = {"policies": [{"type": "Pods", "value": 100, "periodSeconds": 1}]}
OFF = {"selectPolicy": "Disabled"}
UPWARDS = {"scaleUp": ANY, "scaleDown": OFF}
AT_ONCE = {"scaleUp": ANY, "scaleDown": {"stabilizationWindowSeconds": 0, **ANY}}
SIZE = 10
SECONDS = 10            # how long a new pod must be ready until an old one goes: the surge lasts as long
GROUP = "argoproj.io"
NEVER_READY = "broken"

ROLLOUTS = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"rollouts.{GROUP}"},
    "spec": {
        "group": GROUP, "scope": "Namespaced", "names": {"plural": "rollouts", "singular": "rollout", "kind": "Rollout"},
        "versions": [{
            "name": "v1alpha1", "served": True, "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.HPAReplicas",
                                                     "labelSelectorPath": ".status.selector"}},
        }],
    },
}


def deployment(namespace, name, **spec):
    labels = {"app": name}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": namespace, "name": name}, "spec": {
        "replicas": SIZE, "minReadySeconds": SECONDS, "selector": {"matchLabels": labels},
        "strategy": {"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 0}},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}}, **spec}}


def path_of_deployment(namespace, name):
    return f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"


def roll_out(plane, namespace, name, image):
    plane.admin.patch(path_of_deployment(namespace, name),
                      {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}})


def is_rolled_out(plane, namespace, name):
    """As `kubectl rollout status`."""
    item = plane.admin.get(path_of_deployment(namespace, name))
    status, size = item.get("status", {}), item["spec"]["replicas"]
    return (status.get("observedGeneration") == item["metadata"]["generation"]
            and size == status.get("replicas") == status.get("updatedReplicas") == status.get("availableReplicas"))


@pytest.fixture
def kubeconfig(control_plane, tmp_path):
    install(control_plane, "namespace.yaml", "serviceaccount.yaml", "role.yaml", "role-cluster-wide.yaml")
    token = tmp_path / "token"
    token.write_text(control_plane.account_token("alertscaler", "alertscaler"))
    return control_plane.write_kubeconfig("rollouts", tokenFile=str(token))


@pytest.fixture
def make(make_daemon, make_prometheus, exporter, kubeconfig):
    """Starts alertscaler with an `always` rule for each target, by the gauge load{app=...}."""
    prometheus = make_prometheus(targets=[exporter.address])

    def start(targets, **track):
        return make_daemon({
            "targets": {name: {"min": 1, "max": 40, "cooldown": {"up": "0s", "down": "0s"}, **target} for name, target in targets.items()},
            "rules": [{"name": f"{name}-load", "always": True, "target": name, "every": "1s",
                       "track": {**track, "query": f'load{{app="{name}"}}'}} for name in targets],
        }, {"clusters": {"default": {"kubeconfig": str(kubeconfig)}}, "prometheus": {"url": prometheus.url}})

    return start


# Beside HPA


class Load(Table):
    def __init__(self, value):
        self.value = value

    def external(self, namespace, metric):
        return [str(self.value)]


class Sizes:
    """The sizes of Deployments, five times a second."""

    def __init__(self, plane, namespace, names):
        self.plane, self.namespace, self.names = plane, namespace, names
        self.rows, self._ended = [], threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        began = time.monotonic()
        while not self._ended.wait(0.2):
            items = {item["metadata"]["name"]: item for item in
                     self.plane.admin.get(f"/apis/apps/v1/namespaces/{self.namespace}/deployments")["items"]}
            self.rows.append((time.monotonic() - began,
                              [(items[name]["spec"]["replicas"], items[name].get("status", {}).get("replicas", 0)) for name in self.names]))

    def stop(self):
        self._ended.set()
        self._thread.join()

    def series(self, name):
        """The sizes in order, without repeats."""
        column, sizes = self.names.index(name), []
        for _, row in self.rows:
            if sizes[-1:] != [row[column][0]]:
                sizes.append(row[column][0])
        return sizes

    def print(self, title):
        print(f"\n{title}\n{'s':>6} " + " ".join(f"{name:>16}" for name in self.names) + "   (size/pods)")
        last = None
        for seconds, row in self.rows:
            if row != last:
                print(f"{seconds:6.1f} " + " ".join(f"{f'{size}/{pods}':>16}" for size, pods in row))
            last = row


@pytest.mark.parametrize("title, goal, load, behavior", [
    ("sum", {"average_value": 100}, 1050, AT_ONCE),
    ("value", {"value": 100}, 80, UPWARDS),
])
@pytest.mark.since(23, "HPA is autoscaling/v2")
def test_a_rollout_grows_hpa_and_not_by_spec(control_plane, namespace, make, exporter, started, title, goal, load, behavior):
    """sum: 105 of 100 for each pod. value: 80 of 100, and a size that HPA may not lower."""
    plane, names = control_plane, ["hpa", "as-hpa", "by-spec"]
    word = {"average_value": "AverageValue", "value": "Value"}[next(iter(goal))]
    for name in names:
        plane.admin.create(deployment(namespace, name))
        exporter.set("load", load, app=name)
    for name in names:
        eventually(lambda: is_rolled_out(plane, namespace, name), what=f"{name} has its pods")
    plane.admin.create({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"namespace": namespace, "name": "hpa"}, "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "hpa"}, "minReplicas": 1, "maxReplicas": 40,
        "behavior": behavior, "metrics": [{"type": "External", "external": {
            "metric": {"name": "load"}, "target": {"type": word, word[0].lower() + word[1:]: "100"}}}]}})
    apis = MetricsApis(plane, namespace, Load(load))
    started(apis)
    apis.start()
    started(plane.prepare_controller_manager("hpa-of-rollouts", ["horizontalpodautoscaling"], *HPA_FLAGS)).start()
    daemon = make({name: {"kubernetes": {"kind": "Deployment", "namespace": namespace, "name": name}, "behavior": behavior, "rollout": rollout}
                   for name, rollout in (("as-hpa", "as_hpa"), ("by-spec", "by_spec"))}, **goal)
    for name in names[1:]:
        daemon.wait_record("decision", target_name=name)
    hpa = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers/hpa"
    eventually(lambda: plane.admin.get(hpa)["status"]["currentMetrics"], what="HPA has its metric")

    sizes = Sizes(plane, namespace, names)
    try:
        time.sleep(3)
        assert [sizes.series(name) for name in names] == [[SIZE]] * 3, "without a rollout all three stay"
        for name in names:
            roll_out(plane, namespace, name, "app:2")
        for name in names:
            eventually(lambda: is_rolled_out(plane, namespace, name), timeout=180, what=f"the rollout of {name} has ended")
        time.sleep(3)
    finally:
        sizes.stop()
        sizes.print(f"{title}: goal 100, load {load}, 10 replicas, maxSurge 50 %")
    assert max(sizes.series("hpa")) > SIZE
    assert max(sizes.series("as-hpa")) > SIZE
    assert sizes.series("by-spec") == [SIZE]


# wait


def held(daemon, name):
    return daemon.records("decision", target_name=name)[-1]["output"]["reason"] == "rollout_under_way"


@pytest.fixture
def waiting(control_plane, namespace, make, exporter):
    """A Deployment that has its pods, with `rollout: wait`, and a load that leads to its size."""
    plane = control_plane
    plane.admin.create(deployment(namespace, "web", progressDeadlineSeconds=SECONDS + 5))
    eventually(lambda: is_rolled_out(plane, namespace, "web"), what="it has its pods")
    exporter.set("load", 1000, app="web")
    daemon = make({"web": {"kubernetes": {"kind": "Deployment", "namespace": namespace, "name": "web"}, "rollout": "wait"}}, average_value=100)
    daemon.wait_record("decision", target_name="web")
    daemon.size = lambda: plane.admin.get(path_of_deployment(namespace, "web"))["spec"]["replicas"]
    return daemon


def say(daemon, *command):
    done = subprocess.run([daemon.binary, *command], text=True, capture_output=True)
    assert done.returncode == 0, done
    return done.stdout


def test_nothing_is_removed_while_a_rollout_is_under_way(control_plane, namespace, waiting, exporter):
    roll_out(control_plane, namespace, "web", "app:2")
    exporter.set("load", 300, app="web")
    eventually(lambda: held(waiting, "web"), what="the decrease is held")
    assert "A rollout of the workload is under way" in say(waiting, "explain", "--target=web", str(waiting.log_file))
    assert "Nothing goes down: a rollout is under way. This holds until " in waiting.get("/targets/web").text
    assert ": held by rollout" in say(waiting, "status", f"--url={waiting.url}")
    holds = waiting.target("web")["holds"]
    assert [(hold["direction"], hold["by"], hold["name"]) for hold in holds] == [("down", "rollout", "")] and holds[0]["until"], holds
    steadily(lambda: waiting.size() == SIZE or is_over(control_plane, namespace), 4, what="it keeps its pods")
    eventually(lambda: waiting.size() == 3, what="the decrease after the rollout")
    assert is_over(control_plane, namespace)
    assert waiting.target("web")["holds"] == []
    assert " 0 differ" in say(waiting, "replay", str(waiting.log_file))
    replayed = say(waiting, "replay", "--rules", str(waiting.directory / "rules"), str(waiting.log_file))
    mean = next(float(line.split()[5]) for line in replayed.splitlines() if line.split()[:1] == ["after"])
    assert mean > 5, replayed       # it knows of a decision 10 s early; without the rollout it would be 3 at once


def is_over(plane, namespace):
    status = plane.admin.get(path_of_deployment(namespace, "web"))["status"]
    return status.get("updatedReplicas") == status.get("replicas")


def test_an_increase_goes_on(control_plane, namespace, waiting, exporter):
    roll_out(control_plane, namespace, "web", "app:2")
    exporter.set("load", 300, app="web")
    eventually(lambda: held(waiting, "web"), what="the decrease is held")
    exporter.set("load", 1800, app="web")
    eventually(lambda: waiting.size() == 18, what="the increase")


def test_a_rollout_that_fails_or_is_paused_holds_nothing(control_plane, namespace, waiting, exporter):
    """Its controller says that it does not progress; or a person pauses it."""
    kubelets = control_plane.kubelets
    kubelets.ready = lambda pod: pod["spec"]["containers"][0]["image"] != NEVER_READY
    try:
        roll_out(control_plane, namespace, "web", NEVER_READY)
        exporter.set("load", 700, app="web")
        eventually(lambda: held(waiting, "web"), what="the decrease is held")
        progress = []

        def is_decreased():
            item = control_plane.admin.get(path_of_deployment(namespace, "web"))
            progress.extend(c["status"] for c in item["status"]["conditions"] if c["type"] == "Progressing")
            return item["spec"]["replicas"] == 7

        eventually(is_decreased, timeout=120, what="the decrease after Progressing=False")
        assert "False" in progress      # in Kubernetes 1.20 the decrease makes it True again
        assert not is_over(control_plane, namespace)

        roll_out(control_plane, namespace, "web", "app:3")
        control_plane.admin.patch(path_of_deployment(namespace, "web"), {"spec": {"paused": True}})
        exporter.set("load", 400, app="web")
        eventually(lambda: waiting.size() == 4, what="the decrease of a paused Deployment")
        assert not is_over(control_plane, namespace)
    finally:
        kubelets.ready = lambda pod: True
        kubelets.refresh()


def test_pods_below_a_partition_are_no_rollout(control_plane, namespace, make, exporter):
    """The StatefulSet has two revisions for ever."""
    labels, path = {"app": "db"}, f"/apis/apps/v1/namespaces/{namespace}/statefulsets/db"
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}}
    control_plane.admin.create({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"namespace": namespace, "name": "db"}, "spec": {
        "replicas": 4, "serviceName": "db", "selector": {"matchLabels": labels}, "template": template,
        "updateStrategy": {"rollingUpdate": {"partition": 2}}}})

    def get():
        return control_plane.admin.get(path)

    eventually(lambda: get()["status"].get("readyReplicas") == 4, what="it has its pods")
    kubelets = control_plane.kubelets
    kubelets.ready = lambda pod: pod["spec"]["containers"][0]["image"] != "app:2"
    exporter.set("load", 200, app="db")
    try:
        template["spec"]["containers"][0]["image"] = "app:2"
        control_plane.admin.patch(path, {"spec": {"template": template}})
        eventually(lambda: get()["status"]["updateRevision"] != get()["status"]["currentRevision"], what="the rollout has begun")
        daemon = make({"db": {"kubernetes": {"kind": "StatefulSet", "namespace": namespace, "name": "db"}, "rollout": "wait"}}, average_value=100)
        eventually(lambda: held(daemon, "db"), what="the decrease is held")
        steadily(lambda: get()["spec"]["replicas"] == 4, 3, what="its first new pod does not become ready")
    finally:
        kubelets.ready = lambda pod: True
        kubelets.refresh()
    eventually(lambda: get()["spec"]["replicas"] == 2, what="the decrease, once the pods from the partition on are new")


# Argo Rollouts


@pytest.fixture
def argo(control_plane, namespace):
    """A Rollout, whose controller is the test: argo(updatedReplicas=3, ...) sets its status."""
    admin = control_plane.admin
    admin.create(ROLLOUTS)
    path = f"/apis/{GROUP}/v1alpha1/namespaces/{namespace}/rollouts"
    eventually(lambda: admin.get(path), what="the kind is served")
    admin.create({"apiVersion": f"{GROUP}/v1alpha1", "kind": "Rollout", "metadata": {"namespace": namespace, "name": "shop"}, "spec": {"replicas": SIZE}})
    path += "/shop"

    def play(generation=None, **status):
        observed = str(generation or admin.get(path)["metadata"]["generation"])
        admin.patch(path + "/status", {"status": {"observedGeneration": observed, "replicas": SIZE, "HPAReplicas": SIZE,
                                                  "selector": "app=shop", **status}}, content_type="application/merge-patch+json")

    play.size = lambda: admin.get(path)["spec"]["replicas"]
    play.path = path
    yield play
    admin.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rollouts.{GROUP}")


def test_an_argo_rollout_is_waited_for(control_plane, namespace, make, exporter, argo, tmp_path):
    """Without the right to read the object, nothing is removed; the Role that `check --cluster` prints gives the right."""
    plane = control_plane
    rights = [{"apiGroups": [GROUP], "resources": ["rollouts/scale"], "verbs": ["get", "update"]}]
    metadata, api = {"name": "scale-rollouts", "namespace": namespace}, "rbac.authorization.k8s.io/v1"
    plane.admin.create({"apiVersion": api, "kind": "Role", "metadata": metadata, "rules": rights})
    plane.admin.create({"apiVersion": api, "kind": "RoleBinding", "metadata": metadata,
                        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": metadata["name"]},
                        "subjects": [{"kind": "ServiceAccount", "namespace": "alertscaler", "name": "alertscaler"}]})
    plane.wait_allowed("system:serviceaccount:alertscaler:alertscaler", rights, namespace)
    argo(updatedReplicas=SIZE, stableRS="a", currentPodHash="a")
    exporter.set("load", 300, app="shop")
    daemon = make({"shop": {"kubernetes": {"apiVersion": f"{GROUP}/v1alpha1", "kind": "Rollout", "namespace": namespace, "name": "shop"},
                            "rollout": "wait"}}, average_value=100)
    eventually(lambda: held(daemon, "shop"), what="the decrease is held")
    assert "rollouts.argoproj.io \"shop\" is forbidden" in daemon.records("decision", target_name="shop")[-1]["output"]["held_by"]["name"]
    steadily(lambda: argo.size() == SIZE, 3, what="nothing is removed")
    checked = subprocess.run([daemon.binary, "check", "--cluster", str(daemon.config_file)], text=True, capture_output=True)
    assert "target `shop` would never get smaller, as its rollout cannot be read" in checked.stderr, checked
    argo(updatedReplicas=2, stableRS="a", currentPodHash="b")
    (tmp_path / "role.yaml").write_text(checked.stderr[checked.stderr.index("# To apply"):])
    plane.kubectl("apply", "-f", str(tmp_path / "role.yaml"))

    eventually(lambda: held(daemon, "shop") and not daemon.records("decision", target_name="shop")[-1]["output"]["held_by"].get("name"),
               what="the rollout is seen")
    steadily(lambda: argo.size() == SIZE, 3, what="nothing is removed during the rollout")
    argo(updatedReplicas=2, stableRS="a", currentPodHash="b", phase="Paused", pauseConditions=[{"reason": "CanaryPauseStep"}])
    eventually(lambda: argo.size() == 3, what="the decrease of a Rollout that waits for a person")
    exporter.set("load", 200, app="shop")
    steadily(lambda: argo.size() == 3, 3, what="its controller has not seen the new size")
    argo(updatedReplicas=3, replicas=3, HPAReplicas=3, stableRS="b", currentPodHash="b", phase="Healthy", pauseConditions=None)
    eventually(lambda: argo.size() == 2, what="the decrease after the rollout")
