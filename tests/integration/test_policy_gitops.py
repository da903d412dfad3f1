"""What GitOps tools make of scaling policies: kstatus (Flux, kubectl, Helm), and Argo CD with the script of docs/policies.md, in their
own modules. The objects are those of a real API server and a real daemon."""
import json
import re
import subprocess

import pytest
import yaml

from harness import peers
from harness.daemon import ROOT
from harness.wait import eventually
from test_policies import definition  # noqa: F401
from test_policy_daemon import policy, spaces  # noqa: F401
from test_policy_status import wait_condition

folder = peers.find("policyhealth")
pytestmark = [pytest.mark.kubernetes, pytest.mark.since(25, "the API server checks rules of CustomResourceDefinitions"),
              pytest.mark.skipif(folder is None, reason=peers.how_to_build("policyhealth"))]
KEY = "resource.customizations.health.alertscaler.io_ScalingPolicy"


@pytest.fixture
def health(spaces, tmp_path):  # noqa: F811
    """health(): what both make of the policy `web` as it is now."""
    blocks = re.findall(r"^```yaml\n(.*?)^```$", (ROOT / "docs/policies.md").read_text(encoding="utf-8"), re.M | re.S)
    scripts = [yaml.safe_load(block)["data"][KEY] for block in blocks if KEY in block]
    assert len(scripts) == 1
    script = tmp_path / "health.lua"
    script.write_text(scripts[0])

    def compute(name="web"):
        done = subprocess.run([folder / "policyhealth", script], input=json.dumps(spaces.get(name)), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    return compute


def both(found):
    return found["kstatus"], found["argo"]


WAITS, WORKS, FAILS = ("InProgress", "Progressing"), ("Current", "Healthy"), ("Failed", "Degraded")


def test_a_policy_that_was_not_seen_yet_is_in_progress(spaces, health):  # noqa: F811
    """Without a daemon: the definition's default is an observedGeneration of -1."""
    spaces.apply(policy(spaces.namespace))
    assert spaces.get()["status"] == {"observedGeneration": -1}
    assert both(health()) == WAITS


def test_the_health_of_a_policy(spaces, health):  # noqa: F811
    daemon = spaces.daemon()
    spaces.apply(policy(spaces.namespace))
    wait_condition(spaces, "Ready", "True", "Ready")
    assert both(health()) == WORKS
    broken = policy(spaces.namespace)
    broken["spec"]["target"]["min"] = 20
    spaces.apply(broken)
    ready = wait_condition(spaces, "Ready", "False", "Invalid")
    found = health()
    assert both(found) == FAILS
    assert found["argo_message"] == ready["message"] and ready["message"] in found["kstatus_message"]
    daemon.stop()
    spaces.apply(policy(spaces.namespace))
    assert both(health()) == WAITS, "the last generation was not seen"
    daemon.start()
    eventually(lambda: both(health()) == WORKS)


@pytest.mark.parametrize("change", ["paused", "no size", "shadow"])
def test_what_is_no_failure_of_the_policy(spaces, health, change):  # noqa: F811
    """A pause, a target that does not exist yet, and a policy in shadow mode do not stop a deployment."""
    spaces.daemon()
    item = policy(spaces.namespace)
    if change == "paused":
        item["metadata"]["annotations"] = {"alertscaler.io/paused": "release"}
    elif change == "no size":
        item["spec"]["target"]["kubernetes"]["name"] = "later"
    else:
        item["spec"]["mode"] = "Shadow"
    spaces.apply(item)
    eventually(lambda: both(health()) != WAITS, what="the policy was seen")
    assert both(health()) == WORKS
