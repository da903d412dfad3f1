"""Secrets in every place where there can be one: none of them is ever in the daemon's log, the action log, the state file, an
answer or a core dump, and none is in memory once it is not needed any more. What is needed goes on being there: the
credentials that we show others at any time."""
import base64
import contextlib
import json
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import urllib.parse

import pytest
import yaml

from harness import allowed
from harness.daemon import environment, has_sanitizers
from harness.files import replace
from harness.http import Server, request
from harness.notification import alert, notification
from harness.visitor import Visitor
from harness.wait import eventually

needs_release = pytest.mark.skipif(has_sanitizers(), reason="a sanitizer keeps what is freed, to see who uses it still")


SEEN_WITHIN = 90    # a target that is not there is asked for again after ten seconds and more


class Secrets(dict):
    """Each is made up anew, so that it is nowhere by chance; in two halves here, so that our own memory is no matter."""

    def __missing__(self, name):
        self[name] = f"S3cret-{name}-" + os.urandom(12).hex()
        return self[name]


@pytest.fixture
def secrets():
    return Secrets()


class Peer:
    """Answers everybody, and remembers as whom they came."""

    def __init__(self, answer=lambda asked: (404, {}, {})):
        self.seen = []

        def handle(asked):
            self.seen.append({name.lower(): value for name, value in asked.headers.items()})
            return answer(asked)

        self._server = Server(handle)
        self.url = self._server.url

    def saw_password(self, password):
        return self.saw("authorization", "Basic " + base64.b64encode(f"me:{password}".encode()).decode())

    def saw(self, name, value):
        return any(headers.get(name) == value for headers in self.seen)

    def stop(self):
        self._server.stop()


def node_group(asked):
    return 200, {"ETag": '"1"'}, {"size": 3}


def alerts(asked):
    return 200, {}, []


def samples(asked):
    return 200, {}, {"status": "success", "data": {"resultType": "vector", "result": []}}


RULES = {
    "targets": {
        "group": {"node_group": {"provider": "mine", "url": ""}, "max": 10},
        "web": {"kubernetes": {"kind": "Deployment", "namespace": "shop", "name": "web"}, "max": 10},
        "api": {"kubernetes": {"kind": "Deployment", "namespace": "shop", "name": "api", "cluster": "second"}, "max": 10},
    },
    "rules": [
        {"name": "all", "match": ['alertname="Busy"'], "target": "group", "scale_up": {"by": 1}},
        {"name": "web", "match": ['alertname="Busy"'], "target": "web", "scale_up": {"by": 1}},
        {"name": "api", "match": ['alertname="Busy"'], "target": "api", "scale_up": {"by": 1}},
        {"name": "query", "match": ['alertname="Busy"'], "target": "group",
         "track": {"average_value": 70, "query": "vector(420)"}},
    ],
}


