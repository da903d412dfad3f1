"""The target layer against the real API server and against HTTP node groups, with the rights of the shipped role."""
import base64
import concurrent.futures
import copy
import json
import pathlib
import re
import subprocess
import sys
import time

import pytest
import yaml

from harness.control_plane import ADMIN_TOKEN
from harness.deploy import install
from harness.files import replace
from harness.kube import STRATEGIC_MERGE_PATCH, path_of
from harness.node_group import Fault
from harness.ports import free_port
from harness.process import Process
from harness.targets import TargetDriver, group, workload
from harness.wait import eventually

ROOT = pathlib.Path(__file__).parents[2]

POD = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web"}]}}

WORKERS = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "workers.example.com"},
    "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"plural": "workers", "singular": "worker", "kind": "Worker"},
        "versions": [{
            "name": "v1", "served": True, "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"size": {"type": "integer", "maximum": 50}}},
                "status": {"type": "object", "properties": {"size": {"type": "integer"}}}}}},
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size",
                                                     "statusReplicasPath": ".status.size"}},
        }],
    },
}


# One with a selector, of which no controller makes pods.
CREWS = copy.deepcopy(WORKERS)
CREWS["metadata"]["name"] = "crews.example.com"
CREWS["spec"]["names"] = {"plural": "crews", "singular": "crew", "kind": "Crew"}
CREWS["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["selector"] = {
    "type": "string"}
CREWS["spec"]["versions"][0]["subresources"]["scale"]["labelSelectorPath"] = ".status.selector"


def make_workload(kind, namespace, name="web", replicas=3):
    selector = {"app": "web"} if kind == "ReplicationController" else {"matchLabels": {"app": "web"}}
    spec = {"replicas": replicas, "selector": selector, "template": POD}
    if kind == "StatefulSet":
        spec["serviceName"] = "web"
    if kind == "Worker":
        spec = {"size": replicas}
    version = {"ReplicationController": "v1", "Worker": "example.com/v1"}.get(kind, "apps/v1")
    return {"apiVersion": version, "kind": kind, "metadata": {"namespace": namespace, "name": name}, "spec": spec}


@pytest.fixture
def plane(control_plane):
    """A control plane with the shipped service account and role."""
    install(control_plane, "namespace.yaml", "serviceaccount.yaml", "role.yaml", "role-cluster-wide.yaml")
    return control_plane


@pytest.fixture
def workers(plane):
    """A kind of its own, with the shipped example of a role for it."""
    try:
        plane.admin.create(WORKERS)
    except Exception as error:
        assert getattr(error, "status", 0) == 409, error
    install(plane, "role-custom-resource.yaml")
    eventually(lambda: plane.admin.request("GET", "/apis/example.com/v1/workers").ok, what="workers are served")
    return plane


@pytest.fixture
def crew(plane, namespace):
    """An object whose scale selects `app=web` in its namespace, and which the shipped account may read."""
    try:
        plane.admin.create(CREWS)
    except Exception as error:
        assert getattr(error, "status", 0) == 409, error
    eventually(lambda: plane.admin.request("GET", "/apis/example.com/v1/crews").ok, what="crews are served")
    rules = [{"apiGroups": ["example.com"], "resources": ["crews/scale"], "verbs": ["get"]}]
    plane.grant(namespace, "crew", rules)
    plane.admin.patch(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings/{namespace}-crew", {
        "subjects": [{"kind": "ServiceAccount", "namespace": "alertscaler", "name": "alertscaler"}]})
    plane.wait_allowed("system:serviceaccount:alertscaler:alertscaler", rules, namespace)
    item = plane.admin.create({"apiVersion": "example.com/v1", "kind": "Crew",
                               "metadata": {"namespace": namespace, "name": "web"}, "spec": {"size": 3}})
    plane.admin.patch(f"/apis/example.com/v1/namespaces/{namespace}/crews/web/status",
                      {"status": {"size": 2, "selector": "app=web,tier in (front)"}})
    return item


@pytest.fixture
def token_file(plane, tmp_path):
    file = tmp_path / "token"
    file.write_text(plane.account_token("alertscaler", "alertscaler"))
    return file


