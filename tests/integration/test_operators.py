"""Operators' hands: pauses, sizes by hand, locks ended, and the kill switch, on the real daemon; what was answered holds over
kill -9."""
import datetime
import json
import pathlib
import re
import subprocess
import threading
import time
import urllib.parse

import jsonschema
import pytest

from harness.daemon import environment
from harness.files import replace
from harness.many_groups import ManyGroups
from harness.node_group import Fault, HttpNodeGroup
from harness.notification import alert, notification
from harness.wait import eventually

FLAGS = ["--web.enable-admin-api"]
SCHEMA = pathlib.Path(__file__).parents[2] / "docs" / "action-log.schema.json"


def make_rules(group, **target):
    return {
        "targets": {"workers": {
            "node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 20,
            "cooldown": {"up": "1h", "down": "1h"}, **target}},
        "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 1}}],
    }


def write_tokens(directory):
    (directory / "admin.token").write_text("secret-of-ada\n")
    (directory / "robot.token").write_text("secret-of-robot\n")
    return [{"name": "ada", "file": str(directory / "admin.token"), "permissions": ["notify", "read", "admin"]},
            {"name": "robot", "file": str(directory / "robot.token"), "permissions": ["notify", "read"]}]


@pytest.fixture
def group(started):
    return started(HttpNodeGroup(4))


@pytest.fixture
def make(make_daemon, group, tmp_path):
    def make(config=None, rules=None, **more):
        settings = {"providers": {"mine": {"type": "http"}}, "receiver": {"tokens": write_tokens(tmp_path)}, **(config or {})}
        daemon = make_daemon(rules or make_rules(group), settings, flags=FLAGS, start=False, **more)
        daemon.headers = {"Authorization": "Bearer secret-of-ada"}
        return daemon.start()
    return make


def order(daemon, path, **body):
    return daemon.post(f"/api/v1/{path}", {"reason": "test", **body})


def fire(daemon, name="Busy", **labels):
    daemon.notify(notification(alert({"alertname": name, **labels})))


def test_a_pause_holds_over_a_kill_and_ends_by_itself(make, group):
    daemon = make()
    answer = order(daemon, "targets/workers/pause", **{"for": "1h", "reason": "the big move"})
    daemon.kill()       # right after the answer
    assert answer.status == 200, answer.text
    assert answer.json["data"]["command"] == "pause" and answer.json["data"]["until"]
    daemon.start()
    fire(daemon)
    held = daemon.wait_record("decision", target_name="workers")
    assert held["output"]["reason"] == "paused" and held["output"]["would"] == 5
    assert held["pause"]["who"] == "ada" and held["pause"]["reason"] == "the big move"
    target = daemon.target("workers")
    assert target["paused"]["reason"] == "the big move" and target["paused"]["until"] == answer.json["data"]["until"]
    assert daemon.metrics().value("alertscaler_targets_paused") == 1
    began = time.monotonic()
    assert order(daemon, "targets/workers/pause", **{"for": "10s"}).status == 200       # in place of the hour
    daemon.kill()
    daemon.start()
    eventually(lambda: group.applied == [5], what="it acts when the pause is over")
    assert time.monotonic() - began >= 9.5
    assert daemon.metrics().value("alertscaler_targets_paused") == 0
    eventually(lambda: [(r["command"], r["who"]) for r in daemon.records("command")]
               == [("pause", "ada"), ("pause", "ada"), ("resume", "")], what="records")
    daemon.stop()


def test_all_are_paused_until_resumed(make, group):
    daemon = make()
    assert order(daemon, "pause").status == 200
    assert daemon.get("/api/v1/status").json["data"]["paused"]["who"] == "ada"
    assert daemon.metrics().value("alertscaler_paused") == 1
    assert "Everything is paused by ada" in daemon.get("/").text
    daemon.restart()
    fire(daemon)
    assert daemon.wait_record("decision")["pause"]["all"] is True
    assert order(daemon, "targets/workers/resume").status == 409     # not it, but all
    assert order(daemon, "resume").status == 200
    eventually(lambda: group.applied == [5], what="it acts at once")
    assert daemon.metrics().value("alertscaler_paused") == 0
    assert daemon.get("/api/v1/status").json["data"]["paused"] is None
    daemon.stop()


