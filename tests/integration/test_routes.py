"""What is answered at each path to each method and credential, to the byte: `tests/golden/routes` says it. With ROUTES_UPDATE=1
in the environment the file is written anew; read the difference."""
import difflib
import os
import pathlib
import re
import socket

import pytest

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "routes"
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS")
PATHS = """
/ /nothing /nothing?x
/webhook /webhook/ /webhook/any/where /webhooks
/metrics /metrics/ /metrics?x
/-/ /-/healthy /-/healthy?x /-/healthy/ /-/ready /-/reload /-/reload/
/api /api/ /api/nothing /api/v1/nothing /api/v1/nothing?x /api/v1/alerts /api/v2/alerts
/api/v1/status /api/v1/status/ /api/v1/incidents /api/v1/incidents/x /api/v1/rules
/api/v1/decisions /api/v1/decisions/ /api/v1/decisions/x /api/v1/decisions?limit=x
/api/v1/log /api/v1/log/ /api/v1/log?limit=x
/api/v1/targets /api/v1/targets/ /api/v1/targets/x /api/v1/targets/pause /api/v1/targets/a/b
/api/v1/debug /api/v1/debug/targets/x
/api/v1/targets/workers/pause /api/v1/targets/workers/resume /api/v1/targets/workers/scale /api/v1/targets/workers/unlock
/api/v1/targets/workers/restart /api/v1/targets/workers/pause/ /api/v1/targets/a/b/pause /api/v1/targets//pause
/api/v1/targets/%zz/pause /api/v1/targets/pause/pause
/api/v1/pause /api/v1/pause/ /api/v1/resume /api/v1/scale /api/v1/unlock
/login /login?to=/x /login/ /logout /account /pause /resume /scale /targets/workers/pause /targets/workers/scale /targets/none/unlock
/targets /targets/ /targets/none /targets/workers /decisions /decisions/none /groups/none /events /events?kind=x /reload /incidents /incidents/ /incidents/none /rules /rules/x
/page.js
/api/v1/policies /api/v1/policies/ /api/v1/policies/x /api/v1/policies/x/y
""".split()
TOKENS = {"notifier": ["notify"], "reader": ["read"], "admin": ["admin"]}
ASKING = {"nobody": None, "wrong": "wrong", **{name: name for name in TOKENS}}
BODY = b'{"reason": "test"}'
VARIES = re.compile(r"^(/|/events|/reload|/incidents|/rules|/targets/workers|/metrics|/page.js|/api/v1/(status|rules|targets|decisions|incidents|log|policies|targets/.*))(\?.*)?$")


def ask(daemon, method, path, token):
    """The whole answer, with the words in braces for what is another each time."""
    host, port = daemon.address.split(":")
    head = f"{method} {path} HTTP/1.1\r\nHost: a\r\n"
    if token:
        head += f"Authorization: Bearer {token}\r\n"
    body = BODY if method in ("POST", "PUT") else b""
    if body:
        head += f"Content-Length: {len(body)}\r\n"
    with socket.create_connection((host, int(port)), timeout=60) as peer:
        peer.sendall(head.encode() + b"\r\n" + body)
        said = b""
        while b"\r\n\r\n" not in said:
            said += peer.recv(65536) or pytest.fail(f"{method} {path}: {said}")
        size = int(re.search(rb"Content-Length: (\d+)", said)[1])
        want = said.index(b"\r\n\r\n") + 4 + (size if method != "HEAD" else 0)
        while len(said) < want:
            said += peer.recv(65536) or pytest.fail(f"{method} {path}: {said}")
    head, _, body = said.decode().partition("\r\n\r\n")
    head = re.sub(r"Date: [^\r]*\r\n", "", head)
    head = re.sub(r"(Alertscaler-Log-(?:Next|More):) \w+", r"\1 {varies}", head)
    if "text/html" in head:     # of a page only what it is
        title = re.search("<title>([^<]*)</title>", body)
        head = re.sub('ETag: "[^"]*"', 'ETag: "{version}"', head)
        head = re.sub(r"'sha256-[^']*'", "'sha256-{digest}'", re.sub(r"(Content-Length:) \d+", r"\1 {size}", head))
        body = title and f"{{page: {title[1]}}}" or ""
    elif head.startswith("HTTP/1.1 200") and method in ("GET", "HEAD") and VARIES.match(path):
        head = re.sub(r"(Content-Length:) \d+", r"\1 {size}", head)
        body = body and "{body}"
    body = re.sub(r'"id":"\w{26}"', '"id":"{id}"', body)
    plain = path.partition("?")[0]
    if plain in body:
        body = body.replace(plain, "{path}")
        head = re.sub(r"Content-Length: (\d+)", lambda size: f"Content-Length: {int(size[1]) - len(plain)} + path", head)
    elif method == "HEAD" and size and "{size}" not in head:
        head = re.sub(r"Content-Length: (\d+)", "Content-Length: {size}", head)
    return (head + "\r\n\r\n" + body).replace("\r\n", "\n    ").replace(str(daemon.directory), "{directory}").rstrip()


def count_handlers(daemon):
    """How many requests were counted for each handler, but for those that ask this."""
    samples = daemon.metrics().select("alertscaler_http_requests_total")
    return {(dict(labels)["handler"], dict(labels)["code"]): value for labels, value in samples.items()}


def print_routes(daemon, asking, answers):
    """A line for each path and method: the number of each asker's answer. Then what metrics made of the path."""
    for path in PATHS:
        before = count_handlers(daemon)
        for method in METHODS:
            numbers = []
            for token in asking.values():
                said = ask(daemon, method, path, token)
                numbers.append(f"A{answers.setdefault(said, len(answers) + 1):02}")
            yield f"{path} {method} " + " ".join(numbers)
        after = count_handlers(daemon)
        after[("metrics", "200")] = after.get(("metrics", "200"), 0) - 1
        counted = {key: int(after[key] - before.get(key, 0)) for key in sorted(after) if after[key] != before.get(key, 0)}
        yield f"{path} is " + ", ".join(f"{handler} {code}: {count}" for (handler, code), count in counted.items())


@pytest.mark.seconds(300)
def test_routes(make_daemon, tmp_path):
    tokens = []
    for name, permissions in TOKENS.items():
        (tmp_path / name).write_text(name)
        tokens.append({"name": name, "file": str(tmp_path / name), "permissions": permissions})
    rules = {"targets": {"workers": {"node_group": {"provider": "mine", "url": "http://127.0.0.1:9/"}, "max": 10}},
             "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 2}}]}
    providers = {"providers": {"mine": {"type": "http"}}}
    answers, lines = {}, []
    for name, config, flags, asking in (
            ("open", {}, [], {"nobody": None}),
            ("closed", {"receiver": {"tokens": tokens}}, ["--web.enable-admin-api"], ASKING)):
        daemon = make_daemon(rules, {**providers, **config}, flags=flags, name=name)
        if config:
            daemon.headers = {"Authorization": "Bearer reader"}
        lines += ["", f"{name}: " + " ".join(asking)] + list(print_routes(daemon, asking, answers))
        daemon.stop()
    text = "\n".join([f"A{number:02} {said}" for said, number in answers.items()] + lines) + "\n"
    if os.environ.get("ROUTES_UPDATE"):
        GOLDEN.write_text(text)
    expected = GOLDEN.read_text()
    assert text == expected, "\n".join(difflib.unified_diff(expected.splitlines(), text.splitlines(), lineterm=""))
