"""Twins: one Deployment that Kubernetes' own HPA scales, and one that our `track` scales, which both see the same readings.

Of each scenario `World.play` makes the pair and tells its stages. In a stage, both sides first find no reading at all, until
the pods are as the stage wants them and both have looked again; then they find the readings. As a rule they find them only
until their size has changed, so that a stage is one decision, whose outcome can be computed by hand; with `again=True` until the
next stage. A stage ends when both have the size that it expects, or the one that differs, and have looked three more times.

The pods are played here and not by kubelets.py: what a stage says of the n-th pod becomes true of whichever is the n-th.
"""
import collections
import dataclasses
import datetime
import http.client
import json
import re
import threading
import time
import urllib.parse

from .custom_metrics import MetricsApis, Table, Usage
from .daemon import Daemon
from .http import Server
from .kube import MERGE_PATCH, path_of
from .notification import alert, notification, timestamp
from .wait import PATIENCE, eventually

NAMESPACE = "twins"
SCHEDULER = "twins"                         # nobody's: so that nobody else plays these pods
FINALIZER = "alertscaler.test/stays"
AT_ONCE = 40                                # scenarios
LOOKS = 3                                   # so many more with the same outcome: it is one
CPU_INITIALIZATION, INITIAL_READINESS_DELAY = 1800, 20          # s, on both sides; neither is a default
LONG_AGO = 3600                             # s

HPA_FLAGS = ["--horizontal-pod-autoscaler-sync-period=1s", "--concurrent-horizontal-pod-autoscaler-syncs=10",
             f"--horizontal-pod-autoscaler-cpu-initialization-period={CPU_INITIALIZATION}s",
             f"--horizontal-pod-autoscaler-initial-readiness-delay={INITIAL_READINESS_DELAY}s"]


# What a scenario says


def policies(*rows, select=None, window=None):
    """One direction of a `behavior`. rows: (type, value, seconds)."""
    found = {"policies": [{"type": kind, "value": value, "periodSeconds": seconds} for kind, value, seconds in rows]} if rows else {}
    return found | ({"selectPolicy": select} if select else {}) | ({} if window is None else {"stabilizationWindowSeconds": window})


UP, DOWN = policies(("Pods", 100, 1)), policies(("Percent", 100, 1), window=0)      # all of it at once
FREE = {"scaleUp": UP, "scaleDown": DOWN}

@dataclasses.dataclass(frozen=True)
class Pod:
    """value: what it reads, None: nothing. age, changed: s since it started and since its readiness changed; None: never.
    sampled: s since its value was measured, which only HPA is told."""

    value: object = None
    ready: object = True                    # None: unknown, the condition is missing
    phase: str = "Running"
    age: object = LONG_AGO
    changed: object = LONG_AGO
    sampled: int = 0
    deleting: bool = False


@dataclasses.dataclass
class Metric:
    """kind: external, object, pods, resource or container; one of value, average_value (decimal text) and utilization (%)."""

    kind: str
    value: object = None
    average_value: object = None
    utilization: object = None
    resource: str = "cpu"

    @property
    def is_per_pod(self):
        return self.kind in ("pods", "resource", "container")

    def target(self):
        if self.utilization is not None:
            return {"type": "Utilization", "averageUtilization": self.utilization}
        return {"type": "Value", "value": self.value} if self.value else {"type": "AverageValue", "averageValue": self.average_value}

    def in_hpa(self, twin, number):
        name = {"name": f"{twin.scenario.name}-{number}"}
        service = {"apiVersion": "v1", "kind": "Service", "name": twin.name}
        word, source = {
            "external": ("External", {"metric": name}),
            "object": ("Object", {"metric": name, "describedObject": service}),
            "pods": ("Pods", {"metric": name}),
            "resource": ("Resource", {"name": self.resource}),
            "container": ("ContainerResource", {"name": self.resource, "container": "web"}),
        }[self.kind]
        return {"type": word, word[0].lower() + word[1:]: {**source, "target": self.target()}}

    def in_rule(self, scenario, number):
        track = {"query": f'reading{{scenario="{scenario.name}", metric="{number}"}}'}
        if self.utilization is not None:
            track |= {"utilization": f"{self.utilization}%", "of": f"{self.resource}_requests"}
        else:
            goal, number = ("value", self.value) if self.value else ("average_value", self.average_value)
            track[goal] = json.loads(number)
        return track | ({"per_pod": True} if self.is_per_pod else {})


