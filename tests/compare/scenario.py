"""One scripted run of a daemon: alerts, orders, approvals, a reload, a kill -9; then its API, pages, metrics, log and state rows.

Both programs run it in the same directory and on the same ports, one after the other. What differs from run to run is
normalised, and nothing more: times within the run's hours (to ten minutes after its begin), identifiers made in the run, hashes of
the log's chain, the sender's port, form tokens, durations, and the program's revision.
"""
import calendar
import json
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
from harness.http import Server, request  # noqa: E402
from harness.notification import alert, notification  # noqa: E402
from harness.ports import free_port  # noqa: E402

STARTS = "2026-01-01T00:00:00Z"
LONG = "300000h"
PATIENCE = 60
ULID = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
TARGETS = ("web", "small", "held", "asked", "dry", "tracked", "each")
API = ("/api/v1/status", "/api/v1/targets", *(f"/api/v1/targets/{name}" for name in TARGETS), "/api/v1/approvals", "/api/v1/incidents",
       "/api/v1/rules", "/api/v1/decisions", "/api/v1/decisions?target=web", "/api/v1/decisions/nothing", "/api/v1/unknown", "/-/healthy",
       "/-/ready")
PAGES = ("/", "/account", "/incidents", "/rules", *(f"/targets/{name}" for name in TARGETS), "/targets/unknown", "/decisions/nothing",
         "/login")

# Samples of these metrics are times, sizes of memory, or depend on how the run was scheduled: their names and labels are compared.
UNSTEADY = re.compile(r"^(process_\w+|\w+_seconds(_sum|_bucket)?|\w+_timestamp_seconds|\w+_bytes(_total)?|alertscaler_store_commit\w+)(\{.*\})? ")

# Members of documents, and ages and durations of pages and texts, that are counted in this run's seconds.
HASHES = "hash|prev|id"
SECONDS = "duration_seconds|since_alert_seconds|since_notification_seconds|resolved_after|ready_after|resolved_us|ready_us|median|p90|p95|max_seconds"
AGES = (r"\b(\d+m)?\d+\s?s\s(?=ago\b|before\b)|(?<=up for )\d+\ss\b|(?<=<div>)\d+\ss(?=</div>)|\b\d+m\d+s\b|\b\d+s\d+ms\b"
        r"|\b\d+\.\d+\s?s\b|(?<=, )\d+ ms\b")


def without_times(match):
    """A page's chart of the last 24 hours, without its axis of time, and without times and coordinates."""
    lines = [line for line in match[0].splitlines() if not re.match(r'<line class="grid" x1="([\d.]+)" y1="\S+" x2="\1"|<text class="dim middle"', line)]
    if 'class="spark"' in lines[0]:
        return re.sub(r' d="[^"]*"', ' d="<path>"', "\n".join(lines))
    return re.sub(r"\d+\.\d+|\d\d:\d\d:\d\d", "<n>", "\n".join(lines))


