#!/usr/bin/python3
"""pool_property.py ALERTSCALER DRIVER [--count N] [--seed S]: random clusters, decided by alertscaler and by
cluster_autoscaler_model.py, Cluster Autoscaler's rules written from its documentation.

A cluster is written as objects of the Kubernetes API. DRIVER (pool_driver.c) makes a decision document of it, `alertscaler decide`
answers the document, and the model says whether Cluster Autoscaler may answer so. Every fourth cluster shrinks, the others grow.
The differences that docs/from-node-autoscalers.md lists are counted by name, and each has a limit. The seed gives the same clusters
again; ALERTSCALER_POOL_COUNT sets N.
"""
import argparse
import collections
import datetime
import json
import os
import subprocess
import sys

import cluster_autoscaler_model as model
import dice

NOW = datetime.datetime(2026, 11, 20, 10, 0, 0, tzinfo=datetime.timezone.utc)
MIB, GIB = 2**20, 2**30
MINUTE, DAY = 60, 86400
IGNORE = {"DaemonSet": 1, "Node": 2}      # enum as_node_ignore
LIMITS = {      # of the clusters that may differ so
    "order": 0.02,          # the nodes, or the sizes of pods, in another order than the model's first one
    "together": 0.01,       # equal pods are placed together, in the place of the oldest
    "unnamed": 0.01,        # a resource of an empty group counts if a node or a pod names it
    "kept": 0.01,           # an empty node that may not leave yet, or because of a minimum, takes pods
    "receives": 0.02,       # a node stays if a waiting pod has room there
    "expendable": 0.04,     # an expendable pod may hold its node
}


