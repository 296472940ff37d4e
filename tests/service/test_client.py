"""The client and the command line: the same answers with and without a server."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from service.client import Client
from service.client.local import LocalClient
from service.client.terminal import (
    Style,
    attention_lines,
    display_width,
    pad,
    printable,
    translation_lines,
)
from service.errors import Unavailable
from service.pb import translation_pb2 as pb
from tests.running_server import RunningServer, run_service

TEXT = "Two young women are walking."


def attention_of(source: list[str], target: list[str], rows: list[list[float]]) -> pb.Attention:
    return pb.Attention(
        source_tokens=[pb.Token(text=text) for text in source],
        target_tokens=[pb.Token(text=text) for text in target],
        num_heads=1,
        num_targets=len(target),
        num_sources=len(source),
        weights=[weight for row in rows for weight in row],
    )


SMALL = attention_of(["cat", "的", "</s>"], ["chat", "é"], [[1, 0, 0], [0.5, 0.25, 0.25]])


def test_a_local_client_answers_as_the_server_does(client: Client, models: Path) -> None:
    request = pb.TranslateRequest(
        contents=[TEXT, "", "A man."], model="tiny-transformer", include_attention=True
    )
    with LocalClient(models) as local:
        assert local.translate(request) == client.translate(request)
        local_limits, limits = local.list_models().limits, client.list_models().limits
        assert local_limits == limits


def test_a_server_that_is_not_there_is_unavailable_and_named() -> None:
    with Client("localhost:1") as client, pytest.raises(Unavailable, match="localhost:1: "):
        client.list_models()


@pytest.mark.parametrize(
    "module", ["service.client", "service.client.terminal", "service.__main__"]
)
def test_talking_to_a_server_needs_no_runtime_of_models(module: str) -> None:
    heavy = {"numpy", "onnxruntime", "sentencepiece"}
    code = f"import sys, {module}; print(*{heavy} & {{*sys.modules}})"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "\n"


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("", 0),
        ("abc", 3),
        ("的", 2),
        ("é", 1),
        ("e\u0301", 1),
        ("😀", 2),
        ("ﾊ", 1),
        ("👩\u200d🚀", 2),
        ("👍🏽", 2),
        ("❤\ufe0f", 2),
        ("كتاب", 4),
    ],
)
def test_a_text_is_as_wide_as_the_terminal_shows_it(text: str, width: int) -> None:
    assert display_width(text) == width
    assert display_width(pad(text, 5)) == 5


def test_control_characters_never_reach_the_terminal() -> None:
    assert printable("a\x1b[31mb\n") == "a�[31mb�"


def test_attention_is_drawn_with_a_row_for_each_target_and_a_column_for_each_source_token() -> None:
    assert list(attention_lines(SMALL, 80, colour=False)) == [
        "     cat 的 </s>",
        "chat ███",
        "   é ▒▒▒ ░░ ░░░░",
        "",
    ]


def test_columns_that_do_not_fit_continue_below() -> None:
    assert list(attention_lines(SMALL, 11, colour=False)) == [
        "     cat 的",
        "chat ███",
        "   é ▒▒▒ ░░",
        "",
        "     </s>",
        "chat",
        "   é ░░░░",
        "",
    ]


def test_colours_are_reset_after_every_cell() -> None:
    lines = list(attention_lines(SMALL, 80, colour=True))
    assert lines[1:3] == [
        "chat \x1b[38;5;172m███\x1b[0m",
        "   é \x1b[38;5;172m▄▄▄\x1b[0m \x1b[38;5;172m▂▂\x1b[0m \x1b[38;5;172m▂▂▂▂\x1b[0m",
    ]


def test_columns_stand_below_each_other_in_every_script() -> None:
    tokens = ["的", "👩\u200d🚀", "كتاب", "e\u0301", "</s>"]
    header, *rows = attention_lines(attention_of(tokens, tokens, [[1] * 5] * 5), 80, colour=False)
    assert {display_width(row) for row in rows[:5]} == {display_width(header)}


def test_neighbours_from_right_to_left_are_kept_apart_by_marks() -> None:
    """Without them a terminal would show the two as one run, the second word first."""
    header, *_ = attention_lines(attention_of(["كتاب", "أحمر"], ["x"], [[1, 0]]), 80, colour=False)
    assert header == "  \u200eكتاب\u200e \u200eأحمر\u200e"


def test_no_label_changes_the_direction_of_what_follows() -> None:
    assert printable("a\u202eb\u2067") == "a�b�"


def test_scores_are_shown_when_they_are_asked_for() -> None:
    hypotheses = [pb.Hypothesis(text="x", score=-0.5), pb.Hypothesis(text="y", score=-1)]
    translation = pb.Translation(
        translated_text=" x", sentences=[pb.Sentence(hypotheses=hypotheses)]
    )
    plain, scored = (Style(scores=scores) for scores in (False, True))
    assert list(translation_lines(translation, plain)) == [" x"]
    assert list(translation_lines(translation, scored)) == ["-0.5000\tx", "-1.0000\ty"]


def test_a_line_that_was_read_is_answered_with_one_line() -> None:
    translation = pb.Translation(translated_text="one\ntwo\r")
    assert list(translation_lines(translation, Style(single_line=True))) == ["one two"]
    assert list(translation_lines(translation, Style())) == ["one\ntwo\r"]


def test_translate_prints_one_translation_a_text(client: Client, server: RunningServer) -> None:
    result = run_service("translate", "--server", server.address, TEXT, "", "A man.")
    request = pb.TranslateRequest(contents=[TEXT, "", "A man."])
    expected = [t.translated_text for t in client.translate(request).translations]
    assert result.stdout == "".join(f"{line}\n" for line in expected)
    assert (result.returncode, result.stderr) == (0, "")


def test_translate_reads_lines_without_texts_and_keeps_their_number(server: RunningServer) -> None:
    lines = "".join(f"Line {number} of a man.\n" for number in range(70)) + "\n\nA dog."
    result = run_service("translate", "--server", server.address, input=lines)
    last = run_service(
        "translate", "--server", server.address, input="Line 69 of a man.\n\n\nA dog."
    )
    assert result.stdout.count("\n") == 73
    assert result.stdout.endswith(last.stdout)


def test_translate_needs_no_server_with_a_directory_of_models(
    models: Path, server: RunningServer
) -> None:
    arguments = ("--model=tiny-bahdanau", "--n-best=2", TEXT)
    local = run_service("translate", f"--models={models}", *arguments)
    remote = run_service("translate", f"--server={server.address}", *arguments)
    assert local.stdout == remote.stdout
    assert local.stdout.count("\n") == 2


def test_translate_draws_attention_below_each_hypothesis(server: RunningServer) -> None:
    arguments = ("translate", f"--server={server.address}", "--attention", TEXT)
    assert "</s>" in run_service(*arguments).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--model=other", TEXT], 1, "NOT_FOUND: model 'other' is not served"),
        (["--to=de", TEXT], 1, "NOT_FOUND: no model translates any to de"),
        (["--beam-size=99", TEXT], 1, "INVALID_ARGUMENT: beam_size is 99"),
        (["--beam-size=0", TEXT], 1, "INVALID_ARGUMENT: beam_size is 0"),
        ([f"--beam-size={2**40}", TEXT], 1, "INVALID_ARGUMENT: Value out of range"),
        (["\udcff"], 1, "INVALID_ARGUMENT: text 1 is not UTF-8"),
        (["--beam-size=x", TEXT], 2, "argument --beam-size: invalid int value: 'x'"),
    ],
)
def test_translate_says_on_stderr_what_went_wrong(
    arguments: list[str], code: int, message: str, server: RunningServer
) -> None:
    result = run_service("translate", f"--server={server.address}", *arguments)
    assert (result.returncode, result.stdout) == (code, "")
    assert message in result.stderr and "Traceback" not in result.stderr


def test_check_lists_good_bundles_and_says_what_is_wrong_with_others(
    models: Path, tmp_path: Path
) -> None:
    assert run_service("check", str(models)).returncode == 0
    for bundle in ("bahdanau", "transformer"):
        shutil.copytree(models / bundle, tmp_path / bundle)
    (tmp_path / "bahdanau" / "fp32" / "step.onnx").write_bytes(b"broken")
    result = run_service("check", str(tmp_path))
    assert result.returncode == 1
    assert "tiny-transformer" in result.stdout and "tiny-bahdanau" not in result.stdout
    assert "step.onnx" in result.stderr


def test_check_of_a_directory_without_bundles_is_a_mistake(tmp_path: Path) -> None:
    result = run_service("check", str(tmp_path))
    assert (result.returncode, result.stdout) == (2, "")


@pytest.mark.parametrize("command", ["serve", "translate", "check", "admin", "health"])
def test_every_command_explains_itself(command: str) -> None:
    result = run_service(command, "--help")
    assert result.returncode == 0
    assert result.stdout.startswith(f"usage: python -m service {command}")