def kubeconfig(server, user):
    return yaml.safe_dump({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": server}}], "users": [{"name": "u", "user": user}]})


class Setup:
    def __init__(self, make_daemon, started, secrets):
        self.secrets = secrets
        self.group, self.first, self.second = started(Peer(node_group), Peer(), Peer())
        self.prometheus, self.alertmanager = started(Peer(samples), Peer(alerts))
        rules = {**RULES, "targets": {**RULES["targets"], "group": {
            "node_group": {"provider": "mine", "url": self.group.url + "/g"}, "max": 10}}, "rules": RULES["rules"]}
        self.daemon = make_daemon(rules=rules, start=False)
        self.folder = self.daemon.directory / "secrets"
        self.folder.mkdir()
        for name in ("receiver", "group", "header", "prometheus", "alertmanager", "second"):
            replace(self.folder / name, secrets[name] + "\n")
        (self.daemon.directory / "first.kubeconfig").write_text(kubeconfig(self.first.url, {"token": secrets["first"]}))
        (self.daemon.directory / "second.kubeconfig").write_text(
            kubeconfig(self.second.url, {"tokenFile": str(self.folder / "second")}))
        self.daemon.write_config({
            "clusters": {"default": {"kubeconfig": "first.kubeconfig"}, "second": {"kubeconfig": "second.kubeconfig"}},
            "providers": {"mine": {"type": "http", "http_config": {
                "authorization": {"credentials_file": "secrets/group"},
                "http_headers": {"X-Key": {"files": ["secrets/header"]}}}}},
            "prometheus": {"url": self.prometheus.url, "http_config": {
                "basic_auth": {"username": "me", "password_file": "secrets/prometheus"}}},
            "alertmanager": {"urls": [self.alertmanager.url], "resync_interval": "10s", "http_config": {
                "basic_auth": {"username": "me", "password_file": "secrets/alertmanager"}}},
            "receiver": {"tokens": [{"name": "am", "file": "secrets/receiver", "permissions": ["notify", "read", "admin"]}]},
        })
        self.daemon.headers = {"Authorization": f"Bearer {secrets['receiver']}"}

    def use_everything(self, n=1):
        """Each credential is shown to where it belongs, and wrong ones to us."""
        daemon, secrets = self.daemon, self.secrets
        daemon.notify(notification(alert({"alertname": "Busy", "n": str(n)})))
        wrong = {"Authorization": f"Bearer {secrets['wrong']}"}
        assert request("POST", daemon.url + "/webhook", b"{}", wrong).status == 401
        basic = base64.b64encode(f"me:{secrets['basic']}".encode()).decode()
        assert request("GET", daemon.url + "/api/v1/targets", None, {"Authorization": f"Basic {basic}"}).status == 401
        assert request("GET", daemon.url + f"/metrics?token={secrets['query']}").status in (401, 200, 400)
        visitor = Visitor(daemon)
        assert visitor.log_in(token=secrets["login"]).status == 401 and visitor.log_in("me", secrets["password"]).status == 401
        assert visitor.log_in(token=secrets["receiver"]).status == 303
        secrets[f"session-{n}"], = visitor.cookies.values()
        assert visitor.get("/").status == 200
        eventually(lambda: self.group.saw("authorization", f"Bearer {secrets['group']}"), timeout=SEEN_WITHIN)
        eventually(lambda: self.group.saw("x-key", secrets["header"]), timeout=SEEN_WITHIN)
        eventually(lambda: self.first.saw("authorization", f"Bearer {secrets['first']}"), timeout=SEEN_WITHIN)
        eventually(lambda: self.second.saw("authorization", f"Bearer {secrets['second']}"), timeout=SEEN_WITHIN)
        eventually(lambda: self.prometheus.saw_password(secrets["prometheus"]), timeout=SEEN_WITHIN)
        eventually(lambda: self.alertmanager.saw_password(secrets["alertmanager"]), timeout=SEEN_WITHIN)


@pytest.fixture
def setup(make_daemon, started, secrets):
    setup = Setup(make_daemon, started, secrets)
    setup.daemon.start()
    return setup


def forms(secret):
    """As it is, and in base 64 at any place of what was encoded."""
    yield secret.encode()
    for shift in range(3):
        text = base64.b64encode(b"x" * shift + secret.encode())
        yield text[4 if shift else 0:-8]


def find(secrets, data):
    return sorted({name for name, secret in secrets.items() for form in forms(secret) if form in data})


def read_memory(pid):
    """All that the process may write to."""
    parts = []
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
            start, end, flags = re.match(r"(\w+)-(\w+) (\S+)", line).groups()
            if flags.startswith("rw") and "[vvar" not in line:
                memory.seek(int(start, 16))
                parts.append(memory.read(int(end, 16) - int(start, 16)))
    assert sum(map(len, parts)) > 1_000_000
    return b"".join(parts)


def test_no_secret_is_written_anywhere(setup):
    daemon, secrets = setup.daemon, setup.secrets
    setup.use_everything()
    daemon.comment_config()
    daemon.reload()
    eventually(lambda: "configuration loaded" in daemon.process.log_text())
    answers = b"".join(daemon.get(path).body for path in (
        "/metrics", "/api/v1/targets", "/api/v1/incidents", "/api/v1/decisions", "/api/v1/rules", "/api/v1/status", "/"))
    assert len(answers) > 1000
    daemon.stop()
    assert find(secrets, answers) == []
    written = [daemon.process.log, daemon.log_file, daemon.state_file]
    written += [path for path in daemon.directory.iterdir() if path.name.startswith("state.db")]
    for path in written:
        assert find(secrets, path.read_bytes()) == [], path
    assert daemon.log_file.stat().st_size > 1000 and "level=debug" in daemon.process.log_text()


@needs_release
def test_memory_holds_no_secret_that_is_not_needed(setup):
    """The receiver's token is kept as a digest only; a secret that was rotated, or was wrong, is gone after its use."""
    allowed.need(allowed.memory_of_others)
    daemon, secrets = setup.daemon, setup.secrets
    setup.use_everything()
    old = {name: secrets[name] for name in ("group", "header", "prometheus", "alertmanager", "second")}
    for name in old:
        secrets[name] = secrets[f"new-{name}"]
        replace(setup.folder / name, secrets[name] + "\n")
    setup.use_everything(2)
    gone = {**old, **{name: secrets[name] for name in (
        "receiver", "wrong", "basic", "query", "login", "password", "session-1", "session-2")}}
    left = []

    def is_gone():
        memory = read_memory(daemon.process.pid)
        left[:] = find(gone, memory)
        return not left and find(secrets, memory)

    try:
        found = eventually(is_gone)
    except AssertionError:
        raise AssertionError(f"still in memory: {left}") from None
    assert {"group", "first", "second"} <= set(found), "what is needed is there: we know how to look"


@needs_release
def test_a_core_dump_would_hold_the_present_ones_only_and_there_is_none(setup):
    daemon = setup.daemon
    setup.use_everything()
    daemon.process.signal(signal.SIGABRT)
    daemon.process.popen.wait(60)
    assert daemon.process.popen.returncode == -signal.SIGABRT
    for path in daemon.directory.rglob("core*"):
        assert not path.is_file(), path


# ---- logins of http_config: what they sign with, and what they get ----


class LoginServer:
    """Everything that a daemon with logins talks to: token servers, node groups, a Prometheus and receivers of `notify`. Whatever is
    refused is refused with the words of the request: what a careless server does. refuses: of `tokens`, `groups`, `receivers`."""

    def __init__(self, secrets):
        self.secrets, self.refuses, self.sizes = secrets, set(), {}
        self.seen = []          # (path, headers)
        self.messages = []      # that receivers have taken
        self._server = Server(self._handle)
        self.url = self._server.url

    def _handle(self, asked):
        place, _, name = asked.path.lstrip("/").partition("/")
        self.seen.append((asked.path, asked.headers))
        secret = " ".join([asked.headers["Authorization"] or "", asked.headers["X-Amz-Security-Token"] or ""])
        if place == "receivers":
            if "receivers" in self.refuses:
                return 401, {}, f"no access with {secret}\n".encode()
            self.messages.append(asked.body)
            return 200, {}, b""
        if place == "groups":
            if asked.method == "PUT" and "groups" in self.refuses:
                return 403, {}, {"error": f"no access with {secret}"}
            if asked.method == "PUT":
                self.sizes[name] = asked.json["size"]
            return 200, {"ETag": f'"{self.sizes.get(name, 1)}"'}, {"size": self.sizes.get(name, 1)}
        if place == "api":
            if "groups" in self.refuses:
                return 403, {}, {"status": "error", "errorType": "forbidden", "error": f"no access with {secret}"}
            return 200, {}, {"status": "success", "data": {"resultType": "vector", "result": []}}
        kind = "azuread" if place == TENANT else place
        if "tokens" in self.refuses:
            return 400, {}, {"error": "invalid_grant", "error_description": f"no tokens for {urllib.parse.unquote(asked.body.decode())} {secret}"}
        return 200, {}, {"access_token": self.secrets[f"{kind}-token"], "token_type": "Bearer", "expires_in": 3600}

    def saw(self, path, name, value):
        return any(path == at and headers[name] == value for at, headers in list(self.seen))

    def stop(self):
        self._server.stop()


TENANT = "00000000-0000-0000-0000-00000000000a"
BEARERS = {"oauth2": "oauth2-token", "azuread": "azuread-token", "google_iam": "google-token", "google_key": "service-token"}


def write_logins(server, secrets, folder):
    """The blocks of http_config, and the environment."""
    for name in ("oauth2-secret", "azuread-secret"):
        (folder / name).write_text(secrets[name] + "\n")
    (folder / ".aws").mkdir(exist_ok=True)
    (folder / ".aws/credentials").write_text(
        f"[p]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = {secrets['aws-key']}\naws_session_token = {secrets['aws-session']}\n")
    (folder / "user.json").write_text(json.dumps({
        "type": "authorized_user", "client_id": "c", "client_secret": secrets["google-secret"], "refresh_token": secrets["google-refresh"],
        "token_uri": server.url + "/google"}))
    key = subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], check=True,
                         capture_output=True, text=True).stdout
    secrets["service-key"] = key.splitlines()[10]
    (folder / "account.json").write_text(json.dumps({
        "type": "service_account", "project_id": "shop", "private_key_id": "k1", "client_email": "a@shop.example",
        "private_key": key, "token_uri": server.url + "/service"}))
    blocks = {
        "oauth2": {"oauth2": {"client_id": "me", "client_secret_file": str(folder / "oauth2-secret"), "token_url": server.url + "/oauth2"}},
        "sigv4": {"sigv4": {"region": "eu-central-1", "profile": "p"}},
        "azuread": {"azuread": {"oauth": {"client_id": "00000000-0000-0000-0000-00000000000c", "tenant_id": TENANT,
                                          "client_secret_file": str(folder / "azuread-secret")}}},
        "google_iam": {"google_iam": {"credentials_file": str(folder / "user.json")}},
        "google_key": {"google_iam": {"credentials_file": str(folder / "account.json")}},
    }
    return blocks, {"AZURE_AUTHORITY_HOST": server.url}


