"""The graphs that move rows on a device: as they are shipped, and that a device could run them."""

from dataclasses import replace

import numpy as np
import onnx
import pytest

from export.cuda import place
from export.graphs.rows import FOLDER, row_graphs
from service.bundle import Bundle
from service.decoding import DecodingOptions, decode
from service.session import Graphs, OnnxModel
from service.session.placement import OnDevice
from tests.tiny_bundle import random_sources

SOURCES = random_sources(12, seed=5)
MAX_ROWS = 16


def test_those_that_are_shipped_are_those_that_are_made() -> None:
    shipped = {path.name: path.read_bytes() for path in FOLDER.iterdir()}
    assert shipped == row_graphs()


@pytest.mark.parametrize("name", row_graphs())
def test_a_device_runs_them_as_a_whole(name: str) -> None:
    model = onnx.load_from_string(row_graphs()[name])
    placement = place(model)
    assert len(placement.on_device) == len(model.graph.node)
    assert placement.copies == ()


@pytest.mark.parametrize("beam_size", [1, 3])
def test_lists_of_words_may_live_on_a_device(listed: Bundle, beam_size: int) -> None:
    host = Graphs.load(listed, "int8")
    dtypes = {spec.dtype for spec in host.manifest.memory + host.manifest.shortlist}
    device = replace(host, placement=OnDevice("cpu", dtypes | {"float32"}))
    options = DecodingOptions(beam_size=beam_size, max_length=40, shortlist=True)
    expected, found = (
        decode(OnnxModel(graphs, MAX_ROWS), SOURCES, options, max_rows=MAX_ROWS)
        for graphs in (host, device)
    )
    for these, those in zip(expected, found, strict=True):
        assert [each.ids for each in these] == [each.ids for each in those]
        np.testing.assert_array_equal(these[0].token_log_probs, those[0].token_log_probs)
