"""Kubernetes' own HPA beside our `track`: over the scenarios below, both come to the same sizes.

The controller is the real one, of the controller manager, with real HorizontalPodAutoscalers and Deployments; its metrics come
through the API server's aggregation layer. Our side has a twin of each Deployment, and the same readings from Prometheus' API.
Each size is computed by hand from docs/decision.md beside it. How it is played: harness/twins.py.

Where the two do not agree, the row says so (`ours`), and why (`differs`).
"""
import pytest

from harness import control_plane as kubernetes
from harness.deploy import install
from harness.twins import DOWN, LONG_AGO, NAMESPACE, UP, Metric, Pod, Scenario, Stage, World, policies
from harness.wait import eventually

pytestmark = pytest.mark.deep

NEWEST = 37         # of 1.x: tolerances of one's own and sizes of zero are as here since then


def average(goal, kind="external", **more):
    return Metric(kind, average_value=goal, **more)


def value(goal, kind="external"):
    return Metric(kind, value=goal)


def utilization(goal, kind="resource", resource="cpu"):
    return Metric(kind, utilization=goal, resource=resource)


def at(*readings, **more):
    """at(size, reading...): what numbers lead to which size."""
    size, *readings = readings
    return Stage(size, readings, **more)


def pods(size, *values, **more):
    """What these pods lead to; a text is the value of a pod as they usually are. New pods have none."""
    return Stage(size, pods=[Pod(one) if one is None or isinstance(one, str) else one for one in values], **more)


YOUNG = dict(ready=False, age=30, changed=30)           # not ready, and still within the time for starting
PENDING, FAILED = Pod(ready=None, phase="Pending"), Pod("0.900", phase="Failed")
NOT_READY = Pod(ready=False)
LEGACY = {"scaleUp": policies(("Percent", 100, 15), ("Pods", 3, 15)), "scaleDown": {}}      # as docs/from-hpa.md has it

# 90 % of what three pods ask for, at a goal of 50 %: if a fourth counts as idle, 67 / 50 x 4 is 5.36; if its 180 % counts,
# 112 / 50 x 4 is 8.96.
THREE_AND = ("0.450", "0.450", "0.450")
IDLE, COUNTED = 6, 9

