"""The opt-in role for fields and resources, with RBAC on a real API server: it reaches the named objects, and no others."""
import pytest
import yaml

from harness.deploy import MANIFESTS, install
from harness.kube import path_of
from harness.notification import alert, notification
from harness.wait import eventually

pytestmark = pytest.mark.since(23, "the API server has autoscaling/v2")

HPA = "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers/{}"
RULES = """
targets:
  web-floor:
    kubernetes: {{kind: HorizontalPodAutoscaler, namespace: {0}, name: web, field: spec.minReplicas}}
    min: 1
    max: 9
  cart-memory:
    kubernetes: {{kind: Deployment, namespace: {0}, name: cart, container: app, resource: memory, unit: 64Mi}}
    min: 1
    max: 9
rules:
  - {{name: floor, match: ['alertname="Up"'], target: web-floor, scale_up: {{to: 3}}}}
  - {{name: memory, match: ['alertname="Up"'], target: cart-memory, scale_up: {{by: 1}}}}
"""


def make_workload(namespace, name):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": {
                "metadata": {"labels": {"app": name}}, "spec": {"containers": [{
                    "name": "app", "image": "app", "resources": {"requests": {"memory": "256Mi"}}}]}}}}


def make_hpa(namespace, name):
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name, "namespace": namespace},
            "spec": {"minReplicas": 1, "maxReplicas": 10, "scaleTargetRef": {"kind": "Deployment", "name": name, "apiVersion": "apps/v1"}}}


@pytest.fixture
def objects(control_plane, namespace):
    """Named and other objects, with the shipped role bound in this namespace as role-namespace.yaml does."""
    install(control_plane, "namespace.yaml", "serviceaccount.yaml")
    role = yaml.safe_load((MANIFESTS / "role.yaml").read_text())
    control_plane.admin.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", role)     # of another test, perhaps
    binding = yaml.safe_load((MANIFESTS / "role-namespace.yaml").read_text())
    binding["metadata"]["namespace"] = namespace
    control_plane.admin.create(binding)
    for name in ("web", "cart", "other"):
        control_plane.admin.create(make_hpa(namespace, name))
        control_plane.admin.create(make_workload(namespace, name))
    return control_plane.client(control_plane.account_token("alertscaler", "alertscaler"))


def grant(control_plane, namespace):
    for item in yaml.safe_load_all((MANIFESTS / "role-objects.yaml").read_text()):
        item["metadata"]["namespace"] = namespace
        control_plane.admin.create(item)


def patch(client, path, body):
    return client.request("PATCH", path, body, "application/merge-patch+json").status


def test_it_reaches_the_named_objects_and_no_others(control_plane, namespace, objects):
    workloads = path_of("apps/v1", "Deployment", namespace)
    floor, paused = {"spec": {"minReplicas": 2}}, {"spec": {"paused": True}}
    assert patch(objects, HPA.format(namespace, "web"), floor) == 403, "the shipped role alone does not reach it"
    assert patch(objects, f"{workloads}/cart", paused) == 403
    grant(control_plane, namespace)
    eventually(lambda: patch(objects, HPA.format(namespace, "web"), floor) == 200, what="the named HPA")
    assert patch(objects, f"{workloads}/cart", paused) == 200
    for name in ("cart", "other"):
        assert patch(objects, HPA.format(namespace, name), floor) == 403
    for name in ("web", "other"):
        assert patch(objects, f"{workloads}/{name}", paused) == 403
    pod = path_of("v1", "Pod", namespace, "any")
    assert patch(objects, pod, {"metadata": {"labels": {"a": "b"}}}) == 403, "a pod changes in cpu and memory alone"
    assert patch(objects, f"{pod}/resize", {"spec": {}}) == 404
    assert objects.request("DELETE", HPA.format(namespace, "web")).status == 403
    assert objects.request("GET", f"/api/v1/namespaces/{namespace}/secrets").status == 403


def test_the_program_works_with_it_and_says_what_is_missing_without(control_plane, namespace, objects, make_daemon):
    kubeconfig = control_plane.write_kubeconfig("objects", token=control_plane.account_token("alertscaler", "alertscaler"))
    daemon = make_daemon(yaml.safe_load(RULES.format(namespace)), {"clusters": {"default": {"kubeconfig": str(kubeconfig)}}})
    daemon.notify(notification(alert({"alertname": "Up"})))
    for name, right in (("web-floor", "horizontalpodautoscalers"), ("cart-memory", "deployments")):
        failed = daemon.wait_record("action", target_name=name)
        assert failed["outcome"] == "forbidden" and right in failed["message"], failed
    grant(control_plane, namespace)
    eventually(lambda: patch(objects, HPA.format(namespace, "web"), {"spec": {}}) == 200, what="the right")
    daemon.restart()
    daemon.notify(notification(alert({"alertname": "Up"})))
    eventually(lambda: control_plane.admin.get(HPA.format(namespace, "web"))["spec"]["minReplicas"] == 3, timeout=60)
    path = path_of("apps/v1", "Deployment", namespace, "cart")
    eventually(lambda: control_plane.admin.get(path)["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["memory"]
               == "320Mi", timeout=60)
    daemon.wait_record("action", target_name="cart-memory", outcome="applied")
