#!/usr/bin/python3
"""test_examples.py ALERTSCALER ROOT: what the pages show works.

Every block of YAML in docs/ and in the README is tried with the program that it is for: rule files and configurations are
loaded by `alertscaler check`, tests are run by `alertscaler test`, files of Prometheus and Alertmanager are checked by their
own tools. A part of a file (`behavior:`, `track:`, ...) is put into a whole one first.

A block that begins with a comment that is a file name (`# web.yaml`) becomes that file; the numbers that a page says of it
are those of tests/docs/recipes.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

ALERTSCALER, ROOT = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md"])
BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
RECIPES = re.compile(r"docs/from-|docs/choosing-times|docs/fields|README")     # pages that say numbers
NAME = re.compile(r"# ([\w.-]+\.yaml)$")

# The keys at the top of a block that tell what it is.
TARGET_KEYS = set("kubernetes node_group nodes min max cooldown behavior enforce_bounds tolerance allow after".split())
RULE_KEYS = set("match receivers scale_up scale_down scale_to track pass_through hold fallback on_resolved every max_steps once guard".split())
ACTIONS = set("scale_up scale_down scale_to track pass_through hold".split())
WEB_KEYS = set("tls_server_config http_server_config basic_auth_users".split())
MANIFESTS = set("apiVersion metrics triggers fallback node_groups".split())


class Block:
    def __init__(self, page, line, text):
        self.where, self.text = f"{page.relative_to(ROOT)}:{line}", text
        name = NAME.match(text.split("\n", 1)[0])
        self.name = name and name[1]
        self.keys = set().union(*yaml.safe_load_all(text))  # of all documents of a manifest
        self.kind = self.get_kind()

    def get_kind(self):
        if "apiVersion" in self.keys:
            return "policy" if "kind: ScalingPolicy\n" in self.text else "manifest"
        if "tests" in self.keys:
            return "tests"
        if self.keys & {"targets", "rules"}:
            return "rules"
        if "contexts" in self.keys:
            return "client"
        if "groups" in self.keys:
            return "alerts"
        if "scrape_configs" in self.keys:
            return "prometheus"
        if self.keys & {"route", "receivers"} and "match" not in self.keys:
            return "alertmanager"
        if self.keys <= WEB_KEYS:
            return "web"
        if self.keys & MANIFESTS:
            return "manifest"
        if self.keys <= TARGET_KEYS:
            return "target"
        if self.keys <= RULE_KEYS:
            return "rule"
        return "configuration"


def read_blocks():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            yield Block(page, text.count("\n", 0, match.start()) + 2, match[1])


def indent(text, by):
    return "".join(" " * by + line + "\n" for line in text.splitlines())


def complete_target(block):
    bound = "" if "max" in block.keys else "    max: 100\n"
    address = "" if block.keys & {"kubernetes", "node_group"} else "    kubernetes: {kind: Deployment, namespace: shop, name: part}\n"
    return ("targets:\n  part:\n" + address + bound + indent(block.text, 4)
            + "rules:\n  - {name: part, match: [a=b], target: part, scale_up: {by: 1}}\n")


def complete_rule(block):
    match = "" if "match" in block.keys else "    match: [a=b]\n"
    action = "" if block.keys & ACTIONS else "    scale_down: {by: 1}\n"
    return ("targets:\n  part:\n    kubernetes: {kind: Deployment, namespace: shop, name: part}\n    max: 100\nrules:\n"
            "  - name: part\n    target: part\n" + match + action + indent(block.text, 4))


def find_routes_to_us(route, above=()):
    """Labels that lead to each route to alertscaler: its matchers are equalities in the pages."""
    labels = [*above, *(re.fullmatch(r'(\w+)="?([^"]*)"?', matcher).expand(r"\1=\2") for matcher in route.get("matchers", []))]
    if route.get("receiver") == "alertscaler":
        yield labels
    for child in route.get("routes", []):
        yield from find_routes_to_us(child, labels)


def find_queries(value):
    """Every PromQL query in what was read from a file."""
    if isinstance(value, list):
        for item in value:
            yield from find_queries(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "query" and isinstance(item, str):
                yield item
            else:
                yield from find_queries(item)


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.blocks = list(read_blocks())
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        for block in cls.blocks:
            if block.name:
                (cls.folder / block.name).write_text(block.text, encoding="utf-8")
        shutil.copytree(ROOT / "tests/docs/recipes", cls.folder / "recipes")
        (cls.folder / "rules").mkdir(exist_ok=True)  # of `rule_files: [rules/*.yaml]`
        (cls.folder / "rules/none.yaml").write_text("rules: []\n", encoding="utf-8")

    def run_tool(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder)
        self.assertEqual(done.returncode, 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
        return done

    def try_blocks(self, kind, *command, complete=lambda block: block.text):
        blocks = [block for block in self.blocks if block.kind == kind]
        self.assertGreater(len(blocks), 0)
        for block in blocks:
            with self.subTest(block.where):
                file = self.folder / (block.name or "block.yaml")
                file.write_text(complete(block), encoding="utf-8")
                self.run_tool(*command, file.name)

    def test_rule_files(self):
        self.try_blocks("rules", ALERTSCALER, "check")

    def test_policies(self):
        self.try_blocks("policy", ALERTSCALER, "check")

    def test_configurations(self):
        self.try_blocks("configuration", ALERTSCALER, "check", "--syntax-only")

    def test_client_files(self):
        def put(block):
            (self.folder / "alertscaler").mkdir(exist_ok=True)
            (self.folder / "alertscaler/config.yaml").write_text(block.text, encoding="utf-8")
            return block.text
        # a request that nobody answers: an error of the file would be named first
        self.try_blocks("client", "sh", "-c", f"XDG_CONFIG_HOME=\"$PWD\" '{ALERTSCALER}' reload --context=staging 2>&1 | grep '(is the daemon running?'",
                        complete=put)

    def test_web_configurations(self):
        for name in ("server", "clients"):
            self.run_tool("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                          "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.crt")
        self.try_blocks("web", ALERTSCALER, "check", "--web.config.file")

    def test_parts_of_targets(self):
        self.try_blocks("target", ALERTSCALER, "check", complete=complete_target)

    def test_parts_of_rules(self):
        self.try_blocks("rule", ALERTSCALER, "check", complete=complete_rule)

    def test_tests(self):
        shutil.copytree(ROOT / "rules", self.folder / "rules", dirs_exist_ok=True)
        self.addCleanup(shutil.rmtree, self.folder / "rules")
        self.try_blocks("tests", ALERTSCALER, "test")

    def test_alerts(self):
        self.try_blocks("alerts", "promtool", "check", "rules")

    def test_files_of_prometheus(self):
        self.try_blocks("prometheus", "promtool", "check", "config", "--syntax-only")

    def test_files_of_alertmanager(self):
        def complete(block):
            both = {"route": {"receiver": "people"}, "receivers": [{"name": "people"}, {"name": "alertscaler"}]}
            given = yaml.safe_load(block.text)
            both.update(given)
            both["route"].setdefault("receiver", both["receivers"][0]["name"])
            return yaml.safe_dump(both)
        self.try_blocks("alertmanager", "amtool", "check-config", complete=complete)

    def test_people_are_told_too(self):
        """What alertscaler gets by a route in the pages, people get as well: Alertmanager's own tool says so."""
        files = {block.where: block.text for block in self.blocks if block.kind == "alertmanager" and "route" in block.keys}
        demo = ROOT / "deploy/demo.d/alertmanager.yml"
        files[str(demo.relative_to(ROOT))] = demo.read_text(encoding="utf-8")
        self.assertGreater(len(files), 3)
        for where, text in files.items():
            given = yaml.safe_load(text)
            (self.folder / "alertmanager.yml").write_text(text, encoding="utf-8")
            for labels in find_routes_to_us(given["route"]):
                with self.subTest(where, labels=labels):
                    said = self.run_tool("amtool", "config", "routes", "test", "--config.file=alertmanager.yml", *labels)
                    receivers = said.stdout.strip().split(",")
                    self.assertIn("alertscaler", receivers)
                    self.assertNotEqual(set(receivers), {"alertscaler"}, "nobody else hears of it")

    def test_queries_are_promql(self):
        texts = [block.text for block in self.blocks if block.kind in ("rules", "rule", "target")]
        texts += [file.read_text(encoding="utf-8") for file in (ROOT / "rules").glob("*.yaml")]
        queries = sorted({query for text in texts for query in find_queries(list(yaml.safe_load_all(text)))})
        self.assertGreater(len(queries), 20)
        rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(queries)]
        (self.folder / "queries.yaml").write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}), encoding="utf-8")
        self.run_tool("promtool", "check", "rules", "queries.yaml")

    def test_providers(self):
        """Each page is a configuration with its rule files; a page that is about no provider has rule files alone."""
        pages = sorted((ROOT / "docs/providers").glob("*.md"))
        self.assertGreater(len(pages), 3)
        for page in pages:
            folder = self.folder / "providers" / page.stem
            blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
            with self.subTest(page.name):
                self.assertEqual("# alertscaler.yaml" in "".join(blocks), bool(re.search(r"\btype: \w", "".join(blocks))))
            for number, text in enumerate(blocks):
                name = re.match(r"# ([\w./-]+\.yaml)\n", text)
                file = folder / (name[1] if name else f"{number}.yaml")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            for file in [folder / "alertscaler.yaml"] if (folder / "alertscaler.yaml").exists() else folder.glob("*.yaml"):
                with self.subTest(page.name):
                    self.run_tool(ALERTSCALER, "check", "--syntax-only", file)

    def test_tables_are_tables(self):
        """A line of text right above a table makes the table a part of the text."""
        for path in sorted((ROOT / "docs").rglob("*.md")):
            text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
            self.assertIsNone(re.search(r"(?m)^[^|\n][^\n]*\n\|", text), path)

    def test_names_are_given_once(self):
        names = [block.name for block in self.blocks if block.name]
        self.assertEqual(sorted(names), sorted(set(names)))


