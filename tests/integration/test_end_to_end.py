"""The main job with everything real: PromQL alerts, Prometheus, Alertmanager, alertscaler with the rights of the shipped role, Kubernetes.

One daemon, one Prometheus, one Alertmanager and one namespace serve all tests. What a workload is said to bear is a gauge that the test
sets; its labels say which workload it is, and lead the alert to it.
"""
import datetime
import itertools

import pytest

from harness import alertmanager as alertmanagers, control_plane as kubernetes, prometheus as prometheuses
from harness.alertmanager import Alertmanager
from harness.daemon import Daemon
from harness.exporter import Exporter
from harness.kube import path_of
from harness.prometheus import Prometheus
from harness.wait import eventually, steadily
from test_targets import WORKERS, events, install, make_workload

pytestmark = pytest.mark.monitoring

NAMESPACE = "end-to-end"
KINDS = ["Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "Worker"]
START, MIN, MAX, LOCK = 3, 2, 6, 2
UP, DOWN = [5, 6], [5, 4, 3, 2]         # by two up to the bound, by one down to the bound
HIGH, NORMAL, LOW = 95, 50, 5

# Neither a scrape that a busy machine was too slow for, nor a Prometheus that stands still for some seconds, ends an alert.
ALERTS = [
    {"alert": "Overloaded", "expr": "last_over_time(load[1m]) > 80", "labels": {"scale": "true"}},
    {"alert": "Idle", "expr": "last_over_time(load[1m]) < 20", "labels": {"scale": "true"}},
    {"alert": "Surge", "expr": "last_over_time(surge[1m]) > 80", "labels": {"scale": "true"}},
]
RESEND = {"resend_delay": "5s"}


def make_rules():
    targets, rules = {}, []
    for kind in KINDS:
        address = {"kind": kind, "namespace": "{{ .Labels.namespace }}", "name": "{{ .Labels.name }}"}
        if kind == "Worker":
            address["apiVersion"] = "example.com/v1"
        target = {"kubernetes": address, "allow": {"namespaces": [NAMESPACE], "names": ["*"]}, "min": MIN, "max": MAX}
        targets[kind] = {**target, "cooldown": {"up": f"{LOCK}s", "down": f"{LOCK}s"}}
        rules += [{"name": f"{kind}-{alert}", "match": [f'alertname="{alert}"', f'kind="{kind}"'], "target": kind, **action}
                  for alert, action in (("Overloaded", {"scale_up": {"by": 2}}), ("Idle", {"scale_down": {"by": 1}}))]
        if kind == "Deployment":    # without a lock: only the incident keeps it from a second step
            targets["unlocked"] = {**target, "max": 50, "cooldown": {"up": "0s", "down": "0s"}}
    rules.append({"name": "surge", "match": ['alertname="Surge"'], "target": "unlocked", "once": True, "scale_up": {"by": 1}})
    return {"targets": targets, "rules": rules}


class World:
    def __init__(self, plane, directory):
        self.plane = plane
        self.exporter = Exporter()
        self.token_file = directory / "webhook-token"
        self.token_file.write_text("sesame\n")
        install(plane, "namespace.yaml", "serviceaccount.yaml", "role.yaml", "role-cluster-wide.yaml", "role-custom-resource.yaml")
        kubeconfig = plane.write_kubeconfig("end-to-end", token=plane.account_token("alertscaler", "alertscaler"))
        self.daemon = Daemon(directory / "alertscaler", make_rules(), {
            "clusters": {"default": {"kubeconfig": str(kubeconfig)}},
            "receiver": {"tokens": [{"name": "alertmanager", "file": str(self.token_file)}]},
        }).start()
        self.daemon.headers = {"Authorization": "Bearer sesame"}
        self.credentials = {"authorization": {"credentials_file": str(self.token_file)}}
        repeats = {"receiver": "alertscaler", "matchers": ['alertname="Idle"'], "repeat_interval": "1s"}  # each step down needs one
        self.alertmanager = Alertmanager(directory / "alertmanager", self.webhook, http_config=self.credentials,
                                         route={"routes": [repeats]}).start()
        self.prometheus = Prometheus(directory / "prometheus", [self.exporter.address], [self.alertmanager.url], ALERTS[:2],
                                     **RESEND).start()

    @property
    def webhook(self):
        return self.daemon.url + "/webhook"

    def create(self, kind, name):
        return self.plane.admin.create(make_workload(kind, NAMESPACE, name, START))

    def size(self, item):
        return self.plane.admin.replicas(path_of(item["apiVersion"], item["kind"], NAMESPACE, item["metadata"]["name"]))

    def load(self, item, value, gauge="load"):
        self.exporter.set(gauge, value, namespace=NAMESPACE, kind=item["kind"], name=item["metadata"]["name"])

    def records(self, kind, item):
        """Of its target."""
        end = f"/{item['kind']}/{NAMESPACE}/{item['metadata']['name']}"
        return [r for r in self.daemon.records(kind) if r["target"].endswith(end)]

    def steps(self, item):
        return [r["to"] for r in self.records("action", item) if r["outcome"] == "applied"]

    def reasons(self, item):
        return {r["output"]["reason"] for r in self.records("decision", item)}

    def outcomes(self, name, status="firing"):
        """Of the alerts about the workload so named, in the order of their arrival."""
        return [alert["outcome"] for r in self.daemon.notifications() for alert in r["alerts"]
                if alert["labels"].get("name") == name and alert["status"] == status]

    def stop(self):
        self.prometheus.stop()
        self.alertmanager.stop()
        self.exporter.stop()
        self.daemon.stop()


@pytest.fixture(scope="module")
def world(session_control_plane, tmp_path_factory):
    for reason in (kubernetes.missing(), alertmanagers.missing(), prometheuses.missing()):
        if reason:
            pytest.skip(reason)
    admin = session_control_plane.admin
    if not admin.request("GET", "/apis/example.com/v1/workers").ok:
        admin.create(WORKERS)
        eventually(lambda: admin.request("GET", "/apis/example.com/v1/workers").ok, what="workers are served")
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    eventually(lambda: session_control_plane.has_account(NAMESPACE), what="pods can be created")
    world = World(session_control_plane, tmp_path_factory.mktemp("end-to-end"))
    yield world
    world.stop()


# One story for all kinds, told once and read by the tests below.


@pytest.fixture(scope="module")
def story(world):
    """Overloaded, then neither, then idle: the size of each after each part."""
    items = {kind: world.create(kind, "web") for kind in KINDS}
    sizes = []

    def play(value, until, what):
        for item in items.values():
            world.load(item, value)
        eventually(lambda: all(until(item) for item in items.values()), 90, 0.2, what)
        sizes.append({kind: world.size(item) for kind, item in items.items()})

    def closed(item):
        return [r for r in world.daemon.records("incident", event="closed") if r["labels"].get("kind") == item["kind"]]

    play(HIGH, lambda item: "at_max" in world.reasons(item), "all are at their maximum")
    play(NORMAL, closed, "all alerts are resolved")
    steadily(lambda: {world.size(item) for item in items.values()} == {MAX}, LOCK + 1, 0.2, "resolved does not scale down")
    play(LOW, lambda item: "at_min" in world.reasons(item), "all are at their minimum")
    play(NORMAL, lambda item: len(closed(item)) == 2, "all alerts are resolved again")
    return items, sizes


@pytest.mark.seconds(400)
@pytest.mark.parametrize("kind", KINDS)
def test_alerts_scale_up_and_down_again(world, story, kind):
    items, sizes = story
    assert [part[kind] for part in sizes] == [MAX, MAX, MIN, MIN]
    assert world.steps(items[kind]) == UP + DOWN
    assert {r["outcome"] for r in world.records("action", items[kind])} <= {"applied", "conflict"}
    # The controllers have seen it, too.
    if kind != "Worker":
        path = path_of(items[kind]["apiVersion"], kind, NAMESPACE, "web")
        world.plane.admin.wait(path, lambda found: found["status"].get("readyReplicas") == MIN)


@pytest.mark.parametrize("kind", KINDS)
def test_steps_keep_the_cooldown_and_the_bounds(world, story, kind):
    items, _ = story
    done = [r for r in world.records("action", items[kind]) if r["outcome"] == "applied"]
    assert all(MIN <= r["to"] <= MAX for r in done)
    times = [datetime.datetime.fromisoformat(r["time"].replace("Z", "+00:00")) for r in done]
    for (before, at), (after, later) in itertools.pairwise(zip(done, times)):
        gap = (later - at).total_seconds()
        assert gap >= LOCK - 0.05, f"{before['to']} -> {after['to']} after {gap} s"
    assert world.reasons(items[kind]) >= {"scaled", "at_max", "at_min"}


@pytest.mark.parametrize("kind", KINDS)
def test_each_step_is_an_event_on_the_object(world, story, kind):
    items, _ = story
    found = eventually(lambda: (seen := events(world.plane, items[kind])) and sum(e["count"] for e in seen) >= len(UP + DOWN) and seen)
    assert {(e["type"], e["reason"]) for e in found} == {("Normal", "SuccessfulRescale")}
    decisions = {r["decision"] for r in world.records("action", items[kind])}
    assert all(any(d in e["message"] or d in str(e["metadata"].get("annotations")) for d in decisions) for e in found), found


def test_the_story_is_whole_in_log_and_metrics(world, story):
    metrics = world.daemon.metrics()
    assert metrics.sum("alertscaler_actions_total", target_kind="kubernetes", outcome="applied") >= len(KINDS) * len(UP + DOWN)
    counted = metrics.sum("alertscaler_decisions_total", rule="Deployment-Overloaded", reason="scaled")
    logged = [r for r in world.daemon.records("decision")
              if (r["output"]["rule"], r["output"]["reason"]) == ("Deployment-Overloaded", "scaled")]
    assert counted == len(logged) >= len(UP), "more than once where the object's controller was faster"
    firing = [r for r in world.daemon.notifications() if any(a["labels"].get("name") == "web" for a in r["alerts"])]
    assert {r["credential"] for r in firing} == {"alertmanager"} and {r["receiver"] for r in firing} == {"alertscaler"}


# Further alerts through the same servers


def test_silence_keeps_quiet(world):
    quiet, loud = world.create("Deployment", "quiet"), world.create("Deployment", "loud")
    silence = world.alertmanager.silence(name="quiet")
    world.load(quiet, HIGH)
    world.load(loud, HIGH)
    eventually(lambda: world.size(loud) == MAX, 60)
    assert world.size(quiet) == START and not world.outcomes("quiet")
    world.alertmanager.unsilence(silence)
    eventually(lambda: world.size(quiet) == MAX, 60)
    for item in (quiet, loud):
        world.load(item, NORMAL)


def test_labels_reach_only_what_is_allowed(world):
    world.exporter.set("load", HIGH, namespace="kube-system", kind="Deployment", name="stray")
    world.exporter.set("load", HIGH, namespace=NAMESPACE, kind="Deployment", name="../x?y")
    for name in ("stray", "../x?y"):
        assert eventually(lambda name=name: world.outcomes(name))[0] == "target_not_allowed"
        world.exporter.remove("load", namespace="kube-system", kind="Deployment", name=name)
        world.exporter.remove("load", namespace=NAMESPACE, kind="Deployment", name=name)


def test_an_alertmanager_without_the_token_is_denied(world, make_alertmanager):
    item = world.create("Deployment", "guarded")
    stranger = make_alertmanager(webhook=world.webhook, name="stranger")
    stranger.fire(alertname="Overloaded", namespace=NAMESPACE, kind="Deployment", name="guarded")
    denied = world.daemon.wait_record("denied")
    assert (denied["status"], denied["handler"]) == (401, "webhook")
    eventually(lambda: "unexpected status code 401" in stranger.process.log_text(), what="it is told so")
    assert world.size(item) == START and not world.outcomes("guarded")


def surge(world, item, members, make_prometheus):
    """A Prometheus of its own tells all members; two incidents, one after the other."""
    name = item["metadata"]["name"]
    make_prometheus(targets=[world.exporter.address], alertmanagers=[m.url for m in members], rules=ALERTS[2:], **RESEND)
    world.load(item, HIGH, "surge")
    eventually(lambda: world.size(item) == START + 1, 60)
    return name


def test_meshed_alertmanagers_lead_to_one_step(world, make_alertmanager_cluster, make_prometheus):
    item = world.create("Deployment", "meshed")
    members = make_alertmanager_cluster(webhook=world.webhook, http_config=world.credentials)
    name = surge(world, item, members, make_prometheus)
    # Longer than the second one waits before it looks whether the first has sent.
    steadily(lambda: world.size(item) == START + 1, 4, 0.2)
    assert world.outcomes(name).count("queued") == 1
    world.load(item, NORMAL, "surge")
    eventually(lambda: "queued" in world.outcomes(name, "resolved"), 60)
    # A member that looked at the alert while it fired, and waits for its turn, finds the other's "resolved" in the log of notifications
    # and sends the firing again: it is stale. If the alert fires anew before that member has sent the end as well, all members take the
    # new firing for the one that was sent last, and keep quiet for the repeat_interval.
    eventually(lambda: all(member.has_flushed_end() for member in members), what="nobody is about to send the first firing again")
    world.load(item, HIGH, "surge")

    def has_stepped_again():
        assert world.steps(item) == [START + 1, START + 2], (world.outcomes(name), world.outcomes(name, "resolved"))
        return True

    eventually(has_stepped_again, 60)
    world.load(item, NORMAL, "surge")


def test_unmeshed_alertmanagers_lead_to_one_step(world, make_alertmanager, make_prometheus):
    item = world.create("Deployment", "unmeshed")
    members = [make_alertmanager(webhook=world.webhook, http_config=world.credentials, name=name) for name in ("one", "two")]
    name = surge(world, item, members, make_prometheus)
    # It is a repeat, and the rule, which acts once, may be through with it by then.
    eventually(lambda: {"duplicate", "max_steps"} & set(world.outcomes(name)), 60, what="the second one has sent it, too")
    steadily(lambda: world.size(item) == START + 1, 2, 0.2)
    world.load(item, NORMAL, "surge")
    eventually(lambda: len(world.outcomes(name, "resolved")) >= 2, 60)
    assert world.outcomes(name).count("queued") == 1 and world.outcomes(name, "resolved").count("queued") == 1
    world.load(item, HIGH, "surge")
    eventually(lambda: world.steps(item) == [START + 1, START + 2], 60)
    steadily(lambda: world.size(item) == START + 2 and len(world.steps(item)) == 2, 2, 0.2)
    world.load(item, NORMAL, "surge")
