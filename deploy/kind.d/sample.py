"""The sample application: it answers each GET, and counts it in http_requests_total.

    sample.py --port 8080                         the application: /metrics, and any other path
    sample.py --load http://sample:8080 --rate 60 its clients: so many requests a second, until it ends

deploy/kind runs it in pods; tests/integration/test_walk.py runs it on this machine.
"""
import argparse
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    lock = threading.Lock()
    requests = 0

    def do_GET(self):
        with Handler.lock:
            Handler.requests += self.path != "/metrics"
            count = Handler.requests
        body = (f"# HELP http_requests_total Requests that were answered.\n# TYPE http_requests_total counter\n"
                f"http_requests_total {count}\n" if self.path == "/metrics" else "hello\n").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def load(url, rate):
    """A request that fails is not repeated: the application may be away for a moment."""
    started, sent = time.monotonic(), 0
    while True:
        sent += 1
        time.sleep(max(0.0, started + sent / rate - time.monotonic()))
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except OSError:
            pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--address", default="0.0.0.0")
    parser.add_argument("--load", metavar="URL")
    parser.add_argument("--rate", type=float, default=60.0, help="requests a second")
    options = parser.parse_args()
    if options.load:
        load(options.load, options.rate)
    else:
        ThreadingHTTPServer((options.address, options.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
