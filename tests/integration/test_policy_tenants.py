"""A hostile team: it may write anything into the ScalingPolicies of its own namespace, and has no other right."""
import copy
import json
import subprocess

import pytest
import yaml

from harness.daemon import find_binary
from harness.notification import alert, notification
from harness.wait import eventually, steadily
from test_listed_objects import deployment, sizes
from test_policies import CRD, definition  # noqa: F401
from test_policy_daemon import API, RIGHTS, USER, policy, spaces  # noqa: F401
from test_policy_status import conditions

pytestmark = [pytest.mark.kubernetes, pytest.mark.since(25, "the API server checks rules of CustomResourceDefinitions")]
APPLY = "application/apply-patch+yaml"
BUSY = {"name": "busy", "match": ['alertname="Busy"'], "scaleUp": {"by": 1}, "maxSteps": 1}
LOAD = {"name": "load", "always": True, "track": {"averageValue": "15", "query": "load"}}


class Team:
    """The attacker, with the token of a service account; `victim` is the namespace of another team, with Deployments of the same names."""

    def __init__(self, spaces, victim):  # noqa: F811
        self.spaces, self.plane, self.own, self.victim = spaces, spaces.plane, spaces.namespace, victim
        rights = [{"apiGroups": ["alertscaler.io"], "resources": ["scalingpolicies"],
                   "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"]}]
        self.plane.create_account(self.own, "team")
        self.plane.grant(self.own, "team", rights)
        self.client = self.plane.client(self.plane.account_token(self.own, "team"))
        self.plane.wait_allowed(USER, RIGHTS, victim)
        self.unchanged = self.sizes()

    def daemon(self, rules=None, config=None, **objects):
        daemon = self.spaces.daemon(rules, start=False, namespaces=[self.own, self.victim], **objects)
        daemon.config.update(config or {})
        daemon.write_config(daemon.config)
        return daemon.start()

    def path(self, name):
        return f"{API}/namespaces/{self.own}/scalingpolicies/{name}"

    def write(self, item, validate="Ignore"):
        """As `kubectl apply --validate=false` does it; the API server's answer."""
        query = f"?fieldManager=team&force=true&fieldValidation={validate}"
        return self.client.request("PATCH", self.path(item["metadata"]["name"]) + query, item, APPLY)

    def apply(self, item):
        answer = self.write(item)
        assert answer.ok, answer.text

    def policy(self, name, spec=None, **metadata):
        item = policy(self.own, name, **metadata)
        item["spec"].update(copy.deepcopy(spec or {}))
        return item

    def get(self, name):
        return self.client.get(self.path(name))

    def verdict(self, name):
        """Reason and message of `Ready`, once this generation is judged."""
        def judged():
            item = self.get(name)
            ready = conditions(item).get("Ready")
            return ready if ready and ready["observedGeneration"] == item["metadata"]["generation"] else None
        ready = eventually(judged, what=f"policy {name} is judged")
        return ready["reason"], ready["message"]

    def sizes(self):
        return {namespace: sizes(self.plane, namespace) for namespace in (self.own, self.victim, "kube-system")}

    def alerts(self, *namespaces, name="Busy"):
        return notification(*(alert({"alertname": name, "namespace": n}) for n in namespaces))


@pytest.fixture
def team(spaces):  # noqa: F811
    victim = f"victim-of-{spaces.namespace}"
    spaces.plane.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": victim}})
    for name in ("web", "other"):
        spaces.plane.admin.create(deployment(victim, name, 3, None))
    yield Team(spaces, victim)
    spaces.plane.admin.delete(f"/api/v1/namespaces/{victim}")


@pytest.fixture
def permissive(team, definition):  # noqa: F811
    """The API server stores and returns any spec, as with a definition that somebody has edited."""
    changed = copy.deepcopy(team.plane.admin.get(CRD))
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = {
        "type": "object", "x-kubernetes-preserve-unknown-fields": True}
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"].pop("x-kubernetes-validations", None)
    team.plane.admin.put(CRD, changed)
    odd = team.policy("permissive", {"odd": True})
    eventually(lambda: team.write(odd, "Strict").ok and team.get("permissive")["spec"].get("odd"), what="anything is stored")
    team.client.delete(team.path("permissive"))
    yield
    text = subprocess.run([find_binary(), "schema", "crd"], capture_output=True, text=True, check=True).stdout
    team.plane.admin.put(CRD, {**yaml.safe_load(text), "metadata": team.plane.admin.get(CRD)["metadata"]})
    eventually(lambda: not team.write(odd, "Strict").ok, what="the definition is strict again")


