"""The source layer on its own: tests/integration/source_driver.c."""
from .daemon import dump_yaml
from .driver import Driver
from .wait import PATIENCE


class SourceDriver(Driver):
    """config: the sections `prometheus` and `alertmanager` of an alertscaler.yaml."""

    name = "source_driver"

    def __init__(self, directory, config):
        (directory / "source.yaml").write_text(dump_yaml(config))
        super().__init__(directory, "--config", directory / "source.yaml")

    def query(self, text, form="number", timeout=PATIENCE):
        return self.wait(self.send(op="query", query=text, form=form, pod_label="pod"), timeout)

    def list(self, timeout=PATIENCE):
        return self.wait(self.send(op="list"), timeout)
