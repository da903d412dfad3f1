"""An alert scales a scaling group of Alibaba Cloud up and down through the built binary, at a service that checks signatures."""
import json

import pytest

from harness.alibaba import IDENTITY, KEY, PROVIDER, REGION, ROLE, SECRET, FakeAlibaba, Fault, Instance
from harness.nodes import is_in_service
from harness.notification import alert, notification
from harness.wait import eventually, steadily

CHANGE = "^(ScaleWithAdjustment|RemoveInstances)$"
KEYS = {"ALIBABA_CLOUD_ACCESS_KEY_ID": KEY, "ALIBABA_CLOUD_ACCESS_KEY_SECRET": SECRET}


@pytest.fixture
def cloud(started):
    return started(FakeAlibaba())


@pytest.fixture
def make(cloud, make_daemon):
    def start(name, env=None, provider=None, nodes=None, **config):
        rules = {
            "targets": {"web": {"node_group": {"provider": "ess", "name": name}, "max": 20, "cooldown": {"up": "1s", "down": "1s"},
                                "nodes": {"cluster": "none", **(nodes or {})}}},
            "rules": [
                {"name": "busy", "match": ['alertname="Busy"'], "target": "web", "scale_up": {"by": 2}, "max_steps": 1},
                {"name": "idle", "match": ['alertname="Idle"'], "target": "web", "scale_down": {"by": 1}, "max_steps": 1},
            ],
        }
        options = {"type": "alibaba", "region": REGION, "endpoint": cloud.url, "sts_endpoint": cloud.url,
                   "metadata_endpoint": cloud.url, "timeout": "3s", **(provider or {})}
        options = {key: value for key, value in options.items() if value is not None}
        return make_daemon(rules, {"providers": {"ess": options}, **config}, env=KEYS if env is None else env)

    return start


def fire(daemon, name, *status):
    return daemon.notify(notification(alert({"alertname": name}, *status)))


def wait_words(daemon, words):
    return eventually(lambda: [r for r in daemon.records() if words in json.dumps(r)], 60, what=words)[0]


def is_size(group, size):
    return lambda: not group.is_busy and len(group.instances) == size


@pytest.mark.parametrize("desired", [True, False], ids=["desired", "plain"])
@pytest.mark.parametrize("by", ["name", "id"])
def test_up_and_down(make, cloud, desired, by):
    cloud.add_group("web-2", 1)
    group = cloud.add_group("web", 3, desired=desired)
    before = [i.id for i in group.instances]
    daemon = make(getattr(group, by))
    fire(daemon, "Busy")
    eventually(is_size(group, 5), 60, what="it has grown")
    assert [i.id for i in group.instances][:3] == before
    eventually(lambda: daemon.records("action", outcome="applied"), 60, what="it is known")
    wait_words(daemon, "REQ-")          # Alibaba Cloud's own name of the request
    fire(daemon, "Busy", "resolved")
    fire(daemon, "Idle")
    eventually(is_size(group, 4), 60, what="one is gone")
    (up, scale), (down, remove) = cloud.requests(CHANGE)
    assert (up, scale["AdjustmentType"], scale["AdjustmentValue"]) == ("ScaleWithAdjustment", "TotalCapacity", "5")
    assert (down, remove["DecreaseDesiredCapacity"]) == ("RemoveInstances", "true") and "InstanceIds.2" not in remove
    assert remove["InstanceIds.1"] not in [i.id for i in group.instances]
    assert scale["ClientToken"] and remove["ClientToken"] and scale["ClientToken"] != remove["ClientToken"]
    assert not desired or group.desired == 4


def test_the_node_that_is_emptied_is_the_instance_that_leaves(make, make_nodes, control_plane, cloud):
    group = cloud.add_group("web", 3)
    there = [i.id for i in group.instances]
    clusters = make_nodes({id: f"{REGION}.{id}" for id in there})
    daemon = make("web", nodes={"cluster": "default"}, clusters=clusters)
    fire(daemon, "Idle")
    eventually(is_size(group, 2), 60, what="one is gone")
    (left,) = set(there) - {i.id for i in group.instances}
    assert [query["InstanceIds.1"] for _, query in cloud.requests("^RemoveInstances$")] == [left]
    assert [id for id in there if control_plane.admin.get(f"/api/v1/nodes/{id}")["spec"].get("unschedulable")] == [left]


def test_a_removal_that_fails_later_is_told_and_the_node_takes_pods_again(make, make_nodes, control_plane, cloud):
    """It is accepted at first: what comes of it is asked after."""
    group = cloud.add_group("web", 3)
    nodes = {i.id: f"{REGION}.{i.id}" for i in group.instances}
    group.stays = ("IncorrectInstanceStatus", "The current status of the instance does not support this operation.")
    daemon = make("web", nodes={"cluster": "default"}, clusters=make_nodes(nodes))
    fire(daemon, "Idle")
    kept = daemon.wait_record("nodes", 90, event="kept")
    assert f"the scaling activity ended as Failed: {': '.join(group.stays)}" in kept["message"] and len(group.instances) == 3
    eventually(lambda: all(is_in_service(control_plane, name) for name in nodes), 60, what="the nodes take pods again")


