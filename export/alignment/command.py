"""`python -m export align`: how far the attention of models agrees with a statistical aligner."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from export.alignment.aligner import references_of
from export.alignment.attention import Weights, forced_attention
from export.alignment.reference import AlignedPair, Reference, agreement, aligned_pairs
from export.arguments import positive
from export.graphs import num_attention_heads, num_attention_layers
from export.rebuild import attention_layer_of, network_of
from service.bundle import Bundle, read_bundle
from service.decoding import score
from service.session import Graphs, OnnxModel
from service.text import Tokenizer
from training.data import Pair, read_pairs

_MAX_ROWS = 64
_HEADER = (
    "| Model | Attention | Precision | Recall | AER |",
    "|---|---|--:|--:|--:|",
)


def add_align(parser: argparse.ArgumentParser) -> None:
    """Describes the command's arguments."""
    parser.add_argument("bundles", type=Path, nargs="+", metavar="BUNDLE", help="of one direction")
    parser.add_argument("--test", type=Path, required=True, help="gzipped pairs to align")
    parser.add_argument(
        "--train", type=Path, help="gzipped pairs that the aligner also learns from"
    )
    parser.add_argument("--source-column", type=int, choices=(0, 1), default=0)
    parser.add_argument(
        "--pairs", type=positive, default=1000, help="as many of them, evenly spread (%(default)s)"
    )
    add_links(parser)
    parser.set_defaults(command=_align)


def add_links(parser: argparse.ArgumentParser) -> None:
    """The file of links that may stand in for the aligner."""
    parser.add_argument(
        "--links", type=Path, help="file of the aligner's links: read if it exists, else written"
    )


def _align(options: argparse.Namespace) -> None:
    column = options.source_column
    pairs = read_pairs(options.test, column)
    training = read_pairs(options.train, column) if options.train else []
    references = references_of(pairs, training, options.links)
    print(*_HEADER, sep="\n")
    for directory in options.bundles:
        for line in table_lines(read_bundle(directory), pairs, references, options.pairs):
            print(line, flush=True)


def table_lines(
    bundle: Bundle, pairs: Sequence[Pair], references: Sequence[Reference], max_pairs: int
) -> Iterator[str]:
    """A row for what each precision returns, each layer and each head, and for the diagonal."""
    tokenizer = Tokenizer.from_bytes(bundle.tokenizer_bytes("source"))
    limits = bundle.manifest.limits
    max_tokens = limits.max_source_tokens, limits.max_target_tokens
    chosen = aligned_pairs(pairs, references, tokenizer, max_tokens, max_pairs)
    name = f"{bundle.manifest.name} {bundle.manifest.version}"
    for attention, weights in _candidates(bundle, chosen):
        found = agreement(chosen, weights)
        measures = f"{found.precision:.3f} | {found.recall:.3f} | {found.error_rate:.3f}"
        yield f"| {name} | {attention} | {measures} |"


def _candidates(
    bundle: Bundle, pairs: Sequence[AlignedPair]
) -> Iterator[tuple[str, Sequence[Weights]]]:
    yield "none: the diagonal", [_diagonal(pair) for pair in pairs]
    for precision in bundle.manifest.precisions:
        yield f"returned, {precision}", served_attention(bundle, precision, pairs)
    network = network_of(bundle)
    num_heads, returned = num_attention_heads(network), attention_layer_of(bundle)
    forced = forced_attention(network, [pair.example for pair in pairs])
    for layer in range(num_attention_layers(network)):
        heads = range(layer * num_heads, (layer + 1) * num_heads)
        mark = " (the one returned)" if layer == returned else ""
        yield f"layer {layer}{mark}", [weights[heads].mean(axis=0) for weights in forced]
        for number, head in enumerate(heads if num_heads > 1 else ()):
            yield f"layer {layer}, head {number}", [weights[head] for weights in forced]


def served_attention(bundle: Bundle, precision: str, pairs: Sequence[AlignedPair]) -> list[Weights]:
    """(target tokens, source tokens) of each pair, as the service's graphs return it."""
    model = OnnxModel(Graphs.load(bundle, precision), _MAX_ROWS)
    examples = [pair.example for pair in pairs]
    sources = [example.source_ids for example in examples]
    targets = [example.target_ids[:-1] for example in examples]
    found = []
    for hypothesis in score(model, sources, targets, max_rows=_MAX_ROWS):
        assert hypothesis.attention is not None
        found.append(hypothesis.attention)
    return found


def _diagonal(pair: AlignedPair) -> Weights:
    """What a model would look at that reads on as it writes."""
    num_targets, num_sources = len(pair.target), len(pair.source)
    weights = np.zeros((num_targets, num_sources + 1), np.float32)
    rows = np.arange(num_targets)
    weights[rows, rows * num_sources // num_targets] = 1
    return weights
