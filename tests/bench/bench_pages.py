#!/usr/bin/python3
"""Measures visible pages: what they cost the daemon, and how soon they show a change.

    tests/bench/bench_pages.py BUILD-DIRECTORY

BUILD-DIRECTORY is a release build (meson setup build/release). The daemon, on core 0, has 10,000 targets with 100 changes a second in
all: notifications set a target to 4, and the ends of the alerts set the target to 2. Five readers, on core 1, do what page.js does: they
request a page of 100 targets again 2 s after each answer, with the version that they show. BENCH_SECONDS (20) is the time of a round.
In each of three rounds the daemon runs without readers, and then with readers. What a change costs without readers is not counted as
a page. So the cost of a page is right also while a busy machine makes fewer changes and requests than wanted; the delays are not.
"""
import datetime
import http.client
import itertools
import json
import os
import pathlib
import random
import re
import statistics
import sys
import threading
import time
import urllib.request

import slices
from daemon import Daemon, Group, labels_of, notification
from figures import report, report_rounds

SECONDS = int(os.environ.get("BENCH_SECONDS", "20"))
ROUNDS = 3
TARGETS = int(os.environ.get("BENCH_TARGETS", "10000"))
CHANGES = 100       # a second
TOGETHER = 10       # alerts of a notification
READERS = 5
EVERY = float(re.search(r"EVERY_MS = (\d+)", (pathlib.Path(__file__).parents[2] / "src/ui/page.js").read_text())[1]) / 1000
SMALL, LARGE = 2, 4


class Sizes(Group):
    """A node group for each path, with a size that stays. `changed`: when the size was set, until a page shows the size."""

    def __init__(self):
        self.sizes, self.changed, self.count = {}, {}, 0
        super().__init__()

    def answer(self, method, path, body):
        if method == "PUT":
            self.sizes[path] = json.loads(body)["size"]
            self.changed[path] = time.perf_counter()
            self.count += 1
        return b'{"size": %d}' % self.sizes.get(path, SMALL)


