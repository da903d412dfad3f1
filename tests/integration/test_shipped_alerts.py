"""Alerts of deploy/prometheus fire in a real Prometheus that scrapes a daemon in the state that the alert describes.

promtool tests when the alerts fire, with series that a person wrote (deploy/prometheus/alertscaler.rules.test.yml). Here the series
are those of a daemon. The rules are those of the file without `for`; the thresholds are those of the file. ELSEWHERE has the alerts
that do not fire here. tests/docs/test_series.py compares the metrics, labels and words of all alerts with the program.
"""
import contextlib
import itertools
import json
import pathlib
import re
import resource
import socket
import sqlite3

import pytest
import yaml

from harness.control_plane import ADMIN_TOKEN
from harness.kube import path_of
from harness.node_group import Fault
from harness.notification import alert, notification
from harness.past import MICROSECONDS, wait
from harness.wait import eventually
from test_effects import start_web
from test_others import Opponent, deployment

pytestmark = pytest.mark.monitoring

FILE = pathlib.Path(__file__).parents[2] / "deploy/prometheus/alertscaler.rules.yml"
GROUPS = yaml.safe_load(FILE.read_text())["groups"]
RULES = [rule for group in GROUPS for rule in group["rules"]]

# test: the alerts that fire in it
FIRED = {}


def fires(*names):
    def register(test):
        FIRED[test.__name__] = names
        return test
    return register


# alert: why it does not fire here, or which test reads its series from a daemon in that state
ELSEWHERE = {
    "AlertscalerStorageSlow": "the disk is not slow; the names are compared",
    "AlertscalerQueueLong": "the disk is not slow; the names are compared",
    "AlertscalerMemoryHigh": "a daemon that needs 200 MiB would slow down the other tests; test_observability.py has the series",
    "AlertscalerBusy": "a core would have to be busy for minutes; the names are compared",
}


def make_rules():
    """The shipped rules, as a list of one group."""
    return [{key: value for key, value in rule.items() if key != "for"} for rule in RULES]


@pytest.fixture
def watch(make_prometheus):
    """watch(daemon, ...): a Prometheus that scrapes these daemons by the shipped rules, once it has seen each of them twice."""
    def start(*daemons, **more):
        prometheus = make_prometheus(targets=[daemon.address for daemon in daemons], rules=make_rules(), job="alertscaler", **more)
        eventually(lambda: len(prometheus.query("count_over_time(alertscaler_leader[1m]) >= 2")) == len(daemons),
                   what="the daemons are scraped")
        return prometheus
    return start


def wait_fired(prometheus, names, provoke=lambda: None):
    """Until all have fired. What provokes them is done once a second, because `increase` needs a sample before."""
    missing = set(names)

    def is_done():
        provoke()
        missing.difference_update(row["metric"]["alertname"] for row in prometheus.query('ALERTS{alertstate="firing"}'))
        assert not missing, f"these do not fire: {sorted(missing)}"
        return True

    eventually(is_done, 90, interval=1, what="the alerts fire")


def target(url, **more):
    return {"node_group": {"provider": "mine", "url": url}, "min": 1, "max": 10, "cooldown": {"up": "0s", "down": "0s"}, **more}


def rule(name, on, **more):
    """Scales the target up by 1 each second while the alert with its name fires."""
    whole = {"name": name, "match": [f'alertname="{name}"'], "target": on, "every": "1s", "scale_up": {"by": 1}, **more}
    return {key: value for key, value in whole.items() if value is not None}


def fire(daemon, *names):
    daemon.notify(notification(*[alert({"alertname": name}) for name in names]))


NOWHERE = "http://127.0.0.1:1"
PROVIDER = {"providers": {"mine": {"type": "http"}}}


@pytest.fixture
def token(tmp_path):
    """Of a credential that may everything."""
    (tmp_path / "token").write_text("secret")
    return {"tokens": [{"name": "any", "file": str(tmp_path / "token"), "permissions": ["notify", "read", "admin"]}]}


def give(daemon):
    daemon.headers = {"Authorization": "Bearer secret"}
    return daemon.start()


def test_each_alert_fires_here_or_the_table_says_why_not():
    named = [*ELSEWHERE, *(name for names in FIRED.values() for name in names)]
    assert sorted(named) == sorted(rule["alert"] for rule in RULES if "alert" in rule)
    for reason in ELSEWHERE.values():
        for file in re.findall(r"test_\w+\.py", reason):
            assert (pathlib.Path(__file__).parent / file).is_file(), file


