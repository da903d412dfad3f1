"""Programs that tests/integration/peers builds."""
import functools
import pathlib
import subprocess

BUILD = pathlib.Path(__file__).parent.parent / "peers" / "build"


@functools.cache
def find(peer):
    """The folder of its programs, or None where they have not been built."""
    found = subprocess.run([BUILD, peer, "--path"], stdout=subprocess.PIPE, text=True, check=False)
    return pathlib.Path(found.stdout.strip()) if found.returncode == 0 else None


def how_to_build(peer):
    return f"{peer} is not built: run tests/integration/peers/build {peer}"
