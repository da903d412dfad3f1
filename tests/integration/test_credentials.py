"""Who may do what, with the clients that will really ask: Alertmanager with a password, a token or a certificate over TLS, Grafana's
signature as an independent client makes it, service accounts of a real API server; and what happens to those who may not."""
import base64
import ctypes
import hashlib
import hmac
import json
import re
import socket
import statistics
import subprocess
import threading
import time
import urllib.parse

import pytest
import yaml

from harness import control_plane as kubernetes
from harness.certificates import Authority
from harness.daemon import environment
from harness.files import replace
from harness.http import request
from harness.notification import alert, notification
from harness.protection import BCRYPT, PASSWORD, USER
from harness.visitor import Visitor
from harness.wait import PATIENCE, eventually

OTHER_BCRYPT = "$2y$04$ABpxdbZS3aRuCeVrPHD29.h35Bh9KqToLEkb0Fty3MlWusHsMbV.G"      # the same password: $2y$ is $2b$


def rules_of(group):
    return {
        "targets": {"workers": {"node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 10,
                                "cooldown": {"up": "1h", "down": "1h"}}},
        "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 2}}],
    }


@pytest.fixture
def group(node_group):
    return node_group(size=4)


@pytest.fixture
def make(make_daemon, group, tmp_path):
    def make(config=None, web=None, tls=None, flags=(), **options):
        config = {"providers": {"mine": {"type": "http"}}, **(config or {})}
        if web is not None:
            (tmp_path / "web.yml").write_text(yaml.safe_dump(web))
            (tmp_path / "web.yml").chmod(0o600)
            flags = [*flags, f"--web.config.file={tmp_path / 'web.yml'}"]
        daemon = make_daemon(rules_of(group), config=config, flags=flags, start=False, **options)
        if tls is not None:
            daemon.url, daemon.tls = daemon.url.replace("http://127.0.0.1", "https://localhost"), tls
        return daemon.start()

    return make


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path / "authority")


