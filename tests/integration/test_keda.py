"""KEDA's ScaledObjects that aim at targets, with KEDA's own custom resource in the real API server and the shipped role: they are
named everywhere, paused ones as paused. Without the right to list them everything else goes on."""
import subprocess

import pytest

from harness import peers
from harness.kube import path_of
from harness.wait import eventually
from test_others import check_records, deployment, fire, hpa, make, others, run, status  # noqa: F401 (a fixture)

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/scaledobjects.keda.sh"

keda = peers.find("keda")
pytestmark = [pytest.mark.kubernetes, pytest.mark.since(25, "the API server checks rules of CustomResourceDefinitions"),
              pytest.mark.skipif(keda is None, reason=peers.how_to_build("keda"))]


@pytest.fixture
def plane(control_plane):
    control_plane.kubectl("apply", "--server-side", "-f", str(keda / "keda.sh_scaledobjects.yaml"))
    control_plane.admin.wait(CRD, lambda d: any(c["type"] == "Established" and c["status"] == "True"
                                                for c in d.get("status", {}).get("conditions", [])), what="ScaledObjects are served")
    yield control_plane
    control_plane.admin.delete(CRD)
    control_plane.admin.wait_gone(CRD)      # else the next test finds the kind, and then loses it
    control_plane.admin.wait_gone("/apis/keda.sh/v1alpha1/scaledobjects")


def create(plane, namespace, name, target, annotations=None, **spec):
    """As KEDA's documentation has it: a Deployment is the default of what it aims at."""
    thing = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": name, "annotations": annotations or {}},
             "spec": {"scaleTargetRef": {"name": target}, "triggers": [{"type": "cron", "metadata": {
                 "timezone": "UTC", "start": "0 6 * * *", "end": "0 20 * * *", "desiredReplicas": "4"}}], **spec}}
    return eventually(lambda: plane.admin.post(f"/apis/keda.sh/v1alpha1/namespaces/{namespace}/scaledobjects", thing),
                      what="a ScaledObject can be made")


def check_cluster(daemon):
    return subprocess.run([daemon.binary, "check", "--cluster", str(daemon.config_file)], text=True, capture_output=True)


def test_scaled_objects_are_named_everywhere(plane, namespace, make):
    for name in ("web", "jobs", "fixed", "free"):
        plane.admin.create(deployment(name), namespace)
    made = create(plane, namespace, "so", "web", minReplicaCount=3, maxReplicaCount=3)
    create(plane, namespace, "sleeps", "jobs", {"autoscaling.keda.sh/paused": "true"})
    create(plane, namespace, "pinned", "fixed", {"autoscaling.keda.sh/paused-replicas": "5"}, minReplicaCount=1)
    own = hpa("keda-hpa-so", "web", 3, 3)
    own["metadata"]["ownerReferences"] = [{"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "so",
                                           "uid": made["metadata"]["uid"]}]
    plane.admin.create(own, namespace)
    daemon = make("web", "jobs", "fixed", "free")
    found = eventually(lambda: {r["target_name"]: r["found"] for r in others(daemon, "found")} if len(others(daemon, "found")) == 3
                       else None, what="they are found")
    kind = "ScaledObject"
    assert found == {
        "web": [{"kind": kind, "name": "so", "min": 3, "max": 3, "paused": False}],
        "jobs": [{"kind": kind, "name": "sleeps", "min": 0, "max": 100, "paused": True}],
        "fixed": [{"kind": kind, "name": "pinned", "min": 5, "max": 5, "paused": True}],
    }
    assert {name: daemon.target(name)["others"] for name in (*found, "free")} == {**found, "free": []}
    for name in found:
        assert daemon.metrics().sum("alertscaler_target_others", target=name, kind=kind) == 1
    said = status(daemon)
    assert "web: the ScaledObject so sizes it too\n" in said
    assert "jobs: the ScaledObject sleeps sizes it too (paused)\n" in said
    assert "keda-hpa-so" not in said
    assert "The ScaledObject so sizes this target too.<" in daemon.get("/targets/web").text
    assert "The ScaledObject sleeps sizes this target too: it is paused now." in daemon.get("/targets/jobs").text
    log = daemon.process.log_text()
    assert log.count("somebody else sizes the target too") == 3 and "none of this kind" not in log
    assert "found ScaledObject pinned, 5 to 5 (paused)" in run(daemon, "log", "--kind=others", str(daemon.log_file))
    done = check_cluster(daemon)
    assert done.returncode == 0
    assert "target `web`: the ScaledObject so sizes it too\n" in done.stderr
    assert "target `fixed`: the ScaledObject pinned sizes it too (paused)\n" in done.stderr
    assert "target `free`" not in done.stderr
    check_records(daemon)

    # Left behind, as by `propagationPolicy: Orphan`. That waits for the garbage collector, which looks for new kinds now and then.
    plane.admin.patch(f"/apis/autoscaling/v1/namespaces/{namespace}/horizontalpodautoscalers/keda-hpa-so",
                      {"metadata": {"ownerReferences": None}})
    path = path_of("keda.sh/v1alpha1", kind, namespace, "so")
    plane.admin.delete(path)
    plane.admin.wait_gone(path)
    daemon.restart()
    left = eventually(lambda: daemon.target("web")["others"], what="it has looked again")
    assert [each["name"] for each in left] == ["keda-hpa-so"], "its owner is gone"
    daemon.stop()


def test_without_the_right_to_list_them_the_rest_goes_on(plane, namespace, make):
    admin = plane.admin
    admin.create(deployment("web"), namespace)
    create(plane, namespace, "so", "web")
    admin.create(hpa("web-hpa", "web", 1, 20), namespace)
    plane.create_account(namespace, "scaler")
    plane.grant(namespace, "scaler", [
        {"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get", "update"]},
        {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}])
    daemon = make("web", client=plane.account_token(namespace, "scaler"))
    found, = eventually(lambda: others(daemon, "found"), what="the HPA is found")
    assert [each["name"] for each in found["found"]] == ["web-hpa"]
    warning, = [line for line in daemon.process.log_text().splitlines() if "it is not known who else sizes the targets" in line]
    assert 'the right \\"scaledobjects.keda.sh: list\\" is missing' in warning and f"namespace={namespace}" in warning
    fire(daemon, "web")
    eventually(lambda: admin.replicas(path_of("apps/v1", "Deployment", namespace, "web")) == 4, what="it is scaled")
    done = check_cluster(daemon)
    assert done.returncode == 0 and "web-hpa sizes it too" in done.stderr
    assert "scaledobjects.keda.sh: list" in done.stderr
    daemon.stop()
