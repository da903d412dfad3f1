#!/usr/bin/python3
"""public.py ROOT ALERTSCALER NAMES PROGRAM...: every public name of the program is in tests/public/names, and no other.

    ninja -C BUILD-DIRECTORY update-public    writes the present names

A line of the list is a group, a tab and a name. The names come from the code, never from docs/:

- keys of files: `alertscaler schema`, with the words that a key accepts and its default;
- reason codes, other words, metrics, commands, options, exit statuses, HTTP paths: NAMES (names.c), which prints the tables;
- members of documents (action log, decisions, API, stored state, notices, Leases): PROGRAMs, which are unit tests and replays of
  fuzz corpora with a recorder in the JSON writer (recorder.c);
- annotations, taints, labels, field managers, cookies, variables of the environment: constants in the executable.
"""
import concurrent.futures
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

LIST = "tests/public/names"
ADVICE = (f"Public names change only with a line in docs/changelog.md. If {LIST} is to change, run ninja -C BUILD-DIRECTORY update-public "
          "and commit the list with that line.")

# What identifies a document: its group, and members at its top.
FORMS = [
    ("state incident", {"boot", "fingerprint"}),
    ("state intent", {"boot", "action"}),
    ("state target", {"boot", "id", "events"}),
    ("state pause", {"boot", "pause"}),
    ("state notice", {"hash", "phase"}),
    ("state node template", {"allocatable", "capacity"}),
    ("notice", {"specversion", "data"}),
    ("decision input", {"observed", "target", "v"}),
    ("decision output", {"recommendation", "v"}),
    ("answer to a notification", {"alerts", "notification"}),
    ("annotation alertscaler.io/drain", {"at", "cordoned"}),
]
# Documents in a form that others define: Kubernetes' own kinds, patches.
KUBERNETES = {"Lease": "Lease", "ConfigMap": "ConfigMap"}
FOREIGN_KINDS = {"Eviction", "DeleteOptions", "ScalingPolicy"}     # keys_of_crd has the keys of policies
FOREIGN = [{"metadata", "spec"}]

CONSTANTS = re.compile(rb"(?:[a-z0-9-]+\.)*alertscaler\.io/[a-z][a-z0-9-]*|app\.kubernetes\.io/[a-z-]+|fieldManager=[a-z-]+|urn:alertscaler:"
                       rb"|io\.alertscaler\.|__Host-alertscaler|alertscaler-(?:state|lock)[a-z-]*|alertscaler_instance"
                       rb"|ToBeDeletedByClusterAutoscaler|atlassian\.com/escalator|\bALERTSCALER_[A-Z_]+")


def keys_of_schema(name, schema):
    """Names of a JSON Schema's members by their paths, the words that a member accepts, and defaults."""
    found = set()

    def walk(node, path, refs):
        if not isinstance(node, dict):
            return
        if "$ref" in node and node["$ref"] not in refs:
            target = schema
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            walk(target, path, refs | {node["$ref"]})
        for word in node.get("enum", [node["const"]] if "const" in node else []):
            found.add((f"key {name}", f"{path} = {json.dumps(word)}"))
        if "default" in node:
            found.add((f"key {name}", f"{path} default {json.dumps(node['default'])}"))
        for branches in ("anyOf", "oneOf", "allOf"):
            for branch in node.get(branches, []):
                walk(branch, path, refs)
        for branch in ("if", "then", "else"):
            walk(node.get(branch), path, refs)
        for key, member in node.get("properties", {}).items():
            member_path = f"{path}.{key}".lstrip(".")
            found.add((f"key {name}", member_path))
            walk(member, member_path, refs)
        for pattern in node.get("patternProperties", {}).values():
            walk(pattern, f"{path}.*", refs)
        walk(node.get("additionalProperties"), f"{path}.*", refs)
        walk(node.get("items"), f"{path}[]", refs)

    walk(schema, "", frozenset())
    return found


def keys_of_crd(alertscaler):
    """The keys of policies, also of their status, and the names and columns of the definition."""
    text = subprocess.run([alertscaler, "schema", "crd"], capture_output=True, text=True, check=True).stdout
    spec = json.loads(text)["spec"]
    (version,) = spec["versions"]
    found = keys_of_schema("policy", version["schema"]["openAPIV3Schema"])
    found |= {("column policy", f"{column['name']} {column['jsonPath']}") for column in version["additionalPrinterColumns"]}
    return found | {("name policy", f"{key} {json.dumps(value)}") for key, value in spec["names"].items()}


def form_of(route, kind, paths):
    """The group of a document; "": a form that others define; None: not known."""
    top = {path.split(".")[0].removesuffix("[]") for path in paths}
    if route:
        return f"API {route}" if route.startswith(("/api/", "/-/")) else ""
    if kind and {"instance", "time"} <= top:
        return f"log {kind}"
    if kind in KUBERNETES:
        return f"Kubernetes {KUBERNETES[kind]}"
    if kind in FOREIGN_KINDS or top in FOREIGN:
        return ""
    if top == {""}:
        return "alert to Alertmanager" if "[].generatorURL" in paths else "" if "[].op" in paths else None
    return next((name for name, members in FORMS if members <= top), None)


