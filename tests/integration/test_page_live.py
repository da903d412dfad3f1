"""Pages stay current: the one script, what it requests, and what it leaves alone. In Debian's Chromium; the headers also by hand."""
import pathlib
import re

import pytest
import yaml

from harness.daemon import ROOT
from harness.files import replace
from harness.http import request
from harness.notification import alert, notification
from harness.protection import BCRYPT, PASSWORD
from harness.visitor import Visitor
from harness.wait import eventually

EVIL = "<script>document.title='evil'</script><img src=x onerror=\"document.title='evil'\">"
SOURCES = re.compile(r"`(script-src 'self'; connect-src 'self')`")


@pytest.fixture
def make(make_daemon, node_group, tmp_path):
    group = node_group(size=4)
    rules = {"targets": {"checkout": {"node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 12,
                                      "cooldown": {"up": "8s", "down": "20m"}}},
             "rules": [{"name": "slow", "match": ['alertname=~".*Slow"'], "target": "checkout", "scale_up": {"by": 1}, "max_steps": 1}]}

    def make(web=None, **receiver):
        flags = ["--web.enable-admin-api"]
        if web:
            (tmp_path / "web.yml").write_text(yaml.safe_dump(web))
            flags.append(f"--web.config.file={tmp_path / 'web.yml'}")
        daemon = make_daemon(rules, {"providers": {"mine": {"type": "http"}}, "receiver": receiver}, flags=flags, start=False)
        if web:
            (tmp_path / "token").write_text("secret")
            daemon.headers = {"Authorization": "Bearer secret"}
        daemon.start()
        return daemon

    return make


@pytest.fixture
def daemon(make):
    return make()


@pytest.fixture
def guarded(make, tmp_path):
    (tmp_path / "token").write_text("secret")
    daemon = make({"basic_auth_users": {"alice": BCRYPT}},
                  tokens=[{"name": "all", "file": str(tmp_path / "token"), "permissions": ["notify", "read"]}],
                  users=[{"name": "alice", "permissions": ["read", "admin"]}])
    daemon.web_file = tmp_path / "web.yml"
    return daemon


def fire(daemon, **labels):
    daemon.notify(notification(alert({"alertname": "Slow", **labels})))


def version_of(text):
    return re.search('data-version="([^"]*)"', text)[1]


def requests_of(daemon):
    """Requests for pages so far."""
    metrics = daemon.get("/metrics").text
    return sum(float(value) for value in re.findall(r'^alertscaler_http_requests_total\{[^}]*handler="page"[^}]*\} (\S+)', metrics, re.M))


def note(chrome):
    return chrome.find("#live")[0].text


# --- by hand

def test_the_policy_is_the_one_of_the_docs(daemon):
    policy = daemon.get("/").headers["Content-Security-Policy"]
    assert re.fullmatch(r"default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'sha256-[^']*'; base-uri 'none'; "
                        r"form-action 'self'; frame-ancestors 'none'", policy)
    for page in ("security.md", "page.md"):
        text = " ".join((pathlib.Path(ROOT) / "docs" / page).read_text(encoding="utf-8").split())
        assert "one static script, no inline script" in text, page
        for found in SOURCES.findall(text) or pytest.fail(f"{page} does not name the sources"):
            assert found in policy


