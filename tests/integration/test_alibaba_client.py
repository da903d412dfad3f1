"""The fake of Alibaba Cloud is what its own client takes for Auto Scaling: every action of a scaling group, its errors, and the
signatures of that client. What it sends is what tests/unit/cloud expects of ours."""
import json
import pathlib
import subprocess
import sys

import pytest

from harness.alibaba import KEY, REGION, SECRET, FakeAlibaba, Fault
from harness.daemon import environment
from harness.moto import find_packages

SCRIPT = pathlib.Path(__file__).with_name("alibaba_client.py")

pytestmark = pytest.mark.skipif(
    find_packages() is None, reason="the official client for Alibaba Cloud is not installed: run tests/integration/install-python")


@pytest.fixture
def cloud(started):
    return started(FakeAlibaba(delay=0.0))


@pytest.fixture
def client(cloud):
    """client(action, ...) -> what each came to: [200, body] or [code, message]."""
    def ask(*actions, **more):
        given = {"url": cloud.url, "region": REGION, "key": KEY, "secret": SECRET, "actions": actions, **more}
        done = subprocess.run([sys.executable, SCRIPT, json.dumps(given)], capture_output=True, text=True, timeout=120,
                              env=environment(PYTHONPATH=find_packages()), check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return ask


def test_group(cloud, client):
    group = cloud.add_group("web", 3)
    where = {"region_id": REGION, "scaling_group_id": group.id}
    leaving = [i.id for i in group.instances[:2]]
    answers = client(
        {"do": "groups", "with": {"region_id": REGION, "scaling_group_ids": [group.id], "page_number": 1, "page_size": 50}},
        {"do": "groups", "with": {"region_id": REGION, "scaling_group_names": ["web"], "page_number": 1, "page_size": 50}},
        {"do": "instances", "with": {**where, "page_number": 2, "page_size": 100}},
        {"do": "scale", "with": {"scaling_group_id": group.id, "adjustment_type": "TotalCapacity", "adjustment_value": 4,
                                 "sync_activity": True, "client_token": "token-1"}},
        {"do": "remove", "with": {**where, "instance_ids": leaving, "decrease_desired_capacity": True,
                                  "remove_policy": "release", "ignore_invalid_instance": True, "client_token": "token-2"}},
        {"do": "activities", "with": {**where, "page_number": 1, "page_size": 10}})
    assert [status for status, _ in answers] == [200] * 6
    by_id, by_name, instances, scaled, removed, activities = [body for _, body in answers]
    (seen,) = by_id["ScalingGroups"]
    assert by_name["ScalingGroups"] == [seen] and seen["ScalingGroupId"] == group.id
    assert (seen["DesiredCapacity"], seen["EnableDesiredCapacity"], seen["ActiveCapacity"], seen["MaxSize"]) == (3, True, 3, 20)
    assert instances["TotalCount"] == 3 and [i["LifecycleState"] for i in instances["ScalingInstances"]] == ["InService"]
    assert [a["ScalingActivityId"] for a in activities["ScalingActivities"]] == \
        [removed["ScalingActivityId"], scaled["ScalingActivityId"]]
    assert {a["StatusCode"] for a in activities["ScalingActivities"]} == {"Successful"}
    assert group.desired == 2 and not {i.id for i in group.instances} & set(leaving)
    sent = [(action, {key: value.replace("True", "true") for key, value in query.items()})    # as this client writes it
            for action, query in cloud.requests("^(Scale|Remove)")]
    assert sent == [
        ("ScaleWithAdjustment", {"ScalingGroupId": group.id, "AdjustmentType": "TotalCapacity", "AdjustmentValue": "4",
                                 "SyncActivity": "true", "ClientToken": "token-1"}),
        ("RemoveInstances", {"RegionId": REGION, "ScalingGroupId": group.id, "InstanceIds.1": leaving[0],
                             "InstanceIds.2": leaving[1], "DecreaseDesiredCapacity": "true", "RemovePolicy": "release",
                             "IgnoreInvalidInstance": "true", "ClientToken": "token-2"})]


def test_activity_that_fails(cloud, client):
    group = cloud.add_group("web", 2, room=2)
    scale = {"do": "scale", "with": {"scaling_group_id": group.id, "adjustment_type": "TotalCapacity", "adjustment_value": 4}}
    _, (status, body) = client(scale, {"do": "activities", "with": {"region_id": REGION, "scaling_group_id": group.id}})
    assert status == 200 and body["ScalingActivities"][0]["StatusCode"] == "Failed"
    assert body["ScalingActivities"][0]["ErrorCode"] == "OperationDenied.NoStock"


def test_errors(cloud, client):
    group = cloud.add_group("web", 2, low=2)
    cloud.inject(Fault("DescribeScalingGroups", status=400, code="Throttling.User", message="Slow down."))
    cloud.delay = 60
    groups = {"do": "groups", "with": {"region_id": REGION, "scaling_group_ids": [group.id]}}
    remove = {"region_id": REGION, "scaling_group_id": group.id, "instance_ids": [group.instances[0].id]}
    scale = {"scaling_group_id": group.id, "adjustment_type": "TotalCapacity", "adjustment_value": 4}
    answers = client(groups, {"do": "remove", "with": remove}, {"do": "scale", "with": scale},
                     {"do": "scale", "with": {**scale, "adjustment_value": 5}},
                     {"do": "scale", "with": {**scale, "scaling_group_id": "asg-no"}})
    assert [answers[i][0] for i in (0, 1, 3, 4)] == [
        "Throttling.User", "IncorrectCapacity.MinSize", "ScalingActivityInProgress", "InvalidScalingGroupId.NotFound"]
    assert answers[2][0] == 200 and "REQ-" in answers[1][1]


def test_signature_is_checked(client):
    groups = {"do": "groups", "with": {"region_id": REGION}}
    assert client(groups, secret="other")[0][0] == "SignatureDoesNotMatch"
    assert client(groups, key="other")[0][0] == "InvalidAccessKeyId.NotFound"
