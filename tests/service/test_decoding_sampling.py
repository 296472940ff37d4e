"""Sampling: drawn from the right distribution, and repeatable whatever the neighbours."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from service.decoding import DecodingOptions, decode
from tests.reference_search import EOS
from tests.toys import ToyModel, alone, identical, random_sources

TOY = ToyModel(12, seed=4)
WIDE = ToyModel(300, seed=4)  # top-p has to look further than at the first tokens
SOURCE = [3, 5, EOS]


def distribution(
    toy: ToyModel, temperature: float, top_k: int, top_p: float, banned: int
) -> NDArray[np.float64]:
    """Of the first token, in the words of the definition."""
    probs = np.exp(toy.predict(SOURCE, ())[0].astype(np.float64)) ** (1 / temperature)
    probs[banned] = 0
    order = np.argsort(-probs)
    kept, mass = np.zeros(len(probs), np.bool_), 0.0
    within = order[: top_k or None]
    for token in within:
        kept[token] = mass < top_p * probs[within].sum()
        mass += probs[token]
    kept_probs: NDArray[np.float64] = probs * kept
    kept_probs /= kept_probs.sum()
    return kept_probs


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [
        (1.0, 0, 1.0),
        (0.5, 0, 1.0),
        (3.0, 4, 1.0),
        (1.0, 40, 1.0),
        (2.0, 40, 0.8),
        (3.0, 0, 0.2),
        (3.0, 0, 0.5),
        (2.0, 0, 0.7),
        (3.0, 0, 0.95),
        (2.0, 5, 0.8),
        (1.0, 1, 1.0),
    ],
)
@pytest.mark.parametrize("toy", [TOY, WIDE], ids=["narrow", "wide"])
def test_tokens_are_drawn_as_often_as_they_are_likely(
    toy: ToyModel, temperature: float, top_k: int, top_p: float
) -> None:
    num = 3000
    options = DecodingOptions(
        sampling_temperature=temperature,
        sampling_top_k=top_k,
        sampling_top_p=top_p,
        max_length=1,
        suppress_tokens=(7,),
    )
    seeded = [replace(options, sampling_seed=seed) for seed in range(num)]
    results = decode(toy, [SOURCE] * num, seeded, max_rows=num)
    counts = Counter(found.ids[0] if found.ids else EOS for (found,) in results)
    expected = distribution(toy, temperature, top_k, top_p, banned=7)
    drawn = np.array([counts[token] / num for token in range(len(expected))])
    assert set(np.flatnonzero(drawn)) <= set(np.flatnonzero(expected))
    # Together with all that are likelier; five standard deviations of the least certain sum.
    likeliest = np.argsort(-expected)
    apart = np.abs((drawn - expected)[likeliest].cumsum())
    assert apart.max() < 5 * np.sqrt(0.25 / num)


def test_the_same_seed_draws_the_same_whatever_the_neighbours() -> None:
    sources = random_sources(20, seed=5)
    rng = np.random.default_rng(5)
    options = [
        DecodingOptions(
            sampling_temperature=float(rng.choice([0.7, 1.0, 2.0])),
            sampling_top_k=int(rng.choice([0, 3, 100])),
            sampling_top_p=float(rng.choice([0.6, 1.0])),
            sampling_seed=int(rng.integers(2**63)),
            max_length=15,
        )
        if index % 3
        else DecodingOptions(max_length=15)
        for index in range(20)
    ]
    together = decode(TOY, sources, options, max_rows=7)
    for source, option, found in zip(sources, options, together, strict=True):
        assert identical(found, alone(TOY, source, option))


def test_another_seed_draws_another_translation() -> None:
    options = DecodingOptions(sampling_temperature=2.0, max_length=10)
    drawn = {
        alone(TOY, SOURCE, replace(options, sampling_seed=seed))[0].ids
        for seed in (0, 1, 2, 3, 2**64 - 1)
    }
    assert len(drawn) == 5


def test_a_low_temperature_and_the_likeliest_alone_are_greedy() -> None:
    for source in random_sources(20, seed=6):
        (greedy,) = alone(TOY, source, DecodingOptions(max_length=15))
        for options in (
            DecodingOptions(sampling_temperature=1e-5, max_length=15),
            DecodingOptions(sampling_temperature=1e-300, max_length=15),
            DecodingOptions(sampling_temperature=5.0, sampling_top_k=1, max_length=15),
            DecodingOptions(sampling_temperature=1.0, sampling_top_p=1e-9, max_length=15),
        ):
            assert identical([greedy], alone(TOY, source, options))


def test_a_sample_carries_the_models_own_log_probabilities() -> None:
    options = DecodingOptions(sampling_temperature=3.0, sampling_seed=9, max_length=10)
    for source in random_sources(10, seed=7):
        (found,) = alone(TOY, source, options)
        for position, token in enumerate(found.ids):
            expected = TOY.predict(source, found.ids[:position])[0][token]
            assert found.token_log_probs[position] == expected


def test_a_sample_of_the_likeliest_alone_goes_on_from_a_prefix() -> None:
    """Nobody in the batch draws while the prefix is said."""
    for beta in (0.0, 0.5):
        greedy = DecodingOptions(prefix=(4, 6), prefix_bias_beta=beta, max_length=15)
        options = replace(greedy, sampling_temperature=1.0, sampling_top_k=1)
        assert identical(alone(TOY, SOURCE, options), alone(TOY, SOURCE, greedy))