@pytest.fixture
def make_driver(tmp_path):
    made = []

    def make(*options, **more):
        made.append(TargetDriver(tmp_path, *options, **more))
        return made[-1]

    yield make
    for driver in made:
        driver.stop()


@pytest.fixture
def driver(plane, token_file, make_driver):
    """Acts as the shipped service account."""
    return make_driver("--kubeconfig", plane.write_kubeconfig("alertscaler", tokenFile=str(token_file)))


def settle(plane, item):
    """Waits until the controllers are through with a workload: its status changes its version, too, and they may not have begun."""
    path = path_of(item["apiVersion"], item["kind"], item["metadata"]["namespace"], item["metadata"]["name"])
    last = [None, 0]

    def is_done(found):
        status, wanted = found.get("status", {}), found["spec"].get("replicas")
        there, ready = status.get("replicas", 0), status.get("readyReplicas", 0)
        if item["kind"] == "DaemonSet":
            wanted = status.get("desiredNumberScheduled")
            there, ready = status.get("updatedNumberScheduled", 0), status.get("numberAvailable", 0)
        return item["kind"] in ("Worker", "Crew") or (
            status.get("observedGeneration") == found["metadata"].get("generation", status.get("observedGeneration"))
            and there == ready == wanted)

    def settled():
        found = plane.admin.get(path)
        version = found["metadata"]["resourceVersion"]
        last[:] = [version, last[1] + 1 if is_done(found) and version == last[0] else 0]
        return last[1] >= 6

    eventually(settled, interval=0.1, what="the workload has settled")


def create(plane, item):
    created = plane.admin.create(item)
    settle(plane, item)
    return created


def events(plane, item):
    """What `kubectl describe` would show."""
    namespace = item["metadata"]["namespace"]
    found = plane.admin.get(f"/api/v1/namespaces/{namespace}/events")["items"]
    return [e for e in found if e["source"].get("component") == "alertscaler"
            and e["involvedObject"]["uid"] == item["metadata"]["uid"]]


# Kubernetes: what is scaled


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "Worker"])
def test_every_kind_is_observed_and_scaled(workers, namespace, driver, kind):
    item = create(workers, make_workload(kind, namespace))
    seen = driver.observe("kubernetes", workload(item))
    assert (seen["outcome"], seen["replicas"], seen["min"], seen["max"]) == ("applied", 3, -1, -1)
    done = driver.scale("kubernetes", workload(item), seen, 5, rule="slow", alert="Latency", decision="01HD")
    assert (done["outcome"], done["attempts"], done["method"]) == ("applied", 1, "PUT"), done
    assert done["path"].endswith(f"/namespaces/{namespace}/{kind.lower()}s/web/scale")
    assert driver.observe("kubernetes", workload(item))["replicas"] == 5
    assert workers.admin.replicas(done["path"].removesuffix("/scale")) == 5
    event, = eventually(lambda: events(workers, item), what="the event")
    assert (event["type"], event["reason"]) == ("Normal", "SuccessfulRescale")
    assert event["message"] == "New size: 5; reason: rule slow (alert Latency); decision 01HD"
    assert "SuccessfulRescale" in workers.kubectl("describe", "-n", namespace, kind.lower(), "web").stdout \
        or kind == "Worker"


def test_status_replicas_are_those_that_exist(plane, namespace, driver):
    item = create(plane, make_workload("Deployment", namespace))

    def probe():
        seen = driver.observe("kubernetes", workload(item))
        return seen["status_replicas"] == 3 and seen["replicas"] == 3

    eventually(probe, what="the pods are there")


def test_scaling_to_zero_and_back(plane, namespace, driver):
    item = create(plane, make_workload("Deployment", namespace))
    for size in (0, 2):
        seen = driver.observe("kubernetes", workload(item))
        assert driver.scale("kubernetes", workload(item), seen, size)["outcome"] == "applied"
        assert driver.observe("kubernetes", workload(item))["replicas"] == size
        settle(plane, item)


