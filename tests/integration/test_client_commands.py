"""fire, status and reload: what they send, what they print, and what they say when it goes wrong."""
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time

import pytest
import yaml

from harness.daemon import environment, find_binary
from harness.http import HangUp, Server
from harness.played import Played, run
from harness.wait import eventually

NOBODY = "http://127.0.0.1:1"


@pytest.fixture
def played():
    daemon = Played()
    yield daemon
    daemon.server.stop()


def accepted(outcome="queued", rules=("slow",)):
    return 200, {}, {"status": "ok", "notification": "01JD", "alerts": [
        {"fingerprint": "7be9cc40aa9853c5", "status": "firing", "rules": list(rules), "outcome": outcome}]}


# fire


def test_fire_sends_what_alertmanager_would(played):
    played.answer = accepted()
    before = time.time()
    done = played.run("fire", "alertname=HighCPU", "deployment=web", "namespace=prod", "severity=critical",
                      "--annotation=summary=too slow", "--annotation", "load=a=b", "--receiver=a.b")
    assert done.returncode == 0, done.stderr
    first, *left = done.stdout.splitlines()
    assert first == "7be9cc40aa9853c5 firing: queued, by rule slow"
    assert left == ["Its incident stays open, and its rules go on, until it is resolved or receiver.incident_expiry has "
                    "passed without a repeat.",
                    f"To end it: alertscaler fire --resolved --receiver=a.b --url={played.url} alertname=HighCPU "
                    "deployment=web namespace=prod severity=critical"]
    asked = played.asked[0]
    assert (asked.method, asked.path, asked.headers["Content-Type"]) == ("POST", "/webhook", "application/json")
    payload = asked.json
    assert payload["version"] == "4"
    assert payload["status"] == "firing"
    assert payload["receiver"].replace("\\", "") == "a.b"
    (alert,) = payload["alerts"]
    assert alert["labels"] == {
        "alertname": "HighCPU", "deployment": "web", "namespace": "prod", "severity": "critical"}
    assert alert["annotations"] == {"summary": "too slow", "load": "a=b"}
    assert alert["fingerprint"] == "7be9cc40aa9853c5"
    assert alert["endsAt"].startswith("0001-01-01T00:00:00")
    started = time.strptime(alert["startsAt"][:19], "%Y-%m-%dT%H:%M:%S")
    assert abs(time.mktime(started) - time.mktime(time.gmtime(before))) < 60


def test_fire_resolved(played):
    played.answer = accepted()
    assert played.run("fire", "alertname=A", "--resolved", "--starts-at=2026-11-20T10:00:00+01:00").returncode == 0
    (posted,) = [asked for asked in played.asked if asked.method == "POST"]     # it reads the open incidents, too
    (alert,) = posted.json["alerts"]
    assert alert["status"] == "resolved"
    assert alert["startsAt"].startswith("2026-11-20T09:00:00")
    assert not alert["endsAt"].startswith("0001")


def test_fire_prints_json(played):
    played.answer = accepted("no_rule", [])
    done = played.run("fire", "alertname=A", "-ojson")
    assert json.loads(done.stdout) == played.answer[2]
    assert played.run("fire", "alertname=A").stdout == (
        "7be9cc40aa9853c5 firing: no_rule\nNo rule matches the alert.\n"
        "Which rules almost match: alertscaler explain NAME=VALUE...\n")


@pytest.mark.parametrize("words, says", [
    ([], "too few arguments"),
    (["alertname"], "expected NAME=VALUE"),
    (["=x"], "expected NAME=VALUE"),
    (["a=1", "a=2"], "a label is given twice"),
    (["a=1", "--annotation=x"], "not an annotation"),
    (["a=1", "--starts-at=now"], "--starts-at"),
    (["a=\udcff"], "not UTF-8"),
    (["a=1", "--resolve"], "--resolved"),
    (["a=1", "--for=2"], "--for: "),
    (["a=1", "--for=2m", "--resolved"], "not --resolved"),
    (["a=1", "--wait", "--resolved"], "not --resolved"),
])
def test_fire_refuses(played, words, says):
    done = subprocess.run([os.fsencode(find_binary()), b"fire", b"--url=" + played.url.encode(),
                           *[word.encode("utf-8", "surrogateescape") for word in words]],
                          env=environment(), capture_output=True, timeout=40)
    assert done.returncode == 2
    assert says in done.stderr.decode()
    assert not played.asked


# reload


