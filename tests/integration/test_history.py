"""Decisions that are older than memory: the daemon reads them from its action log by an index, after restarts and rotations."""
import datetime
import html
import json
import os
import pathlib
import re
import sqlite3
import urllib.parse

import pytest

from harness.notification import alert, notification
from harness.played import run
from harness.wait import eventually

from test_log import make_action, make_decision, make_notification, make_alert, seal

PROVIDERS = {"providers": {"mine": {"type": "http"}}}
TARGETS = {"checkout": "node_group/mine/checkout", "batch": "node_group/mine/batch"}
NIGHT = datetime.datetime(2026, 11, 20, 22, 0, 0)
REASONS = ("scaled", "cooldown", "at_max")


def make_rules(groups):
    return {"targets": {name: {"node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 12,
                               "cooldown": {"up": "1h", "down": "1h"}} for name, group in groups.items()},
            "rules": [{"name": f"{name}-is-slow", "match": [f'target="{name}"'], "target": name, "scale_up": {"by": 1}}
                      for name in groups]}


@pytest.fixture
def make(make_daemon, node_group, tmp_path):
    def make(**options):
        groups = {"checkout": node_group(size=4), "batch": node_group(size=2)}
        config = {**PROVIDERS, **options.pop("config", {})}
        return make_daemon(make_rules(groups), config, **options)
    return make


def index_of(daemon):
    return daemon.log_file.parent / f"history-{daemon.log_file.name}.db"


def make_night(count, start=0):
    """Decisions of two targets in turn, one a second, with a notification between: [record]."""
    records = []
    for number in range(start, start + count):
        name = ("checkout", "batch")[number % 2]
        decision = make_decision(4, 4 + number % 3, REASONS[number % 3], rule=f"{name}-is-slow" if number % 5 else None,
                                 name=name, target=TARGETS[name])
        if number % 7 == 0:
            decision["output"]["would"] = 9
        decision["repeats"] = number % 4
        time = (NIGHT + datetime.timedelta(seconds=number)).strftime("%Y-%m-%dT%H:%M:%S.123456Z")
        records.append({**decision, "id": f"01KAJ2Q5J3M6V3Y8{number:010}", "time": time})
        if number % 10 == 0:
            records.append({**make_notification(make_alert(kind="decision", seq="77", target="x", id="y")), "time": time})
    return records


def write_night(path, *parts):
    """Rotated files PATH.n ... PATH.1 and PATH, the oldest part first; returns the records as they are in the files."""
    records, prev, first = [], "0" * 64, 1
    for age, part in zip(reversed(range(len(parts))), parts):
        lines = seal(part, first, prev)
        first += len(lines)
        prev = json.loads(lines[-1])["hash"]
        pathlib.Path(f"{path}.{age}" if age else path).write_text("".join(lines))
        records += [json.loads(line) for line in lines]
    return records


def read_page(text):
    """What a page says of its decision, without the head, the foot and its neighbours."""
    return re.sub(r"(?s).*<main[^>]*>|<nav class=\"pages\".*?</nav>|</main>.*|<li>the next decision came at .*?</li>", "", text)


def summarize(record):
    output = record["output"]
    return {"id": record["id"], "time": record["time"], "target": record["target"], "target_name": record["target_name"],
            "rule": output["rule"], "reason": output["reason"], "direction": output["direction"],
            "replicas": output["replicas"], "desired": output["desired"], **({"would": output["would"]} if "would" in output else {}),
            "repeats": record["repeats"]}


def expect(records, target=None, rule=None, reason=None, since=None, until=None, before=None, limit=100):
    """What the API should answer, from the records alone: the decisions, and whether they were cut."""
    found, started = [], before is None
    for record in reversed([r for r in records if r["kind"] == "decision"]):
        if started and (not target or target in (record["target"], record["target_name"])) \
                and (not rule or record["output"]["rule"] == rule) and (not reason or record["output"]["reason"] == reason) \
                and (not since or record["time"] >= since) and (not until or record["time"] <= until):
            found.append(summarize(record))
        started = started or record["id"] == before
    return found[:limit], len(found) > limit


