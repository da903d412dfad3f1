"""An alert scales an Auto Scaling group through the built binary, at a service that checks signatures and bounds."""
import dataclasses
import json
import re

import pytest

from harness.auto_scaling import REGION, AutoScaling, Fault
from harness.http import Server
from harness.nodes import is_in_service
from harness.notification import alert, notification
from harness.wait import eventually, steadily


@pytest.fixture
def group(started):
    return started(AutoScaling("workers-a", 2, least=1, most=8))


@pytest.fixture
def make(group, make_daemon):
    def start(key="AKIDTEST", secret="s3cret", name="workers-a", env=None, nodes=None, cluster=None, down=1, **config):
        node_group = {"provider": "aws", "name": name, **({"cluster": cluster} if cluster else {})}
        rules = {
            "targets": {"workers": {"node_group": node_group, "max": 20, "nodes": {"cluster": "none", **(nodes or {})},
                                    "cooldown": {"up": "1s", "down": "1s"}}},
            "rules": [
                {"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 2}, "max_steps": 1},
                {"name": "idle", "match": ['alertname="Idle"'], "target": "workers", "scale_down": {"by": down}, "max_steps": 1},
            ],
        }
        provider = {"type": "aws", "region": REGION, "endpoint": group.url, "eks_endpoint": group.url, "timeout": "3s"}
        variables = {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret}
        return make_daemon(rules, {"providers": {"aws": provider}, **config}, env=variables if env is None else env)

    return start


def fire(daemon, name, *status):
    return daemon.notify(notification(alert({"alertname": name}, *status)))


def wait_words(daemon, words):
    return eventually(lambda: [r for r in daemon.records() if words in json.dumps(r)], 60, what=words)[0]


def test_up_and_down(make, group):
    daemon = make()
    before = list(group.instances)
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it has grown")
    assert group.instances[:2] == before
    wait_words(daemon, "r-")            # AWS' own name of the request
    fire(daemon, "Busy", "resolved")
    fire(daemon, "Idle")
    eventually(lambda: group.size == 3, 60, what="one is gone")
    assert len(group.removed) == 1 and len(group.instances) == 3
    assert group.asked.count("SetDesiredCapacity") == 1


def test_dry_run_asks_and_changes_nothing(make, group):
    daemon = make(dry_run=True)
    fire(daemon, "Busy")
    eventually(lambda: "DescribeAutoScalingGroups" in group.asked and daemon.records("decision"), 60, what="a record")
    assert group.size == 2
    assert set(group.asked) == {"DescribeAutoScalingGroups", "DescribePolicies"}


def test_keys_of_a_program(make, group, tmp_path):
    """The profile's credential_process: the sandbox lets it run, as the profile names it at start."""
    program = tmp_path / "programs" / "keys"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nprintf '{\"Version\": 1, \"AccessKeyId\": \"AKIDTEST\", \"SecretAccessKey\": \"s3cret\"}'\n")
    program.chmod(0o755)
    config = tmp_path / "profiles" / "config"
    config.parent.mkdir()
    config.write_text(f"[profile ops]\ncredential_process = {program} --all\n")
    daemon = make(env={"AWS_CONFIG_FILE": config, "AWS_PROFILE": "ops"})
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it has grown")


@pytest.mark.parametrize("key, secret, words", [
    ("AKIDTEST", "wrong", "SignatureDoesNotMatch: The request signature we calculated does not match."),
    ("AKIDOTHER", "s3cret", "InvalidClientTokenId: "),
    ("AKIDREADER", "r3ad", "AccessDenied: User: u is not authorized to perform: autoscaling:SetDesiredCapacity"),
])
def test_who_may_not_is_told_so(make, group, key, secret, words):
    group.keys["AKIDREADER"] = ("r3ad", {"DescribeAutoScalingGroups"})
    daemon = make(key, secret)
    fire(daemon, "Busy")
    wait_words(daemon, words)
    assert group.size == 2


# ---- what goes wrong once ----


BOMB = """<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;">]>
<DescribeAutoScalingGroupsResponse>&d;&d;&d;&d;</DescribeAutoScalingGroupsResponse>"""


def wait_failure(daemon, outcome, words):
    """The record of an action that failed so, with AWS' own name of the request."""
    record = eventually(lambda: [r for r in daemon.records("action", outcome=outcome) if words in r["message"]], 60, what=words)[0]
    assert record["request_id"].startswith("r-")
    return record


@pytest.mark.parametrize("fault, outcome, words", [
    (Fault("SetDesiredCapacity", 400, "Throttling", "Rate exceeded"), "throttled", "Throttling: Rate exceeded"),
    (Fault("SetDesiredCapacity", 503, "RequestLimitExceeded"), "throttled", "RequestLimitExceeded"),
    (Fault("SetDesiredCapacity", 400, "ScalingActivityInProgress", "Scaling activity a is in progress"), "conflict",
     "ScalingActivityInProgress: Scaling activity a is in progress"),
    (Fault("SetDesiredCapacity", 500, "ResourceContention", "You already have a pending update"), "unreachable",
     "ResourceContention: You already have a pending update"),
], ids=str)
def test_what_has_to_wait_is_told_and_done_later(make, group, fault, outcome, words):
    daemon = make()
    group.inject(fault)
    fire(daemon, "Busy")
    wait_failure(daemon, outcome, f"set_desired_capacity: {words}")
    eventually(lambda: daemon.records("action", outcome="applied"), 120, what="it is known")
    assert group.sizes == [4] and len(group.instances) == 4


@pytest.mark.parametrize("fault", [
    Fault("SetDesiredCapacity", 503, body="<html/>", apply=True),
    Fault("SetDesiredCapacity", hang_up=True, apply=True),
    Fault("SetDesiredCapacity", cut=True, apply=True),
    Fault("DescribeAutoScalingGroups", hang_up=True),
    Fault("DescribeAutoScalingGroups", 400, "Throttling", "Rate exceeded"),
    Fault("DescribeAutoScalingGroups", cut=True, apply=True),
    Fault("DescribeAutoScalingGroups", 200, body=BOMB),
    Fault("DescribePolicies", 500, "InternalFailure"),
    Fault("DescribePolicies", cut=True, apply=True),
], ids=str)
def test_what_goes_wrong_once_is_done_in_the_end_and_once(make, group, fault):
    daemon = make()
    group.inject(fault)
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 120, what="it has grown")
    eventually(lambda: daemon.records("action", outcome="applied"), 120, what="it is known")
    assert group.sizes == [4] and len(group.instances) == 4 and not group.faults


