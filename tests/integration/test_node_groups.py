"""Node groups through the built binary, on their long ways: what never comes is taken back, and nodes with pods of the real API
server are emptied before their instances go, over budgets, the kill switch, crashes, reloads and stops."""
import datetime
import json
import time

import pytest

from harness.auto_scaling import REGION, SHORTAGE, AutoScaling
from harness.azure import CLIENT, SECRET, SUBSCRIPTION, TENANT, FakeAzure
from harness.nodes import MARK, budget_path, is_in_service, is_marked, make_budget, make_pod, read
from harness.notification import alert, notification
from harness.wait import eventually, steadily


def fire(daemon, name, *status):
    return daemon.notify(notification(alert({"alertname": name}, *status)))


def wait_words(daemon, words):
    return eventually(lambda: [r for r in daemon.records() if words in json.dumps(r)], 60, what=words)[0]


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def rules_for(group, nodes, by=2):
    return {
        "targets": {"workers": {"node_group": group, "max": 20, "nodes": nodes, "cooldown": {"up": "1s", "down": "1s"}}},
        "rules": [
            {"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": by}, "max_steps": 3},
            {"name": "idle", "match": ['alertname="Idle"'], "target": "workers", "scale_down": {"by": 1}, "max_steps": 1},
        ],
    }


# ---- what does not come ----


@pytest.fixture
def aws(started):
    return started(AutoScaling("workers-a", 2, least=1, most=8))


@pytest.fixture
def make_aws(aws, make_daemon, tmp_path):
    def make(nodes, **config):
        provider = {"type": "aws", "region": REGION, "endpoint": aws.url, "timeout": "5s"}
        (tmp_path / "token").write_text("secret-of-ada")
        token = {"name": "ada", "file": str(tmp_path / "token"), "permissions": ["notify", "read", "admin"]}
        rules = rules_for({"provider": "aws", "name": "workers-a"}, nodes)
        daemon = make_daemon(rules, {"providers": {"aws": provider}, "receiver": {"tokens": [token]}, **config},
                             env={"AWS_ACCESS_KEY_ID": "AKIDTEST", "AWS_SECRET_ACCESS_KEY": "s3cret"},
                             flags=["--web.enable-admin-api"], start=False)
        daemon.headers = {"Authorization": "Bearer secret-of-ada"}
        return daemon.start()

    return make


@pytest.fixture
def azure(started):
    return started(FakeAzure())


@pytest.fixture
def make_azure(azure, make_daemon):
    def make(nodes):
        provider = {"type": "azure", "subscription": SUBSCRIPTION, "endpoint": azure.url, "authority": azure.url,
                    "metadata_endpoint": azure.url, "timeout": "5s"}
        rules = rules_for({"provider": "azure", "resource_group": "rg-1", "name": "web"}, nodes)
        return make_daemon(rules, {"providers": {"azure": provider}}, env={
            "AZURE_TENANT_ID": TENANT, "AZURE_CLIENT_ID": CLIENT, "AZURE_CLIENT_SECRET": SECRET})

    return make


def assert_backs_off(daemon, failed, holds):
    """No increase for the first five minutes after the failure: told by decisions and by the API, and nothing changes.

    They begin when the provider tells of its want of capacity: up to one look (15 s) before what is missing is taken back.
    """
    eventually(lambda: [r for r in daemon.records("decision") if r["output"]["reason"] == "cooldown"], 90,
               what="a decision that says cooldown")
    target = eventually(lambda: (t := daemon.target("workers"))["locked_until"]["up"] and t, what="the lock is shown")
    assert 270 <= seconds(target["locked_until"]["up"]) - seconds(failed["time"]) <= 310
    fire(daemon, "Busy")
    steadily(holds, 3, what="the alert that still fires changes nothing")


def test_what_never_comes_is_taken_back(make_aws, aws):
    """The provider takes the new size, and no instance comes: after ready_timeout the size is what it was."""
    aws.room = 2
    daemon = make_aws({"cluster": "none", "ready_timeout": "3s"})
    fire(daemon, "Busy")
    grown = daemon.wait_record("action", outcome="applied", **{"from": 2, "to": 4})
    back = daemon.wait_record("action", outcome="applied", **{"from": 4, "to": 2})
    assert back["decision"] == grown["decision"] and not back["rule"]
    assert back["message"] == ("2 requested instances did not come: alertscaler takes the request back, and requests no more "
                               f"in the next 5 minutes: {SHORTAGE}")
    assert seconds(back["time"]) - seconds(grown["time"]) >= 3
    assert aws.sizes == [4, 2] and not aws.removed and len(aws.instances) == 2
    assert_backs_off(daemon, back, lambda: aws.sizes == [4, 2])


