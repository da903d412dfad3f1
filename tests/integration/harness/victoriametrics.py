"""VictoriaMetrics, which speaks Prometheus' API with a language of its own and lacks some paths."""
import pathlib

from . import peers
from .http import request
from .ports import free_port
from .process import Process

PEER = "victoriametrics"


def missing():
    return None if peers.find(PEER) else peers.how_to_build(PEER)


class VictoriaMetrics:
    """flags: more of its command line. With -http.pathPrefix, `url` has the prefix."""

    def __init__(self, directory, name=PEER, flags=()):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        address = f"127.0.0.1:{free_port()}"
        prefix = [flag.partition("=")[2] for flag in flags if flag.startswith("-http.pathPrefix=")]
        self.url = f"http://{address}{''.join(prefix)}"
        self.process = Process(name, [
            peers.find(PEER) / "victoria-metrics", f"-storageDataPath={self.directory / 'data'}", f"-httpListenAddr={address}",
            "-retentionPeriod=100y", "-search.latencyOffset=0s", *flags,
        ], self.directory)

    def start(self):
        self.process.start().wait_ready(lambda: request("GET", self.url + "/health").ok)
        return self

    def write(self, text):
        """Samples in Prometheus' text format, which queries see at once."""
        for method, path, body in (("POST", "/api/v1/import/prometheus", text.encode()), ("GET", "/internal/force_flush", None)):
            answer = request(method, self.url + path, body)
            assert answer.ok, answer.text

    def stop(self):
        return self.process.stop()
