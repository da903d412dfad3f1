"""Thanos: a sidecar beside each Prometheus, a querier over the sidecars, and a query frontend before the querier."""
import pathlib

from . import peers
from .http import request
from .ports import free_port
from .process import Process

PEER = "thanos"


def missing():
    return None if peers.find(PEER) else peers.how_to_build(PEER)


class Thanos:
    """One component. flags: the rest of its command line."""

    def __init__(self, directory, component, *flags, name=None, has_grpc=True):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        address, self.grpc = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        self.url = f"http://{address}"
        self.process = Process(name or f"thanos-{component}", [
            peers.find(PEER) / "thanos", component, f"--http-address={address}", *([f"--grpc-address={self.grpc}"] if has_grpc else []),
            *flags,
        ], self.directory)

    def start(self):
        self.process.start().wait_ready(lambda: request("GET", self.url + "/-/ready").ok)
        return self

    def stop(self):
        return self.process.stop()


def make_sidecar(prometheus):
    return Thanos(prometheus.directory, "sidecar", f"--prometheus.url={prometheus.url}", f"--tsdb.path={prometheus.directory / 'data'}",
                  name=f"sidecar-of-{prometheus.process.name}")


def make_querier(directory, sidecars, *flags):
    """It waits for each sidecar, also for one that is gone."""
    return Thanos(directory, "query", *(f"--endpoint-strict={sidecar.grpc}" for sidecar in sidecars), *flags)


def make_frontend(directory, querier):
    return Thanos(directory, "query-frontend", f"--query-frontend.downstream-url={querier.url}", has_grpc=False)
