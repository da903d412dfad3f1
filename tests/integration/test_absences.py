"""Times in which another replica led: the replica that leads now names it and the time, on pages, in the API and in commands."""
import datetime
import json
import re
import shutil
import subprocess
import time
import urllib.parse

import pytest
import yaml

from harness.daemon import dump_yaml, environment, find_binary
from harness.wait import eventually
from test_failover import LEASE, Cluster, lock_a_workload, moment

LEASE_TIMES = 15, 10, 0.5
OWN_LOG = "its records are in its own action log"


@pytest.fixture
def cluster(control_plane, tmp_path, namespace):
    made = Cluster(control_plane, tmp_path, namespace, LEASE_TIMES)
    yield made.start()
    for replica in made.replicas:
        if replica.process.running:
            replica.process.kill()


@pytest.fixture
def copying_cluster(control_plane, tmp_path, namespace):
    """The leader copies what it lacks."""
    made = Cluster(control_plane, tmp_path, namespace, LEASE_TIMES)
    for replica in made.replicas:
        config = yaml.safe_load(replica.config_file.read_text())
        config["action_log"]["replicas"] = {"urls": [each.url for each in made.replicas]}     # also its own
        replica.config_file.write_text(dump_yaml(config))
    yield made.start()
    for replica in made.replicas:
        if replica.process.running:
            replica.process.kill()


def run(daemon, *words):
    return subprocess.run([find_binary(), *words, "--url", daemon.url], capture_output=True, text=True, check=False,
                          env=environment(), timeout=60)


def decide(cluster, leader, name):
    """A decision of this leader: (the target's id, the decision's id, its time)."""
    target, action = lock_a_workload(cluster, leader, name)
    decision = leader.wait_record("decision", id=action["decision"])
    return target, decision["id"], decision["time"]


def text_of(instant):
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")


def follow(cluster, replica):
    """Starts the replica again; it has seen who leads."""
    replica.process.start()
    eventually(lambda: replica.get("/-/healthy").ok, what="it runs")
    eventually(lambda: " leads" in replica.get("/-/ready").text, what="it follows")


def hand_over(cluster, leader, to):
    """Ends the leader, and the third replica for the time, so that this one leads."""
    third = next(r for r in cluster.replicas if r not in (leader, to))
    was_running = third.process.running
    if was_running:
        third.stop()
    leader.stop()
    eventually(lambda: cluster.find_leader([to]), 60, what=f"{to.process.name} leads")
    if was_running:
        follow(cluster, third)


def warnings_of(daemon, query=""):
    answer = daemon.get("/api/v1/decisions" + query)
    assert answer.ok, answer.text
    return [warning for warning in answer.json.get("warnings", []) if OWN_LOG in warning]