def test_many_at_a_time_share_one_connection(plane, namespace, driver):
    """HTTP/2, and kept open."""
    items = [plane.admin.create(make_workload("Deployment", namespace, f"web-{i}", replicas=0)) for i in range(40)]
    for _ in range(2):
        tickets = [driver.start("observe", "kubernetes", workload(item)) for item in items]
        assert all(driver.wait(ticket)["outcome"] == "applied" for ticket in tickets)
        assert driver.connections(plane.url) == 1


# Kubernetes: pods


def make_pod(namespace, name, *resources, labels=None, **metadata):
    containers = [{"name": f"c{i}", "image": "web", "resources": r} for i, r in enumerate(resources or ({},))]
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": namespace, "name": name, "labels": labels or {"app": "web", "tier": "front"},
                         **metadata},
            "spec": {"containers": containers, "schedulerName": "nobody"}}      # its status is the test's


def create_pods(plane, items):
    namespace = items[0]["metadata"]["namespace"]
    eventually(lambda: plane.admin.request("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts/default").ok,
               what="pods may be created")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(plane.admin.create, items))


def set_status(plane, namespace, name, **status):
    plane.admin.patch(f"/api/v1/namespaces/{namespace}/pods/{name}/status", {"status": status}, STRATEGIC_MERGE_PATCH)


def ready_condition(status, at):
    return [{"type": "ContainersReady", "status": "True", "lastTransitionTime": "2026-11-20T08:00:00Z"},
            {"type": "Ready", "status": status, "lastTransitionTime": at}]


def test_pods_are_seen_as_they_are(plane, namespace, crew, driver):
    requests = {"cpu": "250m", "memory": "64Mi"}
    create_pods(plane, [
        make_pod(namespace, "running", {"requests": requests, "limits": {"cpu": "1", "memory": "1Gi"}},
                 {"requests": {"cpu": "1.5", "memory": "128974848"}, "limits": {"cpu": "2"}}),
        make_pod(namespace, "unready", {"requests": {"cpu": "1e-1"}}),
        make_pod(namespace, "pending"),
        make_pod(namespace, "failed"),
        make_pod(namespace, "unsure"),
        make_pod(namespace, "deleting", finalizers=["example.com/wait"]),
        make_pod(namespace, "other", labels={"app": "web", "tier": "back"}),
    ])
    set_status(plane, namespace, "running", phase="Running", startTime="2026-11-20T09:00:00Z",
               conditions=ready_condition("True", "2026-11-20T09:00:20Z"))
    set_status(plane, namespace, "unready", phase="Running", startTime="2026-11-20T09:01:00Z",
               conditions=ready_condition("False", "2026-11-20T09:01:00Z"))
    set_status(plane, namespace, "failed", phase="Failed")
    set_status(plane, namespace, "unsure", phase="Unknown", conditions=ready_condition("Unknown", None))
    plane.admin.delete(f"/api/v1/namespaces/{namespace}/pods/deleting", grace=0)

    seen = driver.observe("kubernetes", workload(crew), with_pods=True)
    assert (seen["outcome"], seen["replicas"], seen["status_replicas"], seen["message"]) == ("applied", 3, 2, ""), seen
    assert [pod["name"] for pod in seen["pods"]] == ["deleting", "failed", "pending", "running", "unready", "unsure"]
    pods = {pod.pop("name"): pod for pod in seen["pods"]}
    nothing = {"cpu": None, "memory": None}
    alone = {"owner": "target", "owner_name": None, "owner_error": None}      # owners are not asked for
    fresh = {"phase": "Pending", "ready": None, "deleting": False, "start_time": None, "ready_since": None,
             "requests": nothing, "limits": nothing, "containers": [{"name": "c0", "requests": nothing, "limits": nothing}], **alone}
    assert pods["pending"] == fresh
    assert pods["deleting"] == {**fresh, "deleting": True}
    assert pods["failed"] == {**fresh, "phase": "Failed"}
    assert pods["unsure"] == {**fresh, "phase": "Unknown"}
    assert pods["running"] == {
        "phase": "Running", "ready": True, "deleting": False,
        "start_time": "2026-11-20T09:00:00Z", "ready_since": "2026-11-20T09:00:20Z",
        "requests": {"cpu": 1.75, "memory": 64 * 2**20 + 128974848}, "limits": {"cpu": 3, "memory": None}, **alone,
        "containers": [{"name": "c0", "requests": {"cpu": 0.25, "memory": 64 * 2**20}, "limits": {"cpu": 1, "memory": 2**30}},
                       {"name": "c1", "requests": {"cpu": 1.5, "memory": 128974848}, "limits": {"cpu": 2, "memory": None}}]}
    assert pods["unready"] == {
        "phase": "Running", "ready": False, "deleting": False,
        "start_time": "2026-11-20T09:01:00Z", "ready_since": "2026-11-20T09:01:00Z",
        "requests": {"cpu": 0.1, "memory": None}, "limits": nothing, **alone,
        "containers": [{"name": "c0", "requests": {"cpu": 0.1, "memory": None}, "limits": nothing}]}
    assert driver.observe("kubernetes", workload(crew))["pods"] is None
    plane.admin.patch(f"/api/v1/namespaces/{namespace}/pods/deleting", {"metadata": {"finalizers": None}})


