"""The first policy of a new user: the chart's own objects in a real API server, its configuration and account in a real daemon, and kubectl."""
import json

import pytest
import yaml

from harness.notification import alert, notification
from harness.ports import free_port
from harness.wait import eventually
from test_chart import install  # noqa: F401
from test_listed_objects import deployment, sizes
from test_policies import definition  # noqa: F401

pytestmark = [pytest.mark.kubernetes, pytest.mark.since(25, "the API server checks rules of CustomResourceDefinitions")]
NAME = "scaler-alertscaler"
POLICY = """\
apiVersion: alertscaler.io/v1alpha1
kind: ScalingPolicy
metadata: {name: checkout}
spec:
  target:
    kubernetes: {kind: Deployment, name: checkout}
    min: 2
    max: 20
  rules:
    - name: slow
      match: ['alertname="CheckoutLatencyHigh"']
      scaleUp: {by: 50%}
      onResolved: {giveBack: {}}
      guard: {none: true}
"""


@pytest.fixture
def shop(control_plane, namespace, definition, install):    # noqa: F811
    """kubectl(...) in the namespace with the Deployment `checkout` of 4; what it prints is in the output of the test."""
    port = free_port()
    print("$ helm install scaler", install(**{
        "objects.enabled": True, "objects.namespaces": [namespace], "objects.admission.address": f":{port}", "rbac.namespaces": [namespace],
        "config.dry_run": False, "crds.install": False, "replicaCount": 2}).stdout, sep="\n")
    control_plane.admin.create(deployment(namespace, "checkout", 4, None))

    def kubectl(*arguments, **more):
        done = control_plane.kubectl(*arguments, "-n", namespace, check=False, **more)
        print(f"$ kubectl {' '.join(arguments)}\n{done.stdout}{done.stderr}")
        return done
    kubectl.port = port
    yield kubectl
    control_plane.kubectl("delete", "validatingwebhookconfiguration", "alertscaler", "--ignore-not-found")


def start(control_plane, namespace, make_daemon, directory):
    """The container of the chart, outside of the cluster: its configuration with files of the test, its account and no other rights."""
    data = control_plane.admin.get(f"/api/v1/namespaces/{namespace}/configmaps/{NAME}-config")["data"]
    config = yaml.safe_load(data["alertscaler.yaml"])
    kubeconfig = control_plane.write_kubeconfig(NAME, token=control_plane.account_token(namespace, NAME))
    view = yaml.safe_load(kubeconfig.read_text())
    view["contexts"][0]["context"]["namespace"] = namespace
    kubeconfig.write_text(yaml.safe_dump(view))
    for key in ("rule_files", "receiver", "action_log"):    # paths of the container
        del config[key]
    config["state"]["namespace"] = namespace        # a pod knows its own
    return make_daemon({"rules": []}, {**config, "clusters": {"default": {"kubeconfig": str(kubeconfig)}}})


def test_the_first_policy(control_plane, namespace, make_daemon, tmp_path, shop):
    daemon = start(control_plane, namespace, make_daemon, tmp_path)
    control_plane.kubectl("patch", "validatingwebhookconfiguration", "alertscaler", "--type=json", "-p", json.dumps([
        {"op": "replace", "path": "/webhooks/0/clientConfig", "value": {"url": f"https://127.0.0.1:{shop.port}/admission"}}]))
    wrong = POLICY.replace('alertname="', 'alertname=~"(')
    eventually(lambda: control_plane.kubectl("apply", "--dry-run=server", "-n", namespace, "-f", "-", stdin=wrong, check=False).returncode != 0,
               what="the API server trusts the listener", timeout=90)
    assert "spec.rules[0].match[0]: " in shop("apply", "-f", "-", stdin=wrong).stderr
    assert shop("apply", "-f", "-", stdin=POLICY).returncode == 0
    path = f"/apis/alertscaler.io/v1alpha1/namespaces/{namespace}/scalingpolicies/checkout"

    def status():
        return control_plane.admin.get(path).get("status", {})
    eventually(lambda: {"True"} == {one["status"] for one in status().get("conditions", []) if one["type"] == "Ready"}, what="READY", timeout=90)
    daemon.notify(notification(alert({"alertname": "CheckoutLatencyHigh", "namespace": namespace})))
    eventually(lambda: sizes(control_plane, namespace)["checkout"] == 6)
    eventually(lambda: status().get("size") == 6 and status()["lastDecision"]["rule"] == "slow", what="the status has the decision", timeout=120)
    assert shop("get", "scp").stdout.split()[-9:-1] == ["checkout", "Deployment/checkout", "6", "6", "2", "20", status()["lastDecision"]["reason"], "True"]
    told = shop("describe", "scp", "checkout").stdout
    assert status()["lastDecision"]["message"] in told and f"New size: 6; reason: rule {namespace}/checkout/slow" in told
    daemon.stop()       # before its account goes
