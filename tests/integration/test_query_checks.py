"""`alertscaler serve` has the queries of its rules parsed: by a real Prometheus, by a real VictoriaMetrics, which has a language of
its own and lacks /api/v1/format_query, and by servers that are away or say something else."""
import json
import subprocess
import threading
import time
import urllib.parse

import pytest

from harness import victoriametrics
from harness.http import Server
from harness.notification import alert, notification
from harness.ports import free_port
from harness.victoriametrics import VictoriaMetrics
from harness.wait import eventually, steadily

pytestmark = pytest.mark.monitoring

# As in test_check_queries.py: queries that no Prometheus accepts. VictoriaMetrics accepts WIDER.
WIDER = "rate(x)"
BROKEN = ['sum(x{a="b"}', "sun(x)", "rate(x[5q])", "sum by pod (x)", "avg(x) >", "up{job=orders}", WIDER, 'x{a=~"("}']
GOOD = ["up", 'sum(rate(a{pod="{{ .Labels.pod }}"}[1m]))', "vector(3)"]


def make_rules(queries, url="http://127.0.0.1:1/"):
    rules = [{"name": f"r{number}", "match": [f'alertname="A{number}"'], "target": "workers",
              "track": {"average_value": 50, "query": query}} for number, query in enumerate(queries)]
    return {"targets": {"workers": {"node_group": {"provider": "mine", "url": url}, "min": 1, "max": 10}}, "rules": rules}


def make_config(prometheus, **more):
    return {"providers": {"mine": {"type": "http"}}, "prometheus": {"url": prometheus.url, **more}}


def failing(daemon):
    """{rule: error} as the API has it, once the metric says the same."""
    errors = {e["rule"]: e["error"] for e in daemon.get("/api/v1/status").json["data"]["query_errors"]}
    values = {dict(labels)["rule"]: value for (name, labels), value in daemon.metrics().samples.items()
              if name == "alertscaler_rule_query_error"}
    return errors if {rule for rule, value in values.items() if value} == errors.keys() else None


def names(queries, wanted):
    return {f"r{number}" for number, query in enumerate(queries) if query in wanted}


def logged(daemon):
    return [line for line in daemon.process.log_text().splitlines() if "the server refuses a query" in line]


class Played:
    """A server that answers each request for a verdict with `answer`, and remembers the queries. `queried`: for the queries of
    decisions, which it counts."""

    def __init__(self, answer=(200, {}, {"status": "success", "data": "x"})):
        self.answer, self.queried, self.count, self.parsed = answer, None, 0, []
        self.under_way, self.most = 0, 0
        self.lock = threading.Lock()
        self.released = threading.Event()
        self.released.set()
        self._server = Server(self._handle)
        self.url = self._server.url

    def _handle(self, asked):
        form = urllib.parse.parse_qs(asked.body.decode())
        if asked.path.endswith("/query") and "time" not in form:
            self.count += 1
            return self.queried
        with self.lock:
            self.parsed += form["query"]
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        self.released.wait(60)
        with self.lock:
            self.under_way -= 1
        return self.answer

    def stop(self):
        self.released.set()
        self._server.stop()


@pytest.fixture
def play(started):
    return lambda *arguments: started(Played(*arguments))


@pytest.fixture
def make_victoriametrics(started, tmp_path):
    if victoriametrics.missing():
        pytest.skip(victoriametrics.missing())
    return lambda: started(VictoriaMetrics(tmp_path / "victoriametrics")).start()


