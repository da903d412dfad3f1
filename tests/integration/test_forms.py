"""Logins, and orders by forms: what works, and what an attacker tries. The browser is played here (harness/visitor.py);
test_browser.py has a real one."""
import html
import os
import pathlib
import re
import socket
import time
import urllib.parse

import pytest
import yaml

from harness.certificates import Authority
from harness.daemon import dump_yaml
from harness.files import replace
from harness.http import request
from harness.protection import BCRYPT, PASSWORD
from harness.visitor import PAGE, Visitor
from harness.wait import eventually

TOKENS = {"operator": ["read", "admin"], "reader": ["read"], "sender": ["notify"]}
REASON = {"reason": "the big move"}


@pytest.fixture
def make(make_daemon, node_group, tmp_path):
    group = node_group(size=4)
    rules = {
        "targets": {name: {"node_group": {"provider": "mine", "url": f"{group.url}{more}"}, "min": 1, "max": 10}
                    for name, more in (("workers", ""), ("others", "?b"))},
        "rules": [{"name": f"busy-{name}", "match": [f'alertname="{name}"'], "target": name, "scale_up": {"by": 2}}
                  for name in ("workers", "others")],
    }

    def make(flags=("--web.enable-admin-api",), config=None, web=None, tls=None, prefix="", **options):
        (tmp_path / "web.yml").write_text(yaml.safe_dump({"basic_auth_users": {"alice": BCRYPT, "bob": BCRYPT}, **(web or {})}))
        (tmp_path / "web.yml").chmod(0o600)
        for name in TOKENS:
            (tmp_path / name).write_text(f"{name}-secret")
        config = {
            "providers": {"mine": {"type": "http"}},
            "receiver": {
                "tokens": [{"name": name, "file": str(tmp_path / name), "permissions": may} for name, may in TOKENS.items()],
                "users": [{"name": "alice", "permissions": ["read", "admin"]},
                          {"name": "bob", "permissions": ["read", "admin"], "targets": ["workers"]}],
            },
            **(config or {}),
        }
        daemon = make_daemon(rules, config=config, flags=[*flags, f"--web.config.file={tmp_path / 'web.yml'}"], start=False, **options)
        daemon.config = config
        daemon.headers = {"Authorization": "Bearer operator-secret"}
        daemon.group = group
        if tls:
            daemon.url, daemon.tls = daemon.url.replace("http://127.0.0.1", "https://localhost"), tls
        daemon.url += prefix
        daemon.start()
        if "tokens" in config["receiver"]:
            eventually(lambda: daemon.target("workers")["replicas"] == 4)
        return daemon

    return make


def logged_in(daemon, user="alice", **options):
    visitor = Visitor(daemon, **options)
    assert visitor.log_in(user, PASSWORD).status == 303
    return visitor


def is_logged_in(visitor):
    return visitor.get("/").status == 200


def expect(daemon, *expected):
    """A record is in the log a moment after its answer."""
    eventually(lambda: commands(daemon) == list(expected), what=expected)


