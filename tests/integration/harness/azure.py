"""Azure, as far as node groups need it: Entra ID, the machine's metadata service, and Resource Manager with scale sets and
agent pools of AKS.

Changes are accepted at once and carried out later: operations are polled, machines take their time, lists come in pages,
a change on condition of an ETag fails where someone was faster, buckets of requests run empty. The vendor's own client
works with it (test_azure_client.py).
"""
import dataclasses
import itertools
import re
import threading
import time
import urllib.parse

from .http import HangUp, Server

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
TENANT = "00000000-0000-0000-0000-00000000000a"
CLIENT = "00000000-0000-0000-0000-00000000000c"
SECRET = "s3~cr&et="
ASSERTION = "eyJ.federated.token"
PAGE = 2
COMPUTE = "/providers/Microsoft.Compute"
AKS = "/providers/Microsoft.ContainerService"


def refusal(status, code, message, headers=None):
    return status, headers or {}, {"error": {"code": code, "message": message}}


@dataclasses.dataclass
class Fault:
    """What goes wrong with the next request whose method and path match. With apply, it takes effect before."""

    match: str                  # of "METHOD path?query"
    status: int = 0
    code: str = "Injected"
    message: str = "injected"
    headers: dict = dataclasses.field(default_factory=dict)
    body: object = None
    apply: bool = False
    hang_up: bool = False
    delay: float = 0.0


@dataclasses.dataclass
class Machine:
    id: str
    name: str
    resource: str
    zone: str
    state: str = "Creating"
    settles: float = 0.0        # when it is there, failed, or gone
    error: tuple = ()
    protected: bool = False

    def settle(self, now):
        """Whether it is still one of its group."""
        if now >= self.settles:
            if self.state == "Deleting":
                return False
            if self.state == "Creating":
                self.state = "Failed" if self.error else "Succeeded"
        return True


class Group:
    """What scale sets and agent pools share. room: machines that can be had; quota: that may be asked for; stays: (code,
    words), why machines do not go after their removal was accepted; ends: what operations of an increase end with all the
    same."""

    def __init__(self, azure, path, size, room=1000, quota=1000, **properties):
        self.azure, self.path, self.room, self.quota, self.properties = azure, path, room, quota, properties
        self.size, self.version, self.machines, self.busy_until, self.stays = 0, 1, [], 0.0, ()
        self.ends = ()
        self.numbers = itertools.count()
        self._grow(size, 0.0)

    def _grow(self, size, delay):
        now, error = time.monotonic(), None
        self.size, self.version = size, self.version + 1
        while len(self.present()) < size:
            machine = self.make_machine(next(self.numbers))
            machine.settles = now + delay
            if len([m for m in self.present() if not m.error]) >= self.room:
                error = machine.error = ("AllocationFailed", "Allocation failed: not enough capacity in this region.")
            self.machines.append(machine)
        self.settle()
        return error

    def present(self):
        return [m for m in self.machines if m.state != "Deleting"]

    def settle(self):
        self.machines = [m for m in self.machines if m.settle(time.monotonic())]

    @property
    def state(self):
        return "Succeeded" if time.monotonic() >= self.busy_until else self.working

    def set_size(self, size, url):
        """A change of the size: the operation's headers."""
        if size > self.quota:
            return refusal(409, "OperationNotAllowed", "Operation could not be completed as it results in exceeding "
                           f"approved Total Regional Cores Quota. Current Limit: {self.quota}")
        if size < self.size:    # who leaves is Azure's choice
            for machine in self.present()[size:]:
                self._leave(machine)
        return self.accept(self._grow(size, self.azure.delay) or self.ends, url, self.print)

    def _leave(self, machine):
        machine.state, machine.settles = "Deleting", time.monotonic() + self.azure.delay

    def remove(self, machines, url):
        if self.stays:
            return self.accept(self.stays, url)
        for machine in machines:
            if machine.state != "Deleting":
                self._leave(machine)
                self.size -= 1
        self.version += 1
        return self.accept(None, url)

    def accept(self, error, url, result=None):
        self.busy_until = time.monotonic() + self.azure.delay
        return self.azure.begin_operation(error, url, result)


