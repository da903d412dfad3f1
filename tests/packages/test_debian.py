"""The Debian package in a fresh Debian 12, without and with systemd as process 1: installed, started, upgraded, purged."""
import json
import re
import subprocess
import time

import pytest
from conftest import ROOT, run

pytestmark = pytest.mark.xdist_group("debian")
APT = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y", "--no-install-recommends"]
UNIT = "alertscaler.service"


def list_files(root):
    """What belongs to somebody, without what changes by itself."""
    places = ("etc", "usr", "lib", "var/lib", "opt", "srv")
    found = run("find", *(root / place for place in places), "-xdev", "-printf", "%p\n")
    return {path.removeprefix(str(root)) for path in found.splitlines()
            if not re.search(r"/(apt|dpkg|systemd|ucf|deb-systemd-helper|ld.so.cache)\b|__pycache__|/etc/(passwd|group|shadow|gshadow|subuid|subgid)-?$", path)}


@pytest.fixture(scope="module")
def debian(mounts, tmp_path_factory, find):
    """The root of a Debian that has the package's dependencies, and a newer package beside it."""
    root = tmp_path_factory.mktemp("debian") / "root"
    run(ROOT / "tests/fresh-debian", root)
    run("cp", find("alertscaler_*.deb"), root / "srv/old.deb")
    unpacked = root.parent / "new"
    run("dpkg-deb", "-R", root / "srv/old.deb", unpacked)
    control = unpacked / "DEBIAN/control"
    control.write_text(re.sub(r"(?m)^(Version: .*)$", r"\1+new", control.read_text()))
    run("dpkg-deb", "--root-owner-group", "-b", unpacked, root / "srv/new.deb")
    run("chroot", root, *APT, "update")
    run("chroot", root, *APT, "install", "systemd")
    run("chroot", root, *APT, "--download-only", "install", "/srv/old.deb")
    yield root
    run("rm", "-rf", root)


class Machine:
    """The Debian, booted."""

    def __init__(self, root):
        self.booting = subprocess.Popen([ROOT / "tests/packages/boot", root], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait("the machine is up", lambda: self.find_pid() and self.try_run("systemctl", "is-system-running").stdout.strip() in ("running", "degraded"))

    def find_pid(self):
        children = subprocess.run(["pgrep", "-P", str(self.booting.pid)], capture_output=True, text=True, check=False).stdout.split()
        return children[0] if children else None

    def enter(self, *command):
        return ["nsenter", "-t", self.find_pid(), "-m", "-p", "-n", "-i", "-u", "-r", "-w",
                "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *command]

    def try_run(self, *command):
        return subprocess.run(self.enter(*command), capture_output=True, text=True, check=False, timeout=300)

    def run(self, *command):
        return run(*self.enter(*command))

    def wait(self, what, condition):
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if value := condition():
                return value
            time.sleep(0.2)
        raise AssertionError(f"not within 120 s: {what}")

    def show(self, name):
        return self.run("systemctl", "show", "-P", name, UNIT).strip()

    def stop(self):
        self.booting.kill()
        self.booting.wait()


def test_it_installs_and_purges_where_no_systemd_runs(debian):
    before = list_files(debian)
    run("chroot", debian, *APT, "install", "/srv/old.deb")
    assert run("chroot", debian, "dpkg", "-V", "alertscaler") == ""
    assert run("chroot", debian, "stat", "-c", "%U:%G %a %s", "/etc/alertscaler/token") == "root:alertscaler 640 64\n"
    checked = run("chroot", debian, "runuser", "-u", "alertscaler", "--", "alertscaler", "check", "--config.file=/etc/alertscaler/alertscaler.yaml")
    assert "0 rules: ok" in checked and "error" not in checked
    for path in ("usr/share/bash-completion/completions/alertscaler.bash", "usr/share/zsh/site-functions/_alertscaler",
                 "usr/share/fish/vendor_completions.d/alertscaler.fish", "usr/share/man/man8/alertscaler.8.gz",
                 "usr/share/man/man5/alertscaler.yaml.5.gz", "usr/share/man/man5/alertscaler-rules.5.gz"):
        # of a minimal Debian, manual pages may be left out by dpkg's own settings
        assert path in run("chroot", debian, "dpkg", "-L", "alertscaler").replace("\n/", "\n")
    assert (debian / "etc/systemd/system/multi-user.target.wants/alertscaler.service").is_symlink()
    run("chroot", debian, *APT, "purge", "alertscaler")
    run("chroot", debian, *APT, "autoremove", "--purge")
    left = {path for path in list_files(debian) - before if "alertscaler" in path}
    assert left == set()
    assert "alertscaler" in (debian / "etc/passwd").read_text(), "the account stays: its number is not given to another"


def test_under_systemd_it_is_started_upgraded_and_purged(debian):
    machine = Machine(debian)
    try:
        machine.run(*APT, "install", "/srv/old.deb")
        # Type=notify: active means ready
        assert (machine.show("ActiveState"), machine.show("Type"), machine.show("UnitFileState")) == ("active", "notify", "enabled")
        assert machine.show("User") == "alertscaler"
        pid = machine.show("MainPID")
        assert machine.run("stat", "-c", "%U", f"/proc/{pid}").strip() == "alertscaler"
        token = machine.run("cat", "/etc/alertscaler/token")
        status = ["alertscaler", "status", "--token-file=/etc/alertscaler/token", "-o", "json"]
        assert json.loads(machine.run(*status)) == [], "it answers: there are no targets yet"
        assert machine.try_run("alertscaler", "status").returncode != 0, "a token is asked for"

        (debian / "etc/alertscaler/rules/mine.yaml").write_text("rules: []\n")
        (debian / "etc/alertscaler/alertscaler.yaml").write_text((debian / "etc/alertscaler/alertscaler.yaml").read_text() + "# mine\n")
        machine.run("systemctl", "reload", UNIT)
        assert machine.show("MainPID") == pid
        log = debian / "var/lib/alertscaler/actions.jsonl"
        records = machine.wait("the reload is recorded", lambda: '"reload"' in log.read_text() and log.read_text())

        machine.run(*APT, "install", "/srv/new.deb")
        assert machine.run("dpkg-query", "-W", "-f", "${Version}", "alertscaler").endswith("+new")
        assert machine.show("ActiveState") == "active" and machine.show("MainPID") != pid, "an upgrade restarts it"
        assert machine.run("cat", "/etc/alertscaler/token") == token
        assert "# mine" in machine.run("cat", "/etc/alertscaler/alertscaler.yaml")
        assert log.read_text().startswith(records), "the log goes on"
        assert json.loads(machine.run(*status)) == [], "it answers: there are no targets yet"
        machine.run("alertscaler", "log", "verify", "--config.file=/etc/alertscaler/alertscaler.yaml")

        machine.run(*APT, "remove", "alertscaler")
        assert machine.try_run("systemctl", "is-active", UNIT).stdout.strip() != "active"
        assert log.exists() and (debian / "etc/alertscaler/token").exists(), "only a purge removes these"
        machine.run(*APT, "purge", "alertscaler")
        assert not (debian / "var/lib/alertscaler").exists()
        assert [p.name for p in (debian / "etc/alertscaler").rglob("*")] == ["rules", "mine.yaml"], "your rules stay"
    finally:
        machine.stop()