def test_more_pods_than_fit_on_a_page(plane, namespace, crew, driver):
    names = [f"web-{i}" for i in range(1001)]     # the third page holds one
    create_pods(plane, [make_pod(namespace, name, {"requests": {"cpu": "100m"}}) for name in names])
    seen = driver.observe("kubernetes", workload(crew), with_pods=True)
    assert seen["outcome"] == "applied", seen
    assert [pod["name"] for pod in seen["pods"]] == sorted(names)
    assert {pod["requests"]["cpu"] for pod in seen["pods"]} == {0.1}


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"])
def test_the_pods_of_every_kind(plane, namespace, driver, kind):
    item = create(plane, make_workload(kind, namespace))

    def probe():
        seen = driver.observe("kubernetes", workload(item), with_pods=True)
        assert seen["outcome"] == "applied", seen
        return [p["ready"] and p["phase"] for p in seen["pods"]] == ["Running"] * 3

    eventually(probe, what="three pods are ready")


def test_no_pods_at_all(plane, namespace, driver):
    item = create(plane, make_workload("Deployment", namespace, replicas=0))
    seen = driver.observe("kubernetes", workload(item), with_pods=True)
    assert (seen["outcome"], seen["pods"], seen["message"]) == ("applied", [], "")


def test_pods_without_a_selector(workers, namespace, driver):
    item = create(workers, make_workload("Worker", namespace))
    seen = driver.observe("kubernetes", workload(item), with_pods=True)
    assert (seen["outcome"], seen["replicas"], seen["pods"]) == ("applied", 3, None)
    assert seen["message"] == "pods are not known: the scale subresource has no selector"


def test_a_selector_that_is_none(plane, namespace, crew, driver):
    plane.admin.patch(f"/apis/example.com/v1/namespaces/{namespace}/crews/web/status",
                      {"status": {"selector": "app in (web"}})
    seen = driver.observe("kubernetes", workload(crew), with_pods=True)
    assert (seen["outcome"], seen["http_status"], seen["pods"]) == ("rejected", 400, None), seen
    assert seen["message"].startswith("list pods: ") and "unable to parse" in seen["message"]


def test_without_the_right_to_list_pods(plane, namespace, make_driver):
    item = create(plane, make_workload("Deployment", namespace))
    plane.create_account(namespace, "scaler")
    plane.grant(namespace, "scaler", [{"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get"]}])
    token = plane.account_token(namespace, "scaler")
    driver = make_driver("--kubeconfig", plane.write_kubeconfig("scaler", token=token))
    seen = driver.observe("kubernetes", workload(item), with_pods=True)
    assert (seen["outcome"], seen["http_status"], seen["pods"]) == ("forbidden", 403, None), seen
    assert seen["message"].startswith('list pods: the right "pods: list" is missing: pods is forbidden: User ')
    assert driver.observe("kubernetes", workload(item))["outcome"] == "applied"


# Kubernetes: what goes wrong


