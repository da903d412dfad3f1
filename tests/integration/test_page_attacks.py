"""Attacks on the pages, on the API and on the files behind them: readers who look for names that are not theirs, a damaged index and
damaged log files."""
import html
import json
import os
import pathlib
import re
import socket
import sqlite3
import time
import urllib.parse

import pytest

from harness.notification import alert, notification
from harness.played import run
from harness.wait import eventually

from test_history import ask, expect, index_of, make_night, make_rules, write_night, PROVIDERS

MIB = 1 << 20
REASON = {"reason": "a test"}


@pytest.fixture
def make(make_daemon, node_group):
    def make(config=None, **options):
        groups = {"checkout": node_group(size=4), "batch": node_group(size=2)}
        daemon = make_daemon(make_rules(groups), {**PROVIDERS, **(config or {})}, **options)
        daemon.groups = groups
        return daemon
    return make


def give_tokens(folder, **scopes):
    """For `receiver.tokens`: each credential's secret is its name."""
    tokens = []
    for name, scope in scopes.items():
        (folder / name).write_text(name)
        tokens.append({"name": name, "file": str(folder / name), "permissions": ["notify", "read", "admin"], **scope})
    return tokens


def become(daemon, name):
    daemon.headers = {"Authorization": f"Bearer {name}"}


# --- names of others

VOLATILE = re.compile(r'<footer>.*|<p id="live".*|data-(version|now)="[^"]*"', re.S)
LINES = ("Alertscaler-Log-Missing", "Alertscaler-Log-Skipped")      # how far a page gets depends on the machine


def compare(daemon, path, name, unknown):
    """The answer about a name of others is that about a name that does not exist."""
    answers = []
    for one in (name, unknown):
        answer = daemon.get(path.replace("NAME", urllib.parse.quote(one, safe="")))
        text = VOLATILE.sub("", answer.text).replace(urllib.parse.quote(one, safe=""), "NAME").replace(html.escape(one), "NAME").replace(one, "NAME")
        answers.append((answer.status, [answer.headers[line] for line in LINES], text))
    assert answers[0] == answers[1], path


@pytest.fixture
def shared(make, tmp_path):
    """A daemon with records of last night in its log, and of now in its memory, of both targets."""
    tokens = give_tokens(tmp_path, **{"all": {}, "the-boss": {}, "batch-team": {"targets": ["batch"]}, "batch-rules": {"rules": ["batch-*"]}})
    daemon = make({"receiver": {"tokens": tokens}}, flags=["--web.enable-admin-api"], start=False)
    daemon.night = write_night(daemon.log_file, make_night(60))
    become(daemon, "the-boss")
    daemon.start()
    daemon.notify(notification(alert({"alertname": "CheckoutOnly", "target": "checkout"}), alert({"alertname": "Queue", "target": "batch"})))
    for name in ("checkout", "batch"):
        daemon.wait_record("action", target_name=name, outcome="applied")
    assert daemon.post("/api/v1/targets/checkout/pause", REASON).ok and daemon.post("/api/v1/targets/batch/pause", REASON).ok
    return daemon


def test_a_narrowed_reader_cannot_tell_names_of_others_from_none(shared):
    daemon = shared
    become(daemon, "all")
    target = daemon.target("checkout")["id"]
    [digest] = [one["digest"] for one in daemon.get("/api/v1/incidents").json["data"] if one["labels"]["target"] == "checkout"]
    late = daemon.get("/api/v1/decisions?target=checkout").json["data"][0]["id"]
    early = next(record["id"] for record in daemon.night if record.get("target_name") == "checkout")
    eventually(lambda: daemon.get(f"/api/v1/decisions/{early}").ok)
    unknown = target.replace("workers", "worker5")
    become(daemon, "batch-team")
    paths = [f"/{kind}/NAME{query}" for kind in ("targets", "groups", "rules", "api/v1/targets", "api/v1/debug/targets")
             for query in ("", "?range=7d", "?range=nonsense", "?from=nonsense", "?since=x", "?page=2")]
    paths += ["/?q=NAME", "/?q=NAME&state=firing", "/rules?q=NAME", "/api/v1/decisions?target=NAME", "/api/v1/decisions?target=NAME&limit=1", "/api/v1/decisions?rule=NAME",
              "/api/v1/log?target=NAME", "/api/v1/log?target=*NAME*&kind=incident", "/api/v1/log?target=NAME&limit=1", "/api/v1/decisions?target=NAME&since=2026-11-20T22:00:00Z",
              "/api/v1/policies/shop/NAME"]
    for path in paths:
        for name, none in (("checkout", "checkous"), (target, unknown), ("checkout-is-slow", "checkout-is-slew")):
            compare(daemon, path, name, none)
    for one in (late, early):
        none = one[:-2] + "ZZ"
        for path in ("/decisions/NAME", "/decisions/NAME?earlier=1", "/decisions/NAME?compute=1", "/decisions/NAME?since=x", "/api/v1/decisions/NAME",
                     "/api/v1/decisions?before=NAME", "/api/v1/decisions?before=NAME&limit=1", "/api/v1/decisions?before=NAME&reason=scaled"):
            compare(daemon, path, one, none)
    compare(daemon, "/incidents/NAME", digest, "0" * 64)
    become(daemon, "batch-rules")
    for path in ("/rules/NAME", "/rules?q=NAME", "/rules/NAME?since=x"):
        compare(daemon, path, "checkout-is-slow", "checkout-is-slew")
    compare(daemon, "/incidents/NAME", digest, "0" * 64)


