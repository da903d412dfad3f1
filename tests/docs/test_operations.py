#!/usr/bin/python3
"""test_operations.py ALERTSCALER ROOT: the alerts in deploy/prometheus, promtool's tests of them and the page for operators
belong together: every alert fires and keeps quiet in a test and has its section; every metric is one that alertscaler has, and
every command on the page is one that it understands."""
import json
import pathlib
import re
import subprocess
import sys
import unittest

import yaml

ALERTSCALER, ROOT = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
FOLDER, PAGE = ROOT / "deploy/prometheus", "docs/operations.md"
RULES, TESTS = FOLDER / "alertscaler.rules.yml", FOLDER / "alertscaler.rules.test.yml"
PARTS = ["**Meaning.**", "**Impact.**", "**Diagnosis.**", "**Mitigation.**"]
PROMETHEUS_OWN = {"up"}
WORD = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
SUFFIX = re.compile(r"_(bucket|sum|count)$")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    return done.returncode, done.stdout + done.stderr


def read_rules():
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def list_metrics(expression):
    """The names in an expression that can only be metrics' names: those with an underscore or a colon that stand neither in a
    selector nor in a list of labels, and are no function."""
    bare = re.sub(r'"[^"]*"', "", expression)
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\boffset\s+\w+", " ", bare)
    bare = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", bare)
    names = {match[0] for match in WORD.finditer(bare) if not re.match(r"\s*\(", bare[match.end():])}
    return names - {"and", "or", "unless", "bool", "offset"}


