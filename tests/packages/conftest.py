"""Tests of what deploy/release makes. RELEASES names two folders that it has filled from one commit; tests/run does that."""
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))


def pytest_configure(config):
    config.addinivalue_line("markers", "seconds(n): of the tests of tests/integration")


@pytest.fixture(scope="session")
def releases():
    return [pathlib.Path(folder).resolve() for folder in os.environ["RELEASES"].split()]


@pytest.fixture(scope="session")
def release(releases):
    return releases[0]


@pytest.fixture(scope="session")
def find(release):
    """find("*.deb"): the one file of the release with such a name."""

    def get(pattern):
        found, = release.glob(pattern)
        return found

    return get


def run(*command, **more):
    """What a command printed; it must succeed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          **{"timeout": 600, **more})
    assert done.returncode == 0, f"{command}: {done.stdout}"
    return done.stdout


@pytest.fixture(scope="session")
def mounts():
    """Skips where a test may not have mounts of its own."""
    tried = subprocess.run(["unshare", "--mount", "--pid", "--net", "--cgroup", "--fork", "true"], capture_output=True, text=True, check=False)
    if os.geteuid() != 0 or tried.returncode != 0:
        pytest.skip(f"no namespaces here: {tried.stderr.strip() or 'not root'}")
