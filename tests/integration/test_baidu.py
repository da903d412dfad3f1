"""An alert scales a node group of Baidu's CCE up and down through the built binary, at a service that checks signatures."""
import json

import pytest

from harness.baidu import KEY, PREFIX, SECRET, SESSION, Baidu
from harness.cloud import Fault
from harness.nodes import budget_path, is_in_service, is_marked, make_budget, make_pod
from harness.notification import alert, notification
from harness.wait import eventually, steadily

GROUP = f"{PREFIX}/cluster/cce-1/instancegroup/cce-ig-1"
UP, DOWN, GET, LIST = "^PUT .*/scaleup", "^PUT .*/scaledown", "^GET .*/cce-ig-1$", "^GET .*/instances"


@pytest.fixture
def baidu(started):
    return started(Baidu())


@pytest.fixture
def make(baidu, make_daemon):
    def start(key=KEY, secret=SECRET, name="cce-ig-1", provider=None, env=None, nodes=None, **config):
        node_group = {"provider": "baidu", "cluster": "cce-1", "name": name}
        rules = {
            "targets": {"web": {"node_group": node_group, "max": 20, "nodes": {"cluster": "none", **(nodes or {})},
                                "cooldown": {"up": "1s", "down": "1s"}}},
            "rules": [
                {"name": "busy", "match": ['alertname="Busy"'], "target": "web", "scale_up": {"by": 2}, "max_steps": 1},
                {"name": "idle", "match": ['alertname="Idle"'], "target": "web", "scale_down": {"by": 1}, "max_steps": 1},
            ],
        }
        options = {"type": "baidu", "endpoint": baidu.url, "timeout": "3s", **(provider or {})}
        variables = {"BAIDUCLOUD_ACCESS_KEY": key, "BAIDUCLOUD_SECRET_KEY": secret}
        return make_daemon(rules, {"providers": {"baidu": options}, **config}, env=variables if env is None else env)

    return start


def fire(daemon, name, *status):
    return daemon.notify(notification(alert({"alertname": name}, *status)))


def wait_words(daemon, words):
    return eventually(lambda: [r for r in daemon.records() if words in json.dumps(r)], 60, what=words)[0]


def ids(group):
    return {n.id for n in group.present()}


def test_up_and_down(make, baidu):
    group = baidu.add(3)
    before = ids(group)
    daemon = make()
    fire(daemon, "Busy")
    eventually(lambda: group.size == 5, 60, what="it has grown")
    assert before < ids(group) and len(group.present()) == 5
    assert daemon.wait_record("action", outcome="applied")["request_id"].startswith("bce-req-")     # Baidu's own name of the request
    fire(daemon, "Busy", "resolved")
    fire(daemon, "Idle")
    eventually(lambda: group.size == 4, 60, what="one is gone")
    (up, none), (down, body) = baidu.changed()
    assert (up, none) == (f"PUT {GROUP}/scaleup?upToReplicas=5", None) and down == f"PUT {GROUP}/scaledown"
    assert len(body.pop("instancesToBeRemoved")) == 1
    assert body == {"cleanPolicy": "Delete", "deleteOption": {"moveOut": False, "deleteResource": True, "drainNode": False,
                                                              "deleteCDSSnapshot": False}}
    assert [line for line, _ in baidu.requests(LIST) if "pageNo=2" in line]
    assert baidu.requests("^GET .*/task/InstanceGroupReplicas/task-ig-1$")


def test_dry_run_asks_and_changes_nothing(make, baidu):
    group = baidu.add(2)
    daemon = make(dry_run=True)
    fire(daemon, "Busy")
    eventually(lambda: baidu.requests(LIST) and daemon.records("decision"), 60, what="a record")
    assert group.size == 2 and not baidu.changed()


def test_a_node_that_is_not_ready_holds_nothing_up(make, baidu):
    group = baidu.add(3)
    group.unready = 1
    daemon = make()
    fire(daemon, "Busy")
    eventually(lambda: group.size == 5, 60, what="it has grown")


def test_protected_nodes_stay(make, baidu):
    group = baidu.add(2)
    group.nodes[0].is_kept = True
    daemon = make()
    fire(daemon, "Idle")
    eventually(lambda: group.size == 1, 60, what="one is gone")
    assert ids(group) == {group.nodes[0].id}


# ---- who it is ----


def write_session(path, token):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"accessKeyId": "ALTAKsession", "secretAccessKey": "sk2", "sessionToken": token,
                                "expiration": "2099-01-01T00:00:00Z"}))
    return str(path)


