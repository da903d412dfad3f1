"""Runs the demo: starts the parts, tells what happens as it happens, ends them, sums up."""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PREFERRED = {"workload": 9098, "prometheus": 9090, "alertmanager": 9093, "alertscaler": 9096}
RULES_URL = "127.0.0.1:9098"  # as in rules/demo.yaml

REASONS = {
    "at_max": "it is at its maximum",
    "at_min": "it is at its minimum",
    "cooldown": "the target is locked after the last action",
    "vetoed": "another rule wants more",
    "no_change": "nothing asks for another size",
    "in_progress": "the last change is still being carried out",
}


def bind_one(probe, preferred):
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    for port in (preferred, 0):
        try:
            probe.bind(("127.0.0.1", port))
            return probe.getsockname()[1]
        except OSError:
            continue
    raise SystemExit("demo: no free port")


def find_ports():
    """All are bound before the first is let go: else two parts could be given the same one."""
    with contextlib.ExitStack() as probes:
        return {name: bind_one(probes.enter_context(socket.socket()), port) for name, port in PREFERRED.items()}


def get(url, timeout=2):
    with urllib.request.urlopen(url, timeout=timeout) as answer:
        return answer.read().decode()


class Screen:
    """One line a thing that happens, with the seconds since the start; colors on a terminal."""

    def __init__(self):
        self.started = time.monotonic()
        self.colors = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    def say(self, text, color=None):
        stamp = f"{time.monotonic() - self.started:6.1f}s  "
        if color and self.colors:
            text = f"\033[{color}m{text}\033[0m"
        print(stamp + text, flush=True)


