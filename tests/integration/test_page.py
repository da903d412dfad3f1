"""The pages for people, through the built binary; then in Debian's Chromium: no script, nothing wider than the window, nothing that
axe-core complains of, in two widths, light and dark. PAGE_PICTURES=DIR in the environment keeps a picture of each."""
import html
import html.parser
import json
import pathlib
import re
import socket
import subprocess
import sys
import urllib.parse

import pytest
import yaml

from harness.browser import NARROW, WIDE
from harness.http import request
from harness.notification import alert, notification
from harness.wait import eventually

DOCS = pathlib.Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS.parent / "tests/arch"))
from links import list_anchors  # noqa: E402

SCRIPT = '<script src="/page.js" defer></script>'
EVIL = "<script>alert(1)</script>\"'&"


def make_rules(groups):
    targets = {name: {"node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 12,
                      "cooldown": {"up": "3m", "down": "20m"}} for name, group in groups.items()}
    rules = [{"name": f"{name}-is-slow", "match": [f'target="{name}"', 'alertname=~".*High"'], "target": name,
              "scale_up": {"by": "50%", "at_least": 1}} for name in groups]
    return {"targets": targets, "rules": rules}


PROVIDERS = {"providers": {"mine": {"type": "http"}}}


@pytest.fixture
def world(make_daemon, node_group):
    """checkout has grown, batch could not."""
    groups = {"checkout": node_group(size=4), "batch": node_group(size=2)}
    daemon = make_daemon(make_rules(groups), PROVIDERS)
    daemon.notify(notification(alert(
        {"alertname": "LatencyHigh", "target": "checkout", "evil": EVIL, "long": "v" * 900},
        annotations={"summary": f"p99 is above 800 ms {EVIL}", "runbook_url": "https://runbooks.example/checkout",
                     "dashboard_url": "javascript:alert(1)"})))
    daemon.notify(notification(alert({"alertname": "QueueHigh", "target": "batch"})))
    daemon.wait_record("action", target_name="checkout", outcome="applied")
    daemon.wait_record("action", target_name="batch", outcome="applied")
    return daemon


def page(daemon, path, status=200):
    answer = daemon.get(path)
    assert answer.status == status, f"{path}: {answer.status} {answer.text}"
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.text.count("<script") == 1 and SCRIPT in answer.text
    return answer.text


def last_decision(daemon, name):
    return daemon.get(f"/api/v1/decisions?target={name}").json["data"][0]["id"]


def test_each_page_has_what_it_promises(world):
    home = page(world, "/")
    for part in ("no credential is asked for", ">checkout</a>", "4 \u2192 6", "QueueHigh", "up locked for ", "<svg class=\"spark\""):
        assert part in home, part
    assert ">batch</a>" not in page(world, "/?q=check").partition("Open incidents")[0]
    target = page(world, "/targets/checkout")
    for part in ("The last day", "LatencyHigh", "locked against growing", "4 to 6: applied, rule checkout-is-slow", "Rules that lead here"):
        assert part in target, part
    decision = page(world, f"/decisions/{last_decision(world, 'checkout')}")
    for part in ("The size goes from 4 to 6: scaled.", "the bound ahead: min 1, max 12", "from 4 to 6: applied", "LatencyHigh{"):
        assert part in decision, part
    assert "The outcome is equal to the recorded outcome." in page(world, f"/decisions/{last_decision(world, 'checkout')}?compute=1")
    incidents = page(world, "/incidents")
    assert "href=\"https://runbooks.example/checkout\"" in incidents
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in incidents
    assert "javascript:" not in incidents and "v" * 161 not in incidents
    rules = page(world, "/rules")
    assert "scale_up at_least 1, by 50%" in rules or "scale_up by 50%, at_least 1" in rules
    assert "4 \u2192 6, <code>applied</code>" in rules
    rule = page(world, "/rules/checkout-is-slow")
    for part in ("rules.yaml, line ", "target=&quot;checkout&quot;", "scale_up:\n  ", ">checkout</a>", "LatencyHigh", "4 \u2192 6, <code>applied</code>",
                 "Decisions by this rule"):
        assert part in rule, part
    assert "batch" not in rule.partition("<main>")[2]
    assert "No rule in force" in page(world, "/rules/none", 404)
    assert "no rule with fit or take" in page(world, "/groups/checkout")


