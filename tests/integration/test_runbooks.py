"""Every command in the runbooks (docs/operations.md, the sections of the alerts) is run: against a real alertscaler, a real API server,
a real Prometheus and a real Alertmanager. Played are only the parts of a node that an API server alone does not have: `kubectl exec`
and `logs`. A command that no case below knows fails the test."""
import os
import pathlib
import re
import subprocess

import pytest

from harness.daemon import ROOT, environment
from harness.deploy import install
from harness.notification import alert, notification
from harness.wait import eventually

pytestmark = pytest.mark.monitoring

# What stands between backquotes, and is the name of a command or of a program, without what a call needs.
NAMES = {"kubectl scale", "kubectl describe", "alertscaler scale", "alertscaler explain", "alertscaler test"}
TOOLS = re.compile(r"(alertscaler [a-z]|kubectl |curl |promtool |amtool |cat /|cut |ss -|ls -|df |sha256sum |cd /|\.\.\. -- )")
# A pipe that ends with these finds nothing in a healthy system.
FINDS_NOTHING = re.compile(r"\| *grep [^|]*$")

WRAPPER = """#!/bin/bash
# kubectl with the administrator's rights; what needs a kubelet is played
if [[ "$*" == *" logs "* || $1 == logs ]]; then exec cat {log}; fi
exec {kubectl} --kubeconfig={kubeconfig} --cache-dir={cache} "$@"
"""


def read_commands():
    """[(alert, command)] of the runbooks."""
    text = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    found = []
    for name, body in re.findall(r"^### (Alertscaler\w+)\n(.*?)(?=^##)", text, re.M | re.S):
        for code in re.findall(r"`([^`]+)`", body):
            code = " ".join(code.split())
            if TOOLS.match(code) and code not in NAMES:
                found.append((name, code))
    return list({code: (name, code) for name, code in found}.values())


def test_the_commands_are_found():
    """The test below runs what this one counts: not nothing."""
    commands = [code for _, code in read_commands()]
    assert len(commands) > 60
    for tool in ("alertscaler", "kubectl", "curl", "promtool", "amtool"):
        assert any(code.startswith(tool) for code in commands), tool


@pytest.fixture
def plane(control_plane):
    install(control_plane, "namespace.yaml", "serviceaccount.yaml", "role.yaml", "role-cluster-wide.yaml", "../kubernetes-ha/role.yaml")
    control_plane.admin.request("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
    workload = {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "template": template}
    objects = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "checkout", "namespace": "shop"}, "spec": workload},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "alertscaler", "namespace": "alertscaler"}, "spec": workload},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alertscaler-0", "namespace": "alertscaler"}, "spec": template["spec"]},
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "alertscaler", "namespace": "alertscaler"},
         "spec": {"holderIdentity": "alertscaler-0_1"}},
    ]
    for one in objects:
        control_plane.kubectl("apply", "-f", "-", stdin=one)
    yield control_plane
    for one in objects:
        control_plane.kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", stdin=one, check=False)


