"""kill -9 in the middle of a rollout, before it is put back and between two pods: nothing is lost, nothing is done twice.

On the real API server, with the real Deployment controller. Each change of a Deployment's template and each resize of a pod
raises its `metadata.generation` by one, so that a change that was made twice is seen.
"""
import random
import time

import pytest

from harness.kube import path_of
from harness.wait import eventually, steadily
from test_resources import deployment, fire, make, nodes, requests, resources_of    # noqa: F401  (make and nodes are fixtures)


@pytest.fixture
def stuck(control_plane, namespace):
    """Pods of the namespace that ask for more than 256Mi never become ready."""
    control_plane.kubelets.ready = lambda pod: (
        pod["metadata"]["namespace"] != namespace
        or pod["spec"]["containers"][0]["resources"]["requests"]["memory"] == "256Mi")
    yield
    control_plane.kubelets.ready = lambda pod: True


def actions(daemon, outcome):
    return [(record["from"], record["to"]) for record in daemon.records("action") if record["outcome"] == outcome]


def check_put_back_once(control_plane, namespace, daemon):
    """The change and its put-back, each once, whatever was killed when."""
    item = deployment(control_plane, namespace)
    assert resources_of(item) == {"requests": {"memory": "256Mi"}, "limits": {"memory": "512Mi"}}
    assert item["metadata"]["generation"] == 3
    assert "alertscaler.io/resized" not in item["metadata"].get("annotations", {})
    assert actions(daemon, "applied") == [(4, 5), (5, 4)]
    assert actions(daemon, "did_not_come") == [(4, 5)]
    assert daemon.target("cart-memory")["did_not_come"]


def wait_put_back(control_plane, namespace, daemon):
    eventually(lambda: resources_of(deployment(control_plane, namespace))["requests"]["memory"] == "256Mi", timeout=90,
               what="the old request")
    eventually(lambda: (5, 4) in actions(daemon, "applied"), timeout=90, what="the record of the put-back")


def test_in_the_middle_of_a_rollout(control_plane, namespace, make, stuck):
    daemon = make(spec={"progressDeadlineSeconds": 5})
    fire(daemon)
    daemon.wait_record("action", outcome="applied")
    daemon.kill()
    eventually(lambda: any(condition.get("reason") == "ProgressDeadlineExceeded"
                           for condition in deployment(control_plane, namespace)["status"]["conditions"]),
               timeout=60, what="the deadline has passed")
    assert resources_of(deployment(control_plane, namespace))["requests"]["memory"] == "320Mi"
    daemon.start()
    wait_put_back(control_plane, namespace, daemon)
    steadily(lambda: deployment(control_plane, namespace)["metadata"]["generation"] == 3, 2)
    check_put_back_once(control_plane, namespace, daemon)


def test_before_it_is_put_back(control_plane, namespace, make, stuck):
    """A pause holds the put-back, so that the kill comes between what is told and what is done."""
    daemon = make(spec={"progressDeadlineSeconds": 3})
    control_plane.controller_manager.pause()        # the rollout, and so its deadline, begins after the pause
    fire(daemon)
    daemon.wait_record("action", outcome="applied")
    assert daemon.post("/api/v1/targets/cart-memory/pause", {"reason": "a test"}).status == 200
    control_plane.controller_manager.resume()
    daemon.wait_record("action", timeout=60, outcome="did_not_come")
    daemon.kill()
    daemon.start()
    steadily(lambda: resources_of(deployment(control_plane, namespace))["requests"]["memory"] == "320Mi", 2)
    assert daemon.post("/api/v1/targets/cart-memory/resume", {"reason": "a test"}).status == 200
    wait_put_back(control_plane, namespace, daemon)
    check_put_back_once(control_plane, namespace, daemon)


@pytest.mark.deep
def test_at_any_moment_of_a_rollout_that_fails(control_plane, namespace, make, stuck):
    daemon = make(spec={"progressDeadlineSeconds": 2})
    fire(daemon)
    numbers = random.Random(7)
    end = time.monotonic() + 25
    while time.monotonic() < end and (5, 4) not in actions(daemon, "applied"):
        time.sleep(numbers.uniform(0, 0.4))
        daemon.kill()
        daemon.start()
    wait_put_back(control_plane, namespace, daemon)
    check_put_back_once(control_plane, namespace, daemon)


def generations(control_plane, namespace):
    return {pod["metadata"]["name"]: pod["metadata"]["generation"]
            for pod in control_plane.admin.get(path_of("v1", "Pod", namespace))["items"]}


def test_between_two_pods(control_plane, namespace, make, nodes):
    daemon = make(apply="pods")
    before = generations(control_plane, namespace)
    nodes.answer = lambda pod: "silence"      # its kubelet says nothing, so that the next pod is not begun
    fire(daemon)
    eventually(lambda: requests(control_plane, namespace) == ["256Mi", "256Mi", "320Mi"])
    daemon.kill()
    nodes.answer = lambda pod: ""
    daemon.start()
    eventually(lambda: requests(control_plane, namespace) == ["320Mi"] * 3, timeout=60)
    eventually(lambda: actions(daemon, "applied"), timeout=60)
    steadily(lambda: requests(control_plane, namespace) == ["320Mi"] * 3, 2)
    assert generations(control_plane, namespace) == {name: number + 1 for name, number in before.items()}
    assert actions(daemon, "applied") == [(4, 5)]
    assert daemon.target("cart-memory")["replicas"] == 5


def test_at_any_moment_between_pods(control_plane, namespace, make, nodes):
    daemon = make(apply="pods")
    before = generations(control_plane, namespace)
    fire(daemon)
    numbers = random.Random(11)
    for _ in range(6):
        time.sleep(numbers.uniform(0, 0.3))
        daemon.kill()
        daemon.start()
    eventually(lambda: requests(control_plane, namespace) == ["320Mi"] * 3, timeout=60)
    eventually(lambda: actions(daemon, "applied"), timeout=60)
    assert generations(control_plane, namespace) == {name: number + 1 for name, number in before.items()}
    assert actions(daemon, "applied") == [(4, 5)]
