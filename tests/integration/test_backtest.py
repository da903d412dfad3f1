"""`alertscaler backtest` and real Prometheus: history written in advance by promtool, and history that is just made."""
import json
import subprocess
import time
import urllib.parse
import xml.etree.ElementTree

import pytest

from harness import monitoring
from harness.daemon import dump_yaml, environment, find_binary
from harness.exporter import Exporter
from harness.http import Server, request
from harness.ports import free_port
from harness.process import Process
from harness.wait import eventually

MISSING = monitoring.missing("prometheus", "promtool")
pytestmark = [pytest.mark.monitoring, pytest.mark.skipif(bool(MISSING), reason=str(MISSING))]

START = 1_700_000_040           # a whole minute
SECONDS = 2 * 3600
TARGET = "kubernetes/default/apps/v1/Deployment/shop/checkout"
RULES = {
    "targets": {"checkout": {"kubernetes": {"kind": "Deployment", "namespace": "shop", "name": "checkout"}, "min": 2, "max": 10,
                             "cooldown": {"up": "5m", "down": "10m"}}},
    "rules": [
        {"name": "slow", "match": ['alertname="Slow"', 'severity="page"'], "target": "checkout", "scale_up": {"by": 2}},
        {"name": "idle", "match": ['alertname="Idle"'], "target": "checkout", "scale_down": {"by": 1}},
    ],
}


def at(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(START + seconds))


def write_history(path):
    """Slow fires from minute 10 to 22, Idle from 60 to 115; the Deployment has 3 replicas, 6 from minute 15 to 80, then 3."""
    series = {}

    def put(name, begin, end, value, step=15):
        for second in range(begin, end, step):
            series.setdefault(name, []).append((START + second, value(second) if callable(value) else value))

    put('ALERTS{alertname="Slow",alertstate="firing",severity="page",namespace="shop"}', 600, 1320, 1)
    put('ALERTS{alertname="Slow",alertstate="pending",severity="page",namespace="shop"}', 540, 600, 1)
    put('ALERTS{alertname="Idle",alertstate="firing",namespace="shop"}', 3600, 6900, 1)
    put('ALERTS{alertname="Busy",alertstate="firing",namespace="shop"}', 600, 3600, 1)
    put('kube_deployment_spec_replicas{namespace="shop",deployment="checkout",instance="a"}', 0, SECONDS,
        lambda second: 6 if 900 <= second < 4800 else 3)
    put('kube_deployment_spec_replicas{namespace="shop",deployment="checkout",instance="b"}', 0, SECONDS,
        lambda second: 6 if 900 <= second < 4800 else 3)
    put('requests{namespace="shop"}', 0, SECONDS, lambda second: 500 if second < 1800 else 800)
    for pod in ("checkout-a", "checkout-b", "checkout-c", "checkout-d"):
        put(f'busy{{namespace="shop",pod="{pod}"}}', 0, SECONDS, lambda second: 0.5 if second < 1800 else 1.0)
        for container, cores in (("app", 0.75), ("proxy", 0.25)):
            put(f'kube_pod_container_resource_limits{{namespace="shop",pod="{pod}",container="{container}",resource="cpu"}}', 0, SECONDS, cores)
    names = sorted({name.split("{")[0] for name in series})
    with open(path, "w", encoding="utf-8") as out:
        for family in names:
            out.write(f"# TYPE {family} gauge\n")
            for name, samples in series.items():
                if name.split("{")[0] == family:
                    out.writelines(f"{name} {value} {second}\n" for second, value in samples)
        out.write("# EOF\n")


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    """With the history above."""
    folder = tmp_path_factory.mktemp("history")
    write_history(folder / "history.om")
    subprocess.run([monitoring.program("promtool"), "tsdb", "create-blocks-from", "openmetrics", folder / "history.om", folder / "data"],
                   check=True, capture_output=True, timeout=60)
    (folder / "prometheus.yml").write_text("global: {}\n")
    url = f"http://127.0.0.1:{free_port()}"
    process = Process("prometheus", [
        monitoring.program("prometheus"), f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
        "--storage.tsdb.retention.time=100y", f"--web.listen-address={url.removeprefix('http://')}", "--query.lookback-delta=20s",
    ], folder)
    process.start().wait_ready(lambda: request("GET", url + "/-/ready").ok)
    yield url
    process.stop()


