"""Cluster Autoscaler's rules for one look at a cluster, written from its documentation (FAQ.md and the proposals balance_similar
and pricing of kubernetes/autoscaler): which sizes a scale-up may have, and whether a set of nodes may leave.

Where the documentation leaves a choice open (which of several nodes with room takes a pod, which of several equal groups grows,
which of several unneeded nodes leaves first), the model admits each choice.

All is in dicts. Amounts: cpu (millicores), memory (bytes), pods, and names of extended resources.
A pod: requests, priority, created (larger: younger), waiting, nominated (a node), ending, selector, tolerations, ports, kind and alone
(no two pods of the kind share a node), owner (the kind of its controller), namespace, safe (to evict), local (data on the node),
budget (disruptions left). What is None is not said.
A node: name, labels, taints, allocatable, capacity, pods, ready, cordoned, young, disabled, group, since (seconds that it has been
unneeded).
A group: name, size, min, max, closed, nodes, last (the node that it showed last), priority, price, ignore (owners).
A cluster: groups, nodes, waiting (pods), balance, max (nodes), limits (amounts of all nodes), pod_price (of a core, of a GiB), expanders.
"""
import itertools
import math

CUTOFF = -10                # --expendable-pods-priority-cutoff
THRESHOLD = 0.5             # --scale-down-utilization-threshold
UNNEEDED, UNREADY = 600, 1200
EMPTY_AT_ONCE = 10
GPU = "nvidia.com/gpu"
WITH_NODE = ("DaemonSet", "Node")       # owners of pods that run on every node by default
REPLICATED = ("ReplicaSet", "StatefulSet", "Job", "ReplicationController")
ZONAL = ("kubernetes.io/hostname", "topology.kubernetes.io/zone")


def is_expendable(pod):
    return pod["priority"] < CUTOFF


def add(amounts, more, sign=1):
    for name, amount in more.items():
        amounts[name] = amounts.get(name, 0) + sign * amount


class Room:
    """What a node has left for pods."""

    def __init__(self, node, pods):
        self.labels, self.taints, self.is_open = node["labels"], node["taints"], node["ready"] and not node["cordoned"]
        self.free, self.ports, self.kinds, self.pods = dict(node["allocatable"]), set(), set(), []
        for pod in pods:
            self.take(pod)

    def copy(self):
        twin = object.__new__(Room)
        twin.__dict__ = {name: value.copy() if name in ("free", "ports", "kinds", "pods") else value
                         for name, value in self.__dict__.items()}
        return twin

    def take(self, pod):
        add(self.free, pod["requests"], -1)
        self.pods.append(pod)
        self.ports |= pod["ports"]
        self.kinds |= {pod["kind"]} if pod["alone"] else set()

    def fits(self, pod):
        return (self.is_open
                and all(self.labels.get(key) in values for key, values in pod["selector"].items())
                and all(taint in pod["tolerations"] for taint in self.taints)
                and all(self.free.get(name, 0) >= amount for name, amount in pod["requests"].items() if amount)
                and not self.ports & pod["ports"] and not (pod["alone"] and pod["kind"] in self.kinds))


# The documentation does not say in which order nodes are tried, and what makes a pod larger than another.
ORDERS = (lambda room: 0, lambda room: room.free["cpu"], lambda room: -room.free["cpu"],
          lambda room: room.free["memory"], lambda room: -room.free["memory"])

MEASURES = ("allocatable", "free")


def get_lists(differences):
    """All lists of differences, the shortest first."""
    return [each for count in range(len(differences) + 1) for each in itertools.combinations(differences, count)]


def place(pods, rooms, order=ORDERS[0]):
    """Those that found no room."""
    left = []
    for pod in pods:
        room = next((room for room in sorted(rooms, key=order) if room.fits(pod)), None)
        if room:
            room.take(pod)
        else:
            left.append(pod)
    return left


def can_place(pods, rooms):
    """Whether there is any way."""
    if not pods:
        return True
    for room in rooms:
        if room.fits(pods[0]):
            tried = room.copy()
            tried.take(pods[0])
            if can_place(pods[1:], [tried if other is room else other for other in rooms]):
                return True
    return False


