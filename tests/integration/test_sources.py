"""The source layer against a real Prometheus and real Alertmanagers, and against servers that play bad ones; and that the
daemon uses it."""
import datetime
import subprocess
import time

import pytest

from harness import monitoring
from harness.files import replace
from harness.http import HangUp, Server
from harness.notification import alert, notification
from harness.ports import free_port
from harness.protection import PASSWORD, USER, Protection
from harness.sources import SourceDriver
from harness.wait import eventually

pytestmark = pytest.mark.monitoring

NOWHERE = "http://127.0.0.1:1/"     # where nobody listens


@pytest.fixture
def make_driver(tmp_path):
    made = []

    def make(prometheus=None, alertmanagers=(), timeout="60s", **http_config):
        config = {}
        if prometheus:
            config["prometheus"] = {"url": prometheus, "timeout": timeout, "http_config": http_config}
        if alertmanagers:
            config["alertmanager"] = {"urls": list(alertmanagers), "http_config": http_config}
        directory = tmp_path / f"driver-{len(made)}"
        directory.mkdir()
        made.append(SourceDriver(directory, config))
        return made[-1]

    yield make
    for driver in made:
        driver.stop()


@pytest.fixture
def bad_server(started):
    """A server with a handler of the test's: handler(asked) -> (status, headers, body)."""
    return lambda handler: started(Server(handler))


def pods(**values):
    """PromQL for one series a pod."""
    return " or ".join(f'label_replace(vector({value}), "pod", "{pod.replace("_", "-")}", "", "")'
                       for pod, value in values.items())


# Queries


def test_queries_of_a_real_prometheus(make_prometheus, make_driver):
    driver = make_driver(make_prometheus().url + "/")
    before = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=1)
    for text, value in (("vector(1.5)", 1.5), ("1 + 1", 2), ("sum(vector(-3))", -3), ("1e23 * vector(1)", 1e23),
                        ('scalar(vector(7))  # a "comment" & such\n', 7), ("prometheus_build_info*0+4", None)):
        said = driver.query(text)
        if value is None:
            assert said["error"] == "query returned no data", said      # it does not scrape itself
        else:
            assert (said["error"], said["value"]) == (None, value), said
    said = driver.query(pods(web_2=95, web_1=80.5, web_10=0), "per_pod")
    assert [(s["pod"], s["value"]) for s in said["samples"]] == [("web-1", 80.5), ("web-10", 0), ("web-2", 95)]
    at = datetime.datetime.fromisoformat(said["samples"][0]["at"].replace("Z", "+00:00"))
    assert before < at < datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=1)
    assert said["counted"] == ["prometheus ok"]
    for text, error in (("vector(1)", None), ("vector(0)", None), ("vector(1) == 2", "query returned no data"),
                        (pods(a=1, b=2), None)):
        assert driver.query(text, "any")["error"] == error


BAD_QUERIES = [
    ("nothing", "number", "query returned no data", "no_data"),
    ("vector(1) > 1", "per_pod", "query returned no data", "no_data"),
    (pods(a=1, b=2, c=3), "number", "query returned 3 series, expected one: aggregate with sum() or the like", "unusable"),
    ("vector(0) / 0", "number", "query returned NaN", "unusable"),
    ("1 / 0", "number", "query returned +Inf", "unusable"),
    ("-vector(1) / 0", "number", "query returned -Inf", "unusable"),
    (pods(a=1, b="0") + " / 0", "per_pod", "query returned NaN for pod `b`", "unusable"),
    ("up[5m]", "number", "query returned a range vector, expected an instant vector or a scalar", "unusable"),
    ('"text"', "number", "query returned a string, expected an instant vector or a scalar", "unusable"),
    ("1", "per_pod", "query returned a scalar, expected one series a pod", "unusable"),
    ("vector(1)", "per_pod", "query returned a series without the label `pod`: aggregate by it", "unusable"),
    (f'label_replace({pods(a=1)}, "x", "1", "", "") or label_replace({pods(a=2)}, "x", "2", "", "")', "per_pod",
     "query returned several series for pod `a`: aggregate by `pod`", "unusable"),
    ("sum(", "number", "Prometheus: HTTP 400: bad_data: invalid parameter \"query\": ", "refused"),
    ("vector(1) and on(a) group_left vector(2)", "number", "Prometheus: HTTP 400: bad_data: ", "refused"),
    (" " * 16384 + "1", "number", "Prometheus: the query is longer than 16 KiB", "unreachable"),
]


