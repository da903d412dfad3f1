"""Fields of objects as sizes, through the built binary on the real API server, with the rights of docs/fields.md."""
import copy
import json
import pathlib
import re
import subprocess
import threading

import pytest
import yaml

from harness.custom_metrics import MetricsApis, Table
from harness.daemon import find_binary
from harness.deploy import install
from harness.kube import path_of
from harness.notification import alert, notification
from harness.twins import HPA_FLAGS
from harness.wait import eventually, steadily
from test_targets import make_workload

ROOT = pathlib.Path(__file__).parents[2]
ACCOUNT = ("alertscaler", "alertscaler")
JSON_PATCH = "application/json-patch+json"
STORAGE = "spec.resources.requests.storage"
QUIET = 1.0


def role_of_the_page(namespace, resources):
    """The Role and its binding of the page, for this namespace and these {resource: (group, name)}."""
    text, = re.findall(r"^```yaml role\n(.*?)^```", (ROOT / "docs" / "fields.md").read_text(), re.MULTILINE | re.DOTALL)
    role, binding = yaml.safe_load_all(text)
    pattern, events = role["rules"][0], role["rules"][-1]
    role["rules"] = [events, *({**pattern, "apiGroups": [group], "resources": [resource], "resourceNames": [name]}
                               for resource, (group, name) in resources.items())]
    for item in (role, binding):
        item["metadata"]["namespace"] = namespace
    return role, binding


@pytest.fixture
def make(control_plane, make_daemon, namespace):
    """make(targets, rules, resources): a daemon whose account may do what the page's Role says, and nothing else."""
    install(control_plane, "namespace.yaml", "serviceaccount.yaml")
    kubeconfig = control_plane.write_kubeconfig("fields", token=control_plane.account_token(*ACCOUNT))

    def may(resource, group, name, verb):
        review = control_plane.admin.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", {
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": "system:serviceaccount:alertscaler:alertscaler", "resourceAttributes": {
                "group": group, "resource": resource, "name": name, "verb": verb, "namespace": namespace}}})
        return review["status"]["allowed"]

    def start(targets, rules, resources):
        for item in role_of_the_page(namespace, resources):
            control_plane.admin.create(item)
        for resource, (group, name) in resources.items():
            eventually(lambda: all(may(resource, group, name, verb) for verb in ("get", "patch")), what="the role holds")
        return make_daemon({"targets": targets, "rules": rules}, {"clusters": {"default": {"kubeconfig": str(kubeconfig)}}})
    return start


def target(kind, namespace, name, field, **more):
    keys = {key: more.pop(key) for key in ("unit", "absent", "status_field", "apiVersion") if key in more}
    return {"kubernetes": {"kind": kind, "namespace": namespace, "name": name, "field": field, **keys},
            "max": 20, "cooldown": {"up": "1s", "down": "1s"}, **more}


def up(name, goal, by=2, **more):
    return {"name": name, "match": [f'alertname="{name}"'], "target": goal, "scale_up": {"by": by}, "once": True, **more}


def fire(daemon, name, status="firing", **labels):
    return daemon.notify(notification(alert({"alertname": name, **labels}, status=status)))


def without_changes(item):
    """An object without what every change of it changes."""
    item = copy.deepcopy(item)
    for key in ("resourceVersion", "generation", "managedFields"):
        item["metadata"].pop(key, None)
    return item


@pytest.fixture
def storage_class(control_plane):
    """storage_class(allow): the name of a StorageClass that lets claims grow, or not."""
    def make_class(allow):
        name = f"fields-{'grows' if allow else 'stays'}"
        answer = control_plane.admin.request("POST", "/apis/storage.k8s.io/v1/storageclasses", {
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
            "provisioner": "example.com/none", "allowVolumeExpansion": allow})
        assert answer.status in (201, 409), answer.text
        return name
    return make_class


