"""A second statement of docs/decision.md: naive, slow and written from the text, to be compared with the program.

decide(document) takes the input document and returns the output document. Where the program computes something cleverly,
this does it in the dullest way: next_evaluation is found by asking again at every moment at which anything could change.
"""
import datetime
import math
from fractions import Fraction

LARGEST = 2**31 - 1
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
MICROSECOND = datetime.timedelta(microseconds=1)

# The values that are looked up when a list of policies, or a whole direction, is absent.
HPA_UP = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
HPA_DOWN = {
    "stabilizationWindowSeconds": 300,
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}


class InvalidInput(Exception):
    pass


class Unavailable(Exception):
    pass


class NoOpinion(Exception):
    pass


class Floor(Exception):
    """No opinion, but nobody's decrease ends below this size."""

    def __init__(self, size):
        super().__init__()
        self.size = size


def read_time(text):
    return (datetime.datetime.fromisoformat(text.replace("Z", "+00:00")) - EPOCH) // MICROSECOND


def print_time(time):
    text = (EPOCH + time * MICROSECOND).strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".")
    return text.rjust(len(text), "0") + "Z"


def read_seconds(seconds):
    return round(Fraction(seconds) * 10**6)


def saturate(size):
    return min(max(size, 0), LARGEST)


def ceil_size(number):
    """The smallest size that is not below a float, which may be infinite."""
    if math.isnan(number) or number <= 0:
        return 0
    return LARGEST if number >= LARGEST else math.ceil(number)


def age(now, time):
    return max(now - time, 0)


def nearest(number):
    """The nearest integer, halves away from zero."""
    return int(math.copysign(math.floor(abs(Fraction(number)) + Fraction(1, 2)), number))


def milli(number):
    """A float, in thousandths; "a product within 1e-9 (relative) of an integer is that integer"."""
    product = number * 1000
    if math.isinf(product):
        return math.copysign(float(2**1023 * (2 - 2**-52)), product)
    integer = nearest(product)
    if abs(Fraction(product) - integer) <= Fraction(1e-9) * abs(Fraction(product)):
        return float(integer)
    return product


def whole_milli(number):
    """Integer thousandths, in 64 bits."""
    return min(max(nearest(milli(number)), -(2**63)), 2**63 - 1)


def truncate(fraction):
    return math.trunc(fraction)


# ---- the proposals


def percent_of(text):
    return Fraction(text.rstrip("%"))


def step_amount(body, replicas, up):
    by = body["by"]
    if isinstance(by, int):
        return by
    part = replicas * percent_of(by) / 100
    return max(math.ceil(part) if up else math.floor(part), body.get("at_least", 1))


def count_ready(observed):
    pods = observed.get("pods")
    if pods is None:
        return observed["replicas"]
    return sum(1 for pod in pods if pod.get("phase", "Running") == "Running" and pod.get("ready", True) is True)


def propose_goal(observed, value, goal, up):
    """The size at which n x value, shared by all, is at most the goal for each."""
    count, value, goal = count_ready(observed), milli(float(value)), milli(float(goal))
    needed = ceil_size(divide(value * (count or (1 if up else 0)), goal))
    change = needed - count if up else count - needed
    if change <= 0:
        raise NoOpinion
    return saturate(observed["replicas"] + (change if up else -change)), False


def propose_ladder(proposal, steps):
    if proposal.get("value") is None:
        raise Unavailable
    rungs = [step for step in steps if step["from"] <= proposal["value"]] or steps[:1]
    return saturate(rungs[-1]["size"]), False


def propose_step(proposal, body, observed, up):
    replicas = observed["replicas"]
    if "to" in body:
        size = saturate(body["to"])
        if up and replicas >= size:
            raise Floor(size)
        if not up and replicas <= size:
            raise NoOpinion
        return size, False
    if "steps" in body:
        if proposal.get("value") is None:
            raise Unavailable
        crossed = [
            step
            for step in body["steps"]
            if ("above" in step and proposal["value"] > step["above"])
            or ("below" in step and proposal["value"] < step["below"])
        ]
        if not crossed:
            raise NoOpinion
        body = crossed[-1]
        if "to" in body:
            return propose_goal(observed, proposal["value"], body["to"], up)
    amount = step_amount(body, replicas, up)
    return saturate(replicas + amount if up else replicas - amount), False