def basic(user, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def busy():
    return notification(alert({"alertname": "Busy"}))


def make_hash(password, cost):
    library = ctypes.CDLL("libcrypt.so.1")
    library.crypt.restype = ctypes.c_char_p
    return library.crypt(password.encode(), f"$2b${cost}$abcdefghijklmnopqrstuu".encode()).decode()


def scaled_by(daemon, group, credential):
    eventually(lambda: group.size == 6)
    return daemon.wait_record("notification")["credential"] == credential


def test_alertmanager_with_a_password_over_tls(make, group, authority, make_alertmanager, tmp_path):
    certificate, key = authority.issue("server")
    daemon = make(web={"tls_server_config": {"cert_file": str(certificate), "key_file": str(key)},
                       "http_server_config": {"headers": {"Strict-Transport-Security": "max-age=31536000",
                                                          "X-Frame-Options": "deny"}},
                       "basic_auth_users": {USER: BCRYPT}}, tls=authority.context())
    (tmp_path / "password").write_text(PASSWORD)
    am = make_alertmanager(webhook=daemon.url + "/webhook", http_config={
        "basic_auth": {"username": USER, "password": PASSWORD}, "tls_config": {"ca_file": str(authority.certificate)}})
    am.fire(alertname="Busy")
    assert scaled_by(daemon, group, USER)
    answer = daemon.get("/metrics")
    assert answer.status == 401 and answer.headers["WWW-Authenticate"].startswith("Basic ")
    assert answer.headers["Strict-Transport-Security"] == "max-age=31536000" and answer.headers["X-Frame-Options"] == "deny"
    daemon.headers = basic(USER, PASSWORD)
    assert daemon.get("/metrics").ok
    text = daemon.log_file.read_text() + daemon.process.log_text()
    assert PASSWORD not in text and BCRYPT not in text


def test_alertmanager_with_a_token_and_one_with_a_certificate(make, group, authority, make_alertmanager, tmp_path):
    certificate, key = authority.issue("server")
    ours, ours_key = authority.issue("alertmanager-0", alternative_names="DNS:alertmanager-0.monitoring", usage="clientAuth")
    other, other_key = authority.issue("other", alternative_names="DNS:other.monitoring", usage="clientAuth")
    (tmp_path / "token").write_text("sesame")
    daemon = make({"receiver": {"tokens": [{"name": "by-token", "file": str(tmp_path / "token")}],
                                "certificates": [{"name": "by-certificate", "subject": "alertmanager-*.monitoring"}]}},
                  web={"tls_server_config": {"cert_file": str(certificate), "key_file": str(key),
                                             "client_auth_type": "VerifyClientCertIfGiven",
                                             "client_ca_file": str(authority.certificate)}}, tls=authority.context())
    am = make_alertmanager(webhook=daemon.url + "/webhook", http_config={"tls_config": {
        "ca_file": str(authority.certificate), "cert_file": str(ours), "key_file": str(ours_key)}})
    am.fire(alertname="Busy")
    assert scaled_by(daemon, group, "by-certificate")
    am = make_alertmanager(name="second", webhook=daemon.url + "/webhook", http_config={
        "authorization": {"credentials_file": str(tmp_path / "token")}, "tls_config": {"ca_file": str(authority.certificate)}})
    am.fire(alertname="Other")
    daemon.wait_record("notification", credential="by-token")
    # Our own commands, which trust the CA when they are told.
    env = {"ALERTSCALER_URL": daemon.url, "ALERTSCALER_TOKEN_FILE": str(tmp_path / "token")}
    run = {"capture_output": True, "text": True, "timeout": 60, "check": False}
    assert "certificate" in subprocess.run([daemon.binary, "status"], env=environment(**env), **run).stderr
    done = subprocess.run([daemon.binary, "status", f"--ca-file={authority.certificate}"], env=environment(**env), **run)
    assert done.returncode == 0 and "workers" in done.stdout, done.stderr
    # Verified, but nobody we know.
    daemon.tls.load_cert_chain(other, other_key)
    assert daemon.post("/webhook", busy()).status == 401
    # A wrong token is wrong, whatever certificate is beside it.
    daemon.tls.load_cert_chain(ours, ours_key)
    assert daemon.post("/webhook", busy()).ok
    daemon.headers = {"Authorization": "Bearer wrong"}
    assert daemon.post("/webhook", busy()).status == 401


OPEN = "no credentials are configured"


def test_a_receiver_that_is_open_to_everyone_is_warned_of(make):
    """At the start, and when a reload takes the last credential away."""
    daemon = make()
    said = lambda text: daemon.process.log_text().count(text)
    assert (said(OPEN), said("configuration loaded")) == (1, 0)
    (daemon.directory / "token").write_text("sesame")
    providers = {"providers": {"mine": {"type": "http"}}}
    for loads, config in enumerate(({"receiver": {"tokens": [{"name": "am", "file": str(daemon.directory / "token")}]}}, {}), 1):
        daemon.write_config(providers | config)
        daemon.reload()
        eventually(lambda: said("configuration loaded") == loads)
        assert said(OPEN) == loads


def test_what_a_credential_may_trigger_and_is_not_there_is_warned_of_at_a_reload(make):
    daemon = make()
    (daemon.directory / "token").write_text("sesame")
    daemon.write_config({"providers": {"mine": {"type": "http"}}, "receiver": {"tokens": [
        {"name": "am", "file": str(daemon.directory / "token"), "rules": ["bussy"], "targets": ["workers"]}]}})
    daemon.reload()
    eventually(lambda: "configuration loaded" in daemon.process.log_text())
    line, = [line for line in daemon.process.log_text().splitlines() if "no rule has a name" in line]
    assert "level=warn msg=configuration " in line and "did you mean `busy`?" in line


def test_the_web_configuration_is_read_again_when_it_changes(make, authority, tmp_path):
    file = tmp_path / "web.yml"
    daemon = make(web={"basic_auth_users": {USER: BCRYPT}})
    daemon.headers = basic(USER, PASSWORD)
    assert daemon.post("/webhook", busy()).ok

    replace(file, yaml.safe_dump({"basic_auth_users": {"another": OTHER_BCRYPT}}))
    eventually(lambda: daemon.post("/webhook", busy()).status == 401, what="the old user has ended")
    daemon.headers = basic("another", PASSWORD)
    # The incident came through the first user too; the new one may trigger the rule as well.
    assert daemon.notify(busy())["alerts"][0]["outcome"] in ("duplicate", "max_steps", "queued")
    replace(file, "basic_auth_user: {}\n")
    eventually(lambda: "did you mean `basic_auth_users`?" in daemon.process.log_text(), what="the error is logged")
    assert daemon.post("/webhook", busy()).ok
    # A signal reads it too: all or nothing.
    daemon.reload()
    record = eventually(lambda: [r for r in daemon.records("reload") if r["error"]])[-1]
    assert "web.yml:1:1" in record["error"]
    certificate, key = authority.issue("server")
    replace(file, yaml.safe_dump({"basic_auth_users": {"another": OTHER_BCRYPT},
                                  "tls_server_config": {"cert_file": str(certificate), "key_file": str(key)}}))

    def over_tls():
        daemon.url, daemon.tls = daemon.url.replace("http://127.0.0.1", "https://localhost"), authority.context()
        try:
            return daemon.post("/webhook", busy()).ok
        except OSError:
            return False

    eventually(over_tls, what="it speaks TLS")


def test_what_cannot_be_read_at_once_is_read_as_soon_as_it_can(make, authority, tmp_path):
    """A rotation by "write, move, then chmod", and a certificate that comes after the file that names it."""
    token, web = tmp_path / "token", tmp_path / "web.yml"
    token.write_text("first")
    daemon = make({"receiver": {"tokens": [{"name": "am", "file": str(token)}]}}, web={"basic_auth_users": {USER: BCRYPT}})
    said = lambda text: daemon.process.log_text().count(text)

    def status(headers):
        return request("GET", daemon.url + "/metrics", headers=headers, timeout=60).status

    first, second = {"Authorization": "Bearer first"}, {"Authorization": "Bearer second"}
    assert status(first) == 200 and status(basic(USER, PASSWORD)) == 200
    replace(token, "second", mode=0)
    replace(web, yaml.safe_dump({"basic_auth_users": {"another": OTHER_BCRYPT}}), mode=0)
    unusable, kept = "token file not usable, keeping the old token", "web configuration cannot be used, going on with the old one"
    eventually(lambda: status(first) == 200 and said(unusable) and said(kept), what="both are missed")
    time.sleep(2.5)     # some looks
    assert status(first) == 200 and status(second) == 401 and status(basic(USER, PASSWORD)) == 200
    token.chmod(0o600)
    eventually(lambda: status(first) == 401, what="the token is read at last")
    assert status(second) == 200
    web.chmod(0o600)
    eventually(lambda: said("web configuration loaded"), what="the users are read at last")
    assert status(basic("another", PASSWORD)) == 200
    assert status(first) == 401 and status(basic(USER, PASSWORD)) == 401
    assert (said(unusable), said(kept), said("token file read again"), said("web configuration loaded")) == (1, 1, 1, 1)
    # web.yml does not change any more: what it names comes.
    certificate, key = authority.issue("later")
    away = key.rename(key.with_suffix(".away"))
    replace(web, yaml.safe_dump({"tls_server_config": {"cert_file": str(certificate), "key_file": str(key)}}))
    eventually(lambda: said(kept) == 2, what="the key is missed")
    time.sleep(2.5)
    away.rename(key)
    eventually(lambda: said("web configuration loaded") == 2, what="it has come")
    assert said(kept) == 2
    daemon.url = daemon.url.replace("http://127.0.0.1", "https://localhost")
    assert request("GET", daemon.url + "/metrics", headers=second, tls=authority.context()).ok


@pytest.mark.parametrize("path", ["/-/healthy", "/-/ready"])
def test_health_is_answered_before_a_body_that_anybody_may_send(make, tmp_path, path):
    """Else whoever has no credential could fill the room for bodies of those who have one."""
    (tmp_path / "token").write_text("sesame")
    daemon = make({"receiver": {"tokens": [{"name": "am", "file": str(tmp_path / "token")}]}})
    host, port = daemon.url.removeprefix("http://").split(":")

    def ask(method, fields=""):
        """The answer to a head: not a byte of a body follows it."""
        peer.sendall(f"{method} {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n".encode())
        return peer.recv(65536).decode()

    for method, status, allow in (("GET", 200, False), ("POST", 405, True), ("PUT", 405, True), ("DELETE", 405, True)):
        for fields in ("Content-Length: 16777216\r\n", "Transfer-Encoding: chunked\r\n"):
            with socket.create_connection((host, int(port)), timeout=PATIENCE) as peer:
                answer = ask(method, fields)
            assert answer.startswith(f"HTTP/1.1 {status} ") and "Connection: close" in answer, (method, fields, answer)
            assert ("Allow: GET, HEAD\r\n" in answer) == allow
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as peer:     # who sends none keeps the connection
        for method in ("GET", "HEAD", "GET"):
            answer = ask(method)
            assert answer.startswith("HTTP/1.1 200 ") and "Connection: close" not in answer


def sign(secret, body, timestamp=None):
    text = (f"{timestamp}:".encode() if timestamp is not None else b"") + body
    return hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()


def test_grafanas_signature(make, group, tmp_path):
    (tmp_path / "plain").write_text("sesame\n")
    (tmp_path / "timed").write_text("open\n")
    daemon = make({"receiver": {"max_body": "64KiB", "hmac": [
        {"name": "grafana", "secret_file": str(tmp_path / "plain")},
        {"name": "timed", "secret_file": str(tmp_path / "timed"), "header": "X-Signature",
         "timestamp_header": "X-Signed-At", "max_skew": "1m", "rules": ["nothing"]}]}})
    body = json.dumps(busy()).encode()

    def post(**headers):
        daemon.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return daemon.post("/webhook", body)

    now = int(time.time())
    assert post().status == 401
    assert post(X_Grafana_Alerting_Signature=sign("wrong", body)).status == 401
    assert post(X_Grafana_Alerting_Signature="sha256=" + sign("sesame", body)).status == 401
    assert post(X_Grafana_Alerting_Signature=sign("sesame", body + b" ")).status == 401
    assert post(X_Signature=sign("open", body)).status == 401
    assert post(X_Signature=sign("open", body, now - 3600), X_Signed_At=str(now - 3600)).status == 401
    assert post(X_Signature=sign("open", body, now - 3600), X_Signed_At=str(now)).status == 401
    assert not daemon.records("notification")
    now = int(time.time())
    answer = post(X_Signature=sign("open", body, now), X_Signed_At=str(now))
    assert answer.json["alerts"][0]["outcome"] == "forbidden"
    assert post(X_Grafana_Alerting_Signature=sign("sesame", body)).json["alerts"][0]["outcome"] == "queued"
    eventually(lambda: group.size == 6)
    assert [r["credential"] for r in daemon.records("notification")] == ["timed", "grafana"]
    # It proves a notification and nothing else; and a large body is refused before it is read.
    daemon.headers = {"X-Grafana-Alerting-Signature": sign("sesame", b"")}
    assert daemon.get("/metrics").status == 401
    daemon.headers = {"X-Grafana-Alerting-Signature": sign("sesame", b" " * 70000)}
    assert daemon.post("/webhook", b" " * 70000).status == 413


def test_a_narrowed_reader_sees_no_other_name(make, tmp_path):
    """By `targets` or `rules`; in pauses and floors, in the API, on pages and in metrics. All others see all names."""
    tokens = [{"name": "the-boss", "permissions": ["notify", "read", "admin"]},
              {"name": "colleague", "permissions": ["read"]},
              {"name": "by-targets", "permissions": ["read", "admin"], "targets": ["workers"]},
              {"name": "by-rules", "permissions": ["notify", "read"], "rules": ["nothing"]}]
    for token in tokens:
        token["file"] = str(tmp_path / token["name"])
        (tmp_path / token["name"]).write_text(token["name"] * 3)
    daemon = make({"receiver": {"tokens": tokens}}, flags=["--web.enable-admin-api"])

    def become(name):
        daemon.headers = {"Authorization": f"Bearer {name * 3}"}

    become("the-boss")
    assert daemon.post("/api/v1/targets/workers/floor", {"replicas": 2, "for": "1h", "reason": "a launch"}).ok
    assert daemon.post("/api/v1/targets/workers/pause", {"reason": "by hand"}).ok
    daemon.notify(busy())
    decision = daemon.wait_record("decision")["id"]
    paths = ["/api/v1/status", "/api/v1/targets", "/api/v1/targets/workers", "/api/v1/approvals", "/api/v1/incidents",
             "/api/v1/decisions", f"/api/v1/decisions/{decision}", "/", "/targets/workers", f"/decisions/{decision}", "/metrics"]

    def read_all(name):
        become(name)
        return {path: daemon.get(path).body.decode() for path in paths}

    for name in ("the-boss", "colleague"):
        assert '"who":"the-boss"' in read_all(name)["/api/v1/targets"]
        assert "the-boss" in read_all(name)["/targets/workers"]
    for name in ("by-targets", "by-rules"):
        found = read_all(name)
        assert not [path for path, text in found.items() if "the-boss" in text]
        assert '"who":"another credential"' in found["/api/v1/targets/workers"]
        assert '"another credential"' in found[f"/api/v1/decisions/{decision}"]
    assert "another credential" in read_all("by-targets")["/targets/workers"]
    # The debug endpoint: the state as it is stored, for the admin API.
    become("the-boss")
    state = daemon.get("/api/v1/debug/targets/workers").json["data"]
    assert state["floor"]["who"] == state["pause"]["who"] == "the-boss"
    assert (state["floor"]["size"], state["pause"]["reason"]) == (2, "by hand")
    assert state == daemon.get(f"/api/v1/debug/targets/{urllib.parse.quote(state['id'], safe='')}").json["data"]
    assert daemon.get("/api/v1/debug/targets/none").status == 404
    become("colleague")
    assert daemon.get("/api/v1/debug/targets/workers").status == 403
    become("by-targets")
    assert daemon.get("/api/v1/debug/targets/workers").json["data"] == {
        **state, "floor": {**state["floor"], "who": "another credential"},
        "pause": {**state["pause"], "who": "another credential"}}
    assert daemon.post("/api/v1/targets/workers/pause", {"reason": "mine"}).ok
    assert '"who":"by-targets"' in read_all("by-targets")["/api/v1/targets"]


@pytest.mark.seconds(120)
def test_what_a_replayed_signature_can_do(make, group, tmp_path):
    """docs/security.md: without the time any time, with it within max_skew; within stale_window it changes nothing."""
    (tmp_path / "secret").write_text("sesame")
    (tmp_path / "timed").write_text("open")
    daemon = make({"receiver": {"stale_window": "6s", "hmac": [
        {"name": "grafana", "secret_file": str(tmp_path / "secret")},
        {"name": "timed", "secret_file": str(tmp_path / "timed"), "header": "X-Signature", "timestamp_header": "X-Signed-At",
         "max_skew": "5s"}]}})

    def capture(name, status, secret, now=None):
        body = json.dumps(notification(alert({"alertname": "Busy", "name": name}, status))).encode()
        headers = {"X-Grafana-Alerting-Signature": sign(secret, body)}
        if now is not None:
            headers = {"X-Signature": sign(secret, body, now), "X-Signed-At": str(now)}
        return body, {"Content-Type": "application/json", **headers}

    def post(captured):
        answer = request("POST", daemon.url + "/webhook", captured[0], headers=captured[1])
        return answer.json["alerts"][0]["outcome"] if answer.ok else answer.status

    firing, resolved = capture("A", "firing", "sesame"), capture("A", "resolved", "sesame")
    timed, timed_end = (capture("B", status, "open", int(time.time())) for status in ("firing", "resolved"))
    first = [post(firing), post(timed)]
    ends = [post(resolved), post(timed_end)]
    ended = time.monotonic()
    assert first == ["queued", "queued"] and "stale" not in ends and 401 not in ends
    assert [post(firing), post(timed)] == ["stale", "stale"], "soon after its end"
    eventually(lambda: time.monotonic() - ended > 6.5, what="stale_window is over")
    assert post(timed) == 401, "its time is over before"
    assert post(firing) == "queued", "without a time it opens the incident again"
    eventually(lambda: len(daemon.records("incident", event="opened")) == 3, what="the third incident")
    (tmp_path / "secret").write_text("changed")
    eventually(lambda: post(firing) == 401, what="a new secret ends all old signatures")



def test_what_basic_users_may_do(make, tmp_path):
    daemon = make({"receiver": {"users": [{"name": USER, "permissions": ["read"]}]}},
                  web={"basic_auth_users": {USER: BCRYPT, "all": OTHER_BCRYPT}})
    daemon.headers = basic(USER, PASSWORD)
    assert daemon.get("/metrics").ok
    answer = daemon.post("/webhook", busy())
    assert answer.status == 403 and f"`{USER}` lacks the permission `notify`" in answer.text
    daemon.headers = basic("all", PASSWORD)
    assert daemon.get("/api/v1/status").ok and daemon.post("/webhook", busy()).ok
    for wrong in (basic(USER, "wrong"), basic("nobody", PASSWORD), basic(USER, ""), basic("", ""),
                  {"Authorization": "Basic !!!!"}, {"Authorization": "Basic"}):
        daemon.headers = wrong
        assert daemon.get("/metrics").status == 401, wrong
    daemon.headers = {}
    answer = daemon.get("/metrics")
    assert answer.status == 401 and "user with password" in answer.text


def test_many_wrong_passwords_lock_nobody_out(make):
    """From the same address even: what was right before is remembered, and goes on being served."""
    daemon = make(web={"basic_auth_users": {USER: make_hash(PASSWORD, cost=11)}})
    daemon.headers = basic(USER, PASSWORD)
    eventually(lambda: daemon.get("/metrics").ok, what="the right password is right")
    statuses, checks, ours = [], [], []     # checks, ours: when the answer came, and after how long

    def note(times, begun):
        times.append((time.monotonic(), time.monotonic() - begun))

    def attack(number):
        for i in range(20):
            asked = time.monotonic()
            status = request("GET", daemon.url + "/metrics", headers=basic(USER, f"wrong-{number}-{i}"), timeout=60).status
            statuses.append(status)
            if status == 401:
                note(checks, asked)

    attacked = time.monotonic()
    threads = [threading.Thread(target=attack, args=[n]) for n in range(8)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        begun = time.monotonic()
        assert daemon.get("/-/healthy").ok and daemon.post("/webhook", busy()).ok
        note(ours, begun)
        time.sleep(0.02)
    assert set(statuses) == {401, 503} and statuses.count(401) < 60, statuses
    # While hashes are computed nobody else waits for them.
    meanwhile = [seconds for end, seconds in ours if end < checks[-1][0]]
    assert meanwhile and statistics.median(meanwhile) < statistics.median(seconds for _, seconds in checks)
    most = 1 + int((time.monotonic() - attacked) / 60)      # one a minute
    assert 1 <= len(daemon.records("denied")) <= most and 1 <= daemon.process.log_text().count("request denied") <= most
    # How many there were in all is known in the end, although no other has come.
    daemon.stop()
    assert sum(record["count"] for record in daemon.records("denied")) == len(statuses)
    assert sum(int(count) for count in re.findall(r'msg="request denied" .*count=(\d+)', daemon.process.log_text())) == len(statuses)


def answered(ask):
    """The answer, once the API server has said in time whose token it is: until then it is a 503."""
    return eventually(lambda: (answer := ask()).status != 503 and answer, what="the API server says whose token it is")


def test_service_accounts_of_a_cluster(make, group, control_plane, namespace, make_alertmanager, tmp_path):
    admin = control_plane.admin
    for account in ("alertscaler", "alertmanager", "stranger"):
        admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": namespace}})
    kubeconfig = control_plane.write_kubeconfig("reviewer", token=control_plane.account_token(namespace, "alertscaler"))
    daemon = make({
        "clusters": {"default": {"kubeconfig": str(kubeconfig)}},
        "receiver": {"token_review": {"cluster": "default", "allow": [
            {"name": "in-cluster", "user": f"system:serviceaccount:{namespace}:alertmanager"},
            {"name": "masters", "group": "system:masters", "permissions": ["read", "admin"]}]}}}, flags=["--web.enable-admin-api"])
    token = control_plane.account_token(namespace, "alertmanager")
    daemon.headers = {"Authorization": f"Bearer {token}"}
    # Without the right to ask nobody gets in, and it is said what is missing.
    answer = daemon.post("/webhook", busy())
    assert answer.status == 503 and answer.headers["Retry-After"] and "API server" in answer.text
    assert "may not create tokenreviews" in daemon.process.log_text()
    control_plane.grant(namespace, "alertscaler", [
        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]}], cluster_wide=True)
    eventually(lambda: daemon.post("/webhook", notification(alert({"alertname": "Other"}))).ok, what="its account may ask")
    (tmp_path / "account.token").write_text(token)
    am = make_alertmanager(webhook=daemon.url + "/webhook", http_config={
        "authorization": {"credentials_file": str(tmp_path / "account.token")}})
    am.fire(alertname="Busy")
    eventually(lambda: group.size == 6)
    assert {r["credential"] for r in daemon.records("notification")} == {"in-cluster"}
    # A group may read, and no more; a stranger may nothing; a token of nobody is none.
    daemon.headers = {"Authorization": "Bearer " + kubernetes.ADMIN_TOKEN}
    assert answered(lambda: daemon.get("/api/v1/status")).ok
    assert answered(lambda: daemon.post("/webhook", busy())).status == 403
    daemon.headers = {"Authorization": f"Bearer {control_plane.account_token(namespace, 'stranger')}"}
    answer = answered(lambda: daemon.post("/webhook", busy()))
    assert answer.status == 401 and "not among receiver.token_review.allow" in answer.text
    daemon.headers = {"Authorization": "Bearer nobodys"}
    assert answered(lambda: daemon.get("/metrics")).status == 401
    assert token not in daemon.log_file.read_text() + daemon.process.log_text()
    # Whoever is let in by a review may let the reviewer go.
    daemon.headers = {"Authorization": "Bearer " + kubernetes.ADMIN_TOKEN}
    time.sleep(10)      # what is remembered of it is forgotten: the review's answer itself reloads
    daemon.comment_config()
    assert answered(lambda: daemon.post("/-/reload", b"")).text == "reloaded\n" and daemon.process.running
    # A token that has ended is refused once what is remembered of it has.
    admin.delete(f"/api/v1/namespaces/{namespace}/serviceaccounts/alertmanager")
    daemon.headers = {"Authorization": f"Bearer {token}"}
    eventually(lambda: daemon.post("/webhook", busy()).status == 401, what="the account is gone")


