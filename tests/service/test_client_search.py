"""The flags of `translate` that say how to search, and how their answers are shown."""

import pytest

from service.client.terminal import Style, translation_lines
from service.pb import translation_pb2 as pb
from tests.running_server import RunningServer, run_service

TEXT = "Two young women are walking."


def lines(server: RunningServer, *arguments: str) -> list[str]:
    result = run_service("translate", f"--server={server.address}", *arguments, TEXT)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout.splitlines()


def test_a_prefix_begins_what_is_printed(server: RunningServer) -> None:
    [line] = lines(server, "--prefix=Deux femmes", "--max-length=20")
    assert line.startswith("Deux femmes")


def test_alternatives_are_printed_with_their_scores_and_differ(server: RunningServer) -> None:
    printed = lines(server, "--prefix=Deux", "--alternatives=3", "--max-length=12")
    scores, texts = zip(*(line.split("\t") for line in printed), strict=True)
    assert len({*texts}) == 3 and all(text.startswith("Deux") for text in texts)
    assert sorted(map(float, scores), reverse=True) == [float(score) for score in scores]


def test_a_sample_is_printed_again_for_its_seed(server: RunningServer) -> None:
    sample = ("--sampling-temperature=1", "--beam-size=1", "--max-length=20")
    first, again, other = (lines(server, *sample, f"--sampling-seed={n}") for n in (1, 1, 2))
    assert first == again != other


def test_an_alignment_is_a_line_below_each_hypothesis() -> None:
    hypotheses = [
        pb.Hypothesis(text=text, score=-0.5, alignment=pb.Alignment(pharaoh=pharaoh))
        for text, pharaoh in (("x y", "0-0 1-1"), ("z", ""))
    ]
    translation = pb.Translation(
        translated_text="x y", sentences=[pb.Sentence(hypotheses=hypotheses)]
    )
    shown = list(translation_lines(translation, Style(scores=True, alignment=True)))
    assert shown == ["-0.5000\tx y", "0-0 1-1", "-0.5000\tz", ""]


def test_alignments_are_printed_on_request(server: RunningServer) -> None:
    plain, aligned = (lines(server, *flags) for flags in ([], ["--alignment"]))
    assert aligned[:1] == plain and "-" in aligned[1]


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--sampling-top-k=5", "sampling_top_k is 5 but sampling_temperature is 0"),
        ("--repetition-penalty=0.5", "repetition_penalty is 0.5"),
        ("--no-repeat-ngram-size=99", "no_repeat_ngram_size is 99"),
        ("--length-penalty=-1", "length_penalty is -1"),
        ("--suppress= ", r"suppress_sequences[0] is blank"),
    ],
)
def test_what_the_search_refuses_is_said_by_name(
    server: RunningServer, flag: str, message: str
) -> None:
    result = run_service("translate", f"--server={server.address}", flag, TEXT)
    assert (result.returncode, result.stdout) == (1, "")
    assert message in result.stderr
