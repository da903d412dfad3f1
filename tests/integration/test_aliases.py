"""One node group under several names: only one target changes it. Through the built binary, at services that accept several names
of one group."""
import subprocess

import pytest

from harness.alibaba import KEY, REGION, SECRET, FakeAlibaba
from harness.auto_scaling import REGION as AWS_REGION, AutoScaling
from harness.digitalocean import CLUSTER, TOKEN, FakeDigitalOcean, Fault
from harness.notification import alert, notification
from harness.wait import eventually, steadily

FLAGS = ["--web.enable-admin-api"]
DOKS = {"DIGITALOCEAN_ACCESS_TOKEN": TOKEN}
AWS = {"AWS_ACCESS_KEY_ID": "AKIDTEST", "AWS_SECRET_ACCESS_KEY": "s3cret"}
COOLDOWN = {"up": "1h", "down": "1h"}


def up(name, target):
    return {"name": name, "match": [f'alertname="{name}"'], "target": target, "scale_up": {"by": 2}}


def fire(daemon, name, *status, **labels):
    return daemon.notify(notification(alert({"alertname": name, **labels}, *status)))


def refused(daemon, target, words):
    """The record that says which other target has the group."""
    return eventually(lambda: [r for r in daemon.records("action", outcome="target_not_allowed")
                               if target in r["target"] and words in r["message"]], 60, what=f"{target} is refused")[0]


@pytest.fixture
def cloud(started):
    return started(FakeDigitalOcean())


@pytest.fixture
def make(cloud, make_daemon):
    def start(targets, rules, **more):
        for target in targets.values():
            target["node_group"] = {"provider": "doks", "cluster": CLUSTER, **target["node_group"]}
            target |= {"nodes": {"cluster": "none"}, "cooldown": COOLDOWN}
        return make_daemon({"targets": targets, "rules": rules},
                           {"providers": {"doks": {"type": "digitalocean", "endpoint": cloud.url, "timeout": "20s"}}}, env=DOKS,
                           flags=FLAGS, **more)
    return start


ANY = {"node_group": {"name": "{{ .Labels.pool }}"}, "allow": {"names": ["*"]}, "max": 50}


def test_a_label_does_not_reach_a_paused_target_beyond_its_max_and_its_approval(make, cloud):
    pool = cloud.add_pool("web", 2)
    web = {"node_group": {"name": "web"}, "max": 3, "approval": {"above": 1, "for": "10m"}}
    daemon = make({"web": web, "any": dict(ANY)}, [up("Busy", "web"), up("Any", "any")])
    daemon.post("/api/v1/targets/web/pause", {"reason": "test"})
    fire(daemon, "Any", pool=pool.id)
    record = refused(daemon, pool.id, f"/{CLUSTER}/web")
    assert "the same group" in record["message"] and f"digitalocean/{pool.id}" in record["message"]
    steadily(lambda: pool.count == 2, 3)
    assert not cloud.requests("^PUT ")


def test_two_labels_give_one_step_within_a_cooldown_also_over_a_kill(make, cloud):
    pool = cloud.add_pool("web", 2)
    daemon = make({"any": dict(ANY)}, [up("Any", "any")])
    fire(daemon, "Any", pool="web")
    eventually(lambda: daemon.records("action", outcome="applied"), 60, what="one step")
    fire(daemon, "Any", "resolved", pool="web")
    fire(daemon, "Any", pool=pool.id)
    refused(daemon, pool.id, "/web")
    daemon.kill()
    daemon.start()
    fire(daemon, "Any", pool=pool.id, more="news")
    steadily(lambda: pool.count == 4, 5)
    assert len(cloud.requests("^PUT ")) == 1


def test_two_entries_for_one_pool_are_both_refused_and_name_each_other(make, cloud):
    pool = cloud.add_pool("web", 2)
    daemon = make({"by-name": {"node_group": {"name": "web"}, "max": 9}, "by-id": {"node_group": {"name": pool.id}, "max": 9}},
                  [up("Busy", "by-name"), up("Full", "by-id")])
    fire(daemon, "Busy")
    fire(daemon, "Full")
    refused(daemon, f"{CLUSTER}/web", f"{CLUSTER}/{pool.id}")
    refused(daemon, f"{CLUSTER}/{pool.id}", f"{CLUSTER}/web")
    steadily(lambda: pool.count == 2, 3)
    assert not cloud.requests("^PUT ")


def test_a_pool_of_its_own_is_changed(make, cloud):
    cloud.add_pool("web", 2)
    other = cloud.add_pool("other", 2)
    daemon = make({"web": {"node_group": {"name": "web"}, "max": 3}, "any": dict(ANY)}, [up("Busy", "web"), up("Any", "any")])
    fire(daemon, "Any", pool=other.id)
    eventually(lambda: other.count == 4, 60, what="it has grown")


