"""Others at the same size, on the real API server with the shipped role: who aims at a target is found, and a target whose sizes
others set back is left alone, with who it was in the records."""
import json
import pathlib
import subprocess
import threading

import jsonschema
import pytest

from harness.deploy import install
from harness.kube import KubeError, path_of
from harness.notification import alert, notification
from harness.recorder import Recorder
from harness.wait import eventually, steadily

pytestmark = pytest.mark.kubernetes

FLAGS = ["--web.enable-admin-api"]
SCHEMA = json.loads((pathlib.Path(__file__).parents[2] / "docs" / "action-log.schema.json").read_text())
HPA_FLAGS = ["--horizontal-pod-autoscaler-sync-period=1s"]


def deployment(name, replicas=2):
    labels = {"app": name}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app"}]}}}}


def hpa(name, target, least=1, most=2):
    return {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name}, "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
        "minReplicas": least, "maxReplicas": most}}


class Opponent:
    """A second controller: whenever the size is not its own, it sets it back. The size is `field` of the spec."""

    def __init__(self, plane, path, size, manager="argocd-controller", field="replicas"):
        self.plane, self.path, self.size, self.manager, self.field = plane, path, size, manager, field
        self.count, self._ended = 0, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._ended.wait(0.05):
            try:
                if self.plane.admin.get(self.path)["spec"][self.field] != self.size:
                    self.plane.admin.patch(f"{self.path}?fieldManager={self.manager}", {"spec": {self.field: self.size}})
                    self.count += 1
            except KubeError:       # somebody else was faster
                continue

    def stop(self):
        self._ended.set()
        self._thread.join()


@pytest.fixture
def make(control_plane, namespace, make_daemon, tmp_path):
    install(control_plane, "namespace.yaml", "serviceaccount.yaml", "role.yaml", "role-cluster-wide.yaml")

    def start(*names, client=None, config=None, **target):
        token = tmp_path / "token"
        token.write_text(client or control_plane.account_token("alertscaler", "alertscaler"))
        kubeconfig = control_plane.write_kubeconfig("others", tokenFile=str(token))
        targets = {name: {"kubernetes": {"kind": "Deployment", "namespace": namespace, "name": name}, "max": 20,
                          "cooldown": {"up": "1s", "down": "1s"}, **target} for name in names}
        rules = [{"name": f"{name}-busy", "match": ['alertname="Busy"', f'app="{name}"'], "target": name,
                  "scale_up": {"by": 2}, "every": "1s"} for name in names]
        admin = tmp_path / "admin.token"
        admin.write_text("secret-of-ada\n")
        daemon = make_daemon({"targets": targets, "rules": rules}, {
            "clusters": {"default": {"kubeconfig": str(kubeconfig)}}, **(config or {}),
            "receiver": {"tokens": [{"name": "ada", "file": str(admin), "permissions": ["notify", "read", "admin"]}]},
        }, flags=FLAGS, start=False)
        daemon.headers = {"Authorization": "Bearer secret-of-ada"}
        daemon.token_file = admin
        return daemon.start()

    return start


def fire(daemon, name, *status):
    return daemon.notify(notification(alert({"alertname": "Busy", "app": name}, *status)))


def others(daemon, event):
    return [record for record in daemon.records("others") if record["event"] == event]


def wait_contended(daemon, name):
    """The record. An opponent may be slow: so with a `max` that a second step would exceed, and the daemon is made to look again."""
    return eventually(lambda: fire(daemon, name) and others(daemon, "contended"), interval=0.5, what="it is left alone")[0]


def check_records(daemon):
    for record in daemon.records():
        jsonschema.validate(record, SCHEMA)


def run(daemon, *words):
    return subprocess.run([daemon.binary, *words], text=True, capture_output=True, check=True).stdout


def status(daemon):
    return run(daemon, "status", f"--url={daemon.url}", f"--token-file={daemon.token_file}")


def test_a_size_that_is_set_back_again_and_again(control_plane, namespace, make, started):
    people = started(Recorder())
    control_plane.admin.create(deployment("web"), namespace)
    path = path_of("apps/v1", "Deployment", namespace, "web")
    opponent = started(Opponent(control_plane, path, 2))
    daemon = make("web", max=4, config={"notify": [{"name": "people", "webhook": {"url": people.url}, "on": ["contended"]}]})
    record = wait_contended(daemon, "web")
    assert record["target_name"] == "web" and record["until"]
    assert [(each["from"], each["to"], each["found"], each["by"]) for each in record["set_backs"]] == \
        [(2, 4, 2, "argocd-controller")] * 3
    decision = eventually(lambda: [d for d in daemon.records("decision") if d["output"]["reason"] == "contended"])[0]
    assert decision["output"]["would"] == 4 and decision["contended"]["set_backs"] == record["set_backs"]
    applied = len([a for a in daemon.records("action") if a["outcome"] == "applied"])
    assert applied == 3
    steadily(lambda: len([a for a in daemon.records("action") if a["outcome"] == "applied"]) == 3, seconds=3)
    target = daemon.target("web")
    assert target["contended"]["set_backs"][-1]["by"] == "argocd-controller" and target["others"] == []
    assert daemon.metrics().value("alertscaler_target_contended", target="web") == 1
    assert "argocd-controller has set its size back to 2" in daemon.get("/targets/web").text
    assert "contended by argocd-controller" in status(daemon)

    daemon.kill()
    daemon.start()
    assert daemon.target("web")["contended"]["until"] == target["contended"]["until"], "it survives"
    opponent.stop()
    answer = daemon.post("/api/v1/targets/web/resume", {"reason": "the manifest has no replicas any more"})
    assert answer.status == 200, answer.text
    eventually(lambda: control_plane.admin.replicas(path) > 2, what="it is scaled again")
    over, = eventually(lambda: others(daemon, "over"), what="the record of its end")
    assert over["message"] == "resumed by an operator"
    assert daemon.metrics().value("alertscaler_target_contended", target="web") == 0
    assert "argocd-controller set 4 back to 2" in run(daemon, "explain", "--target=web", f"--at={decision['time']}", str(daemon.log_file))
    assert " 0 differ" in run(daemon, "replay", str(daemon.log_file))
    assert "4 set back to 2 by argocd-controller" in run(daemon, "log", "--kind=others", str(daemon.log_file))
    eventually(lambda: [e["data"]["phase"] for e in people.events("contended")] == ["begin", "end"], what="people are told")
    assert people.events("contended")[0]["data"]["message"] == "argocd-controller"
    check_records(daemon)
    daemon.stop()


