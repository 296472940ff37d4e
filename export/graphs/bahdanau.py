"""The Bahdanau translator (training/bahdanau.py) as an encoder graph and a step graph.

The encoder is ONNX's GRU with the length of each row, so that padding is never read and the
backward direction starts at the last real token; it stays in float32, as no runtime has an integer
GRU. The step's recurrence is spelled as matrix products, which can be int8.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto
from torch import nn

from export.graphs.builder import CONTRIB, Array
from export.graphs.parts import GraphOptions, Layers, array
from export.graphs.products import MASKED
from training.bahdanau import Bahdanau, RecurrentStep

_GRU = "encoder.gru."


@dataclass(frozen=True, slots=True)
class BahdanauGraphs:
    """Writes one graph of one network, which has only one layer of attention to return."""

    model: Bahdanau
    layers: Layers
    options: GraphOptions

    def write_encoder(self) -> None:
        """source_ids (sentence, source) -> encoder_outputs, projected_keys and first hidden_*."""
        graph, decoder = self.layers.graph, self.model.decoder
        outputs, finals = self._encode()
        keys = self.layers.linear(
            "decoder.attention.key_projection", decoder.attention.key_projection, outputs
        )
        graph.op("Identity", keys, name="projected_keys")
        hidden = graph.op("Tanh", self.layers.linear("decoder.bridge", decoder.bridge, finals))
        names = [f"hidden_{index}" for index in range(decoder.num_layers)]
        sizes = graph.ints(*[self.model.config.decoder_size] * len(names))
        graph.ops("Split", hidden, sizes, names=names, axis=-1)

    def write_step(self) -> None:
        """tokens (sentence, beam) -> candidates of every row and the next hidden_*."""
        graph, decoder = self.layers.graph, self.model.decoder
        tokens = graph.op("Reshape", "tokens", graph.ints(-1))
        embedded = self.layers.embed(self.model.embedding, tokens)
        context = self._attend()
        projected = graph.op(
            "Add",
            self.layers.linear(
                "decoder.embedded_projection", decoder.embedded_projection, embedded
            ),
            self.layers.linear("decoder.context_projection", decoder.context_projection, context),
        )
        hidden = self._recurrence(0, projected)
        for index, projection in enumerate(decoder.upper_projections):
            assert isinstance(projection, nn.Linear)
            path = f"decoder.upper_projections.{index}"
            hidden = self._recurrence(index + 1, self.layers.linear(path, projection, hidden))
        joined = graph.op("Concat", hidden, context, embedded, axis=-1)
        readout = self.layers.linear("decoder.readout", decoder.readout, joined)
        self.layers.write_candidates(self.model.embedding, graph.op("Tanh", readout))

    def _encode(self) -> tuple[str, str]:
        """encoder_outputs (sentence, source, memory_size), final state (sentence, memory_size)."""
        graph, config = self.layers.graph, self.model.config
        lengths = graph.op("Cast", "source_lengths", to=TensorProto.INT32)
        embedded = self.layers.embed(self.model.embedding, "source_ids")
        sequence = graph.op("Transpose", embedded, perm=[1, 0, 2])
        for index in range(config.encoder_layers):
            outputs, finals = graph.ops(
                "GRU",
                *(sequence, *self._gru_weights(index), lengths),
                names=(f"encoder.{index}.outputs", f"encoder.{index}.finals"),
                hidden_size=config.encoder_size,
                direction="bidirectional" if config.bidirectional else "forward",
                linear_before_reset=1,
            )
            # outputs are (source, directions, sentence, size), and so is the next layer's input.
            by_time = graph.op("Transpose", outputs, perm=[0, 2, 1, 3])
            sequence = graph.op("Reshape", by_time, graph.ints(0, 0, -1))
        final = graph.op(
            "Reshape", graph.op("Transpose", finals, perm=[1, 0, 2]), graph.ints(0, -1)
        )
        return graph.op("Transpose", sequence, name="encoder_outputs", perm=[1, 0, 2]), final

    def _gru_weights(self, layer: int) -> tuple[str, str, str]:
        """Input and recurrent weights (directions, 3 * size, in), biases (directions, 6 * size)."""
        parameters = dict(self.model.encoder.gru.named_parameters())
        suffixes = [f"_l{layer}", f"_l{layer}_reverse"][: 1 + self.model.config.bidirectional]

        def stack(kind: str) -> Array:
            return np.stack([_swap_gates(array(parameters[kind + suffix])) for suffix in suffixes])

        biases = np.concatenate([stack("bias_ih"), stack("bias_hh")], axis=1)
        constant = self.layers.graph.constant
        return (
            constant(f"{_GRU}weight_ih_l{layer}", stack("weight_ih")),
            constant(f"{_GRU}weight_hh_l{layer}", stack("weight_hh")),
            constant(f"{_GRU}bias_l{layer}", biases),
        )

    def _attend(self) -> str:
        """Context (rows, memory_size) of the previous top hidden state; writes `attention`."""
        graph, config = self.layers.graph, self.model.config
        attention = self.model.decoder.attention
        query = self.layers.linear(
            "decoder.attention.query_projection",
            attention.query_projection,
            f"hidden_{config.decoder_layers - 1}",
        )
        # (sentence, beam, 1, size) + (sentence, 1, source, size): W queries on one memory.
        beams = graph.op("Shape", "tokens")
        shape = graph.op("Concat", beams, graph.ints(1, config.attention_size), axis=0)
        keys = graph.op("Unsqueeze", "projected_keys", graph.ints(1))
        features = graph.op("Tanh", graph.op("Add", graph.op("Reshape", query, shape), keys))
        direction = graph.constant(
            "decoder.attention.score_projection.weight", array(attention.score_projection.weight)
        )
        # v F' and not F v, which takes onnxruntime twenty times as long.
        scores = graph.op("FusedMatMul", direction, features, domain=CONTRIB, transB=1)
        scores = graph.op("Squeeze", scores, graph.ints(2))
        weights = graph.op("Softmax", self._mask(scores), axis=-1)
        graph.op("Reshape", weights, graph.ints(-1, 1, 0), name="attention")
        context = graph.op("MatMul", weights, "encoder_outputs")
        return graph.op("Reshape", context, graph.ints(-1, config.memory_size))

    def _mask(self, scores: str) -> str:
        """scores (sentence, beam, source) with padding at a value that leaves it no weight."""
        graph = self.layers.graph
        source_len = graph.op("Shape", "encoder_outputs", start=1, end=2)
        positions = graph.op("Range", graph.ints(0), source_len, graph.ints(1))
        lengths = graph.op("Unsqueeze", "source_lengths", graph.ints(1, 2))
        masked = graph.constant("masked", np.float32(MASKED))
        return graph.op("Where", graph.op("Less", positions, lengths), scores, masked)

    def _recurrence(self, layer: int, projected: str) -> str:
        """next_hidden_* from the projected input (rows, 3 * size): reset, update, new."""
        graph, size = self.layers.graph, self.model.config.decoder_size
        step, hidden = self.model.decoder.steps[layer], f"hidden_{layer}"
        assert isinstance(step, RecurrentStep)
        path = f"decoder.steps.{layer}.hidden_projection"
        recurrent = self.layers.linear(path, step.hidden_projection, hidden)
        input_gates, input_new = graph.split(projected, 2 * size, size)
        gates, new = graph.split(recurrent, 2 * size, size)
        gates = graph.op("Sigmoid", graph.op("Add", input_gates, gates))
        reset, update = graph.split(gates, size, size)
        candidate = graph.op("Tanh", graph.op("Add", input_new, graph.op("Mul", reset, new)))
        kept = graph.op("Mul", update, graph.op("Sub", hidden, candidate))
        return graph.op("Add", candidate, kept, name=f"next_{hidden}")


def gru_parameters(kept: Mapping[str, Array]) -> dict[str, Array]:
    """The parameters of the encoder's GRU, by torch's names, from a graph's constants.

    The inverse of `_gru_weights`, with matrices turned round as those of all other products are.
    """
    parameters = {}
    for name in [name for name in kept if name.startswith(_GRU)]:
        kind, layer = name.removeprefix(_GRU).rsplit("_l", 1)
        for rows, suffix in zip(kept[name], ("", "_reverse"), strict=False):
            if kind == "bias":
                parts = dict(zip(("bias_ih", "bias_hh"), np.split(rows, 2), strict=True))
            else:
                parts = {kind: rows}
            for part, value in parts.items():
                parameters[f"{_GRU}{part}_l{layer}{suffix}"] = _swap_gates(value).T
    return parameters


def _swap_gates(rows: Array) -> Array:
    """torch's blocks reset, update, new as ONNX's update, reset, new, and back: (3 * size, ...)."""
    reset, update, new = np.split(rows, 3)
    return np.concatenate([update, reset, new])
