"""tests/integration/faults.c: makes the k-th call of a class fail in the program it is loaded into."""
import mmap
import pathlib
import struct
import subprocess

from .driver import find_driver

CLASSES = ("allocations", "files", "network")
LAYOUT = struct.Struct("3Q2QQ32sQ")


class Faults:
    """What the library counts, over all processes that are started with `environment`."""

    def __init__(self, directory, binary):
        self.file = pathlib.Path(directory) / "faults"
        self.file.write_bytes(bytes(LAYOUT.size))
        with open(self.file, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), LAYOUT.size)
        self.binary = binary

    def choose(self, name, number, size=0):
        """The number-th call from now on; 0: none. And each malloc of `size` bytes, if that is not 0."""
        LAYOUT.pack_into(self.memory, 0, 0, 0, 0, CLASSES.index(name), number, 0, b"", size)

    def environment(self):
        """The allocator is the sanitizer's, where there is one; calls on files and sockets pass it first."""
        library = find_driver("libfaults.so")
        assert library, "libfaults.so is not built: run tests/run unit"
        linked = subprocess.run(["ldd", self.binary], capture_output=True, text=True, check=True).stdout
        sanitizer = [line.split()[2] for line in linked.splitlines() if "libasan" in line]
        is_first = self.chosen == "allocations"
        order = [str(library), *sanitizer] if is_first else [*sanitizer, str(library)]
        return {"LD_PRELOAD": ":".join(order), "FAULTS": str(self.file), "FAULTS_WHERE": f"{self.file}-where"}

    @property
    def chosen(self):
        return CLASSES[LAYOUT.unpack_from(self.memory)[3]]

    def count(self, name):
        return LAYOUT.unpack_from(self.memory)[CLASSES.index(name)]

    @property
    def failed(self):
        """The name of the call that has failed, or ""."""
        *_, failed, name, _ = LAYOUT.unpack_from(self.memory)
        assert failed <= 1
        return name.rstrip(b"\0").decode() if failed else ""

    def close(self):
        self.memory.close()
