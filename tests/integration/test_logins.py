"""Logins of http_config: `check`, `backtest` and the daemon, with a real Prometheus and a real Alertmanager behind gates that admit
only good tokens and good signatures. Token servers refuse wrong secrets, scopes that permit writes, and audiences of writers."""
import json
import os
import subprocess
import time

import pytest

from harness import alertmanager, monitoring, moto
from harness.azure import ASSERTION, CLIENT as AZURE_CLIENT, SECRET as AZURE_SECRET, TENANT, FakeAzure
from harness.daemon import dump_yaml, environment, find_binary
from harness.google_identity import Identity
from harness.http import Server, request
from harness.logins import READ, SECRET, WRITE, Gate, Signed, StsProxy, TokenServer
from harness.notification import alert, notification
from harness.prometheus import Prometheus
from harness.recorder import Recorder
from harness.wait import eventually, steadily

MISSING = monitoring.missing("prometheus", "promtool")
pytestmark = [pytest.mark.monitoring, pytest.mark.skipif(bool(MISSING), reason=str(MISSING))]

RULES = """targets:
  web:
    kubernetes: {kind: Deployment, namespace: shop, name: web}
    min: 2
    max: 20
rules:
  - name: one
    match: ['alertname="A"']
    target: web
    track: {average_value: 50, query: vector(5)}
  - name: two
    match: ['alertname="B"']
    target: web
    track: {average_value: 50, query: vector(6)}
"""
BROKEN = RULES.replace("vector(5)", "sun(x)")
READ_SCOPE = "https://www.googleapis.com/auth/monitoring.read"
IAM_SCOPE = "https://www.googleapis.com/auth/iam"
QUERIES = "https://prometheus.monitor.azure.com"
INGESTION = "https://monitor.azure.com"


@pytest.fixture(name="prometheus", scope="module")
def run_prometheus(tmp_path_factory):
    prometheus = Prometheus(tmp_path_factory.mktemp("prometheus")).start()
    yield prometheus
    prometheus.stop()


@pytest.fixture(name="tokens")
def run_tokens(started):
    return started(TokenServer())


@pytest.fixture(name="check")
def make_check(tmp_path):
    """check(url, http_config, rules=..., env=...): alertscaler check --prometheus. No output has a secret."""
    def check(url, http, rules=RULES, env=None, values=False):
        (tmp_path / "rules.yaml").write_text(rules)
        (tmp_path / "http.yaml").write_text(dump_yaml(http))
        done = subprocess.run(
            [find_binary(), "check", f"--prometheus={url}", f"--http.config.file={tmp_path / 'http.yaml'}", "--require-promql",
             *(["--values"] if values else []), tmp_path / "rules.yaml"],
            capture_output=True, text=True, check=False, timeout=120, env=environment(HOME=tmp_path, **(env or {})))
        for secret in (SECRET, "tok3n-", "ya29.token", "eyJ.token", AZURE_SECRET, ASSERTION):
            assert secret not in done.stdout + done.stderr
        return done
    return check


def expect_checked(done):
    assert (done.returncode, done.stderr) == (0, ""), done
    assert "2 queries: ok" in done.stdout


def expect_unchecked(done, *words):
    assert done.returncode == 1, done
    for word in words:
        assert word in done.stderr, done.stderr


# ---- oauth2 ----


@pytest.mark.parametrize("accepts, ways", [(("basic", "form"), ["basic"]), (("basic",), ["basic"]), (("form",), ["basic", "form"])])
def test_one_token_for_all_queries_however_the_server_takes_the_secret(check, prometheus, tokens, started, tmp_path, accepts, ways):
    tokens.accepts = accepts
    gate = started(Gate(prometheus.url, tokens.admit))
    expect_checked(check(gate.url, {"oauth2": tokens.config(tmp_path)}))
    assert [how for how, _ in tokens.asked] == ways and gate.admitted == len(gate.asked) >= 2


def test_a_broken_query_is_refused_behind_a_login(check, prometheus, tokens, started, tmp_path):
    gate = started(Gate(prometheus.url, tokens.admit))
    done = check(gate.url, {"oauth2": tokens.config(tmp_path)}, rules=BROKEN)
    assert done.returncode == 1 and "sun" in done.stderr and "rules.yaml:10" in done.stderr