def test_what_real_queries_go_wrong_with(make_prometheus, make_driver):
    driver = make_driver(make_prometheus().url)
    for text, form, error, outcome in BAD_QUERIES:
        said = driver.query(text, form)
        assert said["error"].startswith(error) if error.endswith(": ") else said["error"] == error, (text, said)
        assert len(said["error"].encode()) < 256
        assert said["counted"] == [f"prometheus {outcome}"], text


def test_a_long_query(make_prometheus, make_driver):
    assert make_driver(make_prometheus().url).query(" " * 16383 + "1")["value"] == 1


def test_a_real_warning(make_prometheus, make_driver):
    """A part of the data could not be asked for: a sum of the rest is no sum."""
    driver = make_driver(make_prometheus(remote_read=[NOWHERE + "read"]).url)
    said = driver.query("absent(nothing)")
    assert said["error"].startswith("query has warnings and may be incomplete: "), said
    assert "127.0.0.1:1/read" in said["error"]
    assert said["counted"] == ["prometheus unusable"]


def test_a_server_behind_tls_and_a_password(make_prometheus, make_driver, tmp_path):
    protection = Protection(tmp_path / "protection")
    prometheus = make_prometheus(protection=protection)
    (tmp_path / "password").write_text("wrong\n")
    auth = {"username": USER, "password_file": str(tmp_path / "password")}
    driver = make_driver(prometheus.url, basic_auth=auth, tls_config={"ca_file": str(protection.authority.certificate)})
    assert driver.query("1")["error"] == "Prometheus: HTTP 401: Unauthorized"
    replace(tmp_path / "password", PASSWORD)
    time.sleep(1.1)                                     # a changed secret counts when its file has not changed for a second
    assert driver.query("1")["value"] == 1
    said = make_driver(prometheus.url, basic_auth=auth).query("1")
    assert said["error"].startswith("Prometheus: unreachable: ") and "certificate" in said["error"], said


def test_bad_servers(bad_server, make_driver):
    def serve(asked):
        answers = {
            "/redirect": (302, {"Location": "http://elsewhere/login"}, b"<a>Found</a>"),
            "/html": (200, {"Content-Type": "text/html"}, b"<html><title>Login</title>"),
            "/huge": (200, {}, b"[" + b"1," * (9 << 20)),
            "/empty": (200, {}, b""),
            "/list": (200, {}, []),
            "/error": (200, {}, {"status": "error", "errorType": "internal", "error": "no\nmemory " + "x" * 1000}),
            "/proxy": (502, {}, b"Bad Gateway"),
            "/cut": (200, {"Content-Length": "100"}, b"{"),
        }
        path = asked.path.removesuffix("/api/v1/query")
        if path == "/hang-up":
            raise HangUp
        if path == "/slow":
            time.sleep(1.5)
        return answers.get(path, (200, {}, {"status": "success", "data": {"resultType": "scalar", "result": [1, "1"]}}))

    server = bad_server(serve)
    for path, timeout, error in (
            ("/redirect", "60s", "Prometheus: HTTP 302 leads to http://elsewhere/login, and redirects are not followed"),
            ("/html", "60s", "Prometheus: not JSON: "),
            ("/huge", "60s", "Prometheus: the answer is larger than 16 MiB"),
            ("/empty", "60s", "Prometheus: not JSON: "),
            ("/list", "60s", "Prometheus: not an answer to a query: no known status"),
            ("/error", "60s", "Prometheus: internal: no memory xxx"),
            ("/proxy", "60s", "Prometheus: HTTP 502"),
            ("/hang-up", "60s", "Prometheus: broke off: "),
            ("/slow", "300ms", "Prometheus: no answer within 300ms"),
            ("/fine", "60s", None)):
        said = make_driver(server.url + path, timeout=timeout).query("1")
        assert said["error"].startswith(error) if error else said["value"] == 1, (path, said)
        assert len((said["error"] or "").encode()) < 256


def test_nobody_is_there(make_driver):
    said = make_driver(f"http://127.0.0.1:{free_port()}").query("1")
    assert said["error"].startswith("Prometheus: unreachable: Failed to connect"), said
    assert said["counted"] == ["prometheus unreachable"]
    assert make_driver().query("1")["error"] == "Prometheus: none is configured"