class Generator(dice.Dice):
    def amount(self, least, most):
        return self.random.randint(least, most)

    def kind(self, number, size):
        """Equal pods, but for their names and ages. `size` is the largest part of a node that one requests."""
        cpu, memory = self.pick((8000, 32 * GIB), (8000, 32 * GIB), (16000, 16 * GIB), (2000, 8 * GIB))
        requests = {"cpu": self.amount(1, int(cpu * size)), "memory": self.amount(1, int(memory * size / MIB)) * MIB, "pods": 1}
        kind = {"kind": f"app-{number}", "requests": requests,
                "priority": self.pick(0, 0, 0, 0, 100, 100, 1000, -10, -11, -100), "selector": {}, "tolerations": [], "ports": set(),
                "alone": self.chance(0.1), "owner": self.pick(*["ReplicaSet"] * 12, "StatefulSet", "Job", "CloneSet", None), "namespace": "shop",
                "safe": self.pick(*[None] * 10, True, False), "local": self.chance(0.08), "budget": self.pick(*[None] * 6, 0, 1, 5)}
        if self.chance(0.08):
            kind["namespace"] = "kube-system"
        if self.chance(0.25):
            kind["selector"] = {"kind": {self.pick("a", "b", "c")}} if self.chance(0.6) else {"topology.kubernetes.io/zone": {self.pick("x", "y"), "z"}}
        if self.chance(0.4):
            kind["tolerations"] = [("dedicated", "batch")]
        if self.chance(0.12):
            kind["ports"] = {self.pick(80, 443, 9100)}
        if self.chance(0.05):
            kind["requests"][model.GPU] = self.pick(1, 2)
        return kind

    def pod(self, kind, **more):
        return {**kind, "created": self.amount(10, 10**6), "waiting": False, "nominated": None, "ending": False, **more}

    def machine(self, letter):
        """What the nodes of a group have."""
        cpu, memory = self.pick((4000, 16), (8000, 32), (8000, 32), (16000, 32), (2000, 16))
        machine = {"cpu": cpu, "memory": memory * GIB, "pods": self.pick(110, 110, 110, 9)}
        if self.chance(0.1):
            machine[model.GPU] = self.pick(1, 4)
        return {"capacity": machine, "allocatable": {**machine, "cpu": cpu - self.pick(0, 100)},
                "labels": {"kind": letter}, "taints": [("dedicated", "batch")] if self.chance(0.2) else []}

    def vary(self, machine):
        """Another group's machine, similar or not."""
        memory = machine["capacity"]["memory"] * self.pick(100, 100, 99, 98) // 100
        return {**machine, "capacity": {**machine["capacity"], "memory": memory},
                "allocatable": {**machine["allocatable"], "memory": memory * self.pick(100, 98, 90) // 100}}

    def node(self, name, machine, group, zone, everywhere):
        labels = {**machine["labels"], "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}
        return {"name": name, **machine, "labels": labels, "pods": [self.pod(kind) for kind in everywhere], "ready": True,
                "cordoned": False, "young": False, "disabled": False, "group": group, "since": DAY}

    def fill(self, node, kinds, share):
        """Pods that the scheduler may have placed there, until about this share is requested."""
        room = model.Room({**node, "ready": True, "cordoned": False}, node["pods"])
        for _ in range(12):
            kind = self.pick(*kinds)
            if room.free["cpu"] <= node["allocatable"]["cpu"] * (1 - share):
                break
            if room.fits(kind):
                room.take(kind)
                node["pods"].append(self.pod(kind))

    def cluster(self, is_growing):
        kinds = [self.kind(number, self.pick(0.2, 0.5, 0.8) if is_growing else 0.2) for number in range(self.amount(2, 7))]
        everywhere = [{**self.kind("d", 0.04), "kind": f"every-{owner.lower()}", "owner": owner, "priority": 2000, "selector": {},
                       "alone": False, "safe": None, "tolerations": [("dedicated", "batch")]} for owner in ("DaemonSet", "Node") if self.chance(0.6)]
        for kind in everywhere:
            kind["requests"].pop(model.GPU, None)
        ignore = [owner for owner in ("DaemonSet", "Node") if self.chance(0.2)]
        cluster = {"groups": [], "nodes": [], "waiting": [], "balance": self.chance(0.5), "limits": {},
                   "pod_price": {"cpu": 0.03, "memory": 0.004}, "max": self.pick(1000, 1000, 1000, 12),
                   "expanders": self.pick(["least_waste"], ["least_waste"], ["most_pods"], ["least_nodes"], ["priority"], ["price"],
                                          ["most_pods", "least_nodes"], ["priority", "least_waste"], ["least_nodes", "least_waste"])}
        machines = [self.machine(letter) for letter in self.pick("a", "ab", "abc")]
        for index in range(self.amount(1, 4)):
            machine, zone = self.vary(self.pick(*machines)), self.pick("x", "y", "z")
            group = {"name": f"group-{index}", "nodes": [], "closed": self.chance(0.08), "priority": self.pick(None, 10, 10, 20),
                     "price": self.amount(1, 100) / 100, "ignore": ignore}
            count = self.pick(0, 1, 1, 2, 3) if is_growing else self.amount(0, 4)
            example = self.node("example", machine, group, zone, everywhere)
            group["last"] = example if not count and self.chance(0.8) else None
            group["nodes"] = [self.node(f"{group['name']}-{i}", machine, group, zone, everywhere) for i in range(count)]
            for node in group["nodes"]:
                node["young"] = is_growing and self.chance(0.1)
                node["ready"] = not node["young"] and not self.chance(0.05)
                node["cordoned"] = self.chance(0.05)
                node["disabled"] = self.chance(0.05)
                node["since"] = self.pick(DAY, DAY, DAY, DAY, 15 * MINUTE, 5 * MINUTE)
            coming = self.pick(0, 0, 0, 1, 2) if is_growing and (count or group["last"]) else 0
            group["size"] = count + coming
            group["min"] = self.amount(0, group["size"]) if self.chance(0.4) else 0
            group["max"] = group["size"] + self.pick(0, 1, 3, 10, 100, 100)
            cluster["groups"].append(group)
        machine = self.pick(*machines)
        strangers = [self.node(f"stranger-{i}", machine, None, "x", everywhere) for i in range(self.pick(0, 0, 1, 2))]
        cluster["nodes"] = [node for group in cluster["groups"] for node in group["nodes"]] + strangers
        for node in cluster["nodes"]:
            if not node["young"]:
                self.fill(node, kinds, self.pick(1, 1, 0.7) if is_growing else self.pick(0, 0.05, 0.2, 0.4, 0.5, 0.55))
        if is_growing and self.chance(0.15):
            cores = sum(node["capacity"]["cpu"] for node in cluster["nodes"])
            cluster["limits"]["cpu"] = cores + self.pick(0, 4000, 16000, 64000)
        if is_growing and self.chance(0.1):
            memory = sum(node["capacity"]["memory"] for node in cluster["nodes"])
            cluster["limits"]["memory"] = memory + self.pick(8, 64, 256) * GIB
        self.wait(cluster, kinds, self.amount(2, 6) if is_growing else self.pick(0, 0, 1, 2))
        return cluster

    def wait(self, cluster, kinds, rounds):
        is_open = [node for node in cluster["nodes"] if node["ready"] and not node["cordoned"]]
        ages = self.random.sample(range(100, 10000), rounds * 8)
        for _ in range(rounds):
            kind = {**self.pick(*kinds)}
            if kind["owner"] == "DaemonSet":
                continue
            for _ in range(self.amount(1, 8)):
                pod = self.pod(kind, waiting=True, created=ages.pop(), ending=self.chance(0.03))
                if self.chance(0.03) and is_open:
                    pod["nominated"] = self.pick(*is_open)
                cluster["waiting"].append(pod)


# objects of the API

def print_time(seconds):
    """So many seconds before now."""
    return (NOW - datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def print_amounts(amounts):
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in amounts.items()}


def print_node(node):
    age = 2 * MINUTE if node["young"] else 2 * DAY
    annotations = {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"} if node["disabled"] else {}
    return {"metadata": {"name": node["name"], "labels": node["labels"], "annotations": annotations, "creationTimestamp": print_time(age)},
            "spec": {"providerID": f"cloud://{node['name']}", "unschedulable": node["cordoned"],
                     "taints": [{"key": key, "value": value, "effect": "NoSchedule"} for key, value in node["taints"]]},
            "status": {"capacity": print_amounts(node["capacity"]), "allocatable": print_amounts(node["allocatable"]),
                       "conditions": [{"type": "Ready", "status": str(node["ready"]), "lastTransitionTime": print_time(age)}]}}


def print_pod(pod, name, node):
    labels = {"app": pod["kind"], "pod": name}
    metadata = {"name": name, "namespace": pod["namespace"], "labels": labels, "annotations": {},
                "creationTimestamp": print_time(10**7 - pod["created"])}
    if pod["owner"]:
        metadata["ownerReferences"] = [{"kind": pod["owner"], "name": pod["kind"], "uid": "0", "controller": True}]
    if pod["safe"] is not None:
        metadata["annotations"]["cluster-autoscaler.kubernetes.io/safe-to-evict"] = str(pod["safe"]).lower()
    if pod["ending"]:
        metadata["deletionTimestamp"] = print_time(-30)
    requests = print_amounts({name: amount for name, amount in pod["requests"].items() if name != "pods"})
    spec = {"priority": pod["priority"], "tolerations": [{"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}
                                                         for key, value in pod["tolerations"]],
            "containers": [{"name": "main", "resources": {"requests": requests},
                            "ports": [{"hostPort": port, "containerPort": port} for port in sorted(pod["ports"])]}]}
    terms = [{"key": key, "operator": "In", "values": sorted(values)} for key, values in pod["selector"].items() if len(values) > 1]
    spec["nodeSelector"] = {key: min(values) for key, values in pod["selector"].items() if len(values) == 1}
    spec["affinity"] = {}
    if terms:
        spec["affinity"]["nodeAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": terms}]}}
    if pod["alone"]:
        spec["affinity"]["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": pod["kind"]}}, "topologyKey": "kubernetes.io/hostname"}]}
    if pod["local"]:
        spec["volumes"] = [{"name": "data", "emptyDir": {}}]
    status = {"phase": "Pending" if pod["waiting"] else "Running"}
    if node:
        spec["nodeName"] = node["name"]
    else:
        status["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    if pod["nominated"]:
        status["nominatedNodeName"] = pod["nominated"]["name"]
    return {"metadata": metadata, "spec": spec, "status": status}


def print_budget(pod):
    return {"metadata": {"name": pod["kind"], "namespace": pod["namespace"]},
            "spec": {"selector": {"matchLabels": {"app": pod["kind"]}}}, "status": {"disruptionsAllowed": pod["budget"]}}


def print_template(node):
    template = model.get_template({"nodes": [], "last": node})
    return json.dumps({"allocatable": template.allocatable, "capacity": template.capacity, "free": template.free,
                       "ports": [{"ip": "0.0.0.0", "port": port, "protocol": "TCP"} for port in sorted(template.ports)],
                       "labels": {key: value for key, value in template.labels.items() if key != "kubernetes.io/hostname"},
                       "taints": [{"key": key, "value": value, "effect": "NoSchedule"} for key, value in template.taints]})


def print_group(group):
    printed = {key: group[key] for key in ("name", "size", "min", "max", "closed", "price")}
    printed["nodes"] = [node["name"] for node in group["nodes"]]
    printed["ignore"] = sum(IGNORE[owner] for owner in group["ignore"])
    if group["priority"] is not None:
        printed["priority"] = group["priority"]
    if group["last"]:
        printed["last"] = print_template(group["last"])
    return printed


def print_cluster(cluster):
    pods = [(pod, node) for node in cluster["nodes"] for pod in node["pods"]] + [(pod, None) for pod in cluster["waiting"]]
    return {"nodes": [print_node(node) for node in cluster["nodes"]],
            "pods": [print_pod(pod, f"pod-{number}", node) for number, (pod, node) in enumerate(pods)],
            "budgets": list({pod["kind"]: print_budget(pod) for pod, _ in pods if pod["budget"] is not None}.values()),
            "groups": [print_group(group) for group in cluster["groups"]], "balance": cluster["balance"],
            "unneeded": sorted(({"name": node["name"], "since": node["since"]} for node in cluster["nodes"]), key=lambda node: node["name"])}


def complete(document, cluster, is_growing):
    """The target and the rule."""
    size = sum(group["size"] for group in cluster["groups"])
    document["observed"]["replicas"] = size
    document["target"] = {"min": 0, "max": cluster["max"],
                          "pool": {**document["target"]["pool"], "choose": cluster["expanders"],
                                   "pod_price": cluster["pod_price"]}}
    for name, most in cluster["limits"].items():
        document["target"]["pool"][name] = {"max": most / 1000 if name == "cpu" else most}
    action = {"scale_up": {"fit": "pending_pods"}} if is_growing else {"scale_down": {"take": "unneeded_nodes"}}
    document["proposals"] = [{"rule": "rule", "action": action}]
    return document


def compare(cluster, answer, is_growing):
    if is_growing:
        growth = {group["name"]: group["to"] - group["from"] for group in answer.get("groups", [])}
        return model.admits_growth(cluster, growth), bool(growth)
    taken = set(answer.get("take", []))
    return model.admits_removal(cluster, taken), bool(taken)


def run(command, lines):
    done = subprocess.run(command, input="\n".join(map(json.dumps, lines)) + "\n", capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command}: status {done.returncode}\n{done.stderr[-3000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("driver")
    parser.add_argument("--count", type=int, default=int(os.environ.get("ALERTSCALER_POOL_COUNT", "2800")))
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    generator = Generator(arguments.seed)
    ways = [number % 4 != 0 for number in range(arguments.count)]
    clusters = [generator.cluster(way) for way in ways]
    documents = run([arguments.driver], [print_cluster(cluster) for cluster in clusters])
    documents = [complete(*each) for each in zip(documents, clusters, ways)]
    answers = run([arguments.program, "decide"], documents)
    counts, changes, wrong = collections.Counter(), collections.Counter(), []
    for number, (cluster, is_growing, answer) in enumerate(zip(clusters, ways, answers)):
        differences, is_change = compare(cluster, answer, is_growing)
        counts.update(differences or ["same"])
        changes[is_growing] += is_change
        if differences is None:
            wrong.append(number)
    grown, shrunk = sum(ways), len(ways) - sum(ways)
    print(f"{grown} clusters to grow, {changes[True]} grow; {shrunk} to shrink, {changes[False]} shrink; {len(wrong)} answers are wrong; "
          f"{counts['same'] - len(wrong)} same; documented differences: " + ", ".join(f"{counts[name]} {name}" for name in LIMITS))
    if wrong:
        print(json.dumps(documents[wrong[0]]), json.dumps(answers[wrong[0]]), sep="\n")
        sys.exit(f"{len(wrong)} differ, seed {arguments.seed}: clusters {wrong[:20]}")
    if any(counts[name] > 1 + limit * len(clusters) for name, limit in LIMITS.items()):
        sys.exit(f"too many differences, seed {arguments.seed}; at most: {LIMITS}")
    if changes[True] < grown / 3 or changes[False] < shrunk / 2:
        sys.exit("too few changes to prove much")


if __name__ == "__main__":
    main()
