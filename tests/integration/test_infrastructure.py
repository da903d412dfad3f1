"""The peers and servers that the other tests rely on do what those tests take for granted."""
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

from harness import kwok, monitoring
from harness.daemon import ROOT, Daemon, dump_yaml, environment
from harness.http import request
from harness.kube import MERGE_PATCH, KubeError, path_of
from harness.kubelets import is_ready
from harness.metrics import Metrics
from harness.node_group import Fault
from harness.notification import alert, fingerprint, notification
from harness.ports import free_port
from harness.process import Process
from harness.wait import eventually, steadily


def workload(kind, name, replicas, api_version="apps/v1"):
    labels = {"app": name}
    spec = {
        "replicas": replicas,
        "selector": labels if kind == "ReplicationController" else {"matchLabels": labels},
        "template": {"metadata": {"labels": labels},
                     "spec": {"containers": [{"name": "main", "image": "example/main:1"}]}},
    }
    if kind == "StatefulSet":
        spec["serviceName"] = name
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


SCALED = [("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("apps/v1", "ReplicaSet"),
          ("v1", "ReplicationController")]


class TestKubernetes:
    @pytest.mark.parametrize("api_version,kind", SCALED)
    def test_workload_gets_as_many_ready_pods_as_its_scale_says(self, control_plane, namespace, api_version, kind):
        admin = control_plane.admin
        admin.create(workload(kind, "web", 3, api_version), namespace)
        path = path_of(api_version, kind, namespace, "web")
        admin.wait(path, lambda w: w["status"].get("readyReplicas") == 3)

        admin.patch(path + "/scale", {"spec": {"replicas": 1}})
        admin.wait(path, lambda w: w["status"].get("replicas") == 1)
        pods = eventually(lambda: [p for p in admin.get(path_of("v1", "Pod", namespace))["items"]
                                   if "deletionTimestamp" not in p["metadata"]], what="pods")
        assert len(pods) == 1 and is_ready(pods[0])
        assert admin.replicas(path) == 1

    def test_scale_is_conditional_on_the_version_seen_for_a_limited_account(self, control_plane, namespace):
        admin = control_plane.admin
        admin.create(workload("Deployment", "web", 2), namespace)
        control_plane.create_account(namespace, "scaler")
        control_plane.grant(namespace, "scaler", [
            {"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get", "update"]}])
        scaler = control_plane.client(control_plane.account_token(namespace, "scaler"))
        path = path_of("apps/v1", "Deployment", namespace, "web")

        admin.wait(path, lambda w: w["status"].get("readyReplicas") == 2)

        def change():
            seen = scaler.get(path + "/scale")
            seen["spec"]["replicas"] = 4
            return seen if scaler.put(path + "/scale", seen)["spec"]["replicas"] == 4 else None

        seen = eventually(change, what="a change that the controller was not faster than")
        seen["spec"]["replicas"] = 9
        assert scaler.request("PUT", path + "/scale", seen).status == 409
        assert admin.replicas(path) == 4
        assert scaler.request("PATCH", path + "/scale", {"spec": {"replicas": 1}}, MERGE_PATCH).status == 403
        assert scaler.request("GET", path).status == 403
        assert control_plane.client("nobody").request("GET", path).status == 401

    def test_custom_resource_scales(self, control_plane, namespace):
        admin = control_plane.admin
        admin.create(custom_resource_definition())
        crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rigs.test.example"
        admin.wait(crd, lambda d: any(c["type"] == "Established" and c["status"] == "True"
                                      for c in d.get("status", {}).get("conditions", [])))
        path = path_of("test.example/v1", "Rig", namespace, "big")
        eventually(lambda: admin.create({"apiVersion": "test.example/v1", "kind": "Rig", "metadata": {"name": "big"},
                                         "spec": {"replicas": 2}}, namespace), what="the kind is served")
        admin.patch(path + "/scale", {"spec": {"replicas": 5}})
        assert admin.get(path)["spec"]["replicas"] == 5
        admin.delete(crd)

    def test_unready_pods_are_the_tests_to_decide(self, control_plane, namespace):
        admin = control_plane.admin
        control_plane.kubelets.ready = lambda pod: not pod["metadata"]["name"].endswith("-1")
        try:
            admin.create(workload("StatefulSet", "db", 3), namespace)
            path = path_of("apps/v1", "StatefulSet", namespace, "db")
            pod = path_of("v1", "Pod", namespace, "db-1")
            admin.wait(pod, lambda p: p.get("status", {}).get("phase") == "Running")
            assert not is_ready(admin.get(pod))
            admin.wait(path, lambda w: w["status"].get("readyReplicas") == 1)
        finally:
            control_plane.kubelets.ready = lambda pod: True
        control_plane.kubelets.refresh()
        admin.wait(path, lambda w: w["status"].get("readyReplicas") == 3)

    def test_api_server_can_go_away_and_come_back(self, control_plane, namespace):
        admin = control_plane.admin
        admin.create(workload("Deployment", "web", 1), namespace)
        path = path_of("apps/v1", "Deployment", namespace, "web")
        admin.wait(path, lambda w: w["status"].get("readyReplicas") == 1)

        control_plane.apiserver.pause()
        with pytest.raises(OSError):
            admin.request("GET", path, timeout=0.5)
        control_plane.apiserver.resume()
        assert admin.replicas(path) == 1

        control_plane.apiserver.kill()
        with pytest.raises(OSError):
            admin.request("GET", path, timeout=0.5)
        control_plane.start_apiserver()
        admin.patch(path + "/scale", {"spec": {"replicas": 2}})
        admin.wait(path, lambda w: w["status"].get("readyReplicas") == 2, timeout=60)

    def test_kubeconfig_with_client_certificate_works_in_kubectl(self, control_plane, namespace):
        certificate = control_plane.authority.issue(
            "viewer", "/CN=viewer", alternative_names=None, usage="clientAuth")
        kubeconfig = control_plane.write_kubeconfig("viewer", client_certificate=certificate)
        command = [control_plane.programs / "kubectl", f"--kubeconfig={kubeconfig}", "get", "pods", "-n", namespace]
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
        assert refused.returncode == 1 and 'User "viewer" cannot list' in refused.stderr
        assert "web" not in control_plane.kubectl("get", "deployments", "-n", namespace).stdout

    def test_errors_carry_the_status(self, control_plane):
        with pytest.raises(KubeError) as caught:
            control_plane.admin.get("/api/v1/namespaces/nowhere")
        assert caught.value.status == 404


