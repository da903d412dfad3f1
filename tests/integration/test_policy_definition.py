"""The CustomResourceDefinition of policies in a cluster that was not upgraded: what the API server drops, and what says so."""
import copy
import json
import subprocess

import pytest

from harness.daemon import find_binary
from harness.deploy import install
from harness.wait import eventually, steadily
from test_policies import CRD, definition  # noqa: F401
from test_policy_daemon import API, RIGHTS, policy, spaces  # noqa: F401

pytestmark = [pytest.mark.kubernetes, pytest.mark.since(25, "the API server checks rules of CustomResourceDefinitions")]
WARNING, FRESH = "scaling policies is older than alertscaler", "scaling policies is up to date"
METRIC = "alertscaler_policy_definition_outdated"


def apply(plane, crd):
    plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=crd)


@pytest.fixture
def old(control_plane, definition):  # noqa: F811
    """Puts an older definition in place: a lower number, and no rules[].maxSteps. The present one comes back at the end."""
    new = json.loads(subprocess.run([find_binary(), "schema", "crd"], capture_output=True, text=True, check=True).stdout)

    def put(schema="0"):
        crd = copy.deepcopy(new)
        if schema is None:
            del crd["metadata"]["annotations"]["alertscaler.io/schema"]
        else:
            crd["metadata"]["annotations"]["alertscaler.io/schema"] = schema
        spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        del spec["properties"]["rules"]["items"]["properties"]["maxSteps"]
        apply(control_plane, crd)
    put.end = lambda: apply(control_plane, new)
    yield put
    put.end()


def is_pruned(spaces):  # noqa: F811
    """What the API server would store of a client that does not ask for validation. A changed definition is in use a moment later."""
    path = f"{API}/namespaces/{spaces.namespace}/scalingpolicies?dryRun=All"
    answer = spaces.plane.admin.request("POST", path, policy(spaces.namespace))
    assert answer.status == 201, answer.text
    return "maxSteps" not in answer.json["spec"]["rules"][0]


@pytest.mark.parametrize("schema", ["0", None])
def test_an_older_definition_is_a_warning_until_it_is_replaced(spaces, old, schema):  # noqa: F811
    install(spaces.plane, "policies/role.yaml", "policies/role-cluster-wide.yaml")
    old(schema)
    eventually(lambda: is_pruned(spaces))
    daemon = spaces.daemon()
    eventually(lambda: daemon.metrics().sum(METRIC) == 1)
    log = daemon.process.log_text()
    assert log.count(WARNING) == 1 and f"schema={schema or 0} " in log and FRESH not in log
    old.end()
    eventually(lambda: daemon.metrics().sum(METRIC) == 0, timeout=60, what="the present definition is seen")
    assert daemon.process.log_text().count(FRESH) == 1
    eventually(lambda: not is_pruned(spaces))


def test_a_definition_that_becomes_older_is_seen_too(spaces, old):  # noqa: F811
    """As after a downgrade of the chart: the API server ends the watch of policies."""
    install(spaces.plane, "policies/role.yaml", "policies/role-cluster-wide.yaml")
    daemon = spaces.daemon()
    eventually(lambda: METRIC in daemon.get("/metrics").text)
    assert daemon.metrics().sum(METRIC) == 0 and WARNING not in daemon.process.log_text()
    old()
    eventually(lambda: is_pruned(spaces))
    eventually(lambda: WARNING in daemon.process.log_text())


def test_without_the_right_one_line_says_so(spaces, old, tmp_path):  # noqa: F811
    old()
    name = spaces.namespace
    spaces.plane.create_account(name, "narrow")
    spaces.plane.grant(name, "narrow", RIGHTS)
    token = tmp_path / "narrow"
    token.write_text(spaces.plane.account_token(name, "narrow"))
    spaces.kubeconfig = spaces.plane.write_kubeconfig("narrow", tokenFile=str(token))
    daemon = spaces.daemon()
    line = "cannot be read, and its version is not compared"
    eventually(lambda: line in daemon.process.log_text())
    steadily(lambda: daemon.process.log_text().count(line) == 1, 3)
    assert "level=info" in next(text for text in daemon.process.log_text().splitlines() if line in text)
    assert WARNING not in daemon.process.log_text() and METRIC not in daemon.get("/metrics").text
