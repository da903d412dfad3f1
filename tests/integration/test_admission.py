"""The admission webhook: what it answers to a real API server, and to everybody else."""
import base64
import concurrent.futures
import copy
import json
import os
import socket
import ssl
import subprocess
import time

import pytest

from harness.certificates import Authority
from harness.daemon import find_binary
from harness.files import replace
from harness.http import request
from harness.ports import free_port
from harness.slow_cluster import SlowCluster
from harness.wait import eventually
from test_policies import POLICY, apply, change, definition  # noqa: F401

NAME = "alertscaler"
WEBHOOK = "scalingpolicies.alertscaler.io"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
NOTHING = {"targets": {}, "rules": []}
UID = "705ab4f5-6393-11e8-b7cc-42010a800002"
OBJECTS = {"enabled": True, "unrestricted_queries": True}


def review(item, operation="CREATE", old=None, **more):
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": UID, "operation": operation, "name": "checkout", "namespace": "shop",
        "kind": {"group": "alertscaler.io", "version": "v1alpha1", "kind": "ScalingPolicy"},
        "object": item, "oldObject": old, **more}}


def in_shop(policy):
    policy = copy.deepcopy(policy)
    policy["metadata"]["namespace"] = "shop"
    return policy


GOOD = in_shop(POLICY)
WRONG = in_shop(change("spec", "rules", 0, "match", to=["alertname=~\"(\""]))      # the schema cannot see it
STALE = in_shop(change("spec", "rules", 4, "scaleTo", to={"size": 30}))            # more than `max`: a warning


class Admission:
    """A daemon with the listener; its certificate is of an authority of the test."""

    def __init__(self, make_daemon, directory, cluster, **objects):
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}/admission"
        self.authority = Authority(directory / "admission-pki")
        self.certificate, self.key = self.authority.issue("admission")
        self.objects = {**OBJECTS, **objects, "admission": {
            "address": f"127.0.0.1:{self.port}", "cert_file": str(self.certificate), "key_file": str(self.key)}}
        self.config = {"objects": self.objects, "prometheus": {"url": "http://127.0.0.1:1"},
                       "clusters": {"default": {"kubeconfig": cluster.write_kubeconfig(directory / "kubeconfig")}}}
        self.daemon = make_daemon(config=self.config, rules=NOTHING)

    def send(self, body, method="POST", url=None):
        return request(method, url or self.url, body, tls=self.authority.context())

    def connect(self):
        context = self.authority.context()
        return context.wrap_socket(socket.create_connection(("127.0.0.1", self.port), timeout=30), server_hostname="localhost")


@pytest.fixture
def admission(make_daemon, tmp_path):
    cluster = SlowCluster()         # without policies
    yield Admission(make_daemon, tmp_path, cluster)
    cluster.stop()


# The answers, without an API server.


