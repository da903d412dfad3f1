"""core/nodes and the real kube-scheduler say the same about random pods and nodes.

Pods are made one after the other. When the scheduler has decided on one, each node of the cluster is exactly as our side knows it,
and our side is asked about that pod: a pod that was placed must fit on its node, and a pod that is Unschedulable on none. The
scheduler's message also says how many nodes it refused by labels and taints: that number must be ours.

What the predicates do not check is in some of the pods (UNCHECKED): there the scheduler may refuse what fits by our word, never the
other way round. SCHEDULER_SEED and SCHEDULER_PODS say which pods, and how many.
"""
import collections
import http.client
import json
import os
import random
import re
import time
import urllib.parse

import pytest

from harness import control_plane as kubernetes
from harness.control_plane import ControlPlane
from harness.driver import Driver
from harness.wait import PATIENCE, eventually

SEED = int(os.environ.get("SCHEDULER_SEED", "7"))
PODS = int(os.environ.get("SCHEDULER_PODS", "500"))
NODES = 40

pytestmark = [pytest.mark.kubernetes, pytest.mark.skipif(bool(kubernetes.missing()), reason=str(kubernetes.missing()))]

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
LABELS = {ZONE: ["a", "b", "c"], "disk": ["ssd", "hdd", ""], "gen": ["1", "5", "007", "12", "x"], "team": ["red", "blue"]}
TAINTS = {"dedicated": ["red", "blue"], "gpu": [""], "example.com/slow": ["1", "2"]}
EFFECTS = {"N": "NoSchedule", "P": "PreferNoSchedule", "X": "NoExecute"}
OPERATORS = {"in": "In", "notin": "NotIn", "exists": "Exists", "absent": "DoesNotExist", "gt": "Gt", "lt": "Lt"}
AMOUNTS = {"cpu": ("cpu", "m"), "memory": ("memory", ""), "disk": ("ephemeral-storage", ""), "pods": ("pods", ""),
           "gpu": ("example.com/gpu", ""), "fpga": ("example.com/fpga", "")}

# What the scheduler says of the nodes that NodeAffinity (also before it filters) and TaintToleration refuse.
ADMISSION = re.compile(r"(\d+) node\(s\) (?:had (?:untolerated )?taint|didn't match Pod's node affinity|didn't satisfy plugin\(s\) "
                       r"\[NodeAffinity\])")
UNCHECKED = ["affinity", "zone anti-affinity", "spread", "volume", "anti-affinity of others"]
OUR_ADMISSION = {"node selector or node affinity does not match", "taint is not tolerated"}


class FitDriver(Driver):
    """tests/integration/fit_driver.c"""

    name = "fit_driver"

    def ask(self, op, **command):
        return self.wait(self.send(op=op, **command))


def amounts_of(words):
    """{"cpu": 100} as the API has it."""
    return {AMOUNTS[name][0]: f"{number}{AMOUNTS[name][1]}" for name, number in words.items()}


