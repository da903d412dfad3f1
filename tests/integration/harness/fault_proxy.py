"""A reverse proxy before an API server that loses requests and answers, refuses, waits, and lets others act in between.

decide(number, method, path) says what becomes of a request: None: forwarded; or
    "before"    the connection is cut, nothing was forwarded
    "after"     forwarded, and the connection is cut instead of an answer
    "slow"      forwarded, and the answer comes after `delay` seconds
    an int      that status instead of forwarding
It may also do something itself, before it returns.
"""
import http.client
import http.server
import json
import socket
import threading
import time
import urllib.parse


class FaultProxy:
    def __init__(self, url, tls, delay=6):
        self.upstream = urllib.parse.urlsplit(url).netloc
        self.tls = tls
        self.delay = delay
        self.decide = None
        self.number = 0
        self.seen = []      # (method, path, fault)
        self._lock = threading.Lock()
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def carry_out(self):
                proxy.carry_out(self)

            do_GET = do_POST = do_PUT = do_DELETE = carry_out

            def log_message(self, *arguments):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def start(self):
        self._thread.start()
        return self

    def stop(self):
        self._server.shutdown()
        self._server.server_close()

    def carry_out(self, handler):
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        with self._lock:
            number, self.number = self.number, self.number + 1
        fault = self.decide(number, handler.command, handler.path) if self.decide else None
        self.seen.append((handler.command, handler.path, fault))
        if fault == "before":
            return self._cut(handler)
        if isinstance(fault, int):
            status, answer = fault, json.dumps({"kind": "Status", "message": "injected"}).encode()
        else:
            status, answer = self._forward(handler, body)
        if fault == "after":
            return self._cut(handler)
        if fault == "slow":
            time.sleep(self.delay)
        try:
            handler.send_response(status)
            handler.send_header("Content-Type", "application/json")
            handler.send_header("Content-Length", str(len(answer)))
            handler.end_headers()
            handler.wfile.write(answer)
        except OSError:
            handler.close_connection = True     # it did not wait

    @staticmethod
    def _cut(handler):
        handler.close_connection = True
        try:
            handler.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def _forward(self, handler, body):
        connection = http.client.HTTPSConnection(self.upstream, context=self.tls, timeout=30)
        try:
            headers = {k: v for k, v in handler.headers.items() if k.lower() not in ("host", "content-length", "connection")}
            connection.request(handler.command, handler.path, body or None, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except OSError as problem:
            return 502, str(problem).encode()
        finally:
            connection.close()