def quantity(number):
    """As HPA reads a number of its API: thousandths times 0.001, or what is finer, millionths times 0.000001."""
    thousandths = milli(float(number))
    if thousandths == math.floor(thousandths):
        return thousandths * 0.001
    return nearest(number * 10**6) * 0.000001


def within(document, ratio):
    tolerance = document["target"].get("tolerance") or {}
    down, up = (tolerance.get(direction, 0.1) for direction in ("down", "up"))
    if document["v"] >= 2:
        down, up = quantity(down), quantity(up)
    return 1 - down <= ratio <= 1 + up


def divide(a, b):
    try:
        return a / b
    except OverflowError:
        return math.copysign(math.inf, a) * math.copysign(1, b)


def apply_ratio(document, ratio, counted):
    """The size by a ratio over so many pods."""
    replicas = document["observed"]["replicas"]
    if replicas == 0 or document["target"].get("rollout") != "by_spec":
        return ceil_size(ratio * counted)
    if ratio <= 1 or counted >= replicas:
        return ceil_size(ratio * replicas)
    return max(replicas, ceil_size(ratio * counted))


def track_number(document, proposal, goal_name, goal):
    observed = document["observed"]
    replicas = observed["replicas"]
    status_replicas = observed.get("status_replicas", replicas)
    pods = observed.get("pods")
    value = proposal.get("value")
    if value is None:
        raise Unavailable
    value, goal = milli(float(value)), milli(float(goal))
    if goal == 0:
        raise Unavailable
    if goal_name == "average_value":
        if document["target"].get("rollout") == "by_spec":
            status_replicas = replicas
        if status_replicas > 0 and within(document, divide(value, goal * status_replicas)):
            return status_replicas, True
        return ceil_size(divide(value, goal)), False
    ratio = divide(value, goal)
    if replicas == 0:
        return ceil_size(ratio), False
    if within(document, ratio):
        return replicas, True
    if (pods is None and "is_by_owner" in document) or (pods is not None and not pods):
        raise Unavailable
    return apply_ratio(document, ratio, count_ready(observed)), False


def is_unready_for_cpu(document, pod, sample):
    now, target = read_time(document["now"]), document["target"]
    if pod.get("start_time") is None or pod.get("ready_since") is None:
        return True
    start, since = read_time(pod["start_time"]), read_time(pod["ready_since"])
    not_ready = pod.get("ready", True) is False
    if start + read_seconds(target.get("cpu_initialization_seconds", 300)) > now:
        taken = now if sample.get("at") is None else read_time(sample["at"])
        return not_ready or taken < since + read_seconds(sample.get("window", 0))
    return not_ready and since < start + read_seconds(target.get("initial_readiness_delay_seconds", 30))


def classify(document, pod, sample, is_cpu):
    phase = pod.get("phase", "Running")
    if pod.get("deleting", False) or phase == "Failed":
        return "ignored"
    if phase == "Pending":
        return "unready"
    if sample is None:
        return "missing"
    if is_cpu and is_unready_for_cpu(document, pod, sample):
        return "unready"
    return "ready"


