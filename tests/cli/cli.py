#!/usr/bin/python3
"""cli.py ALERTSCALER ROOT: the command line as scripts and people use it; and docs/decision.md against the program."""
import json
import os
import pathlib
import re
import resource
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

PROGRAM, ROOT = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
VALID = {
    "v": 1,
    "now": "2026-11-20T10:00:00Z",
    "target": {"max": 10},
    "observed": {"replicas": 3},
    "proposals": [{"rule": "slow", "action": {"scale_up": {"by": 2}}}],
}


def run(*arguments, data=b"", **more):
    return subprocess.run([PROGRAM, *arguments], input=data, capture_output=True, check=False, timeout=120, **more)


def decide(data):
    done = run("decide", data=data if isinstance(data, bytes) else data.encode())
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr.decode()


class Commands(unittest.TestCase):
    def test_without_a_command_the_list_and_status_2(self):
        done = run()
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertIn(b"decide", done.stderr)

    def test_help_lists_all_commands_and_explains_each(self):
        done = run("help")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        names = re.findall(r"^  (\S+(?: \S+)?)  ", done.stdout.decode(), re.MULTILINE)
        self.assertIn("decide", names)
        for name in names:
            text = run(*name.split(), "--help")
            self.assertEqual((text.returncode, text.stderr), (0, b""), name)
            self.assertTrue(text.stdout.startswith(b"Usage: alertscaler " + name.encode()), name)
            self.assertEqual(run("help", *name.split()).stdout, text.stdout)

    def test_help_for_programs(self):
        commands = {command["name"]: command for command in json.loads(run("help", "-o", "json").stdout)}
        self.assertIn("log verify", commands)
        self.assertEqual(json.loads(run("help", "log", "verify", "-o", "json").stdout), commands["log verify"])
        (output,) = (option for option in commands["version"]["options"] if option["name"] == "output")
        self.assertEqual(output, {"name": "output", "value": "FORMAT", "default": "text", "repeats": False, "letter": "o",
                                  "choices": ["text", "json"], "help": "text for people or json for programs"})

    def test_each_command_that_prints_a_table_has_o(self):
        without = {"completion", "convert", "convert cluster-autoscaler", "decide", "init", "kill-switch", "notify test", "reload", "schema", "serve"}
        for command in json.loads(run("help", "-o", "json").stdout):
            letters = {option["letter"] for option in command["options"]}
            self.assertEqual("o" in letters, command["name"] not in without, command["name"])

    def test_check_has_the_option_of_other_commands(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "rules.yaml").write_text("targets: {}\nrule: []\n", encoding="utf-8")
            done = run("check", "-o", "json", "rules.yaml", cwd=folder)
            self.assertEqual(json.loads(done.stdout), json.loads(run("check", "--format=json", "rules.yaml", cwd=folder).stdout))

    def test_a_wrong_command_or_option_gets_a_hint_and_status_2(self):
        for arguments, hint in (
            (["decid"], b'did you mean "decide"?'),
            (["xyzzy"], b'unknown command "xyzzy"'),
            (["top"], b'unknown command "top"; did you mean "status --watch"?\n'),
            (["gte"], b'did you mean "get"?'),
            (["lgo"], b'did you mean "log"?'),
            (["cat"], b'unknown command "cat"\n'),
            (["version", "--outptu=json"], b"did you mean --output?"),
            (["version", "--output=yaml"], b'"yaml" is not one of text, json\n'),
            (["version", "--output=jsno"], b'"jsno" is not one of text, json; did you mean "json"?\n'),
            (["help", "sattus"], b'there is no command "sattus"; did you mean "status"?\n'),
            (["help", "cat"], b'there is no command "cat"\n'),
            (["schema", "rule"], b'log or crd; did you mean "rules"?\n'),
            (["completion", "bsh"], b'expected bash, zsh or fish, or a kind of names; did you mean "bash"?\n'),
            (["log", "--reason=scald"], b'there is no reason code "scald"; did you mean "scaled"?\n'),
            (["a\x1b[31mb"], b'unknown command "a\\x1b[31mb"\n'),
            (["version", "--a\x1b[31mb"], b'unknown option --a\\x1b[31mb\n'),
            (["decide", "file"], b'unexpected argument "file"'),
        ):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, b""), arguments)
            self.assertIn(hint, done.stderr)

    def test_log_suggests_a_name_if_nothing_matches(self):
        log = str(ROOT / "tests/golden/log/actions.jsonl")
        for arguments, status, said in (
            (["--target=wbe"], 1, 'alertscaler log: no record matches the target "wbe"; did you mean "web"?\n'),
            (["--rule=bsuy"], 1, 'alertscaler log: no record matches the rule "bsuy"; did you mean "busy"?\n'),
            (["--target=far-from-all"], 1, ""),
            (["--target=web", "--until=2020-01-01"], 1, ""),
            (["--target=web"], 0, ""),
        ):
            done = run("log", log, *arguments)
            self.assertEqual((done.returncode, done.stderr.decode()), (status, said), arguments)

    def test_other_names_are_suggested_too(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            (path / "alertscaler.yaml").write_text("rule_files: [rules.yaml]\nprometheus: {url: 'http://127.0.0.1:1'}\n"
                                                   "notify: [{name: slack, webhook: {url: 'http://127.0.0.1:1'}, on: [failed]}]\n", encoding="utf-8")
            (path / "rules.yaml").write_text("targets: {web: {kubernetes: {kind: Deployment, namespace: shop, name: web}, max: 9}}\n",
                                             encoding="utf-8")
            for arguments, said in (
                (["notify", "test", "slcak"], 'under `notify`; there is slack; did you mean "slack"?\n'),
                (["backtest", "--rules=rules.yaml", "--prometheus=http://127.0.0.1:1", "--from=1h", "--target=wbe=up"],
                 'the rules have no target "wbe"; did you mean "web"?\n'),
            ):
                done = run(*arguments, cwd=folder)
                self.assertEqual(done.returncode, 2, done)
                self.assertIn(said, done.stderr.decode())

    def test_version_names_the_libraries(self):
        text, answer = run("--version"), json.loads(run("version", "-o", "json").stdout)
        self.assertEqual(text.returncode, 0)
        self.assertTrue(text.stdout.decode().startswith(f"alertscaler {answer['version']} (revision {answer['revision']})"))
        self.assertLessEqual({"jansson", "libcurl", "libevent", "openssl", "pcre2", "sqlite"}, set(answer["libraries"]))

    def test_output_that_cannot_be_written_is_status_2(self):
        with open("/dev/full", "wb") as full:
            for command in (["version"], ["decide"]):
                done = subprocess.run(
                    [PROGRAM, *command],
                    input=json.dumps(VALID).encode(),
                    stdout=full,
                    stderr=subprocess.PIPE,
                    check=False,
                )
                self.assertEqual(done.returncode, 2)
                self.assertIn(b"cannot write the output", done.stderr)


class Completion(unittest.TestCase):
    def complete(self, *words, **more):
        """What bash offers for the last of the words."""
        with tempfile.NamedTemporaryFile("wb") as script:
            script.write(run("completion", "bash").stdout)
            script.flush()
            quoted = " ".join(f"'{word}'" for word in words)
            line = " ".join(words).replace(" = ", "=")
            code = (f"compopt() {{ :; }}; . {script.name}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; COMP_LINE='{line}'; "
                    "_alertscaler; printf '%s\\n' \"${COMPREPLY[@]}\"")
            return subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True, **more).stdout.split("\n")[:-1]

    def offer(self, *names):
        """A program in PATH that prints these names, and the file with its arguments."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name)
        (path / "names").write_text("".join(name + "\n" for name in names), encoding="utf-8")
        program = path / "alertscaler"
        program.write_text(f'#!/bin/sh\necho "$@" >> {path}/asked\ncat {path}/names\n', encoding="utf-8")
        program.chmod(0o755)
        return path, {"cwd": path, "env": {**os.environ, "PATH": f"{path}:{os.environ['PATH']}", "HOME": "/home/me"}}

    def test_bash_completes_commands_options_and_values(self):
        self.assertEqual(self.complete("alertscaler", "dec"), ["decide"])
        self.assertIn("version", self.complete("alertscaler", ""))
        self.assertEqual(self.complete("alertscaler", "version", "--o"), ["--output="])
        self.assertEqual(self.complete("alertscaler", "version", "--output", "=", "j"), ["json"])
        self.assertEqual(self.complete("alertscaler", "version", "--output", "="), ["text", "json"])
        self.assertEqual(self.complete("alertscaler", "version", "--output", "te"), ["text"])

    def test_bash_completes_names_from_the_daemon(self):
        folder, more = self.offer("web", "worker", "search", "a:b")
        for words, offered, asked in (
            (["status", "w"], ["web", "worker"], "completion targets"),
            (["pause", ""], ["web", "worker", "search"], "completion targets"),
            (["pause", "--context", "=", "shop", "se"], ["search"], "completion targets --context=shop"),
            (["pause", "--url", "http://h", "--token-file", "~/t", "se"], ["search"], "completion targets --url=http://h --token-file=/home/me/t"),
            (["status", "--context", "=", "w"], ["web", "worker"], "completion contexts"),
            (["--context", "=", "w"], ["web", "worker"], "completion contexts"),
            (["--context", "w"], ["web", "worker"], "completion contexts"),
            (["--context", "=", "shop", "status", "se"], ["search"], "completion targets --context=shop"),
            (["--context", "shop", "status", "se"], ["search"], "completion targets --context=shop"),
            (["get", "rules", "w"], ["web", "worker"], "completion rules"),
            (["get", "policies", "w"], ["web", "worker"], "completion policies"),
            (["describe", "target", "w"], ["web", "worker"], "completion targets"),
            (["log", "--rule", "=", "w"], ["web", "worker"], "completion rules"),
            (["log", "--reason", "w"], ["web", "worker"], "completion reasons"),
        ):
            with self.subTest(words=words):
                (folder / "asked").unlink(missing_ok=True)
                self.assertEqual(self.complete("alertscaler", *words, **more), offered)
                self.assertEqual((folder / "asked").read_text(encoding="utf-8").strip(), asked)

    def test_bash_completes_words_around_names(self):
        self.assertEqual(self.complete("alertscaler", "get", "r"), ["rules"])
        self.assertEqual(self.complete("alertscaler", "describe", ""), ["target"])
        self.assertEqual(self.complete("alertscaler", "--c"), ["--context="])
        self.assertEqual(self.complete("alertscaler", "--context", "shop", "dec"), ["decide"])
        self.assertNotIn("--context=", self.complete("alertscaler", ""))

    def test_no_shell_expands_a_name(self):
        names = ["$(touch pwned)", "`touch pwned`", "w;touch pwned", "w*", "w b"]
        folder, more = self.offer(*names)
        self.assertEqual(self.complete("alertscaler", "status", "", **more), names)
        for shell in ("zsh", "fish"):
            if not shutil.which(shell):
                continue
            script = run("completion", shell).stdout.decode()
            code = {"zsh": script.split("_alertscaler()\n")[0] + "_alertscaler_line=(alertscaler status '')\ncompadd() { print -rl -- $found }\n"
                           "_alertscaler_names targets",
                    "fish": script + "complete -C 'alertscaler status '"}[shell]
            command = [shell, "-f", "-c", code] if shell == "zsh" else [shell, "--no-config", "-c", code]
            done = subprocess.run(command, capture_output=True, text=True, check=True, **more)
            self.assertEqual(sorted(row for row in done.stdout.splitlines() if "touch" in row or row.startswith("w"))[:1] != [], True, done)
        self.assertFalse((folder / "pwned").exists())

    def test_reasons_need_no_daemon(self):
        done = run("completion", "reasons")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertIn(b"cooldown\n", done.stdout)

    def test_zsh_accepts_its_script(self):
        script = run("completion", "zsh")
        self.assertEqual(script.returncode, 0)
        self.assertTrue(script.stdout.startswith(b"#compdef alertscaler\n"))
        if shutil.which("zsh"):
            subprocess.run(["zsh", "-n", "/dev/stdin"], input=script.stdout, check=True)

    def test_fish_completes_commands_options_and_values(self):
        script = run("completion", "fish")
        self.assertEqual(script.returncode, 0)
        if not shutil.which("fish"):
            self.skipTest("fish is not installed")

        def complete(line):
            code = script.stdout.decode() + f"complete -C '{line}'"
            with tempfile.TemporaryDirectory() as home:
                done = subprocess.run(["fish", "--no-config", "-c", code], capture_output=True, text=True, check=True, cwd=home,
                                      env={**os.environ, "HOME": home})
            self.assertEqual(done.stderr, "")
            return [row.split("\t")[0] for row in done.stdout.splitlines()]

        self.assertEqual(complete("alertscaler deci"), ["decide"])
        self.assertIn("--output", complete("alertscaler version --"))
        self.assertEqual(complete("alertscaler version --output te"), ["text"])
        self.assertIn("verify", complete("alertscaler log v"))
        self.assertIn("--state", complete("alertscaler log verify --s"))
        self.assertNotIn("--state", complete("alertscaler log --s"))
        self.assertEqual(complete("alertscaler get ru"), ["rules"])
        self.assertEqual(complete("alertscaler describe t"), ["target"])

    def test_another_shell_is_status_2(self):
        self.assertEqual(run("completion", "csh").returncode, 2)


class Servers(unittest.TestCase):
    """What check says of the URL of Prometheus."""
    def check(self, url):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "alertscaler.yaml").write_text(
                f"rule_files: []\nreceiver: {{users: [{{name: a}}]}}\nprometheus: {{url: '{url}'}}\n", encoding="utf-8")
            return run("check", cwd=folder).stderr.decode()

    def test_a_url_that_is_not_for_queries(self):
        for url, right in (("http://prometheus:9090/api/v1/query", "http://prometheus:9090"),
                           ("http://prometheus:9090/prefix/api/v1/query_range/", "http://prometheus:9090/prefix"),
                           ("http://prometheus:9090/api/v1/", "http://prometheus:9090"),
                           ("http://prometheus:9090/api/v1/write", "http://prometheus:9090"),
                           ("http://mimir/api/v1/push", "http://mimir/prometheus"),
                           ("https://prometheus-prod-01.grafana.net/api/prom/push", "https://prometheus-prod-01.grafana.net/api/prom"),
                           ("http://vminsert:8480/insert/0/prometheus/api/v1/write", "http://vminsert:8480/select/0/prometheus"),
                           ("http://thanos:9090?partial_response=false", "http://thanos:9090")):
            with self.subTest(url=url):
                self.assertIn(f"alertscaler.yaml:3:19: warning: alertscaler adds /api/v1/query to this URL: write {right}\n", self.check(url))
                self.assertNotIn("adds /api/v1/query", self.check(right))


class Check(unittest.TestCase):
    """What check says of credentials, where it depends on a file that only its owner may read."""
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def check(self, configuration, web=None):
        (self.folder / "alertscaler.yaml").write_text(configuration, encoding="utf-8")
        arguments = ["check", "--lint-fatal"]
        if web is not None:
            (self.folder / "web.yml").write_text(web, encoding="utf-8")
            (self.folder / "web.yml").chmod(0o600)
            arguments.append("--web.config.file=web.yml")
        done = run(*arguments, cwd=self.folder)
        return done.returncode, done.stderr.decode()

    def test_users_of_the_web_configuration_are_credentials(self):
        hash_ = "$2y$10$" + "a" * 53
        users = f"basic_auth_users: {{alice: '{hash_}'}}\n"
        self.assertEqual(self.check("rule_files: []\n", users), (0, ""))
        self.assertIn("no credentials are configured", self.check("rule_files: []\n", "")[1])
        named = "receiver: {users: [{name: NAME, permissions: [notify]}]}\n"
        self.assertEqual(self.check(named.replace("NAME", "alice"), users), (0, ""))
        status, said = self.check(named.replace("NAME", "alise"), users)
        self.assertEqual(status, 3)
        self.assertIn("alertscaler.yaml:1:27: warning: web.yml has no user `alise` under basic_auth_users", said)
        self.assertNotIn(hash_, said)


class ExternalUrl(unittest.TestCase):
    """--web.external-url, of the daemon and of check."""
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "alertscaler.yaml").write_text("rule_files: []\n", encoding="utf-8")

    def test_what_cannot_be_used_is_told_by_both(self):
        for url, why in (("https://me:secret@ops.example.org/", "no user name"), ("ops.example.org", "expected http:// or https://")):
            check = run("check", f"--web.external-url={url}", cwd=self.folder)
            self.assertEqual(check.returncode, 1)
            self.assertIn(f'--web.external-url: error: "{url}" cannot be used: ', check.stderr.decode())
            self.assertIn(why, check.stderr.decode())
            serve = run("serve", f"--web.external-url={url}", cwd=self.folder)
            self.assertEqual(serve.returncode, 2)
            self.assertIn(why, serve.stderr.decode())

    def test_check_knows_the_prefix_in_alertmanagers_configuration(self):
        (self.folder / "am.yml").write_text(
            "route: {receiver: scaler}\nreceivers: [{name: scaler, webhook_configs: [{url: 'http://scaler:9096/scaler/webhook'}]}]\n",
            encoding="utf-8")
        for flags, is_ours in (([], False), (["--web.external-url=https://ops.example.org/scaler/"], True),
                               (["--web.route-prefix=scaler"], True),
                               (["--web.external-url=https://ops.example.org/scaler/", "--web.route-prefix=/"], False)):
            done = run("check", "--alertmanager=am.yml", *flags, cwd=self.folder)
            self.assertEqual(b"no receiver has a webhook" not in done.stderr, is_ours, (flags, done.stderr))
        done = run("check", "--web.route-prefix=/a b", cwd=self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"--web.route-prefix: error: ", done.stderr)

    def test_rule_files_alone_are_never_ok_where_they_need_the_configuration(self):
        web = {"kubernetes": {"kind": "Deployment", "namespace": "shop", "name": "web"}, "max": 9}
        east = {**web, "kubernetes": {**web["kubernetes"], "cluster": "east"}}
        group = {"node_group": {"provider": "mine", "url": "http://127.0.0.1:9/x"}, "max": 9}
        up, guard = {"scale_up": {"by": 1}}, {"guard": {"query": "up == 1"}}
        down = {"scale_down": {"by": 1}}
        ends = {"on_resolved": {"give_back": {"after": "10m"}}}
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "rules.yaml"
            for target, rule, needs in (
                    (web, up, "ok"), ({**web, "kubernetes": {**web["kubernetes"], "cluster": "default"}}, up, "ok"),
                    (web, {**down, **guard}, "guards, Prometheus"), (web, {**up, **ends}, "a watchdog"), (group, up, "providers"),
                    (web, {**up, **ends, "guard": "none"}, "ok"), (web, {"track": {"value": 1, "query": "up"}}, "Prometheus"),
                    (east, up, "clusters"), (east, {**up, **ends, **guard}, "guards, Prometheus, clusters")):
                file.write_text(json.dumps({"targets": {"web": target}, "rules": [{"name": "a", "match": ["a=b"], "target": "web", **rule}]}))
                done = run("check", str(file))
                self.assertEqual((done.returncode, done.stderr), (0, b""), rule)
                said = needs if needs == "ok" else f"no error; needs the configuration for: {needs}"
                self.assertEqual(done.stdout.decode().splitlines()[0], f"1 rule file, 1 target, 1 rule: {said}")

    def test_check_accepts_an_address(self):
        done = run("check", "--web.external-url=https://ops.example.org/scaler/", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)


class KillSwitch(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.stop = self.folder / "stop"
        self.configure("rule_files: [broken.yaml]\nkill_switch: {file: stop}\n")
        (self.folder / "broken.yaml").write_text("rules: [\n", encoding="utf-8")

    def configure(self, text):
        (self.folder / "alertscaler.yaml").write_text(text, encoding="utf-8")

    def switch(self, *words):
        done = run("kill-switch", *words, cwd=self.folder)
        return done.returncode, done.stdout.decode() + done.stderr.decode()

    def test_on_makes_the_file_and_off_removes_it_whatever_the_rules_are(self):
        self.assertEqual(self.switch("on", "incident 4711"), (0, "the kill switch is on: stop\n"))
        self.assertEqual(self.stop.read_text(encoding="utf-8"), "incident 4711\n")
        self.assertEqual(self.switch("on")[0], 0)
        self.assertEqual(self.stop.read_text(encoding="utf-8"), "\n")
        for _ in range(2):
            self.assertEqual(self.switch("off"), (0, "the kill switch is off: stop\n"))
            self.assertFalse(self.stop.exists())

    def test_what_it_cannot_do_it_says(self):
        for words in (["of"], ["off", "why"], ["on", "why", "not"], []):
            self.assertEqual(self.switch(*words)[0], 2, words)
        self.configure("kill_switch: {file: missing/stop}\n")
        self.assertEqual(self.switch("on"), (2, "alertscaler kill-switch: missing/stop: No such file or directory\n"))
        self.configure("kill_switch: {file: alertscaler.yaml/stop}\n")
        self.assertIn("Not a directory", self.switch("off")[1])
        self.configure("dry_run: true\n")
        self.assertEqual(self.switch("on"), (2, "alertscaler kill-switch: alertscaler.yaml has no kill_switch.file\n"))
        self.configure("dry_run: [\n")
        self.assertIn("alertscaler.yaml has errors", self.switch("on")[1])

    @unittest.skipIf(os.geteuid() != 0, "only root can make a device")
    def test_a_device_is_not_replaced(self):
        device = self.folder / "full"
        os.mknod(device, stat.S_IFCHR | 0o600, os.makedev(1, 7))
        self.configure("kill_switch: {file: full}\n")
        self.assertEqual(self.switch("on"), (2, "alertscaler kill-switch: full: not a regular file\n"))
        self.assertTrue(device.is_char_device())


class Decide(unittest.TestCase):
    def test_one_answer_a_line_and_status_0(self):
        line = json.dumps(VALID)
        status, answers, errors = decide(line + "\n" + line + "\r\n  " + line)
        self.assertEqual((status, errors), (0, ""))
        self.assertEqual([answer["desired"] for answer in answers], [5, 5, 5])
        self.assertEqual(decide(""), (0, [], ""))

    def test_a_bad_line_is_told_with_its_number_and_the_others_are_answered(self):
        line = json.dumps(VALID)
        status, answers, errors = decide(f"{line}\nnonsense\n\n{line}\n[]\n")
        self.assertEqual(status, 2)
        self.assertEqual([answer.get("desired") for answer in answers], [5, None, None, 5, None])
        told = errors.splitlines()
        self.assertEqual([text.split(":")[0] for text in told], ["line 2", "line 3", "line 5"])
        for text, answer in zip(told, (answers[1], answers[2], answers[4])):
            self.assertEqual(text.split(": ", 1)[1], answer["error"])

    def test_garbage_of_all_kinds_gets_an_error(self):
        valid = json.dumps(VALID)
        for data in (
            b"\xff\xfe",
            b'{"v": "\xc3\x28"}',
            b"\x00\x00",
            valid.encode() + b"\x00",
            valid.replace('"slow"', '"a\\u0000b"').encode(),
            b"[" * 100000,
            valid.replace('"v": 1', '"v": 1, "v": 1').encode(),
            valid.replace("10}", "99999999999999999999}").encode(),
            valid.replace("10}", "1e400}").encode(),
            (valid + valid).encode(),
            valid[:-1].encode(),
            valid.replace("2026-", "0000-").encode(),
            valid.replace("2026-", "99999-").encode(),
            b"null",
            b" ",
        ):
            status, answers, errors = decide(data + b"\n" + valid.encode() + b"\n")
            self.assertEqual(status, 2, data[:80])
            self.assertTrue(answers[0]["error"], data[:80])
            self.assertEqual(answers[1]["desired"], 5, data[:80])
            self.assertTrue(errors.startswith("line 1: "), errors)

    def test_a_line_of_more_than_16_mib_is_an_error_and_the_next_is_answered(self):
        line = json.dumps(VALID)
        padded = line[:-1] + " " * (16 * 2**20 - len(line)) + "}"
        status, answers, errors = decide(f"{padded}\n{padded} \n{line}\n")
        self.assertEqual((status, errors), (2, "line 2: longer than 16 MiB\n"))
        self.assertEqual([answer.get("desired") for answer in answers], [5, None, 5])

    def test_a_line_is_answered_before_the_next_one_comes(self):
        with subprocess.Popen([PROGRAM, "decide"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            for _ in range(3):
                child.stdin.write(json.dumps(VALID).encode() + b"\n")
                child.stdin.flush()
                self.assertEqual(json.loads(child.stdout.readline())["desired"], 5)
            child.stdin.close()
            self.assertEqual(child.wait(timeout=60), 0)

    def test_memory_does_not_grow_with_the_number_of_lines(self):
        line = json.dumps(VALID) + "\n"
        environment = {**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=1:detect_leaks=0"}
        peaks = []
        for count in (1000, 20000):
            run("decide", data=line.encode() * count, env=environment)
            peaks.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
        self.assertLess(peaks[1] - peaks[0], 8 * 1024)


class Documentation(unittest.TestCase):
    text = (ROOT / "docs/decision.md").read_text(encoding="utf-8")

    def test_its_examples_are_what_the_program_says(self):
        examples = re.findall(r"\$ cat (\w+).jsonl\n(.*?\n)\$ alertscaler decide < \1.jsonl\n(.*?\n)```", self.text, re.DOTALL)
        self.assertEqual([name for name, _, _ in examples], ["input", "steps", "pool", "nodes"])
        for name, given, answer in examples:
            self.assertEqual(run("decide", data=given.encode()).stdout.decode(), answer, name)

    def read_table(self, header, name, begin, end):
        """Words and meanings by an X-macro of a header, and the cells of the tables of a part of the page."""
        text = re.sub(r'"\s*\\?\s*"', "", (ROOT / "include/alertscaler/model" / header).read_text(encoding="utf-8"))
        rows = dict(re.findall(rf'X\({name}_\w+, "(\w+)",[\s\\]*"([^"]+)"\)', text))
        lines = self.text.split(begin)[1].split(end)[0].splitlines()
        return rows, [line.split("|")[1:] for line in lines if line.startswith("| `")]

    def test_it_lists_exactly_the_reason_codes_and_says_what_the_program_says(self):
        meanings, cells = self.read_table("reason.h", "AS_REASON", "## Reason codes", "## The gates")
        self.assertEqual(sorted(cell[0].strip(" `") for cell in cells), sorted(meanings))
        for cell in cells:
            self.assertEqual(cell[1].replace("`", "").strip()[: len(meanings[cell[0].strip(" `")])], meanings[cell[0].strip(" `")])


unittest.main(argv=sys.argv[:1], verbosity=1)
