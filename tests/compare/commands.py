"""The commands that need no daemon, over golden files, fuzz corpora and logs: jobs, and what each says."""
import collections
import json
import pathlib
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
CORPUS = ROOT / "tests" / "fuzz" / "corpus"
RANDOM_INPUTS = 2000
SINCE = "2020-01-01T00:00:00Z"

sys.path.insert(0, str(ROOT / "tests" / "property"))
import decide_property  # noqa: E402  (its generator)
import scenario  # noqa: E402

# folder: copied, and the place where the command runs; files: {name: bytes}, written there; by_line: each line is an output;
# is_now: it says when it ran
Job = collections.namedtuple("Job", "name arguments folder files stdin by_line is_now", defaults=(None, {}, b"", False, False))


def files(folder):
    return sorted(path for path in folder.iterdir() if path.is_file())


def read_records(path):
    """Of the lines that are whole."""
    records = []
    for line in path.read_bytes().splitlines():
        try:
            records.append(json.loads(line))
        except ValueError:
            continue
    return [record for record in records if isinstance(record, dict)]


def decide(name, documents):
    return Job(f"decide {name}", ["decide"], stdin="".join(document + "\n" for document in documents).encode(), by_line=True)


def decide_jobs(golden_inputs, logs):
    yield decide("tests/golden/decide", golden_inputs)
    generator = decide_property.Generator(1)
    yield decide("random inputs", [json.dumps(generator.document()) for _ in range(RANDOM_INPUTS)])
    for path in files(CORPUS / "decide"):
        yield Job(f"decide corpus {path.name}", ["decide"], stdin=path.read_bytes())
    for path in logs:
        inputs = [json.dumps(record["input"]) for record in read_records(path) if record.get("kind") == "decision"]
        yield decide(f"inputs of {path.parent.name}/{path.name}", inputs)


def check_jobs():
    for case in sorted(path for path in (GOLDEN / "config").iterdir() if path.is_dir()):
        given = case / "arguments"
        arguments = shlex.split(given.read_text()) if given.exists() else [] if (case / "alertscaler.yaml").exists() else ["rules.yaml"]
        yield Job(f"check {case.name}", ["check", *arguments], case)
        if not any(argument.startswith("--format") for argument in arguments):
            yield Job(f"check --format=json {case.name}", ["check", "--format=json", *arguments], case)
    for corpus, name in (("rules", "rules.yaml"), ("yaml", "rules.yaml"), ("template", "rules.yaml"), ("settings", "alertscaler.yaml"),
                         ("lint", "am.yaml"), ("web_config", "web.yaml"), ("kubeconfig", "rules.yaml")):
        arguments = {"am.yaml": ["--alertmanager=am.yaml", "rules.yaml"], "web.yaml": ["--web.config.file=web.yaml"]}.get(name, [name])
        rules = {"rules.yaml": (ROOT / "rules" / "checkout.yaml").read_bytes()} if name == "am.yaml" else {}
        for path in files(CORPUS / corpus):
            yield Job(f"check corpus {corpus}/{path.name}", ["check", *arguments], files={**rules, name: path.read_bytes()})
    for path in files(ROOT / "rules"):
        yield Job(f"check rules/{path.name}", ["check", "--syntax-only", path.name], ROOT / "rules")


def convert_jobs():
    for case in sorted(path for path in (GOLDEN / "convert").iterdir() if path.is_dir()):
        given = case / "arguments"
        arguments = shlex.split(given.read_text()) if given.exists() else sorted(path.name for path in case.glob("*.yaml"))
        yield Job(f"convert {case.name}", ["convert", *arguments[:1], "--out=out", *arguments[1:]], case)
    for path in files(CORPUS / "convert"):
        yield Job(f"convert corpus {path.name}", ["convert", "objects.yaml", "--out=out"], files={"objects.yaml": path.read_bytes()})


def test_jobs():
    for path in files(ROOT / "rules" / "tests"):
        for form in ("text", "json"):
            yield Job(f"test -o {form} {path.name}", ["test", "-o", form, f"tests/{path.name}"], ROOT / "rules")
    for path in files(CORPUS / "rule_tests"):
        rules = {name.name: name.read_bytes() for name in files(ROOT / "rules")}
        yield Job(f"test corpus {path.name}", ["test", "corpus.yaml"], files={**rules, "corpus.yaml": path.read_bytes()})


