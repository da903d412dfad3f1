"""docs/sign-on.md with the real oauth2-proxy: its two configurations, with an identity provider that is played here."""
import base64
import hashlib
import json
import pathlib
import re
import subprocess
import time
import urllib.parse

import pytest
import yaml

from harness import peers
from harness.daemon import environment
from harness.http import Server, request
from harness.notification import alert, notification
from harness.ports import free_port
from harness.process import Process
from harness.slow_cluster import SlowCluster
from harness.visitor import Visitor
from harness.wait import eventually

from test_proxy import raw

PAGE = (pathlib.Path(__file__).parents[2] / "docs/sign-on.md").read_text()
HOST = "alertscaler.example.com"
REASON = {"reason": "a test"}
FORGED = {"X-Forwarded-Email": "ada@example.com", "X-Forwarded-Groups": "sre", "X-Forwarded-User": "ada"}
USED = ("X-Forwarded-Email", "X-Forwarded-Groups")      # of the configuration
GROUPS = {"ada@example.com": ["dev", "sre"], "bob@example.com": ["dev"], "eve@elsewhere.example": ["sre"]}


def encode(data):
    data = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Provider:
    """OpenID Connect as far as oauth2-proxy uses it. `person` signs on."""

    def __init__(self, folder):
        self.key = folder / "provider.key"
        subprocess.run(["openssl", "genrsa", "-out", self.key, "2048"], check=True, capture_output=True)
        modulus = subprocess.run(["openssl", "rsa", "-in", self.key, "-noout", "-modulus"], check=True, capture_output=True, text=True).stdout
        self.modulus = bytes.fromhex(modulus.strip().partition("=")[2])
        self.person, self.nonce, self.challenge = "ada@example.com", None, None
        self.server = Server(self.answer)
        self.url = self.server.url

    def answer(self, asked):
        path, _, query = asked.path.partition("?")
        if path == "/.well-known/openid-configuration":
            return 200, {}, {"issuer": self.url, "authorization_endpoint": f"{self.url}/authorize", "token_endpoint": f"{self.url}/token",
                             "jwks_uri": f"{self.url}/keys", "response_types_supported": ["code"], "subject_types_supported": ["public"],
                             "id_token_signing_alg_values_supported": ["RS256"]}
        if path == "/keys":
            return 200, {}, {"keys": [{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "one", "n": encode(self.modulus), "e": "AQAB"}]}
        if path == "/authorize":
            query = dict(urllib.parse.parse_qsl(query))
            self.nonce, self.challenge = query["nonce"], query["code_challenge"]
            return 302, {"Location": f"{query['redirect_uri']}?" + urllib.parse.urlencode({"code": "c0de", "state": query["state"]})}, b""
        if path == "/token":
            sent = dict(urllib.parse.parse_qsl(asked.body.decode()))
            assert encode(hashlib.sha256(sent["code_verifier"].encode()).digest()) == self.challenge and sent["code"] == "c0de"
            return 200, {}, {"access_token": "a", "token_type": "Bearer", "expires_in": 3600, "id_token": self.make_token()}
        return 404, {}, b""

    def make_token(self):
        claims = {"iss": self.url, "aud": "alertscaler", "sub": "4711", "email": self.person, "email_verified": True,
                  "groups": GROUPS[self.person], "iat": int(time.time()), "exp": int(time.time()) + 3600, "nonce": self.nonce}
        signed = f"{encode({'alg': 'RS256', 'kid': 'one', 'typ': 'JWT'})}.{encode(claims)}"
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.key], input=signed.encode(), check=True, capture_output=True).stdout
        return f"{signed}.{encode(signature)}"

    def stop(self):
        self.server.stop()


def block(language):
    return re.search(rf"```{language}\n(.*?)```", PAGE, re.S)[1]


@pytest.fixture
def provider(started, tmp_path):
    return started(Provider(tmp_path))


