"""The Transformer (training/transformer.py) as an encoder graph and a step graph.

Attention is onnxruntime's own: MultiHeadAttention with a length per row instead of a mask, for the
encoder and for the W beams of a sentence as W queries on its one memory; GroupQueryAttention with
a position per row for the decoder's past, which it writes in place.
"""

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from export.graphs.builder import CONTRIB
from export.graphs.parts import GraphOptions, Layers, array, linear_of
from export.graphs.products import MASKED
from training.attention import CrossAttention
from training.transformer import DecoderLayer, EncoderLayer, FeedForward, Transformer


@dataclass(frozen=True, slots=True)
class TransformerGraphs:
    """Writes one graph of one network."""

    model: Transformer
    layers: Layers
    options: GraphOptions

    def write_encoder(self) -> None:
        """source_ids (sentence, source) -> keys and values of each layer's cross-attention."""
        graph = self.layers.graph
        lengths = graph.op("Cast", "source_lengths", to=TensorProto.INT32)
        positions = self._positions(self.options.max_source_tokens)
        num_positions = graph.op("Shape", "source_ids", start=1, end=2)
        encodings = graph.op("Slice", positions, graph.ints(0), num_positions, graph.ints(0))
        hidden = graph.op(
            "Add", self.layers.embed(self.model.source_embedding, "source_ids"), encodings
        )
        for index, layer in enumerate(self.model.encoder_layers):
            assert isinstance(layer, EncoderLayer)
            hidden = self._encoder_layer(f"encoder_layers.{index}", layer, hidden, lengths)
        for index, layer in enumerate(self.model.decoder_layers):
            assert isinstance(layer, DecoderLayer)
            self._project_memory(index, layer.cross_attention, hidden)

    def write_step(self) -> None:
        """tokens (sentence, beam) -> candidates of every row, with the caches written in place."""
        graph = self.layers.graph
        lengths = graph.op("Cast", "source_lengths", to=TensorProto.INT32)
        embedded = self.layers.embed(self.model.embedding, "tokens")
        shape = graph.op("Shape", embedded)
        encodings = graph.op("Gather", self._positions(self.options.max_target_tokens), "positions")
        hidden = graph.op("Add", embedded, graph.op("Reshape", encodings, shape))
        for index, layer in enumerate(self.model.decoder_layers):
            assert isinstance(layer, DecoderLayer)
            hidden = self._decoder_layer(index, layer, hidden, shape, lengths)
        features = graph.op("Reshape", hidden, graph.ints(-1, self.model.config.model_size))
        self.layers.write_candidates(self.model.embedding, features)

    def _encoder_layer(self, path: str, layer: EncoderLayer, hidden: str, lengths: str) -> str:
        attention = layer.self_attention
        packed = linear_of(f"{path}.self_attention.in_projection", attention.in_projection)
        context = self.layers.products.self_attention(
            self.layers.graph, packed, hidden, lengths, attention.num_heads
        )
        attended = self.layers.linear(
            f"{path}.self_attention.output_projection", attention.output_projection, context
        )
        hidden = self.layers.residual_norm(
            f"{path}.self_attention_norm", layer.self_attention_norm, hidden, attended
        )
        return self._feed_forward(path, layer, hidden)

    def _project_memory(self, index: int, attention: CrossAttention, encoded: str) -> None:
        """Keys and values side by side as 2 * heads heads, then apart."""
        graph, heads = self.layers.graph, attention.num_heads
        path = f"decoder_layers.{index}.cross_attention.key_value_projection"
        projected = self.layers.linear(path, attention.key_value_projection, encoded)
        by_head = graph.op("Reshape", projected, graph.ints(0, 0, 2 * heads, -1))
        by_head = graph.op("Transpose", by_head, perm=[0, 2, 1, 3])
        names = (f"cross_key_{index}", f"cross_value_{index}")
        graph.ops("Split", by_head, graph.ints(heads, heads), names=names, axis=1)

    def _decoder_layer(
        self, index: int, layer: DecoderLayer, hidden: str, shape: str, lengths: str
    ) -> str:
        path = f"decoder_layers.{index}"
        attended = self._attend_past(index, layer, hidden, shape)
        hidden = self.layers.residual_norm(
            f"{path}.self_attention_norm", layer.self_attention_norm, hidden, attended
        )
        attended = self._attend_source(index, layer, hidden, lengths)
        hidden = self.layers.residual_norm(
            f"{path}.cross_attention_norm", layer.cross_attention_norm, hidden, attended
        )
        return self._feed_forward(path, layer, hidden)

    def _attend_past(self, index: int, layer: DecoderLayer, hidden: str, shape: str) -> str:
        graph, attention = self.layers.graph, layer.self_attention
        path = f"decoder_layers.{index}.self_attention"
        projected = self.layers.linear(f"{path}.in_projection", attention.in_projection, hidden)
        rows = graph.op("Reshape", projected, graph.ints(-1, 1, 3 * self.model.config.model_size))
        # The kernel uses this number to tell a step from a prompt of one token, and refuses one
        # above the capacity; each row's true length is its position.
        total = graph.constant("total_sequence_length", np.array([2], np.int32))
        context, *_ = graph.ops(
            "GroupQueryAttention",
            *(rows, "", "", f"self_key_{index}", f"self_value_{index}", "positions", total),
            names=(f"{path}.context", f"next_self_key_{index}", f"next_self_value_{index}"),
            domain=CONTRIB,
            num_heads=attention.num_heads,
            kv_num_heads=attention.num_heads,
        )
        context = graph.op("Reshape", context, shape)
        return self.layers.linear(f"{path}.output_projection", attention.output_projection, context)

    def _attend_source(self, index: int, layer: DecoderLayer, hidden: str, lengths: str) -> str:
        attention = layer.cross_attention
        path = f"decoder_layers.{index}.cross_attention"
        query = self.layers.linear(f"{path}.query_projection", attention.query_projection, hidden)
        key, value = f"cross_key_{index}", f"cross_value_{index}"
        returned = index == self.options.attention_layer
        context = self._attend(query, key, value, lengths, "scores" if returned else "")
        if returned:
            self._write_attention("scores", key)
        return self.layers.linear(f"{path}.output_projection", attention.output_projection, context)

    def _attend(self, query: str, key: str, value: str, lengths: str, scores: str = "") -> str:
        """Context (batch, queries, size); the masked scores are kept if they get a name."""
        outputs = ("", "", scores) if scores else ()
        context, *_ = self.layers.graph.ops(
            "MultiHeadAttention",
            *(query, key, value, "", lengths),
            names=(f"{query}.context", *outputs),
            domain=CONTRIB,
            num_heads=self.model.config.num_heads,
            mask_filter_value=MASKED,
        )
        return context

    def _write_attention(self, scores: str, key: str) -> None:
        """scores (sentence, heads, beam, source) -> attention (sentence * beam, heads, source)."""
        graph = self.layers.graph
        heads = self.model.config.num_heads
        graph.declare(scores, np.float32, ["sentence", heads, "beam", "source"])
        weights = graph.op("Softmax", scores, axis=-1)
        by_row = graph.op("Transpose", weights, perm=[0, 2, 1, 3])
        heads_and_source = graph.op("Shape", key, start=1, end=3)
        shape = graph.op("Concat", graph.ints(-1), heads_and_source, axis=0)
        graph.op("Reshape", by_row, shape, name="attention")

    def _feed_forward(self, path: str, layer: EncoderLayer | DecoderLayer, hidden: str) -> str:
        feed_forward: FeedForward = layer.feed_forward
        path = f"{path}.feed_forward"
        inner = self.layers.linear(
            f"{path}.inner_projection", feed_forward.inner_projection, hidden
        )
        inner = self.layers.activate(feed_forward.activation, inner)
        output = self.layers.linear(
            f"{path}.output_projection", feed_forward.output_projection, inner
        )
        return self.layers.residual_norm(f"{path}_norm", layer.feed_forward_norm, hidden, output)

    def _positions(self, count: int) -> str:
        encodings = array(self.model.position_encodings)[:count]
        return self.layers.graph.constant("position_encodings", encodings)
