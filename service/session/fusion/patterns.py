"""Which nodes become a kernel's: one function for each kernel, in the terms of `export.graphs`.

Each is asked about every node of a graph, and answers with what comes in its place, or nothing. The
nodes around it that are in the kernel too have no reader left then, and go.
"""

from collections.abc import Iterator
from typing import Final

from service.session.fusion.editor import Editor, attributes, node
from service.session.fusion.model_pb2 import AttributeProto, NodeProto

DOMAIN: Final = "nmt"
_CONTRIB: Final = "com.microsoft"


def fuse_cross_attention(graph: Editor, attention: NodeProto) -> list[NodeProto]:
    """Query on one memory; its weights, if they are wanted, in the order of rows."""
    values, inputs = attributes(attention), list(attention.input)
    if attention.op_type != "MultiHeadAttention" or values.keys() - {
        "num_heads",
        "mask_filter_value",
    }:
        return []
    if len(inputs) != 5 or inputs[3] or not inputs[4] or len(graph.shape(inputs[1])) != 4:
        return []
    quantized = graph.only_user(attention.output[0], "QuantizeLinear")
    if quantized is None:
        return []
    outputs, others = [quantized.output[0]], [name for name in attention.output[1:] if name]
    if others:
        weights = _weights_by_row(graph, others[0])
        if len(others) > 1 or weights is None:
            return []
        outputs.append(weights.output[0])
    query, key, value, _, lengths = inputs
    made = node(
        "CrossAttention",
        (query, key, value, lengths, *quantized.input[1:]),
        outputs,
        DOMAIN,
        *_attribute(attention, "num_heads"),
    )
    return [made]


def _weights_by_row(graph: Editor, scores: str) -> NodeProto | None:
    """The last of the nodes that make weights (rows, heads, source) of an attention's scores."""
    softmax = graph.only_user(scores, "Softmax")
    by_row = softmax and graph.only_user(softmax.output[0], "Transpose")
    if not softmax or not by_row or attributes(softmax) != {"axis": -1}:
        return None
    if attributes(by_row) != {"perm": [0, 2, 1, 3]}:
        return None
    return graph.only_user(by_row.output[0], "Reshape")


def fuse_cached_self_attention(graph: Editor, attention: NodeProto) -> list[NodeProto]:
    """A row's query on its past, which is written in place."""
    values, inputs = attributes(attention), list(attention.input)
    if attention.op_type != "GroupQueryAttention" or len(inputs) != 7 or inputs[1] or inputs[2]:
        return []
    num_heads = values.get("num_heads")
    if values != {"num_heads": num_heads, "kv_num_heads": num_heads}:
        return []
    packed = graph.maker(inputs[0], "Reshape")
    by_row = graph.only_user(attention.output[0], "Reshape")
    quantized = by_row and graph.only_user(by_row.output[0], "QuantizeLinear")
    if not packed or not quantized:
        return []
    made = node(
        "CachedSelfAttention",
        (packed.input[0], inputs[3], inputs[4], inputs[5], *quantized.input[1:]),
        (quantized.output[0], *attention.output[1:]),
        DOMAIN,
        *_attribute(attention, "num_heads"),
    )
    return [made]


def fuse_self_attention(graph: Editor, attention: NodeProto) -> list[NodeProto]:
    """The encoder's, whose product stays onnxruntime's."""
    values, inputs = attributes(attention), list(attention.input)
    if attention.op_type != "QAttention" or values.keys() - {"num_heads", "mask_filter_value"}:
        return []
    quantized = graph.only_user(attention.output[0], "QuantizeLinear")
    if quantized is None or len(inputs) != 7 or not all(inputs):
        return []
    features, weight, bias, scale, weight_scale, lengths, zero_point = inputs
    packed = f"{attention.output[0]}.packed"
    product = node(
        "MatMulIntegerToFloat",
        (features, weight, scale, weight_scale, zero_point, "", bias),
        [packed],
        _CONTRIB,
    )
    made = node(
        "SelfAttention",
        (packed, lengths, *quantized.input[1:]),
        [quantized.output[0]],
        DOMAIN,
        *_attribute(attention, "num_heads"),
    )
    return [product, made]