def test_a_bomb_is_told(make, group):
    daemon = make()
    group.inject(Fault("DescribeAutoScalingGroups", 200, body=BOMB), times=20)
    fire(daemon, "Busy")
    wait_words(daemon, "describe_auto_scaling_groups: the answer is not XML: it has a document type")
    assert not group.sizes


@pytest.mark.parametrize("fault", [
    Fault("TerminateInstanceInAutoScalingGroup", 500, "ResourceContention"),
    Fault("TerminateInstanceInAutoScalingGroup", 400, "ScalingActivityInProgress"),
    Fault("TerminateInstanceInAutoScalingGroup", 503, body="<html/>", apply=True),
    Fault("TerminateInstanceInAutoScalingGroup", hang_up=True, apply=True),
    Fault("TerminateInstanceInAutoScalingGroup", cut=True, apply=True),
], ids=str)
def test_a_removal_that_goes_wrong_once_is_no_second_one(make, group, fault):
    daemon = make()
    group.inject(fault)
    fire(daemon, "Idle")
    eventually(lambda: group.size == 1, 120, what="one is gone")
    eventually(lambda: daemon.records("action", outcome="applied"), 120, what="it is known")
    steadily(lambda: group.size == 1 and len(group.removed) == 1, 3)


@pytest.mark.parametrize("fault, gone", [
    (Fault("TerminateInstanceInAutoScalingGroup", 400, "ScalingActivityInProgress", skip=1), 1),
    (Fault("TerminateInstanceInAutoScalingGroup", 500, "InternalFailure", skip=1), 1),
    (Fault("TerminateInstanceInAutoScalingGroup", hang_up=True, apply=True), 1),
    (Fault("TerminateInstanceInAutoScalingGroup", hang_up=True, apply=True, skip=1), 2),
], ids=lambda value: f"{value}-{value.skip}" if isinstance(value, Fault) else None)
def test_half_a_removal_is_no_reason_to_remove_more(make, group, fault, gone):
    """One of two is refused, or its answer is lost: begun anew it would be three that go."""
    group.grow(4)
    daemon = make(down=2)
    group.inject(dataclasses.replace(fault))
    fire(daemon, "Idle")
    (record,) = eventually(lambda: daemon.records("action"), 60, what="it is known")
    assert (record["outcome"], record["from"], record["to"]) == ("applied", 4, 4 - gone)
    told = re.match("1 of 2 instances are removed: (accepted in part: )?terminate_instance: ", record["message"])
    assert bool(told) == (gone == 1)
    steadily(lambda: group.size == 4 - gone, 3)