def test_the_script_is_small_and_sets_texts_only(guarded):
    answer = guarded.get("/page.js")
    assert answer.headers["Content-Type"] == "text/javascript; charset=utf-8" and answer.headers["X-Content-Type-Options"] == "nosniff"
    assert len(answer.text) < 10 * 1024 and "textContent" in answer.text
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|Function|setTimeout\(['\"]|import\b", answer.text)
    assert request("GET", guarded.url + "/page.js").status == 401
    assert "<script" not in request("GET", guarded.url + "/login").text


def test_an_unchanged_page_is_304(daemon):
    fire(daemon)
    daemon.wait_record("action", target_name="checkout", outcome="applied")
    page = eventually(lambda: (text := daemon.get("/targets/checkout").text) and "locked" in text and text)
    version = version_of(page)
    answer = daemon.get(f"/targets/checkout?since={version}")
    assert answer.status in (200, 304)      # the lock may end at any moment
    page = eventually(lambda: (text := daemon.get("/targets/checkout").text) and "up locked" not in text and text, timeout=20)
    version = version_of(page)
    answer = daemon.get(f"/targets/checkout?since={version}")
    assert answer.status == 304 and answer.text == "" and answer.headers["ETag"] == f'"{version}"'
    assert "Content-Type" not in answer.headers
    fire(daemon, more="1")
    assert daemon.get(f"/targets/checkout?since={version}").status == 200
    assert daemon.get("/targets/none?since=x").status == 404


def test_the_script_does_not_log_in(guarded):
    for path in ("/", "/targets/checkout", "/rules", "/account"):
        answer = request("GET", f"{guarded.url}{path}?since=x", headers={"Accept": "text/html"})
        assert answer.status == 401 and "Basic" not in answer.headers["WWW-Authenticate"], path
    answer = Visitor(guarded).get("/")
    assert answer.status == 303 and answer.headers["Location"].startswith("/login")


def test_a_revoked_session_is_401(guarded):
    alice = Visitor(guarded)
    assert alice.log_in("alice", PASSWORD).status == 303
    version = version_of(alice.get("/").text)
    assert alice.get(f"/?since={version}").status == 304
    replace(guarded.web_file, yaml.safe_dump({"basic_auth_users": {"alice": BCRYPT.replace("$2b$", "$2y$")}}))
    eventually(lambda: alice.get(f"/?since={version}").status == 401, timeout=20)


# --- in a browser

def test_a_page_follows_what_happens(daemon, chrome):
    chrome.show(daemon.url + "/")
    assert not chrome.has("Slow")
    chrome.run("window.marked = document.querySelector('table, main p')")
    fire(daemon, evil=EVIL)
    eventually(lambda: chrome.has("Slow") and chrome.has("4 \u2192 5"), timeout=4, what="the page is current")
    assert chrome.has(EVIL) and chrome.driver.title != "evil"
    assert len(chrome.find("script")) == 1 and not chrome.find("img")
    eventually(lambda: any(chrome.has(f"up locked for {left} s") for left in range(6)), what="the span goes on in the browser")
    eventually(lambda: not chrome.has("up locked"), timeout=20)
    assert [entry["message"] for entry in chrome.driver.get_log("browser")] == []
    assert chrome.find("#live[hidden]")


def test_the_script_keeps_the_time_range(daemon, chrome):
    chrome.show(daemon.url + "/?range=6h&q=check")
    fire(daemon)
    eventually(lambda: chrome.has("4 \u2192 5"), timeout=4, what="the page is current")
    chrome.follow("15m", "Last 15 minutes")
    assert chrome.driver.current_url.endswith("/?q=check&range=15m")
    fire(daemon, more="1")
    eventually(lambda: chrome.has("5 \u2192 6"), timeout=20, what="the page is current")
    assert chrome.has("Last 15 minutes") and chrome.find("a[href='?q=check&range=15m'][aria-current]")


def test_a_hidden_page_requests_nothing(daemon, chrome):
    chrome.show(daemon.url + "/")
    before = requests_of(daemon)
    eventually(lambda: requests_of(daemon) >= before + 2, timeout=8)
    hide = "Object.defineProperty(document, 'hidden', {configurable: true, get: () => %s});" \
           "document.dispatchEvent(new Event('visibilitychange'))"
    chrome.run(hide % "true")
    before = requests_of(daemon)
    fire(daemon)
    daemon.wait_record("action", target_name="checkout", outcome="applied")
    chrome.driver.execute_async_script("setTimeout(arguments[0], 5000)")
    assert requests_of(daemon) <= before + 1 and not chrome.has("4 \u2192 5")
    chrome.run(hide % "false")
    eventually(lambda: chrome.has("4 \u2192 5"), timeout=3)


def test_a_form_in_use_stays(guarded, chrome):
    chrome.driver.get(guarded.url + "/login?to=/targets/checkout")
    chrome.find("input[name=user]")[0].send_keys("alice")
    chrome.find("input[name=password]")[0].send_keys(PASSWORD)
    chrome.find("form:has(input[name=password]) button")[0].click()
    form = eventually(lambda: chrome.find("details:has(form[action$='/pause'])"), what="the form")[0]
    form.find_element("css selector", "summary").click()
    form.find_element("css selector", "input[name=reason]").send_keys("half a sen")
    fire(guarded)
    eventually(lambda: chrome.has("up locked"), timeout=6)
    form.find_element("css selector", "input[name=reason]").send_keys("tence")
    form.find_element("css selector", "button").click()
    eventually(lambda: chrome.has("half a sentence") and chrome.has("is paused until"), what="the pause")
    replace(guarded.web_file, yaml.safe_dump({"basic_auth_users": {"alice": BCRYPT.replace("$2b$", "$2y$")}}))
    eventually(lambda: "not logged in any more" in note(chrome), timeout=20)
    assert chrome.driver.current_url.startswith(guarded.url + "/targets/")
    chrome.driver.delete_all_cookies()
    chrome.driver.get_log("browser")        # the 401


def test_a_page_says_that_it_is_not_current(daemon, chrome):
    chrome.show(daemon.url + "/rules")
    daemon.stop()
    eventually(lambda: "does not answer" in note(chrome), timeout=15)
    assert chrome.has("slow")
    daemon.start()
    eventually(lambda: chrome.find("#live[hidden]"), timeout=15)
    chrome.driver.get_log("browser")        # refused connections


def test_without_scripts_a_page_has_the_link(daemon, chrome):
    chrome.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        chrome.driver.get(daemon.url + "/?state=firing")
        chrome.follow("Refresh every 15 seconds", "Stop refreshing")
        assert chrome.driver.current_url.endswith("?state=firing&refresh=15")
    finally:
        chrome.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
