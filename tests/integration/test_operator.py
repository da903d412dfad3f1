"""The objects of deploy/kubernetes/prometheus-operator: accepted by the real API server with the operator's own custom
resources, and what the operator's own code makes of the AlertmanagerConfig is what `check` says of it, and works."""
import shutil
import subprocess

import pytest
import yaml

from harness import peers
from harness.daemon import ROOT, find_binary
from harness.wait import eventually

FOLDER = ROOT / "deploy/kubernetes/prometheus-operator"
CONFIG = FOLDER / "alertmanagerconfig.yaml"
RECEIVER = "alertscaler/alertscaler/alertscaler"
BASE = {"route": {"receiver": "people"}, "receivers": [{"name": "people"}]}

operator = peers.find("amconfig")
pytestmark = pytest.mark.skipif(operator is None, reason=peers.how_to_build("amconfig"))


@pytest.fixture
def plane(control_plane):
    files = [argument for file in sorted(operator.glob("monitoring.coreos.com_*.yaml")) for argument in ("-f", str(file))]
    control_plane.kubectl("apply", "--server-side", *files)
    for kind in ("servicemonitors", "prometheusrules", "alertmanagerconfigs"):
        crd = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{kind}.monitoring.coreos.com"
        control_plane.admin.wait(crd, lambda d: any(c["type"] == "Established" and c["status"] == "True"
                                                    for c in d.get("status", {}).get("conditions", [])), what=f"{kind} are served")
    control_plane.kubectl("apply", "-f", str(FOLDER.parent / "namespace.yaml"))
    yield control_plane
    control_plane.kubectl("delete", "--wait=false", *files)
    for file in operator.glob("monitoring.coreos.com_*.yaml"):      # another test would find their kinds for a moment
        name = f"{file.stem.partition('_')[2]}.monitoring.coreos.com"
        control_plane.admin.wait_gone(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")


def apply(plane, *source, **options):
    return plane.kubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", *source, **options)


@pytest.mark.since(25, "the API server checks rules of CustomResourceDefinitions")
@pytest.mark.kubernetes
def test_the_objects_are_accepted_and_wrong_ones_are_not(plane):
    done = eventually(lambda: apply(plane, "-k", str(FOLDER)), 60, what="the API server knows the new kinds")
    kinds = sorted(line.split()[0].split("/")[0].split(".")[0] for line in done.stdout.splitlines())
    assert kinds == ["alertmanagerconfig", "configmap", "prometheusrule", "prometheusrule", "servicemonitor"]
    text = CONFIG.read_text()
    for right, wrong in (("sendResolved: true", "sendResolved: maybe"), ("groupWait", "group_wait"), ('matchType: "="', 'matchType: "~"')):
        assert right in text
        done = apply(plane, "-f", "-", stdin=text.replace(right, wrong), check=False)
        assert done.returncode != 0 and "AlertmanagerConfig" in done.stdout + done.stderr, done




def make_config(folder, *strategy):
    """What the operator gives Alertmanager."""
    (folder / "base.yml").write_text(yaml.safe_dump(BASE))
    made = subprocess.run([operator / "amconfig", folder / "base.yml", CONFIG, *strategy], capture_output=True, text=True, check=True)
    (folder / "alertmanager.yml").write_text(made.stdout)
    return yaml.safe_load(made.stdout)


def route(folder, **labels):
    """The receivers that the real Alertmanager's tool finds for an alert."""
    done = subprocess.run(["amtool", "config", "routes", "test", f"--config.file={folder / 'alertmanager.yml'}",
                           *(f"{name}={value}" for name, value in labels.items())], capture_output=True, text=True, check=True)
    return done.stdout.strip().split(",")


def watchdog():
    return yaml.safe_load((FOLDER / "watchdog.yaml").read_text())["spec"]["groups"][0]["rules"][0]


@pytest.mark.skipif(not shutil.which("amtool"), reason="needs amtool")
def test_what_the_operator_makes_brings_the_watchdog_and_tells_people(tmp_path):
    made = make_config(tmp_path)
    assert RECEIVER in [receiver["name"] for receiver in made["receivers"]]
    assert made["route"]["routes"][0]["continue"] is True
    assert 'namespace="alertscaler"' in made["route"]["routes"][0]["matchers"]
    alert = {"alertname": watchdog()["alert"], **watchdog()["labels"]}
    assert RECEIVER in route(tmp_path, **alert)
    alert.pop("namespace")
    assert route(tmp_path, **alert) == ["people"], "a Watchdog without the label is dropped"
    make_config(tmp_path, "None")
    assert RECEIVER in route(tmp_path, **alert)


CASES = {   # labels of the rule's matchers: whether its alerts come
    "ours": {"scale": "true", "namespace": "alertscaler"},
    "elsewhere": {"scale": "true", "namespace": "shop"},
    "unlabelled": {"scale": "false", "namespace": "alertscaler"},
}


@pytest.mark.skipif(not shutil.which("amtool"), reason="needs amtool")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("receiver", [RECEIVER, "alertscaler"])
def test_check_says_what_the_operator_does(tmp_path, case, receiver):
    """A rule gets alerts exactly if `check` has no warning about it, read from the object and from what the operator makes."""
    make_config(tmp_path)
    labels = {"alertname": "Busy", **CASES[case]}
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({
        "targets": {"web": {"kubernetes": {"kind": "Deployment", "namespace": "shop", "name": "web"}, "max": 5}},
        "rules": [{"name": "busy", "match": [f'{name}="{value}"' for name, value in labels.items()], "receivers": [receiver],
                   "target": "web", "scale_up": {"by": 1}}]}))
    comes = RECEIVER in route(tmp_path, **labels) and receiver == RECEIVER
    for file in (CONFIG, tmp_path / "alertmanager.yml"):
        done = subprocess.run([find_binary(), "check", "rules.yaml", "--alertmanager", file], cwd=tmp_path, capture_output=True,
                              text=True, check=True)
        assert ("rules.yaml:" in done.stderr) == (not comes), done.stderr
