"""The daemon with monitoring that fails, lies and comes back: what it cannot know never takes anything away, and is said.

Where an answer has to be wrong in a certain way, Prometheus is played; where alerts come, go and are silenced, it and Alertmanager are
real. The witnesses are the daemon's own: action log, metrics, and the sizes that it has set.
"""
import datetime
import subprocess
import threading
import time
import urllib.parse

import pytest

from harness.control_plane import ADMIN_TOKEN
from harness.http import HangUp, Server
from harness.kube import path_of
from harness.many_groups import ManyGroups
from harness.node_group import Fault
from harness.notification import alert, notification
from harness.wait import PATIENCE, eventually, steadily
from test_sources import NOWHERE, counted
from test_targets import make_workload

WITHOUT_LOCK = {"cooldown": {"up": "0s", "down": "0s"}}
PROVIDERS = {"providers": {"mine": {"type": "http"}}}


def scalar(value):
    return 200, {}, {"status": "success", "data": {"resultType": "scalar", "result": [time.time(), str(value)]}}


def vector(*series, **more):
    """Each series is (labels, value)."""
    return 200, {}, {"status": "success", "data": {"resultType": "vector", "result": [
        {"metric": labels, "value": [time.time(), str(value)]} for labels, value in series]}, **more}


def partial(value, mark=True):
    """As a VictoriaMetrics cluster answers while one of its vmstorage nodes is down."""
    return 200, {}, {"status": "success", "isPartial": mark,
                     "data": {"resultType": "vector", "result": [{"metric": {}, "value": [int(time.time()), str(value)]}]},
                     "stats": {"seriesFetched": "2", "executionTimeMsec": 3}}


PARTIAL = "query has a partial answer (isPartial): a part of the storage did not answer"


class PlayedPrometheus:
    """Answers each query with what `answers` has for its text, else with `default`: (status, headers, body), or a function."""

    def __init__(self):
        self.answers = {}
        self.default = scalar(0)
        self.asked = []
        self.released = threading.Event()
        self._server = Server(self._handle)
        self.url = self._server.url

    def _handle(self, asked):
        if asked.path == "/api/v1/format_query":
            return 200, {}, {"status": "success", "data": "formatted"}
        assert asked.path == "/api/v1/query", asked.path
        query, = urllib.parse.parse_qs(asked.body.decode())["query"]
        self.asked.append(query)
        answer = self.answers.get(query, self.default)
        return answer() if callable(answer) else answer

    def hang(self):
        """An answer that does not come before the test releases it."""
        self.released.wait(60)
        return self.default

    def hang_up(self):
        raise HangUp

    def stop(self):
        self.released.set()
        self._server.stop()


@pytest.fixture
def played(started):
    return started(PlayedPrometheus())


@pytest.fixture
def groups(started):
    return started(ManyGroups(4))