def test_it_answers_a_review(admission):
    answer = admission.send(review(GOOD))
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/json"
    assert answer.json == {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": UID, "allowed": True}}
    answer = admission.send(review(WRONG)).json["response"]
    assert not answer["allowed"] and answer["uid"] == UID
    assert answer["status"]["code"] == 422 and answer["status"]["reason"] == "Invalid"
    assert answer["status"]["message"].startswith("spec.rules[0].match[0]: ")
    assert admission.send(review(STALE)).json["response"]["warnings"][0].startswith("spec.rules[4].scaleTo.size: 30 is above `max`")


def test_it_says_the_words_of_check(admission, tmp_path):
    said = admission.send(review(WRONG)).json["response"]["status"]["details"]["causes"]
    file = tmp_path / "policy.yaml"
    file.write_text(json.dumps(WRONG))
    checked = subprocess.run([find_binary(), "check", str(file)], capture_output=True, text=True, check=False)
    assert said and all(cause["message"] in checked.stdout + checked.stderr for cause in said), checked.stderr


@pytest.mark.parametrize("method, path, status, text", [
    ("GET", "/admission", 405, "send an AdmissionReview with POST"),
    ("PUT", "/admission", 405, "send an AdmissionReview with POST"),
    ("GET", "/", 404, "this listener has only /admission"),
    ("POST", "/webhook", 404, "this listener has only /admission"),
    ("GET", "/metrics", 404, "this listener has only /admission"),
    ("POST", "/-/reload", 404, "this listener has only /admission"),
    ("POST", "/admission/", 404, "this listener has only /admission"),
])
def test_it_answers_nothing_else(admission, method, path, status, text):
    url = admission.url.removesuffix("/admission") + path
    answer = admission.send({} if method in ("POST", "PUT") else None, method, url)
    assert (answer.status, text in answer.text) == (status, True), answer.text
    assert answer.headers.get("Allow") == ("POST" if status == 405 else None)


@pytest.mark.parametrize("body, text", [
    (b"", "not JSON"),
    (b"\0" * 100, "not JSON"),
    (b"{" * 3000, "not JSON"),
    (b'{"a":' * 3000 + b"1" + b"}" * 3000, "not JSON"),
    (b"[" + b"0," * 1_500_000 + b"0]", "too many values"),
    (os.urandom(3 * 1024 * 1024), "not JSON"),
    (b'"' + b"a" * (3 * 1024 * 1024 - 2) + b'"', "not JSON"),
    ({"apiVersion": "v1", "kind": "Pod"}, "expected an AdmissionReview"),
    ({**review(GOOD), "apiVersion": "admission.k8s.io/v1beta1"}, "found `AdmissionReview` of `admission.k8s.io/v1beta1`"),
    (review(GOOD, uid=""), "`request.uid` is missing"),
    (review(GOOD, kind={"group": "apps", "version": "v1", "kind": "Deployment"}), "found `Deployment` of `apps/v1`"),
    (review(GOOD, kind={"group": "alertscaler.io", "version": "v1", "kind": "ScalingPolicy"}), "found `ScalingPolicy` of `alertscaler.io/v1`"),
    (b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","uid":"2"}}', "duplicate object key"),
    (review(None), "`request.object` is missing"),
], ids=lambda value: value.split("`")[0].strip()[:20] if isinstance(value, str) else "body")
def test_other_bodies_are_refused_at_once(admission, body, text):
    began = time.monotonic()
    answer = admission.send(body)
    assert (answer.status, text in answer.text) == (400, True), answer.text
    assert time.monotonic() - began < 30
    assert admission.send(review(GOOD)).json["response"]["allowed"]
    assert admission.daemon.metrics().sum("alertscaler_admission_reviews_total", outcome="invalid") == 1


def test_a_larger_body_is_not_read(admission):
    with admission.connect() as connection:
        connection.sendall(b"POST /admission HTTP/1.1\r\nHost: a\r\nContent-Length: 3145729\r\n\r\n")
        assert b" 413 " in connection.recv(1000)


def begin(admission, uid="slow"):
    """A connection whose request is not complete."""
    connection = admission.connect()
    connection.sendall(b"POST /admission HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{")
    return connection


def read_status(connection):
    return int(connection.recv(1000).split(b" ", 2)[1])


def test_a_slow_body_has_two_seconds(admission):
    began = time.monotonic()
    with begin(admission) as connection:
        assert read_status(connection) == 408
        assert time.monotonic() - began >= 1.9


def test_a_connection_without_a_request_has_two_seconds(admission):
    with socket.create_connection(("127.0.0.1", admission.port), timeout=30) as silent:
        assert silent.recv(1) == b""


def test_slow_bodies_keep_nobody_away(admission):
    """Eight at a time: the ninth takes the place of the one that began first."""
    connections = [begin(admission)]
    time.sleep(0.3)     # the daemon has read it before the others, and all before the ninth
    connections += [begin(admission) for _ in range(7)]
    time.sleep(0.3)
    assert admission.send(review(GOOD)).json["response"]["allowed"]
    assert read_status(connections[0]) == 503
    connections[1].setblocking(False)
    with pytest.raises(ssl.SSLWantReadError):
        connections[1].recv(1)
    connections[1].setblocking(True)
    rest = json.dumps(review(GOOD)).encode()
    assert len(rest) > 1000
    for connection in connections[1:]:
        assert read_status(connection) == 408
    for connection in connections:
        connection.close()


def test_many_requests_at_once_are_all_answered(admission):
    """Only slow senders are too many: requests that have arrived are answered one after the other."""
    context = admission.authority.context()
    body = review(GOOD)
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        answers = list(pool.map(lambda _: request("POST", admission.url, body, tls=context), range(200)))
    assert {answer.status for answer in answers} == {200}
    assert admission.daemon.metrics().sum("alertscaler_admission_reviews_total", outcome="allowed") == 200


def test_plain_http_is_refused(admission):
    answer = request("POST", admission.url.replace("https", "http"), review(GOOD))
    assert (answer.status, "this is an HTTPS port" in answer.text) == (400, True), answer.text


def test_the_limits_of_the_administrator_hold(admission):
    """After a reload too."""
    admission.daemon.write_config({**admission.config, "objects": {**admission.objects, "max_size": 10}})
    admission.daemon.reload()
    eventually(lambda: not admission.send(review(GOOD)).json["response"]["allowed"])
    said = admission.send(review(GOOD)).json["response"]["status"]["message"]
    assert said.startswith("spec.target.max: 20 is above 10, the largest size that the administrator allows")


def test_the_configuration_in_force_judges(admission):
    guarded = in_shop(POLICY)
    guarded["spec"]["rules"][0].pop("guard")
    assert not admission.send(review(guarded)).json["response"]["allowed"]
    admission.daemon.write_config({**admission.config, "receiver": {"watchdog": {"match": ['alertname="Watchdog"'], "within": "5m"}}})
    admission.daemon.reload()
    eventually(lambda: admission.send(review(guarded)).json["response"]["allowed"])


def test_another_address_needs_a_restart(admission):
    objects = copy.deepcopy(admission.objects)
    objects["admission"]["address"] = f"127.0.0.1:{free_port()}"
    admission.daemon.write_config({**admission.config, "objects": objects})
    admission.daemon.reload()
    eventually(lambda: "changes of objects.admission.address take effect at the next start" in admission.daemon.process.log_text())
    assert admission.send(review(GOOD)).json["response"]["allowed"]
    time.sleep(2.5)
    assert admission.daemon.process.log_text().count("changes of objects.admission.address") == 1
    admission.daemon.restart()
    with pytest.raises(OSError):
        admission.send(review(GOOD))
    assert admission.send(review(GOOD), url=f"https://{objects['admission']['address']}/admission").json["response"]["allowed"]


def test_an_address_in_use_stops_the_start(make_daemon, tmp_path, admission):
    second = make_daemon(config=admission.config, rules=NOTHING, name="second", start=False)
    second.process.start()
    assert second.process.popen.wait(60) == 1
    assert "objects.admission.address: " in second.process.log_text()


def served(admission):
    return ssl.get_server_certificate(("127.0.0.1", admission.port))


def test_changed_files_are_served(admission):
    """cert-manager renews the content of the files."""
    before = served(admission)
    certificate, key = admission.authority.issue("renewed")
    replace(admission.certificate, certificate.read_text())
    replace(admission.key, key.read_text())
    eventually(lambda: served(admission) != before)
    assert admission.send(review(GOOD)).json["response"]["allowed"]


EXPIRY = "alertscaler_admission_certificate_expiration_timestamp_seconds"


def read_expiry(pem):
    end = subprocess.run(["openssl", "x509", "-noout", "-enddate"], input=pem, capture_output=True, text=True, check=True).stdout
    return ssl.cert_time_to_seconds(end.strip().removeprefix("notAfter="))


def test_the_end_of_the_certificate_is_a_metric(admission):
    eventually(lambda: admission.daemon.metrics().sum(EXPIRY) == read_expiry(admission.certificate.read_text()))
    certificate, key = admission.authority.issue("later", days=77)
    replace(admission.certificate, certificate.read_text())
    replace(admission.key, key.read_text())

    def is_served():        # changed files are read for a new connection
        assert admission.send(review(GOOD)).json["response"]["allowed"]
        return admission.daemon.metrics().sum(EXPIRY) == read_expiry(certificate.read_text())
    eventually(is_served)


def test_other_files_are_served_after_a_reload(admission):
    before = served(admission)
    admission.authority.issue("other")
    objects = copy.deepcopy(admission.objects)
    objects["admission"] |= {"cert_file": str(admission.authority.directory / "other.crt"), "key_file": str(admission.authority.directory / "none.key")}
    admission.daemon.write_config({**admission.config, "objects": objects})
    admission.daemon.reload()
    eventually(lambda: "the changed certificate cannot be used, going on with the old one" in admission.daemon.process.log_text())
    assert served(admission) == before
    objects["admission"]["key_file"] = str(admission.authority.directory / "other.key")
    admission.daemon.write_config({**admission.config, "objects": objects})
    admission.daemon.reload()
    eventually(lambda: served(admission) != before)
    assert admission.send(review(GOOD)).json["response"]["allowed"]


# With a real API server.


def configure(control_plane, url, authority, namespace, policy="Fail"):
    bundle = {"caBundle": base64.b64encode(authority.certificate.read_bytes()).decode()} if authority else {}
    control_plane.kubectl("apply", "-f", "-", stdin={
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": NAME},
        "webhooks": [{
            "name": WEBHOOK, "clientConfig": {"url": url, **bundle}, "failurePolicy": policy,
            "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 10,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "rules": [{"apiGroups": ["alertscaler.io"], "apiVersions": ["v1alpha1"], "operations": ["CREATE", "UPDATE"],
                       "resources": ["scalingpolicies"]}]}]})


