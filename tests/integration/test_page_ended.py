"""Incidents that only the action log remembers: after a restart the list and the page of an incident show them, with their decisions and
what was given back. Who may see them, and what the log must not do to the pages."""
import html
import re

import pytest

from harness.browser import NARROW, WIDE
from harness.notification import alert, notification, timestamp
from harness.wait import eventually

from test_page_incident import EVIL, amounts, make      # noqa: F401: the fixture

OLD = "2026-01-01T00:00:00Z"


def log_in(daemon, name):
    daemon.headers = {"Authorization": f"Bearer {name}"}


def tokens(tmp_path):
    listed = []
    for name, targets in (("all", {}), ("batch-team", {"targets": ["batch"]})):
        (tmp_path / name).write_text(name)
        listed.append({"name": name, "file": str(tmp_path / name), "permissions": ["notify", "read"], **targets})
    return {"receiver": {"tokens": listed}}


def page(daemon, path, status=200):
    answer = daemon.get(path)
    assert answer.status == status, f"{answer.status} {answer.text}"
    assert answer.text.count("<script") == 1
    return answer.text.partition("<main>")[2]


def ended_rows(daemon, query=""):
    """The links of the ended incidents, the newest first."""
    table = re.search(r'aria-label="Ended incidents".*?</table>', page(daemon, f"/incidents{query}"), re.S)
    return [html.unescape(link) for link in re.findall(r'<b><a href="([^"]*)"', table[0])] if table else []


def fire(daemon, firing):
    """The alert fires, both targets grow; it is resolved, and all is given back."""
    before = len(daemon.records("action", outcome="applied"))
    daemon.notify(notification(*firing))
    eventually(lambda: len(daemon.records("action", outcome="applied")) == before + len(firing))
    daemon.notify(notification(*({**one, "status": "resolved", "endsAt": timestamp()} for one in firing)))
    eventually(lambda: len(daemon.records("action", outcome="applied")) == before + 2 * len(firing), what="it is given back")


@pytest.fixture
def night(make, tmp_path):      # noqa: F811
    """Two incidents of one alert on checkout, and one on batch, each from its begin to its end. Then a restart."""
    daemon = make(tokens(tmp_path))
    log_in(daemon, "all")
    labels = {"alertname": "Slow", "target": "checkout", "evil": EVIL}
    fire(daemon, [alert(labels, starts_at=timestamp(-60)), alert({"alertname": "Queue", "target": "batch"})])
    fire(daemon, [alert(labels)])
    daemon.restart()
    return daemon


def test_ended_incidents_outlive_a_restart(night):
    links = ended_rows(night)
    assert len(links) == 3 and all(re.fullmatch(r"/incidents/[0-9a-f]{64}\?ended=20[0-9T:.-]*Z", link) for link in links)
    closed = [r for r in reversed(night.records("incident")) if r["event"] == "closed"]
    assert links == [f"/incidents/{r['digest']}?ended={r['time']}" for r in closed]
    assert ended_rows(night, f"?from={OLD}&to=2026-01-02T00:00:00Z") == []
    events = page(night, "/events?kind=incident&reason=closed")
    assert [html.unescape(link) for link in re.findall(r'<b><a href="(/incidents/[^"]*)"', events)] == links
    assert "None has ended in this time." in page(night, f"/incidents?from={OLD}&to=2026-01-02T00:00:00Z")
    first, second = [link for link in links if closed[0]["digest"] in link]
    newest, oldest = page(night, first), page(night, second)
    for text in (newest, oldest):
        assert amounts(text) == [[2, 0, 2]]
        for part in (">resolved<", "The incident was opened.", "The alert was resolved.", "4 \u2192 6", "6 \u2192 4", "<code>applied</code>",
                     'aria-label="Decisions"', "document.title=&#39;evil&#39;"):
            assert part in text, part
    assert newest != oldest and re.findall(r"/decisions/\w+", newest) != re.findall(r"/decisions/\w+", oldest)
    digest = closed[0]["digest"]
    assert re.findall(r"/decisions/\w+", page(night, f"/incidents/{digest}")) == re.findall(r"/decisions/\w+", newest), "the last one"
    scaled = [r["id"] for r in night.records("decision", target_name="checkout") if r["output"]["reason"] == "scaled"]
    assert set(scaled) <= set(re.findall(r"/decisions/(\w+)", newest + oldest))
    night.notify(notification(alert({"alertname": "Slow", "target": "checkout", "evil": EVIL})))
    assert ">open<" in page(night, f"/incidents/{digest}") and ">resolved<" in page(night, second)


def test_an_open_incident_has_the_decisions_before_the_restart(make):      # noqa: F811
    daemon = make()
    daemon.notify(notification(alert({"alertname": "Slow", "target": "checkout"})))
    daemon.wait_record("action", target_name="checkout", outcome="applied")
    digest = daemon.records("incident")[0]["digest"]
    before = page(daemon, f"/incidents/{digest}")
    daemon.restart()
    text = page(daemon, f"/incidents/{digest}")
    assert ">open<" in text and amounts(text) == [[2, 0, 0]] == amounts(before)
    assert set(re.findall(r"/decisions/\w+", before)) <= set(re.findall(r"/decisions/\w+", text))
    assert "Only since the start" not in text and "http://prometheus.example/graph" in text
    ids = re.findall(r"/decisions/(\w+)", text.partition('aria-label="Decisions"')[2])
    assert len(ids) == len(set(ids)), "each once"


def test_a_narrowed_reader_and_ended_incidents(night):
    theirs = next(r for r in night.records("incident") if r["labels"]["target"] == "checkout" and r["event"] == "closed")
    own = next(r for r in night.records("incident") if r["labels"]["target"] == "batch" and r["event"] == "closed")
    log_in(night, "batch-team")
    assert ended_rows(night) == [f"/incidents/{own['digest']}?ended={own['time']}"]
    assert "Queue" in page(night, f"/incidents/{own['digest']}") and "checkout" not in page(night, f"/incidents/{own['digest']}")
    def strip(text):
        return re.sub(r'<noscript>.*?</noscript>|<p id="live".*', "", text)

    nothing = strip(page(night, f"/incidents/{'0' * 64}", 404))
    assert "Neither memory nor the action log" in nothing
    for path in (f"/incidents/{theirs['digest']}", f"/incidents/{theirs['digest']}?ended={theirs['time']}"):
        assert strip(page(night, path, 404)) == nothing


def test_a_wrong_time_is_named(night):
    digest = night.records("incident")[0]["digest"]
    assert "ended: expected a time as 2026-11-20T10:00:00Z" in page(night, f"/incidents/{digest}?ended=x", 400)
    assert "before: expected a time and the number of a record" in page(night, "/incidents?before=x", 400)
    page(night, f"/incidents/{digest}?ended={OLD}", 404)


def test_ended_incidents_are_for_everyone(night, chrome, axe):
    chrome.driver.execute_cdp_cmd("Network.enable", {})
    chrome.driver.execute_cdp_cmd("Network.setExtraHTTPHeaders", {"headers": night.headers})
    paths = {"list": "/incidents?range=7d", "incident": ended_rows(night)[0]}
    for name, path in paths.items():
        for width, dark in ((NARROW, True), (WIDE, False)):
            chrome.show(night.url + path, width, dark)
            chrome.judge(axe, f"ended-{name}", width, dark)
