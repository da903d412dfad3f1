"""get and describe: lists and documents of a daemon, what a NAME finds, and texts that a terminal would obey."""
import json
import re
import signal
import subprocess
import time
import urllib.parse

import pytest
import yaml

from harness.daemon import environment, find_binary
from harness.played import Played, run
from harness.wait import eventually


def stamp(seconds_ago):
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(time.time() - seconds_ago))


def target(name, **more):
    return {"id": f"kubernetes/default/apps/v1/Deployment/shop/{name}", "name": name, "templated": False, "kind": "kubernetes",
            "replicas": 4, "status_replicas": 4, "desired": 4, "min": 1, "max": 20, "schedules": [], "floor": None, "holds": [],
            "locked_until": {"up": None, "down": None}, "open_incidents": 0, "dry_run": False, "paused": None, "contended": None,
            "others": [], "waits_for": None, "ready": None, "did_not_come": False, "ineffective": [], "next": [],
            "last_decision": None, "failure": None, "failure_text": None, **more}


def rule(name, of="web", **more):
    return {"name": name, "match": [f'alertname="{name}"'], "always": False, "target": of, "action": {"scale_up": {"by": "50%", "at_least": 1}},
            "on_resolved": "nothing", "dry_run": False, "enabled": True, "query_error": None, **more}


def incident(alert, digest="ab" * 32, of="web", **more):
    return {"digest": digest, "fingerprint": "7be9cc40aa9853c5", "opened": stamp(400), "seen": stamp(150), "silenced": False,
            "labels": {"alertname": alert}, "targets": [{"target": target(of)["id"], "rule": "slow", "replicas": 4}], **more}


def decision(number, of="web", **more):
    return {"id": f"01JD{number}", "time": stamp(60 * number + 90), "target": target(of)["id"], "target_name": of, "rule": "slow",
            "reason": "scaled", "direction": "up", "replicas": 4, "desired": 6, **more}


def policy(name, namespace="shop", **more):
    return {"id": f"{namespace}/{name}", "namespace": namespace, "name": name, "uid": "8a0c", "generation": 3, "created": stamp(3 * 86400 + 60),
            "target": f"Deployment/{name}", "target_id": target(name)["id"], "size": 4, "desired": 6, "min": 2, "max": 20, "value": "47.1",
            "goal": "40", "locked": None, "decision": "01JD", "decided": stamp(60), "reason": "Scaled", "rule": "slow", "ready": True,
            "ready_reason": "Ready", "message": "the policy is in force", "paused": False, "obstacle": None, **more}


@pytest.fixture
def played():
    daemon = Played()
    lists = daemon.lists = {"targets": [], "rules": [], "incidents": [], "decisions": [], "policies": []}

    def answer(asked):
        path, _, query = asked.path.removeprefix("/api/v1/").partition("?")
        kind, _, name = path.partition("/")
        if not name:
            wanted = dict(urllib.parse.parse_qsl(query))
            found = [each for each in lists[kind] if wanted.get("target") in (None, each.get("target"))]
            return 200, {}, {"status": "success", "data": found[:int(wanted.get("limit", 1000))], **getattr(daemon, "more", {})}
        for each in lists[kind]:
            if name in (each["name"], each["id"]):
                return 200, {}, {"status": "success", "data": each}
        return 404, {}, {"status": "error", "errorType": "not_found", "error": f"no such target: {name}"}
    daemon.answer = answer
    yield daemon
    daemon.server.stop()


def table(text):
    """Cells of the rows, without the titles."""
    return [re.split(r"  +", line.rstrip()) for line in text.splitlines()[1:]]


# lists


def test_targets(played):
    played.lists["targets"] = [
        target("web", replicas=20, desired=20, locked_until={"up": stamp(-100), "down": None}, open_incidents=2,
               last_decision={"id": "01JD", "time": stamp(125), "reason": "at_max", "rule": "slow"}),
        target("search", replicas=None, failure="unreachable"),
        target("any", templated=True, paused={"who": "jo", "reason": "test", "since": stamp(9), "until": None, "direction": "both"},
               replicas=1, desired=1, dry_run=True),
    ]
    done = played.run("get", "targets")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].split() == ["NAME", "SIZE", "BOUNDS", "STATE", "INCIDENTS", "LAST", "DECISION"]
    assert table(done.stdout) == [
        ["web", "20", "1-20", "locked, at max", "2", "at_max by slow, 2m ago"],
        ["search", "?", "1-20", "failing: unreachable", "0", "unreachable"],
        ["kubernetes/default/apps/v1/Deployment/shop/any", "1", "1-20", "paused, at min, dry run", "0", "-"],
    ]
    assert played.asked[0].path.startswith("/api/v1/targets?limit=")
    wide = played.run("get", "target", "-o", "wide").stdout
    assert wide.splitlines()[0].split() == ["NAME", "SIZE", "BOUNDS", "STATE", "INCIDENTS", "LOCKED", "PAUSED", "READY", "ID", "LAST", "DECISION"]
    assert "until resumed: test" in wide


