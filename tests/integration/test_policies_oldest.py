"""The oldest Kubernetes that takes the definition of policies: 1.25. Its API server accepts the definition with the rules in CEL, and a
policy works there. kubectl is the newest; there is no controller manager."""
import itertools
import subprocess

import pytest

from harness import control_plane as kubernetes, peers
from harness.wait import eventually
from test_policies import (  # noqa: F401
    apply, definition, test_a_policy_is_kept_as_it_was_written, test_the_api_server_refuses_a_wrong_policy, test_the_definition_is_structural)
from test_policy_daemon import policy, spaces  # noqa: F401
from test_policy_status import wait_condition

PEER = "kubernetes-1.25"
folder, newest = peers.find(PEER), peers.find("kubernetes")
pytestmark = [pytest.mark.kubernetes, pytest.mark.deep,
              pytest.mark.skipif(folder is None, reason=peers.how_to_build(PEER)),
              pytest.mark.skipif(newest is None, reason=peers.how_to_build("kubernetes"))]
_names = itertools.count(1)


class OldPlane(kubernetes.ControlPlane):
    def start(self):
        self.start_etcd()
        self.start_apiserver()
        return self

    def ensure_running(self):
        """No test stops it."""


@pytest.fixture(scope="module")
def old_plane(tmp_path_factory):
    directory = tmp_path_factory.mktemp("kubernetes-1.25")
    programs = directory / "bin"
    programs.mkdir()
    (programs / "kube-apiserver").symlink_to(folder / "kube-apiserver")
    (programs / "kubectl").symlink_to(newest / "kubectl")
    plane = OldPlane(directory, programs)
    try:
        yield plane.start()
    finally:
        plane.stop()


@pytest.fixture
def control_plane(old_plane):
    """In place of the newest Kubernetes, also for the fixtures that are imported."""
    return old_plane


@pytest.fixture
def namespace(control_plane):
    name = f"old-{next(_names)}"
    control_plane.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


def test_it_is_the_oldest(control_plane):
    words = subprocess.run([control_plane.programs / "kube-apiserver", "--version"], capture_output=True, text=True, check=True).stdout
    assert words.startswith("Kubernetes v1.25.")
    assert "autoscaling/v2beta2" in control_plane.kubectl("api-versions").stdout.split(), "1.26 does not have it any more"


def test_a_policy_works(spaces):  # noqa: F811
    daemon = spaces.daemon()
    spaces.apply(policy(spaces.namespace))
    wait_condition(spaces, "Ready", "True", "Ready")
    daemon.notify(spaces.busy())
    eventually(lambda: spaces.sizes()["web"] == 4, what="the alert scales")
    eventually(lambda: spaces.get()["status"].get("desired") == 4, what="the status is written")
    broken = policy(spaces.namespace)
    broken["spec"]["target"]["min"] = 20
    spaces.apply(broken)
    wait_condition(spaces, "Stalled", "True", "Invalid")