def track_pods(document, proposal, goal_name, goal):
    observed = document["observed"]
    replicas = observed["replicas"]
    pods = observed.get("pods") or []
    samples = {sample["pod"]: sample for sample in proposal.get("samples") or [] if sample.get("pod")}
    resource = proposal["action"]["track"].get("resource")
    container = proposal["action"]["track"].get("container")
    utilization = goal_name == "utilization"
    goal = int(percent_of(goal) * 1000) if utilization else whole_milli(float(goal))
    if not pods or not samples or goal == 0:
        raise Unavailable

    classes = {"ignored": [], "unready": [], "missing": [], "ready": []}
    asked = {}  # by position, since names may be absent
    for i, pod in enumerate(pods):
        if utilization:
            of = pod if container is None else next((one for one in pod.get("containers") or [] if one["name"] == container), {})
            given = (of.get("resources") or {}).get(resource)
            if given is None:
                raise Unavailable
            asked[i] = whole_milli(float(given))
        classes[classify(document, pod, samples.get(pod.get("name")), resource == "cpu")].append(i)
    usage = {i: whole_milli(float(samples[pods[i]["name"]]["value"])) for i in classes["ready"]}
    if not usage:
        raise Unavailable

    def ratio_of(usage):
        if not utilization:
            return divide(float(truncate(Fraction(sum(usage.values()), len(usage)))), float(goal))
        total = sum(asked[i] for i in usage)
        if total == 0:
            raise Unavailable
        return divide(float(truncate(Fraction(sum(usage.values()) * 100, total))) * 1000, float(goal))

    ratio = ratio_of(usage)
    if not classes["missing"] and (not classes["unready"] or ratio <= 1):
        if within(document, ratio):
            return replicas, True
        return apply_ratio(document, ratio, len(usage)), False
    for i in classes["missing"]:
        if ratio < 1:
            usage[i] = truncate(Fraction(asked[i] * max(100000, goal), 100000)) if utilization else goal
        elif ratio > 1:
            usage[i] = 0
    for i in classes["unready"]:
        if ratio > 1:
            usage[i] = 0
    again = ratio_of(usage)
    if within(document, again):
        return replicas, True
    if (ratio < 1 < again) or (again < 1 < ratio):
        return replicas, False
    size = apply_ratio(document, again, len(usage))
    if (again < 1 and size > replicas) or (again > 1 and size < replicas):
        return replicas, False
    return size, False


def keep_owned(document):
    """The document without pods that are not the target's."""
    pods = document["observed"].get("pods")
    if pods is None:
        return document
    owners = [pod.get("owner", "target") for pod in pods]
    if "gone" in owners:
        raise Unavailable
    return {**document, "observed": {**document["observed"], "pods": [pod for pod, owner in zip(pods, owners) if owner == "target"]}}


def propose(document, proposal):
    """(size, within tolerance); or raises Unavailable or NoOpinion."""
    if proposal.get("error") is not None:
        raise Unavailable
    ((kind, body),) = proposal["action"].items()
    if kind == "hold":
        raise NoOpinion
    if kind in ("scale_up", "scale_down"):
        return propose_step(proposal, body, document["observed"], kind == "scale_up")
    if kind == "scale_to" and isinstance(body, dict):
        return propose_ladder(proposal, body["steps"])
    if kind == "scale_to":
        return saturate(body), False
    if kind == "pass_through":
        if proposal.get("value") is None:
            raise Unavailable
        return ceil_size(float(proposal["value"])), False
    ((goal_name, goal),) = ((name, value) for name, value in body.items() if name not in ("resource", "container", "pods"))
    if "pods" in body:
        document = {**keep_owned(document), "is_by_owner": True}
    if goal_name == "utilization" or proposal.get("samples") is not None:
        return track_pods(document, proposal, goal_name, goal)
    return track_number(document, proposal, goal_name, goal)


def goes(direction, replicas, size):
    return size != replicas and direction in ("both", "up" if size > replicas else "down")


OWN_REASONS = {"ineffective": "ineffective", "did_not_come": "did_not_come", "rollout": "rollout_under_way"}
# of holders; all others: held


def name_holder(row, name):
    return {key: value for key, value in (("by", row.get("by", "rule")), ("name", row.get(name))) if value is not None}


def find_holder(document, size):
    """Who forbids this size to the target."""
    replicas = document["observed"]["replicas"]
    for proposal in document["proposals"]:
        if "hold" in proposal["action"] and goes(proposal["action"]["hold"], replicas, size):
            return name_holder(proposal, "rule")
    for row in document.get("forbidden") or []:
        if "rule" not in row and goes(row["direction"], replicas, size):
            return name_holder(row, "name")
    return None


