"""Small file systems of a test's own: memory, or ext4 in a file. Where they are not allowed, the test is skipped."""
import pathlib
import subprocess
import time

from . import allowed


def _run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


def _must(*command):
    done = _run(*command)
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.stderr.strip()}"


class Disk:
    """A mounted file system. `data` is a folder in it: not there while nothing is mounted."""

    def __init__(self, place, kind="ext4", kib=4096, inodes=64):
        allowed.need(allowed.loop_devices if kind == "ext4" else allowed.mounts)
        self.place, self.kind = pathlib.Path(place), kind
        self.place.mkdir()
        self.image = self.place.with_suffix(".img")
        self.options = f"size={kib}k,nr_inodes={inodes}"
        if kind == "ext4":
            with open(self.image, "wb") as image:
                image.truncate(kib * 1024)
            _must("mkfs.ext4", "-q", "-b", 1024, "-N", inodes, "-m", 0, self.image)
            self.options = "loop,errors=remount-ro"
        self.mount()
        self.data = self.place / "data"
        self.data.mkdir()
        self.fillers = []

    def mount(self):
        _must("mount", "-t", self.kind, "-o", self.options, self.image if self.kind == "ext4" else "tmpfs", self.place)

    # Full

    def _add_filler(self):
        self.fillers.append(self.place / f"filler-{len(self.fillers)}")
        return self.fillers[-1]

    def fill(self):
        """To the last byte."""
        with self._add_filler().open("wb", buffering=0) as out:
            for size in (65536, 1024, 1):
                try:
                    while out.write(b"x" * size) == size:
                        pass
                except OSError:
                    pass

    def use_up_inodes(self):
        try:
            while True:
                self._add_filler().touch()
        except OSError:
            self.fillers.pop()

    def free(self):
        for filler in self.fillers:
            filler.unlink()
        self.fillers.clear()

    # Read-only

    def break_down(self):
        """The kernel finds an error, as of a bad block: from then on the file system is read-only, for open files too."""
        allowed.need(allowed.ext4_errors)
        device = _run("findmnt", "-n", "-o", "SOURCE", self.place).stdout.strip()
        (pathlib.Path("/sys/fs/ext4") / pathlib.Path(device).name / "trigger_fs_error").write_text("test")

    def repair(self):
        """Unmounted, as soon as nobody has a file open in it; checked; mounted again."""
        end = time.monotonic() + 20
        while _run("umount", self.place).returncode:
            assert time.monotonic() < end, "it keeps files open on a file system that it cannot write to"
            time.sleep(0.05)
        assert _run("e2fsck", "-fy", self.image).returncode in (0, 1)
        self.mount()

    def remount(self, how):
        """"ro" or "rw"; whether it was possible: "ro" is not while files are open for writing."""
        return _run("mount", "-o", f"remount,{how}", self.place).returncode == 0

    def stop(self):
        _run("umount", "-l", self.place)
