"""A real browser at the forms: Debian's Chromium, headless. What it does of itself (cookies, Origin, frames) is what
test_forms.py plays."""
import pytest
import yaml

from harness.browser import NARROW, WIDE
from harness.certificates import Authority
from harness.files import replace
from harness.http import Server
from harness.protection import BCRYPT, PASSWORD
from harness.wait import eventually

BROWSER_FLAGS = ["--ignore-certificate-errors"]
OTHER_BCRYPT = BCRYPT.replace("$2b$", "$2y$")       # of the same password


@pytest.fixture
def browser(chrome):
    """The driver; the window as wide as a desktop's, without cookies of other tests."""
    chrome.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
    chrome.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": WIDE, "height": 900, "deviceScaleFactor": 1, "mobile": False})
    yield chrome.driver
    chrome.driver.get("about:blank")
    chrome.driver.get_log("browser")    # refusals that its test asked for


@pytest.fixture
def make(make_daemon, node_group, tmp_path):
    group = node_group(size=4)

    def make(flags=(), web=None, tls=None, **options):
        web_file = tmp_path / "web.yml"
        web_file.write_text(yaml.safe_dump({"basic_auth_users": {"alice": BCRYPT}, **(web or {})}))
        web_file.chmod(0o600)
        (tmp_path / "token").write_text("operator-secret")
        daemon = make_daemon(
            {"targets": {"workers": {"node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 10}},
             "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 2}}]},
            config={"providers": {"mine": {"type": "http"}},
                    "receiver": {"tokens": [{"name": "operator", "file": str(tmp_path / "token"), "permissions": ["read", "admin"]}],
                                 "users": [{"name": "alice", "permissions": ["read", "admin"]}]}},
            flags=["--web.enable-admin-api", f"--web.config.file={web_file}", *flags], start=False, **options)
        if tls:
            daemon.url, daemon.tls = daemon.url.replace("http://127.0.0.1", "https://localhost"), tls
        daemon.web_file = web_file
        daemon.headers = {"Authorization": "Bearer operator-secret"}
        daemon.start()
        eventually(lambda: daemon.target("workers")["replicas"] == 4)      # which the form of a size begins with
        return daemon

    return make


def find(browser, selector):
    return eventually(lambda: browser.find_elements("css selector", selector), what=selector)[0]


def text(browser):
    return find(browser, "body").text


def log_in(browser, user="alice", password=PASSWORD):
    find(browser, "input[name=user]").send_keys(user)
    find(browser, "input[name=password]").send_keys(password)
    find(browser, "form:has(input[name=password]) button").click()


def order(browser, name, **fields):
    """Opens the order's form, and sends it."""
    form = find(browser, f"details:has(form[action$='/{name}'])")
    find(form, "summary").click()
    for field, value in fields.items():
        find(form, f"input[name={field}]").send_keys(value)
    find(form, "button").click()


def paused(daemon):
    return daemon.target("workers")["paused"]


def test_log_in_pause_see_it_resume_log_out(make, browser):
    daemon = make()
    browser.get(daemon.url + "/targets/workers")
    assert browser.current_url == daemon.url + "/login?to=/targets/workers"
    log_in(browser)
    eventually(lambda: browser.current_url == daemon.url + "/targets/workers")
    order(browser, "pause", reason="the big move", **{"for": "1h"})
    assert "workers is paused until" in find(browser, "[role=status]").text
    assert "the big move" in text(browser) and "alice" in text(browser)
    assert paused(daemon)["who"] == "alice" and paused(daemon)["reason"] == "the big move"
    browser.get(daemon.url + "/targets/workers")
    assert not browser.find_elements("css selector", "[role=status]") and "the big move" in text(browser)
    order(browser, "resume", reason="it is done")
    assert "workers is resumed." in find(browser, "[role=status]").text
    assert paused(daemon) is None
    eventually(lambda: [(r["command"], r["who"]) for r in daemon.records("command")] == [("pause", "alice"), ("resume", "alice")])
    cookie, = browser.get_cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["secure"], cookie["path"]) == (True, "Strict", False, "/")
    find(browser, "a[href='/account']").click()
    find(browser, "form[action='/logout'] button").click()
    eventually(lambda: browser.current_url == daemon.url + "/login")
    assert browser.get_cookies() == []
    browser.get(daemon.url + "/")
    assert "/login" in browser.current_url


def test_a_wrong_password_and_a_token(make, browser):
    daemon = make()
    browser.get(daemon.url + "/login")
    log_in(browser, password="a guess")
    assert find(browser, "[role=alert]").text == "user or password is wrong"
    assert browser.get_cookies() == []
    find(browser, "input[name=token]").send_keys("operator-secret")
    find(browser, "form:has(input[name=token]) button").click()
    eventually(lambda: browser.current_url == daemon.url + "/")
    assert "operator" in text(browser)


def test_a_changed_password_logs_out(make, browser):
    daemon = make()
    browser.get(daemon.url + "/login?to=/targets/workers")
    log_in(browser)
    find(browser, "details")
    replace(daemon.web_file, yaml.safe_dump({"basic_auth_users": {"alice": OTHER_BCRYPT}}))
    daemon.web_file.chmod(0o600)
    eventually(lambda: "web configuration loaded" in daemon.process.log_text())
    order(browser, "pause", reason="too late")
    eventually(lambda: "/login" in browser.current_url)
    assert daemon.records("command") == []


@pytest.fixture
def evil(make, request):
    """A server of somebody else, with pages that lead to ours; {URL} is our address."""
    daemon = make()
    pages = {
        "/pause": '<form method="post" action="{URL}/pause"><input name="reason" value="evil"><button>free cake</button></form>',
        "/login": '<form method="post" action="{URL}/login"><input name="user" value="alice"><input name="password" value="sesame">'
                  '<button>free cake</button></form>',
        "/api": '<form method="post" enctype="text/plain" action="{URL}/api/v1/pause">'
                '<input name=\'{{"reason": "evil\' value=\'"}}\'><button>free cake</button></form>',
        "/frame": '<iframe src="{URL}/targets/workers"></iframe>',
        "/link": '<a href="{URL}/targets/workers">look at this</a>',
    }
    server = Server(lambda asked: (200, {"Content-Type": "text/html"}, pages.get(asked.path, "").format(URL=daemon.url).encode()))
    request.addfinalizer(server.stop)
    server.url = server.url.replace("127.0.0.1", "localhost")      # another site, not only another port
    return daemon, server


def test_pages_of_others(evil, browser):
    daemon, server = evil
    browser.get(daemon.url + "/login?to=/targets/workers")
    log_in(browser)
    find(browser, "details")
    for page, handler, status in (("/pause", "form", 403), ("/login", "login", 403), ("/api", "command", 403)):
        browser.get(server.url + page)
        find(browser, "button").click()
        eventually(lambda: daemon.metrics().value("alertscaler_http_requests_total", handler=handler, code=str(status)) == 1, what=page)
        assert daemon.records("command") == []
    browser.get(server.url.replace("localhost", "127.0.0.1") + "/pause")     # the same site, another origin: the cookie comes along
    find(browser, "button").click()
    eventually(lambda: browser.current_url.startswith(daemon.url))
    eventually(lambda: "another site" in text(browser))
    assert daemon.records("command") == []
    assert daemon.wait_record("denied", handler="form")["status"] == 403
    browser.get(daemon.url + "/targets/workers")
    assert browser.find_elements("css selector", "details")            # still logged in, and as before


def test_a_frame_shows_nothing(evil, browser):
    daemon, server = evil
    browser.get(daemon.url + "/login?to=/targets/workers")
    log_in(browser)
    find(browser, "details")
    browser.get(server.url.replace("localhost", "127.0.0.1") + "/frame")
    browser.switch_to.frame(find(browser, "iframe"))
    eventually(lambda: browser.execute_script("return document.URL").startswith("chrome-error:"))
    browser.switch_to.default_content()


def test_a_link_on_another_site_leads_in(evil, browser):
    daemon, server = evil
    browser.get(daemon.url + "/login?to=/targets/workers")
    log_in(browser)
    find(browser, "details")
    browser.get(server.url + "/link")
    find(browser, "a").click()
    eventually(lambda: browser.current_url == daemon.url + "/targets/workers")
    find(browser, "details")


def test_over_tls(make, browser, tmp_path):
    authority = Authority(tmp_path / "authority")
    certificate, key = authority.issue("server")
    daemon = make(web={"tls_server_config": {"cert_file": str(certificate), "key_file": str(key)}}, tls=authority.context())
    browser.get(daemon.url + "/")
    log_in(browser)
    eventually(lambda: browser.current_url == daemon.url + "/")
    cookie, = browser.get_cookies()
    assert cookie["name"] == "__Host-alertscaler"
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["secure"], cookie["path"]) == (True, "Strict", True, "/")
    order(browser, "pause", reason="the big move")
    assert "All targets are paused" in find(browser, "[role=status]").text
    assert daemon.wait_record("command")["who"] == "alice"


def test_the_forms_work_without_scripts(make, browser):
    daemon = make()
    try:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        browser.get(daemon.url + "/login?to=/targets/workers")
        log_in(browser)
        order(browser, "scale", replicas="", reason="by hand")
        assert "workers is being set to the size" in find(browser, "[role=status]").text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize("width, dark", [(NARROW, True), (WIDE, False)])
def test_the_forms_are_for_everyone(make, chrome, browser, axe, width, dark):
    daemon = make()

    def look(name):
        for summary in chrome.find("details:not([open]) > summary"):
            summary.click()
        chrome.judge(axe, name, width, dark)

    chrome.show(daemon.url + "/login?to=/targets/workers", width, dark)
    look("login")
    log_in(browser, password="a guess")
    find(browser, "[role=alert]")
    look("login-refused")
    assert ["401" in entry["message"] for entry in browser.get_log("browser")] == [True]
    log_in(browser)
    find(browser, "form[action$='/scale']")
    look("orders")
    browser.find_element("css selector", "form[action$='/pause'] input[name=reason]").send_keys("the big move")
    browser.find_element("css selector", "form[action$='/pause'] button").click()
    find(browser, "[role=status]")
    look("ordered")
    for path in ("/", "/account"):
        chrome.show(daemon.url + path, width, dark)
        look(path.replace("/", "home" if path == "/" else ""))
