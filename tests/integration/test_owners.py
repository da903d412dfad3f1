"""Pods by owner references, against the real API server and its controllers, with the shipped role."""
import pytest

from harness.deploy import install
from harness.targets import TargetDriver, workload
from harness.wait import eventually
from test_targets import CREWS, make_pod

LABELS = {"app": "web"}
POD = {"containers": [{"name": "web", "image": "web"}], "restartPolicy": "Always"}


def make_workload(kind, namespace, name, labels, replicas=2, **more):
    spec = {"replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": {**LABELS, **labels}}, "spec": POD}, **more}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"namespace": namespace, "name": name}, "spec": spec}


def make_job(namespace, name):
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": namespace, "name": name},
            "spec": {"template": {"metadata": {"labels": LABELS}, "spec": {**POD, "restartPolicy": "Never"}}}}


@pytest.fixture
def kubeconfig(control_plane):
    install(control_plane, "namespace.yaml", "serviceaccount.yaml", "role.yaml", "role-cluster-wide.yaml")
    return control_plane.write_kubeconfig("alertscaler", token=control_plane.account_token("alertscaler", "alertscaler"))


@pytest.fixture
def make_driver(tmp_path):
    made = []

    def make(kubeconfig):
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(TargetDriver(folder, "--kubeconfig", kubeconfig))
        return made[-1]

    yield make
    for driver in made:
        driver.stop()


def observe(driver, item):
    return driver.observe("kubernetes", workload(item), with_pods=True, with_owners=True)


def owners(driver, item):
    """{owner: how many pods}"""
    seen = observe(driver, item)
    assert seen["outcome"] == "applied", seen
    found = [pod["owner"] for pod in seen["pods"]]
    return {owner: found.count(owner) for owner in found}


def test_pods_of_others_with_the_same_labels(control_plane, namespace, make_driver, kubeconfig):
    admin, driver = control_plane.admin, make_driver(kubeconfig)
    eventually(lambda: control_plane.has_account(namespace), what="pods can be created")
    web = admin.create(make_workload("Deployment", namespace, "web", LABELS))
    eventually(lambda: owners(driver, web) == {"target": 2}, what="its pods are there", timeout=20)
    admin.create(make_workload("Deployment", namespace, "canary", {"tier": "canary"}, replicas=3))
    admin.create(make_job(namespace, "load"))
    admin.create(make_pod(namespace, "alone", labels=LABELS))
    eventually(lambda: owners(driver, web) == {"target": 2, "other": 5}, what="pods of others are there")
    names = {pod["name"]: pod["owner"] for pod in observe(driver, web)["pods"]}
    assert {name for name, owner in names.items() if owner == "target"} == {
        name for name in names if name.startswith("web-")}, names
    # without the wish nothing is read of owners
    seen = driver.observe("kubernetes", workload(web), with_pods=True)
    assert {pod["owner"] for pod in seen["pods"]} == {"target"}


def test_pods_of_two_replica_sets(control_plane, namespace, make_driver, kubeconfig):
    """A rollout that does not end: its new pods never become ready."""
    admin, driver = control_plane.admin, make_driver(kubeconfig)
    eventually(lambda: control_plane.has_account(namespace), what="pods can be created")
    web = admin.create(make_workload("Deployment", namespace, "web", LABELS, minReadySeconds=3600, progressDeadlineSeconds=7200))
    eventually(lambda: owners(driver, web) == {"target": 2}, what="its pods are there", timeout=20)
    admin.patch(f"/apis/apps/v1/namespaces/{namespace}/deployments/web",
                {"spec": {"template": {"metadata": {"annotations": {"again": "1"}}}}})
    eventually(lambda: owners(driver, web).get("target", 0) >= 3, what="pods of both are there")
    assert set(owners(driver, web)) == {"target"}


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet"])
def test_pods_that_a_workload_owns_itself(control_plane, namespace, make_driver, kubeconfig, kind):
    admin, driver = control_plane.admin, make_driver(kubeconfig)
    eventually(lambda: control_plane.has_account(namespace), what="pods can be created")
    item = admin.create(make_workload(kind, namespace, "web", LABELS))
    admin.create(make_job(namespace, "load"))
    eventually(lambda: owners(driver, item) == {"target": 2, "other": 1}, what="all pods are there")


