"""What the fakes of clouds have in common: what was asked is kept, what is to go wrong is injected, one request is answered at
a time."""
import dataclasses
import re
import threading
import time

from .http import HangUp, Server


@dataclasses.dataclass
class Fault:
    """What goes wrong with the next request whose method and path match. With apply, it takes effect before."""

    match: str                  # of "METHOD path?query"
    status: int = 0
    code: str = "injected"
    message: str = "injected"
    headers: dict = dataclasses.field(default_factory=dict)
    body: object = None
    apply: bool = False
    hang_up: bool = False
    delay: float = 0.0

    def __str__(self):
        return f"{self.match.strip('^ ')}-{self.status or 'hangup'}-{self.code}{'-applied' if self.apply else ''}"


class Cloud:
    """A cloud answers (`answer`), refuses (`refuse`) and names its requests (`name_request`, headers of every answer)."""

    def __init__(self, tls=None):
        self.asked = []         # (line, body), as `note` was told
        self.lock = threading.RLock()
        self._faults = []
        self._server = Server(self._handle, tls=tls)
        self.url = self._server.url

    def inject(self, *faults, times=1):
        with self.lock:
            self._faults += list(faults) * times

    def heal(self):
        with self.lock:
            self._faults.clear()

    def note(self, asked, body):
        self.asked.append((f"{asked.method} {asked.path}", body))

    def requests(self, pattern=""):
        """Those so far, as "METHOD path?query", with their bodies."""
        with self.lock:
            return [(line, body) for line, body in self.asked if re.search(pattern, line)]

    def stop(self):
        self._server.stop()

    def name_request(self):
        return {}

    def _take_fault(self, asked):
        for fault in self._faults:
            if re.search(fault.match, f"{asked.method} {asked.path}"):
                self._faults.remove(fault)
                return fault
        return None

    def _handle(self, asked):
        with self.lock:
            fault = self._take_fault(asked)
            answer = self.answer(asked) if fault is None or fault.apply else None
        if fault is not None:
            time.sleep(fault.delay)
            if fault.hang_up:
                raise HangUp
            if fault.body is not None:
                answer = fault.status or 200, fault.headers, fault.body
            elif fault.status:
                answer = self.refuse(fault.status, fault.code, fault.message, fault.headers)
        status, headers, body = answer
        return status, {**self.name_request(), **headers}, body
