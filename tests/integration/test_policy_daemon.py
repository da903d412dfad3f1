"""Scaling policies through the built binary, on the real API server: what comes, changes, goes, breaks, is paused or belongs to another."""
import json
import pathlib
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from harness.deploy import install
from harness.notification import alert, notification
from harness.played import run
from harness.wait import eventually, steadily
from test_listed_objects import deployment, sizes
from test_policies import definition  # noqa: F401

pytestmark = [pytest.mark.kubernetes, pytest.mark.since(25, "the API server checks rules of CustomResourceDefinitions")]
GROUP, USER = "alertscaler.io", "system:serviceaccount:alertscaler:alertscaler"
RIGHTS = [{"apiGroups": [GROUP], "resources": ["scalingpolicies"], "verbs": ["get", "list", "watch"]},
          {"apiGroups": [GROUP], "resources": ["scalingpolicies/status"], "verbs": ["patch"]}]
API = f"/apis/{GROUP}/v1alpha1"


def policy(namespace, name="web", target="web", rules=None, **metadata):
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": "ScalingPolicy", "metadata": {"namespace": namespace, "name": name, **metadata},
            "spec": {"target": {"kubernetes": {"kind": "Deployment", "name": target}, "min": 1, "max": 9, "cooldown": {"up": "1s", "down": "1s"}},
                     "rules": rules or [{"name": "busy", "match": ['alertname="Busy"'], "scaleUp": {"by": 1}, "maxSteps": 1,
                                         "onResolved": {"giveBack": {}}, "guard": {"none": True}}]}}


class Plane:
    """A namespace with a Deployment `web` of 3, and a daemon that watches policies there."""

    def __init__(self, control_plane, namespace, make_daemon, tmp_path):
        self.plane, self.namespace = control_plane, namespace
        token = tmp_path / "token"
        token.write_text(control_plane.account_token("alertscaler", "alertscaler"))
        self.kubeconfig = control_plane.write_kubeconfig("alertscaler", tokenFile=str(token))
        self.make_daemon = make_daemon
        for name in ("web", "other"):
            control_plane.admin.create(deployment(namespace, name, 3, None))

    def daemon(self, rules=None, start=True, flags=(), env=None, **objects):
        config = {"clusters": {"default": {"kubeconfig": str(self.kubeconfig)}},
                  "objects": {"enabled": True, "namespaces": [self.namespace], **objects}}
        if not rules:
            config["allow_empty_rules"] = True
        daemon = self.make_daemon(rules or {"rules": []}, config, flags=flags, env=env or {}, start=False)
        daemon.config = config
        return daemon.start() if start else daemon

    def apply(self, item):
        done = self.plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(item), check=False)
        assert done.returncode == 0, done.stderr

    def delete(self, name="web"):
        self.plane.kubectl("delete", "scp", name, "-n", self.namespace)

    def sizes(self):
        return sizes(self.plane, self.namespace)

    def is_in_force(self, daemon, name="web", namespace=None):
        return any(r["name"].startswith(f"{namespace or self.namespace}/{name}/") for r in daemon.get("/api/v1/rules").json["data"])

    def get(self, name="web"):
        return self.plane.admin.get(f"{API}/namespaces/{self.namespace}/scalingpolicies/{name}")

    def busy(self, status="firing", **labels):
        return notification(alert({"alertname": "Busy", "namespace": self.namespace, **labels}, status))