def test_a_size_is_set_by_hand_and_is_done_after_a_kill(make, group):
    daemon = make()
    group.inject(Fault("GET", delay=1.0), times=1)      # so that it is killed before it is done
    answer = order(daemon, "targets/workers/scale", replicas=9)
    daemon.kill()
    assert answer.status == 200 and answer.json["data"]["replicas"] == 9
    daemon.start()
    eventually(lambda: group.size == 9, what="what was answered is done")
    action = daemon.wait_record("action", outcome="applied")
    assert action["command"] == answer.json["data"]["id"] and action["decision"] is None and action["to"] == 9
    assert group.applied == [9]
    fire(daemon)
    assert daemon.wait_record("decision")["output"]["reason"] == "cooldown"
    assert order(daemon, "targets/workers/unlock").status == 200
    eventually(lambda: group.applied == [9, 10], what="unlocked, it acts at once")
    daemon.stop()


def test_what_is_refused_says_why_and_is_recorded(make, group):
    daemon = make()
    url = urllib.parse.quote(f"node_group/mine/{group.url}", safe="")
    for path, body, status, says in [
            ("targets/nobody/pause", {}, 404, "no such target"),
            ("targets/workers/resume", {}, 409, "not paused"),
            ("targets/workers/unlock", {}, 409, "no lock"),
            ("targets/workers/scale", {"replicas": 21}, 422, "force"),
            (f"targets/{url}/scale", {"replicas": 0}, 422, "1 to 20"),
            ("targets/workers/scale", {"replicas": -1}, 400, "replicas"),
            ("targets/workers/scale", {}, 400, "replicas"),
            ("targets/workers/pause", {"reason": ""}, 400, "reason"),
            ("targets/workers/pause", {"for": "soon"}, 400, "for"),
            ("targets/workers/restart", {}, 405, "read")]:
        answer = order(daemon, path, **body)
        assert answer.status == status and says in answer.text, (path, answer.status, answer.text)
    eventually(lambda: [r["outcome"] for r in daemon.records("command")] == [
        "unknown_target", "nothing_to_do", "nothing_to_do", "out_of_bounds", "out_of_bounds"], what="records")
    assert group.applied == []
    assert order(daemon, "targets/workers/scale", replicas=25, force=True).status == 200
    eventually(lambda: group.applied == [25], what="by force")
    daemon.stop()


def test_only_an_admin_may(make, group):
    daemon = make()
    for headers, status in (({"Authorization": "Bearer secret-of-robot"}, 403), ({}, 401)):
        daemon.headers = headers
        for path in ("pause", "targets/workers/pause", "targets/workers/scale"):
            assert order(daemon, path, replicas=9).status == status
    daemon.headers = {"Authorization": "Bearer secret-of-ada"}
    assert daemon.records("command") == [] and group.applied == []
    daemon.stop()


def test_dry_run_refuses_sizes(make, group):
    daemon = make({"dry_run": True})
    answer = order(daemon, "targets/workers/scale", replicas=9)
    assert answer.status == 403 and "dry run" in answer.text
    daemon.stop()


def rules_of_many(groups):
    return {
        "targets": {"group": {
            "node_group": {"provider": "mine", "url": groups.url + "/{{ .Labels.group }}"},
            "min": 1, "max": 1000, "allow": {"names": ["*"]}}},
        "rules": [{"name": "grow", "match": ['alertname="Grow"'], "target": "group", "once": True, "scale_up": {"by": 1}}],
    }


def test_the_reason_of_the_kill_switch_may_be_written_after_the_file_is_there(make, tmp_path):
    stop = tmp_path / "stop"
    daemon = make({"kill_switch": {"file": str(stop)}})
    stop.touch()        # as `echo ... > stop` does, seen between its two steps
    first = daemon.wait_record("command", command="pause")
    assert first["reason"] == "no reason is written there"
    with stop.open("w") as file:
        file.write("the building burns\n")
    daemon.wait_record("command", command="pause", reason="the building burns")
    assert daemon.get("/api/v1/status").json["data"]["paused"]["reason"] == "the building burns"
    stop.unlink()
    daemon.wait_record("command", command="resume")
    daemon.stop()


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def test_the_kill_switch_stops_everything_within_a_second_under_load(make, started, tmp_path):
    groups = started(ManyGroups(3, delay=0.002))
    stop = tmp_path / "switch" / "stop"
    stop.parent.mkdir()
    daemon = make({"kill_switch": {"file": str(stop)}}, rules_of_many(groups), log_level="info")
    stopping = threading.Event()
    sent = []

    def send(number):
        count = 0
        while not stopping.is_set():
            count += 1
            name = f"s{number}-{count}"
            daemon.notify(notification(alert({"alertname": "Grow", "group": name})))
            sent.append(name)

    senders = [threading.Thread(target=send, args=(n,), daemon=True) for n in range(4)]
    for sender in senders:
        sender.start()
    eventually(lambda: len(groups.applied) > 50, what="it acts")
    replace(stop, "the building burns\n")
    placed = time.time()
    began = daemon.wait_record("command", command="pause")
    assert began["who"] == "kill switch file" and began["reason"] == "the building burns"
    answered = len(sent)
    eventually(lambda: len(sent) > answered + 50 and time.time() > placed + 4, what="notifications are taken and decided as ever")
    # The groups, and not only the daemon, are through with what was under way.
    eventually(lambda: len({r["target"] for r in daemon.records("action", outcome="applied")}) == len(groups.applied), what="it stops")
    # what was decided by then and not sent any more is recorded too, with no attempt
    late = [r for r in daemon.records("action") if r["to"] is not None and r["attempts"]
            and seconds(r["time"]) - r["duration_seconds"] > placed + 1]
    assert not late, "no action begins later than a second after the file was there"
    status = daemon.get("/api/v1/status").json["data"]["paused"]
    assert status["kill_switch"] is True and status["reason"] == "the building burns"
    stopping.set()
    for sender in senders:
        sender.join(20)
    daemon.stop()
    done = len(groups.applied)
    daemon.start()      # it is there from the first moment on
    time.sleep(1.0)
    assert len(groups.applied) == done
    assert order(daemon, "resume").status == 409
    stop.unlink()
    eventually(lambda: all(name in groups.applied for name in sent), 60, what="then all of it is done")
    assert daemon.records("command")[-1]["command"] == "resume"
    daemon.stop()


