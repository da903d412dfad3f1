"""The walk-through of deploy/kind on the control plane of the tests: 1 to 10 to 1 pods by http_requests_total, without an alert.

The same rules, sample application and manifests. What kind adds is not here: containers, and kube-prometheus' operator. So the sample
application runs on this machine, and Prometheus gives it the labels that the operator gives it. kind itself cannot run in a test.
"""
import shutil
import subprocess
import sys

import pytest
import yaml

from harness.daemon import ROOT, Daemon, find_binary
from harness.http import request
from harness.kube import path_of
from harness.ports import free_port
from harness.process import Process
from harness.prometheus import Prometheus, missing
from harness.wait import eventually

KIND = ROOT / "deploy/kind.d"
SAMPLE = path_of("apps/v1", "Deployment", "shop", "sample")
MONITOR_KIND = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
    "spec": {"group": "monitoring.coreos.com", "scope": "Namespaced",
             "names": {"kind": "ServiceMonitor", "listKind": "ServiceMonitorList", "plural": "servicemonitors", "singular": "servicemonitor"},
             "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                 "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}

pytestmark = pytest.mark.monitoring


class Scraped(Prometheus):
    """Scrapes the application as kube-prometheus' operator does: with its namespace and its Service as labels."""

    def _write_config(self):
        super()._write_config()
        file = self.directory / "prometheus.yml"
        settings = yaml.safe_load(file.read_text())
        settings["scrape_configs"][0]["static_configs"][0]["labels"] = {"namespace": "shop", "service": "sample"}
        file.write_text(yaml.safe_dump(settings))


@pytest.fixture
def plane(control_plane):
    """With what deploy/kind applies."""
    admin = control_plane.admin
    admin.request("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/alertscaler")    # of other tests
    if control_plane.minor < 21:
        pytest.skip("kubectl 1.20 knows no components of kustomize: docs/operations.md asks for 1.21")
    # The namespace first: an account, which pods need, takes a moment.
    admin.request("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    eventually(lambda: control_plane.has_account("shop"), timeout=150, what="pods can be created")
    done = control_plane.kubectl("apply", "-k", str(KIND), check=False)
    assert done.returncode == 0, done.stderr
    yield control_plane
    control_plane.ensure_running()
    for name in ("sample", "clients"):
        admin.request("DELETE", path_of("apps/v1", "Deployment", "shop", name))
    admin.request("DELETE", "/apis/apps/v1/namespaces/alertscaler/deployments/alertscaler")
    for name in ("alertscaler-config", "alertscaler-rules"):
        admin.request("DELETE", f"/api/v1/namespaces/alertscaler/configmaps/{name}")


def start_sample(started, directory, *arguments):
    return started(Process(f"sample{len(arguments)}", [sys.executable, KIND / "sample.py", *arguments], directory))


@pytest.mark.seconds(400)
def test_one_to_ten_to_one(plane, started, tmp_path):
    if missing():
        pytest.skip(missing())
    address = f"127.0.0.1:{free_port()}"
    sample = start_sample(started, tmp_path, "--address=127.0.0.1", "--port=" + address.split(":")[1])
    sample.start().wait_ready(lambda: request("GET", f"http://{address}/metrics").ok)
    prometheus = started(Scraped(tmp_path / "prometheus", [address])).start()
    settings = yaml.safe_load((KIND / "alertscaler.yaml").read_text())
    token = plane.account_token("alertscaler", "alertscaler", 7200)
    del settings["receiver"]        # its token is a file of the pod
    settings |= {"prometheus": {"url": prometheus.url}, "rule_files": ["rules/*.yaml"],
                 "clusters": {"default": {"kubeconfig": str(plane.write_kubeconfig("walk", token=token))}}}
    for key, file in (("state", "state.db"), ("action_log", "actions.jsonl")):
        settings[key]["path"] = str(tmp_path / "daemon" / file)
    daemon = started(Daemon(tmp_path / "daemon", {"rules.yaml": (KIND / "rules.yaml").read_text()}, settings)).start()

    def size():
        return plane.admin.replicas(SAMPLE)

    eventually(lambda: daemon.records("decision"), 60, what="the rule is evaluated")
    assert size() == 1
    clients = start_sample(started, tmp_path, f"--load=http://{address}", "--rate=60").start()
    eventually(lambda: size() == 10, 150, what="ten pods")
    eventually(lambda: plane.admin.get(SAMPLE)["status"].get("readyReplicas") == 10, 60, what="ten pods are ready")
    clients.kill()
    eventually(lambda: size() == 1, 180, what="one pod")

    sizes = [record["to"] for record in daemon.records("action", outcome="applied")]
    top = sizes.index(10)
    assert sizes[:top + 1] == sorted(sizes[:top + 1]) and sizes[top:] == sorted(sizes[top:], reverse=True), "up, then down"
    assert not daemon.notifications(), "no alert was needed"
    done = subprocess.run([find_binary(), "log", "verify", daemon.log_file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    daemon.stop()


def test_kind_applies_these_manifests_and_rules(plane):
    """The ConfigMaps have the files of the folder, byte for byte: kind runs the rules that the test above runs."""
    admin = plane.admin
    for name, file in (("alertscaler-config", "alertscaler.yaml"), ("alertscaler-rules", "rules.yaml")):
        assert admin.get(f"/api/v1/namespaces/alertscaler/configmaps/{name}")["data"] == {file: (KIND / file).read_text()}
    assert admin.get("/api/v1/namespaces/shop/configmaps/sample")["data"] == {"sample.py": (KIND / "sample.py").read_text()}
    assert admin.get(SAMPLE)["spec"]["replicas"] == 1
    # Prometheus' account finds the pods.
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
        "user": "system:serviceaccount:monitoring:prometheus-k8s",
        "resourceAttributes": {"namespace": "shop", "resource": "pods", "verb": "watch"}}}
    eventually(lambda: admin.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"], what="the right")


def test_the_servicemonitor_applies_and_selects_the_service(plane):
    plane.admin.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", MONITOR_KIND)
    file = KIND / "servicemonitor.yaml"
    eventually(lambda: plane.kubectl("apply", "-f", str(file), check=False).returncode == 0, 60, what="the kind is there")
    plane.admin.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/servicemonitors.monitoring.coreos.com")
    monitor = yaml.safe_load(file.read_text())
    service = plane.admin.get("/api/v1/namespaces/shop/services/sample")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] in [port["name"] for port in service["spec"]["ports"]]


def test_the_script_has_no_fault_that_shellcheck_finds():
    assert shutil.which("shellcheck"), "run tests/install"
    done = subprocess.run(["shellcheck", ROOT / "deploy/kind"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    script = (ROOT / "deploy/kind").read_text()
    assert "apply -k deploy/kind.d" in script and "apply -f deploy/kind.d/servicemonitor.yaml" in script


def test_check_accepts_the_configuration_and_the_rules(tmp_path):
    text = (KIND / "alertscaler.yaml").read_text()
    assert "/etc/alertscaler-rules/*.yaml" in text
    shutil.copy(KIND / "rules.yaml", tmp_path)
    (tmp_path / "alertscaler.yaml").write_text(text.replace("/etc/alertscaler-rules/*.yaml", "rules.yaml"))
    done = subprocess.run([find_binary(), "check", "--syntax-only", tmp_path / "alertscaler.yaml"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
