"""`convert --from-cluster`: the objects of a real API server, as if their manifests were given."""
import json
import subprocess

import pytest
import yaml

from harness.daemon import environment, find_binary
from harness.kube import path_of
from harness.wait import eventually
from test_keda import plane as keda  # noqa: F401 (a fixture)

pytestmark = [pytest.mark.kubernetes, pytest.mark.since(23, "the API server has autoscaling/v2")]
HPAS = "horizontalpodautoscalers.autoscaling: list"


def hpa(namespace, name="web", metrics=None):
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name, "namespace": namespace},
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}, "minReplicas": 2, "maxReplicas": 10, "behavior": {},
                     "metrics": metrics or [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}}]}}


def run(command, *arguments, kubeconfig, **variables):
    return subprocess.run([find_binary(), command, "--from-cluster", *arguments], capture_output=True, text=True, check=False, timeout=120,
                          env={**environment(), "KUBECONFIG": str(kubeconfig), **variables})


def texts(folder, kind):
    return {path.name: path.read_text(encoding="utf-8") for path in sorted((folder / kind).iterdir())}


@pytest.fixture
def admin_config(control_plane, namespace, tmp_path):
    """kubectl's file: the context's namespace is the test's."""
    control_plane.kubectl("get", "--raw", "/readyz")
    config = yaml.safe_load((control_plane.directory / "kubectl.kubeconfig").read_text(encoding="utf-8"))
    config["contexts"][0]["context"]["namespace"] = namespace
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


@pytest.fixture
def make_account(control_plane, namespace, tmp_path):
    """make_account(rules): the kubeconfig of a service account with these rights in the namespace."""
    def make(rules):
        control_plane.create_account(namespace, "reader")
        if rules:
            control_plane.grant(namespace, "reader", rules)
        token = tmp_path / "reader-token"
        token.write_text(control_plane.account_token(namespace, "reader"))
        return control_plane.write_kubeconfig("reader", tokenFile=str(token))
    return make


@pytest.mark.parametrize("output", ["policies", "rules"])
def test_the_result_is_that_of_the_manifests(control_plane, namespace, admin_config, tmp_path, output):
    external = [{"type": "External", "external": {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "30"}}}]
    for name, metrics in (("web", None), ("worker", external)):
        control_plane.admin.create(hpa(namespace, name, metrics))
    done = run("convert", f"--output={output}", f"--out={tmp_path / 'out'}", kubeconfig=admin_config)
    assert done.returncode == 1, done.stdout + done.stderr
    files = []
    for name in ("web", "worker"):
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(control_plane.kubectl("get", "hpa", name, "-n", namespace, "-o", "json").stdout, encoding="utf-8")
    given = subprocess.run([find_binary(), "convert", f"--output={output}", f"--out={tmp_path / 'given'}", *files], capture_output=True, text=True, check=False)
    assert given.returncode == 1, given.stderr

    def rename(text):
        """Places differ in the file's name alone: lines and columns are those of `kubectl get -o json`."""
        for file, name in zip(files, ("web", "worker")):
            text = text.replace(str(file), f"horizontalpodautoscalers/{namespace}/{name}")
        return text

    for kind in (output, "tests"):
        assert texts(tmp_path / "out", kind) == {name: rename(text) for name, text in texts(tmp_path / "given", kind).items()}
    lost = (tmp_path / "out/not-carried-over.txt").read_text(encoding="utf-8")
    assert lost == rename((tmp_path / "given/not-carried-over.txt").read_text(encoding="utf-8"))
    assert f"horizontalpodautoscalers/{namespace}/worker:" in lost and "`queue`" in lost
    assert "KEDA is not installed" in done.stderr


def test_files_add_what_the_cluster_does_not_say(control_plane, namespace, admin_config, tmp_path):
    """The configuration of prometheus-adapter."""
    control_plane.admin.create(hpa(namespace, "worker", [{"type": "External", "external": {
        "metric": {"name": "queue"}, "target": {"type": "Value", "value": "30"}}}]))
    (tmp_path / "adapter.yaml").write_text(yaml.safe_dump({"externalRules": [
        {"seriesQuery": "queue", "resources": {"overrides": {"namespace": {"resource": "namespace"}}},
         "metricsQuery": "sum(<<.Series>>{<<.LabelMatchers>>})"}]}), encoding="utf-8")
    done = run("convert", str(tmp_path / "adapter.yaml"), f"--out={tmp_path / 'out'}", kubeconfig=admin_config)
    assert "not carried over" not in done.stdout and "sum(queue" in texts(tmp_path / "out", "rules")[f"{namespace}.worker.yaml"], done.stdout


