#!/usr/bin/python3
"""test_series.py ROOT: the alerts of deploy/prometheus and the dashboards of deploy/grafana name metrics and labels that the
program prints (tests/public/names, which a test compares with the program), and values of labels that are words of the code."""
import json
import pathlib
import re
import sys
import unittest

import yaml

ROOT = pathlib.Path(sys.argv[1]).resolve()
ADDED = {"job", "instance", "le", "alertname", "alertstate", "exported_job"}      # by Prometheus, and by histograms
SUFFIX = re.compile(r"_(bucket|sum|count)$")
FOREIGN = {"up", "ALERTS"}


def read_metrics():
    """{metric: its labels}"""
    lines = (ROOT / "tests/public/names").read_text(encoding="utf-8").splitlines()
    found = [re.fullmatch(r"metric\t(\w+)\{([\w,]*)\}.*", line) for line in lines]
    return {match[1]: set(match[2].split(",")) - {""} for match in found if match}


def read_expressions():
    """{place: query}, and the metrics that recording rules make."""
    rules = [rule for group in yaml.safe_load((ROOT / "deploy/prometheus/alertscaler.rules.yml").read_text())["groups"] for rule in group["rules"]]
    found = {rule.get("alert") or rule["record"]: rule["expr"] for rule in rules}
    for name in ("overview.json", "target.json"):
        board = json.loads((ROOT / "deploy/grafana" / name).read_text(encoding="utf-8"))
        found.update({f"{name}: {panel['title']} {query['refId']}": query["expr"]
                      for panel in board["panels"] for query in panel.get("targets", [])})
    return found


def read_words():
    """All texts of the code."""
    files = [*(ROOT / "src").rglob("*.[ch]"), *(ROOT / "include").rglob("*.h")]
    return set(re.findall(r'"([\w.-]+)"', "\n".join(path.read_text(encoding="utf-8") for path in files)))


def find_faults(expression, metrics, words):
    text = expression.replace("$__rate_interval", "1m").replace("$__range", "1m")
    outside = re.sub(r'"[^"]*"', '""', text)
    named = set(re.findall(r"(?<![\w:])(?:alertscaler|process)_\w+", outside))
    known = {name: metrics.get(name) or metrics.get(SUFFIX.sub("", name)) or set() for name in named}
    faults = [f"no metric {name}" for name in named if name not in metrics and SUFFIX.sub("", name) not in metrics]
    for name, matchers in re.findall(r'([\w:]+)\{((?:[^"}]|"[^"]*")*)\}', text):
        for label, operator, value in re.findall(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"', matchers):
            if name not in FOREIGN and label not in known.get(name, set()) | ADDED:
                faults.append(f"{name} has no label {label}")
            for word in value.split("|"):
                is_word = re.fullmatch(r"[\w-]+", word) and not word.isdigit()
                if is_word and label not in ADDED and word not in words:
                    faults.append(f"{name}: {label} is never {word}")
    grouped = {label.strip() for labels in re.findall(r"\b(?:by|on) \(([^)]*)\)", text) for label in labels.split(",")}
    return faults + [f"no metric has the label {label}" for label in grouped - ADDED if not any(label in labels for labels in known.values())]


class Series(unittest.TestCase):
    metrics, words = read_metrics(), read_words()

    def test_alerts_and_panels_name_what_the_program_prints(self):
        expressions = read_expressions()
        self.assertGreater(len(expressions), 80)
        for place, expression in expressions.items():
            with self.subTest(place):
                self.assertEqual(find_faults(expression, self.metrics, self.words), [])

    def test_wrong_names_are_found(self):
        for expression, fault in (
                ("sum(alertscaler_leaders)", "no metric alertscaler_leaders"),
                ('alertscaler_leader{state="x"}', "alertscaler_leader has no label state"),
                ('alertscaler_decisions_total{reason="no_such_reason"}', "alertscaler_decisions_total: reason is never no_such_reason"),
                ('alertscaler_notifications_total{result=~"ok|denyed"}', "alertscaler_notifications_total: result is never denyed"),
                ("sum by (job, recever) (alertscaler_notify_dropped_total)", "no metric has the label recever")):
            self.assertIn(fault, find_faults(expression, self.metrics, self.words))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