def test_only_what_did_not_come_is_taken_back(make_aws, aws):
    aws.room = 3
    daemon = make_aws({"cluster": "none", "ready_timeout": "3s"})
    fire(daemon, "Busy")
    back = daemon.wait_record("action", outcome="applied", **{"from": 4, "to": 3})
    assert back["message"].startswith("1 requested instance did not come")
    assert aws.sizes == [4, 3] and not aws.removed and len(aws.instances) == 3
    assert_backs_off(daemon, back, lambda: aws.sizes == [4, 3])


@pytest.mark.parametrize("room", [2, 3])
def test_what_was_made_and_failed_is_taken_back_by_name(make_azure, azure, room):
    """Azure names machines that it could not allocate, so these very ones are deleted."""
    group = azure.add_scale_set("web", 2, room=room)
    served = [m.id for m in group.present()]
    daemon = make_azure({"cluster": "none", "ready_timeout": "3s"})
    fire(daemon, "Busy")
    back = daemon.wait_record("action", outcome="applied", **{"from": 4, "to": room})
    assert back["message"].startswith(f"{4 - room} requested instance")
    eventually(lambda: group.size == room, what="the size is what is there")
    assert [m.id for m in group.present()][:2] == served and not [m for m in group.present() if m.error]
    asked = len(azure.requests("^(?!GET)"))
    (told,) = daemon.records("action", outcome="applied", **{"from": 2})    # by then, when the operation failed, it backs off
    assert "AllocationFailed: Allocation failed: not enough capacity in this region." in told["message"]
    assert_backs_off(daemon, told, lambda: len(azure.requests("^(?!GET)")) == asked)


def test_want_of_capacity_backs_off_at_once(make_azure, azure):
    """The provider refuses: nothing has grown, nothing is to be taken back, and it is not asked again and again."""
    group = azure.add_scale_set("web", 2, quota=3)
    daemon = make_azure({"cluster": "none", "ready_timeout": "10m"})
    fire(daemon, "Busy")
    refused = daemon.wait_record("action", outcome="rejected")
    assert "exceeding approved Total Regional Cores Quota" in refused["message"]
    assert_backs_off(daemon, refused, lambda: group.size == 2 and len(azure.requests("^PATCH ")) == 1)


def test_neither_what_is_awaited_nor_a_lock_is_forgotten(make_aws, aws):
    """Killed while instances are awaited, and again when they have been taken back."""
    aws.room = 2
    daemon = make_aws({"cluster": "none", "ready_timeout": "5s"})
    fire(daemon, "Busy")
    daemon.wait_record("action", outcome="applied", **{"from": 2, "to": 4})
    daemon.kill()
    daemon.start()
    back = daemon.wait_record("action", outcome="applied", **{"from": 4, "to": 2})
    daemon.kill()
    daemon.start()
    assert_backs_off(daemon, back, lambda: aws.sizes == [4, 2])


# ---- drains ----


class Workers:
    """Two nodes of an Auto Scaling group, each with a pod of one budget, which lets no pod go until it is told to."""

    def __init__(self, plane, namespace, nodes, group):
        self.plane, self.namespace, self.nodes, self.group = plane, namespace, nodes, group
        self.path = budget_path(plane, namespace)
        self.left_with_pods = []
        for number, name in enumerate(nodes):
            make_pod(plane, namespace, name, f"web-{number}")
        make_budget(plane, namespace, 2)
        plane.admin.wait(self.path, lambda b: b.get("status", {}).get("currentHealthy") == 2)
        group.on_removal = self._leave

    def _leave(self, instance):
        self.left_with_pods += [n for n, i in self.nodes.items() if i == instance and self.pods(n)]

    def pods(self, node):
        pods = self.plane.admin.get(f"/api/v1/namespaces/{self.namespace}/pods")["items"]
        return [p["metadata"]["name"] for p in pods if p["spec"]["nodeName"] == node]

    def marked(self):
        return [n for n in self.nodes if is_marked(self.plane, n)]

    def in_service(self):
        return all(is_in_service(self.plane, n) for n in self.nodes)

    def untouched(self):
        """All pods and instances are there."""
        return (all(self.pods(n) for n in self.nodes) and self.group.size == 2 and not self.group.removed and
                not self.group.sizes)

    def allow_one(self):
        self.plane.admin.patch(self.path, {"spec": {"minAvailable": 1}})

    def wait_leaving(self, daemon):
        """The action is done with the mark: which node leaves, and the record that says so."""
        record = daemon.wait_record("action", 90, outcome="applied")
        assert (record["from"], record["to"]) == (2, 1)
        (told,) = daemon.records("nodes", event="marked")
        assert told["decision"] == record["decision"] and told["target"] == record["target"] and told["target_name"] == "workers"
        (node,) = told["nodes"]
        assert self.marked() == [node]
        return node

    def assert_shrunk(self, daemon):
        """One is gone, and was empty then; the other was left alone."""
        record = daemon.wait_record("action", 90, outcome="applied")
        assert (record["from"], record["to"]) == (2, 1)
        told = daemon.wait_record("nodes", 180, event="removed")
        assert told["decision"] == record["decision"]
        ((gone, _),) = [(n, i) for n, i in self.nodes.items() if [i] == self.group.removed]
        (other,) = [n for n in self.nodes if n != gone]
        assert self.group.size == 1 and not self.left_with_pods and not self.pods(gone) and self.pods(other)
        assert is_marked(self.plane, gone) and is_in_service(self.plane, other)
        assert told["nodes"] == [gone] and not daemon.records("nodes", event="kept")


