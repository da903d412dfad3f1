"""`alertscaler log` and `log verify` on logs made here: the chain is computed by other code than alertscaler's own."""
import copy
import hashlib
import json
import pathlib
import subprocess
import time

import pytest

from harness.daemon import environment, find_binary
from harness.notification import alert, notification
from harness.wait import eventually

SCHEMA = pathlib.Path(__file__).parents[2] / "docs" / "action-log.schema.json"
DIGEST = "ab" * 32
TARGET = "kubernetes/default/apps/v1/Deployment/shop/checkout"
SILENCE = {"since_alert_seconds": 22.5, "since_notification_seconds": 0.009}


def make_alert(name="Slow", outcome="queued", rules=("slow",), **labels):
    return {"fingerprint": "7be9cc40aa9853c5", "labels": {"alertname": name, **labels}, "outcome": outcome,
            "rules": list(rules), "startsAt": "2026-11-20T13:59:00Z", "status": "firing"}


def make_notification(*alerts):
    return {"kind": "notification", "alerts": list(alerts), "body_sha256": DIGEST, "body_size": 812,
            "credential": "alertmanager", "groupKey": "{}:{}", "id": "01KAJ2Q5J3M6V3Y8H8S9Q2B1ZC",
            "notification_reason": "new alerts added", "receiver": "scaler", "remote": "10.1.2.3:41234", "traceparent": "",
            "truncated": 0}


def make_repeat(same_as="01KAJ2Q5J3M6V3Y8H8S9Q2B1ZC", number=1, **more):
    return {"kind": "repeat", "credential": "alertmanager", "id": f"01KAJ2Q5J3M6V3Y8H8{number:08}", "outcomes": {"duplicate": 1},
            "remote": "10.1.2.3:5555", "same_as": same_as, "traceparent": "", **more}


def make_decision(replicas, desired, reason, rule="slow", name="checkout", target=TARGET, **output):
    return {"kind": "decision", "id": "01KAJ2Q5J3M6V3Y8H8S9Q2B1ZD", "incident_count": 1,
            "incidents": ["7be9cc40aa9853c5"], "notification_count": 1,
            "notifications": ["01KAJ2Q5J3M6V3Y8H8S9Q2B1ZC"], "repeats": 0, "rules_digest": DIGEST,
            "target": target, "target_name": name, **SILENCE,
            "input": {"flags": {"budget_exhausted": False, "guarded": False, "in_progress": False, "paused": False},
                      "history": {"last_down": None, "last_up": None, "recommendations": [], "scale_events": []},
                      "now": "2026-11-20T14:00:00Z",
                      "observed": {"replicas": replicas, "status_replicas": replicas},
                      "proposals": [{"action": {"scale_up": {"by": 2}}, "rule": rule}],
                      "target": {"cooldown": {"down": 0, "up": 0, "up_after_down": 0}, "cpu_initialization_seconds": 300,
                                 "dry_run": False, "enforce_bounds": False, "initial_readiness_delay_seconds": 30, "max": 10,
                                 "min": 1, "tolerance": {"down": 0.1, "up": 0.1}}, "v": 1},
            "output": {"desired": desired, "direction": "up", "limited_by": [], "next_evaluation": None,
                       "proposals": [{"desired": desired, "reason": "ok", "rule": rule}], "reason": reason,
                       "recommendation": desired, "replicas": replicas, "rule": rule,
                       "trail": [{"desired": desired, "gate": "combine"}], "v": 1, **output}}


def make_action(before, after, outcome, **more):
    return {"kind": "action", "attempts": 1, "decision": "01KAJ2Q5J3M6V3Y8H8S9Q2B1ZD", "duration_seconds": 0.0142,
            "from": before, "http_status": 200, "id": "01KAJ2Q5J3M6V3Y8H8S9Q2B1ZE", "late": False, "message": "",
            "method": "PATCH", "outcome": outcome, "path": "/apis/apps/v1", "repeats": 0, "rule": "slow", **SILENCE,
            "target": TARGET, "target_name": "checkout", "to": after, "version": "123", **more}


