"""The page of one incident, through the built binary: where its alert comes from, what it led to, and who may see it."""
import html
import re
import urllib.parse

import pytest

from harness.http import request
from harness.notification import alert, notification, timestamp
from harness.wait import eventually

EVIL = "<script>document.title='evil'</script>\"'&"
PROVIDERS = {"providers": {"mine": {"type": "http"}}}
LONGEST = 4096      # bytes of a URL that is kept


@pytest.fixture
def make(make_daemon, node_group):
    """checkout and batch, each with a rule that gives back what it has added."""
    def make(config=None):
        groups = {name: node_group(size=4) for name in ("checkout", "batch")}
        targets = {name: {"node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 12, "cooldown": {"up": "0s", "down": "0s"}}
                   for name, group in groups.items()}
        rules = [{"name": f"{name}-is-slow", "match": [f'target="{name}"'], "target": name, "scale_up": {"by": 2}, "max_steps": 1,
                  "guard": "none", "on_resolved": {"give_back": {"after": "0s", "step": "100%"}}} for name in groups]
        return make_daemon({"targets": targets, "rules": rules}, {**PROVIDERS, **(config or {})})
    return make


def slow(**more):
    return {**alert({"alertname": "Slow", "target": "checkout"}), **more}


def incident(daemon, **labels):
    """The open incident with these labels, as the API has it."""
    (found,) = [one for one in daemon.get("/api/v1/incidents").json["data"] if labels.items() <= one["labels"].items()]
    return found


def page(daemon, digest, status=200):
    answer = daemon.get(f"/incidents/{digest}")
    assert answer.status == status, answer.text
    return answer.text


def links(text):
    return [html.unescape(link) for link in re.findall(r'(?<!rel="help" )href="([^"]*)"', text) if link[0] not in "/?"]


def amounts(text):
    """Of each row of the table of changes: added, removed, given back."""
    table = re.search(r'aria-label="Size changes".*?</table>', text, re.S)[0]
    return [[int(number) for number in re.findall(r">(\d+)</div>", row)] for row in table.split("<tr")[2:]]


def test_an_incident_from_its_begin_to_its_end(make):
    daemon = make()
    firing = slow(annotations={"summary": "p99 is above 800 ms", "runbook_url": "https://runbooks.example/slow"})
    daemon.notify(notification(firing))
    daemon.wait_record("action", target_name="checkout", outcome="applied")
    digest = incident(daemon)["digest"]
    for path in ("/", "/incidents", "/targets/checkout"):
        assert f'href="/incidents/{digest}"' in daemon.get(path).text, path
    text = page(daemon, digest)
    assert amounts(text) == [[2, 0, 0]]
    assert links(text)[:3] == ["http://prometheus.example/graph",
                               "http://alertmanager.example:9093/#/alerts?filter=" + urllib.parse.quote('{alertname="Slow",target="checkout"}', safe="")
                               + "&silenced=true&inhibited=true&muted=true&active=true", "https://runbooks.example/slow"]
    for part in (">open<", "The incident was opened.", "4 \u2192 6", "p99 is above 800 ms"):
        assert part in text, part
    daemon.notify(notification({**firing, "status": "resolved", "endsAt": timestamp()}))
    eventually(lambda: amounts(page(daemon, digest)) == [[2, 0, 2]], what="it is given back")
    text = page(daemon, digest)
    for part in (">resolved<", "The alert was resolved.", "6 \u2192 4", "p99 is above 800 ms", "http://prometheus.example/graph"):
        assert part in text, part
    assert f'href="/incidents/{digest}?ended=' in daemon.get("/incidents").text.partition("Ended incidents")[2]
    daemon.notify(notification({**firing, "startsAt": timestamp()}))       # fires again: the page shows this, and the earlier one below
    text = eventually(lambda: ">open<" in page(daemon, digest) and page(daemon, digest))
    assert 'aria-label="Earlier"' in text and "The alert was resolved." not in text


def test_urls_outlive_a_kill(make):
    daemon = make()
    daemon.notify(notification(slow()))
    before = incident(daemon)
    daemon.kill()
    daemon.start()
    after = incident(daemon)
    assert (after["generatorURL"], after["externalURL"]) == (before["generatorURL"], before["externalURL"])
    assert after["generatorURL"] == "http://prometheus.example/graph"
    assert "http://prometheus.example/graph" in links(page(daemon, after["digest"]))


@pytest.mark.parametrize("url", ["javascript:alert(1)", "https://p/" + "x" * LONGEST, "http://user:secret@p/", 7, None],
                         ids=["script", "long", "password", "number", "null"])
def test_a_url_that_cannot_be_a_link_loses_only_the_link(make, url):
    daemon = make()
    answer = daemon.notify({**notification(slow(generatorURL=url)), "externalURL": url})
    assert [one["outcome"] for one in answer["alerts"]] == ["queued"]
    daemon.wait_record("action", target_name="checkout", outcome="applied")
    found = incident(daemon)
    assert (found["generatorURL"], found["externalURL"]) == (None, None)
    text = page(daemon, found["digest"])
    assert links(text) == [] and "Prometheus" not in text and "Alertmanager" not in text
    assert not isinstance(url, str) or url not in html.unescape(text)


def test_texts_of_an_alert_are_texts(make):
    daemon = make()
    daemon.notify(notification({**alert({"alertname": EVIL, "target": "checkout", EVIL: EVIL, "to": "javascript:alert(1)", "site": "https://example.org/x"},
                                        annotations={"summary": EVIL, "runbook_url": "javascript:alert(1)", "other": "data:text/html,x"}),
                                "generatorURL": f"http://p/{EVIL}"}))
    text = page(daemon, incident(daemon, target="checkout")["digest"])
    assert text.count("<script") == 1 and "document.title=&#39;evil&#39;" in text
    assert [link for link in links(text) if "alertmanager.example" not in link] == [f"http://p/{EVIL}", "https://example.org/x"]
    assert "javascript:alert(1)" in text        # a text


def test_an_incident_of_others_does_not_exist(make, tmp_path):
    tokens = []
    for name, targets in (("all", {}), ("batch-team", {"targets": ["batch"]})):
        (tmp_path / name).write_text(name)
        tokens.append({"name": name, "file": str(tmp_path / name), "permissions": ["notify", "read"], **targets})
    daemon = make({"receiver": {"tokens": tokens}})
    daemon.headers = {"Authorization": "Bearer all"}
    both = [slow(), alert({"alertname": "Queue", "target": "batch"})]
    daemon.notify(notification(*both))
    for name in ("checkout", "batch"):
        daemon.wait_record("action", target_name=name, outcome="applied")
    theirs, own = (incident(daemon, target=name)["digest"] for name in ("checkout", "batch"))
    daemon.headers = {}
    page(daemon, theirs, 401)
    for status in ("firing", "resolved"):
        daemon.headers = {"Authorization": "Bearer all"}
        daemon.notify(notification(*({**one, "status": status} for one in both)))
        assert "checkout" in page(daemon, theirs)
        daemon.headers = {"Authorization": "Bearer batch-team"}
        assert "Queue" in page(daemon, own)
        nothing = re.sub(r"<p id=\"live\".*", "", page(daemon, "0" * 64, 404))
        assert re.sub(r"<p id=\"live\".*", "", page(daemon, theirs, 404)) == nothing


def test_alertmanager_understands_the_filter(make, make_alertmanager):
    """Each matcher of the link, as Alertmanager's page gives it to its API."""
    daemon = make()
    alertmanager = make_alertmanager(webhook=daemon.url + "/webhook")
    labels = {"alertname": "Slow", "target": "checkout", "query": 'rate(x{a="b"}[5m]) > 1, or \\ & ü', "lines": "a\nb"}
    others = [{**labels, "query": "another"}, {**labels, "alertname": "Other"}]
    prometheus = "http://prometheus.example/graph?g0.expr=x%7Ba%3D%22b%22%7D&g0.tab=1"
    assert request("POST", alertmanager.url + "/api/v2/alerts", [{"labels": one, "generatorURL": prometheus} for one in [labels, *others]]).ok
    found = eventually(lambda: len(daemon.get("/api/v1/incidents").json["data"]) == 3 and incident(daemon, **labels))
    assert found["generatorURL"] == prometheus and found["externalURL"]
    source, link = links(page(daemon, found["digest"]))[:2]
    assert source == prometheus and link.startswith(found["externalURL"])
    wanted = urllib.parse.parse_qs(urllib.parse.urlsplit(link).fragment.partition("?")[2])["filter"][0]
    assert "lines" not in wanted        # the filter has no word for a line break
    matchers = re.findall(r'\w+="(?:[^"\\]|\\.)*"', wanted)
    assert len(matchers) == 3 and wanted == "{" + ",".join(matchers) + "}"
    query = "&".join("filter=" + urllib.parse.quote(matcher, safe="") for matcher in matchers)
    answer = request("GET", f"{alertmanager.url}/api/v2/alerts?{query}")
    assert [one["labels"] for one in answer.json] == [labels]
