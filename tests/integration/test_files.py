"""What another process puts in the place of a file: a link, a pipe, half of the text, a volume that kubelet rotates."""
import ctypes
import os
import socket
import ssl
import stat
import subprocess
import threading
import time

import pytest
import yaml

from harness.certificates import Authority
from harness.daemon import dump_yaml, environment, find_binary
from harness.deploy import install
from harness.files import ProjectedVolume, replace
from harness.http import request
from harness.kube import path_of
from harness.notification import alert, notification
from harness.protection import BCRYPT, PASSWORD, USER
from harness.wait import PATIENCE, eventually
from test_targets import make_workload

ADMIN_TOKEN = "the-secret-of-the-administrator"
NOT_REGULAR = "not a regular file"
AUTO_RELOAD = "--config.auto-reload-interval=1s"
EVERYTHING = ["/api/v1/status", "/api/v1/targets", "/metrics", "/", "/targets", "/api/v1/log"]


def rules_of(group, more=()):
    rules = [{"name": "busy", "match": ["alertname=Busy"], "target": "workers", "scale_up": {"by": 1}}, *more]
    held = {"name": "keep", "match": ["alertname=Busy"], "target": "workers", "hold": "down"}
    return {"targets": {"workers": {"node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 90,
                                    "cooldown": {"up": "0s"}}},
            "rules": [*rules, held]}


@pytest.fixture
def group(node_group):
    return node_group(size=4)


@pytest.fixture
def make(make_daemon, group):
    def make(config=None, rules=None, **options):
        return make_daemon(rules_of(group) if rules is None else rules, {"providers": {"mine": {"type": "http"}}, **(config or {})},
                           **options)

    return make


def put_pipe(path):
    """By a rename, as a rotation does."""
    new = path.with_name(path.name + ".pipe")
    os.mkfifo(new)
    new.rename(path)


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def get_rules(daemon):
    return [rule["name"] for rule in daemon.get("/api/v1/rules").json["data"]]


# The kill switch

@pytest.fixture
def guarded(make, tmp_path):
    """A daemon with a kill switch and two tokens."""
    (tmp_path / "admin").write_text(ADMIN_TOKEN)
    (tmp_path / "reader").write_text("reader")
    daemon = make({"kill_switch": {"file": str(tmp_path / "stop")}, "receiver": {"tokens": [
        {"name": "admin", "file": str(tmp_path / "admin"), "permissions": ["admin"]},
        {"name": "reader", "file": str(tmp_path / "reader"), "permissions": ["read"]}]}}, start=False)
    daemon.headers = bearer("reader")
    return daemon.start()


def read_all(daemon):
    return "".join(daemon.get(path).text for path in EVERYTHING) + daemon.log_file.read_text() + daemon.process.log_text()


@pytest.mark.parametrize("put, reason", [
    (lambda stop, token: stop.symlink_to(token), "the file is a symbolic link"),
    (lambda stop, token: os.link(token, stop), "the file has more than one hard link"),
    (lambda stop, token: os.mkfifo(stop), NOT_REGULAR),
    (lambda stop, token: stop.mkdir(), "Is a directory"),
], ids=["symbolic link", "hard link", "pipe", "folder"])
def test_what_stands_in_the_place_of_the_kill_switch_sets_it_and_is_not_shown(guarded, tmp_path, put, reason):
    put(tmp_path / "stop", tmp_path / "admin")
    record = guarded.wait_record("command", command="pause")
    assert record["reason"] == f"the file's content is not shown: {reason}"
    assert guarded.get("/api/v1/status").json["data"]["paused"]["kill_switch"] is True
    assert ADMIN_TOKEN not in read_all(guarded)
    assert guarded.get("/-/healthy").ok


def switch(daemon, *words):
    return subprocess.run([find_binary(), "kill-switch", f"--config.file={daemon.config_file}", *words], capture_output=True,
                          text=True, timeout=PATIENCE, env=environment(), check=False)


