"""The status of scaling policies on the real API server, the events on them, and which policies are watched: labels, namespaces, Roles."""
from datetime import datetime

import pytest

from harness.notification import alert, notification
from harness.wait import eventually, steadily
from test_listed_objects import deployment
from test_policies import definition  # noqa: F401
from test_policy_daemon import RIGHTS, policy, spaces, tenants  # noqa: F401

pytestmark = [pytest.mark.kubernetes, pytest.mark.since(25, "the API server checks rules of CustomResourceDefinitions")]


def conditions(item):
    return {c["type"]: c for c in item.get("status", {}).get("conditions", [])}


def wait_condition(spaces, kind, status, reason, name="web"):  # noqa: F811
    def is_so():
        found = conditions(spaces.get(name)).get(kind, {})
        return (found.get("status"), found.get("reason")) == (status, reason)
    eventually(is_so, what=f"{kind} is {status}: {reason}")
    return conditions(spaces.get(name))[kind]


def test_the_status_says_what_was_done(spaces):  # noqa: F811
    daemon = spaces.daemon()
    spaces.apply(policy(spaces.namespace))
    spaces.plane.kubectl("wait", "scp/web", "-n", spaces.namespace, "--for=condition=Ready", "--timeout=30s")
    assert {k: c["status"] for k, c in conditions(spaces.get()).items()} == {
        "Ready": "True", "Stalled": "False", "ScalingActive": "True", "ScalingLimited": "False", "Blocked": "False"}
    daemon.notify(spaces.busy())
    eventually(lambda: spaces.get()["status"].get("desired") == 4)
    status = spaces.get()["status"]
    assert (status["observedGeneration"], status["target"], status["size"], status["min"], status["max"]) == (1, "Deployment/web", 4, 1, 9)
    assert status["lastDecision"]["reason"] in ("Scaled", "NoChange") and status["lastDecision"]["rule"] == "busy" and status["lastScaleTime"]
    assert [(r["name"], r["alerts"]) for r in status["rules"]] == [("busy", 1)]
    table = spaces.plane.kubectl("get", "scp", "web", "-n", spaces.namespace, "-o", "wide").stdout.splitlines()
    columns = table[1].split()
    assert columns[:6] + columns[7:8] == ["web", "Deployment/web", "4", "4", "1", "9", "True"] and "busy" in columns
    managers = {(m["manager"], m["operation"], m.get("subresource")) for m in spaces.get()["metadata"]["managedFields"]}
    assert ("alertscaler", "Apply", "status") in managers


def test_the_policy_gets_the_events_of_its_target(spaces):  # noqa: F811
    daemon = spaces.daemon()
    spaces.apply(policy(spaces.namespace))
    eventually(lambda: spaces.is_in_force(daemon))
    daemon.notify(spaces.busy())
    uid = spaces.get()["metadata"]["uid"]
    path = f"/api/v1/namespaces/{spaces.namespace}/events"

    def events():
        return {e["involvedObject"]["kind"]: e for e in spaces.plane.admin.get(path)["items"] if e["source"].get("component") == "alertscaler"}
    eventually(lambda: set(events()) == {"Deployment", "ScalingPolicy"})
    found = events()
    assert found["ScalingPolicy"]["involvedObject"]["uid"] == uid
    assert found["ScalingPolicy"]["message"] == found["Deployment"]["message"]
    assert f"rule {spaces.namespace}/web/busy" in spaces.plane.kubectl("describe", "scp", "web", "-n", spaces.namespace).stdout


def test_an_invalid_generation_is_stalled_and_a_valid_one_is_ready_again(spaces):  # noqa: F811
    spaces.daemon()
    broken = policy(spaces.namespace)
    broken["spec"]["target"]["min"] = 20
    spaces.apply(broken)
    ready = wait_condition(spaces, "Ready", "False", "Invalid")
    assert "spec.target" in ready["message"] and ready["observedGeneration"] == 1
    assert wait_condition(spaces, "Stalled", "True", "Invalid")["message"] == ready["message"]
    spaces.apply(policy(spaces.namespace))
    assert wait_condition(spaces, "Ready", "True", "Ready")["observedGeneration"] == 2
    wait_condition(spaces, "Stalled", "False", "Ready")


