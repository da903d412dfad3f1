"""One object is one target with one lock, however it is spelled; another object under its name is another one."""
import pytest

from harness.deploy import install
from harness.kube import path_of
from harness.notification import alert, notification
from harness.wait import eventually, steadily
from test_targets import WORKERS, make_workload

QUIET = 1.0
RULES = [{"name": "busy", "match": ['alertname="Busy"'], "target": "web", "scale_up": {"by": 2}}]


def outcomes(answer):
    return [one["outcome"] for one in answer["alerts"]]


def busy(pod, **labels):
    return notification(alert({"alertname": "Busy", "pod": pod, **labels}))


@pytest.fixture
def make(control_plane, make_daemon):
    """make(namespace, ...): a daemon for a locked target `web` of a real API server, with the shipped rights."""
    install(control_plane, "namespace.yaml", "serviceaccount.yaml", "role.yaml", "role-cluster-wide.yaml", "role-custom-resource.yaml")
    kubeconfig = control_plane.write_kubeconfig("objects", token=control_plane.account_token("alertscaler", "alertscaler"))

    def start(namespace, kind="Deployment", **address):
        return make_daemon(rules_of(namespace, kind, **address), {"clusters": {"default": {"kubeconfig": str(kubeconfig)}}})
    return start


def rules_of(namespace, kind="Deployment", **address):
    kubernetes = {"kind": kind, "namespace": namespace, "name": "web", **address}
    return {"targets": {"web": {"kubernetes": kubernetes, "max": 20, "cooldown": {"up": "1h", "down": "1h"}}}, "rules": RULES}


@pytest.mark.parametrize("restarted", [False, True], ids=["running", "over-a-restart"])
def test_another_deployment_under_the_same_name_has_no_lock_of_the_former(control_plane, namespace, make, restarted):
    admin, path = control_plane.admin, path_of("apps/v1", "Deployment", namespace, "web")
    former = admin.create(make_workload("Deployment", namespace, replicas=3))["metadata"]["uid"]
    daemon = make(namespace)
    daemon.notify(busy("a"))
    eventually(lambda: admin.replicas(path) == 5)
    daemon.wait_record("action", outcome="applied", to=5)
    assert outcomes(daemon.notify(busy("b"))) == ["queued"]
    eventually(lambda: [r for r in daemon.records("decision") if r["output"]["reason"] == "cooldown"])

    if restarted:
        daemon.stop()
    admin.delete(path)
    admin.wait_gone(path)
    admin.create(make_workload("Deployment", namespace, replicas=2))
    if restarted:
        daemon.start()      # it looks at what it knows
    else:
        daemon.notify(busy("c"))
    eventually(lambda: admin.replicas(path) == 4, what="the new one is scaled at once")
    daemon.wait_record("action", outcome="applied", to=4)
    first, = [r for r in daemon.records("decision") if "former_uid" in r]
    assert first["former_uid"] == former and first["output"]["desired"] == 4
    daemon.notify(busy("d"))
    steadily(lambda: admin.replicas(path) == 4, QUIET)      # under a lock of its own


def test_two_versions_of_an_api_have_one_lock(control_plane, namespace, make):
    admin = control_plane.admin
    definition = admin.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/workers.example.com") \
        if admin.request("GET", "/apis/example.com/v1/workers").ok else admin.create(WORKERS)
    if len(definition["spec"]["versions"]) == 1:
        versions = [definition["spec"]["versions"][0], {**definition["spec"]["versions"][0], "name": "v2", "storage": False}]
        admin.patch("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/workers.example.com", {"spec": {"versions": versions}})
    for version in ("v1", "v2"):
        eventually(lambda v=version: admin.request("GET", f"/apis/example.com/{v}/workers").ok, what="workers are served")
    path = path_of("example.com/v1", "Worker", namespace, "web")
    admin.create(make_workload("Worker", namespace, replicas=3))
    daemon = make(namespace, "Worker", apiVersion="example.com/v1")
    daemon.notify(busy("a"))
    eventually(lambda: admin.replicas(path) == 5)
    daemon.wait_record("action", outcome="applied", to=5)

    daemon.write_rules(rules_of(namespace, "Worker", apiVersion="example.com/v2"))
    daemon.reload()
    daemon.wait_record("reload")
    for _ in range(2):
        target = eventually(lambda: (t := daemon.target("web"))["replicas"] == 5 and t, what="it is observed")
        assert target["id"].startswith("kubernetes/default/example.com/v2/Worker/")
        assert target["locked_until"]["up"]
        assert daemon.get("/api/v1/targets/" + target["id"].replace("/v2/", "/v1/").replace("/", "%2F")).json["data"]["id"] == target["id"]
        daemon.notify(busy("b"))
        steadily(lambda: admin.replicas(path) == 5, QUIET)
        daemon.restart()
