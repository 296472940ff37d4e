"""The kernels of onnxruntime's CUDA provider, as far as graphs of translators may need them.

`kernels.json` says which release they are of and how it was asked.
"""

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import onnx

from export.graphs.types import parameters_of, schema_of


@dataclass(frozen=True, slots=True)
class Kernel:
    """An implementation of an operator.

    `since` is the version of the operator that it was written for. It also does for the versions
    up to `until`; without that for no other one, since nobody knows what they will be. `types` are
    those that a variable of the operator's schema, or a parameter, may have.
    """

    since: int
    until: int | None
    types: Mapping[str, Sequence[str]]

    def takes(self, version: int, types: Mapping[str, str]) -> bool:
        """Whether it computes this version of its operator with parameters of these types."""
        known = version == self.since or self.since <= version <= (self.until or 0)
        return known and all(
            types.get(name, allowed[0]) in allowed for name, allowed in self._named()
        )

    def _named(self) -> list[tuple[str, list[str]]]:
        return [(name, [f"tensor({t})" for t in allowed]) for name, allowed in self.types.items()]


def has_kernel(node: onnx.NodeProto, types: Mapping[str, str], versions: Mapping[str, int]) -> bool:
    """Whether CUDA computes a node, given the types of all tensors and the versions of domains."""
    since = schema_of(node, versions).since_version
    actual = {
        name: types[tensor]
        for parameter, tensor in parameters_of(node, versions)
        for name in (parameter.typeStr, parameter.name)
    }
    candidates = known_kernels().get((node.domain, node.op_type), ())
    return any(kernel.takes(since, actual) for kernel in candidates)


@functools.cache
def known_kernels() -> Mapping[tuple[str, str], Sequence[Kernel]]:
    """By domain and operator."""
    found: dict[tuple[str, str], list[Kernel]] = {}
    for domain, operator, since, until, types in _table()["kernels"]:
        found.setdefault((domain, operator), []).append(Kernel(since, until, types))
    return found


def known_version() -> str:
    """The package and release whose kernels these are."""
    package: str = _table()["onnxruntime"]
    return package


@functools.cache
def _table() -> Mapping[str, Any]:
    text = resources.files(__package__).joinpath("kernels.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table
