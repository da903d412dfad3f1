"""A hostile team: it may write anything into the ScalingPolicies of its own namespace, and has no other right."""
import copy
import datetime
import json
import re
import subprocess
import time

import pytest
import yaml

from harness.daemon import find_binary
from harness.notification import alert, notification
from harness.wait import eventually, steadily
from test_listed_objects import deployment, sizes
from test_policies import CRD, definition  # noqa: F401
from test_policy_daemon import API, RIGHTS, USER, policy, spaces, tenants  # noqa: F401
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
    team.plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)     # its fields are kubectl's again
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


# Attacks of policies that are in force: they must have no effect on the victim.

QUERIES = {
    "series": 'load{namespace="kube-system"}',
    "quotes": 'load{a="}"} or victim{namespace="victim"}',
    "end-of-the-selector": '"}) or vector(1) or ({a="',
    "lines": "load\r\nX-Scope-OrgID: team-victim\r\n\r\n",
    "parameter": "load&tenant=victim&time=0#",
    "path": "/../../ns/victim/api/v1/query?query=load",
}


def test_a_query_never_leaves_the_tenant(team, tenants):  # noqa: F811
    """Path and header are the namespace's. The text of the query is one parameter of the form, whatever it has."""
    url = f"http://127.0.0.1:{tenants.server_port}" + "/ns/{{ .Namespace }}"
    header = {"http_headers": {"X-Scope-OrgID": {"values": ["team-{{ .Namespace }}"]}}}
    daemon = team.daemon(prometheus={"url": url, "http_config": header}, queries_per_namespace=20)
    for name, query in QUERIES.items():
        team.plane.admin.create(deployment(team.own, name, 3, None))
        team.apply(team.policy(name, {**kubernetes(name=name), "rules": [{**LOAD, "track": {"averageValue": "30", "query": query}}]}))
    template = {"name": "load", "always": True, "track": {"averageValue": "30", "query": "load{a='{{ .Namespace }}'}"}}
    team.apply(team.policy("template", {"rules": [template]}))
    assert team.verdict("template")[0] == "Invalid"
    for name in QUERIES:
        assert team.verdict(name)[0] == "Ready", name
    eventually(lambda: len({body for _, _, body in tenants.seen}) >= len(QUERIES), what="all queries were sent")
    assert {(path, tenant) for path, tenant, _ in tenants.seen} == {(f"/ns/{team.own}/api/v1/query", f"team-{team.own}")}
    assert all(set(part.split("=")[0] for part in body.split("&")) <= {"query", "time", "timeout"} for _, _, body in tenants.seen)
    assert team.sizes()[team.victim] == team.unchanged[team.victim]
    daemon.stop()


def test_the_alerts_of_another_namespace_do_not_match(team):
    """Whatever the matchers say: the label of the own namespace is one more."""
    daemon = team.daemon()
    matchers = {"equal": f'namespace="{team.victim}"', "any": 'namespace=~".*"', "none": 'namespace!="x"', "empty": 'namespace!=""'}
    for name, matcher in matchers.items():
        team.plane.admin.create(deployment(team.own, name, 3, None))
        team.apply(team.policy(name, {**kubernetes(name=name), **rule(match=['alertname="Busy"', matcher])}))
    for name in matchers:
        assert team.verdict(name)[0] == "Ready"
    daemon.notify(team.alerts(team.victim, "", "kube-system"))
    steadily(lambda: set(team.sizes()[team.own].values()) == {3}, 2)
    daemon.notify(team.alerts(team.own))
    eventually(lambda: team.sizes()[team.own] == {"web": 3, "other": 3, "equal": 3, "any": 4, "none": 4, "empty": 4})


def test_an_alert_with_the_label_of_its_origin_does_not_reach_the_victim(team):
    """The team's own alerting rule is about the victim; Prometheus has set the label `namespace` (`enforcedNamespaceLabel`)."""
    daemon = team.daemon()
    team.plane.admin.post(f"{API}/namespaces/{team.victim}/scalingpolicies", policy(team.victim))
    eventually(lambda: any(r["name"] == f"{team.victim}/web/busy" for r in daemon.get("/api/v1/rules").json["data"]))
    daemon.notify(notification(alert({"alertname": "Busy", "namespace": team.own, "exported_namespace": team.victim, "Namespace": team.victim})))
    steadily(lambda: team.sizes() == team.unchanged, 2)
    daemon.notify(team.alerts(team.victim))
    eventually(lambda: team.sizes()[team.victim]["web"] == 4, what="the victim's own alert")


