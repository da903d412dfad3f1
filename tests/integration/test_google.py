"""An alert scales managed instance groups (zonal and regional) and a node pool of GKE up and down through the built binary."""
import json
import pathlib
import re

import pytest

from harness.cloud import Fault
from harness.google import PROJECT, REGION, ZONES, Google
from harness.nodes import is_in_service
from harness.notification import alert, notification
from harness.wait import eventually, steadily

KINDS = ["zonal", "regional", "pool"]
RESIZE, DELETE, LIST = "^POST .*/resize", "^POST .*/deleteInstances", "^POST .*/listManagedInstances"
PAGE = pathlib.Path(__file__).parents[2] / "docs/providers/google.md"


@pytest.fixture
def google(started, tmp_path):
    return started(Google(tmp_path))


@pytest.fixture
def add(google):
    """add(kind) -> a group of two machines, and where it is found."""
    def make(kind, **options):
        if kind == "pool":
            return google.add_pool("prod", "web", [1, 1, 0], **options), {"location": REGION, "cluster": "prod"}
        if kind == "regional":
            return google.add_regional("web", 2, **options), {"region": REGION}
        return google.add_zonal("web", 2, **options), {"zone": ZONES[0]}

    return make


@pytest.fixture
def make(google, make_daemon):
    def start(where, env=None, name="web", provider=None, nodes=None, **config):
        kind = "gke" if "cluster" in where else "gce"
        node_group = {"provider": "google", "name": name, **where}
        rules = {
            "targets": {"web": {"node_group": node_group, "max": 20, "nodes": {"cluster": "none", **(nodes or {})},
                                "cooldown": {"up": "1s", "down": "1s"}}},
            "rules": [
                {"name": "busy", "match": ['alertname="Busy"'], "target": "web", "scale_up": {"by": 2}, "max_steps": 1},
                {"name": "idle", "match": ['alertname="Idle"'], "target": "web", "scale_down": {"by": 1}, "max_steps": 1},
            ],
        }
        options = {"type": kind, "endpoint": google.url, "timeout": "3s", **(provider or {})}
        if kind == "gke":
            options["compute_endpoint"] = google.url
        host = {"GCE_METADATA_HOST": google.url.removeprefix("http://")}
        return make_daemon(rules, {"providers": {"google": options}, **config}, env={**host, **(env or {})})

    return start


def fire(daemon, name, *status):
    return daemon.notify(notification(alert({"alertname": name}, *status)))


def wait_words(daemon, words):
    return eventually(lambda: [r for r in daemon.records() if words in json.dumps(r)], 60, what=words)[0]


def names(group):
    return {i.name for i in group.present()}


@pytest.mark.parametrize("kind", KINDS)
def test_up_and_down(make, add, google, kind):
    group, where = add(kind)
    before = names(group)
    daemon = make(where)
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it has grown")
    assert before < names(group) and len(group.present()) == 4
    wait_words(daemon, "operation-17")          # Google's own name of the request
    fire(daemon, "Busy", "resolved")
    resizes = len(google.changed())
    fire(daemon, "Idle")
    eventually(lambda: group.size == 3, 60, what="one is gone")
    assert len(group.present()) == 3
    ((line, body),) = google.changed()[resizes:]
    assert "/deleteInstances?" in line and len(body["instances"]) == 1
    lists = [line for line, _ in google.requests(LIST)]
    assert kind == "pool" or [line for line in lists if "pageToken=" in line]


def test_a_pool_grows_where_the_fewest_are(make, add, google):
    pool, where = add("pool")
    daemon = make(where)
    fire(daemon, "Busy")
    eventually(lambda: pool.size == 4, 60, what="it has grown")
    assert [group.size for group in pool.groups] == [2, 1, 1]
    assert len(google.changed()) == 2
    eventually(lambda: daemon.records("action", outcome="applied"), 60, what="it is known")


@pytest.mark.parametrize("kind", KINDS)
def test_dry_run_asks_and_changes_nothing(make, add, google, kind):
    group, where = add(kind)
    daemon = make(where, dry_run=True)
    fire(daemon, "Busy")
    eventually(lambda: google.requests(LIST) and daemon.records("decision"), 60, what="a record")
    assert group.size == 2 and not google.changed()