@dataclasses.dataclass
class Stage:
    """size: what both come to. ours: what we come to where it is another. readings: one for each metric that is a number; None:
    no data. pods, new: the first pods and all others. set: somebody sets both sizes before. path: all sizes on the way."""

    size: int
    readings: object = ()
    pods: list = dataclasses.field(default_factory=list)
    new: Pod = Pod()
    again: bool = False
    path: object = None
    set: object = None
    ours: object = None
    disabled: bool = False                  # HPA does not look at its metrics

    def pod(self, index):
        return self.pods[index] if index < len(self.pods) else self.new


@dataclasses.dataclass
class Scenario:
    """behavior: HPA's; ours is the same unless our_behavior is given. differs: why the two do not agree, where they do not."""

    name: str
    size: int
    metrics: list
    stages: list
    min: int = 1
    max: int = 20
    behavior: object = dataclasses.field(default_factory=lambda: FREE)      # None: an HPA without it
    our_behavior: object = None
    tolerance: dict = dataclasses.field(default_factory=dict)       # {"up": %, "down": %}
    pod: dict = dataclasses.field(default_factory=dict)             # spec of the pods, over the usual one
    differs: str = ""

    @property
    def weight(self):
        return sum(1 + len(stage.path or ()) for stage in self.stages) + (10 if self.behavior == {} else 0)


# One side of a scenario


class Twin:
    def __init__(self, scenario, side):
        self.scenario = scenario
        self.side = side
        self.name = f"{scenario.name}-{side}"
        self.path = path_of("apps/v1", "Deployment", NAMESPACE, self.name)
        self.deployment = None              # as last seen
        self.sizes = []                     # all there were, in order, without repeats
        self.pods = {}                      # uid -> Pod as last seen, in the order in which they came
        self.played = {}                    # uid -> what has been made of it
        self.stage = None
        self.lit = False                    # there is something to read
        self.until = None                   # as long as this is its size; None: always
        self.looks = 0
        self.disabled_since = None

    @property
    def expected(self):
        return self.stage.ours if self.side == "ours" and self.stage.ours is not None else self.stage.size

    @property
    def size(self):
        return self.deployment["spec"]["replicas"] if self.deployment else None

    def is_settled(self):
        """Whether its pods are there and as the stage wants them, as far as we see."""
        if self.deployment is None:
            return False
        status = self.deployment.get("status", {})
        active = [pod for pod in self.pods.values() if "deletionTimestamp" not in pod["metadata"]
                  and pod["status"].get("phase") not in ("Failed", "Succeeded")]
        return (status.get("observedGeneration") == self.deployment["metadata"]["generation"]
                and status.get("replicas", 0) == self.size == len(active)
                and all(self.played.get(uid) == want for uid, want in self.wanted()))

    def wanted(self):
        return [(uid, self.stage.pod(index)) for index, uid in enumerate(list(self.pods))]

    def values(self):
        """{pod's name: its Pod} of those with a value."""
        return {self.pods[uid]["metadata"]["name"]: want for uid, want in self.wanted() if want.value is not None}


# What both read