@pytest.fixture
def workers(control_plane, namespace, aws, make_nodes):
    nodes = {f"{namespace}-worker-{i}": instance for i, instance in enumerate(aws.instances)}
    clusters = make_nodes({n: f"aws:///{REGION}a/{i}" for n, i in nodes.items()})
    made = Workers(control_plane, namespace, nodes, aws)
    made.clusters = clusters
    return made


@pytest.fixture
def make(workers, make_aws):
    return lambda **config: make_aws({"cluster": "default", "drain_timeout": "4m"}, clusters=workers.clusters, **config)


def test_a_node_is_emptied_before_its_instance_goes(make, workers):
    """The action ends with the mark: the target goes on deciding, and counts the node no more."""
    daemon = make()
    fire(daemon, "Idle")
    workers.wait_leaving(daemon)
    steadily(workers.untouched, 4, what="the budget holds it up")
    assert daemon.target("workers")["replicas"] == 1
    workers.allow_one()
    workers.assert_shrunk(daemon)


def test_a_surge_has_the_node_back_at_once(workers, make_aws):
    """Nothing is asked of the provider, and no lock holds growth up."""
    daemon = make_aws({"cluster": "default", "drain_timeout": "4m"}, clusters=workers.clusters)
    fire(daemon, "Idle")
    node = workers.wait_leaving(daemon)
    daemon.write_rules(rules_for({"provider": "aws", "name": "workers-a"}, {"cluster": "default"}, by=1))
    daemon.reload()
    daemon.wait_record("reload")
    fire(daemon, "Busy")
    back = daemon.wait_record("action", 30, outcome="applied", **{"from": 1, "to": 2})
    assert workers.in_service() and workers.untouched()
    told = daemon.wait_record("nodes", event="kept")
    assert told["nodes"] == [node] and told["message"] == "taken back: more are needed"
    assert seconds(back["time"]) - seconds(told["time"]) < 5
    assert not daemon.target("workers")["locked_until"]["up"]


def test_a_budget_that_never_gives_way_keeps_the_instance(workers, make_aws):
    daemon = make_aws({"cluster": "default", "drain_timeout": "4s"}, clusters=workers.clusters)
    fire(daemon, "Idle")
    kept = daemon.wait_record("nodes", 90, event="kept")
    assert "not empty after 4s: pod " in kept["message"] and "disruption budget" in kept["message"]
    assert workers.untouched() and workers.in_service()
    eventually(lambda: daemon.target("workers")["replicas"] == 2, 90, what="it counts again")


def test_a_node_whose_instance_cannot_be_deleted_takes_pods_again(make, workers, aws):
    aws.keys["AKIDTEST"] = ("s3cret", {"DescribeAutoScalingGroups", "DescribeScalingActivities", "SetDesiredCapacity"})
    workers.allow_one()
    daemon = make()
    fire(daemon, "Idle")
    kept = daemon.wait_record("nodes", 90, event="kept")
    assert "not authorized to perform: autoscaling:TerminateInstanceInAutoScalingGroup" in kept["message"]
    assert aws.size == 2 and not aws.removed and workers.in_service()