def get_rooms(cluster):
    """Expendable pods can be preempted, so they take no room."""
    rooms = []
    for node in cluster["nodes"]:
        rooms.append(Room(node, [pod for pod in node["pods"] if not is_expendable(pod)]))
        rooms[-1].node = node
        for pod in cluster["waiting"]:
            if pod["nominated"] is node and not pod["ending"]:
                rooms[-1].take(pod)
    return rooms


def get_waiting(cluster, differences=()):
    """In the scheduler's order; `together`: equal pods one after the other."""
    pods = [pod for pod in cluster["waiting"] if not is_expendable(pod) and not pod["nominated"] and not pod["ending"]
            and pod["owner"] not in WITH_NODE]
    oldest = {kind: min(pod["created"] for pod in pods if pod["kind"] == kind) for kind in {pod["kind"] for pod in pods}}
    created = lambda pod: oldest[pod["kind"]] if "together" in differences else pod["created"]
    return sorted(pods, key=lambda pod: (-pod["priority"], created(pod)))


# scale-up

def get_template(group):
    """A new node is like the group's others, with the pods that run on every node; None: not known."""
    open_nodes = [node for node in group["nodes"] if node["ready"] and not node["cordoned"]]
    node = open_nodes[0] if open_nodes else group["last"]
    if not node:
        return None
    fresh = Room({**node, "ready": True, "cordoned": False}, [pod for pod in node["pods"] if pod["owner"] in WITH_NODE])
    fresh.allocatable, fresh.capacity = dict(node["allocatable"]), dict(node["capacity"])
    return fresh


def forget_unnamed(cluster, templates):
    """What no node has and no pod requests."""
    amounts = [node["capacity"] for node in cluster["nodes"]] + [pod["requests"] for pod in cluster["waiting"]]
    named = set().union(*amounts)
    for amounts in [amounts for template in templates if template for amounts in (template.capacity, template.allocatable, template.free)]:
        for name in set(amounts) - named - {"cpu", "memory", "pods"}:
            del amounts[name]


def get_coming(group):
    """Nodes that are requested and not Ready yet."""
    return group["size"] - sum(1 for node in group["nodes"] if node["ready"] or not node["young"])


def estimate(template, pods, most, measure):
    """Binpacking: the largest pods first, each on the first new node with room. Nodes, and the pods on them."""
    whole = getattr(template, measure)
    score = lambda pod: sum(pod["requests"][name] / whole[name] for name in ("cpu", "memory"))
    rooms, placed = [], []
    for pod in sorted(pods, key=score, reverse=True):
        room = next((room for room in rooms if room.fits(pod)), None)
        if not room and len(rooms) < most and template.fits(pod):
            room = template.copy()
            rooms.append(room)
        if room:
            room.take(pod)
            placed.append(pod)
    return len(rooms), placed


def get_waste(option, _):
    requested = lambda name: sum(pod["requests"][name] for pod in option["pods"])
    return sum(1 - requested(name) / (option["nodes"] * option["template"].capacity[name]) for name in ("cpu", "memory"))


def get_price(option, cluster):
    """What the nodes cost, by what their pods are worth; the less the fewer nodes have the size that suits the cluster."""
    count, capacity = len(cluster["nodes"]), option["template"].capacity
    worth = lambda cpu, memory: cluster["pod_price"]["cpu"] * cpu / 1000 + cluster["pod_price"]["memory"] * memory / 2**30
    damper = worth(500, 500 * 2**20)
    pods = sum(worth(pod["requests"]["cpu"], pod["requests"]["memory"]) for pod in option["pods"])
    preferred = 1000 * (1 if count <= 2 else 2 if count <= 6 else 4)
    unfitness = max(capacity["cpu"] / preferred, preferred / capacity["cpu"])
    suppressed = 1000 if capacity.get(GPU) else (unfitness - 1) * (1 - math.tanh((option["nodes"] - 1) / 15)) + 1
    return suppressed * (option["group"]["price"] * option["nodes"] + damper) / (pods + damper)


EXPANDERS = {   # the smallest is best
    "least_waste": get_waste,
    "most_pods": lambda option, _: -len(option["pods"]),
    "least_nodes": lambda option, _: option["nodes"],
    "priority": lambda option, _: math.inf if option["group"]["priority"] is None else -option["group"]["priority"],
    "price": get_price,
}


