"""The fake of Baidu AI Cloud takes what Baidu's own client signs, and answers so that it understands, errors too."""
import json
import pathlib

import pytest

from harness import npm
from harness.baidu import KEY, PREFIX, SECRET, SESSION, Baidu
from harness.cloud import Fault

PACKAGES = ("@baiducloud/sdk@1.0.7",)
SCRIPT = pathlib.Path(__file__).with_name("baidu_client.mjs")
GROUP = f"{PREFIX}/cluster/cce-1/instancegroup/cce-ig-1"


@pytest.fixture(scope="module")
def packages():
    try:
        return npm.install(*PACKAGES)
    except npm.Missing as problem:
        pytest.skip(f"the official client for Baidu AI Cloud cannot be had: {problem}")


@pytest.fixture
def baidu(started):
    return started(Baidu(delay=0.0))


@pytest.fixture
def client(baidu, packages):
    """client(request, ...) -> what each came to."""
    def ask(*requests, key=KEY, secret=SECRET, session=None):
        given = {"url": baidu.url, "key": key, "secret": secret, "session": session, "requests": requests}
        return json.loads(npm.run(packages, SCRIPT, json.dumps(given), {}).splitlines()[-1])
    return ask


def test_node_group(baidu, client):
    group = baidu.add(3)
    answers = client(
        {"method": "GET", "path": GROUP},
        {"method": "GET", "path": f"{GROUP}/instances", "params": {"pageNo": 2, "pageSize": 100}},
        {"method": "PUT", "path": f"{GROUP}/scaleup", "params": {"upToReplicas": 5}},
        {"method": "PUT", "path": f"{GROUP}/scaledown", "body": {
            "instancesToBeRemoved": [group.nodes[0].id], "cleanPolicy": "Delete", "deleteOption": {"deleteResource": True}}},
        {"method": "GET", "path": f"{PREFIX}/task/InstanceGroupReplicas/task-ig-1"})
    assert not [one["error"] for one in answers if "error" in one]
    seen, page, up, down, task = [one["result"] for one in answers]
    assert (seen["instanceGroup"]["spec"]["replicas"], seen["instanceGroup"]["status"]["readyReplicas"]) == (3, 3)
    assert page["page"]["totalCount"] == 3 and len(page["page"]["list"]) == 1
    assert (up["taskID"], down["taskID"], task["task"]["phase"]) == ("task-ig-1", "task-ig-2", "Done")
    assert group.size == 4 and all(one["id"].startswith("bce-req-") for one in answers)


def test_session(baidu, client):
    baidu.add(1)
    baidu.sessions[KEY] = SESSION
    good, = client({"method": "GET", "path": GROUP}, session=SESSION)
    assert good["result"]["instanceGroup"]["spec"]["replicas"] == 1
    bad, = client({"method": "GET", "path": GROUP}, session="old")
    assert (bad["error"]["status"], bad["error"]["code"]) == (400, "InvalidSessionToken")


def test_errors(baidu, client):
    baidu.add(1)
    baidu.inject(Fault("^GET ", status=429, code="TooManyRequests", message="slower"))
    throttled, missing = client({"method": "GET", "path": GROUP}, {"method": "GET", "path": GROUP + "2"})
    assert (throttled["error"]["status"], throttled["error"]["code"]) == (429, "TooManyRequests")
    assert (missing["error"]["status"], missing["error"]["code"]) == (404, "cce.warning.NoSuchObject")
    wrong, = client({"method": "GET", "path": GROUP}, secret="other")
    assert (wrong["error"]["status"], wrong["error"]["code"]) == (403, "SignatureDoesNotMatch")
    unknown, = client({"method": "GET", "path": GROUP}, key="other")
    assert unknown["error"]["code"] == "InvalidAccessKeyId"