def test_values_behind_a_login(check, prometheus, tokens, started, tmp_path):
    gate = started(Gate(prometheus.url, tokens.admit))
    done = check(gate.url, {"oauth2": tokens.config(tmp_path)}, values=True)
    assert done.returncode == 0 and "5" in done.stdout, done


def test_parameters_and_an_audience(check, prometheus, tokens, started, tmp_path):
    tokens.audience = "https://metrics/"
    gate = started(Gate(prometheus.url, tokens.admit))
    expect_unchecked(check(gate.url, {"oauth2": tokens.config(tmp_path)}), "another audience")
    expect_checked(check(gate.url, {"oauth2": tokens.config(tmp_path, endpoint_params={"audience": "https://metrics/"})}))


def test_a_client_that_may_only_read_gets_no_other_scope(check, prometheus, tokens, started, tmp_path):
    gate = started(Gate(prometheus.url, tokens.admit))
    done = check(gate.url, {"oauth2": tokens.config(tmp_path, scopes=[READ, WRITE])})
    expect_unchecked(done, f"oauth2: {tokens.url}: invalid_scope: this client may only read")
    assert not gate.asked and not tokens.tokens


def test_a_wrong_secret(check, prometheus, tokens, started, tmp_path):
    tokens.secret = "another"
    gate = started(Gate(prometheus.url, tokens.admit))
    done = check(gate.url, {"oauth2": tokens.config(tmp_path)})
    expect_unchecked(done, f"{gate.url}: oauth2: {tokens.url}: invalid_client: Invalid client or secret")
    assert not gate.asked


@pytest.mark.parametrize("answer, said", [
    ((200, {}, b"x" * 10_000_000), "larger than 256 KiB"),
    ((200, {}, b""), "the answer is not a JSON object"),
    ((200, {"Content-Type": "text/html"}, b"<html>Sign in</html>"), "the answer is not a JSON object"),
    ((200, {}, {"token_type": "Bearer"}), "the answer has no access_token"),
    ((200, {}, {"access_token": "tok3n-a\r\nX-Admin: 1"}), "characters that no header line may have"),
    ((200, {}, {"access_token": "tok3n-a", "token_type": "DPoP"}), "the token_type is not Bearer"),
    ((503, {}, b"down"), "HTTP 503"),
    ((400, {}, {"error": "invalid_scope", "error_description": f"of {SECRET}"}), "refused"),
])
def test_an_answer_that_is_no_token(check, prometheus, tokens, started, tmp_path, answer, said):
    tokens.answer = answer
    gate = started(Gate(prometheus.url, tokens.admit))
    expect_unchecked(check(gate.url, {"oauth2": tokens.config(tmp_path)}), f"oauth2: {tokens.url}: ", said)
    assert not gate.asked


def test_a_token_for_another_audience_is_refused_by_the_server_once_more(check, prometheus, tokens, started, tmp_path):
    """One new token and one more request for the first query; no more than that for the second."""
    gate = started(Gate(prometheus.url, lambda asked: (401, {}, b"audience")))
    expect_unchecked(check(gate.url, {"oauth2": tokens.config(tmp_path)}), "401")
    assert len(tokens.tokens) == 2 and len(gate.asked) <= 4


def test_redirects_are_not_followed(check, prometheus, tokens, started, tmp_path):
    seen = []
    other = started(Server(lambda asked: seen.append(asked) or (200, {}, b"{}")))
    gate = started(Gate(prometheus.url, lambda asked: (302, {"Location": other.url + asked.path}, b"")))
    expect_unchecked(check(gate.url, {"oauth2": tokens.config(tmp_path)}), "302")
    tokens.answer = 307, {"Location": other.url + "/oauth/token"}, b""
    expect_unchecked(check(gate.url, {"oauth2": tokens.config(tmp_path)}), "HTTP 307: redirects are not followed")
    assert not seen


