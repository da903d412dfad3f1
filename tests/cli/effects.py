#!/usr/bin/python3
"""effects.py ALERTSCALER ROOT: `effects`, `log` and `explain` on records of what actions did, whom they served and who else sizes
the target. The log is made here, so that each time and each end is known."""
import datetime
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM, ROOT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
GOLDEN = [json.loads(line) for line in (ROOT / "tests/golden/log/actions.jsonl").read_text(encoding="utf-8").splitlines()]
TEN = datetime.datetime(2026, 11, 20, 10)


def clock(seconds):
    return (TEN + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.000000Z")


class Log:
    """Actions and what became of them; times are seconds since ten o'clock."""

    def __init__(self, records=()):
        self.records, self.count = list(records), 0

    def add(self, kind, seconds, **members):
        self.records.append({"kind": kind, "time": clock(seconds), "seq": len(self.records) + 1, "instance": "one", **members})

    def act(self, seconds, old, new, target="web", rule="slow", outcome="applied"):
        self.count += 1
        self.add("action", seconds, id=f"A{self.count}", decision=f"D{self.count}", target=target, target_name=target, rule=rule,
                 outcome=outcome, **{"from": old, "to": new})
        return self.records[-1]

    def follow(self, seconds, action, ended="resolved", ready=None, resolved=None, **more):
        self.add("effect", seconds, action=action["id"], decision=action["decision"], target=action["target"],
                 target_name=action["target"], rule=action["rule"], **{"from": action["from"], "to": action["to"]},
                 ready_after=ready, resolved_after=resolved, ended=ended, in_vain=0, **more)

    def run(self, command, *words):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "actions.jsonl"
            path.write_text("".join(json.dumps(record, separators=(",", ":")) + "\n" for record in self.records), encoding="utf-8")
            done = subprocess.run([PROGRAM, command, *words, path], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode in (0, 1), done.stderr
        return done.returncode, done.stdout


def rows(log, *words):
    """By rule, the cells of the table."""
    _, out = log.run("effects", *(words or ("--since", "2026-11-01T00:00:00Z")))
    titles, *lines = (re.split(r"  +", line) for line in out.splitlines())
    return {line[0]: dict(zip(titles[1:], line[1:])) for line in lines}


def told(log):
    _, out = log.run("effects", "--since", "2026-11-01T00:00:00Z", "-o", "json")
    return {rule["rule"]: rule for rule in json.loads(out)["rules"]}


def example():
    """What docs/rules.md shows: 41 actions, of which 38 were resolved, 2 not, and 3 went back."""
    log = Log()
    for i in range(41):
        action = log.act(1000 * i, 4, 6)
        if i < 3:
            log.act(1000 * i + 500, 6, 5, rule="idle")
        ready, resolved = (14, 130) if i < 21 else (52, 400) if i < 37 else (90, 900)
        if i == 40:
            log.follow(1000 * i + 60, action, ended="unknown")
        elif i >= 38:
            log.follow(1000 * i + 3600, action, ended="not_resolved", ready=60)
        else:
            log.follow(1000 * i + resolved, action, ready=ready, resolved=resolved)
    for record in log.records:
        record["rule"] = {"slow": "checkout-is-slow"}.get(record["rule"], record["rule"])
    return log


class Effects(unittest.TestCase):
    def test_the_example_of_the_page(self):
        _, out = example().run("effects", "--since", "2026-11-01T00:00:00Z")
        page = (ROOT / "docs/rules.md").read_text(encoding="utf-8")
        self.assertIn(out, page)

    def test_median_and_90th_percentile_are_times_that_were_taken(self):
        for count, median, p90 in ((1, 1, 1), (2, 1, 2), (9, 5, 9), (10, 5, 9), (11, 6, 10), (100, 50, 90)):
            log = Log()
            for i in sorted(range(count), key=lambda i: i * 7 % count):
                action = log.act(20 * i, 1, 2)
                log.follow(20 * i + 5, action, ready=i + 1, resolved=10 * (i + 1))
            slow = told(log)["slow"]
            self.assertEqual(slow["ready_after"], {"count": count, "median": median, "p90": p90}, count)
            self.assertEqual(slow["resolved_after"], {"count": count, "median": 10 * median, "p90": 10 * p90})

    def test_an_action_without_a_time_has_none(self):
        log = Log()
        log.follow(3600, log.act(0, 1, 2), ended="not_resolved")
        log.follow(3700, log.act(100, 2, 3), ended="unknown", ready=3)
        log.follow(3800, log.act(200, 3, 4), ended="a word of a later version")
        row = rows(log)["slow"]
        self.assertEqual((row["ACTIONS"], row["RESOLVED"], row["NOT RESOLVED"]), ("3", "0", "1"))
        self.assertEqual((row["READY P50"], row["RESOLVED P50"], row["RESOLVED P90"]), ("3.0s", "-", "-"))
        self.assertEqual(told(log)["slow"]["unknown"], 2)
        self.assertIsNone(told(log)["slow"]["resolved_after"]["median"])

    def went_back(self, *later):
        """One increase of `web`, then these actions."""
        log = Log()
        first = log.act(0, 4, 6)
        for seconds, old, new, more in later:
            log.act(seconds, old, new, **more)
        log.follow(3600, first, resolved=60)
        return told(log)["slow"]["went_back"]

    def test_going_back_within_ten_minutes_is_flapping(self):
        self.assertEqual(self.went_back((599, 6, 4, {"rule": "idle"})), 1)
        self.assertEqual(self.went_back((600, 6, 5, {})), 1)
        self.assertEqual(self.went_back((601, 6, 4, {})), 0)
        self.assertEqual(self.went_back(), 0)
        self.assertEqual(self.went_back((60, 6, 8, {}), (120, 8, 4, {})), 0, "the next action went on")
        self.assertEqual(self.went_back((60, 9, 4, {"target": "other"})), 0)
        self.assertEqual(self.went_back((60, 6, 4, {"outcome": "conflict"})), 0)
        self.assertEqual(self.went_back((60, 6, 4, {"outcome": "conflict"}), (90, 6, 4, {})), 1)
        self.assertEqual(self.went_back((60, 6, 6, {}), (90, 6, 4, {})), 1, "an action without a change is none")

    def test_since_counts_records_from_then_on(self):
        log = Log()
        log.follow(600, log.act(0, 4, 6), resolved=60)
        log.follow(7200, log.act(3600, 6, 8), resolved=3600)
        self.assertEqual(rows(log)["slow"]["ACTIONS"], "2")
        row = rows(log, "--since", clock(601))["slow"]
        self.assertEqual((row["ACTIONS"], row["RESOLVED P50"]), ("1", "1h"))
        status, out = log.run("effects", "--since", clock(7201))
        self.assertEqual(status, 1)
        self.assertTrue(out.startswith("No action in this time has a known effect."), out)
        self.assertEqual(log.run("effects", "--since", clock(7201), "-o", "json")[0], 1)
        with self.assertRaises(AssertionError):
            log.run("effects", "--since", "yesterday")

    def test_rules_in_order_and_as_texts(self):
        log = Log()
        for name in ("b", "a\x1b[31m", "\u00e9", "A"):
            log.follow(60, log.act(0, 4, 6, rule=name, target=name), resolved=60)
        _, out = log.run("effects", "--since", "2026-11-01T00:00:00Z")
        self.assertNotIn("\x1b", out)
        self.assertEqual(list(told(log)), ["A", "a\x1b[31m", "b", "\u00e9"])

    def test_damaged_lines_do_not_hide_the_others(self):
        log = Log()
        log.follow(60, log.act(0, 4, 6), resolved=60)
        log.follow(61, {**log.act(1, 4, 6), "from": "many", "to": None}, resolved="soon", ready=[])
        self.assertEqual(told(log)["slow"]["actions"], 2)
        self.assertEqual(told(log)["slow"]["resolved_after"]["count"], 1)


class Told(unittest.TestCase):
    """`log` and `explain`."""

    def test_log(self):
        log = Log()
        action = log.act(0, 4, 6)
        log.follow(3600, action, ended="not_resolved", ready=12.34, held_until=clock(90000))
        back = {"at": clock(30), "from": 4, "to": 6, "found": 4, "by": "argo"}
        log.add("others", 40, event="contended", target="web", target_name="web", until=clock(3640), set_backs=[back, {**back, "by": None}])
        log.add("others", 41, event="found", target="web", target_name="web", found=[
            {"kind": "ScaledObject", "name": "so", "min": 5, "max": 5, "paused": True},
            {"kind": "HorizontalPodAutoscaler", "name": "hpa", "min": 1, "max": None}])
        log.add("others", 42, event="over", target="web", target_name="web", message="the hour is over")
        _, out = log.run("log", "--kind", "effect")
        self.assertIn("web (web): 4 -> 6: not_resolved, ready after 12.3 s, rule slow, which is ineffective and held until", out)
        _, out = log.run("log", "--kind", "others")
        contended, found, over = out.splitlines()
        self.assertTrue(contended.endswith(f"contended until {clock(3640)}: 6 set back to 4 by argo; 6 set back to 4"), contended)
        self.assertTrue(found.endswith("found ScaledObject so, 5 to 5 (paused); HorizontalPodAutoscaler hpa"), found)
        self.assertTrue(over.endswith("over: the hour is over"), over)

    def explain(self, **effect):
        """A decision of the golden log with an action, followed by its effect."""
        action = next(record for record in GOLDEN if record["kind"] == "action" and record["decision"])
        log = Log(GOLDEN)
        record = {"action": action["id"], "decision": action["decision"], "target": action["target"], "target_name": "workers",
                  "rule": action["rule"], "from": action["from"], "to": action["to"], "ready_after": None, "resolved_after": None,
                  "ended": "resolved", "in_vain": 0, **effect}
        log.records.append({"kind": "effect", "time": GOLDEN[-1]["time"], "instance": "one", "seq": len(GOLDEN) + 1, **record})
        _, out = log.run("explain", "--target=workers", f"--at={action['time']}")
        return out

    def test_explain(self):
        self.assertIn("as many were ready after 12s; its alert was resolved after 1m30s.",
                      self.explain(ready_after=12.0, resolved_after=90.0))
        held = self.explain(ended="not_resolved", in_vain=6, held_until=clock(90000))
        self.assertIn("its alert was not resolved within an hour.", held)
        self.assertIn(f"The last 6 actions of the rule did not help: it is ineffective and held until {clock(90000)}, or until resume.", held)
        self.assertIn("nobody knows whether it helped", self.explain(ended="unknown"))


unittest.main(argv=sys.argv[:1], verbosity=1)
