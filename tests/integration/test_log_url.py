"""The action log of a running daemon: `log`, `explain` and `effects` with --url, and `/api/v1/log`."""
import datetime
import json
import pathlib
import socket
import subprocess
import threading

import pytest
import yaml

from harness.daemon import environment, find_binary
from harness.notification import alert, notification
from harness.played import Played, run
from harness.wait import eventually

from test_history import NIGHT, TARGETS, make_night, make_readers, make_rules, write_night, PROVIDERS
from test_log import DIGEST, START, make_action, make_alert, make_decision, make_notification, make_repeat, seal

INCIDENT = {"kind": "incident", "event": "opened", "digest": DIGEST, "fingerprint": "7be9cc40aa9853c5", "labels": {"alertname": "Slow"},
            "notification": "01KAJ2Q5J3M6V3Y8H8S9Q2B1ZC", "startsAt": "2026-11-20T13:59:00Z"}
COMMAND = {"kind": "command", "id": "01KAJ2Q5J3M6V3Y8H8S9Q2B1ZK", "command": "pause", "who": "the-boss", "remote": "10.6.6.6:1",
           "reason": "by hand", "replicas": None, "force": False, "until": None, "min": 1, "max": 12, "outcome": "done", "message": ""}


def make_effect(name, **more):
    return {"kind": "effect", "action": "01KAJ2Q5J3M6V3Y8H8S9Q2B1ZE", "decision": "01KAJ2Q5J3M6V3Y8H8S9Q2B1ZD", "target": TARGETS[name],
            "target_name": name, "rule": f"{name}-is-slow", "from": 4, "to": 6, "ready_after": 12.5, "resolved_after": 90.25,
            "ended": "resolved", "in_vain": 0, **more}


