"""An alert scales a node group up and down through the built binary, at a driver on the real gRPC library."""
import json

import pytest

from harness import grpc_driver
from harness.certificates import Authority
from harness.control_plane import ADMIN_TOKEN
from harness.grpc_driver import Driver, Fault, Group
from harness.http import Server
from harness.logins import TokenServer
from harness.notification import alert, notification
from harness.wait import eventually, steadily

READS = {"Refresh", "NodeGroups", "NodeGroupTargetSize", "NodeGroupNodes"}
UP, DOWN = "NodeGroupIncreaseSize", "NodeGroupDeleteNodes"

if grpc_driver.missing():
    pytest.skip(grpc_driver.missing(), allow_module_level=True)


@pytest.fixture
def group():
    return Group("ng1", 2, least=1, most=8)


@pytest.fixture
def driver(started, group):
    return started(Driver(Group("other", 1), group))


@pytest.fixture
def make(make_daemon):
    def start(url, name="ng1", provider=None, target=None, **config):
        rules = {
            "targets": {"web": {"node_group": {"provider": "drv", "name": name}, "max": 20, "nodes": {"cluster": "none"},
                                "cooldown": {"up": "1s", "down": "1s"}, **(target or {})}},
            "rules": [
                {"name": "busy", "match": ['alertname="Busy"'], "target": "web", "scale_up": {"by": 2}, "max_steps": 1},
                {"name": "idle", "match": ['alertname="Idle"'], "target": "web", "scale_down": {"by": 1}, "max_steps": 1},
            ],
        }
        options = {"type": "externalgrpc", "endpoint": url, "timeout": "2s", **(provider or {})}
        return make_daemon(rules, {"providers": {"drv": options}, **config})

    return start


def fire(daemon, name, *status):
    return daemon.notify(notification(alert({"alertname": name}, *status)))


def wait_words(daemon, words):
    return eventually(lambda: [r for r in daemon.records() if words in json.dumps(r)], 60, what=words)[0]


def test_up_and_down(make, driver, group):
    before = list(group.instances)
    daemon = make(driver.url)
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it has grown")
    assert list(group.instances)[:2] == before
    eventually(lambda: daemon.records("action", outcome="applied"), 60, what="it is known")
    fire(daemon, "Busy", "resolved")
    fire(daemon, "Idle")
    eventually(lambda: group.size == 3, 60, what="one is gone")
    assert len(group.removed) == 1 and len(group.instances) == 3
    assert driver.count(UP) == 1 and driver.count(DOWN) == 1
    assert all(0 < left <= 2 for left in driver.deadlines), "the driver is told how long it may take"
    assert driver.groups["other"].size == 1


def test_nodes_are_emptied_and_named(make, driver, group, control_plane, request):
    """Drivers may know a node by its name only."""
    names = {}
    for number, provider_id in enumerate(group.instances):
        name = names[provider_id] = f"grpc-{number}"
        control_plane.admin.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"providerID": provider_id}})
        request.addfinalizer(lambda path=f"/api/v1/nodes/{name}": control_plane.admin.request("DELETE", path))
        control_plane.admin.patch(f"/api/v1/nodes/{name}/status", {"status": {
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}})
    kubeconfig = control_plane.write_kubeconfig("grpc", token=ADMIN_TOKEN)
    daemon = make(driver.url, target={"nodes": {"cluster": "prod"}}, clusters={"prod": {"kubeconfig": str(kubeconfig)}})
    fire(daemon, "Idle")
    eventually(lambda: group.size == 1, 60, what="one is gone")
    ((provider_id, name),) = group.removed
    assert name == names[provider_id]
    node = control_plane.admin.get(f"/api/v1/nodes/{name}")
    assert node["spec"]["unschedulable"], "it was emptied first"


def test_dry_run_asks_and_changes_nothing(make, driver, group):
    daemon = make(driver.url, dry_run=True)
    fire(daemon, "Busy")
    eventually(lambda: driver.asked and daemon.records("decision"), 60, what="a record")
    assert group.size == 2 and set(driver.asked) == READS


