"""A real Kubernetes control plane on loopback: etcd, kube-apiserver with RBAC, kube-controller-manager.

The programs of Kubernetes come from tests/integration/peers; $KUBERNETES says which of them: `kubernetes`, the newest,
unless it is `kubernetes-oldest`. There are no kubelets (see kubelets.py), and a scheduler only where a test starts one. Every part can be stopped, paused and started again: `control_plane.apiserver.pause()`.
"""
import functools
import json
import os
import pathlib
import platform
import shutil
import subprocess

import yaml

from . import peers
from .certificates import Authority, write_key_pair
from .files import replace
from .http import request
from .kube import KubeClient
from .ports import free_port
from .process import Process
from .wait import eventually

PEER = os.environ.get("KUBERNETES", "kubernetes")
ADMIN_TOKEN = "admin-token"

# A line for each read of pods by a service account.
AUDIT_POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["ResponseStarted", "ResponseComplete"], "rules": [
    {"level": "Metadata", "userGroups": ["system:serviceaccounts"], "verbs": ["list", "watch"],
     "resources": [{"group": "", "resources": ["pods"]}]},
    {"level": "None"}]}

# Those that the tests need, by the names that old and new versions know. Others would fight the tests, as they need kubelets,
# or only take time.
CONTROLLERS = ["daemonset", "deployment", "disruption", "garbagecollector", "job", "namespace", "replicaset",
               "replicationcontroller", "root-ca-cert-publisher", "serviceaccount", "serviceaccount-token", "statefulset"]


def missing():
    """Why there can be no control plane on this machine; None when there can."""
    if shutil.which("etcd") is None:
        return "etcd is not installed: run tests/install"
    return None if peers.find(PEER) else peers.how_to_build(PEER)


@functools.cache
def read_minor():
    """The 37 of Kubernetes 1.37."""
    words = subprocess.run([peers.find(PEER) / "kube-apiserver", "--version"], capture_output=True, text=True, check=True)
    return int(words.stdout.split(".")[1])