class Readings(Table):
    """The table that HPA's metrics APIs and the Prometheus that we ask are made of."""

    def __init__(self, world):
        self.world = world
        self.prometheus = Server(self._answer_query)

    def _read(self, twin, number):
        """What there is to read now: a number, {pod: Pod}, or None."""
        metric = twin.scenario.metrics[number]
        lit = twin.lit and (twin.until is None or self.world.ask_size(twin) == twin.until)
        if number == 0:
            twin.looks += 1
        if not lit:
            return None
        return twin.values() if metric.is_per_pod else twin.stage.readings[number]

    # For HPA

    def _hpa(self, metric):
        name, number = metric.rsplit("-", 1)
        return self.world.twins[f"{name}-hpa"], int(number)

    def pods(self, namespace, metric, selector):
        found = self._read(*self._hpa(metric))
        return {name: pod.value for name, pod in (found or {}).items()}

    def object(self, namespace, resource, name, metric):
        twin, number = self._hpa(metric)
        assert (resource, name) == ("services", twin.name)
        return self._read(twin, number)

    def external(self, namespace, metric):
        found = self._read(*self._hpa(metric))
        return found if isinstance(found, list) else [] if found is None else [found]

    def usage(self, namespace, selector):
        twin = self.world.twins[selector.removeprefix("app=")]
        resource = twin.scenario.metrics[0].resource
        spec = twin.deployment["spec"]["template"]["spec"]
        names = [one["name"] for one in spec["containers"] + spec.get("initContainers", [])]
        return {name: Usage({container: {resource: pod.value if container == "web" else "0"} for container in names}, pod.sampled)
                for name, pod in (self._read(twin, 0) or {}).items()}

    # For us

    def _answer_query(self, asked):
        query = urllib.parse.parse_qs(asked.body.decode())["query"][0]
        name, number = re.fullmatch(r'reading\{scenario="(.*)", metric="(\d+)"\}', query).groups()
        found = self._read(self.world.twins[f"{name}-ours"], int(number))
        now = time.time()
        if isinstance(found, dict):
            result = [{"metric": {"pod": pod}, "value": [now, of.value]} for pod, of in found.items()]
        elif isinstance(found, list):       # as sum() would say
            result = [{"metric": {}, "value": [now, str(sum(map(int, found)))]}]
        else:
            result = [] if found is None else [{"metric": {}, "value": [now, found]}]
        return 200, {}, {"status": "success", "data": {"resultType": "vector", "result": result}}


# The world


class Line:
    """Requests to the API server over one connection."""

    def __init__(self, client):
        self.client = client
        self.connection = None

    def request(self, method, path, body=None, content_type="application/json"):
        headers = {"Authorization": f"Bearer {self.client.token}", "Content-Type": content_type}
        for attempt in (1, 2):
            try:
                if self.connection is None:
                    server = urllib.parse.urlsplit(self.client.url)
                    self.connection = http.client.HTTPSConnection(server.hostname, server.port, timeout=30, context=self.client.tls)
                self.connection.request(method, path, None if body is None else json.dumps(body), headers)
                answer = self.connection.getresponse()
                return answer.status, json.loads(answer.read())
            except (OSError, http.client.HTTPException):
                self.connection = None
                if attempt == 2:
                    raise