def test_a_policy_is_not_weaker_than_the_defaults(team):
    """Approvals and dry runs that the policy switches off."""
    approval = {"above": 1, "for": "15m"}
    daemon = team.daemon(config={"defaults": {"approval": approval}})
    attempts = {"none": {"none": True}, "higher": {"above": 100}, "longer": {"above": 0, "for": "1w"}}
    for name, value in attempts.items():
        team.plane.admin.create(deployment(team.own, name, 3, None))
        team.apply(team.policy(name, {**kubernetes(name=name), **rule(approval=value, scaleUp={"by": 4})}))
        assert team.verdict(name)[0] == "Ready"
    daemon.notify(team.alerts(team.own))
    requests = eventually(lambda: len(daemon.records("approval")) >= 3 and daemon.records("approval"), what="all three wait for a person")
    steadily(lambda: set(team.sizes()[team.own].values()) == {3}, 1)
    for record in requests:
        asked, until = (int(time.mktime(time.strptime(record[key][:19], "%Y-%m-%dT%H:%M:%S"))) for key in ("time", "until"))
        assert until - asked <= 16 * 60, record
    daemon.write_config({**daemon.config, "defaults": {"dry_run": True}})
    daemon.reload()
    team.apply(team.policy("web", {**target(dryRun=False), **rule(match=['alertname="Dry"'])}))
    assert team.verdict("web")[0] == "Ready"
    daemon.notify(team.alerts(team.own, name="Dry"))
    eventually(lambda: any(r["target_name"] == f"{team.own}/web" for r in daemon.records("decision")))
    steadily(lambda: team.sizes() == {**team.unchanged, team.own: team.sizes()[team.own]} and team.sizes()[team.own]["web"] == 3, 1.5)


def test_names_do_not_collide_with_rule_files(team):
    """A rule file's target and rule keep their names; a policy of these names has its namespace before them."""
    files = {"targets": {"web": {"kubernetes": {"kind": "Deployment", "namespace": team.victim, "name": "web"}, "min": 1, "max": 9}},
             "rules": [{"name": "busy", "match": ['alertname="Other"'], "target": "web", "scale_up": {"by": 1}, "max_steps": 1}]}
    daemon = team.daemon(files)
    team.apply(team.policy("web"))
    assert team.verdict("web")[0] == "Ready"
    assert sorted(r["name"] for r in daemon.get("/api/v1/rules").json["data"]) == sorted(["busy", f"{team.own}/web/busy"])
    daemon.notify(team.alerts(team.own))
    eventually(lambda: team.sizes()[team.own]["web"] == 4)
    assert team.sizes()[team.victim] == team.unchanged[team.victim]
    assert {r["target"] for r in daemon.records("action")} == {f"kubernetes/default/apps/v1/Deployment/{team.own}/web"}


def test_a_policy_cannot_forge_its_age(team):
    daemon = team.daemon()
    team.apply(team.policy("first"))
    assert team.verdict("first")[0] == "Ready"
    time.sleep(1.1)     # creationTimestamp has whole seconds
    team.apply(team.policy("second", creationTimestamp="1999-01-01T00:00:00Z"))
    reason, message = team.verdict("second")
    assert (reason, f"{team.own}/first" in message) == ("TargetTaken", True)
    assert team.get("second")["metadata"]["creationTimestamp"] > "2020"
    assert team.spaces.is_in_force(daemon, "first")


def test_an_annotation_forges_nothing(team):
    """200 KiB of it, with lines of a log, JSON and codes of a terminal."""
    daemon = team.daemon()
    forged = 'x\nts=2026-01-01T00:00:00Z level=error msg="forged"\r\n","forged":"\x1b[2J\u202e' + "A" * 200_000
    team.apply(team.policy("web", annotations={"alertscaler.io/paused": forged}))
    blocked = eventually(lambda: (c := conditions(team.get("web")).get("Blocked", {})) and c["status"] == "True" and c)
    assert len(blocked["message"]) < 400 and "\n" not in blocked["message"] and "\x1b" not in blocked["message"]
    reason = daemon.target(f"{team.own}/web")["paused"]["reason"]
    assert len(reason) < 300 and "\n" not in reason and "\x1b" not in reason
    daemon.notify(team.alerts(team.own))
    steadily(lambda: team.sizes() == team.unchanged, 1)
    log = daemon.process.log_text()
    assert "\x1b" not in log and not [line for line in log.splitlines() if line.startswith("ts=2026-01-01")]
    assert max(map(len, daemon.log_file.read_bytes().splitlines())) < 20_000


