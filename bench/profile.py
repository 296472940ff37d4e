"""Where the time of a decode step goes: into operators, around them, and into Python.

    python -m bench.profile [--models DIR] [--architecture bahdanau] [--beam-size 4]

A batch of 1, 8, 32 and 64 rows is stepped on one thread, without anyone joining or leaving; all
numbers are medians. Everything but the operators is timed without onnxruntime's profiler, which
costs about a microsecond a node: that is why operators may exceed the run at 1 row.

    step    = search + reorder + session + run
    run     = operators + around operators
"""

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import onnxruntime

from bench.corpus import ROOT, load_corpus
from bench.endless import Endless
from bench.settings import Settings, comparable, served_precision
from bench.side_by_side import encode
from bench.systems import Ids
from bench.table import Row, format_table
from service.bundle import Bundle
from service.decoding import Batch, DecodingOptions
from service.errors import StartupError
from service.session import Graphs, OnnxModel
from service.session.kernels import library
from service.session.loading import DISABLED_OPTIMIZERS, accepted, session_options, with_kernels

ROWS = (1, 8, 32, 64)
INTEGER_PRODUCTS = {"MatMulIntegerToFloat", "DynamicQuantizeMatMul", "MatMulInteger", "QGemm"}
_BRANCHES = ("listed.", "whole.")
"""What the names of nodes in an If's branches begin with."""
_WARM_STEPS, _STEPS, _REPEATS = 2, 24, 9


@dataclass(frozen=True, slots=True)
class StepProfile:
    """Microseconds of a step.

    search: the search in Python. reorder: moving rows. session: binding and copying in Python.
    run: onnxruntime's own time, of which `operators` is by type.
    """

    rows: int
    search: float
    reorder: float
    session: float
    run: float
    operators: Mapping[str, float]

    @property
    def step(self) -> float:
        return self.search + self.reorder + self.session + self.run

    def parts(self) -> dict[str, float]:
        """All that a step consists of, and two sums of it."""
        inside = sum(self.operators.values())
        return {
            **self.operators,
            "around operators": self.run - inside,
            "Python: session": self.session,
            "Python: reorder": self.reorder,
            "Python: search": self.search,
            "step": self.step,
            "operators": inside,
            "int8 products": sum(self.operators.get(name, 0.0) for name in INTEGER_PRODUCTS),
        }


class _TimedSession(onnxruntime.InferenceSession):  # type: ignore[misc]
    """Counts the time of its runs."""

    run_seconds = 0.0

    def run_with_iobinding(self, iobinding: Any, run_options: Any = None) -> None:
        started = time.perf_counter()
        super().run_with_iobinding(iobinding, run_options)
        self.run_seconds += time.perf_counter() - started


def profile(bundle: Bundle, sources: Sequence[Ids], options: DecodingOptions) -> StepProfile:
    """A step with these sentences, ids with EOS, a row for each beam of the options."""
    beam_size = options.beam_size
    graphs = Graphs.load(bundle, served_precision(bundle))
    with tempfile.TemporaryDirectory() as scratch:
        profiled = _with_step_session(graphs, bundle, profile_prefix=str(Path(scratch, "step")))
        _steps(profiled, sources, options)
        operators = operator_times(Path(profiled.step.end_profiling()))
    timed = _with_step_session(graphs, bundle)
    steps = [step for _ in range(_REPEATS) for step in _steps(timed, sources, options)]
    search, reorder, session, run = (1e6 * median(part) for part in zip(*steps, strict=True))
    return StepProfile(len(sources) * beam_size, search, reorder, session, run, operators)


def operator_times(path: Path) -> dict[str, float]:
    """Microseconds of a run by operator type: the sum of its nodes' medians.

    What an If takes is without the nodes of its branches, which count as their own types.
    """
    by_node: dict[tuple[str, str], list[float]] = defaultdict(list)
    for event in json.loads(path.read_text()):
        if event["cat"] == "Node" and event["name"].endswith("_kernel_time"):
            by_node[event["args"]["op_name"], event["name"]].append(event["dur"])
    times: dict[str, float] = defaultdict(float)
    for (operator, node), durations in by_node.items():
        times[operator] += median(durations)
        if node.startswith(_BRANCHES):
            times["If"] -= median(durations)
    return dict(times)


