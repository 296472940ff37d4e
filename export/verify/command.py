"""`python -m export verify`: every precision of a bundle against its own weights, in a table."""

import argparse
import json
from pathlib import Path

from export.arguments import positive
from export.rebuild import attention_layer_of, network_of
from export.verify import EvalSet, Tolerances, prove, table
from service.bundle import read_bundle

_QUICK_SENTENCES = 100


def add_verify(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--source-column", type=int, choices=(0, 1), default=0)
    parser.add_argument("--json", action="store_true", help="print the report instead of a table")
    parser.add_argument(
        "--quick",
        dest="sentences",
        action="store_const",
        const=_QUICK_SENTENCES,
        help=f"the same as --sentences {_QUICK_SENTENCES}",
    )
    add_evidence(parser)
    parser.set_defaults(command=_verify)


def add_evidence(parser: argparse.ArgumentParser) -> None:
    """The arguments of a proof."""
    parser.add_argument("--valid", type=Path, required=True, help="gzipped pairs to verify on")
    parser.add_argument(
        "--sentences", type=positive, help="verify on as many of them; default: all"
    )
    parser.add_argument(
        "--max-bleu-loss", type=float, default=0.4, help="that int8 and fp16 may cost"
    )


def _verify(options: argparse.Namespace) -> None:
    bundle = read_bundle(options.bundle)
    sentences = EvalSet.load(options.valid, options.source_column, options.sentences)
    tolerances = Tolerances(bleu=options.max_bleu_loss)
    layer = attention_layer_of(bundle)
    proof = prove(bundle, network_of(bundle), layer, sentences, tolerances)
    print(json.dumps(proof.report, indent=2) if options.json else table(proof.checks))
    proof.require()
