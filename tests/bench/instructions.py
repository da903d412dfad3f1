"""Instructions that the daemon takes for a request, counted by valgrind's callgrind: they are steady where times are not.

The kernel's work is not in them. Valgrind lets one thread run at a time; what each took is counted all the same.
"""
import contextlib
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess

from daemon import LABELS, Daemon, alert, notification

ROUNDS = 3
PROFILES = os.environ.get("BENCH_PROFILES")  # a folder: what callgrind_annotate reads is kept there


class Counted(Daemon):
    """The daemon under callgrind, with a count of each stretch of work."""

    def __init__(self, binary, **options):
        self.dumps = 0
        super().__init__(binary, core="0,1", options=["--sandbox=off"],
                         wrapper=["valgrind", "-q", "--tool=callgrind", "--separate-threads=yes",
                                  "--callgrind-out-file=callgrind"], **options)

    def take(self):
        """Instructions since the last time: of the event loop, and of all other threads."""
        subprocess.run(["callgrind_control", "--dump", str(self.process.pid)], check=True, capture_output=True)
        self.dumps += 1
        totals = {}
        for path in self.folder.glob(f"callgrind.{self.dumps}-*"):
            totals[int(path.name.rsplit("-", 1)[1])] = int(re.search(r"^totals: (\d+)$", path.read_text(), re.M)[1])
        if not totals:
            raise SystemExit("callgrind_control left no counts")
        return totals[1], sum(totals.values()) - totals[1]

    def keep(self, name):
        if PROFILES:
            for path in self.folder.glob(f"callgrind.{self.dumps}-*"):
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


def one_alert(number=None):
    return notification([alert(LABELS if number is None else LABELS | {"pod": f"checkout-{number}"})]).encode()


def group_of_100():
    return notification([alert(LABELS | {"pod": f"checkout-{i}"}) for i in range(100)]).encode()


def count(daemon, name, connections, requests, bodies):
    """Medians of the rounds: instructions a request of the event loop, of other threads and of both, and their spread."""
    rounds = []
    with Senders(daemon.port, connections) as senders:
        senders.send(bodies(0, requests))
        daemon.take()
        for number in range(1, ROUNDS + 1):
            load = bodies(number * requests, requests)
            senders.send(load)
            rounds.append([taken / requests for taken in daemon.take()])
        daemon.keep(name.replace(" ", "-"))
    both = sorted(loop + others for loop, others in rounds)
    return (statistics.median(loop for loop, _ in rounds), statistics.median(others for _, others in rounds),
            statistics.median(both), (both[-1] - both[0]) / both[0])


LOADS = {"a repeat": (2000, lambda first, count: [one_alert()] * count, "below 60,000"),
         "a group of 100 repeats": (200, lambda first, count: [group_of_100()] * count, ""),
         "a new alert": (2000, lambda first, count: [one_alert(i) for i in range(first, first + count)], "")}


def print_count(daemon, name, connections, load):
    requests, bodies, bound = load
    loop, others, both, spread = count(daemon, f"{name} {connections}", connections, requests, bodies)
    print(f"{f'instructions of {name}, {connections} at a time':<58} {both:>12,.0f} {'':<14} {bound} "
          f"(event loop {loop:,.0f}, other threads {others:,.0f}; rounds differ by {spread:.1%})", flush=True)


def bench_instructions(build):
    for connections in (1, 16):
        for name, load in LOADS.items():
            with Counted(build / "src/alertscaler") as daemon:
                print_count(daemon, name, connections, load)
