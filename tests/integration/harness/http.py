"""HTTP for tests: one request, and a small server for the peers that tests play."""
import dataclasses
import http.client
import json
import ssl
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .wait import PATIENCE


@dataclasses.dataclass
class Answer:
    status: int
    headers: object
    body: bytes

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def ok(self):
        return 200 <= self.status < 300


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def request(method, url, body=None, headers=None, tls=None, timeout=PATIENCE):
    """An Answer for every status; only a failed connection raises, an OSError. A body that is not bytes is sent as JSON."""
    headers = dict(headers or {})
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
        headers.setdefault("Content-Type", "application/json")
    handlers = [urllib.request.ProxyHandler({}), _NoRedirect()]
    if tls is not None:
        handlers.append(urllib.request.HTTPSHandler(context=tls))
    opener = urllib.request.build_opener(*handlers)
    asked = urllib.request.Request(url, data=body, headers=headers, method=method)
    try:
        with opener.open(asked, timeout=timeout) as answer:
            return Answer(answer.status, answer.headers, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.headers, error.read())
    except http.client.HTTPException as error:      # it ended in the middle of an answer
        raise ConnectionError(f"{method} {url}: {error!r}") from error


@dataclasses.dataclass
class Asked:
    """What a Server's handler gets."""

    method: str
    path: str
    headers: object
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


class HangUp(Exception):
    """Raised by a Server's handler: close the connection without an answer."""


class Server:
    """handler(Asked) -> (status, headers, body); a body that is not bytes is sent as JSON. tls: files of a certificate and
    its key. port 0: a free one."""

    def __init__(self, handler, tls=None, port=0):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def answer(self):
                length = int(self.headers.get("Content-Length") or 0)
                asked = Asked(self.command, self.path, self.headers, self.rfile.read(length))
                try:
                    status, headers, body = handler(asked)
                except HangUp:
                    self.close_connection = True
                    return
                if not isinstance(body, bytes):
                    body = json.dumps(body).encode()
                    headers = {"Content-Type": "application/json", **headers}
                if "Date" in headers:           # the handler's own clock
                    self.send_response_only(status)
                else:
                    self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                if self.close_connection:       # as the client wants it
                    self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

            def log_message(self, *_):
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 512    # of connections not yet accepted; beyond it the kernel drops them for seconds

            def handle_error(self, *_):
                pass  # a peer that hung up, mostly; what tests need to know is in what they recorded

        self._server = Quiet(("127.0.0.1", port), Handler)
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True,
                                                      do_handshake_on_connect=False)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()
