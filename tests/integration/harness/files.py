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


class ProjectedVolume:
    """A folder as kubelet mounts a ConfigMap, a Secret or a projected volume in it: the files are links through `..data` to
    a folder that is never changed. An update makes a new folder, and swaps `..data` by one rename."""

    def __init__(self, path, files):
        self.path = pathlib.Path(path)
        self.path.mkdir()
        self._versions = itertools.count(100000001)
        self.replace(files)

    def replace(self, files):
        """The files are these, {name: text}."""
        data, folder = self.path / "..data", self.path / f"..2026_11_26_21_00_00.{next(self._versions)}"
        old = self.path / data.readlink() if data.is_symlink() else None
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
        new = self.path / "..data_tmp"
        new.symlink_to(folder.name)
        new.rename(data)
        for name in files:
            link = self.path / name
            if not link.is_symlink():
                link.symlink_to(f"..data/{name}")
        for link in self.path.iterdir():
            if not link.name.startswith("..") and not link.exists():
                link.unlink()
        if old:
            shutil.rmtree(old)


class ConfigMapVolume(ProjectedVolume):
    """The volume of a ConfigMap with rule files."""

    def __init__(self, path, **files):
        super().__init__(path, self._name(files))

    def update(self, **files):
        """The files are these, `name` standing for name.yaml."""
        self.replace(self._name(files))

    @staticmethod
    def _name(files):
        return {f"{name}.yaml": text for name, text in files.items()}
