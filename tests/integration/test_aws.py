"""An alert scales an Auto Scaling group through the built binary, at a service that checks signatures and bounds."""
import json

import pytest

from harness.auto_scaling import REGION, AutoScaling, Fault
from harness.notification import alert, notification
from harness.wait import eventually


@pytest.fixture
def group(started):
    return started(AutoScaling("workers-a", 2, least=1, most=8))


@pytest.fixture
def make(group, make_daemon):
    def make(key="AKIDTEST", secret="s3cret", name="workers-a", env=None, **config):
        rules = {
            "targets": {"workers": {"node_group": {"provider": "aws", "name": name}, "max": 20, "nodes": {"cluster": "none"},
                                    "cooldown": {"up": "1s", "down": "1s"}}},
            "rules": [
                {"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 2}, "max_steps": 1},
                {"name": "idle", "match": ['alertname="Idle"'], "target": "workers", "scale_down": {"by": 1}, "max_steps": 1},
            ],
        }
        provider = {"type": "aws", "region": REGION, "endpoint": group.url, "timeout": "3s"}
        variables = {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret}
        return make_daemon(rules, {"providers": {"aws": provider}, **config}, env=variables if env is None else env)

    return make


def fire(daemon, name):
    return daemon.notify(notification(alert({"alertname": name})))


def wait_words(daemon, words):
    return eventually(lambda: [r for r in daemon.records() if words in json.dumps(r)], 60, what=words)[0]


def test_up_and_down(make, group):
    daemon = make()
    before = list(group.instances)
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it has grown")
    assert group.instances[:2] == before
    wait_words(daemon, "r-")            # AWS' own name of the request
    daemon.notify(notification(alert({"alertname": "Busy"}, "resolved")))
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


@pytest.mark.parametrize("fault", [
    Fault("SetDesiredCapacity", 400, "Throttling", "Rate exceeded"),
    Fault("SetDesiredCapacity", 500, "ResourceContention"),
    Fault("SetDesiredCapacity", 400, "ScalingActivityInProgress"),
    Fault("SetDesiredCapacity", 403, "ExpiredToken"),
    Fault("SetDesiredCapacity", 503, body="<html/>", apply=True),
    Fault("SetDesiredCapacity", hang_up=True, apply=True),
    Fault("DescribeAutoScalingGroups", 200, body="<DescribeAutoScalingGroupsResponse>"),
], ids=lambda f: f"{f.action}-{f.code or f.status}{'-applied' if f.apply else ''}")
def test_what_goes_wrong_once_is_done_in_the_end_and_once(make, group, fault):
    daemon = make()
    group.inject(fault)
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 120, what="it has grown")
    eventually(lambda: daemon.records("action", outcome="applied"), 120, what="it is known")
    assert len(group.instances) == 4


def test_a_group_that_is_not_there(make):
    daemon = make(name="workers-b")
    fire(daemon, "Busy")
    wait_words(daemon, "there is no Auto Scaling group workers-b")


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