def test_the_node_of_an_instance_that_stays_takes_pods_again(make, make_nodes, control_plane, group):
    group.grow(4)
    there = list(group.instances)
    clusters = make_nodes({id: f"aws:///{REGION}a/{id}" for id in there})
    daemon = make(down=2, nodes={"cluster": "default"}, clusters=clusters)
    group.inject(Fault("TerminateInstanceInAutoScalingGroup", 403, "AccessDenied", skip=1))
    fire(daemon, "Idle")
    record = daemon.wait_record("action", outcome="applied")
    kept = daemon.wait_record("nodes", 90, event="kept")
    assert (record["from"], record["to"]) == (4, 2) and "terminate_instance: AccessDenied: injected" in kept["message"]

    def closed():
        return [id for id in there if control_plane.admin.get(f"/api/v1/nodes/{id}")["spec"].get("unschedulable")]

    eventually(lambda: closed() == group.removed, 60, what="only the one that is gone is closed")
    assert len(group.removed) == 1


def test_a_removal_that_fails_later_is_told_and_the_node_takes_pods_again(make, make_nodes, control_plane, group):
    """It is accepted at first: what comes of it is asked after."""
    nodes = {id: f"aws:///{REGION}a/{id}" for id in group.instances}
    group.stays = "Instance i-1 failed to terminate: its volume is busy."
    daemon = make(nodes={"cluster": "default"}, clusters=make_nodes(nodes))
    fire(daemon, "Idle")
    kept = daemon.wait_record("nodes", 90, event="kept")
    assert f"Failed: {group.stays}" in kept["message"] and group.size == 2
    eventually(lambda: all(is_in_service(control_plane, name) for name in nodes), 60, what="the nodes take pods again")


def test_an_instance_that_is_gone_already_is_what_was_wanted(make, group):
    """Somebody else takes it away between the look and the removal."""
    daemon = make()
    group.inject(Fault("TerminateInstanceInAutoScalingGroup", 400, "ValidationError",
                       "Instance Id not found - No managed instance found for instance ID: i-1", apply=True))
    fire(daemon, "Idle")
    eventually(lambda: daemon.records("action", outcome="applied"), 120, what="it is known")
    assert group.size == 1 and len(daemon.records("action")) == 1
    assert group.asked.count("TerminateInstanceInAutoScalingGroup") == 1


# ---- what a person has to mend ----


def lower_most(group):
    group.most = 3


def rename(group):
    group.name = "other"


@pytest.mark.parametrize("change, outcome, words", [
    (lower_most, "rejected", "ValidationError: New SetDesiredCapacity value 4 is above max value 3 for the AutoScalingGroup."),
    (rename, "target_not_found", "ValidationError: AutoScalingGroup name not found - null"),
])
def test_what_changes_after_the_look_is_told(make, group, change, outcome, words):
    group.on_ask = lambda action: action == "SetDesiredCapacity" and change(group)
    daemon = make()
    fire(daemon, "Busy")
    wait_failure(daemon, outcome, f"set_desired_capacity: {words}")
    assert group.size == 2


def test_bounds_of_the_group_count(make, group):
    group.most = 3
    daemon = make()
    fire(daemon, "Busy")
    eventually(lambda: group.size == 3, 60, what="as far as it goes")
    steadily(lambda: group.sizes == [3], 3)


def test_a_minimum_that_rises_after_the_look_is_told(make, group):
    def raise_least(action):
        if action == "TerminateInstanceInAutoScalingGroup":
            group.least = 2

    group.on_ask = raise_least
    daemon = make()
    fire(daemon, "Idle")
    wait_failure(daemon, "rejected", "terminate_instance: ValidationError: Currently, desiredSize equals minSize (2).")
    assert group.size == 2 and not group.removed