@pytest.fixture
def run(prometheus, tmp_path):
    binary = find_binary()
    assert binary, "alertscaler is not built"

    def run(rules, *arguments, status=0, url=prometheus, begin=0, end=SECONDS):
        (tmp_path / "rules.yaml").write_text(dump_yaml(rules))
        done = subprocess.run([
            binary, "backtest", "--prometheus", url, "--from", at(begin), "--to", at(end), "--rules", tmp_path / "rules.yaml",
            *map(str, arguments)], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False, env=environment())
        assert done.returncode == status, done
        return done
    return run


@pytest.fixture
def read(run):
    def read(rules, *arguments, **more):
        told = json.loads(run(rules, *arguments, "-o", "json", **more).stdout)
        return told, {target["name"]: target for target in told["targets"]}
    return read


def with_rule(**rule):
    return {**RULES, "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "checkout", **rule}]}


def test_what_people_would_have_been_asked(run, read):
    """Up at minutes 10, 15 and 20, each by more than one: approved at once, or never."""
    rules = {**RULES, "rules": [{**RULES["rules"][0], "approval": {"above": 1}}, RULES["rules"][1]]}
    _, targets = read(rules)
    assert (targets["checkout"]["after"]["ups"], targets["checkout"]["after"]["max"], targets["checkout"]["approval_count"]) == (3, 9, 3)
    assert targets["checkout"]["approvals"][0] == {"time": at(600), "rule": "slow", "from": 3, "to": 5}
    _, targets = read(rules, "--approvals", "none")
    assert (targets["checkout"]["after"]["ups"], targets["checkout"]["approval_count"]) == (0, 1)
    text = run(rules).stdout
    assert f"Requests for approvals (each counts as approved at once)\n  checkout {at(600)}: from 3 to 5, by slow\n" in text
    assert "Requests for approvals" not in run(RULES).stdout


def test_an_always_rule_follows_the_history_without_an_alert(read):
    """500 requests until minute 30, then 800: 5 and 8 for 100 each. The history has 3, and 6 for some time."""
    rule = {"name": "follow", "always": True, "target": "checkout", "every": "15s", "track": {"average_value": 100, "query": "sum(requests)"}}
    rules = {**RULES, "targets": {"checkout": {**RULES["targets"]["checkout"], "cooldown": {"up": "0s", "down": "0s"}}}, "rules": [rule]}
    told, targets = read(rules)
    after = targets["checkout"]["after"]
    assert (after["ups"], after["downs"], after["max"], after["last"]) == (2, 0, 8, 8)
    assert [(d["from"], d["before"], d["after"]) for d in targets["checkout"]["differences"]][0] == (at(0), 3, 5)
    assert after["mean"] == pytest.approx((5 * 1800 + 8 * (SECONDS - 1800)) / SECONDS, abs=0.02)
    assert (told["warnings"], told["notifications"]) == ([], 6)
    _, targets = read(rules, "--step=500ms")    # several chunks
    assert targets["checkout"]["after"]["ups"] == 2
    rule["guard"] = {"query": "absent(requests)"}     # no data: nothing goes down
    rule["track"]["average_value"] = 400
    _, targets = read(rules)
    assert (targets["checkout"]["after"]["downs"], targets["checkout"]["after"]["last"]) == (0, 3)
    rule["guard"] = {"query": "requests"}
    _, targets = read(rules)
    assert targets["checkout"]["after"]["last"] == 2


def test_an_always_rule_and_pods(read):
    """Four pods use 0.5 of one core, then 1.0: half of it is the goal."""
    rule = {"name": "cpu", "always": True, "target": "checkout", "every": "15s",
            "track": {"average_value": 0.5, "per_pod": True, "query": "sum by (pod) (busy)"}}
    rules = {**RULES, "targets": {"checkout": {**RULES["targets"]["checkout"], "cooldown": {"up": "0s", "down": "0s"}}}, "rules": [rule]}
    told, targets = read(rules)
    assert (targets["checkout"]["after"]["last"], told["warnings"]) == (8, [])


def test_sizes_before_and_after(read):
    told, targets = read(RULES)
    before, after = targets["checkout"]["before"], targets["checkout"]["after"]
    assert targets["checkout"]["id"] == TARGET
    assert (before["ups"], before["downs"], before["min"], before["max"], before["last"]) == (1, 1, 3, 6, 3)
    assert before["mean"] == pytest.approx((3 * (SECONDS - 3900) + 6 * 3900) / SECONDS, abs=0.02)
    # up at minutes 10, 15 and 20; down every ten minutes from 60 on: 60, 70, 80, 90, 100, 110
    assert (after["ups"], after["downs"], after["min"], after["max"], after["last"]) == (3, 6, 3, 9, 3)
    assert told["notifications"] == 6 and told["warnings"] == []
    first = targets["checkout"]["differences"][0]
    assert (first["from"], first["before"], first["after"]) == (at(600), 3, 5)


def test_steps_of_another_length_come_to_the_same(read):
    figures = [read(RULES, f"--step={step}")[1]["checkout"]["after"] for step in ("5s", "15s", "1m")]
    assert len({(f["ups"], f["downs"], f["min"], f["max"], f["last"]) for f in figures}) == 1


def test_many_chunks_come_to_the_same_as_one(read):
    """At steps of 500 ms the time is longer than Prometheus gives at once."""
    _, targets = read(RULES, "--step=500ms")
    after = targets["checkout"]["after"]
    assert (after["ups"], after["downs"], after["max"], after["last"]) == (3, 6, 9, 3)


def test_text_and_chart(run, tmp_path):
    done = run(RULES, "--svg", tmp_path / "charts")
    assert done.stderr == ""
    assert "checkout  before       1       1       3       6" in done.stdout
    assert "First differences\n" in done.stdout
    root = xml.etree.ElementTree.parse(tmp_path / "charts/checkout.svg").getroot()
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"checkout", "Slow", "Idle", "size before"} <= set(texts)


