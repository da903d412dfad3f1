"""Decisions and actions on the page of a target: over the time range, from memory and from the action log, with filters as links."""
import html
import re
import urllib.parse

import pytest

from harness.browser import NARROW, WIDE
from harness.notification import alert, notification
from harness.wait import eventually

from test_history import make, make_action, make_night, write_night      # noqa: F401: the fixture

SHOWN = 50
NIGHT = {"from": "2026-11-20T22:00:00Z", "to": "2026-11-20T22:10:00Z"}


@pytest.fixture
def night(make):      # noqa: F811
    """The daemon, not started yet, and the decisions on checkout of last night; one action failed."""
    daemon = make(start=False)
    url = re.search("http://[^ ]*/groups/[^ \\n\"']*", (daemon.directory / "rules/rules.yaml").read_text())[0]
    identity = f"node_group/mine/{url}"
    records = [{**r, "target": identity} if r.get("target_name") == "checkout" else r for r in make_night(400)]
    failed = make_action(4, 5, "unreachable", target=identity, target_name="checkout", rule="checkout-is-slow", id="01KAJ2Q5J3M6V3Y8Z000000000")
    records.append({**failed, "time": "2026-11-20T22:08:00.000000Z"})
    return daemon, [r for r in write_night(daemon.log_file, records) if r["kind"] == "decision" and r["target_name"] == "checkout"]


def show(daemon, status=200, **parameters):
    answer = daemon.get("/targets/checkout?" + urllib.parse.urlencode(parameters))
    assert answer.status == status, answer.text
    return answer.text.partition("<main>")[2]


def decisions(text):
    """Ids, as the table has them."""
    table = re.search(r'aria-label="Decisions".*?</table>', text, re.S)
    return re.findall(r"/decisions/(\w+)", table[0]) if table else []


def links(text, name):
    """Of the links that filter: word by URL."""
    found = re.search(f'aria-label="{name}">(.*?)</nav>', text, re.S)
    return {word: html.unescape(url) for url, word in re.findall(r'<a href="([^"]*)"[^>]*>([^<]*)</a>', found[1])}


def test_last_night_by_reason_and_rule(night):
    daemon, records = night
    daemon.start()
    text = eventually(lambda: "to the end" not in (text := show(daemon, **NIGHT)) and text)
    newest = [r["id"] for r in reversed(records)]
    assert decisions(text) == newest[:SHOWN] and len(newest) > 2 * SHOWN
    assert {"all", "scaled", "cooldown", "at_max", "unreachable"} == set(links(text, "Reasons"))
    assert {"all", "checkout-is-slow"} == set(links(text, "Rules"))
    at_max = daemon.get("/targets/checkout" + links(text, "Reasons")["at_max"]).text
    assert decisions(at_max) == [r["id"] for r in reversed(records) if r["output"]["reason"] == "at_max"][:SHOWN]
    assert 'aria-current="true">at_max</a>' in at_max and "from=2026-11-20" in links(at_max, "Rules")["all"]
    both = daemon.get("/targets/checkout" + links(at_max, "Rules")["checkout-is-slow"]).text
    assert decisions(both) == [r["id"] for r in reversed(records) if r["output"]["reason"] == "at_max" and r["output"]["rule"]][:SHOWN]
    half = {"from": "2026-11-20T22:01:00.000000Z", "to": "2026-11-20T22:01:30.500000Z"}
    assert decisions(show(daemon, **half)) == [r["id"] for r in reversed(records) if half["from"] <= r["time"] <= half["to"]]
    failed = show(daemon, reason="unreachable", **NIGHT)
    assert "<code>unreachable</code>" in failed.partition("Latest actions")[2].partition("<h3>")[0]
    more = html.unescape(re.search(r'<a href="(/events\?[^"]*)">All events', at_max)[1])
    assert "reason=at_max" in more and daemon.get(more).text.count(">Decision</a>") == len(
        [r for r in records if r["output"]["reason"] == "at_max"][:100])
    for query, part in (({"reason": "slowly"}, "there is none with the name slowly."), ({"reason": "<b>"}, "the name &lt;b&gt;.")):
        assert part in show(daemon, 400, **query)
    assert "No decision fits." in show(daemon, rule="<b>none", **NIGHT)


def test_memory_and_log_are_one_table(night):
    daemon, _ = night
    daemon.start()
    daemon.notify(notification(alert({"alertname": "Slow", "target": "checkout"})))
    daemon.wait_record("action", target_name="checkout", outcome="applied")
    daemon.restart()
    daemon.notify(notification(alert({"alertname": "Slower", "target": "checkout"})))
    def recorded():
        return [r["id"] for r in reversed(daemon.records("decision", target_name="checkout")) if r["time"] > "2026-11-21"]

    eventually(lambda: len(recorded()) >= 2 and decisions(show(daemon)) == recorded())


def test_an_altered_log_is_no_danger(night):
    """Ids become parts of links: what is none is left out."""
    daemon, records = night
    evil = '"><script>alert(1)<'
    text = daemon.log_file.read_text()
    assert records[-1]["id"] in text
    daemon.log_file.write_text(text.replace(records[-1]["id"], evil.replace('"', '\\"')))
    daemon.start()
    found = eventually(lambda: decisions(found := show(daemon, **NIGHT)) and found)
    assert decisions(found) == [r["id"] for r in reversed(records[:-1])][:SHOWN] and "<script>alert" not in found
    events = daemon.get("/events?" + urllib.parse.urlencode({**NIGHT, "target": "checkout"})).text
    assert "<script>alert" not in events and events.count("<script") == 1


def test_the_history_is_for_everyone(night, chrome, axe):
    daemon, _ = night
    daemon.start()
    for width, dark in ((NARROW, True), (WIDE, False)):
        chrome.show(f"{daemon.url}/targets/checkout?{urllib.parse.urlencode(NIGHT)}", width, dark)
        chrome.judge(axe, "target-history", width, dark)
    chrome.follow("cooldown", "All events of the target")
    assert "reason=cooldown" in chrome.driver.current_url