def test_nothing_is_changed_while_the_pool_of_another_entry_cannot_be_read(make, cloud):
    cloud.add_pool("web", 2)
    other = cloud.add_pool("other", 2)
    cloud.inject(Fault("^GET ", status=403, id="Forbidden", message="no"))
    daemon = make({"web": {"node_group": {"name": "web"}, "max": 3}, "any": dict(ANY)}, [up("Busy", "web"), up("Any", "any")])
    eventually(lambda: daemon.records("action", outcome="forbidden"), 60, what="the reading has failed")
    fire(daemon, "Any", pool="other")
    record = refused(daemon, "other", "it may be the same group")
    assert "/web" in record["message"] and "forbidden" in record["message"]
    eventually(lambda: other.count == 4, 120, what="it is read again by itself")


@pytest.mark.parametrize("entry, label", [("name", "id"), ("id", "name")])
def test_a_scaling_group_of_alibaba_by_its_name_and_by_its_id(started, make_daemon, entry, label):
    cloud = started(FakeAlibaba())
    group = cloud.add_group("web", 2)
    target = {"nodes": {"cluster": "none"}, "cooldown": COOLDOWN}
    daemon = make_daemon({
        "targets": {"web": {"node_group": {"provider": "ess", "name": getattr(group, entry)}, "max": 3, **target},
                    "any": {"node_group": {"provider": "ess", "name": "{{ .Labels.group }}"}, "allow": {"names": ["*"]}, "max": 50,
                            **target}},
        "rules": [up("Busy", "web"), up("Any", "any")],
    }, {"providers": {"ess": {"type": "alibaba", "region": REGION, "endpoint": cloud.url, "sts_endpoint": cloud.url,
                              "metadata_endpoint": cloud.url, "timeout": "3s"}}},
        env={"ALIBABA_CLOUD_ACCESS_KEY_ID": KEY, "ALIBABA_CLOUD_ACCESS_KEY_SECRET": SECRET})
    fire(daemon, "Any", group=getattr(group, label))
    refused(daemon, getattr(group, label), f"{getattr(group, entry)}, which has precedence")
    steadily(lambda: len(group.instances) == 2, 3)
    assert not cloud.requests("^ScaleWithAdjustment$")


def test_a_node_group_of_eks_and_its_auto_scaling_group(started, make_daemon):
    group = started(AutoScaling("workers-a", 2, least=1, most=8))
    target = {"nodes": {"cluster": "none"}, "cooldown": COOLDOWN}
    daemon = make_daemon({
        "targets": {"eks": {"node_group": {"provider": "aws", "cluster": "prod", "name": "workers-a"}, "max": 3, **target},
                    "asg": {"node_group": {"provider": "aws", "name": "{{ .Labels.asg }}"}, "allow": {"names": ["*"]}, "max": 50,
                            **target}},
        "rules": [up("Busy", "eks"), up("Any", "asg")],
    }, {"providers": {"aws": {"type": "aws", "region": AWS_REGION, "endpoint": group.url, "eks_endpoint": group.url,
                              "timeout": "3s"}}}, env=AWS)
    fire(daemon, "Any", asg="workers-a")
    refused(daemon, "aws/workers-a", "aws/prod/workers-a, which has precedence")
    steadily(lambda: group.size == 2, 3)
    assert "SetDesiredCapacity" not in group.asked


@pytest.mark.parametrize("with_template", [True, False])
def test_a_reload_between_the_last_read_and_the_request_stops_the_request(make, cloud, with_template):
    pool = cloud.add_pool("web", 2)
    label = {"any": dict(ANY)}
    daemon = make(label, [up("Any", "any")])
    web = {"node_group": {"provider": "doks", "cluster": CLUSTER, "name": "web"}, "max": 3, "nodes": {"cluster": "none"}}
    cloud.hold_read(after=1)                # the observation is answered; the read before the request waits
    fire(daemon, "Any", pool=pool.id)
    assert cloud.held.wait(60)
    daemon.write_rules({"targets": {"web": web, **(label if with_template else {})},
                        "rules": [up("Busy", "web"), *([up("Any", "any")] if with_template else [])]})
    daemon.reload()
    eventually(lambda: f"{CLUSTER}/web" in str(daemon.get("/api/v1/targets").json), 60, what="the new rules are used")
    cloud.release()
    refused(daemon, pool.id, f"/{CLUSTER}/web, which may be the same")
    steadily(lambda: pool.count == 2, 3)
    assert not cloud.requests("^PUT ")


def test_the_log_says_which_target_has_the_group(make, cloud):
    pool = cloud.add_pool("web", 2)
    daemon = make({"web": {"node_group": {"name": "web"}, "max": 3}, "any": dict(ANY)}, [up("Busy", "web"), up("Any", "any")])
    fire(daemon, "Any", pool=pool.id)
    refused(daemon, pool.id, "/web")
    told = subprocess.run([daemon.binary, "log", "--reason", "target_not_allowed", str(daemon.log_file)], text=True,
                          capture_output=True)
    assert "which has precedence" in told.stdout, told.stdout + told.stderr
