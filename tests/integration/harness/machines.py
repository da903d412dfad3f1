"""Cluster API, played: its kinds as custom resources of the real API server, and a controller that makes and deletes Machines
and their Nodes.

Like Cluster API's own it deletes marked Machines first; else the oldest, where a test would notice that a mark was missing.
"""
import itertools
import threading
import time

from .kube import KubeError
from .wait import eventually

GROUP = "cluster.x-k8s.io"
API = f"{GROUP}/v1beta1"
MARK = f"{GROUP}/delete-machine"
SIZED = {"MachineDeployment": "deployment-name", "MachineSet": "set-name", "MachinePool": "pool-name"}
REPLICAS_MAX = 20


def _definition(kind):
    whole = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    spec = {**whole, "properties": {"replicas": {"type": "integer", "minimum": 0, "maximum": REPLICAS_MAX}}}
    plural = f"{kind.lower()}s"
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
                 "versions": [{
                     "name": "v1beta1", "served": True, "storage": True,
                     "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                         "spec": spec if kind in SIZED else whole, "status": whole}}},
                     "subresources": {"status": {}, **({"scale": scale} if kind in SIZED else {})}}]}}


class Machines:
    """The controller of one namespace. `slow`: names of groups whose Machines stay without a node."""

    def __init__(self, plane, namespace):
        self.admin, self.namespace = plane.admin, namespace
        self.base = f"/apis/{API}/namespaces/{namespace}"
        self.slow = set()
        self._numbers = itertools.count(1)
        self._stopping = False
        for kind in [*SIZED, "Machine"]:
            try:
                self.admin.create(_definition(kind))
            except KubeError as error:
                assert error.status == 409, error
            eventually(lambda plural=f"{kind.lower()}s": self.admin.request("GET", f"{self.base}/{plural}").ok, what=f"{kind} is served")
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        self._stopping = True
        self._thread.join(30)
        for machine in self.machines():
            self._delete(machine)

    # For tests

    def add(self, kind, name, size, annotations=None, **spec):
        """The path of a new group, once all of its Machines are there."""
        self.admin.create({"apiVersion": API, "kind": kind,
                           "metadata": {"name": name, "namespace": self.namespace, "annotations": annotations or {}},
                           "spec": {"replicas": size, **spec}})
        path = f"{self.base}/{kind.lower()}s/{name}"
        eventually(lambda: self.admin.get(path).get("status", {}).get("readyReplicas") == size, what=f"{name} is there")
        return path

    def size(self, path):
        return self.admin.get(path)["spec"]["replicas"]

    def machines(self):
        return self.admin.get(f"{self.base}/machines")["items"]

    def names(self):
        return {machine["metadata"]["name"] for machine in self.machines()}

    def marked(self):
        return {m["metadata"]["name"] for m in self.machines() if MARK in m["metadata"].get("annotations", {})}

    def nodes(self):
        return {node["metadata"]["name"] for node in self.admin.get("/api/v1/nodes")["items"]
                if node["spec"].get("providerID", "").startswith(f"test:///{self.namespace}/")}

    # The controller

    def _run(self):
        while not self._stopping:
            try:
                for kind in SIZED:
                    for item in self.admin.get(f"{self.base}/{kind.lower()}s")["items"]:
                        if not any(o["kind"] == "MachineDeployment" for o in item["metadata"].get("ownerReferences", [])):
                            self._reconcile(kind, item)
            except (KubeError, OSError):
                pass                # next time
            time.sleep(0.2)

    def _owner(self, kind, item):
        return {"apiVersion": API, "kind": kind, "name": item["metadata"]["name"], "uid": item["metadata"]["uid"]}

    def _machine_set(self, item):
        """Of a MachineDeployment."""
        name = f"{item['metadata']['name']}-set"
        path = f"{self.base}/machinesets/{name}"
        if self.admin.request("GET", path).status == 404:
            self.admin.create({"apiVersion": API, "kind": "MachineSet", "spec": {"replicas": item["spec"]["replicas"]},
                               "metadata": {"name": name, "namespace": self.namespace,
                                            "ownerReferences": [self._owner("MachineDeployment", item)]}})
        return self.admin.get(path)

    def _reconcile(self, kind, item):
        name = item["metadata"]["name"]
        label = f"{GROUP}/{SIZED[kind]}"
        path = f"{self.base}/{kind.lower()}s/{name}"
        size = item["spec"]["replicas"]
        if kind == "MachinePool":
            ids = [f"test:///{self.namespace}/{name}-{i}" for i in range(size)]
            if item["spec"].get("providerIDList") != ids:
                self.admin.patch(path, {"spec": {"providerIDList": ids}})
            status = {"replicas": size, "readyReplicas": size}
        else:
            owner = self._owner("MachineSet", item if kind == "MachineSet" else self._machine_set(item))
            ready = self._keep(name, {label: name}, owner, size)
            status = {"replicas": ready, "readyReplicas": ready, "selector": f"{label}={name}"}
        status["observedGeneration"] = self.admin.get(path)["metadata"]["generation"]
        if item.get("status") != status:
            self.admin.patch(f"{path}/status", {"status": status})

    def _keep(self, name, labels, owner, size):
        """How many run."""
        have = [m for m in self.machines() if labels.items() <= m["metadata"].get("labels", {}).items()]
        for _ in range(size - len(have)):
            self._create(f"{name}-{next(self._numbers)}", labels, owner, name in self.slow)
        have.sort(key=lambda m: (MARK not in m["metadata"].get("annotations", {}), int(m["metadata"]["name"].rsplit("-", 1)[1])))
        for machine in have[:max(0, len(have) - size)]:
            self._delete(machine)
        return sum(m.get("status", {}).get("phase") == "Running" for m in have[max(0, len(have) - size):])

    def _create(self, name, labels, owner, is_slow):
        provider_id = f"test:///{self.namespace}/{name}"
        self.admin.create({"apiVersion": API, "kind": "Machine", "spec": {"providerID": provider_id, "failureDomain": "a"},
                           "metadata": {"name": name, "namespace": self.namespace, "labels": labels, "ownerReferences": [owner]}})
        path = f"{self.base}/machines/{name}/status"
        if is_slow:
            self.admin.patch(path, {"status": {"phase": "Provisioning"}})
            return
        node = f"{self.namespace}-{name}"
        self.admin.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}, "spec": {"providerID": provider_id}})
        self.admin.patch(f"/api/v1/nodes/{node}/status", {"status": {
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}})
        self.admin.patch(f"/api/v1/nodes/{node}", {"spec": {"taints": None}})
        self.admin.patch(path, {"status": {"phase": "Running", "nodeRef": {"name": node}}})

    def _delete(self, machine):
        name = machine["metadata"]["name"]
        self.admin.request("DELETE", f"/api/v1/nodes/{self.namespace}-{name}")
        self.admin.request("DELETE", f"{self.base}/machines/{name}")