def kubernetes(**keys):
    return {"target": {"kubernetes": {"kind": "Deployment", "name": "web", **keys}, "max": 9}}


def target(**keys):
    return {"target": {"kubernetes": {"kind": "Deployment", "name": "web"}, "max": 9, **keys}}


def group(**keys):
    return {"target": {"nodeGroup": {"provider": "cloud", "name": "workers", **keys}, "max": 9}}


def rule(**keys):
    return {"rules": [{**BUSY, **keys}]}


def nested(levels):
    value = 1
    for _ in range(levels):
        value = {"not": value}
    return value


# Each row is an attack: the spec; the API server's error, or None if its schema accepts the spec; reason and message of the policy
# where the spec is stored nevertheless.
ATTACKS = {
    # the object of another namespace
    "namespace": (kubernetes(namespace="kube-system"), "target.kubernetes.namespace", "Invalid", "unknown key `namespace`"),
    "cluster": (kubernetes(cluster="other"), "target.kubernetes.cluster", "Invalid", "unknown key `cluster`"),
    "slashes": (kubernetes(name="../../kube-system/deployments/web"), None, "Invalid", "expected a DNS subdomain"),
    "dots": (kubernetes(name=".."), None, "Invalid", "expected a DNS subdomain"),
    "percent": (kubernetes(name="..%2f..%2fkube-system%2fdeployments%2fweb"), None, "Invalid", "expected a DNS subdomain"),
    "parameter": (kubernetes(name="web?force=true"), None, "Invalid", "expected a DNS subdomain"),
    "line": (kubernetes(name="web\r\nHost: kube-system"), "target.kubernetes.name", "Invalid", "target.kubernetes.name"),
    "template": (kubernetes(name="{{ .Labels.name }}"), None, "Invalid", "an alert gives `name`"),
    "template-of-the-kind": (kubernetes(kind="{{ .Labels.kind }}", apiVersion="v1"), None, "Invalid", "an alert gives `kind`"),
    "version": (kubernetes(apiVersion="apps/v1/namespaces/kube-system"), None, "Invalid", "expected an API version"),
    "two-addresses": ({"target": {**group()["target"], **kubernetes()["target"]}}, "exactly one of", "Invalid", "only one of"),
    # kinds and fields beyond `scale`
    "quota": (kubernetes(apiVersion="v1", kind="ResourceQuota", field="spec.hard.pods"), None, "KindNotAllowed", "objects.kinds"),
    "field": (kubernetes(field="spec.minReadySeconds"), None, "KindNotAllowed", "objects.kinds"),
    "field-of-the-size": (kubernetes(field="spec.replicas"), None, "Invalid", "set through the scale subresource"),
    "custom-kind": (kubernetes(apiVersion="example.com/v1", kind="Cache"), None, "KindNotAllowed", "objects.kinds"),
    "old-version": (kubernetes(apiVersion="extensions/v1beta1"), None, "KindNotAllowed", "objects.kinds"),
    "kind-in-lower-case": (kubernetes(apiVersion="apps/v1", kind="deployment"), None, "KindNotAllowed", "objects.kinds"),
    "node": (kubernetes(apiVersion="v1", kind="Node"), None, "KindNotAllowed", "objects.kinds"),
    "container": (kubernetes(container="app", resource="cpu", unit="100m"), None, "KindNotAllowed", "objects.kinds"),
    # node groups
    "node-group": (group(), None, "NodeGroupNotAllowed", "objects.node_groups"),
    "node-group-by-template": (group(name="allowed-{{ .Labels.name }}"), None, "Invalid", "an alert gives `name`"),
    "node-group-by-url": (group(url="http://attacker"), "target.nodeGroup.url", "Invalid", "unknown key `url`"),
    "unknown-provider": (group(provider="other"), None, "Invalid", "provider"),
    # keys that reach other targets
    "after": (target(after="other"), "target.after", "Invalid", "unknown key `after`"),
    "allow": (target(allow={"names": ["*"]}), "target.allow", "Invalid", "unknown key `allow`"),
    "pool": (target(pool={}), "target.pool", "Invalid", "unknown key `pool`"),
    "nodes": (target(nodes={}), "target.nodes", "Invalid", "unknown key `nodes`"),
    "target-of-a-rule": (rule(target="files"), "].target: field not declared", "Invalid", "unknown key `target`"),
    "receivers": (rule(receivers=["other"]), "].receivers: field not declared", "Invalid", "unknown key `receivers`"),
    # limits of the administrator
    "size": (target(max=11), None, "LimitExceeded", "objects.max_size"),
    "size-by-schedule": (target(schedules=[{"name": "sale", "timezone": "UTC", "from": "00:00", "to": "24:00", "max": 1000}]),
                         None, "LimitExceeded", "objects.max_size"),
    "every": ({"rules": [{**LOAD, "every": "1s"}]}, None, "LimitExceeded", "objects.min_every"),
    "many-rules": ({"rules": [{**BUSY, "name": f"r{i}"} for i in range(5)]}, None, "LimitExceeded", "objects.rules_per_policy"),
    # names
    "name-of-another-rule": (rule(name="kube-system/web/busy"), "rules[0].name", "Invalid", "expected a name without `/`"),
    "name-with-dots": (rule(name="../../other"), "rules[0].name", "Invalid", "expected a name without `/`"),
    "name-of-confusables": (rule(name="bus\u0443"), "rules[0].name", "Invalid", "expected a name"),
    "name-that-reverses": (rule(name="\u202eysub"), "rules[0].name", "Invalid", "expected a name"),
    "name-with-lines": (rule(name="busy\nlevel=info"), "rules[0].name", "Invalid", "expected a name"),
    "twice": ({"rules": [BUSY, BUSY]}, "duplicate entries", "Invalid", "given twice"),
    # what a schema would not let in
    "deep": (target(nodes=nested(40)), "target.nodes", "Invalid", "nested too deeply"),
    "huge-integer": (target(max=2 ** 53), None, "Invalid", "expected an integer from 1 to 2147483647"),
    "huge-number": (target(max="1" * 60), None, "Invalid", "target.max"),
    "huge-exponent": (target(max="1e308"), None, "Invalid", "target.max"),
    "huge-duration": (target(cooldown={"up": "99999999999999999999d"}), None, "Invalid", "too long a duration"),
    "no-spec-but-a-list": ({"target": [], "rules": {}}, "target", "Invalid", ""),
        "pattern": (rule(match=['alertname=~"("']), None, "Invalid", "match"),
    "pattern-of-much-memory": (rule(match=['alertname=~"((a{1000}){1000}){1000}"']), None, "Invalid", "match"),
    "unknown-mode": ({"mode": "Admin"}, "mode", "Invalid", "mode"),
}
ALLOWED = {"max_size": 10, "rules_per_policy": 4}


