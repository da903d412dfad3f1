#!/usr/bin/python3
"""Measures the built daemon: alertscaler on core 0, the load (wrk) on core 1.

    tests/bench/bench_daemon.py BUILD-DIRECTORY [repeats|groups|new|latency|memory|start|instructions|flat|pages ...]

BUILD-DIRECTORY is a release build (meson setup build/release). Prints one line a figure, with the bound it is held to. Machines
are noisy: rates and ratios are the medians of five rounds, of BENCH_SECONDS each (3). Instructions are steady: callgrind counts
them, and leaves its profiles in the folder BENCH_PROFILES, if given, for callgrind_annotate.
"""
import contextlib
import os
import pathlib
import re
import socket
import statistics
import sys
import time
import urllib.error
import urllib.request

from beside import CONNECTIONS, bench_groups, bench_new, bench_repeats
from daemon import Daemon, fixed_body, group, notification_of, wrk
from figures import report
from flat import bench_flat
from instructions import bench_instructions


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
            body = notification_of(i).encode()
            started = time.perf_counter()
            connection.sendall(b"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            connection.recv(65536)
            path = f"/group/checkout-{i}"
            while path not in daemon.group.puts and time.perf_counter() - started < 5:
                time.sleep(0.0005)
            samples.append(daemon.group.puts[path] - started)
    samples.sort()
    report("one fdatasync here", fsync * 1000, "ms", "")
    report("webhook to the PUT arriving, p50", samples[len(samples) // 2] * 1000, "ms", f"below 2 ms + a sync = {2 + fsync * 1000:.2f}")
    report("webhook to the PUT arriving, p99", samples[len(samples) * 99 // 100] * 1000, "ms",
           f"below 10 ms + a sync = {10 + fsync * 1000:.2f}")


def bench_memory(build):
    for cache in ("4MiB", "0MiB"):
        with Daemon(build / "src/alertscaler", rule_count=1000, receiver={"repeat_cache": cache}) as daemon:
            daemon.forget_peak()
            for body in (notification_of("0"), group(0, 100)):
                wrk(daemon.webhook, fixed_body(body), CONNECTIONS)
            report(f"most that was resident, 1,000 rules, repeat_cache: {cache}", daemon.memory_mib("VmHWM"), "MiB",
                   "at most 12, what is in the cache aside")
    with Daemon(build / "src/alertscaler") as daemon:
        daemon.open_incidents(100000)
        time.sleep(2)
        report("resident with 100,000 open incidents", daemon.memory_mib("VmRSS"), "MiB", "at most 150")


def bench_start(build):
    times = []
    for _ in range(3):
        with Daemon(build / "src/alertscaler", rule_count=10000, core="0,1") as daemon:
            times.append(daemon.start_seconds)
    report("start with 10,000 rules until ready", min(times), "s", "at most 0.3")


def bench_pages(build):
    """The first page of 10,000 targets, each with an open incident: printed, and unchanged."""
    with Daemon(build / "src/alertscaler", templated=True) as daemon:
        daemon.open_incidents(10000)
        time.sleep(15)

        def measure(path, count):
            before = daemon.cpu_seconds()
            for _ in range(count):
                with contextlib.suppress(urllib.error.HTTPError):      # 304
                    urllib.request.urlopen(daemon.url(path)).read()
            return (daemon.cpu_seconds() - before) / count

        page = measure("/", 40)
        version = re.search('data-version="([^"]*)"', urllib.request.urlopen(daemon.url("/")).read().decode())[1]
        unchanged = measure(f"/?since={version}", 1000)
        report("a page of 100 of 10,000 targets", page * 1000, "ms", "")
        report("the same, unchanged", unchanged * 1e6, "us", "at most 200")
        report("five visible pages, a change in each 2 s", 5 / 2 * page * 100, "% of a core", "below 10")


BENCHES = {"repeats": bench_repeats, "groups": bench_groups, "new": bench_new, "latency": bench_latency,
           "memory": bench_memory, "start": bench_start, "instructions": bench_instructions,
           "flat": bench_flat, "pages": bench_pages}


def main():
    if len(sys.argv) < 2 or not (pathlib.Path(sys.argv[1]) / "src/alertscaler").exists():
        raise SystemExit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    for name in sys.argv[2:] or BENCHES:
        BENCHES[name](build)


if __name__ == "__main__":
    main()