def validate(records):
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    for record in records:
        problems = [error.message for error in validator.iter_errors(record)]
        assert not problems, (problems, record)


def test_from_the_command_line(make, group, tmp_path):
    daemon = make()

    def say(*words):
        return subprocess.run([daemon.binary, *words, f"--url={daemon.url}", f"--token-file={tmp_path / 'admin.token'}"],
                              env=environment(), text=True, capture_output=True, timeout=40)

    assert say("pause", "workers", "--for=1h", "--reason=load test").returncode == 0
    assert say("pause", "--all", "--reason=the big move").returncode == 0
    fire(daemon)
    daemon.wait_record("decision")
    told = say("status").stdout
    assert "\nEverything is paused, by ada: the big move\nTARGET " in told and "paused by busy" in told
    assert re.search(r"5\dm(\d+s)?: load test", told)
    assert say("resume", "--all", "--reason=moved").returncode == 0
    assert say("scale", "workers", "12", "--reason=sale").returncode == 0
    daemon.wait_record("action", outcome="applied", to=12)      # only then there is a lock
    assert say("unlock", "workers", "--reason=no need").returncode == 0
    refused = say("scale", "workers", "50", "--reason=sale")
    assert refused.returncode == 1 and "422" in refused.stderr
    assert say("resume", "workers", "--reason=tested").returncode == 0
    eventually(lambda: group.applied == [12, 13])
    daemon.stop()

    log = subprocess.run([daemon.binary, "log", "--kind=command", str(daemon.log_file)], text=True, capture_output=True)
    lines = [line.split("command", 1)[1].strip() for line in log.stdout.splitlines()]
    assert len(lines) == 7 and lines[0].startswith("pause workers (node_group/") and lines[0].endswith(": load test"), lines
    assert lines[1].startswith("pause all by ada from 127.0.0.1:") and " to 12 by ada" in lines[3]
    assert lines[5].endswith(": sale: refused, out_of_bounds: 50 is outside 1 to 20; add `--force`")
    replay = subprocess.run([daemon.binary, "replay", str(daemon.log_file)], text=True, capture_output=True)
    assert replay.returncode == 0 and " 0 differ" in replay.stdout, replay.stdout + replay.stderr
    other = subprocess.run([daemon.binary, "replay", "--rules", str(daemon.directory / "rules"), str(daemon.log_file)],
                           text=True, capture_output=True)
    assert other.returncode in (0, 1), other.stderr
    told = subprocess.run([daemon.binary, "explain", "--target=workers", str(daemon.log_file)], text=True, capture_output=True)
    assert told.returncode == 0, told.stderr
    held = next(r for r in daemon.records("decision") if r["output"]["reason"] == "paused")
    told = subprocess.run([daemon.binary, "explain", "--target=workers", f"--at={held['time']}", str(daemon.log_file)],
                          text=True, capture_output=True).stdout
    assert "all targets, by ada: the big move" in told, told
    assert re.search(r"\n  \S+: scale to 12 by ada: sale \(command \w{26}\)\n", told), told
    assert "from 4 to 12: applied" in told and "by an operator's command" in told, told
    validate(daemon.records())
