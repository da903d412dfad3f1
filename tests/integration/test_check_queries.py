"""`alertscaler check` parses the queries of rules: by promtool, by a real Prometheus, and by a server that lacks
/api/v1/format_query, for which a proxy stands before Prometheus."""
import json
import os
import pathlib
import re
import subprocess

import pytest

from harness import monitoring
from harness.daemon import find_binary
from harness.http import Server, request
from harness.prometheus import Prometheus
from harness.wait import eventually

MISSING = monitoring.missing("prometheus", "promtool")
pytestmark = [pytest.mark.monitoring, pytest.mark.skipif(bool(MISSING), reason=str(MISSING))]

TARGET = "targets:\n  web:\n    kubernetes: {kind: Deployment, namespace: shop, name: web}\n    min: 2\n    max: 20\nrules:\n"
# Queries that no Prometheus accepts, and the column of the error in the query.
BROKEN = {
    'sum(x{a="b"}': 13, "sun(x)": 1, "rate(x[5q])": 8, "sum by pod (x)": 8, "avg(x) >": 9, "up{job=orders}": 8, "rate(x)": 6,
    'x{a=~"("}': 3,
}
GOOD = ("up", 'sum(rate(a{pod="{{ .Labels.pod }}"}[1m]))', "vector(3)")


def write_rules(path, queries):
    text = TARGET
    for number, query in enumerate(queries):
        text += (f"  - name: r{number}\n    match: ['alertname=\"A{number}\"']\n    target: web\n"
                 f"    track:\n      average_value: 50\n      query: '{query}'\n")
    path.write_text(text)
    return path


def check(*arguments, path=None):
    """path: replaces PATH; promtool is the one of the tests."""
    folder = pathlib.Path(monitoring.program("promtool")).parent
    variables = dict(os.environ, PATH=path if path is not None else f"{folder}:{os.environ['PATH']}")
    return subprocess.run([find_binary(), "check", *map(str, arguments)], capture_output=True, text=True, check=False, env=variables,
                          timeout=120)


def places(done):
    """{line: column} of the errors."""
    return {int(line): int(column) for line, column in re.findall(r"^\S+?:(\d+):(\d+): error: query: ", done.stderr, re.M)}


def expect_all_broken(done):
    assert done.returncode == 1, done.stderr
    assert places(done).keys() == {12 + 6 * i for i in range(len(BROKEN))}, done.stderr


@pytest.fixture(name="prometheus", scope="module")
def run_prometheus(tmp_path_factory):
    prometheus = Prometheus(tmp_path_factory.mktemp("prometheus")).start()
    yield prometheus
    prometheus.stop()


class Proxy:
    """Prometheus without some paths. `answers`: what the other paths give instead, if set."""

    def __init__(self, prometheus, answer=None):
        self.prometheus, self.answer, self.paths = prometheus, answer, []
        self.server = Server(self._handle)
        self.url = self.server.url

    def _handle(self, asked):
        self.paths.append(asked.path)
        if self.answer:
            return self.answer
        if asked.path.endswith("/format_query"):
            return 404, {}, b"404 page not found"
        form = {"Content-Type": asked.headers["Content-Type"]} if asked.body else {}
        answer = request(asked.method, self.prometheus.url + asked.path, asked.body or None, form)
        return answer.status, {"Content-Type": "application/json"}, answer.body


def test_promtool_refuses_broken_queries_at_their_place(tmp_path):
    done = check(write_rules(tmp_path / "rules.yaml", BROKEN))
    expect_all_broken(done)
    for (query, column), (line, found) in zip(BROKEN.items(), sorted(places(done).items())):
        assert found == len("      query: '") + column, (query, line, done.stderr)


def test_promtool_accepts_good_queries_and_templates(tmp_path):
    done = check(write_rules(tmp_path / "rules.yaml", GOOD))
    assert (done.returncode, done.stderr) == (0, "")
    assert "3 queries: ok, by promtool" in done.stdout