def test_reload(played):
    assert played.run("reload").stdout == "reloaded\n"
    (asked,) = played.asked
    assert (asked.method, asked.path, asked.body) == ("POST", "/-/reload", b"")


def test_reload_says_if_no_file_has_changed(played):
    played.answer = 200, {}, b"unchanged: all files have the content that is in force\n"
    assert played.run("reload").stdout == "unchanged\n"


def test_reload_says_why_not(played):
    played.answer = 500, {}, b"reload failed, nothing is changed: rules/a.yaml:3:5: unknown key\nsecond line\n"
    done = played.run("reload")
    assert done.returncode == 1
    assert done.stderr == ("alertscaler reload: HTTP 500: reload failed, nothing is changed: "
                           "rules/a.yaml:3:5: unknown key\n")


# status


def target(**more):
    return {
        "id": "kubernetes/default/apps/v1/Deployment/shop/checkout", "name": "checkout", "templated": False,
        "replicas": 6, "status_replicas": 6, "desired": 6, "min": 2, "max": 20,
        "locked_until": {"up": None, "down": None}, "open_incidents": 0, "last_decision": None, "failure": None,
        **more}


def at(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(time.time() + seconds))


def test_status_is_a_table(played):
    began = time.monotonic()
    played.answer = 200, {}, {"status": "success", "data": [
        target(locked_until={"up": at(49), "down": at(600)}, open_incidents=1,
               last_decision={"id": "x", "time": at(-10), "reason": "scaled", "rule": "slow"}),
        target(templated=True, replicas=4, desired=5, failure="forbidden",
               last_decision={"id": "x", "time": at(-7300), "reason": "at_max", "rule": None}),
        target(name="new", replicas=None, desired=None, min=None, max=None, failure="unreachable"),
    ]}
    done = played.run("status")
    took = time.monotonic() - began + 2     # times are given, and shown, in whole seconds
    assert done.returncode == 0, done.stderr
    rows = [re.split(r"  +", line) for line in done.stdout.splitlines()]
    assert rows[0] == ["TARGET", "SIZE", "BOUNDS", "LOCKED", "PAUSED", "INCIDENTS", "LAST DECISION"]
    assert rows[1][:3] == ["checkout", "6", "2-20"]
    locked = re.fullmatch(r"up (\d+)s, down 9m\d+s", rows[1][3])
    assert locked and 49 - took <= int(locked[1]) <= 49, rows[1]
    assert rows[1][4:6] == ["-", "1"]
    scaled = re.fullmatch(r"scaled by slow, (\d+)s ago", rows[1][6])
    assert scaled and 10 <= int(scaled[1]) <= 10 + took, rows[1]
    assert rows[2] == ["kubernetes/default/apps/v1/Deployment/shop/checkout", "4->5", "2-20", "-", "-", "0",
                       "at_max, 2h ago; failed: forbidden"]
    assert rows[3] == ["new", "?", "-", "-", "-", "0", "unreachable"]
    assert [(asked.method, asked.path) for asked in played.asked] == [
        ("GET", "/api/v1/targets"), ("GET", "/api/v1/status"), ("GET", "/api/v1/approvals")]


def test_status_says_that_it_does_not_know_what_waits(played):
    played.answer = lambda asked: (503, {}, b"this replica does not lead\n") if asked.path.endswith("/approvals") else (
        200, {}, {"status": "success", "data": [target()] if asked.path.endswith("/targets") else {}})
    done = played.run("status")
    assert done.returncode == 0 and done.stdout.splitlines()[1].startswith("checkout"), done
    assert done.stdout.splitlines()[-1].startswith("It is not known what waits for an approval: ")
    assert "this replica does not lead" in done.stdout


def pause(**more):
    return {"who": "ada", "reason": "the big move", "kill_switch": False, "since": at(-60), "until": None, **more}


def test_status_shows_pauses(played):
    status = {}
    targets = [target(paused=pause(until=at(3539))), target(paused=pause(reason="x" * 100), ordered=9)]
    played.answer = lambda asked: (200, {}, {
        "status": "success", "data": status if asked.path.endswith("/status") else targets})
    rows = [re.split(r"  +", line) for line in played.run("status").stdout.splitlines()]
    assert re.fullmatch(r"58m\d+s: the big move", rows[1][4]) and rows[2][4] == "until resumed: " + "x" * 40 + "..."
    assert rows[2][1] == "6->9"
    for pause_of_all, says in [
            (pause(until=at(3539)), "Everything is paused, by ada, for another 58m: the big move"),
            (pause(who=""), "Everything is paused: the big move"),
            (pause(who="kill switch file", kill_switch=True),
             "The kill switch is set: nothing is scaled, by kill switch file: the big move")]:
        status = {"paused": pause_of_all, "dry_run": True, "leadership": {"holder": "alertscaler-0", "problem": None}}
        told = re.sub(r"58m\d+s", "58m", played.run("status").stdout).splitlines()
        assert told[:3] == ["Leader: alertscaler-0", "Dry run: nothing is changed.", says]