def expand(options, cluster):
    for name in cluster["expanders"]:
        scores = [EXPANDERS[name](option, cluster) for option in options]
        best = min(scores)
        options = [option for option, score in zip(options, scores) if score == best or score < best * (1 + 1e-9)]
    return options


def is_near(first, second, ratio):
    return max(first, second) - min(first, second) <= ratio * min(first, second)


def is_similar(first, second):
    labels = [{key: value for key, value in room.labels.items() if key not in ZONAL} for room in (first, second)]
    names = set(first.capacity) | set(second.capacity)
    get = lambda amounts, name: amounts.get(name, 0)
    return (labels[0] == labels[1]
            and all(is_near(get(first.capacity, name), get(second.capacity, name), 0.015 if name == "memory" else 0) for name in names)
            and all(is_near(get(first.allocatable, name), get(second.allocatable, name), 0.05) for name in names)
            and all(is_near(get(first.free, name), get(second.free, name), 0.05) for name in names - {"pods"}))


def get_limit(cluster, template):
    """How many nodes the limits of the whole cluster allow: --cores-total, --memory-total."""
    limits = [1000]
    for name, most in cluster["limits"].items():
        there = 0
        for group in cluster["groups"]:
            known = [node["capacity"][name] for node in group["nodes"]]
            each = known[0] if known else group["last"]["capacity"][name] if group["last"] else 0
            there += each * group["size"]
        limits.append((most - there) // template.capacity[name])
    return max(0, min(limits))


def get_room(groups):
    return sum(max(0, group["max"] - group["size"]) for group in groups)


def grow(cluster, order, measure, differences=()):
    """The choices: of each how many nodes, and the groups that share them."""
    pods = place(get_waiting(cluster, differences), get_rooms(cluster), order)
    templates = [get_template(group) for group in cluster["groups"]]
    if "unnamed" in differences:
        forget_unnamed(cluster, templates)
    coming = [template.copy() for group, template in zip(cluster["groups"], templates) if template
              for _ in range(get_coming(group))]
    pods = place(pods, coming, order)
    options = []
    for group, template in zip(cluster["groups"], templates):
        if not template or group["closed"]:
            continue
        fitting = [pod for pod in pods if template.fits(pod)]
        similar = [other for other, fresh in zip(cluster["groups"], templates) if cluster["balance"] and other is not group
                   and fresh and not other["closed"] and is_similar(template, fresh) and all(fresh.fits(pod) for pod in fitting)]
        most = min(cluster["max"] - sum(each["size"] for each in cluster["groups"]), get_room([group, *similar]))
        if group["size"] >= group["max"] or get_limit(cluster, template) < 1 or most < 1:
            continue
        nodes, placed = estimate(template, fitting, most, measure)
        if nodes:
            options.append({"group": group, "template": template, "nodes": nodes, "pods": placed, "groups": [group, *similar],
                            "most": min(nodes, get_limit(cluster, template))})
    return [(option["most"], option["groups"]) for option in expand(options, cluster)] if options else []


def is_balanced(growth, groups):
    """New nodes go to the smallest group that is below its maximum."""
    size = lambda group: group["size"] + growth.get(group["name"], 0)
    return all(size(group) <= group["max"] for group in groups) and all(
        size(group) - 1 <= size(other) for group in groups if growth.get(group["name"])
        for other in groups if size(other) < other["max"])


def admits_growth(cluster, growth):
    """The shortest list of differences with which this growth (new nodes by group) follows from the rules; None: it does not."""
    for differences in get_lists(("together", "unnamed")):
        for order, measure in itertools.product(ORDERS, MEASURES):
            for count, groups in grow(cluster, order, measure, differences) or [(0, [])]:
                if (sum(growth.values()) == count and set(growth) <= {group["name"] for group in groups}
                        and is_balanced(growth, groups)):
                    is_first = order is ORDERS[0] and measure is MEASURES[0]
                    return differences if is_first else (*differences, "order")
    return None


# scale-down

def is_bound(pod, differences):
    """It may not be evicted. An expendable pod is killed without any consideration."""
    if pod["owner"] in WITH_NODE or (is_expendable(pod) and "expendable" not in differences):
        return False
    if pod["budget"] is not None and pod["budget"] < 1:
        return True
    if pod["safe"] is not None:
        return not pod["safe"]
    return pod["owner"] not in REPLICATED or pod["local"] or (pod["namespace"] == "kube-system" and pod["budget"] is None)


def get_utilization(node, pods):
    """The larger part of the allocatable that is requested; of a node with an accelerator, that of the accelerator."""
    requested, allocatable = {}, dict(node["allocatable"])
    for pod in pods:
        is_ignored = pod["owner"] in node["group"]["ignore"]
        add(*(allocatable, pod["requests"], -1) if is_ignored else (requested, pod["requests"]))
    names = [GPU] if allocatable.get(GPU) else ["cpu", "memory"]
    return max(requested.get(name, 0) / allocatable[name] for name in names)


def get_pods_to_move(room):
    return [pod for pod in room.pods if pod["owner"] not in WITH_NODE]


class ScaleDown:
    """One look, for nodes of which it is known how long they have been unneeded."""

    def __init__(self, cluster, order=ORDERS[0], differences=()):
        self.rooms = get_rooms(cluster)
        place(get_waiting(cluster, differences), self.rooms, order)
        self.idle, self.used = [], []       # may leave: empty; not empty
        self.early, self.later = [], []     # the same, but not unneeded for long enough
        for room in self.rooms:
            node = room.node
            is_receiving = any(pod["waiting"] for pod in room.pods)
            if (not node["group"] or node["disabled"] or any(is_bound(pod, differences) for pod in node["pods"])
                    or get_utilization(node, room.pods) > THRESHOLD or (is_receiving and "receives" in differences)):
                continue
            is_due = node["since"] >= (UNNEEDED if node["ready"] else UNREADY)
            if get_pods_to_move(room):
                (self.used if is_due else self.later).append(room)
            else:
                (self.idle if is_due else self.early).append(room)
        self.closed = [] if "kept" in differences else self.idle + self.early

    @staticmethod
    def get_quota(group, taken):
        return group["size"] - group["min"] - sum(1 for room in taken if room.node["group"] is group)

    def admits(self, names):
        """Whether these nodes, and no others, leave at once: the empty ones, and one that is not."""
        taken = [room for room in self.rooms if room.node["name"] in names]
        idle = [room for room in taken if room in self.idle]
        used = [room for room in taken if room not in idle]
        can_leave = lambda room: self.get_quota(room.node["group"], idle) > 0
        if (any(room not in self.used for room in used) or len(used) > 1 or len(idle) > EMPTY_AT_ONCE
                or any(self.get_quota(room.node["group"], taken) < 0 for room in taken)
                or (len(idle) < EMPTY_AT_ONCE and any(room not in idle and can_leave(room) for room in self.idle))):
            return False
        if used:
            return can_place(get_pods_to_move(used[0]), self.get_others(used[0], idle))
        return not any(can_leave(room) and self.must_fit(room, idle) for room in self.used)

    def get_others(self, leaving, idle):
        """Where its pods may go: a node that leaves, or that is unneeded and empty, takes none."""
        return [room for room in self.rooms if room is not leaving and room not in idle and room not in self.closed]

    def must_fit(self, room, idle):
        """In whatever order pods and nodes are tried, also after the pods of another unneeded node: then the node is unneeded."""
        pods = get_pods_to_move(room)
        for first, order in itertools.product((None, *self.later), ORDERS):
            others = [other.copy() for other in self.get_others(room, idle) if other is not first]
            if first and place(get_pods_to_move(first), others, order):
                continue
            for each in itertools.permutations(pods) if len(pods) <= 4 else [pods, list(reversed(pods))]:
                if place(each, [other.copy() for other in others], order):
                    return False
        return True


def admits_removal(cluster, names):
    """The first list of differences with which these nodes leave; None: they may not."""
    for differences in get_lists(("kept", "receives", "expendable", "together")):
        for order in ORDERS:
            if ScaleDown(cluster, order, differences).admits(names):
                return differences if order is ORDERS[0] else (*differences, "order")
    return None
