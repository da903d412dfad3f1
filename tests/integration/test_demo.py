"""The demo as a user runs it. It is built where it has not been; what it needs is installed where tests run."""
import os
import pathlib
import re
import signal
import socket
import subprocess
import urllib.parse
import urllib.request

import pytest

from harness.daemon import ROOT, environment
from harness.wait import eventually

BUILD_SECONDS = 600

pytestmark = pytest.mark.xdist_group("demo")    # one at a time: it takes the ports that users expect, where they are free


class Demo:
    def __init__(self, directory, *options):
        self.output = pathlib.Path(directory) / "demo.txt"
        with open(self.output, "wb") as output:
            self.popen = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", ROOT / "deploy/demo", *options], stdin=subprocess.DEVNULL,
                stdout=output, stderr=output, start_new_session=True, env=environment(HOME=directory, TMPDIR=directory))
        self.pids = set()

    @property
    def text(self):
        return self.output.read_text()

    def children(self):
        """The processes it has started, also those that are in sessions of their own."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    found[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                except (OSError, ValueError):
                    continue    # it has just ended
        ours = {self.popen.pid}
        while more := {pid for pid, parent in found.items() if parent in ours} - ours:
            ours |= more
        return ours - {self.popen.pid}

    def wait_running(self):
        eventually(lambda: self.popen.poll() is not None or "logs, action log" in self.text, BUILD_SECONDS, 0.2,
                   "the demo runs")
        assert self.popen.poll() is None, self.text
        self.pids = self.children()
        assert len(self.pids) == 4, "workload, alertscaler, Alertmanager, Prometheus"

    def check_gone(self, directory):
        """Nothing of it runs or is left behind."""
        for url in re.findall(r"http://127\.0\.0\.1:\d+", self.text):
            with pytest.raises(OSError):
                socket.create_connection(("127.0.0.1", urllib.parse.urlsplit(url).port), 1)
        assert not [pid for pid in self.pids if pathlib.Path(f"/proc/{pid}").exists()]
        assert not list(pathlib.Path(directory).glob("alertscaler-demo-*"))


@pytest.fixture
def demo(tmp_path):
    made = []

    def make(*options):
        made.append(Demo(tmp_path, *options))
        return made[-1]

    yield make
    for one in made:
        if one.popen.poll() is None:
            one.popen.send_signal(signal.SIGTERM)
            try:
                one.popen.wait(60)
            except subprocess.TimeoutExpired:
                one.popen.kill()
                raise


@pytest.mark.seconds(BUILD_SECONDS + 200)
def test_the_workload_is_scaled_up_and_down_again(demo, tmp_path):
    one = demo("--seconds", "200")
    one.wait_running()
    page = re.search(r"Open this page.*?(http://127\.0\.0\.1:\d+/)\n", one.text, re.DOTALL)[1]
    with urllib.request.urlopen(page, timeout=30) as answer:    # as a browser would, without a credential
        assert "demo" in answer.read().decode()

    def read_steps():
        return [(int(a), int(b)) for a, b in re.findall(r"scaled from (\d+) to (\d+) by rule", one.text)]

    def is_done():
        return any(b > a for a, b in read_steps()) and any(b < a for a, b in read_steps())

    eventually(lambda: one.popen.poll() is not None or is_done(), 240, 0.2, "it is scaled up and down")
    one.popen.send_signal(signal.SIGINT)
    assert one.popen.wait(60) == 0 and is_done(), one.text
    assert "The workload was scaled up and down again." in one.text
    steps = read_steps()
    summary = re.search(r"Scaled up (\d+) times and down (\d+) times", one.text)
    assert summary and [int(n) for n in summary.groups()] == [sum(b > a for a, b in steps), sum(b < a for a, b in steps)]
    assert re.search(r"alert \w+ fires; rule", one.text)
    one.check_gone(tmp_path)


@pytest.mark.seconds(BUILD_SECONDS + 100)
def test_ctrl_c_ends_it_cleanly(demo, tmp_path):
    one = demo()
    one.wait_running()
    os.killpg(one.popen.pid, signal.SIGINT)         # as a terminal does
    assert one.popen.wait(60) == 0, one.text
    assert "Traceback" not in one.text and "Scaled up" in one.text
    one.check_gone(tmp_path)


@pytest.mark.seconds(BUILD_SECONDS + 100)
def test_a_workload_that_stands_still_does_not_end_it(demo):
    one = demo()
    one.wait_running()
    workload, = [pid for pid in one.pids if "workload.py" in pathlib.Path(f"/proc/{pid}/cmdline").read_text()]
    os.kill(workload, signal.SIGSTOP)
    eventually(lambda: one.popen.poll() is not None or "the workload does not say its load" in one.text, what="it is said")
    os.kill(workload, signal.SIGCONT)
    said = one.text.count(" % used")
    eventually(lambda: one.popen.poll() is not None or one.text.count(" % used") > said, what="it goes on")
    one.popen.send_signal(signal.SIGINT)
    assert one.popen.wait(60) == 0 and "Traceback" not in one.text, one.text


@pytest.mark.seconds(BUILD_SECONDS + 100)
def test_too_short_a_time_is_said(demo, tmp_path):
    """Status 0 means that it was scaled up and down: nothing else does."""
    one = demo("--seconds", "1")
    assert one.popen.wait(BUILD_SECONDS) == 1, one.text
    assert "was not scaled up and down again" in one.text
    one.check_gone(tmp_path)