def test_a_chart_has_the_bounds_in_force(run, read, tmp_path):
    """A schedule from minute 30 to 60: at its begin the size is raised to its min, and the line of the min steps twice."""
    rules = json.loads(json.dumps(RULES))
    rules["targets"]["checkout"]["schedules"] = [{"name": "sale", "from": at(1800), "to": at(3600), "min": 7}]
    run(rules, "--svg", tmp_path / "charts")
    root = xml.etree.ElementTree.parse(tmp_path / "charts/checkout.svg").getroot()
    lines = [path.get("d") for path in root.iter("{http://www.w3.org/2000/svg}path") if "bound" in (path.get("class") or "").split()]
    assert sorted(line.count("V") for line in lines) in ([2], [0, 2]), lines
    _, targets = read(rules)
    assert targets["checkout"]["after"]["max"] >= 7
    run(RULES, "--svg", tmp_path / "plain")
    plain = xml.etree.ElementTree.parse(tmp_path / "plain/checkout.svg").getroot()
    assert not [path for path in plain.iter("{http://www.w3.org/2000/svg}path") if "steps" in (path.get("class") or "").split()]


def test_a_schedule_that_lowers_the_max_counts_while_the_size_stays(read):
    """No alert comes: the 6 replicas of minutes 15 to 80 are at the max from minute 30 to 60."""
    rules = json.loads(json.dumps(RULES))
    rules["rules"] = [{**rules["rules"][0], "match": ['alertname="NeverFires"']}]
    rules["targets"]["checkout"]["schedules"] = [{"name": "night", "from": at(1800), "to": at(3600), "max": 6}]
    _, targets = read(rules)
    for side in ("before", "after"):
        assert (targets["checkout"][side]["min"], targets["checkout"][side]["max"]) == (3, 6), targets
        assert targets["checkout"][side]["at_max_seconds"] == 1800, targets


def test_a_query_as_source_has_its_values_of_the_time(read):
    """500 over 100 a replica is 5; from minute 30 on 800 is 8. The alert ends at minute 60."""
    rules = with_rule(track={"average_value": 100, "query": 'requests{namespace="{{ .Labels.namespace }}"}'})
    _, targets = read(rules)
    after = targets["checkout"]["after"]
    assert (after["max"], after["last"], after["ups"]) == (8, 8, 2)