def at(hours):
    return (datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%S.000000Z")


def make_day():
    """Records of all sorts about both targets, of the last hours."""
    records = [START, make_notification(make_alert(deployment="checkout"), make_alert("Other", "no_rule", ()))]
    for name, target in TARGETS.items():
        decision = make_decision(4, 6, "scaled", rule=f"{name}-is-slow", name=name, target=target)
        records += [
            {**INCIDENT, "targets": [{"replicas": 4, "rule": f"{name}-is-slow", "target": target}]},
            {**decision, "id": f"01KAJ2Q5J3M6V3Y8H8S9Q2B1{name[:2].upper()}", "incidents": [DIGEST],
             "pause": {"who": "the-boss", "reason": "by hand", "until": None, "all": False}},
            make_action(4, 6, "applied", target=target, target_name=name, rule=f"{name}-is-slow",
                        decision=f"01KAJ2Q5J3M6V3Y8H8S9Q2B1{name[:2].upper()}"),
            make_effect(name, decision=f"01KAJ2Q5J3M6V3Y8H8S9Q2B1{name[:2].upper()}"),
            {**COMMAND, "target": target, "target_name": name},
            make_repeat(number=len(records)),
        ]
    both = [{"replicas": 4, "rule": f"{name}-is-slow", "target": target} for name, target in TARGETS.items()]
    records += [{**INCIDENT, "targets": both},
                {"kind": "denied", "count": 3, "error": "no credentials", "handler": "webhook", "remote": "10.9.9.9:1", "status": 401},
                make_decision(6, 6, "cooldown", rule="batch-is-slow", name="batch", target=TARGETS["batch"]), {**START, "kind": "stop"}]
    return [{"instance": "host-1", **record, "time": at(10 - number / 100)} for number, record in enumerate(records)]


@pytest.fixture
def make(make_daemon, node_group):
    def make(**options):
        groups = {"checkout": node_group(size=4), "batch": node_group(size=2)}
        return make_daemon(make_rules(groups), {**PROVIDERS, **options.pop("config", {})}, **options)
    return make


@pytest.fixture
def day(make):
    """A daemon with records of the last day in three files, and of its own start."""
    daemon = make(start=False)
    records = make_day()
    write_night(daemon.log_file, records[:6], records[6:11], records[11:])
    daemon.start()
    return daemon


def files_of(daemon):
    return sorted(str(path) for path in daemon.log_file.parent.glob(f"{daemon.log_file.name}*"))


def url_of(daemon):
    return f"http://{daemon.address}"


def read(daemon, query=""):
    answer = daemon.get(f"/api/v1/log{query}")
    assert answer.ok, answer.text
    return [json.loads(line) for line in answer.text.splitlines()], answer.headers


COMMANDS = [
    ["log"], ["log", "-o", "json"], ["log", "--target=batch"], ["log", "--target=*check*", "-o", "json"], ["log", "--target=nothing"],
    ["log", "--target", TARGETS["checkout"]], ["log", "--target=batc"],
    ["log", "--rule=batch-is-slow"], ["log", "--rule=slow", "-o", "json"], ["log", "--reason=duplicate", "-o", "json"],
    ["log", "--rule=batch-is-slwo"],
    ["log", "--kind=decision,action"], ["log", "--kind=repeat"], ["log", "--kind=incident", "--target=*batch*"],
    ["log", "--since=9h56m"], ["log", "--since=9h56m", "--kind=repeat"], ["log", "--until=9h57m"],
    ["log", "--since=9h57m", "--until=9h54m", "-o", "json"], ["log", "--reason=nonsense"], ["log", "--kind=nonsense"],
    ["explain", "--target=checkout", f"--at={at(1)}"], ["explain", "--target=batch", "-o", "json", f"--at={at(2)}"], ["explain", "--target=checkout", f"--at={at(9.95)}"],
    ["explain", "--target=batch", f"--at={at(99)}"], ["explain", "--target=batc", f"--at={at(1)}"],
    ["explain", "--target", TARGETS["checkout"], f"--at={at(1)}"],
    ["effects"], ["effects", "-o", "json", "--since=2026-01-01"], ["effects", "--since=10m"],
]


def test_the_same_output_by_file_and_by_url(day):
    files = files_of(day)
    assert len(files) == 3
    for words in COMMANDS:
        by_file, by_url = run(*words, *files), run(*words, "--url", url_of(day))
        if "--at=now" not in words and words[0] != "log":
            assert by_file.stdout or by_file.stderr
        assert (by_url.returncode, by_url.stdout, by_url.stderr) == (by_file.returncode, by_file.stdout, by_file.stderr), words


def test_the_chain_of_the_answer_is_whole(day, tmp_path):
    """A credential that is not narrowed gets the bytes of the file."""
    text = run("log", "-o", "json", "--url", url_of(day)).stdout
    assert text == "".join(pathlib.Path(path).read_text() for path in (*reversed(files_of(day)[1:]), day.log_file))
    copy = tmp_path / "copy.jsonl"
    copy.write_text(text)
    assert run("log", "verify", str(copy)).returncode == 0
    done = run("log", "verify", "--url", url_of(day))
    assert done.returncode == 2 and "the chain cannot be verified; name the files" in done.stderr


def test_a_file_or_a_daemon(day, tmp_path):
    url, files, config = url_of(day), files_of(day), str(day.config_file)
    (tmp_path / "client/alertscaler").mkdir(parents=True)
    (tmp_path / "client/alertscaler/config.yaml").write_text(yaml.safe_dump({"current_context": "shop", "contexts": [{"name": "shop", "url": url}]}))
    context = {"XDG_CONFIG_HOME": str(tmp_path / "client")}
    for words in (["log"], ["effects"], ["explain", "--target=batch", f"--at={at(1)}"]):
        name = words[0]
        by_file = run(*words, *files)
        # An address that nothing answers changes nothing where files are named.
        assert run(*words, *files, env={"ALERTSCALER_URL": "http://127.0.0.1:1"}).stdout == by_file.stdout
        assert run(*words, "--config.file", config, env={"ALERTSCALER_URL": "http://127.0.0.1:1"}).stdout == by_file.stdout
        for more, env in ((["--url", url], {}), ([], {"ALERTSCALER_URL": url}), ([], context), (["--context=shop"], context)):
            done = run(*words, *more, env=env)
            assert (done.returncode, done.stdout) == (by_file.returncode, by_file.stdout), (words, more, env)
        for more in ([files[0]], ["--config.file", config]):
            done = run(*words, "--url", url, *more)
            assert (done.returncode, done.stdout, done.stderr) == (
                2, "", f"alertscaler {name}: either --url, which reads the log of a running daemon, or {more[0]}, which reads files\n")
        done = run(*words, "--url=http://127.0.0.1:1")
        assert done.returncode == 2 and "is the daemon running? see --url" in done.stderr
    for words in (["explain", "alertname=Slow", "--url", url], ["explain", "--payload=x", "--url", url]):
        done = run(*words)
        assert done.returncode == 2 and "neither --url nor --context" in done.stderr


def test_a_narrowed_credential_sees_its_targets_only(make, tmp_path):
    daemon = make(config=make_readers(tmp_path), start=False)
    records = make_day()
    for record in records:
        if record["kind"] == "incident" and len(record["targets"]) == 1 and record["targets"][0]["target"] == TARGETS["checkout"]:
            record["labels"] = {"alertname": "CheckoutOnly"}
    records = write_night(daemon.log_file, records[:8], records[8:])
    daemon.start()

    def call(*words, who):
        return run(*words, "--url", url_of(daemon), "--token-file", str(tmp_path / who))

    everything = [json.loads(line) for line in call("log", "-o", "json", who="all").stdout.splitlines()]
    assert everything[:len(records)] == records
    text = call("log", "-o", "json", who="batch-team").stdout
    seen = [json.loads(line) for line in text.splitlines()]
    assert [record["seq"] for record in seen] == [
        r["seq"] for r in records if r.get("target_name") == "batch"
        or r["kind"] == "incident" and any(t["target"] == TARGETS["batch"] for t in r["targets"])]
    assert {record["kind"] for record in seen} == {"decision", "action", "effect", "command", "incident"}
    assert not any("hash" in record or "prev" in record for record in seen)
    for hidden in ("checkout", "the-boss", "CheckoutOnly", "10.6.6.6", "10.9.9.9", "alertmanager"):
        assert hidden not in text, hidden
    for record in seen:
        whole = next(r for r in records if r["seq"] == record["seq"])
        assert record["time"] == whole["time"] and record.get("output") == whole.get("output")
        if "who" in whole:
            assert (record["who"], record["remote"]) == ("another credential", "")
        if "pause" in whole:
            assert record["pause"]["who"] == "another credential"
    # The same for the commands and each filter.
    assert call("log", "--target=checkout", who="batch-team").returncode == 1
    assert call("log", "--target=*check*", "--kind=incident", who="batch-team").returncode == 1
    done = call("explain", "--target=checkout", who="batch-team")
    assert done.returncode == 1 and 'the log has no decision on "checkout"' in done.stderr
    done = call("explain", "--target=batch", who="batch-team")
    assert done.returncode == 0 and "the-boss" not in done.stdout and "checkout" not in done.stdout
    assert [row["rule"] for row in json.loads(call("effects", "-o", "json", who="batch-team").stdout)["rules"]] == ["batch-is-slow"]
    # Without a credential, or with a wrong one, there is nothing; the exit status is that of a log that cannot be read.
    for words in (["log"], ["explain", "--target=batch"], ["effects"]):
        done = run(*words, "--url", url_of(daemon))
        assert done.returncode == 2 and done.stdout == "" and "HTTP 401" in done.stderr and "--token-file" in done.stderr


def test_the_answer_ends_at_10000_records(make):
    daemon = make(start=False)
    write_night(daemon.log_file, [{**START, "kind": "stop", "time": NIGHT.strftime("%Y-%m-%dT%H:%M:%S.000000Z")}] * 10001)
    daemon.start()
    first = daemon.get("/api/v1/log?limit=10000")
    seqs, after = [], 0
    for _ in range(1000):   # a busy machine may cut an answer earlier
        page, headers = read(daemon, f"?after={after}")
        assert len(page) <= 10000
        seqs += [record["seq"] for record in page]
        after = int(headers["Alertscaler-Log-Next"])
        if headers["Alertscaler-Log-More"] == "no":
            break
    assert seqs[:10001] == list(range(1, 10002)) and seqs == list(range(1, len(seqs) + 1))
    assert first.headers["Content-Type"] == "application/x-ndjson"
    assert len(first.text.splitlines()) <= 10000 and first.headers["Alertscaler-Log-More"] == "yes"
    assert len(run("log", "-o", "json", "--url", url_of(daemon)).stdout.splitlines()) == len(seqs)
    for query, says in (("limit=10001", "from 1 to 10000"), ("limit=0", "from 1 to 10000"), ("after=-1", "after: expected a number"),
                        ("after=x", "after: expected a number"), ("kind=decision,nonsense", "kind: expected"), ("kind=decision,", "kind: expected"),
                        ("since=noon", "since: expected a time"), ("follow=../x", "follow: expected an id"), ("follow=" + "x" * 33, "follow")):
        answer = daemon.get(f"/api/v1/log?{query}")
        assert answer.status == 400 and says in answer.json["error"], query


def test_large_records_and_lines_that_are_no_records(make):
    """An answer has 4 MiB, unless one record is longer; nothing is cut, and what is left out is counted."""
    daemon = make(start=False)
    big = [{**START, "version": "x" * size} for size in (3 << 20, 3 << 20, 9 << 20, 10)]
    write_night(daemon.log_file, big)
    lines = daemon.log_file.read_text().splitlines(True)
    pathlib.Path(f"{daemon.log_file}.1").write_text("".join(lines[:2]) + "no record\n" + "".join(lines[2:3]))
    daemon.log_file.write_text(lines[3])
    daemon.start()
    after, pages, skipped = 0, [], 0
    for _ in range(100):
        page, headers = read(daemon, f"?after={after}")
        skipped += int(headers["Alertscaler-Log-Skipped"])
        pages += [[record["seq"] for record in page]] if page else []
        after = int(headers["Alertscaler-Log-Next"])
        if headers["Alertscaler-Log-More"] == "no":
            break
    assert pages[:3] == [[1], [2], [3]] and [seq for page in pages for seq in page] == list(range(1, pages[-1][-1] + 1))
    assert skipped == 1
    done = run("log", "-o", "json", "--url", url_of(daemon))
    assert done.returncode == 0 and done.stdout.startswith("".join(lines))
    assert done.stderr == "alertscaler log: 1 lines of the log were left out: they are too long for the API, or are no records\n"


class Follower:
    def __init__(self, daemon, *words):
        self.process = subprocess.Popen([find_binary(), "log", "--follow", "-o", "json", "--url", url_of(daemon), *words],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
        self.lines = []
        self.errors = []
        self.threads = [threading.Thread(target=self.read, args=pair) for pair in
                        ((self.process.stdout, self.lines), (self.process.stderr, self.errors))]
        for thread in self.threads:
            thread.start()

    def read(self, stream, lines):
        for line in stream:
            lines.append(line)

    def end(self):
        self.process.kill()
        self.process.wait()
        for thread in self.threads:
            thread.join()


@pytest.fixture
def follow():
    followers = []

    def follow(daemon, *words):
        followers.append(Follower(daemon, *words))
        return followers[-1]
    yield follow
    for follower in followers:
        follower.end()


def send(daemon, count, first=0):
    for number in range(first, first + count):
        daemon.notify(notification(alert({"alertname": "Unknown", "number": str(number)})))


def test_follow_loses_nothing_over_rotations_and_a_restart(make, follow):
    daemon = make(config={"action_log": {"path": "actions.jsonl", "max_size": "4KiB", "keep": 1000}}, start=False)
    daemon.start()
    follower = follow(daemon)
    send(daemon, 40)
    eventually(lambda: len(follower.lines) >= 41)
    daemon.stop()
    eventually(lambda: follower.errors)     # it has noticed
    daemon.start()
    send(daemon, 40, 40)

    def everything():
        files = sorted(daemon.log_file.parent.glob("actions.jsonl*"), key=lambda path: -int(path.suffix[1:]) if path.suffix[1:].isdigit() else 0)
        assert len(files) > 5
        return "".join(path.read_text() for path in files)
    eventually(lambda: "".join(follower.lines) == everything())
    assert len(follower.lines) >= 83
    assert len(follower.errors) == 1 and "trying again" in follower.errors[0], follower.errors
    assert follower.process.poll() is None


def test_follow_prints_what_a_filter_leaves(make, follow):
    daemon = make()
    one, other = follow(daemon, "--kind=notification"), follow(daemon, "--target=batch", "--kind=action")
    send(daemon, 3)
    daemon.notify(notification(alert({"alertname": "Slow", "target": "checkout"}), alert({"alertname": "Slow", "target": "batch"})))
    for name in TARGETS:
        daemon.wait_record("action", target_name=name, outcome="applied")
    eventually(lambda: len(one.lines) >= 4 and other.lines)
    assert {json.loads(line)["kind"] for line in one.lines} == {"notification"}
    assert {json.loads(line)["target_name"] for line in other.lines} == {"batch"}


def test_the_eleventh_follower_is_refused(make, tmp_path):
    tokens = []
    for name, targets in (("all", None), ("batch-team", ["batch"]), ("others", ["x*"])):
        (tmp_path / name).write_text(name)
        tokens.append({"name": name, "file": str(tmp_path / name), "permissions": ["read"], **({"targets": targets} if targets else {})})
    daemon = make(config={"receiver": {"tokens": tokens}}, start=False).start()

    def ask(who, number):
        daemon.headers = {"Authorization": f"Bearer {who}"}
        return daemon.get(f"/api/v1/log?follow=f{number}&limit=1")

    # Narrowed credentials have half of the places.
    assert [ask(("batch-team", "others")[number % 2], number).status for number in range(6)] == [200] * 5 + [503]
    assert [ask("all", number).status for number in range(5)] == [200] * 5
    refused = ask("all", 5)
    assert refused.status == 503 and refused.headers["Retry-After"]
    assert refused.json["error"] == "10 clients follow the action log already: end one, then try again after 30 s"
    done = run("log", "--follow", "--url", url_of(daemon), "--token-file", str(tmp_path / "all"))
    assert done.returncode == 2 and "HTTP 503: 10 clients follow the action log already" in done.stderr and done.stdout == ""
    # Those that have a place keep it, and all others read without following.
    assert ask("all", 0).status == 200 and ask("batch-team", 0).status == 200
    assert daemon.get("/api/v1/log?limit=1").status == 200


def test_peers_that_never_read_hold_nothing_up(make):
    daemon = make(start=False)
    write_night(daemon.log_file, [{**START, "version": "x" * 100000}] * 200)
    daemon.start()
    host, port = daemon.address.split(":")
    peers = []
    for _ in range(30):
        peer = socket.create_connection((host, int(port)))
        peer.sendall(b"GET /api/v1/log HTTP/1.1\r\nHost: a\r\n\r\n")
        peers.append(peer)
    # While 16 requests wait, the next one is refused.
    eventually(lambda: len(run("log", "-o", "json", "--url", url_of(daemon)).stdout.splitlines()) >= 200)
    send(daemon, 3)
    assert daemon.get("/-/healthy").ok
    for peer in peers:
        peer.close()
    daemon.stop()


def test_a_daemon_that_ends_in_the_middle(tmp_path):
    """A clear error and the exit status 2; what came before is printed."""
    lines = [line.encode() for line in seal([START] * 4)]
    head = {"Content-Type": "application/x-ndjson", "Alertscaler-Log-Missing": "0", "Alertscaler-Log-Skipped": "0"}
    more = {**head, "Alertscaler-Log-Next": "2", "Alertscaler-Log-More": "yes"}
    done = {**head, "Alertscaler-Log-Next": "4", "Alertscaler-Log-More": "no"}
    for then, says in (
            (ConnectionError(), "the daemon: http://"),
            ((200, {}, lines[2]), "the daemon: the answer is not alertscaler's"),
            ((200, {**more, "Alertscaler-Log-Next": "1"}, lines[2]), "the daemon: the answer is not alertscaler's"),
            ((200, done, lines[2][:-1]), "the daemon: the answer is not alertscaler's"),
            ((500, {}, {"status": "error", "error": "broken\x1b[31m"}), "the daemon: HTTP 500: broken\\x1b[31m")):
        daemon = Played()

        def answer(asked, then=then):
            if "after=0" in asked.path:
                return 200, more, b"".join(lines[:2])
            if isinstance(then, Exception):
                raise then
            return then
        daemon.answer = answer
        try:
            ended = daemon.run("log", "-o", "json")
            assert ended.returncode == 2 and says in ended.stderr, (then, ended)
            assert ended.stdout == (lines[0] + lines[1]).decode()
            ended = daemon.run("explain", "--target=checkout")
            assert ended.returncode == 2 and says in ended.stderr and ended.stdout == "", (then, ended)
        finally:
            daemon.server.stop()


def test_an_answer_that_ends_too_early():
    (line,) = seal([START])
    with socket.create_server(("127.0.0.1", 0)) as server:
        def answer():
            peer, _ = server.accept()
            with peer:
                peer.recv(65536)
                peer.sendall(b"HTTP/1.1 200 OK\r\nAlertscaler-Log-Next: 1\r\nAlertscaler-Log-More: no\r\nContent-Length: 100000\r\n\r\n" + line.encode())
        thread = threading.Thread(target=answer)
        thread.start()
        done = run("log", f"--url=http://127.0.0.1:{server.getsockname()[1]}")
        thread.join()
    assert (done.returncode, done.stdout) == (2, "") and "bytes remaining" in done.stderr, done


def test_a_busy_daemon_is_asked_again():
    lines = [line.encode() for line in seal([START] * 2)]
    head = {"Alertscaler-Log-Missing": "3", "Alertscaler-Log-Skipped": "0", "Alertscaler-Log-More": "yes"}
    daemon = Played()
    answers = iter([(200, {**head, "Alertscaler-Log-Next": "1"}, lines[0]), (503, {}, {"status": "error", "error": "too many"}),
                    (200, {**head, "Alertscaler-Log-Next": "2", "Alertscaler-Log-More": "no", "Alertscaler-Log-Missing": "0"}, lines[1])])
    daemon.answer = lambda asked: next(answers)
    try:
        done = daemon.run("log", "-o", "json")
        assert (done.returncode, done.stdout) == (0, b"".join(lines).decode())
        assert done.stderr == ("alertscaler log: 3 records are not in the files of this daemon: a rotation has deleted them, or another "
                               "replica has them\n")
        assert ["after=0" in daemon.asked[0].path] + ["after=1" in asked.path for asked in daemon.asked[1:]] == [True] * 3
    finally:
        daemon.server.stop()