def make_claim(admin, namespace, storage_class, size="10Gi"):
    """A claim that counts as bound, as a controller of volumes would leave it."""
    path = path_of("v1", "PersistentVolumeClaim", namespace, "data")
    admin.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"namespace": namespace, "name": "data"},
                  "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class, "volumeName": f"volume-{namespace}",
                           "resources": {"requests": {"storage": size}}}})
    admin.patch(path + "/status", {"status": {"phase": "Bound", "capacity": {"storage": size}}})
    return path


def storage_of(admin, path):
    return admin.get(path)["spec"]["resources"]["requests"]["storage"]


class Load(Table):
    """One external metric: the HPA divides it by 10."""
    value = "20"

    def external(self, namespace, metric):
        return [self.value]


@pytest.mark.since(23, "the API server has autoscaling/v2")
def test_the_hpa_goes_on_working_above_a_floor_that_alerts_raise(control_plane, namespace, make, started):
    admin, load = control_plane.admin, Load()
    started(MetricsApis(control_plane, namespace, load)).start()
    started(control_plane.prepare_controller_manager("hpa-fields", ["horizontalpodautoscaling"], *HPA_FLAGS)).start()
    deployment, hpa = path_of("apps/v1", "Deployment", namespace, "web"), path_of("autoscaling/v2", "HorizontalPodAutoscaler", namespace, "web")
    admin.create(make_workload("Deployment", namespace, replicas=2))
    quick = {"stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 100, "periodSeconds": 1}]}
    admin.create({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"namespace": namespace, "name": "web"},
                  "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                           "minReplicas": 2, "maxReplicas": 20, "behavior": {"scaleUp": quick, "scaleDown": quick},
                           "metrics": [{"type": "External", "external": {
                               "metric": {"name": "load"}, "target": {"type": "AverageValue", "averageValue": "10"}}}]}})
    before = without_changes(admin.get(hpa))
    daemon = make({"floor": target("HorizontalPodAutoscaler", namespace, "web", "spec.minReplicas", min=2)},
                  [up("Away", "floor", by=4, on_resolved={"give_back": {"after": "0s", "step": "100%"}}, guard="none")],
                  {"horizontalpodautoscalers": ("autoscaling", "web")})
    fire(daemon, "Away")
    eventually(lambda: admin.get(hpa)["spec"]["minReplicas"] == 6)
    action = daemon.wait_record("action", outcome="applied", to=6)
    assert action["from"] == 2 and action["method"] == "PATCH" and "unit" not in action, action
    eventually(lambda: admin.replicas(deployment) == 6, what="the HPA obeys its new floor")
    load.value = "90"
    eventually(lambda: admin.replicas(deployment) == 9, what="the HPA goes on above the floor")
    load.value = "20"
    eventually(lambda: admin.replicas(deployment) == 6, what="and comes back to the floor, not below it")

    after = admin.get(hpa)
    managers = {entry["manager"]: entry for entry in after["metadata"]["managedFields"]}
    assert managers["alertscaler"]["fieldsV1"] == {"f:spec": {"f:minReplicas": {}}}, managers
    after["spec"]["minReplicas"] = before["spec"]["minReplicas"]
    for item in (before, after):
        item.pop("status", None)
    assert without_changes(after) == before, "nothing but the field has changed"

    fire(daemon, "Away", status="resolved")
    eventually(lambda: admin.get(hpa)["spec"]["minReplicas"] == 2, what="the floor is given back")
    eventually(lambda: admin.replicas(deployment) == 2, what="the HPA goes where its metric says")


