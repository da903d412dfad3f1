"""Twins: one Deployment that Kubernetes' own HPA scales, and one that our `track` scales. Both see the same readings.

`World.play` plays scenarios, some at a time. Each has a pair of Deployments and goes through stages. A stage:

1. Neither side finds a reading. So neither changes its size while the pods become what the stage wants.
2. Both sides find the readings until their size has changed. So a stage is one decision, which can be computed by hand. With
   `again=True` they find them until the next stage.
3. The stage is over when both sides have the size that it expects, and have kept it over LOOKS further looks.

The pods are played here, not by kubelets.py. What a stage says of the n-th pod is made true of whichever pod is the n-th.
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
SCHEDULER = "twins"                         # no such scheduler: kubelets.py leaves its pods alone
FINALIZER = "alertscaler.test/stays"
AT_ONCE = 40                                # scenarios
LOOKS = 3
CPU_INITIALIZATION, INITIAL_READINESS_DELAY = 1800, 20          # s, on both sides; not the defaults
LONG_AGO = 3600                             # s

HPA_FLAGS = ["--horizontal-pod-autoscaler-sync-period=1s", "--concurrent-horizontal-pod-autoscaler-syncs=10",
             f"--horizontal-pod-autoscaler-cpu-initialization-period={CPU_INITIALIZATION}s",
             f"--horizontal-pod-autoscaler-initial-readiness-delay={INITIAL_READINESS_DELAY}s"]


# What a scenario says


def policies(*rows, select=None, window=None):
    """One direction of a `behavior`. rows: (type, value, seconds)."""
    said = {"policies": [{"type": kind, "value": value, "periodSeconds": seconds} for kind, value, seconds in rows],
            "selectPolicy": select, "stabilizationWindowSeconds": window}
    return {key: value for key, value in said.items() if value not in (None, [])}


UP, DOWN = policies(("Pods", 100, 1)), policies(("Percent", 100, 1), window=0)      # any change, at once
FREE = {"scaleUp": UP, "scaleDown": DOWN}

@dataclasses.dataclass(frozen=True)
class Pod:
    """value: its reading, None: it has none. ready: None: it has no such condition. age: s since its start, None: not started.
    changed: s since its readiness changed. sampled: s since its value was measured; only HPA can know that."""

    value: object = None
    ready: object = True
    phase: str = "Running"
    age: object = LONG_AGO
    changed: object = LONG_AGO
    sampled: int = 0
    deleting: bool = False


@dataclasses.dataclass
class Metric:
    """kind: external, object, pods, resource or container. The goal is one of value, average_value (texts), utilization (%)."""

    kind: str
    value: object = None
    average_value: object = None
    utilization: object = None
    resource: str = "cpu"
    container: str = "web"              # of a metric of the kind container

    @property
    def is_per_pod(self):
        return self.kind in ("pods", "resource", "container")

    def target(self):
        if self.utilization is not None:
            return {"type": "Utilization", "averageUtilization": self.utilization}
        if self.value is not None:
            return {"type": "Value", "value": self.value}
        return {"type": "AverageValue", "averageValue": self.average_value}

    def in_hpa(self, twin, number):
        name = {"name": f"{twin.scenario.name}-{number}"}
        service = {"apiVersion": "v1", "kind": "Service", "name": twin.name}
        word, source = {
            "external": ("External", {"metric": name}),
            "object": ("Object", {"metric": name, "describedObject": service}),
            "pods": ("Pods", {"metric": name}),
            "resource": ("Resource", {"name": self.resource}),
            "container": ("ContainerResource", {"name": self.resource, "container": self.container}),
        }[self.kind]
        return {"type": word, word[0].lower() + word[1:]: {**source, "target": self.target()}}

    def in_rule(self, scenario, number):
        track = {"query": f'reading{{scenario="{scenario.name}", metric="{number}"}}'}
        if self.utilization is not None:
            track |= {"utilization": f"{self.utilization}%", "of": f"{self.resource}_requests"}
            track |= {"container": self.container} if self.kind == "container" else {}
        else:
            goal, number = ("value", self.value) if self.value else ("average_value", self.average_value)
            track[goal] = json.loads(number)
            if self.kind == "resource":
                track["resource"] = self.resource
        return track | ({"per_pod": True} if self.is_per_pod else {})


@dataclasses.dataclass
class Stage:
    """size: the size that both come to. ours: the size that we come to, where it is another. readings: one for each metric that
    is a number, None: no data. pods: the first ones, new: all others. set: somebody sets both sizes before. path: all sizes on
    the way. disabled: HPA does not ask for metrics."""

    size: int
    readings: object = ()
    pods: list = dataclasses.field(default_factory=list)
    new: Pod = Pod()
    again: bool = False
    path: object = None
    set: object = None
    ours: object = None
    disabled: bool = False

    def pod(self, index):
        return self.pods[index] if index < len(self.pods) else self.new


@dataclasses.dataclass
class Scenario:
    """behavior: of both sides, unless our_behavior is given. tolerance: {"up": %, "down": %}. pod: parts of the pods' spec.
    differs: why the two sides do not agree, where they do not."""

    name: str
    size: int
    metrics: list
    stages: list
    min: int = 1
    max: int = 20
    behavior: object = dataclasses.field(default_factory=lambda: FREE)      # None: an HPA without it
    our_behavior: object = None
    tolerance: dict = dataclasses.field(default_factory=dict)
    pod: dict = dataclasses.field(default_factory=dict)
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
        self.sizes = []                     # all that were seen, in order, without repeats
        self.pods = {}                      # uid -> as last seen, in the order in which they came
        self.played = {}                    # uid -> the Pod that has been made of it
        self.stage = None
        self.has_readings = False
        self.until = None                   # readings only as long as this is its size; None: always
        self.looks = 0
        self.disabled_since = None

    @property
    def expected(self):
        return self.stage.ours if self.side == "ours" and self.stage.ours is not None else self.stage.size

    @property
    def size(self):
        return self.deployment["spec"]["replicas"] if self.deployment else None

    def is_settled(self):
        """Whether its pods are there, and as the stage wants them."""
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
        """{name: Pod} of its pods that have a value."""
        return {self.pods[uid]["metadata"]["name"]: want for uid, want in self.wanted() if want.value is not None}


# What both sides read


class Readings(Table):
    """The table behind the metrics APIs, for HPA, and behind Prometheus' API, for us."""

    def __init__(self, world):
        self.world = world
        self.prometheus = Server(self._answer_query)

    def _read(self, twin, number):
        """The reading of one metric: a number, {name: Pod}, or None."""
        with self.world.lock:
            stage, until = twin.stage, twin.until
            if number == 0:
                twin.looks += 1
            if not twin.has_readings:
                return None
        has_moved = until is not None and self.world.ask_size(twin) != until
        with self.world.lock:
            if has_moved or not twin.has_readings or twin.stage is not stage:
                return None
            return twin.values() if twin.scenario.metrics[number].is_per_pod else stage.readings[number]

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
        resource, used = twin.scenario.metrics[0].resource, twin.scenario.metrics[0].container
        spec = twin.deployment["spec"]["template"]["spec"]
        names = [one["name"] for one in spec["containers"] + spec.get("initContainers", [])]
        idle = {container: {resource: "0"} for container in names}
        return {name: Usage({**idle, used: {resource: pod.value}}, pod.sampled)
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


def connect(client, timeout=30):
    server = urllib.parse.urlsplit(client.url)
    return http.client.HTTPSConnection(server.hostname, server.port, timeout=timeout, context=client.tls)


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
                    self.connection = connect(self.client)
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
        self.outcomes = {}                  # scenario's name -> None, or what went wrong
        self._firing = {}                   # scenario's name -> its alert
        self._notified = 0
        self.lock = threading.RLock()
        self._local = threading.local()
        self._changed = threading.Condition(self.lock)
        self._unplayed = set()
        self._playing = set()               # each by one thread: else an old status may come last
        self._stopping = False
        self._connections = []
        self.readings = Readings(self)
        self.apis = MetricsApis(plane, NAMESPACE, self.readings)
        kubeconfig = plane.write_kubeconfig("twins", token=plane.account_token("alertscaler", "alertscaler"))
        self.daemon = Daemon(directory / "alertscaler", rules(scenarios), {
            "clusters": {"default": {"kubeconfig": str(kubeconfig)}}, "prometheus": {"url": self.readings.prometheus.url}})
        self.hpa = plane.prepare_controller_manager("hpa-controller", ["horizontalpodautoscaling"], *HPA_FLAGS)
        self._threads = [threading.Thread(target=target, args=args, daemon=True) for target, args in (
            (self._watch, ("/apis/apps/v1", "deployments", self._see_deployment)),
            (self._watch, ("/api/v1", "pods", self._see_pod)),
            (self._play_pods, ()), (self._play_pods, ()))]

    def start(self):
        for thread in self._threads:
            thread.start()
        self.apis.start()
        self.hpa.start()
        self.daemon.start()
        return self

    def stop(self):
        self.hpa.kill()                     # it would take its time to end, and has nothing to lose
        self.apis.stop()
        self._stopping = True
        with self._changed:
            self._changed.notify_all()
        for pod in self.admin.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]:
            if pod["metadata"].get("finalizers"):
                self.admin.request("PATCH", pod_path(pod), {"metadata": {"finalizers": None}}, MERGE_PATCH)
        self.admin.delete(f"/api/v1/namespaces/{NAMESPACE}")
        if self.daemon.process.running:
            self.daemon.stop()
        self.readings.prometheus.stop()

    @property
    def line(self):
        if not hasattr(self._local, "line"):
            self._local.line = Line(self.admin)
        return self._local.line

    def ask_size(self, twin):
        """Its size as the API server has it now: what was seen last may be old."""
        return self.line.request("GET", twin.path + "/scale")[1]["spec"].get("replicas", 0)

    # What is there

    def _watch(self, root, plural, see):
        """Each watch goes on where the last one ended: between two lists, deletions and sizes would be missed."""
        path = f"{root}/namespaces/{NAMESPACE}/{plural}"
        known, version = {}, None           # uid -> as last seen
        while not self._stopping:
            try:
                if version is None:
                    listed = self.admin.get(path)
                    items = {item["metadata"]["uid"]: item for item in listed["items"]}
                    for uid in known.keys() - items.keys():
                        see("DELETED", known.pop(uid))
                    for uid, item in items.items():
                        known[uid] = item
                        see("ADDED", item)
                    version = listed["metadata"]["resourceVersion"]
                for event in self._follow(f"{path}?watch=1&timeoutSeconds=60&resourceVersion={version}"):
                    if event["type"] == "ERROR":        # the version is too old
                        version = None
                        break
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] == "DELETED":
                        known.pop(event["object"]["metadata"]["uid"], None)
                    else:
                        known[event["object"]["metadata"]["uid"]] = event["object"]
                    see(event["type"], event["object"])
            except (OSError, ValueError, http.client.HTTPException):
                time.sleep(0.1)

    def _follow(self, path):
        connection = connect(self.admin, timeout=90)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.admin.token}"})
            answer = connection.getresponse()
            while not self._stopping and (line := answer.readline()):
                yield json.loads(line) if answer.status == 200 else {"type": "ERROR"}
        finally:
            connection.close()

    def _see_deployment(self, kind, item):
        twin = self.twins.get(item["metadata"]["name"])
        if twin is None:
            return
        with self.lock:
            twin.deployment = None if kind == "DELETED" else item
            if twin.size is not None and twin.sizes[-1:] != [twin.size]:
                twin.sizes.append(twin.size)

    def _see_pod(self, kind, item):
        twin = self.twins.get(item["metadata"].get("labels", {}).get("app"))
        if twin is None:
            return
        with self.lock:
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
                while not self._unplayed - self._playing and not self._stopping:
                    self._changed.wait()
                if self._stopping:
                    return
                twin = (self._unplayed - self._playing).pop()
                self._unplayed.remove(twin)
                self._playing.add(twin)
                todo = [(uid, twin.pods[uid], want) for uid, want in twin.wanted()
                        if twin.played.get(uid) != want] if twin.stage else []
            for uid, item, want in todo:
                try:
                    self._play_pod(item, want)
                except (OSError, http.client.HTTPException):
                    self._want_played(twin)
                    continue
                with self.lock:
                    twin.played[uid] = want
            with self._changed:
                self._playing.remove(twin)
                self._changed.notify()

    def _play_pod(self, item, want):
        path = pod_path(item)
        self._change("PATCH", path + "/status", {"status": pod_status(want)}, MERGE_PATCH)
        if want.deleting:
            self._change("PATCH", path, {"metadata": {"finalizers": [FINALIZER]}}, MERGE_PATCH)
            self._change("DELETE", path)

    def _change(self, *request):
        status = self.line.request(*request)[0]
        if status >= 500:                   # etcd was too slow, say: the caller tries it again
            raise http.client.HTTPException(f"HTTP {status}")

    # The scenarios

    def play(self):
        """Plays all scenarios. What came of each is then in `outcomes`."""
        scenarios = {twin.scenario.name: twin.scenario for twin in self.twins.values()}.values()
        # What takes longest begins first.
        waiting = collections.deque(sorted(scenarios, key=lambda one: one.weight, reverse=True))
        running = []

        def is_over():
            while waiting and len(running) < AT_ONCE:
                running.append(Play(self, waiting.popleft()))
            self._notify()
            running[:] = [play for play in running if not play.step()]
            return not waiting and not running

        eventually(is_over, timeout=1200, interval=0.1, what="all scenarios are over")

    def fire(self, scenario):
        labels = {"alertname": "Tracked", "scenario": scenario.name, "deployment": f"{scenario.name}-ours"}
        self._firing[scenario.name] = alert(labels, starts_at=timestamp(-1))

    def resolve(self, scenario):
        fired = self._firing.pop(scenario.name, None)
        if fired:
            self.daemon.notify(notification(alert(fired["labels"], "resolved", starts_at=fired["startsAt"])))

    def _notify(self):
        """As an Alertmanager that repeats its notifications every second."""
        if self._firing and time.monotonic() >= self._notified + 1:
            self._notified = time.monotonic()
            self.daemon.notify(notification(*self._firing.values()))


