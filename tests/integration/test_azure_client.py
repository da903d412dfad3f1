"""The fake of Azure is what Azure's own client takes for Azure: every action of a node group, its errors too. What that client
sends is what tests/unit/cloud expects of ours, byte by byte."""
import json
import pathlib

import pytest

from harness import npm
from harness.azure import ASSERTION, CLIENT, SECRET, SUBSCRIPTION, TENANT, FakeAzure, Fault
from harness.certificates import Authority

PACKAGES = ("@azure/arm-compute@24.1.0", "@azure/arm-containerservice@25.3.0", "@azure/identity@4.13.1")
SCRIPT = pathlib.Path(__file__).with_name("azure_client.mjs")
SET = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-1/providers/Microsoft.Compute/virtualMachineScaleSets/web"
POOL = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-1/providers/Microsoft.ContainerService/managedClusters/prod/" \
       "agentPools/workers"
WEB = {"group": "rg-1", "name": "web"}
WORKERS = {"group": "rg-1", "cluster": "prod", "name": "workers"}

pytestmark = pytest.mark.seconds(600)       # the client starts slowly on a busy machine


@pytest.fixture(scope="module")
def packages():
    try:
        return npm.install(*PACKAGES)
    except npm.Missing as problem:
        pytest.skip(f"the official client for Azure cannot be had: {problem}")


@pytest.fixture
def azure(started, tmp_path):
    authority = Authority(tmp_path / "ca")
    fake = started(FakeAzure(delay=0.2, tls=authority.issue("azure")))
    fake.authority = authority
    return fake


@pytest.fixture
def client(azure, packages):
    """client(action, ...) -> what each came to."""
    def ask(*actions, credential="secret", env=None, **more):
        given = {"url": azure.url, "tenant": TENANT, "client": CLIENT, "secret": SECRET, "subscription": SUBSCRIPTION,
                 "credential": credential, "actions": actions, **more}
        printed = npm.run(packages, SCRIPT, json.dumps(given), {"NODE_EXTRA_CA_CERTS": str(azure.authority.certificate),
                                                                **(env or {})})
        return json.loads(printed.splitlines()[-1])
    return ask


def results(answers):
    assert not [one["error"] for one in answers if "error" in one]
    return [one["result"] for one in answers]


def test_uniform_scale_set(azure, client):
    web = azure.add_scale_set("web", 3)
    seen, machines, grown, gone, left = results(client(
        {"do": "getSet", **WEB}, {"do": "listSet", **WEB},
        {"do": "setCapacity", **WEB, "capacity": 5, "etag": web.etag},
        {"do": "deleteInstances", **WEB, "ids": ["0", "4"], "force": True}, {"do": "listSet", **WEB}))
    assert (seen["sku"]["capacity"], seen["etag"], seen["orchestrationMode"]) == (3, '"2"', "Uniform")
    assert [m["instanceId"] for m in machines] == ["0", "1", "2"]   # of two pages
    assert machines[0]["instanceView"]["statuses"][-1]["code"] == "PowerState/running"
    assert grown["sku"]["capacity"] == 5 and gone is None
    assert [m["instanceId"] for m in left] == ["1", "2", "3"] and web.size == 3
    version = "api-version=2026-03-01"
    sent = azure.requests(r"^(PATCH|POST)")
    assert sent == [(f"PATCH {SET}?{version}", {"sku": {"capacity": 5}}, '"2"'),
                    (f"POST {SET}/delete?{version}&forceDeletion=true", {"instanceIds": ["0", "4"]}, None)]
    assert azure.requests(rf"^GET {SET}/virtualMachines\?{version}&\$expand=instanceView$")
    assert azure.requests(r"^GET .*/operations/op-\d+\?")           # the operations were followed


def test_flexible_scale_set(azure, client):
    web = azure.add_scale_set("web", 3, flexible=True)
    seen, machines, _, left = results(client(
        {"do": "getSet", **WEB}, {"do": "listFlexible", **WEB, "id": SET},
        {"do": "deleteInstances", **WEB, "ids": ["web_00000001"]}, {"do": "listFlexible", **WEB, "id": SET}))
    assert seen["orchestrationMode"] == "Flexible"
    assert [m["name"] for m in machines] == ["web_00000000", "web_00000001", "web_00000002"]
    assert [m["name"] for m in left] == ["web_00000000", "web_00000002"] and web.size == 2
    assert azure.requests(rf"^GET .*Compute/virtualMachines\?.*\$filter='virtualMachineScaleSet/id' eq '{SET}'")


