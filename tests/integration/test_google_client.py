"""The fake of Google is what Google's own clients take for Google: every action of a node group, its errors too. What they send
is what tests/unit/cloud expects of ours, byte by byte."""
import json
import pathlib
import uuid

import pytest

from harness import npm
from harness.cloud import Fault
from harness.google import PROJECT, REGION, SITE, ZONES, Google

PACKAGES = ("@google-cloud/compute@7.8.0", "@google-cloud/container@7.2.0")
SCRIPT = pathlib.Path(__file__).with_name("google_client.mjs")
PLACES = {"zonal": {"zone": ZONES[0]}, "regional": {"region": REGION}}

pytestmark = pytest.mark.seconds(600)       # the client starts slowly on a busy machine


@pytest.fixture(scope="module")
def packages():
    try:
        return npm.install(*PACKAGES)
    except npm.Missing as problem:
        pytest.skip(f"the official clients for Google cannot be had: {problem}")


@pytest.fixture
def google(started, tmp_path):
    return started(Google(tmp_path, delay=0.2))


@pytest.fixture
def client(google, packages):
    """client(action, ...) -> what each came to."""
    def ask(*actions, file=None):
        given = {"url": google.url, "project": PROJECT, "file": str(file) if file else None, "actions": actions}
        env = {"GCE_METADATA_HOST": google.url.removeprefix("http://"), "METADATA_SERVER_DETECTION": "assume-present",
               "GOOGLE_APPLICATION_CREDENTIALS": "", "NO_PROXY": "127.0.0.1"}
        return json.loads(npm.run(packages, SCRIPT, json.dumps(given), env).splitlines()[-1])
    return ask


def results(answers):
    assert not [one["error"] for one in answers if "error" in one]
    return [one["result"] for one in answers]


@pytest.mark.parametrize("kind", PLACES)
def test_managed_instance_group(google, client, kind):
    web = google.add_zonal("web", 3) if kind == "zonal" else google.add_regional("web", 3)
    where, change = {"place": PLACES[kind], "name": "web"}, str(uuid.uuid4())
    first = web.instances[0]
    instance = f"zones/{first.zone}/instances/{first.name}"
    seen, machines, grown, again, gone, left = results(client(
        {"do": "get", **where}, {"do": "list", **where}, {"do": "resize", **where, "size": 5, "requestId": change},
        {"do": "resize", **where, "size": 5, "requestId": change},
        {"do": "remove", **where, "instances": [instance, "zones/z/instances/none"], "skip": True}, {"do": "list", **where}))
    assert (seen["targetSize"], seen["status"]["isStable"], seen["currentActions"]["none"]) == (3, True, 3)
    assert [m["name"] for m in machines] == ["web-0000", "web-0001", "web-0002"]        # of two pages
    assert {(m["instanceStatus"], m["currentAction"]) for m in machines} == {("RUNNING", "NONE")}
    assert machines[0]["instance"] == f"{SITE}/projects/{PROJECT}/{instance}"
    assert grown["operation"]["operationType"] == "compute.instanceGroupManagers.resize"
    assert again["operation"]["name"] == grown["operation"]["name"]
    assert gone["begun"]["status"] == "RUNNING" and gone["operation"]["status"] == "DONE"
    assert len([m for m in left if m["currentAction"] != "DELETING"]) == 4 == web.size
    base = f"/compute/v1/{web.path}"
    (line, _), (twice, _), (removal, names) = google.requests("^POST .*/(resize|deleteInstances)")
    assert line == twice == f"POST {base}/resize?requestId={change}&size=5"
    assert removal == f"POST {base}/deleteInstances?"
    assert names == {"instances": [instance, "zones/z/instances/none"], "skipInstancesOnValidationError": True}
    lists = [line.partition("?")[2] for line, _ in google.requests("^POST .*/listManagedInstances")]
    assert lists[:2] == ["maxResults=500", "maxResults=500&pageToken=at%2B/%3D2"]
    assert google.requests(rf"^GET /compute/v1/{web.place}/operations/operation-17")


