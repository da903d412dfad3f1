#!/usr/bin/python3
"""Webhooks while a large cluster is listed: 5,000 nodes and 100,000 pods stream in from bench_cluster_watch's server.

    tests/bench/bench_facts.py BUILD-DIRECTORY

BUILD-DIRECTORY is a release build. One client posts a notification that is known, two milliseconds after each answer; first
without the lists, for comparison, then until everything is listed. alertscaler is on core 0, the rest on core 1.
"""
import json
import pathlib
import socket
import subprocess
import sys
import time
import urllib.request

from daemon import GUARDED, Daemon, alert, notification, notification_of
from figures import report

PODS = 100000
PATIENCE = 120


class Cluster(Daemon):
    """With a rule about all nodes of the cluster, beside the others."""

    def __init__(self, binary, server):
        self.server = server
        super().__init__(binary)

    def start(self, wrapper, options=()):
        (self.folder / "kubeconfig").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "x", "users": [{"name": "x", "user": {}}],
            "clusters": [{"name": "x", "cluster": {"server": self.server}}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}]}))
        (self.folder / "rules-nodes.yaml").write_text(json.dumps({
            "targets": {"dns": {"kubernetes": {"kind": "Deployment", "namespace": "kube-system", "name": "dns"}, "max": 100}},
            "rules": [{"name": "nodes", "match": ['alertname="Nodes"'], "target": "dns", "guard": "none",
                       "track": {"average_value": 100, "nodes": "count"}}]}))
        config = json.loads((self.folder / "alertscaler.yaml").read_text())
        config["clusters"] = {"default": {"kubeconfig": "kubeconfig"}}
        (self.folder / "alertscaler.yaml").write_text(json.dumps(config))
        super().start(wrapper, options)

    def count_pods(self):
        text = urllib.request.urlopen(self.url("/metrics")).read().decode()
        return next((float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                     if line.startswith("alertscaler_cluster_objects") and 'kind="pod"' in line), 0)


def post(connection, body):
    started = time.perf_counter()
    connection.sendall(b"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    answer = connection.recv(65536)
    if not answer.startswith(b"HTTP/1.1 200"):
        raise SystemExit(answer.decode())
    return time.perf_counter() - started


def load(daemon, connection, is_over):
    """Milliseconds of each post, ascending."""
    body, samples, looked = notification_of(1).encode(), [], time.perf_counter()
    while True:
        samples.append(post(connection, body) * 1000)
        time.sleep(0.002)
        if time.perf_counter() - looked > 0.25:
            looked = time.perf_counter()
            if is_over():
                return sorted(samples)


def tell(what, samples, bound):
    report(f"{what}: {len(samples)} webhooks, p50", samples[len(samples) // 2], "ms", "")
    report(f"{what}: p99", samples[len(samples) * 99 // 100], "ms", bound)
    report(f"{what}: longest", samples[-1], "ms", "")


def main(build):
    server = subprocess.Popen([*GUARDED, "taskset", "-c", "1", build / "tests/bench/bench_cluster_watch", "serve"],
                              stdout=subprocess.PIPE, text=True)
    address = f"http://127.0.0.1:{int(server.stdout.readline())}"
    with Cluster(build / "src/alertscaler", address) as daemon:
        connection = socket.create_connection(("127.0.0.1", daemon.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        end = time.perf_counter() + 3
        tell("without the lists", load(daemon, connection, lambda: time.perf_counter() > end), "")
        began, cpu = time.perf_counter(), daemon.cpu_seconds()
        post(connection, notification([alert({"alertname": "Nodes"})]).encode())
        samples = load(daemon, connection,
                       lambda: daemon.count_pods() == PODS or time.perf_counter() > began + PATIENCE)
        if daemon.count_pods() != PODS:
            raise SystemExit(f"{daemon.count_pods():.0f} pods are known")
        report("the lists took", time.perf_counter() - began, "s", "")
        report("of processor time", daemon.cpu_seconds() - cpu, "s", "")
        tell("during the lists", samples, "below 10 ms")
    server.kill()
    server.wait()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