def test_a_service_account_logs_in(make, control_plane, namespace):
    """Its token is asked about again at each request of the session, so that it ends with the account."""
    admin = control_plane.admin
    for account in ("alertscaler", "operator"):
        admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": namespace}})
    kubeconfig = control_plane.write_kubeconfig("reviewer", token=control_plane.account_token(namespace, "alertscaler"))
    control_plane.grant(namespace, "alertscaler", [
        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]}], cluster_wide=True)
    clusters = {"clusters": {"default": {"kubeconfig": str(kubeconfig)}}}
    allow = [{"name": "people", "user": f"system:serviceaccount:{namespace}:operator", "permissions": ["read", "admin"]}]
    daemon = make({**clusters, "receiver": {"token_review": {"cluster": "default", "allow": allow}}}, flags=["--web.enable-admin-api"])
    token = control_plane.account_token(namespace, "operator")
    visitor = Visitor(daemon)
    assert eventually(lambda: visitor.log_in(token=token).status == 303, what="its account may ask")
    assert visitor.order("/targets/workers", "pause", reason="test") == [("good", "workers is paused until it is resumed.")]
    assert daemon.wait_record("command")["who"] == "people"
    for token_of_another in ("nobodys", control_plane.account_token(namespace, "alertscaler")):
        assert answered(lambda: Visitor(daemon).log_in(token=token_of_another)).status == 401
    admin.delete(f"/api/v1/namespaces/{namespace}/serviceaccounts/operator")
    eventually(lambda: visitor.get("/").headers.get("Location") == "/login?to=/", what="the account is gone")
    other = Visitor(daemon)
    admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "operator", "namespace": namespace}})
    again = control_plane.account_token(namespace, "operator")
    assert answered(lambda: other.log_in(token=again)).status == 303
    daemon.write_config({"providers": {"mine": {"type": "http"}}, **clusters, "receiver": {"token_review": {
        "cluster": "default", "allow": [{"name": "others", "user": "somebody"}]}}})
    daemon.reload()
    eventually(lambda: other.get("/").status == 303, what="it is no longer allowed")
    assert token not in daemon.log_file.read_text() + daemon.process.log_text()