@pytest.mark.parametrize("action, code, words", [
    ("SetDesiredCapacity", "forbidden", "AccessDenied: User: u is not authorized to perform: autoscaling:SetDesiredCapacity"),
    ("DescribeAutoScalingGroups", "forbidden", "AccessDenied: User: u is not authorized to perform: autoscaling:DescribeAutoScal"),
])
def test_a_permission_that_is_missing_is_named(make, group, action, code, words):
    allowed = {"DescribeAutoScalingGroups", "DescribePolicies", "DescribeScalingActivities", "SetDesiredCapacity"}
    group.keys["AKIDTEST"] = ("s3cret", allowed - {action})
    daemon = make()
    fire(daemon, "Busy")
    assert code in json.dumps(wait_words(daemon, words))
    assert group.size == 2 and not group.sizes


def test_what_cannot_be_launched_is_told_and_taken_back(make, group):
    """The size is set, and the activity fails for want of machines."""
    group.room = 3
    daemon = make(nodes={"ready_timeout": "3s"})
    fire(daemon, "Busy")
    record = wait_words(daemon, "1 requested instance did not come")
    assert "InsufficientInstanceCapacity - We currently do not have sufficient" in record["message"]
    eventually(lambda: group.size == 3, 60, what="what never came is gone")
    assert len(group.instances) == 3 and group.sizes == [4, 3] and not group.removed


def test_a_group_that_is_not_there(make):
    daemon = make(name="workers-b")
    fire(daemon, "Busy")
    record = wait_words(daemon, "there is no Auto Scaling group workers-b")
    assert "target_not_found" in json.dumps(record) and "r-" in json.dumps(record)


def test_lists_that_never_end_are_not_followed(make, group):
    """One group by its name and one page of policies are all there is to know."""
    group.is_endless, group.room = True, 3
    daemon = make()
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it has grown")
    steadily(lambda: len(group.asked) < 60, 3)
    assert group.asked.count("DescribePolicies") <= group.asked.count("DescribeAutoScalingGroups")


# ---- who it is, and when ----


@pytest.fixture
def container(started):
    """A container's credentials, numbered as they are asked for: AKID1, AKID2, ..."""
    asked = []

    def handle(_):
        asked.append(f"AKID{len(asked) + 1}")
        return 200, {}, {"AccessKeyId": asked[-1], "SecretAccessKey": "s3cret", "Token": "t", "Expiration": "2099-01-01T00:00:00Z"}

    server = started(Server(handle))
    server.asked = asked
    return server


def test_credentials_that_expire_early_are_searched_anew(make, group, container):
    group.keys = {key: ("s3cret", {"*"}) for key in ("AKID1", "AKID2")}
    daemon = make(env={"AWS_CONTAINER_CREDENTIALS_FULL_URI": container.url + "/keys"})
    fire(daemon, "Busy")
    eventually(lambda: daemon.records("action", outcome="applied"), 60, what="it has grown")
    group.expired.add("AKID1")
    fire(daemon, "Busy", "resolved")
    fire(daemon, "Idle")
    eventually(lambda: group.size == 3, 60, what="one is gone")
    assert container.asked == ["AKID1", "AKID2"]


def test_credentials_that_stay_expired_are_told(make, group, container):
    """Searched anew once; that the new ones are not accepted either is told."""
    group.keys = {f"AKID{n}": ("s3cret", {"*"}) for n in range(1, 50)}
    group.inject(Fault("SetDesiredCapacity", 403, "ExpiredToken", "The security token included in the request is expired"), times=2)
    daemon = make(env={"AWS_CONTAINER_CREDENTIALS_FULL_URI": container.url + "/keys"})
    fire(daemon, "Busy")
    wait_failure(daemon, "forbidden", "set_desired_capacity: ExpiredToken: The security token included in the request is expired")
    assert container.asked == ["AKID1", "AKID2"] and not group.faults


@pytest.mark.parametrize("offset", [-3600, 3600])
def test_a_clock_that_is_off_is_no_obstacle(make, group, offset):
    """RequestTimeTooSkewed is learned from: signed once more by the service's own clock, and so from then on."""
    group.offset = offset
    daemon = make()
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it has grown")
    eventually(lambda: daemon.records("action", outcome="applied"), 60, what="it is known")
    assert group.skewed == 1 and group.sizes == [4]