class Node:
    def __init__(self, numbers, name):
        self.name = name
        self.amounts = {"cpu": numbers.choice([500, 1000, 2000, 4000]), "memory": numbers.choice([500, 2000, 8000]),
                        "disk": numbers.choice([1000, 5000]), "pods": numbers.choice([5, 10, 30])}
        self.amounts |= {name: numbers.randint(0, 3) for name in ("gpu", "fpga") if numbers.random() < 0.3}
        self.labels = {name: numbers.choice(values) for name, values in LABELS.items() if numbers.random() < 0.8}
        self.labels[HOSTNAME] = name
        self.taints = [(key, numbers.choice(values), numbers.choice("NNPX")) for key, values in TAINTS.items()
                       if numbers.random() < 0.25]

    def to_words(self):
        words = [f"{name}:{number}" for name, number in self.amounts.items()]
        words += [f"{name}={value}" for name, value in self.labels.items()]
        return " ".join(words + [f"!{key}={value}/{effect}" for key, value, effect in self.taints])

    def create(self, client):
        client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name, "labels": self.labels}})
        amounts, conditions = amounts_of(self.amounts), [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
        client.patch(f"/api/v1/nodes/{self.name}/status",
                     {"status": {"capacity": amounts, "allocatable": amounts, "conditions": conditions}})
        # Also without the taint that admission gives a node whose kubelet has not spoken yet.
        client.patch(f"/api/v1/nodes/{self.name}", {"spec": {"taints": [
            {"key": key, "value": value, "effect": EFFECTS[effect]} for key, value, effect in self.taints]}})


class Pod:
    def __init__(self, numbers, name):
        def chance(share):
            return numbers.random() < share

        self.name = name
        self.amounts = {"cpu": numbers.choice([0, 1, 100, 100, 250, 900]), "memory": numbers.choice([0, 1, 100, 400]),
                        **({"disk": numbers.choice([1, 500, 1500])} if chance(0.2) else {}),
                        **({"gpu": numbers.choice([0, 1, 2])} if chance(0.1) else {}), **({"fpga": 1} if chance(0.05) else {})}
        keys = numbers.sample(sorted(LABELS), numbers.choice([0, 0, 0, 1, 1, 2]))
        self.selector = {key: numbers.choice(LABELS[key]) for key in keys}
        self.terms = [self._random_term(numbers) for _ in range(numbers.choice([1, 1, 2, 3]))] if chance(0.4) else []
        self.tolerations = [self._random_toleration(numbers) for _ in range(numbers.choice([0, 0, 1, 2, 3]))]
        self.ports = [(numbers.choice(["TCP", "TCP", "UDP"]), numbers.choice(["0.0.0.0", "127.0.0.1", "10.0.0.1"]),
                       numbers.choice([8080, 9090]))] if chance(0.3) else []
        self.loner = numbers.randint(1, 4) if chance(0.2) else 0
        self.labels = {"app": f"loner-{self.loner}"} if self.loner else {"app": "any"}
        self.unchecked = None
        if chance(0.1):
            # The last one has the labels that loners keep away from, and does not keep away itself.
            self.unchecked = numbers.choice(UNCHECKED)
            self.loner, self.labels = 0, {"app": "loner-1" if self.unchecked == UNCHECKED[-1] else "unchecked"}
        if chance(0.5):     # for one node: what is said of that node decides
            self.selector = {HOSTNAME: f"n{numbers.randrange(NODES)}"}
            self.tolerations = numbers.choice([self.tolerations, [("", None, "")]])
            self.terms = self.terms if chance(0.5) else []

    @staticmethod
    def _random_term(numbers):
        """(key, operator, values) each; the key of a field begins with "="."""
        term = []
        for _ in range(numbers.choice([0, 1, 1, 1, 2, 2, 3])):
            key, operator = numbers.choice([*LABELS, "nowhere"]), numbers.choice(list(OPERATORS))
            if operator in ("gt", "lt"):
                term.append(("gen", operator, [numbers.choice(["0", "3", "05", "7", "012", "x"])]))
            elif operator in ("exists", "absent"):
                term.append((key, operator, []))
            else:
                term.append((key, operator, numbers.sample(LABELS.get(key, ["1", "2"]), numbers.choice([1, 2]))))
        if numbers.random() < 0.15:
            term.append(("=metadata.name", numbers.choice(["in", "notin"]), [f"n{numbers.randrange(NODES)}"]))
        return term

    @staticmethod
    def _random_toleration(numbers):
        """(key, value or None for Exists, effect)"""
        key = numbers.choice(["", *TAINTS, *TAINTS])
        value = numbers.choice([None, *TAINTS[key]]) if key else None
        return key, value, numbers.choice(["", "N", "N", "X"])

    def to_words(self):
        words = [f"{name}:{number}" for name, number in self.amounts.items()]
        words += [f"{key}={value}" for key, value in self.selector.items()]
        for term in self.terms:
            parts = [":".join([key, operator, *([",".join(values)] if values else [])]) for key, operator, values in term]
            words.append("?" + "&".join(parts))
        words += [f"~{key}{'' if value is None else '=' + value}/{effect}" for key, value, effect in self.tolerations]
        words += ["@" + "/".join(map(str, port)) for port in self.ports]
        return " ".join(words + [f"#{self.loner}"] * bool(self.loner))

    def _affinity(self):
        apart = {"labelSelector": {"matchLabels": self.labels}, "topologyKey": HOSTNAME}
        by_zone = {**apart, "topologyKey": ZONE}
        affinity = {}
        if self.terms:
            terms = [{"matchExpressions": [self._requirement(*one) for one in term if one[0][0] != "="],
                      "matchFields": [self._requirement(*one) for one in term if one[0][0] == "="]} for term in self.terms]
            affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        if self.loner:
            affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
        if self.unchecked == "zone anti-affinity":
            affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [by_zone]}
        if self.unchecked == "affinity":
            others = {"labelSelector": {"matchLabels": {"app": "loner-2"}}, "topologyKey": ZONE}
            affinity["podAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [others]}
        return affinity

    @staticmethod
    def _requirement(key, operator, values):
        return {"key": key.lstrip("="), "operator": OPERATORS[operator], **({"values": values} if values else {})}

    def to_object(self):
        amounts = amounts_of(self.amounts)
        limits = {name: amount for name, amount in amounts.items() if "example.com" in name}
        ports = [{"containerPort": port, "hostPort": port, "protocol": protocol, **({} if ip == "0.0.0.0" else {"hostIP": ip})}
                 for protocol, ip, port in self.ports]
        spec = {
            "containers": [{"name": "main", "image": "example/main:1", "ports": ports,
                            "resources": {"requests": amounts, "limits": limits}}],
            "nodeSelector": self.selector, "affinity": self._affinity(), "automountServiceAccountToken": False,
            "tolerations": [{**({"key": key} if key else {}), "operator": "Exists" if value is None else "Equal",
                             **({"value": value} if value else {}), **({"effect": EFFECTS[effect]} if effect else {})}
                            for key, value, effect in self.tolerations],
        }
        if self.unchecked == "spread":
            spec["topologySpreadConstraints"] = [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
                                                  "labelSelector": {"matchLabels": self.labels}}]
        if self.unchecked == "volume":
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}]
        metadata = {"name": self.name, "namespace": "default", "labels": self.labels}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


