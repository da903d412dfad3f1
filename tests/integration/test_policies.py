"""ScalingPolicy in a real API server: its definition, made from the tables of rule files, and what the API server accepts and refuses."""
import copy
import json
import subprocess

import pytest
import yaml

from harness.daemon import ROOT, find_binary
from harness.wait import eventually

pytestmark = [pytest.mark.kubernetes, pytest.mark.since(25, "the API server checks rules of CustomResourceDefinitions")]

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/scalingpolicies.alertscaler.io"
POLICY = yaml.safe_load("""
apiVersion: alertscaler.io/v1alpha1
kind: ScalingPolicy
metadata: {name: checkout}
spec:
  mode: Live
  target:
    kubernetes: {kind: Deployment, name: checkout}
    min: 2
    max: 20
    cooldown: {up: 1m, down: 10m}
    tolerance: {up: 5%}
    schedules: [{name: day, from: "08:00", to: "20:00", timezone: Europe/Berlin, min: 4, end: Min}]
  rules:
    - name: slow
      match: ['alertname="CheckoutLatencyHigh"']
      scaleUp: {by: 50%}
      onResolved: {giveBack: {}}
      guard: {query: 'up{job="checkout"} == 1'}
    - name: requests
      always: true
      track: {averageValue: "50", query: 'sum(rate(http_requests_total{namespace="shop",app="checkout"}[1m]))'}
    - name: memory
      always: true
      track: {utilization: 80%, of: MemoryLimits, perPod: true, query: 'sum by (pod) (container_memory_working_set_bytes)'}
      approval: {none: true}
    - name: queue
      match: ['alertname="Queue"']
      scaleTo: {value: {query: 'sum(queue)'}, steps: [{from: 0, size: 2}, {from: 500m, size: 4}]}
    - name: fixed
      match: ['alertname="Fixed"']
      scaleTo: {size: 3}
      guard: {none: true}
    - name: busy
      match: ['alertname="Busy"']
      scaleUp: {value: {annotation: load}, steps: [{above: "1.5", by: 2}, {above: 3, by: 100%, atLeast: 3}]}
""")


def change(*path, to):
    """The policy with another value at the path; `...` as the value removes the key."""
    policy = copy.deepcopy(POLICY)
    at = policy
    for key in path[:-1]:
        at = at[key]
    if to is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = to
    return policy


@pytest.fixture
def definition(control_plane):
    text = subprocess.run([find_binary(), "schema", "crd"], capture_output=True, text=True, check=True).stdout
    assert len(text) < 200 * 1024
    control_plane.kubectl("apply", "--server-side", "-f", "-", stdin=text)
    item = control_plane.admin.wait(CRD, lambda crd: any(c["type"] == "Established" and c["status"] == "True"
                                                          for c in crd.get("status", {}).get("conditions", [])))
    eventually(lambda: "scalingpolicies" in control_plane.kubectl("api-resources", "--api-group=alertscaler.io", "-o", "name").stdout)
    return item


@pytest.fixture
def apply(control_plane, namespace, definition):
    """apply(policy): kubectl apply, as a user; the finished process."""
    def run(policy, *arguments):
        return control_plane.kubectl("apply", "-n", namespace, *arguments, "-f", "-", stdin=json.dumps(policy), check=False)
    return run


def test_the_definition_is_structural(definition):
    conditions = {c["type"]: c["status"] for c in definition["status"]["conditions"]}
    assert "NonStructuralSchema" not in conditions and conditions["NamesAccepted"] == "True"
    assert definition["spec"]["names"]["shortNames"] == ["scp"] and "all" not in definition["spec"]["names"]["categories"]


def test_a_policy_is_kept_as_it_was_written(apply, control_plane, namespace):
    done = apply(POLICY, "--server-side")
    assert done.returncode == 0 and not done.stderr, done.stderr
    item = json.loads(control_plane.kubectl("get", "scp", "checkout", "-n", namespace, "-o", "json").stdout)
    assert item["spec"] == POLICY["spec"] and item["status"] == {"observedGeneration": -1}
    columns = control_plane.kubectl("get", "scp", "-n", namespace).stdout.splitlines()[0].split()
    assert columns == ["NAME", "TARGET", "SIZE", "DESIRED", "MIN", "MAX", "REASON", "READY", "AGE"]