def test_a_claim_grows_in_its_unit_and_never_shrinks(control_plane, namespace, make, storage_class):
    admin = control_plane.admin
    path = make_claim(admin, namespace, storage_class(True), size="10Gi")
    daemon = make({"disk": target("PersistentVolumeClaim", namespace, "data", STORAGE, unit="1Gi", max=500,
                                  status_field="status.capacity.storage")},
                  [up("Full", "disk", by="20%")], {"persistentvolumeclaims": ("", "data")})
    fire(daemon, "Full")
    eventually(lambda: storage_of(admin, path) == "12Gi")
    action = daemon.wait_record("action", outcome="applied", to=12)
    assert action["from"] == 10 and action["unit"] == "1Gi", action
    view = eventually(lambda: (v := daemon.target("disk"))["replicas"] == 12 and v, what="it is seen")
    assert view["unit"] == "1Gi" and view["id"].endswith(f"/data:field/{STORAGE}"), view

    def say(*words):
        return subprocess.run([find_binary(), *words], capture_output=True, text=True, check=True).stdout
    assert "12 (12Gi)" in say("status", f"--url={daemon.url}")
    assert ": 10 (10Gi) -> 12 (12Gi): applied" in say("log", str(daemon.log_file))
    told = say("explain", "--target=disk", f"--at={action['time']}", str(daemon.log_file))
    assert "The size goes from 10 (10Gi) to 12 (12Gi)" in told and "from 10 (10Gi) to 12 (12Gi): applied" in told, told
    assert "12 (12Gi)" in daemon.get("/targets/disk").text
    assert " 0 differ" in say("replay", str(daemon.log_file))
    assert storage_of(admin, path) == "12Gi"


def test_a_claim_that_its_class_does_not_let_grow(control_plane, namespace, make, storage_class):
    admin = control_plane.admin
    path = make_claim(admin, namespace, storage_class(False))
    daemon = make({"disk": target("PersistentVolumeClaim", namespace, "data", STORAGE, unit="1Gi")},
                  [up("Full", "disk")], {"persistentvolumeclaims": ("", "data")})
    fire(daemon, "Full")
    refused = daemon.wait_record("action", outcome="forbidden")
    assert "only dynamically provisioned pvc can be resized" in refused["message"], refused
    assert storage_of(admin, path) == "10Gi"


def test_scale_and_fields_of_one_object_are_targets_of_their_own(control_plane, namespace, make):
    admin, path = control_plane.admin, path_of("apps/v1", "Deployment", namespace, "web")
    item = copy.deepcopy(make_workload("Deployment", namespace, replicas=1))
    app = item["spec"]["template"]["spec"]["containers"][0]
    app["env"] = [{"name": "OTHER", "value": "x"}, {"name": "WORKERS", "value": "3"}]
    item["spec"]["template"]["spec"]["containers"].insert(0, {"name": "proxy", "image": "p", "env": [{"name": "WORKERS", "value": "8"}]})
    admin.create(item)
    field = "spec.template.spec.containers[name=web].env[name=WORKERS].value"
    locked = {"cooldown": {"up": "1h", "down": "1h"}}
    annotation = "metadata.annotations['example.com/workers']"
    targets = {"workers": target("Deployment", namespace, "web", field, **locked),
               "noted": target("Deployment", namespace, "web", annotation, absent=5, **locked),
               "delay": target("Deployment", namespace, "web", "spec.minReadySeconds", absent=1, **locked)}
    daemon = make(targets, [up("A", "workers"), up("B", "noted"), up("C", "delay")], {"deployments": ("apps", "web")})
    for name in "ABC":
        fire(daemon, name)
    for name, to in (("workers", 5), ("noted", 7), ("delay", 3)):
        eventually(lambda: daemon.target(name)["replicas"] == to, what=f"{name} is {to}")
        eventually(lambda: daemon.target(name)["locked_until"]["up"])
    now = admin.get(path)
    proxy, web = now["spec"]["template"]["spec"]["containers"]
    assert [e["value"] for e in web["env"]] == ["x", "5"] and proxy["env"][0]["value"] == "8"
    assert now["metadata"]["annotations"]["example.com/workers"] == "7"
    assert now["spec"]["minReadySeconds"] == 3 and now["spec"]["replicas"] == 1
    assert daemon.records("action", outcome="rejected") == []


