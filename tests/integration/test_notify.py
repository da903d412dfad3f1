"""What people are told: events and alerts about what was done, over receivers that fail in every way, and without a loop."""
import json
import pathlib
import subprocess

import jsonschema
import pytest

from harness.control_plane import ADMIN_TOKEN
from harness.daemon import environment
from harness.http import Server
from harness.node_group import Fault, HttpNodeGroup
from harness.notification import alert, notification, timestamp
from harness.ports import free_port
from harness.recorder import Recorder
from harness.wait import eventually, steadily
from harness.webhook import Webhook


SCHEMA = pathlib.Path(__file__).parents[2] / "docs" / "action-log.schema.json"


def make_rules(group, **target):
    return {
        "targets": {"workers": {"node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 6,
                                "cooldown": {"up": "0s", "down": "0s", "up_after_down": "0s"}, **target}},
        "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 1}, "once": True},
                  {"name": "full", "match": ['alertname="Full"'], "target": "workers", "scale_to": 6}],
    }


def webhook(recorder, name="events", on=("scaled", "failed", "at_max"), **more):
    return {"name": name, "webhook": {"url": recorder.url, **more}, "on": list(on)}


def alertmanager(one, name="on-call", on=("scaled", "failed", "at_max")):
    return {"name": name, "alertmanager": {"urls": [one.url]}, "on": list(on)}


def busy(number=0, status="firing", **more):
    return notification(alert({"alertname": "Busy", "n": str(number)}, status, **more))


def full(status="firing"):
    return notification(alert({"alertname": "Full"}, status))


def outcomes(answer):
    return [each["outcome"] for each in answer["alerts"]]


@pytest.fixture
def group(started):
    return started(HttpNodeGroup(4))


@pytest.fixture
def recorder(started):
    return started(Recorder())


@pytest.fixture
def make(make_daemon, group):
    def make(*receivers, rules=None, config=None, **options):
        settings = {"providers": {"mine": {"type": "http"}}, "instance": "here", "notify": list(receivers), **(config or {})}
        return make_daemon(rules or make_rules(group), settings, **options)
    return make


def test_an_action_is_told_as_a_cloud_event(make, recorder, group):
    daemon = make(webhook(recorder), flags=["--web.external-url=https://scaler.example/x", "--web.route-prefix=/"])
    daemon.notify(busy())
    event = eventually(lambda: recorder.events("scaled"))[0]
    action = daemon.wait_record("action")       # people may be told a moment before it is in the file
    assert event == {
        "specversion": "1.0", "type": "io.alertscaler.scaled.v1", "source": "urn:alertscaler:here", "id": action["hash"],
        "subject": action["target"], "time": event["time"], "datacontenttype": "application/json",
        "data": {"decision": action["decision"], "from": 4, "to": 5, "instance": "here", "phase": "event", "reason": "applied",
                 "rule": "busy", "summary": "workers was scaled from 4 to 5", "target": action["target"], "target_name": "workers",
                 "url": f"https://scaler.example/x/decisions/{action['decision']}"}}
    asked = recorder.asked[0]
    assert asked.method == "POST" and asked.headers["Content-Type"] == "application/cloudevents+json"
    metrics = eventually(lambda: daemon.metrics() if daemon.metrics().value("alertscaler_notify_entries", receiver="events") == 0 else None)
    assert metrics.value("alertscaler_notify_sent_total", receiver="events") == 1
    assert metrics.value("alertscaler_notify_failed_total", receiver="events") == 0
    assert metrics.value("alertscaler_notify_dropped_total", receiver="events") == 0
    assert metrics.value("alertscaler_notify_oldest_age_seconds", receiver="events") == 0


def test_a_failure_is_told_with_its_reason(make, recorder, group):
    daemon = make(webhook(recorder, on=["failed"]))
    group.inject(Fault("PUT", status=403))
    daemon.notify(busy())
    event = eventually(lambda: recorder.events("failed"))[0]
    assert event["data"]["reason"] == "forbidden" and event["data"]["from"] == 4 and event["data"]["to"] == 5
    assert event["data"]["message"] == "injected"
    eventually(lambda: group.size == 5)
    assert recorder.events("scaled") == []          # nobody asked for it


