"""Helm, and the chart of deploy/chart."""
import json
import subprocess

import yaml

from . import peers
from .daemon import ROOT

CHART = ROOT / "deploy/chart"
EXAMPLES = sorted((CHART / "examples").glob("*.yaml"))


def missing():
    return None if peers.find("helm") else peers.how_to_build("helm")


def run(*arguments, check=True, kubeconfig="/dev/null", home="/nonexistent"):
    """helm, with no settings of the machine; standard error apart, where it tells of links."""
    env = {"PATH": "/usr/bin:/bin", "HOME": str(home), "HELM_CACHE_HOME": f"{home}/cache",
           "HELM_CONFIG_HOME": f"{home}/config", "HELM_DATA_HOME": f"{home}/data", "KUBECONFIG": str(kubeconfig)}
    return subprocess.run([peers.find("helm") / "helm", *map(str, arguments)], env=env, capture_output=True, text=True, check=check,
                          timeout=120)


def values_of(values):
    """Flags for values as a program writes them."""
    return [flag for key, value in values.items() for flag in ("--set-json", f"{key}={json.dumps(value)}")]


def render(*arguments, name="scaler", namespace="scaling", **values):
    """{(kind, name): object} of the chart with these values."""
    text = run("template", name, CHART, "--namespace", namespace, *arguments, *values_of(values)).stdout
    return {(item["kind"], item["metadata"]["name"]): item for item in yaml.safe_load_all(text) if item}
