#!/usr/bin/python3
"""test_documents.py ALERTSCALER ROOT: the documents that the program reads and writes, their JSON Schemas and their pages.

- `alertscaler schema` prints the files in docs/.
- What `alertscaler decide` accepts, the schema of decisions accepts; what it prints, the schema of answers accepts.
- Records of golden logs, of every version, are valid by the schema of the log.
- docs/decision.md and docs/action-log.md name each member that the schemas have, and no other.
"""
import copy
import json
import pathlib
import random
import re
import subprocess
import sys
import unittest

import jsonschema

from trees import places

ALERTSCALER, ROOT = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve()
FILES = {"decision": "docs/schema/decision.json", "decision-answer": "docs/schema/decision-answer.json", "log": "docs/action-log.schema.json"}
MUTATIONS, SEED = 2000, 20261127
VALUES = [True, 0, -1, 1.5, 3, 10**12, "", "x", "up", "7%", "2026-11-20T10:00:00Z", "00000000000000a1", [], {}, ["x", 1], [[0, 1]], {"x": 1}]


def run(*words, text=None):
    return subprocess.run([ALERTSCALER, *words], input=text, capture_output=True, text=True, check=False, timeout=120)


def schema_of(kind):
    return json.loads(run("schema", kind).stdout)


def resolve(root, schema):
    return resolve(root, root["$defs"][schema["$ref"].split("/")[-1]]) if "$ref" in schema else schema


def members_of(root, schema, path=()):
    """The paths of all members. Lists add nothing to a path."""
    schema = resolve(root, schema)
    found = set()
    for name, value in schema.get("properties", {}).items():
        found |= {(*path, name)} | members_of(root, value, (*path, name))
    if isinstance(schema.get("items"), dict):
        found |= members_of(root, schema["items"], path)
    for form in schema.get("anyOf", []):
        found |= members_of(root, form, path)
    return found


def keys_of_json(value, path):
    if isinstance(value, list):
        return {key for item in value for key in keys_of_json(item, path)}
    if not isinstance(value, dict):
        return set()
    return {key for name, item in value.items() for key in {(*path, name)} | keys_of_json(item, (*path, name))}


def keys_of_text(text, path):
    """Members in `{"key", "value": number}` or in an example, which is JSON."""
    found = set()
    for code in re.findall(r"`(\{[^`]*\})`", text):
        try:
            found |= keys_of_json(json.loads(code), path)
        except ValueError:
            found |= {(*path, name) for name in re.findall(r'[{,]\s*"(\w+)"', code)}
    return found


def fields_of(text):
    """The paths in the tables of a part of a page: `target.min`, then `.max` beside it; `...name` is a member of the row before
    without dots, `......name` one of the row before with three."""
    found, bases = set(), {0: [()]}
    for row in re.findall(r"^\| (`.*) \|$", text, re.MULTILINE):
        cell, *others = row.split(" | ")
        paths = []
        for code in re.findall(r"`([^`]+)`", cell):
            depth = (len(code) - len(code.lstrip("."))) // 3
            names = code.lstrip(".").split(".")
            if code.startswith(".") and depth == 0:
                paths.append((*paths[-1][:-1], *names))
                continue
            paths += [(*base, *names) for base in bases[depth]]
            level = depth + 1
        bases = {key: value for key, value in bases.items() if key < level} | {level: paths}
        for path in paths:
            found |= {path[:i + 1] for i in range(len(path))} | {key for other in others for key in keys_of_text(other, path)}
    return found


def part_of(page, heading):
    level = heading.split()[0]
    return re.split(rf"^#{{1,{len(level)}}} ", page.split(f"\n{heading}\n")[1], flags=re.MULTILINE)[0]