def members_of_documents(lines):
    found, unknown = set(), []
    for line in lines:
        route, kind, paths = line.rstrip("\n").split("\t")
        group = form_of(route, kind, paths.split(" "))
        if group is None:
            unknown.append(f"a document has no known form (FORMS in tests/public/public.py): {kind} {paths}")
        elif group:
            found |= {(f"member {group}", path) for path in paths.split(" ")}
    return found, unknown


def run_program(root, command, folder):
    """The documents that a program writes. A replay (public_replay_NAME) gets its corpus."""
    name = pathlib.Path(command).name
    documents = folder / name
    _, is_replay, corpus = name.partition("_replay_")
    options = ["--mutations=0", str(root / "tests/fuzz/corpus" / corpus)] if is_replay else ["--tap=/dev/stdout"]
    done = subprocess.run([command, *options], capture_output=True, text=True, errors="replace", check=False,
                          env=os.environ | {"PUBLIC_DOCUMENTS": str(documents)})
    if done.returncode != 0:
        raise SystemExit(f"{command} failed ({done.returncode}):\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    if not documents.exists():
        raise SystemExit(f"{command} wrote no document: is the JSON writer wrapped (tests/public/meson.build)?")
    return documents.read_text(encoding="utf-8").splitlines()


def read_names(program):
    found = set()
    for line in subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines():
        group, name = line.split("\t")
        if group == "chain":
            found |= {("member of each record of the log", key) for key in json.loads(name)}
        else:
            found.add((group, name))
    return found


def collect(root, alertscaler, names, programs):
    found = read_names(names)
    for name in ("config", "rules", "tests", "web"):
        text = subprocess.run([alertscaler, "schema", name], capture_output=True, text=True, check=True).stdout
        found |= keys_of_schema(name, json.loads(text))
    found |= keys_of_crd(alertscaler)
    found |= {("constant", match.decode()) for match in CONSTANTS.findall(pathlib.Path(alertscaler).read_bytes())}
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        lines = [line for result in pool.map(lambda p: run_program(root, p, pathlib.Path(folder)), programs) for line in result]
    members, unknown = members_of_documents(lines)
    return found | members, unknown


def to_text(found):
    return "".join(f"{group}\t{name}\n" for group, name in sorted(found))


def compare(committed, present):
    """Complaints: the difference between two lists, as lines."""
    lines = [line for line in difflib.unified_diff(committed.splitlines(), present.splitlines(), LIST, "the code", lineterm="", n=0)
             if not line.startswith("@@")]
    return [*lines, ADVICE] if lines else []


def check_list(text):
    """The list itself: sorted, each line once, with its group."""
    lines = text.splitlines()
    complaints = [f"{LIST}:{number}: no group, tab and name: {line!r}" for number, line in enumerate(lines, 1)
                  if len(line.split("\t")) != 2 or not all(line.split("\t"))]
    return complaints + ([] if lines == sorted(set(lines), key=lambda line: tuple(line.split("\t"))) else [f"{LIST} is not sorted"])


def self_test(text):
    """On the committed list: the removal and the addition of a name in any group is found, and named."""
    wrong = compare(text, text) + check_list(text)
    rows = [tuple(line.split("\t")) for line in text.splitlines()]
    groups = sorted({group for group, _ in rows})
    if len(groups) < 50:
        wrong.append(f"{len(groups)} groups are too few")
    for group in groups:
        row = next(row for row in rows if row[0] == group)
        for sign, present in (("-", set(rows) - {row}), ("+", set(rows) | {(group, "zz_added")})):
            found = compare(text, to_text(present))
            name = row[1] if sign == "-" else "zz_added"
            if [line for line in found[2:-1]] != [f"{sign}{group}\t{name}"] or "changelog" not in found[-1]:
                wrong.append(f"{sign} {group} {name}: {found}")
    documents = [
        ("\t\tboot events id", "member state target"), ("\tdecision\tid instance kind time", "member log decision"),
        ("/api/v1/rules\t\tdata data[].name status", "member API /api/v1/rules"), ("\tLease\tkind metadata", "member Kubernetes Lease"),
    ]
    for line, group in documents:
        found, unknown = members_of_documents([line])
        if {pair[0] for pair in found} != {group} or unknown:
            wrong.append(f"{line!r}: {found} {unknown}")
    if len(members_of_documents(["\t\tnew other"])[1]) != 1:
        wrong.append("a document of an unknown form is accepted")
    schema = {"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"items": {"properties": {"c": {"enum": ["x"], "default": "x"}}}}}}
    if {name for _, name in keys_of_schema("s", schema)} != {"a", "a[].c", 'a[].c = "x"', 'a[].c default "x"'}:
        wrong.append(f"the keys of a schema: {keys_of_schema('s', schema)}")
    return wrong


def main():
    arguments = sys.argv[1:]
    option = arguments.pop(0) if arguments[0].startswith("--") else ""
    root = pathlib.Path(arguments[0])
    path = root / LIST
    committed = path.read_text(encoding="utf-8") if path.exists() else ""
    if option == "--self-test":
        complaints = self_test(committed)
    else:
        found, complaints = collect(root, arguments[1], arguments[2], arguments[3:])
        present = to_text(found)
        if option == "--update" and not complaints:
            path.write_text(present, encoding="utf-8")
        else:
            complaints += compare(committed, present)
    print(*complaints, sep="\n", end="\n" if complaints else "")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
