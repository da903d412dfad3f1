"""What is shipped under deploy/: the manifests with their rights, the configuration in them, the image."""
import base64
import os
import pathlib
import re
import shutil
import subprocess

import pytest
import yaml

from harness.daemon import ROOT, environment, find_binary
from harness.deploy import MANIFESTS, install
from harness.notification import alert, notification
from harness.wait import eventually


@pytest.fixture
def plane(control_plane):
    install(control_plane, "namespace.yaml", "serviceaccount.yaml", "role.yaml", "role-cluster-wide.yaml", "../kubernetes-ha/role.yaml")
    return control_plane


def has_components():
    """kubectl 1.20 has a kustomize that knows none."""
    return os.environ.get("KUBERNETES") != "kubernetes-oldest"


def apply_folder(plane, tmp_path, name):
    deploy = MANIFESTS.parent
    plane.admin.request("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    if not has_components():
        deploy = shutil.copytree(deploy, tmp_path / "deploy")
        setting = deploy / name / "kustomization.yaml"
        with_component = yaml.safe_load(setting.read_text())
        assert with_component.pop("components") == ["../image"]
        images = yaml.safe_load((deploy / "image/kustomization.yaml").read_text())["images"]
        setting.write_text(yaml.safe_dump({**with_component, "images": images}))
    plane.kubectl("apply", "-k", str(deploy / name))


def test_the_shipped_manifests_are_accepted(plane, tmp_path):
    apply_folder(plane, tmp_path, "kubernetes")
    deployment = plane.admin.get("/apis/apps/v1/namespaces/alertscaler/deployments/alertscaler")
    assert deployment["spec"]["template"]["spec"]["securityContext"]["runAsNonRoot"] is True
    plane.admin.delete("/apis/apps/v1/namespaces/alertscaler/deployments/alertscaler")


def test_the_systemd_unit_gives_up_what_it_can(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("there is no systemd-analyze")
    unit = tmp_path / "alertscaler.service"
    text = (ROOT / "deploy/systemd/alertscaler.service").read_text()
    unit.write_text(text.replace("/usr/bin/alertscaler", str(find_binary())))
    done = subprocess.run(["systemd-analyze", "security", "--offline=1", "--threshold=15", unit],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "exposure level" in done.stdout, done
    checked = subprocess.run(["systemd-analyze", "--man=no", "verify", unit], capture_output=True, text=True, check=False)
    assert not re.search(r"Unknown|ignoring|Failed to parse", checked.stderr), checked.stderr


def test_the_image_is_one_setting(tmp_path, plane):
    """Who changes its name and tag in deploy/image changes it in both sets of manifests."""
    if not has_components():
        pytest.skip("kubectl 1.20 knows no components of kustomize: docs/operations.md asks for 1.21")
    shutil.copytree(MANIFESTS.parent, tmp_path / "deploy")
    setting = tmp_path / "deploy/image/kustomization.yaml"
    setting.write_text(setting.read_text().replace("newName: alertscaler", "newName: registry.internal/scaler")
                       .replace("newTag: 0.1.0", "newTag: 9.9.9"))
    for folder in ("kubernetes", "kubernetes-ha"):
        documents = yaml.safe_load_all(plane.kubectl("kustomize", str(tmp_path / "deploy" / folder)).stdout)
        images = [container["image"] for document in documents if document["kind"] in ("Deployment", "StatefulSet")
                  for container in document["spec"]["template"]["spec"]["containers"]]
        assert images == ["registry.internal/scaler:9.9.9"], folder


def test_the_manifests_leave_a_container_no_rights():
    spec = yaml.safe_load((MANIFESTS / "deployment.yaml").read_text())["spec"]["template"]["spec"]
    assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["runAsUser"] > 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in spec["containers"]:
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"] and context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}


def test_the_shipped_manifests_for_several_replicas_are_accepted(plane, tmp_path):
    apply_folder(plane, tmp_path, "kubernetes-ha")
    path = "/apis/apps/v1/namespaces/alertscaler"
    replicas = plane.admin.get(f"{path}/statefulsets/alertscaler")["spec"]
    assert replicas["replicas"] == 3
    claims = [claim["metadata"]["name"] for claim in replicas["volumeClaimTemplates"]]
    container = replicas["template"]["spec"]["containers"][0]
    assert claims == ["log"] and "log" in [mount["name"] for mount in container["volumeMounts"]]
    assert not plane.admin.request("GET", f"{path}/deployments/alertscaler").ok
    name = next(v["configMap"]["name"] for v in replicas["template"]["spec"]["volumes"] if v["name"] == "config")
    config = plane.admin.get(f"/api/v1/namespaces/alertscaler/configmaps/{name}")["data"]["alertscaler.yaml"]
    assert config == (MANIFESTS.parent / "kubernetes-ha/config/alertscaler.yaml").read_text()
    plane.admin.delete(f"{path}/statefulsets/alertscaler")


@pytest.mark.parametrize("one, several", [
    ("namespace.yaml", "namespace.yaml"), ("serviceaccount.yaml", "serviceaccount.yaml"), ("service.yaml", "service.yaml"),
    ("role.yaml", "cluster-role.yaml"), ("config/rules.yaml", "config/rules.yaml"),
    ("role-namespace.yaml", "role-namespace.yaml"), ("role-cluster-wide.yaml", "role-cluster-wide.yaml"),
    ("networkpolicy.yaml", "networkpolicy.yaml")])
def test_one_replica_and_several_are_installed_alike(one, several):
    """Old kubectls leave a kustomization that reaches into another folder half done, so these are copies."""
    assert (MANIFESTS / one).read_text() == (MANIFESTS.parent / "kubernetes-ha" / several).read_text()


def test_the_configuration_for_several_replicas_differs_where_it_must_alone():
    """A file would stop only the replica that has it; with several the Lease's annotation is the kill switch."""
    one, several = (yaml.safe_load((folder / "config/alertscaler.yaml").read_text())
                    for folder in (MANIFESTS, MANIFESTS.parent / "kubernetes-ha"))
    assert several["state"].pop("store") == "kubernetes"
    assert (one.pop("state")["store"], several.pop("state")) == ("sqlite", {})
    replicas = several["action_log"].pop("replicas")
    services = list(yaml.safe_load_all((MANIFESTS.parent / "kubernetes-ha/replicas.yaml").read_text()))
    pods = [service["spec"]["selector"]["statefulset.kubernetes.io/pod-name"] for service in services]
    count = yaml.safe_load((MANIFESTS.parent / "kubernetes-ha/statefulset.yaml").read_text())["spec"]["replicas"]
    assert pods == [service["metadata"]["name"] for service in services] == [f"alertscaler-{n}" for n in range(count)]
    assert replicas["urls"] == [f"http://{pod}:9096" for pod in pods]
    assert all(service["spec"]["publishNotReadyAddresses"] for service in services)
    token = replicas["http_config"]["authorization"]["credentials_file"]
    assert [t["permissions"] for t in several["receiver"]["tokens"] if t["file"] == token] == [["read"]]
    assert one.pop("kill_switch") and "kill_switch" not in several
    assert one == several


def test_the_kill_switch_can_be_set_with_exec():
    """Everything else in the container is read-only, and what is not on a claim does not survive the container."""
    settings = yaml.safe_load((MANIFESTS / "config/alertscaler.yaml").read_text())
    spec = yaml.safe_load((MANIFESTS / "deployment.yaml").read_text())["spec"]["template"]["spec"]
    folder = str(pathlib.PurePosixPath(settings["kill_switch"]["file"]).parent)
    mount, = [m for m in spec["containers"][0]["volumeMounts"] if m["mountPath"] == folder]
    volume, = [v for v in spec["volumes"] if v["name"] == mount["name"]]
    assert not mount.get("readOnly") and "persistentVolumeClaim" in volume
    assert spec["securityContext"]["fsGroup"] == spec["securityContext"]["runAsUser"]


def test_the_kill_switch_of_the_shipped_configuration_stops_it(make_daemon, node_group, tmp_path):
    """The folder of the state holds the file too, with all that the sandbox leaves."""
    group = node_group(size=4)
    text = (MANIFESTS / "config/alertscaler.yaml").read_text()
    shipped = yaml.safe_load(text.replace("/var/lib/alertscaler", str(tmp_path)))
    stop = pathlib.Path(shipped["kill_switch"]["file"])
    assert stop.parent == pathlib.Path(shipped["state"]["path"]).parent
    daemon = make_daemon(
        {"targets": {"workers": {"node_group": {"provider": "mine", "url": group.url}, "min": 1, "max": 10}},
         "rules": [{"name": "busy", "match": ["alertname=Busy"], "target": "workers", "scale_up": {"by": 1}}]},
        {"providers": {"mine": {"type": "http"}}, "state": shipped["state"], "kill_switch": shipped["kill_switch"]})
    switch = [find_binary(), "kill-switch", f"--config.file={daemon.config_file}"]
    subprocess.run([*switch, "on", "incident 4711"], check=True, env=environment())
    assert stop.read_text() == "incident 4711\n"
    eventually(lambda: daemon.metrics().value("alertscaler_paused") == 1, what="the file is seen")
    daemon.notify(notification(alert({"alertname": "Busy"})))
    assert daemon.wait_record("decision")["output"]["reason"] == "paused"
    subprocess.run([*switch, "off"], check=True, env=environment())
    eventually(lambda: group.applied == [5], what="it goes on without the file")
    daemon.stop()


@pytest.mark.parametrize("folder, workload", [("kubernetes", "deployment.yaml"), ("kubernetes-ha", "statefulset.yaml")])
def test_the_manifests_ask_for_the_tokens_that_one_line_makes(plane, make_daemon, tmp_path, folder, workload):
    """The line of kustomization.yaml, and of the pages, makes the Secret whose keys the configuration reads."""
    deploy = MANIFESTS.parent / folder
    tokens = yaml.safe_load((deploy / "config/alertscaler.yaml").read_text())["receiver"]["tokens"]
    line = re.search(r"kubectl -n alertscaler (create secret generic (\S+))(.*)\n", (deploy / "kustomization.yaml").read_text())
    keys = re.findall(r"--from-literal=(\w+)=", line[3])
    pod = yaml.safe_load((deploy / workload).read_text())["spec"]["template"]["spec"]
    mount, = [m for m in pod["containers"][0]["volumeMounts"] if m["name"] == "tokens"]
    volume, = [v for v in pod["volumes"] if v["name"] == "tokens"]
    assert mount["readOnly"] and volume["secret"] == {"secretName": line[2]}
    assert [token["file"] for token in tokens] == [f"{mount['mountPath']}/{key}" for key in keys]
    for page in ("README.md", "docs/operations.md"):
        words = " ".join((ROOT / page).read_text().replace("\\\n", " ").split())
        assert f"kubectl -n alertscaler {line[1]}{line[3]}" in words, page

    made = plane.kubectl("-n", "alertscaler", *line[1].split(), *(f"--from-literal={key}=is-{key}" for key in keys),
                         "--dry-run=server", "-o", "yaml").stdout
    for key, value in yaml.safe_load(made)["data"].items():
        (tmp_path / key).write_bytes(base64.b64decode(value))
    daemon = make_daemon({"targets": {}, "rules": []}, start=False, config={"receiver": {
        "tokens": [{**token, "file": str(tmp_path / pathlib.Path(token["file"]).name)} for token in tokens]}})
    daemon.start()
    body = notification(alert({"alertname": "Busy"}))
    assert daemon.post("/webhook", body).status == 401
    daemon.headers = {"Authorization": "Bearer is-prometheus"}
    assert (daemon.post("/webhook", body).status, daemon.get("/metrics").status) == (403, 200)
    daemon.headers = {"Authorization": "Bearer is-alertmanager"}
    assert (daemon.post("/webhook", body).status, daemon.get("/metrics").status) == (200, 403)


def can(plane, verb, namespace):
    """Whether the account may do this with the sizes of Deployments there."""
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
        "user": "system:serviceaccount:alertscaler:alertscaler", "resourceAttributes": {
            "verb": verb, "group": "apps", "resource": "deployments", "subresource": "scale", "namespace": namespace}}}
    return plane.admin.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"]


def test_the_rights_are_those_on_named_namespaces_until_one_chooses_more(plane, tmp_path):
    plane.admin.request("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/alertscaler")
    apply_folder(plane, tmp_path, "kubernetes")
    plane.admin.delete("/apis/apps/v1/namespaces/alertscaler/deployments/alertscaler")
    eventually(lambda: can(plane, "update", "shop") and not can(plane, "get", "default"), what="shop alone")
    install(plane, "role-cluster-wide.yaml")
    eventually(lambda: can(plane, "update", "default"), what="everywhere")


def test_a_change_of_the_configuration_keeps_the_pods(plane, tmp_path):
    """Names without a digest: the pods that run see the change, and load it."""
    if not has_components():
        pytest.skip("kubectl 1.20 knows no components of kustomize")
    shutil.copytree(MANIFESTS.parent, tmp_path / "deploy")
    rules = tmp_path / "deploy/kubernetes/config/rules.yaml"
    before = list(yaml.safe_load_all(plane.kubectl("kustomize", str(tmp_path / "deploy/kubernetes")).stdout))
    rules.write_text(rules.read_text().replace("max: 20", "max: 30"))
    after = list(yaml.safe_load_all(plane.kubectl("kustomize", str(tmp_path / "deploy/kubernetes")).stdout))
    changed = [one["metadata"]["name"] for one, other in zip(before, after) if one != other]
    assert changed == ["alertscaler-rules"]
    args = next(d for d in after if d["kind"] == "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert any(arg.startswith("--config.auto-reload-interval=") for arg in args)


def test_a_replica_of_several_runs_as_one_alone_does():
    """The pods are the same but for where they run, their names and their volumes."""
    one = yaml.safe_load((MANIFESTS / "deployment.yaml").read_text())["spec"]["template"]
    several = yaml.safe_load((MANIFESTS.parent / "kubernetes-ha/statefulset.yaml").read_text())["spec"]["template"]
    assert one["metadata"] == several["metadata"]
    assert one["spec"]["securityContext"] == several["spec"]["securityContext"]
    for key in ("image", "args", "ports", "livenessProbe", "resources", "securityContext"):
        assert one["spec"]["containers"][0][key] == several["spec"]["containers"][0][key], key


def test_the_shipped_configuration_is_valid(tmp_path):
    text = (MANIFESTS / "config/alertscaler.yaml").read_text()
    assert "/etc/alertscaler-rules/" in text
    config = tmp_path / "alertscaler.yaml"
    config.write_text(text.replace("/etc/alertscaler-rules/", f"{MANIFESTS}/config/r"))     # rules.yaml only
    done = subprocess.run([find_binary(), "check", "--syntax-only", config], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "2 rules: ok" in done.stdout
    assert done.stderr == "", done


@pytest.mark.parametrize("method, path", [
    ("GET", "/api/v1/namespaces/default/secrets"),
    ("GET", "/api/v1/namespaces/default/pods/web"),
    ("GET", "/api/v1/namespaces/default/secrets?watch=1"),
    ("GET", "/apis/apps/v1/namespaces/default/deployments?watch=1"),
    ("DELETE", "/api/v1/namespaces/default/pods/web"),
    ("PUT", "/apis/apps/v1/namespaces/default/deployments/web"),
    ("GET", "/apis/apps/v1/namespaces/default/deployments"),
    ("DELETE", "/apis/apps/v1/namespaces/default/deployments/web"),
    ("GET", "/api/v1/namespaces/default/events"),
    ("GET", "/api/v1/namespaces/default/configmaps"),
    ("DELETE", "/api/v1/namespaces/alertscaler/configmaps/alertscaler-state"),
    ("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"),
])
def test_the_shipped_role_allows_nothing_else(plane, method, path):
    plane.admin.request("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/alertscaler-nodes")   # of another test
    client = plane.client(plane.account_token("alertscaler", "alertscaler"))
    eventually(lambda: client.request("GET", "/api/v1/nodes").status == 403, what="the other test's rights are gone")
    assert client.request(method, path).status == 403


REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


def test_the_optional_role_lets_tokens_be_reviewed_and_nothing_else(plane):
    token = plane.account_token("alertscaler", "alertscaler")
    client = plane.client(token)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    assert client.request("POST", REVIEWS, review).status == 403, "only for those who want it"
    install(plane, "role-token-review.yaml")
    try:
        answer = client.request("POST", REVIEWS, review)
        assert answer.status == 201
        assert answer.json["status"]["user"]["username"] == "system:serviceaccount:alertscaler:alertscaler"
        access = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                  "spec": {"user": "admin", "resourceAttributes": {"verb": "get", "resource": "secrets"}}}
        assert client.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", access).status == 403
        assert client.request("GET", "/api/v1/namespaces/default/secrets").status == 403
    finally:
        path = "/apis/rbac.authorization.k8s.io/v1"
        plane.admin.delete(f"{path}/clusterrolebindings/alertscaler-token-review")
        plane.admin.delete(f"{path}/clusterroles/alertscaler-token-review")


def needed_libraries():
    needed = subprocess.run(["readelf", "-d", find_binary()], capture_output=True, text=True, check=True).stdout
    libraries = [n for n in re.findall(r"NEEDED.*\[(.*?)]", needed) if not re.match(r"lib([ac]|ub)san|libc\.|libm\.", n)]
    assert len(libraries) >= 6
    return libraries


def test_the_readme_names_each_library():
    table = (ROOT / "README.md").read_text().split("## Libraries")[1].split("\n## ")[0].lower()
    names = " ".join(re.findall(r"^\| ([^|]*) \|", table, re.MULTILINE))
    for library in needed_libraries():
        stem = {"libcrypto": "openssl"}.get(library.split(".")[0]) or re.match(r"lib([a-z]+)", library)[1]
        assert stem in names, f"{library} is not in the README"
