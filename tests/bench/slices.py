"""How long the event loop of a daemon works between two waits."""
import pathlib
import signal
import subprocess
import tempfile
import time

EVENTS = "syscalls:sys_enter_epoll_wait,syscalls:sys_exit_epoll_wait"


def measure(pid, work):
    """The slices in ms while work() runs, as perf sees them; none without perf and the right to use it."""
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder) / "perf.data"
        try:
            perf = subprocess.Popen(["perf", "record", "-q", "-o", trace, "-e", EVENTS, "-t", str(pid)], stderr=subprocess.DEVNULL)
        except FileNotFoundError:
            return []
        time.sleep(1)
        work()
        perf.send_signal(signal.SIGINT)
        perf.wait()
        return read(trace)


def read(trace):
    text = subprocess.run(["perf", "script", "-i", trace, "-F", "time,event"], capture_output=True, text=True, check=False).stdout
    started, found = None, []
    for line in text.splitlines():
        at = float(line.split(":")[0])
        if "exit" in line:
            started = at
        elif started is not None:
            found.append(1000 * (at - started))
    return found