class ScaleSet(Group):
    working = "Updating"

    def __init__(self, azure, name, size, resource_group="rg-1", flexible=False, **options):
        self.name, self.flexible = name, flexible
        self.scope = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{resource_group}"
        self.tags = {}
        super().__init__(azure, f"{self.scope}{COMPUTE}/virtualMachineScaleSets/{name}", size, **options)

    def make_machine(self, number):
        zone = str(number % 3 + 1)
        if self.flexible:
            name = f"{self.name}_{number:08x}"
            return Machine(name, name, f"{self.scope}{COMPUTE}/virtualMachines/{name}", zone)
        return Machine(str(number), f"{self.name}_{number}", f"{self.path}/virtualMachines/{number}", zone)

    @property
    def etag(self):
        return f'"{self.version}"'

    def print(self):
        return {"id": self.path, "name": self.name, "location": "westeurope", "etag": self.etag, "tags": self.tags,
                "type": "Microsoft.Compute/virtualMachineScaleSets",
                "sku": {"name": "Standard_D2s_v5", "tier": "Standard", "capacity": self.size},
                "properties": {"provisioningState": self.state,
                               "orchestrationMode": "Flexible" if self.flexible else "Uniform", **self.properties}}

    def print_machine(self, machine):
        statuses = [{"code": f"ProvisioningState/{machine.state.lower()}"}]
        if machine.error and machine.state == "Failed":
            statuses = [{"code": f"ProvisioningState/failed/{machine.error[0]}", "message": machine.error[1]}]
        elif machine.state == "Succeeded":
            statuses.append({"code": "PowerState/running"})
        whole = {"id": machine.resource, "name": machine.name, "zones": [machine.zone], "location": "westeurope",
                 "properties": {"provisioningState": machine.state, "timeCreated": "2026-01-01T00:00:00.000+00:00",
                                "instanceView": {"statuses": statuses}}}
        if not self.flexible:
            whole["instanceId"] = machine.id
            whole["properties"]["protectionPolicy"] = {"protectFromScaleIn": machine.protected}
        return whole

    def answer(self, asked, rest, query, url):
        if asked.method == "GET" and rest == "":
            return 200, {}, self.print()
        if asked.method == "GET" and rest == "/virtualMachines" and not self.flexible:
            return self.azure.page(asked, [self.print_machine(m) for m in self.machines])
        if asked.method == "PATCH" and rest == "":
            if asked.headers["If-Match"] not in (None, self.etag):
                return refusal(412, "PreconditionFailed", "The ETag does not match.")
            done = self.set_size(asked.json["sku"]["capacity"], url)
            return (*done[:2], self.print()) if done[0] < 300 else done
        if asked.method == "POST" and rest == "/delete":
            return self._delete(asked.json["instanceIds"], query, url)
        return None

    def _delete(self, ids, query, url):
        if query.get("forceDeletion") == "true" and not self.azure.can_force:
            return refusal(409, "OperationNotAllowed", "Force deletion is not supported here.")
        found = {m.id: m for m in self.machines}
        for one in ids:
            if one not in found:
                return refusal(400, "InvalidParameter", f"The provided instanceId {one} is not an active Virtual Machine "
                               "Scale Set VM instanceId.")
        status, headers, _ = self.remove([found[one] for one in ids], url)
        return 202, headers, b""