START = {"kind": "start", "config_digest": DIGEST, "incidents": 0, "intents": 0, "rules": 2, "rules_digest": DIGEST,
         "targets": 1, "version": "0.1.0"}
RECORDS = [
    START,
    make_notification(make_alert(deployment="checkout", namespace="shop"), make_alert("Other", "no_rule", ())),
    {"kind": "incident", "event": "opened", "fingerprint": "7be9cc40aa9853c5", "labels": {"alertname": "Slow"},
     "notification": "01KAJ2Q5J3M6V3Y8H8S9Q2B1ZC", "startsAt": "2026-11-20T13:59:00Z",
     "targets": [{"replicas": 4, "rule": "slow", "target": TARGET}]},
    make_decision(4, 6, "scaled", limited_by=["max"]),
    make_action(4, 6, "applied"),
    make_decision(6, 6, "cooldown", would=8, next_evaluation="2026-11-20T14:03:00Z"),
    make_decision(3, 3, "at_max", rule="queue", name="workers", target="node_group/mine/workers"),
    make_action(6, 8, "conflict", http_status=409, message="the object has been modified"),
    make_action(None, None, "forbidden", decision=None, rule=None, http_status=403, message="no\x1b[31mred\x1b[0m\x9b"),
    {"kind": "denied", "count": 3, "error": "no credentials", "handler": "webhook", "remote": "10.9.9.9:1", "status": 401},
    {"kind": "reload", "config_digest": None, "credential": "", "error": "rules/a.yaml:3:1: error", "rules_digest": None,
     "old_config_digest": DIGEST, "old_rules_digest": DIGEST},
    {**START, "kind": "stop"},
]


def canonical(record):
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def seal(records, first=1, prev="0" * 64):
    """The records as lines; record i at 14:00:i."""
    lines = []
    for seq, record in enumerate(records, first):
        record = {"instance": "host-1", "time": f"2026-11-20T14:{seq // 60:02}:{seq % 60:02}.123456Z", **record,
                  "seq": seq, "prev": prev}
        prev = hashlib.sha256(canonical(record).encode()).hexdigest()
        lines.append(canonical({**record, "hash": prev}) + "\n")
    return lines


@pytest.fixture
def run(tmp_path):
    binary = find_binary()
    assert binary, "alertscaler is not built"

    def run(*args, status=0, stdin=None, **env):
        done = subprocess.run([binary, "log", *map(str, args)], cwd=tmp_path, capture_output=True, input=stdin,
                              text=True, timeout=60, env=environment(**env))
        assert done.returncode == status, done
        return done
    return run


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "actions.jsonl"
    path.write_text("".join(seal(RECORDS)))
    return path


def test_what_people_read(run, log):
    assert run(log).stdout == """\
2026-11-20T14:00:01.123Z  start        alertscaler 0.1.0 on host-1: 2 rules, 1 target, 0 open incidents, 0 unfinished actions
2026-11-20T14:00:02.123Z  notification scaler from 10.1.2.3:41234 as alertmanager, new alerts added, 2 alerts: Slow{deployment="checkout",namespace="shop"} firing queued for slow; Other firing no_rule
2026-11-20T14:00:03.123Z  incident     Slow opened, firing since 2026-11-20T13:59:00Z: kubernetes/default/apps/v1/Deployment/shop/checkout at 4 by rule slow
2026-11-20T14:00:04.123Z  decision     checkout (kubernetes/default/apps/v1/Deployment/shop/checkout): decided 4 -> 6, rule slow, limited by max
2026-11-20T14:00:05.123Z  action       checkout: 4 -> 6: applied, rule slow, HTTP 200, 14 ms
2026-11-20T14:00:06.123Z  decision     checkout: stays at 6: cooldown, would be 8, rule slow, again at 2026-11-20T14:03:00Z
2026-11-20T14:00:07.123Z  decision     workers (node_group/mine/workers): stays at 3: at_max, rule queue
2026-11-20T14:00:08.123Z  action       checkout: 6 -> 8: conflict, rule slow, HTTP 409, 14 ms: the object has been modified
2026-11-20T14:00:09.123Z  action       checkout: reading its size: forbidden, HTTP 403, 14 ms: no\\x1b[31mred\\x1b[0m\\x9b
2026-11-20T14:00:10.123Z  denied       10.9.9.9:1 at webhook: HTTP 401: no credentials (3 times)
2026-11-20T14:00:11.123Z  reload       failed: rules/a.yaml:3:1: error
2026-11-20T14:00:12.123Z  stop         alertscaler 0.1.0 on host-1: 2 rules, 1 target, 0 open incidents, 0 unfinished actions
"""