def test_rules(played):
    played.lists["rules"] = [rule("slow"), rule("odd", enabled=False, query_error="no"),
                             rule("always", always=True, match=[], action={"track": {"value": 70.5, "query": "up"}})]
    assert table(played.run("get", "rules").stdout) == [
        ["slow", "web", "scale_up {by: 50%, at_least: 1}", "-"],
        ["odd", "web", "scale_up {by: 50%, at_least: 1}", "query error, disabled"],
        ["always", "web", "track {value: 70.5, query: up}", "-"],
    ]
    assert [row[4:] for row in table(played.run("get", "rules", "-o", "wide").stdout)] == [
        ['[alertname="slow"]', "nothing"], ['[alertname="odd"]', "nothing"], ["always", "nothing"]]
    played.lists["rules"] = [rule("long", action={"track": {"query": "x" * 1000}})]
    assert max(map(len, played.run("get", "rules").stdout.splitlines())) < 200


def test_incidents_and_decisions(played):
    played.lists["incidents"] = [incident("Slow"), incident("Idle", silenced=True, targets=[])]
    played.lists["decisions"] = [decision(1), decision(2, reason="dry_run", desired=4, would=6, rule=None)]
    assert table(played.run("get", "incidents").stdout) == [
        ["abababababab", "Slow", "slow", "6m ago", "2m ago", "-"], ["abababababab", "Idle", "-", "6m ago", "2m ago", "yes"]]
    assert table(played.run("get", "decisions", "-o", "wide").stdout) == [
        ["01JD1", "2m ago", "web", "4->6", "scaled", "slow", "-", target("web")["id"]],
        ["01JD2", "3m ago", "web", "4", "dry_run", "-", "6", target("web")["id"]]]


def test_policies(played):
    blocked = {"condition": "Blocked", "reason": "Paused", "message": "annotation alertscaler.io/paused: sale"}
    played.lists["policies"] = [
        policy("web", locked="up until 14:04:12Z"),
        policy("search", size=None, desired=None, min=None, max=None, target=None, value=None, goal=None, reason=None, rule=None, ready=False,
               obstacle={"condition": "Ready", "reason": "Invalid", "message": "spec.rules[0]: no"}),
        policy("new", ready=None, obstacle=blocked)]
    done = played.run("get", "policies")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].split() == ["NAME", "TARGET", "SIZE", "DESIRED", "MIN", "MAX", "REASON", "READY", "OBSTACLE", "AGE"]
    assert table(done.stdout) == [
        ["shop/web", "Deployment/web", "4", "6", "2", "20", "Scaled", "True", "-", "3d"],
        ["shop/search", "-", "-", "-", "-", "-", "-", "False", "Invalid", "3d"],
        ["shop/new", "Deployment/new", "4", "6", "2", "20", "Scaled", "-", "Paused", "3d"]]
    wide = played.run("get", "policy", "web", "new", "-o", "wide").stdout
    assert wide.splitlines()[0].split()[-6:] == ["VALUE", "GOAL", "LOCKED", "RULE", "AGE", "MESSAGE"]
    assert [row[9:] for row in table(wide)] == [["47.1", "40", "up until 14:04:12Z", "slow", "3d", "-"],
                                                ["47.1", "40", "-", "slow", "3d", "annotation alertscaler.io/paused: sale"]]
    for words, found in ((["shop/web"], ["shop/web"]), (["shop/*", "--sort-by=name"], ["shop/new", "shop/search", "shop/web"]),
                         (["s*h"], ["shop/search"]), (["--sort-by=-size"], ["shop/web", "shop/new", "shop/search"])):
        assert played.run("get", "policies", *words, "-o", "name").stdout.split() == found, words
    done = played.run("get", "policies", "shop/wbe")
    assert done.returncode == 1 and 'no policy has the name "shop/wbe"; did you mean "shop/web"?' in done.stderr
    assert json.loads(played.run("get", "policies", "web", "-o", "json").stdout) == [played.lists["policies"][0]]


# names, order, formats


