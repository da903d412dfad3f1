"""Karpenter's NodePool with static `replicas`: a kind without a namespace, with Karpenter's own custom resource in the real API
server, and the rights of the page."""
import pathlib
import re

import pytest
import yaml

from harness import peers
from harness.deploy import install
from harness.notification import alert, notification
from harness.wait import eventually

PAGE = pathlib.Path(__file__).parents[2] / "docs/targets.md"
ACCOUNT = "system:serviceaccount:alertscaler:alertscaler"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodepools.karpenter.sh"

karpenter = peers.find("karpenter")
pytestmark = [pytest.mark.kubernetes, pytest.mark.since(25, "the API server checks rules of CustomResourceDefinitions"),
              pytest.mark.skipif(karpenter is None, reason=peers.how_to_build("karpenter"))]


def documented(kind):
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    items = [item for block in blocks if "karpenter.sh" in block for item in yaml.safe_load_all(block)]
    return next(item for item in items if item.get("kind", "rules") == kind)


def node_pool(name, replicas):
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": {
        "replicas": replicas, "template": {"spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]}}}}


@pytest.fixture
def plane(control_plane):
    install(control_plane, "namespace.yaml", "serviceaccount.yaml")
    control_plane.kubectl("apply", "--server-side", "-f", str(karpenter / "karpenter.sh_nodepools.yaml"))
    control_plane.admin.wait(CRD, lambda d: any(c["type"] == "Established" and c["status"] == "True"
                                                for c in d.get("status", {}).get("conditions", [])), what="NodePools are served")
    role = documented("ClusterRole")
    control_plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all([role, documented("ClusterRoleBinding")]))
    control_plane.wait_allowed(ACCOUNT, role["rules"])
    yield control_plane
    control_plane.admin.delete(CRD)
    control_plane.admin.wait_gone(CRD)


def test_a_static_node_pool_is_a_target_like_any_other(plane, make_daemon, tmp_path):
    pools = "/apis/karpenter.sh/v1/nodepools"
    eventually(lambda: plane.admin.post(pools, node_pool("static", 2)), what="a NodePool can be made")
    token = tmp_path / "token"
    token.write_text(plane.account_token("alertscaler", "alertscaler"))
    kubeconfig = plane.write_kubeconfig("karpenter", tokenFile=str(token))
    daemon = make_daemon(documented("rules"), {"clusters": {"default": {"kubeconfig": str(kubeconfig)}}})
    target = eventually(lambda: daemon.target("static-nodes"))
    assert target["id"] == "kubernetes/default/karpenter.sh/v1/NodePool//static"
    daemon.notify(notification(alert({"alertname": "BatchPodsPending"})))
    action = daemon.wait_record("action", outcome="applied")
    assert (action["from"], action["to"]) == (2, 4)
    assert plane.admin.get(f"{pools}/static")["spec"]["replicas"] == 4
    assert action["path"] == "/apis/karpenter.sh/v1/nodepools/static/scale"
    daemon.restart()
    assert daemon.target("static-nodes")["locked_until"]["up"], "it is the same target after a restart"
    daemon.stop()