def test_no_list_names_or_counts_what_is_not_the_readers(shared):
    daemon = shared
    become(daemon, "all")
    batch = daemon.get("/api/v1/decisions?target=batch").json["data"][0]["id"]
    paths = ["/", "/incidents", "/rules", "/targets/batch", "/targets/batch?range=7d", "/groups/batch", "/rules/batch-is-slow", f"/decisions/{batch}", "/account",
             *(f"/?state={state}" for state in ("firing", "locked", "paused", "failing", "at_max")), "/?sort=decided",
             *(f"/api/v1/{name}" for name in ("status", "targets", "rules", "incidents", "approvals", "policies", "decisions", "decisions?limit=1", "decisions?limit=1000",
                                              "log", "log?kind=incident", "targets/batch", "debug/targets/batch"))]
    whole = {path: daemon.get(path) for path in paths}
    assert "checkout" in whole["/api/v1/targets"].text and "CheckoutOnly" in whole["/api/v1/incidents"].text
    become(daemon, "batch-team")
    for path in paths:
        answer = daemon.get(path)
        for hidden in ("checkout", "CheckoutOnly", "the-boss"):
            assert hidden not in answer.text, (path, hidden)
        assert answer.ok and ("batch" in answer.text or path in ("/account", "/api/v1/status", "/api/v1/approvals", "/api/v1/policies", "/?state=failing", "/?state=at_max")), path
    status = daemon.get("/api/v1/status").json["data"]
    assert (status["rules"], status["targets"], status["incidents_open"], status["query_errors"]) == (1, 1, 1, [])
    assert [len(daemon.get(f"/api/v1/{name}").json["data"]) for name in ("targets", "rules", "incidents")] == [1, 1, 1]
    assert len(daemon.get("/api/v1/decisions?limit=1").json["data"]) == 1
    become(daemon, "batch-rules")       # sees all targets, and its rules alone
    for path in ("/rules", "/incidents", "/api/v1/rules", "/api/v1/incidents", "/rules/batch-is-slow"):
        text = daemon.get(path).text
        assert "batch-is-slow" in text and "checkout-is-slow" not in text and "CheckoutOnly" not in text, path
    assert daemon.get("/api/v1/status").json["data"]["rules"] == 1


def test_no_suggestion_or_completion_has_names_of_others(shared, tmp_path):
    def call(*words, who="batch-team"):
        return run(*words, f"--url={shared.url}", "--token-file", str(tmp_path / who))

    for words in (["completion", "targets"], ["completion", "rules"], ["get", "targets"], ["get", "rules"], ["get", "incidents"], ["get", "decisions"], ["status"],
                  ["log", "-o", "json"], ["effects"], ["explain", "--target=batch"], ["describe", "target", "batch"], ["get", "targets", "-o", "json"]):
        done = call(*words)
        assert done.returncode == (1 if words == ["effects"] else 0) and not re.search("[Cc]heckout|the-boss", done.stdout + done.stderr), words
        assert re.search("[Cc]heckout", call(*words[:2], who="all").stdout + call(*words, who="all").stdout) or words[0] in ("describe", "explain", "effects", "status"), words
    for words in (["get", "targets"], ["get", "rules"], ["describe", "target"], ["status"], ["log", "--target"], ["explain", "--target"], ["log", "--rule"],
                  ["pause", "--reason=r"], ["get", "incidents"], ["get", "decisions"]):
        for near, none in (("checkou", "chackou"), ("checkout-is-slo", "chackout-is-slo")):
            seen, other = call(*words, near), call(*words, none)
            if words[0] == "explain":       # names the present time
                seen.stderr, other.stderr = (re.sub(r"\d{4}-\S*Z", "", done.stderr) for done in (seen, other))
            if words[0] != "pause":
                assert (seen.returncode, seen.stdout, seen.stderr.replace(near, "X")) == (other.returncode, other.stdout, other.stderr.replace(none, "X")), words
            assert "checkout\"" not in seen.stderr and "checkout-is-slow" not in seen.stderr, words
    assert '"batch"' in call("describe", "target", "bacth").stderr