def test_at_max_begins_and_ends(make, recorder, group):
    daemon = make(webhook(recorder, on=["at_max"]))
    group.size = 6
    daemon.notify(busy())
    begin = eventually(lambda: recorder.events("at_max", phase="begin"))[0]
    decision = daemon.wait_record("decision", id=begin["data"]["decision"])
    assert decision["output"]["reason"] == "at_max" and begin["id"] == decision["hash"]
    daemon.notify(busy(status="resolved"))
    end = eventually(lambda: recorder.events("at_max", phase="end"))[0]
    assert end["data"]["started"] == begin["data"]["started"] and end["data"]["rule"] == "busy"
    record, = eventually(lambda: [record for record in daemon.records() if record["hash"] == end["id"]], what="its record")
    assert record["kind"] in ("notify", "decision")
    assert len(recorder.events()) == 2


def test_a_state_survives_a_kill_and_ends_when_its_rule_goes(make, recorder, group):
    daemon = make(webhook(recorder, on=["at_max"]))
    group.size = 6
    daemon.notify(busy())
    eventually(lambda: recorder.events("at_max", phase="begin"))
    daemon.kill()
    daemon.start()
    steadily(lambda: len(recorder.events()) == 1, 1)
    rules = make_rules(group)
    rules["rules"][0]["match"] = ['alertname="Other"']
    daemon.write_rules(rules)
    daemon.reload()
    end = eventually(lambda: recorder.events("at_max", phase="end"))[0]
    record = daemon.wait_record("notify", event="ended")
    assert record["state"] == "at_max" and record["target_name"] == "workers" and end["id"] == record["hash"]