def _with_step_session(graphs: Graphs, bundle: Bundle, profile_prefix: str = "") -> Graphs:
    """The same graphs, with a step session that is timed, by the profiler if it gets a prefix."""
    options = session_options(threads=1)
    options.enable_profiling = bool(profile_prefix)
    options.profile_file_prefix = profile_prefix
    path, kernels = bundle.graph_path(served_precision(bundle), "step"), accepted(library())
    session = _TimedSession(
        with_kernels(path, options, kernels) if kernels else str(path),
        options,
        providers=graphs.step.get_providers(),
        disabled_optimizers=DISABLED_OPTIMIZERS,
    )
    return replace(graphs, step=session)


def _steps(
    graphs: Graphs, sources: Sequence[Ids], options: DecodingOptions
) -> list[tuple[float, ...]]:
    """Seconds in search, reorder, session and run, of every step."""
    model = Endless(OnnxModel(graphs, len(sources) * options.beam_size))
    batch = Batch[int](model, options.beam_size)
    batch.join(range(len(sources)), sources, [options] * len(sources))
    steps = list[tuple[float, ...]]()
    for _ in range(_WARM_STEPS + _STEPS):
        model.step_seconds = model.reorder_seconds = graphs.step.run_seconds = 0.0
        started = time.perf_counter()
        batch.step()
        wall = time.perf_counter() - started
        inside, reorder, run = model.step_seconds, model.reorder_seconds, graphs.step.run_seconds
        steps.append((wall - inside - reorder, reorder, inside - run, run))
    return steps[_WARM_STEPS:]


def table(profiles: Sequence[StepProfile], title: str) -> str:
    """Microseconds of every part at every number of rows, and its share of the largest batch."""
    largest = profiles[-1].parts()
    order = {name: place for place, name in enumerate(_by_time(largest))}
    columns = [profile.parts() for profile in profiles]
    names = {name: None for column in columns for name in column}
    rows = []
    for name in sorted(names, key=lambda name: order.get(name, -1)):
        values: dict[str, float | str] = {
            f"{profile.rows} rows, us": column.get(name, 0.0)
            for profile, column in zip(profiles, columns, strict=True)
        }
        for profile, column in zip(profiles[-2:], columns[-2:], strict=True):
            share = column.get(name, 0.0) / column["step"]
            values[f"share at {profile.rows}"] = f"{share:.1%}"
        rows.append(Row(title, name, "", values))
    return format_table(rows)


def _by_time(parts: Mapping[str, float]) -> list[str]:
    """Operators, the slowest first, then the rest as it is."""
    names = list(parts)
    num_operators = names.index("around operators")
    return sorted(names[:num_operators], key=lambda name: -parts[name]) + names[num_operators:]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.profile")
    parser.add_argument("--models", type=Path, default=ROOT / "models", help="default models/")
    parser.add_argument("--architecture", default="transformer")
    parser.add_argument("--beam-size", type=int, default=1)
    parser.add_argument("--whole-vocabulary", action="store_true", help="choose from no list")
    parser.add_argument("--sentences", type=Path, help="as for python -m bench")
    options = parser.parse_args(arguments)
    settings = Settings(options.models, load_corpus(options.sentences))
    try:
        bundle = settings.bundle(options.architecture)
    except StartupError as error:
        parser.error("; ".join(error.faults))
    sources = encode(bundle, settings.corpus.sources[: max(ROWS)])
    beam_size = options.beam_size
    search = replace(comparable(beam_size), shortlist=not options.whole_vocabulary)
    profiles = [profile(bundle, sources[: max(1, rows // beam_size)], search) for rows in ROWS]
    print(table(profiles, f"{bundle.manifest.name}, beam {beam_size}"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
