"""Ten questions of a night on call, answered by the pages and by the commands of docs/operations.md, in three steps at most."""
import contextlib
import html
import pathlib
import re
import shlex
import shutil
import socket
import urllib.parse

import pytest

from harness import prometheus as prometheuses
from harness.daemon import Daemon, dump_yaml
from harness.deploy import install
from harness.exporter import Exporter
from harness.node_group import HttpNodeGroup
from harness.nodes import make_pod
from harness.notification import alert, notification, timestamp
from harness.played import run
from harness.prometheus import Prometheus
from harness.wait import eventually

pytestmark = [pytest.mark.monitoring, pytest.mark.kubernetes, pytest.mark.since(21, "the API server has policy/v1")]

AMOUNTS = {"cpu": "2", "memory": "8Gi", "pods": "110"}
STAYS, IDLE, BUSY = "night-steady", "night-idle", "night-busy"
AT_ONCE = {"up": "0s", "down": "0s"}


def make_target(group, **more):
    return {"node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 12, "cooldown": AT_ONCE, **more}


def make_rule(name, alertname, target, **more):
    return {"name": name, "match": [f'alertname="{alertname}"'], "target": target, **more}


def make_rules(groups, reports_by=2, front_max=3, search_by=1):
    back = {"give_back": {"after": "0s", "step": "100%"}}
    targets = {name: make_target(group) for name, group in groups.items()}
    targets["front"]["max"] = front_max
    targets["workers"] |= {"min": 0, "nodes": {"select": {"pool": "night"}, "unneeded": {"for": "1s"}}}
    return {"targets": targets, "rules": [
        make_rule("checkout-is-slow", "CheckoutLatencyHigh", "checkout", scale_up={"by": 2}, max_steps=1, on_resolved=back,
                  guard={"query": 'up{job="checkout"} == 1'}),
        make_rule("search-is-slow", "SearchLatencyHigh", "search", scale_up={"by": search_by}),
        make_rule("orders-wait", "OrdersWait", "orders", every="1s", track={"value": 30, "query": "rate(orders_waiting)"}),
        make_rule("front-is-busy", "FrontBusy", "front", every="1s", scale_up={"by": 5}),
        make_rule("reports-wait", "ReportsWait", "reports", scale_up={"by": reports_by}, max_steps=1, on_resolved=back, guard="none"),
        make_rule("mail-queues", "MailQueues", "mail", every="1s", track={"value": 30, "query": "mail_queue_length"}),
        make_rule("nodes-unneeded", "Watchdog", "workers", every="1s", scale_down={"take": "unneeded_nodes"}),
    ]}


class Night:
    """What happened. `times` has when."""

    def __init__(self, folder, plane, groups, prometheus, nodes):
        self.folder, self.groups, self.times = folder, groups, {}
        tokens = []
        for name, permissions in (("ada", ["notify", "read", "admin"]), ("alertmanager", ["notify"])):
            (folder / f"{name}.token").write_text(f"secret-of-{name}\n")
            tokens.append({"name": name, "file": str(folder / f"{name}.token"), "permissions": permissions})
        self.daemon = Daemon(folder, make_rules(groups), {
            "providers": {"mine": {"type": "http"}}, "prometheus": {"url": prometheus.url}, "clusters": nodes,
            "receiver": {"tokens": tokens, "watchdog": {"match": ['alertname="Watchdog"']}}}, flags=["--web.enable-admin-api"])
        self.daemon.headers = {"Authorization": "Bearer secret-of-ada"}

    def notify(self, name, status="firing"):
        self.daemon.notify(notification(alert({"alertname": name}, status, starts_at=self.times.setdefault(name, timestamp()))))

    def run(self, *words):
        return run(*words, env={"ALERTSCALER_URL": self.daemon.url, "ALERTSCALER_TOKEN_FILE": self.folder / "ada.token",
                                "HOME": self.folder})

    def wait_decision(self, target, reason):
        def find():
            return [d for d in self.daemon.records("decision", target_name=target) if d["output"]["reason"] == reason]
        return eventually(find, what=f"{target} is decided as {reason}")[-1]

    def live(self):
        daemon = self.daemon.start()
        self.notify("CheckoutLatencyHigh")
        self.times["02:10"] = daemon.wait_record("action", target_name="checkout", outcome="applied")["time"]
        self.notify("ReportsWait")
        daemon.wait_record("action", target_name="reports", outcome="applied")
        for name in ("FrontBusy", "OrdersWait", "MailQueues"):
            self.notify(name)
        daemon.wait_record("action", target_name="front", outcome="applied")
        assert self.run("pause", "search", "--for", "8h", "--reason", "load test of the new index").returncode == 0
        self.notify("SearchLatencyHigh")
        self.wait_decision("search", "paused")
        for name in ("CheckoutLatencyHigh", "ReportsWait"):
            self.notify(name, "resolved")
        self.wait_decision("checkout", "guarded")
        eventually(lambda: self.groups["reports"].size == 4, what="reports are given back")
        self.notify("Watchdog")
        self.times["03:10"] = daemon.wait_record("action", target_name="workers", outcome="applied")["time"]
        daemon.write_rules(make_rules(self.groups, reports_by=3))
        assert self.run("reload").returncode == 0
        daemon.wait_record("reload")
        self.wait_decision("front", "at_max")
        shutil.copytree(daemon.directory / "rules", self.folder / "new/rules")
        (self.folder / "new/rules/rules.yaml").write_text(dump_yaml(make_rules(self.groups, reports_by=3, front_max=6)))
        shutil.copy(daemon.config_file, self.folder / "new")
        daemon.write_rules(make_rules(self.groups, reports_by=3, search_by=2))      # before the next reload
        return self


def make_nodes(plane, folder):
    """Three nodes of the pool `night`: one is full, one has an annotation that keeps it, one is unneeded."""
    install(plane, "namespace.yaml", "serviceaccount.yaml", "role-nodes.yaml", "role.yaml", "role-cluster-wide.yaml")
    plane.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "night"}})
    for name in (STAYS, IDLE, BUSY):
        plane.admin.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"pool": "night"}}, "spec": {}})
        plane.admin.patch(f"/api/v1/nodes/{name}/status", {"status": {"allocatable": AMOUNTS, "capacity": AMOUNTS, "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}]}})
        plane.admin.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
    plane.admin.patch(f"/api/v1/nodes/{STAYS}", {"metadata": {"annotations": {
        "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}}})
    eventually(lambda: plane.has_account("night"), timeout=150, what="pods can be created")
    for number, node in enumerate((BUSY, BUSY, BUSY, IDLE)):
        make_pod(plane, "night", node, f"web-{number}")
    (folder / "node-token").write_text(plane.account_token("alertscaler", "alertscaler"))
    return {"default": {"kubeconfig": str(plane.write_kubeconfig("alertscaler", tokenFile=str(folder / "node-token")))}}


@pytest.fixture(scope="module")
def night(session_control_plane, tmp_path_factory):
    if prometheuses.missing():
        pytest.skip(prometheuses.missing())
    folder = tmp_path_factory.mktemp("night")
    plane = session_control_plane
    with contextlib.ExitStack() as stack:
        groups = {name: HttpNodeGroup(size=3 if name == "front" else 4, **({"removes_by_name": True} if name == "workers" else {}))
                  for name in ("checkout", "search", "orders", "front", "reports", "mail", "workers")}
        groups["front"].size, groups["workers"].size = 2, 3
        for group in groups.values():
            stack.callback(group.stop)
        exporter = Exporter()
        stack.callback(exporter.stop)
        prometheus = Prometheus(folder / "prometheus", targets=[exporter.address])
        stack.callback(lambda: prometheus.process.kill())
        prometheus.start()
        nodes = make_nodes(plane, folder)
        stack.callback(plane.admin.request, "DELETE", "/api/v1/namespaces/night")
        for name in (STAYS, IDLE, BUSY):
            stack.callback(plane.admin.request, "DELETE", f"/api/v1/nodes/{name}")
        one = Night(folder, plane, groups, prometheus, nodes)
        stack.callback(one.daemon.process.kill)
        yield one.live()
        one.daemon.stop()


# the answers

PAGE = pathlib.Path(__file__).parents[2] / "docs/operations.md"
LOADED, NEW = "/etc/alertscaler", "new"     # folders, in the commands
STEPS = 3

# a word of the question: what the pages have together, what the commands print together
ANSWERS = {
    "raised": (["CheckoutLatencyHigh", "4 \u2192 6", "guarded", "The rule's guard returned no sample"],
               ["CheckoutLatencyHigh", "from 4 to 6", "guarded", "The rule's guard returned no sample"]),
    "since yesterday": (["Configuration loaded by ada", "search .*paused .*by ada|ada .*paused .*search|pause .*ada"], ["reload .*asked by ada", "pause search", "start .*7 rules"]),
    "paused": (["paused by ada", "load test of the new index"], ["pause search .*by ada.*load test of the new index"]),
    "reload": (["rule search-is-slow changed .*In force: .*by: 1 .*In the file: .*by: 2"], [r"target front: changed .*\n  max: 3 -> 6"]),
    "broken query": (["orders-wait", "expected type range vector"], ["orders-wait .*query error", "expected type range vector"]),
    "maximum": (["front .*3 .*at max"], ["front .* at max"]),
    "given back": ([r"reports .*reports-wait 2 0 2"], ["from 6 to 4", "gives back 2 of the 2 that the resolved incident ReportsWait added"]),
    "led": (["{host}/\\d+ started, and leads"], ["start .* on {host}"]),
    "pool": ([f"{IDLE} leaves", f"disabled .*{STAYS}"], [f"3 -> 2, leaving: {IDLE}", f"disabled .*{STAYS}"]),
    "blindly": (["mail .*no value", "metric_unavailable"], ["mail .*metric_unavailable", "mail_queue_length"]),
}


def read_questions():
    text = PAGE.read_text().partition("### Questions of a night on call")[2].partition("\n### ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line.startswith("|")]
    return rows[2:]


QUESTIONS = read_questions()


def find_answer(question):
    (key,) = [key for key in ANSWERS if key in question]
    return ANSWERS[key]


def get_text(page):
    main = page.partition("<main>")[2].partition("</main>")[0]
    main = re.sub(r"<(svg|form)\b.*?</\1>", " ", main, flags=re.S)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", re.sub(r"</tr>", "\n", main))))


def find_link(page, text=None, beside=None):
    """The link with this text, or the link to a decision in the first row with this text."""
    if beside:
        rows = [row for row in re.findall(r"<tr.*?</tr>", page, re.S) if beside in get_text(f"<main>{row}") and '"/decisions/' in row]
        return html.unescape(re.search(r'href="(/decisions/[^"]*)"', rows[0])[1])
    found = [href for href, label in re.findall(r'<a [^>]*?href="([^"]*)"[^>]*>(.*?)</a>', page, re.S)
             if re.sub(r"<[^>]*>", "", html.unescape(label)).strip() == text]
    assert found, f"no link {text}"
    return html.unescape(found[0])


def test_the_page_has_all_questions():
    assert len(QUESTIONS) == len(ANSWERS) == 10
    for question, _, _ in QUESTIONS:
        find_answer(question)


@pytest.mark.parametrize("question, steps", [(question, steps) for question, steps, _ in QUESTIONS], ids=range(1, len(QUESTIONS) + 1))
def test_the_pages_answer(night, question, steps):
    wanted, _ = find_answer(question)
    links = [(None, text) if text else (beside, None) for beside, text in re.findall(r"the time beside `(.+?)`|\*\*(.+?)\*\*", steps)]
    assert len(links) <= STEPS
    path, seen = "/", ""
    page = night.daemon.get(path).text
    for beside, text in links:
        path = urllib.parse.urljoin(path, find_link(page, text, beside))
        answer = night.daemon.get(path)
        assert answer.ok, path
        page = answer.text
        seen += get_text(page) + "\n"
    seen = seen or get_text(page)
    for word in wanted:
        assert re.search(word.format(host=socket.gethostname()), seen), f"{word} is not in: {seen}"


@pytest.mark.parametrize("question, commands", [(question, commands) for question, _, commands in QUESTIONS], ids=range(1, len(QUESTIONS) + 1))
def test_the_commands_answer(night, question, commands):
    _, wanted = find_answer(question)
    lines = re.findall(r"`alertscaler (.+?)`", commands)
    assert 0 < len(lines) <= STEPS
    output = ""
    for line in lines:
        for at, when in night.times.items():
            line = line.replace(f"2026-11-20T{at}Z", when)
        words = [word.replace(LOADED, str(night.folder)).replace(f"{NEW}/", f"{night.folder}/{NEW}/") for word in shlex.split(line)]
        done = night.run(*words)
        assert done.returncode == (1 if words[0] == "diff" else 0), done.stderr
        output += done.stdout
    for word in wanted:
        assert re.search(word.format(host=socket.gethostname()), output), f"{word} is not in: {output}"
