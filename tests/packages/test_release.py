"""The files of a release: complete, the same from two builds, and of one version."""
import hashlib
import json
import os
import re
import subprocess
import tarfile

import pytest
import yaml
from conftest import ROOT, run
from harness.moto import find_packages

VERSION = re.search(r"version: '([0-9.]+)'", (ROOT / "meson.build").read_text(encoding="utf-8"))[1]


def test_two_builds_in_two_folders_are_the_same_bytes(releases):
    one, other = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in releases)
    assert len(one) == 7 and one.keys() == other.keys()
    assert [name for name in one if one[name] != other[name]] == []


def test_the_checksums_are_of_all_files(release):
    sums = dict(reversed(line.split("  ")) for line in (release / "SHA256SUMS").read_text().splitlines())
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in release.iterdir() if path.name != "SHA256SUMS"}
    assert sums == files


def test_it_is_one_version_everywhere(find):
    names = [find(pattern).name for pattern in ("*.tar.gz", "alertscaler_*.deb", "*.oci.tar", "*.spdx.json", "*.tgz")]
    assert all(VERSION in name for name in names), names


def test_the_source_names_its_commit_and_has_no_links_outside(find):
    with tarfile.open(find("*.tar.gz")) as archive:
        revision = archive.extractfile(f"alertscaler-{VERSION}/revision").read().decode()
        assert not [m.name for m in archive if m.issym() and m.linkname.startswith("/")]
    head = run("git", "-c", "safe.directory=*", "-C", ROOT, "rev-parse", "HEAD")
    assert re.fullmatch(r"[0-9a-f]{10}", revision) and head.startswith(revision)


def test_lintian_finds_no_error(find):
    done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", find("alertscaler_*.deb")],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_chart_is_whole_and_has_the_rules_as_a_file(find):
    with tarfile.open(find("*.tgz")) as archive:
        members = {member.name: member for member in archive}
        rules = archive.extractfile("alertscaler/files/alertscaler.rules.yml").read()
        chart = yaml.safe_load(archive.extractfile("alertscaler/Chart.yaml"))
    assert rules == (ROOT / "deploy/prometheus/alertscaler.rules.yml").read_bytes()
    assert (chart["version"], chart["appVersion"]) == (VERSION, VERSION)
    assert {"alertscaler/values.schema.json", "alertscaler/templates/workload.yaml"} <= members.keys()
    assert not [m for m in members.values() if m.issym() or m.islnk() or m.uid or m.mtime != next(iter(members.values())).mtime]


@pytest.fixture(scope="module")
def spdx(find):
    return json.loads(find("*.spdx.json").read_text())


def test_the_list_of_packages_is_valid_spdx(find, spdx):
    packages = find_packages()
    if packages is None:
        pytest.skip("spdx-tools is not installed: run tests/integration/install-python")
    script = ("import sys; from spdx_tools.spdx.parser.parse_anything import parse_file;"
              "from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document as validate;"
              "document = parse_file(sys.argv[1]); print(len(document.packages), *validate(document))")
    said = run("/usr/bin/python3", "-c", script, find("*.spdx.json"), env={**os.environ, "PYTHONPATH": str(packages)})
    assert said.strip() == str(len(spdx["packages"])) and len(spdx["packages"]) > 20


def test_the_list_names_what_the_image_has(spdx):
    packages = {package["name"]: package for package in spdx["packages"]}
    assert {"libc6", "libssl3", "libcurl4", "ca-certificates", "tzdata", "alertscaler"} <= packages.keys()
    assert packages["alertscaler"]["versionInfo"] == VERSION
    locators = [ref["referenceLocator"] for p in spdx["packages"] for ref in p.get("externalRefs", [])]
    assert any(re.fullmatch(r"pkg:deb/debian/libssl3@3\.\S+\?arch=\w+", locator) for locator in locators)
    contained = {r["relatedSpdxElement"] for r in spdx["relationships"] if r["relationshipType"] == "CONTAINS"}
    assert contained == {p["SPDXID"] for p in spdx["packages"]} - {"SPDXRef-Image"}
