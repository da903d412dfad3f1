"""The program under test: `alertscaler serve` with a configuration made by the test."""
import json
import os
import pathlib
import re
import signal

import yaml

from .http import request
from .metrics import Metrics
from .ports import free_port
from .process import Process
from .wait import PATIENCE, eventually

ROOT = pathlib.Path(__file__).parents[3]
ACTION_LOG = "actions.jsonl"    # in the directory of a daemon
BUILDS = ("build/asan", "build", "build/release")
SANITIZER_REPORT = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:")


def find_binary():
    """$ALERTSCALER_BIN, else the first build there is; None where nothing is built."""
    given = os.environ.get("ALERTSCALER_BIN")
    candidates = [pathlib.Path(given).absolute()] if given else [
        ROOT / build / place for build in BUILDS for place in ("src/alertscaler", "alertscaler")]
    return next((c for c in candidates if c.is_file() and os.access(c, os.X_OK)), None)


def has_sanitizers():
    """Whether the binary is a build with sanitizers, which the sandbox leaves some room."""
    binary = find_binary().read_bytes()
    return b"__asan_init" in binary or b"__tsan_init" in binary


def read_notifications(records):
    """Of a log's records the notifications, each in full: of a repeat with the details that it names."""
    whole = {r["id"]: r for r in records if r["kind"] == "notification"}
    return [{**whole[r["same_as"]], **r} if r["kind"] == "repeat" else r for r in records if r["kind"] in ("notification", "repeat")]


class _Dumper(yaml.SafeDumper):
    """Aliases are errors in our files, and PyYAML writes them for objects it meets twice."""

    def ignore_aliases(self, data):
        return True


def dump_yaml(data):
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def environment(**extra):
    """What the daemon inherits: nothing of the machine's own clusters, proxies and settings."""
    env = {
        "PATH": os.environ["PATH"],
        "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:exitcode=99",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    }
    return env | {key: str(value) for key, value in extra.items()}


class Daemon:
    """rules is the content of a rule file, or {file name: content}; config is merged over a minimal configuration."""

    def __init__(self, directory, rules, config=None, flags=(), env=None, name="alertscaler",
                 log_level="debug"):
        self.directory = pathlib.Path(directory)
        (self.directory / "rules").mkdir(parents=True, exist_ok=True)
        self.binary = find_binary()
        assert self.binary, "alertscaler is not built: run tests/run unit"
        self.address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{self.address}"
        self.config_file = self.directory / "alertscaler.yaml"
        self.state_file = self.directory / "state.db"
        self.log_file = self.directory / ACTION_LOG
        self.headers = {}       # sent with everything we ask of it
        self.tls = None         # what we trust and show, where it speaks TLS
        self.write_config(config or {})
        self.write_rules(rules)
        self.process = Process(name, [
            self.binary, "serve", f"--config.file={self.config_file}", f"--web.listen-address={self.address}",
            f"--log.level={log_level}", *flags,
        ], self.directory, environment(HOME=self.directory, **(env or {})))

    # Its files

    def write_config(self, config):
        self.config_file.write_text(dump_yaml({
            "rule_files": ["rules/*.yaml"],
            "state": {"store": "sqlite", "path": str(self.state_file)},
            "action_log": {"path": str(self.log_file)},
            **config,
        }))

    def write_rules(self, rules):
        files = rules if rules and all(name.endswith(".yaml") for name in rules) else {"rules.yaml": rules}
        for old in (self.directory / "rules").glob("*.yaml"):
            old.unlink()
        for name, content in files.items():
            text = content if isinstance(content, str) else dump_yaml(content)
            (self.directory / "rules" / name).write_text(text)

    def comment_config(self):
        """Other bytes, the same meaning: the next reload is a real one."""
        self.config_file.write_text(self.config_file.read_text() + "# once more\n")

    # Its life

    def start(self, timeout=PATIENCE):
        self.process.start().wait_ready(lambda: self.get("/-/ready").ok, timeout)
        return self

    def stop(self):
        """SIGTERM; it must end with status 0, and no sanitizer may have spoken."""
        status = self.process.stop(PATIENCE)
        self.check_sanitizers()
        assert status == 0, f"{self.process.name} ended with status {status}:\n{self.process.log_text()[-4000:]}"

    def kill(self):
        """kill -9"""
        self.process.kill()
        self.check_sanitizers()

    def restart(self):
        self.stop()
        return self.start()

    def reload(self):
        self.process.signal(signal.SIGHUP)

    def check_sanitizers(self):
        text = self.process.log_text()
        report = SANITIZER_REPORT.search(text)
        assert not report, f"{self.process.name}: sanitizer report:\n{text[report.start():][:4000]}"

    # What it says

    def get(self, path, timeout=PATIENCE):
        return request("GET", self.url + path, headers=self.headers, tls=self.tls, timeout=timeout)

    def post(self, path, body, timeout=PATIENCE):
        return request("POST", self.url + path, body, self.headers, tls=self.tls, timeout=timeout)

    def notify(self, notification):
        """Sends a notification as Alertmanager would; the answer's JSON, which must be a 200."""
        answer = self.post("/webhook", notification)
        assert answer.status == 200, f"HTTP {answer.status}: {answer.text}"
        return answer.json

    def metrics(self):
        answer = self.get("/metrics")
        assert answer.ok, answer.text
        return Metrics(answer.text)

    def target(self, name):
        answer = self.get(f"/api/v1/targets/{name}")
        assert answer.ok, answer.text
        return answer.json["data"]

    def records(self, kind=None, **fields):
        """The action log, without a last line that is still being written: records of a kind with these fields."""
        if not self.log_file.exists():
            return []
        lines = self.log_file.read_bytes().split(b"\n")[:-1]
        records = [json.loads(line) for line in lines]
        return [r for r in records
                if (kind is None or r["kind"] == kind) and all(r.get(k) == v for k, v in fields.items())]

    def notifications(self):
        return read_notifications(self.records())

    def wait_record(self, kind, timeout=PATIENCE, **fields):
        """The first such record, once it is there."""
        found = eventually(lambda: self.records(kind, **fields), timeout, what=f"a {kind} record with {fields}")
        return found[0]
