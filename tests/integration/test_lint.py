"""`check --alertmanager` goes through a tree of routes as Alertmanager does: amtool is asked where alerts go."""
import json
import os
import random
import subprocess

import pytest

from harness import monitoring
from harness.daemon import ROOT, find_binary

SEED = int(os.environ.get("LINT_SEED", "7"))
TREES = int(os.environ.get("LINT_TREES", "40"))
ALERTS = 8
LABELS, VALUES = "abc", ["x", "y", "z"]
MATCHERS = ['{0}="{1}"', '{0}!="{1}"', '{0}=~"{1}|{2}"', '{0}!~"{1}|{2}"', '{0}=""', '{0}=~".*"', '{0}=~"{1}.*"', "{0}={1}"]

MISSING = monitoring.missing("amtool", "promtool")
pytestmark = [pytest.mark.monitoring, pytest.mark.skipif(bool(MISSING), reason=str(MISSING))]


def make_route(numbers, depth):
    route = {"receiver": numbers.choice(["people", "people", "alertscaler"])}
    if numbers.random() < 0.4:
        route["continue"] = True
    style = numbers.random()
    texts = [numbers.choice(MATCHERS).format(numbers.choice(LABELS), *numbers.sample(VALUES, 2))
             for _ in range(numbers.choice([0, 1, 1, 1, 2]))]
    if style < 0.2:
        route["match"] = {numbers.choice(LABELS): numbers.choice(VALUES)}
    elif style < 0.4:
        route["match_re"] = {numbers.choice(LABELS): "|".join(numbers.sample(VALUES, 2))}
    elif style < 0.5:
        route["matchers"] = ["{" + ", ".join(texts) + "}"]
    else:
        route["matchers"] = texts
    if depth > 0:
        route["routes"] = [make_route(numbers, depth - 1) for _ in range(numbers.choice([0, 0, 1, 2, 3]))]
    return route


def make_tree(numbers):
    root = {"receiver": numbers.choice(["people", "people", "alertscaler"]), "repeat_interval": "1h",
            "routes": [make_route(numbers, 2) for _ in range(4)]}
    webhook = {"url": "http://alertscaler:9096/webhook"}
    return {"route": root, "receivers": [{"name": "people"}, {"name": "alertscaler", "webhook_configs": [webhook]}]}


def rule_for(number, alert):
    match = [f'{label}="{alert.get(label, "")}"' for label in LABELS]
    return {"name": f"r{number}", "match": match, "target": "web", "scale_to": 1}


def ask_amtool(path, alert):
    done = subprocess.run([monitoring.program("amtool"), "config", "routes", "test", f"--config.file={path}",
                           *(f"{name}={value}" for name, value in alert.items())],
                          capture_output=True, text=True, check=True)
    return "alertscaler" in monitoring.answer_of_amtool(done.stdout).split(",")


@pytest.mark.seconds(300)
def test_lint_knows_where_alertmanager_sends_alerts(tmp_path):
    numbers = random.Random(SEED)
    alertmanager, rules = tmp_path / "alertmanager.yml", tmp_path / "rules.yaml"
    arrived = lost = 0
    for tree in range(TREES):
        alertmanager.write_text(json.dumps(make_tree(numbers)), encoding="utf-8")
        alerts = [{label: value for label in LABELS if (value := numbers.choice(VALUES + [""]))} for _ in range(ALERTS)]
        target = {"kubernetes": {"kind": "Deployment", "namespace": "shop", "name": "web"}, "max": 5}
        lines = ['{"targets": {"web": %s}, "rules": [' % json.dumps(target)]  # one rule a line, to know it by its line
        lines += [json.dumps(rule_for(number, alert)) + "," for number, alert in enumerate(alerts)]
        rules.write_text("\n".join(lines) + "\n]}\n", encoding="utf-8")
        done = subprocess.run([find_binary(), "check", rules, "--alertmanager", alertmanager, "--format", "json"],
                              capture_output=True, text=True, check=True)
        said = json.loads(done.stdout)
        refused = {item["line"] - 2 for item in said if item["message"].startswith("no route brings such alerts")}
        nothing_comes = any(item["message"].startswith(("no alert comes", "no route leads")) for item in said)
        for number, alert in enumerate(alerts):
            comes = ask_amtool(alertmanager, alert)
            arrived, lost = arrived + comes, lost + (not comes)
            assert comes != (nothing_comes or number in refused), f"seed {SEED}, tree {tree}, {alert}: {said}\n{alertmanager.read_text()}"
    assert arrived > TREES and lost > TREES, "the trees are too much alike to say anything"


def test_amtool_accepts_what_people_are_told_to_write(tmp_path):
    text = (ROOT / "docs/lint.md").read_text(encoding="utf-8")
    for name, tool, *words in (("alertmanager.yml", "amtool", "check-config"), ("alerts.yml", "promtool", "check", "rules")):
        block = text.split(f"```yaml\n# {name}\n")[1].split("```")[0]
        (tmp_path / name).write_text(block, encoding="utf-8")
        done = subprocess.run([monitoring.program(tool), *words, tmp_path / name], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