def test_colors_only_where_wanted(run, log):
    assert "\x1b" not in run(log).stdout
    colored = run(log, "--color=always").stdout
    assert "\x1b[32mapplied\x1b[0m" in colored and "\x1b[31mconflict\x1b[0m" in colored


@pytest.mark.parametrize("options, expected", [
    (["--kind=decision"], [4, 6, 7]),
    (["--kind=decision,action"], [4, 5, 6, 7, 8, 9]),
    (["--target=checkout"], [4, 5, 6, 8, 9]),
    (["--target", TARGET], [3, 4, 5, 6, 8, 9]),
    (["--target=*/shop/*"], [3, 4, 5, 6, 8, 9]),
    (["--target=workers"], [7]),
    (["--rule=slow"], [2, 3, 4, 5, 6, 8]),
    (["--rule=queue"], [7]),
    (["--reason=cooldown"], [6]),
    (["--reason=no_rule"], [2]),
    (["--reason=queued"], [2]),
    (["--reason=conflict"], [8]),
    (["--since=2026-11-20T14:00:11Z"], [11, 12]),
    (["--until=2026-11-20T14:00:02Z"], [1]),
    (["--since=2026-11-20T14:00:05Z", "--until=2026-11-20T15:00:07+01:00", "--kind=decision"], [6]),
])
def test_filters(run, log, options, expected):
    out = run(log, "-o", "json", *options).stdout.splitlines()
    assert [json.loads(line)["seq"] for line in out] == expected


def test_since_a_while_ago(run, tmp_path):
    path = tmp_path / "a.jsonl"
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
    path.write_text("".join(seal([START, {**START, "time": now}])))
    out = run(path, "--since=1h", "--until=0", "-o", "json").stdout
    assert json.loads(out)["seq"] == 2


def test_json_is_the_file_as_it_is(run, log):
    assert run(log, "--output=json").stdout == log.read_text()
    assert run("-", "-o", "json", stdin=log.read_text()).stdout == log.read_text()


def test_nothing_found_is_status_1(run, log):
    assert run(log, "--target=nothing", status=1).stdout == ""


@pytest.mark.parametrize("options, words", [
    (["--kind=decisions"], '"decisions" is none of start, stop'),
    (["--reason=cool"], 'there is no reason code "cool"'),
    (["--since=yesterday"], "neither a time (2026-11-20T14:00:00Z) nor a duration"),
    (["missing.jsonl"], "missing.jsonl: No such file or directory"),
    (["."], "Is a directory"),
])
def test_mistakes_are_told(run, log, options, words):
    operands = [] if not options[0].startswith("-") else [log]
    assert words in run(*operands, *options, status=2).stderr


def test_lines_that_are_no_records(run, log):
    log.write_text("nonsense\n[]\n" + log.read_text())
    done = run(log, status=2)
    assert f"{log}:1: not a record" in done.stderr and f"{log}:2: not a record" in done.stderr
    assert len(done.stdout.splitlines()) == len(RECORDS)


