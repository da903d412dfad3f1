"""An alert scales a node group of the real Magnum through the built binary, with tokens of the real Keystone."""
import json

import pytest

from harness import openstack
from harness.deploy import install
from harness.notification import alert, notification
from harness.openstack import PASSWORD, Fault, OpenStack, error
from harness.wait import eventually, steadily

RESIZE = "^POST .*/actions/resize$"
LABEL = "magnum.openstack.org/nodegroup"


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    reason = openstack.missing()
    if reason:
        pytest.skip(reason)
    stack = OpenStack(tmp_path_factory.mktemp("openstack"))
    try:
        yield stack.start()
    finally:
        stack.stop()


@pytest.fixture
def stack(servers):
    servers.reset()
    return servers


def environment(stack, **more):
    """As a project's RC file has it."""
    return {"OS_AUTH_URL": f"{stack.keystone}/v3", "OS_USERNAME": "scaler", "OS_PASSWORD": PASSWORD,
            "OS_USER_DOMAIN_NAME": "Default", "OS_PROJECT_NAME": "prod", "OS_PROJECT_DOMAIN_ID": "default",
            "OS_REGION_NAME": "RegionOne", "OS_INTERFACE": "public", "OS_IDENTITY_API_VERSION": "3", **more}


@pytest.fixture
def make(stack, make_daemon):
    def start(env=None, name="default-worker", provider=None, nodes="none", **config):
        rules = {
            "targets": {"web": {"node_group": {"provider": "cloud", "cluster": "prod", "name": name}, "max": 20,
                                "nodes": {"cluster": nodes}, "cooldown": {"up": "1s", "down": "1s"}}},
            "rules": [
                {"name": "busy", "match": ['alertname="Busy"'], "target": "web", "scale_up": {"by": 2}, "max_steps": 1},
                {"name": "idle", "match": ['alertname="Idle"'], "target": "web", "scale_down": {"by": 1}, "max_steps": 1},
            ],
        }
        options = {"type": "magnum", "timeout": "5s", **(provider or {})}
        return make_daemon(rules, {"providers": {"cloud": options}, **config},
                           env=environment(stack) if env is None else env)

    return start


def fire(daemon, name, *status):
    return daemon.notify(notification(alert({"alertname": name}, *status)))


def wait_words(daemon, words):
    return eventually(lambda: [r for r in daemon.records() if words in json.dumps(r)], 60, what=words)[0]


def wait_size(stack, size):
    eventually(lambda: stack.size == size and stack.status == "UPDATE_COMPLETE", 120, what=f"its size is {size}")


# ---- up and down ----


def test_up(make, stack):
    daemon = make()
    fire(daemon, "Busy")
    wait_size(stack, 4)
    record = eventually(lambda: daemon.records("action", outcome="applied"), 60, what="it is known")[0]
    assert "req-" in json.dumps(record)             # OpenStack's own name of the request
    assert stack.resizes() == [{"nodegroup": "default-worker", "node_count": 4, "nodes_to_remove": []}]
    assert {version for _, version, _ in stack.front.requests()} == {"container-infra 1.10"}


@pytest.fixture
def nodes(control_plane):
    """{node: server} of the cluster that the group is a part of; and one that is of another group."""
    install(control_plane, "namespace.yaml", "serviceaccount.yaml", "role-nodes.yaml")
    made = {f"magnum-{i}": f"6b7f0000-0000-4000-8000-00000000000{i}" for i in range(4)}
    for number, (name, server) in enumerate(made.items()):
        group = "default-worker" if number < 3 else "gpu"
        control_plane.admin.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {LABEL: group}},
                                    "spec": {"providerID": f"openstack:///{server}"}})
        control_plane.admin.patch(f"/api/v1/nodes/{name}/status", {"status": {
            "conditions": [{"type": "Ready", "status": "True"}]}})
    yield made
    for name in made:
        control_plane.admin.request("DELETE", f"/api/v1/nodes/{name}")


