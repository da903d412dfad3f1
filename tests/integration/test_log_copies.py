"""The leader copies records that its files lack from other replicas. Played replicas lie in every way: nothing wrong gets into the history,
the memory stays bounded, and the loop goes on. test_absences.py has real replicas."""
import json
import pathlib
import re
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from harness.daemon import dump_yaml, has_sanitizers
from harness.wait import eventually, steadily

from test_history import TARGETS, make_rules, write_night, PROVIDERS
from test_log import START, make_action, make_decision, seal
from test_log_url import at

COUNT = 400                     # records of the whole log
GAP = range(101, 301)           # those that our files lack
TOKEN = "token-of-the-replicas"
COMPLAINT = "records of another replica cannot be copied"


def make_records():
    target = TARGETS["checkout"]
    records = [START]
    for number in range(1, COUNT):
        ident = f"01KAJ2Q5J3M6V3Y8H8S9Q{number:05}"
        records.append({**make_decision(4, 6, "scaled", rule="checkout-is-slow", name="checkout", target=target), "id": ident}
                       if number % 2 else make_action(4, 6, "applied", target=target, target_name="checkout", rule="checkout-is-slow",
                                                      decision=f"01KAJ2Q5J3M6V3Y8H8S9Q{number - 1:05}"))
    return [{"instance": "host-1", **record, "time": at(10 - number / 100)} for number, record in enumerate(records)]


def id_of(lines, number):
    """Of a decision near a record."""
    return json.loads(lines[number if number % 2 else number + 1])["id"]


class Replica:
    """Answers GET /WAY/api/v1/log; `ways` has a function for each."""

    def __init__(self, lines):
        self.lines, self.asked, self.ends = lines, [], False
        replica = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):       # noqa: N802
                url = urllib.parse.urlsplit(self.path)
                way, path = url.path.removeprefix("/").split("/", 1)
                query = {key: int(value) for key, value in urllib.parse.parse_qsl(url.query)}
                replica.asked.append((way, path, query, self.headers["Authorization"]))
                try:
                    getattr(replica, way)(self, query["after"], query["limit"])
                except OSError:
                    pass            # the client has had enough

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, way):
        return f"http://127.0.0.1:{self.server.server_port}/{way}"

    def stop(self):
        self.ends = True
        self.server.shutdown()
        self.server.server_close()

    @staticmethod
    def send(handler, body, status=200, more="no", **headers):
        handler.send_response(status)
        handler.send_header("Content-Type", "application/x-ndjson")
        handler.send_header("Alertscaler-Log-More", more)
        handler.send_header("Content-Length", str(len(body)))
        for key, value in headers.items():
            handler.send_header(key, value)
        handler.end_headers()
        handler.wfile.write(body)

    def send_lines(self, handler, lines, more="no"):
        self.send(handler, "".join(lines).encode(), more=more)

    def part(self, after, limit):
        return self.lines[after:after + limit]

    def honest(self, handler, after, limit):
        self.send_lines(handler, self.part(after, limit))

    def sparing(self, handler, after, limit):
        """At most 37 records an answer, as if they were large."""
        self.send_lines(handler, self.part(after, min(limit, 37)), more="yes")

    def half(self, handler, after, limit):
        """Has lost records up to 200."""
        self.send_lines(handler, self.lines[max(after, 200):max(after, 200) + limit])

    def empty(self, handler, after, limit):
        self.send(handler, b"")

    def never(self, handler, after, limit):
        self.send(handler, b"", more="yes")

    def huge(self, handler, after, limit):
        self.send(handler, b"{" + b" " * (20 << 20))

    def one_huge_line(self, handler, after, limit):
        self.send(handler, b'{"a":"' + b"x" * (15 << 20) + b'"}\n')

    def endless(self, handler, after, limit):
        handler.send_response(200)
        handler.end_headers()
        while not self.ends:
            handler.wfile.write(self.lines[after].encode() * 100)

    def slow(self, handler, after, limit):
        handler.send_response(200)
        handler.end_headers()
        for byte in "".join(self.part(after, limit)):
            if self.ends:
                return
            handler.wfile.write(byte.encode())
            time.sleep(0.2)

    def silent(self, handler, after, limit):
        while not self.ends:
            time.sleep(0.1)

    def redirect(self, handler, after, limit):
        self.send(handler, b"", 302, Location=self.url("honest") + f"/api/v1/log?after={after}&limit={limit}")

    def unauthorized(self, handler, after, limit):
        self.send(handler, b'{"status":"error"}', 401)

    def broken(self, handler, after, limit):
        self.send(handler, b"a\nts=2026 level=error msg=forged\n\x1b[31m", 500)

    def garbage(self, handler, after, limit):
        self.send(handler, bytes(range(256)) * 1000)

    def other_numbers(self, handler, after, limit):
        self.send_lines(handler, self.lines[:limit])

    def backwards(self, handler, after, limit):
        self.send_lines(handler, self.part(after, limit)[::-1])

    def twice(self, handler, after, limit):
        self.send_lines(handler, [line for line in self.part(after, limit) for _ in range(2)])

    def narrowed(self, handler, after, limit):
        records = [json.loads(line) for line in self.part(after, limit)]
        self.send_lines(handler, [json.dumps({k: v for k, v in r.items() if k not in ("hash", "prev")}, sort_keys=True,
                                             separators=(",", ":")) + "\n" for r in records])

    def altered(self, handler, after, limit):
        self.send_lines(handler, [line.replace("host-1", "host-9") for line in self.part(after, limit)])

    def forged(self, handler, after, limit):
        """A chain that goes on from our record before the gap, and is whole in itself."""
        records = [json.loads(line) for line in self.part(after, limit)]
        for record in records:
            del record["hash"], record["prev"], record["seq"]
            record["instance"] = "forged"
        self.send_lines(handler, seal(records, after + 1, json.loads(self.lines[after - 1])["hash"]))

    def other_chain(self, handler, after, limit):
        self.send_lines(handler, seal([{**START, "instance": "forged"}] * limit, after + 1))