class Parser(html.parser.HTMLParser):
    VOID = ("meta", "br", "input", "wbr")

    def __init__(self):
        super().__init__()
        self.open, self.links = [], []

    def handle_starttag(self, tag, attrs):
        assert tag not in ("link", "img", "iframe")
        assert tag != "script" or attrs == [("src", "/page.js"), ("defer", None)]
        if tag not in self.VOID:
            self.open.append(tag)
        self.links += [value for name, value in attrs if name == "href"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_all_pages_are_whole_and_all_links_lead_somewhere(world):
    """From the first page on, every link of ours; sorting, filters and refreshing are links too. Time ranges are followed from pages
    without parameters, or there would be thousands of pages."""
    todo, seen = ["/"], set()
    while todo:
        path = todo.pop()
        seen.add(path)
        answer = world.get(path)
        assert answer.ok, path
        if not answer.headers["Content-Type"].startswith("text/html"):
            continue
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        parser = Parser()
        parser.feed(answer.text)
        parser.close()
        assert not parser.open, path
        document, _, anchor = re.search(r'rel="help" href="https://alertscaler.io/docs/(\S+)"', answer.text)[1].partition("#")
        assert not anchor or anchor in list_anchors(DOCS / document), path
        assert (DOCS / document).is_file(), path
        for link in parser.links:
            there = urllib.parse.urljoin(world.url + path, link)
            if there.startswith(world.url) and there.count("?") <= 1 and not re.search("refresh|range=", path) \
                    and not ("?" in path and "range=" in there):
                todo += {there.removeprefix(world.url)} - seen - set(todo)
    assert len(seen) > 20 and {"/incidents", "/rules", "/?range=15m"} < seen
    assert any(path.startswith("/incidents/") for path in seen)
    assert any(path.startswith("/groups/") for path in seen) and any(path.startswith("/decisions/") for path in seen)


def test_the_text_of_a_rule_is_that_of_the_load(world):
    """A changed file shows after the reload only; a removed rule has no page any more."""
    rules = yaml.safe_load((world.directory / "rules/rules.yaml").read_text())
    rules["rules"][0]["scale_up"] = {"by": "25%"}
    world.write_rules(rules)
    assert "by: 50%" in page(world, "/rules/checkout-is-slow")
    world.reload()
    eventually(lambda: "by: 25%" in page(world, "/rules/checkout-is-slow"))
    world.write_rules({**rules, "rules": rules["rules"][1:]})
    world.reload()
    eventually(lambda: world.get("/rules/checkout-is-slow").status == 404)
    assert "may have been removed" in page(world, "/rules/checkout-is-slow", 404)


def test_the_document_of_a_decision_decides_the_same(world, tmp_path):
    text = page(world, f"/decisions/{last_decision(world, 'checkout')}")
    document = html.unescape(re.search(r"<textarea[^>]*>(.*?)</textarea>", text, re.S)[1])
    done = subprocess.run([world.binary, "decide"], input=document, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout)["desired"] == 6


def test_a_time_range_is_in_the_url(world):
    """A short history fills the chart; a wrong range is named, and the others stay in the links."""
    text = page(world, "/targets/checkout?range=7d&x=1")
    for part in ("The last 7 days", "The size is known since <time", 'href="?x=1&amp;range=15m"'):
        assert part in text, part
    assert re.search(r">\d\d:\d\d:(00|15|30|45)</text>", text), "seconds on the axis: more is not known"
    assert "in the last 6 hours" in page(world, "/?range=6h")
    assert "No size is known of this time." in page(world, "/targets/checkout?from=2026-01-01T00:00:00Z&to=2026-01-01T01:00:00Z")
    for wrong, answer in (("range=2h", "range: expected 15m, 1h, 6h, 1d or 7d, as in range=6h."),
                          ("from=yesterday", "from: expected a time as 2026-11-20T10:00:00Z, or seconds since 1970.")):
        assert answer in page(world, f"/targets/checkout?{wrong}", 400)
        assert answer in page(world, f"/?{wrong}", 400)


def test_the_last_day_outlives_a_kill(world):
    """The history is not stored: the next life reads it from the log, and shows that nobody looked meanwhile."""
    world.kill()
    world.start()
    eventually(lambda: "4 to 6: applied, rule checkout-is-slow" in page(world, "/targets/checkout"))
    eventually(lambda: "class=\"unknown\"" in page(world, "/targets/checkout"))
    eventually(lambda: "2 to 3: applied, rule batch-is-slow" in page(world, "/targets/batch"))


def test_a_log_that_was_altered_is_no_danger(world):
    """A life begins with whatever is in the file before the part whose chain is checked."""
    world.stop()
    lines = world.log_file.read_bytes().splitlines(keepends=True)
    rotated = pathlib.Path(f"{world.log_file}.1")
    rotated.write_bytes(b"\xff\xfe garbage\n" + b"".join(line.replace(b'"applied"', b'"scaled"').replace(b'"to":6', b'"to":-6')
                                                       for line in lines) + b'{"kind":"decision","target":')
    world.start()
    eventually(lambda: "4 to 6: applied, rule checkout-is-slow" in page(world, "/targets/checkout"))


def test_what_a_credential_may_not_see(make_daemon, node_group, tmp_path):
    groups = {"checkout": node_group(size=4), "batch": node_group(size=2)}
    tokens = []
    for name, targets in (("all", None), ("batch-team", ["batch"])):
        (tmp_path / name).write_text(name)
        tokens.append({"name": name, "file": str(tmp_path / name), "permissions": ["notify", "read"], **({"targets": targets} if targets else {})})
    daemon = make_daemon(make_rules(groups), {**PROVIDERS, "receiver": {"tokens": tokens}})
    assert daemon.get("/").status == 401
    daemon.headers = {"Authorization": "Bearer all"}
    daemon.notify(notification(alert({"alertname": "LatencyHigh", "target": "checkout"}), alert({"alertname": "QueueHigh", "target": "batch"})))
    daemon.wait_record("action", target_name="checkout")
    daemon.wait_record("action", target_name="batch")
    decision = last_decision(daemon, "checkout")
    digest = re.search(r"/incidents/\w+", page(daemon, "/targets/checkout"))[0]
    assert "checkout" in page(daemon, "/") and "no credential" not in page(daemon, "/")
    daemon.headers = {"Authorization": "Bearer batch-team"}
    for path in ("/", "/incidents", "/rules"):
        text = page(daemon, path)
        assert "batch" in text and "checkout" not in text and "LatencyHigh" not in text, path
    assert "batch" in page(daemon, "/rules/batch-is-slow")
    for path in ("/targets/checkout", "/groups/checkout", f"/decisions/{decision}", digest, "/rules/checkout-is-slow"):
        assert "LatencyHigh" not in page(daemon, path, 404)


# --- in a browser

def looks(deep):
    """Width and darkness: the quick run takes two of the four."""
    return [(NARROW, True), (WIDE, False)] + ([(NARROW, False), (WIDE, True)] if deep else [])


@pytest.mark.parametrize("deep", [False, pytest.param(True, marks=pytest.mark.deep)], ids=["quick", "deep"])
def test_pages_are_for_everyone(world, chrome, axe, deep):
    pages = {"targets": "/", "target": "/targets/checkout", "decision": f"/decisions/{last_decision(world, 'checkout')}",
             "computed": f"/decisions/{last_decision(world, 'checkout')}?compute=1",
             "incidents": "/incidents", "incident": f"/incidents/{world.get('/api/v1/incidents').json['data'][0]['digest']}",
             "rules": "/rules", "rule": "/rules/checkout-is-slow", "group": "/groups/checkout", "filtered": "/?q=nothing-like-it"}
    world.notify(notification(alert({"alertname": "QueueHigh", "target": "batch"}, status="resolved")))
    ended = re.search(r"/incidents/\w+", page(world, "/incidents").partition("Ended incidents")[2])
    pages["ended"] = ended[0]
    for name, path in pages.items():
        for width, dark in looks(deep):
            chrome.show(world.url + path, width, dark)
            chrome.judge(axe, name, width, dark)


def test_the_test_itself_would_find_what_is_wrong(world, chrome, axe):
    chrome.show(world.url + "/")
    chrome.run("document.querySelector('main').insertAdjacentHTML('beforeend', '<img><input><p id=pale>pale</p>');"
               "document.getElementById('pale').style.color = '#ccc'; document.body.style.minWidth = '3000px'")
    found = {complaint.partition(" ")[0] for complaint in chrome.complaints(axe)}
    assert found >= {"image-alt", "label", "color-contrast"}
    assert chrome.overflow() > 0


def test_a_person_finds_the_reason_by_links_alone(world, chrome):
    """From the first page to the gates of a decision, and back, with nothing but clicks; the filter is a form without a script."""
    chrome.show(world.url + "/")
    field = chrome.find("input[name=q]")[0]
    field.send_keys("check")
    field.submit()
    eventually(lambda: len(chrome.find("table[aria-label=Targets] tbody tr")) == 1)
    chrome.follow("Size", "Size \u2191")
    assert "sort=size" in chrome.driver.current_url and "q=check" in chrome.driver.current_url
    chrome.follow("checkout", "The last day")
    [time] = [link.text for link in chrome.find("table[aria-label=Decisions] a")][:1]
    chrome.follow(time, "the highest size that a rule wants")
    chrome.follow("Compute again", "The outcome is equal")
    chrome.follow("checkout-is-slow", "As loaded")
    chrome.follow("alertscaler", "Latest decisions")


def test_a_target_has_one_line_and_times_have_a_switch(world, chrome):
    chrome.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Kolkata"})
    chrome.show(world.url + "/")
    rows = chrome.find("table[aria-label=Targets] tbody tr")
    assert len(rows) == 2 and all(row.size["height"] < 45 for row in rows), [row.size for row in rows]
    time = "table[aria-label=Decisions] time"
    utc = chrome.find(time)[0].text
    chrome.find("button#zone")[0].click()
    local = chrome.find(time)[0].text
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", local) and local[14:16] != utc[14:16]     # 5:30 ahead
    chrome.show(world.url + "/")
    assert chrome.find(time)[0].text[:16] == local[:16] and chrome.find("button#zone")[0].text == "local"
    chrome.find("button#zone")[0].click()
    chrome.find("body")[0].send_keys("/")
    assert chrome.run("return document.activeElement.name") == "q"


def test_a_page_that_is_read_by_nobody_holds_nothing(world):
    """A reader who asks for pages and never takes them: others are answered."""
    host, port = world.address.split(":")
    peers = [socket.create_connection((host, int(port)), timeout=60) for _ in range(20)]
    try:
        for peer in peers:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            peer.sendall(b"GET /targets/checkout HTTP/1.1\r\nHost: a\r\n\r\n" * 20)
        assert ">checkout</a>" in page(world, "/")
        assert request("GET", world.url + "/-/ready").ok
    finally:
        for peer in peers:
            peer.close()