def test_the_command_writes_through_no_link(guarded, tmp_path):
    stop, token = tmp_path / "stop", tmp_path / "admin"
    for put in (stop.symlink_to, lambda of: os.link(of, stop), lambda _: os.mkfifo(stop)):
        put(token)
        done = switch(guarded, "on", "the building burns")
        assert done.returncode == 0, done.stderr
        assert token.read_text() == ADMIN_TOKEN
        assert stat.S_ISREG(stop.lstat().st_mode) and stop.read_text() == "the building burns\n"
        assert switch(guarded, "off").returncode == 0 and not os.path.lexists(stop)
    stop.symlink_to(tmp_path / "made")
    assert switch(guarded, "on").returncode == 0 and not (tmp_path / "made").exists()
    stop.unlink()
    stop.symlink_to(token)
    assert switch(guarded, "off").returncode == 0
    assert not os.path.lexists(stop) and token.read_text() == ADMIN_TOKEN, "only the link is removed"
    assert {path.name for path in tmp_path.iterdir()} == {"admin", "reader", "alertscaler"}, "nothing is left beside it"


# Pipes

def files_of(tmp_path, group):
    """Configured files by their names, and a configuration that has them all."""
    authority = Authority(tmp_path / "authority")
    certificate, key = authority.issue("server")
    files = {name: tmp_path / name for name in ("token", "password", "web.yml", "certificate", "key", "clients", "upstream")}
    files["token"].write_text("sesame")
    files["password"].write_text("secret")
    for name, source in (("certificate", certificate), ("key", key), ("clients", authority.certificate),
                         ("upstream", authority.certificate)):
        files[name].write_text(source.read_text())
    files["web.yml"].write_text(yaml.safe_dump({
        "basic_auth_users": {USER: BCRYPT},
        "tls_server_config": {"cert_file": str(files["certificate"]), "key_file": str(files["key"]),
                              "client_auth_type": "VerifyClientCertIfGiven", "client_ca_file": str(files["clients"])}}))
    config = {
        "providers": {
            "mine": {"type": "http", "http_config": {"basic_auth": {"username": "a", "password_file": str(files["password"])}}},
            "secure": {"type": "http", "http_config": {"tls_config": {"ca_file": str(files["upstream"])}}}},
        "receiver": {"tokens": [{"name": "am", "file": str(files["token"])}]}}
    rules = rules_of(group, more=[{"name": "far", "match": ["alertname=Busy"], "target": "far", "scale_up": {"by": 1}}])
    rules["targets"]["far"] = {"node_group": {"provider": "secure", "url": group.url.replace("http:", "https:")},
                               "min": 1, "max": 9}
    return files, config, rules, authority


@pytest.fixture
def many(make, tmp_path, group):
    """A daemon that is not started, and its files by name."""
    files, config, rules, authority = files_of(tmp_path, group)
    daemon = make(config, rules, start=False, flags=[f"--web.config.file={files['web.yml']}", AUTO_RELOAD])
    daemon.url, daemon.tls = daemon.url.replace("http://127.0.0.1", "https://localhost"), authority.context()
    daemon.headers = bearer("sesame")
    return daemon, {**files, "config": daemon.config_file, "rules": daemon.directory / "rules" / "rules.yaml"}


def is_healthy(daemon):
    return request("GET", daemon.url + "/-/healthy", tls=daemon.tls, timeout=5).ok


@pytest.mark.parametrize("name", ["config", "rules", "token", "web.yml", "certificate", "key", "clients"])
def test_a_start_waits_for_no_pipe(many, name):
    daemon, files = many
    put_pipe(files[name])
    daemon.process.start()
    eventually(lambda: not daemon.process.running, what="it ends, as without the file")
    assert NOT_REGULAR in daemon.process.log_text() and files[name].name in daemon.process.log_text()


def test_a_daemon_waits_for_no_pipe(many):
    """A pipe in the place of each file, one after the other; then the file again."""
    daemon, files = many
    daemon.start()
    for name, path in files.items():
        text = path.read_text()
        put_pipe(path)

        def is_reported():
            assert is_healthy(daemon)
            daemon.notify(notification(alert({"alertname": "Busy", "for": name})))
            said = daemon.process.log_text() + daemon.log_file.read_text()
            return any(NOT_REGULAR in line and path.name in line for line in said.splitlines())

        eventually(is_reported, what=f"{name} is reported", interval=0.3)
        assert is_healthy(daemon)
        replace(path, text)
    daemon.wait_record("action", outcome="applied")
    daemon.stop()


# Halves

def write_half(path, text, at, seconds):
    """As an editor or scp does: the file is there with its first part for a while. How long that was."""
    begun = time.monotonic()
    with path.open("w") as file:
        file.write(text[:at])
        file.flush()
        time.sleep(seconds)
        lasted = time.monotonic() - begun
        file.write(text[at:])
    return lasted


