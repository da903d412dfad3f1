"""What kube-state-metrics says of pods that no node has room for, read from the API server at each scrape."""
from .http import Server
from .kube import KubeError


class PodMetrics:
    """Its `kube_pod_status_unschedulable`: 1 for each pod that the scheduler called Unschedulable, no series for others."""

    def __init__(self, plane):
        self._admin = plane.admin
        self._server = Server(self._handle)
        self.address = self._server.url.removeprefix("http://")

    def _handle(self, asked):
        try:
            pods = self._admin.get("/api/v1/pods")["items"]
        except (KubeError, OSError) as error:
            return 503, {"Content-Type": "text/plain"}, str(error).encode()
        waiting = [pod["metadata"] for pod in pods if any(
            c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable" for c in pod["status"].get("conditions", []))]
        lines = [f'kube_pod_status_unschedulable{{namespace="{p["namespace"]}",pod="{p["name"]}",uid="{p["uid"]}"}} 1\n'
                 for p in waiting]
        return 200, {"Content-Type": "text/plain; version=0.0.4"}, "".join(lines).encode()

    def stop(self):
        self._server.stop()
