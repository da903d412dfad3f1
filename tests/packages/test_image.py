"""The image, run as a pod of deploy/kubernetes runs it: by crun, read-only, without capabilities, not root."""
import json
import os
import re
import socket
import subprocess
import tarfile
import time
import uuid

import pytest
import yaml
from conftest import ROOT, run

pytestmark = pytest.mark.xdist_group("image")
POD = yaml.safe_load((ROOT / "deploy/kubernetes/deployment.yaml").read_text())["spec"]["template"]["spec"]
DATA = "/var/lib/alertscaler"


@pytest.fixture(scope="module")
def bundle(find, tmp_path_factory):
    """The image as an unpacked bundle for a runtime."""
    folder = tmp_path_factory.mktemp("image")
    run("tar", "-xf", find("*.oci.tar"), "-C", folder)
    version = re.search(r"_([^_]+)_", find("*.oci.tar").name)[1]
    run("umoci", "unpack", "--image", f"{folder}:{version}", folder / "bundle")
    print(f"the image: {find('*.oci.tar').stat().st_size / 1e6:.1f} MB, unpacked "
          f"{sum(p.lstat().st_size for p in (folder / 'bundle/rootfs').rglob('*')) / 1e6:.1f} MB")
    return folder / "bundle"


def list_programs(root):
    return {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() and not p.is_symlink() and os.access(p, os.X_OK)
            and ".so" not in p.name}


def test_it_has_one_program_and_no_shell(bundle):
    assert list_programs(bundle / "rootfs") == {"usr/bin/alertscaler"}
    assert not list((bundle / "rootfs").glob("etc/apt*")) and not list((bundle / "rootfs").rglob("dev/*"))
    modes = [p for p in (bundle / "rootfs").rglob("*") if not p.is_symlink() and p.stat().st_mode & 0o6000]
    assert modes == [], "nothing is set-user-id"


def test_it_is_small(find, bundle):
    assert find("*.oci.tar").stat().st_size < 20e6


def test_scanners_find_its_packages(bundle, find):
    names = {p.name for p in (bundle / "rootfs/var/lib/dpkg/status.d").iterdir()}
    listed = {p["name"] for p in json.loads(find("*.spdx.json").read_text())["packages"]}
    assert names == {name for name in listed if not name.endswith(".tar")}
    assert "VERSION_ID=\"12\"" in (bundle / "rootfs/etc/os-release").read_text()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Container:
    """The container of the manifests, with the volumes that they name as folders."""

    def __init__(self, bundle, folder, user=None):
        container, = POD["containers"]
        config = json.loads((bundle / "config.json").read_text())
        self.url = f"127.0.0.1:{free_port()}"
        user = user or (POD["securityContext"]["runAsUser"], POD["securityContext"]["runAsGroup"])
        entry = config["process"]["args"][0]
        config["process"].update(
            terminal=False, user={"uid": user[0], "gid": user[1]}, noNewPrivileges=True, capabilities={},
            args=[entry, *container["args"], f"--web.listen-address={self.url}"])
        assert container["securityContext"]["readOnlyRootFilesystem"] and container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        config["root"]["readonly"] = True
        config["mounts"] = [m for m in config["mounts"] if m["type"] not in ("cgroup",) and m["destination"] != DATA]
        for mount in container["volumeMounts"]:
            source = folder / mount["name"]
            source.mkdir()
            config["mounts"].append({"destination": mount["mountPath"], "type": "bind", "source": str(source),
                                     "options": ["bind", "ro" if mount.get("readOnly") else "rw"]})
        # the machine's network, where nothing but loopback is listened on
        config["linux"]["namespaces"] = [n for n in config["linux"]["namespaces"] if n["type"] not in ("network", "cgroup")]
        config["linux"].pop("resources", None)
        (folder / "config/alertscaler.yaml").write_text((ROOT / "deploy/kubernetes/config/alertscaler.yaml").read_text())
        (folder / "rules/rules.yaml").write_text((ROOT / "deploy/kubernetes/config/rules.yaml").read_text())
        for name in ("alertmanager", "prometheus", "operators"):
            (folder / "tokens" / name).write_text(f"token-of-{name}")
        os.chown(folder / "state", user[0], 0)
        config["root"]["path"] = str(bundle / "rootfs")
        (folder / "config.json").write_text(json.dumps(config))
        self.user = "{}:{}".format(*user)
        self.name, self.folder = f"test-{uuid.uuid4().hex[:8]}", folder
        # crun reads only the newer form of control groups, which the machine may not have mounted
        self.crun = ["unshare", "--mount", "sh", "-c", 'mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec "$@"', "sh",
                     "crun", "--cgroup-manager=disabled", f"--root={folder / 'crun'}"]
        self.log = open(folder / "log", "w+", encoding="utf-8")
        # no /dev/null as standard input: crun gives all three to the container's user, on the machine too
        self.process = subprocess.Popen([*self.crun, "run", "--bundle", folder, self.name], stdin=subprocess.PIPE,
                                        stdout=self.log, stderr=self.log)

    def wait_ready(self):
        deadline = time.monotonic() + 60
        while subprocess.run(["curl", "-sf", f"http://{self.url}/-/ready"], capture_output=True, check=False).returncode != 0:
            assert self.process.poll() is None and time.monotonic() < deadline, self.log_text()
            time.sleep(0.1)
        return self

    def log_text(self):
        return (self.folder / "log").read_text()

    def run(self, *command):
        """As the container's user, as kubelet does it."""
        done = subprocess.run([*self.crun, "exec", f"--user={self.user}", self.name, *command], input="", capture_output=True, text=True, check=False, timeout=60)
        return done.returncode, done.stdout + done.stderr

    def stop(self):
        self.process.terminate()
        status = self.process.wait(60)
        subprocess.run([*self.crun, "delete", "--force", self.name], capture_output=True, check=False)
        return status


