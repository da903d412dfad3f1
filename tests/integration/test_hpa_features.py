"""The table in docs/from-hpa.md of HPA's features: gate, stage and default are those of the real controller manager."""
import pathlib
import re
import subprocess

import pytest

from harness import control_plane as kubernetes, peers

PAGE = pathlib.Path(__file__).parents[2] / "docs/from-hpa.md"
HEADING = "### Features of Kubernetes 1.37\n"
MINOR = 37
COUNT = 11


def read_table():
    """[(feature, gate, stage, default)]"""
    section = PAGE.read_text(encoding="utf-8").split(HEADING)[1].split("\n#")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")]
    return [tuple(row[:4]) for row in rows[2:]]


ROWS = read_table()
assert len(ROWS) == COUNT, "the table is read wrongly"


@pytest.fixture(scope="module")
def gates():
    """{gate: (stage, default)} of those that are not stable; others are not printed."""
    if reason := kubernetes.missing():
        pytest.skip(reason)
    if kubernetes.read_minor() != MINOR:
        pytest.skip(f"this is Kubernetes 1.{kubernetes.read_minor()}, and the table is that of 1.{MINOR}")
    said = subprocess.run([peers.find(kubernetes.PEER) / "kube-controller-manager", "--help"], capture_output=True, text=True,
                          check=True, timeout=60).stdout
    found = re.findall(r"kube:(\w+)=true\|false \((ALPHA|BETA) - default=(true|false)\)", said)
    assert len(found) > 50
    return {gate: (stage.lower(), {"true": "on", "false": "off"}[default]) for gate, stage, default in found}


def refuse(gate):
    """Why the controller manager does not start with the gate switched off."""
    command = [peers.find(kubernetes.PEER) / "kube-controller-manager", f"--feature-gates={gate}=false"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stderr


@pytest.mark.parametrize("row", ROWS, ids=[re.sub(r"\W+", "-", row[1]).strip("-") for row in ROWS])
def test_row_is_true(gates, row):
    feature, gate, stage, default = row
    (name,) = re.findall(r"`(\w+)`", gate)
    if stage == "stable":
        assert default == "on", feature
        assert ("unrecognized feature gate" if "removed" in gate else "locked to true") in refuse(name), feature
    elif stage == "not in 1.37":
        assert default == "", feature
        assert "unrecognized feature gate" in refuse(name), feature
    else:
        assert gates.get(name) == (stage, default), feature


def test_no_gate_of_hpa_is_left_out(gates):
    named = set(re.findall(r"`(\w+)`", " ".join(row[1] for row in ROWS)))
    assert {gate for gate in gates if "HPA" in gate} - named == set()
