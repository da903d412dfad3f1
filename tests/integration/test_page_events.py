"""The page of events: what happened last night, from the action log alone, by each filter, and what a narrowed credential sees of it.
Then in Debian's Chromium: two widths, light and dark, by keyboard, and without scripts."""
import html
import re
import sqlite3
import urllib.parse

import pytest

from harness.browser import WIDE
from harness.notification import alert, notification
from harness.wait import eventually

from test_history import index_of, make_night, write_night

EVIL = "<script>document.title='evil'</script>\"'&"
PHONE = 390
ROWS = 100      # of a page


@pytest.fixture
def make(make_daemon, node_group, tmp_path):
    def make(start=True):
        tokens = []
        for name, more in (("ada", {"permissions": ["notify", "read", "admin"]}), ("team", {"permissions": ["read"], "targets": ["batch"]})):
            (tmp_path / name).write_text(name)
            tokens.append({"name": name, "file": str(tmp_path / name), **more})
        groups = {name: node_group(size=4) for name in ("checkout", "batch")}
        targets = {name: {"node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 12} for name, group in groups.items()}
        rules = [{"name": f"{name}-is-slow", "match": [f'target="{name}"'], "target": name, "scale_up": {"by": 2}} for name in groups]
        daemon = make_daemon({"targets": targets, "rules": rules}, {"providers": {"mine": {"type": "http"}}, "receiver": {"tokens": tokens}},
                             flags=["--web.enable-admin-api"], start=False)
        log_in(daemon, "ada")
        return daemon.start() if start else daemon
    return make


def log_in(daemon, name):
    daemon.headers = {"Authorization": f"Bearer {name}"}


@pytest.fixture
def morning(make):
    """checkout and batch have grown, ada has paused batch, a load of the configuration failed, another one did not. Then a restart:
    memory has nothing of all that."""
    daemon = make()
    for name in ("checkout", "batch"):
        daemon.notify(notification(alert({"alertname": f"Slow{EVIL if name == 'checkout' else ''}", "target": name})))
        daemon.wait_record("action", target_name=name, outcome="applied")
    answer = daemon.post("/api/v1/targets/batch/pause", {"reason": f"the big move {EVIL}", "for": "1h"})
    assert answer.ok, answer.text
    assert daemon.post("/api/v1/targets/batch/scale", {"reason": "too much", "replicas": 400}).status == 422
    good = daemon.config_file.read_text()
    daemon.config_file.write_text(good + "nonsense: 1\n")
    daemon.reload()
    daemon.wait_record("reload")
    daemon.config_file.write_text(good + "# once more\n")
    assert daemon.post("/-/reload", None).ok
    eventually(lambda: len(daemon.records("reload")) == 2)
    daemon.restart()
    return daemon


def show(daemon, status=200, **parameters):
    answer = daemon.get("/events?" + urllib.parse.urlencode(parameters))
    assert answer.status == status, answer.text
    assert answer.text.count("<script") == 1
    return answer.text.partition("<main>")[2]


def rows(text):
    """Of each row the texts of its cells."""
    found = re.search(r'aria-label="Events".*?<tbody[^>]*>(.*?)</tbody>', text, re.S)
    return [[" ".join(html.unescape(re.sub(r"<[^>]*>", " ", cell)).split()) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.S)]
            for row in re.findall(r"<tr[^>]*>(.*?)</tr>", found[1], re.S)] if found else []


def whats(daemon, **parameters):
    return [what for _, what, _, _ in rows(show(daemon, **parameters))]


def test_the_night_in_words(morning):
    night = rows(show(morning))
    found = [what for _, what, _, _ in night]
    instance = morning.records("start")[0]["instance"]
    for part in ("Decision : 4 \u2192 6 . scaled : Nothing stood against it. Its incident", "Action 4 \u2192 6. applied :",
                 f"Incident Slow{EVIL} : opened", "Command pause by ada until 20", f": the big move {EVIL}",
                 "Command scale to 400 by ada : too much out_of_bounds", "Configuration load after a signal or a change of the files failed",
                 "nonsense", "Configuration loaded by ada : rules ", "(as before)", f"{instance} stopped",
                 "started, and leads from now on. Version 0.1.0, 2 rules, 2 targets, 2 open incidents, 0 unfinished actions"):
        assert any(part in what for what in found), (part, found)
    targets = {(target, rule) for _, what, target, rule in night if what.startswith(("Decision", "Action"))}
    assert {("checkout", "checkout-is-slow"), ("batch", "batch-is-slow")} <= targets
    assert ("checkout by checkout-is-slow", "") in {(target, rule) for _, what, target, rule in night if what.startswith("Incident")}
    times = [time for time, _, _, _ in night]
    assert times == sorted(times, reverse=True)
    text = show(morning)
    [decision] = [r["id"] for r in morning.records("decision", target_name="checkout") if r["output"]["reason"] == "scaled"]
    assert f'href="/decisions/{decision}"' in text and 'href="/targets/' in text and 'href="/rules/checkout-is-slow"' in text
    assert f'href="/incidents/{morning.records("incident")[0]["digest"]}"' in text
    assert 'aria-current="page">Events<' in morning.get("/events").text


def test_each_filter_is_a_parameter(morning):
    everything = rows(show(morning))
    assert {target for _, _, target, _ in rows(show(morning, target="check*"))} == {"checkout", "checkout by checkout-is-slow"}
    identity = morning.records("decision", target_name="batch")[0]["target"]
    assert rows(show(morning, target=identity)) == rows(show(morning, target="batch"))
    assert {rule for _, _, _, rule in rows(show(morning, rule="batch-is-slow"))} == {"batch-is-slow"}
    assert {what.partition(" ")[0] for what in whats(morning, kind="decision,action")} == {"Decision", "Action"}
    assert whats(morning, kind="reload") == [what for _, what, _, _ in everything if what.startswith("Configuration")]
    assert all(what.startswith("Decision") and " scaled :" in what for what in whats(morning, reason="scaled"))
    assert [what.partition(" by ")[0] for what in whats(morning, who="ada")] == \
        ["Configuration loaded", "Command scale to 400", "Command pause"]
    assert whats(morning, who="ada", kind="reload")[0].startswith("Configuration loaded by ada")
    for nothing in ({"who": "bob"}, {"who": "ada", "kind": "decision"}, {"target": "check"}, {"rule": "none"}, {"reason": "none"},
                    {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}, {"target": EVIL, "who": EVIL, "rule": EVIL, "reason": EVIL}):
        text = show(morning, **nothing)
        assert rows(text) == [] and "No event fits." in text, nothing
    text = show(morning, target=EVIL, kind="decision,effect", range="7d")     # the forms keep all
    assert text.count(f'value="{html.escape(EVIL, quote=True).replace("&#x27;", "&#39;")}"') == 2
    for part in ('<input type="hidden" name="kind" value="decision,effect">', '<input type="hidden" name="range" value="7d">', "kind=decision%2Ceffect&amp;range=1h"):
        assert part in text, part
    for wrong, part in (({"kind": "order"}, "kind: expected decision, action,"), ({"kind": "notification"}, "kind: expected"),
                        ({"before": "yesterday"}, "before: expected a time and the number of a record"),
                        ({"before": "2026-11-20T10:00:00Z,0"}, "before: expected"), ({"range": "1y"}, "range: expected")):
        assert part in show(morning, 400, **wrong)


def test_older_events_are_links(make):
    """Over three files: 100 rows a page, each record once, and the time range stays."""
    daemon = make(start=False)
    records = write_night(daemon.log_file, make_night(200), make_night(200, 200), make_night(100, 400))
    night = {"from": "2026-11-20T22:00:10Z", "to": "2026-11-20T22:08:00Z", "kind": "decision"}
    wanted = [r["time"][:19].replace("T", " ") for r in reversed(records)
              if r["kind"] == "decision" and "2026-11-20T22:00:10" <= r["time"] <= "2026-11-20T22:08:00"]
    daemon.start()
    text = eventually(lambda: "not indexed" not in (text := show(daemon, **night)) and text)
    found, pages = [], 0
    while True:
        found += [time for time, _, _, _ in rows(text)]
        pages += 1
        older = re.search(r'<a href="(/events\?[^"]*)">Older</a>', text)
        if not older:
            break
        assert len(rows(text)) == ROWS
        text = daemon.get(html.unescape(older[1])).text
    assert found == wanted and pages == 5
    assert ">Newest</a>" in text
    assert "before=" not in re.search(r'<nav class="states".*?</nav>', text, re.S)[0], "another range begins at its end"


def test_a_narrowed_reader_sees_its_targets(morning):
    log_in(morning, "team")
    seen = rows(show(morning))
    assert {target for _, _, target, _ in seen} == {"batch", "batch by batch-is-slow"}
    for other in ("checkout", "ada", "Configuration", "stopped"):
        assert other not in str(seen), other
    assert any(what.startswith("Command pause by another credential") for _, what, _, _ in seen)
    assert rows(show(morning, who="ada")) == [], "a search does not tell who it was"
    assert len(rows(show(morning, who="another credential"))) == 2
    for secret in ({"target": "checkout"}, {"rule": "checkout-is-slow"}, {"kind": "start,stop"}, {"kind": "reload"}):
        assert rows(show(morning, **secret)) == [], secret
    morning.headers = {}
    assert morning.get("/events").status == 401


def test_an_index_that_cannot_be_used(make):
    """The page says so, and is a page."""
    daemon = make(start=False)
    write_night(daemon.log_file, make_night(10))
    with sqlite3.connect(index_of(daemon)) as other:
        other.execute("CREATE TABLE of_another_program(x)")
    daemon.start()
    text = show(daemon, **{"from": "2026-11-20T22:00:00Z", "to": "2026-11-20T23:00:00Z"})
    assert "The action log could not be read to the end: events may be missing." in text and "No event fits." in text


# --- in a browser

def test_the_page_is_for_everyone(morning, chrome, axe):
    chrome.driver.execute_cdp_cmd("Network.enable", {})
    chrome.driver.execute_cdp_cmd("Network.setExtraHTTPHeaders", {"headers": morning.headers})
    for name, path in {"events": "/events", "nothing": "/events?target=nothing", "page": "/events?before=2099-01-01T00:00:00Z,99999999"}.items():
        for width in (PHONE, WIDE):
            for dark in (False, True):
                chrome.show(morning.url + path, width, dark)
                chrome.judge(axe, f"events-{name}", width, dark)


def test_a_search_by_keyboard_and_without_scripts(morning, chrome):
    chrome.driver.execute_cdp_cmd("Network.enable", {})
    chrome.driver.execute_cdp_cmd("Network.setExtraHTTPHeaders", {"headers": morning.headers})
    chrome.show(morning.url + "/events")
    chrome.find("body")[0].send_keys("/")
    assert chrome.run("return document.activeElement.name") == "target"
    for has_scripts in (True, False):
        chrome.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not has_scripts})
        chrome.driver.get(morning.url + "/events?range=7d")
        field = chrome.find("input[name=target]")[0]
        field.send_keys("batch\n")
        eventually(lambda: "target=batch" in chrome.driver.current_url and "range=7d" in chrome.driver.current_url)
        eventually(lambda: chrome.has("the big move") and not chrome.has("checkout-is-slow"))
    chrome.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    chrome.find("details summary")[-1].click()
    field = chrome.find("input[name=from]")[-1]
    field.clear()
    field.send_keys("2026-01-01T00:00:00Z\n")
    eventually(lambda: "from=2026-01-01" in chrome.driver.current_url and "target=batch" in chrome.driver.current_url
               and "range=" not in chrome.driver.current_url)
    eventually(lambda: chrome.has("the big move"))
    assert chrome.driver.title.startswith("Events")
