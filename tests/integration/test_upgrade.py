"""Today's program opens what earlier ones wrote (tests/golden/upgrade): nothing that was open, locked, paused or begun is lost."""
import collections
import contextlib
import json
import sqlite3
import subprocess

import pytest

from harness import upgrade
from harness.control_plane import ADMIN_TOKEN
from harness.daemon import find_binary
from harness.notification import alert
from harness.wait import eventually

UNRELEASED = "1a5c405"      # state of format 1
VERSIONS = sorted(folder.name for folder in upgrade.GOLDEN.iterdir() if folder.is_dir() and folder.name != UNRELEASED)
STORES = ["sqlite", "kubernetes"]
WAYS_OUT = {"sqlite": "move it and its -wal file away", "kubernetes": "delete the ConfigMaps with the label"}
GROWN = ["a", "b", "back", "alias", "alias/", "each-1"]     # by one, and locked since
OPEN = {"Both": 2, "Grow": 1, "Slow": 1, "Full": 1, "Held": 2, "Stuck": 1}
WHOLE = {"Authorization": "Bearer secret-of-whole"}


@pytest.fixture
def groups(started):
    groups = started(upgrade.Groups())
    groups.sizes.update({name: upgrade.START_SIZE + 1 for name in GROWN})
    return groups


@pytest.fixture
def make(control_plane, namespace, make_daemon, groups, tmp_path):
    """make(version, store): a daemon that has the version's state, not started, and where that state lies."""
    place = namespace.ljust(len(upgrade.NAMESPACE), "x")
    control_plane.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}})
    uid = control_plane.admin.create(upgrade.make_workload(place, upgrade.START_SIZE + 1))["metadata"]["uid"]
    kubeconfig = control_plane.write_kubeconfig(f"upgrade-{namespace}", token=ADMIN_TOKEN)

    def make(version, store):
        config = upgrade.make_config(kubeconfig, tmp_path)
        if store == "kubernetes":
            config["state"] = {"store": "kubernetes", "namespace": place,
                               "lease": {"duration": "30s", "renew_deadline": "20s", "retry_period": "500ms"}}
        daemon = make_daemon(upgrade.make_rules(groups, place, has_aliases=False), config, start=False, env={"POD_NAME": "pod-0"})
        daemon.headers = WHOLE
        folder = upgrade.GOLDEN / version
        if store == "kubernetes":
            items = json.loads((folder / "configmaps.json").read_text())
            upgrade.write_config_maps(control_plane.admin, place, upgrade.change_config_maps(items, upgrade.own(groups, place, uid)))
        else:
            upgrade.copy_state_file(folder / "state.db", daemon.state_file, upgrade.own(groups, place, uid))
            daemon.log_file.write_bytes((folder / "actions.jsonl").read_bytes())
        return daemon, place

    yield make
    control_plane.admin.delete(f"/api/v1/namespaces/{place}")


def incidents(daemon):
    daemon.headers = WHOLE      # upgrade.send leaves those of a narrowed credential
    return daemon.get("/api/v1/incidents").json["data"]


def read_form(control_plane, daemon, namespace, store):
    if store == "kubernetes":
        return control_plane.admin.get(f"/api/v1/namespaces/{namespace}/configmaps/alertscaler-state")["data"]["format"]
    with contextlib.closing(sqlite3.connect(daemon.state_file)) as db:
        return str(db.execute("PRAGMA user_version").fetchone()[0])


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_open_locked_paused_and_begun_is_there(make, groups, control_plane, version, store):
    daemon, namespace = make(version, store)
    daemon.start()
    eventually(lambda: groups.applied.get("stuck"), what="the open intent is settled")
    daemon.wait_record("action", target_name="stuck", outcome="applied")
    assert "/groups/stuck" in groups.gets, "it is observed first"
    assert groups.applied == {"stuck": [upgrade.START_SIZE + 1]}, "locks hold, and the intent is carried out once"

    opened = incidents(daemon)
    assert collections.Counter(one["labels"]["alertname"] for one in opened) == OPEN
    both = [one for one in opened if one["labels"]["alertname"] == "Both"]
    assert {name for one in both for name in one["credentials"]} == {"team-a", "whole"}
    assert {target["rule"] for one in both for target in one["targets"]} == {"a-both", "b-both"}
    for name in ("a", "b", "back", "alias", "web"):
        assert daemon.target(name)["locked_until"]["up"], name
    pause = daemon.target("paused")["paused"]
    assert pause["reason"] == "until it is upgraded" and pause["who"] == "whole"

    def outcome(credential, labels, **more):
        return upgrade.send(daemon, credential, {**alert(labels, starts_at=upgrade.STARTS), **more})["alerts"][0]["outcome"]

    assert outcome("whole", {"alertname": "Both", "shard": "1"}) == "duplicate"
    assert outcome("whole", {"alertname": "Grow", "group": "each-1"}) == "max_steps", "it did what it may do once"
    assert outcome("whole", {"alertname": "Both", "shard": "2"}) == "stale", "it was resolved"
    assert outcome("whole", {"alertname": "Both", "shard": "1"}, status="resolved") == "queued"
    assert outcome("team-b", {"alertname": "Held", "shard": "ahead"}, status="resolved", endsAt="2026-01-01T00:10:00Z") == "queued", \
        "it was dated 2131, which outranks no real date"
    assert len(incidents(daemon)) == sum(OPEN.values()) - 2
    web = control_plane.admin.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/web")
    assert web["spec"]["replicas"] == upgrade.START_SIZE + 1 and set(groups.applied) == {"stuck"}

    daemon.restart()    # part of it is kept as this version does by now
    assert len(incidents(daemon)) == sum(OPEN.values()) - 2
    daemon.stop()
    assert read_form(control_plane, daemon, namespace, store) == "2", "earlier versions refuse it"


@pytest.mark.parametrize("store", STORES)
def test_state_of_an_unreleased_format_is_refused_and_left_as_it_is(make, control_plane, store):
    daemon, namespace = make(UNRELEASED, store)
    for _ in range(2):
        daemon.process.start()
        eventually(lambda: not daemon.process.running, what="it ends")
        assert daemon.process.popen.returncode == 1, daemon.process.log_text()
    assert "is from an older alertscaler" in daemon.process.log_text()
    assert WAYS_OUT[store] in daemon.process.log_text()
    daemon.check_sanitizers()
    assert read_form(control_plane, daemon, namespace, store) == "1"


@pytest.mark.parametrize("version", VERSIONS)
def test_the_log_goes_on(make, groups, version):
    """One chain over both versions, which today's commands read."""
    daemon, _ = make(version, "sqlite")
    daemon.start()
    daemon.wait_record("action", target_name="stuck", outcome="applied")
    daemon.stop()

    def run(*arguments):
        done = subprocess.run([daemon.binary, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert run("log", "verify", daemon.log_file).startswith("records 1 to ")
    assert "b-both" in run("explain", "--target=b", daemon.log_file)
    assert run("replay", daemon.log_file).endswith(" 0 differ\n")


def test_the_log_of_an_unreleased_version_is_still_read():
    """Its state is refused, but decisions of `v: 1` stay."""
    log = upgrade.GOLDEN / UNRELEASED / "actions.jsonl"

    def run(*arguments):
        done = subprocess.run([find_binary(), *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert run("log", "verify", log).startswith("records 1 to ")
    assert "b-both" in run("explain", "--target=b", log)
    assert run("replay", log).endswith(" 0 differ\n")
