"""Three replicas on a real API server, two real Alertmanagers that form a cluster, and a leader that is killed, stopped in the middle,
and terminated, while notifications keep arriving.

What is held: every incident is handled exactly once (each workload grows by one step, whoever led), nothing is answered 200 that is
lost, who was stopped does nothing when it goes on, the records of all replicas' action logs are one chain, and the time
without a leader is below the lease's duration and two seconds.

ALERTSCALER_LEASE=15,10,2 runs it with the default times instead of short ones (some minutes), ALERTSCALER_FAILOVERS=N that often.
"""
import collections
import datetime
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

from harness import alertmanager as alertmanagers
from harness.alertmanager import start_cluster
from harness.daemon import Daemon, find_binary
from harness.http import request
from harness.kube import path_of
from harness.notification import alert, notification
from harness.wait import eventually, steadily
from test_targets import install, make_workload

REPLICAS = 3
DURATION, DEADLINE, RETRY = (float(t) for t in os.environ.get("ALERTSCALER_LEASE", "3,2,0.5").split(","))
FAILOVERS = int(os.environ.get("ALERTSCALER_FAILOVERS", "6"))
CALM = 15, 10, 0.5
MARGIN = 10         # what a fail-over may take beyond the lease's duration, on a machine that is busy with other tests
START, STEP = 2, 3
LEASES = "/apis/coordination.k8s.io/v1/namespaces/alertscaler/leases"
LEASE = f"{LEASES}/alertscaler"
RULES = {
    "targets": {"workload": {
        "kubernetes": {"kind": "Deployment", "namespace": "{{ .Labels.namespace }}", "name": "{{ .Labels.name }}"},
        "allow": {"namespaces": ["*"], "names": ["*"]}, "min": 1, "max": 50, "cooldown": {"up": "1h", "down": "1h"}},
        "short": {
        "kubernetes": {"kind": "Deployment", "namespace": "{{ .Labels.namespace }}", "name": "{{ .Labels.name }}"},
        "allow": {"namespaces": ["*"], "names": ["short"]}, "min": 1, "max": 50, "cooldown": {"up": "10s", "down": "10s"}}},
    "rules": [{"name": "grow", "match": ['alertname="Grow"'], "target": "workload", "once": True, "scale_up": {"by": STEP}},
              {"name": "short", "match": ['alertname="Short"'], "target": "short", "once": True, "scale_up": {"by": STEP}}],
}


class Front:
    """Plays the Service: a TCP address that leads to the one replica that is ready, as kube-proxy would do it."""

    def __init__(self, replicas):
        self.replicas = replicas
        self.chosen = None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.ends = False
        self.threads = [threading.Thread(target=target, daemon=True) for target in (self._probe, self._accept)]
        for thread in self.threads:
            thread.start()

    def _probe(self):
        while not self.ends:
            ready = None
            for replica in self.replicas:
                try:
                    if request("GET", replica.url + "/-/ready", timeout=0.5).ok:
                        ready = replica
                except OSError:
                    pass
            self.chosen = ready
            time.sleep(0.1)

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client, self.chosen), daemon=True).start()

    def _serve(self, client, replica):
        with client:
            if not replica:
                return      # nobody behind the Service: the connection ends
            host, port = replica.address.split(":")
            try:
                with socket.create_connection((host, int(port)), timeout=2) as server:
                    back = threading.Thread(target=self._copy, args=(server, client), daemon=True)
                    back.start()
                    self._copy(client, server)
                    back.join()
            except OSError:
                pass

    @staticmethod
    def _copy(source, sink):
        source.settimeout(10)
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        for end, how in ((source, socket.SHUT_RD), (sink, socket.SHUT_WR)):
            try:
                end.shutdown(how)
            except OSError:
                pass

    def stop(self):
        self.ends = True
        self.listener.close()


