"""Baidu AI Cloud, as far as node groups need it: CCE's node groups (version 2 of its API), requests signed by bce-auth-v1.

The signatures are computed here a second time, in Python. Changes begin tasks; machines take their time, or do not come; lists
come in pages. The vendor's own client signs what it takes (test_baidu_client.py).
"""
import datetime
import hashlib
import hmac
import itertools
import re
import time
import urllib.parse

from .cloud import Cloud

PREFIX = "/api/cce/service/v2"
KEY, SECRET = "ALTAKtest", "s3cret/+="
SESSION = "MTBlY2I4+/==tok"
PAGE = 2


def refusal(status, code, message, headers=None):
    return status, headers or {}, {"code": code, "message": message}


def _hmac(key, text):
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


def signature(secret, prefix, asked, names):
    """Of a request, by bce-auth-v1; `names` of the signed headers."""
    path, _, query = asked.path.partition("?")
    items = sorted(item if "=" in item else item + "=" for item in query.split("&") if item)
    headers = sorted(f"{urllib.parse.quote(name, safe='')}:{urllib.parse.quote(asked.headers[name].strip(), safe='~')}"
                     for name in names)
    canonical = "\n".join([asked.method, urllib.parse.quote(urllib.parse.unquote(path), safe="/~"), "&".join(items), *headers])
    return _hmac(_hmac(secret, prefix), canonical)


class Node:
    def __init__(self, number, settles):
        self.id, self.machine = f"cce-1-{number:08x}", f"i-{number:08x}"
        self.zone, self.phase, self.settles, self.is_kept = f"zone{'ABC'[number % 3]}", "provisioning", settles, False

    def settle(self, now):
        if now < self.settles:
            return True
        if self.phase == "provisioning":
            self.phase = "running"
        return self.phase != "deleting"

    def print(self):
        spec = {"cceInstanceID": self.id, "instanceName": self.id, "clusterRole": "node", "machineType": "BCC",
                "vpcConfig": {"availableZone": self.zone}, "scaleDownDisabled": self.is_kept}
        return {"spec": spec, "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z",
                "status": {"instancePhase": self.phase, "machineStatus": "ACTIVE", "machine": {
                    "instanceID": self.machine, "k8sNodeName": self.id}}}


class Group:
    """room: machines that there are; unready: how many of the nodes that run are not ready; stays: why nodes do not go
    after their removal was accepted."""

    def __init__(self, cloud, cluster, group, size, room=1000, **spec):
        self.cloud, self.group, self.room, self.spec, self.pause = cloud, group, room, spec, None
        self.path = f"{PREFIX}/cluster/{cluster}/instancegroup/{group}"
        self.size, self.nodes, self.undelivered, self.unready, self.stays = 0, [], [], 0, ""
        self.numbers = itertools.count(1)
        self.set_size(size, 0.0)

    def present(self):
        self.nodes = [n for n in self.nodes if n.settle(time.monotonic())]
        return [n for n in self.nodes if n.phase != "deleting"]

    def set_size(self, size, delay):
        """What the task ends with: None, or an error."""
        self.size, missing = size, 0
        for _ in range(size - len(self.present())):
            if len(self.present()) < self.room:
                self.nodes.append(Node(next(self.numbers), time.monotonic() + delay))
            else:
                missing += 1
        self.undelivered = ["no stock of bcc.g5.c2m8 in zoneA"] * missing
        for node in self.present()[size:]:      # who leaves is Baidu's choice
            self.drop(node)
        self.present()
        return f"{missing} machines: no stock of bcc.g5.c2m8 in zoneA" if missing else None

    def drop(self, node):
        node.phase, node.settles = "deleting", time.monotonic() + self.cloud.delay

    def print(self):
        ready = len([n for n in self.present() if n.phase == "running"]) - self.unready
        status = {"readyReplicas": ready, "undeliveredMachines": {"failedMachines": self.undelivered} if self.undelivered else {}}
        if self.pause:
            status["pause"] = {"paused": True, "reason": self.pause}
        return {"instanceGroup": {"spec": {"cceInstanceGroupID": self.group, "instanceGroupName": "web", "replicas": self.size,
                                           "shrinkPolicy": "Priority", **self.spec}, "status": status}}

    def answer(self, asked, verb, query):
        call = {("GET", ""): self._get, ("GET", "instances"): self._list, ("PUT", "scaleup"): self._scale_up,
                ("PUT", "scaledown"): self._scale_down, ("PUT", "replicas"): self._replicas}.get((asked.method, verb))
        return call(asked, query) if call else refusal(404, "cce.warning.NoSuchObject", f"no {verb}")

    def _get(self, _asked, _query):
        return 200, {}, self.print()

    def _list(self, _asked, query):
        self.present()
        page, size = int(query["pageNo"]), min(int(query["pageSize"]), PAGE)    # no longer than Baidu likes
        shown = self.nodes[(page - 1) * size:page * size]
        return 200, {}, {"page": {"pageNo": page, "pageSize": size, "totalCount": len(self.nodes),
                                  "list": [n.print() for n in shown]}}

    def _scale_up(self, _asked, query):
        size = int(query["upToReplicas"])
        if size <= self.size:
            return refusal(400, "cce.warning.InvalidParam", f"upToReplicas {size} is not above {self.size}")
        return self.cloud.begin(self.set_size(size, self.cloud.delay))

    def _scale_down(self, asked, _query):
        found, names = {n.id: n for n in self.present()}, asked.json["instancesToBeRemoved"]
        if not names or asked.json["cleanPolicy"] != "Delete" or not asked.json["deleteOption"]["deleteResource"]:
            return refusal(400, "cce.warning.InvalidParam", "nothing to be removed")
        for name in names:
            if name not in found:
                return refusal(404, "cce.warning.NoSuchObject", f"instance {name} is not found")
        if self.stays:
            return self.cloud.begin(self.stays)
        for name in names:
            self.drop(found[name])
            self.size -= 1
        return self.cloud.begin(None)

    def _replicas(self, asked, _query):
        return self.cloud.begin(self.set_size(asked.json["replicas"], self.cloud.delay))


