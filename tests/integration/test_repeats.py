"""What the action log says of the same notification sent again and again: small records, and nothing less than before."""
import json
import subprocess

import pytest

from harness.daemon import environment
from harness.notification import alert, notification
from harness.wait import eventually

CREDENTIALS = ("alertmanager", "grafana")


@pytest.fixture(params=[{}])
def send(make_daemon, node_group, tmp_path, request):
    """send(body, credential) -> the answer; send.daemon. A parameter is more of the configuration's `receiver`."""
    group = node_group(size=4)
    for name in CREDENTIALS:
        (tmp_path / name).write_text(f"secret-of-{name}")
    rules = {"targets": {"workers": {"node_group": {"provider": "mine", "url": group.url}, "max": 10, "cooldown": {"up": "1h"}}},
             "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 2}}]}
    daemon = make_daemon(rules, {
        "providers": {"mine": {"type": "http"}},
        "action_log": {"path": "actions.jsonl", "max_size": "64KiB", "keep": 100},
        "receiver": {"tokens": [{"name": name, "file": str(tmp_path / name)} for name in CREDENTIALS], **request.param}})

    def send(body, credential=CREDENTIALS[0]):
        daemon.headers = {"Authorization": f"Bearer secret-of-{credential}"}
        send.count += 1
        return daemon.notify(body)

    send.daemon, send.count = daemon, 0
    return send


def run(daemon, *arguments, status=0):
    done = subprocess.run([daemon.binary, *map(str, arguments)], capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == status, done
    return done.stdout


def read_files(daemon):
    """The log's files, the oldest first, each with its records."""
    files = sorted(daemon.directory.glob("actions.jsonl.*"), key=lambda file: -int(file.suffix[1:])) + [daemon.log_file]
    return {file: [json.loads(line) for line in file.read_text().splitlines()] for file in files}


def kinds(records):
    return [r["kind"] for r in records if r["kind"] in ("notification", "repeat")]


def read_kinds(send):
    """Of all that was sent: a record that was committed with others comes into the file right after its answer."""
    return eventually(lambda: (found := kinds(send.daemon.records())) and len(found) >= send.count and found, what="all records are there")


def test_repeats_are_small_where_a_record_before_says_the_rest(send):
    daemon = send.daemon
    body = notification(*[alert({"alertname": "Busy", "pod": f"pod-{n}", "text": "x" * 100}) for n in range(5)])
    answers = [send(body) for _ in range(4)]
    assert read_kinds(send) == ["notification", "notification", "repeat", "repeat"], "queued, then known"
    first, base, small, last = daemon.notifications()
    assert [r["id"] for r in (first, base, small, last)] == [answer["notification"] for answer in answers]
    assert small["same_as"] == last["same_as"] == base["id"]
    assert small["outcomes"] == {"duplicate": 5}
    assert len(json.dumps(daemon.records("repeat")[0])) < 700 < len(json.dumps(base))
    senders = ["grafana"] * 3 + ["alertmanager"] * 2
    for sender in senders:
        send(body, sender)
    expected = ["notification", "notification", "repeat", "notification", "repeat"]
    assert read_kinds(send)[4:] == expected, "another sender's is whole; the first of grafana's changes the incidents"
    assert [r["credential"] for r in daemon.notifications()] == ["alertmanager"] * 4 + senders
    send({**body, "groupKey": "another"})
    assert read_kinds(send)[-1] == "notification", "another body's is whole"
    run(daemon, "log", "verify", daemon.log_file)


def test_a_repeat_and_its_details_are_of_one_start_and_one_rule_set(send):
    daemon = send.daemon
    body = notification(alert({"alertname": "Busy"}))
    for _ in range(3):
        send(body)
    daemon.restart()
    send(body)
    send(body)
    assert read_kinds(send) == ["notification", "notification", "repeat", "notification", "repeat"]
    daemon.comment_config()
    daemon.reload()
    eventually(lambda: daemon.records("reload"))
    send(body)
    send(body)
    assert read_kinds(send)[-2:] == ["notification", "repeat"]


def test_a_repeat_and_its_details_are_in_one_file(send):
    daemon = send.daemon
    body = notification(*[alert({"alertname": "Busy", "pod": f"pod-{n}"}) for n in range(4)])
    sent = [send(body)["notification"] for _ in range(500)]
    daemon.stop()
    files = read_files(daemon)
    assert len(files) >= 3
    for records in files.values():
        whole = {r["id"] for r in records if r["kind"] == "notification"}
        assert {r["same_as"] for r in records if r["kind"] == "repeat"} <= whole
        assert 1 <= kinds(records).count("notification") <= 8, "small ones but for the beginning and the end of a file"
    run(daemon, "log", "verify", *files)
    told = run(daemon, "log", "--kind=repeat,notification", "--rule=busy", *files).splitlines()
    assert len(told) == len(sent) and not any("not in these files" in line for line in told)
    assert all('Busy{pod="pod-0"} firing' in line and "for busy" in line for line in told)
    alone = run(daemon, "log", "--kind=repeat,notification", list(files)[1])
    assert "not in these files" not in alone


@pytest.mark.parametrize("send", [{"repeat_cache": "0MiB"}], indirect=True)
def test_without_the_cache_each_record_is_whole(send):
    body = notification(alert({"alertname": "Busy"}))
    for _ in range(4):
        send(body)
    assert read_kinds(send) == ["notification"] * 4