def find_ban(document, proposal, size):
    """Who forbids this size to the proposal's rule alone."""
    for row in document.get("forbidden") or []:
        if "rule" in row and row["rule"] == proposal.get("rule") and goes(
                row["direction"], document["observed"]["replicas"], size):
            return name_holder(row, "name")
    return None


def reason_of(holder):
    return OWN_REASONS.get(holder["by"], "held")


def falls_back(document, proposal):
    """Whether the value has been unavailable for long enough, and the size is below that of the fallback."""
    fallback, since = proposal.get("fallback"), proposal.get("unavailable_since")
    if fallback is None or since is None or fallback["at_least"] <= document["observed"]["replicas"]:
        return False
    return age(read_time(document["now"]), read_time(since)) >= read_seconds(fallback["after"])


def wish(document, proposal):
    """The size of a proposal that has one, whatever is forbidden."""
    try:
        return propose(document, proposal)[0]
    except Unavailable:
        return proposal["fallback"]["at_least"]


def compute_results(document):
    results = []
    for proposal in document["proposals"]:
        result = {"rule": proposal.get("rule"), "desired": None}
        if proposal.get("schedule") is not None:
            result["schedule"] = proposal["schedule"]
        try:
            result["desired"], is_within = propose(document, proposal)
            result["reason"] = "within_tolerance" if is_within else "ok"
            ban = find_ban(document, proposal, result["desired"])
            if ban:
                result["desired"], result["reason"] = document["observed"]["replicas"], reason_of(ban)
        except Unavailable:
            result["reason"] = "metric_unavailable"
            if falls_back(document, proposal):
                result["desired"], result["reason"] = proposal["fallback"]["at_least"], "fallback"
                ban = find_ban(document, proposal, result["desired"])
                if ban:
                    result["desired"], result["reason"] = document["observed"]["replicas"], reason_of(ban)
        except NoOpinion:
            result["reason"] = "hold" if "hold" in proposal["action"] else "no_change"
        except Floor as floor:
            result["desired"], result["reason"] = floor.size, "floor"
        results.append(result)
    return results


# ---- the gates


def get_behavior(target):
    given = target.get("behavior")
    if given is None:
        return None
    return (
        {**HPA_UP, **(given.get("scaleUp") or {})},
        {**HPA_DOWN, **(given.get("scaleDown") or {})},
    )


def stabilize(history, behavior, now, replicas, combined):
    old = [(read_time(r["at"]), r["replicas"]) for r in history.get("recommendations") or []]
    up, down = (read_seconds(rules["stabilizationWindowSeconds"]) for rules in behavior)
    lo = min([combined] + [size for at, size in old if age(now, at) < up])
    hi = max([combined] + [size for at, size in old if age(now, at) < down])
    return min(max(replicas, lo), hi)


def percent_part(version, value):
    """Version 1 is exact; from 2 on it is a double, and so is what comes of it."""
    return Fraction(value, 100) if version == 1 else value / 100


def policy_limit(version, history, rules, now, replicas, is_up):
    """The size at which the policies end a scale-up or scale-down."""
    if rules["selectPolicy"] == "Disabled":
        return replicas
    limits = []
    for policy in rules["policies"]:
        period = read_seconds(policy["periodSeconds"])
        young = [e["change"] for e in history.get("scale_events") or [] if age(now, read_time(e["at"])) < period]
        ups, downs = sum(c for c in young if c > 0), -sum(c for c in young if c < 0)
        if is_up:
            start = replicas - ups + downs
            if policy["type"] == "Pods":
                limits.append(saturate(start + policy["value"]))
            else:
                limits.append(saturate(math.ceil(start * (1 + percent_part(version, policy["value"])))))
        else:
            start = replicas + downs - ups
            if policy["type"] == "Pods":
                limits.append(saturate(start - policy["value"]))
            else:
                limits.append(saturate(truncate(start * (1 - percent_part(version, policy["value"])))))
    if is_up:
        return max(max(limits) if rules["selectPolicy"] == "Max" else min(limits), replicas)
    return min(min(limits) if rules["selectPolicy"] == "Max" else max(limits), replicas)