def test_files_come_in_any_order(run, tmp_path):
    lines = seal(RECORDS)
    names = [tmp_path / name for name in ("actions.jsonl", "actions.jsonl.1", "actions.jsonl.2")]
    for name, part in zip(names, (lines[8:], lines[4:8], lines[:4])):
        name.write_text("".join(part))
    assert run(*names, "-o", "json").stdout == "".join(lines)
    assert run("verify", *names).stdout.startswith("records 1 to 12 are whole")


def test_follow(log, tmp_path):
    lines = seal(RECORDS)
    log.write_text("".join(lines[:2]))
    process = subprocess.Popen([find_binary(), "log", "--follow", "-o", "json", log], stdout=subprocess.PIPE, text=True,
                               env=environment())
    try:
        assert [process.stdout.readline() for _ in range(2)] == lines[:2]
        with log.open("a") as out:
            out.write(lines[2] + lines[3][:50])
            out.flush()
            assert process.stdout.readline() == lines[2]
            out.write(lines[3][50:])
        assert process.stdout.readline() == lines[3]
        log.rename(tmp_path / "actions.jsonl.1")
        log.write_text(lines[4])
        assert process.stdout.readline() == lines[4]
    finally:
        process.kill()
        process.wait()


# Repeats: small records, read with the details of the one that they name

KNOWN = make_notification(make_alert("Slow", "duplicate", deployment="checkout"), make_alert("Full", "max_steps", ("full",)))
TOLD = ('repeat       scaler from 10.1.2.3:5555 as alertmanager, new alerts added, 2 alerts: Slow{deployment="checkout"} firing '
        "duplicate for slow; Full firing max_steps for full; the same as 01KAJ2Q5J3M6V3Y8H8S9Q2B1ZC\n")
UNTOLD = ("repeat       from 10.1.2.3:5555 as alertmanager, alerts: 1 duplicate, 1 max_steps; "
          "the details are in record 01KAJ2Q5J3M6V3Y8H8S9Q2B1ZC, which is not in these files\n")


def make_repeats(count=1, first=1):
    return [make_repeat(number=first + i, outcomes={"duplicate": 1, "max_steps": 1}) for i in range(count)]


def test_a_repeat_is_told_with_the_details_of_the_record_that_it_names(run, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(seal([START, KNOWN, *make_repeats(2)])))
    assert run(path, "--kind=repeat").stdout == "".join(f"2026-11-20T14:00:0{n}.123Z  {TOLD}" for n in (3, 4))
    assert run(path, "-o", "json").stdout == path.read_text(), "as it is in the file"


@pytest.mark.parametrize("options, expected", [
    (["--kind=repeat"], [3, 5]), (["--kind=notification"], [2, 4]),
    (["--rule=full"], [2, 3]), (["--rule=s*"], [2, 3]), (["--rule=nothing"], []),
    (["--reason=duplicate"], [2, 3, 4, 5]), (["--reason=max_steps"], [2, 3]),
    (["--since=2026-11-20T14:00:03Z", "--rule=full"], [3]),                 # the details are older
    (["--target=checkout"], []),
])
def test_filters_take_a_repeat_for_what_it_stands_for(run, tmp_path, options, expected):
    other = {**make_notification(make_alert("Else", "duplicate", ())), "id": "01KAJ2Q5J3M6V3Y8H8S9Q2B1ZX"}
    path = tmp_path / "a.jsonl"
    path.write_text("".join(seal([START, KNOWN, *make_repeats(), other, make_repeat(other["id"], 2)])))
    done = run(path, "-o", "json", *options, status=0 if expected else 1)
    assert [json.loads(line)["seq"] for line in done.stdout.splitlines()] == expected
    assert not done.stderr