def test_the_status_follows_a_judgement_at_once(spaces):  # noqa: F811
    """Not at the next round: the policy that takes over is ready in the second in which the daemon says so."""
    daemon = spaces.daemon()
    spaces.apply(policy(spaces.namespace))
    wait_condition(spaces, "Ready", "True", "Ready")
    names = [f"x-{number}" for number in range(3)]  # in this order also within a second
    for name in names:
        spaces.apply(policy(spaces.namespace, name=name, target="web"))
        wait_condition(spaces, "Ready", "False", "TargetTaken", name)
    for former, name in zip(["web", *names], names):
        spaces.delete(former)
        since = wait_condition(spaces, "Ready", "True", "Ready", name)["lastTransitionTime"]
        line = [line for line in daemon.process.log_text().splitlines() if f"policy={spaces.namespace}/{name} " in line and "is in force" in line][-1]
        said = datetime.fromisoformat(line.split()[0][3:].replace("Z", "+00:00"))
        assert (datetime.fromisoformat(since.replace("Z", "+00:00")) - said).total_seconds() < 5


def test_what_blocks_a_policy_is_a_condition(spaces):  # noqa: F811
    spaces.daemon()
    spaces.apply(policy(spaces.namespace, annotations={"alertscaler.io/paused": "release"}))
    assert "release" in wait_condition(spaces, "Blocked", "True", "Paused")["message"]
    spaces.apply(policy(spaces.namespace))
    wait_condition(spaces, "Blocked", "False", "NotBlocked")


def test_a_pause_is_an_event_and_a_metric(spaces):  # noqa: F811
    """Once for the begin and once for the end, also with another leader in between."""
    daemon = spaces.daemon()
    spaces.apply(policy(spaces.namespace))
    wait_condition(spaces, "Blocked", "False", "NotBlocked")
    kubectl, name = spaces.plane.kubectl, spaces.namespace
    path = f"/api/v1/namespaces/{name}/events"

    def events():
        found = [e for e in spaces.plane.admin.get(path)["items"] if e["involvedObject"]["kind"] == "ScalingPolicy"]
        assert all(e["involvedObject"]["uid"] == spaces.get()["metadata"]["uid"] and e["type"] == "Normal" for e in found)
        return [(e["reason"], e["message"]) for e in sorted(found, key=lambda e: e["metadata"]["creationTimestamp"])]

    def paused():
        return daemon.metrics().sum("alertscaler_policy_paused", namespace=name, policy="web")
    assert events() == [] and "alertscaler_policy_paused" not in daemon.get("/metrics").text
    kubectl("annotate", "scp", "web", "-n", name, "alertscaler.io/paused-up=release at 14:00")
    begin = ("Paused", "annotation alertscaler.io/paused-up: release at 14:00")
    eventually(lambda: events() == [begin], what="the begin is an Event")
    assert paused() == 1
    assert "release at 14:00" in kubectl("describe", "scp", "web", "-n", name).stdout
    daemon.kill()
    daemon.start()
    steadily(lambda: events() == [begin], 3)
    kubectl("annotate", "scp", "web", "-n", name, "alertscaler.io/paused-up-")
    eventually(lambda: events() == [begin, ("Resumed", "The policy is not blocked any more.")])
    assert "alertscaler_policy_paused" not in daemon.get("/metrics").text


def test_only_policies_with_the_labels_are_in_force(spaces):  # noqa: F811
    daemon = spaces.daemon(selector={"team": "shop"})
    spaces.apply(policy(spaces.namespace, labels={"team": "shop"}))
    spaces.apply(policy(spaces.namespace, name="other", target="other"))
    eventually(lambda: spaces.is_in_force(daemon))
    assert not spaces.is_in_force(daemon, "other")
    spaces.apply(policy(spaces.namespace, labels={"team": "else"}))
    eventually(lambda: not spaces.is_in_force(daemon))
    assert spaces.get("other")["status"] == {"observedGeneration": -1}


