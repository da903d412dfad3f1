"""An alert scales a scale set (uniform and flexible) and an agent pool of AKS up and down through the built binary."""
import json

import pytest

from harness.azure import ASSERTION, CLIENT, SECRET, SUBSCRIPTION, TENANT, FakeAzure, Fault
from harness.nodes import is_in_service
from harness.notification import alert, notification
from harness.wait import eventually, steadily

KINDS = ["uniform", "flexible", "pool"]
CHANGE = "^(PATCH|PUT) "


@pytest.fixture
def azure(started):
    return started(FakeAzure())


@pytest.fixture
def add(azure):
    """add(kind, size) -> a group, and where it is found."""
    def make(kind, size=2, **options):
        if kind == "pool":
            return azure.add_agent_pool("prod", "web", size, **options), {"cluster": "prod"}
        return azure.add_scale_set("web", size, flexible=kind == "flexible", **options), {}

    return make


@pytest.fixture
def make(azure, make_daemon):
    def start(where, env=None, name="web", provider=None, nodes=None, cooldown="1s", max_steps=1, **config):
        node_group = {"provider": "azure", "resource_group": "rg-1", "name": name, **where}
        rules = {
            "targets": {"web": {"node_group": node_group, "max": 20, "nodes": {"cluster": "none", **(nodes or {})},
                                "cooldown": {"up": cooldown, "down": "1s"}}},
            "rules": [
                {"name": "busy", "match": ['alertname="Busy"'], "target": "web", "scale_up": {"by": 2}, "max_steps": max_steps},
                {"name": "idle", "match": ['alertname="Idle"'], "target": "web", "scale_down": {"by": 1}, "max_steps": 1},
            ],
        }
        options = {"type": "azure", "subscription": SUBSCRIPTION, "endpoint": azure.url, "authority": azure.url,
                   "metadata_endpoint": azure.url, "timeout": "3s", **(provider or {})}
        variables = {"AZURE_TENANT_ID": TENANT, "AZURE_CLIENT_ID": CLIENT, "AZURE_CLIENT_SECRET": SECRET}
        return make_daemon(rules, {"providers": {"azure": options}, **config}, env=variables if env is None else env)

    return start


def fire(daemon, name, *status):
    return daemon.notify(notification(alert({"alertname": name}, *status)))


def wait_words(daemon, words):
    return eventually(lambda: [r for r in daemon.records() if words in json.dumps(r)], 60, what=words)[0]


@pytest.mark.parametrize("kind", KINDS)
def test_up_and_down(make, add, azure, kind):
    group, where = add(kind)
    before = [m.id for m in group.present()]
    daemon = make(where)
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it has grown")
    assert [m.id for m in group.present()][:2] == before
    wait_words(daemon, "req-")          # Azure's own name of the request
    fire(daemon, "Busy", "resolved")
    fire(daemon, "Idle")
    eventually(lambda: group.size == 3, 60, what="one is gone")
    assert len(group.present()) == 3
    assert len(azure.requests(CHANGE)) == 1
    ((line, body, _),) = azure.requests("^POST ")
    assert line.startswith(f"POST {group.path}/delete") and [len(names) for names in body.values()] == [1]
    conditions = [condition for _, _, condition in azure.requests(CHANGE)]
    assert conditions == (["etag-2"] if kind == "pool" else ['"2"'])


@pytest.mark.parametrize("kind", KINDS)
def test_a_removal_that_fails_later_is_told_and_the_node_takes_pods_again(make, add, make_nodes, control_plane, kind):
    """It is accepted at first: what comes of it is asked after."""
    group, where = add(kind)
    nodes = {m.id.replace("_", "-"): f"azure://{m.resource}" for m in group.present()}
    group.stays = ("InternalExecutionError", "An internal execution error occurred. Please retry later.")
    daemon = make(where, nodes={"cluster": "default"}, clusters=make_nodes(nodes))
    fire(daemon, "Idle")
    kept = daemon.wait_record("nodes", 90, event="kept")
    assert ": ".join(group.stays) in kept["message"] and group.size == 2
    eventually(lambda: all(is_in_service(control_plane, name) for name in nodes), 60, what="the nodes take pods again")


