"""Instances of Auto Scaling groups become nodes, which KWOK's kubelets run: what a cloud and its machines would do."""
import threading
import time

from .auto_scaling import REGION
from .kube import KubeError
from .kwok import ANNOTATION


class Fleet:
    """`groups` are AutoScaling; `amounts` and `labels` are {name of the group: ...} of its nodes. A node goes with its instance,
    and with it its pods. Instances that `never` become nodes run all the same."""

    def __init__(self, plane, groups, amounts, labels):
        self.admin, self.groups, self.amounts, self.labels = plane.admin, groups, amounts, labels
        self.gone = []          # names of nodes, in the order in which they went
        self.never = lambda instance: False     # which instances never become nodes
        self._stopping = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        self._stopping = True
        self._thread.join(30)

    def nodes(self, group):
        return [f"{group.name}-{instance}" for instance in list(group.instances) if not self.never(instance)]

    def _run(self):
        while not self._stopping:
            try:
                self._reconcile()
            except (KubeError, OSError):
                pass            # next time
            time.sleep(0.2)

    def _reconcile(self):
        have = {node["metadata"]["name"]: node for node in self.admin.get("/api/v1/nodes")["items"]}
        wanted = {name: group for group in self.groups for name in self.nodes(group)}
        for name, group in wanted.items():
            if name not in have:
                self._create(name, group)
            elif "not-ready" in str(have[name]["spec"].get("taints", "")):
                self.admin.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})   # as the node lifecycle controller
        for name in have.keys() - wanted.keys():
            self._delete(name)

    def _create(self, name, group):
        instance = name.removeprefix(f"{group.name}-")
        amounts = self.amounts[group.name]
        self.admin.create({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "annotations": ANNOTATION, "labels": {"kubernetes.io/hostname": name, **self.labels[group.name]}},
            "spec": {"providerID": f"aws:///{REGION}a/{instance}"}, "status": {"allocatable": amounts, "capacity": amounts}})

    def _delete(self, name):
        self.gone.append(name)
        for pod in self.admin.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{name}")["items"]:
            metadata = pod["metadata"]
            self.admin.request("DELETE", f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}?gracePeriodSeconds=0")
        self.admin.request("DELETE", f"/api/v1/nodes/{name}")
