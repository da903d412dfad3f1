"""Cortex as one program: it keeps the samples of each tenant apart, and refuses requests that name no tenant."""
import pathlib

import yaml

from . import peers
from .http import Server, request
from .ports import free_port
from .process import Process

PEER = "cortex"
HERE = "127.0.0.1"


def missing():
    return None if peers.find(PEER) else peers.how_to_build(PEER)


def make_config(directory, http, grpc):
    """docs/configuration/single-process-config-blocks-local.yaml of Cortex, on this machine alone, with tenants."""
    ring = {"kvstore": {"store": "inmemory"}, "instance_addr": HERE}
    return {
        "auth_enabled": True,
        "server": {"http_listen_address": HERE, "http_listen_port": http, "grpc_listen_address": HERE, "grpc_listen_port": grpc},
        "distributor": {"shard_by_all_labels": True, "ring": ring},
        "ingester": {"lifecycler": {"address": HERE, "min_ready_duration": "0s", "final_sleep": "0s", "num_tokens": 64,
                                    "ring": {"kvstore": {"store": "inmemory"}, "replication_factor": 1}}},
        "blocks_storage": {"backend": "filesystem", "filesystem": {"dir": str(directory / "blocks")},
                           "tsdb": {"dir": str(directory / "tsdb")}, "bucket_store": {"sync_dir": str(directory / "sync")}},
        "compactor": {"data_dir": str(directory / "compactor"), "sharding_ring": ring},
        "store_gateway": {"sharding_ring": ring},
        "ruler": {"ring": ring, "rule_path": str(directory / "rule-files")},
        "ruler_storage": {"backend": "local", "local": {"directory": str(directory / "rules")}},
        "alertmanager": {"external_url": "http://localhost/alertmanager", "data_dir": str(directory / "alertmanager"),
                         "sharding_ring": ring, "cluster": {"listen_address": ""}},
        "alertmanager_storage": {"backend": "local", "local": {"path": str(directory / "alerts")}},
    }


class Cortex:
    def __init__(self, directory, name=PEER):
        self.directory = pathlib.Path(directory)
        for folder in "alerts", "rules":
            (self.directory / folder).mkdir(parents=True, exist_ok=True)
        http, grpc = free_port(), free_port()
        self.url = f"http://{HERE}:{http}"
        config = self.directory / "cortex.yaml"
        config.write_text(yaml.safe_dump(make_config(self.directory, http, grpc)))
        self.process = Process(name, [peers.find(PEER) / "cortex", f"-config.file={config}"], self.directory)

    def start(self):
        self.process.start().wait_ready(lambda: request("GET", self.url + "/ready").ok)
        return self

    def stop(self):
        return self.process.stop()


class Writer:
    """A proxy before Cortex that names the tenant of what a Prometheus writes: Debian's 2.42 does not send the `headers` of
    `remote_write`."""

    def __init__(self, cortex, tenant):
        names = ("Content-Encoding", "Content-Type", "X-Prometheus-Remote-Write-Version")

        def handle(asked):
            answer = request("POST", f"{cortex.url}/api/v1/push", asked.body,
                             {"X-Scope-OrgID": tenant, **{name: asked.headers[name] for name in names}})
            return answer.status, {}, answer.body

        self._server = Server(handle)
        self.remote_write = [{"url": self._server.url, "queue_config": {"batch_send_deadline": "500ms"}}]

    def stop(self):
        self._server.stop()
