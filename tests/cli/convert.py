#!/usr/bin/python3
"""convert.py ALERTSCALER: `alertscaler convert` as somebody attacks it: with hostile objects, and with folders that cannot be made.

What it makes of good files is in tests/golden/convert; that the sizes are HPA's, in tests/property/convert_property.py."""
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import unittest

import yaml

PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
ALPHABET = re.compile(r"(?:(?:rules|tests)/[a-zA-Z0-9][a-zA-Z0-9._-]*\.yaml|not-carried-over\.txt)\Z")


def hpa(name="web", namespace="shop", metrics=None, **spec):
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name, "namespace": namespace},
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 10, "behavior": {},
                     **({"metrics": metrics} if metrics is not None else {}), **spec}}


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.out = self.folder / "out"

    def write(self, *objects, name="in.yaml"):
        (self.folder / name).write_text(yaml.safe_dump_all(objects), encoding="utf-8")

    def run_convert(self, *arguments, out=None, **more):
        if "LLVM_PROFILE_FILE" in os.environ and ("preexec_fn" in more or "user" in more):
            more["env"] = {**os.environ, "LLVM_PROFILE_FILE": "/dev/null"}
        first, *others = arguments or ("in.yaml",)
        return subprocess.run([PROGRAM, "convert", first, f"--out={out or self.out}", *others], cwd=self.folder, capture_output=True, text=True,
                              errors="backslashreplace", check=False, timeout=280, **more)

    def assert_refused(self, done, message):
        """An error, a reason, and nothing left."""
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn(message, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual([path.name for path in self.folder.rglob(".*")], [])

    def check_result(self):
        """The files have names of the alphabet, and check and test accept them as they are."""
        files = [path for path in self.out.rglob("*") if path.is_file()]
        for path in files:
            self.assertRegex(str(path.relative_to(self.out)), ALPHABET)
        rules, tests = sorted(self.out.glob("rules/*")), sorted(self.out.glob("tests/*"))
        for command in ([PROGRAM, "check", "--lint-fatal", *rules], [PROGRAM, "test", *tests]):
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
            self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
        return rules


def scaled(authentication=None, **metadata):
    trigger = {"type": "prometheus", "metadata": {"serverAddress": "https://prometheus:9090", "query": "sum(x)", "threshold": "5",
                                                  "ignoreNullValues": "false", **metadata}}
    if authentication is not None:
        trigger["authenticationRef"] = authentication
    return {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"scaleTargetRef": {"name": "web"}, "triggers": [trigger]}}


def authentication(kind="TriggerAuthentication", namespace="shop", parameters=(), **identity):
    meta = {"name": "login"} if kind.startswith("Cluster") else {"name": "login", "namespace": namespace}
    return {"apiVersion": "keda.sh/v1alpha1", "kind": kind, "metadata": meta,
            "spec": {"secretTargetRef": [{"parameter": name, "name": "metrics", "key": f"{name}.txt"} for name in parameters],
                     **({"podIdentity": identity} if identity else {})}}