def test_the_token_server_has_certificates_of_its_own(check, prometheus, started, tmp_path):
    from harness.certificates import Authority   # pylint: disable=import-outside-toplevel
    authority = Authority(tmp_path / "ca")
    tokens = started(TokenServer(tls=authority.issue("127.0.0.1")))
    gate = started(Gate(prometheus.url, tokens.admit))
    done = check(gate.url, {"oauth2": tokens.config(tmp_path)})
    expect_unchecked(done, f"oauth2: {tokens.url}: ")
    expect_checked(check(gate.url, {"oauth2": tokens.config(tmp_path, tls_config={"ca_file": str(authority.certificate)})}))


def test_backtest_and_a_configuration(prometheus, tokens, started, tmp_path):
    gate = started(Gate(prometheus.url, tokens.admit))
    (tmp_path / "rules.yaml").write_text(RULES)
    (tmp_path / "alertscaler.yaml").write_text(dump_yaml({
        "rule_files": [], "prometheus": {"url": gate.url, "http_config": {"oauth2": tokens.config(tmp_path)}}}))
    run = [find_binary(), "backtest", f"--prometheus={gate.url}", "--from=2m", "--replicas=web=3", "--rules",
           tmp_path / "rules.yaml", f"--config.file={tmp_path / 'alertscaler.yaml'}"]
    done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=120, env=environment())
    assert done.returncode == 0, done
    assert gate.admitted == len(gate.asked) > 0 and len(tokens.tokens) == 1
    tokens.secret = "another"
    done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=120, env=environment())
    assert done.returncode == 2 and "invalid_client" in done.stderr and SECRET not in done.stderr


# ---- the daemon ----


def follow(url, query="vector(5)"):
    return {"targets": {"workers": {"node_group": {"provider": "mine", "url": url}, "min": 1, "max": 9,
                                    "cooldown": {"up": "0s", "down": "0s"}}},
            "rules": [{"name": "follow", "always": True, "target": "workers", "every": "1s", "track": {"average_value": 1, "query": query}}]}


def configure(gate, http):
    return {"prometheus": {"url": gate.url, "timeout": "3s", "http_config": http},
            "providers": {"mine": {"type": "http"}}}


def test_the_daemon_lives_through_expiry_revocation_and_outage(make_daemon, node_group, prometheus, tokens, started, tmp_path):
    tokens.lifetime = 4
    gate, group = started(Gate(prometheus.url, tokens.admit)), node_group(3)
    daemon = make_daemon(follow(group.url), configure(gate, {"oauth2": tokens.config(tmp_path)}))
    eventually(lambda: group.size == 5, 60, what="the size of the query")
    eventually(lambda: len(tokens.tokens) >= 4, 60, what="new tokens")
    assert len(gate.asked) == gate.admitted, "no token expired on its way"

    tokens.lifetime = 3600
    tokens.revoke()
    group.size = 3
    eventually(lambda: group.size == 5, 60, what="a new token after the refusal")
    assert len(set(tokens.replayed)) == 1 and len(tokens.replayed) <= 2, "a token that was refused is not sent again"

    tokens.answer = 503, {}, b""
    tokens.revoke()
    group.size = 3
    failed = eventually(lambda: [record for record in daemon.records("decision") if record["output"]["reason"] == "metric_unavailable"],
                        60, what="a decision without a value")[-1]
    steadily(lambda: group.size == 3, 4)
    assert failed["input"]["proposals"][0]["error"] == ("Prometheus: oauth2: the server refused the credentials, and there are no new "
                                                        f"ones: {tokens.url}: HTTP 503")

    tokens.answer = None
    eventually(lambda: group.size == 5, 60, what="it goes on")
    metrics = request("GET", daemon.url + "/metrics").text
    assert 'provider="oauth2",operation="get_oauth2_token",code="503"' in metrics.replace(", ", ",")
    pages = "".join(request("GET", daemon.url + path).text for path in ("/", "/targets/workers", "/api/v1/targets/workers",
                                                                        "/api/v1/status"))
    daemon.stop()
    everything = [daemon.process.log_text(), daemon.log_file.read_text(), daemon.state_file.read_bytes().decode("latin-1"), metrics, pages]
    for text in everything:
        assert "tok3n-" not in text and "cl1ent" not in text


