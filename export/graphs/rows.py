"""The graphs that move rows about in a device's memory, which are shipped with the service.

`python -m export.graphs.rows` writes them anew; `service.session.device_buffers` says what they do.
Each is of one type of elements, and of operators that CUDA has kernels for.
"""

from pathlib import Path

import numpy as np

import service.session
from export.graphs.builder import GraphBuilder
from service.bundle.manifest import DTYPES

FOLDER = Path(service.session.__file__).parent / "row_graphs"


def row_graphs() -> dict[str, bytes]:
    """All of them, by the name of their file."""
    graphs = {"write": _write, "move": _move}
    return {
        f"{name}.{dtype}.onnx": graph(np.dtype(dtype).type).build().SerializeToString()
        for name, graph in graphs.items()
        for dtype in DTYPES
    }


def _write(dtype: type[np.generic]) -> GraphBuilder:
    """rows (count, width), to (n, 1), values (n, width) -> changed (count, width)."""
    graph = GraphBuilder("write")
    rows, to = _rows(graph, dtype)
    return _changed(graph, dtype, rows, to, graph.input("values", dtype, ("n", "width")))


def _move(dtype: type[np.generic]) -> GraphBuilder:
    """rows (count, width), to (n, 1), origin (n,) -> changed (count, width)."""
    graph = GraphBuilder("move")
    rows, to = _rows(graph, dtype)
    origin = graph.input("origin", np.int64, ("n",))
    # Read as a whole before any is written: `changed` lies where `rows` do.
    return _changed(graph, dtype, rows, to, graph.op("Gather", rows, origin, name="values"))


def _rows(graph: GraphBuilder, dtype: type[np.generic]) -> tuple[str, str]:
    rows = graph.input("rows", dtype, ("count", "width"))
    return rows, graph.input("to", np.int64, ("n", 1))


def _changed(
    graph: GraphBuilder, dtype: type[np.generic], rows: str, to: str, values: str
) -> GraphBuilder:
    changed = graph.op("ScatterND", rows, to, values, name="changed")
    graph.output(changed, dtype, ("count", "width"))
    return graph


if __name__ == "__main__":
    for name, content in row_graphs().items():
        FOLDER.joinpath(name).write_bytes(content)