@pytest.fixture
def daemon(make_daemon, make_prometheus, make_alertmanager, node_group, webhook, tmp_path):
    groups = {name: node_group(size=4) for name in ("workers", "others", "third")}
    prometheus = make_prometheus()
    alertmanager = make_alertmanager(webhook="http://127.0.0.1:9/webhook")
    (tmp_path / "token").write_text("sesame\n")
    targets = {name: {"node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 10} for name, group in groups.items()}
    rules = [{"name": f"busy-{name}", "match": ['alertname=~"Busy|Slow"'], "target": name, "scale_up": {"by": 2},
              "approval": {"above": 0, "for": "10m"}} for name in ("others", "third")]
    rules.append({"name": "busy", "match": ['alertname=~"Busy|Slow"'], "target": "workers", "scale_up": {"by": 2}, "once": True})
    daemon = make_daemon(
        {"targets": targets, "rules": rules}, flags=["--web.enable-admin-api"], start=False,
        config={"providers": {"mine": {"type": "http"}}, "instance": "here", "prometheus": {"url": prometheus.url},
                "alertmanager": {"urls": [alertmanager.url]},
                "notify": [{"name": "workers", "webhook": {"url": webhook.url}, "on": ["failed"]}],
                "receiver": {"tokens": [{"name": "all", "file": str(tmp_path / "token"), "permissions": ["notify", "read", "admin"]}]}})
    daemon.headers = {"Authorization": "Bearer sesame"}
    daemon.start()
    daemon.hosts = {"alertscaler": daemon.url, "INSTANCE": daemon.url, "prometheus": prometheus.url, "alertmanager": alertmanager.url}
    daemon.token = tmp_path / "token"
    daemon.notify(notification(alert({"alertname": "Busy"}), alert({"alertname": "Nobody"})))
    return daemon


def prepare(daemon, plane, tmp_path):
    """The folder in which the commands run, and their environment."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "alertscaler").symlink_to(daemon.binary)
    log = tmp_path / "pod.log"
    log.write_text(daemon.process.log_text())
    wrapper = bin_folder / "kubectl"
    wrapper.write_text(WRAPPER.format(log=log, kubectl=plane.programs / "kubectl", cache=tmp_path / "cache",
                                      kubeconfig=plane.directory / "kubectl.kubeconfig"))
    wrapper.chmod(0o755)
    (daemon.directory / "notification.json").write_text('{"version": "4", "status": "firing", "receiver": "x", "alerts": '
                                                        '[{"status": "firing", "labels": {"alertname": "Busy"}, "annotations": {}, '
                                                        '"startsAt": "2026-11-20T14:00:00Z"}]}')
    (daemon.directory / "body.json").write_text("{}")
    (daemon.directory / "alertmanager.yml").write_text(
        f"route: {{receiver: x}}\nreceivers:\n  - name: x\n    webhook_configs: [{{url: '{daemon.url}/webhook', "
        f"http_config: {{authorization: {{credentials_file: {daemon.token}}}}}}}]\n")
    return environment(PATH=f"{bin_folder}:{os.environ['PATH']}", HOME=tmp_path, ALERTSCALER_URL=daemon.url,
                       ALERTSCALER_TOKEN_FILE=str(daemon.token), POD="alertscaler-0", WORKLOAD="deployment/alertscaler")


def fill_in(code, daemon, approvals):
    """What a reader puts in place of placeholders; and where things are here."""
    pid = daemon.process.pid
    code = code.removeprefix("... -- ")
    for place, here in (("/proc/1/root/var/lib/alertscaler", daemon.directory), ("/var/lib/alertscaler", daemon.directory),
                        ("/proc/1/root/etc/alertscaler-tokens/alertmanager", daemon.token),
                        ("/proc/1/root/var/run/secrets/kubernetes.io/serviceaccount/namespace", daemon.token),
                        ("/proc/1/", f"/proc/{pid}/")):
        code = code.replace(place, str(here))
    for host, url in daemon.hosts.items():
        code = re.sub(rf"http://{host}(:\d+)?", url, code)
    if code.startswith("curl "):
        code = code.replace("curl ", 'curl -H "Authorization: Bearer sesame" ', 1)
    if code.startswith("kubectl "):
        code = re.sub(r"\bNAME\b", "alertscaler-0", code)
    if re.search(r"\bID\b", code):
        code = re.sub(r"\bID\b", approvals.pop(), code)
    return re.sub(r"--rule NAME", "--rule busy", code).replace("TARGET N ", "workers 5 ").replace("TARGET", "workers") \
        .replace("NAME", "workers").replace("QUERY", "up").replace('"..."', '"the runbook"')


# The start of a command: what it writes with the exit status 1, if nothing is wrong here. `log` finds no record, and writes nothing.
MAY_FAIL = {
    "alertscaler log ": r"",
    "alertscaler effects": r"No action in this time has a known effect\..*",
    "alertscaler resume ": r".*not paused.*",
    "kubectl auth can-i ": r"no",
}


def is_good(code, done):
    text = (done.stdout + done.stderr).strip()
    if done.returncode == 1 and FINDS_NOTHING.search(code):
        return text == ""
    if done.returncode == 1:
        return any(code.startswith(start) and re.fullmatch(said, text, re.S) for start, said in MAY_FAIL.items())
    return done.returncode == 0 or (done.returncode == 141 and code.endswith("| head"))      # SIGPIPE: `head` has enough


@pytest.mark.kubernetes
@pytest.mark.seconds(300)
def test_each_command_works(daemon, plane, tmp_path):
    plane.kubectl("version", check=False)         # writes the kubeconfig
    env = prepare(daemon, plane, tmp_path)
    eventually(lambda: len(daemon.get("/api/v1/approvals").json["data"]) == 2)
    approvals = [a["id"] for a in daemon.get("/api/v1/approvals").json["data"]]
    failed = []
    for name, code in read_commands():
        filled = fill_in(code, daemon, approvals)
        assert not re.search(r"\b(NAME|TARGET|INSTANCE|QUERY|ID)\b", filled), f"{name}: {filled}"
        done = subprocess.run(["bash", "-o", "pipefail", "-c", filled], cwd=daemon.directory, env=env, capture_output=True, text=True,
                              timeout=60, check=False, stdin=subprocess.DEVNULL)
        if not is_good(code, done):
            failed.append(f"{name}: {code}\n  {filled}\n  exit status {done.returncode}: {(done.stdout + done.stderr)[:400]}")
    assert not failed, "\n".join(failed)
