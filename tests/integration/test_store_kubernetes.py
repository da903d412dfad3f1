"""State in the API server, with a real one: the port's suite, lost answers, takeovers, kills, sizes and times."""
import json
import os
import pathlib
import random
import re
import subprocess
import threading
import time

import pytest
import yaml

from harness.control_plane import ADMIN_TOKEN
from harness.driver import Driver, find_driver
from harness.fault_proxy import FaultProxy
from harness.notification import alert, notification
from harness.wait import PATIENCE, eventually
from test_failover import moment

RIGHTS = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "create", "update"]}]
PORT_SUITE = pathlib.Path(__file__).parents[1] / "port" / "test_store.c"
SELECTOR = "app.kubernetes.io/managed-by=alertscaler,app.kubernetes.io/component=state"
KINDS = ["meta", "incident", "target", "intent", "outbox"]


class StoreDriver(Driver):
    name = "store_driver"

    def call(self, op, store="a", timeout=60, **arguments):
        return self.wait(self.send(op=op, store=store, **arguments), timeout)

    def must(self, op, *arguments, **options):
        answer = self.call(op, *arguments, **options)
        assert answer["status"] == 0, answer["error"]
        return answer

    def kill(self):
        self._process.kill()

    def wait_for_kill(self):
        assert self._process.wait(10) == -9, f"it was not killed: {self.log.read_text()}"


@pytest.fixture
def proxy(control_plane):
    proxy = FaultProxy(control_plane.url, control_plane.authority.context()).start()
    yield proxy
    proxy.stop()


@pytest.fixture
def kubeconfig(control_plane, namespace, proxy, tmp_path):
    """Through the proxy, as an account that has the rights of the documentation and no others."""
    control_plane.create_account(namespace, "state")
    control_plane.grant(namespace, "state", RIGHTS)
    user = {"token": control_plane.account_token(namespace, "state")}
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": proxy.url}}], "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
    return path


@pytest.fixture
def make_driver(kubeconfig, tmp_path):
    drivers = []

    def make():
        drivers.append(StoreDriver(tmp_path, "--kubeconfig", kubeconfig))
        return drivers[-1]

    yield make
    for driver in drivers:
        if driver._process.poll() is None:
            driver.stop()


def make_steps(count, seed):
    """Commits, and what must be there after each."""
    chance = random.Random(seed)
    state, steps, wanted = {kind: {} for kind in KINDS}, [], []
    for i in range(count):
        changes = [["outbox", f"out{i}", "{}\n" * 3], ["outbox", f"out{i - 1}", None],
                   ["target", f"shop/{chance.randrange(7)}", f'{{"step":{i},"text":"{"x" * chance.randrange(20000)}"}}'],
                   ["incident", f"i{i}", f"\u00e4{i}" * 500]]
        if i > 5:
            changes.append(["incident", f"i{chance.randrange(i)}", None])
        for kind, key, value in changes:
            if value is None:
                state[kind].pop(key, None)
            else:
                state[kind][key] = value
        steps.append(changes)
        wanted.append({kind: dict(records) for kind, records in state.items()})
    return steps, wanted


def objects(control_plane, namespace):
    return control_plane.admin.get(f"/api/v1/namespaces/{namespace}/configmaps?labelSelector={SELECTOR}")["items"]


def size_of(config_map):
    return sum(len(k) + len(v.encode()) for k, v in (config_map.get("data") or {}).items())


# What every store promises

