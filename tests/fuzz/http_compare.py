#!/usr/bin/python3
"""http_compare.py ECHO-SERVER [--count N] [--seed N]: our HTTP server against two others that know nothing of it, h11 and Go's
net/http, over broken requests.

Each connection carries one or more requests with a few faults in them, and then ends. What our server took for a request
(method, target, body), h11 must have taken for the same, in the same order: a request that others see differently is one that can be
smuggled past them. What h11 takes and we do not must have been refused, or have come after a request that ends the
connection. With Go the same holds, but either may be the stricter one: what one takes and the other does not, that one must have
refused, or closed before it. So nothing that we take, and nothing that stands before us and passes on, can have its end elsewhere
than others see it.

The faults come from the seed, so that a failure can be repeated; tests/run always takes the same.
"""
import argparse
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile

import h11

HOST = b"Host: a\r\n"
REQUESTS = [
    b"GET / HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /a/b?c=d HTTP/1.1\r\n" + HOST + b"X-Y: \xc3\xa4 b\t\r\n\r\n",
    b"HEAD / HTTP/1.1\r\n" + HOST + b"\r\n",
    b"POST /webhook HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\nContent-Length: 16\r\n\r\n"
    b'{"version":"4"}\n',
    b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 0\r\n\r\n",
    b"PUT / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nhello",
    b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: r\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n",
    b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    b"POST / HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\nok",
    # What smuggling is made of.
    b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG",
    b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n1\r\na\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    b"POST / HTTP/1.0\r\n" + HOST + b"Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n0\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length: 37\r\n\r\nGET /inner HTTP/1.1\r\nHost: b\r\nX: yz\r\n\r\n",
    b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n5;a=\"\r\n\"\r\nhello\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 50\r\n\r\n",
]
TOKENS = [
    b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b";", b",", b"0", b"1", b"5", b"-", b"+", b"0x", b"\x0b", b"\x7f", b"\xff",
    b"Content-Length: 5\r\n", b"Content-Length: 1\r\n", b"Content-Length : 1\r\n", b"Content-Length: 1, 1\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: chunked, gzip\r\n", b"Transfer-Encoding:\tchunked \r\n",
    b"Transfer-Encoding: x\r\n\tchunked\r\n", b"Host: b\r\n", b"X: y\r\n", b" folded\r\n", b"HTTP/1.0", b"HTTP/1.1",
    b"Transfer-Encoding: identity\r\n", b"Transfer_Encoding: chunked\r\n", b"Transfer-Encoding: chunked, chunked\r\n",
    b"Content-Length: +5\r\n", b"Content-Length: 0x5\r\n", b"Content-Length:\r\n", b"Content-Length: 5 5\r\n", b"Content-Length: 5,\r\n",
    b"\nTransfer-Encoding: chunked\r\n", b"X: y\nTransfer-Encoding: chunked\r\n", b"X: y\rContent-Length: 9\r\n", b":\r\n", b"\x85", b"\xa0",
    b"Connection: close\r\n", b"Connection: Content-Length\r\n", b"Trailer: Content-Length\r\n", b"0;\r\n\r\n", b"00\r\n\r\n", b"5 \r\nhello\r\n",
    b"0\r\n\r\n", b"5\r\nhello\r\n", b"00000000000000000005", b"FFFFFFFFFFFFFFFF", b"GET /smuggled HTTP/1.1\r\n" + HOST + b"\r\n",
]


def mutate(rng, data):
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3, 5))):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(6)
        if kind == 0:
            data = data[:at] + data[at + 1 :]
        elif kind == 1:
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        elif kind == 2:  # a whole line more, or again
            ends = [i + 2 for i in range(len(data)) if data[i : i + 2] == b"\r\n"]
            at = rng.choice(ends) if ends else 0
            data = data[:at] + rng.choice(TOKENS) + data[at:]
        elif kind == 3:
            end = min(len(data), at + rng.randrange(40))
            data = data[:end] + data[at:]
        elif kind == 4 and rng.randrange(4) == 0:
            data = data[:at]
        else:
            data = data[:at] + rng.choice(TOKENS) + data[at:]
    return data


def read_one_with_h11(data):
    """(request, body, what is left, whether the connection goes on); None where there is no whole good request."""
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(data)
    connection.receive_data(b"")
    request, body = None, b""
    try:
        while not isinstance(event := connection.next_event(), h11.EndOfMessage):
            if isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            else:  # the end
                return None
        connection.send(h11.Response(status_code=204, headers=[]))
        connection.send(h11.EndOfMessage())
    except h11.ProtocolError:
        return None
    goes_on = connection.our_state is not h11.MUST_CLOSE or stays_open(request)
    return request, body, connection.trailing_data[0], goes_on


def read_with_h11(data):
    """The requests that h11 takes: [(method, target, body)]. An empty line before a request, which RFC 9112 (2.2) has servers
    skip, it would refuse."""
    taken, goes_on = [], True
    while goes_on and (one := read_one_with_h11(data.removeprefix(b"\r\n"))):
        request, body, data, goes_on = one
        taken.append((request.method, request.target, body))
    return taken


