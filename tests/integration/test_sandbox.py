"""What the daemon gives up after its start is given up, and everything goes on working: with the release build all of it,
with sanitizers what these leave (they need system calls and maps of their own)."""
import os
import pathlib
import shlex
import signal
import subprocess
import textwrap

import pytest
import yaml

from harness import allowed
from harness.daemon import find_binary, has_sanitizers
from harness.http import Server
from harness.notification import alert, notification
from harness.wait import eventually

STRICT = not has_sanitizers()
NOBODY = 65534


def rules_for(url):
    return {"targets": {"workers": {"node_group": {"provider": "mine", "url": url}, "min": 1, "max": 10, "cooldown": {"up": 0, "down": 0}}},
            "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 1}, "once": True}]}


PROVIDERS = {"providers": {"mine": {"type": "http"}}}


@pytest.fixture
def group(node_group):
    return node_group(size=1)


def busy(n):
    return notification(alert({"alertname": "Busy", "n": str(n)}))


def read_status(task):
    return dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)


OURS = read_status(pathlib.Path("/proc/self"))      # a container has a filter of system calls already


def statuses(daemon):
    """/proc/PID/status of all threads."""
    tasks = list(pathlib.Path(f"/proc/{daemon.process.pid}/task").iterdir())
    assert len(tasks) > 1
    for task in tasks:
        try:
            yield read_status(task)
        except (FileNotFoundError, ProcessLookupError):
            continue        # a thread that has just ended