def test_the_drivers_bounds_hold(make, driver, group):
    group.most = 3
    daemon = make(driver.url)
    fire(daemon, "Busy")
    eventually(lambda: group.size == 3, 60, what="as far as it goes")
    assert driver.count(UP) == 1
    group.least = 3
    eventually(lambda: daemon.records("action", outcome="applied"), 60, what="it is known")
    fire(daemon, "Busy", "resolved")
    fire(daemon, "Idle")
    wait_words(daemon, "at_min")
    assert group.size == 3 and not group.removed


def test_what_never_comes_is_taken_back(make, driver, group):
    group.room = 3
    daemon = make(driver.url, target={"nodes": {"cluster": "none", "ready_timeout": "3s"}})
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it has grown")
    eventually(lambda: driver.count("NodeGroupDecreaseTargetSize"), 60, what="it is taken back")
    steadily(lambda: group.size == 3 and len(group.instances) == 3 and not group.removed, 3)
    assert driver.count(UP) == 1, "it is left alone for a while"


# ---- who it is ----


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path / "ca")


@pytest.fixture
def secure(started, group, authority):
    return started(Driver(group, tls=(*authority.issue("driver"), authority.certificate)))


def make_tls(authority, client=True):
    options = {"ca_file": str(authority.certificate)}
    if client:
        certificate, key = authority.issue("alertscaler", usage="clientAuth", alternative_names=None)
        options |= {"cert_file": str(certificate), "key_file": str(key)}
    return {"http_config": {"tls_config": options}}


def test_tls_with_a_client_certificate(make, secure, group, authority):
    daemon = make(secure.url, provider=make_tls(authority))
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it has grown")


def test_without_a_client_certificate_nothing_is_done(make, secure, group, authority):
    daemon = make(secure.url, provider=make_tls(authority, client=False))
    fire(daemon, "Busy")
    wait_words(daemon, "refresh: ")
    assert group.size == 2 and not secure.asked


def test_a_driver_that_is_not_trusted_is_asked_nothing(make, secure, group, tmp_path):
    daemon = make(secure.url, provider=make_tls(Authority(tmp_path / "other")))
    fire(daemon, "Busy")
    wait_words(daemon, "SSL certificate problem")
    assert group.size == 2 and not secure.asked


def test_a_token_for_who_stands_before_the_driver(make, driver, group, tmp_path):
    token = tmp_path / "token"
    token.write_text("sesame\n")
    daemon = make(driver.url, provider={"http_config": {"authorization": {"credentials_file": str(token)},
                                                        "http_headers": {"X-Tenant": {"values": ["shop"]}}}})
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it has grown")
    assert {(m.get("authorization"), m.get("x-tenant")) for m in driver.metadata} == {("Bearer sesame", "shop")}


def test_a_token_that_the_driver_refuses_is_renewed(make, driver, group, started, tmp_path):
    """gRPC refuses with the status 200 of HTTP; the call is made once more, with a new token."""
    tokens = started(TokenServer())
    driver.inject(Fault(UP, "UNAUTHENTICATED"))
    daemon = make(driver.url, provider={"http_config": {"oauth2": tokens.config(tmp_path)}})
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it has grown")
    assert len(tokens.asked) == 2 and driver.count(UP) == 2
    sent = [m.get("authorization") for name, m in zip(driver.asked, driver.metadata) if name == UP]
    assert sent == ["Bearer tok3n-1", "Bearer tok3n-2"]


def test_a_token_server_that_is_down_for_a_while_needs_nobody(make, driver, group, started, tmp_path):
    tokens = started(TokenServer())
    tokens.answer = (503, {}, b"")
    daemon = make(driver.url, provider={"http_config": {"oauth2": tokens.config(tmp_path)}})
    fire(daemon, "Busy")
    wait_words(daemon, "HTTP 503")
    assert not driver.asked and not [r for r in daemon.records() if "rejected" in json.dumps(r)]
    tokens.answer = None
    eventually(lambda: group.size == 4, 120, what="it has grown")


def test_a_token_that_cannot_be_read_is_told(make, driver, group, tmp_path):
    daemon = make(driver.url, provider={"http_config": {"authorization": {"credentials_file": str(tmp_path / "gone")}}})
    fire(daemon, "Busy")
    wait_words(daemon, "gone: No such file or directory")
    assert not driver.asked


