#!/usr/bin/python3
"""convert_property.py ALERTSCALER [--count N] [--seed S]: random HPAs come to the same sizes after `alertscaler convert`.

Each HPA is written as its object, in one of its API's versions, beside one configuration of prometheus-adapter, and converted.
What is converted runs in the engine, by `alertscaler test`, over several turns of 15 seconds with random readings and pods; the
sizes that are expected are those of hpa_model.py. The seed gives the same HPAs again; ALERTSCALER_CONVERT_COUNT sets N.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import yaml

import dice
import hpa_model

TURNS = 8
ADAPTER = {
    "rules": [
        {"seriesQuery": 'http_requests_total{namespace!="",pod!=""}', "resources": {"template": "<<.Resource>>"},
         "name": {"matches": "^(.*)_total$", "as": "${1}_per_second"},
         "metricsQuery": "sum(rate(<<.Series>>{<<.LabelMatchers>>}[2m])) by (<<.GroupBy>>)"},
        {"seriesQuery": '{__name__=~"^ingress_.*"}',
         "resources": {"overrides": {"exported_namespace": {"resource": "namespaces"}, "way": {"group": "networking.k8s.io", "resource": "ingresses"}}},
         "name": {"matches": "^ingress_(.*)$", "as": ""}, "metricsQuery": "max(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)"},
    ],
    "externalRules": [
        {"seriesQuery": '{__name__=~"^queue_.*"}', "resources": {"namespaced": False}, "metricsQuery": "<<.Series>>{<<.LabelMatchers>>}"},
    ],
}


class Generator(dice.Dice):
    def quantity(self, milli):
        """One of the texts of this quantity, which may be finer than thousandths: the API rounds up."""
        texts = [f"{milli}m", f"{milli / 1000:.3f}", f"{milli * 1000 - self.random.randrange(0, 1000)}u"]
        if milli % 1000 == 0:
            texts += [str(milli // 1000), f"{milli // 1000}e0"]
        if milli % 10**6 == 0:
            texts += [f"{milli // 10**6}k"]
        return self.pick(*texts)

    def goal(self):
        return self.pick(1000, 100000, 500, 7, 1, 33333, 2000000, self.random.randrange(1, 10**7))

    def metric(self, number):
        """(the model's metric, the object's)"""
        kind = self.pick("Resource", "Resource", "ContainerResource", "Pods", "Object", "External", "External")
        resource = self.pick("cpu", "memory")
        utilization, value = self.random.randrange(1, 200), self.goal()
        goal = self.pick("utilization", "average_value") if "Resource" in kind else "average_value"
        if kind in ("Object", "External"):
            goal = self.pick("value", "average_value")
        target = {"utilization": {"type": "Utilization", "averageUtilization": utilization},
                  "average_value": {"type": "AverageValue", "averageValue": self.quantity(value)},
                  "value": {"type": "Value", "value": self.quantity(value)}}[goal]
        source = {
            "Resource": {"name": resource},
            "ContainerResource": {"name": resource, "container": f"box-{number}"},
            "Pods": {"metric": {"name": "http_requests_per_second"}},
            "Object": {"metric": {"name": f"load_{number}", "selector": {"matchLabels": {"zone": "a"}}},
                       "describedObject": {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"}},
            "External": {"metric": {"name": f"queue_{number}"}},
        }[kind]
        if kind == "External" and self.chance(0.5):
            source["metric"]["selector"] = {"matchExpressions": [{"key": "queue", "operator": "In", "values": ["a", "b.c"]}]}
        model = {"kind": {"Object": "number", "External": "number", "Pods": "pods"}.get(kind, "resource"), "goal": goal,
                 "target": utilization if goal == "utilization" else value, "resource": resource if "Resource" in kind else None}
        if kind == "ContainerResource" and goal == "utilization":
            model["container"] = f"box-{number}"
        return model, {"type": kind, kind[0].lower() + kind[1:]: {**source, "target": target}}

    def direction(self, way):
        """(the model's, the object's) rules of a direction, with the API's defaults."""
        policies = [(self.pick("Pods", "Percent"), self.pick(1, 2, 4, 10, 33, 50, 100), self.pick(15, 30, 60, 90))
                    for _ in range(self.random.randrange(1, 4))]
        window, select = self.pick(0, 15, 30, 60, 300), self.pick("Max", "Max", "Min", "Disabled")
        default = [("Pods", 4, 15), ("Percent", 100, 15)] if way == "up" else [("Percent", 100, 15)]
        given = {key: self.chance(0.6) for key in ("stabilizationWindowSeconds", "selectPolicy", "policies")}
        said = {"stabilizationWindowSeconds": window, "selectPolicy": select,
                "policies": [{"type": kind, "value": value, "periodSeconds": period} for kind, value, period in policies]}
        model = {"window": window if given["stabilizationWindowSeconds"] else (0 if way == "up" else 300),
                 "select": select if given["selectPolicy"] else "Max", "policies": policies if given["policies"] else default}
        return model, {key: value for key, value in said.items() if given[key]}

    def hpa(self, number):
        metrics = [self.metric(i) for i in range(self.pick(1, 1, 2, 3))]
        least, most = sorted((self.random.randrange(1, 12), self.random.randrange(1, 40)))
        if self.chance(0.2) and any(kind["kind"] == "number" for kind, _ in metrics):
            least = 0
        tolerance = {"up": 0.1, "down": 0.1}
        (up, up_said), (down, down_said) = self.direction("up"), self.direction("down")
        for said, way in ((up_said, "up"), (down_said, "down")):
            if self.chance(0.2):
                percent = self.pick(0, 5, 20, 1)
                tolerance[way] = percent / 100
                said["tolerance"] = self.pick(f"{percent * 10}m", f"{percent / 100:.2f}")
        name = f"hpa-{number}"
        spec = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}, "maxReplicas": most,
                "metrics": [said for _, said in metrics], "behavior": {"scaleUp": up_said, "scaleDown": down_said}}
        if least != 1 or self.chance(0.5):
            spec["minReplicas"] = least
        manifest = {"apiVersion": self.pick("autoscaling/v2", "autoscaling/v2", "autoscaling/v2beta2"), "kind": "HorizontalPodAutoscaler",
                    "metadata": {"name": name, "namespace": "shop"}, "spec": spec}
        model = {"min": least, "max": most, "metrics": [kind for kind, _ in metrics], "tolerance": tolerance,
                 "behavior": {"up": up, "down": down}}
        return model, manifest

    def simple_hpa(self, number):
        """autoscaling/v1, and v2 without metrics: cpu, 80 % if nothing is said. Without a `behavior`, so its sizes are those of the
        policies that stand for it; from 2 replicas HPA itself stops at 4."""
        percent = self.random.randrange(1, 150)
        most = self.random.randrange(1, 40)
        is_given = self.chance(0.7)
        spec = {"scaleTargetRef": {"kind": "Deployment", "name": f"hpa-{number}"}, "maxReplicas": most}
        if is_given:
            spec["targetCPUUtilizationPercentage"] = percent
        manifest = {"apiVersion": "autoscaling/v1" if is_given else "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
                    "metadata": {"name": f"hpa-{number}", "namespace": "shop"}, "spec": spec}
        metric = {"kind": "resource", "goal": "utilization", "target": percent if is_given else 80, "resource": "cpu"}
        behavior = {"up": {"window": 0, "select": "Max", "policies": [("Percent", 100, 15), ("Pods", 3, 15)]},
                    "down": {"window": 300, "select": "Max", "policies": [("Percent", 100, 15)]}}
        return {"min": 1, "max": most, "metrics": [metric], "tolerance": {"up": 0.1, "down": 0.1}, "behavior": behavior}, manifest

    def pods(self, count):
        pods = []
        for i in range(count):
            age = self.pick(86400, 86400, 10, 100, 299, 301, 400)
            pods.append({"name": f"pod-{i}", "phase": self.pick(*["Running"] * 6, "Pending", "Failed", "Succeeded"), "deleting": self.chance(0.08),
                         "ready": self.chance(0.85), "age": age, "changed": min(age, self.pick(0, 5, 29, 31, age, age)),
                         "cpu": self.pick(1000, 500, 250, 333), "memory": self.pick(10**9, 5 * 10**8) * 1000,
                         "containers": {f"box-{box}": {"cpu": self.pick(100, 200, 333), "memory": self.pick(10**8, 10**7) * 1000}
                                        for box in range(3) if self.chance(0.98)}})
        return pods

    def reading(self, metric, pods, replicas):
        if self.chance(0.08):
            return None
        factor = self.pick(0, 0.3, 0.6, 0.89, 0.9, 0.95, 1, 1, 1.05, 1.1, 1.11, 1.5, 2, 3, 10)
        if metric["kind"] == "number":
            share = replicas if metric["goal"] == "average_value" else 1
            return round(metric["target"] * factor * share)
        def usage(pod):
            if metric["goal"] == "utilization":
                of = pod["containers"].get(metric["container"], pod) if "container" in metric else pod
                return round(of[metric["resource"]] * metric["target"] / 100 * factor)
            return round(metric["target"] * factor * self.pick(1, 1, 0.5, 1.5))
        return {pod["name"]: usage(pod) for pod in pods if self.chance(0.9)} or None