def test_a_session_of_a_file_and_the_next_one(make, baidu, tmp_path):
    """The file is read again when its token is not accepted any more."""
    group = baidu.add(2)
    baidu.keys["ALTAKsession"], baidu.sessions["ALTAKsession"] = "sk2", SESSION
    path = tmp_path / "secrets" / "baidu"
    daemon = make(env={}, provider={"credentials_file": write_session(path, SESSION)})
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it has grown")
    eventually(lambda: daemon.records("action", outcome="applied"), 60, what="it is known")
    baidu.sessions["ALTAKsession"] = "next/+="
    write_session(path, "next/+=")
    fire(daemon, "Busy", "resolved")
    fire(daemon, "Idle")
    eventually(lambda: group.size == 3, 60, what="one is gone")


def test_a_session_of_the_environment(make, baidu):
    group = baidu.add(2)
    baidu.keys["ALTAKsession"], baidu.sessions["ALTAKsession"] = "sk2", SESSION
    daemon = make(env={"BAIDUCLOUD_ACCESS_KEY": "ALTAKsession", "BAIDUCLOUD_SECRET_KEY": "sk2",
                       "BAIDUCLOUD_SESSION_TOKEN": SESSION})
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it has grown")


@pytest.mark.parametrize("options, words", [
    ({"secret": "wrong"}, "SignatureDoesNotMatch: The request signature we calculated does not match"),
    ({"key": "ALTAKother"}, "InvalidAccessKeyId: The Access Key ID you provided does not exist"),
    ({"env": {}}, "none are set up in any of the places where they are looked for"),
    ({"env": {"BAIDUCLOUD_ACCESS_KEY": KEY}}, "BAIDUCLOUD_SECRET_KEY is not set"),
])
def test_who_is_not_known_is_told_so(make, baidu, options, words):
    group = baidu.add(2)
    daemon = make(**options)
    fire(daemon, "Busy")
    wait_words(daemon, words)
    assert group.size == 2


# ---- what goes wrong ----


@pytest.mark.parametrize("fault", [
    Fault(UP, status=429, code="TooManyRequests", headers={"Retry-After": "1"}),
    Fault(UP, status=409, code="cce.warning.InstanceGroupProcessing"),
    Fault(UP, status=400, code="cce.warning.ClusterBusy"),
    Fault(UP, status=400, code="Http400"),
    Fault(UP, status=403, code="InvalidAccessKeyId"),
    Fault(UP, status=500, code="cce.error.InternalError"),
    Fault(UP, status=503, code="ServiceUnavailable", apply=True),
    Fault(UP, hang_up=True, apply=True),
    Fault(UP, status=200, body=b'{"requestID":"r"}', apply=True),
    Fault(GET, status=200, body=b'{"instanceGroup":{"sp'),
    Fault(LIST, status=200, body=b"<html/>"),
    Fault(LIST, status=502, body=b"<html>Bad Gateway</html>"),
    Fault("^GET .*/task/", status=500, code="cce.error.InternalError"),
    Fault("^GET .*/task/", status=404, code="cce.warning.NoSuchObject"),
], ids=str)
def test_what_goes_wrong_once_is_done_in_the_end_and_once(make, baidu, fault):
    group = baidu.add(2)
    baidu.inject(fault)
    daemon = make()
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 120, what="it has grown")
    eventually(lambda: daemon.records("action", outcome="applied"), 120, what="it is known")
    assert len(group.present()) == 4


@pytest.mark.parametrize("fault", [
    Fault(DOWN, status=503, code="ServiceUnavailable", apply=True),
    Fault(DOWN, hang_up=True, apply=True),
    Fault(DOWN, status=409, code="cce.warning.InstanceGroupProcessing"),
], ids=str)
def test_a_removal_whose_answer_is_lost_is_no_second_one(make, baidu, fault):
    group = baidu.add(2)
    baidu.inject(fault)
    daemon = make()
    fire(daemon, "Idle")
    eventually(lambda: group.size == 1, 120, what="one is gone")
    eventually(lambda: daemon.records("action", outcome="applied"), 120, what="it is known")
    steadily(lambda: group.size == 1, 3)


