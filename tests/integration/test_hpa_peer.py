"""Kubernetes' own HPA beside our `track`: over the scenarios below, both come to the same sizes.

HPA is the real controller, of the controller manager. Its metrics come through the API server's aggregation layer. Our side
scales a twin of each Deployment, and gets the same readings from Prometheus' API. harness/twins.py tells how it is played.

The sizes are computed by hand, from docs/decision.md. Where the two sides do not agree, `ours` is our size, and `differs` says
why. When they agree again, such a row fails: then it is time to take its `ours` away.
"""
import pytest

from harness.deploy import install
from harness.twins import DOWN, LONG_AGO, NAMESPACE, UP, Metric, Pod, Scenario, Stage, World, policies
from harness.wait import eventually

pytestmark = pytest.mark.deep

NEWEST = 37         # Kubernetes 1.37 is the first that has tolerances in `behavior` and minReplicas: 0 by default


# Short words for the table


def average(goal, kind="external", **more):
    return Metric(kind, average_value=goal, **more)


def value(goal, kind="external"):
    return Metric(kind, value=goal)


def utilization(goal, kind="resource", resource="cpu", **more):
    return Metric(kind, utilization=goal, resource=resource, **more)


def behave(up=UP, down=DOWN):
    return {"scaleUp": up, "scaleDown": down}


def at(size, *readings, **more):
    """The size that these readings lead to, one for each metric."""
    return Stage(size, readings, **more)


def pods(size, *values, **more):
    """The size that these pods lead to. A text is the value of a usual pod. Pods that come later have no value."""
    return Stage(size, pods=[Pod(one) if one is None or isinstance(one, str) else one for one in values], **more)


def container(name, **requests):
    return {"name": name, "image": name, "resources": {"requests": requests}}


SUM = [average("100")]
PODS = [average("100", "pods")]
CPU = [utilization(50)]
OF_WEB = [utilization(50, "container")]
OFF = policies(select="Disabled", window=0)
YOUNG = {"ready": False, "age": 30, "changed": 30}
PENDING = Pod(ready=None, phase="Pending")
NOT_READY = Pod(ready=False)
LEGACY = {"scaleUp": policies(("Percent", 100, 15), ("Pods", 3, 15)), "scaleDown": {}}      # from docs/from-hpa.md

# Three pods use 90 % of their requests, at a goal of 50 %. If a fourth pod counts as idle, it is 67 / 50 x 4 = 5.36. If the
# 180 % of the fourth pod count, it is 112 / 50 x 4 = 8.96.
THREE = ("0.450", "0.450", "0.450")
IDLE, COUNTED = 6, 9