@pytest.fixture
def webhook(control_plane, definition, namespace):      # noqa: F811
    """webhook(url, authority): the API server asks at this address, about the policies of the test's namespace."""
    yield lambda url, authority=None, **more: configure(control_plane, url, authority, namespace, **more)
    control_plane.kubectl("delete", "validatingwebhookconfiguration", NAME, "--ignore-not-found")


def bare(policy):
    policy = copy.deepcopy(policy)
    policy["metadata"].pop("namespace", None)
    return policy


@pytest.fixture
def asked(admission, webhook, apply):       # noqa: F811
    """The daemon judges: apply(policy, ...) of kubectl."""
    webhook(admission.url, admission.authority)
    eventually(lambda: apply(bare(WRONG), "--dry-run=server").returncode != 0, what="the API server asks")
    return apply


@pytest.mark.kubernetes
@pytest.mark.since(25, "the API server checks rules of CustomResourceDefinitions")
class TestKubernetes:
    def test_kubectl_says_what_is_wrong(self, asked):
        done = asked(bare(GOOD))
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        done = asked(bare(WRONG))
        assert done.returncode != 0
        assert 'The ScalingPolicy "checkout" is invalid: spec.rules[0].match[0]: ' in done.stderr, done.stderr
        assert "missing closing parenthesis" in done.stderr

    def test_a_dry_run_says_it_too(self, asked):
        assert asked(bare(GOOD), "--dry-run=server").returncode == 0
        done = asked(bare(WRONG), "--dry-run=server", "--server-side")
        assert done.returncode != 0 and "spec.rules[0].match[0]: " in done.stderr

    def test_the_api_says_it(self, asked, control_plane, namespace):
        path = f"/apis/alertscaler.io/v1alpha1/namespaces/{namespace}/scalingpolicies"
        answer = control_plane.admin.request("POST", path, bare(WRONG))
        assert answer.status == 422 and answer.json["reason"] == "Invalid"
        assert answer.json["message"].startswith(f'admission webhook "{WEBHOOK}" denied the request: spec.rules[0].match[0]: ')

    def test_warnings_arrive(self, asked):
        done = asked(bare(STALE))
        assert done.returncode == 0
        assert "Warning: spec.rules[4].scaleTo.size: 30 is above `max`" in done.stderr

    def test_an_old_policy_can_be_labelled_and_deleted(self, apply, webhook, admission, control_plane, namespace):     # noqa: F811
        """It was accepted before the webhook was there."""
        assert apply(bare(WRONG)).returncode == 0
        webhook(admission.url, admission.authority)
        kubectl = control_plane.kubectl
        spec = {"spec": {"target": {"max": 30}}}
        eventually(lambda: kubectl("patch", "scp", "checkout", "-n", namespace, "--type=merge", "-p", json.dumps(spec),
                                   "--dry-run=server", check=False).returncode != 0, what="the API server asks")
        assert kubectl("label", "scp", "checkout", "-n", namespace, "team=shop", check=False).returncode == 0
        assert kubectl("annotate", "scp", "checkout", "-n", namespace, "alertscaler.io/paused=incident", check=False).returncode == 0
        kubectl("patch", "scp", "checkout", "-n", namespace, "--type=merge", "-p", json.dumps({"metadata": {"finalizers": ["a.example/b"]}}))
        kubectl("delete", "scp", "checkout", "-n", namespace, "--wait=false")
        kubectl("patch", "scp", "checkout", "-n", namespace, "--type=merge", "-p", json.dumps({"metadata": {"finalizers": []}}))
        control_plane.admin.wait_gone(f"/apis/alertscaler.io/v1alpha1/namespaces/{namespace}/scalingpolicies/checkout")

    def test_without_the_daemon(self, asked, webhook, admission):
        """`failurePolicy: Ignore`: policies are accepted, and judged when they are read."""
        admission.daemon.stop()
        done = asked(bare(GOOD))
        assert done.returncode != 0 and f'failed calling webhook "{WEBHOOK}"' in done.stderr
        webhook(admission.url, admission.authority, policy="Ignore")
        eventually(lambda: asked(bare(WRONG)).returncode == 0)