def test_machines_that_do_not_come(google, client):
    google.add_zonal("web", 2, room=2)
    where = {"place": PLACES["zonal"], "name": "web"}
    _, seen, machines = results(client({"do": "resize", **where, "size": 3}, {"do": "get", **where}, {"do": "list", **where}))
    assert seen["targetSize"] == 3 and not seen["status"]["isStable"] and seen["currentActions"]["creating"] == 1
    (error,) = machines[2]["lastAttempt"]["errors"]["errors"]
    assert machines[2]["currentAction"] == "CREATING" and error["code"] == "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"


def test_autoscaler(google, client):
    google.add_zonal("web", 2, autoscaler="web-as")
    (seen,) = results(client({"do": "get", "place": PLACES["zonal"], "name": "web"}))
    assert seen["status"]["autoscaler"] == f"{SITE}/projects/{PROJECT}/zones/{ZONES[0]}/autoscalers/web-as"


def test_node_pool(google, client):
    pool = google.add_pool("prod", "web", [1, 2, 0])
    pool.autoscaling = {"enabled": True, "minNodeCount": 1, "maxNodeCount": 5}
    (seen,) = results(client({"do": "getPool", "name": pool.path}))
    assert (seen["name"], seen["status"], seen["autoscaling"]["enabled"]) == ("web", "RUNNING", True)
    assert seen["instanceGroupUrls"] == [f"{SITE}/{group.path}" for group in pool.groups]
    assert [line for line, _ in google.requests()] == [f"GET /v1/{pool.path}?$alt=json%3Benum-encoding=int"]


def test_errors(google, client):
    google.add_zonal("web", 2)
    web = {"place": PLACES["zonal"], "name": "web"}
    google.inject(Fault("^GET .*/web", status=429, code="rateLimitExceeded", message="Rate Limit Exceeded"),
                  Fault("^GET .*/web", status=503, code="backendError", message="Backend Error"))
    google.allowed = {"compute.instanceGroupManagers.get"}
    answers = client({"do": "get", **web}, {"do": "get", **web}, {"do": "get", **web, "name": "no"}, {"do": "list", **web},
                     {"do": "getPool", "name": f"projects/{PROJECT}/locations/{REGION}/clusters/prod/nodePools/no"})
    errors = [one["error"] for one in answers]
    assert [e["code"] for e in errors] == [8, 14, 5, 7, 7]      # of gRPC: exhausted, unavailable, not found, denied
    assert "Rate Limit Exceeded" in errors[0]["message"] and "was not found" in errors[2]["message"]
    assert "Required 'compute.instanceGroupManagers.list' permission" in errors[3]["message"]
    google.allowed = None
    google.broken = ("QUOTA_EXCEEDED", "Quota 'CPUS' exceeded.")
    refused, failed, pool = client(
        {"do": "remove", **web, "instances": ["zones/z/instances/none"]}, {"do": "resize", **web, "size": 3},
        {"do": "getPool", "name": f"projects/{PROJECT}/locations/{REGION}/clusters/prod/nodePools/no"})
    assert refused["error"]["code"] == 3 and "is not a member" in refused["error"]["message"]
    assert "QUOTA_EXCEEDED" in json.dumps(failed)
    assert pool["error"]["code"] == 5 and "0x000000" in json.dumps(pool["error"]["details"])


def test_token_that_is_not_accepted(google, client):
    google.add_zonal("web", 2)
    google.inject(Fault("^GET .*/web", status=401, code="authError", message="Invalid Credentials"), times=5)
    (answer,) = client({"do": "get", "place": PLACES["zonal"], "name": "web"})
    assert answer["error"]["code"] == 16 and "Invalid Credentials" in answer["error"]["message"]


def test_credentials_of_a_file(google, client, tmp_path):
    google.add_zonal("web", 2)
    token = tmp_path / "token"
    token.write_text(google.identity.subject)
    external = google.identity.write_external(
        {"file": str(token)}, service_account_impersonation_url=google.identity.impersonation_url)
    (seen,) = results(client({"do": "get", "place": PLACES["zonal"], "name": "web"}, file=external))
    assert seen["targetSize"] == 2
    (made,) = results(client({"do": "token"}, file=google.identity.write_key()))
    assert made in google.identity.tokens
    (answer,) = client({"do": "token"}, file=google.identity.write_key("other.json", email="other@x"))
    assert "invalid_grant" in json.dumps(answer)
    (made,) = results(client({"do": "token"}, file=google.identity.write_user()))
    assert made in google.identity.tokens