def test_down_by_the_name_of_a_server(make, stack, nodes, control_plane, tmp_path):
    """Which servers there are is told by the nodes; one is emptied, and this very one is named to Magnum."""
    token = tmp_path / "token"
    token.write_text(control_plane.account_token("alertscaler", "alertscaler"))
    kubeconfig = control_plane.write_kubeconfig("alertscaler", tokenFile=str(token))
    stack.set_group(node_count=3, node_addresses='["10.0.0.4", "10.0.0.5", "10.0.0.6"]')
    daemon = make(nodes="default", clusters={"default": {"kubeconfig": str(kubeconfig)}})
    fire(daemon, "Idle")
    wait_size(stack, 2)
    (resize,) = stack.resizes()
    assert resize["node_count"] == 2 and len(resize["nodes_to_remove"]) == 1
    names = {server: name for name, server in nodes.items()}
    left = names[resize["nodes_to_remove"][0]]
    assert left in ("magnum-0", "magnum-1", "magnum-2")
    eventually(lambda: daemon.records("action", outcome="applied"), 60, what="it is known")
    cordoned = [name for name in nodes if control_plane.admin.get(f"/api/v1/nodes/{name}")["spec"].get("unschedulable")]
    assert cordoned == [left]


def test_removal_that_fails_is_told_and_its_node_serves_again(make, stack, nodes, control_plane, tmp_path):
    token = tmp_path / "token"
    token.write_text(control_plane.account_token("alertscaler", "alertscaler"))
    kubeconfig = control_plane.write_kubeconfig("alertscaler", tokenFile=str(token))
    stack.set_group(node_count=3, node_addresses='["10.0.0.4", "10.0.0.5", "10.0.0.6"]')
    stack.plan(seconds=1, failure="Resource DELETE failed: Conflict: server is locked")
    daemon = make(nodes="default", clusters={"default": {"kubeconfig": str(kubeconfig)}})
    fire(daemon, "Idle")
    wait_words(daemon, "UPDATE_FAILED: Resource DELETE failed: Conflict: server is locked")

    def cordoned():
        return [n for n in nodes if control_plane.admin.get(f"/api/v1/nodes/{n}")["spec"].get("unschedulable")]

    eventually(lambda: not cordoned(), 60, what="no node is cordoned")
    assert len(stack.resizes()[0]["nodes_to_remove"]) == 1


def test_nodes_that_outlived_their_servers_keep_the_others(make, stack, nodes, control_plane, tmp_path):
    """Three nodes of a group of two: Magnum would take another server for one that is gone."""
    token = tmp_path / "token"
    token.write_text(control_plane.account_token("alertscaler", "alertscaler"))
    kubeconfig = control_plane.write_kubeconfig("alertscaler", tokenFile=str(token))
    daemon = make(nodes="default", clusters={"default": {"kubeconfig": str(kubeconfig)}})
    fire(daemon, "Idle")
    wait_words(daemon, f"3 nodes have the label {LABEL}=default-worker, but the group has 2 instances")
    assert not stack.resizes()


def test_down_without_nodes_is_refused(make, stack):
    daemon = make()
    fire(daemon, "Idle")
    wait_words(daemon, "set `nodes.cluster` to the cluster that the group belongs to")
    assert not stack.resizes() and stack.size == 2


def test_dry_run_asks_and_changes_nothing(make, stack):
    daemon = make(dry_run=True)
    fire(daemon, "Busy")
    eventually(lambda: stack.front.requests("^GET ") and daemon.records("decision"), 60, what="a record")
    assert stack.size == 2 and not stack.front.requests("^(?!GET)")


# ---- who it is ----