ROWS = [
    # One number; the goal is for the share of each pod
    Scenario("sum", 2, SUM, [at(4, "350"), at(11, "1100"), at(1, "90")]),
    Scenario("sum-upper-edge", 10, SUM, [at(10, "1100"), at(12, "1101")]),
    Scenario("sum-lower-edge", 10, SUM, [at(10, "900"), at(9, "899")]),
    Scenario("sum-of-thousandths", 1, [average("0.1")], [at(3, "0.3"), at(7, "0.7"), at(8, "0.771")]),
    Scenario("sum-of-series", 2, SUM, [at(4, ["100", "250"])]),
    Scenario("sum-of-an-object", 4, [average("400", "object")], [at(8, "3000")]),
    Scenario("goal-finer-than-a-thousandth", 1, [average("0.0015")], [at(3, "0.006", ours=4)],
             differs="HPA rounds every goal up to thousandths. We round only the goals for single pods (docs/decision.md)."),

    # Tolerances
    Scenario("tolerances-of-its-own", 10, SUM, [at(10, "1050"), at(11, "1051"), at(11, "880"), at(9, "879")],
             tolerance={"up": 5, "down": 20}),
    Scenario("no-tolerance", 10, SUM, [at(11, "1001"), at(11, "1100"), at(10, "1000")], tolerance={"up": 0, "down": 0}),
    Scenario("tolerance-of-41-percent", 10, SUM, [at(10, "590"), at(6, "589")], tolerance={"up": 10, "down": 41}),

    # Bounds
    Scenario("bounds", 3, SUM, [at(8, "5000"), at(8, "9000"), at(2, "1"), at(2, "0")], min=2, max=8),
    Scenario("above-max", 12, SUM, [at(6, None), at(5, "500")], max=6),
    Scenario("below-min", 1, SUM, [at(3, None), at(5, "500")], min=3),
    Scenario("set-out-of-bounds", 4, SUM, [at(4, "400"), at(6, None, set=9), at(2, None, set=1)], min=2, max=6),
    Scenario("set-within-bounds", 4, SUM, [at(4, "400"), at(7, None, set=7), at(4, "400")]),
    Scenario("bounds-before-policies", 12, SUM, [at(6, None), at(6, "100")], max=6, behavior=behave(OFF, OFF)),

    # No reading
    Scenario("no-reading", 3, SUM, [at(3, None), at(6, "600"), at(6, None)]),
    Scenario("no-reading-of-an-object", 3, [value("100", "object")], [at(3, None), at(6, "200")]),
    Scenario("negative", 3, SUM, [at(20, "-100", ours=3)],
             differs="We take a number below zero for no reading (docs/rules.md). HPA takes such a sum for an overflow."),
    Scenario("negative-value", 3, [value("100")], [at(1, "-100", ours=3)],
             differs="We take a number below zero for no reading (docs/rules.md). HPA computes with it."),
    Scenario("negative-pods", 2, PODS, [pods(4, "500", "-100", ours=2)],
             differs="We take a number below zero for no reading (docs/rules.md). HPA computes with it."),

    # Several metrics
    Scenario("highest-wins", 2, [*SUM, average("30")], [at(7, "600", "210", again=True), at(3, "300", "60", again=True)]),
    Scenario("one-missing", 5, [*SUM, average("30")], [
        at(5, None, "60", again=True), at(8, None, "240", again=True), at(8, None, None, again=True)]),
    Scenario("one-content", 4, [*SUM, average("30")], [at(4, "400", "30", again=True), at(6, "400", "180", again=True)]),
    Scenario("pods-and-a-sum", 3, [*PODS, average("30")], [
        pods(3, "100", "100", "100", readings=(None, "30"), again=True),
        pods(6, "100", "100", "100", readings=(None, "180"), again=True)]),

    # To zero and back
    Scenario("zero", 2, SUM, [at(0, "0"), at(0, "0"), at(1, "1"), at(3, "250")], min=0),
    Scenario("zero-value", 1, [value("100")], [at(0, "0"), at(2, "105")], min=0),
    Scenario("switched-off", 2, SUM, [at(0, "500", set=0, disabled=True)]),
    Scenario("zero-by-hand", 2, SUM, [at(2, "200"), at(0, "300", set=0, disabled=True, ours=3)], min=0,
             differs="Since 1.37, HPA comes back only from a zero that it has set itself. We come back from any zero "
                     "(docs/from-hpa.md)."),

    # One number with a goal of its own: the ratio, times the pods that are ready
    Scenario("value-upper-edge", 4, [value("0.7")], [at(4, "0.77"), at(5, "0.771")]),
    Scenario("value-lower-edge", 10, [value("0.7")], [at(10, "0.63"), at(9, "0.629")]),
    Scenario("value-exact", 1, [value("0.7")], [at(11, "7.7")]),
    Scenario("value-of-an-object", 4, [value("2000", "object")], [at(6, "3000"), at(3, "1000")]),
    Scenario("value-of-ready-pods", 6, [value("2000", "object")], [
        at(8, "4000", pods=[Pod()] * 4, new=NOT_READY),                 # 2 x 4
        at(3, "3000", pods=[Pod()] * 2, new=NOT_READY),                 # 1.5 x 2: fewer, although the value is too high
        at(3, "2100", pods=[Pod()], new=NOT_READY),                     # within the tolerance
        at(1, "3000", new=NOT_READY)]),                                 # 1.5 x 0
    Scenario("value-down", 6, [value("2000")], [at(2, "1000", pods=[Pod()] * 4, new=NOT_READY)]),       # 0.5 x 4
    Scenario("value-with-pending-pods", 5, [value("100")], [at(6, "200", pods=[Pod()] * 3, new=PENDING)]),
    Scenario("value-with-deleted-pods", 2, [value("100")], [at(6, "200", pods=[Pod(deleting=True)])]),  # 2 x 3: still ready

    # A number of each pod
    Scenario("pods", 4, PODS, [pods(6, *["150"] * 4), pods(3, *["40"] * 6)]),
    Scenario("pods-one-missing-up", 4, PODS, [pods(5, "150", "150", "150", None)]),                     # 112.5 / 100 x 4
    Scenario("pods-one-missing-stay", 4, PODS, [pods(4, "140", "140", "140", None)]),                   # 105: tolerated
    Scenario("pods-missing-turn-it", 3, PODS, [pods(3, "130", None, None)]),                            # 43.3
    Scenario("pods-one-missing-down", 4, PODS, [pods(3, "40", "40", "40", None)]),                      # 55 / 100 x 4
    Scenario("pods-most-missing-down", 4, PODS, [pods(4, "70", None, None, None)]),                     # 92.5: tolerated
    Scenario("pods-all-missing", 2, PODS, [pods(2, None, None)]),
    Scenario("pods-not-ready-count", 2, PODS, [pods(3, Pod("150", **YOUNG), Pod("150", **YOUNG))]),
    Scenario("pods-pending", 3, PODS, [
        pods(3, "150", "150", PENDING),                                 # 300 / 3
        pods(4, "200", "200", PENDING),                                 # 400 / 3 is 133; x 3
        pods(2, "40", "40", "40", PENDING)]),                           # 0.4 x 3
    Scenario("pods-all-pending", 2, PODS, [pods(2, PENDING, PENDING)]),
    Scenario("pods-failed", 3, PODS, [pods(5, "150", Pod("900", phase="Failed"), "150", "150")]),
    Scenario("pods-succeeded", 2, PODS, [pods(2, Pod(phase="Succeeded"), "150", "150")]),               # missing: 300 / 3
    Scenario("pods-deleted", 2, PODS, [pods(3, Pod("900", deleting=True), "150", "150")]),
    Scenario("pods-idle", 3, PODS, [pods(1, "0", "0", "0")]),
    Scenario("pods-in-thousandths", 3, [average("0.1", "pods")], [
        pods(3, "0.110", "0.110", "0.112"),                             # 332 / 3 is 110, the rest is dropped
        pods(4, "0.111", "0.111", "0.111")]),

    # cpu and memory of each pod
    Scenario("cpu", 4, [utilization(70)], [pods(6, *["0.450"] * 4)]),
    Scenario("cpu-one-missing", 4, [utilization(70)], [pods(4, *THREE, None)]),                         # 67 / 70: tolerated
    Scenario("cpu-one-missing-down", 4, CPU, [pods(3, *["0.050"] * 3, None)]),                          # 32 / 50 x 4
    Scenario("cpu-over-100-percent", 4, [utilization(150)], [pods(2, *["0.200"] * 3, None)]),           # 67 / 150 x 4
    Scenario("cpu-rest-dropped", 2, [utilization(70)], [pods(2, "0.389", "0.390"), pods(3, "0.390", "0.390")]),     # 77 %, 78 %
    Scenario("cpu-young-not-ready", 4, CPU, [pods(IDLE, *THREE, Pod("0.900", **YOUNG))]),
    Scenario("cpu-young-ready", 4, CPU, [pods(COUNTED, *THREE, Pod("0.900", age=30, changed=10))]),
    Scenario("cpu-initialization", 4, CPU, [pods(IDLE, *THREE, Pod("0.900", ready=False, age=900, changed=100))]),
    Scenario("cpu-never-ready", 4, CPU, [pods(IDLE, *THREE, Pod("0.900", ready=False, changed=LONG_AGO - 10))]),
    Scenario("cpu-was-ready", 4, CPU, [pods(COUNTED, *THREE, Pod("0.900", ready=False, changed=LONG_AGO - 25))]),
    Scenario("cpu-readiness-unknown", 4, CPU, [pods(IDLE, *THREE, Pod("0.900", ready=None))]),
    Scenario("cpu-never-started", 4, CPU, [pods(IDLE, *THREE, Pod("0.900", age=None))]),
    Scenario("cpu-pending", 4, CPU, [pods(IDLE, *THREE, PENDING)]),
    Scenario("cpu-not-ready-down", 4, CPU, [pods(2, *["0.100"] * 3, Pod("0.100", **YOUNG))]),           # 20 / 50 x 3
    Scenario("cpu-of-a-sidecar", 2, CPU, [pods(4, "0.900", "0.900")],
             pod={"initContainers": [{**container("proxy", cpu="500m"), "restartPolicy": "Always"}]}),
    Scenario("cpu-without-requests", 2, CPU, [pods(2, "0.900", "0.900")], pod={"containers": [container("web")]}),
    Scenario("cpu-requests-of-zero", 2, CPU, [pods(2, "0.900", "0.900")], pod={"containers": [container("web", cpu="0")]}),
    Scenario("cpu-value", 4, [average("0.2", "resource")], [pods(5, "0.300", "0.300", "0.300", Pod("0.900", **YOUNG))]),
    Scenario("cpu-of-the-pod-as-a-whole", 2, CPU, [pods(4, "0.450", "0.450")],
             pod={"resources": {"requests": {"cpu": "500m"}}, "containers": [container("web")]}),
    Scenario("cpu-beside-memory-of-the-pod-as-a-whole", 2, CPU, [pods(4, "0.450", "0.450")],
             pod={"resources": {"requests": {"memory": "100Mi"}},
                  "containers": [container("web", cpu="500m"), container("log")]}),
    Scenario("memory", 4, [utilization(80, resource="memory")], [                                       # 95 / 80 x 4
        pods(5, *["99614720"] * 3, Pod("99614720", **YOUNG))]),
    Scenario("memory-value", 2, [average("50000000", "resource", resource="memory")], [pods(3, "75000000", "75000000")]),
    Scenario("cpu-sampled-before-ready", 4, CPU, [
        pods(IDLE, *THREE, Pod("0.900", age=60, changed=10, sampled=600), ours=COUNTED)],
        differs="HPA knows when a sample was measured. To us it is as new as the query (docs/from-hpa.md)."),
    Scenario("cpu-of-a-container", 2, OF_WEB, [pods(4, "0.450", "0.450")],
             pod={"containers": [container("web", cpu="500m"), container("proxy", cpu="500m")]}),
    Scenario("cpu-of-a-container-beside-one-without-requests", 2, OF_WEB, [pods(4, "0.450", "0.450")],
             pod={"containers": [container("web", cpu="500m"), container("proxy")]}),
    Scenario("cpu-of-a-container-without-requests", 2, OF_WEB, [pods(2, "0.450", "0.450")],
             pod={"containers": [container("web"), container("proxy", cpu="500m")]}),
    Scenario("cpu-of-a-container-that-is-a-sidecar", 2, [utilization(50, "container", container="proxy")],
             [pods(4, "0.450", "0.450")],
             pod={"initContainers": [{**container("proxy", cpu="500m"), "restartPolicy": "Always"}]}),
    Scenario("cpu-of-a-container-that-ends-first", 2, [utilization(50, "container", container="setup")],
             [pods(2, "0.450", "0.450")], pod={"initContainers": [container("setup", cpu="500m")]}),
    Scenario("cpu-of-a-container-that-is-not-there", 2, [utilization(50, "container", container="other")],
             [pods(2, "0.450", "0.450")]),
    Scenario("cpu-of-a-container-in-a-pod-with-requests", 2, OF_WEB, [pods(4, "0.450", "0.450")],
             pod={"resources": {"requests": {"cpu": "2"}}, "containers": [container("web", cpu="500m"), container("proxy")]}),
    Scenario("memory-of-a-container", 4, [utilization(80, "container", resource="memory")], [           # 95 / 80 x 4
        pods(5, *["99614720"] * 4)], pod={"containers": [container("web", memory="100Mi"), container("proxy", memory="1Gi")]}),
    Scenario("cpu-of-the-pod-beyond-its-containers", 2, CPU, [pods(4, "0.900", "0.900")],
             pod={"resources": {"requests": {"cpu": "1"}}, "containers": [container("web", cpu="250m"), container("log")]}),
    Scenario("cpu-of-the-pod-by-its-limits", 2, CPU, [pods(4, "0.450", "0.450")],
             pod={"resources": {"limits": {"cpu": "500m"}}, "containers": [container("web")]}),

    # Policies, with all sizes on the way
    Scenario("policy-pods-up", 2, SUM, [at(9, "900", again=True, path=[4, 6, 8, 9])],
             behavior=behave(policies(("Pods", 2, 2)))),
    Scenario("policy-percent-up", 4, SUM, [at(14, "1400", again=True, path=[6, 9, 14])],
             behavior=behave(policies(("Percent", 50, 2)))),
    Scenario("policy-pods-down", 10, SUM, [at(2, "200", again=True, path=[7, 4, 2])],
             behavior=behave(down=policies(("Pods", 3, 2), window=0))),
    Scenario("policy-percent-down", 10, SUM, [at(1, "100", again=True, path=[5, 2, 1])],
             behavior=behave(down=policies(("Percent", 50, 2), window=0))),
    Scenario("policies-largest-up", 2, SUM, [at(12, "1200", again=True, path=[5, 10, 12])],
             behavior=behave(policies(("Pods", 3, 2), ("Percent", 100, 2)))),
    Scenario("policies-smallest-up", 3, SUM, [at(6, "600", again=True, path=[4, 5, 6])],
             behavior=behave(policies(("Pods", 1, 2), ("Percent", 100, 2), select="Min"))),
    Scenario("policies-largest-down", 10, SUM, [at(1, "100", again=True, path=[5, 2, 1])],
             behavior=behave(down=policies(("Pods", 1, 2), ("Percent", 50, 2), window=0))),
    Scenario("policies-smallest-down", 6, SUM, [at(3, "300", again=True, path=[5, 4, 3])],
             behavior=behave(down=policies(("Pods", 1, 2), ("Percent", 50, 2), select="Min", window=0))),
    Scenario("policies-of-two-periods", 2, SUM, [at(5, "900", again=True, path=[4, 5])],
             behavior=behave(policies(("Pods", 2, 2), ("Pods", 3, 1800), select="Min"))),
    Scenario("no-scale-up", 4, SUM, [at(4, "900", again=True), at(2, "200")], behavior=behave(up=OFF)),
    Scenario("no-scale-down", 4, SUM, [at(4, "200", again=True), at(6, "600")], behavior=behave(down=OFF)),
    Scenario("added-may-go", 4, SUM, [at(8, "800"), at(2, "100", again=True)],                          # 8 - 4 - 2
             behavior=behave(down=policies(("Pods", 2, 1800), window=0))),
    Scenario("removed-may-come-back", 8, SUM, [at(3, "300"), at(9, "1200", again=True)],                # 3 + 5 + 1
             behavior=behave(policies(("Pods", 1, 1800)))),
    Scenario("added-by-bounds", 1, SUM, [at(4, None), at(5, "800", again=True)], min=4,                 # 4 - 3 + 4
             behavior=behave(policies(("Pods", 4, 1800)))),
    Scenario("added-by-hand", 4, SUM, [at(4, "400"), at(8, "1000", set=6, again=True)],                 # 6 + 2
             behavior=behave(policies(("Pods", 2, 1800)))),
    Scenario("added-in-two-steps", 2, SUM, [at(4, "400"), at(6, "600"), at(3, "100", ours=1)],
             behavior=behave(policies(("Pods", 100, 2)), policies(("Pods", 1, 1800), window=0)),
             differs="HPA overwrites what it added before, once that is older than the periods for scaling up. The longer "
                     "period for scaling down still needs it. We keep it: 6 - 4 - 1."),

    # Without a behavior, and with its defaults
    Scenario("defaults", 3, SUM, [at(10, "1000", again=True, path=[7, 10]), at(10, "100", again=True)], behavior={}),
    Scenario("no-behavior", 3, SUM, [at(6, "1200")], behavior=None, our_behavior=LEGACY),
    Scenario("no-behavior-from-1", 1, SUM, [at(4, "1200")], behavior=None, our_behavior=LEGACY),
    Scenario("no-behavior-from-2", 2, SUM, [at(4, "1200", ours=5)], behavior=None, our_behavior=LEGACY,
             differs="Our recipe allows 2 + 3. HPA stops at max(2 x size, 4) (docs/from-hpa.md)."),
    Scenario("no-behavior-is-not-the-defaults", 3, SUM, [at(6, "1200", ours=7)], behavior=None, our_behavior={},
             differs="Without a behavior HPA stops at max(2 x size, 4). The defaults of a behavior allow 4 more "
                     "(docs/from-hpa.md)."),
    Scenario("no-behavior-follows-the-past", 3, SUM, [at(6, "1200"), at(12, "700", ours=7)], behavior=None, our_behavior=LEGACY,
             differs="Without a behavior HPA goes for the highest wish of the last 5 minutes, also upwards (docs/from-hpa.md)."),

    # Stabilization windows
    Scenario("window-down-holds", 2, SUM, [at(6, "600"), at(6, "300", again=True)],
             behavior=behave(down=policies(window=3600))),
    Scenario("window-down-ends", 2, SUM, [at(6, "600", again=True), at(3, "300", again=True, path=[3])],
             behavior=behave(down=policies(window=8))),
    Scenario("window-down-by-hand", 4, SUM, [at(4, "400"), at(4, "400", set=9)], behavior=behave(down=policies(window=3600))),
    Scenario("window-up-holds", 2, SUM, [at(2, "600", again=True)], behavior=behave(policies(("Pods", 100, 1), window=3600))),
    Scenario("window-up-ends", 2, SUM, [at(6, "600", again=True, path=[6])],
             behavior=behave(policies(("Pods", 100, 1), window=6))),
    Scenario("window-up-remembers", 6, SUM, [at(4, "400"), at(4, "900", again=True)],
             behavior=behave(policies(("Pods", 100, 1), window=3600))),
]

SCENARIOS = {row.name: row for row in ROWS}
assert len(SCENARIOS) == len(ROWS), "two rows have the same name"
for row in ROWS:
    assert bool(row.differs) == any(stage.ours is not None for stage in row.stages), f"{row.name}: a difference and its reason"


@pytest.fixture(scope="module")
def outcomes(session_control_plane, tmp_path_factory, request):
    """What came of all scenarios that are to be tested. They are played side by side."""
    plane = session_control_plane
    if plane.minor < NEWEST:
        pytest.skip(f"this is Kubernetes 1.{plane.minor}, and our arithmetic is that of 1.{NEWEST}")
    names = [item.callspec.params["name"] for item in request.session.items if item.module is request.module]
    install(plane, "namespace.yaml", "serviceaccount.yaml", "role.yaml", "role-cluster-wide.yaml")
    plane.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    eventually(lambda: plane.has_account(NAMESPACE), what="pods can be created")
    world = World(plane, tmp_path_factory.mktemp("twins"), [SCENARIOS[name] for name in names])
    try:
        world.start().play()
        yield world.outcomes
    finally:
        world.stop()


@pytest.mark.parametrize("name", SCENARIOS)
def test_same_size(outcomes, name):
    assert outcomes[name] is None, outcomes[name]