def test_status_says_what_bounds_come_from_and_what_is_held(played):
    sale = {"name": "sale", "in_force": True, "min": 12, "max": None, "changes": at(3539)}
    floor = {"replicas": 15, "who": "ada", "reason": "x", "since": at(-60), "until": at(7319)}
    by_schedule = {"direction": "down", "by": "schedule", "name": "sale", "until": at(3539)}
    by_rule = {"direction": "both", "by": "rule", "name": "upstream\x1b[2J", "until": None}
    played.answer = lambda asked: (200, {}, {"status": "success", "data": {} if asked.path.endswith("/status") else [
        target(schedules=[sale, {**sale, "name": "later", "in_force": False}], floor=floor, min=15, holds=[by_schedule, by_rule]),
        target(schedules=[{**sale, "name": "always", "changes": None}], min=12, floor=None, holds=[by_rule]),
        target(floor=None, schedules=[], holds=[])]})
    done = played.run("status")
    assert done.returncode == 0 and "\x1b" not in done.stdout, done.stderr
    rows = [re.split(r"  +", re.sub(r"(58m|2h1m)\d*s?", r"\1", line)) for line in done.stdout.splitlines()]
    assert rows[1][2] == "15-20 (floor 2h1m, sale 58m)" and rows[1][4] == "down, 58m: held by schedule sale, ..."
    assert rows[2][2] == "12-20 (always)" and rows[2][4] == "both: held by rule upstream\\x1b[2J"
    assert rows[3][2] == "2-20" and rows[3][4] == "-"


def test_status_names_what_is_held_and_who_else_sizes(played):
    """Below the table. An earlier daemon says less."""
    back = {"at": at(-100), "from": 4, "to": 6, "found": 4}
    played.answer = lambda asked: (200, {}, {"status": "success", "data": {} if asked.path.endswith("/status") else [
        target(contended={"until": at(3539), "set_backs": [{**back, "by": None}, {**back, "by": "argo\x1b[2J"}]}),
        target(name="jobs", ineffective=[{"rule": "slow\n", "until": at(80039)}, {"rule": "late", "until": None}],
               others=[{"kind": "HorizontalPodAutoscaler", "name": "a", "min": 1, "max": 1},
                       {"kind": "ScaledObject", "name": "b", "min": 0, "max": 9, "paused": True}])]})
    done = played.run("status")
    assert done.returncode == 0, done.stderr
    lines = re.sub(r"58m\d+s", "58m", done.stdout).splitlines()
    assert "58m: contended by argo" in lines[1] and "\x1b" not in done.stdout
    assert lines[3:] == [
        "jobs: the HorizontalPodAutoscaler a sizes it too",
        "jobs: the ScaledObject b sizes it too (paused)",
        "jobs: the rule slow\\x0a did not help: held for another 22h13m, or until resume",
        "jobs: the rule late did not help: held for another 0s, or until resume",
    ]


