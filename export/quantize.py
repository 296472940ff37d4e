"""Activation ranges for int8 graphs, measured on real sentences.

Runs the float32 graphs with the input of every product as an output, on sentences one by one (so
that no padding is measured) and through every step of their targets, and chooses for each product
the one range that loses least. The ranges are then fixed in the graph.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

from export.graphs import ActivationRange, FloatProducts, GraphOptions, encoder_graph, step_graph
from training.model import Translator
from training.vocabulary import BOS_ID

# Shares of the extremes that a range may keep: clipping them makes the steps finer for all others.
KEPT_SHARES = (1.0, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5)
# Every seventh value is kept for the choice; 7 divides no layer's size, so all features are seen.
_STRIDE = 7

Floats = NDArray[np.float32]
Arrays = dict[str, NDArray[Any]]


def calibrate(
    model: Translator, options: GraphOptions, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]
) -> dict[str, ActivationRange]:
    """The range of each product's input, by the product's path.

    `pairs` are source and target ids, both with EOS at the end; some hundreds of all lengths do.
    """
    products = FloatProducts(), FloatProducts()
    encoder = _Probe(encoder_graph(model, products[0], options), products[0].inputs)
    step = _Probe(step_graph(model, products[1], options), products[1].inputs)
    for source, target in pairs:
        _observe(model, encoder, step, source, target)
    return encoder.ranges() | step.ranges()


def choose_range(low: float, high: float, sample: Floats) -> ActivationRange:
    """The range that loses least on the sample, of those that keep shares of `low` and `high`."""
    low, high = min(low, 0.0), max(high, 0.0)
    shares = itertools.product(KEPT_SHARES, KEPT_SHARES)
    candidates = [ActivationRange(a * low, b * high) for a, b in shares]
    return min(dict.fromkeys(candidates), key=lambda range_: _squared_error(range_, sample))


class _Probe:
    """A graph that remembers what its products were given."""

    def __init__(self, graph: onnx.ModelProto, inputs: Mapping[str, str]) -> None:
        self._inputs = inputs
        self._outputs = [output.name for output in graph.graph.output]
        self._tensors = sorted(set(inputs.values()))
        for name in set(self._tensors) - set(self._outputs):
            graph.graph.output.append(onnx.ValueInfoProto(name=name))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(graph.SerializeToString(), options)
        self._extremes = {name: (0.0, 0.0) for name in self._tensors}
        self._samples: dict[str, list[Floats]] = {name: [] for name in self._tensors}

    def run(self, feeds: Arrays) -> Arrays:
        """The graph's own outputs."""
        names = list(dict.fromkeys(self._outputs + self._tensors))
        results = dict(zip(names, self._session.run(names, feeds), strict=True))
        for name in self._tensors:
            values = results[name].ravel()
            low, high = self._extremes[name]
            self._extremes[name] = min(low, float(values.min())), max(high, float(values.max()))
            self._samples[name].append(values[::_STRIDE])
        return {name: results[name] for name in self._outputs}

    def ranges(self) -> dict[str, ActivationRange]:
        """By product; products of one tensor get one range, and so share its quantisation."""
        by_tensor = {
            name: choose_range(*self._extremes[name], np.concatenate(self._samples[name]))
            for name in self._tensors
        }
        return {path: by_tensor[tensor] for path, tensor in self._inputs.items()}


def _observe(
    model: Translator, encoder: _Probe, step: _Probe, source: Sequence[int], target: Sequence[int]
) -> None:
    """Encode a sentence and force its target, one step after the other."""
    lengths = np.array([len(source)])
    kept = encoder.run({"source_ids": np.array([source]), "source_lengths": lengths})
    capacity = len(target) + 1
    for spec in model.state_specs:
        if "target" in spec.axes:
            sizes = {"sentence * beam": 1, "target": capacity}
            shape = [sizes[axis] if isinstance(axis, str) else axis for axis in spec.axes]
            kept[spec.name] = np.zeros(shape, np.float32)
    for position, token in enumerate([BOS_ID, *target[:-1]]):
        outputs = step.run(
            kept
            | {
                "tokens": np.array([[token]]),
                "positions": np.array([position], np.int32),
                "source_lengths": lengths,
                "num_candidates": np.array([1]),
            }
        )
        kept |= {spec.name: outputs[f"next_{spec.name}"] for spec in model.state_specs}


def _squared_error(candidate: ActivationRange, sample: Floats) -> float:
    scale, zero_point = candidate.scale, candidate.zero_point
    integers = np.clip(np.rint(sample / scale) + zero_point, 0, 255)
    return float(np.square((integers - zero_point) * scale - sample).sum())
