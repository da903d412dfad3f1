"""Resources of containers as sizes, through the built binary on the real API server, with the rights of docs/from-vpa.md.

The Deployment controller is the real one. What kubelets answer to a resize is played by the test.
"""
import pathlib
import re
import threading

import pytest
import yaml

from harness.deploy import install
from harness.kube import STRATEGIC_MERGE_PATCH, path_of
from harness.kubelets import is_ready
from harness.notification import alert, notification
from harness.wait import eventually, steadily
from test_targets import settle

ROOT = pathlib.Path(__file__).parents[2]
ACCOUNT = ("alertscaler", "alertscaler")
REPLICAS = {"Deployment": {"replicas": 3}, "DaemonSet": {},
            "StatefulSet": {"replicas": 3, "serviceName": "cart", "podManagementPolicy": "Parallel"}}
PODS = {"Deployment": 3, "StatefulSet": 3, "DaemonSet": 2}      # a DaemonSet has one on each node of the harness


class Nodes:
    """Plays the kubelets' part of a resize: answer(pod) is "", Deferred, Infeasible or silence."""

    def __init__(self, client, namespace):
        self.client, self.path = client, path_of("v1", "Pod", namespace)
        self.answer = lambda pod: ""
        self.order = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        self._stop.set()
        self._thread.join(15)

    def _run(self):
        while not self._stop.wait(0.1):
            for pod in self.client.get(self.path)["items"]:
                if pod.get("status", {}).get("phase") == "Running":
                    self._serve(pod)

    def _serve(self, pod):
        wanted = pod["spec"]["containers"][0]["resources"]
        status, = pod["status"]["containerStatuses"]
        granted = status.get("resources")
        answer = self.answer(pod) if granted and granted != wanted else ""
        said = [c["reason"] for c in pod["status"]["conditions"] if c["type"] == "PodResizePending"]
        if not granted or (not answer and granted != wanted):
            if granted:
                self.order.append(pod["metadata"]["name"])
            conditions = [{"type": "PodResizePending", "$patch": "delete"}] if said else []
            change = {"containerStatuses": [{"name": "app", "resources": wanted}], "conditions": conditions}
        elif answer == "silence":
            return
        elif answer and said != [answer]:
            change = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": answer,
                                      "message": "node didn't have enough capacity: memory"}]}
        elif granted == wanted and said:
            change = {"conditions": [{"type": "PodResizePending", "$patch": "delete"}]}
        else:
            return
        path = f"{self.path}/{pod['metadata']['name']}/status"
        change["observedGeneration"] = pod["metadata"].get("generation", 0)
        self.client.request("PATCH", path, {"status": change}, STRATEGIC_MERGE_PATCH)


@pytest.fixture
def nodes(control_plane, namespace):
    played = Nodes(control_plane.admin, namespace)
    yield played
    played.stop()


@pytest.fixture
def make(control_plane, make_daemon, namespace, tmp_path):
    """make(**address): a Deployment `cart` of three pods with 256Mi and a limit of 512Mi, and a daemon with the page's rights."""
    install(control_plane, "namespace.yaml", "serviceaccount.yaml")
    kubeconfig = control_plane.write_kubeconfig("resources", token=control_plane.account_token(*ACCOUNT))
    text, = re.findall(r"^```yaml role\n(.*?)^```", (ROOT / "docs" / "from-vpa.md").read_text(), re.MULTILINE | re.DOTALL)

    def start(rule=None, spec=None, limit="512Mi", kind="Deployment", **address):
        if address.get("apply") == "pods" and control_plane.minor < 33:
            pytest.skip(f"this is Kubernetes 1.{control_plane.minor}, and pods are resized in place from 1.33 on")
        role, binding = yaml.safe_load_all(text)
        role["rules"][0]["resources"] = [kind.lower() + "s"]
        for item in (role, binding):
            item["metadata"]["namespace"] = namespace
            control_plane.admin.create(item)
        control_plane.wait_allowed("system:serviceaccount:alertscaler:alertscaler", role["rules"], namespace)
        item = control_plane.admin.create({
            "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "cart", "namespace": namespace},
            "spec": {**REPLICAS[kind], "selector": {"matchLabels": {"app": "cart"}}, **(spec or {}), "template": {
                "metadata": {"labels": {"app": "cart"}}, "spec": {"containers": [{
                    "name": "app", "image": "app",
                    "resources": {"requests": {"memory": "256Mi"}, "limits": {"memory": limit}}}]}}}})
        eventually(lambda: count_ready(control_plane, namespace) == PODS[kind], what="its pods")
        settle(control_plane, item)     # a change of its status meanwhile would be a conflict, and a step more
        if address.get("apply") == "pods":    # the API server refuses a resize where no kubelet has said what it granted
            eventually(lambda: all(status.get("resources") for pod in control_plane.admin.get(path_of("v1", "Pod", namespace))["items"]
                                   for status in pod["status"]["containerStatuses"]))
        kubernetes = {"kind": kind, "namespace": namespace, "name": "cart", "container": "app",
                      "resource": "memory", "unit": "64Mi", **address}
        (tmp_path / "token").write_text("secret\n")
        token = {"name": "ada", "file": str(tmp_path / "token"), "permissions": ["notify", "read", "admin"]}
        daemon = make_daemon({
            "targets": {"cart-memory": {"kubernetes": kubernetes, "min": 1, "max": 64, "cooldown": {"up": "1s", "down": "1s"}}},
            "rules": [{"name": "oom", "match": ['alertname="OOM"'], "target": "cart-memory", "once": True,
                       "scale_up": {"by": "25%", "at_least": 1}, **(rule or {})}],
        }, {"clusters": {"default": {"kubeconfig": str(kubeconfig)}}, "receiver": {"tokens": [token]}},
            flags=["--web.enable-admin-api"], start=False)
        daemon.headers = {"Authorization": "Bearer secret"}
        return daemon.start()
    return start


