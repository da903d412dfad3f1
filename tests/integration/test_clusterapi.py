"""An alert scales groups of Cluster API up and down through the built binary, against the real API server, with the rights of
the guide; Machines and Nodes are made and deleted by a controller of the tests."""
import contextlib
import json
import pathlib
import re
import time

import pytest
import yaml

from harness.deploy import install
from harness.machines import API, MARK, REPLICAS_MAX, Machines
from harness.notification import alert, notification
from harness.wait import eventually, steadily

GUIDE = pathlib.Path(__file__).parents[2] / "docs/providers/clusterapi.md"
ACCOUNT = "system:serviceaccount:alertscaler:alertscaler"
MIN, MAX = (f"cluster.x-k8s.io/cluster-api-autoscaler-node-group-{which}-size" for which in ("min", "max"))


def documented_rules():
    blocks = re.findall(r"^```yaml\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.M | re.S)
    (role,) = [yaml.safe_load(block) for block in blocks if "kind: Role" in block]
    return role["rules"]


@pytest.fixture
def machines(control_plane, namespace, started):
    install(control_plane, "namespace.yaml", "serviceaccount.yaml", "role-nodes.yaml")
    return started(Machines(control_plane, namespace))


@pytest.fixture
def allow(control_plane, namespace):
    """Binds a role with these rules, those of the guide, to alertscaler's account."""
    def bind(rules):
        metadata = {"name": "alertscaler-machines", "namespace": namespace}
        api = "rbac.authorization.k8s.io/v1"
        control_plane.admin.create({"apiVersion": api, "kind": "Role", "metadata": metadata, "rules": rules})
        control_plane.admin.create({
            "apiVersion": api, "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "alertscaler-machines"},
            "subjects": [{"kind": "ServiceAccount", "namespace": "alertscaler", "name": "alertscaler"}]})
        control_plane.wait_allowed(ACCOUNT, rules, namespace)

    return bind


@pytest.fixture
def make(control_plane, namespace, machines, allow, make_daemon, tmp_path):
    def start(kind="MachineDeployment", name="web", rules=None, target=None, provider=None, rule_file=None, **config):
        allow(documented_rules() if rules is None else rules)
        token = tmp_path / "token"
        token.write_text(control_plane.account_token("alertscaler", "alertscaler"))
        kubeconfig = control_plane.write_kubeconfig("alertscaler", tokenFile=str(token))
        node_group = {"provider": "machines", "namespace": namespace, "name": name, "kind": kind}
        usual = {
            "targets": {"web": {"node_group": node_group, "max": 100, "min": 0, "nodes": {"cluster": "prod"},
                                "cooldown": {"up": "1s", "down": "1s"}, **(target or {})}},
            "rules": [
                {"name": "busy", "match": ['alertname="Busy"'], "target": "web", "scale_up": {"by": 2}, "max_steps": 1},
                {"name": "idle", "match": ['alertname="Idle"'], "target": "web", "scale_down": {"by": 1}, "max_steps": 1},
            ],
        }
        return make_daemon(rule_file or usual, {"clusters": {"management": {"kubeconfig": str(kubeconfig)}, "prod": {"kubeconfig": str(kubeconfig)}},
                                   "providers": {"machines": {"type": "clusterapi", "cluster": "management", **(provider or {})}},
                                   **config})

    return start


def fire(daemon, name, *status):
    return daemon.notify(notification(alert({"alertname": name}, *status)))


@contextlib.contextmanager
def paused(control_plane):
    """Its API server takes connections, and says nothing."""
    control_plane.apiserver.pause()
    try:
        yield
    finally:
        control_plane.apiserver.resume()


def wait_words(daemon, words):
    return eventually(lambda: [r for r in daemon.records() if words in json.dumps(r)], 60, what=words)[0]


@pytest.mark.parametrize("kind", ["MachineDeployment", "MachineSet"])
def test_up_and_down(make, machines, kind):
    path = machines.add(kind, "web", 2)
    before = machines.names()
    time.sleep(1)  # Kubernetes' times are whole seconds, and what is of the same is of the same age
    daemon = make(kind, target={"nodes": {"cluster": "prod", "choose": "newest"}})
    fire(daemon, "Busy")
    eventually(lambda: machines.size(path) == 4, 60, what="it has grown")
    eventually(lambda: daemon.records("action", outcome="applied"), 60, what="it is known")
    eventually(lambda: len(machines.nodes()) == 4, what="all are nodes")
    assert before < machines.names()
    fire(daemon, "Busy", "resolved")
    fire(daemon, "Idle")
    eventually(lambda: machines.size(path) == 3 and len(machines.names()) == 3, 60, what="one is gone")
    assert before < machines.names(), "who was chosen has left, and not whom Cluster API would choose"
    eventually(lambda: len(machines.nodes()) == 3, what="its node is gone")
    assert not machines.marked()


def test_dry_run_needs_to_read_only(make, machines):
    path = machines.add("MachineDeployment", "web", 2)
    reading = [{**rule, "verbs": sorted({"get", "list"} & set(rule["verbs"]))} for rule in documented_rules()]
    daemon = make(rules=[rule for rule in reading if rule["verbs"]], dry_run=True)
    fire(daemon, "Busy")
    eventually(lambda: daemon.records("decision"), 60, what="a record")
    steadily(lambda: machines.size(path) == 2, 2)
    assert not daemon.records("action", outcome="forbidden")


def test_its_own_bounds_hold(make, machines):
    path = machines.add("MachineDeployment", "web", 2, annotations={MIN: "2", MAX: "3"})
    daemon = make()
    fire(daemon, "Busy")
    eventually(lambda: machines.size(path) == 3, 60, what="as far as it goes")
    steadily(lambda: machines.size(path) == 3, 2)


def test_a_pool_grows_and_does_not_shrink(make, machines):
    path = machines.add("MachinePool", "web", 2)
    daemon = make("MachinePool", target={"nodes": {"cluster": "none"}})
    fire(daemon, "Busy")
    eventually(lambda: machines.size(path) == 4, 60, what="it has grown")
    eventually(lambda: daemon.records("action", outcome="applied"), 60, what="it is known")
    fire(daemon, "Busy", "resolved")
    fire(daemon, "Idle")
    wait_words(daemon, "this MachinePool has no Machines")
    assert machines.size(path) == 4


def test_as_a_kubernetes_target(make, machines, namespace):
    """The scale subresource alone: no provider is needed for what Cluster API chooses itself."""
    path = machines.add("MachineDeployment", "web", 2)
    address = {"cluster": "management", "apiVersion": API, "kind": "MachineDeployment", "namespace": namespace, "name": "web"}
    rules = [{"apiGroups": ["cluster.x-k8s.io"], "resources": ["machinedeployments/scale"], "verbs": ["get", "update"]}]
    daemon = make(rules=rules, rule_file={
        "targets": {"web": {"kubernetes": address, "max": 10, "cooldown": {"up": "1s", "down": "1s"}}},
        "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "web", "scale_up": {"by": 1}, "max_steps": 1}]})
    fire(daemon, "Busy")
    eventually(lambda: machines.size(path) == 3, 60, what="it has grown")


def test_machines_that_never_become_nodes_are_taken_back(make, machines):
    path = machines.add("MachineDeployment", "web", 2)
    before = machines.names()
    machines.slow.add("web")
    daemon = make(target={"nodes": {"cluster": "prod", "ready_timeout": "5s"}})
    fire(daemon, "Busy")
    eventually(lambda: machines.size(path) == 4 and len(machines.names()) == 4, 60, what="it has grown")
    eventually(lambda: machines.size(path) == 2 and machines.names() == before, 60, what="those that never came are gone")
    steadily(lambda: machines.size(path) == 2 and machines.names() == before, 3)


# ---- what goes wrong ----


def test_marks_come_off_where_the_size_cannot_be_set(make, machines, control_plane):
    """Machines may be marked, but the size may not be set."""
    path = machines.add("MachineDeployment", "web", 3)
    rules = [rule for rule in documented_rules() if not rule["resources"][0].endswith("/scale")]
    daemon = make(rules=rules)
    before = {m["metadata"]["name"]: m["metadata"]["resourceVersion"] for m in machines.machines()}
    fire(daemon, "Idle")
    kept = daemon.wait_record("nodes", 90, event="kept")
    assert "set_scale: HTTP 403" in kept["message"]
    assert machines.size(path) == 3 and len(machines.names()) == 3 and not machines.marked()
    changed = [m for m in machines.machines() if m["metadata"]["resourceVersion"] != before[m["metadata"]["name"]]]
    assert len(changed) == 1, "one was marked meanwhile"
    nodes = machines.nodes()
    eventually(lambda: not any(control_plane.admin.get(f"/api/v1/nodes/{node}")["spec"].get("unschedulable") for node in nodes), 30,
               what="the node takes pods again")


@pytest.mark.parametrize("rules, words", [
    ([], "get_group: HTTP 403"),
    ([rule for rule in documented_rules() if rule["resources"] != ["machines"]], "list_machines: HTTP 403"),
])
def test_rights_that_are_missing_are_told(make, machines, rules, words):
    path = machines.add("MachineDeployment", "web", 2)
    daemon = make(rules=rules)
    fire(daemon, "Idle")
    wait_words(daemon, words)
    assert machines.size(path) == 2


def test_a_size_that_the_cluster_refuses_is_told(make, machines):
    path = machines.add("MachinePool", "web", REPLICAS_MAX - 1)
    daemon = make("MachinePool", target={"nodes": {"cluster": "none"}})
    fire(daemon, "Busy")
    record = eventually(lambda: daemon.records("action", outcome="rejected"), 60, what="it is told")[0]
    assert "set_scale: HTTP 422" in json.dumps(record) and f"less than or equal to {REPLICAS_MAX}" in json.dumps(record)
    assert machines.size(path) == REPLICAS_MAX - 1


def test_a_group_that_is_not_there(make, machines):
    daemon = make(name="gone")
    fire(daemon, "Busy")
    wait_words(daemon, "get_group: HTTP 404")


def test_what_is_paused_is_left_alone(make, machines):
    path = machines.add("MachineDeployment", "web", 2, paused=True)
    daemon = make()
    fire(daemon, "Busy")
    wait_words(daemon, "it is paused")
    assert machines.size(path) == 2


def test_an_api_server_that_hangs_is_asked_again(make, machines, control_plane):
    path = machines.add("MachineDeployment", "web", 2)
    daemon = make(provider={"timeout": "2s"})
    with paused(control_plane):
        fire(daemon, "Busy")
        # A connection that exists times out. On a new one the TLS handshake hangs: nothing was sent.
        eventually(lambda: re.search("outcome=(timeout|unreachable)", daemon.process.log_text()), 60, what="it is told")
    eventually(lambda: machines.size(path) == 4, 120, what="it has grown")
    steadily(lambda: machines.size(path) == 4, 3)


def test_stopping_while_an_api_server_hangs(make, machines, control_plane):
    machines.add("MachineDeployment", "web", 2)
    daemon = make()
    with paused(control_plane):
        fire(daemon, "Busy")
        steadily(lambda: daemon.process.running, 1)
        daemon.stop()


def test_a_cluster_that_is_not_configured_is_told(make, machines):
    machines.add("MachineDeployment", "web", 2)
    daemon = make(provider={"cluster": "other"})
    fire(daemon, "Busy")
    wait_words(daemon, "cluster other")


def test_a_machine_that_is_marked_already_goes_first(make, machines):
    path = machines.add("MachineDeployment", "web", 3)
    last = sorted(machines.names())[-1]
    machines.admin.patch(f"{machines.base}/machines/{last}", {"metadata": {"annotations": {MARK: "by hand"}}})
    daemon = make()
    fire(daemon, "Idle")
    eventually(lambda: machines.size(path) == 2 and len(machines.names()) == 2, 60, what="one is gone")
    assert last not in machines.names()