def print_milli(milli):
    return milli // 1000 if milli % 1000 == 0 else milli / 1000


def print_requests(of):
    return {"cpu": f"{of['cpu']}m", "memory": str(of["memory"] // 1000)}


def print_pod(pod):
    return {"name": pod["name"], "phase": pod["phase"], "ready": pod["ready"], "deleting": pod["deleting"], "age": f"{pod['age']}s",
            "ready_for": f"{pod['changed']}s", "requests": print_requests(pod),
            "containers": [{"name": name, "requests": print_requests(of)} for name, of in pod["containers"].items()]}


def play(generator, model, rules, name):
    """A rule test whose sizes are the model's; and how often each thing happened."""
    replicas = generator.random.randrange(0 if model["min"] == 0 else 1, model["max"] + 3)
    pods = generator.pods(generator.pick(replicas, replicas, max(0, replicas - 1), replicas + 1))
    hpa, queries, expected = hpa_model.Hpa(model, replicas), [], []
    changes = 0
    changed = {}
    for turn in range(TURNS):
        now = 15 * turn
        aged = [{**pod, "age": pod["age"] + now, "changed": pod["changed"] + now} for pod in pods]
        readings = []
        for metric, rule in zip(model["metrics"], rules):
            query = rule["track"]["query"]
            if query in changed and changed[query][0] == turn:      # two metrics of one query have one reading
                readings.append(changed[query][1])
                continue
            reading = generator.reading(metric, pods, max(hpa.replicas, 1))
            changed[query] = (turn, reading)
            readings.append(reading)
            answer = ({"error": "no data"} if reading is None else {"value": print_milli(reading)} if metric["kind"] == "number"
                      else {"pods": {pod: print_milli(value) for pod, value in reading.items()}})
            queries.append({"query": query, "at": f"{now}s", **answer})
        before = hpa.replicas
        hpa.turn(now, readings, aged)
        changes += hpa.replicas != before
        expected.append({"at": f"{now}s", "target": f"shop.{name}", "replicas": hpa.replicas})
    return {"name": f"{name} from {replicas}", "targets": {f"shop.{name}": {"replicas": replicas, "pods": [print_pod(pod) for pod in pods]}},
            "queries": queries, "expect": expected}, changes


def check_rules(model, rules, name):
    """The goals are the object's, whatever their texts."""
    assert len(rules) == len(model["metrics"]), f"{name}: {len(rules)} rules"
    for metric, rule in zip(model["metrics"], rules):
        value = rule["track"][metric["goal"]]
        said = round(float(str(value).rstrip("%")) * (1 if metric["goal"] == "utilization" else 1000))
        assert said == metric["target"], f"{rule['name']}: {value}, not {metric['target']}"
        assert rule["track"].get("container") == metric.get("container"), rule["name"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=int(os.environ.get("ALERTSCALER_CONVERT_COUNT", "150")))
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    generator = Generator(arguments.seed)
    made = [(generator.hpa if generator.chance(0.85) else generator.simple_hpa)(number) for number in range(arguments.count)]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "hpas.yaml").write_text(yaml.safe_dump_all([manifest for _, manifest in made]), encoding="utf-8")
        (folder / "adapter.yaml").write_text(yaml.safe_dump(ADAPTER), encoding="utf-8")
        out = folder / "out"
        done = subprocess.run([arguments.program, "convert", folder / "hpas.yaml", folder / "adapter.yaml", "--out", out],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"status {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        changes, files = 0, []
        for number, (model, _) in enumerate(made):
            rules = yaml.safe_load((out / f"rules/shop.hpa-{number}.yaml").read_text(encoding="utf-8"))["rules"]
            check_rules(model, rules, number)
            tests = []
            for _ in range(2):
                test, changed = play(generator, model, rules, f"hpa-{number}")
                tests.append(test)
                changes += changed
            files.append(folder / f"test-{number}.yaml")
            files[-1].write_text(yaml.safe_dump({"rule_files": [f"out/rules/shop.hpa-{number}.yaml"], "tests": tests}), encoding="utf-8")
        done = subprocess.run([arguments.program, "test", *files], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            first = done.stdout.find("FAILED")
            file = done.stdout[:first].rsplit("Unit Testing: ", 1)[-1].split("\n")[0]
            shown = pathlib.Path(file).read_text(encoding="utf-8") if first >= 0 else ""
            number = pathlib.Path(file).stem.partition("-")[2]
            rules = (out / f"rules/shop.hpa-{number}.yaml").read_text(encoding="utf-8") if first >= 0 else ""
            failed = done.stdout.count("FAILED")
            sys.exit(f"{failed} of {len(files)} differ, seed {arguments.seed}\n{rules}\n{shown}\n{done.stdout[max(first, 0):first + 3000]}{done.stderr[-2000:]}")
    print(f"{arguments.count} HPAs, {2 * TURNS * arguments.count} turns, {changes} changes of size: the same sizes")
    if changes < arguments.count:
        sys.exit("too few changes to prove much")


main()
