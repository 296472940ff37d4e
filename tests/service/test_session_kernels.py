"""The compiled kernels give what a few lines of numpy give."""

from collections.abc import Callable

import numpy as np
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
    SCALE,
    ZERO_POINT,
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

BEAMS, HEAD_SIZES = [1, 4], [4, 12, 32, 64, 128]


def logits_of(case: Case) -> Array:
    """(rows, common + listed)"""
    inputs = case.inputs
    listed = inputs["products"] * inputs["scales"].astype(np.float64) + inputs["biases"]
    return np.concatenate([inputs["common"], listed.reshape(len(inputs["common"]), -1)], axis=1)


def softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def by_head(rows: Array) -> Array:
    """(..., heads * size) -> (heads, ..., size), in double precision."""
    parts = np.split(rows.astype(np.float64), NUM_HEADS, axis=-1)
    return np.stack(parts)


def attend(query: Array, keys: Array, values: Array) -> tuple[Array, Array]:
    """(heads, queries, size) on (heads, places, size) -> context (queries, all), weights."""
    weights = softmax(query @ keys.swapaxes(1, 2) / np.sqrt(query.shape[-1]))
    return np.concatenate(list(weights @ values.astype(np.float64)), axis=-1), weights


def assert_quantized(actual: Array, floats: Array) -> None:
    """Each is a nearest step, but for what differs in the last places of a float."""
    steps = np.clip(floats / np.float64(SCALE) + ZERO_POINT, 0, 255)
    assert actual.dtype == np.uint8
    np.testing.assert_array_less(np.abs(actual - steps), 0.5 + 1e-3)


@pytest.mark.parametrize("beam", BEAMS)
@pytest.mark.parametrize("head_size", HEAD_SIZES)
def test_beams_attend_to_the_places_of_their_source(beam: int, head_size: int) -> None:
    case = on_source(beam, head_size)
    made, inputs = case.run(), case.inputs
    made_weights = np.split(made["weights"], NUM_SENTENCES)
    for n, length in enumerate(LENGTHS):
        keys, values = (inputs[name][n, :, :length] for name in ("key", "value"))
        context, weights = attend(by_head(inputs["query"][n]), keys, values)
        assert_quantized(made["context"][n], context)
        np.testing.assert_allclose(
            made_weights[n][..., :length], weights.swapaxes(0, 1), rtol=1e-4, atol=1e-7
        )
        assert not made_weights[n][..., length:].any()


@pytest.mark.parametrize("beam", BEAMS)
@pytest.mark.parametrize("head_size", HEAD_SIZES)
def test_a_row_attends_to_its_past_and_to_itself(beam: int, head_size: int) -> None:
    case = on_past(beam, head_size)
    made, inputs = case.run(), case.inputs
    qkv = inputs["qkv"].reshape(NUM_SENTENCES * beam, -1)
    contexts = made["context"].reshape(NUM_SENTENCES * beam, -1)
    for row, position in enumerate(inputs["positions"]):
        query, key, value = (by_head(part) for part in np.split(qkv[row], 3))
        inputs["past_key"][row, :, position] = key
        inputs["past_value"][row, :, position] = value
        past = (inputs[name][row, :, : position + 1] for name in ("past_key", "past_value"))
        assert_quantized(contexts[row], attend(query[:, None], *past)[0][0])
    np.testing.assert_array_equal(made["next_key"], inputs["past_key"])
    np.testing.assert_array_equal(made["next_value"], inputs["past_value"])


@pytest.mark.parametrize("lengths", [LENGTHS, LONG], ids=["short", "long"])
@pytest.mark.parametrize("head_size", HEAD_SIZES)
def test_every_place_attends_to_the_places_of_its_sentence(head_size: int, lengths: Array) -> None:
    case = on_itself(head_size, lengths)
    made = case.run()["context"]
    for context, qkv, length in zip(made, case.inputs["qkv"], lengths, strict=True):
        query, key, value = (by_head(part) for part in np.split(qkv, 3, axis=-1))
        assert_quantized(context, attend(query, key[:, :length], value[:, :length])[0])


@pytest.mark.parametrize("size", [1, 12, 256])
def test_a_sum_is_normalized_and_then_quantized(size: int) -> None:
    case = norm(size)
    made, inputs = case.run(), case.inputs
    added = inputs["a"].astype(np.float64) + inputs["b"]
    centred = added - added.mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    expected = scaled * inputs["gamma"] + inputs["beta"]
    np.testing.assert_allclose(made["sum_norm"], expected, rtol=1e-4, atol=1e-5)
    assert_quantized(made["quantized"], expected)