def test_kept_machines_stay(make, add, google):
    group, where = add("zonal")
    group.instances[0].is_kept = True
    daemon = make(where)
    fire(daemon, "Idle")
    eventually(lambda: group.size == 1, 60, what="one is gone")
    assert names(group) == {"web-0000"}


# ---- who it is ----


def test_key_of_a_service_account(make, add, google):
    group, where = add("zonal")
    google.identity.has_account = False
    daemon = make(where, env={"GOOGLE_APPLICATION_CREDENTIALS": google.identity.write_key("secrets/key.json")})
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it has grown")


def test_a_person(make, add, google):
    group, where = add("zonal")
    google.identity.has_account = False
    daemon = make(where, provider={"credentials_file": str(google.identity.write_user("secrets/user.json"))})
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it has grown")


@pytest.mark.parametrize("is_configured", [False, True], ids=["variable", "key"])
def test_external_account_with_a_file(make, add, google, tmp_path, is_configured):
    """Workload identity federation: the token that the file names is in a folder of its own, which the sandbox lets be read."""
    group, where = add("zonal")
    google.identity.has_account = False
    token = tmp_path / "projected" / "token"
    token.parent.mkdir()
    token.write_text(google.identity.subject + "\n")
    path = str(google.identity.write_external({"file": str(token)}, "secrets/external.json",
                                              service_account_impersonation_url=google.identity.impersonation_url))
    options = {"provider": {"credentials_file": path}} if is_configured else {"env": {"GOOGLE_APPLICATION_CREDENTIALS": path}}
    daemon = make({**where, "project": PROJECT}, **options)
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it has grown")


def test_external_account_with_an_address(make, add, google):
    group, where = add("zonal")
    google.identity.has_account = False
    source = {"url": google.url + "/subject", "headers": {"X-Machine": "m-1"},
              "format": {"type": "json", "subject_token_field_name": "value"}}
    daemon = make(where, provider={"credentials_file": str(google.identity.write_external(source)), "project": PROJECT})
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it has grown")


def test_token_that_is_not_accepted_any_more(make, add, google):
    group, where = add("zonal")
    daemon = make(where)
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it has grown")
    eventually(lambda: daemon.records("action", outcome="applied"), 60, what="it is known")
    google.expire_tokens()
    fire(daemon, "Busy", "resolved")
    fire(daemon, "Idle")
    eventually(lambda: group.size == 3, 60, what="one is gone")


def write_other_key(identity):
    return identity.write_key(email="other@shop.iam.gserviceaccount.com")


def write_wrong_token(identity):
    (identity.directory / "token").write_text("eyJ.other")
    return identity.write_external({"file": str(identity.directory / "token")})


@pytest.mark.parametrize("write, words", [
    (write_other_key, "GOOGLE_APPLICATION_CREDENTIALS: token: invalid_grant: Invalid grant: account not found"),
    (write_wrong_token, "token_exchange: invalid_grant: The ID Token issued at 1 is stale to sign-in."),
    (lambda identity: identity.directory / "absent.json", "absent.json: No such file or directory"),
    (None, "the metadata service has no service account for this machine or pod"),
])
def test_who_is_not_known_is_told_so(make, add, google, write, words):
    group, where = add("zonal")
    google.identity.has_account = False
    env = {"GOOGLE_APPLICATION_CREDENTIALS": write(google.identity)} if write else {}
    daemon = make({**where, "project": PROJECT}, env=env)
    fire(daemon, "Busy")
    wait_words(daemon, words)
    assert group.size == 2


# ---- what it may ----