class AgentPool(Group):
    working = "Scaling"

    def __init__(self, azure, cluster, name, size, resource_group="rg-1", **options):
        self.name = name
        self.nodes = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/MC_{resource_group}_{cluster}" \
                     f"{COMPUTE}/virtualMachineScaleSets/aks-{name}-1-vmss/virtualMachines"
        self.properties = {}
        super().__init__(azure, f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{resource_group}{AKS}/managedClusters/"
                         f"{cluster}/agentPools/{name}", size, **options)
        self.properties = {"vmSize": "Standard_D2s_v5", "type": "VirtualMachineScaleSets", "mode": "User",
                           "enableAutoScaling": False, "nodeLabels": {"pool": name}, **self.properties}

    def make_machine(self, number):
        return Machine(f"aks-{self.name}-1-vmss{number:06x}", "", f"{self.nodes}/{number}", str(number % 3 + 1))

    @property
    def etag(self):
        return f"etag-{self.version}"

    def print(self):
        return {"id": self.path, "name": self.name, "type": "Microsoft.ContainerService/managedClusters/agentPools",
                "properties": {**self.properties, "count": self.size, "eTag": self.etag, "provisioningState": self.state,
                               "currentOrchestratorVersion": "1.31.2", "nodeImageVersion": "AKSUbuntu-2204-1"}}

    def print_machine(self, machine):
        return {"id": f"{self.path}/machines/{machine.id}", "name": machine.id, "zones": [machine.zone],
                "type": "Microsoft.ContainerService/managedClusters/agentPools/machines",
                "properties": {"resourceId": machine.resource, "network": {"ipAddresses": []}}}

    def answer(self, asked, rest, query, url):
        if asked.method == "GET" and rest == "":
            return 200, {}, self.print()
        if asked.method == "GET" and rest == "/machines":
            there = [m for m in self.machines if m.state in ("Succeeded", "Deleting")]
            return self.azure.page(asked, [self.print_machine(m) for m in there])
        if asked.method not in ("PUT", "POST"):
            return None
        if time.monotonic() < self.busy_until:      # as AKS says it: without the outer member
            return 409, {}, {"code": "OperationNotAllowed", "details": None, "subcode": "",
                             "message": f"Operation is not allowed: Another agentpool operation ({self.name} - Scaling) "
                             "is in progress, please wait for it to finish before starting a new operation."}
        if asked.method == "PUT" and rest == "":
            return self._put(asked, url)
        if asked.method == "POST" and rest == "/deleteMachines":
            return self._delete(asked.json["machineNames"], url)
        return None

    def _put(self, asked, url):
        new = asked.json["properties"]
        if asked.headers["If-Match"] not in (None, self.etag):
            return 412, {}, {"code": "EtagMismatch", "message": "the eTag does not match"}
        for key, value in self.properties.items():
            if new.get(key) != value:               # what is left out would be lost
                return 400, {}, {"code": "PropertyChangeNotAllowed", "message": f"Changing property '{key}' is not allowed."}
        done = self.set_size(new["count"], url)
        return (200, done[1], self.print()) if done[0] < 300 else done

    def _delete(self, names, url):
        found = {m.id: m for m in self.machines}
        for one in names:
            if one not in found:
                return 404, {}, {"code": "NotFound", "message": f"machine {one} is not found"}
        return 202, self.remove([found[one] for one in names], url)[1], b""


