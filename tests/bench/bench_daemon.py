#!/usr/bin/python3
"""Measures the built daemon: alertscaler on core 0, the load (wrk) on core 1.

    tests/bench/bench_daemon.py BUILD-DIRECTORY [repeats|groups|new|latency|memory|start|webhook ...]

BUILD-DIRECTORY is a release build (meson setup build/release). Prints one line a figure, with the bound it is held to. Machines
are noisy: rates and ratios are the medians of five rounds, of BENCH_SECONDS each (3).
"""
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

SECONDS = int(os.environ.get("BENCH_SECONDS", "3"))  # of a round
ROUNDS = 5
GUARDED = ["setpriv", "--pdeathsig", "KILL", "--"]
LABELS = {"alertname": "HighCPU", "cluster": "eu-1", "namespace": "shop", "deployment": "checkout", "pod": "checkout-7d9c",
          "severity": "critical", "scale": "true"}


def alert(labels, starts_at="2026-11-20T10:00:00Z"):
    return {"status": "firing", "labels": labels,
            "annotations": {"summary": "CPU of checkout is above 90 % of its request for five minutes"},
            "startsAt": starts_at, "endsAt": "0001-01-01T00:00:00Z",
            "generatorURL": "http://prometheus:9090/graph?g0.expr=rate%28cpu%5B5m%5D%29+%3E+0.9&g0.tab=1"}


def notification(alerts):
    return json.dumps({"receiver": "alertscaler", "status": "firing", "alerts": alerts, "groupLabels": {},
                       "commonLabels": {}, "commonAnnotations": {}, "externalURL": "http://alertmanager:9093",
                       "version": "4", "groupKey": "{}:{alertname=\"HighCPU\"}", "truncatedAlerts": 0}) + "\n"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def rules(count, target="one"):
    """The first matches the alerts above; the others cannot."""
    rows = [{"name": "match", "match": ['alertname="HighCPU"'], "target": target, "scale_up": {"by": 1}}]
    rows += [{"name": f"rule-{i}", "match": [f'alertname="Other{i}"', 'severity=~"page|critical"'], "target": target,
              "scale_up": {"by": "10%"}} for i in range(count - 1)]
    return rows


class Group(threading.Thread):
    """The HTTP node group: notes when each PUT arrives."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        self.puts = {}
        self.start()

    def run(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        data = b""
        while True:
            while b"\r\n\r\n" not in data:
                more = connection.recv(65536)
                if not more:
                    return
                data += more
            head, data = data.split(b"\r\n\r\n", 1)
            arrived = time.perf_counter()
            method, path, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
            size = next((int(line.split(b":")[1]) for line in head.split(b"\r\n")
                         if line.lower().startswith(b"content-length:")), 0)
            while len(data) < size:
                data += connection.recv(65536)
            data = data[size:]
            if method == "PUT":
                self.puts.setdefault(path, arrived)
            body = b'{"size": 3}'
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                               % (len(body), body))


class Daemon:
    """Runs within its `with`, and no longer than the bench, however that ends."""

    def __init__(self, binary, rule_count=10, templated=False, core="0"):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="alertscaler-bench-"))
        self.group = Group()
        self.port = free_port()
        address = f"http://127.0.0.1:{self.group.port}/group"
        if templated:
            target = {"node_group": {"provider": "p", "url": address + "/{{ .Labels.pod }}"}, "min": 1, "max": 10,
                      "allow": {"names": ["*"]}}
        else:
            target = {"node_group": {"provider": "p", "url": address}, "min": 1, "max": 3}
        (self.folder / "rules.yaml").write_text(json.dumps({"targets": {"one": target}, "rules": rules(rule_count)}))
        (self.folder / "alertscaler.yaml").write_text(json.dumps({
            "rule_files": ["rules.yaml"], "providers": {"p": {"type": "http"}},
            "state": {"store": "sqlite", "path": "state.db"},
            "action_log": {"path": "actions.jsonl", "max_size": "1GiB", "keep": 1}}))
        self.log = open(self.folder / "log", "wb")
        started = time.perf_counter()
        self.process = subprocess.Popen([*GUARDED, "taskset", "-c", core, binary, "serve", "--config.file=alertscaler.yaml",
                                         f"--web.listen-address=127.0.0.1:{self.port}"], cwd=self.folder, stderr=self.log)
        while True:
            try:
                if urllib.request.urlopen(self.url("/-/ready"), timeout=1).status == 200:
                    break
            except OSError:
                if self.process.poll() is not None:
                    raise SystemExit((self.folder / "log").read_text())
                time.sleep(0.002)
        self.start_seconds = time.perf_counter() - started

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def rss_mib(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        raise SystemExit("no VmRSS")

    def cpu_seconds(self):
        """Of both threads, user and system: what one core would need, whoever else is on it."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def metric(self, name):
        text = urllib.request.urlopen(self.url("/metrics")).read().decode()
        return next(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name + " "))

    def __enter__(self):
        return self

    def __exit__(self, failed, *_):
        self.process.send_signal(signal.SIGKILL if failed else signal.SIGTERM)
        status = self.process.wait(60)
        self.log.close()
        shutil.rmtree(self.folder)
        if status != 0 and not failed:
            raise SystemExit(f"alertscaler ended with status {status}")


def wrk(url, script, connections, seconds=SECONDS):
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as lua:
        lua.write(script)
        lua.write('\ndone = function(s, l, r) io.write(string.format("RESULT %d %d %d %d\\n", s.requests, s.duration, '
                  's.errors.status, s.errors.connect + s.errors.read + s.errors.write + s.errors.timeout)) end\n')
        lua.flush()
        out = subprocess.run(["taskset", "-c", "1", "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", lua.name, url],
                             capture_output=True, text=True, check=True).stdout
    line = next(line for line in out.splitlines() if line.startswith("RESULT"))
    requests, duration, bad, broken = map(int, line.split()[1:])
    if bad or broken:
        print(f"  {bad} answers other than 2xx, {broken} broken transfers", flush=True)
    return requests / (duration / 1e6)


def measure(daemon, script, connections):
    """Requests a second, and the daemon's processor seconds a request."""
    before = daemon.cpu_seconds()
    rate = wrk(daemon.url("/webhook"), script, connections)
    return rate, (daemon.cpu_seconds() - before) / (rate * SECONDS)


def fixed_body(body):
    return f"wrk.method = 'POST'\nwrk.headers['Content-Type'] = 'application/json'\nwrk.body = [==[{body}]==]\n"


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
           "memory": bench_memory, "start": bench_start, "webhook": bench_webhook}


def main():
    if len(sys.argv) < 2 or not (pathlib.Path(sys.argv[1]) / "src/alertscaler").exists():
        raise SystemExit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    for name in sys.argv[2:] or BENCHES:
        BENCHES[name](build)


if __name__ == "__main__":
    main()