# what senders do


@fires("AlertscalerNotificationsDenied", "AlertscalerNotificationsInvalid", "AlertscalerAlertsTruncated", "AlertscalerAlertsWithoutRule",
       "AlertscalerRequestsDenied", "AlertscalerRegexLimit")
def test_senders(make_daemon, watch, token):
    slow = rule("slow", "any", match=['text=~"(a+)+[bc]"'])
    daemon = give(make_daemon({"targets": {"any": target(NOWHERE)}, "rules": [slow]}, {**PROVIDER, "receiver": token}, start=False))
    prometheus = watch(daemon, token="secret")
    unknown = notification(alert({"alertname": "Nobody", "text": "a" * 60 + "d"}), truncated=3)

    def provoke():
        assert daemon.post("/webhook", {"not": "a notification"}).status == 400
        assert daemon.post("/webhook", unknown).ok
        with without_token(daemon):
            assert daemon.post("/webhook", unknown).status in (401, 429)
            assert {daemon.get("/api/v1/rules").status for _ in range(5)} <= {401, 429}

    wait_fired(prometheus, FIRED["test_senders"], provoke)


@contextlib.contextmanager
def without_token(daemon):
    headers, daemon.headers = daemon.headers, {}
    try:
        yield
    finally:
        daemon.headers = headers


@fires("AlertscalerIncidentMemory", "AlertscalerNotificationsUnavailable")
def test_incidents_need_all_of_their_memory(make_daemon, watch):
    daemon = make_daemon({"targets": {"any": target(NOWHERE)}, "rules": [rule("Busy", "any", every="1h")]},
                         {**PROVIDER, "receiver": {"max_incident_memory": "1MiB"}})
    prometheus = watch(daemon)
    numbers = itertools.count()

    def provoke():
        for _ in range(3):      # small ones: one that does not fit is refused as a whole
            many = [alert({"alertname": "Busy", "n": str(next(numbers)), "text": "x" * 500}) for _ in range(40)]
            daemon.post("/webhook", notification(*many))

    wait_fired(prometheus, FIRED["test_incidents_need_all_of_their_memory"], provoke)


@fires("AlertscalerConnectionsHigh")
def test_connections(make_daemon, watch):
    daemon = make_daemon({"rules": []})
    prometheus = watch(daemon)
    host, port = daemon.address.split(":")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 2048), hard), hard))
    with contextlib.ExitStack() as stack:
        def provoke():
            stack.pop_all().close()     # the daemon has ended what was silent for long
            for _ in range(850):
                stack.enter_context(socket.create_connection((host, int(port)), timeout=10))
        wait_fired(prometheus, FIRED["test_connections"], provoke)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@fires("AlertscalerNotificationsMissing")
def test_no_notification_comes(make_daemon, watch):
    """Incidents are open from before the first scrape."""
    daemon = make_daemon({"targets": {"any": target(NOWHERE)}, "rules": [rule("Busy", "any", every="1h")]}, PROVIDER)
    fire(daemon, "Busy")
    wait_fired(watch(daemon), FIRED["test_no_notification_comes"])


# processes


@fires("AlertscalerSeveralLeaders", "AlertscalerRestarting", "AlertscalerInstanceDown", "AlertscalerAbsent")
def test_instances(make_daemon, watch):
    one, other = (make_daemon({"rules": []}, name=name) for name in ("one", "other"))
    prometheus = watch(one, other)
    wait_fired(prometheus, ["AlertscalerSeveralLeaders"])

    def restart():
        one.kill()
        one.start()

    wait_fired(prometheus, ["AlertscalerRestarting"], restart)
    one.stop()
    wait_fired(prometheus, ["AlertscalerInstanceDown"])
    other.stop()
    wait_fired(prometheus, ["AlertscalerAbsent"])


@fires("AlertscalerReloadFailed", "AlertscalerPaused", "AlertscalerTargetsPaused", "AlertscalerFilesRunOut")
def test_a_daemon(make_daemon, watch, token, node_group):
    """The limit of files is lowered while the daemon runs: as with a lower `ulimit`, its own files are nearly all that it may have."""
    daemon = give(make_daemon({"targets": {"any": target(node_group(size=2).url)}, "rules": [rule("Busy", "any")]},
                              {**PROVIDER, "receiver": token}, flags=["--web.enable-admin-api"], start=False))
    prometheus = watch(daemon, token="secret")
    fire(daemon, "Busy")
    eventually(lambda: daemon.target("any"))
    for path in ("/api/v1/targets/any/pause", "/api/v1/pause"):
        assert daemon.post(path, {"reason": "a test"}).ok
    (daemon.directory / "rules/bad.yaml").write_text("rules: [{name: x}]\n")
    daemon.reload()
    before = resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)
    limit = int(daemon.metrics().value("process_open_fds") * 1.15)
    resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (limit, before[1]))
    wait_fired(prometheus, FIRED["test_a_daemon"])
    resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, before)


