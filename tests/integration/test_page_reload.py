"""The page that says what a reload would change: files beside the rules in force, errors, the limit, and who may read it."""
import json
import re
import time

import pytest

from harness.wait import eventually

from test_page import EVIL, make_rules, page


@pytest.fixture
def world(make_daemon, node_group, tmp_path):
    groups = {"checkout": node_group(size=4), "batch": node_group(size=2)}
    (tmp_path / "narrow").write_text("narrow secret")
    (tmp_path / "whole").write_text("whole secret")
    tokens = [{"name": "whole", "file": str(tmp_path / "whole"), "permissions": ["read", "notify"]},
              {"name": "narrow", "file": str(tmp_path / "narrow"), "permissions": ["read"], "targets": ["batch"]}]
    daemon = make_daemon(make_rules(groups), {"providers": {"mine": {"type": "http"}}, "receiver": {"tokens": tokens}}, start=False)
    daemon.headers = {"Authorization": "Bearer whole secret"}
    daemon.groups = groups
    return daemon.start()


def preview(daemon):
    """The page; a second after the last one."""
    return eventually(lambda: (answer := daemon.get("/reload")).status == 200 and answer, what="the files may be read").text


def test_entries_are_compared(world):
    assert "All rules and targets of the files are in force." in preview(world)
    assert 'href="/reload">What would a reload change?' in page(world, "/rules")
    rules = make_rules(world.groups)
    rules["targets"]["checkout"]["max"] = 99
    rules["targets"]["new"] = rules["targets"]["batch"] | {"node_group": {"provider": "mine", "url": "http://127.0.0.1:1/x"}}
    rules["rules"] = [rules["rules"][0] | {"name": "other", "match": [f"evil={json.dumps(EVIL)}"]}, rules["rules"][1]]
    world.write_rules(rules)
    text = preview(world)
    rows = re.findall(r'data-title="Entry"><div>(.*?)</div>.*?<span class="pill (?:good|warn|bad)">(\w+)', text)
    assert [(re.sub(r"<[^>]*>", "", entry), change) for entry, change in rows] == [
        ("rule checkout-is-slow", "removed"), ("rule other", "added"), ("target checkout", "changed"), ("target new", "added")]
    assert '<a href="/rules/checkout-is-slow">' in text and text.count("<script") == 1 and "&lt;script&gt;alert(1)" in text
    assert "max: 12" in text and "max: 99" in text and "rules.yaml, line " in text
    assert [rule["name"] for rule in world.get("/api/v1/rules").json["data"]] == ["checkout-is-slow", "batch-is-slow"]      # nothing is in force
    assert not world.records("reload")
    world.reload()
    world.wait_record("reload")
    assert "All rules and targets of the files are in force." in preview(world)


def test_an_error_and_a_changed_configuration_are_named(world):
    rules = make_rules(world.groups)
    rules["rules"][0]["scale_upp"] = rules["rules"][0].pop("scale_up")
    world.write_rules(rules)
    text = preview(world)
    assert "A reload would fail, and change nothing: " in text and "scale_upp" in text and "did you mean" in text
    world.write_rules(make_rules(world.groups))
    world.config_file.write_text(world.config_file.read_text() + "\n# later\n")
    assert "The configuration file has changed too." in preview(world)
    assert world.get("/-/ready").ok


def test_the_files_are_read_once_a_second_and_not_by_the_script(world):
    preview(world)
    answers = [world.get("/reload").status for _ in range(5)]
    assert answers == [503] * 5
    assert world.get("/reload?since=x").status == 304       # as page.js asks
    time.sleep(1)
    assert world.get("/reload").status == 200


def test_a_narrowed_credential_compares_nothing(world):
    world.headers = {"Authorization": "Bearer narrow secret"}
    answer = world.get("/reload")
    assert answer.status == 403 and "checkout" not in answer.text
    assert "/reload" not in world.get("/rules").text
