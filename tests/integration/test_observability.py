"""What the daemon shows of itself: the API, the page and the metrics of a real one, read by a real Prometheus."""
import json
import pathlib
import re
import subprocess
import urllib.parse

import pytest

from harness import monitoring
from harness.daemon import environment
from harness.http import request
from harness.notification import alert, notification
from harness.wait import eventually

pytestmark = pytest.mark.monitoring

OPENMETRICS = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"}


@pytest.fixture
def group(node_group):
    return node_group(size=4)


@pytest.fixture
def daemon(make_daemon, group):
    return make_daemon(
        config={"providers": {"mine": {"type": "http"}}},
        rules={
            "targets": {"workers": {"node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 10,
                                    "cooldown": {"up": "1h", "down": "2h"}}},
            "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 2}}],
        })


def scale_once(daemon, group):
    daemon.notify(notification(alert({"alertname": "Busy"}), alert({"alertname": "Nobody"})))
    eventually(lambda: group.size == 6)
    daemon.wait_record("action", outcome="applied")
    eventually(lambda: not daemon.target("workers")["busy"])      # which it is until the outcome is known to be stored


def command(daemon, *words, **env):
    return subprocess.run([daemon.binary, *words], env=environment(ALERTSCALER_URL=daemon.url, **env), timeout=40, text=True,
                          capture_output=True)


def test_the_api_shows_what_was_done(daemon, group):
    scale_once(daemon, group)
    target = daemon.target("workers")
    assert (target["replicas"], target["min"], target["max"], target["open_incidents"]) == (6, 1, 10, 1)
    assert target["locked_until"]["up"] < target["locked_until"]["down"]
    assert target["last_decision"]["reason"] == "scaled"
    assert daemon.target(urllib.parse.quote(target["id"], safe="")) == target
    (listed,) = daemon.get("/api/v1/targets").json["data"]
    assert listed == target

    (decision,) = daemon.get("/api/v1/decisions?target=workers&reason=scaled").json["data"]
    assert (decision["replicas"], decision["desired"], decision["rule"]) == (4, 6, "busy")
    whole = daemon.get(f"/api/v1/decisions/{decision['id']}").json["data"]
    (logged,) = daemon.records("decision", id=decision["id"])
    assert {k: v for k, v in logged.items() if k not in ("hash", "prev", "seq")} == whole

    (incident,) = daemon.get("/api/v1/incidents").json["data"]
    assert incident["labels"] == {"alertname": "Busy"}
    assert incident["generatorURL"] == "http://prometheus.example/graph" and incident["externalURL"] == "http://alertmanager.example:9093"
    assert incident["targets"] == [{"target": target["id"], "rule": "busy", "replicas": 6}]
    (rule,) = daemon.get("/api/v1/rules").json["data"]
    assert (rule["name"], rule["action"], rule["match"]) == ("busy", {"scale_up": {"by": 2}}, ['alertname="Busy"'])

    status = daemon.get("/api/v1/status").json["data"]
    assert status["ready"] and status["incidents_open"] == 1
    eventually(lambda: daemon.records()[-1]["seq"] >= status["action_log"]["seq"])      # what is committed is written right after
    assert status["rules_digest"] == logged["rules_digest"]


def shape(value):
    """The keys of a document, all the way down."""
    return {key: shape(inner) for key, inner in value.items()} if isinstance(value, dict) else None


def test_the_api_is_as_documented(daemon, group):
    scale_once(daemon, group)
    page = (pathlib.Path(__file__).parents[2] / "docs" / "api.md").read_text()
    example = next(json.loads(block) for block in re.findall(r"```json\n(\{\n.*?)```", page, re.S))
    target = daemon.target("workers")
    assert shape({**example, "address": 0}) == shape({**target, "address": 0})
    sections = re.split(r"^## `?([^`\n]+)`?$", page, flags=re.M)
    described = dict(zip(sections[1::2], sections[2::2]))
    for path in ("status", "incidents", "rules", "decisions"):
        data = daemon.get(f"/api/v1/{path}").json["data"]
        one = data[0] if isinstance(data, list) else data
        named = set(re.findall(r"`(\w+)`", described[f"/api/v1/{path}"]))
        assert set(one) <= named, f"{path}: not in docs/api.md: {set(one) - named}"


def test_the_api_answers_wrong_questions(daemon):
    for method, path, code in (("GET", "/nothing", 404), ("GET", "/api/v2/targets", 404), ("POST", "/metrics", 405),
                               ("DELETE", "/api/v1/targets", 405), ("GET", "/webhook", 405),
                               ("GET", "/api/v1/decisions?limit=x", 400), ("GET", "/api/v1/targets/x", 404)):
        answer = request(method, daemon.url + path)
        assert answer.status == code, (method, path, answer.text)
        if path.startswith("/api/"):
            assert answer.json["status"] == "error"
        if code == 405:
            assert answer.headers["Allow"]
    for path in ("/", "/metrics", "/-/ready", "/-/healthy", "/api/v1/status", "/api/v1/targets"):
        answer = request("HEAD", daemon.url + path)
        assert (answer.status, answer.body) == (200, b"")
        headers = [name.lower() for name in answer.headers.keys()]
        assert len(headers) == len(set(headers)), headers