ROWS = [
    # One number, and a goal for its share in each pod
    Scenario("sum", 2, [average("100")], [at(4, "350"), at(11, "1100"), at(1, "90")]),
    Scenario("sum-upper-edge", 10, [average("100")], [at(10, "1100"), at(12, "1101")]),
    Scenario("sum-lower-edge", 10, [average("100")], [at(10, "900"), at(9, "899")]),
    Scenario("sum-of-thousandths", 1, [average("0.1")], [at(3, "0.3"), at(7, "0.7"), at(8, "0.771")]),
    Scenario("sum-of-series", 2, [average("100")], [at(4, ["100", "250"])]),
    Scenario("sum-of-an-object", 4, [average("400", "object")], [at(8, "3000")]),

    Scenario("goal-finer-than-a-thousandth", 1, [average("0.0015")], [at(3, "0.006", ours=4)],
             differs="HPA rounds goals up to thousandths, we only those of single pods (docs/decision.md)"),

    # Tolerances
    Scenario("tolerances-of-its-own", 10, [average("100")], tolerance={"up": 5, "down": 20},
             stages=[at(10, "1050"), at(11, "1051"), at(11, "880"), at(9, "879")]),
    Scenario("no-tolerance", 10, [average("100")], tolerance={"up": 0, "down": 0}, stages=[at(11, "1001"), at(11, "1100"), at(10, "1000")]),
    Scenario("tolerance-of-41-percent", 10, [average("100")], tolerance={"up": 10, "down": 41}, stages=[at(10, "590", ours=6)],
             differs="1 - 0.41 is 0.5900000000000001 in doubles, more than 590 / 1000, and HPA's 0.41 is 41 x 0.001, a little more"),

    # Bounds
    Scenario("bounds", 3, [average("100")], min=2, max=8, stages=[at(8, "5000"), at(8, "9000"), at(2, "1"), at(2, "0")]),
    Scenario("above-max", 12, [average("100")], max=6, stages=[at(6, None), at(5, "500")]),
    Scenario("below-min", 1, [average("100")], min=3, stages=[at(3, None), at(5, "500")]),
    Scenario("set-out-of-bounds", 4, [average("100")], min=2, max=6, stages=[at(4, "400"), at(6, None, set=9), at(2, None, set=1)]),
    Scenario("set-within-bounds", 4, [average("100")], [at(4, "400"), at(7, None, set=7), at(4, "400")]),
    Scenario("bounds-before-policies", 12, [average("100")], max=6, behavior={
        "scaleUp": policies(select="Disabled"), "scaleDown": policies(select="Disabled", window=0)}, stages=[at(6, None), at(6, "100")]),

    # No reading
    Scenario("no-reading", 3, [average("100")], [at(3, None), at(6, "600"), at(6, None)]),
    Scenario("no-reading-of-an-object", 3, [value("100", "object")], [at(3, None), at(6, "200")]),
    Scenario("negative", 3, [average("100")], [at(20, "-100", ours=3)],
             differs="a number below zero is no reading to us (docs/rules.md); HPA takes a sum below zero for one that has overflown"),
    Scenario("negative-value", 3, [value("100")], [at(1, "-100", ours=3)],
             differs="a number below zero is no reading to us (docs/rules.md); HPA computes with it"),
    Scenario("negative-pods", 2, [average("100", "pods")], [pods(4, "500", "-100", ours=2)],
             differs="a number below zero is no reading to us (docs/rules.md); HPA computes with it"),

    # Several metrics
    Scenario("highest-wins", 2, [average("100"), average("30")], [
        at(7, "600", "210", again=True), at(3, "300", "60", again=True)]),
    Scenario("one-missing", 5, [average("100"), average("30")], [
        at(5, None, "60", again=True), at(8, None, "240", again=True), at(8, None, None, again=True)]),
    Scenario("one-content", 4, [average("100"), average("30")], [at(4, "400", "30", again=True), at(6, "400", "180", again=True)]),
    Scenario("one-of-pods", 3, [average("100", "pods"), average("30")], [
        pods(3, "100", "100", "100", readings=(None, "30"), again=True), pods(6, "100", "100", "100", readings=(None, "180"), again=True)]),

    # To zero and back
    Scenario("zero", 2, [average("100")], min=0, stages=[at(0, "0"), at(0, "0"), at(1, "1"), at(3, "250")]),
    Scenario("zero-value", 1, [value("100")], min=0, stages=[at(0, "0"), at(2, "105")]),
    Scenario("switched-off", 2, [average("100")], [at(0, "500", set=0, disabled=True)]),
    Scenario("zero-by-hand", 2, [average("100")], min=0, stages=[at(2, "200"), at(0, "300", set=0, disabled=True, ours=3)],
             differs="since 1.37 an HPA comes back only from a zero of its own; min: 0 is the way back from any zero (docs/rules.md)"),

    # One number, and a goal for itself: times the pods that are ready
    Scenario("value-upper-edge", 4, [value("0.7")], [at(4, "0.77"), at(5, "0.771")]),
    Scenario("value-lower-edge", 10, [value("0.7")], [at(10, "0.63"), at(9, "0.629")]),
    Scenario("value-exact", 1, [value("0.7")], [at(11, "7.7")]),
    Scenario("value-of-an-object", 4, [value("2000", "object")], [at(6, "3000", new=NOT_READY, pods=[Pod()] * 4), at(3, "1000")]),
    Scenario("value-of-ready-pods", 6, [value("2000", "object")], [
        at(8, "4000", pods=[Pod()] * 4, new=NOT_READY),                     # 2 x 4
        at(3, "3000", pods=[Pod()] * 2, new=NOT_READY),                     # 1.5 x 2, although there is too much to do
        at(3, "2100", pods=[Pod()], new=NOT_READY),                         # within the tolerance
        at(1, "3000", new=NOT_READY)]),                                     # 1.5 x 0
    Scenario("value-of-deleted-pods", 2, [value("100")], [at(6, "200", pods=[Pod(deleting=True)])]),    # 2 x 3: they are ready still
    Scenario("value-of-pods-not-ready", 6, [value("2000")], [at(2, "1000", pods=[Pod()] * 4, new=NOT_READY)]),
    Scenario("value-with-pending-pods", 5, [value("100")], [at(6, "200", pods=[Pod()] * 3, new=PENDING)]),

    # A number of each pod
    Scenario("pods", 4, [average("100", "pods")], [pods(6, *["150"] * 4), pods(3, *["40"] * 6)]),
    Scenario("pods-one-missing-up", 4, [average("100", "pods")], [pods(5, "150", "150", "150", None)]),         # 112.5 x 4
    Scenario("pods-one-missing-stay", 4, [average("100", "pods")], [pods(4, "140", "140", "140", None)]),       # 105
    Scenario("pods-missing-turn-it", 3, [average("100", "pods")], [pods(3, "130", None, None)]),                # 43.3
    Scenario("pods-one-missing-down", 4, [average("100", "pods")], [pods(3, "40", "40", "40", None)]),          # 55 x 4
    Scenario("pods-most-missing-down", 4, [average("100", "pods")], [pods(4, "70", None, None, None)]),         # 92.5
    Scenario("pods-all-missing", 2, [average("100", "pods")], [pods(2, None, None)]),
    Scenario("pods-not-ready-count", 2, [average("100", "pods")], [pods(3, Pod("150", **YOUNG), Pod("150", **YOUNG))]),
    Scenario("pods-pending", 3, [average("100", "pods")], [
        pods(3, "150", "150", PENDING),                                     # 300 / 3
        pods(4, "200", "200", PENDING),                                     # 400 / 3 x 3
        pods(2, "40", "40", "40", PENDING)]),                               # 0.4 x 3
    Scenario("pods-all-pending", 2, [average("100", "pods")], [pods(2, PENDING, PENDING)]),
    Scenario("pods-failed", 3, [average("100", "pods")], [pods(5, "150", FAILED, "150", "150")]),
    Scenario("pods-succeeded", 2, [average("100", "pods")], [pods(2, Pod(phase="Succeeded"), "150", "150")]),    # missing: 300 / 3
    Scenario("pods-idle", 3, [average("100", "pods")], [pods(1, "0", "0", "0")]),
    Scenario("pods-deleted", 2, [average("100", "pods")], [pods(3, Pod("900", deleting=True), "150", "150")]),
    Scenario("pods-in-thousandths", 3, [average("0.1", "pods")], [
        pods(3, "0.110", "0.110", "0.112"),                                 # 332 / 3 is 110, the rest is dropped
        pods(4, "0.111", "0.111", "0.111")]),

    # cpu and memory
    Scenario("cpu", 4, [utilization(70)], [pods(6, *["0.450"] * 4)]),
    Scenario("cpu-one-missing", 4, [utilization(70)], [pods(4, *["0.450"] * 3, None)]),                         # 67 / 70
    Scenario("cpu-one-missing-down", 4, [utilization(50)], [pods(3, *["0.050"] * 3, None)]),                    # 32 / 50 x 4
    Scenario("cpu-over-100-percent", 4, [utilization(150)], [pods(2, *["0.200"] * 3, None)]),                   # 67 / 150 x 4
    Scenario("cpu-rest-dropped", 2, [utilization(70)], [pods(2, "0.389", "0.390"), pods(3, "0.390", "0.390")]),     # 77, 78 %
    Scenario("cpu-young-not-ready", 4, [utilization(50)], [pods(IDLE, *THREE_AND, Pod("0.900", **YOUNG))]),
    Scenario("cpu-young-ready", 4, [utilization(50)], [pods(COUNTED, *THREE_AND, Pod("0.900", age=30, changed=10))]),
    Scenario("cpu-never-ready", 4, [utilization(50)], [pods(IDLE, *THREE_AND, Pod("0.900", ready=False, changed=LONG_AGO - 10))]),
    Scenario("cpu-was-ready", 4, [utilization(50)], [pods(COUNTED, *THREE_AND, Pod("0.900", ready=False, changed=LONG_AGO - 25))]),
    Scenario("cpu-initialization", 4, [utilization(50)], [pods(IDLE, *THREE_AND, Pod("0.900", ready=False, age=900, changed=100))]),
    Scenario("cpu-readiness-unknown", 4, [utilization(50)], [pods(IDLE, *THREE_AND, Pod("0.900", ready=None))]),
    Scenario("cpu-never-started", 4, [utilization(50)], [pods(IDLE, *THREE_AND, Pod("0.900", age=None))]),
    Scenario("cpu-pending", 4, [utilization(50)], [pods(IDLE, *THREE_AND, PENDING)]),
    Scenario("cpu-not-ready-down", 4, [utilization(50)], [pods(2, *["0.100"] * 3, Pod("0.100", **YOUNG))]),     # 20 / 50 x 3
    Scenario("cpu-of-a-sidecar", 2, [utilization(50)], [pods(4, "0.900", "0.900")], pod={"initContainers": [
        {"name": "proxy", "image": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}}]}),
    Scenario("cpu-without-requests", 2, [utilization(50)], [pods(2, "0.900", "0.900")], pod={"containers": [
        {"name": "web", "image": "web"}]}),
    Scenario("cpu-requests-of-zero", 2, [utilization(50)], [pods(2, "0.900", "0.900")], pod={"containers": [
        {"name": "web", "image": "web", "resources": {"requests": {"cpu": "0"}}}]}),
    Scenario("memory", 4, [utilization(80, resource="memory")], [pods(5, *["99614720"] * 3, Pod("99614720", **YOUNG))]),    # 95 %
    Scenario("memory-value", 2, [average("50000000", "resource", resource="memory")], [pods(3, "75000000", "75000000")]),
    Scenario("cpu-sampled-before-ready", 4, [utilization(50)], [
        pods(IDLE, *THREE_AND, Pod("0.900", age=60, changed=10, sampled=600), ours=COUNTED)],
        differs="HPA knows when a sample was measured; to us it is as new as the query (docs/from-hpa.md)"),
    Scenario("cpu-of-a-container", 2, [utilization(50, "container")], [pods(4, "0.450", "0.450", ours=2)], pod={"containers": [
        {"name": name, "image": name, "resources": {"requests": {"cpu": "500m"}}} for name in ("web", "proxy")]},
        differs="HPA takes the container's requests, we the whole pod's (docs/from-hpa.md)"),
    Scenario("cpu-value", 4, [average("0.2", "resource")], [
        pods(5, "0.300", "0.300", "0.300", Pod("0.900", **YOUNG), ours=9)],
        differs="average_value does not say that it is cpu, so a young pod that is not ready counts"),
    Scenario("cpu-of-the-whole-pod", 2, [utilization(50)], [pods(4, "0.450", "0.450", ours=2)], pod={
        "resources": {"requests": {"cpu": "500m"}}, "containers": [{"name": "web", "image": "web"}]},
        differs="requests of the pod itself are not known to us, only those of its containers"),

    # Policies: the ways there, too
    Scenario("policy-pods-up", 2, [average("100")], behavior={"scaleUp": policies(("Pods", 2, 2))}, stages=[
        at(9, "900", again=True, path=[4, 6, 8, 9])]),
    Scenario("policy-percent-up", 4, [average("100")], behavior={"scaleUp": policies(("Percent", 50, 2))}, stages=[
        at(14, "1400", again=True, path=[6, 9, 14])]),
    Scenario("policy-pods-down", 10, [average("100")], behavior={"scaleDown": policies(("Pods", 3, 2), window=0)}, stages=[
        at(2, "200", again=True, path=[7, 4, 2])]),
    Scenario("policy-percent-down", 10, [average("100")], behavior={"scaleDown": policies(("Percent", 50, 2), window=0)}, stages=[
        at(1, "100", again=True, path=[5, 2, 1])]),
    Scenario("policies-largest-up", 2, [average("100")], behavior={"scaleUp": policies(("Pods", 3, 2), ("Percent", 100, 2))}, stages=[
        at(12, "1200", again=True, path=[5, 10, 12])]),
    Scenario("policies-smallest-up", 3, [average("100")], stages=[at(6, "600", again=True, path=[4, 5, 6])],
             behavior={"scaleUp": policies(("Pods", 1, 2), ("Percent", 100, 2), select="Min")}),
    Scenario("policies-smallest-down", 6, [average("100")], stages=[at(3, "300", again=True, path=[5, 4, 3])],
             behavior={"scaleDown": policies(("Pods", 1, 2), ("Percent", 50, 2), select="Min", window=0)}),
    Scenario("policies-of-two-periods", 2, [average("100")], stages=[at(5, "900", again=True, path=[4, 5])],
             behavior={"scaleUp": policies(("Pods", 2, 2), ("Pods", 3, 1800), select="Min")}),
    Scenario("no-scale-up", 4, [average("100")], behavior={"scaleUp": policies(select="Disabled"), "scaleDown": DOWN}, stages=[
        at(4, "900", again=True), at(2, "200")]),
    Scenario("no-scale-down", 4, [average("100")], behavior={"scaleUp": UP, "scaleDown": policies(select="Disabled", window=0)}, stages=[
        at(4, "200", again=True), at(6, "600")]),
    Scenario("added-may-go", 4, [average("100")], behavior={"scaleUp": UP, "scaleDown": policies(("Pods", 2, 1800), window=0)}, stages=[
        at(8, "800"), at(2, "100", again=True)]),
    Scenario("removed-may-come-back", 8, [average("100")], behavior={"scaleUp": policies(("Pods", 1, 1800)), "scaleDown": DOWN}, stages=[
        at(3, "300"), at(9, "1200", again=True)]),
    Scenario("added-by-bounds", 1, [average("100")], min=4, behavior={"scaleUp": policies(("Pods", 4, 1800))}, stages=[
        at(4, None), at(5, "800", again=True)]),
    Scenario("added-by-hand", 4, [average("100")], behavior={"scaleUp": policies(("Pods", 2, 1800))}, stages=[
        at(4, "400"), at(8, "1000", set=6, again=True)]),
    Scenario("added-in-two-steps", 2, [average("100")], stages=[at(4, "400"), at(6, "600"), at(3, "100", ours=1)],
             behavior={"scaleUp": policies(("Pods", 100, 2)), "scaleDown": policies(("Pods", 1, 1800), window=0)},
             differs="HPA forgets what it added once that is older than the policies for scaling up, although one for scaling down counts it"),

    # The defaults
    Scenario("defaults", 3, [average("100")], behavior={}, stages=[at(10, "1000", again=True, path=[7, 10]), at(10, "100", again=True)]),
    Scenario("no-behavior", 3, [average("100")], behavior=None, our_behavior=LEGACY, stages=[at(6, "1200")]),
    Scenario("no-behavior-from-1", 1, [average("100")], behavior=None, our_behavior=LEGACY, stages=[at(4, "1200")]),
    Scenario("no-behavior-from-2", 2, [average("100")], behavior=None, our_behavior=LEGACY, stages=[at(4, "1200", ours=5)],
             differs="max(2 x size, 4) is not a pair of policies (docs/from-hpa.md)"),
    Scenario("no-behavior-is-not-its-defaults", 3, [average("100")], behavior=None, our_behavior={}, stages=[at(6, "1200", ours=7)],
             differs="without `behavior` HPA stops at max(2 x size, 4); the defaults of a `behavior` let it grow by 4"),
    Scenario("no-behavior-follows-the-past", 3, [average("100")], behavior=None, our_behavior=LEGACY, stages=[
        at(6, "1200"), at(12, "700", ours=7)],
        differs="without `behavior` HPA goes for the highest of 5 minutes, upwards too"),

    # Stabilization windows
    Scenario("window-down-holds", 2, [average("100")], behavior={"scaleUp": UP, "scaleDown": policies(window=3600)}, stages=[
        at(6, "600"), at(6, "300", again=True)]),
    Scenario("window-down-ends", 2, [average("100")], behavior={"scaleUp": UP, "scaleDown": policies(("Percent", 100, 1), window=8)}, stages=[
        at(6, "600", again=True), at(3, "300", again=True, path=[3])]),
    Scenario("window-down-by-hand", 4, [average("100")], behavior={"scaleDown": policies(window=3600)}, stages=[
        at(4, "400"), at(4, "400", set=9)]),
    Scenario("window-up-holds", 2, [average("100")], behavior={"scaleUp": policies(("Pods", 100, 1), window=3600), "scaleDown": DOWN}, stages=[
        at(2, "600", again=True)]),
    Scenario("window-up-ends", 2, [average("100")], behavior={"scaleUp": policies(("Pods", 100, 1), window=6), "scaleDown": DOWN}, stages=[
        at(6, "600", again=True, path=[6])]),
    Scenario("window-up-remembers", 6, [average("100")], behavior={"scaleUp": policies(("Pods", 100, 1), window=3600), "scaleDown": DOWN},
             stages=[at(4, "400"), at(4, "900", again=True)]),
]

SCENARIOS = {row.name: row for row in ROWS}
assert len(SCENARIOS) == len(ROWS), "a name twice"
assert all(bool(row.differs) == any(stage.ours is not None for stage in row.stages) for row in ROWS), "a difference needs its reason"


@pytest.fixture(scope="module")
def outcomes(session_control_plane, tmp_path_factory, request):
    """Of all scenarios that are to be tested, played side by side."""
    plane = session_control_plane
    if plane.minor < NEWEST:
        pytest.skip(f"this is Kubernetes 1.{plane.minor}: the HPA of 1.{NEWEST} is what we compare with")
    names = [item.callspec.params["name"] for item in request.session.items if item.module is request.module]
    plane.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    eventually(lambda: plane.has_account(NAMESPACE), what="pods can be created")
    install(plane, "namespace.yaml", "serviceaccount.yaml", "role.yaml")
    world = World(plane, tmp_path_factory.mktemp("twins"), [SCENARIOS[name] for name in names])
    try:
        world.start().play()
        yield world.outcomes
    finally:
        world.stop()


@pytest.mark.parametrize("name", SCENARIOS)
def test_same_size(outcomes, name):
    assert outcomes[name] is None, outcomes[name]
