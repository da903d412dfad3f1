#!/usr/bin/python3
"""pools.py ALERTSCALER ROOT: what `explain`, `log` and `replay` say of pools, and the example of docs/pools.md.

The log is made here: the inputs are written by hand, the outputs are those of `alertscaler decide`.
"""
import copy
import json
import pathlib
import re
import subprocess
import sys
import unittest

PROGRAM, ROOT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
GIB = 1 << 30
IDS = {"workers": "pool/workers", "spot": "node_group/cloud/spot", "steady": "node_group/cloud/steady"}
TARGET = {"min": 1, "max": 60, "cooldown": {"down": 600}, "pool": {"choose": ["priority", "least_waste"]}}
FIT = {"rule": "pods-wait", "action": {"scale_up": {"fit": "pending_pods"}}}
TAKE = {"rule": "nodes-unneeded", "action": {"scale_down": {"take": "unneeded_nodes"}}}


def run(*arguments, data):
    return subprocess.run([PROGRAM, *arguments], input=data, capture_output=True, check=False, timeout=120, text=True)


def amounts(cpu, gib, pods=110):
    return [cpu * 1000, gib * GIB, 0, pods]


def group(name, size, cpu=8, **more):
    """Nodes have 4 GiB for each cpu; DaemonSets take one of each."""
    known = amounts(cpu, 4 * cpu)
    return {"name": name, "size": size, "nodes": {"count": size, "cpu": cpu * 1000 * size, "memory": 4 * cpu * GIB * size},
            "template": {"source": "node", "node": f"{name}-1", "capacity": known, "allocatable": known, "free": amounts(cpu - 1, 4 * cpu - 1, 100)}} | more


def groups(spot, steady):
    first = group("spot", spot, min=0, max=5, priority=20)
    first["template"]["labels"] = {"life": "spot"}
    return [first, group("steady", steady, min=1, max=20, priority=10), {"name": "gpu", "size": 0, "max": 4, "closed": "no_template"},
            group("big", 2, cpu=32, max=2, closed="at_max")]


def node(name, index, stays=None, pods=()):
    """In the group of this index; without a reason to stay a candidate to leave."""
    told = {"name": name, "group": index, "left": amounts(1, 2, 80)}
    return told | ({"stays": stays} if stays else {"left": amounts(7, 28, 100), "allocatable": amounts(7, 30), "pods": list(pods)})


GROWS = {
    "v": 2, "now": "2026-11-20T10:00:00Z", "target": TARGET, "proposals": [FIT],
    "observed": {
        "replicas": 5, "groups": groups(1, 2), "cluster_nodes": 5, "pending": [[0, 6], [1, 2], [2, 1]], "pending_pods": 10,
        "shapes": [{"requests": amounts(2, 4, 1), "digest": "00000000000000a1"},
                   {"requests": [500, 256 << 20, 0, 1], "selector": {"life": "spot"}, "digest": "00000000000000a2"},
                   {"requests": amounts(64, 8, 1), "digest": "00000000000000a3"}]}}
LEAVES = {
    "v": 2, "now": "2026-11-20T11:00:00Z", "target": TARGET, "proposals": [TAKE],
    "observed": {
        "replicas": 8, "groups": groups(3, 3), "cluster_nodes": 20, "kept": {"disabled": 1, "unevictable": 1, "utilized": 14},
        "shapes": [{"requests": amounts(1, 4, 1), "digest": "00000000000000b1"}],
        "pool_nodes": [node("big-1", 3, "utilized"), node("big-2", 3, "utilized"), node("spot-1", 0, "unevictable"), node("spot-2", 0),
                       node("spot-3", 0), node("steady-1", 1, "disabled"), node("steady-2", 1, pods=[[0, 1]]), node("steady-3", 1, pods=[[0, 1]])]},
    "history": {"unneeded": [{"node": "spot-2", "since": "2026-11-20T10:48:00Z", "seen": "2026-11-20T10:59:45Z"},
                             {"node": "spot-3", "since": "2026-11-20T10:57:00Z", "seen": "2026-11-20T10:59:45Z"},
                             {"node": "steady-2", "since": "2026-11-20T10:45:00Z", "seen": "2026-11-20T10:59:45Z"}]}}
UNWELL = {
    "v": 2, "now": "2026-11-20T11:00:15Z", "target": TARGET, "proposals": [TAKE],
    "observed": {"replicas": 6, "pool_error": "48 of 100 nodes of the cluster are not Ready: nothing is bought or removed"}}


def share(now, start, end):
    return {"v": 2, "now": now, "target": {"min": 0, "max": 20}, "observed": {"replicas": start}, "proposals": [{"rule": "pods-wait", "action": {"scale_to": end}}]}


