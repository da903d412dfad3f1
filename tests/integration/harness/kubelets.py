"""Plays scheduler and kubelets: binds pods to nodes, says that they run and are ready, and lets deleted ones go.

One thread that lists and watches all pods. Which pods become ready is up to the test: `kubelets.ready = lambda pod: ...`.
Pods of another scheduler are left alone.
"""
import datetime
import http.client
import itertools
import json
import socket
import threading
import time
import urllib.parse

from .kube import STRATEGIC_MERGE_PATCH, KubeError


def _now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Kubelets:
    def __init__(self, client, nodes=2, cpu="64", memory="256Gi"):
        self.client = client
        self.ready = lambda pod: True
        self.nodes = [f"node-{i}" for i in range(nodes)]
        self._next_node = itertools.cycle(self.nodes)
        self._addresses = itertools.count(1)
        self._started = {}
        self._stopping = False
        self._connection = None
        resources = {"cpu": cpu, "memory": memory, "pods": "1000"}
        for name in self.nodes:
            self.client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
            self.client.patch(f"/api/v1/nodes/{name}/status", {"status": {
                "capacity": resources, "allocatable": resources,
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            }})
            # Admission taints a node whose kubelet has not spoken yet.
            self.client.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        self._stopping = True
        connection = self._connection
        if connection is not None and connection.sock is not None:
            try:
                connection.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self._thread.join(15)

    def refresh(self):
        """Looks at every pod again, after `ready` has changed."""
        for pod in self.client.get("/api/v1/pods")["items"]:
            self._serve(pod)

    def _run(self):
        while not self._stopping:
            try:
                pods = self.client.get("/api/v1/pods")
                for pod in pods["items"]:
                    self._serve(pod)
                self._watch(pods["metadata"]["resourceVersion"])
            except (OSError, ValueError, http.client.HTTPException, KubeError):
                time.sleep(0.1)  # a test has stopped or paused the API server: try again until it is back

    def _watch(self, version):
        server = urllib.parse.urlsplit(self.client.url)
        self._connection = http.client.HTTPSConnection(
            server.hostname, server.port, timeout=30, context=self.client.tls)
        self._connection.request(
            "GET", f"/api/v1/pods?watch=1&timeoutSeconds=20&resourceVersion={version}",
            headers={"Authorization": f"Bearer {self.client.token}"})
        answer = self._connection.getresponse()
        while answer.status == 200 and not self._stopping:
            line = answer.readline()
            if not line:
                break
            event = json.loads(line)
            if event["type"] in ("ADDED", "MODIFIED"):
                self._serve(event["object"])
            elif event["type"] == "ERROR":
                break
        self._connection.close()

    def _serve(self, pod):
        """One step towards what a pod should be; the change comes back as the next event. Lost races are retried so."""
        metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status", {})
        if spec.get("schedulerName") != "default-scheduler":
            return
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        if "deletionTimestamp" in metadata:
            self.client.request("DELETE", path, {"gracePeriodSeconds": 0})
        elif "nodeName" not in spec:
            self.client.request("POST", path + "/binding", {
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": metadata["name"]},
                "target": {"apiVersion": "v1", "kind": "Node", "name": next(self._next_node)},
            })
        else:
            ready = bool(self.ready(pod))
            if status.get("phase") != "Running" or ready != is_ready(pod):
                self.client.request("PATCH", path + "/status", {"status": self._status(pod, ready)},
                                    STRATEGIC_MERGE_PATCH)

    def _status(self, pod, ready):
        uid = pod["metadata"]["uid"]
        started, address = self._started.setdefault(uid, (_now(), next(self._addresses)))
        word = "True" if ready else "False"
        ip = f"10.1.{address // 250}.{address % 250 + 1}"
        return {
            "phase": "Running", "startTime": started, "hostIP": "127.0.0.1", "podIP": ip, "podIPs": [{"ip": ip}],
            "conditions": [
                {"type": kind, "status": value, "lastTransitionTime": _now()}
                for kind, value in (("PodScheduled", "True"), ("Initialized", "True"),
                                    ("ContainersReady", word), ("Ready", word))
            ],
            "containerStatuses": [{
                "name": c["name"], "image": c["image"], "imageID": c["image"], "containerID": f"test://{uid}",
                "ready": ready, "started": True, "restartCount": 0, "state": {"running": {"startedAt": started}},
            } for c in pod["spec"]["containers"]],
        }


def is_ready(pod):
    conditions = pod.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