def test_a_half_written_rule_file_is_never_loaded(make, group):
    """`hold: down` is in the second half, and the first one is a rule file too."""
    daemon = make(flags=[AUTO_RELOAD])
    path = daemon.directory / "rules" / "rules.yaml"
    text = path.read_text()
    half = text.index("- name: keep")
    begun, rounds = time.monotonic(), 0

    def is_reported():
        nonlocal rounds
        rounds += 1
        lasted = write_half(path, text + f"# round {rounds}\n", half, 0.5)
        assert "keep" in get_rules(daemon) or lasted >= 1, "half of the file is in force"
        time.sleep(0.3)
        return "keeps changing" in daemon.process.log_text()

    eventually(is_reported, what="what changes for ever has a line in the log")
    assert time.monotonic() - begun > 5 and rounds > 5
    assert "rules.yaml" in next(line for line in daemon.process.log_text().splitlines() if "keeps changing" in line)
    replace(path, dump_yaml(rules_of(group, more=[
        {"name": "another", "match": ["alertname=Idle"], "target": "workers", "scale_down": {"by": 1}}])))
    eventually(lambda: set(get_rules(daemon)) == {"busy", "keep", "another"}, what="the end of the changes is loaded")
    assert not [r for r in daemon.records("reload") if r["error"]]


def test_a_half_written_web_configuration_opens_nothing(make, tmp_path):
    """An empty one is valid, and asks nobody for a password."""
    web = tmp_path / "web.yml"
    text = yaml.safe_dump({"basic_auth_users": {USER: BCRYPT}})
    web.write_text(text)
    daemon = make(flags=[f"--web.config.file={web}"], start=False)
    daemon.process.start()
    eventually(lambda: is_healthy(daemon), what="it is there")
    for rounds in range(8):
        statuses, done = [], threading.Event()

        def ask():
            while not done.is_set():
                statuses.append(daemon.get("/api/v1/status").status)
                time.sleep(0.02)

        asking = threading.Thread(target=ask)
        asking.start()
        lasted = write_half(web, text + f"# {rounds}\n", 0, 0.6)
        time.sleep(0.1)
        done.set()
        asking.join()
        assert set(statuses) == {401} or lasted >= 1
        time.sleep(0.1)


def test_a_reload_of_the_rules_takes_no_half_written_web_configuration(make, group, tmp_path):
    """The rules have changed and are whole. The web configuration is being written, and asks nobody for a password."""
    web = tmp_path / "web.yml"
    text = yaml.safe_dump({"basic_auth_users": {USER: BCRYPT}})
    web.write_text(text)
    daemon = make(flags=[f"--web.config.file={web}", AUTO_RELOAD], start=False)
    daemon.process.start()
    eventually(lambda: is_healthy(daemon), what="it is there")
    more = [{"name": "another", "match": ["alertname=Idle"], "target": "workers", "scale_down": {"by": 1}}]
    replace(daemon.directory / "rules" / "rules.yaml", dump_yaml(rules_of(group, more=more)))
    longest, begun = 0, time.monotonic()
    with web.open("w") as file:
        while time.monotonic() - begun < 5:
            changed = time.monotonic()
            file.write("# another line\n")
            file.flush()
            status = daemon.get("/api/v1/status").status
            time.sleep(0.1)
            longest = max(longest, time.monotonic() - changed)
            assert status == 401 or longest >= 1, "half of the file is in force"
        file.write(text)
    eventually(lambda: daemon.process.log_text().count('msg="configuration loaded"') == 1, what="then the rules are loaded")
    assert daemon.get("/api/v1/status").status == 401


def test_a_signal_with_a_half_written_web_configuration_that_is_none_changes_nothing(make, tmp_path):
    web = tmp_path / "web.yml"
    text = yaml.safe_dump({"basic_auth_users": {USER: BCRYPT}})
    web.write_text(text)
    daemon = make(flags=[f"--web.config.file={web}"], start=False)
    daemon.process.start()
    eventually(lambda: is_healthy(daemon), what="it is there")
    web.write_text(text[:text.index(USER)] + f'  {USER}: "')
    daemon.reload()
    failed = 'msg="reload failed, going on with the old configuration"'
    eventually(lambda: failed in daemon.process.log_text(), what="the reload has failed")
    assert daemon.get("/api/v1/status").status == 401


