"""The other side of a `type: http` node group: a number that can be read, and set by those who have read it.

GET -> {"size": N, ...} with an entity tag; PUT {"size": N, "observed": M} with If-Match, 412 where someone was faster.
"""
import dataclasses
import threading
import time

from .http import HangUp, Server


@dataclasses.dataclass
class Fault:
    """What goes wrong with the next request of this method. With apply, a PUT takes effect before it goes wrong."""

    method: str = "PUT"
    delay: float = 0.0
    status: int = 0             # answer this; 0: as ever
    headers: dict = dataclasses.field(default_factory=dict)
    apply: bool = False
    hang_up: bool = False
    meanwhile: object = None    # is called when the answer is known, and before it is sent


@dataclasses.dataclass
class Put:
    """A PUT that arrived."""

    time: float
    body: object
    if_match: str
    status: int                 # what was answered; 0: nothing
    applied: bool


class HttpNodeGroup:
    """etag: where the entity tag is given: "header", "body" or None."""

    def __init__(self, size, etag="header", token=None, **fields):
        self.etag = etag
        self.token = token
        self.fields = fields    # min, max, in_progress
        self.puts = []
        self.gets = 0
        self._size = size
        self._version = 1
        self._faults = []
        self._lock = threading.Lock()
        self._server = Server(self._handle)
        self.url = self._server.url + "/groups/workers"

    @property
    def size(self):
        with self._lock:
            return self._size

    @size.setter
    def size(self, size):
        """As if someone else had changed it."""
        with self._lock:
            self._change(size)

    @property
    def applied(self):
        """The sizes that PUTs have set, in order."""
        with self._lock:
            return [put.body["size"] for put in self.puts if put.applied]

    def inject(self, *faults, times=1):
        with self._lock:
            self._faults += list(faults) * times

    def heal(self):
        with self._lock:
            self._faults.clear()

    def _change(self, size):
        self._size = size
        self._version += 1

    def _take_fault(self, method):
        for fault in self._faults:
            if fault.method == method:
                self._faults.remove(fault)
                return fault
        return Fault(method)

    def _get(self):
        body = {"size": self._size, **self.fields}
        if self.etag == "body":
            body["etag"] = f"v{self._version}"
        return 200, {"ETag": f'"v{self._version}"'} if self.etag == "header" else {}, body

    def _refusal(self, asked):
        """What is wrong with a PUT, or None."""
        try:
            size, observed = asked.json["size"], asked.json["observed"]
        except (ValueError, KeyError, TypeError) as error:
            return 400, {}, {"error": f"bad body: {error}"}
        if type(size) is not int or size < 0:
            return 400, {}, {"error": "size is not a size"}
        if self.etag is None:
            stale = observed != self._size
        else:
            stale = (asked.headers["If-Match"] or "").strip('"') != f"v{self._version}"
        return (412, {}, {"error": f"size is {self._size}"}) if stale else None

    def _handle(self, asked):
        if self.token and asked.headers["Authorization"] != f"Bearer {self.token}":
            return 401, {}, {"error": "who are you?"}
        if asked.path != "/groups/workers" or asked.method not in ("GET", "PUT"):
            return 404, {}, {"error": "no such group"}
        with self._lock:
            fault = self._take_fault(asked.method)
            if asked.method == "PUT":
                answer = self._put(asked, fault)
            else:
                self.gets += 1
                answer = self._get()
        time.sleep(fault.delay)
        if fault.meanwhile:
            fault.meanwhile()
        if fault.hang_up:
            raise HangUp
        return (fault.status, fault.headers, {"error": "injected"}) if fault.status else answer

    def _put(self, asked, fault):
        refusal = self._refusal(asked)
        applied = refusal is None and (fault.apply or not (fault.status or fault.hang_up))
        if applied:
            self._change(asked.json["size"])
        answer = refusal or self._get()
        status = 0 if fault.hang_up else fault.status or answer[0]
        body = asked.json if refusal is None or refusal[0] == 412 else asked.body
        self.puts.append(Put(time.monotonic(), body, asked.headers["If-Match"], status, applied))
        return answer

    def stop(self):
        self._server.stop()