@pytest.mark.seconds(600)
def test_the_suite_of_the_port(control_plane):
    """Each test of tests/port with a real API server, in a namespace of its own."""
    suite = find_driver("store_driver").parent.parent / "port" / "test_port_store"
    assert suite.is_file(), "tests/port is not built"
    names = re.findall(r"^PORT_TEST\((\w+)\)", PORT_SUITE.read_text(), re.M)
    assert len(names) >= 7
    for name in names:
        control_plane.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name.replace("_", "-")}})
    kubeconfig = control_plane.write_kubeconfig("port-suite", token=ADMIN_TOKEN)
    run = subprocess.run([suite, "--jobs=1", "--filter=port_store/*"], env={**os.environ, "ALERTSCALER_TEST_KUBECONFIG": str(kubeconfig)},
                         capture_output=True, text=True, timeout=580, check=False)
    assert run.returncode == 0 and f"Passing: {3 * len(names)} " in run.stderr + run.stdout, run.stderr
    for name in names:
        assert objects(control_plane, name.replace("_", "-")), f"{name} did not reach the API server"


# Faults

@pytest.mark.seconds(600)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_fault_is_seen(proxy, make_driver, namespace, seed):
    """Every fourth request goes wrong, in every way; nothing is lost, nothing is there twice, no commit fails."""
    chance = random.Random(seed)
    proxy.decide = lambda *_: chance.choice(["before", "after", 500, 503, 429, 409]) if chance.random() < 0.25 else None
    steps, wanted = make_steps(60, seed)
    driver = make_driver()
    driver.must("open", namespace=namespace, holder="pod-1")
    for i, changes in enumerate(steps):
        driver.must("commit", changes=changes)
        driver.must("tidy")
        if i % 20 == 19:
            assert driver.must("dump")["records"] == wanted[i]
    proxy.decide = None
    driver.must("open", store="b", namespace=namespace, holder="pod-2")
    assert driver.must("dump", store="b")["records"] == wanted[-1]
    faults = [fault for _, _, fault in proxy.seen if fault]
    assert {"before", "after", 409} <= set(faults) and len(faults) > 15
    assert {"GET", "POST", "PUT"} <= {method for method, _, fault in proxy.seen if fault}, "no fault hit a new object"


def test_an_answer_that_comes_too_late_is_looked_for(proxy, make_driver, namespace):
    """5 s for a request: the write is carried out, the answer comes after 6."""
    driver = make_driver()
    driver.must("open", namespace=namespace, holder="pod-1")
    late = iter(["slow"])
    proxy.decide = lambda number, method, path: next(late, None) if method == "PUT" else None
    answer = driver.must("commit", changes=[["meta", "k", "v"]])
    assert 5 <= answer["seconds"] < 25
    puts = [path for method, path, _ in proxy.seen if method == "PUT"]
    driver.must("open", store="b", namespace=namespace, holder="pod-2")
    assert driver.must("dump", store="b")["records"]["meta"] == {"k": "v"}
    assert len(puts) == 1, "it was not written twice"


@pytest.mark.seconds(300)
def test_an_outage_ends_in_a_failure_within_25_seconds(control_plane, make_driver, namespace):
    driver = make_driver()
    driver.must("open", namespace=namespace, holder="pod-1")
    driver.must("commit", changes=[["meta", "k", "before"]])
    control_plane.apiserver.kill()
    answer = driver.call("commit", changes=[["meta", "k", "after"]])
    assert answer["status"] < 0 and answer["error"].startswith(f"state in namespace {namespace}: configmap alertscaler-state: ")
    assert answer["seconds"] < 25
    assert driver.call("commit", changes=[["meta", "k", "again"]])["status"] < 0, "it must be opened again"
    driver.call("close")
    control_plane.ensure_running()
    driver.must("open", store="b", namespace=namespace, holder="pod-1")
    assert driver.must("dump", store="b")["records"]["meta"] == {"k": "before"}


def test_a_restart_of_the_api_server_is_waited_for(control_plane, make_driver, namespace):
    driver = make_driver()
    driver.must("open", namespace=namespace, holder="pod-1")
    control_plane.apiserver.pause()
    ticket = driver.send(op="commit", store="a", changes=[["meta", "k", "v"]])
    time.sleep(7)
    control_plane.apiserver.resume()
    answer = driver.wait(ticket)
    assert answer["status"] == 0, answer["error"]
    driver.must("open", store="b", namespace=namespace, holder="pod-2")
    assert driver.must("dump", store="b")["records"]["meta"] == {"k": "v"}