def custom_resource_definition():
    schema = {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}},
    }}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "rigs.test.example"},
        "spec": {
            "group": "test.example", "scope": "Namespaced",
            "names": {"kind": "Rig", "plural": "rigs", "singular": "rig"},
            "versions": [{
                "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                    "labelSelectorPath": ".status.selector"}},
            }],
        },
    }


@pytest.mark.skipif(bool(kwok.missing()), reason=str(kwok.missing()))
class TestKwok:
    @pytest.fixture
    def player(self, control_plane, started, tmp_path):
        player = started(kwok.Kwok(control_plane, tmp_path / "kwok")).start()
        yield player
        assert player.stop() == 0

    def test_nodes_and_pods_live(self, control_plane, namespace, player):
        admin = control_plane.admin
        for name in ("kwok-a", "kwok-b"):
            player.make_node(name)
            admin.wait(f"/api/v1/nodes/{name}", is_ready)
        for name in ("one", "two", "three"):
            player.make_pod(namespace, name, "kwok-a")
            pod = admin.wait(path_of("v1", "Pod", namespace, name), is_ready)
            assert pod["status"]["phase"] == "Running" and pod["spec"]["nodeName"] == "kwok-a"
        admin.delete(path_of("v1", "Pod", namespace, "two"))
        admin.wait_gone(path_of("v1", "Pod", namespace, "two"))
        assert is_ready(admin.get(path_of("v1", "Pod", namespace, "one")))

    def test_what_is_not_its_own_is_left_alone(self, control_plane, namespace, player):
        admin = control_plane.admin
        player.make_pod(namespace, "web", "node-0")         # one of harness/kubelets.py
        player.make_node("kwok-a")
        admin.wait("/api/v1/nodes/kwok-a", is_ready)
        assert admin.get(path_of("v1", "Pod", namespace, "web"))["status"]["phase"] == "Pending"


