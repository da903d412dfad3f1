"""Two tutorials that need a cluster, line by line: with a real API server, real controllers and a real Prometheus.

One shell runs the `console` blocks of a page. Its kubectl and its kubeconfig are those of the tests' control plane. Ports and the
namespace differ, so that nothing collides: the test replaces them in commands and in what the page shows. The pods' CPU is a counter of
the test. tests/docs/test_readme.py runs the other tutorials.
"""
import os
import re
import shlex
import subprocess
import sys
import time

import pytest

from harness.daemon import ROOT, find_binary
from harness.kube import path_of
from harness.ports import free_port
from harness.prometheus import missing
from harness.wait import eventually
from test_init_kubernetes import Cpu

sys.argv[1:1] = [str(find_binary()), str(ROOT)]     # what the module reads when it is loaded
sys.path.insert(0, str(ROOT / "tests/docs"))
from test_readme import make_pattern, normalize, read_commands  # noqa: E402
del sys.argv[1:3]

MARK = "=== end of a command, status "
VALUES = re.compile(r"series: .*")

pytestmark = pytest.mark.monitoring


class Machine:
    """The reader's machine: a folder with kubectl, alertscaler and a kubeconfig."""

    def __init__(self, plane, directory, words, environment=None):
        self.directory, self.words = directory, words
        self.address = f"127.0.0.1:{free_port()}"
        binaries = directory / "bin"
        binaries.mkdir()
        (binaries / "alertscaler").symlink_to(find_binary())
        (binaries / "kubectl").symlink_to(plane.programs / "kubectl")
        (directory / "fresh").mkdir()
        kubeconfig = plane.write_kubeconfig("reader", token="admin-token")
        self.environment = {"PATH": f"{binaries}:{os.environ['PATH']}", "HOME": str(directory), "KUBECONFIG": str(kubeconfig),
                            "ALERTSCALER_URL": f"http://{self.address}", **(environment or {})}

    def write_files(self, page):
        """The files that the page shows; the line that names a file is a line of it."""
        text = (ROOT / f"docs/tutorial-{page}.md").read_text(encoding="utf-8")
        for name, content in re.findall(r"^```yaml\n# ([\w.-]+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            (self.directory / "fresh" / name).write_text(self.adapt(f"# {name}\n{content}"), encoding="utf-8")

    def adapt(self, text):
        for word, replacement in self.words.items():
            text = re.sub(rf"(?<![\w-]){re.escape(word)}\b", replacement, text)
        return text

    def run(self, page):
        """Runs the page, and prints the seconds of each command."""
        commands = read_commands((ROOT / f"docs/tutorial-{page}.md").read_text(encoding="utf-8"))
        script = "trap 'kill $(jobs -p) 2>/dev/null' EXIT\n"      # what a page leaves behind
        for command, _ in commands:
            command = self.adapt(command)
            if command.startswith("alertscaler serve"):
                command = command.replace("alertscaler serve", f"alertscaler serve --web.listen-address={self.address}")
            script += f"begin=$(date +%s.%N)\n{command}\n"
            if "alertscaler init" in command:       # the folder's namespace
                folder = shlex.split(command)[2]
                script = script.rstrip("\n") + f"\nsed -i 's/\\bshop\\b/{self.words['shop']}/g' {folder}/*.yaml {folder}/tests/*.yaml\n"
            script += f"echo '{MARK}'$? $(date +%s.%N) $begin\n"
        done = subprocess.run(["bash", "-c", script], cwd=self.directory / "fresh", env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=280, check=False)
        parts = re.split(re.escape(MARK) + r"(\d+) ([\d.]+) ([\d.]+)\n", done.stdout)
        results = list(zip(parts[0::4], parts[1::4], parts[2::4], parts[3::4]))
        assert len(results) == len(commands), done.stdout
        took, wrong = [], []
        for (command, shown), (printed, status, end, begin) in zip(commands, results):
            if status != "0":
                wrong.append(f"{command}: exit status {status}\n{printed}")
            if shown is not None:
                pattern = make_pattern(VALUES.sub("series: VALUES", self.adapt(shown)))
                text = normalize(VALUES.sub("series: VALUES", printed))
                if not re.fullmatch(pattern, text):
                    wrong.append(f"{command}:\n{text}\nis not\n{pattern}")
            took.append((command, float(end) - float(begin)))
        print("\n".join(f"{seconds:6.1f} s  {command}" for command, seconds in took))
        print(f"{sum(seconds for _, seconds in took):6.1f} s  in all: {page}")
        assert not wrong, "\n\n".join(wrong)


@pytest.fixture
def machine(control_plane, namespace, make_prometheus, started, tmp_path):
    """With the Deployment `web`, whose pods use 3 cores each: far more than they request."""
    if missing():
        pytest.skip(missing())
    admin = control_plane.admin
    admin.create({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": namespace, "name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web", "resources": {"requests": {"cpu": "100m"}}}]}}}})
    cpu = started(Cpu(control_plane, namespace, cores=3.0))
    prometheus = make_prometheus(targets=[cpu.exporter.address])
    one = Machine(control_plane, tmp_path, {"http://127.0.0.1:9090": prometheus.url, "shop": namespace})
    eventually(lambda: len(prometheus.query(f'rate(container_cpu_usage_seconds_total{{namespace="{namespace}"}}[2m])')) == 2, 60)
    time.sleep(5)       # a rate that is clearly above the goal
    yield one
    control_plane.ensure_running()
    admin.request("DELETE", "/apis/apps/v1/namespaces/alertscaler/deployments/alertscaler")
    for name in ("alertscaler-config", "alertscaler-rules"):
        admin.request("DELETE", f"/api/v1/namespaces/alertscaler/configmaps/{name}")


@pytest.mark.seconds(300)
def test_the_first_target(machine, control_plane, namespace):
    machine.run("first-target")
    assert control_plane.admin.replicas(path_of("apps/v1", "Deployment", namespace, "web")) == 10


@pytest.mark.seconds(300)
@pytest.mark.since(23, "autoscaling/v2 is there")
def test_an_hpa_is_migrated(machine, control_plane, namespace):
    control_plane.admin.post(f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers", {
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "minReplicas": 2, "maxReplicas": 10,
                 "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}}]}})
    machine.run("hpa")
    assert control_plane.admin.replicas(path_of("apps/v1", "Deployment", namespace, "web")) == 10