def test_explain_teaches_the_keys(control_plane, definition):
    def explain(path):
        done = control_plane.kubectl("explain", f"scp.{path}", check=False)
        assert done.returncode == 0, done.stderr
        return " ".join(done.stdout.split())

    eventually(lambda: "spec" in control_plane.kubectl("explain", "scp", check=False).stdout)
    track = explain("spec.rules.track")
    assert "Computes the size from a value and a goal" in track
    assert "needs `of` and `perPod`" in track and "The PromQL query" in track
    assert "The size that was last observed." in explain("status")


@pytest.mark.parametrize("case", ["hpa", "hpa-containers", "hpa-owners", "keda", "keda-cron", "keda-fallback"])
def test_the_api_server_takes_what_convert_writes(case, control_plane, namespace, definition, tmp_path):
    files = sorted((ROOT / "tests/golden/convert" / case).glob("*.yaml"))
    done = subprocess.run([find_binary(), "convert", "--output=policies", f"--out={tmp_path / 'out'}", *files],
                          capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    written = sorted((tmp_path / "out/policies").iterdir())
    assert written
    for file in written:
        policy = yaml.safe_load(file.read_text(encoding="utf-8"))
        policy["metadata"]["namespace"] = namespace
        done = control_plane.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", stdin=json.dumps(policy), check=False)
        assert done.returncode == 0 and "Warning" not in done.stderr, f"{file.name}: {done.stderr}"


def can(control_plane, namespace, verb, resource, *flags):
    done = control_plane.kubectl("auth", "can-i", verb, resource, "-n", namespace, *flags, check=False)
    return done.stdout.strip() == "yes"


def test_the_roles_of_the_manifests(control_plane, namespace):
    """alertscaler reads policies and writes their status, and no more; people have what view and edit give."""
    policies = "scalingpolicies.alertscaler.io"
    control_plane.kubectl("apply", "--server-side", "-k", str(ROOT / "deploy/kubernetes/policies"))
    account = "--as=system:serviceaccount:alertscaler:alertscaler"
    eventually(lambda: all(can(control_plane, namespace, verb, policies, account) for verb in ("get", "list", "watch")))
    eventually(lambda: can(control_plane, namespace, "patch", policies, "--subresource=status", account))
    for verb in ("create", "update", "patch", "delete"):
        assert not can(control_plane, namespace, verb, policies, account), verb
    for role, needed, aggregated in (("view", "list", {"view"}), ("edit", "create", {"edit", "admin"})):
        name, user = f"alertscaler-policies-{role}", f"--as={role}-ann"
        labels = json.loads(control_plane.kubectl("get", "clusterrole", name, "-o", "json").stdout)["metadata"]["labels"]
        assert labels == {f"rbac.authorization.k8s.io/aggregate-to-{to}": "true" for to in aggregated}
        control_plane.kubectl("create", "rolebinding", f"{role}-ann", f"--clusterrole={name}", f"--user={role}-ann", "-n", namespace)
        eventually(lambda verb=needed, who=user: can(control_plane, namespace, verb, policies, who), what=role)
        assert can(control_plane, namespace, "delete", policies, user) == (role == "edit")
        assert not can(control_plane, namespace, "patch", policies, "--subresource=status", user)


@pytest.fixture
def aggregation(control_plane):
    """The controller that adds the rules of labelled roles to `view`, `edit` and `admin`."""
    manager = control_plane.prepare_controller_manager("aggregation", ["clusterrole-aggregation"]).start()
    yield
    manager.kill()


def test_people_have_what_view_edit_and_admin_give(control_plane, namespace, definition, aggregation):
    """By impersonation: each person acts with kubectl in a namespace where the role of Kubernetes is bound, and in another one."""
    control_plane.kubectl("apply", "--server-side", "-k", str(ROOT / "deploy/kubernetes/policies"))
    for role in ("view", "edit", "admin"):
        control_plane.admin.wait(f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{role}",
                                 lambda item: any("scalingpolicies" in rule.get("resources", []) for rule in item["rules"] or []))
        control_plane.kubectl("create", "rolebinding", f"{role}-bob", f"--clusterrole={role}", f"--user={role}-bob", "-n", namespace)

    def run(who, *arguments, where=namespace, **more):
        done = control_plane.kubectl(*arguments, "-n", where, f"--as={who}-bob", check=False, **more)
        assert done.returncode == 0 or "forbidden" in done.stderr, done.stderr
        return done.returncode == 0

    for role in ("view", "edit", "admin"):
        eventually(lambda who=role: run(who, "get", "scp"), what=role)
    for role in ("edit", "admin"):
        assert run(role, "apply", "-f", "-", stdin=POLICY)
        assert run(role, "annotate", "scp", "checkout", f"alertscaler.io/paused=by {role}", "--overwrite")
        assert run("view", "get", "scp", "checkout", "-o", "yaml")
        assert not run("view", "annotate", "scp", "checkout", "alertscaler.io/paused=by view", "--overwrite")
        assert not run("view", "delete", "scp", "checkout")
        status = json.dumps({"status": {"size": 7}})
        for other in ("view", "edit", "admin"):
            assert not run(other, "patch", "scp", "checkout", "--subresource=status", "--type=merge", "-p", status)
        assert run(role, "delete", "scp", "checkout")
    assert not run("view", "create", "-f", "-", stdin=POLICY)
    for role in ("view", "edit", "admin", "no"):
        assert not run(role, "get", "scp", where="default") and not run(role, "create", "-f", "-", where="default", stdin=POLICY)
    assert not run("no", "get", "scp")


RULE = ("spec", "rules", 0)


@pytest.mark.parametrize("policy, message", [
    (change("spec", "target", "max", to=...), "spec.target.max"),
    (change("spec", "target", "max", to="many"), "spec.target.max"),
    (change("spec", "target", "maxx", to=3), 'unknown field "spec.target.maxx"'),
    (change("spec", "target", "kubernetes", "namespace", to="kube-system"), 'unknown field "spec.target.kubernetes.namespace"'),
    (change("spec", "target", "allow", to={}), 'unknown field "spec.target.allow"'),
    (change("spec", "target", "kubernetes", to=...), "exactly one of `kubernetes`, `nodeGroup` is needed"),
    (change("spec", "target", "cooldown", "up", to="soon"), "spec.target.cooldown.up"),
    (change(*RULE, "always", to=True), "exactly one of `match`, `always` is needed"),
    (change(*RULE, "scaleUp", to=...), "exactly one of `scaleUp`"),
    (change(*RULE, "scaleUp", to={"by": "50 %"}), "spec.rules[0].scaleUp.by"),
    (change(*RULE, "onResolved", to="GiveBack"), ".onResolved: expected map"),
    (change(*RULE, "match", to=[]), "spec.rules[0].match"),
    (change(*RULE, "match", to=["a=\"b\""] * 17), "spec.rules[0].match"),
    (change(*RULE, "name", to="queue"), "duplicate entries for key"),
    (change("spec", "rules", to=[]), "spec.rules"),
    (change("spec", "rules", 2, "track", "of", to="memory_limits"), '"MemoryLimits"'),
    (change("spec", "mode", to="Dry"), '"Shadow"'),
])
def test_the_api_server_refuses_a_wrong_policy(apply, policy, message):
    done = apply(policy, "--server-side", "--dry-run=server") if "unknown" not in message else apply(policy, "--validate=strict")
    assert done.returncode != 0 and message in done.stderr, done.stderr


# Values that a schema can judge. `True`: both take it; `False`: both refuse it.
LONG = "x" * 1025


VALUES = [
    (("target", "max"), "20", True),
    (("target", "max"), 20.5, False),
    (("target", "max"), True, False),
    (("target", "max"), ..., False),
    (("target", "cooldown", "up"), "0", True),
    (("target", "cooldown", "up"), 0, False),
    (("target", "cooldown"), "5m", False),
    (("target", "tolerance"), "10%", False),
    (("target", "tolerance"), {"up": "1%", "down": "2%"}, True),
    (("target", "approval"), "none", False),
    (("target", "approval"), {"none": True}, True),
    (("target", "approval"), {"none": "true"}, False),
    (("target", "enforceBounds"), "true", False),
    (("target", "enforceBounds"), True, True),
    (("target", "schedules", 0, "end"), "min", False),
    (("target", "schedules", 0, "from"), 8, False),
    (("target", "kubernetes", "name"), 7, False),
    (("target", "kubernetes", "name"), True, False),
    (("target", "kubernetes", "name"), LONG, False),
    (("target", "kubernetes"), {"kind": "Deployment", "name": "web", "container": "app", "resource": "memory", "unit": "64Mi", "apply": "pods"}, False),
    (("target", "kubernetes"), {"kind": "Deployment", "name": "web", "container": "app", "resource": "memory", "unit": "64Mi", "limits": "keep"}, False),
    (("target", "kubernetes"), {"kind": "Deployment", "name": "web", "container": "app", "resource": "memory", "unit": "64Mi", "apply": "Pods",
                                "template": "true"}, False),
    (("mode",), "live", False),
    (("rules", 0, "name"), 5, False),
    (("rules", 0, "name"), "x" * 64, False),
    (("rules", 0, "match"), 'alertname="A"', False),
    (("rules", 0, "match"), [5], False),
    (("rules", 0, "match"), ['alertname="A"'] * 17, False),
    (("rules", 0, "enabled"), "false", False),
    (("rules", 0, "scaleUp"), {"by": 2}, True),
    (("rules", 0, "scaleUp"), {"by": "2"}, True),
    (("rules", 0, "scaleUp"), {"by": 1.5}, False),
    (("rules", 0, "scaleUp"), {"by": "50 %"}, False),
    (("rules", 0, "scaleUp"), 2, False),
    (("rules", 0, "onResolved"), "nothing", False),
    (("rules", 0, "onResolved"), {}, False),
    (("rules", 0, "guard"), "none", False),
    (("rules", 0, "guard"), {}, False),
    (("rules", 0, "guard"), {"none": True, "query": "up"}, False),
    (("rules", 0, "guard"), {"query": 1}, False),
    (("rules", 0, "guard"), {"query": "up + " * 1700 + "up"}, False),
    (("rules", 1, "track", "averageValue"), 50, True),
    (("rules", 1, "track", "averageValue"), 0.5, False),
    (("rules", 1, "track", "averageValue"), "500m", True),
    (("rules", 1, "track", "query"), False, False),
    (("rules", 2, "track", "of"), "memory_limits", False),
    (("rules", 2, "track", "perPod"), "true", False),
    (("rules", 4, "scaleTo"), 3, False),
    (("rules", 4, "scaleTo"), {"size": "3"}, True),
    (("rules", 4, "scaleTo"), {}, False),
    (("rules",), "none", False),
]


def test_check_and_the_api_server_agree(control_plane, namespace, definition, tmp_path):
    """`check` of a file, as YAML and as JSON, and the definition in the API server take and refuse the same values."""
    path = f"/apis/alertscaler.io/v1alpha1/namespaces/{namespace}/scalingpolicies?dryRun=All&fieldValidation=Strict"
    answer = eventually(lambda: (lambda done: done.status != 404 and done)(control_plane.admin.request("POST", path, POLICY)))
    assert answer.ok, answer.text
    wrong = []
    for keys, value, is_taken in VALUES:
        policy = change("spec", *keys, to=value)
        policy["metadata"]["namespace"] = namespace
        answer = control_plane.admin.request("POST", path, policy)
        if answer.ok != is_taken:
            wrong.append(f"API server: {keys} {str(value)[:80]}: {answer.status} {answer.text[:500]}")
        for name, text in (("policy.yaml", yaml.safe_dump(policy)), ("policy.json.yaml", json.dumps(policy))):
            (tmp_path / name).write_text(text, encoding="utf-8")
            done = subprocess.run([find_binary(), "check", str(tmp_path / name)], capture_output=True, text=True, check=False)
            if (done.returncode == 0) != is_taken:
                wrong.append(f"check {name}: {keys} {str(value)[:80]}: {done.stdout}{done.stderr[:500]}")
    assert not wrong, "\n".join(wrong)
