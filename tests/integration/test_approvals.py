"""Changes that wait for a person, on the real daemon: the command and the API answer, over kill -9 and by others."""
import json
import subprocess

import pytest

from harness.daemon import dump_yaml, environment
from harness.node_group import Fault, HttpNodeGroup
from harness.notification import alert, notification
from harness.wait import eventually


def make_rules(group):
    return {
        "targets": {"workers": {
            "node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 40,
            "cooldown": {"up": "0s", "down": "0s"}, "approval": {"above": 3, "for": "10m"}}},
        "rules": [
            {"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 10}, "once": True},
            {"name": "small", "match": ['alertname="Small"'], "target": "workers", "scale_up": {"by": 2}, "once": True},
            {"name": "free", "match": ['alertname="Free"'], "target": "workers", "scale_to": 9, "approval": "none"},
        ],
    }


@pytest.fixture
def group(started):
    return started(HttpNodeGroup(4))


@pytest.fixture
def daemon(make_daemon, group, tmp_path):
    tokens = []
    for name, permissions in (("ada", ["notify", "read", "admin"]), ("reader", ["notify", "read"])):
        (tmp_path / name).write_text(f"secret-of-{name}\n")
        tokens.append({"name": name, "file": str(tmp_path / name), "permissions": permissions})
    daemon = make_daemon(make_rules(group), {"providers": {"mine": {"type": "http"}}, "receiver": {"tokens": tokens},
                                             "kill_switch": {"file": str(tmp_path / "stop")}},
                         flags=["--web.enable-admin-api"], start=False)
    daemon.headers = {"Authorization": "Bearer secret-of-ada"}
    yield daemon.start()
    daemon.stop()


def fire(daemon, name):
    daemon.notify(notification(alert({"alertname": name})))


def read_approvals(daemon):
    return daemon.get("/api/v1/approvals").json["data"]


def wait_request(daemon):
    return eventually(lambda: [a for a in read_approvals(daemon) if a["answer"] == "waiting"], what="it is asked")[0]


def run(daemon, tmp_path, *arguments, who="ada"):
    return subprocess.run([daemon.binary, *arguments, f"--url={daemon.url}", f"--token-file={tmp_path / who}"],
                          capture_output=True, text=True, timeout=60, check=False)


def test_a_large_change_waits_for_the_command_over_a_kill(daemon, group, tmp_path):
    fire(daemon, "Busy")
    asked = wait_request(daemon)
    assert (asked["rule"], asked["from"], asked["to"], asked["direction"]) == ("busy", 4, 14, "up")
    assert daemon.wait_record("decision", target_name="workers")["output"]["reason"] == "needs_approval"
    daemon.kill()
    daemon.start()
    assert wait_request(daemon)["id"] == asked["id"] and group.applied == []
    status = run(daemon, tmp_path, "status")
    assert asked["id"] in status.stdout, status
    done = run(daemon, tmp_path, "approve", asked["id"], "--reason=the sale")
    assert done.returncode == 0, done
    eventually(lambda: group.applied == [14], what="the approved size")
    again = run(daemon, tmp_path, "approve", asked["id"])
    assert again.returncode == 1 and again.stderr, again
    assert group.applied == [14]
    daemon.wait_record("approval", event="used")
    assert [r["event"] for r in daemon.records("approval")] == ["asked", "approved", "used"]


def test_a_denial_ends_it_and_others_go_on(daemon, group, tmp_path):
    fire(daemon, "Busy")
    asked = wait_request(daemon)
    fire(daemon, "Small")
    eventually(lambda: group.applied == [6], what="what needs no approval is done meanwhile")
    done = run(daemon, tmp_path, "deny", asked["id"])
    assert done.returncode == 0, done
    eventually(lambda: [r for r in daemon.records("decision") if r["output"]["reason"] == "not_approved"], what="not approved")
    assert group.applied == [6]
    fire(daemon, "Free")
    eventually(lambda: group.applied[-1] == 9, what="a rule that need not ask")


def test_who_may_not_answer(daemon, group, tmp_path):
    fire(daemon, "Busy")
    asked = wait_request(daemon)
    assert run(daemon, tmp_path, "approve", asked["id"], who="reader").returncode == 1
    other = asked["id"][:-1] + ("1" if asked["id"].endswith("0") else "0")
    for forged in ("x", other, asked["id"].lower(), "..%2f..", asked["id"] + "0"):
        assert daemon.post(f"/api/v1/approvals/{forged}/approve", {}).status in (400, 404), forged
    assert wait_request(daemon)["id"] == asked["id"] and group.applied == []
    said = run(daemon, tmp_path, "approve", "another", "--reason=a slip")
    assert said.returncode == 1 and "no such request" in said.stderr, said
    daemon.wait_record("command", request="another")     # the answer may come a moment before
    assert "approve request another by ada from " in read_log(daemon, "log", "--kind=command")
    (line,) = [line for line in daemon.process.log_text().splitlines() if "request=another" in line]
    assert "msg=command" in line and "target=" not in line, line


def read_log(daemon, *arguments):
    done = subprocess.run([daemon.binary, *map(str, arguments), daemon.log_file], capture_output=True, text=True, timeout=60, check=False,
                          env=environment())
    assert done.returncode == 0, done
    return done.stdout


def test_its_log_is_explained_and_replayed(daemon, group, tmp_path):
    fire(daemon, "Busy")
    asked = wait_request(daemon)
    assert run(daemon, tmp_path, "approve", asked["id"], "--reason=the sale").returncode == 0
    eventually(lambda: group.applied == [14], what="the approved size")
    daemon.wait_record("approval", event="used")
    daemon.stop()
    decisions = daemon.records("decision")
    assert read_log(daemon, "replay") == f"{len(decisions)} decisions computed again, 0 differ\n"
    waits = read_log(daemon, "explain", "--target=workers", "--at", decisions[0]["time"])
    assert "needs_approval" in waits and "asks for an approval (by more than 3 within an hour)" in waits
    assert f"from 4 to 14: asked, request {asked['id']}.\n" in waits
    assert f"from 4 to 14: approved by ada, request {asked['id']}: the sale.\n" in waits
    used = next(r for r in decisions if r["output"]["reason"] == "scaled")
    text = read_log(daemon, "explain", "--target=workers", "--at", used["time"])
    assert f"approved (by more than 3 within an hour), request {asked['id']} as far as 14" in text
    lines = read_log(daemon, "log", "--kind=approval").splitlines()
    assert ": 4 -> 14: asked, rule busy, request " in lines[0] and ", until 2" in lines[0]
    assert f": 4 -> 14: approved by ada, rule busy, request {asked['id']}, until 2" in lines[1] and lines[1].endswith("Z: the sale")
    assert ": 4 -> 14: used by action " in lines[2] and len(lines) == 3
    assert f", request {asked['id']} by ada from " in read_log(daemon, "log", "--kind=command")
    rules = tmp_path / "other.yaml"
    rules.write_text(dump_yaml(make_rules(group)))
    for answers, last, count in (("logged", 14, 1), ("given", 14, 1), ("none", 4, 1)):
        told = json.loads(read_log(daemon, "replay", "--rules", rules, "--approvals", answers, "-o", "json"))["targets"][0]
        assert (told["after"]["last"], told["approval_count"]) == (last, count), answers
    assert "(answered as in the log)" in read_log(daemon, "replay", "--rules", rules)


def test_the_kill_switch_ends_an_approval_that_was_given_before(daemon, group, tmp_path):
    stop = tmp_path / "stop"
    fire(daemon, "Busy")
    asked = wait_request(daemon)
    group.inject(Fault("GET", status=503), times=1000)      # so that the approval cannot be used yet
    assert run(daemon, tmp_path, "approve", asked["id"]).returncode == 0
    stop.write_text("incident 4711\n")
    ended = daemon.wait_record("approval", event="void", id=asked["id"])
    assert ended["message"] == "the kill switch was set", ended
    refused = run(daemon, tmp_path, "approve", asked["id"])
    assert refused.returncode == 1 and refused.stderr, refused
    daemon.kill()
    daemon.start()      # the switch is still set
    group.heal()
    stop.unlink()
    again = wait_request(daemon)
    assert again["id"] != asked["id"] and group.applied == []
    assert run(daemon, tmp_path, "approve", again["id"]).returncode == 0
    eventually(lambda: group.applied == [14], what="the size that was approved anew")


def test_a_request_that_waits_outlasts_the_kill_switch(daemon, group, tmp_path):
    stop = tmp_path / "stop"
    fire(daemon, "Busy")
    asked = wait_request(daemon)
    stop.write_text("incident 4711\n")
    daemon.wait_record("command", command="pause")
    refused = daemon.post(f"/api/v1/approvals/{asked['id']}/approve", {})
    assert refused.status == 403 and "kill switch" in refused.text, refused.text
    stop.unlink()
    daemon.wait_record("command", command="resume")
    assert run(daemon, tmp_path, "approve", asked["id"]).returncode == 0
    eventually(lambda: group.applied == [14], what="the approved size")