class Baidu(Cloud):
    """delay: seconds that nodes and tasks take. sessions: {access key: its token}."""

    def __init__(self, delay=0.3):
        self.delay, self.groups, self.tasks = delay, [], {}
        self.keys, self.sessions = {KEY: SECRET}, {}
        self._numbers = itertools.count(1)
        super().__init__()

    def add(self, size, cluster="cce-1", group="cce-ig-1", **options):
        self.groups.append(Group(self, cluster, group, size, **options))
        return self.groups[-1]

    def changed(self):
        return self.requests("^PUT ")

    # ---- answers ----

    def _handle(self, asked):
        """The request's id stands in the head, and in the body once more."""
        status, headers, body = super()._handle(asked)
        name = f"bce-req-{next(self._numbers)}"
        if isinstance(body, dict):
            body = {**body, "requestID" if status < 300 else "requestId": name}
        return status, {"X-Bce-Request-Id": name, **headers}, body

    def refuse(self, status, code, message, headers):
        return refusal(status, code, message, headers)

    def begin(self, error):
        name = f"task-ig-{len(self.tasks) + 1}"
        self.tasks[name] = (time.monotonic() + self.delay, error)
        return 200, {}, {"taskID": name}

    def _task(self, name):
        if name not in self.tasks:
            return refusal(404, "cce.warning.NoSuchObject", f"task {name} is not found")
        end, error = self.tasks[name]
        phase = "Processing" if time.monotonic() < end else "Aborted" if error else "Done"
        task = {"id": name, "type": "InstanceGroupReplicas", "phase": phase, "startTime": "2026-01-01T00:00:00Z"}
        return 200, {}, {"task": task | ({"errMessage": error} if phase == "Aborted" else {})}

    def _check(self, asked):
        """None: who asks is known."""
        found = re.fullmatch(r"(bce-auth-v1/([^/]+)/([^/]+)/(\d+))/([^/]*)/([0-9a-f]{64})", asked.headers["Authorization"] or "")
        if not found:
            return refusal(400, "InvalidHTTPAuthHeader", "The HTTP authorization header is invalid.")
        prefix, key, then, seconds, names, given = found.groups()
        if key not in self.keys:
            return refusal(403, "InvalidAccessKeyId", "The Access Key ID you provided does not exist in our records.")
        names = names.split(";")
        own = [n.lower() for n in asked.headers if n.lower().startswith("x-bce-")]
        if "host" not in names or set(own) - set(names) or given != signature(self.keys[key], prefix, asked, names):
            return refusal(403, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you "
                           "provided.")
        age = time.time() - datetime.datetime.fromisoformat(then.replace("Z", "+00:00")).timestamp()
        if not -300 < age < int(seconds):
            return refusal(400, "RequestExpired", "Request has expired.")
        if asked.headers["x-bce-security-token"] != self.sessions.get(key):
            return refusal(400, "InvalidSessionToken", "The session token is invalid or has expired.")
        return None

    def answer(self, asked):
        path, _, query = asked.path.partition("?")
        self.note(asked, asked.json if asked.body else None)
        if asked.method == "PUT" and asked.headers["Content-Length"] is None:
            return 411, {}, b""
        refused = self._check(asked)
        if refused:
            return refused
        parameters = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        if path.startswith(f"{PREFIX}/task/InstanceGroupReplicas/"):
            return self._task(path.rpartition("/")[2])
        for group in self.groups:
            rest = path.removeprefix(group.path)
            if path.startswith(group.path) and (not rest or rest[0] == "/"):
                return group.answer(asked, rest[1:], parameters)
        return refusal(404, "cce.warning.NoSuchObject", f"{path} is not found")