# Takeovers

def test_who_held_it_before_is_kept_out(make_driver, namespace):
    first, second = make_driver(), make_driver()
    first.must("open", namespace=namespace, holder="pod-1")
    first.must("commit", changes=[["target", "shop/a", "1"]])
    second.must("open", namespace=namespace, holder="pod-2")
    assert second.must("dump")["records"]["target"] == {"shop/a": "1"}
    for _ in range(2):
        answer = first.call("commit", changes=[["target", "shop/a", "2"]])
        assert answer["status"] == -116     # ESTALE
        if "failed before" not in answer["error"]:
            assert "another replica has taken over: pod-2" in answer["error"]
    second.must("commit", changes=[["target", "shop/b", "3"]])
    assert second.must("dump")["records"]["target"] == {"shop/a": "1", "shop/b": "3"}


@pytest.mark.seconds(600)
def test_a_takeover_before_any_request(proxy, make_driver, namespace):
    """While the first one commits and moves its journal into shards, a second one takes over before its k-th write and writes
    the same records: what the first one still sends must change nothing."""
    steps, wanted = make_steps(36, 9)
    for k in range(0, 36, 5):
        first, second = make_driver(), make_driver()
        first.must("open", namespace=namespace, holder=f"first-{k}")
        old = {kind: list(records) for kind, records in first.must("dump")["records"].items()}
        first.must("commit", changes=[[kind, key, None] for kind in KINDS for key in old[kind]] + [["meta", "k", str(k)]])
        count = 0

        def let_second_in(number, method, path):
            nonlocal count
            if method != "GET":
                count += 1
            if count == k + 1 and method != "GET":
                proxy.decide, proxy._lock = None, __import__("threading").Lock()
                second.must("open", namespace=namespace, holder=f"second-{k}")
                second.must("commit", changes=[["meta", "k", "second"]])

        proxy.decide = let_second_in
        done = 0
        for changes in steps:
            answer = first.call("commit", changes=changes)
            if answer["status"]:
                assert answer["status"] == -116, answer["error"]
                break
            done += 1
            first.call("tidy")
        else:
            assert first.call("commit", changes=[["meta", "k", "first"]])["status"] == -116
        for i in range(30):     # all segments and shards are written anew
            second.must("commit", changes=[["meta", f"m{i % 3}", "y" * 30000]])
            second.must("tidy")
        third = make_driver()
        third.must("open", namespace=namespace, holder="third")
        records = third.must("dump")["records"]
        assert records["meta"].pop("k") == "second"
        assert set(records.pop("meta")) == {"m0", "m1", "m2"}
        want = dict(wanted[done - 1]) if done else {kind: {} for kind in KINDS}
        want.pop("meta")
        assert records == want, f"before write {k}: {done} steps"
        for driver in (first, second, third):
            driver.stop()


@pytest.mark.seconds(600)
def test_killed_at_any_request(proxy, make_driver, namespace):
    """SIGKILL before or after the k-th write, also in the middle of a checkpoint: acknowledged is there, half is not."""
    steps, wanted = make_steps(120, 4)
    chance = random.Random(4)
    done = 0
    while done < len(steps):
        driver = make_driver()
        driver.must("open", namespace=namespace, holder="pod")
        records = driver.must("dump")["records"]
        empty = {kind: {} for kind in KINDS}
        candidates = [wanted[done - 1] if done else empty] + ([wanted[done]] if done < len(steps) else [])
        assert records in candidates, f"after {done} steps"
        if done < len(steps) and records == wanted[done]:
            done += 1       # durable, and nobody was told
        left = chance.randrange(1, 25)

        def kill(number, method, path):
            nonlocal left
            left -= method != "GET"
            if left == 0 and method != "GET":
                driver.kill()
                return chance.choice(["before", "after"])
            return None

        proxy.decide = kill
        try:
            while done < len(steps):
                driver.must("commit", changes=steps[done])
                done += 1
                driver.must("tidy")
        except (AssertionError, OSError):
            driver.wait_for_kill()
        proxy.decide = None
    last = make_driver()
    last.must("open", namespace=namespace, holder="last")
    assert last.must("dump")["records"] == wanted[-1]