@pytest.mark.parametrize("late", [0, 1])
def test_instances_that_become_no_nodes_are_taken_back_by_name(workers, make_aws, aws, make_nodes, late):
    """They run, as the provider says; after ready_timeout those that are no nodes go, and no others."""
    daemon = make_aws({"cluster": "default", "ready_timeout": "12s" if late else "3s"}, clusters=workers.clusters)
    fire(daemon, "Busy")
    daemon.wait_record("action", outcome="applied", **{"from": 2, "to": 4})
    new = aws.instances[2:]
    make_nodes({f"{workers.namespace}-late-{i}": f"aws:///{REGION}a/{i}" for i in new[:late]})
    back = daemon.wait_record("action", 90, outcome="applied", **{"from": 4, "to": 2 + late})
    assert back["message"].startswith(f"{2 - late} requested instance")
    assert sorted(aws.removed) == sorted(new[late:]) and aws.sizes == [4]
    assert workers.in_service() and all(workers.pods(n) for n in workers.nodes)
    assert_backs_off(daemon, back, lambda: aws.size == 2 + late)


def test_under_the_kill_switch_nothing_leaves(make, workers, tmp_path):
    stop = tmp_path / "switch" / "stop"
    stop.parent.mkdir()
    daemon = make(kill_switch={"file": str(stop)})
    fire(daemon, "Idle")
    workers.wait_leaving(daemon)
    stop.write_text("the building burns\n")
    daemon.wait_record("command", command="pause")
    workers.allow_one()
    steadily(workers.untouched, 5, what="nothing is evicted or deleted")
    stop.unlink()
    workers.assert_shrunk(daemon)


def test_a_paused_target_evicts_and_deletes_nothing(make, workers):
    daemon = make()
    fire(daemon, "Idle")
    workers.wait_leaving(daemon)
    assert daemon.post("/api/v1/targets/workers/pause", b'{"reason": "a look at it"}').ok
    workers.allow_one()
    steadily(workers.untouched, 5, what="nothing is evicted or deleted")
    assert daemon.post("/api/v1/targets/workers/resume", b'{"reason": "looked"}').ok
    workers.assert_shrunk(daemon)


def test_who_starts_after_a_kill_goes_on(make, workers):
    """Between mark and deletion: nothing is done twice, and nothing else leaves."""
    daemon = make()
    fire(daemon, "Idle")
    node = workers.wait_leaving(daemon)
    daemon.kill()
    assert workers.marked() == [node] and workers.untouched()
    daemon.start()
    steadily(lambda: workers.untouched() and workers.marked() == [node], 5, what="the budget holds it up")
    workers.allow_one()
    workers.assert_shrunk(daemon)
    assert len(daemon.records("action", outcome="applied")) == 1


def test_a_drain_of_an_earlier_version_goes_on(make, workers):
    """Its mark names no target, and its action is not done yet: it was killed in the middle of it."""
    mark = {"at": "2026-11-23T10:00:00Z", "cordoned": True, "decision": "01JDCE00000000000000000000"}
    daemon = make()
    fire(daemon, "Idle")
    node = workers.wait_leaving(daemon)
    daemon.kill()
    mark["owner"] = json.loads(read(workers.plane, node)["metadata"]["annotations"][MARK])["owner"]
    workers.plane.admin.patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": {MARK: json.dumps(mark)}}})
    daemon.start()
    steadily(lambda: workers.untouched() and workers.marked() == [node], 5, what="the budget holds it up")
    workers.allow_one()
    told = daemon.wait_record("nodes", 120, event="removed")
    assert told["nodes"] == [node] and told["decision"] == mark["decision"]


@pytest.mark.parametrize("how", ["signal", "post", "other-rules"])
def test_a_drain_goes_on_over_a_reload(make, workers, how):
    daemon = make()
    fire(daemon, "Idle")
    workers.wait_leaving(daemon)
    if how == "other-rules":
        rules = rules_for({"provider": "aws", "name": "workers-a"}, {"cluster": "default", "drain_timeout": "3m"}, by=1)
        daemon.write_rules(rules)
    else:
        daemon.comment_config()
    if how == "signal":
        daemon.reload()
    else:
        assert daemon.post("/-/reload", b"").ok
    daemon.wait_record("reload")
    steadily(workers.untouched, 3, what="the budget holds it up")
    workers.allow_one()
    workers.assert_shrunk(daemon)
    steadily(lambda: len(daemon.records("action")) == 1 and workers.group.size == 1, 3, what="it is recorded once")


def test_a_stop_leaves_the_mark_to_who_starts_next(make, workers):
    """At once, not after the time that a stop has."""
    daemon = make()
    fire(daemon, "Idle")
    node = workers.wait_leaving(daemon)
    begun = time.monotonic()
    daemon.stop()
    assert time.monotonic() - begun < 18
    assert "stopping with something under way" not in daemon.process.log_text()
    assert workers.untouched() and workers.marked() == [node]
    workers.allow_one()
    daemon.start()
    workers.assert_shrunk(daemon)
