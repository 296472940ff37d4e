"""The `score` command: pairs in, what the model thinks of each out."""

from pathlib import Path

import pytest

from service.client import Client
from service.client.terminal import attention_lines
from service.pb import translation_pb2 as pb
from tests.running_server import RunningServer, run_service

SOURCE = "Two young women are walking."
TARGETS = "Deux femmes.", "Deux jeunes femmes marchent dans la rue."


def score(server: RunningServer, *arguments: str, input: str = "") -> tuple[int, list[str], str]:
    """Exit code, lines of output and errors."""
    result = run_service("score", "--server", server.address, *arguments, input=input)
    return result.returncode, result.stdout.splitlines(), result.stderr


def given(*targets: str) -> list[str]:
    """The flags for a source and some translations of it."""
    return ["--source", SOURCE, *(part for target in targets for part in ("--target", target))]


def scored(client: Client) -> pb.ScoreResponse:
    pairs = [pb.SentencePair(source=SOURCE, target=target) for target in TARGETS]
    return client.score(pb.ScoreRequest(pairs=pairs, include_attention=True))


def test_each_pair_gets_its_log_probability_its_score_and_its_tokens(
    server: RunningServer, client: Client
) -> None:
    code, lines, _ = score(server, *given(*TARGETS))
    expected = list[str]()
    for target, found in zip(TARGETS, scored(client).scores, strict=True):
        expected.append(f"{found.log_prob:.4f}\t{found.score:.4f}\t{target}")
        texts = [*(token.text for token in found.token_scores.tokens), "</s>"]
        numbers = found.token_scores.log_probs
        expected += [f"{n:9.4f}  {text}" for n, text in zip(numbers, texts, strict=True)]
    assert (code, lines) == (0, expected)


def test_lines_are_pairs_and_are_answered_with_a_line_each(server: RunningServer) -> None:
    _, typed, _ = score(server, *given(*TARGETS))
    pairs = "".join(f"{SOURCE}\t{target}\n" for target in TARGETS) * 40  # more than one request
    code, lines, _ = score(server, input=pairs)
    assert code == 0
    assert lines == [line for line in typed if "\t" in line] * 40
    assert score(server, "--tokens", input=pairs)[1] == typed * 40


def test_attention_stands_below_its_pair(server: RunningServer, client: Client) -> None:
    _, plain, _ = score(server, *given(TARGETS[0]))
    arguments = ["score", "--server", server.address, "--attention", *given(TARGETS[0])]
    result = run_service(*arguments, COLUMNS="70")
    drawn = attention_lines(scored(client).scores[0].attention, max_width=70, colour=False)
    assert result.stdout.splitlines() == [*plain, "", *drawn]


def test_a_milder_length_penalty_changes_the_score_alone(server: RunningServer) -> None:
    (usual, *_), (other, *_) = (
        score(server, *flags, *given(TARGETS[1]))[1] for flags in ([], ["--length-penalty=0"])
    )
    log_prob, divided, _ = usual.split("\t")
    assert other.split("\t")[:2] == [log_prob, log_prob] != [log_prob, divided]


def test_models_of_a_directory_score_without_a_server(server: RunningServer, models: Path) -> None:
    chosen = ["--model", "tiny-transformer", *given(*TARGETS)]
    result = run_service("score", "--models", str(models), *chosen)
    assert (result.returncode, result.stdout.splitlines()) == score(server, *chosen)[:2]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (" \tdeux", "source of line 70 is blank"),
        ("two", "line 70 has 1 columns"),
        ("two\tdeux\tzwei", "line 70 has 3 columns"),
        ("two\t" + "deux " * 99, "target of line 70 has more than"),
    ],
)
def test_an_error_names_the_line_of_the_pair(line: str, fault: str, server: RunningServer) -> None:
    code, lines, errors = score(server, input=f"{SOURCE}\tdeux\n" * 69 + line + "\n")
    assert (code, len(lines)) == (1, 64)
    assert errors.startswith(f"INVALID_ARGUMENT: {fault}")


@pytest.mark.parametrize("half", [["--source", SOURCE], ["--target", TARGETS[0]]])
def test_half_a_pair_is_refused(half: list[str], server: RunningServer) -> None:
    code, lines, errors = score(server, *half)
    assert (code, lines, errors) == (2, [], "score: --source and --target belong together\n")
