#!/usr/bin/python3
"""ci.py ROOT: the workflow of GitHub and tests/bare run the same commands. The job `quick` has the commands that `tests/bare
--list` prints after the demo; each other job has these with `tests/run --all` in place of `tests/run --quick`. All jobs run in
the image of Debian 12, and an action of others is named by its commit."""
import pathlib
import re
import subprocess

import yaml

import arch

WORKFLOW = ".github/workflows/ci.yml"
IMAGE = "debian:12"
QUICK, ALL = "tests/run --quick", "tests/run --all"
FIRST = "deploy/demo"                       # of tests/bare alone: the workflow tests a clone, the demo a user's first minutes
PINNED = re.compile(r"[\w./-]+@[0-9a-f]{40}$")


def list_bare(root):
    done = subprocess.run(["bash", root / "tests/bare", "--list"], capture_output=True, text=True, check=False)
    commands = done.stdout.splitlines()
    return [command for command in commands if not command.startswith(FIRST)] if done.returncode == 0 else []


def check_job(name, job, bare):
    steps = job.get("steps", [])
    commands = [step["run"].strip() for step in steps if "run" in step]
    expected = bare if name == "quick" else [ALL if command == QUICK else command for command in bare]
    if commands != expected:
        yield f"{WORKFLOW}: job {name} runs {commands}, tests/bare {expected}"
    if job.get("container", {}).get("image") != IMAGE:
        yield f"{WORKFLOW}: job {name} does not run in {IMAGE}"
    for step in steps:
        if "uses" in step and not PINNED.match(step["uses"]):
            yield f"{WORKFLOW}: job {name}: {step['uses']} is not named by its commit"


def check(root):
    root = pathlib.Path(root)
    workflow = yaml.safe_load((root / WORKFLOW).read_text(encoding="utf-8"))
    jobs, bare = workflow["jobs"], list_bare(root)
    if QUICK not in bare:
        return [f"tests/bare --list does not have {QUICK}"]
    complaints = [c for name, job in jobs.items() for c in check_job(name, job, bare)]
    if "quick" not in jobs:
        complaints.append(f"{WORKFLOW}: there is no job quick")
    return complaints


def make_job(image, *steps):
    return {"container": {"image": image}, "steps": list(steps)}


def self_test():
    checkout, git, run = {"uses": "actions/checkout@" + 40 * "1"}, {"run": "get git"}, {"run": QUICK}
    quick, whole = make_job(IMAGE, git, checkout, run), make_job(IMAGE, git, checkout, {"run": ALL})

    def tree(listed, **jobs):
        return {WORKFLOW: yaml.safe_dump({"jobs": jobs}), "tests/bare": "#!/bin/sh\nprintf '%s\\n' " + listed + "\n"}

    listed = f"'deploy/demo --seconds 90' 'get git' '{QUICK}'"
    bad = [
        (tree(listed, quick=make_job(IMAGE, checkout, run), whole=whole), "job quick runs ['tests/run --quick']"),
        (tree(listed, quick=quick, whole=quick), "job whole runs"),
        (tree(listed, quick=make_job("debian:11", git, checkout, run)), "job quick does not run in debian:12"),
        (tree(listed, quick=make_job(IMAGE, git, {"uses": "actions/checkout@v4"}, run)), "actions/checkout@v4 is not named by"),
        (tree(listed, whole=whole), "there is no job quick"),
        (tree("'deploy/demo'", quick=quick), "tests/bare --list does not have"),
    ]
    return arch.self_test_on_trees(check, tree(listed, quick=quick, whole=whole), bad)


if __name__ == "__main__":
    arch.main(check, self_test)
