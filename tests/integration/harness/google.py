"""Google, as far as node groups need it: Compute Engine's managed instance groups, zonal and regional, node pools of GKE, and
who may ask (google_identity.py).

A resize is done when it is scheduled; machines come and go later, or do not come and say why. Lists come in pages where the
group says so; a change with the id of an earlier one is that one. The vendor's own clients work with it
(test_google_client.py).
"""
import itertools
import re
import time
import urllib.parse
import zlib

from .cloud import Cloud
from .google_identity import Identity

PROJECT = "shop"
REGION = "europe-west1"
ZONES = [f"{REGION}-b", f"{REGION}-c", f"{REGION}-d"]
SITE = "https://www.googleapis.com/compute/v1"
PAGE = 2
REMOVE_MAX = 1000
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
STATUSES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED",
            429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"}
# The permission that each call needs.
PERMISSIONS = {
    r"GET .*/instanceGroupManagers/[^/]+$": "compute.instanceGroupManagers.get",
    r"POST .*/listManagedInstances$": "compute.instanceGroupManagers.list",
    r"POST .*/(resize|deleteInstances)$": "compute.instanceGroupManagers.update",
    r"(GET|POST) .*/zones/.*/operations/": "compute.zoneOperations.get",
    r"(GET|POST) .*/regions/.*/operations/": "compute.regionOperations.get",
    r"GET .*/nodePools/": "container.clusters.get",
}


def refusal(status, reason, message, headers=None, details=None):
    error = {"code": status, "message": message, "errors": [{"message": message, "domain": "global", "reason": reason}],
             "status": STATUSES.get(status, "UNKNOWN")}
    if details:
        error["details"] = details
    return status, headers or {}, {"error": error}


class Instance:
    def __init__(self, zone, name, settles, error=None):
        self.zone, self.name, self.settles, self.error = zone, name, settles, error
        self.action, self.is_kept = "CREATING", False
        self.number = str(abs(hash(name)) % 10**18)

    def settle(self, now):
        """Whether it is still one of its group."""
        if now < self.settles:
            return True
        if self.action == "CREATING" and not self.error:
            self.action = "NONE"
        return self.action != "DELETING"

    def print(self):
        shown = {"id": self.number, "name": self.name, "currentAction": self.action,
                 "instance": f"{SITE}/projects/{PROJECT}/zones/{self.zone}/instances/{self.name}"}
        if self.action != "CREATING":
            shown["instanceStatus"] = "STOPPING" if self.action == "DELETING" else "RUNNING"
        if self.error and time.monotonic() >= self.settles:
            shown["lastAttempt"] = {"errors": {"errors": [{"code": self.error[0], "message": self.error[1]}]}}
        if self.is_kept:
            shown["preservedStateFromConfig"] = {"metadata": {"kept": "yes"}}
        return shown