def test_somebody_else_who_writes_the_same_object_all_the_time(control_plane, namespace, make):
    """Conflicts are decided again; in the end the field is what was asked for, and nothing of the other's is lost."""
    admin, path = control_plane.admin, path_of("v1", "ConfigMap", namespace, "web")
    admin.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": "web"},
                  "data": {"workers": "4", "turn": "0"}})
    daemon = make({"workers": target("ConfigMap", namespace, "web", "data.workers")}, [up("A", "workers")], {"configmaps": ("", "web")})
    stop, turns = threading.Event(), [0]

    def write():
        while not stop.wait(turns[0] / 500):        # ever longer: in the end a slow daemon has its turn
            turns[0] += 1
            admin.patch(path, {"data": {"turn": str(turns[0])}})
    writer = threading.Thread(target=write)
    writer.start()
    try:
        fire(daemon, "A")
        eventually(lambda: admin.get(path)["data"]["workers"] == "6")
    finally:
        stop.set()
        writer.join()
    assert admin.get(path)["data"] == {"workers": "6", "turn": str(turns[0])}
    daemon.wait_record("action", outcome="applied")
    assert [r["to"] for r in daemon.records("action", outcome="applied")] == [6]


def test_somebody_else_sets_the_field_meanwhile(control_plane, namespace, make):
    admin, path = control_plane.admin, path_of("v1", "ConfigMap", namespace, "web")
    admin.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": "web"}, "data": {"workers": "4"}})
    daemon = make({"workers": target("ConfigMap", namespace, "web", "data.workers")}, [up("A", "workers"), up("B", "workers")],
                  {"configmaps": ("", "web")})
    fire(daemon, "A")
    eventually(lambda: admin.get(path)["data"]["workers"] == "6")
    daemon.wait_record("action", outcome="applied", to=6)
    admin.patch(path, {"data": {"workers": "9"}})
    fire(daemon, "B")
    eventually(lambda: admin.get(path)["data"]["workers"] == "11", what="from what the other has set")


@pytest.mark.parametrize("data, field, message", [
    ({"workers": "many"}, "data.workers", 'data.workers: expected an integer, found "many"'),
    ({"workers": "10Gi"}, "data.workers", "the target needs a `unit`"),
    ({"other": "1"}, "data.workers", "data.workers: absent; there is: other"),
    ({"workers": "1"}, "data.workers.x", "data.workers: expected an object"),
    ({"workers": "-1"}, "data.workers", "expected a size from 0 to 2147483647"),
], ids=["no-number", "no-unit", "absent", "no-object", "negative"])
def test_a_value_that_is_no_size_is_an_error_with_its_place(control_plane, namespace, make, data, field, message):
    admin, path = control_plane.admin, path_of("v1", "ConfigMap", namespace, "web")
    admin.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": "web"}, "data": data})
    daemon = make({"workers": target("ConfigMap", namespace, "web", field)}, [up("A", "workers")], {"configmaps": ("", "web")})
    fire(daemon, "A")
    eventually(lambda: message in json.dumps(daemon.records(), ensure_ascii=False).replace('\\"', '"'), what="the record says why")
    steadily(lambda: admin.get(path)["data"] == data, QUIET)


