"""Secrets in every place where there can be one: none of them is ever in the daemon's log, the action log, the state file, an
answer or a core dump, and none is in memory once it is not needed any more. What is needed goes on being there: the
credentials that we show others at any time."""
import base64
import os
import pathlib
import re
import signal

import pytest
import yaml

from harness import allowed
from harness.daemon import has_sanitizers
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