def test_a_repeat_without_its_details_says_so(run, tmp_path):
    lines = seal([START, KNOWN, *make_repeats(2)])
    path = tmp_path / "a.jsonl"
    path.write_text("".join(lines[2:]))
    done = run(path)
    assert done.stdout == "".join(f"2026-11-20T14:00:0{n}.123Z  {UNTOLD}" for n in (3, 4)) and not done.stderr
    assert len(run(path, "--reason=max_steps", "-o", "json").stdout.splitlines()) == 2, "outcomes it knows itself"
    done = run(path, "--rule=slow", status=1)
    assert "2 repeats were left out: the records with their details, and so their rules, are not in these files" in done.stderr
    assert not run(path, "--rule=slow", "--kind=decision", status=1).stderr, "it would not have been one of these anyway"
    assert run("verify", path).returncode == 0


def test_details_are_kept_as_far_back_as_a_repeat_may_reach(run, tmp_path):
    path = tmp_path / "a.jsonl"
    denied = next(record for record in RECORDS if record["kind"] == "denied")
    lines = seal([KNOWN, *[denied] * 9999, *make_repeats(2)])
    path.write_text("".join(lines))
    told = run(path, "--kind=repeat").stdout.splitlines(keepends=True)
    assert [line.partition("Z  ")[2] for line in told] == [TOLD, UNTOLD], "the second one is not alertscaler's"


def test_many_bodies_take_turns(run, tmp_path):
    """More than are kept parsed."""
    text, count = "x" * 100000, 120
    bodies = [{**make_notification(make_alert("Slow", "duplicate", pod=str(n), text=text)), "id": f"01KAJ2Q5J3M6V3Y8H9{n:08}"} for n in range(count)]
    repeats = [make_repeat(bodies[n % count]["id"], n) for n in range(3 * count)]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(seal([*bodies, *repeats])))
    told = run(path, "--kind=repeat").stdout.splitlines()
    assert len(told) == len(repeats) and all(f'pod="{n % count}"' in line for n, line in enumerate(told))


def test_repeats_over_several_files_and_replicas(run, tmp_path):
    """Where the lead changed, the next one's file begins with records of the one before: here with a repeat."""
    lines = seal([START, KNOWN, *make_repeats(3), START, {**KNOWN, "id": "01KAJ2Q5J3M6V3Y8H8S9Q2B1ZZ"}, *make_repeats(2, 10)])
    parts = {"pod-0": lines[:5], "pod-1": lines[4:]}
    for name, part in parts.items():
        (tmp_path / name).write_text("".join(part))
    told = run("--kind=repeat", "pod-1", "pod-0").stdout
    assert told.count(TOLD) == 5 and told.count("Z  ") == 5, "each once"
    assert run("--kind=repeat", "pod-1").stdout.count(UNTOLD) == 3
    assert run("-", "--kind=repeat", stdin="".join(lines)).stdout == told


def test_follow_tells_repeats_over_a_rotation(tmp_path):
    lines = seal([START, KNOWN, *make_repeats(2)])
    log = tmp_path / "a.jsonl"
    log.write_text("".join(lines[:2]))
    process = subprocess.Popen([find_binary(), "log", "--follow", "--kind=repeat", "--since=2026-11-20T14:00:03Z", log],
                               stdout=subprocess.PIPE, text=True, env=environment())
    try:
        with log.open("a") as out:
            out.write(lines[2])
        assert process.stdout.readline().endswith(TOLD)
        log.rename(tmp_path / "a.jsonl.1")
        log.write_text(lines[3])
        assert process.stdout.readline().endswith(TOLD)
    finally:
        process.kill()
        process.wait()


# verify

def test_verify_whole(run, log):
    last = json.loads(seal(RECORDS)[-1])["hash"]
    assert run("verify", log).stdout == f"records 1 to 12 are whole, the last has the hash {last}\n"
    assert json.loads(run("verify", log, "-o", "json").stdout) == {"first": 1, "last": 12, "ok": True}


def test_verify_of_a_later_part_says_so(run, tmp_path):
    path = tmp_path / "b.jsonl"
    path.write_text("".join(seal(RECORDS)[5:]))
    assert "records 1 to 5 are not in these files" in run("verify", path).stdout