def test_messages_have_no_secrets_of_the_administrator(team, tenants, tmp_path):  # noqa: F811
    """The server of queries refuses the query, and repeats the credentials in its answer."""
    secret, file = "c3VwZXItc2VjcmV0LXRva2Vu", tmp_path / "bearer"
    file.write_text(secret)

    def refuse(handler):
        handler.rfile.read(int(handler.headers["Content-Length"]))
        text = json.dumps({"status": "error", "errorType": "bad_data", "error": f"bad: {handler.headers['Authorization']}"}).encode()
        handler.send_response(400)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)
    tenants.RequestHandlerClass.do_POST = refuse
    url = f"http://127.0.0.1:{tenants.server_port}" + "/ns/{{ .Namespace }}"
    daemon = team.daemon(prometheus={"url": url, "http_config": {"authorization": {"credentials_file": str(file)}}})
    team.apply(team.policy("web", {"rules": [{**LOAD}]}))
    eventually(lambda: conditions(team.get("web"))["ScalingActive"]["status"] == "False", timeout=90)
    events = team.plane.admin.get(f"/api/v1/namespaces/{team.own}/events")
    shown = json.dumps([team.get("web"), events]) + daemon.process.log_text() + daemon.log_file.read_text()
    assert "bad: " in shown and secret not in shown


# Floods.

def read_memory(daemon):
    """MiB"""
    with open(f"/proc/{daemon.process.pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024


def expect_prompt(team, daemon, name):
    """A new policy of the victim; the seconds until it is in force, as the daemon's log has them."""
    team.plane.admin.request("DELETE", f"{API}/namespaces/{team.victim}/scalingpolicies/{name}")
    begun = datetime.datetime.now(datetime.timezone.utc)
    item = team.plane.admin.post(f"{API}/namespaces/{team.victim}/scalingpolicies", policy(team.victim, name, name))
    eventually(lambda: daemon.records("policy", uid=item["metadata"]["uid"], event="in_force"), what=f"{name} is in force")
    lines = re.findall(rf'ts=(\S+) .*"a scaling policy is in force" policy={team.victim}/{name} ', daemon.process.log_text())
    return (datetime.datetime.fromisoformat(lines[-1].replace("Z", "+00:00")) - begun).total_seconds()


@pytest.mark.seconds(600)
def test_many_large_policies_leave_room_for_others(team):
    """More than 50 MB of policies of 250 KB."""
    daemon = team.daemon(config={"prometheus": {"url": "http://127.0.0.1:9"}}, unrestricted_queries=True,
                         env={"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:exitcode=99:quarantine_size_mb=1:malloc_context_size=2"})
    rules = [{**LOAD, "name": f"q{i}", "track": {"averageValue": "15", "query": "load + " + "1" * 8100}} for i in range(30)]
    before = read_memory(daemon)
    waits = []
    for i in range(210):
        team.client.post(f"{API}/namespaces/{team.own}/scalingpolicies", team.policy(f"large-{i}", {**kubernetes(name=f"web-{i}"), "rules": rules}))
        if i in (20, 120, 209):
            waits.append(expect_prompt(team, daemon, "web"))
    reason, message = team.verdict("large-209")
    assert reason == "LimitExceeded" and "more than 8 MiB" in message
    grown = read_memory(daemon) - before
    print(f"210 policies of 250 KB: {grown:.0f} MiB more; policies of others in force after at most {max(waits):.2f} s")
    assert grown < 200 and max(waits) < 5
    daemon.notify(team.alerts(team.victim))
    eventually(lambda: team.sizes()[team.victim]["web"] == 4)


def test_a_policy_that_changes_all_the_time_is_slowed_down(team):
    daemon = team.daemon()
    team.apply(team.policy("web"))
    begun, changes, waits = time.monotonic(), 0, []
    while time.monotonic() - begun < 15:
        changes += 1
        team.client.patch(team.path("web"), {"spec": {"target": {"max": 5 + changes % 4}}})
        if changes % 40 == 20:
            waits.append(expect_prompt(team, daemon, "web"))
        time.sleep(max(0, begun + changes / 10 - time.monotonic()))
    told = daemon.records("policy", namespace=team.own)
    print(f"{changes} changes, {len(told)} of them in force; others in force after at most {max(waits):.2f} s")
    assert changes > 40 and len(told) <= 10 and max(waits) < 3
    generation = team.get("web")["metadata"]["generation"]
    eventually(lambda: daemon.records("policy", namespace=team.own, generation=generation), what="the last change is in force")


def test_a_flood_does_not_push_out_what_is_older(team):
    """Newer policies of all namespaces are refused then. A ResourceQuota of policies prevents this (docs/policies.md)."""
    daemon = team.daemon(max_policies=5)
    expect_prompt(team, daemon, "web")
    time.sleep(1.1)
    for i in range(8):
        team.apply(team.policy(f"flood-{i}", kubernetes(name=f"web-{i}")))
    assert [team.verdict(f"flood-{i}")[0] for i in range(8)].count("TooManyPolicies") == 4
    daemon.notify(team.alerts(team.victim))
    eventually(lambda: team.sizes()[team.victim]["web"] == 4, what="the victim's older policy is in force")
