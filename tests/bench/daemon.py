"""What the benches run: the daemon with its node group, and the load (wrk)."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request

SECONDS = int(os.environ.get("BENCH_SECONDS", "3"))  # of a round
GUARDED = ["setpriv", "--pdeathsig", "KILL", "--"]


def alert(labels):
    return {"status": "firing", "labels": labels, "annotations": {"summary": "CPU is above 90 %"},
            "startsAt": "2026-11-20T10:00:00Z", "endsAt": "0001-01-01T00:00:00Z", "generatorURL": ""}


def notification(alerts):
    """As Alertmanager writes it: 457 bytes with one alert, 25 kB with a hundred."""
    return json.dumps({"receiver": "alertscaler", "status": "firing", "alerts": alerts, "groupLabels": {},
                       "commonLabels": {}, "commonAnnotations": {}, "externalURL": "http://am:9093",
                       "version": "4", "groupKey": "{}:{alertname=\"A\"}", "truncatedAlerts": 0}, separators=(",", ":"))


def labels_of(pod):
    return {"alertname": "HighCPU", "namespace": "shop", "deployment": "checkout", "pod": f"checkout-{pod}"}


def notification_of(pod):
    return notification([alert(labels_of(pod))])


def group(first, count):
    """A notification with alerts of as many pods."""
    return notification([alert(labels_of(pod)) for pod in range(first, first + count)])


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
            threading.Thread(target=self.serve_until_end, args=(connection,), daemon=True).start()

    def serve_until_end(self, connection):
        with contextlib.suppress(ConnectionResetError):     # at the end of the daemon
            self.serve(connection)

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
            body, data = data[:size], data[size:]
            if method == "PUT":
                self.puts.setdefault(path, arrived)
            body = self.answer(method, path, body)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                               % (len(body), body))

    def answer(self, method, path, body):  # noqa: ARG002
        return b'{"size": 3}'


class Daemon:
    """Runs within its `with`, and no longer than the bench, however that ends.

    `group`: another node group; `target`, `rule`: more keys of the target and of the rule that matches.
    """

    def __init__(self, binary, rule_count=10, templated=False, core="0", receiver=None, group=None, target=None, rule=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="alertscaler-bench-"))
        self.binary = binary
        self.group = group or Group()
        address = f"http://127.0.0.1:{self.group.port}/group"
        if templated:
            one = {"node_group": {"provider": "p", "url": address + "/{{ .Labels.pod }}"}, "min": 1, "max": 10,
                   "allow": {"names": ["*"]}}
        else:
            one = {"node_group": {"provider": "p", "url": address}, "min": 1, "max": 3}
        (self.folder / "targets.yaml").write_text(json.dumps({"targets": {"one": {**one, **(target or {})}}}))
        rows = rules(rule_count)
        if rule:
            rows[0] = {"name": rows[0]["name"], "match": rows[0]["match"], "target": rows[0]["target"], **rule}
        for first in range(0, rule_count, 10000):
            (self.folder / f"rules-{first}.yaml").write_text(json.dumps({"rules": rows[first:first + 10000]}))
        (self.folder / "alertscaler.yaml").write_text(json.dumps({
            "rule_files": ["targets.yaml", "rules-*.yaml"], "providers": {"p": {"type": "http"}},
            "receiver": receiver or {}, "state": {"store": "sqlite", "path": "state.db"},
            "action_log": {"path": "actions.jsonl", "max_size": "1GiB", "keep": 1}}))
        self.start(["taskset", "-c", core])

    def start(self, wrapper, options=()):
        self.port = free_port()
        self.webhook = self.url("/webhook")
        self.log = open(self.folder / "log", "ab")
        started = time.perf_counter()
        self.process = subprocess.Popen([*GUARDED, *wrapper, self.binary, "serve", "--config.file=alertscaler.yaml", *options,
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

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        status = self.process.wait(600)
        self.log.close()
        if status not in (0, -signal.SIGKILL):
            raise SystemExit(f"alertscaler ended with status {status}: {(self.folder / 'log').read_text()}")

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def forget_peak(self):
        """VmHWM begins anew: what a start touches, mostly pages of libraries, is given back by then."""
        pathlib.Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def memory_mib(self, kind):
        """VmRSS: resident now; VmHWM: the most that was."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{kind}:\s*(\d+) kB", status, re.M)[1]) / 1024

    def cpu_seconds(self):
        return cpu_seconds(self.process.pid)

    def metric(self, name):
        text = urllib.request.urlopen(self.url("/metrics")).read().decode()
        return next(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name + " "))

    def open_incidents(self, count):
        """All of them stored when this returns."""
        for first in range(0, count, 1000):
            body = group(first, min(1000, count - first)).encode()
            urllib.request.urlopen(urllib.request.Request(self.webhook, body, method="POST")).read()
        if self.metric("alertscaler_incidents_open") != count:
            raise SystemExit(f"{self.metric('alertscaler_incidents_open'):.0f} incidents are open")

    def __enter__(self):
        return self

    def __exit__(self, failed, *_):
        self.stop(signal.SIGKILL if failed else signal.SIGTERM)
        shutil.rmtree(self.folder)


class Webhook:
    """Debian's `webhook` within its `with`: a rule on the payload that does not match."""

    def __init__(self):
        if not shutil.which("webhook"):
            raise SystemExit("Debian's webhook is not installed: nothing to compare with")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="alertscaler-bench-"))
        hooks = self.folder / "hooks.json"
        hooks.write_text(json.dumps([{"id": "x", "execute-command": "/bin/true", "trigger-rule": {
            "match": {"type": "value", "value": "no", "parameter": {"source": "payload", "name": "status"}}}}]))
        port = free_port()
        self.webhook = f"http://127.0.0.1:{port}/hooks/x"
        self.process = subprocess.Popen([*GUARDED, "taskset", "-c", "0", "webhook", "-hooks", hooks, "-ip", "127.0.0.1",
                                         "-port", str(port)], stderr=subprocess.DEVNULL)
        while self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.01)
        raise SystemExit("Debian's webhook ended at once")

    def cpu_seconds(self):
        return cpu_seconds(self.process.pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder)


def cpu_seconds(pid):
    """Of all threads, user and system: what one core would need, whoever else is on it."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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


def fixed_body(body):
    return f"wrk.method = 'POST'\nwrk.headers['Content-Type'] = 'application/json'\nwrk.body = [==[{body}]==]\n"