class Cluster:
    """The replicas."""

    def __init__(self, plane, directory, namespace, lease):
        self.plane, self.namespace = plane, namespace
        self.duration, self.deadline, self.retry = lease
        install(plane, "namespace.yaml", "serviceaccount.yaml", "role.yaml", "role-cluster-wide.yaml", "../kubernetes-ha/role.yaml")
        for path in (LEASES, "/api/v1/namespaces/alertscaler/configmaps"):
            for item in plane.admin.get(path)["items"]:
                if item["metadata"].get("labels", {}).get("app.kubernetes.io/managed-by") == "alertscaler":
                    plane.admin.delete(f"{path}/{item['metadata']['name']}")
        self.replicas = [self._make(directory, n) for n in range(REPLICAS)]
        self.gaps = []      # seconds without a leader: (what was done, how long)

    def _make(self, directory, n):
        kubeconfig = self.plane.write_kubeconfig(f"replica-{n}", token=self.plane.account_token("alertscaler", "alertscaler"))
        name = f"alertscaler-{n}"
        return Daemon(directory / name, RULES, {
            "action_log": {"path": str(directory / name / "actions.jsonl"), "keep": 1},
            "clusters": {"default": {"kubeconfig": str(kubeconfig)}},
            "state": {"store": "kubernetes", "namespace": "alertscaler", "lease": {
                "duration": f"{self.duration:g}s", "renew_deadline": f"{self.deadline:g}s", "retry_period": f"{int(self.retry * 1000)}ms"}},
        }, env={"POD_NAME": name}, name=name, log_level="info")

    def start(self):
        for replica in self.replicas:
            replica.process.start()
        eventually(lambda: all(replica.get("/-/healthy").ok for replica in self.replicas), what="all have started")
        self.wait_leader()
        return self

    @staticmethod
    def is_ready(replica, timeout=1):
        try:
            return request("GET", replica.url + "/-/ready", timeout=timeout).ok
        except OSError:
            return False

    def find_leader(self, among=None):
        ready = [r for r in (among or self.replicas) if r.process.running and self.is_ready(r)]
        if len(ready) > 1:      # they are asked one after the other, and the lead may have changed in between
            ready = [r for r in ready if self.is_ready(r)]
        assert len(ready) <= 1, f"{[r.process.name for r in ready]} are ready"
        return ready[0] if ready else None

    def wait_leader(self):
        return eventually(self.find_leader, what="a leader")

    def wait_next(self, done, former, began):
        """The one that leads after `former`; how long there was none is kept."""
        others = [r for r in self.replicas if r is not former]
        leader = None
        while not leader:
            assert time.monotonic() - began < self.duration + MARGIN + 30, "nobody leads"
            leader = self.find_leader(others)
            time.sleep(0.02)
        found = time.monotonic()
        # When it was seen, on a busy machine, is later than when it was so.
        since = [moment(t) - (time.time() - time.monotonic() + began)
                 for t in re.findall(r'ts=(\S+) \S+ msg="ready to receive notifications"', leader.process.log_text())]
        gap = min([found - began, *(seconds for seconds in since if seconds > 0)])
        self.gaps.append((done, gap))
        print(f"{done}: {former.process.name} -> {leader.process.name}: {gap:.2f} s without a leader")
        return leader

    def records(self):
        """Of all replicas, by number; the same line may be in two files."""
        found = {}
        for replica in self.replicas:
            for file in sorted(replica.directory.glob("actions.jsonl*")):
                for line in file.read_bytes().splitlines():
                    record = json.loads(line)
                    assert found.setdefault(record["seq"], line) == line, f"two records have the number {record['seq']}"
        return [found[seq] for seq in sorted(found)]

    def stop(self):
        for replica in self.replicas:
            if replica.process.running:
                replica.process.resume()
                replica.stop()


