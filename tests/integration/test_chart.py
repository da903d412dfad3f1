"""The Helm chart: its values, what they become in a real API server, upgrades, and the rules in it in a daemon."""
import base64
import json
import re
import subprocess

import pytest
import yaml

from harness import helm, peers
from harness.control_plane import ADMIN_TOKEN
from harness.daemon import ROOT, dump_yaml, environment, find_binary
from harness.files import ConfigMapVolume
from harness.wait import eventually

pytestmark = pytest.mark.skipif(helm.missing() is not None, reason=str(helm.missing()))
SHORT, LONG = "scaler", "a" * 50 + "-xy"        # Helm takes names of up to 53 characters
ALL = [None, *helm.EXAMPLES]


def name_of(example):
    return example.stem if example else "default"


def flags_of(example):
    return ["-f", example] if example else []


def workload(items):
    return next(item for (kind, _), item in items.items() if kind in ("Deployment", "StatefulSet"))


def config_of(items, name="scaler-alertscaler"):
    return yaml.safe_load(items["ConfigMap", f"{name}-config"]["data"]["alertscaler.yaml"])


@pytest.mark.parametrize("example", ALL, ids=name_of)
def test_helm_lints_it(example):
    done = helm.run("lint", "--strict", helm.CHART, *flags_of(example), check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("example", ALL, ids=name_of)
def test_the_program_accepts_the_configuration(example, tmp_path):
    items = helm.render(*flags_of(example))
    text = items["ConfigMap", "scaler-alertscaler-config"]["data"]["alertscaler.yaml"]
    for key, content in next((i["data"] for (k, n), i in items.items() if k == "ConfigMap" and "rules" in n), {}).items():
        (tmp_path / key).write_text(content)
    (tmp_path / "alertscaler.yml").write_text(text.replace("/etc/alertscaler-rules", str(tmp_path)))
    done = subprocess.run([find_binary(), "check", "--syntax-only", tmp_path / "alertscaler.yml"], capture_output=True, text=True,
                          check=False, env=environment())
    assert done.returncode == 0, done.stderr


def test_the_leader_of_several_replicas_finds_each_pod():
    items = helm.render("--set", "replicaCount=2")
    names = ["scaler-alertscaler-0", "scaler-alertscaler-1"]
    replicas = config_of(items)["action_log"]["replicas"]
    assert replicas == {"urls": [f"http://{name}:9096" for name in names], "http_config": {
        "authorization": {"credentials_file": "/etc/alertscaler-tokens/prometheus"}}}
    services = [items["Service", name] for name in names]
    assert [s["spec"]["selector"] for s in services] == [{"statefulset.kubernetes.io/pod-name": name} for name in names]
    assert all(s["spec"]["publishNotReadyAddresses"] for s in services)
    assert not any("app.kubernetes.io/name" in s["metadata"]["labels"] for s in services), "a ServiceMonitor finds each pod once"
    assert {"podSelector": {"matchLabels": items["StatefulSet", "scaler-alertscaler"]["spec"]["selector"]["matchLabels"]}} in items[
        "NetworkPolicy", "scaler-alertscaler"]["spec"]["ingress"][0]["from"]
    more = helm.render("--set", "replicaCount=3")
    assert workload(items)["spec"]["template"] == workload(more)["spec"]["template"], "one more replica makes no new pods of the others"
    narrowed = helm.render("--set", "replicaCount=2", "--set", "credentials.tokens.prometheus.permissions={notify}")
    assert "replicas" not in config_of(narrowed)["action_log"], "no token may read"
    assert "replicas" not in config_of(helm.render())["action_log"] and ("Service", names[0]) not in helm.render()


@pytest.fixture
def operator(control_plane):
    """The kinds of the Prometheus Operator."""
    folder = peers.find("amconfig")
    if not folder:
        pytest.skip(peers.how_to_build("amconfig"))
    kinds = [folder / f"monitoring.coreos.com_{kind}.yaml" for kind in ("servicemonitors", "prometheusrules")]
    for path in kinds:
        control_plane.kubectl("apply", "--server-side", "-f", str(path))
    for path in kinds:
        control_plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", str(path))

    def list_known():       # the API server tells of a kind a little after it is established
        return control_plane.kubectl("api-resources", "--api-group=monitoring.coreos.com", "--output=name").stdout.split()

    names = {f"{path.stem.partition('_')[2]}.monitoring.coreos.com" for path in kinds}
    eventually(lambda: names <= set(list_known()), what="kubectl knows the kinds")
    return control_plane


def make_namespaces(plane, *names):
    for name in names:
        plane.admin.request("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


@pytest.mark.since(25, "the API server checks rules of CustomResourceDefinitions")
@pytest.mark.parametrize("release", [SHORT, LONG], ids=["short", "53 characters"])
@pytest.mark.parametrize("example", ALL, ids=name_of)
def test_a_real_api_server_takes_every_object(operator, example, release):
    make_namespaces(operator, "scaling", "shop")
    text = helm.run("template", release, helm.CHART, "--namespace", "scaling", *flags_of(example)).stdout
    done = operator.kubectl("apply", "--server-side", "--dry-run=server", "--field-manager=helm",
                            "--force-conflicts", "-f", "-", stdin=text, check=False)
    assert done.returncode == 0 and "Warning" not in done.stderr, done.stderr
    assert len(done.stdout.splitlines()) == len([d for d in yaml.safe_load_all(text) if d])


@pytest.fixture
def install(control_plane, namespace, tmp_path):
    """install(...): helm upgrade --install of the release `scaler` in the namespace, as an administrator."""
    kubeconfig = control_plane.write_kubeconfig("helm", token=ADMIN_TOKEN)

    def run(*arguments, command=("upgrade", "--install"), **values):
        return helm.run(*command, SHORT, *([helm.CHART] if "uninstall" not in command else []), "--namespace", namespace,
                        *arguments, *helm.values_of(values), kubeconfig=kubeconfig, home=tmp_path)

    yield run
    run(command=("uninstall", "--ignore-not-found"))


def read_tokens(plane, namespace):
    secret = plane.admin.get(f"/api/v1/namespaces/{namespace}/secrets/scaler-alertscaler-tokens")
    return {name: base64.b64decode(value).decode() for name, value in secret["data"].items()}


def test_an_upgrade_with_other_values_keeps_tokens_and_claim(control_plane, namespace, install):
    notes = install().stdout
    assert f"http://scaler-alertscaler.{namespace}.svc:9096/webhook" in notes and "There are no rules yet" in notes
    tokens = read_tokens(control_plane, namespace)
    assert tokens.keys() == {"alertmanager", "prometheus", "operators"} and len(set(tokens.values())) == 3
    assert all(re.fullmatch(r"\w{43}", token) for token in tokens.values())
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/scaler-alertscaler"
    pod = control_plane.admin.get(path)["spec"]["template"]

    install(**{"credentials.tokens.grafana": {"permissions": ["notify"]}, "config.dry_run": False,
               "rules.more": {"rules": []}})
    after = read_tokens(control_plane, namespace)
    assert {name: after[name] for name in tokens} == tokens and "grafana" in after
    assert control_plane.admin.get(path)["spec"]["template"] == pod, "what is loaded by itself makes no new pod"

    install(**{"config.state.path": "/var/lib/alertscaler/other.db"})
    assert control_plane.admin.get(path)["spec"]["template"] != pod, "what needs a restart makes one"

    install(replicaCount=3)
    assert not control_plane.admin.request("GET", path).ok
    assert control_plane.admin.get(f"/apis/apps/v1/namespaces/{namespace}/statefulsets/scaler-alertscaler")["spec"]["replicas"] == 3
    assert control_plane.admin.get(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/scaler-alertscaler"), "it is kept"
    assert read_tokens(control_plane, namespace).items() >= tokens.items()


def test_its_account_may_do_what_the_values_say_and_no_more(control_plane, namespace, install):
    make_namespaces(control_plane, "shop")
    account = f"system:serviceaccount:{namespace}:scaler-alertscaler"

    def can(verb, group, resource, where, subresource=""):
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {"user": account, "resourceAttributes": {
            "verb": verb, "group": group, "resource": resource, "subresource": subresource, "namespace": where}}}
        return control_plane.admin.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"]

    install(**{"rbac.namespaces": ["shop"]})
    eventually(lambda: can("update", "apps", "deployments", "shop", "scale"), what="shop")
    assert not can("update", "apps", "deployments", "default", "scale") and not can("get", "", "secrets", "shop")
    assert not can("get", "", "configmaps", namespace) and not can("list", "", "nodes", "")
    install(replicaCount=2, **{"rbac.clusterWide": True, "rbac.nodes": True})
    eventually(lambda: can("update", "apps", "deployments", "default", "scale") and can("patch", "", "nodes", "")
               and can("update", "", "configmaps", namespace), what="all")
    assert not can("delete", "", "configmaps", namespace)
    assert not can("get", "", "secrets", namespace)


RULE = {"targets": {"checkout": {"kubernetes": {"kind": "Deployment", "namespace": "shop", "name": "checkout"}, "max": 1000000}},
        "rules": [{"name": "first", "match": ['alertname="Slow"'], "target": "checkout", "scale_up": {"by": 1}}]}


def test_an_upgrade_of_the_rules_reaches_a_running_daemon(control_plane, namespace, install, make_daemon, tmp_path):
    """What the chart puts into the ConfigMap is in the volume as kubelet mounts it; the interval is that of the chart."""

    def read():
        data = control_plane.admin.get(f"/api/v1/namespaces/{namespace}/configmaps/scaler-alertscaler-rules")["data"]
        return {key.removesuffix(".yaml"): text for key, text in data.items()}

    def names(daemon):
        return [rule["name"] for rule in daemon.get("/api/v1/rules").json["data"]]

    install(rules={"checkout": RULE})
    args = control_plane.admin.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/scaler-alertscaler")["spec"]["template"]["spec"][
        "containers"][0]["args"]
    flag, = [arg for arg in args if arg.startswith("--config.auto-reload-interval=")]
    volume = ConfigMapVolume(tmp_path / "volume", **read())
    daemon = make_daemon({}, {"rule_files": [f"{volume.path}/*.yaml"], "dry_run": True}, flags=[flag])
    pid = daemon.process.pid
    assert names(daemon) == ["first"]
    install(rules={"checkout": {**RULE, "rules": [{**RULE["rules"][0], "name": "second"}]}, "text": "rules: []\n"})
    assert read()["text"] == "rules: []\n"
    volume.update(**read())
    eventually(lambda: names(daemon) == ["second"], what="the rules of the upgrade are in force")
    assert daemon.process.pid == pid


@pytest.mark.parametrize("number", [1000000, 123456789, 0.5])
def test_numbers_of_the_values_stay_as_they_are(tmp_path, number):
    """Helm reads the numbers of a file as floats."""
    values = tmp_path / "values.yaml"
    values.write_text(dump_yaml({"rules": {"a": {"size": number}}, "config": {"size": number}}))
    items = helm.render("-f", values)
    assert yaml.safe_load(items["ConfigMap", "scaler-alertscaler-rules"]["data"]["a.yaml"]) == {"size": number}
    assert str(number) in items["ConfigMap", "scaler-alertscaler-rules"]["data"]["a.yaml"]
    assert config_of(items)["size"] == number


@pytest.mark.parametrize("values, place", [
    ({"replicaCount": "two"}, "/replicaCount"), ({"rbac.namespaces": "shop"}, "/rbac/namespaces"),
    ({"rbac.namespaces": ["Shop"]}, "/rbac/namespaces/0"), ({"image.digest": "sha256:12"}, "/image/digest"),
    ({"persistence.size": "much"}, "/persistence/size"), ({"rules.a": ["x"]}, "/rules/a"),
    ({"credentials.tokens.x": {"permissions": ["write"]}}, "/credentials/tokens/x/permissions/0"),
    ({"autoReloadInterval": "soon"}, "/autoReloadInterval"), ({"service.port": 0}, "/service/port"),
    ({"replicas": 3}, "additional properties 'replicas' not allowed"), ({"image.name": "x"}, "/image"),
    ({"extraArgs": "--log.level=debug"}, "/extraArgs"), ({"logLevel": "loud"}, "/logLevel")])
def test_a_wrong_value_is_an_error_with_its_place(values, place):
    done = helm.run("template", SHORT, helm.CHART, *helm.values_of(values), check=False)
    assert done.returncode != 0 and place in done.stderr, done.stderr


def test_the_schema_knows_every_value():
    values = yaml.safe_load((helm.CHART / "values.yaml").read_text())
    schema = json.loads((helm.CHART / "values.schema.json").read_text())

    def compare(value, part, place):
        if not part.get("properties") or place == "/objects":     # a part of the configuration, which the daemon checks
            return
        assert part["additionalProperties"] is False, place
        assert value.keys() == part["properties"].keys() - {"global"}, place
        for key, one in value.items():
            compare(one, part["properties"][key], f"{place}/{key}")

    compare(values, schema, "")


def test_the_alerts_and_the_image_are_the_repositorys_own():
    items = helm.render(**{"prometheusRule.enabled": True})
    rules = yaml.safe_load((ROOT / "deploy/prometheus/alertscaler.rules.yml").read_text())
    assert items["PrometheusRule", "scaler-alertscaler"]["spec"] == rules
    setting, = yaml.safe_load((ROOT / "deploy/image/kustomization.yaml").read_text())["images"]
    image = f"{setting['newName']}:{setting['newTag']}"
    assert workload(items)["spec"]["template"]["spec"]["containers"][0]["image"] == image
    other = workload(helm.render(**{"image.repository": "registry.internal/scaler", "image.digest": "sha256:" + "0" * 64}))
    assert other["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.internal/scaler@sha256:" + "0" * 64


def test_only_a_release_without_rules_may_run_without_rule_files():
    """A ConfigMap of rules that is not mounted is an error, so that the daemon keeps its rules."""
    assert config_of(helm.render())["allow_empty_rules"] is True
    for values in ({"rules": {"checkout": RULE}}, {"existingRulesConfigMap": "scaling-rules"}):
        assert "allow_empty_rules" not in config_of(helm.render(**values)), values


def drop_labels(item):
    return {key: value for key, value in item.items() if key not in ("metadata",)}


@pytest.mark.parametrize("folder, file, replicas", [("kubernetes", "deployment.yaml", 1), ("kubernetes-ha", "statefulset.yaml", 3)])
def test_its_pod_is_that_of_the_manifests(folder, file, replicas):
    """Chart and kustomize run the same container under the same restrictions, with the same configuration and rights."""
    manifests = ROOT / "deploy" / folder
    rules = yaml.safe_load((manifests / "config/rules.yaml").read_text())
    items = helm.render(name="alertscaler", namespace="alertscaler", replicaCount=replicas, rules={"rules": rules}, **{"rbac.namespaces": ["shop"]})
    ours, theirs = (x["spec"]["template"]["spec"] for x in (workload(items), yaml.safe_load((manifests / file).read_text())))
    assert ours["securityContext"] == theirs["securityContext"]
    for key in ("ports", "livenessProbe", "readinessProbe", "resources", "securityContext"):
        assert ours["containers"][0][key] == theirs["containers"][0][key], key
    assert set(theirs["containers"][0]["args"]) <= set(ours["containers"][0]["args"])
    assert [m["mountPath"] for m in ours["containers"][0]["volumeMounts"]] == [m["mountPath"] for m in theirs["containers"][0]["volumeMounts"]]
    config = yaml.safe_load((manifests / "config/alertscaler.yaml").read_text())
    rendered = config_of(items, "alertscaler")
    rendered["state"] = {key: rendered["state"][key] for key in config["state"]}     # the chart names its Lease
    rendered["receiver"]["tokens"].sort(key=lambda token: token["name"])
    config["receiver"]["tokens"].sort(key=lambda token: token["name"])
    assert rendered == config
    role = yaml.safe_load((ROOT / "deploy/kubernetes/role.yaml").read_text())
    assert items["Role", "alertscaler"]["rules"] == role["rules"]
    if replicas > 1:
        state = next(yaml.safe_load_all((manifests / "role.yaml").read_text()))
        assert items["Role", "alertscaler-state"]["rules"] == state["rules"]


@pytest.mark.parametrize("value, name, file", [("nodes", "nodes", "role-nodes.yaml"), ("tokenReview", "token-review", "role-token-review.yaml"),
                                               ("clusterWide", None, "role.yaml")])
def test_its_cluster_roles_are_those_of_the_manifests(value, name, file):
    items = helm.render(**{f"rbac.{value}": True})
    full = "-".join(filter(None, ["scaling-scaler-alertscaler", name]))
    assert items["ClusterRole", full]["rules"] == next(yaml.safe_load_all((ROOT / "deploy/kubernetes" / file).read_text()))["rules"]
    assert items["ClusterRoleBinding", full]["roleRef"]["name"] == full


def test_two_releases_in_one_cluster_share_nothing():
    one = helm.render(namespace="a", **{"rbac.clusterWide": True})
    other = helm.render(namespace="b", **{"rbac.clusterWide": True})
    clusters = [{key for key in items if key[0].startswith("Cluster")} for items in (one, other)]
    assert clusters[0] and not clusters[0] & clusters[1]


WEBHOOK = "ValidatingWebhookConfiguration", "alertscaler"


@pytest.mark.parametrize("objects, objects_with, namespaces_with", [
    ({}, None, None),
    ({"namespaces": ["shop", "web"]}, None,
     {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["shop", "web"]}]}),
    ({"selector": {"scaler": "prod", "on": "true"}, "namespace_selector": {"scaling": "allowed"}},
     {"matchLabels": {"scaler": "prod", "on": "true"}}, {"matchLabels": {"scaling": "allowed"}}),
], ids=["all", "named", "labels"])
def test_the_webhook_judges_what_the_daemon_reads(tmp_path, objects, objects_with, namespaces_with):
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"objects": {"enabled": True, "admission": {"address": ":9443"}, **objects}}))
    webhook = helm.render("-f", file)[WEBHOOK]["webhooks"][0]
    assert webhook.get("objectSelector") == objects_with
    assert webhook.get("namespaceSelector") == namespaces_with