def ask(daemon, **parameters):
    answer = daemon.get("/api/v1/decisions?" + urllib.parse.urlencode({k: v for k, v in parameters.items() if v is not None}))
    assert answer.ok, answer.text
    return answer.json["data"], "results truncated due to limit" in answer.json.get("warnings", [])


def test_decisions_outlive_a_restart(make):
    daemon = make()
    daemon.notify(notification(alert({"alertname": "Slow", "target": "checkout"})))
    daemon.wait_record("action", target_name="checkout", outcome="applied")
    listed = daemon.get("/api/v1/decisions").json["data"]
    assert listed
    documents = [daemon.get(f"/api/v1/decisions/{one['id']}").json["data"] for one in listed]
    scaled = next(one["id"] for one in listed if one["reason"] == "scaled")
    page = daemon.get(f"/decisions/{scaled}").text
    daemon.restart()
    assert daemon.get("/api/v1/decisions").json["data"][-len(listed):] == listed
    later = daemon.get(f"/decisions/{scaled}").text
    assert read_page(later) == read_page(page)
    assert "4 to 5" in later and "applied" in later
    assert daemon.get("/decisions/01KAJ2Q5J3M6V3Y8H8S9Q2B1ZX").status == 404
    assert [daemon.get(f"/api/v1/decisions/{one['id']}").json["data"] for one in listed] == documents
    answer = daemon.get("/api/v1/decisions/01KAJ2Q5J3M6V3Y8H8S9Q2B1ZX")
    assert answer.status == 404 and "action log" in answer.text
    # What memory has comes first, and nothing is listed twice.
    daemon.notify(notification(alert({"alertname": "Slow", "target": "batch"})))
    daemon.wait_record("action", target_name="batch", outcome="applied")
    ids = [one["id"] for one in daemon.get("/api/v1/decisions").json["data"]]
    assert ids == [r["id"] for r in reversed(daemon.records("decision"))]


def test_a_chart_reaches_back_into_the_log(make_daemon, node_group):
    """Memory has the last two files; the index reads the oldest one, for the target of the page alone."""
    groups = {"checkout": node_group(size=4), "batch": node_group(size=2)}
    daemon = make_daemon(make_rules(groups), PROVIDERS, start=False)
    night = [make_night(200), make_night(200, 200), make_night(100, 400)]
    for record in sum(night, []):
        if record["kind"] == "decision":
            record["target"] = f"node_group/mine/{groups[record['target_name']].url}"
    oldest = [record for record in night[0] if not "2026-11-20T22:02:50" < record["time"] < "2026-11-20T22:03:05"]
    for record in oldest:
        if record["kind"] == "decision":
            record["output"]["replicas"] = 7 if record["target_name"] == "checkout" else 9
    action = make_action(7, 8, "applied", target=f"node_group/mine/{groups['checkout'].url}", target_name="checkout", rule="slow<b>")
    oldest += [{"kind": "stop", "time": "2026-11-20T22:02:50.000000Z"}, {**action, "time": "2026-11-20T22:03:00.500000Z"}]
    oldest.sort(key=lambda record: record["time"])
    write_night(daemon.log_file, oldest, *night[1:])
    daemon.start()
    daemon.notify(notification(alert({"alertname": "Slow", "target": "checkout"})))
    daemon.wait_record("action", rule="checkout-is-slow", outcome="applied")

    def show(times):
        return daemon.get(f"/targets/checkout?{times}").text.partition("<main")[2]

    def is_whole(text):
        return "The chart before <time" in text and "not indexed yet" not in text

    text = eventually(lambda: is_whole(text := show("from=2026-11-20T22:00:01Z&to=2026-11-20T22:06:00Z")) and text)
    begin, end, again, higher = re.search(
        r'<path class="after" d="M64.0 ([\d.]+)H([\d.]+)M([\d.]+) ([\d.]+)H', text).groups()
    assert float(end) < float(again) and float(higher) < float(begin), "7 from the begin to the stop, then 8 from the action on"
    assert "22:03:00: 7 to 8: applied, rule slow&lt;b&gt;" in text and "7 \u2192 8" in text
    assert "The size is known since" not in text and "could not be read" not in text
    assert 'The size is known since <time class="at" datetime="2026-11-20T22:00:00.123456Z' in \
        show("from=2026-11-20T21:00:00Z&to=2026-11-20T22:03:00Z")
    for times in ("", "from=2026-11-20T22:04:00Z&to=2026-11-20T22:06:00Z"):
        assert "from the action log" not in show(times), "memory has it all"


