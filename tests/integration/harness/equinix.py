"""Equinix Metal, as far as pools of devices need it: devices come and go after a while, lists come in pages, there are only so
many servers. The service is gone, so that this follows its documentation and its own client, which works with it (test_equinix_client.py).
"""
import dataclasses
import itertools
import re
import time
import urllib.parse

from .cloud import Cloud, Fault     # noqa: F401  (Fault is for tests)

TOKEN = "eqx-0123456789abcdef"
PROJECT = "52b60ca7-1ae2-4875-846b-4e4635223471"
PAGE = 2
REQUIRED = ("plan", "operating_system", "metro")


@dataclasses.dataclass
class Device:
    id: str
    fields: dict
    state: str = "queued"
    settles: float = 0.0

    def print(self):
        return {"id": self.id, "hostname": self.fields["hostname"], "tags": self.fields["tags"], "state": self.state,
                "metro": {"code": self.fields["metro"]}, "created_at": "2026-01-01T00:00:00Z", "locked": False}


class FakeEquinix(Cloud):
    """delay: seconds until devices come or go. room: servers that can be had; fails: whether those that come fail."""

    def __init__(self, delay=0.3, room=1000):
        self.delay, self.room, self.fails = delay, room, False
        self.token, self.devices, self.made = TOKEN, [], []
        self.ids = itertools.count(1)
        super().__init__()

    def add(self, count, cluster="prod", pool="web"):
        for number in range(count):
            self._add({"hostname": f"{pool}-{number}", "metro": "am", "tags": [f"k8s-cluster-{cluster}", f"k8s-nodepool-{pool}"]})
            self.devices[-1].state = "active"

    def present(self, pool="web"):
        with self.lock:
            return [d for d in self.devices if f"k8s-nodepool-{pool}" in d.fields["tags"] and d.state != "deprovisioning"]

    def refuse(self, status, code, message, headers=None):
        return status, headers or {}, {"errors": [message]}

    def name_request(self):
        return {"x-request-id": f"req-{next(self.ids)}"}

    def _add(self, fields):
        device = Device(f"32c5e1a7-0000-4000-8000-{next(self.ids):012}", fields, settles=time.monotonic() + self.delay)
        self.devices.append(device)
        return device

    def _settle(self):
        now = time.monotonic()
        self.devices = [d for d in self.devices if d.state != "deprovisioning" or now < d.settles]
        for device in self.devices:
            if device.state == "queued" and now >= device.settles:
                device.state = "failed" if self.fails else "active"

    def answer(self, asked):
        self.note(asked, asked.json if asked.body else None)
        self._settle()
        path, _, query = asked.path.partition("?")
        if asked.headers["X-Auth-Token"] != self.token:
            return 401, {}, {"error": "Invalid authentication token"}
        one = re.fullmatch(r"/metal/v1/devices/([\w-]+)", path)
        if one and asked.method == "DELETE":
            return self._delete(one[1])
        if path != f"/metal/v1/projects/{PROJECT}/devices":
            return self.refuse(404, "", "Not found")
        if asked.method == "POST":
            return self._create(asked.json)
        return self._page(path, dict(urllib.parse.parse_qsl(query)))

    def _page(self, path, query):
        page = int(query.get("page", 1))
        assert int(query["per_page"]) <= 1000
        following = {"href": f"{path}?page={page + 1}"} if page * PAGE < len(self.devices) else None
        return 200, {}, {"devices": [d.print() for d in self.devices[(page - 1) * PAGE:page * PAGE]],
                         "meta": {"total": len(self.devices), "current_page": page, "next": following}}

    def _create(self, fields):
        missing = [key for key in REQUIRED if not fields.get(key)]
        if missing:
            return self.refuse(422, "", f"{missing[0]} can't be blank")
        if len(self.devices) >= self.room:
            return self.refuse(422, "", f"The metro {fields['metro']} has no provisionable {fields['plan']} servers matching "
                               "your criteria.")
        self.made.append(dict(fields))
        return 201, {}, self._add(fields).print()

    def _delete(self, id):
        device = next((d for d in self.devices if d.id == id), None)
        if not device:
            return self.refuse(404, "", "Not found")
        device.state, device.settles = "deprovisioning", time.monotonic() + self.delay
        return 204, {}, b""
