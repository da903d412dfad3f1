#!/usr/bin/python3
"""Measures `alertscaler replay`: a month of one alert a minute on 100 targets, computed again and under other rules with charts.

    tests/bench/bench_replay.py build/release/src/alertscaler [DAYS]

Bound: 10 s of processor time, and memory that does not grow with the log (the first tenth of it takes as much, but for 8 MiB).
"""
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

PROGRAM, DAYS = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 30
START = datetime.datetime(2026, 10, 1, tzinfo=datetime.timezone.utc)
RULES = """
targets:
  app: {kubernetes: {kind: Deployment, namespace: "{{ .Labels.namespace }}", name: "{{ .Labels.deployment }}"}, max: 20,
        allow: {namespaces: [shop], names: [app-*]}}
rules:
  - {name: busy, match: ['alertname="Busy"'], target: app, scale_up: {by: 3}}
  - {name: calm, match: ['alertname="Calm"'], target: app, scale_down: {by: 2}}
"""


def stamp(time):
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if time else None


class Log:
    """A log as a daemon writes it (without a chain): an alert a minute, each on the next target, up and down in turns."""

    def __init__(self, out):
        self.out, self.seq = out, 0
        self.sizes, self.last_up, self.last_down = [4] * 100, [None] * 100, [None] * 100

    def write(self, time, **record):
        self.seq += 1
        record.update(seq=self.seq, time=stamp(time), prev="0" * 64, hash="0" * 64, instance="alertscaler-0")
        self.out.write(json.dumps(record, sort_keys=True, separators=(",", ":")) + "\n")

    def write_decision(self, time, number, up, identifier, fingerprint, rule, target):
        size = self.sizes[number]
        to = size + (2 if up else -2)
        self.write(time, kind="decision", id=identifier, incident_count=1, incidents=[fingerprint], notification_count=1,
                   notifications=[identifier], repeats=0, rules_digest="ab" * 32, since_alert_seconds=0.1,
                   since_notification_seconds=0.003, target=target, target_name="app", input={
                       "flags": {"budget_exhausted": False, "guarded": False, "in_progress": False, "paused": False},
                       "history": {"last_down": stamp(self.last_down[number]), "last_up": stamp(self.last_up[number]),
                                   "recommendations": [], "scale_events": []},
                       "now": stamp(time), "observed": {"replicas": size, "status_replicas": size},
                       "proposals": [{"action": {"scale_up" if up else "scale_down": {"by": 2}}, "incident": fingerprint, "rule": rule}],
                       "target": {"cooldown": {"down": 300, "up": 180, "up_after_down": 0}, "cpu_initialization_seconds": 300,
                                  "dry_run": False, "enforce_bounds": False, "id": target, "initial_readiness_delay_seconds": 30,
                                  "max": 20, "min": 1, "tolerance": {"down": 0.1, "up": 0.1}}, "v": 1},
                   output={"desired": to, "direction": "up" if up else "down", "limited_by": [], "next_evaluation": None,
                           "proposals": [{"desired": to, "reason": "ok", "rule": rule}], "reason": "scaled", "recommendation": to,
                           "replicas": size, "rule": rule, "trail": [{"desired": to, "gate": "combine"}, {"desired": to, "gate": "bounds"}], "v": 1})
        return size, to

    def write_minute(self, minute):
        number, up = minute % 100, (minute // 100) % 2 == 0
        begin = now = START + datetime.timedelta(minutes=minute)
        name, rule = ("Busy", "busy") if up else ("Calm", "calm")
        fingerprint, identifier = f"{0x1000000000000 + number * 2 + up:016x}", f"01M7Y17VFG{minute:016d}"
        target = f"kubernetes/default/apps/v1/Deployment/shop/app-{number:03}"
        labels = {"alertname": name, "namespace": "shop", "deployment": f"app-{number:03}", "severity": "page"}

        def notify(status):
            self.write(now, kind="notification", id=identifier, body_sha256="ab" * 32, body_size=800, credential="am", groupKey="{}:{}",
                       notification_reason="", receiver="alertscaler", remote="10.0.0.1:1", traceparent="", truncated=0, alerts=[{
                           "fingerprint": fingerprint, "labels": labels, "outcome": "queued", "rules": [rule],
                           "startsAt": stamp(begin), "status": status}])
            self.write(now, kind="incident", event="opened" if status == "firing" else "closed", fingerprint=fingerprint, labels=labels,
                       notification=identifier, startsAt=stamp(begin),
                       targets=[{"replicas": self.sizes[number], "rule": rule, "target": target}])

        notify("firing")
        now += datetime.timedelta(milliseconds=3)
        size, to = self.write_decision(now, number, up, identifier, fingerprint, rule, target)
        now += datetime.timedelta(milliseconds=9)
        self.write(now, kind="action", id=identifier, attempts=1, decision=identifier, duration_seconds=0.009, http_status=200, late=False,
                   message="", method="PATCH", outcome="applied", path="/x", repeats=0, rule=rule, since_alert_seconds=0.1,
                   since_notification_seconds=0.01, target=target, target_name="app", to=to, version="1", **{"from": size})
        self.sizes[number] = to
        (self.last_up if up else self.last_down)[number] = now
        now += datetime.timedelta(seconds=30)
        notify("resolved")


def measure(*arguments):
    """Seconds of processor time, seconds, MiB."""
    begin = time.monotonic()
    with subprocess.Popen([PROGRAM, "replay", *map(str, arguments)], stdout=subprocess.DEVNULL) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"replay ended with status {child.returncode}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - begin, usage.ru_maxrss / 1024


def main():
    bad = False
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "rules.yaml").write_text(RULES)
        for part, minutes in (("tenth", DAYS * 144), ("whole", DAYS * 1440)):
            with open(folder / part, "w", encoding="utf-8") as out:
                log = Log(out)
                for minute in range(minutes):
                    log.write_minute(minute)
        print(f"{DAYS * 1440} alerts, {(folder / 'whole').stat().st_size / 2**20:.0f} MiB of log")
        for what, more in (("computed again", []), ("under other rules", ["--rules", folder / "rules.yaml", "--svg", folder / "charts"])):
            _, _, small = measure(*more, folder / "tenth")
            processor, elapsed, memory = measure(*more, folder / "whole")
            bad = bad or processor > 10 * DAYS / 30 or memory > small + 8
            print(f"{what}: {processor:.1f} s of processor time ({elapsed:.1f} s), {memory:.1f} MiB; the first tenth {small:.1f} MiB")
    return 1 if bad else 0


sys.exit(main())
