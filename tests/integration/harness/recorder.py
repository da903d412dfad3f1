"""A receiver of `notify`'s webhook that keeps what it takes, and misbehaves as the test says."""
import threading

from .http import HangUp, Server


class Recorder:
    """status, headers and body: what it answers (status 0: nothing). hangs: it answers only when that is False again, or when it is stopped."""

    def __init__(self, port=0):
        self.status, self.headers, self.body = 200, {}, b""
        self.asked = []         # every request, in order of arrival
        self.taken = []         # the bodies of those that were answered 2xx
        self._lock = threading.Lock()
        self._goes_on = threading.Event()
        self._goes_on.set()
        self._server = Server(self._handle, port=port)
        self.url = self._server.url + "/in"

    @property
    def hangs(self):
        return not self._goes_on.is_set()

    @hangs.setter
    def hangs(self, hangs):
        (self._goes_on.clear if hangs else self._goes_on.set)()

    def _handle(self, asked):
        with self._lock:
            self.asked.append(asked)
            status = self.status
        self._goes_on.wait()
        if not status:
            raise HangUp
        with self._lock:
            if status // 100 == 2:
                self.taken.append(asked.json)
        return status, self.headers, self.body

    def events(self, kind=None, **data):
        """What was taken, each once: events of this kind with these data, in the order of their first arrival."""
        with self._lock:
            once = {(event["id"], event["type"]): event for event in reversed(self.taken)}
            events = [event for event in reversed(once.values())]
        return [event for event in events if kind in (None, event["type"].split(".")[2])
                and data.items() <= event["data"].items()]

    def stop(self):
        self.hangs = False
        self._server.stop()