def test_status_watch_goes_on_through_errors_and_ends_cleanly(played):
    binary = find_binary()
    played.answer = 200, {}, {"status": "success", "data": [target()]}
    process = subprocess.Popen([binary, "status", "--watch", "--interval=100ms", f"--url={played.url}"],
                               env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        eventually(lambda: len(played.asked) > 4)
        played.answer = 503, {}, {"status": "error", "errorType": "unavailable", "error": "starting"}
        before = len(played.asked)
        eventually(lambda: len(played.asked) > before + 3)
        played.answer = 200, {}, {"status": "success", "data": [target(name="later")]}
        before = len(played.asked)
        eventually(lambda: len(played.asked) > before + 4)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert "checkout" in out and "later" in out
    assert "alertscaler status: HTTP 503: starting\n" in err


def test_status_watch_draws_one_picture_on_a_terminal(played):
    played.answer = lambda asked: (200, {}, {"status": "success", "data": [target(name=f"t{n}") for n in range(50)]})
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 40, 0, 0))
    process = subprocess.Popen([find_binary(), "status", "-w", "--interval=100ms", f"--url={played.url}"],
                               env=environment(), stdout=terminal, stderr=subprocess.PIPE)
    os.close(terminal)
    seen = b""
    try:
        while seen.count(b"\x1b[H") < 3:
            seen += os.read(screen, 65536)
        played.answer = 503, {}, {"status": "error", "errorType": "unavailable", "error": "starting"}
        while b"HTTP 503: starting" not in seen:
            seen += os.read(screen, 65536)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    finally:
        process.kill()
        os.close(screen)
    pictures = [picture.split(b"\r\n") for picture in seen.split(b"\x1b[H")[1:3]]
    for picture in pictures:
        assert len(picture) == 10 and picture[-1].startswith(b"...")    # of 52 lines, none of which wraps
        assert all(len(line.replace(b"\x1b[K", b"")) <= 40 for line in picture[:-1])


@pytest.mark.parametrize("words", [["--interval=0s"], ["--interval=10ms"], ["--interval=soon"]])
def test_status_watch_refuses(words):
    assert run("status", "--watch", *words, "--url", NOBODY).returncode == 2


# pause, resume, scale, unlock


def done(**data):
    return 200, {}, {"status": "success", "data": {"id": "01JD", "target": "kubernetes/a/b", **data}}


@pytest.mark.parametrize("words, path, body, answer, says", [
    (["pause", "a/b", "--for=1h", "--reason=r"], "/api/v1/targets/a%2Fb/pause", {"for": "1h", "reason": "r"},
     done(until="2026-11-20T11:00:00Z"), "kubernetes/a/b: paused until 2026-11-20T11:00:00Z\n"),
    (["pause", "--all", "--reason", "r"], "/api/v1/pause", {"reason": "r"}, done(target=None, until=None),
     "all targets: paused until resumed\n"),
    (["resume", "web", "--reason=r"], "/api/v1/targets/web/resume", {"reason": "r"}, done(), "kubernetes/a/b: resumed\n"),
    (["resume", "--all", "--reason=r"], "/api/v1/resume", {"reason": "r"}, done(target=None), "all targets: resumed\n"),
    (["scale", "web", "9", "--reason=r"], "/api/v1/targets/web/scale", {"replicas": 9, "reason": "r"}, done(replicas=9),
     "kubernetes/a/b: to be set to 9, command 01JD\n"),
    (["scale", "web", "0", "--force", "--reason=r"], "/api/v1/targets/web/scale",
     {"replicas": 0, "force": True, "reason": "r"}, done(replicas=0), "kubernetes/a/b: to be set to 0, command 01JD\n"),
    (["unlock", "web", "--reason=r"], "/api/v1/targets/web/unlock", {"reason": "r"}, done(), "kubernetes/a/b: unlocked\n"),
])
def test_orders(played, words, path, body, answer, says):
    played.answer = answer
    done = played.run(*words)
    assert (done.returncode, done.stdout) == (0, says), done.stderr
    (asked,) = played.asked
    assert (asked.method, asked.path.lower(), asked.json) == ("POST", path.lower(), body)
    assert json.loads(played.run(*words, "-o", "json").stdout) == answer[2]["data"]


@pytest.mark.parametrize("words, says", [
    (["pause", "web"], "--reason"), (["pause", "web", "--reason="], "--reason"), (["pause", "--reason=r"], "TARGET"),
    (["pause", "web", "--all", "--reason=r"], "not both"), (["pause", "web", "--for=soon", "--reason=r"], "--for"),
    (["resume", "--reason=r"], "TARGET"), (["scale", "web", "--reason=r"], "too few"),
    (["scale", "web", "many", "--reason=r"], "many"), (["scale", "web", "-1", "--reason=r"], "-1"),
    (["scale", "web", "2147483648", "--reason=r"], "not a size"), (["unlock", "--reason=r"], "too few"),
    (["unlock", "web"], "--reason"),
])
def test_orders_that_are_none(played, words, says):
    done = played.run(*words)
    assert done.returncode == 2 and says in done.stderr, done.stderr
    assert not played.asked


def test_an_order_that_is_refused(played):
    played.answer = 422, {}, {"status": "error", "errorType": "out_of_bounds", "error": "21 is outside 1 to 20"}
    done = played.run("scale", "web", "21", "--reason=r")
    assert (done.returncode, done.stderr) == (1, "alertscaler scale: HTTP 422: 21 is outside 1 to 20\n")