@pytest.mark.since(23, "the API server has autoscaling/v2")
def test_a_field_that_is_set_back(control_plane, namespace, make, started):
    """Its manager is read from the object, with the rights that the target needs anyway."""
    control_plane.admin.create(hpa("web", "web", least=2, most=30), namespace)
    control_plane.create_account(namespace, "scaler")
    control_plane.grant(namespace, "scaler", [
        {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "verbs": ["get", "patch"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}])
    path = path_of("autoscaling/v2", "HorizontalPodAutoscaler", namespace, "web")
    started(Opponent(control_plane, path, 2, "helm", "minReplicas"))
    daemon = make("web", client=control_plane.account_token(namespace, "scaler"), kubernetes={
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "namespace": namespace, "name": "web",
        "field": "spec.minReplicas"}, max=4)
    record = wait_contended(daemon, "web")
    assert [(each["from"], each["to"], each["found"], each["by"]) for each in record["set_backs"]] == [(2, 4, 2, "helm")] * 3
    assert "contended by helm" in status(daemon)
    assert "helm has set its size back to 2" in daemon.get("/").text
    check_records(daemon)
    daemon.stop()


@pytest.mark.since(22, "the API server notes who set a scale")
def test_the_real_hpa_controller(control_plane, namespace, make, started):
    """An HPA whose maximum is below what the alert wants: it brings the size back each time, and is named before and after."""
    control_plane.admin.create(deployment("web"), namespace)
    control_plane.admin.create(deployment("free"), namespace)
    control_plane.admin.create(hpa("web-hpa", "web"), namespace)
    daemon = make("web", "free")
    found = eventually(lambda: others(daemon, "found"), what="it is found")[0]
    assert found["target_name"] == "web"
    assert found["found"] == [{"kind": "HorizontalPodAutoscaler", "name": "web-hpa", "min": 1, "max": 2, "paused": False}]
    assert daemon.metrics().sum("alertscaler_target_others", target="web", kind="HorizontalPodAutoscaler") == 1
    assert "web: the HorizontalPodAutoscaler web-hpa sizes it too" in status(daemon)
    assert daemon.target("free")["others"] == []
    assert daemon.process.log_text().count("the cluster has none of this kind") == 1, "no KEDA: said once"

    controller = started(control_plane.prepare_controller_manager("hpa-of-others", ["horizontalpodautoscaling"], *HPA_FLAGS))
    controller.start()
    fire(daemon, "web")
    record = eventually(lambda: others(daemon, "contended"), 90, what="the HPA sets it back")[0]
    assert {each["by"] for each in record["set_backs"]} == {"kube-controller-manager"}
    assert {each["found"] for each in record["set_backs"]} == {2}
    check_records(daemon)
    daemon.stop()


def test_without_the_rights_nothing_is_harmed(control_plane, namespace, make, started):
    admin = control_plane.admin
    admin.create(deployment("web"), namespace)
    admin.create(hpa("web-hpa", "web"), namespace)
    control_plane.create_account(namespace, "scaler")
    control_plane.grant(namespace, "scaler", [
        {"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get", "update"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}])
    daemon = make("web", client=control_plane.account_token(namespace, "scaler"))
    started(Opponent(control_plane, path_of("apps/v1", "Deployment", namespace, "web"), 2))
    fire(daemon, "web")
    record = eventually(lambda: others(daemon, "contended"), 60, what="it is left alone")[0]
    assert [each["by"] for each in record["set_backs"]] == [None] * 3
    assert others(daemon, "found") == []
    log = daemon.process.log_text()
    assert log.count("it is not known who else sizes the targets") == 2, "each kind once"
    assert "horizontalpodautoscalers.autoscaling: list" in log and "scaledobjects.keda.sh: list" in log
    check_records(daemon)
    daemon.stop()


def test_check_asks_the_cluster(control_plane, namespace, make):
    control_plane.admin.create(deployment("web"), namespace)
    control_plane.admin.create(hpa("web-hpa", "web"), namespace)
    daemon = make("web", "missing")
    done = subprocess.run([daemon.binary, "check", "--cluster", str(daemon.config_file)], text=True, capture_output=True)
    assert done.returncode == 0, done
    assert "target `web`: the HorizontalPodAutoscaler web-hpa sizes it too" in done.stderr
    assert "target `missing` cannot be read: target_not_found" in done.stderr
    strict = subprocess.run([daemon.binary, "check", "--cluster", "--lint-fatal", str(daemon.config_file)], text=True, capture_output=True)
    assert strict.returncode == 3
    assert "sizes it too" not in subprocess.run([daemon.binary, "check", str(daemon.config_file)], text=True, capture_output=True).stderr
    daemon.stop()
