"""The `check` command: are the bundles of a directory good?"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from service.errors import BundleError

if TYPE_CHECKING:
    from service.bundle import Bundle

_COLUMNS = ("NAME", "VERSION", "LANGUAGES", "ARCHITECTURE", "PRECISIONS", "MIB")


def check(options: argparse.Namespace) -> int:
    """Runs the command with its parsed arguments; returns 1 if any bundle is bad, else 0."""
    from service.catalog.folders import bundle_folders
    from service.catalog.loading import repeated_versions
    from service.client.admin import table

    folders = bundle_folders(options.models)
    bundles = [bundle for folder in folders if (bundle := _check_bundle(folder))]
    for line in table([_COLUMNS, *map(_row, bundles)]):
        print(line)
    for fault in (faults := list(repeated_versions(bundles))):
        print(f"{options.models}: {fault}", file=sys.stderr)
    return 1 if faults or len(bundles) < len(folders) else 0


def _check_bundle(folder: Path) -> "Bundle | None":
    """The bundle, if it is good, else None; then its faults are on stderr."""
    from service.bundle import read_bundle
    from service.catalog.loading import try_out

    try:
        bundle = read_bundle(folder)
        try_out(bundle)
    except BundleError as error:
        print(*(f"{folder}: {fault}" for fault in error.faults), sep="\n", file=sys.stderr)
        return None
    return bundle


def _row(bundle: "Bundle") -> Sequence[str]:
    manifest = bundle.manifest
    languages, precisions = " to ".join(manifest.languages), ",".join(manifest.precisions)
    size = sum(record.size for record in manifest.files.values()) / 2**20
    named = manifest.name, manifest.version, languages, manifest.architecture
    return *named, precisions, f"{size:.1f}"
