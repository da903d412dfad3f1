#!/usr/bin/python3
"""Measures the built daemon: alertscaler on core 0, the load (wrk) on core 1.

    tests/bench/bench_daemon.py BUILD-DIRECTORY [repeats|groups|new|latency|memory|start|webhook|instructions ...]

BUILD-DIRECTORY is a release build (meson setup build/release). Prints one line a figure, with the bound it is held to. Machines
are noisy: rates and ratios are the medians of five rounds, of BENCH_SECONDS each (3). Instructions are steady: callgrind counts
them, and leaves its profiles in the folder BENCH_PROFILES, if given, for callgrind_annotate.
"""
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

from daemon import LABELS, SECONDS, Daemon, alert, fixed_body, free_port, notification, wrk
from instructions import bench_instructions

ROUNDS = 5


def measure(daemon, script, connections):
    """Requests a second, and the daemon's processor seconds a request."""
    before = daemon.cpu_seconds()
    rate = wrk(daemon.url("/webhook"), script, connections)
    return rate, (daemon.cpu_seconds() - before) / (rate * SECONDS)


def report(name, figure, unit, bound):
    print(f"{name:<58} {figure:>12,.3f} {unit:<14} {bound}", flush=True)


def report_rates(name, rounds, unit, bound):
    """The median of the rounds, and how far they lie apart."""
    rates = sorted(rate for rate, _ in rounds)
    report(name, statistics.median(rates), unit, f"{bound} (from {rates[0]:,.0f} to {rates[-1]:,.0f})")
    report("  by its processor time alone", statistics.median(1 / cpu for _, cpu in rounds), unit, "")


def bench_repeats(build):
    body = notification([alert(LABELS)])
    with Daemon(build / "src/alertscaler") as daemon:
        rounds = [measure(daemon, fixed_body(body), 256) for _ in range(ROUNDS)]
    report_rates("one-alert repeats, keep-alive", rounds, "requests/s", "at least 30,000")


def measure_jansson(build, body):
    """Microseconds in which jansson alone parses the body, on the daemon's core."""
    program = build / "tests/bench/bench_jansson"
    if not program.exists():
        raise SystemExit(f"{program} is not there: build {build} without -Dtests=disabled")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(body)
        file.flush()
        out = subprocess.run(["taskset", "-c", "0", program, file.name], capture_output=True,
                             text=True, check=True).stdout
    return float(out.split()[0])


def bench_groups(build):
    """In turns with jansson alone: a machine's speed changes from one second to the next."""
    body = notification([alert(LABELS | {"pod": f"checkout-{i}"}) for i in range(100)])
    rounds = []
    with Daemon(build / "src/alertscaler") as daemon:
        wrk(daemon.url("/webhook"), fixed_body(body), 4, 1)
        for _ in range(ROUNDS):
            rate, cpu = measure(daemon, fixed_body(body), 16)
            rounds.append((1e6 / rate, 1e6 * cpu, measure_jansson(build, body)))
    report("jansson alone, a group of 100 alerts", statistics.median(alone for _, _, alone in rounds), "us",
           f"({len(body)} bytes)")
    report("groups of 100 repeats, served", statistics.median(served for served, _, _ in rounds), "us", "")
    ratios = sorted(served / alone for served, _, alone in rounds)
    report("  ratio to jansson alone", statistics.median(ratios), "",
           f"at most 1.6 (from {ratios[0]:.2f} to {ratios[-1]:.2f})")
    report("  ratio by processor time", statistics.median(cpu / alone for _, cpu, alone in rounds), "", "")


def bench_new(build):
    head, tail = notification([alert(LABELS | {"pod": "POD-NUMBER"})]).split("POD-NUMBER")
    script = fixed_body("") + f"""
local n = 0
request = function()
  n = n + 1
  return wrk.format(nil, nil, nil, [==[{head}]==] .. n .. [==[{tail}]==])
end
"""
    rounds = []
    for _ in range(ROUNDS):
        with Daemon(build / "src/alertscaler") as daemon:
            rounds.append(measure(daemon, script, 256))
            incidents = daemon.metric("alertscaler_incidents_open")
    report_rates("new alerts made durable, one a request", rounds, "alerts/s", "at least 15,000")
    report("  open incidents after the last round", incidents, "", "")