@pytest.mark.parametrize("asked, targets, hint", [
    ("chekout", [target(name="checkout"), target(name="search")], 'alertscaler pause: did you mean "checkout"?\n'),
    ("xyz", [target(name="checkout")], ""),
    ("checkout", [target(name="checkout")], ""),        # known, but not the name of one target
    ("chekout", None, ""),
])
def test_a_target_that_is_unknown(played, asked, targets, hint):
    """The names that the daemon knows help, if the credential may read them."""
    def answer(request):
        if request.method == "GET" and targets is not None:
            return 200, {}, {"status": "success", "data": targets}
        return 404, {}, {"status": "error", "errorType": "unknown_target", "error": "no such target"}
    played.answer = answer
    done = played.run("pause", asked, "--reason=r")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "alertscaler pause: HTTP 404: no such target\n" + hint


def test_status_of_one_target(played):
    played.answer = 200, {}, {"status": "success", "data": target()}
    assert played.run("status", "kubernetes/a b/ä").stdout.count("\n") == 2
    assert played.asked[0].path.lower() == "/api/v1/targets/kubernetes%2fa%20b%2f%c3%a4"
    assert json.loads(played.run("status", "checkout", "--output=json").stdout) == target()


def test_status_of_nobody(played):
    played.answer = 404, {}, {"status": "error", "errorType": "not_found", "error": "no such target: x"}
    done = played.run("status", "x")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "alertscaler status: HTTP 404: no such target: x\n"


def test_status_of_a_target_that_is_nearly_known(played):
    def answer(request):
        if request.path == "/api/v1/targets":
            return 200, {}, {"status": "success", "data": [target(name="checkout")]}
        return 404, {}, {"status": "error", "errorType": "not_found", "error": "no such target: chekout"}
    played.answer = answer
    assert played.run("status", "chekout").stderr == \
        'alertscaler status: HTTP 404: no such target: chekout\nalertscaler status: did you mean "checkout"?\n'


def test_status_says_when_something_is_left_out(played):
    played.answer = 200, {}, {"status": "success", "data": [], "warnings": ["results truncated due to limit"]}
    assert "results truncated due to limit" in played.run("status").stderr


# the call itself


@pytest.mark.parametrize("address, path", [
    ("{}", "/-/reload"),
    ("{}/", "/-/reload"),
    ("{}/behind/a/proxy/", "/behind/a/proxy/-/reload"),
    ("{}/x?query#fragment", "/x/-/reload"),
])
def test_url_is_joined(played, address, path):
    assert run("reload", "--url", address.format(played.url)).returncode == 0
    assert played.asked[0].path == path


def test_url_and_token_come_from_the_environment(played, tmp_path):
    token = tmp_path / "token"
    token.write_text("s3cret-ä\n")
    env = {"ALERTSCALER_URL": played.url, "ALERTSCALER_TOKEN_FILE": token}
    assert run("reload", env=env).returncode == 0
    assert played.asked[0].headers["Authorization"].encode("latin-1").decode() == "Bearer s3cret-ä"
    other = tmp_path / "other"
    other.write_text("  x")
    assert run("reload", f"--token-file={other}", env=env).returncode == 0
    assert played.asked[1].headers["Authorization"] == "Bearer   x"


@pytest.mark.parametrize("content", [None, b"", b"\n", b"a\nb", b"a\0b"])
def test_wrong_token_files_are_refused(played, tmp_path, content):
    token = tmp_path / "token"
    if content is not None:
        token.write_bytes(content)
    done = played.run("reload", f"--token-file={token}")
    assert done.returncode == 2
    assert str(token) in done.stderr
    assert not played.asked


@pytest.mark.parametrize("url", ["", "localhost:9096", "localhost:x", "ftp://localhost", "file:///etc/passwd", "http://", "http://a b"])
def test_wrong_urls_are_refused(url):
    done = run("reload", f"--url={url}")
    assert done.returncode == 2
    assert "is not an address" in done.stderr
    assert ("add http://" in done.stderr) == ("://" not in url)


def test_nobody_there():
    done = run("status", "--url", NOBODY)
    assert done.returncode == 2
    assert NOBODY in done.stderr and "is the daemon running?" in done.stderr


def test_hangs_up(played):
    played.answer = HangUp()
    assert played.run("status").returncode == 2