@pytest.mark.parametrize("words, found", [
    (["web"], ["web"]),
    (["web", "w*"], ["web", "worker"]),
    (["w?b"], ["web"]),
    (["*/shop/search"], ["search"]),
    ([target("search")["id"]], ["search"]),
    (["*"], ["search", "web", "worker"]),
])
def test_a_name_may_be_a_glob(played, words, found):
    played.lists["targets"] = [target("search"), target("web"), target("worker")]
    done = played.run("get", "targets", *words, "-o", "name")
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, found, "")


def test_names_of_the_other_kinds(played):
    played.lists.update(rules=[rule("slow")], incidents=[incident("Slow"), incident("Idle", digest="cd" * 32)],
                        decisions=[decision(1), decision(2, of="search")])
    for words, found in ((["rules", "s*"], ["slow"]), (["incidents", "Slow"], ["ab" * 32]), (["incidents", "cd*"], ["cd" * 32]),
                         (["decisions", "search"], ["01JD2"]), (["decision", "01JD1"], ["01JD1"])):
        assert played.run("get", *words, "-o", "name").stdout.split() == found, words


def test_a_name_that_finds_nothing(played):
    played.lists["targets"] = [target("web"), target("search")]
    for words, out, says in ((["wbe"], "", 'no target has the name "wbe"; did you mean "web"?'), (["q*"], "", 'no target has the name "q*"'),
                             (["search", "wbe"], "search\n", 'no target has the name "wbe"; did you mean "web"?')):
        done = played.run("get", "targets", *words, "-o", "name")
        assert (done.returncode, done.stdout, done.stderr) == (1, out, f"alertscaler get: {says}\n")
    played.lists["targets"] = []
    assert played.run("get", "targets", "-o", "json").stdout == "[]\n"
    assert played.run("get", "targets", "-o", "yaml").stdout == "[]\n"
    assert played.run("get", "targets").stdout.startswith("NAME")


@pytest.mark.parametrize("key, order", [
    ("replicas", ["b", "c", "a", "d"]),
    ("-replicas", ["a", "b", "c", "d"]),
    ("name", ["a", "b", "c", "d"]),
    ("last_decision.time", ["c", "a", "b", "d"]),
])
def test_sorting_is_stable_and_unknown_values_are_last(played, key, order):
    played.lists["targets"] = [
        target("d", replicas=None), target("b", replicas=1), target("c", replicas=1, last_decision={"time": "2026-11-20T10:00:00Z"}),
        target("a", replicas=10, last_decision={"time": "2026-11-20T11:00:00Z"})]
    found = played.run("get", "targets", f"--sort-by={key}", "-o", "name").stdout.split()
    assert found == (["c", "a", "d", "b"] if key == "last_decision.time" else order)


def test_a_key_that_nothing_has(played):
    played.lists["targets"] = [target("web")]
    done = played.run("get", "targets", "--sort-by=replcias")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ('alertscaler get: --sort-by: nothing has the member "replcias": -o json shows the members, such as id; '
                           'did you mean "replicas"?\n')


@pytest.mark.parametrize("output, read", [("json", json.loads), ("yaml", yaml.safe_load)])
def test_documents_are_those_of_the_api(played, output, read):
    """Whatever is in them: words and numbers of YAML, quotes, blanks, other scripts, characters that a terminal obeys."""
    hard = ["true", "No", "null", "~", "", " a ", "a: b", "- a", "#a", "1", "1e3", "0x1f", "2026-11-20", "it's", 'a"b', "a\\b", "ä€😀", "\x1b[31m",
            "\u202e", "\x85", "a\nb", "\t", "*a", "&a", "!a", "%a", "@a", "`a", "{a}", "[a]", "a,b", "=", "<<", "y", "a-b_c.d/e", "\ufeff"]
    played.lists["targets"] = [target("web", numbers=[1, -2, 1.5, 1e300, True, None, [], {}, [[1, [2]]], [{"a": {"b": []}}, {"c": 1, "d": 2}]],
                                      texts=hard, keys={text or "-": text for text in hard}), target("b")]
    done = played.run("get", "targets", "-o", output)
    assert (done.returncode, done.stderr) == (0, "")
    assert read(done.stdout) == played.lists["targets"]
    assert not set(done.stdout) & set("\x1b\u202e\x85\ufeff")