def test_a_prometheus_that_was_restarted(make_prometheus, make_driver):
    prometheus = make_prometheus()
    driver = make_driver(prometheus.url)
    assert driver.query("1")["value"] == 1
    prometheus.stop()
    assert driver.query("1")["error"].startswith("Prometheus: unreachable: ")
    prometheus.start()
    assert driver.query("2")["value"] == 2
    prometheus.stop()
    prometheus.start()
    assert driver.query("3")["value"] == 3, "the kept connection is closed by now, and that is noticed"


def test_many_queries_at_once(make_prometheus, make_driver):
    driver = make_driver(make_prometheus().url)
    tickets = [driver.send(op="query", query=f"vector({i})", form="number") for i in range(200)]
    assert [driver.wait(ticket)["value"] for ticket in tickets] == list(range(200))


# What fires


def names(said):
    assert said["error"] is None, said
    return {a["labels"]["alertname"]: a for a in said["alerts"]}


def test_the_list_of_a_real_alertmanager(make_alertmanager, make_driver):
    alertmanager = make_alertmanager(webhook=NOWHERE, receiver="web.hook", inhibit_rules=[
        {"source_matchers": ["alertname=Cause"], "target_matchers": ["alertname=Symptom"]}])
    driver = make_driver(alertmanagers=[alertmanager.url])
    assert driver.list()["alerts"] == []
    alertmanager.fire(alertname="Busy", namespace="shop", annotations={"replicas": "5"})
    alertmanager.fire(alertname="Quiet")
    alertmanager.fire(alertname="Symptom")
    alertmanager.fire(alertname="Cause")
    alertmanager.fire(alertname="Gone")
    alertmanager.resolve(alertname="Gone")
    subprocess.run([monitoring.program("amtool"), f"--alertmanager.url={alertmanager.url}", "silence", "add", "alertname=Quiet",
                    "--author=test", "--comment=test", "--duration=5m"], check=True, capture_output=True)
    seen = eventually(lambda: (a := names(driver.list()))["Quiet"]["suppressed"] and a["Symptom"]["suppressed"] and a,
                      what="the silence and the inhibition are in the list")
    assert set(seen) == {"Busy", "Quiet", "Symptom", "Cause"}
    assert not seen["Busy"]["suppressed"] and not seen["Cause"]["suppressed"]
    busy = seen["Busy"]
    assert busy["labels"] == {"alertname": "Busy", "namespace": "shop"} and busy["annotations"] == {"replicas": "5"}
    assert busy["routes"] == {"web.hook": {"muted": False, "wait": 0}}
    theirs = {a["fingerprint"]: a for a in alertmanager.alerts()}
    assert sorted(a["fingerprint"] for a in driver.list()["alerts"]) == sorted(theirs)
    assert datetime.datetime.fromisoformat(busy["starts_at"].replace("Z", "+00:00")) == \
        datetime.datetime.fromisoformat(theirs[busy["fingerprint"]]["startsAt"].replace("Z", "+00:00"))


def test_two_alertmanagers_and_one_that_is_down(make_alertmanager, make_driver):
    one, two = (make_alertmanager(webhook=NOWHERE, receiver=name, name=name) for name in ("one", "two"))
    driver = make_driver(alertmanagers=[one.url, two.url])
    one.fire(alertname="Both")
    two.fire(alertname="Both")
    one.fire(alertname="First")
    two.fire(alertname="Second")
    one.silence(alertname="Both")
    two.silence(alertname="Second")
    eventually(lambda: names(make_driver(alertmanagers=[one.url]).list())["Both"]["suppressed"], what="one silences it")
    seen = eventually(lambda: (a := names(driver.list()))["Second"]["suppressed"] and a, what="two silences it")
    assert not seen["Both"]["suppressed"] and not seen["First"]["suppressed"]
    assert list(seen["Both"]["routes"]) == ["one", "two"] and list(seen["First"]["routes"]) == ["one"]
    assert driver.list()["counted"] == ["alertmanager ok"] * 2

    two.stop()
    said = driver.list()
    assert said["error"].startswith(f"Alertmanager {two.url}: unreachable: ") and said["alerts"] == [], said
    assert sorted(said["counted"]) == ["alertmanager ok", "alertmanager unreachable"]
    one.stop()
    assert driver.list()["error"].startswith(f"2 of 2 could not be read: Alertmanager {one.url}: ")