@pytest.mark.seconds(600)
def test_the_replica_and_the_time_are_named(cluster):
    first = cluster.wait_leader()
    second = next(r for r in cluster.replicas if r is not first)
    one, one_decision, one_time = decide(cluster, first, "one")
    spec = cluster.plane.admin.get(LEASE)["spec"]
    since = text_of(datetime.datetime.fromisoformat(spec["acquireTime"].replace("Z", "+00:00")))
    hand_over(cluster, first, second)

    # The next leader knows who led, since when, and until when.
    start = second.wait_record("start")
    assert [(leader["replica"], leader["since"][:19] + "Z") for leader in start["leaders"]] == [(first.process.name, since)]
    assert moment(start["leaders"][0]["until"]) <= moment(start["time"]) + 1
    until = start["leaders"][0]["until"][:19] + "Z"
    sentence = f"{first.process.name} led from {since} to {until}; {OWN_LOG}"
    assert warnings_of(second) == [sentence]
    assert warnings_of(second, f"?until={one_time}") == [sentence]
    assert warnings_of(second, f"?since={start['time']}") in ([sentence], [])   # the edge has a tolerance
    assert warnings_of(second, "?" + urllib.parse.urlencode({"since": text_of(
        datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1))})) == []

    # A decision of that time
    answer = second.get(f"/api/v1/decisions/{one_decision}")
    assert answer.status == 404 and sentence in answer.text
    page = second.get(f"/decisions/{one_decision}")
    assert page.status == 404 and sentence in page.text
    unknown = second.get("/api/v1/decisions/01ARZ3NDEKTSV4RRFFQ69G5FAV")    # of 2016
    assert unknown.status == 404 and OWN_LOG not in unknown.text

    # The chart of its target
    page = second.get("/targets/" + urllib.parse.quote(one))
    assert page.ok and f"{first.process.name} led from " in page.text and OWN_LOG in page.text

    # Commands
    done = run(second, "explain", "--target", one, "--at", one_time)
    assert sentence in done.stderr, done
    done = run(second, "log", "--kind", "start")
    assert f"before led {first.process.name} from " in done.stdout and sentence in done.stderr

    # The first one leads again: its own log has both ends of the gap.
    two, two_decision, _ = decide(cluster, second, "two")
    follow(cluster, first)
    # As a follower it answers for its own files, and says so; only the leader is followed.
    done = run(first, "log", "--kind", "decision", "--output", "json")
    assert done.returncode == 0 and one_decision in done.stdout and two_decision not in done.stdout
    holder = cluster.plane.admin.get(LEASE)["spec"]["holderIdentity"]
    assert f"this replica does not lead ({holder} leads): these are the records in its own files" in done.stderr
    done = run(first, "explain", "--target", one, "--at", one_time)
    assert done.returncode == 0 and "2 to 5: applied" in done.stdout and f"({holder} leads)" in done.stderr, done
    answer = first.get("/api/v1/log?limit=1")
    assert answer.ok and answer.headers["Alertscaler-Log-Leader"] == holder
    assert "Alertscaler-Log-Leader" not in second.get("/api/v1/log?limit=1").headers
    answer = first.get("/api/v1/log?follow=abc")
    assert answer.status == 503 and f"{holder} leads: ask that one" in answer.text
    assert first.get("/api/v1/decisions").status == 503

    second_since = text_of(datetime.datetime.fromisoformat(
        cluster.plane.admin.get(LEASE)["spec"]["acquireTime"].replace("Z", "+00:00")))
    second_sentence = f"{second.process.name} led from {second_since} to "
    hand_over(cluster, second, first)
    assert [warning.startswith(second_sentence) for warning in warnings_of(first)] == [True]
    found = first.get("/api/v1/decisions?limit=1000").json["data"]
    ids = [decision["id"] for decision in found if decision["target"] in (one, two)]
    assert one_decision in ids and two_decision not in ids
    assert second_sentence in first.get(f"/api/v1/decisions/{two_decision}").text
    done = run(first, "log")
    assert " records are not in the files of this daemon: " + second_sentence in done.stderr
    page = first.get("/targets/" + urllib.parse.quote(one))
    assert f"{second.process.name} led from " in page.text and "The chart " in page.text

    # Copied beside the log, the files of the other replica fill the gap.
    for file in sorted(second.directory.glob("actions.jsonl*")):
        shutil.copy(file, first.directory / f"replica-{second.process.name}-{file.name}")
    assert warnings_of(first) == []
    found = first.get("/api/v1/decisions?limit=1000").json["data"]
    assert {one_decision, two_decision} <= {decision["id"] for decision in found}
    assert first.get(f"/api/v1/decisions/{two_decision}").ok and first.get(f"/decisions/{two_decision}").ok
    page = first.get("/targets/" + urllib.parse.quote(two))
    assert page.ok and OWN_LOG not in page.text and "2 to 5" in page.text
    done = run(first, "log", "-o", "json")
    seqs = [json.loads(line)["seq"] for line in done.stdout.splitlines()]
    assert seqs == list(range(1, len(seqs) + 1)) and done.stderr == ""
    done = run(first, "explain", "--target", two, "--at", text_of(datetime.datetime.now(datetime.timezone.utc)))
    assert done.returncode == 0 and done.stderr == "", done
    files = [*first.directory.glob("actions.jsonl*"), *first.directory.glob("replica-*.jsonl*")]
    done = subprocess.run([find_binary(), "log", "verify", *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "records 1 to " in done.stdout, done


@pytest.mark.seconds(600)
def test_the_leader_fetches_what_it_lacks(copying_cluster):
    cluster = copying_cluster
    first = cluster.wait_leader()
    third = cluster.replicas[-1] if first is not cluster.replicas[-1] else cluster.replicas[0]
    second = next(r for r in cluster.replicas if r not in (first, third))
    one, one_decision, one_time = decide(cluster, first, "one")
    for name in ("later", "even-later"):    # the state has the newest records until they are synced: the next leader writes them
        time.sleep(3)
        decide(cluster, first, name)
    third.stop()
    first.kill()        # without a farewell
    eventually(lambda: cluster.find_leader([second]), 60, what=f"{second.process.name} leads")
    eventually(lambda: warnings_of(second), what="the former leader is named")
    assert second.get(f"/api/v1/decisions/{one_decision}").status == 404
    two, two_decision, _ = decide(cluster, second, "two")

    # As soon as the former leader is back, the warning ends.
    follow(cluster, first)
    eventually(lambda: second.get(f"/api/v1/decisions/{one_decision}").ok, 120, what="the decision was copied")
    assert warnings_of(second) == []
    ids = [decision["id"] for decision in second.get("/api/v1/decisions?limit=1000").json["data"]]
    assert {one_decision, two_decision} <= set(ids)
    assert second.get(f"/decisions/{one_decision}").ok
    page = second.get("/targets/" + urllib.parse.quote(one))
    assert page.ok and OWN_LOG not in page.text and "2 to 5" in page.text
    done = run(second, "explain", "--target", one, "--at", one_time)
    assert done.returncode == 0 and "2 to 5: applied" in done.stdout and done.stderr == "", done
    done = run(second, "log", "-o", "json")
    seqs = [json.loads(line)["seq"] for line in done.stdout.splitlines()]
    assert seqs == list(range(1, len(seqs) + 1)) and done.stderr == ""
    files = [*second.directory.glob("actions.jsonl*"), *second.directory.glob("replica-*")]
    done = subprocess.run([find_binary(), "log", "verify", *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "records 1 to " in done.stdout, done
    assert not list(first.directory.glob("replica-*")), "a follower copies nothing"

    # The first one leads again: its own log has both ends of the gap.
    hand_over(cluster, second, first)
    assert first.get(f"/api/v1/decisions/{two_decision}").status == 404
    follow(cluster, second)
    eventually(lambda: first.get(f"/api/v1/decisions/{two_decision}").ok, 120, what="the decision was copied")
    eventually(lambda: warnings_of(first) == [], what="nothing is missing")
    for replica in (first, second):
        assert "cannot be copied" not in re.sub(r".*(UNREACHABLE|refused|connect).*", "", replica.process.log_text())
