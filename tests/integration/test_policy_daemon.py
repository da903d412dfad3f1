"""Scaling policies through the built binary, on the real API server: what comes, changes, goes, breaks, is paused or belongs to another."""
import copy
import json

import pytest

from harness.deploy import install
from harness.notification import alert, notification
from harness.wait import eventually, steadily
from test_listed_objects import deployment, sizes
from test_policies import definition  # noqa: F401

pytestmark = [pytest.mark.kubernetes, pytest.mark.since(25, "the API server checks rules of CustomResourceDefinitions")]
GROUP, USER = "alertscaler.io", "system:serviceaccount:alertscaler:alertscaler"
RIGHTS = [{"apiGroups": [GROUP], "resources": ["scalingpolicies"], "verbs": ["get", "list", "watch"]},
          {"apiGroups": [GROUP], "resources": ["scalingpolicies/status"], "verbs": ["patch"]}]
API = f"/apis/{GROUP}/v1alpha1"


def policy(namespace, name="web", target="web", rules=None, **metadata):
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": "ScalingPolicy", "metadata": {"namespace": namespace, "name": name, **metadata},
            "spec": {"target": {"kubernetes": {"kind": "Deployment", "name": target}, "min": 1, "max": 9, "cooldown": {"up": "1s", "down": "1s"}},
                     "rules": rules or [{"name": "busy", "match": ['alertname="Busy"'], "scaleUp": {"by": 1}, "maxSteps": 1,
                                         "onResolved": {"giveBack": {}}, "guard": {"none": True}}]}}


class Plane:
    """A namespace with a Deployment `web` of 3, and a daemon that watches policies there."""

    def __init__(self, control_plane, namespace, make_daemon, tmp_path):
        self.plane, self.namespace = control_plane, namespace
        token = tmp_path / "token"
        token.write_text(control_plane.account_token("alertscaler", "alertscaler"))
        self.kubeconfig = control_plane.write_kubeconfig("alertscaler", tokenFile=str(token))
        self.make_daemon = make_daemon
        for name in ("web", "other"):
            control_plane.admin.create(deployment(namespace, name, 3, None))

    def daemon(self, rules=None, start=True, **objects):
        config = {"clusters": {"default": {"kubeconfig": str(self.kubeconfig)}},
                  "objects": {"enabled": True, "namespaces": [self.namespace], **objects}}
        if not rules:
            config["allow_empty_rules"] = True
        daemon = self.make_daemon(rules or {"rules": []}, config, start=False)
        return daemon.start() if start else daemon

    def apply(self, item):
        done = self.plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(item), check=False)
        assert done.returncode == 0, done.stderr

    def delete(self, name="web"):
        self.plane.kubectl("delete", "scp", name, "-n", self.namespace)

    def sizes(self):
        return sizes(self.plane, self.namespace)

    def is_in_force(self, daemon, name="web"):
        return any(r["name"].startswith(f"{self.namespace}/{name}/") for r in daemon.get("/api/v1/rules").json["data"])

    def get(self, name="web"):
        return self.plane.admin.get(f"{API}/namespaces/{self.namespace}/scalingpolicies/{name}")

    def busy(self, status="firing", **labels):
        return notification(alert({"alertname": "Busy", "namespace": self.namespace, **labels}, status))


@pytest.fixture
def spaces(control_plane, namespace, make_daemon, tmp_path, definition):  # noqa: F811
    install(control_plane, "namespace.yaml", "serviceaccount.yaml", "role.yaml", "role-cluster-wide.yaml")
    api = "rbac.authorization.k8s.io/v1"
    control_plane.admin.create({"apiVersion": api, "kind": "ClusterRole", "metadata": {"name": f"policies-{namespace}"}, "rules": RIGHTS})
    control_plane.admin.create({
        "apiVersion": api, "kind": "ClusterRoleBinding", "metadata": {"name": f"policies-{namespace}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"policies-{namespace}"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "alertscaler", "name": "alertscaler"}]})
    control_plane.wait_allowed(USER, RIGHTS, namespace)
    yield Plane(control_plane, namespace, make_daemon, tmp_path)
    control_plane.ensure_running()


def test_a_policy_scales_for_the_alerts_of_its_namespace(spaces):
    daemon = spaces.daemon()
    spaces.apply(policy(spaces.namespace))
    eventually(lambda: spaces.is_in_force(daemon), what="the policy is in force")
    daemon.notify(notification(alert({"alertname": "Busy", "namespace": "elsewhere"})))
    daemon.notify(spaces.busy())
    eventually(lambda: spaces.sizes()["web"] == 4, what="the policy's alert scales")
    daemon.notify(spaces.busy("resolved"))
    eventually(lambda: spaces.sizes()["web"] == 3, what="the size is given back")
    record = daemon.wait_record("action", outcome="applied")
    assert record["rule"] == f"{spaces.namespace}/web/busy"
    assert [r["problem"] for n in daemon.notifications() for r in n["alerts"] if r["labels"]["namespace"] == "elsewhere"]
