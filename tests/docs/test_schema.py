#!/usr/bin/python3
"""test_schema.py ALERTSCALER ROOT: `alertscaler schema` and `alertscaler check` say the same, over the examples, the files
of tests/golden/config, and random changes of the examples:

- what `check` accepts, the schema accepts;
- what the schema accepts and `check` refuses has only errors of the kinds in ONLY_CHECK, which docs/editors.md lists.
"""
import copy
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import jsonschema
import yaml

from trees import places

ALERTSCALER, ROOT = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve()
MUTATIONS, SEED = 150, 20261124

# The kinds of errors that a schema does not express: the row in docs/editors.md, and what `check` says.
ONLY_CHECK = {
    "how the file is written": r"^anchors \(&\)|^key `\w+` is given twice",
    "names": r"^there is no (target|cluster|provider|rule) |^cannot read |^no rule file is found|is given twice, also at |^the same object as target |"
             r"^kind `|^a kind from a template|has no scale subresource|has no nodes in a cluster|which has no pods|^no file matches|"
             r"^target `.* is a group of pool|^unknown key `\w+` for a provider|: a provider of type \w+ needs it|is not a node group|"
             r"stands at the pool|^the groups of a pool|`\w+` goes with a provider|is measured|^provider `|^credential `",
    "texts with a syntax": r"no operator of matchers|^the quote opened here|^expected (\}\}|\.Labels|a name in double quotes|one of =)|template|"
                           r"^pipes and functions|^an alert gives |^URLs are compared|^expected a URL like http://host/|"
                           r"^expected (a DNS|a kind like|an API version|a cluster's name|a provider's name|a matcher|a label|`|the name of a header|"
                           r"text without control|a Kubernetes|a time like)|an object's name|regular expression|cannot be set here|escape|"
                           r"^expected (a member of|the name of a member|a path)|cannot be set:|^of `metadata` only|is its size already|"
                           r"^a unit of ",
    "keys that go together": r"goes (only )?with |^key `steps` is missing$|go together|are needed both|is the same as `max_steps|is a condition for scaling down|"
                             r"needs `|needs a `|takes one number|^`utilization`|mean nothing unless|without `client_auth_type`|"
                             r"^one of `|^`\w+` or `\w+` is needed|is needed$|fitted by|taken by|expected at least one pattern|only counted where|"
                             r"is for a target with (a )?`|^either `|^`container` is for|reaches no pod|^`template` is for|never shrinks|waits for pods|^no alert may select|`node_group` has no `url`|not among the allowed",
    "ranges": r"^expected a (duration|percentage|size|quantity) (of|from)|^expected at (most|least)|^expected (cores|bytes|a whole number)|"
              r"is below|must be shorter|never counts|^longer than|^earlier than|^later than|^more than|is too long|too large|"
              r"^the size would swing|^one decision cannot use both",
    "lists": r"in the list already|is already in the list|^another pod has this name",
    "rules without an alert": r"^an `always` rule (has no|with a fixed)|and an `always` rule has no alert|^write `always: true`",
    "logins": r"permits writes|secret is sent to this URL|^credentials do not stand in a URL|^expected a role|`\w+` does not stand here|"
              r"^a secret does not stand|: leave `grant_type` out|^expected the name of a parameter",
    "numbers": r"^expected (an integer|a number|true or false).*found `",
}
UNREADABLE = object()


class Core(yaml.SafeLoader):
    """YAML 1.2's core schema, which editors use."""
    yaml_implicit_resolvers = {}


for tag, pattern, first in (("null", r"(~|null|Null|NULL|)", None), ("bool", r"(true|True|TRUE|false|False|FALSE)", None),
                            ("int", r"([-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)", None),
                            ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", None)):
    Core.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), first)


def as_json(value):
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    return [as_json(item) for item in value] if isinstance(value, list) else value


def load(text):
    """UNREADABLE, or what an editor sees."""
    try:
        return as_json(yaml.load(text, Core))  # noqa: S506
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return UNREADABLE


def close(node):
    """The API server refuses, or removes, keys that a definition lacks."""
    if isinstance(node, list):
        return [close(item) for item in node]
    if not isinstance(node, dict):
        return node
    is_map = "properties" in node and node.get("type") == "object"
    return {key: close(value) for key, value in node.items()} | ({"additionalProperties": False} if is_map else {})


