"""Alerts of deploy/prometheus fire in a real Prometheus that scrapes a daemon in the state that the alert describes.

promtool tests when the alerts fire, with series that a person wrote (deploy/prometheus/alertscaler.rules.test.yml). Here the series
are those of a daemon. The rules are those of the file without `for`; the thresholds are those of the file. ELSEWHERE has the alerts
that do not fire here. tests/docs/test_series.py compares the metrics, labels and words of all alerts with the program.
"""
import contextlib
import itertools
import pathlib
import re
import resource
import socket

import pytest
import yaml

from harness.notification import alert, notification
from harness.wait import eventually

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
    "AlertscalerAbsent": "`up` is Prometheus' own",
    "AlertscalerInstanceDown": "`up` is Prometheus' own",
    "AlertscalerRestarting": "needs three starts, and a new process has the time of its start; the names are compared",
    "AlertscalerSeveralLeaders": "a sum of alertscaler_leader, which is 1 in test_failover.py",
    "AlertscalerPaused": "test_operators.py",
    "AlertscalerTargetsPaused": "test_operators.py",
    "AlertscalerTargetContended": "test_others.py",
    "AlertscalerClusterUnreachable": "needs an API server that goes away; the names are compared",
    "AlertscalerActionsFailing": "test_end_to_end.py has the metric, without failures; the words are compared",
    "AlertscalerProviderFailing": "test_observability.py has the metric, without failures; the words are compared",
    "AlertscalerActionsConflicting": "needs six conflicts; the words are compared",
    "AlertscalerActionsSlow": "needs an action of more than ten seconds; the names are compared",
    "AlertscalerTargetSizeDiffers": "test_dashboards.py has both series",
    "AlertscalerTargetAtMax": "test_dashboards.py has a target at its maximum",
    "AlertscalerTargetDidNotCome": "test_effects.py",
    "AlertscalerRuleIneffective": "test_notify_states.py",
    "AlertscalerApprovalWaits": "needs a request that runs out; the names are compared",
    "AlertscalerApprovalExpired": "needs a request that runs out; the words are compared",
    "AlertscalerTargetOutOfBounds": "test_dashboards.py has the series",
    "AlertscalerMetricUnavailable": "test_dashboards.py has a rule without a value; the words are compared",
    "AlertscalerBudgetUsedUp": "needs a limit that is used up; the words are compared",
    "AlertscalerQueriesFailing": "test_monitoring.py",
    "AlertscalerListFailing": "test_sources.py counts lists; the words are compared",
    "AlertscalerNotifyFailing": "a notice would have to wait for ten minutes; test_notify.py has the series",
    "AlertscalerNotifyDropped": "a notice is dropped after a minute; test_notify.py has the series",
    "AlertscalerReloadFailed": "test_daemon.py",
    "AlertscalerStorageSlow": "the disk is not slow; the names are compared",
    "AlertscalerQueueLong": "the disk is not slow; the names are compared",
    "AlertscalerMemoryHigh": "a daemon that needs 200 MiB would slow down the other tests; test_observability.py has the series",
    "AlertscalerFilesRunOut": "the limit is that of the machine; the names are compared",
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