GOOD = {"honest", "sparing", "half"}
ATTACKS = [name for name, value in vars(Replica).items() if callable(value) and not name.startswith("_")
           and name not in GOOD | {"url", "stop", "send", "send_lines", "part"}]


def configure(tmp_path, urls, **log):
    token = tmp_path / "replica.token"
    token.write_text(TOKEN + "\n")
    http = {"authorization": {"credentials_file": str(token)}}
    return {**PROVIDERS, "action_log": {"path": str(tmp_path / "alertscaler" / "actions.jsonl"), **log,
                                        "replicas": {"urls": urls, "http_config": http}}}


@pytest.fixture
def night(make_daemon, node_group, tmp_path):
    """make(urls of the replicas): a daemon whose log lacks GAP; the lines of the whole log, and the one that has them."""
    replicas = []

    def make(*ways, **log):
        daemon = make_daemon(make_rules({"checkout": node_group(size=4), "batch": node_group(size=2)}), PROVIDERS, start=False,
                             log_level="info")
        records = make_records()
        write_night(daemon.log_file, records[:GAP[0] - 1], records[GAP[0] - 1:GAP[-1]], records[GAP[-1]:])
        files = [pathlib.Path(f"{daemon.log_file}{end}") for end in (".2", ".1", "")]
        lines = [line for file in files for line in file.read_text().splitlines(keepends=True)]
        files[1].unlink()
        replicas.append(Replica(lines))
        daemon.write_config(configure(tmp_path, [replicas[-1].url(way) for way in ways], **log))
        return daemon.start(), replicas[-1], lines
    yield make
    for replica in replicas:
        replica.stop()


def copies_of(daemon):
    return sorted(path.name for path in daemon.directory.glob("*replica-*"))


def seqs_of(daemon):
    answer = daemon.get("/api/v1/log")
    assert answer.ok, answer.text
    return [json.loads(line)["seq"] for line in answer.text.splitlines()]


def has_all(daemon):
    seqs = seqs_of(daemon)
    return seqs == list(range(1, len(seqs) + 1)) and len(seqs) >= COUNT