def test_further_targets_of_others_are_not_counted(make_daemon, node_group, tmp_path):
    """An incident of eleven targets: the list has five of the reader's seven, and counts the two others of the reader."""
    groups = {f"{whose}{number}": node_group(size=1) for number in range(5) for whose in ("our", "their")} | {"our5": node_group(size=1), "our6": node_group(size=1)}
    rules = {"targets": {name: {"node_group": {"provider": "mine", "url": group.url}, "max": 9} for name, group in groups.items()},
             "rules": [{"name": f"of-{name}", "match": ['alertname="All"'], "target": name, "scale_up": {"by": 1}} for name in groups]}
    tokens = give_tokens(tmp_path, all={}, ours={"targets": ["our*"]})
    daemon = make_daemon(rules, {**PROVIDERS, "receiver": {"tokens": tokens}}, start=False)
    become(daemon, "all")
    daemon.start()
    daemon.notify(notification(alert({"alertname": "All"})))
    eventually(lambda: len(daemon.get("/api/v1/targets").json["data"]) == 12)
    for path in ("/", "/incidents"):
        become(daemon, "all")
        assert ">and 7 more<" in daemon.get(path).text, path
        become(daemon, "ours")
        text = daemon.get(path).text
        assert ">and 2 more<" in text and "their" not in text, path
    [incident] = daemon.get("/api/v1/incidents").json["data"]
    assert len(incident["targets"]) == 7 and "their" not in json.dumps(incident)


# --- the index and the files of the log


