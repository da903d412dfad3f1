"""Watches against the real API server: pages, both forms, one HTTP/2 connection for many, a server that starts again,
connections that are cut after any byte."""
import itertools
import random

import pytest
import yaml

from harness.control_plane import ADMIN_TOKEN
from harness.cutting_proxy import CuttingProxy
from harness.driver import Driver
from harness.wait import eventually

COUNT = 1100      # three pages
_numbers = itertools.count(1)


class WatchDriver(Driver):
    name = "watch_driver"

    def start(self, path, is_binary, selector=""):
        return self.wait(self.send(op="start", path=path, selector=selector, is_binary=is_binary))["watch"]

    def look(self, watch):
        return self.wait(self.send(op="look", watch=watch))


@pytest.fixture
def driver(control_plane, tmp_path):
    made = WatchDriver(tmp_path, "--kubeconfig", control_plane.write_kubeconfig("watcher", token=ADMIN_TOKEN))
    yield made
    made.stop()


@pytest.fixture
def maps(control_plane):
    """The path of config maps in a namespace of their own, and a function that makes one."""
    name = f"watch-{next(_numbers)}"
    control_plane.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    path = f"/api/v1/namespaces/{name}/configmaps"

    def make(item, size=10):
        control_plane.admin.post(path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": item},
                                        "data": {"text": 'é"\\\n' * (size // 5)}})

    yield path, make
    control_plane.admin.delete(f"/api/v1/namespaces/{name}")


def read(control_plane, path):
    return {item["metadata"]["name"]: item["metadata"]["resourceVersion"]
            for item in control_plane.admin.get(path)["items"]}


def wait_equal(driver, watch, control_plane, path):
    def probe():
        seen = driver.look(watch)
        assert seen["synced"] and seen["objects"] == read(control_plane, path), seen["failures"]
        return seen

    return eventually(probe, what="the watch knows what the API server has")


@pytest.mark.seconds(240)
def test_it_knows_what_the_api_server_has(driver, control_plane, maps):
    path, make = maps
    for i in range(COUNT):
        make(f"small-{i}")
    for i in range(10):
        make(f"large-{i}", 900_000)     # parts wait for the loop while others share the connection
    watches = [driver.start(path, is_binary) for is_binary in (True, False, True, False)]
    for watch in watches:
        wait_equal(driver, watch, control_plane, path)

    make("late")
    control_plane.admin.patch(f"{path}/small-7", {"data": {"more": "x"}})
    control_plane.admin.delete(f"{path}/small-8")
    for index, watch in enumerate(watches):
        seen = wait_equal(driver, watch, control_plane, path)
        assert "late" in seen["objects"] and "small-8" not in seen["objects"]
        assert seen["lists"] == 1 and seen["failures"] == [] and seen["events"] >= 3
        assert (seen["binary"] > COUNT) == (index % 2 == 0), "the form that was asked for"


def test_a_field_selector_leaves_objects_out(driver, control_plane, maps):
    path, make = maps
    make("one")
    make("two")
    watch = driver.start(path, True, "metadata.name=one")
    assert eventually(lambda: list(driver.look(watch)["objects"]) == ["one"])
    make("three")
    control_plane.admin.delete(f"{path}/one")
    assert eventually(lambda: driver.look(watch)["objects"] == {})


@pytest.mark.seconds(240)
def test_it_goes_on_when_the_api_server_starts_again(driver, control_plane, maps):
    path, make = maps
    make("before")
    watches = [driver.start(path, is_binary) for is_binary in (True, False)]
    for watch in watches:
        wait_equal(driver, watch, control_plane, path)
    control_plane.apiserver.kill()
    eventually(lambda: all(driver.look(watch)["failures"] for watch in watches))
    assert all(driver.look(watch)["objects"] for watch in watches), "what was known stays known"
    control_plane.ensure_running()
    make("after")
    for watch in watches:
        wait_equal(driver, watch, control_plane, path)


def test_a_missing_right_is_said(control_plane, tmp_path, maps):
    path, _ = maps
    kubeconfig = control_plane.write_kubeconfig("stranger", token="nobody")
    driver = WatchDriver(tmp_path, "--kubeconfig", kubeconfig)
    watch = driver.start(path, True)
    failure = eventually(lambda: driver.look(watch)["failures"])[0]
    assert failure == f"list {path}: HTTP 401: Unauthorized"
    assert not driver.look(watch)["synced"]
    driver.stop()


@pytest.fixture
def proxy(started, control_plane):
    return started(CuttingProxy(control_plane.url, control_plane.authority.context()).start())


@pytest.fixture
def cut_driver(proxy, tmp_path):
    """Through the proxy, which reads no TLS."""
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump({
        "apiVersion": "v1", "kind": "Config", "current-context": "x", "users": [{"name": "x", "user": {"token": ADMIN_TOKEN}}],
        "clusters": [{"name": "x", "cluster": {"server": proxy.url}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}]}))
    made = WatchDriver(tmp_path, "--kubeconfig", path)
    yield made
    made.stop()


@pytest.mark.seconds(480)
def test_wherever_a_connection_is_cut_nothing_is_missed(cut_driver, control_plane, proxy, maps):
    """In a head, between two events, within an object: the watch knows in the end what the API server has."""
    path, make = maps
    for i in range(40):
        make(f"old-{i}", 200 * i)
    seed = random.randrange(1 << 32)
    print("seed", seed)     # shown when the test fails
    chance = random.Random(seed)
    size = len(control_plane.admin.request("GET", path).body)
    proxy.cuts = [0, 1, 15, 16, 17, 100, 200, 300, 400, 500] + [chance.randrange(2 * size) for _ in range(22)]
    chance.shuffle(proxy.cuts)
    watches = [cut_driver.start(path, is_binary) for is_binary in (True, False) * 6]
    for i in range(200):
        make(f"new-{i}", chance.randrange(5000))
        if i % 3 == 0:
            control_plane.admin.patch(f"{path}/old-{i // 5}", {"data": {"more": str(i)}})
        if i % 7 == 0:
            control_plane.admin.delete(f"{path}/new-{i // 2}")
    eventually(lambda: not proxy.cuts, 240, what="all cuts were made")
    for watch in watches:
        wait_equal(cut_driver, watch, control_plane, path)
    assert sum(len(cut_driver.look(watch)["failures"]) for watch in watches) >= 20


@pytest.mark.seconds(240)
def test_what_the_api_server_forgot_meanwhile_is_listed_anew(cut_driver, control_plane, proxy, maps):
    """A real 410: etcd is compacted and the API server starts anew while the watches are cut."""
    path, make = maps
    for i in range(5):
        make(f"old-{i}")
    watches = [cut_driver.start(path, is_binary) for is_binary in (True, False)]
    for watch in watches:
        wait_equal(cut_driver, watch, control_plane, path)
    proxy.close()
    for i in range(5):
        make(f"new-{i}")
        control_plane.admin.delete(f"{path}/old-{i}")
    control_plane.apiserver.kill()
    control_plane.compact()
    control_plane.ensure_running()
    proxy.is_closed = False
    for watch in watches:
        seen = wait_equal(cut_driver, watch, control_plane, path)
        assert set(seen["objects"]) >= {f"new-{i}" for i in range(5)}
        assert not any(name.startswith("old") for name in seen["objects"])
        assert seen["lists"] == 2, "from the version that was known the API server could not go on"
        assert not any("too old" in failure for failure in seen["failures"]), "it is listed anew at once, without a back-off"