# An alert is its labels, whatever its sender says that its fingerprint is

@pytest.fixture
def teams(make_daemon, node_group, tmp_path):
    """Everybody may send; `team-a` may trigger `a-*` alone. send(credential, alert, ...): the outcomes."""
    groups = {name: node_group(size=15) for name in "ab"}
    targets = {name: {"node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 20, "cooldown": {"up": "1h", "down": "1h"}}
               for name, group in groups.items()}
    rules = {"targets": targets, "rules": [
        {"name": "a-any", "match": ['team="a"'], "target": "a", "scale_up": {"by": 1}},
        {"name": "b-idle", "match": ['alertname="Idle"'], "target": "b", "scale_to": 2},
        {"name": "b-busy", "match": ['alertname="Busy"'], "target": "b", "scale_up": {"by": 2}}]}
    tokens = []
    for name, access in {"everybody": {"permissions": ["notify", "read"]}, "team-a": {"rules": ["a-*"]}}.items():
        (tmp_path / name).write_text(f"secret-of-{name}")
        tokens.append({"name": name, "file": str(tmp_path / name), **access})
    daemon = make_daemon(rules, {"providers": {"mine": {"type": "http"}}, "receiver": {"tokens": tokens}})

    def send(credential, *alerts):
        daemon.headers = {"Authorization": f"Bearer secret-of-{credential}"}
        return [one["outcome"] for one in daemon.notify(notification(*alerts))["alerts"]]

    return daemon, groups, send


def test_an_alert_under_anothers_fingerprint_triggers_nothing_beyond_its_sender(teams):
    """Repeats of the other alert are none of this one, so nobody who may trigger `b-idle` has told of it."""
    daemon, groups, send = teams
    theirs = alert({"alertname": "Busy"})
    assert send("everybody", theirs) == ["queued"]
    eventually(lambda: groups["b"].size == 17)
    assert send("everybody", {**theirs, "status": "resolved"}) == ["queued"]
    disguised = {**alert({"alertname": "Idle", "team": "a"}), "fingerprint": theirs["fingerprint"]}
    assert send("team-a", disguised) == ["queued"]
    eventually(lambda: groups["a"].size == 16)
    again = alert({"alertname": "Busy"})
    assert send("everybody", again) == ["queued"]
    assert send("everybody", again) == ["duplicate"]
    daemon.restart()
    assert send("everybody", again) == ["duplicate"]
    time.sleep(1)
    assert groups["b"].size == 17
    assert not [r for r in daemon.records("decision", target_name="b") if r["output"]["rule"] == "b-idle"]
    assert [r["alerts"][0]["fingerprint"] for r in daemon.records("notification", credential="team-a")] == [theirs["fingerprint"]]


def test_a_fingerprint_that_somebody_else_has_taken_keeps_no_alert_out(teams):
    daemon, groups, send = teams
    real = alert({"alertname": "Busy"})
    assert send("team-a", {**alert({"alertname": "Other", "team": "a"}), "fingerprint": real["fingerprint"]}) == ["queued"]
    assert send("everybody", real) == ["queued"]
    eventually(lambda: groups["b"].size == 17)
    digests = {r["digest"] for r in daemon.records("incident", event="opened")}
    assert len(digests) == 2 and hashlib.sha256(b"alertname\0Busy\0").hexdigest() in digests


def test_two_alerts_under_one_fingerprint_in_one_body_are_both_taken(teams):
    daemon, groups, send = teams
    first = alert({"alertname": "Busy"})
    second = {**alert({"alertname": "Other", "team": "a"}), "fingerprint": first["fingerprint"]}
    assert send("everybody", first, second) == ["queued", "queued"]
    eventually(lambda: groups["a"].size == 16 and groups["b"].size == 17)
    assert len(daemon.get("/api/v1/incidents").json["data"]) == 2