class Demo:
    def __init__(self, options):
        self.options = options
        self.screen = Screen()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="alertscaler-demo-"))
        self.ports = find_ports()
        self.processes = []
        self.ended = False
        self.ups = self.downs = 0
        self.sizes = []
        self.names = {}  # digest -> alert name

    def address(self, name):
        return f"127.0.0.1:{self.ports[name]}"

    def url(self, name):
        return f"http://{self.address(name)}"

    def write_files(self):
        words = {"WORKLOAD": self.address("workload"), "ALERTMANAGER": self.address("alertmanager"),
                 "ALERTSCALER": self.address("alertscaler")}
        for name in ("prometheus.yml", "alerts.yml", "alertmanager.yml", "alertscaler.yaml"):
            text = (HERE / name).read_text()
            for word, value in words.items():
                text = text.replace(word, value)
            (self.folder / name).write_text(text)
        rules = (ROOT / "rules" / "demo.yaml").read_text()
        (self.folder / "demo.yaml").write_text(rules.replace(RULES_URL, self.address("workload")))

    def start(self, name, *argv):
        with open(self.folder / f"{name}.log", "wb") as log:
            process = subprocess.Popen([str(word) for word in argv], cwd=self.folder, stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log, start_new_session=True)
        self.processes.append((name, process))

    def wait_for(self, name, url, seconds=30):
        process = dict(self.processes)[name]
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if process.poll() is not None:
                break
            try:
                get(url)
                return
            except OSError:
                time.sleep(0.1)
        tail = (self.folder / f"{name}.log").read_text(errors="replace")[-2000:]
        raise SystemExit(f"demo: {name} does not start; its log says:\n{tail}")

    def start_all(self):
        self.write_files()
        self.start("workload", sys.executable, HERE / "workload.py", "--port", self.ports["workload"])
        self.wait_for("workload", self.url("workload") + "/group")
        self.start("alertscaler", self.options.alertscaler, "serve", "--config.file=alertscaler.yaml",
                   "--web.listen-address=" + self.address("alertscaler"))
        self.wait_for("alertscaler", self.url("alertscaler") + "/-/ready")
        self.start("alertmanager", "prometheus-alertmanager", "--config.file=alertmanager.yml",
                   "--storage.path=alertmanager", "--cluster.listen-address=",
                   "--web.listen-address=" + self.address("alertmanager"))
        self.wait_for("alertmanager", self.url("alertmanager") + "/-/ready")
        self.start("prometheus", "prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=prometheus",
                   "--rules.alert.resend-delay=1s", "--web.listen-address=" + self.address("prometheus"))
        self.wait_for("prometheus", self.url("prometheus") + "/-/ready")

    def introduce(self):
        print(f"""
Running: a workload whose load swings between 10 and 150 requests a second; each instance serves 20.
Prometheus alerts on load over capacity, Alertmanager notifies alertscaler, alertscaler scales by rules/demo.yaml.

  metrics           {self.url('alertscaler')}/metrics
  Prometheus        {self.url('prometheus')}/alerts
  Alertmanager      {self.url('alertmanager')}/
  logs, action log  {self.folder}

Open this page, and look at three things as the load swings:

  {self.url('alertscaler')}/

  - the target `demo`: its size between min 1 and max 8, and how long it is locked after a change;
  - the open incident, DemoOverloaded or DemoIdle, that asks for another size;
  - the latest decisions: why it scaled, and why it did not (`cooldown`, `at_max`, `at_min`).
""", flush=True)

    # what the action log says

    def on_notification(self, record):
        for alert in record["alerts"]:
            name = self.names[alert["digest"]] = alert["labels"].get("alertname", "?")
            if alert["outcome"] == "queued" and alert["status"] == "firing":
                self.screen.say(f"alert {name} fires; rule {', '.join(alert['rules'])}", "33")
            elif alert["outcome"] == "queued":
                self.screen.say(f"alert {name} is resolved")

    def on_decision(self, record):
        output = record["output"]
        if output["reason"] == "scaled":
            return  # the action tells it
        wanted = output.get("would", output["desired"])
        reason = REASONS.get(output["reason"], "")
        text = f"{record['target_name']} stays at {output['replicas']}"
        if wanted != output["replicas"]:
            text += f" instead of {wanted}"
        self.screen.say(f"{text}: {output['reason']}" + (f" ({reason})" if reason else ""), "2")

    def on_action(self, record):
        if record["outcome"] != "applied" or record["decision"] is None:
            self.screen.say(f"{record['target_name']}: {record['outcome']} {record['message']}", "31")
            return
        if record["to"] > record["from"]:
            self.ups += 1
        else:
            self.downs += 1
        self.sizes.append(record["to"])
        self.screen.say(f"{record['target_name']} scaled from {record['from']} to {record['to']} by rule {record['rule']}",
                        "1;32")

    def follow(self, log):
        """Handles what has been appended since the last call."""
        handlers = {"notification": self.on_notification, "decision": self.on_decision, "action": self.on_action}
        while True:
            place = log.tell()
            line = log.readline()
            if not line.endswith("\n"):
                log.seek(place)
                return
            record = json.loads(line)
            handler = handlers.get(record["kind"])
            if handler:
                handler(record)

    def show_load(self):
        try:
            lines = get(self.url("workload") + "/metrics").splitlines()
        except OSError as error:
            self.screen.say(f"the workload does not say its load: {error}", "31")
            return
        rows = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        load, size = float(rows["demo_load_requests_per_second"]), int(rows["demo_instances"])
        used = 100 * float(rows["demo_utilization_ratio"])
        self.screen.say(f"load {load:5.1f}/s on {size} instance{'s' if size != 1 else ' '} "
                        f"{'#' * size:<8} {used:4.0f} % used", "36")

    def check_alive(self):
        for name, process in self.processes:
            if process.poll() is not None:
                tail = (self.folder / f"{name}.log").read_text(errors="replace")[-2000:]
                raise SystemExit(f"demo: {name} ended by itself (status {process.returncode}); its log says:\n{tail}")

    def run(self):
        self.start_all()
        self.introduce()
        end = time.monotonic() + self.options.seconds if self.options.seconds else float("inf")
        next_load = 0.0
        with open(self.folder / "actions.jsonl", encoding="utf-8") as log:
            while not self.ended and time.monotonic() < end:
                self.follow(log)
                if time.monotonic() >= next_load:
                    next_load = time.monotonic() + 5
                    self.show_load()
                    self.check_alive()
                time.sleep(0.1)
            self.follow(log)

    def stop_all(self):
        for _, process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for name, process in reversed(self.processes):
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                print(f"demo: {name} does not end, killed", file=sys.stderr)
                process.kill()
                process.wait()

    def verify_log(self):
        verified = subprocess.run([self.options.alertscaler, "log", "verify", self.folder / "actions.jsonl"],
                                  capture_output=True, text=True, check=False)
        print((verified.stdout + verified.stderr).strip())
        return verified.returncode == 0

    def sum_up(self):
        print(f"\nScaled up {self.ups} times and down {self.downs} times; sizes: "
              f"{' '.join(str(size) for size in self.sizes) or 'never changed'}.")
        whole = self.verify_log()
        done = self.ups > 0 and self.downs > 0 and whole
        if self.options.seconds:
            print("The workload was scaled up and down again." if done
                  else "demo: FAILED: the workload was not scaled up and down again.")
        if self.options.keep:
            print(f"Everything is kept in {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
        return 0 if done or not self.options.seconds else 1


def main():
    parser = argparse.ArgumentParser(prog="deploy/demo")
    parser.add_argument("--alertscaler", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help="end after so long")
    parser.add_argument("--keep", action="store_true", help="keep the folder with logs, state and action log")
    options = parser.parse_args()
    options.alertscaler = options.alertscaler.resolve()
    demo = Demo(options)

    def end(*_):
        demo.ended = True

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    try:
        demo.run()
    finally:
        demo.stop_all()
    return demo.sum_up()


if __name__ == "__main__":
    sys.exit(main())