# The daemon

def test_another_pod_goes_on_where_one_was_killed(control_plane, namespace, make_daemon, node_group, tmp_path):
    """State, lock and chain outlive a pod with its volume; the log files of both are one chain."""
    group = node_group(size=4)
    config = {
        "clusters": {"default": {"kubeconfig": str(control_plane.write_kubeconfig(f"daemon-{namespace}", token=ADMIN_TOKEN))}},
        "providers": {"mine": {"type": "http"}},
        "state": {"store": "kubernetes", "namespace": namespace,
                  "lease": {"duration": "12s", "renew_deadline": "9s", "retry_period": "500ms"}},
    }
    rules = {"targets": {"workers": {"node_group": {"provider": "mine", "url": group.url}, "max": 20,
                                    "cooldown": {"up": "10m", "down": "10m"}}},
             "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "workers",
                        "scale_up": {"by": 2}}]}
    pods, again = [], notification(alert({"alertname": "Busy"}))
    for number in range(3):
        directory = tmp_path / f"pod-{number % 2}"
        pod = make_daemon(rules, name=f"pod-{number}", directory=directory, env={"POD_NAME": f"pod-{number % 2}"},
                          config={**config, "action_log": {"path": str(directory / "actions.jsonl")}})
        pods.append(pod)
        pod.notify(notification(alert({"alertname": "Busy"})))
        eventually(lambda: group.size == 6)
        pod.wait_record("notification")
        if number == 0:
            pod.wait_record("action")
        pod.notify(notification(alert({"alertname": "Other", "number": str(number)})))
        repeats = len(pod.records("repeat"))
        for _ in range(3):
            pod.notify(again)
        eventually(lambda: len(pod.records("repeat")) > repeats, what="the last one at least is small")
        if number == 1:     # its first records are synced in its file and leave the state with the next commit
            time.sleep(4)
            pod.notify(notification(alert({"alertname": "Busy", "number": "2"})))
        if number < 2:
            pod.kill()
    time.sleep(1)
    assert group.size == 6, "the lock of the first pod holds for the others"
    pods[-1].stop()
    files = sorted(tmp_path.glob("pod-*/actions.jsonl*"))
    assert len(files) == 3, "pod-0 began a new file when it led again"
    verified = subprocess.run([pods[0].binary, "log", "verify", *files], capture_output=True, text=True, check=False)
    assert verified.returncode == 0 and verified.stdout.startswith("records 1 to "), verified.stdout + verified.stderr
    printed = subprocess.run([pods[0].binary, "log", "-o", "json", *files], capture_output=True, text=True, check=True)
    records = [json.loads(line) for line in printed.stdout.splitlines()]
    assert [record["seq"] for record in records] == list(range(1, len(records) + 1))
    assert [record["instance"] for record in records if record["kind"] == "start"] == ["pod-0", "pod-1", "pod-0"]
    assert len([record for record in records if record["kind"] == "action"]) == 1
    starts = [record["seq"] for record in records if record["kind"] == "start"]
    named = {record["id"]: record["seq"] for record in records if record["kind"] == "notification"}
    for repeat in (record for record in records if record["kind"] == "repeat"):
        assert not [start for start in starts if named[repeat["same_as"]] < start < repeat["seq"]], "details of a leader before"
    data = control_plane.admin.get(f"/api/v1/namespaces/{namespace}/configmaps/alertscaler-state")["data"]
    assert data["epoch"] == "3" and data["holder"] == "pod-0"


# Rights