def test_no_thread_has_rights_left(make_daemon, group):
    daemon = make_daemon(config=PROVIDERS, rules=rules_for(group.url))
    for status in statuses(daemon):
        assert {status[key] for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
        assert status["NoNewPrivs"] == "1"
        assert status["Seccomp"] == ("2" if STRICT else OURS["Seccomp"])
    said = daemon.process.log_text()
    assert ('msg="sandbox in force" capabilities=none system_calls="allowed by list" landlock=' if STRICT else
            'msg="sandbox in force in part" capabilities=none system_calls=any landlock=') in said
    assert said.index("sandbox in force") < said.index("ready to receive")


def test_there_are_no_core_dumps(make_daemon, group):
    daemon = make_daemon(config=PROVIDERS, rules=rules_for(group.url))
    limits = pathlib.Path(f"/proc/{daemon.process.pid}/limits").read_text()
    assert [line.split()[-3:-1] for line in limits.splitlines() if "core file size" in line] == [["0", "0"]]
    if not STRICT:      # a sanitizer's own end
        return
    daemon.process.signal(signal.SIGSEGV)
    daemon.process.popen.wait(60)
    assert daemon.process.popen.returncode == -signal.SIGSEGV
    assert [p.name for p in daemon.directory.iterdir() if p.name.startswith("core")] == []


def as_user(user, *command):
    return subprocess.run(["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *map(str, command)],
                          capture_output=True, text=True, check=False)


def test_others_of_the_same_user_cannot_read_its_memory(make_daemon, group, tmp_path):
    daemon = make_unprivileged(make_daemon, group, tmp_path)
    for name in ("mem", "environ", "maps"):
        done = as_user(NOBODY, "dd", f"if=/proc/{daemon.process.pid}/{name}", "of=/dev/null", "bs=1", "count=1")
        assert done.returncode != 0 and "Permission denied" in done.stderr, f"{name}: {done.stderr}"


def test_it_works_under_a_host_name(make_daemon, group):
    """getaddrinfo loads what it needs when it is needed."""
    daemon = make_daemon(config=PROVIDERS, rules=rules_for(group.url.replace("127.0.0.1", "localhost")))
    daemon.notify(busy(1))
    eventually(lambda: group.size == 2)


def test_the_action_log_is_opened_again(make_daemon, group):
    daemon = make_daemon(config=PROVIDERS, rules=rules_for(group.url))
    daemon.notify(busy(1))
    daemon.log_file.rename(daemon.log_file.with_suffix(".jsonl.1"))
    daemon.process.signal(signal.SIGUSR1)
    eventually(daemon.log_file.exists)
    daemon.notify(busy(2))
    eventually(lambda: daemon.records("notification"))
    assert daemon.get("/-/ready").ok


# Reloads


def reload_and_wait(daemon, word):
    offset = daemon.process.log.stat().st_size
    daemon.reload()

    def read():     # whole lines
        said = daemon.process.log_text(offset)
        return said if word in said and said.endswith("\n") else None

    return eventually(read, what=word)


def test_a_reload_reads_what_is_new_in_known_folders(make_daemon, group):
    daemon = make_daemon(config=PROVIDERS, rules=rules_for(group.url))
    new = rules_for(group.url)
    new["rules"][0]["name"] = "busier"
    daemon.write_rules({"a.yaml": {"targets": new["targets"], "rules": []}, "b.yaml": {"rules": new["rules"]}})
    reload_and_wait(daemon, "configuration loaded")
    daemon.notify(busy(1))
    assert daemon.wait_record("action", outcome="applied")["rule"] == "busier"


def other_folder(tmp_path):
    folder = tmp_path / "other"
    folder.mkdir()
    return folder


def with_rules(daemon, folder):
    (folder / "r.yaml").write_text("targets: {}\nrules: []\n")
    return {"rule_files": ["rules/*.yaml", str(folder / "*.yaml")]}


def with_secret(daemon, folder):
    (folder / "password").write_text("secret")
    return {"alertmanager": {"urls": ["http://127.0.0.1:9"], "http_config": {
        "basic_auth": {"username": "me", "password_file": str(folder / "password")}}}}


def with_certificate(daemon, folder):
    (folder / "ca.crt").write_text("")
    return {"providers": {"mine": {"type": "http", "http_config": {"tls_config": {"ca_file": str(folder / "ca.crt")}}}}}


def with_kubeconfig(daemon, folder):
    (folder / "token").write_text("t")
    (daemon.directory / "kubeconfig").write_text(kubeconfig("http://127.0.0.1:9", {"tokenFile": str(folder / "token")}))
    return {"clusters": {"default": {"kubeconfig": "kubeconfig"}}}


def with_link(daemon, folder):
    (folder / "r.yaml").write_text("targets: {}\nrules: []\n")
    (daemon.directory / "rules/link.yaml").symlink_to(folder / "r.yaml")
    return {}


@pytest.mark.parametrize("change", [with_rules, with_secret, with_certificate, with_kubeconfig, with_link])
def test_a_reload_says_what_needs_a_restart(make_daemon, group, tmp_path, change):
    allowed.need(allowed.landlock)
    daemon = make_daemon(config=PROVIDERS, rules=rules_for(group.url))
    folder = other_folder(tmp_path)
    daemon.write_config({**PROVIDERS, **change(daemon, folder)})
    said = reload_and_wait(daemon, "reload failed")
    assert str(folder) in said and "restart alertscaler" in said and "sandbox" in said
    daemon.notify(busy(1))
    eventually(lambda: group.size == 2, what="the old rules go on")
    daemon.restart()
    assert daemon.get("/-/ready").ok, "a restart is all it needs"


def kubeconfig(server, user):
    return yaml.safe_dump({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": server}}], "users": [{"name": "u", "user": user}]})


class ApiServer:
    """As much of an API server as shows with which credential it was asked."""

    def __init__(self):
        self.seen = []
        self._server = Server(self._handle)
        self.url = self._server.url

    def _handle(self, request):
        self.seen.append(request.headers.get("Authorization"))
        return 404, {}, {}

    def stop(self):
        self._server.stop()


PLUGIN = """\
    #!/bin/sh
    echo "$$" > "$HOME/plugin.ran"
    date > /dev/null
    printf '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "from-plugin"}}'
"""

DEPLOYMENT = {"targets": {"web": {"kubernetes": {"kind": "Deployment", "namespace": "shop", "name": "web"}, "max": 10}},
              "rules": [{"name": "busy", "match": ['alertname="Busy"'], "target": "web", "scale_up": {"by": 1}}]}


def write_plugin(daemon, server):
    plugin = daemon.directory / "plugin"
    plugin.write_text(textwrap.dedent(PLUGIN))
    plugin.chmod(0o755)
    (daemon.directory / "kubeconfig").write_text(kubeconfig(server, {"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}}))
    return {"clusters": {"default": {"kubeconfig": "kubeconfig"}}}


@pytest.fixture
def api_server(started):
    return started(ApiServer())


def test_credential_plugins_run(make_daemon, api_server):
    daemon = make_daemon(rules=DEPLOYMENT, start=False)
    daemon.write_config(write_plugin(daemon, api_server.url))
    daemon.start()
    daemon.notify(busy(1))
    eventually(lambda: "Bearer from-plugin" in api_server.seen)
    assert (daemon.directory / "plugin.ran").exists(), "it may write where programs keep their caches"
    said = daemon.process.log_text()
    assert not STRICT or ('system_calls="forbidden by list"' in said and "plugin" in said.split("programs=")[1])
    for status in statuses(daemon):
        assert (status["CapEff"], status["NoNewPrivs"]) == ("0" * 16, "1")
        assert status["Seccomp"] == ("2" if STRICT else OURS["Seccomp"])


def test_a_new_credential_plugin_needs_a_restart(make_daemon, group, api_server):
    daemon = make_daemon(config=PROVIDERS, rules=rules_for(group.url))
    daemon.write_config({**PROVIDERS, **write_plugin(daemon, api_server.url)})
    said = reload_and_wait(daemon, "reload failed")
    assert "credential plugin" in said and "restart alertscaler" in said


# Modes


def test_it_can_be_off(make_daemon, group):
    daemon = make_daemon(config=PROVIDERS, rules=rules_for(group.url), flags=["--sandbox=off"])
    for status in statuses(daemon):
        assert (status["Seccomp"], status["NoNewPrivs"]) == (OURS["Seccomp"], OURS["NoNewPrivs"])
    assert "no sandbox" in daemon.process.log_text()
    daemon.notify(busy(1))
    eventually(lambda: group.size == 2)


def test_it_can_be_required(make_daemon, group):
    daemon = make_daemon(config=PROVIDERS, rules=rules_for(group.url), flags=["--sandbox=required"], start=False)
    if STRICT:
        daemon.start()
        assert "sandbox in force" in daemon.process.log_text()
        return
    daemon.process.start()
    assert daemon.process.popen.wait(60) == 1
    assert "--sandbox=required: seccomp" in daemon.process.log_text()


# Without any rights


def make_unprivileged(make_daemon, group, tmp_path, *, name="unprivileged"):
    """Under an account that nothing belongs to, without capabilities, on a file system that is read-only but for its folder."""
    allowed.need(allowed.mounts)
    os.chmod(tmp_path, 0o711)
    for parent in tmp_path.parents:
        if parent.stat().st_uid == os.getuid() and parent != pathlib.Path("/"):
            os.chmod(parent, parent.stat().st_mode | 0o011)
    daemon = make_daemon(config=PROVIDERS, rules=rules_for(group.url), name=name, start=False)
    for path in [daemon.directory, *daemon.directory.rglob("*")]:
        os.chown(path, NOBODY, NOBODY)
    binary = tmp_path / "alertscaler-binary"
    subprocess.run(["install", "-m", "755", find_binary(), binary], check=True)
    here = shlex.quote(str(daemon.directory))
    copy_root = 'mount --rbind / /proc && mount --make-rprivate /proc && exec chroot /proc "$@"'
    script = (f"mount --bind {here} {here} && mount -o remount,bind,ro / && cd {here} && "
              "exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all "
              "--pdeathsig=KILL -- \"$@\"")
    daemon.process.argv = [*allowed.PRIVATE_MOUNTS, "sh", "-c", copy_root, "sh", "sh", "-c", script, "sh", str(binary),
                           *daemon.process.argv[1:]]
    return daemon.start()


def test_it_needs_no_rights_at_all(make_daemon, group, tmp_path):
    daemon = make_unprivileged(make_daemon, group, tmp_path)
    for status in statuses(daemon):
        assert status["Uid"].split() == [str(NOBODY)] * 4
        assert {status[key] for key in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    daemon.notify(busy(1))
    eventually(lambda: group.size == 2)
    daemon.wait_record("action", outcome="applied")
    metrics = daemon.metrics()
    assert metrics.value("process_open_fds") > 5 and metrics.value("process_resident_memory_bytes") > 1e6
    daemon.comment_config()
    reload_and_wait(daemon, "configuration loaded")
    daemon.log_file.rename(daemon.log_file.with_suffix(".jsonl.1"))
    daemon.process.signal(signal.SIGUSR1)
    eventually(daemon.log_file.exists)
    daemon.stop()
    assert daemon.records("stop")
