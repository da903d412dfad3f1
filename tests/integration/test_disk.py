"""A disk that is full, read-only, or holds files that are not ours: nothing acknowledged is lost, and it says what to do."""
import json
import os
import pathlib
import sqlite3
import subprocess
import time

import pytest

from harness.daemon import environment, find_binary
from harness.notification import alert, notification
from harness.wait import eventually


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 3 MiB."""
    path = tmp_path / "disk"
    path.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", path], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"cannot mount a small file system: {done.stderr.strip()}")
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def rules_for(group):
    return {"targets": {"workers": {"node_group": {"provider": "mine", "url": group.url}, "max": 100,
                                    "cooldown": {"up": 0, "down": 0}}},
            "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 1},
                       "once": True}]}


def config_on(disk, log_disk=None):
    return {"providers": {"mine": {"type": "http"}}, "state": {"store": "sqlite", "path": str(disk / "state.db")},
            "action_log": {"path": str((log_disk or disk) / "actions.jsonl")}}


def fill(disk):
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as out:
        try:
            while out.write(b"x" * 4096) == 4096:
                pass
        except OSError:
            pass
    return ballast


@pytest.mark.parametrize("what", ["state and log", "log"])
def test_a_full_disk(make_daemon, node_group, small_disk, tmp_path, what):
    group = node_group(size=1)
    state_disk = small_disk if what == "state and log" else tmp_path
    daemon = make_daemon(config=config_on(state_disk, small_disk), rules=rules_for(group))
    daemon.log_file = small_disk / "actions.jsonl"
    acknowledged = []

    def send(number):
        answer = daemon.post("/webhook", notification(alert({"alertname": "Busy", "n": str(number), "pad": "x" * 2000})))
        if answer.status == 200:
            acknowledged.append(answer.json["notification"])
        return answer.status

    assert send(0) == 200
    eventually(lambda: group.size == 2)
    ballast = fill(small_disk)
    statuses = [send(number) for number in range(1, 60)]
    assert 503 in statuses
    time.sleep(1)               # what was acknowledged before it was full is carried out, if anything
    assert [send(number) for number in range(60, 80)].count(200) == 0, "no room, nothing acknowledged"
    full_size = group.size
    lines_before = daemon.process.log_text().count("\n")
    time.sleep(3)
    assert group.size == full_size, "nothing is scaled without a record"
    assert not daemon.get("/-/ready").ok and daemon.get("/-/healthy").ok
    said = daemon.process.log_text().count("\n") - lines_before
    assert said < 15, "it does not fill another disk with its complaints"
    assert "No space left on device" in daemon.process.log_text() or "the disk is full" in daemon.process.log_text()

    ballast.unlink()
    eventually(lambda: daemon.get("/-/ready").ok)
    assert send(100) == 200
    eventually(lambda: group.size == 1 + len(acknowledged), what="every acknowledged alert has scaled once")
    daemon.stop()
    records = daemon.records("notification")
    assert [r["id"] for r in records] == acknowledged, "all that was acknowledged, each once, in order, and nothing else"
    verify = subprocess.run([find_binary(), "log", "verify", daemon.log_file, f"--state={state_disk / 'state.db'}"],
                            capture_output=True, text=True, env=environment())
    assert verify.returncode == 0, verify
    assert json.loads(daemon.log_file.read_text().splitlines()[-1])["kind"] == "stop"


def refusal(make_daemon, config):
    """Starts it where it cannot start: what it says."""
    daemon = make_daemon(config=config, rules={"targets": {}, "rules": []}, start=False)
    done = subprocess.run([find_binary(), "serve", f"--config.file={daemon.config_file}", "--web.listen-address=127.0.0.1:0"],
                          capture_output=True, text=True, timeout=30, env=environment(HOME=daemon.directory))
    assert done.returncode == 1, done
    assert "Sanitizer" not in done.stderr
    return done.stderr


def newer(disk):
    with sqlite3.connect(disk / "state.db") as db:
        db.execute("PRAGMA application_id=1098081121")
        db.execute("PRAGMA user_version=3")
        db.execute("CREATE TABLE meta(key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")
    db.close()


@pytest.mark.parametrize("make, words", [
    (newer, "is from a newer alertscaler (schema 3, this one knows 1): use that version or move the file away"),
    (lambda disk: (disk / "state.db").write_text("no database\n" * 100), "is not a state file of alertscaler"),
    (lambda disk: (disk / "state.db").mkdir(), "state.db: Is a directory"),
    (lambda disk: (disk / "actions.jsonl").mkdir(), "actions.jsonl: open: Is a directory"),
    (lambda disk: disk.rmdir(), "No such file or directory"),
], ids=["newer", "no database", "state is a directory", "log is a directory", "no directory"])
def test_it_refuses_to_start_and_says_why(make_daemon, tmp_path, make, words):
    disk = tmp_path / "data"
    disk.mkdir()
    make(disk)
    assert words in refusal(make_daemon, config_on(disk))


def test_a_read_only_disk(make_daemon, small_disk):
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    assert "Read-only file system" in refusal(make_daemon, config_on(small_disk))


def test_a_second_one_on_the_same_files(make_daemon, node_group, tmp_path):
    daemon = make_daemon(config={"state": {"store": "sqlite", "path": str(tmp_path / "state.db")},
                                 "action_log": {"path": str(tmp_path / "actions.jsonl")}}, rules={"targets": {}, "rules": []})
    both = refusal(lambda **options: make_daemon(name="second", **options), config_on(tmp_path))
    assert "another alertscaler" in both
    log_only = refusal(lambda **options: make_daemon(name="third", **options), {
        **config_on(tmp_path), "state": {"store": "sqlite", "path": str(tmp_path / "other.db")}})
    assert "actions.jsonl is in use by another alertscaler" in log_only
    assert daemon.get("/-/ready").ok


def test_files_are_for_their_owner(make_daemon, tmp_path):
    old = os.umask(0)
    try:
        daemon = make_daemon(config=config_on(tmp_path), rules={"targets": {}, "rules": []})
    finally:
        os.umask(old)
    daemon.stop()
    modes = {name: pathlib.Path(tmp_path / name).stat().st_mode & 0o777 for name in ("state.db", "actions.jsonl")}
    assert modes == {"state.db": 0o600, "actions.jsonl": 0o640}
