#!/usr/bin/python3
"""replay.py ALERTSCALER ROOT: explain and replay, on the log of a real run (tests/golden/log) and on damaged copies of it."""
import collections
import json
import os
import pathlib
import re
import resource
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
import zlib

PROGRAM, ROOT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
LOG = ROOT / "tests/golden/log/actions.jsonl"
LINES = LOG.read_text(encoding="utf-8").splitlines(keepends=True)
RECORDS = [json.loads(line) for line in LINES]
DECISIONS = [record for record in RECORDS if record["kind"] == "decision"]
WORKERS = DECISIONS[0]["target"]




def repeat(record, time):
    alerts = [alert | {"outcome": "duplicate"} for alert in record["alerts"]]
    return json.dumps(record | {"alerts": alerts, "id": record["id"][:-1] + time[18], "time": time}, separators=(",", ":")) + "\n"


def make_repeated():
    """The log as if `Calm` had been repeated one second after each step down."""
    calm = next(record for record in RECORDS if record["kind"] == "notification" and record["alerts"][0]["labels"]["alertname"] == "Calm")
    lines = []
    for line, record in zip(LINES, RECORDS):
        lines.append(line)
        if record["kind"] == "action" and record.get("to") in (8, 7):
            second = int(record["time"][17:19]) + 1
            lines.append(repeat(calm, f"{record['time'][:17]}{second:02}{record['time'][19:]}"))
    return "".join(lines)


def listed(record):
    """As if Alertmanager's list had reported `Calm` before each decision to go down."""
    if record["kind"] != "decision" or record["output"]["rule"] != "calm":
        return record
    (proposal,) = record["input"]["proposals"]
    return record | {"input": record["input"] | {"proposals": [proposal | {"reported": record["time"]}]}}


REPEATED = make_repeated()


def shrink(line):
    """The record of a repeat as alertscaler writes it where a whole one before says the rest; the log's own records stay."""
    record = json.loads(line)
    if record["kind"] != "notification" or line in LINES:
        return line
    calm = next(r for r in RECORDS if r["kind"] == "notification" and r["alerts"] == [a | {"outcome": "queued"} for a in record["alerts"]])
    small = {key: record[key] for key in ("credential", "id", "instance", "remote", "seq", "time", "traceparent")}
    return json.dumps(small | {"kind": "repeat", "outcomes": {"duplicate": 1}, "same_as": calm["id"]}, separators=(",", ":")) + "\n"


SMALL = "".join(map(shrink, REPEATED.splitlines(keepends=True)))


def run(*arguments, data=None, cwd=None):
    done = subprocess.run([PROGRAM, *map(str, arguments)], input=data, capture_output=True, check=False, timeout=120, text=True, cwd=cwd)
    return done.returncode, done.stdout, done.stderr


