"""Free TCP ports on loopback.

Taken below the range the kernel gives to outgoing connections, so that between our look and the server's bind nobody
else's connection gets the same one.
"""
import random
import socket

_given = set()


def free_port():
    for _ in range(1000):
        port = random.randrange(12000, 32000)
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