# targets


@fires("AlertscalerTargetAtMax", "AlertscalerTargetOutOfBounds", "AlertscalerTargetSizeDiffers", "AlertscalerActionsFailing",
       "AlertscalerProviderFailing", "AlertscalerActionsConflicting", "AlertscalerActionsSlow", "AlertscalerApprovalWaits",
       "AlertscalerApprovalExpired", "AlertscalerRuleIneffective")
def test_targets(make_daemon, watch, node_group):
    """An hour passes at the end, in the stored state: the time after which a rule did not help, and a request has run out."""
    sizes = {"full": 10, "outside": 20, "stuck": 2, "lost": 2, "good": 2, "slow": 2, "asks": 2, "vain": 2}
    groups = {name: node_group(size=size) for name, size in sizes.items()}
    groups["stuck"].inject(Fault(status=500), times=10000)
    groups["lost"].inject(Fault(status=412), times=10000)
    groups["slow"].inject(Fault(delay=12), times=10000)
    targets = {name: target(group.url, max=1000 if name == "good" else 10) for name, group in groups.items()}
    targets["slow"]["node_group"]["provider"] = "patient"
    rules = [rule(name, name) for name in groups if name not in ("asks", "vain")]
    rules += [rule("asks", "asks", scale_up={"by": 5}, approval={"above": 1, "for": "4m"}),
              rule("vain", "vain", every=None, once=True, ineffective_after=1)]
    daemon = make_daemon({"targets": targets, "rules": rules},
                         {"providers": {"mine": {"type": "http"}, "patient": {"type": "http", "timeout": "30s"}}})
    prometheus = watch(daemon)
    fire(daemon, *groups)
    later = {"AlertscalerApprovalExpired", "AlertscalerRuleIneffective"}
    wait_fired(prometheus, set(FIRED["test_targets"]) - later)
    wait(daemon, 3660)
    wait_fired(prometheus, later)


@fires("AlertscalerBudgetUsedUp")
def test_limits(make_daemon, watch, node_group):
    group = node_group(size=2)
    daemon = make_daemon({"targets": {"any": target(group.url)}, "rules": [rule("Busy", "any")]},
                         {**PROVIDER, "limits": {"actions": {"max": 1, "per": "1h"}}})
    prometheus = watch(daemon)
    fire(daemon, "Busy")
    eventually(lambda: group.size == 3)
    wait_fired(prometheus, FIRED["test_limits"])


@fires("AlertscalerClusterUnreachable")
def test_a_cluster_does_not_answer(make_daemon, watch, tmp_path):
    web = {"kubernetes": {"kind": "Deployment", "namespace": "shop", "name": "web"}, "max": 9}
    daemon = make_daemon({"targets": {"web": web}, "rules": [rule("Busy", "web")]}, unreachable(tmp_path))
    prometheus = watch(daemon)
    fire(daemon, "Busy")
    wait_fired(prometheus, FIRED["test_a_cluster_does_not_answer"])


@pytest.mark.kubernetes
@fires("AlertscalerTargetContended")
def test_a_target_is_contended(make_daemon, watch, control_plane, namespace):
    path = path_of("apps/v1", "Deployment", namespace, "web")
    control_plane.admin.create(deployment("web"), namespace)
    daemon = make_daemon(of_workload(namespace), of_cluster(control_plane, namespace))
    prometheus = watch(daemon)
    opponent = Opponent(control_plane, path, 2)
    try:
        wait_fired(prometheus, FIRED["test_a_target_is_contended"], lambda: fire(daemon, "Busy"))
    finally:
        opponent.stop()


@pytest.mark.kubernetes
@fires("AlertscalerTargetDidNotCome")
def test_pods_are_not_ready(make_daemon, watch, control_plane, namespace):
    start_web(control_plane, namespace)
    daemon = make_daemon(of_workload(namespace, ready_timeout="3s"), of_cluster(control_plane, namespace))
    prometheus = watch(daemon)
    wait_fired(prometheus, FIRED["test_pods_are_not_ready"], lambda: fire(daemon, "Busy"))


