"""The fake of Auto Scaling and EKS is what AWS' own client (botocore) takes for them: signatures, answers, errors, request ids.
What that client sends is what tests/unit/cloud expects of ours."""
import json
import pathlib
import subprocess
import sys

import pytest

from harness.auto_scaling import REGION, AutoScaling, Fault
from harness.daemon import environment
from harness.moto import find_packages

SCRIPT = pathlib.Path(__file__).with_name("aws_client.py")
GROUP = {"AutoScalingGroupName": "workers-a"}

pytestmark = pytest.mark.skipif(
    find_packages() is None, reason="AWS' own client is not installed: run tests/integration/install-python")


@pytest.fixture
def group(started):
    return started(AutoScaling("workers-a", 2, least=1, most=10))


@pytest.fixture
def client(group):
    """client(action, ...) -> what each came to: status, request id, retries, answer."""
    def ask(*actions, key="AKIDTEST", secret="s3cret", attempts=1):
        given = {"url": group.url, "region": REGION, "key": key, "secret": secret, "attempts": attempts, "actions": actions}
        done = subprocess.run([sys.executable, SCRIPT, json.dumps(given)], capture_output=True, text=True, timeout=120,
                              check=False, env=environment(PYTHONPATH=find_packages()))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return ask


def test_group_up_and_down(group, client):
    first = group.instances[0]
    seen, grown, gone, activities, left = client(
        ("autoscaling", "describe_auto_scaling_groups", {"AutoScalingGroupNames": ["workers-a"], "MaxRecords": 100}),
        ("autoscaling", "set_desired_capacity", {**GROUP, "DesiredCapacity": 4, "HonorCooldown": False}),
        ("autoscaling", "terminate_instance_in_auto_scaling_group",
         {"InstanceId": first, "ShouldDecrementDesiredCapacity": True}),
        ("autoscaling", "describe_scaling_activities", {**GROUP, "ActivityIds": ["a-1"]}),
        ("autoscaling", "describe_auto_scaling_groups", {"AutoScalingGroupNames": ["workers-a"]}))
    assert [status for status, *_ in (seen, grown, gone, activities, left)] == [200] * 5
    assert [request for _, request, *_ in (seen, grown, gone)] == ["r-1", "r-2", "r-3"]
    one, = seen[3]["AutoScalingGroups"]
    assert (one["MinSize"], one["MaxSize"], one["DesiredCapacity"], len(one["Instances"])) == (1, 10, 2, 2)
    assert one["Instances"][0] == {"InstanceId": first, "AvailabilityZone": f"{REGION}a", "LifecycleState": "InService",
                                   "HealthStatus": "Healthy", "ProtectedFromScaleIn": False}
    assert gone[3]["Activity"]["StatusCode"] == "InProgress"
    assert [a["StatusCode"] for a in activities[3]["Activities"]] == ["Successful"]
    one, = left[3]["AutoScalingGroups"]
    assert one["DesiredCapacity"] == 3 and first not in [i["InstanceId"] for i in one["Instances"]]
    assert group.size == 3 and group.removed == [first]


def test_policies_and_suspended_processes(group, client):
    group.policies = [("cpu", "TargetTrackingScaling", True)]
    group.suspended = ["Terminate"]
    policies, seen = client(("autoscaling", "describe_policies", GROUP),
                            ("autoscaling", "describe_auto_scaling_groups", {"AutoScalingGroupNames": ["workers-a"]}))
    assert policies[3]["ScalingPolicies"] == [{**GROUP, "PolicyName": "cpu", "PolicyType": "TargetTrackingScaling",
                                               "Enabled": True}]
    assert seen[3]["AutoScalingGroups"][0]["SuspendedProcesses"] == [{"ProcessName": "Terminate"}]


def test_a_group_without_capacity(group, client):
    group.room = 2
    grown, activities = client(("autoscaling", "set_desired_capacity", {**GROUP, "DesiredCapacity": 4}),
                               ("autoscaling", "describe_scaling_activities", GROUP))
    assert grown[0] == 200
    failed, = activities[3]["Activities"]
    assert failed["StatusCode"] == "Failed" and "InsufficientInstanceCapacity" in failed["StatusMessage"]


def test_node_group_of_eks(group, client):
    seen, missing = client(("eks", "describe_nodegroup", {"clusterName": "prod", "nodegroupName": "workers-a"}),
                           ("eks", "describe_nodegroup", {"clusterName": "prod", "nodegroupName": "none"}))
    assert seen[0] == 200 and seen[1] == "e-1"
    assert seen[3]["nodegroup"]["resources"] == {"autoScalingGroups": [{"name": "workers-a"}]}
    assert seen[3]["nodegroup"]["status"] == "ACTIVE"
    assert (missing[0], missing[3]["Code"]) == (404, "ResourceNotFoundException")


@pytest.mark.parametrize("ask, status, code", [
    (("set_desired_capacity", {**GROUP, "DesiredCapacity": 11}), 400, "ValidationError"),
    (("set_desired_capacity", {"AutoScalingGroupName": "none", "DesiredCapacity": 2}), 400, "ValidationError"),
    (("terminate_instance_in_auto_scaling_group", {"InstanceId": "i-none", "ShouldDecrementDesiredCapacity": True}), 400,
     "ValidationError"),
])
def test_refusals(client, ask, status, code):
    (answered, request, _, answer), = client(("autoscaling", *ask))
    assert (answered, answer["Code"], request) == (status, code, "r-1")


@pytest.mark.parametrize("key, secret, code", [("AKIDTEST", "wrong", "SignatureDoesNotMatch"),
                                               ("AKIDOTHER", "s3cret", "InvalidClientTokenId")])
def test_who_is_not_known(client, key, secret, code):
    (status, _, _, answer), = client(("autoscaling", "describe_policies", GROUP), key=key, secret=secret)
    assert (status, answer["Code"]) == (403, code)


def test_throttling_is_tried_again_as_the_client_does(group, client):
    group.inject(Fault("DescribePolicies", 400, "Throttling", "Rate exceeded"))
    (status, _, retries, _), = client(("autoscaling", "describe_policies", GROUP), attempts=3)
    assert (status, retries) == (200, 1)