def log_jobs(logs):
    for path in logs:
        name, log = f"{path.parent.name}/{path.name}", {"actions.jsonl": path.read_bytes()}
        records = read_records(path)
        targets = sorted({record["target"] for record in records if record.get("kind") in ("decision", "action")})
        times = [record["time"] for record in records]

        def job(*arguments):
            return Job(f"{' '.join(arguments)} {name}", [*arguments, "actions.jsonl"], files=log)

        yield from (job("log", "-o", form) for form in ("text", "json"))
        yield job("log", "verify")
        yield from (job("effects", f"--since={SINCE}", "-o", form) for form in ("text", "json"))
        yield from (job("replay", "-o", form) for form in ("text", "json"))
        yield Job(f"replay --rules {name}", ["replay", "--rules=rules.yaml", "--svg=out", "actions.jsonl"],
                  files={**log, "rules.yaml": (ROOT / "rules" / "checkout.yaml").read_bytes()})
        for target in targets:
            for at in sorted({times[len(times) // 2], times[-1]}):
                yield from (job("explain", f"--target={target}", f"--at={at}", "-o", form) for form in ("text", "json"))
    for corpus in ("log", "log_tail", "chain", "history"):
        for path in files(CORPUS / corpus):
            for arguments in (["log"], ["log", "verify"], ["replay"]):
                yield Job(f"{' '.join(arguments)} corpus {corpus}/{path.name}", [*arguments, "actions.jsonl"],
                          files={"actions.jsonl": path.read_bytes()})


def explain_jobs():
    for path in files(CORPUS / "payload"):
        for form in ("text", "json"):
            yield Job(f"explain -o {form} payload {path.name}", ["explain", "-o", form, "--payload=payload.json", "--rules=rules.yaml"],
                      files={"payload.json": path.read_bytes(), "rules.yaml": (ROOT / "rules" / "checkout.yaml").read_bytes()},
                      is_now=True)
    for path in files(ROOT / "rules"):
        if path.suffix == ".yaml":
            yield Job(f"explain labels rules/{path.name}", ["explain", f"--rules={path.name}", "alertname=CheckoutLatencyHigh", "severity=page"],
                      ROOT / "rules")


def help_jobs(binary):
    listed = subprocess.run([binary, "--help"], capture_output=True, text=True, check=True).stdout
    commands = [line[2:16].strip() for line in listed.splitlines() if line.startswith("  ") and line[2] != " "]
    yield Job("--help", ["--help"])
    for command in commands:
        yield Job(f"{command} --help", [*command.split(), "--help"])
        yield Job(f"{command} --unknown", [*command.split(), "--unknown"])
    for kind in ("config", "rules", "tests", "web"):
        yield Job(f"schema {kind}", ["schema", kind])
    for shell in ("bash", "zsh", "fish"):
        yield Job(f"completion {shell}", ["completion", shell])


def make_jobs(old, golden_inputs, logs):
    logs = [*files(GOLDEN / "log"), *sorted((GOLDEN / "upgrade").glob("*/actions.jsonl")), *logs]
    jobs = [*decide_jobs(golden_inputs, logs), *check_jobs(), *convert_jobs(), *test_jobs(), *log_jobs(logs), *explain_jobs(),
            *help_jobs(old)]
    assert len({job.name for job in jobs}) == len(jobs), "two jobs have one name"
    return jobs


def run(job, binary, place):
    """{name of the output: text}. The place is made anew, so both programs have files of the same names."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(job.folder, place, symlinks=True) if job.folder else place.mkdir()
    before = {path.relative_to(place): path.read_bytes() for path in place.rglob("*") if path.is_file()}
    for name, content in job.files.items():
        (place / name).write_bytes(content)
        before[pathlib.Path(name)] = content
    done = subprocess.run([binary, *job.arguments], cwd=place, input=job.stdin, capture_output=True, timeout=300, check=False)
    said = done.stdout.decode("utf-8", "backslashreplace")
    texts = {job.name: scenario.Normal(()).made_now(said) if job.is_now else said}
    if job.by_line:
        texts = {f"{job.name}, line {number}": line for number, line in enumerate(texts[job.name].splitlines(), 1)}
    texts[f"{job.name}, end"] = f"{done.stderr.decode('utf-8', 'backslashreplace')}exit status {done.returncode}\n"
    for path in sorted(path for path in place.rglob("*") if path.is_file()):
        name = path.relative_to(place)
        if path.read_bytes() != before.get(name):
            texts[f"{job.name}, file {name}"] = path.read_text("utf-8", "backslashreplace")
    return texts
