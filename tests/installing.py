"""Bundles put into a models directory in the ways that operators have."""

import shutil
from dataclasses import replace
from pathlib import Path

from service.bundle import Bundle, read_bundle, write_bundle


def version_of(bundle: Bundle, directory: Path, version: str, **changes: object) -> Bundle:
    """Writes a copy of a bundle with another version, and other changes of its manifest."""
    files = {name: (bundle.directory / name).read_bytes() for name in bundle.manifest.files}
    manifest = replace(bundle.manifest, version=version, **changes)  # type: ignore[arg-type]
    return write_bundle(directory, manifest, files)


def install(bundle: Bundle, folder: Path) -> None:
    """Puts a copy in place by a rename, as `rm -r` and `mv` do: for a moment there is none."""
    unfinished = folder.with_name(f".{folder.name}.new")
    shutil.copytree(bundle.directory, unfinished)
    if folder.exists():
        shutil.rmtree(folder)
    unfinished.rename(folder)


def overwrite(bundle: Bundle, folder: Path) -> None:
    """Copies file by file over what is there: for a while it is half of each."""
    shutil.copytree(bundle.directory, folder, dirs_exist_ok=True)


def switch(bundle: Bundle, link: Path) -> None:
    """Points a symbolic link to a bundle, at once."""
    new = link.with_name(f".{link.name}.new")
    new.symlink_to(bundle.directory, target_is_directory=True)
    new.rename(link)


def spoil(folder: Path) -> None:
    """Cuts a file short, as a copy that broke off."""
    step = folder / next(name for name in read_bundle(folder).manifest.files if "step" in name)
    step.write_bytes(step.read_bytes()[:-1])