def in_cooldown(document, now, is_up):
    cooldown = document["target"].get("cooldown") or {}
    history = document.get("history") or {}

    def younger(last, seconds):
        return history.get(last) is not None and age(now, read_time(history[last])) < read_seconds(seconds)

    if is_up:
        return younger("last_up", cooldown.get("up", 0)) or younger("last_down", cooldown.get("up_after_down", 0))
    return younger("last_up", cooldown.get("down", 0)) or younger(
        "last_down", cooldown.get("down_after_down", cooldown.get("down", 0)))


def winner_of(document, results, winner):
    (proposal,) = (p for p, result in zip(document["proposals"], results) if result is winner)
    return proposal


def is_unconfirmed(history, proposal):
    """The winner says when its alert was reported (null: never), and that is not after the last step down."""
    if "reported" not in proposal or history.get("last_step_down") is None:
        return False
    reported = proposal["reported"]
    return reported is None or read_time(reported) <= read_time(history["last_step_down"])


def pass_gates(document, results, now):
    target, history = document["target"], document.get("history") or {}
    flags = document.get("flags") or {}
    unconfirmed = False
    replicas = document["observed"]["replicas"]
    low, high = target.get("min", 1), target["max"]
    answer = {
        "v": document["v"],
        "replicas": replicas,
        "desired": replicas,
        "reason": None,
        "rule": None,
        "proposals": results,
        "trail": [],
        "limited_by": [],
        "recommendation": None,
        "next_evaluation": None,
    }

    def note(gate, size):
        answer["trail"].append({"gate": gate, "desired": size})

    def held(gate, size, reason):
        note(gate, replicas)
        return {**answer, "desired": replicas, "would": size, "reason": reason}

    if replicas == 0 and target.get("own_min", low) > 0 and not target.get("scheduled_zero", False):
        for gate in ("switched_off", "combine", "bounds"):
            note(gate, replicas)
        return {**answer, "reason": "disabled"}

    hold = held_by = None
    size = high if replicas > high else low
    enforced = target.get("enforce_bounds", False)
    is_outside = ((enforced or target.get("enforce_max", False)) and replicas > high) or (
        (enforced or target.get("enforce_min", False)) and replicas < low)
    returning = [result["desired"] for result in results if "schedule" in result and result["desired"] is not None
                 and result["reason"] != "floor" and result["desired"] > replicas]
    if returning and high > replicas:
        is_outside, size = True, min(returning[0], high)
    else:
        returning = None
    if is_outside:
        held_by = find_holder(document, size)
    if held_by:
        hold = reason_of(held_by)
    if is_outside and not held_by:
        answer["reason"] = "schedule_ended" if returning else "above_max" if replicas > high else "below_min"
        for gate in ("out_of_bounds", "combine", "bounds"):
            note(gate, size)
    else:
        floors = [result["desired"] for result in results if result["reason"] == "floor"]
        sizes = [
            result["desired"] for result in results if result["desired"] is not None and result["reason"] != "floor"
        ]
        missing = any(result["reason"] == "metric_unavailable" for result in results)
        size = replicas
        winners = []
        if missing and (not sizes or max(sizes) < replicas):
            hold = "metric_unavailable"
        elif sizes:
            size = max(sizes)
            winners = [result for result in results if result["desired"] == size and result["reason"] != "floor"]
            unconfirmed = is_unconfirmed(history, winner_of(document, results, winners[0]))
            answer["rule"] = winners[0]["rule"]
            size = max([size] + floors)
            answer["recommendation"] = size
            if size == replicas and min(sizes) < replicas:
                hold = "vetoed"
        holder = find_holder(document, size)
        if holder:
            hold, held_by, size = reason_of(holder), holder, replicas
            answer["recommendation"] = replicas
        elif size == replicas and hold is None:
            bans = [find_ban(document, proposal, wish(document, proposal))
                    for proposal, result in zip(document["proposals"], results) if result["reason"] in ("held", *OWN_REASONS.values())]
            if bans:
                hold, held_by = reason_of(bans[0]), bans[0]
        note("combine", size)

        behavior = get_behavior(target)
        if behavior is not None:
            stable = stabilize(history, behavior, now, replicas, size)
            if stable != size:
                size = stable
                answer["limited_by"].append("stabilization")
                note("stabilize", size)
                if size == replicas:
                    hold = "stabilized"
            if size != replicas:
                is_up = size > replicas
                limit = policy_limit(document["v"], history, behavior[0 if is_up else 1], now, replicas, is_up)
                limited = min(size, limit) if is_up else max(size, limit)
                if limited != size:
                    size = limited
                    answer["limited_by"].append("policy")
                    note("policies", size)
                    if size == replicas:
                        hold = "rate_limited"

        if size > replicas and size > high:
            size = max(high, replicas)
            answer["limited_by"].append("max")
            if size == replicas:
                hold = "at_max"
        elif size < replicas and size < low:
            size = min(low, replicas)
            answer["limited_by"].append("min")
            if size == replicas:
                hold = "at_min"
        note("bounds", size)

        if size == replicas:
            is_within = any(result["reason"] == "within_tolerance" for result in winners)
            if hold in ("held", *OWN_REASONS.values()):
                answer["held_by"] = held_by
            return {**answer, "reason": hold or ("within_tolerance" if is_within else "no_change")}
        if in_cooldown(document, now, size > replicas):
            return held("cooldown", size, "cooldown")
        winner = winner_of(document, results, winners[0])
        answer["reason"] = "scaled" if winner.get("schedule") is None else "schedule_ended"

    is_down = size < replicas
    for holds, reason in (
        (flags.get("paused", False), "paused"),
        (flags.get("in_progress", False), "in_progress"),
        (flags.get("guarded", False) and is_down, "guarded"),
        (unconfirmed and is_down, "unconfirmed"),
        (flags.get("budget_exhausted", False), "budget"),
    ):
        if holds:
            return held("holds", size, reason)
    if target.get("dry_run", False):
        return held("dry_run", size, "dry_run")
    return {**answer, "desired": size}


