"""docs/sources.md: each recipe as the page shows it, with another host, against the real server where it can be had on this machine:
VictoriaMetrics, Thanos, and Cortex, whose tests are deep because its build takes long. Before a real Prometheus stands a server that
accepts only the requests of Mimir, Cortex or Grafana Cloud, as far as their documentation says: path, tenant, password. And
rules/firing-alert.yaml follows the alerts of a real Prometheus."""
import base64
import json
import re
import subprocess
import time
import urllib.parse

import pytest
import yaml

from harness import cortex, thanos, victoriametrics
from harness.cortex import Cortex, Writer
from harness.daemon import ROOT, dump_yaml, environment, find_binary
from harness.exporter import Exporter
from harness.http import Server, request
from harness.victoriametrics import VictoriaMetrics
from harness.wait import eventually, steadily

pytestmark = pytest.mark.monitoring

PAGE = (ROOT / "docs/sources.md").read_text(encoding="utf-8")
JOBS = 40                       # of which each worker does ten


def read_recipes(heading):
    """The configurations of a section, in the order of the page."""
    section = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL).group(1)
    blocks = [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", section, re.MULTILINE | re.DOTALL)]
    return [block["prometheus"] for block in blocks if "prometheus" in block]


def read_recipes_of_start():
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE.split("\n## ")[0], re.MULTILINE | re.DOTALL)
    return [yaml.safe_load(block)["prometheus"] for block in blocks]


def place(recipe, base, files=None):
    """The recipe with the scheme, host and port of `base`, and with files of the test."""
    url = urllib.parse.urlsplit(recipe["url"])
    text = json.dumps({**recipe, "url": base + url.path})
    for name, path in (files or {}).items():
        assert name in text, text
        text = text.replace(name, str(path))
    return json.loads(text)


@pytest.fixture
def group(node_group):
    return node_group(size=1)


@pytest.fixture
def follow(make_daemon, group):
    """A daemon whose rule follows the jobs at this Prometheus."""
    def follow(prometheus):
        rules = {"targets": {"workers": {"node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 10, "enforce_bounds": True,
                                         "cooldown": {"up": "0s", "down": "0s"}}},
                 "rules": [{"name": "jobs", "always": True, "target": "workers", "every": "1s",
                            "track": {"average_value": 10, "query": "sum(jobs_waiting)"}}]}
        return make_daemon(rules, {"providers": {"mine": {"type": "http"}}, "prometheus": prometheus})

    return follow


@pytest.fixture
def prometheus(make_prometheus, exporter):
    exporter.set("jobs_waiting", JOBS)
    server = make_prometheus(targets=[exporter.address])
    eventually(lambda: server.query("sum(jobs_waiting)"), what="the jobs are in Prometheus")
    return server


class Gate:
    """A server that passes requests for one path, with these headers, to Prometheus. `status`: the answer to all others."""

    def __init__(self, prometheus, path, headers, status):
        self.prometheus, self.path, self.headers, self.status = prometheus, path, headers, status
        self.passed, self.refused = 0, 0
        self._server = Server(self._handle)
        self.url = self._server.url

    def _handle(self, asked):
        if asked.method != "POST" or asked.path not in (f"{self.path}/api/v1/query", f"{self.path}/api/v1/format_query"):
            self.refused += 1
            return 404, {}, b"404 page not found"
        if any(asked.headers.get(name) != value for name, value in self.headers.items()):
            self.refused += 1
            return self.status, {}, b"no org id\n"
        answer = request("POST", self.prometheus.url + asked.path.removeprefix(self.path), asked.body,
                         {"Content-Type": asked.headers["Content-Type"]})
        self.passed += 1
        return answer.status, {}, answer.json

    def stop(self):
        self._server.stop()


def reason(daemon):
    return daemon.target("workers")["last_decision"]["reason"]


def test_prometheus(follow, group, prometheus):
    recipe, = read_recipes_of_start()
    follow(place(recipe, prometheus.url))
    eventually(lambda: group.size == 4)


@pytest.fixture
def make_victoriametrics(started, tmp_path):
    if victoriametrics.missing():
        pytest.skip(victoriametrics.missing())

    def make(*flags):
        server = VictoriaMetrics(tmp_path / "victoriametrics", flags=flags)
        server = started(server).start()
        server.write(f"jobs_waiting {JOBS} {int(time.time() * 1000) - 5000}\n")
        return server

    return make