def test_the_time_of_a_query_includes_its_login(make_daemon, node_group, prometheus, tokens, started, tmp_path):
    tokens.delay = 8
    gate, group = started(Gate(prometheus.url, tokens.admit)), node_group(3)
    daemon = make_daemon(follow(group.url), configure(gate, {"oauth2": tokens.config(tmp_path)}))
    began = time.monotonic()
    eventually(lambda: "oauth2: no credentials within 3s" in json.dumps(daemon.records("decision")), 30)
    assert time.monotonic() - began < 8
    eventually(lambda: group.size == 5, 60, what="the token comes, and serves the next query")


def test_a_node_group_behind_a_login(make_daemon, node_group, prometheus, tokens, started, tmp_path):
    """A change is refused once, and is sent once more with a new token: never twice."""
    group = node_group(3)
    gate = started(Gate(group.url.removesuffix("/groups/workers"), tokens.admit))
    config = {"prometheus": {"url": prometheus.url},
              "providers": {"mine": {"type": "http", "http_config": {"oauth2": tokens.config(tmp_path)}}}}
    daemon = make_daemon(follow(gate.url + "/groups/workers"), config)
    eventually(lambda: group.size == 5, 60, what="the size of the query")
    tokens.revoke()
    group.size = 3
    eventually(lambda: group.size == 5, 60, what="a new token after the refusal")
    assert group.applied == [5, 5] and len(set(tokens.replayed)) == 1
    tokens.answer = 503, {}, b""
    tokens.revoke()
    failed = eventually(lambda: [text for text in [json.dumps(daemon.target("workers"))] if "HTTP 503" in text], 60, what="an error")[0]
    assert "oauth2: " in failed and group.size == 5


