"""KWOK beside our own kubelets: it makes nodes ready that carry its annotation, and runs and deletes the pods on them.

Other nodes and their pods it leaves alone, and kubelets.py leaves pods of another scheduler to it.
"""
import pathlib

from . import peers
from .kube import path_of
from .process import Process
from .wait import PATIENCE

ANNOTATION = {"kwok.x-k8s.io/node": "fake"}


def missing():
    return None if peers.find("kwok") else peers.how_to_build("kwok")


class Kwok:
    def __init__(self, plane, directory):
        self.admin = plane.admin
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self._made = []
        programs = peers.find("kwok")
        kubeconfig = plane.write_kubeconfig("kwok", token=plane.admin.token)
        (name, value), = ANNOTATION.items()
        self.process = Process("kwok", [
            programs / "kwok", f"--config={programs / 'stages.yaml'}", f"--kubeconfig={kubeconfig}",
            f"--manage-nodes-with-annotation-selector={name}={value}",
        ], self.directory, env={"HOME": str(self.directory)})

    def start(self):
        self.process.start()
        return self

    def make_node(self, name):
        """A node that becomes ready soon after KWOK has started."""
        self._made.append(f"/api/v1/nodes/{name}")
        return self.admin.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": ANNOTATION}})

    def make_pod(self, namespace, name, node):
        self._made.append(path_of("v1", "Pod", namespace, name))
        return self.admin.create({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": namespace, "name": name},
            "spec": {"nodeName": node, "schedulerName": "nobody", "containers": [{"name": "main", "image": "example/main:1"}]}})

    def stop(self):
        """With all that was made: nobody else would let it go."""
        for path in reversed(self._made):
            self.admin.request("DELETE", path, {"gracePeriodSeconds": 0})
        return self.process.stop(PATIENCE)
