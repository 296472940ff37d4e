"""The command line of export.

python -m export bundle CHECKPOINT DIRECTORY --valid FILE --test FILE [--train FILE]
python -m export verify BUNDLE --valid FILE [--quick]
python -m export rebuild BUNDLE DIRECTORY [--precision fp32 fp16]
python -m export inspect BUNDLE
python -m export card BUNDLE
python -m export import CHECKPOINT DIRECTORY --source-language en --target-language fr
python -m export align BUNDLE... --test FILE [--train FILE]
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from export.alignment import (
    Choice,
    aligned_pairs,
    by_agreement,
    by_hand,
    by_shared_pieces,
    is_installed,
    references_of,
)
from export.alignment.command import add_align, add_links
from export.arguments import positive
from export.assemble import Description
from export.build import Evidence, build_bundle
from export.inspection.command import add_card, add_inspect, results_of
from export.marian.command import add_import
from export.rebuild import rebuild
from export.verify import EvalSet, ParityError, Tolerances
from export.verify.command import add_evidence, add_verify
from service.bundle import PRECISIONS, Limits, read_bundle
from service.errors import BundleError
from training.checkpoint import TrainedTranslator, load_translator
from training.data import Example, encode_pairs, read_pairs
from training.vocabulary import load_vocabulary

_ALIGNED_PAIRS = 1000


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m export",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)
    _add_bundle(commands.add_parser("bundle", help="export, verify and write a checkpoint"))
    add_verify(commands.add_parser("verify", help="hold a bundle against its own weights"))
    _add_rebuild(commands.add_parser("rebuild", help="write a bundle's weights as floats"))
    add_inspect(commands.add_parser("inspect", help="print what a bundle consists of"))
    add_card(commands.add_parser("card", help="print a bundle's model card in Markdown"))
    add_import(commands.add_parser("import", help="write a Marian checkpoint, such as OPUS-MT's"))
    add_align(commands.add_parser("align", help="compare attention with an aligner's links"))
    options = parser.parse_args(arguments)
    try:
        options.command(options)
    except (BundleError, ParityError, OSError, ValueError) as error:
        print(f"{parser.prog}: {' '.join(str(error).split())}", file=sys.stderr)
        # 2: it was asked for something wrong, rather than that it failed.
        return 1 if isinstance(error, BundleError | ParityError) else 2
    return 0


def _add_bundle(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", type=Path, help="best.pt of a training run")
    parser.add_argument("directory", type=Path, help="of the new bundle")
    parser.add_argument("--precision", nargs="+", choices=PRECISIONS, default=["int8"])
    parser.add_argument("--name", help="what clients ask for; default: the run's name")
    parser.add_argument(
        "--version", default="", help="of the model; default: its training steps and a hash"
    )
    parser.add_argument("--test", type=Path, required=True, help="gzipped pairs to score it on")
    parser.add_argument(
        "--train", type=Path, help="gzipped pairs to learn shortlists from; default: none"
    )
    parser.add_argument("--max-source-tokens", type=positive, default=256)
    parser.add_argument("--max-target-tokens", type=positive, default=256)
    parser.add_argument(
        "--preferred-source-tokens",
        type=int,
        default=32,
        help="longer sentences are split, since training has so few; 0: none is, if it fits",
    )
    parser.add_argument("--calibration-sentences", type=positive, default=1000)
    parser.add_argument(
        "--attention-layer", type=int, help="that is returned; default: the one that aligns best"
    )
    add_links(parser)
    add_evidence(parser)
    parser.set_defaults(command=_bundle)


def _bundle(options: argparse.Namespace) -> None:
    trained = load_translator(options.checkpoint)
    data = trained.config.data
    column = data.source_column
    if options.directory.exists():  # which is noticed anyway, minutes later
        raise ValueError(f"{options.directory} exists; remove it or choose another name")
    calibration = _calibration(options.valid, column, trained.vocabulary, options)
    choice = _attention_layer(trained, calibration, options)
    description = Description(
        name=options.name or trained.config.name,
        version=options.version,
        source_language=data.source_language,
        target_language=data.target_language,
        limits=Limits(
            options.max_source_tokens, options.max_target_tokens, options.preferred_source_tokens
        ),
        attention_layer=choice.layer,
        alignment=choice.report,
    )
    evidence = Evidence(
        calibration,
        EvalSet.load(options.valid, column, options.sentences),
        EvalSet.load(options.test, column),
        _examples(options.train, column, trained.vocabulary) if options.train else [],
    )
    tolerances = Tolerances(bleu=options.max_bleu_loss)
    bundle = build_bundle(
        trained, options.directory, description, options.precision, evidence, tolerances
    )
    print(json.dumps(results_of(bundle.manifest.provenance), indent=2))


def _calibration(
    path: Path, source_column: int, vocabulary: bytes, options: argparse.Namespace
) -> list[Example]:
    """Pairs of all lengths that the graphs take, from the shortest to the longest."""
    limits = options.max_source_tokens, options.max_target_tokens
    examples = [
        example
        for example in _examples(path, source_column, vocabulary)
        if len(example.source_ids) <= limits[0] and len(example.target_ids) < limits[1]
    ]
    if not examples:
        raise ValueError(
            f"no pair of {path} has at most {limits[0]} source and {limits[1]} target tokens; "
            "raise --max-source-tokens or --max-target-tokens"
        )
    examples.sort(key=lambda example: len(example.source_ids))
    return examples[:: max(1, len(examples) // options.calibration_sentences)]


def _attention_layer(
    trained: TrainedTranslator, calibration: Sequence[Example], options: argparse.Namespace
) -> Choice:
    """As an aligner says, if there is one or its links are wanted; else as shared pieces say."""
    if options.attention_layer is not None:
        return by_hand(trained.model, options.attention_layer)
    if options.links is None and not (options.train and is_installed()):
        return by_shared_pieces(trained.model, calibration)
    column = trained.config.data.source_column
    pairs = read_pairs(options.valid, column)
    training = read_pairs(options.train, column) if options.train else []
    references = references_of(pairs, training, options.links)
    tokenizer = load_vocabulary(trained.vocabulary)
    limits = options.max_source_tokens, options.max_target_tokens
    chosen = aligned_pairs(pairs, references, tokenizer, limits, _ALIGNED_PAIRS)
    return by_agreement(trained.model, chosen)


def _examples(path: Path, source_column: int, vocabulary: bytes) -> list[Example]:
    return encode_pairs(load_vocabulary(vocabulary), read_pairs(path, source_column))


def _add_rebuild(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bundle", type=Path)
    parser.add_argument("directory", type=Path, help="of the new bundle")
    parser.add_argument("--precision", nargs="+", choices=("fp32", "fp16"), default=["fp32"])
    parser.set_defaults(command=_rebuild)


def _rebuild(options: argparse.Namespace) -> None:
    rebuild(read_bundle(options.bundle), options.directory, options.precision)


if __name__ == "__main__":
    sys.exit(main())