def fire(daemon, **labels):
    return daemon.notify(notification(alert({"alertname": "OOM", **labels})))


def wait_action(daemon, condition):
    return eventually(lambda: next(filter(condition, daemon.records("action")), None), timeout=120, what="the action")


def wait_event(control_plane, namespace, reason, message=""):
    path = f"/api/v1/namespaces/{namespace}/events"
    return eventually(lambda: next((event for event in control_plane.admin.get(path)["items"]
                                    if event["reason"] == reason and event["message"].startswith(message)
                                    and event["source"].get("component", event.get("reportingComponent")) == "alertscaler"),
                                   None), what=f"the event {reason}")


def deployment(control_plane, namespace):
    return control_plane.admin.get(path_of("apps/v1", "Deployment", namespace, "cart"))


def count_ready(control_plane, namespace):
    return sum(map(is_ready, control_plane.admin.get(path_of("v1", "Pod", namespace))["items"]))


def resources_of(item):
    return item["spec"]["template"]["spec"]["containers"][0]["resources"]


def requests(control_plane, namespace):
    pods = control_plane.admin.get(path_of("v1", "Pod", namespace))["items"]
    return sorted(pod["spec"]["containers"][0]["resources"]["requests"]["memory"]
                  for pod in pods if "deletionTimestamp" not in pod["metadata"])


def test_a_template_rolls_out(control_plane, namespace, make):
    daemon = make()
    fire(daemon)
    action = daemon.wait_record("action")
    assert (action["from"], action["to"], action["outcome"]) == (4, 5, "applied")
    item = deployment(control_plane, namespace)
    assert resources_of(item) == {"requests": {"memory": "320Mi"}, "limits": {"memory": "640Mi"}}
    assert "256Mi" in item["metadata"]["annotations"]["alertscaler.io/resized"]
    eventually(lambda: requests(control_plane, namespace) == ["320Mi"] * 3)


def test_a_rollout_that_does_not_end_is_put_back_once(control_plane, namespace, make):
    control_plane.kubelets.ready = lambda pod: (
        pod["metadata"]["namespace"] != namespace
        or pod["spec"]["containers"][0]["resources"]["requests"]["memory"] == "256Mi")
    try:
        daemon = make(spec={"progressDeadlineSeconds": 3})
        fire(daemon)
        # The status of the Deployment may change meanwhile: a conflict, and it is tried again.
        back = wait_action(daemon, lambda record: record["to"] == 4 and record["outcome"] != "conflict")
        assert (back["outcome"], back["from"]) == ("applied", 5)
        assert back["message"] == "put back to 4 (256Mi), as the rollout of 5 (320Mi) did not end in time"
        late, = daemon.records("action", outcome="did_not_come")
        assert (late["from"], late["to"], late["late"], late["decision"]) == (4, 5, True, back["decision"])
        assert re.match(r'the rollout of 5 \(320Mi\) did not end in time: ReplicaSet "cart-.*" has timed out', late["message"])
        item = deployment(control_plane, namespace)
        assert resources_of(item) == {"requests": {"memory": "256Mi"}, "limits": {"memory": "512Mi"}}
        assert "alertscaler.io/resized" not in item["metadata"].get("annotations", {})
        said = wait_event(control_plane, namespace, "NotReadyInTime")
        assert said["type"] == "Warning"
        assert "Size 5 (320Mi) was asked for" in said["message"]
        assert said["message"].endswith("its rollout did not end in time: it goes back to 4 (256Mi)")
        wait_event(control_plane, namespace, "SuccessfulRescale",
                   "New size: 4 (256Mi); reason: the rollout of 5 (320Mi) did not end in time")
        fire(daemon, again="1")
        stopped = eventually(lambda: next((record for record in daemon.records("decision")
                                           if record["output"]["reason"] == "did_not_come"), None), timeout=90)
        assert stopped["output"]["held_by"] == {"by": "did_not_come"}
        assert daemon.target("cart-memory")["did_not_come"]
        assert daemon.metrics().value("alertscaler_target_did_not_come", target="cart-memory") == 1
        steadily(lambda: resources_of(deployment(control_plane, namespace))["requests"]["memory"] == "256Mi", 2)
    finally:
        control_plane.kubelets.ready = lambda pod: True