@pytest.mark.skipif(bool(alertmanager.missing()), reason=str(alertmanager.missing()))
def test_alertmanager_and_notify_have_logins(make_daemon, make_alertmanager, webhook, node_group, started, tmp_path):
    lists, notices = started(TokenServer()), started(TokenServer(accepts=("form",)))
    real, recorder, group = make_alertmanager(webhook=webhook.url), started(Recorder()), node_group(3)
    before_list, before_notice = started(Gate(real.url, lists.admit)), started(Gate(recorder.url.removesuffix("/in"), notices.admit))
    real.fire(alertname="Busy")
    rules = follow(group.url)
    rules["rules"] = [{"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 2}, "max_steps": 1}]
    config = configure(before_list, {})
    del config["prometheus"]
    config |= {"alertmanager": {"urls": [before_list.url], "http_config": {"oauth2": lists.config(tmp_path)}},
               "notify": [{"name": "people", "on": ["scaled"], "webhook": {
                   "url": before_notice.url + "/in", "http_config": {"oauth2": notices.config(tmp_path)}}}]}
    daemon = make_daemon(rules, config)
    eventually(lambda: before_list.admitted, 60, what="the list of alerts")
    daemon.notify(notification(alert({"alertname": "Busy"})))
    eventually(lambda: recorder.events("scaled"), 60, what="the notice")
    assert len(lists.tokens) == 1 and len(notices.tokens) == 1
    assert all(asked.headers["Authorization"].startswith("Bearer tok3n-") for asked in before_list.asked + before_notice.asked)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_with_a_large_page_renews_the_token_of_notify(make_daemon, node_group, tokens, started, tmp_path, status):
    """A proxy may answer with a page that is larger than the 64 KiB that are read of a receiver's answer."""
    def admit(asked):
        return tokens.admit(asked) and (status, {"Content-Type": "text/html"}, b"<p>Log in</p>\n" + b"x" * 200_000)

    recorder, group = started(Recorder()), node_group(3)
    gate = started(Gate(recorder.url.removesuffix("/in"), admit))
    rules = follow(group.url)
    rules["rules"] = [{"name": "busy", "match": ['alertname="Busy"'], "target": "workers", "scale_up": {"by": 2}, "max_steps": 1}]
    daemon = make_daemon(rules, {"providers": {"mine": {"type": "http"}}, "notify": [{"name": "people", "on": ["scaled"], "webhook": {
        "url": gate.url + "/in", "http_config": {"oauth2": tokens.config(tmp_path)}}}]})
    daemon.notify(notification(alert({"alertname": "Busy", "n": "1"})))
    eventually(lambda: len(recorder.events("scaled")) == 1, 60, what="the first notice")
    tokens.revoke()
    daemon.notify(notification(alert({"alertname": "Busy", "n": "2"})))
    eventually(lambda: len(recorder.events("scaled")) == 2, 60, what="the second notice, with a new token")
    assert len(tokens.asked) == 2 and len(tokens.replayed) == 1
    assert daemon.metrics().value("alertscaler_notify_failed_total", receiver="people") == 0


# ---- sigv4 ----


needs_signer = pytest.mark.skipif(bool(moto.missing()), reason=str(moto.missing()))
KEYS = {"AKIDEXAMPLE": ("aws-s3cret", None)}
AWS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "aws-s3cret", "AWS_EC2_METADATA_DISABLED": "true"}
SIGV4 = {"sigv4": {"region": moto.REGION}}


@needs_signer
@pytest.mark.parametrize("path", ["", "/workspaces/ws-1", "/a%20b/", "/a//b/", "/a/./b/../c"])
def test_signatures_are_those_of_amazons_signer(check, prometheus, started, path):
    signed = Signed(KEYS)

    def admit(asked):
        refused = signed.admit(asked)
        if not refused and path.strip("/"):
            asked.path = "/api" + asked.path.partition("/api")[2]
        return refused

    gate = started(Gate(prometheus.url, admit))
    expect_checked(check(gate.url + path, SIGV4, env=AWS, values=False))
    assert not signed.refused and {asked.method for asked in gate.asked} >= {"POST"}
    assert check(gate.url + path, SIGV4, env=AWS, values=True).returncode == 0      # and GET, for what the server knows of metrics
    assert not signed.refused


@needs_signer
def test_another_region_and_another_secret_are_refused(check, prometheus, started):
    signed = Signed(KEYS)
    gate = started(Gate(prometheus.url, signed.admit))
    expect_unchecked(check(gate.url, {"sigv4": {"region": "us-east-1"}}, env=AWS), "403")
    expect_unchecked(check(gate.url, SIGV4, env={**AWS, "AWS_SECRET_ACCESS_KEY": "other"}), "403")
    assert set(signed.refused) == {f"Credential should be scoped to {moto.REGION}/aps",
                                   "The request signature we calculated does not match the signature you provided."}
    expect_unchecked(check(gate.url, {"sigv4": {}}, env=AWS), "sigv4: the region is not known")


@needs_signer
def test_region_and_keys_of_a_profile(check, prometheus, started, tmp_path):
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/config").write_text(f"[profile metrics]\nregion = {moto.REGION}\n")
    (tmp_path / ".aws/credentials").write_text("[metrics]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = aws-s3cret\n")
    signed = Signed(KEYS)
    gate = started(Gate(prometheus.url, signed.admit))
    expect_checked(check(gate.url, {"sigv4": {"profile": "metrics"}}, env={"AWS_EC2_METADATA_DISABLED": "true"}))
    assert not signed.refused


@needs_signer
def test_a_clock_that_is_off(check, prometheus, started):
    signed = Signed(KEYS, ahead=3600)
    gate = started(Gate(prometheus.url, signed.admit))
    done = check(gate.url, SIGV4, env=AWS)
    assert done.returncode == 0 and signed.refused == ["Signature expired"], done


@needs_signer
def test_a_role_of_moto_signs(check, prometheus, started, tmp_path):
    """moto checks the signature and the permissions of AssumeRole; the gate knows the role's key by the answer alone."""
    aws = started(moto.Moto(tmp_path)).start()
    role = "arn:aws:iam::123456789012:role/reader"
    key = aws.make_user("metrics", {"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*"}]})
    other = aws.make_user("nobody", {"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Action": "ec2:DescribeImages", "Resource": "*"}]})
    aws.check_signatures()
    signed = Signed({})
    sts = started(StsProxy(aws.url, signed.keys))
    gate = started(Gate(prometheus.url, signed.admit))
    http = {"sigv4": {"region": moto.REGION, "role_arn": role, "external_id": "shop"}}

    def env(of):
        return {"AWS_ACCESS_KEY_ID": of.id, "AWS_SECRET_ACCESS_KEY": of.secret, "AWS_ENDPOINT_URL_STS": sts.url}

    expect_checked(check(gate.url, http, env=env(key)))
    (form,) = sts.forms
    assert (form["Action"], form["RoleArn"], form["ExternalId"]) == ("AssumeRole", role, "shop")
    assert not signed.refused and len(signed.keys) == 1
    done = check(gate.url, http, env=env(other))
    expect_unchecked(done, "sigv4: environment: assume_role: HTTP 403")     # moto's words for this are not those of AWS
    done = check(gate.url, http, env={**env(key), "AWS_SECRET_ACCESS_KEY": "wrong"})
    expect_unchecked(done, "sigv4: environment: assume_role: HTTP 403")
    sts.answer = (403, {}, b"<ErrorResponse><Error><Code>AccessDenied</Code><Message>not authorized to perform: sts:AssumeRole"
                  b"</Message></Error><RequestId>1</RequestId></ErrorResponse>")
    done = check(gate.url, http, env=env(key))
    expect_unchecked(done, "assume_role: AccessDenied: not authorized to perform: sts:AssumeRole")
    assert not signed.refused