def test_agent_pool(azure, client):
    pool = azure.add_agent_pool("prod", "workers", 3, mode="System")
    seen, machines, grown, gone, left = results(client(
        {"do": "getPool", **WORKERS}, {"do": "listMachines", **WORKERS},
        {"do": "setPool", **WORKERS, "count": 4, "etag": pool.etag},
        {"do": "deleteMachines", **WORKERS, "names": ["aks-workers-1-vmss000001"]}, {"do": "listMachines", **WORKERS}))
    assert (seen["count"], seen["eTag"], seen["mode"], seen["nodeLabels"]) == (3, "etag-2", "System", {"pool": "workers"})
    assert machines[2]["properties"]["resourceId"].endswith("/virtualMachineScaleSets/aks-workers-1-vmss/virtualMachines/2")
    assert grown["count"] == 4 and gone is None and pool.size == 3
    assert [m["name"][-1] for m in left] == ["0", "2", "3"]
    (put, body, condition), (post, names, _) = azure.requests(r"^(PUT|POST)")
    assert put == f"PUT {POOL}?api-version=2026-04-01" and condition == "etag-2"
    assert body["properties"]["count"] == 4 and body["properties"]["mode"] == "System"
    # what the client leaves out of what it got is what ours leaves out
    assert not {"eTag", "provisioningState", "currentOrchestratorVersion"} & set(body["properties"])
    assert post == f"POST {POOL}/deleteMachines?api-version=2026-04-01"
    assert names == {"machineNames": ["aks-workers-1-vmss000001"]}


def test_errors(azure, client):
    azure.add_scale_set("web", 2, quota=9, room=3)
    azure.can_force = False
    azure.inject(Fault("^GET .*/web\\?", status=429, code="TooManyRequests", headers={"Retry-After": "1"}))
    answers = client(
        {"do": "getSet", **WEB},                                            # throttled
        {"do": "getSet", "group": "rg-1", "name": "no"},
        {"do": "setCapacity", **WEB, "capacity": 3, "etag": '"0"'},
        {"do": "setCapacity", **WEB, "capacity": 10},
        {"do": "setCapacity", **WEB, "capacity": 4},                        # accepted, and fails later
        {"do": "deleteInstances", **WEB, "ids": ["0"], "force": True},
        {"do": "deleteInstances", **WEB, "ids": ["77"]})
    errors = [one["error"] for one in answers]
    assert [(e.get("status"), e["code"]) for e in errors[:4]] == [
        (429, "TooManyRequests"), (404, "ResourceNotFound"), (412, "PreconditionFailed"), (409, "OperationNotAllowed")]
    assert "AllocationFailed" in json.dumps(errors[4])
    assert [e["code"] for e in errors[5:]] == ["OperationNotAllowed", "InvalidParameter"]


def test_agent_pool_at_work(azure, client):
    azure.delay = 60
    pool = azure.add_agent_pool("prod", "workers", 2)
    pool.accept(None, azure.url)
    (answer,) = client({"do": "deleteMachines", **WORKERS, "names": ["aks-workers-1-vmss000001"]})
    assert answer["error"]["status"] == 409 and "in progress" in json.dumps(answer)


def test_throttled_client_waits(azure, client):
    azure.add_scale_set("web", 2)
    azure.inject(Fault("^GET .*/web\\?", status=429, headers={"Retry-After": "1"}))
    (seen,) = results(client({"do": "getSet", **WEB}, retries=1))
    assert seen["sku"]["capacity"] == 2 and len(azure.requests("^GET .*/web\\?")) == 1


def test_workload_identity(azure, client, tmp_path):
    azure.add_scale_set("web", 2)
    token = tmp_path / "token"
    token.write_text(ASSERTION + "\n")
    (seen,) = results(client({"do": "getSet", **WEB}, credential="workload", file=str(token)))
    assert seen["sku"]["capacity"] == 2


def test_wrong_secret(azure, client):
    (answer,) = client({"do": "token"}, secret="other")
    assert "AADSTS7000215" in answer["error"]["message"]


def test_managed_identity(azure, client, started):
    metadata = started(FakeAzure())     # the machine's own: without TLS
    (token,) = results(client({"do": "token"}, credential="managed",
                              env={"AZURE_POD_IDENTITY_AUTHORITY_HOST": metadata.url}))
    assert token in metadata.tokens
