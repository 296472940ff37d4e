"""The parts of a bundle: its files, the operators of its graphs, and where their bytes are."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import onnx

from export.rebuild import GRAPHS, load_graph
from export.tables import markdown_table
from service.bundle import Bundle, Manifest


@dataclass(frozen=True, slots=True)
class Parts:
    """Counts by name; graphs are called `int8/encoder`."""

    files: Mapping[str, int]
    """Bytes."""
    operators: Mapping[str, Mapping[str, int]]
    """Nodes of each graph by operator, those of its branches too."""
    weights: Mapping[str, Mapping[str, int]]
    """Bytes of each graph's constants by the module of the network that they belong to."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def as_text(self) -> str:
        """Three tables, largest first."""
        files = sorted(self.files.items(), key=lambda item: -item[1])
        return "\n\n".join(
            (
                markdown_table(("file", "bytes"), [(n, f"{count:,}") for n, count in files]),
                _by_graph("operator", self.operators),
                _by_graph("bytes of weights", self.weights),
            )
        )


def parts_of(bundle: Bundle) -> Parts:
    """Raises BundleError if a file is no graph."""
    graphs = {
        f"{precision}/{graph}": load_graph(bundle, precision, graph)
        for precision in bundle.manifest.precisions
        for graph in GRAPHS
    }
    return Parts(
        {name: record.size for name, record in sorted(bundle.manifest.files.items())},
        {name: dict(_operators(model.graph)) for name, model in graphs.items()},
        {name: dict(_weights(model.graph)) for name, model in graphs.items()},
    )


def headline(manifest: Manifest) -> str:
    """A bundle in three lines."""
    limits = manifest.limits
    return (
        f"{manifest.name} {manifest.version}: {manifest.architecture}, "
        f"{manifest.source_language} to {manifest.target_language}, "
        f"format {manifest.format_version}, {', '.join(manifest.precisions)}\n"
        f"{manifest.vocabulary_size:,} pieces; at most {limits.max_source_tokens} source and "
        f"{limits.max_target_tokens} target tokens\n"
        f"memory {_names(manifest.memory)}; state {_names(manifest.state)}"
    )


def _operators(graph: onnx.GraphProto) -> Counter[str]:
    counts: Counter[str] = Counter()
    for node in graph.node:
        counts[node.op_type] += 1
        for branch in (each.g for each in node.attribute if each.HasField("g")):
            counts += _operators(branch)
    return counts


def _weights(graph: onnx.GraphProto) -> Counter[str]:
    counts: Counter[str] = Counter()
    for constant in graph.initializer:
        module = constant.name.split(".")[0]
        counts["shapes" if module.startswith("ints[") else module] += len(constant.raw_data)
    return counts


def _by_graph(heading: str, counts: Mapping[str, Mapping[str, int]]) -> str:
    total: Counter[str] = Counter()
    for of_graph in counts.values():
        total.update(of_graph)
    rows = [
        (name, *(f"{of_graph.get(name, 0):,}" for of_graph in counts.values()))
        for name, _ in total.most_common()
    ]
    sums = (f"{sum(of_graph.values()):,}" for of_graph in counts.values())
    return markdown_table((heading, *counts), [*rows, ("all", *sums)])


def _names(specs: Iterable[Any]) -> str:
    return ", ".join(spec.name for spec in specs)