def test_pods_are_resized_one_by_one_and_later_ones_too(control_plane, namespace, make, nodes):
    daemon = make(apply="pods", rule={"scale_up": {"to": 5}})
    fire(daemon)
    action = daemon.wait_record("action")
    assert (action["from"], action["to"], action["outcome"]) == (4, 5, "applied"), action
    assert action["message"].startswith("3 of 3 pods resized")
    assert requests(control_plane, namespace) == ["320Mi"] * 3
    assert nodes.order == sorted(nodes.order)
    assert resources_of(deployment(control_plane, namespace))["requests"]["memory"] == "256Mi"
    gone = control_plane.admin.get(path_of("v1", "Pod", namespace))["items"][0]["metadata"]["name"]
    control_plane.admin.delete(path_of("v1", "Pod", namespace, gone), grace=0)
    eventually(lambda: requests(control_plane, namespace) == ["256Mi", "320Mi", "320Mi"])

    def find_late():
        fire(daemon)    # it makes the daemon look, and wants nothing more
        return next((record for record in daemon.records("action") if "came after" in record["message"]), None)

    late = eventually(find_late, 120, what="the new pod is resized too")
    assert (late["from"], late["to"]) == (4, 5)
    assert requests(control_plane, namespace) == ["320Mi"] * 3
    # A pod whose kubelet has not yet said what it granted waits: the API server would refuse its resize.
    assert [(action["from"], action["to"], action["outcome"]) for action in daemon.records("action")] == [
        (4, 5, "applied"), (4, 5, "applied")]


def test_pods_that_somebody_else_sets_back(control_plane, namespace, make, nodes):
    """Somebody wants 128Mi, whenever another size is seen, however late: so the rule wants no more than 5."""
    daemon = make(apply="pods", rule={"once": False, "scale_up": {"to": 5}})
    fire(daemon)
    daemon.wait_record("action", outcome="applied")

    def find_contended():
        for pod in control_plane.admin.get(path_of("v1", "Pod", namespace))["items"]:
            if pod["spec"]["containers"][0]["resources"]["requests"]["memory"] != "128Mi":
                control_plane.admin.request("PATCH", path_of("v1", "Pod", namespace, pod["metadata"]["name"]) + "/resize", {
                    "spec": {"containers": [{"name": "app", "resources": {"requests": {"memory": "128Mi"}}}]}}, STRATEGIC_MERGE_PATCH)
        fire(daemon)    # it makes the daemon look
        return daemon.records("others", event="contended")

    record = eventually(find_contended, 120, what="it is left alone")[0]
    assert [(back["from"], back["to"], back["found"]) for back in record["set_backs"]] == [(4, 5, 2), (2, 5, 2), (2, 5, 2)], record
    eventually(lambda: find_contended() and requests(control_plane, namespace) == ["128Mi"] * 3)
    steadily(lambda: requests(control_plane, namespace) == ["128Mi"] * 3, 2)


def test_a_deferred_pod_is_told(control_plane, namespace, make, nodes):
    daemon = make(apply="pods")
    first = min(pod["metadata"]["name"] for pod in control_plane.admin.get(path_of("v1", "Pod", namespace))["items"])
    nodes.answer = lambda pod: "Deferred" if pod["metadata"]["name"] == first else ""
    fire(daemon)
    action = daemon.wait_record("action")
    assert action["outcome"] == "applied"
    assert f"pod {first}: Deferred: node didn't have enough capacity: memory" in action["message"]


def test_an_infeasible_pod_is_put_back(control_plane, namespace, make, nodes):
    nodes.answer = lambda pod: "Infeasible"
    daemon = make(apply="pods")
    fire(daemon)
    action = daemon.wait_record("action")
    assert (action["outcome"], action["http_status"]) == ("did_not_come", 200)
    assert "Infeasible: node didn't have enough capacity: memory; put back to 256Mi" in action["message"]
    failed = wait_event(control_plane, namespace, "FailedRescale")
    assert failed["type"] == "Warning" and "New size: 5 (320Mi)" in failed["message"]
    assert "did_not_come: 0 of 3 pods resized" in failed["message"] and "Infeasible" in failed["message"]
    assert daemon.target("cart-memory")["did_not_come"]
    assert requests(control_plane, namespace) == ["256Mi"] * 3


def test_a_kept_limit_is_the_most(control_plane, namespace, make):
    daemon = make(limits="keep", limit="300Mi")
    fire(daemon)
    assert daemon.wait_record("decision")["output"]["reason"] == "at_max"


def test_a_container_that_is_not_there(control_plane, namespace, make):
    daemon = make(container="web")
    fire(daemon)
    action = daemon.wait_record("action")
    assert action["outcome"] == "rejected"
    assert "its pods have no container web, but app" in action["message"]