class Group:
    """room: machines that there are; error: why there are no more."""

    def __init__(self, google, name, size, *, zone=None, paginated=True, room=1000, autoscaler=None, error=None):
        self.google, self.name, self.room, self.paginated, self.autoscaler = google, name, room, paginated, autoscaler
        self.zones = [zone] if zone else ZONES
        self.place = f"projects/{PROJECT}/" + (f"zones/{zone}" if zone else f"regions/{REGION}")
        self.path = f"{self.place}/instanceGroupManagers/{name}"
        self.error = error or ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", f"The zone '{self.zones[0]}' does not have enough "
                               "resources available to fulfill the request. Try a different zone, or try again later.")
        self.size, self.instances, self.version = 0, [], 0
        self.numbers = itertools.count()
        self.set_size(size, 0.0)

    def present(self):
        self.settle()
        return [i for i in self.instances if i.action != "DELETING"]

    def settle(self):
        self.instances = [i for i in self.instances if i.settle(time.monotonic())]

    def set_size(self, size, delay):
        self.size, self.version = size, self.version + 1
        for _ in range(size - len(self.present())):
            number = next(self.numbers)
            is_there = len([i for i in self.present() if not i.error]) < self.room
            self.instances.append(Instance(self.zones[number % len(self.zones)], f"{self.name}-{number:04x}",
                                           time.monotonic() + delay, None if is_there else self.error))
        for instance in self.present()[size:]:      # who leaves is Google's choice
            self.drop(instance, delay)
        self.settle()

    def drop(self, instance, delay):
        instance.action, instance.settles = "DELETING", time.monotonic() + delay

    def print(self):
        self.settle()
        actions = {a.lower(): len([i for i in self.instances if i.action == a]) for a in ("NONE", "CREATING", "DELETING")}
        scope = "zone" if "/zones/" in self.place else "region"
        shown = {"kind": "compute#instanceGroupManager", "id": str(4711 + zlib.crc32(self.path.encode())), "name": self.name, "baseInstanceName": self.name,
                 scope: f"{SITE}/{self.place}", "selfLink": f"{SITE}/{self.path}", "targetSize": self.size,
                 "currentActions": actions, "fingerprint": f"v{self.version}=",
                 "status": {"isStable": actions["none"] == self.size == len(self.instances)},
                 "listManagedInstancesResults": "PAGINATED" if self.paginated else "PAGELESS"}
        if self.autoscaler:
            shown["status"]["autoscaler"] = f"{SITE}/{self.place}/autoscalers/{self.autoscaler}"
        return shown

    # ---- answers ----

    def answer(self, method, verb, query, asked):
        call = {("GET", ""): self._get, ("POST", "listManagedInstances"): self._list, ("POST", "resize"): self._resize,
                ("POST", "deleteInstances"): self._delete}.get((method, verb))
        return call(query, asked) if call else refusal(404, "notFound", f"there is no {method} {verb}")

    def _get(self, _query, _asked):
        return 200, {"ETag": f"v{self.version}/="}, self.print()

    def _list(self, query, _asked):
        self.settle()
        count = min(int(query.get("maxResults", 500)), PAGE) if self.paginated else len(self.instances)
        start = int(query["pageToken"].removeprefix("at+/=")) if "pageToken" in query else 0
        shown = {"managedInstances": [i.print() for i in self.instances[start:start + count]]}
        if start + count < len(self.instances):
            shown["nextPageToken"] = f"at+/={start + count}"
        return 200, {}, {key: value for key, value in shown.items() if value}

    def _resize(self, query, _asked):
        if not re.fullmatch(r"\d+", query.get("size", "")):
            return refusal(400, "invalid", "Invalid value for field 'size'")
        self.set_size(int(query["size"]), self.google.delay)
        return self.google.begin("resize", self)

    def _delete(self, _query, asked):
        body, found = asked.json, {f"zones/{i.zone}/instances/{i.name}": i for i in self.instances}
        names = [one.partition(f"/projects/{PROJECT}/")[2] or one for one in body["instances"]]
        if not names or len(names) > REMOVE_MAX:
            return refusal(400, "invalid", f"Invalid value for field 'instances': {len(names)} of them")
        for name in names:
            if name not in found and not body.get("skipInstancesOnValidationError"):
                return refusal(400, "invalid", f"Invalid value for field 'instances[0]': '{name}'. The instance is not a member "
                               f"of the managed instance group.")
        for name in [] if self.google.broken else names:
            if name in found and found[name].action != "DELETING":
                self.drop(found[name], self.google.delay)
                self.size, self.version = self.size - 1, self.version + 1
        return self.google.begin("deleteInstances", self)


class NodePool:
    """In each of its zones a managed instance group: `groups`."""

    def __init__(self, google, cluster, name, sizes, **options):
        self.google, self.cluster, self.name, self.status = google, cluster, name, "RUNNING"
        self.groups = [google.add(Group(google, f"gke-{cluster}-{name}-{i}a1b2c3d-grp", size, zone=zone, **options))
                       for i, (zone, size) in enumerate(zip(ZONES, sizes))]
        self.path = f"projects/{PROJECT}/locations/{REGION}/clusters/{cluster}/nodePools/{name}"
        self.autoscaling = {}

    @property
    def size(self):
        return sum(group.size for group in self.groups)

    def present(self):
        return [i for group in self.groups for i in group.present()]

    def print(self):
        return {"name": self.name, "selfLink": f"https://container.googleapis.com/v1/{self.path}",
                "status": self.status, "initialNodeCount": 1, "version": "1.31.5-gke.1233000",
                "locations": [group.zones[0] for group in self.groups], "etag": "b", "autoscaling": self.autoscaling,
                "instanceGroupUrls": [f"{SITE}/{group.path}" for group in self.groups]}