def attack(team, rows):
    """Writes the policies, fires all alerts, and returns what is not as the rows say."""
    wrong = {}
    for name, (spec, _, reason, message) in rows.items():
        team.apply(team.policy(name, spec))
    for name, (_, _, reason, message) in rows.items():
        found = team.verdict(name)
        if found[0] != reason or message not in found[1]:
            wrong[name] = found
    return wrong


def start_with_limits(team):
    config = {"providers": {"cloud": {"type": "aws", "region": "eu-central-1"}}, "prometheus": {"url": "http://127.0.0.1:9"}}
    groups = [{"namespaces": [team.victim], "provider": "cloud", "names": ["*"]},
              {"namespaces": [team.own], "provider": "cloud", "names": ["allowed-*"]}]
    return team.daemon(config=config, node_groups=groups, unrestricted_queries=True, **ALLOWED)


def expect_no_effect(team, daemon):
    for namespace in (team.own, team.victim, "kube-system"):
        daemon.notify(team.alerts(namespace))
    steadily(lambda: team.sizes() == team.unchanged, 2)
    assert not daemon.records("action")


def test_the_schema_or_the_program_refuses(team):
    daemon = start_with_limits(team)
    rows, wrong = {}, {}
    for name, (spec, error, *verdict) in ATTACKS.items():
        answer = team.write(team.policy(name, spec), "Strict")
        if error is None and answer.ok:
            rows[name] = (spec, error, *verdict)
        elif error is None or answer.ok or error not in answer.text:
            wrong[name] = answer.text
    wrong |= attack(team, rows)
    assert not wrong, json.dumps(wrong, indent=1)
    expect_no_effect(team, daemon)


def test_without_a_schema_the_program_refuses(team, permissive):
    daemon = start_with_limits(team)
    wrong = attack(team, ATTACKS)
    assert not wrong, json.dumps(wrong, indent=1)
    expect_no_effect(team, daemon)
