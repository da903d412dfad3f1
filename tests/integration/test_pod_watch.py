"""Pods out of a watch are those of a list: more than 100 targets against the real API server, with the shipped role."""
import itertools
import json
import random

import pytest

from harness.deploy import install
from harness.targets import TargetDriver, workload
from harness.wait import eventually
from test_targets import CREWS, create_pods, make_pod, ready_condition, set_status

TARGETS = 110       # more than 100 need their pods: AS_POD_WATCH_TARGETS
PODS = 72
BATCH = 8           # observations at a time
TEAM = "example.com/Team_1"
TERMS = {
    "app": ["app=a", "app==b", "app!=a", "app in (a,b)", "app in (c)", "app notin (a, c)", "app", "!app", "app="],
    "tier": ["", "tier=x", "tier!=x", "tier in (x)", "tier notin (x,y)", "tier", "!tier"],
    TEAM: ["", f"{TEAM} in (one,two.three)", f"{TEAM} notin (one)", f"!{TEAM}", f"{TEAM}=none"],
}


def make_selectors(count):
    """Each operator of each key alone and with others; the first of each number are the simple ones."""
    combined = [",".join(filter(None, terms)) for terms in itertools.product(*TERMS.values())]
    random.Random(1).shuffle(combined)
    return (list(itertools.chain(*TERMS.values())) + combined)[:count]


def make_labels(number):
    choices = {"app": ["a", "b", "c", "", None], "tier": ["x", "y", None], TEAM: ["one", "two.three", None, None]}
    dice = random.Random(number)
    return {key: value for key, value in ((key, dice.choice(values)) for key, values in choices.items()) if value is not None}


def make_any_pod(namespace, number):
    resources = [{}, {"requests": {"cpu": "100m", "memory": "64Mi"}},
                 {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}]
    more = {"finalizers": ["example.com/wait"]} if number % 9 == 0 else {}
    pod = make_pod(namespace, f"pod-{number}", *(resources[(number + i) % 3] for i in range(1 + number % 2)), **more)
    pod["metadata"]["labels"] = make_labels(number)
    return pod


def set_any_status(plane, namespace, number):
    phase = ["Pending", "Running", "Running", "Succeeded", "Failed", "Unknown"][number % 6]
    more = {} if number % 5 == 0 else {
        "startTime": "2026-11-20T09:00:00Z",
        "conditions": ready_condition(["True", "False", "Unknown"][number % 3], "2026-11-20T09:00:20Z")}
    set_status(plane, namespace, f"pod-{number}", phase=phase, **more)
    if number % 9 == 0:
        plane.admin.delete(f"/api/v1/namespaces/{namespace}/pods/pod-{number}", grace=0)


def release(plane, namespace, number):
    plane.admin.patch(f"/api/v1/namespaces/{namespace}/pods/pod-{number}", {"metadata": {"finalizers": None}})


@pytest.fixture
def crews(control_plane, namespace):
    plane = control_plane
    try:
        plane.admin.create(CREWS)
    except Exception as error:
        assert getattr(error, "status", 0) == 409, error
    eventually(lambda: plane.admin.request("GET", "/apis/example.com/v1/crews").ok, what="crews are served")
    items = []
    for number, selector in enumerate(["!app,!tier", *filter(None, make_selectors(2 * TARGETS))][:TARGETS]):
        items.append(plane.admin.create({"apiVersion": "example.com/v1", "kind": "Crew", "spec": {"size": 3},
                                         "metadata": {"namespace": namespace, "name": f"crew-{number}"}}))
        plane.admin.patch(f"/apis/example.com/v1/namespaces/{namespace}/crews/crew-{number}/status",
                          {"status": {"size": 2, "selector": selector}})
    return items


CREW_RULE = {"apiGroups": ["example.com"], "resources": ["crews/scale"], "verbs": ["get"]}


@pytest.fixture
def shipped(control_plane, namespace):
    """A kubeconfig with the rights of the shipped role; and those of the kind, as the user gives them."""
    plane = control_plane
    install(plane, "namespace.yaml", "serviceaccount.yaml", "role.yaml", "role-cluster-wide.yaml")
    plane.grant(namespace, "crew", [CREW_RULE])
    plane.admin.patch(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings/{namespace}-crew", {
        "subjects": [{"kind": "ServiceAccount", "namespace": "alertscaler", "name": "alertscaler"}]})
    plane.wait_allowed("system:serviceaccount:alertscaler:alertscaler", [CREW_RULE], namespace)
    return plane.write_kubeconfig("alertscaler", token=plane.account_token("alertscaler", "alertscaler"))