@pytest.fixture
def spaces(control_plane, namespace, make_daemon, tmp_path, definition):  # noqa: F811
    install(control_plane, "namespace.yaml", "serviceaccount.yaml", "role.yaml", "role-cluster-wide.yaml")
    api = "rbac.authorization.k8s.io/v1"
    control_plane.admin.create({"apiVersion": api, "kind": "ClusterRole", "metadata": {"name": f"policies-{namespace}"}, "rules": RIGHTS})
    control_plane.admin.create({
        "apiVersion": api, "kind": "ClusterRoleBinding", "metadata": {"name": f"policies-{namespace}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"policies-{namespace}"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "alertscaler", "name": "alertscaler"}]})
    control_plane.wait_allowed(USER, RIGHTS, namespace)
    yield Plane(control_plane, namespace, make_daemon, tmp_path)
    control_plane.ensure_running()


def test_a_policy_scales_for_the_alerts_of_its_namespace(spaces):
    daemon = spaces.daemon()
    spaces.apply(policy(spaces.namespace))
    eventually(lambda: spaces.is_in_force(daemon), what="the policy is in force")
    daemon.notify(notification(alert({"alertname": "Busy", "namespace": "elsewhere"})))
    daemon.notify(spaces.busy())
    eventually(lambda: spaces.sizes()["web"] == 4, what="the policy's alert scales")
    daemon.notify(spaces.busy("resolved"))
    eventually(lambda: spaces.sizes()["web"] == 3, what="the size is given back")
    record = daemon.wait_record("action", outcome="applied")
    assert record["rule"] == f"{spaces.namespace}/web/busy"
    assert {a["outcome"] for n in daemon.notifications() for a in n["alerts"] if a["labels"]["namespace"] == "elsewhere"} == {"no_rule"}


def test_the_api_and_get_show_what_kubectl_shows(spaces):
    daemon = spaces.daemon()
    broken = policy(spaces.namespace, "broken", "other")
    broken["spec"]["target"]["min"] = 20
    spaces.apply(broken)
    spaces.apply(policy(spaces.namespace))
    eventually(lambda: spaces.is_in_force(daemon))
    daemon.notify(spaces.busy())
    eventually(lambda: spaces.sizes()["web"] == 4)
    web, refused = f"{spaces.namespace}/web", f"{spaces.namespace}/broken"
    path = f"/api/v1/policies/{web}"
    eventually(lambda: daemon.get(path).json["data"]["size"] == 4)
    eventually(lambda: (spaces.get().get("status") or {}).get("size") == 4, what="the status of the object is written")
    shown, status = daemon.get(path).json["data"], spaces.get()["status"]
    for column in ("target", "size", "desired", "min", "max"):
        assert shown[column] == status[column], column
    assert shown["reason"] == status["lastDecision"]["reason"] and shown["rule"] == status["lastDecision"]["rule"] == "busy"
    assert shown["generation"] == status["observedGeneration"] == 1 and shown["uid"] == spaces.get()["metadata"]["uid"]
    assert {c["type"]: (c["status"], c["reason"]) for c in shown["status"]["conditions"]} == {
        c["type"]: (c["status"], c["reason"]) for c in status["conditions"]}
    assert daemon.target(web)["id"] == shown["target_id"]
    items = {each["id"]: each for each in daemon.get("/api/v1/policies").json["data"]}
    assert set(items) == {web, refused} and items[web] == {key: value for key, value in shown.items() if key != "status"}
    page = (pathlib.Path(__file__).parents[2] / "docs/api.md").read_text().split("\n## `/api/v1/policies`\n")[1]
    assert set(json.loads(re.search(r"```json\n(\{\n.*?)```", page, re.S)[1])) == set(items[web]) == set(items[refused])
    assert (items[refused]["ready"], items[refused]["obstacle"]["reason"], items[refused]["size"]) == (False, "Invalid", None)
    table = run("get", "policies", f"--url={daemon.url}").stdout.splitlines()
    assert [line.split()[0] for line in table[1:]] == [refused, web] and table[2].split()[1:4] == ["Deployment/web", "4", "4"]
    spaces.delete()
    eventually(lambda: run("get", "policies", "-o", "name", f"--url={daemon.url}").stdout.split() == [refused], what="the policy is gone")


def test_a_change_is_in_force_within_a_second_and_a_deletion_ends_it(spaces):
    daemon = spaces.daemon()
    spaces.apply(policy(spaces.namespace))
    eventually(lambda: spaces.is_in_force(daemon))
    rules = policy(spaces.namespace)["spec"]["rules"]
    spaces.apply(policy(spaces.namespace, rules=[{**rules[0], "scaleUp": {"by": 3}}]))
    eventually(lambda: any(r["action"] == {"scale_up": {"by": 3}} for r in daemon.get("/api/v1/rules").json["data"]), timeout=2)
    spaces.delete()
    eventually(lambda: not spaces.is_in_force(daemon), timeout=2)
    daemon.notify(spaces.busy())
    steadily(lambda: spaces.sizes() == {"web": 3, "other": 3}, 1)


def test_a_broken_generation_scales_nothing_and_loses_nothing(spaces):
    daemon = spaces.daemon()
    spaces.apply(policy(spaces.namespace))
    eventually(lambda: spaces.is_in_force(daemon))
    daemon.notify(spaces.busy())
    eventually(lambda: spaces.sizes()["web"] == 4)
    broken = policy(spaces.namespace)
    broken["spec"]["target"]["min"] = 20
    spaces.apply(broken)
    target = f"{spaces.namespace}/web"
    eventually(lambda: daemon.target(target)["paused"], what="the last generation is paused")
    assert "generation 2 is not in force: Invalid" in daemon.target(target)["paused"]["reason"]
    daemon.notify(spaces.busy("resolved"))
    steadily(lambda: spaces.sizes()["web"] == 4, 1.5)
    daemon.kill()
    daemon.start()
    steadily(lambda: spaces.sizes()["web"] == 4, 1.5)
    spaces.apply(policy(spaces.namespace))
    eventually(lambda: spaces.sizes()["web"] == 3, what="the stored size is given back")


def test_an_annotation_pauses_and_its_end_resumes(spaces):
    daemon = spaces.daemon()
    spaces.apply(policy(spaces.namespace, annotations={"alertscaler.io/paused-up": "sale"}))
    eventually(lambda: spaces.is_in_force(daemon))
    daemon.notify(spaces.busy())
    target = f"{spaces.namespace}/web"
    eventually(lambda: (daemon.target(target)["paused"] or {}).get("reason") == "sale")
    steadily(lambda: spaces.sizes()["web"] == 3, 1)
    spaces.apply(policy(spaces.namespace))
    eventually(lambda: spaces.sizes()["web"] == 4, what="the annotation is gone")


def test_a_rule_file_has_precedence_and_the_policy_takes_over(spaces):
    """With the lock, the steps and the size before the first step of the same alert."""
    files = {"targets": {"web": {"kubernetes": {"kind": "Deployment", "namespace": spaces.namespace, "name": "web"}, "min": 1, "max": 9,
                                 "cooldown": {"up": "1s", "down": "1s"}}},
             "rules": [{"name": "file", "match": ['alertname="Busy"'], "target": "web", "scale_up": {"by": 2}, "max_steps": 1,
                        "on_resolved": "give_back", "guard": "none"}]}
    daemon = spaces.daemon(files)
    spaces.apply(policy(spaces.namespace))
    eventually(lambda: "a scaling policy is not in force" in daemon.process.log_text() and "reason=TargetTaken" in daemon.process.log_text())
    daemon.notify(spaces.busy())
    eventually(lambda: spaces.sizes()["web"] == 5)
    daemon.write_config({**daemon.config, "allow_empty_rules": True})
    daemon.write_rules({"rules": []})
    daemon.reload()
    eventually(lambda: spaces.is_in_force(daemon))
    steadily(lambda: spaces.sizes()["web"] == 5, 2)
    daemon.notify(spaces.busy("resolved"))
    eventually(lambda: spaces.sizes()["web"] == 3, what="the size before the first step")


def test_beside_an_hpa_the_policy_does_not_act(spaces):
    hpa = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"namespace": spaces.namespace, "name": "web"},
           "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "minReplicas": 1, "maxReplicas": 5,
                    "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]}}
    spaces.plane.admin.create(hpa)
    daemon = spaces.daemon()
    spaces.apply(policy(spaces.namespace))
    target = f"{spaces.namespace}/web"
    eventually(lambda: spaces.is_in_force(daemon) and daemon.target(target)["paused"], what="the HPA is found")
    assert daemon.target(target)["paused"]["reason"] == "HPAFound: HorizontalPodAutoscaler web scales the same object"
    daemon.notify(spaces.busy())
    steadily(lambda: spaces.sizes()["web"] == 3, 1.5)
    spaces.apply(policy(spaces.namespace, annotations={"alertscaler.io/allow-hpa": "true"}))
    eventually(lambda: spaces.sizes()["web"] == 4)


def test_what_is_given_back_survives_a_kill(spaces):
    daemon = spaces.daemon()
    rules = policy(spaces.namespace)["spec"]["rules"]
    spaces.apply(policy(spaces.namespace, rules=[{**rules[0], "onResolved": {"giveBack": {"after": "3s"}}}]))
    eventually(lambda: spaces.is_in_force(daemon))
    daemon.notify(spaces.busy())
    eventually(lambda: spaces.sizes()["web"] == 4)
    daemon.notify(spaces.busy("resolved"))
    daemon.kill()
    daemon.start()
    eventually(lambda: spaces.sizes()["web"] == 3)


@pytest.fixture
def tenants():
    """A server of queries for which each tenant has its own path and header. It answers with 90 for the load."""
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            seen.append((self.path, self.headers["X-Scope-OrgID"], body))
            answer = json.dumps({"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}, "value": [0, "90"]}]}}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    server.seen = seen
    yield server
    server.shutdown()
    server.server_close()


def test_queries_go_to_the_namespace_of_their_policy(spaces, tenants):
    url = f"http://127.0.0.1:{tenants.server_port}" + "/ns/{{ .Namespace }}"
    daemon = spaces.daemon(prometheus={"url": url, "http_config": {"http_headers": {"X-Scope-OrgID": {"values": ["team-{{ .Namespace }}"]}}}})
    track = {"name": "load", "always": True, "track": {"averageValue": "15", "query": 'load{namespace="kube-system"}'}}
    spaces.apply(policy(spaces.namespace, rules=[track]))
    eventually(lambda: spaces.sizes()["web"] == 6, what="90 in all, 15 each")
    assert {(path, tenant) for path, tenant, _ in tenants.seen} == {(f"/ns/{spaces.namespace}/api/v1/query", f"team-{spaces.namespace}")}


def test_without_a_server_for_tenants_a_query_is_refused(spaces):
    daemon = spaces.daemon()
    track = {"name": "load", "always": True, "track": {"averageValue": "15", "query": "load"}}
    spaces.apply(policy(spaces.namespace, rules=[track]))
    eventually(lambda: "reason=QueriesNotAllowed" in daemon.process.log_text())
    assert not spaces.is_in_force(daemon)


def test_the_action_log_has_each_generation(spaces):
    daemon = spaces.daemon()
    item = policy(spaces.namespace)
    spaces.apply(item)
    eventually(lambda: spaces.is_in_force(daemon))
    broken = policy(spaces.namespace)
    broken["spec"]["target"]["min"] = 20
    spaces.apply(broken)
    refused = daemon.wait_record("policy", event="refused")
    assert refused["generation"] == 2 and refused["reason"] == "Invalid" and "spec.target" in refused["message"]
    spaces.delete()
    removed = daemon.wait_record("policy", event="removed")
    first = daemon.records("policy")[0]
    uid = first["uid"]
    assert first["event"] == "in_force" and first["namespace"] == spaces.namespace and json.loads(first["spec"]) == item["spec"]
    assert removed["uid"] == refused["uid"] == uid and "spec" not in removed


def test_a_namespace_has_its_own_limit(spaces):
    daemon = spaces.daemon(limits={"actions": 1, "per": "4s"})
    for name in ("web", "other"):
        spaces.apply(policy(spaces.namespace, name=name, target=name))
    eventually(lambda: spaces.is_in_force(daemon, "web") and spaces.is_in_force(daemon, "other"))
    daemon.notify(spaces.busy())
    eventually(lambda: sorted(spaces.sizes().values()) == [3, 4], what="one of the two grows")
    steadily(lambda: sorted(spaces.sizes().values()) == [3, 4], 2)
    eventually(lambda: sorted(spaces.sizes().values()) == [4, 4], what="the other one grows when the window is over")
    assert any(r["output"]["reason"] == "budget" for r in daemon.records("decision"))


def test_a_credential_for_rule_files_does_not_reach_policies(spaces, tmp_path):
    """Patterns without a slash, in notifications, commands, pages and the API; with a slash, and without patterns."""
    mine, web = f"{spaces.namespace}/*", f"{spaces.namespace}/web"
    narrowed = {"stars": {"rules": ["*"], "targets": ["*", "kubernetes*"]}, "star": {"targets": ["*"]},
                "mine": {"rules": [mine], "targets": [mine]}, "whole": {}}
    tokens = [{"name": name, "file": str(tmp_path / name), "permissions": ["notify", "read", "admin"], **access} for name, access in narrowed.items()]
    for name in narrowed:
        (tmp_path / name).write_text(name * 4)
    daemon = spaces.daemon(start=False, flags=["--web.enable-admin-api"])
    daemon.write_config({**daemon.config, "receiver": {"tokens": tokens}})

    def become(name):
        daemon.headers = {"Authorization": f"Bearer {name * 4}"}
    become("whole")
    daemon.start()
    spaces.apply(policy(spaces.namespace))
    eventually(lambda: spaces.is_in_force(daemon))
    assert daemon.process.log_text().count("that this matches") == 4, "a pattern with a slash may match a policy that comes"
    for name in ("star", "stars"):
        become(name)
        daemon.notify(spaces.busy())
        assert daemon.post(f"/api/v1/targets/{web}/pause", {"reason": "not mine"}).status == 403
        assert all(web not in daemon.get(path).text for path in ("/", "/rules", "/incidents"))
        assert daemon.get(f"/targets/{web}").status == 404
        assert daemon.get(f"/rules/{web}/busy").status == 404
    steadily(lambda: spaces.sizes()["web"] == 3, 1)
    assert {a["outcome"] for n in daemon.notifications() for a in n["alerts"]} == {"forbidden"}
    for name in ("mine", "whole"):
        become(name)
        assert daemon.post(f"/api/v1/targets/{web}/pause", {"reason": "mine"}).ok
        assert daemon.post(f"/api/v1/targets/{web}/resume", {"reason": "mine"}).ok
        assert all(web in daemon.get(path).text for path in ("/", "/rules", f"/targets/{web}"))
        for name in (f"{web}/busy", f"{web}/busy".replace("/", "%2F")):
            text = daemon.get(f"/rules/{name}").text
            assert f"<dt>ScalingPolicy</dt><dd>{web}</dd>" in text and "on_resolved:\n  give_back:" in text
    become("mine")
    daemon.notify(spaces.busy())
    eventually(lambda: spaces.sizes()["web"] == 4)


def test_a_reload_follows_the_namespaces(spaces):
    """One more, one less, none at all, and again: what a policy was told before does not change any more."""
    first, second = spaces.namespace, f"{spaces.namespace}-second"
    spaces.plane.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": second}})
    spaces.plane.admin.create(deployment(second, "web", 3, None))
    daemon = spaces.daemon()
    for namespace in (first, second):
        spaces.apply(policy(namespace))
    eventually(lambda: spaces.is_in_force(daemon))
    assert not spaces.is_in_force(daemon, namespace=second)

    def reload(**objects):
        daemon.write_config({**daemon.config, "objects": {**daemon.config["objects"], **objects}})
        daemon.reload()
    reload(namespaces=[first, second])
    eventually(lambda: spaces.is_in_force(daemon, namespace=second), what="the policy of the new namespace")
    daemon.notify(notification(alert({"alertname": "Busy", "namespace": second})))
    eventually(lambda: sizes(spaces.plane, second)["web"] == 4)
    eventually(lambda: spaces.get()["status"]["observedGeneration"] == 1)

    reload(namespaces=[second])
    eventually(lambda: not spaces.is_in_force(daemon), what="the policy of the namespace that is not selected any more")
    assert spaces.is_in_force(daemon, namespace=second)
    removed = daemon.wait_record("policy", event="removed")
    assert (removed["namespace"], removed["name"]) == (first, "web")
    daemon.notify(spaces.busy())
    changed = policy(first)
    changed["spec"]["target"]["max"] = 8
    spaces.apply(changed)
    steadily(lambda: (spaces.sizes()["web"], spaces.get()["status"]["max"]) == (3, 9), 2)

    reload(enabled=False)
    eventually(lambda: not spaces.is_in_force(daemon, namespace=second))
    daemon.wait_record("policy", event="removed", namespace=second)
    daemon.notify(notification(alert({"alertname": "Busy", "namespace": second}, "resolved")))
    steadily(lambda: sizes(spaces.plane, second)["web"] == 4, 1)

    reload(namespaces=[first, second])
    eventually(lambda: spaces.is_in_force(daemon) and spaces.is_in_force(daemon, namespace=second))
    daemon.notify(spaces.busy())
    eventually(lambda: spaces.sizes()["web"] == 4)
    eventually(lambda: spaces.get()["status"]["max"] == 8)