def test_application_credential_of_the_environment(make, stack):
    daemon = make(env={"OS_AUTH_TYPE": "v3applicationcredential", "OS_AUTH_URL": stack.keystone, "OS_REGION_NAME": "RegionOne",
                       "OS_APPLICATION_CREDENTIAL_ID": stack.make_application_credential("env"),
                       "OS_APPLICATION_CREDENTIAL_SECRET": PASSWORD})
    fire(daemon, "Busy")
    wait_size(stack, 4)


def test_application_credential_of_a_file(make, stack, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(PASSWORD + "\n")
    stack.make_application_credential("file")
    daemon = make(env={}, provider={
        "auth_url": f"{stack.keystone}/v3/", "region": "RegionOne", "application_credential_name": "file", "username": "scaler",
        "user_domain_name": "Default", "application_credential_secret_file": str(secret)})
    fire(daemon, "Busy")
    wait_size(stack, 4)


def test_trust(make, stack):
    env = environment(stack, OS_USERNAME="reader", OS_TRUST_ID=stack.make_trust())
    daemon = make(env=env)
    fire(daemon, "Busy")
    wait_size(stack, 4)


def test_endpoint_that_is_configured(make, stack):
    daemon = make(env=environment(stack, OS_REGION_NAME=""), provider={"endpoint": f"{stack.front.url}/"})
    fire(daemon, "Busy")
    wait_size(stack, 4)


def test_token_that_is_not_accepted_any_more(make, stack, tmp_path):
    """With the new password Keystone refuses the tokens of the old one; the file is read again."""
    file = tmp_path / "password"
    file.write_text(PASSWORD)
    env = environment(stack)
    del env["OS_PASSWORD"]
    daemon = make(env=env, provider={"password_file": str(file)})
    fire(daemon, "Idle")
    wait_words(daemon, "nodes.cluster")             # it has a token
    stack.set_password("scaler", "other")
    try:
        file.write_text("other")
        fire(daemon, "Busy")
        wait_size(stack, 4)
    finally:
        stack.set_password("scaler", PASSWORD)


@pytest.mark.parametrize("env, words", [
    ({"OS_PASSWORD": "wrong"}, "HTTP 401: The request you have made requires authentication."),
    ({"OS_PASSWORD": ""}, "none are set up in any of the places"),
    ({"OS_USER_DOMAIN_NAME": ""}, "the domain of the user is not known: set `user_domain_name` (or OS_USER_DOMAIN_NAME)"),
    ({"OS_REGION_NAME": "Nowhere"}, "no service container-infra with a public endpoint in region Nowhere"),
    ({"OS_INTERFACE": "internal"}, "no service container-infra with a internal endpoint"),
    ({"OS_CLOUD": "prod"}, "clouds.yaml is not read"),
    ({"OS_AUTH_TYPE": "v3oidcpassword"}, "only v3applicationcredential and v3password are supported"),
])
def test_who_is_not_known_is_told_so(make, stack, env, words):
    daemon = make(env=environment(stack, **env))
    fire(daemon, "Busy")
    wait_words(daemon, words)
    assert stack.size == 2


# ---- what goes wrong ----


@pytest.mark.parametrize("fault", [
    Fault(RESIZE, 429, error(429, "Too many requests"), {"Retry-After": "1"}),
    Fault(RESIZE, 413, error(413, "OverLimit"), {"Retry-After": "1"}),
    Fault(RESIZE, 503),
    Fault(RESIZE, 500, error(500, "(pymysql) lost connection"), apply=True),
    Fault(RESIZE, hang_up=True, apply=True),
    Fault(RESIZE, 409, error(409, "Conflict.")),
    Fault("^GET .*/clusters/prod$", 200, b'{"status": "CREATE_COMP'),
    Fault("^GET .*/nodegroups/", 200, b"<html/>"),
], ids=lambda f: f"{f.match[1:5].strip()}-{f.status or 'hangup'}{'-applied' if f.apply else ''}")
def test_what_goes_wrong_once_is_done_in_the_end_and_once(make, stack, fault):
    stack.front.inject(fault)
    daemon = make()
    fire(daemon, "Busy")
    wait_size(stack, 4)
    eventually(lambda: daemon.records("action", outcome="applied"), 120, what="it is known")
    assert len(stack.resizes()) == 1


def test_an_answer_that_comes_late_does_not_undo_a_change(make, stack):
    """The change was taken; who asks after it too slowly must not make it a second time."""
    stack.plan(seconds=4)
    daemon = make(provider={"timeout": "2s"})
    slow = Fault("^GET .*/nodegroups/", 200, b"{}", seconds=3)
    fire(daemon, "Busy")
    eventually(lambda: stack.resizes(), 60, what="it is asked for")
    stack.front.inject(slow)
    eventually(lambda: daemon.records("action", outcome="applied"), 60, what="it is known")
    assert [one["node_count"] for one in stack.resizes()] == [4]


def test_busy_while_another_group_is_changed(make, stack):
    stack.set_cluster(status="UPDATE_IN_PROGRESS", status_reason="Stack UPDATE started")
    daemon = make()
    fire(daemon, "Busy")
    wait_words(daemon, "the cluster is UPDATE_IN_PROGRESS: Stack UPDATE started")
    assert not stack.resizes()
    stack.set_cluster(status="UPDATE_COMPLETE")
    wait_size(stack, 4)


def test_what_failed_is_told(make, stack):
    reason = "Resource UPDATE failed: ResourceInError: resources[2]: Went to status ERROR due to No valid host was found."
    stack.plan(failure=reason)
    daemon = make()
    fire(daemon, "Busy")
    wait_words(daemon, f"UPDATE_FAILED: {reason}")
    steadily(lambda: len(stack.resizes()) == 1, 3)


def test_quota_is_told(make, stack):
    stack.front.inject(Fault(RESIZE, 403, error(403, "Resource quota exceeded: cores")), times=20)
    daemon = make()
    fire(daemon, "Busy")
    wait_words(daemon, "HTTP 403: Resource quota exceeded: cores")


def test_who_may_not_is_told_so(make, stack):
    daemon = make(env=environment(stack, OS_USERNAME="reader"))
    fire(daemon, "Busy")
    wait_words(daemon, "HTTP 403: Policy doesn't allow cluster:resize to be performed")
    assert stack.size == 2


def test_the_groups_own_bounds_hold(make, stack):
    stack.set_group(max_node_count=2)
    daemon = make()
    fire(daemon, "Busy")
    eventually(lambda: daemon.records("decision"), 60, what="a record")
    steadily(lambda: stack.size == 2 and not stack.front.requests("^POST"), 3)


def test_bounds_that_magnum_knows_better(make, stack):
    """It refuses what was within them a moment before."""
    detail = "Resizing default-worker outside the allowed range: min_node_count = 1, max_node_count = 3"
    stack.front.inject(Fault(RESIZE, 400, error(400, detail)), times=20)
    daemon = make()
    fire(daemon, "Busy")
    wait_words(daemon, detail)


def test_a_cluster_that_failed_is_left_alone(make, stack):
    stack.set_cluster(status="CREATE_FAILED", status_reason="no network")
    daemon = make()
    fire(daemon, "Busy")
    wait_words(daemon, "the cluster is CREATE_FAILED: no network")
    assert not stack.resizes()


@pytest.mark.parametrize("name, words", [
    ("other", "Nodegroup other could not be found."),
    ("default-master", "a group of master nodes"),
])
def test_groups_that_are_none(make, name, words):
    daemon = make(name=name)
    fire(daemon, "Busy")
    wait_words(daemon, words)


def test_the_clusters_own_autoscaler_is_respected(make, stack):
    stack.set_group(labels='{"auto_scaling_enabled": "true"}')
    daemon = make()
    fire(daemon, "Busy")
    wait_words(daemon, "the cluster's own autoscaler (label auto_scaling_enabled)")
    assert stack.size == 2 and not stack.resizes()