class Numbers(unittest.TestCase):
    """What a page says of its rule files, and what rules/ promises."""
    setUpClass = classmethod(Examples.setUpClass.__func__)
    run_tool = Examples.run_tool

    def test_numbers_of_recipes(self):
        files = sorted((self.folder / "recipes").glob("*.yaml"))
        self.assertGreater(len(files), 5)
        for file in files:
            with self.subTest(file.name):
                self.run_tool(ALERTSCALER, "test", f"recipes/{file.name}")

    def test_every_recipe_has_its_numbers_tested(self):
        named = {block.name for block in self.blocks if block.name and block.kind == "rules" and RECIPES.match(block.where)}
        shown = {path.name for block in self.blocks if block.kind == "tests"
                 for path in map(pathlib.Path, yaml.safe_load(block.text).get("rule_files", []))}
        tested = {path.name for path in (self.folder / "recipes").glob("*.yaml")}
        self.assertEqual(named - tested - shown, set())

    def test_every_rule_file_is_tested(self):
        tested = set()
        for file in sorted((ROOT / "rules/tests").glob("*.yaml")):
            with self.subTest(file.name):
                self.run_tool(ALERTSCALER, "test", file)
            tested.update(pathlib.Path(name).name for name in yaml.safe_load(file.read_text(encoding="utf-8"))["rule_files"])
        rules = {file.name for file in (ROOT / "rules").glob("*.yaml")} - {"alertscaler.yaml"}
        self.assertEqual(rules, tested)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