def test_a_query_for_each_pod(read):
    """Four pods at 0.5 with a goal of 0.4 are 5; at 1.0 they are 10."""
    rules = with_rule(track={"average_value": 0.4, "query": 'busy{namespace="{{ .Labels.namespace }}"}', "per_pod": True})
    _, targets = read(rules)
    after = targets["checkout"]["after"]
    assert (after["max"], after["ups"]) == (10, 2)


def test_utilization_of_what_pods_ask_for(read, run):
    """Busy 0.5 of 1 core is 50 %, of a goal of 25 % twice as much: 8 pods; at 1.0 it is 16, over the max of 10."""
    def rules(of):
        return with_rule(track={"utilization": "25%", "of": of, "query": 'busy{namespace="{{ .Labels.namespace }}"}', "per_pod": True})
    told, targets = read(rules("cpu_limits"))
    assert told["warnings"] == []
    assert (targets["checkout"]["after"]["max"], targets["checkout"]["after"]["ups"]) == (10, 2)
    _, targets = read(rules("cpu_limits"), end=1700)
    assert targets["checkout"]["after"]["last"] == 8
    done = run(rules("memory_requests"))
    assert "kube_pod_container_resource_requests" in done.stderr and "utilization proposes nothing" in done.stderr


@pytest.mark.parametrize("container, size", [("app", 6), ("proxy", 10)])
def test_utilization_of_one_container(read, container, size):
    """Busy 0.5 of 0.75 cores is 66 %, of a goal of 50 %: 1.32 x 4. Of 0.25 cores it is 200 %: 16, over the max of 10."""
    _, targets = read(with_rule(track={"utilization": "50%", "of": "cpu_limits", "container": container, "per_pod": True,
                                       "query": 'busy{namespace="{{ .Labels.namespace }}"}'}), end=1700)
    assert targets["checkout"]["after"]["last"] == size


def test_a_guard_holds_while_its_query_has_no_data(read):
    def lowest(guard):
        rules = with_rule(scale_to=2, guard={"query": guard})
        return read(rules)[1]["checkout"]["after"]["min"]
    assert lowest('requests > 700') == 2
    assert lowest('requests > 900') == 3


def test_a_query_that_prometheus_refuses_is_a_warning(run):
    done = run(with_rule(track={"average_value": 100, "query": "sum(requests"}))
    assert "warning: query sum(requests: " in done.stderr and "parse error" in done.stderr


def test_a_query_with_partial_answers_scales_nothing(prometheus, run, read):
    """Prometheus' own answers, with the mark of VictoriaMetrics on those of the rule's query: without it, its value scales."""
    def answer(asked):
        got = request(asked.method, prometheus + asked.path, body=asked.body, headers={"Content-Type": asked.headers["Content-Type"]})
        assert got.status == 200
        is_load = "requests" in urllib.parse.parse_qs(asked.body.decode())["query"][0]
        return 200, {}, {**got.json, "isPartial": is_load and marks[0]}

    rules = with_rule(track={"average_value": 100, "query": "sum(requests)"})
    marks, server = [False], Server(answer)
    try:
        _, targets = read(rules, url=server.url)
        assert targets["checkout"]["after"]["ups"] > 0
        marks[0] = True
        told, targets = read(rules, url=server.url)
        assert (targets["checkout"]["after"]["ups"], targets["checkout"]["after"]["downs"]) == (0, 0)
        assert told["warnings"] == ["query sum(requests): query has a partial answer (isPartial): a part of the storage did not answer"]
    finally:
        server.stop()


def test_annotations_are_not_in_the_history(run):
    done = run(with_rule(pass_through={"annotation": "wanted"}))
    assert "warning: rule busy: its value is an annotation" in done.stderr


