"""OpenStack: Debian's Keystone and Magnum (openstack_servers.py), and a front before Magnum that the catalogue names.

The front forwards everything, keeps what was asked, and plays what the real service cannot be made to do: what is injected.
"""
import dataclasses
import json
import pathlib
import re
import sqlite3
import threading
import time

from .http import HangUp, Server, request
from .openstack_servers import CLUSTER, GROUPS, PASSWORD
from .ports import free_port
from .process import Process

SCRIPT = pathlib.Path(__file__).with_name("openstack_servers.py")
PACKAGES = pathlib.Path("/usr/lib/python3/dist-packages")
WORKERS = GROUPS["default-worker"]


def missing():
    absent = [name for name in ("keystone", "magnum") if not (PACKAGES / name).is_dir()]
    return f"python3-{absent[0]} is not installed: run tests/install test" if absent else None


@dataclasses.dataclass
class Fault:
    """What goes wrong with the next request to Magnum whose method and path match. With apply, it takes effect before."""

    match: str
    status: int = 0
    body: object = None
    headers: dict = dataclasses.field(default_factory=dict)
    apply: bool = False
    hang_up: bool = False
    seconds: float = 0.0


def error(status, detail):
    return {"errors": [{"status": status, "title": detail.split(".")[0], "detail": detail, "code": "client",
                        "request_id": "", "links": []}]}


class Front:
    def __init__(self, magnum):
        self.magnum = magnum
        self.asked = []         # ("METHOD path", microversion, body)
        self._faults, self._lock = [], threading.Lock()
        self._server = Server(self._handle)
        self.url = self._server.url

    def inject(self, *faults, times=1):
        with self._lock:
            self._faults += list(faults) * times

    def reset(self):
        with self._lock:
            self._faults, self.asked = [], []

    def requests(self, pattern=""):
        with self._lock:
            return [one for one in self.asked if re.search(pattern, one[0])]

    def stop(self):
        self._server.stop()

    def _handle(self, asked):
        line = f"{asked.method} {asked.path}"
        with self._lock:
            self.asked.append((line, asked.headers["OpenStack-API-Version"], asked.json if asked.body else None))
            fault = next((f for f in self._faults if re.search(f.match, line)), None)
            if fault:
                self._faults.remove(fault)
        answer = self._forward(asked) if fault is None or fault.apply else None
        if fault:
            time.sleep(fault.seconds)
        if fault and fault.hang_up:
            raise HangUp
        if fault:
            return fault.status, fault.headers, fault.body if fault.body is not None else b""
        return answer

    def _forward(self, asked):
        headers = {k: v for k, v in asked.headers.items() if k.lower() not in ("host", "content-length", "connection")}
        answer = request(asked.method, self.magnum + asked.path, asked.body or None, headers, timeout=30)
        kept = {k: v for k, v in answer.headers.items() if k.lower() in ("content-type", "x-openstack-request-id")}
        return answer.status, kept, answer.body