def test_half_of_a_token_opens_nothing(make_daemon, tmp_path):
    token = tmp_path / "token"
    token.write_text("sesame")
    daemon = make_daemon({"targets": {}, "rules": []}, {"receiver": {"tokens": [{"name": "am", "file": str(token)}]}})

    def status(secret):
        daemon.headers = {"Authorization": f"Bearer {secret}"}
        return daemon.get("/api/v1/status").status

    for rounds in range(3):
        begun, seen = time.monotonic(), set()
        with token.open("w") as file:
            file.write("se")
            file.flush()
            while time.monotonic() - begun < 0.7:
                seen.add(status("se"))
            lasted = time.monotonic() - begun
            file.write("same")
        assert seen == {401} or lasted >= 1, "half of the token is in force"
        time.sleep(0.7)     # the next look is not within a second of the last one
    assert status("sesame") == 200


def wait_for_opening(path):
    """The daemon opens it to read it, which the kernel reports."""
    libc, in_open = ctypes.CDLL(None), 0x20
    fd = libc.inotify_init1(os.O_CLOEXEC)
    try:
        assert fd >= 0 and libc.inotify_add_watch(fd, os.fsencode(path), in_open) >= 0
        os.read(fd, 4096)
    finally:
        os.close(fd)


def test_a_half_that_comes_during_a_look_is_never_loaded(make):
    """The stamps of a look are older than what it reads: the half is there when the second file is read, for another second."""
    daemon = make(flags=[AUTO_RELOAD], start=False)
    path = daemon.directory / "rules" / "rules.yaml"
    first = path.with_name("a.yaml")
    first.write_text("rules: []\n" + "#\n" * 2_000_000)      # its digest takes a while
    daemon.start()
    text = path.read_text()
    half = text[:text.index("- name: keep")]
    time.sleep(1.5)     # a look has found these files
    for number in range(3):
        wait_for_opening(first)
        with path.open("w") as file:
            file.write(half)
            file.flush()
            began = time.monotonic()
            while time.monotonic() - began < 0.7:
                assert "keep" in get_rules(daemon), "half of the file is in force"
                time.sleep(0.05)
            file.write(text[len(half):] + f"# {number}\n")
        time.sleep(2.5)


# Volumes

def test_projected_volumes_rotate(make, group, tmp_path):
    """Rules of a ConfigMap; a token, a certificate and its key of a Secret: all are links, which kubelet swaps."""
    authority = Authority(tmp_path / "authority")

    def make_secret(token, name):
        certificate, key = authority.issue(name)
        return {"token": token, "tls.crt": certificate.read_text(), "tls.key": key.read_text()}

    def read_name():
        host, port = daemon.address.split(":")
        context = ssl.create_default_context(cafile=str(authority.certificate))
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as tls:
                return dict(pair for part in tls.getpeercert()["subject"] for pair in part)["commonName"]

    rules = ProjectedVolume(tmp_path / "rules", {"rules.yaml": dump_yaml(rules_of(group))})
    secret = ProjectedVolume(tmp_path / "secret", make_secret("first", "one"))
    web = tmp_path / "web.yml"
    web.write_text(yaml.safe_dump({"tls_server_config": {"cert_file": f"{secret.path}/tls.crt", "key_file": f"{secret.path}/tls.key"}}))
    daemon = make({"rule_files": [f"{rules.path}/*.yaml"],
                   "receiver": {"tokens": [{"name": "am", "file": f"{secret.path}/token"}]}},
                  flags=[AUTO_RELOAD, f"--web.config.file={web}"], start=False)
    daemon.url, daemon.tls = daemon.url.replace("http://127.0.0.1", "https://localhost"), authority.context()
    daemon.headers = bearer("first")
    daemon.start()
    assert read_name() == "one"
    for number, name in enumerate(("two", "three"), start=2):
        secret.replace(make_secret(name, name))
        daemon.headers = bearer(name)
        eventually(lambda: read_name() == name and daemon.get("/api/v1/status").ok, what="the Secret is in use")
        rules.replace({"rules.yaml": dump_yaml(rules_of(group)), "more.yaml": dump_yaml({"rules": [
            {"name": name, "match": ["alertname=Idle"], "target": "workers", "scale_down": {"by": 1}}]})})
        eventually(lambda: set(get_rules(daemon)) == {"busy", "keep", name}, what="the ConfigMap is in use")
        rules.replace({"rules.yaml": dump_yaml(rules_of(group))})
        eventually(lambda: set(get_rules(daemon)) == {"busy", "keep"}, what="the file that is gone has no rules")
        assert len([r for r in daemon.records("reload") if r["error"]]) == 0
    eventually(lambda: request("GET", daemon.url + "/metrics", headers=bearer("first"), tls=daemon.tls).status == 401)
    daemon.stop()


