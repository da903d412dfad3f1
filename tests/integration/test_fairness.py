"""What a narrowed credential can fill is shared: a flood of its alerts holds up neither another credential's alert, nor the
reviews of tokens. And many clusters behind one address do not starve each other."""
import select
import socket
import subprocess
import time

import pytest

from harness.disk import Disk
from harness.notification import alert, notification
from harness.slow_cluster import SlowCluster
from harness.wait import PATIENCE, eventually

FLOOD = 2000
AT_ONCE = 250           # alerts of a notification
CLUSTERS = 22


@pytest.fixture
def api(started):
    return started(SlowCluster())


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def daemon(make_daemon, api, tmp_path):
    for name in ("team", "main"):
        (tmp_path / name).write_text(name)
    made = make_daemon({
        "targets": {"any": {"kubernetes": {"kind": "Deployment", "namespace": "shop", "name": "{{ .Labels.app }}"},
                            "allow": {"names": ["*"]}, "min": 1, "max": 10, "cooldown": {"up": "1h", "down": "1h"}}},
        "rules": [{"name": "slow", "match": ['alertname="Slow"'], "target": "any", "scale_up": {"by": 1}}],
    }, {
        "clusters": {"default": {"kubeconfig": api.write_kubeconfig(tmp_path / "kubeconfig")}},
        "receiver": {
            "tokens": [{"name": "team", "file": str(tmp_path / "team"), "targets": ["*/team-*"]},
                       {"name": "main", "file": str(tmp_path / "main")}],
            "token_review": {"cluster": "default", "allow": [{"name": "reader", "user": "reader", "permissions": ["read"]}]}},
    }, log_level="info")
    made.headers = bearer("main")
    return made


def slow(*apps):
    return notification(*[alert({"alertname": "Slow", "app": app}) for app in apps], group={"alertname": "Slow", "first": apps[0]})


def flood(daemon, count):
    """Alerts of the narrowed credential, each for a target of its own."""
    daemon.headers = bearer("team")
    for first in range(0, count, AT_ONCE):
        daemon.notify(slow(*[f"team-{i}" for i in range(first, min(first + AT_ONCE, count))]))
    daemon.headers = bearer("main")


@pytest.mark.seconds(300)
def test_a_flood_of_a_narrowed_credential_does_not_hold_up_another_alert(daemon, api):
    daemon.notify(slow("first"))
    eventually(lambda: api.sizes.get("first") == 5)
    api.delay = 0.05
    flood(daemon, FLOOD)
    eventually(lambda: api.count("GET", "/team-") > 100)
    daemon.notify(slow("other"))
    before = api.count()        # what it observes comes once its incident is durable, which is now
    place = eventually(lambda: api.find("GET", "/other/scale"), 3 * PATIENCE, what="it is observed")
    assert place - before < 100, f"{place - before} requests came first"
    eventually(lambda: api.sizes.get("other") == 5, 3 * PATIENCE)
    assert sum(name.startswith("team-") for name in api.sizes) < FLOOD / 2, "most of the flood comes later"
    api.delay = 0
    eventually(lambda: sum(name.startswith("team-") for name in api.sizes) > FLOOD / 10, 3 * PATIENCE, what="it goes on")


@pytest.mark.seconds(300)
def test_tokens_are_reviewed_during_a_flood(daemon, api):
    api.delay = 0.05
    flood(daemon, FLOOD)
    eventually(lambda: api.count("GET", "/team-") > 100)
    for number in range(5):
        daemon.headers = bearer(f"account-{number}")        # none of them is remembered
        before = api.count()
        answer = daemon.get("/api/v1/status")
        assert answer.status == 200, answer.text
        assert api.count("POST", "/tokenreviews") == number + 1
        place = api.find("POST", "/tokenreviews", number)
        assert place - before < 100, f"{place - before} requests came first"
    assert sum(name.startswith("team-") for name in api.sizes) < FLOOD, "the flood still lasts"


@pytest.mark.seconds(300)
def test_clusters_behind_one_address_do_not_starve_each_other(make_daemon, api, tmp_path):
    names = [f"c{i}" for i in range(CLUSTERS)]
    clusters = {name: {"kubeconfig": api.write_kubeconfig(tmp_path / name, f"/{name}")} for name in names}
    daemon = make_daemon({
        "targets": {name: {"kubernetes": {"cluster": name, "kind": "Deployment", "namespace": "shop", "name": "web"},
                           "min": 1, "max": 10} for name in names},
        "rules": [{"name": f"by-nodes-{name}", "match": ['alertname="Watchdog"'], "target": name, "guard": "none",
                   "scale_to": {"value": {"nodes": "count"}, "steps": [{"from": 1, "size": 5}]}} for name in names],
    }, {"clusters": clusters}, log_level="info")
    daemon.notify(notification(alert({"alertname": "Watchdog"})))
    eventually(lambda: len(api.watching) == 3 * CLUSTERS, 2 * PATIENCE, what="all watches are held open at a time")
    eventually(lambda: all(api.sizes.get(f"/{name}web") == 5 for name in names), 2 * PATIENCE, what="all targets are sized")
    assert len(api.watching) == 3 * CLUSTERS


def order_raw(daemon, token, number):
    """A command on a connection of its own, which is not answered yet."""
    host, port = daemon.address.split(":")
    body = f'{{"reason": "{number}", "for": "1h"}}'
    connection = socket.create_connection((host, int(port)), timeout=PATIENCE)
    connection.sendall(f"POST /api/v1/targets/any/pause HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
                       f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
    return connection


@pytest.fixture
def frozen(started, tmp_path):
    """A disk, and what lets its writers wait."""
    disk = started(Disk(tmp_path / "disk", kind="ext4", kib=65536))
    yield disk
    subprocess.run(["fsfreeze", "-u", disk.place], check=False, capture_output=True)


@pytest.mark.seconds(120)
def test_commands_of_a_narrowed_credential_take_half_of_the_places_before_the_disk(make_daemon, frozen, node_group, tmp_path):
    for name in ("team", "main"):
        (tmp_path / name).write_text(name)
    daemon = make_daemon(
        {"targets": {"any": {"node_group": {"provider": "mine", "url": node_group(size=4).url}, "max": 9}},
         "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "any", "scale_up": {"by": 1}}]},
        {"providers": {"mine": {"type": "http"}}, "state": {"store": "sqlite", "path": str(frozen.data / "state.db")},
         "action_log": {"path": str(frozen.data / "actions.jsonl")},
         "receiver": {"max_connections": 40, "tokens": [
             {"name": "team", "file": str(tmp_path / "team"), "targets": ["any"], "permissions": ["admin"]},
             {"name": "main", "file": str(tmp_path / "main"), "permissions": ["read", "admin"]}]}},
        flags=["--web.enable-admin-api"], start=False)
    daemon.headers = bearer("main")
    daemon.start()
    subprocess.run(["fsfreeze", "-f", frozen.place], check=True)
    connections = [order_raw(daemon, "team", number) for number in range(30)]
    try:
        time.sleep(1)
        ready, _, _ = select.select(connections, [], [], 2)
        assert {connection.recv(12) for connection in ready} == {b"HTTP/1.1 503"} and len(ready) == 10, "half of 40 may wait"
        waiting = order_raw(daemon, "main", "mine")
        assert daemon.get("/api/v1/status").ok
    finally:
        subprocess.run(["fsfreeze", "-u", frozen.place], check=True)
    assert waiting.recv(12) == b"HTTP/1.1 200"
    for connection in [*connections, waiting]:
        connection.close()
