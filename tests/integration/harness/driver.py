"""A layer on its own: tests/integration/driver.h, one JSON command a line, one JSON answer a line."""
import json
import os
import pathlib
import select
import subprocess
import time

from .daemon import ROOT, SANITIZER_REPORT, environment, find_binary
from .wait import PATIENCE


def find_driver(name):
    """Beside the binary that is tested."""
    binary = find_binary()
    builds = [binary.parent.parent] if binary else [ROOT / "build/asan", ROOT / "build"]
    return next((b / "tests/integration" / name for b in builds if (b / "tests/integration" / name).is_file()), None)


class Driver:
    """name: of the program."""

    name = None

    def __init__(self, directory, *options, env=None):
        self.log = pathlib.Path(directory) / f"{self.name}.log"
        self._tickets = 0
        self._answers = {}
        self._rest = b""
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", find_driver(self.name), *map(str, options)], cwd=directory,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment(**(env or {})))

    def send(self, **command):
        """Sends a command; its ticket."""
        self._tickets += 1
        self._process.stdin.write(json.dumps({"ticket": self._tickets, **command}).encode() + b"\n")
        self._process.stdin.flush()
        return self._tickets

    def wait(self, ticket, timeout=PATIENCE):
        """The answer to a ticket."""
        end = time.monotonic() + timeout
        while ticket not in self._answers:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0, end - time.monotonic()))
            assert ready, f"no answer in {timeout} s: {self.log.read_text()}"
            self._take(os.read(self._process.stdout.fileno(), 65536))
        return self._answers.pop(ticket)

    def _take(self, data):
        assert data, f"the driver is gone: {self.log.read_text()}"
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            answer = json.loads(line)
            self._answers[answer["ticket"]] = answer

    def stop(self):
        self._process.stdin.close()
        status = self._process.wait(PATIENCE)
        self._process.stdout.close()
        log = self.log.read_text()
        assert not SANITIZER_REPORT.search(log), log
        assert status == 0, log