@pytest.fixture
def daemon(make_daemon, started, tmp_path):
    """With the configuration of the page: only its files are elsewhere."""
    receiver = yaml.safe_load(block("yaml"))["receiver"]
    for token in receiver["tokens"]:
        token["file"] = str(tmp_path / token["name"])
        (tmp_path / token["name"]).write_text(f"secret of {token['name']}")
    cluster = started(SlowCluster())
    workload = {"kind": "Deployment", "namespace": "shop", "name": "web"}
    daemon = make_daemon({"targets": {"web": {"kubernetes": workload, "min": 1, "max": 10}},
                          "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "web", "scale_up": {"by": 2}}]},
                         {"clusters": {"default": {"kubeconfig": cluster.write_kubeconfig(tmp_path / "kubeconfig")}}, "receiver": receiver},
                         flags=["--web.enable-admin-api", f"--web.external-url=https://{HOST}"], start=False)
    daemon.headers = {"Authorization": "Bearer secret of prometheus"}
    daemon.cluster = cluster
    return daemon.start()


class Gate:
    """oauth2-proxy with the configuration of the page: only addresses and files are others."""

    tls = None

    def __init__(self, folder, daemon, provider):
        self.address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{self.address}"
        (folder / "client-secret").write_text("hush")
        (folder / "cookie-secret").write_text(base64.b64encode(b"0123456789abcdef0123456789abcdef").decode())
        text = block("toml")
        for old, new in (("https://login.example.com", provider.url), ("0.0.0.0:4180", self.address), ("http://127.0.0.1:9096", daemon.url),
                         ("10.0.0.0/8", "127.0.0.1"), ("/etc/oauth2-proxy/", f"{folder}/")):
            assert old in text
            text = text.replace(old, new)
        (folder / "oauth2-proxy.cfg").write_text(text)
        self.process = Process("oauth2-proxy", [peers.find("oauth2-proxy") / "oauth2-proxy", f"--config={folder / 'oauth2-proxy.cfg'}"],
                               folder, environment())

    def start(self):
        self.process.start().wait_ready(lambda: request("GET", self.url + "/ping").ok)
        return self


def start_gate(started, folder, daemon, provider):
    if not peers.find("oauth2-proxy"):
        pytest.skip(peers.how_to_build("oauth2-proxy"))
    return started(Gate(folder, daemon, provider)).start()


@pytest.fixture
def gate(started, daemon, provider, tmp_path):
    return start_gate(started, tmp_path, daemon, provider)


def cookies(visitor):
    return "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())


def sign_on(gate, provider, person):
    """The browser of a person who has signed on; the answer to the end of it."""
    visitor, provider.person = Visitor(gate, origin=f"https://{HOST}", host=HOST), person
    answer = visitor.get("/")
    assert answer.status == 302 and answer.headers["Location"].startswith(f"{provider.url}/authorize?"), answer.text
    back = urllib.parse.urlsplit(request("GET", answer.headers["Location"]).headers["Location"])
    assert f"{back.scheme}://{back.netloc}{back.path}" == f"https://{HOST}/oauth2/callback"
    return visitor, visitor.get(f"{back.path}?{back.query}")


def test_people_read_and_use_forms_by_their_groups(gate, daemon, provider):
    ada, answer = sign_on(gate, provider, "ada@example.com")
    assert answer.status == 302 and answer.headers["Location"] == "/"
    assert ">proxy:ada@example.com<" in ada.get("/").text
    eventually(lambda: "scale" in ada.forms("/targets/web"))
    assert ada.order("/targets/web", "scale", replicas="6", **REASON) == [("good", "web is being set to the size 6.")]
    eventually(lambda: daemon.cluster.sizes.get("web") == 6)
    assert daemon.wait_record("command")["who"] == "proxy:ada@example.com"
    assert ada.get("/page.js").ok
    path, hidden = ada.forms("/targets/web")["pause"]
    for headers in ({"Origin": "https://evil.example"}, {"Origin": None}, {"Sec-Fetch-Site": "cross-site"}):
        assert ada.submit(path, hidden | REASON, headers).status == 403, headers
    assert ada.submit(path, hidden | REASON | {"form": "x" * len(hidden["form"])}).status == 403
    bob, _ = sign_on(gate, provider, "bob@example.com")
    assert ">proxy:bob@example.com<" in bob.get("/").text and bob.forms("/targets/web") == {}
    assert bob.submit(path, hidden | REASON).status == 403
    _, answer = sign_on(gate, provider, "eve@elsewhere.example")      # not of `email_domains`
    assert answer.status == 403
    assert daemon.target("web")["paused"] is None


def test_people_send_no_notifications_reloads_and_commands_of_the_api(gate, daemon, provider):
    ada, _ = sign_on(gate, provider, "ada@example.com")
    for path, body in (("/webhook", notification(alert({"alertname": "Busy"}))), ("/-/reload", {}), ("/api/v1/targets/web/pause", REASON),
                       ("/api/v1/targets/web/scale", {"replicas": 9, **REASON}), ("/api/v1/pause", REASON)):
        assert ada.ask("POST", path, json.dumps(body).encode()).status == 401, path
    assert ada.ask("GET", "/api/v1/debug/targets/web").status == 401
    assert ada.ask("GET", "/api/v1/targets").json["data"][0]["name"] == "web"
    assert not daemon.records("command") and not daemon.records("reload") and not daemon.notifications()
    assert daemon.get("/api/v1/targets").ok         # Prometheus, with its token and without the proxy


def test_headers_of_clients_do_not_pass(gate, daemon, provider):
    assert Visitor(gate, host=HOST).get("/", **FORGED).status == 302
    bob, _ = sign_on(gate, provider, "bob@example.com")
    for headers in (FORGED, {name.lower(): value for name, value in FORGED.items()}, {name.replace("-", "_"): value for name, value in FORGED.items()}):
        page = bob.ask("GET", "/targets/web", headers=headers)
        assert page.ok and ">proxy:bob@example.com<" in page.text and "<form class=\"order\"" not in page.text, headers
    page = bob.ask("GET", "/", headers={"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "http", "X-Forwarded-For": "192.0.2.1"})
    assert page.ok and "evil.example" not in page.text
    # without the proxy a header that comes twice is refused
    for name, value in FORGED.items():
        lines = [f"{other}: {text}" for other, text in FORGED.items()] + [f"{name}: {value}"] * (name in USED)
        assert raw(daemon, *lines)[0] == (400 if name in USED else 200), name


def test_headers_from_elsewhere_are_ignored_counted_and_logged_once(daemon, provider, started, tmp_path):
    """Here all that connects from this machine is elsewhere, oauth2-proxy too."""
    config = yaml.safe_load(daemon.config_file.read_text())
    config["receiver"]["proxy"]["addresses"] = ["192.0.2.1"]
    daemon.write_config(config)
    daemon.restart()
    for _ in range(5):
        assert request("GET", daemon.url + "/api/v1/targets", headers=FORGED).status == 401
    assert daemon.metrics().value("alertscaler_proxy_headers_ignored_total") == 5
    gate = start_gate(started, tmp_path, daemon, provider)
    ada, answer = sign_on(gate, provider, "ada@example.com")
    assert answer.status == 302 and request("GET", f"{gate.url}/api/v1/targets", headers={"Cookie": cookies(ada), "Host": HOST}).status == 401
    assert daemon.metrics().value("alertscaler_proxy_headers_ignored_total") == 6
    assert daemon.process.log_text().count("headers of receiver.proxy ignored") == 1