def test_a_stale_version_is_a_conflict(plane, namespace, driver):
    item = create(plane, make_workload("Deployment", namespace))
    seen = driver.observe("kubernetes", workload(item))
    plane.admin.patch(f"/apis/apps/v1/namespaces/{namespace}/deployments/web", {"spec": {"replicas": 4}})
    done = driver.scale("kubernetes", workload(item), seen, 6)
    assert (done["outcome"], done["http_status"], done["is_ambiguous"]) == ("conflict", 409, False)
    assert "has been modified" in done["message"]
    assert driver.observe("kubernetes", workload(item))["replicas"] == 4


def test_what_is_not_there(plane, namespace, driver):
    for kind in ("Deployment", "ReplicationController"):
        item = make_workload(kind, namespace, "nobody")
        seen = driver.observe("kubernetes", workload(item))
        assert (seen["outcome"], seen["http_status"]) == ("target_not_found", 404)
        assert "nobody" in seen["message"]


def test_an_object_deleted_between_observing_and_scaling(plane, namespace, driver):
    item = create(plane, make_workload("StatefulSet", namespace, replicas=0))
    seen = driver.observe("kubernetes", workload(item))
    plane.admin.delete(f"/apis/apps/v1/namespaces/{namespace}/statefulsets/web")
    plane.admin.wait_gone(f"/apis/apps/v1/namespaces/{namespace}/statefulsets/web")
    done = driver.scale("kubernetes", workload(item), seen, 2)
    assert (done["outcome"], done["is_ambiguous"]) == ("target_not_found", False)


def test_kinds_that_cannot_be_scaled(plane, namespace, driver):
    for version, kind, outcome, message in (
            ("apps/v1", "DaemonSet", "rejected", "DaemonSet of apps/v1 has no scale subresource"),
            ("apps/v1", "Deploymnet", "target_not_found", "the cluster has no kind Deploymnet in apps/v1"),
            ("nope.example/v1", "Thing", "target_not_found", "the cluster does not serve nope.example/v1")):
        fields = {"cluster": "default", "apiVersion": version, "kind": kind, "namespace": namespace, "name": "web"}
        seen = driver.observe("kubernetes", fields)
        assert (seen["outcome"], seen["message"]) == (outcome, message)


def test_a_kind_that_appears_later_is_found(plane, namespace, driver):
    crd = json.loads(json.dumps(WORKERS).replace("workers", "latecomers").replace("worker", "latecomer")
                     .replace("Worker", "Latecomer").replace("example.com", "late.example.com"))
    plane.grant("alertscaler", "alertscaler", [{"apiGroups": ["late.example.com"], "resources": ["latecomers/scale"],
                                                "verbs": ["get", "update"]}], cluster_wide=True)
    fields = {"cluster": "default", "apiVersion": "late.example.com/v1", "kind": "Latecomer",
              "namespace": namespace, "name": "l"}
    assert driver.observe("kubernetes", fields)["outcome"] == "target_not_found"
    plane.admin.create(crd)
    item = {"apiVersion": "late.example.com/v1", "kind": "Latecomer",
            "metadata": {"namespace": namespace, "name": "l"}, "spec": {"size": 2}}
    path = f"/apis/late.example.com/v1/namespaces/{namespace}/latecomers"
    eventually(lambda: plane.admin.request("POST", path, item).ok, what="the kind is served")
    eventually(lambda: driver.observe("kubernetes", fields)["outcome"] == "applied",
               what="the kind is found")


def test_a_size_the_schema_forbids_is_rejected(workers, namespace, driver):
    item = create(workers, make_workload("Worker", namespace))
    seen = driver.observe("kubernetes", workload(item))
    done = driver.scale("kubernetes", workload(item), seen, 51, rule="slow", decision="01HD")
    assert (done["outcome"], done["http_status"], done["is_ambiguous"]) == ("rejected", 422, False)
    assert "spec.size" in done["message"]
    event, = eventually(lambda: events(workers, item), what="the event")
    assert (event["type"], event["reason"]) == ("Warning", "FailedRescale")
    assert "error: rejected: " in event["message"]


