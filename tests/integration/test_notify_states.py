"""What people are told of requests for approvals, of others at the same size, and of rules that do not help: the alerts come to a
real Alertmanager's receiver, begin and end as docs/notify.md says, and come from a daemon that was killed meanwhile."""
import re
import subprocess

import pytest

from harness.kube import path_of
from harness.node_group import HttpNodeGroup
from harness.notification import alert, notification
from harness.past import wait
from harness.recorder import Recorder
from harness.wait import eventually, steadily
from harness.webhook import Webhook

pytestmark = pytest.mark.monitoring

HOUR = 3600


@pytest.fixture
def people(started):
    return started(Webhook())


@pytest.fixture
def events(started):
    return started(Recorder())


@pytest.fixture
def group(started):
    return started(HttpNodeGroup(4))


@pytest.fixture
def make(make_daemon, make_alertmanager, people, events, tmp_path):
    """A daemon that tells a real Alertmanager, whose one receiver is `people`, and `events`."""
    def make(rules, on, config=None):
        manager = make_alertmanager(webhook=people.url)
        (tmp_path / "token").write_text("secret")
        daemon = make_daemon(rules, {
            "instance": "here", "providers": {"mine": {"type": "http"}},
            "receiver": {"tokens": [{"name": "ada", "file": str(tmp_path / "token"), "permissions": ["notify", "read", "admin"]}]},
            "notify": [{"name": "on-call", "alertmanager": {"urls": [manager.url]}, "on": on},
                       {"name": "events", "webhook": {"url": events.url}, "on": on}],
            **(config or {}),
        }, flags=["--web.enable-admin-api", "--web.external-url=http://scaler.example"], start=False)
        daemon.headers = {"Authorization": "Bearer secret"}
        return daemon.start()
    return make