class TestMonitoring:
    def test_promql_alert_reaches_the_webhook_and_resolves(
            self, exporter, webhook, make_prometheus, make_alertmanager):
        alertmanager = make_alertmanager(webhook=webhook.url)
        prometheus = make_prometheus(
            targets=[exporter.address], alertmanagers=[alertmanager.url],
            rules=[{"alert": "QueueLong", "expr": "queue_length > 10", "labels": {"severity": "page"},
                    "annotations": {"summary": "{{ $value }} waiting"}}])
        exporter.set("queue_length", 3, queue="mail")
        eventually(lambda: prometheus.query("queue_length"), what="the first sample")
        assert not webhook.notifications

        exporter.set("queue_length", 42, queue="mail")
        firing, *_ = eventually(lambda: webhook.alerts("QueueLong"), what="the alert at the webhook")
        assert firing["labels"]["queue"] == "mail" and firing["labels"]["severity"] == "page"
        assert firing["annotations"]["summary"] == "42 waiting"
        assert firing["endsAt"] == "0001-01-01T00:00:00Z"

        exporter.set("queue_length", 1, queue="mail")
        resolved, *_ = eventually(lambda: webhook.alerts("QueueLong", "resolved"), what="the resolve at the webhook")
        assert resolved["fingerprint"] == firing["fingerprint"] == fingerprint(firing["labels"])

    def test_credentials_are_sent(self, webhook, make_alertmanager, tmp_path):
        token = tmp_path / "token"
        token.write_text("sesame")
        alertmanager = make_alertmanager(
            webhook=webhook.url, http_config={"authorization": {"credentials_file": str(token)}})
        alertmanager.fire(alertname="A")
        eventually(lambda: webhook.alerts("A"), what="the alert at the webhook")
        assert webhook.received[0].headers["Authorization"] == "Bearer sesame"

    def test_meshed_alertmanagers_deliver_once(self, webhook, make_alertmanager_cluster):
        members = make_alertmanager_cluster(webhook=webhook.url)
        first, second = members
        first.fire(alertname="Twice")
        eventually(lambda: webhook.alerts("Twice"), what="the alert at the webhook")
        # A peer waits for peer-timeout (2 s) at most before it looks whether another has sent: a busy machine tells it later.
        heard = re.compile(r"^alertmanager_nflog_gossip_messages_propagated_total [1-9]", re.MULTILINE)
        eventually(lambda: heard.search(request("GET", second.url + "/metrics").text), what="the second knows that the first has sent")
        second.fire(alertname="Twice")
        eventually(lambda: "msg=flushing" in second.process.log_text(), what="the second looks whether to send")
        steadily(lambda: len(webhook.alerts("Twice")) == 1, 5)

    def test_unmeshed_alertmanagers_deliver_twice(self, webhook, make_alertmanager):
        for name in ("one", "two"):
            make_alertmanager(webhook=webhook.url, name=name).fire(alertname="Twice")
        eventually(lambda: len(webhook.alerts("Twice")) == 2, what="both deliver")

    def test_failed_delivery_comes_again(self, webhook, make_alertmanager):
        webhook.status = 503
        make_alertmanager(webhook=webhook.url).fire(alertname="A")
        eventually(lambda: len(webhook.received) >= 2, what="a second try")
        webhook.status = 200

    def test_silence_takes_the_alert_out(self, webhook, make_alertmanager):
        alertmanager = make_alertmanager(webhook=webhook.url)
        silence = alertmanager.silence(alertname="Quiet")
        alertmanager.fire(alertname="Quiet")
        alertmanager.fire(alertname="Loud")
        eventually(lambda: webhook.alerts("Loud"), what="the alert that is not silenced")
        assert not webhook.alerts("Quiet")
        alertmanager.unsilence(silence)
        eventually(lambda: webhook.alerts("Quiet"), what="the alert after its silence")


