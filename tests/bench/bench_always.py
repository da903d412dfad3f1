#!/usr/bin/python3
"""Measures many rules without an alert, against a real Prometheus and API server.

    ALERTSCALER_BIN=build/release/src/alertscaler tests/bench/bench_always.py [RULES]

1,000 Deployments with an `always` rule each, evaluated every 15 s; a fifth of the rules reads one sample for each of its
4 pods. The values move by up to 5 %, within the tolerance. Three runs of the daemon:

- the state in SQLite: processor time, memory, requests to the API server, bytes of the action log;
- the state in Kubernetes: writes a second;
- the trace: how late evaluations begin.
"""
import datetime
import os
import pathlib
import random
import re
import sys
import tempfile
import time

from daemon import cpu_seconds
from figures import report

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from harness import prometheus as prometheus_peer  # noqa: E402
from harness.control_plane import ADMIN_TOKEN, ControlPlane, missing  # noqa: E402
from harness.daemon import Daemon  # noqa: E402
from harness.exporter import Exporter  # noqa: E402
from harness.prometheus import Prometheus  # noqa: E402
from harness.wait import eventually  # noqa: E402

RULES = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
PER_POD = RULES // 5
PODS = 4
EVERY = 15
SECONDS = int(os.environ.get("BENCH_SECONDS", "60"))
NAMESPACE = "bench"


def deployment(name):
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "example.com/app:1"}]}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"replicas": PODS, "selector": {"matchLabels": labels}, "template": pod}}


def pod_of(name, number):
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": f"{name}-{number}", "namespace": NAMESPACE, "labels": {"app": name}},
            "spec": {"containers": [{"name": "app", "image": "example.com/app:1"}]}}


def make_cluster(plane):
    admin = plane.admin
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {"status": {"phase": "Running", "startTime": now,
                        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": now}]}}
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    for i in range(RULES):
        admin.create(deployment(f"app-{i}"))
        admin.patch(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/app-{i}/status",
                    {"status": {"replicas": PODS, "readyReplicas": PODS, "availableReplicas": PODS, "observedGeneration": 1}})
        for number in range(PODS if i < PER_POD else 0):
            admin.create(pod_of(f"app-{i}", number))
            admin.patch(f"/api/v1/namespaces/{NAMESPACE}/pods/app-{i}-{number}/status", ready)


def set_values(exporter):
    with exporter.change():
        for i in range(RULES):
            if i >= PER_POD:
                exporter.set("load", PODS * 100 * random.uniform(0.95, 1.05), app=f"app-{i}")
            for number in range(PODS if i < PER_POD else 0):
                exporter.set("pod_load", 100 * random.uniform(0.95, 1.05), app=f"app-{i}", pod=f"app-{i}-{number}")


def scrape_slowly(prometheus):
    """An exporter in Python does not answer each second while everything else runs, too."""
    file = prometheus.directory / "prometheus.yml"
    file.write_text(re.sub(r"(scrape_interval|scrape_timeout): 1s", r"\1: 5s", file.read_text()))


def make_rules():
    targets, rules = {}, []
    for i in range(RULES):
        name = f"app-{i}"
        targets[name] = {"kubernetes": {"kind": "Deployment", "namespace": NAMESPACE, "name": name}, "min": 1, "max": 20,
                         "enforce_bounds": True, "cooldown": {"up": "0s", "down": "0s"}, "behavior": {}}
        track = {"average_value": 100, "query": f'sum(load{{app="{name}"}})'}
        if i < PER_POD:
            track = {"average_value": 100, "query": f'sum by (pod) (pod_load{{app="{name}"}})', "per_pod": True}
        rules.append({"name": name, "always": True, "target": name, "every": f"{EVERY}s", "track": track})
    return {"targets": targets, "rules": rules}


def count_requests(plane, *labels):
    text = plane.admin.request("GET", "/metrics").text
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
               if line.startswith("apiserver_request_total{") and all(label in line for label in labels))


def read_kib(pid, name):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"^{name}:\s+(\d+) kB", status, re.M)[1])