def measure_fsync(folder):
    times = []
    with open(folder / "fsync", "wb", buffering=0) as file:
        for _ in range(200):
            file.write(b"x" * 4096)
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - started)
    return statistics.median(times)


def bench_latency(build):
    samples = []
    with Daemon(build / "src/alertscaler", templated=True) as daemon:
        fsync = measure_fsync(daemon.folder)
        connection = socket.create_connection(("127.0.0.1", daemon.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(500):
            body = notification([alert(LABELS | {"pod": f"p{i}"})]).encode()
            started = time.perf_counter()
            connection.sendall(b"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            connection.recv(65536)
            path = f"/group/p{i}"
            while path not in daemon.group.puts and time.perf_counter() - started < 5:
                time.sleep(0.0005)
            samples.append(daemon.group.puts[path] - started)
    samples.sort()
    report("one fdatasync here", fsync * 1000, "ms", "")
    report("webhook to the PUT arriving, p50", samples[len(samples) // 2] * 1000, "ms", f"below 2 ms + a sync = {2 + fsync * 1000:.2f}")
    report("webhook to the PUT arriving, p99", samples[len(samples) * 99 // 100] * 1000, "ms",
           f"below 10 ms + a sync = {10 + fsync * 1000:.2f}")


def bench_memory(build):
    with Daemon(build / "src/alertscaler", rule_count=1000) as daemon:
        wrk(daemon.url("/webhook"), fixed_body(notification([alert(LABELS)])), 16, 1)
        report("resident with 1,000 rules", daemon.rss_mib(), "MiB", "at most 12")
    with Daemon(build / "src/alertscaler") as daemon:
        for first in range(0, 100000, 1000):
            body = notification([alert(LABELS | {"pod": f"checkout-{first + i}"}) for i in range(1000)]).encode()
            urllib.request.urlopen(urllib.request.Request(daemon.url("/webhook"), body, method="POST")).read()
        time.sleep(2)
        report("resident with 100,000 open incidents", daemon.rss_mib(), "MiB", "at most 150")
        report("  open incidents", daemon.metric("alertscaler_incidents_open"), "", "")


def bench_start(build):
    times = []
    for _ in range(3):
        with Daemon(build / "src/alertscaler", rule_count=10000, core="0,1") as daemon:
            times.append(daemon.start_seconds)
    report("start with 10,000 rules until ready", min(times), "s", "at most 0.3")


def bench_webhook(_):
    if not shutil.which("webhook"):
        print("Debian's webhook is not installed: no comparison")
        return
    with tempfile.TemporaryDirectory() as folder:
        hooks = pathlib.Path(folder) / "hooks.json"
        hooks.write_text(json.dumps([{"id": "x", "execute-command": "/bin/true", "trigger-rule": {
            "match": {"type": "value", "value": "no", "parameter": {"source": "payload", "name": "status"}}}}]))
        port = free_port()
        process = subprocess.Popen(["taskset", "-c", "0", "webhook", "-hooks", hooks, "-ip", "127.0.0.1", "-port", str(port)],
                                   stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        rate = wrk(f"http://127.0.0.1:{port}/hooks/x", fixed_body(notification([alert(LABELS)])), 128)
        report("Debian's webhook, a rule that does not match", rate, "requests/s", "for comparison")
        process.terminate()
        process.wait()


BENCHES = {"repeats": bench_repeats, "groups": bench_groups, "new": bench_new, "latency": bench_latency,
           "memory": bench_memory, "start": bench_start, "webhook": bench_webhook, "instructions": bench_instructions}


def main():
    if len(sys.argv) < 2 or not (pathlib.Path(sys.argv[1]) / "src/alertscaler").exists():
        raise SystemExit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    for name in sys.argv[2:] or BENCHES:
        BENCHES[name](build)


if __name__ == "__main__":
    main()