@needs_signer
def test_a_session_that_expired_is_renewed(make_daemon, node_group, prometheus, started):
    """By a credential_process, which gives other keys each time."""
    signed = Signed({"AKID1": ("one", "session-1")})
    gate, group = started(Gate(prometheus.url, signed.admit)), node_group(3)
    daemon = make_daemon(follow(group.url), configure(gate, {"sigv4": {"region": moto.REGION, "profile": "p"}}), start=False)
    (daemon.directory / ".aws").mkdir()
    program = daemon.directory / "keys.sh"
    (daemon.directory / ".aws/config").write_text(f"[profile p]\ncredential_process = {program}\n")

    def give(number, secret):
        program.write_text("#!/bin/sh\necho '" + json.dumps({"Version": 1, "AccessKeyId": f"AKID{number}", "SecretAccessKey": secret,
                                                             "SessionToken": f"session-{number}"}) + "'\n")
        program.chmod(0o755)

    give(1, "one")
    daemon.start()
    eventually(lambda: group.size == 5, 60, what="the size of the query")
    give(2, "two")
    signed.keys.clear()
    signed.keys["AKID2"] = ("two", "session-2")
    group.size = 3
    eventually(lambda: group.size == 5, 60, what="new keys after the refusal")
    assert len(signed.refused) <= 2


# ---- azuread ----


@pytest.fixture(name="azure")
def run_azure(started):
    return started(FakeAzure(audience=QUERIES))


def admit_azure(azure):
    return lambda asked: None if (asked.headers["Authorization"] or "").removeprefix("Bearer ") in azure.tokens else (401, {}, b"")


def azure_ways(tmp_path):
    (tmp_path / "azure.secret").write_text(AZURE_SECRET)
    (tmp_path / "assertion").write_text(ASSERTION)
    return {"oauth": {"client_id": AZURE_CLIENT, "tenant_id": TENANT, "client_secret_file": str(tmp_path / "azure.secret")},
            "workload_identity": {"client_id": AZURE_CLIENT, "tenant_id": TENANT, "token_file_path": str(tmp_path / "assertion")}}


@pytest.mark.parametrize("way", ["oauth", "workload_identity"])
def test_tokens_of_entra_are_for_queries(check, prometheus, azure, started, tmp_path, way):
    gate = started(Gate(prometheus.url, admit_azure(azure)))
    env = {"AZURE_AUTHORITY_HOST": azure.url}
    http = {"azuread": {way: azure_ways(tmp_path)[way]}}
    expect_checked(check(gate.url, http, env=env))
    azure.audience = INGESTION      # one who only gives tokens for writing gives none
    done = check(gate.url, http, env=env)
    expect_unchecked(done, f"azuread: {way}: get_entra_token: invalid_resource: AADSTS500011: {QUERIES}/.default was not found")


