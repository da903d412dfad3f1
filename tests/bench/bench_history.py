#!/usr/bin/python3
"""Measures the history of the action log: 30 days of decisions of 200 targets, read by the index.

    tests/bench/bench_history.py build/release/src/alertscaler [MiB [FOLDER [LOG]]]

Without MiB the log has 1,024; the figures of docs/benchmarks.md are of 10,240. FOLDER: on the disk to measure. LOG: a folder that
keeps the log for the next build that is measured. Cold: the daemon has just started, and the kernel has forgotten the files. Bounds,
for the whole log: 300 ms warm, 2 s cold, and slices of the event loop of 5 ms (the time between two waits, as perf sees it, with all
that the machine does meanwhile; the processor time of the loop for a request is an upper bound without it).
"""
import datetime
import hashlib
import http.client
import json
import os
import pathlib
import signal
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import slices

PROGRAM = pathlib.Path(sys.argv[1]).absolute()
SIZE = (int(sys.argv[2]) if len(sys.argv) > 2 else 1024) << 20
SPAN = datetime.timedelta(days=30)
TARGETS, REASONS, FILES = 200, ("scaled", "cooldown", "at_max", "unchanged"), 20
ULID = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def make_target(name):
    """The id of a node group at an address that does not answer: its page has the chart of the log."""
    return f"node_group/mine/http://127.0.0.1:9/groups/{name}"


def make_template():
    """A decision without its hash, and what is put into it."""
    pods = [{"name": f"app-5d9c7b6f4-{i:05}", "phase": "Running", "ready": True, "started": "2026-11-20T10:00:00Z"} for i in range(20)]
    record = {"id": "@id", "incident_count": 1, "incidents": ["ab" * 32],
              "input": {"observed": {"replicas": 4, "pods": pods},
                        "proposals": [{"action": {"track": {"value": 40}}, "rule": "@rule", "value": 47.125}], "v": 1},
              "instance": "alertscaler-0", "kind": "decision", "notification_count": 0, "notifications": [],
              "output": {"desired": "@desired", "direction": "up", "limited_by": [], "next_evaluation": None,
                         "proposals": [{"desired": 5, "reason": "ok", "rule": "@rule"}], "reason": "@reason", "recommendation": 5,
                         "replicas": "@size", "rule": "@rule", "trail": [{"desired": 5, "gate": "combine"}], "v": 1},
              "prev": "@prev", "repeats": 0, "rules_digest": "cd" * 32, "seq": "@seq", "since_alert_seconds": 1.5,
              "since_notification_seconds": 0.003, "target": make_target("@name"),
              "target_name": "@name", "time": "@time"}
    text = json.dumps(record, sort_keys=True, separators=(",", ":")).replace("%", "%%")
    for key in ("id", "rule", "reason", "prev", "name", "time"):
        text = text.replace(f"@{key}", f"%({key})s")
    for key in ("seq", "size", "desired"):
        text = text.replace(f'"@{key}"', f"%({key})d")
    return text


def make_ulid(at, number):
    ms, text = int(at.timestamp() * 1000), ""
    for shift in range(45, -1, -5):
        text += ULID[ms >> shift & 31]
    return text + f"{number:016}"


def write_log(folder, end):
    """Files actions.jsonl.N ... actions.jsonl, the oldest first."""
    template = make_template()
    count = SIZE // (len(template) + 110)
    prev, seq = "0" * 64, 0
    for age in reversed(range(FILES)):
        with open(folder / ("actions.jsonl" + (f".{age}" if age else "")), "w", encoding="ascii") as out:
            for _ in range(count // FILES):
                seq += 1
                at, size = end - SPAN + SPAN * seq / count, 4 + seq // TARGETS * 13 % 7
                name = f"app-{seq * 7919 % TARGETS:03}"
                text = template % {"id": make_ulid(at, seq), "rule": f"{name}-is-slow", "reason": REASONS[seq * 31 % 11 % 4],
                                   "prev": prev, "seq": seq, "name": name, "time": at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
                                   "size": size, "desired": size + 1}
                prev = hashlib.sha256(text.encode()).hexdigest()
                out.write('{"hash":"' + prev + '",' + text[1:] + "\n")


def get_log(folder, kept):
    """Puts the log into the folder; returns its last moment."""
    if not kept:
        end = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
        write_log(folder, end)
        return end
    if not (kept / "actions.jsonl").exists():
        kept.mkdir(exist_ok=True)
        write_log(kept, datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0))
    for path in kept.glob("actions.jsonl*"):
        if path.name == "actions.jsonl":
            shutil.copy(path, folder)   # the daemon appends to it
        else:
            (folder / path.name).hardlink_to(path)
    with open(kept / "actions.jsonl", "rb") as log:
        log.seek(-8192, os.SEEK_END)
        return datetime.datetime.fromisoformat(json.loads(log.read().splitlines()[-1])["time"].replace("Z", "+00:00"))