def test_dry_run_asks_and_changes_nothing(make, cloud):
    group = cloud.add_group("web", 2)
    daemon = make("web", dry_run=True)
    fire(daemon, "Busy")
    eventually(lambda: cloud.requests("^Describe") and daemon.records("decision"), 60, what="a record")
    assert len(group.instances) == 2 and not cloud.requests(CHANGE)


# ---- who it is ----


@pytest.fixture
def role(tmp_path):
    token = tmp_path / "identity"
    token.write_text(IDENTITY + "\n")
    return {"ALIBABA_CLOUD_ROLE_ARN": ROLE, "ALIBABA_CLOUD_OIDC_PROVIDER_ARN": PROVIDER,
            "ALIBABA_CLOUD_OIDC_TOKEN_FILE": str(token)}


def test_role_of_a_service_account_whose_session_ends(make, cloud, role):
    group = cloud.add_group("web", 2)
    daemon = make("web", env=role)
    fire(daemon, "Busy")
    eventually(lambda: daemon.records("action", outcome="applied"), 60, what="it has grown")
    cloud.expire_sessions()
    fire(daemon, "Busy", "resolved")
    fire(daemon, "Idle")
    eventually(is_size(group, 3), 60, what="one is gone")


def test_role_and_region_of_the_machine(make, cloud):
    cloud.role = "workers"
    group = cloud.add_group("web", 2)
    daemon = make("web", env={}, provider={"region": None})
    fire(daemon, "Busy")
    eventually(is_size(group, 4), 60, what="it has grown")
    assert {query["RegionId"] for _, query in cloud.requests("^Describe")} == {REGION}


def test_profile_of_the_command_line(make, cloud, tmp_path):
    group = cloud.add_group("web", 2)
    profile = {"name": "prod", "mode": "AK", "access_key_id": KEY, "access_key_secret": SECRET, "region_id": REGION}
    folder = tmp_path / "alertscaler/.aliyun"       # the daemon's home
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"current": "prod", "profiles": [profile]}))
    daemon = make("web", env={}, provider={"region": None})
    fire(daemon, "Busy")
    eventually(is_size(group, 4), 60, what="it has grown")


@pytest.mark.parametrize("env, words", [
    ({**KEYS, "ALIBABA_CLOUD_ACCESS_KEY_ID": "other"}, "InvalidAccessKeyId.NotFound: Specified access key is not found."),
    ({**KEYS, "ALIBABA_CLOUD_ACCESS_KEY_SECRET": "other"}, "SignatureDoesNotMatch"),
    ({"ALIBABA_CLOUD_ACCESS_KEY_ID": KEY}, "only one is set"),
    ({}, "none are set up in any of the places where they are looked for"),
])
def test_who_is_not_known_is_told_so(make, cloud, env, words):
    cloud.add_group("web", 2)
    daemon = make("web", env=env)
    fire(daemon, "Busy")
    wait_words(daemon, words)
    assert not cloud.requests(CHANGE)


def test_identity_that_is_not_accepted(make, cloud, role, tmp_path):
    (tmp_path / "identity").write_text("eyJ.other")
    cloud.add_group("web", 2)
    daemon = make("web", env=role)
    fire(daemon, "Busy")
    wait_words(daemon, "AuthenticationFail.OIDCToken.Invalid")


# ---- what goes wrong ----


@pytest.mark.parametrize("fault", [
    Fault("ScaleWithAdjustment", status=400, code="Throttling.User", headers={"x-ratelimit-user-api": "Remain:0,TimeLeft:900"}),
    Fault("ScaleWithAdjustment", status=400, code="ScalingActivityInProgress"),
    Fault("ScaleWithAdjustment", status=400, code="InvalidSecurityToken.Expired"),
    Fault("ScaleWithAdjustment", status=400, code="SignatureNonceUsed"),
    Fault("ScaleWithAdjustment", status=500, code="InternalError"),
    Fault("ScaleWithAdjustment", status=503, code="ServiceUnavailable", apply=True),
    Fault("ScaleWithAdjustment", hang_up=True, apply=True),
    Fault("DescribeScalingGroups", status=200, body=b'{"ScalingGroups":[{"Sc'),
    Fault("DescribeScalingInstances", status=200, body=b"<html/>"),
    Fault("DescribeScalingActivities", status=500, code="InternalError"),
], ids=lambda f: f"{f.action}-{f.status or 'hangup'}-{f.code}{'-applied' if f.apply else ''}")
def test_what_goes_wrong_once_is_done_in_the_end_and_once(make, cloud, fault):
    group = cloud.add_group("web", 2)
    cloud.inject(fault)
    daemon = make("web")
    fire(daemon, "Busy")
    eventually(is_size(group, 4), 120, what="it has grown")
    eventually(lambda: daemon.records("action", outcome="applied"), 120, what="it is known")
    assert len(group.activities) == 2       # the first instances', and this one


