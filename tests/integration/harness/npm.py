"""Packages of npm: the vendors' own clients, by which the fakes of their APIs are proven. They are installed once into the
user's cache folder, never into the tree; where npm or its registry cannot be had, the tests that need them are skipped."""
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "alertscaler" / "npm"
SECONDS = 400


class Missing(Exception):
    """Why packages cannot be had, for a person."""


def install(*packages):
    """The folder that holds node_modules with these ("name@version"). It appears by one rename: whole, or not at all."""
    home = CACHE / hashlib.sha256("\n".join(packages).encode()).hexdigest()[:16]
    if (home / "node_modules").is_dir():
        return home
    if not shutil.which("npm") or not shutil.which("node"):
        raise Missing("node and npm are not installed")
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)    # two at a time would only fetch the same thing twice
        if (home / "node_modules").is_dir():
            return home
        work = pathlib.Path(tempfile.mkdtemp(prefix="work.", dir=CACHE))
        try:
            (work / "package.json").write_text('{"private": true}\n')
            done = subprocess.run(
                ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", "--loglevel=error", *packages],
                cwd=work, capture_output=True, text=True, timeout=SECONDS, check=False)
            if done.returncode != 0:
                raise Missing(f"npm cannot install {' '.join(packages)}: {done.stderr.strip()[-500:]}")
            work.rename(home)
        except subprocess.TimeoutExpired:
            raise Missing(f"npm did not install {' '.join(packages)} within {SECONDS} s") from None
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return home


def run(home, script, argument, env, timeout=150):
    """Runs a script of Node with the packages of `home`; its standard output."""
    done = subprocess.run(["node", str(script), argument], cwd=home, text=True, capture_output=True, timeout=timeout,
                          env={**os.environ, **env, "PACKAGES": str(home)}, check=False)
    assert done.returncode == 0, f"{script}: {done.stdout}{done.stderr}"
    return done.stdout
