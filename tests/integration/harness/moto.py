"""AWS, played by moto's server, which checks signatures and permissions.

It knows no throttling, delays and conflicts, and does not hold groups to their bounds: auto_scaling.py does.
"""
import dataclasses
import datetime
import hashlib
import hmac
import json
import os
import pathlib
import re
import subprocess
import urllib.parse
import xml.etree.ElementTree

from .http import request
from .ports import free_port
from .process import Process

INSTALL = pathlib.Path(__file__).parent.parent / "install-python"
REGION = "eu-central-1"


def find_packages():
    """The folder of moto and what it needs; None where it has not been installed."""
    found = subprocess.run([INSTALL, "--path"], stdout=subprocess.PIPE, text=True, check=False)
    return found.stdout.strip() if found.returncode == 0 else None


def missing():
    return None if find_packages() else "moto is not installed: run tests/integration/install-python"


def _sign(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


@dataclasses.dataclass
class Key:
    """An access key; the requests of tests are signed here, in Python's words."""

    id: str
    secret: str
    token: str = ""

    def headers(self, method, url, body, service, content_type):
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        parts = urllib.parse.urlsplit(url)
        headers = {"content-type": content_type, "host": parts.netloc, "x-amz-date": now}
        if self.token:
            headers["x-amz-security-token"] = self.token
        names = ";".join(sorted(headers))
        canonical = "\n".join([method, parts.path, parts.query, *(f"{n}:{headers[n]}" for n in sorted(headers)), "", names,
                               hashlib.sha256(body).hexdigest()])
        scope = f"{now[:8]}/{REGION}/{service}/aws4_request"
        text = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        key = f"AWS4{self.secret}".encode()
        for part in scope.split("/"):
            key = _sign(key, part)
        headers["authorization"] = (f"AWS4-HMAC-SHA256 Credential={self.id}/{scope}, SignedHeaders={names}, "
                                    f"Signature={_sign(key, text).hex()}")
        return headers


class Moto:
    """moto's server, with an Auto Scaling group. `admin` may do everything."""

    versions = {"autoscaling": "2011-01-01", "iam": "2010-05-08", "sts": "2011-06-15", "ec2": "2016-11-15"}

    def __init__(self, directory):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = Process("moto", ["/usr/bin/python3", "-m", "moto.server", "-H", "127.0.0.1", "-p", self.port],
                               directory, {"PATH": os.environ["PATH"], "HOME": str(directory),
                                           "PYTHONPATH": find_packages()})
        self.admin = Key("AKIAADMIN", "none")

    def start(self):
        self.process.start().wait_ready(lambda: request("GET", f"{self.url}/moto-api/data.json").ok, 60)
        self.admin = self.make_user("admin", {"Version": "2012-10-17", "Statement": [
            {"Effect": "Allow", "Action": "*", "Resource": "*"}]})
        return self

    def stop(self):
        self.process.stop()

    def check_signatures(self):
        """From now on every request has to be signed by somebody who may do it."""
        answer = request("POST", f"{self.url}/moto-api/reset-auth", b"0", {"Content-Type": "text/plain"})
        assert answer.ok, answer.text

    def call(self, service, action, key=None, **parameters):
        """The answer of the query protocol, without namespaces."""
        form = {"Action": action, "Version": self.versions[service], **parameters}
        body = urllib.parse.urlencode(form, quote_via=urllib.parse.quote).encode()
        kind = "application/x-www-form-urlencoded"
        headers = (key or self.admin).headers("POST", f"{self.url}/", body, service, kind)
        answer = request("POST", f"{self.url}/", body, headers)
        assert answer.ok, answer.text
        return xml.etree.ElementTree.fromstring(re.sub(r' xmlns="[^"]*"', "", answer.text))

    def call_eks(self, method, path, body):
        """The answer of EKS, whose protocol is JSON."""
        text, kind = json.dumps(body).encode(), "application/json"
        answer = request(method, self.url + path, text, self.admin.headers(method, self.url + path, text, "eks", kind))
        assert answer.ok, answer.text
        return answer.json

    def make_user(self, name, policy):
        """A user who may do what the policy says: its access key."""
        self.call("iam", "CreateUser", UserName=name)
        self.call("iam", "PutUserPolicy", UserName=name, PolicyName="p", PolicyDocument=json.dumps(policy))
        made = self.call("iam", "CreateAccessKey", UserName=name)
        return Key(made.findtext(".//AccessKeyId"), made.findtext(".//SecretAccessKey"))

    def make_group(self, name, desired, least=1, most=10):
        image = self.call("ec2", "DescribeImages").findtext(".//imageId")
        self.call("autoscaling", "CreateLaunchConfiguration", LaunchConfigurationName=name, ImageId=image,
                  InstanceType="t3.small")
        self.call("autoscaling", "CreateAutoScalingGroup", **{
            "AutoScalingGroupName": name, "LaunchConfigurationName": name, "MinSize": least, "MaxSize": most,
            "DesiredCapacity": desired, "AvailabilityZones.member.1": f"{REGION}a"})

    def group(self, name):
        """(size, names of instances)"""
        found = self.call("autoscaling", "DescribeAutoScalingGroups", **{"AutoScalingGroupNames.member.1": name})
        return int(found.findtext(".//DesiredCapacity")), [e.text for e in found.iter("InstanceId")]
