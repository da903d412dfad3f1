"""A disk that is full, read-only, or holds files that are not ours: nothing acknowledged is lost, and it says what to do."""
import json
import os
import pathlib
import sqlite3
import subprocess
import time

import pytest

from harness.daemon import environment, find_binary, read_notifications
from harness.disk import Disk
from harness.many_groups import ManyGroups
from harness.notification import alert, notification
from harness.wait import eventually


@pytest.fixture
def small_disk(tmp_path, started):
    """Makes a Disk."""
    def make(name="disk", **options):
        return started(Disk(tmp_path / name, **options))

    return make


def rules_for(groups):
    """Each alert has a group of its own, which grows by one, once."""
    return {"targets": {"group": {"node_group": {"provider": "mine", "url": groups.url + "/{{ .Labels.group }}"}, "max": 100,
                                  "cooldown": {"up": "1h", "down": "1h"}, "allow": {"names": ["*"]}}},
            "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "group", "scale_up": {"by": 1}, "once": True}]}


def config_on(disk, log_disk=None):
    return {"providers": {"mine": {"type": "http"}}, "state": {"store": "sqlite", "path": str(disk / "state.db")},
            "action_log": {"path": str((log_disk or disk) / "actions.jsonl")}}


class Load:
    """Alerts, one after the other, each for a group of its own; and what has to hold in the end."""

    def __init__(self, daemon, groups, state_file):
        self.daemon, self.groups, self.state_file = daemon, groups, state_file
        self.acknowledged = {}      # name of the group -> id of the notification
        self.count = 0

    def send(self):
        """The status of the answer."""
        self.count += 1
        name = f"g{self.count}"
        answer = self.daemon.post("/webhook", notification(alert({"alertname": "Busy", "group": name, "pad": "x" * 2000})))
        if answer.status == 200:
            self.acknowledged[name] = answer.json["notification"]
        return answer.status

    def send_one(self):
        assert self.send() == 200
        eventually(lambda: f"g{self.count}" in self.groups.applied)

    def send_until_refused(self):
        """Alerts are acknowledged or refused, nothing else; and refused at last."""
        for _ in range(400):
            status = self.send()
            if status != 200:
                assert status == 503
                return
        raise AssertionError("it acknowledges, and acknowledges")

    def check_refuses(self):
        """Nothing is acknowledged, nothing is scaled, and it says so, but not at length."""
        first, lines, began = self.count + 1, self.daemon.process.log_text().count("\n"), time.monotonic()
        assert [self.send() for _ in range(20)] == [503] * 20
        time.sleep(1)           # what was acknowledged before is carried out, if anything: it was on its way when the last was refused
        applied = dict(self.groups.applied)
        assert not applied.keys() & {f"g{n}" for n in range(first, self.count + 1)}
        time.sleep(3)
        assert self.groups.applied == applied, "nothing is scaled without a record"
        assert not self.daemon.get("/-/ready").ok and self.daemon.get("/-/healthy").ok
        said = self.daemon.process.log_text().count("\n") - lines
        assert said < 18 * (time.monotonic() - began) / 4, "it does not fill another disk with its complaints"

    def check_recovers(self):
        eventually(lambda: self.daemon.get("/-/ready").ok)
        self.send_one()
        self.check()

    def read_logs(self):
        """The files of the action log, the oldest first, and their records."""
        folder, name = self.daemon.log_file.parent, self.daemon.log_file.name
        rotated = sorted(folder.glob(name + ".*"), key=lambda file: -int(file.suffix[1:]))
        files = [*rotated, self.daemon.log_file]
        return files, [json.loads(line) for file in files for line in file.read_text().splitlines()]

    def check(self):
        eventually(lambda: self.acknowledged.keys() <= self.groups.applied.keys(), what="every acknowledged alert has scaled")
        self.daemon.stop()
        files, records = self.read_logs()
        ids = [r["id"] for r in read_notifications(records)]
        assert [number for number in ids if number in self.acknowledged.values()] == [*self.acknowledged.values()], \
            "all that was acknowledged, each once, in order"
        # what was refused is kept all the same where the state was written and the log was not: it comes again, as a repeat
        assert len(ids) - len(self.acknowledged) <= 3
        assert all(sizes == [2] for sizes in self.groups.applied.values()), "each by one, once"
        applied = [r["target"].rsplit("/", 1)[1] for r in records if r["kind"] == "action" and r["outcome"] == "applied"]
        assert sorted(applied) == sorted(self.groups.applied), "each change has its record, once"
        verify = subprocess.run([find_binary(), "log", "verify", *files, f"--state={self.state_file}"],
                                capture_output=True, text=True, env=environment())
        assert verify.returncode == 0, verify
        assert records[-1]["kind"] == "stop"


@pytest.fixture
def loaded(make_daemon, started):
    """Makes a daemon with its files in two folders, and the load on it."""
    def make(state, log, **log_settings):
        groups = started(ManyGroups(1))
        config = config_on(state, log)
        config["action_log"] |= log_settings
        daemon = make_daemon(config=config, rules=rules_for(groups))
        daemon.log_file = log / "actions.jsonl"
        return Load(daemon, groups, state / "state.db")

    return make


@pytest.mark.parametrize("kind, what", [("ext4", "state and log"), ("ext4", "state"), ("ext4", "log"), ("tmpfs", "state and log")])
def test_a_full_disk(loaded, small_disk, tmp_path, kind, what):
    disk = small_disk(kind=kind)
    load = loaded(disk.data if "state" in what else tmp_path, disk.data if "log" in what else tmp_path)
    load.send_one()
    disk.fill()
    load.send_until_refused()
    load.check_refuses()
    said = load.daemon.process.log_text()
    assert "No space left on device" in said or "the disk is full" in said
    disk.free()
    load.check_recovers()


@pytest.mark.parametrize("what", ["state and log", "log"])
def test_killed_on_a_full_disk(loaded, small_disk, tmp_path, what):
    """It may not be able to start, and says why; when there is room again it goes on from what was acknowledged."""
    disk = small_disk()
    load = loaded(disk.data if "state" in what else tmp_path, disk.data)
    load.send_one()
    disk.fill()
    load.send_until_refused()
    load.daemon.kill()
    process, offset = load.daemon.process, load.daemon.process.log.stat().st_size
    process.start()
    # It answers that it is healthy before it has opened its files.
    eventually(lambda: not process.running or "ready to receive notifications" in process.log_text(offset), what="it runs or has ended")
    if process.running:
        load.send_until_refused()
        load.check_refuses()
        disk.free()
    else:
        said = process.log_text(offset)
        assert "cannot start" in said and ("No space left on device" in said or "the disk is full" in said), said[-3000:]
        disk.free()
        load.daemon.start()
    load.check_recovers()


@pytest.mark.parametrize("kind", ["ext4", "tmpfs"])
def test_no_inodes(loaded, small_disk, kind):
    """A log that has to be rotated needs one."""
    disk = small_disk(kind=kind)
    load = loaded(disk.data, disk.data, max_size="32KiB", keep=100)
    load.send_one()
    disk.use_up_inodes()
    load.send_until_refused()
    load.check_refuses()
    assert "No space left on device" in load.daemon.process.log_text()
    disk.free()
    load.check_recovers()


@pytest.mark.parametrize("what", ["state and log", "state", "log"])
def test_a_disk_that_becomes_read_only_and_writable_again(loaded, small_disk, tmp_path, what):
    """A full one, so that it has no file open that keeps the kernel from it."""
    disk = small_disk()
    load = loaded(disk.data if "state" in what else tmp_path, disk.data if "log" in what else tmp_path)
    load.send_one()
    assert not disk.remount("ro"), "not while it has files open"
    disk.fill()
    load.send_until_refused()
    eventually(lambda: disk.remount("ro"), interval=0.01, what="it has closed its files")
    load.check_refuses()
    eventually(lambda: "Read-only file system" in load.daemon.process.log_text(), what="it says why")
    assert disk.remount("rw")
    disk.free()
    load.check_recovers()


@pytest.mark.parametrize("what", ["state and log", "log"])
def test_a_disk_that_breaks_down_and_is_repaired(loaded, small_disk, tmp_path, what):
    """The kernel finds an error and lets nobody write any more; then it is unmounted, repaired and mounted again. To the
    sandbox that is another folder: where the disk is the only one it has, alertscaler has to be started again."""
    disk = small_disk()
    load = loaded(disk.data if "state" in what else tmp_path, disk.data)
    load.send_one()
    disk.break_down()
    load.send_until_refused()
    load.check_refuses()
    disk.repair()
    if what == "state and log" and "landlock=none" not in load.daemon.process.log_text():
        load.daemon.kill()
        load.daemon.start()
    load.check_recovers()


def refusal(make_daemon, config):
    """Starts it where it cannot start: what it says. Nothing it said before was wrong: it does not listen, nor lead."""
    daemon = make_daemon(config=config, rules={"targets": {}, "rules": []}, start=False)
    done = subprocess.run([find_binary(), "serve", f"--config.file={daemon.config_file}", "--web.listen-address=127.0.0.1:0"],
                          capture_output=True, text=True, timeout=30, env=environment(HOME=daemon.directory))
    assert done.returncode == 1, done
    assert "Sanitizer" not in done.stderr
    assert "cannot start" in done.stderr and "listening" not in done.stderr and "leading" not in done.stderr
    return done.stderr


def newer(disk):
    with sqlite3.connect(disk / "state.db") as db:
        db.execute("PRAGMA application_id=1098081121")
        db.execute("PRAGMA user_version=3")
        db.execute("CREATE TABLE meta(key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")
    db.close()


@pytest.mark.parametrize("make, words", [
    (newer, "is from a newer alertscaler (schema 3, this one knows 2): use that version or move the file away"),
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


@pytest.mark.parametrize("hinder, words", [
    (Disk.fill, ("No space left on device", "the disk is full")),
    (Disk.use_up_inodes, ("No space left on device",)),
    (lambda disk: disk.remount("ro"), ("Read-only file system",)),
], ids=["full", "no inodes", "read-only"])
def test_it_does_not_start_on_a_disk_that_cannot_be_written(make_daemon, small_disk, hinder, words):
    disk = small_disk()
    hinder(disk)
    said = refusal(make_daemon, config_on(disk.data))
    assert any(word in said for word in words), said


def test_a_second_one_on_the_same_files(make_daemon, tmp_path):
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