@pytest.mark.parametrize("output", ["text", "wide", "name", "json", "yaml"])
def test_nothing_raw_is_printed(played, output):
    evil = "a\x1b[31m\x07\x9b\u202eb\nc"
    played.lists.update(targets=[target(evil, failure=evil, failure_text=evil)], rules=[rule(evil, match=[evil], action={evil: {evil: evil}})],
                        incidents=[incident(evil, labels={"alertname": evil, evil: evil})], decisions=[decision(1, of=evil, reason=evil)],
                        policies=[policy(evil, **{key: evil for key in ("target", "value", "goal", "locked", "reason", "rule")},
                                         obstacle={"condition": evil, "reason": evil, "message": evil})])
    for kind in ("targets", "rules", "incidents", "decisions", "policies"):
        done = played.run("get", kind, "-o", output)
        assert done.returncode == 0
        assert not set(done.stdout + done.stderr) & set("\x1b\x07\x9b\u202e"), kind
        if output in ("text", "wide", "name"):
            assert len(done.stdout.splitlines()) == (1 if output == "name" else 2), kind
    played.more = {"warnings": [evil]}
    assert not set(played.run("get", "targets").stderr) & set("\x1b\x07\x9b\u202e")


# what goes wrong


def test_a_wrong_kind(played):
    for words, says in ((["get", "tragets"], 'there is no kind "tragets": name targets, rules, incidents, decisions, policies or contexts; did you mean "targets"?'),
                        (["get"], "too few arguments"), (["describe", "rule", "slow"], "write `describe target NAME`")):
        done = played.run(*words)
        assert done.returncode == 2 and says in done.stderr
    assert not played.asked


@pytest.mark.parametrize("answer, status, says", [
    ((403, {}, {"status": "error", "errorType": "forbidden", "error": "no"}), 1, "HTTP 403: no"),
    ((200, {}, b"hello"), 2, "the answer is not alertscaler's"),
    ((200, {}, {"status": "success", "data": {"id": 1}}), 0, ""),
    ((200, {}, {"status": "success", "data": [1, None, "x", []]}), 0, ""),
])
def test_answers_of_another_server(played, answer, status, says):
    played.answer = answer
    for output in ("text", "yaml", "name"):
        done = played.run("get", "targets", "-o", output)
        assert done.returncode == status and says in done.stderr


def test_a_list_that_was_cut(played):
    played.lists["targets"] = [target("web")]
    played.more = {"warnings": ["results truncated due to limit"]}
    done = played.run("get", "targets")
    assert done.returncode == 0 and "web" in done.stdout and done.stderr == "alertscaler get: results truncated due to limit\n"


def test_watch(played):
    played.lists["targets"] = [target("web")]
    process = subprocess.Popen([find_binary(), "get", "targets", "--watch", "--interval=100ms", "-o", "name", f"--url={played.url}"],
                               env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    eventually(lambda: len(played.asked) > 2, 20)
    played.lists["targets"] = [target("search")]
    seen = len(played.asked)
    eventually(lambda: len(played.asked) > seen + 2, 20)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, "") and {"web", "search"} == set(out.split())


# contexts


def test_contexts(tmp_path):
    (tmp_path / "alertscaler").mkdir()
    (tmp_path / "alertscaler/config.yaml").write_text(
        "current_context: shop\ncontexts: [{name: shop, url: 'http://h', token_file: t}, {name: staging, url: 'http://i'}]\n")
    env = {"XDG_CONFIG_HOME": tmp_path}
    done = run("get", "contexts", env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split() for line in done.stdout.splitlines()] == [["CURRENT", "NAME", "URL"], ["*", "shop", "http://h"], ["staging", "http://i"]]
    assert run("get", "contexts", "-o", "name", env=env).stdout == "shop\nstaging\n"
    assert json.loads(run("get", "contexts", "s[h]op", "shop", "-o", "json", env=env).stdout) == [
        {"name": "shop", "url": "http://h", "token_file": f"{tmp_path}/alertscaler/t", "ca_file": None, "current": True}]
    assert run("get", "contexts", "-o", "json").stdout == "[]\n"     # no file


# describe


