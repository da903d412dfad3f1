"""Prometheus with intervals short enough for tests.

A scrape that takes longer than its time-out is as if the target were gone: its series end, and its alerts are resolved. So the
time-out is a whole second, which a busy machine keeps, and no scrape may take longer than the interval.

An alert that Prometheus has not sent again for four times `resend_delay` is resolved for Alertmanager, and when it comes again it is
the same one, which has ended. Where that must not happen while Prometheus stands still for some seconds, the delay is longer.
"""
import pathlib
from urllib.parse import quote

import yaml

from . import monitoring
from .http import request
from .ports import free_port
from .process import Process


def missing():
    return monitoring.missing("prometheus", "promtool")


class Prometheus:
    """rules: alerting rules as in a rule file: [{"alert": ..., "expr": ..., "for": ..., "labels": {...}}]. remote_write: blocks of the
    configuration."""

    def __init__(self, directory, targets=(), alertmanagers=(), rules=(), name="prometheus", external_labels=None,
                 remote_read=(), remote_write=(), protection=None, resend_delay="1s", job="test", token=None):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.address = f"127.0.0.1:{free_port()}"
        self.url = f"{'https' if protection else 'http'}://{self.address}"
        self._options = protection.options if protection else {}
        self.remote_read, self.remote_write = list(remote_read), list(remote_write)
        self.targets, self.job, self.token = list(targets), job, token
        self.alertmanagers = [url.removeprefix("http://") for url in alertmanagers]
        self.external_labels = external_labels or {}
        self.write_rules(rules)
        self._write_config()
        self.process = Process(name, [
            monitoring.program("prometheus"), f"--config.file={self.directory / 'prometheus.yml'}",
            f"--storage.tsdb.path={self.directory / 'data'}", f"--web.listen-address={self.address}",
            "--web.enable-lifecycle", f"--rules.alert.resend-delay={resend_delay}", "--log.level=info",
            *([f"--web.config.file={protection.file}"] if protection else []),
        ], self.directory)

    def _write_config(self):
        (self.directory / "prometheus.yml").write_text(yaml.safe_dump({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "200ms",
                       "external_labels": self.external_labels},
            "rule_files": ["rules.yml"],
            "scrape_configs": [{"job_name": self.job, "static_configs": [{"targets": self.targets}],
                                **({"authorization": {"credentials": self.token}} if self.token else {})}],
            "remote_read": [{"url": url, "read_recent": True} for url in self.remote_read],
            "remote_write": self.remote_write,
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": self.alertmanagers}]}]},
        }))

    def write_rules(self, rules):
        groups = {"groups": [{"name": "test", "rules": list(rules)}]}
        (self.directory / "rules.yml").write_text(yaml.safe_dump(groups))

    def start(self):
        self.process.start().wait_ready(lambda: request("GET", self.url + "/-/ready", **self._options).ok)
        return self

    def reload(self):
        answer = request("POST", self.url + "/-/reload")
        assert answer.ok, answer.text

    def query(self, expression):
        """The result of an instant query, as the API gives it."""
        answer = request("GET", f"{self.url}/api/v1/query?query={quote(expression)}")
        assert answer.ok, answer.text
        return answer.json["data"]["result"]

    def alerts(self):
        return request("GET", self.url + "/api/v1/alerts").json["data"]["alerts"]

    def stop(self):
        return self.process.stop()