FAULTS = {
    "500": {"status": 500}, "redirect": {"status": 307}, "refused": {"status": 400, "body": b"no\x00such\x1b[31m"},
    "hangs up": {"status": 0}, "garbage": {"status": 503, "body": b"\xff" * 100000},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_receiver_that_fails_holds_up_nobody_and_loses_nothing(make, started, recorder, group, fault):
    other, elsewhere = started(Recorder()), started(Recorder())
    for key, value in FAULTS[fault].items():
        setattr(recorder, key, value)
    recorder.headers = {"Location": elsewhere.url}
    daemon = make(webhook(recorder, "bad"), webhook(other, "good"))
    for number in range(2):
        daemon.notify(busy(number))
        eventually(lambda: group.size == 5 + number)
    eventually(lambda: len(other.events("scaled")) == 2)
    eventually(lambda: len(recorder.asked) > 1)     # it is tried again
    assert recorder.taken == [] and elsewhere.asked == []
    assert daemon.metrics().value("alertscaler_notify_failed_total", receiver="bad") > 0
    assert daemon.metrics().value("alertscaler_notify_entries", receiver="bad") == 2
    assert daemon.metrics().value("alertscaler_notify_oldest_age_seconds", receiver="bad") > 0
    recorder.status = 204
    eventually(lambda: len(recorder.events()) == 2)
    assert recorder.events() == other.events()      # in the same order
    eventually(lambda: daemon.metrics().value("alertscaler_notify_entries", receiver="bad") == 0)


def test_an_answer_without_end_is_enough(make, recorder, group):
    recorder.body = b"x" * (1 << 24)
    daemon = make(webhook(recorder))
    daemon.notify(busy())
    eventually(lambda: daemon.metrics().value("alertscaler_notify_sent_total", receiver="events") == 1)
    assert daemon.metrics().value("alertscaler_notify_failed_total", receiver="events") == 0


def test_a_receiver_that_hangs_holds_up_neither_work_nor_a_stop(make, recorder, group):
    recorder.hangs = True
    daemon = make(webhook(recorder))
    daemon.notify(busy())
    eventually(lambda: recorder.asked and group.size == 5)
    daemon.stop()
    recorder.hangs = False
    daemon.start()
    eventually(lambda: recorder.events("scaled"))


def test_a_receiver_that_is_down_is_told_after_kills(make, started, group):
    port = free_port()
    daemon = make({"name": "events", "webhook": {"url": f"http://127.0.0.1:{port}/in"}, "on": ["scaled"]})
    for number in range(2):
        daemon.notify(busy(number))
        daemon.wait_record("action", to=5 + number)
        daemon.kill()
        daemon.start()
    recorder = started(Recorder(port))
    eventually(lambda: len(recorder.events()) == 2)
    assert [event["data"]["to"] for event in recorder.events()] == [5, 6]


def test_every_url_is_told_and_one_that_is_down_holds_up_none(make, started, group):
    got = []
    server = started(Server(lambda asked: got.append((asked.path, asked.json)) or (200, {}, b"")))
    daemon = make({"name": "on-call", "on": ["scaled"],
                   "alertmanager": {"urls": [f"http://127.0.0.1:{free_port()}", server.url + "/am/"]}})
    daemon.notify(busy())
    eventually(lambda: got)
    path, [told] = got[0]
    action = daemon.wait_record("action")
    assert path == "/am/api/v2/alerts"
    assert told["labels"] == {"alertname": "AlertscalerScaled", "alertscaler_instance": "here", "reason": "applied", "rule": "busy",
                              "target": action["target"]}
    assert told["annotations"]["from"] == "4" and told["annotations"]["to"] == "5"
    assert told["generatorURL"].endswith("/decisions/" + action["decision"])
    assert daemon.metrics().value("alertscaler_notify_entries", receiver="on-call") == 1


def test_a_reload_changes_receivers(make, started, recorder, group):
    dead = f"http://127.0.0.1:{free_port()}/in"
    gone, moved = ({"name": name, "webhook": {"url": dead}, "on": ["scaled"]} for name in ("gone", "moved"))
    daemon = make(gone, moved)
    daemon.notify(busy())
    daemon.wait_record("action")
    eventually(lambda: daemon.metrics().value("alertscaler_notify_failed_total", receiver="moved") > 0)
    daemon.write_config({"providers": {"mine": {"type": "http"}}, "notify": [webhook(recorder, "moved")]})
    daemon.reload()
    assert eventually(lambda: recorder.events("scaled"))[0]["data"]["to"] == 5     # it waited for its receiver, not for the address
    record = daemon.wait_record("notify")
    assert (record["event"], record["receiver"], record["cause"], record["count"]) == ("dropped", "gone", "removed", 1)
    assert daemon.metrics().value("alertscaler_notify_dropped_total", receiver="gone") == 1
    daemon.notify(busy(1))
    eventually(lambda: len(recorder.events("scaled")) == 2)


def test_secrets_are_sent_and_never_logged(make, recorder, group, tmp_path):
    (tmp_path / "token").write_text("s3cr3t-token\n")
    target = webhook(recorder, http_config={"authorization": {"credentials_file": str(tmp_path / "token")}})
    target["webhook"]["url"] = recorder.url + "/s3cr3t-path"
    recorder.status = 500
    daemon = make(target)
    daemon.notify(busy())
    eventually(lambda: recorder.asked)
    assert recorder.asked[0].headers["Authorization"] == "Bearer s3cr3t-token"
    assert recorder.asked[0].path == "/in/s3cr3t-path"
    eventually(lambda: "a notice was not taken" in daemon.process.log_text())
    daemon.stop()
    for text in (daemon.process.log_text(), daemon.log_file.read_text(), daemon.state_file.read_bytes().decode("latin-1")):
        assert "s3cr3t" not in text


def test_another_replica_tells_what_the_leader_could_not(control_plane, namespace, make, started, group):
    """The action log of the one that takes over has nothing of it; the state has."""
    port = free_port()
    config = {"clusters": {"default": {"kubeconfig": str(control_plane.write_kubeconfig(f"notify-{namespace}", token=ADMIN_TOKEN))}},
              "state": {"store": "kubernetes", "namespace": namespace,
                        # Longer than a slow machine stands still: the former leads until it is killed.
                        "lease": {"duration": "12s", "renew_deadline": "8s", "retry_period": "500ms"}}}
    told = {"name": "events", "webhook": {"url": f"http://127.0.0.1:{port}/in"}, "on": ["scaled", "at_max"]}
    former = make(told, config=config, name="pod-0", env={"POD_NAME": "pod-0"})
    former.notify(busy())
    action = former.wait_record("action", outcome="applied")
    former.notify(full())
    former.wait_record("action", to=6)
    former.notify(busy(1))
    former.wait_record("decision", target_name="workers")
    eventually(lambda: [r for r in former.records("decision") if r["output"]["reason"] == "at_max"])
    former.kill()
    recorder = started(Recorder(port))
    later = make(told, config=config, name="pod-1", env={"POD_NAME": "pod-1"})
    eventually(lambda: recorder.events("at_max", phase="begin"))
    events = recorder.events()
    assert [event["type"].split(".")[2] for event in events] == ["scaled", "scaled", "at_max"]
    assert events[0]["id"] == action["hash"]
    later.notify(notification(alert({"alertname": "Busy", "n": "0"}, "resolved"), alert({"alertname": "Busy", "n": "1"}, "resolved")))
    later.notify(full("resolved"))
    eventually(lambda: recorder.events("at_max", phase="end"))
    eventually(lambda: later.metrics().value("alertscaler_notify_entries", receiver="events") == 0)


class TestCommands:
    def run(self, daemon, *arguments):
        return subprocess.run([daemon.binary, *arguments], capture_output=True, text=True, timeout=60, check=False, env=environment())

    def test_a_sample_says_what_came_back(self, make, started, recorder):
        server = started(Server(lambda asked: (500, {}, b'"out of\\u001b order"')))
        daemon = make(webhook(recorder), {"name": "on-call", "alertmanager": {"urls": [server.url]}, "on": ["at_max"]}, start=False)

        def test(name):
            return self.run(daemon, "notify", "test", name, f"--config.file={daemon.config_file}")
        done = test("events")
        assert (done.returncode, done.stdout) == (0, "receiver events took the sample\n"), done
        [event] = recorder.taken
        assert event["type"] == "io.alertscaler.test.v1" and event["source"] == "urn:alertscaler:here" and len(event["id"]) == 64
        done = test("on-call")
        assert done.returncode == 1 and "receiver on-call at 127.0.0.1: HTTP 500: out of  order" in done.stdout, done
        recorder.status, recorder.headers = 302, {"Location": "http://127.0.0.1:1/"}
        assert "HTTP 302 leads to http://127.0.0.1:1/, and redirects are not followed" in test("events").stdout
        recorder.status, recorder.body = 503, b"x" * 100_000
        assert "receiver events at 127.0.0.1: the answer is larger than 64 KiB" in test("events").stdout
        done = test("nobody")
        assert done.returncode == 2 and "there are events, on-call" in done.stderr, done

    def test_the_log_says_what_was_lost(self, make, recorder, group):
        recorder.status = 500
        daemon = make(webhook(recorder))
        daemon.notify(busy())
        eventually(lambda: recorder.asked)
        daemon.write_config({"providers": {"mine": {"type": "http"}}})
        daemon.reload()
        record = daemon.wait_record("notify")
        jsonschema.validate(record, json.loads(SCHEMA.read_text()))
        done = self.run(daemon, "log", "--kind=notify", str(daemon.log_file))
        assert done.stdout.endswith("notify       events: dropped 1 notice: removed\n"), done


class TestOwnAlerts:
    OWN = {"alertname": "Busy", "alertscaler_instance": ""}

    def test_they_lead_to_no_rule(self, make, group):
        daemon = make()
        answer = daemon.notify(notification(alert({**self.OWN, "alertscaler_instance": "elsewhere"}), alert({"alertname": "Other"})))
        assert outcomes(answer) == ["own_alert", "no_rule"]
        [record] = eventually(lambda: daemon.records("notification"))
        assert record["alerts"][0]["outcome"] == "own_alert" and record["alerts"][0]["rules"] == []
        assert outcomes(daemon.notify(notification(alert(self.OWN, "resolved")))) == ["own_alert"]
        assert daemon.records("incident") == [] and group.size == 4
        assert daemon.metrics().value("alertscaler_alerts_total", status="firing", outcome="own_alert") == 1

    def test_nor_do_they_in_a_list(self, make, started, group):
        listed = [{"labels": labels, "annotations": {}, "startsAt": timestamp(), "endsAt": timestamp(300), "updatedAt": timestamp(),
                   "fingerprint": "0" * 16, "generatorURL": "",
                   "status": {"state": "active", "silencedBy": [], "inhibitedBy": []}}
                  for labels in ({**self.OWN, "alertscaler_instance": "here"}, {"alertname": "Busy", "n": "1"})]
        groups = [{"labels": {}, "receiver": {"name": "alertscaler"}, "alerts": listed}]
        status = {"config": {"original": "route: {receiver: alertscaler}"}, "uptime": timestamp()}
        server = started(Server(lambda asked: (200, {}, status if asked.path == "/api/v2/status" else groups)))
        daemon = make(config={"alertmanager": {"urls": [server.url], "resync_interval": "1s", "receivers": ["alertscaler"]}})
        eventually(lambda: group.size == 5)
        opened = daemon.records("incident", event="opened")
        assert [record["labels"] for record in opened] == [{"alertname": "Busy", "n": "1"}]


@pytest.mark.monitoring
def test_with_a_real_alertmanager(make, started, make_alertmanager, group):
    """An action is told, at_max begins and ends, and though everything is sent back to alertscaler there is no loop."""
    people = started(Webhook())
    one = make_alertmanager(webhook=people.url)
    daemon = make(alertmanager(one), config={"alertmanager": {"urls": [one.url], "resync_interval": "1s"}},
                  flags=["--web.external-url=http://scaler.example"])
    back = make_alertmanager(webhook=daemon.url + "/webhook", name="back")
    daemon.write_config({"providers": {"mine": {"type": "http"}}, "instance": "here",
                         "alertmanager": {"urls": [one.url, back.url], "resync_interval": "1s"},
                         "notify": [{"name": "on-call", "on": ["scaled", "failed", "at_max"],
                                     "alertmanager": {"urls": [one.url, back.url]}}]})
    daemon.reload()
    back.fire(alertname="Full")
    one.fire(alertname="Full")
    [scaled] = eventually(lambda: people.alerts("AlertscalerScaled"))
    action = daemon.wait_record("action", outcome="applied")
    assert scaled["labels"] == {"alertname": "AlertscalerScaled", "alertscaler_instance": "here", "reason": "applied",
                                "rule": "full", "target": action["target"]}
    assert scaled["annotations"]["from"] == "4" and scaled["annotations"]["to"] == "6"
    assert scaled["generatorURL"] == f"http://scaler.example/decisions/{action['decision']}"
    back.fire(alertname="Busy")
    one.fire(alertname="Busy")
    [began] = eventually(lambda: people.alerts("AlertscalerAtMax"))
    eventually(lambda: any(each["labels"]["alertname"] == "AlertscalerAtMax" for each in back.alerts()))
    own = eventually(lambda: [each for record in daemon.notifications() for each in record["alerts"]
                              if each["labels"]["alertname"].startswith("Alertscaler")])
    assert {each["outcome"] for each in own} == {"own_alert"}
    for manager in (one, back):
        manager.resolve(alertname="Busy")
        manager.resolve(alertname="Full")
    [ended] = eventually(lambda: people.alerts("AlertscalerAtMax", "resolved"))
    assert ended["labels"] == began["labels"] and ended["startsAt"] == began["startsAt"]
    assert {record["labels"]["alertname"] for record in daemon.records("incident")} == {"Full", "Busy"}
    assert group.size == 6
