"""What each option of the search costs, beside the same search without it.

One thread and 32 rows, which real sentences fill as they get free, and the time of a target token:
an option may make translations longer, or the search for the same ones: that is what the steps of a
token are. One that needs the whole vocabulary is beside a search in
it as well: choosing from shortlists is what it can't have.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.settings import MAX_LENGTH, Settings, served_precision
from bench.side_by_side import encode
from bench.systems import Ids
from bench.table import Row
from bench.timing import Ratio, alternate
from service.decoding import DecodingOptions, LengthForm, StepOutput, Stopping, decode
from service.session import Graphs, OnnxModel

NONE, WHOLE = "none", "whole vocabulary"
_ROWS, _NUM_SENTENCES, _BEAM_SIZE = 32, 192, 4
_SUPPRESSED = range(100, 110)
_Asked = dict[str, Mapping[str, Any]]
_SHARED: _Asked = {
    "attention": {"attention": True},
    "attention_heads": {"attention": True, "attention_heads": True},
    "min_length": {"min_length": 4},
    "repetition_penalty": {"repetition_penalty": 1.2},
    "no_repeat_ngram_size": {"no_repeat_ngram_size": 3},
    "suppress_tokens": {"suppress_tokens": tuple(_SUPPRESSED)},
    "suppress_sequences": {"suppress_sequences": tuple((id, id + 1) for id in _SUPPRESSED)},
}
_OF_BEAMS: _Asked = {
    "length_form": {"length_form": LengthForm.WU},
    # As in the paper: beside a mean per token, it searches for what is longest.
    "coverage_penalty": {
        "coverage_penalty": 0.2,
        "length_penalty": 0.2,
        "length_form": LengthForm.WU,
    },
    "stopping": {"stopping": Stopping.FINISHED},
    "num_hypotheses": {"num_hypotheses": _BEAM_SIZE},
}
_OF_THE_WHOLE: _Asked = {
    "prefix": {"prefix": (100, 200)},
    "prefix_bias_beta": {"prefix": (100, 200), "prefix_bias_beta": 0.5},
    "sampling_temperature": {"sampling_temperature": 1.0},
    "sampling_top_k": {"sampling_temperature": 1.0, "sampling_top_k": 20},
    "sampling_top_p": {"sampling_temperature": 1.0, "sampling_top_p": 0.9},
}


def options(settings: Settings) -> Iterator[Row]:
    """Microseconds of a target token, and times as many as without the option."""
    bundle = settings.bundle("transformer")
    graphs = Graphs.load(bundle, served_precision(bundle))
    sources = encode(bundle, settings.corpus.sources)[:_NUM_SENTENCES]
    model = _CountingModel(graphs, _ROWS)
    greedy = _SHARED | {WHOLE: {"shortlist": False}} | _OF_THE_WHOLE
    yield from _compared(model, "greedy", 1, greedy, sources, settings.rounds)
    beam = _SHARED | _OF_BEAMS | {WHOLE: {"shortlist": False}}
    yield from _compared(model, f"beam {_BEAM_SIZE}", _BEAM_SIZE, beam, sources, settings.rounds)


class _CountingModel(OnnxModel):
    """num_steps: of all sentences, each in a step of the model."""

    num_steps = 0

    def step(self, tokens: NDArray[np.int64], *arguments: Any) -> StepOutput:
        self.num_steps += len(tokens)
        return super().step(tokens, *arguments)


def _compared(
    model: _CountingModel,
    case: str,
    beam_size: int,
    asked: _Asked,
    sources: Sequence[Ids],
    rounds: int,
) -> Iterator[Row]:
    plain = DecodingOptions(beam_size=beam_size, max_length=MAX_LENGTH)
    each = {NONE: plain} | {name: replace(plain, **values) for name, values in asked.items()}
    runs = {
        name: partial(decode, model, sources, found, max_rows=_ROWS) for name, found in each.items()
    }
    counts, steps = dict[str, int](), dict[str, int]()
    for name, run in runs.items():
        before = model.num_steps
        counts[name] = sum(len(ranked[0].token_log_probs) for ranked in run())
        steps[name] = model.num_steps - before
    seconds = alternate(runs, rounds)
    costs = {name: [taken / counts[name] for taken in seconds[name]] for name in runs}
    for name, cost in costs.items():
        values: dict[str, float | str] = {
            "us/token": 1e6 * median(cost),
            "steps/token": steps[name] / counts[name],
        }
        if name != NONE:
            values |= Ratio.of(cost, costs[NONE]).values("x none")
        if name in _OF_THE_WHOLE:
            values["x whole"] = Ratio.of(cost, costs[WHOLE]).median
        yield Row("options", case, name, values)