def record(kind, time, target, **more):
    return {"kind": kind, "time": time, "target": IDS[target], "target_name": target} | more


def decision(target, number, document, **more):
    done = run("decide", data=json.dumps(document))
    assert done.returncode == 0, done.stderr
    return record("decision", document["now"], target, id=number, seq=int(number[1:]), input=document, output=json.loads(done.stdout), incidents=[], **more)


def action(target, time, of, start, end):
    return record("action", time, target, decision=of, rule="pods-wait", outcome="applied", http_status=200, **{"from": start, "to": end})


RECORDS = [
    decision("workers", "D1", GROWS),
    decision("spot", "D2", share("2026-11-20T10:00:00.1Z", 1, 3), pool_decision="D1"),
    action("spot", "2026-11-20T10:00:00.3Z", "D2", 1, 3),
    decision("workers", "D4", LEAVES),
    decision("spot", "D5", share("2026-11-20T11:00:00.1Z", 3, 2), pool_decision="D4"),
    record("nodes", "2026-11-20T11:00:00.2Z", "spot", event="marked", decision="D5", nodes=["spot-2"], message=None),
    action("spot", "2026-11-20T11:00:00.3Z", "D5", 3, 2),
    decision("workers", "D8", UNWELL),
    decision("spot", "D9", share("2026-11-20T11:00:20Z", 2, 3), pool_decision="D0"),
    record("nodes", "2026-11-20T11:15:20Z", "spot", event="kept", decision="D5", nodes=["spot-2"], message="shop/web-1 was not evicted within 15m"),
]


def write(*records):
    return "".join(json.dumps(record, separators=(",", ":"), sort_keys=True) + "\n" for record in records)


LOG = write(*RECORDS)


def explain(target, at, *more, log=LOG):
    done = run("explain", "--target", target, "--at", f"2026-11-20T{at}Z", *more, "-", data=log)
    assert done.returncode == 0, done.stderr
    return done.stdout


def section(text, head):
    return text.partition(f"\n\n{head}\n")[2].partition("\n\n")[0] + "\n"