def test_redirects_are_not_followed(played):
    played.answer = 302, {"Location": f"{played.url}/elsewhere"}, b""
    done = played.run("status")
    assert (done.returncode, len(played.asked)) == (1, 1)
    assert "HTTP 302" in done.stderr


def test_something_else_answers(played):
    for body in (b"<html>", b"", b"[1,2]", b'"data"', b"{}"):
        played.answer = 200, {}, body
        assert played.run("status").returncode == 2
        assert played.run("fire", "a=b").returncode == 2


def test_an_endless_answer_has_an_end(played):
    played.answer = 200, {}, b" " * (65 * 1024 * 1024)
    done = played.run("status")
    assert done.returncode == 2
    assert "too long" in done.stderr


def test_a_proxy_is_not_asked_for_this_machine(played):
    assert played.run("reload", env={"http_proxy": NOBODY, "HTTP_PROXY": NOBODY}).returncode == 0


# check --cluster


class Forbidding:
    """An API server that tells its kinds, and forbids everything else."""

    LISTS = {"/api/v1": [("persistentvolumeclaims", "PersistentVolumeClaim", True), ("nodes", "Node", False)],
             "/apis/apps/v1": [("deployments", "Deployment", True)]}

    def __init__(self):
        self.server = Server(self.handle)

    def handle(self, asked):
        kinds = self.LISTS.get(asked.path)
        if kinds is None:
            return 403, {}, {"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": "it is forbidden", "code": 403}
        return 200, {}, {"kind": "APIResourceList", "groupVersion": asked.path.split("/", 2)[2], "resources": [
            {"name": f"{plural}{of}", "kind": kind if not of else "Scale", "namespaced": namespaced, "group": group, "version": "v1"}
            for plural, kind, namespaced in kinds for of, group in (("", ""), ("/scale", "autoscaling"))]}


@pytest.mark.parametrize("address, rules", [
    ({"kind": "PersistentVolumeClaim", "namespace": "shop", "name": "data", "field": "spec.resources.requests.storage", "unit": "1Gi"},
     [{"apiGroups": [""], "resources": ["persistentvolumeclaims"], "resourceNames": ["data"], "verbs": ["get", "patch"]}]),
    ({"kind": "Node", "apiVersion": "v1", "name": "one", "field": "spec.count"},
     [{"apiGroups": [""], "resources": ["nodes"], "resourceNames": ["one"], "verbs": ["get", "patch"]}]),
    ({"kind": "Deployment", "namespace": "shop", "name": "cart", "container": "app", "resource": "memory", "unit": "64Mi",
      "apply": "pods"},
     [{"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["cart"], "verbs": ["get"]},
      {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
      {"apiGroups": [""], "resources": ["pods/resize"], "verbs": ["patch"]}]),
    ({"kind": "Deployment", "namespace": "shop", "name": "cart"}, None),       # role.yaml allows the scale of all
])
def test_check_prints_the_role_that_is_missing(tmp_path, address, rules):
    cluster = Forbidding()
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump({
        "current-context": "c", "clusters": [{"name": "c", "cluster": {"server": cluster.server.url}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {"token": "t"}}]}))
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"targets": {"one": {"kubernetes": address, "max": 9}}, "rules": [
        {"name": "slow", "match": ['alertname="Slow"'], "target": "one", "scale_up": {"by": 1}}]}))
    (tmp_path / "alertscaler.yaml").write_text(yaml.safe_dump({
        "rule_files": ["rules.yaml"], "clusters": {"default": {"kubeconfig": "kubeconfig"}}}))
    done = run("check", "--cluster", str(tmp_path / "alertscaler.yaml"))
    cluster.server.stop()
    assert done.returncode == 0 and "target `one` cannot be read: forbidden: it is forbidden" in done.stderr, done.stderr
    if not rules:
        assert "Role" not in done.stderr
        return
    role, binding = [item for item in yaml.safe_load_all(done.stderr[done.stderr.index("# To apply"):]) if item]
    prefix = "Cluster" if "namespace" not in address else ""
    assert (role["kind"], binding["kind"], binding["roleRef"]["kind"]) == (f"{prefix}Role", f"{prefix}RoleBinding", f"{prefix}Role")
    assert role["rules"] == rules and role["metadata"] == binding["metadata"]
    assert role["metadata"].get("namespace") == address.get("namespace") and binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "namespace": "alertscaler", "name": "alertscaler"}]