def find_next_evaluation(document, results, answer):
    if answer["reason"] != "cooldown" and not {"stabilization", "policy"} & set(answer["limited_by"]):
        return None
    target, history, now = document["target"], document.get("history") or {}, read_time(document["now"])
    lasts = [history[last] for last in ("last_up", "last_down") if history.get(last) is not None]
    spans = [(last, seconds) for last in lasts for seconds in (target.get("cooldown") or {}).values()]
    for rules in get_behavior(target) or ():
        spans += [
            (r["at"], rules["stabilizationWindowSeconds"]) for r in history.get("recommendations") or []
        ]
        spans += [
            (e["at"], policy["periodSeconds"])
            for e in history.get("scale_events") or []
            for policy in rules["policies"]
        ]

    def key(other):
        return other["desired"], other.get("would"), other["reason"]

    for time in sorted({read_time(at) + read_seconds(seconds) for at, seconds in spans}):
        if time > now and key(pass_gates(document, results, time)) != key(answer):
            return print_time(time)
    return None


def check_percentages(document):
    """From version 2 on nothing can lose more than 100 %."""
    for proposal in document["proposals"]:
        body = proposal["action"].get("scale_down", {})
        for amount in body.get("steps", [body]):
            by = amount.get("by")
            if document["v"] >= 2 and isinstance(by, str) and percent_of(by) > 100:
                raise InvalidInput("more than 100 %")


def decide(document):
    if document["target"].get("min", 1) > document["target"]["max"]:
        raise InvalidInput("min above max")
    check_percentages(document)
    results = compute_results(document)
    answer = pass_gates(document, results, read_time(document["now"]))
    size = answer.get("would", answer["desired"])
    replicas = answer["replicas"]
    answer["direction"] = "up" if size > replicas else "down" if size < replicas else "none"
    order = ["min", "max", "stabilization", "policy"]
    answer["limited_by"].sort(key=order.index)
    answer["next_evaluation"] = find_next_evaluation(document, results, answer)
    return answer