def make_days(target, rule):
    """Two days of decisions on checkout, one in five minutes: 3 replicas and a value, with a peak, a gap of hours, and failed actions."""
    records = []
    for number in range(576):
        time = datetime.datetime(2026, 11, 18) + datetime.timedelta(minutes=5 * number, seconds=7)
        if 360 <= number < 396:
            continue
        decision = make_decision(11 if number == 200 else 3, 4, "no_change", rule=rule, target=target)
        decision["input"]["proposals"] = [{"action": {"track": {"value": 40}}, "rule": rule, "value": number}]
        records.append({**decision, "id": f"01KAJ2Q5J3M6V3Y8{number:010}", "time": time.strftime("%Y-%m-%dT%H:%M:%S.123456Z")})
        if number < 210:
            records.append({**make_action(3, 4, "unreachable", target=target, rule=rule), "time": time.strftime("%Y-%m-%dT%H:%M:%S.500000Z")})
    for kind, hour in (("stop", 6), ("start", 9)):
        records.append({"kind": kind, "time": f"2026-11-19T{hour:02}:00:00.000000Z"})
    return sorted(records, key=lambda record: record["time"])


def read_line(text):
    """The steps of the size in the first chart: (x, y) for each, and "end" for y where it is not known from x on."""
    path = re.search(r'<path class="after" d="([^"]*)"', text)[1]
    steps, x = [], None
    for command, values in re.findall(r"([MHV])([\d. ]+)", path):
        numbers = [float(value) for value in values.split()]
        if command == "M":
            steps.append(tuple(numbers))
        elif command == "H":
            x = numbers[0]
        else:
            steps.append((x, numbers[0]))
    return steps


