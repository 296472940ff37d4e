"""What CUDA does otherwise than the CPU, written out in a graph that is to run there.

MultiHeadAttention   is not sure to return scores beside a mask (attention_impl.cu, at 008eeb96,
                     writes none): the scores that a step shows are computed by hand
GroupQueryAttention  may read no further than the length that it is told of the longest row:
                     the capacity of the cache, where a constant does on the CPU
GRU                  reads its lengths on the host: a cast of an input would run on the device
                     and be copied back, one of something that a shape has part in does not
TopK                 is no scalar code: it takes the whole vocabulary, in one node
"""

import math
from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto

from export.graphs.builder import CONTRIB, GraphBuilder
from export.graphs.products import MASKED
from export.graphs.types import attribute

_CANDIDATES = ("candidate_log_probs", "candidate_ids")
_MHA_KEYS, _MHA_LENGTHS, _MHA_SCORES = 1, 4, 3
_GQA_PAST_KEY, _GQA_TOTAL = 3, 6
_GRU_LENGTHS = 4


def for_cuda(model: onnx.ModelProto) -> onnx.ModelProto:
    """A float32 graph with the same values, for CUDA's kernels."""
    graph = GraphBuilder.like(model)
    for old in model.graph.node:
        if set(_CANDIDATES).isdisjoint(old.output):
            node = onnx.NodeProto()
            node.CopyFrom(old)
            if rewrite := _REWRITES.get(node.op_type):
                rewrite(graph, node)
            graph.append(node)
    if any(output.name in _CANDIDATES for output in model.graph.output):
        graph.ops("TopK", "log_probs", "num_candidates", names=_CANDIDATES, axis=-1)
    graph.prune()
    return graph.build()


def _rewrite_attention(graph: GraphBuilder, node: onnx.NodeProto) -> None:
    """Queries (sentence, beam, size) on keys (sentence, heads, source, head_size) -> the masked
    scores (sentence, heads, beam, source), if they have a name.
    """
    if len(node.output) <= _MHA_SCORES:
        return
    name, keys = node.output[_MHA_SCORES], node.input[_MHA_KEYS]
    del node.output[1:]
    num_heads = attribute(node, "num_heads")
    query = graph.op(
        "Reshape", node.input[0], graph.ints(0, 0, num_heads, -1), name=f"{name}.query"
    )
    query = graph.op("Transpose", query, name=f"{name}.by_head", perm=[0, 2, 1, 3])
    scores = graph.op(
        "FusedMatMul",
        *(query, keys),
        name=f"{name}.unmasked",
        domain=CONTRIB,
        transB=1,
        alpha=1 / math.sqrt(graph.shape_of(keys)[-1]),
    )
    end = graph.op("Shape", keys, name=f"{name}.end", start=2, end=3)
    places = graph.op("Range", graph.ints(0), end, graph.ints(1), name=f"{name}.places")
    lengths = graph.op("Cast", node.input[_MHA_LENGTHS], name=f"{name}.ends", to=TensorProto.INT64)
    lengths = graph.op("Unsqueeze", lengths, graph.ints(1, 2, 3), name=f"{name}.lengths")
    is_real = graph.op("Less", places, lengths, name=f"{name}.is_real")
    graph.op("Where", is_real, scores, graph.constant("masked", np.float32(MASKED)), name=name)


def _rewrite_past(graph: GraphBuilder, node: onnx.NodeProto) -> None:
    """The total length is the target extent of the cache, one int32."""
    cache = node.input[_GQA_PAST_KEY]
    extent = graph.op("Shape", cache, name=f"{cache}.extent", start=2, end=3)
    total = graph.op("Cast", extent, name=f"{cache}.capacity", to=TensorProto.INT32)
    node.input[_GQA_TOTAL] = total


def _rewrite_recurrence(graph: GraphBuilder, node: onnx.NodeProto) -> None:
    """The lengths are their minimum with the source's extent, which is themselves."""
    name = f"{node.output[0]}.lengths"
    extent = graph.op("Shape", "source_ids", name=f"{name}.extent", start=1, end=2)
    lengths = graph.op("Min", "source_lengths", extent, name=f"{name}.bounded")
    node.input[_GRU_LENGTHS] = graph.op("Cast", lengths, name=name, to=TensorProto.INT32)


_REWRITES: dict[str, Callable[[GraphBuilder, onnx.NodeProto], None]] = {
    "MultiHeadAttention": _rewrite_attention,
    "GroupQueryAttention": _rewrite_past,
    "GRU": _rewrite_recurrence,
}