# ---- what goes wrong ----


@pytest.mark.parametrize("fault", [
    Fault("Refresh", "UNAVAILABLE"),
    Fault("NodeGroups", "RESOURCE_EXHAUSTED"),
    Fault("NodeGroupTargetSize", "INTERNAL"),
    Fault("NodeGroupNodes", "CANCELLED"),
    Fault("Refresh", delay=3),
    Fault(UP, "UNAVAILABLE"),
    Fault(UP, "UNAVAILABLE", apply=True),
    Fault(UP, "UNKNOWN"),
    Fault(UP, "UNKNOWN", apply=True),
    Fault(UP, "DEADLINE_EXCEEDED", apply=True),
    Fault(UP, "ABORTED"),
    Fault(UP, "ALREADY_EXISTS"),
    Fault(UP, "DATA_LOSS", apply=True),
    Fault(UP, delay=3),
], ids=lambda f: f"{f.method}-{f.status or 'late'}{'-applied' if f.apply else ''}")
def test_what_goes_wrong_once_is_done_in_the_end_and_once(make, driver, group, fault):
    """A difference that was asked for, and perhaps applied, is never asked for again unseen."""
    driver.inject(fault)
    daemon = make(driver.url)
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 120, what="it has grown")
    eventually(lambda: daemon.records("action", outcome="applied"), 120, what="it is known")
    steadily(lambda: group.size == 4 and len(group.instances) == 4, 3)


@pytest.mark.parametrize("fault", [
    Fault(DOWN, "UNAVAILABLE"),
    Fault(DOWN, "UNKNOWN", apply=True),
    Fault(DOWN, delay=3),
], ids=lambda f: f"{f.status or 'late'}{'-applied' if f.apply else ''}")
def test_a_removal_that_goes_wrong_once_is_done_in_the_end_and_once(make, driver, group, fault):
    group.size = 4
    group.settle()
    driver.inject(fault)
    daemon = make(driver.url)
    fire(daemon, "Idle")
    eventually(lambda: group.size == 3, 120, what="one is gone")
    eventually(lambda: daemon.records("action", outcome="applied"), 120, what="it is known")
    steadily(lambda: group.size == 3 and len(group.removed) == 1, 3)


@pytest.mark.parametrize("status, outcome", [
    ("INVALID_ARGUMENT", "rejected"),
    ("NOT_FOUND", "target_not_found"),
    ("PERMISSION_DENIED", "forbidden"),
    ("RESOURCE_EXHAUSTED", "rejected"),
    ("FAILED_PRECONDITION", "rejected"),
    ("OUT_OF_RANGE", "rejected"),
    ("UNIMPLEMENTED", "rejected"),
    ("UNAUTHENTICATED", "forbidden"),
])
def test_what_is_refused_is_told(make, driver, group, status, outcome):
    driver.inject(Fault(UP, status, message="so sagt er: ü 100%"), times=20)
    daemon = make(driver.url)
    fire(daemon, "Busy")
    record = eventually(lambda: daemon.records("action", outcome=outcome), 60, what=outcome)[0]
    assert f"{status}: so sagt er: ü 100%" in json.dumps(record, ensure_ascii=False)
    assert group.size == 2


def test_a_group_that_is_not_there(make, driver):
    daemon = make(driver.url, name="gone")
    fire(daemon, "Busy")
    wait_words(daemon, "the driver has no node group gone")
    assert "NodeGroupTargetSize" not in driver.asked


def test_an_instance_that_failed_goes_first(make, driver, group):
    group.instances["test://ng1/broken"] = grpc_driver.CREATING
    group.errors["test://ng1/broken"] = ("OutOfStock", "no machines left")
    daemon = make(driver.url)
    fire(daemon, "Idle")
    eventually(lambda: group.size == 1, 60, what="one is gone")
    assert [name for name, _ in group.removed] == ["test://ng1/broken"]


def test_who_does_not_speak_grpc_is_told_so(make, started):
    web = started(Server(lambda asked: (200, {"Content-Type": "text/html"}, b"<html/>")))
    daemon = make(web.url)
    fire(daemon, "Busy")
    wait_words(daemon, "refresh: ")