@pytest.fixture
def start(bundle, mounts, tmp_path):
    made = []

    def make(**options):
        made.append(Container(bundle, tmp_path, **options).wait_ready())
        return made[-1]

    yield make
    for one in made:
        if one.process.poll() is None:
            one.stop()


def fetch(container, path, token):
    said = run("curl", "-s", "-w", "%{http_code}", "-o", "/dev/null", "-H", f"Authorization: Bearer {token}", f"http://{container.url}{path}")
    return int(said)


def test_it_runs_as_the_manifests_say(start, tmp_path):
    container = start()
    status = run("cat", f"/proc/{find_daemon(container)}/status")
    assert re.search(r"(?m)^Uid:\t65532\t65532\t65532\t65532$", status)
    assert re.search(r"(?m)^CapEff:\t0+$", status) and re.search(r"(?m)^NoNewPrivs:\t1$", status)
    assert "sandbox in force" in container.log_text() and "in part" not in container.log_text(), container.log_text()
    assert [fetch(container, "/metrics", f"token-of-{name}") for name in ("prometheus", "alertmanager", "nobody")] == [200, 403, 401]
    # what an operator does in a pod at 3 a.m.
    code, said = container.run("alertscaler", "kill-switch", "on", "incident 4711")
    assert code == 0, said
    assert (tmp_path / "state/stop").read_text() == "incident 4711\n"
    assert container.run("alertscaler", "kill-switch", "off")[0] == 0
    code, said = container.run("alertscaler", "log", "--config.file=/etc/alertscaler/alertscaler.yaml")
    assert code == 0 and "start" in said, said
    assert container.run("alertscaler", "check", "--config.file=/etc/alertscaler/alertscaler.yaml")[0] == 0
    assert container.stop() == 0
    assert [p for p in (tmp_path / "state").iterdir() if p.stat().st_uid != 65532] == []


def find_daemon(container):
    return json.loads(run(*container.crun, "state", container.name))["pid"]


def test_it_runs_as_any_user_of_group_0(start, tmp_path):
    """As OpenShift chooses: a random number, without an entry in /etc/passwd."""
    container = start(user=(1000730000, 0))
    assert "Uid:\t1000730000\t" in run("cat", f"/proc/{find_daemon(container)}/status")
    assert container.stop() == 0


def test_a_change_of_its_files_is_loaded(start, tmp_path):
    container = start()
    rules = tmp_path / "rules/rules.yaml"
    new = rules.with_suffix(".new")
    new.write_text(rules.read_text().replace("max: 20", "max: 30"))
    new.rename(rules)
    deadline = time.monotonic() + 60
    while "configuration loaded" not in container.log_text():
        assert time.monotonic() < deadline, container.log_text()
        time.sleep(0.2)


def wait_log(container, text):
    deadline = time.monotonic() + 60
    while text not in container.log_text():
        assert time.monotonic() < deadline, container.log_text()
        time.sleep(0.2)


def test_a_schedule_finds_its_time_zone(bundle, start, tmp_path):
    """Within the sandbox, at a reload; a zone that is not there changes nothing."""
    assert (bundle / "rootfs/usr/share/zoneinfo/Europe/Berlin").is_file()
    container = start()
    rules = tmp_path / "rules/rules.yaml"
    plain = yaml.safe_load(rules.read_text())
    new = rules.with_suffix(".new")
    for zone, says in (("Europe/Berlin", "configuration loaded"), ("Europe/Berlim", "there is no time zone")):
        for target in plain["targets"].values():
            target["schedules"] = [{"name": "day", "timezone": zone, "from": "07:30", "to": "20:00", "hold": "down"}]
        new.write_text(yaml.safe_dump(plain))
        new.rename(rules)
        wait_log(container, says)


def test_the_archive_is_what_the_specification_says(find, tmp_path):
    """An OCI layout: a version, an index with one image, blobs that are named by their digests."""
    import hashlib
    with tarfile.open(find("*.oci.tar")) as archive:
        files = {m.name.removeprefix("./"): archive.extractfile(m).read() for m in archive if m.isfile()}
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    manifest, = json.loads(files["index.json"])["manifests"]
    for name, content in files.items():
        if name.startswith("blobs/sha256/"):
            assert hashlib.sha256(content).hexdigest() == name.removeprefix("blobs/sha256/")
    manifest = json.loads(files["blobs/" + manifest["digest"].replace(":", "/")])
    config = json.loads(files["blobs/" + manifest["config"]["digest"].replace(":", "/")])
    assert config["config"]["User"] == "65532:65532" and config["config"]["Entrypoint"] == ["/usr/bin/alertscaler"]
    assert len(manifest["layers"]) == 1 and config["os"] == "linux"
