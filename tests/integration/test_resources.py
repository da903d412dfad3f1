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
from harness.notification import alert, notification
from harness.wait import eventually, steadily

ROOT = pathlib.Path(__file__).parents[2]
ACCOUNT = ("alertscaler", "alertscaler")


class Nodes:
    """Plays the kubelets' part of a resize: answer(pod) is "", Deferred or Infeasible."""

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
def make(control_plane, make_daemon, namespace):
    """make(**address): a Deployment `cart` of three pods with 256Mi and a limit of 512Mi, and a daemon with the page's rights."""
    install(control_plane, "namespace.yaml", "serviceaccount.yaml")
    kubeconfig = control_plane.write_kubeconfig("resources", token=control_plane.account_token(*ACCOUNT))
    text, = re.findall(r"^```yaml role\n(.*?)^```", (ROOT / "docs" / "from-vpa.md").read_text(), re.MULTILINE | re.DOTALL)

    def start(rule=None, spec=None, limit="512Mi", **address):
        role, binding = yaml.safe_load_all(text)
        for item in (role, binding):
            item["metadata"]["namespace"] = namespace
            control_plane.admin.create(item)
        control_plane.wait_allowed("system:serviceaccount:alertscaler:alertscaler", role["rules"], namespace)
        control_plane.admin.create({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "cart", "namespace": namespace},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "cart"}}, **(spec or {}), "template": {
                "metadata": {"labels": {"app": "cart"}}, "spec": {"containers": [{
                    "name": "app", "image": "app",
                    "resources": {"requests": {"memory": "256Mi"}, "limits": {"memory": limit}}}]}}}})
        control_plane.admin.wait(path_of("apps/v1", "Deployment", namespace, "cart"),
                                 lambda item: item.get("status", {}).get("availableReplicas") == 3)
        if address.get("apply") == "pods":    # the API server refuses a resize where no kubelet has said what it granted
            eventually(lambda: all(status.get("resources") for pod in control_plane.admin.get(path_of("v1", "Pod", namespace))["items"]
                                   for status in pod["status"]["containerStatuses"]))
        kubernetes = {"kind": "Deployment", "namespace": namespace, "name": "cart", "container": "app",
                      "resource": "memory", "unit": "64Mi", **address}
        daemon = make_daemon({
            "targets": {"cart-memory": {"kubernetes": kubernetes, "min": 1, "max": 64, "cooldown": {"up": "1s", "down": "1s"}}},
            "rules": [{"name": "oom", "match": ['alertname="OOM"'], "target": "cart-memory", "once": True,
                       "scale_up": {"by": "25%", "at_least": 1}, **(rule or {})}],
        }, {"clusters": {"default": {"kubeconfig": str(kubeconfig)}}})
        return daemon
    return start


def fire(daemon, **labels):
    return daemon.notify(notification(alert({"alertname": "OOM", **labels})))


def wait_action(daemon, condition):
    return eventually(lambda: next(filter(condition, daemon.records("action")), None), timeout=120, what="the action")


def deployment(control_plane, namespace):
    return control_plane.admin.get(path_of("apps/v1", "Deployment", namespace, "cart"))


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
        back = wait_action(daemon, lambda record: record["to"] == 4)
        assert back["outcome"] == "applied" and back["from"] == 5
        assert back["message"].startswith("did_not_come: the rollout of 5 (320Mi) did not end in time; put back to 4 (256Mi)")
        item = deployment(control_plane, namespace)
        assert resources_of(item) == {"requests": {"memory": "256Mi"}, "limits": {"memory": "512Mi"}}
        assert "alertscaler.io/resized" not in item["metadata"].get("annotations", {})
        steadily(lambda: resources_of(deployment(control_plane, namespace))["requests"]["memory"] == "256Mi", 2)
    finally:
        control_plane.kubelets.ready = lambda pod: True


def test_pods_are_resized_one_by_one_and_later_ones_too(control_plane, namespace, make, nodes):
    daemon = make(apply="pods")
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
    fire(daemon)    # the same alert: it makes the daemon look, and wants nothing more
    late = wait_action(daemon, lambda record: "came after" in record["message"])
    assert (late["from"], late["to"]) == (4, 5)
    assert requests(control_plane, namespace) == ["320Mi"] * 3
    # The API server refuses a resize of a pod that has not started; that is tried again.
    applied = [action for action in daemon.records("action") if action["outcome"] == "applied"]
    assert [(action["from"], action["to"]) for action in applied] == [(4, 5), (4, 5)]


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
    assert action["outcome"] == "rejected"
    assert "Infeasible: node didn't have enough capacity: memory; put back to 256Mi" in action["message"]
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
