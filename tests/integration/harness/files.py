"""Files that another program reads again by itself."""
import itertools
import pathlib
import shutil


def replace(path, text, mode=0o600):
    """The file is there with its old text, or with its whole new one: whoever looks meanwhile sees no half of it."""
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    new.chmod(mode)
    new.rename(path)


class ConfigMapVolume:
    """A folder as kubelet mounts a ConfigMap in it: the files are links through `..data` to a folder that is never
    changed. An update makes a new folder, and swaps `..data` by one rename."""

    def __init__(self, path, **files):
        self.path = pathlib.Path(path)
        self.path.mkdir()
        self._versions = itertools.count(1)
        self.update(**files)

    def update(self, **files):
        """The files are these, `name` standing for name.yaml."""
        data, folder = self.path / "..data", self.path / f"..version-{next(self._versions)}"
        old = self.path / data.readlink() if data.is_symlink() else None
        folder.mkdir()
        for name, text in files.items():
            (folder / f"{name}.yaml").write_text(text)
        new = self.path / "..data_tmp"
        new.symlink_to(folder.name)
        new.rename(data)
        for name in files:
            link = self.path / f"{name}.yaml"
            if not link.is_symlink():
                link.symlink_to(f"..data/{name}.yaml")
        for link in self.path.glob("*.yaml"):
            if not link.exists():
                link.unlink()
        if old:
            shutil.rmtree(old)