def test_metrics_satisfy_promtool_and_agree_with_what_happened(daemon, group):
    scale_once(daemon, group)
    metrics = daemon.metrics()
    assert metrics.value("alertscaler_notifications_total", result="ok") == 1
    assert metrics.value("alertscaler_alerts_total", status="firing", outcome="queued") == 1
    assert metrics.value("alertscaler_alerts_total", status="firing", outcome="no_rule") == 1
    assert metrics.value("alertscaler_decisions_total", rule="busy", reason="scaled") == 1
    assert metrics.value("alertscaler_actions_total", target_kind="node_group", direction="up", outcome="applied") == 1
    assert metrics.value("alertscaler_target_replicas", target="workers") == 6
    assert metrics.value("alertscaler_provider_requests_total", operation="set_size", code="200") == 1
    assert metrics.sum("alertscaler_http_requests_total", handler="webhook", code="200") == 1
    assert metrics.value("alertscaler_action_log_bytes") > 0
    assert metrics.value("alertscaler_config_last_reload_successful") == 1
    assert 0 < metrics.value("process_resident_memory_bytes")
    checked = subprocess.run([monitoring.program("promtool"), "check", "metrics"], input=daemon.get("/metrics").body, capture_output=True)
    assert checked.returncode == 0, checked.stderr.decode()
    text = request("GET", daemon.url + "/metrics", headers=OPENMETRICS)
    assert text.headers["Content-Type"].startswith("application/openmetrics-text")
    assert text.text.endswith("# EOF\n")


def test_prometheus_scrapes_it(daemon, group, make_prometheus):
    scale_once(daemon, group)
    prometheus = make_prometheus(targets=[daemon.address])
    eventually(lambda: prometheus.query('up{job="test"} == 1'))
    (sample,) = eventually(lambda: prometheus.query("alertscaler_target_replicas"))
    assert sample["metric"]["target"] == "workers" and sample["value"][1] == "6"
    (sample,) = eventually(lambda: prometheus.query(
        "histogram_quantile(0.5, alertscaler_notification_to_action_seconds_bucket)"))
    assert 0 < float(sample["value"][1]) < 60

    def state():
        (target,) = request("GET", prometheus.url + "/api/v1/targets").json["data"]["activeTargets"]
        return target["health"], target["lastError"]

    eventually(lambda: state() == ("up", ""))
    described = request("GET", prometheus.url + "/api/v1/metadata").json["data"]
    assert described["alertscaler_alerts_total" if "alertscaler_alerts_total" in described
                     else "alertscaler_alerts"][0]["type"] == "counter"


def test_the_commands_talk_to_it(daemon, group):
    done = command(daemon, "fire", "alertname=Busy")
    first, *left = done.stdout.splitlines()
    assert done.returncode == 0 and first.endswith(" firing: queued, by rule busy"), done
    assert left[0].startswith("Its incident stays open, and its rules go on, until it is resolved or 1d have passed"), done
    eventually(lambda: group.size == 6)
    daemon.wait_record("action", outcome="applied")
    assert " scaled by busy, " in command(daemon, "status").stdout
    shown = json.loads(command(daemon, "status", "workers", "-o", "json").stdout)
    assert shown["replicas"] == 6
    assert command(daemon, "status", "nobody").returncode == 1
    done = command(daemon, "fire", "alertname=Busy", "--resolved")
    assert done.stdout.endswith(" resolved: queued, by rule busy\n"
                                "workers: stays at 6: the rule has no on_resolved (rule busy)\n"), done
    assert daemon.target("workers")["open_incidents"] == 0


def test_reload_from_the_command_line(make_daemon, tmp_path):
    token = tmp_path / "admin.token"
    token.write_text("of-an-operator\n")
    daemon = make_daemon(flags=["--web.enable-admin-api"], rules={"rules": []}, config={
        "receiver": {"tokens": [{"name": "operator", "file": str(token), "permissions": ["read", "admin"]}]}})
    daemon.headers = {"Authorization": "Bearer of-an-operator"}
    assert "token" in command(daemon, "reload").stderr
    env = {"ALERTSCALER_TOKEN_FILE": str(token)}
    assert command(daemon, "reload", **env).stdout == "unchanged\n"
    (daemon.directory / "rules" / "more.yaml").write_text("rules: []\n")
    assert command(daemon, "reload", **env).stdout == "reloaded\n"
    daemon.wait_record("reload", error=None, credential="operator")
    (daemon.directory / "rules" / "bad.yaml").write_text("rules: [{name: x}]\n")
    done = command(daemon, "reload", **env)
    assert done.returncode == 1 and "nothing is changed" in done.stderr
    assert daemon.metrics().value("alertscaler_config_last_reload_successful") == 0
    (daemon.directory / "rules" / "bad.yaml").unlink()
    assert command(daemon, "reload", **env).returncode == 0
    assert daemon.metrics().value("alertscaler_config_last_reload_successful") == 1


def test_reload_needs_the_admin_api(make_daemon):
    daemon = make_daemon(rules={"rules": []})
    done = command(daemon, "reload")
    assert done.returncode == 1 and "--web.enable-admin-api" in done.stderr
