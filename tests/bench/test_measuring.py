"""Turns, medians, tables and files: what is printed is what was measured."""

import json
from functools import partial
from pathlib import Path

import pytest

from bench.corpus import OWN_SENTENCES, load_corpus
from bench.results import write_results
from bench.table import Row, format_table
from bench.timing import Ratio, alternate, percentile


def test_systems_take_turns_in_every_round() -> None:
    order: list[str] = []
    seconds = alternate({name: partial(order.append, name) for name in "ab"}, 3)
    assert order == ["a", "b"] * 3
    assert {name: len(each) for name, each in seconds.items()} == {"a": 3, "b": 3}


def test_a_ratio_is_the_median_of_the_rounds_and_not_of_the_sides() -> None:
    # The machine was twice as slow in the second round, for both alike.
    assert Ratio.of([1.0, 2.0, 1.2], [2.0, 4.0, 2.0]) == Ratio(0.5, 0.5, 0.6)


@pytest.mark.parametrize(("percent", "expected"), [(50, 50), (99, 99), (100, 100), (0, 1)])
def test_a_percentile_is_one_of_the_values(percent: float, expected: int) -> None:
    assert percentile([float(value) for value in range(100, 0, -1)], percent) == expected


def test_a_table_has_the_columns_that_its_workload_has() -> None:
    rows = [
        Row("corpus", "beam 1", "ours", {"tokens/s": 12345.6, "ratio": 1.234}),
        Row("corpus", "beam 1", "peer", {"tokens/s": 99.94, "same": "100.00%"}),
        Row("idle", "", "ours", {"CPU %": 0.0}),
    ]
    assert format_table(rows).splitlines() == [
        "corpus  system  tokens/s  ratio     same",
        "------  ------  --------  -----  -------",
        "beam 1  ours      12,346   1.23",
        "beam 1  peer        99.9         100.00%",
        "",
        "idle  system  CPU %",
        "----  ------  -----",
        "      ours        0",
    ]


def test_a_file_of_results_has_the_rows_the_settings_and_the_machine(tmp_path: Path) -> None:
    path = tmp_path / "results" / "latest.json"
    write_results(path, [Row("idle", "", "ours", {"CPU %": 0.5})], {"rounds": 7})
    document = json.loads(path.read_text())
    assert document["rows"] == [
        {"workload": "idle", "case": "", "system": "ours", "values": {"CPU %": 0.5}}
    ]
    assert document["settings"] == {"rounds": 7}
    assert document["machine"]["usable_cores"] >= 1


def test_our_own_sentences_are_many_and_distinct() -> None:
    corpus = load_corpus(OWN_SENTENCES)
    assert len(corpus.sources) == len(set(corpus.sources)) > 150
    assert corpus.references is None


def test_a_file_of_lines_is_a_corpus_without_references(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("One.\n\n  Two. \nOne.\n")
    assert load_corpus(path).sources == ["One.", "Two."]


def test_a_file_without_sentences_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("\n \n")
    with pytest.raises(ValueError, match=r"lines\.txt has no sentences"):
        load_corpus(path)
