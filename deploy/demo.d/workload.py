"""The demo's workload: load that goes up and down in waves, served by a number of instances that alertscaler sets.

It is both sides at once. As a node group it speaks the protocol of docs/targets.md (GET and PUT /group); as a service it exports
what Prometheus needs to alert on (GET /metrics). Its instances are only a number: nothing is started.
"""
import argparse
import json
import math
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PER_INSTANCE = 20.0  # requests a second that one instance serves
LOWEST, HIGHEST = 10.0, 150.0  # the waves' trough and crest, requests a second


class Group:
    def __init__(self, size, period):
        self.size = size
        self.version = 1
        self.changes = 0
        self.started = time.monotonic()
        self.period = period
        self.lock = threading.Lock()

    def load(self):
        phase = (time.monotonic() - self.started) / self.period
        return LOWEST + (HIGHEST - LOWEST) * (1 - math.cos(2 * math.pi * phase)) / 2

    def document(self):
        return {"size": self.size, "etag": f'"{self.version}"'}

    def put(self, wanted, if_match):
        """The status to answer with. A change rests on what its sender saw, or it is refused."""
        with self.lock:
            if if_match is not None and if_match != f'"{self.version}"':
                return 412
            if wanted != self.size:
                self.size, self.version, self.changes = wanted, self.version + 1, self.changes + 1
            return 200

    def metrics(self):
        load = self.load()
        capacity = max(self.size * PER_INSTANCE, 0.001)
        rows = [
            ("demo_load_requests_per_second", "Requests that want to be served.", load),
            ("demo_instances", "Instances that serve them.", self.size),
            ("demo_capacity_requests_per_second", "Requests that the instances can serve.", capacity),
            ("demo_utilization_ratio", "Load over capacity.", load / capacity),
        ]
        return "".join(f"# HELP {name} {text}\n# TYPE {name} gauge\n{name} {value:.6g}\n" for name, text, value in rows)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    group = None

    def answer(self, status, body, kind="application/json"):
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if self.path == "/metrics":
            self.answer(200, self.group.metrics(), "text/plain; version=0.0.4")
        elif self.path == "/group":
            self.answer(200, json.dumps(self.group.document()))
        else:
            self.answer(404, json.dumps({"error": "there are /group and /metrics"}))

    def do_PUT(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            wanted = json.loads(body)["size"]
            valid = self.path == "/group" and isinstance(wanted, int) and 0 <= wanted <= 1000
        except (ValueError, KeyError, TypeError):
            valid = False
        if not valid:
            self.answer(400, json.dumps({"error": "expected {\"size\": N} at /group"}))
            return
        status = self.group.put(wanted, self.headers.get("If-Match"))
        self.answer(status, json.dumps(self.group.document()))

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--size", type=int, default=2)
    parser.add_argument("--period", type=float, default=50.0, help="seconds from crest to crest")
    options = parser.parse_args()
    Handler.group = Group(options.size, options.period)
    ThreadingHTTPServer(("127.0.0.1", options.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
