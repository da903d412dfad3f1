"""Did it help? A workload whose pods are never ready stops steps up; the effect of an action is recorded once; the command."""
import copy
import json
import subprocess

import pytest

from harness.daemon import find_binary
from harness.dashboards import read_queries, wait_for_data
from harness.deploy import install
from harness.kube import path_of
from harness.notification import alert, notification
from harness.wait import eventually, steadily
from test_targets import make_workload

QUIET = 2.0


def busy(status="firing"):
    return notification(alert({"alertname": "Busy"}, status=status))


@pytest.fixture
def make(control_plane, make_daemon):
    """make(namespace, **target): a daemon for the Deployment `web` of a real API server, with the shipped rights."""
    install(control_plane, "namespace.yaml", "serviceaccount.yaml", "role.yaml", "role-cluster-wide.yaml")
    kubeconfig = control_plane.write_kubeconfig("effects", token=control_plane.account_token("alertscaler", "alertscaler"))

    def start(namespace, **target):
        return make_daemon(rules_of(namespace, **target), {"clusters": {"default": {"kubeconfig": str(kubeconfig)}}})
    return start


def rules_of(namespace, **target):
    return {
        "targets": {"web": {"kubernetes": {"kind": "Deployment", "namespace": namespace, "name": "web"}, "max": 20,
                            "cooldown": {"up": "1s", "down": "1s"}, **target}},
        "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "web", "scale_up": {"by": 2}},
                  {"name": "idle", "match": ['alertname="Idle"'], "target": "web", "scale_down": {"by": 1}}],
    }


def pods_of(plane, namespace):
    return plane.admin.get(f"/api/v1/namespaces/{namespace}/pods")["items"]


def set_ready(plane, namespace, count):
    """So many pods are ready, as a kubelet would say."""
    for i, pod in enumerate(sorted(pods_of(plane, namespace), key=lambda pod: pod["metadata"]["creationTimestamp"])):
        path = path_of("v1", "Pod", namespace, pod["metadata"]["name"], "status")
        ready = "True" if i < count else "False"
        plane.admin.patch(path, {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}})


def events(plane, namespace, reason):
    return [event for event in plane.admin.get(f"/api/v1/namespaces/{namespace}/events")["items"] if event["reason"] == reason]


def start_web(plane, namespace, replicas=2):
    web = copy.deepcopy(make_workload("Deployment", namespace, replicas=replicas))
    web["spec"]["template"]["spec"]["schedulerName"] = "nobody"      # so that the harness leaves its pods alone
    plane.admin.create(web)
    eventually(lambda: len(pods_of(plane, namespace)) == replicas, what="its pods")
    set_ready(plane, namespace, replicas)
    return path_of("apps/v1", "Deployment", namespace, "web")


def effects(daemon, *arguments):
    return subprocess.run([find_binary(), "effects", *arguments, str(daemon.log_file)], capture_output=True, text=True, check=False)


def test_pods_that_are_never_ready_stop_steps_up(control_plane, namespace, make):
    admin, path = control_plane.admin, start_web(control_plane, namespace)
    daemon = make(namespace, ready_timeout="1h")
    daemon.notify(busy())
    eventually(lambda: admin.replicas(path) == 4)
    eventually(lambda: [r for r in daemon.records("decision") if r["output"]["reason"] == "in_progress"], what="it is waited for")
    daemon.write_rules(rules_of(namespace, ready_timeout="3s"))     # not earlier: it could end before the lock does
    daemon.reload()
    eventually(lambda: daemon.target("web")["did_not_come"], what="the time is over")
    assert daemon.target("web")["ready"] == 2
    eventually(lambda: [r for r in daemon.records("decision") if r["output"]["reason"] == "did_not_come"], what="a stopped step")
    event, = eventually(lambda: events(control_plane, namespace, "NotReadyInTime"), what="the event")
    assert event["type"] == "Warning" and "only 2 pods are ready" in event["message"]
    assert event["involvedObject"]["name"] == "web"
    assert daemon.metrics().value("alertscaler_target_did_not_come", target="web") == 1
    steadily(lambda: admin.replicas(path) == 4, QUIET)

    daemon.kill()
    daemon.start()
    eventually(lambda: daemon.target("web")["did_not_come"], what="the stop outlasts a crash")
    steadily(lambda: admin.replicas(path) == 4, QUIET)
    assert len(events(control_plane, namespace, "NotReadyInTime")) == 1

    daemon.notify(busy("resolved"))
    daemon.notify(notification(alert({"alertname": "Idle"})))
    eventually(lambda: admin.replicas(path) == 3, what="steps down go on")
    daemon.notify(notification(alert({"alertname": "Idle"}, status="resolved")))

    eventually(lambda: len(pods_of(control_plane, namespace)) == 3, what="one pod is gone")
    set_ready(control_plane, namespace, 3)
    eventually(lambda: not daemon.target("web")["did_not_come"], timeout=60, what="another number is ready")
    assert daemon.metrics().value("alertscaler_target_did_not_come", target="web") == 0
    size = admin.replicas(path)
    daemon.notify(notification(alert({"alertname": "Busy", "again": "1"})))
    eventually(lambda: admin.replicas(path) > size, what="steps up go on")