class Changes(threading.Thread):
    """Alerts of random targets: each begins, or ends if it fires."""

    def __init__(self, daemon):
        super().__init__(daemon=True)
        self.daemon_process = daemon
        self.connection = http.client.HTTPConnection("127.0.0.1", daemon.port)
        self.firing = set()
        self.is_over = False

    def send(self, pods):
        now = datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")
        alerts = []
        for pod in pods:
            ends = pod in self.firing
            self.firing ^= {pod}
            alerts.append({"status": "resolved" if ends else "firing", "labels": labels_of(pod), "annotations": {"summary": "CPU is above 90 %"},
                           "startsAt": now, "endsAt": now if ends else "0001-01-01T00:00:00Z", "generatorURL": ""})
        self.connection.request("POST", "/webhook", notification(alerts))
        answer = self.connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise SystemExit(f"the daemon answers a notification with {answer.status}")

    def start_all(self):
        """All targets get an alert, and half of the alerts end."""
        for first in range(0, TARGETS, 100):
            self.send(range(first, first + 100))
        while self.daemon_process.group.count < TARGETS:
            time.sleep(0.1)
        for first in range(0, TARGETS // 2, 100):
            self.send(range(first, first + 100))

    def run(self):
        order = list(range(TARGETS))
        random.Random(1).shuffle(order)
        pods = itertools.cycle(order)
        due = time.monotonic()
        while not self.is_over:
            self.send(list(itertools.islice(pods, TOGETHER)))
            due += TOGETHER / CHANGES
            time.sleep(max(0, due - time.monotonic()))


class Reader(threading.Thread):
    """A visible page."""

    def __init__(self, daemon, number):
        super().__init__(daemon=True)
        self.group = daemon.group
        self.connection = http.client.HTTPConnection("127.0.0.1", daemon.port)
        self.path = f"/?page={number + 1}"
        self.version, self.shown = None, {}
        self.bytes, self.delays, self.unchanged = [], [], 0
        self.is_over = threading.Event()
        self.pause = EVERY * number / READERS

    def run(self):
        self.is_over.wait(self.pause)
        while not self.is_over.is_set():
            self.ask()
            self.is_over.wait(EVERY)
        self.connection.close()

    def ask(self):
        more = {"If-None-Match": f'"{self.version}"'} if self.version else {}
        self.connection.request("GET", self.path + (f"&since={self.version}" if self.version else ""),
                                headers={"Accept": "*/*", "Accept-Encoding": "gzip, deflate, br", **more})
        answer = self.connection.getresponse()
        body = answer.read()
        now = time.perf_counter()
        if answer.status == 304:
            self.unchanged += 1
            return
        if answer.status != 200:
            raise SystemExit(f"the daemon answers {self.path} with {answer.status}")
        self.bytes.append(len(body))
        text = body.decode()
        self.version = re.search('data-version="([^"]*)"', text)[1]
        rows = re.findall(r'<span class="id">([^<]*)</span>.*?<b>(\d+)</b>(?! →)', text)
        for name, size in rows:
            path = f"/group/{name}"
            at = self.group.changed.get(path)
            if at and self.shown.get(path, size) != size and int(size) == self.group.sizes[path]:
                self.delays.append(now - at)
            self.shown[path] = size


def measure_cpu(daemon):
    """Seconds of the processor, changes, and seconds of the clock, in a round."""
    before, changes, started = daemon.cpu_seconds(), daemon.group.count, time.monotonic()
    time.sleep(SECONDS)
    return daemon.cpu_seconds() - before, daemon.group.count - changes, time.monotonic() - started


class Readers(list):
    def __init__(self, daemon):
        super().__init__(Reader(daemon, number) for number in range(READERS))

    def __enter__(self):
        for reader in self:
            reader.start()
        time.sleep(2 * EVERY)       # the first answer of each
        return self

    def __exit__(self, *_):
        for reader in self:
            reader.is_over.set()
        for reader in self:
            reader.join()

    def collect(self, name):
        return [value for reader in self for value in getattr(reader, name)]


def main():
    if len(sys.argv) != 2 or not (pathlib.Path(sys.argv[1]) / "src/alertscaler").exists():
        raise SystemExit(__doc__)
    os.sched_setaffinity(0, {1})
    rule = {"scale_to": LARGE, "on_resolved": {"scale_to": SMALL}, "guard": "none"}
    with Daemon(pathlib.Path(sys.argv[1]).resolve() / "src/alertscaler", templated=True, group=Sizes(),
                target={"cooldown": {"up": "0s", "down": "0s"}}, rule=rule) as daemon:
        is_held = measure(daemon)
    sys.exit(not is_held)


def measure(daemon):
    changes = Changes(daemon)
    changes.start_all()
    while daemon.group.count < 1.5 * TARGETS:
        time.sleep(0.1)
    changes.start()
    time.sleep(5)
    without, pages, sizes, delays, unchanged, rates = [], [], [], [], 0, []
    for _ in range(ROUNDS):
        cpu, count, seconds = measure_cpu(daemon)
        without.append(100 * cpu / seconds)
        of_a_change = cpu / max(count, 1)
        rates.append(count / seconds)
        with Readers(daemon) as readers:
            before = len(readers.collect("bytes"))
            cpu, count, seconds = measure_cpu(daemon)
            answers = len(readers.collect("bytes")) - before
        rates.append(count / seconds)
        pages.append(1000 * (cpu - count * of_a_change) / max(answers, 1))
        sizes += readers.collect("bytes")
        delays += readers.collect("delays")
        unchanged += sum(reader.unchanged for reader in readers)
    shares = [READERS / EVERY * page / 10 for page in pages]
    plain = slices.measure(daemon.process.pid, lambda: time.sleep(SECONDS))
    with Readers(daemon):
        paged = slices.measure(daemon.process.pid, lambda: time.sleep(SECONDS))
    changes.is_over = True
    changes.join()
    targets = int(re.search(r"Targets</dt><dd>(\d+)", urllib.request.urlopen(daemon.url("/")).read().decode())[1])
    script = (pathlib.Path(__file__).parents[2] / "src/ui/page.js").stat().st_size
    report("targets", targets, "")
    report_rounds("changes of sizes", rates, "a second", f"{CHANGES}, else the machine is busy")
    report_rounds("the daemon without pages", without, "% of a core")
    report_rounds("a page of 100 rows", pages, "ms of a core")
    report_rounds(f"{READERS} visible pages, each printed every {EVERY:.0f} s", shares, "% of a core", "below 10")
    report("answers with a page", len(sizes), "", f"and {unchanged} unchanged")
    report("bytes of a page, median", statistics.median(sizes) / 1024, "KiB")
    report("from a change to the page that shows it, median", statistics.median(delays), "s", f"{len(delays)} changes")
    report("the same, longest", max(delays), "s", f"at most {EVERY:.0f} s, and one answer")
    report("page.js", script / 1024, "KiB", "below 10")
    for name, found in (("longest slice of the event loop, without pages", plain), ("the same with pages", paged)):
        if found:
            report(name, max(found), "ms")
        else:
            print(f"{name}: not measured: this needs perf, and root")
    return statistics.median(shares) < 10 and max(delays) < EVERY + 0.5


if __name__ == "__main__":
    main()