# The certificate that the leader makes.

SECRET_RULES = [{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["alertscaler-admission"], "verbs": ["get", "create", "patch"]},
                {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]},
                {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "create", "update"]}]
HOOK_RULES = [{"apiGroups": ["admissionregistration.k8s.io"], "resources": ["validatingwebhookconfigurations"],
               "resourceNames": [NAME], "verbs": ["get", "patch"]},
              {"apiGroups": ["alertscaler.io"], "resources": ["scalingpolicies"], "verbs": ["get", "list", "watch"]},
              {"apiGroups": ["alertscaler.io"], "resources": ["scalingpolicies/status"], "verbs": ["patch"]}]


class Replica:
    def __init__(self, make_daemon, kubeconfig, namespace, name):
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}/admission"
        self.daemon = make_daemon(name=name, start=False, rules=NOTHING, env={"POD_NAME": name}, config={
            "clusters": {"default": {"kubeconfig": str(kubeconfig)}},
            "state": {"store": "kubernetes", "namespace": namespace, "lease": {
                "duration": "15s", "renew_deadline": "10s", "retry_period": "500ms"}},
            "prometheus": {"url": "http://127.0.0.1:1"},
            "objects": {**OBJECTS, "admission": {"address": f"127.0.0.1:{self.port}"}}})

    def start(self):
        self.daemon.process.start()
        eventually(lambda: self.daemon.get("/-/healthy").ok)
        return self

    def served(self):
        return ssl.get_server_certificate(("127.0.0.1", self.port))