def test_a_right_that_is_missing_is_said(control_plane, make_driver, namespace):
    role = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles/{namespace}-state"
    control_plane.admin.patch(role, {"rules": [{**RIGHTS[0], "verbs": ["get", "list"]}]})
    driver = make_driver()

    def refusal():
        answer = driver.call("open", namespace=namespace, holder="pod-1")
        if not answer["status"]:
            driver.call("close")
        return answer["status"] and answer

    answer = eventually(refusal, what="the API server knows of the right that is gone")
    assert answer["status"] == -13
    assert "get, list, create and update on configmaps are needed" in answer["error"]


def test_a_namespace_that_does_not_exist_is_said(control_plane, tmp_path):
    driver = StoreDriver(tmp_path, "--kubeconfig", control_plane.write_kubeconfig("admin-state", token=ADMIN_TOKEN))
    answer = driver.call("open", namespace="nowhere", holder="pod-1")
    assert answer["status"] < 0 and "create it, or set state.namespace" in answer["error"]
    driver.stop()


# Sizes and times

@pytest.mark.seconds(900)
def test_10000_targets_and_20000_incidents_fit(control_plane, make_driver, namespace, capsys):
    driver = make_driver()
    driver.must("open", namespace=namespace, holder="pod-1")
    filled = [driver.must("fill", timeout=600, kind=kind, count=count, size=size, each=500)["seconds"]
              for kind, count, size in (("target", 10000, 900), ("incident", 20000, 700))]
    commits = sorted(driver.must("commit", changes=[["target", f"target/default/apps/v1/Deployment/shop/{i * 97}", "{}" * 400],
                                                    ["outbox", f"o{i}", "{}\n" * 300], ["outbox", f"o{i - 1}", None]])["seconds"]
                     for i in range(100))
    driver.must("close")
    opened = driver.must("open", namespace=namespace, holder="pod-2", timeout=120)["seconds"]
    records = driver.must("dump", timeout=120)["records"]
    assert len(records["target"]) == 10000 and len(records["incident"]) == 20000
    items = objects(control_plane, namespace)
    sizes = [size_of(item) for item in items]
    assert max(sizes) <= 1 << 20, "a ConfigMap may have 1 MiB"
    assert opened < 30
    with capsys.disabled():
        print(f"\n10,000 targets and 20,000 incidents: {len(items)} ConfigMaps, {sum(sizes) / 1e6:.1f} MB, the largest "
              f"{max(sizes) / 1e3:.0f} kB; filled in {sum(filled):.1f} s by 500; opened in {opened:.2f} s; commit: median "
              f"{commits[50] * 1e3:.1f} ms, 99th {commits[98] * 1e3:.1f} ms")


# What waits for the API server holds nothing else up

CONFIG_MAPS = "/configmaps"