def test_policies_follow_the_labels_of_their_namespace(spaces):  # noqa: F811
    rights = [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list", "watch"]}]
    spaces.plane.grant("alertscaler", "alertscaler", rights, cluster_wide=True)
    daemon = spaces.daemon(namespaces=[f"{spaces.namespace}*"], namespace_selector={"scaled": spaces.namespace})
    spaces.apply(policy(spaces.namespace))
    steadily(lambda: not spaces.is_in_force(daemon), 1.5)
    path = f"/api/v1/namespaces/{spaces.namespace}"
    spaces.plane.admin.patch(path, {"metadata": {"labels": {"scaled": spaces.namespace}}})
    eventually(lambda: spaces.is_in_force(daemon), what="the policy of a namespace that matches now")
    spaces.plane.admin.patch(path, {"metadata": {"labels": {"scaled": None}}})
    eventually(lambda: not spaces.is_in_force(daemon), what="the namespace does not match any more")
    spaces.plane.admin.patch(path, {"metadata": {"labels": {"scaled": spaces.namespace}}})
    eventually(lambda: spaces.is_in_force(daemon))


def test_a_role_in_the_namespace_is_enough(spaces, tmp_path):  # noqa: F811
    """A service account without any right elsewhere; the namespace `kube-public`, for which it has none, holds nothing up."""
    name = spaces.namespace
    rights = RIGHTS + [{"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get", "update", "patch"]},
                       {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}]
    spaces.plane.create_account(name, "narrow")
    spaces.plane.grant(name, "narrow", rights)
    spaces.plane.wait_allowed(f"system:serviceaccount:{name}:narrow", RIGHTS, name)
    token = tmp_path / "narrow"
    token.write_text(spaces.plane.account_token(name, "narrow"))
    spaces.kubeconfig = spaces.plane.write_kubeconfig("narrow", tokenFile=str(token))
    daemon = spaces.daemon(namespaces=[name, "kube-public"])
    spaces.apply(policy(name))
    eventually(lambda: spaces.is_in_force(daemon), timeout=40, what="the policy is in force")
    daemon.notify(notification(alert({"alertname": "Busy", "namespace": name})))
    eventually(lambda: spaces.sizes()["web"] == 4)
    wait_condition(spaces, "Ready", "True", "Ready")
    assert "namespaces/kube-public/scalingpolicies: HTTP 403" in daemon.process.log_text()


@pytest.mark.seconds(600)
def test_a_new_leader_writes_only_what_differs(spaces, tenants):  # noqa: F811
    """After a kill, of policies that have scaled, have a value, are refused or never did anything: the same version of each object."""
    url = f"http://127.0.0.1:{tenants.server_port}" + "/ns/{{ .Namespace }}"
    http = {"http_headers": {"X-Scope-OrgID": {"values": ["team-{{ .Namespace }}"]}}}
    daemon = spaces.daemon(prometheus={"url": url, "http_config": http})
    for name in ("idle", "ended"):
        spaces.plane.admin.create(deployment(spaces.namespace, name, 3, None))
    track = {"name": "load", "always": True, "track": {"averageValue": "30", "query": "load"}}
    ended = policy(spaces.namespace)["spec"]["rules"][0]
    spaces.apply(policy(spaces.namespace))
    spaces.apply(policy(spaces.namespace, name="other", target="other", rules=[track]))
    spaces.apply(policy(spaces.namespace, name="idle", target="idle"))
    spaces.apply(policy(spaces.namespace, name="ended", target="ended", rules=[{**ended, "match": ['alertname="Ended"']}]))
    steadily(lambda: True, 1.1)     # ages are in seconds
    spaces.apply(policy(spaces.namespace, name="taken", target="web"))
    names = ("web", "other", "idle", "ended", "taken")
    eventually(lambda: all(spaces.is_in_force(daemon, name) for name in names[:-1]))
    over = notification(alert({"alertname": "Ended", "namespace": spaces.namespace}))
    daemon.notify(spaces.busy())
    daemon.notify(over)
    eventually(lambda: (spaces.sizes()["web"], spaces.sizes()["ended"]) == (4, 4))
    daemon.notify(notification(alert({"alertname": "Ended", "namespace": spaces.namespace}, "resolved")))
    eventually(lambda: spaces.sizes()["ended"] == 3)

    def versions():
        return {name: spaces.get(name)["metadata"]["resourceVersion"] for name in names}

    def has_settled():  # the end of a lock, or a value, is written within a round and a minute
        before = versions()
        steadily(lambda: True, 85)
        return versions() == before
    eventually(lambda: all(conditions(spaces.get(name)) for name in names))
    eventually(has_settled, timeout=300, what="nothing more is written")
    before = {name: spaces.get(name) for name in names}
    daemon.kill()
    daemon.start()
    eventually(lambda: all(spaces.is_in_force(daemon, name) for name in names[:-1]))
    steadily(lambda: True, 70)  # a round, and the longest time until a value is written
    for name in names:
        after = spaces.get(name)
        assert after["status"] == before[name]["status"]
        assert after["metadata"]["resourceVersion"] == before[name]["metadata"]["resourceVersion"], name