def documented_permissions():
    return set(re.findall(r"^  - ((?:compute|container)\.\S+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))


@pytest.mark.parametrize("kind", KINDS)
def test_the_documented_permissions_are_enough(make, add, google, kind):
    group, where = add(kind)
    google.allowed = documented_permissions()
    daemon = make(where)
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it has grown")
    eventually(lambda: daemon.records("action", outcome="applied"), 60, what="it is known")
    fire(daemon, "Busy", "resolved")
    fire(daemon, "Idle")
    eventually(lambda: group.size == 3, 60, what="one is gone")


@pytest.mark.parametrize("kind, permission", [
    ("zonal", "compute.instanceGroupManagers.get"), ("zonal", "compute.instanceGroupManagers.list"),
    ("zonal", "compute.instanceGroupManagers.update"), ("pool", "container.clusters.get"),
])
def test_a_permission_that_is_missing_is_named(make, add, google, kind, permission):
    group, where = add(kind)
    google.allowed = documented_permissions() - {permission}
    daemon = make(where)
    fire(daemon, "Busy")
    record = wait_words(daemon, f"Required '{permission}' permission")
    assert "forbidden" in json.dumps(record) and group.size == 2


# ---- what goes wrong ----


@pytest.mark.parametrize("kind", ["zonal", "pool"])
@pytest.mark.parametrize("fault", [
    Fault(RESIZE, status=429, code="rateLimitExceeded", headers={"Retry-After": "1"}),
    Fault(RESIZE, status=403, code="rateLimitExceeded", message="Quota exceeded for quota metric 'Queries'"),
    Fault(RESIZE, status=412, code="conditionNotMet"),
    Fault(RESIZE, status=400, code="resourceNotReady"),
    Fault(RESIZE, status=409, code="resourceInUseByAnotherResource"),
    Fault(RESIZE, status=401, code="authError"),
    Fault(RESIZE, status=500, code="internalError"),
    Fault(RESIZE, status=503, code="backendError", apply=True),
    Fault(RESIZE, hang_up=True, apply=True),
    Fault(LIST, status=200, body=b'{"managedInstances":[{"na'),
    Fault(LIST, status=502, body=b"<html>Bad Gateway</html>"),
    Fault("^GET ", status=429, code="userRateLimitExceeded"),
    Fault("^GET .*/operations/", status=500, code="internalError"),
], ids=str)
def test_what_goes_wrong_once_is_done_in_the_end_and_once(make, add, google, kind, fault):
    group, where = add(kind)
    google.inject(fault)
    daemon = make(where)
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 120, what="it has grown")
    eventually(lambda: daemon.records("action", outcome="applied"), 120, what="it is known")
    assert len(group.present()) == 4


def test_half_a_pool_is_made_whole(make, add, google):
    """The second of two groups cannot be resized at first."""
    pool, where = add("pool")
    google.inject(Fault(r"^POST .*-2a1b2c3d-grp/resize", status=503, code="backendError"))
    daemon = make(where)
    fire(daemon, "Busy")
    eventually(lambda: pool.size == 4, 120, what="it has grown")
    eventually(lambda: daemon.records("action", outcome="applied"), 120, what="it is known")


@pytest.mark.parametrize("fault", [
    Fault(DELETE, status=503, code="backendError", apply=True),
    Fault(DELETE, hang_up=True, apply=True),
    Fault(DELETE, status=412, code="conditionNotMet"),
], ids=str)
def test_a_removal_whose_answer_is_lost_is_no_second_one(make, add, google, fault):
    group, where = add("zonal")
    google.inject(fault)
    daemon = make(where)
    fire(daemon, "Idle")
    eventually(lambda: group.size == 1, 120, what="one is gone")
    eventually(lambda: daemon.records("action", outcome="applied"), 120, what="it is known")
    steadily(lambda: group.size == 1, 3)


@pytest.mark.parametrize("status, code, message, words", [
    (403, "forbidden", "The user may not.", "HTTP 403 forbidden: The user may not."),
    (403, "accessNotConfigured", "Compute Engine API has not been used in project 7 before.", "accessNotConfigured: Compute"),
    (400, "invalid", "Invalid value for field 'size'", "HTTP 400 invalid: Invalid value for field 'size'"),
    (403, "quotaExceeded", "Quota 'CPUS' exceeded.  Limit: 24.0 in region europe-west1.", "Quota 'CPUS' exceeded."),
])
def test_what_is_refused_is_told(make, add, google, status, code, message, words):
    group, where = add("zonal")
    google.inject(Fault(RESIZE, status=status, code=code, message=message), times=20)
    daemon = make(where)
    fire(daemon, "Busy")
    wait_words(daemon, words)
    assert group.size == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", [("QUOTA_EXCEEDED", "Quota 'INSTANCE_GROUPS' exceeded."), ("INTERNAL_ERROR", "Internal error.")],
                         ids=lambda e: e[0])
