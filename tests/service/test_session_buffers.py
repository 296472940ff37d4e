"""Buffers of rows, on the host and as on a device: what is written, moved and laid out anew."""

import numpy as np
import pytest

from service.bundle import TensorSpec
from service.session.ancestry import Ancestry, Copies
from service.session.buffers import Moves, RowBuffer
from service.session.placement import OnDevice, OnHost, Placement


@pytest.fixture(params=[OnHost(), OnDevice("cpu", {"float32"})], ids=["host", "device"])
def placement(request: pytest.FixtureRequest) -> Placement:
    placement: Placement = request.param
    return placement


@pytest.fixture
def buffer(placement: Placement) -> RowBuffer:
    spec = TensorSpec("keys", ("sentence", 2, "source", 3), padding=0.5)
    buffer = placement.buffer(spec, 4, {"source": 16})
    buffer.resize("source", 4, 0)
    return buffer


@pytest.fixture
def cache(placement: Placement) -> RowBuffer:
    spec = TensorSpec("cache", ("sentence * beam", 2, "target", 3))
    cache = placement.buffer(spec, 4, {"target": 8})
    cache.resize("target", 4, 0)
    return cache


def rows(count: int, extent: int, seed: int = 0) -> np.ndarray:
    values: np.ndarray = np.random.default_rng(seed).random((count, 2, extent, 3), np.float32)
    return values


def test_a_buffer_pads_whatever_was_there(buffer: RowBuffer) -> None:
    buffer.write(np.arange(4), np.full((4, 2, 4, 3), np.nan, np.float32))
    buffer.write(np.arange(1, 3), values := rows(2, 3))
    np.testing.assert_array_equal(buffer.read(3)[1:, :, :3], values)
    assert (buffer.read(3)[1:, :, 3] == 0.5).all()


def test_a_buffer_keeps_its_rows_at_another_extent(buffer: RowBuffer) -> None:
    buffer.write(np.arange(3), values := rows(3, 4))
    buffer.resize("source", 8, 3)
    np.testing.assert_array_equal(buffer.read(3)[:, :, :4], values)
    assert (buffer.read(3)[:, :, 4:] == 0.5).all()
    buffer.resize("source", 4, 3)
    np.testing.assert_array_equal(buffer.read(3), values)


def test_a_buffer_exchanges_rows(buffer: RowBuffer) -> None:
    buffer.write(np.arange(4), values := rows(4, 4))
    buffer.move(Moves.of(np.array([2, 1, 0])))
    np.testing.assert_array_equal(buffer.read(4), values[[2, 1, 0, 3]])


def test_a_cache_copies_single_positions(cache: RowBuffer) -> None:
    cache.write(np.arange(3), values := rows(3, 4))
    copies = Copies(np.array([0, 1, 1]), np.array([1, 0, 2]), np.array([3, 3, 0]))
    cache.copy(*copies.cells(*cache.layout))
    np.testing.assert_array_equal(cache.read(3)[0, :, 3], values[1, :, 3])
    np.testing.assert_array_equal(cache.read(3)[1, :, [3, 0]], [values[0, :, 3], values[2, :, 0]])
    np.testing.assert_array_equal(cache.read(3)[:, :, 1:3], values[:, :, 1:3])


def test_a_cache_moves_what_is_in_use_of_a_row(cache: RowBuffer) -> None:
    cache.write(np.arange(4), values := rows(4, 4))
    cache.move_up_to(Moves.of(np.array([0, 3])), np.array([2]))
    np.testing.assert_array_equal(cache.read(2)[1, :, :2], values[3, :, :2])
    np.testing.assert_array_equal(cache.read(2)[0], values[0])


def test_a_cache_on_the_host_moves_no_more_of_a_row_than_is_in_use() -> None:
    cache = OnHost().buffer(TensorSpec("cache", ("sentence * beam", "target")), 4, {"target": 4})
    cache.write(np.arange(4), values := rows(4, 4)[:, 0, :, 0])
    cache.move_up_to(Moves.of(np.array([0, 3])), np.array([2]))
    np.testing.assert_array_equal(cache.read(2)[1], [*values[3, :2], *values[1, 2:]])


def test_rows_stay_where_they_are_bound(cache: RowBuffer) -> None:
    *_, before = cache.place(4)
    cache.write(np.arange(4), rows(4, 4))
    cache.resize("target", 8, 4)
    cache.move(Moves.of(np.array([1, 0])))
    *_, shape, after = cache.place(3)
    assert (shape, after) == ((3, 2, 8, 3), before)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_copying_what_beams_do_not_share_is_copying_everything(beam_size: int) -> None:
    """Rows hold the tokens they were fed; sentences come, go and reorder at random."""
    rng = np.random.default_rng(beam_size)
    ancestry = Ancestry(5, beam_size)
    cells = np.zeros((5 * beam_size, 30), np.int64)
    expected = cells[:0]
    positions = np.zeros(0, np.int64)
    for token in range(1, 30):
        count = len(expected) // beam_size
        newcomers = int(rng.integers(0, 6 - count))
        ancestry.append(count, newcomers)
        expected = np.concatenate([expected, np.zeros((newcomers * beam_size, 30), np.int64)])
        positions = np.concatenate([positions, np.zeros(newcomers * beam_size, np.int64)])
        if not len(expected):
            continue
        everyone = np.arange(len(expected))
        expected[everyone, positions] = cells[everyone, positions] = 100 * token + everyone
        staying = rng.permutation(len(expected) // beam_size)[: rng.integers(1, 6)]
        order = (staying[:, None] * beam_size + rng.integers(0, beam_size, (1, beam_size))).ravel()
        copies = ancestry.reorder(order, positions[::beam_size] + 1)
        cells[copies.to, copies.places] = cells[copies.origin, copies.places]
        expected, positions = expected[order], positions[order] + 1
        for row, used in enumerate(positions):
            np.testing.assert_array_equal(cells[row, :used], expected[row, :used])
