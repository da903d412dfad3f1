#!/usr/bin/python3
"""test_grafana.py ROOT: the dashboards that users import are those that deploy/grafana/make writes, name metrics of
docs/metrics.md, and work with any data source; the panels stand beside each other."""
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()
FOLDER = ROOT / "deploy/grafana"
NAMES = ["overview.json", "target.json"]


class Dashboards(unittest.TestCase):
    read = {name: json.loads((FOLDER / name).read_text(encoding="utf-8")) for name in NAMES}

    def test_the_files_are_current(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([FOLDER / "make", folder], check=True)
            self.assertEqual(sorted(path.name for path in pathlib.Path(folder).iterdir()), NAMES)
            for name in NAMES:
                made = (pathlib.Path(folder) / name).read_text(encoding="utf-8")
                self.assertEqual(made, (FOLDER / name).read_text(encoding="utf-8"), f"{name}: run deploy/grafana/make")

    def test_metrics_are_documented(self):
        documented = set(re.findall(r"`((?:alertscaler|process)_\w+)`", (ROOT / "docs/metrics.md").read_text(encoding="utf-8")))
        for name, board in self.read.items():
            named = {re.sub(r"_bucket$", "", word) for word in re.findall(r"\b(?:alertscaler|process)_\w+", json.dumps(board))}
            self.assertGreater(len(named), 5)
            self.assertEqual(named - documented, set(), name)

    def test_every_query_uses_the_chosen_data_source(self):
        for board in self.read.values():
            self.assertEqual(board["templating"]["list"][0]["type"], "datasource")
            text = json.dumps(board)
            self.assertEqual(set(re.findall(r'"uid": "([^"]*)"', text)) - {board["uid"]}, {"${datasource}"})
            defined = {item["name"] for item in board["templating"]["list"]}
            used = set(re.findall(r"\$\{?(\w+)", text)) - {"__rate_interval", "__range", "__all"}
            self.assertEqual(used, defined)

    def test_panels_have_places_of_their_own(self):
        for board in self.read.values():
            panels = board["panels"]
            self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
            for one, other in itertools.combinations([panel["gridPos"] for panel in panels], 2):
                beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
                below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
                self.assertTrue(beside or below, (one, other))
                self.assertLessEqual(one["x"] + one["w"], 24)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