def schema_of_policies():
    """Of a policy: the schema of its CustomResourceDefinition."""
    done = subprocess.run([ALERTSCALER, "schema", "crd"], capture_output=True, text=True, check=True)
    (version,) = json.loads(done.stdout)["spec"]["versions"]
    return close(version["schema"]["openAPIV3Schema"])


def schema_of(kind):
    done = subprocess.run([ALERTSCALER, "schema", kind], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def kind_of(file):
    """Of a golden file, by its name and content; None: another program's."""
    content = load(file.read_text(encoding="utf-8", errors="replace"))
    keys = set(content) if isinstance(content, dict) else set()
    if file.name.startswith("web"):
        return "web"
    if file.name.startswith(("alertscaler", "config")) and not keys & {"rules", "targets"}:
        return "config"
    if "kind" in keys:  # a list of objects is none that the API server keeps
        return None if content["kind"] == "List" else "policy"
    foreign = file.name.startswith(("alert", "prom", "a.y", "b.y")) or keys & {"route", "groups"}
    return None if foreign else "rules"


def check(kind, file):
    """The errors of `check`, one line each."""
    words = {"tests": ["test", file], "web": ["check", "--syntax-only", f"--web.config.file={file}"]}
    done = subprocess.run([ALERTSCALER, *words.get(kind, ["check", "--syntax-only", file])], capture_output=True, text=True,
                          errors="replace", check=False, cwd=file.parent, timeout=60)
    errors = re.findall(r"^(\S+?)(?::\d+:\d+)?: error: (.*)$", done.stdout + done.stderr, re.MULTILINE)
    assert bool(errors) == (done.returncode == 1) or kind == "tests", done.stdout + done.stderr
    return [text for name, text in errors if name == str(file)]


def change(rng, content):
    content = copy.deepcopy(content)
    holder, key = rng.choice(places(content))
    how = rng.randrange(4)
    if how == 0:
        del holder[key]
    elif how == 1 and isinstance(holder, dict):
        holder[f"{key}x"] = holder.pop(key)
    elif how == 2:
        holder[key] = [holder[key]]
    else:
        holder[key] = rng.choice([None, True, 0, -1, 1.5, 3, 10**12, "", "x", "a b", "1m", "7%", "500m", [], {}, ["x", 1], {"x": 1}])
    return content


class Schemas(unittest.TestCase):
    maxDiff = None
    schemas = {kind: schema_of(kind) for kind in ("config", "rules", "tests", "web")}
    validators = {kind: jsonschema.Draft202012Validator(schema) for kind, schema in
                  [*schemas.items(), ("policy", schema_of_policies())]}

    def compare(self, kind, file, content):
        """What both say of a file; the kinds of errors that only `check` finds."""
        errors, found = check(kind, file), [error.message for error in self.validators[kind].iter_errors(content)]
        if not errors:
            self.assertEqual(found, [], f"{file}: check accepts what the schema refuses")
        if found or not errors or kind == "policy":  # the definition also has rules of CEL
            return set()
        kinds = set()
        for error in errors:
            of = [name for name, pattern in ONLY_CHECK.items() if re.search(pattern, error)]
            self.assertNotEqual(of, [], f"{file}: the schema accepts it; check says: {error}")
            kinds.add(of[0])
        return kinds

    def test_schemas_are_right(self):
        for schema in self.schemas.values():
            jsonschema.Draft202012Validator.check_schema(schema)
            text = json.dumps(schema)
            for name in re.findall(r'"\$ref": "#/\$defs/([^"]+)"', text):
                self.assertIn(name, schema["$defs"])

    def test_the_manifests_have_the_definition_of_policies(self):
        """alertscaler schema crd > deploy/kubernetes/policies/crd.json; the chart has a link to this file."""
        shipped = (ROOT / "deploy/kubernetes/policies/crd.json").read_text(encoding="utf-8")
        self.assertEqual(json.loads(shipped), schema_of("crd"))
        self.assertEqual((ROOT / "deploy/chart/files/crd.json").resolve(), ROOT / "deploy/kubernetes/policies/crd.json")

    def test_every_key_of_policies_has_a_description(self):
        """`kubectl explain` shows it: one sentence, in the spelling of policies."""
        keys = []

        def walk(path, node):
            for key, member in node.get("properties", {}).items():
                if path or key != "metadata":  # which Kubernetes describes
                    keys.append((f"{path}.{key}", member.get("description", "")))
                walk(f"{path}.{key}", member)
            for inner in ("items", "additionalProperties"):
                if isinstance(node.get(inner), dict):
                    walk(f"{path}[]", node[inner])

        walk("", schema_of_policies())
        self.assertGreater(len(keys), 180)
        self.assertEqual([key for key, about in keys if not re.fullmatch(r"\S.{5,150}\.", about)], [])
        self.assertEqual([key for key, about in keys if re.search(r"`[^`]*_|\S\. \S", about.replace("Live: sizes are set. ", ""))], [])

    def test_golden_files(self):
        kinds, count, refused = set(), 0, 0
        for file in sorted((ROOT / "tests/golden/config").rglob("*.y*ml")):
            kind = kind_of(file)
            content = load(file.read_text(encoding="utf-8", errors="replace"))
            if kind and content is not UNREADABLE and file.is_file():
                count += 1
                kinds |= self.compare(kind, file, content)
                refused += not self.validators[kind].is_valid(content)
        self.assertGreater(count, 150)
        self.assertGreater(refused, 60)

    def examples(self):
        files = {"rules": [*(ROOT / "rules").glob("*.yaml"), *(ROOT / "deploy").glob("*/config/rules.yaml"),
                           *(ROOT / "src/cli/init/rules").glob("*.yaml")],
                 "tests": [*(ROOT / "rules/tests").glob("*.yaml"), *(ROOT / "src/cli/init/tests").glob("*.yaml")],
                 "config": [ROOT / "rules/alertscaler.yaml", *(ROOT / "deploy").rglob("alertscaler.yaml"),
                            ROOT / "src/cli/init/alertscaler.yaml"]}
        files["rules"].remove(ROOT / "rules/alertscaler.yaml")
        return [(kind, file) for kind, list_ in files.items() for file in sorted(list_)]

    def test_examples(self):
        self.assertGreater(len(self.examples()), 35)
        for kind, file in self.examples():
            with self.subTest(file=str(file)):
                found = self.compare(kind, file, load(file.read_text(encoding="utf-8")))
                is_elsewhere = bool({"demo.d", "kind.d"} & set(file.parts)) or file.parts[-2:] == ("config", "alertscaler.yaml")
                self.assertEqual(found, {"names"} if is_elsewhere else set())  # the rules stand in another folder

    def test_first_lines_lead_to_the_schemas(self):
        for kind, file in self.examples():
            first = file.read_text(encoding="utf-8").splitlines()[0]
            found = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)
            self.assertTrue(found, file)
            if "init" not in file.parts:  # tests/cli/first.py: the folder that `init` makes
                self.assertEqual((file.parent / found[1]).resolve(), ROOT / f"docs/schema/{kind}.json", file)

    def test_the_files_are_current(self):
        for kind, schema in self.schemas.items():
            with self.subTest(how=f"alertscaler schema {kind} > docs/schema/{kind}.json"):
                self.assertEqual(json.loads((ROOT / f"docs/schema/{kind}.json").read_text(encoding="utf-8")), schema)

    def test_what_a_schema_cannot_say_is_documented(self):
        page = (ROOT / "docs/editors.md").read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"^\| ([^|]+?) \|", page.split("## What only `check` finds")[1].split("\n## ")[0], re.MULTILINE)[1:],
                         list(ONLY_CHECK))

    def test_random_changes(self):
        """Of examples, as JSON: each is either accepted by both, or refused by both, or refused by `check` for a kind of reason
        that no schema has."""
        rng, outcomes = random.Random(SEED), []
        examples = [(kind, file, load(file.read_text(encoding="utf-8"))) for kind, file in self.examples() if kind != "config"]
        with tempfile.TemporaryDirectory() as folder:
            copied = pathlib.Path(folder) / "root"
            for name in ("rules", "deploy/kubernetes", "deploy/kubernetes-ha", "src/cli/init"):
                shutil.copytree(ROOT / name, copied / name)
            for _ in range(MUTATIONS):
                kind, file, content = rng.choice(examples)
                content = change(rng, content)
                changed = (copied / file.relative_to(ROOT)).with_name("changed.yaml")
                changed.write_text(json.dumps(content), encoding="utf-8")
                self.compare(kind, changed, content)
                changed.unlink()
                outcomes.append(self.validators[kind].is_valid(content))
        self.assertGreater(outcomes.count(True), MUTATIONS // 10)
        self.assertGreater(outcomes.count(False), MUTATIONS // 3)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