def test_targets_of_other_kinds_need_a_query(run, read):
    rules = {"targets": {"group": {"node_group": {"provider": "mine", "url": "https://groups.example/a"}, "max": 10}},
             "rules": [{"name": "slow", "match": ['alertname="Slow"'], "target": "group", "scale_up": {"by": 1}}]}
    assert "there is no metric for its kind" in run(rules).stderr
    _, targets = read(rules, "--target", 'group=max(kube_deployment_spec_replicas{deployment="checkout"})')
    assert targets["group"]["before"]["max"] == 6
    assert targets["group"]["after"]["ups"] > 0
    _, targets = read(rules, "--replicas=group=4")
    assert targets["group"]["after"]["min"] == 4
    assert "2 series, expected one" in run(rules, "--target=group=kube_deployment_spec_replicas", status=2).stderr
    assert "parse error" in run(rules, "--target=group=max(", status=2).stderr
    assert 'no target "nix"' in run(rules, "--target=nix=1", status=2).stderr
    assert "is not NAME=QUERY" in run(rules, "--target=group", status=2).stderr


def test_templated_targets_are_found_by_their_alerts(read):
    rules = {"targets": {"app": {"kubernetes": {"kind": "Deployment", "namespace": "{{ .Labels.namespace }}", "name": "checkout"},
                                 "max": 10, "allow": {"namespaces": ["shop"], "names": ["*"]}}},
             "rules": [{"name": "slow", "match": ['alertname="Slow"'], "target": "app", "scale_up": {"by": 1}}]}
    told, targets = read(rules)
    assert targets["app"]["id"] == TARGET and targets["app"]["after"]["ups"] > 0
    assert told["warnings"] == []


SIZED = {
    "disk": ({"kind": "PersistentVolumeClaim", "field": "spec.resources.requests.storage", "unit": "10Gi"}, "40Gi", "units of 10Gi"),
    "memory": ({"kind": "Deployment", "container": "app", "resource": "memory", "unit": "64Mi"}, "256Mi", "units of 64Mi"),
    "floor": ({"kind": "HorizontalPodAutoscaler", "field": "spec.minReplicas"}, "", "size"),
}


@pytest.mark.parametrize("name", SIZED)
def test_fields_and_resources_are_told_in_both_notations(run, read, tmp_path, name):
    address, amount, measure = SIZED[name]
    rules = {"targets": {name: {"kubernetes": {"namespace": "shop", "name": "any", **address}, "min": 1, "max": 20}},
             "rules": [{"name": "slow", "match": ['alertname="Slow"'], "target": name, "scale_up": {"by": 1}}]}
    sized = f"--replicas={name}=4"
    done = run(rules, sized, "--svg", tmp_path / "charts")
    assert (f"4 ({amount})" if amount else " 4 ") in done.stdout, done.stdout
    assert "no metric for its kind" not in done.stderr, done.stderr
    root = xml.etree.ElementTree.parse(tmp_path / f"charts/{name}.svg").getroot()
    labels = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert measure in labels and "replicas" not in labels, labels
    _, targets = read(rules, sized)
    assert targets[name].get("unit") == address.get("unit")
    _, targets = read(rules, "--target", name + '=max(kube_deployment_spec_replicas{deployment="checkout"})')
    assert (targets[name]["before"]["max"], targets[name]["after"]["ups"] > 0) == (6, True)


def test_labels_and_receiver(read):
    rules = {**RULES, "rules": [{**RULES["rules"][0], "match": ['alertname="Slow"', 'cluster="a"'], "receivers": ["other"]}]}
    ups = [read(rules, *more)[1]["checkout"]["after"]["ups"]
           for more in ((), ("--label=cluster=a",), ("--label=cluster=a", "--receiver=other"))]
    assert ups == [0, 0, 3]


def test_no_alerts_at_all(read):
    _, targets = read(RULES, begin=0, end=300)
    assert (targets["checkout"]["after"]["ups"], targets["checkout"]["difference_count"]) == (0, 0)


