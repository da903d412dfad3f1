"""Requests that a page of another site makes a browser send. The browser adds what it has by itself: a password it knows, or
its certificate. Such a request changes nothing at any path; programs, which send neither header, are served."""
import base64
import pathlib
import re
import socket

import pytest
import yaml

from harness.certificates import Authority
from harness.http import request
from harness.notification import alert, notification
from harness.protection import BCRYPT, PASSWORD
from harness.wait import eventually

ROUTES = pathlib.Path(__file__).parents[2] / "src/ui/route.c"
ROW = re.compile(r'^ *\{"(?P<path>[/*][^"]*)", &(?P<methods>\w+), "?(?P<handler>\w+)"?, (?P<permission>\w+), ', re.MULTILINE)
METHODS = ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY", "post")
EVIL = "https://evil.example"
REFUSED = "sent this request"
FOREIGN = (
    {"Origin": EVIL, "Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
    {"Origin": EVIL},
    {"Origin": "null"},
    {"Origin": EVIL, "Sec-Fetch-Site": "same-origin"},
)


@pytest.fixture
def make(make_daemon, node_group, tmp_path):
    group = node_group(size=4)
    rules = {"targets": {"workers": {"node_group": {"provider": "mine", "url": group.url}, "max": 10}},
             "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 2}}]}

    def make(receiver, web, tls=None, external=None):
        (tmp_path / "web.yml").write_text(yaml.safe_dump(web))
        (tmp_path / "web.yml").chmod(0o600)
        flags = ["--web.enable-admin-api", f"--web.config.file={tmp_path / 'web.yml'}"]
        if external:
            flags.append(f"--web.external-url={external}")
        daemon = make_daemon(rules, {"providers": {"mine": {"type": "http"}}, "receiver": receiver}, flags=flags, start=False)
        daemon.group = group
        if tls:
            daemon.url, daemon.tls = daemon.url.replace("http://127.0.0.1", "https://localhost"), tls
        return daemon.start()

    return make


@pytest.fixture
def with_password(make):
    daemon = make({"users": [{"name": "alice", "permissions": ["notify", "read", "admin"]}]}, {"basic_auth_users": {"alice": BCRYPT}},
                  external="https://ops.example.org")
    daemon.headers = {"Authorization": "Basic " + base64.b64encode(f"alice:{PASSWORD}".encode()).decode()}
    return daemon


def with_certificate(make, tmp_path):
    authority = Authority(tmp_path / "certificates")
    certificate, key = authority.issue("server")
    daemon = make({"certificates": [{"name": "alice", "subject": "alice", "permissions": ["notify", "read", "admin"]}]},
                  {"tls_server_config": {"cert_file": str(certificate), "key_file": str(key),
                                         "client_auth_type": "VerifyClientCertIfGiven", "client_ca_file": str(authority.certificate)}},
                  tls=with_client(authority))
    return daemon


def with_client(authority):
    context = authority.context()
    context.load_cert_chain(*authority.issue("alice", alternative_names=None, usage="clientAuth"))
    return context


def busy():
    return notification(alert({"alertname": "Busy"}))


CHANGES = (
    ("POST", "/webhook", busy),
    ("PUT", "/webhook", busy),
    ("POST", "/api/v1/targets/workers/scale", lambda: {"replicas": 7, "reason": "evil"}),
    ("POST", "/api/v1/pause", lambda: {"reason": "evil"}),
    ("POST", "/-/reload", dict),
)


def send(daemon, method, path, body, headers):
    return request(method, daemon.url + path, body, {**daemon.headers, **headers}, tls=daemon.tls)


def expect_no_page_changes_anything(daemon):
    eventually(lambda: daemon.target("workers")["replicas"] == 4)
    reloads = len(daemon.records("reload"))
    for method, path, body in CHANGES:
        for headers in FOREIGN:
            answer = send(daemon, method, path, body(), {"Content-Type": "text/plain", **headers})
            assert (answer.status, REFUSED in answer.text) == (403, True), (method, path, headers, answer.text)
    assert daemon.group.size == 4 and daemon.target("workers")["paused"] is None
    assert not daemon.records("command") and not daemon.notifications() and len(daemon.records("reload")) == reloads
    assert daemon.wait_record("denied", status=403)["error"].startswith("a page of")
    # Programs send neither header, and any content type.
    for method, path, body in CHANGES:
        answer = send(daemon, method, path, body(), {"Content-Type": "text/plain"})
        assert answer.ok, (method, path, answer.text)
    # Reading is as it was: a browser shows the answer to no other site.
    for headers in FOREIGN:
        assert send(daemon, "GET", "/api/v1/targets", None, headers).ok


def test_no_page_of_another_site_uses_a_password_that_the_browser_knows(with_password):
    expect_no_page_changes_anything(with_password)


def test_no_page_of_another_site_uses_the_certificate_of_the_browser(make, tmp_path):
    expect_no_page_changes_anything(with_certificate(make, tmp_path))


def test_pages_of_alertscaler_may_send(with_password):
    """By the address of --web.external-url, and by the address of this machine that the browser sees."""
    daemon = with_password
    for origin in ("https://ops.example.org", daemon.url):
        for site in ({}, {"Sec-Fetch-Site": "same-origin"}):
            answer = send(daemon, "POST", "/-/reload", {}, {"Origin": origin, **site})
            assert answer.ok, (origin, site, answer.text)
    # Another name that leads here: DNS rebinding.
    host = daemon.url.replace("http://127.0.0.1", "evil.example")
    assert send(daemon, "POST", "/-/reload", {}, {"Host": host, "Origin": f"http://{host}"}).status == 403


def ask(address, method, path, headers):
    """The status of the answer, and its body."""
    host, port = address.split(":")
    lines = [f"{method} {path} HTTP/1.1", "Host: a", "Connection: close", *(f"{name}: {value}" for name, value in headers.items())]
    with socket.create_connection((host, int(port)), timeout=60) as peer:
        peer.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
        said = b""
        while piece := peer.recv(65536):
            said += piece
    return int(said.split()[1]), said.decode()


def test_every_row_of_the_table_refuses_pages_of_other_sites(with_password):
    """A row that is added to the table is tried too."""
    text = ROUTES.read_text()
    rows = [row.groupdict() for row in ROW.finditer(text)]
    assert len(rows) == text.count('", &') >= 40, "the pattern does not find all rows of the table"
    for row in rows:
        path = row["path"].replace("*", "x") if row["path"] != "*" else "/anything"
        for method in METHODS:
            for headers in FOREIGN:
                status, said = ask(with_password.address, method, path, {**with_password.headers, "Content-Length": "0", **headers})
                assert status == 403 and REFUSED in said, (method, path, headers, said)
    assert not with_password.records("command") and not with_password.records("reload")
