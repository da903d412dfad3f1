"""The admission webhook: what it answers to a real API server, and to everybody else."""
import base64
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
from harness.wait import eventually
from test_policies import POLICY, apply, change, definition  # noqa: F401

NAME = "alertscaler"
WEBHOOK = "scalingpolicies.alertscaler.io"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
NOTHING = {"targets": {}, "rules": []}
OBJECTS = {"enabled": True, "unrestricted_queries": True}


def review(item, operation="CREATE", old=None, **more):
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "operation": operation, "name": "checkout", "namespace": "shop",
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

    def __init__(self, make_daemon, directory, **objects):
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}/admission"
        self.authority = Authority(directory / "admission-pki")
        self.certificate, self.key = self.authority.issue("admission")
        self.objects = {**OBJECTS, **objects, "admission": {
            "address": f"127.0.0.1:{self.port}", "cert_file": str(self.certificate), "key_file": str(self.key)}}
        self.daemon = make_daemon(config={"objects": self.objects, "prometheus": {"url": "http://127.0.0.1:1"},
                                          "rule_files": ["rules/*.yaml"]}, rules=NOTHING)

    def send(self, body, method="POST", url=None):
        return request(method, url or self.url, body, tls=self.authority.context())

    def connect(self):
        context = self.authority.context()
        return context.wrap_socket(socket.create_connection(("127.0.0.1", self.port), timeout=30), server_hostname="localhost")


@pytest.fixture
def admission(make_daemon, tmp_path):
    return Admission(make_daemon, tmp_path)


def test_it_answers_a_review(admission):
    answer = admission.send(review(GOOD))
    assert answer.status == 200, answer.text
    assert answer.json["response"]["allowed"] is True, answer.text
    answer = admission.send(review(WRONG))
    assert answer.json["response"]["allowed"] is False, answer.text
    assert "spec.rules[0].match" in answer.json["response"]["status"]["message"]


def test_print(admission):
    for p in (GOOD, WRONG, STALE):
        print(admission.send(review(p)).text)
    assert 0
