"""Alertmanager with intervals short enough for tests; several of them form a cluster."""
import datetime
import pathlib

import yaml

from . import monitoring
from .http import request
from .ports import free_port
from .process import Process
from .wait import eventually


def missing():
    return monitoring.missing("alertmanager", "amtool")


def _time(seconds_from_now):
    moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds_from_now)
    return moment.isoformat().replace("+00:00", "Z")


class Alertmanager:
    """webhook: URL of the one receiver. route and http_config override the defaults, as in Alertmanager's own file."""

    def __init__(self, directory, webhook, name="alertmanager", peers=(), clustered=False, route=None, http_config=None,
                 send_resolved=True, receiver="alertscaler", inhibit_rules=(), time_intervals=()):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.url = f"http://127.0.0.1:{free_port()}"
        self.cluster_address = f"127.0.0.1:{free_port()}" if clustered else ""
        self.config = self.directory / "alertmanager.yml"
        self.config.write_text(yaml.safe_dump({
            "route": {"receiver": receiver, "group_by": ["..."], "group_wait": "0s", "group_interval": "1s",
                      "repeat_interval": "1h", **(route or {})},
            "inhibit_rules": list(inhibit_rules),
            "time_intervals": list(time_intervals),
            "receivers": [{"name": receiver, "webhook_configs": [
                {"url": webhook, "send_resolved": send_resolved, "http_config": http_config or {}}]}],
        }))
        argv = [
            monitoring.program("alertmanager"), f"--config.file={self.config}", f"--storage.path={self.directory / 'data'}",
            f"--web.listen-address={self.url.removeprefix('http://')}", "--log.level=debug",
            f"--cluster.listen-address={self.cluster_address}",
        ]
        if clustered:
            argv += [f"--cluster.advertise-address={self.cluster_address}", "--cluster.peer-timeout=2s",
                     "--cluster.gossip-interval=50ms", "--cluster.pushpull-interval=1s", "--cluster.settle-timeout=2s"]
            argv += [f"--cluster.peer={peer.cluster_address}" for peer in peers]
        self.process = Process(name, argv, self.directory)

    def start(self):
        self.process.start().wait_ready(lambda: request("GET", self.url + "/-/ready").ok)
        return self

    def wait_meshed(self, members):
        """Until so many members see each other and have settled."""

        def settled():
            cluster = request("GET", self.url + "/api/v2/status").json["cluster"]
            return cluster["status"] == "ready" and len(cluster["peers"]) == members

        eventually(settled, what=f"{members} Alertmanagers form a cluster")
        return self

    def fire(self, seconds=300, annotations=None, **labels):
        """Posts an alert as Prometheus does; it resolves by itself after so many seconds."""
        alert = {"labels": labels, "annotations": annotations or {}, "startsAt": _time(0), "endsAt": _time(seconds)}
        answer = request("POST", self.url + "/api/v2/alerts", [alert])
        assert answer.ok, answer.text

    def resolve(self, **labels):
        answer = request("POST", self.url + "/api/v2/alerts", [{"labels": labels, "endsAt": _time(-1)}])
        assert answer.ok, answer.text

    def has_flushed_end(self):
        """Of the one alert that it has: whether it was told of its end, and has looked at it since then to notify of it."""
        has_ended = has_flushed = False
        for line in self.process.log_text().splitlines():
            if 'msg="Received alert"' in line:
                has_ended = "[resolved]" in line
            has_flushed = has_ended and (has_flushed or "msg=flushing" in line)
        return has_flushed

    def alerts(self):
        return request("GET", self.url + "/api/v2/alerts").json

    def silence(self, seconds=300, **labels):
        """Silences alerts with these labels; the silence's id."""
        answer = request("POST", self.url + "/api/v2/silences", {
            "matchers": [{"name": k, "value": v, "isRegex": False, "isEqual": True} for k, v in labels.items()],
            "startsAt": _time(0), "endsAt": _time(seconds), "createdBy": "test", "comment": "test",
        })
        assert answer.ok, answer.text
        return answer.json["silenceID"]

    def unsilence(self, silence):
        answer = request("DELETE", f"{self.url}/api/v2/silence/{silence}")
        assert answer.ok, answer.text

    def stop(self):
        return self.process.stop()


def start_cluster(directory, webhook, members=2, **options):
    """Alertmanagers that share what they have sent, as in production."""
    started = []
    for number in range(members):
        name = f"alertmanager-{number}"
        started.append(Alertmanager(pathlib.Path(directory) / name, webhook, name=name, clustered=True, peers=started[:],
                                    **options).start())
    for member in started:
        member.wait_meshed(members)
    return started
