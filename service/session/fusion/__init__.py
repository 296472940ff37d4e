"""Has a loaded graph use the kernels of `service.session.kernels` where it does what they do.

A bundle's graphs are plain ONNX, which every onnxruntime runs. Here nodes that stand beside each
other in an int8 graph of `export.graphs` become one node of the domain "nmt":

    MultiHeadAttention, QuantizeLinear            CrossAttention
    GroupQueryAttention, QuantizeLinear           CachedSelfAttention
    QAttention, QuantizeLinear                    MatMulIntegerToFloat, SelfAttention
    Add, LayerNormalization, QuantizeLinear       AddNormQuantize
    Mul, Add, Concat, LogSoftmax, TopK            ListCandidates
    GatherBlockQuantized, Add, QuantizeLinear     EmbedQuantize
    Reshape, Transpose, Split                     SplitHeads

What doesn't look exactly as expected stays as it is, and so do float graphs. Knows the format of
ONNX as far as `model.proto` says, nothing of bundles, and neither loads nor runs anything.
"""

from service.session.fusion.editor import Editor
from service.session.fusion.model_pb2 import ModelProto
from service.session.fusion.patterns import (
    DOMAIN,
    fuse_cached_self_attention,
    fuse_candidates,
    fuse_cross_attention,
    fuse_embedding,
    fuse_memory,
    fuse_norm,
    fuse_self_attention,
)

__all__ = ["DOMAIN", "fused"]


def fused(graph: bytes) -> bytes:
    """A serialized model with the kernels in it; as it was where none of them has a place.

    Raises google.protobuf's DecodeError for what is no model.
    """
    model = ModelProto.FromString(graph)
    editor = Editor(model.graph)
    for fuse in (
        fuse_cross_attention,
        fuse_cached_self_attention,
        fuse_self_attention,
        fuse_norm,
        fuse_candidates,
        fuse_embedding,
        fuse_memory,
    ):
        editor.apply(fuse)
    if not editor.has_changed:
        return graph
    model.opset_import.add(domain=DOMAIN, version=1)
    return model.SerializeToString()
