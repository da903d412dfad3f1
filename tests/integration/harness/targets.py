"""The target layer on its own: tests/integration/target_driver.c."""
import os
import pathlib
import re
import urllib.parse

from .driver import Driver
from .wait import PATIENCE


class TargetDriver(Driver):
    """TargetDriver(tmp_path, "--kubeconfig", path, env={...})"""

    name = "target_driver"

    def start(self, op, kind, fields, **more):
        """Sends a command; its ticket."""
        return self.send(op=op, kind=kind, fields=fields, **more)

    def observe(self, kind, fields, timeout=PATIENCE, **more):
        return self.wait(self.start("observe", kind, fields, **more), timeout)

    def scale(self, kind, fields, observed, to, timeout=PATIENCE, **more):
        """Sets a size on the condition of an earlier observation."""
        return self.wait(self.start("scale", kind, fields, version=observed["version"], to=to,
                                    **{"from": observed["replicas"], **more}), timeout)

    def connections(self, url):
        """How many connections to the server of a URL it has open."""
        fds = pathlib.Path(f"/proc/{self._process.pid}/fd")
        inodes = {m.group(1) for m in (re.match(r"socket:\[(\d+)]", os.readlink(fd)) for fd in fds.iterdir()) if m}
        port = f":{urllib.parse.urlsplit(url).port:04X}"
        rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return sum(row[2].endswith(port) and row[9] in inodes for row in rows)


def workload(item):
    """The address of a Kubernetes object."""
    return {"cluster": "default", "apiVersion": item["apiVersion"], "kind": item["kind"],
            "namespace": item["metadata"].get("namespace", "default"), "name": item["metadata"]["name"]}


def group(url):
    """The address of an HTTP node group."""
    return {"provider": "mine", "url": url}