def change(rng, document):
    document = copy.deepcopy(document)
    holder, key = rng.choice(places(document))
    how = rng.randrange(5)
    if how == 0:
        del holder[key]
    elif how == 1 and isinstance(holder, dict):
        holder[f"{key}x"] = holder.pop(key)
    elif how == 2:
        # null in place of an object or a list counts as absent for `decide`, which the schema does not say
        other, other_key = rng.choice([(other, key) for other, key in places(document) if other[key] is not None])
        holder[key] = copy.deepcopy(other[other_key])
    else:
        holder[key] = rng.choice(VALUES)
    return document


class Documents(unittest.TestCase):
    maxDiff = None
    schemas = {kind: schema_of(kind) for kind in FILES}
    validators = {kind: jsonschema.Draft202012Validator(schema) for kind, schema in schemas.items()}
    page = (ROOT / "docs/decision.md").read_text(encoding="utf-8")
    log_page = (ROOT / "docs/action-log.md").read_text(encoding="utf-8")

    def test_schemas_are_right(self):
        for schema in self.schemas.values():
            jsonschema.Draft202012Validator.check_schema(schema)
            self.assertEqual(set(re.findall(r'"\$ref": "#/\$defs/([^"]+)"', json.dumps(schema))), set(schema.get("$defs", {})))

    def test_the_files_are_current(self):
        for kind, name in FILES.items():
            with self.subTest(how=f"alertscaler schema {kind} > {name}"):
                self.assertEqual(json.loads((ROOT / name).read_text(encoding="utf-8")), self.schemas[kind])

    def inputs(self):
        lines = [line for line in self.page.splitlines() if line.startswith('{"v"')]
        lines += [file.read_text(encoding="utf-8") for file in sorted((ROOT / "tests/fuzz/corpus/decide").glob("*.json"))]
        records = (json.loads(line) for file in sorted((ROOT / "tests/golden/log").glob("*.jsonl"))
                   for line in file.read_text(encoding="utf-8").splitlines())
        return [json.loads(line) for line in lines] + [record["input"] for record in records if record["kind"] == "decision"]

    def compare(self, inputs):
        """Whether decide accepts each, and whether the schema does."""
        answers = run("decide", text="".join(json.dumps(document) + "\n" for document in inputs)).stdout.splitlines()
        self.assertEqual(len(answers), len(inputs))
        outcomes = []
        for document, answer in zip(inputs, map(json.loads, answers)):
            found = [error.message for error in self.validators["decision"].iter_errors(document)]
            if "error" not in answer:
                self.assertEqual(found, [], f"decide accepts what the schema refuses: {json.dumps(document)}")
                self.assertEqual([error.message for error in self.validators["decision-answer"].iter_errors(answer)], [], answer)
            outcomes.append(("error" not in answer, not found))
        return outcomes

    def test_examples(self):
        outcomes = self.compare(self.inputs())
        self.assertGreater(len(outcomes), 50)
        self.assertEqual([pair for pair in outcomes if not pair[0]], [(False, False)] * 2)  # unneeded_without_node.json, wrong.json

    def test_random_changes(self):
        """Most of what decide refuses, the schema refuses: the rest are conditions between members, and limits of versions."""
        rng, inputs = random.Random(SEED), self.inputs()
        outcomes = self.compare([change(rng, rng.choice(inputs)) for _ in range(MUTATIONS)])
        accepted, refused = [pair for pair in outcomes if pair[0]], [pair for pair in outcomes if not pair[0]]
        self.assertGreater(len(accepted), MUTATIONS // 5)
        self.assertGreater(len(refused), MUTATIONS // 3)
        both = sum(not schema for _, schema in refused)
        self.assertGreater(both, len(refused) * 3 // 4)

    def test_records_of_every_version(self):
        files = sorted([*(ROOT / "tests/golden/log").glob("*.jsonl"), *(ROOT / "tests/golden/upgrade").glob("*/actions.jsonl")])
        records = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
        self.assertGreater(len(records), 150)
        for record in records:
            self.assertEqual([error.message for error in self.validators["log"].iter_errors(record)], [], record)
            for changed in ({**record, "more": 1}, {key: value for key, value in record.items() if key != "seq"}, {**record, "kind": "x"}):
                self.assertFalse(self.validators["log"].is_valid(changed))

    def test_the_page_of_the_log_names_each_member_and_no_other(self):
        schema, common = self.schemas["log"], fields_of(part_of(self.log_page, "## The records").split("\n### ")[0].split("| kind |")[0])
        self.assertEqual({path[0] for path in common}, {"seq", "time", "kind", "instance", "prev", "hash"})
        kinds = schema["properties"]["kind"]["enum"]
        for kind in kinds:
            members = {path for path in members_of(schema, schema["$defs"][kind]) if path[0] not in ("input", "output") or len(path) == 1}
            named = fields_of(part_of(self.log_page, "#### start and stop" if kind in ("start", "stop") else f"#### {kind}"))
            with self.subTest(kind=kind):
                self.assertEqual({".".join(path) for path in members}, {".".join(path) for path in named | common})
        listed = re.findall(r"^\| (\[`.*?`\])\(#", self.log_page, re.MULTILINE)
        self.assertEqual({kind for cell in listed for kind in re.findall(r"`(\w+)`", cell)}, set(kinds))

    def by_reason(self, paths):
        """Objects of counts or scores have words as members: (the objects' paths, the words)."""
        inner = {path for path in paths if len(path) > 1 and path[-2] in ("kept", "scores")}
        return paths - inner, {kind: {path[-1] for path in inner if path[-2] == kind} for kind in ("kept", "scores")}

    def test_the_page_names_each_member_and_no_other(self):
        pool = part_of(self.page, "### What was seen of a pool")
        stay = set(re.findall(r"`(\w+)`", pool.split("Reasons to stay, the first that fits:")[1].split("\n\n")[0]))
        filters = set(re.findall(r"`(\w+)`", re.search(r"^\| `\.\.\.choose` \| .* \| (.*) \|$", pool, re.MULTILINE)[1]))
        for kind, heading in (("decision", "## The input document"), ("decision-answer", "## The output document")):
            schema = self.schemas[kind]
            members, words = self.by_reason(members_of(schema, schema))
            with self.subTest(heading=heading):
                self.assertEqual({".".join(path) for path in members}, {".".join(path) for path in fields_of(part_of(self.page, heading))})
                self.assertEqual(words["kept"], stay)
                if words["scores"]:
                    self.assertEqual(words["scores"], filters)

    def test_the_page_names_each_word(self):
        for kind in ("decision", "decision-answer"):
            text = json.dumps(self.schemas[kind])
            for words in re.findall(r'"enum": \[([^\]]+)\]', text):
                missing = {word for word in json.loads(f"[{words}]") if word and f"`{word}`" not in self.page and f'"{word}"' not in self.page}
                self.assertEqual(missing, set())


class Itself(unittest.TestCase):
    def test_fields_of_a_table(self):
        text = ("| field | type |\n|---|---|\n| `a.b`, `.c` | x |\n| `d` | list of `{\"k\", \"v\": \"w\" or \"x\", \"z\": N}` |\n| `...e`, `...f` | x |\n"
                "| `......g` | `{\"h\": [{\"i\": 1}]}` |\n| `j` | x |\n")
        self.assertEqual({".".join(path) for path in fields_of(text)},
                         {"a", "a.b", "a.c", "d", "d.k", "d.v", "d.z", "d.e", "d.f", "d.e.g", "d.f.g", "d.e.g.h", "d.e.g.h.i", "d.f.g.h", "d.f.g.h.i", "j"})

    def test_members_of_a_schema(self):
        schema = {"properties": {"a": {"$ref": "#/$defs/b"}, "c": {"items": {"anyOf": [{"type": "null"}, {"properties": {"d": {}}}]}}},
                  "$defs": {"b": {"properties": {"e": {}}}}}
        self.assertEqual(members_of(schema, schema), {("a",), ("a", "e"), ("c",), ("c", "d")})


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