class Play:
    """One scenario that is being played: step() until it says that the scenario is over."""

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
            twin.has_readings = False
            self.world.admin.request("DELETE", twin.path)

    def _seen(self):
        return "; ".join(f"{twin.name}: sizes {twin.sizes}, {len(twin.pods)} pods, looked {twin.looks} times"
                         for twin in self.twins)

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
            with self.world.lock:
                twin.has_readings, twin.stage, twin.disabled_since = False, stage, None
            self.world._want_played(twin)
            if stage.set is not None:
                self.world.admin.patch(twin.path + "/scale", {"spec": {"replicas": stage.set}})
        if stage.set is not None:
            yield lambda: all(stage.set in twin.sizes[-2:] for twin in self.twins), f"{what}: sizes set by hand"
        yield self._are_settled, f"{what}: the pods are as it wants them"
        yield self._have_looked(1), f"{what}: both have looked without a reading"
        before = []
        for twin in self.twins:
            with self.world.lock:
                before.append(len(twin.sizes))
                twin.until = None if stage.again else twin.size
                twin.has_readings = True
        yield self._are_steady(), f"{what}: both stay there"
        if stage.path is not None:
            paths = [twin.sizes[count:] for twin, count in zip(self.twins, before)]
            assert paths == [stage.path, stage.path], f"{what}: not by {stage.path}: HPA by {paths[0]}, we by {paths[1]}"

    def _are_settled(self):
        with self.world.lock:
            return all(twin.is_settled() for twin in self.twins)

    def _looks(self, twin):
        """How often it has asked for its first metric. An HPA that is switched off asks for none: the seconds since it is."""
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
        """Whether both have the expected size, and have looked LOOKS times since anything changed."""
        seen, has_looked = None, None

        def probe():
            nonlocal seen, has_looked
            with self.world.lock:
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
    ready = {"type": "Ready", "status": str(want.ready), "lastTransitionTime": _time(want.changed)}
    return {"phase": want.phase, "startTime": None if want.age is None else _time(want.age),
            "conditions": [] if want.ready is None else [ready]}


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
    """The rule file that says the same as the HPAs. The alert names the Deployment, so we do not look at it before either."""
    targets = {s.name: {
        "kubernetes": {"kind": "Deployment", "namespace": NAMESPACE, "name": "{{ .Labels.deployment }}"},
        "allow": {"names": [f"{s.name}-ours"]}, "min": s.min, "max": s.max,
        "enforce_bounds": True, "cooldown": {"up": "0s", "down": "0s"},
        "behavior": s.our_behavior if s.our_behavior is not None else s.behavior,
        "cpu_initialization": f"{CPU_INITIALIZATION}s", "initial_readiness_delay": f"{INITIAL_READINESS_DELAY}s",
        **({"tolerance": {direction: f"{percent}%" for direction, percent in s.tolerance.items()}} if s.tolerance else {}),
    } for s in scenarios}
    return {"targets": targets, "rules": [
        {"name": f"{s.name}-{number}", "match": ['alertname="Tracked"', f'scenario="{s.name}"'], "target": s.name,
         "every": "1s", "track": metric.in_rule(s, number)} for s in scenarios for number, metric in enumerate(s.metrics)]}