def cpu_seconds(daemon):
    fields = pathlib.Path(f"/proc/{daemon.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def commands(daemon):
    return [(r["command"], r["who"], r["outcome"]) for r in daemon.records("command")]


class TestOrders:
    def test_pause_scale_resume_unlock(self, make):
        daemon = make()
        alice = logged_in(daemon)
        kind, text = alice.order("/targets/workers", "pause", **REASON, **{"for": "1h"})[0]
        assert kind == "good" and re.fullmatch(r"workers is paused until \d{4}-.*Z\.", text)
        assert "the big move" in alice.get("/targets/workers").text
        assert alice.order("/targets/workers", "scale", replicas="6", **REASON) == [("good", "workers is being set to the size 6.")]
        eventually(lambda: daemon.group.size == 6)
        eventually(lambda: "unlock" in alice.forms("/targets/workers"))
        assert alice.order("/targets/workers", "unlock", **REASON) == [("good", "The locks of workers are ended.")]
        assert alice.order("/targets/workers", "resume", **REASON) == [("good", "workers is resumed.")]
        assert alice.order("/", "pause", **REASON) == [("good", "All targets are paused until they are resumed.")]
        assert "Everything is" in alice.get("/targets/others").text
        assert alice.order("/", "resume", **REASON) == [("good", "All targets are resumed.")]
        expect(daemon, *((word, "alice", "done") for word in ("pause", "scale", "unlock", "resume", "pause", "resume")))
        assert daemon.records("command")[0]["reason"] == "the big move"

    def test_what_is_not_done_is_said(self, make):
        daemon = make()
        alice = logged_in(daemon)
        path, hidden = alice.forms("/targets/workers")["scale"]
        rows = [
            ("/scale", {"replicas": "99"} | REASON, "99 is outside 1 to 10. To set it anyway, select \"Ignore its bounds\""),
            ("/scale", {"replicas": "many"} | REASON, "replicas"),
            ("/scale", REASON, "replicas"),
            ("/scale", {"replicas": "5", "for": "1h"} | REASON, "for"),
            ("/pause", {"for": "soon"} | REASON, "for"),
            ("/pause", {}, "reason"),
            ("/pause", {"reason": "  "}, "reason"),
            ("/resume", REASON, "not paused"),
            ("/unlock", REASON, "lock"),
        ]
        for order, fields, text in rows:
            answer = alice.submit(path.removesuffix("/scale") + order, hidden | fields)
            said = alice.said(answer.headers["Location"])
            assert answer.status == 303 and len(said) == 1 and said[0][0] == "bad" and text in said[0][1], (fields, said)
        assert not [outcome for _, _, outcome in commands(daemon) if outcome == "done"]
        answer = alice.submit("/targets/nothing/pause", hidden | REASON)
        assert answer.status == 303 and "refused=" in answer.headers["Location"]
        assert alice.order("/targets/workers", "scale", replicas="12", force="true", **REASON)[0][0] == "good"

    def test_a_refused_form_keeps_what_was_typed(self, make):
        daemon = make()
        alice = logged_in(daemon)
        evil = '"><script>alert(1)</script>'
        path, hidden = alice.forms("/targets/workers")["scale"]
        rows = [
            ("scale", {"replicas": "99", "reason": evil}, "replicas"),
            ("scale", {"replicas": "many", "force": "true", "reason": "x"}, "replicas"),
            ("pause", {"for": "soon", "direction": "up", "reason": evil}, "for"),
            ("floor", {"replicas": "3", "for": "never", "reason": "x & y"}, "for"),
            ("pause", {"for": "1h"}, "reason"),
        ]
        for word, fields, wrong in rows:
            location = alice.submit(path.removesuffix("scale") + word, hidden | fields).headers["Location"]
            text = alice.get(location).text
            form = re.search(rf"<details [^>]*data-key=\"[^\"]*/{word}\" open>.*?</details>", text, re.S)[0]
            for name, value in fields.items():
                if name == "direction":
                    assert f'<option value="{value}" selected>' in form
                elif name == "force":
                    assert re.search(r'name="force"[^>]* checked>', form)
                else:
                    assert f' value="{html.escape(value)}"' in form, (name, form)
            assert re.search(rf'name="{wrong}"[^>]* aria-invalid="true"', form) and form.count("aria-invalid") == 1
            assert text.count(" open>") == 1 and text.count("<script") == 1
            other = alice.get(location.replace("reason", "reasons") if "reason" in fields else location.replace("for", "far")).text
            assert " open>" not in other and "aria-invalid=\"" not in other        # the seal is another's
        assert logged_in(daemon, "bob").get(location).text.count(" open>") == 0
        long = alice.submit(path, hidden | {"replicas": "99", "reason": "x" * 4000})
        assert len(long.headers["Location"]) < 8000 and alice.said(long.headers["Location"])[0][0] == "bad"

    def test_errors_are_pages_for_browsers(self, make):
        daemon = make()
        alice = logged_in(daemon)
        for path, status, text in (("/foo", 404, "There is nothing at /foo."), ("/foo/<script>", 404, "&lt;script&gt;"),
                                   ("/logout", 404, "There is nothing"), ("/?a=%zz&&", 400, "query string")):
            answer = alice.get(path)
            assert answer.status == status and answer.headers["Content-Type"].startswith("text/html"), path
            assert text in answer.text and "<nav" in answer.text and answer.text.count("<script") == 1
            assert request("GET", daemon.url + path, headers=daemon.headers).headers["Content-Type"] == "application/json" or status == 400
        for headers, status, text in (({"Authorization": "Bearer sender-secret"}, 403, "lacks the permission"),
                                      ({"Authorization": "Bearer wrong"}, 401, "not one of receiver.tokens")):
            answer = request("GET", daemon.url + "/", headers=PAGE | headers)
            assert answer.status == status and "<h1>Refused</h1>" in answer.text and text in answer.text
            assert ("WWW-Authenticate" in answer.headers) == (status == 401)
            answer = request("GET", daemon.url + "/", headers=headers)
            assert answer.status == status and answer.headers["Content-Type"].startswith("text/plain")

    def test_only_who_may_order_has_forms(self, make):
        daemon = make()
        reader = Visitor(daemon)
        assert reader.log_in(token="reader-secret").status == 303
        assert reader.forms("/targets/workers") == {} and reader.forms("/") == {}
        assert reader.submit("/targets/workers/pause", REASON).status == 403
        closed = make(flags=[], name="closed")
        alice = logged_in(closed)
        assert alice.forms("/targets/workers") == {} and alice.forms("/") == {}
        assert "--web.enable-admin-api" in alice.submit("/targets/workers/pause", REASON).text
        assert commands(daemon) == commands(closed) == []

    def test_targets_of_a_credential_narrow_what_it_sees_and_orders(self, make):
        daemon = make()
        bob = logged_in(daemon, "bob")
        assert "pause" in bob.forms("/targets/workers") and bob.forms("/") == {}
        assert bob.get("/targets/others").status == 404
        assert not [row for row in re.findall(r"<a[^>]*>others</a>", bob.get("/").text)]
        _, hidden = bob.forms("/targets/workers")["pause"]
        for path in ("/targets/others/pause", "/pause"):
            location = bob.submit(path, hidden | REASON).headers["Location"]
            assert "refused=" in location
        assert {outcome for _, _, outcome in commands(daemon)} <= {"refused", "unknown_target"}
        assert daemon.target("others")["paused"] is None

    def test_a_basic_credential_without_a_session_has_forms_of_its_own(self, make):
        daemon = make()
        basic = {"Authorization": "Basic YWxpY2U6c2VzYW1l"}     # alice:sesame
        alice, bob = Visitor(daemon), logged_in(daemon, "bob")
        page = alice.get("/targets/workers", **basic).text
        seal = re.search(r'name="form" value="([^"]+)"', page)[1]
        other = bob.forms("/targets/workers")["pause"][1]["form"]
        path = "/targets/workers/pause"
        assert alice.submit(path, REASON | {"form": other}, basic).status == 403
        assert alice.submit(path, REASON, basic).status == 403
        assert alice.submit(path, REASON | {"form": seal}, basic).status == 303
        expect(daemon, ("pause", "alice", "done"))

    def test_a_page_with_forms_does_not_refresh(self, make):
        daemon = make()
        alice = logged_in(daemon)
        for path in ("/", "/targets/workers"):
            assert 'http-equiv="refresh"' not in alice.get(path).text
            refreshing = alice.get(path + "?refresh=15").text
            assert 'http-equiv="refresh"' in refreshing and 'method="post"' not in refreshing
        assert 'http-equiv="refresh"' not in alice.get("/account?refresh=15").text

    def test_the_order_is_durable_or_said_to_be_lost(self, make):
        """kill -9 right after the redirect: the pause is there."""
        daemon = make()
        alice = logged_in(daemon)
        alice.order("/targets/workers", "pause", **REASON)
        daemon.kill()
        daemon.start()
        assert daemon.target("workers")["paused"]["who"] == "alice"
        assert not is_logged_in(alice)      # sessions are in memory alone


class TestSessions:
    def test_log_in_and_out(self, make):
        daemon = make()
        alice = Visitor(daemon)
        assert alice.get("/targets/workers?x=1").headers["Location"] == "/login?to=/targets/workers%3Fx%3D1"
        answer = alice.log_in("alice", PASSWORD, to="/targets/workers?x=1")
        assert (answer.status, answer.headers["Location"]) == (303, "/targets/workers?x=1")
        assert len(alice.set_cookies) == 1
        assert re.fullmatch(r"alertscaler=[\w-]{43}; Path=/; HttpOnly; SameSite=Strict", alice.set_cookies[0])
        assert "alice" in alice.get("/account").text
        assert alice.get("/login?to=%2Frules").headers["Location"] == "/rules"
        assert alice.get("/login").headers["Location"] == "/account"
        assert alice.get("/api/v1/status").status == 200
        old = dict(alice.cookies)
        path, hidden = alice.forms("/account")["logout"]
        assert alice.submit(path, {"form": "x"}).status == 403 and is_logged_in(alice)
        answer = alice.submit(path, hidden)
        assert (answer.status, answer.headers["Location"]) == (303, "/login") and alice.cookies == {}
        alice.cookies = old
        assert not is_logged_in(alice)

    def test_a_token_logs_in(self, make):
        daemon = make()
        operator = Visitor(daemon)
        assert operator.log_in(token="operator-secret").status == 303
        operator.order("/targets/workers", "pause", **REASON)
        expect(daemon, ("pause", "operator", "done"))

    def test_a_wrong_secret_does_not(self, make):
        daemon = make()
        rows = [
            ({"user": "alice", "password": "a guess"}, 401),
            ({"user": "nobody", "password": PASSWORD}, 401),
            ({"user": "alice", "password": ""}, 400),
            ({"token": "a-guess"}, 401),
            ({"token": "operator"}, 401),
            ({"token": "sender-secret"}, 403),      # it may only notify
            ({"user": "alice", "password": PASSWORD, "token": "operator-secret"}, 400),
            ({}, 400),
        ]
        for fields, status in rows:
            visitor = Visitor(daemon)
            answer = visitor.submit("/login", {"to": "/rules", **fields})
            assert answer.status == status and not visitor.cookies, fields
            assert 'role="alert"' in answer.text and 'value="/rules"' in answer.text
            assert "WWW-Authenticate" not in answer.headers     # no dialogue of the browser over the form
            assert not [value for value in fields.values() if value and value in answer.text]
            assert ("this token is not valid" in answer.text) == (list(fields) == ["token"] and status == 401)
            assert not is_logged_in(visitor)

    def test_it_ends_when_its_credential_changes(self, make, tmp_path):
        daemon = make()
        alice, operator, bob = logged_in(daemon), Visitor(daemon), logged_in(daemon, "bob")
        operator.log_in(token="operator-secret")
        other = BCRYPT.replace("$2b$", "$2y$")      # the same password
        replace(tmp_path / "web.yml", yaml.safe_dump({"basic_auth_users": {"alice": other, "bob": BCRYPT}}))
        (tmp_path / "web.yml").chmod(0o600)
        eventually(lambda: not is_logged_in(alice))
        assert is_logged_in(bob) and is_logged_in(operator)
        replace(tmp_path / "web.yml", yaml.safe_dump({"basic_auth_users": {"alice": other}}))
        eventually(lambda: not is_logged_in(bob))
        replace(tmp_path / "operator", "another-secret")
        eventually(lambda: not is_logged_in(operator))

    def test_its_permissions_follow_a_reload(self, make):
        daemon = make()
        alice = logged_in(daemon)
        path, hidden = alice.forms("/targets/workers")["pause"]
        users = [{"name": "alice", "permissions": ["read"]}, daemon.config["receiver"]["users"][1]]
        daemon.write_config(daemon.config | {"receiver": daemon.config["receiver"] | {"users": users}})
        daemon.reload()
        eventually(lambda: alice.forms("/targets/workers") == {})
        assert alice.submit(path, hidden | REASON).status == 403
        assert is_logged_in(alice) and commands(daemon) == []

    def test_the_hundred_and_first_ends_one_of_the_same_credential(self, make):
        daemon = make()
        bob = logged_in(daemon, "bob")
        first, second = logged_in(daemon), logged_in(daemon)
        for _ in range(98):
            last = logged_in(daemon)
        assert not is_logged_in(first)
        assert is_logged_in(bob) and is_logged_in(second) and is_logged_in(last)

    def test_over_tls_the_cookie_is_bound_to_the_host(self, make, tmp_path):
        authority = Authority(tmp_path / "authority")
        certificate, key = authority.issue("server")
        daemon = make(web={"tls_server_config": {"cert_file": str(certificate), "key_file": str(key)}}, tls=authority.context(),
                      flags=["--web.enable-admin-api", "--web.external-url=https://ops.example.org/"])
        outside = logged_in(daemon, host="ops.example.org", origin="https://ops.example.org")
        assert re.fullmatch(r"__Host-alertscaler=[\w-]{43}; Path=/; HttpOnly; SameSite=Strict; Secure", outside.set_cookies[0])
        outside.order("/targets/workers", "pause", **REASON)
        # the same id in the cookie without the prefix, which others may set
        tossed = Visitor(daemon, host="ops.example.org")
        tossed.cookies = {"alertscaler": outside.cookies["__Host-alertscaler"]}
        assert not is_logged_in(tossed)
        tossed.host = None      # nor on this machine
        assert not is_logged_in(tossed)


class TestAttacks:
    @pytest.fixture
    def daemon(self, make):
        return make()

    def test_csrf(self, daemon):
        """Even with the right seal, which such a page does not have."""
        alice = logged_in(daemon)
        path, hidden = alice.forms("/targets/workers")["pause"]
        rows = [
            {"Origin": "https://evil.example.org"},
            {"Origin": "https://evil.example.org", "Sec-Fetch-Site": "cross-site"},
            {"Origin": "null"},
            {"Origin": None},
            {"Origin": None, "Sec-Fetch-Site": "same-origin"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
            {"Sec-Fetch-Site": "none"},
        ]
        for headers in rows:
            assert alice.submit(path, hidden | REASON, headers).status == 403, headers
            assert alice.submit("/pause", hidden | REASON, headers).status == 403, headers
            assert alice.submit("/logout", hidden, headers).status == 403 and is_logged_in(alice), headers
        assert commands(daemon) == []
        daemon.wait_record("denied", handler="form")

    def test_csrf_from_another_server_of_this_machine(self, daemon):
        """Its port makes it another origin, though cookies and SameSite do not see ports."""
        alice = logged_in(daemon)
        path, hidden = alice.forms("/targets/workers")["pause"]
        assert alice.submit(path, hidden | REASON, {"Origin": "http://127.0.0.1:3000"}).status == 403
        assert commands(daemon) == []

    def test_the_api_does_not_take_a_session(self, daemon):
        """A cookie is sent by any page; the API has no seal against that."""
        alice = logged_in(daemon)
        for path in ("/api/v1/targets/workers/pause", "/api/v1/pause", "/-/reload", "/webhook"):
            answer = alice.ask("POST", path, b'{"reason": "x"}', {"Content-Type": "text/plain", "Origin": daemon.url})
            assert answer.status in (303, 401), (path, answer.status)
            assert answer.headers.get("Location", "/login").startswith("/login")
        assert commands(daemon) == [] and daemon.records("notification") == []

    def test_a_seal_of_another_session_or_process(self, daemon):
        alice, bob = logged_in(daemon), logged_in(daemon)      # bob logs in as alice, in another browser
        path, hidden = alice.forms("/targets/workers")["pause"]
        for form in (bob.forms("/targets/workers")["pause"][1]["form"], hidden["form"][:-1], hidden["form"] + "A", "", "A" * 43):
            assert alice.submit(path, {"form": form} | REASON).status == 403
        assert alice.submit(path, REASON).status == 403
        daemon.kill()
        daemon.start()
        assert alice.log_in("alice", PASSWORD).status == 303
        assert alice.submit(path, hidden | REASON).status == 403
        assert commands(daemon) == []

    def test_a_seal_replayed_after_logout(self, daemon):
        alice = logged_in(daemon)
        cookies = dict(alice.cookies)
        path, hidden = alice.forms("/targets/workers")["pause"]
        alice.submit("/logout", hidden)
        alice.cookies = cookies
        assert alice.submit(path, hidden | REASON).headers["Location"].startswith("/login")
        assert alice.log_in("alice", PASSWORD).status == 303
        assert alice.submit(path, hidden | REASON).status == 403
        assert commands(daemon) == []

    def test_login_csrf(self, daemon):
        """A page that logs a browser in as somebody else."""
        fields = {"user": "alice", "password": PASSWORD}
        visitor = Visitor(daemon)
        for headers in ({"Origin": "https://evil.example.org"}, {"Origin": None}, {"Sec-Fetch-Site": "cross-site"}):
            assert visitor.submit("/login", fields, headers).status == 403
        assert visitor.cookies == {}

    def test_session_fixation(self, daemon):
        """An id that was there before the login is not the one after it, and ends if it was one."""
        victim, mallory = Visitor(daemon), logged_in(daemon, "bob")
        given = dict(mallory.cookies)
        victim.cookies = dict(given)
        assert victim.log_in("alice", PASSWORD).status == 303
        assert victim.cookies != given
        assert not is_logged_in(mallory)
        victim.cookies = {"alertscaler": "A" * 43}
        assert victim.log_in("alice", PASSWORD).status == 303
        assert victim.cookies["alertscaler"] != "A" * 43

    def test_cookie_tossing(self, daemon):
        """Two cookies of one name have two owners: neither counts."""
        alice, mallory = logged_in(daemon), logged_in(daemon, "bob")
        own, other = alice.cookies["alertscaler"], mallory.cookies["alertscaler"]
        for text in (f"alertscaler={own}; alertscaler={other}", f"alertscaler={other}; alertscaler={own}",
                     f"alertscaler={own}; alertscaler=", f"alertscaler={own}x", f"alertscaler={own[:-1]}", f'alertscaler="{own}"',
                     f"Alertscaler={own}", f"xalertscaler={own}", f"alertscaler ={own}", "alertscaler", "alertscaler=", ";;=;",
                     f"__Host-alertscaler={own}"):
            assert Visitor(daemon).get("/", Cookie=text).status == 303, text
        assert Visitor(daemon).get("/", Cookie=f"a=b;alertscaler={own} ; c").status == 303
        assert Visitor(daemon).get("/", Cookie=f"a=b;alertscaler={own}; c=d").status == 200

    def test_get_changes_nothing(self, daemon):
        alice = logged_in(daemon)
        path, hidden = alice.forms("/targets/workers")["pause"]
        query = "?" + urllib.parse.urlencode(hidden | REASON)
        for place in (path, "/pause", "/resume", "/targets/workers/scale", "/logout"):
            for method in ("GET", "HEAD"):
                alice.ask(method, place + query, headers={"Origin": daemon.url})
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
            answer = alice.ask(method, path, urllib.parse.urlencode(hidden | REASON).encode(),
                               {"Origin": daemon.url, "Content-Type": "application/x-www-form-urlencoded"})
            assert answer.status in (404, 405), (method, answer.status)
        assert alice.get("/login?user=bob&password=sesame").status == 303 and "alice" in alice.get("/account").text
        assert is_logged_in(alice) and commands(daemon) == []
        assert daemon.target("workers")["paused"] is None

    def test_open_redirect_after_login(self, daemon):
        rows = [
            "//evil.example.org", "https://evil.example.org/", "/\\evil.example.org", "\\\\evil.example.org", "javascript:alert(1)",
            " //evil.example.org", "/\t/evil.example.org", "/\r\nSet-Cookie: a=b", "/\r\n\r\n<script>", "/\x00", "/ä", "", "evil", "/" + "a" * 3000,
            "%2F%2Fevil.example.org",
        ]
        for to in rows:
            visitor = Visitor(daemon)
            answer = visitor.log_in("alice", PASSWORD, to=to)
            assert answer.status == (400 if "\x00" in to else 303), to
            if answer.status == 303:
                assert answer.headers["Location"] == "/" and len(visitor.set_cookies) == 1, to
                encoded = urllib.parse.quote(to, safe="")
                assert visitor.get(f"/login?to={encoded}").headers["Location"] == "/", to

    def test_the_path_to_return_to_is_escaped(self, daemon):
        page = Visitor(daemon).get("/login?to=%22%3E%3Cscript%3Ealert(1)%3C/script%3E").text
        assert "<script" not in page and "&quot;&gt;&lt;script&gt;" in page

    def test_clickjacking(self, daemon):
        alice = logged_in(daemon)
        for visitor, path in ((alice, "/targets/workers"), (alice, "/"), (alice, "/account"), (Visitor(daemon), "/login")):
            policy = visitor.get(path).headers["Content-Security-Policy"]
            assert "frame-ancestors 'none'" in policy and "form-action 'self'" in policy and "default-src 'none'" in policy
            assert visitor.get(path).headers["Cache-Control"] == "no-store"
        refused = alice.submit("/pause", {}, {"Origin": "https://evil.example.org"})
        assert "frame-ancestors 'none'" in refused.headers["Content-Security-Policy"]

    def test_brute_force(self, daemon):
        mallory, alice = Visitor(daemon), logged_in(daemon)
        begun, guesses = time.monotonic(), 0
        while (status := mallory.log_in("alice", f"guess {guesses}").status) == 401:
            guesses += 1
            assert guesses <= 10 + (time.monotonic() - begun) / 5       # one of them is forgotten every five seconds
        assert status == 503 and guesses >= 10
        eventually(lambda: mallory.log_in("nobody", "guess").status == 503)
        assert is_logged_in(alice)                              # who is in stays in
        assert Visitor(daemon).log_in("alice", PASSWORD).status == 303     # and whose password was right lately gets in
        denied = daemon.wait_record("denied", handler="login")
        assert denied["error"] == "user or password is wrong"

    def test_unknown_users_take_as_long(self, make):
        """As a user with an expensive hash: the answer does not tell who exists."""
        expensive = "$2b$11$ABpxdbZS3aRuCeVrPHD29." + "a" * 31
        daemon = make(web={"basic_auth_users": {"alice": expensive}}, config={"receiver": {}})
        quickest, work = {}, {}     # of an answer; what the daemon computes for one, however busy the machine is
        for user in ("alice", "nobody"):
            before, times = cpu_seconds(daemon), []
            for i in range(4):
                begun = time.monotonic()
                assert Visitor(daemon).log_in(user, f"guess {i}").status == 401
                times.append(time.monotonic() - begun)
            quickest[user], work[user] = min(times), (cpu_seconds(daemon) - before) / len(times)
        for user, other in (("alice", "nobody"), ("nobody", "alice")):      # without the check: a hundredth
            assert 4 * work[user] > work[other] and 4 * quickest[user] > work[other], (quickest, work)

    def test_names_in_results_cannot_make_headers_or_markup(self, daemon):
        alice = logged_in(daemon)
        _, hidden = alice.forms("/targets/workers")["pause"]
        for name in ("%0d%0aSet-Cookie:%20a=b", "%3Cscript%3E", "a%22b", "%E2%80%AE", "%00", "%zz", "a%2F..%2Fb"):
            answer = alice.submit(f"/targets/{name}/pause", hidden | REASON)
            assert answer.status == 303 and answer.headers.get("Set-Cookie") is None, name
            assert re.fullmatch(r"/targets/[!-~]*\?refused=[\w.~%-]+(&(form|field|typed)=[\w.~%-]+)*&seal=[\w-]{43}", answer.headers["Location"]), name
        reason = "<script>alert(1)</script>\r\nSet-Cookie: a=b \u202e"
        assert alice.order("/targets/workers", "pause", reason=reason)[0][0] == "good"
        page = alice.get("/targets/workers").text
        assert page.count("<script") == 1 and "\u202e" not in page and "&lt;script&gt;" in page

    def test_a_result_that_we_did_not_say(self, daemon):
        """A link with a text of somebody else shows nothing."""
        alice, bob = logged_in(daemon), logged_in(daemon, "bob")
        path, hidden = alice.forms("/targets/workers")["pause"]
        location = alice.submit(path, hidden | REASON).headers["Location"]
        assert len(alice.said(location)) == 1
        forged = [location.replace("done=workers", "done=others"), location.replace("done=", "refused="), location[:-1],
                  location.partition("&")[0], "/targets/workers?done=x&seal=", f"/targets/workers?done=form&seal={hidden['form']}",
                  f"/targets/workers?done=&seal={hidden['form']}"]
        for text in forged:
            assert alice.said(text) == [], text
        assert bob.said(location) == []

    def test_a_forged_host(self, daemon):
        """Names that lead to this machine are not names of it (DNS rebinding); and no answer repeats the name."""
        alice = logged_in(daemon)
        path, hidden = alice.forms("/targets/workers")["pause"]
        for host in ("evil.example.org", "evil.example.org:80", "localhost.evil.example.org", "127.0.0.1.evil.example.org"):
            alice.host = alice.origin = None
            alice.host, alice.origin = host, f"http://{host}"
            assert alice.submit(path, hidden | REASON, {"Sec-Fetch-Site": "same-origin"}).status == 403
            assert not is_logged_in(alice)      # the cookie of this machine does not count there
            for answer in (alice.get("/"), alice.get("/login")):
                assert host not in answer.text and host not in str(answer.headers)
        assert commands(daemon) == []

    def test_plain_http_from_elsewhere(self, daemon):
        """Where a password could be read on the way there is no form, and none is taken."""
        visitor = Visitor(daemon, host="scaler.example.org:9096")
        page = visitor.get("/login")
        assert page.status == 200 and "<form" not in page.text and "over TLS" in page.text
        assert visitor.log_in("alice", PASSWORD).status == 403
        answer = visitor.get("/")
        assert answer.status == 401 and "Basic" in str(answer.headers)      # as before, for who accepts that

    def test_an_https_url_outside_is_where_forms_lead(self, make):
        daemon = make(flags=["--web.enable-admin-api", "--web.external-url=https://ops.example.org/"])
        page = Visitor(daemon, host="10.1.2.3:9096").get("/login").text
        assert page.count('action="https://ops.example.org/login"') == 2
        outside = Visitor(daemon, host="ops.example.org", origin="https://ops.example.org")
        assert outside.log_in("alice", PASSWORD).status == 303 and "Secure" in outside.set_cookies[0]
        assert is_logged_in(outside)
        inside = Visitor(daemon, host="10.1.2.3:9096")
        assert inside.log_in("alice", PASSWORD).status == 403
        near = logged_in(daemon)        # by an address of this machine all the same: kubectl port-forward
        near.order("/targets/workers", "pause", **REASON)

    def test_a_link_from_another_site_keeps_the_session(self, daemon):
        """The browser does not send a Strict cookie there: a page of ours sends it once more."""
        alice = logged_in(daemon)
        page = Visitor(daemon).get("/targets/workers?a=b", **{"Sec-Fetch-Site": "cross-site"})
        assert page.status == 200 and "workers" not in re.sub(r"/login\?to=[^\"]*", "", page.text)
        path = re.search(r'content="0;url=([^"]+)"', page.text)[1]
        assert alice.get(path).headers["Location"] == "/targets/workers?a=b"

    def test_content_types(self, daemon):
        alice = logged_in(daemon)
        path, hidden = alice.forms("/targets/workers")["pause"]
        rows = [
            ({"Content-Type": "text/plain"}, 415),
            ({"Content-Type": "multipart/form-data; boundary=a"}, 415),
            ({"Content-Type": "application/json"}, 415),
            ({"Content-Type": None}, 415),
            ({"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}, 303),
        ]
        for headers, status in rows:
            answer = raw_form(daemon, path, urllib.parse.urlencode(hidden | REASON), alice, headers)
            assert answer.startswith(f"HTTP/1.1 {status} "), headers
            eventually(lambda: len(commands(daemon)) == (status == 303), what=headers)

    def test_bodies_too_large_or_without_a_size(self, daemon):
        alice = logged_in(daemon)
        path, hidden = alice.forms("/targets/workers")["pause"]
        for place in (path, "/login"):
            assert alice.submit(place, hidden | {"reason": "x" * 16 * 1024}).status == 413
            assert raw_form(daemon, place, "1\r\na\r\n0\r\n\r\n", alice, {"Transfer-Encoding": "chunked", "Content-Length": None}) \
                .startswith("HTTP/1.1 411 ")
            assert raw_form(daemon, place, "", alice, {"Content-Length": "0"}).startswith("HTTP/1.1 400 ")
        assert commands(daemon) == []

    def test_duplicate_unknown_and_broken_fields(self, daemon):
        alice = logged_in(daemon)
        path, hidden = alice.forms("/targets/workers")["pause"]
        form = hidden["form"].encode()
        rows = [
            b"reason=a&reason=b", b"form=%s&form=%s&reason=a", b"form=%s&reason=%%zz", b"form=%s&reason=%%", b"form=%s&reason=%%00",
            b"form=%s&reason=%%ff", b"form=%s&reason=a\x00b", b"form=%s&reason=\xff", b"form=%s&reason=a&who=root", b"form=%s&reason",
            b"form=%s&&reason=a", b"form[]=%s&reason=a", b"&", b"=", b"%%", b"{}", b"form=%s&target=others&reason=a",
        ]
        for body in rows:
            body = body.replace(b"%%", b"\x01").replace(b"%s", form).replace(b"\x01", b"%")
            assert alice.submit(path, body).status == 400, body
            assert alice.submit("/login", body).status == 400, body
        assert commands(daemon) == []

    def test_pipelined_forms_are_checked_one_by_one(self, daemon):
        """A form of another site hidden in or behind a good one."""
        alice = logged_in(daemon)
        path, hidden = alice.forms("/targets/workers")["pause"]
        body = urllib.parse.urlencode(hidden | REASON)
        good = make_form(daemon, path, body, alice)
        bad = make_form(daemon, "/pause", body, alice, {"Origin": "https://evil.example.org"})
        unsealed = make_form(daemon, "/pause", urllib.parse.urlencode(REASON), alice)
        answers = exchange(daemon, good + unsealed + bad)
        assert re.findall(r"HTTP/1\.1 (\d+)", answers) == ["303", "403", "403"]
        hiding = make_form(daemon, "/login", bad.decode(), alice)       # a request as a body
        assert re.findall(r"HTTP/1\.1 (\d+)", exchange(daemon, hiding)) == ["400"]
        both = make_form(daemon, path, "0\r\n\r\n" + bad.decode(), alice, {"Transfer-Encoding": "chunked"})
        assert re.findall(r"HTTP/1\.1 (\d+)", exchange(daemon, both)) == ["400"]
        expect(daemon, ("pause", "alice", "done"))

    def test_a_slow_form_of_a_stranger_holds_nothing_up(self, daemon):
        host, port = daemon.address.split(":")
        head = make_form(daemon, "/login", "", None, {"Content-Length": "16384"})
        with socket.create_connection((host, int(port)), timeout=60) as slow:
            slow.sendall(head + b"user=")
            assert Visitor(daemon).log_in("alice", PASSWORD).status == 303

    def test_strangers_learn_nothing_from_the_login(self, daemon):
        version = daemon.get("/api/v1/status").json["data"]["version"]
        for answer in (Visitor(daemon).get("/login"), Visitor(daemon).log_in("x", "y"), Visitor(daemon).submit("/login", {}, {"Origin": "null"})):
            assert version not in answer.text and "alertscaler/" not in str(answer.headers) and "workers" not in answer.text

    def test_programs_are_answered_as_before(self, daemon):
        answer = request("GET", daemon.url + "/", headers={"Accept": "*/*"})
        assert answer.status == 401 and "Basic" in str(answer.headers)
        assert request("GET", daemon.url + "/api/v1/status", headers=PAGE).status == 303
        open_daemon_headers = request("GET", daemon.url + "/-/healthy", headers=PAGE)
        assert open_daemon_headers.status == 200


class TestPrefix:
    def test_everything_is_below_the_path_of_the_external_url(self, make):
        daemon = make(flags=["--web.enable-admin-api", "--web.external-url=https://ops.example.org/scaler/"], prefix="/scaler")
        root = daemon.url.removesuffix("/scaler")
        for path in ("/", "/-/ready", "/scalers/-/ready", "/scale", "/login", "/api/v1/status"):
            assert request("GET", root + path, headers=daemon.headers).status == 404, path
        answer = request("POST", root + "/webhook", b"{}", {"Authorization": "Bearer sender-secret"})
        assert answer.status == 404 and "notifications go to /scaler/webhook" in answer.text
        assert request("GET", root + "/scaler", headers=daemon.headers).ok and daemon.metrics()
        alice = Visitor(daemon, host="ops.example.org", origin="https://ops.example.org")
        assert alice.get("/targets/workers").headers["Location"] == "/scaler/login?to=/targets/workers"
        assert 'action="https://ops.example.org/scaler/login"' in alice.get("/login").text
        assert alice.log_in("alice", PASSWORD, to="/targets/workers").headers["Location"] == "/scaler/targets/workers"
        for path in ("/", "/targets/workers", "/incidents", "/rules", "/account", "/groups/workers"):
            page = alice.get(path)
            assert page.ok, path
            links = re.findall(r'(?<!rel="help" )(?:href|action)="([^"]*)"', page.text)
            assert links and not [link for link in links if not link.startswith(("/scaler/", "?"))], (path, links)
        alice.daemon.url = root     # as the forms and redirects have it: with the path
        assert alice.order("/scaler/targets/workers", "pause", **REASON)[0][0] == "good"
        expect(daemon, ("pause", "alice", "done"))

    def test_a_proxy_that_removes_the_path(self, make):
        daemon = make(flags=["--web.enable-admin-api", "--web.external-url=https://ops.example.org/scaler/", "--web.route-prefix=/"])
        alice = Visitor(daemon, host="ops.example.org", origin="https://ops.example.org")
        assert alice.log_in("alice", PASSWORD).headers["Location"] == "/scaler/"
        assert 'href="/scaler/rules"' in alice.get("/").text


def make_form(daemon, path, body, visitor, headers=None):
    """The bytes of a form's request, with these headers instead of the usual ones; None: without."""
    lines = {"Host": daemon.address, "Origin": daemon.url, "Content-Type": "application/x-www-form-urlencoded",
             "Content-Length": str(len(body.encode()))}
    if visitor:
        lines["Cookie"] = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
    head = "".join(f"{name}: {value}\r\n" for name, value in (lines | (headers or {})).items() if value is not None)
    return f"POST {path} HTTP/1.1\r\n{head}\r\n{body}".encode()


def exchange(daemon, data):
    """Everything that is answered until the other side closes, or is silent."""
    host, port = daemon.address.split(":")
    with socket.create_connection((host, int(port)), timeout=60) as peer:
        peer.sendall(data)
        peer.shutdown(socket.SHUT_WR)
        said = b""
        while part := peer.recv(65536):
            said += part
    return said.decode()


def raw_form(daemon, path, body, visitor, headers=None):
    return exchange(daemon, make_form(daemon, path, body, visitor, headers))