class TestNodeGroup:
    def put(self, group, size, observed, etag=None):
        return request("PUT", group.url, {"size": size, "observed": observed}, {"If-Match": etag} if etag else {})

    def test_put_is_conditional_on_the_tag_in_the_header(self, node_group):
        group = node_group(size=3)
        seen = request("GET", group.url)
        assert seen.json == {"size": 3}
        assert self.put(group, 5, 3, seen.headers["ETag"]).status == 200
        assert self.put(group, 7, 3, seen.headers["ETag"]).status == 412
        assert self.put(group, 7, 5).status == 412
        assert (group.size, group.applied) == (5, [5])

    def test_put_is_conditional_on_the_tag_in_the_body(self, node_group):
        group = node_group(size=3, etag="body", min=1, max=9)
        seen = request("GET", group.url).json
        assert seen == {"size": 3, "min": 1, "max": 9, "etag": "v1"}
        group.size = 4
        assert self.put(group, 5, 3, seen["etag"]).status == 412

    def test_put_is_conditional_on_the_size_without_tags(self, node_group):
        group = node_group(size=3, etag=None)
        assert self.put(group, 5, 4).status == 412
        assert self.put(group, 5, 3).status == 200
        assert [put.status for put in group.puts] == [412, 200]

    def test_faults(self, node_group):
        group = node_group(size=3, etag=None)
        group.inject(Fault(status=500), Fault(delay=2, apply=True), Fault(hang_up=True, apply=True))
        assert self.put(group, 4, 3).status == 500
        assert group.size == 3
        with pytest.raises(OSError):
            request("PUT", group.url, {"size": 4, "observed": 3}, timeout=0.2)
        eventually(lambda: group.size == 4)     # it may not have been taken up by then
        with pytest.raises(OSError):
            self.put(group, 5, 4)
        assert (group.size, group.applied) == (5, [4, 5])
        group.inject(Fault("GET", status=503, headers={"Retry-After": "1"}))
        refused = request("GET", group.url)
        assert refused.status == 503 and refused.headers["Retry-After"] == "1"
        assert request("GET", group.url).json == {"size": 5}

    def test_token(self, node_group):
        group = node_group(size=3, token="sesame")
        assert request("GET", group.url).status == 401
        assert request("GET", group.url, headers={"Authorization": "Bearer sesame"}).ok


class TestProcess:
    def test_dies_with_the_tests_even_when_they_are_killed(self, tmp_path):
        script = (
            "import sys, time; sys.path.insert(0, sys.argv[1])\n"
            "from harness.process import Process\n"
            "print(Process('sleep', ['sleep', '1000'], sys.argv[2]).start().pid, flush=True)\n"
            "time.sleep(1000)\n")
        for _ in range(10):     # killed while the child begins, or a little later
            with subprocess.Popen([sys.executable, "-c", script, os.path.dirname(__file__), tmp_path],
                                  stdout=subprocess.PIPE, text=True) as tests:
                pid = int(tests.stdout.readline())
                tests.send_signal(signal.SIGKILL)
            eventually(lambda: not _alive(pid), what="the child is gone")

    def test_end_is_noticed_while_waiting(self, tmp_path):
        start = time.monotonic()
        with pytest.raises(AssertionError, match="ended with status 3:\nno good"):
            Process("bad", ["sh", "-c", "echo no good; exit 3"], tmp_path).start().wait_ready(lambda: False)
        assert time.monotonic() - start < 20, "much less than it would wait"

    def test_pause_stop_and_start_again(self, tmp_path):
        process = Process("sleep", ["sleep", "1000"], tmp_path).start()
        process.pause()
        assert process.running
        assert process.stop() == -signal.SIGTERM
        assert not process.running
        assert process.start().running
        assert process.kill() == -signal.SIGKILL