def test_an_identity_of_the_pod_from_the_environment(check, prometheus, azure, started, tmp_path):
    azure_ways(tmp_path)
    gate = started(Gate(prometheus.url, admit_azure(azure)))
    env = {"AZURE_AUTHORITY_HOST": azure.url, "AZURE_TENANT_ID": TENANT, "AZURE_CLIENT_ID": AZURE_CLIENT,
           "AZURE_FEDERATED_TOKEN_FILE": tmp_path / "assertion"}
    expect_checked(check(gate.url, {"azuread": {"workload_identity": {}}}, env=env))


def test_an_identity_of_the_machine(check, prometheus, azure, started):
    """App Service's endpoint, which a variable names."""
    seen = []

    def handle(asked):
        seen.append(asked.path)
        if asked.headers["X-IDENTITY-HEADER"] != "h3ader":
            return 400, {}, {"error": "invalid_request"}
        asked.headers["Metadata"] = "true"
        return request("GET", azure.url + "/metadata/identity/oauth2/token?" + asked.path.partition("?")[2].replace("2019-08-01", "2018-02-01"),
                       headers={"Metadata": "true"})

    def answer(asked):
        told = handle(asked)
        return told if isinstance(told, tuple) else (told.status, {"Content-Type": "application/json"}, told.body)

    service = started(Server(answer))
    gate = started(Gate(prometheus.url, admit_azure(azure)))
    env = {"IDENTITY_ENDPOINT": service.url + "/msi/token", "IDENTITY_HEADER": "h3ader"}
    expect_checked(check(gate.url, {"azuread": {"managed_identity": {}}}, env=env))
    assert seen == ["/msi/token?api-version=2019-08-01&resource=https%3A%2F%2Fprometheus.monitor.azure.com"]


# ---- google_iam ----


class Google:
    def __init__(self, directory):
        self._server = Server(lambda asked: self.identity.answer(asked, asked.path.partition("?")[0]))
        self.identity = Identity(self._server.url, directory, scope=READ_SCOPE, exchange=IAM_SCOPE)

    def admit(self, asked):
        return None if self.identity.may_query(asked) else (403, {}, {"error": {"status": "PERMISSION_DENIED"}})

    def stop(self):
        self._server.stop()


@pytest.fixture(name="google")
def run_google(started, tmp_path):
    return started(Google(tmp_path))


@pytest.mark.parametrize("kind", ["key", "external", "acting", "user", "environment", "machine"])
def test_tokens_of_google_only_read_metrics(check, prometheus, google, started, tmp_path, kind):
    identity, env, http = google.identity, {}, {}
    gate = started(Gate(prometheus.url, google.admit))
    (tmp_path / "subject").write_text(identity.subject)
    if kind == "machine":
        env = {"GCE_METADATA_HOST": identity.url.removeprefix("http://")}
    else:
        source = {"file": str(tmp_path / "subject")}
        path = {"key": identity.write_key, "environment": identity.write_key, "user": identity.write_user,
                "external": lambda: identity.write_external(source),
                "acting": lambda: identity.write_external(source, service_account_impersonation_url=identity.impersonation_url)}[kind]()
        if kind == "environment":
            env = {"GOOGLE_APPLICATION_CREDENTIALS": path}
        else:
            http = {"credentials_file": str(path)}
    expect_checked(check(gate.url, {"google_iam": http}, env=env))
    assert gate.admitted == len(gate.asked) > 0


def test_a_server_of_write_scopes_gives_no_token(check, prometheus, google, started):
    """What Google would say to a client that may not have this scope."""
    google.identity.scope = google.identity.exchange = "https://www.googleapis.com/auth/monitoring.write"
    gate = started(Gate(prometheus.url, google.admit))
    done = check(gate.url, {"google_iam": {"credentials_file": str(google.identity.write_key())}})
    expect_unchecked(done, "google_iam: credentials_file: token: invalid_scope")
    assert not gate.asked