class Watch:
    """Events of pods, on one connection."""

    def __init__(self, client):
        version = client.get("/api/v1/namespaces/default/pods")["metadata"]["resourceVersion"]
        server = urllib.parse.urlsplit(client.url)
        self._connection = http.client.HTTPSConnection(server.hostname, server.port, timeout=PATIENCE, context=client.tls)
        self._connection.request("GET", f"/api/v1/namespaces/default/pods?watch=1&timeoutSeconds=3600&resourceVersion={version}",
                                 headers={"Authorization": f"Bearer {client.token}"})
        self._answer = self._connection.getresponse()

    def wait_decided(self, name):
        """The node of a pod, and the scheduler's message; the node is None where it is Unschedulable."""
        while True:
            pod = json.loads(self._answer.readline())["object"]
            if pod["metadata"]["name"] != name:
                continue
            refusals = [c for c in pod["status"].get("conditions", []) if c["type"] == "PodScheduled" and c["status"] == "False"]
            if "nodeName" in pod["spec"] or refusals:
                return pod["spec"].get("nodeName"), refusals[0]["message"] if refusals else ""

    def close(self):
        self._connection.close()


@pytest.fixture
def plane(tmp_path):
    """A control plane of its own: no other nodes, and no controllers."""
    plane = ControlPlane(tmp_path / "kubernetes")
    scheduler = plane.prepare_scheduler()
    try:
        plane.start_etcd()
        plane.start_apiserver()
        eventually(lambda: plane.admin.get("/api/v1/namespaces/default"), what="the default namespace")
        plane.create_account("default", "default")
        scheduler.start()
        yield plane
    finally:
        scheduler.kill()
        plane.stop()


def check(pod, node, message, verdicts, apps):
    """What became of a pod, and what is wrong with it by our word; None: nothing. apps: the labels of the pods on each node."""
    fitting = {name for name, verdict in verdicts.items() if verdict == "fits"}
    if node is not None:
        return "placed", None if node in fitting else f"it was placed on {node}: {verdicts[node]}"
    refused = sum(int(count) for count in ADMISSION.findall(message))
    ours = sum(verdict in OUR_ADMISSION for verdict in verdicts.values())
    if refused != ours and pod.unchecked != "volume":       # which is looked at before any node
        return "unschedulable", f"{refused} nodes do not admit it, by our word {ours}"
    if not fitting:
        return "unschedulable", None
    # A loner, and a pod with its labels that keeps away from nobody.
    if pod.labels["app"].startswith("loner") and all(pod.labels["app"] in apps[name] for name in fitting):
        return f"unchecked: {UNCHECKED[-1]}", None
    if pod.unchecked in UNCHECKED[:-1]:
        return f"unchecked: {pod.unchecked}", None
    return "unschedulable", f"it fits on {sorted(fitting)}"


@pytest.mark.seconds(600)
def test_every_decision_is_ours(plane, tmp_path):
    numbers, client, ours = random.Random(SEED), plane.admin, FitDriver(tmp_path)
    for node in [Node(numbers, f"n{i}") for i in range(NODES)]:
        node.create(client)
        ours.ask("node", name=node.name, words=node.to_words())
    watch, began, wrong = Watch(client), time.monotonic(), []
    counts, reasons, apps = collections.Counter(), collections.Counter(), collections.defaultdict(set)
    for i in range(PODS):
        pod = Pod(numbers, f"pod-{i}")
        client.create(pod.to_object())
        node, message = watch.wait_decided(pod.name)
        verdicts = ours.ask("ask", words=pod.to_words())["verdicts"]
        became, problem = check(pod, node, message, verdicts, apps)
        if problem:
            wrong.append(f"{pod.name} ({pod.to_words()}; unchecked: {pod.unchecked}) {became}: {problem}\n{message}")
        counts[became] += 1
        reasons.update(verdicts.values())
        if node:
            ours.ask("place", name=node, words=pod.to_words())
            apps[node].add(pod.labels["app"])
        else:       # it is not tried again
            client.delete(f"/api/v1/namespaces/default/pods/{pod.name}", grace=0)
    print(f"seed {SEED}, {PODS} pods in {time.monotonic() - began:.1f} s: {dict(counts)}; verdicts of ours: {dict(reasons)}")
    watch.close()
    ours.stop()
    assert not wrong, "\n".join([f"{len(wrong)} differences", *wrong[:20]])
    assert counts["placed"] > PODS / 5 and counts["unschedulable"] > PODS / 10, "this world tests little"