def test_activity_of_somebody_else_is_waited_for(make, cloud):
    group = cloud.add_group("web", 2)
    group.begin([], [], 3.0)
    daemon = make("web")
    fire(daemon, "Busy")
    eventually(is_size(group, 4), 120, what="it has grown")


@pytest.mark.parametrize("status, code, message", [
    (403, "Forbidden.RAM", "User not authorized to operate on the specified resource."),
    (400, "InvalidParameter", "The specified parameter is not valid."),
    (404, "InvalidScalingGroupId.NotFound", "The specified scaling group does not exist."),
    (403, "QuotaExceeded.Instance", "The quota of instances is exceeded."),
])
def test_what_is_refused_is_told(make, cloud, status, code, message):
    group = cloud.add_group("web", 2)
    cloud.inject(Fault("ScaleWithAdjustment", status=status, code=code, message=message), times=20)
    daemon = make("web")
    fire(daemon, "Busy")
    record = wait_words(daemon, f"scale_with_adjustment: {code}: {message}")
    assert "REQ-" in json.dumps(record) and len(group.instances) == 2


@pytest.mark.parametrize("room, status", [(2, "Failed"), (3, "Warning")])
def test_capacity_that_does_not_come_is_told(make, cloud, room, status):
    """The change is accepted, and its activity fails, wholly or in part: nothing more is asked for."""
    group = cloud.add_group("web", 2, room=room)
    daemon = make("web")
    fire(daemon, "Busy")
    wait_words(daemon, f"the scaling activity ended as {status}: OperationDenied.NoStock: The requested resource is sold out")
    steadily(lambda: len(cloud.requests(CHANGE)) == 1 and group.desired == 4, 3)


def test_what_does_not_come_is_taken_back(make, cloud):
    """One that came is lost again before all were seen, and Auto Scaling makes no other."""
    group = cloud.add_group("web", 2)
    daemon = make("web", nodes={"ready_timeout": "3s"})
    fire(daemon, "Busy")
    eventually(is_size(group, 4), 60, what="it has grown")
    eventually(lambda: daemon.records("action", outcome="applied"), 60, what="it is known")
    group.instances.pop()
    wait_words(daemon, "1 requested instance did not come")
    eventually(lambda: group.desired == 3, 60, what="it is taken back")
    assert len(group.instances) == 3 and [q["AdjustmentValue"] for _, q in cloud.requests(CHANGE)] == ["4", "3"]


def test_bounds_of_the_group_count(make, cloud):
    group = cloud.add_group("web", 2, low=2, high=3)
    daemon = make("web")
    fire(daemon, "Busy")
    eventually(is_size(group, 3), 60, what="as far as it goes")
    eventually(lambda: daemon.records("action", outcome="applied"), 60, what="it is known")
    fire(daemon, "Busy", "resolved")
    fire(daemon, "Idle")
    eventually(is_size(group, 2), 60, what="one is gone")
    fire(daemon, "Idle", "resolved")
    fire(daemon, "Idle")
    steadily(lambda: len(cloud.requests("^RemoveInstances$")) == 1, 3)


def test_instances_that_would_run_on_are_not_chosen(make, cloud):
    group = cloud.add_group("web", 0, desired=False)
    group.instances += [Instance("i-attached", f"{REGION}a", "InService", "Attached"), Instance("i-kept", f"{REGION}a", "Protected"),
                        Instance("i-free", f"{REGION}b", "InService")]
    daemon = make("web")
    fire(daemon, "Idle")
    eventually(is_size(group, 2), 60, what="one is gone")
    assert [i.id for i in group.instances] == ["i-attached", "i-kept"]


@pytest.mark.parametrize("fields, words", [
    ({"LifecycleState": "Inactive"}, "the scaling group is disabled (Inactive)"),
    ({"LifecycleState": "Deleting"}, "the scaling group is being deleted"),
    ({"SystemSuspended": True}, "Auto Scaling has suspended the group"),
    ({"SuspendedProcesses": ["ScaleOut"]}, "the group's process ScaleOut is suspended"),
])
def test_groups_that_cannot_grow(make, cloud, fields, words):
    cloud.add_group("web", 2, **fields)
    daemon = make("web")
    fire(daemon, "Busy")
    wait_words(daemon, words)
    assert not cloud.requests(CHANGE)


@pytest.mark.parametrize("name", ["we", "asg-other"])
def test_a_group_that_is_not_there(make, cloud, name):
    cloud.add_group("web", 2)
    daemon = make(name)
    fire(daemon, "Busy")
    wait_words(daemon, "there is no such scaling group in the region")
