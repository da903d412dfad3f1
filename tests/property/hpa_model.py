"""Kubernetes' Horizontal Pod Autoscaler, as its documentation and its controller say (pkg/controller/podautoscaler): one HPA in
virtual time. Numbers are integers of thousandths where the controller has them, doubles where it has those.

A metric is a dict: kind (resource, pods, number), goal (utilization, average_value, value), target (percent, or thousandths),
resource (cpu, memory or None), container (whose requests count; absent: the whole pod's). A reading is a dict of pods to thousandths, one number of thousandths, or None. A pod is a dict:
name, phase, ready, deleting, age and changed (seconds), cpu and memory (thousandths), containers (a dict of dicts of these).
"""
import math

CPU_INITIALIZATION, INITIAL_READINESS_DELAY = 300, 30
DOWN_WINDOW = 300       # of an HPA without `behavior`


class NoValue(Exception):
    """The metric has no value now."""


def ceil(number):
    return math.ceil(number)


class Hpa:
    def __init__(self, spec, replicas):
        self.spec, self.replicas = spec, replicas
        self.recommendations, self.ups, self.downs = [], [], []

    # what the metrics want

    def tolerates(self, ratio):
        return 1.0 - self.spec["tolerance"]["down"] <= ratio <= 1.0 + self.spec["tolerance"]["up"]

    @staticmethod
    def group(pods, reading, resource):
        ready, unready, missing, ignored = [], [], [], []
        for pod in pods:
            if pod["deleting"] or pod["phase"] == "Failed":
                ignored.append(pod["name"])
            elif pod["phase"] == "Pending":
                unready.append(pod["name"])
            elif pod["name"] not in reading:
                missing.append(pod["name"])
            elif resource == "cpu" and not pod["ready"] and (pod["age"] < CPU_INITIALIZATION
                                                            or pod["changed"] > pod["age"] - INITIAL_READINESS_DELAY):
                unready.append(pod["name"])
            else:
                ready.append(pod["name"])
        return ready, unready, missing, ignored

    @staticmethod
    def ratio(metric, reading, requests):
        total = sum(reading.values())
        if metric["goal"] == "utilization":
            asked = sum(requests[name] for name in reading)
            if asked == 0:
                raise NoValue
            return total * 100 // asked / metric["target"]
        return total // len(reading) / metric["target"]

    @staticmethod
    def requests(metric, pods):
        container = metric.get("container")
        if container is None:
            return {pod["name"]: pod[metric["resource"]] for pod in pods}
        if any(container not in pod["containers"] for pod in pods):
            raise NoValue
        return {pod["name"]: pod["containers"][container][metric["resource"]] for pod in pods}

    def of_pods(self, metric, reading, pods):
        if not pods or reading is None:
            raise NoValue
        requests = self.requests(metric, pods) if metric["resource"] else {}
        reading = {name: value for name, value in reading.items() if name in {pod["name"] for pod in pods}}
        ready, unready, missing, ignored = self.group(pods, reading, metric["resource"])
        for name in ignored + unready:
            reading.pop(name, None)
        if not reading:
            raise NoValue
        ratio = self.ratio(metric, reading, requests)
        with_unready = bool(unready) and ratio > 1
        if not with_unready and not missing:
            return self.replicas if self.tolerates(ratio) else ceil(ratio * len(ready))
        if ratio < 1:
            for name in missing:
                reading[name] = (requests[name] * max(100, metric["target"]) // 100 if metric["goal"] == "utilization"
                                 else metric["target"])
        elif ratio > 1:
            reading.update(dict.fromkeys(missing, 0))
        if with_unready:
            reading.update(dict.fromkeys(unready, 0))
        new = self.ratio(metric, reading, requests)
        if self.tolerates(new) or (ratio < 1 < new) or (new < 1 < ratio):
            return self.replicas
        wanted = ceil(new * len(reading))
        if (new < 1 and wanted > self.replicas) or (new > 1 and wanted < self.replicas):
            return self.replicas
        return wanted

    def of_number(self, metric, reading, pods):
        if reading is None:
            raise NoValue
        if metric["goal"] == "average_value":
            if self.replicas > 0 and self.tolerates(reading / (metric["target"] * self.replicas)):
                return self.replicas
            return ceil(reading / metric["target"])
        ratio = reading / metric["target"]
        if self.replicas == 0:
            return ceil(ratio)
        if self.tolerates(ratio):
            return self.replicas
        if not pods:
            raise NoValue
        return ceil(ratio * sum(pod["phase"] == "Running" and pod["ready"] for pod in pods))

    # one turn

    def turn(self, now, readings, pods):
        least, most = self.spec["min"], self.spec["max"]
        if not self.recommendations:
            self.recommendations.append((now, self.replicas))
        if self.replicas == 0 and least != 0:
            return
        if self.replicas > most or self.replicas < least:
            self.resize(now, most if self.replicas > most else least)
            return
        wanted, is_missing = [], False
        for metric, reading in zip(self.spec["metrics"], readings):
            try:
                compute = self.of_number if metric["kind"] == "number" else self.of_pods
                wanted.append(compute(metric, reading, pods))
            except NoValue:
                is_missing = True
        if not wanted or (is_missing and max(wanted) < self.replicas):
            return
        self.resize(now, self.limit(now, self.stabilize(now, max(wanted))))

    def resize(self, now, size):
        change = size - self.replicas
        if change:
            (self.ups if change > 0 else self.downs).append((now, abs(change)))
        self.replicas = size

    # `behavior`

    def stabilize(self, now, wanted):
        behavior = self.spec["behavior"]
        window = {way: behavior[way]["window"] for way in ("up", "down")}
        lowest = min([wanted, *(size for at, size in self.recommendations if at > now - window["up"])])
        highest = max([wanted, *(size for at, size in self.recommendations if at > now - window["down"])])
        self.recommendations.append((now, wanted))
        return min(max(self.replicas, lowest), highest)

    def limit(self, now, wanted):
        if wanted > self.replicas:
            limit = max(self.rate(now, "up"), self.replicas)
            return min(wanted, limit, self.spec["max"])
        if wanted < self.replicas:
            limit = min(self.rate(now, "down"), self.replicas)
            return max(wanted, limit, self.spec["min"])
        return wanted

    def rate(self, now, way):
        rules, sign = self.spec["behavior"][way], 1 if way == "up" else -1
        if rules["select"] == "Disabled":
            return self.replicas
        limits = []
        for kind, value, period in rules["policies"]:
            start = (self.replicas - sum(change for at, change in self.ups if at > now - period)
                     + sum(change for at, change in self.downs if at > now - period))
            if kind == "Pods":
                limits.append(start + sign * value)
            elif way == "up":
                limits.append(ceil(float(start) * (1 + value / 100)))
            else:
                limits.append(int(float(start) * (1 - value / 100)))
        widest, narrowest = (max, min) if way == "up" else (min, max)
        return (narrowest if rules["select"] == "Min" else widest)(limits)
