"""Decoding: from a model that predicts one token to ranked translations, many sentences at once.

Owns the search (greedy and beam), what may be said (filters), sampling, the stopping rules, the
ranking and the attention that belongs to a hypothesis. Knows nothing of text, threads, clocks or
runtimes: a `StepModel` hides torch, onnxruntime or a toy. One decode step serves every live
sentence, each at its own position and with its own options:

    Batch.join ──> model.append
    Batch.step ──> Filters.plan ──> model.step ──> Filters.apply ──> best_candidates
                     ├─> finished hypotheses ──> results, best first
                     └─> live beams ──> Trellis, Coverage, Filters.follow ──> model.reorder
    Batch.drop ──> model.reorder

The parts in reading order: choices, options, checking, hypothesis, model, stopping, lanes, search,
slots, trellis, coverage, filters, batch, driver.
"""

from service.decoding.batch import Batch
from service.decoding.checking import (
    MAX_BEAM_SIZE,
    MAX_SEQUENCE_LENGTH,
    MAX_SUPPRESSED_SEQUENCES,
)
from service.decoding.choices import FinishReason, LengthForm, Stopping
from service.decoding.driver import decode, score
from service.decoding.hypothesis import Hypothesis
from service.decoding.model import StepModel, StepOutput
from service.decoding.options import DecodingOptions

__all__ = [
    "MAX_BEAM_SIZE",
    "MAX_SEQUENCE_LENGTH",
    "MAX_SUPPRESSED_SEQUENCES",
    "Batch",
    "DecodingOptions",
    "FinishReason",
    "Hypothesis",
    "LengthForm",
    "StepModel",
    "StepOutput",
    "Stopping",
    "decode",
    "score",
]
