"""Many reloads: who may ask for them, which of them are one, what they leave alone, and the memory that they need."""
import concurrent.futures
import itertools
import threading
import time

import pytest

from harness.daemon import dump_yaml
from harness.files import replace
from harness.http import request
from harness.node_group import Fault
from harness.notification import alert, notification
from harness.wait import eventually, steadily

TOKENS = {
    "operator": {"permissions": ["read", "notify", "admin"]},
    "of-target": {"permissions": ["read", "admin"], "targets": ["workers"]},
    "of-rule": {"permissions": ["notify", "admin"], "rules": ["busy"]},
}
UNCHANGED = "unchanged"


def make_rules(group, number=0, fillers=0):
    """`number` changes another target's rule only."""
    other = {"provider": "mine", "url": group.url + "?other"}
    return {
        "targets": {"workers": {"node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 10, "cooldown": {"up": "1s"}},
                    "other": {"node_group": other, "min": 1, "max": 10 + number}},
        "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 2}},
                  {"name": "more", "match": [f'alertname="Other{number}"'], "target": "other", "scale_up": {"by": 1}},
                  *({"name": f"filler-{n}", "match": [f'alertname="Filler{n}"'], "target": "other", "scale_up": {"by": 1}}
                    for n in range(fillers))],
    }


@pytest.fixture
def group(node_group):
    return node_group(size=4)


@pytest.fixture
def make(make_daemon, group, tmp_path):
    def make(fillers=0, provider=None, **options):
        tokens = []
        for name, access in TOKENS.items():
            (tmp_path / name).write_text(f"{name}-secret")
            tokens.append({"name": name, "file": str(tmp_path / name), **access})
        config = {"providers": {"mine": {"type": "http", **(provider or {})}}, "receiver": {"tokens": tokens}}
        daemon = make_daemon(make_rules(group, fillers=fillers), config, flags=["--web.enable-admin-api"], **options)
        daemon.headers = {"Authorization": "Bearer operator-secret"}
        return daemon

    return make


def change(daemon, group, number):
    replace(daemon.directory / "rules" / "rules.yaml", dump_yaml(make_rules(group, number)))


def ask(daemon, token="operator"):
    return request("POST", daemon.url + "/-/reload", b"", {"Authorization": f"Bearer {token}-secret"}, timeout=120)


def value(daemon, name):
    return daemon.metrics().value(f"alertscaler_config_last_reload_{name}")


def test_a_credential_for_some_targets_or_rules_reloads_nothing(make, group):
    daemon = make()
    change(daemon, group, 1)
    for token in ("of-target", "of-rule"):
        answer = ask(daemon, token)
        assert answer.status == 403 and f"`{token}` is narrowed by `rules` or `targets`" in answer.text
    refused = daemon.wait_record("denied", status=403)
    assert refused["handler"] == "reload"
    assert not daemon.records("reload")
    assert ask(daemon).text == "reloaded\n"
    assert ask(daemon).text == "unchanged: all files have the content that is in force\n"
    eventually(lambda: len(daemon.records("reload")) == 1)


def test_equal_files_change_nothing(make, group):
    daemon = make()
    since = value(daemon, "success_timestamp_seconds")
    time.sleep(1)
    answer = ask(daemon)
    assert answer.status == 200 and answer.text.startswith(UNCHANGED)
    daemon.reload()
    eventually(lambda: daemon.process.log_text().count('msg="configuration unchanged"') == 2)
    assert value(daemon, "success_timestamp_seconds") > since and value(daemon, "successful") == 1
    assert "configuration loaded" not in daemon.process.log_text() and not daemon.records("reload")
    # A file with an error, and the old content again: the last reload was successful.
    good = (daemon.directory / "rules" / "rules.yaml").read_text()
    replace(daemon.directory / "rules" / "rules.yaml", "rules: 1\n")
    assert ask(daemon).status == 500 and value(daemon, "successful") == 0
    replace(daemon.directory / "rules" / "rules.yaml", good)
    assert ask(daemon).text.startswith(UNCHANGED) and value(daemon, "successful") == 1
    eventually(lambda: [record["error"] is None for record in daemon.records("reload")] == [False])


def test_a_reload_takes_over_every_file_that_is_named(make, group, tmp_path):
    """Not only the configuration and the rules count, also what they name, and new files of a pattern."""
    secret = tmp_path / "group.token"
    secret.write_text("one")
    daemon = make(provider={"http_config": {"authorization": {"credentials_file": str(secret)}}})
    assert ask(daemon).text.startswith(UNCHANGED)
    replace(secret, "two")
    assert ask(daemon).text == "reloaded\n"
    assert ask(daemon).text.startswith(UNCHANGED)
    replace(tmp_path / "operator", "operator-secret\n")
    assert ask(daemon).text == "reloaded\n"
    replace(daemon.directory / "rules" / "more.yaml", "rules: []\n")
    assert ask(daemon).text == "reloaded\n"
    assert ask(daemon).text.startswith(UNCHANGED)