def test_without_the_right_it_is_forbidden(plane, namespace, make_driver):
    item = create(plane, make_workload("Deployment", namespace))
    plane.create_account(namespace, "reader")
    plane.grant(namespace, "reader", [{"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get"]}])
    token = plane.account_token(namespace, "reader")
    driver = make_driver("--kubeconfig", plane.write_kubeconfig("reader", token=token))
    seen = driver.observe("kubernetes", workload(item))
    assert seen["outcome"] == "applied"
    done = driver.scale("kubernetes", workload(item), seen, 5)
    assert (done["outcome"], done["http_status"], done["is_ambiguous"]) == ("forbidden", 403, False)
    assert "cannot update" in done["message"] and token not in done["message"]
    other = make_workload("StatefulSet", namespace)
    assert driver.observe("kubernetes", workload(other))["outcome"] == "forbidden"


def test_the_api_server_is_down(plane, namespace, driver):
    item = create(plane, make_workload("Deployment", namespace))
    seen = driver.observe("kubernetes", workload(item))
    plane.apiserver.kill()
    done = driver.scale("kubernetes", workload(item), seen, 5)
    assert done["outcome"] == "unreachable" and not done["is_ambiguous"] and done["http_status"] == 0, done
    plane.start_apiserver()
    seen = driver.observe("kubernetes", workload(item))
    assert driver.scale("kubernetes", workload(item), seen, 5)["outcome"] == "applied"


def test_the_api_server_hangs(plane, namespace, driver):
    item = create(plane, make_workload("Deployment", namespace))
    seen = driver.observe("kubernetes", workload(item))
    plane.apiserver.pause()
    start = time.monotonic()
    done = driver.scale("kubernetes", workload(item), seen, 5)
    took = time.monotonic() - start
    plane.apiserver.resume()
    assert (done["outcome"], done["is_ambiguous"]) == ("timeout", True), done
    assert 9 < took < 20
    eventually(lambda: driver.observe("kubernetes", workload(item))["outcome"] == "applied", what="it is back")


# Kubernetes: as whom


def test_a_rotated_token(plane, namespace, token_file, driver):
    """The old token has ended and the new one is in the file: seen at the 401, before anyone looks at the file."""
    item = create(plane, make_workload("Deployment", namespace))
    good = token_file.read_text()
    replace(token_file, "no-token-at-all")
    seen = driver.observe("kubernetes", workload(item))
    assert (seen["outcome"], seen["http_status"]) == ("forbidden", 401)
    replace(token_file, good)
    seen = driver.observe("kubernetes", workload(item))
    assert seen["outcome"] == "applied"
    done = driver.scale("kubernetes", workload(item), seen, 5)
    assert (done["outcome"], done["attempts"]) == ("applied", 1)


def test_a_scale_with_an_ended_token_takes_two_attempts(plane, namespace, token_file, driver):
    item = create(plane, make_workload("Deployment", namespace))
    seen = driver.observe("kubernetes", workload(item))
    plane.admin.delete("/api/v1/namespaces/alertscaler/serviceaccounts/alertscaler")   # ends its tokens
    plane.create_account("alertscaler", "alertscaler")
    eventually(lambda: driver.observe("kubernetes", workload(item))["outcome"] == "forbidden",
               what="the old token has ended")
    replace(token_file, plane.account_token("alertscaler", "alertscaler"))
    done = driver.scale("kubernetes", workload(item), seen, 5)
    assert (done["outcome"], done["attempts"]) == ("applied", 2), done