def write_parts(tmp_path, lines, *stretches):
    paths = []
    for i, (first, last) in enumerate(stretches):
        paths.append(tmp_path / f"pod-{i}.jsonl")
        paths[-1].write_text("".join(lines[first - 1:last]))
    return paths


def test_files_of_several_replicas_are_one_chain(run, tmp_path):
    """Where one ended for another to go on, both may have the last records of the first."""
    lines = seal(RECORDS)
    files = write_parts(tmp_path, lines, (1, 4), (3, 9), (8, 8), (10, 12))
    assert run("verify", *reversed(files)).stdout.startswith("records 1 to 12 are whole")
    assert run(*files, "-o", "json").stdout == "".join(lines), "each record comes once"


@pytest.mark.parametrize("stretches, words", [
    (((1, 4), (6, 12)), "record 6 follows record 4: records are missing"),
    (((1, 6), (4, 5), (9, 12)), "record 9 follows record 6: records are missing")])
def test_verify_finds_what_no_replica_has(run, tmp_path, stretches, words):
    files = write_parts(tmp_path, seal(RECORDS), *stretches)
    assert words in run("verify", *files, status=1).stdout


def test_verify_finds_two_histories(run, tmp_path):
    """Two replicas that both went on from one record: a state that was taken from a backup, or a forged file."""
    lines = seal(RECORDS)
    (tmp_path / "a").write_text("".join(lines[:6]))
    other = seal(RECORDS[:3] + [START] * 4)
    (tmp_path / "b").write_text("".join(other[2:]))
    out = run("verify", "a", "b", status=1).stdout
    assert out.startswith("b:2: ") and "record 4 is another one than in the file before" in out


def test_verify_of_nothing(run, tmp_path):
    (tmp_path / "empty").write_text("")
    assert run("verify", "empty").stdout == "no records\n"


def tampered():
    lines = seal(RECORDS)
    other = seal([START] * 20)
    changed = lines[4].replace('"to":6', '"to":7')
    forged = json.loads(lines[4])
    forged["to"] = 7
    del forged["hash"]
    forged = canonical({**forged, "hash": hashlib.sha256(canonical(forged).encode()).hexdigest()}) + "\n"
    return {
        "changed": (lines[:4] + [changed] + lines[5:], 5, "record 5 was changed"),
        "changed with a new hash": (lines[:4] + [forged] + lines[5:], 6, "record 6 does not continue"),
        "removed": (lines[:4] + lines[5:], 5, "record 6 follows record 4: records are missing"),
        "inserted": (lines[:4] + [other[4]] + lines[4:], 5, "record 5 does not continue"),
        "doubled": (lines[:5] + lines[4:], 6, "it is there twice or out of order"),
        "swapped": (lines[:4] + [lines[5], lines[4]] + lines[6:], 5, "records are missing"),
        "cut in a line": (lines[:4] + [lines[4][:100]], 5, "ends in the middle of a line"),
        "white space": (lines[:4] + [lines[4].replace('"to":6', '"to": 6')] + lines[5:], 5, "canonical form"),
        "a key twice": (lines[:4] + [lines[4].replace('"to":6', '"to":7,"to":6')] + lines[5:], 5, "canonical form"),
        "an empty line": (lines[:4] + ["\n"] + lines[4:], 5, "canonical form"),
    }


@pytest.mark.parametrize("what", tampered())
def test_verify_finds(run, tmp_path, what):
    lines, line, words = tampered()[what]
    path = tmp_path / "c.jsonl"
    path.write_text("".join(lines))
    out = run("verify", path, status=1).stdout
    assert out.startswith(f"{path}:{line}: ") and words in out
    answer = json.loads(run("verify", path, "-o", "json", status=1).stdout)
    assert answer["ok"] is False and answer["line"] == line and answer["last"] == line - 1