def watch(daemon, exporter, seconds):
    """Lets the daemon run, and changes the values meanwhile."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        set_values(exporter)
        time.sleep(min(5, max(0, end - time.monotonic())))
    return daemon.process.pid


def read_skipped(daemon):
    return sum(float(line.rsplit(" ", 1)[1]) for line in daemon.get("/metrics").text.splitlines()
               if line.startswith("alertscaler_evaluations_skipped_total "))


def bench_sqlite(plane, exporter, daemon):
    pid = watch(daemon, exporter, 2 * EVERY)
    cpu, log, requests = cpu_seconds(pid), daemon.log_file.stat().st_size, count_requests(plane)
    gets, lists = count_requests(plane, 'subresource="scale"', 'verb="GET"'), count_requests(plane, 'resource="pods"', 'verb="LIST"')
    watch(daemon, exporter, SECONDS)
    evaluations = RULES / EVERY * SECONDS
    report("processor time of a core", 100 * (cpu_seconds(pid) - cpu) / SECONDS, "%", "below 5")
    report("memory (VmRSS)", read_kib(pid, "VmRSS") / 1024, "MiB", "below 40")
    report("memory at most (VmHWM)", read_kib(pid, "VmHWM") / 1024, "MiB", "below 40")
    report("requests to the API server", (count_requests(plane) - requests) / SECONDS, "requests/s")
    report("  of these reads of a scale",
           (count_requests(plane, 'subresource="scale"', 'verb="GET"') - gets) / SECONDS, "requests/s")
    report("  of these lists of pods", (count_requests(plane, 'resource="pods"', 'verb="LIST"') - lists) / SECONDS, "requests/s")
    report("bytes of the action log", (daemon.log_file.stat().st_size - log) * 3600 / SECONDS, "bytes/h")
    report("processor time of an evaluation", 1e6 * (cpu_seconds(pid) - cpu) / evaluations, "us")
    report("evaluations skipped", read_skipped(daemon), "", "0")


def bench_kubernetes(plane, exporter, daemon):
    watch(daemon, exporter, 2 * EVERY)
    labels = 'resource="configmaps"'
    before = sum(count_requests(plane, labels, f'verb="{verb}"') for verb in ("POST", "PUT", "PATCH", "DELETE"))
    watch(daemon, exporter, SECONDS)
    after = sum(count_requests(plane, labels, f'verb="{verb}"') for verb in ("POST", "PUT", "PATCH", "DELETE"))
    report("writes of the state in Kubernetes", (after - before) / SECONDS, "writes/s", "at most 2")


def bench_lateness(exporter, daemon):
    """Evaluations of a target begin `every` apart; what is longer is late."""
    watch(daemon, exporter, 5 * EVERY)
    begun, late = {}, []
    pattern = re.compile(r"ts=(\S+)Z .*msg=effect name=observe target=(\S+)")
    for line in daemon.process.log_text().splitlines():
        found = pattern.search(line)
        if not found:
            continue
        at = datetime.datetime.fromisoformat(found[1]).timestamp()
        if found[2] in begun:
            late.append(at - begun[found[2]] - EVERY)
        begun[found[2]] = at
    report("evaluations in the trace", len(late), "")
    report("the latest evaluation", max(late), "s", "at most 1")


def main():
    reason = missing() or prometheus_peer.missing()
    if reason:
        raise SystemExit(reason)
    with tempfile.TemporaryDirectory(prefix="alertscaler-bench-") as folder:
        plane, exporter = ControlPlane(folder), Exporter()
        set_values(exporter)
        prometheus = Prometheus(f"{folder}/prometheus", targets=[exporter.address])
        scrape_slowly(prometheus)
        daemon = None
        try:
            plane.start()
            prometheus.start()
            make_cluster(plane)
            eventually(lambda: len(prometheus.query("load")) == RULES - PER_POD)
            config = {"clusters": {"default": {"kubeconfig": str(plane.write_kubeconfig("bench", token=ADMIN_TOKEN))}},
                      "prometheus": {"url": prometheus.url}}
            in_kubernetes = {"state": {"store": "kubernetes", "namespace": NAMESPACE}}
            for name, extra, level, bench in (("sqlite", {}, "info", lambda: bench_sqlite(plane, exporter, daemon)),
                                              ("kubernetes", in_kubernetes, "info", lambda: bench_kubernetes(plane, exporter, daemon)),
                                              ("trace", {}, "trace", lambda: bench_lateness(exporter, daemon))):
                daemon = Daemon(f"{folder}/{name}", make_rules(), config | extra, log_level=level)
                daemon.start()
                bench()
                daemon.stop()
                daemon = None
        finally:
            if daemon:
                daemon.kill()
            prometheus.stop()
            plane.stop()
            exporter.stop()


if __name__ == "__main__":
    main()
