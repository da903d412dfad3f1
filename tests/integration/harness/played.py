"""A daemon that is played: for commands that send requests to one."""
import subprocess

from harness.daemon import environment, find_binary
from harness.http import Server


def run(*words, env=None, timeout=40):
    """The finished process; sanitizers of a test build speak through its exit status."""
    binary = find_binary()
    assert binary, "alertscaler is not built: run tests/run unit"
    return subprocess.run([binary, *words], env=environment(**(env or {})), timeout=timeout, text=True,
                          capture_output=True)


class Played:
    """A daemon that records what it is asked and answers as told."""

    def __init__(self):
        self.asked = []
        self.answer = (200, {}, b"")
        self.server = Server(self.handle)
        self.url = self.server.url

    def handle(self, asked):
        self.asked.append(asked)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer(asked) if callable(self.answer) else self.answer

    def run(self, *words, **more):
        return run(*words, f"--url={self.url}", **more)