def test_a_place_is_in_the_block_the_quotes_or_at_the_first_line(tmp_path):
    rules = tmp_path / "rules.yaml"
    head = "  - name: %s\n    match: ['alertname=\"%s\"']\n    target: web\n    track:\n      average_value: 50\n      query: "
    rules.write_text(TARGET + head % ("block", "A") + "|\n        sum(\n          rate(x[5m)\n        )\n" +
                     head % ("quotes", "B") + '"sun(x)"\n' + head % ("folded", "C") + ">\n        sun(x)\n" +
                     "  - name: guard\n    match: ['alertname=\"D\"']\n    target: web\n    scale_down: {by: 1}\n"
                     "    guard: {query: sun(x)}\n")
    assert places(check(rules)) == {14: 20, 21: 15, 27: 14, 33: 20}


def test_without_promtool_one_line_says_so(tmp_path):
    rules = write_rules(tmp_path / "rules.yaml", GOOD)
    done = check(rules, path=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "queries were not checked: promtool is not installed; --prometheus=URL checks them, too" in done.stdout
    done = check("--require-promql", rules, path=str(tmp_path))
    assert done.returncode == 1 and "--require-promql: error: promtool is not installed" in done.stderr


def test_a_promtool_that_fails_is_named(tmp_path):
    (tmp_path / "promtool").write_text("#!/bin/sh\necho 'promtool: error: unknown long flag'\nexit 1\n")
    (tmp_path / "promtool").chmod(0o755)
    done = check("--require-promql", write_rules(tmp_path / "rules.yaml", GOOD), path=f"{tmp_path}:/bin")
    assert done.returncode == 1 and "promtool: promtool: error: unknown long flag" in done.stderr


def test_rules_without_queries_start_no_promtool(tmp_path):
    (tmp_path / "promtool").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    (tmp_path / "promtool").chmod(0o755)
    rules = tmp_path / "rules.yaml"
    rules.write_text(TARGET + "  - name: slow\n    match: ['alertname=\"A\"']\n    target: web\n    scale_up: {by: 1}\n")
    done = check(rules, path=f"{tmp_path}:/bin:/usr/bin")
    assert done.returncode == 0 and "quer" not in done.stdout and not (tmp_path / "started").exists()


def test_prometheus_refuses_broken_queries_at_their_place(tmp_path, prometheus):
    done = check(f"--prometheus={prometheus.url}", write_rules(tmp_path / "rules.yaml", BROKEN), path=str(tmp_path))
    expect_all_broken(done)
    assert places(done) == places(check(tmp_path / "rules.yaml")), "promtool has the same places"
    done = check(f"--prometheus={prometheus.url}/", write_rules(tmp_path / "rules.yaml", GOOD), path=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert f"3 queries: ok, by {prometheus.url}/" in done.stdout


def test_a_server_without_format_query_gets_each_query_once_at_time_1(tmp_path, prometheus):
    proxy = Proxy(prometheus)
    expect_all_broken(check(f"--prometheus={proxy.url}", write_rules(tmp_path / "rules.yaml", BROKEN), path=str(tmp_path)))
    assert proxy.paths.count("/api/v1/format_query") == 1
    assert proxy.paths.count("/api/v1/query") == len(BROKEN)
    proxy.paths.clear()
    done = check(f"--prometheus={proxy.url}", write_rules(tmp_path / "rules.yaml", ["up"] * 5), path=str(tmp_path))
    assert done.returncode == 0 and "5 queries: ok" in done.stdout
    assert [path for path in proxy.paths if "query" in path] == ["/api/v1/format_query", "/api/v1/query"]
    assert len(proxy.paths) <= 3, "a metric is asked about once"


@pytest.mark.parametrize("status", [302, 401, 403, 408, 429, 500, 503])
def test_an_answer_about_something_else_is_no_verdict(tmp_path, prometheus, status):
    body = {"status": "error", "errorType": "bad_data", "error": "1:1: parse error: not this one"}
    proxy = Proxy(prometheus, (status, {"Content-Type": "application/json"}, body))
    rules = write_rules(tmp_path / "rules.yaml", GOOD)
    done = check(f"--prometheus={proxy.url}", rules)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"queries were not checked: HTTP {status}" in done.stdout
    assert len(proxy.paths) == 1
    assert check(f"--prometheus={proxy.url}", "--require-promql", rules).returncode == 1


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"status":1}', b'{"status":"error"}', b'{"status":"error","error":{}}'])
def test_a_server_that_says_nonsense(tmp_path, prometheus, body):
    proxy = Proxy(prometheus, (400, {}, body))
    done = check(f"--prometheus={proxy.url}", write_rules(tmp_path / "rules.yaml", ["up"]))
    if b'"error"' in body:
        assert done.returncode == 1 and "query: refused without a text" in done.stderr
    else:
        assert done.returncode == 0 and "queries were not checked: HTTP 400" in done.stdout


def test_a_server_that_is_away(tmp_path):
    done = check("--prometheus=http://127.0.0.1:1", write_rules(tmp_path / "rules.yaml", GOOD))
    assert (done.returncode, done.stderr) == (0, "")
    assert "queries were not checked: http://127.0.0.1:1: " in done.stdout


def test_values_show_series_value_and_goal(tmp_path, prometheus):
    done = check(f"--prometheus={prometheus.url}", "--values", write_rules(tmp_path / "rules.yaml", [*GOOD, "no_such_series"]))
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split(": ", 1)[1] for line in done.stdout.splitlines() if "average_value" in line]
    assert lines[1:] == ["has templates: no value without an alert, average_value: 50", "1 series: 3, average_value: 50",
                         "0 series: the query returns nothing now, average_value: 50"]
    assert re.fullmatch(r"[01] series: .*, average_value: 50", lines[0])


