"""The metrics APIs of Kubernetes, as an adapter and metrics-server serve them, from a table that a test has.

They are registered with the API server's aggregation layer: three APIServices lead to a Service that names this machine.
The HPA controller asks the API server, and the API server asks here, over TLS.
"""
import base64
import datetime
import urllib.parse

from .http import Server
from .wait import eventually

CUSTOM, EXTERNAL, RESOURCE = "custom.metrics.k8s.io/v1beta2", "external.metrics.k8s.io/v1beta1", "metrics.k8s.io/v1beta1"
REGISTRATION = "apiregistration.k8s.io/v1"


class Table:
    """A test overrides what it needs. Numbers are quantities: "150", "450m", "64Mi"."""

    def pods(self, namespace, metric, selector):
        """A metric of single pods: {pod: quantity}."""
        return {}

    def object(self, namespace, resource, name, metric):
        """A metric of one object ("services", "web"): a quantity, or None."""
        return None

    def external(self, namespace, metric):
        """An external metric: a list of quantities, one for each series."""
        return []

    def usage(self, namespace, selector):
        """What pods use: {pod: Usage}."""
        return {}


class Usage:
    """containers: {name: {"cpu": quantity, "memory": quantity}}, measured `ago` seconds ago, over `window` seconds."""

    def __init__(self, containers, ago=0, window=0):
        self.containers = containers
        self.ago = ago
        self.window = window


def _time(ago=0):
    moment = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=ago)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


class MetricsApis:
    def __init__(self, plane, namespace, table):
        self.admin = plane.admin
        self.namespace = namespace
        self.table = table
        self.service = "metrics"
        tls = plane.authority.issue("metrics-apis", alternative_names=f"DNS:{self.service}.{namespace}.svc")
        self.authority = base64.b64encode(plane.authority.certificate.read_bytes()).decode()
        self.server = Server(self._answer, tls)

    def start(self):
        self.admin.create({"apiVersion": "v1", "kind": "Service",
                           "metadata": {"namespace": self.namespace, "name": self.service},
                           "spec": {"type": "ExternalName", "externalName": "localhost"}})
        for group_version in (CUSTOM, EXTERNAL, RESOURCE):
            self._register(group_version)
        for group_version in (CUSTOM, EXTERNAL, RESOURCE):
            eventually(lambda: self._is_available(group_version), what=f"{group_version} is available")
        return self

    def stop(self):
        """First the registrations go, then the server: no namespace can be deleted while a registered API does not answer."""
        for group_version in (CUSTOM, EXTERNAL, RESOURCE):
            self.admin.request("DELETE", self._path(group_version))
        eventually(lambda: not any(self._is_served(one) for one in (CUSTOM, EXTERNAL, RESOURCE)), what="the APIs are gone")
        self.server.stop()

    # Registration

    @staticmethod
    def _path(group_version):
        group, version = group_version.split("/")
        return f"/apis/{REGISTRATION}/apiservices/{version}.{group}"

    def _register(self, group_version):
        group, version = group_version.split("/")
        self.admin.post(f"/apis/{REGISTRATION}/apiservices", {
            "apiVersion": REGISTRATION, "kind": "APIService", "metadata": {"name": f"{version}.{group}"},
            "spec": {"group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 100,
                     "caBundle": self.authority,
                     "service": {"namespace": self.namespace, "name": self.service,
                                 "port": int(self.server.url.rsplit(":", 1)[1])}}})

    def _is_available(self, group_version):
        conditions = self.admin.get(self._path(group_version)).get("status", {}).get("conditions", [])
        return any(c["type"] == "Available" and c["status"] == "True" for c in conditions) and self._is_served(group_version)

    def _is_served(self, group_version):
        groups = self.admin.get("/apis")["groups"]
        return any(v["groupVersion"] == group_version for group in groups for v in group["versions"])

    # Answers

    def _answer(self, asked):
        url = urllib.parse.urlsplit(asked.path)
        parts = [urllib.parse.unquote(part) for part in url.path.strip("/").split("/")]
        selector = dict(urllib.parse.parse_qsl(url.query)).get("labelSelector", "")
        api = "/".join(parts[1:3])
        if parts[0] != "apis" or api not in (CUSTOM, EXTERNAL, RESOURCE):
            return 404, {}, b""
        if len(parts) == 3:
            return 200, {}, self._discovery(api)
        if parts[3] != "namespaces":
            return 404, {}, b""
        body = self._list(api, parts[4], parts[5:], selector)
        return (404, {}, _not_found(asked.path)) if body is None else (200, {}, body)

    @staticmethod
    def _discovery(api):
        name, kind = {CUSTOM: ("pods/*", "MetricValueList"), EXTERNAL: ("*", "ExternalMetricValueList"),
                      RESOURCE: ("pods", "PodMetrics")}[api]
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api,
                "resources": [{"name": name, "singularName": "", "namespaced": True, "kind": kind, "verbs": ["get"]}]}

    def _list(self, api, namespace, rest, selector):
        if api == RESOURCE:
            return _items(api, "PodMetricsList", [
                {"metadata": {"namespace": namespace, "name": pod}, "timestamp": _time(usage.ago), "window": f"{usage.window}s",
                 "containers": [{"name": name, "usage": use} for name, use in usage.containers.items()]}
                for pod, usage in self.table.usage(namespace, selector).items()])
        if api == EXTERNAL:
            return _items(api, "ExternalMetricValueList", [
                {"metricName": rest[0], "metricLabels": {}, "timestamp": _time(), "value": value}
                for value in self.table.external(namespace, rest[0])])
        resource, name, metric = rest
        if name == "*":
            found = self.table.pods(namespace, metric, selector)
        else:
            value = self.table.object(namespace, resource, name, metric)
            if value is None:
                return None
            found = {name: value}
        return _items(api, "MetricValueList", [
            {"describedObject": {"kind": "Pod" if name == "*" else resource, "namespace": namespace, "name": one},
             "metric": {"name": metric}, "timestamp": _time(), "windowSeconds": 0, "value": value}
            for one, value in found.items()])


def _items(api, kind, items):
    return {"kind": kind, "apiVersion": api, "metadata": {}, "items": items}


def _not_found(path):
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "NotFound", "code": 404,
            "message": f"{path}: there is no such metric"}
