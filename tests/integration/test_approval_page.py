"""What waits for a person, on the pages: who sees it, who has the forms, and what an attacker tries. First with a browser that is
played, then in Debian's Chromium."""
import re
import urllib.parse

import pytest
import yaml

from harness.browser import NARROW, WIDE
from harness.node_group import HttpNodeGroup
from harness.notification import alert, notification
from harness.protection import BCRYPT, PASSWORD
from harness.visitor import Visitor
from harness.wait import eventually

PART = "Waiting for a person"
REASON = {"reason": "the sale"}


@pytest.fixture
def groups(started):
    return {"workers": started(HttpNodeGroup(4)), "others": started(HttpNodeGroup(4))}


@pytest.fixture
def daemon(make_daemon, groups, tmp_path):
    web = tmp_path / "web.yml"
    web.write_text(yaml.safe_dump({"basic_auth_users": {"alice": BCRYPT, "bob": BCRYPT, "carol": BCRYPT}}))
    web.chmod(0o600)
    (tmp_path / "token").write_text("sender-secret")
    targets = {name: {"node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 40,
                      "cooldown": {"up": "0s", "down": "0s"}, "approval": {"above": 3}} for name, group in groups.items()}
    rules = [{"name": f"{name}-busy", "match": ['alertname="Busy"', f'group="{name}"'], "target": name, "scale_up": {"by": 10}, "once": True}
             for name in groups]
    daemon = make_daemon({"targets": targets, "rules": rules}, {
        "providers": {"mine": {"type": "http"}},
        "receiver": {
            "tokens": [{"name": "sender", "file": str(tmp_path / "token"), "permissions": ["notify", "read"]}],
            "users": [{"name": "alice", "permissions": ["read", "admin"]},
                      {"name": "bob", "permissions": ["read", "admin"], "targets": ["workers"]},
                      {"name": "carol", "permissions": ["read"]}]},
    }, flags=["--web.enable-admin-api", f"--web.config.file={web}"], start=False)
    daemon.headers = {"Authorization": "Bearer sender-secret"}
    yield daemon.start()
    daemon.stop()


def ask(daemon, name):
    """Its rule asks; the id of the request."""
    daemon.notify(notification(alert({"alertname": "Busy", "group": name})))
    return eventually(lambda: [a["id"] for a in daemon.get("/api/v1/approvals").json["data"]
                               if a["target_name"] == name and a["answer"] == "waiting"], what="it is asked")[0]


def logged_in(daemon, user="alice"):
    visitor = Visitor(daemon)
    assert visitor.log_in(user, PASSWORD).status == 303
    return visitor


def commands(daemon):
    return [(r["command"], r["who"], r["outcome"]) for r in daemon.records("command")]


def paths(visitor, page):
    """Of all forms that answer, in their order; forms() keeps one of each word."""
    return re.findall(r'action="(/approvals/[^"]+)"', visitor.get(page).text)


def test_approve_on_the_first_page(daemon, groups):
    alice = logged_in(daemon)
    assert PART not in alice.get("/").text
    request = ask(daemon, "workers")
    page = alice.get("/").text
    assert PART in page and "workers-busy" in page and "Approve workers: 4 \u2192 14" in page
    assert paths(alice, "/") == [f"/approvals/{request}/approve", f"/approvals/{request}/deny"]
    assert alice.order("/", "approve", **REASON) == [("good", "The change of workers is approved.")]
    eventually(lambda: groups["workers"].applied == [14], what="the approved size")
    record = daemon.wait_record("approval", event="approved")
    assert (record["who"], record["message"]) == ("alice", "the sale")
    assert PART not in alice.get("/").text


def test_deny_on_the_page_of_the_target(daemon, groups):
    alice = logged_in(daemon)
    request = ask(daemon, "workers")
    ask(daemon, "others")
    assert paths(alice, "/targets/workers") == [f"/approvals/{request}/approve", f"/approvals/{request}/deny"]
    assert alice.order("/targets/workers", "deny") == [("good", "The change of workers is denied.")]     # a reason is not needed
    eventually(lambda: [r for r in daemon.records("decision") if r["output"]["reason"] == "not_approved"], what="not approved")
    assert PART not in alice.get("/targets/workers").text and PART in alice.get("/targets/others").text
    assert groups["workers"].applied == groups["others"].applied == []
    said = alice.said(alice.submit(f"/approvals/{request}/approve", alice.forms("/")["approve"][1]).headers["Location"])
    assert said == [("bad", "it was denied")]


def test_an_answer_leads_back_to_the_page_of_its_form(daemon, groups):
    alice = logged_in(daemon)
    ask(daemon, "workers")
    path, hidden = alice.forms("/targets/workers")["deny"]
    location = alice.submit(path, hidden).headers["Location"].partition("?")[0]
    assert urllib.parse.unquote(location) == "/targets/" + daemon.get("/api/v1/targets/workers").json["data"]["id"]
    ask(daemon, "others")
    path, hidden = alice.forms("/")["deny"]
    for to in ({}, {"to": "//evil.example/"}, {"to": "https://evil.example/"}, {"to": "/a\r\nSet-Cookie: b=c"}):
        answer = alice.submit(path, hidden | to)
        assert answer.status == 303 and answer.headers["Location"].startswith("/?"), to


