#!/usr/bin/python3
"""path.py BUILD [--list]: counts the source files, and their directories, that one notification passes: from the request to
the PUT on a Deployment's scale. Fails above the bounds.

BUILD is built with debug information and without sanitizers: build/valgrind. The daemon runs under callgrind, with state in
SQLite, an action log and a cluster that the harness of the integration tests plays. Instructions are counted from before the
request is sent until the PUT arrives. A file counts if code of it ran, also code that is inlined; headers do not count.
"""
import contextlib
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import arch
import graph

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 60
NAMED = re.compile(r"^c?(?:fl|fi|fe)=\((\d+)\)(?: (.+))?$")


def read_files(profile):
    """The files with instructions of a callgrind profile."""
    names, used, current = {}, set(), None
    for line in profile.splitlines():
        match = NAMED.match(line)
        if match:
            if match[2]:
                names[match[1]] = match[2]
            if line[0] == "f":
                current = match[1]
        elif re.match(r"[+*\d-]", line) and current:
            used.add(current)
    return {names[number] for number in used}


def find_sources(files, root):
    """The .c files of src/ among them, relative to the root, sorted."""
    places = {re.sub(r"^.*?(?=\bsrc/)", "", file) for file in files if file.endswith(".c")}
    return sorted(place for place in places if (root / place).is_file())


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def write_files(folder, cluster):
    cluster.write_kubeconfig(folder / "kubeconfig")
    target = {"kubernetes": {"cluster": "one", "kind": "Deployment", "namespace": "shop", "name": "checkout"},
              "min": 1, "max": 20, "cooldown": {"up": "1m", "down": "5m"}}
    rule = {"name": "slow", "match": ['alertname="Slow"'], "target": "checkout", "scale_up": {"by": 1}}
    (folder / "rules.yaml").write_text(json.dumps({"targets": {"checkout": target}, "rules": [rule]}))
    (folder / "alertscaler.yaml").write_text(json.dumps({
        "rule_files": ["rules.yaml"], "clusters": {"one": {"kubeconfig": "kubeconfig"}},
        "state": {"path": "state.db"}, "action_log": {"path": "actions.jsonl"}}))


def notification():
    alert = {"status": "firing", "labels": {"alertname": "Slow", "namespace": "shop"}, "annotations": {},
             "startsAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "endsAt": "0001-01-01T00:00:00Z", "generatorURL": ""}
    return json.dumps({"receiver": "alertscaler", "status": "firing", "alerts": [alert], "groupLabels": {}, "commonLabels": {},
                       "commonAnnotations": {}, "externalURL": "http://alertmanager:9093", "version": "4",
                       "groupKey": "{}:{alertname=\"Slow\"}", "truncatedAlerts": 0}).encode()


def wait_until_ready(url, process):
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(url + "/-/ready", timeout=5) as answer:
                if answer.status == 200:
                    return
        time.sleep(0.2)
    raise TimeoutError("the daemon is not ready")


def run(build, folder):
    """Returns the profile of one notification."""
    sys.path.insert(0, str(ROOT / "tests/integration"))
    from harness.slow_cluster import SlowCluster  # not in the self-test: it needs the packages of the integration tests

    arrived = threading.Event()
    port = free_port()
    url = f"http://127.0.0.1:{port}"

    def control(command):
        subprocess.run(["callgrind_control", command, str(process.pid)], check=True, capture_output=True, timeout=SECONDS)

    class Cluster(SlowCluster):
        def _handle(self, asked):
            if asked.method == "PUT" and asked.path.split("?")[0].endswith("/deployments/checkout/scale") and not arrived.is_set():
                control("--dump")
                arrived.set()
            return super()._handle(asked)

    cluster = Cluster()
    write_files(folder, cluster)
    command = ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=callgrind",
               str((pathlib.Path(build) / "src/alertscaler").resolve()), "serve", "--config.file=alertscaler.yaml",
               f"--web.listen-address=127.0.0.1:{port}", "--sandbox=off"]
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        wait_until_ready(url, process)
        time.sleep(2)  # what the start still has to do
        control("--instr=on")
        request = urllib.request.Request(url + "/webhook", notification(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            answer.read()
        if not arrived.wait(SECONDS):
            raise TimeoutError("no PUT arrived")
    except (OSError, subprocess.SubprocessError) as why:
        raise RuntimeError(f"{why}\n{(folder / 'log').read_text(errors='replace')[-3000:]}") from why
    finally:
        process.kill()
        process.wait()
        cluster.stop()
    return "".join(path.read_text() for path in folder.glob("callgrind.*"))


def measure(build):
    with tempfile.TemporaryDirectory(prefix="alertscaler-path-") as folder:
        sources = find_sources(read_files(run(build, pathlib.Path(folder))), ROOT)
    return sources, {"path_files": len(sources), "path_directories": len({pathlib.Path(file).parent for file in sources})}


def judge(figures, bounds):
    for key, text in (("path_files", "files that one notification passes"), ("path_directories", "directories that it passes")):
        if figures[key] > bounds[key]:
            yield f"{figures[key]} {text}, at most {bounds[key]} (tests/arch/bounds). To list them, run: tests/arch/path.py BUILD --list"
        if figures[key] == 0:
            yield f"no {text}: is the build without debug information?"


def check(build, *options):
    sources, figures = measure(build)
    if "--list" in options:
        print("\n".join(sources))
    print(f"one notification passes {figures['path_files']} files in {figures['path_directories']} directories")
    return list(judge(figures, graph.read_rows(graph.BOUNDS)))


def self_test():
    profile = """version: 1
fl=(1) ../../src/base/alloc.c
fn=(1) as_xmalloc
12 3
fi=(2) ../../include/alertscaler/base/alloc.h
+1 1
fe=(1)
cfi=(3) ../../src/base/str.c
cfn=(2) as_str
calls=1 9
* 5
fl=(4) ../../src/base/never.c
fn=(3) never
"""
    expected = {"../../src/base/alloc.c", "../../include/alertscaler/base/alloc.h"}
    wrong = []
    if read_files(profile) != expected:
        wrong.append(f"expected {expected}, got {read_files(profile)}")
    if read_files(profile + "fl=(3)\nfn=(2)\n9 1\n") != expected | {"../../src/base/str.c"}:
        wrong.append("a file whose name stands at a call is lost")
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        arch.write_tree(root, {"src/base/alloc.c": "", "include/alertscaler/base/alloc.h": ""})
        found = find_sources(expected | {"/usr/lib/src/other.c", str(root / "src/base/alloc.c")}, root)
    if found != ["src/base/alloc.c"]:
        wrong.append(f"expected one source, got {found}")
    bounds = {"path_files": 2, "path_directories": 1}
    for figures, count in ((bounds, 0), ({"path_files": 3, "path_directories": 1}, 1), ({"path_files": 0, "path_directories": 0}, 2)):
        if len(list(judge(figures, bounds))) != count:
            wrong.append(f"{figures}: expected {count} complaints")
    return wrong


if __name__ == "__main__":
    arch.main(check, self_test)