def test_prometheus_refuses_broken_queries(make_daemon, make_prometheus):
    queries = BROKEN + GOOD
    daemon = make_daemon(make_rules(queries), make_config(make_prometheus()))
    eventually(lambda: (failing(daemon) or {}).keys() == names(queries, BROKEN), what="the broken queries fail, and no others")
    values = daemon.metrics().samples
    assert values["alertscaler_rule_query_error", (("rule", "r8"),)] == 0, "a rule whose query is right has a 0"
    lines = eventually(lambda: len(logged(daemon)) == len(BROKEN) and logged(daemon))
    text = (daemon.directory / "rules" / "rules.yaml").read_text().splitlines()
    for number, query in enumerate(BROKEN):
        line, = [line for line in lines if f"rule=r{number} " in line]
        assert "level=error" in line and "rules/rules.yaml" in line
        fields = dict(field.split("=", 1) for field in line.split() if field.startswith(("line=", "column=")))
        row, column = int(fields["line"]), int(fields["column"])
        assert text[row - 1].strip().startswith("query:"), (query, line)
        begin = text[row - 1].index("query:") + len("query: ")
        assert begin < column <= len(text[row - 1]) + 1, (query, line)
    sun = next(line for line in lines if "rule=r1 " in line)
    assert f"column={text[[i for i, t in enumerate(text) if 'sun(x)' in t][0]].index('sun') + 1} " in sun, sun


def test_victoriametrics_decides_about_its_own_language(make_daemon, make_victoriametrics):
    queries = BROKEN + GOOD
    server = make_victoriametrics()
    daemon = make_daemon(make_rules(queries), make_config(server))
    refused = names(queries, set(BROKEN) - {WIDER})
    eventually(lambda: (failing(daemon) or {}).keys() == refused, what="MetricsQL accepts rate(x)")
    assert "unsupported function" in failing(daemon)["r1"] and len(eventually(lambda: len(logged(daemon)) == 7 and logged(daemon))) == 7