def test_victoriametrics(follow, group, make_victoriametrics):
    single, cluster = read_recipes("VictoriaMetrics")
    assert urllib.parse.urlsplit(cluster["url"]).path == "/select/0/prometheus"
    server = make_victoriametrics()
    follow(place(single, server.url))
    eventually(lambda: group.size == 4)


def test_the_path_of_victoriametrics_cluster(follow, group, make_victoriametrics):
    _, cluster = read_recipes("VictoriaMetrics")
    server = make_victoriametrics("-http.pathPrefix=/select/0/prometheus")
    follow(place(cluster, server.url.removesuffix("/select/0/prometheus")))
    eventually(lambda: group.size == 4)


@pytest.fixture
def make_thanos(started, tmp_path, make_prometheus, exporter):
    """make_thanos(labels, flags): a Prometheus with a sidecar for each row of external labels, and a querier over them."""
    if thanos.missing():
        pytest.skip(thanos.missing())

    def make(rows, *flags):
        servers = [make_prometheus(name=f"prometheus-{number}", targets=[exporter.address], external_labels=labels)
                   for number, labels in enumerate(rows)]
        for server in servers:
            eventually(lambda server=server: server.query("sum(jobs_waiting)"), what="the jobs are in each Prometheus")
        sidecars = [started(thanos.make_sidecar(server)).start() for server in servers]
        querier = started(thanos.make_querier(tmp_path / "thanos", sidecars, *flags)).start()
        return sidecars, querier

    return make


def test_thanos(started, follow, group, exporter, make_thanos, tmp_path):
    """The frontend, and two replicas that count once."""
    frontend_recipe, _ = read_recipes("Thanos")
    exporter.set("jobs_waiting", JOBS)
    _, querier = make_thanos([{"replica": "a"}, {"replica": "b"}], "--query.replica-label=replica")
    frontend = started(thanos.make_frontend(tmp_path / "thanos", querier)).start()
    follow(place(frontend_recipe, frontend.url))
    eventually(lambda: group.size == 4)
    steadily(lambda: group.size == 4, 3)


def test_tenants_of_thanos(follow, group, exporter, make_thanos):
    _, recipe = read_recipes("Thanos")
    exporter.set("jobs_waiting", JOBS, tenant_id="shop")
    exporter.set("jobs_waiting", 2 * JOBS, tenant_id="billing")
    _, querier = make_thanos([{"replica": "a"}], "--query.enforce-tenancy")
    follow(place(recipe, querier.url))
    eventually(lambda: group.size == 4)
    steadily(lambda: group.size == 4, 3)


