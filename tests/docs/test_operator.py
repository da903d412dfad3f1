#!/usr/bin/python3
"""test_operator.py ROOT: the objects of deploy/kubernetes/prometheus-operator belong to the files that they are made of."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import yaml

ROOT = pathlib.Path(sys.argv[1]).resolve()
FOLDER = ROOT / "deploy/kubernetes/prometheus-operator"


def load(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


class Objects(unittest.TestCase):
    def test_the_alerts_are_current(self):
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as made:
            subprocess.run([FOLDER / "make-rules", made.name], check=True)
            self.assertEqual(made.read(), (FOLDER / "prometheusrule.yaml").read_text(encoding="utf-8"), "run make-rules")
        self.assertEqual(load(FOLDER / "prometheusrule.yaml")["spec"], load(ROOT / "deploy/prometheus/alertscaler.rules.yml"))

    def test_every_object_is_in_the_kustomization(self):
        named = set(load(FOLDER / "kustomization.yaml")["resources"])
        self.assertEqual(named, {file.name for file in FOLDER.glob("*.yaml")} - {"kustomization.yaml"} | {"../../grafana"})
        self.assertEqual(load(ROOT / "deploy/grafana/kustomization.yaml")["configMapGenerator"][0]["files"],
                         sorted(file.name for file in (ROOT / "deploy/grafana").glob("*.json")))

    def test_the_service_is_found_and_the_url_leads_to_it(self):
        service, monitor = load(FOLDER.parent / "service.yaml"), load(FOLDER / "servicemonitor.yaml")
        self.assertEqual(monitor["spec"]["selector"]["matchLabels"].items() & service["metadata"]["labels"].items(),
                         monitor["spec"]["selector"]["matchLabels"].items())
        self.assertIn(monitor["spec"]["endpoints"][0]["port"], [port["name"] for port in service["spec"]["ports"]])
        receiver = load(FOLDER / "alertmanagerconfig.yaml")["spec"]["receivers"][0]
        self.assertEqual(receiver["webhookConfigs"][0]["url"], "http://{}.alertscaler.svc:{}/webhook".format(
            service["metadata"]["name"], service["spec"]["ports"][0]["port"]))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