def read_png(data):
    """Rows of pixels, each (red, green, blue, alpha); 8 bits each, not interlaced, as cairo writes it."""
    chunks, at, content = {}, 8, b""
    while at < len(data):
        size, kind = int.from_bytes(data[at:at + 4], "big"), data[at + 4:at + 8]
        chunks[kind] = data[at + 8:at + 8 + size]
        content += chunks[kind] if kind == b"IDAT" else b""
        at += size + 12
    width, height, depth, color, *_, interlaced = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, interlaced) == (8, 0) and color in (2, 6)
    step, content = {2: 3, 6: 4}[color], zlib.decompress(content)
    rows, above = [], bytes(width * step)
    for number in range(height):
        kind, *raw = content[number * (width * step + 1):(number + 1) * (width * step + 1)]
        for i in range(width * step):
            left, up, corner = raw[i - step] if i >= step else 0, above[i], above[i - step] if i >= step else 0
            near = min((left, up, corner), key=lambda byte: abs(left + up - corner - byte))
            raw[i] = (raw[i] + (0, left, up, (left + up) // 2, near)[kind]) % 256
        above = raw
        rows.append([(*raw[i:i + 3], raw[i + 3] if step == 4 else 255) for i in range(0, width * step, step)])
    return rows


class Explain(unittest.TestCase):
    def explain(self, *arguments, status=0, data=None):
        done = run("explain", *arguments, data=data)
        self.assertEqual(done[0], status, done)
        return done[1] if status == 0 else done[2]

    def at(self, number):
        """The moment of a decision."""
        return DECISIONS[number]["time"]

    def test_the_decision_in_force_is_the_last_one_before(self):
        for number, decision in enumerate(DECISIONS):
            found = json.loads(self.explain("--target=workers", "--at", self.at(number), "-o", "json", LOG))
            self.assertEqual(found["decision"], decision)
            self.assertEqual(found["next_decision"] is None, number == len(DECISIONS) - 1)

    def test_a_target_is_its_name_or_its_id(self):
        self.assertEqual(self.explain("--target=workers", "--at", self.at(1), LOG), self.explain("--target", WORKERS, "--at", self.at(1), LOG))

    def test_what_people_read(self):
        text = self.explain("--target=workers", "--at", self.at(2), LOG)
        decision = DECISIONS[2]
        self.assertEqual(decision["output"]["reason"], "at_max")
        time = decision["time"].rstrip("0Z") + "Z"
        start = f"workers ({WORKERS})\nat {time}, by the decision of {time} (record {decision['seq']})\n"
        self.assertTrue(text.startswith(start), text)
        for part in (
            "The size stays at 9: at_max.\nMore was wanted, but the size already is at or above max.\n",
            "The rule that counts is busy.\n",
            'Busy{pool="workers"}, firing since ',
            "busy wants 14: scale_up at_least 1, by 50%\n",
            "calm wants 8: scale_down by 1\n",
            "combine           14  the highest size that a rule wants\n",
            "bounds             9  the bound ahead: min 2, max 9\n",
            "limited by max\n",
            "What followed\n  no action\n",
            "the next decision came at " + DECISIONS[3]["time"].rstrip("0Z"),
        ):
            self.assertIn(part, text)

    def test_for_whom_a_held_decrease_waits(self):
        self.assertNotIn("waits", self.explain("--target=workers", "--at", self.at(0), LOG))
        held = "".join(json.dumps({**r, "waits_for": "front"}) + "\n" if r is DECISIONS[0] else line for r, line in zip(RECORDS, LINES))
        text = self.explain("--target=workers", "--at", self.at(0), "-", data=held)
        self.assertIn("By `after`, it waits until front is decreased, 30 seconds at most.\n", text)

    def test_the_action_that_followed(self):
        text = self.explain("--target=workers", "--at", self.at(0), LOG)
        self.assertIn("The size goes from 4 to 6: scaled.\n", text)
        self.assertIn(": from 4 to 6: applied, HTTP 200. The size was set.\n", text)

    def test_times_may_be_short_and_relative(self):
        last = json.loads(self.explain("--target=workers", "--at=now", "-o", "json", LOG))["decision"]
        self.assertEqual(last, DECISIONS[-1])
        for time in ("2126-11-21T03:08Z", "2126-11-21T04:08+01:00", "2126-11-21", "2126-11-21T03:08:46.5Z"):
            self.assertEqual(json.loads(self.explain("--target=workers", "--at", time, "-o", "json", LOG))["decision"], last)
        self.assertIn("the first decision", self.explain("--target=workers", "--at=1000d", LOG, status=1))
        for time in ("yesterday", "2026-11-21T03", "2026-13-01", "-5m", ""):
            self.assertIn("is neither a time", self.explain("--target=workers", f"--at={time}", LOG, status=2))

    def test_small_records_of_repeats_are_no_obstacle(self):
        arguments = ("--target=workers", "--at", self.at(2), "-")
        self.assertEqual(self.explain(*arguments, data=SMALL), self.explain(*arguments, data="".join(LINES)))
        self.assertEqual(run("replay", "-", data=SMALL), run("replay", "-", data="".join(LINES)))

    def test_nothing_found_is_status_1(self):
        told = self.explain("--target=checkout", LOG, status=1)
        self.assertIn('no decision on "checkout"', told)
        self.assertIn("`alertscaler log --target '*checkout*'` shows what it has", told)

    def test_a_name_that_is_misspelt_is_told_the_nearest_one(self):
        for name in ("wrokers", "Workers", "worker"):
            self.assertRegex(self.explain(f"--target={name}", LOG, status=1),
                             f'no decision on "{name}" up to .*; did you mean "workers"\\?\n$')
        self.assertIn(f'did you mean "{WORKERS}"?', self.explain(f"--target={WORKERS}/", LOG, status=1))

    def test_a_command_that_was_refused_is_no_order(self):
        def make(outcome, **more):
            return json.dumps({"v": 1, "kind": "command", "time": "2126-11-21T03:09:00Z", "command": "pause", "target": "wrokers",
                               "who": "ada", "reason": "r", "outcome": outcome, **more}) + "\n"
        told = self.explain("--target=wrokers", "-", data="".join(LINES) + make("unknown_target", message="no such target"), status=1)
        self.assertRegex(told, r'nothing was decided on "wrokers" up to .*; the command pause was refused at 2126-11-21T03:09:00Z: '
                               r'no such target; did you mean "workers"\?\n$')
        told = self.explain("--target=wrokers", "-", data="".join(LINES) + make("done"), status=1)
        self.assertIn("; an operator ordered: pause, at 2126-11-21T03:09:00Z\n", told)
        told = run("log", "--kind=command", "-", data=make("unknown_target", message="no such target"))[1]
        self.assertTrue(told.endswith("pause wrokers by ada: r: refused, unknown_target: no such target\n"), told)
        told = run("log", "--kind=command", "-", data=make("refused", message="a pool has no size"))[1]
        self.assertTrue(told.endswith("pause wrokers by ada: r: refused: a pool has no size\n"), told)

    def test_a_size_that_a_command_set_after_the_decision(self):
        action = {**next(r for r in RECORDS if r["kind"] == "action" and r["outcome"] == "applied"), "time": DECISIONS[2]["time"], "command": "01K", "from": 9, "to": 12,
                  "seq": DECISIONS[2]["seq"] + 1}
        action.pop("decision")
        lines = [line for record, line in zip(RECORDS, LINES) if record["time"] <= DECISIONS[2]["time"]]
        arguments = ("--target=workers", "--at=now", "-")
        self.assertIn("The size stays at 9: at_max.\nMore was wanted, but the size already is at or above max.\n"
                      "Since then an operator's command has set the size to 12.\n",
                      self.explain(*arguments, data="".join(lines) + json.dumps(action) + "\n"))
        self.assertNotIn("Since then", self.explain(*arguments, data="".join(lines) + json.dumps({**action, "outcome": "rejected"}) + "\n"))

    def test_a_decision_and_its_failed_action_are_one_event(self):
        applied = next(r for r in RECORDS if r["kind"] == "action" and r["outcome"] == "applied" and r["decision"] == DECISIONS[0]["id"])
        failed = {**applied, "outcome": "rejected", "message": "InsufficientInstanceCapacity", "tries": 5, "next_try": "2126-11-21T03:11:46Z"}
        lines = json.dumps(DECISIONS[0]) + "\n" + json.dumps(failed) + "\n"
        at = failed["time"]
        text = self.explain("--target=workers", "--at", at, "-", data=lines)
        self.assertRegex(text, r"\nWanted 4 to 6; the cloud refused: InsufficientInstanceCapacity \(5 tries, next in [0-9dhms]+\)\.\n"
                               r"The other side refused the request as wrong\.\n")
        self.assertIn(": wanted from 4 to 6: rejected, HTTP 200, InsufficientInstanceCapacity. ", text)
        self.assertNotIn("scaled.", text)
        self.assertIn(" (5 tries, next at 2126-11-21T03:11:46Z)", self.explain("--target=workers", "--at=2126-11-21T03:12:00Z", "-", data=lines))
        # a later try that succeeds
        text = self.explain("--target=workers", "--at", at, "-", data=lines + json.dumps(applied) + "\n")
        self.assertIn("The size goes from 4 to 6: scaled.\n", text)
        # the log has a line for each record: none says "scaled" of a size that was not set
        told = run("log", "-", data=lines)[1]
        self.assertIn(": decided 4 -> 6, rule busy", told)
        self.assertNotIn("scaled", told)

    def test_without_a_decision_it_says_what_was_observed(self):
        record = {**next(r for r in RECORDS if r["kind"] == "action" and r["target_name"] == "workers"), "decision": None, "rule": None, "from": None, "to": None}
        lines = [json.dumps({**record, "time": f"2126-11-21T03:0{n}:00Z", "outcome": outcome, "http_status": 403, "message": "no role", **more}) + "\n"
                 for n, outcome, more in ((1, "unreachable", {}), (2, "forbidden", {"next_try": "2126-11-21T03:02:15Z"}), (4, "forbidden", {}))]
        told = run("explain", "--target=workers", "--at=2126-11-21T03:05Z", "-", data="".join(lines))
        self.assertEqual(told[0], 1, told)
        self.assertTrue(told[1].startswith(
            "workers: no decision, as its size could not be read.\nThe last observation: forbidden, HTTP 403: no role\n"
            "The credentials do not allow it.\nSince: 2126-11-21T03:02:00Z.\n"), told)
        told = run("explain", "--target=workers", "--at=2126-11-21T03:03Z", "-", data="".join(lines))[1]
        self.assertIn("Since: 2126-11-21T03:02:00Z. The first retry: 2126-11-21T03:02:15Z.\n", told)

    def test_a_step_of_a_give_back_names_the_incident_and_the_amounts(self):
        opened = next(r for r in RECORDS if r["kind"] == "incident" and r["event"] == "opened" and r["time"] <= DECISIONS[0]["time"])
        note = {"added": 4, "amount": 2, "incident": opened.get("digest", opened["fingerprint"]), "step": 1, "steps": 2}
        decision = {**DECISIONS[0], "give_back": note, "incidents": []}
        text = self.explain("--target=workers", "--at", self.at(0), "-", data="".join(json.dumps(r, separators=(",", ":")) + "\n" for r in (opened, decision)))
        self.assertIn('The step gives back 2 of the 4 that the resolved incident Busy{pool="workers"} added: step 1 of 2.\n', text)

    def test_the_missing_proof_is_named(self):
        def told(proof):
            return self.explain("--target=workers", "--at", self.at(0), "-", data=json.dumps({**DECISIONS[0], "proof": proof}) + "\n")
        self.assertIn("The rule's guard returned no sample: up == 1\n", told({"every_seconds": None, "query": "up == 1"}))
        self.assertIn("The watchdog does not prove yet that monitoring works: its last report is of 2126-11-21T03:00:00Z; it repeats every 1m.\n",
                      told({"every_seconds": 60, "reported": "2126-11-21T03:00:00Z"}))
        self.assertIn("monitoring works: no report since alertscaler was started.\n", told({"every_seconds": None}))

    def test_equal_decisions_that_were_not_recorded_are_counted(self):
        lines = json.dumps(DECISIONS[0]) + "\n" + json.dumps({**DECISIONS[1], "repeats": 7}) + "\n"
        self.assertIn("  the same decision 7 more times\n", self.explain("--target=workers", "--at", self.at(0), "-", data=lines))

    def test_repeats_are_of_the_decision_before(self):
        told = run("log", "--kind=decision", "-", data=json.dumps({**DECISIONS[0], "repeats": 7}) + "\n")[1]
        self.assertTrue(told.endswith(" (the decision before came 7 more times)\n"), told)

    def test_wrong_use_is_status_2(self):
        self.assertIn("--target=NAME is needed", self.explain(LOG, status=2))
        self.assertIn("No such file", self.explain("--target=workers", "/does/not/exist", status=2))

    def test_without_files_it_reads_the_log_of_the_configuration(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "alertscaler.yaml").write_text("rule_files: []\naction_log: {path: actions.jsonl}\n")
            (folder / "actions.jsonl.1").write_text("".join(LINES[:9]))
            (folder / "actions.jsonl").write_text("".join(LINES[9:]))
            for arguments in (["explain", "--target=workers", "--at", self.at(2)], ["replay"]):
                for more, cwd in (([], folder), (["--config.file", folder / "alertscaler.yaml"], None)):
                    done = run(*arguments, *more, cwd=cwd)
                    self.assertEqual(done[0], 0, done)
                    self.assertTrue("at_max" in done[1] or f"{len(DECISIONS)} decisions" in done[1])
        self.assertIn("No such file", self.explain("--target=workers", "--config.file=/does/not/exist", status=2))

    def test_standard_input_will_do(self):
        self.assertIn("The size stays at 9: at_max.", self.explain("--target=workers", "--at", self.at(2), "-", data="".join(LINES)))

    def test_a_torn_end_does_not_matter(self):
        whole = self.explain("--target=workers", "--at", self.at(2), LOG)
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as torn:
            torn.write("".join(LINES) + '{"kind":"decision","target_name":"work')
            torn.flush()
            self.assertEqual(self.explain("--target=workers", "--at", self.at(2), torn.name), whole)

    def test_which_step_counts_and_what_was_computed_from_it(self):
        record = json.loads(LINES[next(i for i, line in enumerate(LINES) if json.loads(line)["kind"] == "decision")])
        record["input"]["v"] = 2
        record["input"]["observed"] = {"replicas": 12, "pods": [{"name": f"p{i}", "ready": i < 10} for i in range(12)]}
        steps = [{"above": 70, "to": 70}, {"above": 120.5, "by": 3}]
        for action, value, told in (
            ({"scale_up": {"steps": steps}}, 105, ", the value is 105, above 70 counts: 10 x 105 / 70, rounded up\n"),
            ({"scale_up": {"steps": steps}}, 121, ", the value is 121, above 120.5 counts\n"),
            ({"scale_up": {"steps": steps}}, 70, ", the value is 70, no step is crossed\n"),
            ({"scale_up": {"steps": [{"above": 2**40, "to": 70}]}}, 70, ", the value is 70, no step is crossed\n"),
            ({"scale_down": {"steps": [{"below": 40, "to": 60}]}}, 12.5, ", the value is 12.5, below 40 counts: 10 x 12.5 / 60, rounded up\n"),
            ({"scale_to": {"steps": [{"from": 1, "size": 2}, {"from": 64, "size": 3}]}}, 64, ", the value is 64, from 64 counts\n"),
            ({"scale_to": 3}, 64, "scale_to 3, the value is 64\n"),
        ):
            record["input"]["proposals"] = [{"rule": "r", "action": action, "value": value}]
            text = self.explain("--target=workers", "--at=now", "-", data=json.dumps(record) + "\n")
            self.assertIn(told, text)
        record["input"]["proposals"][0].update(error="no data", action={"scale_up": {"steps": steps}})
        del record["input"]["proposals"][0]["value"]
        self.assertIn("}], no data\n", self.explain("--target=workers", "--at=now", "-", data=json.dumps(record) + "\n"))
        record["input"].update(v=99, proposals=[{"rule": "r", "action": {"scale_to": {"steps": [{}]}}, "value": 1}])
        self.assertIn("the value is 1\n", self.explain("--target=workers", "--at=now", "-", data=json.dumps(record) + "\n"))

    def test_labels_cannot_command_the_terminal(self):
        text = "".join(LINES).replace('"pool":"workers"', '"pool":"\\u001b[31m"')
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as log:
            log.write(text)
            log.flush()
            self.assertNotIn("\x1b", self.explain("--target=workers", log.name))


class Check(unittest.TestCase):
    def check(self, *arguments, status=0, data=None):
        done = run("replay", *arguments, data=data)
        self.assertEqual(done[0], status, done)
        return done[1] if status < 2 else done[2]

    def change(self, number, old, new):
        """The log with its decision `number` changed."""
        seq = DECISIONS[number]["seq"]
        self.assertIn(old, LINES[seq - 1])
        return "".join(line.replace(old, new) if i == seq - 1 else line for i, line in enumerate(LINES))

    def test_a_real_log_comes_out_the_same(self):
        self.assertEqual(self.check(LOG), f"{len(DECISIONS)} decisions computed again, 0 differ\n")
        self.assertEqual(self.check("-o", "json", LOG), "")

    def test_rotated_files_in_any_order(self):
        with tempfile.TemporaryDirectory() as folder:
            parts = [pathlib.Path(folder) / name for name in ("a", "b")]
            parts[0].write_text("".join(LINES[9:]))
            parts[1].write_text("".join(LINES[:9]))
            self.assertEqual(self.check(*parts), f"{len(DECISIONS)} decisions computed again, 0 differ\n")

    def test_a_difference_is_told_with_its_fields(self):
        text = self.check("-", data=self.change(0, '"output":{"desired":6', '"output":{"desired":7'), status=1)
        first = DECISIONS[0]
        self.assertEqual(text, f"-:{first['seq']}: record {first['seq']} of {first['time']}, target workers differs:\n"
                               f"  desired: logged 7, computed 6\n{len(DECISIONS)} decisions computed again, 1 differs\n")

    def test_a_changed_input_is_a_difference_too(self):
        text = self.check("-o", "json", "-", data=self.change(0, '"observed":{"replicas":4', '"observed":{"replicas":5'), status=1)
        told = json.loads(text)
        self.assertEqual((told["seq"], told["target"], told["logged"]["desired"], told["computed"]["desired"]), (DECISIONS[0]["seq"], WORKERS, 6, 8))

    def test_members_that_are_missing_or_too_many(self):
        text = self.check("-", data=self.change(0, ',"recommendation":6', ""), status=1)
        self.assertIn("recommendation: logged nothing, computed 6", text)
        text = self.check("-", data=self.change(0, '"output":{', '"output":{"new":1,'), status=1)
        self.assertIn("new: logged 1, computed nothing", text)

    def test_another_form_of_the_same_is_no_difference(self):
        spaced = "".join(json.dumps(record) + "\n" for record in RECORDS)
        self.assertEqual(self.check("-", data=spaced), f"{len(DECISIONS)} decisions computed again, 0 differ\n")

    def test_a_decision_of_another_version_is_told_and_the_others_are_checked(self):
        data = self.change(1, '"v":1},"instance', '"v":4},"instance')
        done = run("replay", "-", data=data)
        self.assertEqual(done[0], 2)
        self.assertEqual(done[2], f"alertscaler replay: -:{DECISIONS[1]['seq']}: input: v: expected an integer from 1 to 3\n")
        self.assertEqual(done[1], f"{len(DECISIONS)} decisions computed again, 0 differ, 1 cannot be read\n")

    def test_broken_files_are_status_2_with_their_place(self):
        for data, place in (
            ("nonsense\n", "-:1: not a record"),
            (LINES[0] + "[1]\n", "-:2: not a record: not an object"),
            (LINES[0] + LINES[4][:100], "-:2: the file ends in the middle of a line"),
            (LINES[0] + "\n", "-:2: not a record"),
        ):
            self.assertIn(place, self.check("-", data=data, status=2))
        self.assertIn("No such file", self.check("/does/not/exist", status=2))
        self.assertIn("Is a directory", self.check(ROOT, status=2))

    def test_memory_does_not_grow_with_the_log(self):
        environment = {**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=1:detect_leaks=0"}
        with tempfile.TemporaryDirectory() as folder:
            peaks, path = [], pathlib.Path(folder) / "log"
            (pathlib.Path(folder) / "rules.yaml").write_text(SAME)
            for count in (40, 800):
                with open(path, "w", encoding="utf-8") as log:  # not in one piece: a child's peak begins with ours
                    for _ in range(count):
                        log.writelines(LINES)
                for more in ([], ["--rules", folder, "--svg", folder]):
                    subprocess.run([PROGRAM, "replay", *more, path], env=environment, check=True, capture_output=True, timeout=120)
                peaks.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
        self.assertLess(peaks[1] - peaks[0], 8 * 1024)

    def test_an_empty_log_has_no_difference(self):
        self.assertEqual(self.check("-", data=""), "0 decisions computed again, 0 differ\n")


class Pools(unittest.TestCase):
    """Documents before version 3 do not say when their plan was made and for which rules. In tests/golden/log/pools-2.jsonl, of
    the simulator, the answers of 22 of 27 decisions differ from those of `decide`, in each member that may differ so."""

    LINES = (ROOT / "tests/golden/log/pools-2.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)

    def check(self, data, differ):
        last = run("replay", "-", data=data)[1].splitlines()[-1]
        self.assertRegex(last, rf"^{len(data.splitlines())} decisions? computed again, {differ}$")

    def test_a_log_of_version_2_comes_out_the_same(self):
        self.check("".join(self.LINES), "0 differ")

    def test_in_another_form_too(self):
        self.check("".join(json.dumps(json.loads(line)) + "\n" for line in self.LINES), "0 differ")

    def test_each_changed_member_is_a_difference(self):
        changed = []
        for record in map(json.loads, self.LINES):
            output = record["output"]
            wrong = [{key: output.get(key, []) + [{}]} for key in ("homeless", "options", "skipped", "take", "unneeded")]
            wrong += [{"desired": output["desired"] + 1}, {"kept": output["kept"] | {"at_min": 77}}]
            wrong += [{"unneeded": [node | {"since": "2026-11-20T00:00:00Z"}, *output["unneeded"][1:]]} for node in output.get("unneeded", [])[:1]]
            changed += [json.dumps(record | {"output": output | members}) + "\n" for members in wrong]
        self.check("".join(changed), f"{len(changed)} differ")

    def test_the_time_of_pods_that_a_group_was_asked_for(self):
        """Without `take` the answer says the plan's time in `asked` alone."""
        template = {"source": "configured", "capacity": [8000, 34359738368, 0, 110], "allocatable": [8000, 34359738368, 0, 110],
                    "free": [8000, 34359738368, 0, 110], "digest": "00000000000000b1"}
        shape = {"requests": [2000, 1073741824, 0, 1], "digest": "00000000000000a1", "unchecked": ["spread"], "waiting": 1}
        document = {"v": 2, "now": "2026-11-20T10:00:00Z", "target": {"min": 0, "max": 20}, "observed": {
            "replicas": 0, "groups": [{"name": "spot", "size": 0, "max": 5, "template": template}], "shapes": [shape],
            "pending": [[0, 1]], "pending_pods": 1}, "proposals": [{"rule": "r", "action": {"scale_up": {"fit": "pending_pods"}}}]}
        output = json.loads(run("decide", data=json.dumps(document))[1])
        self.assertEqual([asked["at"] for asked in output["asked"]], [document["now"]])
        later = document | {"now": "2026-11-20T10:00:00.5Z"}
        record = {"kind": "decision", "seq": 1, "time": later["now"], "input": later, "output": output}
        self.check(json.dumps(record) + "\n", "0 differ")

    def test_from_version_3_on_the_document_says_it(self):
        record = json.loads(next(line for line in self.LINES if '"groups":' in line))
        document = record["input"] | {"v": 3}
        when = "2026-11-20T11:22:33Z"
        document["observed"] = document["observed"] | {"plan": {"at": when, "fit": False, "max": 9, "min": 0, "take": True}}
        output = json.loads(run("decide", data=json.dumps(document))[1])
        self.assertNotIn("error", output)
        self.assertTrue(all(node["seen"] == when for node in output["unneeded"]), output)
        self.check(json.dumps(record | {"input": document, "output": output}) + "\n", "0 differ")
        unknown = json.loads(run("decide", data=json.dumps(document | {"v": 2}))[1])
        self.assertIn("plan", unknown["error"])


URL = "https://groups.example/workers"
SAME = f"""
targets:
  workers: {{node_group: {{provider: mine, url: {URL}}}, min: 2, max: 9, cooldown: {{up: 3s, down: 4s}}}}
rules:
  - {{name: busy, match: ['alertname="Busy"'], target: workers, scale_up: {{by: 50%}}}}
  - {{name: calm, match: ['alertname="Calm"'], target: workers, scale_down: {{by: 1}}}}
"""


class Preview(unittest.TestCase):
    """explain --payload"""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "rules.yaml").write_text(SAME)

    def explain(self, *arguments, status=0, alerts=(("Busy", "workers"),), receiver="alertscaler", rules=None):
        (self.folder / "payload.json").write_text(json.dumps({"version": "4", "receiver": receiver, "status": "firing", "alerts": [
            {"status": "firing", "labels": {"alertname": name, "pool": pool}, "annotations": {}, "startsAt": "2026-11-20T10:00:00Z",
             "endsAt": "0001-01-01T00:00:00Z"} for name, pool in alerts]}))
        if rules:
            (self.folder / "rules.yaml").write_text(rules)
        done = run("explain", "--payload", self.folder / "payload.json", "--rules", self.folder, *arguments)
        self.assertEqual(done[0], status, done)
        return done[1] if status == 0 else done[2]

    def test_which_rules_match_and_why_others_do_not(self):
        text = self.explain("--replicas=workers=4", alerts=(("Busy", "workers"), ("Other", "x")))
        self.assertTrue(text.startswith(
            'Busy{pool="workers"} firing: queued\n'
            f"  busy matches: target workers (node_group/mine/{URL})\n"
            '  calm does not: alertname="Calm" does not match: it is "Busy"\n'
            'Other{pool="x"} firing: no_rule. No rule matches the alert.\n'
            '  busy does not: alertname="Busy" does not match: it is "Other"\n'), text)
        self.assertIn("The size goes from 4 to 6: scaled.\n", text)
        self.assertIn(": from 4 to 6: applied. The size was set.\n", text)

    def test_other_reasons_not_to_match(self):
        rules = SAME.replace("Busy\"'", "Busy\"', 'team=~\"a|b\"'").replace("{name: calm, match: ['alertname=\"Calm\"']", "{name: calm, enabled: false, match: ['pool!=\"x\"']")
        rules += "  - {name: far, match: ['alertname=\"Busy\"'], receivers: [other], target: workers, scale_to: 9}\n"
        text = self.explain(rules=rules)
        self.assertIn('busy does not: team=~"a|b" does not match: there is no such label\n', text)
        self.assertIn("calm does not: it has enabled: false\n", text)
        self.assertIn('far does not: the receiver "alertscaler" is none of its receivers\n', text)
        self.assertIn("rule_disabled. Only rules with enabled: false match.", text)

    def test_a_target_that_is_not_allowed(self):
        rules = """
targets:
  web: {kubernetes: {kind: Deployment, namespace: shop, name: "{{ .Labels.pool }}"}, max: 9, allow: {namespaces: [shop], names: [web-*]}}
rules:
  - {name: busy, match: ['alertname="Busy"'], target: web, scale_up: {by: 1}}
"""
        text = self.explain(alerts=(("Busy", "db"),), rules=rules)
        self.assertIn("firing: target_not_allowed. ", text)
        self.assertRegex(text, r"busy matches: target web is not allowed: .*db")
        text = self.explain("--replicas=kubernetes/default/apps/v1/Deployment/shop/web-1=3", alerts=(("Busy", "web-1"),))
        self.assertIn("The size goes from 3 to 4: scaled.", text)

    def test_an_always_rule_is_not_of_the_payload(self):
        """It matches no alert, and its own decisions at the start are not printed."""
        rules = SAME + """\
  - {name: follow, always: true, target: workers, track: {value: 1, query: load}}
  - {name: other, always: true, target: other, track: {value: 1, query: load}}
"""
        rules = rules.replace("\nrules:", f"\n  other: {{node_group: {{provider: mine, url: {URL}-2}}, max: 9}}\nrules:")
        text = self.explain("--replicas=workers=4", "--replicas=other=4", rules=rules)
        self.assertIn("  follow does not: an `always` rule needs no alert\n", text)
        self.assertEqual(text.count("\nthe decision of "), 1, text)
        self.assertIn("The size goes from 4 to 6: scaled.\n", text)
        self.assertIn("\nIncidents\n  Busy{pool=\"workers\"}, firing since 2026-11-20T10:00:00Z\n  always: rule follow needs no alert\n", text)
        text = self.explain("--replicas=workers=4")
        self.assertNotIn("\nother (", text)
        self.assertIn("Its size is not known: --replicas=workers=N gives one.", self.explain())
        # the payload does not concern the target: nothing is asked for
        self.assertNotIn("Its size is not known", self.explain(alerts=(("Other", "x"),)))

    def test_without_a_size_it_says_how_to_give_one(self):
        self.assertIn("Its size is not known: --replicas=workers=N gives one.", self.explain())

    def test_json(self):
        told = json.loads(self.explain("--replicas=workers=4", "-o", "json"))
        self.assertEqual([rule["matches"] for rule in told["alerts"][0]["rules"]], [True, False])
        self.assertEqual([record["kind"] for record in told["records"]], ["decision", "action"])

    def test_wrong_use_is_status_2(self):
        for arguments, said in (
            (["--replicas=workers"], "is not NAME=N"),
            (["--replicas=workers=-1"], "is not NAME=N"),
            (["--replicas=nix=1"], 'no target "nix" (one with a template is named by its id)\n'),
            (["--replicas=wrokers=1"], 'no target "wrokers" (one with a template is named by its id); did you mean "workers"?\n'),
            (["--target=workers"], "--payload is about no log"),
            (["--rules=/does/not/exist"], "given twice"),
        ):
            self.assertIn(said, self.explain(*arguments, status=2))
        self.assertIn("need --payload", run("explain", "--target=workers", "--rules", self.folder, LOG)[2])
        self.assertIn("error", self.explain(rules="rules: [{}]", status=1))
        (self.folder / "rules.yaml").unlink()
        self.assertIn("no *.yaml or *.yml in this folder", self.explain(status=1))


class Rules(unittest.TestCase):
    """replay --rules"""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def replay(self, rules, *arguments, status=0, data="".join(LINES)):
        (self.folder / "rules.yaml").write_text(rules)
        done = run("replay", "--rules", self.folder / "rules.yaml", *arguments, "-", data=data)
        self.assertEqual(done[0], status, done)
        return done if status == 0 else done[2]

    def read(self, rules, **more):
        return json.loads(self.replay(rules, "-o", "json", **more)[1])

    def test_the_same_rules_come_to_the_same_sizes(self):
        told = self.read(SAME, data=REPEATED)
        (target,) = told["targets"]
        before, after = target["before"], target["after"]
        for key in ("ups", "downs", "min", "max", "last"):
            self.assertEqual(before[key], after[key], key)
        self.assertEqual((before["ups"], before["downs"], before["min"], before["max"], before["last"]), (2, 3, 4, 9, 6))
        self.assertAlmostEqual(before["mean"], after["mean"], delta=0.05)
        self.assertEqual((target["difference_count"], told["warnings"], told["notifications"]), (0, [], 8))
        self.assertIn("No difference of 10 s or more.\n", self.replay(SAME, data=REPEATED)[1])

    def test_without_repeats_there_is_one_step_down(self):
        """The log is of a version that did not wait for them."""
        (target,) = self.read(SAME)["targets"]
        self.assertEqual((target["before"]["downs"], target["after"]["downs"], target["after"]["last"]), (3, 1, 8))

    def test_what_alertmanagers_list_reported_is_reported_again(self):
        """It stands in no notification, but in the decisions that rested on it."""
        told = self.read(SAME, data="".join(json.dumps(record, separators=(",", ":")) + "\n" for record in map(listed, RECORDS)))
        after = told["targets"][0]["after"]
        self.assertEqual((after["ups"], after["downs"], after["last"], told["notifications"]), (2, 3, 6, 6))

    def test_small_records_of_repeats_count_as_whole_ones(self):
        self.assertEqual(SMALL.count('"kind":"repeat"'), 2)
        self.assertEqual(self.replay(SAME, "-o", "json", data=SMALL), self.replay(SAME, "-o", "json", data=REPEATED))
        self.assertEqual(self.replay(SAME, data=SMALL), self.replay(SAME, data=REPEATED))

    def test_repeats_without_their_details_are_counted(self):
        named = next(json.loads(line)["same_as"] for line in SMALL.splitlines() if '"same_as"' in line)
        data = "".join(line for line in SMALL.splitlines(keepends=True) if f'"id":"{named}"' not in line)
        told = self.read(SAME, data=data)
        self.assertIn("2 repeats are left out: the records with their details are not in these files", told["warnings"])
        self.assertEqual(told["notifications"], sum(r["kind"] == "notification" for r in RECORDS) - 1)

    def test_a_target_of_which_the_log_says_nothing_at_first(self):
        """It has its size when the first alert comes, however long the log has been silent."""
        data = LINES[0].replace("T03:08:46", "T01:00:00") + REPEATED[len(LINES[0]):]
        self.assertNotEqual(data, REPEATED)
        after = self.read(SAME, data=data)["targets"][0]["after"]
        self.assertEqual((after["ups"], after["downs"], after["max"], after["last"]), (2, 3, 9, 6))

    def test_a_clock_that_is_set_does_not_stop_time(self):
        """Set back by an hour; set from 1970 to the present; far into the future."""
        for head, tail in (("2026-11-21T03", "2026-11-21T02"), ("1970-01-01T00", "2026-11-21T03"), ("2026-11-21T03", "9999-12-31T23")):
            start = "".join(LINES[:3])
            data = start.replace('"time":"2026-11-21T03', f'"time":"{head}')
            data += REPEATED[len(start):].replace('"time":"2026-11-21T03', f'"time":"{tail}')
            told = self.read(SAME, data=data)
            after = told["targets"][0]["after"]
            self.assertEqual((after["ups"], after["downs"], after["max"], after["last"]), (2, 3, 9, 6))
            self.assertIn("clock was set 1 times", told["warnings"][0])

    def test_other_rules_come_to_other_sizes(self):
        told = self.read(SAME.replace("by: 50%", "by: 1").replace("up: 3s", "up: 8s"))
        after = told["targets"][0]["after"]
        self.assertEqual((after["ups"], after["max"], after["at_max_seconds"]), (1, 5, 0))

    def test_rule_files_have_the_settings_of_the_configuration(self):
        rules = SAME.replace(", cooldown: {up: 3s, down: 4s}", "")
        (self.folder / "alertscaler.yaml").write_text("rule_files: []\nproviders: {mine: {type: http}}\ndefaults: {cooldown: {up: 3s, down: 4s}}\n")
        with_settings = json.loads(self.replay(rules, "-o", "json", "--config.file", self.folder / "alertscaler.yaml")[1])
        self.assertEqual(with_settings["targets"][0]["after"]["ups"], 2)
        self.assertEqual(self.read(rules)["targets"][0]["after"]["ups"], 1)

    def forbid(self, outcome="forbidden"):
        """The log as if every firing `Busy` had come from a credential that may not trigger it."""
        lines = []
        for record in RECORDS:
            if record["kind"] == "notification":
                record = json.loads(json.dumps(record)) | {"credential": "am"}
                for alert in record["alerts"]:
                    if alert["labels"]["alertname"] == "Busy" and alert["status"] == "firing":
                        alert |= {"outcome": outcome, "rules": []}
            lines.append(json.dumps(record, separators=(",", ":")) + "\n")
        return "".join(lines)

    def test_what_was_forbidden_to_a_credential_does_nothing_under_other_rules(self):
        told = self.read(SAME, data=self.forbid())
        after = told["targets"][0]["after"]
        self.assertEqual((after["ups"], after["max"]), (0, 4))
        self.assertRegex(told["warnings"][0], r"^[1-9]\d* alerts were forbidden to their credential")
        self.assertEqual(self.read(SAME, data=self.forbid("queued"))["targets"][0]["after"]["ups"], 2)

    def test_credentials_of_the_settings_may_trigger_what_these_say(self):
        settings = self.folder / "alertscaler.yaml"

        def ups(access, data):
            settings.write_text("rule_files: []\nproviders: {mine: {type: http}}\n"
                                f"receiver: {{tokens: [{{name: am, file: token, {access}}}]}}\n")
            told = json.loads(self.replay(SAME, "-o", "json", "--config.file", settings, data=data)[1])
            self.assertEqual(told["warnings"], [])
            return told["targets"][0]["after"]["ups"]

        for data in (self.forbid(), self.forbid("queued")):
            self.assertEqual(ups("rules: [busy]", data), 2)
            self.assertEqual(ups("rules: ['*'], targets: [workers]", data), 2)
            self.assertEqual(ups("rules: [calm]", data), 0)
            self.assertEqual(ups("targets: [web]", data), 0)

    def test_a_target_without_rules_keeps_its_size(self):
        told = self.read(SAME.replace("Busy", "Nothing").replace("Calm", "Nothing"))
        after = told["targets"][0]["after"]
        self.assertEqual((after["ups"], after["downs"], after["min"], after["max"]), (0, 0, 4, 4))

    def test_differences_are_listed_once_they_last(self):
        minutes = "".join(LINES[:-1]) + LINES[-1].replace("03:09:04", "03:19:04")
        told = self.read(SAME.replace("by: 50%", "by: 1"), data=minutes)
        target = told["targets"][0]
        self.assertGreater(target["difference_count"], 0)
        first = target["differences"][0]
        self.assertNotEqual(first["before"], first["after"])
        self.assertLess(first["from"], first["to"])
        self.assertIn("First differences\n", self.replay(SAME.replace("by: 50%", "by: 1"), data=minutes)[1])

    def test_the_chart_is_xml_with_both_lines_and_the_alerts(self):
        self.replay(SAME, "--svg", self.folder / "charts")
        root = xml.etree.ElementTree.parse(self.folder / "charts/workers.svg").getroot()
        svg = "{http://www.w3.org/2000/svg}"
        self.assertEqual(root.tag, svg + "svg")
        self.assertEqual(sorted(path.get("class") for path in root.iter(svg + "path")), ["after", "before"])
        texts = [text.text for text in root.iter(svg + "text")]
        for text in ("workers", "size before", "size under the new rules", "Busy", "Calm", "min", "max"):
            self.assertIn(text, texts)
        lines = {path.get("class"): path.get("d") for path in root.iter(svg + "path")}
        self.assertEqual(lines["before"].count("V"), 5)
        self.assertEqual(len([group for group in root.iter(svg + "g") if group.find(svg + "rect") is not None]), 2)

    def test_the_chart_is_seen_without_style_sheets(self):
        """librsvg knows no variables of style sheets and takes no media query: the light colors stand in the elements."""
        self.replay(SAME, "--svg", self.folder / "charts")
        chart = self.folder / "charts/workers.svg"
        root = xml.etree.ElementTree.parse(chart).getroot()
        picture = subprocess.run(["rsvg-convert", chart], capture_output=True, check=True, timeout=120).stdout
        pixels = read_png(picture)
        self.assertEqual((len(pixels[0]), len(pixels)), (int(root.get("width")), int(root.get("height"))))
        colors = collections.Counter(color for row in pixels for color in row)
        self.assertEqual(pixels[2][2], (255, 255, 255, 255))
        self.assertGreater(colors[255, 255, 255, 255], 0.8 * len(pixels) * len(pixels[0]))
        for color in ("#0969da", "#8250df", "#1f2328", "#656d76"):      # both lines, both kinds of text
            self.assertGreater(colors[(*bytes.fromhex(color[1:]), 255)], 10, color)
        bars = [rect for rect in root.iter("{http://www.w3.org/2000/svg}rect") if rect.get("class") == "alert"]
        for bar in bars:
            x, y, width, height = (float(bar.get(name)) for name in ("x", "y", "width", "height"))
            red, green, blue, _ = pixels[int(y + height / 2)][int(x + width / 2)]
            self.assertGreater(red, 1.5 * max(green, blue), bar.attrib)
            for text in root.iter("{http://www.w3.org/2000/svg}text"):      # some 9 high, and 7 wide a letter
                bottom, long = float(text.get("y")), 7 * len(text.text or "")
                left = float(text.get("x")) - {"end": long, "middle": long / 2}.get(text.get("text-anchor"), 0)
                crosses = bottom > y and bottom - 9 < y + height and left < x + width and left + long > x
                self.assertFalse(crosses, text.text)

    def test_the_chart_is_xml_whatever_the_names_are(self):
        strange = r'<a href=\"x\">&amp;\u0001\u001b\uffff]]>\ud83d\ude00'
        data = "".join(LINES).replace('"target_name":"workers"', f'"target_name":"{strange}"').replace('"alertname":"Busy"', f'"alertname":"Busy{strange}"')
        self.replay(SAME, "--svg", self.folder / "charts", data=data)
        (chart,) = (self.folder / "charts").iterdir()
        root = xml.etree.ElementTree.parse(chart).getroot()
        texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
        expected = '<a href="x">&amp;\ufffd\ufffd\ufffd]]>\U0001f600'
        self.assertIn(expected, texts)
        self.assertIn("Busy" + expected, texts)

    def test_values_come_from_the_log(self):
        """The log's rule of the same name gives them, whatever its source was."""
        data = "".join(LINES).replace('"rule":"busy"},{', '"rule":"busy","value":7},{').replace('"rule":"busy"}],"target"', '"rule":"busy","value":7}],"target"')
        self.assertIn('"value":7', data)
        rules = SAME.replace("scale_up: {by: 50%}", "pass_through: {annotation: wanted}")
        told = self.read(rules, data=data)
        self.assertEqual((told["targets"][0]["after"]["max"], told["warnings"]), (7, []))

    def test_values_that_the_log_has_not_are_told(self):
        rules = SAME.replace("scale_up: {by: 50%}", "pass_through: {annotation: wanted}")
        done = self.replay(rules)
        self.assertIn("warning: rule busy: the log has no values of it", done[2])

    def test_sizes_that_others_set_are_set_again(self):
        data = "".join(LINES).replace('"observed":{"replicas":9,"status_replicas":9}', '"observed":{"replicas":8,"status_replicas":8}')
        told = self.read(SAME, data=data)
        self.assertIn("sizes were changed by others", told["warnings"][0])

    def test_wrong_use_is_status_2(self):
        self.assertIn("--svg, --replicas and --approvals need --rules", run("replay", "--svg=x", LOG)[2])
        self.assertIn("No such file", run("replay", "--rules=/does/not/exist", LOG)[2])
        self.assertIn("not a record", self.replay(SAME, status=2, data="{\n"))
        self.assertEqual(run("replay", "--rules", self.folder / "rules.yaml", "--svg=/proc/nothing", LOG)[0], 2)

    def test_sizes_of_targets_that_the_log_has_not(self):
        rules = SAME.replace(URL, URL + "-2")
        told = self.read(rules)
        self.assertEqual([target["after"].get("max") for target in told["targets"]], [4])
        done = self.replay(rules, "--replicas=workers=3", "-o", "json")
        told = json.loads(done[1])
        self.assertEqual({target["id"][-9:]: target["after"]["max"] for target in told["targets"]}, {"e/workers": 4, "workers-2": 9})

    def test_an_empty_log(self):
        self.assertIn("no target was decided on", self.replay(SAME, data="")[1])


ALWAYS = (ROOT / "tests/golden/log/always.jsonl").read_text(encoding="utf-8")
FOLLOW = f"""
targets:
  workers: {{node_group: {{provider: mine, url: {URL}}}, min: 2, max: 20, cooldown: {{up: 0s, down: 0s}}}}
rules:
  - {{name: follow, always: true, target: workers, every: 3s, track: {{average_value: 50, query: load}}}}
  - {{name: surge, match: ['alertname="Surge"'], target: workers, scale_up: {{to: 12}}}}
"""


class AlwaysRules(unittest.TestCase):
    """The log of a real run: an `always` rule whose value is 200, 400, missing, then 150; and an alert meanwhile."""
    setUp = Rules.setUp
    replay = Rules.replay

    def after(self, rules, data=ALWAYS, warnings=()):
        told = json.loads(self.replay(rules, "-o", "json", data=data)[1])
        self.assertEqual(told["warnings"], list(warnings))
        (target,) = told["targets"]
        return {key: target["after"][key] for key in ("ups", "downs", "min", "max", "last")}, target

    def test_each_decision_comes_out_the_same(self):
        self.assertEqual(run("replay", "-", data=ALWAYS), (0, "9 decisions computed again, 0 differ\n", ""))

    def test_the_same_rules_come_to_the_same_sizes(self):
        after, target = self.after(FOLLOW)
        self.assertEqual(after, {key: target["before"][key] for key in after})
        self.assertEqual(after, {"ups": 2, "downs": 1, "min": 3, "max": 12, "last": 3})
        self.assertEqual(target["difference_count"], 0)
        self.assertAlmostEqual(target["before"]["mean"], target["after"]["mean"], delta=0.2)

    def test_another_goal_comes_to_other_sizes(self):
        """400 / 25 = 16; without the value the size stays; 150 / 25 = 6 once it is there again."""
        after, _ = self.after(FOLLOW.replace("average_value: 50", "average_value: 25"))
        self.assertEqual(after, {"ups": 2, "downs": 2, "min": 4, "max": 16, "last": 6})

    def test_an_always_rule_in_place_of_one_with_match(self):
        """The values of the rule with the same name count, whatever the incident was."""
        data = ALWAYS.replace('"incident":"always"', f'"incident":"{64 * "a"}"')
        self.assertNotEqual(data, ALWAYS)
        self.assertEqual(self.after(FOLLOW, data=data)[0], self.after(FOLLOW)[0])

    def test_a_rule_with_match_in_place_of_an_always_rule(self):
        after, _ = self.after(FOLLOW.replace("always: true", "match: [alertname=Load]"), warnings=[
            "rule follow: the log has no values of it (an annotation or a query of a rule of that name): it proposes nothing"])
        self.assertEqual((after["ups"], after["max"]), (1, 12))

    def test_the_first_value_counts_from_the_start(self):
        """A log whose first decision comes late, as a file after a rotation: no fallback meanwhile."""
        lines = ALWAYS.splitlines(keepends=True)
        other = next(line for line in lines if '"kind":"notification"' in line).replace('"Surge"', '"Other"').replace('"time":"2026-11-28T03', '"time":"2026-11-28T02')
        data = lines[0].replace("T03:58:54", "T02:58:54") + other + "".join(lines[1:])
        rules = FOLLOW.replace("query: load}", "query: load}, fallback: {after: 5m, at_least: 19}")
        after, _ = self.after(rules, data=data)
        self.assertEqual(after["max"], 12)

    def test_explain_names_the_rule(self):
        text = run("explain", "--target=workers", "--at=2026-11-28T03:59:06Z", "-", data=ALWAYS)[1]
        self.assertIn("\nIncidents\n  always: rule follow needs no alert\n\nRules\n  follow wants 8: track average_value 50, the value is 400\n", text)

    def test_no_effect_of_an_always_rule_is_counted(self):
        text = run("effects", "-", data=ALWAYS)[1]
        self.assertIn("surge", text)
        self.assertNotIn("follow", text)


class Documentation(unittest.TestCase):
    """The examples of docs/replay.md are what the program says of tests/golden/log."""

    def find(self, command):
        text = (ROOT / "docs/replay.md").read_text(encoding="utf-8")
        return re.search(rf"\$ alertscaler {command}[^\n]*\n(.*?)\n(?:\.\.\.\n)?```", text, re.DOTALL).group(1)

    def test_explain(self):
        said = run("explain", "--target=workers", "--at=2026-11-21T03:08:51Z", LOG)[1]
        self.assertTrue(said.startswith(self.find("explain --target workers").strip()), said)

    def test_explain_payload_and_replay(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "rules.yaml").write_text(SAME)
            (folder / "payload.json").write_text(json.dumps({"version": "4", "receiver": "alertscaler", "alerts": [
                {"status": "firing", "labels": {"alertname": "Busy", "pool": "workers"}, "startsAt": "2026-11-20T10:00:00Z"}]}))
            said = run("explain", "--payload", folder / "payload.json", "--rules", folder, "--replicas=workers=4", "--at=2026-11-21T03:24:59.063305Z")[1]
            self.assertTrue(said.startswith(self.find("explain --payload").strip()), said)
            (folder / "rules.yaml").write_text(SAME.replace("by: 50%", "by: 1").replace("up: 3s", "up: 8s"))
            said = run("replay", "--rules", folder, LOG)[1]
            self.assertEqual(said.replace(f"under {folder}", "under candidate/"), self.find("replay --rules") + "\n")


unittest.main(argv=sys.argv[:1], verbosity=1)
