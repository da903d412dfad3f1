"""From an HPA to rules that run, with everything real: the HPA as the API server gives it, `alertscaler convert`, Prometheus, the daemon
with the shipped rights, Kubernetes. `-s` prints how long it takes.
"""
import json
import subprocess
import time

import pytest
import yaml

from harness.daemon import environment, find_binary
from harness.kube import path_of
from harness.wait import eventually
from test_targets import install, make_workload

HPA = {
    "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
    "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "minReplicas": 2, "maxReplicas": 10, "behavior": {},
             "metrics": [{"type": "Pods", "pods": {"metric": {"name": "requests_now"}, "target": {"type": "AverageValue", "averageValue": "100"}}}]},
}
ADAPTER = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "adapter-config"}, "data": {"config.yaml": yaml.safe_dump({"rules": [
    {"seriesQuery": 'http_requests{namespace!="",pod!=""}', "name": {"matches": "^http_(.*)$", "as": "${1}_now"},
     "resources": {"overrides": {"namespace": {"resource": "namespace"}, "pod": {"resource": "pod"}}},
     "metricsQuery": "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)"}]})}}


def convert(folder, *files):
    done = subprocess.run([find_binary(), "convert", *files, f"--out={folder}"], capture_output=True, text=True, check=False, env=environment())
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


@pytest.mark.seconds(200)
@pytest.mark.since(23, "the API server has autoscaling/v2")
def test_an_hpa_becomes_rules_that_run(control_plane, namespace, make_prometheus, make_daemon, exporter, tmp_path):
    admin = control_plane.admin
    install(control_plane, "namespace.yaml", "serviceaccount.yaml", "role.yaml", "role-cluster-wide.yaml")
    deployment = path_of("apps/v1", "Deployment", namespace, "web")
    admin.create(make_workload("Deployment", namespace, replicas=2))
    admin.create({**HPA, "metadata": {"name": "web", "namespace": namespace}})
    hpas = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
    admin.create({**ADAPTER, "metadata": {"name": "adapter-config", "namespace": namespace}})

    # what `kubectl get -o json` and `-o yaml` print
    (tmp_path / "hpa.json").write_text(json.dumps(admin.request("GET", hpas).json), encoding="utf-8")
    (tmp_path / "adapter.yaml").write_text(yaml.safe_dump(admin.get(f"/api/v1/namespaces/{namespace}/configmaps/adapter-config")), encoding="utf-8")
    started = time.monotonic()
    convert(tmp_path / "out", tmp_path / "hpa.json", tmp_path / "adapter.yaml")
    converted = time.monotonic() - started
    admin.delete(f"{hpas}/web")
    rules = (tmp_path / f"out/rules/{namespace}.web.yaml").read_text(encoding="utf-8")

    def load(value):
        pods = admin.request("GET", f"/api/v1/namespaces/{namespace}/pods").json["items"]
        with exporter.change():
            exporter.clear()
            for pod in pods:
                exporter.set("http_requests", value, namespace=namespace, pod=pod["metadata"]["name"])
        return len(pods)

    eventually(lambda: load(250) == 2, what="two pods")
    prometheus = make_prometheus(targets=[exporter.address])
    eventually(lambda: len(prometheus.query("http_requests")) == 2)
    kubeconfig = control_plane.write_kubeconfig("convert", token=control_plane.account_token("alertscaler", "alertscaler"))
    daemon = make_daemon({"web.yaml": rules}, {"clusters": {"default": {"kubeconfig": str(kubeconfig)}}, "prometheus": {"url": prometheus.url}})
    eventually(lambda: admin.replicas(deployment) == 5, 120, 0.2, "250 requests for each of two pods, at 100: five")
    print(f"\nHPA to rules: {converted:.1f} s; to the first size: {time.monotonic() - started:.1f} s, Prometheus started in between")
    assert daemon.wait_record("action", outcome="applied")["to"] == 5


@pytest.mark.since(23, "the API server has autoscaling/v2")
def test_every_version_of_the_api_converts_to_the_same(control_plane, namespace, tmp_path):
    """As the API server itself converts an HPA between its versions: v2, and v1 where it says all."""
    admin = control_plane.admin
    spec = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 10}
    admin.create({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web", "namespace": namespace},
                  "spec": {**spec, "targetCPUUtilizationPercentage": 70}})
    rules = []
    for version in ("v1", "v2"):
        item = admin.get(f"/apis/autoscaling/{version}/namespaces/{namespace}/horizontalpodautoscalers/web")
        (tmp_path / f"{version}.yaml").write_text(yaml.safe_dump(item), encoding="utf-8")
        convert(tmp_path / version, tmp_path / f"{version}.yaml")
        rules.append(yaml.safe_load((tmp_path / f"{version}/rules/{namespace}.web.yaml").read_text(encoding="utf-8")))
    assert rules[0] == rules[1]
