"""What is shipped under deploy/."""
import yaml

from .daemon import ROOT
from .kube import KubeError

MANIFESTS = ROOT / "deploy/kubernetes"


def install(plane, *files):
    """Creates what is in these manifests, where it is not there yet; the rights in them are in force."""
    items = [item for file in files for item in yaml.safe_load_all((MANIFESTS / file).read_text())]
    for item in items:
        if item["kind"] == "ServiceAccount":
            item["metadata"]["namespace"] = "alertscaler"
        try:
            plane.admin.create(item)
        except KubeError as error:
            if error.status != 409:
                raise
    for item in items:
        if item["kind"] in ("Role", "ClusterRole"):
            plane.wait_allowed("system:serviceaccount:alertscaler:alertscaler", item["rules"], item["metadata"].get("namespace"))
