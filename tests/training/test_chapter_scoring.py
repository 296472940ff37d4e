"""What the chapter says of queries, products and scores, against hand computations."""

import itertools
import math

import pytest
import torch

from docs.chapter.cues import FILTER, ITEMS, MOVED, looks
from docs.chapter.figure import Run
from docs.chapter.pooling import batch_product
from docs.chapter.scoring import entropy, scores_by_size


def test_a_query_finds_its_thing_where_it_lies_and_a_filter_keeps_its_place() -> None:
    before, after = looks((0, 1, 2, 3, 4)), looks(MOVED)
    for name in ("whatever stands out", "something to read"):
        torch.testing.assert_close(after[name], before[name][list(MOVED)])
    assert after["convolution, dense"].tolist() == FILTER.tolist()
    assert ITEMS[before["something to read"].argmax()] == "book"
    assert ITEMS[before["whatever stands out"].argmax()] == "red cup"


def test_a_batch_product_is_a_weighted_average_of_each_batch() -> None:
    weights = [math.exp(key / 3) for key in range(10)]  # a softmax of 0 to 3
    rising = sum(w * value for w, value in zip(weights, range(10, 20), strict=True)) / sum(weights)
    assert batch_product(Run()).numbers["averages"] == pytest.approx([4.5, rising])


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_products_variance_is_its_size_and_1_when_scaled(size: int) -> None:
    """Over all queries and keys of signs, each of mean 0 and variance 1."""
    signs = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=size)))
    products = signs @ signs.T
    assert products.mean().item() == 0
    assert products.var(unbiased=False).item() == size
    assert (products / math.sqrt(size)).var(unbiased=False).item() == pytest.approx(1)


def test_entropy_is_the_logarithm_of_as_many_equal_weights() -> None:
    weights = torch.tensor([[0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 0, 0], [1, 0, 0, 0]])
    assert entropy(weights).tolist() == pytest.approx([math.log(4), math.log(2), 0])


def test_scaling_keeps_the_entropy_of_large_queries_where_it_is_of_small_ones() -> None:
    torch.manual_seed(0)
    of_small, of_large = (entropy(scores_by_size(size)[1]).mean().item() for size in (4, 1024))
    scores, _ = scores_by_size(1024)
    assert of_large == pytest.approx(of_small, rel=0.05)
    assert entropy(scores.softmax(-1)).mean().item() < of_large / 10