class TestRoom:
    """tests/run runs in one: whatever ends it, nothing of it stays."""

    LEAVES = ('trap "exit 130" TERM; touch "$TMPDIR/file"; (trap "" TERM HUP INT; exec setsid sleep 1234.5) & '
              'mkdir "$TMPDIR/mounted"; mount -t tmpfs none "$TMPDIR/mounted" 2>/dev/null; echo "$TMPDIR"; ')

    @pytest.fixture
    def room(self, tmp_path):
        def start(script):
            popen = subprocess.Popen([ROOT / "tests/room", "bash", "-c", self.LEAVES + script], text=True,
                                     stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)})
            started.append(popen)
            return popen, popen.stdout.readline().strip()

        started = []
        yield start
        for popen in started:
            popen.kill()
            popen.wait()
            popen.stdout.close()

    @staticmethod
    def sleepers(folder):
        """Processes whose environment names the folder."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if f"TMPDIR={folder}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
                except OSError:
                    continue
        return found

    def check_gone(self, folder, tmp_path):
        eventually(lambda: not self.sleepers(folder), 30, what="its processes are gone")
        assert folder not in pathlib.Path("/proc/mounts").read_text()
        assert not list(tmp_path.glob("as-tests-*"))

    def test_an_end(self, room, tmp_path):
        popen, folder = room("exit 3")
        assert popen.wait(60) == 3
        self.check_gone(folder, tmp_path)

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal(self, room, tmp_path, number):
        popen, folder = room("sleep 1000 & wait")
        popen.send_signal(number)
        assert popen.wait(60) == 130
        self.check_gone(folder, tmp_path)

    def test_kill_9(self, room, tmp_path):
        popen, folder = room("sleep 1000")
        popen.kill()
        popen.wait()
        eventually(lambda: not self.sleepers(folder), 30, what="its processes are gone at once")
        assert pathlib.Path(folder).exists()
        other, its_folder = room("exit 0")
        assert other.wait(60) == 0
        self.check_gone(folder, tmp_path)


STAND_IN = """#!/usr/bin/python3
import http.server, signal, sys
address = next(a.split("=", 1)[1] for a in sys.argv if a.startswith("--web.listen-address="))
config = open(next(a.split("=", 1)[1] for a in sys.argv if a.startswith("--config.file="))).read()
log = next(line.split(": ", 1)[1] for line in config.splitlines() if "actions.jsonl" in line)
open(log, "a").write('{"kind": "start"}\\n{"kind": "action", "to": 6}\\n{"kind": "cut')
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"up 1\\n" if self.path == "/metrics" else b"ok")
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
if "--leak" in sys.argv:
    print("==1==ERROR: LeakSanitizer: detected memory leaks", file=sys.stderr)
