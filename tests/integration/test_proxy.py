"""People who sign on at a proxy in front of alertscaler (receiver.proxy): what they may do, and what a client with forged headers
gets. The proxy is played here."""
import socket

import pytest
import yaml

from harness.certificates import Authority
from harness.http import request
from harness.notification import alert, notification
from harness.visitor import Visitor
from harness.wait import eventually

PERMISSIONS = {"sre": ["read", "admin"], "dev": ["read"]}
ADA = {"X-Forwarded-User": "ada", "X-Forwarded-Groups": "dev,sre"}
BOB = {"X-Forwarded-User": "bob", "X-Forwarded-Groups": "dev"}
REASON = {"reason": "the big move"}
IGNORED = "alertscaler_proxy_headers_ignored_total"
LINE = "headers of receiver.proxy ignored"


class Person(Visitor):
    """A browser behind the proxy, which adds the headers."""

    def __init__(self, daemon, reported):
        super().__init__(daemon)
        self.reported = reported

    def ask(self, method, path, body=None, headers=None):
        return super().ask(method, path, body, {**self.reported, **(headers or {})})


@pytest.fixture
def make(make_daemon, node_group, tmp_path):
    group = node_group(size=4)
    rules = {
        "targets": {"workers": {"node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 10}},
        "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 2}}],
    }
    (tmp_path / "token").write_text("sesame")

    def make(proxy, tls=None, web=None, flags=("--web.enable-admin-api",)):
        token = {"name": "all", "file": str(tmp_path / "token"), "permissions": ["notify", "read", "admin"]}
        config = {"providers": {"mine": {"type": "http"}},
                  "receiver": {"tokens": [token], "proxy": {"permissions": PERMISSIONS, **proxy}}}
        if web:
            (tmp_path / "web.yml").write_text(yaml.safe_dump(web))
            flags = [*flags, f"--web.config.file={tmp_path / 'web.yml'}"]
        daemon = make_daemon(rules, config=config, flags=flags, start=False)
        daemon.headers = {"Authorization": "Bearer sesame"}
        daemon.group = group
        if tls:
            daemon.url, daemon.tls = daemon.url.replace("http://127.0.0.1", "https://localhost"), tls
        daemon.start()
        eventually(lambda: daemon.target("workers")["replicas"] == 4)
        return daemon

    return make


def ask(daemon, path, headers, method="GET", body=None):
    return request(method, daemon.url + path, body, headers, tls=daemon.tls)


def raw(daemon, *lines):
    """The status of a request with these header lines, which urllib would put together."""
    host, port = daemon.url.rpartition("//")[2].split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall("\r\n".join(("GET /api/v1/targets HTTP/1.1", f"Host: {host}", "Connection: close", *lines, "", "")).encode())
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return int(answer.split()[1]), answer.decode("utf-8", "replace")


def test_a_person_reads_and_uses_forms_and_no_api(make):
    daemon = make({})
    ada, bob = Person(daemon, ADA), Person(daemon, BOB)
    page = ada.get("/").text
    assert "workers" in page and ">proxy:ada<" in page and "Log in" not in page
    assert ">proxy:a&lt;b&gt;<" in Person(daemon, {**ADA, "X-Forwarded-User": "a<b>"}).get("/").text
    assert ask(daemon, "/api/v1/targets", BOB).ok and ask(daemon, "/metrics", BOB).ok
    assert ada.order("/targets/workers", "scale", replicas="6", **REASON) == [("good", "workers is being set to the size 6.")]
    eventually(lambda: daemon.group.size == 6)
    record = daemon.wait_record("command")
    assert (record["who"], record["command"], record["outcome"]) == ("proxy:ada", "scale", "done")
    # a person without `admin` sees no form, and the form of another is not theirs
    assert bob.forms("/targets/workers") == {}
    path, hidden = ada.forms("/targets/workers")["pause"]
    assert bob.submit(path, hidden | REASON).status == 403
    assert Person(daemon, {**ADA, "X-Forwarded-User": "eve"}).submit(path, hidden | REASON).status == 403
    assert ada.submit(path, hidden | REASON, {"Origin": "https://evil.example"}).status == 403
    # never notifications, reloads and commands of the API
    for path, body in (("/webhook", notification(alert({"alertname": "Busy"}))), ("/-/reload", {}),
                       ("/api/v1/targets/workers/pause", REASON), ("/api/v1/pause", REASON)):
        answer = ask(daemon, path, ADA, "POST", body)
        assert answer.status == 401, (path, answer.text)
        assert "WWW-Authenticate" in answer.headers
    assert ask(daemon, "/api/v1/debug/targets/workers", ADA).status == 401
    assert daemon.notify(notification(alert({"alertname": "Busy"})))["alerts"][0]["outcome"] == "queued"
    assert daemon.metrics().value(IGNORED) == 0


def test_a_person_in_no_group_may_nothing(make):
    daemon = make({})
    for groups in ({}, {"X-Forwarded-Groups": "ops, sre2"}):
        answer = ask(daemon, "/api/v1/targets", {"X-Forwarded-User": "eve", **groups})
        assert answer.status == 403 and "`proxy:eve` is in no group with the permission `read`" in answer.text
    assert ask(daemon, "/api/v1/targets", {"X-Forwarded-Groups": "sre"}).status == 401
    assert ask(daemon, "/api/v1/targets", {}).status == 401


def test_forms_need_the_admin_api(make):
    daemon = make({}, flags=())
    assert Person(daemon, ADA).forms("/targets/workers") == {}
    assert Person(daemon, ADA).submit("/targets/workers/pause", REASON).status == 403


def test_a_repeated_header_is_refused(make):
    daemon = make({})
    user, groups = "X-Forwarded-User: ada", "X-Forwarded-Groups: sre"
    assert raw(daemon, user, groups)[0] == 200
    for lines in ((user, groups, user), (user, groups, "x-forwarded-user: eve"), (user, groups, groups), (groups, user, "X-FORWARDED-GROUPS: x"),
                  ("X-Forwarded-User: eve, ada", groups)):
        status, text = raw(daemon, *lines)
        assert status == 400 and "X-Forwarded-" in text, lines
    assert raw(daemon, f"X-Forwarded-User: {'a' * 129}", groups)[0] == 400
    assert raw(daemon, "X-Forwarded-User: \x1b[2Jada", groups)[0] == 400


def test_forged_headers_are_ignored_counted_and_logged_once(make):
    daemon = make({"addresses": ["192.0.2.0/24"]})
    for _ in range(5):
        assert ask(daemon, "/api/v1/targets", ADA).status == 401
        assert raw(daemon, "X-Forwarded-User: ada", "X-Forwarded-User: eve")[0] == 401
    assert Person(daemon, ADA).submit("/targets/workers/pause", REASON).headers["Location"].startswith("/login")
    # with a credential of its own the client is itself
    ask(daemon, "/api/v1/targets/workers/pause", {**ADA, **daemon.headers}, "POST", REASON)
    assert daemon.wait_record("command")["who"] == "all"
    assert daemon.metrics().value(IGNORED) == 12
    text = eventually(daemon.process.log_text)
    assert text.count(LINE) == 1 and "header=X-Forwarded-User" in text


def test_a_client_certificate_proves_the_proxy(make, tmp_path):
    authority = Authority(tmp_path / "authority")
    certificate, key = authority.issue("server")
    web = {"tls_server_config": {"cert_file": str(certificate), "key_file": str(key), "client_auth_type": "VerifyClientCertIfGiven",
                                 "client_ca_file": str(authority.certificate)}}

    def client(name):
        context = authority.context()
        context.load_cert_chain(*authority.issue(name, alternative_names=f"DNS:{name}", usage="clientAuth"))
        return context

    daemon = make({"certificate": "oauth2-proxy.*"}, tls=authority.context(), web=web)
    assert ask(daemon, "/api/v1/targets", ADA).status == 401         # from this machine, without the certificate
    daemon.tls = client("web.auth")
    assert ask(daemon, "/api/v1/targets", ADA).status == 401
    assert daemon.metrics().value(IGNORED) == 2
    daemon.tls = client("oauth2-proxy.auth")
    assert ask(daemon, "/api/v1/targets", ADA).ok
    assert ask(daemon, "/api/v1/targets", {}).status == 401          # nobody signed on
