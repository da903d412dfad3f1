#!/usr/bin/python3
"""decide_property.py ALERTSCALER [--count N] [--seed S]: random decision inputs, answered by `alertscaler decide` and by
decide_model.py, must get the same bytes. The seed gives the same inputs again; ALERTSCALER_PROPERTY_COUNT sets N.
"""
import argparse
import datetime
import fractions
import json
import os
import subprocess
import sys

import decide_model
import dice

NOW = datetime.datetime(2026, 11, 20, 10, 0, 0, tzinfo=datetime.timezone.utc)
BATCH = 5000


def finite(number):
    return min(max(number, -1.7e308), 1.7e308)


class Generator(dice.Dice):
    """Inputs that crowd around the edges: few distinct sizes, ages at the ends of windows, goals that divide evenly."""

    def maybe(self, document, name, probability, make):
        if self.chance(probability):
            document[name] = make()

    def size(self):
        pick = self.random.random()
        if pick < 0.75:
            return self.random.randrange(0, 13)
        if pick < 0.95:
            return self.random.randrange(0, 200)
        return self.pick(0, 1, 1000, 2**31 - 2, 2**31 - 1, 2**30, 7 * 10**8)

    def seconds(self):
        return self.pick(0, 1, 15, 15, 30, 60, 60, 180, 300, 0.5, 15.25, 0.000001, 1800, 3153600000)

    def time(self):
        """Mostly an age that some window or cooldown ends at, or a microsecond beside it."""
        us = int(self.seconds() * 10**6) % (10**10)
        if self.chance(0.3):
            us = self.random.randrange(0, 400 * 10**6)
        us += self.pick(0, 0, 0, -1, 1, -1000000, 500000)
        if self.chance(0.08):
            us = -us
        return decide_model.print_time((NOW - decide_model.EPOCH) // decide_model.MICROSECOND - us)

    def value(self):
        pick = self.random.random()
        if pick < 0.5:
            return self.random.randrange(0, 2000) / self.pick(1, 1, 2, 5, 10, 100, 1000)
        if pick < 0.6:
            return self.random.randrange(0, 500)
        if pick < 0.9:
            return round(self.random.uniform(0, 300), self.random.randrange(0, 9))
        return self.pick(0, -1, -0.5, 0.0005, 0.0015, 1e-9, 1e-320, 1e9, 1e15, 1e300, -1e300, 1.7e308, 2147483646.5, 7.7)

    def goal(self):
        return self.pick(1, 2, 5, 10, 0.7, 0.1, 0.3, 70, 100, 1.1, 0.001, 33.3, 1000, self.value() or 1)

    def percent(self):
        return self.pick("50%", "10%", "100%", "33.333%", "0%", "0.001%", "250%", "70%", "7.5%", "99.999%", "100000%")

    def amount(self):
        if self.chance(0.5):
            return {"by": self.pick(0, 1, 2, 3, 5, 2**31, 2**40) if self.chance(0.9) else self.size()}
        amount = {"by": self.percent()}
        self.maybe(amount, "at_least", 0.5, lambda: self.pick(0, 1, 2, 3, 100, 2**33))
        return amount

    def step(self, up):
        if self.version >= 2 and self.chance(0.4):
            goal = abs(self.goal())
            bound = goal * self.pick(1, 1, 1.5, 3) if up else goal / self.pick(1, 1, 1.5, 3)
            return {"above" if up else "below": finite(bound), "to": goal}
        return {self.pick("above", "below"): self.pick(0, 10, 50, 100, 99.5, -1), **self.amount()}

    def steps(self, make):
        return {"steps": [make() for _ in range(self.random.randrange(1, 5))]}

    def ladder(self):
        return self.steps(lambda: {"from": self.pick(0, 1, 10, 50, -1, self.value()), "size": self.pick(self.size(), self.size(), 2**40)})

    def step_body(self, up):
        if self.chance(0.3):
            return self.steps(lambda: self.step(up))
        if self.version >= 2 and self.chance(0.25):
            return {"to": self.pick(self.size(), self.size(), 2**31, 2**50)}
        return self.amount()

    def track(self):
        goal = self.pick("value", "average_value", "utilization")
        if goal == "utilization":
            track = {"utilization": self.percent(), "resource": self.pick("cpu", "memory")}
            self.maybe(track, "pods", 0.3 if self.version >= 3 else 0, lambda: "owned")
            self.maybe(track, "container", 0.4 if self.version >= 3 else 0, lambda: self.pick("app", "app", "proxy", "none"))
            return track
        track = {goal: abs(self.goal())}
        self.maybe(track, "pods", 0.3 if self.version >= 3 else 0, lambda: "owned")
        if goal == "average_value":
            self.maybe(track, "resource", 0.4, lambda: self.pick("cpu", "memory"))
        return track

    def sample(self, pod):
        sample = {"pod": pod, "value": self.value()}
        self.maybe(sample, "at", 0.6, self.time)
        self.maybe(sample, "window", 0.6, self.seconds)
        return sample

    def samples(self, pods):
        names = [pod["name"] for pod in pods or [] if "name" in pod and self.chance(0.85)]
        if self.chance(0.2):
            names.append("stranger")
        self.random.shuffle(names)
        samples = [self.sample(name) for name in names]
        level = self.value()
        if self.chance(0.7):  # around one level, so that averages are near goals
            for sample in samples:
                sample["value"] = finite(abs(level) * self.pick(0.8, 0.9, 1, 1, 1.1, 1.2))
        return samples

    def proposal(self, number, pods):
        kind = self.pick("scale_up", "scale_up", "scale_down", "scale_down", "scale_to", "track", "track", "pass_through")
        if self.version >= 2 and self.chance(0.06):
            kind = "hold"
        body = {
            "scale_up": lambda: self.step_body(True),
            "scale_down": lambda: self.step_body(False),
            "scale_to": lambda: self.ladder() if self.version >= 2 and self.chance(0.3) else self.pick(self.size(), self.size(), 2**31, 2**50),
            "track": self.track,
            "pass_through": dict,
            "hold": self.direction,
        }[kind]()
        proposal = {"rule": f"rule-{number}", "action": {kind: body}}
        if self.chance(0.02):
            proposal["rule"] = None
        if self.version >= 3 and self.chance(0.2):
            del proposal["rule"]
            proposal["schedule"] = "office"
        self.maybe(proposal, "incident", 0.3, lambda: "7be9cc40aa9853c5")
        self.maybe(proposal, "reported", 0.4 if self.version >= 2 else 0, lambda: self.time() if self.chance(0.8) else None)
        if self.version >= 2 and kind not in ("scale_down", "hold") and self.chance(0.1):
            proposal["fallback"] = {"after": self.seconds(), "at_least": max(1, self.size())}
            self.maybe(proposal, "unavailable_since", 0.8, self.time)
            self.maybe(proposal, "error", 0.5, lambda: "query returned no data")
        self.maybe(proposal, "error", 0.06, lambda: "query returned no data")
        per_pod = kind == "track" and "value" not in body and ("utilization" in body or self.chance(0.5))
        if per_pod and self.chance(0.95):
            proposal["samples"] = self.samples(pods)
        elif self.chance(0.95):
            proposal["value"] = self.value() if self.chance(0.97) else None
            if kind == "track" and "value" in body and self.chance(0.4):
                proposal["value"] = finite(body["value"] * self.pick(0.9, 1.1, 1, 0.5, 2, 1.1000001, 11, 0.8999, 0.59, 1.57, 0.99889))
        return proposal

    def direction(self):
        return self.pick("down", "up", "both")

    def holder(self):
        row = {"direction": self.direction(), "by": self.pick("pause", "schedule", "ineffective", "did_not_come", "rollout")}
        self.maybe(row, "name", 0.9, lambda: self.pick("ada", "sale"))
        self.maybe(row, "rule", 0.5, lambda: f"rule-{self.random.randrange(3)}")
        return row

    def pod(self, number):
        pod = {}
        self.maybe(pod, "name", 0.98, lambda: f"web-{number}")
        self.maybe(pod, "phase", 0.5, lambda: self.pick("Running", "Running", "Running", "Pending", "Failed", "Succeeded", "Unknown"))
        self.maybe(pod, "ready", 0.5, lambda: self.pick(True, True, False, None))
        self.maybe(pod, "deleting", 0.2, lambda: self.chance(0.3))
        self.maybe(pod, "start_time", 0.8, self.time)
        self.maybe(pod, "ready_since", 0.8, self.time)
        if self.chance(0.9):
            pod["resources"] = {
                "cpu": self.pick(0.5, 0.1, 1, 2, 0.25, 0.333, 0),
                "memory": self.pick(2**20, 2**30, 5 * 10**8, 1, 0.0004),
            }
            if self.chance(0.03):
                del pod["resources"][self.pick("cpu", "memory")]
        self.maybe(pod, "owner", 0.1 if self.version >= 3 else 0, lambda: self.pick("target", "other", "other", "gone"))
        if self.version >= 3 and self.chance(0.9):
            pod["containers"] = [{"name": name, "resources": {"cpu": self.pick(0.5, 0.1, 0.333, 0), "memory": self.pick(2**20, 10**8)}}
                                 for name in ("app", "proxy") if self.chance(0.97)]
            for container in pod["containers"]:
                if self.chance(0.03):
                    del container["resources"][self.pick("cpu", "memory")]
        return pod

    def rules(self):
        rules = {}
        self.maybe(rules, "stabilizationWindowSeconds", 0.7, self.seconds)
        self.maybe(rules, "selectPolicy", 0.5, lambda: self.pick("Max", "Min", "Max", "Min", "Disabled"))
        self.maybe(rules, "policies", 0.7, lambda: [self.policy() for _ in range(self.random.randrange(1, 4))])
        return rules

    def policy(self):
        return {
            "type": self.pick("Pods", "Percent"),
            "value": self.pick(1, 1, 2, 4, 10, 50, 100, 100, 0, 33, 250, 2**31 - 1),
            "periodSeconds": self.seconds(),
        }

    def behavior(self):
        behavior = {}
        self.maybe(behavior, "scaleUp", 0.8, self.rules)
        self.maybe(behavior, "scaleDown", 0.8, self.rules)
        return behavior

    def target(self):
        bounds = sorted((self.size(), self.size()))
        if self.chance(0.5):
            bounds[0] = self.pick(0, 1)
            bounds[1] = max(bounds)
        target = {"max": bounds[1]}
        if bounds[1] == 0 or self.chance(0.85):
            target["min"] = bounds[0]
        if self.chance(0.01):
            target["min"] = target["max"] + 1 if target["max"] < 2**31 - 1 else 0
        self.maybe(target, "id", 0.5, lambda: "kubernetes/default/apps/v1/Deployment/shop/checkout")
        self.maybe(target, "tolerance", 0.4, lambda: {self.pick("up", "down"): self.pick(0, 0.1, 0.2, 0.05, 0.41, 0.57, 0.00111, 1, 1.5)})
        self.maybe(target, "enforce_bounds", 0.3, lambda: self.chance(0.5))
        if self.version >= 3:
            self.maybe(target, "rollout", 0.4, lambda: self.pick("by_spec", "by_spec", "as_hpa", "wait"))
        if self.version >= 2 and self.chance(0.2): # schedules
            self.maybe(target, "enforce_min", 0.8, lambda: self.chance(0.8))
            self.maybe(target, "own_min", 0.8, lambda: self.pick(0, 1, target["max"]))
            if self.version >= 3:
                self.maybe(target, "enforce_max", 0.4, lambda: self.chance(0.8))
                self.maybe(target, "scheduled_zero", 0.4, lambda: self.chance(0.8))
            self.maybe(target, "schedules", 0.8, lambda: self.pick([], ["office"], ["office", "sale"]))
        self.maybe(target, "dry_run", 0.2, lambda: self.chance(0.4))
        self.maybe(target, "cpu_initialization_seconds", 0.3, self.seconds)
        self.maybe(target, "initial_readiness_delay_seconds", 0.3, self.seconds)
        self.maybe(target, "behavior", 0.5, self.behavior)
        if self.chance(0.5):
            target["cooldown"] = {}
            for name in ("up", "down", "up_after_down", "down_after_down"):
                self.maybe(target["cooldown"], name, 0.7, self.seconds)
        return target

    def history(self, replicas):
        history = {}
        self.maybe(history, "last_up", 0.5, lambda: self.time() if self.chance(0.8) else None)
        self.maybe(history, "last_down", 0.5, lambda: self.time() if self.chance(0.8) else None)
        self.maybe(history, "last_step_down", 0.5 if self.version >= 2 else 0, lambda: self.time() if self.chance(0.8) else None)
        few = self.pick(0, 1, 2, 3, 6)
        self.maybe(
            history,
            "scale_events",
            0.7,
            lambda: [{"at": self.time(), "change": self.pick(1, 2, 4, -1, -2, 9, -9, 0, 2**31 - 1, -(2**31) + 1) if self.chance(0.95) else 5} for _ in range(few)],
        )
        self.maybe(
            history,
            "recommendations",
            0.7,
            lambda: [
                {"at": self.time(), "replicas": max(0, min(2**31 - 1, replicas + self.random.randrange(-4, 5))) if self.chance(0.9) else self.size()}
                for _ in range(few)
            ],
        )
        return history

    def document(self):
        self.version = self.pick(1, 2, 3)
        replicas = self.size()
        observed = {"replicas": replicas}
        self.maybe(observed, "status_replicas", 0.3, self.size)
        self.maybe(observed, "pods", 0.6, lambda: [self.pod(i) for i in self.random.sample(range(20), self.pick(0, 1, 2, 3, 5, 8))])
        document = {
            "v": self.version,
            "now": NOW.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "target": self.target(),
            "observed": observed,
            "proposals": [self.proposal(i, observed.get("pods")) for i in range(self.pick(0, 1, 1, 1, 1, 2, 2, 3, 4))],
        }
        self.maybe(document, "history", 0.8, lambda: self.history(replicas))
        if self.chance(0.3):
            document["flags"] = {
                name: self.chance(0.3) for name in ("paused", "in_progress", "budget_exhausted", "guarded") if self.chance(0.7)
            }
        if self.version >= 2 and self.chance(0.15):
            document["forbidden"] = [self.holder() for _ in range(self.pick(0, 1, 1, 2, 3))]
        return document


def expected_line(document):
    try:
        return json.dumps(decide_model.decide(document), sort_keys=True, separators=(",", ":"))
    except decide_model.InvalidInput:
        return None


def check_batch(program, documents, seen):
    text = "".join(json.dumps(document) + "\n" for document in documents)
    done = subprocess.run([program, "decide"], input=text, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if len(lines) != len(documents):
        sys.exit(f"{len(documents)} inputs, {len(lines)} answers; status {done.returncode}\n{done.stderr[-2000:]}")
    for document, line in zip(documents, lines):
        expected = expected_line(document)
        answer = json.loads(line)
        if (expected is None) != ("error" in answer) or (expected is not None and expected != line):
            sys.exit(f"input    {json.dumps(document)}\nprogram  {line}\nmodel    {expected}")
        reason = answer.get("reason", "error")
        seen[reason] = seen.get(reason, 0) + 1
        if answer.get("next_evaluation"):
            seen["next_evaluation"] = seen.get("next_evaluation", 0) + 1


def goal_document(generator):
    """One step with a goal, in numbers of at most three decimals, where nothing but the formula counts. The load is that of pods,
    or of the nodes behind the target."""
    up = generator.chance(0.5)
    goal = generator.random.randrange(1, 200000)
    bound = goal + (generator.random.randrange(0, 1000) if up else -generator.random.randrange(0, goal))
    value = generator.random.randrange(0, 2 * bound + 10)
    ready = 0 if generator.chance(0.1) else generator.random.randrange(1, 300)
    unready = generator.random.randrange(0, 20)
    observed, source = {"replicas": ready + unready}, {"value": value / 1000}
    if generator.chance(0.3):
        observed["nodes"], source = seen_nodes(generator, ready, value), {"nodes": "utilization"}
    elif generator.chance(0.5):
        observed["pods"] = [{"name": f"p{i}", "ready": i < ready} for i in range(ready + unready)]
    return {
        "v": 2,
        "now": "2026-11-20T10:00:00Z",
        "target": {"min": 0, "max": 2**31 - 1},
        "observed": observed,
        "proposals": [{
            "rule": "r",
            **source,
            "action": {"scale_up" if up else "scale_down": {"steps": [{"above" if up else "below": bound / 1000, "to": goal / 1000}]}},
        }],
    }


def seen_nodes(generator, nodes, value):
    """That many open nodes of a size, or without one what a new node would have; utilized by about so many thousandths."""
    cpu, memory = generator.random.randrange(100, 64000), generator.random.randrange(2**20, 2**38)
    cpus, memories = (amount * max(nodes, 1) for amount in (cpu, memory))
    seen = {"open": nodes, "allocatable": {"cpu": cpus / 1000, "memory": memories},
            "requests": {"cpu": cpus * value // 10**5 / 1000, "memory": memories * generator.random.randrange(0, value + 1) // 10**5}}
    return seen if nodes else {**seen, "template": True}


def read_load(document, up):
    """(thousandths of what there is of the value in all, how many share it); exact."""
    observed, proposal = document["observed"], document["proposals"][0]
    if "nodes" in observed:
        nodes = observed["nodes"]
        count = nodes["open"]
        value = max(fractions.Fraction(round(nodes["requests"][name] * unit), round(nodes["allocatable"][name] * unit)) * 10**5
                    for name, unit in (("cpu", 1000), ("memory", 1)))
    else:
        count = sum(pod["ready"] for pod in observed["pods"]) if "pods" in observed else observed["replicas"]
        value = round(proposal["value"] * 1000)
    return value * (count or (1 if up else 0)), count


def check_goals(program, generator, count):
    """After a step the value is at most X, and with one less it would not be. In whole thousandths; what is at most a billionth
    beside a whole thousandth counts as it."""
    documents = [goal_document(generator) for _ in range(count)]
    text = "".join(json.dumps(document) + "\n" for document in documents)
    lines = subprocess.run([program, "decide"], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    steps = {"up": 0, "down": 0, "none": 0}
    for document, line in zip(documents, lines, strict=True):
        answer, proposal = json.loads(line), document["proposals"][0]
        (kind, body), = proposal["action"].items()
        step, up = body["steps"][0], kind == "scale_up"
        value = proposal["value"] if "value" in proposal else answer["proposals"][0]["value"]
        crossed = value > step["above"] if up else value < step["below"]
        load, ready = read_load(document, up)
        goal, slack = round(step["to"] * 1000), load / 10**9 if "nodes" in proposal else 0
        after = ready + answer["desired"] - document["observed"]["replicas"]
        steps[answer["direction"]] += 1
        if not crossed and answer["direction"] != "none":
            sys.exit(f"not crossed, and a step all the same: {json.dumps(document)}\n{line}")
        if crossed and not after * goal - goal - slack < load <= after * goal + slack:
            sys.exit(f"of {load}, {after} have more than {goal} each, or one too many: {json.dumps(document)}\n{line}")
    print(f"{len(documents)} steps with a goal end at it:", ", ".join(f"{name} {number}" for name, number in steps.items()))


# Inputs that never come to one of these would prove little about it.
REASONS = """scaled above_max below_min schedule_ended no_change at_max at_min within_tolerance stabilized rate_limited vetoed held ineffective did_not_come
rollout_under_way metric_unavailable cooldown paused in_progress guarded unconfirmed budget dry_run disabled error next_evaluation""".split()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=int(os.environ.get("ALERTSCALER_PROPERTY_COUNT", "20000")))
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    generator = Generator(arguments.seed)
    seen = {}
    for start in range(0, arguments.count, BATCH):
        check_batch(arguments.program, [generator.document() for _ in range(min(BATCH, arguments.count - start))], seen)
    print(f"{arguments.count} inputs without a difference:", ", ".join(f"{name} {seen.get(name, 0)}" for name in REASONS))
    unseen = [name for name in REASONS if name not in seen]
    check_goals(arguments.program, generator, arguments.count // 10)
    if arguments.count >= 20000 and unseen:
        sys.exit(f"no input came to: {', '.join(unseen)}")


if __name__ == "__main__":
    main()
