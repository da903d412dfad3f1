"""DigitalOcean, as far as node pools of its Kubernetes need it.

Changes are accepted at once and carried out later: nodes come and go after a while, lists come in pages, the account has a
limit of machines. The vendor's own client works with it (test_digitalocean_client.py).
"""
import dataclasses
import itertools
import re
import threading
import time
import urllib.parse

from .http import HangUp, Server

TOKEN = "dop_v1_0123456789abcdef"
CLUSTER = "bd5f5959-5e1e-4205-a714-a914373942af"


def refusal(status, id, message, headers=None):
    return status, headers or {}, {"id": id, "message": message}


@dataclasses.dataclass
class Fault:
    """What goes wrong with the next request whose method and path match. With apply, it takes effect before."""

    match: str                  # of "METHOD path?query"
    status: int = 0
    id: str = "injected"
    message: str = "injected"
    headers: dict = dataclasses.field(default_factory=dict)
    body: object = None
    apply: bool = False
    hang_up: bool = False


@dataclasses.dataclass
class Node:
    id: str
    name: str
    droplet: str
    state: str
    settles: float              # when it is there, or gone

    def print(self):
        is_there = self.state != "provisioning"
        return {"id": self.id, "name": self.name, "status": {"state": self.state}, "droplet_id": self.droplet if is_there else "",
                "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"}


class Pool:
    """room: how many nodes come; those beyond stay on their way for ever."""

    def __init__(self, cloud, name, count, room=1000, **fields):
        self.cloud, self.name, self.room, self.fields = cloud, name, room, fields
        self.id = f"11111111-2222-3333-4444-{next(cloud.ids):012}"
        self.count, self.nodes = 0, []
        self.set_count(count, 0.0)

    def present(self):
        return [n for n in self.nodes if n.state in ("provisioning", "running")]

    def set_count(self, count, delay):
        self.count = count
        while len(self.present()) < count:
            number = next(self.cloud.ids)
            comes = len(self.present()) < self.room
            self.nodes.append(Node(f"478247f8-b1bb-4f7a-8db9-{number:012}", f"{self.name}-{number}", str(100 + number),
                                   "provisioning", time.monotonic() + delay if comes else float("inf")))
        for node in self.present()[count:]:     # who leaves is DigitalOcean's choice
            self.leave(node)
        self.settle()

    def leave(self, node):
        node.state, node.settles = "deleting", time.monotonic() + self.cloud.delay

    def settle(self):
        now = time.monotonic()
        self.nodes = [n for n in self.nodes if n.state != "deleting" or now < n.settles]
        for node in self.nodes:
            if node.state == "provisioning" and now >= node.settles:
                node.state = "running"

    def print(self):
        self.settle()
        return {"id": self.id, "name": self.name, "size": "s-1vcpu-2gb", "count": self.count, "tags": ["k8s"], "labels": None,
                "taints": [], "auto_scale": False, "min_nodes": 0, "max_nodes": 0, **self.fields,
                "nodes": [n.print() for n in self.nodes]}