class World:
    def __init__(self, plane, directory, scenarios):
        self.admin = plane.admin
        self.twins = {twin.name: twin for s in scenarios for twin in (Twin(s, "hpa"), Twin(s, "ours"))}
        self.outcomes = {}                  # scenario -> None, or what went wrong
        self._firing = {}                   # scenario -> its alert
        self._notified = 0
        self._lock = threading.RLock()
        self._local = threading.local()
        self._changed = threading.Condition(self._lock)
        self._unplayed = set()
        self._stopping = False
        self._connections = []
        self.readings = Readings(self)
        self.apis = MetricsApis(plane, NAMESPACE, self.readings)
        kubeconfig = plane.write_kubeconfig("twins", token=plane.account_token("alertscaler", "alertscaler"))
        self.daemon = Daemon(directory / "alertscaler", rules(scenarios), {
            "clusters": {"default": {"kubeconfig": str(kubeconfig)}}, "prometheus": {"url": self.readings.prometheus.url}})
        self.hpa = plane.prepare_controller_manager("hpa-controller", ["horizontalpodautoscaling"], *HPA_FLAGS)
        self._threads = [threading.Thread(target=target, args=args, daemon=True) for target, args in (
            (self._watch, ("/apis/apps/v1", "deployments", self._see_deployment)), (self._watch, ("/api/v1", "pods", self._see_pod)),
            (self._play_pods, ()), (self._play_pods, ()))]

    def start(self):
        for thread in self._threads:
            thread.start()
        self.apis.start()
        self.hpa.start()
        self.daemon.start()
        return self

    def stop(self):
        self.hpa.stop()
        self.apis.stop()
        self._stopping = True
        with self._changed:
            self._changed.notify_all()
        for pod in self.admin.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]:
            if pod["metadata"].get("finalizers"):
                self.admin.request("PATCH", pod_path(pod), {"metadata": {"finalizers": None}}, MERGE_PATCH)
        self.admin.delete(f"/api/v1/namespaces/{NAMESPACE}")
        self.readings.prometheus.stop()
        self.daemon.stop()

    @property
    def line(self):
        if not hasattr(self._local, "line"):
            self._local.line = Line(self.admin)
        return self._local.line

    def ask_size(self, twin):
        """Not as seen some time ago, but now."""
        return self.line.request("GET", twin.path + "/scale")[1]["spec"].get("replicas", 0)

    # What is there

    def _watch(self, root, plural, see):
        path = f"{root}/namespaces/{NAMESPACE}/{plural}"
        while not self._stopping:
            try:
                listed = self.admin.get(path)
                for item in listed["items"]:
                    see("ADDED", item)
                self._follow(f"{path}?watch=1&timeoutSeconds=60&resourceVersion={listed['metadata']['resourceVersion']}", see)
            except (OSError, ValueError, http.client.HTTPException):
                time.sleep(0.1)

    def _follow(self, path, see):
        server = urllib.parse.urlsplit(self.admin.url)
        connection = http.client.HTTPSConnection(server.hostname, server.port, timeout=90, context=self.admin.tls)
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.admin.token}"})
        answer = connection.getresponse()
        while not self._stopping and (line := answer.readline()):
            event = json.loads(line)
            if event["type"] == "ERROR":
                break
            see(event["type"], event["object"])
        connection.close()

    def _see_deployment(self, kind, item):
        twin = self.twins.get(item["metadata"]["name"])
        if twin is None:
            return
        with self._lock:
            twin.deployment = None if kind == "DELETED" else item
            if twin.size is not None and twin.sizes[-1:] != [twin.size]:
                twin.sizes.append(twin.size)

    def _see_pod(self, kind, item):
        twin = self.twins.get(item["metadata"].get("labels", {}).get("app"))
        if twin is None:
            return
        with self._lock:
            if kind == "DELETED":
                twin.pods.pop(item["metadata"]["uid"], None)
            else:
                twin.pods[item["metadata"]["uid"]] = item
            self._want_played(twin)

    # The pods

    def _want_played(self, twin):
        with self._changed:
            self._unplayed.add(twin)
            self._changed.notify()

    def _play_pods(self):
        while not self._stopping:
            with self._changed:
                while not self._unplayed and not self._stopping:
                    self._changed.wait()
                if self._stopping:
                    return
                twin = self._unplayed.pop()
                todo = [(uid, twin.pods[uid], want) for uid, want in twin.wanted()
                        if twin.played.get(uid) != want] if twin.stage else []
            for uid, item, want in todo:
                try:
                    self._play_pod(item, want)
                except (OSError, http.client.HTTPException):
                    self._want_played(twin)
                    continue
                with self._lock:
                    twin.played[uid] = want

    def _play_pod(self, item, want):
        path = pod_path(item)
        self.line.request("PATCH", path + "/status", {"status": pod_status(want)}, MERGE_PATCH)
        if want.deleting:
            self.line.request("PATCH", path, {"metadata": {"finalizers": [FINALIZER]}}, MERGE_PATCH)
            self.line.request("DELETE", path)

    # The scenarios

    def play(self):
        """All of them, some at a time; what came of each is in `outcomes`."""
        scenarios = {twin.scenario.name: twin.scenario for twin in self.twins.values()}.values()
        waiting = collections.deque(sorted(scenarios, key=lambda one: one.weight, reverse=True))     # what takes long, first
        running = []

        def is_over():
            while waiting and len(running) < AT_ONCE:
                running.append(Play(self, waiting.popleft()))
            self._notify()
            running[:] = [play for play in running if not play.step()]
            return not waiting and not running

        eventually(is_over, timeout=1200, interval=0.1, what="all scenarios are over")

    def fire(self, scenario):
        self._firing[scenario.name] = alert({"alertname": "Tracked", "scenario": scenario.name}, starts_at=timestamp(-1))

    def resolve(self, scenario):
        fired = self._firing.pop(scenario.name, None)
        if fired:
            self.daemon.notify(notification(alert(fired["labels"], "resolved", starts_at=fired["startsAt"])))

    def _notify(self):
        """As an Alertmanager that repeats every second: no further step down without the alert being there."""
        if self._firing and time.monotonic() >= self._notified + 1:
            self._notified = time.monotonic()
            self.daemon.notify(notification(*self._firing.values()))


