"""What the benches run: the daemon with its node group, and the load (wrk)."""
import json
import os
import pathlib
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

    def __init__(self, binary, rule_count=10, templated=False, core="0", options=(), wrapper=()):
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
        self.process = subprocess.Popen([*GUARDED, "taskset", "-c", core, *wrapper, binary, "serve",
                                         "--config.file=alertscaler.yaml", *options,
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


def fixed_body(body):
    return f"wrk.method = 'POST'\nwrk.headers['Content-Type'] = 'application/json'\nwrk.body = [==[{body}]==]\n"