def check_chain(lines, directory):
    """All of them as one file: numbers without a gap, each record with the hash of the one before it."""
    file = directory / "together.jsonl"
    file.write_bytes(b"".join(line + b"\n" for line in lines))
    assert json.loads(lines[0])["seq"] == 1
    done = subprocess.run([find_binary(), "log", "verify", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done


@pytest.fixture
def make_cluster(control_plane, tmp_path, namespace):
    if alertmanagers.missing():
        pytest.skip(alertmanagers.missing())
    made = []

    def make(lease):
        made.append(Cluster(control_plane, tmp_path, namespace, lease))
        return made[-1].start()

    yield make
    for replica in (replica for cluster in made for replica in cluster.replicas):
        if replica.process.running:
            replica.process.resume()
            replica.process.kill()


@pytest.fixture
def cluster(make_cluster):
    return make_cluster((DURATION, DEADLINE, RETRY))


@pytest.fixture
def calm_cluster(make_cluster):
    """One whose leader goes on leading on a busy machine: for tests of other things than how fast the next one is."""
    return make_cluster(CALM)


class Load:
    """Workloads, and for each one an alert that fires once, at a steady pace."""

    def __init__(self, cluster, members):
        self.cluster, self.members = cluster, members
        self.names, self.ends = [], False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.problem = None

    def start(self):
        self.thread.start()
        return self

    def _run(self):
        try:
            for n in itertools.count():
                if self.ends:
                    return
                name = f"load-{n}"
                self.cluster.plane.admin.create(make_workload("Deployment", self.cluster.namespace, name, START))
                self.names.append(name)
                for member in self.members:     # as Prometheus does: to all of them
                    member.fire(seconds=3600, alertname="Grow", namespace=self.cluster.namespace, name=name)
                time.sleep(0.5)
        except Exception as problem:    # pylint: disable=broad-except
            self.problem = problem

    def finish(self):
        self.ends = True
        self.thread.join()
        assert self.problem is None, self.problem

    def size(self, name):
        return self.cluster.plane.admin.replicas(path_of("apps/v1", "Deployment", self.cluster.namespace, name))

    def missing(self):
        return [name for name in self.names if self.size(name) == START]


def kill(cluster, leader):
    began = time.monotonic()
    leader.kill()
    following = cluster.wait_next("SIGKILL", leader, began)
    leader.process.start()
    return following


def terminate(cluster, leader):
    began = time.monotonic()
    leader.process.signal(signal.SIGTERM)
    following = cluster.wait_next("SIGTERM", leader, began)
    eventually(lambda: not leader.process.running, what="the former leader ends")
    leader.process.start()
    return following


def pause(cluster, leader):
    """It is stopped for longer than its lease, and goes on: it must find that it does not lead, and do nothing."""
    began = time.monotonic()
    leader.process.pause()
    following = cluster.wait_next("SIGSTOP", leader, began)
    resumed = time.time()
    leader.process.resume()
    eventually(lambda: "not the leader" in leader.get("/-/ready").text, what="the former leader follows")
    # What it had committed before may still be written into its log; and on a busy machine it may lead again already.
    steadily(lambda: cluster.is_ready(leader) or not [r for r in leader.records("action") if moment(r["time"]) >= resumed], 1,
             what="it does not act")
    return following


@pytest.mark.seconds(1800)
def test_every_incident_is_handled_once_whoever_leads(cluster, started, tmp_path):
    front = started(Front(cluster.replicas))
    members = [started(member) for member in start_cluster(tmp_path / "cluster", members=2, webhook=front.url + "/webhook")]
    load = Load(cluster, members).start()
    eventually(lambda: len(load.names) >= 3, what="some load")
    leader = cluster.wait_leader()
    for fail in itertools.islice(itertools.cycle([kill, pause, terminate]), FAILOVERS):
        leader = fail(cluster, leader)
        time.sleep(1)
    load.finish()
    # Alertmanager tries again for as long as it takes, at growing distances
    eventually(lambda: not load.missing(), 120, what="every incident is handled", interval=0.5)
    steadily(lambda: all(load.size(name) == START + STEP for name in load.names), 3, what="each one once")
    cluster.stop()

    lines = cluster.records()
    check_chain(lines, tmp_path)
    records = [json.loads(line) for line in lines]
    applied = collections.Counter(r["target"] for r in records if r["kind"] == "action" and r["outcome"] == "applied")
    assert set(applied.values()) == {1} and len(applied) == len(load.names)
    leaders = {r["instance"] for r in records if r["kind"] == "action"}
    by_kind = collections.defaultdict(list)
    for done, gap in cluster.gaps:
        by_kind[done].append(gap)
    for done, gaps in by_kind.items():
        print(f"{done}: {len(gaps)} times, longest {max(gaps):.2f} s without a leader, limit {DURATION + MARGIN:.2f} s")
    print(f"{len(load.names)} incidents, {len(lines)} records, acted: {', '.join(sorted(leaders))}")
    assert len(leaders) >= 2, "they took turns"
    assert max(gap for _, gap in cluster.gaps) < DURATION + MARGIN
    assert not any("lease not given back" in replica.process.log_text() for replica in cluster.replicas)


@pytest.mark.seconds(600)
def test_ten_fail_overs_lose_no_record(cluster, tmp_path):
    """Each return of a replica as leader begins a file of a few kB. `keep` is 1 for each replica: these files do not use it up."""
    leader = cluster.wait_leader()
    for _ in range(10):
        leader = terminate(cluster, leader)
    for replica in cluster.replicas:    # SIGTERM ends a process that has only begun to start
        eventually(lambda: replica.get("/-/healthy").ok, 60, what=f"{replica.process.name} runs")
    cluster.stop()
    lines = cluster.records()
    check_chain(lines, tmp_path)
    files = [file for replica in cluster.replicas for file in replica.directory.glob("actions.jsonl*")]
    assert len(files) > 2 * REPLICAS, "more than `keep` allows for full files"
    run = {"capture_output": True, "text": True, "check": True}
    assert f"records 1 to {len(lines)} are whole" in subprocess.run([find_binary(), "log", "verify", *files], **run).stdout
    printed = subprocess.run([find_binary(), "log", "--output=json", *files], **run).stdout.splitlines()
    assert [json.loads(line)["seq"] for line in printed] == list(range(1, len(lines) + 1))


def test_followers_say_who_leads(calm_cluster):
    cluster = calm_cluster
    leader = cluster.wait_leader()
    follower = next(r for r in cluster.replicas if r is not leader)
    holder = cluster.plane.admin.get(LEASE)["spec"]["holderIdentity"]
    assert holder.startswith(f"{leader.process.name}_")
    assert follower.get("/-/healthy").ok

    def ask():
        answer = follower.get("/-/ready")
        return answer if "nobody" not in answer.text else None

    ready = eventually(ask, what="the follower has seen who leads")
    assert (ready.status, ready.text) == (503, f"not ready: not the leader; {holder} leads\n")
    answer = follower.post("/webhook", {})
    assert answer.status == 503 and f"{holder} leads" in answer.text
    assert "Retry-After" in answer.headers
    assert follower.metrics().value("alertscaler_leader") == 0
    assert leader.metrics().value("alertscaler_leader") == 1
    status = follower.get("/api/v1/status").json["data"]
    assert (status["leader"], status["leadership"]["holder"]) == (False, holder)
    assert leader.get("/api/v1/status").json["data"]["leadership"]["identity"] == holder
    targets = follower.get("/api/v1/targets")
    assert targets.status == 503 and holder in targets.text
    lease = cluster.plane.kubectl("get", "lease", "-n", "alertscaler", "alertscaler").stdout
    assert holder in lease


def test_a_follower_reloads(calm_cluster):
    cluster = calm_cluster
    leader = cluster.wait_leader()
    follower = next(r for r in cluster.replicas if r is not leader)
    before = follower.get("/api/v1/status").json["data"]["rules_digest"]
    follower.write_rules({**RULES, "rules": [{**RULES["rules"][0], "name": "grow-differently"}]})
    follower.reload()
    eventually(lambda: follower.get("/api/v1/status").json["data"]["rules_digest"] != before, what="the new rules")
    assert "grow-differently" in follower.get("/api/v1/rules").text
    follower.process.signal(signal.SIGUSR1)
    assert follower.get("/-/healthy").ok


def test_an_annotation_on_the_lease_stops_all_actions(calm_cluster):
    cluster = calm_cluster
    leader, plane = cluster.wait_leader(), cluster.plane
    # as docs/operations.md finds the leader's pod
    holder = plane.kubectl("-n", "alertscaler", "get", "lease", "alertscaler", "-o", "jsonpath={.spec.holderIdentity}").stdout
    assert holder.split("_")[0] == leader.process.name
    plane.kubectl("-n", "alertscaler", "annotate", "lease", "alertscaler", "alertscaler.io/paused=freeze for the audit")
    eventually(lambda: leader.metrics().value("alertscaler_paused") == 1, what="the leader has seen it")
    plane.admin.create(make_workload("Deployment", cluster.namespace, "frozen", START))
    leader.notify(notification(alert({"alertname": "Grow", "namespace": cluster.namespace, "name": "frozen"})))
    path = path_of("apps/v1", "Deployment", cluster.namespace, "frozen")
    steadily(lambda: plane.admin.replicas(path) == START, 2, what="nothing is scaled")
    # it holds for the next leader too
    began = time.monotonic()
    leader.kill()
    leader = cluster.wait_next("SIGKILL", leader, began)
    eventually(lambda: leader.metrics().value("alertscaler_paused") == 1, what="the next leader has seen it")
    steadily(lambda: plane.admin.replicas(path) == START, 2, what="nothing is scaled")
    plane.kubectl("-n", "alertscaler", "annotate", "lease", "alertscaler", "alertscaler.io/paused-")
    eventually(lambda: plane.admin.replicas(path) == START + STEP, what="it goes on")


def test_a_leader_that_cannot_write_gives_the_lead_up(calm_cluster):
    """Its log cannot be opened any more: for as long as a lease lasts it tries, then another one leads; when that is gone and the
    log is there again, it leads again."""
    cluster = calm_cluster
    leader = cluster.wait_leader()
    leader.log_file.rename(leader.log_file.with_suffix(".kept"))
    leader.log_file.mkdir()
    leader.process.signal(signal.SIGUSR1)       # opens it again
    began = time.monotonic()
    following = cluster.wait_next("broken log", leader, began)
    assert cluster.gaps[-1][1] < cluster.duration + MARGIN + 3
    assert cluster.plane.admin.get(LEASE)["spec"]["holderIdentity"].startswith(f"{following.process.name}_")
    eventually(lambda: "gave the lead up, as the state or the action log cannot be written" in leader.process.log_text(),
               what="it says why")
    eventually(lambda: "not the leader" in leader.get("/-/ready").text, what="it follows")
    assert leader.get("/-/healthy").ok
    lock_a_workload(cluster, following, "elsewhere")
    leader.log_file.rmdir()
    leader.log_file.with_suffix(".kept").rename(leader.log_file)
    for other in cluster.replicas:
        if other is not leader:
            other.stop()
    eventually(lambda: cluster.find_leader() is leader, what="it leads again")
    lock_a_workload(cluster, leader, "again")


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def lock_a_workload(cluster, leader, name, alertname="Grow"):
    cluster.plane.admin.create(make_workload("Deployment", cluster.namespace, name, START))
    leader.notify(notification(alert({"alertname": alertname, "namespace": cluster.namespace, "name": name})))
    target = f"kubernetes/default/apps/v1/Deployment/{cluster.namespace}/{name}"
    return target, leader.wait_record("action", target=target, outcome="applied")


def test_without_an_api_server_nobody_leads_and_afterwards_one_does(cluster):
    leader = cluster.wait_leader()
    cluster.plane.apiserver.pause()
    eventually(lambda: not cluster.is_ready(leader, 5), DEADLINE + 15, what="the term ends")
    cluster.plane.apiserver.resume()
    eventually(cluster.find_leader, what="somebody leads again")
