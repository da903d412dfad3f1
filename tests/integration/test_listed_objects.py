"""`allow.list` through the built binary: hundreds of Deployments of the real API server sleep by a schedule, without an alert.
Objects of Kubernetes, of alertscaler and of controllers are left out. A list that is not complete removes nothing."""
import subprocess

import pytest
import yaml

from harness.deploy import install
from harness.wait import eventually, steadily
from test_schedules import moment
from test_store_kubernetes import RIGHTS as CONFIG_MAPS

COUNT = 300
USER = "system:serviceaccount:alertscaler:alertscaler"
STATE_RIGHTS = [*CONFIG_MAPS, {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]}]
RIGHT = [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list"]}]


def deployment(namespace, name, replicas, label, **metadata):
    """It is paused, so that no pods are created: only sizes matter."""
    labels = {"app": name}
    return {"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": namespace, "name": name, "labels": {"sleeps": label} if label else {}, **metadata},
            "spec": {"replicas": replicas, "paused": True, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app"}]}}}}


def sizes(plane, namespace):
    answer = plane.admin.get(f"/apis/apps/v1/namespaces/{namespace}/deployments")
    return {item["metadata"]["name"]: item["spec"]["replicas"] for item in answer["items"]}


def run_check(daemon):
    return subprocess.run([daemon.binary, "check", "--cluster", str(daemon.config_file)], text=True, capture_output=True)


@pytest.fixture
def spaces(control_plane, namespace):
    """Three namespaces. The label value of a test is the name of the first; the last one is alertscaler's own."""
    install(control_plane, "namespace.yaml", "serviceaccount.yaml", "role.yaml", "role-cluster-wide.yaml")
    others = [f"{namespace}-b", f"{namespace}-own"]
    for other in others:
        control_plane.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    metadata, api = {"name": "state", "namespace": others[1]}, "rbac.authorization.k8s.io/v1"
    control_plane.admin.create({"apiVersion": api, "kind": "Role", "metadata": metadata, "rules": STATE_RIGHTS})
    control_plane.admin.create({
        "apiVersion": api, "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "state"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "alertscaler", "name": "alertscaler"}]})
    control_plane.wait_allowed(USER, STATE_RIGHTS, others[1])
    yield namespace, *others
    control_plane.ensure_running()
    for other in others:
        control_plane.admin.delete(f"/api/v1/namespaces/{other}")


@pytest.fixture
def make(control_plane, spaces, make_daemon, tmp_path):
    """A daemon, not started: its target lists the objects with the test's label."""
    token = tmp_path / "token"
    token.write_text(control_plane.account_token("alertscaler", "alertscaler"))
    kubeconfig = control_plane.write_kubeconfig("alertscaler", tokenFile=str(token))

    def build(namespaces, begin, end):
        rules = {"targets": {"apps": {
            "kubernetes": {"kind": "Deployment", "namespace": "{{ .Labels.namespace }}", "name": "{{ .Labels.deployment }}"},
            "min": 1, "max": 10,
            "allow": {"namespaces": namespaces, "names": ["app-*"], "list": {"selector": {"sleeps": spaces[0]}}},
            "schedules": [{"name": "night", "from": moment(begin), "to": moment(end), "min": 0, "max": 0}]}}}
        daemon = make_daemon(rules, {"clusters": {"default": {"kubeconfig": str(kubeconfig)}},
                                     "state": {"store": "kubernetes", "namespace": spaces[2]}}, start=False)
        daemon.rules = rules
        return daemon

    return build


@pytest.fixture
def revoke(control_plane):
    """Ends the rights that a test gives."""
    yield
    for kind in ("clusterroles", "clusterrolebindings"):
        control_plane.admin.request("DELETE", f"/apis/rbac.authorization.k8s.io/v1/{kind}/alertscaler-list-deployments")


def apply_role(plane, checked, tmp_path, namespace=None):
    """As a user does with the output of `check --cluster`."""
    text = checked.stderr[checked.stderr.index("# To apply"):]
    (tmp_path / "role.yaml").write_text(text)
    plane.kubectl("apply", "-f", str(tmp_path / "role.yaml"))
    plane.wait_allowed(USER, RIGHT, namespace)
    return [item for item in yaml.safe_load_all(text) if item]


def test_hundreds_of_deployments_sleep_and_wake(control_plane, spaces, make, revoke, tmp_path):
    plane, label = control_plane, spaces[0]
    before = {namespace: {f"app-{i}": 1 + i % 4 for i in range(COUNT // 2)} for namespace in spaces[:2]}
    for namespace, apps in before.items():
        for name, replicas in apps.items():
            plane.admin.create(deployment(namespace, name, replicas, label))
    owner = plane.admin.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": spaces[0], "name": "owner"}})
    owned = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"], "controller": True}
    awake = [(spaces[0], deployment(spaces[0], "app-owned", 2, label, ownerReferences=[owned])),
             (spaces[0], deployment(spaces[0], "app-unlabelled", 2, None)),
             (spaces[0], deployment(spaces[0], "other-name", 2, label)),
             ("kube-system", deployment("kube-system", f"app-{label}", 2, label)),
             (spaces[2], deployment(spaces[2], "app-own", 2, label)),
             ("default", deployment("default", f"app-{label}", 2, label))]
    for namespace, item in awake:
        plane.admin.create(item)

    daemon = make([f"{label}*", "kube-*"], 25, 3600)
    checked = run_check(daemon)
    assert checked.returncode == 0, checked
    assert "target `apps` lists 0 objects" in checked.stdout
    assert "the right \"deployments.apps: list\" is missing" in checked.stderr
    role, _ = apply_role(plane, checked, tmp_path)
    assert role["kind"] == "ClusterRole" and role["rules"] == RIGHT
    checked = run_check(daemon)
    assert f"target `apps` lists {COUNT} objects; `allow` leaves out 2 more\n" in checked.stdout, checked
    assert f"  {spaces[1]}/app-7\n" in checked.stdout and "app-owned" not in checked.stdout

    daemon.start()
    eventually(lambda: daemon.metrics().value("alertscaler_listed_objects", target="apps") == COUNT)
    eventually(lambda: all(set(sizes(plane, namespace)[name] for name in apps) == {0} for namespace, apps in before.items()),
               timeout=180)
    for namespace, item in awake:
        assert plane.admin.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/{item['metadata']['name']}")["spec"]["replicas"] == 2

    daemon.rules["targets"]["apps"]["schedules"][0]["to"] = moment(8)
    daemon.write_rules(daemon.rules)
    daemon.reload()
    eventually(lambda: all(sizes(plane, namespace)[name] == size for namespace, apps in before.items()
                           for name, size in apps.items()), timeout=180)
    assert {record["output"]["reason"] for record in daemon.records("decision")} == {"above_max", "schedule_ended"}
    for namespace, item in awake:
        plane.admin.delete(f"/apis/apps/v1/namespaces/{namespace}/deployments/{item['metadata']['name']}")


def test_a_list_that_is_not_complete_removes_nothing(control_plane, spaces, make, tmp_path):
    """Exact names in `allow.namespaces`: each namespace is listed, and the right is missing in one."""
    plane = control_plane
    for namespace in spaces[:2]:
        plane.admin.create(deployment(namespace, "app-1", 3, spaces[0]))
    daemon = make(list(spaces[:2]), 30, 3600)
    checked = run_check(daemon)
    roles = apply_role(plane, checked, tmp_path, spaces[0])
    assert [(role["kind"], role["metadata"]["namespace"]) for role in roles] == [
        (kind, namespace) for namespace in spaces[:2] for kind in ("Role", "RoleBinding")]
    plane.admin.delete(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{spaces[1]}/rolebindings/alertscaler-list-deployments")
    eventually(lambda: f"lists 1 object\n  {spaces[0]}/app-1\n" in run_check(daemon).stdout)

    daemon.start()
    eventually(lambda: sizes(plane, spaces[0])["app-1"] == 0)
    assert sizes(plane, spaces[1])["app-1"] == 3
    assert "objects of `allow.list` not listed" in daemon.process.log_text()
    metrics = daemon.metrics()
    assert metrics.value("alertscaler_listed_objects", target="apps") == 1
    assert metrics.value("alertscaler_list_age_seconds", target="apps") > 1      # no list was complete since the start

    plane.apiserver.stop()
    steadily(lambda: daemon.get("/-/healthy").status == 200, seconds=3)
    plane.ensure_running()
    eventually(lambda: daemon.metrics().value("alertscaler_listed_objects", target="apps") == 1, timeout=150)
    assert sizes(plane, spaces[0])["app-1"] == 0
    targets = [target["id"] for target in daemon.get("/api/v1/targets").json["data"]]
    assert targets == [f"kubernetes/default/apps/v1/Deployment/{spaces[0]}/app-1"]