@pytest.mark.parametrize("size", [1, 12, 256])
@pytest.mark.parametrize("make", [words, lambda size: words_of_beams(size=size)])
def test_a_word_at_its_place_is_their_sum_and_then_quantized(
    make: Callable[[int], Case], size: int
) -> None:
    case = make(size)
    made, inputs = case.run(), case.inputs
    tokens = inputs["tokens"]
    table = (inputs["table"] - np.float64(128)) * inputs["table_scales"]
    places = inputs.get("places", np.tile(np.arange(tokens.shape[1]), NUM_SENTENCES))
    expected = table[tokens] + inputs["encodings"][places.reshape(tokens.shape)]
    np.testing.assert_allclose(made["hidden"], expected, rtol=1e-5, atol=1e-6)
    assert_quantized(made["quantized"], expected)


@pytest.mark.parametrize("head_size", HEAD_SIZES)
def test_a_packed_memory_becomes_the_keys_and_values_of_each_head(head_size: int) -> None:
    case = packed_memory(head_size)
    made, packed = case.run(), case.inputs["packed"]
    both = packed.reshape(*packed.shape[:2], 2, NUM_HEADS, head_size).transpose(2, 0, 3, 1, 4)
    for name, expected in zip(("keys", "values"), both, strict=True):
        np.testing.assert_array_equal(made[name], expected)


@pytest.mark.parametrize("scale", [0.25, 0.02, 1e-30, 1e30])
@pytest.mark.parametrize("zero_point", [0, 120, 255])
def test_quantizing_is_bit_for_bit_that_of_onnxruntime(scale: float, zero_point: int) -> None:
    halves = np.arange(-600, 600, dtype=np.float32) / 2 * np.float32(scale)
    edges = np.array([0, -0.0, 1e-40, -1e-40, 3e38, -3e38, np.inf, -np.inf], np.float32)
    beta = np.concatenate([halves, np.nextafter(halves, np.float32(9)), edges, 9 * normal(16, 999)])
    summands = {"a": normal(17, 1, len(beta)), "b": normal(18, 1, len(beta))}
    constants = {
        "gamma": np.zeros_like(beta),
        "beta": beta,
        "scale": np.array(scale, np.float32),
        "zero_point": np.array(zero_point, np.uint8),
    }
    quantizer = ["scale", "zero_point"]
    inputs, outputs = [*summands, *constants], ["floats", "actual"]
    nodes = [
        helper.make_node("AddNormQuantize", inputs, outputs, domain=DOMAIN, epsilon=1e-5),
        helper.make_node("QuantizeLinear", ["floats", *quantizer], ["expected"]),
    ]
    session = session_of(nodes, summands, constants)
    floats, actual, expected = session.run(["floats", "actual", "expected"], summands)
    np.testing.assert_array_equal(floats[0], beta)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("count", [1, 2, 8, 16, 17, 64, 65, 270])
def test_candidates_are_the_best_of_both_lists(count: int) -> None:
    case = candidates(count)
    made, logits = case.run(), logits_of(case)
    places = np.argsort(-logits, axis=1, kind="stable")[:, :count]
    log_probs = np.log(np.maximum(softmax(logits), 1e-300))
    real = np.take_along_axis(logits, places, axis=1) > -1e8
    np.testing.assert_array_equal(made["places"], places)
    expected = np.take_along_axis(log_probs, places, axis=1)
    np.testing.assert_allclose(made["log_probs"][real], expected[real], rtol=1e-5, atol=1e-5)
    assert (made["log_probs"][~real] < -1e8).all()


@pytest.mark.parametrize("num_common, num_listed", [(0, 3), (1, 0), (64, 64), (100, 17)])
@pytest.mark.parametrize("count", [1, 3, 20, 65])
def test_of_equal_candidates_the_first_comes_first(
    count: int, num_common: int, num_listed: int
) -> None:
    count = min(count, num_common + num_listed)
    case = candidates(count, num_common, num_listed)
    rounded = np.round(case.inputs["common"] / 3)
    rounded[rounded < -1] = -np.inf
    equal = {"scales": np.zeros_like(case.inputs["scales"]), "common": rounded}
    equal["biases"] = np.ones_like(case.inputs["biases"])
    case = Case(case.operator, case.inputs | equal, case.outputs)
    places = np.argsort(-logits_of(case), axis=1, kind="stable")[:, :count]
    np.testing.assert_array_equal(case.run()["places"], places)


def test_rows_without_a_number_end_too_and_leave_the_others_alone() -> None:
    case = candidates()
    clean = case.run()
    common = case.inputs["common"].copy()
    common[0], common[3, 7:] = np.nan, np.nan
    made = case.run({"common": common})
    others = [row for row in range(len(common)) if row not in (0, 3)]
    np.testing.assert_array_equal(made["places"][others], clean["places"][others])
    assert ((made["places"] >= 0) & (made["places"] < 270)).all()