class Logins(Case):
    """A login of KEDA's prometheus trigger: the YAML that a hint shows is what `check` accepts."""
    def convert(self, *objects):
        self.write(*objects)
        shutil.rmtree(self.out, ignore_errors=True)
        done = self.run_convert()
        self.assertEqual(done.returncode, 0, done.stderr)
        hint = re.search(r"alertscaler.yaml says where Prometheus is: `(prometheus: .*?)`", done.stdout).group(1)
        (self.folder / "alertscaler.yaml").write_text(f"rule_files: []\n{hint}\n", encoding="utf-8")
        checked = subprocess.run([PROGRAM, "check", "--syntax-only"], cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        self.check_result()
        return yaml.safe_load(hint)["prometheus"].get("http_config"), done.stdout

    def test_each_login(self):
        ref, file = {"name": "login"}, "/etc/alertscaler/metrics/{}.txt".format
        basic = {"basic_auth": {"username_file": file("username"), "password_file": file("password")}}
        for expected, objects in (
                (None, [scaled()]),
                (None, [scaled(ref), authentication(provider="none")]),
                (basic, [scaled(ref, authModes="basic"), authentication(parameters=["username", "password"])]),
                ({"authorization": {"credentials_file": file("bearerToken")}},
                 [authentication(parameters=["bearerToken"]), scaled(ref, authModes="bearer")]),
                ({**basic, "tls_config": {"ca_file": file("ca"), "insecure_skip_verify": True}},
                 [scaled(ref, authModes="tls, basic", unsafeSsl="true"), authentication(parameters=["username", "password", "ca"])]),
                ({"tls_config": {"cert_file": file("cert"), "key_file": file("key")}},
                 [scaled(ref, authModes="tls"), authentication(parameters=["cert", "key"])]),
                ({"http_headers": {"HEADER": {"files": [file("customAuthValue")]}}},
                 [scaled(ref, authModes="custom"), authentication(parameters=["customAuthHeader", "customAuthValue"])]),
                ({"http_headers": {"X-Scope-OrgID": {"values": ["shop"]}, "X-Api-Key": {"files": ["/etc/alertscaler/X-Api-Key"]}}},
                 [scaled(customHeaders="X-Scope-OrgID=shop,X-Api-Key=hunter2")]),
                ({"authorization": {"credentials_file": "/etc/alertscaler/Authorization"}}, [scaled(customHeaders="Authorization=Bearer hunter2")]),
                ({"sigv4": {"region": "eu-west-1"}}, [scaled(awsRegion="eu-west-1")]),
                ({"sigv4": {"region": "eu-west-1", "role_arn": "arn:aws:iam::123456789012:role/reader"}},
                 [scaled(ref, awsRegion="eu-west-1"), authentication(provider="aws", roleArn="arn:aws:iam::123456789012:role/reader")]),
                ({"sigv4": {}}, [scaled(ref), authentication(provider="aws-eks")]),
                ({"azuread": {"workload_identity": {}}}, [scaled(ref), authentication(provider="azure-workload")]),
                ({"azuread": {"cloud": "AzureChina", "workload_identity": {"client_id": "a-b", "tenant_id": "c-d"}}},
                 [scaled(ref, cloud="AzureChinaCloud"), authentication(provider="azure-workload", identityId="a-b", identityTenantId="c-d")]),
                ({"google_iam": {}}, [scaled(ref), authentication(provider="gcp")]),
                ({"google_iam": {"credentials_file": file("GoogleApplicationCredentials")}},
                 [scaled(ref), authentication(parameters=["GoogleApplicationCredentials"])]),
                ({"google_iam": {}}, [scaled({"name": "login", "kind": "ClusterTriggerAuthentication"}),
                                      authentication(provider="aws"), authentication("ClusterTriggerAuthentication", provider="gcp")]),
                ({"google_iam": {}}, [{"apiVersion": "v1", "kind": "List", "items": [
                    authentication(namespace="other", provider="aws"), authentication(provider="gcp"), scaled(ref)]}])):
            with self.subTest(expected=expected):
                found, said = self.convert(*objects)
                self.assertEqual(found, expected)
                self.assertNotIn("hunter2", said)
                self.assertNotIn("is left to you", said.replace("left to you: HEADER", ""))
                self.assertEqual("Mount Secrets under /etc/alertscaler/: metrics\n" in said, "/metrics/" in str(expected), said)

    def test_a_part_that_is_left_to_a_person(self):
        ref = {"name": "login"}
        for advice, objects in (("its authentication is not in the files: convert both together", [scaled(ref, authModes="basic")]),
                                ("its authentication is not in the files: convert both together", [scaled(ref), authentication(namespace="other")]),
                                ("`authModes` other than basic, bearer, tls and custom", [scaled(ref, authModes="oauth"), authentication()]),
                                ("a pod identity other than aws, azure-workload and gcp", [scaled(ref), authentication(provider="vault")]),
                                ("HEADER: write the text of `customAuthHeader`", [scaled(ref, authModes="custom"), authentication()]),
                                ("put the access key into a profile: docs/sources.md",
                                 [scaled(ref, awsRegion="a"), authentication(parameters=["awsAccessKeyID", "awsSecretAccessKey"])]),
                                ("`customHeaders` that are no names with texts", [scaled(customHeaders="a b=c")])):
            with self.subTest(advice=advice):
                self.assertIn(f"and a part is left to you: {advice}\n", self.convert(*objects)[1])

    def test_another_login_at_the_same_server(self):
        second = scaled(awsRegion="eu-west-1")
        second["metadata"]["name"] = second["spec"]["scaleTargetRef"]["name"] = "other"
        found, said = self.convert(scaled(customHeaders="X-A=b"), second)
        self.assertEqual(found, {"http_headers": {"X-A": {"values": ["b"]}}})
        self.assertIn("its login is `http_config: {sigv4: {region: eu-west-1}}`, but alertscaler has one login for Prometheus", said)


class Folders(Case):
    def setUp(self):
        super().setUp()
        self.write(hpa())

    def test_a_new_folder_and_an_empty_one(self):
        self.assertEqual(self.run_convert().returncode, 0)
        self.check_result()
        empty = self.folder / "empty"
        empty.mkdir(mode=0o750)
        self.assertEqual(self.run_convert(out=f"{empty}/").returncode, 0)
        self.assertEqual(sorted(path.name for path in empty.iterdir()), ["rules", "tests"])
        self.assertEqual(stat.S_IMODE(empty.stat().st_mode), 0o750)

    def test_a_folder_that_is_not_empty_stays_as_it_is(self):
        self.out.mkdir()
        (self.out / "mine").write_text("x")
        self.assert_refused(self.run_convert(), "is not empty: name a new folder, or an empty one")
        self.assertEqual([path.name for path in self.out.iterdir()], ["mine"])

    def test_a_file_and_places_that_are_none(self):
        (self.folder / "file").write_text("x")
        self.assert_refused(self.run_convert(out="file"), "file is no folder")
        self.assert_refused(self.run_convert(out="nowhere/out"), "nowhere/out: no folder can be made beside it")
        self.assert_refused(self.run_convert(out="file/out"), "file/out")
        (self.folder / "link").symlink_to("nowhere")
        self.assert_refused(self.run_convert(out="link"), "link cannot be made")
        self.assertEqual((self.folder / "file").read_text(), "x")

    def test_where_nobody_may_write(self):
        if os.getuid() != 0:
            self.skipTest("only root can become another user")
        self.folder.chmod(0o755)
        # a relative path: nobody may not enter the folders above
        self.assert_refused(self.run_convert(out="out", user="nobody"), "no folder can be made beside it: Permission denied")

    def test_a_file_system_that_takes_no_more(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
        self.assert_refused(self.run_convert(preexec_fn=limit), "File too large")
        self.assertFalse(self.out.exists())

    def test_a_full_disk(self):
        """A file system in memory of 16 KiB, in a namespace of its own."""
        script = ('mkdir small && mount -t tmpfs -o size=16k tmpfs small || exit 99\n"$0" convert in.yaml --out small/out\nstatus=$?\n'
                  'ls -A small\nexit $status')
        self.write(*(hpa(f"web-{i}", scaleTargetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": f"web-{i}"}) for i in range(20)))
        done = subprocess.run(["unshare", "--map-root-user", "--mount", "sh", "-c", script, PROGRAM], cwd=self.folder, capture_output=True,
                              text=True, check=False, timeout=100)
        if done.returncode == 99 or "unshare" in done.stderr:
            self.skipTest(f"no mount namespace here: {done.stderr.strip()}")
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn("No space left on device", done.stderr)

    def test_usage(self):
        done = subprocess.run([PROGRAM, "convert", "in.yaml"], cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (2, "alertscaler convert: --out is missing: the folder to write to\n"))
        self.assert_refused(self.run_convert("in.yaml", "--namespace=A/b"), "--namespace: not the name of a namespace")
        self.assert_refused(self.run_convert("nowhere.yaml"), "nowhere.yaml: error: cannot read this: No such file or directory")
        self.assert_refused(self.run_convert("."), "this is a folder")


class Objects(Case):
    def test_names_lead_to_no_other_place(self):
        for name in ("../up", "/etc/passwd", "..", ".", ".x", "a/b", "a b", "A", "a\nb", "a\x1b[31m", "", "-x", "x.", "ä", "a..b", "{{ .Labels.x }}"):
            with self.subTest(name):
                self.write(hpa(name))
                self.assertEqual(self.run_convert().returncode, 2)
                self.assertFalse(self.out.exists())
                self.write(hpa(namespace=name))
                self.assertEqual(self.run_convert().returncode, 2)
                self.write(hpa(scaleTargetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": name}))
                done = self.run_convert()
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertNotIn("\x1b", done.stderr)

    def test_long_names_are_left_out(self):
        self.write(hpa("a" * 139), hpa("b"))
        done = self.run_convert()
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("the whole object: its name and namespace together have more than 140 characters", done.stdout)
        self.assertEqual([path.name for path in self.check_result()], ["shop.b.yaml"])

    def test_hostile_texts_stay_texts(self):
        """Whatever stands in a selector comes out of the query's string as it went in, and is never a template or PromQL."""
        hostile = ['"} or vector(1) #', "{{ .Labels.x }}", "{{{{", "\\", "\\\"", "line\nbreak", "tab\t", "\x00"[:0] + "nul", "`", "'", "%s%n", "ü\u2028\ufeff",
                   "a|b.*", "- x: y", "# comment", "\x7f\x1b[31m", "}}", "{\\x7b"]
        rules = [{"seriesQuery": "queue", "resources": {"namespaced": False}, "metricsQuery": "sum(<<.Series>>{<<.LabelMatchers>>})"}]
        for operator in ("=", "In"):
            metrics = [{"type": "External", "external": {"metric": {"name": "queue", "selector": (
                {"matchLabels": {"x": text}} if operator == "=" else {"matchExpressions": [{"key": "x", "operator": "In", "values": [text, text]}]})},
                "target": {"type": "Value", "value": 1}}} for text in hostile]
            self.write(hpa(metrics=metrics), {"externalRules": rules})
            self.out = self.folder / f"out-{operator}"
            done = self.run_convert()
            self.assertEqual((done.returncode, done.stdout), (0, f"1 target and {len(hostile)} rules in {self.out}: rules/, tests/\n"))
            (path,) = self.check_result()
            queries = [rule["track"]["query"] for rule in yaml.safe_load(path.read_text(encoding="utf-8"))["rules"]]
            for text, query in zip(hostile, queries, strict=True):
                self.assertNotIn("{{", query)
                literal = re.fullmatch(r'sum\(sum\(queue\{x=~?"(.*)"\}\)\)', query, re.DOTALL)[1]
                read = literal.encode("latin-1", "backslashreplace").decode("unicode_escape")
                escaped = re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", text)
                self.assertEqual(read, text if operator == "=" else f"{escaped}|{escaped}")
            record = {"groups": [{"name": "q", "rules": [{"record": f"q:{i}", "expr": query} for i, query in enumerate(queries)]}]}
            (self.folder / "queries.yaml").write_text(yaml.safe_dump(record), encoding="utf-8")
            done = subprocess.run(["promtool", "check", "rules", "queries.yaml"], cwd=self.folder, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_ten_thousand_documents_and_one_more(self):
        one = (b"---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web-%d, namespace: shop}\nspec: {scaleTargetRef: "
               b"{kind: Deployment, name: web-%d}, maxReplicas: 3, behavior: {}}\n")
        text = b"".join(one % (i, i) for i in range(10001))
        (self.folder / "in.yaml").write_bytes(text)
        self.assert_refused(self.run_convert(), "more than 10000 objects: convert a part at a time")
        (self.folder / "in.yaml").write_bytes(text[:text.index(b"web-300,")] + b"rest}\n")
        self.assertEqual(self.run_convert().returncode, 2)      # the last one is cut
        self.assertFalse(self.out.exists())

    def test_many_documents(self):
        self.write(*(hpa(f"web-{i}", scaleTargetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": f"web-{i}"}) for i in range(300)))
        self.assertEqual(self.run_convert().returncode, 0)
        self.assertEqual(len(self.check_result()), 300)

    def test_aliases_bounds_and_bytes(self):
        bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(8))
        for text, message in ((bomb.encode(), "the file holds more than 1000000 values"), (b"a: " + b"[" * 40 + b"]" * 40, "nested too deeply"),
                              (b"a: &a [*a]", "an alias (*) of what it stands in itself"), (b"\xff\xfe", "not valid UTF-8"), (b"a\x00b", "a NUL byte"),
                              (b"#" * (16 * 2**20 + 1), "16 MiB"), (b"a: [", "not valid YAML")):
            with self.subTest(message):
                (self.folder / "in.yaml").write_bytes(text)
                self.assert_refused(self.run_convert(), message)

    def test_anchors_end_with_their_document(self):
        (self.folder / "in.yaml").write_text("a: &a {b: c}\n---\nd: *a\n")
        self.assert_refused(self.run_convert(), "an alias (*) of what is not named above with &")

    def test_quantities(self):
        for text, goal in (("1e400", 4611686018427387.904), ("0.0000001", 0.001), ("1500m", 1.5), ("2Ki", 2048), ("+3", 3), ("1E3", 1000), (".5", 0.5)):
            with self.subTest(text):
                self.out = self.folder / f"out-{text}"
                self.write(hpa(metrics=[{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": text}}}]))
                done = self.run_convert()
                self.assertEqual(done.returncode, 0, done.stderr)
                (path,) = self.check_result()
                self.assertEqual(yaml.safe_load(path.read_text())["rules"][0]["track"]["average_value"], goal)
        for text in ("-1", "0", "1e-400x", "", "NaN", "Inf", "0x10", "1" * 65, "1 000"):
            with self.subTest(text):
                self.out = self.folder / "bad"
                self.write(hpa(metrics=[{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": text}}}]))
                self.assertEqual(self.run_convert().returncode, 2)

    def test_random_objects_are_refused_or_right(self):
        """Any value anywhere: exit status 0 or 1 with files that pass, or 2 with an error and nothing."""
        numbers = random.Random(7)
        values = [None, -1, 0, 1, 2**31, 2**63, 1e308, "", "x", "{{ x }}", "a\nb", "1e400", [], {}, [1], {"a": "b"}, True, "Disabled", "Pods", "50%"]
        metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}},
                   {"type": "External", "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "7"}}}]
        behavior = {"scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}]},
                    "scaleDown": {"tolerance": "0.1"}}
        statuses = []
        for number in range(150):
            thing = yaml.safe_load(yaml.safe_dump(hpa(metrics=metrics, behavior=behavior, minReplicas=2)))
            node = thing
            while True:     # somewhere in the tree
                key = numbers.choice(list(node) if isinstance(node, dict) else range(len(node)))
                if not isinstance(node[key], (dict, list)) or not node[key] or numbers.random() < 0.15:
                    break
                node = node[key]
            if numbers.random() < 0.2 and isinstance(node, dict):
                del node[key]
            else:
                node[key] = numbers.choice(values)
            self.write(thing, {"externalRules": [{"seriesQuery": "queue", "metricsQuery": "<<.Series>>", "resources": {"namespaced": False}}]})
            self.out = self.folder / f"out-{number}"
            done = self.run_convert()
            statuses.append(done.returncode)
            if done.returncode == 2:
                self.assertRegex(done.stderr, r"in\.yaml:\d+:\d+: error: |nothing to convert", thing)
                self.assertFalse(self.out.exists())
            else:
                self.assertIn(done.returncode, (0, 1), f"{thing}\n{done.stderr}")
        self.assertGreater(statuses.count(0), 10)
        self.assertGreater(statuses.count(2), 10)


class ClusterAutoscaler(Case):
    def run_flags(self, *flags):
        return self.run_convert("cluster-autoscaler", "--", *flags)

    def test_files_and_flags_are_not_mixed(self):
        self.write({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "x"}})
        for arguments in (("in.yaml", "--", "--nodes=1:2:a"), ("--", "in.yaml", "--nodes=1:2:a"), ("in.yaml", "in.yaml", "--", "-v=1")):
            self.assert_refused(self.run_convert("cluster-autoscaler", *arguments), "name files, or flags behind `--`, and not both")
        self.assert_refused(self.run_convert("cluster-autoscaler"), "alertscaler convert cluster-autoscaler")
        self.assert_refused(self.run_convert("cluster-autoscaler", "in.yaml"), "there is nothing to convert in these files")

    def test_more_groups_than_a_pool_has(self):
        groups = [f"--nodes=1:2:group-{i}" for i in range(65)]
        self.assertEqual(self.run_flags("--cloud-provider=aws", *groups[:64]).returncode, 0)
        self.check_result()
        self.out = self.folder / "more"
        self.assert_refused(self.run_flags("--cloud-provider=aws", *groups), "more than 64 node groups: a pool has at most so many")

    def test_random_flags_are_refused_or_right(self):
        numbers = random.Random(7)
        parts = ["a", "workers", "/", ".", "-", "{", "{{", "}", '"', "'", "\\", "%s", ":", "ä", "x" * 200, " ", "#", "&", "*", "true", "~", "https://",
                 "/projects/p/zones/z/instanceGroups/n", ",", "$(", "\n", "\x01", "\x1b[31m"]
        clouds = ["aws", "gce", "azure", "alicloud", "baiducloud", "clusterapi", "digitalocean", "externalgrpc", "magnum"]
        names = ["cluster-name", "expander", "startup-taint", "balancing-ignore-label", "cores-total", "memory-total", "scan-interval",
                 "scale-down-unneeded-time", "max-nodes-total", "max-graceful-termination-sec", "made-up"]
        statuses = []
        for number in range(150):
            def text():
                return "".join(numbers.choice(parts) for _ in range(numbers.randrange(1, 4)))  # noqa: B023
            flags = [f"--cloud-provider={numbers.choice(clouds)}"]
            flags += [f"--nodes={numbers.choice((0, 1, 3))}:{numbers.choice((5, 2**31 - 1))}:{text()}" for _ in range(numbers.randrange(1, 3))]
            if numbers.random() < 0.4:
                flags.append(f"--{numbers.choice(names)}={numbers.choice((text(), '1h', '5', '0:5', '99999h', str(2**31)))}")
            self.out = self.folder / f"out-{number}"
            done = self.run_flags(*flags)
            statuses.append(done.returncode)
            self.assertNotIn("\x1b", done.stdout + done.stderr)
            if done.returncode == 2:
                self.assertRegex(done.stderr, r"flags:\d+:\d+: error: ", flags)
                self.assertFalse(self.out.exists())
            else:
                self.assertIn(done.returncode, (0, 1), f"{flags}\n{done.stderr}")
        self.assertGreater(statuses.count(0), 10)
        self.assertGreater(statuses.count(2), 10)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
