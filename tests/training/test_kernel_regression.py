"""Kernel regression: attention whose scores are distances, against the textbook's formulas."""

import math

import pytest
import torch

from training.kernel_regression import (
    GaussianAttention,
    Samples,
    draw_samples,
    fit,
    leave_one_out_errors,
    predict,
    truth,
)


@pytest.fixture
def samples() -> Samples:
    return draw_samples(50, torch.Generator().manual_seed(0))


def test_a_prediction_is_the_gaussian_weighted_mean_computed_by_hand() -> None:
    samples = Samples(torch.tensor([0.0, 1.0]), torch.tensor([0.0, 1.0]))
    predictions, weights = predict(GaussianAttention(), samples, torch.tensor([0.0]))
    near, far = 1.0, math.exp(-1 / 2)
    assert weights.tolist() == [
        [pytest.approx(near / (near + far)), pytest.approx(far / (near + far))]
    ]
    assert predictions.item() == pytest.approx(far / (near + far))


def test_a_prediction_equals_nadaraya_and_watsons_quotient_of_kernels(samples: Samples) -> None:
    x, width = torch.linspace(0, 5, 7), 0.4
    predictions, _ = predict(GaussianAttention(width), samples, x)
    for place, prediction in zip(x.tolist(), predictions.tolist(), strict=True):
        kernel = [
            math.exp(-(((place - key) / width) ** 2) / 2) / (width * math.sqrt(2 * math.pi))
            for key in samples.x.tolist()
        ]
        weighted = sum(k * y for k, y in zip(kernel, samples.y.tolist(), strict=True))
        assert prediction == pytest.approx(weighted / sum(kernel), rel=1e-4)


def test_keys_beyond_the_valid_length_have_no_weight() -> None:
    numbers = torch.arange(4.0).view(1, 4, 1)
    _, weights = GaussianAttention()(numbers, numbers, numbers, torch.tensor([2]))
    assert weights[..., 2:].count_nonzero() == 0


def test_an_infinitely_wide_kernel_is_average_pooling(samples: Samples) -> None:
    predictions, _ = predict(GaussianAttention(1e6), samples, torch.linspace(0, 5, 9))
    torch.testing.assert_close(predictions, samples.y.mean().expand(9))


def test_a_very_narrow_kernel_gives_back_each_sample(samples: Samples) -> None:
    predictions, _ = predict(GaussianAttention(1e-5), samples, samples.x)
    torch.testing.assert_close(predictions, samples.y)


def test_samples_are_sorted_within_their_range_and_noisy_as_told(samples: Samples) -> None:
    assert samples.x.diff().min() >= 0 and 0 <= samples.x.min() and samples.x.max() < 5
    many = draw_samples(20_000, torch.Generator().manual_seed(0))
    assert (many.y - truth(many.x)).std().item() == pytest.approx(0.5, rel=0.02)


def test_an_error_that_leaves_one_out_is_that_of_a_prediction_from_the_others(
    samples: Samples,
) -> None:
    attention = GaussianAttention(0.5)
    others = Samples(samples.x[1:], samples.y[1:])
    prediction, _ = predict(attention, others, samples.x[:1])
    error = leave_one_out_errors(attention, samples)[0]
    torch.testing.assert_close(error, prediction[0] - samples.y[0])


def test_learning_narrows_the_kernel_and_lowers_the_error_at_unseen_places(
    samples: Samples,
) -> None:
    fixed, learned = GaussianAttention(), GaussianAttention()
    losses = fit(learned, samples, epochs=30, rate=1.0)
    assert losses[-1] < losses[0] / 2
    assert learned.width < fixed.width / 2
    x = torch.arange(0, 5, 0.1)
    of_fixed, of_learned = (
        (predict(attention, samples, x)[0] - truth(x)).square().mean().item()
        for attention in (fixed, learned)
    )
    assert of_learned < of_fixed / 4


def test_the_learned_width_is_where_the_error_is_least(samples: Samples) -> None:
    attention = GaussianAttention()
    fit(attention, samples, epochs=400, rate=1.0)
    least = leave_one_out_errors(attention, samples).square().mean()
    for factor in (0.9, 1.1):
        other = GaussianAttention(attention.width * factor)
        assert leave_one_out_errors(other, samples).square().mean() > least
