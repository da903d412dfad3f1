"""Fixtures of the integration tests. A server that cannot be had on this machine skips its tests, with the reason."""
import itertools
import pathlib
import re
import shutil
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from harness import alertmanager, browser, control_plane as kubernetes, daemon, npm, prometheus, workers  # noqa: E402
from harness.alertmanager import Alertmanager, start_cluster  # noqa: E402
from harness.daemon import Daemon  # noqa: E402
from harness.deploy import install  # noqa: E402
from harness.exporter import Exporter  # noqa: E402
from harness.kubelets import Kubelets  # noqa: E402
from harness.node_group import HttpNodeGroup  # noqa: E402
from harness.process import Process  # noqa: E402
from harness.prometheus import Prometheus  # noqa: E402
from harness.wait import eventually  # noqa: E402
from harness.webhook import Webhook  # noqa: E402

TEST_SECONDS = 300

# What a failed test shows: the end of what it printed (seeds, figures) and of what every server logged since it began. The whole
# logs, and the action logs, are in build/failed.

LAST_LINES = 40

_offsets = {}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    for marker in item.iter_markers("since"):
        minor, what = marker.args
        if kubernetes.missing() is None and kubernetes.read_minor() < minor:
            pytest.skip(f"this is Kubernetes 1.{kubernetes.read_minor()}, and {what} from 1.{minor} on")
    _offsets.clear()
    _offsets.update({p: p.log.stat().st_size for p in Process.everyone if p.log.exists()})


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if not report.failed:
        return
    # As text of the failure: sections are not in the JUnit file, from which tests/run tells at its end what has failed.
    if report.capstdout:
        report.longrepr = f"{report.longrepr}\n--- printed\n{_last_lines(report.capstdout)}"
    folder = daemon.ROOT / "build/failed" / re.sub(r"[^\w.-]+", "-", item.name)
    for process in Process.everyone:
        text = process.log_text(_offsets.get(process, 0))
        if text:
            folder.mkdir(parents=True, exist_ok=True)
            kept = folder / f"{process.name}.log"
            kept.write_text(text)
            shown = kept.relative_to(daemon.ROOT)
            report.longrepr = f"{report.longrepr}\n--- {process.name}: the end of {shown}\n{_last_lines(text)}"
            actions = process.directory / daemon.ACTION_LOG
            if actions.exists():
                shutil.copy(actions, folder / f"{process.name}-{actions.name}")


def _last_lines(text):
    return "\n".join(text.splitlines()[-LAST_LINES:])


# No test may hang.


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    marker = item.get_closest_marker("seconds")
    seconds = marker.args[0] if marker else TEST_SECONDS

    def expired(*_):
        pytest.fail(f"the test took more than {seconds} s")     # no Exception, which `eventually` would take for a not yet

    previous = signal.signal(signal.SIGALRM, expired)
    signal.alarm(seconds)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


# Which tests run where, and together.


def pytest_configure(config):
    for line in ("seconds(n): this test may take n seconds instead of %d" % TEST_SECONDS,
                 "deep: takes long, and runs in stages of `tests/run --all` only",
                 "kubernetes: needs Kubernetes (every test that has its control plane)",
                 "since(minor, what): needs what is there from Kubernetes 1.<minor> on; docs say so",
                 "monitoring: needs Prometheus or Alertmanager"):
        config.addinivalue_line("markers", line)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        workers.place(item)
    items.sort(key=workers.get_order)


def _need(reason):
    if reason:
        pytest.skip(reason)


# A browser, one for each file of tests.


@pytest.fixture(scope="module")
def chrome(request, tmp_path_factory):
    """BROWSER_FLAGS of the file: more of its command line."""
    _need(browser.missing())
    one = browser.Browser(tmp_path_factory.mktemp("browser"), *getattr(request.module, "BROWSER_FLAGS", ()))
    yield one
    one.stop()


@pytest.fixture(scope="module")
def axe():
    try:
        return browser.find_axe()
    except npm.Missing as why:
        pytest.skip(str(why))


# Servers, one for the whole session where starting takes long.


