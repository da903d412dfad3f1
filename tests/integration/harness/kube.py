"""A client of the Kubernetes API for tests: plain requests, and short helpers that raise."""
import json

from .http import request
from .wait import PATIENCE, eventually

CLUSTER_KINDS = {
    "Namespace", "Node", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "PersistentVolume",
    "PriorityClass",
}
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"


class KubeError(Exception):
    def __init__(self, what, answer):
        self.status = answer.status
        super().__init__(f"{what}: HTTP {answer.status}: {answer.text[:500]}")


def path_of(api_version, kind, namespace=None, name=None, subresource=None):
    """/apis/apps/v1/namespaces/shop/deployments/web/scale and the like."""
    root = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
    plural = kind.lower() + ("es" if kind.endswith("s") else "s")
    parts = [root]
    if kind not in CLUSTER_KINDS:
        parts += ["namespaces", namespace or "default"]
    parts += [plural] + [p for p in (name, subresource) if p]
    return "/".join(parts)


class KubeClient:
    def __init__(self, url, tls, token=None):
        self.url = url
        self.tls = tls
        self.token = token

    def request(self, method, path, body=None, content_type="application/json", timeout=PATIENCE):
        """An Answer, whatever its status."""
        headers = {"Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            headers["Content-Type"] = content_type
            body = json.dumps(body).encode()
        return request(method, self.url + path, body, headers, self.tls, timeout)

    def _must(self, method, path, *args, **kwargs):
        answer = self.request(method, path, *args, **kwargs)
        if not answer.ok:
            raise KubeError(f"{method} {path}", answer)
        return answer.json

    def get(self, path):
        return self._must("GET", path)

    def put(self, path, body):
        return self._must("PUT", path, body)

    def patch(self, path, body, content_type=MERGE_PATCH):
        return self._must("PATCH", path, body, content_type)

    def post(self, path, body):
        return self._must("POST", path, body)

    def delete(self, path, grace=None):
        body = None if grace is None else {"gracePeriodSeconds": grace}
        return self._must("DELETE", path, body)

    def create(self, item, namespace=None):
        """Creates an object; its namespace is its own, else the one given."""
        namespace = item["metadata"].get("namespace", namespace)
        return self.post(path_of(item["apiVersion"], item["kind"], namespace), item)

    def replicas(self, path):
        """The size its scale subresource asks for."""
        return self.get(path + "/scale")["spec"].get("replicas", 0)

    def wait(self, path, condition, timeout=PATIENCE, what=None):
        """The object at path once condition(object) is true."""

        def probe():
            item = self.get(path)
            return item if condition(item) else None

        return eventually(probe, timeout, what=what or f"condition on {path}")

    def wait_gone(self, path, timeout=PATIENCE):
        eventually(lambda: self.request("GET", path).status == 404, timeout, what=f"{path} is gone")