def make_rules(group, **rule):
    return {"targets": {"workers": {"node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 40,
                                    "cooldown": {"up": "0s", "down": "0s"}}},
            "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 10}, "once": True, **rule}]}


def fire(daemon, *status, **labels):
    daemon.notify(notification(alert({"alertname": "Busy", **labels}, *status)))


def waiting(daemon):
    return [each for each in daemon.get("/api/v1/approvals").json["data"] if each["answer"] == "waiting"]


def test_a_change_that_waits_is_told_until_it_is_answered(make, group, people, events):
    daemon = make(make_rules(group, approval={"above": 3}), ["needs_approval"])
    fire(daemon)
    request = eventually(lambda: waiting(daemon))[0]
    [began] = eventually(lambda: people.alerts("AlertscalerNeedsApproval"))
    assert began["labels"] == {"alertname": "AlertscalerNeedsApproval", "alertscaler_instance": "here", "reason": "needs_approval",
                               "approval": request["id"], "rule": "busy", "target": request["target"]}
    assert began["annotations"] == {
        "decision": request["decision"], "from": "4", "to": "14", "target_name": "workers",
        "summary": f"workers waits for an approval: rule busy wants it from 4 to 14 (alertscaler approve {request['id']})"}
    assert began["generatorURL"] == f"http://scaler.example/decisions/{request['decision']}"
    daemon.kill()
    daemon.start()
    steadily(lambda: not people.alerts("AlertscalerNeedsApproval", "resolved"), 2)
    assert daemon.post(f"/api/v1/approvals/{request['id']}/approve", {"reason": "the sale"}).status == 200
    [ended] = eventually(lambda: people.alerts("AlertscalerNeedsApproval", "resolved"))
    assert ended["labels"] == began["labels"] and ended["startsAt"] == began["startsAt"]
    eventually(lambda: len(events.events("needs_approval")) == 2)
    begin, end = events.events("needs_approval")
    assert (begin["data"]["phase"], end["data"]["phase"], end["data"]["started"]) == ("begin", "end", begin["data"]["started"])
    assert end["data"]["message"] == "approved by ada: the sale"
    assert end["data"]["summary"] == "workers waits for no approval any more: approved by ada: the sale"
    assert end["id"] == daemon.wait_record("approval", event="approved")["hash"]
    eventually(lambda: group.applied == [14], what="the approved size")


ENDS = {
    "denied": (lambda daemon, request: daemon.post(f"/api/v1/approvals/{request['id']}/deny", {}), "denied by ada: no reason was given"),
    "over": (lambda daemon, request: fire(daemon, "resolved"), "void: the incident that asked is over"),
    "changed": (lambda daemon, request: reload(daemon, scale_up={"by": 11}), "void: the rule or its target was changed"),
    "expired": (lambda daemon, request: wait(daemon, 16 * 60), "expired: nobody answered in time"),
}


def reload(daemon, **rule):
    daemon.rules["rules"][0] |= rule
    daemon.write_rules(daemon.rules)
    daemon.reload()


@pytest.mark.parametrize("way", ENDS)
def test_how_a_request_ends(make, group, people, events, way):
    rules = make_rules(group, approval={"above": 3})
    daemon = make(rules, ["needs_approval"])
    daemon.rules = rules
    fire(daemon)
    request = eventually(lambda: waiting(daemon))[0]
    eventually(lambda: people.alerts("AlertscalerNeedsApproval"))
    end, said = ENDS[way]
    end(daemon, request)
    eventually(lambda: people.alerts("AlertscalerNeedsApproval", "resolved"))
    assert eventually(lambda: events.events("needs_approval", phase="end"))[0]["data"]["message"] == said
    assert group.applied == []
    if way == "changed":        # it is asked anew, for the new size
        eventually(lambda: [each["to"] for each in waiting(daemon)] == [15])
    else:
        steadily(lambda: not waiting(daemon), 1)


def test_an_hour_later_the_rule_asks_again(make, group, people):
    daemon = make(make_rules(group, approval={"above": 3}), ["needs_approval"])
    fire(daemon)
    first = eventually(lambda: waiting(daemon))[0]
    wait(daemon, 16 * 60)
    daemon.wait_record("approval", event="expired")
    fire(daemon, n="2")         # another incident of the rule does not ask meanwhile
    eventually(lambda: daemon.records("decision")[-1]["output"]["reason"] == "not_approved")
    steadily(lambda: not waiting(daemon), 1)
    wait(daemon, HOUR)
    second = eventually(lambda: waiting(daemon))[0]
    assert second["id"] != first["id"] and second["to"] == 14
    eventually(lambda: len({each["labels"]["approval"] for each in people.alerts("AlertscalerNeedsApproval")}) == 2)
    assert group.applied == []


@pytest.mark.parametrize("way", ["resumed", "over"])
def test_a_rule_that_does_not_help_is_told_until_its_hold_ends(make, group, people, events, tmp_path, way):
    """The hours pass while the daemon is stopped."""
    daemon = make(make_rules(group, ineffective_after=1), ["ineffective"])
    fire(daemon)
    eventually(lambda: group.applied == [14])
    daemon.wait_record("action", outcome="applied")
    wait(daemon, HOUR + 60)
    effect = daemon.wait_record("effect")
    assert effect["ended"] == "not_resolved" and effect["held_until"]
    [told] = eventually(lambda: people.alerts("AlertscalerIneffective"))
    assert told["labels"] == {"alertname": "AlertscalerIneffective", "alertscaler_instance": "here", "reason": "ineffective",
                              "rule": "busy", "target": effect["target"]}
    assert told["annotations"]["summary"] == "workers: rule busy is held, because its last actions did not help"
    assert told["annotations"]["message"]
    event, = eventually(lambda: events.events("ineffective"))
    assert event["data"]["phase"] == "begin" and event["id"] == effect["hash"]
    daemon.restart()
    assert daemon.target("workers")["ineffective"] == [{"rule": "busy", "until": effect["held_until"]}]
    assert daemon.metrics().value("alertscaler_rule_ineffective", rule="busy", target="workers") == 1
    assert ">busy</a> did not help" in daemon.get("/").text
    said = subprocess.run([daemon.binary, "status", f"--url={daemon.url}", f"--token-file={tmp_path / 'token'}"], text=True,
                          capture_output=True, check=True).stdout
    assert re.search("workers: the rule busy did not help: held for another 23h[0-9]+m, or until resume", said), said
    fire(daemon, n="2")
    decision = eventually(lambda: daemon.records("decision")[-1] if daemon.records("decision")[-1]["output"]["reason"] == "ineffective"
                          else None, what="the next alert changes nothing")
    explained = subprocess.run([daemon.binary, "explain", "--target=workers", f"--at={decision['time']}", str(daemon.log_file)], text=True,
                               capture_output=True, check=True).stdout
    assert "ineffective" in explained and "busy" in explained
    steadily(lambda: len(events.events("ineffective")) == 1 and group.applied == [14], 1)
    if way == "resumed":
        answer = daemon.post("/api/v1/targets/workers/resume", {"reason": "mended"})
        assert answer.status == 200, answer.text
    else:
        wait(daemon, 24 * HOUR)
    event, = eventually(lambda: events.events("ineffective", phase="end"))
    assert event["data"]["rule"] == "busy"
    ended = daemon.wait_record("notify", event="ended")
    assert (ended["state"], ended["rule"], ended["target_name"]) == ("ineffective", "busy", "workers")
    [over] = eventually(lambda: people.alerts("AlertscalerIneffective", "resolved"))
    assert over["annotations"]["summary"] == "workers: rule busy is not held any more"
    assert daemon.target("workers")["ineffective"] == []
    assert not daemon.metrics().sum("alertscaler_rule_ineffective", rule="busy")
    eventually(lambda: group.applied == [14, 24], what="the second alert gets what it wants")
    logged = subprocess.run([daemon.binary, "log", "--kind=notify", str(daemon.log_file)], text=True, capture_output=True, check=True).stdout
    assert "ineffective of rule busy is over" in logged
    replayed = subprocess.run([daemon.binary, "replay", str(daemon.log_file)], text=True, capture_output=True, check=False)
    assert replayed.returncode == 0 and " 0 differ" in replayed.stdout


@pytest.mark.kubernetes
def test_a_contended_target_is_told_until_it_is_resumed(make, control_plane, namespace, people, tmp_path):
    from harness.control_plane import ADMIN_TOKEN
    from test_others import Opponent, deployment
    control_plane.admin.create(deployment("web"), namespace)
    path = path_of("apps/v1", "Deployment", namespace, "web")
    kubeconfig = control_plane.write_kubeconfig(f"told-{namespace}", token=ADMIN_TOKEN)
    opponent = Opponent(control_plane, path, 2)
    try:
        daemon = make({
            "targets": {"web": {"kubernetes": {"kind": "Deployment", "namespace": namespace, "name": "web"}, "max": 20,
                                "cooldown": {"up": "1s", "down": "1s"}}},
            "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "web", "scale_up": {"by": 2}, "every": "1s"}],
        }, ["contended"], {"clusters": {"default": {"kubeconfig": str(kubeconfig)}}})
        fire(daemon)
        [began] = eventually(lambda: people.alerts("AlertscalerContended"), 60)
        assert began["annotations"]["message"] == "argocd-controller"
        assert began["annotations"]["summary"] == "web is left alone for an hour: argocd-controller set its size back three times"
    finally:
        opponent.stop()
    assert daemon.post("/api/v1/targets/web/resume", {"reason": "it is mended"}).status == 200
    [ended] = eventually(lambda: people.alerts("AlertscalerContended", "resolved"))
    assert ended["labels"] == began["labels"] and ended["startsAt"] == began["startsAt"]
