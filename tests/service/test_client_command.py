"""The `translate` command as a filter: its streams, its lines, and what it says of them."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.running_server import RunningServer, run_service, running_server

TEXT = "Two young women are walking."
ENDLESS = "young " * 100  # more tokens than a sentence may have
C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""}


def run_in_shell(
    server: RunningServer, arguments: str, input: bytes = b"", /, **environment: str
) -> "subprocess.CompletedProcess[bytes]":
    """`translate` with redirections among its arguments."""
    python = shlex.quote(sys.executable)
    command = f"exec {python} -m service translate --server {server.address} {arguments}"
    return subprocess.run(
        ["sh", "-c", command],
        input=input,
        env={**os.environ, **environment},
        capture_output=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("<&-", 2, b"translate: standard input is closed"),
        ("text >&-", 2, b"translate: standard output is closed"),
        ("text >/dev/full", 1, b"python -m service translate: No space left on device"),
    ],
)
def test_a_stream_that_cannot_be_used_is_named_in_one_line(
    arguments: str, code: int, message: bytes, server: RunningServer
) -> None:
    result = run_in_shell(server, arguments)
    assert (result.returncode, result.stderr.count(b"\n")) == (code, 1)
    assert result.stderr.startswith(message)


def test_a_file_that_cannot_be_written_is_named(server: RunningServer) -> None:
    result = run_in_shell(server, f"{shlex.quote(__file__)} --output {shlex.quote(__file__)}/out")
    assert (result.returncode, result.stderr.count(b"\n")) == (1, 1)
    assert result.stderr.startswith(f"python -m service translate: {__file__}/out".encode())
    assert result.stderr.endswith(b": Not a directory\n")


def test_texts_need_no_standard_input(server: RunningServer) -> None:
    result = run_in_shell(server, f"{shlex.quote(TEXT)} <&-")
    assert (result.returncode, result.stdout.count(b"\n")) == (0, 1)


@pytest.mark.parametrize("arguments", ["", "--attention"])
def test_the_locale_changes_nothing(arguments: str, server: RunningServer) -> None:
    line = "naïve café".encode()
    usual = run_in_shell(server, arguments, line)
    assert usual.returncode == 0
    assert run_in_shell(server, arguments, line, **C_LOCALE).stdout == usual.stdout
    typed, typed_in_c = (
        run_in_shell(server, "'naïve café'", **locale) for locale in ({}, C_LOCALE)
    )
    assert typed_in_c.stdout == typed.stdout != b""


def test_only_a_line_feed_ends_a_line(server: RunningServer) -> None:
    lines = b"A man.\rA dog.\nA man.\x0bA dog.\r\nA man.\xe2\x80\xa8A dog.\n"
    result = run_in_shell(server, "", lines)
    assert result.stdout.count(b"\n") == 3 and b"\r" not in result.stdout


@pytest.mark.parametrize(
    ("line", "fault"),
    [(b"\xff\xfe", b"line 70 is not UTF-8"), (ENDLESS.encode(), b"line 70 has a sentence of")],
)
def test_an_error_names_the_line_of_the_input(
    line: bytes, fault: bytes, server: RunningServer
) -> None:
    result = run_in_shell(server, "--refuse-long", b"A man.\n" * 69 + line + b"\nA dog.\n")
    assert (result.returncode, result.stdout.count(b"\n")) == (1, 64)
    assert result.stderr.startswith(b"INVALID_ARGUMENT: " + fault)


def test_an_error_names_the_text_of_the_arguments(server: RunningServer) -> None:
    arguments = ("translate", f"--server={server.address}", "--refuse-long", TEXT, ENDLESS)
    assert "text 2 has a sentence of" in run_service(*arguments).stderr


def test_a_server_that_takes_few_texts_at_once_is_sent_few(
    server: RunningServer, models: Path
) -> None:
    with running_server(models, "--max-contents=3", "--default-model=tiny-transformer") as small:
        result = run_in_shell(small, "", b"A man.\n" * 7)
    assert result.stderr == b""
    assert result.stdout == run_in_shell(server, "", b"A man.\n" * 7).stdout