@pytest.mark.parametrize("kind", KINDS)
def test_dry_run_asks_and_changes_nothing(make, add, azure, kind):
    group, where = add(kind)
    daemon = make(where, dry_run=True)
    fire(daemon, "Busy")
    eventually(lambda: azure.requests("^GET ") and daemon.records("decision"), 60, what="a record")
    assert group.size == 2 and not azure.requests("^(?!GET)")


# ---- who it is ----


def test_workload_identity(make, add, tmp_path):
    group, where = add("uniform")
    token = tmp_path / "token"
    token.write_text(ASSERTION + "\n")
    daemon = make(where, env={"AZURE_TENANT_ID": TENANT, "AZURE_CLIENT_ID": CLIENT, "AZURE_FEDERATED_TOKEN_FILE": str(token)})
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it has grown")


def test_secret_of_a_file(make, add, tmp_path):
    group, where = add("uniform")
    secret = tmp_path / "secrets" / "azure"
    secret.parent.mkdir()
    secret.write_text(SECRET + "\n")
    daemon = make(where, env={}, provider={"tenant_id": TENANT, "client_id": CLIENT, "client_secret_file": str(secret)})
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it has grown")


def test_managed_identity(make, add):
    group, where = add("uniform")
    daemon = make(where, env={})
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it has grown")


def test_token_that_is_not_accepted_any_more(make, add, azure):
    group, where = add("uniform")
    daemon = make(where)
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it has grown")
    eventually(lambda: daemon.records("action", outcome="applied"), 60, what="it is known")
    azure.expire_tokens()
    fire(daemon, "Busy", "resolved")
    fire(daemon, "Idle")
    eventually(lambda: group.size == 3, 60, what="one is gone")


@pytest.mark.parametrize("env, words", [
    ({"AZURE_TENANT_ID": TENANT, "AZURE_CLIENT_ID": CLIENT, "AZURE_CLIENT_SECRET": "x"}, "AADSTS7000215"),
    ({"AZURE_CLIENT_SECRET": "x"}, "`tenant_id` (or AZURE_TENANT_ID) is not"),
    ({"AZURE_CLIENT_ID": "other"}, "Identity not found"),
])
def test_who_is_not_known_is_told_so(make, add, env, words):
    group, where = add("uniform")
    daemon = make(where, env=env)
    fire(daemon, "Busy")
    wait_words(daemon, words)
    assert group.size == 2


# ---- what goes wrong ----


@pytest.mark.parametrize("kind", ["uniform", "pool"])
@pytest.mark.parametrize("fault", [
    Fault(CHANGE, status=429, code="TooManyRequests", headers={"Retry-After": "1"}),
    Fault(CHANGE, status=409, code="AnotherOperationInProgress"),
    Fault(CHANGE, status=409, code="OperationPreempted"),
    Fault(CHANGE, status=412, code="PreconditionFailed"),
    Fault(CHANGE, status=401, code="ExpiredAuthenticationToken"),
    Fault(CHANGE, status=500, code="InternalServerError"),
    Fault(CHANGE, status=503, code="ServerTimeout", apply=True),
    Fault(CHANGE, hang_up=True, apply=True),
    Fault("^GET ", status=200, body=b'{"value":[{"na'),
    Fault("^GET ", status=200, body=b"<html/>"),
    Fault("^GET .*/operations/", status=500, code="InternalServerError"),
    Fault("^GET .*/operations/", status=404, code="NotFound"),
], ids=lambda f: f"{f.match[1:6]}-{f.status or 'hangup'}-{f.code}{'-applied' if f.apply else ''}")
def test_what_goes_wrong_once_is_done_in_the_end_and_once(make, add, azure, kind, fault):
    group, where = add(kind)
    azure.inject(fault)
    daemon = make(where)
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 120, what="it has grown")
    eventually(lambda: daemon.records("action", outcome="applied"), 120, what="it is known")
    assert len(group.present()) == 4