def test_a_projected_service_account_token_rotates(make_daemon, control_plane, namespace, tmp_path):
    """The kubeconfig and what it names are in a projected volume, as in a pod."""
    install(control_plane, "namespace.yaml", "serviceaccount.yaml", "role.yaml", "role-cluster-wide.yaml")
    control_plane.admin.create(make_workload("Deployment", namespace, replicas=2))
    kubeconfig = yaml.safe_load(control_plane.write_kubeconfig("projected", tokenFile="token").read_text())
    kubeconfig["clusters"][0]["cluster"]["certificate-authority"] = "ca.crt"

    def make_files(token):
        return {"kubeconfig": yaml.safe_dump(kubeconfig), "token": token, "ca.crt": control_plane.authority.certificate.read_text()}

    volume = ProjectedVolume(tmp_path / "volume", make_files("not.a.token"))
    daemon = make_daemon({
        "targets": {"web": {"kubernetes": {"kind": "Deployment", "namespace": namespace, "name": "web"}, "min": 1, "max": 9}},
        "rules": [{"name": "busy", "match": ["alertname=Busy"], "target": "web", "scale_up": {"by": 1}}],
    }, {"clusters": {"default": {"kubeconfig": f"{volume.path}/kubeconfig"}}})
    daemon.notify(notification(alert({"alertname": "Busy"})))
    eventually(lambda: "401" in daemon.log_file.read_text() + daemon.process.log_text(), what="the first token is refused")
    volume.replace(make_files(control_plane.account_token("alertscaler", "alertscaler")))
    path = path_of("apps/v1", "Deployment", namespace, "web")
    eventually(lambda: control_plane.admin.get(path)["spec"]["replicas"] == 3, what="the next token is in use")


# What a person names for a command

def run(*arguments, cwd, shell=None):
    command = ["bash", "-c", shell] if shell else [find_binary(), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, cwd=cwd,
                          env=environment(A=find_binary()), check=False)


def test_commands_read_pipes(tmp_path):
    """<(...) of a shell, and standard input, for what is read once."""
    assert run("init", "first", cwd=tmp_path).returncode == 0
    folder = tmp_path / "first"
    test = folder / "tests" / "checkout.yaml"
    test.write_text(test.read_text().replace("../rules/checkout.yaml", str(folder / "rules" / "checkout.yaml")))
    for shell in ('$A test <(cat tests/checkout.yaml)', 'cat tests/checkout.yaml | $A test /dev/stdin',
                  '$A check --alertmanager=<(cat alertmanager.yml) alertscaler.yaml',
                  '$A kill-switch off --config.file=<(printf "kill_switch: {file: %s/stop}\\n" "$PWD")'):
        done = run(cwd=folder, shell=shell)
        assert done.returncode == 0, (shell, done.stdout, done.stderr)
    done = run(cwd=folder, shell="$A check <(cat rules/checkout.yaml)")
    assert done.returncode != 0 and NOT_REGULAR in done.stdout + done.stderr, "which check would have to read more than once"


# What alertscaler writes

@pytest.mark.parametrize("key", ["state", "action_log"])
def test_nothing_is_written_through_a_link(make, tmp_path, key):
    victim, link = tmp_path / "victim", tmp_path / "link"
    victim.write_text("")
    link.symlink_to(victim)
    config = {key: {"path": str(link), **({"store": "sqlite"} if key == "state" else {})}}
    daemon = make(config, start=False)
    daemon.process.start()
    eventually(lambda: not daemon.process.running, what="it does not start")
    assert "symbolic link" in daemon.process.log_text() and str(victim) in daemon.process.log_text()
    assert victim.read_text() == ""
    done = run("check", str(daemon.config_file), cwd=tmp_path)
    assert "symbolic link" in done.stdout + done.stderr