class Logins:
    """A daemon that uses each login for a node group and for a receiver; one of them for Prometheus. `planted` is the name of a rule
    and of a receiver."""

    def __init__(self, make_daemon, started, secrets, folder, planted="busy", **options):
        self.secrets = secrets
        self.server = started(LoginServer(secrets))
        self.blocks, env = write_logins(self.server, secrets, folder)
        rules = {"targets": {kind: {"node_group": {"provider": kind, "url": f"{self.server.url}/groups/{kind}"}, "max": 10,
                                    "cooldown": {"up": "0s", "down": "0s"}}
                             for kind in self.blocks},
                 "rules": [{"name": f"{kind}-{planted}", "match": ['alertname="Busy"'], "target": kind, "scale_up": {"by": 1},
                            "max_steps": 1} for kind in self.blocks]}
        rules["rules"].append({"name": f"query-{planted}", "match": ['alertname="Query"'], "target": "oauth2",
                               "track": {"average_value": 70, "query": "vector(420)"}})
        self.receivers = [f"{kind}-{planted}" for kind in self.blocks]
        self.daemon = make_daemon(rules=rules, start=False, env=env, **options)
        self.env = environment(HOME=folder, **env)
        self.daemon.process.env["HOME"] = str(folder)
        self.daemon.write_config({
            "providers": {kind: {"type": "http", "http_config": block} for kind, block in self.blocks.items()},
            "prometheus": {"url": self.server.url, "http_config": self.blocks["google_key"]},
            "notify": [{"name": name, "on": ["scaled", "failed"],
                        "webhook": {"url": f"{self.server.url}/receivers/{kind}", "http_config": block}}
                       for name, (kind, block) in zip(self.receivers, self.blocks.items())]})

    def fire(self, alertname, number):
        self.daemon.notify(notification(alert({"alertname": alertname, "n": str(number)})))

    def use(self):
        """Each login is used by a node group, by a receiver and by Prometheus."""
        self.fire("Busy", 1)
        self.fire("Query", 1)
        for kind in self.blocks:
            for place in "groups", "receivers":
                name, secret = ("X-Amz-Security-Token", "aws-session") if kind == "sigv4" else ("Authorization", BEARERS[kind])
                value = self.secrets[secret] if kind == "sigv4" else f"Bearer {self.secrets[secret]}"
                eventually(lambda place=place, kind=kind, name=name, value=value: self.server.saw(f"/{place}/{kind}", name, value),
                           what=f"{place} see {kind}")
        eventually(lambda: self.server.saw("/api/v1/query", "Authorization", f"Bearer {self.secrets['service-token']}"))

    def fail(self):
        """Servers refuse what is asked of them, first together with tokens. Notices of this wait."""
        def failed(words):
            return {record["target_name"] for record in self.daemon.records("action")
                    if record["outcome"] != "applied" and words in record["message"]}

        self.server.refuses = {"groups", "receivers", "tokens"}
        self.fire("Busy", 2)
        eventually(lambda: failed("there are no new ones") == set(BEARERS), what="refused tokens")
        eventually(lambda: failed("no access") >= {"sigv4"}, what="refused keys")
        self.server.refuses = {"groups", "receivers"}
        self.fire("Busy", 3)
        eventually(lambda: failed("no access") == set(self.blocks), what="refused changes")
        for name in self.receivers:
            eventually(lambda name=name: self.daemon.metrics().value("alertscaler_notify_failed_total", receiver=name) > 0)
            assert self.daemon.metrics().value("alertscaler_notify_entries", receiver=name) > 0

    def read_rows(self):
        """[(key, value)] of all tables, of a copy: the daemon has the file for itself."""
        copy = self.daemon.directory / "copy"
        copy.mkdir()
        self.daemon.process.pause()
        for path in self.daemon.directory.glob("state.db*"):
            (copy / path.name).write_bytes(path.read_bytes())
        self.daemon.process.resume()
        with contextlib.closing(sqlite3.connect(copy / "state.db")) as db:
            tables = [name for name, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            rows = [row for table in tables for row in db.execute(f"SELECT key, value FROM {table}")]
        return [(str(key).encode() if isinstance(key, int) else key, value) for key, value in rows]

    def collect(self):
        """{place: all that is there}. The notices that wait are delivered, and the daemon is stopped."""
        daemon, places = self.daemon, {}
        paths = ("/api/v1/targets", "/api/v1/incidents", "/api/v1/decisions", "/api/v1/rules", "/api/v1/status")
        places["metrics"] = daemon.get("/metrics").body
        places["api"] = b"".join(daemon.get(path).body for path in paths)
        places["pages"] = b"".join(daemon.get(path).body for path in ("/", *(f"/targets/{kind}" for kind in self.blocks)))
        rows = self.read_rows()
        places["rows of the state"] = b"\n".join(value for _, value in rows)
        places["notices that wait"] = b"\n".join(value for key, value in rows if key.startswith(b"notice/"))
        places["test of a receiver"] = b"".join(
            subprocess.run([daemon.binary, "notify", "test", name, f"--config.file={daemon.config_file}"], capture_output=True,
                           check=False, env=self.env).stdout for name in self.receivers)
        self.server.refuses = set()
        for name in self.receivers:
            eventually(lambda name=name: daemon.metrics().value("alertscaler_notify_entries", receiver=name) == 0, 90)
        daemon.stop()
        places["messages"] = b"\n".join(self.server.messages)
        places["log"] = daemon.process.log.read_bytes()
        places["errors of notify"] = b"\n".join(line for line in places["log"].splitlines() if b"notice was not taken" in line)
        places["action log"] = daemon.log_file.read_bytes()
        places["state"] = b"".join(path.read_bytes() for path in daemon.directory.iterdir() if path.name.startswith("state.db"))
        return places


@pytest.mark.parametrize("planted", ["busy", "secret"])
def test_no_secret_of_a_login_is_written_anywhere(make_daemon, started, secrets, tmp_path, planted):
    """Servers put the credentials that they refuse into their words. A secret in the name of a rule and of a receiver shows that each
    search finds what is there."""
    logins = Logins(make_daemon, started, secrets, tmp_path, secrets["planted"] if planted == "secret" else planted)
    logins.daemon.start()
    logins.use()
    logins.fail()
    places = logins.collect()
    assert all(len(data) > 500 for data in places.values()), {place: len(data) for place, data in places.items()}
    found = {place: find(secrets, data) for place, data in places.items()}
    assert found == {place: ["planted"] if planted == "secret" else [] for place in found}


def crash(logins):
    """The core dumps of a daemon that has used its logins and is aborted. The limit of core dumps is as high as it may be at the start;
    who may raise it later does so."""
    daemon = logins.daemon
    daemon.process.argv = ["prlimit", f"--core={allowed.CORE_MAX}", *daemon.process.argv]
    daemon.start()
    logins.use()
    subprocess.run(["prlimit", f"--pid={daemon.process.pid}", f"--core={allowed.CORE_MAX}"], check=False)
    daemon.process.signal(signal.SIGABRT)
    assert daemon.process.popen.wait(60) == -signal.SIGABRT
    return [path.read_bytes() for path in daemon.directory.rglob("core*") if path.is_file()]


@needs_release
def test_a_core_dump_would_hold_what_logins_need_and_there_is_none(make_daemon, started, secrets, tmp_path):
    """The sandbox sets the limit to 0, and makes the daemon non-dumpable (test_sandbox.py shows this by its memory). Without the
    sandbox there is a core, with secrets of each login: we know how to look."""
    allowed.need(allowed.core_files)
    (tmp_path / "open").mkdir()
    core, = crash(Logins(make_daemon, started, secrets, tmp_path / "open", name="without-sandbox", flags=["--sandbox=off"]))
    assert set(find(secrets, core)) >= {"oauth2-token", "aws-key", "aws-session", "azuread-token", "google-token", "service-token"}
    assert crash(Logins(make_daemon, started, secrets, tmp_path)) == []