def test_an_owner_that_is_gone(control_plane, namespace, make_driver, kubeconfig):
    """Until the pods are collected. Nothing collects them while the controllers stand still."""
    admin, driver = control_plane.admin, make_driver(kubeconfig)
    eventually(lambda: control_plane.has_account(namespace), what="pods can be created")
    web = admin.create(make_workload("Deployment", namespace, "web", LABELS))
    eventually(lambda: owners(driver, web) == {"target": 2}, what="its pods are there", timeout=20)
    control_plane.controller_manager.pause()
    try:
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-gone", "controller": True,
                     "uid": "11111111-2222-3333-4444-555555555555"}
        admin.create(make_pod(namespace, "left", labels=LABELS, ownerReferences=[reference]))
        seen = {pod["name"]: pod for pod in observe(driver, web)["pods"]}
        assert (seen["left"]["owner"], seen["left"]["owner_name"]) == ("gone", "ReplicaSet web-gone")
        assert owners(driver, web) == {"target": 2, "gone": 1}
    finally:
        control_plane.controller_manager.resume()
    eventually(lambda: owners(driver, web) == {"target": 2}, what="the pod is collected")


def test_without_the_right(control_plane, namespace, make_driver):
    admin = control_plane.admin
    eventually(lambda: control_plane.has_account(namespace), what="pods can be created")
    web = admin.create(make_workload("Deployment", namespace, "web", LABELS))
    admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": namespace, "name": "lister"}})
    control_plane.grant(namespace, "lister", [
        {"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}])
    driver = make_driver(control_plane.write_kubeconfig("lister", token=control_plane.account_token(namespace, "lister")))
    eventually(lambda: driver.observe("kubernetes", workload(web), with_pods=True)["pods"], what="its pods are there")
    seen = observe(driver, web)
    assert (seen["outcome"], seen["http_status"]) == ("forbidden", 403), seen
    assert seen["message"].startswith("owners of pods: the right to get objects of the kind ReplicaSet is missing: ")


def test_a_job_beside_a_custom_resource_without_the_right(control_plane, namespace, make_driver):
    """The pods of the Job are marked, with the missing right. The size and the other pods are known."""
    admin = control_plane.admin
    eventually(lambda: control_plane.has_account(namespace), what="pods can be created")
    try:
        admin.create(CREWS)
    except Exception as error:      # pylint: disable=broad-except
        assert getattr(error, "status", 0) == 409, error
    eventually(lambda: admin.request("GET", "/apis/example.com/v1/crews").ok, what="crews are served")
    crew = admin.create({"apiVersion": "example.com/v1", "kind": "Crew", "metadata": {"namespace": namespace, "name": "web"},
                         "spec": {"size": 3}})
    admin.patch(f"/apis/example.com/v1/namespaces/{namespace}/crews/web/status", {"status": {"size": 1, "selector": "app=web"}})
    reference = {"apiVersion": "example.com/v1", "kind": "Crew", "name": "web", "controller": True, "uid": crew["metadata"]["uid"]}
    admin.create(make_pod(namespace, "own", labels=LABELS, ownerReferences=[reference]))
    admin.create(make_job(namespace, "load"))
    admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": namespace, "name": "crew-reader"}})
    rules = [{"apiGroups": ["example.com"], "resources": ["crews/scale"], "verbs": ["get"]},
             {"apiGroups": ["apps"], "resources": ["replicasets"], "verbs": ["get"]},
             {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    control_plane.grant(namespace, "crew-reader", rules)
    token = control_plane.account_token(namespace, "crew-reader")
    driver = make_driver(control_plane.write_kubeconfig("crew-reader", token=token))
    eventually(lambda: owners(driver, crew) == {"target": 1, "gone": 1}, what="both pods are there")
    seen = observe(driver, crew)
    pods = {pod["owner"]: pod for pod in seen["pods"]}
    assert seen["replicas"] == 3 and pods["target"]["name"] == "own" and pods["gone"]["owner_name"] == "Job load"
    assert pods["gone"]["owner_error"].startswith("the right to get objects of the kind Job is missing: jobs.batch ")
    admin.patch(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles/{namespace}-crew-reader",
                {"rules": rules + [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"]}]})
    eventually(lambda: owners(driver, crew) == {"target": 1, "other": 1}, what="with the right it is known whose the pod is")