def complaints_of(daemon):
    return [line for line in daemon.process.log_text().splitlines() if COMPLAINT in line]


def memory_of(daemon):
    status = pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) << 10


@pytest.mark.seconds(240)
def test_an_honest_replica_fills_the_gap(night):
    daemon, replica, lines = night("empty", "half", "sparing")
    assert not has_all(daemon)
    missing = id_of(lines, 150)
    assert daemon.get(f"/api/v1/decisions/{missing}").status == 404
    eventually(lambda: has_all(daemon), 60, what="all records are there")
    eventually(lambda: daemon.get(f"/api/v1/decisions/{missing}").ok, what="the history has the decision")
    assert {line for file in daemon.directory.glob("replica-*") for line in file.read_text().splitlines(keepends=True)} == set(
        lines[GAP[0] - 1:GAP[-1]])
    assert {authorization for *_, authorization in replica.asked} == {f"Bearer {TOKEN}"}
    assert {path for _, path, *_ in replica.asked} == {"api/v1/log"}
    assert all(GAP[0] - 1 <= query["after"] and query["after"] + query["limit"] <= GAP[-1] for _, _, query, _ in replica.asked)
    assert complaints_of(daemon) == []
    eventually(lambda: "copied records that other replicas wrote" in daemon.process.log_text(), what="it is in the log")
    # Nothing is missing now, so nobody is asked.
    asked = len(replica.asked)
    steadily(lambda: len(replica.asked) == asked, 12, what="nobody is asked")
    # A copy that is deleted is fetched again.
    for file in daemon.directory.glob("replica-*"):
        file.unlink()
    eventually(lambda: len(replica.asked) > asked and has_all(daemon), 60, what="all records are there again")


@pytest.mark.seconds(240)
def test_attacks(night, tmp_path):
    assert len(ATTACKS) >= 17
    daemon, replica, lines = night(*ATTACKS)
    before = memory_of(daemon)
    longest = 0
    deadline = time.monotonic() + 150
    while {way for way, *_ in replica.asked} < set(ATTACKS) and time.monotonic() < deadline:
        began = time.monotonic()
        assert daemon.get("/-/healthy").ok
        longest = max(longest, time.monotonic() - began)
        time.sleep(0.02)
    assert {way for way, *_ in replica.asked} == set(ATTACKS)
    time.sleep(1)       # the last answer is read
    assert longest < 3, f"the loop was blocked for {longest:.1f} s"
    room = 400 if has_sanitizers() else 100     # MiB: a sanitizer keeps what is freed
    assert memory_of(daemon) - before < room << 20
    assert copies_of(daemon) == [] and not has_all(daemon)
    assert daemon.get(f"/api/v1/decisions/{id_of(lines, 150)}").status == 404
    found = complaints_of(daemon)
    assert 1 <= len(found) <= 4 and "forged" not in "".join(found), found

    # A reload asks the new replicas at once, whatever the former ones did.
    daemon.config_file.write_text(dump_yaml({"rule_files": ["rules/*.yaml"], "state": {"store": "sqlite", "path": str(daemon.state_file)},
                                             **configure(tmp_path, [replica.url("forged"), replica.url("honest")])}))
    daemon.reload()
    eventually(lambda: has_all(daemon), 60, what="all records are there")


@pytest.mark.seconds(120)
def test_copies_have_a_largest_size(night):
    """keep x max_size: here some of the newest records of the gap."""
    daemon, replica, lines = night("sparing", max_size="16KiB", keep=8)
    eventually(lambda: copies_of(daemon), 60, what="a copy")
    time.sleep(5)
    asked = len(replica.asked)
    sizes = [file.stat().st_size for file in daemon.directory.glob("replica-*")]
    assert 64 << 10 < sum(sizes) <= 128 << 10
    steadily(lambda: len(replica.asked) == asked, 25, what="what has no room is not fetched again and again")
    assert GAP[-1] in seqs_of(daemon) and GAP[0] not in seqs_of(daemon)
    assert complaints_of(daemon) == []