def test_a_path_that_matches_two_elements(control_plane, namespace, make):
    admin, path = control_plane.admin, path_of("apps/v1", "Deployment", namespace, "web")
    item = copy.deepcopy(make_workload("Deployment", namespace, replicas=0))
    item["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "N", "value": "1"}, {"name": "N", "value": "2"}]
    admin.create(item)
    field = "spec.template.spec.containers[name=web].env[name=N].value"
    daemon = make({"workers": target("Deployment", namespace, "web", field)}, [up("A", "workers")], {"deployments": ("apps", "web")})
    fire(daemon, "A")
    eventually(lambda: "2 elements have this value, expected one" in json.dumps(daemon.records()))
    assert [r for r in daemon.records("action") if r["to"] is not None] == []


def test_replicas_of_a_kind_that_has_a_scale(control_plane, namespace, make):
    """`check` does not know the kinds of others; the API server's discovery does."""
    daemon = make({"web": target("Scaled", namespace, "web", "spec.replicas", apiVersion="apps/v1")}, [up("A", "web")],
                  {"deployments": ("apps", "web")})
    daemon.write_rules({"targets": {"web": target("Deployment", namespace, "web", "spec.replicas")}, "rules": [up("A", "web")]})
    daemon.reload()
    eventually(lambda: "is its size already" in daemon.process.log_text(), what="the reload is refused")


def test_without_rights_it_says_so(control_plane, namespace, make):
    admin, path = control_plane.admin, path_of("v1", "ConfigMap", namespace, "web")
    admin.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": "web"}, "data": {"workers": "4"}})
    daemon = make({"workers": target("ConfigMap", namespace, "web", "data.workers")}, [up("A", "workers")], {"configmaps": ("", "other")})
    fire(daemon, "A")
    eventually(lambda: 'configmaps "web" is forbidden' in json.dumps(daemon.records()).replace('\\"', '"'))
    assert admin.get(path)["data"]["workers"] == "4"


def test_another_unit_after_a_reload(control_plane, namespace, make, storage_class):
    """The lock stays; the size is counted anew, and the next change is in the new unit."""
    admin = control_plane.admin
    path = make_claim(admin, namespace, storage_class(True), size="10Gi")

    def targets(unit, lock="1h"):
        return {"disk": target("PersistentVolumeClaim", namespace, "data", STORAGE, unit=unit, cooldown={"up": lock, "down": "1h"})}
    rules = [up("A", "disk", by=1), up("B", "disk", by=1)]
    daemon = make(targets("1Gi"), rules, {"persistentvolumeclaims": ("", "data")})
    fire(daemon, "A")
    eventually(lambda: storage_of(admin, path) == "11Gi")
    daemon.wait_record("action", outcome="applied", to=11)
    daemon.write_rules({"targets": targets("5Gi"), "rules": rules})
    daemon.reload()
    daemon.wait_record("reload")
    fire(daemon, "B")
    eventually(lambda: [r for r in daemon.records("decision") if r["output"]["reason"] == "cooldown" and r.get("unit") == "5Gi"],
               what="the lock holds over the reload")
    daemon.write_rules({"targets": targets("5Gi", "1s"), "rules": rules})       # the lock ends now, however long that took
    daemon.reload()
    eventually(lambda: storage_of(admin, path) == "20Gi", what="three units of 5Gi, rounded up, and one more")


@pytest.mark.since(23, "the API server has autoscaling/v2")
def test_the_real_answers_to_a_patch_that_comes_too_late(control_plane, namespace):
    """What the adapter relies on: 409 for another version, 422 without causes for a failed test, with causes for a bad value."""
    admin, path = control_plane.admin, path_of("autoscaling/v2", "HorizontalPodAutoscaler", namespace, "web")
    admin.create({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"namespace": namespace, "name": "web"},
                  "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "minReplicas": 2, "maxReplicas": 9}})
    version = admin.get(path)["metadata"]["resourceVersion"]

    def patch(old, now, new):
        operations = [{"op": "test", "path": "/spec/minReplicas", "value": old},
                      {"op": "replace", "path": "/metadata/resourceVersion", "value": now},
                      {"op": "replace", "path": "/spec/minReplicas", "value": new}]
        return admin.request("PATCH", path + "?fieldManager=alertscaler", operations, JSON_PATCH)
    late, failed, bad = patch(2, "1", 3), patch(5, version, 3), patch(2, version, 10)
    assert late.status == 409, late.text
    assert failed.status == 422 and not failed.json.get("details", {}).get("causes"), failed.text
    assert bad.status == 422 and bad.json["details"]["causes"], bad.text
    assert patch(2, version, 3).status == 200
