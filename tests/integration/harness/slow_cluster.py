"""API servers behind one address that answer each request only after a while, and remember the order in which requests came.
Real ones are too fast for a queue in front of them, and too large for 22 at a time."""
import json
import re
import threading
import time

import yaml

from .http import Server

RESOURCES = {"kind": "APIResourceList", "groupVersion": "apps/v1", "resources": [
    {"name": "deployments", "kind": "Deployment", "namespaced": True},
    {"name": "deployments/scale", "kind": "Scale", "group": "autoscaling", "version": "v1", "namespaced": True}]}
SCALE = re.compile(r"/apis/apps/v1/namespaces/(\w+)/deployments/([\w-]+)/scale")
LISTS = {"/api/v1/nodes": ("v1", "NodeList"), "/api/v1/pods": ("v1", "PodList"),
         "/apis/policy/v1/poddisruptionbudgets": ("policy/v1", "PodDisruptionBudgetList"),
         "/apis/alertscaler.io/v1alpha1/scalingpolicies": ("alertscaler.io/v1alpha1", "ScalingPolicyList")}
NODE = {"metadata": {"name": "one", "uid": "n1", "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
                   "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}


class SlowCluster:
    """Each Deployment has 4 replicas until it is sized. delay: seconds for each answer."""

    def __init__(self, delay=0.0):
        self.delay = delay
        self.seen = []          # (method, path), in the order in which they came
        self.watching = set()   # paths of watches that are held open
        self.sizes = {}
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._server = Server(self._handle)
        self.url = self._server.url

    def write_kubeconfig(self, path, prefix=""):
        path.write_text(yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "one",
            "clusters": [{"name": "one", "cluster": {"server": self.url + prefix}}],
            "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one"}}],
            "users": [{"name": "one", "user": {"token": "ours"}}]}))
        return str(path)

    def count(self, method=None, part=""):
        with self._lock:
            return sum(part in path for verb, path in self.seen if method in (None, verb))

    def find(self, method, part, number=0):
        """How many requests came before the first one like this, or a later one; None: it has not come."""
        with self._lock:
            places = [i for i, (verb, path) in enumerate(self.seen) if verb == method and part in path]
        return places[number] if number < len(places) else None

    def stop(self):
        self._over.set()
        self._server.stop()

    def _handle(self, asked):
        path, _, query = asked.path.partition("?")
        with self._lock:
            self.seen.append((asked.method, asked.path))
        if "watch=true" in query:
            return self._watch(asked.path)
        time.sleep(self.delay)
        prefix = re.match(r"/c\d+", path)
        path = path[prefix.end():] if prefix else path
        if path == "/apis/apps/v1":
            return 200, {}, RESOURCES
        if path.endswith("/tokenreviews"):
            return 201, {}, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": {
                "authenticated": True, "user": {"username": "reader"}}}
        if path in LISTS:
            version, kind = LISTS[path]
            return 200, {}, {"apiVersion": version, "kind": kind, "metadata": {"resourceVersion": "1"},
                             "items": [NODE] if kind == "NodeList" else []}
        scale = SCALE.fullmatch(path)
        if scale:
            return self._scale(asked, prefix.group() if prefix else "", *scale.groups())
        return 404, {}, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "message": "not here"}

    def _watch(self, path):
        with self._lock:
            self.watching.add(path)
        self._over.wait(90)
        with self._lock:
            self.watching.discard(path)
        return 200, {"Content-Type": "application/json"}, b""

    def _scale(self, asked, prefix, namespace, name):
        with self._lock:
            size = self.sizes.get(prefix + name, 4)
            if asked.method != "GET":
                size = self.sizes[prefix + name] = json.loads(asked.body)["spec"]["replicas"]
        return 200, {}, {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": size}, "status": {"replicas": size},
                         "metadata": {"name": name, "namespace": namespace, "uid": f"u-{name}", "resourceVersion": str(size)}}
