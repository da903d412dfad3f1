"""The same against moto's server, which checks signatures and permissions: those of the guide are enough."""
import json
import pathlib
import re

import pytest

from harness import moto
from harness.notification import alert, notification
from harness.wait import eventually

GUIDE = pathlib.Path(__file__).parents[2] / "docs/providers/aws.md"


def documented_policy():
    policy = json.loads(re.search(r"```json\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)[1])
    for statement in policy["Statement"]:
        statement["Resource"] = "*"         # moto compares actions only
    return policy


def test_up_and_down(started, make_daemon, tmp_path):
    reason = moto.missing()
    if reason:
        pytest.skip(reason)
    aws = started(moto.Moto(tmp_path)).start()
    key = aws.make_user("alertscaler", documented_policy())
    aws.check_signatures()
    aws.make_group("workers-a", 2)
    daemon = make_daemon({
        "targets": {"workers": {"node_group": {"provider": "aws", "name": "workers-a"}, "max": 8, "nodes": {"cluster": "none"},
                                "cooldown": {"up": "1s", "down": "1s"}}},
        "rules": [
            {"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 2}, "max_steps": 1},
            {"name": "idle", "match": ['alertname="Idle"'], "target": "workers", "scale_down": {"by": 1}, "max_steps": 1},
        ],
    }, {"providers": {"aws": {"type": "aws", "region": moto.REGION, "endpoint": aws.url}}},
        env={"AWS_ACCESS_KEY_ID": key.id, "AWS_SECRET_ACCESS_KEY": key.secret})
    before = set(aws.group("workers-a")[1])
    daemon.notify(notification(alert({"alertname": "Busy"})))
    eventually(lambda: aws.group("workers-a")[0] == 4, 60, what="it has grown")
    assert before < set(aws.group("workers-a")[1])
    daemon.notify(notification(alert({"alertname": "Busy"}, "resolved")))
    daemon.notify(notification(alert({"alertname": "Idle"})))
    eventually(lambda: aws.group("workers-a")[0] == 3, 60, what="one is gone")
    assert len(aws.group("workers-a")[1]) == 3


def test_a_node_group_of_eks_and_its_auto_scaling_group_are_one_target(started, make_daemon, tmp_path):
    """moto's EKS names an Auto Scaling group, but makes none: the test makes it under this name."""
    if reason := moto.missing():
        pytest.skip(reason)
    aws = started(moto.Moto(tmp_path)).start()
    role = "arn:aws:iam::123456789012:role/nodes"
    aws.call_eks("POST", "/clusters", {"name": "prod", "roleArn": role, "resourcesVpcConfig": {}})
    made = aws.call_eks("POST", "/clusters/prod/node-groups", {
        "nodegroupName": "workers", "nodeRole": role, "subnets": [], "scalingConfig": {"minSize": 1, "maxSize": 10, "desiredSize": 2}})
    asg = made["nodegroup"]["resources"]["autoScalingGroups"][0]["name"]
    aws.make_group(asg, 2)
    target = {"nodes": {"cluster": "none"}, "cooldown": {"up": "1h", "down": "1h"}}
    daemon = make_daemon({
        "targets": {"eks": {"node_group": {"provider": "aws", "cluster": "prod", "name": "workers"}, "max": 3, **target},
                    "asg": {"node_group": {"provider": "aws", "name": "{{ .Labels.asg }}"}, "allow": {"names": ["*"]}, "max": 9,
                            **target}},
        "rules": [{"name": "Any", "match": ['alertname="Any"'], "target": "asg", "scale_up": {"by": 2}},
                  {"name": "Busy", "match": ['alertname="Busy"'], "target": "eks", "scale_up": {"by": 1}}],
    }, {"providers": {"aws": {"type": "aws", "region": moto.REGION, "endpoint": aws.url, "eks_endpoint": aws.url}}},
        env={"AWS_ACCESS_KEY_ID": aws.admin.id, "AWS_SECRET_ACCESS_KEY": aws.admin.secret})
    daemon.notify(notification(alert({"alertname": "Any", "asg": asg})))
    refused = eventually(lambda: daemon.records("action", outcome="target_not_allowed"), 60, what="the label is refused")[0]
    assert "aws/prod/workers, which has precedence" in refused["message"] and aws.group(asg)[0] == 2
    daemon.notify(notification(alert({"alertname": "Busy"})))
    eventually(lambda: aws.group(asg)[0] == 3, 60, what="the entry without templates grows it")
