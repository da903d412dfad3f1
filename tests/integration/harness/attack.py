"""Peers that mean no good, each kind in a process of its own: attack.py KIND PORT SECONDS [CONNECTIONS].

Only ever towards loopback, bounded in time, in connections at a time and in connections a second. Prints at its end, as
JSON, how many connections it opened, how many of them the server closed, and how often it was answered what.
"""
import base64
import collections
import json
import os
import pathlib
import resource
import select
import socket
import ssl
import subprocess
import sys
import time

HOST = b"Host: a\r\n"
LARGE = 3 << 20
ZEROS = bytes(65536)
LEAST = 60          # connections: what is an attack at all
PATIENCE = 60.0     # s: how long a busy machine may take to make them


class Kind:
    """at_once is sent first, then so many zeros more, and drip each second; takes: whether answers are read; leaves: every
    other one hangs up at once; is_answered: each is, at once, if not by 503."""

    def __init__(self, at_once=b"", drip=b"", much=0, takes=True, connections=300, a_second=1500, leaves=False, is_answered=False):
        self.at_once, self.drip, self.much, self.takes, self.is_answered = at_once, drip, much, takes, is_answered
        self.connections, self.a_second, self.leaves = connections, a_second, leaves


def post(fields):
    return b"POST /webhook HTTP/1.1\r\n" + HOST + fields + b"\r\n"


KINDS = {
    "silent": Kind(),
    "idle": Kind(b"GET /-/healthy HTTP/1.1\r\n" + HOST + b"\r\n", is_answered=True),
    "slow-heads": Kind(b"POST /webhook HTTP/1.1\r\nX: ", b"x"),
    "slow-bodies": Kind(post(b"Content-Length: 1000\r\n"), b" "),
    "slow-chunks": Kind(post(b"Transfer-Encoding: chunked\r\n") + b"1;", b"x"),
    "flood": Kind(leaves=True),
    "large-heads": Kind(b"GET / HTTP/1.1\r\nX: " + 40000 * b"x", connections=100, is_answered=True),
    "large-bodies": Kind(post(b"Content-Length: %d\r\n" % LARGE), much=LARGE - 1, connections=60),
    "too-large-bodies": Kind(post(b"Content-Length: 99999999999\r\n"), much=1 << 20, connections=60, is_answered=True),
    "large-chunks": Kind(post(b"Transfer-Encoding: chunked\r\n") + b"%x\r\n" % LARGE, much=LARGE, connections=60),
    "compressed": Kind(post(b"Content-Encoding: gzip\r\nContent-Length: 1000\r\n") + 1000 * b"\x1f", connections=100,
                       is_answered=True),
    "pipelines": Kind(2000 * (b"GET /metrics HTTP/1.1\r\n" + HOST + b"\r\n"), takes=False, connections=100),
    "half-handshakes": Kind(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + 100 * b"r"),
    "garbage": Kind(bytes(range(256)) * 8, connections=100, is_answered=True),
    "wrong-passwords": Kind(post(b"Authorization: Basic " + base64.b64encode(b"alertmanager:guessed") +
                                 b"\r\nConnection: close\r\nContent-Length: 2\r\n") + b"{}", connections=100, a_second=300),
}


def goes_on(began, seconds, count):
    """So long, and on a busy machine until it is an attack at all."""
    now = time.monotonic() - began
    return now < seconds or (count < LEAST and now < PATIENCE)