@pytest.fixture
def make(make_daemon):
    """make(rules, prometheus, ...): a daemon with the provider `mine`, and everything it wrote is checked at the end."""
    made = []

    def make(rules, prometheus=None, timeout="60s", config=None, **more):
        asks = {"prometheus": {"url": prometheus.url, "timeout": timeout}} if prometheus else {}
        made.append(make_daemon(rules, {**PROVIDERS, **asks, **(config or {})}, **more))
        return made[-1]

    yield make
    for daemon in made:
        if daemon.process.running:
            daemon.stop()       # a line that is being written is no whole one
        for command in (["log", "verify"], ["replay"]):
            done = subprocess.run([daemon.binary, *command, daemon.log_file], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr


def target(url, **more):
    return {"node_group": {"provider": "mine", "url": url}, "min": 1, "max": 10, **WITHOUT_LOCK, **more}


def each(groups, **more):
    """A target for each value of the label `name`."""
    return target(groups.url + "/{{ .Labels.name }}", allow={"names": ["*"]}, **more)


def one(group, *rules, **more):
    """A target `workers`, and rules for it that are named like their alerts."""
    return {"targets": {"workers": target(group.url, **more)},
            "rules": [{"match": [f'alertname="{rule["name"]}"'], "target": "workers", **rule} for rule in rules]}


def fires(alertname, annotations=None, **labels):
    return alert({"alertname": alertname, **labels}, annotations=annotations)


def decisions(daemon, reason=None, target=""):
    return [r for r in daemon.records("decision")
            if r["target"].endswith(target) and reason in (None, r["output"]["reason"])]


def wait_decision(daemon, reason, target="", timeout=PATIENCE):
    return eventually(lambda: decisions(daemon, reason, target), timeout, what=f"{reason} for {target or 'the target'}")[0]


def error_of(decision, rule):
    """What the log says of the rule's value."""
    return next(p.get("error") for p in decision["input"]["proposals"] if p["rule"] == rule)


def wait_lists(daemon, count, outcome="ok"):
    """Until Alertmanager has been asked so many more times."""
    before = counted(daemon, "alertmanager", outcome)
    eventually(lambda: counted(daemon, "alertmanager", outcome) >= before + count,
               what=f"{count} more lists are {outcome}")


def begun(record):
    """When an action began, in seconds."""
    return seconds(record["time"]) - record["duration_seconds"]


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def incidents(daemon):
    return [r["event"] for r in daemon.records("incident")]


# Queries

BAD_ANSWERS = {     # what is answered, what the log says of it, and what is counted
    "not-json": ((200, {}, b"<html><title>Login</title>"), "Prometheus: not JSON: ", "invalid"),
    "no-body": ((200, {}, b""), "Prometheus: not JSON: ", "invalid"),
    "huge": ((200, {}, b"[" + b"1," * (10 << 20) + b"1]"), "Prometheus: the answer is larger than 16 MiB", "too_large"),
    "redirect": ((302, {"Location": "http://elsewhere/"}, b""),
                 "Prometheus: HTTP 302 leads to http://elsewhere/, and redirects are not followed", "refused"),
    "error": ((200, {}, {"status": "error", "errorType": "internal", "error": "no memory"}),
              "Prometheus: internal: no memory", "refused"),
    "refused": ((422, {}, {"status": "error", "errorType": "execution", "error": "many-to-many"}),
                "Prometheus: HTTP 422: execution: many-to-many", "refused"),
    "busy": ((503, {}, {"status": "error", "errorType": "timeout", "error": "query timed out"}),
             "Prometheus: HTTP 503: timeout: query timed out", "refused"),
    "empty": (vector(), "query returned no data", "no_data"),
    "three": (vector(*(({"x": str(i)}, 1) for i in range(3))),
              "query returned 3 series, expected one: aggregate with sum() or the like", "unusable"),
    "nan": (scalar("NaN"), "query returned NaN", "unusable"),
    "infinite": (vector(({}, "+Inf")), "query returned +Inf", "unusable"),
    "warning": (vector(({}, 4200), warnings=["a store is down"]),
                "query has warnings and may be incomplete: a store is down", "unusable"),
    "half-down": (partial(70), PARTIAL, "unusable"),
    "half-up": (partial(4200), PARTIAL, "unusable"),
    "half-text": (partial(70, mark="true"), PARTIAL, "unusable"),
    "hanging": (PlayedPrometheus.hang, "Prometheus: no answer within 10s", "timeout"),
    "hang-up": (PlayedPrometheus.hang_up, "Prometheus: broke off: ", "unreachable"),
}


def test_no_bad_answer_takes_anything_away(played, groups, make):
    """Another rule wants each of them smaller all the time. Once the answers are good, all grow."""
    for name, (answer, _, _) in BAD_ANSWERS.items():
        played.answers[f'load{{name="{name}"}}'] = answer.__get__(played) if callable(answer) else answer
    daemon = make({"targets": {"each": each(groups)}, "rules": [
        {"name": "busy", "match": ["alertname=Busy"], "target": "each", "every": "1s",
         "track": {"average_value": 70, "query": 'load{name="{{ .Labels.name }}"}'}},
        {"name": "idle", "match": ["alertname=Idle"], "target": "each", "every": "1s", "scale_down": {"by": 1}}]},
        played, timeout="10s")
    daemon.notify(notification(*(fires(which, name=name) for name in BAD_ANSWERS for which in ("Busy", "Idle"))))

    for name, (_, error, _) in BAD_ANSWERS.items():
        decision = wait_decision(daemon, "metric_unavailable", f"/{name}")
        assert error_of(decision, "busy").startswith(error), error_of(decision, "busy")
        by_rule = {p["rule"]: p for p in decision["output"]["proposals"]}
        assert (by_rule["busy"]["reason"], by_rule["idle"]["desired"]) == ("metric_unavailable", 3)
    again = {query: played.asked.count(query) for query in played.answers}
    eventually(lambda: all(played.asked.count(q) > n for q, n in again.items()), what="all are asked again")
    assert not groups.applied
    assert {r["output"]["reason"] for r in decisions(daemon)} == {"metric_unavailable"}
    metrics = daemon.metrics()
    for outcome in {outcome for _, _, outcome in BAD_ANSWERS.values()}:
        assert metrics.sum("alertscaler_source_requests_total", source="prometheus", outcome=outcome) > 0, outcome

    played.default = scalar(420)
    played.released.set()
    played.answers.clear()
    eventually(lambda: set(groups.sizes.values()) == {6}, what="all have grown")
    assert set(map(tuple, groups.applied.values())) == {(6,)}


def test_half_of_a_sum_scales_in_no_direction(played, node_group, make):
    """The whole sum is 280, and 4 is right. A complete answer of the same server, with its mark `false`, counts."""
    group = node_group(size=4)
    played.default = partial(70)
    daemon = make(one(group, {"name": "Load", "every": "1s", "max_steps": 9, "track": {"average_value": 70, "query": "load"}}), played)
    daemon.notify(notification(fires("Load")))
    assert error_of(wait_decision(daemon, "metric_unavailable"), "Load") == PARTIAL
    played.default = partial(700)
    asked = counted(daemon, "prometheus", "unusable")
    eventually(lambda: counted(daemon, "prometheus", "unusable") >= asked + 2, what="the other direction is asked for, too")
    assert not group.applied
    played.default = partial(420, mark=False)
    eventually(lambda: group.size == 6, what="the whole sum counts")
    assert group.applied == [6]


def test_a_prometheus_that_dies_and_comes_back(make_prometheus, node_group, make):
    prometheus = make_prometheus()
    group = node_group(size=4)
    daemon = make(one(group, {"name": "Busy", "every": "1s", "track": {"average_value": 70, "query": "vector(420)"}},
                      {"name": "Idle", "every": "1s", "scale_down": {"by": 1}}), prometheus)
    daemon.notify(notification(fires("Busy")))
    eventually(lambda: group.size == 6)
    prometheus.process.kill()
    failed = counted(daemon, "prometheus", "unreachable")

    def said():
        """A query that was under way when it died broke off; and only a notification has what is decided again said again."""
        daemon.notify(notification(fires("Idle")))
        return any(error_of(d, "Busy").startswith("Prometheus: unreachable: Failed to connect")
                   for d in decisions(daemon, "metric_unavailable"))

    eventually(said, interval=1, what="it is said what is wrong")
    group.size = 3
    eventually(lambda: counted(daemon, "prometheus", "unreachable") >= failed + 2, what="it is asked on and on")
    assert group.applied == [6]
    prometheus.start()
    eventually(lambda: group.size == 6, what="scaling goes on")
    assert group.applied == [6, 6]


def test_a_guard_holds_a_scale_down_until_there_is_data(played, node_group, make):
    group = node_group(size=4)
    daemon = make(one(group, {"name": "Idle", "every": "1s", "max_steps": 2, "scale_down": {"by": 1},
                              "guard": {"query": 'proof{zone="{{ .Labels.zone }}"} > 0'}}), played)
    guard = 'proof{zone="a"} > 0'
    played.answers[guard] = vector()
    fired = notification(fires("Idle", zone="a"))
    daemon.notify(fired)
    held = wait_decision(daemon, "guarded")
    assert (held["output"]["desired"], held["output"]["would"], held["input"]["flags"]["guarded"]) == (4, 3, True)
    # What is no answer is no proof, either.
    for answer, outcome in (vector(), "no_data"), ((200, {}, b"<html>"), "invalid"), ((503, {}, b""), "refused"):
        played.answers[guard] = answer
        asked = counted(daemon, "prometheus", outcome)
        eventually(lambda: counted(daemon, "prometheus", outcome) >= asked + 1, what="the guard is asked again")
    assert not group.puts
    played.answers[guard] = vector(({}, 0), ({"x": "1"}, "NaN"))
    eventually(lambda: group.size == 3, what="any sample lets it go")
    wait_decision(daemon, "unconfirmed")
    daemon.notify(fired)
    eventually(lambda: group.size == 2, what="and a repeat the next one")
    assert group.applied == [3, 2] and set(played.asked) == {guard}


@pytest.mark.seconds(240)
def test_series_that_are_not_of_the_pods(control_plane, namespace, played, make):
    control_plane.admin.create(make_workload("Deployment", namespace, replicas=2))
    path = path_of("apps/v1", "Deployment", namespace, "web")
    control_plane.admin.wait(path, lambda found: found["status"].get("readyReplicas") == 2)
    pods = [pod["metadata"]["name"] for pod in control_plane.admin.get(f"/api/v1/namespaces/{namespace}/pods")["items"]]
    real = [({"pod": pod}, 100) for pod in pods]
    played.default = vector(*real, ({"instance": "web"}, 100))
    kubeconfig = control_plane.write_kubeconfig(f"monitoring-{namespace}", token=ADMIN_TOKEN)
    rules = lambda **goal: {
        "targets": {"web": {"kubernetes": {"kind": "Deployment", "namespace": namespace, "name": "web"}, "max": 20, **WITHOUT_LOCK}},
        "rules": [{"name": "busy", "match": ["alertname=Busy"], "target": "web", "every": "1s",
                   "track": {**goal, "query": "load", "per_pod": True}},
                  {"name": "idle", "match": ["alertname=Idle"], "target": "web", "every": "1s", "scale_down": {"by": 1}}]}
    daemon = make(rules(average_value=50), played, config={"clusters": {"default": {"kubeconfig": str(kubeconfig)}}})
    daemon.notify(notification(fires("Busy"), fires("Idle")))
    decision = wait_decision(daemon, "metric_unavailable")
    assert error_of(decision, "busy") == "query returned a series without the label `pod`: aggregate by it"
    assert control_plane.admin.replicas(path) == 2

    # Of pods that are not there nothing counts, however much it is: 200 over 50 is 4.
    played.default = vector(*real, ({"pod": "gone"}, 1000000))
    eventually(lambda: control_plane.admin.replicas(path) == 4, what="the real pods count")
    known = len(decisions(daemon, "metric_unavailable"))
    played.default = vector(*real, real[0])
    twice = eventually(lambda: decisions(daemon, "metric_unavailable")[known:], what="the next bad answer is said")[0]
    assert error_of(twice, "busy") == f"query returned several series for pod `{pods[0]}`: aggregate by `pod`"

    # These pods ask for no memory, so there is nothing to measure it against.
    daemon.write_rules(rules(utilization="50%", of="memory_requests"))
    played.default = vector(*real)
    daemon.reload()
    daemon.wait_record("reload")
    asked = len(played.asked)
    eventually(lambda: len(played.asked) >= asked + 3, what="it is asked under the new rules")
    eventually(lambda: decisions(daemon)[-1]["output"]["reason"] == "metric_unavailable", what="and it has no answer")
    assert [r["to"] for r in daemon.records("action", outcome="applied")] == [4]


# Values of annotations

VALUES = [  # from a size of 4 within 2 to 10: the size after it, or what is said of a value that is none
    ("5", 5), ("1e300", 10), ("99999999999999999999", 10), ("-0", 2), ("1e-300", 2),
    ("-5", "the value is negative"), ("-1e300", "the value is negative"),
    ("NaN", 'the annotation is not a number: "NaN"'), ("+Inf", 'the annotation is not a number: "+Inf"'),
    ("1e999", 'the annotation is not a number: "1e999"'), ("0x10", 'the annotation is not a number: "0x10"'),
    ("5 ", 'the annotation is not a number: "5 "'), ("1" * 4000, 'the annotation is not a number: "' + "1" * 64 + '"'),
    ("", 'the alert has no annotation "wanted"'),
]


def test_values_of_annotations(groups, make):
    wanted = {"annotation": "wanted"}
    daemon = make({"targets": {"each": each(groups, min=2)}, "rules": [
        {"name": "pass", "match": ["alertname=Pass"], "target": "each", "pass_through": wanted},
        {"name": "track", "match": ["alertname=Track"], "target": "each", "track": {"average_value": 1, **wanted}}]})
    named = {f"{rule}-{i}": (rule, value, expected) for rule in ("Pass", "Track") for i, (value, expected) in enumerate(VALUES)}
    daemon.notify(notification(*(fires(rule, {"wanted": value}, name=name) for name, (rule, value, _) in named.items())))
    for name, (rule, value, expected) in named.items():
        decision = eventually(lambda name=name: decisions(daemon, target=f"/{name}"), what=f"a decision for {name}")[0]
        if isinstance(expected, str):
            assert decision["output"]["reason"] == "metric_unavailable", (name, value)
            assert error_of(decision, rule.lower()) == expected
        else:
            assert (decision["output"]["reason"], decision["output"]["desired"]) == ("scaled", expected), (name, value)
    want = {name: [expected] for name, (_, _, expected) in named.items() if isinstance(expected, int)}
    eventually(lambda: groups.applied == want, what="all are where they should be")


# What Alertmanager knows


def watched(*alertmanagers, **more):
    return {"alertmanager": {"urls": [a.url for a in alertmanagers], "resync_interval": "1s", "receivers": ["alertscaler"]}, **more}


def test_what_was_missed_is_opened_and_what_is_gone_is_closed(make_alertmanager, node_group, make):
    """No notification ever arrives."""
    alertmanager = make_alertmanager(webhook=NOWHERE)
    alertmanager.fire(alertname="Busy")
    group = node_group(size=4)
    daemon = make(one(group, {"name": "Busy", "scale_up": {"by": 2}, "once": True}), config=watched(alertmanager))
    eventually(lambda: group.size == 6, what="the alert is found and acted on")
    daemon.wait_record("action", outcome="applied")
    daemon.stop()
    alertmanager.resolve(alertname="Busy")
    eventually(lambda: not alertmanager.alerts(), what="it is gone")
    daemon.start()
    closed = daemon.wait_record("incident", event="closed")
    assert counted(daemon, "alertmanager", "ok") >= 2, "one list is not enough"
    assert closed["notification"] is None and not daemon.records("notification")
    assert incidents(daemon) == ["opened", "closed"]
    assert group.applied == [6]


def test_a_silence_pauses_scaling(make_alertmanager, node_group, make):
    alertmanager = make_alertmanager(webhook=NOWHERE)
    alertmanager.fire(alertname="Busy")
    group = node_group(size=1)
    daemon = make(one(group, {"name": "Busy", "every": "1s", "scale_up": {"by": 1}}, max=1000), config=watched(alertmanager))
    eventually(lambda: len(group.applied) >= 2, what="it grows")
    silence = alertmanager.silence(alertname="Busy")
    silenced = daemon.wait_record("incident", event="silenced")
    wait_lists(daemon, 4)
    held = len(group.applied)
    alertmanager.unsilence(silence)
    unsilenced = daemon.wait_record("incident", event="unsilenced")
    eventually(lambda: len(group.applied) >= held + 2, what="it grows on")
    # A step that had been decided before may have been carried out a moment later.
    steps = [d["seq"] for d in decisions(daemon, "scaled")]
    assert held <= len([seq for seq in steps if seq < silenced["seq"]])
    assert not [seq for seq in steps if silenced["seq"] < seq < unsilenced["seq"]]
    assert incidents(daemon) == ["opened", "silenced", "unsilenced"]


def test_alertmanagers_that_cannot_be_asked_close_nothing(make_alertmanager, node_group, make):
    first, second = (make_alertmanager(webhook=NOWHERE, name=name) for name in ("first", "second"))
    first.fire(alertname="Busy")
    group = node_group(size=4)
    daemon = make(one(group, {"name": "Busy", "scale_up": {"by": 2}, "once": True}), config=watched(first, second))
    eventually(lambda: group.size == 6)
    second.stop()
    wait_lists(daemon, 1, "unreachable")
    first.resolve(alertname="Busy")
    eventually(lambda: not first.alerts(), what="it is gone")
    wait_lists(daemon, 2, "unreachable")
    assert incidents(daemon) == ["opened"], "half of what fires is no list"
    first.stop()
    wait_lists(daemon, 3, "unreachable")
    assert incidents(daemon) == ["opened"]
    eventually(lambda: f"Alertmanager {first.url}: unreachable" in daemon.process.log_text(), what="it is said what is wrong")
    first.process.start()
    second.process.start()
    daemon.wait_record("incident", event="closed")
    assert group.applied == [6]


# Endings


@pytest.mark.seconds(240)
def test_what_was_added_is_given_back_only_while_monitoring_lives(make_alertmanager, make_prometheus, exporter, node_group, make):
    """`after` is longer than the watchdog may be away, so that a Prometheus that is gone is known to be."""
    group = node_group(size=4)
    rules = one(group, {"name": "Busy", "scale_up": {"by": 4}, "once": True,
                        "on_resolved": {"give_back": {"after": "5s", "step": "50%"}}}, cooldown={"up": "0s", "down": "1s"})
    daemon = make(rules, start=False)
    alertmanager = make_alertmanager(webhook=daemon.url + "/webhook")
    daemon.write_config({**PROVIDERS, **watched(alertmanager), "receiver": {
        "watchdog": {"match": ["alertname=Watchdog"], "within": "2s"}}})
    daemon.start()
    exporter.set("load", 90)
    watchdog = {"alert": "Watchdog", "expr": "vector(1)"}
    loaded = {"alert": "Busy", "expr": "last_over_time(load[1m]) > 80"}     # a scrape that takes too long does not end it
    prometheus = make_prometheus(targets=[exporter.address], alertmanagers=[alertmanager.url], rules=[loaded, watchdog])
    eventually(lambda: group.size == 8)
    exporter.set("load", 10)
    eventually(lambda: group.size == 4, 60, what="it is given back")
    assert group.applied == [8, 6, 4]

    exporter.set("load", 90)
    eventually(lambda: group.size == 8, what="a second incident")
    known = len(decisions(daemon, "guarded"))
    prometheus.process.kill()
    eventually(lambda: incidents(daemon).count("closed") == 2, what="the alert times out")
    held = eventually(lambda: decisions(daemon, "guarded")[known:], what="the step back is held")[0]
    assert held["output"]["would"] == 6
    steadily(lambda: group.applied == [8, 6, 4, 8], 2)
    prometheus.write_rules([watchdog])      # the last load it knows of is a high one, and it was killed long before it fell
    prometheus.start()
    eventually(lambda: group.size == 4, 60, what="it is given back once monitoring lives again")
    assert group.applied == [8, 6, 4, 8, 6, 4]


# Over all targets


def test_actions_over_all_targets_are_limited(groups, make):
    names = ["a", "b", "c", "d", "e"]
    daemon = make({"targets": {name: target(f"{groups.url}/{name}") for name in names},
                   "rules": [{"name": name, "match": ["alertname=Busy"], "target": name, "once": True, "scale_up": {"by": 1}}
                             for name in names]}, config={"limits": {"actions": {"max": 2, "per": "3s"}}})
    daemon.notify(notification(fires("Busy")))
    eventually(lambda: len(daemon.records("action", outcome="applied")) == 5, what="all five are done")
    times = sorted(seconds(d["time"]) for d in decisions(daemon, "scaled"))     # they begin then, and are sent once that is stored
    assert len(times) == 5 and all(later - at >= 2.95 for at, later in zip(times, times[2:])), times
    assert groups.sizes == dict.fromkeys(names, 5)
    assert decisions(daemon, "budget"), "the others had to wait"    # but for those that a slow server let come late


def test_targets_that_come_after_others(node_group, make):
    database, api = node_group(size=4), node_group(size=4)
    daemon = make({"targets": {"api": target(api.url, after=["database"]), "database": target(database.url)},
                   "rules": [{"name": name, "match": ["alertname=Busy"], "target": name, "once": True, "scale_up": {"by": 1}}
                             for name in ("api", "database")]})
    eventually(lambda: database.gets and api.gets, what="both are known")
    database.inject(Fault("GET", delay=0.5), Fault(delay=0.5))
    daemon.notify(notification(fires("Busy")))
    eventually(lambda: (database.size, api.size) == (5, 5))
    # A PUT that is answered late is noted when it arrives.
    assert database.puts[0].time + 0.5 <= api.puts[0].time
    eventually(lambda: [r["target_name"] for r in daemon.records("action")] == ["database", "api"])


# In the middle of it


def tracking(group, goal, query="load"):
    return one(group, {"name": "Busy", "every": "1s", "track": {"average_value": goal, "query": query}}, max=50)


@pytest.mark.parametrize("query", ["load", "other"])
def test_a_reload_while_a_query_hangs(played, node_group, make, query):
    group = node_group(size=4)
    played.default = scalar(420)
    played.answers["load"] = played.hang
    daemon = make(tracking(group, 70), played, timeout="60s")
    daemon.notify(notification(fires("Busy")))
    eventually(lambda: played.asked, what="it is asked")
    daemon.write_rules(tracking(group, 35, query))
    daemon.reload()
    reload = daemon.wait_record("reload")
    if query == "load":
        played.answers.clear()
        played.released.set()
    eventually(lambda: group.size == 12, what="the new goal")
    assert group.applied == [12]
    assert {r["rules_digest"] for r in decisions(daemon)} == {reload["rules_digest"]}
    played.default = scalar(700)
    eventually(lambda: group.size == 20, what="and on")
    assert group.applied == [12, 20]


def test_the_end_while_a_query_hangs(played, node_group, make):
    group = node_group(size=4)
    played.answers["load"] = played.hang
    daemon = make(tracking(group, 70), played, timeout="60s")
    daemon.notify(notification(fires("Busy")))
    eventually(lambda: played.asked, what="it is asked")
    begin = time.monotonic()
    daemon.stop()
    assert time.monotonic() - begin < 12
    assert daemon.records()[-1]["kind"] == "stop" and not group.puts
    played.default = scalar(420)
    played.answers.clear()
    daemon.start()
    eventually(lambda: group.size == 6, what="the next one goes on")


def test_a_stabilization_window_holds_over_a_kill(played, node_group, make):
    window = 10
    group = node_group(size=4)
    rules = one(group, {"name": "Busy", "every": "1s", "track": {"average_value": 70, "query": "load"}},
                behavior={"scaleDown": {"stabilizationWindowSeconds": window}})
    played.default = scalar(420)
    daemon = make(rules, played)
    daemon.notify(notification(fires("Busy")))
    eventually(lambda: group.size == 6)
    played.default = scalar(70)
    held = wait_decision(daemon, "stabilized")
    daemon.kill()
    daemon.start()
    down = daemon.wait_record("action", outcome="applied", to=1)
    last = max(seconds(r["at"]) for r in held["input"]["history"]["recommendations"] if r["replicas"] == 6)
    assert begun(down) - last >= window - 0.05
    assert group.applied == [6, 1]
    assert daemon.records("start")[1]["seq"] < down["seq"]
