"""Changes that wait for a person, on the real API server: approved, run out, over kill -9, over another replica, and with the object
made anew under the same name."""
import json
import pathlib
import subprocess

import jsonschema
import pytest

from harness.control_plane import ADMIN_TOKEN
from harness.kube import path_of
from harness.notification import alert, notification
from harness.past import wait
from harness.wait import eventually, steadily
from test_others import deployment

pytestmark = pytest.mark.kubernetes
SCHEMA = json.loads((pathlib.Path(__file__).parents[2] / "docs" / "action-log.schema.json").read_text())


class Scene:
    """A Deployment of 4, and daemons whose rule wants 14, which needs an approval."""

    def __init__(self, control_plane, namespace, make_daemon, tmp_path):
        self.admin, self.namespace, self.make_daemon = control_plane.admin, namespace, make_daemon
        self.path = path_of("apps/v1", "Deployment", namespace, "web")
        self.kubeconfig = str(control_plane.write_kubeconfig(f"approvals-{namespace}", token=ADMIN_TOKEN))
        self.token = tmp_path / "token"
        self.token.write_text("secret")
        self.create()

    def create(self):
        self.admin.create(deployment("web", 4), self.namespace)

    @property
    def size(self):
        return self.admin.replicas(self.path)

    def start(self, config=None, target=None, **options):
        address = {"kind": "Deployment", "namespace": self.namespace, "name": "web", **(target or {})}
        daemon = self.make_daemon({
            "targets": {"web": {"kubernetes": address, "max": 20,
                                "cooldown": {"up": "0s", "down": "0s"}, "approval": {"above": 5, "for": "10m"}}},
            "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "web", "scale_up": {"by": 10}, "once": True}],
        }, {"clusters": {"default": {"kubeconfig": self.kubeconfig}}, **(config or {}),
            "receiver": {"tokens": [{"name": "ada", "file": str(self.token), "permissions": ["notify", "read", "admin"]}]},
            }, flags=["--web.enable-admin-api"], start=False, **options)
        daemon.headers = {"Authorization": "Bearer secret"}
        return daemon.start()


@pytest.fixture
def scene(control_plane, namespace, make_daemon, tmp_path):
    return Scene(control_plane, namespace, make_daemon, tmp_path)


def fire(daemon):
    daemon.notify(notification(alert({"alertname": "Busy"})))


def waiting(daemon):
    answer = daemon.get("/api/v1/approvals")
    return [each for each in answer.json["data"] if each["answer"] == "waiting"] if answer.ok else []


def wait_request(daemon):
    """Once it is durable: the API shows it before."""
    request = eventually(lambda: waiting(daemon), what="it is asked")[0]
    daemon.wait_record("approval", event="asked", id=request["id"])
    return request


def approve(daemon, request):
    return daemon.post(f"/api/v1/approvals/{request['id']}/approve", {"reason": "the sale"}).status


def events(daemon):
    return [record["event"] for record in daemon.records("approval")]


def test_approved_over_a_kill(scene):
    daemon = scene.start()
    fire(daemon)
    request = wait_request(daemon)
    assert (request["from"], request["to"]) == (4, 14) and scene.size == 4
    daemon.kill()
    daemon.start()
    assert wait_request(daemon)["id"] == request["id"]
    assert approve(daemon, request) == 200
    daemon.kill()                   # the answer is durable, whatever became of the change
    daemon.start()

    def is_done():                  # the approval may have gone with an intent of which nobody knows what became: it is asked anew
        for again in waiting(daemon):
            assert again["id"] != request["id"], "it was answered"
            approve(daemon, again)  # too late where the former's change arrives only now
        return scene.size == 14

    eventually(is_done, what="the approved size")
    action = daemon.wait_record("action", to=14, outcome="applied")
    used = daemon.wait_record("approval", event="used", id=action["approval"])
    assert (used["from"], used["to"]) == (4, 14)
    assert len({r["id"] for r in daemon.records("approval", event="used")}) == len(daemon.records("approval", event="used")), "each is used once"
    assert approve(daemon, request) in (404, 409) and scene.size == 14


def test_nobody_answers(scene):
    daemon = scene.start()
    fire(daemon)
    request = wait_request(daemon)
    wait(daemon, 11 * 60)
    assert daemon.wait_record("approval", event="expired")["id"] == request["id"]
    eventually(lambda: daemon.records("decision")[-1]["output"]["reason"] == "not_approved")
    assert approve(daemon, request) == 409
    steadily(lambda: scene.size == 4, 1)


def test_another_replica_goes_on(scene):
    config = {"state": {"store": "kubernetes", "namespace": scene.namespace,
                        # Longer than a slow machine stands still: the former leads until it is killed.
                        "lease": {"duration": "12s", "renew_deadline": "8s", "retry_period": "500ms"}}}
    former = scene.start(config, name="pod-0", env={"POD_NAME": "pod-0"})
    fire(former)
    request = wait_request(former)
    former.kill()
    later = scene.start(config, name="pod-1", env={"POD_NAME": "pod-1"})
    taken = eventually(lambda: waiting(later), what="the later one has it")[0]
    assert {**taken, "until": None} == {**request, "until": None}       # which is computed from two clocks
    assert scene.size == 4
    assert approve(later, request) == 200
    eventually(lambda: scene.size == 14, what="the approved size")
    later.wait_record("approval", event="used")
    assert events(later)[-2:] == ["approved", "used"]      # before them the record that the former may not have written any more


def test_another_object_of_the_name_is_another_question(scene):
    daemon = scene.start()
    fire(daemon)
    request = wait_request(daemon)
    scene.admin.delete(scene.path)
    scene.create()
    assert approve(daemon, request) in (200, 404, 409)      # it may have been seen already
    again = eventually(lambda: [each for each in waiting(daemon) if each["id"] != request["id"]], what="it is asked anew")[0]
    daemon.wait_record("approval", event="void", id=request["id"])
    assert "used" not in events(daemon) and scene.size == 4
    assert approve(daemon, again) == 200
    eventually(lambda: scene.size == 14, what="the approved size")


def test_sizes_are_shown_in_their_unit(scene):
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"memory": "4Gi"}}
    scene.admin.create(config_map, scene.namespace)
    path = path_of("v1", "ConfigMap", scene.namespace, "web")
    daemon = scene.start(target={"apiVersion": "v1", "kind": "ConfigMap", "field": "data.memory", "unit": "1Gi"})
    fire(daemon)
    request = wait_request(daemon)
    assert (request["to"], request["unit"]) == (14, "1Gi")

    def run(*words):
        return subprocess.run([daemon.binary, *map(str, words)], text=True, capture_output=True, check=True, timeout=60).stdout

    assert "4 (4Gi) \u2192 14 (14Gi)" in daemon.get("/").text
    assert "from 4 (4Gi) to 14 (14Gi)" in run("status", f"--url={daemon.url}", f"--token-file={scene.token}")
    assert approve(daemon, request) == 200
    eventually(lambda: scene.admin.get(path)["data"]["memory"] == "14Gi", what="the approved value")
    daemon.wait_record("approval", event="used")
    assert "4 (4Gi) -> 14 (14Gi): asked" in run("log", "--kind=approval", daemon.log_file)
    decision = next(r for r in daemon.records("decision") if r["output"]["reason"] == "scaled")
    assert "as far as 14 (14Gi)" in run("explain", "--target=web", "--at", decision["time"], daemon.log_file)
    for record in daemon.records():
        jsonschema.validate(record, SCHEMA)
