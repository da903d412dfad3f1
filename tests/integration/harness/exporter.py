"""A metrics endpoint whose gauges the test sets."""
import threading

from .http import Server


def _escape(value):
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


class Exporter:
    def __init__(self):
        self._gauges = {}
        self._lock = threading.RLock()
        self._server = Server(self._handle)
        self.address = self._server.url.removeprefix("http://")

    def change(self):
        """`with exporter.change():` what is set and removed in it is seen at once, or not yet."""
        return self._lock

    def set(self, name, value, /, **labels):
        with self._lock:
            self._gauges[name, tuple(sorted(labels.items()))] = value

    def remove(self, name, /, **labels):
        with self._lock:
            self._gauges.pop((name, tuple(sorted(labels.items()))), None)

    def clear(self):
        with self._lock:
            self._gauges.clear()

    def _handle(self, asked):
        with self._lock:
            lines = []
            for (name, labels), value in sorted(self._gauges.items()):
                inner = ",".join(f'{key}="{_escape(text)}"' for key, text in labels)
                lines.append(f"{name}{{{inner}}} {value}\n" if inner else f"{name} {value}\n")
        return 200, {"Content-Type": "text/plain; version=0.0.4"}, "".join(lines).encode()

    def stop(self):
        self._server.stop()
