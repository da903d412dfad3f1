"""What is shipped under deploy/: the manifests with their rights, the configuration in them, the image."""
import re
import subprocess

import pytest

from harness.daemon import ROOT, find_binary
from harness.deploy import MANIFESTS, install


@pytest.fixture
def plane(control_plane):
    install(control_plane, "namespace.yaml", "serviceaccount.yaml", "role.yaml")
    return control_plane


def test_the_shipped_manifests_are_accepted(plane):
    plane.kubectl("apply", "-k", str(MANIFESTS))
    deployment = plane.admin.get("/apis/apps/v1/namespaces/alertscaler/deployments/alertscaler")
    assert deployment["spec"]["template"]["spec"]["securityContext"]["runAsNonRoot"] is True
    plane.admin.delete("/apis/apps/v1/namespaces/alertscaler/deployments/alertscaler")


def test_the_shipped_configuration_is_valid(tmp_path):
    text = (MANIFESTS / "config/alertscaler.yaml").read_text()
    assert "/etc/alertscaler-rules/" in text
    config = tmp_path / "alertscaler.yaml"
    config.write_text(text.replace("/etc/alertscaler-rules/", f"{MANIFESTS}/config/r"))     # rules.yaml only
    done = subprocess.run([find_binary(), "check", config], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert "2 rules: ok" in done.stdout


@pytest.mark.parametrize("method, path", [
    ("GET", "/api/v1/namespaces/default/secrets"),
    ("GET", "/api/v1/namespaces/default/pods/web"),
    ("GET", "/api/v1/namespaces/default/pods?watch=1"),
    ("DELETE", "/api/v1/namespaces/default/pods/web"),
    ("GET", "/apis/apps/v1/namespaces/default/deployments/web"),
    ("GET", "/apis/apps/v1/namespaces/default/deployments"),
    ("DELETE", "/apis/apps/v1/namespaces/default/deployments/web"),
    ("GET", "/api/v1/namespaces/default/events"),
])
def test_the_shipped_role_allows_nothing_else(plane, method, path):
    token = plane.account_token("alertscaler", "alertscaler")
    assert plane.client(token).request(method, path).status == 403


def test_the_image_has_the_libraries_that_are_needed():
    """Each of the packages that a library comes from is named in the Dockerfile."""
    needed = subprocess.run(["readelf", "-d", find_binary()], capture_output=True, text=True, check=True).stdout
    libraries = [n for n in re.findall(r"NEEDED.*\[(.*?)]", needed) if not re.match(r"lib([ac]|ub)san|libc\.|libm\.", n)]
    assert len(libraries) >= 6
    runtime = (ROOT / "deploy/Dockerfile").read_text().split("FROM debian:12-slim")[1]
    for library in libraries:
        owners = subprocess.run(["dpkg", "-S", f"*/{library}"], capture_output=True, text=True, check=True).stdout
        packages = {line.split(":")[0] for line in owners.splitlines()}
        assert packages & set(runtime.split()), f"{library} comes from {packages}"