def read_sections():
    """{heading: text} of the page's headings of the third level."""
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    return {name: body for name, body in re.findall(r"^### ([^\n]+)\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)}


SIZES = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "Mi": 1 << 20, "Gi": 1 << 30}


def read_size(text):
    number, unit = re.fullmatch(r"(\d+)(\w*)", str(text)).groups()
    return int(number) * SIZES[unit]


def read_limits():
    """{metric: the greatest value that it can have with the defaults and the shipped manifests}"""
    schema = json.loads(run(ALERTSCALER, "schema", "config")[1])
    receiver = schema["$defs"][schema["properties"]["receiver"]["$ref"].rpartition("/")[2]]["properties"]
    limits_page = (ROOT / "docs/limits.md").read_text(encoding="utf-8")
    incidents = read_size(receiver["max_incident_memory"]["default"])
    pod = read_manifest("kubernetes/deployment.yaml")["spec"]["template"]["spec"]["containers"][0]
    (queue,) = re.findall(r"(?m)^\| notifications and commands that wait[^|]*\|[^|]*?([\d,]+)", limits_page)
    return {
        "alertscaler_http_connections": int(receiver["max_connections"]["default"]),
        "alertscaler_incident_memory_bytes": incidents,
        "alertscaler_incident_memory_limit_bytes": incidents,
        "alertscaler_queue_length notifications": int(queue.replace(",", "")),
        "process_resident_memory_bytes": read_size(pod["resources"]["limits"]["memory"]),
    }


def max_of(values):
    """Of promtool's notation: `1 2x3 0+5x10`."""
    most = 0.0
    for part in values.split():
        match = re.fullmatch(r"(-?[\d.]+)(?:([+-][\d.]+))?(?:x(\d+))?", part)
        if match:
            first, step, times = float(match[1]), float(match[2] or 0), int(match[3] or 0)
            most = max(most, first, first + step * times)
    return most


class Alerts(unittest.TestCase):
    maxDiff = None
    rules = read_rules()
    alerts = {rule["alert"]: rule for rule in rules if "alert" in rule}
    sections = read_sections()

    def test_promtool_accepts_them(self):
        self.assertGreater(len(self.alerts), 20)
        status, said = run("promtool", "check", "rules", RULES)
        self.assertEqual((status, f"{len(self.rules)} rules found" in said), (0, True), said)

    def test_promtools_tests_pass(self):
        status, said = run("promtool", "test", "rules", TESTS)
        self.assertEqual((status, "SUCCESS" in said), (0, True), said)

    def test_each_fires_in_a_test_and_keeps_quiet_in_another(self):
        fires, quiet = set(), set()
        for test in yaml.safe_load(TESTS.read_text(encoding="utf-8"))["tests"]:
            for case in test["alert_rule_test"]:
                (fires if case["exp_alerts"] else quiet).add(case["alertname"])
        self.assertEqual((fires, quiet), (set(self.alerts), set(self.alerts)))

    def test_each_fires_within_the_limits_of_the_shipped_defaults(self):
        """A value that alertscaler cannot have, as it answers 503 or is killed before, makes no alert fire."""
        limits, seen = read_limits(), set()
        for test in yaml.safe_load(TESTS.read_text(encoding="utf-8"))["tests"]:
            if not any(case["exp_alerts"] for case in test["alert_rule_test"]):
                continue
            for item in test["input_series"] if "input_series" in test else []:
                metric = item["series"].replace("{", " ").split()[0]
                queue = re.search(r'queue="(\w+)"', item["series"])
                name = f"{metric} {queue[1]}" if queue else metric
                if name in limits:
                    seen.add(name)
                    with self.subTest(item["series"]):
                        self.assertLessEqual(max_of(item["values"]), limits[name])
        self.assertEqual(seen, set(limits))

    def test_each_has_its_section_and_no_other(self):
        self.assertEqual(list(self.alerts), [name for name in self.sections if name.startswith("Alertscaler")])
        for name, alert in self.alerts.items():
            with self.subTest(name):
                self.assertEqual(alert["annotations"]["runbook_url"], f"https://alertscaler.io/{PAGE}#{name.lower()}")
                found = [self.sections[name].find(part) for part in PARTS]
                self.assertTrue(found[0] == 1 and found == sorted(found), f"{found}: {' '.join(PARTS)} in this order")
                self.assertTrue(self.sections[name].strip().startswith(f"**Meaning.** {alert['labels']['severity'].capitalize()}."))

    def test_pages_name_no_other(self):
        """docs/notify.md names what alertscaler itself sends to Alertmanager, docs/changelog.md also earlier names."""
        for path in sorted({*(ROOT / "docs").rglob("*.md")} - {ROOT / "docs/notify.md", ROOT / "docs/changelog.md"}):
            found = set(re.findall(r"\bAlertscaler[A-Z]\w*", path.read_text(encoding="utf-8")))
            self.assertEqual(found - set(self.alerts), set(), path)

    def test_each_says_how_bad_it_is_and_what_happens(self):
        for name, alert in self.alerts.items():
            self.assertIn(alert["labels"]["severity"], ("critical", "warning", "info"), name)
            self.assertEqual(sorted(alert["annotations"]), ["description", "runbook_url", "summary"], name)

    def test_each_metric_is_one_of_alertscaler(self):
        page = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
        known = set(re.findall(r"^\| `(\w+)` \| (?:counter|gauge|histogram) \|", page, re.MULTILINE))
        self.assertGreater(len(known), 30)
        recorded = {rule["record"] for rule in self.rules if "record" in rule}
        for rule in self.rules:
            used = {SUFFIX.sub("", name) if SUFFIX.sub("", name) in known else name for name in list_metrics(rule["expr"])}
            with self.subTest(rule.get("alert") or rule["record"]):
                self.assertTrue(used)
                self.assertEqual(used - known - recorded - PROMETHEUS_OWN, set())

    def test_words_in_selectors_are_words_of_the_metrics(self):
        """A misspelled outcome is an alert that never fires."""
        text = "".join((ROOT / name).read_text(encoding="utf-8") for name in ("docs/metrics.md", "docs/decision.md", "docs/receiver.md"))
        words = set(re.findall(r"`(\w+)`", text))
        used = 0
        for rule in self.rules:
            for label, value in re.findall(r'\b(result|outcome|reason|status|source|queue|handler|direction)(?:=~|!~|!=|=)"([^"]*)"',
                                           rule["expr"]):
                for word in value.split("|"):
                    used += 1
                    self.assertIn(word, words | {"none"}, f"{rule.get('alert')}: {label}")
        self.assertGreater(used, 15)

    def test_recorded_series_have_names_as_prometheus_advises(self):
        """level:metric:operations"""
        for rule in self.rules:
            if "record" in rule:
                self.assertRegex(rule["record"], r"^(job|instance):alertscaler_\w+:\w+$")


def read_commands():
    """What stands in blocks behind a prompt, and between backquotes."""
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line[2:].split("   #")[0] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return lines + [code.replace("\n", " ") for code in re.findall(r"`([^`]+)`", prose)]


def read_manifest(path):
    return yaml.safe_load((ROOT / "deploy" / path).read_text(encoding="utf-8"))


class Installations(unittest.TestCase):
    """The page is for one replica and for several: what is called otherwise there is asked of both."""
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    lines = read_commands()

    def test_commands_name_no_installation_where_both_may_be_meant(self):
        pods = workloads = 0
        for line in self.lines:
            for call in re.findall(r"kubectl -n alertscaler (.*)", line):
                pod = re.match(r"(?:exec|logs|port-forward) (\S+)", call)
                workload = re.match(r"(?:scale|set image|rollout undo) (\S+)", call)
                with self.subTest(line):
                    if pod and "kill-switch" not in call:     # the kill switch of one replica
                        self.assertIn(pod[1], ("$POD", "NAME"))
                        pods += 1
                    if workload:
                        self.assertEqual(workload[1], "$WORKLOAD")
                        workloads += 1
        self.assertGreater(pods, 6)
        self.assertGreater(workloads, 3)

    def test_both_are_called_as_in_the_manifests(self):
        for path in "kubernetes/deployment.yaml", "kubernetes-ha/statefulset.yaml":
            item = read_manifest(path)
            workload = f"{item['kind'].lower()}/{item['metadata']['name']}"
            self.assertIn(f"| `{workload}` |", self.page)
            self.assertTrue(any(line.startswith(f"WORKLOAD={workload}") for line in self.lines), workload)
            for claim in item["spec"].get("volumeClaimTemplates", []):
                self.assertIn(f"`{claim['metadata']['name']}-{item['metadata']['name']}-0`", self.page)
        self.assertIn(f"the claim `{read_manifest('kubernetes/storage.yaml')['metadata']['name']}`", self.page)

    def test_the_kill_switch_is_the_one_that_is_configured(self):
        file = read_manifest("kubernetes/config/alertscaler.yaml")["kill_switch"]["file"]
        for page in PAGE, "docs/operators.md":
            text = (ROOT / page).read_text(encoding="utf-8")
            self.assertRegex(text, r'kubectl -n alertscaler exec deployment/alertscaler -- alertscaler kill-switch on "[^"]+"', page)
            self.assertTrue(file.startswith("/var/lib/alertscaler/"), "the one folder of the container that can be written")
            self.assertRegex(text, r"kubectl -n alertscaler annotate lease alertscaler alertscaler\.io/paused=", page)
        self.assertNotIn("kill_switch", read_manifest("kubernetes-ha/config/alertscaler.yaml"))


class Commands(unittest.TestCase):
    def test_those_on_the_page_exist(self):
        lines = read_commands()
        listed = run(ALERTSCALER, "help")[1]
        names = re.findall(r"^  (\S+(?: \S+)?)  ", listed, re.MULTILINE)
        seen = set()
        for line in lines:
            for call in re.findall(r"(?:^|-- )alertscaler ([a-z].*?)(?:$|\|)", line):
                words = call.split()
                name = " ".join(words[:2]) if " ".join(words[:2]) in names else words[0]
                with self.subTest(line):
                    self.assertIn(name, names)
                    seen.add(name)
                    options = run(ALERTSCALER, *name.split(), "--help")[1]
                    for option in re.findall(r"(?<=\s)--[a-z][\w.-]*", call):
                        self.assertRegex(options, rf"(?m)(?<![\w.-]){re.escape(option)}(?![\w.-])")
                    if len(words) > len(name.split()) and "TARGET" in words:     # a whole call, not only the name
                        for option in re.findall(r"(?m)^\s+(--[\w.-]+)\S*\s.*; required$", options):
                            self.assertIn(option, call)
                        self.assertTrue("TARGET" in options.splitlines()[0] or "--target TARGET" in call, call)
        self.assertLessEqual({"status", "log", "explain", "log verify", "check", "replay"}, seen)


class Changelog(unittest.TestCase):
    def test_it_has_this_version_newest_first_and_what_to_do_at_an_upgrade(self):
        text = (ROOT / "docs/changelog.md").read_text(encoding="utf-8")
        (current,) = re.findall(r"^  version: '([\d.]+)',$", (ROOT / "meson.build").read_text(encoding="utf-8"), re.MULTILINE)
        parts = re.findall(r"^## (\d+\.\d+\.\d+)(, in work)?\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        self.assertEqual(len(parts), len(re.findall("^## ", text, re.MULTILINE)))
        versions = [tuple(map(int, version.split("."))) for version, _, _ in parts]
        self.assertEqual(versions, sorted(set(versions), reverse=True))
        self.assertEqual(next(version for version, in_work, _ in parts if not in_work), current)
        for version, _, body in parts[:-1]:
            self.assertIn("### At the upgrade", body, version)


unittest.main(argv=sys.argv[:1], verbosity=1)
