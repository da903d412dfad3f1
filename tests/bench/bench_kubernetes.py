#!/usr/bin/python3
"""Measures the state in an API server: commits a second, and which part of their time is whose.

    ALERTSCALER_BIN=build/release/src/alertscaler tests/bench/bench_kubernetes.py

etcd, kube-apiserver (see tests/integration/peers) and the store, on its own (tests/integration/store_driver), share this
machine's cores. The yardstick is a loop that does nothing but send one object of as many bytes again and again. Rates are the
medians of three rounds, in turns.
"""
import http.client
import json
import pathlib
import re
import statistics
import sys
import tempfile
import time
import urllib.parse

from daemon import cpu_seconds
from figures import report, report_rounds

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from harness.control_plane import ADMIN_TOKEN, ControlPlane, missing  # noqa: E402
from harness.driver import Driver, find_driver  # noqa: E402
from harness.http import request  # noqa: E402

ROUNDS = 3
SIZE = 800  # bytes of a record's value
COMMITS = {1: 300, 10: 200, 100: 100}  # of a round, by records of each
BOUND = {100: "at least 5,000"}


class StoreDriver(Driver):
    name = "store_driver"

    def must(self, op, **arguments):
        answer = self.wait(self.send(op=op, store="a", **arguments), 600)
        if answer["status"] != 0:
            raise SystemExit(f"{op}: {answer['error']}")
        return answer["seconds"]


def add_up(text, name, *labels):
    """The sum of the series of a metric that have these labels."""
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
               if re.match(rf"{name}[{{ ]", line) and all(label in line for label in labels))


class Meters:
    """What API server, etcd and the store have spent so far."""

    def __init__(self, plane, driver):
        api = plane.admin.request("GET", "/metrics").text
        etcd = request("GET", plane.etcd_url + "/metrics").text
        writes = [add_up(api, "apiserver_request_duration_seconds_" + kind, 'resource="configmaps"', f'verb="{verb}"')
                  for kind in ("count", "sum") for verb in ("PUT", "POST")]
        self.values = {
            "requests": writes[0] + writes[1],
            "API server's time for them, ms": 1e3 * (writes[2] + writes[3]),
            "  of it waiting for etcd, ms": 1e3 * add_up(api, "etcd_request_duration_seconds_sum", "configmaps"),
            "  of that etcd's fsync, ms": 1e3 * add_up(etcd, "etcd_disk_wal_fsync_duration_seconds_sum"),
            "processor time of the API server, ms": 1e3 * cpu_seconds(plane.apiserver.pid),
            "processor time of etcd, ms": 1e3 * cpu_seconds(plane.etcd.pid),
            "processor time of the store, ms": 1e3 * cpu_seconds(driver._process.pid),
        }

    def print_since(self, before, commits):
        for name, value in self.values.items():
            report(f"  a commit: {name}", (value - before.values[name]) / commits, "")


class Bare:
    """One keep-alive connection that replaces one object, and reads the answers."""

    def __init__(self, plane, namespace, size):
        self.connection = http.client.HTTPSConnection(urllib.parse.urlparse(plane.url).netloc,
                                                      context=plane.authority.context())
        self.path = f"/api/v1/namespaces/{namespace}/configmaps"
        self.name = f"bare-{size}"
        self.size = size
        self.send("POST", self.path, 0)

    def send(self, method, path, number):
        data = (json.dumps({"labels": {"alertname": "x"}}) * (self.size // 30 + 1))[:self.size]
        body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self.name},
                           "data": {"journal": data, "write": str(number)}})
        self.connection.request(method, path, body, {"Authorization": f"Bearer {ADMIN_TOKEN}",
                                                     "Content-Type": "application/json"})
        answer = self.connection.getresponse()
        answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: HTTP {answer.status}")

    def measure(self, count):
        started = time.perf_counter()
        for number in range(count):
            self.send("PUT", f"{self.path}/{self.name}", time.time_ns() + number)
        return count / (time.perf_counter() - started)


def bench_commits(plane, namespace, driver, each):
    """The meters are of the last round."""
    bare = Bare(plane, namespace, each * SIZE)
    rates, bare_rates = [], []
    for _ in range(ROUNDS):
        bare_rates.append(bare.measure(COMMITS[each]))
        before = Meters(plane, driver)
        seconds = driver.must("fill", kind="incident", count=each * COMMITS[each], size=SIZE, each=each)
        rates.append(each * COMMITS[each] / seconds)
        after = Meters(plane, driver)
    report_rounds(f"commits of {each} records", [rate / each for rate in rates], "commits/s")
    report_rounds("  records", rates, "records/s", BOUND.get(each, ""))
    report_rounds(f"  bare: one object of {each * SIZE:,} bytes", bare_rates, "writes/s")
    report("  a bare write", 1e3 / statistics.median(bare_rates), "ms")
    report("  a commit", 1e3 * each / statistics.median(rates), "ms")
    after.print_since(before, COMMITS[each])


def main():
    reason = missing() or (None if find_driver(StoreDriver.name) else "store_driver is not built")
    if reason:
        raise SystemExit(reason)
    with tempfile.TemporaryDirectory(prefix="alertscaler-bench-") as folder:
        plane = ControlPlane(folder)
        try:
            plane.start()
            namespace = "bench"
            plane.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
            driver = StoreDriver(folder, "--kubeconfig", plane.write_kubeconfig("bench", token=ADMIN_TOKEN))
            driver.must("open", namespace=namespace, holder="pod-1")
            for each in COMMITS:
                bench_commits(plane, namespace, driver, each)
            driver.stop()
        finally:
            plane.stop()


if __name__ == "__main__":
    main()