def test_a_removal_that_fails_later_is_told_and_the_node_takes_pods_again(make, make_nodes, control_plane, baidu):
    """It is accepted at first: what comes of it is asked after."""
    group = baidu.add(2)
    nodes = {n.id: f"cce://{n.machine}" for n in group.nodes}
    group.stays = "machine i-1 cannot be released: its bill is open"
    daemon = make(nodes={"cluster": "default"}, clusters=make_nodes(nodes))
    fire(daemon, "Idle")
    kept = daemon.wait_record("nodes", 90, event="kept")
    assert f"task task-ig-1 was aborted: {group.stays}" in kept["message"] and group.size == 2
    eventually(lambda: all(is_in_service(control_plane, name) for name in nodes), 60, what="the nodes take pods again")


def test_a_size_that_changes_while_a_node_is_emptied_counts_from_the_new_one(make, make_nodes, control_plane, namespace, baidu):
    """The marked node leaves all the same; who asked for a third one has it."""
    group = baidu.add(2)
    clusters = make_nodes({n.id: f"cce://{n.machine}" for n in group.nodes})
    for node in group.nodes:
        make_pod(control_plane, namespace, node.id, f"web-{node.id}")
    make_budget(control_plane, namespace, 2)
    daemon = make(nodes={"cluster": "default", "drain_timeout": "4m"}, clusters=clusters)
    fire(daemon, "Idle")
    eventually(lambda: [n for n in group.nodes if is_marked(control_plane, n.id)], 60, what="a node is drained")
    with baidu.lock:
        group.set_size(3, 0.0)
    control_plane.admin.patch(budget_path(control_plane, namespace), {"spec": {"minAvailable": 1}})
    eventually(lambda: group.size == 2, 120, what="one of three is gone")
    assert [(line, len(body["instancesToBeRemoved"])) for line, body in baidu.changed()] == [(f"PUT {GROUP}/scaledown", 1)]


@pytest.mark.parametrize("status, code, message, outcome", [
    (403, "cce.warning.AccessDenied", "Access denied.", "forbidden"),
    (400, "cce.warning.InvalidParam", "Some params are invalid.", "rejected"),
    (400, "cce.warning.QuotaExceeded", "The quota of nodes is exceeded.", "rejected"),
])
def test_what_is_refused_is_told(make, baidu, status, code, message, outcome):
    group = baidu.add(2)
    baidu.inject(Fault(UP, status=status, code=code, message=message), times=20)
    daemon = make()
    fire(daemon, "Busy")
    record = wait_words(daemon, f"HTTP {status} {code}: {message}")
    assert record["outcome"] == outcome and group.size == 2


def test_machines_that_do_not_come_are_told_of(make, baidu):
    """The change is accepted, and its task fails: nothing more is asked for."""
    group = baidu.add(2, room=3)
    daemon = make()
    fire(daemon, "Busy")
    wait_words(daemon, "task task-ig-1 was aborted: 1 machines: no stock of bcc.g5.c2m8 in zoneA")
    steadily(lambda: len(baidu.changed()) == 1 and group.size == 4, 3)


def test_what_does_not_come_is_taken_back(make, baidu):
    group = baidu.add(2, room=3)
    daemon = make(nodes={"ready_timeout": "3s"})
    fire(daemon, "Busy")
    wait_words(daemon, "did not come")
    eventually(lambda: group.size == 3, 60, what="what never came is not asked for any more")
    assert len(group.present()) == 3 and [line for line, _ in baidu.changed()][1:] == [f"PUT {GROUP}/replicas"]
    steadily(lambda: group.size == 3, 3)


def test_the_autoscaler_of_cce_is_respected(make, baidu):
    group = baidu.add(2, clusterAutoscalerSpec={"enabled": True, "minReplicas": 1, "maxReplicas": 5})
    daemon = make()
    fire(daemon, "Busy")
    wait_words(daemon, "CCE's own autoscaler (clusterAutoscalerSpec)")
    assert group.size == 2 and not baidu.changed()


def test_a_paused_group_is_left_alone(make, baidu):
    group = baidu.add(2)
    group.pause = "the account is in arrears"
    daemon = make()
    fire(daemon, "Busy")
    wait_words(daemon, "the node group is paused: the account is in arrears")
    assert group.size == 2 and not baidu.changed()


def test_a_group_that_is_not_there(make, baidu):
    baidu.add(2)
    daemon = make(name="cce-ig-2")
    fire(daemon, "Busy")
    record = wait_words(daemon, "cce.warning.NoSuchObject")
    assert record["outcome"] == "target_not_found" and record["request_id"].startswith("bce-req-")