def ask_together(daemon, count):
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return [(answer.status, answer.text) for answer in pool.map(lambda _: ask(daemon), range(count))]


def test_requests_within_a_second_are_one_reload(make, group):
    daemon = make()
    change(daemon, group, 1)
    ask(daemon)
    # Each answer is of a reload that began after its request.
    change(daemon, group, 2)
    answers = ask_together(daemon, 30)
    assert {status for status, _ in answers} == {200} and (200, "reloaded\n") in answers
    eventually(lambda: len(daemon.records("reload")) == 2)
    # All get the error.
    replace(daemon.directory / "rules" / "rules.yaml", "rules: 1\n")
    began = time.monotonic()
    answers = ask_together(daemon, 30)
    assert {(status, "rules.yaml:1:" in text) for status, text in answers} == {(500, True)}
    assert len([r for r in daemon.records("reload") if r["error"]]) <= 2 + (time.monotonic() - began)


@pytest.mark.seconds(300)
def test_two_hundred_reloads_need_bounded_memory(make, group):
    daemon = make(fillers=3000, env={"ASAN_OPTIONS": "quarantine_size_mb=1:thread_local_quarantine_size_kb=64"})
    file = daemon.directory / "rules" / "rules.yaml"
    text = file.read_text()
    numbers = itertools.count(1)
    ends = threading.Event()

    def change_all():
        replace(file, f"{text}# {next(numbers)}\n")

    def go_on_changing():
        while not ends.wait(0.1):
            change_all()

    for _ in range(6):          # so many configurations may be there
        change_all()
        assert ask(daemon).text == "reloaded\n"
    own = daemon.process.resident_bytes()
    changing = threading.Thread(target=go_on_changing)
    changing.start()
    try:
        answers = [answer for _ in range(10) for answer in ask_together(daemon, 20)]
    finally:
        ends.set()
        changing.join()
    assert {status for status, _ in answers} == {200}
    reloads = len(daemon.records("reload"))
    grown = daemon.process.resident_bytes() - own
    print(f"{grown / 1e6:.1f} MB more after {len(answers)} answers of {reloads} reloads")
    assert reloads >= 12 and grown < 60e6


@pytest.mark.seconds(300)
def test_a_slow_group_is_scaled_while_other_rules_change_each_second(make, group):
    daemon = make()
    eventually(lambda: daemon.target("workers")["replicas"] == 4)
    group.inject(Fault("GET", delay=1.5), Fault("PUT", delay=1.5), times=500)
    ends = threading.Event()

    def go_on_reloading():
        number = 1
        while not ends.wait(0.5):
            change(daemon, group, number)
            ask(daemon)
            number += 1

    reloading = threading.Thread(target=go_on_reloading)
    reloading.start()
    try:
        eventually(lambda: len(daemon.records("reload")) >= 2)
        daemon.notify(notification(alert({"alertname": "Busy"})))
        eventually(lambda: 6 in group.applied, 60, what="it is scaled")
        reloads = len(daemon.records("reload"))
        steadily(lambda: daemon.process.running, 2)
    finally:
        ends.set()
        reloading.join()
    decision = daemon.wait_record("decision", target_name="workers")
    assert decision["output"]["reason"] == "scaled"
    assert reloads >= 2
    group.heal()


def test_an_observation_under_way_outlasts_a_signal(make, group):
    """The same without HTTP: a reload that changes the rules of another target does not observe again."""
    daemon = make()
    eventually(lambda: daemon.target("workers")["replicas"] == 4)
    reached, go_on = threading.Event(), threading.Event()

    def wait():
        reached.set()
        go_on.wait(60)

    seen = []
    group.inject(Fault("GET", meanwhile=wait), Fault("PUT", meanwhile=lambda: seen.append(group.gets)))
    daemon.notify(notification(alert({"alertname": "Busy"})))
    assert reached.wait(60)
    change(daemon, group, 1)
    daemon.reload()
    daemon.wait_record("reload")
    gets = group.gets
    go_on.set()
    eventually(lambda: group.applied == [6])
    decision = daemon.wait_record("decision", target_name="workers")
    assert decision["output"]["reason"] == "scaled"
    assert seen == [gets], "it is not observed again"