class OpenStack:
    def __init__(self, directory):
        self.directory = directory
        self.ports = free_port(), free_port()
        self.keystone, magnum = (f"http://127.0.0.1:{port}" for port in self.ports)
        self.front = Front(magnum)
        self.magnum = magnum
        self.keystone_process = self._process("keystone", self.ports[0], self.ports[1])
        self.magnum_process = self._process("magnum", self.ports[1], self.ports[0])
        self.projects, self.users = {}, {}
        self._admin = None

    def _process(self, name, *ports):
        argv = ["/usr/bin/python3", "-P", SCRIPT, name, self.directory, *ports]
        return Process(name, argv, self.directory, {"PATH": "/usr/bin:/bin", "HOME": str(self.directory)})

    def start(self):
        self.keystone_process.start().wait_ready(lambda: request("GET", f"{self.keystone}/v3").ok, 90)
        self._fill_keystone()
        (self.directory / "project").write_text(self.projects["prod"])
        self.plan()
        self.magnum_process.start().wait_ready(lambda: request("GET", f"{self.magnum}/").ok, 90)
        return self

    def stop(self):
        for process in (self.magnum_process, self.keystone_process):
            process.stop()
        self.front.stop()

    # ---- Keystone ----

    def token(self, user, password=PASSWORD, **scope):
        """Of a user of the default domain."""
        who = {"user": {"name": user, "domain": {"id": "default"}, "password": password}}
        body = {"auth": {"identity": {"methods": ["password"], "password": who}, "scope": scope}}
        answer = request("POST", f"{self.keystone}/v3/auth/tokens", body)
        assert answer.ok, answer.text
        return answer.headers["X-Subject-Token"]

    def call(self, method, path, body=None, token=None):
        answer = request(method, f"{self.keystone}/v3{path}", body, {"X-Auth-Token": token or self._admin})
        assert answer.ok, answer.text
        return answer.json if answer.body else None

    def make(self, kind, **fields):
        return self.call("POST", f"/{kind}s", {kind: fields})[kind]["id"]

    def _fill_keystone(self):
        self._admin = self.token("admin", project={"name": "admin", "domain": {"id": "default"}})
        roles = {role["name"]: role["id"] for role in self.call("GET", "/roles")["roles"]}
        service = self.make("service", name="magnum", type="container-infra")
        for region, url in (("Elsewhere", "http://127.0.0.1:9"), ("RegionOne", self.front.url)):
            if region != "RegionOne":
                self.make("region", id=region)
            self.make("endpoint", service_id=service, interface="public", region_id=region, url=f"{url}/v1")
        self.projects["prod"] = self.make("project", name="prod", domain_id="default")
        for user, role in (("scaler", "member"), ("reader", "reader")):
            self.users[user] = self.make("user", name=user, domain_id="default", password=PASSWORD)
            self.call("PUT", f"/projects/{self.projects['prod']}/users/{self.users[user]}/roles/{roles[role]}")
        domain = self.make("domain", name="magnum")
        trustee = self.make("user", name="magnum_domain_admin", domain_id=domain, password=PASSWORD)
        self.call("PUT", f"/domains/{domain}/users/{trustee}/roles/{roles['admin']}")

    def make_application_credential(self, name):
        """Its id; the secret is PASSWORD."""
        token = self.token("scaler", project={"id": self.projects["prod"]})
        made = self.call("POST", f"/users/{self.users['scaler']}/application_credentials",
                         {"application_credential": {"name": name, "secret": PASSWORD}}, token)
        return made["application_credential"]["id"]

    def make_trust(self):
        """From scaler to reader, who does as scaler what he may not himself: its id."""
        token = self.token("scaler", project={"id": self.projects["prod"]})
        trust = {"trustor_user_id": self.users["scaler"], "trustee_user_id": self.users["reader"],
                 "project_id": self.projects["prod"], "impersonation": False, "roles": [{"name": "member"}]}
        return self.call("POST", "/OS-TRUST/trusts", {"trust": trust}, token)["trust"]["id"]

    def set_password(self, user, password):
        """Every token of the user's is refused from then on."""
        self.call("PATCH", f"/users/{self.users[user]}", {"user": {"password": password}})

    # ---- Magnum ----

    def plan(self, **what):
        """What the conductor does with a resize: seconds, failure."""
        file = self.directory / "conductor.json"
        new = file.with_suffix(".new")
        new.write_text(json.dumps(what))
        new.rename(file)

    def resizes(self):
        file = self.directory / "resizes.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def _query(self, text, *values):
        with sqlite3.connect(self.directory / "magnum.sqlite", timeout=20) as connection:
            return connection.execute(text, values).fetchall()

    def set_group(self, **fields):
        names = ", ".join(f"{name} = ?" for name in fields)
        self._query(f"UPDATE nodegroup SET {names} WHERE uuid = ?", *fields.values(), WORKERS)

    def set_cluster(self, **fields):
        names = ", ".join(f"{name} = ?" for name in fields)
        self._query(f"UPDATE cluster SET {names} WHERE uuid = ?", *fields.values(), CLUSTER)

    @property
    def size(self):
        return self._query("SELECT node_count FROM nodegroup WHERE uuid = ?", WORKERS)[0][0]

    @property
    def status(self):
        return self._query("SELECT status FROM nodegroup WHERE uuid = ?", WORKERS)[0][0]

    def reset(self):
        """As it was at first."""
        while "IN_PROGRESS" in self.status and self.resizes():
            time.sleep(0.1)
        self.plan()
        (self.directory / "resizes.jsonl").unlink(missing_ok=True)
        self.front.reset()
        self.set_cluster(status="CREATE_COMPLETE", status_reason=None)
        self.set_group(status="CREATE_COMPLETE", status_reason=None, node_count=2, labels="{}",
                       node_addresses='["10.0.0.4", "10.0.0.5"]', min_node_count=1, max_node_count=6)