def shake_hands(port, seconds):
    """As many TLS handshakes as one process can do, one after the other; each is one opened and, where it succeeded, one
    answer "tls"."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    began, opened, answers = time.monotonic(), 0, collections.Counter()
    while goes_on(began, seconds, answers["tls"]):
        opened += 1
        with socket.socket() as peer:
            peer.settimeout(seconds)
            try:
                peer.bind((f"127.0.0.{2 + opened % 200}", 0))
                peer.connect(("127.0.0.1", port))
                with context.wrap_socket(peer):
                    answers["tls"] += 1
            except OSError:
                pass
    return {"opened": opened, "closed": opened - answers["tls"], "held": 0, "answers": answers}


class Attacker:
    def __init__(self, kind, port, connections):
        self.kind, self.port, self.connections = kind, port, connections
        self.poll = select.epoll()
        self.open = {}      # descriptor: (socket, what is still to be sent, how much of `much`)
        self.opened = self.closed = 0
        self.answers = collections.Counter()

    def dial(self):
        peer = socket.socket()
        peer.setblocking(False)
        # Other addresses of loopback, so that the ports do not run out.
        peer.bind((f"127.0.0.{2 + self.opened % 200}", 0))
        peer.connect_ex(("127.0.0.1", self.port))
        self.opened += 1
        if self.kind.leaves and self.opened % 2:
            peer.close()
            return
        self.open[peer.fileno()] = [peer, self.kind.at_once, self.kind.much]
        self.poll.register(peer, select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLOUT)

    def hang_up(self, fd):
        self.open.pop(fd)[0].close()

    def send(self, fd):
        entry = self.open[fd]
        peer, rest, much = entry
        try:
            while rest:
                rest = rest[peer.send(rest):]
            while much > 0:
                much -= peer.send(ZEROS[:much])
            self.poll.modify(fd, select.EPOLLIN | select.EPOLLRDHUP)
        except BlockingIOError:
            pass
        entry[1], entry[2] = rest, much

    def read(self, fd):
        """False: the server has closed."""
        got = self.open[fd][0].recv(65536)
        if got.startswith(b"HTTP/1.1 "):
            self.answers[got[9:12].decode()] += 1
        return bool(got)

    def handle(self, fd, what):
        try:
            if what & select.EPOLLOUT:
                self.send(fd)
            if what & (select.EPOLLHUP | select.EPOLLERR):
                raise ConnectionResetError
            if what & select.EPOLLIN and self.kind.takes and not self.read(fd):
                raise ConnectionResetError
            if what & select.EPOLLRDHUP and not self.kind.takes:
                raise ConnectionResetError
        except BlockingIOError:
            pass
        except OSError:
            self.closed += 1
            self.hang_up(fd)

    def drip(self):
        if not self.kind.drip:
            return
        for fd in list(self.open):
            try:
                if not self.open[fd][1]:
                    self.open[fd][0].send(self.kind.drip)
            except BlockingIOError:
                pass
            except OSError:
                self.closed += 1
                self.hang_up(fd)

    def run(self, seconds):
        began, turn = time.monotonic(), 0
        while goes_on(began, seconds, 0 if self.kind.is_answered and not self.answers.keys() - {"503"} else self.opened):
            now = time.monotonic() - began
            if now >= turn:
                self.drip()
                turn += 1
            allowed = (now + 0.2) * self.kind.a_second
            for _ in range(100):
                if len(self.open) >= self.connections or self.opened >= allowed:
                    break
                self.dial()
            for fd, what in self.poll.poll(0.02, 200):
                if fd in self.open:
                    self.handle(fd, what)
            if not self.kind.takes and self.open:
                time.sleep(0.01)


def main():
    name, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    if name == "handshakes":
        os.nice(5)
        print(json.dumps(shake_hands(port, seconds)))
        return
    kind = KINDS[name]
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    attacker = Attacker(kind, port, int(sys.argv[4]) if len(sys.argv) > 4 else kind.connections)
    os.nice(5)      # who attacks has a machine of its own
    attacker.run(seconds)
    print(json.dumps({"opened": attacker.opened, "closed": attacker.closed, "held": len(attacker.open),
                      "answers": attacker.answers}))


class Attack:
    """One that runs beside the test."""

    def __init__(self, kind, port, seconds, *connections):
        argv = [sys.executable, pathlib.Path(__file__), kind, port, seconds, *connections]
        self.kind, self.seconds = kind, seconds
        self.popen = subprocess.Popen([str(a) for a in argv], stdout=subprocess.PIPE, text=True)

    @property
    def running(self):
        return self.popen.poll() is None

    def wait(self):
        """What came of it."""
        output, _ = self.popen.communicate(timeout=self.seconds + 2 * PATIENCE)
        assert self.popen.returncode == 0, output
        return json.loads(output)

    def stop(self):
        self.popen.kill()
        self.popen.wait()


if __name__ == "__main__":
    main()
