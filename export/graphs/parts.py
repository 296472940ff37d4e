"""Pieces that the graphs of every architecture are made of."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor, nn

from export.graphs.builder import CONTRIB, Array, GraphBuilder
from export.graphs.products import Linear, Products
from training.model import Embedding, TiedEmbedding
from training.transformer import Activation

TABLE = "embedding"
"""The path of the table that is both the embedding and the output layer."""
SOURCE_TABLE = "own_source_embedding"
"""The path of the table that only the source is looked up in, where there is one."""


@dataclass(frozen=True, slots=True)
class GraphOptions:
    """What a bundle fixes about its graphs besides the network."""

    attention_layer: int
    """The decoder layer whose attention the step returns."""
    max_source_tokens: int
    """With EOS."""
    max_target_tokens: int


@dataclass(frozen=True, slots=True)
class Layers:
    """Writes torch modules into a graph, each under its path in the network's state dict."""

    graph: GraphBuilder
    products: Products

    def linear(self, path: str, module: nn.Linear, tensor: str) -> str:
        """tensor (..., in) -> (..., out)."""
        return self.products.linear(self.graph, linear_of(path, module), tensor)

    def residual_norm(self, path: str, norm: nn.LayerNorm, hidden: str, update: str) -> str:
        """LayerNorm of hidden + update."""
        return self.graph.op(
            "LayerNormalization",
            self.graph.op("Add", hidden, update),
            self.graph.constant(f"{path}.weight", array(norm.weight)),
            self.graph.constant(f"{path}.bias", array(norm.bias)),
            axis=-1,
            epsilon=norm.eps,
        )

    def embed(self, embedding: Embedding, ids: str) -> str:
        """ids (...) -> scaled embeddings (..., size)."""
        table = _table(embedding)
        return self.products.lookup(self.graph, table, embedding.scale, ids)

    def activate(self, activation: Activation, tensor: str) -> str:
        """An activated tensor that goes into a product and nowhere else."""
        if activation == "relu":
            return self.products.relu(self.graph, tensor)
        if activation == "swish":  # which onnxruntime has as one node under this name
            return self.graph.op("QuickGelu", tensor, domain=CONTRIB, alpha=1.0)
        return self.graph.op("Gelu", tensor)

    def write_shortlist(self, embedding: TiedEmbedding) -> None:
        """shortlist_ids (sentence, shortlist) -> the memory of a shortlist."""
        assert self.products.shortlist is not None
        self.products.shortlist.write_memory(self.graph, _table(embedding))

    def write_candidates(self, embedding: TiedEmbedding, features: str) -> None:
        """features (rows, size) -> candidate_log_probs, candidate_ids and log_probs.

        With a shortlist, the input `whole_vocabulary` decides. If it is false there are no
        log_probs, and candidate_ids are places: of common words, then of the sentence's own.
        """
        table, names = _table(embedding), ("candidate_log_probs", "candidate_ids", "log_probs")
        quantized = self.products.quantize(self.graph, table, features)
        if self.products.shortlist is None or quantized is None:
            self._write_whole_vocabulary(table, features, names)
            return
        whole, listed = self.graph.branch("whole"), self.graph.branch("listed")
        outputs = tuple(f"{whole.name}.{name}" for name in names)
        Layers(whole, self.products)._write_whole_vocabulary(table, features, outputs)
        _declare_outputs(whole, outputs)
        logits = self.products.shortlist.write_logits(listed, table, quantized)
        log_probs = listed.op("LogSoftmax", logits, axis=-1)
        outputs = tuple(f"{listed.name}.{name}" for name in names)
        listed.ops("TopK", log_probs, "num_candidates", names=outputs[:2], axis=-1)
        nothing = listed.constant("no_log_probs", np.zeros((0, len(table.weight)), np.float32))
        listed.op("Identity", nothing, name=outputs[2])
        _declare_outputs(listed, outputs)
        self.graph.choose("whole_vocabulary", whole, listed, names)

    def _write_whole_vocabulary(self, table: Linear, features: str, names: Sequence[str]) -> None:
        """Candidates and log-probabilities under the given names."""
        best_log_probs, best_ids, all_log_probs = names
        logits = self.products.linear(self.graph, table, features)
        log_probs = self.graph.op("LogSoftmax", logits, name=all_log_probs, axis=-1)
        vocabulary_size = len(table.weight)
        block = _block_size(vocabulary_size)
        if block is None:
            best = (best_log_probs, best_ids)
            self.graph.ops("TopK", log_probs, "num_candidates", names=best, axis=-1)
        else:
            self._write_top_of_blocks(log_probs, block, vocabulary_size // block, names)

    def _write_top_of_blocks(
        self, log_probs: str, block: int, num_blocks: int, names: Sequence[str]
    ) -> None:
        """The best k of a row are in the k blocks with the best maxima.

        TopK is scalar code; maxima of blocks are vectorised and leave it a tenth of the work.
        """
        graph = self.graph
        blocks = graph.op("Reshape", log_probs, graph.ints(-1, num_blocks, block))
        maxima = graph.op("ReduceMax", blocks, graph.ints(2), keepdims=0)
        count = graph.op("Min", "num_candidates", graph.ints(num_blocks))
        _, chosen = graph.ops("TopK", maxima, count, names=("maxima", "blocks"), axis=-1)
        indices = graph.op("Unsqueeze", chosen, graph.ints(2))
        contents = graph.op("GatherND", blocks, indices, batch_dims=1)
        flat = graph.op("Reshape", contents, graph.ints(0, -1))
        best = (names[0], f"{names[0]}.places")
        _, places = graph.ops("TopK", flat, "num_candidates", names=best, axis=-1)
        size = graph.ints(block)
        source_block = graph.op("GatherElements", chosen, graph.op("Div", places, size), axis=1)
        start = graph.op("Mul", source_block, size)
        graph.op("Add", start, graph.op("Mod", places, size), name=names[1])


def _declare_outputs(branch: GraphBuilder, names: Sequence[str]) -> None:
    """Of candidates: log-probabilities, ids, and the log-probabilities of the vocabulary."""
    dtypes: tuple[type[np.generic], ...] = (np.float32, np.int64, np.float32)
    for name, dtype in zip(names, dtypes, strict=True):
        branch.output(name, dtype, [f"{name}.rows", f"{name}.words"])


def _block_size(vocabulary_size: int) -> int | None:
    """The divisor of the vocabulary's size that is nearest to its root, None if all are far."""
    root = math.isqrt(vocabulary_size)
    divisors = (d for d in range(root // 4 + 1, 4 * root) if vocabulary_size % d == 0)
    return min(divisors, key=lambda d: abs(math.log(d / root)), default=None)


def linear_of(path: str, module: nn.Linear) -> Linear:
    """The weights of a torch layer, under its path in the network's state dict."""
    return Linear(path, array(module.weight), None if module.bias is None else array(module.bias))


def _table(embedding: Embedding) -> Linear:
    if not isinstance(embedding, TiedEmbedding):
        return Linear(SOURCE_TABLE, array(embedding.weight), None)
    bias = None if embedding.bias is None else array(embedding.bias)
    return Linear(TABLE, array(embedding.weight), bias)


def array(tensor: Tensor) -> Array:
    """A float32 copy that shares nothing with the network."""
    copy: Array = tensor.detach().cpu().float().numpy().copy()
    return copy