@pytest.fixture
def lister(control_plane, namespace):
    """A kubeconfig without the right to watch pods."""
    plane = control_plane
    plane.admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": namespace, "name": "lister"}})
    plane.grant(namespace, "lister", [CREW_RULE, {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}])
    return plane.write_kubeconfig("lister", token=plane.account_token(namespace, "lister"))


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


def count_lists(plane, namespace):
    """Lists of the pods of a namespace by service accounts. Controllers of Kubernetes list them too."""
    requests = map(json.loads, plane.audit_log.read_text().splitlines())
    return sum(one["verb"] == "list" and one["objectRef"].get("namespace") == namespace for one in requests)


def observe_once(driver, items):
    tickets = [driver.start("observe", "kubernetes", workload(item), with_pods=True) for item in items]
    return [{**driver.wait(ticket), "ticket": None} for ticket in tickets]


def observe(driver, items):
    """A busy API server may need a second try."""
    seen = []
    for start in range(0, len(items), BATCH):
        batch = items[start:start + BATCH]
        for _ in range(3):
            answers = observe_once(driver, batch)
            if all(one["outcome"] != "timeout" for one in answers):
                break
        assert {one["outcome"] for one in answers} == {"applied"}, answers
        seen += answers
    return seen


def observe_by_lists(make_driver, kubeconfig, items):
    """Two drivers, as one with as many targets watches."""
    half = len(items) // 2
    return observe(make_driver(kubeconfig), items[:half]) + observe(make_driver(kubeconfig), items[half:])


def observe_without_lists(plane, namespace, driver, items):
    """Waits for the watch."""
    def probe():
        before = count_lists(plane, namespace)
        seen = observe(driver, items)
        return seen if count_lists(plane, namespace) == before else None
    return eventually(probe, what="no pods are listed")


def test_a_watch_gives_the_pods_of_the_lists(control_plane, namespace, crews, shipped, make_driver):
    plane = control_plane
    create_pods(plane, [make_any_pod(namespace, number) for number in range(PODS)])
    for number in range(PODS):
        set_any_status(plane, namespace, number)
    driver = make_driver(shipped)
    observe(driver, crews)
    watched = observe_without_lists(plane, namespace, driver, crews)
    listed = observe_by_lists(make_driver, shipped, crews)
    assert watched == listed
    assert len({tuple(pod["name"] for pod in one["pods"]) for one in listed}) > TARGETS / 4     # the selectors differ
    assert {pod["phase"] for one in listed for pod in one["pods"]} == {"Pending", "Running", "Succeeded", "Failed", "Unknown"}
    assert any(pod["deleting"] for one in listed for pod in one["pods"])

    for number in range(0, PODS, 9):
        release(plane, namespace, number)       # they vanish
    for number in range(1, PODS, 9):
        plane.admin.patch(f"/api/v1/namespaces/{namespace}/pods/pod-{number}",
                          {"metadata": {"labels": {"app": "c", "tier": None}}})
        set_status(plane, namespace, f"pod-{number}", phase="Running", conditions=ready_condition("True", "2026-11-21T09:00:00Z"))
    create_pods(plane, [make_any_pod(namespace, number) for number in range(PODS + 1, PODS + 9)])
    changed = observe_by_lists(make_driver, shipped, crews)
    assert changed != listed
    eventually(lambda: observe_without_lists(plane, namespace, driver, crews) == changed, what="the watch has told of the changes")
    for number in range(PODS, PODS + 9):
        plane.admin.request("PATCH", f"/api/v1/namespaces/{namespace}/pods/pod-{number}", {"metadata": {"finalizers": None}},
                            content_type="application/merge-patch+json")


def test_without_the_right_to_watch_lists_go_on(control_plane, namespace, crews, lister, make_driver):
    plane = control_plane
    create_pods(plane, [make_any_pod(namespace, number) for number in (1, 2, 3)])
    driver = make_driver(lister)
    first = observe(driver, crews)
    before = count_lists(plane, namespace)
    for _ in range(2):
        assert observe(driver, crews) == first
    assert count_lists(plane, namespace) - before >= 2 * len(crews)      # an observation that ends by a timeout begins again
    warnings = [line for line in driver.log.read_text().splitlines() if "pods cannot be watched" in line]
    assert len(warnings) == 1 and "403" in warnings[0], driver.log.read_text()