def test_wrong_use_is_status_2(run, tmp_path):
    for arguments, said in (
        (["--step=0"], "--step"), (["--step=x"], "--step"), (["--step=1us"], "--step"), (["--label=x"], "--label"),
        (["--replicas=checkout"], "is not NAME=N"), (["--to=yesterday"], "given twice"),
    ):
        assert said in run(RULES, *arguments, status=2).stderr, arguments
    assert "not after" in run(RULES, begin=10, end=10, status=2).stderr
    assert "is not an address" in run(RULES, url="prometheus:9090", status=2).stderr
    assert f"127.0.0.1:{1}" in run(RULES, url="http://127.0.0.1:1", status=2).stderr
    done = subprocess.run([find_binary(), "backtest", "--from=1h"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2


@pytest.mark.parametrize("status, body, said", [
    (200, b"<html>", "not"), (200, b"{}", "not an answer"), (200, b'{"status":"success","data":{"resultType":"matrix","result":[{}]}}', "without values"),
    (200, b'{"status":"error","errorType":"internal","error":"broken"}', "broken"), (503, b"", "HTTP 503"),
    (401, b"no", "HTTP 401"), (302, b"", "HTTP 302"),
    (200, b'{"status":"success","isPartial":true,"data":{"resultType":"matrix","result":[]}}', "partial answer"),
    (200, b'{"status":"success","warnings":["a store is down"],"data":{"resultType":"matrix","result":[]}}', "a store is down"),
])
def test_answers_that_are_none(run, status, body, said):
    server = Server(lambda asked: (status, {"Content-Type": "application/json"}, body))
    try:
        assert said in run(RULES, url=server.url, status=2).stderr
    finally:
        server.stop()


def test_the_configuration_says_how_prometheus_is_reached(run, tmp_path):
    seen = []

    def answer(asked):
        seen.append(dict(asked.headers))
        return 200, {"Content-Type": "application/json"}, b'{"status":"success","data":{"resultType":"matrix","result":[]}}'

    server = Server(answer)
    (tmp_path / "token").write_text("s3cret\n")
    (tmp_path / "how.yaml").write_text(dump_yaml({"rule_files": [], "prometheus": {
        "url": server.url, "http_config": {"authorization": {"credentials_file": "token"}}}}))
    (tmp_path / "http.yaml").write_text(dump_yaml({"authorization": {"credentials_file": "token"}}))
    try:
        run(RULES, "--config.file=how.yaml", url=server.url)
        asked = len(seen)
        run(RULES, "--http.config.file=http.yaml", url=server.url)
    finally:
        server.stop()
    assert len(seen) == 2 * asked > 0
    (tmp_path / "http.yaml").write_text("basic_auth: {username: a, password: b}\n")
    assert "http.yaml:1:27" in run(RULES, "--http.config.file=http.yaml", status=1).stderr
    assert "No such file" in run(RULES, "--http.config.file=nothing", status=2).stderr
    assert all({key.lower(): value for key, value in headers.items()}["authorization"] == "Bearer s3cret" for headers in seen)


def test_history_that_prometheus_has_just_made(make_prometheus, exporter, tmp_path):
    """With real staleness: the alert ends in the history when it ends."""
    exporter.set("kube_deployment_spec_replicas", 3, namespace="shop", deployment="checkout")
    exporter.set("load", 1)
    # A scrape that fails does not end the alert.
    rule = {"alert": "Slow", "expr": "last_over_time(load[1m]) > 5", "labels": {"severity": "page"}}
    server = make_prometheus(targets=[exporter.address], rules=[rule])
    eventually(lambda: server.query("load"))
    begin = time.time()
    exporter.set("load", 9)
    eventually(lambda: server.query('ALERTS{alertstate="firing"}'))
    time.sleep(2)
    exporter.set("load", 1)
    eventually(lambda: not server.query('ALERTS{alertstate="firing"}'))
    time.sleep(1.5)
    (tmp_path / "rules.yaml").write_text(dump_yaml(RULES))
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begin))
    done = subprocess.run([find_binary(), "backtest", "--prometheus", server.url, "--from", stamp, "--to=now", "--step=200ms", "-o", "json",
                           "--rules", tmp_path / "rules.yaml"], capture_output=True, text=True, timeout=60, check=False, env=environment())
    assert done.returncode == 0, done
    told = json.loads(done.stdout)
    assert told["notifications"] == 2, told
    assert told["targets"][0]["before"]["max"] == 3 and told["targets"][0]["after"]["max"] == 5, told