class Play:
    """One scenario; step() until it is true."""

    def __init__(self, world, scenario):
        self.world = world
        self.scenario = scenario
        self.twins = [world.twins[f"{scenario.name}-{side}"] for side in ("hpa", "ours")]
        self._script = self._tell()
        self._wait = None
        self._deadline = 0
        self.step()

    def step(self):
        try:
            if self._wait is not None and not self._wait[0]():
                if time.monotonic() < self._deadline:
                    return False
                raise AssertionError(f"not within {PATIENCE:g} s: {self._wait[1]}; {self._seen()}")
            self._wait = next(self._script)
            self._deadline = time.monotonic() + PATIENCE
            return False
        except StopIteration:
            self._end(None)
        except Exception as error:
            self._end(str(error) or repr(error))
        return True

    def _end(self, outcome):
        self.world.outcomes[self.scenario.name] = outcome
        self.world.resolve(self.scenario)
        self.world.admin.request("DELETE", hpa_path(self.twins[0]))
        for twin in self.twins:
            twin.lit = False
            self.world.admin.request("DELETE", twin.path)

    def _seen(self):
        return "; ".join(f"{twin.name}: sizes {twin.sizes}, {len(twin.pods)} pods, looked {twin.looks} times" for twin in self.twins)

    def _tell(self):
        for twin in self.twins:
            twin.stage = self.scenario.stages[0]
            self.world.admin.create(deployment(twin))
        yield self._are_settled, "the pods are there"
        self.world.admin.create(autoscaler(self.twins[0]))
        self.world.fire(self.scenario)
        for number, stage in enumerate(self.scenario.stages, 1):
            yield from self._tell_stage(stage, f"stage {number}, where HPA comes to {stage.size}"
                                        + (f" and we to {stage.ours}" if stage.ours is not None else ""))

    def _tell_stage(self, stage, what):
        for twin in self.twins:
            with self.world._lock:
                twin.lit, twin.stage, twin.disabled_since = False, stage, None
            self.world._want_played(twin)
            if stage.set is not None:
                self.world.admin.patch(twin.path + "/scale", {"spec": {"replicas": stage.set}})
        if stage.set is not None:
            yield lambda: all(stage.set in twin.sizes[-2:] for twin in self.twins), f"{what}: sizes set by hand"
        yield self._are_settled, f"{what}: the pods are as it wants them"
        yield self._have_looked(1), f"{what}: both have looked without a reading"
        before = []
        for twin in self.twins:
            with self.world._lock:
                before.append(len(twin.sizes))
                twin.until = None if stage.again else twin.size
                twin.lit = True
        yield self._are_steady(), f"{what}: both stay there"
        if stage.path is not None:
            paths = [twin.sizes[count:] for twin, count in zip(self.twins, before)]
            assert paths == [stage.path, stage.path], f"{what}: the ways are not {stage.path} but HPA's {paths[0]}, ours {paths[1]}"

    def _are_settled(self):
        with self.world._lock:
            return all(twin.is_settled() for twin in self.twins)

    def _looks(self, twin):
        """How often it has looked. Of an HPA that is switched off we only know for how long it has been that."""
        if not (twin.side == "hpa" and twin.stage.disabled):
            return twin.looks
        if twin.disabled_since is None:
            conditions = self.world.admin.get(hpa_path(twin)).get("status", {}).get("conditions", [])
            if not any(c["type"] == "ScalingActive" and c["reason"] == "ScalingDisabled" for c in conditions):
                return 0
            twin.disabled_since = time.monotonic()
        return int(time.monotonic() - twin.disabled_since)

    def _have_looked(self, times):
        before = [self._looks(twin) for twin in self.twins]
        return lambda: all(self._looks(twin) >= count + times for twin, count in zip(self.twins, before))

    def _are_steady(self):
        """Both have their size, and have looked LOOKS times since anything was last another."""
        seen, has_looked = None, None

        def probe():
            nonlocal seen, has_looked
            with self.world._lock:
                now = [(twin.size, twin.is_settled()) for twin in self.twins]
            if now != seen or has_looked is None:
                seen, has_looked = now, self._have_looked(LOOKS)
            return now == [(twin.expected, True) for twin in self.twins] and has_looked()

        return probe