def test_in_cluster(plane, namespace, tmp_path, make_driver):
    item = create(plane, make_workload("Deployment", namespace))
    account = tmp_path / "serviceaccount"
    account.mkdir()
    (account / "token").write_text(plane.account_token("alertscaler", "alertscaler"))
    (account / "ca.crt").write_bytes(plane.authority.certificate.read_bytes())
    host, port = plane.url.removeprefix("https://").split(":")
    driver = make_driver("--service-account", account,
                         env={"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port})
    seen = driver.observe("kubernetes", workload(item))
    assert (seen["outcome"], seen["replicas"]) == ("applied", 3)


def test_another_authority_is_not_trusted(plane, namespace, tmp_path, make_driver):
    account = tmp_path / "serviceaccount"
    account.mkdir()
    (account / "token").write_text(plane.account_token("alertscaler", "alertscaler"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-subj", "/CN=other", "-keyout", "/dev/null", "-out", account / "ca.crt"],
                   check=True, capture_output=True)
    host, port = plane.url.removeprefix("https://").split(":")
    driver = make_driver("--service-account", account,
                         env={"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port})
    seen = driver.observe("kubernetes", workload(make_workload("Deployment", namespace)))
    assert seen["outcome"] == "unreachable" and "certificate" in seen["message"].lower(), seen


@pytest.mark.parametrize("inline", [False, True])
def test_a_client_certificate(plane, namespace, tmp_path, make_driver, inline):
    item = create(plane, make_workload("Deployment", namespace))
    pair = plane.authority.issue(f"operator-{inline}", subject="/O=system:masters/CN=operator", usage="clientAuth",
                                 alternative_names=None)
    kubeconfig = plane.write_kubeconfig("operator", client_certificate=pair)
    if inline:
        data = yaml.safe_load(kubeconfig.read_text())
        user, cluster = data["users"][0]["user"], data["clusters"][0]["cluster"]
        for holder, key in ((user, "client-certificate"), (user, "client-key"), (cluster, "certificate-authority")):
            holder[key + "-data"] = base64.b64encode(pathlib.Path(holder.pop(key)).read_bytes()).decode()
        kubeconfig.write_text(yaml.safe_dump(data))
    driver = make_driver(env={"KUBECONFIG": f"{tmp_path}/nothing:{kubeconfig}"})
    assert driver.observe("kubernetes", workload(item))["outcome"] == "applied"


def test_a_credential_plugin(plane, namespace, tmp_path, make_driver):
    """Run once for many; again when the server does not accept what it gave."""
    item = create(plane, make_workload("Deployment", namespace))
    (tmp_path / "token").write_text("no-token-at-all")
    plugin = tmp_path / "login"
    plugin.write_text(f"""#!/bin/sh
echo "$KUBERNETES_EXEC_INFO $1 $STAGE" >>{tmp_path}/runs
printf '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {{"token": "%s"}}}}' \
    "$(cat {tmp_path}/token)"
""")
    plugin.chmod(0o755)
    kubeconfig = plane.write_kubeconfig("plugin", exec={
        "apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "args": ["get-token"],
        "env": [{"name": "STAGE", "value": "test"}], "interactiveMode": "Never", "provideClusterInfo": True})
    driver = make_driver("--kubeconfig", kubeconfig)
    assert driver.observe("kubernetes", workload(item))["outcome"] == "forbidden"
    before = len((tmp_path / "runs").read_text().splitlines())
    assert before in (1, 2)     # 2: the refusal took longer than the second in which it is not run again
    (tmp_path / "token").write_text(ADMIN_TOKEN)
    time.sleep(1.1)
    tickets = [driver.start("observe", "kubernetes", workload(item)) for _ in range(5)]
    assert {driver.wait(ticket)["outcome"] for ticket in tickets} == {"applied"}
    runs = (tmp_path / "runs").read_text().splitlines()
    assert len(runs) == before + 1, runs
    info, argument, stage = runs[0].rsplit(" ", 2)
    assert (argument, stage) == ("get-token", "test")
    assert json.loads(info)["spec"]["cluster"]["server"] == plane.url


def test_a_credential_plugin_that_fails(plane, namespace, make_driver):
    kubeconfig = plane.write_kubeconfig("plugin", exec={
        "apiVersion": "client.authentication.k8s.io/v1", "command": "/nonexistent/login", "interactiveMode": "Never"})
    driver = make_driver("--kubeconfig", kubeconfig)
    seen = driver.observe("kubernetes", workload(make_workload("Deployment", namespace)))
    assert seen["outcome"] == "unreachable"
    assert seen["message"] == "credential plugin /nonexistent/login: No such file or directory"


# HTTP node groups


@pytest.mark.parametrize("etag", ["header", "body", None])
def test_a_node_group(node_group, make_driver, etag):
    pool = node_group(size=4, etag=etag, min=1, max=10, in_progress=False)
    driver = make_driver()
    seen = driver.observe("node_group", group(pool.url))
    assert (seen["outcome"], seen["replicas"], seen["min"], seen["max"]) == ("applied", 4, 1, 10)
    assert driver.observe("node_group", group(pool.url), with_pods=True) == {**seen, "ticket": 2, "pods": None}
    assert seen["version"] == {"header": '"v1"', "body": "v1", None: ""}[etag]
    done = driver.scale("node_group", group(pool.url), seen, 6)
    assert (done["outcome"], done["attempts"], done["path"]) == ("applied", 1, "/groups/workers"), done
    assert pool.size == 6 and pool.puts[-1].body == {"size": 6, "observed": 4}
    assert pool.puts[-1].if_match == (seen["version"] or None)

    pool.size = 7                                       # someone else
    done = driver.scale("node_group", group(pool.url), seen, 8)
    assert (done["outcome"], done["http_status"], done["message"]) == ("conflict", 412, "size is 7")
    assert pool.size == 7


def test_a_node_group_with_a_token_that_rotates(node_group, make_driver, tmp_path):
    pool = node_group(size=4, token="one")
    (tmp_path / "token").write_text("zero\n")
    driver = make_driver("--credentials-file", tmp_path / "token")
    assert driver.observe("node_group", group(pool.url))["outcome"] == "forbidden"
    replace(tmp_path / "token", "one\n")
    time.sleep(1.1)                                     # a changed secret counts when its file has not changed for a second
    assert driver.observe("node_group", group(pool.url))["outcome"] == "applied"


@pytest.mark.parametrize("fault, outcome, ambiguous", [
    (Fault(status=400), "rejected", False),
    (Fault(status=404), "target_not_found", False),
    (Fault(status=409), "conflict", False),
    (Fault(status=429, headers={"Retry-After": "7"}), "throttled", False),
    (Fault(status=500, apply=True), "unreachable", True),
    (Fault(status=302, headers={"Location": "/elsewhere"}), "rejected", False),
    (Fault(hang_up=True), "unreachable", True),
    (Fault(delay=60), "timeout", True),      # a driver that stands still meanwhile must not find an answer
])
def test_what_goes_wrong_with_a_node_group(node_group, make_driver, fault, outcome, ambiguous):
    pool = node_group(size=4)
    seen = make_driver().observe("node_group", group(pool.url))
    pool.inject(fault)
    driver = make_driver()      # a connection of its own: on a used one, HTTP clients send again what got no answer
    done = driver.scale("node_group", group(pool.url), seen, 6)
    assert (done["outcome"], done["is_ambiguous"]) == (outcome, ambiguous), done
    assert done["retry_after_us"] == (7_000_000 if fault.status == 429 else 0)
    assert len(pool.puts) == 1


def test_a_node_group_that_is_not_there(make_driver):
    done = make_driver().observe("node_group", group(f"http://127.0.0.1:{free_port()}/pool"))
    assert (done["outcome"], done["http_status"]) == ("unreachable", 0)


def test_the_example_of_the_documentation(make_driver, started, tmp_path):
    """A dozen lines of anything."""
    page = (ROOT / "docs/targets.md").read_text()
    example, = re.findall(r"```python\n(.*?)```", page, re.S)
    port = free_port()
    assert len(example.strip().splitlines()) <= 13 and "8080" in example
    (tmp_path / "pool.py").write_text(example.replace("8080", str(port)))
    started(Process("pool", [sys.executable, tmp_path / "pool.py"], tmp_path)).start()
    driver = make_driver()
    address = group(f"http://127.0.0.1:{port}/")
    seen = eventually(lambda: (s := driver.observe("node_group", address))["outcome"] == "applied" and s, what="it runs")
    done = driver.scale("node_group", address, seen, seen["replicas"] + 2)
    assert done["outcome"] == "applied"
    assert driver.observe("node_group", address)["replicas"] == seen["replicas"] + 2
    assert driver.scale("node_group", address, seen, 9)["outcome"] == "conflict"