def test_who_sees_it_and_who_may_answer(daemon, groups):
    workers, others = ask(daemon, "workers"), ask(daemon, "others")
    reader = logged_in(daemon, "carol")
    for path in ("/", "/targets/workers"):
        assert PART in reader.get(path).text and paths(reader, path) == [], path
    assert reader.submit(f"/approvals/{workers}/approve", REASON).status == 403
    bob = logged_in(daemon, "bob")
    assert paths(bob, "/") == [f"/approvals/{workers}/approve", f"/approvals/{workers}/deny"]
    refreshing = bob.get("/?refresh=15").text
    assert others not in bob.get("/").text and PART in refreshing and "<form class=\"order\"" not in refreshing
    assert 'http-equiv="refresh"' not in bob.get("/").text
    _, hidden = bob.forms("/")["approve"]
    assert "refused=" in bob.submit(f"/approvals/{others}/approve", hidden | REASON).headers["Location"]
    eventually(lambda: [outcome for _, _, outcome in commands(daemon)] == ["refused"], what="the refusal is recorded")
    assert bob.order("/", "approve", **REASON)[0][0] == "good"
    eventually(lambda: groups["workers"].applied == [14], what="the approved size")
    assert groups["others"].applied == []


def test_attacks(daemon, groups):
    """Another site, another seal, no seal, an id that was made up, a request by GET: nothing is answered."""
    alice, other = logged_in(daemon), logged_in(daemon)
    request = ask(daemon, "workers")
    path, hidden = alice.forms("/")["approve"]
    for headers in ({"Origin": "https://evil.example.org"}, {"Origin": "null"}, {"Origin": None}, {"Sec-Fetch-Site": "cross-site"},
                    {"Origin": "http://127.0.0.1:3000"}):
        assert alice.submit(path, hidden | REASON, headers).status == 403, headers
    for form in (other.forms("/")["approve"][1]["form"], hidden["form"][:-1], ""):
        assert alice.submit(path, {"form": form} | REASON).status == 403, form
    assert alice.submit(path, REASON).status == 403
    for method in ("GET", "HEAD", "PUT"):
        assert alice.ask(method, f"{path}?form={hidden['form']}", headers={"Origin": daemon.url}).status in (404, 405), method
    assert alice.ask("POST", f"/api/v1{path}", b"{}", {"Origin": daemon.url}).status in (303, 401)      # no session in the API
    assert commands(daemon) == []
    for forged in ("x", request.lower(), request + "0", "00000000000000000000000000", "%3Cscript%3E", "%0d%0aSet-Cookie:%20a=b", "..%2f.."):
        answer = alice.submit(f"/approvals/{forged}/approve", hidden | REASON)
        assert answer.status == 303 and answer.headers.get("Set-Cookie") is None, forged
        said = alice.said(answer.headers["Location"])
        assert len(said) == 1 and said[0][0] == "bad" and "no such request" in said[0][1], (forged, said)
    assert {outcome for _, _, outcome in commands(daemon)} == {"unknown_request"}
    assert groups["workers"].applied == []


def test_an_approval_that_waits_for_its_use_can_be_taken_back(daemon, groups):
    alice = logged_in(daemon)
    request = ask(daemon, "workers")
    assert alice.order("/targets/workers", "pause", **REASON)[0][0] == "good"
    assert alice.order("/", "approve", **REASON)[0][0] == "good"
    assert "approved by alice" in alice.get("/").text and paths(alice, "/") == [f"/approvals/{request}/deny"]
    assert "Take back workers: 4 \u2192 14" in alice.get("/targets/workers").text
    assert alice.order("/", "deny", **REASON) == [("good", "The change of workers is denied.")]
    assert alice.order("/targets/workers", "resume", **REASON)[0][0] == "good"
    eventually(lambda: [r for r in daemon.records("decision") if r["output"]["reason"] == "not_approved"], what="not approved")
    assert groups["workers"].applied == []


# --- in a browser

def log_in(chrome, daemon, path):
    chrome.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
    chrome.driver.get(f"{daemon.url}/login?to={path}")
    chrome.find("input[name=user]")[0].send_keys("alice")
    chrome.find("input[name=password]")[0].send_keys(PASSWORD)
    chrome.find("form:has(input[name=password]) button")[0].click()
    eventually(lambda: chrome.driver.current_url == daemon.url + path)
    chrome.driver.get_log("browser")


def test_a_person_approves_in_a_browser(daemon, groups, chrome):
    ask(daemon, "workers")
    log_in(chrome, daemon, "/")
    eventually(lambda: chrome.has(PART))
    details = eventually(lambda: chrome.find("details:has(form[action$='/approve'])"), what="the form")[0]
    details.find_element("css selector", "summary").click()
    details.find_element("css selector", "input[name=reason]").send_keys("the sale")
    details.find_element("css selector", "button").click()
    eventually(lambda: chrome.has("The change of workers is approved."))
    eventually(lambda: groups["workers"].applied == [14], what="the approved size")


@pytest.mark.parametrize("width, dark", [(NARROW, True), (WIDE, False)])
def test_the_forms_are_for_everyone(daemon, chrome, axe, width, dark):
    ask(daemon, "workers")
    ask(daemon, "others")
    log_in(chrome, daemon, "/")
    for name, path in (("home", "/"), ("target", "/targets/workers")):
        chrome.show(daemon.url + path, width, dark)
        for summary in chrome.find(".note details:not([open]) > summary"):
            summary.click()
        chrome.judge(axe, f"approval-{name}", width, dark)