HINTED = {      # query: (column in it, part of the hint)
    "sum(rate(app_requests_total{job!=\"x\"}[1s]))": (10, "the range 1s is below two scrape intervals (1s at least): `rate`"),
    "delta(app_size{namespace=\"shop\"}[1500ms])": (7, "the range 1s500ms is below two scrape intervals"),
    "max(increase(app_size{namespace=\"shop\"}[5m]))": (14, "the server calls `app_size` a gauge: `increase` is for counters"),
    "sum(rate(app_seconds_bucket{le=\"1\",namespace=\"shop\"}[1s]))": (10, "the range 1s is below"),
    "sum(app_size)": (5, "the query has no namespace: `app_size` also has series of other namespaces than `shop`"),
    "sum(rate(container_cpu_usage_seconds_total[5m]))": (10, "`container_cpu_usage_seconds_total` also has series of other namespaces"),
}
UNHINTED = [
    "sum(rate(app_requests_total{namespace=\"shop\"}[2s]))", "sum(app_size{namespace=~\"sh.*\"})", "count(app_size{team=\"shop\"})",
    "max_over_time(app_size{namespace=\"shop\"}[1s])", "delta(app_size{namespace=\"shop\"}[5m])",
    "max(rate(sum(app_size{namespace=\"shop\"})[1s:1s]))", "max(rate(app_size{namespace=\"shop\"}[5m:1s]))",
    "vector(1) # rate(app_size[1s]) of all namespaces", "count(no_such_metric)", "sum(rate(not_scraped[1s]))", "sum(only_elsewhere)",
    "label_replace(vector(1), \"a\", \"rate(app_size[1s])\", \"\", \"\")", "sum(app_size{namespace=\"{{ .Labels.namespace }}\"})",
    "sum by (namespace) (app_size)", "sum(container_memory_rss{pod=\"{{ .Labels.pod }}\"})",
]


def hints(done):
    return re.findall(r"^\S+?:(\d+):(\d+): hint: (.*)$", done.stderr, re.M)


