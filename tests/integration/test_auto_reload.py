"""--config.auto-reload-interval: changed files are loaded without a signal and without a restart."""
import os
import time

import pytest

from harness.daemon import dump_yaml
from harness.files import ConfigMapVolume, replace
from harness.notification import alert, notification
from harness.wait import eventually

TWO_INTERVALS = 2.5


@pytest.fixture
def make(make_daemon, node_group, tmp_path):
    """A daemon whose rules are in a ConfigMap's volume, and raise the size by `step`."""
    group = node_group(size=4)

    def make_rules(step):
        return dump_yaml({
            "targets": {"workers": {"node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 50,
                                    "cooldown": {"up": "0s"}}},
            "rules": [{"name": f"up-by-{step}", "match": ["alertname=Busy"], "target": "workers", "scale_up": {"by": step}}]})

    volume = ConfigMapVolume(tmp_path / "volume", rules=make_rules(1))
    settings = {"providers": {"mine": {"type": "http"}}, "rule_files": [f"{volume.path}/*.yaml"]}
    daemon = make_daemon({}, settings, flags=["--config.auto-reload-interval=1s"])
    return daemon, group, volume, make_rules, settings


def get_rules(daemon):
    return [rule["name"] for rule in daemon.get("/api/v1/rules").json["data"]]


def list_reloads(daemon):
    return daemon.records("reload")


def test_the_rules_of_a_configmap_are_loaded_when_it_changes(make):
    daemon, group, volume, make_rules, _ = make
    pid = daemon.process.pid
    volume.update(rules=make_rules(7))
    eventually(lambda: get_rules(daemon) == ["up-by-7"], what="the new rules are in force")
    daemon.notify(notification(alert({"alertname": "Busy"})))
    eventually(lambda: group.size == 11, what="the new rule acts")
    volume.update(rules=make_rules(7), more=dump_yaml(
        {"rules": [{"name": "another", "match": ["alertname=Idle"], "target": "workers", "scale_down": {"by": 1}}]}))
    eventually(lambda: sorted(get_rules(daemon)) == ["another", "up-by-7"], what="a new file is found")
    volume.update(rules=make_rules(7))
    eventually(lambda: get_rules(daemon) == ["up-by-7"], what="a file that is gone has no rules")
    assert daemon.process.pid == pid
    # A look may come when the new folder is there and the link of the file that is gone is still to go, as with kubelet.
    assert all("more.yaml" in record["error"] for record in list_reloads(daemon) if record["error"])


def test_a_configuration_that_names_other_rule_files_is_loaded(make):
    daemon, _, volume, make_rules, settings = make
    volume.update(**{"rules": make_rules(1), "other": make_rules(5)})
    eventually(lambda: any("other.yaml" in record["error"] for record in list_reloads(daemon)), what="both files define the target")
    daemon.write_config({**settings, "rule_files": [f"{volume.path}/other.yaml"]})
    eventually(lambda: get_rules(daemon) == ["up-by-5"], what="the rules of the other file are in force")
    daemon.write_config({**settings, "rule_files": [f"{volume.path}/rules.yaml"]})
    eventually(lambda: get_rules(daemon) == ["up-by-1"], what="the rules of the first file are in force again")
    assert daemon.process.log_text().count("the configuration's files have changed") == 3
    volume.update(**{"rules": make_rules(1), "other": make_rules(6)})
    time.sleep(TWO_INTERVALS)
    assert len([record for record in list_reloads(daemon) if not record["error"]]) == 2, "the other file is not watched now"


def test_what_has_not_changed_is_not_loaded_again(make):
    daemon, _, volume, make_rules, _ = make
    volume.update(rules=make_rules(1))                  # another folder and file, the same content
    os.utime(daemon.config_file)
    time.sleep(TWO_INTERVALS)
    assert list_reloads(daemon) == []


def test_files_with_errors_change_nothing_and_are_told_once(make):
    daemon, _, volume, make_rules, _ = make
    volume.update(rules=make_rules(2) + "nonsense: true\n")
    record, = eventually(lambda: list_reloads(daemon), what="the failure is recorded")
    assert "nonsense" in record["error"]
    time.sleep(TWO_INTERVALS)
    assert len(list_reloads(daemon)) == 1, "it is not repeated"
    assert daemon.process.log_text().count("reload failed") == 1
    assert get_rules(daemon) == ["up-by-1"]
    assert daemon.metrics().value("alertscaler_config_last_reload_successful") == 0
    volume.update(rules=make_rules(3))
    eventually(lambda: get_rules(daemon) == ["up-by-3"], what="what is mended is loaded")
    assert daemon.metrics().value("alertscaler_config_last_reload_successful") == 1


def test_a_token_that_comes_after_the_configuration_is_waited_for(make, tmp_path):
    """The volumes of a pod are not updated at one moment."""
    daemon, _, _, _, settings = make
    token = daemon.directory / "token"
    replace(daemon.config_file, dump_yaml({
        **settings, "state": {"store": "sqlite", "path": str(daemon.state_file)}, "action_log": {"path": str(daemon.log_file)},
        "receiver": {"tokens": [{"name": "late", "file": str(token)}]}}))
    record, = eventually(lambda: list_reloads(daemon), what="the failure is recorded")
    assert str(token) in record["error"]
    assert daemon.get("/api/v1/status").status == 200, "the old configuration asks for no token"
    replace(token, "a-token-of-some-length")
    eventually(lambda: daemon.get("/api/v1/status").status == 401, what="the token is asked for")
    daemon.headers = {"Authorization": "Bearer a-token-of-some-length"}
    assert daemon.get("/api/v1/status").status == 200
    assert len([r for r in list_reloads(daemon) if r["error"]]) == 1


@pytest.mark.parametrize("value", ["500ms", "1h", "-1s", "soon"])
def test_an_interval_beyond_its_bounds_is_refused(make_daemon, value):
    daemon = make_daemon({}, start=False, flags=[f"--config.auto-reload-interval={value}"])
    daemon.process.start()
    eventually(lambda: not daemon.process.running, what="it ends at once")
    assert "--config.auto-reload-interval" in daemon.process.log_text()


def test_an_empty_folder_of_rules_drops_no_rules(make):
    daemon, _, volume, _, settings = make
    volume.update()
    error = eventually(lambda: [each["error"] for each in list_reloads(daemon) if each["error"]], what="a reload is refused")[0]
    assert "no rule file is found" in error
    assert get_rules(daemon) == ["up-by-1"]
    daemon.write_config({**settings, "allow_empty_rules": True})
    eventually(lambda: get_rules(daemon) == [], what="the key allows it")