def test_check_asks_victoriametrics(tmp_path, make_daemon, make_victoriametrics):
    server = make_victoriametrics()
    server.write(f"x 3 {int(time.time() * 1000) - 5000}\n")    # it evaluates a query at a whole second, which may be before now
    rules = tmp_path / "rules.yaml"
    rules.write_text(json.dumps(make_rules(BROKEN)))
    binary = make_daemon(make_rules(GOOD), make_config(server)).binary
    done = subprocess.run([binary, "check", f"--prometheus={server.url}", rules], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.count("error: query: ") == len(BROKEN) - 1, done.stderr
    rules.write_text(json.dumps(make_rules([WIDER, "x"])))
    done = subprocess.run([binary, "check", f"--prometheus={server.url}", "--values", rules], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert f"2 queries: ok, by {server.url}" in done.stdout and "1 series: 3" in done.stdout


def test_a_reload_asks_only_new_queries(make_daemon, play):
    server = play()
    daemon = make_daemon(make_rules(["up", "up", "down"]), make_config(server))
    eventually(lambda: sorted(server.parsed) == ["down", "up"], what="equal queries are asked once")
    daemon.write_rules(make_rules(["up", "down", 'other{pod="{{ .Labels.pod }}"}']))
    assert daemon.get("/-/ready").ok
    daemon.reload()
    eventually(lambda: len(server.parsed) == 3)
    assert server.parsed[2] == f'other{{pod="{"x" * len("{{ .Labels.pod }}")}"}}'
    steadily(lambda: len(server.parsed) == 3, 1)


def test_another_server_decides_anew(make_daemon, play):
    first, second = play(), play((400, {}, {"status": "error", "errorType": "bad_data", "error": "not this one"}))
    daemon = make_daemon(make_rules(["up"]), make_config(first))
    eventually(lambda: first.parsed == ["up"])
    daemon.write_config(make_config(second))
    daemon.reload()
    eventually(lambda: failing(daemon) == {"r0": "not this one"})
    daemon.write_config(make_config(first))
    daemon.reload()
    eventually(lambda: failing(daemon) == {} and first.parsed == ["up", "up"])


def test_slow_verdicts_delay_nothing(make_daemon, play, node_group):
    group = node_group(size=4)
    server = play()
    server.queried = 200, {}, {"status": "success", "data": {"resultType": "scalar", "result": [time.time(), "300"]}}
    server.released.clear()
    daemon = make_daemon(make_rules([f"up + {i}" for i in range(50)], group.url), make_config(server, max_queries=3))
    eventually(lambda: server.under_way == 2)
    daemon.notify(notification(alert({"alertname": "A1"})))
    assert daemon.wait_record("action")["to"] == 6, "the query of an alert does not wait for verdicts"
    daemon.comment_config()
    daemon.reload()
    eventually(lambda: daemon.records("reload"))
    assert server.most <= 4, "two of each configuration"
    server.released.set()
    eventually(lambda: len(set(server.parsed)) == 50)


@pytest.mark.parametrize("status", [401, 403, 408, 429, 500, 503])
def test_an_answer_about_something_else_is_no_verdict(make_daemon, play, status):
    server = play((status, {}, {"status": "error", "errorType": "bad_data", "error": "1:1: parse error"}))
    daemon = make_daemon(make_rules(["up", "down", "other"]), make_config(server))
    eventually(lambda: "queries cannot be checked now" in daemon.process.log_text())
    assert failing(daemon) == {} and f"HTTP {status}" in daemon.process.log_text()
    steadily(lambda: len(server.parsed) <= 2, 1)


@pytest.mark.seconds(120)
def test_a_server_that_was_away_is_asked_later(make_daemon, started):
    port = free_port()

    class Away:
        url = f"http://127.0.0.1:{port}"

    daemon = make_daemon(make_rules(["sun(x)"]), make_config(Away))
    eventually(lambda: "queries cannot be checked now" in daemon.process.log_text())
    assert failing(daemon) == {}
    refusal = 400, {}, {"status": "error", "errorType": "bad_data", "error": 'invalid parameter "query": 1:1: parse error: unknown'}
    started(Server(lambda asked: refusal, port=port))
    eventually(lambda: (failing(daemon) or {}).keys() == {"r0"}, timeout=60)


def test_the_third_refusal_in_a_row_counts(make_daemon, play, node_group):
    group = node_group(size=4)
    server = play()
    error = {"status": "error", "errorType": "execution", "error": "found duplicate series for the match group"}
    server.queried = 422, {}, error
    rules = make_rules(["a * b"], group.url)
    rules["rules"][0]["every"] = "1s"
    daemon = make_daemon(rules, make_config(server))
    daemon.notify(notification(alert({"alertname": "A0"})))
    eventually(lambda: (failing(daemon) or {}).get("r0", "").endswith("execution: found duplicate series for the match group"))
    assert server.count >= 3
    assert eventually(lambda: logged(daemon))[0].count("found duplicate series") == 1
    page = daemon.get("/?state=failing").text
    assert "query error" in page and "found duplicate series" in page
    status = subprocess.run([daemon.binary, "status", f"--url={daemon.url}"], capture_output=True, text=True, check=False).stdout
    assert "workers: the server refuses a query of the rule r0: " in status
    server.queried = 200, {}, {"status": "success", "data": {"resultType": "scalar", "result": [time.time(), "200"]}}
    eventually(lambda: failing(daemon) == {}, what="the query works again")


def test_pages_name_what_fails(make_daemon, make_prometheus, node_group):
    group = node_group(size=4)
    daemon = make_daemon(make_rules(["sun(x)", "vector(50)"], group.url), make_config(make_prometheus()))
    eventually(lambda: failing(daemon))
    daemon.notify(notification(alert({"alertname": "A1"})))
    eventually(lambda: daemon.records("decision"))
    for path in ("/", "/?state=failing", "/targets/workers"):
        page = daemon.get(path).text
        assert "query error" in page and "unknown function" in page, path
    page = daemon.get("/rules").text
    assert page.count("query error") == 1
    errors = {rule["name"]: rule["query_error"] for rule in daemon.get("/api/v1/rules").json["data"]}
    assert "unknown function" in errors["r0"] and errors["r1"] is None
