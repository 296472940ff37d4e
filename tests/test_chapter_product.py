"""The attention of one sentence is the same in torch, in the graphs and over a socket."""

from collections.abc import Mapping

import numpy as np
import pytest

from docs.chapter.figure import Run
from docs.chapter.product import (
    GRPC_FLOAT,
    GRPC_INT8,
    ONNX_FLOAT,
    ONNX_INT8,
    TORCH,
    View,
    differences,
    views,
)


@pytest.fixture(scope="module")
def found() -> Mapping[str, View]:
    return views(Run())


def test_every_way_gives_the_same_translation_and_attention(found: Mapping[str, View]) -> None:
    apart = differences(found)
    assert max(apart[ONNX_FLOAT], apart[GRPC_FLOAT]) < 1e-4
    assert max(apart[ONNX_INT8], apart[GRPC_INT8]) < 1e-2


@pytest.mark.parametrize("ways", [(ONNX_FLOAT, GRPC_FLOAT), (ONNX_INT8, GRPC_INT8)])
def test_nothing_is_lost_on_the_wire(found: Mapping[str, View], ways: tuple[str, str]) -> None:
    near, far = (found[way].weights for way in ways)
    np.testing.assert_allclose(near, far, rtol=0, atol=1e-6)


def test_another_translation_is_no_small_difference(found: Mapping[str, View]) -> None:
    torch = found[TORCH]
    other = View((*torch.target[:-1], "!"), torch.weights)
    with pytest.raises(ValueError, match="says"):
        differences({TORCH: torch, "other": other})
