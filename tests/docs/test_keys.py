#!/usr/bin/python3
"""test_keys.py PRINT_KEYS ALERTSCALER ROOT: the reference of the two files users write agrees with the tables in the code:
the same keys with the same types and defaults, in docs/ and in the man pages; and every example loads."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PRINT_KEYS, ALERTSCALER, ROOT = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])

# Where a table of the code stands in the reference: file, heading.
CONFIGURATION, RULES, TESTING = "configuration.md", "rules.md", "testing.md"
PLACES = {
    "test file": (TESTING, "The file"),
    "tests": (TESTING, "`tests[]`"),
    "tests.targets": (TESTING, "`targets.<name>`"),
    "pods": (TESTING, "`pods[]`"),
    "containers": (TESTING, "`containers[]`"),
    "tests.nodes": (TESTING, "`nodes`"),
    "tests.cluster": (TESTING, "`cluster`"),
    "tests.cluster.pods": (TESTING, "`cluster.pods[]`"),
    "tests.cluster.nodes": (TESTING, "`cluster.nodes.<group>`"),
    "requests": (TESTING, "`requests` and `limits`"),
    "tests.input": (TESTING, "`input[]`"),
    "tests.queries": (TESTING, "`queries[]`"),
    "tests.expect": (TESTING, "`expect[]`"),
    "web configuration": (CONFIGURATION, "`web configuration`"),
    "configuration": (CONFIGURATION, "The configuration: `alertscaler.yaml`"),
    "rule file": (RULES, "Top level of the file"),
    "rule": (RULES, "`rules[]`"),
    "target": (RULES, "`targets.<name>`"),
    "scale": (RULES, "`scale_up`, `scale_down`"),
    "source": (RULES, "Sources"),
}
IN_RULES = ("nodes.unneeded pool.cpu pool.memory pool.pod_price pool.at_once "
            "cooldown behavior behavior.scaleUp behavior.scaleDown behavior.policies tolerance nodes.template nodes.template.taints "
            "nodes.health schedules allow.list steps scale_to scale_to.steps track on_resolved on_resolved.scale_down give_back guard fallback").split()
ROW = re.compile(r"^\| `([^`]+)` \|([^|]*)\|([^|]*)\|(.*)\|$")


def place_of(table):
    is_of_rules = table in IN_RULES or table in Keys.code["target"]
    return PLACES.get(table) or (RULES if is_of_rules else CONFIGURATION, f"`{table}`")


def read_code():
    """{table: {key: (type, default)}}, and the same of each type of providers: {type: ...}."""
    tables, providers = {}, {}
    for line in subprocess.run([PRINT_KEYS], capture_output=True, text=True, check=True).stdout.splitlines():
        table, key, kind, default = line.split("\t")
        of, found, name = table.rpartition("provider ")
        (providers.setdefault(name, {}) if found and not of else tables.setdefault(table, {}))[key] = (kind, default)
    return tables, providers


def read_docs(name):
    """{heading: {key: (type, default, meaning)}} of the tables whose second column is the type."""
    headings, heading, header = {}, None, False
    for line in (ROOT / "docs" / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        header = line.startswith("| key | type | default |") or (header and line.startswith("|"))
        match = header and ROW.match(line)
        if match:
            key, kind, default, meaning = match.groups()
            headings.setdefault(heading, {})[key] = (kind.strip().replace("`", ""), default.strip(" `"), meaning.strip())
    return headings


# A hint, and the line that it is about: every target of this kind has it.
HINT_OF_RIGHTS = r".*: hint: fields and resources need rights .*\n(?: .*\n)*"


class Keys(unittest.TestCase):
    maxDiff = None
    code, providers = read_code()
    docs = {name: read_docs(name) for name in (CONFIGURATION, RULES, TESTING)}

    def test_every_table_is_documented_and_no_other(self):
        self.assertGreater(len(self.code), 25)
        found = {(name, heading) for name, headings in self.docs.items() for heading in headings}
        self.assertEqual({place_of(table) for table in self.code}, found)

    def test_keys_types_and_defaults(self):
        for table, keys in self.code.items():
            name, heading = place_of(table)
            with self.subTest(table=table, place=f"{name}: {heading}"):
                documented = {key: row[:2] for key, row in self.docs[name][heading].items()}
                expected = {key: (kind.replace("`", ""), default) for key, (kind, default) in keys.items()}
                self.assertEqual(expected, documented)

    def test_every_provider_is_documented(self):
        """The types in the reference; and a page for each, whose tables name its keys, and which of them are required."""
        documented = set(re.findall(r"`(\w+)`", self.docs[CONFIGURATION]["`providers`"]["type"][2]))
        self.assertEqual(documented, {"http", *self.providers})
        pages = [page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs/providers").glob("*.md"))]
        for kind, keys in self.providers.items():
            page = "".join(text for text in pages if re.search(rf"\btype: {kind}\b", text))
            rows = {key: how for cell, how in re.findall(r"^\|([^|]*)\|([^|]*)\|.*\|$", page, re.MULTILINE)
                    for key in re.findall("`([^`]+)`", cell)}
            with self.subTest(provider=kind):
                self.assertEqual({key for key in keys if key not in rows}, set())
                self.assertEqual({key for key in keys if rows[key].strip() == "required"},
                                 {key for key, (_, default) in keys.items() if default == "required"})

    def test_man_pages_name_every_key(self):
        for page, name in (("alertscaler.yaml.5", CONFIGURATION), ("alertscaler-rules.5", RULES)):
            text = (ROOT / "docs/man" / page).read_text(encoding="utf-8")
            items = set(re.findall(r"^\.It Cm (\S+)", text, re.MULTILINE))
            keys = {key for table, keys in self.code.items() if place_of(table)[0] == name for key in keys}
            self.assertEqual(keys, items, page)

    def test_every_key_has_an_example(self):
        """test_examples.py has them loaded."""
        for name in (CONFIGURATION, RULES):
            blocks = re.findall(r"^```yaml\n(.*?)^```", (ROOT / "docs" / name).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
            shown = set(re.findall(r"(?:^|[\s{,])([\w-]+):", "\n".join(blocks)))
            keys = {(table, key) for table, keys in self.code.items() if place_of(table)[0] == name for key in keys}
            self.assertEqual({(table, key) for table, key in keys if key not in shown}, set(), name)

    def test_links_inside_the_reference_lead_somewhere(self):
        def anchor(heading):
            return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")

        anchors = {name: {anchor(line.lstrip("# ")) for line in (ROOT / "docs" / name).read_text().splitlines()
                          if line.startswith("#")} for name in self.docs}
        for name in self.docs:
            for target, fragment in re.findall(r"\]\(([\w.-]*)#([\w-]+)\)", (ROOT / "docs" / name).read_text()):
                if (target or name) in anchors:
                    self.assertIn(fragment, anchors[target or name], f"{name}: #{fragment}")


class Examples(unittest.TestCase):
    def check(self, file):
        return subprocess.run([ALERTSCALER, "check", "--syntax-only", str(file)], capture_output=True, text=True, check=False)

    def test_every_rule_file_is_right(self):
        files = sorted((ROOT / "rules").glob("*.yaml"))
        self.assertGreater(len(files), 5)
        for file in files:
            done = self.check(file)
            said = re.sub(HINT_OF_RIGHTS, "", done.stderr)
            self.assertEqual((done.returncode, said), (0, ""), f"{file}: {done.stderr}")

    def test_the_rule_files_do_what_their_own_tests_say(self):
        files = sorted((ROOT / "rules/tests").glob("*.yaml"))
        self.assertGreater(len(files), 3)
        for file in files:
            done = subprocess.run([ALERTSCALER, "test", str(file)], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), f"{file}: {done.stdout}{done.stderr}")

    def test_the_example_configuration_names_every_rule_file(self):
        named = (ROOT / "rules/alertscaler.yaml").read_text(encoding="utf-8")
        for file in (ROOT / "rules").glob("*.yaml"):
            if file.name not in ("alertscaler.yaml", "demo.yaml"):
                self.assertIn(f"- {file.name}\n", named)

    def test_yaml_in_the_reference_is_right(self):
        for name in (CONFIGURATION, RULES):
            text = (ROOT / "docs" / name).read_text(encoding="utf-8")
            for block in re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
                if block.startswith(("targets:", "rule_files:")):
                    with tempfile.TemporaryDirectory() as folder:
                        file = pathlib.Path(folder) / "block.yaml"
                        file.write_text(block, encoding="utf-8")
                        (file.parent / "rules").mkdir()
                        (file.parent / "rules/none.yaml").write_text("rules: []\n", encoding="utf-8")
                        done = self.check(str(file))
                    self.assertEqual(done.returncode, 0, f"{name}: {block}{done.stderr}")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