# ---- two controllers ----


@pytest.mark.parametrize("kind", ["TargetTrackingScaling", "StepScaling"])
def test_scaling_policies_are_respected(make, group, kind):
    group.policies = [("night", "SimpleScaling", False), ("cpu", kind, True)]
    daemon = make()
    fire(daemon, "Busy")
    wait_words(daemon, f"the scaling policy cpu ({kind}) sets the size of this group: turn it off there")
    assert group.size == 2 and not group.sizes
    group.policies = [("cpu", kind, False)]
    eventually(lambda: group.size == 4, 120, what="it has grown")


def test_policies_that_hear_no_alarms_do_nothing(make, group):
    group.policies, group.suspended = [("cpu", "TargetTrackingScaling", True)], ["AlarmNotification"]
    daemon = make()
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it has grown")


def test_who_may_not_ask_for_policies_goes_on_without(make, group):
    """The right is an optional one; nothing is said of it."""
    group.policies = [("cpu", "TargetTrackingScaling", True)]
    group.keys["AKIDTEST"] = ("s3cret", {"DescribeAutoScalingGroups", "DescribeScalingActivities", "SetDesiredCapacity"})
    daemon = make()
    fire(daemon, "Busy")
    eventually(lambda: daemon.records("action", outcome="applied"), 60, what="it has grown")
    assert group.size == 4 and "DescribePolicies" in group.asked
    assert "DescribePolicies" not in json.dumps(daemon.records())


# ---- EKS ----


@pytest.fixture
def make_eks(make):
    return lambda **options: make(cluster="prod", **options)


def test_a_managed_node_group_up_and_down(make_eks, group):
    daemon = make_eks()
    fire(daemon, "Busy")
    eventually(lambda: daemon.records("action", outcome="applied"), 60, what="it has grown")
    assert group.size == 4 and "DescribeNodegroup" in group.asked
    fire(daemon, "Busy", "resolved")
    fire(daemon, "Idle")
    eventually(lambda: group.size == 3, 60, what="one is gone")
    assert len(group.removed) == 1 and group.sizes == [4]


@pytest.mark.parametrize("options, allowed, words, outcome", [
    ({"name": "other"}, {"*"}, "describe_nodegroup: ResourceNotFoundException: No node group found for name: other.",
     "target_not_found"),
    ({}, {"DescribeAutoScalingGroups"}, "AccessDenied: User: u is not authorized to perform: eks:DescribeNodegroup", "forbidden"),
], ids=["gone", "permission"])
def test_a_managed_node_group_that_cannot_be_read(make_eks, group, options, allowed, words, outcome):
    group.keys["AKIDTEST"] = ("s3cret", allowed)
    daemon = make_eks(**options)
    fire(daemon, "Busy")
    record = json.dumps(wait_words(daemon, words))
    assert outcome in record and '"e-' in record and not group.sizes


def test_a_managed_node_group_at_work_is_waited_for(make_eks, group):
    group.status = "UPDATING"
    daemon = make_eks()
    fire(daemon, "Busy")
    wait_words(daemon, "the node group is UPDATING")
    assert not group.sizes
    group.status = "ACTIVE"
    eventually(lambda: group.size == 4, 120, what="it has grown")


def test_a_managed_node_group_in_use_is_waited_for(make_eks, group):
    daemon = make_eks()
    group.inject(Fault("DescribeNodegroup", 409, "ResourceInUseException", "The specified resource is in use."), times=2)
    fire(daemon, "Busy")
    wait_words(daemon, "describe_nodegroup: ResourceInUseException: The specified resource is in use.")
    eventually(lambda: group.size == 4, 120, what="it has grown")
    assert group.sizes == [4]


def test_what_ails_a_managed_node_group_is_why_nothing_comes(make_eks, group):
    group.room, group.status, group.shortage = 3, "DEGRADED", None
    group.issues = [{"code": "InsufficientFreeAddresses", "message": "no address is left", "resourceIds": ["subnet-1"]}]
    daemon = make_eks(nodes={"ready_timeout": "3s"})
    fire(daemon, "Busy")
    record = wait_words(daemon, "1 requested instance did not come")
    assert "InsufficientFreeAddresses: no address is left" in record["message"]
    eventually(lambda: group.sizes == [4, 3], 60, what="what never came is gone")
