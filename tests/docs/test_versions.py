#!/usr/bin/python3
"""test_versions.py ROOT: the version and the image's name are the same in each file that must have them."""
import pathlib
import re
import sys
import unittest

import yaml

ROOT = pathlib.Path(sys.argv[1]).resolve()


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


class Versions(unittest.TestCase):
    version = re.search(r"version: '([0-9.]+)'", read("meson.build"))[1]

    def test_they_are_that_of_meson(self):
        chart = yaml.safe_load(read("deploy/chart/Chart.yaml"))
        image, = yaml.safe_load(read("deploy/image/kustomization.yaml"))["images"]
        first, = yaml.safe_load(read("src/cli/init/kubernetes/kustomization.yaml"))["images"]
        found = {"debian/changelog": re.match(r"alertscaler \(([^)]+)\)", read("debian/changelog"))[1],
                 "Chart.yaml version": chart["version"], "Chart.yaml appVersion": chart["appVersion"], "image": image["newTag"],
                 "init --kubernetes": first["newTag"]}
        self.assertEqual(found, dict.fromkeys(found, self.version))

    def test_pages_name_files_of_this_version(self):
        for page in ("README.md", "docs/packages.md"):
            names = re.findall(r"alertscaler(?:-chart)?[-_:]([0-9]+\.[0-9]+\.[0-9]+)", read(page))
            self.assertEqual(set(names), {self.version}, page)

    def test_the_image_is_named_in_one_file(self):
        """Manifests have the word that kustomize replaces, and the chart has the setting as a file."""
        for path in sorted((ROOT / "deploy").rglob("*.yaml")):
            for name in re.findall(r"^\s*(?:- )?image: *([^\s{]+)$", path.read_text(encoding="utf-8"), re.MULTILINE):
                sample = path == ROOT / "deploy/kind.d/sample.yaml"     # has no image of alertscaler
                self.assertEqual(name, "python:3-alpine" if sample else "alertscaler", path)
        link = ROOT / "deploy/chart/files/image.yaml"
        self.assertTrue(link.is_symlink() and link.resolve() == ROOT / "deploy/image/kustomization.yaml")
        self.assertEqual(yaml.safe_load(read("deploy/chart/values.yaml"))["image"]["repository"], "")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