def test_an_alert_that_resolves_has_an_effect(control_plane, namespace, make):
    admin, path = control_plane.admin, start_web(control_plane, namespace)
    daemon = make(namespace, ready_timeout="1m", cooldown={"up": "1h", "down": "1h"})
    daemon.notify(busy())
    eventually(lambda: admin.replicas(path) == 4)
    action = daemon.wait_record("action", outcome="applied", to=4)
    eventually(lambda: len(pods_of(control_plane, namespace)) == 4)
    assert not daemon.records("effect")
    set_ready(control_plane, namespace, 4)
    eventually(lambda: daemon.target("web")["ready"] == 4, timeout=30)
    daemon.kill()
    daemon.start()
    daemon.notify(busy("resolved"))
    effect = daemon.wait_record("effect")
    assert (effect["action"], effect["decision"], effect["rule"]) == (action["id"], action["decision"], "busy")
    assert (effect["from"], effect["to"], effect["ended"]) == (2, 4, "resolved")
    assert 0 < effect["ready_after"] < 120 and 0 < effect["resolved_after"] < 120
    daemon.notify(busy("resolved"))
    daemon.restart()
    assert len(daemon.records("effect")) == 1
    assert daemon.wait_record("start")

    said = effects(daemon)
    assert said.returncode == 0, said.stderr
    titles, row = said.stdout.splitlines()
    assert titles.startswith("RULE") and row.split()[:4] == ["busy", "1", "1", "0"]
    rule, = json.loads(effects(daemon, "-o", "json", "--since", "1h").stdout)["rules"]
    assert (rule["rule"], rule["actions"], rule["resolved"], rule["went_back"]) == ("busy", 1, 1, 0)
    assert rule["resolved_after"]["median"] == rule["resolved_after"]["p90"] == effect["resolved_after"]
    replayed = subprocess.run([find_binary(), "replay", str(daemon.log_file)], capture_output=True, text=True, check=False)
    assert replayed.returncode == 0, replayed.stdout
    explained = subprocess.run([find_binary(), "explain", "--target", "web", "--at", action["time"], str(daemon.log_file)],
                               capture_output=True, text=True, check=True).stdout
    assert "its alert was resolved after" in explained
    assert daemon.target("web")["ineffective"] == []


def test_without_effects_there_is_nothing_to_show(control_plane, namespace, make):
    start_web(control_plane, namespace)
    daemon = make(namespace)
    said = effects(daemon)
    assert (said.returncode, len(said.stdout.splitlines())) == (1, 1)


@pytest.mark.monitoring
@pytest.mark.seconds(120)
def test_the_panels_about_effects_have_data(control_plane, namespace, make, make_prometheus):
    """That of an ineffective rule needs hours."""
    admin, path = control_plane.admin, start_web(control_plane, namespace)
    daemon = make(namespace, ready_timeout="1m")
    prometheus = make_prometheus(targets=[daemon.address])

    def act(size, scraped):
        firing = alert({"alertname": "Busy", "to": str(size)})
        daemon.notify(notification(firing))
        eventually(lambda: admin.replicas(path) == size)
        eventually(lambda: len(pods_of(control_plane, namespace)) == size)
        set_ready(control_plane, namespace, size)
        daemon.notify(notification({**firing, "status": "resolved", "endsAt": firing["startsAt"]}))
        eventually(lambda: prometheus.query(f"sum(alertscaler_time_to_ready_seconds_count) == {scraped}"), 60, what="it is scraped")

    act(4, 1)
    act(6, 2)
    queries = read_queries("overview.json", rows=lambda row: row == "Did it help?")
    wait_for_data(prometheus, {place: query for place, query in queries.items() if "alertscaler_rule_ineffective" not in query})