@pytest.fixture(scope="session")
def session_control_plane(tmp_path_factory):
    _need(kubernetes.missing())
    plane = kubernetes.ControlPlane(tmp_path_factory.mktemp("kubernetes"))
    try:
        plane.start()
        plane.kubelets = Kubelets(plane.admin)
        yield plane
        plane.kubelets.stop()
    finally:
        plane.stop()


@pytest.fixture
def control_plane(session_control_plane):
    """The session's control plane, whole again after a test that stops or pauses parts of it."""
    yield session_control_plane
    session_control_plane.ensure_running()


_namespaces = itertools.count(1)


@pytest.fixture
def namespace(control_plane):
    """A namespace of the test's own, ready for pods."""
    name = f"test-{next(_namespaces)}"
    control_plane.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    eventually(lambda: control_plane.has_account(name), timeout=150, what=f"pods can be created in {name}")
    yield name
    control_plane.ensure_running()
    control_plane.admin.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def started():
    """Registers what a test starts: started(Alertmanager(...)); all of it is stopped afterwards, last first."""
    things = []

    def register(*new):
        things.extend(new)
        return new[0] if len(new) == 1 else list(new)

    yield register
    for thing in reversed(things):
        thing.process.kill() if hasattr(thing, "process") else thing.stop()


@pytest.fixture
def webhook(started):
    return started(Webhook())


@pytest.fixture
def exporter(started):
    return started(Exporter())


@pytest.fixture
def node_group(started):
    """Makes HTTP node groups: node_group(size=3, etag="body")."""
    return lambda *args, **kwargs: started(HttpNodeGroup(*args, **kwargs))


@pytest.fixture
def make_prometheus(started, tmp_path):
    """Starts a Prometheus: make_prometheus(targets=[...], alertmanagers=[url], rules=[...])."""
    _need(prometheus.missing())
    return lambda **options: started(Prometheus(tmp_path / options.get("name", "prometheus"), **options)).start()


@pytest.fixture
def make_alertmanager(started, tmp_path):
    """Starts an Alertmanager: make_alertmanager(webhook=url, route={...}, http_config={...})."""
    _need(alertmanager.missing())
    return lambda **options: started(Alertmanager(tmp_path / options.get("name", "alertmanager"), **options)).start()


@pytest.fixture
def make_alertmanager_cluster(started, tmp_path):
    """Starts Alertmanagers that form a cluster: make_alertmanager_cluster(webhook=url, members=2)."""
    _need(alertmanager.missing())

    def make(**options):
        return [started(member) for member in start_cluster(tmp_path / "cluster", **options)]

    return make


@pytest.fixture
def make_nodes(control_plane, tmp_path):
    """make_nodes({name: provider id}): ready nodes; what `clusters` says of the cluster that they are in, as the shipped role."""
    install(control_plane, "namespace.yaml", "serviceaccount.yaml", "role-nodes.yaml")
    nodes, made = control_plane.admin, []

    def make(provider_ids):
        for name, provider_id in provider_ids.items():
            nodes.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"providerID": provider_id}})
            nodes.patch(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
            made.append(name)
        token = tmp_path / "node-token"
        token.write_text(control_plane.account_token("alertscaler", "alertscaler"))
        return {"default": {"kubeconfig": str(control_plane.write_kubeconfig("alertscaler", tokenFile=str(token)))}}

    yield make
    for name in made:
        nodes.request("DELETE", f"/api/v1/nodes/{name}")


@pytest.fixture
def make_daemon(started, tmp_path):
    """Starts alertscaler: make_daemon(rules={...}, config={...}). At the end it is checked for sanitizer reports."""
    if daemon.find_binary() is None:
        pytest.fail("alertscaler is not built: run tests/run unit", pytrace=False)
    made = []

    def make(*args, start=True, **options):
        directory = options.pop("directory", tmp_path / options.get("name", "alertscaler"))
        made.append(started(Daemon(directory, *args, **options)))
        return made[-1].start() if start else made[-1]

    yield make
    for one in made:
        if one.process.running:
            one.stop()
        else:
            one.check_sanitizers()
