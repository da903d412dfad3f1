"""What tests need of the machine, and a container, a chroot or a user without rights may not have. Each function tries it
once and returns why it is not allowed, or None. `need` skips the test with that reason."""
import ctypes
import functools
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

import pytest

# A command with mounts of its own, in a chroot too. There the root is no mount point, so its propagation cannot change, and
# what is mounted below it may show outside. /proc is a mount point everywhere: made private, it is where others may go.
PRIVATE_MOUNTS = ["unshare", "--mount", "--propagation", "unchanged",
                  "sh", "-ec", 'mount --make-rprivate /proc; exec "$@"', "sh"]

PR_SET_DUMPABLE = 4
UNREADABLE = f"import ctypes, sys; ctypes.CDLL(None).prctl({PR_SET_DUMPABLE}, 0, 0, 0, 0); print(flush=True); sys.stdin.read()"


def need(*things):
    for thing in things:
        if reason := thing():
            pytest.skip(reason)


def _try(what, *command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"{what}: {(done.stderr or done.stdout).strip()}"


@functools.cache
def mounts():
    return _try("no mounts here", *PRIVATE_MOUNTS, "mount", "-t", "tmpfs", "tmpfs", "/proc")


@functools.cache
def loop_devices():
    with tempfile.NamedTemporaryFile() as image:
        image.truncate(1 << 20)
        return mounts() or _try("no ext4 in a file here", "mkfs.ext4", "-q", image.name) or _try(
            "no loop devices here", *PRIVATE_MOUNTS, "mount", "-o", "loop", image.name, "/proc")


@functools.cache
def ext4_errors():
    """Errors of a file system on demand."""
    return loop_devices() or (None if os.access("/sys/fs/ext4", os.W_OK) else "/sys/fs/ext4 cannot be written to here")


@functools.cache
def landlock():
    level = ctypes.CDLL(None).syscall(444, None, 0, 1)      # landlock_create_ruleset
    return None if level > 0 else "this kernel has no Landlock"


@functools.cache
def memory_of_others():
    """The memory of a program that lets nobody read it."""
    with subprocess.Popen([sys.executable, "-c", UNREADABLE], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        try:
            pathlib.Path(f"/proc/{other.pid}/mem").open("rb").close()
        except OSError as error:
            return f"no reading of another program's memory here: {error.strerror}"
        return None


CORE_HARD = resource.getrlimit(resource.RLIMIT_CORE)[1]
CORE_MAX = ":".join(2 * ["unlimited" if CORE_HARD == resource.RLIM_INFINITY else str(CORE_HARD)])     # for prlimit


@functools.cache
def core_files():
    """Files named core in the folder of a program that is aborted."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["prlimit", f"--core={CORE_MAX}", "sh", "-c", "kill -ABRT $$"], cwd=folder, check=False)
        if any(name.startswith("core") for name in os.listdir(folder)):
            return None
        pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text(encoding="utf-8").strip()
        return f"no core dumps in the folder of a program here: kernel.core_pattern is {pattern!r}, the limit {CORE_MAX}"


def open_files(count):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return lambda: None if hard >= count else f"only {hard} open files are allowed here, and {count} are needed"
