"""Rows in a CUDA device's memory: what the host's become, through the same changes at random."""

import numpy as np
import pytest

from service.bundle import TensorSpec
from service.session import device_fault
from service.session.buffers import Moves, RowBuffer
from service.session.devices import prepare
from service.session.placement import OnDevice, OnHost

_FAULT = device_fault("cuda")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(_FAULT is not None, reason=str(_FAULT))]

MAX_ROWS, PARTS, MAX_EXTENT, WIDTH = 16, 3, 32, 8


def change(buffer: RowBuffer, dtype: str, seed: int) -> np.ndarray:
    """Writes, moves, copies and lays out anew, and returns all rows."""
    rng = np.random.default_rng(seed)
    for extent in rng.permutation([4, 8, 16, 32]).tolist():
        buffer.resize("target", extent, MAX_ROWS)
        values = rng.random((MAX_ROWS, PARTS, int(rng.integers(1, extent + 1)), WIDTH))
        buffer.write(np.arange(MAX_ROWS), values.astype(dtype))
        buffer.move(Moves.of(rng.integers(0, MAX_ROWS, MAX_ROWS)))
        cells = rng.permutation(MAX_ROWS * PARTS * extent)
        buffer.copy(cells[:50], rng.permutation(cells)[:50])
    return buffer.read(MAX_ROWS)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("seed", range(4))
def test_rows_become_what_they_do_on_the_host(dtype: str, seed: int) -> None:
    prepare("cuda")
    spec = TensorSpec("cache", ("sentence * beam", PARTS, "target", WIDTH), dtype, padding=-1)
    host, device = (
        change(placement.buffer(spec, MAX_ROWS, {"target": MAX_EXTENT}), dtype, seed)
        for placement in (OnHost(), OnDevice("cuda", {dtype}))
    )
    np.testing.assert_array_equal(device, host)