@pytest.fixture
def make_replica(make_daemon, control_plane, definition, namespace):        # noqa: F811
    """Replicas with the rights of the guide and no others."""
    plane = control_plane
    plane.create_account(namespace, NAME)
    plane.grant(namespace, NAME, SECRET_RULES)
    plane.grant(namespace, NAME, HOOK_RULES, cluster_wide=True)
    yield lambda name: Replica(make_daemon, plane.write_kubeconfig(name, token=plane.account_token(namespace, NAME)), namespace, name)
    for kind in ("clusterrole", "clusterrolebinding"):
        plane.kubectl("delete", kind, f"{namespace}-{NAME}")


def secret_of(control_plane, namespace):
    answer = control_plane.admin.request("GET", f"/api/v1/namespaces/{namespace}/secrets/alertscaler-admission")
    return {key: base64.b64decode(value).decode() for key, value in answer.json["data"].items()} if answer.ok else None


@pytest.mark.kubernetes
@pytest.mark.since(25, "the API server checks rules of CustomResourceDefinitions")
class TestCertificate:
    def test_the_leader_makes_it_and_all_replicas_use_it(self, make_replica, webhook, apply, control_plane, namespace):     # noqa: F811
        first = make_replica("first").start()
        webhook(first.url)
        eventually(lambda: "spec.rules[0].match[0]: " in apply(bare(WRONG)).stderr, what="the API server trusts the leader")
        assert apply(bare(GOOD)).returncode == 0
        secret = secret_of(control_plane, namespace)
        assert secret.keys() == {"ca.crt", "tls.crt", "tls.key"} and first.served() == secret["tls.crt"]
        second = make_replica("second").start()
        eventually(lambda: second.served() == secret["tls.crt"], what="the follower reads the Secret")
        assert second.daemon.get("/-/ready").status == 503
        webhook(second.url)
        eventually(lambda: "spec.rules[0].match[0]: " in apply(bare(WRONG)).stderr, what="the API server trusts the follower")
        assert secret_of(control_plane, namespace) == secret
        for replica in (first, second):
            assert "PRIVATE KEY" not in replica.daemon.process.log_text()
            assert secret["tls.key"].splitlines()[1] not in replica.daemon.process.log_text()
        state = control_plane.admin.request("GET", f"/api/v1/namespaces/{namespace}/configmaps").text
        assert secret["tls.key"].splitlines()[1] not in state

    def test_another_leader_goes_on_with_it(self, make_replica, webhook, apply, control_plane, namespace):      # noqa: F811
        first, second = make_replica("first").start(), make_replica("second")
        webhook(first.url)
        eventually(lambda: "spec.rules[0].match[0]: " in apply(bare(WRONG)).stderr)
        secret = secret_of(control_plane, namespace)
        first.daemon.kill()
        second.start()
        webhook(second.url)     # without caBundle again, as a deployment may write it
        control_plane.kubectl("patch", "validatingwebhookconfiguration", NAME, "--type=json", "-p",
                              '[{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": ""}]')
        eventually(lambda: "spec.rules[0].match[0]: " in apply(bare(WRONG)).stderr, timeout=150, what="the new leader writes caBundle")
        assert secret_of(control_plane, namespace) == secret

    def test_an_expired_certificate_is_replaced(self, make_replica, webhook, apply, control_plane, namespace, tmp_path):    # noqa: F811
        old = Authority(tmp_path / "old-pki")
        certificate, key = old.issue("old", days=0)
        control_plane.kubectl("create", "secret", "generic", "alertscaler-admission", "-n", namespace, "--type=kubernetes.io/tls",
                              f"--from-file=tls.crt={certificate}", f"--from-file=tls.key={key}", f"--from-file=ca.crt={old.certificate}")
        replica = make_replica("first").start()
        webhook(replica.url, old)
        eventually(lambda: "spec.rules[0].match[0]: " in apply(bare(WRONG)).stderr, what="a new certificate")
        secret = secret_of(control_plane, namespace)
        assert secret["tls.crt"] != certificate.read_text() and secret["ca.crt"] != old.certificate.read_text()
        assert replica.served() == secret["tls.crt"]

    def test_all_replicas_serve_the_renewed_certificate(self, make_replica, webhook, apply, control_plane, namespace, tmp_path):    # noqa: F811
        """It expires while both run. Until the leader has renewed it, both serve the one that they have."""
        first = make_replica("first").start()
        webhook(first.url)
        eventually(lambda: secret_of(control_plane, namespace), what="the first certificate")
        second = make_replica("second").start()
        before = secret_of(control_plane, namespace)
        eventually(lambda: first.served() == second.served() == before["tls.crt"])
        old = Authority(tmp_path / "old-pki")
        certificate, key = old.issue("old", days=0)
        data = {"ca.crt": old.certificate, "tls.crt": certificate, "tls.key": key}
        control_plane.admin.patch(f"/api/v1/namespaces/{namespace}/secrets/alertscaler-admission", {
            "data": {name: base64.b64encode(file.read_bytes()).decode() for name, file in data.items()}})

        def is_renewed():
            secret = secret_of(control_plane, namespace)["tls.crt"]
            return secret not in (before["tls.crt"], certificate.read_text()) and first.served() == second.served() == secret
        eventually(is_renewed, timeout=150, what="both replicas serve the renewed certificate")
        after = secret_of(control_plane, namespace)
        for replica in (first, second):
            eventually(lambda which=replica: which.daemon.metrics().sum(EXPIRY) == read_expiry(after["tls.crt"]))
            assert read_expiry(after["tls.crt"]) > time.time() + 300 * 86400
            webhook(replica.url)
            eventually(lambda: "spec.rules[0].match[0]: " in apply(bare(WRONG)).stderr, timeout=150, what="the API server trusts it")
        logs = [replica.daemon.process.log_text().count("the admission webhook has a new certificate") for replica in (first, second)]
        assert logs == [2, 0], "the leader alone makes certificates"

    def test_another_address_gets_another_certificate(self, make_replica, webhook, apply, control_plane, namespace):    # noqa: F811
        """Both authorities are trusted: a replica may have the old certificate for a minute."""
        replica = make_replica("first").start()
        webhook(replica.url)
        eventually(lambda: "spec.rules[0].match[0]: " in apply(bare(WRONG)).stderr)
        before = secret_of(control_plane, namespace)
        webhook(replica.url.replace("127.0.0.1", "localhost"))
        eventually(lambda: "spec.rules[0].match[0]: " in apply(bare(WRONG)).stderr, timeout=150)
        after = secret_of(control_plane, namespace)
        assert after["tls.crt"] != before["tls.crt"]
        assert after["ca.crt"].endswith(before["ca.crt"]) and after["ca.crt"].count("BEGIN CERTIFICATE") == 2

    def test_without_the_rights_it_says_so(self, make_daemon, control_plane, definition, namespace):        # noqa: F811
        control_plane.create_account(namespace, NAME)
        control_plane.grant(namespace, NAME, SECRET_RULES[1:])
        kubeconfig = control_plane.write_kubeconfig("poor", token=control_plane.account_token(namespace, NAME))
        replica = Replica(make_daemon, kubeconfig, namespace, "poor").start()
        eventually(lambda: "the certificate of the admission webhook cannot be made or renewed" in replica.daemon.process.log_text())
        assert "reading the Secret alertscaler-admission: HTTP 403" in replica.daemon.process.log_text()
        time.sleep(11)
        assert replica.daemon.process.log_text().count("cannot be made or renewed") == 1


def test_without_files_it_needs_a_cluster(make_daemon):
    daemon = make_daemon(rules=NOTHING, start=False, config={"objects": {**OBJECTS, "admission": {"address": "127.0.0.1:0"}}})
    daemon.process.start()
    assert daemon.process.popen.wait(60) == 1
    assert "objects.admission: without cert_file and key_file, the certificate is in the cluster: " in daemon.process.log_text()