class FakeDigitalOcean:
    """delay: seconds until nodes come or go. limit: of machines of the account."""

    def __init__(self, delay=0.3, limit=1000, tls=None):
        self.delay, self.limit = delay, limit
        self.token, self.pools, self.asked = TOKEN, [], []
        self.ids = itertools.count(1)
        self._faults, self._lock = [], threading.RLock()
        self._hold_after, self.held, self._released = None, threading.Event(), threading.Event()
        self._server = Server(self._handle, tls=tls)
        self.url = self._server.url

    # ---- what tests do ----

    def add_pool(self, name, count, **options):
        self.pools.append(Pool(self, name, count, **options))
        return self.pools[-1]

    def inject(self, *faults, times=1):
        with self._lock:
            self._faults += list(faults) * times

    def hold_read(self, after):
        """One GET after so many others is answered only after release; meanwhile `held` is set."""
        self._hold_after = after

    def release(self):
        self._released.set()

    def requests(self, pattern=""):
        """So far, as ("METHOD path?query", body)."""
        with self._lock:
            return [(line, body) for line, body in self.asked if re.search(pattern, line)]

    def stop(self):
        self._server.stop()

    # ---- answers ----

    def _wait_if_held(self, asked):
        if asked.method != "GET" or self._hold_after is None:
            return
        with self._lock:
            is_it, self._hold_after = self._hold_after == 0, self._hold_after - 1
        if is_it:
            self.held.set()
            self._released.wait(60)

    def _handle(self, asked):
        self._wait_if_held(asked)
        with self._lock:
            self.asked.append((f"{asked.method} {asked.path}", asked.json if asked.body else None))
            fault = next((f for f in self._faults if re.search(f.match, f"{asked.method} {asked.path}")), None)
            request_id = f"req-{next(self.ids)}"
            if fault:
                self._faults.remove(fault)
            if fault is None or fault.apply:
                answer = self._answer(asked)
        if fault is not None and fault.hang_up:
            raise HangUp
        if fault is not None and fault.body is not None:
            answer = fault.status or 200, fault.headers, fault.body
        elif fault is not None:
            answer = refusal(fault.status, fault.id, fault.message, fault.headers)
        status, headers, body = answer
        if status >= 400 and isinstance(body, dict):
            body = {**body, "request_id": request_id}
        return status, {"x-request-id": request_id, "ratelimit-limit": "5000", "ratelimit-remaining": "4816", **headers}, body

    def _answer(self, asked):
        path, _, query = asked.path.partition("?")
        if asked.headers["Authorization"] != f"Bearer {self.token}":
            return refusal(401, "Unauthorized", "Unable to authenticate you")
        found = re.fullmatch(rf"/v2/kubernetes/clusters/{CLUSTER}/node_pools(?:/([^/]+)(?:/nodes/([^/]+))?)?", path)
        if not found:
            return refusal(404, "not_found", "The resource you requested could not be found.")
        pool_id, node_id = found.groups()
        if pool_id is None:
            return self._list(path, dict(urllib.parse.parse_qsl(query)))
        pool = next((p for p in self.pools if p.id == pool_id), None)
        if pool is None:
            return refusal(404, "not_found", "node pool not found")
        if node_id is not None and asked.method == "DELETE":
            return self._delete(pool, node_id)
        if asked.method == "PUT":
            return self._update(pool, asked.json)
        if asked.method == "GET":
            return 200, {}, {"node_pool": pool.print()}
        return refusal(405, "method_not_allowed", asked.method)

    def _list(self, path, query):
        page, size = int(query.get("page", 1)), int(query.get("per_page", 20))
        links = {"next": f"{self.url}{path}?page={page + 1}&per_page={size}"} if page * size < len(self.pools) else {}
        return 200, {}, {"node_pools": [p.print() for p in self.pools[(page - 1) * size:page * size]],
                         "links": {"pages": links} if links else {}, "meta": {"total": len(self.pools)}}

    def _update(self, pool, wanted):
        if not isinstance(wanted.get("name"), str) or not isinstance(wanted.get("count"), int):
            return refusal(422, "unprocessable_entity", "name and count are required")
        if sum(p.count for p in self.pools) - pool.count + wanted["count"] > self.limit:
            return refusal(422, "unprocessable_entity", "validation error: not enough available droplet limit")
        pool.name = wanted["name"]
        pool.fields.update({key: wanted[key] for key in ("tags", "labels", "taints") if key in wanted})
        pool.set_count(wanted["count"], self.delay)
        return 202, {}, {"node_pool": pool.print()}

    def _delete(self, pool, node_id):
        pool.settle()
        node = next((n for n in pool.nodes if n.id == node_id), None)
        if node is None:
            return refusal(404, "not_found", "node not found")
        if node.state != "deleting":
            pool.leave(node)
        pool.count -= 1                         # once more where it is leaving already: clients had better not ask
        return 202, {}, b""