def test_what_an_operation_ends_with_is_told_and_it_was_one_step(make, add, google, kind, error):
    group, where = add(kind)
    google.broken = error
    daemon = make(where)
    fire(daemon, "Busy")
    record = wait_words(daemon, ": ".join(error))
    assert "operation-17" in json.dumps(record) and (record["outcome"], record["to"]) == ("applied", 4)
    steadily(lambda: group.size == 4, 5, what="no further step")


@pytest.mark.parametrize("kind", KINDS)
def test_a_removal_that_fails_later_is_told_and_the_node_takes_pods_again(make, add, google, make_nodes, control_plane, kind):
    """It is accepted at first: what comes of it is asked after."""
    group, where = add(kind)
    nodes = {i.name: f"gce://{PROJECT}/{i.zone}/{i.name}" for i in group.present()}
    google.broken = ("INTERNAL_ERROR", "Internal error.")
    daemon = make(where, nodes={"cluster": "default"}, clusters=make_nodes(nodes))
    fire(daemon, "Idle")
    kept = daemon.wait_record("nodes", 90, event="kept")
    assert ": ".join(google.broken) in kept["message"] and group.size == 2
    eventually(lambda: all(is_in_service(control_plane, name) for name in nodes), 60, what="the nodes take pods again")


def spare(kind):
    """Room for one more: in a pool, in the zone that has none yet."""
    return {"zonal": 3, "regional": 3, "pool": 1}[kind]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("code", ["ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "QUOTA_EXCEEDED", "IP_SPACE_EXHAUSTED"])
def test_what_does_not_come_is_taken_back(make, add, google, kind, code):
    """The size is set, and a machine says again and again why it cannot be made."""
    group, where = add(kind, room=spare(kind), error=(code, "there are no more"))
    daemon = make(where, nodes={"ready_timeout": "3s"})
    fire(daemon, "Busy")
    eventually(lambda: group.size == 4, 60, what="it was asked for")
    wait_words(daemon, "1 requested instance did not come")
    eventually(lambda: group.size == 3, 60, what="what never came is gone")
    eventually(lambda: len(group.present()) == 3, 60, what="three are there")
    assert all(i.action == "NONE" for i in group.present())
    ((_, body),) = google.requests(DELETE)
    assert len(body["instances"]) == 1
    steadily(lambda: group.size == 3, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_autoscalers_are_respected(make, add, google, kind):
    group, where = add(kind, autoscaler="web-as")
    daemon = make(where)
    fire(daemon, "Busy")
    wait_words(daemon, "Google's autoscaler web-as")
    assert group.size == 2 and not google.changed()


@pytest.mark.parametrize("autoscaling, words", [({"enabled": True}, "the node pool's own autoscaling")])
def test_the_autoscaling_of_a_pool_is_respected(make, add, google, autoscaling, words):
    pool, where = add("pool")
    pool.autoscaling = autoscaling
    daemon = make(where)
    fire(daemon, "Busy")
    wait_words(daemon, words)
    assert pool.size == 2 and not google.changed()


def test_a_pool_at_work_is_waited_for(make, add, google):
    pool, where = add("pool")
    pool.status = "RECONCILING"
    daemon = make(where)
    fire(daemon, "Busy")
    wait_words(daemon, '"reason": "in_progress"')
    assert pool.size == 2 and not google.changed()
    pool.status = "RUNNING"
    eventually(lambda: pool.size == 4, 120, what="it has grown")


@pytest.mark.parametrize("kind", KINDS)
def test_a_group_that_is_not_there(make, add, kind):
    _, where = add(kind)
    daemon = make(where, name="other")
    fire(daemon, "Busy")
    record = wait_words(daemon, "notFound")
    assert "target_not_found" in json.dumps(record)
    assert kind != "pool" or "0x00000000000000" in json.dumps(record)      # GKE's own name of the request
