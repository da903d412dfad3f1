"""`explain` and `replay` on the log of a daemon at work, with values from real Prometheus."""
import datetime
import json
import subprocess
import time

import pytest

from harness.daemon import dump_yaml, environment
from harness.notification import alert, notification, timestamp
from harness.wait import eventually

pytestmark = pytest.mark.monitoring


def make_rules(url, goal=100):
    return {
        "targets": {"workers": {"node_group": {"provider": "mine", "url": url}, "min": 2, "max": 20, "cooldown": {"up": "1s", "down": "2s"}}},
        "rules": [
            {"name": "load", "match": ['alertname="Busy"'], "target": "workers", "every": "1s",
             "track": {"average_value": goal, "query": 'load{pool="{{ .Labels.pool }}"}'}},
            {"name": "wanted", "match": ['alertname="Wanted"'], "target": "workers", "pass_through": {"annotation": "size"}},
            {"name": "calm", "match": ['alertname="Calm"'], "target": "workers", "scale_down": {"by": 1}, "max_steps": 2,
             "guard": {"query": 'load{pool="workers"} < 450'}},
        ],
    }


@pytest.fixture
def scene(make_daemon, make_prometheus, exporter, node_group):
    """A log in which a value, an annotation and a guard decide: sizes 3, 5, 8, and down from there by the guard's leave."""
    exporter.set("load", 500, pool="workers")
    prometheus = make_prometheus(targets=[exporter.address])
    eventually(lambda: prometheus.query('load{pool="workers"}'))
    group = node_group(size=3)
    daemon = make_daemon(make_rules(group.url), {"providers": {"mine": {"type": "http"}}, "prometheus": {"url": prometheus.url}})

    def send(name, status="firing", **annotations):
        starts_at = started.setdefault(name, timestamp())
        daemon.notify(notification(alert({"alertname": name, "pool": "workers"}, status=status, starts_at=starts_at, annotations=annotations)))
        if status == "resolved":
            del started[name]

    started = {}
    send("Busy")
    eventually(lambda: group.size == 5)
    exporter.set("load", 800, pool="workers")
    eventually(lambda: group.size == 8)
    time.sleep(2.5)
    send("Busy", "resolved")
    send("Calm")
    eventually(lambda: daemon.records("decision", target_name="workers")[-1]["output"]["reason"] == "guarded")
    send("Calm", "resolved")
    exporter.set("load", 400, pool="workers")
    eventually(lambda: not prometheus.query('load{pool="workers"} >= 450'))
    time.sleep(1)
    eventually(lambda: send("Calm") or group.size <= 6, interval=0.5)  # repeats, or there would be one step
    send("Calm", "resolved")
    time.sleep(2.5)
    send("Wanted", size="9")
    eventually(lambda: group.size == 9)
    send("Wanted", "resolved")
    time.sleep(0.5)
    daemon.stop()
    return daemon, group


def run(daemon, *arguments, status=0):
    done = subprocess.run([daemon.binary, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False, env=environment())
    assert done.returncode == status, done
    return done.stdout


def read_time(record):
    return datetime.datetime.fromisoformat(record["time"].replace("Z", "+00:00")).timestamp()


def find_lead(daemon):
    """By how much the mean may differ: replayed rules have a decision's values from the record before it on, and set sizes at once, so
    they are as far ahead as alertscaler was slow here."""
    records = [record for record in daemon.records() if record["kind"] in ("notification", "repeat", "decision", "action")]
    sent = [record for record in records if record["kind"] in ("notification", "repeat")]
    ahead = lead = 0
    for before, record in zip(records, records[1:]):
        if record["kind"] == "decision":
            known = before
        elif record["kind"] == "action" and record["outcome"] == "applied":
            ahead = (0 if known in sent else ahead) + read_time(record) - read_time(known)
            lead += ahead * abs(record["to"] - record["from"])
    return lead / (read_time(sent[-1]) - read_time(sent[0]))


def test_a_log_is_computed_explained_and_replayed(scene, tmp_path):
    daemon, group = scene
    decisions = daemon.records("decision")
    # The arithmetic
    assert run(daemon, "replay", daemon.log_file) == f"{len(decisions)} decisions computed again, 0 differ\n"
    # Each decision in its words
    for record in decisions:
        told = json.loads(run(daemon, "explain", "--target=workers", "--at", record["time"], "-o", "json", daemon.log_file))
        assert told["decision"]["seq"] == record["seq"] and told["meaning"]
    first = next(record for record in decisions if record["output"]["reason"] == "scaled")
    text = run(daemon, "explain", "--target=workers", "--at", first["time"], daemon.log_file)
    assert "load wants 5: track average_value 100, the value is 500\n" in text
    assert "from 3 to 5: applied, HTTP 200" in text
    guarded = next(record for record in decisions if record["output"]["reason"] == "guarded")
    text = run(daemon, "explain", "--target=workers", "--at", guarded["time"], daemon.log_file)
    assert "guarded.\nA scale-down needs proof that monitoring works: from the rule's guard, or the watchdog.\n" in text and ": guarded\n" in text
    # The same rules come to the same
    rules = tmp_path / "rules.yaml"
    rules.write_text(dump_yaml(make_rules(group.url)))
    told = json.loads(run(daemon, "replay", "--rules", rules, "-o", "json", daemon.log_file))
    before, after = told["targets"][0]["before"], told["targets"][0]["after"]
    assert told["warnings"] == []
    assert (before["min"], before["max"], before["last"]) == (3, 9, 9) == (after["min"], after["max"], after["last"])
    assert (before["ups"], before["downs"]) == (after["ups"], after["downs"])
    assert after["mean"] == pytest.approx(before["mean"], abs=max(0.3, find_lead(daemon)))
    # Others do not
    rules.write_text(dump_yaml(make_rules(group.url, goal=50)))
    told = json.loads(run(daemon, "replay", "--rules", rules, "-o", "json", daemon.log_file))
    assert told["targets"][0]["after"]["max"] == 16
