"""Instructions that the daemon takes for a request, counted by valgrind's callgrind: they are steady where times are not.

The kernel's work is not in them. Valgrind lets one thread run at a time; what each took is counted all the same.
"""
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess

from daemon import Daemon, group, notification_of
from figures import report_rounds

ROUNDS = 3
PROFILES = os.environ.get("BENCH_PROFILES")  # a folder: what callgrind_annotate reads is kept there


class Counted:
    """The daemon, once more under callgrind, on what it has stored so far."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.dumps = 0
        daemon.stop()
        daemon.start(["valgrind", "-q", "--tool=callgrind", "--separate-threads=yes", "--instr-atstart=no",
                      "--callgrind-out-file=callgrind"], ["--sandbox=off"])
        self.control("--instr=on")

    def control(self, command):
        subprocess.run(["callgrind_control", command, str(self.daemon.process.pid)], check=True, capture_output=True)

    def take(self):
        """Instructions since the last time: of the event loop, and of all other threads."""
        self.control("--dump")
        self.dumps += 1
        totals = {int(path.name.rsplit("-", 1)[1]): int(re.search(r"^totals: (\d+)$", path.read_text(), re.M)[1])
                  for path in self.dumped()}
        if not totals:
            raise SystemExit("callgrind_control left no counts")
        return totals[1], sum(totals.values()) - totals[1]

    def end(self):
        """What comes now, the stop of a daemon with a million incidents say, is not counted, and faster for it."""
        self.control("--instr=off")

    def dumped(self):
        return list(self.daemon.folder.glob(f"callgrind.{self.dumps}-*"))

    def keep(self, name):
        if PROFILES:
            for path in self.dumped():
                shutil.copy(path, pathlib.Path(PROFILES) / f"{name}-thread-{path.name[-1]}")


class Senders:
    """Keep-alive connections that each send a request at the same time, and then read the answers."""

    def __init__(self, port, count):
        self.connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
        for connection in self.connections:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, bodies):
        for first in range(0, len(bodies), len(self.connections)):
            turn = list(zip(self.connections, bodies[first:]))
            for connection, body in turn:
                connection.sendall(b"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                                   b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            for connection, _ in turn:
                self.receive(connection)

    @staticmethod
    def receive(connection):
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += connection.recv(65536)
        head, _, body = answer.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(answer.decode())
        missing = int(re.search(rb"content-length: *(\d+)", head, re.I)[1]) - len(body)
        while missing > 0:
            missing -= len(connection.recv(min(missing, 65536)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for connection in self.connections:
            connection.close()


# Requests of a round, their bodies, and the bound.
LOADS = {"a repeat": (2000, lambda first, count: [notification_of(0).encode()] * count, "below 60,000"),
         "a group of 100 repeats": (200, lambda first, count: [group(0, 100).encode()] * count, ""),
         "a new alert": (2000, lambda first, count: [notification_of(f"new-{pod}").encode()
                                                     for pod in range(first, first + count)], "")}


def count(counted, name, connections, note=""):
    """Prints the median of the rounds, a request; returns it."""
    requests, bodies, bound = LOADS[name]
    rounds = []
    with Senders(counted.daemon.port, connections) as senders:
        senders.send(bodies(0, requests))
        counted.take()
        for number in range(1, ROUNDS + 1):
            load = bodies(number * requests, requests)
            senders.send(load)
            rounds.append([taken / requests for taken in counted.take()])
    counted.keep(f"{name} {connections}{note}".replace(" ", "-").replace(",", ""))
    loop = statistics.median(loop for loop, _ in rounds)
    report_rounds(f"instructions of {name}, {connections} at a time{note}", [sum(both) for both in rounds], "",
                  f"{bound} (event loop {loop:,.0f})".strip())
    return statistics.median(sum(both) for both in rounds)


def bench_instructions(build):
    for connections in (1, 16):
        for name in LOADS:
            with Daemon(build / "src/alertscaler", core="0,1") as daemon:
                count(Counted(daemon), name, connections)