class Daemon:
    def __init__(self, folder):
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        for name in ("all", "team"):
            (folder / name).write_text(name)
            (folder / name).chmod(0o600)
        (folder / "rules.yaml").write_text(json.dumps({
            "targets": {"app-007": {"node_group": {"provider": "mine", "url": "http://127.0.0.1:9/groups/app-007"}, "min": 1, "max": 12}},
            "rules": [{"name": "app-007-is-slow", "match": ['alertname="Slow"'], "target": "app-007", "scale_up": {"by": 1}}]}))
        (folder / "alertscaler.yaml").write_text(json.dumps({
            "providers": {"mine": {"type": "http"}},
            "receiver": {"tokens": [{"name": "all", "file": str(folder / "all"), "permissions": ["read"]},
                                    {"name": "team", "file": str(folder / "team"), "permissions": ["read"], "targets": ["app-007"]}]},
            "rule_files": [str(folder / "rules.yaml")], "state": {"store": "sqlite", "path": str(folder / "state.db")},
            "action_log": {"path": str(folder / "actions.jsonl"), "keep": 100}}))

    def start(self):
        log = open(self.folder / "log", "a", encoding="utf-8")
        self.process = subprocess.Popen([PROGRAM, "serve", f"--config.file={self.folder}/alertscaler.yaml", "--log.level=warn",
                                         f"--web.listen-address=127.0.0.1:{self.port}"], stderr=log, env={"HOME": str(self.folder)})
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                if self.get("/-/ready")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.01)
        raise SystemExit("it does not become ready: see " + str(self.folder / "log"))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def get(self, path, token="all"):
        """Status, body and seconds."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        started = time.perf_counter()
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        body = answer.read()
        return answer.status, body, time.perf_counter() - started


def measure_slices(daemon, paths):
    """The longest time in ms between two waits of the event loop, while it answers; None without perf and the right to use it."""
    def read():
        for path in paths * 10:
            daemon.get(path)
    return max(slices.measure(daemon.process.pid, read), default=None)


def get_processor_seconds(pid):
    """Of all threads that run, and of the event loop."""
    seconds = {task.name: int((task / "schedstat").read_text().split()[0]) / 1e9 for task in pathlib.Path(f"/proc/{pid}/task").iterdir()}
    return sum(seconds.values()), seconds[str(pid)]


def get_read_bytes(pid):
    """Bytes that the disk was asked for."""
    fields = dict(line.split(": ") for line in pathlib.Path(f"/proc/{pid}/io").read_text().splitlines())
    return int(fields["read_bytes"])


def forget_files(folder):
    os.sync()
    for path in folder.iterdir():
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def main():
    with tempfile.TemporaryDirectory(dir=sys.argv[3] if len(sys.argv) > 3 else None) as name:
        measure(pathlib.Path(name), pathlib.Path(sys.argv[4]) if len(sys.argv) > 4 else None)


def count_records(body):
    data = json.loads(body)["data"] if body.startswith(b"{") else None
    return len(data) if isinstance(data, list) else 1


def measure(folder, kept):
    end = get_log(folder, kept)
    size = sum(path.stat().st_size for path in folder.glob("actions.jsonl*"))
    daemon = Daemon(folder)
    started = time.perf_counter()
    daemon.start()
    while json.loads(daemon.get("/api/v1/decisions?limit=1")[1]).get("warnings") != ["results truncated due to limit"]:
        time.sleep(0.2)
    built, processor = time.perf_counter() - started, get_processor_seconds(daemon.process.pid)[0]
    index = (folder / "history-actions.jsonl.db").stat().st_size
    print(f"log: {size >> 20} MiB; index: {index >> 20} MiB ({100 * index / size:.1f} %), built in {built:.1f} s, "
          f"{processor:.1f} s of processor time ({size / processor / 2**20:.0f} MiB/s)", flush=True)

    def ago(**distance):
        return (end - datetime.timedelta(**distance)).strftime("%Y-%m-%dT%H:%M:%SZ")

    night = f"since={ago(days=20)}&until={ago(days=20, hours=-8)}"
    middle = json.loads(daemon.get(f"/api/v1/decisions?until={ago(days=20, hours=-8)}&target=app-007&limit=1")[1])["data"][0]["id"]
    decisions = "/api/v1/decisions"
    queries = {
        "a night 20 days ago": ("all", f"{decisions}?{night}&limit=10000"),
        "one target, that night": ("all", f"{decisions}?target=app-007&{night}&limit=10000"),
        "one target, 30 days": ("all", f"{decisions}?target=app-007&limit=10000"),
        "one of 200 targets may be seen": ("team", f"{decisions}?limit=10000"),
        "one rule, 30 days": ("all", f"{decisions}?rule=app-007-is-slow&limit=10000"),
        "one reason, 30 days": ("all", f"{decisions}?reason=at_max&limit=10000"),
        "a reason of what may be seen": ("team", f"{decisions}?reason=at_max&limit=10000"),
        "10,000 decisions": ("all", f"{decisions}?limit=10000"),
        "a reason of a target, none found": ("all", f"{decisions}?target=app-007&reason=guarded&limit=10000"),
        "one whole decision": ("all", f"{decisions}/{middle}"),
        "its page, with its neighbours": ("team", f"/decisions/{middle}"),
        "a chart of 30 days": ("all", f"/targets/app-007?from={ago(days=30)}&to={ago(days=0)}"),
        "a chart of 7 days": ("team", f"/targets/app-007?from={ago(days=27)}&to={ago(days=20)}"),
        "a chart of a night": ("team", f"/targets/app-007?from={ago(days=20)}&to={ago(days=20, hours=-8)}"),
    }
    results = {}
    for label, (token, path) in queries.items():
        daemon.stop()
        forget_files(folder)
        daemon.start()
        forget_files(folder)        # what the start has read
        read = get_read_bytes(daemon.process.pid)
        status, body, cold = daemon.get(path, token)
        read = get_read_bytes(daemon.process.pid) - read
        before = get_processor_seconds(daemon.process.pid)
        warm = sorted(daemon.get(path, token)[2] for _ in range(5))[2]
        processor, loop = ((seconds - start) / 5 for seconds, start in zip(get_processor_seconds(daemon.process.pid), before))
        results[label] = (cold, warm)
        print(f"{label + ':':36} {count_records(body) if status == 200 else status:6} records, {len(body) >> 10:6} KiB: "
              f"cold {1000 * cold:6.0f} ms, {read >> 10:7} KiB read; "
              f"warm {1000 * warm:6.0f} ms, {1000 * processor:6.1f} ms of processor time, "
              f"{1000 * loop:4.1f} ms of it in the event loop", flush=True)
    longest = measure_slices(daemon, [queries[label][1] for label in ("10,000 decisions", "a chart of 30 days")])
    print("longest slice of the event loop, beside 10,000 decisions and charts of 30 days:",
          "not measured: this needs perf, and root" if longest is None else f"{longest:.1f} ms")
    resident = next(line for line in pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    print("highest resident memory:", resident.split(":")[1].strip())
    daemon.stop()
    cold, warm = (max(times) for times in zip(*results.values()))
    sys.exit(cold > 2 or warm > 0.3 or (longest or 0) > 5)


main()
