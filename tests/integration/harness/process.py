"""A server's process: its log in a file, its end when the tests end, however they end."""
import os
import pathlib
import signal
import subprocess

from .wait import PATIENCE, eventually


class Process:
    """Started in a session of its own; the kernel kills it when the thread that started it, pytest's main one, is gone."""

    # The kernel says nothing of a parent that was gone before it was asked to: so the parent is looked at after it.
    guarded = ["setpriv", "--pdeathsig", "KILL", "--", "sh", "-c", 'test "$PPID" = "$0" && exec "$@"']
    everyone = []

    def __init__(self, name, argv, directory, env=None):
        self.name = name
        self.argv = [str(a) for a in argv]
        self.directory = pathlib.Path(directory)
        self.log = self.directory / f"{name}.log"
        self.env = env
        self.popen = None
        Process.everyone.append(self)

    def start(self):
        assert not self.running, f"{self.name} runs already"
        with open(self.log, "ab") as log:
            self.popen = subprocess.Popen(
                [*self.guarded, str(os.getpid()), *self.argv],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.directory, env=self.env, start_new_session=True,
            )
        return self

    @property
    def pid(self):
        return self.popen.pid

    @property
    def running(self):
        return self.popen is not None and self.popen.poll() is None

    def signal(self, number):
        """To the whole process group. A process that is gone gets none."""
        if self.running:
            os.killpg(self.popen.pid, number)

    def pause(self):
        self.signal(signal.SIGSTOP)

    def resume(self):
        self.signal(signal.SIGCONT)

    def kill(self):
        """SIGKILL, as a crash or a power loss would."""
        if self.popen is not None:
            self.signal(signal.SIGKILL)
            return self.popen.wait(PATIENCE)
        return None

    def stop(self, timeout=15):
        """SIGTERM; the exit status, or -9 where it took too long and was killed."""
        if self.popen is None:
            return None
        self.resume()
        self.signal(signal.SIGTERM)
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            return self.kill()

    def wait_ready(self, probe, timeout=PATIENCE):
        """Until probe is true; fails at once when the process ends instead."""
        ended = object()

        def ready():
            try:
                if probe():
                    return True
            except Exception:
                if self.running:
                    raise
            return None if self.running else ended

        seen = eventually(ready, timeout, what=f"{self.name} is ready")
        assert seen is not ended, f"{self.name} ended with status {self.popen.returncode}:\n{self.log_text()[-4000:]}"
        return self

    def log_text(self, offset=0):
        if not self.log.exists():
            return ""
        with open(self.log, "rb") as log:
            log.seek(offset)
            return log.read().decode("utf-8", "replace")

    def resident_bytes(self):
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError(f"{self.name} has no VmRSS")