@pytest.mark.parametrize("flags", [(), ("--no-query.partial-response",)])
def test_a_store_of_thanos_that_is_gone_removes_nothing(follow, group, exporter, make_thanos, flags):
    """Half of the jobs are in each cluster. By default the querier answers with the half that it has, and warnings."""
    recipe, _ = read_recipes("Thanos")
    exporter.set("jobs_waiting", JOBS)
    sidecars, querier = make_thanos([{"cluster": "a"}, {"cluster": "b"}], *flags)
    daemon = follow(place(recipe, querier.url))
    eventually(lambda: group.size == 8)
    sidecars[1].process.kill()
    eventually(lambda: reason(daemon) == "metric_unavailable")
    steadily(lambda: group.size == 8, 5)
    sidecars[1].start()
    exporter.set("jobs_waiting", JOBS // 2)
    eventually(lambda: group.size == 4, timeout=60)


# ---- Cortex ----


@pytest.fixture(name="tenants")
def run_tenants(started, make_prometheus, tmp_path):
    """A Cortex; a Prometheus for each tenant has written its jobs into it: twice as many of `billing`."""
    if cortex.missing():
        pytest.skip(cortex.missing())
    server = started(Cortex(tmp_path / "cortex")).start()
    for number, tenant in enumerate(("shop", "billing"), start=1):
        exporter = started(Exporter())
        exporter.set("jobs_waiting", number * JOBS)
        make_prometheus(name=f"prometheus-{tenant}", targets=[exporter.address], remote_write=started(Writer(server, tenant)).remote_write)
        eventually(lambda tenant=tenant, number=number: query_tenant(server, tenant) == number * JOBS, 60, what=f"the jobs of {tenant}")
    return server


def query_tenant(server, tenant):
    answer = request("GET", server.url + "/prometheus/api/v1/query?query=sum(jobs_waiting)", headers={"X-Scope-OrgID": tenant})
    assert answer.ok, answer.text
    return sum(float(series["value"][1]) for series in answer.json["data"]["result"])


def read_recipe_of(server, tenant="shop"):
    recipe, = read_recipes("Cortex")
    assert recipe["http_config"]["http_headers"]["X-Scope-OrgID"] == {"values": ["shop"]}
    recipe["http_config"]["http_headers"]["X-Scope-OrgID"] = {"values": [tenant]}
    return place(recipe, server.url)


@pytest.mark.deep
def test_cortex_gives_each_tenant_its_own_series(follow, group, tenants):
    """The same rule, query and server: only the tenant differs."""
    daemon = follow(read_recipe_of(tenants))
    eventually(lambda: group.size == 4)
    steadily(lambda: group.size == 4, 3)
    config = yaml.safe_load(daemon.config_file.read_text(encoding="utf-8"))
    for tenant, size in (("billing", 8), ("shop", 4)):
        daemon.write_config({**config, "prometheus": read_recipe_of(tenants, tenant)})
        daemon.reload()
        eventually(lambda size=size: group.size == size)
    daemon.write_config({**config, "prometheus": read_recipe_of(tenants, "nobody")})
    daemon.reload()
    eventually(lambda: reason(daemon) == "metric_unavailable")
    steadily(lambda: group.size == 4, 3)


@pytest.mark.deep
def test_cortex_without_a_tenant(follow, group, tenants):
    """The error names the cause, and no size changes."""
    daemon = follow({"url": read_recipe_of(tenants)["url"]})
    eventually(lambda: reason(daemon) == "metric_unavailable")
    steadily(lambda: group.size == 1, 3)
    assert daemon.records("decision")[-1]["input"]["proposals"][0]["error"] == "Prometheus: HTTP 401: no org id"
    assert "no org id" in daemon.process.log_text()


@pytest.mark.deep
def test_cortex_and_the_commands(follow, tenants, tmp_path):
    """`check`, also of a broken query, and `backtest`, as the page says; then both without the tenant."""
    daemon, recipe = follow(read_recipe_of(tenants)), read_recipe_of(tenants)
    (tmp_path / "http.yaml").write_text(dump_yaml(recipe["http_config"]))
    (tmp_path / "none.yaml").write_text("{}\n")
    rules = daemon.directory / "rules/rules.yaml"
    broken = tmp_path / "broken.yaml"
    broken.write_text(rules.read_text(encoding="utf-8").replace("sum(jobs_waiting)", "sun(jobs_waiting)"))

    def run(command, *arguments, http="http.yaml"):
        return subprocess.run([find_binary(), command, f"--prometheus={recipe['url']}", f"--http.config.file={tmp_path / http}", *arguments],
                              capture_output=True, text=True, check=False, timeout=120, env=environment())

    done = run("check", daemon.config_file, "--values", "--require-promql")
    assert done.returncode == 0 and "1 series: 40, average_value: 10" in done.stdout, done
    done = run("check", daemon.config_file, "--values", "--require-promql", http="none.yaml")
    assert done.returncode == 1 and "HTTP 401: no org id" in done.stderr, done
    done = run("check", "--require-promql", broken)
    assert done.returncode == 1 and 'unknown function with name "sun"' in done.stderr, done

    backtest = ["--from=2m", "--step=1s", "--replicas=workers=1", "--rules", rules]
    done = run("backtest", *backtest)
    assert done.returncode == 0 and re.search(r"^ +after +1 +0 +1 +4 ", done.stdout, re.MULTILINE), done
    done = run("backtest", *backtest, http="none.yaml")
    assert done.returncode == 2 and "HTTP 401: no org id" in done.stderr, done


TOKEN = "glc_reader"

# heading, number of the recipe, path, headers, the answer without them
GATED = {
    "mimir": ("Mimir", 0, "/prometheus", {"X-Scope-OrgID": "shop"}, 401),
    "cortex": ("Cortex", 0, "/prometheus", {"X-Scope-OrgID": "shop"}, 401),
    "grafana-cloud": ("Grafana Cloud", 0, "/api/prom",
                      {"Authorization": "Basic " + base64.b64encode(f"123456:{TOKEN}".encode()).decode()}, 401),
}


def make_gated(started, prometheus, tmp_path, which):
    heading, number, path, headers, status = GATED[which]
    gate = started(Gate(prometheus, path, headers, status))
    (tmp_path / "grafana.token").write_text(TOKEN + "\n")
    files = {"/etc/alertscaler/grafana.token": tmp_path / "grafana.token"} if which == "grafana-cloud" else None
    return gate, place(read_recipes(heading)[number], gate.url, files)


@pytest.mark.parametrize("which", GATED)
def test_a_server_that_accepts_only_the_recipe(started, follow, group, prometheus, tmp_path, which):
    gate, recipe = make_gated(started, prometheus, tmp_path, which)
    follow(recipe)
    eventually(lambda: group.size == 4)
    assert gate.passed > 0 and gate.refused == 0


@pytest.mark.parametrize("which", GATED)
def test_without_the_login_no_size_changes(started, follow, group, prometheus, tmp_path, which):
    """The gate can refuse: without the header, the recipe fails."""
    gate, recipe = make_gated(started, prometheus, tmp_path, which)
    daemon = follow({"url": recipe["url"]})
    eventually(lambda: gate.refused > 1 and reason(daemon) == "metric_unavailable")
    steadily(lambda: group.size == 1, 1)
    assert gate.passed == 0


def test_the_command_that_tests_a_configuration(started, follow, prometheus, tmp_path):
    """`check --values` with the lines under `http_config`."""
    gate, recipe = make_gated(started, prometheus, tmp_path, "mimir")
    daemon = follow(recipe)
    (tmp_path / "http.yaml").write_text(yaml.safe_dump(recipe["http_config"]))
    done = subprocess.run([find_binary(), "check", daemon.config_file, f"--prometheus={recipe['url']}",
                           f"--http.config.file={tmp_path / 'http.yaml'}", "--values"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "1 series: 40, average_value: 10" in done.stdout, done.stdout + done.stderr
    assert gate.refused == 0


CLOUDS = ("Amazon Managed Service for Prometheus", "Azure Monitor workspace", "Google Cloud Managed Service for Prometheus",
          "Grafana Cloud", "Mimir", "Cortex", "Thanos", "VictoriaMetrics", "Other services with OAuth 2.0")


def test_no_recipe_has_a_warning(tmp_path):
    headings = {heading for heading in re.findall(r"^## (.*)$", PAGE, re.MULTILINE) if read_recipes(heading)}
    assert headings == set(CLOUDS)
    for heading in CLOUDS:
        for recipe in read_recipes(heading):
            (tmp_path / "alertscaler.yaml").write_text(yaml.safe_dump({"rule_files": [], "receiver": {"users": [{"name": "a"}]},
                                                                       "prometheus": recipe}))
            done = subprocess.run([find_binary(), "check", "--syntax-only", "--lint-fatal"], cwd=tmp_path, capture_output=True, text=True,
                                  check=False)
            assert (done.returncode, done.stderr) == (0, ""), (heading, done.stderr)


def test_a_rule_that_follows_the_alerts_of_prometheus(make_daemon, make_prometheus, exporter, group):
    """rules/firing-alert.yaml, with shorter times and another target; there is no Alertmanager."""
    rules = yaml.safe_load((ROOT / "rules/firing-alert.yaml").read_text(encoding="utf-8"))
    target = rules["targets"]["payments"]
    del target["kubernetes"]
    target.update(node_group={"provider": "mine", "url": group.url}, cooldown={"up": "1s", "down": "1s"})
    for rule in rules["rules"]:
        rule["every"] = "1s"
    exporter.set("busy", 0)
    exporter.set("idle", 0)
    server = make_prometheus(targets=[exporter.address], rules=[
        {"alert": "PaymentsBusy", "expr": "busy > 0"}, {"alert": "PaymentsIdle", "expr": "idle > 0"}])
    group.size = 6
    daemon = make_daemon(rules, {"providers": {"mine": {"type": "http"}}, "prometheus": {"url": server.url}})
    eventually(lambda: daemon.target("payments")["last_decision"]["reason"] == "no_change")
    exporter.set("busy", 1)
    eventually(lambda: group.size >= 14, what="6, 9, 14: half as many more at a time")
    assert [put.body["size"] for put in group.puts][:2] == [9, 14]
    exporter.set("busy", 0)
    eventually(lambda: server.query('ALERTS{alertname="PaymentsBusy"}') == [])
    eventually(lambda: daemon.target("payments")["last_decision"]["reason"] == "no_change")
    top = group.size
    steadily(lambda: group.size == top, 2)
    exporter.set("idle", 1)
    eventually(lambda: group.size == 4)
    assert [put.body["size"] for put in group.puts][-2:] == [5, 4]
