"""Free TCP ports on loopback.

Taken below the range the kernel gives to outgoing connections, so that between our look and the server's bind nobody
else's connection gets the same one. Each worker of pytest-xdist takes them from a range of its own, for the same reason.
"""
import os
import random
import socket

FIRST, END = 12000, 32000
_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
_workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_share = (END - FIRST) // _workers
_range = range(FIRST + _worker * _share, FIRST + (_worker + 1) * _share)
_given = set()


def free_port():
    for _ in range(1000):
        port = random.choice(_range)
        if port in _given:
            continue
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            try:
                tcp.bind(("127.0.0.1", port))
                udp.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given.add(port)
        return port
    raise RuntimeError("no free port")
