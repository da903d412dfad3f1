"""The folder of `alertscaler init --kubernetes` on a real API server: it applies as it is, and a rule runs with its rights alone."""
import base64
import subprocess
import threading
import time

import pytest
import yaml

from harness.daemon import Daemon, environment, find_binary
from harness.exporter import Exporter
from harness.kube import path_of
from harness.wait import eventually

pytestmark = pytest.mark.monitoring


def run(*arguments, cwd=None):
    return subprocess.run([find_binary(), *map(str, arguments)], capture_output=True, text=True, check=False, cwd=cwd, env=environment())


@pytest.fixture
def folder(namespace, tmp_path):
    """The folder, for a namespace of this test."""
    made = tmp_path / "cluster"
    assert run("init", made, "--kubernetes").returncode == 0
    for file in made.glob("*.yaml"):
        file.write_text(file.read_text().replace("namespace: shop", f"namespace: {namespace}").replace('namespace="shop"', f'namespace="{namespace}"'))
    return made


@pytest.fixture
def plane(control_plane, namespace):
    """A cluster without rights of other tests, and with the Deployment `web`."""
    admin = control_plane.admin
    roles = "/apis/rbac.authorization.k8s.io/v1"
    for name in ("alertscaler", "alertscaler-nodes", "alertscaler-token-review"):
        admin.request("DELETE", f"{roles}/clusterrolebindings/{name}")
    admin.create({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": namespace, "name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web", "resources": {"requests": {"cpu": "100m"}}}]}}}})
    yield control_plane
    control_plane.ensure_running()
    admin.request("DELETE", "/apis/apps/v1/namespaces/alertscaler/deployments/alertscaler")
    for name in ("alertscaler-config", "alertscaler-rules"):
        admin.request("DELETE", f"/api/v1/namespaces/alertscaler/configmaps/{name}")
    admin.request("DELETE", "/api/v1/namespaces/alertscaler/secrets/alertscaler-tokens")


class Cpu:
    """cAdvisor's counter of each pod of `web`: it grows by so many cores."""

    def __init__(self, plane, namespace, cores):
        self.plane, self.namespace, self.cores = plane, namespace, cores
        self.exporter, self.ended = Exporter(), threading.Event()
        self.thread = threading.Thread(target=self.count, daemon=True)
        self.thread.start()

    def count(self):
        while not self.ended.wait(0.5):
            pods = self.plane.admin.get(f"/api/v1/namespaces/{self.namespace}/pods?labelSelector=app%3Dweb")["items"]
            with self.exporter.change():
                self.exporter.clear()
                for pod in pods:
                    self.exporter.set("container_cpu_usage_seconds_total", self.cores * time.monotonic(), namespace=self.namespace,
                                      pod=pod["metadata"]["name"], container="web")

    def stop(self):
        self.ended.set()
        self.thread.join(10)
        self.exporter.stop()


def apply(plane, folder):
    done = plane.kubectl("apply", "-k", str(folder), check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_folder_applies_as_it_is_and_again_after_a_change(plane, folder):
    first = apply(plane, folder)
    assert "deployment.apps/alertscaler created" in first
    admin = plane.admin
    rules = "/api/v1/namespaces/alertscaler/configmaps/alertscaler-rules"
    assert admin.get(rules)["data"] == {"rules.yaml": (folder / "rules.yaml").read_text()}
    secret = admin.get("/api/v1/namespaces/alertscaler/secrets/alertscaler-tokens")
    assert base64.b64decode(secret["data"]["token"]).decode() == (folder / "token").read_text()

    # The pod sees one folder with the names that `alertscaler.yaml` uses.
    pod = admin.get("/apis/apps/v1/namespaces/alertscaler/deployments/alertscaler")["spec"]["template"]["spec"]
    config, = [volume for volume in pod["volumes"] if volume["name"] == "config"]
    sources = [next(iter(source.values()))["name"] for source in config["projected"]["sources"]]
    assert sources == ["alertscaler-config", "alertscaler-rules", "alertscaler-tokens"]
    assert pod["containers"][0]["image"].startswith("alertscaler:")

    (folder / "rules.yaml").write_text((folder / "rules.yaml").read_text().replace("max: 10", "max: 12"))
    second = apply(plane, folder)
    assert "configmap/alertscaler-rules configured" in second and "deployment.apps/alertscaler unchanged" in second


def get_web(namespace):
    return path_of("apps/v1", "Deployment", namespace, "web")


def test_the_rights_are_for_one_deployment(plane, namespace, folder):
    web = get_web(namespace)
    apply(plane, folder)
    client = plane.client(plane.account_token("alertscaler", "alertscaler"))
    eventually(lambda: client.request("GET", f"{web}/scale").ok, what="the right to read the size")
    scale = client.get(f"{web}/scale")
    assert client.request("PUT", f"{web}/scale", scale).ok
    for method, path in (("GET", f"{web}x/scale"), ("PUT", web), ("DELETE", web), ("GET", f"/api/v1/namespaces/{namespace}/secrets"),
                         ("GET", "/api/v1/namespaces/alertscaler/secrets"), ("GET", "/api/v1/pods"), ("GET", "/api/v1/nodes"),
                         ("GET", "/apis/apps/v1/namespaces/default/deployments/web/scale")):
        assert client.request(method, path, scale if method == "PUT" else None).status == 403, (method, path)


@pytest.mark.seconds(240)
def test_its_rule_scales_with_its_rights(plane, namespace, folder, make_prometheus, started, tmp_path):
    apply(plane, folder)
    cpu = started(Cpu(plane, namespace, cores=3.0))
    prometheus = make_prometheus(targets=[cpu.exporter.address])
    settings = yaml.safe_load((folder / "alertscaler.yaml").read_text())
    assert settings.pop("dry_run") is True, "a dry run until the user knows the sizes"
    token = plane.account_token("alertscaler", "alertscaler")
    settings |= {"prometheus": {"url": prometheus.url}, "kill_switch": {"file": str(tmp_path / "stop")}, "rule_files": ["rules/*.yaml"],
                 "clusters": {"default": {"kubeconfig": str(plane.write_kubeconfig("init", token=token))}}}
    settings["receiver"]["tokens"][0]["file"] = str(folder / "token")
    daemon = started(Daemon(tmp_path / "daemon", {"rules.yaml": (folder / "rules.yaml").read_text()}, settings))
    daemon.headers = {"Authorization": "Bearer " + (folder / "token").read_text().strip()}
    daemon.start()
    # 3 cores of each pod, over requests of 0.1: to the maximum, in steps of HPA's behavior.
    eventually(lambda: plane.admin.replicas(get_web(namespace)) == 10, 150, what="ten pods")
    assert daemon.records("action", outcome="applied")[0]["from"] == 2
    lines = [line for line in daemon.process.log_text().splitlines() if "level=error" in line]
    assert lines == []
    daemon.stop()