class Explain(unittest.TestCase):
    maxDiff = None

    def test_which_groups_could_take_pods_that_wait(self):
        """A group that fits may be closed; one that does not says why; pods for which nodes come ask nobody."""
        self.assertEqual(section(explain("workers", "10:00:00"), "Pods that wait"), """\
  10 wait, 9 found no room on nodes that are there
  6 pods of 2 cpu, 4 GiB
    could take them: spot, steady
    could take them, but do not grow: big (at_max)
    could not take them: gpu (it is not known what a new node is like)
  2 pods of 0.5 cpu, 256 MiB, only where life=spot
    could take them: spot
    could not take them: steady (node selector or node affinity does not match), gpu (it is not known what a new node is like), \
big (node selector or node affinity does not match)
  1 pod of 64 cpu, 8 GiB
    could not take them: spot (not enough cpu), steady (not enough cpu), gpu (it is not known what a new node is like), big (not enough cpu)
""")

    def test_pods_that_no_group_could_ever_take(self):
        document = copy.deepcopy(GROWS)
        del document["observed"]["groups"][2]
        text = section(explain("workers", "10:00:00", log=write(decision("workers", "D1", document))), "Pods that wait")
        self.assertIn("big (not enough cpu)\n    no group could ever take them\n", text)
        self.assertEqual(text.count("could ever"), 1)

    def test_pods_for_which_nodes_are_coming(self):
        document = copy.deepcopy(GROWS)
        document["observed"]["groups"][0]["coming"] = 1
        document["observed"]["pending"] = [[0, 2]]
        text = section(explain("workers", "10:00:00", log=write(decision("workers", "D1", document))), "Pods that wait")
        self.assertIn("  2 pods of 2 cpu, 4 GiB\n    nodes that are on their way take them\n", text)

    def test_pods_for_which_a_group_was_asked_in_vain(self):
        document = copy.deepcopy(GROWS)
        document["observed"]["shapes"][0] |= {"unchecked": ["volumes"], "waiting": 6}
        digest = document["observed"]["groups"][1]["template"]["digest"] = "00000000000000c1"
        document["history"] = {"asked": [{"group": "steady", "shape": "00000000000000a1", "template": digest, "at": "2026-11-20T09:00:00Z", "in_vain": True}]}
        text = section(explain("workers", "10:00:00", log=write(decision("workers", "D1", document))), "Pods that wait")
        self.assertIn("  6 pods of 2 cpu, 4 GiB, with something that is not checked\n    could take them: spot\n", text)
        self.assertIn("could not take them: steady (was asked for such pods in vain), gpu", text)

    def test_which_group_was_chosen_and_why_not_the_others(self):
        self.assertEqual(section(explain("workers", "10:00:00"), "Node groups"), """\
  spot: 2 new nodes for 8 pods, priority 20: chosen by priority
  steady: 2 new nodes for 6 pods, priority 10: dropped by priority
  gpu does not grow: no_template. Nothing is known of what a new node of the group would be like.
  big does not grow: at_max. More was wanted, but the size already is at or above max.
  spot goes from 1 to 3
""")

    def test_a_choice_among_equals_and_one_without_others(self):
        document = copy.deepcopy(GROWS)
        document["observed"] |= {"pending": [[0, 6]], "pending_pods": 6}
        document["observed"]["groups"][1]["priority"] = 20
        text = section(explain("workers", "10:00:00", log=write(decision("workers", "D1", document))), "Node groups")
        self.assertRegex(text, r"  spot: 2 new nodes for 6 pods, least_waste [0-9.]+, priority 20: chosen, the first in `groups`\n")
        self.assertRegex(text, r"  steady: .*: as good as the chosen one, and later in `groups`\n")
        document["observed"]["groups"][1]["closed"] = "cooldown"
        text = section(explain("workers", "10:00:00", log=write(decision("workers", "D1", document))), "Node groups")
        self.assertIn(": chosen, there is no other\n", text)
        self.assertIn("  steady does not grow: cooldown. Its last increase failed: the group backs off.\n", text)

    def test_why_a_group_does_not_grow(self):
        document = copy.deepcopy(GROWS)
        document["v"] = 3
        steady = document["observed"]["groups"][1]
        steady |= {"closed": "cooldown", "open_at": "2026-11-20T10:05:00Z"}
        for more, text in (
                ({}, "cooldown. Its last increase failed: the group backs off until 2026-11-20T10:05:00Z."),
                ({"in_doubt": 2}, "cooldown. An increase by 2 is in doubt: the group backs off until 2026-11-20T10:05:00Z."),
                ({"in_doubt": 0, "unregistered": 1}, "cooldown. 1 node: requested by another controller, not registered. The group backs off until 2026-11-20T10:05:00Z.")):
            steady |= more
            said = section(explain("workers", "10:00:00", log=write(decision("workers", "D1", document))), "Node groups")
            self.assertIn(f"  steady does not grow: {text}\n", said)

    def test_surplus_nodes_are_named(self):
        document = copy.deepcopy(GROWS)
        document["v"] = 3
        document["observed"]["groups"][0] |= {"surplus": 1, "surplus_since": "2026-11-20T09:50:00Z"}
        said = section(explain("workers", "10:00:00", log=write(decision("workers", "D1", document))), "Node groups")
        named = "  spot has 1 surplus node since 2026-11-20T09:50:00Z: an increase in doubt was accepted. "
        self.assertIn(f"{named}They stay, as no rule with `take` is active.\n", said)
        document["proposals"].append({"rule": "unneeded", "action": {"scale_down": {"take": "unneeded_nodes"}}})
        said = section(explain("workers", "10:00:00", log=write(decision("workers", "D1", document))), "Node groups")
        self.assertIn(f"{named}A rule with `take` removes nodes that are unneeded.\n", said)

    def test_a_group_with_room_in_a_full_pool(self):
        document = copy.deepcopy(GROWS)
        document["target"]["max"] = document["observed"]["replicas"]
        said = section(explain("workers", "10:00:00", log=write(decision("workers", "D1", document))), "Node groups")
        self.assertIn("  spot does not grow: at_max. The group has room, but the pool is at its `max`, `cpu` or `memory`.\n", said)

    def test_why_nodes_stay_or_leave(self):
        text = explain("workers", "11:00:00")
        self.assertEqual(section(text, "Nodes"), """\
  spot-2 leaves: unneeded since 2026-11-20T10:48:00Z
  spot-3 is unneeded since 2026-11-20T10:57:00Z, and may leave from 2026-11-20T11:07:00Z on
  steady-2 leaves: unneeded since 2026-11-20T10:45:00Z
  1 stays, disabled (an annotation says so): steady-1
  1 stays, receives (other pods were placed here): steady-3
  1 stays, shortly (not unneeded for long enough): spot-3
  1 stays, unevictable (a pod may not be evicted): spot-1
  14 stay, utilized (pods request more than `nodes.unneeded.below`): big-1, big-2 and 12 more
""")
        self.assertNotIn("Pods that wait", text, "no rule asks for them")
        self.assertIn("  spot goes from 3 to 2\n  steady goes from 3 to 2\n", section(text, "Node groups"))

    def test_nothing_is_known_of_the_nodes(self):
        self.assertEqual(section(explain("workers", "11:00:15"), "Nodes"),
                         "  nothing is known of them: 48 of 100 nodes of the cluster are not Ready: nothing is bought or removed\n")

    def test_a_pool_leads_to_what_its_groups_did(self):
        """Also to what became of the nodes, long after the pool's next decision."""
        self.assertEqual(section(explain("workers", "11:00:00"), "What followed"), """\
  2026-11-20T11:00:00.1Z: spot: decided from 3 to 2: scaled (decision D5)
  2026-11-20T11:00:00.2Z: spot: marked spot-2.
  2026-11-20T11:00:00.3Z: spot: from 3 to 2: applied, HTTP 200. The size was set.
  2026-11-20T11:15:20Z: spot: kept spot-2: shop/web-1 was not evicted within 15m.
  the next decision came at 2026-11-20T11:00:15Z

""")
        told = json.loads(explain("workers", "11:00:00", "-o", "json"))
        self.assertEqual([each["kind"] for each in told["shares"]], ["decision", "nodes", "action", "nodes"])

    def test_a_group_leads_to_its_pool(self):
        text = explain("spot", "10:30:00")
        self.assertEqual(section(text, "Its pool"), """\
  this carries out decision D1 of workers, from 5 to 7: scaled, rule pods-wait
  alertscaler explain --target workers --at 2026-11-20T10:00:00Z says why
""")
        self.assertEqual(json.loads(explain("spot", "10:30:00", "-o", "json"))["pool_decision"], RECORDS[0])
        self.assertEqual(section(explain("spot", "11:30:00"), "Its pool"), "  this carries out decision D0, which is not in these files\n")

    def test_what_became_of_the_nodes_that_a_group_chose(self):
        """They leave in the background: the group has decided again since."""
        self.assertEqual(section(explain("spot", "11:00:10"), "What followed"), """\
  2026-11-20T11:00:00.2Z: marked spot-2.
  2026-11-20T11:00:00.3Z: from 3 to 2: applied, HTTP 200. The size was set.
  2026-11-20T11:15:20Z: kept spot-2: shop/web-1 was not evicted within 15m.
  the next decision came at 2026-11-20T11:00:20Z

""")

    def test_a_record_that_cannot_be_computed_again(self):
        """Of a later version: what stands in the answer is told."""
        later = copy.deepcopy(RECORDS[3])
        later["input"] |= {"v": 99}
        text = explain("workers", "11:00:00", log=write(later))
        self.assertIn("  14 stay, utilized (pods request more than `nodes.unneeded.below`)\n", text)
        self.assertIn("  spot-3 is unneeded since 2026-11-20T10:57:00Z\n", text)
        self.assertIn("  spot goes from 3 to 2\n", text)


