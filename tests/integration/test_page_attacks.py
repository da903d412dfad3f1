"""Attacks on the pages, on the API and on the files behind them: clients that do not read, texts that a browser would run, readers
who look for names that are not theirs, absurd parameters, a damaged index and damaged log files."""
import contextlib
import html.parser
import json
import os
import pathlib
import re
import socket
import sqlite3
import time
import urllib.parse

import pytest

from harness.daemon import dump_yaml
from harness.http import Server, request
from harness.node_group import Fault
from harness.notification import alert, notification
from harness.played import run
from harness.protection import BCRYPT
from harness.wait import eventually

from test_history import ask, expect, index_of, make_night, make_rules, write_night, PROVIDERS
from test_log import START
from test_unsafe_texts import UNSAFE

MIB = 1 << 20
PEERS = 200
UNSENT = 64 * MIB       # docs/receiver.md: answers that clients do not read
WAITING = 16 * 4 * MIB  # docs/limits.md: answers from the action log that are being made
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


# --- clients that do not read


class Deaf:
    """A client that sends requests and never reads."""

    def __init__(self, daemon, *paths):
        host, port = daemon.address.split(":")
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        self.socket.settimeout(20)
        self.socket.connect((host, int(port)))
        self.socket.sendall("".join(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n" for path in paths).encode())


@pytest.mark.seconds(240)
def test_clients_that_never_read_hold_nothing_up(make):
    """Memory stays within the ceiling of the answers that are not read, others are served, and the connections end."""
    daemon = make(start=False, log_level="info",        # ASan keeps what is freed, and where it was allocated
                  env={"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:exitcode=99:quarantine_size_mb=1:malloc_context_size=2"})
    write_night(daemon.log_file, [{**START, "version": "x" * 50000}] * 200, make_night(3000))
    daemon.start()
    eventually(lambda: len(ask(daemon, limit=5000)[0]) == 3000, timeout=60)
    daemon.notify(notification(alert({"alertname": "Slow", "target": "checkout"})))
    daemon.wait_record("action", target_name="checkout", outcome="applied")
    own = highest = daemon.process.resident_bytes()
    paths = ["/api/v1/log", "/targets/checkout?range=7d", "/api/v1/decisions?limit=5000", "/", "/rules", "/api/v1/log?kind=start"]
    more = ["/"] * 200      # so that no answer of the last ones has room in the kernel
    with contextlib.ExitStack() as stack:
        peers = []
        for number in range(PEERS):
            turn = number % len(paths)
            peers.append(Deaf(daemon, *(paths[turn:] + paths[:turn] + more)))
            stack.callback(peers[-1].socket.close)
            if number % 50 == 0:
                began = time.monotonic()
                daemon.notify(notification(alert({"alertname": "Other", "number": str(number)})))
                assert daemon.get("/").ok and daemon.get("/-/ready").ok
                assert time.monotonic() - began < 10
                highest = max(highest, daemon.process.resident_bytes())
        # Of the log, too: while 16 requests wait, the next one is told to come back.
        eventually(lambda: daemon.get("/api/v1/log?limit=10").status == 200, timeout=60)
        assert run("log", "-o", "json", "--kind=notification", f"--url={daemon.url}").returncode == 0
        highest = max(highest, daemon.process.resident_bytes())
        eventually(lambda: daemon.metrics().value("alertscaler_http_connections") <= 5, timeout=90, interval=1,
                   what="the connections end by themselves")
    highest = max(highest, daemon.process.resident_bytes())
    print(f"{own / MIB:.0f} MiB, at most {(highest - own) / MIB:.0f} MiB more")
    assert highest - own < UNSENT + PEERS * 64 * 1024 + WAITING
    daemon.stop()


def test_followers_take_no_place_of_others(make, tmp_path):
    """The id of a follower that another credential has guessed is another place; the webhook needs none."""
    daemon = make({"receiver": {"tokens": give_tokens(tmp_path, all={}, other={}, batch={"targets": ["batch"]})}})

    def follow(who, name):
        become(daemon, who)
        return daemon.get(f"/api/v1/log?follow={name}&limit=1").status

    assert [follow("all", "mine")] + [follow("other", f"f{number}") for number in range(9)] == [200] * 10
    assert follow("other", "mine") == 503 and follow("batch", "mine") == 503 and follow("batch", "f1") == 503
    assert follow("all", "mine") == 200 and follow("other", "f3") == 200
    become(daemon, "other")
    assert daemon.notify(notification(alert({"alertname": "Slow", "target": "batch"})))["alerts"][0]["outcome"] == "queued"
    assert daemon.get("/api/v1/log").ok and daemon.get("/").ok
    for name in ("a" * 33, "a%20b", "../x", "a;b", "%E2%80%AE"):
        assert daemon.get(f"/api/v1/log?follow={name}").status == 400, name


# --- headers and parameters


def test_forged_and_absurd_headers(make):
    daemon = make()
    plain = daemon.get("/").text
    for headers in ({"Host": "evil.example"}, {"X-Forwarded-Host": "evil.example"}, {"X-Forwarded-Proto": "javascript"},
                    {"Forwarded": "host=evil.example"}, {"X-Forwarded-Prefix": "//evil.example"}, {"Referer": "http://evil.example/"},
                    {"X-Original-URL": "/evil.example"}, {"X-Forwarded-User": "evil.example"}):
        answer = request("GET", daemon.url + "/", headers=headers)
        assert answer.ok and "evil" not in answer.text and "javascript" not in answer.text, headers
        assert answer.text.count("href=") == plain.count("href=")
    version = re.search('data-version="([^"]*)"', plain)[1]
    for value in ("*", '"x"', f'W/"{version}"', f'"{version}"', "\x80\xff", ", ," * 100):
        answer = request("GET", daemon.url + "/", headers={"If-None-Match": value})
        assert answer.status == 200 and answer.text, value
    for since in ("x", "-", f"{version}0" * 3, version[:-1], version.replace("-", ""), f"{version.split('-')[0]}-{'f' * 17}",
                  f"{version.split('-')[0]}--1", "%00", "%F0%28%8C", "a" * 16000):
        assert daemon.get(f"/?since={since}").status == 200, since[:60]
    for path, headers in ((f"/?since={'a' * 65536}", {}), ("/", {"If-None-Match": "a" * 65536}), ("/", {"X": "a" * 65536})):
        try:
            assert request("GET", daemon.url + path, headers=headers).status in (414, 431), path[:20]
        except OSError:     # it was closed while the rest was sent
            pass
    assert daemon.get("/").ok


TIMES = ("9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "-1", "1e18", "1e400", "NaN", "inf", "-inf", "0x10",
         "253402300799", "9" * 400, "1,5", "%00", "2026-11-20T10:00:00+99:99", "\u0663", "1969-12-31T23:59:59Z", "")


def test_absurd_times_limits_and_offsets(make):
    """Each is answered, either as an error with a reason or as nothing found; no page is broken."""
    daemon = make(start=False)
    write_night(daemon.log_file, make_night(100))
    daemon.start()
    daemon.notify(notification(alert({"alertname": "Slow", "target": "checkout"})))
    daemon.wait_record("action", target_name="checkout", outcome="applied")
    times = [urllib.parse.quote(text, safe="%") for text in TIMES]
    queries = [f"{one}={text}" for one in ("from", "to", "since", "until") for text in times]
    queries += [f"from={one}&to={other}" for one in times[:6] for other in times[:6]] + [f"since={one}&until={other}" for one in times[:3] for other in times[:3]]
    queries += [f"range={text}" for text in ("1y", "-1h", "0", "1e9d", "15m%00", "", "15m&range=1h")]
    queries += [f"{name}={number}" for name in ("limit", "page", "after", "refresh") for number in (0, -1, 1 << 62, 1 << 70, "NaN", "1.5", "0x1", "%20")]
    queries += ["page=1&page=2", "a", "=", "&&&", "%", "%zz", "q=%FF", "q=" + "x" * 4000, "sort=;&order=%00", "state=%3Cb%3E", "before=%00", "before=" + "x" * 1000]
    for path in ("/", "/targets/checkout", "/api/v1/decisions", "/api/v1/log", "/incidents", "/rules"):
        for query in queries:
            answer = daemon.get(f"{path}?{query}")
            assert answer.status in (200, 304, 400), (path, query, answer.text)
            if not path.startswith("/api"):
                assert answer.text.endswith("</html>\n") and not re.search(r' d="[^"]*(nan|inf)', answer.text), (path, query)
            elif answer.status == 400:
                assert answer.json["errorType"] == "bad_data" and answer.json["error"], (path, query)
    for path in ("/targets/%00", "/targets/%", "/targets/..%2f..%2fetc%2fpasswd", "/rules/%FF", "/incidents/" + "0" * 63, "/incidents/" + "g" * 64,
                 "/decisions/" + "0" * 26, "/decisions/%00", "/groups/%00", "/decisions/" + "x" * 5000, "/api/v1/decisions/%00", "/api/v1/targets/%FF"):
        assert daemon.get(path).status in (400, 404), path
    assert daemon.get("/-/ready").ok


# --- texts that a browser or a terminal would obey

EVILS = (
    "<script>document.title='evil'</script>", "'\"><img src=x onerror=\"document.title='evil'\">", "javascript:document.title='evil'",
    "\u202egnp.exe\u2066 \u200f", "a\nb\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "w" * 10000, "--><svg onload=document.title='evil'>",
    "</textarea></pre></title></style><script>document.title='evil'</script>", "\x1b]0;owned\x07\x1b[2J", "%3Cscript%3E", "&lt;b&gt;&#x3c;", "\\u003cscript\\u003e",
)
URLS = ("javascript:document.title='evil'", " javascript:document.title='evil'", "JaVaScRiPt:document.title='evil'", "data:text/html,<script>1</script>",
        "https://p.example/\"><script>document.title='evil'</script>", "https://p.example/' onmouseover='document.title=1", "//evil.example/",
        "https://user:secret@p.example/", "http://p.example/\u202e", "https://p.example/\r\nSet-Cookie: a=b", "vbscript:x", "blob:x", "file:///etc/passwd",
        "https://" + "p" * 5000 + ".example/")
TAGS = {"html", "head", "meta", "title", "script", "style", "body", "div", "header", "nav", "ul", "li", "a", "span", "main", "h1", "h2", "h3", "p", "dl", "dt",
        "dd", "table", "thead", "tbody", "tr", "th", "td", "code", "small", "b", "br", "wbr", "pre", "textarea", "form", "label", "input", "select", "option", "datalist",
        "button", "details", "summary", "footer", "time", "svg", "g", "path", "line", "rect", "circle", "text", "noscript", "polyline", "desc",
        "clippath", "defs", "pattern", "tspan", "polygon"}
HREF = re.compile(r"(/(?!/)|\?|#|https?://)")


class Strict(html.parser.HTMLParser):
    """Each element and each attribute is one that alertscaler writes."""

    def __init__(self, path):
        super().__init__()
        self.path, self.links, self.scripts = path, set(), 0

    def handle_starttag(self, tag, attrs):
        assert tag in TAGS, (self.path, tag, attrs)
        for name, value in attrs:
            assert not name.startswith("on") and name not in ("srcdoc", "formaction", "xlink:href", "background"), (self.path, tag, attrs)
            assert re.fullmatch(r"[a-zA-Z][a-zA-Z:-]*\d?", name), (self.path, tag, attrs)
            if name in ("href", "action"):
                assert HREF.match(value), (self.path, value)
                self.links |= {value} if name == "href" else set()
        if tag == "script":
            self.scripts += 1
            assert attrs == [("src", "/page.js"), ("defer", None)], attrs


def read_strictly(daemon, path):
    """The page's text, and its links."""
    answer = daemon.get(path)
    assert answer.status == 200, (path, answer.text)
    parser = Strict(path)
    parser.feed(answer.text)
    assert parser.scripts == 1, path
    found = UNSAFE.search(answer.text.replace("\n", "").replace("\t", ""))
    assert not found, (path, found.group(), answer.text[max(0, found.start() - 100):found.end() + 20])
    return answer.text, parser.links


@pytest.fixture
def evil(make_daemon, node_group, tmp_path, started):
    """A daemon that has been told such texts at every place."""
    groups = {"checkout": node_group(size=4), "batch": node_group(size=2)}
    prometheus = started(Server(lambda asked: (400, {}, {"status": "error", "errorType": "bad_data", "error": " ".join(EVILS)})))
    rules = make_rules(groups)
    rules["targets"]["batch"]["cooldown"] = {"up": "0s", "down": "0s"}
    rules["rules"][0]["match"] += [f"other!={json.dumps(text)}" for text in EVILS[:4]]
    rules["rules"].append({"name": "asks", "match": ['ask="yes"'], "target": "batch", "approval": {"above": 1, "for": "1h"}, "scale_up": {"by": 5}})
    rules["rules"].append({"name": "queries", "match": ['query="yes"'], "target": "checkout",
                           "track": {"query": f"up{{x={json.dumps(EVILS[0])}}}", "value": 4}})
    user = EVILS[1]
    (tmp_path / "web.yml").write_text(dump_yaml({"basic_auth_users": {user: BCRYPT}}))
    (tmp_path / "all").write_text("all")
    daemon = make_daemon(rules, {**PROVIDERS, "prometheus": {"url": prometheus.url}, "receiver": {
        "tokens": [{"name": "all", "file": str(tmp_path / "all"), "permissions": ["notify", "read", "admin"]}],
        "users": [{"name": user, "permissions": ["read", "admin"]}]}},
        flags=["--web.enable-admin-api", f"--web.config.file={tmp_path / 'web.yml'}"], start=False)
    become(daemon, "all")
    daemon.start()
    fired = []
    for number, text in enumerate(EVILS):
        labels = {"alertname": text, "target": "checkout", "number": str(number), f"l{number}": text, text[:200]: "a name", "to": URLS[number]}
        fired.append({**alert(labels, annotations={"summary": text, "description": text, "runbook_url": URLS[number], "dashboard_url": URLS[-number],
                                                   "other": URLS[number], text[:200]: text}), "generatorURL": URLS[number]})
    for number, one in enumerate(fired):
        daemon.post("/webhook", {**notification(one, receiver=EVILS[number % 3]), "externalURL": URLS[number]})
    daemon.post("/webhook", notification(alert({"alertname": "Ask", "ask": "yes", "target": "none"}), alert({"alertname": "Query", "query": "yes", "target": "none"})))
    groups["batch"].inject(Fault("GET", status=500), Fault("PUT", status=500), times=3)
    daemon.post("/webhook", notification(alert({"alertname": EVILS[0], "target": "batch"})))
    daemon.wait_record("action", target_name="checkout", outcome="applied")
    assert daemon.post("/api/v1/targets/batch/pause", {"reason": "".join(EVILS[:5])[:1000]}).ok
    assert daemon.post("/api/v1/targets/checkout/floor", {"reason": EVILS[1], "replicas": 2, "for": "1h"}).ok
    assert daemon.post("/api/v1/pause", {"reason": EVILS[7], "direction": "down"}).ok
    daemon.post("/webhook", notification({**fired[0], "status": "resolved"}))
    eventually(lambda: "Ended incidents" in daemon.get("/incidents").text)
    daemon.groups = groups
    return daemon


def crawl(daemon, *paths):
    """Each page behind these and their links, once for each kind of parameters."""
    done, to_do = {}, list(paths)
    while to_do:
        path = to_do.pop(0)
        if path in done or len(done) > 120:
            continue
        done[path], links = read_strictly(daemon, path)
        for link in links:
            link = html.unescape(link.partition("#")[0])
            if link.startswith("/") and not link.startswith(("/api/", "/metrics", "/log", "/account")) and "earlier=" not in link and "range=" not in link \
                    and "sort=" not in link:
                to_do.append(link)
    return done


def test_no_text_is_more_than_a_text_on_any_page(evil, chrome):
    pages = crawl(evil, "/", "/incidents", "/rules", "/targets/checkout", "/targets/batch", "/groups/checkout", "/?q=" + urllib.parse.quote(EVILS[1]),
                  "/rules?q=" + urllib.parse.quote(EVILS[0]), "/?state=" + urllib.parse.quote(EVILS[1]), "/?range=1h&x=" + urllib.parse.quote(EVILS[1]))
    kinds = {path.split("?")[0].split("/")[1] for path in pages}
    assert kinds >= {"", "targets", "incidents", "rules", "decisions", "groups"} and len(pages) > 25, sorted(pages)
    for path in ("/targets/" + urllib.parse.quote(EVILS[0], safe=""), "/rules/" + urllib.parse.quote(EVILS[1], safe=""), "/" + urllib.parse.quote(EVILS[0], safe="")):
        answer = request("GET", evil.url + path, headers={**evil.headers, "Accept": "text/html"})
        Strict(path).feed(answer.text)
        assert answer.status == 404 and "<img" not in answer.text and answer.text.count("<script") == 1
    assert all("evil" in text or "owned" in text or "gnp" in text for path, text in pages.items() if path.startswith("/targets/"))
    # in a browser
    chrome.driver.get(evil.url + "/login")
    chrome.find("input[name=token]")[0].send_keys("all")
    chrome.find("form:has(input[name=token]) button")[0].click()
    eventually(lambda: chrome.has("Latest decisions"))
    for path in pages:
        chrome.show(evil.url + path)
        assert chrome.driver.title.endswith(" \u00b7 alertscaler"), path
        assert len(chrome.find("script")) == 1 and not chrome.find("img") and not chrome.find("main script"), path
        assert chrome.overflow() <= 0, path
    chrome.driver.delete_all_cookies()


def test_no_text_reaches_a_terminal_raw(evil, tmp_path):
    token = ["--token-file", str(tmp_path / "all"), f"--url={evil.url}"]
    decision = evil.get("/api/v1/decisions?target=checkout").json["data"][0]["id"]
    for words in (["log"], ["log", "-o", "json"], ["log", "--kind=incident,command"], ["explain", "--target=checkout"], ["effects"], ["status"],
                  ["explain", "--target=batch", "-o", "json"], ["get", "targets", "-o", "wide"], ["get", "rules"], ["get", "incidents", "-o", "wide"],
                  ["get", "incidents", "-o", "json"], ["get", "decisions"], ["get", "incidents", "-o", "name"], ["describe", "target", "checkout"],
                  ["describe", "target", "batch"], ["get", "decisions", decision, "-o", "yaml"], ["get", "targets", EVILS[8]], ["log", "--target", EVILS[3]],
                  ["completion", "targets"], ["completion", "rules"]):
        done = run(*words, *token)
        if words[:2] == ["log", "-o"]:
            continue        # lines for programs: test_unsafe_texts.py has them on a terminal
        found = UNSAFE.search(done.stdout + done.stderr)
        assert not found, (words, found.group(), (done.stdout + done.stderr)[max(0, found.start() - 80):found.end() + 20])
    for words in (["log", str(evil.log_file)], ["explain", "--target=checkout", str(evil.log_file)]):
        assert not UNSAFE.search(run(*words).stdout), words


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
