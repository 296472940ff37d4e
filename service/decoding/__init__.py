"""Decoding: from a model that predicts one token to ranked translations, many sentences at once.

Owns the search (greedy and beam), the stopping rules, the ranking and the attention that belongs
to a hypothesis. Knows nothing of text, threads, clocks or runtimes: a `StepModel` hides torch,
onnxruntime or a toy. One decode step serves every live sentence, each at its own position:

    Batch.join ──> model.append
    Batch.step ──> model.step ──> best_candidates ──> finished hypotheses ──> results, best first
                                        └─> live beams ──> Trellis ──> model.reorder
    Batch.drop ──> model.reorder

The parts in reading order: options, hypothesis, model, stopping, search, trellis, batch, driver.
"""

from service.decoding.batch import Batch
from service.decoding.driver import decode, score
from service.decoding.hypothesis import Hypothesis
from service.decoding.model import StepModel, StepOutput
from service.decoding.options import DecodingOptions, FinishReason, Stopping

__all__ = [
    "Batch",
    "DecodingOptions",
    "FinishReason",
    "Hypothesis",
    "StepModel",
    "StepOutput",
    "Stopping",
    "decode",
    "score",
]