def test_verify_finds_what_is_no_json_behind_a_good_hash(run, tmp_path):
    """The chain's check looks at bytes; a text that is no JSON must not pass with a hash of its own."""
    body = '"kind":"x","prev":"%s","seq":1,"time":nonsense}' % ("0" * 64)
    digest = hashlib.sha256(("{" + body).encode()).hexdigest()
    path = tmp_path / "d.jsonl"
    path.write_text('{"hash":"%s",%s\n' % (digest, body))
    assert "not JSON" in run("verify", path, status=1).stdout


# the schema

def test_the_schema_takes_these_records_and_refuses_others():
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    records = [json.loads(line) for line in seal([*RECORDS, make_repeat()])]
    for record in records:
        validator.validate(record)
        for key in record:
            broken = copy.deepcopy(record)
            del broken[key]
            assert not validator.is_valid(broken), f"{record['kind']} without {key}"
        assert not validator.is_valid({**record, "more": 1})


def test_the_schema_takes_what_earlier_versions_wrote():
    """A log goes on over an upgrade, so one schema has to hold for all of it."""
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    logs = sorted(pathlib.Path(__file__).parents[1].glob("golden/upgrade/*/actions.jsonl"))
    assert logs
    for log in logs:
        for line in log.read_text().splitlines():
            validator.validate(json.loads(line))


def test_the_schema_takes_decisions_about_pools():
    """Of the simulator, whose ids of notifications are none: `input` and `output` count."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(SCHEMA.read_text())
    log = pathlib.Path(__file__).parents[1] / "golden/log/pools-2.jsonl"
    for record in map(json.loads, log.read_text().splitlines()):
        plan = {"at": record["time"], "fit": True, "max": 9, "min": 0, "take": False}
        newest = record["input"] | {"v": 3, "observed": record["input"]["observed"] | {"plan": plan}}
        for part, value in (("input", record["input"]), ("input", newest), ("output", record["output"])):
            jsonschema.Draft202012Validator({"$ref": f"#/$defs/decision_{part}", "$defs": schema["$defs"]}).validate(value)


def test_the_log_of_a_real_run(run, make_daemon, node_group):
    """Every kind that alertscaler writes by itself, held against the documented schema, and verified with its state."""
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    group = node_group(size=4)
    daemon = make_daemon(
        config={"providers": {"mine": {"type": "http"}}, "action_log": {"path": "actions.jsonl", "max_size": "4KiB", "keep": 100}},
        rules={"targets": {"workers": {"node_group": {"provider": "mine", "url": group.url}, "max": 10}},
               "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 2}}]})
    daemon.notify(notification(alert({"alertname": "Busy"})))
    eventually(lambda: group.size == 6)
    daemon.wait_record("action")
    daemon.notify(notification(alert({"alertname": "Other", "text": "line\nbreak \u00e9 \x7f \"quoted\""})))
    daemon.notify(notification(alert({"alertname": "Busy"}, status="resolved")))
    daemon.stop()
    files = sorted(daemon.directory.glob("actions.jsonl*"))
    assert len(files) > 1, "it was rotated"
    records = [json.loads(line) for line in run(*files, "-o", "json").stdout.splitlines()]
    for record in records:
        validator.validate(record)
    assert {"start", "notification", "incident", "decision", "action", "stop"} <= {r["kind"] for r in records}
    assert [r["seq"] for r in records] == list(range(1, len(records) + 1))
    assert run("verify", *files, f"--state={daemon.state_file}").stdout.startswith(f"records 1 to {len(records)} are whole")
    assert run("--config.file", daemon.config_file, "-o", "json").stdout.count("\n") == len(records)
    prev = "0" * 64
    for record in records:      # once more, by other code
        assert record["prev"] == prev
        prev = record.pop("hash")
        assert hashlib.sha256(canonical(record).encode()).hexdigest() == prev
    newest = daemon.log_file
    newest.write_text("".join(newest.read_text().splitlines(keepends=True)[:-1]))
    out = run("verify", *files, f"--state={daemon.state_file}", status=1).stdout
    assert f"the log ends at record {len(records) - 1}, but the state file has {len(records)}" in out