def stays_open(request):
    """As HTTP/1.0 with keep-alive does, which h11 leaves out."""
    options = [o.strip().lower() for name, value in request.headers if name == b"connection" for o in value.split(b",")]
    return request.http_version == b"1.0" and b"keep-alive" in options and b"close" not in options


def read_with_server(port, data):
    """The requests that an echo server takes, the status of its refusal or 0, and whether it said to close."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as peer:
        peer.sendall(data)
        peer.shutdown(socket.SHUT_WR)
        answers = b""
        while chunk := peer.recv(65536):
            answers += chunk
    taken, refusal, closed = [], 0, False
    while answers:
        head, _, answers = answers.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        status = int(lines[0].split(b" ")[1])
        if status == 100:
            continue
        headers = dict(line.split(b": ", 1) for line in lines[1:] if b": " in line)
        connection = headers.get(b"Connection")
        closed = connection == b"close" or (lines[0].startswith(b"HTTP/1.0 ") and connection != b"keep-alive")
        method, _, target = headers.get(b"X-Request", b"").partition(b" ")
        size = 0 if method == b"HEAD" else int(headers.get(b"Content-Length", len(answers)))
        body, answers = answers[:size], answers[size:]
        if status == 200:
            taken.append((method, target, body))
        else:
            refusal = status
    return taken, refusal, closed


def same(ours, theirs):
    method, target, body = theirs
    path, _, query = target.partition(b"?")
    for scheme in (b"http://", b"https://"):
        if path.lower().startswith(scheme):
            path = b"/" + path[len(scheme) :].partition(b"/")[2]
    if method == b"HEAD":
        body = b""  # which its answer does not show
    return ours == (method, path + b"?" + query, body)


def compare_with_h11(data, ours, refusal, closed):
    theirs = read_with_h11(data)
    if len(ours) > len(theirs):
        return f"we take {ours}, h11 only {theirs}"
    for our, their in zip(ours, theirs):
        if not same(our, their):
            return f"we take {our}, h11 {their}"
    if len(ours) < len(theirs) and not refusal and not closed:
        return f"h11 takes {theirs}, we silently only {ours}"
    return None


def compare_with_go(ours, refusal, closed, theirs, their_refusal, they_closed):
    for our, their in zip(ours, theirs):
        if not same(our, their):
            return f"we take {our}, Go {their}"
    if len(ours) > len(theirs) and not their_refusal and not they_closed:
        return f"we take {ours}, Go silently only {theirs}"
    if len(ours) < len(theirs) and not refusal and not closed:
        return f"Go takes {theirs}, we silently only {ours}"
    return None


def find_go():
    candidates = [shutil.which("go"), *sorted(map(str, pathlib.Path("/usr/lib").glob("go-*/bin/go")), reverse=True)]
    return next((go for go in candidates if go and os.access(go, os.X_OK)), None)


def build_go_server(directory):
    source = pathlib.Path(__file__).with_name("go_server.go")
    go = find_go()
    if not go:
        sys.exit("there is no go command: run tests/install test")
    cache = os.environ.get("GOCACHE") or str(pathlib.Path.home() / ".cache" / "alertscaler" / "go")
    env = {"PATH": os.environ["PATH"], "HOME": str(directory), "GOCACHE": cache, "GO111MODULE": "off"}
    subprocess.run([go, "build", "-o", directory / "go_server", source], env=env, check=True)
    return directory / "go_server"


class Server:
    def __init__(self, program):
        self.popen = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = int(self.popen.stdout.readline())

    def read(self, data):
        return read_with_server(self.port, data)

    def stop(self):
        self.popen.stdin.close()
        return self.popen.wait(timeout=30)


def compare(ours, go, count, seed):
    rng = random.Random(seed)
    agreed = refused = go_agreed = 0
    for number in range(count):
        data = mutate(rng, b"".join(rng.choice(REQUESTS) for _ in range(rng.choice((1, 1, 2, 3)))))
        read = ours.read(data)
        theirs = go.read(data)
        fault = compare_with_h11(data, *read) or compare_with_go(*read, *theirs)
        if fault:
            print(f"case {number}: {data!r}\n{fault}")
            return False
        agreed += len(read[0])
        go_agreed += min(len(read[0]), len(theirs[0]))
        refused += bool(read[1])
    print(f"{count} connections: {agreed} requests taken as h11 takes them, {go_agreed} of them as Go does; {refused} refused")
    # Were all refused, or none, nothing would have been compared.
    return agreed > count / 4 and go_agreed > agreed * 0.8 and refused > count / 10


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("echo_server")
    parser.add_argument("--count", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=9112)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        ours, go = Server(options.echo_server), Server(build_go_server(pathlib.Path(directory)))
        good = compare(ours, go, options.count, options.seed)
        go.stop()
        status = ours.stop()
    if status != 0:
        print(f"our server ended with {status}")
    return 0 if good and status == 0 else 1


sys.exit(main())
