#!/usr/bin/env python3
"""Something to scale while you try alertscaler: a size in memory, behind HTTP.

Start it with `python3 practice.py`. It speaks the protocol of an HTTP node group
(docs/targets.md). Delete it, and its provider in alertscaler.yaml, when rules/ name your own targets.
"""
import http.server
import json
import sys

ADDRESS = ("127.0.0.1", 9098)


class Checkout(http.server.BaseHTTPRequestHandler):
    size = 4

    def do_GET(self, status=200):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps({"size": Checkout.size}).encode())

    def do_PUT(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_current = asked["observed"] == Checkout.size
        if is_current:
            print(f"checkout: {Checkout.size} -> {asked['size']}", flush=True)
            Checkout.size = asked["size"]
        self.do_GET(200 if is_current else 412)

    def log_message(self, *_):
        pass


try:
    server = http.server.HTTPServer(ADDRESS, Checkout)
except OSError as error:
    sys.exit(f"practice.py: {ADDRESS[0]}:{ADDRESS[1]}: {error.strerror}; "
             "end what has this port, or give another one here (ADDRESS) and in rules/checkout.yaml")
server.serve_forever()
