"""Languages told apart, on the real detector."""

import subprocess
import sys

import pytest

from service.errors import InvalidArgument
from service.text.detection import Detection, LanguageDetector


@pytest.fixture(scope="module")
def detector() -> LanguageDetector:
    return LanguageDetector()


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Where is the station?", "en"),
        ("WHERE IS THE STATION?", "en"),
        ("Où est la gare ?", "fr"),
        ("Ou\u0300 est la gare\u00a0?", "fr"),
        ("Hvor er stasjonen?", "nb"),
        ("火车站在哪里？", "zh"),
    ],
)
def test_a_sentence_is_in_its_language(
    text: str, language: str, detector: LanguageDetector
) -> None:
    [detection] = detector.detect_all([text], ["en", "fr", "nb", "zh"])
    assert detection.language == language
    assert 0.5 < detection.confidence <= 1


def test_every_text_is_told_by_itself(detector: LanguageDetector) -> None:
    texts = ["Where is the station?", "", "Où est la gare ?", "12:30"]
    together = detector.detect_all(texts, ["fr", "en"])
    assert together == [detector.detect_all([text], ["fr", "en"])[0] for text in texts]


@pytest.mark.parametrize("text", ["", " ", "12:30", "😀"])
def test_what_says_nothing_is_in_the_first_language(text: str, detector: LanguageDetector) -> None:
    assert detector.detect_all([text], ["fr", "en"]) == [Detection("fr", 0.5)]


def test_a_language_that_it_does_not_know_is_refused_with_the_way_out(
    detector: LanguageDetector,
) -> None:
    with pytest.raises(InvalidArgument, match="empty, and tlh can't be told .*; set it"):
        detector.detect_all(["nuqneH"], ["en", "tlh"])


def test_nothing_is_loaded_before_it_is_asked() -> None:
    code = (
        "import sys, service.rpc; from service.text.detection import LanguageDetector;"
        "LanguageDetector(); sys.exit('py3langid' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