class Pod:
    """A daemon whose requests for the state, and no others, wait where they are told to."""

    def __init__(self, control_plane, namespace, proxy, make_daemon, group, tmp_path):
        path = tmp_path / "through-the-proxy"
        path.write_text(yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": proxy.url}}], "users": [{"name": "u", "user": {"token": ADMIN_TOKEN}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
        rules = {"targets": {"workers": {"node_group": {"provider": "mine", "url": group.url}, "max": 20}},
                 "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 2}}]}
        self.proxy, self.group, self.holds = proxy, group, None
        self.lease = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/alertscaler"
        self.admin = control_plane.admin
        proxy.decide = self.decide
        token = tmp_path / "admin.token"
        token.write_text("secret")
        self.config = {
            "clusters": {"default": {"kubeconfig": str(path)}}, "providers": {"mine": {"type": "http"}},
            "receiver": {"tokens": [{"name": "ada", "file": str(token), "permissions": ["notify", "read", "admin"]}]},
            "state": {"store": "kubernetes", "namespace": namespace,
                      "lease": {"duration": "5s", "renew_deadline": "3500ms", "retry_period": "500ms"}}}
        self.daemon = make_daemon(rules, start=False, flags=["--web.enable-admin-api"], config=self.config)
        self.daemon.headers = {"Authorization": "Bearer secret"}

    def decide(self, number, method, path):
        return self.holds(method, path) if self.holds else None

    def hold(self, method, seconds):
        """Requests of this kind about the state are answered so late."""
        self.proxy.delay = seconds
        self.holds = lambda m, path: "slow" if m == method and CONFIG_MAPS in path else None

    def quickly(self, path="/-/healthy"):
        began = time.monotonic()
        answer = self.daemon.get(path)
        assert not self.holds or time.monotonic() - began < 0.6 * self.proxy.delay, "it answers meanwhile, not after the API server"
        return answer

    def when(self, message):
        """Seconds: when it said so first."""
        return moment(re.search(rf'ts=(\S+) \S+ msg="?{message}', self.daemon.process.log_text())[1])

    def holder(self):
        answer = self.admin.request("GET", self.lease)
        return answer.json["spec"].get("holderIdentity") if answer.ok else None


@pytest.fixture
def pod(control_plane, namespace, proxy, make_daemon, node_group, tmp_path):
    return Pod(control_plane, namespace, proxy, make_daemon, node_group(size=4), tmp_path)


def test_a_state_that_cannot_be_opened_ends_it_by_the_right_name(pod):
    """By then it listens and leads, and has said so: it is no start that fails any more."""
    pod.daemon.start()
    pod.daemon.stop()
    path = pod.lease.replace("/apis/coordination.k8s.io/v1", "/api/v1").replace("/leases/alertscaler", "/configmaps/alertscaler-state")
    head = pod.admin.get(path)
    for part in ("data", "binaryData"):
        head[part] = dict.fromkeys(head.get(part, {}), "Z2FyYmFnZQ==")
    assert pod.admin.request("PUT", path, head).ok
    before = len(pod.daemon.process.log_text())
    pod.daemon.process.start()
    eventually(lambda: not pod.daemon.process.running, 30, what="it ends")
    said = pod.daemon.process.log_text()[before:]
    assert pod.daemon.process.popen.returncode == 1 and "cannot start" not in said, said
    assert said.index("msg=listening") < said.index("msg=leading") < said.index('"stopping: the state cannot be opened"'), said


def test_a_state_that_takes_longer_than_a_term_is_opened(pod):
    """The lease is renewed meanwhile, and health is answered: else nobody could ever lead."""
    term = 8
    pod.config["state"]["lease"] |= {"duration": f"{term + 4}s", "renew_deadline": f"{term}s"}
    pod.daemon.write_config(pod.config)
    tries = iter(["slow", "slow"])      # it waits 5 s for an answer, and asks again
    pod.proxy.delay = 6
    pod.holds = lambda method, path: next(tries, None) if method == "GET" and CONFIG_MAPS in path else None
    pod.daemon.process.start()
    opening = "not ready: the state is being opened\n"
    eventually(lambda: pod.quickly("/-/ready").text == opening, what="it leads")
    while pod.quickly("/-/ready").text == opening:
        assert pod.quickly().ok
        assert pod.quickly("/metrics").ok
        time.sleep(0.1)
    eventually(lambda: pod.quickly("/-/ready").ok, 30, what="it is open")
    assert pod.when("ready to receive") - pod.when("leading") > term
    assert "not leading any more" not in pod.daemon.process.log_text()
    pod.holds = None
    pod.daemon.notify(notification(alert({"alertname": "Busy"})))


def test_sigterm_while_the_state_is_opened(pod):
    pod.hold("GET", 30)
    pod.daemon.process.start()
    eventually(lambda: "being opened" in pod.quickly("/-/ready").text, what="it is at it")
    began = time.monotonic()
    pod.daemon.stop()
    assert time.monotonic() - began < 15, "it does not wait for an answer, for which it would try for 20 s"
    assert not pod.holder(), "the lease is given back"


def test_a_term_that_ends_in_the_middle_of_a_commit(pod):
    """Whatever waits for the disk, notifications and operators' orders, is answered when the term ends, not when the API server
    answers; and it leads again afterwards."""
    pod.daemon.start()
    answers = []

    def send(path, body):
        began = time.monotonic()
        answers.append((pod.daemon.post(path, body, timeout=30).status, time.monotonic() - began))

    pod.proxy.delay = 20
    pod.holds = lambda method, path: ("slow" if CONFIG_MAPS in path else 503 if "/leases/alertscaler" in path else None)
    threads = [threading.Thread(target=send, args=arguments) for arguments in (
        ("/webhook", notification(alert({"alertname": "Other"}))),
        ("/api/v1/pause", {"reason": "test"}),
        ("/api/v1/targets/workers/unlock", {"reason": "test"}))]
    for thread in threads:
        thread.start()
        time.sleep(0.05)
    for thread in threads:
        thread.join()
    assert [status for status, _ in answers] == [503] * 3, answers
    assert max(seconds for _, seconds in answers) < 15, answers     # the API server's would come after 20
    assert pod.quickly().ok
    assert pod.quickly("/-/ready").status == 503
    pod.holds = None
    eventually(lambda: pod.quickly("/-/ready").ok, 20, what="it leads again")


def test_sigterm_in_an_outage(pod):
    """What cannot be written within half a renew_deadline is left to the next one."""
    pod.daemon.start()
    pod.proxy.delay = 30
    pod.holds = lambda method, path: "slow" if CONFIG_MAPS in path else None
    began = time.monotonic()
    assert pod.daemon.process.stop(PATIENCE) == 1
    assert time.monotonic() - began < 15, "it does not try for 20 s"
    assert "stop not recorded" in pod.daemon.process.log_text()
    assert not pod.holder(), "the lease is given back"


def test_a_leader_whose_state_was_taken_gives_the_lead_up(pod, make_driver, namespace):
    """Nothing is acknowledged on a state that somebody else has opened; whoever has the lease reads it anew and goes on."""
    pod.daemon.start()
    other = make_driver()
    other.must("open", namespace=namespace, holder="other")
    other.must("commit", changes=[["meta", "k", "of the other"]])
    assert pod.daemon.post("/webhook", notification(alert({"alertname": "Busy"})), timeout=30).status == 503
    eventually(lambda: "another replica has taken the state over" in pod.daemon.process.log_text(), what="it says so")
    eventually(lambda: pod.quickly("/-/ready").ok, 30, what="it leads again")
    assert other.call("commit", changes=[["meta", "k", "late"]])["status"] == -116, "the other one is out now"
    pod.daemon.notify(notification(alert({"alertname": "Busy"})))
    eventually(lambda: pod.group.size == 6, what="sent again, it is handled")
    pod.daemon.wait_record("action")
    assert len(pod.daemon.records("action")) == 1


def test_what_was_written_is_not_answered_after_the_term(pod):
    """A leader stopped in the middle of a commit, for longer than its lease: the commit is done when it wakes up, and still
    nothing of that term is answered or acted on. Sent again, the alert is handled once."""
    pod.daemon.start()
    pod.hold("PUT", 4)
    statuses = []
    sender = threading.Thread(target=lambda: statuses.append(
        pod.daemon.post("/webhook", notification(alert({"alertname": "Busy"})), timeout=30).status))
    sender.start()
    eventually(lambda: "slow" in [fault for _, _, fault in pod.proxy.seen], interval=0.01, what="the commit is on its way")
    pod.daemon.process.pause()
    time.sleep(6)       # a lease is 5 s
    assert pod.group.size == 4
    pod.holds = None
    pod.daemon.process.resume()
    sender.join()
    assert statuses == [503]
    said = pod.daemon.process.log_text()
    assert "the term is over before it was renewed" in said or "not leading any more" in said
    eventually(lambda: pod.quickly("/-/ready").ok, 30, what="it leads again")
    pod.daemon.notify(notification(alert({"alertname": "Busy"})))
    eventually(lambda: pod.group.size == 6, what="it is handled")
    pod.daemon.wait_record("action")
    assert len(pod.daemon.records("action")) == 1
