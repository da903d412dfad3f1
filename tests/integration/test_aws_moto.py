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