http.server.HTTPServer(("127.0.0.1", int(address.split(":")[1])), Handler).serve_forever()
"""


class TestDaemon:
    """How the program under test is run, shown on a stand-in."""

    @pytest.fixture(autouse=True)
    def stand_in(self, tmp_path, monkeypatch):
        program = tmp_path / "stand-in"
        program.write_text(STAND_IN)
        program.chmod(0o755)
        monkeypatch.setenv("ALERTSCALER_BIN", str(program))

    def test_life_and_log(self, make_daemon):
        daemon = make_daemon({"targets": {}, "rules": []})
        assert daemon.metrics().value("up") == 1
        assert daemon.wait_record("action")["to"] == 6
        assert daemon.records("action", to=7) == []
        first = daemon.process.pid
        daemon.restart()
        assert daemon.process.pid != first and daemon.get("/-/ready").ok
        daemon.kill()
        assert daemon.process.popen.returncode == -signal.SIGKILL
        assert daemon.start().process.running

    def test_sanitizer_report_is_a_failure(self, tmp_path):
        daemon = Daemon(tmp_path / "leaky", {"rules": []}, flags=["--leak"]).start()
        with pytest.raises(AssertionError, match="LeakSanitizer"):
            daemon.stop()

    def test_rule_files(self, make_daemon):
        daemon = make_daemon({"a.yaml": {"rules": []}, "b.yaml": "rules: [\n"}, start=False)
        assert sorted(f.name for f in (daemon.directory / "rules").iterdir()) == ["a.yaml", "b.yaml"]
        daemon.write_rules({"rules": [{"name": "x"}]})
        assert [f.read_text() for f in (daemon.directory / "rules").iterdir()] == ["rules:\n- name: x\n"]


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class TestFormats:
    @pytest.mark.parametrize("labels,expected", [
        ({}, "cbf29ce484222325"),
        ({"alertname": "TestAlert"}, "dab43189276e5f48"),
        ({"alertname": "HighCPU", "deployment": "web", "namespace": "prod", "severity": "critical"},
         "7be9cc40aa9853c5"),
    ])
    def test_fingerprint(self, labels, expected):
        assert fingerprint(labels) == expected

    def test_notification_has_the_fields_of_a_real_one(self, webhook, make_alertmanager):
        make_alertmanager(webhook=webhook.url).fire(alertname="A", team="b")
        real = eventually(lambda: webhook.notifications, what="a notification")[0]
        ours = notification(alert({"alertname": "A", "team": "b"}))
        old = set() if monitoring.IS_TODAY else monitoring.NEW_IN_NOTIFICATIONS
        assert ours.keys() - old == real.keys()
        assert ours["alerts"][0].keys() == real["alerts"][0].keys()
        for key in ours.keys() - old - {"alerts", "externalURL"}:
            assert ours[key] == real[key], key

    def test_metrics_are_parsed(self):
        metrics = Metrics('# HELP a Help of a.\n# TYPE a counter\na{x="1",y="q\\"\\n"} 2\na{x="2",y=""} 3\nb 1e3\n')
        assert metrics.value("a", x="1") == 2 and metrics.sum("a") == 5 and metrics.value("b") == 1000
        assert metrics.types == {"a": "counter"} and metrics.helps == {"a": "Help of a."}
        assert metrics.select("a", y='q"\n') and metrics.sum("c") == 0

    @pytest.mark.parametrize("text", ["a{x=1} 2\n", "a 1\na 1\n", "a{x=\"1\"} \n", "a 1", "a{x=\"1\" 2\n"])
    def test_malformed_metrics_are_not(self, text):
        with pytest.raises((AssertionError, ValueError)):
            Metrics(text)

    def test_yaml_has_no_aliases(self):
        shared = {"min": 1}
        assert "&" not in dump_yaml({"a": shared, "b": shared})

    def test_environment_is_clean(self, monkeypatch):
        monkeypatch.setenv("KUBECONFIG", "/somewhere")
        assert "KUBECONFIG" not in environment(HOME="/x")


def test_readme_says_which_versions_are_tested():
    readme = " ".join((ROOT / "README.md").read_text().split())
    for peer, name in (("kubernetes", "Kubernetes"), ("kubernetes-oldest", "Kubernetes"), ("prometheus", "Prometheus"),
                       ("alertmanager", "Alertmanager")):
        recipe = (ROOT / "tests/integration/peers" / peer / "recipe").read_text()
        minor = re.search(r"^version=(\d+\.\d+)", recipe, re.MULTILINE)[1]
        assert re.search(rf"{name} [\d. and]*\b{re.escape(minor)}\b", readme), f"{name} {minor}"


def test_ports_are_free():
    given = [free_port() for _ in range(50)]
    assert len(set(given)) == 50
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", given[0]))