def test_namespaces_are_chosen_as_by_kubectl(control_plane, namespace, admin_config, tmp_path):
    other = f"{namespace}-b"
    control_plane.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    try:
        for space in (namespace, other):
            control_plane.admin.create(hpa(space))

        def names(folder, *arguments):
            done = run("convert", *arguments, f"--out={tmp_path / folder}", kubeconfig=admin_config)
            assert done.returncode in (0, 1), done.stderr     # other tests leave objects for a moment
            return [name for name in texts(tmp_path / folder, "rules") if name.startswith(namespace)]

        assert names("context") == [f"{namespace}.web.yaml"]
        assert names("named", "-n", other) == [f"{other}.web.yaml"]
        assert sorted(names("all", "-A")) == sorted([f"{namespace}.web.yaml", f"{other}.web.yaml"])
        done = run("convert", "-A", "-n", other, f"--out={tmp_path / 'both'}", kubeconfig=admin_config)
        assert done.returncode == 2 and "and not both" in done.stderr
        done = run("convert", "-n", "nothing-here", f"--out={tmp_path / 'none'}", kubeconfig=admin_config)
        assert done.returncode == 2 and "there is nothing to convert in namespace nothing-here" in done.stderr
        done = run("convert", "--context=no", f"--out={tmp_path / 'none'}", kubeconfig=admin_config)
        assert done.returncode == 2 and 'there is no context "no"' in done.stderr
        assert not (tmp_path / "none").exists()
    finally:
        control_plane.admin.request("DELETE", f"/api/v1/namespaces/{other}")


def test_a_long_list_is_read_to_its_end(control_plane, namespace, admin_config, tmp_path):
    """The API server gives it in pages."""
    count = 520
    items = [hpa(namespace, f"web-{i:03}") for i in range(count)]
    done = control_plane.kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    listed = control_plane.admin.get(path_of("autoscaling/v2", "HorizontalPodAutoscaler", namespace) + "?limit=500")
    assert listed["metadata"]["continue"]
    done = run("convert", f"--out={tmp_path / 'out'}", kubeconfig=admin_config)
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"{count} targets" in done.stdout and len(texts(tmp_path / "out", "rules")) == count


@pytest.fixture
def logins(keda, control_plane):  # noqa: F811
    """TriggerAuthentications can be made: the name of their definition, with any content."""
    name = "triggerauthentications.keda.sh"
    control_plane.admin.create({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name}, "spec": {
            "group": "keda.sh", "scope": "Namespaced", "names": {"kind": "TriggerAuthentication", "plural": "triggerauthentications"},
            "versions": [{"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}})
    crd = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
    eventually(lambda: control_plane.admin.get("/apis/keda.sh/v1alpha1/triggerauthentications"), what="TriggerAuthentications are served")
    yield
    control_plane.admin.delete(crd)
    control_plane.admin.wait_gone(crd)


def test_keda_is_read_where_it_is_installed(control_plane, namespace, make_account, admin_config, logins, tmp_path):
    control_plane.admin.create(hpa(namespace))
    scaled = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "worker", "namespace": namespace},
              "spec": {"scaleTargetRef": {"name": "worker"}, "minReplicaCount": 1, "triggers": [
                  {"type": "prometheus", "authenticationRef": {"name": "login"}, "metadata": {
                      "serverAddress": "https://prometheus:9090", "query": "sum(x)", "threshold": "5", "authModes": "bearer"}}]}}
    login = {"apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication", "metadata": {"name": "login", "namespace": namespace},
             "spec": {"secretTargetRef": [{"parameter": "bearerToken", "name": "metrics", "key": "token"}]}}
    control_plane.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [scaled, login]}))
    done = run("convert", "--output=policies", f"--out={tmp_path / 'out'}", kubeconfig=admin_config)
    assert done.returncode in (0, 1), done.stderr
    assert sorted(texts(tmp_path / "out", "policies")) == [f"{namespace}.web.yaml", f"{namespace}.worker.yaml"]
    assert f"scaledobjects/{namespace}/worker:" in done.stdout and "https://prometheus:9090" in done.stdout
    assert "/etc/alertscaler/metrics/token" in done.stdout and not done.stderr, "the login is read"
    kubeconfig = make_account([{"apiGroups": ["autoscaling", "keda.sh"], "resources": ["horizontalpodautoscalers", "scaledobjects"], "verbs": ["list"]}])
    done = run("convert", "-n", namespace, f"--out={tmp_path / 'less'}", kubeconfig=kubeconfig)
    assert done.returncode in (0, 1) and "/etc/alertscaler/metrics/token" not in done.stdout
    assert 'logins of ScaledObjects are not shown' in done.stderr and '"triggerauthentications.keda.sh: list" is missing' in done.stderr


def test_a_missing_right_is_named(control_plane, make_account, namespace, keda, tmp_path):  # noqa: F811
    kubeconfig = make_account([{"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "verbs": ["list"]}])
    control_plane.admin.create(hpa(namespace))
    done = run("convert", "-n", namespace, f"--out={tmp_path / 'out'}", kubeconfig=kubeconfig)
    assert done.returncode == 2 and 'the right "scaledobjects.keda.sh: list" is missing' in done.stderr, done.stderr
    assert control_plane.url in done.stderr and not (tmp_path / "out").exists()
    done = run("convert", "-A", f"--out={tmp_path / 'out'}", kubeconfig=kubeconfig)
    assert done.returncode == 2 and f'the right "{HPAS}" is missing' in done.stderr, done.stderr


def test_without_an_api_server_nothing_is_written(control_plane, namespace, admin_config, tmp_path):
    control_plane.apiserver.kill()
    try:
        done = run("convert", f"--out={tmp_path / 'out'}", kubeconfig=admin_config)
        assert done.returncode == 2 and f"{control_plane.url}: list horizontalpodautoscalers: " in done.stderr, done.stderr
        assert not (tmp_path / "out").exists()
    finally:
        control_plane.ensure_running()