class Others(unittest.TestCase):
    def test_log_names_groups_nodes_and_the_decision_of_the_pool(self):
        done = run("log", "-", data=LOG)
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in ("workers (pool/workers): decided 5 -> 7, rule pods-wait, spot 1 -> 3\n",
                     "workers: decided 8 -> 6, rule nodes-unneeded, spot 3 -> 2, steady 3 -> 2, leaving: spot-2, steady-2\n",
                     "spot: decided 3 -> 2, rule pods-wait, for decision D4\n",
                     "nodes        spot: marked spot-2, chosen by D5\n",
                     "nodes        spot: kept spot-2, chosen by D5: shop/web-1 was not evicted within 15m\n"):
            self.assertIn(part, done.stdout)

    def test_log_finds_records_of_nodes(self):
        done = run("log", "--kind", "nodes", "--target", "spot", "-", data=LOG)
        self.assertEqual(done.stdout.count("\n"), 2, done)

    def test_replay_computes_pools_again(self):
        self.assertIn("6 decisions computed again, 0 differ", run("replay", "-", data=LOG).stdout)
        changed = copy.deepcopy(RECORDS[3])
        changed["output"]["take"] = ["spot-3"]
        done = run("replay", "-", data=write(changed))
        self.assertIn("1 differs", done.stdout)
        self.assertIn('take: logged ["spot-3"], computed ["spot-2","steady-2"]', re.sub(r" +", " ", done.stdout))


class Documentation(unittest.TestCase):
    """The examples of docs/pools.md are what the program says."""

    def test_the_examples(self):
        page = (ROOT / "docs/pools.md").read_text(encoding="utf-8")
        examples = re.findall(r"\$ alertscaler explain --target (\w+) --at 2026-11-20T([\d:]+)Z\n(.*?)```", page, re.DOTALL)
        self.assertEqual(len(examples), 2)
        for target, at, example in examples:
            text = explain(target, at)
            for part in example.split("...\n"):
                self.assertIn(part.strip("\n") + "\n", text)


unittest.main(argv=sys.argv[:1], verbosity=1)
