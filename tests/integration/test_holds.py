"""`hold` and `fallback` with everything real: a Prometheus that loses the number, workloads of the real API server. What was
decided is told, and decided anew by `explain` and `replay`."""
import datetime
import subprocess

import pytest

from harness.deploy import install
from harness.kube import path_of
from harness.notification import alert, notification
from harness.wait import eventually, steadily
from test_targets import make_workload

QUERY = "sum(orders_waiting)"


@pytest.fixture
def make(control_plane, namespace, make_daemon, tmp_path):
    """make(prometheus=url): a Deployment of 3 replicas, and a daemon whose target it is."""
    install(control_plane, "namespace.yaml", "serviceaccount.yaml", "role.yaml", "role-cluster-wide.yaml")
    control_plane.admin.create(make_workload("Deployment", namespace, "web", 3))
    path = path_of("apps/v1", "Deployment", namespace, "web")
    kubeconfig = control_plane.write_kubeconfig("holds", token=control_plane.account_token("alertscaler", "alertscaler"))

    def start(prometheus=None, **more):
        def rule(name, **keys):
            return {"name": name, "match": [f'alertname="{name}"'], "target": "web", **keys}
        address = {"kind": "Deployment", "namespace": namespace, "name": "web"}
        rules = {
            "targets": {"web": {"kubernetes": address, "min": 1, "max": 20, "cooldown": {"up": "0s", "down": "0s"}}},
            "rules": [
                rule("Orders", track={"query": QUERY, "average_value": 10}, every="1s",
                     fallback={"after": "4s", "at_least": 6}) if prometheus else rule("Orders", scale_up={"by": 1}),
                rule("Busy", scale_up={"by": 2}, once=True), rule("Idle", scale_down={"by": 1}, guard="none", every="1s"),
                *(rule(name, hold=way) for name, way in (("HoldDown", "down"), ("HoldUp", "up"), ("HoldBoth", "both")))]}
        config = {"clusters": {"default": {"kubeconfig": str(kubeconfig)}}, **more}
        if prometheus:
            config["prometheus"] = {"url": prometheus}
        return make_daemon(rules, config)

    return start, lambda: control_plane.admin.replicas(path), lambda n: control_plane.admin.patch(path, {"spec": {"replicas": n}})


def fire(daemon, name, status="firing", **labels):
    daemon.notify(notification(alert({"alertname": name, **labels}, status=status)))


def decided(daemon, reason):
    return [record for record in daemon.records("decision") if record["output"]["reason"] == reason]


def run(daemon, *args):
    return subprocess.run([daemon.binary, *args], capture_output=True, text=True, check=True).stdout


def explain(daemon, decision):
    return run(daemon, "explain", "--target=web", f"--at={decision['time']}", daemon.log_file)


def parse(moment):
    return datetime.datetime.fromisoformat(moment.replace("Z", "+00:00"))


def test_what_a_rule_holds_stays_until_its_alert_ends(make):
    start, size, _ = make
    daemon = start()
    fire(daemon, "HoldDown")
    fire(daemon, "Idle")
    (held, *_) = eventually(lambda: decided(daemon, "held"))
    assert held["output"]["held_by"] == {"by": "rule", "name": "HoldDown"}
    assert daemon.target("web")["last_decision"]["reason"] == "held"
    assert daemon.target("web")["holds"] == [{"direction": "down", "by": "rule", "name": "HoldDown", "until": None}]
    assert "Nothing goes down: the rule <code>HoldDown</code> holds it while its alert fires." in daemon.get("/targets/web").text
    assert "down: held by rule HoldDown" in run(daemon, "status", f"--url={daemon.url}")
    steadily(lambda: size() == 3, seconds=3)
    fire(daemon, "Busy")
    eventually(lambda: size() == 5, what="the other way is free")
    told = explain(daemon, held)
    assert "held" in told and "HoldDown" in told
    fire(daemon, "Busy", status="resolved") # what fires keeps its own step
    fire(daemon, "HoldDown", status="resolved")
    fire(daemon, "Idle", again="yes")
    eventually(lambda: size() < 5, what="nothing holds it any more")
    daemon.stop()
    assert " 0 differ" in run(daemon, "replay", daemon.log_file)


@pytest.mark.parametrize("hold, goes", [("HoldUp", "Idle"), ("HoldBoth", None)])
def test_up_and_both(make, hold, goes):
    start, size, _ = make
    daemon = start()
    fire(daemon, hold)
    fire(daemon, "Busy")
    (held, *_) = eventually(lambda: decided(daemon, "held"))
    assert held["output"]["held_by"] == {"by": "rule", "name": hold}
    fire(daemon, "Busy", status="resolved")
    fire(daemon, "Idle")
    if goes:
        eventually(lambda: size() == 2)
    else:
        steadily(lambda: size() == 3, seconds=3)


def test_a_number_that_is_lost_raises_the_size_and_lowers_nothing(make, make_prometheus, exporter):
    start, size, resize = make
    exporter.set("orders_waiting", 30)
    prometheus = make_prometheus(targets=[exporter.address])
    eventually(lambda: prometheus.query(QUERY))
    daemon = start(prometheus.url)
    fire(daemon, "Orders")
    eventually(lambda: decided(daemon, "within_tolerance") or decided(daemon, "no_change"))
    exporter.remove("orders_waiting")
    eventually(lambda: decided(daemon, "metric_unavailable"))
    eventually(lambda: size() == 6)
    (grown,) = eventually(lambda: decided(daemon, "scaled"))
    assert (grown["output"]["replicas"], grown["output"]["desired"]) == (3, 6), "it stayed until then"
    # The last time that it was lost: a scrape may have failed before, and the next one brought it again.
    lost = [record for record in decided(daemon, "metric_unavailable") if record["seq"] < grown["seq"]][-1]
    proposal = grown["input"]["proposals"][0]
    waited = parse(grown["input"]["now"]) - parse(proposal["unavailable_since"])
    assert proposal["fallback"] == {"after": 4, "at_least": 6} and waited >= datetime.timedelta(seconds=4)
    # Since the first decision without it; the next comes a second later. The two clocks are not read in one moment.
    assert abs(parse(lost["input"]["now"]) - parse(proposal["unavailable_since"])) < datetime.timedelta(milliseconds=500)
    resize(9)
    steadily(lambda: size() == 9, seconds=4, what="it is a size at least")
    assert "fallback" in explain(daemon, grown)
    exporter.set("orders_waiting", 120)
    eventually(lambda: size() == 12, what="the number is there again")
    daemon.stop()
    assert " 0 differ" in run(daemon, "replay", daemon.log_file)