class Google(Cloud):
    """delay: seconds that machines take to come and go, and operations to be done. allowed: permissions; None: all."""

    def __init__(self, directory, delay=0.3):
        self.delay, self.allowed = delay, None
        self.groups, self.pools, self.operations, self.changes = [], [], {}, {}
        self._numbers = itertools.count(1700000000)
        self.broken = None      # (code, message): what the next operations end with
        super().__init__()
        self.identity = Identity(self.url, directory)

    # ---- what tests do ----

    def add(self, group):
        self.groups.append(group)
        return group

    def add_zonal(self, name, size, **options):
        return self.add(Group(self, name, size, zone=ZONES[0], **options))

    def add_regional(self, name, size, **options):
        return self.add(Group(self, name, size, **options))

    def add_pool(self, cluster, name, sizes, **options):
        self.pools.append(NodePool(self, cluster, name, sizes, **options))
        return self.pools[-1]

    def expire_tokens(self):
        with self.lock:
            self.identity.tokens.clear()

    def changed(self):
        """The changes that were asked for."""
        return self.requests(r"^POST .*/(resize\?|deleteInstances\?)")

    # ---- answers ----

    def refuse(self, status, code, message, headers):
        return refusal(status, code, message, headers)

    def begin(self, kind, group):
        name = f"operation-{next(self._numbers)}-63a0c5ab3bcd1-{len(self.operations):08x}"
        scope, place = group.place.split("/")[2:]
        shown = {"kind": "compute#operation", "id": str(len(self.operations) + 1), "name": name, "operationType":
                 f"compute.instanceGroupManagers.{kind}", "targetLink": f"{SITE}/{group.path}", "user": "alertscaler@shop",
                 "selfLink": f"{SITE}/{group.place}/operations/{name}", scope[:-1]: f"{SITE}/{group.place}", "progress": 0}
        self.operations[f"{group.place}/operations/{name}"] = (shown, time.monotonic() + self.delay, self.broken)
        return 200, {}, {**shown, "status": "RUNNING"}

    def _operation(self, path):
        name, _, wait = path.removesuffix("/").partition("/wait")
        if name not in self.operations:
            return refusal(404, "notFound", f"The resource '{name}' was not found")
        shown, end, error = self.operations[name]
        if time.monotonic() < end:
            return 200, {}, {**shown, "status": "RUNNING"}
        shown = {**shown, "status": "DONE", "progress": 100}
        if error:
            shown |= {"error": {"errors": [{"code": error[0], "message": error[1]}]}, "httpErrorStatusCode": 400,
                      "httpErrorMessage": "BAD REQUEST"}
        return 200, {}, shown

    def answer(self, asked):
        path, _, query = asked.path.partition("?")
        path = urllib.parse.unquote(path)
        told = self.identity.answer(asked, path)
        if told:
            return told
        self.note(asked, asked.json if asked.body else None)
        if asked.method == "POST" and asked.headers["Content-Length"] is None:
            return 411, {"Content-Type": "text/html"}, b"<!DOCTYPE html><title>Error 411 (Length Required)!!1</title>"
        if not self.identity.is_known(asked):
            return refusal(401, "authError", "Request had invalid authentication credentials. Expected OAuth 2 access token, "
                           "login cookie or other valid authentication credential.")
        for pattern, permission in PERMISSIONS.items():
            if re.match(pattern, f"{asked.method} {path}") and self.allowed is not None and permission not in self.allowed:
                return refusal(403, "forbidden", f"Required '{permission}' permission for '{path.split('/v1/')[1]}'")
        if path.startswith("/compute/v1/"):
            parameters = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
            return self._compute(asked, path.removeprefix("/compute/v1/"), parameters)
        return self._container(asked, path.removeprefix("/v1/"))

    def _compute(self, asked, path, query):
        if "/operations/" in path:
            return self._operation(path)
        change = query.get("requestId")
        if change is not None and not UUID.fullmatch(change):
            return refusal(400, "invalid", f"Invalid value for field 'requestId': '{change}'.")
        if change in self.changes:
            return self.changes[change]
        for group in self.groups:
            rest = path.removeprefix(group.path)
            if path.startswith(group.path) and (not rest or rest[0] == "/"):
                answer = group.answer(asked.method, rest[1:], query, asked)
                if change and answer[0] == 200:
                    self.changes[change] = answer
                return answer
        return refusal(404, "notFound", f"The resource '{path}' was not found")

    def _container(self, asked, path):
        request = [{"@type": "type.googleapis.com/google.rpc.RequestInfo", "requestId": f"0x{len(self.asked):016x}"}]
        for pool in self.pools:
            if (asked.method, path) == ("GET", pool.path):
                return 200, {}, pool.print()
        return refusal(404, "notFound", f"Not found: {path}.", details=request)
