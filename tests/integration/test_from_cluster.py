"""`convert --from-cluster` and `check --from-cluster`: the objects of a real API server, as if their manifests were given."""
import json
import subprocess

import pytest
import yaml

from harness.daemon import environment, find_binary
from harness.kube import path_of
from harness.wait import eventually
from test_keda import plane as keda  # noqa: F401 (a fixture)
from test_policies import CRD, definition  # noqa: F401 (a fixture)
from test_policy_daemon import policy

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


# Policies that the cluster has, as this program judges them.


def check(*arguments, kubeconfig, cwd, config=None):
    """A configuration, or none."""
    (cwd / "alertscaler.yaml").unlink(missing_ok=True)
    if config is not None:
        (cwd / "alertscaler.yaml").write_text(yaml.safe_dump({"allow_empty_rules": True, **config}), encoding="utf-8")
    arguments = ("--config.file", str(cwd / "alertscaler.yaml"), *arguments) if config is not None else arguments
    return run("check", *arguments, kubeconfig=kubeconfig)


@pytest.fixture
def put(control_plane, definition):  # noqa: F811
    def run_apply(item, **spec):
        item["spec"].update(spec)
        done = control_plane.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(item), check=False)
        assert done.returncode == 0, done.stderr
    return run_apply


@pytest.mark.since(25, "the API server checks rules of CustomResourceDefinitions")
def test_check_says_what_this_program_refuses(put, namespace, admin_config, tmp_path):
    put(policy(namespace, "good", "good"))
    done = check(kubeconfig=admin_config, cwd=tmp_path, config={"objects": {"enabled": True}})
    assert (done.returncode, done.stdout, done.stderr) == (0, f"1 policy in namespace {namespace}: ok\n", "")
    large = policy(namespace, "large", "large")
    large["spec"]["target"]["max"] = 500
    put(large)
    asks = policy(namespace, "asks", "asks")
    asks["spec"]["rules"][0]["guard"] = {"query": "up == 1"}
    put(asks)
    put(policy(namespace, "second", "good"))
    done = check(kubeconfig=admin_config, cwd=tmp_path, config={"objects": {"enabled": True, "max_size": 100}})
    assert done.returncode == 1 and done.stdout == f"4 policies in namespace {namespace}: 3 refused\n", done.stderr
    assert f"{namespace}/large: error: spec.target.max: " in done.stderr and "objects.max_size" in done.stderr
    assert f"{namespace}/asks: error: spec.rules: policies may not query" in done.stderr
    assert f"{namespace}/second: error: " in done.stderr and f"{namespace}/good" in done.stderr
    done = check(kubeconfig=admin_config, cwd=tmp_path, config={"objects": {"enabled": True, "unrestricted_queries": True},
                                                                "prometheus": {"url": "http://127.0.0.1:1"}})
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == [f"{namespace}/second"], done.stderr
    done = check("--format=json", kubeconfig=admin_config, cwd=tmp_path, config={"objects": {"enabled": True, "max_size": 100}})
    assert done.returncode == 1 and {f["file"] for f in json.loads(done.stdout)} == {f"{namespace}/{name}" for name in ("large", "asks", "second")}


@pytest.mark.since(25, "the API server checks rules of CustomResourceDefinitions")
def test_check_warns_as_an_admission_does(put, namespace, admin_config, tmp_path):
    item = policy(namespace)
    item["spec"]["rules"][0] = {"name": "fixed", "match": ['alertname="Busy"'], "scaleTo": {"size": 30}, "guard": {"none": True}}
    put(item)
    config = {"objects": {"enabled": True}}
    done = check(kubeconfig=admin_config, cwd=tmp_path, config=config)
    assert done.returncode == 0 and f"{namespace}/web: warning: spec.rules[0].scaleTo.size: 30 is above `max`" in done.stderr
    assert check("--lint-fatal", kubeconfig=admin_config, cwd=tmp_path, config=config).returncode == 3
    done = check(kubeconfig=admin_config, cwd=tmp_path, config={})
    assert done.returncode == 0 and "hint: alertscaler reads no policies with this configuration" in done.stderr


@pytest.mark.since(25, "the API server checks rules of CustomResourceDefinitions")
def test_check_compares_the_definition(control_plane, put, namespace, admin_config, make_account, tmp_path):
    put(policy(namespace))
    config = {"objects": {"enabled": True}}
    for annotation, message in (("0", "the definition has schema 0, this program has schema "), (None, "the definition has no annotation `alertscaler.io/schema`")):
        control_plane.admin.patch(CRD, {"metadata": {"annotations": {"alertscaler.io/schema": annotation}}})
        done = check(kubeconfig=admin_config, cwd=tmp_path, config=config)
        assert done.returncode == 0 and f"warning: {message}" in done.stderr and "kubectl apply" in done.stderr, done.stderr
    reader = make_account([{"apiGroups": ["alertscaler.io"], "resources": ["scalingpolicies"], "verbs": ["list"]}])
    done = check("-n", namespace, kubeconfig=reader, cwd=tmp_path, config=config)
    assert done.returncode == 0 and "hint: the schema of the definition is not compared" in done.stderr
    assert '"customresourcedefinitions.apiextensions.k8s.io: get" is missing' in done.stderr and "1 policy in" in done.stdout
    done = check("-A", kubeconfig=reader, cwd=tmp_path, config=config)
    assert done.returncode == 2 and 'the right "scalingpolicies.alertscaler.io: list" is missing' in done.stderr and not done.stdout
    control_plane.admin.delete(CRD)
    control_plane.admin.wait_gone(CRD)
    done = check(kubeconfig=admin_config, cwd=tmp_path, config=config)
    assert done.returncode == 2 and "the API server has no scaling policies: apply the definition" in done.stderr


@pytest.mark.since(25, "the API server checks rules of CustomResourceDefinitions")
def test_check_reads_the_cluster_of_the_configuration(put, namespace, admin_config, tmp_path):
    put(policy(namespace))
    config = {"objects": {"enabled": True}, "clusters": {"default": {"kubeconfig": str(admin_config)}}}
    done = check(kubeconfig=tmp_path / "nothing", cwd=tmp_path, config=config)
    assert (done.returncode, done.stdout) == (0, f"1 policy in namespace {namespace}: ok\n"), done.stderr
    done = check("--kubeconfig", str(tmp_path / "nothing"), kubeconfig=admin_config, cwd=tmp_path, config=config)
    assert done.returncode == 2 and f"{tmp_path / 'nothing'}" in done.stderr