class FakeAzure:
    """delay: seconds that a change takes. lifetime: of tokens. audience: the only one that gets tokens."""

    def __init__(self, delay=0.3, lifetime=3600, tls=None, audience="https://management.azure.com"):
        self.delay, self.lifetime, self.audience = delay, lifetime, audience
        self.can_force = True
        self.groups, self.autoscale, self.asked, self.tokens, self.operations = [], [], [], {}, {}
        self.is_identity_there, self.elsewhere = True, None
        self._faults, self._ids, self._lock = [], itertools.count(1), threading.RLock()
        self._server = Server(self._handle, tls=tls)
        self.url = self._server.url

    # ---- what tests do ----

    def add_scale_set(self, name, size, **options):
        self.groups.append(ScaleSet(self, name, size, **options))
        return self.groups[-1]

    def add_agent_pool(self, cluster, name, size, **options):
        self.groups.append(AgentPool(self, cluster, name, size, **options))
        return self.groups[-1]

    def inject(self, *faults, times=1):
        with self._lock:
            self._faults += list(faults) * times

    def heal(self):
        with self._lock:
            self._faults.clear()

    def expire_tokens(self):
        with self._lock:
            self.tokens.clear()

    def requests(self, pattern=""):
        """Those of Resource Manager so far, as "METHOD path?query", with their bodies and If-Match."""
        with self._lock:
            return [(line, body, condition) for line, body, condition in self.asked if re.search(pattern, line)]

    def stop(self):
        self._server.stop()

    # ---- answers ----

    def page(self, asked, items):
        """A part of a list, with the next one's address."""
        path, _, query = asked.path.partition("?")
        parameters = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        start = int(parameters.get("$skiptoken", 0))
        body = {"value": items[start:start + PAGE]}
        if start + PAGE < len(items):
            parameters["$skiptoken"] = start + PAGE
            body["nextLink"] = f"{self.url}{path}?{urllib.parse.urlencode(parameters)}"
        return 200, {}, body

    def begin_operation(self, error, url, result):
        name = f"op-{next(self._ids)}"
        self.operations[name] = (time.monotonic() + self.delay, error, result)
        address = f"{self.elsewhere or url}/subscriptions/{SUBSCRIPTION}{COMPUTE}/locations/westeurope"
        return 202, {"Azure-AsyncOperation": f"{address}/operations/{name}?p=1&api-version=2024-11-01",
                     "Location": f"{address}/operations/{name}?p=1&monitor=true&api-version=2024-11-01",
                     "Retry-After": "1"}, {}

    def _operation(self, name, query):
        if name not in self.operations:
            return refusal(404, "NotFound", f"there is no operation {name}")
        ends, error, result = self.operations[name]
        is_running = time.monotonic() < ends
        if "monitor" in query:
            return (202, {"Retry-After": "1"}, b"") if is_running else (200, {}, result() if result else b"")
        if is_running:
            return 200, {"Retry-After": "1"}, {"name": name, "status": "InProgress"}
        if error:
            return 200, {}, {"name": name, "status": "Failed", "error": {"code": error[0], "message": error[1]}}
        return 200, {}, {"name": name, "status": "Succeeded"}

    def _handle(self, asked):
        with self._lock:
            fault = self._take_fault(asked)
            answer = None
            if fault is None or fault.apply:
                answer = self._answer(asked)
        if fault is not None:
            time.sleep(fault.delay)
            if fault.hang_up:
                raise HangUp
            if fault.body is not None:
                answer = fault.status or 200, fault.headers, fault.body
            elif fault.status:
                answer = refusal(fault.status, fault.code, fault.message, fault.headers)
        status, headers, body = answer
        return status, {"x-ms-request-id": f"req-{next(self._ids)}", **headers}, body

    def _take_fault(self, asked):
        for fault in self._faults:
            if re.search(fault.match, f"{asked.method} {asked.path}"):
                self._faults.remove(fault)
                return fault
        return None

    def _answer(self, asked):
        path, _, query = asked.path.partition("?")
        parameters = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        if path.rstrip("/") == "/metadata/identity/oauth2/token":     # the client ends it with a slash
            return self._metadata(asked, parameters)
        if not path.startswith("/subscriptions/"):
            return self._entra(asked, path)
        self.asked.append((f"{asked.method} {urllib.parse.unquote(asked.path)}", asked.json if asked.body else None,
                           asked.headers["If-Match"]))
        ends = self.tokens.get((asked.headers["Authorization"] or "").removeprefix("Bearer "))
        if ends is None or ends < time.monotonic():
            return refusal(401, "ExpiredAuthenticationToken" if ends else "InvalidAuthenticationToken",
                           "The access token is not valid.")
        if "api-version" not in parameters:
            return refusal(400, "MissingApiVersionParameter", "The api-version query parameter is required.")
        return self._manage(asked, urllib.parse.unquote(path), parameters)

    # ---- tokens ----

    def _token(self, is_text):
        token = f"eyJ.token-{next(self._ids)}"
        self.tokens[token] = time.monotonic() + self.lifetime
        left, end = int(self.lifetime), int(time.time() + self.lifetime)
        return 200, {}, {"token_type": "Bearer", "access_token": token, "resource": self.audience + "/",
                         "expires_in": str(left) if is_text else left, "expires_on": str(end) if is_text else end}

    def _metadata(self, asked, query):
        if asked.headers["Metadata"] != "true":
            return 400, {}, {"error": "invalid_request", "error_description": "Required metadata header not specified"}
        if not self.is_identity_there or query.get("client_id", CLIENT) != CLIENT:
            return 400, {}, {"error": "invalid_request", "error_description": "Identity not found"}
        if query.get("api-version") != "2018-02-01" or query.get("resource", "").rstrip("/") != self.audience:
            return 400, {}, {"error": "invalid_request", "error_description": "Bad resource or version"}
        return self._token(is_text=True)

    def _entra(self, asked, path):
        if path == f"/{TENANT}/v2.0/.well-known/openid-configuration":
            root = f"{self.url}/{TENANT}"
            return 200, {}, {"token_endpoint": f"{root}/oauth2/v2.0/token", "issuer": f"{root}/v2.0",
                             "authorization_endpoint": f"{root}/oauth2/v2.0/authorize", "jwks_uri": f"{root}/keys"}
        if path != f"/{TENANT}/oauth2/v2.0/token" or asked.method != "POST":
            return 404, {}, {"error": "invalid_tenant", "error_description": f"AADSTS90002: nothing at {path}"}
        form = dict(urllib.parse.parse_qsl(asked.body.decode()))
        is_assertion = form.get("client_assertion_type") == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        is_known = form.get("client_assertion") == ASSERTION if is_assertion else form.get("client_secret") == SECRET
        if form.get("grant_type") != "client_credentials" or not form.get("scope", "").split()[0].endswith("/.default"):
            return 400, {}, {"error": "invalid_request", "error_description": "AADSTS900144: bad grant or scope"}
        if form["scope"].split()[0].removesuffix("/.default").rstrip("/") != self.audience:
            return 400, {}, {"error": "invalid_resource", "error_description": f"AADSTS500011: {form['scope']} was not found"}
        if form.get("client_id") != CLIENT or not is_known:
            return 401, {}, {"error": "invalid_client", "error_description": "AADSTS7000215: Invalid client secret provided."}
        return self._token(is_text=False)

    # ---- Resource Manager ----

    def _manage(self, asked, path, query):
        operation = re.fullmatch(r"/subscriptions/[^/]+/providers/Microsoft\.Compute/locations/westeurope/operations/(.+)",
                                 path)
        if operation:
            return self._operation(operation[1], query)
        for group in self.groups:
            rest = path[len(group.path):]
            if path.lower().startswith(group.path.lower()) and (not rest or rest[0] == "/"):
                group.settle()
                answer = group.answer(asked, rest, query, self.url)
                return answer or refusal(405, "MethodNotAllowed", f"{asked.method} {rest}")
        if path.endswith(f"{COMPUTE}/virtualMachines") and asked.method == "GET":
            return self._virtual_machines(asked, query)
        if path.lower().endswith("/providers/microsoft.insights/autoscalesettings"):
            return self.page(asked, self.autoscale)
        return refusal(404, "ResourceNotFound", f"The Resource '{path}' was not found.")

    def _virtual_machines(self, asked, query):
        wanted = re.fullmatch(r"'virtualMachineScaleSet/id' eq '([^']+)'", query.get("$filter", ""))
        for group in self.groups:
            if wanted and wanted[1].lower() == group.path.lower() and group.flexible:
                group.settle()
                return self.page(asked, [group.print_machine(m) for m in group.machines])
        return refusal(400, "InvalidFilter", "a filter for one flexible scale set is expected")
