"""`python -m export inspect` and `python -m export card`."""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from export.assemble import ALIGNMENT
from export.inspection.card import card
from export.inspection.parts import headline, parts_of
from service.bundle import read_bundle


def add_inspect(parser: argparse.ArgumentParser) -> None:
    """The arguments of `inspect`."""
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--json", action="store_true", help="with what was verified and scored")
    parser.set_defaults(command=_inspect)


def add_card(parser: argparse.ArgumentParser) -> None:
    """The arguments of `card`."""
    parser.add_argument("bundle", type=Path)
    parser.set_defaults(command=_card)


def results_of(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """What was found out about a network, of all that is known of it."""
    return {
        key: provenance[key] for key in (ALIGNMENT, "verification", "scores") if key in provenance
    }


def _inspect(options: argparse.Namespace) -> None:
    bundle = read_bundle(options.bundle)
    manifest, parts = bundle.manifest, parts_of(bundle)
    if options.json:
        model = f"{manifest.name} {manifest.version} ({manifest.architecture})"
        results = results_of(manifest.provenance)
        languages = " -> ".join(manifest.languages)
        summary = {"model": model, "languages": languages, **parts.as_json(), **results}
        print(json.dumps(summary, indent=2))
    else:
        print(f"{headline(manifest)}\n\n{parts.as_text()}")


def _card(options: argparse.Namespace) -> None:
    print(card(read_bundle(options.bundle).manifest), end="")
