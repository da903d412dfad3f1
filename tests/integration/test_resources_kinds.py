"""Resources of StatefulSets and DaemonSets, of templates beside pods, and of limits, on the real API server and controllers."""
import pytest

from harness.kube import path_of
from harness.wait import eventually, steadily
from test_resources import fire, make, nodes, requests, resources_of, wait_action    # noqa: F401  (make and nodes are fixtures)
from test_targets import settle


def workload(control_plane, namespace, kind):
    return control_plane.admin.get(path_of("apps/v1", kind, namespace, "cart"))


def template_request(control_plane, namespace, kind):
    return resources_of(workload(control_plane, namespace, kind))["requests"]["memory"]


@pytest.mark.parametrize("kind, pods", [("StatefulSet", 3), ("DaemonSet", 2)])
def test_a_template_rolls_out_and_the_next_step_waits_for_it(control_plane, namespace, make, kind, pods):
    """The controllers of these kinds watch no deadline: what says that a rollout has ended is the number of pods."""
    control_plane.kubelets.ready = lambda pod: (
        pod["metadata"]["namespace"] != namespace
        or pod["spec"]["containers"][0]["resources"]["requests"]["memory"] == "256Mi")
    try:
        daemon = make(kind=kind, rule={"once": False})
        fire(daemon)
        action = daemon.wait_record("action")
        assert (action["from"], action["to"], action["outcome"]) == (4, 5, "applied"), action
        eventually(lambda: [r for r in daemon.records("decision") if r["output"]["reason"] == "in_progress"], timeout=60)
        assert template_request(control_plane, namespace, kind) == "320Mi"
    finally:
        control_plane.kubelets.ready = lambda pod: True
    control_plane.kubelets.refresh()
    fire(daemon)
    wait_action(daemon, lambda record: (record["from"], record["to"]) == (5, 7))
    assert not daemon.records("action", outcome="did_not_come")
    eventually(lambda: len(requests(control_plane, namespace)) == pods and "256Mi" not in requests(control_plane, namespace),
               timeout=60, what="all pods are new")


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_pods_are_resized_in_place(control_plane, namespace, make, nodes, kind):
    daemon = make(kind=kind, apply="pods")
    before = len(requests(control_plane, namespace))
    fire(daemon)
    action = daemon.wait_record("action")
    assert (action["from"], action["to"], action["outcome"]) == (4, 5, "applied"), action
    assert requests(control_plane, namespace) == ["320Mi"] * before
    assert template_request(control_plane, namespace, kind) == "256Mi"


NEVER_ROLLS = [("Deployment", {"paused": True}), ("StatefulSet", {"updateStrategy": {"type": "OnDelete"}}),
               ("DaemonSet", {"updateStrategy": {"type": "OnDelete"}})]


@pytest.mark.parametrize("kind, spec", NEVER_ROLLS)
def test_the_template_too_where_that_replaces_no_pods(control_plane, namespace, make, nodes, kind, spec):
    if kind == "Deployment":       # one that is paused from the beginning makes no pods
        spec = {}
    daemon = make(kind=kind, spec=spec, apply="pods", template=True)
    if kind == "Deployment":
        control_plane.admin.patch(path_of("apps/v1", kind, namespace, "cart"), {"spec": {"paused": True}})
        settle(control_plane, workload(control_plane, namespace, kind))     # its status says so too: no conflict
    names = sorted(pod["metadata"]["uid"] for pod in control_plane.admin.get(path_of("v1", "Pod", namespace))["items"])
    fire(daemon)
    action = daemon.wait_record("action")
    assert action["outcome"] == "applied" and action["message"].endswith("; the template too"), action
    assert template_request(control_plane, namespace, kind) == "320Mi"
    assert set(requests(control_plane, namespace)) == {"320Mi"}
    steadily(lambda: sorted(pod["metadata"]["uid"] for pod in control_plane.admin.get(path_of("v1", "Pod", namespace))["items"])
             == names, 2)


def test_a_template_that_would_replace_the_pods_is_left_alone(control_plane, namespace, make, nodes):
    daemon = make(apply="pods", template=True)
    fire(daemon)
    action = daemon.wait_record("action")
    assert action["outcome"] == "applied"
    assert action["message"].endswith("the template is left alone, as its change would roll all pods"), action
    assert template_request(control_plane, namespace, "Deployment") == "256Mi"
    assert set(requests(control_plane, namespace)) == {"320Mi"}


@pytest.mark.parametrize("kind, spec", NEVER_ROLLS[1:])
def test_a_template_that_rolls_nothing_is_not_waited_for(control_plane, namespace, make, kind, spec):
    daemon = make(kind=kind, spec=spec, rule={"once": False})
    fire(daemon)
    wait_action(daemon, lambda record: (record["from"], record["to"]) == (4, 5))
    wait_action(daemon, lambda record: (record["from"], record["to"]) == (5, 7))
    assert set(requests(control_plane, namespace)) == {"256Mi"}, "the pods stay until somebody deletes them"


def test_a_limit_keeps_its_ratio_and_is_rounded_up_to_the_unit(control_plane, namespace, make, nodes):
    daemon = make(apply="pods", limit="300Mi")
    fire(daemon)
    assert daemon.wait_record("action")["outcome"] == "applied"
    limits = {pod["spec"]["containers"][0]["resources"]["limits"]["memory"]
              for pod in control_plane.admin.get(path_of("v1", "Pod", namespace))["items"]}
    assert limits == {"384Mi"}      # 320Mi x 300/256 = 375Mi


def test_a_kept_limit_is_reached_and_no_more(control_plane, namespace, make):
    daemon = make(limits="keep", limit="330Mi", rule={"scale_up": {"by": 5}})
    fire(daemon)
    action = daemon.wait_record("action")
    assert (action["from"], action["to"]) == (4, 5)
    assert resources_of(workload(control_plane, namespace, "Deployment")) == {
        "requests": {"memory": "320Mi"}, "limits": {"memory": "330Mi"}}
    decision = daemon.wait_record("decision")
    assert decision["output"]["limited_by"] == ["max"], decision["output"]
    fire(daemon, again="1")
    eventually(lambda: [r for r in daemon.records("decision") if r["output"]["reason"] == "at_max"], timeout=60)