def test_a_chart_of_days_is_made_from_sums_of_minutes(make_daemon, node_group, tmp_path):
    """It has the same peak, gap and values as a chart of single records; also for a reader who may not see the rule, but for the values."""
    for name in ("all", "team"):
        (tmp_path / name).write_text(name)
    tokens = [{"name": name, "file": str(tmp_path / name), "permissions": ["notify", "read"]} for name in ("all", "team")]
    tokens[1]["rules"] = ["other*"]
    group = node_group(size=4)
    daemon = make_daemon(make_rules({"checkout": group}), {**PROVIDERS, "receiver": {"tokens": tokens}}, start=False)
    write_night(daemon.log_file, make_days(f"node_group/mine/{group.url}", "checkout-is-slow"), make_night(20), make_night(20, 20))
    daemon.start()

    def show(end, name="all"):
        daemon.headers = {"Authorization": f"Bearer {name}"}
        answer = daemon.get(f"/targets/checkout?from=2026-11-18T06:00:00Z&to={end}")
        assert answer.ok, answer.text
        return "not indexed yet" not in answer.text and answer.text.partition("<main")[2]

    rows, sums, both = (eventually(lambda end=end: show(end)) for end in ("2026-11-19T06:00:00Z", "2026-11-19T06:00:01Z", "2026-11-20T00:00:00Z"))
    assert "smallest" not in rows and "the smallest and the largest size of each 3 min" in sums
    left, right = read_line(rows), read_line(sums)
    assert len(left) == 3 and [y for _, y in left] == [y for _, y in right], "3, 11 and 3 replicas"
    assert all(abs(x - z) <= 0.1 for (x, _), (z, _) in zip(left, right))
    assert [y for _, y in read_line(both)] == [left[0][1], left[1][1], left[0][1], left[0][1]], "a gap divides the end"
    assert 'class="unknown"' in both and "could not be read" not in both
    for text, last in ((rows, 359), (sums, 359), (both, 575)):
        values = [int(value) for value in re.findall(r"<title>[^<]*: (\d+), the goal 40</title>", text)]
        assert len(values) % 2 == 0 and values[:len(values) // 2] == values[len(values) // 2:], "the wide and the narrow chart"
        assert 100 < len(values) // 2 <= 160 and 72 <= values[0] <= 75 and values[-1] == last, values
        assert "before memory, the last one of each" in text
    assert "Of 138 actions" not in sums and sums.count('<path class="failed"') == 2 * 138
    text = show("2026-11-20T00:00:00Z", "team")
    assert "the goal 40" not in text and [y for _, y in read_line(text)] == [y for _, y in read_line(both)]


def follow(daemon, text, title):
    """The page behind a link with this title."""
    [link] = re.findall(f'<a href="([^"]*)">{title}</a>', text)
    answer = daemon.get(html.unescape(link))
    assert answer.ok, answer.text
    return answer.text


def test_neighbours_are_found_in_the_log(make):
    """From the one decision in memory back over all of last night, and forward again; other targets do not count."""
    daemon = make(start=False)
    url = re.search("http://[^ ]*/groups/[^ \\n\"']*", (daemon.directory / "rules/rules.yaml").read_text())[0]
    parts = [[{**r, "target": f"node_group/mine/{url}"} if r.get("target_name") == "checkout" else r for r in make_night(8, start)] for start in (0, 8)]
    records = write_night(daemon.log_file, *parts)
    daemon.start()
    night = [r["id"] for r in records if r.get("target_name") == "checkout" and r["kind"] == "decision"]
    daemon.notify(notification(alert({"alertname": "Slow", "target": "checkout"})))
    daemon.wait_record("action", target_name="checkout", outcome="applied")
    ids = night + [r["id"] for r in daemon.records("decision", target_name="checkout") if r["id"] not in night]
    text = daemon.get(f"/decisions/{ids[-1]}").text
    for number in reversed(range(len(ids) - 1)):
        text = follow(daemon, text, "Previous decision")
        assert f"/api/v1/decisions/{ids[number]}" in text, number
    assert "Previous decision" not in text
    for number in range(1, len(night)):
        text = follow(daemon, text, "Next decision")
        assert f"/api/v1/decisions/{ids[number]}" in text, number
    assert 'rule <a href="/rules/checkout-is-slow">' in daemon.get(f"/decisions/{night[-1]}").text


def test_last_night_is_found_by_each_filter(make):
    daemon = make(start=False)
    records = write_night(daemon.log_file, make_night(200), make_night(200, 200), make_night(100, 400))
    daemon.start()
    decisions = [r for r in records if r["kind"] == "decision"]
    middle, early, late = decisions[250]["id"], decisions[100]["time"], decisions[300]["time"]
    for filters in ({}, {"limit": 1000}, {"target": "checkout", "limit": 1000}, {"target": TARGETS["batch"]},
                    {"rule": "batch-is-slow", "limit": 1000}, {"reason": "at_max", "limit": 1000},
                    {"reason": "cooldown", "target": "checkout", "since": early}, {"since": early, "until": late, "limit": 1000},
                    {"until": early}, {"before": middle}, {"before": middle, "target": "batch", "limit": 7},
                    {"before": middle, "since": early, "reason": "scaled", "limit": 1000}, {"target": "nothing"},
                    {"rule": "nothing"}, {"reason": "guarded"}, {"since": decisions[-1]["time"]}, {"limit": len(decisions)},
                    {"limit": len(decisions) - 1}):
        assert ask(daemon, **filters) == expect(records, **filters), filters
    assert ask(daemon, before="01KAJ2Q5J3M6V3Y8H8S9Q2B1ZX") == ([], False)
    # Page after page, nothing is missing and nothing comes twice.
    pages, before = [], None
    while page := ask(daemon, limit=37, before=before)[0]:
        pages += page
        before = page[-1]["id"]
    assert pages == expect(records, limit=1000)[0]
    # A whole record, but for the chain.
    one = decisions[3]
    document = daemon.get(f"/api/v1/decisions/{one['id']}").json["data"]
    assert document == {key: value for key, value in one.items() if key not in ("hash", "prev", "seq")}
    for query in ("since=yesterday", "until=tonight", "reason=nothing-like-it"):
        assert daemon.get(f"/api/v1/decisions?{query}").status == 400


def make_readers(folder):
    """The configuration of two credentials: one sees all targets, the other one only batch."""
    tokens = []
    for name, more in (("all", {}), ("batch-team", {"targets": ["batch"]})):
        (folder / name).write_text(name)
        tokens.append({"name": name, "file": str(folder / name), "permissions": ["notify", "read"], **more})
    return {"receiver": {"tokens": tokens}}


def test_a_narrowed_credential_sees_its_targets_only(make, tmp_path):
    daemon = make(config=make_readers(tmp_path), start=False)
    night = make_night(60)
    for record in night[::2]:
        if record["kind"] == "decision":
            record["pause"] = {"who": "the-boss", "reason": "by hand", "until": None, "all": False}
    records = write_night(daemon.log_file, night)
    daemon.start()
    decisions = [r for r in records if r["kind"] == "decision"]
    own = [r for r in records if r.get("target_name") == "batch"]

    def become(name):
        daemon.headers = {"Authorization": f"Bearer {name}"}

    become("all")
    assert ask(daemon, limit=1000) == expect(records, limit=1000)
    become("batch-team")
    assert ask(daemon, limit=1000) == expect(own, limit=1000)
    assert ask(daemon, limit=len(own)) == expect(own, limit=len(own)), "the limit counts what is seen"
    assert ask(daemon, target="checkout") == ([], False)
    assert ask(daemon, rule="checkout-is-slow") == ([], False)
    for record in decisions:
        answer = daemon.get(f"/api/v1/decisions/{record['id']}")
        assert answer.status == (200 if record["target_name"] == "batch" else 404)
        assert "the-boss" not in answer.text and "checkout" not in answer.text
        page = daemon.get(f"/decisions/{record['id']}")
        assert page.status == answer.status and "the-boss" not in page.text and "checkout" not in page.text
        if answer.ok and "pause" in record:
            assert answer.json["data"]["pause"]["who"] == "another credential"
    become("all")
    assert '"the-boss"' in daemon.get(f"/api/v1/decisions/{night[0]['id']}").text
    # A part from memory is narrowed too, once the answer reaches further.
    daemon.notify(notification(alert({"alertname": "Slow", "target": "checkout"}), alert({"alertname": "Slow", "target": "batch"})))
    for name in TARGETS:
        daemon.wait_record("action", target_name=name, outcome="applied")
    become("batch-team")
    assert {one["target_name"] for one in ask(daemon, limit=1000)[0]} == {"batch"}


def test_rotation_is_followed_and_what_it_deletes_is_forgotten(make):
    daemon = make(config={}, start=False)
    records = write_night(daemon.log_file, make_night(100), make_night(100, 100), make_night(100, 200))
    daemon.start()
    assert ask(daemon, limit=1000) == expect(records, limit=1000)
    oldest, middle = (pathlib.Path(f"{daemon.log_file}.{n}") for n in (2, 1))
    gone = {json.loads(line)["id"] for line in oldest.read_bytes().splitlines()}
    oldest.unlink()
    os.rename(middle, oldest)       # as a rotation would
    kept = [r for r in records if r.get("id") not in gone or r["kind"] == "notification"]
    eventually(lambda: ask(daemon, limit=1000) == expect(kept, limit=1000))
    first = next(r for r in kept if r["kind"] == "decision")
    assert daemon.get(f"/api/v1/decisions/{first['id']}").ok
    assert daemon.get(f"/api/v1/decisions/{records[0]['id']}").status == 404
    daemon.restart()
    assert ask(daemon, limit=1000) == expect(kept, limit=1000)


@pytest.mark.parametrize("damage", ["missing", "garbage", "torn", "flipped", "another_version", "empty"])
def test_a_damaged_index_is_built_again(make, damage):
    daemon = make(start=False)
    records = write_night(daemon.log_file, make_night(300), make_night(100, 300))
    daemon.start()
    assert ask(daemon, limit=1000) == expect(records, limit=1000)
    daemon.stop()
    index = index_of(daemon)
    content = bytearray(index.read_bytes())
    assert len(content) > 20000
    if damage == "missing":
        index.unlink()
    elif damage == "garbage":
        index.write_bytes(b"not a database " * 1000)
    elif damage == "torn":
        index.write_bytes(content[:len(content) // 2])
    elif damage == "flipped":
        content[4096:] = bytes(byte ^ 0x5a for byte in content[4096:])
        index.write_bytes(content)
    elif damage == "another_version":
        content[60:64] = (99).to_bytes(4, "big")
        index.write_bytes(content)
    else:
        index.write_bytes(b"")
    daemon.start()
    eventually(lambda: ask(daemon, limit=1000) == expect(records, limit=1000))
    daemon.stop()


def test_a_database_of_another_program_is_left_alone(make):
    daemon = make(start=False)
    records = write_night(daemon.log_file, make_night(10))
    other = sqlite3.connect(index_of(daemon))
    other.execute("CREATE TABLE theirs(x)")
    other.commit()
    other.close()
    before = index_of(daemon).read_bytes()
    daemon.start()
    answer = daemon.get("/api/v1/decisions").json
    assert answer["data"] == [] and any("another program" in warning for warning in answer["warnings"])
    one = daemon.get(f"/api/v1/decisions/{records[0]['id']}")
    assert one.status == 503 and "another program" in one.json["error"]
    daemon.stop()
    assert index_of(daemon).read_bytes() == before


def test_an_answer_has_at_most_10000_records(make):
    """Also: while the log is being indexed, each answer has a warning, also the one that happens to have 10,000 records."""
    daemon = make(start=False)
    records = write_night(daemon.log_file, make_night(5500), make_night(5500, 5500))
    expected = {"status": "success", "data": expect(records, limit=10000)[0], "warnings": ["results truncated due to limit"]}
    daemon.start()

    def read():
        answer = daemon.get("/api/v1/decisions?limit=1000000")
        assert answer.ok, answer.text
        is_partial = any("is being indexed" in warning for warning in answer.json.get("warnings", []))
        return not is_partial and answer

    answers = []

    def read_one(record):
        answers.append(daemon.get(f"/api/v1/decisions/{record['id']}"))
        return answers[-1].ok

    decisions = [record for record in records if record["kind"] == "decision"]
    for _ in range(2):
        for record in (decisions[5499], decisions[0], decisions[-1]):
            eventually(lambda record=record: read_one(record))
        assert eventually(read).json == expected
        daemon.stop()
        index_of(daemon).unlink()
        daemon.start()
    # A decision that is not found yet is never answered as one that does not exist.
    assert [a.text for a in answers if not a.ok and (a.status != 503 or "is being indexed" not in a.text)] == []


def test_get_reads_the_newest_thousand(make):
    daemon = make(start=False)
    write_night(daemon.log_file, make_night(1500))
    daemon.start()
    eventually(lambda: len(ask(daemon, limit=1200)[0]) == 1200)
    done = run("get", "decisions", "-o", "name", f"--url={daemon.url}")
    assert (len(done.stdout.splitlines()), done.stderr) == (1000, "alertscaler get: results truncated due to limit\n")
