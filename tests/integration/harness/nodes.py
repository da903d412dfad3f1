"""What is on nodes, for tests that drain them."""
from .kube import path_of

TAINT = "alertscaler.io/draining"
MARK = "alertscaler.io/drain"
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def make_pod(plane, namespace, node, name, **annotations):
    """One that runs on the node. Its owner is there, for the garbage collector, and does nothing. So the pod says that it may be evicted."""
    owner = plane.admin.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": name}})
    owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": owner["metadata"]["uid"], "controller": True}]
    plane.admin.create({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "labels": {"app": "web"}, "ownerReferences": owners,
                     "annotations": {SAFE: "true"} | annotations},
        "spec": {"nodeName": node, "schedulerName": "nobody", "terminationGracePeriodSeconds": 0,
                 "containers": [{"name": "web", "image": "web", "resources": {"requests": {"cpu": "500m"}}}]}})
    plane.admin.patch(f"/api/v1/namespaces/{namespace}/pods/{name}/status", {"status": {
        "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})


def make_budget(plane, namespace, least):
    plane.admin.create({"apiVersion": plane.policy_version, "kind": "PodDisruptionBudget",
                        "metadata": {"namespace": namespace, "name": "web"},
                        "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": "web"}}}})


def budget_path(plane, namespace):
    return path_of(plane.policy_version, "PodDisruptionBudget", namespace, "web")


def read(plane, name):
    return plane.admin.get(f"/api/v1/nodes/{name}")


def is_marked(plane, name):
    """Whether a drain has it: it is cordoned, and says who did so."""
    item = read(plane, name)
    return bool(item["spec"].get("unschedulable")) and MARK in item["metadata"].get("annotations", {})


def is_in_service(plane, name):
    """Whether it takes pods, and nothing of a drain is left on it."""
    item = read(plane, name)
    return (not item["spec"].get("unschedulable") and MARK not in item["metadata"].get("annotations", {}) and
            TAINT not in [t["key"] for t in item["spec"].get("taints", [])])