def lock(path):
    """Another process uses the index."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA locking_mode=EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    return other


def warnings_of(daemon):
    return daemon.get("/api/v1/decisions").json.get("warnings", [])


@pytest.mark.parametrize("damage", ["folder", "link", "pipe", "locked", "folder-of-the-journal"])
def test_an_index_that_cannot_be_used(make, damage):
    """The daemon works, and says so; once the index can be used, it is."""
    daemon = make(start=False)
    records = write_night(daemon.log_file, make_night(50))
    index = index_of(daemon)
    journal = pathlib.Path(f"{index}-wal")
    other = None
    if damage == "folder":
        index.mkdir()
    elif damage == "link":
        index.symlink_to(daemon.log_file)
    elif damage == "pipe":
        os.mkfifo(index)
    elif damage == "locked":
        other = lock(index)
    else:
        journal.mkdir()
    daemon.start()
    daemon.notify(notification(alert({"alertname": "Slow", "target": "checkout"})))
    daemon.wait_record("action", target_name="checkout", outcome="applied")
    assert any(str(index) in warning for warning in eventually(lambda: warnings_of(daemon))), warnings_of(daemon)
    assert daemon.get(f"/api/v1/decisions/{records[0]['id']}").status == 503
    page = daemon.get(f"/decisions/{records[0]['id']}")
    assert page.status == 503 and "The history cannot be read" in page.text
    assert daemon.get("/targets/checkout?from=2026-11-20T21:00:00Z").ok and daemon.get("/").ok
    assert len(run("log", "-o", "json", f"--url={daemon.url}").stdout.splitlines()) > len(records)
    assert "the history of the action log is not complete" in daemon.process.log_text()
    assert daemon.log_file.is_file() and daemon.records("decision")
    if damage == "folder":
        index.rmdir()
    elif other:
        other.close()
    elif damage == "folder-of-the-journal":
        journal.rmdir()
    else:
        index.unlink()
    eventually(lambda: daemon.get(f"/api/v1/decisions/{records[0]['id']}").ok and not warnings_of(daemon), timeout=60)
    daemon.stop()


@pytest.mark.parametrize("damage", ["deleted", "torn", "garbage", "all-deleted", "garbage-and-folder"])
def test_an_index_that_is_damaged_while_it_is_used(make, damage):
    daemon = make(start=False)
    records = write_night(daemon.log_file, make_night(400))
    daemon.start()
    assert ask(daemon, limit=1000) == expect(records, limit=1000)
    index, journal = index_of(daemon), pathlib.Path(f"{index_of(daemon)}-wal")
    if damage in ("deleted", "all-deleted"):
        index.unlink()
    if damage == "all-deleted":
        journal.unlink(missing_ok=True)
    if damage == "torn":
        os.truncate(index, 5000)
        os.truncate(journal, 100)
    if damage.startswith("garbage"):
        index.write_bytes(os.urandom(index.stat().st_size))
        journal.write_bytes(os.urandom(max(journal.stat().st_size, 100000)))
    if damage == "garbage-and-folder":
        journal.unlink()
        journal.mkdir()
    # More records than the cache of the database has, so that it reads the file.
    for number in range(20):
        daemon.notify(notification(alert({"alertname": f"Unknown{number}", "target": "batch"})))
    daemon.notify(notification(alert({"alertname": "Slow", "target": "checkout"})))
    daemon.wait_record("action", target_name="checkout", outcome="applied")
    for _ in range(3):
        assert daemon.get("/api/v1/decisions?limit=1000").status in (200, 503)
        assert daemon.get("/targets/checkout?from=2026-11-20T21:00:00Z").ok
    if damage == "garbage-and-folder":
        journal.rmdir()
    for _ in range(2):
        eventually(lambda: [one["id"] for one in ask(daemon, limit=1000)[0]] == [record["id"] for record in reversed(daemon.records("decision"))], timeout=60)
        daemon.restart()
    daemon.stop()


def test_log_files_that_are_none(make):
    """Pipes, links to themselves, folders, a line of 20 MiB, zeros, a torn record: all else is found."""
    daemon = make(config={"action_log": {"path": "actions.jsonl", "max_size": "64MiB", "keep": 20}}, start=False)
    parts = [make_night(40), make_night(40, 40), make_night(40, 80)]
    records = write_night(daemon.log_file, *parts)
    base = str(daemon.log_file)
    lines = pathlib.Path(f"{base}.2").read_bytes().splitlines(keepends=True)
    huge = b'{"kind":"decision","x":"' + b"x" * (20 * MIB) + b'"}\n'
    pathlib.Path(f"{base}.2").write_bytes(b"".join(lines[:10]) + huge + b"\0" * 100000 + b"\n" + b"".join(lines[10:]) + b'{"kind":"decision","seq":9')
    lines = pathlib.Path(f"{base}.1").read_bytes().splitlines(keepends=True)
    pathlib.Path(f"{base}.1").write_bytes(b"".join(lines[:5]) + b'\xff\xfe\n{"seq":9223372036854775807,"time":"9999-12-31T23:59:59Z","kind":"decision"}\n[]\n"x"\n{}\n'
                                          + b"[" * 5000 + b"\n" + b"".join(lines[5:]))
    os.mkfifo(f"{base}.3")
    os.symlink(f"{base}.4", f"{base}.4")
    os.symlink("/dev/zero", f"{base}.5")
    os.mkdir(f"{base}.6")
    with socket.socket(socket.AF_UNIX) as other:
        os.chdir(daemon.directory)
        other.bind("actions.jsonl.7")
        pathlib.Path(f"{base}.8").write_bytes(b"")
        with open(f"{base}.9", "wb") as sparse:
            sparse.truncate(300 * MIB)
        daemon.start()
        own = [record["id"] for record in records if record["kind"] == "decision"]
        eventually(lambda: [one["id"] for one in ask(daemon, limit=1000)[0]] == own[::-1], timeout=60)
        seen, after, skipped = [], 0, 0
        for _ in range(200):
            answer = daemon.get(f"/api/v1/log?after={after}")
            assert answer.ok, answer.text
            seen += [json.loads(line)["seq"] for line in answer.text.splitlines()]
            skipped += int(answer.headers["Alertscaler-Log-Skipped"])
            after = int(answer.headers["Alertscaler-Log-Next"])
            if answer.headers["Alertscaler-Log-More"] == "no":
                break
        assert set(seen) >= {record["seq"] for record in records} and seen == sorted(seen) and skipped > 0
        done = run("log", "-o", "json", f"--url={daemon.url}")
        assert done.returncode == 0 and "lines of the log were left out" in done.stderr
        daemon.notify(notification(alert({"alertname": "Slow", "target": "checkout"})))
        daemon.wait_record("action", target_name="checkout", outcome="applied")
        assert daemon.get("/targets/checkout?from=2026-11-20T21:00:00Z").ok
        began = time.monotonic()
        daemon.stop()
        assert time.monotonic() - began < 20