def test_describe(played):
    played.lists.update(
        targets=[target("web", next=[{"text": "gives back 2 in 5m", "rule": "slow"}], failure="forbidden", failure_text="no right",
                        schedules=[{"name": "office", "in_force": True, "changes": stamp(-7200)}],
                        others=[{"kind": "HorizontalPodAutoscaler", "name": "hpa", "paused": False}]), target("search")],
        rules=[rule("slow"), rule("other", of="search")], incidents=[incident("Slow"), incident("Other", of="search")],
        decisions=[decision(n) for n in range(1, 21)] + [decision(30, of="search")])
    done = played.run("describe", "target", "web")
    assert (done.returncode, done.stderr) == (0, "")
    head, rules, incidents, decisions = done.stdout.split("\n\n")
    for line in ("Target:         web", "Size:           4", "Failure:        forbidden: no right",
                 "Next:           gives back 2 in 5m (rule slow)", "Sized too by:   HorizontalPodAutoscaler hpa"):
        assert line in head.splitlines()
    assert re.search(r"(?m)^Schedule:       office: in force, changes in 1\d\dm", head)
    assert rules.startswith("Rules:\n") and "slow" in rules and "other" not in rules
    assert incidents.startswith("Open incidents:\n") and "Slow" in incidents and "Other" not in incidents
    assert [line.split()[0] for line in decisions.splitlines()[2:]] == [f"01JD{n}" for n in range(1, 11)]
    document = json.loads(played.run("describe", "target", "web", "-o", "json").stdout)
    assert [each["name"] for each in document["rules"]] == ["slow"] and len(document["decisions"]) == 10
    assert document["id"] == target("web")["id"] and len(document["incidents"]) == 1


def test_describe_without_a_part(played):
    played.lists["targets"] = [target("web")]
    answer = played.answer
    played.answer = lambda asked: (403, {}, {"status": "error", "error": "not yours"}) if "rules" in asked.path else answer(asked)
    done = played.run("describe", "target", "web", "-o", "json")
    assert (done.returncode, done.stderr) == (1, "alertscaler describe: rules: HTTP 403: not yours\n")
    assert json.loads(done.stdout)["rules"] is None


def test_describe_a_target_that_is_nearly_known(played):
    played.lists["targets"] = [target("web")]
    done = played.run("describe", "target", "wbe")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == 'alertscaler describe: HTTP 404: no such target: wbe\nalertscaler describe: did you mean "web"?\n'


# names for completion


def test_names_for_completion(played, tmp_path):
    played.lists.update(targets=[target("web"), target("search")], rules=[rule("slow")])
    assert played.run("completion", "targets").stdout == "web\nsearch\n"
    assert played.run("completion", "rules").stdout == "slow\n"
    played.lists["policies"] = [policy("web")]
    assert played.run("completion", "policies").stdout == "shop/web\n"
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    assert played.run("completion", "targets", "--token-file", token).returncode == 0
    assert played.asked[-1].headers["Authorization"] == "Bearer s3cret"


def test_completion_does_not_wait_for_long(played):
    def answer(asked):
        time.sleep(10)
        return 200, {}, {"status": "success", "data": []}
    played.answer = answer
    begin = time.monotonic()
    done = played.run("completion", "targets")
    assert (done.returncode, done.stdout) == (1, "") and time.monotonic() - begin < 8


# a real daemon


def test_a_daemon(make_daemon):
    daemon = make_daemon({"targets": {"web": {"kubernetes": {"kind": "Deployment", "namespace": "shop", "name": "web"}, "max": 9}},
                          "rules": [{"name": "slow", "match": ['alertname="Slow"'], "target": "web", "scale_up": {"by": 1}}]},
                         config={"clusters": {"default": {"kubeconfig": "kubeconfig"}}}, start=False)
    (daemon.directory / "kubeconfig").write_text(yaml.safe_dump({
        "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "u", "user": {}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
    daemon.start()
    (daemon.directory / ".config/alertscaler").mkdir(parents=True)
    (daemon.directory / ".config/alertscaler/config.yaml").write_text(f"contexts: [{{name: here, url: '{daemon.url}'}}]\n")
    env = {"HOME": daemon.directory}
    here = ["--context", "here"]
    assert run(*here, "fire", "alertname=Slow", env=env).returncode == 0
    eventually(lambda: run(*here, "get", "incidents", "Slow", env=env).returncode == 0, 20)
    assert run(*here, "get", "rules", "-o", "name", env=env).stdout == "slow\n"
    assert table(run(*here, "get", "rules", env=env).stdout) == [["slow", "web", "scale_up {by: 1}", "-"]]
    eventually(lambda: "failing: unreachable" in run(*here, "get", "targets", env=env).stdout, 20)
    assert run(*here, "get", "decisions", env=env).returncode == 0
    assert run(*here, "get", "policies", "-o", "json", env=env).stdout == "[]\n"     # no `objects` in the configuration
    described = run(*here, "describe", "target", "web", env=env)
    assert described.returncode == 0 and "Slow" in described.stdout and "unreachable" in described.stdout
    document = yaml.safe_load(run(*here, "get", "targets", "-o", "yaml", env=env).stdout)
    assert document[0]["id"] == json.loads(run(*here, "get", "targets", "-o", "json", env=env).stdout)[0]["id"]