def test_what_no_alertmanager_says(bad_server, make_driver):
    def serve(asked):
        answers = {"/other": (404, {}, b"404 page not found"), "/html": (200, {}, b"<html>"),
                   "/filter": (400, {}, b'"bad filter"\n'), "/object": (200, {}, {"status": "success"}),
                   "/redirect": (301, {"Location": "https://elsewhere/"}, b"")}
        path, _, query = asked.path.partition("/api/v2/alerts/groups?")
        assert "active=true" in query and "silenced=true" in query and "inhibited=true" in query
        return answers[path]

    server = bad_server(serve)
    for path, error in (("/other", "HTTP 404: there is no /api/v2/alerts/groups"), ("/html", "not JSON: "), ("/filter", "HTTP 400: bad filter"),
                        ("/object", "expected an array of groups, got an object"),
                        ("/redirect", "HTTP 301 leads to https://elsewhere/, and redirects are not followed")):
        said = make_driver(alertmanagers=[server.url + path]).list()
        assert said["error"].startswith(f"Alertmanager {server.url}{path}: {error}"), said
    assert make_driver().list()["error"] == "Alertmanager: none is configured"


# The daemon


def rules_of(group, **rule):
    return {"targets": {"workers": {"node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 10,
                                    "cooldown": {"up": "0s", "down": "0s"}}},
            "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "workers", **rule}]}


def counted(daemon, source, outcome):
    return daemon.metrics().samples.get(
        ("alertscaler_source_requests_total", (("outcome", outcome), ("source", source))), 0)


def test_the_daemon_opens_what_it_was_not_told(make_alertmanager, make_daemon, node_group):
    group = node_group(size=4)
    alertmanager = make_alertmanager(webhook=NOWHERE)
    alertmanager.fire(alertname="Busy")
    daemon = make_daemon(rules_of(group, scale_up={"by": 2}, max_steps=1),
                         {"providers": {"mine": {"type": "http"}},
                          "alertmanager": {"urls": [alertmanager.url], "resync_interval": "1s", "receivers": ["alertscaler"]}})
    eventually(lambda: group.size == 6, what="the alert of the list is acted on")
    eventually(lambda: counted(daemon, "alertmanager", "ok") >= 2, what="the list is read again and again")
    alertmanager.stop()
    eventually(lambda: counted(daemon, "alertmanager", "unreachable") >= 1, what="the failure is counted")
    # A list that was under way when it ended broke off.
    eventually(lambda: f"Alertmanager {alertmanager.url}: unreachable" in daemon.process.log_text(), what="it is said what is wrong")
    assert daemon.metrics().types["alertscaler_source_duration_seconds"] == "histogram"


def test_the_daemon_tracks_a_query(make_prometheus, make_daemon, node_group, exporter):
    exporter.set("queue_length", 420)
    prometheus = make_prometheus(targets=[exporter.address])
    eventually(lambda: prometheus.query("queue_length"), what="the value is scraped")
    group = node_group(size=4)
    query = "sum(last_over_time(queue_length[1m]))"      # a scrape that takes too long leaves it a value
    daemon = make_daemon(rules_of(group, every="1s", track={"average_value": 70, "query": query}),
                         {"providers": {"mine": {"type": "http"}}, "prometheus": {"url": prometheus.url}})
    daemon.notify(notification(alert({"alertname": "Busy"})))
    eventually(lambda: group.size == 6, what="420 over 70 is 6")
    exporter.set("queue_length", 560)
    eventually(lambda: group.size == 8, what="560 over 70 is 8")
    # under new settings, too
    daemon.write_config({"providers": {"mine": {"type": "http"}}, "prometheus": {"url": NOWHERE}})
    daemon.reload()
    eventually(lambda: counted(daemon, "prometheus", "unreachable") >= 1, what="the other server is asked")
    record, = eventually(lambda: [r for r in daemon.records("decision") if r["output"]["reason"] == "metric_unavailable"],
                         what="the decision without a value")
    proposal, = record["input"]["proposals"]
    assert proposal["error"].startswith("Prometheus: unreachable: ") and group.size == 8