class Peers:
    """The node groups, Prometheus, and a receiver of notices."""

    def __init__(self, port):
        self.sizes, self.versions, self.told, self.asked, self.gets = {}, {}, [], [], []
        self.server = Server(self.handle, port=port)

    def handle(self, asked):
        if asked.path.startswith("/prom"):
            value = {"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}, "value": [1, "500"]}]}}
            return 200, {}, value
        if asked.path == "/told":
            self.told.append(asked.body.decode())
            return 204, {}, b""
        name = asked.path.removeprefix("/groups/")
        size, version = self.sizes.setdefault(name, 3), self.versions.setdefault(name, 1)
        if asked.method == "GET":
            self.gets.append(name)
        if asked.method == "PUT":
            self.asked.append(f"{asked.path} {asked.body.decode()} {asked.headers['If-Match']}")
            if name == "broken":
                return 403, {}, {"error": "not you"}
            self.sizes[name] = size = asked.json["size"]
            self.versions[name] = version = version + 1
        return 200, {"ETag": f'"v{version}"'}, {"size": size}


def make_rules(peers):
    def target(name, **more):
        return {"node_group": {"provider": "mine", "url": f"http://127.0.0.1:{peers}/groups/{name}"}, "min": 1, "max": 20,
                "cooldown": {"up": "1h", "down": "1h"}, **more}

    def rule(name, target, **more):
        action = {} if {"scale_to", "scale_down", "hold"} & set(more) else {"scale_up": {"by": 1}}
        return {"name": name, "match": [f'alertname="{name}"'], "target": target, **action, **more}

    return {"targets": {"web": target("web"), "small": target("small", max=4), "broken": target("broken"), "held": target("held"), "dry": target("dry", dry_run=True),
                        "asked": target("asked", approval={"above": 2, "for": "1h"}), "tracked": target("tracked"),
                        "each": target("{{ .Labels.group }}", allow={"names": ["each-*"]})},
            "rules": [rule("Grow", "web", max_steps=2), rule("Back", "web", on_resolved="give_back", guard="none"),
                      rule("Shrink", "web", scale_down={"by": 1}), rule("Small", "small", scale_to=9), rule("Broken", "broken"),
                      rule("Held", "held"),
                      rule("Never", "held", hold="up"), rule("Dry", "dry", scale_up={"by": "50%"}), rule("Asked", "asked", scale_to=12),
                      rule("Each", "each", once=True),
                      rule("Tracked", "tracked", scale_up={"value": {"query": "sum(up)"}, "steps": [{"above": 100, "by": 4}]})]}


def make_config(peers):
    tokens = [{"name": "whole", "file": "whole.token", "permissions": ["notify", "read", "admin"]},
              {"name": "narrow", "file": "narrow.token", "permissions": ["notify", "read"], "rules": ["Each", "Held"]}]
    return {"rule_files": ["rules.yaml"], "state": {"store": "sqlite", "path": "state.db"}, "action_log": {"path": "actions.jsonl"},
            "providers": {"mine": {"type": "http"}}, "prometheus": {"url": f"http://127.0.0.1:{peers}/prom"},
            "receiver": {"incident_expiry": LONG, "stale_window": LONG, "tokens": tokens},
            "notify": [{"name": "events", "webhook": {"url": f"http://127.0.0.1:{peers}/told"},
                        "on": ["scaled", "failed", "at_max", "needs_approval", "contended", "ineffective"]}]}


class Normal:
    """Replaces what differs from run to run."""

    def __init__(self, ports):
        self.begin = time.time()
        self.ports = ports
        self.ids = {}

    def offset(self, seconds):
        """Ten minutes, or None: this time does not come from the run."""
        after = seconds - self.begin
        return f"+{round(after / 600) * 10}m" if -600 < after < 40 * 3600 else None

    def replace_time(self, match):
        offset = self.offset(calendar.timegm(time.strptime(match[0][:19].replace(" ", "T"), "%Y-%m-%dT%H:%M:%S")))
        return f"<time{offset}>" if offset else match[0]

    def replace_us(self, match):
        offset = self.offset(int(match[0]) / 1e6)
        return f"<us{offset}>" if offset else match[0]

    def replace_id(self, match):
        ms = 0
        for letter in match[0][:10]:
            ms = ms * 32 + ULID.index(letter)
        return f"<id {self.ids.setdefault(match[0], len(self.ids) + 1)}>" if self.offset(ms / 1e3) else match[0]

    def replace_address(self, match):
        return match[0] if int(match[1]) in self.ports else "<remote>"

    def made_now(self, text):
        """Identifiers and times."""
        text = re.sub(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b", self.replace_id, text)
        text = re.sub(r"\b\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?Z| \d\d:\d\d:\d\d)", self.replace_time, text)
        return re.sub(r"\b\d{16}\b", self.replace_us, text)

    def __call__(self, text):
        text = self.made_now(text)
        text = re.sub(r"\[\d+,<us", "[<mono>,<us", text)
        text = re.sub(rf'("(?:{HASHES})": ?"|has the hash )[0-9a-f]{{64}}', r"\1<hash>", text)
        text = re.sub(rf'("({SECONDS})": ?)\d+(\.\d+)?(e-\d+)?', r"\1<seconds>", text)
        text = re.sub(r'(name="form" value=")[\w-]{43}"', r'\1<form>"', text)
        text = re.sub(r"<svg.*?</svg>", without_times, text, flags=re.S)
        text = re.sub(r'(\brevision"?[=:] ?"?)[0-9a-f]{7,40}(-dirty)?', r"\1<revision>", text)
        text = re.sub(r" {2,}\d+(\.\d+)?s(?= {2,})", "  <seconds>", text)      # columns of `effects`
        text = re.sub(AGES, "<seconds>", text)
        return re.sub(r"\b127\.0\.0\.1:(\d+)", self.replace_address, text)

    def metrics(self, text):
        return "".join(line.rpartition(" ")[0] + " <value>\n" if UNSTEADY.match(line) else line + "\n" for line in self(text).splitlines())


class Run:
    def __init__(self, program, place, port, peers_port):
        self.starts = 0
        self.program, self.place, self.url = program, place, f"http://127.0.0.1:{port}"
        self.listen, self.peers = f"127.0.0.1:{port}", Peers(peers_port)
        self.normal, self.raw, self.texts = Normal((port, peers_port)), {}, {}
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        for name in ("whole", "narrow"):
            (place / f"{name}.token").write_text(f"secret-of-{name}")
        (place / "alertscaler.yaml").write_text(json.dumps(make_config(peers_port)))
        (place / "rules.yaml").write_text(json.dumps(make_rules(peers_port)))

    def keep(self, name, text):
        assert name not in self.raw, name
        self.raw[name] = text

    def normalise(self):
        for name, text in self.raw.items():
            known = self.normal(name)
            assert known not in self.texts, known
            self.texts[known] = self.normal.metrics(text) if name.endswith("/metrics") else self.normal(text)

    def start(self):
        self.stderr = open(self.place / "stderr", "ab")
        self.process = subprocess.Popen(
            [self.program, "serve", f"--web.listen-address={self.listen}", "--web.enable-admin-api"], cwd=self.place,
            stdout=subprocess.DEVNULL, stderr=self.stderr, env={"PATH": "/usr/bin:/bin", "HOME": str(self.place), "POD_NAME": "pod-0"})
        self.starts += 1
        self.wait("ready", lambda: self.read_stderr().count("ready to receive notifications") == self.starts)

    def read_stderr(self):
        text = (self.place / "stderr").read_text()
        assert self.process.poll() is None, text
        return text

    def end(self, number):
        self.process.send_signal(number)
        status = self.process.wait(PATIENCE)
        self.stderr.close()
        return status

    def wait(self, what, is_true):
        end = time.monotonic() + PATIENCE
        while not is_true():
            assert time.monotonic() < end, f"{self.program}: not within {PATIENCE} s: {what}"
            time.sleep(0.05)

    def settle(self):
        """Until the log has been at rest for a second."""
        size, end = -1, 0
        while time.monotonic() < end or size != (self.place / "actions.jsonl").stat().st_size:
            if size != (self.place / "actions.jsonl").stat().st_size:
                size, end = (self.place / "actions.jsonl").stat().st_size, time.monotonic() + 1
            time.sleep(0.05)

    def records_all(self):
        return [json.loads(line) for line in (self.place / "actions.jsonl").read_bytes().split(b"\n")[:-1]]

    def records(self, kind, **members):
        return [one for one in self.records_all() if one["kind"] == kind and members.items() <= one.items()]

    def wait_records(self, count, kind, **members):
        self.wait(f"{count} {kind} {members}", lambda: len(self.records(kind, **members)) >= count)

    def get(self, path, credential="whole", **headers):
        if credential:
            headers["Authorization"] = f"Bearer secret-of-{credential}"
        answer = request("GET", self.url + path, headers=headers)
        wanted = sorted(f"{name}: {value}" for name, value in answer.headers.items() if name not in ("Date", "Content-Length"))
        return "\n".join([f"HTTP {answer.status}", *wanted, "", answer.text])

    def fire(self, name, labels, credential="whole", **more):
        body = notification(alert(labels, starts_at=STARTS, **more))
        answer = request("POST", f"{self.url}/webhook", body, {"Authorization": f"Bearer secret-of-{credential}"})
        self.keep(f"answer to {name}", f"HTTP {answer.status}\n{answer.text}")
        self.settle()

    def command(self, *arguments):
        connection = [f"--url={self.url}", "--token-file=whole.token"]
        offline = arguments[0] in ("log", "explain", "effects", "replay", "version", "notify")
        done = subprocess.run([self.program, *arguments, *([] if offline else connection)], cwd=self.place, capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
        name = " ".join(arguments)
        count = sum(known == name or known.startswith(f"{name} (") for known in self.raw)
        self.keep(f"{name} ({count + 1})" if count else name, f"{done.stdout}{done.stderr}exit status {done.returncode}\n")
        if not offline and arguments[0] != "status":
            self.settle()

    def fetch(self, when):
        for path in (*API, *PAGES):
            self.keep(f"{when}: GET {path}", self.get(path))
        for credential in ("narrow", None) if when == "again" else ("narrow",):    # each minute counts those denied before
            for path in ("/api/v1/targets", "/api/v1/incidents", "/api/v1/decisions", "/api/v1/rules", "/", "/incidents"):
                self.keep(f"{when}: GET {path} as {credential}", self.get(path, credential))
        for record in self.records("decision")[-3:]:
            for path in (f"/api/v1/decisions/{record['id']}", f"/decisions/{record['id']}"):
                self.keep(f"{when}: GET {path}", self.get(path))
        self.keep(f"{when}: GET /metrics", self.get("/metrics"))

    def play(self):
        self.start()
        self.fetch("empty")
        self.fire("Grow", {"alertname": "Grow"})
        self.wait_records(1, "action", target_name="web")
        self.fire("Grow again", {"alertname": "Grow"})
        self.fire("Back, locked", {"alertname": "Back"})
        self.wait_records(2, "decision", target_name="web")
        self.fire("Small", {"alertname": "Small"})
        self.wait_records(1, "action", target_name="small")
        self.command("pause", "held", "--reason=a test", "--for=2h")
        self.fire("Held", {"alertname": "Held"}, credential="narrow")
        self.wait_records(1, "decision", target_name="held")
        self.fire("Never", {"alertname": "Never"}, credential="narrow")
        self.fire("Dry", {"alertname": "Dry"})
        self.wait_records(1, "decision", target_name="dry")
        self.fire("Asked", {"alertname": "Asked"})
        self.wait_records(1, "approval", target_name="asked")
        self.fire("Each", {"alertname": "Each", "group": "each-1"})
        self.wait_records(1, "action", target_name="each")
        self.fire("Each, not allowed", {"alertname": "Each", "group": "other"})
        self.fire("Each, without its label", {"alertname": "Each"})
        self.fire("Tracked", {"alertname": "Tracked"})
        self.wait_records(1, "action", target_name="tracked")
        self.fire("Tracked, resolved", {"alertname": "Tracked"}, status="resolved", ends_at="2026-01-01T00:10:00Z")     # before the next query
        self.fire("no rule", {"alertname": "Unknown"})
        self.keep("answer to no JSON", request("POST", f"{self.url}/webhook", b"{", {"Authorization": "Bearer secret-of-whole"}).text)
        self.fetch("busy")
        for form in ("text", "json"):
            self.command("status", "-o", form)
            for name in TARGETS:
                self.command("status", "-o", form, name)
        self.command("approve", self.records("approval")[0]["id"], "--reason=yes")
        self.wait_records(1, "action", target_name="asked")
        self.command("approve", "nothing", "--reason=yes")
        self.command("unlock", "web", "--reason=go on")
        self.wait_records(2, "action", target_name="web")
        self.command("resume", "held", "--reason=enough")
        self.wait_records(1, "action", target_name="held")
        self.command("floor", "dry", "5", "--for=2h", "--reason=a sale")
        self.command("scale", "tracked", "5", "--reason=by hand")
        self.wait_records(2, "action", target_name="tracked")
        self.command("scale", "tracked", "99", "--reason=by hand")
        self.command("scale", "unknown", "5", "--reason=by hand")
        self.fire("Broken", {"alertname": "Broken"})
        self.wait_records(1, "action", target_name="broken")
        seen = self.peers.gets.count("broken")
        self.command("status", "broken")
        self.wait("broken is observed again", lambda: self.peers.gets.count("broken") > seen)
        self.fire("Broken, resolved", {"alertname": "Broken"}, status="resolved", ends_at="2026-01-01T00:10:00Z")
        self.command("pause", "--all", "--reason=a test", "--up")
        for name in ("Back", "Small", "Held", "Dry", "Asked"):    # one is left: several begin in any order
            self.fire(f"{name}, resolved", {"alertname": name}, status="resolved", ends_at="2026-01-01T00:10:00Z")
        self.fire("Each, resolved", {"alertname": "Each", "group": "each-1"}, status="resolved", ends_at="2026-01-01T00:10:00Z")
        self.command("reload")
        self.command("reload")
        self.fetch("late")
        self.end(signal.SIGKILL)
        self.dump("after kill -9")
        self.start()
        self.settle()
        self.fetch("again")
        self.keep("exit status", str(self.end(signal.SIGTERM)))
        self.dump("at the end")
        self.read_log()
        self.normalise()

    def dump(self, when):
        db = sqlite3.connect(self.place / "state.db")
        for table in ("meta", "incident", "target", "intent", "outbox"):
            for key, value in db.execute(f"SELECT key, value FROM {table} ORDER BY key"):
                name = str(key) if isinstance(key, int) else key.hex() if table == "incident" else key.decode()
                text = re.sub(r"^(\d+) [0-9a-f]{64}$", r"\1 <hash>", value.decode()) if name == "action_log_head" else value.decode()
                self.keep(f"state {when}: {table} {name}", text)
        db.close()

    def read_log(self):
        for record in self.records_all():       # so identifiers are numbered in the log's order
            self.normal(record.get("id", ""))
        for number, line in enumerate((self.place / "actions.jsonl").read_text().splitlines(), 1):
            self.keep(f"record {number}", line)
        for form in ("text", "json"):
            for command in (["log"], ["effects", "--since=2020-01-01T00:00:00Z"], ["replay"], *(["explain", f"--target={name}"] for name in TARGETS)):
                self.command(*command, "-o", form)
        self.command("log", "verify", "--state=state.db", "actions.jsonl")
        self.command("notify", "test", "events")
        for number, text in enumerate(sorted(map(self.normal, self.peers.told)), 1):     # the targets' lanes are independent
            self.keep(f"notice {number}", text)
        for number, text in enumerate(self.peers.asked, 1):
            self.keep(f"request {number}", text)
        lines = {re.sub(r" count=\d+$", "", self.normal(line)) for line in (self.place / "stderr").read_text().splitlines()}
        self.keep("standard error, sorted", "\n".join(sorted(lines)))      # warnings are counted and held back by time

    def close(self):
        if self.process.poll() is None:
            self.end(signal.SIGKILL)
        self.peers.server.stop()


def play_both(programs, directory):
    """Two times {name of the output: text}."""
    port, peers = free_port(), free_port()
    both = []
    for program in programs:
        run = Run(program, directory / "run", port, peers)
        try:
            run.play()
        finally:
            run.close()
        both.append(run.texts)
    return both