def fuse_norm(graph: Editor, norm: NodeProto) -> list[NodeProto]:
    """A residual and what is added to it, normalised, for a product and for the next residual."""
    if norm.op_type != "LayerNormalization" or len(norm.input) != 3 or len(norm.output) != 1:
        return []
    values = attributes(norm)
    if values != {"axis": -1, "epsilon": values.get("epsilon")}:
        return []
    added = graph.maker(norm.input[0], "Add")
    if added is None or graph.is_used(added.output[0], norm):
        return []
    [output] = norm.output
    reshaped = graph.only_user(output, "Reshape")
    readers = graph.users(reshaped.output[0] if reshaped else output, "QuantizeLinear")
    if not readers:
        return []
    quantized = readers[0]
    kept = output if graph.is_used(output, reshaped or quantized) else ""
    name = f"{output}.quantized" if reshaped else quantized.output[0]
    made = node(
        "AddNormQuantize",
        (*added.input, *norm.input[1:], *quantized.input[1:]),
        (kept, name),
        DOMAIN,
        *_attribute(norm, "epsilon"),
    )
    if not reshaped:
        return [made]
    again = node("Reshape", (name, reshaped.input[1]), [quantized.output[0]], "")
    return [made, again]


def fuse_candidates(graph: Editor, top: NodeProto) -> list[NodeProto]:
    """The best of common words and of a sentence's own, by their log-probability."""
    if top.op_type != "TopK" or attributes(top) != {"axis": -1}:
        return []
    log_probs = graph.maker(top.input[0], "LogSoftmax")
    logits = log_probs and graph.maker(log_probs.input[0], "Concat")
    own = logits and graph.maker(logits.input[-1], "Flatten")
    biased = own and graph.maker(own.input[0], "Add")
    scaled = biased and graph.maker(biased.input[0], "Mul")
    products = scaled and graph.maker(scaled.input[0], "Cast")
    if not (log_probs and logits and biased and scaled and products):
        return []
    if graph.is_used(log_probs.output[0], top) or len(logits.input) != 2:
        return []
    if attributes(log_probs) != {"axis": -1} or attributes(logits) != {"axis": 1}:
        return []
    common, integers = logits.input[0], products.input[0]
    made = node(
        "ListCandidates",
        (common, integers, scaled.input[1], biased.input[1], top.input[1]),
        top.output,
        DOMAIN,
    )
    return [made]


def fuse_embedding(graph: Editor, looked_up: NodeProto) -> list[NodeProto]:
    """Embeddings with the encodings of their places, for the first layer."""
    if looked_up.op_type != "GatherBlockQuantized" or len(looked_up.input) != 3:
        return []
    values, (table, tokens, scales) = attributes(looked_up), looked_up.input
    if values.get("bits") != 8 or values.get("gather_axis") or values.get("quantize_axis") != 1:
        return []
    added = graph.only_user(looked_up.output[0], "Add", besides="Shape")
    quantized = added and graph.users(added.output[0], "QuantizeLinear")
    places = added and _places(graph, added.input[1], looked_up, tokens)
    if not added or not quantized or not places:
        return []
    made = node(
        "EmbedQuantize",
        (table, scales, places[0], tokens, *quantized[0].input[1:], *places[1:]),
        (added.output[0], quantized[0].output[0]),
        DOMAIN,
    )
    return [made]


def _places(graph: Editor, encodings: str, looked_up: NodeProto, tokens: str) -> list[str]:
    """The table of encodings and, unless they are counted from 0, the places to look up in it."""
    if sliced := graph.maker(encodings, "Slice"):
        length = graph.maker(sliced.input[2], "Shape")
        if not length or attributes(length) != {"start": 1, "end": 2}:
            return []
        return [sliced.input[0]] if length.input[0] == tokens else []
    reshaped = graph.maker(encodings, "Reshape")
    shape = reshaped and graph.maker(reshaped.input[1], "Shape")
    gathered = reshaped and graph.maker(reshaped.input[0], "Gather")
    if not shape or not gathered or shape.input[0] != looked_up.output[0]:
        return []
    return list(gathered.input)


def fuse_memory(graph: Editor, split: NodeProto) -> list[NodeProto]:
    """Keys and values of a cross-attention, apart and by head."""
    if split.op_type != "Split" or attributes(split) != {"axis": 1} or len(split.output) != 2:
        return []
    by_head = graph.maker(split.input[0], "Transpose")
    heads = by_head and graph.maker(by_head.input[0], "Reshape")
    shapes = [graph.shape(name) for name in split.output]
    if not heads or not graph.maker(heads.input[0], "MatMulIntegerToFloat"):
        return []
    if not by_head or attributes(by_head) != {"perm": [0, 2, 1, 3]}:
        return []
    if shapes[0] != shapes[1] or len(shapes[0]) != 4:
        return []
    num_heads = AttributeProto(name="num_heads", type=AttributeProto.INT, i=shapes[0][1])
    return [node("SplitHeads", heads.input[:1], split.output, DOMAIN, num_heads)]


def _attribute(node: NodeProto, name: str) -> Iterator[AttributeProto]:
    """Of the node that a kernel takes the place of."""
    return (each for each in node.attribute if each.name == name)