def test_queries_that_may_not_mean_what_they_say(tmp_path, make_prometheus, started):
    page = """# TYPE app_requests_total counter
app_requests_total{namespace="shop"} 1
# TYPE app_size gauge
app_size{namespace="shop"} 1
app_size{namespace="other"} 1
# TYPE only_elsewhere gauge
only_elsewhere{namespace="other"} 1
# TYPE app_seconds histogram
app_seconds_bucket{namespace="shop",le="1"} 1
app_seconds_bucket{namespace="shop",le="+Inf"} 1
app_seconds_sum{namespace="shop"} 1
app_seconds_count{namespace="shop"} 1
"""
    exporter = started(Server(lambda asked: (200, {"Content-Type": "text/plain; version=0.0.4"}, page.encode())))
    server = make_prometheus(targets=[exporter.url.removeprefix("http://")])
    eventually(lambda: server.query("app_size"))
    queries = [*HINTED, *UNHINTED]
    rules = write_rules(tmp_path / "rules.yaml", queries)
    done = check(f"--prometheus={server.url}", "--lint-fatal", rules)
    assert done.returncode == 0, done.stderr
    found = {int(line): (int(column), text) for line, column, text in hints(done)}
    assert found.keys() == {12 + 6 * i for i in range(len(HINTED))}, done.stderr
    for number, (query, (column, text)) in enumerate(HINTED.items()):
        assert found[12 + 6 * number][0] == len("      query: '") + column and text in found[12 + 6 * number][1], (query, done.stderr)
    rules.write_text(rules.read_text().replace("name: web}", "name: web, cluster: default}").replace("namespace: shop", "namespace: '{{ .Labels.ns }}'")
                     .replace("    max: 20\n", "    max: 20\n    allow: {namespaces: [shop]}\n"))
    assert "namespaces than" not in check(f"--prometheus={server.url}", rules).stderr, "the namespace depends on the alert"


def test_without_a_server_only_metrics_of_all_pods_give_a_hint(tmp_path):
    done = check(write_rules(tmp_path / "rules.yaml", [*HINTED, *UNHINTED]))
    assert done.returncode == 0
    assert [int(line) for line, _, _ in hints(done)] == [12 + 6 * (len(HINTED) - 1)], done.stderr


def test_a_guard_needs_no_namespace(tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text(TARGET + "  - name: idle\n    match: ['alertname=\"D\"']\n    target: web\n    scale_down: {by: 1}\n"
                     "    guard: {query: 'count(kube_pod_info) > 0'}\n")
    assert not hints(check(rules))


def test_credentials_come_from_a_file(tmp_path, prometheus):
    seen = []

    def handle(asked):
        seen.append(asked.headers["Authorization"])
        return 200, {}, {"status": "success", "data": "up"}

    server = Server(handle)
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "other").write_text("other")
    (tmp_path / "http.yaml").write_text("authorization: {credentials_file: secret}\n")
    done = check(f"--prometheus={server.url}", f"--http.config.file={tmp_path / 'http.yaml'}", write_rules(tmp_path / "rules.yaml", ["up"]))
    assert (done.returncode, set(seen)) == (0, {"Bearer secret"}), done.stderr
    seen.clear()
    (tmp_path / "alertscaler.yml").write_text("rule_files: [rules.yaml]\nprometheus: {url: 'http://127.0.0.1:1', http_config: "
                                              "{authorization: {credentials_file: other}}}\n")
    done = check(f"--prometheus={server.url}", tmp_path / "alertscaler.yml")
    assert (done.returncode, set(seen)) == (0, {"Bearer other"}), done.stderr + done.stdout


def test_wrong_options_and_json(tmp_path, prometheus):
    rules = write_rules(tmp_path / "rules.yaml", ["sun(x)"])
    for arguments, text in ((["--values"], "need --prometheus=URL"), (["--http.config.file=x"], "need --prometheus=URL"),
                            (["--prometheus=localhost:9090"], "write --prometheus=http://localhost:9090"),
                            (["--prometheus=http://a", "--values", "--format=json"], "--values needs --format=text")):
        done = check(*arguments, rules)
        assert (done.returncode, text in done.stderr) == (2, True), done.stderr
    done = check("--format=json", f"--prometheus={prometheus.url}", rules)
    (item,) = json.loads(done.stdout)
    assert (item["line"], item["column"], item["severity"]) == (12, 15, "error") and "sun" in item["message"]