def of_workload(namespace, **more):
    return {"targets": {"web": {"kubernetes": {"kind": "Deployment", "namespace": namespace, "name": "web"}, "max": 20,
                                "cooldown": {"up": "1s", "down": "1s"}, **more}}, "rules": [rule("Busy", "web")]}


def of_cluster(plane, namespace):
    return {"clusters": {"default": {"kubeconfig": str(plane.write_kubeconfig(f"alerts-{namespace}", token=ADMIN_TOKEN))}}}


# monitoring, and people


def tracked(query):
    return rule("Busy", "any", scale_up=None, track={"value": 1, "query": query})


@fires("AlertscalerMetricUnavailable")
def test_a_query_has_no_value(make_daemon, make_prometheus, node_group):
    daemon = make_daemon({"targets": {"any": target(node_group(size=2).url)}, "rules": [tracked("no_such_metric")]}, start=False)
    prometheus = make_prometheus(targets=[daemon.address], rules=make_rules(), job="alertscaler")
    daemon.write_config({**PROVIDER, "prometheus": {"url": prometheus.url}})
    daemon.start()
    fire(daemon, "Busy")
    wait_fired(prometheus, FIRED["test_a_query_has_no_value"])


@fires("AlertscalerQueriesFailing", "AlertscalerListFailing")
def test_monitoring_does_not_answer(make_daemon, watch, node_group):
    daemon = make_daemon({"targets": {"any": target(node_group(size=2).url)}, "rules": [tracked("up")]},
                         {**PROVIDER, "prometheus": {"url": NOWHERE}, "alertmanager": {"urls": [NOWHERE], "resync_interval": "1s"}})
    prometheus = watch(daemon)
    wait_fired(prometheus, FIRED["test_monitoring_does_not_answer"], lambda: fire(daemon, "Busy"))


@fires("AlertscalerNotifyFailing", "AlertscalerNotifyDropped")
def test_a_receiver_of_notify_is_down(make_daemon, watch, node_group):
    """The stored notices become eleven minutes older. One receiver drops notices after a minute, the shortest time, the other after
    an hour. The counter is new with its first notice; so the test waits for a second one, which takes a minute."""
    receivers = [{"name": name, "webhook": {"url": NOWHERE}, "on": ["scaled"], **more}
                 for name, more in (("people", {}), ("pager", {"max_age": "1m"}))]
    daemon = make_daemon({"targets": {"any": target(node_group(size=2).url)}, "rules": [rule("Busy", "any")]}, {**PROVIDER, "notify": receivers})
    prometheus = watch(daemon)
    fire(daemon, "Busy")
    eventually(lambda: prometheus.query("count(alertscaler_notify_oldest_age_seconds > 0) == 2"), what="notices wait")
    daemon.stop()
    age_notices(daemon, 660)
    daemon.start()
    wait_fired(prometheus, FIRED["test_a_receiver_of_notify_is_down"])


def age_notices(daemon, seconds):
    """Of a daemon that is stopped."""
    with contextlib.closing(sqlite3.connect(daemon.state_file)) as connection, connection as state:
        rows = state.execute("SELECT key, value FROM meta WHERE CAST(key AS TEXT) LIKE 'notice/%'").fetchall()
        assert rows
        for key, value in rows:
            notice = json.loads(value)
            notice["at"] -= seconds * MICROSECONDS
            state.execute("UPDATE meta SET value = ? WHERE key = ?", (json.dumps(notice).encode(), key))


# an API server that is away


@fires("AlertscalerNoLeader")
def test_no_instance_leads(make_daemon, make_prometheus, tmp_path):
    """The state is in an API server that does not answer."""
    daemon = make_daemon({"rules": []}, {**unreachable(tmp_path), "state": {"store": "kubernetes", "namespace": "alertscaler"}}, start=False)
    daemon.process.start()
    prometheus = make_prometheus(targets=[daemon.address], rules=make_rules(), job="alertscaler")
    wait_fired(prometheus, FIRED["test_no_instance_leads"])


def unreachable(folder):
    """The cluster `default` at an address without a server."""
    file = folder / "unreachable"
    file.write_text(yaml.safe_dump({
        "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "u", "user": {}}],
        "clusters": [{"name": "c", "cluster": {"server": NOWHERE}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
    return {"clusters": {"default": {"kubeconfig": str(file)}}}