# Objects


def _time(ago):
    moment = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=ago)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def pod_path(item):
    return f"/api/v1/namespaces/{NAMESPACE}/pods/{item['metadata']['name']}"


def pod_status(want):
    ready = [] if want.ready is None else [{"type": "Ready", "status": str(want.ready), "lastTransitionTime": _time(want.changed)}]
    return {"phase": want.phase, "startTime": None if want.age is None else _time(want.age), "conditions": ready}


def deployment(twin):
    labels = {"app": twin.name}
    web = {"name": "web", "image": "web", "resources": {"requests": {"cpu": "500m", "memory": "100Mi"}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": NAMESPACE, "name": twin.name},
            "spec": {"replicas": twin.scenario.size, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels},
                                  "spec": {"schedulerName": SCHEDULER, "containers": [web], **twin.scenario.pod}}}}


def hpa_path(twin):
    return f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers/{twin.name}"


def autoscaler(twin):
    scenario = twin.scenario
    spec = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": twin.name},
            "minReplicas": scenario.min, "maxReplicas": scenario.max,
            "metrics": [metric.in_hpa(twin, number) for number, metric in enumerate(scenario.metrics)]}
    if scenario.behavior is not None:
        spec["behavior"] = {key: dict(value) for key, value in scenario.behavior.items()}
        for direction, percent in scenario.tolerance.items():
            spec["behavior"].setdefault(f"scale{direction.title()}", {})["tolerance"] = str(percent / 100)
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"namespace": NAMESPACE, "name": twin.name}, "spec": spec}


def rules(scenarios):
    """A rule file that says the same."""
    targets = {s.name: {
        "kubernetes": {"kind": "Deployment", "namespace": NAMESPACE, "name": f"{s.name}-ours"}, "min": s.min, "max": s.max,
        "enforce_bounds": True, "cooldown": {"up": "0s", "down": "0s"},
        "behavior": s.our_behavior if s.our_behavior is not None else s.behavior,
        "cpu_initialization": f"{CPU_INITIALIZATION}s", "initial_readiness_delay": f"{INITIAL_READINESS_DELAY}s",
        **({"tolerance": {direction: f"{percent}%" for direction, percent in s.tolerance.items()}} if s.tolerance else {}),
    } for s in scenarios}
    return {"targets": targets, "rules": [
        {"name": f"{s.name}-{number}", "match": ['alertname="Tracked"', f'scenario="{s.name}"'], "target": s.name, "every": "1s",
         "track": metric.in_rule(s, number)} for s in scenarios for number, metric in enumerate(s.metrics)]}
