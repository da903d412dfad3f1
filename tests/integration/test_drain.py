"""Nodes and drains against the real API server (its eviction API, budgets, patches), with the rights of the shipped role."""
import itertools
import json

import pytest

from harness.deploy import install
from harness.driver import Driver
from harness.nodes import MARK, TAINT, make_budget, make_pod, read
from harness.wait import eventually

_numbers = itertools.count(1)


class DrainDriver(Driver):
    name = "drain_driver"

    is_killed = False

    def kill(self):
        self.is_killed = True
        self._process.kill()
        self._process.wait(30)

    def stop(self):
        if not self.is_killed:
            super().stop()

    def nodes(self, *instances):
        return self.wait(self.send(op="nodes", instances=list(instances)))

    def mark(self, node, instance, target="group"):
        return self.wait(self.send(op="mark", node=node, instance=instance, target=target))

    def drain(self, node, instance, timeout=60):
        """Marks the node and empties it."""
        answer = self.mark(node, instance)
        if answer["end"] != "done":
            return answer
        return self.wait(self.send(op="empty", node=node, instance=instance, target="group", timeout_ms=timeout * 1000), timeout + 30)


@pytest.fixture
def plane(control_plane):
    install(control_plane, "namespace.yaml", "serviceaccount.yaml", "role-nodes.yaml")
    return control_plane


@pytest.fixture
def make_driver(plane, tmp_path):
    made = []
    token = tmp_path / "token"
    token.write_text(plane.account_token("alertscaler", "alertscaler"))

    def make(owner="me"):
        directory = tmp_path / f"driver-{len(made)}"
        directory.mkdir()
        kubeconfig = plane.write_kubeconfig("alertscaler", tokenFile=str(token))
        made.append(DrainDriver(directory, "--kubeconfig", kubeconfig, "--owner", owner))
        return made[-1]

    yield make
    for driver in made:
        driver.stop()


@pytest.fixture
def driver(make_driver):
    return make_driver()


@pytest.fixture
def node(plane):
    """(name, instance) of a node of its own, gone after the test."""
    number = next(_numbers)
    name, instance = f"drained-{number}", f"i-{number:08x}"
    plane.admin.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
                        "spec": {"providerID": f"aws:///eu-west-1a/{instance}"}})
    resources = {"cpu": "4", "memory": "8Gi", "pods": "100"}
    plane.admin.patch(f"/api/v1/nodes/{name}/status", {"status": {
        "capacity": resources, "allocatable": resources, "conditions": [{"type": "Ready", "status": "True"}]}})
    plane.admin.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": [
        {"key": "team", "value": "shop", "effect": "PreferNoSchedule"}]}})
    yield name, instance
    plane.admin.delete(f"/api/v1/nodes/{name}")


def assert_in_service(plane, name):
    item = read(plane, name)
    assert not item["spec"].get("unschedulable")
    assert MARK not in item["metadata"].get("annotations", {})
    assert [t["key"] for t in item["spec"]["taints"]] == ["team"]


def assert_marked(plane, name):
    item = read(plane, name)
    assert item["spec"]["unschedulable"]
    assert json.loads(item["metadata"]["annotations"][MARK])["decision"] == "01HD"
    assert {t["key"] for t in item["spec"]["taints"]} >= {"team", TAINT}


def test_an_instance_has_its_node_with_its_pods(plane, driver, node, namespace):
    name, instance = node
    make_pod(plane, namespace, name, "web-1")
    make_pod(plane, namespace, name, "static", **{"kubernetes.io/config.mirror": "x"})
    answer = driver.nodes(instance, "i-unknown")
    assert answer["outcome"] == "applied", answer
    found, missing = answer["nodes"]
    assert missing is None
    assert (found["name"], found["ready"], found["cordoned"], found["mark"]) == (name, True, False, None)
    assert (found["pods"], found["cpu"]) == (1, 1.0)


def test_a_node_is_emptied_and_stays_marked(plane, driver, node, namespace):
    name, instance = node
    make_pod(plane, namespace, name, "web-1")
    make_pod(plane, namespace, name, "static", **{"kubernetes.io/config.mirror": "x"})
    answer = driver.drain(name, instance)
    assert (answer["end"], answer["evicted"]) == ("done", 1), answer
    assert_marked(plane, name)
    pods = plane.admin.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
    assert [p["metadata"]["name"] for p in pods] == ["static"]
    answer = driver.wait(driver.send(op="undo", node=name))
    assert answer["outcome"] == "applied", answer
    assert_in_service(plane, name)


def test_a_budget_keeps_a_pod_until_the_deadline(plane, driver, node, namespace):
    name, instance = node
    make_pod(plane, namespace, name, "web-1")
    make_budget(plane, namespace, 1)
    answer = driver.drain(name, instance, timeout=5)
    assert (answer["end"], answer["outcome"]) == ("failed", "timeout"), answer
    assert f"pod {namespace}/web-1: Cannot evict pod as it would violate the pod's disruption budget" in answer["message"]
    assert_in_service(plane, name)


def test_what_may_not_be_evicted_leaves_the_node_untouched(plane, driver, node, namespace):
    name, instance = node
    make_pod(plane, namespace, name, "web-1", **{"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"})
    version = read(plane, name)["metadata"]["resourceVersion"]
    answer = driver.drain(name, instance)
    assert (answer["end"], answer["outcome"]) == ("failed", "rejected"), answer
    assert read(plane, name)["metadata"]["resourceVersion"] == version


def test_a_cordon_of_an_operator_stays(plane, driver, node):
    name, instance = node
    plane.admin.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})
    assert driver.drain(name, instance)["end"] == "done"
    assert driver.wait(driver.send(op="undo", node=name))["outcome"] == "applied"
    item = read(plane, name)
    assert item["spec"]["unschedulable"]
    assert MARK not in item["metadata"].get("annotations", {})


def test_marks_whose_target_is_gone_are_undone_by_the_next_and_others_stay(plane, make_driver, node, namespace):
    name, instance = node
    make_pod(plane, namespace, name, "web-1")
    first, other, second = make_driver(), make_driver("other"), make_driver()
    first.mark(name, instance)
    first.kill()
    assert second.wait(second.send(op="recover"))["undone"] == 0
    assert_marked(plane, name)
    second.kill()
    third, fourth = make_driver(), make_driver()
    assert third.mark(name, instance, target="gone")["end"] == "done"
    third.kill()
    assert other.wait(other.send(op="recover"))["undone"] == 0
    assert fourth.wait(fourth.send(op="recover"))["undone"] == 1
    assert_in_service(plane, name)


def test_a_right_that_is_missing_has_a_name(plane, driver, node):
    name, instance = node
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/alertscaler-nodes"
    rules = plane.admin.get(role)["rules"]
    plane.admin.patch(role, {"rules": [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list"]}]})
    try:
        answer = eventually(lambda: (a := driver.drain(name, instance))["end"] == "failed" and a, what="the role has changed")
        assert 'the right "nodes: patch" is missing' in answer["message"]
    finally:
        plane.admin.patch(role, {"rules": rules})
    assert_in_service(plane, name)