@pytest.mark.parametrize("code, status, message", [
    ("AuthorizationFailed", 403, "The client does not have authorization to perform action"),
    ("ScopeLocked", 409, "the scope is locked"),
    ("InvalidParameter", 400, "The value of parameter sku is invalid."),
])
def test_what_is_refused_is_told(make, add, azure, code, status, message):
    group, where = add("uniform")
    azure.inject(Fault(CHANGE, status=status, code=code, message=message), times=20)
    daemon = make(where)
    fire(daemon, "Busy")
    wait_words(daemon, f"{code}: {message}")
    assert group.size == 2


@pytest.mark.parametrize("kind", ["uniform", "pool"])
@pytest.mark.parametrize("cooldown, max_steps", [("1s", 1), ("3m", 10)], ids=["once", "locked"])
@pytest.mark.parametrize("end", [("VMExtensionProvisioningError", "VM has reported a failure."),
                                 ("OperationPreempted", "The operation was preempted by a later one.")], ids=lambda e: e[0])
def test_what_was_accepted_is_one_step_whatever_its_operation_ends_with(make, add, azure, kind, cooldown, max_steps, end):
    """The machines come, and the operation fails all the same."""
    group, where = add(kind)
    group.ends = end
    daemon = make(where, cooldown=cooldown, max_steps=max_steps)
    fire(daemon, "Busy")
    record = wait_words(daemon, ": ".join(end))
    assert (record["outcome"], record["from"], record["to"]) == ("applied", 2, 4)
    assert record["message"].startswith("accepted, then failed: ")
    steadily(lambda: group.size == 4 and len(azure.requests(CHANGE)) == 1, 8, what="no further step")


@pytest.mark.parametrize("kind", KINDS)
def test_capacity_that_does_not_come_is_told(make, add, azure, kind):
    """The change is accepted, and its operation fails: nothing more is asked for."""
    group, where = add(kind, room=3)
    daemon = make(where)
    fire(daemon, "Busy")
    wait_words(daemon, "AllocationFailed: Allocation failed: not enough capacity in this region.")
    steadily(lambda: len(azure.requests(CHANGE)) == 1 and group.size == 4, 3)


def test_quota_is_told(make, add):
    group, where = add("uniform", quota=3)
    daemon = make(where)
    fire(daemon, "Busy")
    wait_words(daemon, "exceeding approved Total Regional Cores Quota")
    assert group.size == 2


def test_other_controllers_are_respected(make, add, azure):
    group, where = add("uniform")
    azure.autoscale.append({"name": "night", "properties": {"enabled": True, "targetResourceUri": group.path.upper()}})
    daemon = make(where)
    fire(daemon, "Busy")
    wait_words(daemon, "Azure Monitor's autoscale setting night")
    assert group.size == 2 and not azure.requests("^(?!GET)")


def test_the_autoscaler_of_aks_is_respected(make, add, azure):
    group, where = add("pool", enableAutoScaling=True)
    daemon = make(where)
    fire(daemon, "Busy")
    wait_words(daemon, "the cluster autoscaler of AKS (enableAutoScaling)")
    assert group.size == 2 and not azure.requests("^(?!GET)")


@pytest.mark.parametrize("kind", ["uniform", "pool"])
def test_a_group_that_is_not_there(make, add, kind):
    _, where = add(kind)
    daemon = make(where, name="other")
    fire(daemon, "Busy")
    wait_words(daemon, "ResourceNotFound")


def test_the_token_stays_with_resource_manager(make, add, azure, started):
    """The operation is said to be at another host: it is asked nothing, and the change is known all the same."""
    elsewhere = started(FakeAzure())
    azure.elsewhere = elsewhere.url
    group, where = add("uniform")
    daemon = make(where)
    fire(daemon, "Busy")
    eventually(lambda: daemon.records("action", outcome="applied"), 60, what="it is known")
    assert group.size == 4 and not elsewhere.asked
