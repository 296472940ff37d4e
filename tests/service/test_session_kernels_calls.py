"""How the compiled kernels are called: every row as if it were alone, into the caller's memory, and
with a clear word about what does not fit.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from service.session.fusion import DOMAIN
from service.session.kernels import library
from service.session.loading import accepted
from tests.kernel_cases import (
    LENGTHS,
    LONG,
    NUM_HEADS,
    NUM_SENTENCES,
    SHARED,
    Array,
    Case,
    candidates,
    norm,
    normal,
    on_itself,
    on_past,
    on_source,
    packed_memory,
    session_of,
    words,
    words_of_beams,
)

pytestmark = pytest.mark.skipif(accepted(library()) is None, reason="no kernels for this machine")

CASES: list[Callable[[], Case]] = [
    *(on_source, on_past, on_itself, norm, candidates, words, words_of_beams, packed_memory),
    partial(on_itself, 64),
    partial(on_itself, 64, LONG),
]


@pytest.mark.parametrize("make", CASES)
@pytest.mark.parametrize("index", range(NUM_SENTENCES))
def test_a_sentence_alone_is_as_among_others_bit_for_bit(
    make: Callable[[], Case], index: int
) -> None:
    case = make()
    together, alone = case.run(), case.run(case.alone(index))
    for name, expected in alone.items():
        start = index * len(expected)
        crop = (slice(start, start + len(expected)), *(slice(size) for size in expected.shape[1:]))
        np.testing.assert_array_equal(together[name][crop], expected, err_msg=name)


@pytest.mark.parametrize("make", CASES)
def test_what_the_graph_fixes_is_as_what_it_is_given(make: Callable[[], Case]) -> None:
    case = make()
    constants = [name for name in case.inputs if name in SHARED or name == "lengths"]
    given, fixed = case.run(), case.run(constants=constants)
    for name in given:
        np.testing.assert_array_equal(fixed[name], given[name], err_msg=name)


@pytest.mark.parametrize("make, kept", [(on_source, "context"), (norm, "quantized")])
def test_an_output_may_be_left_out(make: Callable[[], Case], kept: str) -> None:
    case = make()
    outputs = [name if name == kept else "" for name in case.outputs]
    alone = Case(case.operator, case.inputs, outputs, case.attributes).run()
    np.testing.assert_array_equal(alone[kept], case.run()[kept])


def test_the_past_is_continued_where_it_lies() -> None:
    case = on_past()
    expected = case.run()
    node = helper.make_node(
        case.operator, list(case.inputs), case.outputs, domain=DOMAIN, num_heads=NUM_HEADS
    )
    session = session_of([node], case.inputs, {})
    binding = session.io_binding()
    values = {
        name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in case.inputs.items()
    }
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_output("context")
    for name in ("key", "value"):
        binding.bind_ortvalue_output(f"next_{name}", values[f"past_{name}"])
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.get_outputs()[0].numpy(), expected["context"])
    for name in ("key", "value"):
        np.testing.assert_array_equal(values[f"past_{name}"].numpy(), expected[f"next_{name}"])


def test_places_that_are_left_out_are_those_of_the_sentence() -> None:
    case = words()
    num_sentences, num_tokens = case.inputs["tokens"].shape
    places = np.tile(np.arange(num_tokens, dtype=np.int32), num_sentences)
    left_out, given = case.run(), case.run({"places": places})
    for name in given:
        np.testing.assert_array_equal(left_out[name], given[name], err_msg=name)


def changed(array: Array, index: int | tuple[int, ...], value: float) -> Array:
    array = array.copy()
    array[index] = value
    return array


TOKENS = words().inputs["tokens"]
WRONG = [
    (on_source, "lengths", changed(LENGTHS, 1, 0), r"lengths\[1\] is 0, outside 1 to 43"),
    (on_source, "lengths", changed(LENGTHS, 2, 44), r"lengths\[2\] is 44, outside 1 to 43"),
    (on_source, "lengths", LENGTHS[:4], r"lengths has shape \(4\) where \(5\) is expected"),
    (on_source, "query", normal(0, 5, 4, 13), "query has 13 features, not a multiple of 3"),
    (on_source, "query", normal(0, 5, 12), r"query has shape \(5, 12\) where \(any, any, any\)"),
    (on_source, "query", normal(0, *[1] * 9), "an input has 9 dimensions, the limit is 8"),
    (on_source, "key", normal(0, 5, 3, 43, 5), r"\(5, 3, 43, 5\) where \(5, 3, any, 4\)"),
    (on_source, "key", normal(0, 5, 3, 8193, 4), "number of places is 8193, outside 0 to 8192"),
    (on_source, "value", normal(0, 5, 3, 42, 4), r"\(5, 3, 42, 4\) where \(5, 3, 43, 4\)"),
    (on_source, "scale", normal(0, 2), r"scale has shape \(2\) where \(\) is expected"),
    (on_past, "positions", np.full(20, 43, np.int32), r"positions\[0\] is 43, outside 0 to 42"),
    (on_past, "positions", np.full(20, -1, np.int32), r"positions\[0\] is -1, outside 0 to 42"),
    (on_past, "past_key", normal(0, 19, 3, 43, 4), r"\(19, 3, 43, 4\) where \(20, 3, any, 4\)"),
    (on_past, "past_value", normal(0, 20, 3, 9, 4), r"\(20, 3, 9, 4\) where \(20, 3, 43, 4\)"),
    (on_past, "qkv", normal(0, 5, 4, 0), "qkv has 0 features, not a multiple of 9"),
    (on_itself, "lengths", changed(LENGTHS, 4, -7), r"lengths\[4\] is -7, outside 1 to 41"),
    (on_itself, "qkv", normal(0, 5, 0, 36), r"lengths\[0\] is 17, outside 1 to 0"),
    (norm, "a", np.array(0, np.float32), "a has no dimension"),
    (norm, "b", normal(0, 5, 3, 41), r"b has shape \(5, 3, 41\) where \(5, 3, 40\) is expected"),
    (norm, "gamma", normal(0, 41), r"gamma has shape \(41\) where \(40\) is expected"),
    (candidates, "num_candidates", np.array([0]), "num_candidates is 0, outside 1 to 270"),
    (candidates, "num_candidates", np.array([271]), "num_candidates is 271, outside 1 to 270"),
    (candidates, "num_candidates", np.array([1, 1]), r"shape \(2\) where \(1\) is expected"),
    (candidates, "common", normal(0, 9, 200), r"shape \(9, 200\) where \(10, any\) is expected"),
    (candidates, "biases", normal(0, 5, 1, 69), r"\(5, 1, 69\) where \(5, 1, 70\) is expected"),
    (words, "tokens", changed(TOKENS, (1, 3), 30), r"tokens\[1, 3\] is 30, outside 0 to 29"),
    (words, "tokens", changed(TOKENS, (4, 42), -1), r"tokens\[4, 42\] is -1, outside 0 to 29"),
    (words, "tokens", TOKENS[0], r"tokens has shape \(43\) where \(any, any\) is expected"),
    (words, "table", np.zeros((0, 40), np.uint8), r"scales has shape \(30, 1\) where \(0, 1\)"),
    (words, "table_scales", normal(0, 30, 2), r"scales has shape \(30, 2\) where \(30, 1\)"),
    (words, "encodings", normal(0, 43, 41), r"positions has shape \(43, 41\) where \(any, 40\)"),
    (words, "encodings", normal(0, 42, 40), "number of places is 43, outside 0 to 42"),
    (words_of_beams, "places", np.full(20, 43, np.int32), r"places\[0\] is 43, outside 0 to 42"),
    (words_of_beams, "places", np.full(20, -1, np.int32), r"places\[0\] is -1, outside 0 to 42"),
    (words_of_beams, "places", np.zeros(19, np.int32), r"places has shape \(19\) where \(20\)"),
    (packed_memory, "packed", normal(0, 5, 2, 25), "packed has 25 features, not a multiple of 6"),
    (packed_memory, "packed", normal(0, 5, 24), r"\(5, 24\) where \(any, any, any\) is expected"),
]


@pytest.mark.parametrize("make, name, wrong, message", WRONG)
def test_what_does_not_fit_is_refused_by_name(
    make: Callable[[], Case], name: str, wrong: Array, message: str
) -> None:
    case = make()
    with pytest.raises(Exception, match=f"{case.operator}: .*{message}"):
        case.run({name: wrong})


@pytest.mark.parametrize("num_heads, message", [(0, "outside 1 to 32767"), (None, "num_heads")])
def test_a_number_of_heads_is_needed(num_heads: int | None, message: str) -> None:
    case = on_itself()
    attributes = {} if num_heads is None else {"num_heads": num_heads}
    with pytest.raises(Exception, match=message):
        Case(case.operator, case.inputs, case.outputs, attributes).run()