class ControlPlane:
    def __init__(self, directory, programs=None):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.programs = programs or peers.find(PEER)
        self.minor = read_minor()
        self.authority = Authority(self.directory / "pki")
        self.url = f"https://127.0.0.1:{free_port()}"
        self.admin = self.client(ADMIN_TOKEN)
        self.etcd = self._prepare_etcd()
        self.apiserver = self._prepare_apiserver()
        self.controller_manager = self._prepare_controller_manager()

    # Starting and stopping

    def start(self):
        self.start_etcd()
        self.start_apiserver()
        self.controller_manager.start()
        self.controller_manager.wait_ready(lambda: self.has_account("default"), timeout=120)
        return self

    def start_etcd(self):
        self.etcd.start().wait_ready(lambda: request("GET", self.etcd_url + "/health").json["health"] == "true")

    def start_apiserver(self):
        self.apiserver.start().wait_ready(lambda: self.admin.request("GET", "/readyz").ok, timeout=120)

    def stop(self):
        """At once: nothing of it is looked at any more, and controller managers take long to end by themselves."""
        for process in (self.controller_manager, self.apiserver, self.etcd):
            process.kill()

    def ensure_running(self):
        """Brings back what a test stopped or paused."""
        for process in (self.etcd, self.apiserver, self.controller_manager):
            process.resume()
        if not self.etcd.running:
            self.start_etcd()
        if not self.apiserver.running:
            self.start_apiserver()
        if not self.controller_manager.running:
            self.controller_manager.start()
        eventually(lambda: self.admin.request("GET", "/readyz", timeout=2).ok, what="the API server is ready")

    def compact(self):
        """Lets etcd forget all versions but the last of each object."""
        last = request("POST", self.etcd_url + "/v3/kv/range", {"key": "AA=="}).json["header"]["revision"]
        answer = request("POST", self.etcd_url + "/v3/kv/compaction", {"revision": last, "physical": True})
        assert answer.ok, answer.text

    def _prepare_etcd(self):
        self.etcd_url = f"http://127.0.0.1:{free_port()}"
        peer_url = f"http://127.0.0.1:{free_port()}"
        # etcd wants to be told that it may run on anything but amd64.
        machine = {"aarch64": "arm64", "armv7l": "arm"}.get(platform.machine())
        env = {**os.environ, "ETCD_UNSUPPORTED_ARCH": machine} if machine else None
        return Process("etcd", [
            "etcd", "--name=test", f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={self.etcd_url}", f"--advertise-client-urls={self.etcd_url}",
            f"--listen-peer-urls={peer_url}", f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=test={peer_url}",
        ], self.directory, env)

    def _prepare_apiserver(self):
        certificate, key = self.authority.issue("kube-apiserver")
        self.account_key, account_public_key = write_key_pair(self.directory / "pki", "service-accounts")
        tokens = self.directory / "tokens.csv"
        tokens.write_text(f'{ADMIN_TOKEN},admin,admin,"system:masters"\n')
        policy = self.directory / "audit-policy.json"
        policy.write_text(json.dumps(AUDIT_POLICY))
        self.audit_log = self.directory / "audit.log"
        return Process("kube-apiserver", [
            self.programs / "kube-apiserver",
            f"--etcd-servers={self.etcd_url}",
            "--bind-address=127.0.0.1", f"--secure-port={self.url.rsplit(':', 1)[1]}",
            "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
            f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}",
            f"--client-ca-file={self.authority.certificate}",
            f"--token-auth-file={tokens}", "--authorization-mode=RBAC",
            f"--service-account-key-file={account_public_key}",
            f"--service-account-signing-key-file={self.account_key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--profiling=false", f"--audit-policy-file={policy}", f"--audit-log-path={self.audit_log}",
        ], self.directory)

    def _prepare_controller_manager(self):
        return self.prepare_controller_manager("kube-controller-manager", CONTROLLERS)

    def prepare_controller_manager(self, name, controllers, *flags):
        """A controller manager, not started, that runs these controllers. There may be several, with different controllers."""
        kubeconfig = self.write_kubeconfig(name, token=ADMIN_TOKEN)
        return Process(name, [
            self.programs / "kube-controller-manager",
            f"--kubeconfig={kubeconfig}",
            f"--service-account-private-key-file={self.account_key}",
            f"--root-ca-file={self.authority.certificate}",
            f"--controllers={','.join(controllers)}",
            "--leader-elect=false", "--secure-port=0", *(["--port=0"] if self.minor < 24 else []),
            "--kube-api-qps=500", "--kube-api-burst=500", *flags,
        ], self.directory)

    def prepare_scheduler(self):
        """The scheduler, not started."""
        kubeconfig = self.write_kubeconfig("kube-scheduler", token=ADMIN_TOKEN)
        return Process("kube-scheduler", [
            self.programs / "kube-scheduler", f"--kubeconfig={kubeconfig}", "--leader-elect=false",
            "--secure-port=0", *(["--port=0"] if self.minor < 23 else []), "--kube-api-qps=1000", "--kube-api-burst=1000",
        ], self.directory)

    # What differs between versions

    @property
    def policy_version(self):
        return "policy/v1" if self.minor >= 21 else "policy/v1beta1"

    def has_account(self, namespace):
        """Whether pods can be created in a new namespace: its account is the last of what it gets, before 1.24 with a token."""
        account = self.admin.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
        return self.minor >= 24 or bool(account.get("secrets"))

    # Users

    def client(self, token=None):
        return KubeClient(self.url, self.authority.context(), token)

    def create_account(self, namespace, name):
        """A service account."""
        self.admin.create({"apiVersion": "v1", "kind": "ServiceAccount",
                           "metadata": {"namespace": namespace, "name": name}})

    def account_token(self, namespace, name, seconds=3600):
        """A bound token of a service account, as kubelets get them."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                "spec": {"expirationSeconds": seconds}}
        return self.admin.post(path, body)["status"]["token"]

    def grant(self, namespace, account, rules, cluster_wide=False):
        """Binds a role with these RBAC rules to a service account, in its namespace or everywhere."""
        prefix = "Cluster" if cluster_wide else ""
        name = f"{namespace}-{account}"
        metadata = {"name": name} if cluster_wide else {"name": name, "namespace": namespace}
        api = "rbac.authorization.k8s.io/v1"
        self.admin.create({"apiVersion": api, "kind": f"{prefix}Role", "metadata": metadata, "rules": rules})
        self.admin.create({
            "apiVersion": api, "kind": f"{prefix}RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": f"{prefix}Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": account}],
        })
        self.wait_allowed(f"system:serviceaccount:{namespace}:{account}", rules, None if cluster_wide else namespace)

    def wait_allowed(self, user, rules, namespace=None):
        """Until the API server lets a user do what these RBAC rules say: it hears of roles and bindings a little later."""

        def is_allowed(group, resource, verb):
            resource, _, subresource = resource.partition("/")
            attributes = {"group": group, "resource": resource, "subresource": subresource, "verb": verb,
                          **({"namespace": namespace} if namespace else {})}
            review = self.admin.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", {
                "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                "spec": {"user": user, "resourceAttributes": attributes}})
            return review["status"]["allowed"]

        wanted = [(group, resource, verb) for rule in rules if not rule.get("resourceNames")
                  for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]]
        eventually(lambda: all(is_allowed(*one) for one in wanted), what=f"the rights of {user}")

    def write_kubeconfig(self, name, **user):
        """A kubeconfig file for one user: token=..., tokenFile=..., exec={...}, or client_certificate=(file, file)."""
        if "client_certificate" in user:
            certificate, key = user.pop("client_certificate")
            user |= {"client-certificate": str(certificate), "client-key": str(key)}
        cluster = {"server": self.url, "certificate-authority": str(self.authority.certificate)}
        path = self.directory / f"{name}.kubeconfig"
        replace(path, yaml.safe_dump({      # others may be reading it
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}],
        }))
        return path

    def kubectl(self, *arguments, check=True, stdin=None):
        """kubectl of the same version, as the administrator."""
        kubeconfig = self.write_kubeconfig("kubectl", token=ADMIN_TOKEN)
        stdin = json.dumps(stdin) if stdin is not None and not isinstance(stdin, str) else stdin
        return subprocess.run(
            [self.programs / "kubectl", f"--kubeconfig={kubeconfig}", f"--cache-dir={self.directory / 'kubectl'}",
             *arguments],
            check=check, input=stdin, text=True, capture_output=True, timeout=60)
